// serve-http.ts: the server over Streamable HTTP, in both eras at one address. An answer begins as
// JSON, and becomes a stream when there is something to say before it.

import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  isObject,
  McpError,
  REVISIONS,
  RpcError,
  tooMuchIn,
  type Id,
  type Message,
} from '../../mcp.ts';
import {
  HEADER_MISMATCH,
  mirrorsOf,
  MISSING_CAPABILITY,
  UNSUPPORTED_VERSION,
} from '../20-streamable-http/mirrored-headers.ts';
import type { Exchange } from './server-call.ts';
import {
  checkAccept,
  checkBodyType,
  checkOneHost,
  checkToken,
  checkVisitor,
  doorFor,
  headersForPage,
  isLoopbackBind,
  Refused,
  limitStrangers,
  type Door,
  type DoorOptions,
} from './guard.ts';
import { checkMirrors } from './mirror.ts';
import { ServerCard, type CardOptions } from './server-card.ts';
import { isLater, Unintroduced, type McpServer } from './server.ts';
import { ClientSession } from './protocol/client-session.ts';
import { resultResponse, idOf, errorResponse, shapeOf } from './protocol/message-shapes.ts';
import { eventId, Stream } from './protocol/stream.ts';

const DEFAULTS = {
  port: 0, // any that is free
  host: '127.0.0.1', // the address to listen at; beyond this machine only with a token
  maxBodyBytes: 4 * 2 ** 20,
  maxSessions: 1000,
  maxRunning: 1000, // requests at the same time, of all clients
  idleMs: 30 * 60_000, // after which a session that does nothing is forgotten
  graceMs: 5000, // for requests under way when we end
  keepAliveMs: 15_000,
};
export type HttpOptions = Partial<typeof DEFAULTS> & DoorOptions & { card?: CardOptions }; // with it, clients may look before they connect
const PATHS = ['/mcp', '/'];
const KEPT_MS = 60_000; // a stream that has ended, for a client that comes back
const MAX_KEPT = 50; // streams of one session
const PRIMED_SINCE = '2025-11-25'; // the first revision whose clients can read an empty event
const MAX_BATCH = 100;
const MAX_STRANGERS = 1000; // connections that have shown no token yet
const UPLOAD_MS = 30_000;
const TIDY_MS = 10_000;
const JSON_TYPE = 'application/json';
const STREAM_TYPE = 'text/event-stream';
const BAD_REQUEST = [-32700, -32600, HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION];

type HeaderValue = string | string[] | undefined;

/** A client of the handshake era, by the id that we gave it. */
type HttpSession = {
  id: string;
  session: ClientSession;
  streams: Map<string, Stream>;
  listening?: Stream; // for what belongs to no request
  lastStream: number;
  usedAt: number;
};

export class HttpServer {
  readonly server: McpServer;
  readonly options: typeof DEFAULTS & HttpOptions;
  private http = createServer((request, response) => void this.handle(request, response));
  private door: Door;
  private card?: ServerCard;
  private letIn: (request: IncomingMessage) => void;
  private visits = new Map<string, HttpSession>(); // the longest idle first
  private running = new Set<Promise<unknown>>();
  private listeners = new Set<Promise<unknown>>(); // requests that stay open
  private open = new Set<Stream>(); // that may be connected
  private timers: NodeJS.Timeout[] = [];
  private isClosing = false;

  constructor(server: McpServer, options: HttpOptions = {}) {
    this.server = server;
    const given = Object.entries(options).filter(([, value]) => value !== undefined);
    this.options = { ...DEFAULTS, ...Object.fromEntries(given) };
    const { host, token, card } = this.options;
    if (!isLoopbackBind(host) && !token)
      throw new McpError('config', `to listen at ${host}, beyond this machine, a token is needed`);

    this.door = doorFor(host, this.options);
    if (card) this.card = new ServerCard(card, server.options, token === undefined);
    this.http.requestTimeout = UPLOAD_MS;
    this.http.maxConnections = 2 * this.options.maxRunning + MAX_STRANGERS;
    this.letIn = limitStrangers(this.http, MAX_STRANGERS - 1); // so that there is room to come in
  }

  async listen(): Promise<this> {
    const { port, host, keepAliveMs, idleMs } = this.options;
    await new Promise<void>((resolve, reject) => {
      this.http.once('error', reject);
      this.http.listen(port, host.replace(/^\[|\]$/g, ''), resolve);
    });
    const keepAlive = () => {
      for (const stream of this.open) stream.keepAlive();
    };
    const tidy = () => this.tidy();
    const tidyMs = Math.min(TIDY_MS, idleMs);
    this.timers = [setInterval(keepAlive, keepAliveMs), setInterval(tidy, tidyMs)];
    for (const timer of this.timers) timer.unref();
    return this;
  }

  get port(): number {
    return (this.http.address() as AddressInfo).port;
  }

  get url(): string {
    const { host } = this.options;
    const name = host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
    return `http://${name}:${this.port}/mcp`;
  }

  get sessions(): number {
    return this.visits.size;
  }

  /** Takes nothing new, answers what listens, lets what runs come to an end, and closes. */
  async close(): Promise<void> {
    if (this.isClosing) return;
    this.isClosing = true;
    const closed = new Promise((done) => this.http.close(done));
    for (const timer of this.timers) clearInterval(timer);
    this.server.end();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((done) => (timer = setTimeout(done, this.options.graceMs)));
    await Promise.race([Promise.allSettled([...this.running, ...this.listeners]), late]);
    clearTimeout(timer);
    for (const visit of [...this.visits.values()]) this.forget(visit);
    await new Promise((done) => setImmediate(done)); // what was written leaves first
    this.http.closeAllConnections(); // close() alone would wait for idle streams
    await closed;
  }

  // ─── The door ────────────────────────────────────────────────────────────────────────────────

  private async handle(request: IncomingMessage, response: ServerResponse) {
    response.on('error', () => {}); // the client has left
    try {
      if (this.admit(request, response)) await this.route(request, response);
    } catch (error) {
      this.refuse(response, error);
    }
  }

  /** All checks that need no body. False if it was answered here. */
  private admit(request: IncomingMessage, response: ServerResponse) {
    const { headers, rawHeaders, method = '', url = '' } = request;
    const [path = ''] = url.split('?');
    const card = this.card?.has(path) ? this.card : undefined;
    response.setHeader('vary', 'Origin');
    checkVisitor(card?.isPublic ? { host: headers.host } : headers, this.door);
    checkOneHost(rawHeaders);
    if (path === '/health' && method === 'GET') {
      const { name: service, version } = this.server.options;
      const status = this.isClosing ? 'ending' : 'ok';
      const code = this.isClosing ? 503 : 200;
      this.reply(response, code, { status, service, version, mode: 'http' });
      return false;
    }
    const forPage = headersForPage(headers, this.door);
    if (forPage) response.setHeaders(new Map(Object.entries(forPage))); // on refusals, too
    if (card) {
      const { status, headers: its, body } = card.answer(method, path, headers);
      response.writeHead(status, its).end(body);
      return false;
    }
    if (!PATHS.includes(path)) throw new Refused(404, 'Not found: the address ends with /mcp');
    if (forPage && method === 'OPTIONS') {
      response.writeHead(204).end(); // a browser asks first, and without the token
      return false;
    }
    checkToken(headers, this.door);
    this.letIn(request);
    if (!['POST', 'GET', 'DELETE'].includes(method)) throw notAllowed('POST, GET, DELETE');
    if (this.isClosing) throw new Refused(503, 'The server is ending', { 'retry-after': '1' });
    return true;
  }

  private async route(request: IncomingMessage, response: ServerResponse) {
    const { headers, method } = request;
    if (method === 'POST') {
      checkBodyType(headers);
      checkAccept(headers, [JSON_TYPE, STREAM_TYPE]);
      const text = await readBody(request, this.options.maxBodyBytes);
      const message = text === undefined ? undefined : parse(text);
      if (message === undefined) return;
      return this.post(message, request, response).catch((error) =>
        this.refuse(response, error, idOf(message)),
      );
    }
    // Only a session can be listened to, or ended. The later era has none.
    if (headers['mcp-session-id'] === undefined) throw notAllowed('POST');
    if (!isOfSessions(headers)) throw new Refused(400, 'MCP-Protocol-Version is not of a session');
    const visit = this.visitOf(headers['mcp-session-id']);
    if (method === 'DELETE') {
      this.forget(visit);
      response.writeHead(204).end();
      return;
    }
    checkAccept(headers, [STREAM_TYPE]);
    this.listenTo(visit, headers['last-event-id'], response);
  }

  private refuse(response: ServerResponse, error: unknown, id: Id | null = null) {
    if (response.headersSent) return void response.end();
    if (error instanceof Refused) {
      const { status, message, headers } = error;
      const body = { jsonrpc: '2.0', error: { code: -32600, message } };
      return this.reply(response, status, body, headers);
    }
    if (error instanceof RpcError)
      return this.reply(response, statusOf(error), errorResponse(id, error));

    this.server.options.onError?.('HTTP', error);
    this.reply(response, 500, errorResponse(null, new RpcError(-32603, 'Internal error')));
  }

  private reply(response: ServerResponse, status: number, body: object, headers = {}) {
    const text = JSON.stringify(body);
    const length = Buffer.byteLength(text);
    response.writeHead(status, { 'content-type': JSON_TYPE, 'content-length': length, ...headers });
    response.end(text);
  }

  // ─── A message ───────────────────────────────────────────────────────────────────────────────

  private async post(
    message: unknown,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const { headers } = request;
    const isLate = isObject(message) && isLater(message as Message);
    if (isLate || !isOfSessions(headers)) return this.postStateless(message, request, response);
    const visit = this.visitFor(message, headers['mcp-session-id']);
    visit.usedAt = performance.now();
    const isBatch = Array.isArray(message) && visit.session.mayBatch;
    const messages = isBatch ? checkedBatch(message) : [message];
    const asked = messages.filter((each) => this.isRequest(each, visit)) as Message[];
    if (asked.length === 0) return void response.writeHead(202).end();
    await this.within(this.answerAll(asked, visit, response, isBatch));
  }

  /** True for a request. The other two shapes are dealt with at once. */
  private isRequest(message: unknown, visit: HttpSession) {
    const shape = shapeOf(message);
    if (shape === 'response') visit.session.answered(message as Message);
    if (shape === 'notification') this.server.hear(message as Message, visit.session);
    return shape === 'request';
  }

  private async within(work: Promise<void>, those = this.running) {
    those.add(work);
    try {
      await work;
    } finally {
      those.delete(work);
    }
  }

  private mustHaveRoom() {
    if (this.running.size < this.options.maxRunning) return;
    throw new Refused(503, 'Too many requests at once', { 'retry-after': '1' });
  }

  // ─── The handshake era ───────────────────────────────────────────────────────────────────────

  /** The session that a message belongs to. `initialize` without one begins one. */
  private visitFor(message: unknown, id: HeaderValue) {
    if (id !== undefined) return this.visitOf(id);
    shapeOf(message); // a message that is none hears that first
    if ((message as Message).method === 'initialize') return this.newVisit();
    throw new Refused(400, 'Mcp-Session-Id is missing: send initialize first');
  }

  private visitOf(id: HeaderValue) {
    const visit = this.visits.get(`${id}`);
    // 404 tells the client to begin a new session.
    if (!visit) throw new Refused(404, 'This session has ended, or never was');
    this.visits.delete(visit.id);
    this.visits.set(visit.id, visit); // now the last to become idle
    return visit;
  }

  /** It is kept when the handshake has succeeded. */
  private newVisit() {
    const visit: HttpSession = {
      id: randomUUID(),
      session: new ClientSession((message) => visit.listening?.send(message)),
      streams: new Map(),
      lastStream: 0,
      usedAt: performance.now(),
    };
    return visit;
  }

  private keep(visit: HttpSession) {
    if (this.visits.has(visit.id)) return;
    if (this.visits.size >= this.options.maxSessions) this.forget(this.longestIdle());
    this.visits.set(visit.id, visit);
    this.server.join(visit.session);
  }

  /** One that works or is listened to only if all do. */
  private longestIdle() {
    for (const visit of this.visits.values()) if (isIdle(visit)) return visit;
    const [oldest] = this.visits.values();
    return oldest!;
  }

  private forget(visit: HttpSession) {
    this.visits.delete(visit.id);
    this.server.leave(visit.session);
    for (const stream of visit.streams.values()) {
      stream.end();
      this.open.delete(stream);
    }
  }

  /** Forgets sessions that have been idle, and streams that nobody came back for. */
  private tidy() {
    const time = performance.now();
    for (const visit of [...this.visits.values()]) {
      const isOld = time - visit.usedAt > this.options.idleMs;
      if (isOld && isIdle(visit)) this.forget(visit);
      else this.tidyStreams(visit, time);
    }
  }

  private tidyStreams(visit: HttpSession, time: number) {
    const ended = [...visit.streams.values()].filter(({ endedAt }) => endedAt !== undefined);
    const tooMany = ended.length - MAX_KEPT;
    for (const [n, stream] of ended.entries()) {
      if (n >= tooMany && time - stream.endedAt! <= KEPT_MS) continue;
      visit.streams.delete(stream.name);
      this.open.delete(stream);
    }
  }

  private newStream(visit: HttpSession) {
    const isPrimed = (visit.session.version ?? '') >= PRIMED_SINCE;
    const stream = new Stream(`s${++visit.lastStream}`, { remembers: true, isPrimed });
    visit.streams.set(stream.name, stream);
    this.open.add(stream);
    if (visit.streams.size > MAX_KEPT) this.tidyStreams(visit, performance.now());
    return stream;
  }

  /** All requests of one POST, on one stream if there is one. */
  private async answerAll(
    requests: Message[],
    visit: HttpSession,
    response: ServerResponse,
    isBatch: boolean,
  ) {
    this.mustHaveRoom();
    let stream: Stream | undefined;
    const begin = () => {
      if (!stream) {
        stream = this.newStream(visit);
        if (!response.destroyed) stream.connect(response);
      }
      return stream;
    };
    const answers = requests.map((request) =>
      this.answerOne(request, visit, begin).catch((error) => errorResponse(request.id!, error)),
    );
    const given = (await Promise.all(answers)).filter((each) => each !== undefined);
    if (stream) {
      for (const answer of given) stream.send(answer);
      return stream.end();
    }
    // After a cancellation there is nothing to say, but the exchange must end.
    if (given.length === 0) return void response.writeHead(202).end();
    const isOpening = requests[0]!.method === 'initialize' && visit.session.isOpen;
    if (isOpening) this.keep(visit);
    const [first] = given as [Message];
    const headers = isOpening && !first.error ? { 'mcp-session-id': visit.id } : {};
    const status = first.error && !isBatch ? statusInSession(first.error.code) : 200;
    this.reply(response, status, isBatch ? given : first, headers);
  }

  private async answerOne(request: Message, visit: HttpSession, begin: () => Stream) {
    const { session } = visit;
    const send = (message: Message) => begin().send(message);
    const hangUp = () => {
      if ((session.version ?? '') >= PRIMED_SINCE) begin().hangUp();
    };
    try {
      return await this.server.respond(request, session, { send, hangUp, later: false });
    } finally {
      visit.usedAt = performance.now();
    }
  }

  /** A GET: goes on with a stream that was lost, or listens to what belongs to no request. */
  private listenTo(visit: HttpSession, last: HeaderValue, response: ServerResponse) {
    visit.usedAt = performance.now();
    if (last !== undefined) {
      const event = eventId(`${last}`);
      const stream = event && visit.streams.get(event.name); // of this session only
      if (!stream) throw new Refused(400, 'Last-Event-ID is not known here');
      stream.connect(response, {}, event.number);
      return;
    }
    if (visit.listening?.isConnected) throw new Refused(409, 'This session is listened to already');
    visit.listening?.end();
    visit.listening = this.newStream(visit);
    visit.listening.connect(response);
  }

  // ─── The stateless era ───────────────────────────────────────────────────────────────────────

  private async postStateless(
    message: unknown,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const shape = shapeOf(message);
    if (shape === 'response') throw new RpcError(-32600, 'There is no question of ours to answer');
    if (shape === 'notification') return void response.writeHead(202).end();
    const { method } = message as Message;
    const those = method === 'subscriptions/listen' ? this.listeners : this.running;
    await this.within(this.answerAlone(message as Message, request, response), those);
  }

  private async answerAlone(
    message: Message,
    { headers }: IncomingMessage,
    response: ServerResponse,
  ) {
    this.mustHaveRoom();
    const stream = new Stream('alone');
    const control = new AbortController();
    // Here a lost connection is a cancellation: nobody can come back for the rest.
    response.on('close', () => {
      this.open.delete(stream);
      if (!response.writableFinished) control.abort(new Error('the client is gone'));
    });
    const exchange: Exchange = {
      id: message.id!,
      signal: control.signal,
      tell: (method, params) => {
        if (!stream.isConnected && !response.headersSent) {
          stream.connect(response);
          this.open.add(stream);
        }
        stream.send({ jsonrpc: '2.0', method, params });
      },
    };
    const outcome = await this.outcomeOf(message, headers, exchange);
    if (control.signal.aborted) return;
    if (!stream.isConnected) return this.reply(response, outcome.status, outcome.body);
    stream.send(outcome.body);
    stream.end();
  }

  private async outcomeOf(
    message: Message,
    headers: IncomingMessage['headers'],
    exchange: Exchange,
  ): Promise<{ status: number; body: Message }> {
    const id = message.id as Id;
    try {
      // A body without a revision is told that. Else headers come first: they chose the way here.
      if (isLater(message)) checkMirrors(headers, message, this.mirrorsFor(message));
      return {
        status: 200,
        body: resultResponse(id, await this.server.answer(message, exchange, true)),
      };
    } catch (error) {
      return { status: statusOf(error), body: errorResponse(id, error) };
    }
  }

  private mirrorsFor({ method, params }: Message) {
    const tool = method === 'tools/call' ? this.server.tools.get(`${params?.name}`) : undefined;
    return mirrorsOf(tool?.inputSchema);
  }
}

/** Listens, and returns when it does. */
export function serveHttp(server: McpServer, options: HttpOptions = {}): Promise<HttpServer> {
  return new HttpServer(server, options).listen();
}

const isIdle = ({ session, listening }: HttpSession) =>
  session.busy === 0 && !listening?.isConnected;

/** No revision means the session's own. Another one than these has no sessions. */
function isOfSessions({ 'mcp-protocol-version': version }: IncomingMessage['headers']) {
  return version === undefined || REVISIONS.includes(`${version}`);
}

/** Looks at all of them before one takes effect. */
function checkedBatch(messages: unknown[]) {
  if (messages.length === 0 || messages.length > MAX_BATCH)
    throw new RpcError(-32600, `A batch has 1 to ${MAX_BATCH} messages`);

  for (const each of messages) shapeOf(each);
  return messages;
}

const notAllowed = (allow: string) => new Refused(405, 'Method not allowed', { allow });

function statusOf(error: unknown): number {
  if (!(error instanceof RpcError)) return 500;
  if (error instanceof Unintroduced || BAD_REQUEST.includes(error.code)) return 400;
  return error.code === -32601 ? 404 : 200;
}

/** With a session only what breaks the protocol itself is a 400; a refusal is an answer. */
const statusInSession = (code: unknown) => (code === -32600 ? 400 : 200);

function parse(text: string): unknown {
  const tooMuch = tooMuchIn(text);
  if (tooMuch) throw new RpcError(-32600, `The message has ${tooMuch}`);
  try {
    return JSON.parse(text);
  } catch {
    throw new RpcError(-32700, 'Parse error: the body is not JSON');
  }
}

/** Counts while it reads: a Content-Length is only a promise. Nothing if the client has left. */
export function readBody(request: IncomingMessage, most: number): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= most) return void chunks.push(chunk);
      chunks.length = 0;
      reject(new Refused(413, `A body has at most ${most} bytes`, { connection: 'close' }));
      if (size > 4 * most) request.destroy(); // it goes on all the same
    });
    request.on('end', () => resolve(`${Buffer.concat(chunks)}`));
    request.on('error', () => resolve(undefined));
    request.on('close', () => resolve(undefined));
  });
}
