// Chapter 25: a server in our own process, and a WebSocket by hand against a server that can do everything wrong.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import http, { type IncomingMessage } from 'node:http';
import net, { type AddressInfo, type Socket } from 'node:net';
import { afterEach, test } from 'node:test';
import { calculator } from '../chapters/25-other-pipes/calculator.ts';
import { encodeFrame, MessageReader } from '../chapters/25-other-pipes/frames.ts';
import { builtIn, inProcess, linkedPair, withBuiltIns } from '../chapters/25-other-pipes/in-process.ts';
import { WebSocketTransport } from '../chapters/25-other-pipes/websocket.ts';
import { inBothEras } from '../chapters/22-no-handshake/era.ts';
import { loadEntries, REVISIONS, toolLabel, type Message, type Transport } from '../mcp.ts';
import { cleanUp, connect, goodServer, later, open, pause, rejection, until } from './helpers.ts';
import { manage, prepare } from './manage.ts';

afterEach(cleanUp);

const note = (method: string, params?: Message['params']): Message => ({ jsonrpc: '2.0', method, params });

/** Starts a transport, and writes down in one list what it tells. */
async function listen(transport: Transport, dropped: any[] = []) {
  const told: any[] = [];
  await transport.start({ message: (message) => told.push(message), dropped: (why) => dropped.push(why), closed: (why) => told.push(why) });
  return told;
}

// ─── In-process ───────────────────────────────────────────────────────────────────────────────────────────────

test('pair: what one end sends, the other receives: in a microtask, in order, and as a copy', async () => {
  const [ours, theirs] = linkedPair();
  const [heard, said] = [await listen(theirs), await listen(ours)];
  const first = note('a', { list: [1], nothing: undefined });
  const sent = [ours.send(first), ours.send(note('b')), theirs.send(note('c'))];
  (first.params!.list as number[]).push(2); // too late
  assert.deepEqual([heard, said], [[], []], 'nothing arrives within send()');
  await Promise.resolve();
  assert.deepEqual(heard, [{ jsonrpc: '2.0', method: 'a', params: { list: [1] } }, { jsonrpc: '2.0', method: 'b' }]);
  assert.deepEqual(said, [{ jsonrpc: '2.0', method: 'c' }]);
  assert.deepEqual(await Promise.all(sent), [undefined, undefined, undefined]);
});

test('pair: what comes before anybody listens is kept; who has not started cannot send', async () => {
  const [ours, theirs] = linkedPair();
  assert.match((await rejection(ours.send(note('x')))).message, /call start\(\) first/);
  await listen(ours);
  for (const name of ['a', 'b', 'c']) await ours.send(note(name));
  const heard = await listen(theirs);
  await until(() => heard.length === 3);
  await ours.send(note('d'));
  assert.deepEqual(heard.map(({ method }) => method), ['a', 'b', 'c', 'd']);
});

test('pair: to close one end is to close both; each is told once, after what was said before', async () => {
  const [ours, theirs] = linkedPair('MCP server "demo"');
  const [said, heard] = [await listen(ours), await listen(theirs)];
  void ours.send(note('last words'));
  void theirs.send(note('theirs'));
  const closing = ours.close();
  const late = await Promise.all([rejection(ours.send(note('late'))), rejection(theirs.send(note('late')))]);
  await Promise.all([closing, ours.close(), theirs.close()]);
  await pause(1);
  for (const [told, method] of [[said, 'theirs'], [heard, 'last words']] as const) {
    assert.equal(told.length, 2);
    assert.equal(told[0].method, method);
    assert.deepEqual([told[1].kind, told[1].message], ['closed', 'MCP server "demo" was closed']);
  }
  assert.deepEqual(late, [said[1], heard[1]]);
  assert.equal(await rejection(ours.send(note('later'))), said[1]);
});

test('pair: when close() has resolved both ends know; an end that starts later is refused', async () => {
  const [ours, theirs] = linkedPair();
  const said = await listen(ours);
  await theirs.close();
  assert.equal(said.length, 1);
  assert.equal(await rejection(listen(theirs)).then(({ kind }) => kind), 'closed');
});

test('pair: a receiver that closes in the middle of its messages gets those that were on their way, then the end', async () => {
  const [ours, theirs] = linkedPair();
  const told: unknown[] = [];
  await theirs.start({ message: () => (told.push('message'), void theirs.close()), closed: () => told.push('closed') });
  await listen(ours);
  await Promise.all([ours.send(note('a')), ours.send(note('b'))]);
  await pause(1);
  assert.deepEqual(told, ['message', 'message', 'closed']);
  await assert.rejects(ours.send(note('c')));
});

test('pair: a receiver that throws loses its pipe, and does not take the program along', async () => {
  const crash = (transport: Transport) => void transport.start({ message: () => { throw new Error('out of fuel'); }, closed() {} });
  const { connection } = await connect({ type: 'toy' }, { transports: { toy: builtIn(crash) } });
  const why = await rejection(connection.request('ping'));
  assert.match(why.message, /^MCP server "demo" \(built in\) was closed after a mistake of this program: out of fuel$/);
});

test('built in: a server that cannot start fails connect', async () => {
  const toy = builtIn(() => { throw new Error('no fuel'); });
  const why = await rejection(connect({ type: 'toy' }, { transports: { toy } }));
  assert.match(why.message, /MCP server "demo" could not be started: no fuel/);
});

const transports = { 'in-process': inProcess({ calculator }) };
const calculatorConfig = { type: 'in-process', name: 'calculator' };

test('calculator: the same tools and answers as the server that is a process', async () => {
  const program = await open({ command: process.execPath, args: [goodServer] });
  const ours = await open(calculatorConfig, { transports });
  const tell = async ({ connection }: typeof ours) => {
    const calls = [['add', { a: 2, b: 40 }], ['add', { a: '2', b: 1 }], ['greet', { name: 'Ada' }], ['greet', {}]] as const;
    const results = [];
    for (const [name, args] of calls) results.push(await connection.callTool(name, args));
    const refusals = [await rejection(connection.callTool('sing')), await rejection(connection.request('resources/list'))];
    const refused = refusals.map(({ code, message }) => [code, message]);
    return [connection.server, await connection.listTools(), await connection.request('ping'), results, refused];
  };
  assert.deepEqual(await tell(ours), await tell(program));
  assert.deepEqual(ours.warnings, []);
});

test('calculator: it speaks every revision with a handshake, and the one without', async () => {
  for (const protocolVersion of [...REVISIONS, '1999-01-01']) {
    const { connection } = await connect(calculatorConfig, { transports });
    const answer = await connection.request('initialize', { protocolVersion });
    assert.equal(answer.protocolVersion, REVISIONS.includes(protocolVersion) ? protocolVersion : REVISIONS[0]);
  }
  const { connection, wire, warnings } = await open(calculatorConfig, { transports, extensions: inBothEras() });
  assert.deepEqual([connection.server!.protocolVersion, connection.server!.serverInfo!.name], ['2026-07-28', 'calculator-and-greeter']);
  assert.deepEqual((await connection.listTools()).map(({ name }) => name), ['add', 'greet']);
  assert.equal((await connection.callTool('add', { a: 2, b: 40 })).text, '42');
  assert.ok(wire.every(([direction, { result }]) => direction === 'out' || result.resultType === 'complete' || result.protocolVersion)); // or it answers `initialize`
  assert.deepEqual(warnings, []);
  const _meta = { 'io.modelcontextprotocol/protocolVersion': '2099-01-01' };
  const plain = await connect(calculatorConfig, { transports });
  const { code, data } = await rejection(plain.connection.request('tools/list', { _meta }));
  assert.deepEqual([code, data], [-32022, { supported: ['2026-07-28'], requested: '2099-01-01' }]);
});

test('built in: no such server is an error that names those there are', async () => {
  for (const name of ['abacus', '__proto__', undefined]) {
    const why = await rejection(connect({ type: 'in-process', name }, { transports }));
    assert.deepEqual([why.kind, why.message], ['config', `MCP server "demo": no built-in server is called "${name}"; there is calculator`]);
  }
});

test('built in: a manager connects them without a file, beside the configured ones', async () => {
  const { home, cwd } = prepare({});
  const load = withBuiltIns({ calculator }, (report) => loadEntries(home, cwd, report));
  const { manager, state } = await manage({}, undefined, { transports, load });
  assert.deepEqual([state('calculator').state, state('calculator').file, state('calculator').tools], ['connected', 'built in', 2]);
  assert.equal((await manager.callTool('mcp__calculator__add', { a: 2, b: 40 })).text, '42');
  await manager.reconnect('calculator');
  assert.equal((await manager.callTool('mcp__calculator__greet', { name: 'Ada' })).text, 'Hello, Ada!');
});

test('built in: their names are reserved, and whoever takes one is told in which file', async () => {
  const other = { command: process.execPath, args: [goodServer] };
  for (const isProject of [false, true]) {
    const mine = { calculator: { command: 'evil' }, other };
    const files = isProject ? prepare({}, mine) : prepare(mine);
    const load = withBuiltIns({ calculator }, (report) => loadEntries(files.home, files.cwd, report));
    const { manager, state } = await manage({}, undefined, { transports, load, approve: () => true });
    assert.equal(manager.warnings.length, 1);
    assert.match(manager.warnings[0]!, /^MCP server "calculator" in .*(settings|\.mcp)\.json is ignored: a built-in server has that name; rename it$/);
    assert.ok(manager.warnings[0]!.includes(isProject ? files.cwd : files.home));
    assert.deepEqual([state('calculator').file, state('calculator').state, state('other').state], ['built in', 'connected', 'connected']);
  }
});

test('built in: nor can a configured server take the labels of one', async () => {
  const name = 'the calculator';
  const [, rival] = /^mcp__(.*)__x$/.exec(toolLabel(name, 'x'))!;
  const { home, cwd } = prepare({ [rival!]: { command: process.execPath, args: [goodServer] } });
  const load = withBuiltIns({ [name]: calculator }, (report) => loadEntries(home, cwd, report));
  const { state } = await manage({}, undefined, { transports: { 'in-process': inProcess({ [name]: calculator }) }, load });
  assert.deepEqual([state(name).state, state(rival!).state], ['connected', 'failed']);
  assert.match(state(rival!).reason!, /its tools would have the same names as those of "the calculator"/);
});

// ─── WebSocket: a server of the test, which sends bytes as it is told ─────────────────────────────────────────

type Heard = { first: number; isMasked: boolean; key: string; payload: Buffer };
type Settings = { answer?: (headers: Record<string, string>, request: IncomingMessage, socket: Socket) => void };

/** A frame as a server sends it, unless the test wants it otherwise. `first` is its first byte. */
function frame(first: number, payload: string | Buffer = '', { isMasked = false, length = Buffer.byteLength(payload) } = {}): Buffer {
  const short = length < 126 ? length : length < 65536 ? 126 : 127;
  const header = Buffer.alloc(short === 126 ? 4 : short === 127 ? 10 : 2);
  header[0] = first;
  header[1] = short + (isMasked ? 0x80 : 0);
  if (short === 126) header.writeUInt16BE(length, 2);
  if (short === 127) header.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([header, isMasked ? Buffer.alloc(4) : Buffer.alloc(0), Buffer.from(payload)]);
}
const text = (value: unknown) => frame(0x81, JSON.stringify(value));
const closing = (code: number, reason = '') => frame(0x88, Buffer.concat([Buffer.from([code >> 8, code & 255]), Buffer.from(reason)]));

/** What the client sent, taken apart independently of our own code. */
function takeFrames(bytes: Buffer): [Heard[], rest: Buffer] {
  const heard: Heard[] = [];
  for (;;) {
    const short = (bytes[1] ?? 0) & 127;
    const start = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (bytes.length < start + 4) return [heard, bytes];
    const length = short < 126 ? short : short === 126 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
    if (bytes.length < start + 4 + length) return [heard, bytes];
    const key = bytes.subarray(start, start + 4);
    const payload = bytes.subarray(start + 4, start + 4 + length).map((byte, i) => byte ^ key[i % 4]!);
    heard.push({ first: bytes[0]!, isMasked: bytes[1]! > 127, key: key.toString('hex'), payload: Buffer.from(payload) });
    bytes = bytes.subarray(start + 4 + length);
  }
}

async function serve({ answer }: Settings = {}) {
  const heard: Heard[] = [];
  const sockets: Socket[] = [];
  const server = http.createServer();
  const seen = { heard, sockets, ended: 0, closed: 0, isStubborn: false, requests: [] as IncomingMessage[], onText: (_: string) => {} };
  server.on('connection', (socket) => {
    sockets.push(socket);
    socket.on('error', () => {}).on('close', () => seen.closed++);
  });
  server.on('upgrade', (request, socket: Socket) => {
    seen.requests.push(request);
    let rest = Buffer.alloc(0);
    socket.on('end', () => (seen.ended++, seen.isStubborn || socket.end()));
    socket.on('data', (chunk) => {
      const [frames, left] = takeFrames(Buffer.concat([rest, chunk]));
      rest = Buffer.from(left);
      heard.push(...frames);
      for (const { first, payload } of frames) if (first === 0x81) seen.onText(`${payload}`);
      if (frames.some(({ first }) => first === 0x88) && !seen.isStubborn) socket.end(closing(1000));
    });
    const key = request.headers['sec-websocket-key']!;
    const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
    const headers = { Upgrade: 'websocket', Connection: 'Upgrade', 'Sec-WebSocket-Accept': accept, 'Sec-WebSocket-Protocol': 'mcp' };
    if (answer) answer(headers, request, socket);
    else socket.write(switching(headers));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  later(() => (sockets.forEach((socket) => socket.destroy()), server.close()));
  const { port } = server.address() as AddressInfo;
  return Object.assign(seen, { server, port, url: `ws://127.0.0.1:${port}/mcp` });
}

const switching = (headers: Record<string, string>, status = '101 Switching Protocols') =>
  `HTTP/1.1 ${status}\r\n${Object.entries(headers).map((pair) => `${pair.join(': ')}\r\n`).join('')}\r\n`;

/** A server and a client that has just connected to it. `send` is what the server sends. */
async function pipe({ maxBytes = 2 ** 20, limits, ...settings }: Settings & { maxBytes?: number; limits?: { connectMs: number; goodbyeMs: number } } = {}) {
  const server = await serve(settings);
  const transport = new WebSocketTransport('demo', { type: 'ws', url: server.url }, maxBytes, limits);
  later(() => transport.close());
  const dropped: any[] = [];
  const told = await listen(transport, dropped);
  const socket = server.sockets[0]!;
  return { server, transport, told, dropped, socket, send: (...frames: Buffer[]) => void socket.write(Buffer.concat(frames)) };
}

const isGone = ({ sockets, closed }: Awaited<ReturnType<typeof serve>>) => sockets.length === closed;

test('ws: the opening request is by the book, carries our headers, and has a new key each time', async () => {
  const server = await serve();
  for (let i = 0; i < 2; i++) {
    const config = { type: 'ws', url: `${server.url}?a=1#x`, headers: { Authorization: 'Bearer t', Upgrade: 'tea' } };
    const transport = new WebSocketTransport('demo', config, 1000);
    await listen(transport);
    await transport.close();
  }
  const [one, two] = server.requests.map(({ headers }) => headers);
  const { 'sec-websocket-key': key, host, ...rest } = one!;
  assert.deepEqual(rest, {
    authorization: 'Bearer t', connection: 'Upgrade', upgrade: 'websocket',
    'sec-websocket-version': '13', 'sec-websocket-protocol': 'mcp',
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
    [{ url: 'ws://x.test', headers: { AUTHORIZATION: 'Bearer t' } }, /ws:\/\/ would show it to everybody; use wss:\/\//],
    [{ url: 'ws://x.test', headers: { 'X-Api-Key': 'k' } }, /"x-api-key" holds a secret, and ws:\/\//],
    [{ url: 'ws://x.test/?token=k' }, /its "url" holds a secret, and ws:\/\/ .* use wss:\/\//],
  ];
  for (const [config, reason] of cases)
    assert.throws(() => new WebSocketTransport('demo', { ...config }, 1), (error: any) => {
      assert.match(error.message, reason);
      return error.kind === 'config' && error.message.startsWith('MCP server "demo": ');
    });
  for (const url of ['wss://x.test', 'WS://localhost', 'ws://127.0.0.1:1', 'ws://[::1]:1'])
    new WebSocketTransport('demo', { url, headers: { authorization: 'Bearer t' } }, 1);
});

test('ws: a frame as the RFC prints it', () => {
  const key = Buffer.from([0x37, 0xfa, 0x21, 0x3d]);
  assert.equal(encodeFrame(1, Buffer.from('Hello'), key).toString('hex'), '818537fa213d7f9f4d5158');
});

/** The calculator behind the test's server, so that a whole connection can be seen to work. */
function calculate(server: Awaited<ReturnType<typeof serve>>): void {
  const [ours, theirs] = linkedPair();
  calculator(theirs);
  void ours.start({ message: (message) => void server.sockets.at(-1)!.write(text(message)), closed() {} });
  server.onText = (said) => void ours.send(JSON.parse(said));
}

test('ws: a connection and a manager work over it; every frame is masked with a key of its own', async () => {
  const server = await serve();
  calculate(server);
  const options = { transports: { ws: (...given: [string, any, number]) => new WebSocketTransport(...given) } };
  const { connection, warnings } = await open({ type: 'ws', url: server.url }, options);
  assert.equal((await connection.callTool('add', { a: 2, b: 40 })).text, '42');
  const names = Array.from({ length: 50 }, (_, n) => `№ ${n}`);
  const greetings = await Promise.all(names.map((name) => connection.callTool('greet', { name })));
  assert.deepEqual(greetings.map((greeting) => greeting.text), names.map((name) => `Hello, ${name}!`));
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
  assert.deepEqual(server.heard.map(({ payload }) => payload.length), sizes);
  assert.deepEqual(told.map((message) => message.length + 2), sizes);
  for (const { payload } of server.heard) assert.match(JSON.parse(`${payload}`).method, /^é+x?$/);
});

test('ws: many frames in one piece, the first together with the handshake; and one frame byte by byte', async () => {
  const all = Buffer.concat([text({ n: 1 }), text({ n: 2 }), frame(0x89, 'hi'), frame(0x8a, 'unasked'), text({ n: 3 })]);
  const { server, told, socket } = await pipe({
    answer: (headers, _, socket) => void socket.write(Buffer.concat([Buffer.from(switching(headers)), all])),
  });
  await until(() => told.length === 3 && server.heard.length === 1);
  socket.setNoDelay(true);
  for (const byte of Buffer.concat([all, frame(0x81, JSON.stringify({ n: 'x'.repeat(200) }))])) {
    socket.write(Buffer.from([byte]));
    await new Promise((done) => setImmediate(done)); // so that the bytes travel alone
  }
  await until(() => told.length === 7);
  assert.deepEqual(told.map(({ n }) => n), [1, 2, 3, 1, 2, 3, 'x'.repeat(200)]);
  assert.deepEqual(server.heard.map(({ first, payload }) => [first, `${payload}`]), [[0x8a, 'hi'], [0x8a, 'hi']]);
});

test('ws: a message in fragments, with a ping in its middle, and a character cut in two', async () => {
  const { server, told, send } = await pipe();
  const bytes = Buffer.from('{"fox":"🦊"}');
  send(frame(0x01, bytes.subarray(0, 9)), frame(0x89, 'are you there?'), frame(0x00), frame(0x00, bytes.subarray(9, 10)));
  send(frame(0x8a), frame(0x80, bytes.subarray(10)), text({ n: 2 }));
  await until(() => told.length === 2);
  assert.deepEqual(told, [{ fox: '🦊' }, { n: 2 }]);
  await until(() => server.heard.length > 0);
  assert.deepEqual(server.heard.map(({ first, payload }) => [first, `${payload}`]), [[0x8a, 'are you there?']]);
});

test('ws: a message in a hundred thousand fragments, most of them empty', async () => {
  const { told, send } = await pipe();
  const json = JSON.stringify({ text: 'x'.repeat(10_000) });
  const pieces = Buffer.concat([...json].flatMap((char, n) => [frame(n === 0 ? 0x01 : 0x00, char), ...Array(10).fill(frame(0))]));
  send(pieces, frame(0x80));
  await until(() => told.length === 1);
  assert.deepEqual(told, [JSON.parse(json)]);
});

test('ws: a large message in tiny pieces does not take for ever', () => {
  const reader = new MessageReader(2 ** 25);
  const bytes = frame(0x81, 'x'.repeat(2 ** 24));
  const heard = [];
  for (let at = 0; at < bytes.length; at += 64) heard.push(...reader.read(bytes.subarray(at, at + 64)));
  assert.deepEqual(heard.map(({ payload }) => payload.equals(bytes.subarray(10))), [true]);
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
  ['a continuation of nothing', frame(0x80, '{}'), wrong(/continued a message that it had not begun/)],
  ['a second continuation', Buffer.concat([frame(0x01, '{'), frame(0x80, '}'), frame(0x80, '}')]), wrong(/had not begun/)],
  ['a message in a message', Buffer.concat([frame(0x01, '{'), frame(0x81, '{}')]), wrong(/began a message within another/)],
  ['a binary message', frame(0x82, '{}'), ended('protocol', /binary message/, 1003)],
  ['bad UTF-8', frame(0x81, Buffer.from([0x22, 0xff, 0x22])), ended('protocol', /not UTF-8/, 1007)],
  ['half a character', frame(0x81, Buffer.from('"é').subarray(0, 2)), ended('protocol', /not UTF-8/, 1007)],
  ['a surrogate', frame(0x81, Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])), ended('protocol', /not UTF-8/, 1007)],
  ['a message of 10^15 bytes', frame(0x81, '', { length: 1e15 }), ended('limit', /more than 1000 bytes/, 1009)],
  ['a message of 1001 bytes', frame(0x81, '', { length: 1001 }), ended('limit', /more than 1000 bytes/, 1009)],
  ['a fragment that is too much', Buffer.concat([frame(0x01, 'x'.repeat(600)), frame(0x00, '', { length: 401 })]),
    ended('limit', /more than 1000 bytes/, 1009)],
  ['a length with its first bit set', Buffer.concat([Buffer.from([0x81, 127]), Buffer.alloc(8, 0xff)]), ended('limit', /more than/, 1009)],
  ['a close of one byte', frame(0x88, 'x'), wrong(/closed with the code 0/)],
  ['close code 1005', closing(1005), wrong(/code 1005, which means nothing/)],
  ['close code 2000', closing(2000), wrong(/code 2000/)],
  ['a close whose reason is not UTF-8', frame(0x88, Buffer.from([3, 232, 0xff])), ended('protocol', /not UTF-8/, 1007)],
];
for (const [name, bytes, { kind, reason, code }] of VIOLATIONS)
  test(`ws: ${name} ends the connection, and the server is told why`, async () => {
    const { server, transport, told, send } = await pipe({ maxBytes: 1000 });
    send(text({ n: 1 }), bytes, text({ n: 2 }), closing(1000));
    await until(() => isGone(server));
    assert.deepEqual(told.slice(0, -1).filter(({ n }) => n === 2), [], 'what comes after it does not count');
    assert.deepEqual([told[0], told.length], [{ n: 1 }, 2 + Number(name === 'a second continuation')]);
    assert.match(told.at(-1).message, /^MCP server "demo" \(ws:\/\/127\.0\.0\.1:\d+\) /);
    assert.match(told.at(-1).message, reason);
    assert.equal(told.at(-1).kind, kind);
    assert.deepEqual(server.heard.map(({ first, payload }) => [first, payload.readUInt16BE()]), [[0x88, code]]);
    assert.equal(await rejection(transport.send(note('x'))), told.at(-1));
  });

test('ws: a message of just the limit is heard, whole or in fragments', async () => {
  const { told, send } = await pipe({ maxBytes: 1000 });
  const json = JSON.stringify('x'.repeat(998));
  send(frame(0x81, json), frame(0x01, json.slice(0, 500)), frame(0x89, 'y'.repeat(125)), frame(0x80, json.slice(500)));
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
  send(frame(0x81, '['.repeat(501) + ']'.repeat(499)), frame(0x81, ' \n' + '['.repeat(501)), frame(0x81, '{"n":1}'));
  await until(() => told.length === 1);
  assert.deepEqual([told, dropped.map(({ kind }) => kind)], [[{ n: 1 }], ['limit', 'limit']]);
  assert.match(dropped[0]!.message, /^MCP server "demo" \(ws:.*\) sent a message with more than 500 levels, which is dropped$/);
});

test('ws: we close: the server hears it, nothing follows it, and the socket is gone when close() resolves', async () => {
  const { server, transport, told, socket, send } = await pipe({ limits: { connectMs: 15_000, goodbyeMs: 60_000 } });
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
    const { server, transport, told, socket } = await pipe({ limits: { connectMs: 15_000, goodbyeMs: 50 } });
    server.isStubborn = true;
    if (!isReading) socket.pause();
    const stuck = isReading ? undefined : rejection(transport.send(note('x', { text: 'x'.repeat(2 ** 25) })));
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
    assert.deepEqual(server.heard.map(({ first, payload }) => [first, payload.readUInt16BE()]), [[0x88, code]]);
    await transport.close();
  }
});

test('ws: a server that closes, or does wrong, and keeps the line open is hung up on', async () => {
  for (const bytes of [closing(1000), frame(0x83)]) {
    const { server, told, socket, send } = await pipe({ limits: { connectMs: 15_000, goodbyeMs: 50 } });
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
    const server = await serve();
    server.onText = () => server.sockets[0]![cut]();
    const options = { transports: { ws: (...given: [string, any, number]) => new WebSocketTransport(...given) } };
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
    ['401 Unauthorized', { 'WWW-Authenticate': 'Bearer realm="x"' }, 'auth', /wants a login \(HTTP 401\); put a token into its "headers"/],
    ['403 Forbidden', {}, 'auth', /HTTP 403/],
    ['404 Not Found', {}, 'protocol', /answered HTTP 404 instead of opening a WebSocket; is its "url" right\?/],
    ['200 OK', { 'Content-Length': '1000000' }, 'protocol', /answered HTTP 200/],
    ['302 Found', { Location: 'ws://evil.test/' }, 'protocol', /sends us on to "ws:\/\/evil\.test\/"\. If that is right/],
    ['503 Service Unavailable', {}, 'unreachable', /HTTP 503/],
  ];
  for (const [status, headers, kind, reason] of cases) {
    const server = await serve({ answer: (_, __, socket) => void socket.write(switching(headers, status)) });
    const transport = new WebSocketTransport('demo', { url: server.url }, 1000);
    const why = await rejection(listen(transport));
    assert.match(why.message, reason);
    assert.deepEqual([why.kind, why.status], [kind, kind === 'auth' ? Number(status.slice(0, 3)) : undefined]);
    await until(() => isGone(server));
    await transport.close();
    assert.equal(await rejection(transport.send(note('x'))).then((error) => error.kind), 'closed');
  }
});

test('ws: an answer of 101 that is not to our question is refused', async () => {
  const cases: [change: Record<string, string>, reason: RegExp][] = [
    [{ 'Sec-WebSocket-Accept': 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=' }, /its Sec-WebSocket-Accept does not belong to our key/],
    [{ 'Sec-WebSocket-Accept': '' }, /Sec-WebSocket-Accept/],
    [{ Upgrade: 'h2c' }, /it switched to "h2c"/],
    [{ 'Sec-WebSocket-Extensions': 'permessage-deflate' }, /uses the extension "permessage-deflate", which we did not offer/],
    [{ 'Sec-WebSocket-Protocol': 'soap' }, /it speaks "soap" instead of "mcp"/],
  ];
  for (const [change, reason] of cases) {
    const server = await serve({ answer: (headers, _, socket) => void socket.write(switching({ ...headers, ...change })) });
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
      void socket.write(switching({ UPGRADE: 'WebSocket', connection: 'keep-alive, Upgrade', 'sec-websocket-accept': accept! })),
  });
  send(text({ n: 1 }));
  await until(() => told.length === 1);
});

test('ws: nobody there, no HTTP there, and TLS where there is none', async () => {
  const free = await serve();
  await new Promise((done) => free.server.close(done));
  const nobody = await rejection(listen(new WebSocketTransport('demo', { url: free.url }, 1000)));
  assert.deepEqual([nobody.kind, /nobody listens there/.test(nobody.message)], ['unreachable', true]);

  const first: number[] = [];
  const server = net.createServer((socket) => {
    socket.on('error', () => {}).on('data', ([byte]) => (first.push(byte!), socket.end('SSH-2.0-OpenSSH_9.9\r\n')));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  later(() => server.close());
  for (const scheme of ['ws', 'wss']) {
    const transport = new WebSocketTransport('demo', { url: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}` }, 1000);
    const why = await rejection(listen(transport));
    assert.deepEqual([why.kind, /cannot be reached: /.test(why.message)], ['unreachable', true]);
    await transport.close();
  }
  assert.deepEqual(first, [0x47, 0x16], 'the G of GET, and the beginning of a TLS handshake');
});

test('ws: a server that does not answer is given up after a while, and leaves no connection', async () => {
  const server = await serve({ answer: () => {} });
  const transport = new WebSocketTransport('demo', { url: server.url }, 1000, { connectMs: 50, goodbyeMs: 1000 });
  const why = await rejection(listen(transport));
  assert.deepEqual([why.kind, /did not open a WebSocket within 0\.05 s/.test(why.message)], ['timeout', true]);
  await until(() => isGone(server));
  await transport.close();
});

test('ws: to close while it is connecting, or before, ends the attempt', async () => {
  const server = await serve({ answer: () => {} });
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
  const sending = transport.send(note('x', { text: 'x'.repeat(2 ** 25) })).then(() => (isSent = true));
  await pause(100); // it would never be
  assert.equal(isSent, false);
  socket.resume();
  await sending;
});

test('ws: pings of a server that does not read do not pile up, and the last one is answered', async () => {
  const { server, transport, told, socket, send } = await pipe();
  socket.pause();
  const count = 200_000;
  const pings = (from: number) => Buffer.concat(Array.from({ length: 10_000 }, (_, n) => frame(0x89, `${from + n}`.padStart(125))));
  for (let from = 0; from < count; from += 10_000) send(pings(from));
  send(text({ n: 1 }));
  await until(() => told.length === 1);
  assert.ok((transport as any).socket.writableLength < 2 ** 20);
  socket.resume();
  await until(() => `${server.heard.at(-1)?.payload}`.trim() === `${count - 1}`);
  assert.ok(server.heard.length < count);
});
