// The three seams and the observer: what every later chapter plugs into.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import type { Layer, Message, Transport, TransportEvents } from '../mcp.ts';
import { cleanUp, connect, habit, isRunning, later, open, pidOf, rejection } from './helpers.ts';
import { McpConnection } from './subject.ts';

afterEach(cleanUp);

/** The smallest transport: a server that is a function. */
function inProcess(answer: (message: Message) => unknown): Transport & { closed: number } {
  let events: TransportEvents;
  return {
    closed: 0,
    start: async (given) => void (events = given),
    send: async (message) => void Promise.resolve().then(() => message.id !== undefined && events.message({ jsonrpc: '2.0', id: message.id, result: answer(message) })),
    async close() {
      this.closed++;
    },
  };
}

test('transport: the `type` of a configuration chooses it, and it gets name and configuration', async () => {
  const transport = inProcess(({ method }) => ({ method }));
  const seen: unknown[] = [];
  const config = { type: 'toy', colour: 'red' };
  const connection = new McpConnection('demo', config, { transports: { toy: (...args) => (seen.push(args), transport) } });
  await connection.connect();
  assert.deepEqual(await connection.request('anything'), { method: 'anything' });
  assert.deepEqual(seen, [['demo', config, 64 * 2 ** 20]]); // and how big a message may be
  await connection.close();
  assert.equal(transport.closed, 1);
});

test('transport: a start that fails fails connect, and later calls for the same reason', async () => {
  const broken: Transport = { ...inProcess(() => ({})), start: () => Promise.reject(new Error('no cable')) };
  const connection = new McpConnection('demo', { type: 'toy' }, { transports: { toy: () => broken } });
  assert.match((await rejection(connection.connect())).message, /no cable/);
  assert.match((await rejection(connection.request('ping'))).message, /no cable/);
});

test('transport: a send that fails fails its own call', async () => {
  const fine = inProcess(() => ({}));
  const send = (message: Message) => (message.method === 'bad' ? Promise.reject(new Error('HTTP 500')) : fine.send(message));
  const connection = new McpConnection('demo', { type: 'toy' }, { transports: { toy: () => ({ ...fine, send }) } });
  await connection.connect();
  assert.match((await rejection(connection.request('bad'))).message, /HTTP 500/);
  assert.deepEqual(await connection.request('good'), {});
});

test('layers: the first is the outermost; each may change, repeat or answer a call', async () => {
  const order: string[] = [];
  const named = (name: string): Layer => async (call, next) => {
    order.push(`${name} before`);
    const result = await next({ ...call, params: { ...call.params, by: name } });
    order.push(`${name} after`);
    return result;
  };
  const cached: Layer = (call, next) => (call.method === 'cached' ? Promise.resolve({ from: 'cache' }) : next(call));
  const twice: Layer = async (call, next) => (await next(call), next(call));
  const { connection, wire } = await open(habit(), { layers: [cached] });
  assert.deepEqual(await connection.request('cached'), { from: 'cache' });
  assert.ok(!wire.some(([, message]) => message.method === 'cached'));

  const sent: Message[] = [];
  const transport = inProcess((message) => (sent.push(message), {}));
  const layered = new McpConnection('demo', { type: 'toy' }, { transports: { toy: () => transport }, layers: [named('a'), named('b'), twice] });
  await layered.connect();
  await layered.request('x', { n: 1 });
  assert.deepEqual(order, ['a before', 'b before', 'b after', 'a after']);
  assert.deepEqual(sent.map(({ id, params }) => [id, params]), [[1, { n: 1, by: 'b' }], [2, { n: 1, by: 'b' }]]);
});

test('handshake: it can be replaced, and everything else stays', async () => {
  const { connection, wire } = await open(habit(), {
    handshake: async (self) => ({ protocolVersion: 'tomorrow', capabilities: await self.request('ping') }),
  });
  assert.deepEqual(connection.server, { protocolVersion: 'tomorrow', capabilities: {} });
  assert.deepEqual(wire.map(([, message]) => message.method), ['ping', undefined]);
});

test('onWire sees every message in both directions, with the name of the server, in order', async () => {
  const seen: string[] = [];
  const connection = new McpConnection('demo', habit(), {
    onWire: (direction, message, name) => seen.push(`${name} ${direction} ${(message as Message).method ?? (message as Message).id}`),
  });
  later(() => connection.close());
  await connection.connect();
  await connection.initialize();
  await connection.callTool('ask', { id: 'q', method: 'ping' });
  assert.deepEqual(seen, [
    'demo out initialize', 'demo in 1', 'demo out notifications/initialized',
    'demo out tools/call', 'demo in ping', 'demo out q', 'demo in 2',
  ]);
});

test('an onClosed that throws does not leave the server running', async () => {
  const onClosed = () => {
    throw new Error('my mistake');
  };
  const { connection } = await open(habit(), { onClosed });
  const pid = await pidOf(connection);
  assert.match((await rejection(connection.close())).message, /my mistake/);
  assert.ok(!isRunning(pid));
});

test('a layer or a handshake that throws is a rejection, and a failed handshake ends the server', async () => {
  const throws = () => {
    throw new Error('my mistake');
  };
  const layered = await connect(habit(), { layers: [throws] });
  assert.match((await rejection(layered.connection.request('ping'))).message, /my mistake/);
  const shaken = await connect(habit(), { handshake: throws });
  assert.match((await rejection(shaken.connection.initialize())).message, /my mistake/);
  assert.match((await rejection(shaken.connection.request('ping'))).message, /my mistake/); // later calls learn why, too
});
