// fetcher.ts: where a server may send us. Its metadata names addresses, and we fetch from there: from an authorization
// server, we hope. But they can also be those of your router, or of a machine that only you can reach.

import type { LookupAddress } from 'node:dns';
import { lookup as lookUp } from 'node:dns/promises';
import { BlockList, isIPv6, type LookupFunction } from 'node:net';
import {
  excerpt,
  isExposed,
  isLoopback,
  isObject,
  McpError,
  parseMessage,
  tooMuchIn,
  type Json,
} from '../../mcp.ts';
import { proxyFor } from '../18-minds/proxy.ts';
import { readWholeBody, timeoutSignal, type FetchOptions } from '../20-streamable-http/reply.ts';
import { fetchHttp } from '../20-streamable-http/request.ts';

const FETCH_MS = 20_000;
const MAX_BYTES = 2 ** 20;

// Addresses that mean something else on every machine. What is in none of these networks is public.
const NETWORKS = {
  loopback: ['127.0.0.0/8', '::1/128'],
  private: [
    '10.0.0.0/8',
    '172.16.0.0/12',
    '192.168.0.0/16',
    '100.64.0.0/10',
    '198.18.0.0/15',
    'fc00::/7',
    'fec0::/10',
  ],
  'link-local': ['169.254.0.0/16', 'fe80::/10'], // in a cloud, 169.254.169.254 gives out keys
  reserved: [
    '0.0.0.0/8',
    '192.0.0.0/24',
    '224.0.0.0/4',
    '240.0.0.0/4',
    '::/96',
    '::ffff:0:0:0/96',
    'ff00::/8',
    '64:ff9b::/96',
    '64:ff9b:1::/48',
    '2002::/16',
    '2001::/32', // all but two hold IPv4 addresses
  ],
};
type NetworkKind = keyof typeof NETWORKS | 'public';

let lists: (readonly [NetworkKind, BlockList])[] | undefined; // most runs ask for none

const listsOfNetworks = () =>
  Object.entries(NETWORKS).map(([kind, networks]) => {
    const list = new BlockList();
    for (const network of networks) {
      const [address = '', bits] = network.split('/');
      list.addSubnet(address, Number(bits), isIPv6(address) ? 'ipv6' : 'ipv4');
    }
    return [kind as NetworkKind, list] as const;
  });

export function networkKind(address: string): NetworkKind {
  // A network without IPv4 writes its addresses so. What counts is the address inside.
  const [, high = '', low = ''] = /^64:ff9b::([\da-f]+):([\da-f]+)$/i.exec(address) ?? [];
  if (high)
    return networkKind(
      [high, low].flatMap((part) => [parseInt(part, 16) >> 8, parseInt(part, 16) & 255]).join('.'),
    );
  const family = isIPv6(address) ? 'ipv6' : 'ipv4';
  lists ??= listsOfNetworks();
  return lists.find(([, list]) => list.check(address, family))?.[0] ?? 'public';
}

type HttpResponse = { status: number; headers: Record<string, unknown>; body?: Json }; // `body` if it is a JSON object

/** Fetches from addresses that a server's metadata names, but only from those that the server could reach itself. */
export class Fetcher {
  private who: string;
  private server: URL;

  constructor(who: string, server: URL) {
    this.who = who;
    this.server = server;
  }

  async fetch(address: unknown, options: Partial<FetchOptions> = {}): Promise<HttpResponse> {
    const { url, addresses } = await this.allowed(address);
    const lookup = addresses.length > 0 ? answerWith(addresses) : undefined;
    const signal = timeoutSignal(FETCH_MS, options.signal);
    const headers = { accept: 'application/json', ...options.headers };
    const who = `${this.who}: ${url.origin}`;
    const reply = await fetchHttp(who, url, { method: 'GET', ...options, headers, signal, lookup });
    const text = await readWholeBody(who, reply.body, MAX_BYTES);
    const body = tooMuchIn(text) ? undefined : parseMessage(text);
    return { ...reply, body: isObject(body) ? body : undefined };
  }

  /** Public addresses are, and those of the kind that the server's own address is of: loopback for loopback. */
  async allowed(address: unknown): Promise<{ url: URL; addresses: LookupAddress[] }> {
    const url = this.checked(address);
    const [ours, addresses] = await Promise.all([this.lookUp(this.server), this.lookUp(url)]);
    // Whoever owns a name says where it leads. One that leads abroad, too, does not make us its neighbours, and only
    // what is called loopback is on this machine.
    const own = ours.map((each) => networkKind(each.address));
    const kinds = new Set<NetworkKind>(own.includes('public') ? ['public'] : ['public', ...own]);
    kinds.delete('reserved');
    if (!isLoopback(this.server) && url.hostname !== this.server.hostname) kinds.delete('loopback');
    const allowed = addresses.filter((each) => kinds.has(networkKind(each.address)));
    if (addresses.length > 0 && allowed.length === 0) {
      const kind = networkKind(addresses[0]!.address);
      throw this.error(`sends us to ${url.host}, which is ${kind}: we do not go there`);
    }
    return { url, addresses: allowed };
  }

  /** In clear text only within this machine: everywhere else somebody could read it on the way, or change it. */
  checked(address: unknown): URL {
    const url = typeof address === 'string' && URL.canParse(address) ? new URL(address) : undefined;
    const isSafe = url && /^https?:$/.test(url.protocol) && !isExposed(url);
    if (!isSafe || url.username || url.password)
      throw this.error(
        `names an address that we do not use, because it is not https: ${excerpt(address)}`,
      );
    return url;
  }

  /** None: only the proxy knows it. In many a company a name of the world is not known inside. */
  private async lookUp(url: URL) {
    try {
      return await lookUp(url.hostname.replace(/^\[|\]$/g, ''), { all: true });
    } catch (error) {
      if (proxyFor(url)) return [];
      throw this.error(
        `has to do with ${url.host}, which cannot be found (${(error as NodeJS.ErrnoException).code})`,
      );
    }
  }

  error(what: string): McpError {
    return new McpError('auth', `${this.who} ${what}`);
  }
}

/** Looked up once, and used as it was checked: the next answer of a name server may be another. (A
 *  proxy looks up names by itself, and its network is the one that is reached.) */
function answerWith(addresses: LookupAddress[]): LookupFunction {
  const [{ address, family }] = addresses as [LookupAddress];
  return (_, { all }, done) => (all ? done(null, addresses) : done(null, address, family));
}
