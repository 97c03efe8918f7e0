// Chapter 17: the trust file, and the question about a server. (The attacks on both are in security-trust.test.ts.)

import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { Trust } from '../agent.ts';
import { takeLock } from '../chapters/17-the-gate/lock.ts';
import { canonicalJson } from '../chapters/17-the-gate/digest.ts';
import {
  fingerprint,
  launchLines,
  type Grant,
  type TrustOptions,
} from '../chapters/17-the-gate/trust.ts';
import type { Json, ServerEntry } from '../mcp.ts';
import { calls, person, prepareAgent } from './help/agent-with-gate.ts';
import { cleanUp, folder, goodServer } from './help/basics.ts';

afterEach(cleanUp);

const entry = (
  config: Json = { command: 'node', args: ['server.js'] },
  more: Partial<ServerEntry> = {},
): ServerEntry => ({
  name: 's',
  config,
  file: '/project/.mcp.json',
  scope: 'project',
  authority: 'project',
  ...more,
});
const grant = (more: Json = {}): Grant => ({
  kind: 'mcp',
  server: 's',
  fingerprint: 'f',
  tool: 't',
  definition: 'd',
  shown: '{}',
  ...more,
});

function prepare({
  home = folder(),
  cwd = folder(),
  ...more
}: TrustOptions & { answers?: never } = {}) {
  const warnings: string[] = [];
  const make = (options: TrustOptions = {}) =>
    new Trust({ home, cwd, warn: (text) => warnings.push(text), ...more, ...options });
  return {
    trust: make(),
    make,
    home,
    cwd,
    warnings,
    file: join(home, '.mcp-by-hand', 'trust.json'),
  };
}

// ─── Fingerprints ───

test('a fingerprint is of the content: the order of keys does not count, the order of a list does', () => {
  const print = (config: Json) => fingerprint({ config });
  assert.match(print({ command: 'x' }), /^sha256:[0-9a-f]{64}$/);
  assert.equal(
    print({ command: 'x', env: { A: '1', B: '2' } }),
    print({ env: { B: '2', A: '1' }, command: 'x' }),
  );
  assert.equal(
    print({ command: 'x', disabled: true }),
    print({ command: 'x' }),
    'to switch it off is no change',
  );
  const different: Json[] = [
    { command: 'x' },
    { command: 'y' },
    { command: 'x', args: [] },
    { command: 'x', args: ['a', 'b'] },
    { command: 'x', args: ['b', 'a'] },
    { command: 'x', args: ['a b'] },
    { command: 'x', env: {} },
    { command: 'x', env: { args: 'a' } },
    { command: 'x', cwd: '.' },
    { command: 'x', cwd: '' },
    { command: 'x', args: ['${A}'] },
    { command: 'x', unknown: 1 },
    JSON.parse('{"command":"x","__proto__":{"args":["a"]}}'),
  ];
  assert.equal(new Set(different.map(print)).size, different.length);
  assert.equal(canonicalJson({ b: [{ d: 1, c: 2 }], a: null }), '{"a":null,"b":[{"c":2,"d":1}]}');
});

// ─── Servers ───

test('a server of the user starts unasked; one of a project is asked about, once, and then known', async () => {
  const { user, questions } = person('y');
  const { trust, make, warnings } = prepare({ person: user });
  assert.equal(await trust.approve(entry(undefined, { scope: 'user', authority: 'user' })), true);
  assert.equal(questions.length, 0);
  assert.equal(await trust.approve(entry()), true);
  assert.match(questions[0]!.prompt, /this exact entry/);
  assert.equal(await trust.approve(entry()), true);
  assert.equal(
    await make({ person: undefined }).approve(entry()),
    true,
    'another run, with nobody to ask',
  );
  assert.equal(questions.length, 1);
  assert.deepEqual(warnings, []);
});

test('J12: without a person an entry is told by its first lines, its length and its fingerprint; a question shows it whole', async () => {
  const config = {
    command: 'node',
    args: [...Array.from({ length: 1000 }, (_, n) => `${n}`), 'x'.repeat(8_000_000)],
  };
  const { trust, warnings } = prepare();
  assert.equal(await trust.approve(entry(config)), false);
  const [told = ''] = warnings;
  assert.match(
    told,
    /is not started: you have not approved it\.\n  command: "node"\n  argument 1: "0"\n/,
  );
  assert.match(told, /\n  … \(80\d{5} characters; .*mcp get shows them\)\n/);
  assert.ok(told.includes(`\n  fingerprint: ${fingerprint({ config })}\n`));
  assert.ok(told.length < 5000, `${told.length}`);
  const other = prepare();
  await other.trust.approve(entry({ command: 'node', args: ['x'.repeat(8_000_000)] }));
  assert.ok(other.warnings[0]!.length < 5000, 'also if it is one line');
  const { user, questions } = person('n');
  await prepare({ person: user }).trust.approve(entry(config));
  assert.ok(questions[0]!.text.length > 8_000_000);
});

test('what the question shows: the file, the name, the command and each argument, variables, cautions, the fingerprint', async () => {
  const { user, questions } = person('n', 'n');
  const { trust } = prepare({ person: user });
  const config = {
    command: 'npx',
    args: ['-y', 'some-server', '--key=${SHELF_KEY}'],
    env: { NODE_OPTIONS: '--require ./x.js', PLAIN: '1' },
    cwd: 'sub',
    extra: [1],
  };
  await trust.approve(entry(config, { shadows: '/home/me/.claude/settings.json' }));
  assert.deepEqual(questions[0]!.lines, [
    '"/project/.mcp.json" (project scope) wants to start the MCP server "s". It runs as you, and can do what you can do.',
    'It takes the place of your own server of that name, in "/home/me/.claude/settings.json".',
    '  command: "npx"',
    '  argument 1: "-y"',
    '  argument 2: "some-server"',
    '  argument 3: "--key=${SHELF_KEY}"',
    '  env:',
    '    NODE_OPTIONS: "--require ./x.js"',
    '    PLAIN: "1"',
    '  cwd: "sub"',
    '  extra: [1]',
    '  ! it reads your variables SHELF_KEY',
    '  ! it sets "NODE_OPTIONS", which decides what code is loaded',
    '  ! no version is named: what runs is whatever is published under that name',
    `  fingerprint: ${fingerprint({ config })}`,
  ]);
  await trust.approve(entry({ command: '/usr/bin/env', args: ['sudo', '/bin/bash', '-c', 'id'] }));
  assert.match(questions[1]!.text, /rights of another user \(sudo\)/);
  assert.match(questions[1]!.text, /it starts a shell/);
});

test('no caution without a cause, and none is missed for a spelling', async () => {
  const cautions = async (config: Json) => {
    const { user, questions } = person('n');
    await prepare({ person: user }).trust.approve(entry(config));
    return questions[0]!.lines.filter((line) => line.startsWith('  !')).length;
  };
  for (const config of [
    { command: 'node', args: ['a.js'] },
    { command: 'npx', args: ['x@1.2.3'] },
    { command: 'uvx', args: ['x==1.0'] },
    { command: 'x', env: { A: '1' } },
  ])
    assert.equal(await cautions(config), 0, JSON.stringify(config));
  for (const config of [
    { command: 'NPX.cmd', args: ['x'] },
    { command: 'npx', args: ['x@latest'] },
    { command: 'C:\\Windows\\cmd.exe', args: ['/c', 'x'] },
    { command: 'sh' },
    { command: 'powershell.exe' },
    { command: 'x', env: { path: 'bin' } },
    { command: 'x', env: { LD_AUDIT: 'a' } },
    { command: 'x', args: ['${HOME:-x}'] },
  ])
    assert.equal(await cautions(config), 1, JSON.stringify(config));
});

test('answers: yes, not now, never; and only yes starts it', async () => {
  for (const [answer, expected] of [
    ['y', true],
    ['YES', true],
    [' y ', true],
    ['n', false],
    ['', false],
    [undefined, false],
  ] as const) {
    const { trust } = prepare({ person: person(answer).user });
    assert.equal(await trust.approve(entry()), expected, `${answer}`);
  }
  for (const answer of ['always', 'sure', 'read README.md']) {
    // none of the answers: asked again
    const { user, questions } = person(answer, 'n');
    assert.equal(await prepare({ person: user }).trust.approve(entry()), false);
    assert.deepEqual(questions[1]!.lines.slice(-1), ['Please answer y, n or v.']);
  }
  const { user, questions } = person('n', 'v', 'y');
  const { trust } = prepare({ person: user });
  assert.equal(await trust.approve(entry()), false, 'not now');
  assert.equal(await trust.approve(entry()), 'disabled', 'so it is asked again, and now: never');
  assert.equal(await trust.approve(entry()), 'disabled', 'so it is not asked again');
  assert.equal(questions.length, 2);
  assert.equal(
    await trust.approve(entry({ command: 'other' })),
    true,
    'but another entry is another question',
  );
});

test('who switches on a server that was refused for good is asked about it again', async () => {
  const { user, questions } = person('v', 'y');
  const { trust } = prepare({ person: user });
  assert.equal(await trust.approve(entry()), 'disabled');
  trust.setDisabled(false, 's');
  assert.equal(await trust.approve(entry()), true);
  assert.equal(questions.length, 2);
});

test('a command, a file or one tool can be revoked as well, each by its own name', () => {
  const { trust } = prepare();
  trust.grant({ kind: 'shell', command: 'npm test' });
  trust.grant({ kind: 'write', path: '/a/b' });
  trust.grant(grant({ tool: 'one' }));
  trust.grant(grant({ tool: 'two' }));
  trust.setDisabled(true, 's', 'three');
  for (const name of ['npm', '/a', 'one', 'bash']) assert.equal(trust.revoke(name), 0, name);
  for (const name of ['npm test', '/a/b', 's/one', 's/three'])
    assert.equal(trust.revoke(name), 1, name);
  assert.ok(trust.isGranted(grant({ tool: 'two' })));
});

test('where nobody can be asked it does not start, and the warning says how it could', async () => {
  const { trust, warnings, make } = prepare();
  assert.equal(await trust.approve(entry()), false);
  const flag = /--allow-server (\S+)$/.exec(warnings[0]!)![1]!;
  assert.match(warnings[0]!, /mcp-by-hand trust allow s;/);
  assert.equal(await make({ allowServers: [flag] }).approve(entry()), true, 'what it says is true');
  assert.equal(await make({ allowServers: [flag] }).approve(entry({ command: 'other' })), false);
  assert.equal(
    await make({ allowServers: [flag.replace('s=', 'x='), 's', flag.slice(0, -1), '*'] }).approve(
      entry(),
    ),
    false,
  );
  assert.equal(await make().approve(entry()), false, 'for that run only');
});

test('a server or a tool that is switched off stays off, whatever else is agreed to, until it is switched on', async () => {
  const { trust, make } = prepare();
  trust.allow(entry());
  trust.setDisabled(true, 's');
  trust.setDisabled(true, 's');
  trust.setDisabled(true, 'other', 'tool');
  assert.equal(await make().approve(entry()), 'disabled');
  assert.equal(
    await make().approve(entry(undefined, { scope: 'user', authority: 'user' })),
    'disabled',
  );
  assert.equal(
    await make().approve(
      entry({ command: 'x', disabled: true }, { name: 'third', scope: 'user', authority: 'user' }),
    ),
    'disabled',
  );
  assert.deepEqual(
    [
      trust.isDisabled('s'),
      trust.isDisabled('s', 'tool'),
      trust.isDisabled('other'),
      trust.isDisabled('other', 'tool'),
    ],
    [true, false, false, true],
  );
  trust.setDisabled(false, 's');
  assert.equal(await make().approve(entry()), true);
  assert.equal(make({ cwd: folder() }).isDisabled('other', 'tool'), false, 'in this folder only');
});

test('a tool that the user has switched off is not in the table', async () => {
  const good = { command: process.execPath, args: [goodServer] };
  const { agent, model, trust, outcomes } = prepareAgent({
    servers: { good },
    script: calls(['mcp__good__add', { a: 1, b: 2 }]),
  });
  trust.setDisabled(true, 'good', 'add');
  await agent.chat('go');
  assert.deepEqual(
    model.requests[0]!.tools.map(({ name }) => name).filter((name) => name.startsWith('mcp')),
    ['mcp__good__greet'],
  );
  assert.deepEqual(outcomes(), ['unknown']);
});

// ─── Grants ───

test('a grant is for one command, one file, or one tool as it is', () => {
  const { trust, make } = prepare();
  for (const each of [
    grant(),
    { kind: 'shell', command: 'npm test' },
    { kind: 'write', path: '/p/a' },
  ] as Grant[])
    trust.grant(each);
  const again = make();
  for (const each of [
    grant(),
    grant({ shown: 'other words' }),
    { kind: 'shell', command: 'npm test' },
    { kind: 'write', path: '/p/a' },
  ] as Grant[])
    assert.ok(again.isGranted(each));
  for (const each of [
    grant({ tool: 'u' }),
    grant({ server: 'r' }),
    grant({ fingerprint: 'g' }),
    grant({ definition: 'e' }),
    { kind: 'shell', command: 'npm test;' },
    { kind: 'write', path: '/p/ab' },
    { kind: 'write', path: 'npm test' },
    { kind: 'shell', command: '/p/a' },
  ] as Grant[])
    assert.ok(!again.isGranted(each), JSON.stringify(each));
  assert.ok(!make({ cwd: folder() }).isGranted(grant()), 'not in another folder');
});

test('a tool that changed is told from one that is new; the newest agreement replaces the old', () => {
  const { trust, file } = prepare();
  assert.equal(trust.drift(grant()), undefined);
  trust.grant(grant({ shown: 'before' }));
  assert.equal(trust.drift(grant()), undefined);
  assert.equal(trust.drift(grant({ definition: 'new' })), 'before');
  assert.equal(trust.drift(grant({ definition: 'new', fingerprint: 'g' })), undefined);
  trust.grant(grant({ definition: 'new', shown: 'after' }));
  assert.ok(!trust.isGranted(grant()), 'and the old one does not come back');
  assert.equal(JSON.parse(readFileSync(file, 'utf8')).grants.length, 1);
});

test('list and revoke: for one server with its tools, or for everything in this folder', async () => {
  const { trust, make } = prepare();
  const elsewhere = make({ cwd: folder() });
  elsewhere.allow(entry());
  for (const name of ['s', 'r']) {
    trust.allow(entry(undefined, { name }));
    trust.grant(grant({ server: name }));
  }
  trust.grant({ kind: 'shell', command: 'npm test' });
  trust.setDisabled(true, 'off');
  const list = trust.list();
  assert.deepEqual([list.servers.length, list.grants.length, list.disabled.length], [2, 3, 1]);
  assert.deepEqual(list.servers[0], {
    project: trust.project,
    name: 's',
    fingerprint: fingerprint(entry()),
    verdict: 'allow',
    config: entry().config,
  });
  assert.equal(trust.revoke('s'), 2);
  assert.equal(await trust.approve(entry()), false, 'at once, in the same run too');
  assert.ok(!trust.isGranted(grant()));
  assert.ok(trust.isGranted(grant({ server: 'r' })));
  assert.equal(trust.revoke('nobody'), 0);
  assert.equal(trust.revoke(), 4);
  assert.deepEqual(trust.list(), { servers: [], grants: [], disabled: [], notes: [], rules: [] });
  assert.equal(await elsewhere.approve(entry()), true, 'another folder keeps its own');
});

test('a folder is known by its real path', async () => {
  const { trust, make, cwd } = prepare();
  const link = join(folder(), 'link');
  symlinkSync(cwd, link);
  trust.allow(entry());
  assert.equal(await make({ cwd: link }).approve(entry()), true);
});

// ─── The file ───

test('nothing is written before there is something to write, and nothing is left beside the file', async () => {
  const { trust, home, file } = prepare();
  await trust.approve(entry());
  assert.deepEqual(readdirSync(home), []);
  trust.allow(entry());
  assert.deepEqual(readdirSync(join(home, '.mcp-by-hand')), ['trust.json']);
  const { version, ...rest } = JSON.parse(readFileSync(file, 'utf8'));
  assert.deepEqual([version, Object.keys(rest)], [1, ['servers', 'grants', 'disabled']]);
});

test("what a program that died left behind is in nobody's way", async () => {
  const { trust, make, file, warnings } = prepare();
  mkdirSync(join(file, '..'), { mode: 0o700 });
  writeFileSync(`${file}.lock`, '');
  utimesSync(`${file}.lock`, new Date(0), new Date(0));
  writeFileSync(`${file}.mcp-by-hand`, 'half a fi');
  trust.allow(entry());
  assert.deepEqual(warnings, []);
  assert.equal(await make().approve(entry()), true);
  assert.deepEqual(readdirSync(join(file, '..')), ['trust.json']);
});

test('a lock that somebody holds is respected; what was agreed to counts for this run, and that is said', async () => {
  const { trust, make, file, warnings } = prepare();
  mkdirSync(join(file, '..'), { mode: 0o700 });
  takeLock(`${file}.lock`);
  trust.allow(entry());
  assert.match(warnings[0]!, /not written down.*\.lock \(of the process \d+\) is in the way/);
  assert.ok(!existsSync(file) && existsSync(`${file}.lock`));
  assert.equal(await trust.approve(entry()), true);
  assert.equal(await make().approve(entry()), false);
});

test('launch lines show whatever an entry holds', () => {
  assert.deepEqual(
    launchLines({ type: 'http', url: 'https://x.test/\u202e', headers: { 'X-A': 'b\nc' } }),
    [
      '  type: "http"',
      '  url: "https://x.test/\\u{202e}"',
      '  headers:',
      '    X-A:',
      '      │ b',
      '      │ c',
    ],
  );
  assert.deepEqual(launchLines({ command: ['odd'], args: 'odd', env: null }), [
    '  command: "[\\"odd\\"]"',
    '  argument 1: "odd"',
    '  env: null',
  ]);
  const hidden = { path: 'sh', args: ['-c', `touch ${'M'.repeat(300)}`] };
  const lines = launchLines({ command: hidden, args: [hidden] });
  for (const each of lines) assert.match(each, /touch M{300}/);
});
