// Chapter 22: answers that may be kept.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import type { Json } from '../mcp.ts';
import { cleanUp, connect, pause, rejection, until, type Opened } from './help/basics.ts';
import {
  isSubscribed,
  legacy,
  modern,
  onBoth,
  openOn,
  seen,
  sent,
  subscribe,
  user,
  watching,
  withEras,
} from './help/both-eras.ts';
import { mount, type Script } from './help/scripted-peer.ts';

afterEach(cleanUp);

/** Its answers hold what the address says, and how many requests it has seen. */
const library: Script = {
  'resources/read': ({ uri }, { seen }) => ({ result: { n: seen.length, ...JSON.parse(uri) } }),
  'subscriptions/listen': subscribe,
  'tools/list': ({ cursor }, { seen, isTurned }) =>
    isTurned && cursor
      ? { error: { code: -32602, message: 'bad cursor' } }
      : {
          result: { n: seen.length, tools: [], ttlMs: 60_000, ...(!cursor && { nextCursor: 'c' }) },
        },
  'prompts/list': (_, { seen }) => ({ result: { n: seen.length, prompts: [], ttlMs: 60_000 } }),
  'tools/call': ({ name }, __, memory) => (memory.listener.send({ method: name }), { result: {} }),
};
const reading =
  ({ connection }: Opened) =>
  async (fields: Json, more?: Json) =>
    (await connection.request('resources/read', { uri: JSON.stringify(fields), ...more })).n;

onBoth(
  'what the server lets us keep is not asked for again; everything else is',
  async (_, open) => {
    const read = reading(await open(watching(library)));
    for (const fields of [
      { ttlMs: 60_000 },
      { ttlMs: 60_000, cacheScope: 'private' },
      { ttlMs: 60_000, cacheScope: 'public' },
      { ttlMs: 1e300 },
    ])
      assert.equal(await read(fields), await read(fields), JSON.stringify(fields));
    for (const fields of [{}, { ttlMs: 0 }, { ttlMs: -1 }, { ttlMs: '60000' }, { ttlMs: null }])
      assert.notEqual(await read(fields), await read(fields), JSON.stringify(fields));
    assert.equal(
      await read({ ttlMs: 6e4 }, { _meta: { traceparent: '1' } }),
      await read({ ttlMs: 6e4 }, { _meta: { traceparent: '2' } }),
    );
    const short = await read({ ttlMs: 1 });
    let again = short;
    for (let n = 0; n < 1000 && again === short; n++, await pause(1))
      again = await read({ ttlMs: 1 });
    assert.notEqual(again, short, 'it is stale at last');
  },
);

onBoth('other parameters, another page, or another method are other answers', async (_, open) => {
  const { connection } = await open(watching(library));
  const ask = async (method: string, params?: Json) => (await connection.request(method, params)).n;
  const asked = () =>
    Promise.all([
      ask('tools/list'),
      ask('tools/list', { cursor: '' }),
      ask('tools/list', { cursor: 'c' }),
      ask('prompts/list'),
    ]);
  const first = await asked();
  assert.equal(new Set(first).size, 4);
  assert.deepEqual(await asked(), first);
});

onBoth('calls, and whatever else has no such rule, are never kept', async (_, open) => {
  const { connection } = await open({
    ...modern,
    'tools/call': (_, { seen }) => ({
      result: { ttlMs: 60_000, content: [], structuredContent: seen.length },
    }),
  });
  assert.notDeepEqual(await connection.callTool('x'), await connection.callTool('x'));
});

onBoth('a change makes us forget what it is about, and nothing else', async (_, open) => {
  const opened = await open(watching(library));
  const { connection } = opened;
  const read = reading(opened);
  await until(() => isSubscribed(opened));
  const ask = async () => [
    (await connection.request('tools/list')).n,
    (await connection.request('prompts/list')).n,
    await read({ ttlMs: 6e4 }),
  ];
  const change = async (notice: string) => {
    const before = opened.wire.length;
    await connection.callTool(notice);
    await until(() =>
      opened.wire
        .slice(before)
        .some(([direction, { method }]) => direction === 'in' && method === notice),
    );
  };
  let before = await ask();
  for (const [n, notice] of [
    'notifications/tools/list_changed',
    'notifications/prompts/list_changed',
    'notifications/resources/updated',
  ].entries()) {
    await change(notice);
    const after = await ask();
    assert.deepEqual(
      after.map((each, k) => each === before[k]),
      [0, 1, 2].map((k) => k !== n),
      notice,
    );
    before = after;
  }
});

onBoth('a list that was asked for before the change is not kept', async (_, open) => {
  const changes: string[] = [];
  const opened = await open(
    watching({
      ...library,
      'tools/list': (_, peer, memory) => {
        if (memory.waiting) return { result: { tools: [{ name: 'new' }], ttlMs: 60_000 } };
        memory.waiting = peer;
        memory.listener.send({ method: 'notifications/tools/list_changed' });
        return undefined;
      },
      'x/go-on': (_, __, memory) => (
        memory.waiting.reply({ result: { tools: [{ name: 'old' }], ttlMs: 60_000 } }),
        { result: {} }
      ),
    }),
    { parts: { changed: (what) => void changes.push(what) } },
  );
  await until(() => isSubscribed(opened));
  const first = opened.connection.listTools();
  await until(() => changes.length > 0);
  await opened.connection.request('x/go-on');
  assert.equal((await first)[0]!.name, 'old');
  assert.equal((await opened.connection.listTools())[0]!.name, 'new');
});

onBoth('a cursor that is refused takes all pages with it', async (wire) => {
  const { config, turn } = await mount[wire](watching(library));
  const opened = await connect(config, withEras());
  await opened.connection.initialize();
  const first = await opened.connection.request('tools/list');
  turn();
  assert.equal(
    (await rejection(opened.connection.request('tools/list', { cursor: 'old' }))).code,
    -32602,
  );
  assert.notEqual((await opened.connection.request('tools/list')).n, first.n);
});

onBoth('what came of a repetition, or is no complete answer, is never kept', async (_, open) => {
  const opened = await open(
    {
      ...modern,
      'resources/read': (params, { seen }) =>
        params.inputResponses || params.requestState
          ? { result: { n: seen.length, ttlMs: 60_000 } }
          : {
              result: {
                resultType: 'input_required',
                ttlMs: 60_000,
                inputRequests: { q: { method: 'elicitation/create' } },
                requestState: 's',
              },
            },
    },
    user(),
  );
  const [one, two] = [
    await opened.connection.request('resources/read', { uri: 'x' }),
    await opened.connection.request('resources/read', { uri: 'x' }),
  ];
  assert.notEqual(one.n, two.n);
  assert.equal((await seen(opened, 'resources/read')).length, 4);
});

onBoth(
  'it is kept by one connection, till its next handshake, and in the earlier era not at all',
  async (wire, open) => {
    const { config } = await mount[wire](watching(library));
    const [one, two] = [await connect(config, withEras()), await connect(config, withEras())];
    await one.connection.initialize();
    await two.connection.initialize();
    for (const opened of [one, two]) await opened.connection.request('prompts/list');
    const asked = (opened: Opened) =>
      sent(opened).filter((method) => method === 'prompts/list').length;
    assert.deepEqual([asked(one), asked(two)], [1, 1]);
    await one.connection.reopen();
    await one.connection.initialize();
    for (const opened of [one, two]) await opened.connection.request('prompts/list');
    assert.deepEqual([asked(one), asked(two)], [2, 1]);
    const earlier = await open({ ...legacy, 'prompts/list': library['prompts/list']! });
    for (let n = 0; n < 2; n++) await earlier.connection.request('prompts/list');
    assert.equal(asked(earlier), 2);
  },
);

test('stdio: a thousand answers are kept, and then the oldest goes', async () => {
  const read = reading(await openOn('stdio', watching(library, {})));
  const first = await Promise.all(
    Array.from({ length: 1000 }, (_, n) => read({ ttlMs: 6e4, id: n })),
  );
  assert.equal(await read({ ttlMs: 6e4, id: 0 }), first[0]);
  await read({ ttlMs: 6e4, id: 1000 });
  assert.equal(await read({ ttlMs: 6e4, id: 500 }), first[500]);
  assert.notEqual(await read({ ttlMs: 6e4, id: 0 }), first[0]);
});
