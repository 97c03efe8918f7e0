// send.ts: one HTTP request by node:http, directly or through a proxy. Not by the global fetch, which
// gives up after five minutes of silence and, in Node 20, knows no proxy.

import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import https from 'node:https';
import type { LookupFunction, Socket } from 'node:net';
import { pipeline, type Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { HeaderFields, Reply } from './body.ts';
import { ProxyError, proxyFor, type Proxy } from './proxy.ts';
import {
  proxyEndpoint,
  proxyRefusal,
  requestBy,
  TunnelAgent,
  unreachable,
  type TunnelArgs,
} from './tunnel.ts';

export type SendOptions = {
  method: string;
  headers: HeaderFields;
  body?: string;
  signal?: AbortSignal;
  lookup?: LookupFunction; // how to find the address of a host, if not in the usual way
  connectMs?: number; // until there is a connection
  silenceMs?: number; // between two bytes of the answer
  isSafe?: boolean; // twice does no more harm than once
};

export type NodeReply = Reply & {
  body: Readable;
  isOver?: boolean; // all that matters was read, and only the end of the body is to come
};

/** There was no answer. `isConnected`: the request may have arrived. `isReused`: on a connection that
 *  was kept open, and that the server may have closed meanwhile. */
export class NoAnswer extends Error {
  override name = 'NoAnswer';
  readonly isConnected: boolean;
  readonly isReused: boolean;
  readonly code: string | undefined;
  constructor(error: NodeJS.ErrnoException, isConnected: boolean, isReused = false) {
    super(error.message || error.code, { cause: error });
    this.isConnected = isConnected;
    this.isReused = isReused;
    this.code = error.code;
  }
}

/** When a server answers with a change of protocol, this is all that Node tells us. */
export const CLOSED = 'closed the connection without an answer';

/** Resolves when the headers of the reply are there. Rejects with the signal's reason, with a
 *  ProxyError, or with a NoAnswer. */
export async function sendRequest(url: URL, options: SendOptions): Promise<NodeReply> {
  try {
    return await sendOnce(url, options);
  } catch (error) {
    if (!(error instanceof NoAnswer) || !error.isReused) throw error;
    closers.set(url.host, performance.now());
    if (!options.isSafe) throw error;
    return sendOnce(url, options);
  }
}

async function sendOnce(url: URL, options: SendOptions): Promise<NodeReply> {
  const { body, signal } = options;
  const proxy = proxyFor(url);
  return new Promise((resolve, reject) => {
    const request = begin(url, options, proxy);
    const inTime = limitTime(request, options);
    let isConnected = false;

    // Not by the option `signal`: Node would then destroy the request with an error. If the last
    // byte has come but is not read yet, that error is raised on the socket when all listeners have
    // left, and ends our program.
    const stop = () => request.destroy();
    signal?.addEventListener('abort', stop);

    const connected = () => {
      isConnected = true;
      inTime();
    };
    request.on('socket', (socket) => {
      if (!request.reusedSocket) watchForClosing(socket, url.host);
      idleSince.delete(socket);
      // It may have served others before; or it may have failed before it began (EMFILE).
      const event = url.protocol === 'https:' ? 'secureConnect' : 'connect';
      if (socket.readyState === 'open') connected();
      else socket.once(event, connected);
    });
    request.on('response', (response) => {
      const isOfProxy = proxy && url.protocol === 'http:' && response.statusCode === 407;
      const { socket } = response;
      response.once('end', () => idleSince.set(socket, performance.now()));
      if (!isOfProxy) return resolve(replyOf(response));
      reject(proxyRefusal(proxy, response, url.host));
      request.destroy();
    });
    request.on('error', (error) => {
      reject(
        signal?.aborted ? signal.reason : failure(url, error, { isConnected, proxy, request }),
      );
    });
    request.on('close', () => {
      inTime();
      signal?.removeEventListener('abort', stop);
      reject(new NoAnswer(new Error(CLOSED), true)); // unless it is settled
    });

    if (signal?.aborted) stop();
    else request.end(body);
  });
}

/** How long a request may be without a connection, and an answer without a byte. What it gives back
 *  is called when there is a connection. */
function limitTime(request: ClientRequest, { connectMs, silenceMs }: SendOptions) {
  let sender: ClientRequest | IncomingMessage = request;
  // A reader of the body hears why it ends only if the response itself is destroyed.
  request.on('response', (response) => (sender = response));
  const giveUp = (why: string, ms: number) => sender.destroy(new Error(`${why} ${ms / 1000} s`));
  const timer = connectMs && setTimeout(giveUp, connectMs, 'no connection within', connectMs);
  if (silenceMs) request.setTimeout(silenceMs, () => giveUp('silence for', silenceMs));
  return () => clearTimeout(timer);
}

type Circumstances = { isConnected: boolean; proxy?: Proxy; request: ClientRequest };

function failure(url: URL, error: Error, { isConnected, proxy, request }: Circumstances) {
  if (error instanceof ProxyError) return error;
  const isAtProxy = proxy && url.protocol === 'http:' && !isConnected;
  if (isAtProxy) return unreachable(proxy, error);
  return new NoAnswer(error, isConnected, request.reusedSocket);
}

// ─── Servers that close a connection without a word ─────────────────────────────────────────────

// They may: but a request that is on its way then is lost, and most may not be sent twice. So who was
// seen to do it gets a new connection for each request.
const CLOSED_SOON_MS = 1000;
const WARY_MS = 600_000; // after the last time
const closers = new Map<string, number>(); // hosts, and when they did it
const idleSince = new WeakMap<Socket, number>(); // when the last answer on it was whole

function watchForClosing(socket: Socket, host: string) {
  socket.once('close', () => {
    const since = idleSince.get(socket) ?? -Infinity;
    const at = performance.now();
    if (at - since < CLOSED_SOON_MS) closers.set(host, at);
  });
}

const isCloser = (host: string) => performance.now() - (closers.get(host) ?? -Infinity) < WARY_MS;

// ─── The way there ───────────────────────────────────────────────────────────────────────────────

// They keep connections open for the next request.
const agents = {
  'http:': new http.Agent({ keepAlive: true }),
  'https:': new https.Agent({ keepAlive: true }),
};
const agentFor = ({ protocol }: URL) => agents[protocol as keyof typeof agents];

function begin(url: URL, options: SendOptions, proxy?: Proxy) {
  const { method, lookup, signal } = options;
  const headers = { 'accept-encoding': 'identity', ...options.headers };
  if (!proxy) {
    // With a lookup of its own a request must not use a connection that was made by the usual one.
    const agent = lookup || isCloser(url.host) ? false : agentFor(url);
    return requestBy(url)(url, { method, headers, agent, lookup });
  }
  if (url.protocol === 'https:') {
    const through: TunnelArgs = { method, headers, agent: tunnelsOf(proxy), stopped: signal };
    return https.request(url, through);
  }
  // What is not encrypted needs no tunnel: the proxy gets the request itself, with the whole
  // address in its first line. (Many proxies make tunnels to port 443 only.)
  return requestBy(proxy.url)({
    ...proxyEndpoint(proxy.url),
    method,
    path: `${url.origin}${url.pathname}${url.search}`,
    headers: { host: url.host, ...headers, ...proxy.headers },
    agent: agentFor(proxy.url),
  });
}

const tunnels = new Map<string, TunnelAgent>(); // by the address of the proxy, with its password

function tunnelsOf(proxy: Proxy) {
  const { href } = proxy.url;
  const agent = tunnels.get(href) ?? new TunnelAgent(proxy, true);
  tunnels.set(href, agent);
  return agent;
}

// ─── The reply ───────────────────────────────────────────────────────────────────────────────────

const unpackers = new Map([
  ['gzip', createGunzip],
  ['x-gzip', createGunzip],
  ['deflate', createInflate],
  ['br', createBrotliDecompress],
]);

function replyOf(response: IncomingMessage) {
  const { statusCode: status = 0, statusMessage: statusText = '', headers } = response;
  const fields = headers as Partial<HeaderFields>; // only cookies are lists, and we keep none
  return { status, statusText, headers: fields, body: unpacked(response) };
}

/** We say that we take plain bytes, but some servers pack them all the same. */
function unpacked(response: IncomingMessage) {
  const encoding = response.headers['content-encoding'] ?? '';
  const unpack = unpackers.get(encoding.toLowerCase());
  return unpack ? pipeline(response, unpack(), () => {}) : response;
}
