// websocket.ts: one message per text message of a WebSocket, by node:http and the frames beside this file. Node 20 has
// no client of its own, and those that have one give it neither headers nor a limit on what it receives.

import { createHash, randomBytes } from 'node:crypto';
import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import { excerpt, McpError, passOn, textOf } from '../../mcp.ts';
import type { ErrorKind, Json, Message, Transport, TransportEvents } from '../../mcp.ts';
import { checked } from '../20-streamable-http/http.ts';
import type { Headers } from '../20-streamable-http/request.ts';
import { CLOSE, encodeClose, encodeFrame, MessageReader, readClose, readText, Violation } from './frames.ts';
import { NORMAL, PING, PONG, TEXT, TOO_BIG } from './frames.ts';

const SUBPROTOCOL = 'mcp';
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'; // from the RFC: only who has read it can give the right answer
const KEEP_ALIVE_MS = 30_000;

export class WebSocketTransport implements Transport {
  private who: string;
  private url: URL;
  private own: Headers;
  private reader: MessageReader;
  private limits: { connectMs: number; goodbyeMs: number };
  private events!: TransportEvents;
  private asked?: ClientRequest;
  private socket?: Socket;
  private owed?: Buffer; // the ping that waits for its pong
  private problem = '';
  private ended?: McpError;
  private closing?: Promise<void>;

  constructor(serverName: string, config: Json, maxBytes: number, limits = { connectMs: 15_000, goodbyeMs: 1000 }) {
    const { url, headers } = checkedSocket(serverName, config);
    this.url = url;
    this.own = headers;
    this.limits = limits;
    this.reader = new MessageReader(Math.min(maxBytes, 2 ** 28)); // a string cannot hold much more
    this.who = `MCP server "${serverName}" (${asSocket(url.origin)})`;
  }

  // ── Opening: a request that asks to leave HTTP ──

  start(events: TransportEvents): Promise<void> {
    this.events = events;
    return new Promise((resolve, reject) => {
      if (this.ended) return reject(this.ended);
      const key = randomBytes(16).toString('base64');
      const { request } = this.url.protocol === 'https:' ? https : http;
      const asked = request(this.url, { agent: false, headers: this.headers(key) }); // a connection that nobody shares
      this.asked = asked;
      const { connectMs } = this.limits;
      const tooLate = this.error('timeout', `did not open a WebSocket within ${connectMs / 1000} s`);
      const timer = setTimeout(() => asked.destroy(tooLate), connectMs);
      const fail = (error: McpError) => (clearTimeout(timer), reject(error));
      asked.on('error', (error) => fail(this.ended ?? this.unreachable(error)));
      asked.on('response', (response) => {
        response.destroy();
        fail(this.refusal(response)); // a redirect, too: whoever it names would get our headers
      });
      asked.on('upgrade', (response, socket: Socket, head) => {
        const problem = problemWithAnswer(response, key);
        if (problem) socket.destroy();
        if (problem) return fail(this.error('protocol', `did not open a WebSocket as it should: ${problem}`));
        clearTimeout(timer);
        this.listen(socket, head);
        resolve();
      });
      asked.end();
    });
  }

  private headers(key: string): Headers {
    return {
      ...this.own,
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': key,
      'sec-websocket-protocol': SUBPROTOCOL,
    };
  }

  private unreachable(error: NodeJS.ErrnoException): McpError {
    if (error instanceof McpError) return error;
    const why = error.code === 'ECONNREFUSED' ? 'nobody listens there (ECONNREFUSED)' : error.message || error.code;
    return this.error('unreachable', `cannot be reached: ${why}`);
  }

  private refusal({ statusCode: status = 0, headers }: IncomingMessage): McpError {
    const { location } = headers;
    if (status === 401 || status === 403) {
      const what = `wants a login (HTTP ${status}); put a token into its "headers"`;
      return new McpError('auth', `${this.who} ${what}`, status);
    }
    const onward = `sends us on to ${excerpt(location)}. If that is right, put it into the configuration`;
    if (status >= 300 && status < 400) return this.error('protocol', onward);
    const kind = status === 429 || status >= 500 ? 'unreachable' : 'protocol';
    return this.error(kind, `answered HTTP ${status} instead of opening a WebSocket; is its "url" right?`);
  }

  private listen(socket: Socket, head: Buffer): void {
    this.socket = socket;
    socket.setKeepAlive(true, KEEP_ALIVE_MS); // else nobody notices a peer that vanished without a word
    socket.on('data', (chunk) => this.read(chunk));
    socket.on('error', (error) => (this.problem = `: ${error.message}`)); // `close` follows
    for (const sign of ['end', 'close']) socket.on(sign, () => this.end('closed', `broke off${this.problem}`));
    if (head.length > 0) socket.unshift(head); // frames that came along with the answer
  }

  // ── Reading ──

  private read(chunk: Buffer): void {
    if (this.ended) return; // read, but not heard: bytes that nobody reads would make our last word a reset
    try {
      for (const { opcode, payload } of this.reader.read(chunk)) {
        this.hear(opcode, payload);
        if (this.ended) return;
      }
    } catch (error) {
      if (!(error instanceof Violation)) throw error;
      this.end(error.code === TOO_BIG ? 'limit' : 'protocol', error.message, error.code);
    }
  }

  private hear(opcode: number, payload: Buffer): void {
    if (opcode === PING) return this.answerPing(payload);
    if (opcode === CLOSE) return this.hearGoodbye(payload);
    if (opcode !== TEXT) return; // a pong that nobody waits for
    passOn(readText(payload), this.who, this.events);
  }

  /** While the pipe is full only the last ping counts: a server that pings and never reads must not fill our memory. */
  private answerPing(payload: Buffer): void {
    const socket = this.socket!;
    if (this.closing) return; // nothing may follow our goodbye
    if (!socket.writableNeedDrain) return void socket.write(encodeFrame(PONG, payload));
    if (!this.owed) socket.once('drain', () => {
      const last = this.owed!;
      this.owed = undefined;
      this.answerPing(last);
    });
    this.owed = payload;
  }

  // ── Writing ──

  send(message: Message): Promise<void> {
    return new Promise((resolve, reject) => {
      const gone = () => this.ended ?? this.error('closed', this.closing ? 'was closed by us' : 'is not connected');
      const { socket } = this;
      if (!socket || this.closing || this.ended) return reject(gone());
      const frame = encodeFrame(TEXT, Buffer.from(JSON.stringify(message)));
      // A write that destroy() cut off is reported as done.
      socket.write(frame, (error) => (error || socket.destroyed ? reject(gone()) : resolve()));
    });
  }

  // ── Closing: both sides say so, then the server hangs up ──

  close(): Promise<void> { return (this.closing ??= this.sayGoodbye()); }

  private async sayGoodbye(): Promise<void> {
    const stream = this.socket ?? this.asked;
    if (!this.socket) this.ended ??= this.error('closed', 'was closed by us');
    if (!stream || stream.closed) return;
    const gone = new Promise((done) => stream.once('close', done));
    if (!this.socket) stream.destroy(this.ended); // still connecting
    else if (!this.ended) this.socket.write(encodeClose(NORMAL));
    this.hangUpSoon();
    await gone;
  }

  private hearGoodbye(payload: Buffer): void {
    const { code, reason } = readClose(payload);
    const why = reason ? `${code}: ${excerpt(reason)}` : `${code}`;
    this.end('closed', `closed the connection (${why})`, payload.length > 0 ? code : NORMAL);
  }

  /** Tells the end once, and, if there is a code, tells the server why. */
  private end(kind: ErrorKind, how: string, code?: number): void {
    if (this.ended) return;
    const isOurs = this.closing && kind === 'closed';
    this.ended = isOurs ? this.error(kind, 'was closed by us') : this.error(kind, how);
    if (code === undefined || this.closing) this.socket!.end();
    else this.socket!.end(encodeClose(code));
    this.hangUpSoon();
    this.events.closed(this.ended);
  }

  private hangUpSoon(): void { setTimeout(() => this.socket?.destroy(), this.limits.goodbyeMs).unref(); }

  private error(kind: ErrorKind, what: string): McpError { return new McpError(kind, `${this.who} ${what}`); }
}

/** What is wrong with an answer of 101? It must be to our question, and promise nothing that we have not asked for. */
function problemWithAnswer({ headers }: IncomingMessage, key: string): string | undefined {
  const accept = createHash('sha1').update(key + GUID).digest('base64');
  const { 'sec-websocket-protocol': subprotocol = SUBPROTOCOL, 'sec-websocket-extensions': extensions } = headers;
  if (headers.upgrade?.toLowerCase() !== 'websocket') return `it switched to ${excerpt(headers.upgrade)}`;
  if (headers['sec-websocket-accept'] !== accept) return 'its Sec-WebSocket-Accept does not belong to our key';
  if (extensions) return `it uses the extension ${excerpt(extensions)}, which we did not offer`;
  return subprotocol === SUBPROTOCOL ? undefined : `it speaks ${excerpt(subprotocol)} instead of "${SUBPROTOCOL}"`;
}

const asSocket = (text: string) => text.replace(/\bhttp(s?):\/\//g, 'ws$1://');

/** The rules for http:// and https:// hold for ws:// and wss://, too. */
function checkedSocket(serverName: string, config: Json): ReturnType<typeof checked> {
  const { url } = config;
  const wrong = (what: string) => new McpError('config', what);
  if (typeof url !== 'string' || !/^wss?:\/\//i.test(url))
    throw wrong(`MCP server "${serverName}": "url" is not an address that begins with ws:// or wss://`);
  try {
    return checked(serverName, { ...config, url: url.replace(/^ws/i, 'http') });
  } catch (error) {
    throw wrong(asSocket(textOf(error)));
  }
}
