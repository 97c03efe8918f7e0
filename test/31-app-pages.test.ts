// Chapter 31: what an app may load, and who gets which page. Requests as no browser sends them; browsers are in
// test/real/apps.test.ts.

import assert from 'node:assert/strict';
import { request } from 'node:http';
import { afterEach, test } from 'node:test';
import { policyFor } from '../chapters/31-apps/app-policy.ts';
import { show } from '../mcp.ts';
import { cleanUp, until } from './help/basics.ts';
import { appsWith, fixture } from './help/apps.ts';

afterEach(cleanUp);

const KINDS = ['connectDomains', 'resourceDomains', 'frameDomains', 'baseUriDomains'];
const directives = (header: string) =>
  Object.fromEntries(
    header.split('; ').map((each) => {
      const [name = '', ...sources] = each.split(' ');
      return [name, sources.join(' ')];
    }),
  );

test('what is not declared is closed; what an app brings along is open', () => {
  for (const csp of [
    undefined,
    null,
    {},
    [],
    'https://a.example',
    { connectDomains: 'https://a.example' },
    { connectDomains: null },
  ]) {
    const { header, connections, refused } = policyFor(csp);
    const own = 'data: blob:';
    assert.deepEqual(directives(header), {
      'default-src': "'none'",
      'script-src': `'unsafe-inline' 'unsafe-eval' ${own}`,
      'style-src': `'unsafe-inline' ${own}`,
      'img-src': own,
      'font-src': own,
      'media-src': own,
      'connect-src': own,
      'worker-src': 'data: blob:',
      'frame-src': "'none'",
      'base-uri': "'none'",
      'object-src': "'none'",
      'form-action': "'none'",
      'manifest-src': "'none'",
    });
    assert.equal(connections, '(response-origin)');
    assert.deepEqual(refused, []);
  }
});

test('each source is where it was declared for, and nowhere else', () => {
  const csp = {
    connectDomains: ['wss://c.example:8443'],
    resourceDomains: ['https://*.r.example'],
    frameDomains: ['https://f.example'],
    baseUriDomains: ['https://b.example'],
  };
  const { header, connections, allowed } = policyFor(csp);
  const found = directives(header);
  const having = (source: string) =>
    Object.keys(found).filter((name) => found[name]!.split(' ').includes(source));
  assert.deepEqual(having('wss://c.example:8443'), ['connect-src']);
  assert.deepEqual(having('https://*.r.example'), [
    'script-src',
    'style-src',
    'img-src',
    'font-src',
    'media-src',
  ]);
  assert.deepEqual(having('https://f.example'), ['frame-src']);
  assert.deepEqual(having('https://b.example'), ['base-uri']);
  assert.equal(
    connections,
    '(response-origin "wss://c.example:8443" "https://*.r.example" "https://f.example")',
  );
  assert.deepEqual(allowed, csp);
});

test('K15: what is no public origin counts for nothing, and is told', () => {
  const long = `https://${'a.'.repeat(130)}example`;
  const attacks = [
    'https://a.example; script-src *',
    'https://a.example script-src',
    'https://a.example, https://b.example',
    '*',
    'https:',
    'https://',
    'data:',
    'blob:',
    "'self'",
    "'unsafe-inline'",
    'https://a.example\nscript-src *',
    'https://a.example\r',
    '\thttps://a.example',
    'https://a.example/path',
    'https://a.example/',
    'https://a.example?x',
    'https://user@a.example',
    'http://a.example',
    'ws://a.example',
    'ftp://a.example',
    '//a.example',
    'a.example',
    'https://localhost',
    'https://x.localhost',
    'https://127.0.0.1',
    'https://127.1',
    'https://2130706433',
    'https://0x7f000001',
    'https://0x7f.1',
    'https://0177.0.0.1',
    'https://[::1]',
    'https://0.0.0.0',
    'https://10.0.0.1',
    'https://192.168.1.1',
    'https://172.16.0.1',
    'https://169.254.169.254',
    'https://100.64.0.1',
    'https://8.8.8.8',
    'https://printer.local',
    'https://router.lan',
    'https://nas.home.arpa',
    'https://wiki.internal',
    'https://intranet',
    'https://x.corp',
    'https://LOCALHOST',
    'https://a.LOCAL',
    'https://*',
    'https://*.com',
    'https://*.*.example',
    'https://a.*.example',
    'https://a..example',
    'https://.example',
    'https://a.example.',
    'https://-a.example',
    'https://a-.example',
    'https://a.example:*',
    'https://a.example:',
    'https://a.example:123456',
    'https://münchen.example',
    '"https://a.example"',
    "https://a.example'",
    'https://a_b.example',
    long,
  ];
  const odd = [7, null, {}, ['https://a.example'], undefined, true];
  for (const attack of [...attacks, ...odd])
    for (const kind of KINDS) {
      const { header, connections, refused } = policyFor({
        [kind]: ['https://good.example', attack],
      });
      const good = policyFor({ [kind]: ['https://good.example'] });
      assert.deepEqual([header, connections], [good.header, good.connections], `${attack}`);
      assert.deepEqual(refused, [show(attack).slice(0, 100)]);
    }
  const good = [
    'https://a.example',
    'wss://a.example',
    'https://*.a.example',
    'https://a.example:443',
    'HTTPS://A.example',
    'https://xn--mnchen-3ya.example',
    'https://1.a.example',
  ];
  assert.deepEqual(policyFor({ connectDomains: good }).refused, []);
});

// ─── Who gets what ─────────────────────────────────────────────────────────────────────────────

type Asked = { status: number; text: string; headers: Record<string, any> };
function ask(
  port: number,
  path: string,
  headers: Record<string, string>,
  body?: string,
): Promise<Asked> {
  return new Promise((done, fail) => {
    const method = body === undefined ? 'GET' : 'POST';
    const sent = request({ host: '127.0.0.1', port, path, method, headers }, async (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (piece) => (text += piece));
      const end = () => done({ status: answer.statusCode!, text, headers: answer.headers });
      answer.on('end', end);
      if (answer.headers['content-type'] === 'application/x-ndjson') answer.once('data', end);
    });
    sent.on('error', fail);
    sent.end(body);
  });
}

async function opened(declared: object = {}) {
  const t = await appsWith([fixture('hostile-app.mjs'), '/dev/null', JSON.stringify(declared)]);
  const app = await t.open('show');
  const url = await t.apps.addressOf(app);
  const port = Number(url.port);
  const host = `127.0.0.1:${port}`;
  const ours = { host, origin: `http://${host}`, 'content-type': 'application/json' };
  const frame = `${app.id}.localhost:${port}`;
  const post = (what: string, headers: object = {}, body: object = {}) =>
    ask(port, `/${app.id}/${what}`, { ...ours, ...headers } as any, JSON.stringify(body));
  const key = async () => JSON.parse((await post('key', {}, { code: url.hash.slice(1) })).text).key;
  return { ...t, app, url, port, host, ours, frame, post, key };
}

test('K16: under each name there is its own page, and nothing of the other', async () => {
  const { app, port, host, frame, post, key } = await opened();
  const get = (path: string, headers: Record<string, string>) => ask(port, path, headers);
  assert.equal((await get(`/${app.id}/`, { host })).status, 200);
  assert.match((await get('/', { host: frame })).text, /It carries messages, and adds none/);
  assert.match((await get('/view', { host: frame })).text, /hostile/);
  const refused: [string, Record<string, string>, number][] = [
    [`/${app.id}/`, { host: `localhost:${port}` }, 403],
    [`/${app.id}/`, { host: `evil.example:${port}` }, 403],
    [`/${app.id}/`, { host, origin: 'null' }, 403],
    [`/${app.id}/`, { host, origin: 'https://evil.example' }, 403],
    [`/${app.id}/`, { host, origin: `http://${frame}` }, 403],
    [`/${app.id}/`, { host: frame }, 404],
    ['/view', { host }, 404],
    [`/${'0'.repeat(20)}/`, { host }, 404],
    ['/view', { host: `${'0'.repeat(20)}.localhost:${port}` }, 403],
    ['/view', { host: `${app.id}.localhost:1` }, 403],
    ['/view', { host: `${app.id}.localhost` }, 403],
    [`/${app.id}/up`, { host }, 405],
  ];
  for (const [path, headers, status] of refused)
    assert.equal((await get(path, headers)).status, status, `${path} ${JSON.stringify(headers)}`);
  const authorization = `Bearer ${await key()}`;
  assert.equal((await post('up', { authorization })).status, 200);
  const posts: [Record<string, string>, number][] = [
    [{}, 401],
    [{ authorization: 'Bearer 0' }, 401],
    [{ authorization, 'content-type': 'text/plain' }, 415],
    [{ authorization, origin: `http://${frame}` }, 403],
    [{ authorization, origin: 'null' }, 403],
    [{ authorization, 'sec-fetch-site': 'cross-site' }, 403],
  ];
  for (const [headers, status] of posts)
    assert.equal((await post('up', headers)).status, status, JSON.stringify(headers));
  const { host: _, ...rest } = { host, authorization };
  assert.equal(
    (await ask(port, `/${app.id}/up`, { ...rest, host, 'content-type': 'application/json' }, '{}'))
      .status,
    403,
    'without Origin',
  );
  assert.equal((await ask(port, '/view', { host: frame }, '{}')).status, 405);
});

test('the headers of the three pages', async () => {
  const { app, port, host, frame } = await opened({
    csp: { connectDomains: ['https://a.example'], frameDomains: ['https://f.example'] },
  });
  const of = async (path: string, name: string) => (await ask(port, path, { host: name })).headers;
  const page = await of(`/${app.id}/`, host);
  assert.match(
    page['content-security-policy'],
    /^default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+'; connect-src 'self'; frame-src http:\/\/[\da-f]{20}\.localhost:\d+; frame-ancestors 'none'; base-uri 'none'; form-action 'none'$/,
  );
  assert.equal(page['x-frame-options'], 'DENY');
  const proxy = await of('/', frame);
  assert.match(
    proxy['content-security-policy'],
    new RegExp(`frame-src http://${frame} https://f\\.example; frame-ancestors http://${host}$`),
  );
  const view = await of('/view', frame);
  assert.match(
    view['content-security-policy'],
    /connect-src data: blob: https:\/\/a\.example;.*; sandbox allow-scripts allow-forms; frame-ancestors/,
  );
  assert.equal(
    view['connection-allowlist'],
    '(response-origin "https://a.example" "https://f.example")',
  );
  for (const headers of [page, proxy, view])
    assert.deepEqual(
      [headers['cache-control'], headers['x-content-type-options'], headers['referrer-policy']],
      ['no-store', 'nosniff', 'no-referrer'],
    );
});

test('traps 14, 5: the code is good once, and the next address has another; the window that came last has the app', async () => {
  const t = await opened();
  const { apps, app, url, post } = t;
  const first = await t.key();
  assert.equal((await post('key', {}, { code: url.hash.slice(1) })).status, 403);
  assert.match(t.warnings.join(), /used a second time.*\/apps has a new one/);
  const earlier = post('down', { authorization: `Bearer ${first}` });
  assert.match((await earlier).text, /"show":\{"title":"show","note":"of the MCP server server/);
  const again = (await apps.addressOf(app)).hash.slice(1);
  const { key } = JSON.parse((await post('key', {}, { code: again })).text);
  assert.equal((await post('up', { authorization: `Bearer ${first}` })).status, 401);
  const orders: any[] = [];
  const write = app.carry;
  app.carry = (order) => (orders.push(order), write(order));
  await post('down', { authorization: `Bearer ${key}` });
  await until(() => true);
  assert.equal((await post('up', { authorization: `Bearer ${key}` })).status, 200);
});

test('a server that does not give its app: the page says why', async () => {
  const t = await opened();
  t.connection.sleep();
  const authorization = `Bearer ${await t.key()}`;
  assert.match(
    (await t.post('down', { authorization })).text,
    /"closed":"MCP server \\"server\\" is asleep/,
  );
});
