// Chapter 28: what a model writes, and two sub-agents. Without the last page of this chapter a model's
// careless arguments go to the server, and no tool is called delegate.

import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, Scripted, type AgentEvent, type ModelRequest } from '../../agent.ts';
import { McpManager, type Json } from '../../mcp.ts';
import { builtIn } from '../25-other-pipes/in-process.ts';
import { inOrder } from './order.ts';

const fixture = '../../fixtures/note-keeper.mjs';
const { noteKeeper } = await import(fixture);

const folder = mkdtempSync(join(tmpdir(), 'notes-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

function manage() {
  const file = { notes: [] as string[] };
  const config = { type: 'notes' };
  const entry = { name: 'notes', config, file: '', scope: 'user', authority: 'user' } as const;
  const load = () => new Map([['notes', entry]]);
  const transports = { notes: builtIn(noteKeeper(file)) };
  return { mcp: new McpManager({ load, transports, extensions: [inOrder] }), file };
}

const call = (...notes: Json[]) => ({
  calls: notes.map((args) => ({ name: 'mcp__notes__add_note', args })),
});
const gate = async () => ({ allowed: true }) as const;

// ─── What a model writes ───────────────────────────────────────────────────────────────────────

const written: Json[] = [
  { text: 'buy milk', tags: '["shop"]', importance: '3', due: null },
  { txt: 'buy milk', importance: 9 },
];
for (const given of written) {
  const { mcp } = manage();
  let args = '';
  const emit = (event: AgentEvent) => {
    if (event.type === 'tool_start') args = JSON.stringify(event.args);
    if (event.type !== 'tool_end') return;
    const hasRun = event.outcome === 'worked';
    console.log(hasRun ? `  the tool gets ${args}` : event.text.replace(/^/gm, '  '));
  };
  console.log(`The model writes ${JSON.stringify(given)}`);
  const model = new Scripted([call(given), 'Done.']);
  await new Agent({ model, mcp, gate, emit, resultsFolder: folder }).chat('A note, please.');
  await mcp.disconnectAll();
}

// ─── Two sub-agents ────────────────────────────────────────────────────────────────────────────

const { mcp, file } = manage();
const noting = (...texts: string[]) => call(...texts.map((text) => ({ text })));
const answers: Record<string, ReturnType<typeof call>> = {
  'Shopping.': noting('milk', 'bread'),
  'Post.': noting('stamps', 'a letter to Ada'),
};

/** What the last page adds. */
async function delegating() {
  if (!existsSync(new URL('delegate.ts', import.meta.url))) return []; // the stop before
  const { delegate } = await import('./delegate.ts');
  return [delegate()];
}

const first = {
  calls: Object.keys(answers).map((task) => ({ name: 'delegate', args: { task } })),
};
const one = ({ turns }: ModelRequest) => {
  const isBegun = turns.at(-1)?.role === 'tools';
  const prompt = turns[0] as { text: string };
  const task = Object.keys(answers).find((each) => prompt.text.endsWith(`\n${each}`));
  if (task) return isBegun ? `I have noted it: ${task}` : answers[task]!;
  return isBegun ? 'Both are done.' : first;
};
const show = (event: AgentEvent, indent = '  '): void => {
  if (event.type === 'agent') return show(event.event, `${indent}  ${event.name}: `);
  if (event.type === 'tool_start')
    console.log(`${indent}${event.name} ${JSON.stringify(event.args)}`);
  if (event.type !== 'tool_end' || event.name !== 'delegate') return;
  console.log(event.text.replace(/^/gm, `${indent}  `));
};
console.log('\nTwo sub-agents:');
const tools = await delegating();
const model = new Scripted(Array.from({ length: 6 }, () => one));
const agent = new Agent({ model, mcp, tools, gate, emit: show, resultsFolder: folder });
console.log(`  ${(await agent.chat('Note my errands.')).text}`);
console.log(`  ${file.notes.length} notes kept: ${[...file.notes].sort().join(', ')}`);
await mcp.disconnectAll();
