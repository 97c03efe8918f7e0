// Chapter 17: the one way to reach the person. One question at a time, each withdrawn by its own signal; choices,
// forms and addresses; and where nobody is, no answer.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formFields } from '../chapters/17-the-gate/form.ts';
import {
  LineByLine,
  mayBeOpened,
  nobody,
  ScriptedPerson,
  Turns,
  type AskedPage,
  type Person,
} from '../chapters/17-the-gate/person.ts';
import type { Json } from '../mcp.ts';
import { assertClean } from './help/agent-with-gate.ts';
import { rejection, until } from './help/basics.ts';

const YES = { key: 'y', word: 'yes', label: '[y]es' };
const NO = { key: 'n', word: 'no', label: '[n]o' };
const LATER = { key: 'l', word: 'later', label: '[l]ater' };
const start = { lines: ['It is about this.'], prompt: 'Well?', choices: [YES, NO, LATER] };
const page = new URL('https://example.com/a?b=c');

/** Every way to ask, and what each answers when there is no answer. */
const every = (person: Person, signal?: AbortSignal) => [
  person.ask({ lines: [], prompt: 'Name', signal }),
  person.choose({ ...start, signal }),
  person.form({ lines: [], schema: { type: 'object', properties: {} }, signal }),
  person.open({ lines: [], url: page, signal }),
];
const NO_ANSWERS = [undefined, undefined, { action: 'cancel' }, { action: 'cancel' }];

// ─── Nobody, and a script ─────────────────────────────────────────────────────────────────────────────────────

test('nobody is there: every question is over at once, without an answer', async () => {
  assert.equal(nobody.isThere, false);
  nobody.say('hello?');
  assert.deepEqual(await Promise.all(every(nobody)), NO_ANSWERS);
  assert.deepEqual(await nobody.open({ lines: [], url: page, isAgreed: true }), {
    action: 'cancel',
  });
});

test('a person line by line who is not there is shown nothing, and no browser is opened', async () => {
  class Absent extends LineByLine {
    isThere = false;
    say(): void {}
    protected readLine(): never {
      throw new Error('somebody was asked');
    }
    protected launch(): never {
      throw new Error('a browser was opened');
    }
  }
  assert.deepEqual(await Promise.all(every(new Absent())), NO_ANSWERS);
  assert.deepEqual(await new Absent().open({ lines: [], url: page, isAgreed: true }), {
    action: 'cancel',
  });
});

test('a scripted person answers in order and remembers; one question too many is an error', async () => {
  const person = new ScriptedPerson(['Ada', undefined, ({ prompt }) => `${prompt}!`]);
  const ask = (prompt: string) =>
    person.ask({ lines: ['Hello.'], prompt, isSecret: prompt === 'Key' });
  assert.deepEqual(
    [await ask('Name'), await ask('Age'), await ask('Key')],
    ['Ada', undefined, 'Key!'],
  );
  assert.deepEqual(
    person.questions.map(({ text, isSecret }) => [text, isSecret]),
    [
      ['Hello.\nName', false],
      ['Hello.\nAge', false],
      ['Hello.\nKey', true],
    ],
  );
  assert.match((await rejection(ask('More'))).message, /one question too many:\nHello\.\nMore/);
  person.say('done');
  assert.deepEqual(person.said, ['done']);
});

test('the server that asks is named first, and cannot disguise its name', async () => {
  const person = new ScriptedPerson(['x', 'y']);
  await person.ask({ lines: ['"Who are you?"'], prompt: 'Name', from: 'git\u202ehub\nfake' });
  await person.choose({ ...start, from: 'git' });
  assert.deepEqual(person.questions[0]!.lines, [
    'The MCP server "git\\u{202e}hub\\nfake" asks:',
    '"Who are you?"',
  ]);
  assert.deepEqual(person.questions[1]!.lines[0], 'The MCP server "git" asks:');
});

// ─── One at a time ────────────────────────────────────────────────────────────────────────────────────────────

/** A person who answers when the test says so. */
function slowPerson(count = 5) {
  const open: { asked: AskedPage; answer: (line?: string) => void }[] = [];
  const wait = (asked: AskedPage) =>
    new Promise<string | undefined>((answer) => open.push({ asked, answer }));
  const person = new ScriptedPerson(Array.from({ length: count }, () => wait));
  const ask = (prompt: string, signal?: AbortSignal) => person.ask({ lines: [], prompt, signal });
  const shown = () => person.questions.map(({ prompt }) => prompt);
  return { person, open, ask, shown };
}

const settled = () => new Promise((done) => setImmediate(done));

test('one question is open at a time, in the order of their coming; one that fails stops no other', async () => {
  const { open, ask, shown } = slowPerson();
  const answers = [ask('first'), ask('second'), ask('third')];
  await settled();
  assert.deepEqual(shown(), ['first']);
  open[0]!.answer('1');
  await settled();
  assert.deepEqual(shown(), ['first', 'second']);
  open[1]!.answer(undefined);
  await until(() => open.length === 3);
  open[2]!.answer('3');
  assert.deepEqual(await Promise.all(answers), ['1', undefined, '3']);
  const failing = new ScriptedPerson([
    () => {
      throw new Error('the terminal is gone');
    },
    'next',
  ]);
  const first = rejection(failing.ask({ lines: [], prompt: 'a' }));
  assert.equal(await failing.ask({ lines: [], prompt: 'b' }), 'next');
  assert.match((await first).message, /terminal is gone/);
});

test('a signal takes back its own question: the open one, and the next is shown; others stay', async () => {
  const { open, ask, shown } = slowPerson();
  const over = new AbortController();
  const [login, gate] = [ask('login', over.signal), ask('gate')];
  await settled();
  over.abort();
  assert.equal(await login, undefined);
  await until(() => open.length === 2);
  assert.deepEqual(shown(), ['login', 'gate']);
  open[0]!.answer('too late');
  open[1]!.answer('yes');
  assert.equal(await gate, 'yes');
});

test('a signal takes back a question that waits in line, at once, and it is never shown', async () => {
  const { open, ask, shown } = slowPerson();
  const over = new AbortController();
  const [first, second, third] = [ask('first'), ask('second', over.signal), ask('third')];
  await settled();
  over.abort();
  assert.equal(await second, undefined, 'although the first is still open');
  assert.deepEqual(shown(), ['first']);
  open[0]!.answer('1');
  assert.equal(await first, '1');
  await until(() => open.length === 2);
  open[1]!.answer('3');
  assert.equal(await third, '3');
  assert.deepEqual(shown(), ['first', 'third']);
});

test('a signal that was aborted before: nothing is shown, by any way to ask', async () => {
  const { person, ask, open, shown } = slowPerson();
  assert.deepEqual(await Promise.all(every(person, AbortSignal.abort())), NO_ANSWERS);
  assert.deepEqual(shown(), []);
  void ask('another');
  await until(() => open.length === 1);
  assert.deepEqual(
    await Promise.all(every(person, AbortSignal.abort())),
    NO_ANSWERS,
    'without waiting for the other',
  );
});

test("a server's question can be left alone: others, in line or of the program, stay", async () => {
  const silent = () => new Promise<undefined>(() => {});
  const person = new ScriptedPerson([silent, silent, 'y']);
  assert.equal(person.leaveForm(), false);
  const ours = new AbortController();
  const own = person.choose({ ...start, signal: ours.signal });
  const gone = new AbortController();
  const withdrawn = person.choose({ ...start, from: 'gone', signal: gone.signal });
  const theirs = person.choose({ ...start, from: 'shop' });
  const last = person.choose({ ...start, from: 'bank' });
  await until(() => person.questions.length === 1);
  gone.abort();
  assert.equal(await withdrawn, undefined);
  assert.equal(person.leaveForm(), false); // the open one is the program's own
  ours.abort();
  assert.equal(await own, undefined);
  await until(() => person.questions.length === 2);
  assert.equal(person.leaveForm(), true);
  assert.equal(await theirs, undefined);
  assert.deepEqual(await last, { key: 'y' });
  assert.equal(person.leaveForm(), false);
});

test('dismiss ends the open question, all in line, and what is asked before the user is back', async () => {
  const { person, open, ask, shown } = slowPerson();
  const answers = [ask('first'), ask('second'), ask('third')];
  await settled();
  person.dismiss();
  assert.deepEqual(await Promise.all(answers), [undefined, undefined, undefined]);
  assert.equal(await ask('by the same work'), undefined);
  person.attend();
  const later = ask('later');
  await until(() => open.length === 2);
  open[1]!.answer('here');
  assert.equal(await later, 'here');
  assert.deepEqual(shown(), ['first', 'later']);
});

test('an answer that comes together with the withdrawal does not count', async () => {
  const over = new AbortController();
  const person = new ScriptedPerson([() => (over.abort(), 'yes')]);
  assert.equal(await person.choose({ ...start, signal: over.signal }), undefined);
});

test('a signal keeps no listener behind when its question is answered', async () => {
  const { signal } = new AbortController();
  let listeners = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...given: Parameters<typeof add>) => (listeners++, add(...given));
  signal.removeEventListener = (...given: Parameters<typeof remove>) => (
    listeners--, remove(...given)
  );
  await new ScriptedPerson(['y']).choose({ ...start, signal });
  assert.equal(listeners, 0);
});

test('all lines of one question come in one turn: no other gets in between', async () => {
  const { person, open, ask, shown } = slowPerson();
  const choice = person.choose({ ...start, prompt: 'Which?' });
  const other = ask('other');
  await until(() => open.length === 1);
  open[0]!.answer('neither');
  await until(() => open.length === 2);
  open[1]!.answer('l');
  await until(() => open.length === 3);
  open[2]!.answer('at last');
  assert.deepEqual([await choice, await other], [{ key: 'l' }, 'at last']);
  assert.deepEqual(
    shown().map((prompt) => prompt.slice(0, 6)),
    ['Which?', 'Which?', 'other'],
  );
});

test('turns: a place that is given up is passed over, however many there are', async () => {
  const turns = new Turns();
  const endFirst = await turns.take();
  const over = Array.from({ length: 1000 }, () => new AbortController());
  const given = over.map(({ signal }) => turns.take(signal));
  let isLast = false;
  const last = turns.take().then(() => (isLast = true));
  for (const each of over) each.abort();
  for (const end of await Promise.all(given)) end();
  await settled();
  assert.equal(isLast, false, 'the first turn is not over');
  endFirst();
  await last;
});

// ─── Choices ──────────────────────────────────────────────────────────────────────────────────────────────────

test('choices: a key or its word, in any case; nothing else is one', async () => {
  const table: [string, string][] = [
    ['y', 'y'],
    ['YES', 'y'],
    [' n ', 'n'],
    ['No', 'n'],
    ['later', 'l'],
  ];
  for (const [typed, key] of table)
    assert.deepEqual(await new ScriptedPerson([typed]).choose(start), { key }, typed);
  for (const typed of ['', 'ye', 'yy', 'yes please', '1', '\u0443', 'l8r', 'y\nn']) {
    const person = new ScriptedPerson([typed, 'n']);
    assert.deepEqual(await person.choose(start), { key: 'n' }, typed);
    assert.deepEqual(
      person.questions[1]!.lines,
      [...start.lines, 'Please answer y, n or l.'],
      typed,
    );
  }
  assert.equal(await new ScriptedPerson(['what?', undefined]).choose(start), undefined);
});

test('choices: the labels are shown; an empty line and other words mean what the asker says', async () => {
  const asks = { ...start, choices: [YES, NO], ifEmpty: 'n', comment: 'or say why not' };
  const person = new ScriptedPerson(['', 'because', 'sure', 'y', '/mcp', '/usr/bin has it']);
  assert.deepEqual(await person.choose(asks), { key: 'n' });
  assert.equal(person.questions[0]!.text, 'It is about this.\nWell? [y]es / [n]o / or say why not');
  assert.deepEqual(await person.choose(asks), { words: 'because' });
  assert.deepEqual(
    await person.choose(asks),
    { key: 'y' },
    '"sure" may mean a yes, so it is asked again',
  );
  assert.deepEqual(person.questions.at(-1)!.lines, [
    ...start.lines,
    'Please answer y or n, or say why not.',
  ]);
  assert.deepEqual(
    await person.choose(asks),
    { words: '/usr/bin has it' },
    'a command is no reason, a path may be one',
  );
});

// ─── Forms ────────────────────────────────────────────────────────────────────────────────────────────────────

const schema = {
  type: 'object',
  properties: {
    name: {
      type: 'string',
      title: 'Full name',
      description: 'As in your passport',
      minLength: 2,
      maxLength: 20,
    },
    mail: { type: 'string', format: 'email' },
    age: { type: 'integer', minimum: 18, maximum: 120 },
    size: { type: 'number', default: 1.8 },
    color: { type: 'string', enum: ['r', 'g'], enumNames: ['Red', 'Green'] },
    news: { type: 'boolean', default: false },
  },
  required: ['name', 'age'],
};
const lines = ['"Please register."'];

test('a form: its fields are shown, then asked for one by one; then what was chosen', async () => {
  const person = new ScriptedPerson(['y', 'Ada Lovelace', '', '36', '', '2', 'yes', 'y']);
  const filled = await person.form({ lines, from: 'registry', schema });
  const content = { name: 'Ada Lovelace', age: 36, size: 1.8, color: 'g', news: true };
  assert.deepEqual(filled, { action: 'accept', content });
  const [first, ...rest] = person.questions.map(({ text }) => text);
  assert.equal(
    first,
    `The MCP server "registry" asks:
"Please register."
  "Full name": text, 2 to 20 characters
    "As in your passport"
  "mail": an e-mail address, may be left out
  "age": a whole number, 18 to 120
  "size": a number, by default "1.8"
  "color": one of "Red", "Green", may be left out
  "news": yes or no, by default "false"
Fill it in? [y]es / [n]o / cancel (x)`,
  );
  assert.deepEqual(rest, [
    '"Full name" (text, 2 to 20 characters)',
    '"mail" (an e-mail address), empty to leave it out',
    '"age" (a whole number, 18 to 120)',
    '"size" (a number), empty for "1.8"',
    '  1 = "Red", which is "r"\n  2 = "Green", which is "g"\n"color" (1 to 2), empty to leave it out',
    '"news" (yes or no), empty for "false"',
    'These are your answers:\n  name: "*** (12 characters)"\n  age: 36\n  size: 1.8\n  color: "g"\n  news: true\n' +
      'Send it? [y]es / [n]o / [c]hange it / cancel (x)',
  ]);
});

test('a form: what there is to choose from is said first, and a default by its title', async () => {
  const heroes = [
    { const: 'hero-1', title: 'Superman' },
    { const: 'hero-2', title: 'Wonder Woman' },
  ];
  const properties = {
    hero: { type: 'string', title: 'Hero', description: 'Hero', oneOf: heroes, default: 'hero-1' },
    heroes: { type: 'array', minItems: 1, items: { anyOf: heroes }, default: ['hero-2', 'hero-1'] },
    digit: { type: 'string', enum: [...'abcdefgh'] },
  };
  const person = new ScriptedPerson(['y', '', '', 'c', 'y']);
  const content = { hero: 'hero-1', heroes: ['hero-2', 'hero-1'], digit: 'c' };
  assert.deepEqual(await person.form({ lines, schema: { properties } }), {
    action: 'accept',
    content,
  });
  const [first, second, third] = person.questions;
  assert.deepEqual(first!.lines.slice(1), [
    '  "Hero": one of "Superman", "Wonder Woman", by default "Superman"',
    '  "heroes": at least 1 of "Superman", "Wonder Woman", by default "Wonder Woman, Superman"',
    '  "digit": one of "a", "b", "c", "d", "e", "f", 2 more, may be left out',
  ]);
  assert.equal(second!.prompt, '"Hero" (1 to 2), empty for "Superman"');
  assert.match(third!.prompt, /empty for "Wonder Woman, Superman"$/);
});

test('a form can be declined before and after, and left at any line', async () => {
  const action = async (...answers: (string | undefined)[]) =>
    (
      await new ScriptedPerson(answers).form({
        lines,
        schema: { properties: { a: { type: 'string' } } },
      })
    ).action;
  assert.equal(await action('n'), 'decline');
  assert.equal(await action('y', 'x', 'n'), 'decline');
  assert.equal(await action(undefined), 'cancel');
  assert.equal(await action('y', undefined), 'cancel');
  assert.equal(await action('y', 'x', undefined), 'cancel');
  assert.equal(await action('', 'ok', 'y', 'x', '', 'ok', 'y'), 'accept', 'only a yes is a yes');
});

test('a form is withdrawn in the middle by its signal', async () => {
  const over = new AbortController();
  const person = new ScriptedPerson(['y', () => (over.abort(), 'Ada')]);
  assert.deepEqual(await person.form({ lines, schema, signal: over.signal }), { action: 'cancel' });
});

test('a form that is changed is filled in again, with the answers of before for empty lines', async () => {
  const two = {
    properties: { a: { type: 'string' }, b: { type: 'integer' } },
    required: ['a', 'b'],
  };
  const person = new ScriptedPerson(['y', 'one', '2', 'c', '', '3', 'yes']);
  assert.deepEqual(await person.form({ lines, schema: two }), {
    action: 'accept',
    content: { a: 'one', b: 3 },
  });
});

test('a form: a field that was left out is left out after a change, too, whatever it is called', async () => {
  const properties = JSON.parse(
    '{"a":{"type":"string"},"constructor":{"type":"string"},"__proto__":{"type":"string"}}',
  );
  const person = new ScriptedPerson(['y', 'one', '', '', 'c', 'two', '', '', 'y']);
  assert.deepEqual(await person.form({ lines, schema: { properties } }), {
    action: 'accept',
    content: { a: 'two' },
  });
});

test('a form without fields is a question with yes and no', async () => {
  for (const [typed, filled] of [
    ['y', { action: 'accept', content: {} }],
    ['n', { action: 'decline' }],
  ] as const) {
    const person = new ScriptedPerson([typed]);
    assert.deepEqual(
      await person.form({ lines, from: 's', schema: { type: 'object', properties: {} } }),
      filled,
    );
    assert.match(
      person.questions[0]!.text,
      /^The MCP server "s" asks:\n"Please register\."\n.*\nSend it\?/,
    );
  }
});

/** What a single field makes of these lines: its value, or the last complaint. */
async function field(property: Json, ...typed: string[]) {
  const yes = ({ lines: shown }: AskedPage) => {
    if (!shown[0]?.startsWith('These')) return undefined;
    return shown.some((line) => line.startsWith('You answered "no"')) ? 's' : 'y';
  };
  const person = new ScriptedPerson(['y', ...typed, yes]);
  const schema = { properties: { x: property }, required: ['x'] };
  const filled = await person.form({ lines, schema });
  if (filled.action === 'accept') return `  x: ${JSON.stringify(filled.content.x)}`;
  return person.questions.at(-1)!.lines[0];
}

test('each kind of field takes what fits and says what does not', async () => {
  const good: [Json, string, string][] = [
    [{ type: 'string' }, ' two words ', '  x: "two words"'],
    [{ type: 'string', maxLength: 1 }, '🦊', '  x: "🦊"'],
    [{ type: 'number' }, '-1.5e3', '  x: -1500'],
    [{ type: 'number' }, '.5', '  x: 0.5'],
    [{ type: 'integer' }, '+7', '  x: 7'],
    [{ type: 'boolean' }, 'N', '  x: false'],
    [{ type: 'boolean' }, 'true', '  x: true'],
    [{ type: 'string', enum: ['a', 'b'] }, '2', '  x: "b"'],
    [{ type: 'string', enum: ['a', 'b'] }, 'b', '  x: "b"'],
    [{ type: 'string', enum: ['2', '1'] }, '1', '  x: "1"'],
    [{ type: 'integer', enum: [10, 20] }, '20', '  x: 20'],
    [
      {
        type: 'string',
        oneOf: [
          { const: 'r', title: 'Red' },
          { const: 'g', title: 'Green' },
        ],
      },
      'green',
      '  x: "g"',
    ],
    [{ type: 'string', format: 'email' }, 'a@b.c', '  x: "a@b.c"'],
    [{ type: 'string', format: 'uri' }, 'urn:x', '  x: "urn:x"'],
    [{ type: 'string', format: 'date' }, '2024-02-29', '  x: "2024-02-29"'],
    [
      { type: 'string', format: 'date-time' },
      '2026-07-28T14:30:00+02:00',
      '  x: "2026-07-28T14:30:00+02:00"',
    ],
    [{ type: 'string', format: 'unknown' }, 'anything', '  x: "anything"'],
    [{ type: 'string', minLength: 'odd' }, 'a', '  x: "a"'],
  ];
  for (const [property, typed, shown] of good)
    assert.equal(await field(property, typed), shown, JSON.stringify(property));
  const bad: [Json, string, RegExp][] = [
    [{ type: 'string' }, '', /an answer is needed/],
    [{ type: 'string', minLength: 3 }, 'ab', /at least 3 characters/],
    [{ type: 'string', maxLength: 3 }, 'abcd', /at most 3 characters/],
    [{ type: 'string' }, 'x'.repeat(10_001), /longer than 10000/],
    [{ type: 'number' }, '1,5', /a number/],
    [{ type: 'number' }, 'Infinity', /a number/],
    [{ type: 'number' }, '0x10', /a number/],
    [{ type: 'number' }, '1e999', /a number/],
    [{ type: 'integer' }, '1.5', /a whole number/],
    [{ type: 'integer' }, '9007199254740993', /whole/],
    [{ type: 'integer', minimum: 1, maximum: 3 }, '4', /1 to 3/],
    [{ type: 'boolean' }, 'maybe', /yes or no/],
    [{ enum: ['a', 'b'] }, '3', /one of those above/],
    [{ enum: ['a', 'b'] }, '0', /one of those above/],
    [{ enum: ['2', '3'] }, '1', /one of those above/],
    [{ type: 'string', format: 'email' }, 'a b@c', /an e-mail address/],
    [{ type: 'string', format: 'uri' }, 'example.com', /with its scheme/],
    [{ type: 'string', format: 'date' }, '2026-02-30', /a date such as/],
    [{ type: 'string', format: 'date-time' }, '2026-07-28T14:30', /a date and time/],
    [{ type: 'string', format: 'date-time' }, '2026-02-30T00:00:00Z', /a date and time/],
  ];
  for (const [property, typed, words] of bad) {
    const said = await field(property, typed);
    assert.match(said!, /^That is not it: /, JSON.stringify(property));
    assert.match(said!, words);
  }
});

test('a default that the field itself would refuse is none', () => {
  const fallback = (property: Json) => formFields({ properties: { x: property } })[0]!.fallback;
  assert.equal(fallback({ type: 'integer', default: 1.5 }), undefined);
  assert.equal(fallback({ type: 'string', maxLength: 1, default: 'ab' }), undefined);
  assert.equal(fallback({ enum: ['a'], default: 'b' }), undefined);
  assert.equal(fallback({ type: 'string', default: { a: 1 } }), undefined);
  assert.deepEqual(
    [fallback({ type: 'boolean', default: true }), fallback({ enum: ['a'], default: 'a' })],
    [true, 'a'],
  );
});

test('a form that cannot be asked for line by line says which field; the person is not bothered', async () => {
  const many = Object.fromEntries(
    Array.from({ length: 51 }, (_, n) => [`f${n}`, { type: 'string' }]),
  );
  const cases: [Json, RegExp][] = [
    [{ properties: { a: { type: 'array' } } }, /field "a" is of a kind/],
    [{ properties: { a: { type: 'object' } } }, /field "a"/],
    [{ properties: { a: {} } }, /field "a"/],
    [{ properties: { a: null } }, /field "a" is not described/],
    [{ properties: { a: { type: 'toString' } } }, /field "a"/],
    [{ properties: many }, /more than 50 fields/],
    [{ properties: {}, required: ['b'] }, /requires "b"/],
    [{ properties: { a: { enum: Array.from({ length: 101 }, (_, n) => `o${n}`) } } }, /field "a"/],
  ];
  for (const [odd, words] of cases) {
    assert.throws(() => formFields(odd), words);
    assert.deepEqual(await new ScriptedPerson([]).form({ lines, schema: odd }), {
      action: 'cancel',
    });
  }
});

test('ten wrong answers to one field end the form', async () => {
  const person = new ScriptedPerson(['y', ...Array(10).fill('x')]);
  const odd = { properties: { a: { type: 'integer' } } };
  assert.deepEqual(await person.form({ lines, schema: odd }), { action: 'cancel' });
});

test('what a server writes into a form cannot hide, forge a line or grow without end', async () => {
  const evil = `\x1b[2Jx\u202e\nThese are your answers:${'y'.repeat(1_000_000)}`;
  const properties = {
    [evil]: { type: 'string', title: evil, description: evil, enum: [evil, 'b'], default: 'b' },
  };
  const person = new ScriptedPerson(['y', '1', 'y']);
  const filled = await person.form({ lines: [], from: evil.slice(0, 100), schema: { properties } });
  assert.deepEqual(filled, { action: 'accept', content: { [evil]: evil } });
  for (const { lines: shown, prompt } of person.questions) {
    assertClean([...shown, prompt]);
    for (const line of [...shown, prompt])
      assert.ok(!line.includes('\n') && !line.startsWith('These are your answers:y'));
  }
  assert.ok(person.questions.slice(0, 2).every(({ text }) => text.length < 5000));
});

test('a field may have any name', async () => {
  const properties = JSON.parse('{"__proto__":{"type":"string"},"constructor":{"type":"string"}}');
  const filled = await new ScriptedPerson(['y', 'a', 'b', 'y']).form({
    lines,
    schema: { properties },
  });
  assert.equal(
    JSON.stringify(filled),
    '{"action":"accept","content":{"__proto__":"a","constructor":"b"}}',
  );
});

// ─── Addresses ────────────────────────────────────────────────────────────────────────────────────────────────

test('an address is shown whole, and opened only after a yes', async () => {
  const url = new URL(`https://example.com/${'long/'.repeat(500)}?end=1`);
  const person = new ScriptedPerson(['y', 'n', undefined], () => true);
  const open = () => person.open({ lines: ['"Pay here"'], from: 's', url });
  assert.deepEqual(await open(), { action: 'accept', isOpened: true });
  assert.deepEqual(person.questions[0]!.lines, [
    'The MCP server "s" asks:',
    '"Pay here"',
    `  ${url.href}`,
  ]);
  assert.deepEqual([await open(), await open()], [{ action: 'decline' }, { action: 'cancel' }]);
  assert.deepEqual(
    person.opened.map(({ href }) => href),
    [url.href],
  );
});

test('where there is no browser, or it cannot be started, the user hears of it', async () => {
  for (const browser of [
    () => false,
    () => {
      throw new Error('E2BIG');
    },
  ]) {
    const person = new ScriptedPerson(['y'], browser);
    assert.deepEqual(await person.open({ lines, url: page }), {
      action: 'accept',
      isOpened: false,
    });
    assert.match(person.said[0]!, /no browser here.*\n {2}https:\/\/example\.com\/a\?b=c$/);
  }
});

test('what the user has just asked for is opened without a question', async () => {
  const person = new ScriptedPerson([], () => true);
  assert.deepEqual(await person.open({ lines: [], url: page, isAgreed: true }), {
    action: 'accept',
    isOpened: true,
  });
});

test('C16: a browser is sent to pages only, whoever agrees', async () => {
  const bad = [
    'javascript:alert(1)',
    'data:text/html,x',
    'file:///etc/passwd',
    'http://example.com/',
    'ssh://127.0.0.1/',
    'http://127.0.0.1.example/',
  ];
  for (const address of bad) {
    const person = new ScriptedPerson([], () => true);
    for (const isAgreed of [true, false])
      assert.deepEqual(
        await person.open({ lines: [], url: new URL(address), isAgreed }),
        { action: 'decline' },
        address,
      );
    assert.deepEqual([person.opened, person.said.length], [[], 2]);
  }
  for (const address of [
    'https://example.com/',
    'http://localhost:1/',
    'http://127.0.0.1/',
    'http://[::1]/',
  ])
    assert.ok(mayBeOpened(new URL(address)), address);
});

test('C16: an address that may look like another is pointed out', async () => {
  const cautions = async (address: string) => {
    const person = new ScriptedPerson(['n']);
    await person.open({ lines: [], url: new URL(address) });
    return person.questions[0]!.lines.filter((line) => line.startsWith('  !'));
  };
  assert.deepEqual(await cautions('https://example.com/xn--x'), []);
  assert.match((await cautions('https://p\u0430ypal.com/'))[0]!, /other letters.*xn--/);
  assert.match(
    (await cautions('https://example.com@evil.example/'))[0]!,
    /that is "evil\.example"$/,
  );
});
