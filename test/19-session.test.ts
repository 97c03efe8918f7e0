// Chapter 19: conversations as files.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import {
  appendFileSync,
  existsSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { afterEach, test } from 'node:test';
import type { Turn } from '../agent.ts';
import { fitResult } from '../chapters/16-hands/results.ts';
import { Masker } from '../chapters/17-the-gate/safe-text.ts';
import { Trust } from '../chapters/17-the-gate/trust.ts';
import {
  lockOf,
  type Conversation,
  type SessionKind,
} from '../chapters/19-the-terminal/session-file.ts';
import { findConversation } from '../chapters/19-the-terminal/more/resume.ts';
import { Session } from '../chapters/19-the-terminal/session-file.ts';
import { cleanUp, folder, later } from './help/basics.ts';

afterEach(cleanUp);

const user = (text: string): Turn => ({ role: 'user', text });

/** As --continue does. */
function goOn(session: Session): Turn[] {
  const last = session.last();
  return last ? session.resume(last) : [];
}

/** Sessions of one folder, as one run of the program after the other would open them. */
function sessions(home = folder()) {
  const cwd = folder();
  let last: Session | undefined;
  return (kind?: SessionKind) => {
    last?.close();
    last = new Session(new Trust({ home, cwd }), new Masker({}), kind);
    return last;
  };
}

test('the last conversation of a folder can be gone on with; what is said then is appended to it', () => {
  const open = sessions();
  assert.deepEqual(goOn(open()), []);
  const first = open();
  first.record(user('one'));
  first.begin();
  first.record(user('two'));
  const second = open();
  assert.deepEqual(goOn(second), [user('two')]);
  second.record(user('three'));
  assert.deepEqual(goOn(open()), [user('two'), user('three')]);
  assert.deepEqual(goOn(sessions()()), []); // another folder
});

test('a conversation has an id, which its file tells, with what made it', () => {
  const cwd = folder();
  const trust = new Trust({ home: folder(), cwd });
  const session = new Session(trust, new Masker({}), 'print');
  session.record(user('one'));
  session.close();
  const [name] = readdirSync(session.folder);
  const [first] = readFileSync(join(session.folder, name!), 'utf8').split('\n');
  const { id, kind } = JSON.parse(first!);
  assert.deepEqual([id, kind], [session.id, 'print']);
  assert.ok(name!.endsWith(`-${id}.jsonl`));
  const next = new Session(trust, new Masker({}));
  assert.notEqual(next.id, id);
  goOn(next);
  assert.equal(next.id, id);
  next.begin();
  assert.notEqual(next.id, id);
});

test('a line that was cut off, by a crash, costs that line and not the next', () => {
  const open = sessions();
  const first = open();
  first.record(user('one'));
  first.record(user('two'));
  const file = join(
    first.folder,
    readdirSync(first.folder).find((name) => name.endsWith('.jsonl'))!,
  );
  truncateSync(file, statSync(file).size - 5);
  const second = open();
  assert.deepEqual(goOn(second), [user('one')]);
  second.record(user('three'));
  assert.deepEqual(goOn(open()), [user('one'), user('three')]);
});

test('lines that are no turns are passed over', () => {
  const open = sessions();
  const first = open();
  first.record(user('one'));
  const file = join(
    first.folder,
    readdirSync(first.folder).find((name) => name.endsWith('.jsonl'))!,
  );
  appendFileSync(
    file,
    '{"role":"king","text":"x"}\nnull\n[]\n{"role":"user","text":5}\n{"role":"assistant","text":"x"}\n{"role":"tools"}\n',
  );
  appendFileSync(
    file,
    '{"role":"assistant","text":"x","calls":[null]}\n{"role":"assistant","text":"x","calls":[{"id":1}]}\n',
  );
  appendFileSync(
    file,
    '{"role":"tools","results":[{"id":"1","name":"x"}]}\n{"role":"tools","results":[{"id":"1","name":"x","blocks":[{}]}]}\n',
  );
  assert.deepEqual(goOn(open()), [user('one')]);
});

test('I3: without a home nothing is kept, and big results go to a folder of ours and not into the project', () => {
  const cwd = folder();
  const session = new Session(new Trust({ home: '', cwd }), new Masker({}));
  later(() => rmSync(session.resultsFolder, { recursive: true, force: true }));
  session.record(user('one'));
  assert.deepEqual([session.folder, goOn(session), readdirSync(cwd)], ['', [], []]);
  assert.ok(!session.resultsFolder.startsWith(cwd));
  fitResult(
    { blocks: [{ type: 'text', text: 'x'.repeat(200_000) }], isError: false },
    session.resultsFolder,
    'big',
  );
  assert.equal(statSync(session.resultsFolder).mode & 0o777, 0o700);
});

test('I6: a conversation is readable by its owner alone, and secrets in it are masked', () => {
  const [home, cwd] = [folder(), folder()];
  const session = new Session(new Trust({ home, cwd }), new Masker({ MY_TOKEN: 'hunter2hunter2' }));
  session.record(user('it is hunter2hunter2'));
  const file = join(
    session.folder,
    readdirSync(session.folder).find((name) => name.endsWith('.jsonl'))!,
  );
  assert.deepEqual(
    [statSync(session.folder).mode & 0o777, statSync(file).mode & 0o777],
    [0o700, 0o600],
  );
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
  assert.equal(goOn(open()).length, 2);
});

test('--continue is the last chat, and the last of -p only where nobody ever talked', () => {
  const open = sessions();
  open('print').record(user('a script'));
  assert.deepEqual(goOn(open()), [user('a script')]);
  open('chat').record(user('a talk'));
  const script = open('print');
  script.record(user('another script'));
  assert.deepEqual(goOn(open()), [user('a talk')]);
  const [file] = script.list().filter(({ firstPrompt }) => firstPrompt === 'another script');
  const old = readFileSync(file!.file, 'utf8').replace('"kind":"print",', ''); // of an older program
  writeFileSync(file!.file, old);
  assert.deepEqual(goOn(open()), [user('another script')]);
});

test('what another program has open is copied, and stays as it is', () => {
  const cwd = folder();
  const trust = new Trust({ home: folder(), cwd });
  const [first, second] = [new Session(trust, new Masker({})), new Session(trust, new Masker({}))];
  first.record(user('one'));
  const before = readFileSync(first.list()[0]!.file, 'utf8');
  let copies = 0;
  for (const each of [first, second]) each.onCopy = () => copies++;
  assert.deepEqual(second.resume(first.list()[0]!), [user('one')]);
  assert.equal(copies, 1);
  assert.equal(first.list().length, 1); // a look alone leaves no second file
  second.record(user('two'));
  const [copy, original] = first.list().sort((a, b) => b.count - a.count);
  assert.deepEqual(copy!.turns, [user('one'), user('two')]);
  assert.equal(readFileSync(original!.file, 'utf8'), before);
  const [header] = readFileSync(copy!.file, 'utf8').split('\n');
  assert.equal(JSON.parse(header!).copyOf, original!.id);
  first.close();
  const third = new Session(trust, new Masker({}));
  third.onCopy = () => copies++;
  third.resume(original!); // it is free again
  third.resume(original!); // and that it is ours already is no copy
  third.begin();
  first.resume(original!); // nor is it held by one that began another
  assert.equal(copies, 1);
  rmSync(lockOf(original!.file)); // as if another container had taken us for dead
  third.resume(original!);
  first.record(user('from the first'));
  third.record(user('from the third'));
  assert.equal(copies, 2);
  const last = first.list().filter(({ turns }) => /from the/.test(JSON.stringify(turns)));
  assert.deepEqual(
    last.map(({ turns }) => turns.map((turn) => 'text' in turn && turn.text)).sort(),
    [
      ['one', 'from the first'],
      ['one', 'from the third'],
    ],
  );
});

test('what cannot be written can still be gone on with', () => {
  const open = sessions();
  const first = open();
  first.record(user('one'));
  const [{ file }] = first.list() as [Conversation];
  const second = open();
  mkdirSync(lockOf(file)); // nothing can be made there
  let copies = 0;
  second.onCopy = () => copies++;
  assert.deepEqual([goOn(second), copies], [[user('one')], 0]);
});

test('a compacted conversation begins again with what it was compacted to', () => {
  const open = sessions();
  const first = open();
  first.record(user('one'));
  first.compact([user('a summary')]);
  first.record(user('two'));
  const [kept] = first.list();
  assert.deepEqual(kept!.turns, [user('a summary'), user('two')]);
  assert.deepEqual([kept!.firstPrompt, kept!.count], ['one', 2]);
  appendFileSync(
    kept!.file,
    '{"compacted":[{"role":"king"}]}\n{"compacted":"x"}\n{"compacted":[{"role":"us',
  );
  assert.deepEqual(goOn(open()), [user('a summary'), user('two')]);
});

test('names find a conversation, whatever the case; ids by their beginning; a name is given once', () => {
  const open = sessions();
  const first = open();
  first.rename('The Bug');
  first.record(user('one'));
  const second = open();
  second.record(user('two'));
  assert.throws(() => second.rename('The Bug'), /another conversation here is called "The Bug"/);
  second.rename('old');
  second.rename('other');
  const kept = second.list();
  assert.equal(findConversation(kept, 'the bug').id, first.id);
  assert.equal(findConversation(kept, second.id.slice(0, 6)).name, 'other');
  assert.throws(
    () => findConversation(kept, 'old'),
    /no conversation is "old"; there are these.*\n.*\n/,
  );
  assert.throws(() => findConversation(kept, second.id.slice(0, 3)), /no conversation is/); // too little to be an id
  const alike = kept.map((each, n) => ({ ...each, id: `abcd${n}` }));
  assert.throws(() => findConversation(alike, 'abcd'), /more than one may be "abcd"/);
  assert.throws(() => findConversation([], 'x'), /there is no conversation in this folder/);
});

test('a month after its last use a conversation goes, of every project; a name keeps it for a year', () => {
  const home = folder();
  const open = sessions(home);
  const aged = (words: string, days: number, name = '') => {
    const session = sessions(home)();
    if (name) session.rename(name);
    session.record(user(words));
    const [{ file }] = session.list() as [Conversation];
    const at = Date.now() / 1000 - days * 24 * 3600;
    utimesSync(file, at, at);
    return { file, session };
  };
  const gone = [aged('old', 31), aged('named, very old', 366, 'x')];
  const staying = [aged('young', 29), aged('named', 364, 'y')];
  for (const { session } of [...gone, ...staying]) session.close();
  const inUse = aged('old, but open', 31);
  const { file } = gone[0]!;
  const other = join(dirname(file), 'notes.jsonl'); // not one of ours
  const linked = join(dirname(file), `2020-01-01T00-00-00.000Z-${randomUUID()}.jsonl`);
  writeFileSync(other, '');
  utimesSync(other, 1e9, 1e9);
  symlinkSync(other, linked);
  lutimesSync(linked, 1e9, 1e9);
  open().record(user('a new one'));
  const left = [...gone, ...staying, inUse].map((each) => existsSync(each.file));
  assert.deepEqual(left, [false, false, true, true, true]);
  assert.deepEqual(readdirSync(dirname(file)).sort(), [basename(linked), basename(other)].sort());
});
