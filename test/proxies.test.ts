// Whatever has an address is reached through the proxy that the environment names: models, servers over HTTP and
// WebSocket, authorization servers.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { compose } from '../chapters/composition.ts';
import { LIMITS } from '../chapters/18-minds/tunnel.ts';
import { forConnections, plainHost } from '../chapters/19-the-terminal/host.ts';
import { Fetcher } from '../chapters/21-authorization/fetcher.ts';
import { said, scripted } from './help/oauth-servers.ts';
import { cleanUp, later, open, rejection, until } from './help/basics.ts';
import { calculator } from './help/http-servers.ts';
import { call, say, startModelServer } from './help/model-server.ts';
import { CERTIFICATE, HOST, portOf, setEnv, startProxy, withTls } from './help/proxy-server.ts';
import { place, run } from './help/terminal.ts';

afterEach(cleanUp);

const options = () => {
  const { transports, extensions } = forConnections(compose(plainHost()));
  return { transports, extensions: extensions.filter(({ name }) => name !== 'stayAlive') };
};

const wires: [string, string, string[]][] = [
  ['http', 'http', ['http', '--era', 'legacy', '--sessions']],
  ['http', 'https', ['http', '--era', 'modern']],
  ['sse', 'https', ['sse']],
  ['ws', 'ws', ['ws']],
  ['ws', 'wss', ['ws']],
];

for (const [type, scheme, flags] of wires)
  test(`a server of the type ${type} at ${scheme}:// is called through the proxy`, async () => {
    const { url } = await calculator(...flags);
    const proxy = await startProxy({ login: 'me:secret' });
    const isTls = scheme.endsWith('s') && scheme !== 'ws';
    const port = isTls ? await withTls(portOf(url)) : portOf(url);
    for (const target of [HOST, `${HOST}:80`, `${HOST}:443`]) proxy.lead(target, port);
    const address = proxy.url.replace('//', '//me:secret@');
    setEnv({ ALL_PROXY: address, NODE_TLS_REJECT_UNAUTHORIZED: '0' });
    const far = `${scheme}://${HOST}${new URL(url).pathname}`;
    const { connection } = await open({ type, url: far }, options());
    assert.equal((await connection.callTool('add', { a: 2, b: 40 })).text, '42');
    const methods = new Set(proxy.log.map(({ method }) => method));
    assert.equal(methods.has('CONNECT'), scheme !== 'http', [...methods].join());
    await connection.close();
  });

test('a refusal of the proxy is told as such, and a WebSocket gives up a tunnel that does not open', async () => {
  const refusing = await startProxy({ login: 'me:right' });
  setEnv({ ALL_PROXY: refusing.url });
  for (const [type, scheme] of [
    ['http', 'https'],
    ['ws', 'wss'],
    ['ws', 'ws'],
  ]) {
    const error = await rejection(open({ type, url: `${scheme}://${HOST}/mcp` }, options()));
    assert.equal(error.kind, 'config', error.message);
    assert.match(
      error.message,
      /cannot be reached: the proxy http:\/\/127\.0\.0\.1:\d+ answered 407 .* into ALL_PROXY/,
    );
  }
  const mute = await startProxy({ isMute: true });
  const { connectMs } = LIMITS;
  LIMITS.connectMs = 600_000; // it is not this one that ends the wait
  later(() => (LIMITS.connectMs = connectMs));
  setEnv({ ALL_PROXY: mute.url });
  const { transports } = options();
  const transport = transports.ws!('demo', { type: 'ws', url: `wss://${HOST}/mcp` }, 2 ** 20);
  const starting = rejection(transport.start({ message: () => {}, closed: () => {} }));
  await until(() => mute.log.length === 1);
  await transport.close();
  assert.match((await starting).message, /was closed by us/);
  await until(() => mute.sockets.size === 0);
  setEnv({ ALL_PROXY: 'socks5://127.0.0.1:1' });
  for (const [type, scheme] of [
    ['http', 'https'],
    ['ws', 'wss'],
  ]) {
    const error = await rejection(open({ type, url: `${scheme}://${HOST}/mcp` }, options()));
    assert.deepEqual(
      [error.kind, /ALL_PROXY names a proxy of the kind socks5:\/\//.test(error.message)],
      ['config', true],
    );
  }
});

test('G3: metadata is fetched through the proxy, where a name is known to it alone; a private address is refused as ever', async () => {
  const issuer = await scripted({ 'GET /metadata': () => said({ issuer: 'right' }) });
  const proxy = await startProxy();
  proxy.lead(`${HOST}:443`, await withTls(issuer.port));
  const fetcher = new Fetcher('demo', new URL(`https://${HOST}/mcp`));
  const direct = await rejection(fetcher.fetch(`https://${HOST}/metadata`));
  assert.match(direct.message, /which cannot be found/);
  setEnv({ HTTPS_PROXY: proxy.url, NODE_TLS_REJECT_UNAUTHORIZED: '0' });
  assert.deepEqual((await fetcher.fetch(`https://${HOST}/metadata`)).body, { issuer: 'right' });
  assert.deepEqual(
    proxy.log.map(({ target }) => target),
    [`${HOST}:443`],
  );
  const inside = [
    '10.0.0.1',
    '169.254.169.254',
    '[::ffff:a9fe:a9fe]',
    '0x7f.1',
    '0.0.0.0',
    'localhost',
    '127.0.0.1',
    '[fd00::1]',
  ];
  for (const host of inside) {
    const error = await rejection(fetcher.fetch(`https://${host}/metadata`));
    assert.equal(error.kind, 'auth', host);
    assert.match(error.message, /we do not go there/, host);
  }
  assert.equal(proxy.log.length, 1, 'the proxy was not even asked');
});

test('the program: model and server through the proxy, with a certificate of NODE_EXTRA_CA_CERTS; a project sets no proxy (A6)', async () => {
  const model = await startModelServer([
    call('mcp__far__add', { a: 2, b: 40 }),
    say('It is 42.'),
    say('Directly.'),
  ]);
  const { url } = await calculator('http', '--era', 'legacy');
  const proxy = await startProxy({ login: 'me:pass-word-1' });
  proxy.lead(`${HOST}:443`, await withTls(portOf(model.url)));
  proxy.lead(`${HOST}:8443`, await withTls(portOf(url)));
  const where = place();
  writeFileSync(join(where.home, 'ca.pem'), CERTIFICATE);
  const far = { far: { type: 'http', url: `https://${HOST}:8443${new URL(url).pathname}` } };
  const env = {
    ANTHROPIC_API_KEY: 'a-key-for-tests',
    ANTHROPIC_BASE_URL: `https://${HOST}`,
    HTTPS_PROXY: proxy.url.replace('//', '//me:pass-word-1@'),
    NODE_EXTRA_CA_CERTS: join(where.home, 'ca.pem'),
  };
  const trace = join(where.cwd, 'trace.jsonl');
  const flags = [
    '-p',
    '--allow',
    'mcp__far__add',
    '--mcp-config',
    JSON.stringify(far),
    '--trace',
    trace,
    'add',
  ];
  const { code, out, err } = await run(where, flags, { env });
  assert.deepEqual([code, out, err], [0, 'It is 42.\n', '']);
  const targets = new Set(proxy.log.map(({ target }) => target));
  assert.deepEqual([...targets].sort(), [`${HOST}:443`, `${HOST}:8443`]);
  assert.deepEqual(model.problems, []);

  const seen = proxy.log.length;
  const settings = {
    env: { HTTPS_PROXY: proxy.url, HTTP_PROXY: proxy.url, ALL_PROXY: proxy.url },
    proxy: proxy.url,
  };
  const project = place({
    '.claude/settings.json': settings,
    '.env': `ALL_PROXY=${proxy.url}\n`,
    '.npmrc': `proxy=${proxy.url}\n`,
  });
  const keyless = { OPENAI_BASE_URL: `http://${HOST}/v1` };
  const stray = await run(project, ['-p', '--model', 'openai/some', 'hello'], { env: keyless });
  assert.deepEqual([stray.code, proxy.log.length], [4, seen], stray.err);
});
