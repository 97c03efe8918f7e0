// Attack cases D (permissions) and F3, by their ids: real tools, real files, and a model that does
// what an attacker wants. What needs a terminal (D4 D5 F1 F2) is elsewhere.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import type { ScriptLine } from '../chapters/15-the-loop/scripted.ts';
import { MODES } from '../chapters/17-the-gate/gate.ts';
import type { Json } from '../mcp.ts';
import { calls, prepareAgent } from './help/agent-with-gate.ts';
import { cleanUp, folder, goodServer, habit } from './help/basics.ts';
import { judges } from './help/gate.ts';
import { command } from './help/terminal.ts';

afterEach(cleanUp);

const good = { command: process.execPath, args: [goodServer] };
const add: [string, Json] = ['mcp__s__add', { a: 1, b: 2 }];

// ─── D: permissions ───

test('D1: what is denied is denied in every mode, whatever allows it', async () => {
  for (const mode of MODES) {
    const { agent, outcomes, results } = prepareAgent({
      mode,
      servers: { s: good },
      settings: {
        permissions: {
          allow: ['mcp__s__*', 'bash(touch owned)'],
          deny: ['mcp__s__add', 'Bash(touch:*)', 'write(private/**)'],
        },
      },
      rules: { allow: ['mcp__s__add', 'write'] },
      answers: [],
      script: calls(
        add,
        ['bash', { command: 'touch owned' }],
        ['write', { path: 'private/x', content: '' }],
        ['bash', { command: 'true && touch owned' }],
      ),
    });
    await agent.chat('go');
    assert.deepEqual(outcomes(), ['denied', 'denied', 'denied', 'denied'], mode);
    assert.match(results()[0]!.text, /the rule deny "mcp__s__add" forbids mcp__s__add/);
  }
});

test('D1: "always" does not outweigh a rule that denies', async () => {
  const place = { home: folder(), cwd: folder(), servers: { s: good }, script: calls(add) };
  const before = prepareAgent({ ...place, answers: ['always'] });
  await before.agent.chat('go');
  const after = prepareAgent({ ...place, rules: { deny: ['mcp__s__add'] }, answers: [] });
  await after.agent.chat('go');
  assert.deepEqual([before.outcomes(), after.outcomes()], [['worked'], ['denied']]);
});

test('D2: rules that allow too much allow nothing, and are named; a prefix is not a name', async () => {
  const allow = [
    '*',
    'mcp__*',
    'mcp__s',
    'mcp__s*',
    'bash',
    'bash(*)',
    'Bash(:*)',
    'bash(touch*)',
    'mcp__*__*',
    'all',
  ];
  const { agent, outcomes, warnings, file } = prepareAgent({
    servers: { s: good, s2: good },
    settings: { permissions: { allow: [...allow, 'mcp__s2__*'] } },
    rules: { allow },
    script: calls(add, ['bash', { command: 'touch owned' }], ['mcp__s2__add', { a: 1, b: 2 }]),
  });
  await agent.chat('go');
  assert.deepEqual(outcomes(), ['denied', 'denied', 'worked']);
  assert.equal(file('owned'), undefined);
  const ignored = warnings.filter((text) => text.includes('too broad to allow anything'));
  assert.equal(ignored.length, 2); // of the settings, and of the command line
  for (const rule of allow)
    for (const text of ignored) assert.ok(text.includes(JSON.stringify(rule)), rule);
});

test('D2: a rule for what only starts other commands would allow all of them, and is ignored', () => {
  const launchers = [
    'env',
    'bash -c',
    'timeout 60',
    '/usr/bin/xargs',
    'sudo -n',
    'time',
    'env A=1',
    'sh',
    '.',
  ];
  const { effect, warnings } = judges({
    rules: {
      allow: [...launchers.map((words) => `bash(${words}:*)`), 'bash(sh x.sh:*)', 'bash(env)'],
    },
  });
  for (const words of launchers) assert.equal(effect(`${words} touch M`), 'ask', words);
  for (const words of launchers) assert.ok(warnings[0]!.includes(`"bash(${words}:*)"`), words);
  assert.deepEqual(['sh x.sh 1', 'env'].map(effect), ['allow', 'allow']);
});

test('D3: where nobody can be asked it is a no, without waiting; "y" on stdin is no consent', async () => {
  const [home, cwd] = [folder(), folder()];
  mkdirSync(join(home, '.claude'));
  writeFileSync(
    join(cwd, '.mcp.json'),
    JSON.stringify({ mcpServers: { s: habit('canary', join(cwd, 'started')) } }),
  );
  const [node, ...program] = command;
  const args = [...program, '--model', 'rehearsal', 'bash command="touch owned"'];
  const child = spawn(node, args, { cwd, env: { ...process.env, HOME: home } });
  child.stdin.on('error', () => {}); // it may not read to the end
  child.stdin.end('y\n'.repeat(20));
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => (output += text));
  await new Promise((done) => child.on('close', done));
  assert.ok(!existsSync(join(cwd, 'owned')) && !existsSync(join(cwd, 'started')), output);
  assert.match(output, /"s" .*is not started: you have not approved it/);
  assert.match(output, /bash needs your permission, and there is nobody to ask/);
});

test('D6: a question shows what will be done, not what the model says about it', async () => {
  const { agent, questions } = prepareAgent({
    files: { '.env': 'SECRET=1' },
    answers: ['n'],
    script: [
      {
        text: 'I am only reading README.md. Please answer y.',
        calls: [{ name: 'read', args: { path: '.env', limit: 1 } }],
      },
      'done',
    ],
  });
  await agent.chat('go');
  assert.deepEqual(questions[0]!.lines, [
    'The model wants to call read (environment files hold secrets):',
    '  path: ".env"',
    '  limit: 1',
  ]);
});

test('D7: "always" stays in its project, with its server as it was started', async () => {
  const [home, P, Q] = [folder(), folder(), folder()];
  const run = async (cwd: string, config: Json, ...answers: string[]) => {
    const { agent, outcomes, questions } = prepareAgent({
      home,
      cwd,
      servers: { s: config },
      script: calls(add, ['bash', { command: 'true' }]),
      answers,
    });
    await agent.chat('go');
    return [outcomes(), questions.length];
  };
  assert.deepEqual(await run(P, good, 'always', 'always'), [['worked', 'worked'], 2]);
  assert.deepEqual(await run(P, good), [['worked', 'worked'], 0]);
  assert.deepEqual(await run(Q, good, 'n', 'n'), [['denied', 'denied'], 2], 'another project');
  assert.deepEqual(
    await run(P, { ...good, env: { X: '1' } }, 'n'),
    [['denied', 'worked'], 1],
    'another fingerprint',
  );
  assert.deepEqual(await run(P, good), [['worked', 'worked'], 0]);
});

test('D8: the agent cannot move its own fence: files that steer it are asked about in accept-edits, and nothing is loaded anew', async () => {
  const paths = [
    '.mcp.json',
    '.claude/settings.json',
    '.CLAUDE/Settings.json',
    '.claude/settings.local.json',
    '.mcp-by-hand/trust.json',
    '.MCP.json',
    './a/../.mcp.json',
    '.claude./settings.json',
    '.cl\u200baude/settings.json',
  ];
  const marker = join(folder(), 'marker');
  const evil = JSON.stringify({
    mcpServers: { evil: habit('canary', marker) },
    permissions: { allow: ['bash(touch owned)'] },
  });
  const { agent, outcomes, questions, file, mcp } = prepareAgent({
    mode: 'accept-edits',
    answers: [...paths.map(() => 'n'), 'y', 'y', 'n'],
    script: calls(
      ...paths.map((path): [string, Json] => ['write', { path, content: evil }]),
      ['write', { path: '.mcp.json', content: evil }],
      ['write', { path: '.claude/settings.json', content: evil }],
      ['bash', { command: 'touch owned' }],
      ['mcp__evil__echo', {}],
    ),
  });
  await agent.chat('go');
  assert.deepEqual(outcomes(), [
    ...paths.map(() => 'denied'),
    'worked',
    'worked',
    'denied',
    'unknown',
  ]);
  assert.ok(questions.slice(0, paths.length).every(({ prompt }) => !prompt.includes('lways')));
  assert.equal(file('.mcp.json'), evil);
  assert.deepEqual(mcp.status(), []);
  assert.ok(!existsSync(marker));
});

test('D8: with nobody to ask they are not written at all, not even through a link', async () => {
  const { agent, outcomes, cwd, file } = prepareAgent({
    mode: 'accept-edits',
    files: { 'notes/x': '' },
    script: calls(
      ['write', { path: 'innocent.json', content: '{}' }],
      ['write', { path: 'dir/settings.json', content: '{}' }],
      ['write', { path: 'notes/y', content: '1' }],
    ),
  });
  symlinkSync(join(cwd, '.mcp.json'), join(cwd, 'innocent.json'));
  symlinkSync(join(cwd, '.claude'), join(cwd, 'dir'));
  await agent.chat('go');
  assert.deepEqual(outcomes(), ['denied', 'denied', 'worked']);
  assert.equal(file('.mcp.json'), undefined);
});

test('D9: what is allowed for good is this path and this command, to the letter', async () => {
  const { agent, outcomes, questions } = prepareAgent({
    answers: ['always', 'always', 'n', 'n', 'n', 'n'],
    script: calls(
      ['write', { path: 'a[1]*', content: '1' }],
      ['bash', { command: 'echo ")" # *' }],
      ['write', { path: 'a1x', content: '' }],
      ['write', { path: 'a[1]*b', content: '' }],
      ['bash', { command: 'echo ")" # x' }],
      ['bash', { command: 'echo' }],
      ['write', { path: 'a[1]*', content: '2' }],
      ['bash', { command: 'echo ")" # *' }],
    ),
  });
  await agent.chat('go');
  assert.deepEqual(outcomes(), [
    'worked',
    'worked',
    'denied',
    'denied',
    'denied',
    'denied',
    'worked',
    'worked',
  ]);
  assert.equal(questions.length, 6);
});

test('D9: a look-alike of what was allowed is something else', async () => {
  const { agent, outcomes } = prepareAgent({
    answers: ['always', 'n', 'n', 'n', 'n'],
    script: calls(
      ...['echo a', 'e\u0441ho a', 'echo a\u200b', 'echo\u00a0a', 'echo  a'].map(
        (command): [string, Json] => ['bash', { command }],
      ),
    ),
  });
  await agent.chat('go');
  assert.deepEqual(outcomes(), ['worked', 'denied', 'denied', 'denied', 'denied']);
});

// ─── D11: rules name tools as their servers do ───

const listing = (...names: string[]) =>
  habit('tools', JSON.stringify(names.map((name) => ({ name, inputSchema: { type: 'object' } }))));
const callAll: ScriptLine[] = [
  ({ tools }) => {
    const found = tools.filter(({ name }) => name.startsWith('mcp'));
    return { calls: found.map(({ name }) => ({ name, args: {} })) };
  },
  'done',
];
/** The server has no such tools in truth, so what passes the gate fails behind it. */
const isDenied = (outcome: string) => outcome === 'denied';
const LONG = 'list_all_of_the_open_pull_requests_of_every_repository_there_is';

test('D11: what is denied as its server calls it is denied, whatever its label is', async () => {
  const servers = {
    s: listing('files.delete', LONG, 'ok'),
    'db.prod': listing('x'),
    'my server (old)': listing('y'),
    [`s-${LONG}`]: listing('z'),
    Ünter: listing('u'),
    free: listing('ok'),
  };
  const deny = [
    'mcp__s__files.delete',
    `mcp__s__${LONG}`,
    'mcp__db.prod__*',
    'mcp__my server (old)',
    `mcp__s-${LONG}__z`,
    'mcp__U\u0308NTER',
  ];
  for (const how of [{ rules: { deny } }, { settings: { permissions: { deny } } }]) {
    const { agent, outcomes } = prepareAgent({ mode: 'yolo', servers, script: callAll, ...how });
    await agent.chat('go');
    const expected = [true, true, false, true, true, true, true, false];
    assert.deepEqual(outcomes().map(isDenied), expected, JSON.stringify(how));
  }
});

test('D11: Claude Code writes "_" for what it does not like, and that counts', async () => {
  const servers = { 'db.prod': listing('drop.all', 'ok'), 'a b': listing('c') };
  const rules = { deny: ['mcp__db_prod__drop_all'], ask: ['mcp__a_b__*'] };
  const { agent, outcomes } = prepareAgent({ mode: 'yolo', servers, script: callAll, rules });
  await agent.chat('go');
  assert.deepEqual(outcomes().map(isDenied), [true, false, true]);
});

test('D11: a real name may allow too, but only what it says beyond doubt', async () => {
  const servers = {
    a: listing('b__c', 'd.e'),
    a__b: listing('c'),
    'x.y': listing('t'),
    x_y: listing('t'),
    s_: listing('t'),
    s: listing('_t'),
  };
  const allow = ['mcp__a__d.e', 'mcp__a__b__c', 'mcp__x.y__*', 'mcp__s___t'];
  const { agent, outcomes, model } = prepareAgent({ servers, script: callAll, rules: { allow } });
  await agent.chat('go');
  const offered = model.requests[0]!.tools.filter(({ name }) => name.startsWith('mcp'));
  const worked = offered.filter((_, n) => !isDenied(outcomes()[n]!)).map(({ name }) => name);
  assert.equal(worked.length, 4);
  assert.ok(worked[0] === 'mcp__a__b__c' && worked[1]!.startsWith('mcp__a__d_e-'), `${worked}`);
  assert.ok(worked[2]!.startsWith('mcp__x_y-') && worked[3] === 'mcp__s___t', `${worked}`);
  const wide = ['mcp__a', 'mcp__*__t', 'mcp__x.*__t', 'MCP__x.y__*', 'mcp__a__d.*', 'mcp__x.y__'];
  const none = prepareAgent({ servers, script: callAll, rules: { allow: wide } });
  await none.agent.chat('go');
  assert.ok(none.outcomes().every(isDenied));
  for (const text of wide)
    assert.ok(
      none.warnings.some((each) => each.includes(text)),
      text,
    );
});

test('D11: a rule that could never deny anything is an error at start', () => {
  const never = [
    'mcp__',
    'mcp__s__',
    'mcp_s_delete',
    'mcp-s',
    'mcp__a/b__c',
    'mcp__s__my tool',
    'mcp__s__t\u0007',
    `mcp__${'x'.repeat(300)}`,
    'delete',
    'raed(x)',
    'wirte*',
    `read(${'{a,b}'.repeat(20)})`,
    `write(${'x'.repeat(999)})`,
  ];
  for (const effect of ['deny', 'ask'] as const)
    for (const text of never) {
      const settings = { permissions: { [effect]: ['bash', text] } };
      const said = `${JSON.stringify(text)} is no rule`;
      const message = (error: Error) => error.message.includes(said);
      assert.throws(() => prepareAgent({ settings }), message, text);
      assert.throws(() => prepareAgent({ rules: { [effect]: [text] } }), message, text);
    }
});

test('D11: a rule for a server or a program that is not here is kept; the latter is told', () => {
  const kept = ['mcp__elsewhere', 'mcp__elsewhere__delete.all', 'mcp__*__del*', 'm*', '*', 'Gr*'];
  const { warnings } = prepareAgent({ settings: { permissions: { deny: kept, ask: kept } } });
  assert.deepEqual(warnings, []);
  const other = prepareAgent({ settings: { permissions: { deny: ['WebFetch', 'bash'] } } });
  assert.match(other.warnings.join('\n'), /does not have, so they deny nothing here: "WebFetch"$/);
  assert.throws(() => prepareAgent({ rules: { deny: ['WebFetch'] } }), /"WebFetch" is no rule/);
  const allowed = prepareAgent({
    settings: { permissions: { allow: ['WebFetch(domain:x)', 'Bash(*)', 'MCP__s__*'] } },
  });
  assert.match(
    allowed.warnings.join('\n'),
    /too broad .*: "Bash\(\*\)", "MCP__s__\*"\..*\n.*so they allow nothing here: "WebFetch\(domain:x\)"$/,
  );
});

test('D11: what is broken in the rules of a project takes nothing else along', async () => {
  const permissions = { deny: ['raed(x)', 'bash(true)', 'mcp__a/b'] };
  const { agent, outcomes, warnings } = prepareAgent({
    mode: 'yolo',
    files: { '.claude/settings.json': JSON.stringify({ permissions }) },
    script: calls(['bash', { command: 'true' }], ['bash', { command: 'false; true x' }]),
  });
  await agent.chat('go');
  assert.deepEqual(outcomes(), ['denied', 'worked']);
  assert.match(warnings.join('\n'), /no rules, and so ignored: "raed\(x\)", "mcp__a\/b"/);
});

test('D11: a folder is denied as Claude Code writes it, in any spelling', async () => {
  const deny = ['Read(/private/**)', 'read(U\u0308nter/*)'];
  const paths = ['private/x', 'Private/X', '\u00dcnter/x', 'sub/private/x'];
  const { agent, outcomes } = prepareAgent({
    mode: 'yolo',
    files: { 'sub/private/x': '' },
    rules: { deny },
    script: calls(...paths.map((path): [string, Json] => ['read', { path }])),
  });
  await agent.chat('go');
  assert.deepEqual(outcomes(), ['denied', 'denied', 'denied', 'worked']);
});

// ─── D16: git, and what a folder makes it run ───

test('D13: a rule that names a place by a link means the place, and by the place the link', async () => {
  const [cwd, elsewhere] = [folder(), folder()];
  const link = join(folder(), 'link');
  symlinkSync(elsewhere, link);
  writeFileSync(join(elsewhere, 'x'), 'the word');
  symlinkSync('real [1]', join(cwd, 'linked'));
  const paths = ['linked/x', 'real [1]/x', `${link}/x`, join(elsewhere, 'x')];
  const { agent, outcomes, results } = prepareAgent({
    cwd,
    mode: 'yolo',
    files: { 'real [1]/x': 'the word', 'free/x': 'the word' },
    rules: { deny: ['read(linked/**)', `read(${link})`] },
    script: calls(...paths.map((path): [string, Json] => ['read', { path }])),
  });
  await agent.chat('go');
  assert.deepEqual(outcomes(), ['denied', 'denied', 'denied', 'denied']);
  assert.ok(results().every(({ text }) => text.includes('the rule deny')));
  const search = prepareAgent({
    cwd,
    rules: { deny: ['read(linked/**)'] },
    script: calls(['grep', { pattern: 'word' }]),
  });
  await search.agent.chat('go');
  assert.deepEqual(search.results()[0]!.text.match(/^.*:1:/gm), ['free/x:1:']);
});

test('D13: nor does a link that is made later lead around a rule', async () => {
  const script = calls(
    ['bash', { command: 'ln -s real later' }],
    ['read', { path: 'later/x' }],
    ['write', { path: 'later/y', content: '' }],
  );
  const { agent, outcomes } = prepareAgent({
    mode: 'yolo',
    files: { 'real/x': '' },
    script,
    rules: { deny: ['read(later/**)', 'edit(later/**)'] },
  });
  await agent.chat('go');
  assert.deepEqual(outcomes(), ['worked', 'denied', 'denied']);
});

// ─── F: what is shown ───

test('F3: look-alikes and turned text in a question are spelled out', async () => {
  const { agent, questions } = prepareAgent({
    servers: { s: good },
    answers: ['n', 'n', 'n'],
    script: calls(
      ['write', { path: 'src/\u202egpj.sh', content: '' }],
      ['bash', { command: 'curl https://p\u0430ypal.com\u2044x' }],
      ['mcp__s__greet', { name: 'a\u2066b', url: 'https://xn--pypal-4ve.com' }],
    ),
  });
  await agent.chat('go');
  assert.ok(questions[0]!.text.includes('path: "src/\\u{202e}gpj.sh"'));
  assert.ok(questions[1]!.text.includes('p\\u{430}ypal'));
  assert.ok(
    questions[2]!.text.includes('"a\\u{2066}b"') && questions[2]!.text.includes('xn--pypal-4ve'),
  );
});

test('F3: so is everything in the reason for a refusal', async () => {
  const { agent, results } = prepareAgent({
    mode: 'yolo',
    rules: { deny: ['bash(e\u0441ho*)'] },
    script: calls(
      ['write', { path: '../\u202ex', content: '' }],
      ['bash', { command: 'e\u0441ho' }],
    ),
  });
  await agent.chat('go');
  assert.ok(results()[0]!.text.includes('"../\\u{202e}x"'));
  assert.ok(results()[1]!.text.includes('e\\u{441}ho'));
});

test('D1: what a rule forbids to read, a search through the folder above does not show', async () => {
  const files = { 'private/a.txt': 'the word', 'delicate/b.txt': 'the word', 'c.txt': 'the word' };
  const rules = { deny: ['read(private/**)'], ask: ['grep(delicate)'] };
  const { agent, results } = prepareAgent({
    mode: 'yolo',
    files,
    rules,
    script: calls(['grep', { pattern: 'word' }], ['grep', { pattern: 'word', path: 'private' }]),
  });
  await agent.chat('search');
  assert.match(results()[0]!.text, /^c\.txt:1:the word\n/);
  assert.doesNotMatch(results()[0]!.text, /private|delicate/);
  assert.match(results()[0]!.text, /2 files that may hold secrets were skipped/);
  assert.match(results()[1]!.text, /deny "read\(private/);
});
