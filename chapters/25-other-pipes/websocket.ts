// websocket.ts: one message per text message of a WebSocket, by node:http and frames.ts.
// Node 20 has no WebSocket client. Later versions have one that takes no headers, and has no limit
// on what it receives.

import { createHash, randomBytes } from 'node:crypto';
import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import {
  excerpt,
  MAX_UNSENT,
  McpError,
  notReading,
  passOn,
  textOf,
  type ErrorKind,
  type Json,
  type Message,
  type Transport,
  type TransportEvents,
} from '../../mcp.ts';
import { ProxyError, proxyFor } from '../18-minds/proxy.ts';
import { TunnelAgent, type TunnelArgs } from '../18-minds/tunnel.ts';
import { checkedAddress } from '../20-streamable-http/streamable.ts';
import type { HeaderFields } from '../20-streamable-http/reply.ts';
import {
  encodeClose,
  encodeFrame,
  MessageReader,
  readClose,
  decodeText,
  CLOSE,
  NORMAL,
  PING,
  PONG,
  TEXT,
  TOO_BIG,
  Violation,
} from './frames.ts';

const SUBPROTOCOL = 'mcp';
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'; // from the RFC
const KEEP_ALIVE_MS = 30_000;
const MAX_MESSAGE_BYTES = 2 ** 28; // a string cannot hold much more
const DEFAULT_LIMITS = { connectMs: 15_000, goodbyeMs: 1000 };

export class WebSocketTransport implements Transport {
  private who: string;
  private url: URL;
  private ownHeaders: HeaderFields; // of the configuration
  private reader: MessageReader;
  private limits: typeof DEFAULT_LIMITS;
  private events!: TransportEvents;
  private opening?: ClientRequest;
  private stopped = new AbortController(); // for a tunnel that is not open yet
  private socket?: Socket;
  private owed?: Buffer; // the ping that waits for its pong
  private problem = '';
  private ended?: McpError;
  private closing?: Promise<void>;

  constructor(serverName: string, config: Json, maxBytes: number, limits = DEFAULT_LIMITS) {
    const { url, headers } = checkedSocket(serverName, config);
    this.url = url;
    this.ownHeaders = headers;
    this.limits = limits;
    this.reader = new MessageReader(Math.min(maxBytes, MAX_MESSAGE_BYTES));
    this.who = `MCP server "${serverName}" (${asSocket(url.origin)})`;
  }

  // ── Opening: a request that asks to leave HTTP ──

  start(events: TransportEvents): Promise<void> {
    this.events = events;
    return new Promise((resolve, reject) => {
      if (this.ended) return reject(this.ended);
      const key = randomBytes(16).toString('base64');
      let opening: ClientRequest;
      try {
        opening = this.open(key);
      } catch (error) {
        return reject(this.unreachable(error as Error)); // a proxy that cannot be one
      }
      this.opening = opening;
      const timer = setTimeout(() => this.giveUp(this.tooLate()), this.limits.connectMs);
      const fail = (error: McpError) => {
        clearTimeout(timer);
        reject(error);
      };
      opening.on('error', (error) => fail(this.ended ?? this.unreachable(error)));
      opening.on('response', (response) => {
        response.destroy();
        fail(this.refusal(response)); // a redirect, too: its target would get our headers
      });
      opening.on('upgrade', (response, socket: Socket, head) => {
        const problem = problemWithAnswer(response, key);
        if (problem) {
          socket.destroy();
          return fail(this.error('protocol', `did not open a WebSocket as it should: ${problem}`));
        }
        clearTimeout(timer);
        this.listen(socket, head);
        resolve();
      });
      opening.end();
    });
  }

  /** The connection is ours alone, so there is no agent; or one that makes a tunnel. */
  private open(key: string): ClientRequest {
    const isTls = this.url.protocol === 'https:';
    const proxy = proxyFor(this.url);
    const agent = proxy ? new TunnelAgent(proxy, isTls, false) : false;
    const { signal: stopped } = this.stopped;
    const options: TunnelArgs = { agent, headers: this.headers(key), stopped };
    return (isTls ? https : http).request(this.url, options);
  }

  private giveUp(why?: McpError) {
    this.opening!.destroy(why);
    this.stopped.abort();
  }

  private headers(key: string): HeaderFields {
    return {
      ...this.ownHeaders,
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': key,
      'sec-websocket-protocol': SUBPROTOCOL,
    };
  }

  private tooLate() {
    const limit = `${this.limits.connectMs / 1000} s`;
    return this.error('timeout', `did not open a WebSocket within ${limit}`);
  }

  private unreachable(error: NodeJS.ErrnoException) {
    if (error instanceof McpError) return error;
    if (error instanceof ProxyError) {
      const kind = error.isFinal ? 'config' : 'unreachable';
      return this.error(kind, `cannot be reached: ${error.message}`);
    }
    const isRefused = error.code === 'ECONNREFUSED';
    const why = isRefused ? 'nobody listens there (ECONNREFUSED)' : error.message || error.code;
    return this.error('unreachable', `cannot be reached: ${why}`);
  }

  private refusal({ statusCode: status = 0, headers }: IncomingMessage) {
    if (status === 401 || status === 403) {
      const what = `wants a login (HTTP ${status}); put a token into its "headers"`;
      return new McpError('auth', `${this.who} ${what}`, status);
    }
    if (status >= 300 && status < 400) {
      const onward = `sends us on to ${excerpt(headers.location)}`;
      return this.error('protocol', `${onward}. If that is right, put it into the configuration`);
    }
    const what = `answered HTTP ${status} instead of opening a WebSocket; is its "url" right?`;
    const isBusy = status === 429 || status >= 500;
    return this.error(isBusy ? 'unreachable' : 'protocol', what);
  }

  private listen(socket: Socket, head: Buffer) {
    this.socket = socket;
    socket.setKeepAlive(true, KEEP_ALIVE_MS); // finds out that a peer vanished without a word
    socket.on('data', (chunk) => this.read(chunk));
    socket.on('error', (error) => (this.problem = `: ${error.message}`)); // `close` follows
    for (const sign of ['end', 'close'])
      socket.on(sign, () => this.end('closed', `broke off${this.problem}`));

    if (head.length > 0) socket.unshift(head); // frames that came along with the answer
  }

  // ── Reading ──

  private read(chunk: Buffer): void {
    // Read, but ignored: bytes that stay unread would turn our last frame into a reset.
    if (this.ended) return;
    try {
      for (const { opcode, payload } of this.reader.read(chunk)) {
        this.hear(opcode, payload);
        if (this.ended) return;
      }
    } catch (error) {
      if (!(error instanceof Violation)) throw error;
      const kind = error.code === TOO_BIG ? 'limit' : 'protocol';
      this.end(kind, error.message, error.code);
    }
  }

  private hear(opcode: number, payload: Buffer) {
    if (opcode === PING) return this.answerPing(payload);
    if (opcode === CLOSE) return this.hearGoodbye(payload);
    if (opcode !== TEXT) return; // a pong: we never ping
    passOn(decodeText(payload), this.who, this.events);
  }

  /** While the pipe is full only the last ping counts: else a server that pings and never reads
   *  could fill our memory. */
  private answerPing(payload: Buffer) {
    const socket = this.socket!;
    if (this.closing) return; // nothing may follow our goodbye
    if (!socket.writableNeedDrain) {
      socket.write(encodeFrame(PONG, payload));
      return;
    }
    if (!this.owed) socket.once('drain', () => this.payPong());
    this.owed = payload;
  }

  private payPong() {
    const last = this.owed!;
    this.owed = undefined;
    this.answerPing(last);
  }

  // ── Writing ──

  send(message: Message): Promise<void> {
    const { socket } = this;
    return new Promise((resolve, reject) => {
      if (!socket || this.closing || this.ended) return reject(this.gone());
      if (socket.writableLength > MAX_UNSENT) return reject(notReading(this.who));
      const frame = encodeFrame(TEXT, Buffer.from(JSON.stringify(message)));
      socket.write(frame, (error) => {
        // A write that destroy() cut off is reported as done.
        if (error || socket.destroyed) reject(this.gone());
        else resolve();
      });
    });
  }

  private gone() {
    const what = this.closing ? 'was closed by us' : 'is not connected';
    return this.ended ?? this.error('closed', what);
  }

  // ── Closing: both sides say so, then the server hangs up ──

  close(): Promise<void> {
    this.closing ??= this.sayGoodbye();
    return this.closing;
  }

  private async sayGoodbye(): Promise<void> {
    const stream = this.socket ?? this.opening;
    if (!this.socket) this.ended ??= this.error('closed', 'was closed by us');
    if (!stream || stream.closed) return;
    const gone = new Promise((done) => stream.once('close', done));
    if (!this.socket)
      this.giveUp(this.ended); // still connecting
    else if (!this.ended) this.socket.write(encodeClose(NORMAL));
    this.hangUpSoon();
    await gone;
  }

  private hearGoodbye(payload: Buffer) {
    const { code, reason } = readClose(payload);
    const why = reason ? `${code}: ${excerpt(reason)}` : `${code}`;
    const answer = payload.length > 0 ? code : NORMAL;
    this.end('closed', `closed the connection (${why})`, answer);
  }

  /** Reports the end once, and, if there is a code, tells the server why. */
  private end(kind: ErrorKind, how: string, code?: number) {
    if (this.ended) return;
    const isOurs = this.closing && kind === 'closed';
    this.ended = this.error(kind, isOurs ? 'was closed by us' : how);
    if (code === undefined || this.closing) this.socket!.end();
    else this.socket!.end(encodeClose(code));
    this.hangUpSoon();
    this.events.closed(this.ended);
  }

  private hangUpSoon() {
    setTimeout(() => this.socket?.destroy(), this.limits.goodbyeMs).unref();
  }

  private error(kind: ErrorKind, what: string) {
    return new McpError(kind, `${this.who} ${what}`);
  }
}

/** What is wrong with an answer of 101? It must belong to our request, and promise nothing that we
 *  have not asked for. */
function problemWithAnswer({ headers }: IncomingMessage, key: string): string | undefined {
  const accept = createHash('sha1')
    .update(key + GUID)
    .digest('base64');
  const { upgrade, 'sec-websocket-extensions': extensions } = headers;
  const { 'sec-websocket-protocol': subprotocol = SUBPROTOCOL } = headers;
  if (upgrade?.toLowerCase() !== 'websocket') return `it switched to ${excerpt(upgrade)}`;
  if (headers['sec-websocket-accept'] !== accept)
    return 'its Sec-WebSocket-Accept does not belong to our key';

  if (extensions) return `it uses the extension ${excerpt(extensions)}, which we did not offer`;
  if (subprotocol === SUBPROTOCOL) return undefined;
  return `it speaks ${excerpt(subprotocol)} instead of "${SUBPROTOCOL}"`;
}

const asSocket = (text: string) => text.replace(/\bhttp(s?):\/\//g, 'ws$1://');

/** The rules for http:// and https:// hold for ws:// and wss://, too. */
function checkedSocket(serverName: string, config: Json): ReturnType<typeof checkedAddress> {
  const { url } = config;
  if (typeof url !== 'string' || !/^wss?:\/\//i.test(url)) {
    const wrong = '"url" is not an address that begins with ws:// or wss://';
    throw new McpError('config', `MCP server "${serverName}": ${wrong}`);
  }
  try {
    return checkedAddress(serverName, { ...config, url: url.replace(/^ws/i, 'http') });
  } catch (error) {
    throw new McpError('config', asSocket(textOf(error)));
  }
}
