// How many servers should start side by side? Prints, for several limits, when the last real server was there and how
// long the slowest single start took: the first says what the user waits, the second how near the 15 s come.
//   npx tsx test/bench/concurrency.ts

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { McpManager } from '../../mcp.ts';
import { installed, root } from '../help/installed.ts';

const name = '@modelcontextprotocol/server-everything';
const real = {
  command: process.execPath,
  args: [join(installed(`${name}@2026.8.31`), 'node_modules', name, 'dist', 'index.js')],
};
const mute = { command: process.execPath, args: [join(root, 'fixtures', 'habits.mjs'), 'mute'] };
const cases = {
  '20 real servers': Array.from({ length: 20 }, () => real),
  '40 real servers': Array.from({ length: 40 }, () => real),
  '4 mute ones, then 16 real': Array.from({ length: 20 }, (_, n) => (n < 4 ? mute : real)),
};

for (const [what, servers] of Object.entries(cases))
  for (const concurrency of [2, 4, 8, 16, 32, 64]) {
    const home = mkdtempSync(join(tmpdir(), 'concurrency-'));
    const mcpServers = Object.fromEntries(servers.map((server, n) => [`s${n}`, server]));
    mkdirSync(join(home, '.claude'));
    writeFileSync(join(home, '.claude', 'settings.json'), JSON.stringify({ mcpServers }));
    const manager = new McpManager({ home, cwd: home, concurrency, handshakeTimeoutMs: 15_000 });
    const wanted = servers.filter((server) => server === real).length;
    const start = performance.now();
    const loading = manager.loadAndConnect();
    const connected = () => manager.status().filter(({ state }) => state === 'connected');
    while (connected().length < wanted) await new Promise((done) => setTimeout(done, 20));
    const [waited, slowest] = [
      performance.now() - start,
      Math.max(...connected().map(({ startMs }) => startMs ?? 0)),
    ];
    const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
    console.log(
      `${what}, ${concurrency} at once: all there after ${seconds(waited)}, slowest start ${seconds(slowest)}`,
    );
    await manager.disconnectAll();
    await loading;
    rmSync(home, { recursive: true });
  }
