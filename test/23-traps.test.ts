// Chapter 23: the traps of a server that asks, from one table, each in both eras. Where an era has no such
// thing, the row says what holds instead.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { ScriptedPerson, type PersonAnswer } from '../chapters/17-the-gate/person.ts';
import { keepTyped, Masker } from '../chapters/17-the-gate/safe-text.ts';
import { Trace } from '../chapters/19-the-terminal/more/trace-file.ts';
import { eitherEra } from '../chapters/22-no-handshake/era.ts';
import { answerWithin } from '../chapters/22-no-handshake/input-required.ts';
import { elicitation } from '../chapters/23-the-server-asks/elicitation.ts';
import { problemsFound } from '../chapters/23-the-server-asks/schema.ts';
import type { Json } from '../mcp.ts';
import { asker, at, connected, ERAS, form, often, type Era } from './help/asking-server.ts';
import { cleanUp, folder, later, rejection, until } from './help/basics.ts';
import { McpConnection } from './help/subject.ts';

afterEach(cleanUp);

const ELICIT = 'elicitation/create';
const YES = { action: 'accept', content: {} };
const CANCEL = { action: 'cancel' };
const silent = () => new Promise<undefined>(() => {});

/** Somebody who takes `ms` to answer, or until a hand is given. */
const after =
  (work: Promise<unknown>, answer: PersonAnswer = 'y'): PersonAnswer =>
  () =>
    work.then(() => answer as string);

const TRAPS: [number: number, name: string, run: (era: Era) => Promise<void>][] = [
  [
    1,
    'a question that its server withdraws is gone at once, and nothing is sent for it',
    async (era) => {
      for (const id of era === 'handshake' ? [0, 'q', 1] : ['key 0']) {
        // 1 is also an id of ours
        const person = new ScriptedPerson([
          era === 'handshake' ? silent : async () => (await until(() => isTold), 'y'),
        ]);
        let isTold = false;
        const { connection, ask, sent } = await connected(era, person);
        const answer = ask(ELICIT, { message: 'Never mind' }, { cancel: true, id });
        await until(() => person.questions.length === 1);
        if (era === 'handshake') {
          await connection.notify('notifications/go');
          assert.deepEqual(await answer, { late: 'nothing' });
          assert.ok(person.questions[0]!.signal.aborted);
          assert.deepEqual(person.said, ['"demo" no longer wants to know']);
          assert.deepEqual(sent(), []);
        } else {
          // it is part of a result, and cannot be taken back
          await ask('notifications/cancelled', { requestId: id }, { notify: true });
          isTold = true;
          assert.deepEqual([await answer, sent()], [YES, [YES]]);
        }
        await connection.close();
      }
    },
  ],

  [
    2,
    'the limit of a call does not run while the person thinks, half as long again',
    async (era) => {
      const limit = 2000; // 60 s and 90 s, by the same ratio
      const person = new ScriptedPerson([
        after(new Promise((done) => setTimeout(done, limit * 1.5))),
      ]);
      const { ask } = await connected(era, person);
      assert.deepEqual(
        await ask(ELICIT, { message: 'Take your time' }, {}, { timeoutMs: limit }),
        YES,
      );
    },
  ],

  [
    3,
    'a server that gave a token hears now and then that someone is there',
    async (era) => {
      let hear = () => {};
      const heard = new Promise<void>((done) => (hear = done));
      const person = new ScriptedPerson([after(heard)]);
      const { ask, wire } = await connected(era, person, { progressMs: 1 });
      const answer = ask(ELICIT, { message: 'Take your time', _meta: { progressToken: 'p7' } });
      const reports = () =>
        wire.flatMap(([way, { method, params }]) =>
          way === 'out' && method === 'notifications/progress' ? [params] : [],
        );
      await until(() => person.questions.length === 1);
      if (era === 'handshake') await until(() => reports().length >= 2);
      hear();
      assert.deepEqual(await answer, YES);
      const count = reports().length;
      const wanted = Array.from({ length: count }, (_, n) => ({
        progressToken: 'p7',
        progress: n + 1,
        message: 'the user is reading',
      }));
      assert.deepEqual(reports(), wanted);
      assert.equal(era === 'modern' ? count : 0, 0); // there the call is over, and nobody waits
      await ask('notifications/x', {}, { notify: true });
      assert.equal(reports().length, count, 'not after the answer');
    },
  ],

  [
    4,
    'an id may be one of ours, 0, or a text; a key may be anything',
    async (era) => {
      const ids =
        era === 'handshake' ? [1, 2, 3, 0, 'q', ''] : ['0', '', '__proto__', 'constructor'];
      const { ask, wire } = await connected(era, new ScriptedPerson(ids.map(() => 'y')), often);
      for (const id of ids) {
        assert.deepEqual(await ask(ELICIT, { message: 'Well?' }, { id }), YES, `${id}`);
        const [, last] = wire.findLast(
          ([way, { result, params }]) => way === 'out' && (result || params?.inputResponses),
        )!;
        assert.deepEqual(last.result ? last.id : Object.keys(last.params.inputResponses)[0], id);
      }
    },
  ],

  [
    5,
    'Ctrl-C in a form cancels the form, and the call goes on',
    async (era) => {
      const leave = () => (person.leaveForm(), silent()); // what the terminal does then
      const person = new ScriptedPerson([leave, 'y', leave, 'y', 'Graz', leave]);
      const { ask } = await connected(era, person, often);
      for (let n = 0; n < 3; n++)
        assert.deepEqual(await ask(ELICIT, form({ city: { type: 'string' } })), CANCEL);
    },
  ],

  [
    6,
    'a call that is aborted closes its form; its server hears "cancel", where it can',
    async (era) => {
      const person = new ScriptedPerson([silent]);
      const { ask, sent } = await connected(era, person);
      const stop = new AbortController();
      const call = ask(ELICIT, { message: 'Now?' }, {}, { signal: stop.signal });
      await until(() => person.questions.length === 1);
      stop.abort();
      assert.equal((await rejection(call)).kind, 'aborted');
      await until(() => person.questions[0]!.signal.aborted);
      if (era === 'handshake') await until(() => sent().length === 1);
      assert.deepEqual(sent(), era === 'handshake' ? [CANCEL] : []);
    },
  ],

  [
    7,
    'two servers that ask at once, while a question of ours is open, wait in line and never mix',
    async (era) => {
      let open = () => {};
      const opened = new Promise<void>((done) => (open = done));
      const cities = ({ text }: { text: string }) =>
        /number 0|"a" \(/.test(text) ? 'zero' : 'one';
      // Ours first; then each form whole: its start, two fields, the last look.
      const person = new ScriptedPerson([
        after(opened),
        ...[0, 1].flatMap((): PersonAnswer[] => ['y', cities, cities, 'y']),
      ]);
      const ours = person.choose({
        lines: ['Ours'],
        prompt: 'Allow it?',
        choices: [{ key: 'y', word: 'yes', label: '[y]es' }],
      });
      const extensions = [elicitation({ person, problemsFound }), answerWithin(), eitherEra()];
      const answers = ['first', 'second'].map(async (name, n) => {
        const server = new McpConnection(name, asker(era), { extensions });
        later(() => server.close());
        await server.connect();
        await server.initialize();
        const field = { type: 'string' };
        const properties = n === 0 ? { a: field, aa: field } : { b: field, bb: field };
        const params = { ...form(properties), message: `number ${n}` };
        const asked = server.callTool('ask', { method: ELICIT, params });
        return JSON.parse((await asked).text);
      });
      await until(() => person.questions.length === 1);
      open();
      assert.deepEqual(await ours, { key: 'y' });
      const [first, second] = await Promise.all(answers);
      assert.deepEqual(
        [Object.keys(first.content), Object.keys(second.content)],
        [
          ['a', 'aa'],
          ['b', 'bb'],
        ],
      );
      const names = person.questions
        .slice(1)
        .map(
          ({ text }) =>
            /"(\w)\1?"/.exec(text.replace(/^.*\n.*asks:|"(first|second|ask)"/g, ''))?.[1] ?? '',
        );
      assert.equal(
        new Set(names.slice(0, 4).filter((name) => /^[ab]$/.test(name))).size,
        1,
        `${names}`,
      );
      const heads = person.questions
        .filter(({ text }) => /asks:/.test(text))
        .map(({ text }) => /server "(\w+)" asks[^]*number (\d)/.exec(text)!.slice(1));
      assert.deepEqual(heads.sort(), [
        ['first', '0'],
        ['second', '1'],
      ]);
    },
  ],

  [
    8,
    'an answer to a server that died meanwhile goes nowhere, and harms nothing',
    async (era) => {
      let answer: (line: string) => void = () => {};
      const person = new ScriptedPerson([() => new Promise((done) => (answer = done))]);
      const { connection, ask, sent } = await connected(era, person);
      const call = rejection(ask(ELICIT, { message: 'Still there?' }));
      await until(() => person.questions.length === 1);
      await connection.close();
      assert.equal((await call).kind, 'closed');
      assert.ok(person.questions[0]!.signal.aborted);
      answer('y'); // too late
      await new Promise(setImmediate);
      assert.deepEqual(sent(), []);
    },
  ],

  [
    9,
    'several questions in one call, one of them declined; what the server keeps comes back as it was; ten rounds are enough',
    async (era) => {
      const person = new ScriptedPerson(['y', 'n', ...Array(40).fill('y')]);
      const { ask, wire } = await connected(era, person, often);
      if (era === 'handshake') {
        assert.deepEqual(await ask(ELICIT, { message: 'Go on?' }, { again: 2 }), [
          YES,
          { action: 'decline' },
        ]);
        assert.equal((await ask(ELICIT, { message: 'Go on?' }, { again: 12 })).length, 12); // each a request of its own
        assert.equal((await ask('dance', {})).error.code, -32601);
        return;
      }
      const both = await ask(ELICIT, { message: 'Go on?' }, { keys: ['a', 'b'] });
      assert.deepEqual(both, { a: YES, b: { action: 'decline' } });
      assert.equal((await ask(ELICIT, { message: 'Go on?' }, { again: 10 })).length, 10);
      const states = wire
        .flatMap(([, { params, result }]) => [result?.requestState ?? params?.requestState])
        .filter(Boolean);
      assert.ok(
        states.every((state, n) => n % 2 === 0 || state === states[n - 1]),
        'each state comes back as it was',
      );
      assert.match(
        (await rejection(ask(ELICIT, { message: 'Go on?' }, { again: 11 }))).message,
        /asked back more than 10 times/,
      );
      assert.match(
        (await rejection(ask('dance', {}))).message,
        /asks for "dance", which we have not offered/,
      );
    },
  ],

  [
    10,
    'what we offer is said before the tools are listed: some servers have other tools for it',
    async (era) => {
      const { connection, wire } = await connected(era, new ScriptedPerson());
      await connection.listTools();
      const methods = wire.filter(([way]) => way === 'out').map(([, { method }]) => method);
      const told = era === 'handshake' ? 'initialize' : 'tools/list';
      const { params } = wire.find(([, { method }]) => method === told)![1];
      const { elicitation: offered } =
        params.capabilities ?? params._meta['io.modelcontextprotocol/clientCapabilities'];
      assert.deepEqual(offered, { form: {}, url: {} });
      assert.ok(methods.indexOf(told) <= methods.indexOf('tools/list'));
    },
  ],

  [
    11,
    'a call that is refused until a page was visited is made once more, and never in a loop',
    async (era) => {
      const elicitations = [at('https://cal.example/1', { elicitationId: 'e-1' })];
      const refuse = { code: -32042, message: 'Connect first', data: { elicitations } };
      const person = new ScriptedPerson(era === 'handshake' ? ['y', 'y'] : [], () => true);
      const { connection, wire } = await connected(era, person);
      const error = await rejection(connection.callTool('ask', { refuse, always: true }));
      assert.match(error.message, /Connect first/);
      assert.deepEqual(
        person.opened.map(String),
        era === 'handshake' ? ['https://cal.example/1'] : [],
      );
      const times = wire.filter(
        ([way, { method }]) => way === 'out' && method === 'tools/call',
      ).length;
      assert.equal(times, era === 'handshake' ? 2 : 1); // later, there is no such error
    },
  ],

  [
    12,
    'a secret typed by mistake is in no trace and on no screen',
    async (era) => {
      const secret = 'correct horse battery';
      const typed = () => (keepTyped(secret), secret); // as at a terminal: a server may echo it
      const person = new ScriptedPerson(['y', typed, 'Graz', 'y']);
      const { ask, wire } = await connected(era, person);
      const answer = await ask(
        ELICIT,
        form({ passphrase: { type: 'string' }, city: { type: 'string' } }),
      );
      assert.deepEqual(answer, { action: 'accept', content: { passphrase: secret, city: 'Graz' } });
      const file = join(folder(), 'trace.jsonl');
      const trace = new Trace({ warn: () => {} } as never, new Masker(), file);
      for (const [dir, msg] of wire) trace.write({ dir, msg } as Json);
      assert.doesNotMatch(readFileSync(file, 'utf8'), /horse/);
      assert.doesNotMatch(readFileSync(file, 'utf8'), /Graz/); // whatever the field is called
      assert.deepEqual(
        person.questions.map(({ isSecret = false }) => isSecret),
        [false, true, false, false],
      );
      assert.ok(person.questions.every(({ text }) => !/horse|Graz/.test(text)));
    },
  ],
];

assert.deepEqual(
  TRAPS.map(([number]) => number),
  Array.from({ length: 12 }, (_, n) => n + 1),
);
for (const [number, name, run] of TRAPS)
  for (const era of ERAS) test(`trap ${number}, ${era}: ${name}`, () => run(era));
