// Chapter 18: what becomes of a request, over both wires: tried again, broken off, refused, cut.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { afterEach, test } from 'node:test';
import type { Model } from '../agent.ts';
import { Anthropic } from '../chapters/18-minds/anthropic.ts';
import { OpenAi } from '../chapters/18-minds/openai.ts';
import { cleanUp, onLoopback, rejection, until } from './help/basics.ts';
import {
  ADD,
  call,
  fail,
  hear,
  raw,
  say,
  startModelServer,
  type WireName,
} from './help/model-server.ts';
import { hasty, KEY, onBoth, WIRES } from './help/model-wires.ts';

afterEach(cleanUp);

const SOON = { 'retry-after-ms': '20' };

function modelAt(wire: WireName, url: string): Model {
  return wire === 'anthropic'
    ? new Anthropic({ model: 'm', key: KEY, baseUrl: url })
    : new OpenAi({ model: 'm', key: KEY, baseUrl: `${url}/v1` });
}

test('what may pass is asked again, twice, with a note each', async () => {
  for (const status of [408, 409, 429, 500, 503, 529]) {
    await onBoth(
      [fail(status, { headers: SOON }), fail(status, { headers: SOON }), say('at last')],
      async (model, { requests }) => {
        const { text, notes } = await hear(model, 'Hello');
        assert.equal(text, 'at last');
        const what = [429, 503, 529].includes(status) ? 'is busy' : 'has failed';
        assert.deepEqual(
          notes,
          Array(2).fill(`the model ${what} (${status}); trying again in 0 s`),
        );
        assert.deepEqual(requests[2]!.body, requests[0]!.body);
      },
    );
  }
});

test('what is not about being busy is tried three times, then the server has the last word', async () => {
  await onBoth(Array(4).fill(fail(500, { headers: SOON })), async (model, { requests }) => {
    const error = await rejection(hear(model, 'Hello'));
    assert.deepEqual([error.kind, error.status, requests.length], ['unreachable', 500, 3]);
    assert.equal(
      error.message,
      `${model.name} answered 500 api_error: the script says 500 (request req_test)`,
    );
  });
});

test('a busy model is tried for two minutes, in pauses that grow; the last error tells how often', async () => {
  const ways = [
    fail(529, { type: 'overloaded_error', message: 'Overloaded' }),
    fail(503),
    fail(429),
  ];
  for (const [n, way] of ways.entries()) {
    const server = await startModelServer(Array(30).fill(way));
    const { model, pauses } = hasty(WIRES[n % 2]!, server.url);
    const error = await rejection(hear(model, 'Hello'));
    assert.equal(Math.round(pauses.reduce((sum, ms) => sum + ms)), 120_000);
    assert.equal(server.requests.length, pauses.length + 1);
    assert.ok(pauses.length < 15, `${pauses}`);
    const growing = pauses.slice(0, 6); // 0.5, 1, 2, 4, 8, 16 s, each less a quarter at most
    assert.ok(
      growing.every((ms, at) => ms <= 500 * 2 ** at && ms >= 375 * 2 ** at),
      `${pauses}`,
    );
    assert.ok(pauses.every((ms) => ms <= 30_000));
    assert.ok(
      error.message.endsWith(`; queried ${pauses.length + 1} times in 120 s, so try again later`),
      error.message,
    );
    assert.equal(error.kind, 'unreachable');
  }
});

test('busy in the stream, before any text, is busy too; and what else fails in between has its own two tries', async () => {
  const overloaded = { anthropic: 'overloaded_error', openai: 'engine_overloaded_error' };
  for (const wire of WIRES) {
    const error = { type: overloaded[wire], message: 'Overloaded' };
    const busy = raw(wire, `data: ${JSON.stringify({ type: 'error', error })}\n\n`);
    const server = await startModelServer([
      busy,
      busy,
      fail(500),
      busy,
      fail(500),
      busy,
      say('at last'),
    ]);
    const { model, pauses } = hasty(wire, server.url);
    const { text, notes } = await hear(model, 'Hello');
    assert.deepEqual([text, pauses.length, server.problems], ['at last', 6, []]);
    assert.match(notes[0]!, /^the model is busy \((503|529)\); trying again in 0\.[45] s$/);
  }
});

test('a server that says "at once" for ever is not queried without a pause, and its own long pause is kept', async () => {
  const atOnce = await startModelServer(
    Array(30).fill(fail(529, { headers: { 'retry-after': '0' } })),
  );
  const first = hasty('anthropic', atOnce.url);
  await rejection(hear(first.model, 'Hello'));
  assert.deepEqual(first.pauses.slice(0, 2), [0, 0]);
  assert.ok(
    first.pauses.slice(2).every((ms) => ms > 1),
    `${first.pauses}`,
  );
  assert.ok(atOnce.requests.length < 15);
  const slow = await startModelServer(
    Array(30).fill(fail(429, { headers: { 'retry-after': '50' } })),
  );
  const second = hasty('openai', slow.url);
  await rejection(hear(second.model, 'Hello'));
  assert.deepEqual(second.pauses, [50_000, 50_000, 50_000]);
});

test('what will not pass is not asked again', async () => {
  for (const status of [400, 401, 402, 403, 404, 422]) {
    await onBoth([fail(status), say('never')], async (model, { requests }) => {
      const error = await rejection(hear(model, 'Hello'));
      assert.deepEqual([error.kind, error.status, requests.length], ['refused', status, 1]);
    });
  }
});

test('x-should-retry wins over the status', async () => {
  await onBoth(
    [fail(400, { headers: { 'x-should-retry': 'true', ...SOON } }), say('yes')],
    async (model) => {
      assert.equal((await hear(model, 'Hello')).text, 'yes');
    },
  );
  await onBoth(
    [fail(500, { headers: { 'x-should-retry': 'false' } }), say('never')],
    async (model, { requests }) => {
      assert.equal((await rejection(hear(model, 'Hello'))).status, 500);
      assert.equal(requests.length, 1);
    },
  );
});

/** The note about a wait, which is then broken off. */
async function noted(
  headers: Record<string, string>,
  wire: WireName = 'anthropic',
): Promise<string> {
  const server = await startModelServer([fail(429, { headers })]);
  const controller = new AbortController();
  const reason = new Error('stop');
  let note = '';
  const error = await rejection(
    hear(modelAt(wire, server.url), { signal: controller.signal }, (event) => {
      if (event.type === 'note') note = event.text;
      controller.abort(reason);
    }),
  );
  assert.equal(error, reason);
  assert.equal(server.requests.length, 1);
  return note;
}

test('the server says how long to wait: in milliseconds, seconds or by date, a minute at most', async () => {
  assert.match(await noted({ 'retry-after-ms': '1500', 'retry-after': '7' }), /in 1\.5 s$/);
  assert.match(await noted({ 'retry-after': '7' }), /in 7 s$/);
  assert.match(await noted({ 'retry-after': '3600' }), /in 60 s$/);
  assert.match(
    await noted({ 'retry-after': new Date(Date.now() + 3_600_000).toUTCString() }),
    /in 60 s$/,
  );
  assert.match(
    await noted({ 'retry-after': new Date(Date.now() + 30_000).toUTCString() }),
    /in (2\d|30)(\.\d)? s$/,
  );
});

test('without a word from the server, or an odd one, the wait is half a second, less a quarter at most', async () => {
  const odd: Record<string, string>[] = [
    {},
    { 'retry-after': 'later' },
    { 'retry-after-ms': '-5' },
    { 'retry-after-ms': 'x', 'retry-after': '' },
  ];
  for (const headers of odd) assert.match(await noted(headers), /in 0\.[45] s$/);
});

test('no retry when the money is spent, though it looks like a busy server', async () => {
  const spent = [
    fail(429, {
      type: 'rate_limit_error',
      details: { error_code: 'enforced_spend_limit_reached' },
    }),
    fail(429, { type: 'insufficient_quota', code: 'organization_spend_limit_exceeded' }),
  ];
  for (const step of spent) {
    await onBoth([step, say('never')], async (model, { requests }) => {
      const error = await rejection(hear(model, 'Hello'));
      assert.deepEqual([error.kind, error.status, requests.length], ['refused', 429, 1]);
    });
  }
  const withDate = fail(429, {
    headers: { 'retry-after': '0' },
    details: { error_code: 'enforced_spend_limit_reached' },
  });
  await onBoth([withDate, say('again')], async (model) =>
    assert.equal((await hear(model, 'Hello')).text, 'again'),
  );
});

test('a conversation that does not fit is told apart, and not asked again', async () => {
  const ways = [
    fail(400, {
      type: 'invalid_request_error',
      message: 'prompt is too long: 210000 tokens > 200000 maximum',
    }),
    fail(400, {
      type: 'invalid_request_error',
      code: 'context_length_exceeded',
      message: 'Too much.',
    }),
    fail(400, { message: "This model's maximum context length is 8192 tokens." }),
    fail(400, {
      type: 'exceed_context_size_error',
      message: 'the request exceeds the available context size',
    }),
    fail(413, { type: 'request_too_large', headers: { 'x-should-retry': 'true' } }),
  ];
  for (const way of ways) {
    await onBoth([way, say('never')], async (model, { requests }) => {
      assert.equal((await rejection(hear(model, 'Hello'))).kind, 'too-long');
      assert.equal(requests.length, 1);
    });
  }
});

test('a stream that breaks before any text is asked for again', async () => {
  await onBoth(
    [say('', { cutAfter: 1 }), call('mcp__demo__add', { a: 1 }, { cutAfter: 4 }), say('whole')],
    async (model) => {
      const { text, notes, end } = await hear(model, 'Hello');
      assert.deepEqual([text, end.turn.calls], ['whole', []]);
      assert.equal(notes.length, 2);
      assert.match(notes[0]!, /^the answer of \w+\/m broke off \(.+\); trying again in 0\.[45] s$/);
      assert.match(notes[1]!, /trying again in (0\.[89]|1) s$/); // twice as long, less a quarter at most
    },
  );
});

test('a stream that breaks after text is an error: what was shown cannot be taken back', async () => {
  await onBoth(
    [say('a long answer, cut off', { cutAfter: 5 }), say('never')],
    async (model, { requests }) => {
      let seen = '';
      const error = await rejection(
        hear(model, 'Hello', (event) => (seen += event.type === 'text' ? event.text : '')),
      );
      assert.deepEqual([error.kind, requests.length], ['unreachable', 1]);
      assert.match(error.message, /^the answer of \w+\/m broke off/);
      assert.match(seen, /^a long/);
    },
  );
});

test('a server that is not there is asked three times and named', async () => {
  const server = await startModelServer([]);
  await server.close();
  const notes: string[] = [];
  const error = await rejection(
    hear(
      hasty('openai', server.url).model,
      'Hello',
      (event) => 'text' in event && notes.push(event.text),
    ),
  );
  assert.deepEqual([error.kind, error.status, notes.length], ['unreachable', undefined, 2]);
  assert.equal(
    error.message,
    `cannot reach openai/m at ${server.url}/v1/chat/completions: ECONNREFUSED`,
  );
});

test('a redirect is not followed, so that the key stays here', async () => {
  const elsewhere = await startModelServer([say('stolen')]);
  await onBoth(
    [fail(307, { headers: { location: `${elsewhere.url}/v1/messages?x=1` } })],
    async (model) => {
      const error = await rejection(hear(model, 'Hello'));
      assert.deepEqual([error.kind, error.status], ['config', 307]);
      assert.ok(
        error.message.includes(
          `redirects (307) to ${elsewhere.url}/v1/messages; the key is not sent on`,
        ),
        error.message,
      );
    },
  );
  assert.deepEqual([elsewhere.requests, elsewhere.problems], [[], []]);
});

test('an error is reduced to its message, whatever the body is, and never holds the key', async () => {
  const html = '<!DOCTYPE html><html><head><title>Bad Gateway</title></head><body>…</body></html>';
  const bodies: [string, RegExp][] = [
    [html, /: a web page instead of an answer, "Bad Gateway"/],
    ['<html></html>', /: a web page instead of an answer/],
    ['', /: Not Found/],
    ['{"error":"model \\"x\\" not found"}', /: model "x" not found/],
    ['{"detail":"no such route"}', /: no such route/],
    ['{"message":"nothing here"}', /: nothing here/],
    ['null', /: null/],
    ['plain words', /: plain words/],
    ['x'.repeat(1_000_000), /: x{1000};/],
    [
      `{"error":{"message":"Incorrect API key provided: ${KEY}"}}`,
      /Incorrect API key provided: \[key\]/,
    ],
  ];
  for (const [body, pattern] of bodies) {
    await onBoth([fail(404, { body })], async (model) => {
      const { message } = await rejection(hear(model, 'Hello'));
      assert.match(message, pattern);
      assert.match(
        message,
        /check the name of the model and the base URL \(we asked http:.+\/v1\/(messages|chat)/,
      );
      assert.ok(message.length < 1_300 && !message.includes(KEY), message);
    });
  }
  await onBoth([fail(401)], async (model) =>
    assert.match((await rejection(hear(model, 'Hello'))).message, /check the key/),
  );
});

test('an error that does not end is not read to its end', async () => {
  const server = createServer((_, response) => {
    response.writeHead(400);
    // When the client has left, each write fails at once. Node 26 takes no breath in between to
    // notice that the connection is closed.
    const more = (error?: Error | null) => {
      if (!error && !response.destroyed) response.write('x'.repeat(10_000), more);
    };
    more();
  });
  const url = await onLoopback(server);
  const error = await rejection(hear(modelAt('anthropic', url), 'Hello'));
  assert.deepEqual([error.kind, error.status], ['refused', 400]);
});

test('a web page with status 200 is no answer', async () => {
  for (const wire of WIRES) {
    const server = await startModelServer([
      raw(wire, '<html>Welcome</html>', { contentType: 'text/html; charset=utf-8' }),
    ]);
    const error = await rejection(hear(modelAt(wire, server.url), 'Hello'));
    assert.equal(error.kind, 'protocol');
    assert.match(error.message, /answered with a web page; check the base URL$/);
  }
});

test('nonsense in the stream is an error that quotes it, and is not asked for again', async () => {
  for (const [wire, data] of WIRES.flatMap((wire) =>
    ['{"type":', '42', 'null'].map((data) => [wire, data] as const),
  )) {
    const server = await startModelServer([raw(wire, `data: ${data}\n\n`)]);
    const error = await rejection(hear(modelAt(wire, server.url), 'Hello'));
    assert.deepEqual([error.kind, server.requests.length], ['protocol', 1]);
    assert.equal(error.message, `${wire}/m sent something that is no JSON object: ${data}`);
  }
});

test('a shape that nobody expects is an error too, not a crash', async () => {
  const shapes: [WireName, object][] = [
    ['anthropic', { type: 'content_block_delta', index: 0, delta: null }],
    ['openai', { choices: [{ delta: { tool_calls: 7 } }] }],
  ];
  const begin =
    'data: {"type":"content_block_start","index":0,"content_block":{"type":"text"}}\n\n';
  for (const [wire, shape] of shapes) {
    const server = await startModelServer([
      raw(wire, `${begin}data: ${JSON.stringify(shape)}\n\n`),
    ]);
    const error = await rejection(hear(modelAt(wire, server.url), 'Hello'));
    assert.deepEqual([error.kind, error.cause instanceof TypeError], ['protocol', true]);
    assert.match(error.message, /^\w+\/m sent something that makes no sense: TypeError/);
  }
});

test('an abort ends the answer with its reason, and the connection', async () => {
  await onBoth(
    [say('a slow answer, piece by piece', { delayMs: 30 })],
    async (model, { requests }) => {
      const controller = new AbortController();
      const reason = new Error('enough');
      const stop = (event: { type: string }) => event.type === 'text' && controller.abort(reason);
      assert.equal(await rejection(hear(model, { signal: controller.signal }, stop)), reason);
      await until(() => requests[0]!.abandoned);
    },
  );
});

test('who stops listening closes the connection too', async () => {
  await onBoth(
    [say('a slow answer, piece by piece', { delayMs: 30 })],
    async (model, { requests }) => {
      for await (const event of model.query({
        system: '',
        turns: [{ role: 'user', text: 'Hi' }],
        tools: [],
        signal: new AbortController().signal,
      }))
        if (event.type === 'text') break;
      await until(() => requests[0]!.abandoned);
    },
  );
});

test('half an emoji, cut off somewhere, does not go out', async () => {
  await onBoth([say('ok')], async (model, { requests }) => {
    await hear(model, 'a \ud83e b 🦊');
    assert.match(JSON.stringify(requests[0]!.body.messages), /a \ufffd b 🦊/);
  });
});

test('a choice at the root of a schema moves into the description, for both APIs refuse it', async () => {
  const anyOf = [{ required: ['a'] }, { required: ['b'] }];
  const tools = [
    { ...ADD, inputSchema: { properties: { a: {} }, anyOf } },
    { ...ADD, name: 'bare', inputSchema: {} },
  ];
  await onBoth([say('ok')], async (model, { requests }) => {
    await hear(model, { tools });
    const [first, second] = requests[0]!.body.tools.map((tool: any) => tool.function ?? tool);
    assert.deepEqual(first.input_schema ?? first.parameters, {
      properties: { a: {} },
      type: 'object',
    });
    assert.ok(first.description.endsWith(JSON.stringify({ anyOf })));
    assert.deepEqual(second.input_schema ?? second.parameters, { properties: {}, type: 'object' });
  });
});
