// Chapter 19: a chat that is kept open all day, in real terminals. Back to it with its last turns as they
// were, to an earlier prompt by its words, and back from what an answer has changed.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { Edits } from '../chapters/16-hands/undo.ts';
import { hands, Roots } from '../agent.ts';
import { cleanUp, folder } from './help/basics.ts';
import { call, calls, say, startModelServer } from './help/model-server.ts';
import { KEYS, place, Terminal } from './help/terminal.ts';

afterEach(cleanUp);

const CTRL_R = '\x12';
const CTRL_G = '\x07';
const KEY = 'a-key-for-tests';

test('an edit shows its diff once: in the question, and where nobody was asked when it is done; /undo takes the answer back', async () => {
  const model = await startModelServer([
    calls([
      { name: 'read', args: { path: 'a.txt' } },
      { name: 'edit', args: { path: 'a.txt', old: 'one', new: 'two' } },
    ]),
    calls([
      { name: 'edit', args: { path: 'a.txt', old: 'two', new: 'three' } },
      { name: 'write', args: { path: 'new/b.txt', content: 'b\n' } },
    ]),
    say('Done.'),
    say('I see.'),
    call('edit', { path: 'a.txt', old: 'one', new: 'four' }),
    say('Not done.'),
    call('write', { path: 'c.txt', content: 'c' }),
    say('Done again.'),
  ]);
  const where = place({ 'a.txt': 'one\n' });
  const env = { ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: model.url };
  const terminal = new Terminal(where, [], env, 80);
  await terminal.ready();
  terminal.enter('/undo');
  await terminal.see('no file was changed that could be changed back');
  terminal.enter('change it');
  await terminal.see(/^Allow it\?/);
  terminal.enter('y');
  await terminal.see(/^Allow it\?/, 2);
  terminal.press(KEYS.shiftTab); // accept-edits, but this question is open
  terminal.enter('y');
  await terminal.see(/^Allow it\?|^✓ write/, 3);
  if (!existsSync(join(where.cwd, 'new/b.txt'))) terminal.enter('y');
  await terminal.see('Done.');
  await terminal.ready();
  const shown = terminal.text;
  assert.equal(shown.match(/^ {2}\+│ two$/gm)?.length, 1, shown);
  assert.equal(shown.match(/^ {2}\+│ three$/gm)?.length, 1, shown);
  assert.match(shown, /^✓ edit\(path: "a\.txt"\) \d+ ms, 1 line added, 1 line removed$/m);
  assert.equal(readFileSync(join(where.cwd, 'a.txt'), 'utf8'), 'three\n');

  terminal.enter('/undo');
  await terminal.see(/^a\.txt is as it was\nnew\/b\.txt is gone$/);
  assert.equal(readFileSync(join(where.cwd, 'a.txt'), 'utf8'), 'one\n');
  assert.ok(!existsSync(join(where.cwd, 'new/b.txt')));
  terminal.enter('and now?');
  await terminal.see('I see.');
  await terminal.ready();
  const told = JSON.stringify(model.requests.at(-1)!.body.messages);
  assert.match(told, /I took back your last changes: a\.txt is as it was, new\/b\.txt is gone\./);
  terminal.enter('once more'); // it has to read the file again first
  await terminal.see('Not done.');
  await terminal.see('a.txt has changed since you read it');
  await terminal.ready();
  terminal.enter('/mode accept-edits');
  terminal.enter('another');
  await terminal.see('Done again.');
  await terminal.see(/^ {2}\+│ c$/);
  await terminal.ready();
  writeFileSync(join(where.cwd, 'c.txt'), 'mine');
  terminal.enter('/undo');
  await terminal.see('c.txt is not as the answer left it, so nothing was taken back');
  assert.equal(readFileSync(join(where.cwd, 'c.txt'), 'utf8'), 'mine');
  assert.deepEqual(model.problems, []);
});

test('what cannot be taken back whole is not taken back at all', async () => {
  const cwd = folder();
  const edits = new Edits();
  const [read, write] = hands({ roots: new Roots(cwd), resultsFolder: folder(), edits });
  const context = { signal: new AbortController().signal, onProgress: () => {} };
  writeFileSync(join(cwd, 'bytes'), Buffer.from([0x41, 0xff, 0x0a]));
  for (const [path, content] of [
    ['a', 'a'],
    ['bytes', 'text'],
  ]) {
    if (path === 'bytes') await read!.run({ path }, context);
    const { isError, blocks } = await write!.run({ path, content }, context);
    assert.equal(isError, false, JSON.stringify(blocks));
  }
  await assert.rejects(edits.takeBack(), /what was in bytes before was not kept, so nothing/);
  assert.equal(readFileSync(join(cwd, 'a'), 'utf8'), 'a');
  edits.nextAnswer();
  await write!.run({ path: 'other', content: 'x' }, context);
  assert.deepEqual(await edits.takeBack(), ['other is gone']);
  await assert.rejects(edits.takeBack(), /no file was changed/);
});

test('Ctrl-R finds an earlier prompt by its words, in this run and the next', async () => {
  const where = place({ 'notes.txt': 'forty-two' });
  const first = new Terminal(where, [], {}, 60);
  await first.ready();
  for (const prompt of ['/name notes', 'glob *.txt', '/name other']) {
    first.enter(prompt);
    await first.see(prompt.startsWith('/') ? `this is "${prompt.slice(6)}"` : /^✓ glob/);
    await first.ready();
  }
  first.enter('exit'); // as a shell has it; to a model it would say nothing
  await first.ended();
  const again = new Terminal(where, [], {}, 60);
  await again.ready();
  again.press('draft', CTRL_R);
  await again.see('nothing earlier with "draft": draft');
  again.press(CTRL_G);
  await again.see(/^› draft$/);
  again.press(KEYS.ctrlU, CTRL_R, 'name');
  await again.see('earlier with "name": /name other');
  again.press(CTRL_R);
  await again.see('earlier with "name": /name notes');
  again.press(KEYS.backspace, KEYS.backspace, KEYS.backspace, KEYS.backspace, 'glob');
  await again.see('earlier with "glob": glob *.txt');
  again.press(KEYS.escape);
  await again.see(/^›$/);
  again.press(CTRL_R, 'notes', KEYS.left, KEYS.end, '!', KEYS.enter); // found, and edited
  await again.see('this is "notes!"');
});

test('--resume shows the last turns as they were, and counts them as its list does', async () => {
  const model = await startModelServer([
    call('bash', { command: 'seq 3000' }),
    say('**Three** thousand.'),
    call('read', { path: 'a.txt' }, { text: 'I look.' }),
    call('edit', { path: 'a.txt', old: 'one', new: 'two' }),
    say('| a | b |\n|---|---|\n| 1 | 2 |'),
  ]);
  const where = place({ 'a.txt': 'one\n' });
  const env = { ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: model.url };
  const first = new Terminal(where, ['--allow', 'bash(seq:*)'], env, 80);
  await first.ready();
  first.enter('count');
  await first.see('Three thousand.');
  await first.ready();
  // Of a long output, its own lines are counted, and its file is named.
  const name = String.raw`\S*result-\d+-bash\.txt`;
  const long = new RegExp(`^  … after 2990 lines; all of it is in [^]*?${name}$`, 'm');
  assert.match(first.text, long);
  assert.match(first.text, /^ {2}│ 2991\n[^]*^ {2}│ 3000$/m);
  first.enter('change it');
  await first.see(/^Allow it\?/);
  first.enter('no, "two" is wrong');
  await first.see('1 │ 2');
  await first.ready();
  first.enter('/exit');
  await first.ended();

  const list = new Terminal(where, ['--resume'], env, 80);
  await list.see(/ · 10 turns · "count"$/);
  list.enter('1');
  await list.see('going on, 10 turns');
  await list.ready();
  const at = list.text.indexOf('going on, 10 turns');
  const shown = list.text.slice(at);
  assert.equal(
    shown.replace(new RegExp(`(all of it is in) [^]*?${name}`), '$1 FILE'),
    `going on, 10 turns
› count
✓ bash, exit code 0
  $ seq 3000
  … after 2990 lines; all of it is in FILE
${Array.from({ length: 10 }, (_, n) => `  │ ${2991 + n}`).join('\n')}
Three thousand.
› change it
I look.
✓ read(path: "a.txt")
  │ one
⊘ edit(path: "a.txt", old: "one", new: "two") denied
  The user said no: no, "two" is wrong
a │ b
──┼──
1 │ 2
›`,
  );
  assert.match(list.bytes, /\x1b\[1mThree\x1b\[22m/);
});
