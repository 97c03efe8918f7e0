// request.ts: a request to a server of tools, and what its failures mean. It goes out by send.ts of
// chapter 18, and not by the global fetch, which gives up after five minutes of silence, follows
// redirects with whatever headers we gave it, and unpacks a bomb before we see its size.

import type { Readable } from 'node:stream';
import { excerpt, joinSmall, McpError } from '../../mcp.ts';
import { ProxyError } from '../18-minds/proxy.ts';
import { CLOSED, NoAnswer, send, type Reply, type SendOptions } from '../18-minds/send.ts';

export type { Reply };
export type Headers = Record<string, string>;
export type FetchOptions = Omit<SendOptions, 'connectMs' | 'silenceMs'>;
/** Makes a request. Resolves when the headers of the reply are there; its body is still to come.
 *  `who` begins the sentence of an error. */
export type Fetch = (who: string, url: URL, options: FetchOptions) => Promise<Reply>;

const SEE_OTHER = 303;
const REDIRECTS = [301, 302, SEE_OTHER, 307, 308];
const MAX_REDIRECTS = 5;
const REMEDY = 'If that is right, put its address into the configuration';

// ─── A request ───────────────────────────────────────────────────────────────────────────────────

export const fetchHttp: Fetch = (who, url, options) => fetchFrom(who, url, options, 0);

async function fetchFrom(
  who: string,
  url: URL,
  options: FetchOptions,
  redirects: number,
): Promise<Reply> {
  const reply = await send(url, options).catch((error) => Promise.reject(failure(who, error)));
  const { status } = reply;
  const { location } = reply.headers;
  const isElsewhere = status >= 300 && status < 400;
  if (!isElsewhere) return reply;
  reply.body.destroy();
  // We want no choice (300), have nothing in store (304), and no server chooses our proxy (305).
  if (!REDIRECTS.includes(status) || !location)
    throw new McpError('protocol', `${who} answered HTTP ${status}, which leads nowhere`);
  const target = addressIn(location, url);
  // The target gets our headers, our session and our message: it must be the server of the entry.
  if (target?.origin !== url.origin) {
    const where = target?.origin ?? 'nowhere';
    throw new McpError('protocol', `${who} sends us on to ${where}. ${REMEDY}`);
  }
  if (redirects === MAX_REDIRECTS) {
    const last = target.pathname;
    throw new McpError('protocol', `${who} sends us on and on, the last time to ${last}`);
  }
  const next = status === SEE_OTHER ? asGet(options) : options;
  return fetchFrom(who, target, next, redirects + 1);
}

/** 303 says: it is done, and what came of it can be read over there. So the message is not sent
 *  again, unlike with the others, which say: not here. */
function asGet(options: FetchOptions): FetchOptions {
  const { 'content-type': _, ...headers } = options.headers;
  return { ...options, method: 'GET', headers, body: undefined };
}

/** An address that a server has named, which may be relative. */
export function addressIn(text: string, base: URL): URL | undefined {
  return URL.canParse(text, base.href) ? new URL(text, base) : undefined;
}

/** Before there was a connection nothing can have been received; afterwards it may have been. */
function failure(who: string, error: unknown): unknown {
  if (error instanceof ProxyError) {
    const kind = error.isFinal ? 'config' : 'unreachable';
    return new McpError(kind, `${who} cannot be reached: ${error.message}`);
  }
  if (!(error instanceof NoAnswer)) return error; // we were stopped
  const isRefused = error.code === 'ECONNREFUSED';
  const why = isRefused ? 'nobody listens there (ECONNREFUSED)' : error.message;
  if (why === CLOSED) return new McpError('lost', `${who} ${why}`);
  return error.isConnected
    ? new McpError('lost', `${who} broke off: ${why}`)
    : new McpError('unreachable', `${who} cannot be reached: ${why}`);
}

/** Until a signal, or until the time is over. Not for many in a row with one signal: Node keeps
 *  something of each at a signal that lives on. */
export function within(ms: number, signal?: AbortSignal): AbortSignal {
  const limit = AbortSignal.timeout(ms);
  limit.addEventListener('abort', () => {}); // without a listener, Node 20 forgets a time limit
  return signal ? AbortSignal.any([signal, limit]) : limit;
}

// ─── The body of a reply ─────────────────────────────────────────────────────────────────────────

/** Hands on each chunk of a body. Resolves at its end; rejects if it is cut off, or if `onChunk`
 *  throws. (`for await` is shorter, and makes a short call a tenth more expensive.) */
export function readChunks(body: Readable, onChunk: (chunk: Buffer) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const cutOff = () => reject(new Error('the body was cut off'));
    if (body.destroyed) return cutOff(); // then no event will come
    const take = (chunk: Buffer) => {
      try {
        onChunk(chunk);
      } catch (error) {
        reject(error);
        body.off('data', take);
        body.destroy();
      }
    };
    body.on('data', take);
    body.on('end', resolve);
    body.on('error', reject);
    body.on('close', () => {
      if (!body.readableEnded) cutOff();
    });
  });
}

export async function readText(who: string, body: Readable, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  await readChunks(body, (chunk) => {
    chunks.push(chunk);
    joinSmall(chunks); // each chunk of the wire comes alone, also one of a single byte
    size += chunk.length; // counted after unpacking: 200 KB can become 200 MB
    if (size > maxBytes) throw new McpError('limit', `${who} sent more than ${maxBytes} bytes`);
  });
  return Buffer.concat(chunks).toString();
}

/** The beginning of a body that only explains: half of it is better than none. */
export async function readStart(body: Readable, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > maxBytes) break;
    }
  } catch {} // it was cut off
  return Buffer.concat(chunks).toString();
}

// ─── Refusals ────────────────────────────────────────────────────────────────────────────────────

/** 401: the server does not know who we are. 403: it knows, and we may not. */
export const isLoginRefusal = (status: number) => status === 401 || status === 403;

export function loginError(who: string, { status, headers }: Reply, text: string): McpError {
  const isUnknown = status === 401;
  const refusal = `refuses us (HTTP ${status}): ${wordsOf(text)}`;
  const what = isUnknown ? 'wants a login (HTTP 401)' : refusal;
  const challenge = headers['www-authenticate'];
  return Object.assign(new McpError('auth', `${who} ${what}`), { status, challenge });
}

/** What an error page says: its title, or its first words. A tag ends at the next "<", too: else a
 *  page of nothing but "<" would be searched to its end from every one of them. */
export function wordsOf(text: string): string {
  const title = /<title>([^<]*)/i.exec(text)?.[1];
  const words = title ?? text.replace(/<[^<>]*>/g, ' ');
  return excerpt(words.replace(/\s+/g, ' ').trim() || 'no explanation');
}
