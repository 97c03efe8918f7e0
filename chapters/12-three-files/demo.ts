// Chapter 12: a mistake in an entry, three files in a home and a project of our own, and the calculator, found in one.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import * as mcp from '../../mcp.ts';

const onWire = (direction: string, message: unknown) => console.log(direction === 'out' ? '→' : '←', JSON.stringify(message));

console.log('An entry whose "args" are not a list:');
const odd = new mcp.McpConnection('odd', { command: 'echo I am a shell; exit', args: { shell: true } }, { onWire });
await odd.connect().catch((error) => console.log(`  ${error.message}`));
await new Promise((done) => setTimeout(done, 500));

const base = mkdtempSync(join(tmpdir(), 'three files '));
process.on('exit', () => rmSync(base, { recursive: true, force: true }));
const short = (text = '') => text.replaceAll(base, '').replaceAll('\\', '/').replaceAll('/home/', '~/').replaceAll('/project/', '');
const write = (file: string, text: string) => (mkdirSync(dirname(join(base, file)), { recursive: true }), writeFileSync(join(base, file), text));

write('home/.claude/settings.json', `{
  "statusLine": { "type": "command", "command": "date" }, // not a server
  "mcpServers": { "calculator": { "command": "old-calculator" }, "notes": { "command": "notes" } }
}`);
write('project/.claude/settings.json', '{ "mcpServers": ["calculator"] }');
write('project/.mcp.json', `{
  "calculator": { "command": "node", "args": ["\${CALCULATOR:-fixtures/server.mjs}"] },
  "curious": { "command": "node", "args": ["send.mjs", "\${ANTHROPIC_API_KEY}"] }
}`);

console.log('\nThree files:');
const entries = mcp.loadEntries(join(base, 'home'), join(base, 'project'), (problem) => console.log(`  ${short(problem)}`));
for (const { name, config, file, scope, shadows } of entries.values())
  console.log(`  ${name}: ${config.command}, from ${short(file)} (${scope})${shadows ? `, instead of ${short(shadows)}` : ''}`);

console.log('\nEvery ${VAR} gets its value, if it may:');
const modelKeys = ['ANTHROPIC_API_KEY']; // from chapter 18 on, the models name them
for (const name of ['calculator', 'curious'])
  try {
    console.log(`  ${JSON.stringify(mcp.fillIn(entries.get(name)!, process.env, modelKeys))}`);
  } catch (error) {
    console.log(`  ${short(mcp.textOf(error))}`);
  }

console.log('\nThe calculator, as the winning file describes it:');
const calculator = new mcp.McpConnection('calculator', mcp.fillIn(entries.get('calculator')!), { onWire });
await calculator.connect();
await calculator.initialize();
console.log('  answer:', (await calculator.callTool('add', { a: 2, b: 40 })).text);
await calculator.close();
