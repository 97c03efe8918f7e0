// Chapter 8: `tools/list`, pages, schemas.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { cleanUp, goodServer, habit, open, rejection } from './help/basics.ts';

afterEach(cleanUp);

const listing = (tools: unknown) => habit('tools', JSON.stringify(tools));
const names = (tools: { name: string }[]) => tools.map((tool) => tool.name);

test('the good server lists its tools, on one page or on two', async () => {
  for (const args of [[goodServer], [goodServer, '--page', '1']]) {
    const { connection } = await open({ command: process.execPath, args });
    const tools = await connection.listTools();
    assert.deepEqual(names(tools), ['add', 'greet']);
    assert.deepEqual(tools[0]!.inputSchema.required, ['a', 'b']);
  }
});

test('fault 10: all pages are read; an empty string is a cursor; null is none', async () => {
  for (const [pages, expected] of [
    ['pages', ['t0', 't1', 't2', 't3', 't4']],
    ['empty-cursor', ['one', 'two']],
    ['null-cursor', ['one']],
  ] as const) {
    const { connection } = await open(habit(pages));
    assert.deepEqual(names(await connection.listTools()), expected);
  }
});

test('fault 10: the cursor goes back as it came', async () => {
  const { connection, wire } = await open(habit('empty-cursor'));
  await connection.listTools();
  const asked = wire.filter(
    ([direction, message]) => direction === 'out' && message.method === 'tools/list',
  );
  assert.deepEqual(
    asked.map(([, message]) => message.params),
    [undefined, { cursor: '' }],
  );
});

test('fault 10, B7: a cursor that repeats is an error', async () => {
  const { connection } = await open(habit('repeats-its-cursor'));
  const error = await rejection(connection.listTools());
  assert.match(`${error.kind}: ${error.message}`, /protocol: .*repeats the cursor "again"/);
});

test('fault 10, B7: pages without end are an error', async () => {
  const { connection } = await open(habit('endless-pages'));
  const error = await rejection(connection.listTools());
  assert.match(`${error.kind}: ${error.message}`, /limit: .*more than 1000 pages/);
});

test('the limit holds for all pages together', async () => {
  const { connection } = await open(habit('slow-pages'));
  connection.options.handshakeTimeoutMs = 700; // the handshake itself may take longer on a busy machine
  assert.equal((await rejection(connection.listTools())).kind, 'timeout');
});

test('fault 11: odd tools are left out and named, good ones stay', async () => {
  const good = {
    name: 'good',
    description: 'Fine.',
    inputSchema: { type: 'object', $defs: { a: {} }, properties: { x: { $ref: '#/$defs/a' } } },
  };
  const odd = [
    null,
    7,
    'text',
    [],
    {},
    { name: 5 },
    { name: '' },
    { name: 'x'.repeat(300) },
    { name: 'line\nfeed' },
    { name: 'described', description: 7 },
    { name: 'schema', inputSchema: 'none' },
    { name: 'list', inputSchema: [] },
  ];
  const { connection, warnings } = await open(
    listing([...odd, good, { ...good, description: 'A copy.' }]),
  );
  assert.deepEqual(await connection.listTools(), [good]);
  assert.equal(warnings.length, 1);
  assert.match(
    warnings[0]!,
    /"demo" has tools that we leave out: null: it is not an object; 7: it is not an object; /,
  );
  assert.equal(warnings[0]!.split('; ').length, odd.length + 1);
  assert.match(warnings[0]!, /its name is taken$/);
});

test('fault 11: a tool without description or schema is a tool', async () => {
  const { connection, warnings } = await open(
    listing([
      { name: 'bare' },
      { name: 'nulls', description: null, inputSchema: null },
      { name: 'loose', inputSchema: { properties: {} }, extra: [1] },
    ]),
  );
  assert.deepEqual(await connection.listTools(), [
    { name: 'bare', inputSchema: { type: 'object' } },
    { name: 'nulls', description: null, inputSchema: { type: 'object' } },
    { name: 'loose', inputSchema: { properties: {} }, extra: [1] },
  ]);
  assert.deepEqual(warnings, []);
});

test('a tool called __proto__ is a name like any other and harms nobody', async () => {
  const { connection } = await open(
    habit('tools', '[{"name":"__proto__","inputSchema":{"__proto__":{"polluted":true}}}]'),
  );
  assert.deepEqual(names(await connection.listTools()), ['__proto__']);
  assert.equal(({} as Record<string, unknown>).polluted, undefined);
});

test('a list that is no list is an error for the list', async () => {
  for (const tools of ['many', null, { a: 1 }]) {
    const { connection } = await open(listing(tools));
    assert.equal((await rejection(connection.listTools())).kind, 'protocol');
  }
});

test('a server that declared no tools is not asked for any', async () => {
  const { connection } = await open(habit('no-tools')); // exits when asked
  assert.deepEqual(await connection.listTools(), []);
});

test('odd tools are named on whatever page they are', async () => {
  const { connection, warnings } = await open(habit('odd-pages'));
  assert.deepEqual(names(await connection.listTools()), ['one', 'two']);
  assert.match(warnings.join(), /leave out: 1: it is not an object; 2: it is not an object$/);
});
