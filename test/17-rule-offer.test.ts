// Chapter 17: a rule made from a question. It is shown before it is kept, covers the call that was
// asked about, and never more than what is shown.

import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { Trust } from '../agent.ts';
import { cleanUp } from './help/basics.ts';
import { prepareGate } from './help/gate.ts';

afterEach(cleanUp);

/** The rule that the question about this command offers, if it offers one. */
async function offered(command: string, given: Parameters<typeof prepareGate>[0] = {}) {
  const { check, questions, cwd, ...rest } = await prepareGate({ answers: ['n'], ...given });
  writeFileSync(join(cwd, 'a.txt'), 'b\n');
  await check('bash', { command });
  const [question] = questions;
  return { rule: /\[p\]refix "(.*?)"/.exec(question?.prompt ?? '')?.[1], question, cwd, ...rest };
}

const OFFERS: [command: string, rule?: string][] = [
  ['npm test', 'npm test:*'],
  ['npm test -- --watch', 'npm test:*'],
  ['npm run build', 'npm run build:*'],
  ['npm run build:prod --if-present', 'npm run build:prod:*'],
  ['timeout 60 npm test', 'npm test:*'],
  ['npm test 2>&1 | tail -5', 'npm test:*'], // tail is free
  ['python3 manage.py migrate', 'python3 manage.py:*'],
  ['make -j4 all', 'make -j4 all:*'],
  ['docker compose up -d', 'docker compose up:*'],
  ['./gradlew test', './gradlew test:*'],
  ['sort a.txt', 'sort:*'], // of these, the table says what is meant
  ['grep -n b a.txt', 'grep:*'],
  ['sort a.txt | npm test', undefined], // it would take two
  ['cd src && npm test', undefined],
  ['npm run', undefined], // all scripts
  ['make', undefined], // "always" says the same
  ['npm test > out.txt', undefined], // no rule covers it
  ['sort -o out a.txt', undefined],
  ['bash -c "npm test"', undefined],
  ['sudo npm test', undefined],
  ['env npm test', undefined],
  ['FOO=1 npm test', undefined],
  ['node "my script.js"', undefined],
  ['npm test $(id)', undefined],
  ['npm "te st"', undefined],
  ['npm te*t', undefined],
  ['eval npm', undefined],
  ['git bisect run ./x', undefined],
  ['npm "test:*"', undefined],
  [`npm ${'x'.repeat(200)}`, undefined],
];

test('which rule a question offers: one that covers this very call, or none', async () => {
  for (const [command, rule] of OFFERS) {
    const { rule: found, question } = await offered(command);
    assert.ok(question, `${command} is asked about`);
    assert.equal(found, rule, command);
  }
});

test('where "always" could not help, no rule is offered: other tools, an ask rule, a program of the project', async () => {
  assert.equal((await offered('npm test', { here: { ask: ['bash(npm:*)'] } })).rule, undefined);
  const { check, questions, cwd } = await prepareGate({ answers: ['n', 'n', 'n'] });
  await check('mcp__mine__x');
  await check('write', { path: join(cwd, 'new.txt'), content: '' });
  mkdirSync(join(cwd, 'bin'));
  for (const { prompt } of questions) assert.doesNotMatch(prompt, /\[p\]refix/);
});

test('D22: the rule is shown, kept for this folder, and means what was shown and no more', async () => {
  const { check, questions, effect, trust, gate, home, cwd } = await prepareGate({
    answers: ['p', 'y'],
  });
  const verdict = await check('bash', { command: 'npm test -- a' });
  assert.deepEqual(verdict, { allowed: true, isAsked: true });
  assert.match(questions[1]!.text, /^ {2}allow bash\(npm test:\*\)$/m);
  assert.match(questions[1]!.text, /"npm test" with anything behind it/);
  assert.deepEqual(trust.list().rules, [
    { project: cwd, effect: 'allow', text: 'bash(npm test:*)' },
  ]);
  const later = new Trust({ home, cwd });
  assert.equal(later.list().rules.length, 1);
  const bash = (command: string) => effect('bash', { command });
  for (const command of ['npm test', 'npm test -- b', 'npm test | tail -1', 'time npm test'])
    assert.equal(bash(command), 'allow', command);
  for (const command of [
    'npm testing',
    'npm run x',
    'npm test; rm x',
    'npm test > x',
    'X=1 npm test',
  ])
    assert.equal(bash(command), 'ask', command);
  gate.useRules([]);
  assert.equal(bash('npm test'), 'ask');
});

test('a no to the rule is none to the call, which is asked again; other words make another rule', async () => {
  const { check, questions, trust } = await prepareGate({
    answers: ['p', 'n', 'p', 'rm', 'npm run b', 'npm run', 'y'],
  });
  assert.deepEqual(await check('bash', { command: 'npm run build' }), {
    allowed: true,
    isAsked: true,
  });
  const texts = questions.map(({ text }) => text);
  assert.equal(texts.length, 7);
  assert.match(texts[2]!, /^The model wants to call bash:\n {2}command: "npm run build"/);
  assert.match(texts[4]!, /"rm" is too broad, or would not allow this call\./); // another program
  assert.match(texts[5]!, /"npm run b" is too broad, or would not allow/); // a word is a word
  assert.match(texts[6]!, /^ {2}allow bash\(npm run:\*\)$/m);
  assert.deepEqual(
    trust.list().rules.map(({ text }) => text),
    ['bash(npm run:*)'],
  );
});

test('D22: words that would allow everything are refused, however they are spelled', async () => {
  for (const words of [
    '*',
    ':*',
    'env',
    'sudo',
    'bash -c',
    '',
    'npm;rm',
    '$(x)',
    'npm run build) bash(rm',
  ]) {
    const { check, trust, questions } = await prepareGate({ answers: ['p', words, 'n', 'n'] });
    await check('bash', { command: 'npm run build' });
    assert.deepEqual(trust.list().rules, [], words);
    assert.ok(questions.length >= 3, words);
  }
});

test('a name alone would mean less than the words say, so it is refused, too', async () => {
  const { check, trust, cwd } = await prepareGate({ answers: ['p', 'mytool', 'y'] });
  writeFileSync(join(cwd, 'a.txt'), '');
  await check('bash', { command: 'mytool a.txt' });
  assert.equal(trust.list().rules[0]?.text, 'bash(mytool a.txt:*)');
  const known = await prepareGate({ answers: ['p', 'sort', 'y'] });
  writeFileSync(join(known.cwd, 'a.txt'), '');
  await known.check('bash', { command: 'sort -u a.txt' });
  assert.match(
    known.questions[2]!.text,
    /"sort" with options behind it that are known to be harmless/,
  );
  assert.equal(known.effect('bash', { command: 'sort -o b a.txt' }), 'ask');
});

test('D22: what was decided and cannot be read any more may have forbidden something: everything asks', async () => {
  const { effect, home, gate, trust } = await prepareGate({});
  assert.equal(effect('read', { path: 'a.txt' }), 'allow');
  trust.keepRule({ effect: 'deny', text: 'read(a.txt)' });
  writeFileSync(join(home, '.mcp-by-hand', 'trust.json'), '{"version":1');
  assert.deepEqual(trust.list().rules, []);
  assert.equal(effect('read', { path: 'a.txt' }), 'ask');
  gate.mode = 'yolo';
  assert.equal(effect('bash', { command: 'ls' }), 'ask');
});
