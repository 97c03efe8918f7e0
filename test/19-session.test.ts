// Chapter 19: conversations as files.

import assert from 'node:assert/strict';
import { appendFileSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import type { Turn } from '../agent.ts';
import { fit } from '../chapters/16-hands/results.ts';
import { Masker } from '../chapters/17-the-gate/safe-text.ts';
import { Trust } from '../chapters/17-the-gate/trust.ts';
import { Session } from '../chapters/19-the-terminal/session.ts';
import { cleanUp, folder, later } from './helpers.ts';

afterEach(cleanUp);

const user = (text: string): Turn => ({ role: 'user', text });

/** Sessions of one folder, as one run of the program after the other would open them. */
function sessions(home = folder()) {
  const cwd = folder();
  return () => new Session(new Trust({ home, cwd }), new Masker({}));
}

test('the last conversation of a folder can be gone on with; what is said then is appended to it', () => {
  const open = sessions();
  assert.deepEqual(open().resume(), []);
  const first = open();
  first.record(user('one'));
  first.begin();
  first.record(user('two'));
  const second = open();
  assert.deepEqual(second.resume(), [user('two')]);
  second.record(user('three'));
  assert.deepEqual(open().resume(), [user('two'), user('three')]);
  assert.deepEqual(sessions()().resume(), []); // another folder
});

test('a line that was cut off, by a crash, costs that line and not the next', () => {
  const open = sessions();
  const first = open();
  first.record(user('one'));
  first.record(user('two'));
  const file = join(first.folder, readdirSync(first.folder).find((name) => name.endsWith('.jsonl'))!);
  truncateSync(file, statSync(file).size - 5);
  const second = open();
  assert.deepEqual(second.resume(), [user('one')]);
  second.record(user('three'));
  assert.deepEqual(open().resume(), [user('one'), user('three')]);
});

test('lines that are no turns are passed over', () => {
  const open = sessions();
  const first = open();
  first.record(user('one'));
  const file = join(first.folder, readdirSync(first.folder).find((name) => name.endsWith('.jsonl'))!);
  appendFileSync(file, '{"role":"king","text":"x"}\nnull\n[]\n{"role":"user","text":5}\n{"role":"assistant","text":"x"}\n{"role":"tools"}\n');
  appendFileSync(file, '{"role":"assistant","text":"x","calls":[null]}\n{"role":"assistant","text":"x","calls":[{"id":1}]}\n');
  appendFileSync(file, '{"role":"tools","results":[{"id":"1","name":"x"}]}\n{"role":"tools","results":[{"id":"1","name":"x","blocks":[{}]}]}\n');
  assert.deepEqual(open().resume(), [user('one')]);
});

test('I3: without a home nothing is kept, and big results go to a folder of ours and not into the project', () => {
  const cwd = folder();
  const session = new Session(new Trust({ home: '', cwd }), new Masker({}));
  later(() => rmSync(session.resultsFolder, { recursive: true, force: true }));
  session.record(user('one'));
  assert.deepEqual([session.folder, session.resume(), readdirSync(cwd)], ['', [], []]);
  assert.ok(!session.resultsFolder.startsWith(cwd));
  fit({ blocks: [{ type: 'text', text: 'x'.repeat(200_000) }], isError: false }, session.resultsFolder, 'big');
  assert.equal(statSync(session.resultsFolder).mode & 0o777, 0o700);
});

test('I6: a conversation is readable by its owner alone, and secrets in it are masked', () => {
  const [home, cwd] = [folder(), folder()];
  const session = new Session(new Trust({ home, cwd }), new Masker({ MY_TOKEN: 'hunter2hunter2' }));
  session.record(user('it is hunter2hunter2'));
  const file = join(session.folder, readdirSync(session.folder).find((name) => name.endsWith('.jsonl'))!);
  assert.deepEqual([statSync(session.folder).mode & 0o777, statSync(file).mode & 0o777], [0o700, 0o600]);
  assert.match(readFileSync(file, 'utf8'), /it is \*\*\*/);
});

test('the last conversation is the one that was used last, not the one that was begun last', () => {
  const open = sessions();
  const [long, short] = [open(), open()];
  long.record(user('a long one begins'));
  short.record(user('a short one'));
  const file = (words: string) => {
    const names = readdirSync(long.folder).map((name) => join(long.folder, name));
    return names.find((name) => readFileSync(name, 'utf8').includes(words))!;
  };
  utimesSync(file('a short one'), 1e9, 1e9); // some time ago
  long.record(user('and goes on'));
  assert.equal(open().resume().length, 2);
});
