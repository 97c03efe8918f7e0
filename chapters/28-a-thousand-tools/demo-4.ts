// Chapter 28.4: a tool that was called before it was found, and a service that refuses the whole
// request for one tool. On the program before, the first is an unknown tool, and the second chat is
// over before it begins.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, Scripted, type AgentEvent, type ModelRequest } from '../../agent.ts';
import { McpManager, type Json, type ServerEntry } from '../../mcp.ts';
import { ToolShelf } from './tool-shelf.ts';

const fixture = '../../fixtures/catalogue.mjs';
const { services, madeUp } = await import(fixture);

const folder = mkdtempSync(join(tmpdir(), 'refused-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

const BAD = 'mcp__diary__get_event';
const all: Map<string, ServerEntry> = services();
const load = () => new Map([...all].filter(([name]) => ['diary', 'mailbox'].includes(name)));

/** Answers everything, unless that tool is among those that it is offered. */
function picky(words: (at: number) => string) {
  let requests = 0;
  const answer = ({ tools }: ModelRequest) => {
    requests++;
    const at = tools.findIndex(({ name }) => name === BAD);
    if (at === -1) return `Hello! You have ${tools.length} tools.`;
    const message = `picky answered 400: ${words(at)}`;
    throw Object.assign(new Error(message), { kind: 'refused', status: 400 });
  };
  const model = new Scripted(Array.from({ length: 20 }, () => answer));
  return { model, count: () => requests };
}

async function chat(title: string, words: (at: number) => string): Promise<void> {
  console.log(`\n${title}`);
  const mcp = new McpManager({ load, transports: madeUp });
  const { model, count } = picky(words);
  const emit = (event: AgentEvent) => {
    if (event.type === 'note') console.log(`  note: ${event.text}`);
    if (event.type === 'error') console.log(`  error: ${event.message}`);
  };
  const agent = new Agent({ model, mcp, emit, resultsFolder: folder });
  for (const prompt of ['Hello.', 'Hello again.']) {
    const { text } = await agent.chat(prompt);
    console.log(`  ${prompt} → ${text || '(nothing)'}`);
  }
  console.log(`  requests: ${count()}`);
  await mcp.disconnectAll();
}

// ─── A call without a search ───────────────────────────────────────────────────────────────────

console.log('A call without a search:');
const shelf = new ToolShelf({ count: 10 });
const mcp = new McpManager({ load, transports: madeUp });
const created = (args: Json) => ({ calls: [{ name: 'mcp__diary__create_event', args }] });
const model = new Scripted([created({ name: 'Lunch' }), created({ title: 'Lunch' }), 'It is in.']);
const emit = (event: AgentEvent) => {
  if (event.type === 'tool_start') console.log(`  ${event.name} ${JSON.stringify(event.args)}`);
  if (event.type === 'tool_end') console.log(event.text.replace(/^/gm, '    '));
};
const gate = async () => ({ allowed: true }) as const;
const common = { model, mcp, gate, emit, resultsFolder: folder };
const agent = new Agent({ ...common, shelf: shelf.arrange, tools: [shelf.findTools] });
console.log(`  ${(await agent.chat('Lunch, please.')).text}`);
await mcp.disconnectAll();

// ─── One bad schema ────────────────────────────────────────────────────────────────────────────

console.log('\nA service that does not like one of forty tools.');
await chat('It says which:', (at) => `tools.${at}.custom.input_schema: JSON schema is invalid`);
await chat('It does not:', () => 'failed to parse grammar');
