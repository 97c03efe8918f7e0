// Chapter 28.1: the same conversation twice, with all tools in every request and with a shelf. Twenty
// made-up services bring four hundred tools. Without this chapter there is no shelf.

import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, Scripted, type AgentEvent, type AgentOptions } from '../../agent.ts';
import { McpManager } from '../../mcp.ts';

const fixture = '../../fixtures/catalogue.mjs';
const { services, madeUp } = await import(fixture);

const folder = mkdtempSync(join(tmpdir(), 'thousand-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

const EVENT = { title: 'Lunch with Ada' };
const call = (name: string, args = {}) => ({ calls: [{ name, args }] });
const directly = [call('mcp__diary__create_event', EVENT), 'It is in your calendar.'];
const searching = [call('find_tools', { query: 'create a calendar event', limit: 3 }), ...directly];

async function converse(script: typeof directly, options: Partial<AgentOptions>): Promise<void> {
  const mcp = new McpManager({ load: () => services(), transports: madeUp });
  const model = new Scripted(script);
  const gate = async () => ({ allowed: true }) as const;
  const emit = (event: AgentEvent) => {
    if (event.type === 'tool_start') console.log(`  ${event.name} ${JSON.stringify(event.args)}`);
    if (event.type !== 'tool_end') return;
    console.log(event.text.replace(/^/gm, '    '));
  };
  const common = { model, mcp, gate, emit, resultsFolder: folder, cwd: '/home/ada' };
  const agent = new Agent({ ...common, ...options });
  const { text } = await agent.chat('Lunch with Ada, please.');
  console.log(`  ${text}`);
  let all = 0;
  for (const { system, tools } of model.requests) {
    const characters = system.length + JSON.stringify(tools).length;
    console.log(`  request: ${tools.length} tools; tools and system ${characters} characters`);
    all += characters;
  }
  console.log(`  together ${all}, about ${Math.round(all / 4)} tokens`);
  await mcp.disconnectAll();
}

console.log('All tools in every request:');
await converse(directly, {});

if (existsSync(new URL('tool-shelf.ts', import.meta.url))) {
  const { ToolShelf } = await import('./tool-shelf.ts');
  const shelf = new ToolShelf();
  console.log('\nWith a shelf:');
  await converse(searching, { shelf: shelf.arrange, tools: [shelf.findTools] });
}
