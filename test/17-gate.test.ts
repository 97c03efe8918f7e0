// Chapter 17: the gate. Rules first, then the mode, then a question; and where nobody can be asked,
// no.

import assert from 'node:assert/strict';
import { rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { MODES, type Mode } from '../chapters/17-the-gate/gate.ts';
import type { Effect } from '../chapters/17-the-gate/rules.ts';
import type { Json } from '../mcp.ts';
import { calls, prepareAgent } from './help/agent-with-gate.ts';
import { cleanUp, rejection } from './help/basics.ts';
import { prepareGate, signal } from './help/gate.ts';

afterEach(cleanUp);

// ─── Modes ───

test('every kind of call in every mode', async () => {
  const kinds: [what: string, tool: string, args: Json, ...expected: Record<Mode, Effect>[]][] = [
    [
      'a read inside',
      'read',
      { path: 'a' },
      { ask: 'allow', 'read-only': 'allow', 'accept-edits': 'allow', yolo: 'allow' },
    ],
    [
      'a search',
      'grep',
      { pattern: 'x' },
      { ask: 'allow', 'read-only': 'allow', 'accept-edits': 'allow', yolo: 'allow' },
    ],
    [
      'a read outside',
      'read',
      { path: '../a' },
      { ask: 'ask', 'read-only': 'ask', 'accept-edits': 'ask', yolo: 'allow' },
    ],
    [
      'a search outside',
      'glob',
      { pattern: '*', path: '/' },
      { ask: 'ask', 'read-only': 'ask', 'accept-edits': 'ask', yolo: 'allow' },
    ],
    [
      'a read of a secret',
      'read',
      { path: '.env' },
      { ask: 'ask', 'read-only': 'ask', 'accept-edits': 'ask', yolo: 'allow' },
    ],
    [
      'a write',
      'write',
      { path: 'a' },
      { ask: 'ask', 'read-only': 'deny', 'accept-edits': 'allow', yolo: 'allow' },
    ],
    [
      'an edit',
      'edit',
      { path: 'a' },
      { ask: 'ask', 'read-only': 'deny', 'accept-edits': 'allow', yolo: 'allow' },
    ],
    [
      'a write to a secret',
      'write',
      { path: 'x/id_rsa' },
      { ask: 'ask', 'read-only': 'deny', 'accept-edits': 'ask', yolo: 'allow' },
    ],
    [
      'a write to a fence',
      'edit',
      { path: '.git/hooks/pre-commit' },
      { ask: 'ask', 'read-only': 'deny', 'accept-edits': 'ask', yolo: 'allow' },
    ],
    [
      'a read of a fence',
      'read',
      { path: '.git/HEAD' },
      { ask: 'allow', 'read-only': 'allow', 'accept-edits': 'allow', yolo: 'allow' },
    ],
    [
      'a write to a build file',
      'write',
      { path: 'package.json' },
      { ask: 'ask', 'read-only': 'deny', 'accept-edits': 'ask', yolo: 'allow' },
    ],
    [
      'a write outside',
      'write',
      { path: '../a' },
      { ask: 'deny', 'read-only': 'deny', 'accept-edits': 'deny', yolo: 'deny' },
    ],
    [
      'a command',
      'bash',
      { command: 'true' },
      { ask: 'ask', 'read-only': 'deny', 'accept-edits': 'ask', yolo: 'allow' },
    ],
    [
      'a server of mine',
      'mcp__mine__x',
      {},
      { ask: 'ask', 'read-only': 'deny', 'accept-edits': 'ask', yolo: 'allow' },
    ],
    [
      'a server of theirs',
      'mcp__theirs__x',
      {},
      { ask: 'ask', 'read-only': 'deny', 'accept-edits': 'ask', yolo: 'allow' },
    ],
  ];
  for (const mode of MODES) {
    const open = await prepareGate({ mode });
    const asking = await prepareGate({ mode, here: { ask: ['*'] } });
    const denying = await prepareGate({
      mode,
      here: {
        deny: ['*'],
        allow: [
          'read',
          'write',
          'edit',
          'grep',
          'glob',
          'bash(true)',
          'mcp__mine__*',
          'mcp__theirs__x',
        ],
      },
    });
    for (const [what, tool, args, expected] of kinds) {
      assert.equal(open.effect(tool, args), expected![mode], `${what}, mode ${mode}`);
      assert.equal(
        denying.effect(tool, args),
        'deny',
        `${what}, mode ${mode}, with a rule that denies`,
      );
      const asked = expected![mode] === 'deny' ? 'deny' : 'ask';
      assert.equal(
        asking.effect(tool, args),
        asked,
        `${what}, mode ${mode}, with a rule that asks`,
      );
    }
  }
});

test('A5: a rule in the settings means a server of the user; one on the command line means any', async () => {
  const fromSettings = await prepareGate({
    settings: { allow: ['mcp__mine__*', 'mcp__theirs__*', 'mcp__unknown__*'] },
  });
  assert.deepEqual(
    ['mine', 'theirs', 'unknown'].map((name) => fromSettings.effect(`mcp__${name}__x`)),
    ['allow', 'ask', 'ask'],
  );
  const fromTheLine = await prepareGate({ here: { allow: ['mcp__mine__x', 'mcp__theirs__*'] } });
  assert.deepEqual(
    ['mine', 'theirs'].map((name) => fromTheLine.effect(`mcp__${name}__x`)),
    ['allow', 'allow'],
  );
  const denied = await prepareGate({ settings: { deny: ['mcp__theirs'] } });
  assert.equal(denied.effect('mcp__theirs__x'), 'deny');
});

// ─── Asking ───

test('a question shows the tool, whose it is, and every argument, escaped and in full', async () => {
  const { check, questions } = await prepareGate({ answers: ['y', 'y', 'y', 'y'] });
  const long = `${' '.repeat(400)}tail`;
  await check('mcp__mine__send', {
    to: 'a\u202eb',
    note: long,
    'odd\nkey': ['\x1b[2K'],
    deep: { a: { b: 'c' } },
  });
  assert.match(questions[0]!.text, /the tool "send" of the MCP server "mine"/);
  assert.deepEqual(questions[0]!.lines.slice(1), [
    '  to: "a\\u{202e}b"',
    `  note: "${long}"`,
    '  "odd\\nkey": ["\\u001b[2K"]',
    '  deep: {"a":{"b":"c"}}',
  ]);
  await check('bash', { command: 'echo one\nrm -rf two', timeout: 5 });
  assert.deepEqual(questions[1]!.lines, [
    'The model wants to call bash:',
    '  command:',
    '    │ echo one',
    '    │ rm -rf two',
    '  timeout: 5',
  ]);
  await check('write', { path: 'src/a.ts', content: 'x' });
  assert.deepEqual(questions[2]!.lines.slice(1), [
    '  path: "src/a.ts"',
    '  @@ -0,0 +1 @@',
    '  +│ x',
    '  \\ No newline at end of file',
    '  "src/a.ts": a new file, 1 line added',
  ]);
  await check('mcp__mine__big', { text: 'x'.repeat(1_000_000) });
  assert.ok(questions[3]!.text.includes('x'.repeat(1_000_000)));
});

test('a question about a change shows what becomes of the file; what would fail anyway is not asked', async () => {
  const edit = (path: string, old: string, more: Json = {}) =>
    ['edit', { path, old, new: 'x', ...more }] as [string, Json];
  const { agent, questions, outcomes, results, file } = prepareAgent({
    files: { a: 'one\ntwo\ntwo\n', unread: 'one\n' },
    answers: ['y', 'n', 'n'],
    script: calls(
      ['read', { path: 'a' }],
      edit('a', 'one'),
      edit('a', 'none'),
      edit('a', 'two'),
      edit('unread', 'one'),
      edit('missing', 'one'),
      ['write', { path: 'unread', content: '' }],
      ['write', { path: 'a', content: 'x\ntwo\ntwo\n' }],
      ['edit', { path: 'a', odd: 1 }],
      edit('a', 'two', { all: true }),
    ),
  });
  await agent.chat('go');
  assert.equal(questions.length, 3);
  assert.deepEqual(questions[0]!.lines, [
    'The model wants to call edit:',
    '  path: "a"',
    '  @@ -1,3 +1,3 @@',
    '  -│ one',
    '  +│ x',
    '   │ two',
    '   │ two',
    '  "a": 1 line added, 1 line removed',
  ]);
  assert.deepEqual(questions[1]!.lines.slice(1), ['  path: "a"', '  "a": nothing changes']);
  assert.match(questions[2]!.text, /"a": 2 lines added, 2 lines removed\nAllow it\?/); // `all` is in the diff
  const seen = outcomes().map((outcome) => outcome.replace('unreadable', 'failed')); // since chapter 28 arguments are checked before
  assert.deepEqual(seen, [
    'worked',
    'worked',
    'failed',
    'failed',
    'failed',
    'failed',
    'failed',
    'denied',
    'failed',
    'denied',
  ]);
  const texts = results().map(({ text }) => text);
  assert.match(texts[2]!, /not found in a/);
  assert.match(texts[3]!, /found 2 times/);
  assert.match(texts[4]! + texts[6]!, /(unread exists and you have not read it.*){2}/);
  assert.match(texts[8]!, /there is no argument "odd"|- odd is not allowed here/);
  assert.equal(file('a'), 'x\ntwo\ntwo\n');
});

test('D21: of a delicate file the model learns nothing unasked, not even that an edit would fail', async () => {
  const { agent, questions, outcomes, results } = prepareAgent({
    files: { '.env': 'KEY=secret\n', 'private/x': 'hidden\n' },
    answers: ['n', 'n', 'n', 'n'],
    rules: { ask: ['edit(private/**)'] },
    script: calls(
      ['edit', { path: '.env', old: 'KEY=secreT', new: '' }],
      ['edit', { path: '.env.local', old: 'x', new: '' }],
      ['edit', { path: 'private/x', old: 'x', new: '' }],
      ['edit', { path: 'private/y', old: 'x', new: '' }],
    ),
  });
  await agent.chat('go');
  assert.deepEqual(outcomes(), ['denied', 'denied', 'denied', 'denied']);
  assert.deepEqual(
    questions.map(({ text }) =>
      /it will fail: "(there is no file|[\w./]+ exists and you have not read it)/.test(text),
    ),
    [true, true, true, true],
  );
  const [there, missing] = [results()[2]!.text, results()[3]!.text].map((text) =>
    text.replace(/[xy]\b/g, ''),
  );
  assert.equal(there, missing, 'whether there is a file');
  assert.doesNotMatch(
    results()
      .map(({ text }) => text)
      .join(),
    /secret=|KEY=|hidden|no file|have not read/,
  );
});

test('D20: what was shown is what happens: a file that changes while a person thinks is not written', async () => {
  const tricks: [string, (cwd: string) => void][] = [
    ['a', (cwd) => writeFileSync(join(cwd, 'a'), 'another text\n')],
    [
      'a',
      (cwd) => {
        // the same size, the same time: only its bytes tell
        const { atime, mtime } = statSync(join(cwd, 'a'));
        writeFileSync(join(cwd, 'a'), 'one\nTWO\n');
        utimesSync(join(cwd, 'a'), atime, mtime);
      },
    ],
    ['a', (cwd) => rmSync(join(cwd, 'a'))],
    ['new', (cwd) => writeFileSync(join(cwd, 'new'), 'theirs\n')],
  ];
  for (const [path, trick] of tricks) {
    for (const [name, args] of [
      ['write', { content: 'three\n' }],
      ['edit', { old: 'one', new: 'three' }],
    ] as const) {
      if (name === 'edit' && path === 'new') continue;
      const before = new Date(2020, 1, 1); // whole seconds: a time that can be set again
      const { agent, cwd, outcomes, results, file, put } = prepareAgent({
        files: {},
        script: calls(['read', { path: 'a' }], [name, { path, ...args }]),
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
    ['y', true],
    ['yes', true],
    ['Y', true],
    [' YES ', true],
    ['n', false, /^The user said no\./],
    ['no', false, /^The user said no\./],
    ['', false, /said no/],
    [undefined, false, /said no/],
    ['use the other file', false, /^The user said no: use the other file$/],
    ['yes please', false, /no: yes please/],
    ['yy', false, /no: yy/],
    ['1', false],
    ['\u0443', false],
  ];
  for (const [answer, allowed, reason] of table) {
    const { check } = await prepareGate({ answers: [answer] });
    const verdict = await check('bash', { command: 'true' });
    assert.equal(verdict.allowed, allowed, `${answer}`);
    if (reason && !verdict.allowed) assert.match(verdict.reason, reason);
  }
});

test('always: for this command, this file, this tool; not for another', async () => {
  const { check, questions } = await prepareGate({
    answers: ['always', 'a', 'A', 'n', 'n', 'n', 'n'],
  });
  const all: [string, Json][] = [
    ['bash', { command: 'npm test' }],
    ['write', { path: 'a.txt', content: '1' }],
    ['mcp__mine__x', { n: 1 }],
  ];
  for (const [name, args] of all) assert.ok((await check(name, args)).allowed);
  assert.deepEqual(
    questions.map(({ prompt }) => /\[a\]lways ([^/]*) \//.exec(prompt)?.[1]),
    ['this exact command in this folder', 'this file', 'this tool, as it is now, in this folder'],
  );
  const again: [string, Json][] = [
    ['bash', { command: 'npm test', timeout: 9 }],
    ['edit', { path: './a.txt' }],
    ['mcp__mine__x', { n: 2 }],
  ];
  for (const [name, args] of again) assert.ok((await check(name, args)).allowed, name);
  assert.equal(questions.length, 3);
  const other: [string, Json][] = [
    ['bash', { command: 'npm test ' }],
    ['write', { path: 'b.txt' }],
    ['mcp__mine__y', {}],
    ['mcp__theirs__x', {}],
  ];
  for (const [name, args] of other) assert.ok(!(await check(name, args)).allowed, name);
});

test('always is not offered for secrets, fences and what is outside, and then is no answer', async () => {
  const { check, questions } = await prepareGate({
    answers: ['always', 'n', 'a', '', 'ok', undefined],
  });
  for (const [name, path] of [
    ['read', '.env'],
    ['write', '.git/config'],
    ['read', '/etc/hostname'],
  ] as const) {
    const verdict = await check(name, { path });
    assert.ok(!verdict.allowed);
    assert.ok(!questions.at(-1)!.prompt.includes('lways'));
    assert.deepEqual(questions.at(-1)!.lines.slice(-1), ['Please answer y or n, or say why not.']);
  }
});

test('a rule that asks is stronger than always, and than a rule that allows', async () => {
  const { check, questions } = await prepareGate({
    settings: { ask: ['bash(git push*)'], allow: ['bash(git push)'] },
    answers: ['y', 'y'],
  });
  await check('bash', { command: 'git push' });
  await check('bash', { command: 'git push' });
  assert.equal(questions.length, 2);
  assert.doesNotMatch(questions[0]!.prompt, /always/); // it would change nothing
  assert.match(questions[0]!.text, /the rule ask "bash\(git push\*\)"/);
});

test('where nobody can be asked the answer is no, and says how to allow it, if a rule can', async () => {
  const { check } = await prepareGate();
  const reason = async (name: string, args: Json = {}) => {
    const verdict = await check(name, args);
    assert.ok(!verdict.allowed);
    assert.match(verdict.reason, /nobody to ask/);
    return verdict.reason;
  };
  assert.match(await reason('bash', { command: 'npm test' }), /--allow 'bash\(npm test\)'\.$/);
  assert.match(await reason('mcp__theirs__x'), /--allow 'mcp__theirs__x'\.$/);
  assert.match(await reason('write', { path: 'a' }), /--allow 'write\(a\)'\.$/);
  for (const command of ["echo 'x'", 'a\nb', 'rm *'])
    assert.ok(!(await reason('bash', { command })).includes('--allow'), command);
  assert.ok(!(await reason('read', { path: '.env' })).includes('--allow'), 'no rule helps here');
  for (const [name, args] of [
    ['bash', { command: 'npm test' }],
    ['mcp__theirs__x', {}],
    ['write', { path: 'a' }],
    ['edit', { path: './b/../c' }],
  ] as const) {
    const rule = /--allow '(.*)'/.exec(await reason(name, args))![1]!;
    assert.equal(
      (await prepareGate({ here: { allow: [rule] } })).effect(name, args),
      'allow',
      'what it says is true',
    );
  }
});

test('a question that fails, or is overtaken by an abort, allows nothing', async () => {
  const { gate, tool, trust } = await prepareGate({
    answers: [
      () => {
        throw new Error('the terminal is gone');
      },
    ],
  });
  assert.match(
    (await rejection(gate.check(tool('bash'), { command: 'true' }, signal))).message,
    /terminal is gone/,
  );
  const abort = new AbortController();
  const late = await prepareGate({ answers: [() => (abort.abort(), 'always')] });
  await rejection(late.gate.check(late.tool('bash'), { command: 'true' }, abort.signal));
  assert.deepEqual([...trust.list().grants, ...late.trust.list().grants], []);
});

test('a call that cannot be judged is not allowed', async () => {
  const { gate, tool } = await prepareGate({ mode: 'yolo' });
  assert.match(
    (await rejection(gate.check(tool('read'), { path: 'a\0b' }, signal))).message,
    /NUL/,
  );
  const endless: Json = {}; // cannot be shown
  endless.deeper = endless;
  const asked = await prepareGate({ answers: ['y'] });
  const verdict = await asked.gate.check(asked.tool('mcp__mine__x'), endless, signal);
  assert.equal(verdict.allowed, false);
  assert.equal(asked.questions.length, 0);
});

test('an abort is heard while a person is asked, also if the question stays open', async () => {
  const abort = new AbortController();
  const { agent, outcomes, file } = prepareAgent({
    answers: [() => (setTimeout(() => abort.abort(), 10), new Promise(() => {}))],
    script: calls(['write', { path: 'a', content: 'x' }]),
  });
  assert.equal((await agent.chat('go', abort.signal)).ending, 'aborted');
  assert.deepEqual(outcomes(), ['aborted']);
  assert.equal(file('a'), undefined);
});
