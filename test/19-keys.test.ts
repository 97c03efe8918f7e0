// The keys of the chat, on a real terminal, with a real shell around it where jobs are concerned.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { Editor, type Key } from '../chapters/19-the-terminal/editor.ts';
import { Masker } from '../chapters/17-the-gate/safe-text.ts';
import type { Trust } from '../chapters/17-the-gate/trust.ts';
import { flow, inSight, placeAfter } from '../chapters/19-the-terminal/foot.ts';
import { History } from '../chapters/19-the-terminal/history.ts';
import { Roots } from '../chapters/16-hands/paths.ts';
import { ScriptedPerson } from '../chapters/17-the-gate/person.ts';
import type { Program } from '../chapters/19-the-terminal/program.ts';
import { Shortcuts } from '../chapters/19-the-terminal/shortcuts.ts';
import { allGone, cleanUp, folder, habit, pidsIn, until } from './help/basics.ts';
import { call, say, startModelServer, type ModelServer } from './help/model-server.ts';
import { KEYS, place, run, shell, Terminal, userServers } from './help/terminal.ts';

afterEach(cleanUp);

const anthropic = ({ url }: ModelServer) => ({
  ANTHROPIC_API_KEY: 'a-key-for-tests',
  ANTHROPIC_BASE_URL: url,
});
const prompts = ({ requests }: ModelServer) =>
  requests.map(
    ({ body }) =>
      body.messages.findLast(
        ({ role, content }: any) => role === 'user' && content[0].type === 'text',
      )?.content[0].text,
  );

test('Ctrl-Z and fg: at the prompt, at a question, while the model answers, while a command runs', async () => {
  const done = join(folder(), 'done');
  const model = await startModelServer([
    say('and on '.repeat(40), { delayMs: 40 }),
    call('bash', {
      command: `for n in 1 2 3 4 5 6 7 8 9; do echo line $n; sleep 0.1; done; echo x > '${done}'`,
    }),
    say('over'),
  ]);
  const terminal = shell(place(), [], anthropic(model));
  let stops = 0;
  const suspend = async () => {
    terminal.press(KEYS.ctrlZ);
    await terminal.see(/^\[1\]\+ +Stopped/, ++stops);
    await terminal.see(/^shell>$(?![^]*^\S)/); // the shell's own prompt, on a line of its own
  };
  await terminal.see(/^› *$/);
  terminal.type('first line\\\rsecond');
  await terminal.see(/^second$/);
  await suspend();
  terminal.enter('echo from the shell $((40 + 2))'); // in a terminal that edits lines and echoes again
  await terminal.see(/^from the shell 42$/);
  terminal.enter('fg');
  await terminal.see(/^› first line\nsecond$(?![^]*^\S)/); // the draft is back
  terminal.enter(' half');
  await terminal.see('and on and on');
  await suspend();
  terminal.enter('fg');
  await terminal.see(/tokens in.*\n› *$/);
  assert.deepEqual(prompts(model), ['first line\nsecond half']);

  terminal.enter('run it');
  await terminal.see(/^Allow it\?.*: *$/);
  terminal.type('ye');
  await terminal.see(/^Allow it\?.*: ye$/);
  await suspend();
  terminal.resize(60); // the shell is told, and the program is not
  terminal.enter('fg');
  await terminal.see(
    /^shell> fg\n.*\nThe model wants to call bash:\n[^]*^Allow it\?.*: ye$(?![^]*^\S)/,
  );
  await until(() => terminal.window.some((row) => /^┆ .*: ye$/.test(row))); // broken between words
  terminal.enter('s');
  await terminal.see(/^. bash .*s *$/); // it runs
  await suspend();
  await until(() => existsSync(done)); // the command has gone on meanwhile
  terminal.enter('fg');
  await terminal.see(/^over$/);
  const results = model.requests.at(-1)!.body.messages.at(-1).content;
  assert.match(JSON.stringify(results), /line 1\\\\?n.*line 9\\\\?n.*exit code 0/); // nothing is lost
  await terminal.see(/^› *$/);
  terminal.enter('/exit');
  await terminal.see(/^shell>$(?![^]*^\S)/);
  terminal.enter('stty -a | grep -o ".icanon"; exit 7');
  assert.equal(await terminal.ended(), 7);
  assert.match(terminal.text, /^ icanon/m);
});

test('SIGSTOP and SIGCONT from outside: raw mode, pastes and the draft are back', async () => {
  const terminal = shell(place(), []);
  await terminal.see(/^› *$/);
  terminal.type('a draft');
  await terminal.see(/^› a draft$/);
  execFileSync('bash', ['-c', `kill -STOP $(pgrep -P ${terminal.pid})`]);
  await terminal.see(/^\[1\]\+ +Stopped/);
  terminal.enter('stty sane; fg');
  await terminal.see(/^shell> stty[^]*^› a draft$(?![^]*^\S)/);
  terminal.press(KEYS.ctrlA);
  terminal.paste('one\ntwo ');
  await terminal.see(/^› one\ntwo a draft$(?![^]*^\S)/); // it was not sent
  terminal.press(KEYS.ctrlC, KEYS.ctrlD);
  await terminal.see(/^shell>$(?![^]*^\S)/);
});

test('Esc stops a turn, arrows do not; two Ctrl-C in a hurry do not quit; a third does', async () => {
  const pids = join(folder(), 'pids');
  const stubborn = `trap '' TERM; echo $$ > '${pids}'; sleep 1000; sleep 1000`;
  const model = await startModelServer([
    say('and on '.repeat(1000), { delayMs: 20 }),
    call('bash', { command: stubborn }),
    call('bash', { command: `${stubborn}; true` }),
  ]);
  const terminal = new Terminal(place(), ['--mode', 'yolo'], anthropic(model));
  await terminal.ready();
  terminal.enter('talk');
  await terminal.see('and on and on');
  terminal.press(KEYS.left, KEYS.right, KEYS.down, KEYS.home);
  terminal.type('next');
  await terminal.see(/^yolo › next$/); // what is typed meanwhile is in sight, below the answer
  terminal.press(KEYS.enter);
  await terminal.see(/^queued: next$/);
  terminal.type('more');
  await terminal.see(/^queued: next\nyolo › more$/);
  assert.doesNotMatch(terminal.text, /^stopped$/m);
  terminal.press(KEYS.escape);
  await terminal.see(/^stopped$/);
  await terminal.see(/^yolo › next\nmore$(?![^]*^\S)/); // nothing is sent by itself after that
  assert.equal(model.requests.length, 1);

  terminal.press(KEYS.enter);
  await until(() => pidsIn(pids).length === 1);
  terminal.press(KEYS.ctrlC, KEYS.ctrlC);
  await terminal.see('(stopping… Ctrl-C once more quits at once)');
  await terminal.see(/^stopped$/, 2);
  await terminal.ready();
  await allGone(pids);
  terminal.press(KEYS.ctrlC); // the one before counts no more
  await terminal.see('(Ctrl-C again, or /exit, to quit)');
  terminal.enter('again');
  await until(() => model.requests.length === 3 && pidsIn(pids).length === 1);
  await terminal.see(/^. bash .*s *$/);
  terminal.press(KEYS.ctrlC, KEYS.ctrlC, KEYS.ctrlC);
  assert.equal(await terminal.ended(), 130);
  await allGone(pids);
});

test('what is typed when a question comes is no answer to it, and is there again behind it', async () => {
  const slow = { text: 'thinking about it for a while', delayMs: 150 };
  const model = await startModelServer([
    call('bash', { command: 'touch marker' }, slow),
    say('one'),
    say('two'),
  ]);
  const where = place();
  const terminal = new Terminal(where, ['go on'], anthropic(model), 40);
  await terminal.see('thinking about');
  terminal.enter('y');
  terminal.type('and then');
  await terminal.see('waits for the prompt)');
  await terminal.see(/why not: *$/);
  assert.ok(!existsSync(join(where.cwd, 'marker')));
  terminal.enter('n');
  await terminal.see(/^› y$/);
  await terminal.see(/^two$/);
  await terminal.see(/^› and then$(?![^]*^\S)/);
  assert.deepEqual(prompts(model).at(-1), 'y');
});

test('several lines, edited as one text, in a narrow window', async () => {
  const model = await startModelServer([say('I got it.')]);
  const terminal = new Terminal(place(), [], anthropic(model), 40, 12);
  await terminal.ready();
  terminal.type('first\\');
  terminal.press(KEYS.enter);
  terminal.type('漢字 second');
  terminal.press(KEYS.altEnter);
  terminal.type('third');
  terminal.press(KEYS.ctrlJ, KEYS.backspace, KEYS.ctrlJ);
  terminal.type(`fourth ${'and on '.repeat(8)}`);
  await terminal.see(/^› first\n漢字 second\nthird\nfourth (and\son\s){7}and\son$/);
  terminal.resize(30, 12);
  await terminal.see(/^fourth and on and on and on\nand on/); // no word is broken
  terminal.resize(80, 12);
  await terminal.see(/^fourth (and on ){7}and on$/);
  assert.equal(terminal.window.filter((line) => line.startsWith('› first')).length, 1);
  terminal.press(KEYS.up, KEYS.up, KEYS.home, KEYS.right, KEYS.backspace, KEYS.backspace);
  terminal.type('/');
  await terminal.see(/^› first\/字 second\nthird\nfourth (and\son\s){7}and\son$/);
  terminal.press(KEYS.down, KEYS.ctrlE);
  terminal.type('!');
  await terminal.see(/^third!$/);
  terminal.paste(Array.from({ length: 30 }, (_, n) => `\nline ${n}`).join(''));
  await terminal.see(/^⋮ \d+ rows above$/); // a text that is higher than the window
  assert.equal(terminal.window.filter((line) => line.includes('rows above')).length, 1);
  terminal.press(KEYS.enter);
  await terminal.see('I got it.');
  const [prompt] = prompts(model);
  assert.match(prompt, /^first\/字 second\nthird!\nline 0\n[^]*\nline 29\nfourth (and on ){8}$/);
});

test('a dumb terminal: nothing is drawn over, and what is typed is there all the same', async () => {
  const model = await startModelServer([
    call('bash', { command: 'touch marker' }),
    say('I got it.'),
  ]);
  const terminal = new Terminal(place(), [], { ...anthropic(model), TERM: 'dumb' });
  await terminal.ready();
  terminal.type('hello wrold');
  await terminal.see(/^› hello wrold$/);
  terminal.press(...Array(4).fill(KEYS.backspace));
  terminal.enter('orld');
  await terminal.see(/^Allow it\?.*: *$/);
  terminal.enter('no');
  await terminal.see(/^Allow it\?.*: no$/);
  await terminal.see('I got it.');
  assert.deepEqual(prompts(model)[0], 'hello world');
  assert.doesNotMatch(terminal.bytes, /\x1b/);
});

// ─── The editor alone ────────────────────────────────────────────────────────────────────────────

const ctrl = (name: string): Key => ({ name, ctrl: true });
const alt = (name: string): Key => ({ name, meta: true });
const named = (name: string): Key => ({ name });

/** An editor after these keys; a text is typed character by character. */
function edited(keys: (string | Key)[], past: string[] = []): Editor {
  const editor = new Editor(past);
  for (const key of keys)
    if (typeof key === 'string') for (const char of key) editor.press(char, {});
    else editor.press(undefined, key);
  return editor;
}

const shows = (editor: Editor) =>
  `${editor.text.slice(0, editor.cursor)}|${editor.text.slice(editor.cursor)}`;

test('the editor: keys in, a text and a cursor out', () => {
  const cases: [keys: (string | Key)[], expected: string][] = [
    [['one two', ctrl('a'), 'x'], 'x|one two'],
    [['one two', ctrl('w')], 'one |'],
    [['one two', ctrl('w'), ctrl('a'), ctrl('y')], 'two|one '],
    [['one two', alt('b'), alt('b'), alt('f')], 'one| two'],
    [['one two', ctrl('left'), ctrl('k')], 'one |'],
    [['one two', ctrl('u')], '|'],
    [['one', named('enter'), 'two', ctrl('u')], 'one\n|'],
    [['one', named('enter'), 'two', ctrl('u'), ctrl('u')], 'one|'],
    [['one', alt('return'), 'two', named('home'), named('backspace')], 'one|two'],
    [['a', named('enter'), 'long line', named('up'), named('down')], 'a\nl|ong line'],
    [['long line', named('enter'), 'ab', named('up')], 'lo|ng line\nab'],
    [['a👨‍👩‍👧b', named('left'), named('backspace')], 'a|b'],
    [['é', named('left'), 'x'], 'x|é'],
    [['漢字', named('left'), ctrl('d')], '漢|'],
    [['x', named('escape'), ctrl('q'), named('f5')], 'x|'],
    [[named('left'), named('backspace'), named('delete'), named('up'), named('down')], '|'],
  ];
  for (const [keys, expected] of cases)
    assert.equal(shows(edited(keys)), expected, JSON.stringify(keys));
});

test('the editor: history, with the draft at its end; a text of several lines is one entry', () => {
  const past = ['first', 'second\nwith two lines'];
  const keys = (count: number, key: string) => Array.from({ length: count }, () => named(key));
  assert.equal(shows(edited(['draft', named('up')], past)), 'second\nwith two lines|');
  assert.equal(shows(edited(['draft', ...keys(3, 'up')], past)), 'first|');
  assert.equal(shows(edited(['draft', ...keys(9, 'up'), ...keys(9, 'down')], past)), 'draft|');
});

test('the editor: what is pasted is text, whatever is in it; a backslash goes on', () => {
  const editor = edited(['a']);
  editor.insert('b\r\nc\rd\x1b[2J\x03\x00\te');
  assert.equal(editor.text, 'ab\nc\nd[2J\te');
  editor.set('goes on\\');
  assert.equal(editor.continues(), true);
  assert.equal(editor.take(), 'goes on\n');
  assert.equal(editor.continues(), false);
  editor.insert('x'.repeat(1_000_000));
  assert.ok(editor.text.length < 1_000_000);
});

test('the foot: where the cursor is, and which rows are in sight', () => {
  const flowed = flow({ prompt: '› ', text: 'words that go on', cursor: 10 }, 8);
  assert.deepEqual(flowed, { prompt: '› ', text: 'words \nthat go \non', cursor: 11 });
  assert.equal(
    flow({ prompt: '› ', text: 'a '.repeat(9), cursor: 18 }, 6).text,
    'a a \na a a \na a a \na ',
  );
  assert.deepEqual(placeAfter('abc', 3), { row: 0, column: 3 });
  assert.deepEqual(placeAfter('abcd', 3), { row: 1, column: 1 });
  assert.deepEqual(placeAfter('ab漢', 3), { row: 1, column: 2 });
  assert.deepEqual(placeAfter('e\u0301\n', 3), { row: 1, column: 0 });
  const lines = Array.from({ length: 50 }, (_, n) => `line ${n}`).join('\n');
  const size = { columns: 20, rows: 8 };
  for (const cursor of [0, 100, 200, lines.length]) {
    const typed = inSight({ prompt: '› ', text: lines, cursor }, size);
    const before = typed.prompt + typed.text.slice(0, typed.cursor);
    assert.ok(placeAfter(typed.prompt + typed.text, 20).row < 8, `${cursor}`);
    assert.equal(before.slice(-4), `› ${lines.slice(0, cursor)}`.slice(-4), `${cursor}`);
  }
});

// ─── What the chat knows ─────────────────────────────────────────────────────────────────────────

test('history across runs, Tab, !command, @file, Shift-Tab', async () => {
  const model = await startModelServer([say('one'), say('two'), say('three')]);
  const files = {
    'notes.txt': 'The answer is 42.\n',
    'my file.txt': 'with a blank\n',
    '.env': 'KEY=abc\n',
    'src/deep/a.ts': 'x',
  };
  const where = place(files, userServers({ calculator: habit() }));
  const env = anthropic(model);
  const first = new Terminal(where, [], env);
  await first.ready();
  first.paste('two\nlines');
  first.press(KEYS.enter);
  await first.see(/^one$/);
  await first.ready();
  first.type('/mc\t');
  await first.see(/^› \/mcp$/);
  first.type('rec\tcal\t');
  await first.see(/^› \/mcp reconnect calculator$/);
  first.press(KEYS.ctrlU);
  first.type('/m\t');
  await first.see(/\/mcp .*\/model/); // several fit: they are listed
  first.press(KEYS.ctrlU);
  first.type('look at @not\tand @my\tbut @.e\tand @src/\t');
  await first.see(/^› look at @notes\.txt and @"my file\.txt" but @\.eand @src\/deep\/$/);
  first.press(KEYS.ctrlU);

  first.enter('!echo from $((40 + 2)); exit 3');
  await first.see(/^from 42$/);
  await first.see(/^exit code 3$/);
  await first.ready();
  assert.equal(model.requests.length, 1, 'it runs without the model');
  first.enter('compare @notes.txt, "a@b.c", @types/node, @note.txt, @src/ and @"my file.txt".');
  await first.see(
    /^  @note\.txt: it is no file.*\n  @src\/: it is a folder.*\n  @notes\.txt: 18 bytes are sent/,
  );
  await first.see(/^two$/);
  const [, asked] = prompts(model);
  assert.match(
    asked,
    /^compare @notes\.txt,.*\n\nI ran this command myself:\n```\n\$ echo from[^]*\nfrom 42\nexit code 3\n```\n/,
  );
  assert.match(
    asked,
    /\n\nThe file notes\.txt, 18 bytes, as data:\n```\nThe answer is 42\.\n```\n\nThe file my file\.txt/,
  );
  assert.doesNotMatch(asked, /types\/node, as|a@b\.c, as/);

  await first.ready();
  first.enter('show @.env'); // it may be secret, and the words may come from a paste
  await first.see(/^Send its content to the model\?.*: *$/);
  first.enter('n');
  await first.see(/^› show @\.env$(?![^]*^\S)/); // to be changed, or given up
  first.press(KEYS.ctrlC, KEYS.shiftTab);
  await first.see(/^accept-edits ›$/);
  first.press(KEYS.shiftTab);
  await first.see(/^read-only ›$/);
  first.press(KEYS.shiftTab);
  await first.ready();
  first.press(KEYS.ctrlD);
  assert.equal(await first.ended(), 0);

  const kept = join(where.home, '.mcp-by-hand', 'history.jsonl');
  assert.equal(statSync(kept).mode & 0o777, 0o600);
  const second = new Terminal(where, [], env);
  second.enter('/cost'); // before it listens: the terminal still makes lines
  await second.see('no tokens in this session');
  await second.ready();
  second.press(...Array(5).fill(KEYS.up)); // the answer "n" is not among them
  await second.see(/^› two\nlines$(?![^]*^\S)/);
  second.press(KEYS.ctrlC, KEYS.ctrlD);
  assert.equal(await second.ended(), 0);
  const elsewhere = new Terminal({ ...where, cwd: folder() }, [], env);
  await elsewhere.ready();
  elsewhere.press(KEYS.up, KEYS.ctrlD); // another folder has its own
  assert.equal(await elsewhere.ended(), 0);
});

test('what is outside the folder is sent only after a question; a folder and a slip are told', async () => {
  const [cwd, outside] = [folder(), folder()];
  const diary = join(outside, 'diary.txt');
  writeFileSync(diary, 'private\n');
  symlinkSync(diary, join(cwd, 'guide.md'));
  mkdirSync(join(cwd, 'src'));
  const roots = new Roots(cwd);
  const person = new ScriptedPerson(['n', 'n', 'y']);
  const said: string[] = [];
  const screen = { say: (text: string) => said.push(text) };
  const program = {
    roots,
    person,
    gate: { isHidden: () => false },
    screen,
    composition: {},
    news: async () => [],
  };
  const shortcuts = new Shortcuts(program as unknown as Program);
  const expand = (prompt: string) => shortcuts.expand(prompt, true, new AbortController().signal);
  for (const prompt of ['read @guide.md', `read @"${diary}"`])
    assert.equal(await expand(prompt), undefined);
  for (const { text } of person.questions)
    assert.match(text, /diary\.txt" \(it is outside the folder\)/);
  assert.match(JSON.stringify(await expand(`read @"${diary}"`)), /private/);
  said.length = 0;
  assert.deepEqual(await expand('a@b @types/node @src @~/no @x.ts'), [
    { role: 'user', text: 'a@b @types/node @src @~/no @x.ts' },
  ]);
  const missing = ['~/no', 'x.ts'].map(
    (name) => `  @${name}: it is no file, so only its name is sent`,
  );
  assert.deepEqual(said, ['  @src: it is a folder, so only its name is sent', ...missing]);
});

test('what comes through a pipe, or as an argument, runs nothing and sends no file', async () => {
  const model = await startModelServer([say('one'), say('two'), say('three')]);
  const where = place({ 'notes.txt': 'The answer is 42.\n' });
  const piped = await run(where, [], {
    env: anthropic(model),
    input: '!touch marker\nsee @notes.txt\n',
  });
  assert.equal(piped.code, 0);
  const terminal = new Terminal(where, ['!touch marker @notes.txt'], anthropic(model));
  await terminal.see(/^three$/);
  assert.deepEqual(prompts(model), ['!touch marker', 'see @notes.txt', '!touch marker @notes.txt']);
  assert.deepEqual(readdirSync(where.cwd), ['notes.txt']);
});

test('history: two programs lose nothing, secrets are masked, the file stays small', () => {
  const home = folder();
  const trust = { folder: join(home, '.mcp-by-hand'), project: '/project' } as Trust;
  const one = new History(trust, new Masker({ MY_KEY: 'abcdefgh-12345678' }));
  const two = new History(trust, new Masker({}));
  one.add('first abcdefgh-12345678');
  two.add('second\nwith two lines');
  appendFileSync(join(home, '.mcp-by-hand', 'history.jsonl'), '{"folder":"/project","te'); // it was killed
  one.add('third');
  assert.deepEqual(two.read(), ['first ***', 'second\nwith two lines', 'third']);
  for (let n = 0; n < 100; n++) (n % 2 ? one : two).add(`${n} ${'x'.repeat(15_000)}`);
  one.add('y'.repeat(1_000_000));
  const sizes = readdirSync(join(home, '.mcp-by-hand')).map(
    (name) => statSync(join(home, '.mcp-by-hand', name)).size,
  );
  assert.ok(sizes.length === 2 && Math.max(...sizes) < 600_000, `${sizes}`);
  const numbers = two.read().map((text) => parseInt(text, 10));
  assert.deepEqual(
    numbers,
    numbers.map((_, n) => numbers[0]! + n),
    'none is missing between',
  );
  assert.equal(numbers.at(-1), 99);
});
