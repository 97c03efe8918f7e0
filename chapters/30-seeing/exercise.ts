// Judges exercise 30: does each request find its recorded answer? The recording is written here, and
// the Replay is asked directly.

import type { Json } from '../../mcp.ts';
import type { Judge } from '../book.ts';

type Entry = { id: number; method: string; params?: Json; result: unknown };

const text = (entries: Entry[]) => {
  const lines = entries.flatMap(({ id, method, params, result }, n) => [
    { at: 2 * n, dir: 'out', server: 's', msg: { jsonrpc: '2.0', id, method, params } },
    { at: 2 * n + 1, dir: 'in', server: 's', msg: { jsonrpc: '2.0', id, result } },
  ]);
  return lines.map((line) => JSON.stringify(line)).join('\n');
};

const OPENING = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'then' } };
const RECORDED: Entry[] = [
  { id: 1, method: 'initialize', params: OPENING, result: { protocolVersion: '2025-11-25' } },
  { id: 2, method: 'tools/call', params: { name: 'add', arguments: { a: 2, b: 40 } }, result: 42 },
  { id: 3, method: 'tools/call', params: { name: 'next' }, result: 'one' },
  { id: 4, method: 'tools/call', params: { name: 'add', arguments: { a: 1, b: 1 } }, result: 2 },
  { id: 5, method: 'tools/call', params: { name: 'next' }, result: 'two' },
  {
    id: 6,
    method: 'tools/call',
    params: { name: 'login', arguments: { key: '***' } },
    result: 'in',
  },
  { id: 7, method: 'resources/read', params: { name: 'next' }, result: 'a page' },
];

export const judge: Judge = async ({ load, see, expect }) => {
  const { Replay } = await load('chapters/30-seeing/replay.ts');
  const { readTrace } = await load('chapters/30-seeing/more/read-trace.ts');
  const recording = readTrace(text(RECORDED));
  const line = { tell: () => {}, ask: async () => ({}), isGone: () => false };

  /** What a fresh replay answers to these requests, one after the other. */
  const answers = async (...requests: [method: string, params?: Json][]) => {
    const replay = new Replay(recording, 's');
    const came: unknown[] = [];
    for (const [n, [method, params]] of requests.entries()) {
      const request = { jsonrpc: '2.0', id: 100 + n, method, params };
      see('out', request);
      const { said } = await replay.answer(request, line);
      see('in', said);
      came.push(said?.result ?? 'a miss');
    }
    return came.join(', ');
  };
  const call = (name: string, args?: Json, _meta?: Json): [string, Json] => [
    'tools/call',
    { name, ...(args && { arguments: args }), ...(_meta && { _meta }) },
  ];
  const same = (what: string, wanted: string, came: Promise<string>) =>
    expect(what, wanted, came, (answer: string) => answer === wanted);

  await same('a request finds its answer', '42', answers(call('add', { a: 2, b: 40 })));
  await same(
    'in any order',
    '2, 42',
    answers(call('add', { a: 1, b: 1 }), call('add', { a: 2, b: 40 })),
  );
  await same(
    'the order of keys means nothing, and _meta differs from run to run',
    '42',
    answers(call('add', { b: 40, a: 2 }, { progressToken: 7 })),
  );
  await same(
    'another argument is another request',
    'a miss',
    answers(call('add', { a: 2, b: 41 })),
  );
  await same(
    'the same parameters with another method are another request',
    'one, a page',
    answers(call('next'), ['resources/read', { name: 'next' }]),
  );
  await same(
    'equal requests get their answers in the recorded order',
    'one, two',
    answers(call('next'), call('next')),
  );
  await same(
    'when all are used, the last again',
    'one, two, two, two',
    answers(call('next'), call('next'), call('next'), call('next')),
  );
  await same(
    'other requests between them change nothing',
    'one, 2, two',
    answers(call('next'), call('add', { a: 1, b: 1 }), call('next')),
  );
  await same(
    'what was used once is there again',
    '42, 42',
    answers(call('add', { a: 2, b: 40 }), call('add', { a: 2, b: 40 })),
  );
  await same('what was masked matches anything', 'in', answers(call('login', { key: 'k-1' })));
  await expect(
    'another client may open the conversation, in the recorded revision',
    'the recorded answer to initialize',
    answers(['initialize', { protocolVersion: '2025-11-25', clientInfo: { name: 'now' } }]),
    (came: string) => came === '[object Object]',
  );
  await same(
    'and not in another one',
    'a miss',
    answers(['initialize', { protocolVersion: '2024-11-05', clientInfo: { name: 'now' } }]),
  );
};
