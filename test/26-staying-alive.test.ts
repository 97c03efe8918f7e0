// Chapter 26: servers die, and come back; nothing is done twice that must not be.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { httpTransports } from '../chapters/20-streamable-http/http.ts';
import { inBothEras } from '../chapters/22-no-handshake/era.ts';
import type { Pause } from '../chapters/20-streamable-http/pause.ts';
import { stayAlive } from '../chapters/26-staying-alive/alive.ts';
import {
  living,
  McpError,
  type ConnectionOptions,
  type Json,
  type Transport,
  type TransportEvents,
} from '../mcp.ts';
import {
  allGone,
  cleanUp,
  connect,
  folder,
  habit,
  later,
  open,
  pause,
  pidsIn,
  rejection,
  root,
  until,
} from './help/basics.ts';
import { peer, text as textual } from './help/http-servers.ts';
import { manage } from './help/manager.ts';

afterEach(cleanUp);

const soon: Pause = () => pause(2);
const remote = join(root, 'fixtures', 'remote.mjs');
const aFile = () => join(folder(), 'file');

/** Everything a connection needs, with pauses that take hardly any time. */
function alive(options: ConnectionOptions = {}, pausing = soon): ConnectionOptions {
  return {
    extensions: [stayAlive({ pause: pausing }), ...inBothEras()],
    transports: { http: httpTransports.http },
    ...options,
  };
}

/** The calculator over HTTP. It can be killed, and started again on the same port. */
async function serve(...flags: string[]) {
  let url = '';
  const start = async (...more: string[]) => {
    const port = url && ['--port', new URL(url).port];
    const child = spawn(process.execPath, [remote, ...flags, ...more, ...port], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    later(() => child.kill('SIGKILL'));
    const [line] = await once(child.stdout, 'data');
    url = `${line}`.trim();
    return child;
  };
  let child = await start();
  const gone = async () => child.exitCode ?? child.signalCode ?? once(child, 'exit');
  return {
    config: { type: 'http', url },
    gone,
    kill: async () => {
      child.kill('SIGKILL');
      await gone();
      await pause(100); // till then a connection that lies idle may look as if it could be used
    },
    again: async (...more: string[]) => void (child = await start(...more)),
  };
}

/** The lines of a file that are this text: how often a server was asked it. */
const count = (file: string, what: string) =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line === what).length;

/** Kills the process whose pid the file names, and waits until we have noticed. */
async function killFirst(file: string, hasNoticed: () => unknown): Promise<void> {
  process.kill(pidsIn(file)[0]!, 'SIGKILL');
  await until(hasNoticed);
}

/** A server on one of the wires. Over HTTP it comes back by itself during the first pause after its end. */
async function onWire(wire: string, file: string) {
  const [kind, ...flags] = wire.split(' ');
  if (kind === 'stdio')
    return open(
      { command: process.execPath, args: [remote, ...wire.split(' '), '--notes', file] },
      alive(),
    );
  const server = await serve(kind!, ...flags, '--notes', file);
  void server.gone().then(() => server.again());
  return open(
    server.config,
    alive({}, () => pause(600)),
  ); // it may take that long to be back on a busy machine
}
const LEGACY = [
  'stdio --era legacy',
  'http --era legacy',
  'http --era legacy --sessions',
  'http --era legacy --json',
  'sse',
];
const MODERN = ['stdio --era modern', 'http --era modern', 'http --era modern --json'];
const text = (result: Json) => (result.content as { text: string }[])[0]!.text;

// ─── A server dies, and is started again ──────────────────────────────────────────────────────────────────────

test('a server that died is started again at the next call: a new handshake, its tools listed anew, its state told', async () => {
  const [file, states, wire] = [aFile(), [] as unknown[], [] as string[]];
  const { manager, state } = await manage(
    { s: habit('next-life', `${file}:grows-a-tool`) },
    undefined,
    {
      ...alive(),
      onState: (...told) => states.push(told),
      onWire: (direction, { method }: any) => direction === 'out' && wire.push(method),
    },
  );
  await killFirst(file, () => state('s').state === 'failed');
  await pause(300);
  assert.deepEqual(pidsIn(file).length, 1, 'nobody needs it yet');
  assert.equal((await manager.callTool('mcp__s__echo', { a: 1 })).text, '{"a":1}');
  await until(() => manager.isMcpTool('mcp__s__grow')); // its next life has one more tool
  assert.equal(state('s').state, 'connected');
  assert.equal(pidsIn(file).length, 2);
  const why = `MCP server "s" (${process.execPath}) was ended by SIGKILL.`;
  assert.deepEqual(states, [
    ['s', 'connected', undefined],
    ['s', 'failed', why],
    ['s', 'connected', undefined],
  ]);
  assert.deepEqual(wire, [
    'server/discover',
    'initialize',
    'notifications/initialized',
    'tools/list',
    'initialize',
    'notifications/initialized',
    'tools/call',
    'tools/list', // by now we know its era
  ]);
});

test('the same in the later era, where also the subscription begins anew', async () => {
  const file = aFile();
  const config = {
    command: process.execPath,
    args: [remote, 'stdio', '--era', 'modern', '--notes', file],
  };
  const { manager, state } = await manage({ s: config }, undefined, alive());
  await until(() => count(file, 'subscriptions/listen') === 1); // before it dies in the call
  assert.match((await rejection(manager.callTool('mcp__s__push'))).message, /exited with code 9/);
  assert.equal(state('s').state, 'failed');
  assert.equal((await manager.callTool('mcp__s__push')).text, 'push done');
  await until(() => state('s').state === 'connected');
  await until(() => count(file, 'subscriptions/listen') === 2 && count(file, 'tools/list') === 2);
  assert.deepEqual([count(file, 'server/discover'), count(file, 'tools/list')], [2, 2]);
  await manager.callTool('mcp__s__grow'); // told over the new subscription
  await until(() => manager.isMcpTool('mcp__s__new'));
});

test('many calls that meet a dead server cause one restart', async () => {
  const file = aFile();
  const { connection, wire } = await open(habit('notes-its-pid', file), alive());
  await killFirst(file, () => connection.ended);
  const { signal } = new AbortController();
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => warnings.push(warning);
  process.on('warning', onWarning);
  later(() => process.off('warning', onWarning));
  const call = (n: number) => connection.callTool('echo', { n }, n % 2 ? { signal } : {});
  const first = Array.from({ length: 30 }, (_, n) => call(n));
  await until(() => pidsIn(file).length === 2);
  const results = await Promise.all([...first, ...[30, 31].map(call)]); // also those that come during the handshake
  assert.deepEqual(
    results.map((result) => result.text),
    results.map((_, n) => `{"n":${n}}`),
  );
  assert.equal(pidsIn(file).length, 2);
  const sent = wire.filter(([direction]) => direction === 'out').map(([, { method }]) => method);
  assert.deepEqual(
    sent.slice(3, 6),
    ['initialize', 'notifications/initialized', 'tools/call'],
    'first the handshake',
  );
  assert.deepEqual(warnings, []); // of too many listeners on one signal
});

test('reads that were under way when it died are repeated, and also they cause one restart', async () => {
  const file = aFile();
  const { connection, wire } = await open(habit('notes-its-pid', file), alive());
  const [pid] = pidsIn(file);
  process.kill(pid!, 'SIGSTOP');
  const pings = Array.from({ length: 10 }, () => connection.request('ping'));
  await pause(50);
  process.kill(pid!, 'SIGKILL');
  await Promise.all(pings);
  assert.equal(pidsIn(file).length, 2);
  assert.equal(
    wire.filter(([direction, { method }]) => direction === 'out' && method === 'ping').length,
    20,
  );
});

test('a server that dies before it was ever connected is not started again', async () => {
  const file = aFile();
  const { state } = await manage({ s: habit('dies-at-once') }, undefined, alive());
  assert.deepEqual([state('s').state, /crash/.test(state('s').reason!)], ['failed', false]);

  writeFileSync(file, ''); // so that its first life is a next life already
  const dying = await manage(
    { s: habit('next-life', `${file}:dies-after-handshake`) },
    undefined,
    alive(),
  );
  assert.equal(dying.state('s').state, 'failed');
  await pause(300);
  assert.equal(pidsIn(file).length, 1);

  const { connection } = await connect(habit(), alive());
  await rejection(connection.callTool('exit', { code: 3 })); // without a handshake
  assert.match((await rejection(connection.request('ping'))).message, /exited with code 3/);
});

test('a server that we closed or disabled is not started again', async () => {
  const file = aFile();
  const { manager } = await manage({ s: habit('notes-its-pid', file) }, undefined, alive());
  const { connection } = (manager as any).servers.get('s');
  const waiting = rejection(connection.callTool('sleep', { ms: 1e6 }));
  await manager.disable('s');
  for (const error of [
    await waiting,
    await rejection(connection.callTool('echo')),
    await rejection(connection.request('ping')),
  ])
    assert.deepEqual([error.kind, error.message], ['closed', 'MCP server "s" was closed by us']);
  assert.equal(pidsIn(file).length, 1);

  const pauses: number[] = [];
  const dead = await open(
    habit(),
    alive({}, (ms) => (pauses.push(ms), soon(ms))),
  );
  for (let n = 0; n < 2; n++) await rejection(dead.connection.callTool('exit', { code: 3 }));
  await dead.connection.close();
  assert.match((await rejection(dead.connection.callTool('echo'))).message, /exited with code 3/);
  assert.deepEqual(pauses, [], 'nor is there a reason to wait');
});

test('a look at its tools does not start it', async () => {
  const file = aFile();
  const { connection } = await open(habit('notes-its-pid', file), alive());
  await killFirst(file, () => connection.ended);
  assert.match((await rejection(connection.listTools())).message, /SIGKILL/);
  await connection.callTool('echo');
  assert.ok((await connection.listTools()).length > 0);
});

// ─── Crash loops ──────────────────────────────────────────────────────────────────────────────────────────────

test('a server that dies at each start is given up after a few, with growing pauses, and the reason is told', async () => {
  const [file, pauses] = [aFile(), [] as number[]];
  const options = alive({}, (ms) => (pauses.push(ms), soon(ms)));
  const { manager, state } = await manage(
    { s: habit('next-life', `${file}:dies-at-once`) },
    undefined,
    options,
  );
  await killFirst(file, () => state('s').state === 'failed');
  const error = await rejection(manager.callTool('mcp__s__echo'));
  assert.match(
    error.message,
    /"s" is in a crash loop: started again 4 times.*exited with code 3.*\n {2}cannot find my/s,
  );
  assert.deepEqual([state('s').state, state('s').reason], ['failed', error.message]);
  assert.equal(pidsIn(file).length, 5);
  for (const [n, ms] of pauses.entries())
    assert.ok(Math.abs(ms / (500 * 2 ** n) - 1) <= 0.25, `${n}: ${ms}`);
  assert.equal(pauses.length, 3, 'the first start comes at once');
  assert.equal(await rejection(manager.callTool('mcp__s__echo')), error);
  assert.equal(pidsIn(file).length, 5, 'for good');
  await manager.reconnect('s'); // unless somebody says otherwise
  assert.ok(pidsIn(file).length > 5);
});

test('an entry says how often, and after what delay: "reconnect"; what is not like that is refused', async () => {
  const [file, pauses] = [aFile(), [] as number[]];
  const options = alive({}, (ms) => (pauses.push(ms), soon(ms)));
  const config = {
    ...habit('next-life', `${file}:dies-at-once`),
    reconnect: { maxAttempts: 6, delayMs: 10_000 },
  };
  const { manager, state } = await manage({ s: config }, undefined, options);
  await killFirst(file, () => state('s').state === 'failed');
  assert.match(
    (await rejection(manager.callTool('mcp__s__echo'))).message,
    /started again 6 times/,
  );
  const wanted = [10_000, 20_000, 30_000, 30_000, 30_000]; // half a minute at most
  for (const [n, ms] of pauses.entries())
    assert.ok(ms <= 30_000 && ms >= wanted[n]! * 0.75, `${n}: ${ms}`);
  assert.equal(pauses.length, 5);
  const never = await manage(
    { s: { ...habit(), reconnect: { maxAttempts: 0 } } },
    undefined,
    alive(),
  );
  await rejection(never.manager.callTool('mcp__s__exit', { code: 3 }));
  assert.match(
    (await rejection(never.manager.callTool('mcp__s__echo'))).message,
    /It is not started again.*exited with code 3/s,
  );
  const odd = [
    7,
    null,
    { maxAttempts: -1 },
    { maxAttempts: 1.5 },
    { maxAttempts: 1e9 },
    { maxAttempts: '5' },
    { delayMs: 'soon' },
    { delayMs: null },
    { delayMs: [] },
  ];
  for (const reconnect of odd) {
    const { state } = await manage({ s: { ...habit(), reconnect } }, undefined, alive());
    assert.match(state('s').reason!, /: "reconnect" is not like/, JSON.stringify(reconnect));
  }
});

test('a server may be revived under any number of calls, and Node has nothing to warn of', async () => {
  const warnings: unknown[] = [];
  const note = (warning: Error) => warnings.push(warning.name);
  process.on('warning', note);
  later(() => process.off('warning', note));
  const server = await serve('http', '--era', 'modern');
  const back = new EventEmitter();
  back.setMaxListeners(0);
  let waiting = 0;
  const untilBack: Pause = async () => {
    waiting++;
    await once(back, 'back');
  };
  const { connection } = await open(server.config, alive({}, untilBack));
  await server.kill();
  const { signal } = new AbortController();
  const calls = Array.from({ length: 12 }, () =>
    connection.callTool('add', { a: 1, b: 2 }, { signal }),
  );
  await until(() => waiting === 12);
  await server.again();
  back.emit('back');
  assert.deepEqual(new Set((await Promise.all(calls)).map(({ text }) => text)), new Set(['3']));
  assert.deepEqual(warnings, []);
});

test('to close ends a pause between two starts, and the call that waits for it', async () => {
  const file = aFile();
  const config = { ...habit('next-life', `${file}:dies-at-once`), reconnect: { delayMs: 30_000 } };
  const { connection } = await open(config, { extensions: [stayAlive()] });
  await killFirst(file, () => connection.ended);
  const waiting = rejection(connection.callTool('echo'));
  await until(() => pidsIn(file).length === 2); // the first start comes at once, the next after half a minute
  await until(() => connection.ended);
  await connection.close();
  assert.match((await waiting).message, /closed by us|exited with code 3/);
});

test('so is one that dies in each call; but one answer in between is enough, and a refusal is an answer', async () => {
  const file = aFile();
  const { connection } = await open(habit('notes-its-pid', file), alive());
  const exit = async () => (await rejection(connection.callTool('exit', { code: 7 }))).message;
  for (const method of ['ping', 'no/such/method'])
    for (let n = 0; n < 6; n++) {
      assert.match(await exit(), /exited with code 7.*I was told to leave/s);
      await connection.request(method).catch(() => {});
    }
  assert.equal(pidsIn(file).length, 13);
  for (let n = 0; n < 5; n++) assert.match(await exit(), /exited with code 7/);
  assert.match(await exit(), /crash loop/);
  assert.equal(pidsIn(file).length, 17);
});

test('that the list of its tools came before it died proves nothing', async () => {
  const file = aFile();
  const { manager, state } = await manage({ s: habit('notes-its-pid', file) }, undefined, alive());
  for (let lives = 1; lives <= 5; lives++) {
    const error = rejection(manager.callTool('mcp__s__sleep', { ms: 1e6 }));
    await until(() => pidsIn(file).length === lives && state('s').state === 'connected');
    process.kill(pidsIn(file).at(-1)!, 'SIGKILL');
    assert.match((await error).message, /SIGKILL/);
  }
  assert.match((await rejection(manager.callTool('mcp__s__echo'))).message, /crash loop/);
});

test('a server that dies after each handshake does not start itself again and again through the look at its tools', async () => {
  const file = aFile();
  const { manager, state } = await manage(
    { s: habit('next-life', `${file}:dies-after-handshake`) },
    undefined,
    alive(),
  );
  await killFirst(file, () => state('s').state === 'failed');
  assert.match((await rejection(manager.callTool('mcp__s__echo'))).message, /exited with code 4/);
  await pause(500);
  assert.deepEqual([pidsIn(file).length, state('s').state], [2, 'failed']);
});

test('a server that is mute after its restart fails the call with that reason', async () => {
  const file = aFile();
  const { manager, state } = await manage(
    { s: habit('next-life', `${file}:mute`) },
    undefined,
    alive({ handshakeTimeoutMs: 1000 }),
  );
  await killFirst(file, () => state('s').state === 'failed');
  assert.match(
    (await rejection(manager.callTool('mcp__s__echo'))).message,
    /did not answer initialize within/,
  );
  assert.match(state('s').reason!, /did not answer initialize within/);
  await allGone(file);
});

// ─── Who does not want to wait ────────────────────────────────────────────────────────────────────────────────

test('a call that is cancelled while it waits for a restart ends at once; the others wait on', async () => {
  const file = aFile();
  const { connection } = await open(
    habit('next-life', `${file}:mute`),
    alive({ handshakeTimeoutMs: 1e8 }),
  );
  await killFirst(file, () => connection.ended);
  assert.equal(
    (await rejection(connection.callTool('echo', {}, { signal: AbortSignal.abort() }))).kind,
    'aborted',
  );
  assert.equal(pidsIn(file).length, 1, 'nobody is started for a call that was cancelled before');
  const controller = new AbortController();
  let isOver = false;
  const other = rejection(connection.callTool('echo')).finally(() => (isOver = true));
  const error = rejection(connection.callTool('echo', {}, { signal: controller.signal }));
  await until(() => pidsIn(file).length === 2);
  controller.abort();
  assert.deepEqual([(await error).kind, isOver], ['aborted', false]);
  await connection.close();
  assert.equal((await other).message, 'MCP server "demo" was closed by us');
  await allGone(file);
});

test('close() during a restart leaves no process, whenever it comes', async () => {
  const file = aFile();
  const { manager, state } = await manage(
    { s: habit('next-life', `${file}:mute`) },
    undefined,
    alive({ handshakeTimeoutMs: 1e8 }),
  );
  await killFirst(file, () => state('s').state === 'failed');
  const error = rejection(manager.callTool('mcp__s__echo'));
  await until(() => pidsIn(file).length === 2);
  await manager.disconnectAll();
  assert.deepEqual([living.size, state('s').state], [0, 'closed']);
  assert.equal((await error).message, 'MCP server "s" was closed by us');
  for (let turns = 0; turns < 12; turns++) {
    const its = aFile();
    const { connection } = await open(
      habit('next-life', `${its}:mute`),
      alive({ handshakeTimeoutMs: 1e8 }),
    );
    await killFirst(its, () => connection.ended);
    const failed = rejection(connection.callTool('echo'));
    for (let n = 0; n < turns; n++)
      await (turns < 8 ? Promise.resolve() : new Promise(setImmediate));
    await connection.close();
    assert.equal((await failed).message, 'MCP server "demo" was closed by us');
    await pause(20);
    assert.equal(living.size, 0, `${turns} turns after the call`);
  }
});

test('close() between two attempts: there is no further one', async () => {
  const file = aFile();
  let release = () => {};
  const pausing = () => new Promise<void>((done) => (release = done));
  const { connection } = await open(habit('next-life', `${file}:dies-at-once`), alive({}, pausing));
  await killFirst(file, () => connection.ended);
  const error = rejection(connection.callTool('echo'));
  await until(() => pidsIn(file).length === 2 && `${release}` !== '() => {}');
  await connection.close();
  release();
  assert.equal((await error).message, 'MCP server "demo" was closed by us');
  assert.equal(pidsIn(file).length, 2);
});

// ─── What was under way ───────────────────────────────────────────────────────────────────────────────────────

for (const wire of [...LEGACY, ...MODERN]) {
  const isModern = MODERN.includes(wire);

  test(`${wire}: what may have been carried out is reported, and not repeated; the next call works`, async () => {
    const file = aFile();
    const { connection } = await onWire(wire, file);
    await connection.listTools();
    const error = await rejection(connection.callTool('push'));
    assert.ok(['closed', 'lost'].includes(error.kind), error.kind);
    assert.match(
      error.message,
      /Whether tools\/call was carried out is not known: look before you repeat it\.$/,
    );
    assert.equal(count(file, 'push'), 1);
    await pause(100); // see `kill`
    assert.equal((await connection.callTool('push')).text, 'push done');
  });

  test(`${wire}: a read is repeated`, async () => {
    const file = aFile();
    const { connection } = await onWire(wire, file);
    assert.equal(
      text(await connection.request('resources/read', { uri: 'x:y' })),
      'resources/read done',
    );
    assert.equal(count(file, 'resources/read'), 2);
  });

  test(`${wire}: a tool that says it does no harm when called twice is ${isModern ? '' : 'not '}repeated`, async () => {
    for (const name of ['look', 'put']) {
      const file = aFile();
      const { connection } = await onWire(wire, file);
      await connection.listTools();
      if (isModern) assert.equal((await connection.callTool(name)).text, `${name} done`);
      else assert.match((await rejection(connection.callTool(name))).message, /not known/);
      assert.equal(count(file, name), isModern ? 2 : 1);
      await connection.close();
    }
  });
}

test('what is lost again and again fails in the end', async () => {
  let asked = 0;
  const pauses: number[] = [];
  const broken = (): Transport => {
    let events: TransportEvents;
    return {
      start: async (given) => void (events = given),
      send: async ({ id, method }) => {
        if (method === 'ping' && asked++ < 100) throw new McpError('lost', 'it broke off');
        if (method === 'initialize')
          events.message({ jsonrpc: '2.0', id, result: { protocolVersion: '2025-11-25' } });
      },
      close: async () => {},
    };
  };
  const extensions = [stayAlive({ pause: (ms) => (pauses.push(ms), soon(ms)) })];
  const { connection } = await open({ type: 'toy' }, { extensions, transports: { toy: broken } });
  assert.equal((await rejection(connection.request('ping'))).message, 'it broke off');
  assert.equal(asked, 5);
  for (const [n, ms] of pauses.entries())
    assert.ok(Math.abs(ms / (500 * 2 ** n) - 1) <= 0.25, `${n}: ${ms}`);
});

// ─── Remote servers: away, and back ───────────────────────────────────────────────────────────────────────────

for (const wire of [
  'http --era legacy',
  'http --era legacy --sessions',
  'http --era modern',
  'sse',
])
  test(`${wire}: a server that was started anew between two calls`, async () => {
    const file = aFile();
    const server = await serve(...wire.split(' '), '--notes', file);
    const { manager } = await manage({ s: server.config }, undefined, alive());
    await server.kill();
    await server.again();
    assert.equal((await manager.callTool('mcp__s__greet', { name: 'Ada' })).text, 'Hello, Ada!');
    assert.equal(count(file, 'greet'), 1);
    if (wire.includes('sessions') || wire === 'sse')
      await until(() => count(file, 'tools/list') === 2);
  });

for (const wire of ['http --era legacy --sessions', 'http --era modern', 'sse'])
  test(`${wire}: while it is away it is failed, it is tried with growing pauses, and when it is back it is connected`, async () => {
    const [file, pauses, states] = [aFile(), [] as number[], [] as string[]];
    const server = await serve(...wire.split(' '), '--notes', file);
    // The subscription of the later era pauses here as well, so all who pause from the fourth time on wait until it is back.
    let back: Promise<unknown> | undefined;
    const options = alive(
      {},
      async (ms) => void (await (pauses.push(ms) < 4 ? soon(ms) : (back ??= server.again()))),
    );
    const onState = (_: string, state: string) => states.push(state);
    const { manager, state } = await manage({ s: server.config }, undefined, {
      ...options,
      onState,
    });
    await server.kill();
    // In the later era the subscription ends, and a look at the tools is under way beside our call.
    if (wire.includes('modern')) await until(() => state('s').state === 'failed');
    assert.equal((await manager.callTool('mcp__s__greet', { name: 'Ada' })).text, 'Hello, Ada!');
    await until(() => state('s').state === 'connected');
    assert.deepEqual(
      [states[0], states.at(-1), [...new Set(states)]],
      ['connected', 'connected', ['connected', 'failed']],
    );
    assert.ok(
      pauses.length >= 4 &&
        new Set(pauses).size === pauses.length &&
        pauses.every((ms) => ms >= 375 && ms <= 5000),
      `${pauses}`,
    );
    await until(() => count(file, 'tools/list') === 2);
    assert.equal(count(file, 'greet'), 1);
  });

test('a server that stays away fails each call in the end, but is not given up', async () => {
  const [file, pauses] = [aFile(), [] as number[]];
  const server = await serve('http', '--notes', file);
  const { manager, state } = await manage(
    { s: server.config },
    undefined,
    alive({}, (ms) => (pauses.push(ms), soon(ms))),
  );
  await server.kill();
  await until(() => state('s').state === 'failed'); // its subscription has ended, and a look failed
  for (let n = 0; n < 4; n++) {
    const error = await rejection(manager.callTool('mcp__s__greet', { name: 'Ada' }));
    assert.deepEqual(
      [error.kind, /cannot be reached/.test(error.message), /not known/.test(error.message)],
      ['unreachable', true, false],
    );
    assert.deepEqual(
      [state('s').state, /cannot be reached/.test(state('s').reason!)],
      ['failed', true],
    );
  }
  for (const [n, ms] of pauses.slice(-4).entries())
    assert.ok(Math.abs(ms / (500 * 2 ** n) - 1) <= 0.25, `${n}: ${ms}`);
  await server.again();
  assert.equal((await manager.callTool('mcp__s__greet', { name: 'Ada' })).text, 'Hello, Ada!');
});

test('a server that is busy says when to come back: not before, and not at all if that is far away', async () => {
  let refusals = 2;
  const waits = ['7', new Date(Date.now() + 20_000).toUTCString()];
  const { url, asked } = await peer({
    'tools/call': ({ body }, response) => {
      const isNever = body.params.name === 'never';
      const after = isNever ? '3600' : waits[--refusals];
      if (after) return void response.writeHead(429, { 'retry-after': after }).end('slow down');
      return textual('done');
    },
  });
  const pauses: number[] = [];
  const noting: Pause = (ms, signal) => (pauses.push(ms), soon(ms, signal));
  const { connection } = await open({ type: 'http', url }, alive({}, noting));
  assert.equal((await connection.callTool('x')).text, 'done');
  const [first = 0, second = 0] = pauses.splice(0);
  assert.ok(first > 15_000 && first <= 20_000 && second === 7000, `${first}, ${second}`);
  const error = await rejection(connection.callTool('never'));
  assert.deepEqual([error.kind, asked('tools/call').length, pauses], ['unreachable', 4, []]);
  assert.match(error.message, /it asks us to wait: 3600 s/);
  refusals = 1; // 7 s, and the caller has two
  const hurried = await rejection(connection.callTool('x', {}, { timeoutMs: 2000 }));
  assert.deepEqual([hurried.kind, pauses], ['unreachable', []]);
});

test('a server that was away for so short a time that no handshake was needed: its tools are listed anew all the same', async () => {
  const file = aFile();
  const server = await serve('http', '--era', 'legacy', '--notes', file);
  const { manager } = await manage(
    { s: server.config },
    undefined,
    alive({}, () => server.again()),
  );
  await server.kill();
  assert.equal((await manager.callTool('mcp__s__greet', { name: 'Ada' })).text, 'Hello, Ada!');
  await until(() => count(file, 'tools/list') === 2);
  assert.equal(count(file, 'initialize'), 1);
});

test('a server that wants a login when it is back is asked again at each call, for somebody may have logged in', async () => {
  const server = await serve('http');
  const { manager, state } = await manage({ s: server.config }, undefined, alive());
  await server.kill();
  await rejection(manager.callTool('mcp__s__greet', { name: 'Ada' }));
  await server.again('--locked');
  for (let n = 0; n < 6; n++)
    assert.equal(
      (await rejection(manager.callTool('mcp__s__greet', { name: 'Ada' }))).kind,
      'auth',
    );
  assert.match(state('s').reason!, /wants a login/);
  await server.kill();
  await server.again();
  assert.equal((await manager.callTool('mcp__s__greet', { name: 'Ada' })).text, 'Hello, Ada!');
  await until(() => state('s').state === 'connected');
});

test('a call that is cancelled while it waits for a server that is away ends at once', async () => {
  const server = await serve('http');
  const controller = new AbortController();
  const never = (_: number, signal?: AbortSignal) =>
    new Promise<void>((resolve) => {
      signal?.addEventListener('abort', () => resolve());
      controller.abort();
    });
  const { connection } = await open(server.config, alive({}, never));
  await server.kill();
  const error = await rejection(
    connection.callTool('greet', { name: 'Ada' }, { signal: controller.signal }),
  );
  assert.equal(error.kind, 'aborted');
});

// ─── Sessions ─────────────────────────────────────────────────────────────────────────────────────────────────

test('an expired session: one new handshake for all calls, which are repeated; tools are listed anew', async () => {
  const file = aFile();
  const server = await serve('http', '--era', 'legacy', '--sessions', '--notes', file);
  const { manager, state } = await manage({ s: server.config }, undefined, alive());
  await manager.callTool('mcp__s__forget');
  assert.equal((await manager.callTool('mcp__s__greet', { name: 'Ada' })).text, 'Hello, Ada!');
  assert.deepEqual(
    [count(file, 'initialize'), count(file, 'greet'), state('s').state],
    [2, 1, 'connected'],
  );
  await until(() => count(file, 'tools/list') === 2);
  await manager.callTool('mcp__s__forget');
  const names = Array.from({ length: 10 }, (_, n) => `n${n}`);
  const results = await Promise.all(
    names.map((name) => manager.callTool('mcp__s__greet', { name })),
  );
  assert.deepEqual(
    results.map((result) => result.text),
    names.map((name) => `Hello, ${name}!`),
  );
  assert.deepEqual([count(file, 'initialize'), count(file, 'greet')], [3, 11]);
});

test('a server that forgets every session gets one new handshake for a call, not more', async () => {
  const file = aFile();
  const server = await serve('http', '--era', 'legacy', '--sessions', '--forgets', '--notes', file);
  const { connection } = await open(server.config, alive());
  for (const handshakes of [2, 3]) {
    const error = await rejection(connection.callTool('greet', { name: 'Ada' }));
    assert.deepEqual([error.kind, /forgotten our session/.test(error.message)], ['expired', true]);
    assert.deepEqual([count(file, 'initialize'), count(file, 'greet')], [handshakes, 0]);
  }
});
