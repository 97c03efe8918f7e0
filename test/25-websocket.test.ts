// Chapter 25: a WebSocket by hand, against a server that can do everything wrong.

import assert from 'node:assert/strict';
import net, { type AddressInfo } from 'node:net';
import { afterEach, test } from 'node:test';
import { calculator } from '../chapters/25-other-pipes/calculator.ts';
import { encodeFrame, MessageReader } from '../chapters/25-other-pipes/frames.ts';
import { linkedPair } from '../chapters/25-other-pipes/in-process.ts';
import { WebSocketTransport } from '../chapters/25-other-pipes/websocket.ts';
import { cleanUp, connect, later, open, pause, rejection, until } from './help/basics.ts';
import { manage } from './help/manager.ts';
import { listen, note } from './help/transport-events.ts';
import {
  closing,
  frame,
  startWebSocketServer,
  switching,
  text,
  type Settings,
} from './help/websocket-server.ts';

afterEach(cleanUp);

/** A server and a client that has just connected to it. `send` is what the server sends. */
async function pipe({
  maxBytes = 2 ** 20,
  limits,
  ...settings
}: Settings & { maxBytes?: number; limits?: { connectMs: number; goodbyeMs: number } } = {}) {
  const server = await startWebSocketServer(settings);
  const transport = new WebSocketTransport(
    'demo',
    { type: 'ws', url: server.url },
    maxBytes,
    limits,
  );
  later(() => transport.close());
  const dropped: any[] = [];
  const told = await listen(transport, dropped);
  const socket = server.sockets[0]!;
  return {
    server,
    transport,
    told,
    dropped,
    socket,
    send: (...frames: Buffer[]) => void socket.write(Buffer.concat(frames)),
  };
}

const isGone = ({ sockets, closed }: Awaited<ReturnType<typeof startWebSocketServer>>) =>
  sockets.length === closed;

test('ws: the opening request is by the book, carries our headers, and has a new key each time', async () => {
  const server = await startWebSocketServer();
  for (let i = 0; i < 2; i++) {
    const config = {
      type: 'ws',
      url: `${server.url}?a=1#x`,
      headers: { Authorization: 'Bearer t', Upgrade: 'tea' },
    };
    const transport = new WebSocketTransport('demo', config, 1000);
    await listen(transport);
    await transport.close();
  }
  const [one, two] = server.requests.map(({ headers }) => headers);
  const { 'sec-websocket-key': key, host, ...rest } = one!;
  assert.deepEqual(rest, {
    authorization: 'Bearer t',
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-protocol': 'mcp',
  });
  assert.equal(Buffer.from(key!, 'base64').length, 16);
  assert.notEqual(key, two!['sec-websocket-key']);
  assert.deepEqual([server.requests[0]!.method, server.requests[0]!.url], ['GET', '/mcp?a=1']);
});

test('G19: ws: a configuration that cannot work, or shows a secret, is refused, with the reason', () => {
  const cases: [object, RegExp][] = [
    [{}, /"url" is not an address that begins with ws:\/\/ or wss:\/\//],
    [{ url: 'https://x.test' }, /begins with ws:/],
    [{ url: 'ws://' }, /begins with ws:\/\/ or wss:/],
    [{ url: 'ws://me:secret@x.test' }, /holds a password/],
    [{ url: 'ws://x.test', headers: { a: 'b\r\nc: d' } }, /"headers" is not a mapping/],
    [
      { url: 'ws://x.test', headers: { AUTHORIZATION: 'Bearer t' } },
      /ws:\/\/ would show it to everybody; use wss:\/\//,
    ],
    [
      { url: 'ws://x.test', headers: { 'X-Api-Key': 'k' } },
      /"x-api-key" holds a secret, and ws:\/\//,
    ],
    [{ url: 'ws://x.test/?token=k' }, /its "url" holds a secret, and ws:\/\/ .* use wss:\/\//],
  ];
  for (const [config, reason] of cases)
    assert.throws(
      () => new WebSocketTransport('demo', { ...config }, 1),
      (error: any) => {
        assert.match(error.message, reason);
        return error.kind === 'config' && error.message.startsWith('MCP server "demo": ');
      },
    );
  for (const url of ['wss://x.test', 'WS://localhost', 'ws://127.0.0.1:1', 'ws://[::1]:1'])
    new WebSocketTransport('demo', { url, headers: { authorization: 'Bearer t' } }, 1);
});

test('ws: a frame as the RFC prints it', () => {
  const key = Buffer.from([0x37, 0xfa, 0x21, 0x3d]);
  assert.equal(encodeFrame(1, Buffer.from('Hello'), key).toString('hex'), '818537fa213d7f9f4d5158');
});

/** The calculator behind the test's server, so that a whole connection can be seen to work. */
function calculate(server: Awaited<ReturnType<typeof startWebSocketServer>>): void {
  const [ours, theirs] = linkedPair();
  calculator(theirs);
  void ours.start({
    message: (message) => void server.sockets.at(-1)!.write(text(message)),
    closed() {},
  });
  server.onText = (said) => void ours.send(JSON.parse(said));
}

test('ws: a connection and a manager work over it; every frame is masked with a key of its own', async () => {
  const server = await startWebSocketServer();
  calculate(server);
  const options = {
    transports: { ws: (...given: [string, any, number]) => new WebSocketTransport(...given) },
  };
  const { connection, warnings } = await open({ type: 'ws', url: server.url }, options);
  assert.equal((await connection.callTool('add', { a: 2, b: 40 })).text, '42');
  const names = Array.from({ length: 50 }, (_, n) => `№ ${n}`);
  const greetings = await Promise.all(names.map((name) => connection.callTool('greet', { name })));
  assert.deepEqual(
    greetings.map((greeting) => greeting.text),
    names.map((name) => `Hello, ${name}!`),
  );
  assert.ok(server.heard.every(({ first, isMasked }) => first === 0x81 && isMasked));
  assert.equal(new Set(server.heard.map(({ key }) => key)).size, server.heard.length);
  assert.deepEqual(warnings, []);
  await connection.close();
  const { manager } = await manage({ calc: { type: 'ws', url: server.url } }, undefined, options);
  assert.equal((await manager.callTool('mcp__calc__add', { a: 2, b: 40 })).text, '42');
});

test('ws: frames of every length, in both directions', async () => {
  const { server, transport, told, send } = await pipe();
  const sizes = [100, 124, 125, 126, 127, 128, 65_534, 65_535, 65_536, 65_537, 200_000];
  const bare = JSON.stringify(note('', {})).length;
  for (const size of sizes) {
    await transport.send(note('é'.repeat((size - bare) / 2) + 'x'.repeat((size - bare) % 2), {}));
    send(frame(0x81, JSON.stringify('y'.repeat(size - 2))));
  }
  await until(() => server.heard.length === sizes.length && told.length === sizes.length);
  assert.deepEqual(
    server.heard.map(({ payload }) => payload.length),
    sizes,
  );
  assert.deepEqual(
    told.map((message) => message.length + 2),
    sizes,
  );
  for (const { payload } of server.heard) assert.match(JSON.parse(`${payload}`).method, /^é+x?$/);
});

test('ws: many frames in one piece, the first together with the handshake; and one frame byte by byte', async () => {
  const all = Buffer.concat([
    text({ n: 1 }),
    text({ n: 2 }),
    frame(0x89, 'hi'),
    frame(0x8a, 'unasked'),
    text({ n: 3 }),
  ]);
  const { server, told, socket } = await pipe({
    answer: (headers, _, socket) =>
      void socket.write(Buffer.concat([Buffer.from(switching(headers)), all])),
  });
  await until(() => told.length === 3 && server.heard.length === 1);
  socket.setNoDelay(true);
  for (const byte of Buffer.concat([all, frame(0x81, JSON.stringify({ n: 'x'.repeat(200) }))])) {
    socket.write(Buffer.from([byte]));
    await new Promise((done) => setImmediate(done)); // so that the bytes travel alone
  }
  await until(() => told.length === 7);
  assert.deepEqual(
    told.map(({ n }) => n),
    [1, 2, 3, 1, 2, 3, 'x'.repeat(200)],
  );
  assert.deepEqual(
    server.heard.map(({ first, payload }) => [first, `${payload}`]),
    [
      [0x8a, 'hi'],
      [0x8a, 'hi'],
    ],
  );
});

test('ws: a message in fragments, with a ping in its middle, and a character cut in two', async () => {
  const { server, told, send } = await pipe();
  const bytes = Buffer.from('{"fox":"🦊"}');
  send(
    frame(0x01, bytes.subarray(0, 9)),
    frame(0x89, 'are you there?'),
    frame(0x00),
    frame(0x00, bytes.subarray(9, 10)),
  );
  send(frame(0x8a), frame(0x80, bytes.subarray(10)), text({ n: 2 }));
  await until(() => told.length === 2);
  assert.deepEqual(told, [{ fox: '🦊' }, { n: 2 }]);
  await until(() => server.heard.length > 0);
  assert.deepEqual(
    server.heard.map(({ first, payload }) => [first, `${payload}`]),
    [[0x8a, 'are you there?']],
  );
});

test('ws: a message in a hundred thousand fragments, most of them empty', async () => {
  const { told, send } = await pipe();
  const json = JSON.stringify({ text: 'x'.repeat(10_000) });
  const pieces = Buffer.concat(
    [...json].flatMap((char, n) => [
      frame(n === 0 ? 0x01 : 0x00, char),
      ...Array(10).fill(frame(0)),
    ]),
  );
  send(pieces, frame(0x80));
  await until(() => told.length === 1);
  assert.deepEqual(told, [JSON.parse(json)]);
});

test('ws: a large message in tiny pieces does not take for ever', () => {
  const reader = new MessageReader(2 ** 25);
  const bytes = frame(0x81, 'x'.repeat(2 ** 24));
  const heard = [];
  for (let at = 0; at < bytes.length; at += 64)
    heard.push(...reader.read(bytes.subarray(at, at + 64)));
  assert.deepEqual(
    heard.map(({ payload }) => payload.equals(bytes.subarray(10))),
    [true],
  );
});

const ended = (kind: string, reason: RegExp, code: number) => ({ kind, reason, code });
const wrong = (reason: RegExp) => ended('protocol', reason, 1002);
const VIOLATIONS: [name: string, bytes: Buffer, expected: ReturnType<typeof ended>][] = [
  ['a masked frame', frame(0x81, '{}', { isMasked: true }), wrong(/sent a masked frame/)],
  ['the first reserved bit', frame(0xc1, '{}'), wrong(/reserved bits/)],
  ['the second reserved bit', frame(0xa1, '{}'), wrong(/reserved bits/)],
  ['the third reserved bit', frame(0x91, '{}'), wrong(/reserved bits/)],
  ['opcode 3', frame(0x83, '{}'), wrong(/frame of kind 3, which does not exist/)],
  ['opcode 7', frame(0x87, '{}'), wrong(/frame of kind 7/)],
  ['opcode 11', frame(0x8b, '{}'), wrong(/frame of kind 11/)],
  ['opcode 15', frame(0x8f, '{}'), wrong(/frame of kind 15/)],
  ['a long ping', frame(0x89, 'x'.repeat(126)), wrong(/control frame of more than 125 bytes/)],
  ['a ping in pieces', frame(0x09, 'x'), wrong(/control frame in pieces/)],
  ['a close in pieces', frame(0x08), wrong(/control frame in pieces/)],
  [
    'a continuation of nothing',
    frame(0x80, '{}'),
    wrong(/continued a message that it had not begun/),
  ],
  [
    'a second continuation',
    Buffer.concat([frame(0x01, '{'), frame(0x80, '}'), frame(0x80, '}')]),
    wrong(/had not begun/),
  ],
  [
    'a message in a message',
    Buffer.concat([frame(0x01, '{'), frame(0x81, '{}')]),
    wrong(/began a message within another/),
  ],
  ['a binary message', frame(0x82, '{}'), ended('protocol', /binary message/, 1003)],
  ['bad UTF-8', frame(0x81, Buffer.from([0x22, 0xff, 0x22])), ended('protocol', /not UTF-8/, 1007)],
  [
    'half a character',
    frame(0x81, Buffer.from('"é').subarray(0, 2)),
    ended('protocol', /not UTF-8/, 1007),
  ],
  [
    'a surrogate',
    frame(0x81, Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])),
    ended('protocol', /not UTF-8/, 1007),
  ],
  [
    'a message of 10^15 bytes',
    frame(0x81, '', { length: 1e15 }),
    ended('limit', /more than 1000 bytes/, 1009),
  ],
  [
    'a message of 1001 bytes',
    frame(0x81, '', { length: 1001 }),
    ended('limit', /more than 1000 bytes/, 1009),
  ],
  [
    'a fragment that is too much',
    Buffer.concat([frame(0x01, 'x'.repeat(600)), frame(0x00, '', { length: 401 })]),
    ended('limit', /more than 1000 bytes/, 1009),
  ],
  [
    'a length with its first bit set',
    Buffer.concat([Buffer.from([0x81, 127]), Buffer.alloc(8, 0xff)]),
    ended('limit', /more than/, 1009),
  ],
  ['a close of one byte', frame(0x88, 'x'), wrong(/closed with the code 0/)],
  ['close code 1005', closing(1005), wrong(/code 1005, which means nothing/)],
  ['close code 2000', closing(2000), wrong(/code 2000/)],
  [
    'a close whose reason is not UTF-8',
    frame(0x88, Buffer.from([3, 232, 0xff])),
    ended('protocol', /not UTF-8/, 1007),
  ],
];
for (const [name, bytes, { kind, reason, code }] of VIOLATIONS)
  test(`ws: ${name} ends the connection, and the server is told why`, async () => {
    const { server, transport, told, send } = await pipe({ maxBytes: 1000 });
    send(text({ n: 1 }), bytes, text({ n: 2 }), closing(1000));
    await until(() => isGone(server));
    assert.deepEqual(
      told.slice(0, -1).filter(({ n }) => n === 2),
      [],
      'what comes after it does not count',
    );
    assert.deepEqual(
      [told[0], told.length],
      [{ n: 1 }, 2 + Number(name === 'a second continuation')],
    );
    assert.match(told.at(-1).message, /^MCP server "demo" \(ws:\/\/127\.0\.0\.1:\d+\) /);
    assert.match(told.at(-1).message, reason);
    assert.equal(told.at(-1).kind, kind);
    assert.deepEqual(
      server.heard.map(({ first, payload }) => [first, payload.readUInt16BE()]),
      [[0x88, code]],
    );
    assert.equal(await rejection(transport.send(note('x'))), told.at(-1));
  });

test('ws: a message of just the limit is heard, whole or in fragments', async () => {
  const { told, send } = await pipe({ maxBytes: 1000 });
  const json = JSON.stringify('x'.repeat(998));
  send(
    frame(0x81, json),
    frame(0x01, json.slice(0, 500)),
    frame(0x89, 'y'.repeat(125)),
    frame(0x80, json.slice(500)),
  );
  await until(() => told.length === 2);
  assert.deepEqual(told, [JSON.parse(json), JSON.parse(json)]);
});

test('ws: what is not JSON goes on as text; a byte order mark is no part of a message', async () => {
  const { told, send } = await pipe();
  send(frame(0x81, 'hello'), frame(0x81, '\ufeff{"n":1}'), frame(0x81), frame(0x81, '7'));
  await until(() => told.length === 3);
  assert.deepEqual(told, ['hello', { n: 1 }, 7]); // and an empty one is nothing
});

test('ws: what is nested too deeply is reported and dropped, and the connection lives', async () => {
  const { told, dropped, send } = await pipe();
  send(
    frame(0x81, '['.repeat(501) + ']'.repeat(499)),
    frame(0x81, ' \n' + '['.repeat(501)),
    frame(0x81, '{"n":1}'),
  );
  await until(() => told.length === 1);
  assert.deepEqual([told, dropped.map(({ kind }) => kind)], [[{ n: 1 }], ['limit', 'limit']]);
  assert.match(
    dropped[0]!.message,
    /^MCP server "demo" \(ws:.*\) sent a message with more than 500 levels, which is dropped$/,
  );
});

test('ws: we close: the server hears it, nothing follows it, and the socket is gone when close() resolves', async () => {
  const { server, transport, told, socket, send } = await pipe({
    limits: { connectMs: 15_000, goodbyeMs: 60_000 },
  });
  server.isStubborn = true;
  const isDone = transport.close().then(() => 'done');
  await until(() => server.heard.length === 1);
  assert.deepEqual([server.heard[0]!.first, server.heard[0]!.payload.readUInt16BE()], [0x88, 1000]);
  assert.match((await rejection(transport.send(note('late')))).message, /was closed by us/);
  send(frame(0x89, 'still there?'), text({ n: 'on its way' }), closing(1000)); // and it waits for us to hang up
  await until(() => server.ended === 1);
  socket.end();
  assert.equal(await isDone, 'done');
  await transport.close();
  assert.deepEqual([told[0], told.length], [{ n: 'on its way' }, 2]);
  assert.deepEqual([told[1].kind, /was closed by us/.test(told[1].message)], ['closed', true]);
  assert.equal(server.heard.length, 1, 'no pong after our goodbye');
});

test('ws: a server that does not answer our goodbye, or does not even read it, is left all the same', async () => {
  for (const isReading of [true, false]) {
    const { server, transport, told, socket } = await pipe({
      limits: { connectMs: 15_000, goodbyeMs: 50 },
    });
    server.isStubborn = true;
    if (!isReading) socket.pause();
    const stuck = isReading
      ? undefined
      : rejection(transport.send(note('x', { text: 'x'.repeat(2 ** 25) })));
    await transport.close();
    assert.deepEqual([told.length, told[0].kind], [1, 'closed']);
    assert.equal((await stuck)?.kind, isReading ? undefined : 'closed');
    socket.destroy();
  }
});

test('ws: the server closes: its code and reason are told, and it gets its goodbye back', async () => {
  const cases: [Buffer, RegExp, number][] = [
    [closing(1001, 'going home'), /closed the connection \(1001: "going home"\)$/, 1001],
    [closing(4000), /closed the connection \(4000\)$/, 4000],
    [frame(0x88), /closed the connection \(1005\)$/, 1000],
  ];
  for (const [bytes, reason, code] of cases) {
    const { server, transport, told, send } = await pipe();
    send(text({ n: 1 }), bytes, text({ n: 2 }));
    await until(() => isGone(server));
    assert.deepEqual([told.length, told[0], told[1].kind], [2, { n: 1 }, 'closed']);
    assert.match(told[1].message, reason);
    assert.deepEqual(
      server.heard.map(({ first, payload }) => [first, payload.readUInt16BE()]),
      [[0x88, code]],
    );
    await transport.close();
  }
});

test('ws: a server that closes, or does wrong, and keeps the line open is hung up on', async () => {
  for (const bytes of [closing(1000), frame(0x83)]) {
    const { server, told, socket, send } = await pipe({
      limits: { connectMs: 15_000, goodbyeMs: 50 },
    });
    server.isStubborn = true;
    send(bytes);
    await until(() => server.ended === 1); // it does not end its own side
    assert.equal(told.length, 1);
    const flood = setInterval(() => socket.write(text({ n: 1 })), 5);
    later(() => clearInterval(flood));
    await until(() => isGone(server));
    assert.equal(told.length, 1);
  }
});

test('ws: a line that is cut, or ended without a goodbye, fails whoever waits, at once', async () => {
  for (const cut of ['destroy', 'resetAndDestroy', 'end'] as const) {
    const server = await startWebSocketServer();
    server.onText = () => server.sockets[0]![cut]();
    const options = {
      transports: { ws: (...given: [string, any, number]) => new WebSocketTransport(...given) },
    };
    const { connection } = await connect({ type: 'ws', url: server.url }, options);
    const why = await rejection(connection.request('ping'));
    assert.equal(why.kind, 'closed');
    assert.match(why.message, /^MCP server "demo" \(ws:.*\) broke off/);
    await connection.close();
    await until(() => isGone(server));
  }
});

test('ws: a server that ends its side while it does not read ours has ended', async () => {
  const { transport, told, socket } = await pipe({ limits: { connectMs: 15_000, goodbyeMs: 50 } });
  socket.pause();
  const stuck = rejection(transport.send(note('x', { text: 'x'.repeat(2 ** 25) })));
  socket.end();
  assert.equal(await stuck, told[0]);
  assert.match(told[0].message, /broke off$/);
});

test('ws: whatever else a server answers is an error that says what to do, and no connection stays', async () => {
  const cases: [status: string, headers: Record<string, string>, kind: string, reason: RegExp][] = [
    [
      '401 Unauthorized',
      { 'WWW-Authenticate': 'Bearer realm="x"' },
      'auth',
      /wants a login \(HTTP 401\); put a token into its "headers"/,
    ],
    ['403 Forbidden', {}, 'auth', /HTTP 403/],
    [
      '404 Not Found',
      {},
      'protocol',
      /answered HTTP 404 instead of opening a WebSocket; is its "url" right\?/,
    ],
    ['200 OK', { 'Content-Length': '1000000' }, 'protocol', /answered HTTP 200/],
    [
      '302 Found',
      { Location: 'ws://evil.test/' },
      'protocol',
      /sends us on to "ws:\/\/evil\.test\/"\. If that is right/,
    ],
    ['503 Service Unavailable', {}, 'unreachable', /HTTP 503/],
  ];
  for (const [status, headers, kind, reason] of cases) {
    const server = await startWebSocketServer({
      answer: (_, __, socket) => void socket.write(switching(headers, status)),
    });
    const transport = new WebSocketTransport('demo', { url: server.url }, 1000);
    const why = await rejection(listen(transport));
    assert.match(why.message, reason);
    assert.deepEqual(
      [why.kind, why.status],
      [kind, kind === 'auth' ? Number(status.slice(0, 3)) : undefined],
    );
    await until(() => isGone(server));
    await transport.close();
    assert.equal(await rejection(transport.send(note('x'))).then((error) => error.kind), 'closed');
  }
});

test('ws: an answer of 101 that is not to our question is refused', async () => {
  const cases: [change: Record<string, string>, reason: RegExp][] = [
    [
      { 'Sec-WebSocket-Accept': 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=' },
      /its Sec-WebSocket-Accept does not belong to our key/,
    ],
    [{ 'Sec-WebSocket-Accept': '' }, /Sec-WebSocket-Accept/],
    [{ Upgrade: 'h2c' }, /it switched to "h2c"/],
    [
      { 'Sec-WebSocket-Extensions': 'permessage-deflate' },
      /uses the extension "permessage-deflate", which we did not offer/,
    ],
    [{ 'Sec-WebSocket-Protocol': 'soap' }, /it speaks "soap" instead of "mcp"/],
  ];
  for (const [change, reason] of cases) {
    const server = await startWebSocketServer({
      answer: (headers, _, socket) => void socket.write(switching({ ...headers, ...change })),
    });
    const transport = new WebSocketTransport('demo', { url: server.url }, 1000);
    const why = await rejection(listen(transport));
    assert.equal(why.kind, 'protocol');
    assert.match(why.message, reason);
    await until(() => isGone(server));
    await transport.close();
  }
});

test('ws: a server that names no subprotocol, and writes its headers in its own way, is fine', async () => {
  const { told, send } = await pipe({
    answer: ({ 'Sec-WebSocket-Accept': accept }, _, socket) =>
      void socket.write(
        switching({
          UPGRADE: 'WebSocket',
          connection: 'keep-alive, Upgrade',
          'sec-websocket-accept': accept!,
        }),
      ),
  });
  send(text({ n: 1 }));
  await until(() => told.length === 1);
});

test('ws: nobody there, no HTTP there, and TLS where there is none', async () => {
  const free = await startWebSocketServer();
  await new Promise((done) => free.server.close(done));
  const nobody = await rejection(listen(new WebSocketTransport('demo', { url: free.url }, 1000)));
  assert.deepEqual(
    [nobody.kind, /nobody listens there/.test(nobody.message)],
    ['unreachable', true],
  );

  const first: number[] = [];
  const server = net.createServer((socket) => {
    socket
      .on('error', () => {})
      .on('data', ([byte]) => (first.push(byte!), socket.end('SSH-2.0-OpenSSH_9.9\r\n')));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  later(() => server.close());
  for (const scheme of ['ws', 'wss']) {
    const transport = new WebSocketTransport(
      'demo',
      { url: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}` },
      1000,
    );
    const why = await rejection(listen(transport));
    assert.deepEqual([why.kind, /cannot be reached: /.test(why.message)], ['unreachable', true]);
    await transport.close();
  }
  assert.deepEqual(first, [0x47, 0x16], 'the G of GET, and the beginning of a TLS handshake');
});

test('ws: a server that does not answer is given up after a while, and leaves no connection', async () => {
  const server = await startWebSocketServer({ answer: () => {} });
  const transport = new WebSocketTransport('demo', { url: server.url }, 1000, {
    connectMs: 50,
    goodbyeMs: 1000,
  });
  const why = await rejection(listen(transport));
  assert.deepEqual(
    [why.kind, /did not open a WebSocket within 0\.05 s/.test(why.message)],
    ['timeout', true],
  );
  await until(() => isGone(server));
  await transport.close();
});

test('ws: to close while it is connecting, or before, ends the attempt', async () => {
  const server = await startWebSocketServer({ answer: () => {} });
  for (const isEarly of [true, false]) {
    const limits = { connectMs: 600_000, goodbyeMs: 1000 };
    const transport = new WebSocketTransport('demo', { url: server.url }, 1000, limits);
    const why = rejection(listen(transport));
    if (!isEarly) await until(() => server.requests.length > 0); // else there is no socket yet
    await transport.close();
    assert.match((await why).message, /was closed by us/);
    await until(() => isGone(server));
  }
  const unused = new WebSocketTransport('demo', { url: server.url }, 1000);
  await unused.close();
  const before = server.sockets.length;
  assert.match((await rejection(listen(unused))).message, /was closed by us/);
  assert.equal(server.sockets.length, before);
});

test('ws: send waits for a slow reader', async () => {
  const { transport, socket } = await pipe();
  socket.removeAllListeners('data').pause();
  let isSent = false;
  const sending = transport
    .send(note('x', { text: 'x'.repeat(2 ** 25) }))
    .then(() => (isSent = true));
  await pause(100); // it would never be
  assert.equal(isSent, false);
  socket.resume();
  await sending;
});

test('ws: pings of a server that does not read do not pile up, and the last one is answered', async () => {
  const { server, transport, told, socket, send } = await pipe();
  socket.pause();
  const count = 200_000;
  const pings = (from: number) =>
    Buffer.concat(
      Array.from({ length: 10_000 }, (_, n) => frame(0x89, `${from + n}`.padStart(125))),
    );
  for (let from = 0; from < count; from += 10_000) send(pings(from));
  send(text({ n: 1 }));
  await until(() => told.length === 1);
  assert.ok((transport as any).socket.writableLength < 2 ** 20);
  socket.resume();
  await until(() => `${server.heard.at(-1)?.payload}`.trim() === `${count - 1}`);
  assert.ok(server.heard.length < count);
});
