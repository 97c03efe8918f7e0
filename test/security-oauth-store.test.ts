// Attack cases I of the file with the logins, by their ids. I of the trust file is in
// security-trust.test.ts.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { takeLock } from '../chapters/17-the-gate/lock.ts';
import { challengeIn } from '../chapters/21-authorization/discovery.ts';
import { TokenStore, type StoredLogin } from '../chapters/21-authorization/tokens.ts';
import type { Json } from '../mcp.ts';
import {
  knock,
  loggedIn,
  loginBetween,
  opener,
  repeatingProgram,
  rowOf,
  unasked,
} from './help/hostile-login.ts';
import {
  authorizationServer,
  browser,
  program,
  protectedServer,
  refusing,
  tokenIn,
} from './help/oauth-servers.ts';
import { cleanUp, folder, later, rejection, run, until } from './help/basics.ts';
import { place, run as runProgram, userServers } from './help/terminal.ts';

afterEach(cleanUp);

// ─── I: the file with the logins ──────────────────────────────────────────────────────────────────────────────

const mode = (path: string) => statSync(path).mode & 0o777;

/** A store with one login in it. */
function kept() {
  const [home, warnings] = [folder(), [] as string[]];
  const make = () => new TokenStore({ home, warn: (text) => warnings.push(text) });
  make().keep(rowOf());
  make().judge('other', 'https://other.example/', challengeIn(401, 'Bearer')!);
  make().keepIdpLogin('https://idp.example', 'i', 'the-id-token');
  const place = join(home, '.mcp-by-hand');
  const file = join(place, 'logins.json');
  const { server, url } = rowOf();
  const isUsed = (store = make()) =>
    store.find(server, url) !== undefined ||
    store.idpLogin('https://idp.example', 'i') !== undefined ||
    store.verdict('other', 'https://other.example/') !== undefined;
  /** Nothing of it counts, that is said, and the file stays as it is, whatever else is to be kept. */
  const assertUnused = (why: RegExp) => {
    const before = readFileSync(file, 'utf8');
    const store = make();
    assert.ok(!isUsed(store), `${why}`);
    assert.match(warnings[0] ?? 'no warning', why);
    assert.match(warnings[0]!, /logins\.json is not used, so logins count for this run only/);
    store.keep(rowOf({ server: 'another' }));
    store.judge('other', 'x', challengeIn(401, '')!);
    store.keepIdpLogin('a', 'b', 'c');
    assert.deepEqual(store.find('another', url), rowOf({ server: 'another' }), 'for this run');
    assert.deepEqual(store.forget('another'), [rowOf({ server: 'another' })]);
    assert.deepEqual(store.forget(server), []);
    assert.equal(warnings.length, 1, 'said once');
    assert.doesNotMatch(warnings[0]!, /the-(access|refresh|id)-token/);
    assert.equal(readFileSync(file, 'utf8'), before, 'not overwritten');
    warnings.length = 0;
  };
  return { home, make, place, file, warnings, isUsed, assertUnused };
}

test('I1: the file is 0600, the folder 0700, whatever the umask; one that others could read is corrected', () => {
  const umask = process.umask(0);
  later(() => process.umask(umask));
  const { make, place, file, isUsed, warnings } = kept();
  assert.deepEqual([mode(place), mode(file)], [0o700, 0o600]);
  for (const use of [
    () => assert.ok(isUsed()),
    () => make().keep(rowOf({ server: 'b' })),
    () => make().judge('x', 'y', challengeIn(401, '')!),
    () => make().forget('b'),
  ]) {
    chmodSync(place, 0o755);
    chmodSync(file, 0o644);
    use();
    assert.deepEqual([mode(place), mode(file)], [0o700, 0o600]);
  }
  rmSync(file);
  writeFileSync(file, JSON.stringify({ version: 1, rows: [], verdicts: [], company: [] }), {
    mode: 0o644,
  });
  make().keep(rowOf());
  assert.equal(mode(file), 0o600);
  assert.deepEqual(readdirSync(place), ['logins.json'], 'nothing else is left');
  assert.deepEqual(warnings, []);
});

test('I1: what the program itself writes is 0600, too', async () => {
  const { where } = await repeatingProgram();
  assert.equal(mode(join(where.home, '.mcp-by-hand', 'logins.json')), 0o600);
  assert.equal(mode(join(where.home, '.mcp-by-hand')), 0o700);
});

const SOUND = { version: 1, rows: [rowOf()], verdicts: [], company: [] };
const changed = (change: Json) => JSON.stringify({ ...SOUND, rows: [{ ...rowOf(), ...change }] });

test('I2: a damaged, foreign or future file is not used, that is told, and it is not overwritten', () => {
  const broken: [text: string, why: RegExp][] = [
    ['', /JSON/],
    ['{', /JSON/],
    ['null', /no JSON object/],
    ['[]', /no JSON object/],
    ['"x"', /no JSON object/],
    ['{}', /version is undefined/],
    [JSON.stringify({ ...SOUND, version: 2 }), /version is 2/],
    [JSON.stringify({ ...SOUND, version: '1' }), /version is "1"/],
    ...[
      { rows: {} },
      { rows: [null] },
      { rows: [[]] },
      { rows: undefined },
      { verdicts: 'x' },
      { verdicts: [{ server: 's', url: 'u', at: 'now', status: 401, challenge: '' }] },
      { verdicts: undefined },
      { company: {} },
      { company: [{ issuer: 'x' }] },
      { company: [{ issuer: 'x', client: 'y', idToken: 5 }] },
    ].map((part): [string, RegExp] => [JSON.stringify({ ...SOUND, ...part }), /another shape/]),
    ...[
      { server: 1 },
      { url: undefined },
      { issuer: null },
      { resource: [] },
      { tokenEndpoint: {} },
      { client: 'c' },
      { client: { id: 'c' } },
      { client: { id: 1, method: 'none' } },
      { tokens: 'x' },
      { tokens: { access: 1, type: 'Bearer', scope: [] } },
      { tokens: { access: 'a', scope: [] } },
      { tokens: { access: 'a', type: 'Bearer', scope: 'x' } },
      { tokens: { access: 'a', type: 'Bearer', scope: [1] } },
      { tokens: null },
    ].map((change): [string, RegExp] => [changed(change), /another shape/]),
  ];
  for (const [text, why] of broken) {
    const { file, assertUnused } = kept();
    writeFileSync(file, text, { mode: 0o600 });
    assertUnused(why);
  }
  const { file, assertUnused } = kept();
  const whole = readFileSync(file, 'utf8');
  writeFileSync(file, whole.slice(0, whole.length / 2));
  assertUnused(/JSON/);
});

test('I2: so is one in which what may be left out has the wrong type', async () => {
  const { tokens } = rowOf();
  for (const change of [
    { tokens: { ...tokens, refresh: 5 } },
    { tokens: { ...tokens, expiresAt: 'soon' } },
    { tokens: { ...tokens, type: 'Basic' } },
    { client: { id: 'c', method: 'none', secret: {} } },
    { client: { id: 'c', method: 'none', redirectUri: 5 } },
    { revocationEndpoint: 5 },
    { key: 'the-private-key' },
  ]) {
    const { file, assertUnused } = kept();
    writeFileSync(file, changed(change), { mode: 0o600 });
    assertUnused(/another shape/);
  }
});

// ─── I7: what is written can be read again ────────────────────────────────────────────────────

/** 1e999 is a number in JSON, and Infinity to us; as JSON again it would be null. */
const ODD_NUMBERS = [
  '1e999',
  '-1e999',
  '-1',
  '0',
  '1e300',
  '"soon"',
  '"1e999"',
  'null',
  '[3600]',
  '{}',
  'true',
];

test('I7: no number of an authorization server spoils the file of logins, nor its own login', async () => {
  for (const odd of ODD_NUMBERS) {
    const as = await authorizationServer();
    const body = (text: string) => ({
      body: text,
      headers: { 'content-type': 'application/json' },
    });
    as.ways['POST /token'] = () =>
      body(JSON.stringify(as.issue({ expires_in: '?' })).replace('"?"', odd));
    as.ways['POST /register'] = () =>
      body(
        `{"client_id": "c", "client_secret": "the-client-secret", "client_secret_expires_at": ${odd}}`,
      );
    const server = await protectedServer({ as });
    const home = folder();
    const warnings: string[] = [];
    const make = () => new TokenStore({ home, warn: (text) => warnings.push(text) });
    make().keep(rowOf({ server: 'another' }));
    await program({ store: make(), openUserAgent: browser().openUserAgent }).to(server.url);
    assert.deepEqual(make().find('another', rowOf().url), rowOf({ server: 'another' }), odd);
    const { tokens, client } = make().find('demo', server.url)!;
    assert.ok(as.live.has(tokens!.access), odd);
    assert.deepEqual([tokens!.expiresAt, client.expiresAt], [undefined, undefined], odd);
    await program({ store: make() }).to(server.url); // the next program uses it
    assert.deepEqual(warnings, [], odd);
  }
});

test('I7: a sane lifetime is kept, also one that is written as text', async () => {
  for (const expires_in of [3600, '3600', 3600.5]) {
    const { login, client, server } = await loginBetween({ token: { expires_in } });
    await login();
    const { expiresAt = 0 } = client.row(server.url)!.tokens!;
    const seconds = (expiresAt - Date.now()) / 900;
    assert.ok(seconds > 3500 && seconds < 3601, `${expires_in}: ${seconds}`);
  }
});

test('I7: what could not be read again is not written: the others stay, and more can be kept', () => {
  const odd: unknown[] = [
    { tokens: { access: 'a', type: 'Bearer', scope: [], expiresAt: Infinity } },
    { issuer: undefined },
    { tokens: { access: 'a', type: 'Bearer', scope: [], expiresAt: NaN } },
    { client: { id: 'c' } },
    { client: { id: 'c', method: 'none', expiresAt: -Infinity } },
    { tokens: { access: 5 } },
  ];
  for (const change of odd) {
    const { make, warnings, file } = kept();
    const before = readFileSync(file, 'utf8');
    const store = make();
    store.keep(rowOf({ server: 'odd', ...(change as Partial<StoredLogin>) }));
    assert.equal(readFileSync(file, 'utf8'), before);
    assert.match(warnings.join(), /logins\.json: this one is not kept/);
    store.keep(rowOf({ server: 'next' }));
    assert.ok(make().find('demo', rowOf().url) && make().find('next', rowOf().url));
    assert.equal(make().find('odd', rowOf().url), undefined);
    assert.equal(warnings.length, 1);
  }
});

test('I7: a file with 1e999 in it is a damaged file, and not one that is damaged by the next login', () => {
  const { file, assertUnused } = kept();
  const text = changed({ tokens: { ...rowOf().tokens!, expiresAt: 5 } });
  writeFileSync(file, text.replace('"expiresAt":5', '"expiresAt":1e999'), { mode: 0o600 });
  assertUnused(/another shape/);
});

test('I2: the program tells that the file is not used', async () => {
  const { where } = await repeatingProgram();
  const file = join(where.home, '.mcp-by-hand', 'logins.json');
  for (const text of ['{', JSON.stringify({ ...SOUND, version: 2 })]) {
    writeFileSync(file, text);
    const { err } = await runProgram(where, ['mcp', 'list']);
    assert.match(err, /logins\.json is not used/);
    assert.equal(readFileSync(file, 'utf8'), text);
  }
});

test('I2: the program goes on with a damaged file, asks for a login, and leaves the file as it is', async () => {
  const { where, server } = await repeatingProgram();
  const file = join(where.home, '.mcp-by-hand', 'logins.json');
  writeFileSync(file, '{"version": 1, "rows": [');
  server.log.length = 0;
  const { code, out } = await runProgram(where, ['mcp', 'list', '--json']);
  assert.equal(code, 0);
  assert.equal(JSON.parse(out)[0].state, 'needs-auth');
  assert.ok(server.log.length > 0 && server.log.every((heard) => tokenIn(heard) === undefined));
  assert.equal(readFileSync(file, 'utf8'), '{"version": 1, "rows": [');
});

test('I9: a logout that cannot be written down says so, and exits with 3', async () => {
  const { where } = await repeatingProgram();
  const file = join(where.home, '.mcp-by-hand', 'logins.json');
  const before = readFileSync(file, 'utf8');
  takeLock(`${file}.lock`); // another program holds it
  const { code, out, err } = await runProgram(where, ['mcp', 'logout', 'demo']);
  assert.deepEqual([code, out], [3, '']);
  assert.match(
    err,
    /logins\.json\.lock \(of the process \d+\) is in the way; .*delete it, and then log in again: mcp-by-hand mcp login NAME/,
  );
  assert.match(err, /demo: you are logged out for this run only: that was not written down/);
  assert.equal(readFileSync(file, 'utf8'), before);
});

test('I3: a file or a folder that is a link is not used, and nothing is written behind it', () => {
  const { file, place, home, make, assertUnused } = kept();
  const elsewhere = folder();
  writeFileSync(join(elsewhere, 'logins.json'), readFileSync(file, 'utf8'), { mode: 0o600 });
  rmSync(file);
  symlinkSync(join(elsewhere, 'logins.json'), file);
  assertUnused(/logins\.json is a link/);
  rmSync(place, { recursive: true });
  symlinkSync(elsewhere, join(home, '.mcp-by-hand'));
  assertUnused(/\.mcp-by-hand is a link/);
  rmSync(join(elsewhere, 'logins.json'));
  make().keep(rowOf());
  assert.deepEqual(readdirSync(elsewhere), [], 'nor is one made behind it');
});

test('I3: a FIFO or a folder in its place is not waited for', () => {
  for (const plant of [
    (file: string) => execFileSync('mkfifo', [file]),
    (file: string) => mkdirSync(file),
  ]) {
    const { file, isUsed, warnings } = kept();
    rmSync(file);
    plant(file);
    assert.ok(!isUsed());
    assert.match(warnings[0]!, /no file/);
  }
});

test("I3: a file or folder that others may write to, or that is somebody else's, is not used", () => {
  for (const [what, bits] of [
    ['file', 0o620],
    ['file', 0o602],
    ['place', 0o770],
    ['place', 0o777],
  ] as const) {
    const store = kept();
    chmodSync(store[what], bits);
    store.assertUnused(/others may write/);
  }
  if (process.getuid?.() !== 0) return; // only root can give a file away
  for (const what of ['file', 'place'] as const) {
    const store = kept();
    chownSync(store[what], 12345, 12345);
    store.assertUnused(/belongs to somebody else/);
  }
});

test('I3: with a relative or empty home nothing is used, and nothing is written into the project, also by a login', async () => {
  const cwd = folder();
  const before = process.cwd();
  process.chdir(cwd);
  later(() => process.chdir(before));
  const { as, server } = await loginBetween({
    token: { refresh_token: 'the-refresh-token', expires_in: 1e-9 },
  });
  mkdirSync(join(cwd, '.mcp-by-hand'), { mode: 0o700 });
  const planted = JSON.stringify({ ...SOUND, rows: [rowOf({ url: server.url })] });
  for (const file of ['.mcp-by-hand/logins.json', 'logins.json'])
    writeFileSync(join(cwd, file), planted, { mode: 0o600 });
  for (const home of ['', '.', './', 'sub']) {
    const warnings: string[] = [];
    const store = new TokenStore({ home, warn: (text) => warnings.push(text) });
    assert.equal(store.find('demo', server.url), undefined);
    const { to } = program({ store, openUserAgent: browser().openUserAgent });
    as.live.clear();
    await to(server.url).catch(() => {});
    as.live.clear();
    await to(server.url).catch(() => {}); // also when a token is renewed
    assert.match(store.find('demo', server.url)!.tokens!.access, /^access-/, 'for this run');
    assert.match(warnings.join(), /home folder is not an absolute path/);
    assert.deepEqual(readdirSync(cwd).sort(), ['.mcp-by-hand', 'logins.json']);
    for (const file of ['.mcp-by-hand/logins.json', 'logins.json'])
      assert.equal(readFileSync(join(cwd, file), 'utf8'), planted);
  }
  assert.ok(server.log.every((heard) => tokenIn(heard) !== 'the-access-token'));
});

test('I3: with such a home, a lock is not made or deleted in the project either', async () => {
  const cwd = folder();
  const before = process.cwd();
  process.chdir(cwd);
  later(() => process.chdir(before));
  writeFileSync(join(cwd, 'logins.json.refresh'), 'of the project');
  utimesSync(join(cwd, 'logins.json.refresh'), 0, 0);
  await program({ store: new TokenStore({ home: '.' }) }).logins.logOut('demo');
  assert.deepEqual(readdirSync(cwd), ['logins.json.refresh']);
});

test('I3: a project has no file of logins, wherever it puts one', async () => {
  const { as, server } = await loginBetween();
  const planted = JSON.stringify({
    ...SOUND,
    rows: [rowOf({ url: server.url, server: 'demo', issuer: as.issuer })],
  });
  const files = {
    '.mcp-by-hand/logins.json': planted,
    'logins.json': planted,
    '.claude/logins.json': planted,
  };
  const where = place(files, userServers({ demo: { type: 'http', url: server.url } }));
  const { out } = await runProgram(where, ['mcp', 'list', '--json']);
  assert.equal(JSON.parse(out)[0].state, 'needs-auth');
  assert.ok(server.log.every((heard) => tokenIn(heard) === undefined));
});

test('I4: several programs keep logins at once, and none is lost', async () => {
  const home = folder();
  const ended = await Promise.all(
    ['a', 'b', 'c'].map((prefix) => run('login-keeper.ts', [home, prefix, '20']).ended),
  );
  assert.deepEqual(
    ended.map(({ code, output }) => [code, output]),
    [
      [0, ''],
      [0, ''],
      [0, ''],
    ],
  );
  const { rows } = JSON.parse(readFileSync(join(home, '.mcp-by-hand', 'logins.json'), 'utf8')) as {
    rows: StoredLogin[];
  };
  const names = rows.map(({ server }) => server).sort();
  assert.deepEqual(
    names,
    ['a', 'b', 'c']
      .flatMap((prefix) => Array.from({ length: 20 }, (_, n) => `${prefix}${n}`))
      .sort(),
  );
  assert.deepEqual(readdirSync(join(home, '.mcp-by-hand')), ['logins.json']);
});

test('I4: of two programs whose token has ended, one refreshes it and the other takes what came of that', async () => {
  const { as, server, home } = await loggedIn();
  as.live.clear();
  let uses = 0;
  const issue = as.ways['POST /token']!;
  as.ways['POST /token'] = (heard) => (++uses === 1 ? issue(heard) : refusing('invalid_grant'));
  const two = await Promise.all([
    program({ home }).to(server.url),
    program({ home }).to(server.url),
  ]);
  assert.equal(two.length, 2);
  assert.equal(uses, 1);
  assert.deepEqual(readdirSync(join(home, '.mcp-by-hand')), ['logins.json']);
});

test('I4: a lock that a dead program has left does not stop us', async () => {
  const { as, server, home } = await loggedIn();
  as.live.clear();
  const lock = join(home, '.mcp-by-hand', 'logins.json.refresh');
  writeFileSync(lock, '');
  utimesSync(lock, 0, 0);
  await program({ home }).to(server.url);
  assert.ok(!existsSync(lock));
});

test('I5: to revoke, to remove or to log out drops the tokens, tells the issuer, and does not start the server', async () => {
  for (const args of [
    ['trust', 'revoke', 'demo'],
    ['mcp', 'remove', 'demo'],
    ['mcp', 'logout', 'demo'],
    ['trust', 'reset'],
  ]) {
    const { as, server, home } = await loggedIn();
    const isProject = args[1] === 'reset';
    const servers = { mcpServers: { demo: { type: 'http', url: server.url } } };
    const where = { ...place(isProject ? { '.mcp.json': servers } : {}), home };
    if (!isProject) mkdirSync(join(home, '.claude'));
    if (!isProject) writeFileSync(join(home, '.claude', 'settings.json'), JSON.stringify(servers));
    if (isProject) await runProgram(where, ['trust', 'allow', 'demo']);
    server.log.length = 0;
    const { code, err } = await runProgram(where, args);
    assert.equal(code, 0, err);
    assert.deepEqual(server.log, [], args.join(' '));
    assert.doesNotMatch(
      readFileSync(join(home, '.mcp-by-hand', 'logins.json'), 'utf8'),
      /the-refresh-token|the-client-secret|access-/,
    );
    assert.deepEqual(
      as.asked('/revoke').map(({ form }) => [form.token, form.client_id ?? 'basic']),
      [['the-refresh-token', 'basic']],
    );
  }
});

test('I5: what cannot be told to the issuer is forgotten here all the same', async () => {
  for (const way of ['gone', 'error', 'nonsense'] as const) {
    const { as, server, home } = await loggedIn(
      way === 'nonsense' ? { revocation_endpoint: 'nonsense' } : {},
    );
    if (way === 'gone') await as.stop();
    as.ways['POST /revoke'] = () => refusing('server_error', 500);
    const { logins, store } = program({ home });
    assert.equal(await logins.logOut('demo'), true);
    assert.equal(store.find('demo', server.url), undefined);
    assert.equal(await logins.logOut('demo'), false);
  }
});

test('I5: a program that is running does not use a login that was revoked meanwhile, once it is refused', async () => {
  const { as, server, home } = await loggedIn();
  const { connection } = await program({ home }).to(server.url);
  await program({ home }).logins.logOut('demo');
  as.live.clear();
  as.log.length = 0;
  assert.equal((await rejection(connection.callTool('echo'))).kind, 'auth');
  unasked(as, '/token');
});

test('I5: a login at a company can be taken back, too', async () => {
  const { home, file, make } = kept();
  make().keep(rowOf({ company: { issuer: 'https://idp.example', client: 'i' } }));
  assert.match(readFileSync(file, 'utf8'), /the-id-token/);
  await program({ home, store: make() }).logins.logOut('demo');
  assert.doesNotMatch(readFileSync(file, 'utf8'), /the-id-token/);
});

test('G15: a login at a company that fails closes its listener, and the browser is told', async () => {
  const company = await authorizationServer({
    ways: { 'POST /token': () => refusing('invalid_client') },
  });
  const { as, server } = await loginBetween();
  const { env, opened } = opener(true);
  const oauth = {
    grant: 'id-jag',
    idp: { issuer: company.issuer, clientId: 'i' },
    issuer: as.issuer,
    clientId: 'c',
  };
  // In a process of its own, which is held back by whoever listens.
  const { child, seen } = run('browser-login.ts', [folder(), server.url], {
    ...env,
    OAUTH: JSON.stringify(oauth),
  });
  later(() => child.kill());
  await until(() => seen.output.includes('\n'));
  assert.equal(JSON.parse(seen.output).kind, 'auth');
  const uri = new URL(opened()[0]!.url).searchParams.get('redirect_uri')!;
  assert.equal((await knock(uri)).code, 'ECONNREFUSED');
});
