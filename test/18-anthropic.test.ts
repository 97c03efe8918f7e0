// Chapter 18: the wire of Anthropic. What we send, and what we make of what comes back.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import type { AssistantTurn, Turn } from '../agent.ts';
import { Anthropic } from '../chapters/18-minds/anthropic.ts';
import { cleanUp, rejection } from './help/basics.ts';
import {
  ADD,
  call,
  calls,
  fail,
  hear,
  raw,
  say,
  startModelServer,
  type Script,
} from './help/model-server.ts';

afterEach(cleanUp);

async function start(script: Script, options: { maxTokens?: number } = {}) {
  const server = await startModelServer(script);
  return {
    server,
    model: new Anthropic({ model: 'm', key: 'a-test-key', baseUrl: server.url, ...options }),
  };
}

/** The messages that go out for these turns. */
async function sent(turns: Turn[]): Promise<any[]> {
  const { server, model } = await start([say('ok')]);
  await hear(model, { turns });
  assert.deepEqual(server.problems, []);
  const messages = server.requests[0]!.body.messages;
  for (const { content } of messages) for (const block of content) delete block.cache_control;
  return messages;
}

type Event = { type: string; [key: string]: unknown };
const sse = (...events: Event[]) =>
  events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');
const START: Event = {
  type: 'message_start',
  message: { usage: { input_tokens: 5, output_tokens: 1 } },
};
const STOP: Event = { type: 'message_stop' };
const ended = (stop_reason: string, more = {}): Event => ({
  type: 'message_delta',
  delta: { stop_reason, ...more },
});
const block = (index: number, content_block: object): Event => ({
  type: 'content_block_start',
  index,
  content_block,
});
const delta = (index: number, type: string, more: object): Event => ({
  type: 'content_block_delta',
  index,
  delta: { type, ...more },
});
const closed = (index: number): Event => ({ type: 'content_block_stop', index });

/** What we hear when the server sends these events. */
async function heard(...events: Event[]) {
  const { model } = await start([raw('anthropic', sse(START, ...events))]);
  return hear(model, 'Hello');
}

const user = (text: string): Turn => ({ role: 'user', text });
const text = (text: string) => ({ type: 'text', text });
const result = (id: string, said: string, isError = false) =>
  ({ id, name: 'add', blocks: [text(said)], isError }) as any;

// ─── What goes out ────────────────────────────────────────────────────────────────────────────────────────────

test('a request is one POST with key, version, limit and stream, and without sampling fields', async () => {
  const { server, model } = await start([say('Hello to you.')]);
  const { text, end } = await hear(model, 'Hello');
  assert.equal(text, 'Hello to you.');
  assert.deepEqual([end.turn.text, end.turn.calls, end.stop], ['Hello to you.', [], 'done']);
  const [{ headers, body }] = server.requests as [any];
  assert.deepEqual(
    [headers['x-api-key'], headers['anthropic-version'], headers.authorization],
    ['a-test-key', '2023-06-01', undefined],
  );
  assert.deepEqual(Object.keys(body), [
    'model',
    'max_tokens',
    'stream',
    'tools',
    'system',
    'messages',
  ]);
  assert.deepEqual(
    [body.model, body.max_tokens, body.stream, body.system[0].text],
    ['m', 16_384, true, 'Be brief.'],
  );
  assert.deepEqual(body.tools, [
    { name: ADD.name, description: ADD.description, input_schema: ADD.inputSchema },
  ]);
  assert.deepEqual(server.problems, []);
});

test('the limit is an option; no tools and no system leave no trace', async () => {
  const { server, model } = await start([say('ok')], { maxTokens: 64 });
  await hear(model, { tools: [], system: '' });
  assert.deepEqual(Object.keys(server.requests[0]!.body), [
    'model',
    'max_tokens',
    'stream',
    'messages',
  ]);
  assert.equal(server.requests[0]!.body.max_tokens, 64);
  assert.deepEqual(server.problems, []);
});

test('two marks for the cache: behind the instructions, and at the end of the conversation', async () => {
  const { server, model } = await start([call('mcp__demo__add', { a: 1 }), say('ok'), say('ok')]);
  const turns: Turn[] = [user('Hello')];
  const { end } = await hear(model, { turns });
  turns.push(end.turn, { role: 'tools', results: [result(end.turn.calls[0]!.id, '1')] });
  await hear(model, { turns });
  await hear(model, { turns, system: '' });
  const marks = server.requests.map(({ body }) => {
    const places = [
      ...(body.system ?? []),
      ...body.tools,
      ...body.messages.flatMap(({ content }: any) => content),
    ];
    return places.flatMap((block, n) =>
      block.cache_control
        ? [`${n} of ${places.length}: ${JSON.stringify(block.cache_control)}`]
        : [],
    );
  });
  const mark = '{"type":"ephemeral"}';
  assert.deepEqual(marks, [
    [`0 of 3: ${mark}`, `2 of 3: ${mark}`],
    [`0 of 5: ${mark}`, `4 of 5: ${mark}`],
    [`0 of 4: ${mark}`, `3 of 4: ${mark}`],
  ]);
  assert.deepEqual(server.problems, []);
  assert.ok(
    !JSON.stringify(turns).includes('cache_control'),
    'the conversation itself stays as it was',
  );
});

test('a longer conversation begins with the bytes of the shorter one', async () => {
  const { server, model } = await start([
    calls([{ name: 'a', args: {}, id: 'call_0' }]),
    call('b', { x: 1 }, { id: 'call_0', thinking: 'hm' }),
    say('ok'),
  ]);
  const turns: Turn[] = [user('Hello')];
  for (let n = 0; n < 2; n++) {
    const { end } = await hear(model, { turns });
    turns.push(end.turn, {
      role: 'tools',
      results: end.turn.calls.map(({ id }) => result(id, 'done')),
    });
  }
  await hear(model, { turns });
  const texts = server.requests.map(({ body }) =>
    JSON.stringify(body).replaceAll(',"cache_control":{"type":"ephemeral"}', ''),
  );
  for (const [n, text] of texts.slice(0, -1).entries())
    assert.ok(texts[n + 1]!.startsWith(text.slice(0, -2)), `${text}\n${texts[n + 1]}`);
  assert.deepEqual(server.problems, []);
});

test('results stand first in one user message, with what the user says next behind them', async () => {
  const turns: Turn[] = [
    user('one'),
    user('two'),
    {
      role: 'assistant',
      text: 'Adding.',
      calls: [
        { id: 'a', name: 'add', args: { x: 1 } },
        { id: 'b', name: 'add' },
      ],
    },
    { role: 'tools', results: [result('a', '1'), result('b', 'no such tool', true)] },
    user('go on'),
  ];
  assert.deepEqual(await sent(turns), [
    { role: 'user', content: [text('one'), text('two')] },
    {
      role: 'assistant',
      content: [
        text('Adding.'),
        { type: 'tool_use', id: 'a', name: 'add', input: { x: 1 } },
        { type: 'tool_use', id: 'b', name: 'add', input: {} },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'a', content: [text('1')] },
        { type: 'tool_result', tool_use_id: 'b', content: [text('no such tool')], is_error: true },
        text('go on'),
      ],
    },
  ]);
});

test('an image goes into its result, and a result without a word gets some', async () => {
  const png = { type: 'image' as const, mimeType: 'image/png', data: 'AAAA' };
  const messages = await sent([
    user('Look.'),
    {
      role: 'assistant',
      text: '',
      calls: ['a', 'b', 'c'].map((id) => ({ id, name: 'shot', args: {} })),
    },
    {
      role: 'tools',
      results: [
        { ...result('a', ''), blocks: [text('here'), text(''), png] },
        { ...result('b', ''), blocks: [] },
        result('c', ' \n'),
      ],
    },
  ]);
  const image = {
    type: 'image',
    source: { type: 'base64', media_type: 'image/png', data: 'AAAA' },
  };
  assert.deepEqual(
    messages[2].content.map(({ content }: any) => content),
    [[text('here'), image], [text('(no output)')], [text('(no output)')]],
  );
});

test('an error with an image says so in words, for the flag allows none', async () => {
  const blocks = [{ type: 'image' as const, mimeType: 'image/png', data: 'AAAA' }];
  const messages = await sent([
    user('Look.'),
    { role: 'assistant', text: '', calls: [{ id: 'a', name: 'shot', args: {} }] },
    { role: 'tools', results: [{ id: 'a', name: 'shot', blocks, isError: true }] },
  ]);
  const [{ content, is_error }] = messages[2].content;
  assert.deepEqual([content[0], content[1].type, is_error], [text('Error:'), 'image', undefined]);
});

test("a turn without a word or a call is left out, and so is an empty user's", async () => {
  const silent: AssistantTurn = {
    role: 'assistant',
    text: ' ',
    calls: [],
    native: { wire: 'anthropic', content: [] },
  };
  const messages = await sent([
    user('one'),
    silent,
    user(' '),
    user('two'),
    { ...silent, native: { wire: 'openai', content: 7 } },
    user('three'),
  ]);
  assert.deepEqual(messages, [
    { role: 'user', content: [text('one'), text('two'), text('three')] },
  ]);
});

test('ids are made to fit, alike for call and result, and no two are the same', async () => {
  const assistant = (...ids: string[]): Turn => ({
    role: 'assistant',
    text: '',
    calls: ids.map((id) => ({ id, name: 'add', args: {} })),
  });
  const tools = (...ids: string[]): Turn => ({
    role: 'tools',
    results: ids.map((id) => result(id, id)),
  });
  const long = 'x'.repeat(80);
  const messages = await sent([
    user('one'),
    assistant('call.1:a', 'call_0', ''),
    tools('call.1:a', 'call_0', ''),
    user('two'),
    assistant('call_0', 'call_0', `${long}1`, `${long}2`),
    tools('call_0', 'call_0', `${long}1`, `${long}2`),
  ]);
  const ids = messages.flatMap(({ content }) =>
    content.flatMap(({ type, id }: any) => (type === 'tool_use' ? [id] : [])),
  );
  assert.deepEqual(ids, [
    'call_1_a',
    'call_0',
    'call',
    'call_0_2',
    'call_0_3',
    'x'.repeat(58),
    `${'x'.repeat(58)}_2`,
  ]);
});

test('a name that the model has invented is made to fit', async () => {
  const calls = [
    { id: 'a', name: 'a.b c', args: {} },
    { id: 'b', name: '', args: {} },
    { id: 'c', name: 'y'.repeat(99), args: {} },
  ];
  const messages = await sent([
    user('x'),
    { role: 'assistant', text: '', calls },
    { role: 'tools', results: calls.map(({ id }) => result(id, 'unknown')) },
  ]);
  assert.deepEqual(
    messages[1].content.map(({ name }: any) => name),
    ['a_b_c', 'unnamed', 'y'.repeat(64)],
  );
});

test('what this wire has said goes back unchanged, signed thoughts and unknown blocks included', async () => {
  const { server, model } = await start([
    raw(
      'anthropic',
      sse(
        START,
        block(0, { type: 'thinking', thinking: '', signature: '' }),
        delta(0, 'thinking_delta', { thinking: 'Let me ' }),
        delta(0, 'thinking_delta', { thinking: 'see.' }),
        delta(0, 'signature_delta', { signature: 'c2ln' }),
        closed(0),
        block(1, { type: 'redacted_thinking', data: 'xyz' }),
        closed(1),
        block(2, { type: 'text', text: '' }),
        delta(2, 'text_delta', { text: 'Adding.' }),
        closed(2),
        block(3, { type: 'hologram', beams: 3 }),
        delta(3, 'beam_delta', { beam: 1 }),
        closed(3),
        block(4, {
          type: 'tool_use',
          id: 'toolu_1',
          name: 'add',
          input: {},
          caller: { type: 'direct' },
        }),
        delta(4, 'input_json_delta', { partial_json: '{"a": 2' }),
        delta(4, 'input_json_delta', { partial_json: '}' }),
        closed(4),
        block(5, { type: 'text', text: '' }),
        closed(5),
        ended('tool_use'),
        STOP,
      ),
    ),
    say('ok'),
  ]);
  const { end, text: shown } = await hear(model, 'Hello');
  assert.deepEqual(
    [shown, end.turn.text, end.turn.calls],
    ['Adding.', 'Adding.', [{ id: 'toolu_1', name: 'add', args: { a: 2 } }]],
  );
  const stored = JSON.parse(JSON.stringify(end.turn)); // as a session file would give it back
  await hear(model, {
    turns: [user('Hello'), stored, { role: 'tools', results: [result('toolu_1', '2')] }],
  });
  assert.deepEqual(server.requests[1]!.body.messages[1].content, [
    { type: 'thinking', thinking: 'Let me see.', signature: 'c2ln' },
    { type: 'redacted_thinking', data: 'xyz' },
    { type: 'text', text: 'Adding.' },
    { type: 'hologram', beams: 3 },
    { type: 'tool_use', id: 'toolu_1', name: 'add', input: { a: 2 }, caller: { type: 'direct' } },
  ]);
  assert.deepEqual(server.problems, []);
});

test('what another wire has said becomes text and calls', async () => {
  const turn: AssistantTurn = {
    role: 'assistant',
    text: 'Adding.',
    calls: [],
    native: { wire: 'openai', content: [{ type: 'odd' }] },
  };
  assert.deepEqual((await sent([user('x'), turn, user('y')]))[1], {
    role: 'assistant',
    content: [text('Adding.')],
  });
});

test('a paused turn goes back as the last message, and what follows joins it', async () => {
  const search = {
    type: 'server_tool_use',
    id: 'srvtoolu_1',
    name: 'web_search',
    input: { query: 'x' },
  };
  const { server, model } = await start([
    raw('anthropic', sse(START, block(0, search), closed(0), ended('pause_turn'), STOP)),
    say('found'),
    say('ok'),
  ]);
  const turns: Turn[] = [user('Search.')];
  const first = await hear(model, { turns });
  assert.deepEqual([first.end.stop, first.end.turn.calls], ['pause', []]);
  turns.push(first.end.turn);
  turns.push((await hear(model, { turns })).end.turn, user('Thanks.'));
  await hear(model, { turns });
  assert.deepEqual(server.requests[1]!.body.messages.at(-1), {
    role: 'assistant',
    content: [search],
  });
  assert.deepEqual(server.requests[2]!.body.messages[1], {
    role: 'assistant',
    content: [search, text('found')],
  });
  assert.deepEqual(server.problems, []);
});

// ─── What comes back ──────────────────────────────────────────────────────────────────────────────────────────

test('a stop reason becomes a word of ours, an unknown one stays', async () => {
  const reasons = {
    end_turn: 'done',
    stop_sequence: 'done',
    tool_use: 'tools',
    max_tokens: 'length',
    pause_turn: 'pause',
    refusal: 'refusal',
    model_context_window_exceeded: 'too-long',
    solar_flare: 'solar_flare',
  };
  for (const [reason, stop] of Object.entries(reasons))
    assert.equal((await heard(ended(reason), STOP)).end.stop, stop);
});

test('a refusal brings its explanation', async () => {
  const { end } = await heard(
    ended('refusal', { stop_details: { type: 'refusal', explanation: 'Not that.' } }),
    STOP,
  );
  assert.deepEqual([end.stop, end.explanation], ['refusal', 'Not that.']);
});

test('an empty answer is legal', async () => {
  const { end } = await heard(ended('end_turn'), STOP);
  assert.deepEqual(end.turn, {
    role: 'assistant',
    text: '',
    calls: [],
    native: { wire: 'anthropic', content: [] },
  });
});

test('pings, unknown events and comments are skipped', async () => {
  const { model } = await start([
    raw('anthropic', [
      sse(START, { type: 'ping' }),
      ': keep-alive\n\n',
      sse({ type: 'fireworks' }, block(0, text('He')), { type: 'ping' }),
      sse(
        delta(0, 'text_delta', { text: 'llo' }),
        delta(7, 'text_delta', { text: 'lost' }),
        closed(0),
        ended('end_turn'),
        STOP,
      ),
    ]),
  ]);
  const { text: shown, end } = await hear(model, 'Hi');
  assert.deepEqual([shown, end.turn.text], ['Hello', 'Hello']);
});

test('arguments are read when they are whole: none are {}, and whole ones may stand at the start', async () => {
  const { end } = await heard(
    block(0, { type: 'tool_use', id: 'a', name: 'now', input: {} }),
    delta(0, 'input_json_delta', { partial_json: '' }),
    closed(0),
    block(1, { type: 'tool_use', id: 'b', name: 'now', input: {} }),
    closed(1),
    block(2, { type: 'tool_use', id: 'c', name: 'add', input: { a: 1 } }),
    closed(2),
    ended('tool_use'),
    STOP,
  );
  assert.deepEqual(
    end.turn.calls.map(({ args }) => args),
    [{}, {}, { a: 1 }],
  );
});

test('half-written arguments do not run: the call has none, and tells why; its turn can still go back', async () => {
  const use = (index: number, json: string) => [
    block(index, { type: 'tool_use', id: `t${index}`, name: 'add', input: {} }),
    delta(index, 'input_json_delta', { partial_json: json }),
    closed(index),
  ];
  const { end } = await heard(
    ...use(0, '{"a": 2}'),
    ...use(1, '[1]'),
    ...use(2, `{"text": "${'x'.repeat(2_000)}`),
    ...use(3, ''),
    ended('max_tokens'),
    STOP,
  );
  const [whole, list, half, none] = end.turn.calls;
  assert.deepEqual(whole, { id: 't0', name: 'add', args: { a: 2 } });
  assert.deepEqual(list, { id: 't1', name: 'add', unreadable: 'not a JSON object: [1]' });
  assert.match(half!.unreadable!, /^Unterminated string in JSON.*, in: \{"text": "x+…$/);
  assert.ok(!('args' in half!) && half!.unreadable!.length < 700);
  assert.deepEqual(none, {
    id: 't3',
    name: 'add',
    unreadable: 'the answer was cut off before the arguments',
  });
  assert.deepEqual(
    (end.turn.native!.content as any[]).map(({ input }) => input),
    [{ a: 2 }, {}, {}, {}],
  );
  const results = end.turn.calls.map(({ id }) => result(id, 'not run', true));
  await sent([user('Hello'), end.turn, { role: 'tools', results }]);
});

test('a thought that was cut off before its signature does not go back', async () => {
  const { end } = await heard(
    block(0, { type: 'thinking', thinking: '', signature: '' }),
    delta(0, 'thinking_delta', { thinking: 'hm' }),
    ended('max_tokens'),
    STOP,
  );
  assert.deepEqual(end.turn.native!.content, []);
});

test('usage: the input is the sum of three, and later counts replace earlier ones where they are given', async () => {
  const usage = {
    input_tokens: 3,
    cache_creation_input_tokens: 20,
    cache_read_input_tokens: 100,
    output_tokens: 1,
  };
  const { model } = await start([
    raw(
      'anthropic',
      sse(
        { type: 'message_start', message: { usage } },
        { type: 'message_delta', delta: {}, usage: { output_tokens: 5 } },
        {
          type: 'message_delta',
          delta: { stop_reason: 'end_turn' },
          usage: { output_tokens: 9, input_tokens: null, cache_read_input_tokens: 101 },
        },
        STOP,
      ),
    ),
  ]);
  assert.deepEqual((await hear(model, 'Hello')).end.usage, { input: 124, output: 9, cached: 101 });
});

test('an error event after 200: an overload before any text is asked again, everything else is an error', async () => {
  const error = (type: string): Event => ({ type: 'error', error: { type, message: 'Oh.' } });
  for (const type of ['overloaded_error', 'api_error']) {
    const { server, model } = await start([raw('anthropic', sse(START, error(type))), say('ok')]);
    const { text: shown, notes } = await hear(model, 'Hello');
    assert.deepEqual([shown, notes.length, server.requests.length], ['ok', 1, 2]);
    assert.match(
      notes[0]!,
      type === 'overloaded_error' ? /^the model is busy \(529\)/ : /^the model has failed \(500\)/,
    );
  }
  for (const events of [
    [block(0, text('Hel')), error('overloaded_error')],
    [error('invalid_request_error')],
    [{ type: 'error' }],
  ]) {
    const { server, model } = await start([raw('anthropic', sse(START, ...events)), say('never')]);
    const thrown = await rejection(hear(model, 'Hello'));
    assert.equal(thrown.kind, events.length === 2 ? 'unreachable' : 'refused');
    assert.match(thrown.message, /^anthropic\/m answered \d+/);
    assert.equal(server.requests.length, 1);
  }
});

test('an end without message_stop is no end', async () => {
  const { server, model } = await start([
    raw('anthropic', sse(START, block(0, text('Hello')), closed(0), ended('end_turn'))),
    say('never'),
  ]);
  const error = await rejection(hear(model, 'Hello'));
  assert.deepEqual(
    [error.kind, error.message],
    ['unreachable', 'the answer of anthropic/m broke off (no message_stop)'],
  );
  assert.equal(server.requests.length, 1);
});

test('a whole conversation: thinking, two calls at once, results, an answer', async () => {
  const two = [
    { name: 'mcp__demo__add', args: { a: 2, b: 40 } },
    { name: 'mcp__demo__add', args: { a: 1, b: 1 } },
  ];
  const { server, model } = await start([
    fail(529, { headers: { 'retry-after-ms': '1' } }),
    calls(two, { text: 'Two sums.', thinking: 'Two.' }),
    say('42 and 2.'),
  ]);
  const turns: Turn[] = [user('Add.')];
  const first = await hear(model, { turns });
  assert.deepEqual([first.text, first.end.stop], ['Two sums.', 'tools']);
  turns.push(first.end.turn, {
    role: 'tools',
    results: first.end.turn.calls.map(({ id, args }: any) => result(id, `${args.a + args.b}`)),
  });
  assert.equal((await hear(model, { turns })).text, '42 and 2.');
  assert.deepEqual(server.problems, []);
});

test('a server that does not stream is understood, and so are its errors', async () => {
  const usage = { input_tokens: 3, output_tokens: 4 };
  const content = [
    { type: 'text', text: 'Both.' },
    { type: 'tool_use', id: 't1', name: 'mcp__demo__add', input: { a: 2, b: 40 } },
  ];
  const whole = { type: 'message', role: 'assistant', content, stop_reason: 'tool_use', usage };
  const asJson = { contentType: 'application/json' };
  const { server, model } = await start([
    raw('anthropic', JSON.stringify(whole), asJson),
    raw('anthropic', '{"error":{"type":"billing_error","message":"no credits"}}', asJson),
  ]);
  const { text, end } = await hear(model, 'Hello');
  assert.deepEqual(
    [text, end.stop, end.usage],
    ['Both.', 'tools', { input: 3, output: 4, cached: 0 }],
  );
  assert.deepEqual(end.turn.calls, [{ id: 't1', name: 'mcp__demo__add', args: { a: 2, b: 40 } }]);
  assert.match((await rejection(hear(model, 'Hello'))).message, /no credits/);
  assert.equal(server.requests.length, 2);
});
