// Chapter 15: the loop. Whatever happens, every call gets exactly one result, in its order, and the chat can go on.

import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { afterEach, test } from 'node:test';
import {
  Agent,
  repair,
  Scripted,
  type Model,
  type ModelEvent,
  type ModelRequest,
  type Turn,
} from '../agent.ts';
import { unlessAborted } from '../chapters/15-the-loop/unless-aborted.ts';
import type { Json } from '../mcp.ts';
import { cleanUp, folder, later, pause, rejection, run } from './help/basics.ts';
import { assertPaired, calls, prepareLoop, row, saying, shelf, yes } from './help/agent-alone.ts';
import { hear } from './help/model-server.ts';

afterEach(cleanUp);

const nothing = () => new Promise<never>(() => {});
/** An error as models throw it. */
const failure = (kind: string, message: string) => Object.assign(new Error(message), { kind });

// ─── Tools until text ───

test('an answer without calls ends the chat: text in pieces, and then once more as a whole', async () => {
  const { agent, events, of, recorded } = prepareLoop({
    script: ['A long answer, in several pieces.'],
  });
  assert.deepEqual(await agent.chat('hello'), {
    ending: 'done',
    text: 'A long answer, in several pieces.',
  });
  assert.equal(
    of('text')
      .map(({ text }) => text)
      .join(''),
    'A long answer, in several pieces.',
  );
  assert.ok(of('text').length > 1);
  assert.deepEqual(events.at(-1), {
    type: 'done',
    ending: 'done',
    text: 'A long answer, in several pieces.',
    turns: 1,
  });
  assert.deepEqual(agent.turns, [
    { role: 'user', text: 'hello' },
    { role: 'assistant', text: 'A long answer, in several pieces.', calls: [] },
  ]);
  assert.deepEqual(recorded, agent.turns);
});

test('calls are run and their results go back to the model, until it answers with text alone', async () => {
  const { agent, model, of, recorded } = prepareLoop({
    tools: shelf({ 'a.txt': 'alpha', 'b.txt': 'beta' }),
    script: [
      { text: 'Looking.', calls: [{ name: 'read', args: { path: 'a.txt' } }] },
      ...calls(['read', { path: 'b.txt' }]),
    ],
  });
  assert.deepEqual(await agent.chat('read both'), { ending: 'done', text: 'done' });
  assert.deepEqual(
    model.requests.map(({ turns }) => turns.length),
    [1, 3, 5],
  );
  const seen = model.requests[2]!.turns.flatMap((turn) =>
    turn.role === 'tools' ? turn.results.map(({ blocks }) => blocks) : [],
  );
  assert.deepEqual(seen, [[{ type: 'text', text: 'alpha' }], [{ type: 'text', text: 'beta' }]]);
  assert.deepEqual(
    of('tool_start').map(({ name, args }) => [name, args]),
    [
      ['read', { path: 'a.txt' }],
      ['read', { path: 'b.txt' }],
    ],
  );
  assert.deepEqual(
    of('tool_end').map(({ outcome, text }) => [outcome, text]),
    [
      ['worked', 'alpha'],
      ['worked', 'beta'],
    ],
  );
  assert.deepEqual(recorded, agent.turns);
  assertPaired(agent.turns);
});

test('the model gets the rows of the table, and a short system prompt with the folder at its end', async () => {
  const [tools, cwd] = [shelf(), folder()];
  const { agent, model } = prepareLoop({ script: ['hi'], tools, cwd });
  await agent.chat('hello');
  const { system, tools: offered } = model.requests[0]!;
  assert.deepEqual(
    offered,
    tools.map(({ definition }) => definition),
  );
  assert.ok(system.length < 1500, `${system.length}`);
  assert.match(system.split('\n').at(-1)!, new RegExp(`^The folder is "${cwd}"\\. Today is`));
});

test('an empty answer is legal, but no turn: a service would refuse the next request because of it', async () => {
  const { agent } = prepareLoop({ script: ['', 'hi'] });
  assert.deepEqual(await agent.chat('1'), { ending: 'done', text: '' });
  assert.deepEqual(agent.turns, [{ role: 'user', text: '1' }]);
});

test('usage is told and added up', async () => {
  const usage = { input: 10, output: 2, cached: 4 };
  const { agent, of } = prepareLoop({
    script: [
      { text: 'a', usage },
      { text: 'b', usage },
    ],
  });
  await agent.chat('1');
  await agent.chat('2');
  assert.deepEqual(agent.usage, { input: 20, output: 4, cached: 8 });
  assert.equal(of('usage').length, 2);
});

// ─── Exactly one result per call ───

test('worked, failed, thrown, denied, unknown, unreadable: each gets one result, in order, and the turn goes on', async () => {
  const all = [
    ['fine', { x: 1 }],
    ['tells', {}],
    ['throws', {}],
    ['throws-text', {}],
    ['secret', {}],
    ['nobody', {}],
  ].map(([name, args], n) => ({ id: `id${n}`, name: name as string, args: args as Json }));
  const unreadable = { id: 'id6', name: 'fine', unreadable: 'Unexpected end of JSON input' };
  const model: Model = {
    name: 'by hand',
    async *query({ turns }): AsyncGenerator<ModelEvent> {
      const isFirst = turns.length === 1;
      yield {
        type: 'end',
        turn: {
          role: 'assistant',
          text: isFirst ? '' : 'done',
          calls: isFirst ? [...all, unreadable] : [],
        },
        stop: 'tools',
      };
    },
  };
  const { agent, results, outcomes, of } = prepareLoop({
    model,
    gate: async ({ definition: { name } }) =>
      name === 'secret' ? { allowed: false, reason: 'Not this one.' } : { allowed: true },
    tools: [
      row('fine', saying('fine'), {
        definition: {
          name: 'fine',
          description: '',
          inputSchema: { type: 'object', required: ['x'] },
        },
      }),
      row('tells', async () => ({ blocks: [{ type: 'text', text: 'it broke' }], isError: true })),
      row('throws', () => Promise.reject(new Error('a bug'))),
      row('throws-text', () => {
        throw 'just words';
      }),
      row('secret', saying('never seen')),
    ],
  });
  assert.deepEqual(await agent.chat('go'), { ending: 'done', text: 'done' });
  assert.deepEqual(outcomes(), [
    'worked',
    'failed',
    'failed',
    'failed',
    'denied',
    'unknown',
    'unreadable',
  ]);
  assert.deepEqual(
    results().map(({ id, isError }) => [id, isError]),
    [
      ['id0', false],
      ['id1', true],
      ['id2', true],
      ['id3', true],
      ['id4', true],
      ['id5', true],
      ['id6', true],
    ],
  );
  assert.deepEqual(
    results()
      .slice(0, 5)
      .map(({ text }) => text),
    ['fine', 'it broke', 'a bug', 'just words', 'Not this one.'],
  );
  assert.equal(results()[5]!.text, 'There is no tool called "nobody".');
  assert.equal(
    results()[6]!.text,
    'Unexpected end of JSON input\nThey must fit {"type":"object","required":["x"]}',
  );
  assert.deepEqual(
    of('tool_start').map(({ id }) => id),
    of('tool_end').map(({ id }) => id),
  );
  assertPaired(agent.turns);
});

test('a tool named like something every object has is unknown, not a crash', async () => {
  const names = ['__proto__', 'constructor', 'toString', ''];
  const { agent, outcomes } = prepareLoop({
    tools: shelf(),
    script: calls(...names.map((name): [string, Json] => [name, {}])),
  });
  assert.equal((await agent.chat('go')).ending, 'done');
  assert.deepEqual(
    outcomes(),
    names.map(() => 'unknown'),
  );
});

test('without a gate only what reads is allowed', async () => {
  const texts: Record<string, string> = { 'a.txt': 'a' };
  const { agent, outcomes } = prepareLoop({
    tools: shelf(texts),
    script: calls(['read', { path: 'a.txt' }], ['write', { path: 'b.txt', content: 'b' }]),
  });
  await agent.chat('go');
  assert.deepEqual(outcomes(), ['worked', 'denied']);
  assert.deepEqual(texts, { 'a.txt': 'a' });
});

test('without a gate, a tool that says that it only reads, but not what, is refused', async () => {
  let ran = false;
  const look = row('look', () => ((ran = true), saying('seen')()), { readOnly: true });
  const sly = row('sly', look.run, {
    readOnly: true,
    touches: () => ({ kind: 'shell', command: 'true' }),
  });
  const { agent, outcomes, results } = prepareLoop({
    tools: [look, sly],
    script: calls(['look', {}], ['sly', {}]),
  });
  await agent.chat('go');
  assert.deepEqual([outcomes(), ran], [['denied', 'denied'], false]);
  assert.match(results()[0]!.text, /^Only reading is allowed/);
});

test('an answer that was cut off by its length runs none of its calls', async () => {
  const texts = {};
  const { agent, outcomes, results } = prepareLoop({
    tools: shelf(texts),
    gate: yes,
    script: [
      {
        calls: [
          { name: 'write', args: { path: 'a', content: 'half' } },
          { name: 'read', args: { path: 'a' } },
        ],
        stop: 'length',
      },
      'shorter',
    ],
  });
  assert.equal((await agent.chat('go')).ending, 'done');
  assert.deepEqual(outcomes(), ['unreadable', 'unreadable']);
  assert.match(results()[0]!.text, /cut off/);
  assert.deepEqual(texts, {});
});

test('a text that was cut off ends the chat as such, and so does a refusal', async () => {
  const { agent, of } = prepareLoop({
    script: [
      { text: 'and then', stop: 'length' },
      { text: 'No.', stop: 'refusal' },
      { text: 'x', stop: 'strange' },
    ],
  });
  assert.deepEqual(await agent.chat('1'), { ending: 'length', text: 'and then' });
  assert.deepEqual(await agent.chat('2'), { ending: 'refusal', text: 'No.' });
  assert.deepEqual(await agent.chat('3'), { ending: 'done', text: 'x' });
  assert.deepEqual(
    of('done').map(({ ending }) => ending),
    ['length', 'refusal', 'done'],
  );
});

test('two calls with one id get two results', async () => {
  const { agent, results } = prepareLoop({
    tools: shelf({ a: '1', b: '2' }),
    script: [
      {
        calls: [
          { id: 'same', name: 'read', args: { path: 'a' } },
          { id: 'same', name: 'read', args: { path: 'b' } },
        ],
      },
      'done',
    ],
  });
  await agent.chat('go');
  assert.deepEqual(
    results().map(({ id, text }) => [id, text]),
    [
      ['same', '1'],
      ['same', '2'],
    ],
  );
  assertPaired(agent.turns);
});

test('numbers and truths that come as text are read where the schema leaves no doubt', async () => {
  const seen: unknown[] = [];
  const properties = {
    n: { type: 'integer' },
    x: { type: 'number' },
    b: { type: 'boolean' },
    s: { type: 'string' },
    u: {},
    z: null,
  };
  const odd = row('odd', async (args) => (seen.push(args), { blocks: [], isError: false }), {
    definition: { name: 'odd', description: '', inputSchema: { type: 'object', properties } },
  });
  const args = JSON.parse(
    '{"n":"3","x":"-1.5","b":"true","s":"4","u":"5","z":"6","extra":"7","n2":"","__proto__":{"polluted":true}}',
  );
  const { agent } = prepareLoop({
    tools: [odd],
    gate: yes,
    script: calls(['odd', args], ['odd', { n: '3 apples', x: 'three', b: 'yes' }]),
  });
  await agent.chat('go');
  assert.deepEqual(
    JSON.stringify(seen[0]),
    '{"n":3,"x":-1.5,"b":true,"s":"4","u":"5","z":"6","extra":"7","n2":"","__proto__":{"polluted":true}}',
  );
  // A doubt is passed on as it is; since chapter 28 not even that.
  assert.deepEqual(seen[1] ?? { n: '3 apples', x: 'three', b: 'yes' }, {
    n: '3 apples',
    x: 'three',
    b: 'yes',
  });
  assert.equal((seen[0] as any).polluted, undefined);
  assert.equal(({} as any).polluted, undefined);
});

// ─── Side by side ───

test('calls run side by side if all of them only read', async () => {
  const waiting: (() => void)[] = [];
  const meet = row(
    'meet',
    () =>
      new Promise((done) => {
        waiting.push(() => done({ blocks: [], isError: false }));
        if (waiting.length === 2) waiting.reverse().forEach((go) => go()); // the second ends first
      }),
    { readOnly: true },
  );
  const { agent, results } = prepareLoop({
    tools: [meet],
    gate: yes,
    script: [
      {
        calls: [
          { id: '1', name: 'meet', args: {} },
          { id: '2', name: 'meet', args: {} },
        ],
      },
      'done',
    ],
  });
  await agent.chat('go'); // one after the other, the first would wait for ever
  assert.deepEqual(
    results().map(({ id }) => id),
    ['1', '2'],
  );
});

test('one that may write, or one that is unknown, and they run one after the other', async () => {
  const order: string[] = [];
  const slow = (readOnly: boolean) =>
    row(
      'slow',
      async () => {
        order.push('begin');
        await pause(50);
        order.push('end');
        return { blocks: [], isError: false };
      },
      { readOnly },
    );
  const writing = prepareLoop({
    tools: [slow(false), ...shelf({ a: '' })],
    gate: yes,
    script: calls(['slow', {}], ['slow', {}], ['read', { path: 'a' }]),
  });
  await writing.agent.chat('go');
  assert.deepEqual(order.splice(0), ['begin', 'end', 'begin', 'end']);
  const mixed = prepareLoop({
    tools: [slow(true)],
    gate: yes,
    script: calls(['slow', {}], ['nobody', {}], ['slow', {}]),
  });
  await mixed.agent.chat('go');
  assert.deepEqual(order, ['begin', 'end', 'begin', 'end']);
});

// ─── Limits ───

test('the turn limit ends a model that never stops, after its last results', async () => {
  const endless = Array.from({ length: 10 }, () => ({
    calls: [{ name: 'read', args: { path: 'a' } }],
  }));
  const { agent, events } = prepareLoop({ maxTurns: 3, tools: shelf({ a: 'x' }), script: endless });
  assert.equal((await agent.chat('go')).ending, 'turns');
  assert.deepEqual(events.at(-1), { type: 'done', ending: 'turns', text: '', turns: 3 });
  assert.equal(agent.turns.length, 7);
  assertPaired(agent.turns);
});

test('the time limit ends a model that says nothing more, and a tool that does not end', async () => {
  const alive = setInterval(() => {}, 1000); // as a terminal or a socket would: the limit alone keeps no program running
  later(() => clearInterval(alive));
  const untilStopped = ({ signal }: { signal: AbortSignal }) =>
    new Promise<never>((_, no) => signal.addEventListener('abort', () => no(signal.reason)));
  const silent = prepareLoop({ maxMs: 300, script: [untilStopped] });
  assert.equal((await silent.agent.chat('go')).ending, 'time');
  const busy = prepareLoop({
    maxMs: 500,
    tools: [row('wait', (_, context) => untilStopped(context))],
    gate: yes,
    script: calls(['wait', {}]),
  });
  assert.equal((await busy.agent.chat('go')).ending, 'time');
  assert.deepEqual(busy.outcomes(), ['aborted']);
  assertPaired(busy.agent.turns);
});

test('C17: of 500 calls in one answer 50 run, and all get a result', async () => {
  let ran = 0;
  const count = (readOnly: boolean) =>
    row('count', () => (ran++, saying('counted')()), { readOnly });
  for (const readOnly of [true, false]) {
    ran = 0;
    const many = Array.from({ length: 500 }, (): [string, Json] => ['count', {}]);
    const { agent, results, outcomes } = prepareLoop({
      tools: [count(readOnly)],
      gate: yes,
      script: calls(...many),
    });
    assert.equal((await agent.chat('go')).ending, 'done');
    assert.equal(ran, 50);
    assert.equal(results().length, 500);
    assert.equal(outcomes().filter((outcome) => outcome === 'failed').length, 450);
    assert.match(results()[50]!.text, /more than 50 calls/);
    assertPaired(agent.turns);
  }
});

test('a model that pauses is asked again, but not for ever', async () => {
  const paused = { text: 'wait', stop: 'pause' };
  const twice = prepareLoop({ script: [paused, paused, 'now'] });
  assert.deepEqual(await twice.agent.chat('go'), { ending: 'done', text: 'now' });
  const forever = prepareLoop({ script: Array.from({ length: 50 }, () => paused) });
  assert.equal((await forever.agent.chat('go')).ending, 'done');
  assert.equal(forever.model.requests.length, 6);
});

test('a conversation that is too long loses its old results, once, and is sent again, once', async () => {
  const big = 'x'.repeat(5000);
  const script = [...calls(['read', { path: 'a' }]), ...calls(['read', { path: 'b' }])];
  const { agent, model, of } = prepareLoop({
    tools: shelf({ a: big, b: big }),
    script: [...script, { stop: 'too-long' }, 'it fits'],
  });
  await agent.chat('1');
  await agent.chat('2');
  assert.deepEqual(await agent.chat('3'), { ending: 'done', text: 'it fits' });
  const shown = model.requests
    .at(-1)!
    .turns.flatMap((turn) =>
      turn.role === 'tools' ? turn.results.flatMap(({ blocks }) => blocks) : [],
    );
  assert.match((shown[0] as any).text, /removed to save room/);
  assert.equal((shown[1] as any).text, big, 'the last results stay');
  assert.match(of('note')[0]!.text, /1 old results removed/);
  assertPaired(agent.turns);
});

test('a conversation that is still too long is an error that says what to do', async () => {
  const reads = [...calls(['read', { path: 'a' }]), ...calls(['read', { path: 'a' }])];
  const tooLong = { stop: 'too-long' };
  const isSummary = ({ system }: ModelRequest) => system.startsWith('You summarise'); // of chapter 18
  const later = Array.from(
    { length: 3 },
    () => (request: ModelRequest) => (isSummary(request) ? tooLong : 'fine'),
  );
  const script = [...reads, tooLong, tooLong, ...later];
  const { agent, model, of } = prepareLoop({ tools: shelf({ a: 'x'.repeat(5000) }), script });
  for (const prompt of ['1', '2']) await agent.chat(prompt);
  assert.equal((await agent.chat('3')).ending, 'error');
  assert.equal(model.requests.filter((request) => !isSummary(request)).length, 6);
  assert.deepEqual(
    of('error').map(({ kind }) => kind),
    ['too-long'],
  );
  assert.match(of('error')[0]!.message, /\/clear/);
  assert.equal((await agent.chat('4')).ending, 'done');
  const nothingToForget = prepareLoop({
    script: [
      () => {
        throw failure('too-long', 'prompt is too long');
      },
    ],
  });
  assert.equal((await nothingToForget.agent.chat('1')).ending, 'error');
  assert.equal(nothingToForget.model.requests.length, 1);
});

// ─── Stop ───

test('an abort stops the stream of the model, and what it said stays', async () => {
  const abort = new AbortController();
  const { agent, events, of } = prepareLoop({
    model: new Scripted(
      ['A very long answer that nobody wants to hear to its end, for it never ends.', 'next'],
      { delayMs: 20 },
    ),
    emit: (event) => {
      events.push(event);
      if (of('text').length === 2) abort.abort();
    },
  });
  assert.equal((await agent.chat('go', abort.signal)).ending, 'aborted');
  assert.deepEqual(agent.turns.at(-1), {
    role: 'assistant',
    text: 'A very long answer that nobody wants to ',
    calls: [],
  });
  assert.deepEqual(await agent.chat('again'), { ending: 'done', text: 'next' });
});

test('an abort before a call: it is not run, and has a result that says so', async () => {
  const abort = new AbortController();
  const asked: string[] = [];
  let ran = false;
  const { agent, outcomes, results } = prepareLoop({
    gate: ({ definition }) => (asked.push(definition.name), yes()),
    tools: [
      row('stop', () => (abort.abort(), saying('stopped')())),
      row('after', () => ((ran = true), saying('it ran')())),
    ],
    script: [...calls(['stop', {}], ['after', {}]), 'next'],
  });
  assert.equal((await agent.chat('go', abort.signal)).ending, 'aborted');
  assert.deepEqual(outcomes(), ['aborted', 'aborted']);
  assert.match(results()[1]!.text, /Stopped/);
  assert.deepEqual([asked, ran], [['stop'], false]);
  assertPaired(agent.turns);
  assert.equal((await agent.chat('again')).ending, 'done');
});

test('an abort is heard while the gate waits, also if it never says a word', async () => {
  const abort = new AbortController();
  const texts = {};
  const { agent, outcomes } = prepareLoop({
    tools: shelf(texts),
    gate: () => (setTimeout(() => abort.abort(), 10), nothing()),
    script: calls(['write', { path: 'a', content: 'x' }]),
  });
  assert.equal((await agent.chat('go', abort.signal)).ending, 'aborted');
  assert.deepEqual(outcomes(), ['aborted']);
  assert.deepEqual(texts, {});
});

test('progress of a tool becomes events of its call', async () => {
  const work = row(
    'work',
    (_, { onProgress }) => (
      onProgress({ progress: 1 }), onProgress({ progress: 2 }), saying('done')()
    ),
  );
  const { agent, of } = prepareLoop({ tools: [work], gate: yes, script: calls(['work', {}]) });
  await agent.chat('work');
  const [{ id } = { id: '' }] = of('tool_start');
  assert.deepEqual(
    of('tool_progress').map((event) => [event.id, event.progress]),
    [
      [id, { progress: 1 }],
      [id, { progress: 2 }],
    ],
  );
});

// ─── Trouble ───

test('an error of the model is an event, and the next chat works', async () => {
  const { agent, of } = prepareLoop({
    script: [
      () => {
        throw failure('config', 'the key is wrong');
      },
      'better',
    ],
  });
  assert.deepEqual(await agent.chat('1'), { ending: 'error', text: '' });
  assert.deepEqual(
    of('error').map(({ kind, message }) => [kind, message]),
    [['config', 'the key is wrong']],
  );
  assert.deepEqual(await agent.chat('2'), { ending: 'done', text: 'better' });
});

test('a model that stops without an end is an error, and what it said stays', async () => {
  const model: Model = {
    name: 'broken',
    async *query() {
      yield { type: 'text', text: 'I was about to' };
    },
  };
  const { agent, of } = prepareLoop({ model });
  assert.equal((await agent.chat('1')).ending, 'error');
  assert.match(of('error')[0]!.message, /broken stopped without an end/);
  assert.deepEqual(agent.turns.at(-1), { role: 'assistant', text: 'I was about to', calls: [] });
});

test('a transcript that cannot be written is a note, once, and the chat goes on', async () => {
  const { agent, of, model } = prepareLoop({
    tools: shelf({ a: 'x' }),
    script: [...calls(['read', { path: 'a' }]).slice(0, 1), 'later', 'still here'],
    record: (turn) => {
      if (turn.role === 'assistant') throw new Error('the disk is full');
    },
  });
  assert.deepEqual(await agent.chat('1'), { ending: 'done', text: 'later' });
  assert.deepEqual(await agent.chat('2'), { ending: 'done', text: 'still here' });
  assert.deepEqual(
    of('note').map(({ text }) => text),
    ['from here on, this conversation is not kept: the disk is full'],
  );
  assertPaired(model.requests[1]!.turns);
});

test('a new conversation knows nothing of the old one, and is recorded although that one could not be', async () => {
  const recorded: Turn[] = [];
  let isFull = true;
  const { agent, model } = prepareLoop({
    script: ['one', 'two'],
    record: (turn) => {
      if (isFull) throw new Error('the disk is full');
      recorded.push(turn);
    },
  });
  await agent.chat('1');
  isFull = false;
  agent.startOver();
  assert.deepEqual(agent.turns, []);
  await agent.chat('2');
  assert.deepEqual(model.requests[1]!.turns, [{ role: 'user', text: '2' }]);
  assert.deepEqual(recorded, agent.turns);
});

test('the text of a chat is that of its last answer, as far as it came', async () => {
  const lookThenFail: Model = {
    name: 'broken',
    async *query({ turns }) {
      if (turns.length > 2) throw new Error('no more');
      const calls = [{ id: '1', name: 'read', args: { path: 'a' } }];
      yield {
        type: 'end',
        turn: { role: 'assistant', text: 'Let me look.', calls },
        stop: 'tools',
      };
    },
  };
  const { agent } = prepareLoop({ model: lookThenFail, tools: shelf({ a: 'x' }) });
  assert.deepEqual(await agent.chat('go'), { ending: 'error', text: '' });
  const half: Model = {
    name: 'half',
    async *query() {
      yield { type: 'text', text: 'One half' };
      throw new Error('gone');
    },
  };
  assert.deepEqual(await prepareLoop({ model: half }).agent.chat('go'), {
    ending: 'error',
    text: 'One half',
  });
});

test('a listener that throws stops nothing', async () => {
  const { agent, results } = prepareLoop({
    tools: shelf({ a: 'x' }),
    script: calls(['read', { path: 'a' }]),
    emit: () => {
      throw new Error('a bug of the listener');
    },
  });
  assert.deepEqual(await agent.chat('go'), { ending: 'done', text: 'done' });
  assert.equal(results()[0]!.text, 'x');
});

test('nothing is printed, whatever happens, not even a warning of Node', async () => {
  const { code, output } = await run('quiet-loop.ts').ended;
  assert.deepEqual([output, code], ['', 0]);
});

test('a conversation that was cut off is repaired: each call has one result, each result its call', async () => {
  const call = (id: string) => ({ id, name: 'read', args: {} });
  const result = (id: string) => ({
    id,
    name: 'read',
    blocks: [{ type: 'text' as const, text: id }],
    isError: false,
  });
  const turns: Turn[] = [
    { role: 'tools', results: [result('orphan')] },
    { role: 'user', text: 'hi' },
    { role: 'assistant', text: '', calls: [call('1'), call('2')] },
    { role: 'tools', results: [result('1')] },
    { role: 'assistant', text: '', calls: [call('3')] },
    { role: 'user', text: 'still there?' },
    { role: 'assistant', text: '', calls: [call('4')] },
    { role: 'tools', results: [result('4')] },
    { role: 'assistant', text: '', calls: [call('5'), call('5')] },
    { role: 'assistant', text: '', calls: [call('6')] },
    { role: 'tools', results: [result('of another call')] },
  ];
  const repaired = repair(turns);
  assertPaired(repaired);
  assert.deepEqual(
    repaired.map(({ role }) => role),
    [
      'user',
      'assistant',
      'tools',
      'assistant',
      'tools',
      'user',
      'assistant',
      'tools',
      'assistant',
      'tools',
      'assistant',
      'tools',
    ],
  );
  const blocks = repaired.flatMap((turn) =>
    turn.role === 'tools'
      ? turn.results.map((each) => [each.id, (each.blocks[0] as any).text])
      : [],
  );
  const lost = 'Unknown: the program ended before the result came.';
  assert.deepEqual(blocks, [
    ['1', '1'],
    ['2', lost],
    ['3', lost],
    ['4', '4'],
    ['5', lost],
    ['5', lost],
    ['6', lost],
  ]);
  assert.deepEqual(repair(repaired), repaired);
  const sound: Turn[] = repaired.slice(0, 3);
  assert.deepEqual(repair(sound), sound);
  const { agent, model } = prepareLoop({ turns, script: ['yes'] });
  await agent.chat('go on');
  assertPaired(model.requests[0]!.turns);
});

test('an agent needs nothing but a model', async () => {
  const agent = new Agent({ model: new Scripted(['hi']), resultsFolder: folder() });
  assert.deepEqual(await agent.chat('hello'), { ending: 'done', text: 'hi' });
});

// ─── To stop waiting ───

test('unlessAborted settles as the work does, or is rejected by the signal; it leaves no listener behind', async () => {
  const { signal } = new AbortController();
  assert.equal(await unlessAborted(Promise.resolve(1)), 1);
  assert.equal(await unlessAborted(Promise.resolve(2), signal), 2);
  assert.equal(
    (await rejection(unlessAborted(Promise.reject(new Error('broken')), signal))).message,
    'broken',
  );
  assert.equal(getEventListeners(signal, 'abort').length, 0);
  const reason = new Error('enough');
  const late = Promise.reject(new Error('nobody waits for this')); // unhandled, it would end the tests
  assert.equal(await rejection(unlessAborted(late, AbortSignal.abort(reason))), reason);
  const stop = new AbortController();
  const waiting = unlessAborted(nothing(), stop.signal);
  stop.abort(reason);
  assert.equal(await rejection(waiting), reason);
});

// ─── The scripted model ───

test('the scripted model says its answers in turn, and remembers the questions', async () => {
  const usage = { input: 3, output: 2, cached: 1 };
  const model = new Scripted([
    'A text that is long enough for several pieces 🦊.',
    {
      text: 'adding',
      calls: [
        { name: 'add', args: { a: 1 } },
        { name: 'add', args: {}, id: 'mine' },
      ],
      usage,
    },
    ({ turns }) => `${turns.length} turn(s)`,
    async () => ({ text: 'cut', stop: 'length' }),
  ]);
  const pieces: string[] = [];
  const first = await hear(
    model,
    'one',
    (event) => event.type === 'text' && pieces.push(event.text),
  );
  assert.ok(pieces.length > 1);
  assert.equal(first.text, 'A text that is long enough for several pieces 🦊.');
  assert.deepEqual(first.end, {
    type: 'end',
    turn: { role: 'assistant', text: first.text, calls: [] },
    stop: 'done',
  });
  const { end } = await hear(model, 'two');
  const made = [
    { id: 'call_1', name: 'add', args: { a: 1 } },
    { id: 'mine', name: 'add', args: {} },
  ];
  assert.deepEqual(end, {
    type: 'end',
    turn: { role: 'assistant', text: 'adding', calls: made },
    stop: 'tools',
    usage,
  });
  assert.equal((await hear(model, 'three')).text, '1 turn(s)');
  assert.equal((await hear(model, 'four')).end.stop, 'length');
  assert.deepEqual(
    model.requests.map(({ turns }) => turns),
    ['one', 'two', 'three', 'four'].map((text) => [{ role: 'user', text }]),
  );
  const error = await rejection(hear(model, 'five'));
  assert.equal(error.message, 'the script is over: query 5 came, but it has 4 answer(s); add one');
});

test('the scripted model can be stopped', async () => {
  const controller = new AbortController();
  const reason = new Error('enough');
  const model = new Scripted(['x'.repeat(100), 'never'], { delayMs: 1 });
  assert.equal(
    await rejection(hear(model, { signal: controller.signal }, () => controller.abort(reason))),
    reason,
  );
  assert.equal(await rejection(hear(model, { signal: controller.signal })), reason);
  assert.equal(model.requests.length, 1, 'what is stopped before it begins uses up no answer');
});

test('the scripted model remembers the questions as they were', async () => {
  const model = new Scripted(['yes']);
  const turns: Turn[] = [{ role: 'user', text: 'one' }];
  await hear(model, { turns });
  turns.push({ role: 'user', text: 'two' });
  assert.equal(model.requests[0]!.turns.length, 1);
});
