// Chapter 21: who we are at an authorization server, the token endpoint, and scopes. The other side
// follows a script, or is the strict pair of fixtures/.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterEach, test } from 'node:test';
import { Callback } from '../chapters/21-authorization/browser.ts';
import type { OpenUserAgent } from '../chapters/21-authorization/oauth.ts';
import { TokenStore } from '../chapters/21-authorization/tokens.ts';
import type { Json } from '../mcp.ts';
import { bytesOf, decoded, grantsOf, isIn, stepping, storeIn } from './help/logins.ts';
import {
  authorizationServer,
  browser,
  locked,
  program,
  protectedServer,
  refusing,
  said,
  scripted,
  strictCalculator,
  strictIssuer,
  type Heard,
  type Said,
  type Way,
} from './help/oauth-servers.ts';
import { call, cleanUp, folder, rejection } from './help/basics.ts';

afterEach(cleanUp);

// ─── Who we are ───────────────────────────────────────────────────────────────────────────────────────────────

test('we are whom the configuration names, else the document that it names, else somebody new: in this order', async () => {
  const document = 'https://client.example/me.json';
  const table: [oauth: Json, metadata: Json, id: RegExp, registrations: number][] = [
    [
      { clientId: 'known', clientMetadataUrl: document },
      { client_id_metadata_document_supported: true },
      /^known$/,
      0,
    ],
    [
      { clientMetadataUrl: document },
      { client_id_metadata_document_supported: true },
      /^https:\/\/client\.example\/me\.json$/,
      0,
    ],
    [{ clientMetadataUrl: document }, {}, /^client-1/, 1],
    [
      { clientMetadataUrl: document },
      { client_id_metadata_document_supported: 'true' },
      /^client-1/,
      1,
    ],
    [{}, { client_id_metadata_document_supported: true }, /^client-1/, 1],
    [{ clientId: 'known' }, { registration_endpoint: undefined }, /^known$/, 0],
  ];
  for (const [oauth, metadata, id, registrations] of table) {
    const as = await authorizationServer({ metadata });
    const server = await protectedServer({ as });
    const { openUserAgent, asked } = browser();
    await program({ openUserAgent }).to(server.url, oauth);
    assert.match(asked().client_id!, id);
    assert.equal(as.asked('/token')[0]!.form.client_id, asked().client_id);
    assert.equal(as.asked('/register').length, registrations);
  }
});

test('a client that introduces itself says everything that the standard wants, and no more', async () => {
  const as = await authorizationServer();
  const { url } = await protectedServer({ as });
  await program({ openUserAgent: browser().openUserAgent }).to(url);
  const [{ json, headers }] = as.asked('POST /register') as [Heard];
  assert.deepEqual(json, {
    client_name: 'mcp-by-hand',
    application_type: 'native',
    redirect_uris: ['http://127.0.0.1:33418/callback'],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  });
  assert.deepEqual(
    [headers['content-type'], headers.authorization],
    ['application/json', undefined],
  );
});

test('nobody to register at, and a refused registration, are errors that say what to do', async () => {
  const without = await authorizationServer({ metadata: { registration_endpoint: undefined } });
  const no: Way = () =>
    refusing('invalid_redirect_uri', 400, { error_description: 'not that one' });
  const refuses = await authorizationServer({ ways: { 'POST /register': no } });
  const odd = await authorizationServer({
    ways: { 'POST /register': () => said({ client_id: 7 }, 201) },
  });
  const picky = await authorizationServer({
    metadata: { token_endpoint_auth_methods_supported: ['tls_client_auth'] },
  });
  for (const [as, words] of [
    [without, /can be used by clients that/],
    [refuses, /does not register us: "?not that one/],
    [odd, /does not register us: "?HTTP 201/],
    [picky, /wants another proof than we have/],
  ] as const) {
    const server = await protectedServer({ as });
    const { openUserAgent, visits, words: told } = browser();
    const error = await rejection(program({ openUserAgent }).to(server.url));
    assert.match(error.message, words);
    const remedy =
      'by hand, and write into the server\'s entry: "oauth": ' +
      '{ "clientId": "…", "redirectUri": "http://127.0.0.1:33418/callback" }';
    assert.equal(error.message.includes(remedy), as !== picky);
    assert.deepEqual(
      [error.kind, visits.length, told],
      ['auth', 0, ['It did not work. The terminal says why.']],
    );
  }
});

/** The browser of somebody on this machine, with our real listener. */
function realBrowser() {
  const uris: string[] = [];
  const pages: Promise<string>[] = [];
  const openUserAgent: OpenUserAgent = async (wish, isFixed) => {
    const callback = await Callback.open(wish, isFixed);
    uris.push(callback.redirectUri);
    const go = (url: URL, state: string) => {
      callback.expect(state);
      pages.push(fetch(url).then((response) => response.text()));
      return callback.answer;
    };
    return { redirectUri: callback.redirectUri, go, close: (words) => callback.close(words) };
  };
  return { openUserAgent, uris, pages };
}

test('the next login is by the same registration, at the same port; if that is taken, by a new one', async () => {
  const as = await authorizationServer();
  const { url } = await protectedServer({ as });
  const { openUserAgent, uris, pages } = realBrowser();
  const home = folder();
  const visit = async () => {
    as.live.clear(); // there is no refresh token, so only a login helps
    const { connection } = await program({ home, openUserAgent }).to(url);
    await connection.close();
  };
  await visit();
  await visit();
  assert.deepEqual(
    [uris[1], as.asked('/register').length, as.asked('/authorize').length],
    [uris[0], 1, 2],
  );
  assert.match(await pages[1]!, /You are logged in/);
  const squatter = await scripted({}, undefined, Number(new URL(uris[0]!).port));
  await visit();
  assert.notEqual(uris[2], uris[0]);
  assert.deepEqual(
    as.asked('/register').map(({ json }) => json.redirect_uris),
    [[uris[0]], [uris[2]]],
  );
  assert.equal(as.asked('/authorize')[2]!.query.redirect_uri, uris[2]);
  assert.equal(squatter.log.length, 0);
  await visit(); // and the new one is the one we keep
  assert.deepEqual([uris[3], as.asked('/register').length], [uris[2], 2]);
});

test('a registration is kept even if the login fails after it, and a secret that has expired is not used again', async () => {
  const as = await authorizationServer({
    metadata: { token_endpoint_auth_methods_supported: ['client_secret_post'] },
  });
  let ends = Math.floor(Date.now() / 1000) + 3600;
  as.ways['POST /register'] = ({ json }) => {
    const n = as.asked('/register').length;
    return said(
      { ...json, client_id: `c${n}`, client_secret: `s${n}`, client_secret_expires_at: ends },
      201,
    );
  };
  as.ways['POST /token'] = () => refusing('server_error', 500);
  const { url } = await protectedServer({ as });
  const { openUserAgent } = browser();
  const home = folder();
  const error = await rejection(program({ home, openUserAgent }).to(url));
  assert.match(error.message, /refused us: "?server_error/);
  as.ways['POST /token'] = () => said(as.issue());
  await program({ home, openUserAgent }).to(url);
  assert.deepEqual(
    [as.asked('/register').length, as.asked('/token').map(({ form }) => form.client_secret)],
    [1, ['s1', 's1']],
  );
  as.live.clear();
  ends = Math.floor(Date.now() / 1000) - 1;
  const store = new TokenStore({ home });
  const row = store.find('demo', url)!;
  store.keep({ ...row, client: { ...row.client, expiresAt: Date.now() - 1 } });
  await program({ home, openUserAgent }).to(url);
  assert.equal(as.asked('/register').length, 2);
  as.live.clear();
  await program({ home, openUserAgent }).to(url); // the second one had expired when we got it
  assert.deepEqual(
    [as.asked('/register').length, as.asked('/token').at(-1)!.form.client_secret],
    [3, 's3'],
  );
});

test('a fixed address is what the browser is asked for, by redirectUri or by callbackPort', async () => {
  for (const [oauth, expected] of [
    [{ redirectUri: 'http://localhost:8123/cb' }, 'http://localhost:8123/cb'],
    [{ callbackPort: 8124 }, 'http://127.0.0.1:8124/callback'],
  ] as const) {
    const as = await authorizationServer();
    const { url } = await protectedServer({ as });
    const { openUserAgent, wishes, asked } = browser();
    await program({ openUserAgent }).to(url, oauth);
    assert.deepEqual(wishes, [[expected, true]]);
    assert.deepEqual(
      [asked().redirect_uri, as.asked('/token')[0]!.form.redirect_uri],
      [expected, expected],
    );
    assert.deepEqual(as.asked('/register')[0]!.json.redirect_uris, [expected]);
  }
});

test('"oauth" with something odd in it is an error of the configuration, and nothing is asked', async () => {
  const as = await authorizationServer();
  const server = await protectedServer({ as });
  for (const oauth of [
    'x',
    [],
    { clientId: 7 },
    { clientSecret: {} },
    { issuer: true },
    { grant: 'password' },
    { grant: 'id-jag' },
    { grant: 'id-jag', idp: { issuer: 'x' } },
    { callbackPort: -1 },
    { callbackPort: 65_536 },
    { callbackPort: 1.5 },
    { redirectUri: 'https://elsewhere/cb' },
    { redirectUri: 'http://127.0.0.1.evil/cb' },
  ]) {
    const error = await rejection(
      program({ openUserAgent: browser().openUserAgent }).to(server.url, oauth as Json),
    );
    assert.equal(error.kind, 'config', JSON.stringify(oauth));
    assert.match(error.message, /"demo".*"oauth"/);
  }
  assert.equal(server.log.length, 0);
});

// ─── The token endpoint ───────────────────────────────────────────────────────────────────────────────────────

const ODD_ID = 'a:b%c+d e/é=&"';
const ODD_SECRET = 's:%2B+ \u{1F511}?&=';

test('a secret goes out in the way that the authorization server takes, encoded as in a form', async () => {
  const table: [offered: string[] | undefined, way: 'basic' | 'post'][] = [
    [undefined, 'basic'],
    [['client_secret_basic'], 'basic'],
    [['client_secret_post'], 'post'],
    [['none', 'client_secret_post'], 'post'],
    [['client_secret_post', 'client_secret_basic'], 'basic'],
    [[], 'basic'],
  ];
  for (const [offered, way] of table) {
    const as = await authorizationServer({
      metadata: { token_endpoint_auth_methods_supported: offered },
      token: { refresh_token: 'r' },
    });
    const { url } = await protectedServer({ as });
    const { home, to } = program({ openUserAgent: browser().openUserAgent });
    const { connection } = await to(url, {
      clientId: ODD_ID,
      clientSecret: ODD_SECRET,
      issuer: as.issuer,
    });
    as.live.clear();
    await connection.request('ping');
    assert.equal(as.asked('/token').length, 2);
    for (const { headers, form } of as.asked('/token')) {
      const shown =
        way === 'basic' ? decoded(headers.authorization) : [form.client_id, form.client_secret];
      assert.deepEqual(shown, [ODD_ID, ODD_SECRET], `${offered}`);
      const other =
        way === 'basic' ? [form.client_id, form.client_secret] : [headers.authorization];
      assert.deepEqual(other.filter(Boolean), [], `${offered}`);
    }
    if (way === 'basic') {
      const bytes = bytesOf(as.asked('/token')[0]!.headers.authorization);
      assert.equal(bytes, 'a%3Ab%25c%2Bd+e%2F%C3%A9%3D%26%22:s%3A%252B%2B+%F0%9F%94%91%3F%26%3D');
    }
    assert.ok(
      !readFileSync(storeIn(home), 'utf8').includes('%2B+'),
      'a secret of the configuration stays there',
    );
  }
});

test('a registered client is shown in the way that it was registered for, whatever it asked for', async () => {
  const [none, basic, post] = ['none', 'client_secret_basic', 'client_secret_post'];
  const table: [
    offered: string[],
    wanted: string,
    given: Json,
    shown: 'none' | 'basic' | 'post',
  ][] = [
    [[none], none, {}, 'none'],
    [[none], none, { token_endpoint_auth_method: none, client_secret: 'secret' }, 'none'],
    [[basic], basic, { client_secret: 'secret' }, 'basic'],
    [[post], post, { client_secret: 'secret' }, 'post'],
    [[post, none], none, { client_secret: 'secret' }, 'post'], // whoever gives one wants to see it
    [
      [post, basic, none],
      none,
      { client_secret: 'secret', token_endpoint_auth_method: post },
      'post',
    ],
    [
      ['private_key_jwt', post],
      post,
      { client_secret: 'secret', token_endpoint_auth_method: basic },
      'basic',
    ],
  ];
  for (const [offered, wanted, given, shown] of table) {
    const as = await authorizationServer({
      metadata: { token_endpoint_auth_methods_supported: offered },
    });
    as.ways['POST /register'] = () => said({ client_id: 'id', ...given }, 201);
    const { url } = await protectedServer({ as });
    await program({ openUserAgent: browser().openUserAgent }).to(url);
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
  const { openUserAgent, asked, visits, words } = browser();
  const { connection } = await program({ openUserAgent }).to(url);
  const { state, code_challenge, ...question } = asked();
  const client_id = `client-1-of-${as.port}`;
  const redirect_uri = 'http://127.0.0.1:33418/callback';
  assert.deepEqual(question, {
    tenant: '1',
    response_type: 'code',
    client_id,
    redirect_uri,
    code_challenge_method: 'S256',
    resource: url,
    scope: 'a b',
  });
  const [{ form, query, headers }] = as.asked('POST /token') as [Heard];
  const { code, code_verifier, ...rest } = form;
  assert.deepEqual(rest, {
    grant_type: 'authorization_code',
    redirect_uri,
    client_id,
    resource: url,
  });
  assert.deepEqual(query, { tenant: '1' });
  assert.match(headers['content-type']!, /^application\/x-www-form-urlencoded/);
  assert.match(code!, /^code-/);
  assert.equal(createHash('sha256').update(code_verifier!).digest('base64url'), code_challenge);
  for (const secret of [state, code_verifier]) assert.match(secret!, /^[\w-]{43}$/);
  assert.deepEqual(words, ['You are logged in. You can close this page.']);
  as.live.clear();
  await connection.request('ping');
  assert.deepEqual(as.asked('POST /token')[1]!.form, {
    grant_type: 'refresh_token',
    refresh_token: 'r',
    client_id,
    resource: url,
  });
  as.live.clear();
  as.ways['POST /token'] = ({ form }) =>
    form.grant_type === 'refresh_token' ? refusing('invalid_grant') : said(as.issue());
  await connection.request('ping');
  assert.equal(visits.length, 2);
  for (const name of ['state', 'code_challenge'])
    assert.notEqual(asked(0)[name], asked(1)[name], `${name} is good once`);
});

test('a token must be one: a text that fits into a header, of a kind that we know', async () => {
  for (const token of [
    ...[undefined, 7, '', 'a b', 'a\r\nX: y', 'é'].map((access_token) => ({ access_token })),
    { token_type: undefined },
    { token_type: 'mac' },
    { token_type: 7 },
    { error: 'invalid_grant' },
  ]) {
    const as = await authorizationServer({ token });
    const server = await protectedServer({ as });
    const { to, row } = program({ openUserAgent: browser().openUserAgent });
    const error = await rejection(to(server.url));
    assert.equal(error.kind, 'auth', JSON.stringify(token));
    assert.match(error.message, /gives no token we can use|refused us/);
    assert.equal(row(server.url)?.tokens, undefined);
    assert.ok(server.log.every(({ headers }) => headers.authorization === undefined));
  }
  for (const token_type of ['bearer', 'BEARER']) {
    const as = await authorizationServer({ token: { token_type } });
    const server = await protectedServer({ as });
    const { connection } = await program({ openUserAgent: browser().openUserAgent }).to(server.url);
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
  const { openUserAgent, words } = browser();
  const error = await rejection(program({ openUserAgent }).to(url));
  const { code, code_verifier } = as.asked('/token')[0]!.form;
  assert.match(error.message, /refused us: "?invalid_request: bad: \*\*\* \*\*\*/);
  assert.ok(!error.message.includes(code!) && !error.message.includes(code_verifier!));
  assert.deepEqual(words, ['It did not work. The terminal says why.']);
});

// ─── Scopes ───────────────────────────────────────────────────────────────────────────────────────────────────

test('the scope is what the configuration says, else the challenge, else the document, else nothing; offline_access if it is offered', async () => {
  type Case = [
    challenged: string,
    own: string | undefined,
    prm?: string[],
    supported?: string[],
    expected?: string,
  ];
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
    const { openUserAgent, asked } = browser();
    await program({ openUserAgent }).to(server.url, scopes ? { scopes } : undefined);
    assert.equal(asked().scope, expected, JSON.stringify([challenged, scopes, prm, supported]));
  }
});

test('a grant that is named, and is the usual one, changes nothing', async () => {
  const as = await authorizationServer({ metadata: { scopes_supported: ['offline_access'] } });
  const { url } = await protectedServer({ as, challenge: 'Bearer scope="a"' });
  const { openUserAgent, asked } = browser();
  await program({ openUserAgent }).to(url, { grant: 'authorization_code' });
  assert.equal(asked().scope, 'a offline_access');
});

test('a call that needs more asks for more, keeps what was asked for before, and is made again with the new token', async () => {
  const { as, server } = await stepping(() => 'write', {
    metadata: { scopes_supported: ['offline_access'] },
  });
  const { openUserAgent, asked, visits } = browser();
  const { to, row } = program({ openUserAgent });
  const { connection } = await to(server.url);
  await connection.request('ping');
  assert.equal(await call(connection, 'echo', { a: 1 }), '{"a":1}');
  assert.deepEqual(
    [asked(0).scope, asked(1).scope, visits.length],
    ['basic offline_access', 'basic offline_access write', 2],
  );
  assert.deepEqual([server.called('tools/call').length, as.asked('/register').length], [1, 1]);
  assert.deepEqual(row(server.url)!.tokens!.scope, ['basic', 'offline_access', 'write']);
});

test('the strict server agrees: a login, then a step-up', async () => {
  const { issuer, log } = await strictIssuer();
  const url = await strictCalculator(issuer, '--era', 'legacy', '--sessions');
  const { openUserAgent, asked } = browser();
  const { connection } = await program({ openUserAgent }).to(url);
  assert.equal(await call(connection, 'add', { a: 2, b: 40 }), '42');
  assert.equal(await call(connection, 'greet', { name: 'Ada' }), 'Hello, Ada!');
  assert.equal(await call(connection, 'add', { a: 2, b: 40 }), '42');
  assert.deepEqual(
    [asked(0).scope, asked(1).scope],
    ['calculator:read offline_access', 'calculator:read offline_access calculator:write'],
  );
  assert.deepEqual(
    (await log()).map(({ method, path, status }) => `${method} ${path} ${status}`),
    [
      'GET /.well-known/oauth-authorization-server 200',
      'POST /register 201',
      'GET /authorize 302',
      'POST /token 200',
      'GET /.well-known/oauth-authorization-server 200',
      'GET /authorize 302',
      'POST /token 200',
    ],
  );
});

test('a server that forbids for ever gets few logins: one more if it names the same scope, three more if it names others', async () => {
  const as = await authorizationServer();
  for (const [scope, logins] of [
    [() => 'write', 2],
    [(n: number) => `write-${n}`, 4],
  ] as const) {
    let n = 0;
    const forbids = await protectedServer({
      as,
      gate: (heard) => {
        if (!isIn(as, heard)) return locked('Bearer scope="basic"');
        return heard.json.method === 'tools/call'
          ? locked(`Bearer error="insufficient_scope", scope="${scope(++n)}"`, 403)
          : undefined;
      },
    });
    const { openUserAgent, visits } = browser();
    const { connection } = await program({ openUserAgent }).to(forbids.url);
    const error = await rejection(call(connection, 'echo'));
    assert.equal(error.kind, 'auth');
    assert.match(
      error.message,
      /although we have asked for everything it wants \(basic write\)|refuses us \(HTTP 403\)/,
    );
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
        return heard.json.method === 'tools/call'
          ? said('not on Sundays', 403, headers)
          : undefined;
      },
    });
    const { openUserAgent, visits } = browser();
    const { connection } = await program({ openUserAgent }).to(server.url);
    const error = await rejection(call(connection, 'echo'));
    assert.match(error.message, /refuses us \(HTTP 403\): "?not on Sundays/);
    assert.deepEqual(
      [error.kind, visits.length, grantsOf(as)],
      ['auth', 1, ['authorization_code']],
    );
  }
});
