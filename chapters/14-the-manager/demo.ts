// Chapter 14: six servers of the user and one of the project; first one after the other, then through the manager.

import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as mcp from '../../mcp.ts';

const base = mkdtempSync(join(tmpdir(), 'manager '));
process.on('exit', () => rmSync(base, { recursive: true, force: true }));
const [home, cwd] = [join(base, 'home'), join(base, 'project')];
const node = (...args: string[]) => ({ command: 'node', args, cwd: process.cwd() }); // the user's own start elsewhere
const habit = (...args: string[]) => node('fixtures/habits.mjs', ...args);
const slow = habit('slow-start', '300');
const calculator = node('fixtures/server.mjs');
const missing = { command: 'no-such-command' };
const users = { calculator, slow, 'also-slow': slow, missing, broken: habit('dies-at-once'), plant: habit('grows-a-tool') };
for (const folder of [join(home, '.claude'), cwd]) mkdirSync(folder, { recursive: true });
writeFileSync(join(home, '.claude', 'settings.json'), JSON.stringify({ mcpServers: users }));
writeFileSync(join(cwd, '.mcp.json'), JSON.stringify({ stranger: habit('canary', join(base, 'it-ran')) }));

let watched = '';
const onWire = (direction: string, message: unknown, server: string) => {
  const isAnswer = !(message as mcp.Json).method;
  if (server === watched && !(isAnswer && server === 'plant')) console.log(direction === 'out' ? '→' : '←', JSON.stringify(message));
};
const since = (start: number) => `${Math.round(performance.now() - start)} ms`;

let start = performance.now();
for (const { name, config, authority } of mcp.loadEntries(home, cwd, console.log).values()) {
  const connection = new mcp.McpConnection(name, config);
  if (authority === 'user') await connection.connect().then(() => connection.initialize()).catch(() => {});
  await connection.close();
}
console.log(`One after the other: ${since(start)}`);

const manager = new mcp.McpManager({ home, cwd, onWire });
console.log(`\nA new manager has started ${manager.status().length} servers. Two callers want them at once:`);
watched = 'calculator';
start = performance.now();
await Promise.all([manager.loadAndConnect(), manager.loadAndConnect()]);
console.log(`Side by side: ${since(start)}`);
for (const { name, state, reason } of manager.status())
  console.log(`  ${name}: ${state}${reason ? `. ${reason.replaceAll(cwd, '').replace(/^[/\\]/, '')}` : ''}`);
console.log(`Did the stranger run? ${existsSync(join(base, 'it-ran')) ? 'Yes' : 'No'}`);

console.log('\nThe call, by its label:');
console.log('  answer:', (await manager.callTool('mcp__calculator__add', { a: 2, b: 40 })).text);

console.log('\nA server whose tools change while it runs:');
watched = 'plant';
await manager.callTool('mcp__plant__grow');
while (!manager.isMcpTool('mcp__plant__new')) await new Promise((done) => setTimeout(done, 20));
console.log('  answer:', (await manager.callTool('mcp__plant__new')).text);
await manager.disconnectAll();
