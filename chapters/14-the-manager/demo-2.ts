// Chapter 14.2: two callers and slow servers; then bad servers, and a good one after them.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as mcp from '../../mcp.ts';

const home = mkdtempSync(join(tmpdir(), 'manager '));
process.on('exit', () => rmSync(home, { recursive: true, force: true }));
const node = (...args: string[]) => ({ command: 'node', args, cwd: process.cwd() });
const habit = (...args: string[]) => node('fixtures/habits.mjs', ...args);
const calculator = node('fixtures/server.mjs');
const slow = habit('slow-start', '300');
const onWire = (direction: string, message: unknown, server: string) => {
  const { method } = message as mcp.Message;
  const isFirst = direction === 'out' && method === 'initialize';
  if (isFirst && server === 'calculator')
    console.log(`→ to the ${server}: ${JSON.stringify({ method })}`);
};
/** A manager of these servers, which are all the user's own. */
const manage = (servers: Record<string, mcp.Json>, options: mcp.ManagerOptions = {}) => {
  const origin = { file: 'settings.json', scope: 'user', authority: 'user' as const };
  const entries = Object.entries(servers).map(
    ([name, config]) => [name, { name, config, ...origin }] as const,
  );
  return new mcp.McpManager({ load: () => new Map(entries), home, ...options });
};

console.log('Two callers want a calculator and two slow servers:');
const busy = manage({ calculator, slow, 'also-slow': slow }, { onWire });
const start = performance.now();
await Promise.all([busy.loadAndConnect(), busy.loadAndConnect()]);
console.log(`  both have them after ${Math.round(performance.now() - start)} ms`);
await busy.disconnectAll();

console.log('\nTwo bad servers, and then the calculator:');
const mixed = manage({
  missing: { command: 'no-such-command' },
  broken: habit('dies-at-once'),
  calculator,
});
await mixed.loadAndConnect().catch((error) => console.log(`  ${error.message}`));
for (const { name, state, reason } of mixed.status?.() ?? []) // there is no status before this step
  console.log(`  ${name}: ${state}${reason ? `. ${reason}` : ''}`);
const sum = mixed.callTool('mcp__calculator__add', { a: 2, b: 40 });
await sum.then(
  ({ text }) => console.log('  answer:', text),
  (error) => console.log(`  ${error.message}`),
);
await mixed.disconnectAll();
