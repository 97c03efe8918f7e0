// Chapter 30: what a model gets to see: every request whole in the trace, on both wires, with the
// tokens that the model counted.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import {
  Agent,
  Scripted,
  type AgentEvent,
  type AgentOptions,
  type Model,
  type ModelRequest,
  type Tool,
  type Turn,
  type Usage,
} from '../agent.ts';
import { Masker } from '../chapters/17-the-gate/safe-text.ts';
import { Anthropic } from '../chapters/18-minds/anthropic.ts';
import { OpenAi } from '../chapters/18-minds/openai.ts';
import {
  contextTable,
  seenRequest,
  tokensOf,
  toldModel,
  toldQuery,
} from '../chapters/18-minds/seen.ts';
import { Trace } from '../chapters/19-the-terminal/more/trace-file.ts';
import { ToolShelf } from '../chapters/28-a-thousand-tools/tool-shelf.ts';
import { checkTrace } from '../chapters/30-seeing/check.ts';
import { readTrace } from '../chapters/30-seeing/more/read-trace.ts';
import { requestsIn, type RecordedRequest } from '../chapters/30-seeing/requests.ts';
import { McpManager, type Json } from '../mcp.ts';
import { cleanUp, folder, later, rejection } from './help/basics.ts';
import { counting } from './help/counting.ts';
import { fiftyPrompts, variables } from './help/fifty-prompts.ts';
import {
  ADD,
  call,
  problemsIn,
  say,
  startModelServer,
  type WireName,
} from './help/model-server.ts';
import { lines } from './help/traces.ts';
import { jsonLines, place, run } from './help/terminal.ts';

afterEach(cleanUp);

/** The body that these lines stand for, as the wire has it. */
function bodyOf(wire: WireName, { fields: { marked, ...fields }, lists }: RecordedRequest): Json {
  const { system, tools: all, messages } = lists;
  const text = system.map((section) => section.text).join('\n\n');
  const tools = all.length > 0 ? { tools: all } : {}; // none are left out
  const first = { role: 'system', content: text };
  const asSent = (key: string, value: unknown) => {
    return key === 'arguments' ? JSON.stringify(value) : value;
  };
  const said = JSON.parse(JSON.stringify([first, ...messages], asSent));
  if (wire === 'openai') return { ...fields, ...tools, messages: said };
  return { ...fields, ...tools, system: [{ type: 'text', text }], messages };
}

const unmarked = (body: Json): Json =>
  JSON.parse(JSON.stringify(body, (key, value) => (key === 'cache_control' ? undefined : value)));

const eventsIn = (text: string) =>
  readTrace(text).happenings.map(
    ({ record }) => (record.type === 'agent' ? record.event : record) as Json,
  );
/** The rows of /context are together what one of the answers was counted with, and so is their title. */
function isSummedUp(out: string, counts: Usage[]): boolean {
  const [, table = ''] = out.split(/^context: /m);
  const rows = [...table.matchAll(/^(\S.*?) +([\d,]+) {2}[▒█]/gm)].map(([, name, count]) => [
    name,
    count,
  ]);
  const numberOf = (text = '') => Number(text.replaceAll(',', ''));
  const all = sum(rows.map(([, count]) => numberOf(count)));
  const {
    input = 0,
    output = 0,
    cached = 0,
  } = counts.find((each) => each.input + each.output === all) ?? {};
  assert.equal(numberOf(/^[\d,]+/.exec(table)?.[0]), input + output, table);
  assert.ok(table.includes(` ${cached.toLocaleString('en')} from its cache`), table);
  // A prompt is an answer and a prompt more than the request before; nothing else changes here.
  assert.match(table, /^since the request before: new: (a part|[23] parts) of about \d+ tokens$/m);
  for (const name of [
    'tools of ours',
    'tools of calculator, 2',
    'prompts',
    'answers',
    'last answer',
  ])
    assert.ok(
      rows.some(([row]) => row!.startsWith(name)),
      `${name}: ${table}`,
    );
  return input > 0;
}

const sum = (numbers: number[]) => numbers.reduce((all, each) => all + each, 0);

for (const wire of ['anthropic', 'openai'] as const)
  test(`${wire}: fifty prompts: each request is whole in the trace, no part is there twice, and the parts are what was counted`, {
    timeout: 200_000,
  }, async () => {
    const { where, file, text, sent, counts, outs } = await fiftyPrompts(wire);
    const found = [...requestsIn(readTrace(text))];
    assert.equal(found.length, sent.length);
    for (const [n, request] of found.entries())
      assert.deepEqual(bodyOf(wire, request), unmarked(sent[n]!), `request ${n + 1}`);

    // As a prompt, as a part in the trace of each program, and in the text that was summarised.
    assert.equal(text.split('Prompt 3, about').length - 1, 4);
    assert.ok(text.length < sum(sent.map((body) => JSON.stringify(body).length)) / 5);

    const answers = eventsIn(text).filter(({ type }) => type === 'answer');
    assert.deepEqual(
      answers.map(({ usage }) => usage),
      counts,
    );
    for (const out of outs) assert.ok(isSummedUp(out, counts), out);
    const judged = await run(where, ['trace', 'check', file]);
    assert.deepEqual([judged.code, judged.out], [0, ''], judged.out + judged.err);
    assert.match(judged.err, new RegExp(`, ${sent.length} requests to a model: 0 wrong`));
  });

// ─── A trace as a file ───────────────────────────────────────────────────────────────────────────

const query = (id: number, request: Json, more: Json = {}) => ({
  at: id,
  type: 'query',
  id,
  model: 'anthropic/m',
  turns: 1,
  tools: 0,
  request: { model: 'm', max_tokens: 9, ...request },
  ...more,
});
const user = (n: number, text: string) => ({
  n,
  of: 'prompts',
  size: 3,
  json: { role: 'user', content: [{ type: 'text', text }] },
});
const messagesIn = (text: string) =>
  [...requestsIn(readTrace(text))].map(({ lists }) =>
    lists.messages.map((each) => JSON.stringify(each)),
  );
const words = (n: number) => JSON.stringify(user(n, `words ${n}`).json);

test('a trace that was cut off still reads: what is missing is an empty object; a program that goes on with it counts again', () => {
  const whole = [
    { trace: 1 },
    query(1, { messages: [user(0, 'words 0')] }),
    query(2, { messages: [0, user(1, 'words 1')] }),
    query(3, { messages: [0, 1, user(2, 'words 2')] }),
  ];
  const last = [words(0), words(1), words(2)];
  assert.deepEqual(messagesIn(lines(...whole)).at(-1), last);
  const half = lines(...whole);
  assert.deepEqual(messagesIn(half.slice(0, half.length - 40)).length, 2, 'in the midst of a line');
  assert.deepEqual(messagesIn(lines(...whole.slice(0, 2), whole[3])).at(-1), [
    words(0),
    '{}',
    words(2),
  ]);
  assert.deepEqual(
    messagesIn(lines(...whole.slice(3))),
    [['{}', '{}', words(2)]],
    'from the midst on',
  );
  assert.deepEqual(checkTrace(readTrace(lines(...whole.slice(3)))), [], 'and it is not judged');
  const hostile = [
    query(1, { messages: [1e99, -5, 'x', [0, {}], null, {}, { n: {} }] }),
    { type: 'query' },
  ];
  assert.equal(messagesIn(lines(...hostile)).length, 1);
  const again = [
    { trace: 1 },
    query(1, { messages: [user(0, 'other')] }),
    query(2, { messages: [0] }),
  ];
  assert.deepEqual(
    messagesIn(lines(...whole, ...again)).slice(-2),
    Array(2).fill([JSON.stringify(user(0, 'other').json)]),
  );
});

const signal = new AbortController().signal;
const requestOf = (turns: Turn[], tools = [ADD]): ModelRequest => ({
  system: 'Be brief.',
  turns,
  tools,
  signal,
});
const talk = (text: string): Turn[] => [
  { role: 'user', text },
  { role: 'assistant', text: `${text}?`, calls: [] },
];

/** Requests to a model, as the lines of a trace. */
async function traced(model: Model, requests: ModelRequest[], masker = new Masker({})) {
  const file = join(folder(), 'trace.jsonl');
  const trace = new Trace({ warn: () => {} } as never, masker, file);
  for (const request of requests)
    for await (const _ of toldQuery(model, request, (event) => trace.event(event)));
  return readFileSync(file, 'utf8');
}

test('a part is told once, whatever comes between; long texts are cut, and secrets are masked', async () => {
  const model = new Scripted(['one', 'two', 'three']);
  // Not one long word: another file of this process may have made such a word a secret.
  const long = `my-own-secret-7 ${'long '.repeat(6_000)}`;
  const text = await traced(
    model,
    [
      requestOf(talk('one')),
      requestOf(talk('other')),
      requestOf([...talk('one'), ...talk('other'), { role: 'user', text: long }], []),
    ],
    new Masker({ API_KEY: 'my-own-secret-7' }),
  );
  const [first, second, third] = eventsIn(text)
    .filter(({ type }) => type === 'query')
    .map(({ request }) => request as Record<string, unknown[]>);
  assert.deepEqual(
    [first!.tools!.length, first!.system!.length, first!.messages!.length],
    [1, 1, 2],
  );
  assert.deepEqual([second!.tools, second!.system], [[0], [1]], 'of a sub-agent, say');
  assert.deepEqual(
    [third!.tools, third!.messages!.slice(0, 4)],
    [[], [2, 3, 4, 5]],
    'both of them were known',
  );
  const said = JSON.stringify(third!.messages![4]);
  assert.match(said, /\*\*\* [long ]+… \[10016 characters left out\]/);
  assert.ok(!text.includes('my-own-secret-7'));
});

test('what is masked in the arguments of a call is masked on both wires', async () => {
  const call = { id: 'a', name: 'log_in', args: { user: 'ada', password: 'correct horse' } };
  const turns: Turn[] = [
    { role: 'user', text: 'Log in.' },
    { role: 'assistant', text: '', calls: [call] },
    { role: 'tools', results: [result('a')] },
  ];
  for (const wire of ['anthropic', 'openai'] as const) {
    const model = Object.assign(new Scripted(['Done.']), {
      bodyFor: (request: ModelRequest) => models[wire].bodyFor!(request),
    });
    const text = await traced(model, [requestOf(turns)]);
    assert.match(text, /"user":"ada","password":"\*\*\*"/, wire);
    assert.ok(!text.includes('horse'), wire);
  }
});

test('each request is told, also one that is not for the next answer, and one without an answer', async () => {
  const refusing = new Scripted([{ text: 'cut off', stop: 'length' }]);
  const heard: AgentEvent[] = [];
  const asked = toldModel(refusing, (event) => void heard.push(event), 'a summary');
  for await (const _ of asked.query(requestOf(talk('one')))) break;
  await rejection(toldQuery(refusing, requestOf([]), (event) => void heard.push(event)).next());
  const told = heard.map(({ type, ...event }) => [
    type,
    (event as Json).purpose,
    (event as Json).stop,
  ]);
  assert.deepEqual(told, [
    ['query', 'a summary', undefined],
    ['answer', undefined, 'none'],
    ['query', undefined, undefined],
    ['answer', undefined, 'none'],
  ]);
  assert.equal(asked.name, refusing.name);
});

test('a page that is opened later gets every part again', async () => {
  const file = join(folder(), 'trace.jsonl');
  const trace = new Trace({ warn: () => {} } as never, new Masker({}), file);
  const model = new Scripted(['one', 'two']);
  const ask = async () => {
    for await (const _ of toldQuery(model, requestOf(talk('one')), (event) => trace.event(event)));
  };
  await ask();
  const seen: string[] = [];
  trace.follow((line) => seen.push(line));
  await ask();
  const [page] = [...requestsIn(readTrace(seen.join('\n')))];
  const [, inFile] = [...requestsIn(readTrace(readFileSync(file, 'utf8')))];
  assert.equal(page!.lists.messages.length, 2);
  assert.deepEqual(page!.lists, inFile!.lists);
});

// ─── What both wires demand ──────────────────────────────────────────────────────────────────────

const IMAGE = { type: 'image', mimeType: 'image/png', data: 'aGVsbG8=' } as const;
const result = (id: string) => ({
  id,
  name: ADD.name,
  blocks: [{ type: 'text' as const, text: id }],
  isError: false,
});
const TURNS: Turn[] = [
  { role: 'user', text: 'Look.', images: [IMAGE] },
  {
    role: 'assistant',
    text: '',
    calls: ['a', 'b'].map((id) => ({ id, name: ADD.name, args: { a: 1, b: 2 } })),
  },
  { role: 'tools', results: [result('a'), { ...result('b'), isError: true }] },
  { role: 'assistant', text: 'Done.', calls: [] },
  { role: 'user', text: 'Thanks.' },
];
const HEADERS = {
  'content-type': 'application/json',
  authorization: 'Bearer k',
  'x-api-key': 'k',
  'anthropic-version': '2023-06-01',
};

const models: Record<WireName, Model> = {
  anthropic: new Anthropic({ model: 'm', key: 'k' }),
  openai: new OpenAi({ model: 'm', key: 'k', maxTokens: 9 }),
};

type Break = [name: string, change: (body: any) => unknown, rule: string];
const many = Array.from({ length: 129 }, (_, n) => `t${n}`);
const BREAKS: Record<WireName, Break[]> = {
  anthropic: [
    ['a call without its result', ({ messages }) => messages[2].content.pop(), 'result'],
    ['results in another order', ({ messages }) => messages[2].content.reverse(), 'result'],
    [
      'a result twice',
      ({ messages }) => messages[2].content.push(messages[2].content[0]),
      'result',
    ],
    ['a result of nothing', ({ messages }) => (messages[2].content[0].tool_use_id = 'c'), 'result'],
    [
      'an odd id',
      ({ messages }) => (messages[1].content[0].id = messages[2].content[0].tool_use_id = 'a b'),
      'messages',
    ],
    ['an id twice', ({ messages }) => messages.push(messages[1], messages[2]), 'id'],
    ['a role twice', ({ messages }) => messages.push(messages[4]), 'roles'],
    ['the model first', ({ messages }) => messages.shift(), 'request'],
    ['an empty text', ({ messages }) => (messages[4].content[0].text = ' '), 'messages'],
    ['an empty message', ({ messages }) => (messages[4].content = []), 'messages'],
    ['an odd name', ({ tools }) => (tools[0].name = 'a tool'), 'tools'],
    ['a name twice', ({ tools }) => tools.push(tools[0]), 'tools'],
    ['a choice at the root', ({ tools }) => (tools[0].input_schema.anyOf = [{}]), 'tools'],
    ['another type at the root', ({ tools }) => (tools[0].input_schema.type = 'array'), 'tools'],
    ['no limit', (body) => delete body.max_tokens, 'request'],
    ['no tools, and calls', (body) => delete body.tools, 'request'],
    [
      'an error with a picture',
      ({ messages }) => messages[2].content[1].content.push(messages[0].content[0]),
      'messages',
    ],
    [
      'a picture of another type',
      ({ messages }) => (messages[0].content[0].source.media_type = 'image/tiff'),
      'messages',
    ],
    [
      'a thought without a signature',
      ({ messages }) => messages[3].content.unshift({ type: 'thinking', thinking: 'hm' }),
      'messages',
    ],
    [
      'a result by the assistant',
      ({ messages }) => messages[3].content.push(messages[2].content[0]),
      'messages',
    ],
    [
      'a fifth mark',
      ({ messages }) =>
        messages
          .slice(0, 4)
          .forEach(({ content }: any) => (content[0].cache_control = { type: 'ephemeral' })),
      'request',
    ],
  ],
  openai: [
    ['a call without its result', ({ messages }) => messages.splice(4, 1), 'result'],
    [
      'results in another order',
      ({ messages }) => messages.splice(3, 2, messages[4], messages[3]),
      'result',
    ],
    ['a result too late', ({ messages }) => messages.push(messages.splice(4, 1)[0]), 'result'],
    [
      'an id that is too long',
      ({ messages }) => (messages[2].tool_calls[0].id = messages[3].tool_call_id = 'a'.repeat(41)),
      'messages',
    ],
    [
      'arguments that are no object',
      ({ messages }) => (messages[2].tool_calls[0].function.arguments = '[1]'),
      'messages',
    ],
    ['an empty result', ({ messages }) => (messages[3].content = ''), 'messages'],
    ['nothing said', ({ messages }) => (messages[5].content = null), 'messages'],
    ['no calls in a list of calls', ({ messages }) => (messages[5].tool_calls = []), 'messages'],
    [
      'too many tools',
      ({ tools }) =>
        many.forEach((name) =>
          tools.push({ ...tools[0], function: { ...tools[0].function, name } }),
        ),
      'request',
    ],
    ['two limits', (body) => (body.max_tokens = 9), 'request'],
    ['another kind of tool', ({ tools }) => (tools[0].type = 'tool'), 'tools'],
    ['no tools, and calls', (body) => delete body.tools, 'request'],
    ['the model first', ({ messages }) => messages.splice(1, 1), 'request'],
    ['a role twice', ({ messages }) => messages.push(messages[6]), 'roles'],
  ],
};

for (const wire of ['anthropic', 'openai'] as const)
  test(`${wire}: trace check finds what the strict server refuses, and nothing in a request that it takes`, async () => {
    const good = models[wire].bodyFor!(requestOf(TURNS));
    const judged = async (body: Json) => {
      const model = Object.assign(new Scripted(['Fine.']), {
        name: `${wire}/m`,
        bodyFor: () => body,
      });
      return checkTrace(readTrace(await traced(model, [requestOf([])])));
    };
    const refused = (body: Json) =>
      problemsIn({ wire, headers: HEADERS, body: undefined }, JSON.stringify(body));
    assert.deepEqual([refused(good), await judged(good)], [[], []]);
    for (const [name, change, rule] of BREAKS[wire]) {
      const body = structuredClone(good);
      change(body);
      assert.notDeepEqual(refused(body), [], name);
      const found = await judged(body);
      assert.deepEqual(
        [found[0]?.who, found[0]?.line, found.map((each) => each.rule).includes(rule)],
        ['client', 2, true],
        `${name}: ${JSON.stringify(found)}`,
      );
    }
  });

test('a mistake that stays in the conversation is told once, at the line where it came in', async () => {
  const bad: Turn[] = [
    ...TURNS,
    { role: 'assistant', text: 'a', calls: [] },
    { role: 'user', text: 'b' },
  ];
  const tool = { ...ADD, inputSchema: { type: 'object', properties: {} }, name: 'an odd name' };
  const model = Object.assign(new Scripted(['1', '2', '3']), {
    name: 'anthropic/m',
    bodyFor: (request: ModelRequest) => models.anthropic.bodyFor!(request),
  });
  const requests = [requestOf(TURNS), requestOf(TURNS, [ADD, tool]), requestOf(bad, [ADD, tool])];
  const text = await traced(model, requests);
  const found = checkTrace(readTrace(text)).map(({ line, rule, text: what }) => [line, rule, what]);
  assert.deepEqual(found, [[4, 'tools', 'name should match "^[A-Za-z0-9_-]{1,64}$"']]);
});

// ─── What it is full of ──────────────────────────────────────────────────────────────────────────

test('what was left out, and why: the shelf, a result that was too long, turns that became a summary; also after --resume', async () => {
  const fixture = '../fixtures/catalogue.mjs';
  const { services, madeUp } = await import(fixture);
  const mcp = new McpManager({ load: () => services(), transports: madeUp });
  later(() => mcp.disconnectAll());
  const shelf = new ToolShelf();
  const look: Tool = {
    definition: { name: 'look', description: 'Looks.', inputSchema: { type: 'object' } },
    readOnly: true,
    run: async () => ({ blocks: [{ type: 'text', text: 'x'.repeat(200_000) }], isError: false }),
  };
  const model = new Scripted([
    { calls: [{ name: 'look', args: {} }] },
    'Done.',
    'A summary.',
    'And?',
  ]);
  const options: AgentOptions = {
    model,
    mcp,
    shelf: shelf.arrange,
    tools: [shelf.findTools, look],
    gate: async () => ({ allowed: true }),
    resultsFolder: folder(),
  };
  const agent = new Agent(options);
  const leftNow = (one: Agent) => {
    one.tools.refresh();
    one.tools.arrange();
    return seenRequest(model, one.nextRequest()).left;
  };
  await agent.chat('Look.');
  const left = leftNow(agent);
  const shelved = left.filter(({ list }) => list === 'shelf');
  assert.equal(shelved.length, 20, 'servers');
  assert.equal(sum(shelved.map(({ count }) => count)), 400);
  assert.ok(shelved.every(({ tokens }) => tokens > 100));
  const [cut] = left.filter(({ list }) => list === 'budget');
  assert.deepEqual([cut!.of, cut!.count], ['look', 200_000 - 2048 - 1024]);
  const kept: Turn[] = JSON.parse(JSON.stringify(agent.turns));
  assert.deepEqual(leftNow(new Agent({ ...options, turns: kept })), left, 'after --resume');
  await agent.compact();
  const [summary] = leftNow(agent).filter(({ list }) => list === 'compaction');
  assert.equal(summary!.count, 4);
  assert.ok(!leftNow(agent).some(({ list }) => list === 'budget'));
  const { rows } = contextTable(seenRequest(model, agent.nextRequest()));
  assert.deepEqual(
    rows.map(({ list, of }) => `${list} ${of}`),
    ['tools ', 'system system', 'system shelf', 'messages summary', 'messages answers'],
  );
});

test('an image is not its bytes: ten times the bytes are the same tokens; a text of them is not', () => {
  const data = 'QUJD'.repeat(1000);
  const image = (bytes: string) => ({ type: 'image', source: { type: 'base64', data: bytes } });
  assert.equal(tokensOf(image(data)), tokensOf(image(data.repeat(10))));
  const url = (bytes: string) => ({ image_url: { url: `data:image/png;base64,${bytes}` } });
  assert.equal(tokensOf(url(data)), tokensOf(url(data.repeat(10))));
  assert.ok(tokensOf({ text: data.repeat(10) }) > 5 * tokensOf({ text: data }));
});

test('-p --json: at the end the context; before the first one /context is an estimate', async () => {
  const where = place();
  const { counts, answering } = counting();
  const model = await startModelServer([answering(call('ls', {})), answering(say('Nothing.'))]);
  const env = variables('anthropic', model.url);
  const { out } = await run(where, ['-p', 'look', '--json'], { env });
  const found = jsonLines(out).flatMap(({ context }) => context ?? []);
  assert.deepEqual(
    found.map(({ tokens, cached, isCounted }) => ({ tokens, cached, isCounted })),
    counts.slice(-1).map(({ input, cached }) => ({ tokens: input, cached, isCounted: true })),
  );
  for (const { rows, tokens, cached } of found) {
    assert.equal(sum(rows.map((row: Json) => row.tokens)), tokens);
    assert.equal(sum(rows.map((row: Json) => row.cached)), cached);
  }
  const before = await run(where, [], { env, input: '/context\n' });
  assert.match(
    before.out,
    /^context: [\d,]+ tokens of 200,000\n.*\nan estimate: nothing was counted yet\ntools of ours/,
  );
});
