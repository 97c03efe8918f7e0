// Chapter 30: traces are read, played back as servers, judged by the protocol's rules, and drawn.

import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import { afterEach, test } from 'node:test';
import { httpTransports } from '../chapters/20-streamable-http/http.ts';
import { inBothEras } from '../chapters/22-no-handshake/era.ts';
import { serveHttp } from '../chapters/29-a-server/http.ts';
import { checkTrace } from '../chapters/30-seeing/check.ts';
import { Keeper } from '../chapters/30-seeing/keep.ts';
import { record } from '../chapters/30-seeing/record.ts';
import { ReplayServer, replayTransport } from '../chapters/30-seeing/replay-wires.ts';
import { Replay, type ReplayOptions } from '../chapters/30-seeing/replay.ts';
import { readTrace } from '../chapters/30-seeing/trace.ts';
import { LivePage, pageWith, sealed } from '../chapters/30-seeing/view.ts';
import { McpConnection, type Extension, type Json, type Message } from '../mcp.ts';
import { cleanUp, folder, goodServer, later, rejection, root, until } from './helpers.ts';

afterEach(cleanUp);

const asker = (...args: string[]) => ({
  command: process.execPath, args: [join(root, 'fixtures', 'asker.mjs'), ...args],
});
const lines = (...records: unknown[]) => records.map((each) => `${JSON.stringify(each)}\n`).join('');
const out = (msg: Json, at = 0, server = 's') => ({ at, dir: 'out', server, msg: { jsonrpc: '2.0', ...msg } });
const back = (msg: Json, at = 0, server = 's') => ({ at, dir: 'in', server, msg: { jsonrpc: '2.0', ...msg } });

let changes = 0; // that servers told of

/** Answers every question of a server in the same way. */
const accepting: Extension = () => ({
  capabilities: { elicitation: { form: {} }, roots: {} },
  changed: () => void changes++,
  handlers: {
    'elicitation/create': () => ({ action: 'accept', content: { city: 'Graz' } }),
    'roots/list': () => ({ roots: [{ uri: 'file:///tmp', name: 'tmp' }] }),
  },
});

/** Runs a conversation and writes it down as a trace. */
async function recorded(config: Json, talk: (connection: McpConnection) => Promise<unknown>, more: Json = {}) {
  const records: unknown[] = [{ trace: 1 }];
  let at = 0;
  const connection = new McpConnection('s', config, {
    onWire: (dir, msg) => records.push({ at: at++, dir, server: 's', msg }),
    onWarning: () => {},
    extensions: [accepting, ...inBothEras()],
    ...more,
  });
  later(() => connection.close());
  await connection.connect();
  await connection.initialize();
  const result = await talk(connection);
  await connection.close();
  return { text: lines(...records), result };
}

/** The same conversation with a recording in the place of the server. */
async function replayed(text: string, talk: (connection: McpConnection) => Promise<unknown>, options: ReplayOptions = {}) {
  const misses: string[] = [];
  const transport = replayTransport(readTrace(text), 's', { onMiss: (miss) => misses.push(miss), ...options });
  const again = await recorded({ type: 'replay' }, talk, { transports: { replay: () => transport } });
  return { ...again, misses };
}

/** The same over HTTP. */
async function replayedByHttp(text: string, talk: (connection: McpConnection) => Promise<unknown>) {
  const misses: string[] = [];
  const newReplay = () => new Replay(readTrace(text), 's', { onMiss: (miss) => misses.push(miss) });
  const http = await serveHttp(new ReplayServer(newReplay, 's'));
  later(() => http.close());
  const again = await recorded({ type: 'http', url: http.url }, talk, { transports: httpTransports });
  return { ...again, misses, url: http.url };
}

/** A trace without what differs from run to run: ids, times and tokens. */
function gist(text: string): unknown[] {
  const numbers = new Map<string, number>();
  const numbered = (id: unknown) => {
    const key = JSON.stringify(id);
    if (!numbers.has(key)) numbers.set(key, numbers.size);
    return numbers.get(key);
  };
  return readTrace(text).messages.map(({ dir, msg }) => {
    const { _meta, ...params } = (msg.params ?? {}) as Json;
    return { dir, ...msg, id: msg.id === undefined ? undefined : numbered(msg.id), params };
  });
}

// ─── The format ──────────────────────────────────────────────────────────────────────────────────

test('a trace is read: header, messages, noise, stderr, events; a line that is being written is not there yet', () => {
  const text = lines(
    { trace: 1, program: 'p', started: 'then' }, out({ id: 1, method: 'ping' }, 1.5), back({ id: 1, result: {} }, 2),
    { at: 3, server: 's', noise: 'banner' }, { at: 4, server: 's', stderr: 'oops' }, { at: 5, type: 'tool_end', ms: 7 },
  ) + '{"at":6,"dir":"out","ser';
  const { header, messages, happenings, problems } = readTrace(text);
  assert.deepEqual(header, { version: 1, program: 'p', started: 'then' });
  assert.deepEqual(messages.map(({ line, ms, dir }) => [line, ms, dir]), [[2, 1.5, 'out'], [3, 2, 'in']]);
  assert.deepEqual(happenings.map(({ ms, record }) => [ms, Object.keys(record).at(-1)]), [[3, 'noise'], [4, 'stderr'], [5, 'ms']]);
  assert.deepEqual(problems, []);
});

test('older files are read: the time of day becomes a clock, text on the wire is noise; a list is several messages', () => {
  const t = (s: number) => `2026-11-17T10:00:0${s}.000Z`;
  const text = lines(
    { t: t(0), type: 'trace' }, { t: t(1), dir: 'in', server: 's', msg: 'a banner' },
    { t: t(2), dir: 'in', server: 's', msg: [{ jsonrpc: '2.0', id: 1, result: {} }, { jsonrpc: '2.0', id: 2, result: {} }] },
  );
  const { header, messages, happenings } = readTrace(text);
  assert.equal(header.version, 0);
  assert.deepEqual(messages.map(({ ms, line }) => [ms, line]), [[2000, 3], [2000, 3]]);
  assert.equal(happenings[0]!.record.noise, 'a banner');
});

test('what is no trace is named by its line; a later version is refused in words', () => {
  assert.deepEqual(readTrace('{"a":1}\nnonsense\n[1]\n').problems.map(({ line }) => line), [2, 3]);
  assert.match(readTrace('{"trace":7}\n').problems[0]!.text, /version 7; this program reads up to 1/);
});

// ─── Replay ──────────────────────────────────────────────────────────────────────────────────────

const askCity = (connection: McpConnection) => connection.callTool('ask', {
  method: 'elicitation/create',
  params: { message: 'Where?', requestedSchema: { type: 'object', properties: { city: { type: 'string' } } } },
});

for (const era of ['', 'modern']) {
  test(`record, replay, record is the same, with questions of the server: ${era || 'with a handshake'}`, async () => {
    const talk = async (connection: McpConnection) => {
      const tools = await connection.listTools();
      const asked = await askCity(connection);
      const roots = await connection.callTool('ask', { method: 'roots/list' });
      return [tools.map(({ name }) => name), asked.text, roots.text];
    };
    const first = await recorded(asker(era), talk);
    assert.match(JSON.stringify(first.result), /Graz/);
    const second = await replayed(first.text, talk);
    assert.deepEqual(second.misses, []);
    assert.deepEqual(second.result, first.result);
    assert.deepEqual(gist(second.text), gist(first.text));
    const third = await replayedByHttp(first.text, talk);
    assert.deepEqual([third.misses, third.result], [[], first.result], 'over HTTP');
    const kinds = (text: string) => readTrace(text).messages.map(({ dir, msg }) => `${dir} ${msg.method}`);
    assert.deepEqual(kinds(third.text).slice(-8), kinds(first.text).slice(-8), 'in the same places');
  });
}

const META = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} };
const textResult = (text: string, more = {}) => ({ content: [{ type: 'text', text }], ...more });

test('over HTTP: what came before the handshake, after an answer and on a subscription finds a way, in both eras', async () => {
  const told = (method: string, params: Json = {}) => back({ method: `notifications/${method}`, params });
  const log = (data: string) => told('message', { level: 'info', data });
  const shaken = lines(
    log('before all'),
    out({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25' } }),
    back({ id: 1, result: { protocolVersion: '2025-11-25', capabilities: { tools: {}, logging: {} }, serverInfo: { name: 's', version: '1' } } }),
    out({ method: 'notifications/initialized' }),
    back({ id: 7, method: 'roots/list' }), out({ id: 7, result: { roots: [] } }),
    out({ id: 2, method: 'tools/call', params: { name: 'one' } }), back({ id: 2, result: textResult('1') }), log('after one'),
    out({ id: 3, method: 'tools/call', params: { name: 'two' } }), log('during two'), back({ id: 3, result: textResult('2') }),
  );
  const subscription = { _meta: { 'io.modelcontextprotocol/subscriptionId': 8 } };
  const stateless = lines(
    out({ id: 1, method: 'server/discover', params: { _meta: META } }),
    back({ id: 1, result: { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: { tools: { listChanged: true } } } }),
    out({ id: 8, method: 'subscriptions/listen', params: { notifications: { toolsListChanged: true } } }),
    told('subscriptions/acknowledged', { notifications: { toolsListChanged: true }, ...subscription }),
    out({ id: 2, method: 'tools/call', params: { name: 'one' } }), back({ id: 2, result: textResult('1', { resultType: 'complete' }) }),
    told('tools/list_changed', subscription),
    out({ id: 3, method: 'tools/call', params: { name: 'two' } }), log('during two'), back({ id: 3, result: textResult('2', { resultType: 'complete' }) }),
  );
  const talk = async (connection: McpConnection) => {
    const texts = [(await connection.callTool('one')).text, (await connection.callTool('two')).text];
    if (connection.server?.protocolVersion === '2026-07-28') await until(() => changes > 0, 'the change');
    return texts;
  };
  const comesIn = (text: string) => readTrace(text).messages.filter(({ dir, msg }) => dir === 'in' && msg.method !== undefined).map(({ msg }) => `${msg.method} ${(msg.params as Json)?.data ?? ''}`.trim());
  const first = await replayedByHttp(shaken, talk);
  assert.deepEqual([first.result, first.misses], [['1', '2'], []]);
  assert.deepEqual(comesIn(first.text), ['notifications/message before all', 'roots/list', 'notifications/message after one', 'notifications/message during two']);
  const second = await replayedByHttp(stateless, talk);
  assert.deepEqual([second.result, second.misses], [['1', '2'], []]);
  const came = comesIn(second.text);
  assert.deepEqual(came.filter((each) => !each.includes('message')), ['notifications/subscriptions/acknowledged', 'notifications/tools/list_changed']);
  assert.ok(came.includes('notifications/message during two'));
  const changed = readTrace(second.text).messages.find(({ msg }) => msg.method === 'notifications/tools/list_changed')!;
  const listening = readTrace(second.text).messages.find(({ msg }) => msg.method === 'subscriptions/listen')!;
  assert.equal(((changed.msg.params as Json)._meta as Json)['io.modelcontextprotocol/subscriptionId'], listening.msg.id, 'under the id of today');
});

const sums = [[1, 2], [3, 4], [5, 6], [7, 8]] as const;
const add = (connection: McpConnection, [a, b]: readonly [number, number]) => connection.callTool('add', { a, b }).then(({ text }) => text);

test('requests in another order, and side by side, find their answers; equal ones keep the recorded order', async () => {
  const { text } = await recorded({ command: process.execPath, args: [goodServer] }, async (connection) => {
    for (const pair of sums) await add(connection, pair);
  });
  const { result, misses } = await replayed(text, (connection) => Promise.all([...sums].reverse().map((pair) => add(connection, pair))));
  assert.deepEqual([result, misses], [['15', '11', '7', '3'], []]);

  const call = (id: number) => out({ id, method: 'tools/call', params: { name: 'next' } });
  const said = (id: number, text: string) => back({ id, result: { content: [{ type: 'text', text }] } });
  const opening = [out({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25' } }), back({ id: 1, result: { protocolVersion: '2025-11-25', capabilities: { tools: {} } } })];
  const equal = lines(...opening, call(2), said(2, 'one'), call(3), said(3, 'two'));
  const next = async (connection: McpConnection) => (await connection.callTool('next')).text;
  const again = await replayed(equal, async (connection) => [await next(connection), await next(connection), await next(connection)]);
  assert.deepEqual([again.result, again.misses], [['one', 'two', 'two'], []]);
});

test('progress has the token of today, and comes before the answer', async () => {
  const meta = { progressToken: 77 };
  const text = lines(
    out({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25' } }), back({ id: 1, result: { protocolVersion: '2025-11-25', capabilities: { tools: {} } } }),
    out({ id: 9, method: 'tools/call', params: { name: 'slow', _meta: meta } }),
    back({ method: 'notifications/progress', params: { progressToken: 77, progress: 1 } }),
    back({ id: 9, result: { content: [{ type: 'text', text: 'done' }] } }),
  );
  const seen: unknown[] = [];
  const { result, misses } = await replayed(text, async (connection) => (await connection.callTool('slow', undefined, { onProgress: ({ progress }: Json) => seen.push(progress) })).text);
  assert.deepEqual([result, seen, misses], ['done', [1], []]);
});

test('tampered recordings: each miss names the nearest recording and the first difference', async () => {
  const { text } = await recorded({ command: process.execPath, args: [goodServer] }, (connection) => add(connection, [2, 40]));
  const swap = (from: string, to: string) => {
    assert.ok(text.includes(from), from);
    return text.replaceAll(from, to);
  };
  const table: [name: string, text: string, miss: RegExp][] = [
    ['another argument', swap('"b":40', '"b":41'), /nearest, in line \d+, differs: arguments\.b is 40, recorded: 41/],
    ['an argument more', swap('"b":40', '"b":40,"c":1'), /arguments\.c is not given, recorded: 1/],
    ['an argument less', swap(',"b":40', ''), /arguments\.b is 40, recorded: not given/],
    ['another type', swap('"b":40', '"b":"40"'), /arguments\.b is 40, recorded: "40"/],
    ['another tool', swap('"name":"add","arguments"', '"name":"sub","arguments"'), /name is "add", recorded: "sub"/],
    ['another method', swap('"method":"tools/call"', '"method":"tools/run"'), /has no tools\/call; it has .*initialize.*tools\/run/],
    ['the call is gone', text.split('\n').filter((line) => !line.includes('tools/call')).join('\n'), /has no tools\/call/],
    ['a list in its place', swap('"arguments":{"a":2,"b":40}', '"arguments":[2,40]'), /arguments is \{"a":2,"b":40\}, recorded: \[2,40\]/],
  ];
  for (const [name, tampered, miss] of table) {
    const { misses, result } = await replayed(tampered, (connection) => add(connection, [2, 40]).catch((error) => error.message));
    assert.match(`${misses}`, miss, name);
    assert.match(`${result}`, miss, `${name}: the client is told as well`);
  }
});

test('an answer of the client that leads elsewhere is a miss; a masked secret matches; a revision that was not recorded is refused', async () => {
  const { text } = await recorded(asker(), askCity);
  const declined = text.replaceAll('"action":"accept"', '"action":"decline"');
  assert.deepEqual((await replayed(declined, askCity)).misses, ['elicitation/create was answered with "accept"; recorded: "decline"']);
  const sum = await recorded({ command: process.execPath, args: [goodServer] }, (connection) => connection.callTool('greet', { name: 'secret' }));
  const masked = sum.text.replace('"name":"secret"', '"name":"***"');
  const { misses, result } = await replayed(masked, (connection) => connection.callTool('greet', { name: 'secret' }));
  assert.deepEqual([misses, (result as Json).text], [[], 'Hello, secret!']);
  const old = sum.text.replaceAll('2025-11-25', '2024-11-05');
  const refused = await rejection(replayed(old, async () => {}));
  assert.match(refused.message, /the recording has revision 2024-11-05, not 2025-11-25/);
});

test('a call that was cancelled in the recording stays silent; ping is made up; what is missing can be had live', async () => {
  const opening = [out({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25' } }), back({ id: 1, result: { protocolVersion: '2025-11-25', capabilities: { tools: {} } } })];
  const text = lines(...opening, out({ id: 2, method: 'tools/call', params: { name: 'hang' } }), out({ method: 'notifications/cancelled', params: { requestId: 2 } }));
  const { result, misses } = await replayed(text, async (connection) => {
    await connection.request('ping');
    const abort = new AbortController();
    const hanging = rejection(connection.callTool('hang', undefined, { signal: abort.signal }));
    await connection.request('ping');
    abort.abort();
    const { kind } = await hanging;
    const live: Json = await connection.request('tools/call', { name: 'live' });
    return [kind, live];
  }, { live: async ({ params }) => ({ result: { live: params!.name } }) });
  assert.deepEqual([result, misses], [['aborted', { live: 'live' }], []]);
});

// ─── Check ───────────────────────────────────────────────────────────────────────────────────────

const HELLO = [
  out({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {} } }),
  back({ id: 1, result: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: {} } }),
  out({ method: 'notifications/initialized' }),
];
const TOOLS = [out({ id: 2, method: 'tools/list' }), back({ id: 2, result: { tools: [
  { name: 'add', inputSchema: { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] }, outputSchema: { type: 'object', required: ['sum'] } },
] } })];
const call = (args: Json) => out({ id: 3, method: 'tools/call', params: { name: 'add', arguments: args } });
const good = { content: [{ type: 'text', text: '1' }], structuredContent: { sum: 1 } };

test('trace check: each rule that is broken is named with its line, and who broke it', () => {
  const table: [name: string, records: unknown[], findings: [line: number, who: string, rule: string][]][] = [
    ['nothing wrong', [...HELLO, ...TOOLS, call({ a: 1 }), back({ id: 3, result: good })], []],
    ['a request before the handshake', [out({ id: 1, method: 'tools/list' }), back({ id: 1, result: { tools: [] } })], [[1, 'client', 'handshake']]],
    ['a request before its end', [...HELLO.slice(0, 2), out({ id: 2, method: 'tools/list' }), back({ id: 2, result: { tools: [] } })], [[3, 'client', 'handshake']]],
    ['two handshakes', [...HELLO, ...HELLO.slice(0, 1).map(() => out({ id: 9, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {} } })), back({ id: 9, error: { code: -32600, message: 'no' } })], [[4, 'client', 'handshake']]],
    ['no answer', [...HELLO, out({ id: 2, method: 'tools/list' })], [[4, 'server', 'unanswered']]],
    ['two answers', [...HELLO, ...TOOLS, back({ id: 2, result: { tools: [] } })], [[6, 'server', 'answer']]],
    ['an answer to nothing', [...HELLO, back({ id: 8, result: {} })], [[4, 'server', 'answer']]],
    ['an id twice', [...HELLO, ...TOOLS, out({ id: 2, method: 'ping' }), back({ id: 2, result: {} })], [[6, 'client', 'id']]],
    ['an id that is none', [...HELLO, { at: 0, dir: 'out', server: 's', msg: { jsonrpc: '2.0', id: 1.5, method: 'ping' } }], [[4, 'client', 'id'], [4, 'server', 'unanswered']]],
    ['1 and "1" are two ids', [...HELLO, out({ id: '1', method: 'ping' }), back({ id: '1', result: {} })], []],
    ['no jsonrpc', [...HELLO, { at: 0, dir: 'in', server: 's', msg: { method: 'notifications/x' } }], [[4, 'server', 'jsonrpc']]],
    ['result and error', [...HELLO, out({ id: 2, method: 'ping' }), back({ id: 2, result: {}, error: { code: 1, message: '' } })], [[5, 'server', 'answer']]],
    ['an error without a code', [...HELLO, out({ id: 2, method: 'ping' }), back({ id: 2, error: { message: 'x' } })], [[5, 'server', 'error']]],
    ['a capability of the server', [...HELLO, out({ id: 2, method: 'prompts/list' }), back({ id: 2, result: { prompts: [] } })], [[4, 'client', 'capability']]],
    ['a notice that was not declared', [...HELLO, back({ method: 'notifications/tools/list_changed' })], [[4, 'server', 'capability']]],
    ['a capability of the client', [...HELLO, back({ id: 5, method: 'elicitation/create', params: {} }), out({ id: 5, result: { action: 'cancel' } })], [[4, 'server', 'capability']]],
    ['arguments', [...HELLO, ...TOOLS, call({ a: 'x' }), back({ id: 3, result: good })], [[6, 'client', 'arguments']]],
    ['an unknown tool', [...HELLO, ...TOOLS, out({ id: 3, method: 'tools/call', params: { name: 'sub' } }), back({ id: 3, error: { code: -32602, message: 'no' } })], [[6, 'client', 'tool']]],
    ['output', [...HELLO, ...TOOLS, call({ a: 1 }), back({ id: 3, result: { content: [] } })], [[7, 'server', 'output']]],
    ['an odd block', [...HELLO, ...TOOLS, call({ a: 1 }), back({ id: 3, result: { ...good, content: [{ type: 'smell' }, { type: 'image', data: '' }] } })], [[7, 'server', 'content'], [7, 'server', 'content']]],
    ['progress that goes back', [...HELLO, out({ id: 2, method: 'tools/list', params: { _meta: { progressToken: 1 } } }), back({ method: 'notifications/progress', params: { progressToken: 1, progress: 2 } }), back({ method: 'notifications/progress', params: { progressToken: 1, progress: 2 } }), back({ id: 2, result: { tools: [] } })], [[6, 'server', 'progress']]],
    ['a late answer', [...HELLO, out({ id: 2, method: 'ping' }), out({ method: 'notifications/cancelled', params: { requestId: 2 } }), back({ id: 2, result: {} })], [[6, 'server', 'late']]],
    ['noise', [...HELLO, { at: 1, server: 's', noise: 'hello' }], [[4, 'server', 'noise']]],
    ['a request of a stateless server', [
      out({ id: 1, method: 'server/discover', params: { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': { roots: {} } } } }),
      back({ id: 1, result: { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: {} } }),
      back({ id: 2, method: 'roots/list' }), out({ id: 2, result: { roots: [] } }),
    ], [[3, 'server', 'era']]],
    ['a result without its type', [
      out({ id: 1, method: 'server/discover', params: { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} } } }),
      back({ id: 1, result: { supportedVersions: ['2026-07-28'], capabilities: {} } }),
    ], [[2, 'server', 'result']]],
    ['a probe, then a handshake', [out({ id: 0, method: 'server/discover', params: { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} } } }), back({ id: 0, error: { code: -32601, message: 'what?' } }), ...HELLO], []],
    ['an opening that is sent again', [HELLO[0], out({ id: 5, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {} } }), HELLO[1], back({ id: 5, error: { code: -32600, message: 'no' } }), HELLO[2]], [[2, 'client', 'handshake']]],
    ['an opening after a refusal', [out({ id: 0, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {} } }), back({ id: 0, error: { code: -32602, message: 'another' } }), ...HELLO], []],
    ['garbage of the client', [...HELLO, { at: 1, dir: 'out', server: 's', noise: 'hello' }], [[4, 'client', 'noise']]],
    ['completion in the first revision', [
      ...lines(...HELLO).replaceAll('2025-11-25', '2024-11-05').trim().split('\n').map((line) => JSON.parse(line)),
      out({ id: 2, method: 'completion/complete' }), back({ id: 2, result: {} }),
    ], []],
    ['a tool that is new', [...HELLO.slice(0, 1), back({ id: 1, result: { protocolVersion: '2025-11-25', capabilities: { tools: { listChanged: true } }, serverInfo: {} } }), HELLO[2], ...TOOLS,
      back({ method: 'notifications/tools/list_changed' }), out({ id: 3, method: 'tools/call', params: { name: 'new' } }), back({ id: 3, result: { content: [] } })], []],
    ['an address, of a client that takes forms', [
      out({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: { elicitation: { form: {} } }, clientInfo: {} } }), ...HELLO.slice(1),
      back({ id: 1, method: 'elicitation/create', params: { mode: 'url' } }), out({ id: 1, result: { action: 'decline' } }),
    ], [[4, 'server', 'capability']]],
    ['a question inside a result, and a revision that the server does not speak', [
      out({ id: 1, method: 'server/discover', params: { _meta: META } }),
      back({ id: 1, result: { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: { tools: {} } } }),
      out({ id: 2, method: 'tools/call', params: { name: 'x', _meta: META } }),
      back({ id: 2, result: { resultType: 'input_required', inputRequests: { a: { method: 'roots/list' } } } }),
      out({ id: 3, method: 'ping', params: { _meta: { ...META, 'io.modelcontextprotocol/protocolVersion': '2025-11-25' } } }), back({ id: 3, result: {} }),
    ], [[4, 'server', 'capability'], [5, 'client', 'version']]],
    ['a second connection begins anew', [...HELLO, { at: 5, type: 'server', server: 's', state: 'connecting' }, ...HELLO], []],
  ];
  for (const [name, records, findings] of table) {
    const found = checkTrace(readTrace(lines(...records)));
    assert.deepEqual(found.map(({ line, who, rule }) => [line, who, rule]), findings, `${name}: ${JSON.stringify(found)}`);
  }
});

test('a recording is foreign text: a hostile value in any place of it ends neither the judge nor the replay', async () => {
  const story = [
    { trace: 1 }, { at: 0, type: 'server', server: 's', state: 'started' }, ...HELLO, ...TOOLS,
    back({ id: 5, method: 'roots/list' }), out({ id: 5, result: { roots: [] } }), call({ a: 1 }),
    back({ method: 'notifications/progress', params: { progressToken: 1, progress: 1 } }), back({ id: 3, result: good }),
    out({ id: 6, method: 'server/discover', params: { _meta: META } }),
    back({ id: 6, result: { resultType: 'input_required', inputRequests: { a: { method: 'roots/list' } } } }),
    { t: '2026-11-17', server: 's', noise: 'n' },
  ];
  const text = JSON.stringify(story);
  const places: string[][] = [];
  const walk = (value: unknown, path: string[]) => {
    places.push(path);
    if (typeof value === 'object' && value !== null) for (const [key, inner] of Object.entries(value)) walk(inner, [...path, key]);
  };
  story.forEach((record, n) => walk(record, [`${n}`]));
  const line = { tell: () => {}, ask: async () => ({ result: {} }), isGone: () => false };
  for (const path of places) {
    for (const hostile of ['constructor', { toString: 1 }, null]) {
      const copy = JSON.parse(text);
      const holder = path.slice(0, -1).reduce((at, key) => at[key], copy);
      holder[path.at(-1)!] = hostile;
      const recording = readTrace(lines(...copy));
      assert.ok(Array.isArray(checkTrace(recording)), `${path}`);
      const replay = new Replay(recording, 's');
      for (const { dir, msg } of readTrace(lines(...story)).messages) {
        if (dir !== 'out' || msg.id === undefined || msg.method === undefined) continue;
        await (await replay.answer(msg as Message, line)).afterwards(line);
      }
    }
  }
});

test('trace check finds nothing wrong in our own conversations, in both eras', async () => {
  for (const era of ['', 'modern']) {
    const { text } = await recorded(asker(era), async (connection) => {
      await connection.listTools();
      await askCity(connection);
    });
    assert.deepEqual(checkTrace(readTrace(text)), []);
  }
});

// ─── Record ──────────────────────────────────────────────────────────────────────────────────────

async function recordedBetween(script: string, input: Buffer[]) {
  const written: Json[] = [];
  const ways = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() };
  const seen = { out: [] as Buffer[], err: [] as Buffer[] };
  ways.stdout.on('data', (chunk: Buffer) => seen.out.push(chunk));
  ways.stderr.on('data', (chunk: Buffer) => seen.err.push(chunk));
  const running = record(process.execPath, ['-e', script], 's', (line) => written.push(typeof line === 'function' ? line() : line), ways);
  for (const chunk of input) ways.stdin.write(chunk);
  ways.stdin.end();
  const code = await running;
  return { code, written, out: Buffer.concat(seen.out), err: Buffer.concat(seen.err) };
}

test('record changes no byte: odd bytes, CRLF, no last line feed, megabytes; the exit code and a signal are passed on', async () => {
  const odd = Buffer.concat([Buffer.from('{"jsonrpc":"2.0","id":1,"method":"ping"}\r\n'), Buffer.from([0xff, 0xfe, 0x00, 0x0a]), Buffer.from('x'.repeat(3_000_000)), Buffer.from('\n{"half":')]);
  const chunks = [odd.subarray(0, 10), odd.subarray(10, 50), odd.subarray(50)];
  const echo = 'process.stdin.pipe(process.stdout); process.stderr.write("on \\u001b[31mstderr"); process.stdin.on("end", () => { process.exitCode = 7; })';
  const { code, out: echoed, err, written } = await recordedBetween(echo, chunks);
  assert.equal(code, 7);
  assert.ok(echoed.equals(odd), 'every byte, in order');
  assert.equal(err.toString(), 'on \u001b[31mstderr');
  const messages = written.filter(({ msg }) => msg !== undefined);
  assert.deepEqual(messages.map(({ dir, msg }) => [dir, (msg as Json).method]), [['out', 'ping'], ['in', 'ping']]);
  assert.ok(written.some(({ noise }) => noise === '{"half":'), 'what is not a message is noise');
  assert.deepEqual(written.at(-1), { type: 'server', server: 's', state: 'ended', code: 7, signal: null });
  assert.equal((await recordedBetween('process.kill(process.pid, "SIGTERM")', [])).code, 128 + 15);
  const missing = await rejection(record(join(root, 'no such program'), [], 's', () => {}, { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() }));
  assert.equal(missing.code, 'ENOENT');
});

test('record: a reader that leaves is told to the server, as by a pipe; a trace that cannot be written disturbs nothing', async () => {
  const endless = 'process.stdout.on("error", () => process.exit(4)); setInterval(() => process.stdout.write("x".repeat(1000) + "\\n"), 1)';
  const stdout = new Writable({ write: (_chunk, _encoding, done) => done(new Error('EPIPE')) });
  const ways = { stdin: new PassThrough(), stdout, stderr: new PassThrough() };
  assert.equal(await record(process.execPath, ['-e', endless], 's', () => {}, ways), 4);

  const lost: string[] = [];
  const keeper = new Keeper(folder(), (why) => lost.push(why.message)); // a folder is not a file
  keeper.write({ type: 'note' });
  keeper.flush();
  assert.equal(lost.length, 1, `${lost}`);
  assert.match(lost[0]!, /is not a regular file/);
  const file = join(folder(), 'new', 't.jsonl');
  const kept = new Keeper(file, (why) => lost.push(why.message));
  for (let n = 0; n < 3; n++) kept.write({ n }, 2 ** 23); // the third is too much to wait
  assert.equal(readTrace(readFileSync(file, 'utf8')).happenings.length, 3);
  const odd = () => { throw new Error('cannot be told'); };
  kept.write(odd);
  kept.flush();
  assert.deepEqual(lost.slice(1), ['cannot be told']);
});

// ─── The page ────────────────────────────────────────────────────────────────────────────────────

const viewer = join(root, 'chapters', '30-seeing', 'viewer.html');

test('the page is one file of at most 80 KB, sealed by the hashes of its script and its style, and loads nothing', () => {
  const page = readFileSync(viewer, 'utf8');
  assert.ok(statSync(viewer).size <= 80_000, `${statSync(viewer).size}`);
  assert.equal(sealed(page), page, 'the hashes in viewer.html are old: npx tsx chapters/30-seeing/seal.ts');
  assert.match(page, /default-src 'none'/);
  assert.doesNotMatch(page, /innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|<link|<img|@import|url\(/);
});

/** The contrast of two colours, as WCAG 2 defines it. */
function contrast(one: string, other: string): number {
  const light = (colour: string) => {
    const parts = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255);
    const [r = 0, g = 0, b = 0] = parts.map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  };
  const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
  return high! / low!;
}

test('every colour of words on the page has a contrast of 4.5 on every ground, and of signs 3, in both themes', () => {
  const palettes = [...readFileSync(viewer, 'utf8').matchAll(/:root \{([^}]*--paper[^}]*)\}/g)];
  assert.equal(palettes.length, 2);
  for (const [, palette = ''] of palettes) {
    const colours = Object.fromEntries([...palette.matchAll(/--([\w-]+): (#[\da-f]{6})/g)].map(([, name, value]) => [name, value]));
    for (const ground of ['paper', 'panel', 'pick', 'hover']) {
      for (const words of ['ink', 'soft', 'ask', 'ok', 'bad', 'gone', 'note', 'told'])
        assert.ok(contrast(colours[words], colours[ground]) >= 4.5, `${words} on ${ground}: ${palette}`);
      for (const sign of ['edge', 'pick-edge']) assert.ok(contrast(colours[sign], colours[ground]) >= 3, `${sign} on ${ground}`);
    }
  }
});

test('F30: a trace inside the page cannot begin a tag, and its name cannot leave its place', () => {
  const evil = lines({ trace: 1 }, out({ id: 1, method: '</script><script>alert(1)</script><!--' }));
  const page = pageWith(evil, '"><script>alert(2)</script>');
  assert.equal(page.match(/<script/g)!.length, readFileSync(viewer, 'utf8').match(/<script/g)!.length + 1);
  assert.doesNotMatch(page, /alert\(1\)<\/script>|"><script>alert\(2\)/);
  const [, data = ''] = /id="trace"[^>]*>([^]*?)<\/script>/.exec(page)!;
  assert.equal(readTrace(data).messages[0]!.msg.method, '</script><script>alert(1)</script><!--');
});

function get(url: string, headers: Record<string, string> = {}, method = 'GET') {
  return new Promise<{ status: number; headers: Json; body: string }>((done, fail) => {
    const request = httpRequest(url, { headers, method }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text) => {
        body += text;
        if (body.includes('END')) request.destroy();
      });
      response.on('close', () => done({ status: response.statusCode!, headers: response.headers as Json, body }));
    });
    request.on('error', fail);
    request.end();
  });
}

test('G30: live: only this machine, only this path, only this Host and Origin; what came before is told, and what comes', async () => {
  const page = new LivePage();
  later(() => page.close());
  const url = await page.start();
  const { host, origin } = new URL(url);
  page.write('{"first":1}');
  assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]{32}\/$/);
  assert.equal((await get(url)).status, 200);
  assert.equal((await get(url, { origin })).status, 200);
  const refusals: [string, string, Record<string, string>, string?][] = [
    ['a name that leads here', url, { host: `evil.example:${new URL(url).port}` }],
    ['localhost by name', url, { host: host.replace('127.0.0.1', 'localhost') }],
    ['a foreign page', url, { origin: 'https://evil.example' }],
    ['a page without an origin', url, { origin: 'null' }],
    ['events for a foreign page', `${url}events`, { origin: 'https://evil.example' }],
  ];
  for (const [name, address, headers] of refusals) {
    const answer = await get(address, headers);
    assert.deepEqual([answer.status, answer.headers['access-control-allow-origin']], [403, undefined], name);
  }
  assert.equal((await get(`${origin}/`)).status, 404);
  assert.equal((await get(`${origin}/${'0'.repeat(32)}/`)).status, 404);
  assert.equal((await get(url, {}, 'POST')).status, 405);
  const events = get(`${url}events`);
  page.write('{"END":2}');
  assert.match((await events).body, /data: \{"first":1\}\n\ndata: \{"END":2\}\n\n/);
});
