// Chapter 22: which era a server belongs to is remembered, also by the next program.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import type { Verdicts } from '../chapters/22-no-handshake/era.ts';
import { doze } from '../chapters/20-streamable-http/pause.ts';
import { KeptVerdicts } from '../chapters/22-no-handshake/verdicts.ts';
import { cleanUp, connect, folder, rejection, until } from './help/basics.ts';
import {
  AFTER_PROBE,
  HANDSHAKE,
  LATER,
  legacy,
  onBoth,
  openOn,
  refusing,
  replacePause,
  sent,
  withEras,
} from './help/both-eras.ts';
import { mount } from './help/scripted-peer.ts';

afterEach(cleanUp);

onBoth(
  'a server that wanted a handshake is not asked again, until it has learned the later revision',
  async (wire) => {
    const { config, turn } = await mount[wire]({
      'server/discover': (_, peer) =>
        peer.isTurned
          ? { result: { supportedVersions: ['2026-07-28'] } }
          : { error: { code: -32601, message: 'What?' } },
      initialize: (_, peer) =>
        peer.isTurned
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
    assert.deepEqual(await openAgain(), [
      '2025-06-18',
      'it does not know server/discover',
      AFTER_PROBE,
    ]);
    assert.deepEqual(
      await openAgain(),
      ['2025-06-18', 'it needed a handshake the last time we connected', HANDSHAKE],
      'and that only once',
    );
    turn();
    assert.deepEqual(await openAgain(), [
      LATER,
      'it answered server/discover',
      ['initialize', 'server/discover'],
    ]);
    assert.deepEqual(await openAgain(), [
      LATER,
      'it answered server/discover',
      ['server/discover'],
    ]);
  },
);

test('stdio: a server that ignores the question is waited for once, and from the second start of the program on it is not asked', async () => {
  const home = folder();
  const { config } = await mount.stdio({ ...legacy, 'server/discover': () => {} });
  const waits: number[] = [];
  replacePause('silence', (ms) => {
    if (ms <= 25) return doze(ms);
    waits.push(ms);
    return ms <= 1500 ? Promise.resolve() : new Promise(() => {}); // nothing waits for longer than the probe's time
  });
  const open = async () => {
    const opened = await connect(config, withEras({ verdicts: new KeptVerdicts(home) }));
    assert.equal((await opened.connection.initialize()).protocolVersion, '2025-06-18');
    return sent(opened);
  };
  assert.deepEqual(await open(), AFTER_PROBE);
  assert.deepEqual(await open(), HANDSHAKE);
  assert.deepEqual(waits, [1500, 5000]);
});

test('stdio: a server that died of the question is started once from the second start of the program on', async () => {
  const home = folder();
  const { config } = await mount.stdio({
    'server/discover': (_, peer) => peer.hangUp(),
    initialize: (_, { seen }) =>
      seen.length === 1 ? { result: { protocolVersion: '2025-06-18' } } : undefined,
  });
  const open = async () => {
    const opened = await connect(config, withEras({ verdicts: new KeptVerdicts(home) }));
    await opened.connection.initialize();
    return sent(opened);
  };
  assert.deepEqual(await open(), ['server/discover', ...HANDSHAKE]);
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
  const { connection } = await connect(
    { command: process.execPath, args: ['-e', slow, file] },
    withEras(),
  );
  await connection.initialize();
  assert.equal(readFileSync(file, 'utf8'), 'x');
});

test('stdio: a server that takes all that has arrived for one message gets one line at a time, and is started once', async () => {
  const naive = `
    process.stdin.on('data', (text) => {
      const { id, method } = JSON.parse(text);
      if (method === 'initialize') console.log(JSON.stringify({ jsonrpc: '2.0', id, result: { protocolVersion: '2025-06-18' } }));
      else if (method === 'server/discover') require('fs').writeFileSync(process.argv[1], '');
    })
`;
  const heard = join(folder(), 'heard');
  const { connection, wire } = await connect(
    { command: process.execPath, args: ['-e', naive, heard] },
    withEras(),
  );
  // The probe's time is over when the probe was read: not before, however slow the machine is.
  replacePause('silence', async (ms) => void (ms > 1000 && (await until(() => existsSync(heard)))));
  assert.equal((await connection.initialize()).protocolVersion, '2025-06-18');
  assert.deepEqual(sent({ wire }), AFTER_PROBE);
});

test('stdio: a server that was known for a handshake and ignores it now is asked again at the next start', async () => {
  const verdicts: Verdicts = new Map();
  const { config, turn } = await mount.stdio({
    'server/discover': (_, peer) =>
      peer.isTurned ? { result: { supportedVersions: ['2026-07-28'] } } : (refusing(-32601) as any),
    initialize: (_, peer) =>
      peer.isTurned ? undefined : { result: { protocolVersion: '2025-06-18' } },
  });
  const start = async (handshakeTimeoutMs?: number) =>
    (await connect(config, withEras({ verdicts, handshakeTimeoutMs }))).connection.initialize();
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
  const start = async () =>
    (
      await connect(
        { command: process.execPath, args: ['-e', frail, file] },
        withEras({ verdicts }),
      )
    ).connection.initialize();
  assert.equal((await start()).protocolVersion, LATER);
  writeFileSync(`${file}.armed`, '');
  assert.equal((await start()).protocolVersion, LATER);
  assert.deepEqual([...(verdicts as Map<string, string>).values()], ['stateless']);
});

test('a verdict belongs to one entry as a whole, and to one folder', async () => {
  const verdicts = new Map<string, 'handshake' | 'stateless'>();
  const { config } = await mount.stdio(legacy);
  for (const env of [{ A: '1' }, { A: '2' }])
    await (await connect({ ...config, env }, withEras({ verdicts }))).connection.initialize();
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
  assert.deepEqual(
    ['key 0', 'key 2', 'key 3', 'key 502', '__proto__'].map((key) => verdicts.get(key)),
    [undefined, undefined, 'handshake', 'handshake', undefined],
  );
});

onBoth(
  'what failed for another reason is not remembered as a wish for a handshake',
  async (wire) => {
    const { config, turn } = await mount[wire]({
      'server/discover': (_, peer) =>
        peer.isTurned
          ? { result: { supportedVersions: ['2026-07-28'] } }
          : { error: { code: -32601, message: 'What?' } },
    });
    const verdicts: Verdicts = new Map();
    const first = await connect(config, withEras({ verdicts }));
    assert.equal((await rejection(first.connection.initialize())).code, -32601);
    turn();
    const second = await connect(config, withEras({ verdicts }));
    await second.connection.initialize();
    assert.equal(sent(second)[0], 'server/discover');
    assert.equal(second.connection.server?.protocolVersion, LATER);
  },
);

onBoth(
  'a second handshake on the same connection takes nothing over from the first',
  async (wire) => {
    const { config, turn } = await mount[wire]({
      'server/discover': (_, peer) =>
        peer.isTurned ? { result: {} } : { result: { supportedVersions: ['2026-07-28'] } },
      initialize: (params) => ({
        result: { protocolVersion: '2025-06-18', serverInfo: { name: Object.keys(params).join() } },
      }),
    });
    const { connection } = await connect(config, withEras());
    assert.equal((await connection.initialize()).protocolVersion, LATER);
    turn();
    const { protocolVersion, serverInfo } = await connection.initialize();
    assert.deepEqual(
      [protocolVersion, serverInfo],
      ['2025-06-18', { name: 'protocolVersion,capabilities,clientInfo' }],
    );
  },
);

test('stdio: a stray answer from an earlier life is no reason to start a slow server again', async () => {
  const { config, turn } = await mount.stdio({
    'server/discover': (_, peer, memory) => {
      memory.probe = peer;
      return peer.isTurned ? undefined : { result: { supportedVersions: ['2026-07-28'] } };
    },
    initialize: (_, __, memory) =>
      memory.probe.reply({ result: { supportedVersions: ['2026-07-28'] } }),
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
  assert.deepEqual(sent(opened), ['server/discover', 'initialize']);
});
