// A proxy on 127.0.0.1 for tests, and servers behind it that have a name: `proxied.test` exists for the proxy alone, so a
// request that does not go through it cannot arrive.

import http, { type IncomingHttpHeaders } from 'node:http';
import net, { type AddressInfo, type Socket } from 'node:net';
import tls from 'node:tls';
import { later } from './basics.ts';

export const HOST = 'proxied.test';

/** What it was asked. `target` is the address of an absolute request, or host and port of a CONNECT. */
export type Passed = { method: string; target: string; headers: IncomingHttpHeaders };
export type ProxyServer = {
  url: string;
  log: Passed[];
  sockets: Set<Socket>;
  /** Opens a way: from now on the address leads to this port of ours. */
  lead(target: string, port: number): void;
  stop(): void;
};
type Manner = {
  login?: string; // name:password
  status?: number; // instead of a connection
  isMute?: boolean; // it takes what we say, and says nothing
};

export async function startProxy({ login, status, isMute }: Manner = {}): Promise<ProxyServer> {
  const log: Passed[] = [];
  const ports = new Map<string, number>();
  const sockets = new Set<Socket>();
  const right = login && `Basic ${Buffer.from(login).toString('base64')}`;

  /** The port behind an address, or the status that says no. */
  const decide = ({ method, target, headers }: Passed): { port?: number; refusal?: number } => {
    log.push({ method, target, headers });
    if (right && headers['proxy-authorization'] !== right) return { refusal: 407 };
    const place = method === 'CONNECT' ? target : new URL(target).host;
    const port = ports.get(place);
    return status || !port ? { refusal: status ?? 502 } : { port };
  };

  const server = http.createServer((request, response) => {
    const { method = '', url: target = '', headers } = request;
    const { port, refusal } = decide({ method, target, headers });
    if (refusal) return void response.writeHead(refusal).end('the proxy says no');
    const { 'proxy-authorization': _, ...passed } = headers; // it is for us alone
    const { pathname, search } = new URL(target);
    const onward = http.request(
      { port, host: '127.0.0.1', method, path: pathname + search, headers: passed },
      (answer) => {
        response.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(response);
      },
    );
    onward.on('error', () => response.destroy());
    response.on('close', () => onward.destroy());
    request.pipe(onward);
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
  });
  server.on(
    'connect',
    ({ method = '', url: target = '', headers }, socket: Socket, head: Buffer) => {
      const { port, refusal } = decide({ method, target, headers });
      if (isMute) return void socket.on('end', () => socket.end()).resume();
      if (refusal)
        return void socket.end(`HTTP/1.1 ${refusal} ${http.STATUS_CODES[refusal]}\r\n\r\n`);
      const onward = net.connect(port!, '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
        onward.write(head);
        onward.pipe(socket);
        socket.pipe(onward);
      });
      onward.on('error', () => socket.destroy()).on('close', () => socket.destroy());
      socket.on('close', () => onward.destroy());
    },
  );
  const stop = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  later(stop);
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}`,
    log,
    sockets,
    lead: (target, to) => void ports.set(target, to),
    stop,
  };
}

/** A server with TLS before a plain one. Returns its port. */
export function withTls(port: number): Promise<number> {
  const server = tls.createServer({ key: KEY, cert: CERTIFICATE }, (socket) => {
    const onward = net.connect(port, '127.0.0.1');
    socket
      .on('error', () => onward.destroy())
      .on('close', () => onward.destroy())
      .pipe(onward);
    onward
      .on('error', () => socket.destroy())
      .on('close', () => socket.destroy())
      .pipe(socket);
  });
  server.on('tlsClientError', () => {}); // a client that does not believe us
  later(() => server.close());
  return listen(server);
}

async function listen(server: net.Server): Promise<number> {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return (server.address() as AddressInfo).port;
}

export const portOf = (url: string) => Number(new URL(url).port);

/** Variables for this process, until the test is over. */
export function setEnv(variables: Record<string, string>): void {
  for (const [name, value] of Object.entries(variables)) {
    const before = process.env[name];
    process.env[name] = value;
    later(() => {
      if (before === undefined) delete process.env[name];
      else process.env[name] = before;
    });
  }
}

// Made for these tests, for nothing else, and valid until 2126:
//   openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem -days 36500
//     -subj /CN=proxied.test -addext subjectAltName=DNS:proxied.test
const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg/4E0M/Kkp06rDRcr
unbysaWdhNXzEFHOwOkozAnwn1+hRANCAAQCAaN5oWGtEZ4ezzCcDazOkkEULnEk
tgsPmanbH99K2mJC4uVdENjovDtRCln8OwvVd7pPJVRnaw+++8Ht3dwl
-----END PRIVATE KEY-----
`;
export const CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBnjCCAUSgAwIBAgIUTIaBMDTNu4G8panwWlsP8FitLDMwCgYIKoZIzj0EAwIw
FzEVMBMGA1UEAwwMcHJveGllZC50ZXN0MCAXDTI2MTExNzA4MTM0M1oYDzIxMjYx
MDI0MDgxMzQzWjAXMRUwEwYDVQQDDAxwcm94aWVkLnRlc3QwWTATBgcqhkjOPQIB
BggqhkjOPQMBBwNCAAQCAaN5oWGtEZ4ezzCcDazOkkEULnEktgsPmanbH99K2mJC
4uVdENjovDtRCln8OwvVd7pPJVRnaw+++8Ht3dwlo2wwajAdBgNVHQ4EFgQU2v5Z
IY81q2yPjXxXCWAxqlWmOqcwHwYDVR0jBBgwFoAU2v5ZIY81q2yPjXxXCWAxqlWm
OqcwDwYDVR0TAQH/BAUwAwEB/zAXBgNVHREEEDAOggxwcm94aWVkLnRlc3QwCgYI
KoZIzj0EAwIDSAAwRQIhALIGd15Gko71XaoFQxxOat1x62HpqhZjvcvJHlgKTcCV
AiBeP9qiwrGGP5Nf9ilPaik8zXZwlj6VLbN0HnVQBwlfXw==
-----END CERTIFICATE-----
`;
