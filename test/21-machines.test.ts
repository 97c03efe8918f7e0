// Chapter 21: logins without a browser: programs, platforms and companies; and tokens that are bound to a key.

import assert from 'node:assert/strict';
import {
  createHash,
  createPublicKey,
  generateKeyPairSync,
  verify,
  type KeyObject,
} from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import type { Json } from '../mcp.ts';
import {
  authorizationServer,
  browser,
  locked,
  program,
  protectedServer,
  refusing,
  said,
  strictCalculator,
  strictIssuer,
  tokenIn,
  type AuthorizationServer,
  type Heard,
  type Way,
} from './help/oauth-servers.ts';
import { call, cleanUp, folder, rejection } from './help/basics.ts';

afterEach(cleanUp);

const URN = 'urn:ietf:params:oauth';
const isIn = (as: AuthorizationServer, heard: Heard) => as.live.has(tokenIn(heard) ?? '');
const storeIn = (home: string) => readFileSync(join(home, '.mcp-by-hand', 'logins.json'), 'utf8');
const basic = (id: string, secret: string) =>
  `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`;
const base64 = (value: Json) => Buffer.from(JSON.stringify(value)).toString('base64url');
const part = (jwt: string, n: number) =>
  JSON.parse(Buffer.from(jwt.split('.')[n]!, 'base64url').toString());
const seconds = () => Math.floor(Date.now() / 1000);
/** A JWT that nobody has signed: for those who only read what it says. */
const jwt = (claims: Json) => `${base64({ alg: 'none' })}.${base64(claims)}.x`;

function isSigned(token: string, key: KeyObject): boolean {
  const [header, claims, signature] = token.split('.') as [string, string, string];
  return verify(
    'sha256',
    Buffer.from(`${header}.${claims}`),
    { key, dsaEncoding: 'ieee-p1363' },
    Buffer.from(signature, 'base64url'),
  );
}

function keyPair(type: 'ec' | 'rsa') {
  const { publicKey, privateKey } =
    type === 'ec'
      ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
      : generateKeyPairSync('rsa', { modulusLength: 2048 });
  const publicPem = publicKey.export({ type: 'spki', format: 'pem' }) as string;
  return {
    publicKey,
    publicPem,
    pem: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
  };
}

const file = (content: string) => {
  const path = join(folder(), 'file');
  writeFileSync(path, content);
  return path;
};

/** Nothing that needs a person was asked. */
const withoutPerson = (as: AuthorizationServer) =>
  assert.deepEqual([as.asked('/authorize').length, as.asked('/register').length], [0, 0]);

// ─── A program with a secret or a key of its own ──────────────────────────────────────────────────────────────

test('client credentials by a secret, in the way that the authorization server takes it; a dead token is replaced the same way', async () => {
  for (const way of ['client_secret_basic', 'client_secret_post']) {
    const metadata = {
      token_endpoint_auth_methods_supported: [way],
      scopes_supported: ['offline_access'],
    };
    const as = await authorizationServer({ metadata });
    const { url } = await protectedServer({ as, challenge: 'Bearer scope="a b"' });
    const oauth = {
      grant: 'client_credentials',
      clientId: 'robot',
      clientSecret: 's:3+cret',
      issuer: as.issuer,
    };
    const { to, row, home } = program();
    const { connection } = await to(url, oauth);
    as.live.clear();
    assert.equal(await call(connection, 'echo'), '{}');
    assert.equal(as.asked('/token').length, 2);
    for (const { form, headers } of as.asked('/token')) {
      const { client_id, client_secret, ...rest } = form;
      assert.deepEqual(rest, { grant_type: 'client_credentials', resource: url, scope: 'a b' }); // offline_access is for people
      const shown = [client_id, client_secret, headers.authorization];
      if (way === 'client_secret_post') assert.deepEqual(shown, ['robot', 's:3+cret', undefined]);
      else assert.deepEqual(shown, [undefined, undefined, basic('robot', 's%3A3%2Bcret')]);
    }
    withoutPerson(as);
    assert.equal(row(url)!.client.secret, undefined);
    assert.ok(!storeIn(home).includes('s:3+cret'));
  }
});

test('client credentials by a signed assertion: for the issuer only, short-lived, and a new one each time', async () => {
  for (const [type, alg] of [
    ['ec', 'ES256'],
    ['rsa', 'RS256'],
  ] as const)
    for (const isFile of [false, true]) {
      const { publicKey, pem } = keyPair(type);
      const as = await authorizationServer({ path: '/tenant' });
      const { url } = await protectedServer({ as });
      const key = isFile ? { privateKeyFile: file(pem) } : { privateKey: pem, keyId: 'k-1' };
      const { to, home } = program();
      const { connection } = await to(url, {
        grant: 'client_credentials',
        clientId: 'robot',
        issuer: as.issuer,
        ...key,
      });
      as.live.clear();
      await call(connection, 'echo');
      const asked = as.asked('/tenant/token');
      assert.equal(asked.length, 2);
      for (const { form, headers } of asked) {
        const { client_assertion, ...rest } = form;
        const client_assertion_type = `${URN}:client-assertion-type:jwt-bearer`;
        assert.deepEqual(rest, {
          grant_type: 'client_credentials',
          resource: url,
          client_id: 'robot',
          client_assertion_type,
        });
        assert.equal(headers.authorization, undefined);
        assert.ok(isSigned(client_assertion!, publicKey), alg);
        assert.deepEqual(part(client_assertion!, 0), {
          typ: 'JWT',
          ...(!isFile && { kid: 'k-1' }),
          alg,
        });
        const { iat, exp, jti, ...claims } = part(client_assertion!, 1);
        assert.deepEqual(claims, { iss: 'robot', sub: 'robot', aud: as.issuer });
        assert.ok(iat <= seconds() && exp > seconds() && exp <= iat + 300, `${iat} ${exp}`);
        assert.equal(typeof jti, 'string');
      }
      assert.notEqual(
        part(asked[0]!.form.client_assertion!, 1).jti,
        part(asked[1]!.form.client_assertion!, 1).jti,
      );
      assert.ok(!storeIn(home).includes('PRIVATE'));
    }
});

test('the strict server takes both, and gives a program no more than it asks for', async () => {
  const { publicPem, pem } = keyPair('ec');
  const { issuer, log, tell } = await strictIssuer('--signer', file(publicPem));
  const url = await strictCalculator(issuer, '--era', 'legacy');
  const ways = [
    { clientId: 'machine', clientSecret: 'machine-secret' },
    { clientId: 'signer', privateKey: pem },
  ];
  for (const way of ways) {
    const { connection } = await program().to(url, { grant: 'client_credentials', issuer, ...way });
    assert.equal(await call(connection, 'add', { a: 2, b: 40 }), '42');
    await tell('expire');
    assert.equal(await call(connection, 'add', { a: 2, b: 40 }), '42');
    assert.equal(
      await call(connection, 'greet', { name: 'Ada' }),
      'Hello, Ada!',
      'a step-up needs no person either',
    );
  }
  const scopes = ['calculator:read', 'calculator:read', 'calculator:read calculator:write'];
  assert.deepEqual(
    (await log('/token')).map(({ form, status }) => [form.grant_type, form.scope, status]),
    [...scopes, ...scopes].map((scope) => ['client_credentials', scope, 200]),
  );
  assert.deepEqual(await log('/authorize'), []);
});

test('a program that is refused says so at once: no other grant, no browser', async () => {
  const as = await authorizationServer({
    ways: { 'POST /token': () => refusing('invalid_client', 401, { error_description: 'who?' }) },
  });
  const { url } = await protectedServer({ as });
  const { openUserAgent, visits } = browser();
  const oauth = {
    grant: 'client_credentials',
    clientId: 'robot',
    clientSecret: 'secret-of-robot',
    issuer: as.issuer,
  };
  const error = await rejection(program({ openUserAgent }).to(url, oauth));
  assert.match(
    error.message,
    new RegExp(`the authorization server ${as.issuer} refused us: "?invalid_client: who\\?`),
  );
  assert.deepEqual([error.kind, as.asked('/token').length, visits.length], ['auth', 1, 0]);
  assert.ok(!error.message.includes('secret-of-robot'));
  withoutPerson(as);
});

test('a key that is not one, and a file that is not there, are clear errors that show nothing of it', async () => {
  const as = await authorizationServer();
  const { url } = await protectedServer({ as });
  for (const key of [{ privateKey: 'top secret' }, { privateKeyFile: join(folder(), 'nowhere') }]) {
    const error = await rejection(
      program().to(url, {
        grant: 'client_credentials',
        clientId: 'robot',
        issuer: as.issuer,
        ...key,
      }),
    );
    assert.equal(error.kind, 'auth');
    assert.match(error.message, /^MCP server "demo" \(.*\) cannot be logged into/);
    assert.ok(!error.message.includes('top secret'));
  }
  assert.equal(as.asked('/token').length, 0);
});

test('a machine minds no verdict, and leaves none', async () => {
  const as = await authorizationServer();
  const { url } = await protectedServer({ as });
  const { home, to, store } = program();
  await rejection(to(url)); // by a person it would want a login
  assert.ok(store.verdict('demo', url));
  await program({ home }).to(url, {
    grant: 'client_credentials',
    clientId: 'robot',
    clientSecret: 's',
    issuer: as.issuer,
  });
  assert.equal(as.asked('/token').length, 1);
  assert.equal(store.verdict('demo', url), undefined);
});

// ─── Whom a secret is for ─────────────────────────────────────────────────────────────────────────────────────

const SECRETS: Json[] = [
  { clientId: 'robot', clientSecret: 'sesame-sesame' },
  { clientId: 'robot', clientSecret: 'sesame-sesame', grant: 'client_credentials' },
  { clientId: 'robot', privateKey: 'sesame-sesame', grant: 'client_credentials' },
  { grant: 'workload', assertion: jwt({ name: 'sesame-sesame' }) },
  {
    clientId: 'robot',
    clientSecret: 'sesame-sesame',
    grant: 'id-jag',
    idp: { issuer: 'https://idp.example', clientId: 'c', idToken: 'sesame-sesame' },
  },
];
const NOT_SHOWN = /sesame|eyJ/;

test('a secret without an issuer beside it goes nowhere, and the error names the issuer to write down', async () => {
  for (const oauth of SECRETS) {
    const as = await authorizationServer();
    const { url } = await protectedServer({ as });
    const { openUserAgent, visits } = browser();
    const error = await rejection(program({ openUserAgent }).to(url, oauth));
    assert.equal(error.kind, 'auth');
    assert.match(
      error.message,
      new RegExp(
        `names "?${as.issuer}"? as its authorization server.*write beside it: "issuer": "${as.issuer}"`,
      ),
    );
    assert.doesNotMatch(error.message, NOT_SHOWN);
    assert.deepEqual([as.asked('/token').length, visits.length], [0, 0]);
    withoutPerson(as);
  }
});

test('an issuer that the server does not name gets nothing, and neither does the one that it names', async () => {
  for (const oauth of SECRETS) {
    const [ours, theirs] = [await authorizationServer(), await authorizationServer()];
    const { url } = await protectedServer({ as: theirs });
    const { openUserAgent, visits } = browser();
    const error = await rejection(
      program({ openUserAgent }).to(url, { ...oauth, issuer: ours.issuer }),
    );
    assert.match(
      error.message,
      new RegExp(
        `wants us to log in at .*${theirs.issuer}.*, but "oauth" in its configuration is for ${ours.issuer}`,
      ),
    );
    assert.deepEqual(
      [error.kind, ours.log.length, theirs.log.length, visits.length],
      ['auth', 0, 0, 0],
    );
    assert.doesNotMatch(error.message, NOT_SHOWN);
  }
});

test('the issuer of the configuration is taken from among those that the server names', async () => {
  const [first, ours] = [await authorizationServer(), await authorizationServer()];
  const { url } = await protectedServer({
    as: ours,
    prm: { authorization_servers: [first.issuer, ours.issuer] },
  });
  await program().to(url, {
    grant: 'client_credentials',
    clientId: 'robot',
    clientSecret: 's',
    issuer: ours.issuer,
  });
  assert.deepEqual([first.log.length, ours.asked('/token').length], [0, 1]);
});

// ─── A company ────────────────────────────────────────────────────────────────────────────────────────────────

/** What both token requests of a company's login say. */
function asksOfCompany(
  idp: AuthorizationServer,
  as: AuthorizationServer,
  url: string,
  idToken: string,
  scope?: string,
) {
  const [exchange] = idp
    .asked('POST /token')
    .filter(({ form }) => form.grant_type === `${URN}:grant-type:token-exchange`) as [Heard];
  const { client_id, ...rest } = exchange.form;
  assert.deepEqual(rest, {
    grant_type: `${URN}:grant-type:token-exchange`,
    requested_token_type: `${URN}:token-type:id-jag`,
    subject_token: idToken,
    subject_token_type: `${URN}:token-type:id_token`,
    audience: as.issuer,
    resource: url,
    ...(scope && { scope }),
  });
  assert.equal(client_id, 'at-idp');
  const [bearer] = as.asked('POST /token') as [Heard];
  assert.equal(bearer.headers.authorization, basic('at-as', 'as-secret'));
  const grant_type = `${URN}:grant-type:jwt-bearer`;
  assert.deepEqual(bearer.form, {
    grant_type,
    assertion: 'the-letter',
    resource: url,
    ...(scope && { scope }),
  });
}

/** An identity provider: it logs people in, and writes letters. */
let people = 0;
async function company(idToken = () => jwt({ sub: `ada-${++people}`, exp: seconds() + 300 })) {
  const idp = await authorizationServer({
    ways: {
      'POST /token': ({ form }) =>
        form.grant_type === 'authorization_code'
          ? said({
              access_token: 'for the company only',
              token_type: 'Bearer',
              id_token: idToken(),
            })
          : said({
              access_token: 'the-letter',
              issued_token_type: `${URN}:token-type:id-jag`,
              token_type: 'N_A',
              expires_in: 300,
            }),
    },
  });
  const at = (as: AuthorizationServer, more: Json = {}) => ({
    grant: 'id-jag',
    issuer: as.issuer,
    clientId: 'at-as',
    clientSecret: 'as-secret',
    idp: { issuer: idp.issuer, clientId: 'at-idp', ...more },
  });
  return { idp, at };
}

test("a company's word: a letter for an ID token, a token for the letter, and nobody is asked", async () => {
  const { idp, at } = await company();
  const as = await authorizationServer();
  const { url } = await protectedServer({ as, challenge: 'Bearer scope="a"' });
  const { home, to } = program();
  const { connection } = await to(url, at(as, { idToken: 'opaque-id-token' }));
  asksOfCompany(idp, as, url, 'opaque-id-token', 'a');
  as.live.clear();
  await call(connection, 'echo');
  assert.equal(as.asked('/token').length, 2);
  withoutPerson(as);
  withoutPerson(idp);
  assert.doesNotMatch(storeIn(home), /opaque-id-token|the-letter|as-secret/);
});

test('a company with a secret, and one whose token endpoint is in the configuration', async () => {
  const { idp, at } = await company();
  const as = await authorizationServer();
  const { url } = await protectedServer({ as });
  await program().to(
    url,
    at(as, {
      idToken: 'opaque-id-token',
      clientSecret: 'idp-secret',
      tokenEndpoint: `${idp.issuer}/token`,
    }),
  );
  assert.deepEqual(
    idp.log.map(({ verb, path }) => `${verb} ${path}`),
    ['POST /token'],
    'nothing else is asked there',
  );
  const [{ headers, form }] = idp.log as [Heard];
  assert.equal(headers.authorization, basic('at-idp', 'idp-secret'));
  assert.equal(form.client_secret, undefined);
});

test('one login at the company counts for two servers, and for the next program', async () => {
  const { idp, at } = await company();
  const [one, two] = [await authorizationServer(), await authorizationServer()];
  const servers = [await protectedServer({ as: one }), await protectedServer({ as: two })];
  const { openUserAgent, visits, asked, words } = browser();
  const { home, to } = program({ openUserAgent });
  await to(servers[0]!.url, at(one));
  await to(servers[1]!.url, at(two));
  assert.deepEqual(
    [visits.map(({ origin }) => origin), words],
    [[idp.issuer], ['You are logged in. You can close this page.']],
  );
  assert.deepEqual(
    [asked().client_id, asked().scope, asked().code_challenge_method],
    ['at-idp', 'openid', 'S256'],
  );
  const codes = idp.asked('/token').filter(({ form }) => form.grant_type === 'authorization_code');
  assert.deepEqual(
    codes.map(({ form }) => form.client_id),
    ['at-idp'],
  );
  assert.equal(idp.asked('/register').length, 0);
  for (const { headers, form } of idp.asked('/token')) {
    assert.equal(headers.authorization, undefined, 'our secret for another is not shown there');
    assert.ok(!JSON.stringify(form).includes('as-secret'));
  }
  asksOfCompany(idp, one, servers[0]!.url, idp.asked('/token')[1]!.form.subject_token!);
  withoutPerson(one);
  one.live.clear();
  await program({ home }).to(servers[0]!.url, at(one)); // it has no browser
  assert.equal(visits.length, 1);
});

test('without a login at the company, or if its time is over, a login is wanted; a browser gets a new one', async () => {
  let ends = seconds() - 1;
  const { idp, at } = await company(() => jwt({ sub: 'ada', exp: ends }));
  const as = await authorizationServer();
  const server = await protectedServer({ as });
  const error = await rejection(program().to(server.url, at(as)));
  assert.match(error.message, /wants a login\. To log in: \/mcp login demo/);
  assert.deepEqual([error.kind, idp.log.length, as.log.length], ['auth', 0, 0]);
  const { openUserAgent, visits } = browser();
  const { home, to } = program({ openUserAgent });
  await to(server.url, at(as)); // what it gets is of no use a second later
  as.live.clear();
  assert.equal((await rejection(program({ home }).to(server.url, at(as)))).kind, 'auth');
  ends = seconds() + 300;
  await program({ home, openUserAgent }).to(server.url, at(as));
  assert.equal(visits.length, 2);
  as.live.clear();
  await program({ home }).to(server.url, at(as));
  assert.equal(visits.length, 2);
  const expired = await rejection(
    program().to(server.url, at(as, { idToken: jwt({ exp: seconds() - 1 }) })),
  );
  assert.equal(expired.kind, 'auth');
});

test('a company that says no is not asked in another way, and a login there that has ended is not used for ever', async () => {
  const { idp, at } = await company();
  const as = await authorizationServer();
  const { url } = await protectedServer({ as });
  const { openUserAgent, visits } = browser();
  const { home, to } = program({ openUserAgent });
  await to(url, at(as));
  as.live.clear();
  const dead = idp.asked('/token').at(-1)!.form.subject_token;
  const usual = idp.ways['POST /token']!;
  idp.ways['POST /token'] = (heard) =>
    heard.form.subject_token === dead ? refusing('invalid_grant') : usual(heard);
  const error = await rejection(program({ home }).to(url, at(as)));
  assert.match(
    error.message,
    new RegExp(`the authorization server ${idp.issuer} refused us: "?invalid_grant|wants a login`),
  );
  assert.equal(as.asked('/token').length, 1, 'without a letter nobody else is asked');
  const asked = idp.asked('/token').length;
  assert.match((await rejection(program({ home }).to(url, at(as)))).message, /wants a login/);
  assert.equal(idp.asked('/token').length, asked, 'what was refused is not shown again');
  await program({ home, openUserAgent }).to(url, at(as));
  assert.equal(visits.length, 2, 'whoever logs in again is in');
});

test('logging out ends the login at the company, too', async () => {
  const { at } = await company();
  const as = await authorizationServer();
  const server = await protectedServer({ as });
  const { openUserAgent, visits } = browser();
  const { home, to, logins } = program({ openUserAgent });
  await to(server.url, at(as));
  assert.equal(await logins.logOut('demo'), true);
  assert.match(
    (await rejection(program({ home }).to(server.url, at(as)))).message,
    /wants a login/,
  );
  await program({ home, openUserAgent }).to(server.url, at(as));
  assert.equal(visits.length, 2);
});

test('the strict server as the company, too', async () => {
  const { issuer, log } = await strictIssuer();
  const url = await strictCalculator(issuer, '--era', 'legacy');
  const idp = { issuer, clientId: 'idp-client' };
  const oauth = {
    grant: 'id-jag',
    issuer,
    clientId: 'machine',
    clientSecret: 'machine-secret',
    idp,
  };
  const fixed = await program().to(url, { ...oauth, idp: { ...idp, idToken: 'id-token' } });
  assert.equal(await call(fixed.connection, 'add', { a: 2, b: 40 }), '42');
  const { openUserAgent, visits } = browser({ redirectUri: 'http://127.0.0.1/callback' });
  const { connection } = await program({ openUserAgent }).to(url, oauth);
  assert.equal(await call(connection, 'add', { a: 2, b: 40 }), '42');
  assert.equal(visits.length, 1);
  assert.deepEqual(
    (await log('/token')).map(({ form, status }) => [form.grant_type.split(':').at(-1), status]),
    [
      ['token-exchange', 200],
      ['jwt-bearer', 200],
      ['authorization_code', 200],
      ['token-exchange', 200],
      ['jwt-bearer', 200],
    ],
  );
});

// ─── A workload ───────────────────────────────────────────────────────────────────────────────────────────────

test("a platform's word is shown to the issuer, with who we are if we are somebody", async () => {
  const word = jwt({ sub: 'pod' });
  const table: [more: Json, shown: Json][] = [
    [{}, {}],
    [{ clientId: 'robot' }, { client_id: 'robot' }],
    [{ clientId: 'robot', clientSecret: 's' }, {}],
  ];
  for (const [more, shown] of table) {
    const as = await authorizationServer();
    const { url } = await protectedServer({ as, challenge: 'Bearer scope="a"' });
    await program().to(url, { grant: 'workload', assertion: word, issuer: as.issuer, ...more });
    const [{ form, headers }] = as.asked('/token') as [Heard];
    const asked = {
      grant_type: `${URN}:grant-type:jwt-bearer`,
      assertion: word,
      resource: url,
      scope: 'a',
    };
    assert.deepEqual(form, { ...asked, ...shown }, JSON.stringify(more));
    assert.equal(headers.authorization, more.clientSecret ? basic('robot', 's') : undefined);
    withoutPerson(as);
  }
});

test("the file with the platform's word is read each time, for it is replaced", async () => {
  const as = await authorizationServer();
  const { url } = await protectedServer({ as });
  const words = [jwt({ n: 1 }), jwt({ n: 2 })];
  const assertionFile = file(`${words[0]}\n`);
  const { connection } = await program().to(url, {
    grant: 'workload',
    assertionFile,
    clientId: 'robot',
    issuer: as.issuer,
  });
  writeFileSync(assertionFile, words[1]!);
  as.live.clear();
  await call(connection, 'echo');
  assert.deepEqual(
    as.asked('/token').map(({ form }) => form.assertion),
    words,
  );
});

test('a word that is refused is not shown again, and nothing else is tried', async () => {
  const no: Way = () => refusing('invalid_grant', 400, { error_description: 'wrong audience' });
  const as = await authorizationServer({ ways: { 'POST /token': no } });
  const { url } = await protectedServer({ as });
  const { openUserAgent, visits } = browser();
  const oauth = {
    grant: 'workload',
    assertion: jwt({ a: 1 }),
    clientId: 'robot',
    issuer: as.issuer,
  };
  const error = await rejection(program({ openUserAgent }).to(url, oauth));
  assert.match(error.message, /refused us: "?invalid_grant: wrong audience/);
  assert.deepEqual([error.kind, as.asked('/token').length, visits.length], ['auth', 1, 0]);
  withoutPerson(as);
});

test('what is no JWT is not sent away: it may be any file of yours', async () => {
  const as = await authorizationServer();
  const { url } = await protectedServer({ as });
  const oauth = { grant: 'workload', clientId: 'robot', issuer: as.issuer };
  for (const content of [
    '-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n',
    'root:x:0:0',
    'a.b',
    'a.b.c.d',
    'a.b.c\nd.e.f',
    '',
    '{"a":1}',
  ]) {
    const error = await rejection(program().to(url, { ...oauth, assertionFile: file(content) }));
    assert.match(
      error.message,
      /cannot be logged into: there is no JWT in "assertion" or "assertionFile"/,
    );
    assert.ok(
      !content || !error.message.includes(content.trim().slice(0, 8)) || content.length < 8,
    );
  }
  const missing = await rejection(
    program().to(url, { ...oauth, assertionFile: join(folder(), 'x') }),
  );
  assert.match(missing.message, /cannot be logged into: .*ENOENT/);
  assert.equal(as.asked('/token').length, 0);
});

// ─── Tokens bound to a key ────────────────────────────────────────────────────────────────────────────────────

const ath = (token: string) => createHash('sha256').update(token).digest('base64url');

/** Checks a proof, and gives its claims and its key. */
function proofIn({ headers, verb }: Heard, url: string) {
  const proof = headers.dpop as string;
  const { typ, alg, jwk } = part(proof, 0);
  assert.deepEqual(
    [typ, alg, Object.keys(jwk).sort()],
    ['dpop+jwt', 'ES256', ['crv', 'kty', 'x', 'y']],
  );
  assert.ok(isSigned(proof, createPublicKey({ key: jwk, format: 'jwk' })));
  const { htm, htu, iat, ...claims } = part(proof, 1);
  assert.deepEqual([htm, htu], [verb, url]);
  assert.ok(Math.abs(iat - seconds()) < 60);
  return { claims, key: JSON.stringify(jwk) };
}

test('a server that wants proofs gets a new one with every request, and so does the token endpoint; the key is kept', async () => {
  const as = await authorizationServer({ token: { token_type: 'DPoP', refresh_token: 'r' } });
  const gate: Way = (heard) =>
    isIn(as, heard) && heard.headers.dpop ? undefined : locked('DPoP algs="ES256"');
  const server = await protectedServer({ as, gate, session: 's' });
  const { openUserAgent } = browser();
  const first = program({ openUserAgent });
  const { connection } = await first.to(`${server.url}?tenant=1`);
  await call(connection, 'echo');
  as.live.clear();
  await call(connection, 'echo');
  await connection.close();
  const next = await program({ home: first.home }).to(`${server.url}?tenant=1`);
  await call(next.connection, 'echo');
  const keys = new Set<string>();
  const ids = new Set<unknown>();
  let proofs = 0;
  for (const heard of as.asked('/token')) {
    const {
      claims: { jti, ...rest },
      key,
    } = proofIn(heard, `${as.issuer}/token`);
    assert.deepEqual(rest, {});
    keys.add(key), ids.add(jti), proofs++;
  }
  const bound = server.log.filter(({ headers }) => headers.authorization);
  assert.ok(bound.some(({ verb }) => verb === 'DELETE'));
  for (const heard of bound) {
    assert.match(heard.headers.authorization!, /^DPoP access-/);
    const {
      claims: { jti, ...rest },
      key,
    } = proofIn(heard, server.url); // without the query
    assert.deepEqual(rest, { ath: ath(tokenIn(heard)!) });
    keys.add(key), ids.add(jti), proofs++;
  }
  assert.deepEqual([keys.size, ids.size], [1, proofs]);
  assert.equal(as.asked('/token').length, 2);
  const stored = JSON.parse(storeIn(first.home)).rows[0];
  assert.equal(stored.key.x, JSON.parse([...keys][0]!).x);
});

test('nonces: of the authorization server and of the server, each its own, also when they change in the middle', async () => {
  const as = await authorizationServer({ token: { token_type: 'DPoP' } });
  let [theirs, ours] = ['as-1', 'rs-1'];
  as.ways['POST /token'] = ({ headers }) =>
    part(headers.dpop as string, 1).nonce === theirs
      ? said(as.issue())
      : said({ error: 'use_dpop_nonce' }, 400, { 'dpop-nonce': theirs });
  const server = await protectedServer({
    as,
    gate: (heard) => {
      if (!isIn(as, heard)) return locked('DPoP algs="ES256"');
      if (part(heard.headers.dpop as string, 1).nonce === ours) return undefined;
      return said('', 401, {
        'www-authenticate': 'DPoP error="use_dpop_nonce"',
        'dpop-nonce': ours,
      });
    },
  });
  const { openUserAgent, visits } = browser();
  const { connection } = await program({ openUserAgent }).to(server.url);
  assert.equal(await call(connection, 'echo'), '{}');
  ours = 'rs-2';
  const before = server.log.length;
  assert.equal(await call(connection, 'echo'), '{}');
  assert.equal(server.log.length - before, 2);
  [theirs, ours] = ['as-2', 'rs-3'];
  as.live.clear();
  assert.equal(await call(connection, 'echo'), '{}');
  assert.deepEqual(
    [visits.length, as.asked('/token').length],
    [2, 4],
    'a new nonce is no reason for a new token',
  );
  const code = as.asked('/token').map(({ form }) => form.code);
  assert.deepEqual([code[0] === code[1], code[2] === code[3]], [true, true]);
});

test('twenty calls that meet a new nonce side by side are each made again, and nobody gets a new token', async () => {
  const as = await authorizationServer({ token: { token_type: 'DPoP', refresh_token: 'r' } });
  let nonce: string | undefined;
  const waiting: (() => void)[] = [];
  const server = await protectedServer({
    as,
    gate: async (heard) => {
      if (!isIn(as, heard)) return locked('DPoP');
      if (!nonce || part(heard.headers.dpop as string, 1).nonce === nonce) return undefined;
      await new Promise<void>((done) => {
        if (waiting.push(done) === 20) for (const go of waiting) go(); // all are refused before the first comes again
      });
      return said('', 401, {
        'www-authenticate': 'DPoP error="use_dpop_nonce"',
        'dpop-nonce': nonce,
      });
    },
  });
  const { openUserAgent, visits } = browser();
  const { connection } = await program({ openUserAgent }).to(server.url);
  nonce = 'n-1';
  await Promise.all(Array.from({ length: 20 }, (_, n) => call(connection, 'echo', { n })));
  assert.deepEqual([visits.length, as.asked('/token').length], [1, 1]);
});

test('a new nonce may come with every answer, and is used at once', async () => {
  const as = await authorizationServer({ token: { token_type: 'DPoP' } });
  let n = 0;
  const seen: unknown[] = [];
  const server = await protectedServer({
    as,
    gate: (heard) => {
      if (!isIn(as, heard)) return locked('DPoP');
      seen.push(part(heard.headers.dpop as string, 1).nonce);
      heard.response.setHeader('dpop-nonce', `n-${++n}`);
      return undefined;
    },
  });
  const { connection } = await program({ openUserAgent: browser().openUserAgent }).to(server.url);
  for (let k = 0; k < 3; k++) await connection.request('ping');
  assert.deepEqual(seen.slice(-3), [`n-${n - 3}`, `n-${n - 2}`, `n-${n - 1}`]);
});

test('a nonce that is never right ends, and not in a loop', async () => {
  const as = await authorizationServer({ token: { token_type: 'DPoP' } });
  let n = 0;
  const server = await protectedServer({
    as,
    gate: (heard) =>
      isIn(as, heard)
        ? said('', 401, {
            'www-authenticate': 'DPoP error="use_dpop_nonce"',
            'dpop-nonce': `n-${++n}`,
          })
        : locked('DPoP'),
  });
  const { openUserAgent, visits } = browser();
  assert.equal((await rejection(program({ openUserAgent }).to(server.url))).kind, 'auth');
  assert.ok(visits.length <= 2 && n <= 4, `${visits.length} ${n}`);
  const again: Way = () => said({ error: 'use_dpop_nonce' }, 400, { 'dpop-nonce': `a-${++n}` });
  const stuck = await authorizationServer({ ways: { 'POST /token': again } });
  const other = await protectedServer({ as: stuck, gate: () => locked('DPoP') });
  assert.match(
    (await rejection(program({ openUserAgent }).to(other.url))).message,
    /refused us: "?use_dpop_nonce/,
  );
  assert.equal(stuck.asked('/token').length, 2);
});

test('a server whose document says so wants bound tokens, whatever its challenge says', async () => {
  const as = await authorizationServer({ token: { token_type: 'DPoP' } });
  const server = await protectedServer({ as, prm: { dpop_bound_access_tokens_required: true } });
  const { connection } = await program({ openUserAgent: browser().openUserAgent }).to(server.url);
  await connection.request('ping');
  proofIn(as.asked('/token')[0]!, `${as.issuer}/token`);
  const last = server.called('ping').at(-1)!;
  assert.equal(proofIn(last, server.url).claims.ath, ath(tokenIn(last)!));
});

test('"dpop" in the configuration binds the token although nobody asks for it; a Bearer token is then used as one', async () => {
  const as = await authorizationServer();
  const server = await protectedServer({ as });
  const { connection } = await program({ openUserAgent: browser().openUserAgent }).to(server.url, {
    dpop: true,
  });
  await connection.request('ping');
  assert.equal(typeof as.asked('/token')[0]!.headers.dpop, 'string');
  const { headers } = server.called('ping').at(-1)!;
  assert.match(headers.authorization!, /^Bearer /);
});

test('a token that claims to be bound, although we have shown no key, is none that we can use', async () => {
  const as = await authorizationServer({ token: { token_type: 'DPoP' } });
  const server = await protectedServer({ as });
  const error = await rejection(program({ openUserAgent: browser().openUserAgent }).to(server.url));
  assert.deepEqual([error.kind], ['auth'], error.message);
  assert.match(error.message, /gives no token we can use/);
});

test('the strict pair wants proofs and nonces: a login, a refresh, a machine, and the next program', async () => {
  for (const nonces of [[], ['--nonces']]) {
    const { publicPem, pem } = keyPair('rsa');
    const { issuer, log, tell } = await strictIssuer(
      '--dpop',
      ...nonces,
      '--signer',
      file(publicPem),
    );
    const url = await strictCalculator(
      issuer,
      '--era',
      'legacy',
      '--sessions',
      '--dpop',
      ...nonces,
    );
    const first = program({ openUserAgent: browser().openUserAgent });
    const { connection } = await first.to(url);
    assert.equal(await call(connection, 'add', { a: 2, b: 40 }), '42');
    await tell('expire');
    const texts = await Promise.all(
      Array.from({ length: 20 }, (_, n) => call(connection, 'add', { a: n, b: 0 })),
    );
    assert.deepEqual(
      texts,
      Array.from({ length: 20 }, (_, n) => `${n}`),
    );
    const next = await program({ home: first.home }).to(url);
    assert.equal(await call(next.connection, 'add', { a: 1, b: 1 }), '2');
    await tell('expire');
    assert.equal(
      await call(next.connection, 'add', { a: 1, b: 1 }),
      '2',
      'the same key, in another program',
    );
    const machine = await program().to(url, {
      grant: 'client_credentials',
      clientId: 'signer',
      privateKey: pem,
      issuer,
    });
    assert.equal(await call(machine.connection, 'add', { a: 1, b: 1 }), '2');
    const granted = (await log('/token'))
      .filter(({ status }) => status === 200)
      .map(({ form }) => form.grant_type);
    assert.deepEqual(granted, [
      'authorization_code',
      'refresh_token',
      'refresh_token',
      'client_credentials',
    ]);
  }
});

test('an assertion is good once: a second attempt, for a nonce, has a new one', async () => {
  const { pem } = keyPair('ec');
  const as = await authorizationServer({ token: { token_type: 'DPoP' } });
  as.ways['POST /token'] = ({ headers }) =>
    part(headers.dpop as string, 1).nonce === 'n'
      ? said(as.issue())
      : said({ error: 'use_dpop_nonce' }, 400, { 'dpop-nonce': 'n' });
  const server = await protectedServer({
    as,
    gate: (heard) => (isIn(as, heard) ? undefined : locked('DPoP')),
  });
  await program().to(server.url, {
    grant: 'client_credentials',
    clientId: 'robot',
    privateKey: pem,
    issuer: as.issuer,
  });
  const ids = as.asked('/token').map(({ form }) => part(form.client_assertion!, 1).jti);
  assert.deepEqual([ids.length, new Set(ids).size], [2, 2]);
});

test('a program with a key signs its goodbye, too; if the key cannot be read, it is forgotten all the same', async () => {
  const as = await authorizationServer();
  const server = await protectedServer({ as });
  const { pem } = keyPair('ec');
  const path = file(pem);
  const oauth = {
    grant: 'client_credentials',
    clientId: 'robot',
    issuer: as.issuer,
    privateKeyFile: path,
  };
  for (const content of [pem, 'no key']) {
    const { to, logins, row } = program();
    writeFileSync(path, pem);
    await to(server.url, oauth);
    writeFileSync(path, content);
    assert.equal(await logins.logOut('demo'), true);
    assert.equal(row(server.url), undefined);
  }
  const told = as
    .asked('/revoke')
    .map(({ form }) => [(form.token?.length ?? 0) > 0, part(form.client_assertion!, 1).aud]);
  assert.deepEqual(told, [[true, as.issuer]]);
});
