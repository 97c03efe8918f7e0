// Attack cases G of what servers say about a login, by their ids: where it may send us, what it
// must say, how much it may be and ask for.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import dns from 'node:dns/promises';
import http from 'node:http';
import https from 'node:https';
import { syncBuiltinESMExports } from 'node:module';
import { isIP, isIPv6 } from 'node:net';
import { afterEach, test } from 'node:test';
import { ScriptedPerson } from '../chapters/17-the-gate/person.ts';
import { networkKind, Fetcher } from '../chapters/21-authorization/fetcher.ts';
import { loginBetween, rowOf, sink, toldTo, unasked } from './help/hostile-login.ts';
import {
  authorizationServer,
  browser,
  locked,
  program,
  protectedServer,
  said,
  tokenIn,
  type Heard,
  type Scripted,
} from './help/oauth-servers.ts';
import { cleanUp, folder, later, rejection, run, until } from './help/basics.ts';

afterEach(cleanUp);

type Host = { addresses: string[] | (() => string[]); port?: number };

/** Names that only these tests know, and servers on loopback that are met there as if they were anywhere in the world.
 *  Nothing else is reached: `contacted` tells where somebody wanted to go, and `pinned` to which addresses. */
function world(hosts: Record<string, Host>) {
  const contacted: string[] = [];
  const pinned: Record<string, string[][]> = {};
  const real = { lookup: dns.lookup, http: http.request, https: https.request };
  const lookup = async (name: string, options: { all: true }) => {
    if (isIP(name) || name === 'localhost') return real.lookup(name, options);
    const { addresses } = hosts[name] ?? {};
    if (!addresses) throw Object.assign(new Error(`no such name: ${name}`), { code: 'ENOTFOUND' });
    const list = typeof addresses === 'function' ? addresses() : addresses;
    return list.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }));
  };
  const requestBy = (usual: typeof http.request) => (url: URL, options: http.RequestOptions) => {
    contacted.push(url.host);
    const {
      lookup: given,
      headers,
      method,
    } = options as { lookup?: any; headers: any; method: string };
    given?.(url.hostname, { all: true }, (_: null, list: { address: string }[]) =>
      (pinned[url.hostname] ??= []).push(list.map(({ address }) => address)),
    );
    const port = hosts[url.hostname]?.port;
    const path = url.pathname + url.search;
    if (port)
      return real.http({
        host: '127.0.0.1',
        port,
        path,
        method,
        headers: { host: url.host, ...headers },
        agent: false,
      });
    if (/^(127|localhost|\[::1)/.test(url.hostname) && url.protocol === 'http:')
      return usual(url, options);
    throw new Error(`went to ${url.href}`);
  };
  Object.assign(dns, { lookup });
  http.request = requestBy(real.http) as typeof http.request;
  https.request = requestBy(real.https) as typeof https.request;
  syncBuiltinESMExports();
  const restore = () => {
    Object.assign(dns, { lookup: real.lookup });
    http.request = real.http;
    https.request = real.https;
    syncBuiltinESMExports();
  };
  later(restore);
  return { contacted, pinned, restore };
}

/** A server and its authorization server that live on the internet, as far as the client can tell. */
async function abroad({
  mcpAddresses = ['203.0.113.7'],
  asAddresses = ['203.0.113.8'],
  more = {},
}: {
  mcpAddresses?: Host['addresses'];
  asAddresses?: Host['addresses'];
  more?: Record<string, Host>;
} = {}) {
  const issuer = 'https://as.test';
  const metadata = {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    registration_endpoint: `${issuer}/register`,
    revocation_endpoint: `${issuer}/revoke`,
  };
  const as = await authorizationServer({ metadata });
  const url = 'https://mcp.test/mcp';
  const wellKnown = 'https://mcp.test/.well-known/oauth-protected-resource/mcp';
  const state = { challenge: `Bearer resource_metadata="${wellKnown}"` };
  const gate = (heard: Heard) =>
    as.live.has(tokenIn(heard) ?? '') ? undefined : locked(state.challenge);
  const server = await protectedServer({
    as,
    gate,
    prm: { resource: url, authorization_servers: [issuer] },
  });
  const names = world({
    'mcp.test': { addresses: mcpAddresses, port: server.port },
    'as.test': { addresses: asAddresses, port: as.port },
    ...more,
  });
  const take = (asked: URL) => {
    const [to, stamp] = [asked.searchParams.get('redirect_uri'), asked.searchParams.get('state')];
    return new URL(`${to}?code=the-code&state=${stamp}&iss=${encodeURIComponent(issuer)}`);
  };
  const user = browser({ take });
  return {
    as,
    server,
    url,
    issuer,
    state,
    user,
    client: () => program({ openUserAgent: user.openUserAgent }),
    ...names,
  };
}

// ─── G3: where metadata may send us ───────────────────────────────────────────────────────────────────────────

/** Every way to write an address that is not for the world, with the port of our sink where it could be one. */
const inner = (port: number) => [
  'https://169.254.169.254/latest/meta-data',
  'http://169.254.169.254/',
  'https://10.0.0.1',
  'https://10.255.255.255',
  'https://172.16.0.1',
  'https://172.31.9.9',
  'https://192.168.1.1',
  'https://100.64.0.1',
  'https://198.18.0.1',
  'https://224.0.0.1',
  'https://240.0.0.1',
  'https://255.255.255.255',
  'https://[::ffff:a9fe:a9fe]',
  'https://[::ffff:169.254.169.254]',
  'https://[::ffff:10.0.0.1]',
  'https://[64:ff9b::a9fe:a9fe]',
  'https://[64:ff9b:1::a9fe:a9fe]',
  'https://[2002:a9fe:a9fe::]',
  'https://[fe80::1]',
  'https://[fd00::1]',
  'https://[fc00::1]',
  'https://[ff02::1]',
  'https://[::]',
  'https://0.0.0.0',
  'https://0',
  ...[
    '127.0.0.1',
    '0x7f.1',
    '0x7f000001',
    '2130706433',
    '0177.0.0.1',
    '127.1',
    'localhost',
    'LOCALHOST',
    '[::1]',
    '[0:0:0:0:0:0:0:1]',
    '127.255.255.254',
  ].flatMap((host) => [`http://${host}:${port}`, `https://${host}:${port}`]),
  ...[
    '0.0.0.0',
    '0',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::]',
    '127.0.0.1.',
    'localhost.',
  ].map((host) => `http://${host}:${port}`),
  'https://inner.test',
  'https://cloud.test',
  'https://loop.test',
  'https://mapped.test',
  'https://nowhere.test',
];
const INNER_NAMES: Record<string, Host> = {
  'inner.test': { addresses: ['10.1.2.3'] },
  'cloud.test': { addresses: ['169.254.169.254'] },
  'loop.test': { addresses: ['127.0.0.1'] },
  'mapped.test': { addresses: ['::ffff:a9fe:a9fe'] },
};

const FIELDS: Record<string, (address: string, at: Awaited<ReturnType<typeof abroad>>) => void> = {
  resource_metadata: (address, { state }) =>
    (state.challenge = `Bearer resource_metadata="${address}"`),
  authorization_servers: (address, { server }) => (server.prm.authorization_servers = [address]),
  authorization_endpoint: (address, { as }) => (as.metadata.authorization_endpoint = address),
  token_endpoint: (address, { as }) => (as.metadata.token_endpoint = address),
  registration_endpoint: (address, { as }) => (as.metadata.registration_endpoint = address),
};

for (const [field, put] of Object.entries(FIELDS))
  test(`G3: ${field} cannot lead from the internet into this machine or this network`, async () => {
    const target = await sink();
    const at = await abroad({ more: INNER_NAMES });
    const { as, server, contacted, user, url, client } = at;
    for (const address of inner(target.port)) {
      put(address, at);
      as.log.length = server.log.length = contacted.length = user.visits.length = 0;
      const error = await rejection(client().to(url));
      assert.equal(error.kind, 'auth', `${address}: ${error.stack}`);
      assert.match(error.message, /do not go there|not https|cannot be found/, address);
      assert.deepEqual(
        [...new Set(contacted)].filter((host) => !['mcp.test', 'as.test'].includes(host)),
        [],
        address,
      );
      unasked(as, '/token');
      if (field !== 'token_endpoint')
        assert.deepEqual(user.visits, [], `${address}: nobody is bothered`);
    }
    assert.deepEqual(target.log, []);
  });

test('G3: a revocation endpoint cannot lead there either, and the login is forgotten all the same', async () => {
  const target = await sink();
  const { as, contacted, url, client } = await abroad({ more: INNER_NAMES });
  for (const address of inner(target.port)) {
    as.metadata.revocation_endpoint = address;
    const { to, logins, store } = client();
    await to(url);
    contacted.length = 0;
    assert.equal(await logins.logOut('demo'), true, address);
    assert.deepEqual(contacted, [], address);
    assert.equal(store.find('demo', url), undefined);
  }
  assert.deepEqual(target.log, []);
});

test('G3: a name is looked up once for each request, and what was checked is what is connected to', async () => {
  let times = 0;
  const asAddresses = () => (++times % 2 ? ['203.0.113.8'] : ['127.0.0.1']); // checked, then used: the next answer is another
  const { url, client, pinned, contacted } = await abroad({ asAddresses });
  await rejection(client().to(url)); // sometimes it is refused
  assert.ok(contacted.includes('as.test'));
  assert.deepEqual([...new Set(pinned['as.test']!.flat())], ['203.0.113.8']);
});

test('G3: loopback may name loopback, and a private network itself; neither may name the other', async () => {
  const { login, server } = await loginBetween();
  await login();
  assert.equal(server.called('initialize').length, 1);
  world({
    'corp.test': { addresses: ['10.0.0.5'] },
    'idp.test': { addresses: ['10.0.0.6'] },
    'far.test': { addresses: ['203.0.113.1'] },
  });
  const from = (address: string) => new Fetcher('it', new URL(address));
  for (const [server, good, bad] of [
    [
      'http://127.0.0.1:1',
      ['http://localhost:2', 'http://[::1]:2', 'https://far.test'],
      [
        'https://corp.test',
        'https://192.168.0.1',
        'https://169.254.169.254',
        'http://far.test@127.0.0.1:2',
        'http://:x@127.0.0.1:2',
      ],
    ],
    [
      'https://corp.test',
      ['https://idp.test', 'https://192.168.0.1', 'https://far.test'],
      ['http://127.0.0.1:1', 'https://localhost', 'https://169.254.169.254', 'https://0.0.0.0'],
    ],
    [
      'https://far.test',
      ['https://far.test:444'],
      ['https://corp.test', 'https://idp.test', 'http://localhost'],
    ],
    ['https://0.0.0.0', [], ['https://0.0.0.0', 'https://127.0.0.1']],
  ] as const) {
    for (const address of good)
      assert.ok((await from(server).allowed(address)).url, `${server} → ${address}`);
    for (const address of bad)
      assert.equal(
        (await rejection(from(server).allowed(address))).kind,
        'auth',
        `${server} → ${address}`,
      );
  }
});

test('G3: of a name with addresses of both kinds, only those are used that may be', async () => {
  world({
    'far.test': { addresses: ['203.0.113.1'] },
    'both.test': { addresses: ['127.0.0.1', '203.0.113.9', '10.0.0.1', '169.254.169.254'] },
  });
  const { addresses } = await new Fetcher('it', new URL('https://far.test')).allowed(
    'https://both.test',
  );
  assert.deepEqual(
    addresses.map(({ address }) => address),
    ['203.0.113.9'],
  );
});

test('G3: the public addresses next to the private ones are public', () => {
  const open = [
    '9.255.255.255',
    '11.0.0.0',
    '172.15.255.255',
    '172.32.0.0',
    '192.167.255.255',
    '192.169.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '169.253.255.255',
    '169.255.0.0',
    '126.255.255.255',
    '128.0.0.0',
    '223.255.255.255',
    '1.1.1.1',
    '2606:4700::1111',
    '2003::1',
    'fbff::',
    '::ffff:8.8.8.8',
  ];
  assert.deepEqual(
    open.filter((address) => networkKind(address) !== 'public'),
    [],
  );
});

test('G3: whoever owns the name of an MCP server cannot make it a neighbour of ours by adding an address to it', async () => {
  const target = await sink();
  for (const mcpAddresses of [
    ['203.0.113.7', '127.0.0.1'],
    ['127.0.0.1', '203.0.113.7'],
  ]) {
    const at = await abroad({ mcpAddresses });
    FIELDS.resource_metadata!(`http://127.0.0.1:${target.port}/admin`, at);
    await rejection(at.client().to(at.url));
    at.restore();
  }
  assert.deepEqual(
    target.log.map(({ path }) => path),
    [],
  );
});

test('G3: old forms of addresses of this machine and this network are not public', async () => {
  for (const address of ['::7f00:1', '::a9fe:a9fe', '::ffff:0:7f00:1', 'fec0::1'])
    assert.notEqual(networkKind(address), 'public', address);
});

// ─── G4: redirects ────────────────────────────────────────────────────────────────────────────────────────────

test('G4: no document and no endpoint sends us on to somebody else, and nothing is said there', async () => {
  const target = await sink();
  const places = [
    `http://127.0.0.1:${target.port}/x`,
    `http://localhost:${target.port}/x`,
    `//127.0.0.1:${target.port}/x`,
    'http://[',
    'file:///etc/passwd',
  ];
  for (const status of [301, 302, 303, 307, 308])
    for (const location of places) {
      const redirect = () => said('', status, { location });
      for (const [verb, path] of [
        ['GET', '/.well-known/oauth-authorization-server'],
        ['POST', '/register'],
        ['POST', '/token'],
      ]) {
        const { refusal, as } = await loginBetween({ as: { [`${verb} ${path}`]: redirect } });
        await refusal();
        assert.ok(as.asked(path!).length === 1, `${path} was asked, once (${status})`);
      }
      const { refusal, server, as } = await loginBetween();
      server.ways['GET /.well-known/oauth-protected-resource/mcp'] = redirect;
      server.ways['GET /.well-known/oauth-protected-resource'] = redirect;
      await refusal();
      assert.deepEqual(as.log, [], 'nobody else is asked who it is');
    }
  assert.deepEqual(target.log, []);
});

test('G20: what comes with a status of 3xx is no registration, no token and no document', async () => {
  for (const status of [300, 303, 304, 305]) {
    const made = { client_id: 'c', access_token: 'a-token', token_type: 'Bearer' };
    for (const path of ['/register', '/token']) {
      const { refusal, server, client } = await loginBetween({
        as: { [`POST ${path}`]: () => said(made, status) },
      });
      await refusal();
      assert.equal(client.row(server.url)?.tokens, undefined, `${status} ${path}`);
    }
  }
});

test('G4: a revocation and a refresh are not sent on either', async () => {
  const target = await sink();
  for (const status of [301, 302, 303, 307, 308]) {
    const redirect = () => said('', status, { location: `${target.origin}/x` });
    const { as, server, login, client } = await loginBetween({
      token: { refresh_token: 'the-refresh-token' },
      as: { 'POST /revoke': redirect },
    });
    await login();
    as.ways['POST /token'] = redirect;
    as.live.clear();
    assert.equal((await rejection(client.to(server.url))).kind, 'auth');
    assert.equal(as.asked('/token').at(-1)!.form.grant_type, 'refresh_token');
    await client.logins.logOut('demo');
    assert.equal(as.asked('/revoke').length, 1);
  }
  assert.deepEqual(target.log, []);
});

// ─── G5, G8, G9: what documents must say ──────────────────────────────────────────────────────────────────────

test('G5: metadata of another issuer is not used: no registration, no browser, no token', async () => {
  for (const change of [
    (issuer: string) => `${issuer}/`,
    (issuer: string) => issuer.replace('127.0.0.1', 'localhost'),
    (issuer: string) => issuer.toUpperCase(),
    () => 'https://as.example',
    () => undefined,
    () => null,
    (issuer: string) => [issuer],
    () => '',
    (issuer: string) => `${issuer}#`,
    (issuer: string) => `${issuer} `,
  ]) {
    const { as, refusal, user } = await loginBetween();
    as.metadata.issuer = change(as.issuer);
    const error = await refusal();
    assert.match(error.message, /whose metadata says/);
    assert.deepEqual(user.visits, []);
    unasked(as, '/register', '/authorize', '/token');
  }
});

test('G5: an issuer that the server spells otherwise than its metadata does is another one', async () => {
  for (const change of [
    (issuer: string) => `${issuer}/`,
    (issuer: string) => issuer.replace('http:', 'HTTP:'),
    (issuer: string) => `${issuer}?x=1`,
    (issuer: string) => `${issuer}#x`,
  ]) {
    const { as, server, refusal, user } = await loginBetween();
    server.prm.authorization_servers = [change(as.issuer)];
    await refusal();
    assert.deepEqual(user.visits, []);
    unasked(as, '/register', '/token');
  }
});

test('G8: an authorization server that does not say it knows S256 is not used', async () => {
  for (const methods of [
    undefined,
    null,
    [],
    ['plain'],
    ['s256'],
    'S256',
    { 0: 'S256' },
    [['S256']],
    true,
  ]) {
    const { as, refusal, user } = await loginBetween({
      metadata: { code_challenge_methods_supported: methods },
    });
    assert.match((await refusal()).message, /PKCE/);
    assert.deepEqual(user.visits, []);
    unasked(as, '/register', '/token');
  }
  const { as, login, user } = await loginBetween({
    metadata: { code_challenge_methods_supported: ['plain', 'S256'] },
  });
  await login();
  const { code_challenge, code_challenge_method } = user.asked();
  const verifier = as.asked('/token')[0]!.form.code_verifier!;
  assert.equal(code_challenge_method, 'S256');
  assert.equal(createHash('sha256').update(verifier).digest('base64url'), code_challenge);
});

test('G9: a server that says it is somebody else gets no token', async () => {
  const others = (url: string) => [
    'https://evil.example/mcp',
    url.replace('127.0.0.1', 'localhost'),
    `${url}/more`,
    `${url}x`,
    url.replace('http', 'https'),
    'mcp',
    '',
    undefined,
    null,
    [url],
    `${new URL(url).origin}/other`,
    url.replace(/:\d+/, ':1'),
    url.replace('//', '//evil.example@').replace('127.0.0.1', 'evil.example'),
  ];
  const { length } = others('http://127.0.0.1:1/mcp');
  for (let n = 0; n < length; n++) {
    const { as, server, refusal, user } = await loginBetween();
    server.prm.resource = others(server.url)[n];
    assert.match((await refusal()).message, /which it is not/, `${server.prm.resource}`);
    assert.deepEqual([user.visits, as.log], [[], []]);
  }
});

test('G9: the resource is named to the letter, in the browser, for the token and when it is refreshed', async () => {
  for (const spell of [
    (url: string) => url,
    (url: string) => new URL(url).origin,
    (url: string) => `${new URL(url).origin}/`,
  ]) {
    const { as, server, login, client, user } = await loginBetween({
      token: { refresh_token: 'the-refresh-token' },
    });
    const resource = (server.prm.resource = spell(server.url));
    await login();
    as.live.clear();
    await client.to(server.url);
    assert.equal(user.asked().resource, resource);
    assert.deepEqual(
      as.asked('/token').map(({ form }) => [form.grant_type, form.resource]),
      [
        ['authorization_code', resource],
        ['refresh_token', resource],
      ],
    );
  }
});

// ─── G10: in clear text ───────────────────────────────────────────────────────────────────────────────────────

test('G10: a token endpoint, or any other, is not asked over http:// on another machine', async () => {
  const { contacted, as, server, url, client, user, state } = await abroad();
  const clear = 'http://as.test';
  const before = { ...as.metadata };
  for (const field of ['authorization_endpoint', 'token_endpoint', 'registration_endpoint']) {
    Object.assign(as.metadata, before, { [field]: `${clear}/x` });
    as.log.length = contacted.length = 0;
    const error = await rejection(client().to(url));
    assert.equal(error.kind, 'auth');
    assert.match(error.message, /not https/, field);
    unasked(as, '/x', '/token');
  }
  Object.assign(as.metadata, before);
  server.prm.authorization_servers = [clear];
  assert.match((await rejection(client().to(url))).message, /not https/);
  state.challenge =
    'Bearer resource_metadata="http://mcp.test/.well-known/oauth-protected-resource/mcp"';
  assert.match((await rejection(client().to(url))).message, /not https/);
  as.metadata.revocation_endpoint = `${clear}/revoke`;
  server.prm.authorization_servers = ['https://as.test'];
  state.challenge = 'Bearer';
  const { to, logins } = client();
  await to(url);
  contacted.length = 0;
  await logins.logOut('demo');
  assert.deepEqual(contacted, []);
  assert.ok(user.visits.every(({ protocol }) => protocol === 'https:'));
});

test('G10: a server that is reached over http:// on another machine gets no token, and no login begins', async () => {
  const as = await authorizationServer();
  const server = await protectedServer({ as });
  const { contacted } = world({ 'mcp.test': { addresses: ['203.0.113.7'], port: server.port } });
  const url = 'http://mcp.test/mcp';
  for (const oauth of [
    undefined,
    {
      grant: 'client_credentials',
      clientId: 'c',
      clientSecret: 'the-client-secret',
      issuer: as.issuer,
    },
  ]) {
    const { openUserAgent, visits } = browser();
    const error = await rejection(program({ openUserAgent }).to(url, oauth));
    assert.equal(error.kind, 'auth');
    assert.match(error.message, /https/);
    assert.deepEqual([visits, as.log, [...new Set(contacted)]], [[], [], ['mcp.test']]);
  }
  assert.doesNotMatch(toldTo(server), /the-client-secret/);
});

test('G10: a token that is in the file for such an address is not sent there either', async () => {
  const server = await protectedServer();
  world({ 'mcp.test': { addresses: ['203.0.113.7'], port: server.port } });
  const { to, store } = program();
  store.keep(rowOf({ url: 'http://mcp.test/mcp' }));
  await rejection(to('http://mcp.test/mcp'));
  assert.doesNotMatch(toldTo(server), /the-access-token/);
});

// ─── G17: "scopes" in the configuration are a ceiling ─────────────────────────────────────────

/** Lets every live token in, but wants `admin` for a call. */
async function greedy(scope = 'admin') {
  const as = await authorizationServer();
  const forbids = locked(`Bearer error="insufficient_scope", scope="${scope}"`, 403);
  const gate = (heard: Heard) => {
    if (!as.live.has(tokenIn(heard) ?? '')) return locked('Bearer scope="read admin"');
    return heard.json.method === 'tools/call' ? forbids : undefined;
  };
  return { as, server: await protectedServer({ as, gate, prm: { scopes_supported: ['admin'] } }) };
}

const scopesAsked = (as: Scripted) => as.asked('POST /token').map(({ form }) => form.scope);

test('G17: a server cannot widen the scopes of a machine, whichever grant it has', async () => {
  const claims = { iss: 'x', exp: Math.floor(Date.now() / 1000) + 600 };
  const assertion = `${[{ alg: 'none' }, claims]
    .map((each) => Buffer.from(JSON.stringify(each)).toString('base64url'))
    .join('.')}.x`;
  const grants = [
    { grant: 'client_credentials', clientId: 'robot', clientSecret: 'the-robots-secret' },
    { grant: 'workload', assertion },
  ];
  for (const grant of grants) {
    const { as, server } = await greedy();
    const { to, home } = program();
    const oauth = { ...grant, issuer: as.issuer, scopes: 'read' };
    const { connection } = await to(server.url, oauth);
    const error = await rejection(connection.callTool('echo', {}));
    assert.equal(error.kind, 'auth');
    assert.match(error.message, /more rights \("admin"\) than "scopes" in its "oauth" has/);
    assert.deepEqual(scopesAsked(as), ['read'], 'no wider token was asked for');
    await connection.request('ping'); // what it may, it may still
    // Nor does a token of a wider configuration live on in a narrower one.
    const narrower = await program({ home }).to(server.url, { ...oauth, scopes: 'less' });
    await narrower.connection.request('ping');
    assert.deepEqual(scopesAsked(as), ['read', 'less']);
  }
});

test('G22: nor has a machine the right to stay, if its "scopes" do not name it', async () => {
  const { as, server } = await greedy('read offline_access');
  const oauth = {
    grant: 'client_credentials',
    clientId: 'robot',
    clientSecret: 'the-robots-secret',
    issuer: as.issuer,
    scopes: 'read',
  };
  const { connection } = await program().to(server.url, oauth);
  const error = await rejection(connection.callTool('echo', {}));
  assert.match(error.message, /more rights \("offline_access"\) than "scopes"/);
  assert.deepEqual(scopesAsked(as), ['read']);
});

test('G22: an address that no browser can be started with is not opened', async () => {
  const as = await authorizationServer();
  const scopes_supported = Array.from({ length: 10_000 }, (_, n) => `scope-${n}`);
  const server = await protectedServer({ as, prm: { scopes_supported } });
  const { openUserAgent, visits } = browser();
  const error = await rejection(program({ openUserAgent }).to(server.url));
  assert.equal(error.kind, 'auth');
  assert.match(
    error.message,
    /an address of \d+ characters, with 10000 scopes.*"scopes" in its "oauth"/,
  );
  assert.deepEqual(visits, []);
  await program({ openUserAgent }).to(server.url, { scopes: 'scope-1' });
  assert.equal(visits.length, 1);
});

test('I10: a token that is too long to be sent is not kept', async () => {
  const odd = [{ access_token: 'a1'.repeat(50_000) }, { refresh_token: 'r1'.repeat(50_000) }];
  for (const token of odd) {
    const as = await authorizationServer({ token });
    const server = await protectedServer({ as });
    const { to, row } = program({ openUserAgent: browser().openUserAgent });
    assert.match((await rejection(to(server.url))).message, /gives no token we can use/);
    assert.equal(row(server.url)?.tokens, undefined);
  }
});

test('G17: what stays below the ceiling needs no more than before', async () => {
  const { as, server } = await greedy('write');
  const oauth = {
    grant: 'client_credentials',
    clientId: 'robot',
    clientSecret: 'the-robots-secret',
    issuer: as.issuer,
    scopes: 'read write',
  };
  const { connection } = await program().to(server.url, oauth);
  const error = await rejection(connection.callTool('echo', {}));
  assert.match(error.message, /although we have asked for everything it wants \(read write\)/);
  assert.deepEqual(scopesAsked(as), ['read write']);
});

test('G17: to go beyond them a person is asked, and only a yes is one; without a person it is no', async () => {
  const answers: [answer: string | undefined, scopes: string[]][] = [
    ['y', ['read', 'read admin']],
    ['n', ['read']],
    [undefined, ['read']],
  ];
  for (const [answer, expected] of answers) {
    const { as, server } = await greedy();
    const walk = (url: URL) => void fetch(url).catch(() => {});
    const open = (url: URL) => (walk(url), true);
    const waits = () => new Promise<undefined>(() => {}); // for the browser
    const first = new ScriptedPerson([waits], open);
    const { logins, to, store, home } = program();
    const oauth = { scopes: 'read' };
    const { signal } = new AbortController();
    await rejection(to(server.url, oauth));
    await logins.logIn('demo', first, signal);
    const { connection } = await to(server.url, oauth);
    await rejection(connection.callTool('echo', {}));
    const person = new ScriptedPerson([answer, ...(answer === 'y' ? [waits] : [])], open);
    const login = logins.logIn('demo', person, signal);
    const asked = () => as.asked('GET /authorize').map(({ query }) => query.scope);
    if (answer === 'y') await login;
    else assert.match((await rejection(login)).message, /more rights \("admin"\)/);
    assert.match(person.questions[0]!.text, /The MCP server "demo" asks:\n.*"admin"/);
    assert.match(person.questions[0]!.text, /"scopes"/);
    assert.deepEqual(asked(), expected);
    assert.deepEqual(store.find('demo', server.url)!.tokens!.scope, expected.at(-1)!.split(' '));
    // A browser that opens by itself is not a person who agrees.
    const { openUserAgent, visits } = browser();
    const alone = await program({ home, openUserAgent }).to(server.url, oauth);
    if (answer !== 'y') await rejection(alone.connection.callTool('echo', {}));
    assert.deepEqual(visits, []);
  }
});

test('G14: documents and token answers without end, bombs, and deep ones end at the limit', async () => {
  const { code, output } = await run('oauth-bombs.ts', [folder()]).ended;
  assert.equal(code, 0, output);
  const ends = output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.equal(ends.length, 20);
  for (const { name, kind, message, grewBy, isFree } of ends) {
    assert.equal(kind, 'auth', name);
    if (!name.endsWith('deep')) assert.match(message, /sent more than 1048576 bytes/, name);
    assert.ok(grewBy < 100, `${name}: ${grewBy} MB more`); // they would be 200 MB and more
    assert.ok(isFree, `${name}: its connection is left`);
  }
});

test('G14: an answer that does not come is not waited for for ever', async () => {
  const timeout = AbortSignal.timeout;
  later(() => (AbortSignal.timeout = timeout));
  for (const path of ['/.well-known/oauth-authorization-server', '/register', '/token'])
    for (const start of ['', '{"issuer":']) {
      const limits: AbortController[] = [];
      AbortSignal.timeout = (ms) => {
        if (ms !== 20_000) return timeout.call(AbortSignal, ms);
        limits.push(new AbortController());
        return limits.at(-1)!.signal;
      };
      const silent = ({ response }: Heard) => void (start && response.writeHead(200).write(start));
      const { as, refusal } = await loginBetween({
        as: { [`GET ${path}`]: silent, [`POST ${path}`]: silent },
      });
      const failure = refusal();
      await until(() => as.asked(path).length > 0);
      limits.at(-1)!.abort(new Error('the limit'));
      await failure;
    }
});

test('G14: a document that is nested too deeply is not read, however right the rest of it is', async () => {
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
  for (const path of ['/.well-known/oauth-authorization-server', '/register', '/token']) {
    const { as, refusal, client, server } = await loginBetween();
    const right = {
      ...as.metadata,
      client_id: 'c',
      access_token: 'a-token-like-any',
      token_type: 'Bearer',
    };
    const way = () => said(JSON.stringify({ ...right, x: 0 }).replace('"x":0', `"x":${deep}`));
    as.ways[`GET ${path}`] = as.ways[`POST ${path}`] = way;
    await refusal();
    assert.equal(client.row(server.url)?.tokens, undefined, path);
  }
});

test('G14: a challenge of many words, quotes and brackets is read at once', async () => {
  for (const odd of [
    '"'.repeat(8000),
    'a="'.repeat(2500),
    '\\"'.repeat(4000),
    'x '.repeat(4000),
    `a=${'"\\'.repeat(4000)}`,
    ','.repeat(8000),
    '='.repeat(8000),
  ]) {
    const { login, server } = await loginBetween({ challenge: `Bearer ${odd}` });
    await login();
    assert.equal(server.called('initialize').length, 1);
  }
});

test('G14: odd answers of an authorization server are refusals and no crash, and nothing of them is kept', async () => {
  const access_token = 'a-token-like-any';
  const odd: unknown[] = [
    {},
    [],
    'text',
    null,
    1,
    { access_token },
    { access_token, token_type: 'mac' },
    { access_token: '', token_type: 'Bearer' },
    { access_token: 5, token_type: 'Bearer' },
    { access_token: 'a\r\nX-Evil: 1', token_type: 'Bearer' },
    { access_token: 'a b', token_type: 'Bearer' },
    { access_token: 'ü', token_type: 'Bearer' },
    { access_token, token_type: { toString: 'x' } },
    { access_token, token_type: 'Bearer', error: 'x' },
    { error: { toString: 1 } },
    { error: ['a', {}], error_description: { length: 1 } },
    { __proto__: null, access_token: ['x'], token_type: ['Bearer'] },
  ];
  for (const body of odd) {
    const { refusal, client, server } = await loginBetween({
      as: { 'POST /token': () => said(body) },
    });
    await refusal();
    assert.equal(client.row(server.url)?.tokens, undefined, JSON.stringify(body));
    assert.ok(
      server.log.every(
        ({ headers }) => headers.authorization === undefined && headers['x-evil'] === undefined,
      ),
    );
  }
  for (const body of [{}, { client_id: 5 }, { client_id: ['x'] }, [], 'x', null]) {
    const { refusal, user } = await loginBetween({
      as: { 'POST /register': () => said(body, 201) },
    });
    await refusal();
    assert.deepEqual(user.visits, []);
  }
});

test('G14: a token that is bound to a key which we do not have is a refusal, and is not kept', async () => {
  const { login, client, server } = await loginBetween({ token: { token_type: 'DPoP' } });
  const error = await rejection(login());
  assert.equal(error.kind, 'auth', error.message);
  assert.equal(client.row(server.url)?.tokens, undefined);
});
