// Logging in at a terminal: what a person sees, opens, pastes, interrupts, and what stays behind. The browser here is a
// program that agrees; test/real/browser.test.ts takes a real one.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { assertClean } from './help/agent-with-gate.ts';
import {
  authorizationServer,
  locked,
  protectedServer,
  scripted,
  strictCalculator,
  strictIssuer,
  type Scripted,
} from './help/oauth-servers.ts';
import type { Json } from '../mcp.ts';
import { cleanUp, folder, goodServer, later, pause, until } from './help/basics.ts';
import { call, say, startModelServer, type ModelServer } from './help/model-server.ts';
import {
  jsonLines,
  KEYS,
  place,
  readLines,
  run,
  Terminal,
  userServers,
  type Place,
} from './help/terminal.ts';

afterEach(cleanUp);

const demo = { command: process.execPath, args: [goodServer] };
const anthropic = ({ url }: ModelServer) => ({
  ANTHROPIC_API_KEY: 'a-key-for-tests',
  ANTHROPIC_BASE_URL: url,
});
const loginsOf = ({ home }: Place) => join(home, '.mcp-by-hand', 'logins.json');
const read = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8') : '');
const stored = (where: Place): any =>
  JSON.parse(read(loginsOf(where)) || '{"rows":[],"verdicts":[]}');
const tokensIn = (where: Place) => stored(where).rows.filter(({ tokens }: any) => tokens);
/** The address that somebody has to open: whole, on one line, however long it is. */
const shownIn = ({ text }: Terminal) =>
  new URL(/^ {2}(http:\S+)$(?![^]*^ {2}http:)/m.exec(text)![1]!);
const WAITS = /^waiting for the browser, or paste the address: *$/;

/** Goes where it is sent, and keeps the last page. (Node's fetch takes longer than all of that.) */
const BROWSER = `
  const { writeFileSync } = require('node:fs');
  const { get } = require('node:http');
  const [, , first, page] = process.argv;
  const open = (url) => get(url, (answer) => {
    const { location } = answer.headers;
    if (location) return open(new URL(location, url));
    let text = '';
    answer.setEncoding('utf8').on('data', (part) => (text += part));
    answer.on('end', () => (writeFileSync(page, text), process.exit()));
  });
  open(first);
`;

/** A desktop, and what opens addresses there. By default that is a browser whose user agrees to everything. */
function desktop(then = 'agree') {
  const bin = folder();
  const opened = join(bin, 'opened');
  writeFileSync(join(bin, 'browser.cjs'), BROWSER);
  const node = `exec '${process.execPath}' '${bin}/browser.cjs' "$url" '${bin}/page'`;
  const follow = `sed -n 's/.*;url=\\([^"]*\\)".*/\\1/p' "$(echo "\${1#file://}" | sed 's/%20/ /g')" | sed 's/&amp;/\\&/g'`;
  const script = `#!/bin/sh\nurl=$(${follow})\nenv > '${bin}/env'\necho "$url" >> '${opened}'\n${then === 'agree' ? node : then}\n`;
  writeFileSync(join(bin, 'xdg-open'), script, { mode: 0o755 });
  const urls = () =>
    read(opened)
      .split('\n')
      .filter(Boolean)
      .map((url) => new URL(url));
  const path = { PATH: `${bin}:${process.env.PATH}` };
  return {
    env: { ...path, DISPLAY: ':0' },
    bare: path,
    urls,
    page: () => read(join(bin, 'page')),
    bin,
  };
}

/** A calculator behind a login, among the user's servers. */
async function lockedCalculator(more: Json = {}) {
  const { issuer, log } = await strictIssuer();
  const url = await strictCalculator(issuer);
  const calc = { type: 'http', url };
  return { issuer, log, url, calc, where: place({}, userServers({ calc, ...more })) };
}

/** A server that refuses everybody, and knows nobody who could let us in. */
const refusesAll = (): Promise<Scripted> => scripted({ 'POST /mcp': () => locked('Bearer') });

/** Logs in with a browser that agrees. */
async function logIn(where: Place, name = 'calc', { env } = desktop()): Promise<void> {
  const terminal = new Terminal(where, ['mcp', 'login', name], env);
  assert.equal(await terminal.ended(), 0, terminal.text);
}

/** Where the browser of an agreeing user would end. */
async function endOf(url: URL): Promise<string> {
  return (await fetch(url, { redirect: 'manual' })).headers.get('location')!;
}

async function isClosed(address: string): Promise<void> {
  const answers = () =>
    fetch(address).then(
      () => true,
      () => false,
    );
  for (const begin = Date.now(); await answers(); await pause(20))
    if (Date.now() - begin > 30_000) throw new Error(`somebody still listens at ${address}`);
}

/** Nothing lies about that another program would stumble over. */
function isTidy({ home }: Place): void {
  const names = readdirSync(join(home, '.mcp-by-hand'));
  assert.deepEqual(
    names.filter((name) => name.startsWith('logins')),
    ['logins.json'],
  );
}

// ─── mcp login ────────────────────────────────────────────────────────────────────────────────────────────────

test('I9: a login that cannot be kept says so, and exits with 3', async () => {
  const { where } = await lockedCalculator();
  mkdirSync(join(where.home, '.mcp-by-hand'), { mode: 0o700 });
  writeFileSync(join(where.home, '.mcp-by-hand', 'logins.json'), '{', { mode: 0o600 });
  const terminal = new Terminal(where, ['mcp', 'login', 'calc'], desktop().env);
  assert.equal(await terminal.ended(), 3, terminal.text);
  assert.match(
    terminal.text,
    /it is not JSON;\s+restore it, or move it away, and then log in again/,
  );
  assert.match(
    terminal.text,
    /^calc: you are logged in for this run only: that was not written down$/m,
  );
});

test('mcp login: a browser opens, its user agrees, the server is connected; the tokens are private', async () => {
  const { where, log } = await lockedCalculator();
  const { env, urls, page, bin } = desktop();
  const terminal = new Terminal(where, ['mcp', 'login', 'calc'], {
    ...env,
    ANTHROPIC_API_KEY: 'a-key-for-tests',
  });
  assert.equal(await terminal.ended(), 0);
  assert.match(terminal.text, /^calc: you are logged in, 7 tools$/m);
  await until(() => page() !== '');
  assert.match(page(), /<p>You are logged in\. You can close this page\.<\/p>/);
  assert.equal(urls().length, 1);
  assert.match(read(join(bin, 'env')), /^DISPLAY=:0$/m);
  assert.doesNotMatch(read(join(bin, 'env')), /a-key-for-tests/, 'a browser gets none of our keys');

  const file = loginsOf(where);
  assert.deepEqual(
    [file, join(file, '..')].map((path) => statSync(path).mode & 0o777),
    [0o600, 0o700],
  );
  isTidy(where);
  const [{ server, tokens }] = tokensIn(where);
  const [{ form }] = await log('/token');
  assert.equal(server, 'calc');
  for (const secret of [tokens.access, tokens.refresh, form.code, form.code_verifier])
    assert.ok(secret && !terminal.bytes.includes(secret), 'no secret is on the screen');

  const [listed, called] = await Promise.all([
    run(where, ['mcp', 'list']),
    run(where, ['probe', 'calc', '--call', 'add', 'a=2', 'b=40']),
  ]);
  assert.match(listed.out, /^calc: connected · .* 7 tools/m);
  assert.match(called.out, /the call worked:\n    42\n/);
});

test('without a desktop no browser is started: its address is shown whole, and where it ended is pasted', async () => {
  const { where } = await lockedCalculator();
  const { bare, urls } = desktop();
  const terminal = new Terminal(where, ['mcp', 'login', 'calc'], bare, 60);
  await terminal.see(WAITS);
  const shown =
    /^Open this address in a browser:\n {2}http:\S+\nIf it ends at a page that cannot be reached, /m;
  assert.match(terminal.text, shown);
  const end = await endOf(shownIn(terminal));
  const wrong = end.replace(/state=[^&]*/, 'state=another');
  const [notIt, another] = [
    'That is not it: the address of that page begins with',
    'That is the answer to another login.',
  ];
  const without = end.replace(/state=[^&]*&?/, '');
  const odd = [
    ['rubbish', notIt, 1],
    [wrong, another, 1],
    [without, another, 2],
    ['http://', notIt, 2],
    ['', notIt, 3],
  ] as const;
  for (const [text, words, times] of odd) {
    terminal.enter(text);
    await terminal.see(words, times);
    await terminal.see(WAITS);
  }
  assert.equal((await fetch(wrong)).status, 400); // and who brings it by himself gets no further
  assert.equal(tokensIn(where).length, 0);
  terminal.paste(end);
  terminal.press(KEYS.enter);
  assert.equal(await terminal.ended(), 0);
  assert.match(terminal.text, /^calc: you are logged in, 7 tools$/m);
  assert.deepEqual([urls(), tokensIn(where).length], [[], 1]);
});

test('a browser that cannot be started: the address is on the screen, too', async () => {
  const { where } = await lockedCalculator();
  const nothing = { PATH: folder(), DISPLAY: ':0' }; // to open an address with
  const terminal = new Terminal(where, ['mcp', 'login', 'calc'], nothing);
  await terminal.see(WAITS);
  assert.match(terminal.text, /^Your browser was asked to open this address:\n {2}http:\S+$/m);
  const page = await fetch(shownIn(terminal)); // opened by hand
  assert.match(await page.text(), /You are logged in/);
  assert.equal(await terminal.ended(), 0);
});

test("somebody says no: the authorization server's words are shown, as words, and nothing is stored", async () => {
  const { where, issuer } = await lockedCalculator();
  const terminal = new Terminal(where, ['mcp', 'login', 'calc'], desktop('exit 0').env);
  await terminal.see(WAITS);
  const { redirect_uri = '', state = '' } = Object.fromEntries(shownIn(terminal).searchParams);
  const error_description = 'no\x1b]0;owned\x07\x1b[2J\r\u202eevil <script>alert(1)</script>';
  const answer = new URLSearchParams({
    error: 'access_denied',
    error_description,
    state,
    iss: issuer,
  });
  const page = await (await fetch(`${redirect_uri}?${answer}`)).text();
  assert.equal(await terminal.ended(), 3);
  assert.match(
    terminal.text,
    /^MCP server "calc" .*: the authorization server \S+ refused us: .*access_denied:\s+no/m,
  );
  assertClean(terminal.text);
  assert.notEqual(terminal.title.trim(), 'owned');
  assert.match(page, /<p>It did not work\. The terminal says why\.<\/p>/);
  assert.doesNotMatch(page, /script|evil/);
  assert.ok(stored(where).rows.every(({ tokens }: Json) => tokens === undefined)); // we are known there, and no more
  assert.match((await run(where, ['mcp', 'list'])).out, /^calc: needs-auth$/m);
});

test('Ctrl-C while the browser is waited for: 130, the port closed, nothing stored, the terminal free', async () => {
  const { where } = await lockedCalculator();
  const { env, urls } = desktop('exit 0'); // a browser whose user does nothing
  for (const key of [KEYS.ctrlC, KEYS.ctrlD]) {
    const terminal = new Terminal(where, ['mcp', 'login', 'calc'], env);
    await terminal.see(WAITS);
    terminal.type('http://127.0');
    if (key === KEYS.ctrlD) terminal.press(KEYS.ctrlU);
    terminal.press(key);
    assert.equal(await terminal.ended(), 130, key);
    assert.match(terminal.text, /^the login was stopped$/m);
    assert.ok(terminal.bytes.endsWith('\x1b[?2004l'), 'the terminal is given back as it was');
    await isClosed(urls().at(-1)!.searchParams.get('redirect_uri')!);
    assert.equal(tokensIn(where).length, 0);
    isTidy(where);
  }
  await logIn(where); // and it works the next time
});

test('Ctrl-C while the server or the authorization server is silent: 130, at once', async () => {
  const mute = await scripted({}, () => {});
  const slow = await scripted({ 'POST /mcp': () => locked('Bearer') }, () => {});
  const config = ({ origin }: Scripted) => ({ type: 'http', url: `${origin}/mcp` });
  const where = place({}, userServers({ mute: config(mute), slow: config(slow) }));
  await Promise.all(
    [mute, slow].map(async (server, n) => {
      const terminal = new Terminal(where, ['mcp', 'login', ['mute', 'slow'][n]!], desktop().env);
      await until(() => server.log.length === n + 1);
      terminal.press(KEYS.ctrlC);
      assert.equal(await terminal.ended(), 130, terminal.text);
      assert.match(terminal.text, /the login was stopped$/m);
    }),
  );
});

test('mcp login refuses what is unknown, disabled or not approved, and no request reaches the server', async () => {
  const far = await refusesAll();
  const config = { type: 'http', url: `${far.origin}/mcp` };
  const servers = { mine: config, off: { ...config, disabled: true } };
  const where = place({ '.mcp.json': { theirs: config } }, userServers(servers));
  await run(where, ['mcp', 'disable', 'mine']);
  const { env, urls } = desktop();
  const cases: [string, RegExp][] = [
    ['mien', /^no MCP server is called "mien"; did you mean "mine"\?$/m],
    ['mine', /^mine is disabled; to change that: mcp-by-hand mcp enable mine$/m],
    ['off', /^off is disabled/m],
    ['theirs', /^theirs is not approved$/m],
  ];
  for (const [name, words] of cases) {
    const terminal = new Terminal(where, ['mcp', 'login', name], env);
    if (name === 'theirs') {
      await terminal.see(/^Start it\?.*: *$/);
      assert.match(terminal.text, /wants to connect to the MCP server "theirs"[^]*url: "http:/);
      terminal.enter('n');
    }
    assert.equal(await terminal.ended(), 3, name);
    assert.match(terminal.text, words);
  }
  const nothing = await run(where, ['mcp', 'login']);
  assert.deepEqual(
    [nothing.code, /"mcp login" needs the name of a server/.test(nothing.err)],
    [2, true],
  );
  assert.deepEqual([far.log.length, urls()], [0, []]);
});

test('mcp login where there is nothing to log in at: a server of this machine, and one that is away', async () => {
  const gone = await refusesAll();
  await gone.stop();
  const { env, urls } = desktop();
  const where = place({}, userServers({ demo, gone: { type: 'http', url: `${gone.origin}/mcp` } }));
  const [first, second] = ['demo', 'gone'].map(
    (name) => new Terminal(where, ['mcp', 'login', name], env),
  );
  assert.deepEqual([await first!.ended(), await second!.ended()], [0, 4]);
  assert.match(first!.text, /^demo: it wants no login, 2 tools$/m);
  assert.match(second!.text, /^MCP server "gone" .*cannot be reached: nobody listens there/m);
  assert.deepEqual(urls(), []);
});

test('mcp login once more: it lets us in as we are, until a call lacks rights; then we get those', async () => {
  const { where } = await lockedCalculator();
  await logIn(where);
  const [desk, again] = [desktop(), new Terminal(where, ['mcp', 'login', 'calc'])];
  assert.equal(await again.ended(), 0);
  assert.match(
    again.text,
    /^calc: you were logged in before \(for another account, first: .* mcp logout calc\), 7 tools$/m,
  );
  const greet = () => run(where, ['probe', 'calc', '--call', 'greet', 'name=Ada']);
  const lacking = await greet();
  assert.equal(lacking.code, 3);
  assert.match(
    lacking.out,
    /wants a login with more rights \(calculator:write\)\. .* mcp-by-hand mcp login calc$/m,
  );
  const terminal = new Terminal(where, ['mcp', 'login', 'calc'], desk.env);
  assert.equal(await terminal.ended(), 0);
  assert.match(desk.urls()[0]?.searchParams.get('scope') ?? '', /\bcalculator:write\b/);
  assert.match((await greet()).out, /the call worked:\n    Hello, Ada!/);
});

test('without a terminal no login begins: 3 and one line from mcp login, a line from a piped chat', async () => {
  const far = await refusesAll();
  const where = place({}, userServers({ far: { type: 'http', url: `${far.origin}/mcp` } }));
  const { env, urls } = desktop();
  const words = 'a login needs a terminal: somebody has to agree to it in a browser';
  const ends = await Promise.all(
    ['', 'y\n'].map((input) => run(where, ['mcp', 'login', 'far'], { env, input })),
  );
  for (const { code, out, err } of ends) assert.deepEqual([code, out, err], [3, '', `${words}\n`]);
  assert.equal(far.log.length, 0);
  const inJson = await run(where, ['mcp', 'login', 'far', '--json'], { env });
  assert.deepEqual(
    [inJson.code, JSON.parse(inJson.err)],
    [3, { type: 'error', kind: 'auth', message: words }],
  );
  const chat = await run(where, [], { env, input: '/mcp login far\n/cost\n' });
  assert.match(chat.err, new RegExp(`^${words}$`, 'm'));
  assert.match(chat.out, /^rehearsal: no tokens/m, 'the chat goes on');
  assert.deepEqual([far.asked('POST /register').length, urls()], [0, []]);
});

// ─── In a chat ────────────────────────────────────────────────────────────────────────────────────────────────

test('/mcp login and logout: from the next prompt on the model has the tools, or has them no more', async () => {
  const model = await startModelServer([
    say('none yet'),
    call('mcp__calc__add', { a: 2, b: 40 }),
    say('It is 42.'),
    say('none any more'),
  ]);
  const { where, log } = await lockedCalculator({ demo });
  const { env, urls } = desktop();
  const args = ['--allow', 'mcp__calc__*', 'what have you got?'];
  const terminal = new Terminal(where, args, { ...env, ...anthropic(model) });
  const enter = async (line: string, seen: string | RegExp) => {
    await terminal.ready();
    terminal.enter(line);
    await terminal.see(seen);
  };
  await terminal.see('none yet');
  assert.match(
    terminal.text,
    /^! MCP server "calc" .* wants a login\. To log in: \/mcp login calc in a chat, or /m,
  );
  assert.equal(urls().length, 0, 'nobody has asked for a browser');
  await enter('/mcp login calc', /^calc: connected · .* 7 tools/);
  await enter('add 2 and 40', 'It is 42.');
  assert.match(terminal.text, /^✓ mcp__calc__add\(a: 2, b: 40\)/m);
  const { tokens } = tokensIn(where)[0];
  await enter('/mcp logout calc', /^calc: needs-auth$/);
  assert.deepEqual(
    (await log('/revoke')).map(({ form }) => form.token),
    [tokens.refresh],
  );
  assert.equal(tokensIn(where).length, 0);
  await enter('and now?', 'none any more');
  await enter('/mcp logout calc', 'you are not logged in at calc');
  await terminal.ready();
  terminal.enter('/exit');
  assert.equal(await terminal.ended(), 0);
  const isOurs = ({ name }: Json) => `${name}`.startsWith('mcp__calc__');
  const offered = model.requests.map(({ body }) => body.tools.filter(isOurs).length);
  assert.deepEqual([offered, model.problems], [[0, 7, 7, 0], []]);
  assert.ok(!terminal.bytes.includes(tokens.access) && !terminal.bytes.includes(tokens.refresh));
});

test('/mcp logout where nobody can be told to revoke: the token is not used any more all the same', async () => {
  const as = await authorizationServer({ metadata: { revocation_endpoint: undefined } });
  const { url, called } = await protectedServer({ as });
  const where = place({}, userServers({ far: { type: 'http', url } }));
  const terminal = new Terminal(where, [], desktop().env);
  await terminal.ready();
  terminal.enter('/mcp login far');
  await terminal.see(/^far: connected · .* 1 tool /);
  await terminal.ready();
  const before = called('tools/list').length;
  terminal.enter('/mcp logout far');
  await terminal.see(/^far: needs-auth$/);
  await terminal.ready();
  assert.deepEqual(
    [called('tools/list').length, tokensIn(where).length, as.live.size],
    [before, 0, 1],
  );
});

test('/mcp login after a call that lacks rights: the same call works', async () => {
  const greet = call('mcp__calc__greet', { name: 'Ada' });
  const model = await startModelServer([greet, say('Not allowed yet.'), greet, say('Done.')]);
  const { where } = await lockedCalculator();
  const desk = desktop();
  await logIn(where, 'calc', desk);
  const terminal = new Terminal(where, ['--allow', 'mcp__calc__*', 'greet Ada'], {
    ...desk.env,
    ...anthropic(model),
  });
  await terminal.see('Not allowed yet.');
  assert.match(
    terminal.text,
    /^ {2}MCP server "calc" .* wants a login with more rights \(calculator:write\)/m,
  );
  await terminal.ready();
  terminal.enter('/mcp login calc');
  await terminal.see(/^calc: connected/);
  await terminal.ready();
  terminal.enter('greet Ada');
  await terminal.see('Done.');
  assert.match(terminal.text, /^✓ mcp__calc__greet\(name: "Ada"\)/m);
  const scopes = desk.urls().map((url) => url.searchParams.get('scope')!.split(' ').sort());
  const [reads, writes, stays] = ['calculator:read', 'calculator:write', 'offline_access'];
  assert.deepEqual(scopes, [
    [reads, stays],
    [reads, writes, stays],
  ]);
});

test('Ctrl-C during /mcp login: back at the prompt, the chat goes on, and a second /mcp login works', async () => {
  const { where } = await lockedCalculator({ demo });
  const terminal = new Terminal(where, ['--allow', 'mcp__demo__add'], desktop().bare);
  await terminal.ready();
  terminal.enter('/mcp login calc');
  await terminal.see(WAITS);
  const first = shownIn(terminal).searchParams.get('redirect_uri')!;
  terminal.type('half an addr');
  terminal.press(KEYS.ctrlC);
  await terminal.ready(); // and the half address is not the beginning of a prompt
  await isClosed(first);
  terminal.enter('add 2 and 40');
  await terminal.see(/^✓ mcp__demo__add\(a: 2, b: 40\)/);
  await terminal.ready();
  terminal.enter('/mcp login calc');
  await terminal.see(WAITS);
  const url = shownIn(terminal);
  terminal.enter(await endOf(url));
  await terminal.see(/^calc: connected · .* 7 tools/);
  await terminal.ready();
  await isClosed(url.searchParams.get('redirect_uri')!);
  terminal.press(KEYS.up); // what was pasted is no prompt to come back to
  await terminal.see(/^› \/mcp login calc$/, 3);
  terminal.press(KEYS.ctrlC, KEYS.ctrlD);
  assert.deepEqual([await terminal.ended(), tokensIn(where).length], [0, 1]);
});

test('/mcp login for what is unknown, disabled or of this machine: nobody is asked for a login', async () => {
  const far = await refusesAll();
  const where = place({}, userServers({ demo, far: { type: 'http', url: `${far.origin}/mcp` } }));
  await run(where, ['mcp', 'disable', 'far']);
  const { env, urls } = desktop();
  const terminal = new Terminal(where, [], env);
  const enter = async (line: string, seen: string | RegExp) => {
    await terminal.ready();
    terminal.enter(line);
    await terminal.see(seen);
  };
  await enter('/mcp login fra', 'no server is called fra; did you mean far?');
  await enter('/mcp login', /^write \/mcp, .*\blogin or logout\b/);
  await enter('/mcp login far', /^far: disabled$/);
  await enter('/mcp login demo', /^demo: connected/);
  await terminal.ready();
  assert.deepEqual([far.log.length, urls()], [0, []]);
});

test("/mcp login for a project's server: it is asked about once, and after a no nothing reaches it", async () => {
  const far = await refusesAll();
  const where = place({ '.mcp.json': { far: { type: 'http', url: `${far.origin}/mcp` } } });
  const { env, urls } = desktop();
  const terminal = new Terminal(where, [], env);
  await terminal.ready();
  terminal.enter('/mcp login far');
  await terminal.see(/^Start it\?.*: *$/);
  terminal.enter('n');
  await terminal.see(/^far: pending$|^Start it\?.*: *$/);
  assert.equal(terminal.text.split('wants to connect to the MCP server').length, 2);
  await terminal.ready();
  assert.deepEqual([far.log.length, urls()], [0, []]);
});

// ─── Servers that want a login, and nobody logs in ────────────────────────────────────────────────────────────────

test('-p goes on with the other servers, and says once on stderr what is missing', async () => {
  const { where } = await lockedCalculator({ demo });
  const { env, urls } = desktop();
  const flags = ['--allow', 'mcp__demo__add'];
  const text = await run(where, [...flags, '-p', 'add 2 and 40'], { env });
  const inJson = await run(where, [...flags, '--json', 'add 2 and 40'], { env });
  assert.deepEqual([text.code, inJson.code], [0, 0]);
  assert.match(text.out, /\b42\b/);
  assert.ok(
    jsonLines(inJson.out).some(
      ({ type, name }) => type === 'tool_end' && name === 'mcp__demo__add',
    ),
  );
  const warning =
    /^! MCP server "calc" .* wants a login\. To log in: \/mcp login calc in a chat, or .* login calc\n$/;
  for (const { err } of [text, inJson]) assert.match(err, warning);
  assert.deepEqual(urls(), []);
});

test('what a server said counts for 15 minutes, also for the next program; then it is asked again', async () => {
  const far = await refusesAll();
  const where = place({}, userServers({ far: { type: 'http', url: `${far.origin}/mcp` } }));
  const states = async () => {
    const { out } = await run(where, ['mcp', 'list', '--json']);
    return jsonLines(out)[0].map(({ state }: any) => state);
  };
  assert.deepEqual(await states(), ['needs-auth']);
  const once = far.log.length;
  assert.ok(once > 0);
  assert.deepEqual(await states(), ['needs-auth']);
  assert.match(
    (await run(where, ['-p', 'hello'])).err,
    /^! MCP server "far" .* said at .* that it wants a login\./,
  );
  assert.equal(far.log.length, once, 'nobody has asked it since');
  const age = (ms: number) => {
    const content = stored(where);
    content.verdicts[0].at -= ms;
    writeFileSync(loginsOf(where), JSON.stringify(content), { mode: 0o600 });
  };
  age(14 * 60_000);
  await states();
  assert.equal(far.log.length, once);
  age(60_000);
  await states();
  assert.equal(far.log.length, 2 * once);
  const terminal = new Terminal(where);
  await terminal.ready();
  terminal.enter('/mcp');
  await terminal.see(/^far: needs-auth$/);
  assert.equal(far.log.length, 2 * once);
  await terminal.ready();
  terminal.enter('/mcp reconnect far'); // whoever says so wants it to be asked
  await terminal.see(/^far: needs-auth$/, 2);
  assert.equal(far.log.length, 3 * once);
});

// ─── The address that the browser comes back to ───────────────────────────────────────────────────────────────────

/** A program that listens, and its port. */
async function taken(host = '127.0.0.1'): Promise<{ port: number; leave(): Promise<void> }> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, host, done));
  const leave = () => new Promise<void>((done) => void server.close(() => done()));
  later(leave);
  return { port: (server.address() as AddressInfo).port, leave };
}

test('"callbackPort" and "redirectUri": that port, or a clear error if another program has it', async () => {
  const { port, leave } = await taken();
  const { calc } = await lockedCalculator();
  const redirectUri = `http://localhost:${port}/callback`;
  const fixedUri = `http://127.0.0.1:${port}/callback`;
  const servers = {
    fixed: { ...calc, oauth: { callbackPort: port } },
    named: { ...calc, oauth: { redirectUri } },
  };
  const where = place({}, userServers(servers));
  const { env, urls } = desktop();
  const refused = new Terminal(where, ['mcp', 'login', 'fixed'], env);
  assert.equal(await refused.ended(), 3);
  assert.ok(refused.text.includes(fixedUri) && /another program/.test(refused.text), refused.text);
  assert.deepEqual(urls(), []);
  await leave();
  for (const name of ['fixed', 'named']) await logIn(where, name, { ...desktop(), env });
  assert.deepEqual(
    urls().map((url) => url.searchParams.get('redirect_uri')),
    [fixedUri, redirectUri],
  );
});

test('"redirectUri" with localhost: a program that has the port at one of its addresses is in the way', async () => {
  const { port } = await taken();
  const { calc } = await lockedCalculator();
  const oauth = { redirectUri: `http://localhost:${port}/callback` };
  const { env, urls } = desktop('exit 0');
  const terminal = new Terminal(
    place({}, userServers({ calc: { ...calc, oauth } })),
    ['mcp', 'login', 'calc'],
    env,
  );
  await terminal.see(/another program|^waiting for the browser/);
  assert.deepEqual(urls(), [], "nobody is sent to a port that is another's");
  assert.equal(await terminal.ended(), 3);
});

// ─── Secrets, and what becomes of them ────────────────────────────────────────────────────────────────────────────

test('mcp get, mcp list, probe, --wire, --trace show no secret: no token, nothing of the configuration', async () => {
  const { issuer, url, calc } = await lockedCalculator();
  const oauth = {
    issuer,
    grant: 'client_credentials',
    clientId: 'machine',
    clientSecret: 'machine-secret',
    assertion: 'signed-by-a-platform',
    privateKeyFile: '/no/such/file',
    idp: { issuer, clientId: 'x', clientSecret: 'company-secret', idToken: 'who-the-user-is' },
  };
  const { privateKeyFile, ...bySecret } = oauth;
  const servers = {
    calc,
    machine: { type: 'http', url, oauth: bySecret },
    odd: { type: 'http', url, oauth },
  };
  const where = place({}, userServers(servers));
  await logIn(where);
  const trace = join(where.cwd, 'trace.jsonl');
  const runs = [
    ['mcp', 'list'],
    ['mcp', 'list', '--json'],
    ['mcp', 'get', 'odd'],
    ['mcp', 'get', 'odd', '--json'],
    ['mcp', 'get', 'calc'],
    ['probe', 'machine', '--wire', '--json'],
    ['probe', 'odd'],
    ['-p', '--wire', '--trace', trace, 'hello'],
  ];
  const shown: string[] = [];
  for (const args of runs) {
    const { out, err } = await run(where, args);
    shown.push(out + err);
  }
  assert.match(shown[0]!, /^machine: connected/m, 'its secret is of use');
  assert.match(shown[2]!, /clientId/);
  assert.ok(readLines(trace).length > 1);
  const all = [...shown, read(trace)].join('\n');
  const kept = stored(where).rows.flatMap(({ tokens: { access, refresh } }: any) => [
    access,
    refresh,
  ]);
  const tokens = kept.filter(Boolean);
  assert.ok(tokens.length >= 3);
  const given = ['machine-secret', 'signed-by-a-platform', 'company-secret', 'who-the-user-is'];
  for (const secret of [...tokens, ...given]) assert.ok(!all.includes(secret), secret);
});

test('mcp logout, mcp remove, trust revoke, trust reset: tokens are forgotten here, and revoked there', async () => {
  const { log, calc } = await lockedCalculator();
  const where = place(
    { '.mcp.json': { a: calc, b: calc } },
    userServers({ mine: calc, other: calc }),
  );
  for (const name of ['a', 'b']) assert.equal((await run(where, ['trust', 'allow', name])).code, 0);
  for (const name of ['a', 'b', 'mine', 'other']) await logIn(where, name);
  const left = () => tokensIn(where).map(({ server }: any) => server);
  assert.deepEqual(left(), ['a', 'b', 'mine', 'other']);
  const ways: [string[], RegExp][] = [
    [['mcp', 'logout', 'mine'], /^logged out of mine$/m],
    [['mcp', 'remove', 'other'], /^removed other from /m],
    [['trust', 'revoke', 'a'], /^revoked: 1 decision about a$/m],
    [['trust', 'reset'], /^revoked: 1 decision about /m],
  ];
  for (const [n, [args, words]] of ways.entries()) {
    const refresh = stored(where).rows.map(({ tokens }: any) => tokens.refresh);
    const { code, out } = await run(where, args);
    assert.deepEqual([code, words.test(out)], [0, true], out);
    const revoked = (await log('/revoke')).map(({ form }) => form.token);
    assert.deepEqual(
      [left().length, revoked.length, refresh.includes(revoked.at(-1))],
      [3 - n, n + 1, true],
    );
  }
  const twice = await run(where, ['mcp', 'logout', 'mine']);
  assert.deepEqual([twice.code, twice.err], [3, 'you are not logged in at "mine"\n']);
});

test('a probe asks the server whatever it said a moment ago; a list tells where we are logged in, and until then what it said', async () => {
  const { where } = await lockedCalculator();
  const list = async () => (await run(where, ['mcp', 'list'])).out;
  assert.match(await list(), /"calc" .* wants a login\. /);
  assert.match(await list(), /"calc" .* said at .* that it wants a login\. /);
  const { code, out } = await run(where, ['probe', 'calc']);
  assert.equal(code, 3);
  assert.match(out, /"calc" .* wants a login\. /);
  await logIn(where);
  assert.match(
    await list(),
    /^ {2}logged in at http:\/\/127\.0\.0\.1:\d+ \(calculator:read offline_access\)$/m,
  );
});
