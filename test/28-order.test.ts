// Chapter 28: the calls to one server wait in line, and those to different servers do not wait for each other.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { inBothEras } from '../chapters/22-no-handshake/era.ts';
import { inOrder } from '../chapters/28-a-thousand-tools/order.ts';
import { stayAlive } from '../chapters/26-staying-alive/alive.ts';
import type { ConnectionOptions, Json } from '../mcp.ts';
import { calls, prepareAgent } from './help/agent-with-gate.ts';
import { heldServer } from './help/held-server.ts';
import { row, saying, yes } from './help/agent-alone.ts';
import { cleanUp, connect, open, pause, rejection, until } from './help/basics.ts';

afterEach(cleanUp);

const READER = { name: 'look', annotations: { readOnlyHint: true } };
const soon = () => pause(1);

/** A connection to a server of which the test decides when it answers. */
async function line(config: Json = {}, options: ConnectionOptions = {}) {
  const server = heldServer(['write', READER]);
  const opened = await open(
    { type: 'held', ...config },
    { transports: { held: server.factory }, extensions: [inOrder], ...options },
  );
  await opened.connection.listTools();
  const call = (name: string, n: number, signal?: AbortSignal) =>
    opened.connection.callTool(name, { n }, { signal });
  const numbers = () => server.heard.map(({ args }) => args.n);
  return { ...opened, server, call, numbers };
}

/** All that can happen without an answer of the server has happened. */
async function settled(): Promise<void> {
  for (let turns = 0; turns < 20; turns++) await new Promise(setImmediate);
}

test('serial, which is the default: one call after the other, in their order', async () => {
  const { server, call, numbers } = await line();
  const all = [1, 2, 3, 4].map((n) => call(n % 2 ? 'write' : 'look', n));
  for (let n = 1; n <= 4; n++) {
    await settled();
    assert.deepEqual(
      numbers(),
      [1, 2, 3, 4].slice(0, n),
      'the next one is not sent before this one is answered',
    );
    server.open()[0]!.answer(`${n}`);
  }
  assert.deepEqual(
    (await Promise.all(all)).map(({ text }) => text),
    ['1', '2', '3', '4'],
  );
  assert.equal(server.most(), 1);
});

test('reads-parallel: what says that it reads goes side by side, and nobody overtakes', async () => {
  const { server, call, numbers } = await line({ order: 'reads-parallel' });
  const all = [
    call('look', 1),
    call('look', 2),
    call('write', 3),
    call('look', 4),
    call('look', 5),
  ];
  await settled();
  assert.deepEqual(numbers(), [1, 2], 'the reads behind the write wait as well');
  server.heard[0]!.answer();
  await settled();
  assert.deepEqual(numbers(), [1, 2], 'the write waits for both');
  server.heard[1]!.answer();
  await settled();
  assert.deepEqual(numbers(), [1, 2, 3]);
  server.heard[2]!.answer();
  await settled();
  assert.deepEqual(numbers(), [1, 2, 3, 4, 5]);
  for (const each of server.open()) each.answer();
  await Promise.all(all);
});

test('reads-parallel goes by what the tool says now', async () => {
  const tools: Json[] = [{ ...READER }];
  const server = heldServer(tools);
  const { connection } = await open(
    { type: 'held', order: 'reads-parallel' },
    { transports: { held: server.factory }, extensions: [inOrder] },
  );
  await connection.listTools();
  tools[0] = { name: 'look' }; // it has changed its mind
  await connection.listTools();
  const both = [connection.callTool('look'), connection.callTool('look')];
  await settled();
  assert.equal(server.heard.length, 1);
  server.open()[0]!.answer();
  await settled();
  server.open()[0]!.answer();
  await Promise.all(both);
});

test('parallel: all at once, but never more than ten', async () => {
  const { server, call, numbers } = await line({ order: 'parallel' });
  const all = Array.from({ length: 12 }, (_, n) => call('write', n));
  await settled();
  assert.equal(server.open().length, 10);
  server.heard[4]!.answer();
  await settled();
  assert.deepEqual([server.open().length, numbers().at(-1)], [10, 10]);
  while (server.open().length > 0) {
    for (const each of server.open()) each.answer();
    await settled();
  }
  await Promise.all(all);
  assert.equal(server.most(), 10);
});

test('only calls of tools wait: a ping, a list and a question are not held up', async () => {
  const { connection, server, call } = await line();
  const calling = call('write', 1);
  await connection.listTools();
  assert.match((await rejection(connection.request('ping'))).message, /no such method/); // it was asked
  server.open()[0]!.answer();
  await calling;
});

test('waiting in line takes nothing of the limit of a call', async () => {
  const server = heldServer();
  const { connection } = await open(
    { type: 'held' },
    { transports: { held: server.factory }, extensions: [inOrder], callTimeoutMs: 2 ** 30 },
  );
  const first = connection.callTool('write', { n: 1 });
  const second = connection.callTool('write', { n: 2 }, { timeoutMs: 50 });
  let isOver = false;
  void second.then(
    () => (isOver = true),
    () => (isOver = true),
  );
  await pause(150); // three times its limit
  assert.equal(isOver, false, 'it waits, and is not out of time');
  server.open()[0]!.answer();
  await first;
  const error = await rejection(second); // now it is sent, and its limit begins
  assert.deepEqual([error.kind, server.heard.length], ['timeout', 2]);
});

test('a call that waits can be cancelled: it is never sent, and those behind it move up', async () => {
  const { server, call, numbers, wire } = await line();
  const stop = new AbortController();
  const first = call('write', 1);
  const second = rejection(call('write', 2, stop.signal));
  const third = call('write', 3);
  await settled();
  stop.abort();
  const error = await second;
  assert.deepEqual([error.kind, /while it waited in line/.test(error.message)], ['aborted', true]);
  assert.ok(
    !JSON.stringify(wire).includes('notifications/cancelled'),
    'there is nothing to cancel on the wire',
  );
  server.open()[0]!.answer();
  await first;
  await until(() => server.open().length === 1);
  server.open()[0]!.answer();
  await third;
  assert.deepEqual(numbers(), [1, 3]);
  const late = await rejection(call('write', 4, stop.signal));
  assert.deepEqual([late.kind, server.heard.length], ['aborted', 2]);
});

test('a call that is cancelled when its turn has come gives its place back', async () => {
  const { server, call } = await line();
  const stop = new AbortController();
  const first = rejection(call('write', 1, stop.signal));
  const second = call('write', 2);
  await settled();
  stop.abort();
  assert.equal((await first).kind, 'aborted');
  await until(() => server.open().length === 1);
  server.open()[0]!.answer();
  await second;
});

test('closing the connection ends those that wait', async () => {
  const { connection, call } = await line();
  const all = [call('write', 1), call('write', 2), call('write', 3)].map(rejection);
  await settled();
  await connection.close();
  for (const error of await Promise.all(all)) assert.match(error.message, /closed by us/);
});

test('a server that dies: what waited was not sent, and goes to the next process', async () => {
  const extensions = [stayAlive({ pause: soon }), inOrder];
  const { server, call, numbers } = await line({}, { extensions });
  const first = rejection(call('write', 1));
  const others = [call('write', 2), call('write', 3)];
  await settled();
  await server.hangUp();
  assert.match((await first).message, /Whether tools\/call was carried out is not known/);
  for (const _ of others) {
    await until(() => server.open().some(({ args }) => args.n !== 1));
    server
      .open()
      .find(({ args }) => args.n !== 1)!
      .answer();
    await settled();
  }
  await Promise.all(others);
  assert.deepEqual([server.starts(), numbers().sort()], [2, [1, 2, 3]]);
});

test('without an extension that restarts it, those that waited learn that it is gone', async () => {
  const { server, call } = await line();
  const all = [call('write', 1), call('write', 2)].map(rejection);
  await settled();
  await server.hangUp();
  const [first, second] = await Promise.all(all);
  assert.equal(first.kind, 'closed');
  assert.deepEqual(
    [second.kind, /ended before this call was sent/.test(second.message)],
    ['unreachable', true],
  );
  assert.equal((await rejection(call('write', 3))).kind, 'closed');
});

test('an order that there is not: the server does not start, and the message names the three', async () => {
  for (const order of ['fast', 3, null]) {
    const server = heldServer();
    const failed = connect(
      { type: 'held', order },
      { transports: { held: server.factory }, extensions: [inOrder] },
    );
    const { kind, message } = await rejection(failed);
    assert.equal(kind, 'config');
    assert.match(message, /"demo": "order" is not one of serial, reads-parallel, parallel$/);
  }
});

test('a tool that fails, and one that is refused, free the line as well', async () => {
  const { server, connection, call } = await line({}, { extensions: [inOrder, ...inBothEras()] });
  const failed = call('write', 1);
  await until(() => server.open().length === 1);
  server.open()[0]!.answer('no', { isError: true });
  assert.equal((await failed).isError, true);
  const odd = rejection(connection.callTool('write', { n: 2 }));
  await until(() => server.open().length === 1);
  server.open()[0]!.answer('odd', { content: 7 });
  assert.equal((await odd).kind, 'protocol');
  const good = call('write', 3);
  await until(() => server.open().length === 1);
  server.open()[0]!.answer('good');
  assert.equal((await good).text, 'good');
});

// ─── In one answer of a model ─────────────────────────────────────────────────────────────────────────────────

/** An agent with servers of which the test decides when they answer. */
function answering(
  script: ReturnType<typeof calls>,
  entries: Record<string, Json>,
  more: Json = {},
) {
  const servers = Object.fromEntries(
    Object.keys(entries).map((name) => [name, heldServer(['write', READER])]),
  );
  const transports = Object.fromEntries(
    Object.entries(servers).map(([name, { factory }]) => [name, factory]),
  );
  const config = Object.fromEntries(
    Object.entries(entries).map(([name, entry]) => [name, { type: name, ...entry }]),
  );
  const manager = { transports, extensions: [inOrder] };
  return { ...prepareAgent({ script, servers: config, manager, gate: yes, ...more }), servers };
}

test('two slow servers are called side by side, and each one call after the other', async () => {
  const script = calls(
    ['mcp__a__write', { n: 1 }],
    ['mcp__a__write', { n: 2 }],
    ['mcp__b__write', { n: 3 }],
  );
  const {
    agent,
    servers: { a, b },
    results,
  } = answering(script, { a: {}, b: {} });
  const chatting = agent.chat('go');
  await until(() => a!.open().length + b!.open().length === 2, 'both work at the same time');
  await settled();
  assert.deepEqual([a!.heard.length, b!.heard.length], [1, 1]);
  b!.open()[0]!.answer('three');
  a!.open()[0]!.answer('one');
  await until(() => a!.heard.length === 2);
  a!.open()[0]!.answer('two');
  await chatting;
  assert.deepEqual(
    results().map(({ text }) => text),
    ['one', 'two', 'three'],
    'in the order of the calls',
  );
});

test('a question does not let the next call to the same server pass', async () => {
  const script = calls(
    ['mcp__a__write', { n: 1 }],
    ['mcp__a__look', { n: 2 }],
    ['mcp__b__write', { n: 3 }],
  );
  let allow = () => {};
  const asked = new Promise<void>((done) => (allow = done));
  const gate = async ({ definition: { name } }: { definition: { name: string } }) => {
    if (name === 'mcp__a__write') await asked;
    return { allowed: true as const };
  };
  const {
    agent,
    servers: { a, b },
  } = answering(script, { a: { order: 'reads-parallel' }, b: {} }, { gate } as any);
  const chatting = agent.chat('go');
  await until(() => b!.open().length === 1);
  await settled();
  assert.equal(a!.heard.length, 0, 'the look waits for the write, which waits for a person');
  allow();
  for (const server of [a!, a!, b!]) {
    await until(() => server.open().length > 0);
    server.open()[0]!.answer();
    await settled();
  }
  await chatting;
  assert.deepEqual(
    a!.heard.map(({ args }) => args.n),
    [1, 2],
  );
});

test('the entry decides: reads and parallel calls of one answer go out together', async () => {
  for (const [order, name] of [
    ['reads-parallel', 'look'],
    ['parallel', 'write'],
  ] as const) {
    const script = calls(...[1, 2, 3].map((n) => [`mcp__a__${name}`, { n }] as [string, Json]));
    const {
      agent,
      servers: { a },
    } = answering(script, { a: { order } });
    const chatting = agent.chat('go');
    await until(() => a!.open().length === 3, order);
    for (const each of a!.open()) each.answer();
    await chatting;
    await cleanUp();
  }
});

test('a tool of ours that changes something runs alone: after all before it, and before all behind it', async () => {
  const log: string[] = [];
  const own = (name: string, readOnly: boolean) =>
    row(name, async () => (log.push(name), saying(name)()), { readOnly });
  const script = calls(
    ['mcp__a__write', { n: 1 }],
    ['peek', {}],
    ['change', {}],
    ['mcp__a__write', { n: 2 }],
    ['peek', {}],
  );
  const {
    agent,
    servers: { a },
  } = answering(script, { a: {} }, { tools: [own('peek', true), own('change', false)] } as any);
  const chatting = agent.chat('go');
  await until(() => a!.open().length === 1);
  await settled();
  assert.deepEqual(log, ['peek'], 'the change waits for the server');
  a!.open()[0]!.answer();
  await until(() => a!.heard.length === 2);
  await settled();
  assert.deepEqual(log, ['peek', 'change', 'peek'], 'and what is behind it waited for the change');
  a!.open()[0]!.answer();
  await chatting;
});
