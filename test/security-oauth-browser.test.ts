// Attack cases G of the login in a browser, by their ids: what is opened, and who comes back. G4,
// G10, G11, G13 and G14 of the bare transport are in the tests of chapter 20.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import net from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { ScriptedPerson } from '../chapters/17-the-gate/person.ts';
import { openBrowser } from '../chapters/19-the-terminal/person-at-terminal.ts';
import { Callback, throughBrowserOf } from '../chapters/21-authorization/browser.ts';
import { DONE, FAILED } from '../chapters/21-authorization/oauth.ts';
import type { Json } from '../mcp.ts';
import { type Knock, knock, loginBetween, opener, unasked } from './help/hostile-login.ts';
import {
  authorizationServer,
  program,
  protectedServer,
  said,
  sentBack,
} from './help/oauth-servers.ts';
import { cleanUp, folder, later, run, until } from './help/basics.ts';

afterEach(cleanUp);

/** Somebody at a terminal without a desktop, and what they are shown. Nothing can be opened: there are no programs. */
function desk(signal = new AbortController().signal) {
  const names = ['DISPLAY', 'WAYLAND_DISPLAY', 'BROWSER', 'PATH'];
  const before = names.map((name) => [name, process.env[name]] as const);
  later(() =>
    before.forEach(([name, value]) =>
      value === undefined ? delete process.env[name] : (process.env[name] = value),
    ),
  );
  for (const name of names) delete process.env[name];
  process.env.PATH = folder();
  const addresses: URL[] = [];
  const shown: string[] = [];
  const look = ({ lines }: { lines: string[] }) => {
    shown.push(...lines);
    const address = lines.map((line) => line.trim()).find((line) => /^https?:/.test(line));
    if (address) addresses.push(new URL(address));
    return new Promise<undefined>(() => {});
  };
  const openUserAgent = throughBrowserOf(new ScriptedPerson([look], openBrowser), signal);
  const address = async () => (
    await until(() => addresses.length > 0, 'an address for the browser'), addresses.at(-1)!
  );
  return { openUserAgent, address, shown };
}

// ─── G1, G2: what is opened ───────────────────────────────────────────────────────────────────────────────────

const NO_PAGES = [
  'javascript:alert(1)',
  'javascript://127.0.0.1/%0aalert(1)',
  'data:text/html,<script>alert(1)</script>',
  'file:///etc/passwd',
  'vbscript:msgbox(1)',
  'ssh://127.0.0.1/x',
  'http://as.example/authorize',
  'http://127.0.0.1.nip.example/authorize',
  'ftp://127.0.0.1/',
  'x-apple.systempreferences:',
  '--version',
  '',
  'https://good.example@as.example/',
  'HTTP://AS.EXAMPLE/',
];

test('G1: an authorization endpoint that is no page is not opened, and nothing else happens either', async () => {
  const sets = await Promise.all(
    NO_PAGES.map((address) => loginBetween({ metadata: { authorization_endpoint: address } })),
  );
  const good = await loginBetween();
  const { env, opened } = opener(true);
  const urls = [...sets, good].map(({ server }) => server.url);
  const { code, output } = await run('browser-login.ts', [folder(), ...urls], env).ended;
  const ends = output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.equal(code, 0, output);
  assert.deepEqual(
    ends.map(({ kind }) => kind),
    [...NO_PAGES.map(() => 'auth'), 'done'],
    output,
  );
  assert.equal(opened().length, 1, 'the good one');
  assert.ok(opened()[0]!.url.startsWith(`${good.as.issuer}/authorize?`));
  for (const { as } of sets) unasked(as, '/register', '/token', '/authorize');
});

test('G1: whoever asks for it, a browser is sent to nothing but pages', async () => {
  const { env, opened } = opener();
  const { PATH, DISPLAY, HOME } = process.env;
  const before = { PATH, DISPLAY, HOME };
  later(() =>
    Object.entries(before).forEach(([name, value]) =>
      value === undefined ? delete process.env[name] : (process.env[name] = value),
    ),
  );
  Object.assign(process.env, env);
  for (const address of NO_PAGES.filter((each) => URL.canParse(each) && !each.includes('@')))
    assert.throws(() => openBrowser(new URL(address)), /a browser is not sent to/, address);
  if (process.platform !== 'linux') return; // only there is `xdg-open` ours
  assert.ok(openBrowser(new URL('http://127.0.0.1:1/last')));
  await until(() => opened().length > 0);
  assert.deepEqual(
    opened().map(({ url }) => url),
    ['http://127.0.0.1:1/last'],
  );
});

test('G2, G40: an address with everything that a shell would act on: no shell acts on it, and it is in no argument', async () => {
  if (process.platform !== 'linux') return;
  const marker = join(folder(), 'marker');
  const evil = `a=$(touch '${marker}')&b=\`touch ${marker}\`;touch ${marker}|touch ${marker}&&touch ${marker}"'&c=%0atouch%20${marker}&d=$IFS\${HOME}>${marker}&e=\\\\x`;
  const as = await authorizationServer();
  as.metadata.authorization_endpoint = `${as.issuer}/authorize?${evil}`;
  const server = await protectedServer({ as });
  const { env, opened } = opener(true);
  const secret = { ANTHROPIC_API_KEY: 'a-key-for-tests', MY_TOKEN: 'a-token-for-tests' };
  const { code, output } = await run('browser-login.ts', [folder(), server.url], {
    ...env,
    ...secret,
  }).ended;
  assert.deepEqual([code, output], [0, '{"kind":"done"}\n']);
  const [{ args, url, mode, command, env: seen }] = opened() as [ReturnType<typeof opened>[number]];
  assert.equal(args.length, 1);
  assert.match(args[0]!, /^file:\/\/\/[\w.%/-]+\/\.mcp-by-hand\/open\/result-\d+-page\.html$/);
  const { a, b, state } = Object.fromEntries(new URL(url).searchParams);
  assert.equal(mode, 0o600);
  assert.ok(!command.includes(state!) && !command.includes('authorize'), command);
  assert.ok(!existsSync(new URL(args[0]!)), 'it ends with the program');
  assert.equal(a, `$(touch '${marker}')`);
  assert.ok(b!.includes(`;touch ${marker}|touch`) && state);
  assert.ok(!existsSync(marker));
  assert.equal(seen.DISPLAY, ':0');
  assert.deepEqual(
    [seen.ANTHROPIC_API_KEY, seen.MY_TOKEN],
    [undefined, undefined],
    'and it sees no keys',
  );
});

test('G2: what stands in an authorization endpoint cannot take the place of what we ask', async () => {
  const { as, login, user } = await loginBetween();
  const evil = [
    'client_id',
    'redirect_uri',
    'state',
    'code_challenge',
    'code_challenge_method',
    'resource',
    'response_type',
  ];
  as.metadata.authorization_endpoint = `${as.issuer}/authorize?x=1&${evil.map((name) => `${name}=evil&${name}=worse`).join('&')}#evil`;
  await login();
  const all = user.visits[0]!.searchParams;
  for (const name of evil)
    assert.ok(all.getAll(name).length === 1 && !/evil|worse/.test(all.get(name)!), name);
  assert.equal(all.get('x'), '1');
});

// ─── G6: who sent the browser back ────────────────────────────────────────────────────────────────────────────

/** The browser comes back with these words; `issuer` stands for the right one. */
async function comeBack(told: (issuer: string) => Record<string, string>, metadata: Json) {
  const given = await loginBetween({ metadata });
  given.as.ways['GET /authorize'] = ({ query }) => sentBack(query, told(given.as.issuer));
  return given;
}

test('G6: an answer from another issuer, or from nobody although all are named, is not used', async () => {
  const says = { authorization_response_iss_parameter_supported: true };
  const silent = { authorization_response_iss_parameter_supported: undefined };
  const wrong = ['https://evil.example', '', 'null'];
  const near = (issuer: string) => [
    `${issuer}/`,
    issuer.toUpperCase(),
    issuer.replace('127.0.0.1', 'localhost'),
    ` ${issuer}`,
    encodeURIComponent(issuer),
  ];
  const rows: [told: (issuer: string) => Record<string, string>, metadata: Json][] = [
    [() => ({}), says],
    ...[says, silent, { authorization_response_iss_parameter_supported: false }].flatMap(
      (metadata): typeof rows => [
        ...wrong.map((iss): (typeof rows)[number] => [() => ({ iss }), metadata]),
        ...near('').map((_, n): (typeof rows)[number] => [
          (issuer) => ({ iss: near(issuer)[n]! }),
          metadata,
        ]),
      ],
    ),
  ];
  for (const [told, metadata] of rows)
    for (const outcome of [
      { code: 'a-code-of-theirs' },
      { error: 'EVIL_WORDS', error_description: 'call EVIL_NUMBER' },
    ] as Record<string, string>[]) {
      const { as, refusal, user, client, server } = await comeBack(
        (issuer) => ({ ...outcome, ...told(issuer) }),
        metadata,
      );
      const error = await refusal();
      assert.match(error.message, /does not come from there/);
      assert.doesNotMatch(error.message, /EVIL|a-code/);
      unasked(as, '/token');
      assert.deepEqual(user.words, [FAILED]);
      assert.equal(client.row(server.url)?.tokens, undefined);
    }
});

test('G6: from the right one it is used, also where it is not said or not promised', async () => {
  for (const [isTold, isPromised] of [
    [true, true],
    [true, false],
    [false, false],
  ]) {
    const metadata = { authorization_response_iss_parameter_supported: isPromised };
    const { login, as, user } = await comeBack(
      (iss) => ({ code: 'c', ...(isTold && { iss }) }),
      metadata,
    );
    await login();
    assert.equal(as.asked('/token')[0]!.form.code, 'c');
    assert.deepEqual(user.words, [DONE]);
    const refused = await comeBack(
      (iss) => ({
        error: 'access_denied',
        error_description: 'you said no',
        ...(isTold && { iss }),
      }),
      metadata,
    );
    assert.match((await refused.refusal()).message, /access_denied: you said no/);
    unasked(refused.as, '/token');
  }
});

// ─── G7, G15: the address that the browser comes back to ──────────────────────────────────────────────────────

/** A login that waits for the browser, and everything around it. */
async function waiting(
  options: Parameters<typeof authorizationServer>[0] = {},
  signal?: AbortSignal,
) {
  const as = await authorizationServer(options);
  const server = await protectedServer({ as });
  const { openUserAgent, address, shown } = desk(signal);
  const client = program({ openUserAgent });
  const login = client.to(server.url).then(
    (opened) => ({ opened, error: undefined }),
    (error) => ({ opened: undefined, error }),
  );
  const url = await address();
  const { redirect_uri: uri = '', state = '' } = Object.fromEntries(url.searchParams);
  const right = { code: 'the-right-code', state, iss: as.issuer };
  return { as, server, client, login, url, uri, state, right, shown };
}

test('G7: whatever else knocks is told 400; its code is not used; the wait goes on, and the right answer counts', async () => {
  const { as, uri, state, right, login } = await waiting();
  const evil = { code: 'an-evil-code', iss: as.issuer };
  const others: [why: string, knock: Knock][] = [
    ['no state', { query: evil }],
    ['an empty state', { query: { ...evil, state: '' } }],
    ['another state', { query: { ...evil, state: 'x'.repeat(43) } }],
    ['a part of it', { query: { ...evil, state: state.slice(0, -1) } }],
    ['more than it', { query: { ...evil, state: `${state}x` } }],
    ['another case', { query: { ...evil, state: state.toUpperCase() } }],
    ['the literal "undefined"', { query: { ...evil, state: 'undefined' } }],
    ['two states', { path: `/callback?state=x&state=${state}&code=an-evil-code` }],
    ['an error without state', { query: { error: 'access_denied' } }],
    ['another path', { path: `/other?${new URLSearchParams({ ...evil, state })}` }],
    ['a path below', { path: `/callback/x?${new URLSearchParams({ ...evil, state })}` }],
    ['the root', { path: `/?${new URLSearchParams({ ...evil, state })}` }],
    ...['POST', 'PUT', 'HEAD', 'OPTIONS', 'DELETE'].map((method): [string, Knock] => [
      method,
      { method, query: { ...evil, state } },
    ]),
    ...[
      'evil.test',
      'localhost',
      `localhost:${new URL(uri).port}`,
      '127.0.0.1',
      '127.0.0.1:1',
      `127.0.0.1.evil.test:${new URL(uri).port}`,
    ].map((host): [string, Knock] => [`Host: ${host}`, { host, query: { ...evil, state } }]),
    [
      'another host in the address',
      { path: `http://evil.test/callback?${new URLSearchParams({ ...evil, state })}` },
    ],
  ];
  for (const [why, each] of others) {
    const { status, body } = await knock(uri, each);
    assert.equal(status, 400, why);
    assert.doesNotMatch(body, /evil|code/, why);
  }
  unasked(as, '/token');
  const answer = await knock(uri, { query: right });
  assert.equal(answer.status, 200);
  assert.ok((await login).opened);
  assert.deepEqual(
    as.asked('/token').map(({ form }) => form.code),
    ['the-right-code'],
  );
});

test('G7, G15: an answer counts once: a second one is told 400 while the first is used, and nobody listens afterwards', async () => {
  let release = () => {};
  const held = new Promise<void>((done) => (release = done));
  const { as, uri, right, login } = await waiting({
    ways: { 'POST /token': async () => (await held, said(as.issue())) },
  });
  const first = knock(uri, { query: right });
  await until(() => as.asked('/token').length > 0);
  for (const query of [right, { ...right, code: 'another-code' }])
    assert.equal((await knock(uri, { query })).status, 400);
  release();
  const { status, body } = await first;
  assert.deepEqual([status, body.includes(DONE)], [200, true]);
  assert.ok((await login).opened);
  assert.deepEqual(
    as.asked('/token').map(({ form }) => form.code),
    ['the-right-code'],
  );
  assert.equal((await knock(uri, { query: right })).code, 'ECONNREFUSED');
});

test('G7: every login has a state, a verifier and an address of its own', async () => {
  const seen = new Set<string>();
  for (let n = 0; n < 5; n++) {
    const { as, login, user } = await loginBetween();
    await login();
    const { state = '', code_challenge = '' } = user.asked();
    const { code_verifier = '' } = as.asked('/token')[0]!.form;
    for (const word of [state, code_verifier])
      assert.ok(Buffer.from(word, 'base64url').length >= 32);
    [state, code_challenge, code_verifier].forEach((word) => seen.add(word));
  }
  assert.equal(seen.size, 15);
});

test('G7: an answer that is pasted needs the right state, too', async () => {
  const as = await authorizationServer();
  const server = await protectedServer({ as });
  desk();
  const lines: string[] = [];
  const pastes = [
    '',
    'nonsense',
    'the-right-code',
    'javascript:1',
    'http://127.0.0.1/callback?code=evil',
    'http://127.0.0.1/callback?code=evil&state=x',
  ];
  const wrong = pastes.length;
  let questions = 0;
  const paste = ({ lines: words }: { lines: string[] }) => {
    questions++;
    lines.push(...words);
    const url = new URL(lines[1]!.trim());
    const { redirect_uri = '', state = '' } = Object.fromEntries(url.searchParams);
    const right = new URL(redirect_uri);
    for (const [name, value] of Object.entries({ state, code: 'the-right-code', iss: as.issuer }))
      right.searchParams.set(name, value);
    return pastes.shift() ?? right.href;
  };
  const user = new ScriptedPerson(Array(wrong + 1).fill(paste), openBrowser);
  const openUserAgent = throughBrowserOf(user, new AbortController().signal);
  await program({ openUserAgent }).to(server.url);
  assert.equal(questions, wrong + 1, 'one more than wrong answers');
  assert.deepEqual(
    as.asked('/token').map(({ form }) => form.code),
    ['the-right-code'],
  );
});

// ─── G18: a callback that says a thing twice, or comes from elsewhere ─────────────────────────

test('G18: a callback that names a thing twice is refused, in whatever order; the wait goes on', async () => {
  const { as, uri, state, right, login } = await waiting();
  const twice = (name: string, value: string, isFirst: boolean) => {
    const rest = Object.entries(right).filter(([each]) => each !== name);
    const own = (right as Record<string, string>)[name] ?? value;
    const both = isFirst
      ? [
          [name, own],
          [name, value],
        ]
      : [
          [name, value],
          [name, own],
        ];
    return { path: `/callback?${new URLSearchParams([...rest, ...both] as [string, string][])}` };
  };
  const values = { state: 'x', code: 'an-evil-code', iss: 'https://evil.example', error: 'x' };
  for (const [name, value] of Object.entries(values))
    for (const isFirst of [true, false])
      for (const again of [value, (right as Record<string, string>)[name] ?? '', '']) {
        const { status } = await knock(uri, twice(name, again, isFirst));
        assert.equal(status, 400, `${name} ${again}`);
      }
  const spelled = `/callback?${new URLSearchParams(right)}&c%6fde=an-evil-code`;
  assert.equal((await knock(uri, { path: spelled })).status, 400);
  for (const origin of ['https://evil.example', 'null', 'http://127.0.0.1:1'])
    assert.equal((await knock(uri, { query: right, more: { origin } })).status, 400, origin);
  unasked(as, '/token');
  assert.equal((await knock(uri, { query: { ...right, state } })).status, 200);
  assert.ok((await login).opened);
  assert.deepEqual(
    as.asked('/token').map(({ form }) => form.code),
    ['the-right-code'],
  );
});

test('G18: with the right state and another issuer it is over, and nothing is redeemed', async () => {
  const { as, uri, right, login } = await waiting();
  const wrong = { ...right, iss: 'https://evil.example' };
  assert.equal((await knock(uri, { query: wrong })).status, 200);
  assert.match((await login).error.message, /does not come from there/);
  assert.equal((await knock(uri, { query: right })).code, 'ECONNREFUSED');
  unasked(as, '/token');
});

test('G18: an address that is pasted is ours, and says everything once; whoever brings the answer', async () => {
  const as = await authorizationServer();
  const server = await protectedServer({ as });
  desk();
  const wrong = [
    (right: URL) => right.href.replace('127.0.0.1', 'evil.example'),
    (right: URL) => right.href.replace('http:', 'https:'),
    (right: URL) => right.href.replace('/callback', '/other'),
    (right: URL) => right.href.replace(/:\d+/, ':1'),
    (right: URL) => `${right.href}&code=an-evil-code`,
    (right: URL) => `${right.href}&state=x`,
  ];
  const paste = ({ lines: [, line = ''] }: { lines: string[] }) => {
    address ??= new URL(line.trim());
    const { redirect_uri = '', state = '' } = Object.fromEntries(address.searchParams);
    const query = new URLSearchParams({ state, code: 'the-right-code', iss: as.issuer });
    const right = new URL(`${redirect_uri}?${query}`);
    return wrong.shift()?.(right) ?? right.href;
  };
  let address: URL | undefined;
  const user = new ScriptedPerson(Array(wrong.length + 1).fill(paste), openBrowser);
  const openUserAgent = throughBrowserOf(user, new AbortController().signal);
  await program({ openUserAgent }).to(server.url);
  assert.deepEqual([wrong.length, user.questions.length], [0, 7]);
  assert.deepEqual(
    as.asked('/token').map(({ form }) => form.code),
    ['the-right-code'],
  );
  for (const more of ['&code=x', '&state=x', '&iss=x', '&error=x', '&error=x&error=y']) {
    const take = (asked: URL) => {
      const { redirect_uri = '', state = '' } = Object.fromEntries(asked.searchParams);
      const query = new URLSearchParams({ state, code: 'c', iss: other.as.issuer });
      return new URL(`${redirect_uri}?${query}${more}`);
    };
    const other = await loginBetween({ browse: { take } });
    await other.refusal();
    unasked(other.as, '/token');
  }
});

test('G7, G15: no request, however odd, ends the program that waits for the browser', async () => {
  const { ends } = await oddCallback();
  assert.deepEqual(ends, [
    '400 //',
    '400 //:99999/',
    '400 http://[',
    '400 *',
    '400 /callback?state=%',
    'still there',
  ]);
});

/** A listener in a process of its own, for a crash of ours would end the tests. */
async function oddCallback(): Promise<{ ends: string[] }> {
  const targets = ['//', '//:99999/', 'http://[', '*', '/callback?state=%'];
  const ends: string[] = [];
  const { child, seen, ended } = run('waiting-callback.ts');
  await until(() => seen.output.includes('\n'));
  const { port } = new URL(seen.output);
  for (const target of targets)
    ends.push(
      await new Promise((done) => {
        let text = '';
        const socket = net.connect(Number(port), '127.0.0.1', () =>
          socket.write(`GET ${target} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`),
        );
        socket.on('data', (chunk) => (text += chunk)).on('error', () => {});
        socket.on('close', () =>
          done(`${/^HTTP\/1.1 (\d+)/.exec(text)?.[1] ?? 'nothing'} ${target}`),
        );
      }),
    );
  ends.push(child.exitCode === null && child.signalCode === null ? 'still there' : 'gone');
  child.kill();
  await ended;
  return { ends };
}

const PAGE_HEADERS = {
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'content-type': 'text/html; charset=utf-8',
};

test('G15: the page shows nothing that came with the request, and its headers forbid everything', async () => {
  const script = '<script>alert(1)</script>';
  const { uri, state, right, login } = await waiting();
  const wrong = await knock(uri, {
    query: { state: script, error: script, error_description: script, code: script },
  });
  const answer = await knock(uri, {
    query: { state, iss: right.iss, error: script, error_description: script },
  });
  assert.deepEqual([wrong.status, answer.status], [400, 200]);
  for (const { body, headers } of [wrong, answer]) {
    assert.doesNotMatch(body, /script|alert/);
    for (const [name, value] of Object.entries(PAGE_HEADERS))
      assert.equal(headers[name], value, name);
    assert.equal(headers['set-cookie'], undefined);
    assert.equal(headers['access-control-allow-origin'], undefined);
  }
  assert.ok(answer.body.includes(FAILED));
  const { error } = await login;
  assert.equal(error.kind, 'auth');
  assert.equal((await knock(uri)).code, 'ECONNREFUSED', 'nobody listens after a refusal either');
});

test('G15: what a page is told to say is text', async () => {
  const callback = await Callback.open();
  callback.expect('s');
  const page = knock(callback.redirectUri, { query: { state: 's' } });
  await callback.answer;
  callback.close(`<script>alert("1")</script> & 'more'`);
  const { body } = await page;
  assert.doesNotMatch(body, /<script|"1"/);
  assert.ok(body.includes('&#60;script&#62;'));
});

test('G15: only this machine can come there', async () => {
  const outside = Object.values(networkInterfaces())
    .flat()
    .filter((each) => each && !each.internal && !each.address.startsWith('fe80'));
  for (const wanted of [
    undefined,
    'http://localhost/callback',
    'http://127.0.0.1/callback',
    'http://[::1]/callback',
  ]) {
    const callback = await Callback.open(wanted);
    later(() => callback.close(''));
    callback.expect('s');
    for (const { address } of outside as { address: string }[])
      assert.equal(
        (await knock(callback.redirectUri, { to: address, query: { state: 's' } })).code,
        'ECONNREFUSED',
        `${address} for ${wanted}`,
      );
    callback.close('');
  }
});

test('G15: after five minutes, or when somebody stops it, the wait ends and nobody listens any more', async () => {
  const timeout = AbortSignal.timeout;
  later(() => (AbortSignal.timeout = timeout));
  const limits: AbortController[] = [];
  AbortSignal.timeout = (ms) => {
    if (ms !== 5 * 60_000) return timeout.call(AbortSignal, ms);
    limits.push(new AbortController());
    return limits.at(-1)!.signal;
  };
  const late = await waiting();
  assert.equal(limits.length, 1, 'there is such a limit');
  limits[0]!.abort();
  const { error } = await late.login;
  assert.equal(error.kind, 'auth');
  assert.match(error.message, /5 minutes/);
  const stop = new AbortController();
  const stopped = await waiting({}, stop.signal);
  stop.abort();
  assert.equal((await stopped.login).error.kind, 'aborted');
  for (const { uri, right, as } of [late, stopped]) {
    assert.equal((await knock(uri, { query: right })).code, 'ECONNREFUSED');
    unasked(as, '/token');
  }
});
