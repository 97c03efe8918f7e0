// Chapter 6: every wait has an end; timers are cleared, late answers ignored, and giving up is said out loud.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import type { Json } from '../mcp.ts';
import { cleanUp, connect, habit, later, open, pause, rejection, run, until } from './helpers.ts';
import { McpConnection } from './subject.ts';

afterEach(cleanUp);

test('fault 4, B8: a call that gets no answer ends by its limit and is cancelled on the wire; its late answer is ignored', async () => {
  const { connection, wire, warnings } = await open(habit());
  const error = await rejection(connection.callTool('sleep', { ms: 400 }, { timeoutMs: 100 }));
  assert.equal(error.kind, 'timeout');
  assert.match(error.message, /"demo" did not answer tools\/call within \d+\.\d s/);
  await until(() => wire.some(([direction, message]) => direction === 'in' && message.id === 2));
  assert.deepEqual(warnings, []); // we asked for it once, so it is no mistake
  const received = JSON.parse((await connection.callTool('log')).text);
  assert.deepEqual(received.find((message: Json) => message.method === 'notifications/cancelled').params, {
    requestId: 2,
    reason: 'timeout',
  });
});

test('fault 4: an answer under the string "1" or in a shape nobody can match leaves the call to its limit', async () => {
  const { connection } = await connect(habit(), { callTimeoutMs: 100 });
  for (const line of ['{"jsonrpc":"2.0","id":"$ID","result":{}}', '{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}'])
    assert.equal((await rejection(connection.request('tools/call', { name: 'raw', arguments: { lines: [line] } }))).kind, 'timeout');
});

test('the handshake has its own limit, and `initialize` is never cancelled', async () => {
  const { connection, wire } = await connect(habit('mute'), { handshakeTimeoutMs: 100 });
  const error = await rejection(connection.initialize());
  assert.match(error.message, /did not answer initialize within \d+\.\d s/);
  assert.deepEqual(wire.map(([, message]) => message.method), ['initialize']);
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
  const { connection } = await open(habit());
  const controller = new AbortController();
  const call = rejection(connection.callTool('sleep', { ms: 1e8 }, { signal: controller.signal }));
  await connection.request('ping');
  controller.abort();
  assert.equal((await call).kind, 'aborted');
  const received = JSON.parse((await connection.callTool('log')).text);
  assert.deepEqual(received.find((message: Json) => message.method === 'notifications/cancelled').params.requestId, 2);
});

test('a call whose signal was aborted before is never sent; a signal that fires afterwards changes nothing', async () => {
  const { connection, wire } = await open(habit());
  const before = wire.length;
  assert.equal((await rejection(connection.callTool('echo', {}, { signal: AbortSignal.abort() }))).kind, 'aborted');
  assert.equal(wire.length, before);
  const controller = new AbortController();
  await connection.callTool('echo', {}, { signal: controller.signal });
  controller.abort();
  await connection.request('ping');
  assert.ok(!wire.some(([, message]) => message.method === 'notifications/cancelled'));
});

test('progress reaches the caller and starts the wait anew', async () => {
  const { connection, wire } = await open(habit());
  const seen: unknown[] = [];
  // Twelve steps of 100 ms are more than the limit of 600 ms, but no silence is.
  const options = { timeoutMs: 600, onProgress: (progress: Json) => seen.push(progress.progress) };
  const result = await connection.callTool('work', { everyMs: 100, times: 12 }, options);
  assert.equal(result.text, 'worked');
  assert.deepEqual(seen, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  const sent = wire.find(([direction, message]) => direction === 'out' && message.method === 'tools/call')![1];
  assert.equal(sent.params._meta.progressToken, sent.id);
});

test('fault 4, B8: progress without end does not keep a call for ever', async () => {
  const { connection } = await open(habit(), { maxCallMs: 700 });
  let steps = 0;
  const options = { timeoutMs: 300, onProgress: () => steps++ };
  const error = await rejection(connection.callTool('work', { everyMs: 20, times: 1e6 }, options));
  assert.equal(error.kind, 'timeout');
  assert.ok(steps > 1, 'there was progress');
});

test('progress that nobody asked for, or for somebody else, does nothing', async () => {
  const { connection } = await open(habit());
  for (const progressToken of [1, 2, '2', null, '__proto__', undefined])
    await connection.callTool('tell', { method: 'notifications/progress', params: { progressToken, progress: 1 } });
  assert.equal((await connection.callTool('echo')).text, '{}');
});

test('an onProgress that throws does not harm the call', async () => {
  const { connection, warnings } = await open(habit());
  const onProgress = () => {
    throw new Error('my mistake');
  };
  assert.equal((await connection.callTool('work', { everyMs: 1, times: 3 }, { onProgress })).text, 'worked');
  assert.match(warnings.join(), /our handler failed: my mistake/);
});

test('a limit longer than setTimeout can hold does not fire at once', async () => {
  const { connection } = await open(habit());
  for (const timeoutMs of [Infinity, 1e12]) assert.equal((await connection.callTool('sleep', { ms: 50 }, { timeoutMs })).text, 'slept 50');
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
  assert.deepEqual(limits({ handshakeTimeoutMs: undefined, callTimeoutMs: undefined }), [2000, 3000]);
  for (const [handshake, call] of [['soon', ''], ['-5', '0']]) {
    Object.assign(process.env, { MCP_TIMEOUT: handshake, MCP_TOOL_TIMEOUT: call });
    assert.deepEqual(limits(), [15_000, 60_000]);
  }
  assert.equal(new McpConnection('demo', {}, { maxLineBytes: undefined }).options.maxLineBytes, 64 * 2 ** 20);
});

test('timers are cleared: after its work a program ends by itself, long before its limits', async () => {
  const { code, output } = await run('short-program.ts').ended;
  assert.equal(code, 0, output);
  const { atEnd, atExit } = JSON.parse(output);
  assert.deepEqual(atEnd.filter((resource: string) => resource === 'Timeout'), []);
  assert.ok(atExit < 60_000, 'else it waited for a timer');
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
    await connection.request('x', { n }, { timeoutMs, signal: controller.signal }).then(() => settled[n]++, () => settled[n]++);
  });
  await Promise.all(calls);
  assert.deepEqual(settled, new Array(500).fill(1));
});

test('an async onProgress that fails does not harm the call either', async () => {
  const { connection, warnings } = await open(habit());
  const onProgress = (() => Promise.reject(new Error('my mistake'))) as () => void;
  assert.equal((await connection.callTool('work', { everyMs: 1, times: 3 }, { onProgress })).text, 'worked');
  await until(() => /our handler failed: my mistake/.test(warnings.join()));
});

test('one signal may end any number of calls', async () => {
  const told: string[] = [];
  const hear = (warning: Error) => told.push(warning.message);
  process.on('warning', hear);
  later(() => process.off('warning', hear));
  const { connection } = await open(habit());
  const controller = new AbortController();
  const calls = Array.from({ length: 50 }, () => rejection(connection.callTool('sleep', { ms: 1e8 }, { signal: controller.signal })));
  controller.abort();
  assert.ok((await Promise.all(calls)).every(({ kind }) => kind === 'aborted'));
  await pause(20);
  assert.deepEqual(told, []);
});

test('many limits at once: each call ends by its own, the earliest first, and those without one stay', async () => {
  const { connection } = await open(habit());
  const ended: number[] = [];
  const limits = [1200, 300, 750];
  const stays = connection.callTool('sleep', { ms: 1500 }, { timeoutMs: Infinity });
  await Promise.all(limits.map((timeoutMs) => rejection(connection.callTool('sleep', { ms: 1e8 }, { timeoutMs })).then(() => ended.push(timeoutMs))));
  assert.deepEqual(ended, [300, 750, 1200]);
  assert.equal((await stays).text, 'slept 1500');
});
