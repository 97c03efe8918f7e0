// reply.ts: what a transport over HTTP asks of whoever makes its requests, and how it reads a reply.
// Nothing here is Node's.

import type { Readable } from 'node:stream';
import { asObject, excerpt, joinBytes, joinSmall, McpError, parseMessage } from '../../mcp.ts';
import type { Message } from '../../mcp.ts';
import type { Body, HeaderFields, Reply } from '../18-minds/body.ts';

export { readStart, wantedWait } from '../18-minds/body.ts';
export type { Body, HeaderFields, Reply } from '../18-minds/body.ts';
export type FetchOptions = {
  method: string;
  headers: HeaderFields;
  body?: string;
  signal?: AbortSignal;
  isSafe?: boolean; // twice does no more harm than once
};
/** Makes a request. Resolves when the headers of the reply are there; its body is still to come.
 *  `who` begins the sentence of an error. */
export type Fetch = (who: string, url: URL, options: FetchOptions) => Promise<Reply>;

const SAFE =
  /^(initialize|server\/discover|ping|notifications\/.+|.+\/list|prompts\/get|resources\/read)$/;
/** Our answers are, too: those have no method. */
export const isSafe = ({ method }: Message) => method === undefined || SAFE.test(method);

/** An address that a server has named, which may be relative. */
export function resolveAddress(text: string, base: URL): URL | undefined {
  return URL.canParse(text, base.href) ? new URL(text, base) : undefined;
}

/** Until a signal, or until the time is over. Not for many in a row with one signal: Node keeps
 *  something of each at a signal that lives on. */
export function timeoutSignal(ms: number, signal?: AbortSignal): AbortSignal {
  const limit = AbortSignal.timeout(ms);
  limit.addEventListener('abort', () => {}); // without a listener, Node 20 forgets a time limit
  return signal ? AbortSignal.any([signal, limit]) : limit;
}

// ─── The body of a reply ─────────────────────────────────────────────────────────────────────────

type OnChunk = (chunk: Uint8Array) => void;

/** Hands on each chunk of a body. Resolves at its end; rejects if it is cut off, or if `onChunk`
 *  throws. */
export async function readChunks(body: Body, onChunk: OnChunk): Promise<void> {
  if (isReadableStream(body)) return readReadable(body, onChunk);
  for await (const chunk of body) onChunk(chunk);
}

const isReadableStream = (body: Body): body is Readable => 'readableEnded' in body;

/** Of Node's streams: `for await` would make a short call a tenth more expensive. */
function readReadable(body: Readable, onChunk: OnChunk): Promise<void> {
  return new Promise((resolve, reject) => {
    const cutOff = () => reject(new Error('the body was cut off'));
    if (body.destroyed) return cutOff(); // then no event will come
    const take = (chunk: Uint8Array) => {
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

export async function readWholeBody(who: string, body: Body, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  await readChunks(body, (chunk) => {
    chunks.push(chunk);
    joinSmall(chunks); // each chunk of the wire comes alone, also one of a single byte
    size += chunk.length; // counted after unpacking: 200 KB can become 200 MB
    if (size > maxBytes) throw new McpError('limit', `${who} sent more than ${maxBytes} bytes`);
  });
  return new TextDecoder().decode(joinBytes(chunks));
}

// ─── Refusals ────────────────────────────────────────────────────────────────────────────────────

/** 401: the server does not know who we are. 403: it knows, and we may not. */
export const isLoginRefusal = (status: number) => status === 401 || status === 403;

export function loginError(who: string, { status, headers }: Reply, text: string): McpError {
  const isUnknown = status === 401;
  const challenge = headers['www-authenticate'];
  const said = refusalText(text, challenge);
  const refusal = `refuses us (HTTP ${status}): ${said || errorPageText(text)}`;
  const what = isUnknown ? `wants a login (HTTP 401)${said && `: ${said}`}` : refusal;
  return Object.assign(new McpError('auth', `${who} ${what}`), { status, challenge });
}

/** What it says of its refusal, in the words of OAuth or of JSON-RPC; empty if it says nothing. */
export function refusalText(text: string, challenge = ''): string {
  const [, inHeader] = /error_description="([^"]{0,500})"/.exec(challenge) ?? [];
  const { error_description, message, error } = asObject(parseMessage(text));
  const said = inHeader ?? error_description ?? message ?? asObject(error).message;
  return typeof said === 'string' ? excerpt(said) : '';
}

/** What an error page says: its title, or its first words. A tag ends at the next "<", too: else a
 *  page of nothing but "<" would be searched to its end from every one of them. */
export function errorPageText(text: string): string {
  const title = /<title>([^<]*)/i.exec(text)?.[1];
  const words = title ?? text.replace(/<[^<>]*>/g, ' ');
  return excerpt(words.replace(/\s+/g, ' ').trim() || 'no explanation');
}
