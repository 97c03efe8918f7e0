// The two seams and the observer: what every later chapter plugs into.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import type { Extension, Json, Layer, Message, Parts, Transport, TransportEvents } from '../mcp.ts';
import { cleanUp, connect, habit, later, open, pause, plugged, rejection } from './help/basics.ts';
import { McpConnection, RpcError } from './help/subject.ts';

afterEach(cleanUp);

/** The smallest transport: a server that is a function. */
function inProcess(answer: (message: Message) => unknown): Transport & { closed: number } {
  let events: TransportEvents;
  return {
    closed: 0,
    start: async (given) => void (events = given),
    send: async (message) =>
      void Promise.resolve().then(
        () =>
          message.id !== undefined &&
          events.message({ jsonrpc: '2.0', id: message.id, result: answer(message) }),
      ),
    async close() {
      this.closed++;
    },
  };
}

test('transport: the `type` of a configuration chooses it, and it gets name and configuration', async () => {
  const transport = inProcess(({ method }) => ({ method }));
  const seen: unknown[] = [];
  const config = { type: 'toy', colour: 'red' };
  const connection = new McpConnection('demo', config, {
    transports: { toy: (...args) => (seen.push(args), transport) },
  });
  await connection.connect();
  assert.deepEqual(await connection.request('anything'), { method: 'anything' });
  assert.deepEqual(seen, [['demo', config, 64 * 2 ** 20]]); // and how big a message may be
  await connection.close();
  assert.equal(transport.closed, 1);
});

test('transport: a start that fails fails connect, and later calls for the same reason', async () => {
  const broken: Transport = {
    ...inProcess(() => ({})),
    start: () => Promise.reject(new Error('no cable')),
  };
  const connection = new McpConnection(
    'demo',
    { type: 'toy' },
    { transports: { toy: () => broken } },
  );
  assert.match((await rejection(connection.connect())).message, /no cable/);
  assert.match((await rejection(connection.request('ping'))).message, /no cable/);
});

test('a connection that has ended leaves no timer behind that would keep it in memory', async () => {
  const made: NodeJS.Timeout[] = [];
  const { setTimeout: real } = globalThis;
  later(() => (globalThis.setTimeout = real));
  globalThis.setTimeout = Object.assign((...args: Parameters<typeof real>) => {
    const timer = real(...args);
    made.push(timer);
    return timer;
  }, real);
  const options = { transports: { toy: () => inProcess(() => ({})) }, callTimeoutMs: 1e8 };
  const connection = new McpConnection('demo', { type: 'toy' }, options);
  await connection.connect();
  await connection.request('ping');
  assert.notEqual(made.length, 0);
  await connection.close();
  const left = made.filter((timer) => !(timer as unknown as { _destroyed: boolean })._destroyed);
  assert.deepEqual(left, []);
});

test('transport: a send that fails fails its own call', async () => {
  const fine = inProcess(() => ({}));
  const send = (message: Message) =>
    message.method === 'bad' ? Promise.reject(new Error('HTTP 500')) : fine.send(message);
  const connection = new McpConnection(
    'demo',
    { type: 'toy' },
    { transports: { toy: () => ({ ...fine, send }) } },
  );
  await connection.connect();
  assert.match((await rejection(connection.request('bad'))).message, /HTTP 500/);
  assert.deepEqual(await connection.request('good'), {});
});

test('layers: the first is the outermost; each may change, repeat or answer a call', async () => {
  const order: string[] = [];
  const named =
    (name: string): Layer =>
    async (call, next) => {
      order.push(`${name} before`);
      const result = await next({ ...call, params: { ...call.params, by: name } });
      order.push(`${name} after`);
      return result;
    };
  const cached: Layer = (call, next) =>
    call.method === 'cached' ? Promise.resolve({ from: 'cache' }) : next(call);
  const twice: Layer = async (call, next) => (await next(call), next(call));
  const { connection, wire } = await open(habit(), plugged({ layer: cached }));
  assert.deepEqual(await connection.request('cached'), { from: 'cache' });
  assert.ok(!wire.some(([, message]) => message.method === 'cached'));

  const sent: Message[] = [];
  const transport = inProcess((message) => (sent.push(message), {}));
  const extensions = [named('a'), named('b'), twice].map(
    (layer): Extension =>
      () => ({ layer }),
  );
  const layered = new McpConnection(
    'demo',
    { type: 'toy' },
    { transports: { toy: () => transport }, extensions },
  );
  await layered.connect();
  await layered.request('x', { n: 1 });
  assert.deepEqual(order, ['a before', 'b before', 'b after', 'a after']);
  assert.deepEqual(
    sent.map(({ id, params }) => [id, params]),
    [
      [1, { n: 1, by: 'b' }],
      [2, { n: 1, by: 'b' }],
    ],
  );
});

test('two listeners for progress: both hear it, so does the caller, and the limit of the call is extended', async () => {
  const heard: [string, unknown][] = [];
  const listener =
    (name: string): Extension =>
    () => ({
      handlers: { 'notifications/progress': ({ progress }) => void heard.push([name, progress]) },
    });
  const { connection } = await open(habit(), { extensions: [listener('a'), listener('b')] });
  const onProgress = ({ progress }: Json) => void heard.push(['caller', progress]);
  // Twelve steps of 100 ms are more than the limit of 600 ms, but no silence is.
  const { text } = await connection.callTool(
    'work',
    { everyMs: 100, times: 12 },
    { timeoutMs: 600, onProgress },
  );
  assert.equal(text, 'worked');
  for (const who of ['caller', 'a', 'b'])
    assert.deepEqual(
      heard.filter(([name]) => name === who).map(([, n]) => n),
      [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
      who,
    );
});

test('what there can be only one of is refused the second time, and both are named', () => {
  const asks: Extension = () => ({ handlers: { 'roots/list': () => ({}) } });
  const asksToo: Extension = () => ({ handlers: { 'roots/list': () => ({}) } });
  const pings: Extension = () => ({ handlers: { ping: () => ({}) } });
  const shakes: Extension = () => ({ handshake: async () => ({ protocolVersion: 'x' }) });
  const shakesToo: Extension = () => ({ handshake: async () => ({ protocolVersion: 'y' }) });
  const make =
    (...extensions: Extension[]) =>
    () =>
      new McpConnection('demo', {}, { extensions });
  const refused = (words: RegExp) => (error: any) =>
    error.kind === 'config' && words.test(error.message);
  assert.throws(
    make(asks, asksToo),
    refused(/"demo" has a handler for roots\/list twice: by "asks" and by "asksToo"/),
  );
  assert.throws(make(pings), refused(/has a handler for ping twice: by "mcp\.ts" and by "pings"/));
  assert.throws(
    make(shakes, shakesToo),
    refused(/has a handshake twice: by "shakes" and by "shakesToo"/),
  );
  assert.throws(make(asks, asks), refused(/has two extensions "asks"/));
  make(
    () => ({}),
    () => ({}),
    shakes,
  )(); // without a name they are told apart by their number
});

test('an extension is made once per connection, and remembers what belongs to it', async () => {
  const counting: Extension = () => {
    let calls = 0;
    return {
      layer: (call, next) =>
        call.method === 'count' ? Promise.resolve({ calls: ++calls }) : next(call),
    };
  };
  const [one, two] = [
    await open(habit(), { extensions: [counting] }),
    await open(habit(), { extensions: [counting] }),
  ];
  await one.connection.request('count');
  assert.deepEqual(await one.connection.request('count'), { calls: 2 });
  assert.deepEqual(await two.connection.request('count'), { calls: 1 });
});

test('capabilities of all extensions are merged, object by object', async () => {
  const declaring =
    (capabilities: Json): Extension =>
    () => ({ capabilities });
  const extensions = [
    declaring({ elicitation: { form: {} }, extensions: { a: {} } }),
    declaring({ elicitation: { url: {} }, extensions: { b: { x: 1 } }, roots: {} }),
  ];
  const { connection, wire } = await open(habit(), { extensions });
  const declared = {
    elicitation: { form: {}, url: {} },
    extensions: { a: {}, b: { x: 1 } },
    roots: {},
  };
  assert.deepEqual(connection.capabilities, declared);
  assert.deepEqual(wire[0]![1].params.capabilities, declared);
});

test('opened, changed and closed are told to all; one that fails is named and keeps none from hearing', async () => {
  const told: string[] = [];
  const bad: Parts = {
    opened: () => {
      throw new Error('sync mistake');
    },
    changed: () => Promise.reject(new Error('async mistake')),
    closed: () => {
      throw new Error('last mistake');
    },
  };
  const broken: Extension = () => bad;
  const hearing: Extension = () => ({
    opened: ({ protocolVersion }) => void told.push(`opened ${protocolVersion}`),
    changed: (what) => void told.push(`changed ${what}`),
    closed: (why) => void told.push(`closed ${/by us/.test(why.message)}`),
  });
  const { connection, warnings } = await open(habit(), { extensions: [broken, hearing] });
  for (const what of ['tools', 'prompts', 'resources'])
    await connection.callTool('tell', { method: `notifications/${what}/list_changed` });
  connection.changed('tools');
  await connection.close();
  await pause(10);
  assert.deepEqual(told, [
    'opened 2025-11-25',
    'changed tools',
    'changed prompts',
    'changed resources',
    'changed tools',
    'closed true',
  ]);
  const failed = (what: string, why: string) =>
    `MCP server "demo": the extension "broken" failed at ${what}: ${why} mistake`;
  assert.deepEqual(warnings, [
    failed('opened', 'sync'),
    failed('changed', 'async'),
    failed('closed', 'last'),
  ]);
});

test('a request named like a notification is refused, a notification named like a request runs no handler', async () => {
  let runs = 0;
  const { connection } = await open(
    habit(),
    plugged({
      handlers: { 'roots/list': () => void runs++, 'notifications/x': () => void runs++ },
    }),
  );
  const answer = JSON.parse(
    (await connection.callTool('ask', { id: 'q', method: 'notifications/x' })).text,
  );
  assert.equal(answer.error.code, -32601);
  await connection.callTool('tell', { method: 'roots/list' });
  assert.equal(runs, 0);
});

test('a request that the server cancels gets no answer, and its handler is told to stop', async () => {
  const signals: AbortSignal[] = [];
  const forever = (_: Json, { signal }: { signal: AbortSignal }) => {
    signals.push(signal);
    return new Promise<void>((done) => signal.addEventListener('abort', () => done()));
  };
  const { connection, wire } = await open(
    habit(),
    plugged({ handlers: { 'roots/list': forever } }),
  );
  // Two requests under one id: servers may repeat an id, and both are meant.
  const lines = [1, 2].map(() => '{"jsonrpc":"2.0","id":"q","method":"roots/list"}');
  await connection.request('tools/call', {
    name: 'raw',
    arguments: { lines: [...lines, '{"jsonrpc":"2.0","id":$ID,"result":{}}'] },
  });
  assert.deepEqual(
    signals.map(({ aborted }) => aborted),
    [false, false],
  );
  await connection.callTool('tell', {
    method: 'notifications/cancelled',
    params: { requestId: 'q' },
  });
  assert.deepEqual(
    signals.map(({ aborted }) => aborted),
    [true, true],
  );
  await connection.request('ping');
  assert.ok(!wire.some(([direction, { id }]) => direction === 'out' && id === 'q'));
});

test('a handler at work is told when the connection ends', async () => {
  let stopped = false;
  const forever = (_: Json, { signal }: { signal: AbortSignal }) =>
    new Promise(() => signal.addEventListener('abort', () => (stopped = true)));
  const { connection } = await open(habit(), plugged({ handlers: { 'roots/list': forever } }));
  const lines = [
    '{"jsonrpc":"2.0","id":"q","method":"roots/list"}',
    '{"jsonrpc":"2.0","id":$ID,"result":{}}',
  ];
  await connection.request('tools/call', { name: 'raw', arguments: { lines } });
  await connection.close();
  assert.ok(stopped);
});

test('hold: while a person thinks no call runs out of time, and afterwards each has its whole limit again', async () => {
  const { connection } = await open(habit(), { maxCallMs: 500 });
  let answer = () => {};
  const thinking = connection.hold(new Promise<void>((done) => (answer = done)));
  const before = connection.callTool('sleep', { ms: 700 }, { timeoutMs: 400 });
  const endless = rejection(connection.callTool('sleep', { ms: 1e8 }, { timeoutMs: 400 }));
  await pause(600);
  answer();
  await thinking;
  assert.equal((await before).text, 'slept 700');
  assert.equal((await endless).kind, 'timeout');
});

test('hold: it ends with the last of several, also if one fails', async () => {
  const { connection } = await open(habit());
  const call = rejection(connection.callTool('sleep', { ms: 1e8 }, { timeoutMs: 100 }));
  const short = connection.hold(pause(50).then(() => Promise.reject(new Error('no'))));
  const long = connection.hold(pause(400));
  assert.match((await rejection(short)).message, /^no$/);
  let isOver = false;
  void call.then(() => (isOver = true));
  await pause(200);
  assert.equal(isOver, false);
  await long;
  assert.equal((await call).kind, 'timeout');
});

test('hold: what a person never answers ends with the transport', async () => {
  const { connection } = await open(habit());
  void connection.hold(new Promise(() => {}));
  await connection.reopen();
  await connection.initialize();
  assert.equal(
    (await rejection(connection.callTool('sleep', { ms: 1e8 }, { timeoutMs: 100 }))).kind,
    'timeout',
  );
});

test('a handshake that ends after close() is no handshake', async () => {
  const told: string[] = [];
  let finish = () => {};
  const slow: Extension = () => ({
    handshake: () =>
      new Promise((done) => (finish = () => done({ protocolVersion: '2025-11-25' }))),
    opened: () => void told.push('opened'),
    closed: () => void told.push('closed'),
  });
  const { connection } = await connect(habit(), { extensions: [slow] });
  const shaking = rejection(connection.initialize());
  await connection.close();
  finish();
  assert.match((await shaking).message, /was closed by us/);
  assert.deepEqual([told, connection.server], [['closed'], undefined]);
});

test('giveUp: every later call hears the reason, also if the connection had ended before; nothing reopens it', async () => {
  const reasons: string[] = [];
  const { connection } = await open(
    habit(),
    plugged({ closed: (why) => void reasons.push(why.message) }),
  );
  await rejection(connection.callTool('exit', { code: 3 }));
  connection.giveUp(new Error('enough'));
  connection.giveUp(new Error('too late'));
  for (const again of [
    () => connection.request('ping'),
    () => connection.connect(),
    () => connection.reopen(),
  ])
    assert.match((await rejection(again())).message, /^enough$/);
  assert.deepEqual([connection.isClosed, reasons.length, reasons[1]], [true, 2, 'enough']);
});

test('a transport can drop something: that is reported, and the connection lives', async () => {
  let events: TransportEvents;
  const transport = {
    ...inProcess(() => ({})),
    start: async (given: TransportEvents) => void (events = given),
  };
  transport.send = async ({ id }) =>
    void setImmediate(() => events.message({ jsonrpc: '2.0', id, result: {} }));
  const warnings: string[] = [];
  const options = {
    transports: { toy: () => transport },
    onWarning: (warning: string) => warnings.push(warning),
  };
  const connection = new McpConnection('demo', { type: 'toy' }, options);
  await connection.connect();
  events!.dropped!(new Error('a message that was too big'));
  assert.deepEqual(await connection.request('ping'), {});
  assert.deepEqual(warnings, ['a message that was too big']);
});

test('hasStreamPerRequest is what the transport says, and false where it says nothing', async () => {
  for (const hasStreamPerRequest of [true, false, undefined]) {
    const transport = { ...inProcess(() => ({})), hasStreamPerRequest };
    const connection = new McpConnection(
      'demo',
      { type: 'toy' },
      { transports: { toy: () => transport } },
    );
    assert.equal(connection.hasStreamPerRequest, false, 'before there is a transport');
    await connection.connect();
    assert.equal(connection.hasStreamPerRequest, hasStreamPerRequest ?? false);
  }
});

test('handshake: it can be replaced, and everything else stays', async () => {
  const own: Extension = (self) => ({
    handshake: async () => ({
      protocolVersion: 'tomorrow',
      capabilities: await self.request('ping'),
    }),
  });
  const { connection, wire } = await open(habit(), { extensions: [own] });
  assert.deepEqual(connection.server, { protocolVersion: 'tomorrow', capabilities: {} });
  assert.deepEqual(
    wire.map(([, message]) => message.method),
    ['ping', undefined],
  );
});

test('without onWarning, warnings go to stderr, without control characters', async () => {
  const written: string[] = [];
  const { write } = process.stderr;
  later(() => void (process.stderr.write = write));
  process.stderr.write = ((text: string) => written.push(text) > 0) as typeof write;
  const connection = new McpConnection('demo', {});
  connection.warn('odd', 'says \u001b[2Jhello\u202e');
  connection.warn('odd', 'says it again');
  process.stderr.write = write;
  assert.deepEqual(written, ['MCP server "demo" says \ufffd[2Jhello\ufffd\n']);
});

test('a timeout in the entry of a server beats what holds for all', async () => {
  const { connection } = await open({ ...habit(), timeout: 150 }, { callTimeoutMs: 1e8 });
  assert.match(
    (await rejection(connection.callTool('sleep', { ms: 1e8 }))).message,
    /within 0\.15 s/,
  );
});

test('onWire sees every message in both directions, with the name of the server, in order', async () => {
  const seen: string[] = [];
  const connection = new McpConnection('demo', habit(), {
    onWire: (direction, message, name) =>
      seen.push(`${name} ${direction} ${(message as Message).method ?? (message as Message).id}`),
  });
  later(() => connection.close());
  await connection.connect();
  await connection.initialize();
  await connection.callTool('ask', { id: 'q', method: 'ping' });
  assert.deepEqual(seen, [
    'demo out initialize',
    'demo in 1',
    'demo out notifications/initialized',
    'demo out tools/call',
    'demo in ping',
    'demo out q',
    'demo in 2',
  ]);
});

test('a layer or a handshake that throws is a rejection, and a failed handshake ends the server', async () => {
  const throws = () => {
    throw new Error('my mistake');
  };
  const layered = await connect(habit(), plugged({ layer: throws }));
  assert.match((await rejection(layered.connection.request('ping'))).message, /my mistake/);
  const shaken = await connect(habit(), plugged({ handshake: throws }));
  assert.match((await rejection(shaken.connection.initialize())).message, /my mistake/);
  assert.match((await rejection(shaken.connection.request('ping'))).message, /my mistake/); // later calls learn why, too
});

test('a RpcError and a McpError say their names', () => {
  assert.equal(`${new RpcError(1, 'no')}`, 'RpcError: no');
  assert.match(
    `${new McpConnection('demo', {}).error('closed', 'is gone')}`,
    /^McpError: MCP server "demo" is gone$/,
  );
});
