// post.ts: one question over HTTP, and everything that may go wrong with it.

import type { Readable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import type { ModelEvent } from '../../agent.ts';
import { asObject, copyOf, joinSmall, parseMessage, tooMuchIn } from '../../mcp.ts';
import { readStart, wantedWait, type HeaderFields } from './body.ts';
import { isBusy, Patience } from './patience.ts';
import { isLoopbackHost, ProxyError } from './proxy.ts';
import { sendRequest, type NodeReply } from './send.ts';
import { readEvents } from './sse.ts';

type Trouble = 'config' | 'unreachable' | 'refused' | 'too-long' | 'protocol';

/** No answer. `retry` tells whether it makes sense to ask again, `waitMs` when the server wants to be asked. */
export class ModelError extends Error {
  override name = 'ModelError';
  readonly kind: Trouble;
  readonly status: number | undefined;
  readonly retry: boolean;
  readonly waitMs: number | undefined;

  constructor(
    kind: Trouble,
    message: string,
    more: { status?: number; retry?: boolean; waitMs?: number } = {},
  ) {
    super(message);
    this.kind = kind;
    this.status = more.status;
    this.retry = more.retry ?? false;
    this.waitMs = more.waitMs;
  }
}

// ─── Where to ask ─────────────────────────────────────────────────────────────────────────────────────────────

/** `key` is here to be kept out of messages; the wire has put it into a header itself. */
export type Address = {
  name: string;
  url: URL;
  headers: HeaderFields;
  key: string | undefined;
  silenceMs?: number;
};

export function modelAddress(
  name: string,
  base: string,
  path: string,
  headers: HeaderFields,
  key?: string,
): Address {
  const refuse = (why: string) => new ModelError('config', `the base URL of ${name} ${why}`);
  if (!URL.canParse(base)) throw refuse('is not a URL; write it like http://localhost:11434/v1');
  const url = new URL(base);
  if (!/^https?:$/.test(url.protocol))
    throw refuse(`begins with ${url.protocol}; it must be https: or http:`);
  if (url.username || url.password)
    throw refuse('holds a name or a password; put the key into the environment');
  if (key !== undefined && url.protocol === 'http:' && !isLoopbackHost(url.hostname))
    throw refuse(
      `would send the key to ${url.host} in clear text; use https:, or unset the key if none is needed`,
    );
  // Node would quote a key that does not fit into a header in its error, so it never gets to see one.
  if (key !== undefined && !/^[\x21-\x7e]+$/.test(key))
    throw new ModelError(
      'config',
      `the key for ${name} holds a space or something else no key has; set it again`,
    );
  let end = url.pathname.length; // without the slashes at the end
  while (url.pathname[end - 1] === '/') end--;
  url.pathname = url.pathname.slice(0, end) + path;
  return { name, url, headers: { 'content-type': 'application/json', ...headers }, key };
}

// ─── Ask, and ask again ───────────────────────────────────────────────────────────────────────────────────────

/** Waits, unless it is stopped: then it rejects. */
export type Wait = (ms: number, signal: AbortSignal) => Promise<unknown>;
const usualWait: Wait = (ms, signal) => wait(ms, undefined, { signal });

/** Tries until there is an answer. What was shown cannot be taken back: after the first text there is no second try. */
export async function* queryService(
  to: Address,
  body: unknown,
  signal: AbortSignal,
  read: (reply: NodeReply) => AsyncIterable<ModelEvent>,
  pause: Wait = usualWait,
): AsyncGenerator<ModelEvent> {
  const patience = new Patience();
  for (;;) {
    let shown = false;
    try {
      for await (const event of read(await post(to, body, signal))) {
        shown ||= event.type === 'text';
        yield event;
      }
      return;
    } catch (thrown) {
      signal.throwIfAborted(); // then whatever broke did so because we were told to stop
      const error = thrown instanceof ModelError ? thrown : oddity(to, thrown);
      const ms = shown ? undefined : patience.pauseAfter(error);
      if (ms === undefined) throw givenUp(error, patience);
      yield {
        type: 'note',
        text: `${briefly(error)}; trying again in ${Math.round(ms / 100) / 10} s`,
      };
      await pause(ms, signal).catch(() => signal.throwIfAborted());
    }
  }
}

/** The service has the last word. Who waited for two minutes is told what was tried. */
function givenUp(error: ModelError, { retries, pausedMs }: Patience) {
  const wasBusy = isBusy(error.status) && retries > 0;
  const effort = `queried ${retries + 1} times in ${Math.round(pausedMs / 1000)} s`;
  if (wasBusy) error.message += `; ${effort}, so try again later`;
  return error;
}

/** A list where there should be none, a null … nobody can check for everything. */
function oddity(to: Address, thrown: unknown) {
  const error = new ModelError(
    'protocol',
    `${to.name} sent something that makes no sense: ${thrown}`,
  );
  error.cause = thrown;
  return error;
}

function briefly({ status, message }: ModelError) {
  if (status === undefined) return message;
  return isBusy(status) ? `the model is busy (${status})` : `the model has failed (${status})`;
}

const CONNECT_MS = 20_000; // more than a proxy gets, so that it is named if it is the one who is slow
const SILENCE_MS = 600_000; // a model on your own machine may think for minutes before its first word

export async function post(to: Address, body: unknown, signal: AbortSignal): Promise<NodeReply> {
  // Half an emoji, left where a tool's output was cut, is no legal text: one, and an API refuses us for ever.
  const whole = (value: unknown) =>
    typeof value === 'string' ? value.replace(/\p{Surrogate}/gu, '\ufffd') : value;
  const json = JSON.stringify(body, (_, value) => whole(value));
  const limits = { connectMs: CONNECT_MS, silenceMs: to.silenceMs ?? SILENCE_MS };
  let reply: NodeReply;
  try {
    reply = await sendRequest(to.url, {
      method: 'POST',
      headers: to.headers,
      body: json,
      signal,
      ...limits,
    });
  } catch (error) {
    const message = `cannot reach ${to.name} at ${placeOf(to.url)}: ${reasonOf(error)}`;
    if (error instanceof ProxyError && error.isFinal) throw new ModelError('config', message);
    throw new ModelError('unreachable', message, { retry: true });
  }
  if (reply.status >= 200 && reply.status < 300) return reply;
  if (reply.status >= 300 && reply.status < 400) throw redirected(to, reply);
  throw modelFailure(to, await problemOf(reply), reply.status, reply.headers);
}

/** Without the query, where some put a key. */
function placeOf({ origin, pathname }: URL) {
  return origin + pathname;
}

const UNKNOWN_SIGNER = /SELF_SIGNED|UNABLE_TO_(GET_ISSUER|VERIFY)|CERT_UNTRUSTED/;

/** A system's error has a code, which says it shortest. */
function reasonOf(error: unknown) {
  const { code, message } = error as { code?: string; message?: string };
  const reason = code ?? message ?? String(error);
  // In a company it may be a proxy that opens all letters.
  if (UNKNOWN_SIGNER.test(reason))
    return `${reason}; name the certificate of whoever signed it in NODE_EXTRA_CA_CERTS`;
  return reason;
}

// The target of a redirect would get the key. So we follow none.
function redirected(to: Address, { status, headers, body }: NodeReply) {
  body.destroy();
  const { location = '' } = headers;
  const target = URL.canParse(location, to.url.href)
    ? placeOf(new URL(location, to.url.href))
    : 'nowhere';
  const message = `${to.name} at ${placeOf(to.url)} redirects (${status}) to ${target}; the key is not sent on`;
  return new ModelError('config', `${message}. Correct the base URL`, { status });
}

// ─── What a refusal means ─────────────────────────────────────────────────────────────────────────────────────

type ErrorDetail = {
  message: string;
  type?: string | undefined;
  more?: string;
  requestId?: string | undefined;
};

// By vendor: Anthropic, Anthropic, OpenAI, OpenAI and vLLM, llama.cpp.
const TOO_LONG =
  /prompt is too long|exceed context limit|context_length_exceeded|maximum context|exceed_context/i;
const LENGTH = /max_(completion_|output_)?tokens/i;
const SPENT = /spend_?limit|usage_limit|credit_balance_exhausted|insufficient_quota/i;

export function modelFailure(
  to: Address,
  problem: ErrorDetail,
  status: number,
  headers: NodeReply['headers'] = {},
): ModelError {
  const words = `${problem.type} ${problem.message} ${problem.more}`;
  const isTooLong = status === 413 || (status !== 429 && TOO_LONG.test(words));
  const isSpent = status === 429 && !headers['retry-after'] && SPENT.test(words); // waiting earns no money
  const isTransient = [408, 409, 429].includes(status) || status >= 500;
  const advice = headers['x-should-retry'];
  const retry = !isTooLong && !isSpent && (advice === undefined ? isTransient : advice === 'true');
  const kind = isTooLong ? 'too-long' : isTransient && !isSpent ? 'unreachable' : 'refused';
  const said = `${problem.type ? ` ${problem.type}` : ''}: ${problem.message}`;
  const safe = to.key && to.key.length >= 8 ? said.replaceAll(to.key, '[key]') : said; // some quote what they got
  const id = problem.requestId ?? headers['request-id'] ?? headers['x-request-id'];
  const advised = safe + hint(to, status, words);
  const message = `${to.name} answered ${status}${advised}${id ? ` (request ${id})` : ''}`;
  return new ModelError(kind, message, { status, retry, ...waitIn(headers) });
}

function hint(to: Address, status: number, words: string) {
  if (status === 400 && LENGTH.test(words))
    return '; --max-tokens N sets how long an answer may be';
  if (status === 401 || status === 403) return '; check the key in the environment';
  if (status === 404)
    return `; check the name of the model and the base URL (we asked ${placeOf(to.url)})`;
  return '';
}

/** How long the server wants us to wait. Nobody sits before a silent terminal for an hour, so a minute at most. */
function waitIn(headers: NodeReply['headers']) {
  const wanted = wantedWait(headers);
  return wanted === undefined ? {} : { waitMs: Math.min(wanted, 60_000) };
}

const MAX_PROBLEM_BYTES = 64 * 1024;
const MAX_MESSAGE = 1_000;
const END_MS = 250;
const MAX_ANSWER_BYTES = 64 * 2 ** 20;

/** The body of an error may be anything: JSON of several shapes, a proxy's web page, endless, or nothing at all. */
async function problemOf({ body, statusText }: NodeReply) {
  const text = (await readStart(body, MAX_PROBLEM_BYTES)).trim();
  if (/^<(!doctype|html)/i.test(text)) {
    const title = /<title[^<>]*>([^<]*)/i.exec(text)?.[1]?.trim();
    return {
      message: `a web page instead of an answer${title ? `, "${copyOf(title.slice(0, 200))}"` : ''}`,
    };
  }
  return problemIn(text || statusText || 'no explanation');
}

/** The error in a message: {error: {message, …}}, {error: "…"}, {message: "…"}, {detail: "…"} or plain words. */
export function problemIn(text: string): ErrorDetail {
  const body: Record<string, any> = asObject(parseMessage(text)); // empty for plain words
  const error = body.error ?? body.message ?? body.detail ?? text;
  const word = (value: unknown) =>
    typeof value === 'string' ? copyOf(value.slice(0, MAX_MESSAGE)) : undefined;
  const more = JSON.stringify([error.code, error.details]);
  const message = word(error) ?? word(error.message) ?? word(JSON.stringify(error))!;
  return { message, type: word(error.type), more, requestId: word(body.request_id) };
}

// ─── Reading the answer ───────────────────────────────────────────────────────────────────────────────────────

/** The messages of a streamed answer. A server that does not stream sends the one it has. */
export async function* streamedMessages(to: Address, reply: NodeReply): AsyncGenerator<string> {
  const { headers, body } = reply;
  const type = headers['content-type'] ?? '';
  if (type.includes('text/html'))
    throw new ModelError(
      'protocol',
      `${to.name} at ${placeOf(to.url)} answered with a web page; check the base URL`,
    );
  try {
    const chunks = bounded(body.iterator({ destroyOnReturn: false }));
    if (type.includes('application/json')) yield Buffer.concat(await all(chunks)).toString();
    else for await (const { data } of readEvents(chunks)) yield data;
  } catch (error) {
    if (error instanceof RangeError)
      throw new ModelError('protocol', `${to.name}: ${error.message}`);
    throw cutOff(to, reasonOf(error));
  } finally {
    if (reply.isOver) letEnd(body);
    else body.destroy(); // a service need not go on for a reader that has left
  }
}

/** With the end of its body a connection can be used again, so that gets a moment to come. */
function letEnd(body: Readable) {
  if (body.readableEnded || body.destroyed) return;
  const timer = setTimeout(() => body.destroy(), END_MS);
  body.on('error', () => {});
  body.on('close', () => clearTimeout(timer));
  body.resume();
}

/** An answer without an end would fill our memory, and no model writes that much. */
async function* bounded(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > MAX_ANSWER_BYTES)
      throw new RangeError(`an answer of more than ${MAX_ANSWER_BYTES} bytes`);
    yield chunk;
  }
}

async function all(chunks: AsyncIterable<Uint8Array>) {
  const found: Uint8Array[] = [];
  for await (const chunk of chunks) {
    found.push(chunk);
    joinSmall(found);
  }
  return found;
}

export function cutOff(to: Address, why: string): ModelError {
  return new ModelError('unreachable', `the answer of ${to.name} broke off (${why})`, {
    retry: true,
  });
}

export function parseModelJson(to: Address, text: string): any {
  const tooMuch = tooMuchIn(text);
  if (tooMuch) throw new ModelError('protocol', `${to.name} sent a message with ${tooMuch}`);
  const value = parseMessage(text);
  if (typeof value === 'object' && value !== null) return value;
  throw new ModelError(
    'protocol',
    `${to.name} sent something that is no JSON object: ${copyOf(text.slice(0, 200))}`,
  );
}
