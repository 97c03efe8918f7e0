// A server built with version 2 of the official SDK, which decides by the first lines it reads, behind a start that takes
// its time. It speaks both eras, and is found to be of the later one whenever it answers.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { inBothEras } from '../../chapters/22-no-handshake/era.ts';
import { KeptVerdicts } from '../../chapters/22-no-handshake/verdicts.ts';
import { checkTrace } from '../../chapters/30-seeing/check.ts';
import { readTrace } from '../../chapters/30-seeing/more/read-trace.ts';
import { cleanUp, connect, folder } from '../help/basics.ts';
import { installed, root } from '../help/installed.ts';
import { lines } from '../help/traces.ts';

afterEach(cleanUp);

const V2 = installed('@modelcontextprotocol/server@2.4.0', '@modelcontextprotocol/node@2.1.2');
const peer = join(root, 'test', 'real', 'peers', 'sdk-v2.mjs');

/** One start of the program. Its trace must be clean. */
async function start(seconds: number, home: string) {
  const slow = `sleep ${seconds}; exec "$0" "$@"`;
  const args = ['-c', slow, process.execPath, peer, V2, '--stdio'];
  const { connection, wire } = await connect(
    { command: 'sh', args },
    { extensions: inBothEras({ verdicts: new KeptVerdicts(home) }) },
  );
  const { protocolVersion, because } = await connection.initialize();
  assert.equal((await connection.callTool('add', { a: 2, b: 3 })).text, '5');
  await connection.close();
  const records = wire.map(([dir, msg], at) => ({ at, dir, server: 's', msg }));
  const wrong = checkTrace(readTrace(lines({ trace: 1 }, ...records))).map(({ text }) => text);
  const kept = readFileSync(join(home, '.mcp-by-hand', 'eras.json'), 'utf8');
  const handshakes = wire.filter(([, { method }]) => method === 'initialize').length;
  assert.ok(handshakes <= 1, 'never a second');
  return [protocolVersion, because, ...Object.values(JSON.parse(kept).eras), ...wrong];
}

// Side by side: each delay has a home folder of its own, in which the first start leaves its verdict to the next.
test('SDK v2 behind delays of 0, 2, 6 and 12 s, three starts each: of the later era, and every trace is clean', async () => {
  const thrice = async (seconds: number) => {
    const home = folder();
    const found = [];
    for (let n = 0; n < 3; n++) found.push(await start(seconds, home));
    return found;
  };
  const right = ['2026-07-28', 'it answered server/discover', 'stateless'];
  const all = await Promise.all([0, 2, 6, 12].map(thrice));
  assert.deepEqual(all, Array(4).fill(Array(3).fill(right)));
});
