// Chapter 22: changes are told to those who listen.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { afterEach, test } from 'node:test';
import type { Json } from '../mcp.ts';
import { cleanUp, connect, later, rejection, root, until } from './help/basics.ts';
import {
  BOTH,
  isSubscribed,
  LATER,
  META,
  modern,
  notePauses,
  onBoth,
  openOn,
  seen,
  sent,
  subscribe,
  watching,
  withEras,
} from './help/both-eras.ts';
import { mount, type Act, type Script, type WireName } from './help/scripted-peer.ts';

afterEach(cleanUp);

onBoth(
  'we listen for the changes that the server can tell, and for no others; and hear of them',
  async (_, open) => {
    const told: Json[] = [];
    const opened = await open(
      watching({
        'subscriptions/listen': subscribe,
        'tools/call': (_, __, memory) => (
          memory.listener.send({ method: 'notifications/tools/list_changed', params: { n: 1 } }),
          { result: {} }
        ),
      }),
      {
        parts: {
          handlers: { 'notifications/tools/list_changed': (params) => void told.push(params) },
        },
      },
    );
    await until(() => isSubscribed(opened));
    await opened.connection.callTool('x');
    await until(() => told.length > 0);
    assert.deepEqual(told, [{ n: 1 }]);
    const [listen] = await seen(opened, 'subscriptions/listen');
    assert.deepEqual(listen.params.notifications, {
      toolsListChanged: true,
      resourcesListChanged: true,
    });
    assert.equal(listen.params._meta[`${META}protocolVersion`], LATER);
    assert.deepEqual(opened.warnings, []);
  },
);

onBoth(
  'a server that cannot tell of changes, or wants a handshake, is not listened to',
  async (_, open) => {
    const earlier = {
      result: { protocolVersion: '2025-11-25', capabilities: { tools: { listChanged: true } } },
    };
    const untold: Script = { 'server/discover': { result: { supportedVersions: [LATER] } } };
    for (const script of [
      watching({}, { tools: {}, prompts: { listChanged: 'yes' } }),
      untold,
      { initialize: earlier },
    ]) {
      const opened = await open(script);
      await seen(opened); // one turn for whatever was begun
      assert.equal((await seen(opened, 'subscriptions/listen')).length, 0);
    }
  },
);

onBoth('what the server will not tell is said once', async (_, open) => {
  const opened = await open(
    watching({
      'subscriptions/listen': (_, peer) => {
        const params = { notifications: { toolsListChanged: true } };
        peer.send({ method: 'notifications/subscriptions/acknowledged', params });
      },
    }),
  );
  await until(() => opened.warnings.length > 0);
  assert.deepEqual(opened.warnings, ['MCP server "demo" will not tell us of resourcesListChanged']);
});

const GROWING = [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000];
const endings: [string, WireName[], Act][] = [
  ['its result', BOTH, { result: {} }],
  [
    'its result, after the acknowledgement',
    BOTH,
    (_, peer) => {
      peer.send({
        method: 'notifications/subscriptions/acknowledged',
        params: { _meta: { 'io.modelcontextprotocol/subscriptionId': peer.id } },
      });
      return { result: { resultType: 'complete' } };
    },
  ],
  [
    'a notice that names it',
    BOTH,
    (params, peer) => {
      const _meta = { 'io.modelcontextprotocol/subscriptionId': peer.id };
      peer.send({
        method: 'notifications/subscriptions/acknowledged',
        params: { notifications: params.notifications, _meta },
      });
      peer.send({ method: 'notifications/cancelled', params: { requestId: peer.id } });
    },
  ],
  [
    'the end of its stream',
    ['http'],
    (params, peer) => {
      const _meta = { 'io.modelcontextprotocol/subscriptionId': peer.id };
      peer.send({
        method: 'notifications/subscriptions/acknowledged',
        params: { notifications: params.notifications, _meta },
      });
      peer.hangUp();
    },
  ],
  ['a stream that is cut', ['http'], (_, peer) => peer.hangUp()],
];
for (const [name, wires, act] of endings)
  for (const wire of wires)
    test(`${wire}: a subscription ends by ${name}: we listen again, after pauses that grow`, async () => {
      const noted = notePauses(GROWING.length);
      const opened = await openOn(
        wire,
        watching({ 'subscriptions/listen': act }, { tools: { listChanged: true } }),
      );
      await until(() => noted.length === GROWING.length);
      assert.deepEqual(noted, GROWING);
      const listens = await seen(opened, 'subscriptions/listen');
      assert.equal(listens.length, GROWING.length);
      assert.equal(new Set(listens.map(({ id }) => id)).size, GROWING.length);
    });

test('stdio: a subscription ends with the process: whoever starts it again listens again', async () => {
  const noted = notePauses();
  const opened = await openOn(
    'stdio',
    watching({ 'subscriptions/listen': subscribe, 'tools/call': (_, peer) => peer.hangUp() }),
  );
  const { connection } = opened;
  await until(() => isSubscribed(opened));
  assert.equal((await rejection(connection.callTool('x'))).kind, 'closed');
  opened.wire.length = 0;
  await connection.reopen();
  await connection.initialize();
  await until(() => isSubscribed(opened));
  assert.deepEqual(
    sent(opened),
    ['server/discover', 'subscriptions/listen'],
    'the era is known from before',
  );
  assert.deepEqual(noted, [], 'to the dead nobody listens');
});

onBoth('a notice that names something else ends nothing', async (_, open) => {
  const noted = notePauses();
  const opened = await open(
    watching({
      'subscriptions/listen': subscribe,
      'tools/call': (_, __, memory) => {
        for (const requestId of ['other', `${memory.listener.id}`, undefined, null])
          memory.listener.send({ method: 'notifications/cancelled', params: { requestId } });
        memory.listener.send({ method: 'notifications/last' });
        return { result: {} };
      },
    }),
  );
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
  assert.deepEqual(
    [about, listening, waiting].map((opened) => opened.wire.length),
    before,
  );
  assert.deepEqual([noted.length, unhandled], [1, []]);
});

onBoth('no program stays alive for it', async (wire) => {
  // On stdio the server itself keeps the program alive, so there it says goodbye; on HTTP there is only the pause.
  const { config } = await mount[wire](
    watching({ 'subscriptions/listen': wire === 'http' ? { result: {} } : subscribe }),
  );
  const program = `
    import { McpConnection } from './mcp.ts';
    import { httpTransports } from './chapters/20-streamable-http/http.ts';
    import { inBothEras } from './chapters/22-no-handshake/era.ts';
    const transports = { http: httpTransports.http };
    const leave = () => (console.log('listened'), ${wire === 'stdio'} && connection.close());
    const onWire = (_, { method }) => method === 'subscriptions/listen' && setTimeout(leave, 100);
    const connection = new McpConnection('demo', ${JSON.stringify(config)}, { extensions: inBothEras(), transports, onWire });
    await connection.connect();
    await connection.initialize();
  `;
  const child = spawn(
    process.execPath,
    ['--import', 'tsx', '--input-type=module', '-e', program.replaceAll('./', `${root}/`)],
    { cwd: root },
  );
  later(() => child.kill('SIGKILL'));
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => (output += text));
  const code = await new Promise((done) => child.on('close', done));
  assert.deepEqual([code, output.trim().split('\n')[0]], [0, 'listened'], output);
});
