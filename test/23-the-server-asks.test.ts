// Chapter 23: what a server may ask of us, in both eras from one table.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, test } from 'node:test';
import { problemsFound, problemsWith } from '../chapters/23-the-server-asks/schema.ts';
import { formFields } from '../chapters/17-the-gate/form.ts';
import {
  nobody,
  ScriptedPerson,
  type PersonAnswer,
  type Person,
} from '../chapters/17-the-gate/person.ts';
import { Masker } from '../chapters/17-the-gate/safe-text.ts';
import type { ElicitationOptions } from '../chapters/23-the-server-asks/elicitation.ts';
import { sampling } from '../chapters/23-the-server-asks/sampling.ts';
import type { Model } from '../agent.ts';
import type { Json } from '../mcp.ts';
import { assertClean } from './help/agent-with-gate.ts';
import { asker, at, connected, echo, ERAS, form, often } from './help/asking-server.ts';
import { cleanUp, later, open, rejection } from './help/basics.ts';
import { SwappablePerson } from './help/swappable-person.ts';

afterEach(cleanUp);

// ─── Every kind of field × good, bad, empty, default, decline, cancel ────────────────────────────

const MOMENTS = [
  { const: 'am', title: 'Morning' },
  { const: 'pm', title: 'Afternoon' },
];

/** A kind of field: what is typed for it, what is wrong and asked for again, and what it is sent as. Each
 *  row is six cases: good, bad, empty, by default, declined, cancelled. */
const KINDS: [
  name: string,
  property: Json,
  good: [string, unknown],
  bad: string[],
  byDefault: unknown,
][] = [
  [
    'text',
    { type: 'string', minLength: 2, maxLength: 5 },
    ['Graz', 'Graz'],
    ['G', 'Klagenfurt'],
    'Linz',
  ],
  [
    'an e-mail address',
    { type: 'string', format: 'email' },
    ['me@example.com', 'me@example.com'],
    ['me'],
    'you@example.com',
  ],
  [
    'an address',
    { type: 'string', format: 'uri' },
    ['https://example.com/~me', 'https://example.com/~me'],
    ['example.com'],
    'https://example.org',
  ],
  [
    'a date',
    { type: 'string', format: 'date' },
    ['2026-02-28', '2026-02-28'],
    ['2026-02-30', 'today'],
    '2026-01-01',
  ],
  [
    'a time',
    { type: 'string', format: 'date-time' },
    ['2026-02-28T12:00:00Z', '2026-02-28T12:00:00Z'],
    ['2026-02-28', 'noon'],
    '2026-01-01T00:00:00Z',
  ],
  ['a pattern', { type: 'string', pattern: '^[A-Z]+$' }, ['ABC', 'ABC'], ['abc'], 'XYZ'],
  [
    'a whole number',
    { type: 'integer', minimum: 0, maximum: 90 },
    ['7', 7],
    ['4.5', '0x10', '91', '-1', 'x'],
    3,
  ],
  ['a number', { type: 'number' }, ['1.5', 1.5], ['1e999', 'NaN', 'x'], 2.5],
  ['yes or no', { type: 'boolean' }, ['y', true], ['maybe'], true],
  ['one of', { type: 'string', enum: ['graz', 'linz'] }, ['2', 'linz'], ['wien', '3'], 'graz'],
  ['one of, titled', { type: 'string', oneOf: MOMENTS }, ['afternoon', 'pm'], ['evening'], 'am'],
  [
    'one of, with names beside it',
    { type: 'string', enum: ['1', '2'], enumNames: ['One', 'Two'] },
    ['Two', '2'],
    ['Three'],
    '1',
  ],
  [
    'some of',
    { type: 'array', items: { type: 'string', enum: ['a', 'b', 'c'] }, minItems: 1, maxItems: 2 },
    ['1,3', ['a', 'c']],
    ['1 2 3', '4', 'all', 'none'],
    ['b'],
  ],
  [
    'some of, titled',
    { type: 'array', items: { anyOf: MOMENTS } },
    ['Morning, Afternoon', ['am', 'pm']],
    ['night'],
    ['pm'],
  ],
];
const accepted = (...sent: unknown[]) => ({
  action: 'accept',
  content: sent.length === 0 ? {} : { field: sent[0] },
});
const DECLINED = { action: 'decline' };
const CANCELLED = { action: 'cancel' };

/** 14 kinds × 6. What is typed, line by line, and what is sent. */
const CASES = KINDS.flatMap(
  ([kind, property, [typed, value], bad, byDefault]): [
    name: string,
    property: Json,
    typed: PersonAnswer[],
    sent: Json,
  ][] => [
    [`${kind}: good`, property, ['y', typed, 'y'], accepted(value)],
    [`${kind}: bad`, property, ['y', ...bad, typed, 'y'], accepted(value)],
    [`${kind}: empty`, property, ['y', '', 'y'], accepted()], // never false, never ""
    [
      `${kind}: by default`,
      { ...property, default: byDefault },
      ['y', '', 'y'],
      accepted(byDefault),
    ],
    [`${kind}: declined`, property, ['n'], DECLINED],
    [`${kind}: cancelled`, property, ['y', undefined], CANCELLED],
  ],
);
/** And what only some kinds know. */
const MORE: typeof CASES = [
  [
    'one of, by its name',
    { type: 'string', enum: ['graz', 'linz'] },
    ['y', 'graz', 'y'],
    accepted('graz'),
  ],
  [
    'some of, by name',
    { type: 'array', items: { type: 'string', enum: ['a', 'b', 'c'] } },
    ['y', 'b a', 'y'],
    accepted(['a', 'b']),
  ],
  [
    'some of, all',
    { type: 'array', items: { anyOf: MOMENTS } },
    ['y', 'all', 'y'],
    accepted(['am', 'pm']),
  ],
  ['some of, none', { type: 'array', items: { anyOf: MOMENTS } }, ['y', 'none', 'y'], accepted([])],
  ['declined at the last look', { type: 'string' }, ['y', 'Graz', 'n'], DECLINED],
  ['cancelled at the last look', { type: 'string' }, ['y', 'Graz', 'x'], CANCELLED],
];

for (const era of ERAS) {
  test(`every kind of field, good, bad, empty, by default, declined and cancelled, in the ${era} era`, async () => {
    const stage = new SwappablePerson();
    const { ask, sent } = await connected(era, stage, often);
    assert.ok(CASES.length >= 40);
    for (const [name, property, typed, answer] of [...CASES, ...MORE]) {
      stage.actor = new ScriptedPerson(typed);
      const before = sent().length;
      assert.deepEqual(await ask('elicitation/create', form({ field: property })), answer, name);
      assert.deepEqual(sent().slice(before), [answer], name); // one answer, and this
      const asked = stage.actor.questions.length;
      assert.equal(asked, typed.length, `${name}: each line was wanted, and no more`);
    }
  });

  test(`a form is about a server and its call; it may be declined, left, changed and be a message alone, in the ${era} era`, async () => {
    const stage = new SwappablePerson();
    const { ask } = await connected(era, stage, often);
    const act = async (answers: PersonAnswer[], params: Json) => {
      stage.actor = new ScriptedPerson(answers);
      return ask('elicitation/create', params);
    };
    const parcel = form({ city: { type: 'string' }, floor: { type: 'integer', default: 3 } }, [
      'city',
    ]);
    assert.deepEqual(await act(['y', '', 'Graz', '', 'y'], parcel), {
      action: 'accept',
      content: { city: 'Graz', floor: 3 },
    });
    const [first] = stage.actor.questions;
    assert.match(
      first!.text,
      /^The MCP server "demo" asks:\nwhile it runs "ask":\n  │ Where shall the parcel go\?\n/,
    );
    assert.deepEqual(await act(['y', 'Graz', '5', 'c', 'Linz', '', 'y'], parcel), {
      action: 'accept',
      content: { city: 'Linz', floor: 5 },
    });
    assert.deepEqual(await act(['y', 'Graz', '5', 'n'], parcel), { action: 'decline' });
    assert.deepEqual(await act(['y', 'Graz', undefined], parcel), { action: 'cancel' });
    const bare = {
      message: 'Delete 3 files?',
      requestedSchema: { type: 'object', properties: {} },
    };
    assert.deepEqual(await act(['y'], bare), { action: 'accept', content: {} });
    assert.deepEqual(await act(['n'], bare), { action: 'decline' });
    assert.deepEqual(await act(['y'], { message: 'Without a schema' }), {
      action: 'accept',
      content: {},
    });
  });

  test(`an answer that reads like a no is offered as one, in the ${era} era: some servers go ahead with any answer`, async () => {
    const stage = new SwappablePerson();
    const { ask } = await connected(era, stage, often);
    const decision = {
      type: 'string',
      oneOf: [
        { const: 'approve', title: 'Approve' },
        { const: 'reject', title: 'Reject it' },
      ],
    };
    const confirm = {
      type: 'string',
      enum: ['Yes', 'No'],
      enumNames: ['Yes, I confirm', 'No, I do not confirm'],
    };
    for (const [property, typed] of [
      [decision, '2'],
      [confirm, 'No'],
      [{ type: 'boolean' }, 'n'],
    ] as const) {
      stage.actor = new ScriptedPerson(['y', typed, '']); // an empty line takes what is offered
      assert.deepEqual(await ask('elicitation/create', form({ field: property })), {
        action: 'decline',
      });
      assert.match(stage.actor.questions.at(-1)!.text, /may take any answer for your consent/);
    }
    stage.actor = new ScriptedPerson(['y', '2', 's']);
    assert.deepEqual(await ask('elicitation/create', form({ field: decision })), {
      action: 'accept',
      content: { field: 'reject' },
    });
  });
}

test('a schema that would take for ever, or that is none, is not judged; a form of 100,000 fields is refused at once', async () => {
  const values = Array.from({ length: 10_000 }, (_, n) => n);
  const list = {
    $defs: { e: { enum: values } },
    allOf: Array.from({ length: 2000 }, () => ({ $ref: '#/$defs/e' })),
  };
  const patterns = Array.from({ length: 2000 }, (_, n) => [`^(a+)+$|x${n}`, {}]);
  const names = { patternProperties: Object.fromEntries(patterns) };
  assert.equal((await problemsFound(list, 'x')).length, 100); // without an index, some minutes
  assert.deepEqual(await problemsFound(list, 7), []);
  const slow = problemsFound(names, { [`${'a'.repeat(40)}!`]: 1 });
  await assert.rejects(slow, /it takes longer than 5 s/);
  const odd = { toString: 1, valueOf: 1 };
  for (const schema of [{ type: [odd] }, { required: [odd] }])
    assert.deepEqual(problemsWith(schema, {}), []);
  assert.equal(problemsWith({ enum: [odd] }, 'x').length, 1);
  const fields = Array.from({ length: 100_000 }, (_, n) => [`f${n}`, { type: 'string' }]);
  const properties = Object.fromEntries(fields);
  assert.throws(
    () => formFields({ properties, required: Object.keys(properties) }),
    /more than 50 fields/,
  );
});

test('a question for what was not offered, or that cannot be asked, is refused with the reason', async () => {
  const { ask } = await connected('handshake', new ScriptedPerson());
  const refusals: [Json, RegExp][] = [
    [{ message: 'x', mode: 'dance' }, /not offered elicitation of mode "dance"/],
    [{ message: 'x', mode: 'url', url: 'no address' }, /not an address/],
    [{ message: 'x', requestedSchema: [] }, /not an object/],
    [form({ a: { type: 'object' } }), /"a" is of a kind that cannot be asked for/],
    [form({}, ['b']), /requires "b", which is not among its fields/],
  ];
  for (const [params, words] of refusals) {
    const { error } = await ask('elicitation/create', params);
    assert.equal(error.code, -32602);
    assert.match(error.message, words);
  }
});

test('a server that asks without end is declined, and that is told', async () => {
  const person = new ScriptedPerson(Array(5).fill('y'));
  const { ask, warnings } = await connected('handshake', person);
  const answers = await ask('elicitation/create', { message: 'And now?' }, { again: 7 });
  assert.deepEqual(
    answers.map(({ action }: Json) => action),
    [...Array(5).fill('accept'), 'decline', 'decline'],
  );
  assert.match(warnings[0]!, /"demo" asks too often/);
});

test('without a terminal forms are offered and left, with one line; addresses are not offered', async () => {
  const absent: Person = { ...nobody };
  const { ask, warnings, wire } = await connected('handshake', absent);
  const [, hello] = wire.find(([, { method }]) => method === 'initialize')!;
  assert.deepEqual(hello.params.capabilities, {
    elicitation: { form: {} },
    roots: { listChanged: true },
  });
  assert.deepEqual(await ask('elicitation/create', form({ a: { type: 'string' } })), {
    action: 'cancel',
  });
  assert.deepEqual(warnings, [
    'MCP server "demo" asks something, and there is no terminal to ask at',
  ]);
  assert.match(
    (await ask('elicitation/create', { mode: 'url', url: 'https://x.example' })).error.message,
    /not offered/,
  );
});

test('a library without a person offers neither forms nor sampling', async () => {
  const { wire, ask } = await connected('handshake', nobody, {}, { roots: false });
  const [, hello] = wire.find(([, { method }]) => method === 'initialize')!;
  assert.deepEqual(hello.params.capabilities, {});
  for (const method of ['elicitation/create', 'sampling/createMessage', 'roots/list'])
    assert.equal((await ask(method, {})).error.code, -32601, method);
});

// ─── Secrets ─────────────────────────────────────────────────────────────────────────────────────

test('a field that asks for a secret is warned of, and hidden while it is typed', async () => {
  const person = new ScriptedPerson(['y', '4711', 'Graz', 'y']);
  const { ask } = await connected('handshake', person);
  const answer = await ask(
    'elicitation/create',
    form({ pin: { type: 'string', title: 'Your PIN' }, city: { type: 'string' } }),
  );
  assert.deepEqual(answer, { action: 'accept', content: { pin: '4711', city: 'Graz' } });
  assert.match(person.questions[0]!.text, /! this looks like a secret/);
  assert.deepEqual(
    person.questions.map(({ isSecret = false }) => isSecret),
    [false, true, false, false],
  );
  assert.doesNotMatch(person.questions.at(-1)!.text, /4711/);
  assert.doesNotMatch(new Masker().json({ result: answer }), /4711|Graz/);
  for (const name of ['pin_to_top', 'token_count', 'keyboard', 'spin'])
    assert.equal(
      formFields({ properties: { [name]: { type: 'string' } } })[0]!.isSecret,
      false,
      name,
    );
  for (const name of [
    'password',
    'apiKey',
    'api_key',
    'access-token',
    'cardPin',
    'Your PIN',
    'cvv',
    'card number',
    'passphrase',
    'client_secret',
  ])
    assert.equal(
      formFields({ properties: { [name]: { type: 'string' } } })[0]!.isSecret,
      true,
      name,
    );
});

// ─── Addresses ───────────────────────────────────────────────────────────────────────────────────

for (const era of ERAS)
  test(`an address is shown whole, opened after a yes and by nobody else, in the ${era} era`, async () => {
    const back = era === 'modern' ? ['y'] : []; // the call is sent again when the user is back
    const stage = new SwappablePerson();
    const { ask } = await connected(era, stage, often);
    stage.actor = new ScriptedPerson(['y', ...back], () => true);
    const url = 'https://cal.example/connect?e=1#here';
    assert.deepEqual(await ask('elicitation/create', at(url, { elicitationId: 'e-1' })), {
      action: 'accept',
    });
    assert.deepEqual(stage.actor.opened.map(String), [url]);
    assert.ok(stage.actor.questions[0]!.text.includes(`\n  ${url}\n`));
    assert.match(stage.actor.questions[0]!.text, /it leads to "cal\.example"/);
    for (const [answer, action] of [
      ['n', 'decline'],
      [undefined, 'cancel'],
    ] as const) {
      stage.actor = new ScriptedPerson([answer]);
      assert.deepEqual(await ask('elicitation/create', at(url)), { action });
      assert.deepEqual(stage.actor.opened, []);
    }
  });

/** `undefined`: it is not even asked about. */
const HOSTILE: [url: string, words: RegExp | undefined][] = [
  ['javascript:alert(1)', undefined],
  ['file:///etc/passwd', undefined],
  ['data:text/html,x', undefined],
  ['http://evil.example/', undefined],
  ['ssh://host', undefined],
  ['vbscript:x', undefined],
  ['https://xn--80ak6aa92e.com/', /written in other letters/],
  ['https://аррӏе.com/', /written in other letters/],
  ['https://bank.example@evil.example/', /not where it leads[^]*"evil\.example"/],
  ['https://127.0.0.1/', /a number in place of a name/],
  ['https://2130706433/', /127\.0\.0\.1[^]*a number in place of a name/],
  ['http://localhost:8080/', /this machine[^]*not encrypted[^]*port 8080/],
  ['https://x.example:8443/', /unusual port 8443/],
  [`https://x.example/${'a'.repeat(3000)}`, /it has 30\d\d characters/],
  ['https://x.example/\u202Egnp.exe', /x\.example\/%E2%80%AEgnp\.exe/], // to be seen, and harmless
];

test('C16: hostile addresses are refused or warned of; none is opened, and none is fetched, in both eras', async () => {
  for (const era of ERAS) {
    let visits = 0;
    const page = createServer((_, response) => void (visits++, response.end()));
    await new Promise<void>((done) => page.listen(0, '127.0.0.1', done));
    later(() => page.close());
    const { port } = page.address() as AddressInfo;
    const own: (typeof HOSTILE)[number] = [
      `http://127.0.0.1:${port}/`,
      /a number in place of a name[^]*not encrypted/,
    ];
    const stage = new SwappablePerson();
    const { ask } = await connected(era, stage, often);
    assert.ok(HOSTILE.length >= 12);
    for (const [url, words] of [...HOSTILE, own]) {
      stage.actor = new ScriptedPerson(words ? ['n'] : [], () => true);
      assert.deepEqual(await ask('elicitation/create', at(url)), { action: 'decline' }, url);
      assert.deepEqual(stage.actor.opened, [], url);
      const whole = new URL(url).href;
      if (words) assert.match(stage.actor.questions[0]!.text, words, url);
      if (words)
        assert.ok(
          stage.actor.questions[0]!.text.includes(`\n  ${whole}\n`),
          `${url}: the whole of it is shown`,
        );
      else assert.match(stage.actor.said[0]!, /no browser is sent to/, url);
      assertClean(stage.actor.questions.map(({ text }) => text));
    }
    stage.actor = new ScriptedPerson(['y', 'y'], () => true); // also with consent: the page is the person's
    assert.deepEqual(await ask('elicitation/create', at(own[0])), { action: 'accept' });
    assert.deepEqual([stage.actor.opened.map(String), visits], [[own[0]], 0]);
  }
});

test('a call that wants a visit first (-32042) is made once more after it, and never in a loop', async () => {
  const elicitations = [
    at('https://cal.example/1', { elicitationId: 'e-1' }),
    at('https://cal.example/2', { elicitationId: 'e-2' }),
  ];
  const refuse = { code: -32042, message: 'Connect first', data: { elicitations } };
  const person = new ScriptedPerson(['y', 'y', 'y', 'y'], () => true);
  const { connection, wire } = await connected('handshake', person);
  const { text } = await connection.callTool('ask', { refuse });
  assert.ok(JSON.parse(text).seen);
  assert.deepEqual(person.opened.map(String), ['https://cal.example/1', 'https://cal.example/2']);
  assert.equal(wire.filter(([, { method }]) => method === 'tools/call').length, 2);

  for (const [answers, calls] of [
    [['n'], 1],
    [['y', 'c'], 1],
  ] as const) {
    const unwilling = new ScriptedPerson([...answers], () => true);
    const other = await connected('handshake', unwilling);
    const one = { ...refuse, data: { elicitations: elicitations.slice(0, 1) } };
    assert.match(
      (await rejection(other.connection.callTool('ask', { refuse: one }))).message,
      /Connect first/,
    );
    assert.equal(other.wire.filter(([, { method }]) => method === 'tools/call').length, calls);
  }
});

test('a notice that a page is done counts for a page that was opened, and once', async () => {
  const person = new ScriptedPerson(['y'], () => true);
  const { ask, connection } = await connected('handshake', person);
  const done = (elicitationId: string) =>
    ask('notifications/elicitation/complete', { elicitationId }, { notify: true });
  await done('e-9');
  await ask('elicitation/create', at('https://cal.example', { elicitationId: 'e-9' }));
  await done('e-9');
  await done('e-9');
  assert.deepEqual(person.said, ['"demo": the page is done']);
  await connection.close();
});

// ─── Hooks ───────────────────────────────────────────────────────────────────────────────────────

test('a function may answer before the person, and see and change the answer after', async () => {
  const seen: unknown[] = [];
  const hooks: ElicitationOptions['hooks'] = {
    before: async ({ message }) =>
      message === 'routine' ? { action: 'accept', content: { ok: true } } : undefined,
    after: async (_, answer) => {
      seen.push(answer);
      return answer.action === 'accept' ? undefined : { action: 'decline' };
    },
  };
  const person = new ScriptedPerson([undefined]);
  const { ask } = await connected('handshake', person, { hooks });
  const schema = { type: 'object', properties: { ok: { type: 'boolean' } } };
  assert.deepEqual(
    await ask('elicitation/create', { message: 'routine', requestedSchema: schema }),
    { action: 'accept', content: { ok: true } },
  );
  assert.deepEqual(await ask('elicitation/create', { message: 'odd', requestedSchema: schema }), {
    action: 'decline',
  });
  assert.deepEqual(seen, [{ action: 'accept', content: { ok: true } }, { action: 'cancel' }]);
});

test('what a hook answers is checked like any other answer', async () => {
  const hooks: ElicitationOptions['hooks'] = {
    before: async () => ({ action: 'accept', content: { n: 'three' } }),
  };
  const { ask, warnings } = await connected('handshake', nobody, { hooks });
  assert.deepEqual(await ask('elicitation/create', form({ n: { type: 'integer' } })), {
    action: 'cancel',
  });
  assert.match(warnings[0]!, /"n" should be an integer/);
});

// ─── Roots and sampling ──────────────────────────────────────────────────────────────────────────

test('roots are told in both eras, and changes where the era knows such a notice; "roots": false offers none', async () => {
  for (const era of ERAS) {
    const { ask, folders, connection, wire } = await connected(era, nobody);
    const list = [
      { uri: 'file:///tmp/one', name: 'one' },
      { uri: 'file:///tmp/two', name: 'two' },
    ];
    assert.deepEqual(folders.notes('demo'), []);
    assert.deepEqual(await ask('roots/list', {}), { roots: list });
    assert.deepEqual(folders.notes('demo'), ['it was told where you work: "/tmp/one", "/tmp/two"']);
    assert.deepEqual(folders.notes('another'), []);
    folders.changed();
    const told = era === 'handshake' ? 'initialize' : 'tools/call';
    const { params } = wire.find(([, { method }]) => method === told)![1];
    const offered =
      params.capabilities ?? params._meta['io.modelcontextprotocol/clientCapabilities'];
    assert.deepEqual(offered.roots, era === 'handshake' ? { listChanged: true } : {});
    const notices = wire.filter(
      ([, { method }]) => method === 'notifications/roots/list_changed',
    ).length;
    assert.equal(notices, era === 'handshake' ? 1 : 0);
    await connection.close();
    folders.changed(); // to nobody
    assert.deepEqual(folders.notes('demo'), []);
  }
});

const prompt = (text: string, more: Json = {}) => ({
  messages: [{ role: 'user', content: { type: 'text', text } }],
  maxTokens: 50,
  ...more,
});
const sampled = (text: string) => ({
  role: 'assistant',
  content: { type: 'text', text },
  model: 'echo',
  stopReason: 'endTurn',
});

for (const era of ERAS)
  test(`sampling: the prompt is shown, may be edited, refused, allowed for good; so is the answer, in the ${era} era`, async () => {
    const stage = new SwappablePerson();
    const { ask } = await connected(era, stage);
    const act = (answers: PersonAnswer[], params: Json) => {
      stage.actor = new ScriptedPerson(answers);
      return ask('sampling/createMessage', params);
    };
    assert.deepEqual(
      await act(['y', 'y'], prompt('2 + 2?', { systemPrompt: 'Be brief.' })),
      sampled('2 + 2? (50)'),
    );
    const [question, answer] = stage.actor.questions;
    assert.match(
      question!.text,
      /"demo" asks:[^]*"echo"[^]*50 tokens[^]*│ Be brief\.[^]*│ 2 \+ 2\?/,
    );
    assert.match(answer!.text, /│ 2 \+ 2\? \(50\)/);
    assert.deepEqual(
      await act(['e', 'mine', 'y', 'e', 'better', 'y'], prompt('theirs')),
      sampled('better'),
    );
    assert.match(stage.actor.questions[2]!.text, /│ mine/);
  });

test('sampling: the user begins and ends, whatever the server says; @azure/mcp sends one message, of the assistant', async () => {
  const stage = new SwappablePerson();
  const seen: string[] = [];
  const model: Model = {
    name: 'echo',
    async *query(request) {
      seen.push(
        request.turns.map((turn) => `${turn.role}: ${'text' in turn ? turn.text : ''}`).join(', '),
      );
      yield* echo.query(request);
    },
  };
  const { connection } = await open(asker('handshake'), {
    extensions: [sampling({ person: stage, model: () => model })],
  });
  for (const roles of [
    ['assistant'],
    ['assistant', 'user'],
    ['user', 'assistant', 'user'],
    ['user', 'assistant', 'assistant'],
  ]) {
    const messages = roles.map((role, n) => ({ role, content: { type: 'text', text: `${n}` } }));
    stage.actor = new ScriptedPerson(['y', 'y']);
    await connection.callTool('ask', {
      method: 'sampling/createMessage',
      params: { messages, maxTokens: 5 },
    });
  }
  assert.deepEqual(seen, [
    'user: 0',
    'user: 0\n1',
    'user: 0, assistant: 1, user: 2',
    'user: 0, assistant: 1, user: 2',
  ]);
});

test('C15: sampling is refused by a person with the code for that, and with tools, images, odd roles or too much of it at once', async () => {
  const stage = new SwappablePerson();
  const { ask } = await connected('handshake', stage);
  stage.actor = new ScriptedPerson(['n', 'y', 'd']);
  for (let n = 0; n < 2; n++)
    assert.equal((await ask('sampling/createMessage', prompt('x'))).error.code, -1);
  const image = { role: 'user', content: { type: 'image', data: '', mimeType: 'image/png' } };
  const sound = { role: 'user', content: { type: 'audio', data: '', mimeType: 'audio/wav' } };
  const refused: Json[] = [
    prompt('x', { tools: [] }),
    { messages: [image] },
    { messages: [sound] },
    { messages: [] },
    { messages: 'x' },
    prompt('x'.repeat(200_001)),
    { messages: [{ role: 'system', content: { type: 'text', text: 'C15' } }] },
  ];
  for (const params of refused)
    assert.equal((await ask('sampling/createMessage', params)).error.code, -32602);
  stage.actor = new ScriptedPerson(['y', 'y']);
  assert.equal(
    (await ask('sampling/createMessage', prompt('x', { maxTokens: 1e9 }))).content.text,
    'x (8192)',
  );
});
