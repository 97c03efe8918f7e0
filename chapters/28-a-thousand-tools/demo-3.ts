// Chapter 28, second page: npx tsx chapters/28-a-thousand-tools/demo-3.ts
//
// A server of notes that reads all, thinks, and writes all; ten calls to it at once, a model's
// careless arguments, and two sub-agents.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, Scripted, type AgentEvent, type ModelRequest } from '../../agent.ts';
import { McpManager, type Json, type Message, type Transport } from '../../mcp.ts';
import { builtIn } from '../25-other-pipes/in-process.ts';
import { prepareArguments } from './tool-arguments.ts';
import { delegate } from './delegate.ts';
import { inOrder } from './order.ts';

const folder = mkdtempSync(join(tmpdir(), 'order-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

const inputSchema = {
  type: 'object',
  properties: {
    text: { type: 'string' },
    tags: { type: 'array', items: { type: 'string' } },
    importance: { type: 'integer', minimum: 1, maximum: 5 },
    due: { type: 'string' },
  },
  required: ['text'],
  additionalProperties: false,
};
const TOOL = { name: 'add_note', description: 'Keeps a note.', inputSchema };

/** Answers as the reference memory server does: each call reads the file, and writes it back. */
function notesServer(file: { notes: string[] }) {
  return (transport: Transport) => {
    const answers: Record<string, (params: Json) => Json | Promise<Json>> = {
      initialize: ({ protocolVersion }) => {
        const serverInfo = { name: 'notes', version: '1.0.0' };
        return { protocolVersion, capabilities: { tools: {} }, serverInfo };
      },
      'tools/list': () => ({ tools: [TOOL] }),
      'tools/call': async ({ arguments: args }) => {
        const notes = [...file.notes];
        await new Promise((done) => setImmediate(done));
        file.notes = [...notes, (args as { text: string }).text];
        return { content: [{ type: 'text', text: 'added' }] };
      },
    };
    const answer = async ({ id, method = '', params = {} }: Message) => {
      if (id === undefined) return;
      const result = await answers[method]?.(params);
      await transport.send({ jsonrpc: '2.0', id, result });
    };
    void transport.start({
      message: (message) => void answer(message as Message),
      closed: () => {},
    });
  };
}

function manage(order: string) {
  const file = { notes: [] as string[] };
  const config = { type: 'notes', order };
  const entry = { name: 'notes', config, file: '', scope: 'user', authority: 'user' } as const;
  const mcp = new McpManager({
    load: () => new Map([['notes', entry]]),
    transports: { notes: builtIn(notesServer(file)) },
    extensions: [inOrder],
  });
  return { mcp, file };
}

const call = (...texts: string[]) => ({
  calls: texts.map((text) => ({ name: 'mcp__notes__add_note', args: { text } })),
});
const gate = async () => ({ allowed: true }) as const;

// ─── Ten calls in one answer ───────────────────────────────────────────────────────────────────

const ten = Array.from({ length: 10 }, (_, n) => `note ${n + 1}`);
for (const order of ['parallel', 'serial']) {
  const { mcp, file } = manage(order);
  let worked = 0;
  const emit = (event: AgentEvent) => {
    if (event.type === 'tool_end' && event.outcome === 'worked') worked++;
  };
  const model = new Scripted([call(...ten), 'Done.']);
  await new Agent({ model, mcp, gate, emit, resultsFolder: folder }).chat('Ten notes, please.');
  console.log(`"order": "${order}": ${worked} calls worked, ${file.notes.length} notes kept`);
  await mcp.disconnectAll();
}

// ─── What a model writes ───────────────────────────────────────────────────────────────────────

const written: Json[] = [
  { text: 'buy milk', tags: '["shop"]', importance: '3', due: null },
  { txt: 'buy milk', importance: 9 },
];
for (const given of written) {
  const { args, refusal } = prepareArguments(given, inputSchema);
  console.log(`\n${JSON.stringify(given)}\n  → ${refusal ?? JSON.stringify(args)}`);
}

// ─── Two sub-agents ────────────────────────────────────────────────────────────────────────────

const { mcp, file } = manage('serial');
const answers: Record<string, ReturnType<typeof call>> = {
  'Shopping.': call('milk', 'bread'),
  'Post.': call('stamps', 'a letter to Ada'),
};
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
const tools = [delegate()];
const model = new Scripted(Array.from({ length: 6 }, () => one));
const agent = new Agent({ model, mcp, tools, gate, emit: show, resultsFolder: folder });
console.log(`  ${(await agent.chat('Note my errands.')).text}`);
console.log(`  ${file.notes.length} notes kept: ${[...file.notes].sort().join(', ')}`);
await mcp.disconnectAll();
