// Chapter 18: events of a stream, how a model is named, and the server that judges what we send.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { afterEach, test } from 'node:test';
import {
  chooseModel,
  formsOf,
  apiKeyVariables,
  ModelError,
  models,
  type ModelRow,
} from '../chapters/18-minds/models.ts';
import { readArguments } from '../chapters/18-minds/fit-for-models.ts';
import { readEvents, type ServerSentEvent } from '../chapters/18-minds/sse.ts';
import { cleanUp, later, rejection } from './help/basics.ts';
import {
  calls,
  hear,
  problemsIn,
  say,
  startModelServer,
  type WireName,
} from './help/model-server.ts';
import { KEY, onBoth, WIRES } from './help/model-wires.ts';

afterEach(cleanUp);

// ─── sse.ts ───────────────────────────────────────────────────────────────────────────────────────────────────

async function events(
  chunks: (string | Uint8Array)[],
  options?: { maxEventBytes: number },
): Promise<ServerSentEvent[]> {
  const encoder = new TextEncoder();
  async function* body() {
    for (const chunk of chunks) yield typeof chunk === 'string' ? encoder.encode(chunk) : chunk;
  }
  const found: ServerSentEvent[] = [];
  for await (const event of readEvents(body(), options)) found.push(event);
  return found;
}

const datas = async (...chunks: (string | Uint8Array)[]) =>
  (await events(chunks)).map(({ data }) => data);

test('an event has a name and data, and ends at an empty line', async () => {
  assert.deepEqual(await events(['event: ping\ndata: {}\n\ndata: second\n\n']), [
    { event: 'ping', data: '{}' },
    { event: 'message', data: 'second' },
  ]);
});

test('lines end in LF, CR LF or CR, also where a chunk ends', async () => {
  assert.deepEqual(await datas('data: a\r\n\r\ndata: b\r\rdata: c\n\n'), ['a', 'b', 'c']);
  assert.deepEqual(await datas('data: a\r', '\n\r', '\ndata: b\r', '\n\r\n'), ['a', 'b']);
  assert.deepEqual(await datas('data: a\r', '\rdata: b\r', '\r'), ['a', 'b']);
  assert.deepEqual(await datas(...'data: a\r\ndata: b\r\n\r\ndata: c\n\n'), ['a\nb', 'c']);
});

test('an event is there as soon as its empty line has begun, not when the next chunk comes', async () => {
  async function* body() {
    yield new TextEncoder().encode('data: now\r\n\r');
    throw new Error('nobody should have asked for more');
  }
  const { value } = await readEvents(body()).next();
  assert.equal(value!.data, 'now');
});

test('the id of an event counts from its end on: one that was cut off must come again', async () => {
  const latest: { id?: string; retry?: number } = {};
  const read = async (text: string) => {
    for await (const event of readEvents(
      (async function* () {
        yield Buffer.from(text);
      })(),
      { latest },
    ))
      void event;
    return latest.id;
  };
  assert.equal(await read('id: 1\ndata: a\n\nid: 2\ndata: half'), '1');
  assert.equal(await read('id: 3\n\n'), '3'); // also without data
  assert.equal(await read('data: b\n\n'), '3'); // it stays in force
});

test('a character that is cut in two arrives whole', async () => {
  const bytes = new TextEncoder().encode('data: grüße 🦊\u2028\n\n');
  assert.deepEqual(await datas(...[...bytes].map((byte) => Uint8Array.of(byte))), [
    'grüße 🦊\u2028',
  ]);
});

test('several data lines are joined by LF; one space after the colon is not part of the value', async () => {
  assert.deepEqual(await datas('data: a\ndata:b\ndata:  c\ndata\n\n'), ['a\nb\n c\n']);
});

test('comments, unknown fields and events without data are skipped, a byte order mark too', async () => {
  assert.deepEqual(
    await datas('\ufeffdata: a\n\n: ping\n\nevent: empty\n\nfoo: bar\ndata: b\n\n'),
    ['a', 'b'],
  );
  assert.equal((await events(['event: lost\n\ndata: a\n\n']))[0]!.event, 'message');
});

test('half an event at the end of the stream is not dispatched', async () => {
  assert.deepEqual(await datas('data: whole\n\ndata: half'), ['whole']);
  assert.deepEqual(await datas('data: whole\n\ndata: half\n'), ['whole']);
});

test('id and retry stay in force, and odd ones do not count', async () => {
  const found = await events([
    'id: 7\nretry: 250\ndata: a\n\nretry: soon\nid: \0\ndata: b\n\nid\ndata: c\n\n',
  ]);
  assert.deepEqual(
    found.map(({ id, retry }) => [id, retry]),
    [
      ['7', 250],
      ['7', 250],
      ['', 250],
    ],
  );
});

test('an event that does not end is given up, in one line or in many', async () => {
  for (const chunk of ['x'.repeat(10), 'data: x\n', 'data: \n']) {
    const error = await rejection(
      events(['data: ', ...Array(50).fill(chunk)], { maxEventBytes: 100 }),
    );
    assert.equal(error.message, 'an event of the stream is larger than 100 bytes');
  }
  assert.equal(
    (await events(Array(50).fill('data: 12345\n\n: ping\n'), { maxEventBytes: 100 })).length,
    50,
  );
});

// ─── models.ts ────────────────────────────────────────────────────────────────────────────────────────────────

const named = (name?: string, env: NodeJS.ProcessEnv = {}, baseUrl?: string) =>
  chooseModel(name, { env, ...(baseUrl ? { baseUrl } : {}) });

function refused(name: string | undefined, env: NodeJS.ProcessEnv, baseUrl?: string): ModelError {
  try {
    named(name, env, baseUrl);
  } catch (error) {
    assert.ok(error instanceof ModelError, String(error));
    assert.equal(error.kind, 'config');
    assert.ok(!error.message.includes(KEY.slice(0, 9)), error.message);
    return error;
  }
  throw new Error(`${name} should have been refused`);
}

test('without a name the key decides, and without a key it is the rehearsal', () => {
  assert.equal(named().name, 'rehearsal');
  assert.equal(named(undefined, { ANTHROPIC_API_KEY: '', OPENAI_API_KEY: '' }).name, 'rehearsal');
  assert.equal(named(undefined, { OPENAI_API_KEY: KEY }).name, 'openai/gpt-5');
  assert.equal(named(undefined, { OPENAI_API_KEY: KEY, OPENAI_MODEL: 'o' }).name, 'openai/o');
  assert.equal(
    named(undefined, { OPENAI_API_KEY: KEY, ANTHROPIC_API_KEY: KEY }).name,
    'anthropic/claude-sonnet-5',
  );
  assert.equal(
    named(undefined, { ANTHROPIC_AUTH_TOKEN: KEY, ANTHROPIC_MODEL: 'a' }).name,
    'anthropic/a',
  );
});

test("a name has one of three forms; the model's own may have slashes", () => {
  assert.equal(named('rehearsal', { ANTHROPIC_API_KEY: KEY }).name, 'rehearsal');
  assert.equal(named('openai/meta/llama', { OPENAI_API_KEY: KEY }).name, 'openai/meta/llama');
  for (const name of ['gpt-5', 'openai', 'openai/', 'anthropic/', 'rehearsal/x', 'google/x', ''])
    assert.match(
      refused(name, { OPENAI_API_KEY: KEY, ANTHROPIC_API_KEY: KEY }).message,
      /rehearsal, anthropic\/<model> or openai\/<model>/,
    );
});

test('a program may add a model of its own: its row says how it is named, which keys it takes, and what the default is', () => {
  const made: unknown[] = [];
  const row = (keys: string[], id?: string): ModelRow => ({
    keys,
    ...(id !== undefined && { defaultId: () => id }),
    make: (given, options) => {
      made.push([given, options.baseUrl]);
      return { name: `mine/${given}`, async *query() {} };
    },
  });
  const rows = { ...models, mine: row(['MY_KEY', 'MY_OTHER_KEY'], 'small'), echo: row([]) };
  const choose = (name?: string, env: NodeJS.ProcessEnv = {}, baseUrl?: string) =>
    chooseModel(name, { models: rows, env, baseUrl }).name;
  assert.equal(choose('mine/big/er', {}, 'http://localhost:1'), 'mine/big/er');
  assert.deepEqual(made.pop(), ['big/er', 'http://localhost:1']);
  assert.equal(
    choose(undefined, { MY_OTHER_KEY: KEY }),
    'mine/small',
    'its key makes it the default',
  );
  assert.equal(
    choose(undefined, { MY_KEY: KEY, OPENAI_API_KEY: KEY }),
    'openai/gpt-5',
    'but the first in the table comes first',
  );
  assert.deepEqual([choose(), choose('echo')], ['rehearsal', 'mine/']);
  const forms = /write rehearsal, anthropic\/<model>, openai\/<model>, mine\/<model> or echo$/;
  for (const name of ['mine', 'mine/', 'echo/x', 'yours/x', 'toString', '__proto__/x'])
    assert.throws(() => choose(name), forms);
  assert.throws(() => choose('echo', {}, 'http://localhost:1'), /needs a model to go with/);
  assert.throws(
    () => chooseModel(undefined, { models: { mine: row(['MY_KEY'], 's') }, env: {} }),
    /no key is set: MY_KEY/,
  );
  assert.deepEqual(apiKeyVariables(rows), [
    'ANTHROPIC_API_KEY',
    'ANTHROPIC_AUTH_TOKEN',
    'OPENAI_API_KEY',
    'MY_KEY',
    'MY_OTHER_KEY',
  ]);
  assert.deepEqual(formsOf(models, 'ID'), ['rehearsal', 'anthropic/ID', 'openai/ID']);
});

test("a missing key is named, except that a server of one's own needs none", () => {
  assert.match(refused('anthropic/a', {}).message, /set ANTHROPIC_API_KEY/);
  assert.match(refused('anthropic/a', { ANTHROPIC_API_KEY: ' ' }).message, /set ANTHROPIC_API_KEY/);
  assert.match(refused('openai/o', {}).message, /set OPENAI_API_KEY/);
  assert.match(refused('openai/o', {}, 'https://api.openai.com/v1/').message, /set OPENAI_API_KEY/);
  assert.equal(named('openai/o', {}, 'http://192.168.0.9:11434/v1').name, 'openai/o');
  assert.equal(named('openai/o', { OPENAI_BASE_URL: 'http://localhost:1/v1' }).name, 'openai/o');
});

test('a base URL must be one, and must not give the key away', () => {
  const env = { OPENAI_API_KEY: KEY, ANTHROPIC_API_KEY: KEY };
  assert.match(
    refused('openai/o', env, 'localhost').message,
    /the base URL of openai\/o is not a URL/,
  );
  assert.match(refused('openai/o', env, 'ftp://x').message, /must be https: or http:/);
  assert.match(
    refused('openai/o', env, `https://me:${KEY}@x/v1`).message,
    /holds a name or a password/,
  );
  for (const host of [
    'example.com',
    '192.168.0.9',
    'localhost.example.com',
    '127.0.0.1.example.com',
  ])
    assert.match(
      refused('anthropic/a', env, `http://${host}`).message,
      /in clear text; use https:/,
    );
  for (const host of ['localhost:1', 'x.localhost', '127.0.0.1:1', '127.9.9.9', '[::1]:1'])
    assert.equal(named('anthropic/a', env, `http://${host}`).name, 'anthropic/a');
  assert.match(refused(undefined, {}, 'http://localhost:1').message, /needs a model/);
});

test('a key that cannot be sent is refused before anything can quote it', () => {
  assert.match(
    refused('openai/o', { OPENAI_API_KEY: `${KEY}\nx` }).message,
    /the key for openai\/o holds a space/,
  );
  assert.match(
    refused('anthropic/a', { ANTHROPIC_API_KEY: `${KEY} ${KEY}` }).message,
    /the key for anthropic\/a holds a space/,
  );
});

test('key, token and base URL come from the environment; the option wins over it', async () => {
  const server = await startModelServer([say('a'), say('b'), say('c'), say('d')]);
  const env = {
    ANTHROPIC_API_KEY: ` ${KEY}\n`,
    ANTHROPIC_AUTH_TOKEN: 'token',
    ANTHROPIC_BASE_URL: server.url,
  };
  await hear(named('anthropic/a', env), 'Hello');
  const token = {
    ANTHROPIC_AUTH_TOKEN: 'token',
    ANTHROPIC_BASE_URL: 'http://localhost:1',
  };
  await hear(named('anthropic/a', token, `${server.url}/v1/`), 'Hello');
  await hear(
    named('openai/o', { OPENAI_API_KEY: KEY, OPENAI_BASE_URL: `${server.url}/v1/` }),
    'Hello',
  );
  await hear(named('openai/o', {}, `${server.url}/v1`), 'Hello');
  const seen = server.requests.map(({ headers }) => [
    headers['x-api-key'],
    headers.authorization,
    headers['anthropic-version'],
  ]);
  assert.deepEqual(seen, [
    [KEY, undefined, '2023-06-01'],
    [undefined, 'Bearer token', '2023-06-01'],
    [undefined, `Bearer ${KEY}`, undefined],
    [undefined, 'Bearer none', undefined],
  ]);
  assert.deepEqual(server.problems, []);
});

// ─── model-server.ts ──────────────────────────────────────────────────────────────────────────────────────────

const JSON_TYPE = { 'content-type': 'application/json' };
const HEADERS = {
  anthropic: { ...JSON_TYPE, 'x-api-key': 'k', 'anthropic-version': '2023-06-01' },
  openai: { ...JSON_TYPE, authorization: 'Bearer k' },
};

const GOOD: { [wire in WireName]: any } = {
  anthropic: {
    model: 'm',
    max_tokens: 10,
    stream: true,
    system: [{ type: 'text', text: 's' }],
    tools: [{ name: 'add', description: 'Adds.', input_schema: { type: 'object' } }],
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'hi' }] },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'ok' },
          ...['t1', 't2'].map((id) => ({ type: 'tool_use', id, name: 'add', input: {} })),
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 't1', content: 'one' },
          {
            type: 'tool_result',
            tool_use_id: 't2',
            content: [
              { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
            ],
          },
          { type: 'text', text: 'go on' },
        ],
      },
    ],
  },
  openai: {
    model: 'm',
    stream: true,
    stream_options: { include_usage: true },
    tools: [
      {
        type: 'function',
        function: { name: 'add', description: 'Adds.', parameters: { type: 'object' } },
      },
    ],
    messages: [
      { role: 'system', content: 's' },
      { role: 'user', content: 'hi' },
      {
        role: 'assistant',
        content: null,
        tool_calls: ['c1', 'c2'].map((id) => ({
          id,
          type: 'function',
          function: { name: 'add', arguments: '{}' },
        })),
      },
      { role: 'tool', tool_call_id: 'c1', content: 'one' },
      { role: 'tool', tool_call_id: 'c2', content: 'two' },
      {
        role: 'user',
        content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }],
      },
    ],
  },
};

/** The problems of a request that was good before `spoil` got it. */
function spoilt(wire: WireName, spoil: (body: any, headers: any) => void): string {
  const body = structuredClone(GOOD[wire]);
  const headers = { ...HEADERS[wire] };
  spoil(body, headers);
  return problemsIn({ wire, headers, body: undefined }, JSON.stringify(body)).join('; ');
}

test("the test's server finds nothing wrong with a good request", () => {
  for (const wire of WIRES)
    assert.equal(
      spoilt(wire, () => {}),
      '',
    );
});

test("the test's server sees what is wrong on the wire of Anthropic", () => {
  const cases: [RegExp, (body: any, headers: any) => void][] = [
    [/key is missing/, (_, headers) => delete headers['x-api-key']],
    [/anthropic-version is missing/, (_, headers) => delete headers['anthropic-version']],
    [/content-type/, (_, headers) => delete headers['content-type']],
    [/model is missing/, (body) => delete body.model],
    [/max_tokens is missing/, (body) => delete body.max_tokens],
    [/stream is not true/, (body) => delete body.stream],
    [/"temperature" is not allowed/, (body) => (body.temperature = 1)],
    [/"top_p" is not allowed/, (body) => (body.top_p = 1)],
    [/"top_k" is not allowed/, (body) => (body.top_k = 1)],
    [/messages are missing/, (body) => (body.messages = [])],
    [/system has an empty block/, (body) => (body.system[0].text = '')],
    [/tools is an empty list/, (body) => (body.tools = [])],
    [/calls, but no tools/, (body) => delete body.tools],
    [/name "a b" does not fit/, (body) => (body.tools[0].name = 'a b')],
    [/same name/, (body) => body.tools.push(body.tools[0])],
    [/not an object at its root/, (body) => (body.tools[0].input_schema = {})],
    [/has anyOf at its root/, (body) => (body.tools[0].input_schema.anyOf = [])],
    [/first message is not the user/, (body) => body.messages.shift()],
    [/roles do not alternate/, (body) => body.messages.splice(1, 0, body.messages[0])],
    [/empty/, (body) => (body.messages[0].content = [])],
    [/no list of blocks/, (body) => (body.messages[0].content = '')],
    [/a text is empty/, (body) => (body.messages[0].content[0].text = ' ')],
    [/user cannot send tool_use/, (body) => (body.messages[0].content[0].type = 'tool_use')],
    [/assistant cannot send image/, (body) => (body.messages[1].content[0].type = 'image')],
    [
      /thought is unsigned/,
      (body) => body.messages[1].content.unshift({ type: 'thinking', thinking: 'hm' }),
    ],
    [/name "x\.y" does not fit/, (body) => (body.messages[1].content[1].name = 'x.y')],
    [/input of add is no object/, (body) => (body.messages[1].content[1].input = '{}')],
    [
      /id "a b" does not fit/,
      (body) => (body.messages[1].content[1].id = body.messages[2].content[0].tool_use_id = 'a b'),
    ],
    [
      /id "t2" is used twice/,
      (body) => (body.messages[1].content[1].id = body.messages[2].content[0].tool_use_id = 't2'),
    ],
    [
      /results are for \[t1\], but the calls were \[t1,t2\]/,
      (body) => body.messages[2].content.splice(1, 1),
    ],
    [
      /results are for \[t2,t1\]/,
      (body) => body.messages[2].content.unshift(...body.messages[2].content.splice(1, 1)),
    ],
    [
      /results are for \[t1,t1,t2\]/,
      (body) => body.messages[2].content.unshift(body.messages[2].content[0]),
    ],
    [
      /result comes after other blocks/,
      (body) => body.messages[2].content.unshift(body.messages[2].content.pop()),
    ],
    [
      /the end: the results are for \[\], but the calls were \[t1,t2\]/,
      (body) => body.messages.pop(),
    ],
    [
      /image has the wrong shape/,
      (body) => (body.messages[2].content[1].content[0].source.media_type = 'image/svg+xml'),
    ],
    [
      /impossible shape/,
      (body) =>
        (body.messages[2].content[1].content[0] = {
          type: 'image',
          mimeType: 'image/png',
          data: 'AAAA',
        }),
    ],
    [/result is an empty list/, (body) => (body.messages[2].content[0].content = [])],
    [
      /with is_error, a result must be text/,
      (body) => (body.messages[2].content[1].is_error = true),
    ],
    [
      /stands at 5 places/,
      (body) =>
        (body.messages[2].content = Array.from('12345', (text) => ({
          type: 'text',
          text,
          cache_control: { type: 'ephemeral' },
        }))),
    ],
    [/half a surrogate pair/, (body) => (body.messages[0].content[0].text = 'a\ud83e')],
  ];
  for (const [pattern, spoil] of cases) assert.match(spoilt('anthropic', spoil), pattern);
});

test("the test's server sees what is wrong on the wire of OpenAI", () => {
  const cases: [RegExp, (body: any, headers: any) => void][] = [
    [/key is missing/, (_, headers) => delete headers.authorization],
    [/model is missing/, (body) => delete body.model],
    [/do not ask for the usage/, (body) => delete body.stream_options],
    [/exclude each other/, (body) => (body.max_tokens = body.max_completion_tokens = 1)],
    [/"temperature" is not allowed/, (body) => (body.temperature = 0)],
    [/type undefined/, (body) => delete body.tools[0].type],
    [
      /not an object at its root/,
      (body) => (body.tools[0].function.parameters = { type: 'array' }),
    ],
    [/calls, but no tools/, (body) => delete body.tools],
    [/system cannot stand here/, (body) => body.messages.push(body.messages[0])],
    [/user says nothing/, (body) => (body.messages[1].content = '')],
    [/roles do not alternate/, (body) => body.messages.splice(1, 0, body.messages[1])],
    [/assistant says nothing/, (body) => delete body.messages[2].tool_calls],
    [/assistant says nothing/, (body) => (body.messages[2].content = '')],
    [/tool_calls is empty/, (body) => (body.messages[2].tool_calls = [])],
    [
      /arguments of add are no object/,
      (body) => (body.messages[2].tool_calls[0].function.arguments = {}),
    ],
    [
      /arguments of add are no object/,
      (body) => (body.messages[2].tool_calls[0].function.arguments = '[]'),
    ],
    [/impossible shape/, (body) => (body.messages[2].tool_calls[0].function.arguments = '{"a":')],
    [/name "a b" does not fit/, (body) => (body.messages[2].tool_calls[0].function.name = 'a b')],
    [
      /id "x{41}" does not fit/,
      (body) =>
        (body.messages[2].tool_calls[0].id = body.messages[3].tool_call_id = 'x'.repeat(41)),
    ],
    [/no such call to answer/, (body) => (body.messages[3].tool_call_id = 'c9')],
    [/no such call to answer/, (body) => body.messages.splice(3, 0, body.messages[3])],
    [/calls were \[c2\]/, (body) => body.messages.splice(4, 1)],
    [
      /calls were \[c1,c2\]/,
      (body) => body.messages.splice(3, 0, { role: 'user', content: 'wait' }),
    ],
    [
      /result must be a text/,
      (body) => (body.messages[3].content = [{ type: 'text', text: 'one' }]),
    ],
    [
      /part has the wrong shape/,
      (body) => (body.messages[5].content[0].image_url.url = 'https://example.com/a.png'),
    ],
    [
      /part has the wrong shape/,
      (body) => (body.messages[5].content[0] = { type: 'text', text: '' }),
    ],
  ];
  for (const [pattern, spoil] of cases) assert.match(spoilt('openai', spoil), pattern);
});

test("the test's server refuses a bad request, tells what is wrong and keeps its step", async () => {
  const server = await startModelServer([say('fine')]);
  const send = (body: any) =>
    fetch(`${server.url}/v1/messages`, {
      method: 'POST',
      headers: HEADERS.anthropic,
      body: JSON.stringify(body),
    });
  const bad = await send({ ...GOOD.anthropic, temperature: 1 });
  assert.deepEqual(
    [bad.status, ((await bad.json()) as any).error.message],
    [400, 'the field "temperature" is not allowed'],
  );
  assert.deepEqual(server.problems, ['the field "temperature" is not allowed']);
  assert.match(await (await send(GOOD.anthropic)).text(), /message_stop/);
  assert.equal((await send(GOOD.anthropic)).status, 400);
  assert.equal((await fetch(`${server.url}/v1/models`)).status, 404);
  assert.deepEqual(server.problems.slice(1), [
    'request 3: the script is over',
    'there is no GET /v1/models',
  ]);
});

test('a script runs on both wires, and its steps may look at the request', async () => {
  const add = [
    { name: 'mcp__demo__add', args: { a: 2, b: 40 } },
    { name: 'mcp__demo__add', args: {} },
  ];
  const usage = { input: 100, output: 7, cached: 60 };
  await onBoth(
    [
      calls(add, { text: 'adding', usage }),
      ({ body }) => say(`${body.messages.length} messages, ${body.model}`),
    ],
    async (model) => {
      const { text, end } = await hear(model, 'Hello');
      assert.deepEqual([text, end.stop, end.usage], ['adding', 'tools', usage]);
      assert.deepEqual(
        end.turn.calls.map(({ name, args }) => ({ name, args })),
        add,
      );
      assert.match((await hear(model, 'Hello')).text, /^\d messages, m$/);
    },
  );
});

test('an answer without an end is ended by us, streamed or not', async () => {
  const flood = (contentType: string, chunk: string) => {
    const server = createServer((_, response) => {
      response.writeHead(200, { 'content-type': contentType });
      const pour = () => {
        while (!response.destroyed && response.write(chunk));
      };
      response.on('drain', pour);
      pour();
    });
    later(() => (server.closeAllConnections(), server.close()));
    return new Promise<string>((done) =>
      server.listen(0, '127.0.0.1', () =>
        done(`http://127.0.0.1:${(server.address() as any).port}`),
      ),
    );
  };
  const delta = JSON.stringify({ choices: [{ delta: { content: 'x'.repeat(60_000) } }] });
  for (const [type, chunk] of [
    ['application/json', 'x'.repeat(60_000)],
    ['text/event-stream', `data: ${delta}\n\n`],
  ] as const) {
    const model = chooseModel('openai/m', { baseUrl: `${await flood(type, chunk)}/v1`, env: {} });
    const error = await rejection(hear(model, 'Hello'));
    assert.match(error.message, /more than 67108864 bytes/);
  }
});

test('B5: arguments that nest too deeply are not read, however a wire sends them', () => {
  const deep = `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
  assert.match(readArguments(deep, false).unreadable!, /^more than 500 levels, in: \{"a":\[\[/);
  assert.deepEqual(readArguments('{"a":[[1]]}', false), { args: { a: [[1]] } });
});
