// streamable.ts: Streamable HTTP. Every message is a POST of its own; its answer is one JSON object or a
// stream of events.
//
// Two eras share it. Up to 2025-11-25 there may be a session, a stream to listen on (GET), and
// streams that can be resumed. Since 2026-07-28 there is none of these, and headers repeat what the
// body says. The transport tells them apart by the body: a message of the later era names its
// revision.

import {
  asObject,
  excerpt,
  isExposed,
  isObject,
  MAPPING,
  McpError,
  meantId,
  now,
  parseMessage,
  passOn,
  ANY_TEXT,
  textOf,
  tooMuchIn,
} from '../../mcp.ts';
import type { Id, Json, Message, Transport, TransportEvents, TransportFactory } from '../../mcp.ts';
import { withoutKeys } from '../17-the-gate/addresses.ts';
import { holdsSecret } from '../17-the-gate/safe-text.ts';
import { EventParser, type Latest } from '../18-minds/sse.ts';
import {
  isLoginRefusal,
  isSafe,
  loginError,
  readChunks,
  readStart,
  readWholeBody,
  timeoutSignal,
  errorPageText,
  wantedWait,
  type Body,
  type Fetch,
  type FetchOptions,
  type HeaderFields,
  type Reply,
} from './reply.ts';
import { HttpSseTransport } from './http-sse.ts';
import { byteString, LATER_ERRORS, standardHeaders } from './mirrored-headers.ts';
import { doze, sleep } from './pause.ts';

const NOTICE_MS = 30_000; // for a message that has no answer
const HANDSHAKE_END_MS = 5000; // for the server to take the last message of the handshake
const LISTEN_MS = 500; // for the stream to listen on to be there
const GOODBYE_MS = 1000;
const RETRY_MS = 1000; // before a stream is resumed, unless the server says otherwise
const MIN_RETRY_MS = 100; // even if it says otherwise
const MAX_RETRY_MS = 30_000;
const MAX_TIMER_MS = 2 ** 31 - 1; // a longer setTimeout fires at once
const MAX_RESUMES = 5; // in a row, without news
const MAX_ERROR_BYTES = 2 ** 16;
const MAX_FAILURES = 3; // to reach it, in a row

type RequestMessage = Message & { id: Id };
/** `isInSession`: we had a session when we sent the request. By now there may be another. */
type SessionReply = Reply & { isInSession: boolean };
/** A request whose reply we wait for, or read. */
type OpenRequest = {
  message: RequestMessage;
  isModern: boolean; // of the later era
  isAnswered: boolean;
  controller: AbortController;
  signal: AbortSignal;
  newSession?: string; // in the reply to `initialize`
  hangUp?: ReturnType<typeof setTimeout>;
};

class HttpTransport implements Transport {
  readonly who: string;
  readonly url: URL;
  readonly maxBytes: number;
  private configHeaders: HeaderFields;
  private fetch: Fetch;
  private events!: TransportEvents;
  private session?: string;
  private version?: string; // both from the answer to `initialize`
  private handshakeEnd?: Promise<void>;
  private openRequests = new Map<Id, OpenRequest>();
  private oneWay = new Set<AbortController>(); // of messages under way that have no answer
  private end = new AbortController();
  private listening = new AbortController(); // one for each session
  private closing?: Promise<void>;
  private failures = 0;
  private older?: HttpSseTransport;

  constructor(serverName: string, config: Json, maxBytes: number, fetch: Fetch) {
    const { url, headers } = checkedAddress(serverName, config);
    this.url = url;
    this.configHeaders = headers;
    this.fetch = fetch;
    this.maxBytes = maxBytes;
    this.who = `MCP server "${serverName}" (${url.origin})`;
  }

  /** A request has a stream, and headers, of its own; servers of 2024 have one stream for all. */
  get hasStreamPerRequest(): boolean {
    return this.older === undefined;
  }

  async start(events: TransportEvents): Promise<void> {
    this.events = events; // nothing is open before it is used
  }

  async send(message: Message, headers: HeaderFields = {}) {
    if (this.older) return this.older.send(message);
    const { id, method, params } = message;
    if (method === 'notifications/cancelled') {
      const isEnough = this.cancel(params?.requestId as Id);
      if (isEnough) return;
    }
    const isRequest = id !== undefined && method !== undefined;
    if (isRequest) return this.request(message as RequestMessage, headers);
    const sent = this.sendOneWay(message, headers);
    const isLastOfHandshake = method === 'notifications/initialized';
    if (isLastOfHandshake) this.handshakeEnd = this.listenAfter(sent);
    return sent;
  }

  // ── Requests ──

  /** A notification, or our answer to a request of the server. */
  private async sendOneWay(message: Message, headers: HeaderFields) {
    const controller = new AbortController();
    this.oneWay.add(controller);
    try {
      const signal = timeoutSignal(NOTICE_MS, controller.signal);
      const reply = await this.post(message, headers, signal);
      if (reply.status >= 400) await this.handleRefusal(reply, message);
      reply.body.resume(); // ignored; but only a body that was read frees its connection
    } finally {
      this.oneWay.delete(controller);
    }
  }

  private async request(message: RequestMessage, headers: HeaderFields) {
    if (message.method === 'initialize') this.forgetSession();
    const controller = new AbortController();
    const { signal } = controller;
    const isModern = 'mcp-method' in standardHeaders(message);
    const request: OpenRequest = { message, isModern, isAnswered: false, controller, signal };
    this.openRequests.set(message.id, request);
    try {
      await this.handshakeEnd;
      const reply = await this.post(message, headers, signal);
      await this.readReply(reply, request);
    } catch (error) {
      if (signal.aborted) throw this.error('aborted', 'was told to stop');
      throw error instanceof McpError ? error : this.error('lost', `broke off: ${textOf(error)}`);
    } finally {
      clearTimeout(request.hangUp);
      this.openRequests.delete(message.id);
    }
  }

  private post(
    message: Message,
    headers: HeaderFields,
    signal: AbortSignal,
  ): Promise<SessionReply> {
    const body = JSON.stringify(message);
    const all = {
      ...this.headers('application/json, text/event-stream'),
      'content-type': 'application/json',
      ...standardHeaders(message),
      ...headers,
    };
    return this.fetchReply({
      method: 'POST',
      headers: all,
      body,
      signal,
      isSafe: isSafe(message),
    });
  }

  private openStream(lastEventId: string | undefined, signal: AbortSignal): Promise<SessionReply> {
    const headers = this.headers('text/event-stream');
    if (lastEventId) headers['last-event-id'] = byteString(lastEventId); // UTF-8, says the standard
    return this.fetchReply({ method: 'GET', headers, signal }); // its caller pauses and tries again
  }

  private headers(accept: string) {
    const headers: HeaderFields = { ...this.configHeaders, accept };
    if (this.session !== undefined) headers['mcp-session-id'] = this.session;
    const { version = '' } = this;
    const isRepeated = version >= '2025-06-18'; // before that there was no such header
    if (isRepeated) headers['mcp-protocol-version'] = version;
    return headers;
  }

  private async fetchReply(options: FetchOptions): Promise<SessionReply> {
    const isInSession = this.session !== undefined;
    try {
      const reply = await this.fetch(this.who, this.url, options);
      this.failures = 0;
      return Object.assign(reply, { isInSession });
    } catch (error) {
      if (isUnreachable(error)) this.countFailure(error);
      throw error;
    }
  }

  private countFailure({ message }: McpError) {
    this.failures++;
    if (this.failures !== MAX_FAILURES) return;
    // As another kind: this request was not received, but the others under way may have been.
    // And later, so that this one fails with its own error.
    const why = new McpError('closed', message);
    setTimeout(() => this.stop(why));
  }

  /** Closes the stream of a request. Since 2026 that cancels it, and true means that nothing has to
   *  be sent. Before that it means nothing, and the server must be told; but not of `initialize`,
   *  which must not be cancelled. */
  private cancel(id: Id): boolean {
    const request = this.openRequests.get(id);
    request?.controller.abort();
    if (request?.message.method === 'initialize') return true;
    return request?.isModern ?? false;
  }

  // ── Replies ──

  private async readReply(reply: SessionReply, request: OpenRequest) {
    const { message, isModern } = request;
    const { status, headers } = reply;
    if (message.method === 'initialize') {
      const mayBeOlder = [400, 404, 405].includes(status);
      if (mayBeOlder) return this.tryOlder(reply, message);
      request.newSession = headers['mcp-session-id'] || undefined; // an empty one names none
    }
    if (status >= 400) return this.handleRefusal(reply, message);
    const type = (headers['content-type'] ?? '').toLowerCase();
    if (/[/+]json\b/.test(type)) return this.readBody(await this.wholeBody(reply), request);
    if (type.includes('text/event-stream')) return this.follow(reply, request);
    const isLater = status === 202 && !isModern; // before 2026 it may come on another stream
    const isUnlabelled = !isLater && /^(text\/plain|$)/.test(type); // some forget to say what it is
    const text = isUnlabelled ? await this.wholeBody(reply) : '';
    if (/^\s*\{/.test(text)) return this.readBody(text, request);
    reply.body.destroy();
    if (isLater) return;
    const what = `${type || 'nothing'} instead of JSON or a stream of events (HTTP ${status})`;
    throw this.error('protocol', `answered ${message.method} with ${what}`);
  }

  private wholeBody({ body }: Reply): Promise<string> {
    return readWholeBody(this.who, body, this.maxBytes);
  }

  /** A body must hold the answer, since nothing comes after it. */
  private readBody(text: string, request: OpenRequest) {
    const { id, method } = request.message;
    const body = this.parse(text);
    const { id: theirs, error } = asObject(body);
    // An error under no id, or an odd one: the server could not read ours, but means our request.
    const isOddId = theirs !== id && typeof theirs !== 'number';
    const isOurs = isObject(error) && isOddId;
    this.passOn(isOurs ? { ...asObject(body), id } : body);
    if (request.isAnswered) return;
    throw this.error('protocol', `answered ${method} with something else: ${excerpt(body)}`);
  }

  /** Reads a stream to its end. If the answer was not in it, it may be in its continuation. */
  private async follow(reply: Reply, request: OpenRequest): Promise<void> {
    const { isModern, signal } = request;
    const latest: Latest = {};
    const onMessage = (text: string) => this.passOn(this.parse(text));
    let resumes = 0; // from the same event
    while (true) {
      const before = latest.id;
      await this.readStream(reply.body, latest, onMessage);
      if (request.isAnswered) return;
      if (isModern || !latest.id) break; // there is nothing to go on from
      resumes = latest.id === before ? resumes + 1 : 1;
      if (resumes > MAX_RESUMES) break;
      await sleep(pauseBefore(latest, RETRY_MS), signal);
      signal.throwIfAborted();
      // If it fails, the server may be back for the next try.
      const next = await this.openStream(latest.id, signal).catch(() => undefined);
      reply = next ?? reply;
      if (next && next.status !== 200) break;
    }
    reply.body.destroy();
    throw this.error('lost', 'closed the stream before it answered');
  }

  private async readStream(body: Body, latest: Latest, onMessage: (text: string) => void) {
    const parser = new EventParser({ maxEventBytes: this.maxBytes, latest });
    try {
      await readChunks(body, (chunk) => {
        for (const { event, data } of parser.parse(chunk)) {
          if (this.end.signal.aborted) return; // no message comes after `closed`
          // Other events are not for us, and one without data only names its id.
          const isMessage = event === 'message' && data !== '';
          if (isMessage) onMessage(data);
        }
      });
    } catch (error) {
      if (error instanceof McpError) throw error;
      if (error instanceof RangeError) throw this.error('limit', `sent too much: ${error.message}`);
      // Else it was cut off, which is an end like any other.
    }
  }

  /** What came in reply to a request must be a message. */
  private parse(text: string) {
    const json = text.trim(); // also without a byte order mark
    const tooMuch = tooMuchIn(json);
    if (tooMuch) throw this.error('limit', `sent a message with ${tooMuch}`);
    const message = parseMessage(json);
    const isNoise = /^[^{]/.test(json); // "ping" or "[DONE]" between the messages of a stream
    if (message !== json || isNoise) return message;
    throw this.error('protocol', `sent something that is not JSON: ${excerpt(json)}`);
  }

  private passOn(message: unknown) {
    // One revision has batches. In others the answer is none, and its call must not wait for more.
    const mayBatch = (this.version ?? '2025-03-26') === '2025-03-26';
    const batch = Array.isArray(message) && mayBatch ? message : [message];
    for (const each of batch) this.noteAnswer(asObject(each));
    this.events.message(message);
  }

  /** Before 2026 an answer may come on any stream, not only on that of its request. */
  private noteAnswer({ id, method, result }: Json): void {
    const request = this.openRequests.get(meantId(id, this.openRequests) as Id);
    const isAnswer = method === undefined;
    if (!request || request.isAnswered || !isAnswer) return;
    request.isAnswered = true;
    // Its stream should end now; if not, we end it.
    const hangUp = () => request.controller.abort();
    request.hangUp = setTimeout(hangUp, GOODBYE_MS);
    const isHandshake = request.message.method === 'initialize';
    if (isHandshake) this.keepSession(request, asObject(result));
  }

  // ── The session, and the stream to listen on ──

  /** Every later request must repeat the session and the revision. */
  private keepSession({ newSession }: OpenRequest, { protocolVersion }: Json) {
    if (typeof protocolVersion !== 'string') return;
    this.version = protocolVersion;
    this.session = newSession;
  }

  private forgetSession() {
    this.session = undefined;
    this.version = undefined;
    this.listening.abort(); // it belongs to the old session
    this.listening = new AbortController();
  }

  /** Every POST takes its own way. Requests wait here, so that none overtakes the end of the
   *  handshake, and none makes the server send requests before we listen. But not for long: some
   *  servers never answer a notification, and some send no headers before they have news. */
  private async listenAfter(handshake: Promise<void>): Promise<void> {
    const { signal } = this.listening;
    const listen = () =>
      new Promise<void>((opened) => {
        void this.listen(signal, opened);
      });
    const listening = handshake.then(listen, () => {});
    await settledWithin(HANDSHAKE_END_MS, handshake, signal);
    await settledWithin(LISTEN_MS, listening, signal);
  }

  /** On this stream a server of the earlier era sends what belongs to no request of ours. */
  private async listen(signal: AbortSignal, opened: () => void): Promise<void> {
    const latest: Latest = {};
    const onMessage = (text: string) => this.passOnUnrequested(text);
    let pauseMs = RETRY_MS;
    while (!signal.aborted) {
      const openedAt = now();
      try {
        const reply = await this.openStream(latest.id, signal).finally(opened);
        if (!isEventStream(reply)) return void reply.body.destroy(); // most servers have none
        await this.readStream(reply.body, latest, onMessage);
      } catch (error) {
        const isLogin = error instanceof McpError && error.kind === 'auth';
        if (isLogin) return; // after the login there is another handshake
      }
      const hasHeld = now() - openedAt > MAX_RETRY_MS;
      if (hasHeld) pauseMs = RETRY_MS;
      await sleep(pauseBefore(latest, pauseMs), signal);
      pauseMs = Math.min(pauseMs * 2, MAX_RETRY_MS);
    }
  }

  /** Here no call can fail, so what cannot be passed on is reported. */
  private passOnUnrequested(text: string) {
    const message = (parsed: unknown) => this.passOn(parsed);
    passOn(text, this.who, { ...this.events, message });
  }

  // ── Refusals ──

  /** A JSON-RPC error in the body is the answer to a request; everything else is thrown. */
  private async handleRefusal(
    reply: SessionReply,
    message: Message,
    onAnswer = this.events.message,
  ) {
    const { status } = reply;
    const text = await readStart(reply.body, MAX_ERROR_BYTES);
    if (isLoginRefusal(status)) throw loginError(this.who, reply, text);
    const saysExpired = status === 404 || (status === 400 && /session/i.test(text));
    if (saysExpired && reply.isInSession)
      throw this.error('expired', `has forgotten our session (HTTP ${status})`);
    // Whatever id it names: it came in reply to this request. (The id of our answer is another
    // matter: that is the server's.)
    const isRequest = message.id !== undefined && message.method !== undefined;
    const body = text.trim();
    const answer = tooMuchIn(body) ? undefined : parseMessage(body);
    const isAnswer = isRequest && isObject(answer) && isObject(answer.error);
    if (isAnswer) return onAnswer({ ...answer, jsonrpc: '2.0', id: message.id });
    throw this.refusal(reply, message, text);
  }

  private refusal({ status, headers }: Reply, message: Message, text: string) {
    const isBusy = status === 429 || status === 503;
    const broken = status >= 500 ? 'lost' : 'protocol';
    const kind = isBusy ? 'unreachable' : broken;
    const later = headers['retry-after']?.slice(0, 50);
    const pause = later?.replace(/^\d+$/, '$& s');
    const wish = pause ? `; it asks us to wait: ${pause}` : '';
    const method = message.method ?? 'our answer';
    // The path may be the mistake. What is behind it may be a key.
    const address = withoutKeys(`${this.url.origin}${this.url.pathname}`);
    const where = status === 404 || status === 405 ? `; is ${address} its address?` : '';
    const what = `answered ${method} with HTTP ${status}: ${errorPageText(text)}${where}${wish}`;
    const waitMs = isBusy ? wantedWait(headers) : undefined;
    return Object.assign(this.error(kind, what, status), { waitMs });
  }

  /** A server that refuses `initialize` may be one of 2024, which has two addresses. But not if it
   *  gives a reason that only servers of the later era know. */
  private async tryOlder(reply: SessionReply, message: Message) {
    let answer: unknown; // the refusal, if it is a message
    const keepAnswer = (refusal: unknown) => void (answer = refusal);
    const refusal = await this.handleRefusal(reply, message, keepAnswer).catch(
      (error: Error) => error,
    );
    const { error } = asObject(answer);
    const isLater = LATER_ERRORS.includes(asObject(error).code);
    const older = isLater ? undefined : await this.startOlder();
    if (older) {
      this.older = older;
      return older.send(message);
    }
    if (refusal) throw refusal; // the first one: it explains more than that of the older way
    this.events.message(answer);
  }

  private async startOlder() {
    const { who, url, configHeaders, maxBytes } = this;
    const older = new HttpSseTransport(who, url, configHeaders, maxBytes, this.fetch);
    this.end.signal.addEventListener('abort', () => void older.close()); // also while it starts
    try {
      const closed = (why: Error) => this.stop(why);
      await older.start({ ...this.events, closed });
      return older;
    } catch {
      await older.close();
      return undefined;
    }
  }

  private error(kind: McpError['kind'], what: string, status?: number) {
    return new McpError(kind, `${this.who} ${what}`, status);
  }

  // ── The end ──

  private stop(why: Error) {
    if (this.end.signal.aborted) return; // the end is told once
    this.end.abort();
    this.listening.abort();
    for (const { controller } of this.openRequests.values()) controller.abort();
    for (const controller of this.oneWay) controller.abort();
    this.events?.closed(why);
  }

  close(): Promise<void> {
    this.closing ??= this.sayGoodbye();
    return this.closing;
  }

  private async sayGoodbye(): Promise<void> {
    const isOver = this.end.signal.aborted;
    this.stop(this.error('closed', 'was closed by us'));
    if (isOver || this.session === undefined) return;
    const headers = this.headers('*/*');
    const signal = AbortSignal.timeout(GOODBYE_MS);
    try {
      const { body } = await this.fetchReply({ method: 'DELETE', headers, signal });
      body.resume();
    } catch {} // any reply will do, and also none
  }
}

const isUnreachable = (error: unknown): error is McpError =>
  error instanceof McpError && error.kind === 'unreachable';

const isEventStream = ({ status, headers }: Reply) =>
  status === 200 && `${headers['content-type']}`.includes('text/event-stream');

/** What the server wants, but neither no pause at all nor one that is too long for a timer. */
function pauseBefore({ retry }: Latest, ours: number) {
  const wanted = Math.max(retry ?? ours, MIN_RETRY_MS);
  return Math.min(wanted, MAX_TIMER_MS);
}

/** Resolves when the work is done or has failed, when the time is over, or at the signal. */
async function settledWithin(ms: number, work: Promise<void>, signal: AbortSignal) {
  await Promise.race([work, doze(ms, signal)]).catch(() => {});
}

// ─── The configuration ───────────────────────────────────────────────────────────────────────────

// By its name, in a header or a query; `fillIn` looks at where a value comes from.
const SECRET_NAME = new RegExp(
  'auth|bearer|token|key|secret|credential|cookie|session|pass(w|code|phrase)|pwd' +
    '|sig(nature)?$|(^|[-_])(pass|pat|jwt)$',
  'i',
);
const SECRET_VALUE = /^(basic|token|apikey) \S/i;
const inClear = (where: string) =>
  `its ${where} holds a secret, and http:// would show it to everybody; use https://`;

/** The address and headers of a configuration, or an error that names what is wrong with them. */
export function checkedAddress(
  serverName: string,
  config: Json,
): { url: URL; headers: HeaderFields } {
  const wrong = (what: string) => new McpError('config', `MCP server "${serverName}": ${what}`);
  const url = addressOf(config);
  const isHttp = /^https?:$/.test(`${url?.protocol}`);
  if (!url || !isHttp) throw wrong('"url" is not an address that begins with http:// or https://');
  if (url.username || url.password) throw wrong('"url" holds a password; put it into "headers"');
  url.hash = '';
  const headers = headersIn(config);
  if (!headers) throw wrong('"headers" is not a mapping of strings');
  const secret = isExposed(url) && secretIn(url, headers);
  if (secret) throw wrong(inClear(secret));
  return { url, headers };
}

/** Where there is one: what is called like a secret, or looks like one. */
function secretIn({ pathname, search }: URL, headers: HeaderFields) {
  const looksSecret = (text: string) => holdsSecret(text) || SECRET_VALUE.test(text);
  const isSecret = ([name, value]: [string, string]) =>
    SECRET_NAME.test(name) || looksSecret(value);
  const header = Object.entries(headers).find(isSecret);
  if (header) return `header ${excerpt(header[0])}`;
  // A path may have parameters, too (;jsessionid=…), and a query may have ";" between them.
  const parts = new URLSearchParams(`${pathname}${search}`.replace(/[?;]/g, '&'));
  const [path = [], ...named] = [...parts];
  const isInAddress = path.some(looksSecret) || named.some(isSecret);
  return isInAddress ? '"url"' : undefined;
}

function addressOf({ url }: Json) {
  const isAddress = typeof url === 'string' && URL.canParse(url);
  return isAddress ? new URL(url) : undefined;
}

/** With names in lower case: ours replace those of the same name. */
function headersIn({ headers = {} }: Json) {
  if (!isObject(headers)) return undefined;
  const lower: HeaderFields = {};
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value !== 'string') return undefined;
    const isFit = /^[\w-]+$/.test(name) && /^[\t\x20-\x7e]*$/.test(value);
    if (!isFit) return undefined;
    lower[name.toLowerCase()] = value;
  }
  return lower;
}

type FetchFor = (serverName: string, config: Json) => Fetch;

/** By the `type` of a configuration. `fetchFor` says who makes the requests to a server. */
export function httpTransportsBy(fetchFor: FetchFor) {
  const http: TransportFactory = (serverName, config, maxBytes) =>
    new HttpTransport(serverName, config, maxBytes, fetchFor(serverName, config));
  const sse: TransportFactory = (serverName, config, maxBytes) => {
    const { url, headers } = checkedAddress(serverName, config);
    const who = `MCP server "${serverName}" (${url.origin})`;
    const fetch = fetchFor(serverName, config);
    return new HttpSseTransport(who, url, headers, maxBytes, fetch);
  };
  http.words = sse.words = { url: ANY_TEXT, headers: MAPPING };
  return { http, 'streamable-http': http, sse };
}
