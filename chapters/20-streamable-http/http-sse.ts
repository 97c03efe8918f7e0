// http-sse.ts: the transport of 2024-11-05. One long GET on which everything comes in, and whose
// first event names the address to which everything is sent.

import { McpError, passOn, type Message, type Transport, type TransportEvents } from '../../mcp.ts';
import { readEvents } from '../18-minds/sse.ts';
import {
  resolveAddress,
  isLoginRefusal,
  isSafe,
  loginError,
  readStart,
  timeoutSignal,
  errorPageText,
  type Fetch,
  type HeaderFields,
  type Reply,
} from './reply.ts';

const SEND_MS = 60_000;
// Shorter than a handshake: a server that is not of this kind has another reason to tell.
const START_MS = 5000;
const MAX_ERROR_BYTES = 2 ** 16;

type EventStream = ReturnType<typeof readEvents>;

export class HttpSseTransport implements Transport {
  private who: string;
  private url: URL;
  private headers: HeaderFields;
  private maxBytes: number;
  private fetch: Fetch;
  private endpoint?: URL;
  private end = new AbortController();

  constructor(who: string, url: URL, headers: HeaderFields, maxBytes: number, fetch: Fetch) {
    this.who = who;
    this.url = url;
    this.headers = headers;
    this.maxBytes = maxBytes;
    this.fetch = fetch;
  }

  /** Resolves with the event that names the address. */
  async start(events: TransportEvents): Promise<void> {
    const tooLate = this.error('start', `named no address within ${START_MS / 1000} s`);
    const giveUp = () => this.end.abort(tooLate);
    const limit = setTimeout(giveUp, START_MS);
    try {
      const stream = await this.openStream();
      this.endpoint = await this.readEndpoint(stream);
      void this.readMessages(stream, events);
    } catch (error) {
      this.end.abort(error); // nothing is left open
      throw this.end.signal.reason; // the first of the two
    } finally {
      clearTimeout(limit);
    }
  }

  private async openStream(): Promise<EventStream> {
    const headers = { ...this.headers, accept: 'text/event-stream' };
    const get = { method: 'GET', headers, signal: this.end.signal };
    const reply = await this.fetch(this.who, this.url, get);
    const { status, body } = reply;
    if (isLoginRefusal(status)) throw await this.loginError(reply);
    const isStream = `${reply.headers['content-type']}`.includes('text/event-stream');
    if (status === 200 && isStream) return readEvents(body, { maxEventBytes: this.maxBytes });
    body.destroy();
    throw this.error('start', `has no stream of events (HTTP ${status})`);
  }

  private async readEndpoint(stream: EventStream) {
    // Not `for await`, which would close the stream.
    while (true) {
      const { done, value } = await stream.next();
      if (done) throw this.error('start', 'closed its stream before it named an address');
      if (value.event === 'endpoint') return this.sameOrigin(value.data);
    }
  }

  /** It gets our headers, so it must be the server that we were told of. */
  private sameOrigin(address: string): URL {
    const url = resolveAddress(address, this.url);
    if (url?.origin === this.url.origin) return url;
    const where = url?.origin ?? 'no address';
    throw this.error('protocol', `wants our messages at ${where}, which is somebody else`);
  }

  private async readMessages(stream: EventStream, events: TransportEvents) {
    let why = this.error('closed', 'closed its stream');
    try {
      for await (const { event, data } of stream)
        if (event === 'message') passOn(data, this.who, events);
    } catch (error) {
      if (error instanceof RangeError) why = this.error('limit', `sent too much: ${error.message}`);
    }
    if (this.end.signal.aborted) why = this.error('closed', 'was closed by us');
    this.end.abort();
    events.closed(why);
  }

  async send(message: Message): Promise<void> {
    const headers = { ...this.headers, 'content-type': 'application/json' };
    const signal = timeoutSignal(SEND_MS, this.end.signal);
    const body = JSON.stringify(message);
    const post = { method: 'POST', headers, body, signal, isSafe: isSafe(message) };
    const reply = await this.fetch(this.who, this.endpoint!, post);
    const { status } = reply;
    if (isLoginRefusal(status)) throw await this.loginError(reply);
    const text = await readStart(reply.body, MAX_ERROR_BYTES);
    if (status >= 400)
      throw this.error('lost', `answered with HTTP ${status}: ${errorPageText(text)}`, status);
  }

  private async loginError(reply: Reply) {
    const text = await readStart(reply.body, MAX_ERROR_BYTES);
    return loginError(this.who, reply, text);
  }

  private error(kind: McpError['kind'], what: string, status?: number) {
    return new McpError(kind, `${this.who} ${what}`, status);
  }

  async close(): Promise<void> {
    this.end.abort();
  }
}
