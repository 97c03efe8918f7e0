// peers.ts: the judge's server behind a Unix socket, a TCP port and a WebSocket, and as a command.
// One configuration names them all, and a transport takes what it knows.

import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import net, { type AddressInfo, type Socket } from 'node:net';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Json } from '../../mcp.ts';
import { answer, speakLines } from './peer.ts';

const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;
const program = fileURLToPath(new URL('peer.ts', import.meta.url));

export async function peers(): Promise<{ config: Json; close: () => Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-judge-'));
  const isWindows = process.platform === 'win32';
  const path = isWindows ? `\\\\.\\pipe\\mcp-judge-${process.pid}` : join(folder, 'judge.sock');
  const sockets = new Set<Socket>();
  const greet = (socket: Socket) => {
    keep(socket, sockets);
    speakLines(socket, socket, () => socket.end());
  };
  const servers = [net.createServer(greet), net.createServer(greet), webSocketServer(sockets)];
  const [unix, tcp, web] = servers;
  await Promise.all([listen(unix!, path), listen(tcp!, 0), listen(web!, 0)]);
  const { port } = tcp!.address() as AddressInfo;
  const url = `ws://127.0.0.1:${(web!.address() as AddressInfo).port}/mcp`;
  const command = { command: process.execPath, args: ['--import', tsx, program] };
  const close = async () => {
    for (const socket of sockets) socket.destroy();
    await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
    rmSync(folder, { recursive: true, force: true });
  };
  return { config: { type: 'judged', ...command, path, host: '127.0.0.1', port, url }, close };
}

function keep(socket: Socket, sockets: Set<Socket>): void {
  sockets.add(socket);
  socket.on('error', () => {}); // the other side may leave as it likes
  socket.on('close', () => sockets.delete(socket));
}

function listen(server: net.Server, where: string | number): Promise<void> {
  return new Promise((done) => {
    if (typeof where === 'string') server.listen(where, done);
    else server.listen(where, '127.0.0.1', done);
  });
}

// ─── A WebSocket, from the server's side (RFC 6455) ─────────────────────────────────────────────

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const TEXT = 1;
const CLOSE = 8;
const FIN = 0x80;

function webSocketServer(sockets: Set<Socket>): net.Server {
  const server = http.createServer((_, response) => void response.writeHead(426).end());
  server.on('upgrade', (request, socket: Socket) => {
    keep(socket, sockets);
    const key = `${request.headers['sec-websocket-key']}${GUID}`;
    const head = [
      'HTTP/1.1 101 Switching Protocols',
      'Upgrade: websocket',
      'Connection: Upgrade',
      `Sec-WebSocket-Accept: ${createHash('sha1').update(key).digest('base64')}`,
      ...(request.headers['sec-websocket-protocol'] ? ['Sec-WebSocket-Protocol: mcp'] : []),
    ];
    socket.write(`${head.join('\r\n')}\r\n\r\n`);
    speakFrames(socket);
  });
  return server;
}

function speakFrames(socket: Socket): void {
  let unread: Buffer = Buffer.alloc(0);
  let message: Buffer[] = []; // the frames of one that is not whole
  const hangUp = () => socket.end(frame(CLOSE, Buffer.from([1000 >> 8, 1000 & 0xff])));
  const say = (text: string) => socket.write(frame(TEXT, Buffer.from(text)));
  socket.on('data', (chunk: Buffer) => {
    unread = Buffer.concat([unread, chunk]);
    for (let next = readFrame(unread); next; next = readFrame(unread)) {
      unread = next.rest;
      if (next.opcode === CLOSE) return void hangUp();
      if (next.opcode > CLOSE) continue; // a ping or a pong
      message.push(next.payload);
      if (!next.isLast) continue;
      answer(Buffer.concat(message).toString(), say, hangUp);
      message = [];
    }
  });
}

function frame(opcode: number, payload: Buffer): Buffer {
  const { length } = payload;
  const head = Buffer.alloc(length < 126 ? 2 : 10);
  head[0] = FIN | opcode;
  head[1] = length < 126 ? length : 127;
  if (length >= 126) head.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([head, payload]);
}

/** A frame of a client: its payload is masked. Nothing if it is not all there. */
function readFrame(bytes: Buffer) {
  if (bytes.length < 2) return undefined;
  const short = bytes[1]! & 0x7f;
  const extra = { 126: 2, 127: 8 }[short] ?? 0;
  const start = 2 + extra + 4;
  if (bytes.length < start) return undefined;
  let length = short;
  if (extra === 2) length = bytes.readUInt16BE(2);
  if (extra === 8) length = Number(bytes.readBigUInt64BE(2));
  if (bytes.length < start + length) return undefined;
  const key = bytes.subarray(start - 4, start);
  const payload = Buffer.from(bytes.subarray(start, start + length));
  for (let i = 0; i < length; i++) payload[i]! ^= key[i % 4]!;
  const first = bytes[0]!;
  const rest = bytes.subarray(start + length);
  return { opcode: first & 0x0f, isLast: (first & FIN) !== 0, payload, rest };
}
