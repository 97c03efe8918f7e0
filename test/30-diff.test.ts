// `diff`: what has changed between two lists of what a server offers, and whether it breaks a client.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { compareOffers, type Offered } from '../chapters/30-seeing/compare/offers-diff.ts';
import type { Json } from '../mcp.ts';
import { cleanUp, folder, goodServer, root } from './help/basics.ts';
import { place, run, userServers } from './help/terminal.ts';

afterEach(cleanUp);

const NOTHING: Offered = {
  capabilities: {},
  tools: [],
  resources: [],
  resourceTemplates: [],
  prompts: [],
};

/** "narrower! limit: maximum 10, was 100": ! is for what breaks. */
function changes(before: Partial<Offered>, after: Partial<Offered>): string[] {
  return compareOffers({ ...NOTHING, ...before }, { ...NOTHING, ...after }).map(
    ({ what, how, isBreaking, where }) => `${what} ${how}${isBreaking ? '!' : ''} ${where ?? ''}`,
  );
}

const tool = (inputSchema: Json, outputSchema?: Json) => [
  { name: 't', inputSchema, ...(outputSchema && { outputSchema }) },
];
const field = (schema: Json, required: string[] = []) => ({
  type: 'object',
  properties: { a: schema },
  required,
});

test('what goes in may become wider, and breaks a client if it becomes narrower', () => {
  const cases: [before: Json, after: Json, found: string[]][] = [
    [field({ type: 'string' }), field({ type: 'string' }), []],
    [field({ type: 'integer' }), field({ type: 'number' }), ['t wider a: also number']],
    [field({ type: 'number' }), field({ type: 'integer' }), ['t narrower! a: no longer number']],
    [field({ type: 'string' }), field({ type: 'string' }, ['a']), ['t narrower! a is required']],
    [
      field({ type: 'string' }, ['a']),
      field({ type: 'string' }),
      ['t wider a is no longer required'],
    ],
    [field({ enum: ['x', 'y'] }), field({ enum: ['x'] }), ['t narrower! a: no longer y']],
    [field({ enum: ['x'] }), field({ enum: ['x', 'y'] }), ['t wider a: also y']],
    [field({}), field({ const: 1 }), ['t narrower! a: only 1, was any value']],
    [field({ maximum: 100 }), field({ maximum: 10 }), ['t narrower! a: maximum 10, was 100']],
    [field({ minLength: 3 }), field({ minLength: 1 }), ['t wider a: minLength 3, is now 1']],
    [field({}), { type: 'object', properties: {} }, ['t narrower! a is gone']],
    [{ type: 'object', properties: {} }, field({}), ['t wider a is new']],
    [
      { type: 'object' },
      { type: 'object', additionalProperties: false },
      ['t narrower! no other fields'],
    ],
    [
      field({ type: 'array', items: { type: 'string' } }),
      field({ type: 'array', items: { type: 'number' } }),
      ['t narrower! a[]: no longer string', 't wider a[]: also number'],
    ],
    [
      field({ pattern: 'a' }), // which is narrower, we do not know: it counts as both
      field({ pattern: 'b' }),
      ['t narrower! a: pattern has changed', 't wider a: pattern has changed'],
    ],
  ];
  for (const [before, after, found] of cases)
    assert.deepEqual(
      changes({ tools: tool(before) }, { tools: tool(after) }),
      found.map((each) => `tool ${each}`),
      JSON.stringify([before, after]),
    );
});

test('what comes out may become narrower, and breaks a client if something is missing', () => {
  const input = { type: 'object' };
  const of = (before: Json, after: Json) =>
    changes({ tools: tool(input, before) }, { tools: tool(input, after) });
  assert.deepEqual(of(field({}), { type: 'object', properties: {} }), [
    'tool t wider! output a is gone',
  ]);
  assert.deepEqual(of({ type: 'object', properties: {} }, field({})), [
    'tool t narrower output a is new',
  ]);
  assert.deepEqual(of(field({}, ['a']), field({})), [
    'tool t wider! output a is no longer required',
  ]);
  assert.deepEqual(changes({ tools: tool(input, field({})) }, { tools: tool(input) }), [
    'tool t wider! output: no schema any more',
  ]);
});

test('names come and go, and a prompt has arguments', () => {
  const prompt = (...required: boolean[]) => [
    { name: 'p', arguments: required.map((each, n) => ({ name: `a${n}`, required: each })) },
  ];
  assert.deepEqual(
    changes(
      { capabilities: { tools: {}, logging: {} }, resources: [{ uri: 'a:1' }], prompts: prompt() },
      { capabilities: { tools: {} }, resources: [{ uri: 'a:2' }], prompts: prompt(true, false) },
    ),
    [
      'capability logging gone! ',
      'resource a:1 gone! ',
      'resource a:2 new ',
      'prompt p narrower! a0 is required',
      'prompt p wider a0 is new',
      'prompt p wider a1 is new',
    ],
  );
});

test('a schema that refers to itself, odd shapes and hostile names do no harm', () => {
  const loop: Json = { type: 'object', properties: {} };
  (loop.properties as Json).self = loop;
  assert.deepEqual(
    changes({ tools: tool(loop) }, { tools: tool({ ...loop, minProperties: 1 }) }).length,
    1,
  );
  const odd = [null, 7, { name: '__proto__', inputSchema: 'x' }, { name: {} }] as never;
  assert.deepEqual(changes({ tools: odd }, { tools: odd }), []);
});

test('diff as a program: a list, a recording, a name and a command; 8 says that it breaks', async () => {
  const other = join(folder(), 'other.mjs');
  writeFileSync(other, readFileSync(goodServer, 'utf8').replaceAll('greet', 'hail'));
  const servers = userServers({ other: { command: process.execPath, args: [other] } });
  const where = place({}, servers);
  const listed = await run(where, ['probe', '--json', '--', process.execPath, goodServer]);
  const before = join(where.cwd, 'before.json');
  writeFileSync(before, listed.out);
  const same = await run(where, ['diff', before, '--', process.execPath, goodServer]);
  assert.deepEqual([same.code, same.out], [0, ''], same.err);

  const broken = await run(where, ['diff', before, 'other']);
  assert.equal(broken.code, 8, broken.err);
  assert.match(broken.out, /^- tool greet is gone {2}\(breaking\)\n\+ tool hail is new\n$/);

  const trace = join(where.cwd, 'calls.jsonl');
  const called = [
    'call',
    '--trace',
    trace,
    'add',
    'a=1',
    'b=2',
    '--',
    process.execPath,
    goodServer,
  ];
  assert.equal((await run(where, called)).code, 0);
  const json = await run(where, ['diff', '--json', trace, 'other']);
  const { breaking, changes: all } = JSON.parse(json.out);
  assert.deepEqual([json.code, breaking, all[0].what], [8, 1, 'tool greet']);
  assert.equal((await run(where, ['diff', trace])).code, 2);
  // It announces resources, and answers −32601 to the list of templates.
  const library = join(root, 'fixtures', 'library.mjs');
  const partly = await run(where, [
    'diff',
    before,
    '--',
    process.execPath,
    library,
    'no-templates',
  ]);
  assert.equal(partly.code, 8, partly.err);
  assert.match(partly.out, /^\+ resource library:\/\/rules is new$/m);
});

test('what is said of the way holds for both servers', async () => {
  const entry = { command: process.execPath, args: [goodServer] };
  const config = JSON.stringify({ before: entry, after: entry });
  const where = place();
  const { code, err } = await run(where, ['diff', 'before', 'after', '--mcp-config', config]);
  assert.equal(code, 0, err);
  assert.match(err, /^0 changes/m);
});
