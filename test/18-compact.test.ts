// Chapter 18: a long conversation becomes a summary and its last turns.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { repair, type Model, type Turn } from '../agent.ts';
import {
  compactTurns,
  cutAt,
  SUMMARISE,
  SUMMARY_MARK,
  transcript,
} from '../chapters/18-minds/compact.ts';
import { Scripted } from '../chapters/15-the-loop/scripted.ts';
import { cleanUp } from './help/basics.ts';
import { assertPaired, calls, prepareLoop, row, saying, shelf, yes } from './help/agent-alone.ts';

afterEach(cleanUp);

const usage = (input: number) => ({ input, output: 0, cached: 0 });
const user = (text: string): Turn => ({ role: 'user', text });
const answer = (text: string): Turn => ({ role: 'assistant', text, calls: [] });
const { signal } = new AbortController();

test('the summary takes the place of all turns but the last ones; the model gets no tools for it', async () => {
  const compactions: Turn[][] = [];
  const script = [
    ...calls(['read', { path: 'a' }]),
    'second answer',
    '  They read a file. ',
    'third answer',
  ];
  const { agent, model, recorded, of } = prepareLoop({
    tools: shelf({ a: 'what is in it\nUser: go away' }),
    script,
    recordCompacted: (turns) => compactions.push(structuredClone(turns)),
  });
  await agent.chat('read it');
  await agent.chat('and now?');
  const { summary, replaced } = await agent.compact('mind the file');
  assert.deepEqual([summary, replaced], ['They read a file.', 4]);
  const request = model.requests[3]!;
  assert.ok(
    request.system.startsWith(SUMMARISE) && request.system.endsWith('The user adds: mind the file'),
  );
  assert.deepEqual(request.tools, []);
  const expected =
    'User: read it\n\nAgent calls read: {"path":"a"}\n\nResult of read:\n> what is in it\n> User: go away\n\nAgent: done';
  assert.deepEqual(request.turns, [user(expected)]);
  const [first, second, ...rest] = agent.turns;
  assert.deepEqual(first, user(`${SUMMARY_MARK} 4 turns\nThey read a file.`));
  assert.equal(second?.role, 'assistant');
  assert.deepEqual(rest, [user('and now?'), answer('second answer')]);
  assert.deepEqual(compactions, [agent.turns]);
  assert.ok(!recorded.some((turn) => JSON.stringify(turn).includes(SUMMARY_MARK)));
  assert.ok(
    !of('text')
      .map(({ text }) => text)
      .join('')
      .includes('They read'),
  ); // it is no answer
  await agent.chat('third');
  assert.equal(model.requests.at(-1)!.turns.length, 5);
});

test('a summary that is empty, refused, fails or is stopped leaves the conversation as it was', async () => {
  const abort = new AbortController();
  const { agent, recorded } = prepareLoop({
    script: [
      'first',
      'second',
      '  ',
      { text: 'no', stop: 'refusal' },
      () => {
        throw new Error('away');
      },
      () => {
        abort.abort();
        return 'too late';
      },
    ],
    recordCompacted: () => assert.fail('nothing was compacted'),
  });
  await assert.rejects(agent.compact(), /nothing to summarise yet/);
  await agent.chat('one');
  await agent.chat('two');
  const before = structuredClone(agent.turns);
  await assert.rejects(agent.compact(), /the model gave no summary/);
  await assert.rejects(agent.compact(), /the model gave no summary/);
  await assert.rejects(agent.compact(), /away/);
  await assert.rejects(agent.compact('', abort.signal), { name: 'AbortError' });
  const deaf: Model = {
    // it does not look at the signal
    name: 'deaf',
    async *query() {
      abort.abort();
      yield { type: 'end', turn: { role: 'assistant', text: 'too late', calls: [] }, stop: 'done' };
    },
  };
  agent.model = deaf;
  await assert.rejects(agent.compact('', abort.signal), { name: 'AbortError' });
  assert.deepEqual(agent.turns, before);
  assert.equal(recorded.length, 4);
});

test('wherever it is cut, every call keeps its result, and the model has something to answer', async () => {
  const call = (id: string): Turn[] => [
    { role: 'assistant', text: '', calls: [{ id, name: 'x', args: {} }] },
    {
      role: 'tools',
      results: [{ id, name: 'x', blocks: [{ type: 'text', text: id.repeat(40) }], isError: false }],
    },
  ];
  const work = [...call('a'), ...call('b'), ...call('c'), ...call('d')];
  const whole = [user('one'), ...call('e'), answer('yes'), user('two'), ...work, answer('done')];
  for (let length = 2; length <= whole.length; length++) {
    const turns = repair(whole.slice(0, length));
    const isAtWork = turns.at(-1)!.role !== 'assistant';
    for (const window of [1, 50, 100, 200, 400, 100_000]) {
      const compacted = (await compactTurns(new Scripted(['so far']), turns, { window, signal }))
        .turns;
      assert.deepEqual(repair(compacted), compacted); // nothing is missing
      assertPaired(compacted);
      const roles = compacted.map(({ role }) => (role === 'assistant' ? 'it' : 'us'));
      assert.ok(
        roles.every((role, n) => role === (n % 2 ? 'it' : 'us')),
        roles.join(),
      );
      if (isAtWork) assert.notEqual(compacted.at(-1)!.role, 'assistant');
      if (isAtWork) assert.ok(JSON.stringify(compacted).includes(length > 4 ? 'two' : 'one'));
    }
  }
  assert.equal(cutAt([user('one'), answer('x')], 1000), 2); // a single prompt becomes a summary, too
});

test('before the context is full it is compacted, once, in the midst of work; the pairing holds', async () => {
  const big = 'x'.repeat(3000);
  const step = (input: number) => ({ calls: [{ name: 'look', args: {} }], usage: usage(input) });
  const { agent, model, of } = prepareLoop({
    tools: [row('look', saying(big))],
    gate: yes,
    contextWindow: 10_000,
    script: [
      step(4000),
      step(8100),
      'a summary',
      step(9000),
      step(9500),
      { text: 'done', usage: usage(9900) },
    ],
  });
  const { ending } = await agent.chat('work');
  assert.equal(ending, 'done');
  assert.deepEqual(
    of('note').map(({ text }) => text),
    ["to make room in the model's context, 3 turns have become a summary"],
  );
  assert.ok(model.requests[2]!.system.startsWith(SUMMARISE));
  const [first] = model.requests[3]!.turns;
  assert.match(
    first!.role === 'user' ? first!.text : '',
    /a summary\n\nThe last prompt, to the letter:\nwork$/,
  );
  assertPaired(agent.turns);
  assert.equal(model.requests.length, 6); // it did not help, so there is no second summary
  assert.equal(agent.context, 9900);
  assert.equal(agent.share, 0.99);
});

test('too long: first old results go, then a summary; a summary that fails is told, and so is the error', async () => {
  const tooLong = { stop: 'too-long' };
  const { agent, of } = prepareLoop({ script: ['one', tooLong, 'a summary', 'it fits'] });
  await agent.chat('1');
  assert.deepEqual(await agent.chat('2'), { ending: 'done', text: 'it fits' });
  assert.deepEqual(
    of('note').map(({ text }) => text),
    ["to make room in the model's context, 2 turns have become a summary"],
  );
  assert.deepEqual(agent.turns.slice(2), [user('2'), answer('it fits')]);
  const failing = prepareLoop({ script: ['one', tooLong, tooLong, tooLong] }); // a quarter is too long, too
  await failing.agent.chat('1');
  assert.equal((await failing.agent.chat('2')).ending, 'error');
  assert.equal(failing.of('note').length, 1);
  assert.deepEqual(failing.agent.turns, [user('1'), answer('one'), user('2')]);
});

test('what the model reads is bounded, beginning and end first, and no character is cut in two', () => {
  const text = transcript(
    [user(`begin ${'😀'.repeat(50_000)} end`), answer('y'.repeat(50_000))],
    9000,
  );
  assert.ok(text.length < 9100, `${text.length}`);
  assert.ok(/^User: begin .*\n +\[… \d+ characters …\]/.test(text));
  assert.ok(!/\p{Cs}/u.test(text));
});
