// Chapter 18: the way to a model may lead through a proxy.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { Masker } from '../chapters/17-the-gate/safe-text.ts';
import { Anthropic } from '../chapters/18-minds/anthropic.ts';
import { OpenAi } from '../chapters/18-minds/openai.ts';
import { proxyFor, ProxyError } from '../chapters/18-minds/proxy.ts';
import { LIMITS } from '../chapters/18-minds/tunnel.ts';
import { cleanUp, later, rejection, until } from './help/basics.ts';
import { hear, raw, say, startModelServer } from './help/model-server.ts';
import { HOST, portOf, setEnv, startProxy, withTls } from './help/proxy-server.ts';

afterEach(cleanUp);

const KEY = 'sk-secret-0123456789';
const noWait = async () => {};
const anthropic = (baseUrl: string, more = {}) =>
  new Anthropic({ model: 'm', key: KEY, baseUrl, wait: noWait, ...more });

// ─── proxy.ts ───

const P = 'http://proxy.example:3128';
const way = (url: string, env: NodeJS.ProcessEnv) => proxyFor(new URL(url), env)?.url.host;

test('the usual variables: one for each kind of address, small letters first, ALL_PROXY for the rest', () => {
  const cases: [string, NodeJS.ProcessEnv, string | undefined][] = [
    ['https://a.example', {}, undefined],
    ['https://a.example', { HTTPS_PROXY: P }, 'proxy.example:3128'],
    ['wss://a.example', { HTTPS_PROXY: P }, 'proxy.example:3128'],
    ['https://a.example', { HTTP_PROXY: P }, undefined],
    ['http://a.example', { HTTP_PROXY: P }, 'proxy.example:3128'],
    ['ws://a.example', { http_proxy: P }, 'proxy.example:3128'],
    ['http://a.example', { HTTPS_PROXY: P }, undefined],
    ['https://a.example', { HTTPS_PROXY: P, https_proxy: 'http://small:1' }, 'small:1'],
    ['https://a.example', { HTTPS_PROXY: '', ALL_PROXY: 'http://all:1' }, 'all:1'],
    ['https://a.example', { HTTPS_PROXY: P, ALL_PROXY: 'socks5://all:1' }, 'proxy.example:3128'],
    ['http://a.example', { all_proxy: 'https://all:1' }, 'all:1'],
    ['https://a.example', { HTTPS_PROXY: 'bare:3128' }, 'bare:3128'],
    // In a CGI script HTTP_PROXY is a header of a visitor.
    ['http://a.example', { HTTP_PROXY: P, REQUEST_METHOD: 'GET' }, undefined],
    ['http://a.example', { http_proxy: P, REQUEST_METHOD: 'GET' }, 'proxy.example:3128'],
  ];
  for (const [url, env, expected] of cases)
    assert.equal(way(url, env), expected, `${url} ${JSON.stringify(env)}`);
});

test('this machine is never behind a proxy', () => {
  for (const host of [
    'localhost',
    'LOCALHOST:3',
    'a.localhost',
    '127.0.0.1',
    '127.9.9.9:80',
    '[::1]',
    '2130706433',
  ])
    assert.equal(way(`http://${host}/`, { http_proxy: P, ALL_PROXY: P }), undefined, host);
});

test('NO_PROXY: names with their subdomains, dots, stars, ports, addresses, networks', () => {
  const direct: [string, string][] = [
    ['*', 'a.example'],
    ['example', 'a.b.example'],
    ['.example', 'a.example'],
    ['.a.example', 'a.example'], // as curl has it
    ['*.example', 'a.example'],
    ['x.org, a.example', 'a.example'],
    ['x.org a.example', 'a.example'],
    ['A.Example.', 'a.example'],
    ['a.example', 'A.EXAMPLE.'],
    ['a.example:443', 'a.example'],
    ['a.example:8443', 'a.example:8443'],
    ['10.1.2.3', '10.1.2.3'],
    ['10.0.0.0/8', '10.1.2.3'],
    ['10.0.0.0/8', '0xa.1.2.3'],
    ['fd00::/8', '[fd12::1]'],
    ['[fd12::1]:8443', '[fd12::1]:8443'],
    ['fd12:0::1', '[fd12::1]'],
  ];
  const proxied: [string, string][] = [
    ['', 'a.example'],
    ['ample', 'a.example'],
    ['b.a.example', 'a.example'],
    ['a.example:8443', 'a.example'],
    ['10.0.0.0/8', '11.1.2.3'],
    ['10.0.0.0/99', '10.1.2.3'],
    ['10.0.0.0/8', '10.example'],
    ['.', 'a.example'],
    ['[fd12::1]:80', '[fd12::1]'],
  ];
  for (const [list, host] of direct)
    assert.equal(
      way(`https://${host}/`, { HTTPS_PROXY: P, NO_PROXY: list }),
      undefined,
      `${list} ${host}`,
    );
  for (const [list, host] of proxied)
    assert.ok(way(`https://${host}/`, { HTTPS_PROXY: P, NO_PROXY: list }), `${list} ${host}`);
  assert.equal(
    way('https://a.example', { HTTPS_PROXY: P, NO_PROXY: 'a.example', no_proxy: 'b.example' }),
    'proxy.example:3128',
  );
});

test('a variable that names no proxy we know is an error that says so, without its password', () => {
  for (const value of ['socks5://me:hunter22@proxy:1080', 'http://me:hunter22@pro xy'])
    assert.throws(
      () => way('https://a.example', { ALL_PROXY: value }),
      (error) =>
        error instanceof ProxyError &&
        error.isFinal &&
        /^ALL_PROXY /.test(error.message) &&
        !/hunter/.test(error.message),
    );
});

test('name and password go to the proxy as a header, and are masked from then on', () => {
  const proxy = proxyFor(new URL('https://a.example'), {
    HTTPS_PROXY: 'http://me%40work:p%3ass-word@proxy:3128',
  })!;
  const credentials = Buffer.from('me@work:p:ss-word').toString('base64');
  assert.deepEqual(proxy.headers, { 'proxy-authorization': `Basic ${credentials}` });
  assert.equal(proxy.name, 'http://proxy:3128');
  assert.equal(new Masker({}).text(`p:ss-word p%3ass-word ${credentials}`), '*** *** ***');
});

// ─── A model behind a proxy ───

/** A model at https://proxied.test, which only the proxy knows. */
async function behindProxy(
  script: Parameters<typeof startModelServer>[0],
  manner = {},
  secret = '',
) {
  const model = await startModelServer(script);
  const proxy = await startProxy(manner);
  proxy.lead(`${HOST}:443`, await withTls(portOf(model.url)));
  proxy.lead(HOST, portOf(model.url));
  const address = proxy.url.replace('//', `//${secret}`);
  setEnv({ HTTPS_PROXY: address, HTTP_PROXY: address, NODE_TLS_REJECT_UNAUTHORIZED: '0' });
  return { model, proxy };
}

test('https: one tunnel, which the next query uses again; the key is for the model, the password for the proxy', async () => {
  const script = Array(20).fill(say('again'));
  const { model, proxy } = await behindProxy(script, { login: 'me:s:cret' }, 'me:s%3acret@');
  const mind = anthropic(`https://${HOST}`);
  // The end of an answer may come after the answer, and before it the tunnel is not free.
  while (proxy.log.length === model.requests.length && model.requests.length < script.length)
    assert.equal((await hear(mind, 'Hello')).text, 'again');
  assert.ok(proxy.log.length < model.requests.length);
  assert.ok(
    proxy.log.every(({ method, target }) => method === 'CONNECT' && target === `${HOST}:443`),
  );
  assert.doesNotMatch(JSON.stringify(proxy.log), /sk-secret/);
  for (const { headers } of model.requests) assert.equal(headers['proxy-authorization'], undefined);
  assert.equal(model.requests[0]!.headers.host, HOST);
});

test('http: the proxy gets the whole address, and no tunnel is needed', async () => {
  const { model, proxy } = await behindProxy([say('plain'), say('direct')]);
  const mind = () => new OpenAi({ model: 'm', baseUrl: `http://${HOST}/v1`, wait: noWait });
  assert.equal((await hear(mind(), 'Hello')).text, 'plain');
  assert.deepEqual(
    proxy.log.map(({ method, target }) => [method, target]),
    [['POST', `http://${HOST}/v1/chat/completions`]],
  );
  assert.equal((await hear(anthropic(model.url), 'Hello')).text, 'direct');
  assert.equal(proxy.log.length, 1, 'this machine is reached directly');
});

test('a proxy that is itself spoken to over TLS', async () => {
  const { proxy } = await behindProxy([say('twice encrypted'), say('once')], {
    login: 'me:secret',
  });
  const address = `https://me:secret@127.0.0.1:${await withTls(portOf(proxy.url))}`;
  setEnv({ HTTPS_PROXY: address, HTTP_PROXY: address });
  assert.equal((await hear(anthropic(`https://${HOST}`), 'Hello')).text, 'twice encrypted');
  const plain = new OpenAi({ model: 'm', baseUrl: `http://${HOST}/v1`, wait: noWait });
  assert.equal((await hear(plain, 'Hello')).text, 'once');
  assert.deepEqual(
    proxy.log.map(({ method }) => method),
    ['CONNECT', 'POST'],
  );
});

test('errors name the proxy; a refusal is final, the rest is tried again', async () => {
  const cases: [object, RegExp, string, number][] = [
    [
      { login: 'me:right' },
      /: the proxy http:\/\/127\.0\.0\.1:\d+ answered 407 Proxy Authentication Required; put name and password into HTTPS_PROXY/,
      'config',
      1,
    ],
    [
      { status: 403 },
      /answered 403 Forbidden; it makes no connection to proxied\.test:443$/,
      'config',
      1,
    ],
    [{ status: 503 }, /answered 503 Service Unavailable; it makes no connection/, 'unreachable', 3],
  ];
  for (const [manner, pattern, kind, tries] of cases) {
    const { proxy } = await behindProxy([], manner, 'me:wrong-password@');
    const error = await rejection(hear(anthropic(`https://${HOST}`), 'Hello'));
    assert.match(error.message, pattern);
    assert.deepEqual([error.kind, proxy.log.length], [kind, tries]);
    assert.doesNotMatch(error.message, /wrong-password/);
  }
  const { proxy } = await behindProxy([], { login: 'me:right' });
  const plain = await rejection(
    hear(new OpenAi({ model: 'm', baseUrl: `http://${HOST}/v1`, wait: noWait }), 'Hello'),
  );
  assert.match(
    plain.message,
    /answered 407 Proxy Authentication Required; put name and password into HTTP_PROXY/,
  );
  proxy.stop();
  for (const base of ['https', 'http']) {
    const model = new OpenAi({ model: 'm', baseUrl: `${base}://${HOST}/v1`, wait: noWait });
    const gone = await rejection(hear(model, 'Hello'));
    assert.match(
      gone.message,
      /: the proxy http:\/\/127\.0\.0\.1:\d+ \(HTTPS?_PROXY\) cannot be reached: nobody listens there \(ECONNREFUSED\)$/,
    );
  }
});

test('a certificate that is not trusted is not trusted behind a proxy either, and the remedy is named', async () => {
  const { model } = await behindProxy([say('never')]);
  setEnv({ NODE_TLS_REJECT_UNAUTHORIZED: '1' });
  const error = await rejection(hear(anthropic(`https://${HOST}`), 'Hello'));
  assert.match(
    error.message,
    /: DEPTH_ZERO_SELF_SIGNED_CERT; name the certificate .* in NODE_EXTRA_CA_CERTS$/,
  );
  assert.equal(model.requests.length, 0);
});

/** A limit for the tunnels of one test. */
function limitTunnels(ms: number): void {
  const { connectMs } = LIMITS;
  LIMITS.connectMs = ms;
  later(() => (LIMITS.connectMs = connectMs));
}

test('a proxy that is mute is given up, and named', async () => {
  const { proxy } = await behindProxy([], { isMute: true });
  limitTunnels(20);
  const error = await rejection(hear(anthropic(`https://${HOST}`), 'Hello'));
  assert.match(
    error.message,
    /: the proxy http:\/\/127\.0\.0\.1:\d+ made no connection to proxied\.test:443 within 0\.02 s$/,
  );
  assert.deepEqual([error.kind, proxy.log.length], ['unreachable', 3]);
});

test('an abort ends the wait for a proxy that is mute, at once', async () => {
  const { proxy } = await behindProxy([], { isMute: true });
  limitTunnels(600_000); // it is not this one that ends the wait
  const controller = new AbortController();
  const reason = new Error('enough');
  const asking = rejection(hear(anthropic(`https://${HOST}`), { signal: controller.signal }));
  await until(() => proxy.log.length === 1);
  controller.abort(reason);
  assert.equal(await asking, reason);
  await until(() => proxy.sockets.size === 0);
});

test('an abort in the midst of an answer ends the tunnel', async () => {
  const { model, proxy } = await behindProxy([
    say('a slow answer, piece by piece', { delayMs: 30 }),
  ]);
  const controller = new AbortController();
  const stop = ({ type }: { type: string }) =>
    type === 'text' && controller.abort(new Error('enough'));
  const error = await rejection(
    hear(anthropic(`https://${HOST}`), { signal: controller.signal }, stop),
  );
  assert.equal(error.message, 'enough');
  await until(() => model.requests[0]!.abandoned && proxy.sockets.size === 0);
});

test('silence has a limit in the midst of an answer, too', async () => {
  const begin = 'data: {"type":"message_start","message":{}}\n\n';
  const server = await startModelServer(Array(3).fill(raw('anthropic', begin, { then: 'hang' })));
  // Long enough for the first bytes on a busy machine: silence before them is another message.
  const error = await rejection(hear(anthropic(server.url, { silenceMs: 1000 }), 'Hello'));
  assert.equal(error.message, 'the answer of anthropic/m broke off (silence for 1 s)');
  assert.equal(server.requests.length, 3);
});
