// Chapter 3: request, answer and notification differ by `id` and `method`.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { cleanUp, connect, habit, rejection, until } from './help/basics.ts';
import { McpConnection } from './help/subject.ts';

afterEach(cleanUp);

/** A server that says these lines and then waits. */
const saying = (...lines: string[]) => ({
  command: process.execPath,
  args: ['-e', `console.log(${JSON.stringify(lines.join('\n'))}); process.stdin.resume()`],
});

test('what we tell a server has a method and no id', async () => {
  const { connection, wire, warnings } = await connect(habit('bounces')); // so we hear it ourselves
  await connection.notify('notifications/hello', { to: 'you' });
  await until(() => wire.length === 2);
  const hello = { jsonrpc: '2.0', method: 'notifications/hello', params: { to: 'you' } };
  assert.deepEqual(wire, [
    ['out', hello],
    ['in', hello],
  ]);
  assert.deepEqual(warnings, []);
});

test('`method` tells a request and a notification from an answer, whatever the id is', async () => {
  const { warnings } = await connect(
    saying(
      '{"jsonrpc":"2.0","id":1,"method":"roots/list"}',
      '{"jsonrpc":"2.0","method":"notifications/x"}',
      '{"jsonrpc":"2.0","id":null,"method":"notifications/x"}',
      '{"jsonrpc":"2.0","id":1,"result":{"late":true}}',
    ),
  );
  await until(() => warnings.length > 0);
  assert.deepEqual(warnings, [
    'MCP server "demo" sent an answer that no call is waiting for: {"jsonrpc":"2.0","id":1,"result":{"late":true}}',
  ]);
});

test('what is no message at all is reported once, and shown in part', async () => {
  const { wire, warnings } = await connect(
    saying(
      'x'.repeat(1000),
      '42',
      'null',
      '[]',
      '{"id":1,"result":{}}',
      '{"jsonrpc":"1.0","method":"x"}',
    ),
  );
  await until(() => wire.length === 6);
  assert.deepEqual(warnings, [
    `MCP server "demo" sends something other than messages: "${'x'.repeat(199)}…`,
  ]);
});

test('before connect() there is nobody to tell', async () => {
  const error = await rejection(new McpConnection('demo', habit()).notify('notifications/hello'));
  assert.equal(
    `${error.kind}: ${error.message}`,
    'closed: MCP server "demo" is not connected; call connect() first',
  );
});
