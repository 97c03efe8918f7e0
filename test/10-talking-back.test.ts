// Chapter 10: the server asks and tells.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import type { Json } from '../mcp.ts';
import { cleanUp, connect, habit, open, until } from './helpers.ts';
import { RpcError } from './subject.ts';

afterEach(cleanUp);

test('fault 5: ping is answered before the handshake, under ids like 0 and like our own', async () => {
  const { connection } = await connect(habit('asks-first'));
  await connection.initialize(); // the server answers only when it has its three pongs
});

test('fault 5: fifteen questions about roots that we never offered: −32601 each, and the list comes', async () => {
  const { connection, wire } = await open(habit('asks-for-roots'));
  assert.ok((await connection.listTools()).length > 0);
  const refusals = wire.filter(([direction, message]) => direction === 'out' && message.error?.code === -32601);
  assert.deepEqual(refusals.map(([, message]) => message.id), Array.from({ length: 15 }, (_, n) => n + 1));
});

test('B6: every uninvited request is refused once', async () => {
  const { connection } = await open(habit());
  for (const method of ['sampling/createMessage', 'elicitation/create', 'roots/list', 'toString', '__proto__', '']) {
    const answer = JSON.parse((await connection.callTool('ask', { id: `q-${method}`, method })).text);
    assert.deepEqual(answer.error, { code: -32601, message: `Method not found: ${method}` });
  }
  const received: Json[] = JSON.parse((await connection.callTool('log')).text);
  const answers = received.filter((message) => String(message.id).startsWith('q-'));
  assert.equal(answers.length, 6);
});

test('B6: of ten thousand requests in one go each is answered, or it is said that some were not', async () => {
  const { connection, warnings } = await open(habit('asks-without-end', '10000'));
  await connection.callTool('echo');
  const countAnswers = async () => {
    const received: Json[] = JSON.parse((await connection.callTool('log')).text);
    return received.filter((message) => String(message.id).startsWith('q')).length;
  };
  const answered = await countAnswers();
  assert.ok(answered > 0 && answered <= 10_000, `${answered}`);
  assert.ok(answered === 10_000 || warnings.some((warning) => /asks faster than it reads our answers/.test(warning)));
});

test('B6: requests of a server that never reads are dropped past a cap, and our memory stays bounded', async () => {
  const server = `
    process.stdout.write('x\\n');
    process.stdin.once('data', () => {
      process.stdin.pause();
      let n = 0;
      const more = () => {
        while (n < 100000) if (!process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id: 'q' + n++, method: 'y'.repeat(500) }) + '\\n')) return process.stdout.once('drain', more);
        process.stdout.write('{"jsonrpc":"2.0","id":1,"result":{}}\\n');
      };
      more();
      setInterval(() => {}, 1e9);
    });`;
  const { connection, wire, warnings } = await connect({ command: process.execPath, args: ['-e', server] });
  await connection.request('begin');
  assert.ok(warnings.some((warning) => /asks faster than it reads our answers/.test(warning)), `${warnings}`);
  const answers = wire.filter(([direction, message]) => direction === 'out' && message.error);
  assert.ok(answers.length < 10_000, `${answers.length} answers were queued`);
});

test('a handler answers a request; what it throws is the refusal', async () => {
  const { connection } = await open(habit(), {
    handlers: {
      'roots/list': async (params, { serverName }) => ({ roots: [], params, serverName }),
      'refuse/me': () => Promise.reject(new RpcError(-1, 'The user said no.', { by: 'Ada' })),
      'throw/nothing': () => Promise.reject(),
      'throw/text': () => Promise.reject('just text'),
      'answer/badly': () => ({ big: 10n }),
      'break/me': () => (undefined as any).oops,
      'say/nothing': () => undefined,
    },
  });
  const ask = async (method: string) => JSON.parse((await connection.callTool('ask', { id: method, method, params: { a: 1 } })).text);
  assert.deepEqual((await ask('roots/list')).result, { roots: [], params: { a: 1 }, serverName: 'demo' });
  assert.deepEqual((await ask('refuse/me')).error, { code: -1, message: 'The user said no.', data: { by: 'Ada' } });
  for (const method of ['break/me', 'throw/nothing', 'throw/text', 'answer/badly']) {
    const { error } = await ask(method);
    assert.deepEqual([error.code, typeof error.message], [-32603, 'string'], method);
  }
  assert.deepEqual((await ask('say/nothing')).result, {});
});

test('notifications reach their handler, in order; unknown ones are ignored; a handler that throws is reported', async () => {
  const seen: Json[] = [];
  const { connection, warnings } = await open(habit(), {
    handlers: {
      'notifications/message': (params) => seen.push(params),
      'notifications/broken': () => Promise.reject(new Error('my mistake')),
    },
  });
  for (const n of [1, 2, 3]) await connection.callTool('tell', { method: 'notifications/message', params: { n } });
  await connection.callTool('tell', { method: 'notifications/unheard' });
  await connection.callTool('tell', { method: 'notifications/broken' });
  assert.deepEqual(seen, [{ n: 1 }, { n: 2 }, { n: 3 }]);
  await until(() => warnings.length > 0);
  assert.deepEqual(warnings, ['MCP server "demo" sent notifications/broken, and our handler failed: my mistake']);
});

test('a ping in the middle of a call is answered while the call waits', async () => {
  const { connection, wire } = await open(habit());
  await connection.callTool('ask', { id: 'p', method: 'ping' });
  const order = wire.slice(-4).map(([direction, message]) => `${direction} ${message.method ?? message.id}`);
  assert.deepEqual(order, ['out tools/call', 'in ping', 'out p', 'in 2']);
});

test('three thousand notifications in one breath all arrive', async () => {
  let heard = 0;
  const { connection } = await open(habit(), { handlers: { 'notifications/x': () => void heard++ } });
  const lines = [Array.from({ length: 3000 }, () => '{"jsonrpc":"2.0","method":"notifications/x"}').join('\n'), '{"jsonrpc":"2.0","id":$ID,"result":{}}'];
  await connection.request('tools/call', { name: 'raw', arguments: { lines } });
  assert.equal(heard, 3000);
});
