// A model's server that somebody else wrote: @copilotkit/aimock, at a pinned version, in a process of its own. It
// judges whether we understand what comes back, on both wires. What we send it takes as it is; model-server.ts does not.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import type { Model, Turn } from '../../agent.ts';
import { Anthropic } from '../../chapters/18-minds/anthropic.ts';
import { chooseModel } from '../../chapters/18-minds/models.ts';
import { OpenAi } from '../../chapters/18-minds/openai.ts';
import { startAimock } from '../help/aimock.ts';
import { cleanUp, rejection } from '../help/basics.ts';
import { ADD, calls, hear, startModelServer, type WireName } from '../help/model-server.ts';
import { installed } from '../help/installed.ts';

const add = (id: string, a: number, b: number) => ({
  id,
  name: 'mcp__demo__add',
  arguments: { a, b },
});
const error = (status: number, type: string) => ({
  status,
  retryAfter: 0,
  error: { type, message: `the fixture says ${status}` },
});
const long =
  'This text is long enough for several pieces, and it is cut off somewhere in the middle of them.';
const fixtures = [
  { match: { userMessage: 'greet' }, response: { content: 'Hello from aimock, grüße 🦊.' } },
  {
    match: { userMessage: 'think' },
    response: { content: 'Thought.', reasoning: 'Let me think about it for a while.' },
  },
  {
    match: { userMessage: 'sums', hasToolResult: false },
    response: { content: 'Two sums.', toolCalls: [add('t_1', 2, 40), add('t_2', 1, 1)] },
  },
  { match: { userMessage: 'sums', hasToolResult: true }, response: { content: '42 and 2.' } },
  {
    match: { userMessage: 'quiet' },
    response: { toolCalls: [{ name: 'mcp__demo__add', arguments: '{}' }] },
  },
  {
    match: { userMessage: 'busy anthropic', sequenceIndex: 0 },
    response: error(429, 'rate_limit_error'),
  },
  {
    match: { userMessage: 'busy openai', sequenceIndex: 0 },
    response: error(429, 'rate_limit_error'),
  },
  { match: { userMessage: 'busy' }, response: { content: 'Now.' } },
  { match: { userMessage: 'overloaded' }, response: error(529, 'overloaded_error') },
  { match: { userMessage: 'forbidden' }, response: error(403, 'permission_error') },
  { match: { userMessage: 'length' }, response: { content: 'Cut o', finishReason: 'length' } },
  { match: { userMessage: 'strange' }, response: { content: 'Odd.', finishReason: 'solar_flare' } },
  {
    match: { userMessage: 'break' },
    response: { content: long },
    latency: 20,
    truncateAfterChunks: 4,
  },
  {
    match: { userMessage: 'count' },
    response: {
      content: 'Counted.',
      usage: { input_tokens: 12, output_tokens: 7, prompt_tokens: 12, completion_tokens: 7 },
    },
  },
];

let url = '';
after(cleanUp);

async function start(): Promise<void> {
  if (url) return;
  url = await startAimock(fixtures);
}

/** Runs on both wires. */
async function onBoth(check: (model: Model, wire: WireName) => Promise<void>): Promise<void> {
  await start();
  const env = {
    ANTHROPIC_API_KEY: 'k',
    ANTHROPIC_BASE_URL: url,
    OPENAI_API_KEY: 'k',
    OPENAI_BASE_URL: `${url}/v1`,
  };
  await check(chooseModel('anthropic/claude-sonnet-5', { env }), 'anthropic');
  await check(chooseModel('openai/gpt-5', { env }), 'openai');
}

test('a text', async () => {
  await onBoth(async (model) => {
    const { text, notes, end } = await hear(model, 'greet me');
    assert.deepEqual([text, end.turn.text], Array(2).fill('Hello from aimock, grüße 🦊.'));
    assert.deepEqual([notes, end.turn.calls, end.stop], [[], [], 'done']);
  });
});

test('thoughts are not shown; where they are signed they are kept', async () => {
  await onBoth(async (model, wire) => {
    const { text, end } = await hear(model, 'think first');
    assert.equal(text, 'Thought.');
    const signature = 'aimock-placeholder-signature';
    const thought = { type: 'thinking', thinking: 'Let me think about it for a while.', signature };
    assert.deepEqual(
      end.turn.native?.content,
      wire === 'anthropic' ? [thought, { type: 'text', text: 'Thought.' }] : undefined,
    );
  });
});

test('text and two calls at once, their results, the answer; and the journal has what we sent', async () => {
  await onBoth(async (model, wire) => {
    const turns: Turn[] = [{ role: 'user', text: 'sums, please' }];
    const { text, end } = await hear(model, { turns });
    assert.deepEqual([text, end.stop], ['Two sums.', 'tools']);
    const made = [
      { id: 't_1', args: { a: 2, b: 40 } },
      { id: 't_2', args: { a: 1, b: 1 } },
    ];
    assert.deepEqual(
      end.turn.calls,
      made.map((call) => ({ ...call, name: 'mcp__demo__add' })),
    );
    const results = end.turn.calls.map(({ id, name, args }: any) => {
      return {
        id,
        name,
        blocks: [{ type: 'text' as const, text: `${args.a + args.b}` }],
        isError: false,
      };
    });
    turns.push(end.turn, { role: 'tools', results });
    assert.equal((await hear(model, { turns })).text, '42 and 2.');
    const path = wire === 'anthropic' ? '/v1/messages' : '/v1/chat/completions';
    const journal = (await (await fetch(`${url}/__aimock/journal?path=${path}`)).json()) as any;
    const entries = Array.isArray(journal) ? journal : journal.entries;
    const said = JSON.stringify(entries.at(-1).body.messages);
    for (const word of ['sums, please', 'Two sums.', 't_1', 't_2', '42'])
      assert.ok(said.includes(word), said);
  });
});

test('a call without a text', async () => {
  await onBoth(async (model) => {
    const { text, end } = await hear(model, 'quiet now');
    assert.deepEqual([text, end.stop, end.turn.calls.length], ['', 'tools', 1]);
    assert.deepEqual(end.turn.calls[0]!.args, {});
  });
});

test('429 with Retry-After: a note, and the answer', async () => {
  await onBoth(async (model, wire) => {
    const { text, notes } = await hear(model, `busy ${wire}`);
    assert.deepEqual([text, notes], ['Now.', ['the model is busy (429); trying again in 0 s']]);
  });
});

test('529 until we give up', async () => {
  await start();
  const wait = async () => {}; // instead of two minutes
  const models = [
    new Anthropic({ model: 'claude-sonnet-5', key: 'k', baseUrl: url, wait }),
    new OpenAi({ model: 'gpt-5', key: 'k', baseUrl: `${url}/v1`, wait }),
  ];
  for (const model of models) {
    const thrown = await rejection(hear(model, 'overloaded'));
    assert.deepEqual([thrown.kind, thrown.status], ['unreachable', 529]);
    assert.match(
      thrown.message,
      /answered 529 overloaded_error: the fixture says 529 \(request req-.+\); queried \d+ times in 120 s/,
    );
  }
});

test('403 at once', async () => {
  await onBoth(async (model) =>
    assert.deepEqual([(await rejection(hear(model, 'forbidden'))).kind], ['refused']),
  );
});

test('an answer at its limit, and a reason that nobody knows', async () => {
  await onBoth(async (model) => {
    const { text, end } = await hear(model, 'length');
    assert.deepEqual([text, end.stop], ['Cut o', 'length']);
    assert.equal((await hear(model, 'strange')).end.stop, 'solar_flare');
  });
});

test('a stream that breaks in the middle', async () => {
  await onBoth(async (model) => {
    let seen = '';
    const thrown = await rejection(
      hear(model, 'break', (event) => (seen += event.type === 'text' ? event.text : '')),
    );
    assert.equal(thrown.kind, 'unreachable');
    assert.match(thrown.message, /broke off/);
    assert.ok(seen.length > 0 && long.startsWith(seen) && seen !== long, seen);
  });
});

test('usage', async () => {
  await onBoth(async (model) =>
    assert.deepEqual((await hear(model, 'count')).end.usage, { input: 12, output: 7, cached: 0 }),
  );
});

// The vendors' own clients judge the other side: that test/help/model-server.ts speaks as the real servers do.

const sdks = join(installed('@anthropic-ai/sdk@1.8.0', 'openai@7.53.0'), 'node_modules');
const load = async (...path: string[]) =>
  (await import(pathToFileURL(join(sdks, ...path)).href)).default;
const two = calls(
  ['a', 'b'].map((id) => ({ id, name: ADD.name, args: { a: 2, b: 40 } })),
  { text: 'Two sums.', thinking: 'Hm.' },
);

test("the SDK of Anthropic understands the test's server", async () => {
  const server = await startModelServer([two]);
  const Anthropic = await load('@anthropic-ai', 'sdk', 'index.mjs');
  const client = new Anthropic({ apiKey: 'k', baseURL: server.url, maxRetries: 0 });
  const tools = [{ name: ADD.name, description: ADD.description, input_schema: ADD.inputSchema }];
  const messages = [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }];
  const answer = await client.messages
    .stream({ model: 'm', max_tokens: 9, tools, messages })
    .finalMessage();
  assert.deepEqual(server.problems, []);
  const use = (id: string) => ({ type: 'tool_use', id, name: ADD.name, input: { a: 2, b: 40 } });
  const said = [
    { type: 'thinking', thinking: 'Hm.', signature: 'signed' },
    { type: 'text', text: 'Two sums.' },
    use('a'),
    use('b'),
  ];
  assert.deepEqual(
    [answer.stop_reason, JSON.parse(JSON.stringify(answer.content))],
    ['tool_use', said],
  );
  assert.deepEqual([answer.usage.input_tokens, answer.usage.output_tokens], [10, 5]);
});

test("the SDK of OpenAI understands the test's server", async () => {
  const server = await startModelServer([two]);
  const OpenAI = await load('openai', 'index.mjs');
  const client = new OpenAI({ apiKey: 'k', baseURL: `${server.url}/v1`, maxRetries: 0 });
  const tools = [
    {
      type: 'function',
      function: { name: ADD.name, description: ADD.description, parameters: ADD.inputSchema },
    },
  ];
  const messages = [{ role: 'user', content: 'Hello' }];
  const runner = client.chat.completions.stream({
    model: 'm',
    stream_options: { include_usage: true },
    tools,
    messages,
  });
  const { choices, usage } = await runner.finalChatCompletion();
  assert.deepEqual(server.problems, []);
  const [{ finish_reason, message }] = choices;
  const made = message.tool_calls.map(({ id, function: { name, arguments: json } }: any) => [
    id,
    name,
    JSON.parse(json),
  ]);
  assert.deepEqual(
    made,
    ['a', 'b'].map((id) => [id, ADD.name, { a: 2, b: 40 }]),
  );
  assert.deepEqual(
    [finish_reason, message.content, usage.prompt_tokens],
    ['tool_calls', 'Two sums.', 10],
  );
});
