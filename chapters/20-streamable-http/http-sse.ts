// http-sse.ts: the transport of 2024-11-05. One long GET on which all comes in, and whose first event names the address
// to which everything is sent.

import { isTooDeep, McpError, type Message, type Transport, type TransportEvents } from '../../mcp.ts';
import { readEvents } from '../18-minds/sse.ts';
import { ask, loginError, readStart, within, wordsOf, type Asking, type Headers } from './request.ts';

const SEND_MS = 60_000;
const START_MS = 5000; // shorter than a handshake: whoever is no such server has another reason to tell
const MAX_ERROR_BYTES = 2 ** 16;

export class HttpSseTransport implements Transport {
  private who: string;
  private url: URL;
  private headers: Headers;
  private maxBytes: number;
  private asking: Asking;
  private endpoint?: URL;
  private end = new AbortController();

  constructor(who: string, url: URL, headers: Headers, maxBytes: number, asking: Asking = ask) {
    this.who = who;
    this.url = url;
    this.headers = headers;
    this.maxBytes = maxBytes;
    this.asking = asking;
  }

  /** Resolves with the event that names the address. */
  async start(events: TransportEvents): Promise<void> {
    const tooLate = this.error('start', `named no address within ${START_MS / 1000} s`);
    const limit = setTimeout(() => this.end.abort(tooLate), START_MS).unref();
    try {
      void this.read(await this.open(), events);
    } catch (error) {
      this.end.abort(error); // nothing is left open
      throw this.end.signal.reason; // the first of the two
    } finally {
      clearTimeout(limit);
    }
  }

  private async open(): Promise<ReturnType<typeof readEvents>> {
    const headers = { ...this.headers, accept: 'text/event-stream' };
    const what = { method: 'GET', headers, signal: this.end.signal };
    const reply = await this.asking(this.who, this.url, what);
    const { status, headers: theirs, body } = reply;
    if (status === 401 || status === 403) throw loginError(this.who, reply, await readStart(body, MAX_ERROR_BYTES));
    if (status !== 200 || !`${theirs['content-type']}`.includes('text/event-stream')) {
      body.destroy();
      throw this.error('start', `has no stream of events (HTTP ${status})`);
    }
    const stream = readEvents(body, { maxEventBytes: this.maxBytes });
    while (!this.endpoint) { // not `for await`, which would close the stream
      const { done, value } = await stream.next();
      if (done) throw this.error('start', 'closed its stream before it named an address');
      if (value.event === 'endpoint') this.endpoint = this.sameOrigin(value.data);
    }
    return stream;
  }

  /** It gets our headers, so it must be the server that we were told of. */
  private sameOrigin(address: string): URL {
    const url = URL.canParse(address, this.url.href) ? new URL(address, this.url) : undefined;
    if (url?.origin === this.url.origin) return url;
    throw this.error('protocol', `wants our messages at ${url?.origin ?? 'no address'}, which is somebody else`);
  }

  private async read(stream: ReturnType<typeof readEvents>, events: TransportEvents): Promise<void> {
    let why = this.error('closed', 'closed its stream');
    try {
      for await (const { event, data } of stream) {
        if (event !== 'message') continue;
        if (isTooDeep(data.trim())) throw new RangeError('a message that is nested too deeply');
        events.message(parsed(data));
      }
    } catch (error) {
      if (error instanceof RangeError) why = this.error('limit', `sent too much: ${error.message}`);
    }
    if (this.end.signal.aborted) why = this.error('closed', 'was closed by us');
    this.end.abort();
    events.closed(why);
  }

  async send(message: Message): Promise<void> {
    const headers = { ...this.headers, 'content-type': 'application/json' };
    const signal = within(SEND_MS, this.end.signal);
    const what = { method: 'POST', headers, body: JSON.stringify(message), signal };
    const reply = await this.asking(this.who, this.endpoint!, what);
    const { status, body } = reply;
    const text = await readStart(body, MAX_ERROR_BYTES);
    if (status === 401 || status === 403) throw loginError(this.who, reply, text);
    if (status >= 400) throw this.error('lost', `answered with HTTP ${status}: ${wordsOf(text)}`);
  }

  private error(kind: McpError['kind'], what: string): McpError { return new McpError(kind, `${this.who} ${what}`); }

  async close(): Promise<void> { this.end.abort(); }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text; // the connection knows it for noise
  }
}
