// Chapter 25: a transport for servers that listen at a path, against servers that cut lines, break off and talk too much.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { UnixSocketTransport } from '../chapters/25-other-pipes/unix-socket.ts';
import type { Json, Message } from '../mcp.ts';
import {
  cleanUp,
  connect,
  folder,
  goodServer,
  later,
  open,
  pause,
  plugged,
  rejection,
  until,
} from './help/basics.ts';

afterEach(cleanUp);

const transports = {
  unix: (...given: [string, Json, number]) => new UnixSocketTransport(...given),
};
const ping: Message = { jsonrpc: '2.0', id: 1, method: 'ping' };

/** A server at a path of its own. `sockets` are those who came. */
async function serve(greet: (socket: Socket) => void, options = {}) {
  const path =
    process.platform === 'win32'
      ? String.raw`\\.\pipe\${folder().slice(-6)}`
      : join(folder(), 'a.sock');
  const sockets: Socket[] = [];
  const server = createServer(options, (socket) => {
    sockets.push(socket);
    greet(socket.on('error', () => {}));
  });
  await new Promise<void>((done) => server.listen(path, done));
  later(
    () => (
      sockets.forEach((socket) => socket.destroy()), new Promise((done) => server.close(done))
    ),
  );
  return { path, config: { type: 'unix', path }, sockets };
}

/** The server that is a process, behind a socket: the lines are the same. */
function calculator(socket: Socket): void {
  const child = spawn(process.execPath, [goodServer], { stdio: ['pipe', 'pipe', 'ignore'] });
  child.stdout.pipe(socket).pipe(child.stdin.on('error', () => {}));
}

/** Starts a transport, and writes down in one list what it tells. */
async function listen(config: Json, maxLineBytes = 2 ** 20) {
  const transport = new UnixSocketTransport('demo', config, maxLineBytes);
  const told: any[] = [];
  const dropped: any[] = [];
  await transport.start({
    message: (message) => told.push(message),
    dropped: (why) => dropped.push(why),
    closed: (why) => told.push(why),
  });
  later(() => transport.close());
  return { transport, told, dropped };
}

test('unix: a handshake and a call, and the server sees the end of its input when we leave', async () => {
  const { config, sockets } = await serve(calculator);
  const { connection, warnings } = await open(config, { transports });
  assert.equal((await connection.callTool('add', { a: 2, b: 40 })).text, '42');
  assert.equal(
    (await connection.callTool('greet', { name: 'Zoë \u2028' })).text,
    'Hello, Zoë \u2028!',
  );
  await connection.close();
  await until(() => sockets[0]!.closed);
  assert.deepEqual(warnings, []);
});

test('unix: where nobody listens, connect fails at once and says so', async () => {
  const path = join(folder(), 'nobody.sock');
  const why = await rejection(connect({ type: 'unix', path }, { transports }));
  assert.equal(why.kind, 'unreachable');
  assert.equal(
    why.message,
    `MCP server "demo" (${path}) cannot be reached: connect ENOENT ${path}; is it running?`,
  );
});

test('unix: a configuration without a path is refused', async () => {
  for (const path of [undefined, '', 5, 'a\0b']) {
    const why = await rejection(connect({ type: 'unix', path }, { transports }));
    assert.deepEqual(
      [why.kind, why.message],
      ['config', 'MCP server "demo": "path" is missing or is not a string'],
    );
  }
});

test('unix: pieces have nothing to do with lines; a character may be cut, and empty lines and noise do no harm', async () => {
  const { config, sockets } = await serve(() => {});
  const { told } = await listen(config);
  await until(() => sockets.length === 1);
  const bytes = Buffer.from('{"text":"Zoë"}\r\n\nhello\n{"n":1}\n{"n":2}\n{"half":');
  for (let at = 0; at < bytes.length; at += 3) {
    sockets[0]!.write(bytes.subarray(at, at + 3));
    await pause(1);
  }
  sockets[0]!.end();
  await until(() => told.length === 5);
  assert.deepEqual(told.slice(0, 4), [{ text: 'Zoë' }, 'hello', { n: 1 }, { n: 2 }]);
  assert.deepEqual(
    [told[4].kind, told[4].message],
    ['closed', `MCP server "demo" (${config.path}) broke off`],
  );
});

test('unix: a server that breaks off fails what waits, once, and every later call', async () => {
  const { config, sockets } = await serve((socket) => socket.on('data', () => socket.destroy()));
  const ends: Error[] = [];
  const { connection } = await connect(
    config,
    plugged({ closed: (why) => void ends.push(why) }, { transports }),
  );
  const waiting = [rejection(connection.request('a')), rejection(connection.request('b'))];
  const [first, second] = await Promise.all(waiting);
  assert.match(first.message, /broke off/);
  assert.deepEqual([second, await rejection(connection.request('c'))], [first, first]);
  await until(() => sockets[0]!.closed);
  assert.deepEqual(ends, [first]);
});

for (const [what, tail] of [
  ['whole', '\n{"late":true}\n'],
  ['endless', ''],
] as const)
  test(`unix: a line that is too long (${what}) ends the connection before it fills our memory, and nothing is heard after it`, async () => {
    const { config, sockets } = await serve((socket) =>
      socket.write(`{"fits":"${'x'.repeat(900)}"}\n${'x'.repeat(1100)}${tail}`),
    );
    const { transport, told } = await listen(config, 1000);
    await until(() => told.length === 2);
    assert.equal(told[0].fits.length, 900);
    assert.deepEqual(
      [told[1].kind, told[1].message],
      ['limit', `MCP server "demo" (${config.path}) sent a line of more than 1000 bytes`],
    );
    await until(() => sockets[0]!.closed);
    assert.equal(await rejection(transport.send(ping)), told[1]);
    assert.equal(told.length, 2);
  });

test('unix: a message that is nested too deeply is not parsed', async () => {
  const { config } = await serve((socket) =>
    socket.write('['.repeat(1000) + ']'.repeat(1000) + '\n{"n":1}\n'),
  );
  const { told, dropped } = await listen(config);
  await until(() => told.length === 1);
  assert.deepEqual(
    [told, dropped.length, /more than 500 levels/.test(dropped[0]!.message)],
    [[{ n: 1 }], 1, true],
  );
});

test('unix: a send resolves when it has left, so a server that does not read makes us wait; it rejects when it is lost', async () => {
  const { config, sockets } = await serve((socket) => socket.pause());
  const { transport } = await listen(config);
  let left = 0;
  const much = { jsonrpc: '2.0', method: 'much', params: { filler: 'x'.repeat(2 ** 20) } } as const;
  const sent = Array.from({ length: 8 }, () => transport.send(much).then(() => left++));
  const lost = Promise.all(sent.map(rejection));
  await pause(100);
  assert.equal(left, 0);
  sockets[0]!.destroy();
  for (const { kind, message } of await lost)
    assert.deepEqual([kind, /broke off/.test(message)], ['closed', true]);
});

test('unix: close says goodbye once, waits for the last words, and hangs up on a server that does not', async () => {
  const polite = await serve(
    (socket) => socket.on('end', () => socket.end('{"last":"words"}\n')).resume(),
    { allowHalfOpen: true },
  );
  const { transport, told } = await listen(polite.config);
  await Promise.all([transport.close(), transport.close()]);
  assert.deepEqual(
    [told.length, told[0], told[1].message],
    [2, { last: 'words' }, `MCP server "demo" (${polite.path}) was closed by us`],
  );
  assert.equal(await rejection(transport.send(ping)), told[1]);

  const deaf = await serve(() => {}, { allowHalfOpen: true });
  const other = await listen(deaf.config);
  const startedAt = Date.now();
  await other.transport.close();
  assert.ok(Date.now() - startedAt < 5000);
  assert.equal(other.told.length, 1);
});

test('unix: who has not started cannot send, and can be closed', async () => {
  const transport = new UnixSocketTransport('demo', { path: '/nowhere' }, 1000);
  assert.match((await rejection(transport.send(ping))).message, /is not connected/);
  await transport.close();
});
