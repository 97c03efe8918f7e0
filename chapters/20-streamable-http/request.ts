// request.ts: one HTTP request, by node:http. Not by fetch, which gives up after five minutes of silence, follows
// redirects with whatever headers we gave it, and unpacks a bomb before we see its size.

import http, { type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import https from 'node:https';
import type { LookupFunction } from 'node:net';
import { pipeline, type Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { excerpt, McpError } from '../../mcp.ts';

export type Headers = Record<string, string>;
export type Ask = { method: string; headers: Headers; body?: string; signal?: AbortSignal; lookup?: LookupFunction };
export type Reply = { status: number; headers: IncomingHttpHeaders; body: Readable };
/** Makes a request. `who` begins the sentence of an error. */
export type Asking = (who: string, url: URL, what: Ask) => Promise<Reply>;

const MAX_REDIRECTS = 5;
const REMEDY = 'If that is right, put its address into the configuration';
const agents = { 'http:': new http.Agent({ keepAlive: true }), 'https:': new https.Agent({ keepAlive: true }) };
const unpackers = new Map([
  ['gzip', createGunzip], ['x-gzip', createGunzip], ['deflate', createInflate], ['br', createBrotliDecompress],
]);

/** Resolves when the headers are there; the body is still to come. */
export async function ask(who: string, url: URL, what: Ask, redirects = 0): Promise<Reply> {
  const response = await exchange(who, url, what);
  const { statusCode: status = 0, headers } = response;
  if (![301, 302, 307, 308].includes(status) || !headers.location) return { status, headers, body: unpacked(response) };
  response.destroy();
  const target = URL.canParse(headers.location, url.href) ? new URL(headers.location, url) : undefined;
  // Whoever is named there would get our headers, our session and what we say. Only the server we were told of may.
  if (target?.origin !== url.origin)
    throw new McpError('protocol', `${who} sends us on to ${target?.origin ?? 'nowhere'}. ${REMEDY}`);
  if (redirects === MAX_REDIRECTS)
    throw new McpError('protocol', `${who} sends us on and on, the last time to ${target.pathname}`);
  return ask(who, target, what, redirects + 1);
}

function exchange(who: string, url: URL, { method, headers, body, signal, lookup }: Ask): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const { request } = url.protocol === 'https:' ? https : http;
    // Whoever looks up addresses in another way must not get a connection that was made in the usual one.
    const agent = lookup ? false : agents[url.protocol as keyof typeof agents];
    const length: Headers = body === undefined ? {} : { 'content-length': `${Buffer.byteLength(body)}` };
    const all = { 'accept-encoding': 'identity', ...headers, ...length };
    const asked = request(url, { method, agent, headers: all, ...(lookup && { lookup }) });
    // Not as an option, for then Node destroys the request with an error. If the last byte has come but is not read
    // yet, that error is raised on the socket after everybody has stopped listening there, and ends our program.
    const stop = () => asked.destroy();
    signal?.addEventListener('abort', stop);
    let isConnected = false;
    asked.on('socket', (socket) => {
      isConnected = !socket.connecting; // it may have served others before
      const event = url.protocol === 'https:' ? 'secureConnect' : 'connect';
      if (!isConnected) socket.once(event, () => (isConnected = true));
    });
    asked.on('response', resolve);
    asked.on('error', (error: NodeJS.ErrnoException) => {
      if (signal?.aborted) return reject(signal.reason);
      const words = error.message || `${error.code}`;
      const why = error.code === 'ECONNREFUSED' ? 'nobody listens there (ECONNREFUSED)' : words;
      // Before there was a connection nothing can have been received; afterwards nobody knows.
      const [kind, what] = isConnected ? ['lost', 'broke off'] as const : ['unreachable', 'cannot be reached'] as const;
      reject(new McpError(kind, `${who} ${what}: ${why}`));
    });
    asked.on('close', () => {
      signal?.removeEventListener('abort', stop);
      // Too late to matter, unless the server answered with a change of protocol: of that Node tells us nothing else.
      reject(new McpError('lost', `${who} closed the connection without an answer`));
    });
    if (signal?.aborted) stop();
    else asked.end(body);
  });
}

/** We ask for plain bytes, but some servers pack them all the same. */
function unpacked(response: IncomingMessage): Readable {
  const unpack = unpackers.get(`${response.headers['content-encoding']}`.toLowerCase());
  return unpack ? pipeline(response, unpack(), () => {}) : response;
}

export async function readText(who: string, body: Readable, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    size += chunk.length; // counted after unpacking: 200 KB can become 200 MB
    if (size > maxBytes) throw new McpError('limit', `${who} sent more than ${maxBytes} bytes`);
  }
  return Buffer.concat(chunks).toString();
}

/** The beginning of a body that only explains: more is of no interest, and half of it is better than none. */
export async function readStart(body: Readable, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      if ((size += chunk.length) > maxBytes) break;
    }
  } catch {} // it was cut off
  return Buffer.concat(chunks).toString();
}

/** Until a signal, or until time is over. Node 20 forgets a time limit to which nobody listens directly. */
export function within(ms: number, signal?: AbortSignal): AbortSignal {
  const limit = AbortSignal.timeout(ms);
  limit.addEventListener('abort', () => {});
  return signal ? AbortSignal.any([signal, limit]) : limit;
}

/** 401: who are you? 403: we know who you are, and you may not. */
export function loginError(who: string, { status, headers }: Reply, text: string): McpError {
  const what = status === 401 ? 'wants a login (HTTP 401)' : `refuses us (HTTP ${status}): ${wordsOf(text)}`;
  return Object.assign(new McpError('auth', `${who} ${what}`), { status, challenge: headers['www-authenticate'] });
}

/** What an error page says: its title, or its first words. */
export function wordsOf(text: string): string {
  const title = /<title>([^<]*)/i.exec(text)?.[1];
  return excerpt((title ?? text.replace(/<[^>]*>/g, ' ')).replace(/\s+/g, ' ').trim() || 'no explanation');
}
