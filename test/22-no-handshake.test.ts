// Chapter 22: one client for both eras: which one it is, what every request says of itself, and the
// types of results. The same cases on stdio and on HTTP.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { doze } from '../chapters/20-streamable-http/pause.ts';
import { RpcError, type Json } from '../mcp.ts';
import { cleanUp, connect, later, rejection, root, until, type Wire } from './help/basics.ts';
import {
  accept,
  AFTER_PROBE,
  BOTH,
  description,
  HANDSHAKE,
  isSubscribed,
  LATER,
  legacy,
  META,
  modern,
  onBoth,
  refusing,
  replacePause,
  seen,
  sent,
  user,
  withEras,
} from './help/both-eras.ts';
import { mount, type Act, type Script, type WireName } from './help/scripted-peer.ts';

afterEach(cleanUp);

// ─── Which era? One table. ────────────────────────────────────────────────────────────────────────────────────

type Row = {
  name: string;
  on?: WireName[];
  peer: Script;
  limit?: number;
  silent?: boolean | ((wire: Wire) => unknown); // it lets the time pass; or until this is true
  opens?: string; // the revision
  because?: RegExp;
  fails?: { kind?: string; code?: number; words?: RegExp };
  sent: string[];
};

const bothNames = /"2031-01-01".*2026-07-28/;
const pages = [
  '',
  '<title>we speak HTML</title>',
  '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request"}}',
];

const rows: Row[] = [
  {
    name: 'it describes itself',
    peer: modern,
    opens: LATER,
    because: /answered server\/discover/,
    sent: ['server/discover'],
  },
  {
    name: 'it describes itself in a stream of events',
    peer: {
      'server/discover': (_, peer) => (
        peer.send({ method: 'notifications/x' }), { result: { supportedVersions: ['2026-07-28'] } }
      ),
    },
    opens: LATER,
    sent: ['server/discover'],
  },
  {
    name: 'it speaks several revisions, ours among them',
    peer: {
      'server/discover': { result: { supportedVersions: ['2031-01-01', LATER, '2025-11-25'] } },
    },
    opens: LATER,
    sent: ['server/discover'],
  },
  {
    name: 'it describes itself, but no revision is ours',
    peer: { ...legacy, 'server/discover': { result: { supportedVersions: ['2031-01-01'] } } },
    fails: { kind: 'protocol', words: bothNames },
    sent: ['server/discover'],
  },
  ...[-32020, -32021].map(
    (code): Row => ({
      name: `it refuses with ${code}, which only the later era knows`,
      peer: { ...legacy, 'server/discover': refusing(code) },
      fails: { code },
      sent: ['server/discover'],
    }),
  ),
  {
    name: 'it refuses our revision, then takes it',
    peer: {
      'server/discover': (_, { seen }) =>
        seen.length > 1
          ? { result: { supportedVersions: ['2026-07-28'] } }
          : { error: { code: -32022, message: 'No.', data: { supported: ['2026-07-28'] } } },
    },
    opens: LATER,
    sent: ['server/discover', 'server/discover'],
  },
  {
    name: 'trap 17: it refuses for ever the revision that it offers',
    peer: { 'server/discover': refusing(-32022, { supported: ['2031-01-01', LATER] }) },
    fails: { code: -32022, words: bothNames },
    sent: ['server/discover', 'server/discover'],
  },
  {
    name: 'it refuses our revision and offers another',
    peer: { ...legacy, 'server/discover': refusing(-32022, { supported: ['2031-01-01'] }) },
    fails: { code: -32022, words: bothNames },
    sent: ['server/discover'],
  },
  {
    name: 'it refuses our revision and offers some that have a handshake',
    peer: {
      ...legacy,
      'server/discover': refusing(-32022, { supported: ['2031-01-01', '2025-11-25'] }),
    },
    opens: '2025-06-18',
    because: /with revisions that have one/,
    sent: AFTER_PROBE,
  },
  {
    name: 'it refuses our revision and offers nothing',
    peer: { ...legacy, 'server/discover': refusing(-32022) },
    fails: { code: -32022, words: /speaks nothing.*2026-07-28/ },
    sent: ['server/discover'],
  },
  ...[-32601, -32602, -32600, -32603, -32000, -32002, 0, 404].map(
    (code): Row => ({
      name: `it refuses with ${code}, which says nothing`,
      peer: { ...legacy, 'server/discover': refusing(code) },
      opens: '2025-06-18',
      because: /does not know server\/discover/,
      sent: AFTER_PROBE,
    }),
  ),
  {
    name: 'it describes itself with revisions that have a handshake, and no other (a server in Go does)',
    peer: {
      ...legacy,
      'server/discover': {
        result: { supportedVersions: ['2025-11-25', '2025-06-18'], capabilities: {} },
      },
    },
    opens: '2025-06-18',
    because: /with revisions that have one/,
    sent: AFTER_PROBE,
  },
  ...[{}, { supportedVersions: LATER }, { tools: [] }, 7, 'OK', null].map(
    (result): Row => ({
      name: `trap 1: its answer is ${JSON.stringify(result)}, and no description`,
      peer: { ...legacy, 'server/discover': { result } },
      opens: '2025-06-18',
      sent: AFTER_PROBE,
    }),
  ),
  {
    name: 'it is silent, and then shakes hands on the same pipe',
    peer: {
      'server/discover': () => {},
      initialize: (_, { seen }) => ({
        result: { protocolVersion: '2025-06-18', serverInfo: { before: seen.length } },
      }),
    },
    silent: true,
    opens: '2025-06-18',
    because: /silent/,
    sent: AFTER_PROBE,
  },
  {
    name: 'it is slow: it describes itself when we have begun to shake hands',
    peer: {
      'server/discover': (_, peer, memory) => void (memory.probe = peer),
      initialize: (_, __, memory) =>
        memory.probe.reply({ result: { supportedVersions: ['2026-07-28'] } }),
    },
    silent: true,
    opens: LATER,
    sent: ['server/discover', 'initialize'],
  },
  {
    name: 'it is slow: it refuses our revision when we have begun to shake hands',
    peer: {
      'server/discover': (_, peer, memory) => void (memory.probe = peer),
      initialize: (_, __, memory) =>
        memory.probe.reply({
          error: { code: -32022, message: 'No.', data: { supported: ['2031-01-01'] } },
        }),
    },
    silent: true,
    fails: { code: -32022, words: bothNames },
    sent: ['server/discover', 'initialize'],
  },
  {
    name: 'it is slow: it refuses the handshake, and describes itself after that',
    peer: {
      'server/discover': (_, peer, memory) => void (memory.probe = peer),
      initialize: (_, peer, memory) => {
        peer.reply({ error: { code: -32600, message: 'What handshake?' } });
        memory.probe.reply({ result: { supportedVersions: ['2026-07-28'] } });
      },
    },
    silent: true,
    opens: LATER,
    sent: ['server/discover', 'initialize'],
  },
  {
    name: 'trap 2: it is silent, and refuses the handshake because it speaks the later revision',
    peer: {
      'server/discover': (_, { seen }) =>
        seen.length > 1 ? { result: { supportedVersions: ['2026-07-28'] } } : undefined,
      initialize: refusing(-32022, { supported: [LATER] }),
    },
    silent: true,
    opens: LATER,
    sent: ['server/discover', 'initialize', 'server/discover'],
  },
  {
    name: 'it does not know the question, and refuses the handshake too',
    peer: { initialize: refusing(-32600) },
    fails: { code: -32600, words: /refused initialize/ },
    sent: ['server/discover', 'initialize'],
  },
  {
    name: 'it is mute: that is said once, at the limit, and of the handshake',
    peer: { 'server/discover': () => {}, initialize: () => {} },
    limit: 300,
    fails: { kind: 'timeout', words: /did not answer initialize/ },
    sent: ['server/discover', 'initialize'],
  },
  {
    name: 'it answers under an id of its own, and is confused until it is started again',
    on: ['stdio'],
    peer: {
      'server/discover': { id: 'mine', error: { code: -32601, message: 'What?' } },
      initialize: (_, { seen }) =>
        seen.length === 1 ? { result: { protocolVersion: '2025-06-18' } } : undefined,
    },
    silent: (wire) => wire.some(([direction]) => direction === 'in'),
    opens: '2025-06-18',
    because: /id of its own/,
    sent: ['server/discover', 'initialize', ...HANDSHAKE],
  },
  {
    name: 'it ignores the question, and refuses whatever speaks of a revision that it does not know',
    on: ['stdio'],
    peer: {
      'server/discover': () => {},
      initialize: ({ _meta }) =>
        _meta
          ? { error: { code: -32022, message: 'No.', data: { supported: ['2025-06-18'] } } }
          : { result: { protocolVersion: '2025-06-18' } },
    },
    silent: true,
    opens: '2025-06-18',
    because: /silent/,
    sent: ['server/discover', 'initialize', ...HANDSHAKE], // the second without a word of the later era
  },
  {
    name: 'it is slow, takes both openings, and keeps to the handshake from then on',
    on: ['stdio'],
    peer: {
      'server/discover': (_, peer, memory) =>
        memory.probe ? { error: { code: -32601, message: 'What?' } } : void (memory.probe = peer),
      initialize: (_, __, memory) => {
        memory.probe.reply({ result: { supportedVersions: ['2026-07-28'] } });
        return { result: { protocolVersion: '2025-06-18' } };
      },
    },
    silent: true,
    opens: '2025-06-18',
    sent: ['server/discover', 'initialize', 'notifications/initialized', 'server/discover'],
  },
  {
    name: 'it is slow, takes both openings, and speaks as it is spoken to',
    on: ['stdio'],
    peer: {
      'server/discover': (_, peer, memory) =>
        memory.probe
          ? { result: { supportedVersions: ['2026-07-28'] } }
          : void (memory.probe = peer),
      initialize: (_, peer, memory) => {
        peer.reply({ result: { protocolVersion: '2025-06-18' } }); // in the wrong order, too
        memory.probe.reply({ result: { supportedVersions: ['2026-07-28'] } });
      },
    },
    silent: true,
    opens: LATER,
    sent: ['server/discover', 'initialize', 'notifications/initialized', 'server/discover'],
  },
  ...[-32601, -32022].map(
    (code): Row => ({
      name: `it is slow, refuses with ${code} a handshake that speaks of the later era, and would take a plain one`,
      on: ['stdio'],
      peer: {
        'server/discover': (_, peer, memory) => void (memory.probe = peer),
        initialize: new Function(
          '{ _meta }, peer, memory',
          `if (!_meta?.['${META}protocolVersion']) return { result: { protocolVersion: '2025-06-18' } };
           peer.reply({ error: { code: ${code}, message: 'No.', data: { supported: ['${LATER}'] } } });
           memory.probe.reply({ result: { supportedVersions: ['${LATER}'] } });`,
        ) as Act,
      },
      silent: true,
      opens: LATER,
      because: /answered server\/discover/,
      sent: ['server/discover', 'initialize'],
    }),
  ),
  {
    name: 'it dies of the question, and is started again without',
    on: ['stdio'],
    peer: {
      'server/discover': (_, peer) => peer.hangUp(),
      initialize: (_, { seen }) =>
        seen.length === 1 ? { result: { protocolVersion: '2025-06-18' } } : undefined,
    },
    opens: '2025-06-18',
    because: /died/,
    sent: ['server/discover', ...HANDSHAKE],
  },
  {
    name: 'it dies of the question slowly',
    on: ['stdio'],
    peer: {
      'server/discover': () => {},
      initialize: (_, peer) =>
        peer.seen.length === 1 ? { result: { protocolVersion: '2025-06-18' } } : peer.hangUp(),
    },
    silent: true,
    opens: '2025-06-18',
    because: /died/,
    sent: ['server/discover', 'initialize', ...HANDSHAKE],
  },
  {
    name: 'it dies whatever it is asked: it is started again once',
    on: ['stdio'],
    peer: { 'server/discover': (_, peer) => peer.hangUp(), initialize: (_, peer) => peer.hangUp() },
    fails: { kind: 'closed', words: /exited with code 0/ },
    sent: ['server/discover', 'initialize'],
  },
  ...[400, 404, 405, 500].flatMap((status) =>
    pages.map(
      (body): Row => ({
        name: `it answers with status ${status} and ${body === '' ? 'nothing' : body}`,
        on: ['http'],
        peer: {
          ...legacy,
          'server/discover': {
            status,
            body,
            type: body.startsWith('{') ? 'application/json' : 'text/html',
          },
        },
        opens: '2025-06-18',
        sent: AFTER_PROBE,
      }),
    ),
  ),
  {
    name: 'it cuts the connection',
    on: ['http'],
    peer: { ...legacy, 'server/discover': (_, peer) => peer.hangUp() },
    opens: '2025-06-18',
    sent: AFTER_PROBE,
  },
  ...[401, 403].map(
    (status): Row => ({
      name: `status ${status} is about a login and says nothing of an era`,
      on: ['http'],
      peer: {
        ...legacy,
        'server/discover': { status, body: '{"jsonrpc":"2.0","id":1,"error":{"code":-32000}}' },
      },
      fails: { kind: 'auth' },
      sent: ['server/discover'],
    }),
  ),
  ...[429, 503].map(
    (status): Row => ({
      name: `status ${status} means later, and says nothing of an era`,
      on: ['http'],
      peer: { ...legacy, 'server/discover': { status, body: 'busy', type: 'text/plain' } },
      fails: { kind: 'unreachable' },
      sent: ['server/discover'],
    }),
  ),
];

const without = (methods: string[], one: string) => methods.filter((method) => method !== one);

for (const row of rows)
  for (const wire of row.on ?? BOTH)
    test(`${wire}: ${row.name}`, async () => {
      const ends: Error[] = [];
      const handshakeTimeoutMs = row.limit ?? (row.silent ? 1e8 : undefined); // nothing waits for the limit
      const options = withEras({
        handshakeTimeoutMs,
        parts: { closed: (why) => void ends.push(why) },
      });
      const { config, hasHeard } = await mount[wire](row.peer);
      const opened = await connect(config, options);
      const { connection } = opened;
      const limits: number[] = [];
      const isOver = typeof row.silent === 'function' ? row.silent : hasHeard;
      if (row.silent)
        replacePause('silence', async (ms) => {
          if (ms < 1000) return doze(ms);
          limits.push(ms);
          if (ms === 1500) return until(hasHeard); // the probe's time
          if (isOver === hasHeard) return new Promise(() => {});
          return until(() => isOver(opened.wire));
        });
      if (row.fails) {
        const error = await rejection(connection.initialize());
        const { kind, code, words = /./ } = row.fails;
        assert.deepEqual([error.kind, error.code], [kind, code], error.message);
        assert.match(error.message, words);
        assert.equal(connection.ended, error, 'there is nothing to talk about');
        if (!/started again/.test(row.name)) assert.ok(ends.length <= 1, 'that is told once');
      } else {
        await connection.initialize();
        assert.equal(connection.server?.protocolVersion, row.opens);
        assert.match(connection.server!.because!, row.because ?? /./);
        const [first] = await seen(opened);
        if (!/started again|dies/.test(row.name))
          assert.equal(first.method, 'server/discover', 'the very first line');
      }
      // A handshake that is not needed may have been accepted meanwhile.
      const told = row.fails ? without(sent(opened), 'notifications/initialized') : sent(opened);
      assert.deepEqual(without(told, 'peer/seen'), row.sent);
      // Into the pipe of a process that has answered nothing goes no plain handshake.
      const sofar = opened.wire.slice(
        0,
        opened.wire.findIndex(([direction]) => direction === 'in'),
      );
      for (const [, { method, params }] of wire === 'stdio' ? sofar : [])
        if (method === 'initialize') assert.ok(params._meta, 'it introduces itself');
      if (row.silent) assert.deepEqual(limits.slice(0, 2), [1500, 5000]);
    });

onBoth('what the server says of itself is kept, and odd extras are left out', async (_, open) => {
  const { connection } = await open({
    'server/discover': { result: { ...description, instructions: 'Be careful.', extra: true } },
  });
  const { supportedVersions, _meta, ...rest } = description;
  assert.deepEqual(connection.server, {
    ...rest,
    protocolVersion: LATER,
    because: 'it answered server/discover',
    serverInfo: { name: 'peer' },
    instructions: 'Be careful.',
  });
  const odd = {
    supportedVersions: [LATER],
    capabilities: 'all',
    _meta: { [`${META}serverInfo`]: 7 },
    instructions: {},
  };
  const other = await open({ 'server/discover': { result: odd } });
  assert.deepEqual(other.connection.server, {
    protocolVersion: LATER,
    because: 'it answered server/discover',
  });
});

onBoth(
  'whoever closes while we find out gets an end, and no server is started again',
  async (wire) => {
    const opened = await connect(
      (await mount[wire]({ 'server/discover': () => {} })).config,
      withEras(),
    );
    const failing = rejection(opened.connection.initialize());
    await until(() => sent(opened).length > 0);
    await opened.connection.close();
    assert.equal((await failing).kind, 'closed');
    assert.deepEqual(sent(opened), ['server/discover']);
    assert.equal(opened.connection.isClosed, true);
  },
);

test('a server that dies when there is no time for another start is not started again, and its death is what we tell', async () => {
  const dying = `process.stdin.resume(); setTimeout(() => { console.error('no licence'); process.exit(3); }, 3200)`;
  const options = withEras({ handshakeTimeoutMs: 4000 });
  const { connection } = await connect({ command: process.execPath, args: ['-e', dying] }, options);
  assert.match(
    (await rejection(connection.initialize())).message,
    /exited with code 3[^]*no licence/,
  );
});

onBoth('an answer to the question that comes after the handshake changes nothing', async (wire) => {
  const refusal = { code: -32022, message: 'No.', data: { supported: [LATER] } };
  for (const reply of [
    { result: description },
    { error: refusal },
    { error: { ...refusal, code: -32601 } },
  ]) {
    const { config, hasHeard } = await mount[wire]({
      'server/discover': (_, peer, memory) => void (memory.probe ??= peer),
      initialize: { result: { protocolVersion: '2025-06-18' } },
      'x/late': (params, __, memory) => (memory.probe.reply(params), { result: {} }),
      'x/after': { result: {} },
    });
    replacePause('silence', () => until(hasHeard));
    const opened = await connect(config, withEras());
    await opened.connection.initialize();
    const { id } = opened.wire[0]![1];
    await opened.connection.request('x/late', reply);
    const isAnswer = ([direction, message]: (typeof opened.wire)[number]) =>
      direction === 'in' && message.id === id;
    const isIn = () => opened.wire.some(isAnswer);
    if (wire === 'stdio') await until(isIn); // over HTTP the request was closed
    await opened.connection.request('x/after');
    const [after] = await seen(opened, 'x/after');
    assert.equal(after.params?._meta, undefined);
    assert.equal(opened.connection.server?.protocolVersion, '2025-06-18');
  }
});

// ─── Every request introduces itself ──────────────────────────────────────────────────────────────────────────

onBoth(
  'in the later era every request says who we are, and keeps what else it has to say',
  async (_, open) => {
    const capabilities = { elicitation: { form: {} } };
    const opened = await open(
      {
        ...modern,
        'tools/list': { result: { tools: [] } },
        'tools/call': { result: { content: [] } },
      },
      { parts: { capabilities } },
    );
    await opened.connection.listTools();
    await opened.connection.callTool('x', {}, { onProgress: () => {} });
    await opened.connection.request('tools/call', {
      name: 'y',
      _meta: { traceparent: '00-1', [`${META}protocolVersion`]: 'forged' },
    });
    const messages = (await seen(opened)).filter(({ method }) => method !== 'initialize'); // which a pipe gets, too
    const others: unknown[] = [];
    assert.deepEqual(
      messages.map(({ method }) => method),
      ['server/discover', 'tools/list', 'tools/call', 'tools/call'],
    );
    for (const { params } of messages) {
      const { progressToken, traceparent, ...rest } = params._meta;
      const { name, version } = rest[`${META}clientInfo`];
      assert.deepEqual([name, typeof version], ['mcp-by-hand', 'string']);
      assert.deepEqual(rest, {
        [`${META}protocolVersion`]: LATER,
        [`${META}clientInfo`]: { name, version },
        [`${META}clientCapabilities`]: capabilities,
      });
      others.push(progressToken ?? traceparent);
    }
    assert.deepEqual(others, [undefined, undefined, messages[2].id, '00-1']);
  },
);

onBoth('in the earlier era no request but the first does', async (_, open) => {
  const opened = await open({
    ...legacy,
    'tools/list': { result: { tools: [] } },
    'tools/call': { result: { content: [] } },
  });
  await opened.connection.listTools();
  await opened.connection.callTool('x', {}, { onProgress: () => {} });
  const [, , , list, call] = await seen(opened);
  assert.deepEqual([list.method, list.params?._meta], ['tools/list', undefined]);
  assert.deepEqual(call.params, { name: 'x', arguments: {}, _meta: { progressToken: call.id } });
});

onBoth(
  'trap 17: a call whose revision is refused is repeated once; then both sides are named',
  async (_, open) => {
    const opened = await open({
      ...modern,
      'tools/call': (params) =>
        params.name !== 'never' && params.arguments.isAgain
          ? { result: { content: [] } }
          : {
              error: {
                code: -32022,
                message: 'No.',
                data: { supported: ['2031-01-01', '2026-07-28'] },
              },
            },
      'prompts/get': (_, { seen }) =>
        seen.filter(({ method }) => method === 'prompts/get').length > 1
          ? { result: { messages: [] } }
          : { error: { code: -32022, message: 'No.', data: { supported: ['2026-07-28'] } } },
    });
    const error = await rejection(opened.connection.callTool('never'));
    assert.ok(error instanceof RpcError && error.code === -32022);
    assert.match(error.message, bothNames);
    assert.equal((await seen(opened, 'tools/call')).length, 2);
    assert.deepEqual(await opened.connection.request('prompts/get', { name: 'p' }), {
      messages: [],
    });
  },
);

onBoth(
  'a handshake that is refused for its revision is offered once more, with one that the server names',
  async (_, open) => {
    const shy: Script = {
      'server/discover': refusing(-32601),
      // Written whole: on stdio it runs in another process.
      initialize: ({ protocolVersion }) =>
        protocolVersion === '2025-03-26'
          ? { result: { protocolVersion, capabilities: {} } }
          : { error: { code: -32602, message: 'No.', data: { supported: ['2025-03-26'] } } },
    };
    const { connection } = await open(shy);
    assert.equal(connection.server?.protocolVersion, '2025-03-26');
    for (const supported of [['2025-03-26'], ['1999-01-01'], '2025-03-26', undefined]) {
      const never = {
        'server/discover': refusing(-32601),
        initialize: refusing(-32602, { supported }),
      };
      const error = await rejection(open(never));
      assert.match(error.message, /refused initialize: /);
    }
  },
);

// ─── Results and their types ──────────────────────────────────────────────────────────────────────────────────

onBoth(
  'a result without a type is complete; one of an unknown type is an error',
  async (_, open) => {
    const echo: Act = (params) => ({ result: { content: [], ...(params.arguments ?? params) } });
    const { connection } = await open({
      ...modern,
      'tools/call': echo,
      'prompts/list': echo,
      'tools/list': echo,
    });
    assert.equal((await connection.callTool('x')).isError, false);
    assert.equal((await connection.callTool('x', { resultType: 'complete' })).isError, false);
    for (const resultType of ['task', 7, null, '', {}]) {
      const error = await rejection(connection.callTool('x', { resultType }));
      assert.equal(error.kind, 'protocol');
      assert.ok(
        error.message.includes(`tools/call with a result of type ${JSON.stringify(resultType)}`),
        error.message,
      );
    }
    const error = await rejection(
      connection.request('prompts/list', { resultType: 'input_required' }),
    );
    assert.match(
      error.message,
      /answered prompts\/list with a result of type "input_required"/,
      'lists must not ask',
    );
  },
);

onBoth('in the earlier era a type means nothing', async (_, open) => {
  const { connection } = await open({
    ...legacy,
    'tools/call': { result: { content: [], resultType: 'task' } },
  });
  assert.equal((await connection.callTool('x')).isError, false);
});

// ─── And the whole of it with a server that was written for nothing of this ───────────────────────────────────────

const calculators = [
  ['stdio', 'modern', LATER],
  ['stdio', 'legacy', '2025-11-25'],
  ['stdio', 'both', LATER],
  ['http', 'modern', LATER],
  ['http', 'legacy', '2025-11-25'],
  ['http', 'both', LATER],
] as const;
for (const [wire, era, revision] of calculators)
  test(`${wire}: the calculator (--era ${era})`, async () => {
    const args = [
      join(root, 'fixtures', 'remote.mjs'),
      wire,
      ...(era === 'both' ? [] : ['--era', era]),
      '--sessions',
    ];
    let config: Json = { command: process.execPath, args };
    if (wire === 'http') {
      const child = spawn(process.execPath, args);
      later(() => child.kill());
      const address = new Promise<string>((done) =>
        child.stdout.setEncoding('utf8').once('data', done),
      );
      config = { type: 'http', url: (await address).trim() };
    }
    const changes: unknown[] = [];
    const options = user();
    Object.assign(options.parts!, { changed: (what: string) => void changes.push(what) });
    const opened = await connect(config, withEras(options));
    const { connection } = opened;
    await connection.initialize();
    assert.equal(connection.server?.protocolVersion, revision);
    const before = await connection.listTools();
    assert.equal((await connection.callTool('add', { a: 2, b: 40 })).text, '42');
    assert.equal((await connection.callTool('confirm')).text, JSON.stringify(accept()));
    if (era !== 'legacy') await until(() => isSubscribed(opened));
    await connection.callTool('grow');
    await until(() => changes.length > 0);
    assert.equal((await connection.listTools()).length, before.length + 1);
    assert.deepEqual(opened.warnings, []);
  });
