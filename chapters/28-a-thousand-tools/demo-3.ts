// Chapter 28.3: ten calls at once to a server of notes that reads all, thinks, and writes all. On the
// program before, they are sent as they come.

import { existsSync } from 'node:fs';
import { McpManager, type ManagerOptions } from '../../mcp.ts';
import { builtIn } from '../25-other-pipes/in-process.ts';

const fixture = '../../fixtures/note-keeper.mjs';
const { noteKeeper } = await import(fixture);

/** What this page adds. */
async function ordering(): Promise<ManagerOptions> {
  if (!existsSync(new URL('order.ts', import.meta.url))) return {}; // the stop before
  const { inOrder } = await import('./order.ts');
  return { extensions: [inOrder] };
}

const options = await ordering();

async function tenNotes(title: string, words: object): Promise<void> {
  const file = { notes: [] as string[] };
  const config = { type: 'notes', ...words };
  const entry = { name: 'notes', config, file: '', scope: 'user', authority: 'user' } as const;
  const load = () => new Map([['notes', entry]]);
  const transports = { notes: builtIn(noteKeeper(file)) };
  const manager = new McpManager({ load, transports, ...options });
  await manager.loadAndConnect();
  const texts = Array.from({ length: 10 }, (_, n) => `note ${n + 1}`);
  const calls = texts.map((text) => manager.callTool('mcp__notes__add_note', { text }));
  const answers = await Promise.all(calls);
  const worked = answers.filter(({ isError }) => !isError).length;
  console.log(`${title}: ${worked} calls worked, ${file.notes.length} kept`);
  await manager.disconnectAll();
}

await tenNotes('An entry as it is', {});
if (options.extensions) await tenNotes('With "order": "parallel"', { order: 'parallel' });
