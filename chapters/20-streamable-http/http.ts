// http.ts: Streamable HTTP. Every message is a POST of its own; its answer is one JSON object or a stream of events.
//
// Two eras share it. Up to 2025-11-25 there may be a session, a stream to listen on (GET), and streams that can be
// resumed. Since 2026-07-28 there is none of these, and headers repeat what the body says. The transport tells them
// apart by the body: a message of the later era names its revision.

import { setTimeout as wait } from 'node:timers/promises';
import { asObject, excerpt, isObject, isTooDeep, McpError, textOf } from '../../mcp.ts';
import type { Id, Json, Message, Transport, TransportEvents, TransportFactory } from '../../mcp.ts';
import { readEvents } from '../18-minds/sse.ts';
import { ask, loginError, readStart, readText, within, wordsOf } from './request.ts';
import type { Asking, Headers, Reply } from './request.ts';
import { HttpSseTransport } from './http-sse.ts';
import { LATER_ERRORS, standardHeaders } from './headers.ts';

const NOTICE_MS = 30_000; // for what nobody waits for
const OPENING_MS = 5000; // for the server to take the last word of the handshake
const LISTEN_MS = 500; // for the stream to listen on to be there
const GOODBYE_MS = 1000;
const RETRY_MS = 1000; // before a stream is resumed, unless the server says otherwise
const MIN_RETRY_MS = 100; // even if it says otherwise
const MAX_RETRY_MS = 30_000;
const MAX_RESUMES = 5; // in a row, without news
const MAX_ERROR_BYTES = 2 ** 16;
const MAX_FAILURES = 3; // to reach it, in a row

type Latest = { id?: string; retry?: number };
type Answer = Reply & { isInSession: boolean }; // when it was asked; meanwhile there may be another session
type Open = { controller: AbortController; isModern: boolean; isAnswered?: boolean };

export class HttpTransport implements Transport {
  readonly who: string;
  readonly url: URL;
  readonly maxBytes: number;
  get hasStreamPerRequest(): boolean { return !this.older; }
  private own: Headers;
  private asking: Asking;
  private events!: TransportEvents;
  private session?: string;
  private version?: string; // both learned from the answer to `initialize`
  private opening?: Promise<void>; // the end of the handshake
  private open = new Map<Id, Open>(); // requests that are under way
  private end = new AbortController();
  private listening = new AbortController(); // one for each session
  private closing?: Promise<void>;
  private failures = 0;
  private older?: HttpSseTransport;

  constructor(serverName: string, config: Json, maxBytes: number, asking: Asking = ask) {
    const { url, headers } = checked(serverName, config);
    this.url = url;
    this.own = headers;
    this.asking = asking;
    this.maxBytes = maxBytes;
    this.who = `MCP server "${serverName}" (${url.origin})`;
  }

  async start(events: TransportEvents): Promise<void> { this.events = events; } // nothing is open before it is used

  async send(message: Message, headers: Headers = {}): Promise<void> {
    if (this.older) return this.older.send(message);
    const { id, method, params } = message;
    if (method === 'notifications/cancelled' && this.isCancelled(params?.requestId as Id)) return;
    if (id !== undefined && method !== undefined) return this.request(message as Message & { id: Id }, headers);
    const told = this.tell(message, headers);
    if (method === 'notifications/initialized') this.opening = this.listenAfter(told);
    return told;
  }

  private async tell(message: Message, headers: Headers): Promise<void> {
    const reply = await this.post(message, headers, within(NOTICE_MS, this.end.signal));
    if (reply.status >= 400) await this.refuse(reply, message);
    reply.body.resume(); // nothing of interest, but a connection is free again only when it was read
  }

  /** Every POST has a way of its own. Requests wait here, so that none is there before the handshake is over, and
   *  none makes the server ask something while we do not listen yet. But not for long: some never answer a notice,
   *  and some send not even headers before they have news. */
  private async listenAfter(told: Promise<void>): Promise<void> {
    const { signal } = this.listening;
    const listening = told.then(() => new Promise<void>((isOpen) => void this.listen(signal, isOpen))).catch(() => {});
    await Promise.race([told, wait(OPENING_MS, undefined, { signal, ref: false })]).catch(() => {});
    await Promise.race([listening, wait(LISTEN_MS, undefined, { signal, ref: false })]).catch(() => {});
  }

  /** To close the stream is to cancel, since 2026; before that it means nothing, and the server must be told. */
  private isCancelled(id: Id): boolean {
    const open = this.open.get(id);
    open?.controller.abort();
    return open?.isModern ?? false;
  }

  private async request(message: Message & { id: Id }, headers: Headers): Promise<void> {
    const controller = new AbortController();
    const isModern = 'mcp-method' in standardHeaders(message);
    const { signal } = controller;
    if (message.method === 'initialize') {
      this.session = this.version = undefined;
      this.listening.abort(); // it belongs to the session before
      this.listening = new AbortController();
    }
    this.open.set(message.id, { controller, isModern });
    try {
      await this.opening;
      const reply = await this.post(message, headers, signal);
      if (message.method === 'initialize') await this.keepSession(reply, message, signal);
      else await this.hear(reply, message, isModern, signal);
    } catch (error) {
      throw signal.aborted ? new McpError('aborted', `${this.who} was told to stop`) : this.lost(error);
    } finally {
      this.open.delete(message.id);
    }
  }

  private async post(message: Message, headers: Headers, signal: AbortSignal): Promise<Answer> {
    const accept = 'application/json, text/event-stream';
    const ours = { ...this.headers(accept), 'content-type': 'application/json' };
    const given = { ...ours, ...standardHeaders(message), ...headers };
    const isInSession = this.session !== undefined;
    const reply = await this.ask({ method: 'POST', headers: given, body: JSON.stringify(message), signal });
    return { ...reply, isInSession };
  }

  private headers(accept: string): Headers {
    const headers: Headers = { ...this.own, accept };
    if (this.session !== undefined) headers['mcp-session-id'] = this.session;
    // Before 2025-06-18 there was no such header.
    if (this.version && this.version >= '2025-06-18') headers['mcp-protocol-version'] = this.version;
    return headers;
  }

  private async ask(what: Parameters<Asking>[2]): Promise<Reply> {
    try {
      const reply = await this.asking(this.who, this.url, what);
      this.failures = 0;
      return reply;
    } catch (error) {
      const isUnreachable = error instanceof McpError && error.kind === 'unreachable';
      // Later, and as another kind: of this request we know that it was not received, of others under way we do not.
      const giveUp = () => this.stop(new McpError('closed', textOf(error)));
      if (isUnreachable && ++this.failures === MAX_FAILURES) setImmediate(giveUp);
      throw error;
    }
  }

  // ── Answers ──

  /** The answer to `initialize` names the session and the revision, which every later request must repeat. */
  private async keepSession(reply: Answer, message: Message & { id: Id }, signal: AbortSignal): Promise<void> {
    if ([400, 404, 405].includes(reply.status)) return this.tryOlder(reply, message);
    const session = reply.headers['mcp-session-id'];
    const { message: pass } = this.events;
    const events = { ...this.events, message: (answer: unknown) => {
      const { id, result } = asObject(answer);
      const { protocolVersion } = asObject(result);
      if (id === message.id && typeof protocolVersion === 'string') {
        this.version = protocolVersion;
        if (typeof session === 'string') this.session = session;
      }
      pass(answer);
    } };
    await this.hear(reply, message, false, signal, events);
  }

  private async hear(
    reply: Answer, message: Message & { id: Id }, isModern: boolean, signal: AbortSignal, events = this.events,
  ): Promise<void> {
    const type = (reply.headers['content-type'] ?? '').toLowerCase();
    if (reply.status >= 400) return this.refuse(reply, message);
    if (type.includes('application/json')) {
      const body = this.parse(await readText(this.who, reply.body, this.maxBytes));
      return this.take(body, message, events);
    }
    if (type.includes('text/event-stream')) return this.follow(reply, message.id, isModern, signal, events);
    reply.body.destroy();
    if (reply.status === 202 && !isModern) return; // before 2026 it may come on another stream
    const what = `${type || 'nothing'} instead of JSON or a stream of events (HTTP ${reply.status})`;
    throw this.error('protocol', `answered ${message.method} with ${what}`);
  }

  /** The body of a reply. Without an answer in it there will be none, so nobody should wait for it. */
  private take(body: unknown, { id, method }: Message, events: TransportEvents): void {
    const { id: theirs = null, error } = asObject(body);
    const isOurs = (each: unknown) => asObject(each).id === id && asObject(each).method === undefined;
    // An error under no id: the server could not read ours, but we know what it is about.
    const isAboutOurs = isObject(error) && !isOurs(body) && typeof theirs !== 'number';
    if (isAboutOurs) return events.message({ ...asObject(body), id });
    events.message(body);
    if ([body].flat().some(isOurs)) return;
    throw this.error('protocol', `answered ${method} with something else: ${excerpt(body)}`);
  }

  /** Reads the stream to its end. If there was no answer till then, it may come in the stream's continuation. */
  private async follow(reply: Reply, id: Id, isModern: boolean, signal: AbortSignal, events: TransportEvents) {
    const latest: Latest = {};
    for (let resumes = 0; resumes <= MAX_RESUMES; resumes++) {
      const before = latest.id;
      await this.read(reply, latest, events);
      if (this.open.get(id)?.isAnswered) return;
      if (isModern || !latest.id) break; // there is nothing to go on from
      if (latest.id !== before) resumes = 0;
      if (resumes === MAX_RESUMES) break;
      await wait(pauseBefore(latest, RETRY_MS), undefined, { signal });
      const next = await this.get(latest.id, signal).catch(() => undefined); // it may be back for the next try
      if (next && next.status !== 200) break;
      reply = next ?? reply;
    }
    reply.body.destroy();
    throw this.error('lost', 'closed the stream before it answered');
  }

  private get(lastEventId: string | undefined, signal: AbortSignal): Promise<Reply> {
    const headers = this.headers('text/event-stream');
    // UTF-8, says the standard; and Node wants each byte as a character.
    if (lastEventId) headers['last-event-id'] = Buffer.from(lastEventId).toString('latin1');
    return this.ask({ method: 'GET', headers, signal });
  }

  /** Hands on every message of a stream. */
  private async read(reply: Reply, latest: Latest, events: TransportEvents): Promise<void> {
    try {
      for await (const { event, data } of readEvents(reply.body, { maxEventBytes: this.maxBytes, latest })) {
        if (event !== 'message' || data === '') continue; // not for us, or it only named its id
        const message = this.parse(data);
        for (const each of [message].flat()) this.note(asObject(each));
        events.message(message);
      }
    } catch (error) {
      if (error instanceof McpError) throw error;
      if (error instanceof RangeError) throw this.error('limit', `sent too much: ${error.message}`);
      // Else it was cut off, which is an end like any other.
    }
  }

  /** Before 2026 an answer may come on any stream, not only on that of its request. */
  private note({ id, method }: Json): void {
    const open = this.open.get(id as Id);
    if (!open || open.isAnswered || method !== undefined) return;
    open.isAnswered = true;
    setTimeout(() => open.controller.abort(), GOODBYE_MS).unref(); // its stream should end now; if not, we end it
  }

  /** The stream on which a server of the earlier era may ask and tell what belongs to no request of ours. */
  private async listen(signal: AbortSignal, isOpen: () => void): Promise<void> {
    const latest: Latest = {};
    for (let pause = RETRY_MS; !signal.aborted; pause = Math.min(pause * 2, MAX_RETRY_MS)) {
      try {
        const reply = await this.get(latest.id, signal).finally(isOpen);
        const isOffered = reply.status === 200 && `${reply.headers['content-type']}`.includes('text/event-stream');
        if (!isOffered) return void reply.body.destroy(); // most servers have none
        const startedAt = Date.now();
        await this.read(reply, latest, this.events);
        if (Date.now() - startedAt > MAX_RETRY_MS) pause = RETRY_MS / 2; // that one held for a while
      } catch (error) {
        if (error instanceof McpError && error.kind === 'auth') return; // whoever logs in begins anew
      }
      await wait(pauseBefore(latest, pause), undefined, { signal }).catch(() => {});
    }
  }

  private parse(text: string): unknown {
    text = text.trim(); // also a byte order mark
    if (isTooDeep(text)) throw this.error('limit', 'sent a message that is nested too deeply');
    try {
      return JSON.parse(text);
    } catch {
      throw this.error('protocol', `sent something that is not JSON: ${excerpt(text)}`);
    }
  }

  // ── Refusals ──

  private async refuse(reply: Answer, message: Message, pass = this.events.message): Promise<void> {
    const { status, headers } = reply;
    const text = await readStart(reply.body, MAX_ERROR_BYTES);
    if (status === 401 || status === 403) throw loginError(this.who, reply, text);
    const isExpired = reply.isInSession && (status === 404 || (status === 400 && /session/i.test(text)));
    if (isExpired) throw this.error('expired', `has forgotten our session (HTTP ${status})`);
    const answer = parsed(text);
    // The answer to this request, whatever id it names: it came in reply to it.
    // (Not if it came in reply to our answer: the id in that one is the server's.)
    const isRequest = message.id !== undefined && message.method !== undefined;
    const isAnswer = isRequest && isObject(answer) && isObject(answer.error);
    if (isAnswer) return pass({ ...answer, jsonrpc: '2.0', id: message.id });
    const isBusy = status === 429 || status === 503;
    const later = headers['retry-after']?.slice(0, 50).replace(/^\d+$/, '$& s');
    const kind = isBusy ? 'unreachable' : status >= 500 ? 'lost' : 'protocol';
    const words = `${wordsOf(text)}${later ? `; it asks us to wait: ${later}` : ''}`;
    throw this.error(kind, `answered ${message.method ?? 'our answer'} with HTTP ${status}: ${words}`);
  }

  /** Servers of 2024 know two addresses instead of one. Whoever refuses `initialize` may be one, unless it gives a
   *  reason that only servers of the later era know. */
  private async tryOlder(reply: Answer, message: Message): Promise<void> {
    let answer: unknown; // the refusal, if it is a message
    const keep = (refusal: unknown) => void (answer = refusal);
    const refusal = await this.refuse(reply, message, keep).catch((error: Error) => error);
    const older = new HttpSseTransport(this.who, this.url, this.own, this.maxBytes, this.asking);
    this.end.signal.addEventListener('abort', () => void older.close()); // also while it starts
    try {
      if (LATER_ERRORS.includes(asObject(asObject(answer).error).code)) throw refusal;
      await older.start({ ...this.events, closed: (why) => this.stop(why) });
    } catch {
      await older.close();
      if (refusal) throw refusal;
      return this.events.message(answer);
    }
    this.older = older;
    await older.send(message);
  }

  private lost(error: unknown): Error {
    return error instanceof McpError ? error : this.error('lost', `broke off: ${textOf(error)}`);
  }

  private error(kind: McpError['kind'], what: string): McpError { return new McpError(kind, `${this.who} ${what}`); }

  private stop(why: Error): void {
    if (this.end.signal.aborted) return; // the end is told once
    this.end.abort();
    this.listening.abort();
    for (const { controller } of this.open.values()) controller.abort();
    this.events?.closed(why);
  }

  close(): Promise<void> { return (this.closing ??= this.sayGoodbye()); }

  private async sayGoodbye(): Promise<void> {
    const isOver = this.end.signal.aborted;
    this.stop(this.error('closed', 'was closed by us'));
    if (this.session !== undefined && !isOver) {
      const signal = AbortSignal.timeout(GOODBYE_MS);
      const goodbye = this.ask({ method: 'DELETE', headers: this.headers('*/*'), signal });
      await goodbye.then(({ body }) => body.resume(), () => {});
    }
  }
}

/** What the server wants, but neither no pause at all nor one that is too long for a timer. */
function pauseBefore({ retry }: Latest, ours: number): number {
  return Math.min(Math.max(retry ?? ours, MIN_RETRY_MS), 2 ** 31 - 1);
}

function parsed(text: string): unknown {
  try {
    return isTooDeep(text.trim()) ? undefined : JSON.parse(text.trim());
  } catch {
    return undefined;
  }
}

export const isLoopback = ({ hostname }: URL) => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
/** What is sent there in clear text can be read on the way. */
export const isExposed = (url: URL) => url.protocol === 'http:' && !isLoopback(url);

/** The address and headers of a configuration, or an error that names what is wrong with them. */
export function checked(serverName: string, config: Json): { url: URL; headers: Headers } {
  const wrong = (what: string) => new McpError('config', `MCP server "${serverName}": ${what}`);
  const { url: text, headers = {} } = config;
  const url = typeof text === 'string' && URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol))
    throw wrong('"url" is not an address that begins with http:// or https://');
  if (url.username || url.password) throw wrong('"url" holds a password; put it into "headers"');
  url.hash = '';
  const isFit = ([name, value]: [string, unknown]) =>
    /^[\w-]+$/.test(name) && typeof value === 'string' && /^[\t\x20-\x7e]*$/.test(value);
  if (!isObject(headers) || !Object.entries(headers).every(isFit)) throw wrong('"headers" is not a mapping of strings');
  const pairs = Object.entries(headers as Headers).map(([name, value]) => [name.toLowerCase(), value]);
  const lower: Headers = Object.fromEntries(pairs);
  if (lower.authorization && isExposed(url))
    throw wrong('its "headers" hold a secret, and http:// would show it to everybody; use https://');
  return { url, headers: lower };
}

/** By the `type` of a configuration. `askingFor` says who makes the requests to a server. */
export function httpTransportsBy(askingFor: (...given: Parameters<typeof checked>) => Asking) {
  const http: TransportFactory = (serverName, config, maxBytes) =>
    new HttpTransport(serverName, config, maxBytes, askingFor(serverName, config));
  const sse: TransportFactory = (serverName, config, maxBytes) => {
    const { url, headers } = checked(serverName, config);
    const who = `MCP server "${serverName}" (${url.origin})`;
    return new HttpSseTransport(who, url, headers, maxBytes, askingFor(serverName, config));
  };
  return { http, 'streamable-http': http, sse };
}

export const httpTransports: Record<string, TransportFactory> = httpTransportsBy(() => ask);
