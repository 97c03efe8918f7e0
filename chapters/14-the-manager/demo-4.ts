// Chapter 14.4: what happens after the start: a server dies, and another grows a tool.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as mcp from '../../mcp.ts';

const home = mkdtempSync(join(tmpdir(), 'manager '));
process.on('exit', () => rmSync(home, { recursive: true, force: true }));
const habit = (...args: string[]) => ({
  command: 'node',
  args: ['fixtures/habits.mjs', ...args],
  cwd: process.cwd(),
});
const origin = { file: 'settings.json', scope: 'user', authority: 'user' as const };
const entries = Object.entries({ frail: habit(), plant: habit('grows-a-tool') });
const load = () => new Map(entries.map(([name, config]) => [name, { name, config, ...origin }]));

let isStarted = false;
const onWire = (direction: string, message: unknown, server: string) => {
  const isAnswer = (message as mcp.Message).method === undefined;
  if (isStarted && server === 'plant' && !isAnswer)
    console.log(direction === 'out' ? '→' : '←', JSON.stringify(message));
};
const onState = (name: string, state: string, reason = '') => {
  if (isStarted) console.log(`  told: ${name} is ${state}. ${reason}`);
};
const onChanged = (name: string, what: string) => console.log(`  told: ${name} has other ${what}`);
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

const manager = new mcp.McpManager({ load, home, onWire, onState, onChanged });
await manager.loadAndConnect();
isStarted = true;
console.log('The server "frail" is told to leave:');
await manager.callTool('mcp__frail__exit', { code: 5 }).catch(() => {});

console.log('\nThe server "plant" grows a tool, and announces it twenty times:');
await manager.callTool('mcp__plant__grow');
await pause(500);
const call = manager.callTool('mcp__plant__new');
await call.then(
  ({ text }) => console.log('  answer:', text),
  (error) => console.log(`  ${error.message}`),
);
await manager.disconnectAll();
