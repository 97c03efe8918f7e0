// Our WebSocket client against a server that others wrote: the `ws` package, installed into .cache/ when it is not there.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer as createHttp, type Server } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { calculator } from '../../chapters/25-other-pipes/calculator.ts';
import { WebSocketTransport } from '../../chapters/25-other-pipes/websocket.ts';
import { inBothEras } from '../../chapters/22-no-handshake/era.ts';
import type { ConnectionOptions, Message, Transport } from '../../mcp.ts';
import { cleanUp, connect, folder, later, open, rejection, until } from '../help/basics.ts';
import { installed } from '../help/installed.ts';

const { WebSocketServer } = createRequire(join(installed('ws@8.22.2'), 'index.js'))('ws');
const ws = {
  transports: { ws: (...given: [string, any, number]) => new WebSocketTransport(...given) },
} satisfies ConnectionOptions;

afterEach(cleanUp);

/** A server by `ws`, compression and all. `peers` are its sides of the connections. */
async function listen(http: Server = createHttp(), scheme = 'ws') {
  const peers: any[] = [];
  const closes: [code: number, reason: string][] = [];
  const errors: Error[] = [];
  const server = new WebSocketServer({
    server: http,
    perMessageDeflate: { threshold: 0 },
    handleProtocols: (offered: Set<string>) => [...offered][0],
  });
  server.on('connection', (peer: any) => {
    peers.push(peer);
    peer
      .on('close', (code: number, reason: Buffer) => closes.push([code, `${reason}`]))
      .on('error', (error: Error) => errors.push(error));
  });
  await new Promise<void>((done) => http.listen(0, '127.0.0.1', done));
  later(() => (server.clients.forEach((peer: any) => peer.terminate()), http.close()));
  const url = `${scheme}://localhost:${(http.address() as AddressInfo).port}`;
  return { server, peers, closes, errors, config: { type: 'ws', url } };
}

/** Every connection talks to a calculator of its own. */
function calculate(server: any): void {
  server.on('connection', (peer: any) => {
    const transport: Transport = {
      start: async ({ message }) =>
        void peer.on('message', (data: Buffer) => message(JSON.parse(`${data}`))),
      send: async (message: Message) => peer.send(JSON.stringify(message)),
      close: async () => peer.close(),
    };
    calculator(transport);
  });
}

test('ws: calls in both eras, and compression is not negotiated', async () => {
  const { server, peers, closes, errors, config } = await listen();
  calculate(server);
  for (const options of [ws, { ...ws, extensions: inBothEras() }]) {
    const { connection, warnings } = await open(config, options);
    assert.deepEqual(
      (await connection.listTools()).map(({ name }) => name),
      ['add', 'greet'],
    );
    assert.equal(
      (await connection.callTool('greet', { name: 'grüße \u2028 🦊' })).text,
      'Hello, grüße \u2028 🦊!',
    );
    const sums = await Promise.all(
      Array.from({ length: 500 }, (_, a) => connection.callTool('add', { a, b: 1 })),
    );
    assert.deepEqual(
      sums.map(({ text }) => Number(text)),
      Array.from({ length: 500 }, (_, a) => a + 1),
    );
    assert.deepEqual(warnings, []);
    assert.deepEqual([peers.at(-1).extensions, peers.at(-1).protocol], ['', 'mcp']);
    await connection.close();
  }
  await until(() => closes.length === 2);
  assert.deepEqual(
    [closes, errors],
    [
      [
        [1000, ''],
        [1000, ''],
      ],
      [],
    ],
  );
});

test('ws: messages of a megabyte and more, both ways, also in fragments', async () => {
  const { server, peers, config } = await listen();
  calculate(server);
  const { connection, wire } = await open(config, ws);
  for (const size of [2 ** 20, 5_000_000]) {
    const name = 'é🦊x'.repeat(size / 7);
    assert.equal((await connection.callTool('greet', { name })).text, `Hello, ${name}!`);
  }
  const text = JSON.stringify({
    jsonrpc: '2.0',
    method: 'notifications/message',
    params: { data: '🦊'.repeat(2 ** 18) },
  });
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += 99_991) {
    peers[0].send(bytes.subarray(at, at + 99_991), {
      binary: false,
      fin: at + 99_991 >= bytes.length,
    });
    peers[0].ping('in the middle');
  }
  await until(() => wire.at(-1)![1].method === 'notifications/message');
  assert.deepEqual(wire.at(-1)![1], JSON.parse(text));
});

test('ws: more than we take is refused with 1009', async () => {
  const { peers, closes, config } = await listen();
  const { connection } = await connect(config, { ...ws, maxLineBytes: 1000 });
  const waiting = rejection(connection.request('ping'));
  peers[0].send(JSON.stringify('x'.repeat(1000)));
  assert.equal((await waiting).kind, 'limit');
  await until(() => closes.length === 1);
  assert.equal(closes[0]![0], 1009);
});

test('ws: its pings are answered with what they carry', async () => {
  const { peers, config } = await listen();
  await connect(config, ws);
  const pongs: string[] = [];
  peers[0].on('pong', (data: Buffer) => pongs.push(`${data}`));
  for (const data of ['', 'hello', 'x'.repeat(125)]) peers[0].ping(data);
  await until(() => pongs.length === 3);
  assert.deepEqual(pongs, ['', 'hello', 'x'.repeat(125)]);
});

test('ws: it closes, or is torn away, and whoever waits is told', async () => {
  const { peers, closes, config } = await listen();
  const first = await connect(config, ws);
  const waiting = rejection(first.connection.request('ping'));
  peers[0].close(1012, 'restarting, grüße');
  const why = await waiting;
  assert.deepEqual(
    [why.kind, /closed the connection \(1012: "restarting, grüße"\)$/.test(why.message)],
    ['closed', true],
  );
  await until(() => closes.length === 1);
  assert.deepEqual(closes, [[1012, '']]);
  const second = await connect(config, ws);
  const torn = rejection(second.connection.request('ping'));
  peers[1].terminate();
  assert.match((await torn).message, /broke off/);
});

test('ws: a server that wants a login', async () => {
  const { server, config } = await listen();
  server.options.verifyClient = ({ req }: any) => req.headers.authorization === 'Bearer right';
  const refused = await rejection(
    connect({ ...config, headers: { Authorization: 'Bearer wrong' } }, ws),
  );
  assert.deepEqual([refused.kind, refused.status], ['auth', 401]);
  await connect({ ...config, headers: { Authorization: 'Bearer right' } }, ws);
});

test('wss: over TLS; a certificate that nobody vouches for is refused', async (context) => {
  const place = folder();
  const [key, cert] = [join(place, 'key.pem'), join(place, 'cert.pem')];
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'];
  const made = spawnSync('openssl', [
    'req',
    '-x509',
    ...curve,
    '-nodes',
    '-keyout',
    key,
    '-out',
    cert,
    '-days',
    '2',
    ...names,
  ]);
  if (made.status !== 0) return context.skip('there is no openssl to make a certificate with');
  const { server, config } = await listen(
    createHttps({ key: readFileSync(key), cert: readFileSync(cert) }),
    'wss',
  );
  calculate(server);
  const refused = await rejection(connect(config, ws));
  assert.deepEqual(
    [refused.kind, /self.signed certificate/.test(refused.message)],
    ['unreachable', true],
  );
  later(() => delete process.env.NODE_TLS_REJECT_UNAUTHORIZED);
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
  const { connection } = await open(config, ws);
  assert.equal(
    (await connection.callTool('greet', { name: 'x'.repeat(2 ** 20) })).text.length,
    2 ** 20 + 8,
  );
  await connection.close();
});
