// Chapter 30: traces are played back as servers.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { httpTransports } from '../chapters/20-streamable-http/http.ts';
import { serveHttp } from '../chapters/29-a-server/serve-http.ts';
import { ReplayServer, replayTransport } from '../chapters/30-seeing/replay-wires.ts';
import { Replay, type ReplayOptions } from '../chapters/30-seeing/replay.ts';
import { readTrace } from '../chapters/30-seeing/more/read-trace.ts';
import type { McpConnection, Json } from '../mcp.ts';
import { cleanUp, goodServer, later, rejection, until } from './help/basics.ts';
import { askCity, asker, back, changes, lines, META, out, recorded } from './help/traces.ts';

afterEach(cleanUp);

/** The same conversation with a recording in the place of the server. */
async function replayed(
  text: string,
  talk: (connection: McpConnection) => Promise<unknown>,
  options: ReplayOptions = {},
) {
  const misses: string[] = [];
  const transport = replayTransport(readTrace(text), 's', {
    onMiss: (miss) => misses.push(miss),
    ...options,
  });
  const again = await recorded({ type: 'replay' }, talk, {
    transports: { replay: () => transport },
  });
  return { ...again, misses };
}

/** The same over HTTP. */
async function replayedByHttp(text: string, talk: (connection: McpConnection) => Promise<unknown>) {
  const misses: string[] = [];
  const newReplay = () => new Replay(readTrace(text), 's', { onMiss: (miss) => misses.push(miss) });
  const http = await serveHttp(new ReplayServer(newReplay, 's'));
  later(() => http.close());
  const again = await recorded({ type: 'http', url: http.url }, talk, {
    transports: httpTransports,
  });
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
    const kinds = (text: string) =>
      readTrace(text).messages.map(({ dir, msg }) => `${dir} ${msg.method}`);
    assert.deepEqual(
      kinds(third.text).slice(-8),
      kinds(first.text).slice(-8),
      'in the same places',
    );
  });
}

const textResult = (text: string, more = {}) => ({ content: [{ type: 'text', text }], ...more });

test('over HTTP: what came before the handshake, after an answer and on a subscription finds a way, in both eras', async () => {
  const told = (method: string, params: Json = {}) =>
    back({ method: `notifications/${method}`, params });
  const log = (data: string) => told('message', { level: 'info', data });
  const shaken = lines(
    log('before all'),
    out({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25' } }),
    back({
      id: 1,
      result: {
        protocolVersion: '2025-11-25',
        capabilities: { tools: {}, logging: {} },
        serverInfo: { name: 's', version: '1' },
      },
    }),
    out({ method: 'notifications/initialized' }),
    back({ id: 7, method: 'roots/list' }),
    out({ id: 7, result: { roots: [] } }),
    out({ id: 2, method: 'tools/call', params: { name: 'one' } }),
    back({ id: 2, result: textResult('1') }),
    log('after one'),
    out({ id: 3, method: 'tools/call', params: { name: 'two' } }),
    log('during two'),
    back({ id: 3, result: textResult('2') }),
  );
  const subscription = { _meta: { 'io.modelcontextprotocol/subscriptionId': 8 } };
  const stateless = lines(
    out({ id: 1, method: 'server/discover', params: { _meta: META } }),
    back({
      id: 1,
      result: {
        resultType: 'complete',
        supportedVersions: ['2026-07-28'],
        capabilities: { tools: { listChanged: true } },
      },
    }),
    out({
      id: 8,
      method: 'subscriptions/listen',
      params: { notifications: { toolsListChanged: true } },
    }),
    told('subscriptions/acknowledged', {
      notifications: { toolsListChanged: true },
      ...subscription,
    }),
    out({ id: 2, method: 'tools/call', params: { name: 'one' } }),
    back({ id: 2, result: textResult('1', { resultType: 'complete' }) }),
    told('tools/list_changed', subscription),
    out({ id: 3, method: 'tools/call', params: { name: 'two' } }),
    log('during two'),
    back({ id: 3, result: textResult('2', { resultType: 'complete' }) }),
  );
  const talk = async (connection: McpConnection) => {
    const before = changes;
    const texts = [
      (await connection.callTool('one')).text,
      (await connection.callTool('two')).text,
    ];
    if (connection.server?.protocolVersion === '2026-07-28')
      await until(() => changes > before, 'the change');
    return texts;
  };
  const comesIn = (text: string) =>
    readTrace(text)
      .messages.filter(({ dir, msg }) => dir === 'in' && msg.method !== undefined)
      .map(({ msg }) => `${msg.method} ${(msg.params as Json)?.data ?? ''}`.trim());
  const first = await replayedByHttp(shaken, talk);
  assert.deepEqual([first.result, first.misses], [['1', '2'], []]);
  assert.deepEqual(comesIn(first.text), [
    'notifications/message before all',
    'roots/list',
    'notifications/message after one',
    'notifications/message during two',
  ]);
  const second = await replayedByHttp(stateless, talk);
  assert.deepEqual([second.result, second.misses], [['1', '2'], []]);
  const came = comesIn(second.text);
  assert.deepEqual(
    came.filter((each) => !each.includes('message')),
    ['notifications/subscriptions/acknowledged', 'notifications/tools/list_changed'],
  );
  assert.ok(came.includes('notifications/message during two'));
  const changed = readTrace(second.text).messages.find(
    ({ msg }) => msg.method === 'notifications/tools/list_changed',
  )!;
  const listening = readTrace(second.text).messages.find(
    ({ msg }) => msg.method === 'subscriptions/listen',
  )!;
  assert.equal(
    ((changed.msg.params as Json)._meta as Json)['io.modelcontextprotocol/subscriptionId'],
    listening.msg.id,
    'under the id of today',
  );
});

const sums = [
  [1, 2],
  [3, 4],
  [5, 6],
  [7, 8],
] as const;
const add = (connection: McpConnection, [a, b]: readonly [number, number]) =>
  connection.callTool('add', { a, b }).then(({ text }) => text);

test('requests in another order, and side by side, find their answers; equal ones keep the recorded order', async () => {
  const { text } = await recorded(
    { command: process.execPath, args: [goodServer] },
    async (connection) => {
      for (const pair of sums) await add(connection, pair);
    },
  );
  const { result, misses } = await replayed(text, (connection) =>
    Promise.all([...sums].reverse().map((pair) => add(connection, pair))),
  );
  assert.deepEqual([result, misses], [['15', '11', '7', '3'], []]);

  const call = (id: number) => out({ id, method: 'tools/call', params: { name: 'next' } });
  const said = (id: number, text: string) =>
    back({ id, result: { content: [{ type: 'text', text }] } });
  const opening = [
    out({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25' } }),
    back({ id: 1, result: { protocolVersion: '2025-11-25', capabilities: { tools: {} } } }),
  ];
  const equal = lines(...opening, call(2), said(2, 'one'), call(3), said(3, 'two'));
  const next = async (connection: McpConnection) => (await connection.callTool('next')).text;
  const again = await replayed(equal, async (connection) => [
    await next(connection),
    await next(connection),
    await next(connection),
  ]);
  assert.deepEqual([again.result, again.misses], [['one', 'two', 'two'], []]);
});

test('progress has the token of today, and comes before the answer', async () => {
  const meta = { progressToken: 77 };
  const text = lines(
    out({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25' } }),
    back({ id: 1, result: { protocolVersion: '2025-11-25', capabilities: { tools: {} } } }),
    out({ id: 9, method: 'tools/call', params: { name: 'slow', _meta: meta } }),
    back({ method: 'notifications/progress', params: { progressToken: 77, progress: 1 } }),
    back({ id: 9, result: { content: [{ type: 'text', text: 'done' }] } }),
  );
  const seen: unknown[] = [];
  const { result, misses } = await replayed(
    text,
    async (connection) =>
      (
        await connection.callTool('slow', undefined, {
          onProgress: ({ progress }: Json) => seen.push(progress),
        })
      ).text,
  );
  assert.deepEqual([result, seen, misses], ['done', [1], []]);
});

test('tampered recordings: each miss names the nearest recording and the first difference', async () => {
  const { text } = await recorded({ command: process.execPath, args: [goodServer] }, (connection) =>
    add(connection, [2, 40]),
  );
  const swap = (from: string, to: string) => {
    assert.ok(text.includes(from), from);
    return text.replaceAll(from, to);
  };
  const table: [name: string, text: string, miss: RegExp][] = [
    [
      'another argument',
      swap('"b":40', '"b":41'),
      /nearest, in line \d+, differs: arguments\.b is 40, recorded: 41/,
    ],
    ['an argument more', swap('"b":40', '"b":40,"c":1'), /arguments\.c is not given, recorded: 1/],
    ['an argument less', swap(',"b":40', ''), /arguments\.b is 40, recorded: not given/],
    ['another type', swap('"b":40', '"b":"40"'), /arguments\.b is 40, recorded: "40"/],
    [
      'another tool',
      swap('"name":"add","arguments"', '"name":"sub","arguments"'),
      /name is "add", recorded: "sub"/,
    ],
    [
      'another method',
      swap('"method":"tools/call"', '"method":"tools/run"'),
      /has no tools\/call; it has .*initialize.*tools\/run/,
    ],
    [
      'the call is gone',
      text
        .split('\n')
        .filter((line) => !line.includes('tools/call'))
        .join('\n'),
      /has no tools\/call/,
    ],
    [
      'a list in its place',
      swap('"arguments":{"a":2,"b":40}', '"arguments":[2,40]'),
      /arguments is \{"a":2,"b":40\}, recorded: \[2,40\]/,
    ],
  ];
  for (const [name, tampered, miss] of table) {
    const { misses, result } = await replayed(tampered, (connection) =>
      add(connection, [2, 40]).catch((error) => error.message),
    );
    assert.match(`${misses}`, miss, name);
    assert.match(`${result}`, miss, `${name}: the client is told as well`);
  }
});

test('an answer of the client that leads elsewhere is a miss; a masked secret matches; a revision that was not recorded is refused', async () => {
  const { text } = await recorded(asker(), askCity);
  const declined = text.replaceAll('"action":"accept"', '"action":"decline"');
  assert.deepEqual((await replayed(declined, askCity)).misses, [
    'elicitation/create was answered with "accept"; recorded: "decline"',
  ]);
  const sum = await recorded({ command: process.execPath, args: [goodServer] }, (connection) =>
    connection.callTool('greet', { name: 'secret' }),
  );
  const masked = sum.text.replace('"name":"secret"', '"name":"***"');
  const { misses, result } = await replayed(masked, (connection) =>
    connection.callTool('greet', { name: 'secret' }),
  );
  assert.deepEqual([misses, (result as Json).text], [[], 'Hello, secret!']);
  // One that we speak is offered again, since the refusal names it (chapter 22). This one we don't speak.
  const unknown = sum.text.replaceAll('2025-11-25', '2023-01-01');
  const refused = await rejection(replayed(unknown, async () => {}));
  assert.match(refused.message, /the recording has revision 2023-01-01, not 2025-11-25/);
});

test('a call that was cancelled in the recording stays silent; ping is made up; what is missing can be had live', async () => {
  const opening = [
    out({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25' } }),
    back({ id: 1, result: { protocolVersion: '2025-11-25', capabilities: { tools: {} } } }),
  ];
  const text = lines(
    ...opening,
    out({ id: 2, method: 'tools/call', params: { name: 'hang' } }),
    out({ method: 'notifications/cancelled', params: { requestId: 2 } }),
  );
  const { result, misses } = await replayed(
    text,
    async (connection) => {
      await connection.request('ping');
      const abort = new AbortController();
      const hanging = rejection(connection.callTool('hang', undefined, { signal: abort.signal }));
      await connection.request('ping');
      abort.abort();
      const { kind } = await hanging;
      const live: Json = await connection.request('tools/call', { name: 'live' });
      return [kind, live];
    },
    { live: async ({ params }) => ({ result: { live: params!.name } }) },
  );
  assert.deepEqual([result, misses], [['aborted', { live: 'live' }], []]);
});
