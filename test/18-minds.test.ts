// Chapter 18: the model is a parameter. What all models share: events, choice, retries, errors; the test's own server.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, test } from 'node:test';
import type { Model } from '../agent.ts';
import { Anthropic } from '../chapters/18-minds/anthropic.ts';
import { chooseModel, formsOf, keysOf, ModelError, models, type ModelRow } from '../chapters/18-minds/models.ts';
import { OpenAi } from '../chapters/18-minds/openai.ts';
import { readArguments } from '../chapters/18-minds/shapes.ts';
import { readEvents, type ServerSentEvent } from '../chapters/18-minds/sse.ts';
import { cleanUp, later, rejection, until } from './helpers.ts';
import {
  ADD,
  call,
  calls,
  fail,
  hear,
  problemsIn,
  raw,
  say,
  startModelServer,
  type Script,
  type WireName,
} from './model-server.ts';

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

const datas = async (...chunks: (string | Uint8Array)[]) => (await events(chunks)).map(({ data }) => data);

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
    for await (const event of readEvents((async function* () { yield Buffer.from(text); })(), { latest })) void event;
    return latest.id;
  };
  assert.equal(await read('id: 1\ndata: a\n\nid: 2\ndata: half'), '1');
  assert.equal(await read('id: 3\n\n'), '3'); // also without data
  assert.equal(await read('data: b\n\n'), '3'); // it stays in force
});

test('a character that is cut in two arrives whole', async () => {
  const bytes = new TextEncoder().encode('data: grüße 🦊\u2028\n\n');
  assert.deepEqual(await datas(...[...bytes].map((byte) => Uint8Array.of(byte))), ['grüße 🦊\u2028']);
});

test('several data lines are joined by LF; one space after the colon is not part of the value', async () => {
  assert.deepEqual(await datas('data: a\ndata:b\ndata:  c\ndata\n\n'), ['a\nb\n c\n']);
});

test('comments, unknown fields and events without data are skipped, a byte order mark too', async () => {
  assert.deepEqual(await datas('\ufeffdata: a\n\n: ping\n\nevent: empty\n\nfoo: bar\ndata: b\n\n'), ['a', 'b']);
  assert.equal((await events(['event: lost\n\ndata: a\n\n']))[0]!.event, 'message');
});

test('half an event at the end of the stream is not dispatched', async () => {
  assert.deepEqual(await datas('data: whole\n\ndata: half'), ['whole']);
  assert.deepEqual(await datas('data: whole\n\ndata: half\n'), ['whole']);
});

test('id and retry stay in force, and odd ones do not count', async () => {
  const found = await events(['id: 7\nretry: 250\ndata: a\n\nretry: soon\nid: \0\ndata: b\n\nid\ndata: c\n\n']);
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
    const error = await rejection(events(['data: ', ...Array(50).fill(chunk)], { maxEventBytes: 100 }));
    assert.equal(error.message, 'an event of the stream is larger than 100 bytes');
  }
  assert.equal((await events(Array(50).fill('data: 12345\n\n: ping\n'), { maxEventBytes: 100 })).length, 50);
});

// ─── models.ts ────────────────────────────────────────────────────────────────────────────────────────────────

const KEY = 'sk-secret-0123456789';
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
  assert.equal(named(undefined, { OPENAI_API_KEY: KEY, ANTHROPIC_API_KEY: KEY }).name, 'anthropic/claude-sonnet-5');
  assert.equal(named(undefined, { ANTHROPIC_AUTH_TOKEN: KEY, ANTHROPIC_MODEL: 'a' }).name, 'anthropic/a');
});

test('a name has one of three forms; the model\'s own may have slashes', () => {
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
  assert.equal(choose(undefined, { MY_OTHER_KEY: KEY }), 'mine/small', 'its key makes it the default');
  assert.equal(choose(undefined, { MY_KEY: KEY, OPENAI_API_KEY: KEY }), 'openai/gpt-5', 'but the first in the table comes first');
  assert.deepEqual([choose(), choose('echo')], ['rehearsal', 'mine/']);
  const forms = /write rehearsal, anthropic\/<model>, openai\/<model>, mine\/<model> or echo$/;
  for (const name of ['mine', 'mine/', 'echo/x', 'yours/x', 'toString', '__proto__/x']) assert.throws(() => choose(name), forms);
  assert.throws(() => choose('echo', {}, 'http://localhost:1'), /needs a model to go with/);
  assert.throws(() => chooseModel(undefined, { models: { mine: row(['MY_KEY'], 's') }, env: {} }), /no key is set: MY_KEY/);
  assert.deepEqual(keysOf(rows), ['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN', 'OPENAI_API_KEY', 'MY_KEY', 'MY_OTHER_KEY']);
  assert.deepEqual(formsOf(models, 'ID'), ['rehearsal', 'anthropic/ID', 'openai/ID']);
});

test('a missing key is named, except that a server of one\'s own needs none', () => {
  assert.match(refused('anthropic/a', {}).message, /set ANTHROPIC_API_KEY/);
  assert.match(refused('anthropic/a', { ANTHROPIC_API_KEY: ' ' }).message, /set ANTHROPIC_API_KEY/);
  assert.match(refused('openai/o', {}).message, /set OPENAI_API_KEY/);
  assert.match(refused('openai/o', {}, 'https://api.openai.com/v1/').message, /set OPENAI_API_KEY/);
  assert.equal(named('openai/o', {}, 'http://192.168.0.9:11434/v1').name, 'openai/o');
  assert.equal(named('openai/o', { OPENAI_BASE_URL: 'http://localhost:1/v1' }).name, 'openai/o');
});

test('a base URL must be one, and must not give the key away', () => {
  const env = { OPENAI_API_KEY: KEY, ANTHROPIC_API_KEY: KEY };
  assert.match(refused('openai/o', env, 'localhost').message, /the base URL of openai\/o is not a URL/);
  assert.match(refused('openai/o', env, 'ftp://x').message, /must be https: or http:/);
  assert.match(refused('openai/o', env, `https://me:${KEY}@x/v1`).message, /holds a name or a password/);
  for (const host of ['example.com', '192.168.0.9', 'localhost.example.com', '127.0.0.1.example.com'])
    assert.match(refused('anthropic/a', env, `http://${host}`).message, /in clear text; use https:/);
  for (const host of ['localhost:1', 'x.localhost', '127.0.0.1:1', '127.9.9.9', '[::1]:1'])
    assert.equal(named('anthropic/a', env, `http://${host}`).name, 'anthropic/a');
  assert.match(refused(undefined, {}, 'http://localhost:1').message, /needs a model/);
});

test('a key that cannot be sent is refused before anything can quote it', () => {
  assert.match(refused('openai/o', { OPENAI_API_KEY: `${KEY}\nx` }).message, /the key for openai\/o holds a space/);
  assert.match(
    refused('anthropic/a', { ANTHROPIC_API_KEY: `${KEY} ${KEY}` }).message,
    /the key for anthropic\/a holds a space/,
  );
});

test('key, token, version and base URL come from the environment; the option wins over it', async () => {
  const server = await startModelServer([say('a'), say('b'), say('c'), say('d')]);
  const env = { ANTHROPIC_API_KEY: ` ${KEY}\n`, ANTHROPIC_AUTH_TOKEN: 'token', ANTHROPIC_BASE_URL: server.url };
  await hear(named('anthropic/a', env), 'Hello');
  const token = {
    ANTHROPIC_AUTH_TOKEN: 'token',
    ANTHROPIC_BASE_URL: 'http://localhost:1',
    ANTHROPIC_VERSION: '2026-10-21',
  };
  await hear(named('anthropic/a', token, `${server.url}/v1/`), 'Hello');
  await hear(named('openai/o', { OPENAI_API_KEY: KEY, OPENAI_BASE_URL: `${server.url}/v1/` }), 'Hello');
  await hear(named('openai/o', {}, `${server.url}/v1`), 'Hello');
  const seen = server.requests.map(({ headers }) => [
    headers['x-api-key'],
    headers.authorization,
    headers['anthropic-version'],
  ]);
  assert.deepEqual(seen, [
    [KEY, undefined, '2023-06-01'],
    [undefined, 'Bearer token', '2026-10-21'],
    [undefined, `Bearer ${KEY}`, undefined],
    [undefined, 'Bearer none', undefined],
  ]);
  assert.deepEqual(server.problems, []);
});

// ─── post.ts, over both wires ─────────────────────────────────────────────────────────────────────────────────

const SOON = { 'retry-after-ms': '20' };
const WIRES: WireName[] = ['anthropic', 'openai'];

function modelAt(wire: WireName, url: string): Model {
  return wire === 'anthropic'
    ? new Anthropic({ model: 'm', key: KEY, baseUrl: url })
    : new OpenAi({ model: 'm', key: KEY, baseUrl: `${url}/v1` });
}

/** A model that does not wait, and tells how long it would have. */
function hasty(wire: WireName, url: string) {
  const pauses: number[] = [];
  const wait = async (ms: number) => void pauses.push(ms);
  const model = wire === 'anthropic'
    ? new Anthropic({ model: 'm', key: KEY, baseUrl: url, wait })
    : new OpenAi({ model: 'm', key: KEY, baseUrl: `${url}/v1`, wait });
  return { model, pauses };
}

/** Runs the script on each wire. */
async function onBoth(
  script: Script,
  check: (model: Model, server: Awaited<ReturnType<typeof startModelServer>>) => Promise<void>,
) {
  for (const wire of WIRES) {
    const server = await startModelServer(script);
    await check(hasty(wire, server.url).model, server);
    assert.deepEqual(server.problems, []);
    await server.close();
  }
}

test('what may pass is asked again, twice, with a note each', async () => {
  for (const status of [408, 409, 429, 500, 503, 529]) {
    await onBoth(
      [fail(status, { headers: SOON }), fail(status, { headers: SOON }), say('at last')],
      async (model, { requests }) => {
        const { text, notes } = await hear(model, 'Hello');
        assert.equal(text, 'at last');
        const what = [429, 503, 529].includes(status) ? 'is busy' : 'has failed';
        assert.deepEqual(notes, Array(2).fill(`the model ${what} (${status}); trying again in 0 s`));
        assert.deepEqual(requests[2]!.body, requests[0]!.body);
      },
    );
  }
});

test('what is not about being busy is tried three times, then the server has the last word', async () => {
  await onBoth(Array(4).fill(fail(500, { headers: SOON })), async (model, { requests }) => {
    const error = await rejection(hear(model, 'Hello'));
    assert.deepEqual([error.kind, error.status, requests.length], ['unreachable', 500, 3]);
    assert.equal(error.message, `${model.name} answered 500 api_error: the script says 500 (request req_test)`);
  });
});

test('a busy model is tried for two minutes, in pauses that grow; the last error tells how often', async () => {
  const ways = [fail(529, { type: 'overloaded_error', message: 'Overloaded' }), fail(503), fail(429)];
  for (const [n, way] of ways.entries()) {
    const server = await startModelServer(Array(30).fill(way));
    const { model, pauses } = hasty(WIRES[n % 2]!, server.url);
    const error = await rejection(hear(model, 'Hello'));
    assert.equal(Math.round(pauses.reduce((sum, ms) => sum + ms)), 120_000);
    assert.equal(server.requests.length, pauses.length + 1);
    assert.ok(pauses.length < 15, `${pauses}`);
    const growing = pauses.slice(0, 6); // 0.5, 1, 2, 4, 8, 16 s, each less a quarter at most
    assert.ok(growing.every((ms, at) => ms <= 500 * 2 ** at && ms >= 375 * 2 ** at), `${pauses}`);
    assert.ok(pauses.every((ms) => ms <= 30_000));
    assert.ok(error.message.endsWith(`; queried ${pauses.length + 1} times in 120 s, so try again later`), error.message);
    assert.equal(error.kind, 'unreachable');
  }
});

test('busy in the stream, before any text, is busy too; and what else fails in between has its own two tries', async () => {
  const overloaded = { anthropic: 'overloaded_error', openai: 'engine_overloaded_error' };
  for (const wire of WIRES) {
    const error = { type: overloaded[wire], message: 'Overloaded' };
    const busy = raw(wire, `data: ${JSON.stringify({ type: 'error', error })}\n\n`);
    const server = await startModelServer([busy, busy, fail(500), busy, fail(500), busy, say('at last')]);
    const { model, pauses } = hasty(wire, server.url);
    const { text, notes } = await hear(model, 'Hello');
    assert.deepEqual([text, pauses.length, server.problems], ['at last', 6, []]);
    assert.match(notes[0]!, /^the model is busy \((503|529)\); trying again in 0\.[45] s$/);
  }
});

test('a server that says "at once" for ever is not queried without a pause, and its own long pause is kept', async () => {
  const atOnce = await startModelServer(Array(30).fill(fail(529, { headers: { 'retry-after': '0' } })));
  const first = hasty('anthropic', atOnce.url);
  await rejection(hear(first.model, 'Hello'));
  assert.deepEqual(first.pauses.slice(0, 2), [0, 0]);
  assert.ok(first.pauses.slice(2).every((ms) => ms > 1), `${first.pauses}`);
  assert.ok(atOnce.requests.length < 15);
  const slow = await startModelServer(Array(30).fill(fail(429, { headers: { 'retry-after': '50' } })));
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
  await onBoth([fail(400, { headers: { 'x-should-retry': 'true', ...SOON } }), say('yes')], async (model) => {
    assert.equal((await hear(model, 'Hello')).text, 'yes');
  });
  await onBoth([fail(500, { headers: { 'x-should-retry': 'false' } }), say('never')], async (model, { requests }) => {
    assert.equal((await rejection(hear(model, 'Hello'))).status, 500);
    assert.equal(requests.length, 1);
  });
});

/** The note about a wait, which is then broken off. */
async function noted(headers: Record<string, string>, wire: WireName = 'anthropic'): Promise<string> {
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
  assert.match(await noted({ 'retry-after': new Date(Date.now() + 3_600_000).toUTCString() }), /in 60 s$/);
  assert.match(await noted({ 'retry-after': new Date(Date.now() + 30_000).toUTCString() }), /in (2\d|30)(\.\d)? s$/);
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
    fail(429, { type: 'rate_limit_error', details: { error_code: 'enforced_spend_limit_reached' } }),
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
  await onBoth([withDate, say('again')], async (model) => assert.equal((await hear(model, 'Hello')).text, 'again'));
});

test('a conversation that does not fit is told apart, and not asked again', async () => {
  const ways = [
    fail(400, { type: 'invalid_request_error', message: 'prompt is too long: 210000 tokens > 200000 maximum' }),
    fail(400, { type: 'invalid_request_error', code: 'context_length_exceeded', message: 'Too much.' }),
    fail(400, { message: 'This model\'s maximum context length is 8192 tokens.' }),
    fail(400, { type: 'exceed_context_size_error', message: 'the request exceeds the available context size' }),
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
  await onBoth([say('a long answer, cut off', { cutAfter: 5 }), say('never')], async (model, { requests }) => {
    let seen = '';
    const error = await rejection(hear(model, 'Hello', (event) => (seen += event.type === 'text' ? event.text : '')));
    assert.deepEqual([error.kind, requests.length], ['unreachable', 1]);
    assert.match(error.message, /^the answer of \w+\/m broke off/);
    assert.match(seen, /^a long/);
  });
});

test('a server that is not there is asked three times and named', async () => {
  const server = await startModelServer([]);
  await server.close();
  const notes: string[] = [];
  const error = await rejection(
    hear(hasty('openai', server.url).model, 'Hello', (event) => 'text' in event && notes.push(event.text)),
  );
  assert.deepEqual([error.kind, error.status, notes.length], ['unreachable', undefined, 2]);
  assert.equal(error.message, `cannot reach openai/m at ${server.url}/v1/chat/completions: ECONNREFUSED`);
});

test('a redirect is not followed, so that the key stays here', async () => {
  const elsewhere = await startModelServer([say('stolen')]);
  await onBoth([fail(307, { headers: { location: `${elsewhere.url}/v1/messages?x=1` } })], async (model) => {
    const error = await rejection(hear(model, 'Hello'));
    assert.deepEqual([error.kind, error.status], ['config', 307]);
    assert.ok(
      error.message.includes(`redirects (307) to ${elsewhere.url}/v1/messages; the key is not sent on`),
      error.message,
    );
  });
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
    [`{"error":{"message":"Incorrect API key provided: ${KEY}"}}`, /Incorrect API key provided: \[key\]/],
  ];
  for (const [body, pattern] of bodies) {
    await onBoth([fail(404, { body })], async (model) => {
      const { message } = await rejection(hear(model, 'Hello'));
      assert.match(message, pattern);
      assert.match(message, /check the name of the model and the base URL \(we asked http:.+\/v1\/(messages|chat)/);
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
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  later(() => server.close());
  later(() => server.closeAllConnections());
  const error = await rejection(
    hear(modelAt('anthropic', `http://127.0.0.1:${(server.address() as AddressInfo).port}`), 'Hello'),
  );
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
  for (const [wire, data] of WIRES.flatMap((wire) => ['{"type":', '42', 'null'].map((data) => [wire, data] as const))) {
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
  const begin = 'data: {"type":"content_block_start","index":0,"content_block":{"type":"text"}}\n\n';
  for (const [wire, shape] of shapes) {
    const server = await startModelServer([raw(wire, `${begin}data: ${JSON.stringify(shape)}\n\n`)]);
    const error = await rejection(hear(modelAt(wire, server.url), 'Hello'));
    assert.deepEqual([error.kind, error.cause instanceof TypeError], ['protocol', true]);
    assert.match(error.message, /^\w+\/m sent something that makes no sense: TypeError/);
  }
});

test('an abort ends the answer with its reason, and the connection', async () => {
  await onBoth([say('a slow answer, piece by piece', { delayMs: 30 })], async (model, { requests }) => {
    const controller = new AbortController();
    const reason = new Error('enough');
    const stop = (event: { type: string }) => event.type === 'text' && controller.abort(reason);
    assert.equal(await rejection(hear(model, { signal: controller.signal }, stop)), reason);
    await until(() => requests[0]!.abandoned);
  });
});

test('who stops listening closes the connection too', async () => {
  await onBoth([say('a slow answer, piece by piece', { delayMs: 30 })], async (model, { requests }) => {
    for await (const event of model.query({
      system: '',
      turns: [{ role: 'user', text: 'Hi' }],
      tools: [],
      signal: new AbortController().signal,
    }))
      if (event.type === 'text') break;
    await until(() => requests[0]!.abandoned);
  });
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
    assert.deepEqual(first.input_schema ?? first.parameters, { properties: { a: {} }, type: 'object' });
    assert.ok(first.description.endsWith(JSON.stringify({ anyOf })));
    assert.deepEqual(second.input_schema ?? second.parameters, { properties: {}, type: 'object' });
  });
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
            content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }],
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
    tools: [{ type: 'function', function: { name: 'add', description: 'Adds.', parameters: { type: 'object' } } }],
    messages: [
      { role: 'system', content: 's' },
      { role: 'user', content: 'hi' },
      {
        role: 'assistant',
        content: null,
        tool_calls: ['c1', 'c2'].map((id) => ({ id, type: 'function', function: { name: 'add', arguments: '{}' } })),
      },
      { role: 'tool', tool_call_id: 'c1', content: 'one' },
      { role: 'tool', tool_call_id: 'c2', content: 'two' },
      { role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }] },
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

test('the test\'s server finds nothing wrong with a good request', () => {
  for (const wire of WIRES)
    assert.equal(
      spoilt(wire, () => {}),
      '',
    );
});

test('the test\'s server sees what is wrong on the wire of Anthropic', () => {
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
    [/thought is unsigned/, (body) => body.messages[1].content.unshift({ type: 'thinking', thinking: 'hm' })],
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
    [/results are for \[t1\], but the calls were \[t1,t2\]/, (body) => body.messages[2].content.splice(1, 1)],
    [/results are for \[t2,t1\]/, (body) => body.messages[2].content.unshift(...body.messages[2].content.splice(1, 1))],
    [/results are for \[t1,t1,t2\]/, (body) => body.messages[2].content.unshift(body.messages[2].content[0])],
    [/result comes after other blocks/, (body) => body.messages[2].content.unshift(body.messages[2].content.pop())],
    [/the end: the results are for \[\], but the calls were \[t1,t2\]/, (body) => body.messages.pop()],
    [
      /image has the wrong shape/,
      (body) => (body.messages[2].content[1].content[0].source.media_type = 'image/svg+xml'),
    ],
    [
      /impossible shape/,
      (body) => (body.messages[2].content[1].content[0] = { type: 'image', mimeType: 'image/png', data: 'AAAA' }),
    ],
    [/result is an empty list/, (body) => (body.messages[2].content[0].content = [])],
    [/with is_error, a result must be text/, (body) => (body.messages[2].content[1].is_error = true)],
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

test('the test\'s server sees what is wrong on the wire of OpenAI', () => {
  const cases: [RegExp, (body: any, headers: any) => void][] = [
    [/key is missing/, (_, headers) => delete headers.authorization],
    [/model is missing/, (body) => delete body.model],
    [/do not ask for the usage/, (body) => delete body.stream_options],
    [/exclude each other/, (body) => (body.max_tokens = body.max_completion_tokens = 1)],
    [/"temperature" is not allowed/, (body) => (body.temperature = 0)],
    [/type undefined/, (body) => delete body.tools[0].type],
    [/not an object at its root/, (body) => (body.tools[0].function.parameters = { type: 'array' })],
    [/calls, but no tools/, (body) => delete body.tools],
    [/system cannot stand here/, (body) => body.messages.push(body.messages[0])],
    [/user says nothing/, (body) => (body.messages[1].content = '')],
    [/roles do not alternate/, (body) => body.messages.splice(1, 0, body.messages[1])],
    [/assistant says nothing/, (body) => delete body.messages[2].tool_calls],
    [/assistant says nothing/, (body) => (body.messages[2].content = '')],
    [/tool_calls is empty/, (body) => (body.messages[2].tool_calls = [])],
    [/arguments of add are no object/, (body) => (body.messages[2].tool_calls[0].function.arguments = {})],
    [/arguments of add are no object/, (body) => (body.messages[2].tool_calls[0].function.arguments = '[]')],
    [/impossible shape/, (body) => (body.messages[2].tool_calls[0].function.arguments = '{"a":')],
    [/name "a b" does not fit/, (body) => (body.messages[2].tool_calls[0].function.name = 'a b')],
    [
      /id "x{41}" does not fit/,
      (body) => (body.messages[2].tool_calls[0].id = body.messages[3].tool_call_id = 'x'.repeat(41)),
    ],
    [/no such call to answer/, (body) => (body.messages[3].tool_call_id = 'c9')],
    [/no such call to answer/, (body) => body.messages.splice(3, 0, body.messages[3])],
    [/calls were \[c2\]/, (body) => body.messages.splice(4, 1)],
    [/calls were \[c1,c2\]/, (body) => body.messages.splice(3, 0, { role: 'user', content: 'wait' })],
    [/result must be a text/, (body) => (body.messages[3].content = [{ type: 'text', text: 'one' }])],
    [/part has the wrong shape/, (body) => (body.messages[5].content[0].image_url.url = 'https://example.com/a.png')],
    [/part has the wrong shape/, (body) => (body.messages[5].content[0] = { type: 'text', text: '' })],
  ];
  for (const [pattern, spoil] of cases) assert.match(spoilt('openai', spoil), pattern);
});

test('the test\'s server refuses a bad request, tells what is wrong and keeps its step', async () => {
  const server = await startModelServer([say('fine')]);
  const send = (body: any) =>
    fetch(`${server.url}/v1/messages`, { method: 'POST', headers: HEADERS.anthropic, body: JSON.stringify(body) });
  const bad = await send({ ...GOOD.anthropic, temperature: 1 });
  assert.deepEqual(
    [bad.status, ((await bad.json()) as any).error.message],
    [400, 'the field "temperature" is not allowed'],
  );
  assert.deepEqual(server.problems, ['the field "temperature" is not allowed']);
  assert.match(await (await send(GOOD.anthropic)).text(), /message_stop/);
  assert.equal((await send(GOOD.anthropic)).status, 400);
  assert.equal((await fetch(`${server.url}/v1/models`)).status, 404);
  assert.deepEqual(server.problems.slice(1), ['request 3: the script is over', 'there is no GET /v1/models']);
});

test('a script runs on both wires, and its steps may look at the request', async () => {
  const add = [
    { name: 'mcp__demo__add', args: { a: 2, b: 40 } },
    { name: 'mcp__demo__add', args: {} },
  ];
  const usage = { input: 100, output: 7, cached: 60 };
  await onBoth(
    [calls(add, { text: 'adding', usage }), ({ body }) => say(`${body.messages.length} messages, ${body.model}`)],
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
      const pour = () => { while (!response.destroyed && response.write(chunk)); };
      response.on('drain', pour);
      pour();
    });
    later(() => (server.closeAllConnections(), server.close()));
    return new Promise<string>((done) => server.listen(0, '127.0.0.1', () => done(`http://127.0.0.1:${(server.address() as any).port}`)));
  };
  const delta = JSON.stringify({ choices: [{ delta: { content: 'x'.repeat(60_000) } }] });
  for (const [type, chunk] of [['application/json', 'x'.repeat(60_000)], ['text/event-stream', `data: ${delta}\n\n`]] as const) {
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
