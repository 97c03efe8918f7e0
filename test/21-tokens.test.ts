// Chapter 21: what becomes of a token: where it is sent, how it ends, and many who need it at once.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { Login } from '../chapters/21-authorization/login.ts';
import { TokenStore } from '../chapters/21-authorization/tokens.ts';
import { McpError } from '../mcp.ts';
import { FIFTY, grantsOf, isIn, refreshes, stepping, storeIn, WELL_KNOWN } from './help/logins.ts';
import {
  authorizationServer,
  browser,
  locked,
  program,
  protectedServer,
  refusing,
  said,
  scripted,
  tokenIn,
  type AuthorizationServer,
  type Heard,
  type Way,
} from './help/oauth-servers.ts';
import { call, cleanUp, connect, rejection, run, until } from './help/basics.ts';
import { event, stream } from './help/http-servers.ts';

afterEach(cleanUp);

/** A promise to be kept later. */
function hold(): { kept: Promise<void>; keep: () => void } {
  let keep!: () => void;
  const kept = new Promise<void>((done) => (keep = done));
  return { kept, keep };
}

// ─── The token on the wire ────────────────────────────────────────────────────────────────────────────────────

test('the token is on every request: POST, the stream to listen on, and the goodbye', async () => {
  const as = await authorizationServer();
  const server = await protectedServer({
    as,
    session: 's',
    ways: {
      'GET *': ({ response }) =>
        void stream(response, event({ jsonrpc: '2.0', id: 'q', method: 'ping' })),
    },
  });
  const { connection } = await program({ openUserAgent: browser().openUserAgent }).to(server.url);
  await call(connection, 'echo');
  await until(() => server.log.some(({ json }) => json.id === 'q'));
  await connection.close();
  const first = server.log.findIndex(({ headers }) => headers.authorization);
  const after = server.log.slice(first);
  assert.deepEqual([...new Set(after.map(({ verb }) => verb))].sort(), ['DELETE', 'GET', 'POST']);
  for (const { verb, headers } of after)
    assert.equal(headers.authorization, `Bearer access-1-of-${as.port}`, verb);
  assert.ok(
    as.log.every(({ headers }) => headers.authorization === undefined),
    'the authorization server never sees it',
  );
});

test('the token goes to the origin of the server, and to nobody else', async () => {
  const as = await authorizationServer();
  const sink = await scripted({}, () => said({ jsonrpc: '2.0', id: 1, result: {} }));
  const moved: Way = ({ json }) => said({ jsonrpc: '2.0', id: json.id, result: { moved: true } });
  const server = await protectedServer({ as, ways: { 'POST /moved': moved } });
  const { to, store } = program({ openUserAgent: browser().openUserAgent });
  const { connection } = await to(server.url);
  server.ways['POST *'] = ({ response }) =>
    void response.writeHead(307, { location: `${sink.origin}/mcp` }).end();
  const error = await rejection(connection.request('ping'));
  assert.match(error.message, new RegExp(`sends us on to ${sink.origin}`));
  assert.equal(sink.log.length, 0);
  server.ways['POST *'] = ({ response }) =>
    void response.writeHead(307, { location: '/moved' }).end();
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
  const { openUserAgent, visits } = browser();
  const { to, home, store } = program({ openUserAgent });
  const error = await rejection(
    to(server.url, undefined, {}, { headers: { AUTHORIZATION: 'Bearer mine' } }),
  );
  assert.deepEqual([error.kind, error.status], ['auth', 401]);
  assert.deepEqual(
    [visits.length, as.log.length, store.verdict('demo', server.url)],
    [0, 0, undefined],
  );
  assert.ok(
    server.log.every(
      ({ headers, path }) => path === '/mcp' && headers.authorization === 'Bearer mine',
    ),
  );
  as.live.add('mine');
  await to(server.url, undefined, {}, { headers: { Authorization: 'Bearer mine' } });
  assert.throws(() => readFileSync(storeIn(home)), { code: 'ENOENT' });
});

/** A server of 2024: one stream, and an address for messages. Everything wants a live token. */
async function olderServer(as: AuthorizationServer, { isMixed = false } = {}) {
  let open: Heard['response'] | undefined;
  const guarded =
    (way: Way): Way =>
    (heard) =>
      isIn(as, heard) ? way(heard) : locked(`Bearer resource_metadata="${server.origin}/prm"`);
  const server = await scripted({
    'GET /sse': guarded(
      ({ response }) => void stream((open = response), event('/messages', { event: 'endpoint' })),
    ),
    'POST /messages': guarded(({ json }) => {
      const description = { protocolVersion: '2024-11-05', capabilities: { tools: {} } };
      const result =
        json.method === 'initialize' ? description : { content: [{ type: 'text', text: 'old' }] };
      if (json.id !== undefined)
        setImmediate(() => open!.write(event({ jsonrpc: '2.0', id: json.id, result })));
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
    const { openUserAgent, visits } = browser();
    const { connection } = await program({ openUserAgent }).to(server.url, undefined, {}, { type });
    assert.equal(await call(connection, 'x'), 'old');
    as.live.clear();
    assert.equal(await call(connection, 'x'), 'old');
    assert.deepEqual([visits.length, grantsOf(as)], [1, ['authorization_code', 'refresh_token']]);
    const tokens = server.asked('/messages').map((heard) => tokenIn(heard));
    assert.ok(
      tokens.every((token) => token?.startsWith('access-')),
      type,
    );
    assert.equal(new Set(tokens).size, 2);
  }
});

// ─── A token ends ─────────────────────────────────────────────────────────────────────────────────────────────

/** Refresh tokens that are good once: whoever comes with a used one is a thief, and everything is over. */
type Rotation = { expires_in?: number; slowly?: () => Promise<unknown> };
function rotating(
  as: AuthorizationServer,
  { expires_in, slowly }: Rotation = {},
): { isDead: boolean; used: string[] } {
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
  const { openUserAgent, visits } = browser();
  const first = program({ openUserAgent });
  const before = Date.now();
  await first.to(server.url);
  const { expiresAt } = first.row(server.url)!.tokens!;
  assert.ok(
    expiresAt! > before + 3_000_000 && expiresAt! < Date.now() + 3_600_000,
    'a little earlier than it says',
  );
  age(first, server.url);
  const refused = () =>
    server.log.filter((heard) => heard.path === '/mcp' && !isIn(as, heard)).length;
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
    const { to, row } = program({ openUserAgent: browser().openUserAgent });
    await to(server.url);
    assert.equal(
      row(server.url)!.tokens!.expiresAt !== undefined,
      Number(expires_in) === 3600,
      `${expires_in}`,
    );
    assert.equal(refreshes(as), 0);
  }
});

test('a token that only the server knows to be dead is renewed too; each new refresh token replaces the one before', async () => {
  const as = await authorizationServer();
  const family = rotating(as);
  const server = await protectedServer({ as });
  const first = program({ openUserAgent: browser().openUserAgent });
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
  as.ways['POST /token'] = ({ form }) =>
    said(as.issue(form.grant_type === 'refresh_token' ? {} : { refresh_token: 'for ever' }));
  const server = await protectedServer({ as });
  const { to, row } = program({ openUserAgent: browser().openUserAgent });
  const { connection } = await to(server.url);
  for (let n = 0; n < 3; n++) {
    as.live.clear();
    await call(connection, 'echo');
  }
  assert.deepEqual(
    as
      .asked('/token')
      .slice(1)
      .map(({ form }) => form.refresh_token),
    ['for ever', 'for ever', 'for ever'],
  );
  assert.equal(row(server.url)!.tokens!.refresh, 'for ever');
});

test('a refresh token that is refused is not shown again: a login is wanted, and the registration is kept for it', async () => {
  const as = await authorizationServer();
  const family = rotating(as);
  const server = await protectedServer({ as });
  const first = program({ openUserAgent: browser().openUserAgent });
  await first.to(server.url);
  const next = program({ home: first.home });
  const { connection } = await next.to(server.url);
  family.isDead = true;
  as.live.clear();
  for (let n = 0; n < 3; n++) {
    const error = await rejection(call(connection, 'echo'));
    assert.deepEqual([error.kind, error.status], ['auth', 401]);
    assert.match(
      error.message,
      /wants a login\. To log in: \/mcp login demo in a chat, or .*mcp login demo/,
    );
  }
  await rejection(program({ home: first.home }).to(server.url));
  assert.deepEqual(family.used, ['refresh-1']);
  assert.deepEqual(
    [next.row(server.url)!.tokens, next.row(server.url)!.client.id],
    [undefined, `client-1-of-${as.port}`],
  );
  assert.equal(next.logins.isWanted('demo'), true);
  await program({ home: first.home, openUserAgent: browser().openUserAgent }).to(server.url);
  assert.equal(as.asked('/register').length, 1);
  assert.equal(
    await call(connection, 'echo'),
    '{}',
    'and the program that waited goes on with that',
  );
});

test('an authorization server that does not know us any more gets to know us again at the next login', async () => {
  const as = await authorizationServer({ token: { refresh_token: 'r' } });
  const server = await protectedServer({ as });
  const first = program({ openUserAgent: browser().openUserAgent });
  await first.to(server.url);
  as.live.clear();
  const usual = as.ways['POST /token']!;
  as.ways['POST /token'] = (heard) =>
    heard.form.client_id === `client-1-of-${as.port}`
      ? refusing('invalid_client', 401)
      : usual(heard);
  assert.match(
    (await rejection(program({ home: first.home }).to(server.url))).message,
    /wants a login/,
  );
  await program({ home: first.home, openUserAgent: browser().openUserAgent }).to(server.url);
  assert.equal(as.asked('/register').length, 2);
});

test('a login for more rights that comes to nothing leaves the login that there was', async () => {
  const { server } = await stepping(() => 'write');
  const first = program({ openUserAgent: browser().openUserAgent });
  await first.to(server.url);
  const failing: [string, (url: URL) => Promise<URL>][] = [
    [
      'nobody comes back',
      () => Promise.reject(new McpError('auth', 'nobody came back from the browser')),
    ],
    ['it is stopped', () => Promise.reject(new McpError('aborted', 'the login was stopped'))],
    [
      'somebody says no',
      async (url) =>
        new URL(`${url.searchParams.get('redirect_uri')}?error=access_denied&iss=${url.origin}`),
    ],
    [
      'it comes from elsewhere',
      async (url) =>
        new URL(`${url.searchParams.get('redirect_uri')}?code=x&iss=https://evil.example`),
    ],
  ];
  for (const [name, take] of failing) {
    const next = program({ home: first.home, openUserAgent: browser({ take }).openUserAgent });
    const { connection } = await next.to(server.url);
    await rejection(call(connection, 'echo'));
    await connection.request('ping');
    assert.ok(next.row(server.url)?.tokens, `${name}: and the next program needs no login`);
  }
});

test('an authorization server that is away, or in trouble, costs us no token: the next call tries again', async () => {
  const as = await authorizationServer({ token: { refresh_token: 'r', expires_in: 3600 } });
  const server = await protectedServer({ as });
  const first = program({ openUserAgent: browser().openUserAgent });
  await first.to(server.url);
  const ways: Record<string, Way> = {
    'broken off': ({ response }) => void response.destroy(),
    'HTTP 503': () => said('try later', 503),
    server_error: () => refusing('server_error', 500),
    temporarily_unavailable: () => refusing('temporarily_unavailable'),
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

test("a token whose time is over, and that cannot be renewed, is the server's to refuse: its challenge leads to the login", async () => {
  for (const [hasBrowser, where] of [
    [true, '/somewhere'],
    [true, `${WELL_KNOWN}/mcp`],
    [false, '/somewhere'],
  ] as const) {
    const as = await authorizationServer();
    const family = rotating(as, { expires_in: 3600 });
    const server = await protectedServer({
      as,
      ways: { [`GET ${WELL_KNOWN}/mcp`]: undefined, [`GET ${where}`]: () => said(server.prm) },
      gate: (heard) =>
        isIn(as, heard)
          ? undefined
          : locked(`Bearer scope="special", resource_metadata="${server.origin}${where}"`),
    });
    const { openUserAgent, asked } = browser();
    const first = program({ openUserAgent });
    await first.to(server.url);
    age(first, server.url);
    family.isDead = true;
    as.live.clear();
    if (!hasBrowser) {
      const error = await rejection(program({ home: first.home }).to(server.url));
      assert.match(error.message, /wants a login/);
      assert.match(
        first.store.verdict('demo', server.url)!.challenge,
        /special/,
        'what the server said is kept',
      );
    } else {
      await program({ home: first.home, openUserAgent }).to(server.url);
      assert.deepEqual([asked(1).scope, family.used], ['special', ['refresh-1']], where);
    }
  }
});

test('a goodbye is not worth a new token', async () => {
  const as = await authorizationServer({ token: { refresh_token: 'r' } });
  const server = await protectedServer({ as, session: 's' });
  const { connection } = await program({ openUserAgent: browser().openUserAgent }).to(server.url);
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
    as,
    session: 's',
    ways: {
      'GET *': (heard) => void (streams.push(heard), stream(heard.response, 'retry: 100\n\n')),
    },
  });
  const first = program({ openUserAgent: browser().openUserAgent });
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

test('fifty calls that meet a token whose time is over cause one refresh', async () => {
  const as = await authorizationServer();
  const family = rotating(as, { expires_in: 0.3 });
  const server = await protectedServer({ as });
  const { to, row } = program({ openUserAgent: browser().openUserAgent });
  const { connection } = await to(server.url);
  for (const round of [1, 2]) {
    const { expiresAt, refresh } = row(server.url)!.tokens!;
    await until(() => Date.now() > expiresAt!);
    as.ways['POST /token'] = async ({ form }) => {
      family.used.push(form.refresh_token!);
      assert.equal(form.refresh_token, refresh);
      return said(
        as.issue({ refresh_token: `next-${round}`, expires_in: round === 1 ? 0.5 : 3600 }),
      );
    };
    const [before, seen] = [family.used.length, server.log.length];
    const texts = await Promise.all(FIFTY.map((n) => call(connection, 'echo', { n })));
    assert.deepEqual(
      texts,
      FIFTY.map((n) => `{"n":${n}}`),
    );
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
  const { connection } = await program({ openUserAgent: browser().openUserAgent }).to(server.url);
  for (const round of [1, 2, 3]) {
    as.live.clear();
    refused.clear();
    const texts = await Promise.all(FIFTY.map((n) => call(connection, 'echo', { n })));
    assert.deepEqual(
      texts,
      FIFTY.map((n) => `{"n":${n}}`),
    );
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
  const { connection } = await program({ openUserAgent: browser().openUserAgent }).to(server.url);
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
    as,
    gate: (heard) =>
      heard.json.method !== 'tools/call' || isIn(as, heard)
        ? undefined
        : locked('Bearer scope="a"'),
  });
  const { openUserAgent, visits } = browser();
  const { connection } = await program({ openUserAgent }).to(server.url);
  assert.equal(visits.length, 0);
  const texts = await Promise.all(FIFTY.map((n) => call(connection, 'echo', { n })));
  assert.deepEqual(
    texts,
    FIFTY.map((n) => `{"n":${n}}`),
  );
  assert.deepEqual(
    [visits.length, as.asked('/register').length, as.asked('/token').length],
    [1, 1, 1],
  );
});

test('fifty calls that need more rights cause one step-up', async () => {
  const { as, server } = await stepping(() => 'write');
  const { openUserAgent, visits } = browser();
  const { connection } = await program({ openUserAgent }).to(server.url);
  assert.equal((await Promise.all(FIFTY.map((n) => call(connection, 'echo', { n })))).length, 50);
  assert.deepEqual([visits.length, as.asked('/token').length], [2, 2]);
});

test('a refusal that comes late, when there is a better token already, is no reason for another', async () => {
  const late = hold();
  const { as, server } = await stepping(
    async ({ json }) => (json.params.arguments.late && (await late.kept), 'write'),
  );
  const { openUserAgent, visits } = browser();
  const { connection } = await program({ openUserAgent }).to(server.url);
  const waiting = call(connection, 'echo', { late: true });
  assert.equal(await call(connection, 'echo', { n: 1 }), '{"n":1}');
  late.keep();
  assert.equal(await waiting, '{"late":true}');
  assert.deepEqual([visits.length, as.asked('/token').length], [2, 2]);
});

test('two programs with the same home and the same dead token: one of them refreshes, and both go on', async () => {
  for (const how of ['by our clock', 'on the server']) {
    const as = await authorizationServer();
    const family = rotating(as, {
      expires_in: 3600,
      slowly: () => until(() => how === 'by our clock' || refused.size === 2),
    });
    const refused = new Set<string>(); // which programs
    const server = await protectedServer({
      as,
      gate: (heard) => {
        if (isIn(as, heard)) return undefined;
        refused.add(`${heard.headers['x-program']}`);
        return locked('Bearer');
      },
    });
    const first = program({ openUserAgent: browser().openUserAgent });
    await first.to(server.url);
    refused.clear();
    if (how === 'by our clock') age(first, server.url);
    as.live.clear();
    const programs = ['one', 'two'].map((name) =>
      run('logged-in.ts', [first.home, server.url, name]),
    );
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
  const first = program({ openUserAgent: browser().openUserAgent });
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
  const outcomes = calls.map((each) =>
    each.then(
      () => 'done',
      (error) => error.kind,
    ),
  );
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
    const first = program({ openUserAgent: browser().openUserAgent });
    await first.to(server.url);
    if (how === 'by our clock') age(first, server.url);
    else as.live.clear();
    const login = new Login(
      'demo',
      { url: server.url },
      { store: new TokenStore({ home: first.home }) },
    );
    const controller = new AbortController();
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
    const ask = (signal?: AbortSignal) =>
      login.fetch('who', new URL(server.url), { method: 'POST', headers: {}, body, signal });
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
  const { openUserAgent, visits } = browser();
  const error = await rejection(program({ openUserAgent }).to(server.url));
  assert.equal(error.kind, 'auth');
  assert.match(
    error.message,
    new RegExp(`does not accept the token that ${as.issuer} has given us for it`),
  );
  assert.deepEqual([visits.length, as.asked('/token').length], [1, 1]);
  assert.equal(server.log.filter(({ path }) => path === '/mcp').length, 2);
});

test('a refreshed token that the server does not accept leads to one login, and then to the error', async () => {
  const as = await authorizationServer();
  const family = rotating(as);
  let isShut = false;
  const server = await protectedServer({
    as,
    gate: (heard) => (!isShut && isIn(as, heard) ? undefined : locked('Bearer')),
  });
  const { openUserAgent, visits } = browser();
  const { connection } = await program({ openUserAgent }).to(server.url);
  isShut = true;
  const error = await rejection(call(connection, 'echo'));
  assert.match(error.message, /does not accept the token/);
  assert.deepEqual([visits.length, family.used], [2, ['refresh-1']]);
});

test('a server that moves to another authorization server gets a new registration there, and the old one is shown to nobody', async () => {
  for (const token of [{}, { refresh_token: 'r' }]) {
    const [old, next] = [
      await authorizationServer({ token }),
      await authorizationServer({ token }),
    ];
    let current = old;
    const server = await protectedServer({
      as: old,
      gate: (heard) => (isIn(current, heard) ? undefined : locked('Bearer')),
    });
    const { openUserAgent, visits } = browser();
    const { to, store, row } = program({ openUserAgent });
    const { connection } = await to(server.url);
    current = next;
    server.prm.authorization_servers = [next.issuer];
    assert.equal(await call(connection, 'echo'), '{}');
    assert.deepEqual(
      [visits.map(({ origin }) => origin), next.asked('/register').length],
      [[old.issuer, next.issuer], 1],
    );
    const all = JSON.stringify(
      next.log.map(({ query, form, json, headers }) => [query, form, json, headers]),
    );
    assert.ok(
      !all.includes(`-of-${old.port}`) && !all.includes('refresh_token":"r"'),
      'nothing of the old one',
    );
    assert.equal(row(server.url)!.issuer, next.issuer);
    assert.equal(store.find('demo', server.url, old.issuer)!.client.id, `client-1-of-${old.port}`);
    assert.ok(server.log.slice(-1).every((heard) => tokenIn(heard) === `access-1-of-${next.port}`));
  }
});

test('a token belongs to a name, an address and an issuer: with any of them changed it is not sent', async () => {
  const as = await authorizationServer();
  const server = await protectedServer({ as });
  const first = program({ openUserAgent: browser().openUserAgent });
  await first.to(server.url);
  const twin = await protectedServer({ as }); // it would take the token
  const next = program({ home: first.home });
  assert.equal((await rejection(next.to(twin.url))).kind, 'auth');
  assert.equal(
    (await rejection(next.to(server.url, { issuer: 'https://other.example' }))).kind,
    'auth',
  );
  assert.equal((await rejection(next.to(server.url, { clientId: 'somebody else' }))).kind, 'auth');
  const { connection } = await connect(
    { type: 'http', url: server.url },
    { transports: program({ home: first.home }).logins.transports },
  );
  await connection.initialize(); // this one has it
  assert.ok(twin.log.every(({ headers }) => headers.authorization === undefined));
});
