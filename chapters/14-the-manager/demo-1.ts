// Chapter 14.1: two servers behind one object. A model sees one list, and calls by label.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as mcp from '../../mcp.ts';

const base = mkdtempSync(join(tmpdir(), 'manager '));
process.on('exit', () => rmSync(base, { recursive: true, force: true }));
const [home, cwd] = [join(base, 'home'), join(base, 'project')];
const calculator = { command: 'node', args: ['fixtures/server.mjs'], cwd: process.cwd() };
mkdirSync(join(home, '.claude'), { recursive: true });
const settings = { mcpServers: { calculator, my__srv: calculator } };
writeFileSync(join(home, '.claude', 'settings.json'), JSON.stringify(settings));

let isWatched = false;
const onWire = (direction: string, message: unknown, server: string) => {
  if (isWatched)
    console.log(
      direction === 'out' ? `→ to ${server}:` : `← from ${server}:`,
      JSON.stringify(message),
    );
};

const manager = new mcp.McpManager({ home, cwd, onWire });
console.log(`A new manager has ${manager.getToolDefinitions().length} tools.`);
await manager.loadAndConnect();
console.log('Now a model would see:');
for (const { name, server } of manager.getToolDefinitions()) console.log(`  ${name}, of ${server}`);

isWatched = true;
for (const { name, tool } of manager.getToolDefinitions()) {
  if (tool.name === 'add')
    console.log('  answer:', (await manager.callTool(name, { a: 2, b: 40 })).text);
}
const invented = manager.callTool('mcp__calculator__subtract', { a: 2, b: 40 });
await invented.catch((error) => console.log(`  ${error.message}`));
await manager.disconnectAll();
