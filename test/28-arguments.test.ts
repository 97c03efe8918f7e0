// Chapter 28: arguments are checked, and mended where there is no doubt, before anyone is troubled with them.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { prepareArguments } from '../chapters/28-a-thousand-tools/tool-arguments.ts';
import { isObject, type Json } from '../mcp.ts';
import { calls, prepareAgent } from './help/agent-with-gate.ts';
import { heldServer } from './help/held-server.ts';
import { cleanUp, root } from './help/basics.ts';

afterEach(cleanUp);

const object = (properties: Json, more: Json = {}): Json => ({
  type: 'object',
  properties,
  ...more,
});
const number = { type: 'number' };
const list = { type: 'array', items: { type: 'integer' } };

/** A schema, the arguments of a model, and those that the tool is called with. */
const MENDED: [schema: Json, given: Json, args: Json][] = [
  [object({ a: number }), { a: '3' }, { a: 3 }],
  [object({ a: number }), { a: ' -3.5e2 ' }, { a: -350 }],
  [object({ a: { type: 'boolean' } }), { a: 'true' }, { a: true }],
  [object({ a: list }), { a: '[1, 2]' }, { a: [1, 2] }],
  [object({ a: list }), { a: '["1", "2"]' }, { a: [1, 2] }], // inside the text, too
  [object({ a: list }), { a: ['1', 2] }, { a: [1, 2] }],
  [object({ a: object({ b: number }) }), { a: '{"b":"1"}' }, { a: { b: 1 } }],
  [object({ a: number, b: { type: 'string' } }), { a: 1, b: null }, { a: 1 }],
  [object({ a: object({ b: number }) }), { a: { b: null } }, { a: {} }],
  [object({ a: { type: ['string', 'null'] } }), { a: null }, { a: null }], // it knows null
  [object({ a: { enum: [1, 2] } }), { a: '2' }, { a: 2 }],
  [object({ a: { anyOf: [{ type: 'integer' }, { type: 'null' }] } }), { a: '7' }, { a: 7 }],
  [object({ a: { anyOf: [{ type: 'integer' }, { type: 'null' }] } }), { a: 'null' }, { a: null }],
  [
    object({
      a: {
        oneOf: [object({ k: { const: 'x' }, n: number }, { required: ['k'] }), { type: 'null' }],
      },
    }),
    { a: { k: 'x', n: '1' } },
    { a: { k: 'x', n: 1 } },
  ],
  [object({ a: { $ref: '#/$defs/n' } }, { $defs: { n: number } }), { a: '3' }, { a: 3 }],
  [object({ a: { type: 'string', default: null } }, { required: ['a'] }), { a: null }, { a: null }], // its own default
  [object({}, { additionalProperties: number }), { x: '3' }, { x: 3 }],
  // Nothing is mended that fits as it is.
  [object({ a: { type: 'string' } }), { a: '3' }, { a: '3' }],
  [object({ a: {} }), { a: '[1]' }, { a: '[1]' }],
  [object({ a: { type: ['string', 'array'] } }), { a: '[1]' }, { a: '[1]' }],
  [object({ a: number }), { b: '3' }, { b: '3' }], // of b the schema says nothing
];

test('what leaves no doubt is mended, and what fits is left alone', () => {
  for (const [schema, given, args] of MENDED) {
    const before = JSON.stringify(given);
    assert.deepEqual(prepareArguments(given, schema), { args }, JSON.stringify([schema, given]));
    assert.equal(JSON.stringify(given), before, 'what the model wrote stays as it was');
  }
});

/** A schema, arguments with a doubt, and what the model is told. */
const REFUSED: [schema: Json, given: Json, told: RegExp][] = [
  [
    object({ a: number }),
    { a: 'three' },
    /^- a should be a number \(given: "three"\)\n  expected: \{"type":"number"\}$/m,
  ],
  [object({ a: number }), { a: '12345678901234567890' }, /^- a should be a number/m], // it would be another number
  [object({ a: number }), { a: '1e999' }, /^- a should be a number/m], // it would be sent as null
  [object({ a: list }), { a: '[12345678901234567890]' }, /^- a should be an array/m],
  [object({ a: { type: 'string' } }), { a: 3 }, /^- a should be a string \(given: 3\)$/m],
  [object({ a: list }), { a: '1, 2' }, /^- a should be an array \(given: "1, 2"\)$/m],
  [object({ a: list }), { a: 7 }, /^- a should be an array \(given: 7\)$/m],
  [
    object({ filePath: number }, { required: ['filePath'] }),
    { file_path: 1 },
    /^- filePath is missing; did you mean it by "file_path"\?$/m,
  ],
  [
    object({ path: number }, { required: ['path'] }),
    { file_path: 1 },
    /^- path is missing; did you mean it by "file_path"\?$/m,
  ],
  [
    object({ path: number }, { required: ['path'] }),
    {},
    /^- path is missing\n  expected: \{"type":"number"\}$/m,
  ],
  [
    object({ path: number }, { required: ['path'] }),
    { path: null },
    /^- path should be a number \(given: null\)$/m,
  ],
  [
    object({ unit: { enum: ['metre', 'mile'] } }),
    { unit: 'meter' },
    /^- unit should be one of \["metre","mile"\]; did you mean "metre"\? \(given: "meter"\)$/m,
  ],
  [
    object({ query: {} }, { additionalProperties: false }),
    { querry: 'x' },
    /^- querry is not allowed here; did you mean "query"\? \(given: "x"\)$/m,
  ],
  [
    object({ a: { items: object({ b: number }) } }),
    { a: [{ b: 1 }, { b: 'x' }] },
    /^- a\[1\]\.b should be a number \(given: "x"\)\n  expected: \{"type":"number"\}$/m,
  ],
  [
    object({ 'odd name': number }),
    { 'odd name': [] },
    /^- \["odd name"\] should be a number \(given: \[\]\)$/m,
  ],
  [object({ a: { minimum: 1 } }), { a: 0 }, /^- a should be at least 1 \(given: 0\)$/m],
];

test('a doubt goes back to the model: where, what was expected, what was given, and the nearest name', () => {
  for (const [schema, given, told] of REFUSED) {
    const { refusal = 'nothing' } = prepareArguments(given, schema);
    assert.match(refusal, told, JSON.stringify([schema, given]));
    assert.match(refusal, /^Not called: /);
  }
});

test('what the model is told has at most 2000 characters, however much is wrong', () => {
  const names = Array.from({ length: 500 }, (_, n) => `name${n}`);
  const schema = object(
    Object.fromEntries(
      names.map((name) => [name, { type: 'string', description: 'x'.repeat(500) }]),
    ),
    { required: names },
  );
  const { refusal = '' } = prepareArguments({ a: 'y'.repeat(10_000) }, schema);
  assert.ok(refusal.length <= 2000, `${refusal.length}`);
  assert.match(refusal, /\n… and \d+ more$/);
});

test('a schema that cannot be judged lets the call through, soon; hidden characters reach nobody', () => {
  const endless = object({ a: { $ref: '#/properties/b' }, b: { $ref: '#/properties/a' } });
  assert.deepEqual(prepareArguments({ a: 1 }, endless), { args: { a: 1 } });
  const slow = object({ a: { pattern: '^(a+)+$' } });
  assert.deepEqual(prepareArguments({ a: `${'a'.repeat(40)}b` }, slow), {
    args: { a: `${'a'.repeat(40)}b` },
  });
  let deep: Json = number;
  for (let n = 0; n < 2000; n++) deep = { anyOf: [deep, object({ x: deep })] };
  prepareArguments({ a: 'x' }, object({ a: deep }));
  const odd = object({ 'a\u202eb': { type: 'string' } }, { required: ['a\u202eb'] });
  assert.doesNotMatch(prepareArguments({}, odd).refusal!, /\u202e/);
  const own = object({ a: number }, { required: ['__proto__', 'toString'] });
  assert.match(prepareArguments({}, own).refusal!, /__proto__ is missing[^]*toString is missing/);
});

// ─── In the loop ──────────────────────────────────────────────────────────────────────────────────────────────

const ADD = {
  name: 'add',
  inputSchema: object({ a: number, b: number }, { required: ['a', 'b'] }),
};

/** An agent with one server in this process. */
function withServer(script: ReturnType<typeof calls>, tools: Json[], answers?: string[]) {
  const server = heldServer(tools, { isQuick: true });
  const manager = { transports: { held: server.factory } };
  return {
    ...prepareAgent({ script, servers: { s: { type: 'held' } }, manager, answers }),
    server,
  };
}

test('a misfit troubles neither the server nor the person, and the next answer can do better', async () => {
  const bad: [string, Json] = ['mcp__s__add', { a: 1, bb: 2 }];
  const [wrong] = calls(bad);
  const { agent, server, questions, outcomes, results, of } = withServer(
    [wrong!, ...calls(['mcp__s__add', { a: '1', b: 2 }])],
    [ADD],
    ['y'],
  );
  await agent.chat('add');
  const [first] = agent.turns.flatMap((turn) => (turn.role === 'tools' ? turn.results : []));
  assert.match(JSON.stringify(first), /- b is missing; did you mean it by \\"bb\\"\?/);
  assert.equal(first!.isError, true);
  assert.deepEqual(outcomes(), ['unreadable', 'worked']);
  assert.equal(questions.length, 1, 'asked for the good one only');
  assert.match(questions[0]!.text, /a: 1$/m, 'and sees what will be sent');
  assert.deepEqual(
    server.heard.map(({ args }) => args),
    [{ a: 1, b: 2 }],
  );
  assert.equal(results()[0]!.text, '{"a":1,"b":2}');
  assert.deepEqual(
    of('tool_start').map(({ args }) => args),
    [
      { a: 1, bb: 2 },
      { a: 1, b: 2 },
    ],
  );
});

test('it is checked against the schema of the server, not against the shortened one that the model sees', async () => {
  const long = `x${'y'.repeat(5000)}`;
  const tool = { name: 'pick', inputSchema: object({ a: { enum: [long, 'b\u200bc'] } }) };
  const { agent, server, outcomes } = withServer(
    calls(['mcp__s__pick', { a: long }], ['mcp__s__pick', { a: 'b\u200bc' }]),
    [tool],
    ['y', 'y'],
  );
  await agent.chat('pick');
  assert.deepEqual(outcomes(), ['worked', 'worked']);
  assert.equal(server.heard.length, 2);
});

// ─── The schemas of 156 real servers ──────────────────────────────────────────────────────────────────────────

// They belong to others, and not to this repository: ../shared/data has them where we work on it.
const corpus = join(root, '..', 'shared', 'data', 'tool-corpus.json');
const skip = existsSync(corpus) ? false : `there is no ${corpus}`;

test('2,307 real schemas: good calls and defaults pass, and every refusal names the place', {
  skip,
}, () => {
  const { tools } = JSON.parse(readFileSync(corpus, 'utf8')) as {
    tools: { label: string; inputSchema: Json }[];
  };
  const count = { good: 0, given: 0, bad: 0 };
  const wrong: string[] = [];
  const expect = (isAsExpected: boolean, what: string) => void (isAsExpected || wrong.push(what));
  for (const { label, inputSchema } of tools) {
    const good = sample(inputSchema, inputSchema) as Json;
    const { args, refusal } = prepareArguments(good, inputSchema);
    expect(!refusal, `${label}: ${refusal}`);
    if (refusal) continue;
    expect(JSON.stringify(args) === JSON.stringify(good), `${label}: mended what was good`);
    count.good++;
    for (const [kind, path, bad] of spoiled(good, inputSchema)) {
      count.bad++;
      const { refusal: told } = prepareArguments(bad, inputSchema);
      expect(told?.includes(`\n- ${path} `) === true, `${label}: ${kind} ${path}: ${told}`);
    }
    for (const [name, value] of defaults(inputSchema)) {
      count.given++;
      expect(
        !prepareArguments({ ...good, [name]: value }, inputSchema).refusal,
        `${label}: its default of ${name}`,
      );
    }
  }
  assert.deepEqual(wrong.slice(0, 5), [], `${wrong.length} of ${JSON.stringify(count)}`);
  assert.deepEqual(
    [count.good, count.bad > 5000, count.given > 950],
    [tools.length, true, true],
    JSON.stringify(count),
  );
});

type Properties = Record<string, Json>;
const propertiesOf = ({ properties }: Json) =>
  (isObject(properties) ? properties : {}) as Properties;

function defaults(schema: Json): [string, unknown][] {
  return Object.entries(propertiesOf(schema)).flatMap(([name, each]) =>
    isObject(each) && 'default' in each ? [[name, each.default]] : [],
  );
}

/** Good arguments with one mistake: something is missing, of a wrong type, not in the list, or not known. */
function* spoiled(good: Json, schema: Json): Generator<[kind: string, path: string, bad: Json]> {
  const { required = [], additionalProperties } = schema as {
    required?: string[];
    additionalProperties?: unknown;
  };
  const spell = (name: string) =>
    /^[A-Za-z_]\w*$/.test(name) ? name : `[${JSON.stringify(name)}]`;
  for (const name of required.slice(0, 2)) {
    const { [name]: _, ...rest } = good;
    if (name in good) yield ['missing', spell(name), rest];
  }
  if (additionalProperties === false) yield ['unknown', 'noSuchThing', { ...good, noSuchThing: 1 }];
  const typed = Object.entries(propertiesOf(schema)).filter(
    ([name, { type }]) => typeof type === 'string' && name in good,
  );
  for (const [name, each] of typed.slice(0, 2)) {
    const other = each.type === 'object' ? 7 : { an: 'object' };
    yield ['type', spell(name), { ...good, [name]: other }];
    if (each.enum && each.type === 'string')
      yield ['enum', spell(name), { ...good, [name]: 'no-such-value' }];
  }
}

/** Something that fits. */
function sample(schema: unknown, whole: Json, level = 0): unknown {
  if (!isObject(schema) || level > 20) return 'x';
  const s = schema as any;
  if (s.$ref)
    return sample(
      s.$ref
        .slice(2)
        .split('/')
        .reduce((at: any, key: string) => at?.[key.replaceAll('~1', '/')], whole),
      whole,
      level + 1,
    );
  if ('const' in s) return s.const;
  if (s.enum) return s.enum[0] ?? 'x'; // a real server has a list of nothing
  const [one] = s.anyOf ?? s.oneOf ?? [];
  if (one && !s.properties)
    return sample({ ...one, ...(s.type && { type: s.type }) }, whole, level + 1);
  const parts = (s.allOf ?? []).map((each: Json) => sample(each, whole, level + 1));
  if (parts.length > 0) return Object.assign({}, ...parts);
  const merged = s;
  const type = [merged.type ?? (merged.properties ? 'object' : 'string')]
    .flat()
    .find((each: string) => each !== 'null');
  if (type === 'object') {
    const names: string[] = merged.required ?? [];
    return Object.fromEntries(
      names.map((name) => [name, sample(merged.properties?.[name], whole, level + 1)]),
    );
  }
  if (type === 'array') {
    const items = Array.from({ length: Math.max(1, merged.minItems ?? 1) }, () =>
      sample(merged.items, whole, level + 1),
    );
    return merged.maxItems === 0 ? [] : items;
  }
  if (type === 'boolean') return true;
  if (type === 'number' || type === 'integer') return numberFor(merged);
  return textFor(merged);
}

function numberFor({
  minimum = 1,
  exclusiveMinimum = -Infinity,
  maximum = Infinity,
  exclusiveMaximum = Infinity,
}: any): number {
  return Math.min(Math.max(minimum, exclusiveMinimum + 1), maximum, exclusiveMaximum - 1);
}

const TEXTS = [
  'x',
  '1',
  'a',
  'abcdef',
  'A',
  'ABC',
  'AAA',
  '2024-01-01',
  '2024-01',
  '12:00',
  '2024-01-01T00:00:00Z',
  '12:00:00',
  '#ffffff',
  'https://a.example/x',
  'a/b',
  'a@b.example',
  '123456',
  '0x0000000000000000000000000000000000000000',
  '550e8400-e29b-41d4-a716-446655440000',
  'a-b',
  'a.b',
  '/a',
  '-1',
  '+1',
  '1d',
  '1h',
  '10m',
  '755',
  'a.png',
];

function textFor({ pattern, minLength = 0, maxLength = Infinity }: any): string {
  const padded = TEXTS.flatMap((text) => [
    text,
    text.padEnd(minLength, 'x'),
    text.padEnd(minLength, '0'),
  ]);
  const fits = (text: string) =>
    text.length >= minLength &&
    text.length <= maxLength &&
    (!pattern || new RegExp(pattern, 'u').test(text));
  return padded.find(fits) ?? 'x'.padEnd(minLength, 'x');
}
