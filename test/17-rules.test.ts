// Chapter 17: the rules of the gate: how they are read, what they reach, and where they come from.

import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { Gate, hands, Roots, Trust, type Tool } from '../agent.ts';
import { MODES, type Mode } from '../chapters/17-the-gate/gate.ts';
import {
  commandsOfLine,
  matchesText,
  ruleNamesOf,
  namesTool,
  parseRules,
  readSettings,
  type Effect,
  type Rule,
} from '../chapters/17-the-gate/rules.ts';
import type { Json } from '../mcp.ts';
import { calls, prepareAgent } from './help/agent-with-gate.ts';
import { cleanUp, folder } from './help/basics.ts';
import { prepareGate } from './help/gate.ts';

afterEach(cleanUp);

/** Where the rules come from, and which tools there are. */
const inSettings = { name: 'settings.json', isHere: false };
const onTheLine = { name: '--deny', isHere: true };
const reader = (warn = (_: string) => {}, more: Tool[] = []) => {
  const cwd = folder();
  return { tools: [...hands({ roots: new Roots(cwd), resultsFolder: cwd }), ...more], warn };
};

// ─── Rules ───

test('rules are read as they are written; what is too broad to allow is left out and named', () => {
  const warnings: string[] = [];
  const parse = (effect: Effect, ...texts: string[]) =>
    parseRules(
      effect,
      texts,
      onTheLine,
      reader((text) => warnings.push(text)),
    ).map(({ tool, pattern }) => [tool, pattern]);
  assert.deepEqual(
    parse(
      'allow',
      'bash(npm test)',
      'Bash(a (b) c)',
      'bash(git status *)',
      'Bash(npm run:*)',
      ' mcp__git_hub__search ',
      'mcp__github__*',
      'Write(src/**)',
      'edit',
      'mcp__s__a__b',
    ),
    [
      ['bash', 'npm test'],
      ['bash', 'a (b) c'],
      ['bash', 'git status *'],
      ['bash', 'npm run:*'],
      ['mcp__git_hub__search', undefined],
      ['mcp__github__*', undefined],
      ['write', 'src/**'],
      ['edit', undefined],
      ['mcp__s__a__b', undefined],
    ],
  );
  assert.equal(warnings.length, 0);
  const broad = [
    '*',
    'mcp__*',
    'mcp__s',
    'mcp__s*',
    'mcp__*__*',
    'mcp____x',
    'mcp__s__a*',
    'mcp__s__t(x)',
    'bash',
    'bash()',
    'bash(*)',
    'bash(:*)',
    'bash( *)',
    'bash(git*)',
    'bash(a && b:*)',
    'bash($x:*)',
    'bash(A=1 b:*)',
    'bash("":*)',
    'bash(a >b:*)',
    'b*',
    '',
    '(x)',
    'a b',
    'Task',
  ];
  for (const text of broad) {
    assert.deepEqual(parse('allow', text), [], text);
    assert.ok(warnings.pop()!.includes(JSON.stringify(text)), text);
  }
  assert.deepEqual(parse('deny', '*', 'mcp__*', 'bash', 'Bash(rm:*)'), [
    ['*', undefined],
    ['mcp__*', undefined],
    ['bash', undefined],
    ['bash', 'rm:*'],
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
      assert.throws(
        () => parseRules(effect, [text], inSettings, reader()),
        new RegExp(`settings.json: ${JSON.stringify(text).replace(/[()]/g, '\\$&')} is no rule`),
      );
  for (const texts of [null, 'bash', { 0: 'bash' }, ['bash', 1], [['bash']]])
    assert.throws(
      () => parseRules('deny', texts, inSettings, reader()),
      /"deny" is not a list of strings/,
    );
});

test('a star in ask and deny stands for anything; without one a text must be equal', () => {
  const cases: [string, string, boolean][] = [
    ['rm *', 'rm x', true],
    ['rm *', 'rm', false],
    ['*', '', true],
    ['*a*', 'banana', true],
    ['a*a', 'a', false],
    ['a*a', 'aa', true],
    ['*.ts', 'a.ts.js', false],
    ['a*b*c', 'abc', true],
    ['a*b*c', 'acb', false],
    ['a', 'A', false],
    ['a.c', 'abc', false],
    ['**', 'x', true],
    ['', '', true],
    ['', 'x', false],
  ];
  for (const [pattern, text, expected] of cases)
    assert.equal(matchesText(pattern, text), expected, `${pattern} and ${text}`);
  assert.equal(matchesText('*a'.repeat(1000), 'a'.repeat(1_000_000)), true);
  assert.equal(matchesText(`${'*a'.repeat(1000)}b`, 'a'.repeat(1_000_000)), false);
});

test('D2: a rule for one server never reaches another', () => {
  const rule = (effect: Effect, text: string): Rule =>
    parseRules(effect, [text], onTheLine, reader())[0]!;
  const names = (each: Rule, name: string) =>
    namesTool(each, ruleNamesOf({ definition: { name } }));
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
  const { effect } = await prepareGate({
    mode: 'yolo',
    settings: { deny: ['Read(private/**)', 'Edit(src/**)', 'grep(only/**)'] },
  });
  for (const name of ['read', 'grep', 'glob'])
    assert.equal(effect(name, { path: 'private/x' }), 'deny', name);
  for (const name of ['edit', 'write']) assert.equal(effect(name, { path: 'src/x' }), 'deny', name);
  assert.equal(effect('read', { path: 'src/x' }), 'allow');
  assert.equal(effect('grep', { path: 'only/x' }), 'deny');
  assert.equal(effect('read', { path: 'only/x' }), 'allow');
  const allowing = await prepareGate({ settings: { allow: ['edit(src/**)'] } });
  assert.deepEqual(
    [allowing.effect('edit', { path: 'src/x' }), allowing.effect('write', { path: 'src/x' })],
    ['allow', 'ask'],
  );
});

test('a pattern for files means the real file, whatever it is called and whoever leads there', async () => {
  const { effect, cwd } = await prepareGate({
    mode: 'yolo',
    settings: {
      deny: ['read(private/*)', 'write(//etc/**)', 'read(~/notes/**)', `read(${folder()}/**)`],
    },
  });
  mkdirSync(join(cwd, 'private'));
  writeFileSync(join(cwd, 'private', 'x'), '');
  symlinkSync(join(cwd, 'private'), join(cwd, 'link'));
  symlinkSync(join(cwd, 'private', 'x'), join(cwd, 'harmless'));
  for (const path of [
    'private/x',
    './private/x',
    'a/../private/x',
    'link/x',
    'harmless',
    join(cwd, 'private/x'),
    'private/.hidden',
    'private/not-there',
    'private/deep/er/x',
  ])
    assert.equal(effect('read', { path }), 'deny', path);
  for (const path of ['private', 'private2/x', 'x/private'])
    assert.equal(effect('read', { path }), 'allow', path);
  assert.equal(effect('read', { path: '~/notes/today' }), 'deny');
  assert.equal(effect('read', { path: join(homedir(), 'notes', '.today') }), 'deny');
  assert.equal(effect('read', { path: '~/other' }), 'allow');
});

test('a rule that forbids a folder forbids what is in it, however it is written', async () => {
  for (const pattern of [
    'private',
    './private',
    'private/',
    'private/**',
    ' private/** ',
    'x/../private',
    '**/private',
    'priv*',
    '*',
    '**',
    '',
    '.',
    '{private,x}',
  ]) {
    const { effect } = await prepareGate({
      mode: 'yolo',
      settings: { deny: [`read(${pattern})`] },
    });
    for (const path of ['private/x', 'private/.deep/x'])
      assert.equal(effect('read', { path }), 'deny', `${pattern}: ${path}`);
  }
  for (const pattern of ['private/x', 'rivate', 'private2', '/rivate', '*/private']) {
    const { effect } = await prepareGate({
      mode: 'yolo',
      settings: { deny: [`read(${pattern})`] },
    });
    assert.equal(effect('read', { path: 'private/y' }), 'allow', pattern);
  }
  const { effect } = await prepareGate({ settings: { allow: ['write(private)'] } });
  assert.equal(effect('write', { path: 'private/x' }), 'ask', 'to allow, it must say exactly what');
});

test('a pattern that allows does not reach hidden files, secrets or what steers programs', async () => {
  const { effect } = await prepareGate({ settings: { allow: ['write(**)', 'write(src/*)'] } });
  assert.equal(effect('write', { path: 'src/a.ts' }), 'allow');
  for (const path of ['.env', 'src/.env', '.git/config', '.mcp.json', '.vscode/tasks.json', '../x'])
    assert.notEqual(effect('write', { path }), 'allow', path);
});

test('a rule with a pattern that nobody can apply still forbids, and does not allow', async () => {
  const { effect } = await prepareGate({
    mode: 'yolo',
    settings: { deny: ['mcp__mine__del(all)'] },
  });
  assert.equal(effect('mcp__mine__del'), 'deny');
});

test('the commands of a line are found behind the usual disguises', () => {
  const lines = [
    'rm -rf x',
    'cd a && rm -rf x',
    'true;rm -rf x',
    'a | rm -rf x',
    'a & rm -rf x',
    'a\nrm -rf x',
    'echo $(rm -rf x)',
    'echo `rm -rf x`',
    'cat <(rm -rf x)',
    '(rm -rf x)',
    '{ rm -rf x; }',
    'sudo rm -rf x',
    'A=1 B=2 rm -rf x',
    'env A=1 rm -rf x',
    'if a; then rm -rf x; fi',
    '! rm -rf x',
    '/bin/rm -rf x',
    'r\\m -rf x',
    '"rm" -rf x',
    "r'm' -rf x",
    'rm  \t -rf x',
    `${'true; '.repeat(60)}rm -rf x`,
    'sudo /usr/bin/"rm" -rf x',
    'nohup time command exec rm -rf x',
    'sudo -u me rm -rf x',
    'env -i /bin/rm -rf x',
    'timeout 5 rm -rf x',
    'ls | xargs -n 1 rm -rf x',
    "bash -c 'rm -rf x'",
    'A=1 eval "rm -rf x"',
    '/usr/bin/nice -n 5 rm -rf x',
  ];
  for (const line of lines)
    assert.ok(
      commandsOfLine(line).some((command) => matchesText('rm -rf *', command)),
      line,
    );
  for (const line of ['echo rm -rf', 'firm -rf x', 'rmdir x'])
    assert.ok(!commandsOfLine(line).some((command) => matchesText('rm -rf *', command)), line);
  for (const line of [
    'git push',
    'git -C x push',
    'git -c a=b --no-pager push',
    'git --git-dir x --work-tree=y push',
    'sudo git push',
  ])
    assert.ok(
      commandsOfLine(line).some((command) => matchesText('git push*', command)),
      line,
    );
  assert.ok(commandsOfLine('a;'.repeat(500_000)).length > 0);
  assert.ok(commandsOfLine(`sudo ${'a '.repeat(250_000)}`).length < 100);
  assert.ok(commandsOfLine('a=b '.repeat(250_000)).length > 0);
});

test('B5: arguments that nest too deeply are refused by a limit, in every mode', async () => {
  const nested = (levels: number): Json => {
    let args: Json = { x: 1 };
    for (let n = 1; n < levels; n++) args = { x: n % 2 ? [args] : args };
    return args;
  };
  for (const mode of MODES) {
    const { check } = await prepareGate({ mode, here: { allow: ['mcp__mine__x'] }, answers: [] });
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
  const parse = (effect: Effect, ...texts: string[]) =>
    parseRules(effect, texts, onTheLine, some).map(({ tool }) => tool);
  for (const effect of ['allow', 'ask', 'deny'] as const)
    assert.deepEqual(
      parse(effect, 'clock', 'Clock', 'Lamp', 'lamp'),
      ['clock', 'clock', 'Lamp', 'lamp'],
      effect,
    );
  assert.deepEqual(warnings, []);
  assert.deepEqual(
    parse('allow', 'clock(noon)', 'clok', 'cl*'),
    [],
    'a pattern has no meaning for such a tool',
  );
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
  const { gate, warnings } = await prepareGate({
    more: tools,
    here: {
      allow: ['run', 'run(*)', 'odd', 'run(ls)', 'save(src/**)'],
      deny: ['read(private)', 'edit(kept)'],
    },
  });
  assert.match(warnings[0]!, /ignored: "run", "run\(\*\)", "odd"/);
  const effect = (n: number, args: Json) => gate.judge(tools[n]!, args).effect;
  assert.deepEqual(
    [effect(0, { line: 'ls' }), effect(0, { line: 'ls; id' }), effect(1, { line: 'ls' })],
    ['allow', 'ask', 'ask'],
  );
  assert.deepEqual(
    [effect(2, { file: 'src/a' }), effect(2, { file: 'b' }), effect(2, { file: '../c' })],
    ['allow', 'ask', 'deny'],
  );
  assert.deepEqual(
    [effect(2, { file: 'kept' }), effect(3, { file: 'private/x' })],
    ['deny', 'deny'],
    'rules about reading and editing mean it, too',
  );
  assert.deepEqual([effect(3, { file: 'a' }), effect(3, { file: '.env' })], ['allow', 'ask']);
  const bare = new Gate({
    rules: [{ effect: 'allow', tool: 'run', text: 'run', isHere: true }],
    roots: new Roots(folder()),
    trust: new Trust({ home: folder(), cwd: folder() }),
  });
  assert.equal(
    bare.judge(tools[0]!, { line: 'ls' }).effect,
    'ask',
    'a rule that slipped through does not allow every command',
  );
});

test("that it only reads is a tool's own word: without a touch it is asked about, and refused in read-only", async () => {
  const clock = own('clock');
  const expected: Record<Mode, Effect> = {
    ask: 'ask',
    'read-only': 'deny',
    'accept-edits': 'ask',
    yolo: 'allow',
  };
  for (const mode of MODES) {
    assert.equal(
      (await prepareGate({ mode, more: [clock] })).gate.judge(clock, {}).effect,
      expected[mode],
      mode,
    );
    const allowed = await prepareGate({ mode, more: [clock], settings: { allow: ['clock'] } });
    assert.equal(
      allowed.gate.judge(clock, {}).effect,
      mode === 'read-only' ? 'deny' : 'allow',
      `${mode}, with a rule`,
    );
    const denied = await prepareGate({
      mode,
      more: [clock],
      settings: { allow: ['clock'], deny: ['clock'] },
    });
    assert.equal(denied.gate.judge(clock, {}).effect, 'deny', `${mode}, with a rule that denies`);
  }
  const alone = await prepareGate({ more: [clock] });
  const verdict = await alone.check(clock);
  assert.ok(
    !verdict.allowed && /nobody to ask\. .* --allow 'clock'\.$/.test(verdict.reason),
    JSON.stringify(verdict),
  );
});

test('a tool that asks for consent itself asks after the gate, and in the place of nothing that it denies', async () => {
  let asked = 0;
  const consent = async () => {
    asked++;
    return { allowed: true } as const;
  };
  const skill = own('skill', { consent });
  const denied = await prepareGate({ mode: 'yolo', more: [skill], settings: { deny: ['skill'] } });
  assert.equal((await denied.check(skill)).allowed, false);
  assert.equal(asked, 0);
  const { check } = await prepareGate({ mode: 'yolo', more: [skill] });
  assert.equal((await check(skill)).allowed, true);
  assert.equal(asked, 1);
});

test('"always" for a tool of the program\'s own is for this definition', async () => {
  const clock = own('clock');
  const { check, questions, trust, gate } = await prepareGate({
    more: [clock],
    answers: ['a', 'n', 'n'],
  });
  assert.ok((await check(clock)).allowed);
  assert.equal(
    questions[0]!.text,
    'The model wants to call clock:\n  (no arguments)\nAllow it? [y]es / [n]o / [a]lways this tool, as it is now, in this folder / or say why not',
  );
  assert.ok((await check(clock, { zone: 'utc' })).allowed, 'whatever its arguments');
  assert.equal(questions.length, 1);
  assert.ok(
    !(
      await check(
        own('clock', {
          definition: { ...clock.definition, description: 'the clock, and your mail' },
        }),
      )
    ).allowed,
  );
  assert.match(
    questions[1]!.text,
    /You had allowed this tool for good\. It has changed since:\n.*-.*the clock",\n.*\+.*and your mail/,
  );
  assert.ok(!(await check(own('lamp'))).allowed, 'another tool is another question');
  gate.mode = 'read-only';
  assert.ok(!(await check(clock)).allowed);
  assert.deepEqual(
    trust.list().grants.map(({ kind }) => kind),
    ['tool'],
  );
  assert.equal(trust.revoke('clock'), 1);
});

test('a server cannot be taken for a tool of the program, nor the other way round', async () => {
  const { check, mcp, questions } = await prepareGate({
    more: [own('x')],
    answers: ['a', 'n', 'a', 'n'],
  });
  const served = mcp('mine', 'x', { description: 'the x' });
  assert.ok((await check(own('x'))).allowed);
  assert.ok(!(await check(served)).allowed, 'an "always" for the tool x is none for a server\'s x');
  assert.ok((await check(mcp('mine', 'y'))).allowed);
  assert.ok(!(await check(own('y'))).allowed);
  assert.equal(questions.length, 4);
});

test("in the loop: a tool of the program's own runs after a yes, and not before", async () => {
  const tools = [own('clock')];
  const asked = prepareAgent({
    tools,
    answers: ['n', 'y'],
    script: calls(['clock', {}], ['clock', {}]),
  });
  await asked.agent.chat('go');
  assert.deepEqual(asked.outcomes(), ['denied', 'worked']);
  const allowed = prepareAgent({
    tools,
    rules: { allow: ['clock'] },
    script: calls(['clock', {}]),
  });
  await allowed.agent.chat('go');
  const denied = prepareAgent({
    tools,
    mode: 'yolo',
    rules: { deny: ['clock'] },
    script: calls(['clock', {}]),
  });
  await denied.agent.chat('go');
  assert.deepEqual([allowed.outcomes(), denied.outcomes()], [['worked'], ['denied']]);
});

// ─── Settings ───

test('the rules of the user count, and of a project only what tightens', () => {
  const [home, cwd] = [folder(), folder()];
  for (const [place, permissions, more] of [
    [
      home,
      { allow: ['mcp__a__b'], ask: ['bash(git push*)'], deny: ['bash(rm *)'], defaultMode: 'plan' },
      {},
    ],
    [
      cwd,
      {
        allow: ['bash(evil)'],
        deny: ['read(x)'],
        ask: ['edit'],
        defaultMode: 'bypassPermissions',
        additionalDirectories: ['/'],
      },
      {
        enableAllProjectMcpServers: true,
        enabledMcpjsonServers: ['x'],
        env: { A: 'b' },
        shellEnv: ['A'],
      },
    ],
  ] as const) {
    mkdirSync(join(place, '.claude'));
    writeFileSync(
      join(place, '.claude', 'settings.json'),
      JSON.stringify({ permissions, ...more }),
    );
  }
  const warnings: string[] = [];
  const rules = readSettings(
    home,
    cwd,
    reader((text) => warnings.push(text)),
  );
  assert.deepEqual(
    rules.map(({ effect, text, isHere }) => [effect, text, isHere]),
    [
      ['allow', 'mcp__a__b', false],
      ['ask', 'bash(git push*)', false],
      ['deny', 'bash(rm *)', false],
      ['ask', 'edit', false],
      ['deny', 'read(x)', false],
    ],
  );
  assert.equal(warnings.length, 1);
  for (const key of [
    'enableAllProjectMcpServers',
    'enabledMcpjsonServers',
    'env',
    'shellEnv',
    'permissions.allow',
    'permissions.defaultMode',
    'permissions.additionalDirectories',
  ])
    assert.ok(warnings[0]!.includes(key), key);
});

test("in the home folder there is one file, and it is the user's, also behind a link", () => {
  const home = folder();
  mkdirSync(join(home, '.claude'));
  writeFileSync(
    join(home, '.claude', 'settings.json'),
    JSON.stringify({ permissions: { allow: ['mcp__a__b'], deny: ['bash'] } }),
  );
  const link = join(folder(), 'link');
  symlinkSync(home, link);
  for (const [h, c] of [
    [home, home],
    [link, home],
    [home, link],
    [`${home}/`, home],
  ] as const) {
    const warnings: string[] = [];
    assert.equal(
      readSettings(
        h,
        c,
        reader((text) => warnings.push(text)),
      ).length,
      2,
    );
    assert.deepEqual(warnings, []);
  }
});

test('no settings are no rules; a home that is no absolute path is said', () => {
  const warnings: string[] = [];
  assert.deepEqual(
    readSettings(
      folder(),
      folder(),
      reader((text) => warnings.push(text)),
    ),
    [],
  );
  assert.equal(warnings.length, 0);
  for (const home of ['', '.', 'home']) {
    assert.deepEqual(
      readSettings(
        home,
        folder(),
        reader((text) => warnings.push(text)),
      ),
      [],
    );
    assert.match(warnings.pop()!, /your rules are not read/);
  }
});
