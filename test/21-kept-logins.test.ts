// Chapter 21: logins that outlive a connection: the manager, what a server said a moment ago,
// logging out, what is kept.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { afterEach, test } from 'node:test';
import { ScriptedPerson } from '../chapters/17-the-gate/person.ts';
import { challengeIn } from '../chapters/21-authorization/discovery.ts';
import { McpError } from '../mcp.ts';
import { decoded, FIFTY, refreshes, stepping, storeIn } from './help/logins.ts';
import {
  authorizationServer,
  browser,
  program,
  protectedServer,
  said,
  strictCalculator,
  strictIssuer,
  tokenIn,
  type AuthorizationServer,
  type Heard,
} from './help/oauth-servers.ts';
import {
  call,
  cleanUp,
  folder,
  goodServer,
  habit,
  later,
  rejection,
  until,
} from './help/basics.ts';
import { prepare } from './help/manager.ts';

afterEach(cleanUp);

// ─── The manager ──────────────────────────────────────────────────────────────────────────────────────────────

const good = { command: process.execPath, args: [goodServer] };

test('a server that wants a login is needs-auth, and says what to do; the others go on; after a login elsewhere it is connected', async () => {
  const as = await authorizationServer();
  const server = await protectedServer({ as });
  const { home, logins } = program();
  const states: unknown[] = [];
  const { manager, state } = prepare(
    { demo: { type: 'http', url: server.url }, calc: good, dead: habit('dies-at-once') },
    undefined,
    {
      transports: logins.transports,
      onState: (name, told) => states.push([name, told]),
    },
  );
  await manager.loadAndConnect();
  assert.deepEqual(
    [state('demo').state, state('calc').state, state('dead').state],
    ['needs-auth', 'connected', 'failed'],
  );
  assert.match(
    state('demo').reason!,
    /MCP server "demo" \(.*\) wants a login\. To log in: \/mcp login demo/,
  );
  assert.equal((await manager.callTool('mcp__calc__add', { a: 2, b: 40 })).text, '42');
  assert.deepEqual(
    [as.log.length, logins.isWanted('demo'), logins.isWanted('calc')],
    [0, true, false],
  );
  await program({ home, openUserAgent: browser().openUserAgent }).to(server.url);
  await manager.reconnect('demo');
  assert.equal(state('demo').state, 'connected');
  assert.equal((await manager.callTool('mcp__demo__echo', { a: 1 })).text, '{"a":1}');
  assert.deepEqual(
    states.filter(([name]: any) => name === 'demo').map(([, told]: any) => told),
    ['needs-auth', 'connecting', 'connected'],
  );
});

test('a login that ends in the middle is needs-auth, and the call that works again is connected', async () => {
  const as = await authorizationServer(); // no refresh tokens
  const server = await protectedServer({ as });
  const { home, to } = program({ openUserAgent: browser().openUserAgent });
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
  assert.deepEqual(
    [error.kind, state('demo').state, state('demo').reason],
    ['auth', 'needs-auth', error.message],
  );
  await program({ home, openUserAgent: browser().openUserAgent }).to(server.url);
  assert.equal((await manager.callTool('mcp__demo__echo', { a: 1 })).text, '{"a":1}');
  await until(() => state('demo').state === 'connected');
  assert.deepEqual(states, ['connected', 'needs-auth', 'connected']);
});

test('a call that is forbidden says nothing about the login: the server stays connected', async () => {
  const as = await authorizationServer();
  let header = 'Bearer error="insufficient_scope", scope="write"';
  const server = await protectedServer({
    as,
    gate: ({ json }) =>
      json.method === 'tools/call'
        ? said({ no: 'way' }, 403, { 'www-authenticate': header })
        : undefined,
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
  assert.deepEqual(
    (await log('/token')).map(({ status }) => status),
    [200],
  );
});

test('a login after a refusal for want of rights asks for what was refused, and the connection goes on with that', async () => {
  const { server } = await stepping(() => 'write');
  const first = program({ openUserAgent: browser().openUserAgent });
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
  for (const [age, asks] of [
    [14 * 60_000, 0],
    [15 * 60_000 + 1000, 1],
    [-60_000, 1],
  ] as const) {
    // also if it is from the future
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
  const { openUserAgent, visits } = browser();
  await program({ home, openUserAgent }).to(server.url);
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
  const first = program({ openUserAgent: browser().openUserAgent });
  await first.to(server.url);
  const next = program({ home: first.home });
  const { connection } = await next.to(server.url);
  const error = await rejection(call(connection, 'echo'));
  assert.match(error.message, /wants a login with more rights \(write\)\. To log in/);
  assert.deepEqual(
    [error.status, next.logins.isWanted('demo'), next.store.verdict('demo', server.url)?.status],
    [403, true, 403],
  );
  await connection.request('ping');
  const third = program({ home: first.home });
  await third.to(server.url);
  assert.equal(third.logins.isWanted('demo'), true);
  const lost = program({ home: folder() }); // with that verdict, and no token
  lost.store.judge(
    'demo',
    server.url,
    challengeIn(403, 'Bearer error="insufficient_scope", scope="write"')!,
  );
  const seen = server.log.length;
  assert.match((await rejection(lost.to(server.url))).message, /\) wants a login\. To log in/);
  assert.ok(server.log.length > seen, 'it is asked');
  const { user, visits } = pasting();
  await third.logins.logIn('demo', user, never);
  assert.equal(visits[0]!.searchParams.get('scope'), 'basic write');
  assert.deepEqual(
    [third.logins.isWanted('demo'), third.store.verdict('demo', server.url)],
    [false, undefined],
  );
});

test('a login for more rights in another program is noticed by the one that was refused', async () => {
  const { server } = await stepping(() => 'write');
  const first = program({ openUserAgent: browser().openUserAgent });
  await first.to(server.url);
  const { connection } = await program({ home: first.home }).to(server.url);
  await rejection(call(connection, 'echo'));
  const elsewhere = await program({ home: first.home, openUserAgent: browser().openUserAgent }).to(
    server.url,
  );
  assert.equal(await call(elsewhere.connection, 'echo'), '{}');
  assert.equal(await call(connection, 'echo'), '{}');
});

// ─── Logging out ──────────────────────────────────────────────────────────────────────────────────────────────

test('logging out forgets, and tells the authorization server, as whoever we are there', async () => {
  const table = [
    ['none', undefined],
    ['client_secret_basic', 's:1'],
    ['client_secret_post', 's:2'],
  ] as const;
  for (const [offered, secret] of table)
    for (const refresh_token of ['r', undefined]) {
      const metadata = { token_endpoint_auth_methods_supported: [offered] };
      const as = await authorizationServer({ metadata, token: { refresh_token } });
      as.ways['POST /register'] = () =>
        said({ client_id: 'me', ...(secret && { client_secret: secret }) }, 201);
      const server = await protectedServer({ as });
      const { to, logins, row } = program({ openUserAgent: browser().openUserAgent });
      await to(server.url);
      assert.equal(await logins.logOut('demo'), true);
      assert.equal(row(server.url), undefined);
      const [{ form, headers }] = as.asked('POST /revoke') as [Heard];
      assert.equal(form.token, refresh_token ?? `access-1-of-${as.port}`);
      const shown = headers.authorization
        ? decoded(headers.authorization)
        : [form.client_id, form.client_secret];
      assert.deepEqual(shown, ['me', secret], `${offered}`);
      assert.equal(await logins.logOut('demo'), false);
      assert.equal(as.asked('/revoke').length, 1);
    }
});

test('logging out works although the authorization server is away, has no such endpoint, or says no', async () => {
  for (const ruin of [
    async (as: AuthorizationServer) => as.stop(),
    async (as: AuthorizationServer) => void (as.ways['POST /revoke'] = () => said('', 500)),
    async (as: AuthorizationServer) =>
      void (as.ways['POST /revoke'] = ({ response }) => void response.destroy()),
  ]) {
    const as = await authorizationServer();
    const server = await protectedServer({ as });
    const { to, logins, row } = program({ openUserAgent: browser().openUserAgent });
    await to(server.url);
    await ruin(as);
    assert.deepEqual([await logins.logOut('demo'), row(server.url)], [true, undefined]);
  }
  const silent = await authorizationServer({ metadata: { revocation_endpoint: undefined } });
  const server = await protectedServer({ as: silent });
  const { to, logins } = program({ openUserAgent: browser().openUserAgent });
  await to(server.url);
  assert.equal(await logins.logOut('demo'), true);
  assert.equal(silent.asked('/revoke').length, 0);
});

test('a secret of the configuration is shown where it is known; a program that does not know it tells nobody', async () => {
  for (const isKnown of [true, false]) {
    const as = await authorizationServer({ token: { refresh_token: 'r' } });
    const server = await protectedServer({ as });
    const first = program({ openUserAgent: browser().openUserAgent });
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
  const first = program({ openUserAgent: browser().openUserAgent });
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
  const first = program({ openUserAgent: browser().openUserAgent });
  await first.to(url);
  const next = program({ home: first.home });
  const { connection } = await next.to(url);
  assert.equal(await call(connection, 'add', { a: 1, b: 1 }), '2');
  await program({ home: first.home }).logins.logOut('demo');
  const error = await rejection(call(connection, 'add', { a: 1, b: 1 }));
  assert.match(error.message, /wants a login/);
  assert.deepEqual(
    (await log('/token')).map(({ form }) => form.grant_type),
    ['authorization_code'],
  );
  assert.deepEqual(
    (await log('/revoke')).map(({ status }) => status),
    [200],
  );
});

test('logging out of one server leaves the others alone', async () => {
  const as = await authorizationServer();
  const server = await protectedServer({ as });
  const { logins, store, to } = program({ openUserAgent: browser().openUserAgent });
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
  const first = program({ openUserAgent: browser().openUserAgent });
  const { connection } = await first.to(server.url);
  await connection.close();
  const asked = as.log.length;
  await first.to(server.url);
  const before = server.log.length;
  await program({ home: first.home }).to(server.url);
  assert.equal(as.log.length, asked);
  assert.ok(
    server.log.slice(before).every((heard) => heard.path !== '/mcp' || tokenIn(heard)),
    'with the first request already',
  );
});

test('the strict pair: expiry on the server, rotation, fifty at once, and the grant survives', async () => {
  const { issuer, log, tell } = await strictIssuer();
  const url = await strictCalculator(issuer, '--era', 'legacy', '--sessions');
  const first = program({ openUserAgent: browser().openUserAgent });
  await first.to(url);
  const { connection } = await program({ home: first.home }).to(url);
  for (let round = 0; round < 3; round++) {
    await tell('expire');
    const texts = await Promise.all(FIFTY.map((n) => call(connection, 'add', { a: n, b: 1 })));
    assert.deepEqual(
      texts,
      FIFTY.map((n) => `${n + 1}`),
    );
  }
  const requests = await log('/token');
  assert.deepEqual(
    requests.map(({ form, status }) => [form.grant_type, status]),
    [
      ['authorization_code', 200],
      ['refresh_token', 200],
      ['refresh_token', 200],
      ['refresh_token', 200],
    ],
  );
  await tell('forget');
  await tell('expire');
  assert.match(
    (await rejection(call(connection, 'add', { a: 1, b: 1 }))).message,
    /refused us: "?invalid_client|wants a login/,
  );
});

test('a refresh token is asked for together with the consent that OpenID providers want; scopes are registered if all are listed', async () => {
  for (const [listed, registered, prompt] of [
    [['a', 'offline_access'], 'a offline_access', 'consent'],
    [['offline_access'], undefined, 'consent'],
    [['a'], 'a', null],
  ] as const) {
    const as = await authorizationServer({ metadata: { scopes_supported: listed } });
    const server = await protectedServer({ as, challenge: 'Bearer scope="a"' });
    const { openUserAgent, visits } = browser();
    await program({ openUserAgent }).to(server.url);
    const { scope } = as.asked('/register')[0]!.json;
    assert.deepEqual([scope, visits[0]!.searchParams.get('prompt')], [registered, prompt]);
  }
});

test('a login by an old registration that its user stops may have met a page that knows us no more: the next registers', async () => {
  const as = await authorizationServer(); // no refresh tokens
  const server = await protectedServer({ as });
  const { home, to } = program({ openUserAgent: browser().openUserAgent });
  await to(server.url);
  as.live.clear();
  const take = () => Promise.reject(new McpError('aborted', 'the login was stopped'));
  const { kind } = await rejection(
    program({ home, openUserAgent: browser({ take }).openUserAgent }).to(server.url),
  );
  assert.deepEqual([kind, as.asked('/register').length], ['aborted', 1]);
  await program({ home, openUserAgent: browser().openUserAgent }).to(server.url);
  assert.equal(as.asked('/register').length, 2);
});
