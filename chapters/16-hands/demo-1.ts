// Chapter 16, first stop: three simple tools in a folder of their own.

import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as program from '../../agent.ts';
import type { Json } from '../../mcp.ts';

const place = realpathSync(mkdtempSync(join(tmpdir(), 'hands-')));
process.on('exit', () => rmSync(place, { recursive: true }));
const cwd = join(place, 'project');
mkdirSync(cwd);
writeFileSync(join(cwd, 'sum.js'), 'console.log(2 + 4);\n');

const calls: [name: string, args: Json][] = [
  ['read', { path: 'sum.js' }],
  ['write', { path: 'sum.js', content: 'console.log(2 + 40);\n' }],
  ['bash', { command: 'node sum.js' }],
  ['write', { path: '../new.txt', content: 'hello' }],
];
const model = new program.Scripted([
  ...calls.map(([name, args]) => ({ calls: [{ name, args }] })),
  'Done.',
]);
// On the program of chapter 15 there are none.
const tools = 'hands' in program ? program.hands({ roots: new program.Roots(cwd) } as any) : [];
const emit = (event: program.AgentEvent) => {
  if (event.type === 'tool_start') console.log(`${event.name} ${JSON.stringify(event.args)}`);
  if (event.type === 'tool_end') console.log(`  ${event.outcome}: ${event.text.trimEnd()}`);
};
const gate: program.GateKeeper = async () => ({ allowed: true }); // chapter 17 has a real one
await new program.Agent({ model, tools, gate, cwd, resultsFolder: place, emit }).chat('Go.');
