// post.ts: one question over HTTP, and everything that may go wrong with it.
//
// It goes by fetch, which is short and has two limits in Node 20 that no option lifts: it gives up after 300 s of
// silence (so we always stream), and it knows nothing of HTTPS_PROXY. node:https would be the way out of both.

import { setTimeout as wait } from 'node:timers/promises';
import type { ModelEvent } from '../../agent.ts';
import { joinSmall, tooMuchIn } from '../../mcp.ts';
import { readEvents } from './sse.ts';

export type Trouble = 'config' | 'unreachable' | 'refused' | 'too-long' | 'protocol';

/** No answer. `retry` tells whether it makes sense to ask again, `waitMs` when the server wants to be asked. */
export class ModelError extends Error {
  override name = 'ModelError';
  readonly kind: Trouble;
  readonly status: number | undefined;
  readonly retry: boolean;
  readonly waitMs: number | undefined;

  constructor(kind: Trouble, message: string, more: { status?: number; retry?: boolean; waitMs?: number } = {}) {
    super(message);
    this.name = 'ModelError';
    this.kind = kind;
    this.status = more.status;
    this.retry = more.retry ?? false;
    this.waitMs = more.waitMs;
  }
}

// ─── Where to ask ─────────────────────────────────────────────────────────────────────────────────────────────

/** `key` is here to be kept out of messages; the wire has put it into a header itself. */
export type Address = { name: string; url: URL; headers: Fields; key: string | undefined };
type Fields = Record<string, string>;

export function addressOf(name: string, base: string, path: string, headers: Fields, key?: string): Address {
  const refuse = (why: string) => new ModelError('config', `the base URL of ${name} ${why}`);
  if (!URL.canParse(base)) throw refuse('is not a URL; write it like http://localhost:11434/v1');
  const url = new URL(base);
  if (!/^https?:$/.test(url.protocol)) throw refuse(`begins with ${url.protocol}; it must be https: or http:`);
  if (url.username || url.password) throw refuse('holds a name or a password; put the key into the environment');
  if (key !== undefined && url.protocol === 'http:' && !isLoopback(url.hostname))
    throw refuse(`would send the key to ${url.host} in clear text; use https:, or unset the key if none is needed`);
  // fetch would quote a key that does not fit into a header in its error, so it never gets to see one.
  if (key !== undefined && !/^[\x21-\x7e]+$/.test(key))
    throw new ModelError('config', `the key for ${name} holds a space or something else no key has; set it again`);
  let end = url.pathname.length; // without the slashes at the end
  while (url.pathname[end - 1] === '/') end--;
  url.pathname = url.pathname.slice(0, end) + path;
  return { name, url, headers: { 'content-type': 'application/json', ...headers }, key };
}

function isLoopback(host: string): boolean {
  return host === '[::1]' || /^127(\.\d+){3}$/.test(host) || /^(.+\.)?localhost$/.test(host);
}

// ─── Ask, and ask again ───────────────────────────────────────────────────────────────────────────────────────

const RETRIES = 2;

/** Tries until there is an answer. What was shown cannot be taken back: after the first text there is no second try. */
export async function* queryService(
  to: Address,
  body: unknown,
  signal: AbortSignal,
  read: (response: Response) => AsyncIterable<ModelEvent>,
): AsyncGenerator<ModelEvent> {
  for (let retries = 0; ; retries++) {
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
      if (!error.retry || shown || retries === RETRIES) throw error;
      const ms = error.waitMs ?? Math.min(500 * 2 ** retries, 8_000) * (1 - Math.random() / 4); // not all at once
      yield { type: 'note', text: `${briefly(error)}; trying again in ${Math.round(ms / 100) / 10} s` };
      await wait(ms, undefined, { signal }).catch(() => signal.throwIfAborted());
    }
  }
}

/** A list where there should be none, a null … nobody can check for everything. */
function oddity(to: Address, thrown: unknown): ModelError {
  const error = new ModelError('protocol', `${to.name} sent something that makes no sense: ${thrown}`);
  error.cause = thrown;
  return error;
}

function briefly({ status, message }: ModelError): string {
  if (status === undefined) return message;
  return [429, 503, 529].includes(status) ? `the model is busy (${status})` : `the model has failed (${status})`;
}

async function post(to: Address, body: unknown, signal: AbortSignal): Promise<Response> {
  // Half an emoji, left where a tool's output was cut, is no legal text: one, and an API refuses us for ever.
  const whole = (value: unknown) => (typeof value === 'string' ? value.replace(/\p{Surrogate}/gu, '\ufffd') : value);
  const json = JSON.stringify(body, (_, value) => whole(value));
  let response: Response;
  try {
    response = await fetch(to.url, { method: 'POST', headers: to.headers, body: json, signal, redirect: 'manual' });
  } catch (error) {
    const message = `cannot reach ${to.name} at ${placeOf(to.url)}: ${reasonOf(error)}`;
    throw new ModelError('unreachable', message, { retry: true });
  }
  if (response.ok) return response;
  if (response.status >= 300 && response.status < 400) throw redirected(to, response);
  throw failure(to, await problemOf(response), response.status, response.headers);
}

/** Without the query, where some put a key. */
function placeOf({ origin, pathname }: URL): string {
  return origin + pathname;
}

/** fetch only says "fetch failed"; what has happened stands in the cause. */
function reasonOf(error: unknown): string {
  const { cause, message } = error as { cause?: { code?: string; message?: string }; message?: string };
  const code = cause?.code ?? cause?.message ?? message ?? String(error);
  return code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT' ? `${code}, silence for 300 s` : code;
}

// Where a redirect leads to another host, fetch drops `authorization` but takes `x-api-key` along. So we follow none.
function redirected(to: Address, { status, headers }: Response): ModelError {
  const location = headers.get('location') ?? '';
  const target = URL.canParse(location, to.url.href) ? placeOf(new URL(location, to.url.href)) : 'nowhere';
  const message = `${to.name} at ${placeOf(to.url)} redirects (${status}) to ${target}; the key is not sent on`;
  return new ModelError('config', `${message}. Correct the base URL`, { status });
}

// ─── What a refusal means ─────────────────────────────────────────────────────────────────────────────────────

type Problem = { message: string; type?: string | undefined; more?: string; requestId?: string | undefined };

// By vendor: Anthropic, Anthropic, OpenAI, OpenAI and vLLM, llama.cpp.
const TOO_LONG = /prompt is too long|exceed context limit|context_length_exceeded|maximum context|exceed_context/i;
const SPENT = /spend_?limit|usage_limit|credit_balance_exhausted|insufficient_quota/i;

export function failure(to: Address, problem: Problem, status: number, headers: Headers = new Headers()): ModelError {
  const words = `${problem.type} ${problem.message} ${problem.more}`;
  const isTooLong = status === 413 || (status !== 429 && TOO_LONG.test(words));
  const isSpent = status === 429 && !headers.has('retry-after') && SPENT.test(words); // waiting earns no money
  const isTransient = [408, 409, 429].includes(status) || status >= 500;
  const advice = headers.get('x-should-retry');
  const retry = !isTooLong && !isSpent && (advice === null ? isTransient : advice === 'true');
  const kind = isTooLong ? 'too-long' : isTransient && !isSpent ? 'unreachable' : 'refused';
  const said = `${problem.type ? ` ${problem.type}` : ''}: ${problem.message}`;
  const safe = to.key && to.key.length >= 8 ? said.replaceAll(to.key, '[key]') : said; // some quote what they got
  const id = problem.requestId ?? headers.get('request-id') ?? headers.get('x-request-id');
  const message = `${to.name} answered ${status}${safe}${hint(to, status)}${id ? ` (request ${id})` : ''}`;
  return new ModelError(kind, message, { status, retry, ...waitIn(headers) });
}

function hint(to: Address, status: number): string {
  if (status === 401 || status === 403) return '; check the key in the environment';
  if (status === 404) return `; check the name of the model and the base URL (we asked ${placeOf(to.url)})`;
  return '';
}

/** How long the server wants us to wait. Nobody sits before a silent terminal for an hour, so a minute at most. */
function waitIn(headers: Headers): { waitMs?: number } {
  const after = headers.get('retry-after') ?? '';
  const inMs = Number(headers.get('retry-after-ms') ?? NaN);
  const candidates = [inMs, after === '' ? NaN : Number(after) * 1000, Date.parse(after) - Date.now()];
  const ms = candidates.find((candidate) => candidate >= 0);
  return ms === undefined ? {} : { waitMs: Math.min(ms, 60_000) };
}

const MAX_PROBLEM_BYTES = 64 * 1024;
const MAX_MESSAGE = 1_000;
const MAX_ANSWER_BYTES = 64 * 2 ** 20;

/** The body of an error may be anything: JSON of several shapes, a proxy's web page, endless, or nothing at all. */
async function problemOf(response: Response): Promise<Problem> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of response.body ?? []) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > MAX_PROBLEM_BYTES) break;
    }
  } catch {
    // What has arrived must do.
  }
  const text = Buffer.concat(chunks).subarray(0, MAX_PROBLEM_BYTES).toString().trim();
  if (/^<(!doctype|html)/i.test(text)) {
    const title = /<title[^<>]*>([^<]*)/i.exec(text)?.[1]?.trim();
    return { message: `a web page instead of an answer${title ? `, "${title.slice(0, 200)}"` : ''}` };
  }
  return problemIn(text || response.statusText || 'no explanation');
}

/** The error in a message: {error: {message, …}}, {error: "…"}, {message: "…"}, {detail: "…"} or plain words. */
export function problemIn(text: string): Problem {
  let body;
  try {
    body = JSON.parse(text);
  } catch {
    // Plain words, then.
  }
  const error = body?.error ?? body?.message ?? body?.detail ?? text;
  const word = (value: unknown) => (typeof value === 'string' ? value.slice(0, MAX_MESSAGE) : undefined);
  const more = JSON.stringify([error.code, error.details]);
  const message = word(error) ?? word(error.message) ?? JSON.stringify(error).slice(0, MAX_MESSAGE);
  return { message, type: word(error.type), more, requestId: word(body?.request_id) };
}

// ─── Reading the answer ───────────────────────────────────────────────────────────────────────────────────────

/** The messages of a streamed answer. A server that does not stream sends the one it has. */
export async function* messagesOf(to: Address, response: Response): AsyncGenerator<string> {
  const type = response.headers.get('content-type') ?? '';
  if (type.includes('text/html'))
    throw new ModelError('protocol', `${to.name} at ${placeOf(to.url)} answered with a web page; check the base URL`);
  try {
    if (!response.body) return;
    const body = bounded(response.body);
    if (type.includes('application/json')) yield Buffer.concat(await all(body)).toString();
    else for await (const { data } of readEvents(body)) yield data;
  } catch (error) {
    if (error instanceof RangeError) throw new ModelError('protocol', `${to.name}: ${error.message}`);
    throw cutOff(to, reasonOf(error));
  }
}

/** An answer without an end would fill our memory, and no model writes that much. */
async function* bounded(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > MAX_ANSWER_BYTES) throw new RangeError(`an answer of more than ${MAX_ANSWER_BYTES} bytes`);
    yield chunk;
  }
}

async function all(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array[]> {
  const found: Uint8Array[] = [];
  for await (const chunk of chunks) {
    found.push(chunk);
    joinSmall(found);
  }
  return found;
}

export function cutOff(to: Address, why: string): ModelError {
  return new ModelError('unreachable', `the answer of ${to.name} broke off (${why})`, { retry: true });
}

export function parse(to: Address, text: string): any {
  const tooMuch = tooMuchIn(text);
  if (tooMuch) throw new ModelError('protocol', `${to.name} sent a message with ${tooMuch}`);
  try {
    const value = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value;
  } catch {
    // It is reported below, like a number or a string.
  }
  throw new ModelError('protocol', `${to.name} sent something that is no JSON object: ${text.slice(0, 200)}`);
}
