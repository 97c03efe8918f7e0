// Chapter 21: from a 401 to a token, and what becomes of it. The wire is real; the other side follows a script, or is the
// strict pair of fixtures/.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { ScriptedPerson } from '../chapters/17-the-gate/person.ts';
import { Callback } from '../chapters/21-authorization/browser.ts';
import { challengeIn, parseChallenges } from '../chapters/21-authorization/discovery.ts';
import { Login } from '../chapters/21-authorization/login.ts';
import type { Visitor } from '../chapters/21-authorization/oauth.ts';
import { TokenStore } from '../chapters/21-authorization/tokens.ts';
import { McpError, type Json } from '../mcp.ts';
import {
  authorizationServer, browser, locked, program, protectedServer, refusing, said, scripted, sentBack, strictCalculator,
  strictIssuer, tokenIn, type AuthorizationServer, type Heard, type Said, type Way, type Ways,
} from './auth-peers.ts';
import { call, cleanUp, connect, folder, goodServer, habit, later, rejection, run, until } from './helpers.ts';
import { event, stream } from './http-peers.ts';
import { prepare } from './manage.ts';

afterEach(cleanUp);

const paths = ({ log }: { log: Heard[] }) => log.map(({ path }) => path);
const grantsOf = (as: AuthorizationServer) => as.asked('POST /token').map(({ form }) => form.grant_type);
const isIn = (as: AuthorizationServer, heard: Heard) => as.live.has(tokenIn(heard) ?? '');
const refreshes = (as: AuthorizationServer) => grantsOf(as).filter((grant) => grant === 'refresh_token').length;
const storeIn = (home: string) => join(home, '.mcp-by-hand', 'logins.json');
/** A promise to be kept later. */
function hold(): { kept: Promise<void>; keep: () => void } {
  let keep!: () => void;
  const kept = new Promise<void>((done) => (keep = done));
  return { kept, keep };
}

// ─── The challenge ────────────────────────────────────────────────────────────────────────────────────────────

test('a challenge is read in every way that it can be written', () => {
  const bearer = (params: Json) => [['bearer', params]];
  const table: [header: string, expected: unknown][] = [
    ['', []],
    ['Bearer', bearer({})],
    ['BEARER', bearer({})],
    ['  Bearer  ', bearer({})],
    ['Bearer realm="x"', bearer({ realm: 'x' })],
    ['Bearer realm=x', bearer({ realm: 'x' })],
    ['Bearer realm = "x" , scope = "a b"', bearer({ realm: 'x', scope: 'a b' })],
    ['Bearer realm="x",scope="a b",error=invalid_token', bearer({ realm: 'x', scope: 'a b', error: 'invalid_token' })],
    ['Bearer scope="a, b", realm="c"', bearer({ scope: 'a, b', realm: 'c' })],
    ['Bearer realm="say \\"hi\\", Basic realm=1", scope="a"', bearer({ realm: 'say "hi", Basic realm=1', scope: 'a' })],
    ['Bearer realm="back\\\\slash", scope=a', bearer({ realm: 'back\\slash', scope: 'a' })],
    ['Bearer realm="", scope=a', bearer({ realm: '', scope: 'a' })],
    ['Bearer REALM=a, Scope=b', bearer({ realm: 'a', scope: 'b' })],
    ['Bearer scope=a, scope=b', bearer({ scope: 'a' })],
    ['Bearer scope=a scope=b realm=c', bearer({ scope: 'a', realm: 'c' })],
    ['Bearer resource_metadata="https://h/p?a=b,c=d&e"', bearer({ resource_metadata: 'https://h/p?a=b,c=d&e' })],
    ['Bearer resource_metadata=https://h/p', bearer({ resource_metadata: 'https://h/p' })],
    ['Bearer realm="ünï"', bearer({ realm: 'ünï' })],
    ['Basic realm="b", Bearer realm="c"', [['basic', { realm: 'b' }], ['bearer', { realm: 'c' }]]],
    ['Bearer realm="c", Basic realm="b"', [['bearer', { realm: 'c' }], ['basic', { realm: 'b' }]]],
    ['Negotiate, Bearer scope=a, DPoP algs="ES256"', [['negotiate', {}], ['bearer', { scope: 'a' }], ['dpop', { algs: 'ES256' }]]],
    ['Bearer, DPoP', [['bearer', {}], ['dpop', {}]]],
    ['scope=a, Bearer realm=b', bearer({ realm: 'b' })], // a parameter of nothing
    [',,, Bearer ,, scope=a ,,', bearer({ scope: 'a' })],
    ['Bearer scope=', bearer({ scope: '' })],
    ['Bearer __proto__=a, constructor="b"', bearer({ ['__proto__']: 'a', constructor: 'b' })],
    ['Bearer realm="x",\tscope="a"', bearer({ realm: 'x', scope: 'a' })],
  ];
  for (const [header, expected] of table) {
    const found = parseChallenges(401, header).map(({ scheme, params }) => [scheme, Object.fromEntries(params)]);
    assert.deepEqual(found, (expected as any[]).map(([scheme, params]) => [scheme, Object.fromEntries(Object.entries(params))]), header);
  }
  for (const odd of ['"', '="', 'Bearer realm="never closed, scope=a', '='.repeat(9000), 'a'.repeat(1e6), '"\\'.repeat(5e5)])
    assert.ok(Array.isArray(parseChallenges(401, odd))); // and at once
});

test('what the challenge wants: 401 is a login, 403 only if more rights would help, and any other status is neither', () => {
  const kind = (status: number, header?: string) => challengeIn(status, header)?.scheme;
  assert.deepEqual(
    [kind(401), kind(401, 'Basic realm=x'), kind(401, 'Basic realm=x, DPoP algs=ES256'), kind(401, 'Bearer, DPoP')],
    ['bearer', 'bearer', 'dpop', 'dpop'], // bound to a key is better
  );
  assert.deepEqual([kind(403), kind(403, 'Bearer'), kind(403, 'Bearer error="invalid_token"')], [undefined, undefined, undefined]);
  assert.equal(kind(403, 'Basic error="insufficient_scope"'), undefined);
  const both = challengeIn(403, 'Bearer realm=x, Bearer error="insufficient_scope", scope="a"');
  assert.equal(both?.params.get('scope'), 'a');
  for (const status of [200, 400, 402, 404, 407, 500]) assert.equal(kind(status, 'Bearer error="insufficient_scope"'), undefined);
});

test('several headers, and several schemes in one, lead to the same login', async () => {
  const other = 'Basic realm="a, Bearer b", charset="UTF-8"';
  for (const lines of [[other, 'BEARER'], ['BEARER', other], [`${other}, BEARER`], [`BEARER, ${other}`], ['Negotiate', 'BEARER']]) {
    const as = await authorizationServer();
    const server = await protectedServer({
      as, ways: { 'GET /somewhere': () => said({ ...server.prm, scopes_supported: ['decoy'] }) },
      gate: (heard) => (isIn(as, heard) ? undefined
        : locked(lines.map((line) => line.replace('BEARER', `Bearer scope="a b", resource_metadata="${server.origin}/somewhere"`)))),
    });
    const { visitor, asked } = browser();
    await program({ visitor }).to(server.url);
    assert.equal(asked().scope, 'a b', `${lines}`);
    assert.deepEqual(paths(server).filter((path) => path !== '/mcp'), ['/somewhere']);
  }
});

// ─── Whom to ask ──────────────────────────────────────────────────────────────────────────────────────────────

const WELL_KNOWN = '/.well-known/oauth-protected-resource';

test('the server\'s document: where the challenge says, else under its path, else at the root, and no address more', async () => {
  const at = (path: string) => [`GET ${path}`];
  const table: [server: string, named: string | undefined, there: string[], asked: string[]][] = [
    ['/mcp', '/about', at('/about'), ['/about']],
    ['/mcp', undefined, at(`${WELL_KNOWN}/mcp`), [`${WELL_KNOWN}/mcp`]],
    ['/mcp', undefined, at(WELL_KNOWN), [`${WELL_KNOWN}/mcp`, WELL_KNOWN]],
    ['/mcp', '/gone', at(`${WELL_KNOWN}/mcp`), ['/gone', `${WELL_KNOWN}/mcp`]],
    ['/mcp', `${WELL_KNOWN}/mcp`, at(WELL_KNOWN), [`${WELL_KNOWN}/mcp`, WELL_KNOWN]], // each once
    ['/', undefined, at(WELL_KNOWN), [WELL_KNOWN]],
    ['/a/b/mcp', undefined, at(`${WELL_KNOWN}/a/b/mcp`), [`${WELL_KNOWN}/a/b/mcp`]],
  ];
  for (const [path, named, there, asked] of table) {
    const as = await authorizationServer();
    const ways: Ways = { [`GET ${WELL_KNOWN}${path === '/' ? '' : path}`]: undefined };
    for (const where of there) ways[where] = () => said(server.prm);
    const server = await protectedServer({
      as, path, ways,
      gate: (heard) => (isIn(as, heard) ? undefined
        : locked(named ? `Bearer resource_metadata="${server.origin}${named}"` : 'Bearer')),
    });
    const { connection } = await program({ visitor: browser().visitor }).to(server.url);
    await connection.request('ping');
    assert.deepEqual(paths(server).filter((each) => each !== path), asked, `${path} ${named} ${there}`);
  }
});

test('an address with a query has a document with that query', async () => {
  const as = await authorizationServer();
  const server = await protectedServer({ as, challenge: 'Bearer' });
  server.prm.resource = `${server.url}?tenant=1`;
  const { visitor, asked } = browser();
  await program({ visitor }).to(`${server.url}?tenant=1`);
  const [{ path, query }] = server.log.filter(({ path }) => path !== '/mcp') as [Heard];
  assert.deepEqual([path, query], [`${WELL_KNOWN}/mcp`, { tenant: '1' }]);
  assert.equal(asked().resource, `${server.url}?tenant=1`);
});

test('what the server calls itself goes out to the letter, in both requests and in every refresh', async () => {
  const table: [path: string, resource: string][] = [
    ['/mcp', ''], ['/mcp', '/'], ['/mcp', '/mcp'], ['/mcp', '/mcp/'], ['/mcp', '/mcp?x=1'], ['/', ''], ['/', '/'], ['/mcp/', '/mcp'],
    ['/a/b/mcp', '/a'], ['/a/b/mcp', '/a/'], ['/a/b/mcp', '/a/b'],
  ];
  for (const [path, end] of table) {
    const as = await authorizationServer({ token: { refresh_token: 'r' } });
    const server = await protectedServer({ as, path });
    const resource = (server.prm.resource = `${server.origin}${end}`.replace(/^http/, 'HTTP')); // not even its case is changed
    const { visitor, asked } = browser();
    const { connection } = await program({ visitor }).to(server.url);
    as.live.clear();
    await connection.request('ping');
    assert.deepEqual([asked().resource, ...as.asked('/token').map(({ form }) => form.resource)], [resource, resource, resource], end);
    assert.deepEqual(grantsOf(as), ['authorization_code', 'refresh_token']);
  }
});

test('a document about somebody else ends the login before anybody is asked', async () => {
  const others = ['http://127.0.0.1:1/mcp', 'https://evil.example/mcp', '/mcp', 'PATH/mcp/deeper', 'PATH/mc', 'PATH/mcpx'];
  for (const resource of [...others, 7, undefined]) {
    const as = await authorizationServer();
    const server = await protectedServer({ as });
    server.prm.resource = typeof resource === 'string' ? resource.replace('PATH', server.origin) : resource;
    const { visitor, visits } = browser();
    const error = await rejection(program({ visitor }).to(server.url));
    assert.equal(error.kind, 'auth', `${resource}`);
    assert.match(error.message, /which it is not\. We do not log in there/);
    assert.deepEqual([as.log.length, visits.length], [0, 0], `${resource}`);
  }
});

test('the authorization server\'s document: three forms in their order for an issuer with a path, two without; nothing else', async () => {
  const oauth = '/.well-known/oauth-authorization-server';
  const oidc = '/.well-known/openid-configuration';
  const table: [path: string, forms: string[]][] = [
    ['', [oauth, oidc]],
    ['/', [oauth, oidc]],
    ['/tenant1', [`${oauth}/tenant1`, `${oidc}/tenant1`, `/tenant1${oidc}`]],
    ['/a/b', [`${oauth}/a/b`, `${oidc}/a/b`, `/a/b${oidc}`]],
  ];
  for (const [path, forms] of table)
    for (const [n, form] of forms.entries()) {
      const as = await authorizationServer({ path: path === '/' ? '' : path });
      if (path === '/') as.metadata.issuer = `${as.issuer}/`;
      const ways = as.ways;
      ways[`GET ${oauth}${path === '/' ? '' : path}`] = undefined;
      ways[`GET ${form}`] = () => said(as.metadata);
      if (path === '/') ways['GET /authorize'] = ({ query }) => sentBack(query, { code: 'c', iss: `${as.issuer}/` });
      const server = await protectedServer({ as, prm: { authorization_servers: [as.metadata.issuer] } });
      await program({ visitor: browser().visitor }).to(server.url);
      assert.deepEqual(paths(as).filter((each) => each.includes('.well-known')), forms.slice(0, n + 1), form);
    }
});

test('a document with another issuer is passed over; if no other is right, its endpoints are not used', async () => {
  const as = await authorizationServer();
  as.ways['GET /.well-known/oauth-authorization-server'] = () => said({ ...as.metadata, issuer: `${as.issuer}/` });
  const server = await protectedServer({ as });
  const { visitor, visits } = browser();
  const error = await rejection(program({ visitor }).to(server.url));
  assert.match(error.message, /whose metadata says it is/);
  assert.deepEqual([error.kind, visits.length], ['auth', 0]);
  as.ways['GET /.well-known/openid-configuration'] = () => said(as.metadata);
  await program({ visitor }).to(server.url);
  assert.equal(visits.length, 1);
});

test('a document that is no JSON object, or no success, is not there', async () => {
  const odd = [said('<html>'), said([1]), said('null'), said('{"a":'.repeat(3000))];
  for (const answer of [...odd, said(undefined, 403), said({ resource: 'x' }, 404)]) {
    const as = await authorizationServer();
    const server = await protectedServer({ as });
    server.ways[`GET ${WELL_KNOWN}/mcp`] = () => answer;
    server.ways[`GET ${WELL_KNOWN}`] = () => said(server.prm);
    as.ways['GET /.well-known/oauth-authorization-server'] = () => answer;
    as.ways['GET /.well-known/openid-configuration'] = () => said(as.metadata);
    await program({ visitor: browser().visitor }).to(server.url);
  }
});

test('a document that nobody can get at the moment is no missing document: the login ends there', async () => {
  const as = await authorizationServer();
  const server = await protectedServer({ as });
  const { visitor, visits } = browser();
  const ruined = [[server.ways, `GET ${WELL_KNOWN}/mcp`], [as.ways, 'GET /.well-known/oauth-authorization-server']] as const;
  for (const [ways, where] of ruined)
    for (const ruin of [() => said('try later', 503), ({ response }: Heard) => void response.destroy()]) {
      const usual = ways[where];
      ways[where] = ruin;
      const error = await rejection(program({ visitor }).to(server.url));
      assert.equal(error.kind, 'auth');
      assert.match(error.message, /cannot be logged into|has trouble of its own|has no metadata/);
      ways[where] = usual;
    }
  assert.deepEqual([visits.length, as.asked('/register').length, paths(server).includes('/token')], [0, 0, false]);
});

test('a server without a document is its own authorization server, with one of its own or at the usual addresses', async () => {
  for (const [hasDocument, slash] of [[true, ''], [true, '/'], [false, '']] as const) {
    const live = new Set<string>();
    const { visitor, visits } = browser();
    const at = hasDocument ? '/own' : ''; // where its endpoints are
    const server = await protectedServer({
      challenge: 'Bearer', prm: undefined,
      gate: (heard) => (live.has(tokenIn(heard) ?? '') ? undefined : locked('Bearer')),
      ways: {
        [`GET ${WELL_KNOWN}/mcp`]: undefined,
        'GET /.well-known/oauth-authorization-server': hasDocument
          ? () => said({
            issuer: server.origin + slash, // nobody has spelled it for us
            authorization_endpoint: `${server.origin}${at}/authorize`,
            token_endpoint: `${server.origin}${at}/token`,
            registration_endpoint: `${server.origin}${at}/register`,
            code_challenge_methods_supported: ['S256'],
          })
          : undefined,
        [`GET ${at}/authorize`]: ({ query }) => sentBack(query, { code: 'c' }),
        [`POST ${at}/token`]: () => (live.add('old'), said({ access_token: 'old', token_type: 'bearer' })),
        [`POST ${at}/register`]: () => said({ client_id: 'me' }, 201),
      },
    });
    const { connection } = await program({ visitor }).to(server.url);
    await connection.request('ping');
    assert.equal(server.asked(`${at}/token`)[0]!.form.resource, server.url);
    assert.deepEqual([visits[0]!.pathname, visits[0]!.searchParams.get('resource')], [`${at}/authorize`, server.url]);
    assert.equal(server.called('ping')[0]!.headers.authorization, 'Bearer old');
  }
});

test('a server whose document names an authorization server without metadata gets no guesses', async () => {
  const as = await authorizationServer();
  as.ways['GET /.well-known/oauth-authorization-server'] = undefined;
  const server = await protectedServer({ as });
  const { visitor, visits } = browser();
  const error = await rejection(program({ visitor }).to(server.url));
  assert.match(error.message, /which has no metadata/);
  assert.deepEqual([visits.length, paths(server).includes('/authorize')], [0, false]);
});

test('of several authorization servers it is the first; later the one that we know, wherever it stands', async () => {
  const [first, second] = [await authorizationServer(), await authorizationServer()];
  const live = (heard: Heard) => isIn(first, heard) || isIn(second, heard);
  const server = await protectedServer({
    prm: { authorization_servers: [first.issuer, second.issuer] },
    gate: (heard) => (live(heard) ? undefined : locked('Bearer')),
  });
  const { visitor } = browser();
  const { connection } = await program({ visitor }).to(server.url);
  server.prm.authorization_servers = [second.issuer, first.issuer];
  first.live.clear();
  await connection.request('ping');
  assert.deepEqual([grantsOf(first).length, first.asked('/register').length, second.log.length], [2, 1, 0]);
});

// ─── Who we are ───────────────────────────────────────────────────────────────────────────────────────────────

test('we are whom the configuration names, else the document that it names, else somebody new: in this order', async () => {
  const document = 'https://client.example/me.json';
  const table: [oauth: Json, metadata: Json, id: RegExp, registrations: number][] = [
    [{ clientId: 'known', clientMetadataUrl: document }, { client_id_metadata_document_supported: true }, /^known$/, 0],
    [{ clientMetadataUrl: document }, { client_id_metadata_document_supported: true }, /^https:\/\/client\.example\/me\.json$/, 0],
    [{ clientMetadataUrl: document }, {}, /^client-1/, 1],
    [{ clientMetadataUrl: document }, { client_id_metadata_document_supported: 'true' }, /^client-1/, 1],
    [{}, { client_id_metadata_document_supported: true }, /^client-1/, 1],
    [{ clientId: 'known' }, { registration_endpoint: undefined }, /^known$/, 0],
  ];
  for (const [oauth, metadata, id, registrations] of table) {
    const as = await authorizationServer({ metadata });
    const server = await protectedServer({ as });
    const { visitor, asked } = browser();
    await program({ visitor }).to(server.url, oauth);
    assert.match(asked().client_id!, id);
    assert.equal(as.asked('/token')[0]!.form.client_id, asked().client_id);
    assert.equal(as.asked('/register').length, registrations);
  }
});

test('a client that introduces itself says everything that the standard wants, and no more', async () => {
  const as = await authorizationServer();
  const { url } = await protectedServer({ as });
  await program({ visitor: browser().visitor }).to(url);
  const [{ json, headers }] = as.asked('POST /register') as [Heard];
  assert.deepEqual(json, {
    client_name: 'mcp-by-hand',
    application_type: 'native',
    redirect_uris: ['http://127.0.0.1:33418/callback'],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  });
  assert.deepEqual([headers['content-type'], headers.authorization], ['application/json', undefined]);
});

test('nobody to register at, and a refused registration, are errors that say what to do', async () => {
  const without = await authorizationServer({ metadata: { registration_endpoint: undefined } });
  const no: Way = () => refusing('invalid_redirect_uri', 400, { error_description: 'not that one' });
  const refuses = await authorizationServer({ ways: { 'POST /register': no } });
  const odd = await authorizationServer({ ways: { 'POST /register': () => said({ client_id: 7 }, 201) } });
  const picky = await authorizationServer({ metadata: { token_endpoint_auth_methods_supported: ['tls_client_auth'] } });
  for (const [as, words] of [
    [without, /can be used by clients that/],
    [refuses, /does not register us: "?not that one/],
    [odd, /does not register us: "?HTTP 201/],
    [picky, /wants another proof than we have/],
  ] as const) {
    const server = await protectedServer({ as });
    const { visitor, visits, words: told } = browser();
    const error = await rejection(program({ visitor }).to(server.url));
    assert.match(error.message, words);
    const remedy = 'by hand, and write into the server\'s entry: "oauth": '
      + '{ "clientId": "…", "redirectUri": "http://127.0.0.1:33418/callback" }';
    assert.equal(error.message.includes(remedy), as !== picky);
    assert.deepEqual([error.kind, visits.length, told], ['auth', 0, ['It did not work. The terminal says why.']]);
  }
});

/** The browser of somebody on this machine, with our real listener. */
function realBrowser() {
  const uris: string[] = [];
  const pages: Promise<string>[] = [];
  const visitor: Visitor = async (wish, isFixed) => {
    const callback = await Callback.open(wish, isFixed);
    uris.push(callback.redirectUri);
    const go = (url: URL, state: string) => {
      callback.expect(state);
      pages.push(fetch(url).then((response) => response.text()));
      return callback.answer;
    };
    return { redirectUri: callback.redirectUri, go, close: (words) => callback.close(words) };
  };
  return { visitor, uris, pages };
}

test('the next login is by the same registration, at the same port; if that is taken, by a new one', async () => {
  const as = await authorizationServer();
  const { url } = await protectedServer({ as });
  const { visitor, uris, pages } = realBrowser();
  const home = folder();
  const visit = async () => {
    as.live.clear(); // there is no refresh token, so only a login helps
    const { connection } = await program({ home, visitor }).to(url);
    await connection.close();
  };
  await visit();
  await visit();
  assert.deepEqual([uris[1], as.asked('/register').length, as.asked('/authorize').length], [uris[0], 1, 2]);
  assert.match(await pages[1]!, /You are logged in/);
  const squatter = await scripted({}, undefined, Number(new URL(uris[0]!).port));
  await visit();
  assert.notEqual(uris[2], uris[0]);
  assert.deepEqual(as.asked('/register').map(({ json }) => json.redirect_uris), [[uris[0]], [uris[2]]]);
  assert.equal(as.asked('/authorize')[2]!.query.redirect_uri, uris[2]);
  assert.equal(squatter.log.length, 0);
  await visit(); // and the new one is the one we keep
  assert.deepEqual([uris[3], as.asked('/register').length], [uris[2], 2]);
});

test('a registration is kept even if the login fails after it, and a secret that has expired is not used again', async () => {
  const as = await authorizationServer({ metadata: { token_endpoint_auth_methods_supported: ['client_secret_post'] } });
  let ends = Math.floor(Date.now() / 1000) + 3600;
  as.ways['POST /register'] = ({ json }) => {
    const n = as.asked('/register').length;
    return said({ ...json, client_id: `c${n}`, client_secret: `s${n}`, client_secret_expires_at: ends }, 201);
  };
  as.ways['POST /token'] = () => refusing('server_error', 500);
  const { url } = await protectedServer({ as });
  const { visitor } = browser();
  const home = folder();
  const error = await rejection(program({ home, visitor }).to(url));
  assert.match(error.message, /refused us: "?server_error/);
  as.ways['POST /token'] = () => said(as.issue());
  await program({ home, visitor }).to(url);
  assert.deepEqual([as.asked('/register').length, as.asked('/token').map(({ form }) => form.client_secret)], [1, ['s1', 's1']]);
  as.live.clear();
  ends = Math.floor(Date.now() / 1000) - 1;
  const store = new TokenStore({ home });
  const row = store.find('demo', url)!;
  store.keep({ ...row, client: { ...row.client, expiresAt: Date.now() - 1 } });
  await program({ home, visitor }).to(url);
  assert.equal(as.asked('/register').length, 2);
  as.live.clear();
  await program({ home, visitor }).to(url); // the second one had expired when we got it
  assert.deepEqual([as.asked('/register').length, as.asked('/token').at(-1)!.form.client_secret], [3, 's3']);
});

test('a fixed address is what the browser is asked for, by redirectUri or by callbackPort', async () => {
  for (const [oauth, expected] of [
    [{ redirectUri: 'http://localhost:8123/cb' }, 'http://localhost:8123/cb'],
    [{ callbackPort: 8124 }, 'http://127.0.0.1:8124/callback'],
  ] as const) {
    const as = await authorizationServer();
    const { url } = await protectedServer({ as });
    const { visitor, wishes, asked } = browser();
    await program({ visitor }).to(url, oauth);
    assert.deepEqual(wishes, [[expected, true]]);
    assert.deepEqual([asked().redirect_uri, as.asked('/token')[0]!.form.redirect_uri], [expected, expected]);
    assert.deepEqual(as.asked('/register')[0]!.json.redirect_uris, [expected]);
  }
});

test('"oauth" with something odd in it is an error of the configuration, and nothing is asked', async () => {
  const as = await authorizationServer();
  const server = await protectedServer({ as });
  for (const oauth of [
    'x', [], { clientId: 7 }, { clientSecret: {} }, { issuer: true }, { grant: 'password' },
    { grant: 'company' }, { grant: 'company', company: { issuer: 'x' } },
    { callbackPort: -1 }, { callbackPort: 65_536 }, { callbackPort: 1.5 },
    { redirectUri: 'https://elsewhere/cb' }, { redirectUri: 'http://127.0.0.1.evil/cb' },
  ]) {
    const error = await rejection(program({ visitor: browser().visitor }).to(server.url, oauth as Json));
    assert.equal(error.kind, 'config', JSON.stringify(oauth));
    assert.match(error.message, /"demo".*"oauth"/);
  }
  assert.equal(server.log.length, 0);
});

// ─── The token endpoint ───────────────────────────────────────────────────────────────────────────────────────

const ODD_ID = 'a:b%c+d e/é=&"';
const ODD_SECRET = 's:%2B+ \u{1F511}?&=';
const bytesOf = (basic = '') => Buffer.from(basic.replace('Basic ', ''), 'base64').toString();
const decoded = (basic?: string) => bytesOf(basic).split(':').map((part) => new URLSearchParams(`p=${part}`).get('p'));

test('a secret goes out in the way that the authorization server takes, encoded as in a form', async () => {
  const table: [offered: string[] | undefined, way: 'basic' | 'post'][] = [
    [undefined, 'basic'], [['client_secret_basic'], 'basic'], [['client_secret_post'], 'post'], [['none', 'client_secret_post'], 'post'],
    [['client_secret_post', 'client_secret_basic'], 'basic'], [[], 'basic'],
  ];
  for (const [offered, way] of table) {
    const as = await authorizationServer({ metadata: { token_endpoint_auth_methods_supported: offered }, token: { refresh_token: 'r' } });
    const { url } = await protectedServer({ as });
    const { home, to } = program({ visitor: browser().visitor });
    const { connection } = await to(url, { clientId: ODD_ID, clientSecret: ODD_SECRET, issuer: as.issuer });
    as.live.clear();
    await connection.request('ping');
    assert.equal(as.asked('/token').length, 2);
    for (const { headers, form } of as.asked('/token')) {
      const shown = way === 'basic' ? decoded(headers.authorization) : [form.client_id, form.client_secret];
      assert.deepEqual(shown, [ODD_ID, ODD_SECRET], `${offered}`);
      const other = way === 'basic' ? [form.client_id, form.client_secret] : [headers.authorization];
      assert.deepEqual(other.filter(Boolean), [], `${offered}`);
    }
    if (way === 'basic') {
      const bytes = bytesOf(as.asked('/token')[0]!.headers.authorization);
      assert.equal(bytes, 'a%3Ab%25c%2Bd+e%2F%C3%A9%3D%26%22:s%3A%252B%2B+%F0%9F%94%91%3F%26%3D');
    }
    assert.ok(!readFileSync(storeIn(home), 'utf8').includes('%2B+'), 'a secret of the configuration stays there');
  }
});

test('a registered client is shown in the way that it was registered for, whatever it asked for', async () => {
  const [none, basic, post] = ['none', 'client_secret_basic', 'client_secret_post'];
  const table: [offered: string[], wanted: string, given: Json, shown: 'none' | 'basic' | 'post'][] = [
    [[none], none, {}, 'none'],
    [[none], none, { token_endpoint_auth_method: none, client_secret: 'secret' }, 'none'],
    [[basic], basic, { client_secret: 'secret' }, 'basic'],
    [[post], post, { client_secret: 'secret' }, 'post'],
    [[post, none], none, { client_secret: 'secret' }, 'post'], // whoever gives one wants to see it
    [[post, basic, none], none, { client_secret: 'secret', token_endpoint_auth_method: post }, 'post'],
    [['private_key_jwt', post], post, { client_secret: 'secret', token_endpoint_auth_method: basic }, 'basic'],
  ];
  for (const [offered, wanted, given, shown] of table) {
    const as = await authorizationServer({ metadata: { token_endpoint_auth_methods_supported: offered } });
    as.ways['POST /register'] = () => said({ client_id: 'id', ...given }, 201);
    const { url } = await protectedServer({ as });
    await program({ visitor: browser().visitor }).to(url);
    assert.equal(as.asked('/register')[0]!.json.token_endpoint_auth_method, wanted);
    const [{ headers, form }] = as.asked('/token') as [Heard];
    const ways = {
      none: [undefined, 'id', undefined],
      basic: [`Basic ${Buffer.from('id:secret').toString('base64')}`, undefined, undefined],
      post: [undefined, 'id', 'secret'],
    };
    const found = [headers.authorization, form.client_id, form.client_secret];
    assert.deepEqual(found, ways[shown], JSON.stringify([offered, given]));
  }
});

test('the authorization request and the token request have everything that they must have, and nothing else', async () => {
  const as = await authorizationServer({ token: { refresh_token: 'r' } });
  as.metadata.authorization_endpoint = `${as.issuer}/authorize?tenant=1`;
  as.metadata.token_endpoint = `${as.issuer}/token?tenant=1`;
  const { url } = await protectedServer({ as, prm: { scopes_supported: ['a', 'b'] } });
  const { visitor, asked, visits, words } = browser();
  const { connection } = await program({ visitor }).to(url);
  const { state, code_challenge, ...question } = asked();
  const client_id = `client-1-of-${as.port}`;
  const redirect_uri = 'http://127.0.0.1:33418/callback';
  assert.deepEqual(question, {
    tenant: '1', response_type: 'code', client_id, redirect_uri, code_challenge_method: 'S256', resource: url, scope: 'a b',
  });
  const [{ form, query, headers }] = as.asked('POST /token') as [Heard];
  const { code, code_verifier, ...rest } = form;
  assert.deepEqual(rest, { grant_type: 'authorization_code', redirect_uri, client_id, resource: url });
  assert.deepEqual(query, { tenant: '1' });
  assert.match(headers['content-type']!, /^application\/x-www-form-urlencoded/);
  assert.match(code!, /^code-/);
  assert.equal(createHash('sha256').update(code_verifier!).digest('base64url'), code_challenge);
  for (const secret of [state, code_verifier]) assert.match(secret!, /^[\w-]{43}$/);
  assert.deepEqual(words, ['You are logged in. You can close this page.']);
  as.live.clear();
  await connection.request('ping');
  assert.deepEqual(as.asked('POST /token')[1]!.form, { grant_type: 'refresh_token', refresh_token: 'r', client_id, resource: url });
  as.live.clear();
  as.ways['POST /token'] = ({ form }) => (form.grant_type === 'refresh_token' ? refusing('invalid_grant') : said(as.issue()));
  await connection.request('ping');
  assert.equal(visits.length, 2);
  for (const name of ['state', 'code_challenge']) assert.notEqual(asked(0)[name], asked(1)[name], `${name} is good once`);
});

test('a token must be one: a text that fits into a header, of a kind that we know', async () => {
  for (const token of [
    ...[undefined, 7, '', 'a b', 'a\r\nX: y', 'é'].map((access_token) => ({ access_token })),
    { token_type: undefined }, { token_type: 'mac' }, { token_type: 7 }, { error: 'invalid_grant' },
  ]) {
    const as = await authorizationServer({ token });
    const server = await protectedServer({ as });
    const { to, row } = program({ visitor: browser().visitor });
    const error = await rejection(to(server.url));
    assert.equal(error.kind, 'auth', JSON.stringify(token));
    assert.match(error.message, /gives no token we can use|refused us/);
    assert.equal(row(server.url)?.tokens, undefined);
    assert.ok(server.log.every(({ headers }) => headers.authorization === undefined));
  }
  for (const token_type of ['bearer', 'BEARER']) {
    const as = await authorizationServer({ token: { token_type } });
    const server = await protectedServer({ as });
    const { connection } = await program({ visitor: browser().visitor }).to(server.url);
    await connection.request('ping');
    assert.match(server.called('ping')[0]!.headers.authorization!, /^Bearer /);
  }
});

test('what an authorization server says when it refuses is told, but not what we had sent it', async () => {
  const as = await authorizationServer({
    ways: {
      'POST /token': ({ form: { code, code_verifier } }) =>
        refusing('invalid_request', 400, { error_description: `bad: ${code_verifier} ${code}` }),
    },
  });
  const { url } = await protectedServer({ as });
  const { visitor, words } = browser();
  const error = await rejection(program({ visitor }).to(url));
  const { code, code_verifier } = as.asked('/token')[0]!.form;
  assert.match(error.message, /refused us: "?invalid_request: bad: \*\*\* \*\*\*/);
  assert.ok(!error.message.includes(code!) && !error.message.includes(code_verifier!));
  assert.deepEqual(words, ['It did not work. The terminal says why.']);
});

// ─── Scopes ───────────────────────────────────────────────────────────────────────────────────────────────────

test('the scope is what the configuration says, else the challenge, else the document, else nothing; offline_access if it is offered', async () => {
  type Case = [challenged: string, own: string | undefined, prm?: string[], supported?: string[], expected?: string];
  const table: Case[] = [
    ['a b', undefined, ['decoy'], undefined, 'a b'],
    ['', undefined, ['p', 'q'], undefined, 'p q'],
    ['', undefined, undefined, undefined, undefined],
    ['', undefined, [], undefined, undefined],
    ['a b', 'mine also-mine', ['p'], undefined, 'mine also-mine'],
    ['', 'mine', ['p'], undefined, 'mine'],
    ['a', undefined, ['decoy'], ['a', 'offline_access'], 'a offline_access'],
    ['', undefined, ['p'], ['offline_access'], 'p offline_access'],
    ['', undefined, undefined, ['offline_access'], undefined], // alone it would mean: and nothing else
    ['a offline_access', undefined, undefined, ['offline_access'], 'a offline_access'],
    ['a', undefined, ['offline_access'], ['a'], 'a'],
    ['a', 'mine', undefined, ['offline_access'], 'mine offline_access'],
    ['a', 'mine', undefined, ['other'], 'mine'],
    ['a  a\tb', undefined, undefined, undefined, 'a b'],
  ];
  for (const [challenged, scopes, prm, supported, expected] of table) {
    const as = await authorizationServer({ metadata: { scopes_supported: supported } });
    const challenge = `Bearer${challenged && ` scope="${challenged}"`}`;
    const server = await protectedServer({ as, prm: { scopes_supported: prm }, challenge });
    const { visitor, asked } = browser();
    await program({ visitor }).to(server.url, scopes ? { scopes } : undefined);
    assert.equal(asked().scope, expected, JSON.stringify([challenged, scopes, prm, supported]));
  }
});

test('a grant that is named, and is the usual one, changes nothing', async () => {
  const as = await authorizationServer({ metadata: { scopes_supported: ['offline_access'] } });
  const { url } = await protectedServer({ as, challenge: 'Bearer scope="a"' });
  const { visitor, asked } = browser();
  await program({ visitor }).to(url, { grant: 'authorization_code' });
  assert.equal(asked().scope, 'a offline_access');
});

/** Wants `basic` for everything, and for a call what `needs` says. */
async function stepping(needs: (heard: Heard) => string | Promise<string>, more: Parameters<typeof authorizationServer>[0] = {}) {
  const as = await authorizationServer(more);
  const granted = new Map<string, string[]>();
  const asked = () => as.asked('/authorize').at(-1)!.query.scope?.split(' ') ?? [];
  as.ways['POST /token'] = () => {
    const answer = as.issue();
    granted.set(answer.access_token as string, asked());
    return said(answer);
  };
  const gate: Way = async (heard) => {
    const scopes = granted.get(tokenIn(heard) ?? '');
    const needed = heard.json.method === 'tools/call' ? await needs(heard) : 'basic';
    if (!scopes) return locked('Bearer scope="basic"');
    return scopes.includes(needed) ? undefined : locked(`Bearer error="insufficient_scope", scope="${needed}"`, 403);
  };
  const server = await protectedServer({ as, gate, prm: { scopes_supported: ['decoy', 'admin'] } });
  return { as, server };
}

test('a call that needs more asks for more, keeps what was asked for before, and is made again with the new token', async () => {
  const { as, server } = await stepping(() => 'write', { metadata: { scopes_supported: ['offline_access'] } });
  const { visitor, asked, visits } = browser();
  const { to, row } = program({ visitor });
  const { connection } = await to(server.url);
  await connection.request('ping');
  assert.equal(await call(connection, 'echo', { a: 1 }), '{"a":1}');
  assert.deepEqual([asked(0).scope, asked(1).scope, visits.length], ['basic offline_access', 'basic offline_access write', 2]);
  assert.deepEqual([server.called('tools/call').length, as.asked('/register').length], [1, 1]);
  assert.deepEqual(row(server.url)!.tokens!.scope, ['basic', 'offline_access', 'write']);
});

test('the strict server agrees: a login, then a step-up', async () => {
  const { issuer, log } = await strictIssuer();
  const url = await strictCalculator(issuer, '--era', 'legacy', '--sessions');
  const { visitor, asked } = browser();
  const { connection } = await program({ visitor }).to(url);
  assert.equal(await call(connection, 'add', { a: 2, b: 40 }), '42');
  assert.equal(await call(connection, 'greet', { name: 'Ada' }), 'Hello, Ada!');
  assert.equal(await call(connection, 'add', { a: 2, b: 40 }), '42');
  assert.deepEqual([asked(0).scope, asked(1).scope], ['calculator:read offline_access', 'calculator:read offline_access calculator:write']);
  assert.deepEqual((await log()).map(({ method, path, status }) => `${method} ${path} ${status}`), [
    'GET /.well-known/oauth-authorization-server 200', 'POST /register 201', 'GET /authorize 302', 'POST /token 200',
    'GET /.well-known/oauth-authorization-server 200', 'GET /authorize 302', 'POST /token 200',
  ]);
});

test('a server that forbids for ever gets few logins: one more if it names the same scope, three more if it names others', async () => {
  const as = await authorizationServer();
  for (const [scope, logins] of [[() => 'write', 2], [(n: number) => `write-${n}`, 4]] as const) {
    let n = 0;
    const forbids = await protectedServer({
      as,
      gate: (heard) => {
        if (!isIn(as, heard)) return locked('Bearer scope="basic"');
        return heard.json.method === 'tools/call' ? locked(`Bearer error="insufficient_scope", scope="${scope(++n)}"`, 403) : undefined;
      },
    });
    const { visitor, visits } = browser();
    const { connection } = await program({ visitor }).to(forbids.url);
    const error = await rejection(call(connection, 'echo'));
    assert.equal(error.kind, 'auth');
    assert.match(error.message, /although we have asked for everything it wants \(basic write\)|refuses us \(HTTP 403\)/);
    assert.equal(visits.length, logins, 'the first login among them');
    await connection.request('ping'); // nothing is broken by it
  }
});

test('a plain 403 is no matter of logging in', async () => {
  for (const challenge of ['', 'Bearer', 'Bearer error="invalid_token"']) {
    const as = await authorizationServer({ token: { refresh_token: 'r' } });
    const server = await protectedServer({
      as,
      gate: (heard) => {
        if (!isIn(as, heard)) return locked('Bearer');
        const headers: Said['headers'] = challenge ? { 'www-authenticate': challenge } : {};
        return heard.json.method === 'tools/call' ? said('not on Sundays', 403, headers) : undefined;
      },
    });
    const { visitor, visits } = browser();
    const { connection } = await program({ visitor }).to(server.url);
    const error = await rejection(call(connection, 'echo'));
    assert.match(error.message, /refuses us \(HTTP 403\): "?not on Sundays/);
    assert.deepEqual([error.kind, visits.length, grantsOf(as)], ['auth', 1, ['authorization_code']]);
  }
});

// ─── The token on the wire ────────────────────────────────────────────────────────────────────────────────────

test('the token is on every request: POST, the stream to listen on, and the goodbye', async () => {
  const as = await authorizationServer();
  const server = await protectedServer({
    as, session: 's',
    ways: { 'GET *': ({ response }) => void stream(response, event({ jsonrpc: '2.0', id: 'q', method: 'ping' })) },
  });
  const { connection } = await program({ visitor: browser().visitor }).to(server.url);
  await call(connection, 'echo');
  await until(() => server.log.some(({ json }) => json.id === 'q'));
  await connection.close();
  const first = server.log.findIndex(({ headers }) => headers.authorization);
  const after = server.log.slice(first);
  assert.deepEqual([...new Set(after.map(({ verb }) => verb))].sort(), ['DELETE', 'GET', 'POST']);
  for (const { verb, headers } of after) assert.equal(headers.authorization, `Bearer access-1-of-${as.port}`, verb);
  assert.ok(as.log.every(({ headers }) => headers.authorization === undefined), 'the authorization server never sees it');
});

test('the token goes to the origin of the server, and to nobody else', async () => {
  const as = await authorizationServer();
  const sink = await scripted({}, () => said({ jsonrpc: '2.0', id: 1, result: {} }));
  const moved: Way = ({ json }) => said({ jsonrpc: '2.0', id: json.id, result: { moved: true } });
  const server = await protectedServer({ as, ways: { 'POST /moved': moved } });
  const { to, store } = program({ visitor: browser().visitor });
  const { connection } = await to(server.url);
  server.ways['POST *'] = ({ response }) => void response.writeHead(307, { location: `${sink.origin}/mcp` }).end();
  const error = await rejection(connection.request('ping'));
  assert.match(error.message, new RegExp(`sends us on to ${sink.origin}`));
  assert.equal(sink.log.length, 0);
  server.ways['POST *'] = ({ response }) => void response.writeHead(307, { location: '/moved' }).end();
  assert.deepEqual(await connection.request('ping'), { moved: true });
  assert.equal(server.asked('/moved')[0]!.headers.authorization, `Bearer access-1-of-${as.port}`);
  // The same for whoever asks by the login itself.
  const login = new Login('demo', { url: server.url }, { store });
  await login.fetch('who', new URL(`${sink.origin}/x`), { method: 'GET', headers: {} });
  assert.deepEqual([sink.log.length, sink.log[0]!.headers.authorization], [1, undefined]);
});

test('a key in the configuration is how the user wants to be known: then nobody logs in', async () => {
  const as = await authorizationServer();
  const server = await protectedServer({ as });
  const { visitor, visits } = browser();
  const { to, home, store } = program({ visitor });
  const error = await rejection(to(server.url, undefined, {}, { headers: { AUTHORIZATION: 'Bearer mine' } }));
  assert.deepEqual([error.kind, error.status], ['auth', 401]);
  assert.deepEqual([visits.length, as.log.length, store.verdict('demo', server.url)], [0, 0, undefined]);
  assert.ok(server.log.every(({ headers, path }) => path === '/mcp' && headers.authorization === 'Bearer mine'));
  as.live.add('mine');
  await to(server.url, undefined, {}, { headers: { Authorization: 'Bearer mine' } });
  assert.throws(() => readFileSync(storeIn(home)), { code: 'ENOENT' });
});

/** A server of 2024: one stream, and an address for messages. Everything wants a live token. */
async function olderServer(as: AuthorizationServer, { isMixed = false } = {}) {
  let open: Heard['response'] | undefined;
  const guarded = (way: Way): Way => (heard) =>
    isIn(as, heard) ? way(heard) : locked(`Bearer resource_metadata="${server.origin}/prm"`);
  const server = await scripted({
    'GET /sse': guarded(({ response }) => void stream((open = response), event('/messages', { event: 'endpoint' }))),
    'POST /messages': guarded(({ json }) => {
      const description = { protocolVersion: '2024-11-05', capabilities: { tools: {} } };
      const result = json.method === 'initialize' ? description : { content: [{ type: 'text', text: 'old' }] };
      if (json.id !== undefined) setImmediate(() => open!.write(event({ jsonrpc: '2.0', id: json.id, result })));
      return said('', 202);
    }),
    ...(isMixed && { 'POST /sse': guarded(() => said('', 405)) }),
    'GET /prm': () => said({ resource: server.origin, authorization_servers: [as.issuer] }),
  });
  return { ...server, url: `${server.origin}/sse` };
}

test('HTTP+SSE: the token is on the stream and on every message, and a dead one is renewed; also if http has to fall back to it', async () => {
  for (const type of ['sse', 'http']) {
    const as = await authorizationServer({ token: { refresh_token: 'r' } });
    const server = await olderServer(as, { isMixed: type === 'http' });
    const { visitor, visits } = browser();
    const { connection } = await program({ visitor }).to(server.url, undefined, {}, { type });
    assert.equal(await call(connection, 'x'), 'old');
    as.live.clear();
    assert.equal(await call(connection, 'x'), 'old');
    assert.deepEqual([visits.length, grantsOf(as)], [1, ['authorization_code', 'refresh_token']]);
    const tokens = server.asked('/messages').map((heard) => tokenIn(heard));
    assert.ok(tokens.every((token) => token?.startsWith('access-')), type);
    assert.equal(new Set(tokens).size, 2);
  }
});

// ─── A token ends ─────────────────────────────────────────────────────────────────────────────────────────────

/** Refresh tokens that are good once: whoever comes with a used one is a thief, and everything is over. */
type Rotation = { expires_in?: number; slowly?: () => Promise<unknown> };
function rotating(as: AuthorizationServer, { expires_in, slowly }: Rotation = {}): { isDead: boolean; used: string[] } {
  const family = { isDead: false, used: [] as string[] };
  let [n, current] = [0, ''];
  as.ways['POST /token'] = async ({ form }) => {
    if (form.grant_type === 'refresh_token') {
      family.used.push(form.refresh_token!);
      if (form.refresh_token !== current || family.isDead) {
        family.isDead = true;
        as.live.clear();
        return refusing('invalid_grant');
      }
      current = '';
      await slowly?.();
    } else family.isDead = false;
    current = `refresh-${++n}`;
    return said(as.issue({ refresh_token: current, ...(expires_in && { expires_in }) }));
  };
  return family;
}

/** As if the time of the stored token were over. */
function age({ store, row }: ReturnType<typeof program>, url: string): void {
  const found = row(url)!;
  store.keep({ ...found, tokens: { ...found.tokens!, expiresAt: Date.now() - 1 } });
}

test('a token whose time is over is renewed before it is used, by the next program too', async () => {
  const as = await authorizationServer();
  const family = rotating(as, { expires_in: 3600 });
  const server = await protectedServer({ as });
  const { visitor, visits } = browser();
  const first = program({ visitor });
  const before = Date.now();
  await first.to(server.url);
  const { expiresAt } = first.row(server.url)!.tokens!;
  assert.ok(expiresAt! > before + 3_000_000 && expiresAt! < Date.now() + 3_600_000, 'a little earlier than it says');
  age(first, server.url);
  const refused = () => server.log.filter((heard) => heard.path === '/mcp' && !isIn(as, heard)).length;
  const [seen, wasRefused] = [server.log.length, refused()];
  const next = program({ home: first.home });
  const { connection } = await next.to(server.url);
  await call(connection, 'echo');
  assert.deepEqual([visits.length, family.used, refused() - wasRefused], [1, ['refresh-1'], 0]);
  assert.ok(server.log.slice(seen).every((heard) => tokenIn(heard) === `access-2-of-${as.port}`));
  assert.equal(next.row(server.url)!.tokens!.refresh, 'refresh-2');
});

test('how long a token lives may be said in odd ways', async () => {
  for (const expires_in of [3600, '3600', 0, -5, 'soon', null, undefined]) {
    const as = await authorizationServer({ token: { refresh_token: 'r', expires_in } });
    const server = await protectedServer({ as });
    const { to, row } = program({ visitor: browser().visitor });
    await to(server.url);
    assert.equal(row(server.url)!.tokens!.expiresAt !== undefined, Number(expires_in) === 3600, `${expires_in}`);
    assert.equal(refreshes(as), 0);
  }
});

test('a token that only the server knows to be dead is renewed too; each new refresh token replaces the one before', async () => {
  const as = await authorizationServer();
  const family = rotating(as);
  const server = await protectedServer({ as });
  const first = program({ visitor: browser().visitor });
  await first.to(server.url);
  const { connection } = await program({ home: first.home }).to(server.url); // without a browser
  for (let n = 1; n <= 3; n++) {
    as.live.clear();
    assert.equal(await call(connection, 'echo', { n }), `{"n":${n}}`);
  }
  assert.deepEqual([family.used, family.isDead], [['refresh-1', 'refresh-2', 'refresh-3'], false]);
  assert.equal(server.called('tools/call').length, 3, 'none was made twice');
});

test('an authorization server that gives no new refresh token means that the old one stays good', async () => {
  const as = await authorizationServer();
  as.ways['POST /token'] = ({ form }) => said(as.issue(form.grant_type === 'refresh_token' ? {} : { refresh_token: 'for ever' }));
  const server = await protectedServer({ as });
  const { to, row } = program({ visitor: browser().visitor });
  const { connection } = await to(server.url);
  for (let n = 0; n < 3; n++) {
    as.live.clear();
    await call(connection, 'echo');
  }
  assert.deepEqual(as.asked('/token').slice(1).map(({ form }) => form.refresh_token), ['for ever', 'for ever', 'for ever']);
  assert.equal(row(server.url)!.tokens!.refresh, 'for ever');
});

test('a refresh token that is refused is not shown again: a login is wanted, and the registration is kept for it', async () => {
  const as = await authorizationServer();
  const family = rotating(as);
  const server = await protectedServer({ as });
  const first = program({ visitor: browser().visitor });
  await first.to(server.url);
  const next = program({ home: first.home });
  const { connection } = await next.to(server.url);
  family.isDead = true;
  as.live.clear();
  for (let n = 0; n < 3; n++) {
    const error = await rejection(call(connection, 'echo'));
    assert.deepEqual([error.kind, error.status], ['auth', 401]);
    assert.match(error.message, /wants a login\. To log in: \/mcp login demo in a chat, or .*mcp login demo/);
  }
  await rejection(program({ home: first.home }).to(server.url));
  assert.deepEqual(family.used, ['refresh-1']);
  assert.deepEqual([next.row(server.url)!.tokens, next.row(server.url)!.client.id], [undefined, `client-1-of-${as.port}`]);
  assert.equal(next.logins.isWanted('demo'), true);
  await program({ home: first.home, visitor: browser().visitor }).to(server.url);
  assert.equal(as.asked('/register').length, 1);
  assert.equal(await call(connection, 'echo'), '{}', 'and the program that waited goes on with that');
});

test('an authorization server that does not know us any more gets to know us again at the next login', async () => {
  const as = await authorizationServer({ token: { refresh_token: 'r' } });
  const server = await protectedServer({ as });
  const first = program({ visitor: browser().visitor });
  await first.to(server.url);
  as.live.clear();
  const usual = as.ways['POST /token']!;
  as.ways['POST /token'] = (heard) => (heard.form.client_id === `client-1-of-${as.port}` ? refusing('invalid_client', 401) : usual(heard));
  assert.match((await rejection(program({ home: first.home }).to(server.url))).message, /wants a login/);
  await program({ home: first.home, visitor: browser().visitor }).to(server.url);
  assert.equal(as.asked('/register').length, 2);
});

test('a login for more rights that comes to nothing leaves the login that there was', async () => {
  const { server } = await stepping(() => 'write');
  const first = program({ visitor: browser().visitor });
  await first.to(server.url);
  const failing: [string, (url: URL) => Promise<URL>][] = [
    ['nobody comes back', () => Promise.reject(new McpError('auth', 'nobody came back from the browser'))],
    ['it is stopped', () => Promise.reject(new McpError('aborted', 'the login was stopped'))],
    ['somebody says no', async (url) => new URL(`${url.searchParams.get('redirect_uri')}?error=access_denied&iss=${url.origin}`)],
    ['it comes from elsewhere', async (url) => new URL(`${url.searchParams.get('redirect_uri')}?code=x&iss=https://evil.example`)],
  ];
  for (const [name, take] of failing) {
    const next = program({ home: first.home, visitor: browser({ take }).visitor });
    const { connection } = await next.to(server.url);
    await rejection(call(connection, 'echo'));
    await connection.request('ping');
    assert.ok(next.row(server.url)?.tokens, `${name}: and the next program needs no login`);
  }
});

test('an authorization server that is away, or in trouble, costs us no token: the next call tries again', async () => {
  const as = await authorizationServer({ token: { refresh_token: 'r', expires_in: 3600 } });
  const server = await protectedServer({ as });
  const first = program({ visitor: browser().visitor });
  await first.to(server.url);
  const ways: Record<string, Way> = {
    'broken off': ({ response }) => void response.destroy(),
    'HTTP 503': () => said('try later', 503),
    'server_error': () => refusing('server_error', 500),
    'temporarily_unavailable': () => refusing('temporarily_unavailable'),
    'too often': () => refusing('too_many_requests', 429),
  };
  const usual = as.ways['POST /token'];
  const next = program({ home: first.home });
  const { connection } = await next.to(server.url);
  for (const [name, way] of Object.entries(ways)) {
    as.ways['POST /token'] = way;
    as.live.clear();
    const error = await rejection(call(connection, 'echo'));
    assert.equal(error.kind, 'auth', name);
    assert.match(error.message, /^MCP server "demo" \(http:\/\/127\.0\.0\.1:\d+\)/);
    assert.equal(next.row(server.url)!.tokens!.refresh, 'r', name);
    as.ways['POST /token'] = usual;
    assert.equal(await call(connection, 'echo'), '{}', name);
  }
  // Nobody there at all, and by our clock the time of the token is over: the server decides.
  age(next, server.url);
  await as.stop();
  const other = program({ home: first.home });
  await other.to(server.url);
  as.live.clear();
  const error = await rejection(program({ home: first.home }).to(server.url));
  assert.match(error.message, /cannot be logged into: .*ECONNREFUSED/);
  assert.deepEqual([error.kind, other.row(server.url)!.tokens!.refresh], ['auth', 'r']);
});

test('a token whose time is over, and that cannot be renewed, is the server\'s to refuse: its challenge leads to the login', async () => {
  for (const [hasBrowser, where] of [[true, '/somewhere'], [true, `${WELL_KNOWN}/mcp`], [false, '/somewhere']] as const) {
    const as = await authorizationServer();
    const family = rotating(as, { expires_in: 3600 });
    const server = await protectedServer({
      as, ways: { [`GET ${WELL_KNOWN}/mcp`]: undefined, [`GET ${where}`]: () => said(server.prm) },
      gate: (heard) =>
        isIn(as, heard) ? undefined : locked(`Bearer scope="special", resource_metadata="${server.origin}${where}"`),
    });
    const { visitor, asked } = browser();
    const first = program({ visitor });
    await first.to(server.url);
    age(first, server.url);
    family.isDead = true;
    as.live.clear();
    if (!hasBrowser) {
      const error = await rejection(program({ home: first.home }).to(server.url));
      assert.match(error.message, /wants a login/);
      assert.match(first.store.verdict('demo', server.url)!.challenge, /special/, 'what the server said is kept');
    } else {
      await program({ home: first.home, visitor }).to(server.url);
      assert.deepEqual([asked(1).scope, family.used], ['special', ['refresh-1']], where);
    }
  }
});

test('a goodbye is not worth a new token', async () => {
  const as = await authorizationServer({ token: { refresh_token: 'r' } });
  const server = await protectedServer({ as, session: 's' });
  const { connection } = await program({ visitor: browser().visitor }).to(server.url);
  as.live.clear();
  await connection.close();
  const { verb, headers } = server.log.at(-1)!;
  assert.deepEqual([verb, headers.authorization], ['DELETE', `Bearer access-1-of-${as.port}`]);
  assert.equal(refreshes(as), 0);
});

test('the stream to listen on is renewed like any request; where a login is wanted, nobody goes on listening', async () => {
  const as = await authorizationServer({ token: { refresh_token: 'r' } });
  const streams: Heard[] = [];
  const server = await protectedServer({
    as, session: 's', ways: { 'GET *': (heard) => void (streams.push(heard), stream(heard.response, 'retry: 100\n\n')) },
  });
  const first = program({ visitor: browser().visitor });
  const { connection } = await first.to(server.url);
  await until(() => streams.length === 1);
  as.live.clear();
  streams[0]!.response.end();
  await until(() => streams.length === 2);
  assert.deepEqual([refreshes(as), tokenIn(streams[1]!)], [1, `access-2-of-${as.port}`]);
  await connection.close();
  const next = await program({ home: first.home }).to(server.url); // without a browser
  await until(() => streams.length === 3);
  as.ways['POST /token'] = () => refusing('invalid_grant');
  as.live.clear();
  const gets = () => server.asked('GET /mcp').length;
  const before = gets();
  streams[2]!.response.end();
  await until(() => gets() > before);
  await rejection(next.connection.request('ping'));
  assert.ok(gets() - before <= 2, 'and not again and again');
});

// ─── Many at once ─────────────────────────────────────────────────────────────────────────────────────────────

const FIFTY = Array.from({ length: 50 }, (_, n) => n);

test('fifty calls that meet a token whose time is over cause one refresh', async () => {
  const as = await authorizationServer();
  const family = rotating(as, { expires_in: 0.3 });
  const server = await protectedServer({ as });
  const { to, row } = program({ visitor: browser().visitor });
  const { connection } = await to(server.url);
  for (const round of [1, 2]) {
    const { expiresAt, refresh } = row(server.url)!.tokens!;
    await until(() => Date.now() > expiresAt!);
    as.ways['POST /token'] = async ({ form }) => {
      family.used.push(form.refresh_token!);
      assert.equal(form.refresh_token, refresh);
      return said(as.issue({ refresh_token: `next-${round}`, expires_in: round === 1 ? 0.5 : 3600 }));
    };
    const [before, seen] = [family.used.length, server.log.length];
    const texts = await Promise.all(FIFTY.map((n) => call(connection, 'echo', { n })));
    assert.deepEqual(texts, FIFTY.map((n) => `{"n":${n}}`));
    assert.equal(family.used.length - before, 1, `round ${round}`);
    assert.equal(server.log.length - seen, 50, 'the dead token was not shown');
  }
});

test('fifty calls whose token is dead only on the server cause one refresh, and none is made twice', async () => {
  const as = await authorizationServer();
  const family = rotating(as, { slowly: () => until(() => refused.size >= FIFTY.length) });
  const refused = new Set<unknown>();
  const server = await protectedServer({
    as,
    gate: (heard) => {
      if (isIn(as, heard)) return undefined;
      refused.add(heard.json.id ?? -1);
      return locked(`Bearer resource_metadata="${server.origin}${WELL_KNOWN}/mcp"`);
    },
  });
  const { connection } = await program({ visitor: browser().visitor }).to(server.url);
  for (const round of [1, 2, 3]) {
    as.live.clear();
    refused.clear();
    const texts = await Promise.all(FIFTY.map((n) => call(connection, 'echo', { n })));
    assert.deepEqual(texts, FIFTY.map((n) => `{"n":${n}}`));
    assert.deepEqual([family.used.length, family.isDead], [round, false]);
    assert.equal(server.called('tools/call').length, round * FIFTY.length);
  }
});

/** Somebody is logged in, and the token is dead. A refresh says when it is under way, and waits until it may go on. */
async function slowRefresh() {
  const as = await authorizationServer();
  const under = hold();
  const go = hold();
  const family = rotating(as, { slowly: () => (under.keep(), go.kept) });
  const server = await protectedServer({ as });
  const { connection } = await program({ visitor: browser().visitor }).to(server.url);
  as.live.clear();
  return { connection, server, family, under, go };
}

test('calls that come while a refresh is under way wait for it, too', async () => {
  const { connection, server, family, under, go } = await slowRefresh();
  const first = call(connection, 'echo');
  await under.kept;
  const seen = server.log.length;
  const others = Promise.all(FIFTY.map((n) => call(connection, 'echo', { n })));
  await until(() => server.log.length >= seen + FIFTY.length); // they were refused
  go.keep();
  await first;
  assert.equal((await others).length, 50);
  assert.deepEqual(family.used, ['refresh-1']);
});

test('fifty first calls cause one login', async () => {
  const as = await authorizationServer();
  const server = await protectedServer({
    as, gate: (heard) => (heard.json.method !== 'tools/call' || isIn(as, heard) ? undefined : locked('Bearer scope="a"')),
  });
  const { visitor, visits } = browser();
  const { connection } = await program({ visitor }).to(server.url);
  assert.equal(visits.length, 0);
  const texts = await Promise.all(FIFTY.map((n) => call(connection, 'echo', { n })));
  assert.deepEqual(texts, FIFTY.map((n) => `{"n":${n}}`));
  assert.deepEqual([visits.length, as.asked('/register').length, as.asked('/token').length], [1, 1, 1]);
});

test('fifty calls that need more rights cause one step-up', async () => {
  const { as, server } = await stepping(() => 'write');
  const { visitor, visits } = browser();
  const { connection } = await program({ visitor }).to(server.url);
  assert.equal((await Promise.all(FIFTY.map((n) => call(connection, 'echo', { n })))).length, 50);
  assert.deepEqual([visits.length, as.asked('/token').length], [2, 2]);
});

test('a refusal that comes late, when there is a better token already, is no reason for another', async () => {
  const late = hold();
  const { as, server } = await stepping(async ({ json }) => (json.params.arguments.late && (await late.kept), 'write'));
  const { visitor, visits } = browser();
  const { connection } = await program({ visitor }).to(server.url);
  const waiting = call(connection, 'echo', { late: true });
  assert.equal(await call(connection, 'echo', { n: 1 }), '{"n":1}');
  late.keep();
  assert.equal(await waiting, '{"late":true}');
  assert.deepEqual([visits.length, as.asked('/token').length], [2, 2]);
});

test('two programs with the same home and the same dead token: one of them refreshes, and both go on', async () => {
  for (const how of ['by our clock', 'on the server']) {
    const as = await authorizationServer();
    const family = rotating(as, { expires_in: 3600, slowly: () => until(() => how === 'by our clock' || refused.size === 2) });
    const refused = new Set<string>(); // which programs
    const server = await protectedServer({
      as,
      gate: (heard) => {
        if (isIn(as, heard)) return undefined;
        refused.add(`${heard.headers['x-program']}`);
        return locked('Bearer');
      },
    });
    const first = program({ visitor: browser().visitor });
    await first.to(server.url);
    refused.clear();
    if (how === 'by our clock') age(first, server.url);
    as.live.clear();
    const programs = ['one', 'two'].map((name) => run('logged-in.ts', [first.home, server.url, name]));
    for (const { seen } of programs) await until(() => seen.output.includes('ready'));
    for (const { child } of programs) child.stdin.write('go\n');
    for (const { ended } of programs) {
      const { code, output } = await ended;
      assert.equal(code, 0, output);
      assert.match(output, /answered \{"by":"(one|two)"\}/);
    }
    assert.deepEqual([family.used, family.isDead], [['refresh-1'], false], how);
    assert.equal(first.row(server.url)!.tokens!.refresh, 'refresh-2');
  }
});

test('a program that died while it refreshed does not lock the others out', async () => {
  const as = await authorizationServer({ token: { refresh_token: 'r' } });
  const server = await protectedServer({ as });
  const first = program({ visitor: browser().visitor });
  const { connection } = await first.to(server.url);
  const lock = join(first.home, '.mcp-by-hand', 'logins.json.refresh');
  writeFileSync(lock, '');
  utimesSync(lock, new Date(Date.now() - 60_000), new Date(Date.now() - 60_000));
  as.live.clear();
  assert.equal(await call(connection, 'echo'), '{}');
  assert.ok(!existsSync(lock));
});

test('a call that is cancelled while others wait for a token too stops waiting, and the others go on', async () => {
  const { connection, server, family, under, go } = await slowRefresh();
  const controllers = FIFTY.map(() => new AbortController());
  const calls = controllers.map(({ signal }, n) => call(connection, 'echo', { n }, { signal }));
  const outcomes = calls.map((each) => each.then(() => 'done', (error) => error.kind));
  await under.kept;
  for (const controller of controllers.slice(0, 25)) controller.abort();
  assert.deepEqual(await Promise.all(outcomes.slice(0, 25)), Array(25).fill('aborted')); // while the refresh is still under way
  go.keep();
  assert.deepEqual(await Promise.all(outcomes.slice(25)), Array(25).fill('done'));
  assert.deepEqual([family.used, server.called('tools/call').length], [['refresh-1'], 25]);
});

test('whoever asks by the login itself, and stops, does not wait for the token either', async () => {
  for (const how of ['by our clock', 'on the server']) {
    const as = await authorizationServer();
    const under = hold();
    const go = hold();
    rotating(as, { expires_in: 3600, slowly: () => (under.keep(), go.kept) });
    const server = await protectedServer({ as });
    const first = program({ visitor: browser().visitor });
    await first.to(server.url);
    if (how === 'by our clock') age(first, server.url);
    else as.live.clear();
    const login = new Login('demo', { url: server.url }, { store: new TokenStore({ home: first.home }) });
    const controller = new AbortController();
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
    const ask = (signal?: AbortSignal) => login.fetch('who', new URL(server.url), { method: 'POST', headers: {}, body, signal });
    const stopped = rejection(ask(controller.signal));
    const other = ask();
    await under.kept;
    controller.abort(new Error('enough'));
    assert.equal((await stopped).message, 'enough', how);
    go.keep();
    const { status, body: answer } = await other;
    answer.resume();
    assert.equal(status, 200);
    assert.equal(refreshes(as), 1);
  }
});

// ─── Tokens that do not help ──────────────────────────────────────────────────────────────────────────────────

test('a new token that the server does not accept is a clear error, and no loop', async () => {
  const as = await authorizationServer();
  const server = await protectedServer({ as, gate: () => locked('Bearer') });
  const { visitor, visits } = browser();
  const error = await rejection(program({ visitor }).to(server.url));
  assert.equal(error.kind, 'auth');
  assert.match(error.message, new RegExp(`does not accept the token that ${as.issuer} has given us for it`));
  assert.deepEqual([visits.length, as.asked('/token').length], [1, 1]);
  assert.equal(server.log.filter(({ path }) => path === '/mcp').length, 2);
});

test('a refreshed token that the server does not accept leads to one login, and then to the error', async () => {
  const as = await authorizationServer();
  const family = rotating(as);
  let isShut = false;
  const server = await protectedServer({ as, gate: (heard) => (!isShut && isIn(as, heard) ? undefined : locked('Bearer')) });
  const { visitor, visits } = browser();
  const { connection } = await program({ visitor }).to(server.url);
  isShut = true;
  const error = await rejection(call(connection, 'echo'));
  assert.match(error.message, /does not accept the token/);
  assert.deepEqual([visits.length, family.used], [2, ['refresh-1']]);
});

test('a server that moves to another authorization server gets a new registration there, and the old one is shown to nobody', async () => {
  for (const token of [{}, { refresh_token: 'r' }]) {
    const [old, next] = [await authorizationServer({ token }), await authorizationServer({ token })];
    let current = old;
    const server = await protectedServer({ as: old, gate: (heard) => (isIn(current, heard) ? undefined : locked('Bearer')) });
    const { visitor, visits } = browser();
    const { to, store, row } = program({ visitor });
    const { connection } = await to(server.url);
    current = next;
    server.prm.authorization_servers = [next.issuer];
    assert.equal(await call(connection, 'echo'), '{}');
    assert.deepEqual([visits.map(({ origin }) => origin), next.asked('/register').length], [[old.issuer, next.issuer], 1]);
    const all = JSON.stringify(next.log.map(({ query, form, json, headers }) => [query, form, json, headers]));
    assert.ok(!all.includes(`-of-${old.port}`) && !all.includes('refresh_token":"r"'), 'nothing of the old one');
    assert.equal(row(server.url)!.issuer, next.issuer);
    assert.equal(store.find('demo', server.url, old.issuer)!.client.id, `client-1-of-${old.port}`);
    assert.ok(server.log.slice(-1).every((heard) => tokenIn(heard) === `access-1-of-${next.port}`));
  }
});

test('a token belongs to a name, an address and an issuer: with any of them changed it is not sent', async () => {
  const as = await authorizationServer();
  const server = await protectedServer({ as });
  const first = program({ visitor: browser().visitor });
  await first.to(server.url);
  const twin = await protectedServer({ as }); // it would take the token
  const next = program({ home: first.home });
  assert.equal((await rejection(next.to(twin.url))).kind, 'auth');
  assert.equal((await rejection(next.to(server.url, { issuer: 'https://other.example' }))).kind, 'auth');
  assert.equal((await rejection(next.to(server.url, { clientId: 'somebody else' }))).kind, 'auth');
  const { connection } = await connect({ type: 'http', url: server.url }, { transports: program({ home: first.home }).logins.transports });
  await connection.initialize(); // this one has it
  assert.ok(twin.log.every(({ headers }) => headers.authorization === undefined));
});

// ─── The manager ──────────────────────────────────────────────────────────────────────────────────────────────

const good = { command: process.execPath, args: [goodServer] };

test('a server that wants a login is needs-auth, and says what to do; the others go on; after a login elsewhere it is connected', async () => {
  const as = await authorizationServer();
  const server = await protectedServer({ as });
  const { home, logins } = program();
  const states: unknown[] = [];
  const { manager, state } = prepare({ demo: { type: 'http', url: server.url }, calc: good, dead: habit('dies-at-once') }, undefined, {
    transports: logins.transports,
    onState: (name, told) => states.push([name, told]),
  });
  await manager.loadAndConnect();
  assert.deepEqual([state('demo').state, state('calc').state, state('dead').state], ['needs-auth', 'connected', 'failed']);
  assert.match(state('demo').reason!, /MCP server "demo" \(.*\) wants a login\. To log in: \/mcp login demo/);
  assert.equal((await manager.callTool('mcp__calc__add', { a: 2, b: 40 })).text, '42');
  assert.deepEqual([as.log.length, logins.isWanted('demo'), logins.isWanted('calc')], [0, true, false]);
  await program({ home, visitor: browser().visitor }).to(server.url);
  await manager.reconnect('demo');
  assert.equal(state('demo').state, 'connected');
  assert.equal((await manager.callTool('mcp__demo__echo', { a: 1 })).text, '{"a":1}');
  assert.deepEqual(states.filter(([name]: any) => name === 'demo').map(([, told]: any) => told), ['needs-auth', 'connecting', 'connected']);
});

test('a login that ends in the middle is needs-auth, and the call that works again is connected', async () => {
  const as = await authorizationServer(); // no refresh tokens
  const server = await protectedServer({ as });
  const { home, to } = program({ visitor: browser().visitor });
  await to(server.url);
  const states: unknown[] = [];
  const { manager, state } = prepare({ demo: { type: 'http', url: server.url } }, undefined, {
    transports: program({ home }).logins.transports,
    onState: (_, told) => states.push(told),
  });
  await manager.loadAndConnect();
  assert.equal(state('demo').state, 'connected');
  as.live.clear();
  const error = await rejection(manager.callTool('mcp__demo__echo'));
  assert.deepEqual([error.kind, state('demo').state, state('demo').reason], ['auth', 'needs-auth', error.message]);
  await program({ home, visitor: browser().visitor }).to(server.url);
  assert.equal((await manager.callTool('mcp__demo__echo', { a: 1 })).text, '{"a":1}');
  await until(() => state('demo').state === 'connected');
  assert.deepEqual(states, ['connected', 'needs-auth', 'connected']);
});

test('a call that is forbidden says nothing about the login: the server stays connected', async () => {
  const as = await authorizationServer();
  let header = 'Bearer error="insufficient_scope", scope="write"';
  const server = await protectedServer({
    as, gate: ({ json }) => (json.method === 'tools/call' ? said({ no: 'way' }, 403, { 'www-authenticate': header }) : undefined),
  });
  const { manager, state } = prepare({ demo: { type: 'http', url: server.url } }, undefined, {
    transports: program().logins.transports,
  });
  await manager.loadAndConnect();
  for (header of [header, 'Bearer']) {
    const { kind, status } = await rejection(manager.callTool('mcp__demo__echo'));
    await new Promise(setImmediate);
    assert.deepEqual([kind, status, state('demo').state], ['auth', 403, 'connected']);
  }
});

/** Somebody at a terminal without a browser, who pastes; what `first` says, before the right address. */
function pasting(...first: string[]) {
  const { PATH } = process.env;
  process.env.PATH = folder(); // where no browser is
  later(() => (process.env.PATH = PATH));
  const shown: string[][] = [];
  const visits: URL[] = [];
  const paste = async ({ lines }: { lines: string[] }) => {
    shown.push(lines);
    if (shown.length === 1) visits.push(new URL(lines[1]!.trim()));
    const { headers } = await fetch(visits[0]!, { redirect: 'manual' });
    return first.shift() ?? headers.get('location')!;
  };
  return { user: new ScriptedPerson(Array(first.length + 1).fill(paste)), shown, visits };
}
const never = new AbortController().signal;

test('at a terminal: the address is shown, and its answer can be pasted', async () => {
  const { issuer, log } = await strictIssuer();
  const url = await strictCalculator(issuer, '--era', 'legacy');
  const { user, shown } = pasting('http://127.0.0.1/callback?code=x&state=wrong');
  const { logins, row, to } = program();
  await rejection(to(url));
  assert.equal(logins.isWanted('demo'), true);
  assert.deepEqual(await log(), [], 'nobody is asked before somebody wants to log in');
  await logins.logIn('demo', user, never);
  assert.equal(shown.length, 2);
  assert.match(shown[1]![0]!, /^That is not it/);
  const { connection } = await to(url);
  assert.equal(await call(connection, 'add', { a: 2, b: 40 }), '42');
  assert.deepEqual([logins.isWanted('demo'), row(url)!.issuer], [false, issuer]);
  assert.deepEqual((await log('/token')).map(({ status }) => status), [200]);
});

test('a login after a refusal for want of rights asks for what was refused, and the connection goes on with that', async () => {
  const { server } = await stepping(() => 'write');
  const first = program({ visitor: browser().visitor });
  await first.to(server.url);
  const { logins, to } = program({ home: first.home });
  const { connection } = await to(server.url);
  await rejection(call(connection, 'echo'));
  const { user, visits } = pasting();
  await logins.logIn('demo', user, never);
  assert.equal(visits[0]!.searchParams.get('scope'), 'basic write');
  assert.equal(await call(connection, 'echo'), '{}');
});

// ─── What a server said a moment ago ──────────────────────────────────────────────────────────────────────────

test('the next program does not ask again what the server said a moment ago; after 15 minutes it does; a login ends that', async () => {
  const as = await authorizationServer();
  const server = await protectedServer({ as, challenge: 'Bearer scope="special"' });
  const first = program();
  const firstError = await rejection(first.to(server.url));
  assert.match(firstError.message, /wants a login\. To log in/);
  const seen = server.log.length;
  const second = program({ home: first.home });
  const error = await rejection(second.to(server.url));
  assert.deepEqual([error.kind, error.status, second.logins.isWanted('demo')], ['auth', 401, true]);
  assert.match(error.message, /said at .* that it wants a login\. To log in: \/mcp login demo/);
  assert.equal(server.log.length, seen, 'nothing was asked');
  await rejection(second.to(server.url));
  assert.equal(server.log.length, seen + 1, 'whoever tries again in the same program is heard');
  for (const [age, asks] of [[14 * 60_000, 0], [15 * 60_000 + 1000, 1], [-60_000, 1]] as const) { // also if it is from the future
    const store = JSON.parse(readFileSync(storeIn(first.home), 'utf8'));
    store.verdicts[0].at = Date.now() - age;
    writeFileSync(storeIn(first.home), JSON.stringify(store));
    const before = server.log.length;
    await rejection(program({ home: first.home }).to(server.url));
    assert.equal(server.log.length - before, asks, `${age}`);
  }
  const third = program({ home: first.home });
  await rejection(third.to(server.url));
  const { user, visits } = pasting();
  await third.logins.logIn('demo', user, never); // what it wants was written down, too
  assert.equal(visits[0]!.searchParams.get('scope'), 'special');
  assert.deepEqual(JSON.parse(readFileSync(storeIn(first.home), 'utf8')).verdicts, []);
  await program({ home: first.home }).to(server.url);
});

test('whoever has a browser at hand does not mind a verdict', async () => {
  const as = await authorizationServer();
  const server = await protectedServer({ as });
  const { home, to } = program();
  await rejection(to(server.url));
  const { visitor, visits } = browser();
  await program({ home, visitor }).to(server.url);
  assert.equal(visits.length, 1);
});

test('a verdict is about one server at one address', async () => {
  const as = await authorizationServer();
  const [server, other] = [await protectedServer({ as }), await protectedServer({ as })];
  const { home, to } = program();
  await rejection(to(server.url));
  const before = other.log.length;
  await rejection(program({ home }).to(other.url));
  assert.equal(other.log.length, before + 1);
  assert.equal(JSON.parse(readFileSync(storeIn(home), 'utf8')).verdicts.length, 2);
});

test('a refusal for want of rights is remembered too, but the next program may do what needs none', async () => {
  const { server } = await stepping(() => 'write');
  const first = program({ visitor: browser().visitor });
  await first.to(server.url);
  const next = program({ home: first.home });
  const { connection } = await next.to(server.url);
  const error = await rejection(call(connection, 'echo'));
  assert.match(error.message, /wants a login with more rights \(write\)\. To log in/);
  assert.deepEqual([error.status, next.logins.isWanted('demo'), next.store.verdict('demo', server.url)?.status], [403, true, 403]);
  await connection.request('ping');
  const third = program({ home: first.home });
  await third.to(server.url);
  assert.equal(third.logins.isWanted('demo'), true);
  const lost = program({ home: folder() }); // with that verdict, and no token
  lost.store.judge('demo', server.url, challengeIn(403, 'Bearer error="insufficient_scope", scope="write"')!);
  const seen = server.log.length;
  assert.match((await rejection(lost.to(server.url))).message, /\) wants a login\. To log in/);
  assert.ok(server.log.length > seen, 'it is asked');
  const { user, visits } = pasting();
  await third.logins.logIn('demo', user, never);
  assert.equal(visits[0]!.searchParams.get('scope'), 'basic write');
  assert.deepEqual([third.logins.isWanted('demo'), third.store.verdict('demo', server.url)], [false, undefined]);
});

test('a login for more rights in another program is noticed by the one that was refused', async () => {
  const { server } = await stepping(() => 'write');
  const first = program({ visitor: browser().visitor });
  await first.to(server.url);
  const { connection } = await program({ home: first.home }).to(server.url);
  await rejection(call(connection, 'echo'));
  const elsewhere = await program({ home: first.home, visitor: browser().visitor }).to(server.url);
  assert.equal(await call(elsewhere.connection, 'echo'), '{}');
  assert.equal(await call(connection, 'echo'), '{}');
});

// ─── Logging out ──────────────────────────────────────────────────────────────────────────────────────────────

test('logging out forgets, and tells the authorization server, as whoever we are there', async () => {
  const table = [['none', undefined], ['client_secret_basic', 's:1'], ['client_secret_post', 's:2']] as const;
  for (const [offered, secret] of table)
    for (const refresh_token of ['r', undefined]) {
      const metadata = { token_endpoint_auth_methods_supported: [offered] };
      const as = await authorizationServer({ metadata, token: { refresh_token } });
      as.ways['POST /register'] = () => said({ client_id: 'me', ...(secret && { client_secret: secret }) }, 201);
      const server = await protectedServer({ as });
      const { to, logins, row } = program({ visitor: browser().visitor });
      await to(server.url);
      assert.equal(await logins.logOut('demo'), true);
      assert.equal(row(server.url), undefined);
      const [{ form, headers }] = as.asked('POST /revoke') as [Heard];
      assert.equal(form.token, refresh_token ?? `access-1-of-${as.port}`);
      const shown = headers.authorization ? decoded(headers.authorization) : [form.client_id, form.client_secret];
      assert.deepEqual(shown, ['me', secret], `${offered}`);
      assert.equal(await logins.logOut('demo'), false);
      assert.equal(as.asked('/revoke').length, 1);
    }
});

test('logging out works although the authorization server is away, has no such endpoint, or says no', async () => {
  for (const ruin of [
    async (as: AuthorizationServer) => as.stop(),
    async (as: AuthorizationServer) => void (as.ways['POST /revoke'] = () => said('', 500)),
    async (as: AuthorizationServer) => void (as.ways['POST /revoke'] = ({ response }) => void response.destroy()),
  ]) {
    const as = await authorizationServer();
    const server = await protectedServer({ as });
    const { to, logins, row } = program({ visitor: browser().visitor });
    await to(server.url);
    await ruin(as);
    assert.deepEqual([await logins.logOut('demo'), row(server.url)], [true, undefined]);
  }
  const silent = await authorizationServer({ metadata: { revocation_endpoint: undefined } });
  const server = await protectedServer({ as: silent });
  const { to, logins } = program({ visitor: browser().visitor });
  await to(server.url);
  assert.equal(await logins.logOut('demo'), true);
  assert.equal(silent.asked('/revoke').length, 0);
});

test('a secret of the configuration is shown where it is known; a program that does not know it tells nobody', async () => {
  for (const isKnown of [true, false]) {
    const as = await authorizationServer({ token: { refresh_token: 'r' } });
    const server = await protectedServer({ as });
    const first = program({ visitor: browser().visitor });
    await first.to(server.url, { clientId: 'me', clientSecret: 's:3', issuer: as.issuer });
    const { logins } = isKnown ? first : program({ home: first.home });
    assert.equal(await logins.logOut('demo'), true);
    const shown = as.asked('/revoke').map(({ headers }) => decoded(headers.authorization));
    assert.deepEqual([first.row(server.url), shown], [undefined, isKnown ? [['me', 's:3']] : []]);
  }
});

test('after a logout the connection that is still open sends no token, and wants a login; so does the next program', async () => {
  const as = await authorizationServer({ token: { refresh_token: 'r' } });
  const server = await protectedServer({ as });
  const first = program({ visitor: browser().visitor });
  await first.to(server.url);
  const next = program({ home: first.home });
  const { connection } = await next.to(server.url);
  await next.logins.logOut('demo');
  assert.equal((await rejection(call(connection, 'echo'))).kind, 'auth');
  assert.equal(server.log.at(-1)!.headers.authorization, undefined);
  assert.deepEqual([refreshes(as), as.live.size], [0, 1], 'the server would still take it');
  assert.equal((await rejection(program({ home: first.home }).to(server.url))).kind, 'auth');
});

test('a logout in another program is noticed when the token is refused, and nothing dead is tried', async () => {
  const { issuer, log } = await strictIssuer();
  const url = await strictCalculator(issuer, '--era', 'legacy');
  const first = program({ visitor: browser().visitor });
  await first.to(url);
  const next = program({ home: first.home });
  const { connection } = await next.to(url);
  assert.equal(await call(connection, 'add', { a: 1, b: 1 }), '2');
  await program({ home: first.home }).logins.logOut('demo');
  const error = await rejection(call(connection, 'add', { a: 1, b: 1 }));
  assert.match(error.message, /wants a login/);
  assert.deepEqual((await log('/token')).map(({ form }) => form.grant_type), ['authorization_code']);
  assert.deepEqual((await log('/revoke')).map(({ status }) => status), [200]);
});

test('logging out of one server leaves the others alone', async () => {
  const as = await authorizationServer();
  const server = await protectedServer({ as });
  const { logins, store, to } = program({ visitor: browser().visitor });
  await to(server.url);
  const row = store.find('demo', server.url)!;
  store.keep({ ...row, server: 'other' });
  await logins.logOut('other');
  assert.ok(store.find('demo', server.url));
  assert.equal(await logins.logOut('nobody'), false);
});

// ─── What is kept ─────────────────────────────────────────────────────────────────────────────────────────────

test('a server that is started again keeps its login; a second program needs none; neither asks the authorization server', async () => {
  const as = await authorizationServer();
  const server = await protectedServer({ as });
  const first = program({ visitor: browser().visitor });
  const { connection } = await first.to(server.url);
  await connection.close();
  const asked = as.log.length;
  await first.to(server.url);
  const before = server.log.length;
  await program({ home: first.home }).to(server.url);
  assert.equal(as.log.length, asked);
  assert.ok(server.log.slice(before).every((heard) => heard.path !== '/mcp' || tokenIn(heard)), 'with the first request already');
});

test('the strict pair: expiry on the server, rotation, fifty at once, and the grant survives', async () => {
  const { issuer, log, tell } = await strictIssuer();
  const url = await strictCalculator(issuer, '--era', 'legacy', '--sessions');
  const first = program({ visitor: browser().visitor });
  await first.to(url);
  const { connection } = await program({ home: first.home }).to(url);
  for (let round = 0; round < 3; round++) {
    await tell('expire');
    const texts = await Promise.all(FIFTY.map((n) => call(connection, 'add', { a: n, b: 1 })));
    assert.deepEqual(texts, FIFTY.map((n) => `${n + 1}`));
  }
  const requests = await log('/token');
  assert.deepEqual(requests.map(({ form, status }) => [form.grant_type, status]), [
    ['authorization_code', 200], ['refresh_token', 200], ['refresh_token', 200], ['refresh_token', 200],
  ]);
  await tell('forget');
  await tell('expire');
  assert.match((await rejection(call(connection, 'add', { a: 1, b: 1 }))).message, /refused us: "?invalid_client|wants a login/);
});

test('a refresh token is asked for together with the consent that OpenID providers want; scopes are registered if all are listed', async () => {
  for (const [listed, registered, prompt] of [
    [['a', 'offline_access'], 'a offline_access', 'consent'],
    [['offline_access'], undefined, 'consent'],
    [['a'], 'a', null],
  ] as const) {
    const as = await authorizationServer({ metadata: { scopes_supported: listed } });
    const server = await protectedServer({ as, challenge: 'Bearer scope="a"' });
    const { visitor, visits } = browser();
    await program({ visitor }).to(server.url);
    const { scope } = as.asked('/register')[0]!.json;
    assert.deepEqual([scope, visits[0]!.searchParams.get('prompt')], [registered, prompt]);
  }
});

test('a login by an old registration that its user stops may have met a page that knows us no more: the next registers', async () => {
  const as = await authorizationServer(); // no refresh tokens
  const server = await protectedServer({ as });
  const { home, to } = program({ visitor: browser().visitor });
  await to(server.url);
  as.live.clear();
  const take = () => Promise.reject(new McpError('aborted', 'the login was stopped'));
  const { kind } = await rejection(program({ home, visitor: browser({ take }).visitor }).to(server.url));
  assert.deepEqual([kind, as.asked('/register').length], ['aborted', 1]);
  await program({ home, visitor: browser().visitor }).to(server.url);
  assert.equal(as.asked('/register').length, 2);
});
