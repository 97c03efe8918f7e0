// A server that starts slowly belongs to the era that it answers in, at every start.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { doze } from '../chapters/20-streamable-http/pause.ts';
import { KeptVerdicts } from '../chapters/22-no-handshake/verdicts.ts';
import { checkTrace } from '../chapters/30-seeing/check.ts';
import { readTrace } from '../chapters/30-seeing/more/read-trace.ts';
import { cleanUp, connect, folder } from './help/basics.ts';
import { LATER, replacePause, sent, withEras } from './help/both-eras.ts';
import { lines } from './help/traces.ts';

afterEach(cleanUp);

// Decides as a server built with the official SDK 2.4.0 does. A plain handshake makes it one of the handshake era,
// even after it has described itself; one that introduces itself is a method that it does not know. It refuses at once,
// and describes itself a little later. It begins to read when there is a file `go`, and may die of its first message.
const LIKE_THE_SDK = `
  const { existsSync, writeFileSync } = require('node:fs');
  const [, go, died] = process.argv;
  const say = (id, answer) => console.log(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
  let isLegacy = false;
  const hear = ({ id, method, params }) => {
    if (died && !existsSync(died)) { writeFileSync(died, ''); process.exit(1); }
    const isLater = params?._meta?.['io.modelcontextprotocol/protocolVersion'] === '2026-07-28';
    isLegacy ||= !isLater && method === 'initialize';
    const capabilities = { tools: {} };
    const refusal = { error: { code: -32601, message: 'Method not found' } };
    if (id === undefined) return;
    if (isLegacy && method === 'initialize')
      return say(id, { result: { protocolVersion: '2025-11-25', capabilities, serverInfo: { name: 's', version: '1' } } });
    if (method === 'tools/list') return say(id, { result: { tools: [], resultType: 'complete' } });
    if (isLegacy || method !== 'server/discover') return say(id, refusal);
    const result = { supportedVersions: ['2026-07-28'], capabilities, resultType: 'complete' };
    setImmediate(() => say(id, isLegacy ? refusal : { result }));
  };
  const waiting = setInterval(() => {
    if (!existsSync(go)) return;
    clearInterval(waiting);
    let rest = '';
    process.stdin.setEncoding('utf8').on('data', (chunk) => {
      const found = (rest + chunk).split('\\n');
      rest = found.pop();
      for (const line of found) hear(JSON.parse(line));
    });
  }, 2);`;

/** One start of the program: what the server was asked, which era it was found to be of, and what is wrong with that. */
async function start(args: string[], verdicts: KeptVerdicts) {
  const opened = await connect(
    { command: process.execPath, args: ['-e', LIKE_THE_SDK, ...args] },
    withEras({ verdicts, handshakeTimeoutMs: 1e8 }),
  );
  const { connection, wire } = opened;
  const { protocolVersion, because } = await connection.initialize();
  await connection.listTools();
  await connection.close();
  const records = wire.map(([dir, msg], at) => ({ at, dir, server: 's', msg }));
  const wrong = checkTrace(readTrace(lines({ trace: 1 }, ...records))).map(({ text }) => text);
  return { found: [protocolVersion, because], sent: sent(opened), wrong };
}

const answered = [LATER, 'it answered server/discover'];

for (const isSlow of [false, true])
  test(`a server of both eras that starts ${isSlow ? 'slowly' : 'at once'} is found to be of the later one, three times`, async () => {
    const [home, place] = [folder(), folder()];
    for (const name of ['first', 'second', 'third']) {
      const go = join(place, 'go'); // the same entry each time
      if (!isSlow) writeFileSync(go, '');
      // What is slow begins to read when the probe's time, and that of doubt, is long over.
      replacePause('silence', async (ms) => {
        if (ms < 1000) return doze(ms);
        if (!isSlow) return new Promise(() => {});
        if (ms > 1500) setImmediate(() => writeFileSync(go, ''));
      });
      const { found, sent, wrong } = await start([go], new KeptVerdicts(home));
      assert.deepEqual(found, answered, name);
      const opening = isSlow ? ['server/discover', 'initialize'] : ['server/discover'];
      assert.deepEqual(sent, [...opening, 'tools/list'], name);
      assert.deepEqual(wrong, [], name);
      const kept = readFileSync(join(home, '.mcp-by-hand', 'eras.json'), 'utf8');
      assert.deepEqual(Object.values(JSON.parse(kept).eras), ['stateless'], name);
      rmSync(go);
    }
  });

test('a server of both eras that was taken for an old one, or dies at its first start, is found to be of the later one', async () => {
  const place = folder();
  const go = join(place, 'go');
  writeFileSync(go, '');
  const wrongly = new KeptVerdicts(folder());
  wrongly.get = () => 'handshake';
  assert.deepEqual(await start([go], wrongly), {
    found: answered,
    sent: ['initialize', 'server/discover', 'tools/list'],
    wrong: [],
  });
  const died = join(place, 'died');
  const second = await start([go, died], new KeptVerdicts(folder()));
  assert.ok(existsSync(died));
  assert.deepEqual(second.found, answered);
  assert.deepEqual(
    second.sent.filter((method) => method !== 'tools/list'),
    ['server/discover', 'initialize', 'server/discover'],
  );
});
