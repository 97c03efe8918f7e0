// Chapter 22: one client for both eras, against peers that follow a script. The same cases on stdio and on HTTP.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { HttpTransport } from '../chapters/20-streamable-http/http.ts';
import { keepAnswers } from '../chapters/22-no-handshake/cache.ts';
import { eitherEra, type Verdicts } from '../chapters/22-no-handshake/era.ts';
import { answerWithin } from '../chapters/22-no-handshake/input-required.ts';
import { doze, type Pause } from '../chapters/22-no-handshake/pause.ts';
import { listenForChanges } from '../chapters/22-no-handshake/subscriptions.ts';
import { KeptVerdicts } from '../chapters/22-no-handshake/verdicts.ts';
import { mirrorArguments } from '../chapters/20-streamable-http/headers.ts';
import { RpcError, type ConnectionOptions, type Extension, type Json, type Parts } from '../mcp.ts';
import { cleanUp, connect, folder, later, pause, rejection, root, until, type Opened, type Wire } from './helpers.ts';
import { mount, type Act, type Script, type WireName } from './peers.ts';

afterEach(cleanUp);

const BOTH: WireName[] = ['stdio', 'http'];
const LATER = '2026-07-28';
const META = 'io.modelcontextprotocol/';
const description = { supportedVersions: [LATER], capabilities: { tools: {} }, _meta: { [`${META}serverInfo`]: { name: 'peer' } } };
const modern: Script = { 'server/discover': { result: description } };
const legacy: Script = { initialize: { result: { protocolVersion: '2025-06-18', capabilities: { tools: {} } } } };
const refusing = (code: number, data?: Json): Act => ({ error: { code, message: 'No.', data } });

const transports: ConnectionOptions['transports'] = { http: (...given) => new HttpTransport(...given) };
/** What the client waits for: until silence is an answer, and before it tries again. */
const pauses: Record<'silence' | 'retry', Pause> = { silence: doze, retry: doze };
type Options = ConnectionOptions & { parts?: Parts; verdicts?: Verdicts };

/** As `inBothEras`, but with pauses that a test can replace. */
const withEras = ({ parts = {}, verdicts, ...options }: Options = {}): ConnectionOptions => {
  const silence: Pause = (...given) => pauses.silence(...given);
  const retry: Pause = (...given) => pauses.retry(...given);
  const test: Extension = () => parts;
  const extensions = [
    answerWithin({ pause: retry }), keepAnswers, mirrorArguments, listenForChanges({ pause: retry }),
    eitherEra({ verdicts, pause: silence }), test,
  ];
  return { transports, ...options, extensions };
};

/** Mounts a peer on a wire and opens a connection to it. */
async function openOn(wire: WireName, script: Script, options?: Options): Promise<Opened> {
  const opened = await connect((await mount[wire](script)).config, withEras(options));
  await opened.connection.initialize();
  return opened;
}

/** One test for each wire. */
function onBoth(name: string, body: (wire: WireName, open: (script: Script, options?: Options) => Promise<Opened>) => Promise<void>): void {
  for (const wire of BOTH) test(`${wire}: ${name}`, () => body(wire, (...given) => openOn(wire, ...given)));
}

const sent = ({ wire }: Pick<Opened, 'wire'>): string[] =>
  wire.filter(([direction]) => direction === 'out').map(([, { method = '(answer)' }]) => method);

/** What has arrived at the peer; of one method, if one is named. */
async function seen({ connection }: Opened, method?: string): Promise<any[]> {
  const { seen } = await connection.request('peer/seen') as { seen: any[] };
  return method === undefined ? seen : seen.filter((message) => message.method === method);
}

/** Puts something else in the place of one of our pauses, until the test is over. */
function replacePause(which: keyof typeof pauses, wait: Pause): void {
  const before = pauses[which];
  later(() => (pauses[which] = before));
  pauses[which] = wait;
}

/** Nobody waits in these tests: the pauses are written down, and after `most` of them time stands still. */
function notePauses(most = Infinity): number[] {
  const noted: number[] = [];
  replacePause('retry', (ms) => {
    noted.push(ms);
    return new Promise<void>((done) => void (noted.length < most && setImmediate(done)));
  });
  return noted;
}

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
  sentOnPipe?: string[]; // if that differs
};
const HANDSHAKE = ['initialize', 'notifications/initialized'];
const AFTER_PROBE = ['server/discover', ...HANDSHAKE];
const bothNames = /"2031-01-01".*2026-07-28/;
const pages = ['', '<title>we speak HTML</title>', '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request"}}'];

const rows: Row[] = [
  { name: 'it describes itself', peer: modern, opens: LATER, because: /answered server\/discover/, sent: ['server/discover'] },
  {
    name: 'it describes itself in a stream of events',
    peer: { 'server/discover': (_, peer) => (peer.send({ method: 'notifications/x' }), { result: { supportedVersions: ['2026-07-28'] } }) },
    opens: LATER,
    sent: ['server/discover'],
  },
  {
    name: 'it speaks several revisions, ours among them',
    peer: { 'server/discover': { result: { supportedVersions: ['2031-01-01', LATER, '2025-11-25'] } } },
    opens: LATER,
    sent: ['server/discover'],
  },
  {
    name: 'it describes itself, but no revision is ours',
    peer: { ...legacy, 'server/discover': { result: { supportedVersions: ['2031-01-01'] } } },
    fails: { kind: 'protocol', words: bothNames },
    sent: ['server/discover'],
  },
  ...[-32020, -32021].map((code): Row => ({
    name: `it refuses with ${code}, which only the later era knows`,
    peer: { ...legacy, 'server/discover': refusing(code) },
    fails: { code },
    sent: ['server/discover'],
  })),
  {
    name: 'it refuses our revision, then takes it',
    peer: {
      'server/discover': (_, { seen }) => seen.length > 1
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
    peer: { ...legacy, 'server/discover': refusing(-32022, { supported: ['2031-01-01', '2025-11-25'] }) },
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
  ...[-32601, -32602, -32600, -32603, -32000, -32002, 0, 404].map((code): Row => ({
    name: `it refuses with ${code}, which says nothing`,
    peer: { ...legacy, 'server/discover': refusing(code) },
    opens: '2025-06-18',
    because: /does not know server\/discover/,
    sent: AFTER_PROBE,
  })),
  {
    name: 'it describes itself with revisions that have a handshake, and no other (a server in Go does)',
    peer: { ...legacy, 'server/discover': { result: { supportedVersions: ['2025-11-25', '2025-06-18'], capabilities: {} } } },
    opens: '2025-06-18',
    because: /with revisions that have one/,
    sent: AFTER_PROBE,
  },
  ...[{}, { supportedVersions: LATER }, { tools: [] }, 7, 'OK', null].map((result): Row => ({
    name: `trap 1: its answer is ${JSON.stringify(result)}, and no description`,
    peer: { ...legacy, 'server/discover': { result } },
    opens: '2025-06-18',
    sent: AFTER_PROBE,
  })),
  {
    name: 'it is silent, and then shakes hands on the same pipe',
    peer: {
      'server/discover': () => {},
      initialize: (_, { seen }) => ({ result: { protocolVersion: '2025-06-18', serverInfo: { before: seen.length } } }),
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
      initialize: (_, __, memory) => memory.probe.reply({ result: { supportedVersions: ['2026-07-28'] } }),
    },
    silent: true,
    opens: LATER,
    sent: ['server/discover', 'initialize'],
  },
  {
    name: 'it is slow: it refuses our revision when we have begun to shake hands',
    peer: {
      'server/discover': (_, peer, memory) => void (memory.probe = peer),
      initialize: (_, __, memory) => memory.probe.reply({ error: { code: -32022, message: 'No.', data: { supported: ['2031-01-01'] } } }),
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
      'server/discover': (_, { seen }) => (seen.length > 1 ? { result: { supportedVersions: ['2026-07-28'] } } : undefined),
      initialize: refusing(-32022, { supported: [LATER] }),
    },
    silent: true,
    opens: LATER,
    sent: ['server/discover', 'initialize', 'server/discover'],
    sentOnPipe: ['server/discover', 'initialize', 'server/discover'],
  },
  {
    name: 'it does not know the question, and refuses the handshake too',
    peer: { initialize: refusing(-32600) },
    fails: { code: -32600, words: /refused initialize/ },
    sent: ['server/discover', 'initialize'],
    sentOnPipe: ['server/discover', 'initialize', 'initialize'], // the second without a word of the later era
  },
  {
    name: 'it is mute: that is said once, at the limit, and of the handshake',
    peer: { 'server/discover': () => {}, initialize: () => {} },
    limit: 300,
    fails: { kind: 'timeout', words: /did not answer initialize/ },
    sent: ['server/discover', 'initialize'],
    sentOnPipe: ['server/discover', 'initialize', 'initialize'],
  },
  {
    name: 'it answers under an id of its own, and is confused until it is started again',
    on: ['stdio'],
    peer: {
      'server/discover': { id: 'mine', error: { code: -32601, message: 'What?' } },
      initialize: (_, { seen }) => (seen.length === 1 ? { result: { protocolVersion: '2025-06-18' } } : undefined),
    },
    silent: (wire) => wire.some(([direction]) => direction === 'in'),
    opens: '2025-06-18',
    because: /id of its own/,
    sent: AFTER_PROBE,
    sentOnPipe: ['server/discover', 'initialize', ...HANDSHAKE],
  },
  {
    name: 'it refuses whatever speaks of a revision that it does not know',
    on: ['stdio'],
    peer: {
      initialize: ({ _meta }) => _meta
        ? { error: { code: -32022, message: 'No.', data: { supported: ['2025-06-18'] } } }
        : { result: { protocolVersion: '2025-06-18' } },
    },
    opens: '2025-06-18',
    sent: ['server/discover', 'initialize', ...HANDSHAKE],
  },
  {
    name: 'it takes both openings, and keeps to the handshake from then on',
    on: ['stdio'],
    peer: {
      ...legacy,
      'server/discover': (_, { seen }) => seen.some(({ method }: any) => method === 'initialize')
        ? { error: { code: -32601, message: 'What?' } }
        : { result: { supportedVersions: ['2026-07-28'] } },
    },
    opens: '2025-06-18',
    sent: ['server/discover', 'initialize', 'notifications/initialized', 'server/discover'],
  },
  {
    name: 'it takes both openings, and speaks as it is spoken to',
    on: ['stdio'],
    peer: { ...legacy, ...modern },
    opens: LATER,
    sent: ['server/discover', 'initialize', 'notifications/initialized', 'server/discover'],
  },
  {
    name: 'it describes itself, and would take a handshake that does not speak of the later era',
    on: ['stdio'],
    peer: {
      ...modern,
      initialize: ({ _meta }) => _meta?.['io.modelcontextprotocol/protocolVersion'] === '2026-07-28'
        ? { error: { code: -32022, message: 'No.', data: { supported: ['2026-07-28'] } } }
        : { result: { protocolVersion: '2025-06-18' } },
    },
    opens: LATER,
    sent: ['server/discover', 'initialize'],
  },
  {
    name: 'it dies of the question, and is started again without',
    on: ['stdio'],
    peer: {
      'server/discover': (_, peer) => peer.hangUp(),
      initialize: (_, { seen }) => (seen.length === 1 ? { result: { protocolVersion: '2025-06-18' } } : undefined),
    },
    opens: '2025-06-18',
    because: /died/,
    sent: AFTER_PROBE,
    sentOnPipe: ['server/discover', 'initialize', ...HANDSHAKE],
  },
  {
    name: 'it dies of the question slowly',
    on: ['stdio'],
    peer: {
      'server/discover': () => {},
      initialize: (_, peer) => (peer.seen.length === 1 ? { result: { protocolVersion: '2025-06-18' } } : peer.hangUp()),
    },
    silent: true,
    opens: '2025-06-18',
    because: /died/,
    sent: [],
    sentOnPipe: ['server/discover', 'initialize', ...HANDSHAKE],
  },
  {
    name: 'it dies whatever it is asked: it is started again once',
    on: ['stdio'],
    peer: { 'server/discover': (_, peer) => peer.hangUp(), initialize: (_, peer) => peer.hangUp() },
    fails: { kind: 'closed', words: /exited with code 0/ },
    sent: [],
    sentOnPipe: ['server/discover', 'initialize', 'initialize'],
  },
  ...[400, 404, 405, 500].flatMap((status) => pages.map((body): Row => ({
    name: `it answers with status ${status} and ${body === '' ? 'nothing' : body}`,
    on: ['http'],
    peer: { ...legacy, 'server/discover': { status, body, type: body.startsWith('{') ? 'application/json' : 'text/html' } },
    opens: '2025-06-18',
    sent: AFTER_PROBE,
  }))),
  {
    name: 'it cuts the connection',
    on: ['http'],
    peer: { ...legacy, 'server/discover': (_, peer) => peer.hangUp() },
    opens: '2025-06-18',
    sent: AFTER_PROBE,
  },
  ...[401, 403].map((status): Row => ({
    name: `status ${status} is about a login and says nothing of an era`,
    on: ['http'],
    peer: { ...legacy, 'server/discover': { status, body: '{"jsonrpc":"2.0","id":1,"error":{"code":-32000}}' } },
    fails: { kind: 'auth' },
    sent: ['server/discover'],
  })),
  ...[429, 503].map((status): Row => ({
    name: `status ${status} means later, and says nothing of an era`,
    on: ['http'],
    peer: { ...legacy, 'server/discover': { status, body: 'busy', type: 'text/plain' } },
    fails: { kind: 'unreachable' },
    sent: ['server/discover'],
  })),
];

const without = (methods: string[], one: string) => methods.filter((method) => method !== one);

/** On a pipe two lines go out together: the probe and a handshake. */
const opening = (wire: WireName, methods: string[]) => (wire === 'stdio' ? onPipe(methods) : methods);
const onPipe = (methods: string[]): string[] =>
  methods[0] === 'server/discover' && methods[1] !== 'initialize'
    ? ['server/discover', 'initialize', ...methods.slice(1)]
    : methods;

for (const row of rows)
  for (const wire of row.on ?? BOTH)
    test(`${wire}: ${row.name}`, async () => {
      const ends: Error[] = [];
      const handshakeTimeoutMs = row.limit ?? (row.silent ? 1e8 : undefined); // nothing waits for the limit
      const options = withEras({ handshakeTimeoutMs, parts: { closed: (why) => void ends.push(why) } });
      const { config, hasHeard } = await mount[wire](row.peer);
      const opened = await connect(config, options);
      const { connection } = opened;
      const limits: number[] = [];
      const isOver = typeof row.silent === 'function' ? row.silent : hasHeard;
      if (row.silent) replacePause('silence', async (ms) => {
        if (ms < 1000) return doze(ms);
        limits.push(ms);
        if (wire === 'stdio' && isOver === hasHeard) return new Promise(() => {});
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
        if (!/started again|dies/.test(row.name)) assert.equal(first.method, 'server/discover', 'the very first line');
      }
      const wanted = wire === 'stdio' ? onPipe(row.sentOnPipe ?? row.sent) : row.sent;
      // A handshake that is not needed may have been accepted meanwhile.
      const told = row.fails ? without(sent(opened), 'notifications/initialized') : sent(opened);
      assert.deepEqual(without(told, 'peer/seen'), wanted);
      if (row.silent) assert.deepEqual(limits.slice(0, 2), wire === 'stdio' ? [5000] : [1500, 5000]);
    });

onBoth('what the server says of itself is kept, and odd extras are left out', async (_, open) => {
  const { connection } = await open({ 'server/discover': { result: { ...description, instructions: 'Be careful.', extra: true } } });
  const { supportedVersions, _meta, ...rest } = description;
  assert.deepEqual(connection.server, {
    ...rest, protocolVersion: LATER, because: 'it answered server/discover', serverInfo: { name: 'peer' }, instructions: 'Be careful.',
  });
  const odd = { supportedVersions: [LATER], capabilities: 'all', _meta: { [`${META}serverInfo`]: 7 }, instructions: {} };
  const other = await open({ 'server/discover': { result: odd } });
  assert.deepEqual(other.connection.server, { protocolVersion: LATER, because: 'it answered server/discover' });
});

onBoth('whoever closes while we find out gets an end, and no server is started again', async (wire) => {
  const opened = await connect((await mount[wire]({ 'server/discover': () => {} })).config, withEras());
  const failing = rejection(opened.connection.initialize());
  await until(() => sent(opened).length > 0);
  await opened.connection.close();
  assert.equal((await failing).kind, 'closed');
  assert.deepEqual(sent(opened), opening(wire, ['server/discover']));
  assert.equal(opened.connection.isClosed, true);
});

test('a server that dies when there is no time for another start is not started again, and its death is what we tell', async () => {
  const dying = `process.stdin.resume(); setTimeout(() => { console.error('no licence'); process.exit(3); }, 3200)`;
  const options = withEras({ handshakeTimeoutMs: 4000 });
  const { connection } = await connect({ command: process.execPath, args: ['-e', dying] }, options);
  assert.match((await rejection(connection.initialize())).message, /exited with code 3[^]*no licence/);
});

onBoth('an answer to the question that comes after the handshake changes nothing', async (wire) => {
  const refusal = { code: -32022, message: 'No.', data: { supported: [LATER] } };
  for (const reply of [{ result: description }, { error: refusal }, { error: { ...refusal, code: -32601 } }]) {
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

// ─── A verdict is remembered ──────────────────────────────────────────────────────────────────────────────────

onBoth('a server that wanted a handshake is not asked again, until it has learned the later revision', async (wire) => {
  const { config, turn } = await mount[wire]({
    'server/discover': (_, peer) => peer.isTurned ? { result: { supportedVersions: ['2026-07-28'] } } : { error: { code: -32601, message: 'What?' } },
    initialize: (_, peer) => peer.isTurned
      ? { error: { code: -32022, message: 'No.', data: { supported: ['2026-07-28'] } } }
      : { result: { protocolVersion: '2025-06-18' } },
  });
  const home = folder();
  const openAgain = async () => {
    // Each time as if the program had been started again: what is remembered is in a file.
    const opened = await connect(config, withEras({ verdicts: new KeptVerdicts(home) }));
    const { protocolVersion, because } = await opened.connection.initialize();
    return [protocolVersion, because, sent(opened)];
  };
  assert.deepEqual(await openAgain(), ['2025-06-18', 'it does not know server/discover', opening(wire, AFTER_PROBE)]);
  assert.deepEqual(await openAgain(), ['2025-06-18', 'it wanted a handshake before', HANDSHAKE], 'and that only once');
  turn();
  assert.deepEqual(await openAgain(), [LATER, 'it answered server/discover', ['initialize', 'server/discover']]);
  assert.deepEqual(await openAgain(), [LATER, 'it answered server/discover', ['server/discover']]);
});

test('stdio: nobody waits for a server that ignores the question, and from the second start of the program on it is not asked', async () => {
  const home = folder();
  const { config } = await mount.stdio({ ...legacy, 'server/discover': () => {} });
  // What waits for the server would wait without end. A moment is all that may pass.
  replacePause('silence', (ms) => (ms <= 25 ? doze(ms) : new Promise(() => {})));
  const open = async () => {
    const opened = await connect(config, withEras({ verdicts: new KeptVerdicts(home) }));
    assert.equal((await opened.connection.initialize()).protocolVersion, '2025-06-18');
    return sent(opened);
  };
  assert.deepEqual(await open(), onPipe(AFTER_PROBE));
  assert.deepEqual(await open(), HANDSHAKE);
});

test('stdio: a server that died of the question is started once from the second start of the program on', async () => {
  const home = folder();
  const { config } = await mount.stdio({
    'server/discover': (_, peer) => peer.hangUp(),
    initialize: (_, { seen }) => (seen.length === 1 ? { result: { protocolVersion: '2025-06-18' } } : undefined),
  });
  const open = async () => {
    const opened = await connect(config, withEras({ verdicts: new KeptVerdicts(home) }));
    await opened.connection.initialize();
    return sent(opened);
  };
  assert.deepEqual(await open(), ['server/discover', 'initialize', ...HANDSHAKE]);
  assert.deepEqual(await open(), HANDSHAKE);
});

test('stdio: a server that merely starts slowly is started once', async () => {
  const file = join(folder(), 'starts');
  const slow = `
    require('fs').appendFileSync(process.argv[1], 'x');
    setTimeout(() => process.stdin.on('data', (text) => {
      for (const { id, method } of String(text).trim().split('\\n').map((line) => JSON.parse(line)))
        if (method === 'initialize') console.log(JSON.stringify({ jsonrpc: '2.0', id, result: { protocolVersion: '2025-06-18' } }));
    }), 600)`;
  replacePause('silence', async () => {}); // silence is over at once
  const { connection } = await connect({ command: process.execPath, args: ['-e', slow, file] }, withEras());
  await connection.initialize();
  assert.equal(readFileSync(file, 'utf8'), 'x');
});

test('stdio: a server that takes all that has arrived for one message gets the handshake alone, and is started once', async () => {
  const naive = `
    process.stdin.on('data', (text) => {
      let message;
      try { message = JSON.parse(text); } catch { return require('fs').writeFileSync(process.argv[1], ''); }
      const { id, method } = message;
      if (method === 'initialize') console.log(JSON.stringify({ jsonrpc: '2.0', id, result: { protocolVersion: '2025-06-18' } }));
    })
`;
  const dropped = join(folder(), 'dropped');
  const { connection, wire } = await connect({ command: process.execPath, args: ['-e', naive, dropped] }, withEras());
  // Silence is over when both openings, which came as one chunk, were dropped: not before, however slow the machine is.
  replacePause('silence', async (ms) => void (ms > 1000 && await until(() => existsSync(dropped))));
  assert.equal((await connection.initialize()).protocolVersion, '2025-06-18');
  assert.deepEqual(sent({ wire }), ['server/discover', 'initialize', ...HANDSHAKE]);
});

test('stdio: a server that was known for a handshake and ignores it now is asked again at the next start', async () => {
  const verdicts: Verdicts = new Map();
  const { config, turn } = await mount.stdio({
    'server/discover': (_, peer) => peer.isTurned ? { result: { supportedVersions: ['2026-07-28'] } } : refusing(-32601) as any,
    initialize: (_, peer) => peer.isTurned ? undefined : { result: { protocolVersion: '2025-06-18' } },
  });
  const start = async (handshakeTimeoutMs?: number) => (await connect(config, withEras({ verdicts, handshakeTimeoutMs }))).connection.initialize();
  assert.equal((await start()).protocolVersion, '2025-06-18');
  turn();
  assert.equal((await rejection(start(1500))).kind, 'timeout');
  assert.equal((await start()).protocolVersion, LATER);
});

test('stdio: a stateless server that dies once at its start is asked again, and not for a handshake', async () => {
  const verdicts: Verdicts = new Map();
  const file = join(folder(), 'deaths');
  const frail = `
    const { existsSync, writeFileSync } = require('fs');
    let isFirst = existsSync(process.argv[1] + '.armed') && !existsSync(process.argv[1]);
    process.stdin.on('data', (text) => {
      if (isFirst) (writeFileSync(process.argv[1], ''), process.exit(1));
      for (const { id, method } of String(text).trim().split('\\n').map((line) => JSON.parse(line))) {
        const error = { code: -32022, message: 'No.', data: { supported: ['2026-07-28'] } };
        const answer = method === 'server/discover' ? { result: { supportedVersions: ['2026-07-28'] } } : { error };
        if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
      }
    })`;
  const start = async () => (await connect({ command: process.execPath, args: ['-e', frail, file] }, withEras({ verdicts }))).connection.initialize();
  assert.equal((await start()).protocolVersion, LATER);
  writeFileSync(`${file}.armed`, '');
  assert.equal((await start()).protocolVersion, LATER);
  assert.deepEqual([...(verdicts as Map<string, string>).values()], ['stateless']);
});

test('a verdict belongs to one entry as a whole, and to one folder', async () => {
  const verdicts = new Map<string, 'handshake' | 'stateless'>();
  const { config } = await mount.stdio(legacy);
  for (const env of [{ A: '1' }, { A: '2' }]) await (await connect({ ...config, env }, withEras({ verdicts }))).connection.initialize();
  assert.equal(verdicts.size, 2);
});

test('a damaged file of verdicts is replaced', async () => {
  const home = folder();
  const verdicts = new KeptVerdicts(home);
  verdicts.set('a', 'handshake');
  writeFileSync(join(home, '.mcp-by-hand', 'eras.json'), '');
  verdicts.set('b', 'handshake'); // finds the damage
  verdicts.set('b', 'handshake');
  assert.equal(new KeptVerdicts(home).get('b'), 'handshake');
});

test('a verdict that cannot be read or written costs a probe, and nothing else', async () => {
  const home = folder();
  writeFileSync(join(home, '.mcp-by-hand'), 'in the way');
  const opened = await openOn('stdio', legacy, { verdicts: new KeptVerdicts(home) });
  assert.equal(opened.connection.server?.protocolVersion, '2025-06-18');
  const verdicts = new KeptVerdicts(folder());
  for (let n = 0; n < 503; n++) verdicts.set(`key ${n}`, 'handshake');
  assert.deepEqual(['key 0', 'key 2', 'key 3', 'key 502', '__proto__'].map((key) => verdicts.get(key)), [undefined, undefined, 'handshake', 'handshake', undefined]);
});

onBoth('what failed for another reason is not remembered as a wish for a handshake', async (wire) => {
  const { config, turn } = await mount[wire]({
    'server/discover': (_, peer) => peer.isTurned ? { result: { supportedVersions: ['2026-07-28'] } } : { error: { code: -32601, message: 'What?' } },
  });
  const verdicts: Verdicts = new Map();
  const first = await connect(config, withEras({ verdicts }));
  assert.equal((await rejection(first.connection.initialize())).code, -32601);
  turn();
  const second = await connect(config, withEras({ verdicts }));
  await second.connection.initialize();
  assert.equal(sent(second)[0], 'server/discover');
  assert.equal(second.connection.server?.protocolVersion, LATER);
});

onBoth('a second handshake on the same connection takes nothing over from the first', async (wire) => {
  const { config, turn } = await mount[wire]({
    'server/discover': (_, peer) => peer.isTurned ? { result: {} } : { result: { supportedVersions: ['2026-07-28'] } },
    initialize: (params) => ({ result: { protocolVersion: '2025-06-18', serverInfo: { name: Object.keys(params).join() } } }),
  });
  const { connection } = await connect(config, withEras());
  assert.equal((await connection.initialize()).protocolVersion, LATER);
  turn();
  const { protocolVersion, serverInfo } = await connection.initialize();
  assert.deepEqual([protocolVersion, serverInfo], ['2025-06-18', { name: 'protocolVersion,capabilities,clientInfo' }]);
});

test('stdio: a stray answer from an earlier life is no reason to start a slow server again', async () => {
  const { config, turn } = await mount.stdio({
    'server/discover': (_, peer, memory) => {
      memory.probe = peer;
      return peer.isTurned ? undefined : { result: { supportedVersions: ['2026-07-28'] } };
    },
    initialize: (_, __, memory) => memory.probe.reply({ result: { supportedVersions: ['2026-07-28'] } }),
    'tools/call': (_, peer) => (peer.send({ id: 'mine', result: {} }), { result: {} }),
  });
  const opened = await connect(config, withEras());
  await opened.connection.initialize();
  await opened.connection.callTool('x');
  assert.match(opened.warnings.join(), /that no call is waiting for/);
  turn();
  opened.wire.length = 0;
  replacePause('silence', async () => {});
  await opened.connection.reopen();
  assert.equal((await opened.connection.initialize()).protocolVersion, LATER);
  assert.deepEqual(sent(opened), ['server/discover', 'initialize', 'initialize']);
});

// ─── Every request introduces itself ──────────────────────────────────────────────────────────────────────────

onBoth('in the later era every request says who we are, and keeps what else it has to say', async (_, open) => {
  const capabilities = { elicitation: { form: {} } };
  const opened = await open({ ...modern, 'tools/list': { result: { tools: [] } }, 'tools/call': { result: { content: [] } } }, { parts: { capabilities } });
  await opened.connection.listTools();
  await opened.connection.callTool('x', {}, { onProgress: () => {} });
  await opened.connection.request('tools/call', { name: 'y', _meta: { traceparent: '00-1', [`${META}protocolVersion`]: 'forged' } });
  const messages = (await seen(opened)).filter(({ method }) => method !== 'initialize'); // which a pipe gets, too
  const others: unknown[] = [];
  assert.deepEqual(messages.map(({ method }) => method), ['server/discover', 'tools/list', 'tools/call', 'tools/call']);
  for (const { params } of messages) {
    const { progressToken, traceparent, ...rest } = params._meta;
    const { name, version } = rest[`${META}clientInfo`];
    assert.deepEqual([name, typeof version], ['mcp-by-hand', 'string']);
    assert.deepEqual(rest, {
      [`${META}protocolVersion`]: LATER, [`${META}clientInfo`]: { name, version }, [`${META}clientCapabilities`]: capabilities,
    });
    others.push(progressToken ?? traceparent);
  }
  assert.deepEqual(others, [undefined, undefined, messages[2].id, '00-1']);
});

onBoth('in the earlier era no request but the first does', async (_, open) => {
  const opened = await open({ ...legacy, 'tools/list': { result: { tools: [] } }, 'tools/call': { result: { content: [] } } });
  await opened.connection.listTools();
  await opened.connection.callTool('x', {}, { onProgress: () => {} });
  const [, , , list, call] = await seen(opened);
  assert.deepEqual([list.method, list.params?._meta], ['tools/list', undefined]);
  assert.deepEqual(call.params, { name: 'x', arguments: {}, _meta: { progressToken: call.id } });
});

onBoth('trap 17: a call whose revision is refused is repeated once; then both sides are named', async (_, open) => {
  const opened = await open({
    ...modern,
    'tools/call': (params) => params.name !== 'never' && params.arguments.isAgain
      ? { result: { content: [] } }
      : { error: { code: -32022, message: 'No.', data: { supported: ['2031-01-01', '2026-07-28'] } } },
    'prompts/get': (_, { seen }) => seen.filter(({ method }) => method === 'prompts/get').length > 1
      ? { result: { messages: [] } }
      : { error: { code: -32022, message: 'No.', data: { supported: ['2026-07-28'] } } },
  });
  const error = await rejection(opened.connection.callTool('never'));
  assert.ok(error instanceof RpcError && error.code === -32022);
  assert.match(error.message, bothNames);
  assert.equal((await seen(opened, 'tools/call')).length, 2);
  assert.deepEqual(await opened.connection.request('prompts/get', { name: 'p' }), { messages: [] });
});

// ─── Results and their types ──────────────────────────────────────────────────────────────────────────────────

onBoth('a result without a type is complete; one of an unknown type is an error', async (_, open) => {
  const echo: Act = (params) => ({ result: { content: [], ...(params.arguments ?? params) } });
  const { connection } = await open({ ...modern, 'tools/call': echo, 'prompts/list': echo, 'tools/list': echo });
  assert.equal((await connection.callTool('x')).isError, false);
  assert.equal((await connection.callTool('x', { resultType: 'complete' })).isError, false);
  for (const resultType of ['task', 7, null, '', {}]) {
    const error = await rejection(connection.callTool('x', { resultType }));
    assert.equal(error.kind, 'protocol');
    assert.ok(error.message.includes(`tools/call with a result of type ${JSON.stringify(resultType)}`), error.message);
  }
  const error = await rejection(connection.request('prompts/list', { resultType: 'input_required' }));
  assert.match(error.message, /answered prompts\/list with a result of type "input_required"/, 'lists must not ask');
});

onBoth('in the earlier era a type means nothing', async (_, open) => {
  const { connection } = await open({ ...legacy, 'tools/call': { result: { content: [], resultType: 'task' } } });
  assert.equal((await connection.callTool('x')).isError, false);
});

// ─── A server asks inside its results ─────────────────────────────────────────────────────────────────────────

/** Asks until `rounds` are over, with the given state, and then answers with what it was sent the last time. */
const asks: Act = (params, { seen }) => {
  const { rounds = 1, state, questions = { q: { method: 'elicitation/create', params: { message: 'A?' } } } } = params.arguments;
  const isSame = (each: any) => JSON.stringify(each.params?.arguments) === JSON.stringify(params.arguments);
  const round = seen.filter(isSame).length;
  if (round > rounds) return { result: { resultType: 'complete', given: params } };
  const requestState = state === 'round' ? `${round}` : state;
  return { result: { resultType: 'input_required', inputRequests: questions ?? undefined, requestState } };
};
const asking: Script = { ...modern, 'tools/call': asks, 'prompts/get': asks, 'resources/read': asks };
const accept = () => ({ action: 'accept', content: { ok: true } });
const user = (answer: (params: Json) => unknown = accept): Options =>
  ({ parts: { capabilities: { elicitation: {} }, handlers: { 'elicitation/create': answer } } });

onBoth('tools/call, prompts/get and resources/read are sent again with the answers, under a new id', async (_, open) => {
  const asked: Json[] = [];
  const opened = await open(asking, user((params) => (asked.push(params), { action: 'accept', content: { n: asked.length } })));
  const questions = { a: { method: 'elicitation/create', params: { message: 'A?' } }, b: { method: 'elicitation/create', params: { message: 'B?' } } };
  for (const method of ['tools/call', 'prompts/get', 'resources/read']) {
    asked.length = 0;
    const params = { name: 'x', uri: 'x:', arguments: { questions, method, state: 's1.9f2c' } };
    const { given } = await opened.connection.request(method, params) as { given: any };
    assert.deepEqual(asked, [{ message: 'A?' }, { message: 'B?' }]);
    const { _meta, ...rest } = given;
    assert.deepEqual(Object.keys(_meta).length, 3);
    const inputResponses = { a: { action: 'accept', content: { n: 1 } }, b: { action: 'accept', content: { n: 2 } } };
    assert.deepEqual(rest, { ...params, inputResponses, requestState: 's1.9f2c' });
    const [first, second] = await seen(opened, method);
    assert.notEqual(first.id, second.id);
    assert.deepEqual(Object.keys(first.params).filter((key) => /^(input|requestS)/.test(key)), []);
  }
});

onBoth('trap 14: the state goes back exactly as it came, and not at all if there was none', async (_, open) => {
  const { connection } = await open(asking, user());
  const states = ['{"b":1,  "a":1.0}', '"quoted"', '', ' ', '0', 'null', 'a\u2028b\u2029c', '\u0000\ud83d\ude00é\\n\n', '__proto__', 'x'.repeat(100_000)];
  for (const state of states) {
    const { given } = await connection.request('tools/call', { name: 'x', arguments: { state } }) as { given: Json };
    assert.ok(Object.hasOwn(given, 'requestState'));
    assert.equal(given.requestState, state);
  }
  const { given } = await connection.request('tools/call', { name: 'x', arguments: {} }) as { given: Json };
  assert.ok(!Object.hasOwn(given, 'requestState') && Object.hasOwn(given, 'inputResponses'));
});

onBoth('several rounds: each answers only what the last one asked, with the last state', async (_, open) => {
  let n = 0;
  const opened = await open(asking, user(() => ({ action: 'accept', content: { n: ++n } })));
  await opened.connection.request('tools/call', { name: 'x', arguments: { rounds: 3, state: 'round' } });
  const calls = await seen(opened, 'tools/call');
  const added = calls.map(({ params }) => [params.requestState, params.inputResponses?.q.content.n]);
  assert.deepEqual(added, [[undefined, undefined], ['1', 1], ['2', 2], ['3', 3]]);
  assert.equal(new Set(calls.map(({ id }) => id)).size, 4);
});

onBoth('a state that the next round does not repeat is forgotten', async (_, open) => {
  const opened = await open({
    ...modern,
    'tools/call': (_, { seen }) => [
      { result: { resultType: 'input_required', requestState: 'old', inputRequests: { a: { method: 'elicitation/create' } } } },
      { result: { resultType: 'input_required', inputRequests: { b: { method: 'elicitation/create' } } } },
      { result: { resultType: 'complete' } },
    ][seen.filter(({ method }) => method === 'tools/call').length - 1],
  }, user());
  await opened.connection.request('tools/call', { name: 'x' });
  const last = (await seen(opened, 'tools/call')).at(-1);
  assert.equal('requestState' in last.params, false);
  assert.deepEqual(Object.keys(last.params.inputResponses), ['b']);
});

onBoth('what we were given stays as it was, and a call at the same time sees nothing of it', async (_, open) => {
  const freeze = (value: any): any => (typeof value === 'object' ? Object.freeze(Object.values(value).forEach(freeze) ?? value) : value);
  const options = user(async () => {
    await opened.connection.request('tools/call', { name: 'other', arguments: { rounds: 0 } });
    return { action: 'accept' };
  });
  const opened = await open(asking, options);
  const params = freeze({ name: 'x', arguments: { state: 's' }, _meta: { traceparent: '00' } });
  await Promise.all([1, 2].map((n) => opened.connection.request('tools/call', { ...params, arguments: { ...params.arguments, n } })));
  const others = (await seen(opened, 'tools/call')).filter((message) => message.params.name === 'other');
  assert.equal(others.length, 2);
  for (const { params } of others) assert.deepEqual(Object.keys(params), ['name', 'arguments', '_meta']);
});

onBoth('a server that asks for nothing but patience gets it: a pause, then the same again', async (_, open) => {
  const opened = await open(asking);
  const noted = notePauses();
  for (const questions of [null, {}]) {
    const { given } = await opened.connection.request('tools/call', { name: 'x', arguments: { rounds: 3, state: 'round', questions } }) as { given: Json };
    assert.equal(given.requestState, '3');
    assert.equal('inputResponses' in given, false);
  }
  assert.deepEqual(noted, [200, 400, 800, 200, 400, 800]);
});

onBoth('whoever cancels during that pause need not wait, and is told so', async (_, open) => {
  const opened = await open(asking);
  const controller = new AbortController();
  const { retry } = pauses;
  replacePause('retry', (_, signal) => (controller.abort(), retry(1e8, signal)));
  const args = { name: 'x', arguments: { questions: null } };
  const error = await rejection(opened.connection.request('tools/call', args, { signal: controller.signal }));
  assert.equal(error.kind, 'aborted');
  assert.equal((await seen(opened, 'tools/call')).length, 1);
});

onBoth('ten rounds, and no more', async (_, open) => {
  const opened = await open(asking, user());
  await opened.connection.request('tools/call', { name: 'x', arguments: { rounds: 10 } });
  assert.equal((await seen(opened, 'tools/call')).length, 11);
  const error = await rejection(opened.connection.request('tools/call', { name: 'x', arguments: { rounds: 11 } }));
  assert.equal(error.kind, 'limit');
  assert.equal((await seen(opened, 'tools/call')).length, 22);
});

onBoth('what we have not offered is not done, whatever handlers there are; nothing is sent again', async (_, open) => {
  const told: string[] = [];
  const note = (name: string) => () => void told.push(name);
  const opened = await open(asking, { parts: {
    capabilities: { elicitation: {}, roots: {} },
    handlers: { 'sampling/createMessage': note('sampling'), 'notifications/tools/list_changed': note('changed') },
  } });
  const known = ['sampling/createMessage', 'roots/list', 'elicitation/create', 'ping', 'notifications/tools/list_changed'];
  const methods = [...known, 'toString', '__proto__', '', 7, null, { toString: 1 }];
  for (const [n, method] of methods.entries()) {
    const error = await rejection(opened.connection.request('tools/call', { name: 'x', arguments: { questions: { q: { method } } } }));
    assert.equal(error.kind, 'protocol', `${JSON.stringify(method)}: ${error}`);
    assert.match(error.message, /which we have not offered/);
    assert.equal((await seen(opened, 'tools/call')).length, n + 1);
  }
  assert.equal((await rejection(opened.connection.request('tools/call', { name: 'x', arguments: { questions: { q: 7 } } }))).kind, 'protocol');
  assert.deepEqual(told, []);
});

onBoth('to decline is an answer like any other; every key gets its own, whatever it is called', async (_, open) => {
  const opened = await open({
    ...modern,
    'tools/call': (params) => {
      const inputRequests = JSON.parse('{"__proto__":{"method":"elicitation/create"},"":{"method":"elicitation/create"}}');
      if (!params.inputResponses) return { result: { resultType: 'input_required', inputRequests } };
      return { result: { text: JSON.stringify(params.inputResponses) } };
    },
  }, user(() => ({ action: 'decline' })));
  const { text } = await opened.connection.request('tools/call', { name: 'x' });
  assert.equal(text, '{"__proto__":{"action":"decline"},"":{"action":"decline"}}');
});

onBoth('a handler that fails ends the call with its own error, and nothing is sent again', async (_, open) => {
  const opened = await open(asking, user(() => Promise.reject(new Error('the user has left'))));
  const error = await rejection(opened.connection.request('tools/call', { name: 'x', arguments: {} }));
  assert.equal(error.message, 'the user has left');
  assert.equal((await seen(opened, 'tools/call')).length, 1);
});

onBoth('the same handler serves the earlier era, where a question is a request', async (_, open) => {
  const { connection } = await open({
    ...legacy,
    'tools/call': (_, peer, memory) => ((memory.call = peer), peer.send({ id: 1, method: 'elicitation/create', params: { message: 'A?' } })),
    '(answer)': ({ id, result }, _, memory) => memory.call.reply({ result: { given: { id, ...result } } }),
  }, user(({ message }) => ({ action: 'accept', content: { message } })));
  const { given } = await connection.request('tools/call', { name: 'x' });
  assert.deepEqual(given, { id: 1, action: 'accept', content: { message: 'A?' } });
});

onBoth('B6: in the later era a request from the server is dropped: one warning, no answer', async (_, open) => {
  const opened = await open({
    ...modern,
    'tools/call': (_, peer) => {
      for (const method of ['elicitation/create', 'ping', 'roots/list', 'unknown']) peer.send({ id: method, method, params: {} });
      return { result: { content: [] } };
    },
  }, user(() => assert.fail('it was called')));
  await opened.connection.callTool('x');
  assert.deepEqual(opened.warnings, ['MCP server "demo" sent a request, which its revision does not allow: "elicitation/create"']);
  await seen(opened);
  assert.deepEqual((await seen(opened)).filter(({ method }) => method === undefined), []);
  assert.equal(sent(opened).includes('(answer)'), false);
});

// ─── Changes are told to those who listen ─────────────────────────────────────────────────────────────────────

const watching = (script: Script, capabilities: Json = { tools: { listChanged: true }, prompts: {}, resources: { listChanged: true } }): Script =>
  ({ 'server/discover': { result: { supportedVersions: [LATER], capabilities } }, ...script });
/** Acknowledges, and keeps the subscription open. */
const subscribe: Act = ({ notifications }, peer, memory) => {
  const _meta = { 'io.modelcontextprotocol/subscriptionId': peer.id };
  memory.listener = peer;
  peer.send({ method: 'notifications/subscriptions/acknowledged', params: { notifications, _meta } });
};
const isSubscribed = ({ wire }: Opened) => wire.some(([, { method }]) => method === 'notifications/subscriptions/acknowledged');

onBoth('we listen for the changes that the server can tell, and for no others; and hear of them', async (_, open) => {
  const told: Json[] = [];
  const opened = await open(watching({
    'subscriptions/listen': subscribe,
    'tools/call': (_, __, memory) => (memory.listener.send({ method: 'notifications/tools/list_changed', params: { n: 1 } }), { result: {} }),
  }), { parts: { handlers: { 'notifications/tools/list_changed': (params) => void told.push(params) } } });
  await until(() => isSubscribed(opened));
  await opened.connection.callTool('x');
  await until(() => told.length > 0);
  assert.deepEqual(told, [{ n: 1 }]);
  const [listen] = await seen(opened, 'subscriptions/listen');
  assert.deepEqual(listen.params.notifications, { toolsListChanged: true, resourcesListChanged: true });
  assert.equal(listen.params._meta[`${META}protocolVersion`], LATER);
  assert.deepEqual(opened.warnings, []);
});

onBoth('a server that cannot tell of changes, or wants a handshake, is not listened to', async (_, open) => {
  const earlier = { result: { protocolVersion: '2025-11-25', capabilities: { tools: { listChanged: true } } } };
  const untold: Script = { 'server/discover': { result: { supportedVersions: [LATER] } } };
  for (const script of [watching({}, { tools: {}, prompts: { listChanged: 'yes' } }), untold, { initialize: earlier }]) {
    const opened = await open(script);
    await seen(opened); // one turn for whatever was begun
    assert.equal((await seen(opened, 'subscriptions/listen')).length, 0);
  }
});

onBoth('what the server will not tell is said once', async (_, open) => {
  const opened = await open(watching({
    'subscriptions/listen': (_, peer) => {
      const params = { notifications: { toolsListChanged: true } };
      peer.send({ method: 'notifications/subscriptions/acknowledged', params });
    },
  }));
  await until(() => opened.warnings.length > 0);
  assert.deepEqual(opened.warnings, ['MCP server "demo" will not tell us of resourcesListChanged']);
});

const GROWING = [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000];
const endings: [string, WireName[], Act][] = [
  ['its result', BOTH, { result: {} }],
  ['its result, after the acknowledgement', BOTH, (_, peer) => {
    peer.send({ method: 'notifications/subscriptions/acknowledged', params: { _meta: { 'io.modelcontextprotocol/subscriptionId': peer.id } } });
    return { result: { resultType: 'complete' } };
  }],
  ['a notice that names it', BOTH, (params, peer) => {
    const _meta = { 'io.modelcontextprotocol/subscriptionId': peer.id };
    peer.send({ method: 'notifications/subscriptions/acknowledged', params: { notifications: params.notifications, _meta } });
    peer.send({ method: 'notifications/cancelled', params: { requestId: peer.id } });
  }],
  ['the end of its stream', ['http'], (params, peer) => {
    const _meta = { 'io.modelcontextprotocol/subscriptionId': peer.id };
    peer.send({ method: 'notifications/subscriptions/acknowledged', params: { notifications: params.notifications, _meta } });
    peer.hangUp();
  }],
  ['a stream that is cut', ['http'], (_, peer) => peer.hangUp()],
];
for (const [name, wires, act] of endings)
  for (const wire of wires)
    test(`${wire}: a subscription ends by ${name}: we listen again, after pauses that grow`, async () => {
      const noted = notePauses(GROWING.length);
      const opened = await openOn(wire, watching({ 'subscriptions/listen': act }, { tools: { listChanged: true } }));
      await until(() => noted.length === GROWING.length);
      assert.deepEqual(noted, GROWING);
      const listens = await seen(opened, 'subscriptions/listen');
      assert.equal(listens.length, GROWING.length);
      assert.equal(new Set(listens.map(({ id }) => id)).size, GROWING.length);
    });

test('stdio: a subscription ends with the process: whoever starts it again listens again', async () => {
  const noted = notePauses();
  const opened = await openOn('stdio', watching({ 'subscriptions/listen': subscribe, 'tools/call': (_, peer) => peer.hangUp() }));
  const { connection } = opened;
  await until(() => isSubscribed(opened));
  assert.equal((await rejection(connection.callTool('x'))).kind, 'closed');
  opened.wire.length = 0;
  await connection.reopen();
  await connection.initialize();
  await until(() => isSubscribed(opened));
  assert.deepEqual(sent(opened), ['server/discover', 'subscriptions/listen'], 'the era is known from before');
  assert.deepEqual(noted, [], 'to the dead nobody listens');
});

onBoth('a notice that names something else ends nothing', async (_, open) => {
  const noted = notePauses();
  const opened = await open(watching({
    'subscriptions/listen': subscribe,
    'tools/call': (_, __, memory) => {
      for (const requestId of ['other', `${memory.listener.id}`, undefined, null])
        memory.listener.send({ method: 'notifications/cancelled', params: { requestId } });
      memory.listener.send({ method: 'notifications/last' });
      return { result: {} };
    },
  }));
  await until(() => isSubscribed(opened));
  await opened.connection.callTool('x');
  await until(() => opened.wire.some(([, { method }]) => method === 'notifications/last'));
  assert.equal((await seen(opened, 'subscriptions/listen')).length, 1);
  assert.deepEqual([noted, opened.warnings], [[], []]);
});

onBoth('a server that does not let us listen is not asked again: one warning', async (_, open) => {
  const noted = notePauses();
  const opened = await open(watching({}));
  await until(() => opened.warnings.length > 0);
  await seen(opened);
  assert.equal((await seen(opened, 'subscriptions/listen')).length, 1);
  assert.match(opened.warnings.join(), /does not let us listen for changes: .*Method not found/);
  assert.deepEqual([noted, opened.warnings.length], [[], 1]);
});

onBoth('to close ends it, whether we listen, wait, or are about to', async (wire, open) => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => unhandled.push(reason);
  process.on('unhandledRejection', note);
  later(() => process.off('unhandledRejection', note));
  const about = await open(watching({ 'subscriptions/listen': subscribe }));
  await about.connection.close();
  const listening = await open(watching({ 'subscriptions/listen': subscribe }));
  await until(() => isSubscribed(listening));
  await listening.connection.close();
  const noted = notePauses(1);
  const waiting = await open(watching({ 'subscriptions/listen': { result: {} } }));
  await until(() => noted.length > 0);
  await waiting.connection.close();
  const before = [about, listening, waiting].map((opened) => opened.wire.length);
  const { config } = await mount[wire](modern); // time for whoever would have something to say
  await (await connect(config, withEras())).connection.initialize();
  assert.deepEqual([about, listening, waiting].map((opened) => opened.wire.length), before);
  assert.deepEqual([noted.length, unhandled], [1, []]);
});

onBoth('no program stays alive for it', async (wire) => {
  // On stdio the server itself keeps the program alive, so there it says goodbye; on HTTP there is only the pause.
  const { config } = await mount[wire](watching({ 'subscriptions/listen': wire === 'http' ? { result: {} } : subscribe }));
  const program = `
    import { McpConnection } from './mcp.ts';
    import { HttpTransport } from './chapters/20-streamable-http/http.ts';
    import { inBothEras } from './chapters/22-no-handshake/era.ts';
    const transports = { http: (...given) => new HttpTransport(...given) };
    const leave = () => (console.log('listened'), ${wire === 'stdio'} && connection.close());
    const onWire = (_, { method }) => method === 'subscriptions/listen' && setTimeout(leave, 100);
    const connection = new McpConnection('demo', ${JSON.stringify(config)}, { extensions: inBothEras(), transports, onWire });
    await connection.connect();
    await connection.initialize();
  `;
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', program.replaceAll('./', `${root}/`)], { cwd: root });
  later(() => child.kill('SIGKILL'));
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text));
  const code = await new Promise((done) => child.on('close', done));
  assert.deepEqual([code, output.trim().split('\n')[0]], [0, 'listened'], output);
});

// ─── Answers that may be kept ─────────────────────────────────────────────────────────────────────────────────

/** Its answers hold what the address says, and how many requests it has seen. */
const library: Script = {
  'resources/read': ({ uri }, { seen }) => ({ result: { n: seen.length, ...JSON.parse(uri) } }),
  'subscriptions/listen': subscribe,
  'tools/list': ({ cursor }, { seen, isTurned }) => isTurned && cursor
    ? { error: { code: -32602, message: 'bad cursor' } }
    : { result: { n: seen.length, tools: [], ttlMs: 60_000, ...(!cursor && { nextCursor: 'c' }) } },
  'prompts/list': (_, { seen }) => ({ result: { n: seen.length, prompts: [], ttlMs: 60_000 } }),
  'tools/call': ({ name }, __, memory) => (memory.listener.send({ method: name }), { result: {} }),
};
const reading = ({ connection }: Opened) => async (fields: Json, more?: Json) =>
  (await connection.request('resources/read', { uri: JSON.stringify(fields), ...more })).n;

onBoth('what the server lets us keep is not asked for again; everything else is', async (_, open) => {
  const read = reading(await open(watching(library)));
  for (const fields of [{ ttlMs: 60_000 }, { ttlMs: 60_000, cacheScope: 'private' }, { ttlMs: 60_000, cacheScope: 'public' }, { ttlMs: 1e300 }])
    assert.equal(await read(fields), await read(fields), JSON.stringify(fields));
  for (const fields of [{}, { ttlMs: 0 }, { ttlMs: -1 }, { ttlMs: '60000' }, { ttlMs: null }])
    assert.notEqual(await read(fields), await read(fields), JSON.stringify(fields));
  assert.equal(await read({ ttlMs: 6e4 }, { _meta: { traceparent: '1' } }), await read({ ttlMs: 6e4 }, { _meta: { traceparent: '2' } }));
  const short = await read({ ttlMs: 1 });
  let again = short;
  for (let n = 0; n < 1000 && again === short; n++, await pause(1)) again = await read({ ttlMs: 1 });
  assert.notEqual(again, short, 'it is stale at last');
});

onBoth('other parameters, another page, or another method are other answers', async (_, open) => {
  const { connection } = await open(watching(library));
  const ask = async (method: string, params?: Json) => (await connection.request(method, params)).n;
  const asked = () => Promise.all([ask('tools/list'), ask('tools/list', { cursor: '' }), ask('tools/list', { cursor: 'c' }), ask('prompts/list')]);
  const first = await asked();
  assert.equal(new Set(first).size, 4);
  assert.deepEqual(await asked(), first);
});

onBoth('calls, and whatever else has no such rule, are never kept', async (_, open) => {
  const { connection } = await open({ ...modern, 'tools/call': (_, { seen }) => ({ result: { ttlMs: 60_000, content: [], structuredContent: seen.length } }) });
  assert.notDeepEqual(await connection.callTool('x'), await connection.callTool('x'));
});

onBoth('a change makes us forget what it is about, and nothing else', async (_, open) => {
  const opened = await open(watching(library));
  const { connection } = opened;
  const read = reading(opened);
  await until(() => isSubscribed(opened));
  const ask = async () => [(await connection.request('tools/list')).n, (await connection.request('prompts/list')).n, await read({ ttlMs: 6e4 })];
  const change = async (notice: string) => {
    const before = opened.wire.length;
    await connection.callTool(notice);
    await until(() => opened.wire.slice(before).some(([direction, { method }]) => direction === 'in' && method === notice));
  };
  let before = await ask();
  for (const [n, notice] of ['notifications/tools/list_changed', 'notifications/prompts/list_changed', 'notifications/resources/updated'].entries()) {
    await change(notice);
    const after = await ask();
    assert.deepEqual(after.map((each, k) => each === before[k]), [0, 1, 2].map((k) => k !== n), notice);
    before = after;
  }
});

onBoth('a list that was asked for before the change is not kept', async (_, open) => {
  const changes: string[] = [];
  const opened = await open(watching({
    ...library,
    'tools/list': (_, peer, memory) => {
      if (memory.waiting) return { result: { tools: [{ name: 'new' }], ttlMs: 60_000 } };
      memory.waiting = peer;
      memory.listener.send({ method: 'notifications/tools/list_changed' });
      return undefined;
    },
    'x/go-on': (_, __, memory) => (memory.waiting.reply({ result: { tools: [{ name: 'old' }], ttlMs: 60_000 } }), { result: {} }),
  }), { parts: { changed: (what) => void changes.push(what) } });
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
  assert.equal((await rejection(opened.connection.request('tools/list', { cursor: 'old' }))).code, -32602);
  assert.notEqual((await opened.connection.request('tools/list')).n, first.n);
});

onBoth('what came of a repetition, or is no complete answer, is never kept', async (_, open) => {
  const opened = await open({
    ...modern,
    'resources/read': (params, { seen }) => params.inputResponses || params.requestState
      ? { result: { n: seen.length, ttlMs: 60_000 } }
      : { result: { resultType: 'input_required', ttlMs: 60_000, inputRequests: { q: { method: 'elicitation/create' } }, requestState: 's' } },
  }, user());
  const [one, two] = [await opened.connection.request('resources/read', { uri: 'x' }), await opened.connection.request('resources/read', { uri: 'x' })];
  assert.notEqual(one.n, two.n);
  assert.equal((await seen(opened, 'resources/read')).length, 4);
});

onBoth('it is kept by one connection, till its next handshake, and in the earlier era not at all', async (wire, open) => {
  const { config } = await mount[wire](watching(library));
  const [one, two] = [await connect(config, withEras()), await connect(config, withEras())];
  await one.connection.initialize();
  await two.connection.initialize();
  for (const opened of [one, two]) await opened.connection.request('prompts/list');
  const asked = (opened: Opened) => sent(opened).filter((method) => method === 'prompts/list').length;
  assert.deepEqual([asked(one), asked(two)], [1, 1]);
  await one.connection.reopen();
  await one.connection.initialize();
  for (const opened of [one, two]) await opened.connection.request('prompts/list');
  assert.deepEqual([asked(one), asked(two)], [2, 1]);
  const earlier = await open({ ...legacy, 'prompts/list': library['prompts/list']! });
  for (let n = 0; n < 2; n++) await earlier.connection.request('prompts/list');
  assert.equal(asked(earlier), 2);
});

test('stdio: a thousand answers are kept, and then the oldest goes', async () => {
  const read = reading(await openOn('stdio', watching(library, {})));
  const first = await Promise.all(Array.from({ length: 1000 }, (_, n) => read({ ttlMs: 6e4, id: n })));
  assert.equal(await read({ ttlMs: 6e4, id: 0 }), first[0]);
  await read({ ttlMs: 6e4, id: 1000 });
  assert.equal(await read({ ttlMs: 6e4, id: 500 }), first[500]);
  assert.notEqual(await read({ ttlMs: 6e4, id: 0 }), first[0]);
});

// ─── And the whole of it with a server that was written for nothing of this ───────────────────────────────────────

const calculators = [
  ['stdio', 'modern', LATER], ['stdio', 'legacy', '2025-11-25'], ['stdio', 'both', LATER],
  ['http', 'modern', LATER], ['http', 'legacy', '2025-11-25'], ['http', 'both', LATER],
] as const;
for (const [wire, era, revision] of calculators)
  test(`${wire}: the calculator (--era ${era})`, async () => {
    const args = [join(root, 'fixtures', 'remote.mjs'), wire, ...(era === 'both' ? [] : ['--era', era]), '--sessions'];
    let config: Json = { command: process.execPath, args };
    if (wire === 'http') {
      const child = spawn(process.execPath, args);
      later(() => child.kill());
      const address = new Promise<string>((done) => child.stdout.setEncoding('utf8').once('data', done));
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
