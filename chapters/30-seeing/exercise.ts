// Judges exercise 30: does each request find its recorded answer? Recordings are written here, some
// of them drawn by lot, and the Replay is asked directly.

import type { Json } from '../../mcp.ts';
import type { Judge } from '../book.ts';

type Entry = { method: string; params?: Json; result?: unknown }; // without a result: no answer came
type Request = [method: string, params?: Json];

const text = (entries: Entry[]) => {
  const lines = entries.flatMap(({ method, params, result }, n) => {
    const request = { jsonrpc: '2.0', id: n + 1, method, params };
    const answer = { jsonrpc: '2.0', id: n + 1, result };
    return [
      { at: 2 * n, dir: 'out', server: 's', msg: request },
      ...(result === undefined ? [] : [{ at: 2 * n + 1, dir: 'in', server: 's', msg: answer }]),
    ];
  });
  return lines.map((line) => JSON.stringify(line)).join('\n');
};

const call = (name: string, args?: Json, _meta?: Json): Request => [
  'tools/call',
  { name, ...(args && { arguments: args }), ...(_meta && { _meta }) },
];
const opening = (protocolVersion: string, name: string): Request => [
  'initialize',
  { protocolVersion, capabilities: {}, clientInfo: { name, version: '1' } },
];
const recorded = ([method, params]: Request, result?: unknown): Entry => ({
  method,
  params,
  result,
});

const random = (below: number) => Math.floor(Math.random() * below);
const [A, B] = [10 + random(90), 100 + random(900)];
const SUM = call('add', { a: A, b: B });
const ONE_MORE = call('add', { a: 1, b: 1 });
const NEXT = call('next');
const PAGE: Request = ['resources/read', { name: 'page' }];
const RECORDED: Entry[] = [
  recorded(opening('2025-11-25', 'then'), { protocolVersion: '2025-11-25', n: 1 }),
  recorded(SUM, A + B),
  recorded(NEXT, 'one'),
  recorded(ONE_MORE, 2),
  recorded(NEXT, 'two'),
  recorded(call('login', { key: '***' }), 'in'),
  recorded(call('page'), 'a call'),
  recorded(PAGE, 'a page'),
  recorded(call('sleep', { ms: 600 })), // it was cancelled
  recorded(opening('2025-11-25', 'then'), { protocolVersion: '2025-11-25', n: 2 }),
  recorded(opening('2024-11-05', 'then'), { protocolVersion: '2024-11-05', n: 3 }),
  recorded(NEXT, 'three'),
];

/** A recording of a few kinds of requests, several times each, and requests in another order. */
function drawn() {
  const kinds = Array.from({ length: 2 + random(3) }, (_, n) =>
    call(`kind ${n}`, { n: random(9) }),
  );
  const entries = Array.from({ length: 6 + random(8) }, (_, n) => {
    return recorded(kinds[random(kinds.length)]!, `answer ${n}`);
  });
  const requests = Array.from({ length: 8 + random(8) }, () => kinds[random(kinds.length)]!);
  const asked = new Map<Request, number>();
  const wanted = requests.map((kind) => {
    const all = entries.filter(({ params }) => params === kind[1]);
    const n = asked.get(kind) ?? 0;
    asked.set(kind, n + 1);
    return all[Math.min(n, all.length - 1)]?.result ?? 'a miss';
  });
  return { entries, requests, wanted: wanted.join(', ') };
}

export const judge: Judge = async ({ load, see, expect }) => {
  const { Replay } = await load('chapters/30-seeing/replay.ts');
  const { readTrace } = await load('chapters/30-seeing/more/read-trace.ts');
  const line = { tell: () => {}, ask: async () => ({}), isGone: () => false };

  /** What a fresh replay answers to these requests, one after the other. */
  const answersOf = async (entries: Entry[], requests: Request[]) => {
    const replay = new Replay(readTrace(text(entries)), 's');
    const came: unknown[] = [];
    for (const [n, [method, params]] of requests.entries()) {
      const request = { jsonrpc: '2.0', id: 100 + n, method, params };
      see('out', request);
      const { said } = await replay.answer(request, line);
      see('in', said ?? 'silence');
      const { result } = said ?? { result: 'silence' };
      came.push((result as Json | undefined)?.n ?? result ?? 'a miss');
    }
    return came.join(', ');
  };
  const answers = (...requests: Request[]) => answersOf(RECORDED, requests);
  const same = (what: string, wanted: string, came: Promise<string>) =>
    expect(what, wanted, came, (answer: string) => answer === wanted);

  // ── Any order ──

  const sum = `${A + B}`;
  await same('a request finds its answer', sum, answers(SUM));
  await same('in any order', `2, ${sum}`, answers(ONE_MORE, SUM));
  await same(
    'the order of keys means nothing, and _meta differs from run to run',
    sum,
    answers(call('add', { b: B, a: A }, { progressToken: 7 })),
  );
  await same(
    'the same parameters with another method are another request',
    'a page, a call',
    answers(PAGE, call('page')),
  );
  await same('what was masked matches anything', 'in', answers(call('login', { key: 'k-1' })));
  await same(
    'a request that was never answered is found, too',
    `silence, ${sum}`,
    answers(call('sleep', { ms: 600 }), SUM),
  );
  const misses: [string, Request][] = [
    ['another argument', call('add', { a: A, b: B + 1 })],
    ['one argument more', call('add', { a: A, b: B, c: 0 })],
    ['an argument of another type', call('add', { a: `${A}`, b: B })],
    ['another name', call('subtract', { a: A, b: B })],
    ['a method that was never called', ['prompts/get', { name: 'next' }]],
  ];
  for (const [what, request] of misses) {
    await same(`${what} is another request`, `a miss, ${sum}`, answers(request, SUM));
  }

  // ── Equal ones ──

  await same(
    'equal requests get their answers in the recorded order',
    'one, two, three',
    answers(NEXT, NEXT, NEXT),
  );
  await same(
    'other requests between them change nothing',
    `one, 2, ${sum}, two, a page, three`,
    answers(NEXT, ONE_MORE, SUM, NEXT, PAGE, NEXT),
  );
  await same(
    'when all are used, the last again',
    'one, two, three, three, three',
    answers(NEXT, NEXT, NEXT, NEXT, NEXT),
  );
  await same('what was recorded once is there again', `${sum}, ${sum}`, answers(SUM, SUM));
  for (let n = 0; n < 30; n++) {
    const { entries, requests, wanted } = drawn();
    const came = await answersOf(entries, requests);
    const what = 'a recording that is drawn by lot, in another order';
    if (came !== wanted) await same(what, wanted, Promise.resolve(came));
  }

  // ── The opening ──

  await same(
    'another client may open the conversation, in the recorded revision',
    '1',
    answers(opening('2025-11-25', 'now')),
  );
  await same(
    'and not in one that was not recorded',
    'a miss',
    answers(opening('2025-06-18', 'now')),
  );
  await same(
    'each revision has its own opening',
    '3, 1',
    answers(opening('2024-11-05', 'now'), opening('2025-11-25', 'now')),
  );
  await same(
    'who opens it again gets the second opening',
    '1, 2, 2',
    answers(opening('2025-11-25', 'a'), opening('2025-11-25', 'b'), opening('2025-11-25', 'c')),
  );
};
