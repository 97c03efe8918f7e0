// Servers on 127.0.0.1 for the tests of chapter 20. They do what a test tells them, and write down what they were asked.

import { spawn } from 'node:child_process';
import http, { type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import net, { type AddressInfo, type Socket } from 'node:net';
import { join } from 'node:path';
import { VERSION_KEY } from '../../chapters/20-streamable-http/mirrored-headers.ts';
import { httpTransports } from '../../chapters/20-streamable-http/http.ts';
import type { ConnectionOptions, Json, Extension, Message } from '../../mcp.ts';
import { later, open, root, type Opened } from './basics.ts';

/** One request. `body` is the message in it, and `isOver` tells that the response has ended or was cut off. */
export type Asked = {
  verb: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: any;
  response: ServerResponse;
  isOver: boolean;
};
/** What it returns is the result of the answer; nothing, if it has written a response itself. */
export type Way = (asked: Asked, response: ServerResponse) => unknown;
export type Peer = {
  url: string;
  port: number;
  log: Asked[];
  /** The requests with this verb, or the POSTs with this method. */
  asked(what: string): Asked[];
  hide(): void; // takes no more connections, and keeps those it has
  stop(): Promise<void>;
};

/** A server that hands every request to one function. */
export async function serve(way: Way, port = 0): Promise<Peer> {
  const log: Asked[] = [];
  const server = http.createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    request.on('error', () => {});
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      return; // the client has left in the middle of its request
    }
    const text = Buffer.concat(chunks).toString();
    const { method: verb = '', url: path = '', headers } = request;
    const asked: Asked = {
      verb,
      path,
      headers,
      body: text && JSON.parse(text),
      response,
      isOver: false,
    };
    response.on('close', () => (asked.isOver = true));
    log.push(asked);
    const result = await way(asked, response);
    if (result !== undefined && !response.headersSent)
      json(response, { jsonrpc: '2.0', id: asked.body.id, result });
  });
  await new Promise<void>((done) => server.listen(port, '127.0.0.1', done));
  const stop = () =>
    new Promise<void>((done) => (server.close(() => done()), server.closeAllConnections()));
  later(stop);
  const { port: given } = server.address() as AddressInfo;
  const asked = (what: string) =>
    log.filter(({ verb, body }) => verb === what || body?.method === what);
  return {
    url: `http://127.0.0.1:${given}/mcp`,
    port: given,
    log,
    asked,
    stop,
    hide: () => void server.close(),
  };
}

/** A server of the earlier era: what a test does not say it does in the plainest way. The keys are verbs and methods;
 *  `answer` is for answers that are posted to it, and `*` for every other method. A connection that is kept and cut under the next
 *  request is `lost`; tests of `unreachable` need a server that keeps none. */
export function peer(
  ways: Record<string, Way> = {},
  { version = '2025-11-25', session = '', port = 0, keepsConnections = true } = {},
): Promise<Peer> {
  const given = session ? { 'mcp-session-id': session } : {};
  const plain: Record<string, Way> = {
    initialize: ({ body }, response) =>
      json(
        response,
        answer(body, { protocolVersion: version, capabilities: { tools: {} } }),
        200,
        given,
      ),
    GET: (_, response) => response.writeHead(405).end(),
    DELETE: (_, response) => response.writeHead(200).end(),
    'tools/call': ({ body }) => text(JSON.stringify(body.params.arguments ?? {})),
    '*': () => ({}),
  };
  const all = { ...plain, ...ways };
  return serve((asked, response) => {
    const { verb, body } = asked;
    response.shouldKeepAlive &&= keepsConnections;
    const method = body?.method ?? 'answer';
    const isNotice = verb === 'POST' && (body?.method === undefined || body.id === undefined);
    const way = all[verb] ?? all[method] ?? (isNotice ? undefined : all['*']);
    return way ? void run(way, asked, response) : void response.writeHead(202).end();
  }, port);
}

async function run(way: Way, asked: Asked, response: ServerResponse): Promise<void> {
  const result: any = await way(asked, response);
  const isResult = result !== undefined && result !== response && !response.headersSent;
  if (isResult) json(response, answer(asked.body, result));
}

export const text = (words: string) => ({ content: [{ type: 'text', text: words }] });
export const answer = ({ id }: { id?: unknown }, result: Json) => ({ jsonrpc: '2.0', id, result });

export const ask = (id: string | number, method: string, params = {}) => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
});
export const note = (method: string, params = {}) => ({ jsonrpc: '2.0', method, params });
export const said = ({ body }: Asked, words = 'said') => answer(body, text(words));

export function json(
  response: ServerResponse,
  message: unknown,
  status = 200,
  headers: Json = {},
): void {
  response
    .writeHead(status, {
      'content-type': 'application/json',
      ...(headers as Record<string, string>),
    })
    .end(JSON.stringify(message));
}

/** One event as the lines of a stream. */
export function event(
  message: unknown,
  fields: { id?: string; retry?: number; event?: string } = {},
): string {
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\n`);
  return `${lines.join('')}data: ${typeof message === 'string' ? message : JSON.stringify(message)}\n\n`;
}

/** Begins a stream of events. */
export function stream(response: ServerResponse, ...parts: string[]): ServerResponse {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
  for (const part of parts) response.write(part);
  return response;
}

/** A stream that is these parts and ends. */
export const whole = (response: ServerResponse, ...parts: string[]) =>
  void stream(response, ...parts).end();

/** Something below HTTP: it gets the bare connection, as soon as the first bytes have come. */
export async function bare(
  act: (socket: Socket, request: string) => unknown,
): Promise<{ url: string; port: number; sockets: Set<Socket> }> {
  const sockets = new Set<Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => {});
    socket.on('data', (chunk) => act(socket, `${chunk}`));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  later(
    () =>
      new Promise((done) => (server.close(done), sockets.forEach((socket) => socket.destroy()))),
  );
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/mcp`, port, sockets };
}

/** An address at which nobody listens. */
export async function nobody(): Promise<string> {
  const { url, stop } = await serve(() => {});
  await stop();
  return url;
}

/** The calculator of fixtures/remote.mjs as a process of its own. */
export async function calculator(
  ...flags: string[]
): Promise<{ url: string; end(): Promise<void> }> {
  const child = spawn(process.execPath, [join(root, 'fixtures', 'remote.mjs'), ...flags]);
  const gone = new Promise<void>((done) => child.on('close', () => done()));
  const end = () => (child.kill('SIGKILL'), gone);
  later(end);
  const url = await new Promise<string>((done) =>
    child.stdout.setEncoding('utf8').once('data', (line: string) => done(line.trim())),
  );
  return { url, end };
}

// ─── The client ───────────────────────────────────────────────────────────────────────────────────────────────

const transports: ConnectionOptions['transports'] = {
  http: httpTransports.http,
};

export function openTo(
  url: string,
  options: ConnectionOptions = {},
  config: Json = {},
): Promise<Opened> {
  return open({ type: 'http', url, ...config }, { transports, ...options });
}

/** Only the transport, and lists of what it tells. */
export async function transportTo(url: string, config: Json = {}, maxBytes = 2 ** 20) {
  const transport = httpTransports.http('demo', { url, ...config }, maxBytes);
  later(() => transport.close());
  const messages: any[] = [];
  const ends: any[] = [];
  const drops: any[] = [];
  const events = {
    message: (message: unknown) => void messages.push(message),
    dropped: (why: Error) => void drops.push(why),
    closed: (why: Error) => void ends.push(why),
  };
  await transport.start(events);
  const call = (id: number, method = 'tools/call', params: Json = { name: 'x' }) =>
    transport.send({ jsonrpc: '2.0', id, method, params } as Message);
  return { transport, messages, drops, ends, call };
}

// The later era in two lines: no handshake, and every request names its revision. (Chapter 22 has the whole of it.)
export const LATER = '2026-07-28';
const introduction = { [VERSION_KEY]: LATER, 'io.modelcontextprotocol/clientCapabilities': {} };
const introduce: Extension = () => ({
  layer: (call, next) =>
    next({
      ...call,
      params: { ...call.params, _meta: { ...(call.params?._meta as Json), ...introduction } },
    }),
});
const noHandshake: Extension = () => ({ handshake: async () => ({ protocolVersion: LATER }) });

export function openLater(
  url: string,
  { extensions = [], ...options }: ConnectionOptions = {},
  config: Json = {},
): Promise<Opened> {
  return openTo(url, { ...options, extensions: [...extensions, introduce, noHandshake] }, config);
}
