// A WebSocket server of the tests, by hand and independent of our own code: it sends bytes as it is told, also wrong ones,
// and writes down every frame that comes.

import { createHash } from 'node:crypto';
import http, { type IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { later } from './basics.ts';

type Heard = { first: number; isMasked: boolean; key: string; payload: Buffer };
export type Settings = {
  answer?: (headers: Record<string, string>, request: IncomingMessage, socket: Socket) => void;
};

/** A frame as a server sends it, unless the test wants it otherwise. `first` is its first byte. */
export function frame(
  first: number,
  payload: string | Buffer = '',
  { isMasked = false, length = Buffer.byteLength(payload) } = {},
): Buffer {
  const short = length < 126 ? length : length < 65536 ? 126 : 127;
  const header = Buffer.alloc(short === 126 ? 4 : short === 127 ? 10 : 2);
  header[0] = first;
  header[1] = short + (isMasked ? 0x80 : 0);
  if (short === 126) header.writeUInt16BE(length, 2);
  if (short === 127) header.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([
    header,
    isMasked ? Buffer.alloc(4) : Buffer.alloc(0),
    Buffer.from(payload),
  ]);
}
export const text = (value: unknown) => frame(0x81, JSON.stringify(value));
export const closing = (code: number, reason = '') =>
  frame(0x88, Buffer.concat([Buffer.from([code >> 8, code & 255]), Buffer.from(reason)]));

/** What the client sent, taken apart independently of our own code. */
function takeFrames(bytes: Buffer): [Heard[], rest: Buffer] {
  const heard: Heard[] = [];
  for (;;) {
    const short = (bytes[1] ?? 0) & 127;
    const start = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (bytes.length < start + 4) return [heard, bytes];
    const length =
      short < 126
        ? short
        : short === 126
          ? bytes.readUInt16BE(2)
          : Number(bytes.readBigUInt64BE(2));
    if (bytes.length < start + 4 + length) return [heard, bytes];
    const key = bytes.subarray(start, start + 4);
    const payload = bytes
      .subarray(start + 4, start + 4 + length)
      .map((byte, i) => byte ^ key[i % 4]!);
    heard.push({
      first: bytes[0]!,
      isMasked: bytes[1]! > 127,
      key: key.toString('hex'),
      payload: Buffer.from(payload),
    });
    bytes = bytes.subarray(start + 4 + length);
  }
}

/** A server that does as it should, unless the test answers the opening request itself. */
export async function startWebSocketServer({ answer }: Settings = {}) {
  const heard: Heard[] = [];
  const sockets: Socket[] = [];
  const server = http.createServer();
  const seen = {
    heard,
    sockets,
    ended: 0,
    closed: 0,
    isStubborn: false,
    requests: [] as IncomingMessage[],
    onText: (_text: string, _socket: Socket) => {},
  };
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
      for (const { first, payload } of frames)
        if (first === 0x81) seen.onText(`${payload}`, socket);
      if (frames.some(({ first }) => first === 0x88) && !seen.isStubborn) socket.end(closing(1000));
    });
    const key = request.headers['sec-websocket-key']!;
    const accept = createHash('sha1')
      .update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
      .digest('base64');
    const headers = {
      Upgrade: 'websocket',
      Connection: 'Upgrade',
      'Sec-WebSocket-Accept': accept,
      'Sec-WebSocket-Protocol': 'mcp',
    };
    if (answer) answer(headers, request, socket);
    else socket.write(switching(headers));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  later(() => (sockets.forEach((socket) => socket.destroy()), server.close()));
  const { port } = server.address() as AddressInfo;
  return Object.assign(seen, { server, port, url: `ws://127.0.0.1:${port}/mcp` });
}

export const switching = (headers: Record<string, string>, status = '101 Switching Protocols') =>
  `HTTP/1.1 ${status}\r\n${Object.entries(headers)
    .map((pair) => `${pair.join(': ')}\r\n`)
    .join('')}\r\n`;

/** A server of tools behind it: `results` by method, and an error for every other. */
export function answerRequests(
  server: Awaited<ReturnType<typeof startWebSocketServer>>,
  results: Record<string, object>,
): void {
  server.onText = (said, socket) => {
    const { id, method } = JSON.parse(said);
    if (id === undefined) return;
    const unknown = { error: { code: -32601, message: 'What?' } };
    const result = results[method] && { result: results[method] };
    socket.write(text({ jsonrpc: '2.0', id, ...(result ?? unknown) }));
  };
}

/** What a small server says of itself. */
export const INITIALIZED = { protocolVersion: '2025-11-25', capabilities: { tools: {} } };
