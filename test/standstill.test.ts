// J30: strangers decide how long we work, and we hear the user all the same.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { promisify } from 'node:util';
import { aside, TooSlow } from '../chapters/16-hands/aside.ts';
import { problemsFound } from '../chapters/23-the-server-asks/schema.ts';
import { checkOutput } from '../chapters/28-a-thousand-tools/results/output.ts';
import { preparedArguments } from '../chapters/28-a-thousand-tools/tool-arguments.ts';
import type { Json } from '../mcp.ts';
import { cleanUp, root } from './help/basics.ts';
import { programArgs } from './help/compiled.ts';
import { place, run } from './help/terminal.ts';

afterEach(cleanUp);

const LASTING = [
  'a schema that fans out',
  'patterns of a schema',
  'the schema of arguments',
  'search_code',
  'search_code, .*? forty times',
  'grep',
];
/** They took minutes, and have become short: but not so short that a signal comes too late. */
const SHORTENED = [
  'glob',
  'a glob with two stars',
  'an enum of 2,000 and 200 kB',
  '10,000 properties',
  '10,000 dependentRequired',
  '10,000 unevaluatedProperties',
];

for (const name of [...LASTING, ...SHORTENED])
  test(`J30: SIGINT is heard before the work has ended: ${name}`, async () => {
    const args = programArgs(join(root, 'test', 'programs', 'standstill.ts'));
    const { stdout } = await promisify(execFile)(process.execPath, [...args, name], { cwd: root });
    const { heard } = JSON.parse(stdout);
    assert.ok(heard >= (LASTING.includes(name) ? 20 : 1), stdout);
  });

test('J30: a start beside an endless .mcp.json, not approved, ends before ten starts elsewhere', async () => {
  const mcpServers = { s: { command: 'node', args: ['${0:-'.repeat(180_000)] } };
  const hostile = place({ '.mcp.json': { mcpServers } });
  const harmless = place({ '.mcp.json': { mcpServers: { s: { command: 'node' } } } });
  const ended: string[] = [];
  const tenStarts = async () => {
    for (let n = 0; n < 10; n++) await run(harmless, ['-p', 'hello']);
    ended.push('ten starts elsewhere');
  };
  const oneStart = async () => {
    const { code } = await run(hostile, ['-p', 'hello']);
    ended.push(`one start: ${code}`);
  };
  await Promise.all([tenStarts(), oneStart()]);
  assert.equal(ended[0], 'one start: 0');
});

const numbers = Array.from({ length: 2000 }, (_, n) => n);
const names = Array.from({ length: 10_000 }, (_, n) => `name${n}`);
const each = <T>(value: T) => Object.fromEntries(names.map((name) => [name, value]));

test('J30: much that is linear is judged, in a thread', async () => {
  const long = 'x'.repeat(200_000);
  const table: [schema: Json, value: unknown, path: string | undefined][] = [
    [{ enum: numbers }, [long], ''],
    [{ items: { enum: numbers } }, numbers.concat(7, 2000), '[2001]'],
    [{ enum: [...numbers, { a: 1, b: [long] }] }, { b: [long], a: 1 }, undefined],
    [{ properties: each({ type: 'number' }) }, { ...each(1), name9999: 'x' }, 'name9999'],
    [{ dependentRequired: each(['other']) }, each(1), 'other'],
    [{ properties: each({}), unevaluatedProperties: false }, { ...each(1), b: 1 }, 'b'],
    [{ unevaluatedProperties: false }, each(1), 'name0'],
    [{ additionalProperties: false, properties: { a: {} } }, each(1), 'name0'],
    [{ required: names }, {}, 'name0'],
    [{ uniqueItems: true }, [...names, 'name5'], ''],
    [{ allOf: names.map(() => ({ type: 'string' })) }, 1, ''],
  ];
  for (const [schema, value, path] of table) {
    const [first] = await problemsFound(schema, value);
    assert.equal(first?.path, path, JSON.stringify(schema).slice(0, 100));
  }
});

/** Each level has the one below it twice. */
const levels = Array.from({ length: 60 }, (_, n) => {
  const below = { $ref: `#/$defs/${n + 1}` };
  return [n, { allOf: [below, below] }];
});
const endless = { $ref: '#/$defs/0', $defs: Object.fromEntries(levels) };

test('J30: what takes too long is told: which tool, and why; the call goes on', async () => {
  const warnings: string[] = [];
  const warn = (_: string, text: string) => void warnings.push(text);
  const { layer } = checkOutput({ warn } as any);
  const next = async ({ method }: any): Promise<Json> =>
    method === 'tools/list'
      ? { tools: [{ name: 'a', outputSchema: endless }] }
      : { structuredContent: {} };
  await layer!({ method: 'tools/list', options: {} } as any, next);
  const call: any = { method: 'tools/call', params: { name: 'a' }, options: {} };
  assert.deepEqual(await layer!(call, next), { structuredContent: {} });
  await layer!(call, next);
  assert.equal(warnings.length, 1);
  assert.match(warnings[0]!, /"a" whose structured result was not checked: .*longer than 5 s/);
  const { signal } = new AbortController();
  const { args, note } = await preparedArguments({ a: 1 }, endless, signal);
  assert.deepEqual(args, { a: 1 });
  assert.match(note!, /not checked: by the schema of its server it takes longer than 5 s/);
});

test('J30: what a thread throws, or that it is ended, is an error of that work and of no other', async () => {
  const job = { module: '16-hands/more/matching', timeoutMs: 60_000 };
  await assert.rejects(
    aside({ ...job, name: 'linesMatching' }, ...(['(', '', ['a']] as never[])),
    /group/,
  );
  const control = new AbortController();
  const slow = { ...job, name: 'linesMatching', signal: control.signal };
  const given = ['^(a+)+$', '', ['a'.repeat(50) + 'b']] as never[];
  const all = Array.from({ length: 6 }, () => aside(slow, ...given)); // two of them wait
  control.abort();
  for (const one of all) await assert.rejects(one, /abort/i);
  const quick = { ...job, name: 'linesMatching', timeoutMs: 50 };
  await assert.rejects(aside(quick, ...given), TooSlow);
  const good = await aside(
    { ...job, name: 'linesMatching' },
    ...(['a', '', ['b', 'a']] as never[]),
  );
  assert.deepEqual(good, [1]);
});
