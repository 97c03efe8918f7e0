// Chapter 7: `initialize`, versions, capabilities, `initialized`.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import {
  call,
  cleanUp,
  connect,
  folder,
  habit,
  later,
  open,
  plugged,
  rejection,
} from './help/basics.ts';
import { McpConnection, McpError, REVISIONS, RpcError } from './help/subject.ts';

afterEach(cleanUp);

const answering = (result: unknown) => habit('version', JSON.stringify(result));

test('we offer the newest handshake revision, then say `initialized`, and nothing in between', async () => {
  const { connection, wire } = await open(habit(), plugged({ capabilities: { roots: {} } }));
  await connection.request('ping');
  assert.deepEqual(
    wire.slice(0, 3).map(([direction, message]) => [direction, message.method, message.id]),
    [
      ['out', 'initialize', 1],
      ['in', undefined, 1],
      ['out', 'notifications/initialized', undefined],
    ],
  );
  const { protocolVersion, capabilities, clientInfo } = wire[0]![1].params;
  assert.deepEqual([protocolVersion, capabilities], ['2025-11-25', { roots: {} }]);
  assert.deepEqual(Object.keys(clientInfo), ['name', 'version']);
});

test('what the server says of itself is kept', async () => {
  const { connection } = await open(habit());
  assert.deepEqual(connection.server, {
    protocolVersion: '2025-11-25',
    capabilities: { tools: { listChanged: true } },
    serverInfo: { name: 'habits', version: '1.0.0' },
    instructions: 'Be careful.',
  });
});

test('fault 8: every handshake revision is accepted', async () => {
  assert.deepEqual(REVISIONS, ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']);
  for (const protocolVersion of REVISIONS) {
    const { connection } = await open(
      answering({ protocolVersion, capabilities: {}, serverInfo: { name: 'x', version: '1' } }),
    );
    assert.equal(connection.server?.protocolVersion, protocolVersion);
  }
});

test('fault 8, B10: any other is refused, and both sides are named', async () => {
  for (const protocolVersion of [
    '9999-01-01',
    '2026-07-28',
    '',
    42,
    null,
    undefined,
    ['2025-11-25'],
  ]) {
    const { connection, wire } = await connect(
      answering({ protocolVersion, capabilities: {}, serverInfo: {} }),
    );
    const error = await rejection(connection.initialize());
    assert.ok(error instanceof McpError && error.kind === 'protocol', `${error}`);
    assert.ok(error.message.includes(JSON.stringify(protocolVersion) ?? 'nothing'), error.message);
    assert.ok(
      error.message.includes('2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05'),
      error.message,
    );
    assert.deepEqual(
      wire.map(([, message]) => message.method),
      ['initialize', undefined],
      'it is not told `initialized`',
    );
  }
});

test('odd extras in the answer are left out, not fatal', async () => {
  const { connection } = await open(
    answering({
      protocolVersion: '2025-06-18',
      capabilities: 'all',
      serverInfo: 7,
      instructions: { a: 1 },
      extra: true,
    }),
  );
  assert.deepEqual(connection.server, { protocolVersion: '2025-06-18' });
});

test('a server that refuses to shake hands is an RpcError with its reason', async () => {
  const { connection } = await connect(habit('refuses-initialize'));
  const error = await rejection(connection.initialize());
  assert.ok(error instanceof RpcError);
  assert.match(error.message, /refused initialize: Not today\. \(-32600\)/);
});

test('the handshake has its own limit, and `initialize` is never cancelled', async () => {
  const { connection, wire } = await connect(habit('mute'), { handshakeTimeoutMs: 100 });
  const error = await rejection(connection.initialize());
  assert.match(error.message, /did not answer initialize within 0\.1 s/);
  assert.deepEqual(
    wire.map(([, message]) => message.method),
    ['initialize'],
  );
});

test('death right after the handshake', async () => {
  const { connection } = await connect(habit('dies-after-handshake'), {
    handshakeTimeoutMs: 1e8,
    callTimeoutMs: 1e8,
  });
  const error = await rejection(
    connection.initialize().then(() => connection.request('tools/list')),
  );
  assert.match(error.message, /exited with code 4/);
});

test('fault 15: connecting twice is connecting once', async () => {
  const file = join(folder(), 'starts');
  const connection = new McpConnection('demo', habit('canary', file));
  later(() => connection.close?.());
  await Promise.all([connection.connect(), connection.connect()]);
  await connection.initialize();
  await connection.connect();
  await connection.request('ping');
  assert.equal(readFileSync(file, 'utf8'), 'started\n');
});

test('B4: a batch counts in revision 2025-03-26 and in no other; elsewhere it is noise and the call ends by its limit', async () => {
  const spoken = await open(habit('batches', '2025-03-26'));
  assert.equal(await call(spoken.connection, 'echo', { n: 1 }), '{"n":1}');
  const unspoken = await open(habit('batches', '2025-11-25'), { callTimeoutMs: 300 });
  assert.equal((await rejection(call(unspoken.connection, 'echo', { n: 1 }))).kind, 'timeout');
  assert.match(unspoken.warnings.join(), /something other than messages/);
});
