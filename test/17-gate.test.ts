// Chapter 17: the gate. Rules first, then the mode, then a question; and where nobody can be asked, no.

import assert from 'node:assert/strict';
import { mkdirSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { Gate, hands, Roots, Trust, type Tool } from '../agent.ts';
import { MODES, type Mode } from '../chapters/17-the-gate/gate.ts';
import { commandsIn, matchesText, namesOf, namesTool, parseRules, readSettings, type Effect, type Rule } from '../chapters/17-the-gate/rules.ts';
import type { Json, ServerEntry } from '../mcp.ts';
import { calls, person, prepareAgent } from './agents.ts';
import { cleanUp, folder, rejection } from './helpers.ts';

afterEach(cleanUp);

type Rules = Partial<Record<Effect, string[]>>;
const entry = (name: string, authority: ServerEntry['authority'], config: Json = { command: 'x' }): ServerEntry => ({ name, scope: authority, authority, config, file: '.mcp.json' });
const signal = new AbortController().signal;
/** Where the rules come from, and which tools there are. */
const inSettings = { name: 'settings.json', isHere: false };
const onTheLine = { name: '--deny', isHere: true };
const reader = (warn = (_: string) => {}, more: Tool[] = []) => {
  const cwd = folder();
  return { tools: [...hands({ roots: new Roots(cwd), resultsFolder: cwd }), ...more], warn };
};

/** A gate with real tools, and two servers: `mine` from the user's settings, `theirs` from the project. */
type Given = { mode?: Mode; settings?: Rules; here?: Rules; answers?: Parameters<typeof person>; more?: Tool[] };
async function prepare({ mode, settings = {}, here = {}, answers, more = [] }: Given = {}) {
  const [home, cwd] = [folder(), folder()];
  const warnings: string[] = [];
  const warn = (text: string) => void warnings.push(text);
  const tools = [...hands({ roots: new Roots(cwd), resultsFolder: home }), ...more];
  const parse = (rules: Rules, isHere: boolean) => (['allow', 'ask', 'deny'] as const).flatMap((effect) => parseRules(effect, rules[effect] ?? [], { name: 'test', isHere }, { tools, warn }));
  const resultsFolder = join(home, 'results');
  const roots = new Roots(cwd, [], [resultsFolder]);
  const { user, questions } = person(...(answers ?? []));
  const trust = new Trust({ home, cwd, warn, person: person('y').user });
  await trust.approve(entry('mine', 'user'));
  await trust.approve(entry('theirs', 'project'));
  const gate = new Gate({ mode, rules: [...parse(settings, false), ...parse(here, true)], roots, trust, person: answers && user });
  const mcp = (server: string, name: string, more: Json = {}): Tool => ({
    definition: { name: `mcp__${server}__${name}`, description: '', inputSchema: {} },
    readOnly: false,
    origin: { server, tool: { name, description: 'does it', inputSchema: { type: 'object' }, ...more } },
    run: async () => ({ blocks: [], isError: false }),
  });
  const tool = (name: string): Tool => {
    const [, server, last] = /^mcp__(.*?)__(.*)$/.exec(name) ?? [];
    return server ? mcp(server, last!) : tools.find(({ definition }) => definition.name === name)!;
  };
  const effect = (name: string, args: Json = {}) => gate.judge(tool(name), args).effect;
  const check = (name: string | Tool, args: Json = {}) => gate.check(typeof name === 'string' ? tool(name) : name, args, signal);
  return { gate, home, cwd: roots.cwd, roots, trust, tool, mcp, effect, check, questions, warnings };
}

// ─── Rules ───

test('rules are read as they are written; what is too broad to allow is left out and named', () => {
  const warnings: string[] = [];
  const parse = (effect: Effect, ...texts: string[]) => parseRules(effect, texts, onTheLine, reader((text) => warnings.push(text))).map(({ tool, pattern }) => [tool, pattern]);
  assert.deepEqual(parse('allow', 'bash(npm test)', 'Bash(a (b) c)', 'bash(git status *)', 'Bash(npm run:*)', ' mcp__git_hub__search ', 'mcp__github__*', 'Write(src/**)', 'edit', 'mcp__s__a__b'), [
    ['bash', 'npm test'], ['bash', 'a (b) c'], ['bash', 'git status *'], ['bash', 'npm run:*'], ['mcp__git_hub__search', undefined], ['mcp__github__*', undefined], ['write', 'src/**'], ['edit', undefined],
    ['mcp__s__a__b', undefined],
  ]);
  assert.equal(warnings.length, 0);
  const broad = ['*', 'mcp__*', 'mcp__s', 'mcp__s*', 'mcp__*__*', 'mcp____x', 'mcp__s__a*', 'mcp__s__t(x)', 'bash', 'bash()', 'bash(*)', 'bash(:*)', 'bash( *)', 'bash(git*)', 'bash(a && b:*)', 'bash($x:*)', 'bash(A=1 b:*)', 'bash("":*)', 'bash(a >b:*)', 'b*', '', '(x)', 'a b', 'Task'];
  for (const text of broad) {
    assert.deepEqual(parse('allow', text), [], text);
    assert.ok(warnings.pop()!.includes(JSON.stringify(text)), text);
  }
  assert.deepEqual(parse('deny', '*', 'mcp__*', 'bash', 'Bash(rm:*)'), [
    ['*', undefined], ['mcp__*', undefined], ['bash', undefined], ['bash', 'rm:*'],
  ]);
});

test('a rule for a tool that nobody has: in settings it may be meant for another program, on the command line it is a mistake', () => {
  assert.equal(parseRules('deny', ['WebFetch'], inSettings, reader()).length, 1);
  for (const effect of ['deny', 'ask'] as const)
    assert.throws(() => parseRules(effect, ['raed'], onTheLine, reader()), /"raed" is no rule/);
});

test('A16: a rule that should forbid something and cannot be read is an error, and never left out', () => {
  for (const effect of ['deny', 'ask'] as const)
    for (const text of ['', 'bash (rm)', 'bash(rm', 'bash)', '(x)', 'a b'])
      assert.throws(() => parseRules(effect, [text], inSettings, reader()), new RegExp(`settings.json: ${JSON.stringify(text).replace(/[()]/g, '\\$&')} is no rule`));
  for (const texts of [null, 'bash', { 0: 'bash' }, ['bash', 1], [['bash']]])
    assert.throws(() => parseRules('deny', texts, inSettings, reader()), /"deny" is not a list of strings/);
});

test('a star in ask and deny stands for anything; without one a text must be equal', () => {
  const cases: [string, string, boolean][] = [
    ['rm *', 'rm x', true], ['rm *', 'rm', false], ['*', '', true], ['*a*', 'banana', true], ['a*a', 'a', false], ['a*a', 'aa', true], ['*.ts', 'a.ts.js', false],
    ['a*b*c', 'abc', true], ['a*b*c', 'acb', false], ['a', 'A', false], ['a.c', 'abc', false], ['**', 'x', true], ['', '', true], ['', 'x', false],
  ];
  for (const [pattern, text, expected] of cases) assert.equal(matchesText(pattern, text), expected, `${pattern} and ${text}`);
  assert.equal(matchesText('*a'.repeat(1000), 'a'.repeat(1_000_000)), true);
  assert.equal(matchesText(`${'*a'.repeat(1000)}b`, 'a'.repeat(1_000_000)), false);
});

test('D2: a rule for one server never reaches another', () => {
  const rule = (effect: Effect, text: string): Rule => parseRules(effect, [text], onTheLine, reader())[0]!;
  const names = (each: Rule, name: string) => namesTool(each, namesOf({ definition: { name } }));
  assert.ok(names(rule('allow', 'mcp__s__*'), 'mcp__s__x'));
  assert.ok(names(rule('allow', 'mcp__s__*'), 'mcp__s__a__b'));
  assert.ok(!names(rule('allow', 'mcp__s__*'), 'mcp__s2__x'));
  assert.ok(!names(rule('allow', 'mcp__s__x'), 'mcp__s__xy'));
  assert.ok(names(rule('deny', 'mcp__s'), 'mcp__s__x'));
  assert.ok(!names(rule('deny', 'mcp__s'), 'mcp__s2__x'));
  assert.ok(names(rule('deny', 'mcp__*__del*'), 'mcp__any__delete'));
  assert.ok(!names({ ...rule('deny', 'read'), tool: 'constructor' }, 'read'));
});

test('a rule that forbids reading means grep and glob too, and one about edits means write', async () => {
  const { effect } = await prepare({ mode: 'yolo', settings: { deny: ['Read(private/**)', 'Edit(src/**)', 'grep(only/**)'] } });
  for (const name of ['read', 'grep', 'glob']) assert.equal(effect(name, { path: 'private/x' }), 'deny', name);
  for (const name of ['edit', 'write']) assert.equal(effect(name, { path: 'src/x' }), 'deny', name);
  assert.equal(effect('read', { path: 'src/x' }), 'allow');
  assert.equal(effect('grep', { path: 'only/x' }), 'deny');
  assert.equal(effect('read', { path: 'only/x' }), 'allow');
  const allowing = await prepare({ settings: { allow: ['edit(src/**)'] } });
  assert.deepEqual([allowing.effect('edit', { path: 'src/x' }), allowing.effect('write', { path: 'src/x' })], ['allow', 'ask']);
});

test('a pattern for files means the real file, whatever it is called and whoever leads there', async () => {
  const { effect, cwd } = await prepare({ mode: 'yolo', settings: { deny: ['read(private/*)', 'write(//etc/**)', 'read(~/notes/**)', `read(${folder()}/**)`] } });
  mkdirSync(join(cwd, 'private'));
  writeFileSync(join(cwd, 'private', 'x'), '');
  symlinkSync(join(cwd, 'private'), join(cwd, 'link'));
  symlinkSync(join(cwd, 'private', 'x'), join(cwd, 'harmless'));
  for (const path of ['private/x', './private/x', 'a/../private/x', 'link/x', 'harmless', join(cwd, 'private/x'), 'private/.hidden', 'private/not-there', 'private/deep/er/x'])
    assert.equal(effect('read', { path }), 'deny', path);
  for (const path of ['private', 'private2/x', 'x/private']) assert.equal(effect('read', { path }), 'allow', path);
  assert.equal(effect('read', { path: '~/notes/today' }), 'deny');
  assert.equal(effect('read', { path: join(homedir(), 'notes', '.today') }), 'deny');
  assert.equal(effect('read', { path: '~/other' }), 'allow');
});

test('a rule that forbids a folder forbids what is in it, however it is written', async () => {
  for (const pattern of ['private', './private', 'private/', 'private/**', ' private/** ', 'x/../private', '**/private', 'priv*', '*', '**', '', '.', '{private,x}']) {
    const { effect } = await prepare({ mode: 'yolo', settings: { deny: [`read(${pattern})`] } });
    for (const path of ['private/x', 'private/.deep/x']) assert.equal(effect('read', { path }), 'deny', `${pattern}: ${path}`);
  }
  for (const pattern of ['private/x', 'rivate', 'private2', '/rivate', '*/private']) {
    const { effect } = await prepare({ mode: 'yolo', settings: { deny: [`read(${pattern})`] } });
    assert.equal(effect('read', { path: 'private/y' }), 'allow', pattern);
  }
  const { effect } = await prepare({ settings: { allow: ['write(private)'] } });
  assert.equal(effect('write', { path: 'private/x' }), 'ask', 'to allow, it must say exactly what');
});

test('a pattern that allows does not reach hidden files, secrets or what steers programs', async () => {
  const { effect } = await prepare({ settings: { allow: ['write(**)', 'write(src/*)'] } });
  assert.equal(effect('write', { path: 'src/a.ts' }), 'allow');
  for (const path of ['.env', 'src/.env', '.git/config', '.mcp.json', '.vscode/tasks.json', '../x']) assert.notEqual(effect('write', { path }), 'allow', path);
});

test('a rule with a pattern that nobody can apply still forbids, and does not allow', async () => {
  const { effect } = await prepare({ mode: 'yolo', settings: { deny: ['mcp__mine__del(all)'] } });
  assert.equal(effect('mcp__mine__del'), 'deny');
});

test('the commands of a line are found behind the usual disguises', () => {
  const lines = [
    'rm -rf x', 'cd a && rm -rf x', 'true;rm -rf x', 'a | rm -rf x', 'a & rm -rf x', 'a\nrm -rf x', 'echo $(rm -rf x)', 'echo `rm -rf x`', 'cat <(rm -rf x)',
    '(rm -rf x)', '{ rm -rf x; }', 'sudo rm -rf x', 'A=1 B=2 rm -rf x', 'env A=1 rm -rf x', 'if a; then rm -rf x; fi', '! rm -rf x', '/bin/rm -rf x',
    'r\\m -rf x', '"rm" -rf x', "r'm' -rf x", 'rm  \t -rf x', `${'true; '.repeat(60)}rm -rf x`, 'sudo /usr/bin/"rm" -rf x', 'nohup time command exec rm -rf x',
    'sudo -u me rm -rf x', 'env -i /bin/rm -rf x', 'timeout 5 rm -rf x', 'ls | xargs -n 1 rm -rf x', "bash -c 'rm -rf x'", 'A=1 eval "rm -rf x"', '/usr/bin/nice -n 5 rm -rf x',
  ];
  for (const line of lines) assert.ok(commandsIn(line).some((command) => matchesText('rm -rf *', command)), line);
  for (const line of ['echo rm -rf', 'firm -rf x', 'rmdir x']) assert.ok(!commandsIn(line).some((command) => matchesText('rm -rf *', command)), line);
  for (const line of ['git push', 'git -C x push', 'git -c a=b --no-pager push', 'git --git-dir x --work-tree=y push', 'sudo git push'])
    assert.ok(commandsIn(line).some((command) => matchesText('git push*', command)), line);
  assert.ok(commandsIn('a;'.repeat(500_000)).length > 0);
  assert.ok(commandsIn(`sudo ${'a '.repeat(250_000)}`).length < 100);
  assert.ok(commandsIn('a=b '.repeat(250_000)).length > 0);
});

test('B5: arguments that nest too deeply are refused by a limit, in every mode', async () => {
  const nested = (levels: number): Json => {
    let args: Json = { x: 1 };
    for (let n = 1; n < levels; n++) args = { x: n % 2 ? [args] : args };
    return args;
  };
  for (const mode of MODES) {
    const { check } = await prepare({ mode, here: { allow: ['mcp__mine__x'] }, answers: [] });
    const reasons: string[] = [];
    for (const levels of [60, 100, 1000, 100_000]) {
      const verdict = await check('mcp__mine__x', nested(levels));
      reasons.push(verdict.allowed ? 'allowed' : verdict.reason);
    }
    const fitting = mode === 'read-only' ? /the mode is read-only/ : /^allowed$/;
    assert.match(reasons[0]!, fitting);
    for (const reason of reasons.slice(1)) assert.match(reason, /more than 100 levels/);
  }
});

// ─── Tools of the program's own ───

const own = (name: string, more: Partial<Tool> = {}): Tool => ({
  definition: { name, description: `the ${name}`, inputSchema: { type: 'object' } },
  readOnly: true,
  run: async () => ({ blocks: [{ type: 'text', text: `${name} ran` }], isError: false }),
  ...more,
});

test('a rule may name any tool that the program has, as it is spelled there or as Claude Code would', () => {
  const warnings: string[] = [];
  const some = reader((text) => warnings.push(text), [own('clock'), own('Lamp'), own('lamp')]);
  const parse = (effect: Effect, ...texts: string[]) => parseRules(effect, texts, onTheLine, some).map(({ tool }) => tool);
  for (const effect of ['allow', 'ask', 'deny'] as const)
    assert.deepEqual(parse(effect, 'clock', 'Clock', 'Lamp', 'lamp'), ['clock', 'clock', 'Lamp', 'lamp'], effect);
  assert.deepEqual(warnings, []);
  assert.deepEqual(parse('allow', 'clock(noon)', 'clok', 'cl*'), [], 'a pattern has no meaning for such a tool');
  assert.match(warnings[0]!, /ignored: "clock\(noon\)", "clok", "cl\*"/);
  assert.throws(() => parse('deny', 'clok'), /"clok" is no rule/);
});

test('a tool of its own that runs commands or writes files is as hard to allow as ours', async () => {
  const tools = [
    own('run', { touches: ({ line }) => ({ kind: 'shell', command: `${line}` }) }),
    own('odd', { touches: ({ line }) => ({ kind: 'shell', command: (line as string).trim() }) }), // fails without arguments
    own('save', { readOnly: false, touches: ({ file }) => ({ kind: 'write', path: `${file}` }) }),
    own('look', { touches: ({ file }) => ({ kind: 'read', path: `${file}` }) }),
  ];
  const { gate, warnings } = await prepare({ more: tools, here: { allow: ['run', 'run(*)', 'odd', 'run(ls)', 'save(src/**)'], deny: ['read(private)', 'edit(kept)'] } });
  assert.match(warnings[0]!, /ignored: "run", "run\(\*\)", "odd"/);
  const effect = (n: number, args: Json) => gate.judge(tools[n]!, args).effect;
  assert.deepEqual([effect(0, { line: 'ls' }), effect(0, { line: 'ls; id' }), effect(1, { line: 'ls' })], ['allow', 'ask', 'ask']);
  assert.deepEqual([effect(2, { file: 'src/a' }), effect(2, { file: 'b' }), effect(2, { file: '../c' })], ['allow', 'ask', 'deny']);
  assert.deepEqual([effect(2, { file: 'kept' }), effect(3, { file: 'private/x' })], ['deny', 'deny'], 'rules about reading and editing mean it, too');
  assert.deepEqual([effect(3, { file: 'a' }), effect(3, { file: '.env' })], ['allow', 'ask']);
  const bare = new Gate({ rules: [{ effect: 'allow', tool: 'run', text: 'run', isHere: true }], roots: new Roots(folder()), trust: new Trust({ home: folder(), cwd: folder() }) });
  assert.equal(bare.judge(tools[0]!, { line: 'ls' }).effect, 'ask', 'a rule that slipped through does not allow every command');
});

test('that it only reads is a tool\'s own word: without a touch it is asked about, and refused in read-only', async () => {
  const clock = own('clock');
  const expected: Record<Mode, Effect> = { ask: 'ask', 'read-only': 'deny', 'accept-edits': 'ask', yolo: 'allow' };
  for (const mode of MODES) {
    assert.equal((await prepare({ mode, more: [clock] })).gate.judge(clock, {}).effect, expected[mode], mode);
    const allowed = await prepare({ mode, more: [clock], settings: { allow: ['clock'] } });
    assert.equal(allowed.gate.judge(clock, {}).effect, mode === 'read-only' ? 'deny' : 'allow', `${mode}, with a rule`);
    const denied = await prepare({ mode, more: [clock], settings: { allow: ['clock'], deny: ['clock'] } });
    assert.equal(denied.gate.judge(clock, {}).effect, 'deny', `${mode}, with a rule that denies`);
  }
  const alone = await prepare({ more: [clock] });
  const verdict = await alone.check(clock);
  assert.ok(!verdict.allowed && /nobody to ask\. .* --allow 'clock'\.$/.test(verdict.reason), JSON.stringify(verdict));
});

test('a tool that asks for consent itself asks after the gate, and in the place of nothing that it denies', async () => {
  let asked = 0;
  const consent = async () => {
    asked++;
    return { allowed: true } as const;
  };
  const skill = own('skill', { consent });
  const denied = await prepare({ mode: 'yolo', more: [skill], settings: { deny: ['skill'] } });
  assert.equal((await denied.check(skill)).allowed, false);
  assert.equal(asked, 0);
  const { check } = await prepare({ mode: 'yolo', more: [skill] });
  assert.equal((await check(skill)).allowed, true);
  assert.equal(asked, 1);
});

test('"always" for a tool of the program\'s own is for this definition', async () => {
  const clock = own('clock');
  const { check, questions, trust, gate } = await prepare({ more: [clock], answers: ['a', 'n', 'n'] });
  assert.ok((await check(clock)).allowed);
  assert.equal(questions[0]!.text, 'The model wants to call clock:\n  (no arguments)\nAllow it? [y]es / [n]o / [a]lways this tool, as it is now, in this folder / or say why not');
  assert.ok((await check(clock, { zone: 'utc' })).allowed, 'whatever its arguments');
  assert.equal(questions.length, 1);
  assert.ok(!(await check(own('clock', { definition: { ...clock.definition, description: 'the clock, and your mail' } }))).allowed);
  assert.match(questions[1]!.text, /You had allowed this tool for good\. It has changed since:\n.*-.*the clock",\n.*\+.*and your mail/);
  assert.ok(!(await check(own('lamp'))).allowed, 'another tool is another question');
  gate.mode = 'read-only';
  assert.ok(!(await check(clock)).allowed);
  assert.deepEqual(trust.list().grants.map(({ kind }) => kind), ['tool']);
  assert.equal(trust.revoke('clock'), 1);
});

test('a server cannot be taken for a tool of the program, nor the other way round', async () => {
  const { check, mcp, questions } = await prepare({ more: [own('x')], answers: ['a', 'n', 'a', 'n'] });
  const served = mcp('mine', 'x', { description: 'the x' });
  assert.ok((await check(own('x'))).allowed);
  assert.ok(!(await check(served)).allowed, 'an "always" for the tool x is none for a server\'s x');
  assert.ok((await check(mcp('mine', 'y'))).allowed);
  assert.ok(!(await check(own('y'))).allowed);
  assert.equal(questions.length, 4);
});

test('in the loop: a tool of the program\'s own runs after a yes, and not before', async () => {
  const tools = [own('clock')];
  const asked = prepareAgent({ tools, answers: ['n', 'y'], script: calls(['clock', {}], ['clock', {}]) });
  await asked.agent.chat('go');
  assert.deepEqual(asked.outcomes(), ['denied', 'worked']);
  const allowed = prepareAgent({ tools, rules: { allow: ['clock'] }, script: calls(['clock', {}]) });
  await allowed.agent.chat('go');
  const denied = prepareAgent({ tools, mode: 'yolo', rules: { deny: ['clock'] }, script: calls(['clock', {}]) });
  await denied.agent.chat('go');
  assert.deepEqual([allowed.outcomes(), denied.outcomes()], [['worked'], ['denied']]);
});

// ─── Settings ───

test('the rules of the user count, and of a project only what tightens', () => {
  const [home, cwd] = [folder(), folder()];
  for (const [place, permissions, more] of [
    [home, { allow: ['mcp__a__b'], ask: ['bash(git push*)'], deny: ['bash(rm *)'], defaultMode: 'plan' }, {}],
    [cwd, { allow: ['bash(evil)'], deny: ['read(x)'], ask: ['edit'], defaultMode: 'bypassPermissions', additionalDirectories: ['/'] },
      { enableAllProjectMcpServers: true, enabledMcpjsonServers: ['x'], env: { A: 'b' }, shellEnv: ['A'] }],
  ] as const) {
    mkdirSync(join(place, '.claude'));
    writeFileSync(join(place, '.claude', 'settings.json'), JSON.stringify({ permissions, ...more }));
  }
  const warnings: string[] = [];
  const rules = readSettings(home, cwd, reader((text) => warnings.push(text)));
  assert.deepEqual(rules.map(({ effect, text, isHere }) => [effect, text, isHere]), [
    ['allow', 'mcp__a__b', false], ['ask', 'bash(git push*)', false], ['deny', 'bash(rm *)', false], ['ask', 'edit', false], ['deny', 'read(x)', false],
  ]);
  assert.equal(warnings.length, 1);
  for (const key of ['enableAllProjectMcpServers', 'enabledMcpjsonServers', 'env', 'shellEnv', 'permissions.allow', 'permissions.defaultMode', 'permissions.additionalDirectories'])
    assert.ok(warnings[0]!.includes(key), key);
});

test('in the home folder there is one file, and it is the user\'s, also behind a link', () => {
  const home = folder();
  mkdirSync(join(home, '.claude'));
  writeFileSync(join(home, '.claude', 'settings.json'), JSON.stringify({ permissions: { allow: ['mcp__a__b'], deny: ['bash'] } }));
  const link = join(folder(), 'link');
  symlinkSync(home, link);
  for (const [h, c] of [[home, home], [link, home], [home, link], [`${home}/`, home]] as const) {
    const warnings: string[] = [];
    assert.equal(readSettings(h, c, reader((text) => warnings.push(text))).length, 2);
    assert.deepEqual(warnings, []);
  }
});

test('no settings are no rules; a home that is no absolute path is said', () => {
  const warnings: string[] = [];
  assert.deepEqual(readSettings(folder(), folder(), reader((text) => warnings.push(text))), []);
  assert.equal(warnings.length, 0);
  for (const home of ['', '.', 'home']) {
    assert.deepEqual(readSettings(home, folder(), reader((text) => warnings.push(text))), []);
    assert.match(warnings.pop()!, /your rules are not read/);
  }
});

// ─── Modes ───

test('every kind of call in every mode', async () => {
  const kinds: [what: string, tool: string, args: Json, ...expected: Record<Mode, Effect>[]][] = [
    ['a read inside', 'read', { path: 'a' }, { ask: 'allow', 'read-only': 'allow', 'accept-edits': 'allow', yolo: 'allow' }],
    ['a search', 'grep', { pattern: 'x' }, { ask: 'allow', 'read-only': 'allow', 'accept-edits': 'allow', yolo: 'allow' }],
    ['a read outside', 'read', { path: '../a' }, { ask: 'ask', 'read-only': 'ask', 'accept-edits': 'ask', yolo: 'allow' }],
    ['a search outside', 'glob', { pattern: '*', path: '/' }, { ask: 'ask', 'read-only': 'ask', 'accept-edits': 'ask', yolo: 'allow' }],
    ['a read of a secret', 'read', { path: '.env' }, { ask: 'ask', 'read-only': 'ask', 'accept-edits': 'ask', yolo: 'allow' }],
    ['a write', 'write', { path: 'a' }, { ask: 'ask', 'read-only': 'deny', 'accept-edits': 'allow', yolo: 'allow' }],
    ['an edit', 'edit', { path: 'a' }, { ask: 'ask', 'read-only': 'deny', 'accept-edits': 'allow', yolo: 'allow' }],
    ['a write to a secret', 'write', { path: 'x/id_rsa' }, { ask: 'ask', 'read-only': 'deny', 'accept-edits': 'ask', yolo: 'allow' }],
    ['a write to a fence', 'edit', { path: '.git/hooks/pre-commit' }, { ask: 'ask', 'read-only': 'deny', 'accept-edits': 'ask', yolo: 'allow' }],
    ['a read of a fence', 'read', { path: '.git/HEAD' }, { ask: 'allow', 'read-only': 'allow', 'accept-edits': 'allow', yolo: 'allow' }],
    ['a write to a build file', 'write', { path: 'package.json' }, { ask: 'ask', 'read-only': 'deny', 'accept-edits': 'ask', yolo: 'allow' }],
    ['a write outside', 'write', { path: '../a' }, { ask: 'deny', 'read-only': 'deny', 'accept-edits': 'deny', yolo: 'deny' }],
    ['a command', 'bash', { command: 'true' }, { ask: 'ask', 'read-only': 'deny', 'accept-edits': 'ask', yolo: 'allow' }],
    ['a server of mine', 'mcp__mine__x', {}, { ask: 'ask', 'read-only': 'deny', 'accept-edits': 'ask', yolo: 'allow' }],
    ['a server of theirs', 'mcp__theirs__x', {}, { ask: 'ask', 'read-only': 'deny', 'accept-edits': 'ask', yolo: 'allow' }],
  ];
  for (const mode of MODES) {
    const open = await prepare({ mode });
    const asking = await prepare({ mode, here: { ask: ['*'] } });
    const denying = await prepare({ mode, here: { deny: ['*'], allow: ['read', 'write', 'edit', 'grep', 'glob', 'bash(true)', 'mcp__mine__*', 'mcp__theirs__x'] } });
    for (const [what, tool, args, expected] of kinds) {
      assert.equal(open.effect(tool, args), expected![mode], `${what}, mode ${mode}`);
      assert.equal(denying.effect(tool, args), 'deny', `${what}, mode ${mode}, with a rule that denies`);
      const asked = expected![mode] === 'deny' ? 'deny' : 'ask';
      assert.equal(asking.effect(tool, args), asked, `${what}, mode ${mode}, with a rule that asks`);
    }
  }
});

test('A5: a rule in the settings means a server of the user; one on the command line means any', async () => {
  const fromSettings = await prepare({ settings: { allow: ['mcp__mine__*', 'mcp__theirs__*', 'mcp__unknown__*'] } });
  assert.deepEqual(['mine', 'theirs', 'unknown'].map((name) => fromSettings.effect(`mcp__${name}__x`)), ['allow', 'ask', 'ask']);
  const fromTheLine = await prepare({ here: { allow: ['mcp__mine__x', 'mcp__theirs__*'] } });
  assert.deepEqual(['mine', 'theirs'].map((name) => fromTheLine.effect(`mcp__${name}__x`)), ['allow', 'allow']);
  const denied = await prepare({ settings: { deny: ['mcp__theirs'] } });
  assert.equal(denied.effect('mcp__theirs__x'), 'deny');
});

// ─── Asking ───

test('a question shows the tool, whose it is, and every argument, escaped and in full', async () => {
  const { check, questions } = await prepare({ answers: ['y', 'y', 'y', 'y'] });
  const long = `${' '.repeat(400)}tail`;
  await check('mcp__mine__send', { to: 'a\u202eb', note: long, 'odd\nkey': ['\x1b[2K'], deep: { a: { b: 'c' } } });
  assert.match(questions[0]!.text, /the tool "send" of the MCP server "mine"/);
  assert.deepEqual(questions[0]!.lines.slice(1), [
    '  to: "a\\u{202e}b"', `  note: "${long}"`, '  "odd\\nkey": ["\\u001b[2K"]', '  deep: {"a":{"b":"c"}}',
  ]);
  await check('bash', { command: 'echo one\nrm -rf two', timeout: 5 });
  assert.deepEqual(questions[1]!.lines, ['The model wants to call bash:', '  command:', '    │ echo one', '    │ rm -rf two', '  timeout: 5']);
  await check('write', { path: 'src/a.ts', content: 'x' });
  assert.deepEqual(questions[2]!.lines.slice(1), [
    '  path: "src/a.ts"', '  @@ -0,0 +1 @@', '  +│ x', '  \\ No newline at end of file',
    '  "src/a.ts": a new file, 1 line added',
  ]);
  await check('mcp__mine__big', { text: 'x'.repeat(1_000_000) });
  assert.ok(questions[3]!.text.includes('x'.repeat(1_000_000)));
});

test('a question about a change shows what becomes of the file; what would fail anyway is not asked', async () => {
  const edit = (path: string, old: string, more: Json = {}) => ['edit', { path, old, new: 'x', ...more }] as [string, Json];
  const { agent, questions, outcomes, results, file } = prepareAgent({
    files: { a: 'one\ntwo\ntwo\n', unread: 'one\n' }, answers: ['y', 'n', 'n'],
    script: calls(
      ['read', { path: 'a' }], edit('a', 'one'), edit('a', 'none'), edit('a', 'two'), edit('unread', 'one'), edit('missing', 'one'),
      ['write', { path: 'unread', content: '' }], ['write', { path: 'a', content: 'x\ntwo\ntwo\n' }], ['edit', { path: 'a', odd: 1 }],
      edit('a', 'two', { all: true }),
    ),
  });
  await agent.chat('go');
  assert.equal(questions.length, 3);
  assert.deepEqual(questions[0]!.lines, [
    'The model wants to call edit:', '  path: "a"', '  @@ -1,3 +1,3 @@', '  -│ one', '  +│ x', '   │ two', '   │ two',
    '  "a": 1 line added, 1 line removed',
  ]);
  assert.deepEqual(questions[1]!.lines.slice(1), ['  path: "a"', '  "a": nothing changes']);
  assert.match(questions[2]!.text, /"a": 2 lines added, 2 lines removed\nAllow it\?/); // `all` is in the diff
  const seen = outcomes().map((outcome) => outcome.replace('unreadable', 'failed')); // since chapter 28 arguments are checked before
  assert.deepEqual(seen, ['worked', 'worked', 'failed', 'failed', 'failed', 'failed', 'failed', 'denied', 'failed', 'denied']);
  const texts = results().map(({ text }) => text);
  assert.match(texts[2]!, /not found in a/);
  assert.match(texts[3]!, /found 2 times/);
  assert.match(texts[4]! + texts[6]!, /(unread exists and you have not read it.*){2}/);
  assert.match(texts[8]!, /there is no argument "odd"|- odd is not allowed here/);
  assert.equal(file('a'), 'x\ntwo\ntwo\n');
});

test('D21: of a delicate file the model learns nothing unasked, not even that an edit would fail', async () => {
  const { agent, questions, outcomes, results } = prepareAgent({
    files: { '.env': 'KEY=secret\n', 'private/x': 'hidden\n' }, answers: ['n', 'n', 'n', 'n'], rules: { ask: ['edit(private/**)'] },
    script: calls(
      ['edit', { path: '.env', old: 'KEY=secreT', new: '' }], ['edit', { path: '.env.local', old: 'x', new: '' }],
      ['edit', { path: 'private/x', old: 'x', new: '' }], ['edit', { path: 'private/y', old: 'x', new: '' }],
    ),
  });
  await agent.chat('go');
  assert.deepEqual(outcomes(), ['denied', 'denied', 'denied', 'denied']);
  assert.deepEqual(questions.map(({ text }) => /it will fail: "(there is no file|[\w./]+ exists and you have not read it)/.test(text)), [true, true, true, true]);
  const [there, missing] = [results()[2]!.text, results()[3]!.text].map((text) => text.replace(/[xy]\b/g, ''));
  assert.equal(there, missing, 'whether there is a file');
  assert.doesNotMatch(results().map(({ text }) => text).join(), /secret=|KEY=|hidden|no file|have not read/);
});

test('D20: what was shown is what happens: a file that changes while a person thinks is not written', async () => {
  const tricks: [string, (cwd: string) => void][] = [
    ['a', (cwd) => writeFileSync(join(cwd, 'a'), 'another text\n')],
    ['a', (cwd) => { // the same size, the same time: only its bytes tell
      const { atime, mtime } = statSync(join(cwd, 'a'));
      writeFileSync(join(cwd, 'a'), 'one\nTWO\n');
      utimesSync(join(cwd, 'a'), atime, mtime);
    }],
    ['a', (cwd) => rmSync(join(cwd, 'a'))],
    ['new', (cwd) => writeFileSync(join(cwd, 'new'), 'theirs\n')],
  ];
  for (const [path, trick] of tricks) {
    for (const [name, args] of [['write', { content: 'three\n' }], ['edit', { old: 'one', new: 'three' }]] as const) {
      if (name === 'edit' && path === 'new') continue;
      const before = new Date(2020, 1, 1); // whole seconds: a time that can be set again
      const { agent, cwd, outcomes, results, file, put } = prepareAgent({
        files: {}, script: calls(['read', { path: 'a' }], [name, { path, ...args }]),
        answers: [() => (trick(cwd), 'y')],
      });
      put('a', 'one\ntwo\n');
      utimesSync(join(cwd, 'a'), before, before);
      await agent.chat('go');
      assert.deepEqual(outcomes(), ['worked', 'failed'], `${name}: ${results()[1]!.text}`);
      assert.doesNotMatch(file(path) ?? '', /three/);
    }
  }
});

test('answers: only yes is yes, and a sentence goes back to the model', async () => {
  const table: [answer: string | undefined, allowed: boolean, reason?: RegExp][] = [
    ['y', true], ['yes', true], ['Y', true], [' YES ', true],
    ['n', false, /^The user said no\./], ['no', false, /^The user said no\./], ['', false, /said no/], [undefined, false, /said no/],
    ['use the other file', false, /^The user said no: use the other file$/], ['yes please', false, /no: yes please/], ['yy', false, /no: yy/], ['1', false], ['\u0443', false],
  ];
  for (const [answer, allowed, reason] of table) {
    const { check } = await prepare({ answers: [answer] });
    const verdict = await check('bash', { command: 'true' });
    assert.equal(verdict.allowed, allowed, `${answer}`);
    if (reason && !verdict.allowed) assert.match(verdict.reason, reason);
  }
});

test('always: for this command, this file, this tool; not for another', async () => {
  const { check, questions } = await prepare({ answers: ['always', 'a', 'A', 'n', 'n', 'n', 'n'] });
  const all: [string, Json][] = [['bash', { command: 'npm test' }], ['write', { path: 'a.txt', content: '1' }], ['mcp__mine__x', { n: 1 }]];
  for (const [name, args] of all) assert.ok((await check(name, args)).allowed);
  assert.deepEqual(questions.map(({ prompt }) => /\[a\]lways ([^/]*) \//.exec(prompt)?.[1]), [
    'this exact command in this folder', 'this file', 'this tool, as it is now, in this folder',
  ]);
  const again: [string, Json][] = [['bash', { command: 'npm test', timeout: 9 }], ['edit', { path: './a.txt' }], ['mcp__mine__x', { n: 2 }]];
  for (const [name, args] of again) assert.ok((await check(name, args)).allowed, name);
  assert.equal(questions.length, 3);
  const other: [string, Json][] = [['bash', { command: 'npm test ' }], ['write', { path: 'b.txt' }], ['mcp__mine__y', {}], ['mcp__theirs__x', {}]];
  for (const [name, args] of other) assert.ok(!(await check(name, args)).allowed, name);
});

test('always is not offered for secrets, fences and what is outside, and then is no answer', async () => {
  const { check, questions } = await prepare({ answers: ['always', 'n', 'a', '', 'ok', undefined] });
  for (const [name, path] of [['read', '.env'], ['write', '.git/config'], ['read', '/etc/hostname']] as const) {
    const verdict = await check(name, { path });
    assert.ok(!verdict.allowed);
    assert.ok(!questions.at(-1)!.prompt.includes('lways'));
    assert.deepEqual(questions.at(-1)!.lines.slice(-1), ['Please answer y or n, or say why not.']);
  }
});

test('a rule that asks is stronger than always, and than a rule that allows', async () => {
  const { check, questions } = await prepare({ settings: { ask: ['bash(git push*)'], allow: ['bash(git push)'] }, answers: ['y', 'y'] });
  await check('bash', { command: 'git push' });
  await check('bash', { command: 'git push' });
  assert.equal(questions.length, 2);
  assert.doesNotMatch(questions[0]!.prompt, /always/); // it would change nothing
  assert.match(questions[0]!.text, /the rule ask "bash\(git push\*\)"/);
});

test('where nobody can be asked the answer is no, and says how to allow it, if a rule can', async () => {
  const { check } = await prepare();
  const reason = async (name: string, args: Json = {}) => {
    const verdict = await check(name, args);
    assert.ok(!verdict.allowed);
    assert.match(verdict.reason, /nobody to ask/);
    return verdict.reason;
  };
  assert.match(await reason('bash', { command: 'npm test' }), /--allow 'bash\(npm test\)'\.$/);
  assert.match(await reason('mcp__theirs__x'), /--allow 'mcp__theirs__x'\.$/);
  assert.match(await reason('write', { path: 'a' }), /--allow 'write\(a\)'\.$/);
  for (const command of ["echo 'x'", 'a\nb', 'rm *']) assert.ok(!(await reason('bash', { command })).includes('--allow'), command);
  assert.ok(!(await reason('read', { path: '.env' })).includes('--allow'), 'no rule helps here');
  for (const [name, args] of [['bash', { command: 'npm test' }], ['mcp__theirs__x', {}], ['write', { path: 'a' }], ['edit', { path: './b/../c' }]] as const) {
    const rule = /--allow '(.*)'/.exec(await reason(name, args))![1]!;
    assert.equal((await prepare({ here: { allow: [rule] } })).effect(name, args), 'allow', 'what it says is true');
  }
});

test('a question that fails, or is overtaken by an abort, allows nothing', async () => {
  const { gate, tool, trust } = await prepare({ answers: [() => { throw new Error('the terminal is gone'); }] });
  assert.match((await rejection(gate.check(tool('bash'), { command: 'true' }, signal))).message, /terminal is gone/);
  const abort = new AbortController();
  const late = await prepare({ answers: [() => (abort.abort(), 'always')] });
  await rejection(late.gate.check(late.tool('bash'), { command: 'true' }, abort.signal));
  assert.deepEqual([...trust.list().grants, ...late.trust.list().grants], []);
});

test('a call that cannot be judged is not allowed', async () => {
  const { gate, tool } = await prepare({ mode: 'yolo' });
  assert.match((await rejection(gate.check(tool('read'), { path: 'a\0b' }, signal))).message, /NUL/);
  const endless: Json = {}; // cannot be shown
  endless.deeper = endless;
  const asked = await prepare({ answers: ['y'] });
  const verdict = await asked.gate.check(asked.tool('mcp__mine__x'), endless, signal);
  assert.equal(verdict.allowed, false);
  assert.equal(asked.questions.length, 0);
});

test('an abort is heard while a person is asked, also if the question stays open', async () => {
  const abort = new AbortController();
  const { agent, outcomes, file } = prepareAgent({
    answers: [() => (setTimeout(() => abort.abort(), 10), new Promise(() => {}))], script: calls(['write', { path: 'a', content: 'x' }]),
  });
  assert.equal((await agent.chat('go', abort.signal)).ending, 'aborted');
  assert.deepEqual(outcomes(), ['aborted']);
  assert.equal(file('a'), undefined);
});
