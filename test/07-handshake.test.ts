// Chapter 7: `initialize`, versions, capabilities, `initialized`.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { allGone, cleanUp, connect, folder, habit, later, open, rejection } from './helpers.ts';
import { McpConnection, McpError, REVISIONS, RpcError } from './subject.ts';

afterEach(cleanUp);

const answering = (result: unknown) => habit('version', JSON.stringify(result));

test('we offer the newest handshake revision, then say `initialized`, and nothing in between', async () => {
  const { connection, wire } = await open(habit(), { capabilities: { roots: {} } });
  await connection.request('ping');
  assert.deepEqual(wire.slice(0, 3).map(([direction, message]) => [direction, message.method, message.id]), [
    ['out', 'initialize', 1],
    ['in', undefined, 1],
    ['out', 'notifications/initialized', undefined],
  ]);
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
    const { connection } = await open(answering({ protocolVersion, capabilities: {}, serverInfo: { name: 'x', version: '1' } }));
    assert.equal(connection.server?.protocolVersion, protocolVersion);
  }
});

test('fault 8, B10: any other is refused, both sides are named, and the server is ended', async () => {
  for (const protocolVersion of ['9999-01-01', '2026-07-28', '', 42, null, undefined, ['2025-11-25']]) {
    const { connection, wire } = await connect(answering({ protocolVersion, capabilities: {}, serverInfo: {} }));
    const error = await rejection(connection.initialize());
    assert.ok(error instanceof McpError && error.kind === 'protocol', `${error}`);
    assert.ok(error.message.includes(JSON.stringify(protocolVersion) ?? 'nothing'), error.message);
    assert.ok(error.message.includes('2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05'), error.message);
    assert.deepEqual(wire.map(([, message]) => message.method), ['initialize', undefined], 'it is not told `initialized`');
  }
});

test('B10: the refused server is gone, though it ignores the end of its stdin', async () => {
  const file = join(folder(), 'pid');
  const server = `
    require('fs').writeFileSync(process.argv[1], String(process.pid));
    setInterval(() => {}, 1e9);
    process.stdin.once('data', () => console.log('{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"1999-01-01"}}'));`;
  const { connection } = await connect({ command: process.execPath, args: ['-e', server, file] });
  await rejection(connection.initialize());
  await allGone(file);
});

test('odd extras in the answer are left out, not fatal', async () => {
  const { connection } = await open(answering({ protocolVersion: '2025-06-18', capabilities: 'all', serverInfo: 7, instructions: { a: 1 }, extra: true }));
  assert.deepEqual(connection.server, { protocolVersion: '2025-06-18' });
});

test('a server that refuses to shake hands is an RpcError with its reason', async () => {
  const { connection } = await connect(habit('refuses-initialize'));
  const error = await rejection(connection.initialize());
  assert.ok(error instanceof RpcError);
  assert.match(error.message, /refused initialize: Not today\. \(-32600\)/);
});

test('fault 15: connecting twice is connecting once', async () => {
  const file = join(folder(), 'starts');
  const connection = new McpConnection('demo', habit('canary', file));
  later(() => connection.close());
  await Promise.all([connection.connect(), connection.connect()]);
  await connection.initialize();
  await connection.connect();
  await connection.request('ping');
  assert.equal(readFileSync(file, 'utf8'), 'started\n');
});

test('fault 15: closing twice, closing before connecting, calling before and after: each has a clear answer', async () => {
  const { connection } = await open(habit());
  await Promise.all([connection.close(), connection.close()]);
  await connection.close();
  assert.match((await rejection(connection.callTool('echo'))).message, /"demo" was closed by us/);
  assert.match((await rejection(connection.listTools())).message, /was closed by us/);
  assert.match((await rejection(connection.notify('x'))).message, /was closed by us/);

  const unused = new McpConnection('unused', habit());
  assert.match((await rejection(unused.request('ping'))).message, /"unused" is not connected; call connect\(\) first/);
  await unused.close();
  assert.match((await rejection(unused.connect())).message, /was closed by us/);
});

test('fault 14: a call that is pending when we close fails at once, it does not hang', async () => {
  const { connection } = await open(habit('stubborn'), { callTimeoutMs: 1e8 });
  const call = rejection(connection.callTool('sleep', { ms: 1e8 }));
  const closed = connection.close();
  let isClosed = false;
  void closed.then(() => (isClosed = true));
  assert.match((await call).message, /was closed by us/);
  assert.equal(isClosed, false, 'the caller does not wait for the goodbye');
  await closed;
});

test('closing while the handshake is under way ends it', async () => {
  const { connection } = await connect(habit('mute'), { handshakeTimeoutMs: 1e8 });
  const handshake = rejection(connection.initialize());
  await connection.close();
  assert.match((await handshake).message, /was closed by us/);
});

test('a type for which there is no transport is named, with those there are', async () => {
  for (const type of ['http', '__proto__', 'constructor']) {
    const error = await rejection(new McpConnection('demo', { type, url: 'http://127.0.0.1' }).connect());
    assert.match(error.message, new RegExp(`"demo" is of type "${type}", but we have transports only for stdio`));
  }
});

test('a server that asks much and never reads does not keep the handshake waiting', async () => {
  const server = `
    process.stdin.once('data', () => {
      process.stdin.pause();
      const question = JSON.stringify({ jsonrpc: '2.0', id: 'q', method: 'x'.repeat(1000) }) + '\\n';
      for (let i = 0; i < 900; i++) process.stdout.write(question);
      process.stdout.write('{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}\\n');
      setInterval(() => {}, 1e9);
    });`;
  const { connection } = await connect({ command: process.execPath, args: ['-e', server] });
  assert.equal((await connection.initialize()).protocolVersion, '2025-11-25');
});
