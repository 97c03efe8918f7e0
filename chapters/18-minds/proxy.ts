// proxy.ts: which way leads to an address. In many companies only a proxy may speak to the world,
// and the usual variables say where it is:
//
//   HTTPS_PROXY=http://name:password@proxy.example:3128   for https:// and wss://
//   HTTP_PROXY=…                                          for http:// and ws://
//   ALL_PROXY=…                                           for those that the others do not name
//   NO_PROXY=intranet.example,.example.org:8443,10.0.0.0/8,*
//
// In small letters they count, too, and first. They are the user's: no file of a project sets them.

import { BlockList, isIP, isIPv6 } from 'node:net';
import { keepTyped } from '../17-the-gate/safe-text.ts';

export type Proxy = {
  url: URL;
  name: string; // for messages: its address, without name and password
  variable: string; // that names it
  headers: Record<string, string>; // for the proxy alone
};

/** The proxy, or the way to it, is the problem. `isFinal`: trying again would not help. */
export class ProxyError extends Error {
  override name = 'ProxyError';
  readonly isFinal: boolean;
  constructor(message: string, isFinal: boolean) {
    super(message);
    this.isFinal = isFinal;
  }
}

/** The proxy on the way to an address; none: the way is direct. This machine is never behind one:
 *  for the proxy, localhost is another machine, and keys go there in clear text. */
export function proxyFor(url: URL, env: NodeJS.ProcessEnv = process.env): Proxy | undefined {
  if (isLoopbackHost(url.hostname)) return undefined;
  const variable = namesFor(url, env).find((name) => env[name]?.trim());
  if (!variable || isExempt(url, env.no_proxy || env.NO_PROXY || '')) return undefined;
  return proxyIn(variable, env[variable]!.trim());
}

export function isLoopbackHost(host: string): boolean {
  return host === '[::1]' || /^127(\.\d+){3}$/.test(host) || /^(.+\.)?localhost$/.test(host);
}

/** The variables that count for an address, the first of them first. */
function namesFor({ protocol }: URL, env: NodeJS.ProcessEnv) {
  const isTls = protocol === 'https:' || protocol === 'wss:';
  // A web server hands a header "Proxy: …" of its visitors to a CGI script as HTTP_PROXY.
  const isCgi = env.REQUEST_METHOD !== undefined;
  const plain = isCgi ? ['http_proxy'] : ['http_proxy', 'HTTP_PROXY'];
  const own = isTls ? ['https_proxy', 'HTTPS_PROXY'] : plain;
  return [...own, 'all_proxy', 'ALL_PROXY'];
}

function proxyIn(variable: string, value: string): Proxy {
  const address = value.includes('://') ? value : `http://${value}`;
  // The value itself is not quoted: it may hold a password.
  const form = 'http://host:port or http://name:password@host:port';
  if (!URL.canParse(address))
    throw new ProxyError(`${variable} is not an address; write ${form}`, true);
  const url = new URL(address);
  if (!/^https?:$/.test(url.protocol)) {
    const why = `${variable} names a proxy of the kind ${url.protocol}//, which this program does not know`;
    throw new ProxyError(`${why}; write ${form}, or unset it`, true);
  }
  return { url, name: url.origin, variable, headers: credentialsIn(url) };
}

function credentialsIn({ username, password }: URL): Record<string, string> {
  if (!username && !password) return {};
  const words = [username, password].map(percentDecoded);
  const credentials = Buffer.from(words.join(':')).toString('base64');
  for (const secret of [words[1], password, credentials]) keepTyped(secret); // from all that is shown
  return { 'proxy-authorization': `Basic ${credentials}` };
}

/** Never throws. */
export function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a % that means itself
  }
}

// ─── NO_PROXY ────────────────────────────────────────────────────────────────────────────────────

const DEFAULT_PORTS: Record<string, string> = {
  'http:': '80',
  'ws:': '80',
  'https:': '443',
  'wss:': '443',
};

/** By the rules of curl: a list with commas or blanks. A name means its subdomains, too, with or
 *  without a dot before it; with a port it means that port. */
function isExempt(url: URL, list: string) {
  const host = url.hostname
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
    .toLowerCase();
  const port = url.port || DEFAULT_PORTS[url.protocol] || '';
  const entries = list
    .toLowerCase()
    .split(/[\s,]+/)
    .filter(Boolean);
  return entries.some((entry) => {
    const { name, port: wanted } = cutPort(entry);
    if (wanted && wanted !== port) return false;
    return name === '*' || (isIP(host) ? isInNetwork(host, name) : isInDomain(host, name));
  });
}

/** `::1` has colons and no port, `[::1]:80` and `example.org:80` have one. */
function cutPort(entry: string): { name: string; port: string } {
  const [, bracketed, plain, port = ''] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d+))?$/.exec(entry) ?? [];
  return { name: bracketed ?? plain ?? entry, port };
}

function isInDomain(host: string, name: string) {
  const domain = name.replace(/^\*?\./, '').replace(/\.$/, '');
  return domain !== '' && (host === domain || host.endsWith(`.${domain}`));
}

function isInNetwork(host: string, network: string) {
  const [address = '', bits] = network.split('/');
  const family = isIPv6(address) ? 'ipv6' : 'ipv4';
  const most = family === 'ipv6' ? 128 : 32;
  const length = bits === undefined ? most : Number(bits);
  const isSound = isIP(address) && Number.isInteger(length) && length >= 0 && length <= most;
  if (!isSound) return false;
  const list = new BlockList();
  list.addSubnet(address, length, family);
  return list.check(host, isIPv6(host) ? 'ipv6' : 'ipv4');
}
