// Chapter 3: request, answer and notification differ by `id` and `method`.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { cleanUp, connect, habit, until } from './helpers.ts';

afterEach(cleanUp);

test('a notification has no id, and nobody answers it', async () => {
  const { connection, wire } = await connect(habit());
  await connection.notify('notifications/hello', { to: 'you' });
  await connection.request('ping');
  assert.deepEqual(wire.map(([direction, message]) => [direction, message.id, message.method]), [
    ['out', undefined, 'notifications/hello'],
    ['out', 1, 'ping'],
    ['in', 1, undefined],
  ]);
});

test('every message says jsonrpc 2.0, and a request has its own id', async () => {
  const { connection, wire } = await connect(habit());
  await Promise.all([connection.request('ping'), connection.request('ping'), connection.request('ping')]);
  const sent = wire.filter(([direction]) => direction === 'out').map(([, message]) => message);
  assert.ok(sent.every((message) => message.jsonrpc === '2.0'));
  assert.deepEqual(sent.map((message) => message.id), [1, 2, 3]);
});

test('fault 6: a request of the server is no answer of ours, though it has the same id', async () => {
  const { connection, wire } = await connect(habit());
  const lines = ['{"jsonrpc":"2.0","id":$ID,"method":"roots/list"}', '{"jsonrpc":"2.0","id":$ID,"result":{"real":true}}'];
  const result = await connection.request('tools/call', { name: 'raw', arguments: { lines } });
  assert.deepEqual(result, { real: true });
  await until(() => wire.filter(([direction, message]) => direction === 'out' && message.error).length === 1);
});

test('a notification whose id is null is still a notification', async () => {
  const seen: unknown[] = [];
  const { connection, wire } = await connect(habit(), { handlers: { 'notifications/x': (params) => seen.push(params) } });
  const lines = ['{"jsonrpc":"2.0","id":null,"method":"notifications/x","params":{"n":1}}', '{"jsonrpc":"2.0","id":$ID,"result":{}}'];
  await connection.request('tools/call', { name: 'raw', arguments: { lines } });
  assert.deepEqual(seen, [{ n: 1 }]);
  assert.equal(wire.filter(([direction]) => direction === 'out').length, 1);
});
