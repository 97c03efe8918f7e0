// Chapter 6: every wait has an end; timers are cleared, late answers ignored, and giving up is said out loud.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import type { Json } from '../mcp.ts';
import {
  call,
  cleanUp,
  connect,
  habit,
  later,
  pause,
  rejection,
  run,
  until,
} from './help/basics.ts';
import { McpConnection } from './help/subject.ts';

afterEach(cleanUp);

test('fault 4, B8: a call that gets no answer ends by its limit and is cancelled on the wire; its late answer is ignored', async () => {
  const { connection, wire, warnings } = await connect(habit());
  const error = await rejection(call(connection, 'sleep', { ms: 400 }, { timeoutMs: 100 }));
  assert.equal(error.kind, 'timeout');
  assert.match(error.message, /"demo" did not answer tools\/call within 0\.1 s/);
  await until(() => wire.some(([direction, message]) => direction === 'in' && message.id === 1));
  assert.deepEqual(warnings, []); // we asked for it once, so it is no mistake
  const received = JSON.parse(await call(connection, 'log'));
  assert.deepEqual(
    received.find((message: Json) => message.method === 'notifications/cancelled').params,
    {
      requestId: 1,
      reason: 'timeout',
    },
  );
});

test('fault 4: an answer under another id, or under none, leaves the call to its limit', async () => {
  const { connection } = await connect(habit(), { callTimeoutMs: 100 });
  for (const line of [
    '{"jsonrpc":"2.0","id":"0$ID","result":{}}', // "1" is taken since chapter 4, "01" is not
    '{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}',
  ])
    assert.equal(
      (
        await rejection(
          connection.request('tools/call', { name: 'raw', arguments: { lines: [line] } }),
        )
      ).kind,
      'timeout',
    );
});

test('a time-out quotes what the server last wrote to stderr', async () => {
  const { connection } = await connect({
    command: process.execPath,
    args: ['-e', `console.error('waiting for the database'); process.stdin.resume()`],
  });
  const error = await rejection(connection.request('initialize', {}, { timeoutMs: 2000 }));
  assert.match(error.message, /Its last words:\n {2}waiting for the database/);
});

test('an AbortSignal ends the call, and the server is told', async () => {
  const { connection } = await connect(habit());
  const controller = new AbortController();
  const sleep = rejection(call(connection, 'sleep', { ms: 1e8 }, { signal: controller.signal }));
  await connection.request('ping');
  controller.abort();
  assert.equal((await sleep).kind, 'aborted');
  const received = JSON.parse(await call(connection, 'log'));
  assert.deepEqual(
    received.find((message: Json) => message.method === 'notifications/cancelled').params.requestId,
    1,
  );
});

test('a call whose signal was aborted before is never sent; a signal that fires afterwards changes nothing', async () => {
  const { connection, wire } = await connect(habit());
  const before = wire.length;
  assert.equal(
    (await rejection(call(connection, 'echo', {}, { signal: AbortSignal.abort() }))).kind,
    'aborted',
  );
  assert.equal(wire.length, before);
  const controller = new AbortController();
  await call(connection, 'echo', {}, { signal: controller.signal });
  controller.abort();
  await connection.request('ping');
  assert.ok(!wire.some(([, message]) => message.method === 'notifications/cancelled'));
});

test('a limit longer than setTimeout can hold does not fire at once', async () => {
  const { connection } = await connect(habit());
  for (const timeoutMs of [Infinity, 1e12])
    assert.equal(await call(connection, 'sleep', { ms: 50 }, { timeoutMs }), 'slept 50');
});

test('MCP_TIMEOUT and MCP_TOOL_TIMEOUT set the limits; an option beats them, and nonsense counts for nothing', () => {
  later(() => (delete process.env.MCP_TIMEOUT, delete process.env.MCP_TOOL_TIMEOUT));
  const limits = (options = {}) => {
    const { handshakeTimeoutMs, callTimeoutMs } = new McpConnection('demo', {}, options).options;
    return [handshakeTimeoutMs, callTimeoutMs];
  };
  assert.deepEqual(limits(), [15_000, 60_000]);
  Object.assign(process.env, { MCP_TIMEOUT: '2000', MCP_TOOL_TIMEOUT: '3000' });
  assert.deepEqual(limits(), [2000, 3000]);
  assert.deepEqual(limits({ handshakeTimeoutMs: 5, callTimeoutMs: 6 }), [5, 6]);
  assert.deepEqual(
    limits({ handshakeTimeoutMs: undefined, callTimeoutMs: undefined }),
    [2000, 3000],
  );
  for (const [handshake, call] of [
    ['soon', ''],
    ['-5', '0'],
  ]) {
    Object.assign(process.env, { MCP_TIMEOUT: handshake, MCP_TOOL_TIMEOUT: call });
    assert.deepEqual(limits(), [15_000, 60_000]);
  }
  assert.equal(
    new McpConnection('demo', {}, { maxLineBytes: undefined }).options.maxLineBytes,
    64 * 2 ** 20,
  );
});

test('a timer while calls wait and none otherwise: after its work a program ends long before its limits', async () => {
  const { code, output } = await run('short-program.ts').ended;
  assert.equal(code, 0, output);
  const { livedMs, ...timers } = JSON.parse(output);
  const during = 'bun' in process.versions ? 0 : 1; // Bun lists no timers
  assert.deepEqual(timers, { between: 0, during, after: 0 });
  assert.ok(livedMs < 60_000, 'else it waited for a timer');
});

test('every request settles exactly once, whatever the server does', async () => {
  // A server that answers at random: never, twice, late, wrongly, with an error, and dies in the end.
  const server = `
    let seed = 42;
    const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
    const say = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');
    process.stdin.setEncoding('utf8').on('data', (text) => {
      for (const { id } of text.trim().split('\\n').map((line) => JSON.parse(line))) {
        if (id === undefined) continue;
        const way = Math.floor(random() * 7);
        if (way === 0) say({ id, result: {} });
        if (way === 1) { say({ id, result: {} }); say({ id, result: {} }); say({ id, error: { code: 1, message: 'x' } }); }
        if (way === 2) setTimeout(() => say({ id, result: {} }), random() * 200);
        if (way === 3) say({ id: String(id), result: {} });
        if (way === 4) say({ id, error: { code: 1, message: 'no' } });
        if (way === 5) say({ id });
      }
    });
    setTimeout(() => process.exit(9), 1500);`;
  const { connection } = await connect({ command: process.execPath, args: ['-e', server] });
  const settled = new Array(500).fill(0);
  const calls = settled.map(async (_, n) => {
    const controller = new AbortController();
    if (n % 5 === 0) setTimeout(() => controller.abort(), n % 100);
    const timeoutMs = n % 2 ? 50 + (n % 200) : 1e8;
    await connection.request('x', { n }, { timeoutMs, signal: controller.signal }).then(
      () => settled[n]++,
      () => settled[n]++,
    );
  });
  await Promise.all(calls);
  assert.deepEqual(settled, new Array(500).fill(1));
});

test('one signal may end any number of calls', async () => {
  const told: string[] = [];
  const hear = (warning: Error) => told.push(warning.message);
  process.on('warning', hear);
  later(() => process.off('warning', hear));
  const { connection } = await connect(habit());
  const controller = new AbortController();
  const calls = Array.from({ length: 50 }, () =>
    rejection(call(connection, 'sleep', { ms: 1e8 }, { signal: controller.signal })),
  );
  controller.abort();
  assert.ok((await Promise.all(calls)).every(({ kind }) => kind === 'aborted'));
  await pause(20);
  assert.deepEqual(told, []);
});

test('many limits at once: each call ends by its own, the earliest first, and those without one stay', async () => {
  const { connection } = await connect(habit());
  const ended: number[] = [];
  const limits = [1200, 300, 750];
  const stays = call(connection, 'sleep', { ms: 1500 }, { timeoutMs: Infinity });
  await Promise.all(
    limits.map((timeoutMs) =>
      rejection(call(connection, 'sleep', { ms: 1e8 }, { timeoutMs })).then(() =>
        ended.push(timeoutMs),
      ),
    ),
  );
  assert.deepEqual(ended, [300, 750, 1200]);
  assert.equal(await stays, 'slept 1500');
});

test('a call without a limit does not switch off the limits of the others', async () => {
  const { connection } = await connect(habit());
  const limited = rejection(call(connection, 'sleep', { ms: 1e8 }, { timeoutMs: 300 }));
  const endless = call(connection, 'sleep', { ms: 1000 }, { timeoutMs: Infinity });
  assert.equal((await limited).kind, 'timeout');
  const again = rejection(call(connection, 'sleep', { ms: 1e8 }, { timeoutMs: 200 })); // and after it has rung
  assert.equal((await again).kind, 'timeout');
  assert.equal(await endless, 'slept 1000');
});
