// tunnel.ts: a connection through a proxy. We say CONNECT and where to; if the proxy answers 200,
// it passes on every byte from there on and understands none of them: TLS begins behind it.
//
//   → CONNECT api.example:443 HTTP/1.1
//   ← HTTP/1.1 200 Connection established
//   → (TLS, with api.example)

import http, { type ClientRequestArgs, type IncomingMessage } from 'node:http';
import https from 'node:https';
import { isIPv6, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import tls from 'node:tls';
import { ProxyError, type Proxy } from './proxy.ts';

/** An object, so that a test can set others. */
export const LIMITS = { connectMs: 15_000 };

/** `stopped`: for a request that has no connection yet, Node cannot tell its agent that it is over. */
export type TunnelArgs = ClientRequestArgs & { servername?: string; stopped?: AbortSignal };

/** Opens tunnels for node:http, and keeps them for the next request to the same server. */
export class TunnelAgent extends http.Agent {
  private proxy: Proxy;
  private isTls: boolean;

  constructor(proxy: Proxy, isTls: boolean, keepAlive = true) {
    super({ keepAlive });
    this.proxy = proxy;
    this.isTls = isTls;
    const protocol = isTls ? 'https:' : 'http:'; // Node compares it with that of the address
    Object.assign(this, { protocol, defaultPort: isTls ? 443 : 80 });
  }

  override createConnection(
    options: TunnelArgs,
    done: (error: Error | null, socket: Duplex) => void,
  ): undefined {
    const opening = openTunnel(this.proxy, options, this.isTls);
    opening.then((socket) => done(null, socket), done as (error: Error) => void);
  }
}

/** Resolves with a connection to the server: with TLS, if there is to be any, and not before the
 *  server has proved who it is. */
function openTunnel(proxy: Proxy, options: TunnelArgs, isTls: boolean): Promise<Socket> {
  const { port, servername, stopped } = options;
  const host = options.host ?? '';
  const target = `${isIPv6(host) ? `[${host}]` : host}:${port}`;
  return new Promise((resolve, reject) => {
    let secure: Socket | undefined;
    const request = requestTunnel(proxy, target);
    const end = (error?: Error) => {
      clearTimeout(timer);
      stopped?.removeEventListener('abort', stop);
      if (!error) return;
      secure?.destroy();
      request.destroy();
      reject(error);
    };
    const stop = () => end(new Error('stopped'));
    const { connectMs } = LIMITS;
    const late = `the proxy ${proxy.name} made no connection to ${target} within ${connectMs / 1000} s`;
    const timer = setTimeout(() => end(new ProxyError(late, false)), connectMs);
    if (stopped?.aborted) return stop();
    stopped?.addEventListener('abort', stop);

    request.on('error', (error) => end(unreachable(proxy, error)));
    request.on('connect', (response, socket: Socket, head: Buffer) => {
      if (response.statusCode !== 200) return end(proxyRefusal(proxy, response, target));
      if (head.length > 0) socket.unshift(head);
      const ready = () => {
        end();
        resolve(secure ?? socket);
      };
      if (!isTls) return ready();
      secure = tls.connect({ socket, host, servername, ALPNProtocols: ['http/1.1'] }, ready);
      secure.once('error', end);
    });
    request.end();
  });
}

function requestTunnel({ url, headers }: Proxy, target: string) {
  return requestBy(url)({
    ...proxyEndpoint(url),
    method: 'CONNECT',
    path: target,
    headers: { host: target, ...headers },
    agent: false,
  });
}

export const requestBy = ({ protocol }: URL) => (protocol === 'https:' ? https : http).request;

/** Where the proxy listens. */
export function proxyEndpoint({ protocol, hostname, port }: URL) {
  const usual = protocol === 'https:' ? 443 : 80;
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port || usual };
}

export function unreachable({ name, variable }: Proxy, error: NodeJS.ErrnoException): ProxyError {
  const why =
    error.code === 'ECONNREFUSED'
      ? 'nobody listens there (ECONNREFUSED)'
      : error.message || error.code;
  return new ProxyError(`the proxy ${name} (${variable}) cannot be reached: ${why}`, false);
}

export function proxyRefusal(
  proxy: Proxy,
  { statusCode = 0, statusMessage }: IncomingMessage,
  target: string,
): ProxyError {
  const { name, variable } = proxy;
  const said = `the proxy ${name} answered ${statusCode} ${statusMessage || 'without a word'}`;
  const login = `put name and password into ${variable}, as in http://name:password@host:port`;
  const advice = statusCode === 407 ? login : `it makes no connection to ${target}`;
  return new ProxyError(`${said}; ${advice}`, statusCode >= 400 && statusCode < 500);
}
