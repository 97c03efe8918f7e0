// request.ts: one HTTP request, by node:http. Not by the global fetch, which gives up after five
// minutes of silence, follows redirects with whatever headers we gave it, and unpacks a bomb before
// we see its size.

import http, { type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import https from 'node:https';
import type { LookupFunction } from 'node:net';
import { pipeline, type Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { excerpt, joinSmall, McpError } from '../../mcp.ts';

export type Headers = Record<string, string>;
export type FetchOptions = {
  method: string;
  headers: Headers;
  body?: string;
  signal?: AbortSignal;
  lookup?: LookupFunction; // how to find the address of a host, if not in the usual way
};
export type Reply = { status: number; headers: IncomingHttpHeaders; body: Readable };
/** Makes a request. Resolves when the headers of the reply are there; its body is still to come.
 *  `who` begins the sentence of an error. */
export type Fetch = (who: string, url: URL, options: FetchOptions) => Promise<Reply>;

const SEE_OTHER = 303;
const REDIRECTS = [301, 302, SEE_OTHER, 307, 308];
const MAX_REDIRECTS = 5;
const REMEDY = 'If that is right, put its address into the configuration';

// They keep connections open for the next request.
const agents = {
  'http:': new http.Agent({ keepAlive: true }),
  'https:': new https.Agent({ keepAlive: true }),
};

const unpackers = new Map([
  ['gzip', createGunzip],
  ['x-gzip', createGunzip],
  ['deflate', createInflate],
  ['br', createBrotliDecompress],
]);

// ─── A request ───────────────────────────────────────────────────────────────────────────────────

export const fetchHttp: Fetch = (who, url, options) => fetchFrom(who, url, options, 0);

async function fetchFrom(
  who: string,
  url: URL,
  options: FetchOptions,
  redirects: number,
): Promise<Reply> {
  const response = await sendRequest(who, url, options);
  const { statusCode: status = 0, headers } = response;
  const { location } = headers;
  const isElsewhere = status >= 300 && status < 400;
  if (!isElsewhere) return { status, headers, body: unpacked(response) };
  response.destroy();
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

/** Resolves with the response when its headers are there. */
function sendRequest(who: string, url: URL, options: FetchOptions): Promise<IncomingMessage> {
  const { method, body, signal, lookup } = options;
  const isTls = url.protocol === 'https:';
  const headers = { 'accept-encoding': 'identity', ...options.headers };
  // With a lookup of its own a request must not use a connection that was made by the usual one.
  const agent = lookup ? false : agents[url.protocol as keyof typeof agents];
  return new Promise((resolve, reject) => {
    const request = (isTls ? https : http).request(url, { method, headers, agent, lookup });
    let isConnected = false;
    let isAnswered = false;

    // Not by the option `signal`: Node would then destroy the request with an error. If the last
    // byte has come but is not read yet, that error is raised on the socket when all listeners have
    // left, and ends our program.
    const stop = () => request.destroy();
    signal?.addEventListener('abort', stop);

    request.on('socket', (socket) => {
      // It may have served others before; or it may have failed before it began (EMFILE).
      isConnected = socket.readyState === 'open';
      const event = isTls ? 'secureConnect' : 'connect';
      if (!isConnected) socket.once(event, () => (isConnected = true));
    });
    request.on('response', (response) => {
      isAnswered = true;
      resolve(response);
    });
    request.on('error', (error) => {
      reject(signal?.aborted ? signal.reason : failure(who, error, isConnected));
    });
    request.on('close', () => {
      signal?.removeEventListener('abort', stop);
      if (isAnswered) return;
      // When a server answers with a change of protocol, this is all that Node tells us.
      reject(new McpError('lost', `${who} closed the connection without an answer`));
    });

    if (signal?.aborted) stop();
    else request.end(body);
  });
}

/** Before there was a connection nothing can have been received; afterwards it may have been. */
function failure(who: string, error: NodeJS.ErrnoException, isConnected: boolean): McpError {
  const isRefused = error.code === 'ECONNREFUSED';
  const words = error.message || `${error.code}`;
  const why = isRefused ? 'nobody listens there (ECONNREFUSED)' : words;
  return isConnected
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

/** We say that we take plain bytes, but some servers pack them all the same. */
function unpacked(response: IncomingMessage): Readable {
  const encoding = response.headers['content-encoding'] ?? '';
  const unpack = unpackers.get(encoding.toLowerCase());
  return unpack ? pipeline(response, unpack(), () => {}) : response;
}

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
