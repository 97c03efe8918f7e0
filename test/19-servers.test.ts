// The commands about servers: mcp, trust, probe.

import assert from 'node:assert/strict';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { Trust } from '../agent.ts';
import { cleanUp, folder, goodServer, habit } from './help/basics.ts';
import { jsonLines, place, run, userServers, type Place } from './help/terminal.ts';

afterEach(cleanUp);

const demo = { command: process.execPath, args: [goodServer] };
const node = process.execPath;
const read = (...path: string[]) => readFileSync(join(...path), 'utf8');
const json = (...path: string[]) => JSON.parse(read(...path));

/** Runs one after the other, and wants them all to work. */
async function all(where: Place, ...commands: string[][]): Promise<string[]> {
  const outs: string[] = [];
  for (const args of commands) {
    const { code, out, err } = await run(where, args);
    assert.equal(code, 0, `${args.join(' ')}: ${err}`);
    outs.push(out);
  }
  return outs;
}

test("mcp add, add-json, get, remove: the project's file and the user's; the rest of a file stays", async () => {
  const where = place({}, { '.claude/settings.json': { statusLine: { command: 'date' } } });
  const [added] = await all(
    where,
    ['mcp', 'add', '-e', 'SHELF=hidden-value', 'demo', '--', node, goodServer, '--page', '1'],
    ['mcp', 'add-json', '-s', 'user', 'demo', JSON.stringify(demo)],
  );
  assert.match(added!, /^added demo to .*\.mcp\.json, and approved it here$/m);
  const entry = {
    command: node,
    args: [goodServer, '--page', '1'],
    env: { SHELF: 'hidden-value' },
  };
  assert.deepEqual(json(where.cwd, '.mcp.json'), { mcpServers: { demo: entry } });
  const settings = { statusLine: { command: 'date' }, mcpServers: { demo } };
  assert.deepEqual(json(where.home, '.claude', 'settings.json'), settings);

  const [twice, odd, got, gotJson, unclear] = await Promise.all([
    run(where, ['mcp', 'add', 'demo', '--', node]),
    run(where, ['mcp', 'add', '__proto__', '--', node]),
    run(where, ['mcp', 'get', 'demo']),
    run(where, ['mcp', 'get', 'demo', '--json']),
    run(where, ['mcp', 'remove', 'demo']),
  ]);
  assert.equal(twice.code, 3);
  assert.match(
    twice.err,
    /has a server demo already; first: mcp-by-hand mcp remove -s project demo/,
  );
  assert.equal(odd.code, 2);
  assert.match(
    got.out,
    /^demo \(project, from .*\.mcp\.json, in place of the one in .*settings\.json\)$/m,
  );
  assert.match(got.out, /SHELF: "\*\*\*"\n  approved\n  fingerprint: sha256:/);
  assert.deepEqual(JSON.parse(gotJson.out).config.env, { SHELF: '***' });
  assert.doesNotMatch(got.out + gotJson.out, /hidden-value/);
  assert.deepEqual([unclear.code, unclear.out], [2, '']);
  assert.match(
    unclear.err,
    /^  mcp-by-hand mcp remove -s user demo\n  mcp-by-hand mcp remove -s project demo$/m,
  );

  await all(where, ['mcp', 'remove', '-s', 'user', 'demo'], ['mcp', 'remove', 'demo']);
  assert.deepEqual(json(where.home, '.claude', 'settings.json'), { ...settings, mcpServers: {} });
  assert.deepEqual(json(where.cwd, '.mcp.json'), { mcpServers: {} });
});

test('mcp add: a file with comments stays as it is, a flat one flat, a link a link, and closed to others', async () => {
  const commented = '{ "mcpServers": { /* mine */ "demo": { "command": "node" } } }';
  const [first, second] = [place({ '.mcp.json': commented }), place({ '.mcp.json': { demo } })];
  const dotfiles = join(folder(), 'settings.json');
  writeFileSync(dotfiles, '{}', { mode: 0o600 });
  mkdirSync(join(second.home, '.claude'));
  const link = join(second.home, '.claude', 'settings.json');
  symlinkSync(dotfiles, link);
  const [refused, listed, unknown, url] = await Promise.all([
    run(first, ['mcp', 'add', 'other', '--', 'x']),
    run(first, ['mcp', 'get', 'demo']),
    run(first, ['mcp', 'remove', 'dmeo']),
    run(first, ['mcp', 'add', '--transport', 'pigeon', 'web', 'https://example.org/mcp']),
  ]);
  assert.deepEqual([refused.code, listed.code, unknown.code, url.code], [3, 0, 3, 2]);
  assert.match(
    refused.err,
    /\.mcp\.json has comments or is no JSON object: to keep what is there, edit it by hand/,
  );
  assert.equal(read(first.cwd, '.mcp.json'), commented);
  await all(
    second,
    ['mcp', 'add', 'other', 'some-command'],
    ['mcp', 'add', '-s', 'user', 'mine', 'some-command'],
  );
  assert.deepEqual(json(second.cwd, '.mcp.json'), { demo, other: { command: 'some-command' } });
  assert.ok(lstatSync(link).isSymbolicLink());
  assert.deepEqual(
    [json(dotfiles).mcpServers.mine.command, statSync(dotfiles).mode & 0o777],
    ['some-command', 0o600],
  );
});

test('mcp list: every server with its state; disable and enable, a server or one tool, in this folder', async () => {
  const marker = join(folder(), 'marker');
  const servers = { good: habit(), dead: habit('dies-at-once', 'way'), 'with\nline': demo };
  const where = place({ '.mcp.json': { canary: habit('canary', marker) } }, userServers(servers));
  const [text, inJson] = await Promise.all([
    run(where, ['mcp', 'list']),
    run(where, ['mcp', 'list', '--json']),
  ]);
  assert.deepEqual([text.code, inJson.code], [0, 0]);
  assert.match(
    text.out,
    /^good: connected · protocol 2025-11-25 · \d+ tools · about \d+ tokens · started in \d+ ms · habits 1\.0\.0$/m,
  );
  assert.match(
    text.out,
    /^dead: failed\n  user, from .*\n.* exited with code 3\. Its last words:\n    cannot find my way$/m,
  );
  assert.match(text.out, /^"with\\nline": failed$/m);
  assert.match(
    text.out,
    /^canary: pending\n  project, from .*\.mcp\.json\n  .*that is not approved yet$/m,
  );
  assert.match(text.err, /trust allow canary; for this run: --allow-server canary=sha256:/);
  const states = jsonLines(inJson.out)[0].map(({ name, state }: any) => [name, state]);
  assert.ok(jsonLines(inJson.out)[0][0].tokens > 100);
  const expected = { good: 'connected', dead: 'failed', 'with\nline': 'failed', canary: 'pending' };
  assert.deepEqual(Object.fromEntries(states), expected);
  assert.ok(!existsSync(marker));

  const [, , disabled, trusted, tools] = await all(
    where,
    ['mcp', 'disable', 'dead'],
    ['mcp', 'disable', 'good/exit'],
    ['mcp', 'list', '--json'],
    ['trust', 'list'],
    ['--json', '--deny', 'bash', 'exit code=1'],
    ['mcp', 'enable', 'dead'],
  );
  assert.equal(jsonLines(disabled!)[0][1].state, 'disabled');
  assert.match(trusted!, /^server dead: disabled\ntool exit of good: disabled$/m);
  assert.doesNotMatch(tools!, /mcp__good__exit/);
  const unknown = await run(where, ['mcp', 'disable', 'goood']);
  assert.equal(unknown.code, 3);
  assert.match(unknown.err, /no MCP server is called "goood"; did you mean "good"\?/);
});

test('trust: allow, list, revoke, reset; an entry that changed is not approved any more', async () => {
  const where = place({ '.mcp.json': { demo } });
  const state = async () =>
    jsonLines((await run(where, ['mcp', 'list', '--json'])).out)[0][0].state;
  const [nothing, allowed, listed] = await all(
    where,
    ['trust'],
    ['trust', 'allow', 'demo'],
    ['trust', 'list'],
  );
  assert.match(nothing!, /^nothing is agreed to in /);
  assert.match(
    allowed!,
    /^  command: [^]*demo may start in .*, as long as it is exactly this: sha256:/,
  );
  assert.match(listed!, /^server demo: allow sha256:[0-9a-f]{64}$/m);
  assert.equal(await state(), 'connected');
  writeFileSync(
    join(where.cwd, '.mcp.json'),
    JSON.stringify({ demo: { ...demo, env: { X: '1' } } }),
  );
  assert.equal(await state(), 'pending');
  const [revoked] = await all(where, ['trust', 'revoke', 'demo'], ['trust', 'reset']);
  assert.equal(revoked, 'revoked: 1 decision about demo\n');
  const [again, unclear] = await Promise.all(
    ['revoke', 'alow'].map((action) => run(where, ['trust', action, 'demo'])),
  );
  assert.ok(again && unclear);
  assert.deepEqual([again.code, unclear.code], [3, 2]);
  assert.match(unclear.err, /there is no "trust alow"; write trust allow/);
});

test('probe: a readable signature per tool, one call with values by the schema, JSON, a server by name', async () => {
  const types = {
    type: 'object',
    properties: {
      n: { type: 'integer' },
      text: { type: 'string' },
      list: { type: 'array', items: { type: 'number' } },
      pick: { enum: ['a', 'b'] },
      deep: { type: 'object', properties: { on: { type: 'boolean' } } },
      any: {},
      either: { anyOf: [{ type: 'string' }, { type: 'null' }] },
    },
    required: ['n'],
  };
  const echo = { name: 'echo', description: 'Says it again.\nAt length.', inputSchema: types };
  const tools = JSON.stringify([
    echo,
    { name: 'mute', description: null, inputSchema: { type: 'object' } },
  ]);
  const where = place({ '.mcp.json': { demo } });
  const pairs = ['n=7', 'text=7', 'list=[1,2]', 'pick=b', 'deep={"on":true}', 'any=x=y'];
  const [plain, called, untrusted] = await Promise.all([
    run(where, ['probe', '--', ...[node, ...habit('tools', tools).args]]),
    run(where, [
      'probe',
      '--json',
      '--wire',
      '--call',
      'echo',
      ...pairs,
      '--',
      node,
      ...habit('tools', tools).args,
    ]),
    run(where, ['probe', 'demo']),
  ]);
  assert.equal(plain.code, 0, plain.err);
  assert.match(
    plain.out,
    /^✓ .*node · protocol 2025-11-25 · habits 1\.0\.0 · \d+ ms\n(  with a handshake: .*\n)?  can: tools\n  tools \(2\)$/m,
  );
  const fields =
    'n: number, text?: string, list?: number[], pick?: "a" | "b", deep?: { on: boolean }, any?: unknown';
  assert.ok(
    plain.out.includes(`    echo(${fields}, either?: string | null) Says it again.\n    mute()\n`),
    plain.out,
  );
  const report = JSON.parse(called.out);
  const sent = { n: 7, text: '7', list: [1, 2], pick: 'b', deep: { on: true }, any: 'x=y' };
  assert.deepEqual([called.code, report.ok, JSON.parse(report.result.text)], [0, true, sent]);
  assert.match(called.err, /^→ \{.*"method":"initialize"[^]*^← \{.*"result"/m);
  assert.equal(untrusted.code, 3);
  assert.match(untrusted.err, /demo is not approved/);
  const print = /demo=(sha256:[0-9a-f]{64})/.exec(untrusted.err)![1];
  const named = await run(where, [
    'probe',
    '--allow-server',
    `demo=${print}`,
    'demo',
    '--call',
    'add',
    'a=2',
    'b=40',
  ]);
  assert.deepEqual(
    [named.code, /the call worked:\n    42\n/.test(named.out)],
    [0, true],
    named.out,
  );
});

test('probe: every way to fail has its exit code', async () => {
  const unset = { ...demo, env: { X: '${NOT_SET_ANYWHERE}' } };
  const where = place({ '.mcp.json': { broken: { command: 5 }, unset } });
  const server = (...args: string[]) => ['--', node, ...habit(...args).args];
  const good = ['--', node, goodServer];
  await all(where, ['trust', 'allow', 'unset']);
  const cases: [number, string[], RegExp][] = [
    [2, [], /which server\?/],
    [2, ['--call', 'ad', ...good], /has no tool ad; did you mean add\?/],
    [3, ['nobody'], /no MCP server is called "nobody"/],
    [
      3,
      ['broken'],
      /"broken" in .*\.mcp\.json cannot start: "command" is not the name of a program/,
    ],
    [3, ['unset'], /\$\{NOT_SET_ANYWHERE\} is not set/],
    [4, ['--', 'no-such-command'], /start: .*command not found/],
    [4, server('dies-at-once'), /closed: .*exited with code 3/],
    [5, server('refuses-initialize'), /refused: .*Not today/],
    [
      5,
      ['--no-check', '--call', 'add', 'a=x', 'b=1', ...good],
      /the call failed:\n    a and b must be numbers/,
    ],
    [5, ['--call', 'result', 'result=5', ...server()], /protocol: /],
  ];
  const ends = await Promise.all(cases.map(([, args]) => run(where, ['probe', ...args])));
  assert.deepEqual(
    ends.map(({ code }) => code),
    cases.map(([code]) => code),
    JSON.stringify(ends),
  );
  for (const [n, { out, err }] of ends.entries()) assert.match(out + err, cases[n]![2]);
  const { code, out } = await run(where, ['probe', '--json', ...server('mute')], {
    env: { MCP_TIMEOUT: '500' },
  });
  const { kind, message } = JSON.parse(out).error;
  assert.deepEqual([code, kind], [4, 'timeout']);
  assert.match(message, /did not answer initialize within/);
});

test('twins that are the same in both files: what was agreed to belongs to the one that remains', async () => {
  const where = place();
  await all(
    where,
    ...['user', 'project'].map((scope) => ['mcp', 'add', '-s', scope, 'twin', 'x']),
    ['mcp', 'remove', '-s', 'user', 'twin'],
  );
  assert.equal(new Trust(where).list().servers.length, 1);
});

test('a tool that a server does not have is not disabled, and one that is not disabled is not enabled', async () => {
  const where = place(
    { '.mcp.json': { mcpServers: { strange: demo } } },
    userServers({ good: demo, dead: { command: 'no-such-program' }, 'a/b': demo }),
  );
  const [typo, enabled, unknown, unasked, dead, slashed] = await Promise.all([
    run(where, ['mcp', 'disable', 'good/ad']),
    run(where, ['mcp', 'enable', 'good/add']),
    run(where, ['mcp', 'enable', 'goood']),
    run(where, ['mcp', 'disable', 'strange/ad']),
    run(where, ['mcp', 'disable', 'dead/ad']),
    run(where, ['mcp', 'disable', 'a/b/add']),
  ]);
  assert.deepEqual([typo.code, enabled.code, unknown.code], [3, 3, 3]);
  assert.match(typo.err, /^good has no tool "ad"; did you mean "add"\?$/m);
  assert.match(enabled.err, /^no tool "add" of good is disabled in this folder$/m);
  assert.match(unknown.err, /no MCP server is called "goood"; did you mean "good"/);
  assert.deepEqual(
    [unasked.code, dead.code, slashed.code],
    [0, 0, 0],
    'where it cannot be known, that is said',
  );
  assert.match(unasked.err, /whether strange has a tool "ad" is not known: it may not start here/);
  assert.match(dead.err, /whether dead has a tool "ad" is not known: .*no-such-program/);
  const off = new Trust(where)
    .list()
    .disabled.map(({ server, tool }) => `${server} ${tool}`)
    .sort();
  assert.deepEqual(off, ['a/b add', 'dead ad', 'strange ad']);
  const close = await run(where, ['mcp', 'enable', 'dead/add']);
  assert.match(
    close.err,
    /^no tool "add" of dead is disabled in this folder; did you mean "ad"\?$/m,
  );
  await all(where, ['mcp', 'enable', 'dead/ad']);
});

test('a server that is removed leaves nothing behind: added again, it is neither disabled nor refused', async () => {
  const where = place();
  const add = ['mcp', 'add', 'w', '--', node, goodServer];
  for (const args of [
    add,
    ['mcp', 'disable', 'w'],
    ['mcp', 'disable', 'w/add'],
    ['mcp', 'remove', 'w'],
    add,
  ])
    assert.equal((await run(where, args)).code, 0, `${args}`);
  assert.match((await run(where, ['mcp', 'list'])).out, /^w: connected .* 2 tools/m);
  assert.doesNotMatch((await run(where, ['trust', 'list'])).out, /disabled/);
  const remote = await run(where, [
    'mcp',
    'add-json',
    'far',
    '{"type":"pigeon","url":"http://127.0.0.1:1"}',
  ]);
  assert.deepEqual(
    [remote.code, /its type is "pigeon", but we have transports only for stdio/.test(remote.err)],
    [2, true],
  );
  assert.match((await run(where, ['mcp', 'add', '--help'])).out, /^  mcp-by-hand mcp list/);
});
