// Chapter 18: the wire of OpenAI and of everybody who is compatible, each in a way of their own.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import type { Turn } from '../agent.ts';
import { OpenAi } from '../chapters/18-minds/openai.ts';
import { cleanUp, rejection } from './help/basics.ts';
import { ADD, calls, hear, raw, say, startModelServer, type Script } from './help/model-server.ts';

afterEach(cleanUp);

async function start(
  script: Script,
  options: { maxTokens?: number; key?: string } = { key: 'a-test-key' },
) {
  const server = await startModelServer(script);
  return { server, model: new OpenAi({ model: 'm', baseUrl: `${server.url}/v1`, ...options }) };
}

/** The messages that go out for these turns, without the system's. */
async function sent(turns: Turn[]): Promise<any[]> {
  const { server, model } = await start([say('ok')]);
  await hear(model, { turns });
  assert.deepEqual(server.problems, []);
  return server.requests[0]!.body.messages.slice(1);
}

const data = (...chunks: unknown[]) =>
  chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('');
const delta = (delta: object, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta, finish_reason }],
});
const DONE = 'data: [DONE]\n\n';

/** What we hear when the server sends these bytes. */
async function heard(text: string, contentType = 'text/event-stream') {
  const { model } = await start([raw('openai', text, { contentType })]);
  return hear(model, 'Hello');
}

/** The calls that these pieces make. */
async function assembled(...pieces: object[]) {
  const { end } = await heard(
    data(...pieces.map((piece) => delta({ tool_calls: [piece] })), delta({}, 'tool_calls')) + DONE,
  );
  return end.turn.calls;
}

const user = (text: string): Turn => ({ role: 'user', text });
const result = (id: string, said: string, isError = false) =>
  ({ id, name: 'add', blocks: [{ type: 'text', text: said }], isError }) as any;

// ─── What goes out ────────────────────────────────────────────────────────────────────────────────────────────

test('a request is one POST with a key, tools, and the wish for a stream with its usage', async () => {
  const { server, model } = await start([say('Hello to you.')]);
  const { text, end } = await hear(model, 'Hello');
  assert.deepEqual(
    [text, end.turn, end.stop],
    ['Hello to you.', { role: 'assistant', text: 'Hello to you.', calls: [] }, 'done'],
  );
  assert.deepEqual(end.usage, { input: 10, output: 5, cached: 0 });
  const [{ headers, body }] = server.requests as [any];
  assert.equal(headers.authorization, 'Bearer a-test-key');
  assert.deepEqual(body, {
    model: 'm',
    stream: true,
    stream_options: { include_usage: true },
    tools: [
      {
        type: 'function',
        function: { name: ADD.name, description: ADD.description, parameters: ADD.inputSchema },
      },
    ],
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hello' },
    ],
  });
  assert.deepEqual(server.problems, []);
});

test('no tools and no system leave no trace, no key becomes a word', async () => {
  const { server, model } = await start([say('ok')], {});
  await hear(model, { tools: [], system: ' ' });
  const [{ headers, body }] = server.requests as [any];
  assert.deepEqual(
    [Object.keys(body), headers.authorization],
    [['model', 'stream', 'stream_options', 'messages'], 'Bearer none'],
  );
  assert.deepEqual(body.messages, [{ role: 'user', content: 'Hello' }]);
});

test('the limit has another name at the vendor, and is only sent elsewhere if it is wanted', async () => {
  const { server, model } = await start([say('ok')], { maxTokens: 64 });
  await hear(model, 'Hello');
  assert.equal(server.requests[0]!.body.max_tokens, 64);
  assert.deepEqual(server.problems, []);
  // The vendor cannot be asked in a test, so this looks inside.
  const bodyOf = (model: any) => model.bodyFor({ system: '', turns: [], tools: [] });
  assert.equal(bodyOf(new OpenAi({ model: 'm', key: 'k' })).max_completion_tokens, 16_384);
  assert.equal(bodyOf(new OpenAi({ model: 'm', key: 'k', maxTokens: 9 })).max_completion_tokens, 9);
});

test("each call is followed by its results at once; errors say so; the user's words are joined", async () => {
  const turns: Turn[] = [
    user('one'),
    user('two'),
    {
      role: 'assistant',
      text: '',
      calls: [
        { id: 'a', name: 'add', args: { x: 1 } },
        { id: 'b', name: 'add', unreadable: 'no' },
      ],
    },
    { role: 'tools', results: [result('a', '1'), result('b', 'no such tool', true)] },
    { role: 'assistant', text: 'Well.', calls: [{ id: 'c', name: 'add', args: {} }] },
    { role: 'tools', results: [result('c', '')] },
    { role: 'assistant', text: '', calls: [], native: { wire: 'anthropic', content: [] } },
    user('go on'),
  ];
  const made = (id: string, json: string) => ({
    id,
    type: 'function',
    function: { name: 'add', arguments: json },
  });
  assert.deepEqual(await sent(turns), [
    { role: 'user', content: 'one\n\ntwo' },
    { role: 'assistant', content: null, tool_calls: [made('a', '{"x":1}'), made('b', '{}')] },
    { role: 'tool', tool_call_id: 'a', content: '1' },
    { role: 'tool', tool_call_id: 'b', content: 'Error: no such tool' },
    { role: 'assistant', content: 'Well.', tool_calls: [made('c', '{}')] },
    { role: 'tool', tool_call_id: 'c', content: '(no output)' },
    { role: 'user', content: 'go on' },
  ]);
});

test("images follow the last result, in a message of the user's", async () => {
  const shot = (id: string, data: string) =>
    ({
      id,
      name: 'shot',
      isError: false,
      blocks: [
        { type: 'text', text: 'here' },
        { type: 'image', mimeType: 'image/png', data },
      ],
    }) as any;
  const messages = await sent([
    user('Look.'),
    {
      role: 'assistant',
      text: '',
      calls: ['a', 'b', 'c'].map((id) => ({ id, name: 'shot', args: {} })),
    },
    { role: 'tools', results: [shot('a', 'AAAA'), result('b', 'none'), shot('c', 'BBBB')] },
    user('And?'),
  ]);
  assert.deepEqual(
    messages.slice(2).map(({ role, content }) => [role, content]),
    [
      ['tool', 'here\n[the image follows below]'],
      ['tool', 'none'],
      ['tool', 'here\n[the image follows below]'],
      [
        'user',
        [
          { type: 'text', text: 'From the tool shot:' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
          { type: 'text', text: 'From the tool shot:' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,BBBB' } },
          { type: 'text', text: 'And?' },
        ],
      ],
    ],
  );
});

test('ids and names are made to fit: 40 characters, unique, alike for call and result', async () => {
  const long = 'x'.repeat(60);
  const turns = ['call_0', 'call_0', `${long}1`, `${long}2`].flatMap((id): Turn[] => [
    user('again'),
    { role: 'assistant', text: '', calls: [{ id, name: 'a.b', args: {} }] },
    { role: 'tools', results: [result(id, 'ok')] },
  ]);
  const messages = await sent(turns);
  const made = messages.flatMap(({ tool_calls = [] }) => tool_calls);
  assert.deepEqual(
    made.map(({ id }) => id),
    ['call_0', 'call_0_2', 'x'.repeat(34), `${'x'.repeat(34)}_2`],
  );
  assert.equal(made[0].function.name, 'a_b');
});

// ─── What comes back ──────────────────────────────────────────────────────────────────────────────────────────

test('calls by the book: pieces belong to the call of their index', async () => {
  const found = await assembled(
    { index: 0, id: 'a', type: 'function', function: { name: 'add', arguments: '' } },
    { index: 0, function: { arguments: '{"x"' } },
    { index: 1, id: 'b', type: 'function', function: { name: 'sub', arguments: '{"y"' } },
    { index: 0, function: { arguments: ':1}' } },
    { index: 1, function: { arguments: ':2}' } },
  );
  assert.deepEqual(found, [
    { id: 'a', name: 'add', args: { x: 1 } },
    { id: 'b', name: 'sub', args: { y: 2 } },
  ]);
});

test('Ollama: no index, or always 0; whole arguments in the first piece; no ids', async () => {
  const two = [
    { id: 'a', name: 'add', args: { x: 1 } },
    { id: 'b', name: 'add', args: { x: 2 } },
  ];
  const piece = (more: object, x: number) => ({
    ...more,
    function: { name: 'add', arguments: `{"x":${x}}` },
  });
  assert.deepEqual(await assembled(piece({ id: 'a' }, 1), piece({ id: 'b' }, 2)), two);
  assert.deepEqual(
    await assembled(piece({ id: 'a', index: 0 }, 1), piece({ id: 'b', index: 0 }, 2)),
    two,
  );
  const unnamed = [
    { ...two[0], id: 'call_1' },
    { ...two[1], id: 'call_2' },
  ];
  assert.deepEqual(await assembled(piece({}, 1), piece({}, 2)), unnamed);
  assert.deepEqual(
    await assembled(piece({ index: 0, id: '' }, 1), piece({ index: 0, id: null }, 2)),
    unnamed,
  );
  assert.deepEqual(await assembled(piece({ index: 0 }, 1), piece({ index: 1 }, 2)), unnamed);
});

test('pieces without an index go on with the open call; a name or id that is repeated opens none', async () => {
  const one = [{ id: 'a', name: 'add', args: { x: 1 } }];
  const piece = (more: object, json?: string) => ({
    ...more,
    function: { name: 'add', arguments: json },
  });
  assert.deepEqual(
    await assembled(piece({ id: 'a' }, '{"x'), { function: { arguments: '":1}' } }),
    one,
  );
  assert.deepEqual(
    await assembled(piece({ id: 'a' }, '{"x'), piece({ id: 'a' }, '":1}'), piece({ id: 'a' })),
    one,
  );
  assert.deepEqual(await assembled(piece({}, '{"x'), piece({}, '":1}')), [
    { ...one[0], id: 'call_1' },
  ]);
  assert.deepEqual(
    await assembled(
      { index: 0, id: 'a' },
      { index: 0, function: { name: 'add' } },
      { index: 0, function: { arguments: '{"x":1}' } },
    ),
    one,
  );
  assert.deepEqual(
    await assembled({ id: 'a', function: { name: 'add', arguments: { x: 1 } } }),
    one,
  );
  const late = { index: 0, id: 'a', function: { arguments: '}' } };
  assert.deepEqual(await assembled(piece({ index: 0 }, '{"x":1'), late), one);
  assert.deepEqual(
    await assembled(piece({ id: 'a' }, '{"x":1}'), { function: { arguments: '\n' } }),
    one,
  );
});

test('arguments: none are {}, half ones are not run', async () => {
  const [none, half, list] = await assembled(
    { index: 0, id: 'a', function: { name: 'now' } },
    { index: 1, id: 'b', function: { name: 'add', arguments: '{"x":' } },
    { index: 2, id: 'c', function: { name: 'add', arguments: '[]' } },
  );
  assert.deepEqual(none, { id: 'a', name: 'now', args: {} });
  assert.match(half!.unreadable!, /^Unexpected end of JSON input, in: \{"x":$/);
  assert.deepEqual([half!.args, list!.unreadable], [undefined, 'not a JSON object: []']);
  const { end } = await heard(
    data(
      delta({ tool_calls: [{ index: 0, id: 'a', function: { name: 'now' } }] }),
      delta({}, 'length'),
    ) + DONE,
  );
  assert.deepEqual([end.stop, end.turn.calls[0]!.args], ['length', undefined]);
});

test('a finish reason becomes a word of ours, but calls that are there count more than the word', async () => {
  const reasons = {
    stop: 'done',
    length: 'length',
    content_filter: 'refusal',
    solar_flare: 'solar_flare',
    tool_calls: 'done',
  };
  for (const [reason, stop] of Object.entries(reasons))
    assert.equal((await heard(data(delta({}, reason)) + DONE)).end.stop, stop);
  const piece = { tool_calls: [{ index: 0, id: 'a', function: { name: 'add', arguments: '{}' } }] };
  for (const reason of ['stop', 'tool_calls', 'function_call'])
    assert.equal((await heard(data(delta(piece), delta({}, reason)) + DONE)).end.stop, 'tools');
  const { end } = await heard(
    data(delta({ refusal: 'Not ' }), delta({ refusal: 'that.' }), delta({}, 'stop')) + DONE,
  );
  assert.deepEqual([end.stop, end.explanation], ['refusal', 'Not that.']);
});

test('an end without [DONE] counts if a reason to end was given, else it is none', async () => {
  assert.equal((await heard(data(delta({ content: 'Hello' }, 'stop')))).text, 'Hello');
  assert.equal((await heard(data(delta({ content: 'Hello' })) + DONE)).end.stop, 'done');
  const { server, model } = await start([
    raw('openai', data(delta({ content: 'Hello' }, ''))),
    say('never'),
  ]);
  const error = await rejection(hear(model, 'Hello'));
  assert.deepEqual(
    [error.kind, error.message],
    ['unreachable', 'the answer of openai/m broke off (no finish_reason)'],
  );
  assert.equal(server.requests.length, 1);
});

test('an error inside a 200: asked again if it may pass and nothing was shown', async () => {
  const error = (more: object) => data({ error: { message: 'Oh.', ...more } });
  for (const body of [
    error({ code: 502 }),
    error({ code: '503' }),
    error({ type: 'server_error' }),
  ]) {
    const { server, model } = await start([raw('openai', body), say('ok')]);
    assert.deepEqual([(await hear(model, 'Hello')).text, server.requests.length], ['ok', 2]);
  }
  for (const body of [
    data(delta({ content: 'Hel' })) + error({ code: 502 }),
    error({ type: 'invalid_request_error' }),
    error({ code: 40001 }),
    data({ error: 'Oh.' }),
  ]) {
    const { server, model } = await start([raw('openai', body), say('never')]);
    assert.match(
      (await rejection(hear(model, 'Hello'))).message,
      /^openai\/m answered \d+.*: Oh\.$/,
    );
    assert.equal(server.requests.length, 1);
  }
  assert.equal(
    (await rejection(heard(error({ code: 'context_length_exceeded' })))).kind,
    'too-long',
  );
});

test('usage comes in a last chunk without choices, or not at all', async () => {
  const usage = {
    prompt_tokens: 124,
    completion_tokens: 9,
    prompt_tokens_details: { cached_tokens: 101 },
  };
  const { end } = await heard(
    data(delta({ content: 'Hi' }), delta({}, 'stop'), { choices: [], usage }) + DONE,
  );
  assert.deepEqual(end.usage, { input: 124, output: 9, cached: 101 });
  assert.deepEqual(
    (await heard(data({ choices: [], usage: { prompt_tokens: 1 } }, delta({}, 'stop')))).end.usage,
    {
      input: 1,
      output: 0,
      cached: 0,
    },
  );
  assert.ok(!('usage' in (await heard(data(delta({}, 'stop')))).end));
});

test('I7: counts that are no counts are 0, so that a sum of them stays a sum', async () => {
  for (const odd of ['1e999', '"7"', '-5', '1.5', '{}', 'null']) {
    const usage = `{"choices": [], "usage": {"prompt_tokens": ${odd}, "completion_tokens": 2}}`;
    const { end } = await heard(data(delta({}, 'stop')) + `data: ${usage}\n\n` + DONE);
    assert.deepEqual(end.usage, { input: 0, output: 2, cached: 0 }, odd);
  }
});

test('what is not text does not become text', async () => {
  const odd = [
    { role: 'assistant', content: null },
    { reasoning_content: 'hm', content: '' },
    { content: [{ type: 'text', text: 'x' }] },
    { tool_calls: null },
  ];
  const { text, end } = await heard(
    data(
      ...odd.map((piece) => delta(piece)),
      delta({ content: 'Hi' }, 'stop'),
      {},
      { choices: null },
    ) + DONE,
  );
  assert.deepEqual([text, end.turn.text], ['Hi', 'Hi']);
});

test('a server that does not stream is understood too', async () => {
  const tool_calls = ['a', 'b'].map((id) => ({
    id,
    type: 'function',
    function: { name: 'add', arguments: `{"of":"${id}"}` },
  }));
  const body = {
    choices: [
      {
        message: { role: 'assistant', content: 'Adding.', tool_calls },
        finish_reason: 'tool_calls',
      },
    ],
    usage: { prompt_tokens: 3 },
  };
  const { text, end } = await heard(JSON.stringify(body), 'application/json; charset=utf-8');
  assert.deepEqual(
    [text, end.stop, end.usage],
    ['Adding.', 'tools', { input: 3, output: 0, cached: 0 }],
  );
  assert.deepEqual(
    end.turn.calls.map(({ id, args }) => [id, args]),
    [
      ['a', { of: 'a' }],
      ['b', { of: 'b' }],
    ],
  );
});

test('a whole conversation: two calls at once, results, an answer', async () => {
  const two = [
    { name: 'mcp__demo__add', args: { a: 2, b: 40 } },
    { name: 'mcp__demo__add', args: { a: 1, b: 1 } },
  ];
  const { server, model } = await start([calls(two, { text: 'Two sums.' }), say('42 and 2.')]);
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
