// Authorization servers and protected servers that others wrote: the certified OpenID provider `oidc-provider`, both
// halves of the official SDK, and the one of better-auth. Each is installed into .cache/ when it is not there.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, afterEach, test } from 'node:test';
import { Callback } from '../../chapters/21-authorization/browser.ts';
import type { OpenUserAgent } from '../../chapters/21-authorization/oauth.ts';
import { McpError, type Json, type McpConnection } from '../../mcp.ts';
import { program, strictCalculator } from '../help/oauth-servers.ts';
import { cleanUp, rejection, until } from '../help/basics.ts';
import { installed, root } from '../help/installed.ts';

afterEach(cleanUp);

const OIDC = installed('oidc-provider@9.13.3');
const SDK = installed('@modelcontextprotocol/sdk@1.32.2');
const APRIL = installed('@modelcontextprotocol/sdk@1.10.2'); // of 2025
const OCTOBER = installed('@modelcontextprotocol/sdk@1.20.2');
const BETTER_AUTH = installed('better-auth@1.6.34');
const peer = (name: string) => join(root, 'test', 'real', 'peers', name);

const running = new Map<string, Promise<string>>();
const ends: (() => unknown)[] = [];
after(() => Promise.all(ends.map((end) => end())));

/** The address that a program prints when it listens. It runs once for all tests that want it with these flags. */
function started(file: string, ...flags: string[]): Promise<string> {
  const args = [file, ...flags];
  const key = args.join(' ');
  if (!running.has(key)) running.set(key, start(args));
  return running.get(key)!;
}

async function start(
  args: string[],
  env: NodeJS.ProcessEnv = {},
  isReady = /^http:\S+(?=\n)/m,
): Promise<string> {
  const child = spawn(process.execPath, args, { env: { ...process.env, ...env } });
  const gone = once(child, 'close');
  ends.push(() => (child.kill('SIGKILL'), gone));
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => (said += text));
  child.on('exit', () => (said += 'It is gone.'));
  await until(() => isReady.test(said) || said.includes('It is gone.'));
  assert.match(said, isReady);
  return isReady.exec(said)![0];
}

/** For tests: what a peer was asked, and what it is told to do. */
const told = async (address: string, what: string): Promise<any> =>
  (
    await fetch(new URL(`/test/${what}`, address), { method: what === 'log' ? 'GET' : 'POST' })
  ).json();

const add = async (connection: McpConnection, a: number, b: number) =>
  (await connection.callTool('add', { a, b })).text;

// ─── A browser, and who sits before it ────────────────────────────────────────────────────────────────────────

/** Follows redirects, keeps cookies, fills in forms and sends them; and it really comes to where we listen. Who `says`
 *  no follows the link to leave instead; `change` is what happens to the answer on its way, `ending` what comes of a
 *  page that leads nowhere. `visits` are the addresses to which it was sent, `ends` those at which it ended. */
function person({
  says = 'yes',
  change = (answer: URL) => answer,
  ending = (what: string) => new Error(what),
} = {}) {
  const cookies = new Map<string, string>();
  const [visits, ends, words]: [URL[], URL[], string[]] = [[], [], []];
  const load = async (url: URL, form?: Json) => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const body = form && new URLSearchParams(form as Record<string, string>);
    const [method, headers] = [form ? 'POST' : 'GET', { cookie, origin: url.origin }];
    const response = await fetch(url, { method, redirect: 'manual', headers, body });
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value) cookies.set(name, value);
      else cookies.delete(name);
    }
    return {
      location: response.headers.get('location'),
      status: response.status,
      text: await response.text(),
    };
  };
  const walk = async (start: URL, redirectUri: string): Promise<URL> => {
    let [url, form]: [URL, Json | undefined] = [start, undefined];
    for (let steps = 0; steps < 20; steps++) {
      const { location, status, text } = await load(url, form);
      if (location) [url, form] = [new URL(location, url), undefined];
      if (url.href.startsWith(redirectUri)) return url;
      if (location) continue;
      const [, action] = /<form [^>]*action="([^"]+)"/.exec(text) ?? [];
      const [, leave] = /<a href="([^"]+\/abort)"/.exec(text) ?? [];
      const isDead = !action || status !== 200;
      if (isDead)
        throw ending(`the browser ended at a page (HTTP ${status}): ${text.slice(0, 500)}`);
      const fields = [...text.matchAll(/<input [^>]*name="([^"]+)"(?:[^>]* value="([^"]*)")?/g)];
      const filled = Object.fromEntries(
        fields.map(([, name = '', value = 'anna-anna']) => [name, value]),
      );
      const next = says === 'no' ? leave! : action.replaceAll('&amp;', '&');
      [url, form] = [new URL(next, url), says === 'no' ? undefined : filled];
    }
    throw new Error('the browser goes round in circles');
  };
  const openUserAgent: OpenUserAgent = async (wish, isFixed) => {
    const callback = await Callback.open(wish, isFixed);
    const go = async (url: URL, state: string) => {
      visits.push(url);
      callback.expect(state);
      const end = change(await walk(url, callback.redirectUri));
      ends.push(end);
      void fetch(end).then(async (page) => words.push(await page.text())); // answered when we know how it went
      return callback.answer;
    };
    return { redirectUri: callback.redirectUri, go, close: (text) => callback.close(text) };
  };
  const asked = (n = 0) => Object.fromEntries(visits.at(n)?.searchParams ?? []);
  return { openUserAgent, visits, ends, words, asked };
}

// ─── oidc-provider ────────────────────────────────────────────────────────────────────────────────────────────

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const PEM = privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;
const JWK = JSON.stringify(publicKey.export({ format: 'jwk' }));

/** `log` is what it was asked from now on. */
const oidc = async (...flags: string[]) => {
  const issuer = await started(peer('oidc-provider.mjs'), OIDC, '--key', JWK, ...flags);
  const { length: before } = await told(issuer, 'log');
  const log = async (path: string): Promise<any[]> =>
    (await told(issuer, 'log')).slice(before).filter((each: any) => each.path.endsWith(path));
  const grants = async () =>
    (await log('/token')).map(({ params, status }) => `${params.grant_type} ${status}`);
  return { issuer, log, grants, tell: (what: 'expire' | 'forget') => told(issuer, what) };
};
const locked = (issuer: string, ...flags: string[]) =>
  started(peer('sdk-v1-login.mjs'), SDK, '--issuer', issuer, ...flags);

test('oidc-provider: the first call registers us, logs in and is answered', async () => {
  const { issuer, log, grants } = await oidc();
  const url = await locked(issuer);
  const { openUserAgent, visits, ends, words, asked } = person();
  const { to, row } = program({ openUserAgent });
  const { connection, warnings } = await to(url);
  assert.equal(await add(connection, 2, 40), '42');
  assert.deepEqual([visits.length, warnings], [1, []]);
  const [registered] = await log('/reg');
  assert.equal(registered.status, 201);
  const { code_challenge_method: method, resource, response_type: wanted } = asked();
  assert.deepEqual([method, resource, wanted], ['S256', url, 'code']);
  assert.equal(ends[0]!.searchParams.get('iss'), issuer);
  assert.deepEqual(await grants(), ['authorization_code 200']);
  assert.equal((await log('/token'))[0].params.resource, url);
  const { issuer: from, resource: target, client, tokens } = row(url)!;
  assert.deepEqual([from, target, client.method, tokens?.type], [issuer, url, 'none', 'Bearer']);
  await until(() => words.length > 0);
  assert.match(words[0]!, /You are logged in/);
});

test('oidc-provider: it gives a refresh token to whom the user agreed to that', async () => {
  const { issuer } = await oidc();
  const { openUserAgent, asked } = person();
  const url = await locked(issuer);
  const { to, row } = program({ openUserAgent });
  await to(url);
  assert.equal(asked().scope, 'calculator:read offline_access');
  assert.ok(
    row(url)!.tokens?.refresh,
    'a refresh token (OpenID Connect Core 11: it takes prompt=consent)',
  );
});

test('oidc-provider: an expired token is renewed once, however many calls and programs find that out', async () => {
  const { issuer, grants, log, tell } = await oidc();
  const url = await locked(issuer);
  const { openUserAgent, visits } = person();
  const first = program({ openUserAgent });
  const { connection } = await first.to(url);
  const { connection: another } = await program({ home: first.home, openUserAgent }).to(url);
  for (const round of [1, 2, 3]) {
    await tell('expire');
    const calls = Array.from({ length: 8 }, (_, n) => add(n % 2 ? connection : another, n, round));
    assert.deepEqual(
      await Promise.all(calls),
      Array.from({ length: 8 }, (_, n) => `${n + round}`),
    );
    assert.deepEqual(await grants(), [
      'authorization_code 200',
      ...Array(round).fill('refresh_token 200'),
    ]);
  }
  assert.equal(visits.length, 1);
  const used = (await log('/token')).slice(1).map(({ params }) => params.refresh_token);
  assert.equal(new Set(used).size, 3, 'each refresh token is used once');
  assert.ok((await log('/token')).every(({ params }) => params.resource === url));
});

test('oidc-provider: when it takes a refresh token back, or forgets us, we log in again', async () => {
  const { issuer, grants, log, tell } = await oidc();
  const url = await locked(issuer);
  const { openUserAgent, visits } = person();
  const { to, row, store } = program({ openUserAgent });
  const { connection } = await to(url);
  const old = row(url)!;
  await tell('expire');
  await add(connection, 1, 1);
  // A thief comes with the one that we have used: everything that came of this login ends.
  const stolen = {
    grant_type: 'refresh_token',
    refresh_token: old.tokens!.refresh!,
    client_id: old.client.id,
  };
  const body = new URLSearchParams(stolen);
  assert.equal((await fetch(`${issuer}/token`, { method: 'POST', body })).status, 400);
  assert.equal(await add(connection, 2, 2), '4');
  assert.equal(visits.length, 2);
  assert.equal(row(url)!.client.id, old.client.id, 'it still knows us');

  await tell('forget');
  await tell('expire');
  assert.equal(await add(connection, 3, 3), '6');
  assert.notEqual(row(url)!.client.id, old.client.id);
  assert.deepEqual([visits.length, (await log('/reg')).length], [3, 2]);
  const [denied, unknown] = ['refresh_token 400', 'refresh_token 401'];
  const login = 'authorization_code 200';
  assert.deepEqual(await grants(), [
    login,
    'refresh_token 200',
    denied,
    denied,
    login,
    unknown,
    login,
  ]);
  assert.equal(store.find('demo', url)!.tokens?.type, 'Bearer');
});

const endings = {
  'it comes to nothing': (what: string) => new Error(what),
  'the user sees an error in the browser, and stops it': () =>
    new McpError('aborted', 'the login was stopped'),
};
for (const [how, ending] of Object.entries(endings))
  test(`oidc-provider: forgotten between two logins, we register anew after one of which ${how}`, async () => {
    const { issuer, log, tell } = await oidc();
    const url = await locked(issuer);
    const { openUserAgent, visits } = person({ ending });
    const { to, row, store } = program({ openUserAgent });
    await to(url);
    store.keep({ ...row(url)!, tokens: undefined });
    await tell('forget');
    const next = program({ store, openUserAgent });
    assert.match(
      (await rejection(next.to(url))).message,
      /the browser ended at a page|the login was stopped/,
    );
    assert.equal(await add((await next.to(url)).connection, 4, 4), '8');
    assert.deepEqual([visits.length, (await log('/reg')).length], [3, 2]);
  });

test('oidc-provider: a call that takes more rights asks the user for them, and keeps the others', async () => {
  const { issuer, grants, tell } = await oidc();
  const url = await locked(issuer);
  const { openUserAgent, visits, asked } = person();
  const { connection } = await program({ openUserAgent }).to(url);
  const { text } = await connection.callTool('greet', { name: 'Anna' });
  assert.match(text, /^Hello, Anna! /);
  assert.deepEqual(
    [visits.length, asked(1).scope],
    [2, 'calculator:read offline_access calculator:write'],
  );
  await tell('expire');
  assert.match(
    (await connection.callTool('greet', { name: 'Otto' })).text,
    /^Hello, Otto! .*calculator:write/,
  );
  assert.equal(visits.length, 2);
  assert.deepEqual(await grants(), [
    'authorization_code 200',
    'authorization_code 200',
    'refresh_token 200',
  ]);
});

test('oidc-provider: a user who says no is asked no second time by the same call', async () => {
  const { issuer, grants } = await oidc();
  const url = await locked(issuer);
  const { openUserAgent, visits, ends } = person({ says: 'no' });
  const error = await rejection(program({ openUserAgent }).to(url));
  assert.equal(error.kind, 'auth');
  assert.match(error.message, /access_denied: End-User aborted interaction/);
  assert.deepEqual([visits.length, ends[0]!.searchParams.get('iss')], [1, issuer]);
  assert.deepEqual(await grants(), []);
});

const senders = {
  'does not say who sent it': undefined,
  'names somebody else': 'https://evil.example',
};
for (const [how, iss] of Object.entries(senders))
  test(`oidc-provider: an answer that ${how} is not used`, async () => {
    const { issuer, grants } = await oidc();
    const url = await locked(issuer);
    const change = (answer: URL) => {
      if (iss) answer.searchParams.set('iss', iss);
      else answer.searchParams.delete('iss');
      return answer;
    };
    const error = await rejection(
      program({ openUserAgent: person({ change }).openUserAgent }).to(url),
    );
    assert.match(error.message, /the answer does not come from there/);
    assert.deepEqual(await grants(), []);
  });

test('oidc-provider: it gives no token for a server that it does not know', async () => {
  const { issuer, grants } = await oidc();
  const url = await locked(issuer, '--at', '/other');
  const { openUserAgent, ends } = person();
  const error = await rejection(program({ openUserAgent }).to(url));
  assert.match(error.message, /invalid_target/);
  assert.equal(ends.length, 1);
  assert.deepEqual(await grants(), []);
});

test('oidc-provider: its issuer may have a path, and its tokens be signed', async () => {
  const { issuer } = await oidc('--path', '/tenant/a', '--jwt');
  assert.match(issuer, /\/tenant\/a$/);
  const { openUserAgent, ends } = person();
  const url = await locked(issuer, '--jwt');
  const { to, row } = program({ openUserAgent });
  assert.equal(await add((await to(url)).connection, 5, 5), '10');
  assert.equal(ends[0]!.searchParams.get('iss'), issuer);
  assert.equal(row(url)!.tokens!.access.split('.').length, 3);
});

test('oidc-provider: known to it by hand, with a secret that is kept nowhere else', async () => {
  const { issuer, log, grants, tell } = await oidc();
  const url = await locked(issuer);
  const { openUserAgent } = person();
  const { to, row } = program({ openUserAgent });
  const { connection } = await to(url, { issuer, clientId: 'desk', clientSecret: 'desk-secret' });
  await tell('expire');
  assert.equal(await add(connection, 6, 6), '12');
  assert.deepEqual(await grants(), ['authorization_code 200', 'refresh_token 200']);
  assert.deepEqual(
    [await log('/reg'), row(url)!.client],
    [[], { id: 'desk', method: 'client_secret_basic' }],
  );
  const wrong = program({ openUserAgent });
  const error = await rejection(
    wrong.to(url, { issuer, clientId: 'desk', clientSecret: 'guessed' }),
  );
  assert.match(error.message, /invalid_client/);
});

test('oidc-provider: a logout ends the login there, too', async () => {
  const { issuer, log } = await oidc();
  const url = await locked(issuer);
  const { openUserAgent } = person();
  const { to, row, logins } = program({ openUserAgent });
  await to(url);
  const { tokens } = row(url)!;
  const headers = { authorization: `Bearer ${tokens!.access}` };
  const tries = async () => (await fetch(url, { method: 'POST', headers })).status;
  assert.notEqual(await tries(), 401);
  assert.equal(await logins.logOut('demo'), true);
  const [revoked] = await log('/revocation');
  assert.deepEqual([revoked.status, revoked.params.token], [200, tokens!.refresh]);
  assert.equal(await tries(), 401);
});

// ─── oidc-provider, and machines ──────────────────────────────────────────────────────────────────────────────

const machines: Record<string, Json> = {
  'a secret in a header': { clientId: 'machine', clientSecret: 'machine secret: 100% + ~&=' },
  'a key': { clientId: 'signer', privateKey: PEM },
  'a key with a name': { clientId: 'signer', privateKey: PEM, keyId: 'first' },
};
for (const [how, who] of Object.entries(machines))
  test(`oidc-provider: a machine with ${how} gets a token, and the next one`, async () => {
    const { issuer, grants, log, tell } = await oidc();
    const url = await locked(issuer);
    const { to, row, logins } = program();
    const { connection } = await to(url, { issuer, grant: 'client_credentials', ...who });
    assert.equal(await add(connection, 7, 7), '14');
    await tell('expire');
    assert.deepEqual(await Promise.all([1, 2, 3].map((n) => add(connection, n, n))), [
      '2',
      '4',
      '6',
    ]);
    assert.match((await connection.callTool('greet', { name: 'R2' })).text, /Hello, R2!/);
    assert.deepEqual(await grants(), Array(3).fill('client_credentials 200'));
    const { params } = (await log('/token'))[0];
    assert.deepEqual([params.resource, params.scope], [url, 'calculator:read']);
    const { tokens } = row(url)!;
    await logins.logOut('demo');
    const revoked = (await log('/revocation')).map(({ status, params }) => [status, params.token]);
    assert.deepEqual(revoked, [[200, tokens!.access]]);
  });

test('oidc-provider: a machine with a wrong secret or key, or one that is for others, gets nothing', async () => {
  const { issuer, grants, log } = await oidc();
  const url = await locked(issuer);
  const other = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
    format: 'pem',
    type: 'pkcs8',
  });
  const grant = 'client_credentials';
  const guesses = [
    { clientId: 'machine', clientSecret: 'guessed' },
    { clientId: 'signer', privateKey: `${other}` },
  ];
  for (const who of guesses) {
    const error = await rejection(program().to(url, { issuer, grant, ...who }));
    assert.deepEqual(
      [error.kind, /invalid_client/.test(error.message)],
      ['auth', true],
      error.message,
    );
  }
  assert.deepEqual(await grants(), Array(2).fill('client_credentials 401'));
  const machine = { grant, clientId: 'machine', clientSecret: 'machine secret: 100% + ~&=' };
  assert.match((await rejection(program().to(url, machine))).message, /write beside it: "issuer"/);
  const elsewhere = await rejection(
    program().to(url, { ...machine, issuer: 'https://elsewhere.example' }),
  );
  assert.match(
    elsewhere.message,
    /but "oauth" in its configuration is for https:\/\/elsewhere.example/,
  );
  assert.equal((await log('/token')).length, 2);
});

// ─── oidc-provider, and tokens that are bound to a key ────────────────────────────────────────────────────────

for (const flags of [[], ['--nonces']])
  test(`oidc-provider: DPoP ${flags}`, async () => {
    const { issuer, grants, log, tell } = await oidc(...flags);
    const url = await strictCalculator(issuer, '--dpop', ...flags);
    const { openUserAgent, visits } = person();
    const { to, row, home, logins } = program({ openUserAgent });
    const { connection } = await to(url);
    assert.equal(await add(connection, 8, 8), '16');
    assert.equal(row(url)!.tokens?.type, 'DPoP');
    await tell('expire');
    assert.deepEqual(await Promise.all([1, 2, 3, 4].map((n) => add(connection, n, n))), [
      '2',
      '4',
      '6',
      '8',
    ]);
    const next = program({ home, openUserAgent });
    assert.equal(await add((await next.to(url)).connection, 9, 9), '18');
    const first = flags.length > 0 ? ['authorization_code 400'] : []; // without a nonce, which it then tells
    assert.deepEqual(await grants(), [...first, 'authorization_code 200', 'refresh_token 200']);
    assert.equal(visits.length, 1);
    const { tokens } = next.row(url)!;
    const stolen = {
      authorization: `Bearer ${tokens!.access}`,
      'content-type': 'application/json',
    };
    assert.equal((await fetch(url, { method: 'POST', headers: stolen, body: '{}' })).status, 401);
    await logins.logOut('demo');
    assert.equal((await log('/revocation'))[0].status, 200);
  });

// ─── The official SDK ─────────────────────────────────────────────────────────────────────────────────────────

const own = (...flags: string[]) => started(peer('sdk-v1-login.mjs'), SDK, ...flags);
const grantsOf = async (url: string) => (await told(url, 'log')).map(({ grant }: Json) => grant);

for (const [how, flags, method] of [
  ['', [], 'none'],
  ['with secrets', ['--secrets'], 'client_secret_post'],
] as const)
  test(`the SDK's own authorization server ${how}: login, one refresh for many, more rights, logout`, async () => {
    const url = await own(...flags);
    const { openUserAgent, visits, asked } = person();
    const { to, row, logins } = program({ openUserAgent });
    const { connection, warnings } = await to(url);
    assert.equal(await add(connection, 2, 40), '42');
    assert.deepEqual(
      [row(url)!.client.method, asked().resource, asked().scope],
      [method, url, 'calculator:read'],
    );
    for (const round of [1, 2]) {
      await told(url, 'expire');
      const sums = Promise.all([1, 2, 3, 4].map((n) => add(connection, n, round)));
      assert.deepEqual(
        await sums,
        [1, 2, 3, 4].map((n) => `${n + round}`),
      );
    }
    const { text } = await connection.callTool('greet', { name: 'Anna' });
    assert.equal(text, 'Hello, Anna! calculator:read,calculator:write');
    await logins.logOut('demo');
    const log = await told(url, 'log');
    const uses = [
      'authorization_code',
      'refresh_token',
      'refresh_token',
      'authorization_code',
      'none',
    ];
    assert.deepEqual(
      log.map(({ grant }: Json) => grant),
      uses,
    );
    assert.ok(log.pop().revokes);
    assert.ok(log.every(({ resource }: Json) => resource === url));
    assert.deepEqual([visits.length, warnings], [2, []]);
  });

test("the SDK's own authorization server: too busy to refresh a token, it may refresh it later", async () => {
  const url = await own('--limit', '1');
  const { openUserAgent, visits } = person();
  const { to, row } = program({ openUserAgent });
  const { connection } = await to(url);
  const { refresh } = row(url)!.tokens!;
  await told(url, 'expire');
  const error = await rejection(add(connection, 1, 1));
  assert.deepEqual(
    [error.kind, row(url)!.tokens?.refresh, visits.length],
    ['auth', refresh, 1],
    error.message,
  );
  assert.match(error.message, /too_many_requests/);
});

async function freePorts(count: number): Promise<string[]> {
  const probes = Array.from({ length: count }, () => createServer().listen(0));
  await Promise.all(probes.map((probe) => once(probe, 'listening')));
  const ports = probes.map((probe) => `${(probe.address() as AddressInfo).port}`);
  await Promise.all(probes.map((probe) => new Promise((done) => probe.close(done))));
  return ports;
}

for (const flags of [['--oauth'], ['--oauth', '--oauth-strict']])
  test(`the example server of the SDK with ${flags.at(-1)}`, async () => {
    const [MCP_PORT, MCP_AUTH_PORT] = await freePorts(2);
    const file = join(
      SDK,
      'node_modules/@modelcontextprotocol/sdk/dist/esm/examples/server/simpleStreamableHttp.js',
    );
    await start(
      [file, ...flags],
      { MCP_PORT, MCP_AUTH_PORT },
      /listening on port[^]*listening on port/,
    );
    const url = `http://localhost:${MCP_PORT}/mcp`;
    const { openUserAgent, visits, asked } = person();
    const { to, row } = program({ openUserAgent });
    const { connection, warnings } = await to(url);
    const { text } = await connection.callTool('greet', { name: 'Anna' });
    assert.equal(text, 'Hello, Anna!');
    assert.deepEqual(
      [visits.length, warnings, asked().resource, asked().scope],
      [1, [], url, 'mcp:tools'],
    );
    assert.equal(row(url)!.issuer, `http://localhost:${MCP_AUTH_PORT}/`);
  });

test('a server that the SDK built in April 2025, which names nobody, is its own authorization server', async () => {
  const url = await started(peer('sdk-v1-login.mjs'), APRIL, '--example', SDK, '--no-scopes');
  const { origin } = new URL(url);
  assert.equal((await fetch(`${origin}/.well-known/oauth-protected-resource`)).status, 404);
  const { openUserAgent, visits, asked } = person();
  const { to, row, logins } = program({ openUserAgent });
  const { connection } = await to(url);
  assert.deepEqual([connection.server!.protocolVersion, asked().scope], ['2024-11-05', undefined]);
  assert.equal(await add(connection, 2, 40), '42');
  const { issuer, client } = row(url)!;
  assert.deepEqual(
    [issuer, client.method, typeof client.secret],
    [`${origin}/`, 'client_secret_post', 'string'],
  );
  await told(url, 'expire');
  assert.deepEqual(await Promise.all([1, 2, 3].map((n) => add(connection, n, n))), ['2', '4', '6']);
  await logins.logOut('demo');
  assert.deepEqual(await grantsOf(url), ['authorization_code', 'refresh_token', 'none']);
  assert.equal(visits.length, 1);
});

test('a server that the SDK built in October 2025 gives clients the rights that they registered for', async () => {
  const url = await started(peer('sdk-v1-login.mjs'), OCTOBER);
  const { openUserAgent, visits, asked } = person();
  const { connection } = await program({ openUserAgent }).to(url);
  assert.equal(await add(connection, 2, 40), '42');
  assert.deepEqual([visits.length, asked().scope], [1, 'calculator:read calculator:write']);
});

// ─── better-auth ──────────────────────────────────────────────────────────────────────────────────────────────

test('better-auth: login with a password, one refresh for many calls', async () => {
  const url = await started(peer('better-auth.mjs'), BETTER_AUTH, SDK);
  const { openUserAgent, visits, asked } = person();
  const { to, row } = program({ openUserAgent });
  const { connection, warnings } = await to(url);
  assert.equal(await add(connection, 2, 40), '42');
  assert.equal((await connection.callTool('scopes')).text, 'openid profile email offline_access');
  const { origin } = new URL(url);
  assert.deepEqual(
    [row(url)!.issuer, row(url)!.client.method, asked().resource],
    [origin, 'none', origin],
  );
  for (const round of [1, 2]) {
    await told(url, 'expire');
    const sums = Promise.all([1, 2, 3, 4].map((n) => add(connection, n, round)));
    assert.deepEqual(
      await sums,
      [1, 2, 3, 4].map((n) => `${n + round}`),
    );
  }
  const uses = (await told(url, 'log')).map(({ grant_type }: Json) => grant_type);
  assert.deepEqual(uses, ['authorization_code', 'refresh_token', 'refresh_token']);
  assert.deepEqual([visits.length, warnings], [1, []]);
});
