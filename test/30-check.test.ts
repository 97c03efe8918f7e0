// Chapter 30: traces are judged by the rules of the protocol.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { checkTrace } from '../chapters/30-seeing/check.ts';
import { Replay } from '../chapters/30-seeing/replay.ts';
import { readTrace } from '../chapters/30-seeing/more/read-trace.ts';
import type { Json, Message } from '../mcp.ts';
import { cleanUp } from './help/basics.ts';
import { askCity, asker, back, lines, META, out, recorded } from './help/traces.ts';

afterEach(cleanUp);

const HELLO = [
  out({
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {} },
  }),
  back({
    id: 1,
    result: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: {} },
  }),
  out({ method: 'notifications/initialized' }),
];
const TOOLS = [
  out({ id: 2, method: 'tools/list' }),
  back({
    id: 2,
    result: {
      tools: [
        {
          name: 'add',
          inputSchema: { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] },
          outputSchema: { type: 'object', required: ['sum'] },
        },
      ],
    },
  }),
];
const call = (args: Json) =>
  out({ id: 3, method: 'tools/call', params: { name: 'add', arguments: args } });
const good = { content: [{ type: 'text', text: '1' }], structuredContent: { sum: 1 } };

test('trace check: each rule that is broken is named with its line, and who broke it', () => {
  const table: [
    name: string,
    records: unknown[],
    findings: [line: number, who: string, rule: string][],
  ][] = [
    ['nothing wrong', [...HELLO, ...TOOLS, call({ a: 1 }), back({ id: 3, result: good })], []],
    [
      'a request before the handshake',
      [out({ id: 1, method: 'tools/list' }), back({ id: 1, result: { tools: [] } })],
      [[1, 'client', 'handshake']],
    ],
    [
      'a request before its end',
      [
        ...HELLO.slice(0, 2),
        out({ id: 2, method: 'tools/list' }),
        back({ id: 2, result: { tools: [] } }),
      ],
      [[3, 'client', 'handshake']],
    ],
    [
      'two handshakes',
      [
        ...HELLO,
        ...HELLO.slice(0, 1).map(() =>
          out({
            id: 9,
            method: 'initialize',
            params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {} },
          }),
        ),
        back({ id: 9, error: { code: -32600, message: 'no' } }),
      ],
      [[4, 'client', 'handshake']],
    ],
    ['no answer', [...HELLO, out({ id: 2, method: 'tools/list' })], [[4, 'server', 'unanswered']]],
    [
      'two answers',
      [...HELLO, ...TOOLS, back({ id: 2, result: { tools: [] } })],
      [[6, 'server', 'answer']],
    ],
    ['an answer to nothing', [...HELLO, back({ id: 8, result: {} })], [[4, 'server', 'answer']]],
    [
      'an id twice',
      [...HELLO, ...TOOLS, out({ id: 2, method: 'ping' }), back({ id: 2, result: {} })],
      [[6, 'client', 'id']],
    ],
    [
      'an id that is none',
      [
        ...HELLO,
        { at: 0, dir: 'out', server: 's', msg: { jsonrpc: '2.0', id: 1.5, method: 'ping' } },
      ],
      [
        [4, 'client', 'id'],
        [4, 'server', 'unanswered'],
      ],
    ],
    [
      '1 and "1" are two ids',
      [...HELLO, out({ id: '1', method: 'ping' }), back({ id: '1', result: {} })],
      [],
    ],
    [
      'no jsonrpc',
      [...HELLO, { at: 0, dir: 'in', server: 's', msg: { method: 'notifications/x' } }],
      [[4, 'server', 'jsonrpc']],
    ],
    [
      'result and error',
      [
        ...HELLO,
        out({ id: 2, method: 'ping' }),
        back({ id: 2, result: {}, error: { code: 1, message: '' } }),
      ],
      [[5, 'server', 'answer']],
    ],
    [
      'an error without a code',
      [...HELLO, out({ id: 2, method: 'ping' }), back({ id: 2, error: { message: 'x' } })],
      [[5, 'server', 'error']],
    ],
    [
      'a capability of the server',
      [...HELLO, out({ id: 2, method: 'prompts/list' }), back({ id: 2, result: { prompts: [] } })],
      [[4, 'client', 'capability']],
    ],
    [
      'a notice that was not declared',
      [...HELLO, back({ method: 'notifications/tools/list_changed' })],
      [[4, 'server', 'capability']],
    ],
    [
      'a capability of the client',
      [
        ...HELLO,
        back({ id: 5, method: 'elicitation/create', params: {} }),
        out({ id: 5, result: { action: 'cancel' } }),
      ],
      [[4, 'server', 'capability']],
    ],
    [
      'arguments',
      [...HELLO, ...TOOLS, call({ a: 'x' }), back({ id: 3, result: good })],
      [[6, 'client', 'arguments']],
    ],
    [
      'an unknown tool',
      [
        ...HELLO,
        ...TOOLS,
        out({ id: 3, method: 'tools/call', params: { name: 'sub' } }),
        back({ id: 3, error: { code: -32602, message: 'no' } }),
      ],
      [[6, 'client', 'tool']],
    ],
    [
      'output',
      [...HELLO, ...TOOLS, call({ a: 1 }), back({ id: 3, result: { content: [] } })],
      [[7, 'server', 'output']],
    ],
    [
      'an odd block',
      [
        ...HELLO,
        ...TOOLS,
        call({ a: 1 }),
        back({
          id: 3,
          result: { ...good, content: [{ type: 'smell' }, { type: 'image', data: '' }] },
        }),
      ],
      [
        [7, 'server', 'content'],
        [7, 'server', 'content'],
      ],
    ],
    [
      'progress that goes back',
      [
        ...HELLO,
        out({ id: 2, method: 'tools/list', params: { _meta: { progressToken: 1 } } }),
        back({ method: 'notifications/progress', params: { progressToken: 1, progress: 2 } }),
        back({ method: 'notifications/progress', params: { progressToken: 1, progress: 2 } }),
        back({ id: 2, result: { tools: [] } }),
      ],
      [[6, 'server', 'progress']],
    ],
    [
      'a late answer',
      [
        ...HELLO,
        out({ id: 2, method: 'ping' }),
        out({ method: 'notifications/cancelled', params: { requestId: 2 } }),
        back({ id: 2, result: {} }),
      ],
      [[6, 'server', 'late']],
    ],
    ['noise', [...HELLO, { at: 1, server: 's', noise: 'hello' }], [[4, 'server', 'noise']]],
    [
      'a request of a stateless server',
      [
        out({
          id: 1,
          method: 'server/discover',
          params: {
            _meta: {
              'io.modelcontextprotocol/protocolVersion': '2026-07-28',
              'io.modelcontextprotocol/clientCapabilities': { roots: {} },
            },
          },
        }),
        back({
          id: 1,
          result: { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: {} },
        }),
        back({ id: 2, method: 'roots/list' }),
        out({ id: 2, result: { roots: [] } }),
      ],
      [[3, 'server', 'era']],
    ],
    [
      'a result without its type',
      [
        out({
          id: 1,
          method: 'server/discover',
          params: {
            _meta: {
              'io.modelcontextprotocol/protocolVersion': '2026-07-28',
              'io.modelcontextprotocol/clientCapabilities': {},
            },
          },
        }),
        back({ id: 1, result: { supportedVersions: ['2026-07-28'], capabilities: {} } }),
      ],
      [[2, 'server', 'result']],
    ],
    [
      'a probe, then a handshake',
      [
        out({
          id: 0,
          method: 'server/discover',
          params: {
            _meta: {
              'io.modelcontextprotocol/protocolVersion': '2026-07-28',
              'io.modelcontextprotocol/clientCapabilities': {},
            },
          },
        }),
        back({ id: 0, error: { code: -32601, message: 'what?' } }),
        ...HELLO,
      ],
      [],
    ],
    [
      'an opening that is sent again',
      [
        HELLO[0],
        out({
          id: 5,
          method: 'initialize',
          params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {} },
        }),
        HELLO[1],
        back({ id: 5, error: { code: -32600, message: 'no' } }),
        HELLO[2],
      ],
      [[2, 'client', 'handshake']],
    ],
    [
      'an opening after a refusal',
      [
        out({
          id: 0,
          method: 'initialize',
          params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {} },
        }),
        back({ id: 0, error: { code: -32602, message: 'another' } }),
        ...HELLO,
      ],
      [],
    ],
    [
      'garbage of the client',
      [...HELLO, { at: 1, dir: 'out', server: 's', noise: 'hello' }],
      [[4, 'client', 'noise']],
    ],
    [
      'completion in the first revision',
      [
        ...lines(...HELLO)
          .replaceAll('2025-11-25', '2024-11-05')
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line)),
        out({ id: 2, method: 'completion/complete' }),
        back({ id: 2, result: {} }),
      ],
      [],
    ],
    [
      'a tool that is new',
      [
        ...HELLO.slice(0, 1),
        back({
          id: 1,
          result: {
            protocolVersion: '2025-11-25',
            capabilities: { tools: { listChanged: true } },
            serverInfo: {},
          },
        }),
        HELLO[2],
        ...TOOLS,
        back({ method: 'notifications/tools/list_changed' }),
        out({ id: 3, method: 'tools/call', params: { name: 'new' } }),
        back({ id: 3, result: { content: [] } }),
      ],
      [],
    ],
    [
      'an address, of a client that takes forms',
      [
        out({
          id: 1,
          method: 'initialize',
          params: {
            protocolVersion: '2025-11-25',
            capabilities: { elicitation: { form: {} } },
            clientInfo: {},
          },
        }),
        ...HELLO.slice(1),
        back({ id: 1, method: 'elicitation/create', params: { mode: 'url' } }),
        out({ id: 1, result: { action: 'decline' } }),
      ],
      [[4, 'server', 'capability']],
    ],
    [
      'a question inside a result, and a revision that the server does not speak',
      [
        out({ id: 1, method: 'server/discover', params: { _meta: META } }),
        back({
          id: 1,
          result: {
            resultType: 'complete',
            supportedVersions: ['2026-07-28'],
            capabilities: { tools: {} },
          },
        }),
        out({ id: 2, method: 'tools/call', params: { name: 'x', _meta: META } }),
        back({
          id: 2,
          result: { resultType: 'input_required', inputRequests: { a: { method: 'roots/list' } } },
        }),
        out({
          id: 3,
          method: 'ping',
          params: { _meta: { ...META, 'io.modelcontextprotocol/protocolVersion': '2025-11-25' } },
        }),
        back({ id: 3, result: {} }),
      ],
      [
        [4, 'server', 'capability'],
        [5, 'client', 'version'],
      ],
    ],
    [
      'a second connection begins anew',
      [...HELLO, { at: 5, type: 'server', server: 's', state: 'connecting' }, ...HELLO],
      [],
    ],
  ];
  for (const [name, records, findings] of table) {
    const found = checkTrace(readTrace(lines(...records)));
    assert.deepEqual(
      found.map(({ line, who, rule }) => [line, who, rule]),
      findings,
      `${name}: ${JSON.stringify(found)}`,
    );
  }
});

test('a recording is foreign text: a hostile value in any place of it ends neither the judge nor the replay', async () => {
  const story = [
    { trace: 1 },
    { at: 0, type: 'server', server: 's', state: 'started' },
    ...HELLO,
    ...TOOLS,
    back({ id: 5, method: 'roots/list' }),
    out({ id: 5, result: { roots: [] } }),
    call({ a: 1 }),
    back({ method: 'notifications/progress', params: { progressToken: 1, progress: 1 } }),
    back({ id: 3, result: good }),
    out({ id: 6, method: 'server/discover', params: { _meta: META } }),
    back({
      id: 6,
      result: { resultType: 'input_required', inputRequests: { a: { method: 'roots/list' } } },
    }),
    { t: '2026-11-17', server: 's', noise: 'n' },
  ];
  const text = JSON.stringify(story);
  const places: string[][] = [];
  const walk = (value: unknown, path: string[]) => {
    places.push(path);
    if (typeof value === 'object' && value !== null)
      for (const [key, inner] of Object.entries(value)) walk(inner, [...path, key]);
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
        await (await replay.answer(msg as Message, line)).afterwards?.(line);
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
