// Through a proxy that others wrote: proxy-chain, at a pinned version.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { cleanUp, later } from '../help/basics.ts';
import { calculator } from '../help/http-servers.ts';
import { call, say, startModelServer } from '../help/model-server.ts';
import { installed } from '../help/installed.ts';
import { CERTIFICATE, HOST, portOf, withTls } from '../help/proxy-server.ts';
import { jsonLines, place, run } from '../help/terminal.ts';

afterEach(cleanUp);

const modules = join(installed('proxy-chain@2.7.1'), 'node_modules');
const { Server } = createRequire(join(modules, 'x.js'))('proxy-chain');

/** It leads every name to this machine, wants a login, and writes down what it was asked. */
async function startChain(): Promise<{ port: number; asked: Set<string> }> {
  const asked = new Set<string>();
  const dnsLookup = (_: string, { all }: any, done: any) =>
    all ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4);
  const server = new Server({
    port: 0,
    host: '127.0.0.1',
    prepareRequestFunction: ({ username, password, hostname, port, isHttp }: any) => {
      asked.add(`${isHttp ? 'plain' : 'tunnel'} ${hostname}:${port}`);
      return { requestAuthentication: username !== 'me' || password !== 'pass:word', dnsLookup };
    },
  });
  await server.listen();
  later(() => server.close(true));
  return { port: server.port, asked };
}

test('model and servers, over TLS and plain, through proxy-chain; a wrong password is told', async () => {
  const add = (server: string) => call(`mcp__${server}__add`, { a: 2, b: 40 });
  const script = [add('far'), add('plain'), add('socket'), say('Three times 42.')];
  const model = await startModelServer(script);
  const [http, modern, ws] = await Promise.all([
    calculator('http', '--era', 'legacy', '--sessions'),
    calculator('http', '--era', 'modern'),
    calculator('ws'),
  ]);
  const ports = {
    model: await withTls(portOf(model.url)),
    far: await withTls(portOf(http.url)),
    plain: portOf(modern.url),
    socket: await withTls(portOf(ws.url)),
  };
  const path = (url: string) => new URL(url).pathname;
  const servers = {
    far: { url: `https://${HOST}:${ports.far}${path(http.url)}` },
    plain: { url: `http://${HOST}:${ports.plain}${path(modern.url)}` },
    socket: { type: 'ws', url: `wss://${HOST}:${ports.socket}${path(ws.url)}` },
  };
  const { port, asked } = await startChain();
  const where = place();
  writeFileSync(join(where.home, 'ca.pem'), CERTIFICATE);
  const env = (password: string) => ({
    OPENAI_API_KEY: 'a-key-for-tests',
    OPENAI_BASE_URL: `https://${HOST}:${ports.model}/v1`,
    ALL_PROXY: `http://me:${password}@127.0.0.1:${port}`,
    NODE_EXTRA_CA_CERTS: join(where.home, 'ca.pem'),
  });
  const flags = [
    '--json',
    '--mcp-config',
    JSON.stringify(servers),
    ...['far', 'plain', 'socket'].flatMap((name) => ['--allow', `mcp__${name}__*`]),
  ];
  const right = await run(where, [...flags, 'add'], { env: env('pass%3Aword') });
  assert.deepEqual([right.code, right.err], [0, '']);
  const results = jsonLines(right.out)
    .filter(({ type }) => type === 'tool_end')
    .map(({ text }) => text);
  assert.deepEqual(results, ['42', '42', '42']);
  assert.deepEqual(
    [...asked].sort(),
    [
      `plain ${HOST}:${ports.plain}`,
      ...[ports.model, ports.far, ports.socket].map((each) => `tunnel ${HOST}:${each}`),
    ].sort(),
  );
  const wrong = await run(where, ['-p', 'hello'], { env: env('wrong-password') });
  assert.equal(wrong.code, 3);
  assert.match(
    wrong.err,
    /the proxy http:\/\/127\.0\.0\.1:\d+ answered 407 .*; put name and password into ALL_PROXY/,
  );
  assert.doesNotMatch(wrong.err, /wrong-password/);
});
