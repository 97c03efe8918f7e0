// Chapter 28: a service that refuses the whole request for one tool. Without this chapter the chat is
// over before it begins.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, Scripted, type AgentEvent, type ModelRequest } from '../../agent.ts';
import { McpManager, type ServerEntry } from '../../mcp.ts';

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

console.log('Two servers, forty tools, and a service that does not like one of them.');
await chat('It says which:', (at) => `tools.${at}.custom.input_schema: JSON schema is invalid`);
await chat('It does not:', () => 'failed to parse grammar');
