// guard.ts: who may knock, and with what. All of this is looked at before a byte of a body is read.

import type { IncomingHttpHeaders, IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { excerpt, McpError } from '../../mcp.ts';
import { isSameSecret } from './request-state.ts';

export type Door = {
  hostnames: Set<string>; // under which we are known
  origins: Set<string>; // of pages elsewhere that may come in
  token?: string;
};
export type DoorOptions = {
  hostnames?: string[]; // under which clients may know us, such as that of a proxy
  origins?: string[]; // of web pages elsewhere that may use us
  token?: string;
};

/** A refusal before there is a message to answer. */
export class Refused extends Error {
  status: number;
  headers: Record<string, string>;
  constructor(status: number, why: string, headers: Record<string, string> = {}) {
    super(why);
    this.status = status;
    this.headers = headers;
  }
}

const LOOPBACK = ['127.0.0.1', 'localhost', '[::1]'];
export const isLoopbackBind = (host: string) =>
  LOOPBACK.includes(host) || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);

/** The names that a client may call us by, beside those of this machine. */
export function doorFor(host: string, known: DoorOptions = {}): Door {
  const { hostnames = [], origins = [], token } = known;
  const own = host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
  const names = [...LOOPBACK, own, ...hostnames].map((name) => name.toLowerCase());
  const odd = origins.find((text) => hostnameOf(text) === '' || new URL(text).origin !== text);
  if (odd === undefined) return { hostnames: new Set(names), origins: new Set(origins), token };
  const form = 'https://example.org, as browsers write it: no path, no *, not null';
  throw new McpError('config', `${excerpt(odd)} is not the origin of a page, such as ${form}`);
}

/** A browser sends any page's requests to us, even to 127.0.0.1, and a domain may change its
 *  address to ours after the page has loaded. Origin tells the first, Host the second. */
export function checkOrigin({ host, origin }: IncomingHttpHeaders, { hostnames }: Door): void {
  if (!hostnames.has(hostnameOf(`http://${host}`))) throw new Refused(403, 'Host is not allowed');
  if (origin === undefined) return; // not a browser
  const isWeb = /^https?:\/\//.test(origin);
  if (!isWeb || !hostnames.has(hostnameOf(origin))) throw new Refused(403, 'Origin is not allowed');
}

/** As above; but a page that was named, to the letter, is no stranger. */
export function checkVisitor({ host, origin }: IncomingHttpHeaders, door: Door): void {
  const isNamed = origin !== undefined && door.origins.has(origin);
  checkOrigin({ host, origin: isNamed ? undefined : origin }, door);
}

const SENDABLE =
  /^(accept|authorization|content-type|last-event-id|traceparent|tracestate|baggage|mcp-[\w-]+)$/i;
const READABLE = 'Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After';

/** What lets a page read our answers (CORS); nothing if it may not. On this machine any page could be
 *  anybody's, so there a token must decide. Mcp-Param-* are free names, so there is no fixed list. */
export function headersForPage(
  headers: IncomingHttpHeaders,
  { origins, token }: Door,
): Record<string, string> | undefined {
  const { origin, 'access-control-request-headers': wanted = '' } = headers;
  if (origin === undefined || (token === undefined && !origins.has(origin))) return undefined;
  const names = wanted.split(',').map((name) => name.trim());
  return {
    'access-control-allow-origin': origin, // checked above; never * or null
    'access-control-allow-methods': 'POST, GET, DELETE',
    'access-control-allow-headers': names.filter((name) => SENDABLE.test(name)).join(', '),
    'access-control-expose-headers': READABLE,
  };
}

/** Of two, Node takes the first, and a proxy in front of us may have judged the second. */
export function checkOneHost(rawHeaders: string[]): void {
  const isHost = (name: string, n: number) => n % 2 === 0 && name.toLowerCase() === 'host';
  if (rawHeaders.filter(isHost).length > 1) throw new Refused(400, 'Host is there twice');
}

/** Without the port; nothing if it is not an address, as in "null". Nor if it is more than one:
 *  URL would find localhost in evil@localhost, localhost/evil and localhost#evil. */
function hostnameOf(address: string) {
  if (!/^[a-z]+:\/\/[^\s/?#@\\]+$/.test(address)) return '';
  try {
    return new URL(address).hostname.toLowerCase();
  } catch {
    return '';
  }
}

export function checkToken({ authorization = '' }: IncomingHttpHeaders, { token }: Door): void {
  if (token === undefined) return;
  const [, given = ''] = /^Bearer +(\S+)$/i.exec(authorization) ?? [];
  if (isSameSecret(given, token)) return;
  throw new Refused(401, 'A token is needed', { 'www-authenticate': 'Bearer' });
}

/** Connections that have not shown who they are. Too many of them push each other out, the oldest
 *  first, and take no place from a client that was let in, which is told by what this gives back. */
export function limitStrangers(http: Server, most: number): (known: IncomingMessage) => void {
  const sockets = new Set<Socket>();
  http.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    const [oldest] = sockets;
    if (sockets.size > most) oldest!.destroy();
  });
  return ({ socket }) => void sockets.delete(socket);
}

/** A page may send text/plain to anybody, without asking first; not so JSON. */
export function checkBodyType(headers: IncomingHttpHeaders): void {
  const [type = ''] = (headers['content-type'] ?? '').split(';');
  if (type.trim().toLowerCase() !== 'application/json')
    throw new Refused(415, 'Content-Type must be application/json');

  const { 'content-encoding': encoding = 'identity' } = headers;
  if (encoding !== 'identity') throw new Refused(415, 'Content-Encoding is not supported');
}

const NOT_READ = /;\s*q=0(?:\.0*)?\s*$/;

/** The client must be able to read what we may answer with. */
export function checkAccept({ accept = '*/*' }: IncomingHttpHeaders, wanted: string[]): void {
  const wishes = accept
    .toLowerCase()
    .split(',')
    .filter((wish) => !NOT_READ.test(wish));
  const ranges = wishes.map((wish) => wish.split(';')[0]!.trim());
  const isRead = (type: string) =>
    [type, `${type.split('/')[0]}/*`, '*/*'].some((range) => ranges.includes(range));
  if (wanted.every(isRead)) return;
  throw new Refused(406, `Accept must allow ${wanted.join(' and ')}`);
}
