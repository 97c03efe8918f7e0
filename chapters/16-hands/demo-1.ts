// Chapter 16, first stop: three servers, and an agent that begins with those that are there.

import { Agent, Scripted } from '../../agent.ts';
import { McpManager, type ServerEntry } from '../../mcp.ts';

const entry = (name: string, ...args: string[]): [string, ServerEntry] => [
  name,
  {
    name,
    config: { command: 'node', args, cwd: process.cwd() },
    scope: 'user',
    authority: 'user',
    file: 'demo.ts',
  },
];
const entries = [
  entry('calculator', 'fixtures/server.mjs'),
  entry('broken', 'fixtures/habits.mjs', 'dies-at-once', 'hat'),
  entry('mute', 'fixtures/habits.mjs', 'mute'),
];
const mcp = new McpManager({ load: () => new Map(entries) });
const model = new Scripted(['Hello.']);
const agent = new Agent({
  model,
  mcp,
  graceMs: 2000,
  resultsFolder: 'results',
  emit: (event) => console.log(JSON.stringify(event)),
});
console.log(`before the first prompt: ${mcp.status().length} servers`);
await agent.chat('Hi.');
for (const { name, state } of mcp.status()) console.log(`${name}: ${state}`);
const late = model.requests[0]?.system.split('\n').find((line) => line.startsWith('Still'));
console.log(`the model reads: ${late ?? 'nothing of servers'}`);
