// Chapter 19: going on with conversations, in real terminals and through pipes.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { cleanUp } from './help/basics.ts';
import { KEYS, place, readLines, run, start, Terminal, type Place } from './help/terminal.ts';

afterEach(cleanUp);

/** The files of all conversations, the oldest first. */
function files({ home }: Place): string[] {
  const sessions = join(home, '.mcp-by-hand', 'sessions');
  const names = readdirSync(sessions, { recursive: true }) as string[];
  return names
    .filter((name) => name.endsWith('.jsonl'))
    .sort()
    .map((name) => join(sessions, name));
}

const prompts = (file: string) =>
  readLines(file)
    .filter(({ role }) => role === 'user')
    .map(({ text }) => text);

test('--resume lists chats to choose from; --continue is the last chat; two do not mix', async () => {
  const where = place({ 'notes.txt': 'forty-two' });
  const first = new Terminal(where, ['read notes.txt']);
  await first.see('forty-two');
  await first.ready();
  first.enter('/name the answer');
  await first.see('this is "the answer"');
  first.enter('/clear');
  await first.see('a new conversation');
  first.enter('hello there');
  await first.ready();
  first.enter('/exit');
  await first.ended();
  const script = await run(where, ['-p', 'glob *.txt']);
  assert.equal(script.code, 0);

  const chosen = new Terminal(where, ['--resume']);
  await chosen.see(/^ +1 {2}\d{4}-\d\d-\d\d \d\d:\d\d · 2 turns · "hello there"$/);
  await chosen.see(/^ +2 .* 4 turns · called "the answer" · "read notes.txt"$/);
  assert.ok(!chosen.text.includes('glob')); // a script's
  chosen.enter('7');
  await chosen.see('None of them is "7".');
  chosen.enter('2');
  await chosen.see('going on with "the answer", 4 turns');
  await chosen.see(/^› read notes\.txt\n✓ read\(path: "notes\.txt"\)\n {2}│ forty-two$/);
  await chosen.ready();
  chosen.enter('read notes.txt limit=1');
  await chosen.see('forty-two', 1);
  await chosen.ready();

  const second = new Terminal(where, ['--continue']); // the same one: it was used last
  await second.see('another mcp-by-hand has that conversation open: this is a copy');
  await second.see(/^› read notes\.txt limit=1$/);
  await second.ready();
  second.enter('glob *.txt');
  await second.see(/^✓ glob/);
  await second.ready();
  const [named, , , copy] = files(where);
  assert.deepEqual(prompts(named!), ['read notes.txt', 'read notes.txt limit=1']);
  assert.deepEqual(prompts(copy!), [...prompts(named!), 'glob *.txt']);

  second.enter('/resume find it');
  await second.see('no conversation is "find it"; there are these, by id or name:');
  second.enter('/resume');
  await second.see('Which one?');
  assert.match(second.text, /^ +1 {2}.* · "read notes\.txt" · this one$/m);
  second.press(KEYS.ctrlC);
  await second.see('none was chosen: this conversation goes on');
  await second.ready();
  second.enter('/resume THE ANSWER');
  await second.see('this is a copy', 2);
  second.enter('/exit');
  assert.equal(await second.ended(), 0);
  chosen.enter('/exit');
  assert.equal(await chosen.ended(), 0);
  assert.equal(files(where).length, 4); // the second copy was never written to
});

test('without a terminal --resume without a word is a usage error that lists; with one it goes on', async () => {
  const where = place({ 'notes.txt': 'forty-two' });
  const none = await run(where, ['-p', 'hi', '--resume']);
  assert.deepEqual([none.code, none.out], [2, '']);
  assert.match(none.err, /there is no conversation in this folder/);
  await run(where, ['-p', 'glob *.txt']);
  const [{ id }] = readLines(files(where)[0]!);
  const list = await run(where, ['-p', 'hi', '-r']);
  assert.equal(list.code, 2);
  assert.match(list.err, new RegExp(`${id.slice(0, 8)}  .*4 turns · "glob \\*.txt"`));
  const piped = await run(where, ['--resume'], { input: 'hi\n' });
  assert.equal(piped.code, 2);
  const both = await run(where, ['-p', '-c', '--resume', id, 'hi']);
  assert.match(both.err, /--continue is the last chat, --resume another one/);
  const more = await run(where, ['-p', '--resume', id.slice(0, 8), 'read notes.txt']);
  assert.equal(more.code, 0, more.err);
  assert.deepEqual(files(where).map(prompts), [['glob *.txt', 'read notes.txt']]);
});

test('kill -9 leaves no lock that counts, and no line is lost but the one being written', async () => {
  const where = place({ 'notes.txt': 'forty-two' });
  const killed = start(where, [], { input: null });
  killed.child.stdin.write('glob *.txt\n');
  await new Promise<void>((seen) => {
    killed.child.stdout.on('data', () => killed.seen.out.includes('notes.txt') && seen());
  });
  killed.child.kill('SIGKILL');
  await killed.ended;
  const [file] = files(where);
  const kept = readFileSync(file!, 'utf8');
  const next = await run(where, ['-p', '-c', 'read notes.txt']);
  assert.deepEqual([next.code, next.err], [0, '']); // no copy
  assert.ok(readFileSync(file!, 'utf8').startsWith(kept));
  assert.deepEqual(prompts(file!), ['glob *.txt', 'read notes.txt']);
});
