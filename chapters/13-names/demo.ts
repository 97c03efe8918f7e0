// Chapter 13: tools get labels, a table knows the way back; then two servers whose names meet, and names that are odd.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as mcp from '../../mcp.ts';

const base = mkdtempSync(join(tmpdir(), 'names '));
process.on('exit', () => rmSync(base, { recursive: true, force: true }));
const onWire = (direction: string, message: unknown, server: string) => {
  const { method } = message as mcp.Message;
  if (method === 'tools/call')
    console.log(`${direction === 'out' ? '→' : '←'} to ${server}: ${JSON.stringify(message)}`);
};
const open = async (name: string, ...args: string[]) => {
  const connection = new mcp.McpConnection(name, { command: 'node', args }, { onWire });
  await connection.connect();
  await connection.initialize();
  return connection;
};
/** A server with one tool, which gives back what it gets. */
const openWith = (name: string, tool: string) => {
  const list = join(base, `${name}.json`);
  writeFileSync(list, JSON.stringify([{ name: tool, inputSchema: { type: 'object' } }]));
  return open(name, 'fixtures/habits.mjs', 'lists-from-file', list);
};
// Before this chapter there is no toolLabel, and raw names are put together.
const labelOf = mcp.toolLabel ?? ((server: string, tool: string) => `mcp__${server}__${tool}`);

const table = new Map<string, { server: mcp.McpConnection; tool: string }>();
const enter = async (server: mcp.McpConnection) => {
  for (const { name } of await server.listTools())
    table.set(labelOf(server.serverName, name), { server, tool: name });
};
const call = (label: string, args: mcp.Json) => {
  const { server, tool } = table.get(label)!;
  return server.callTool(tool, args);
};

await enter(await open('calculator', 'fixtures/server.mjs'));
console.log('A model knows these names:', [...table.keys()].join(', '));
console.log('  answer:', (await call('mcp__calculator__add', { a: 2, b: 40 })).text);

console.log(
  '\nThe server "notes" has a tool "work__save", and the server "notes__work" a tool "save":',
);
await enter(await openWith('notes', 'work__save'));
await enter(await openWith('notes__work', 'save'));
console.log('  the model knows:', [...table.keys()].slice(2).join(', '));
console.log('  it calls the first:');
await call(labelOf('notes', 'work__save'), { text: 'for notes only' });

console.log('\nNames that are odd, or too long:');
for (const [server, tool] of [
  ['files', 'x_y'],
  ['files', 'x.y'],
  ['my server', 'größe'],
  ['files', `${'very_'.repeat(20)}long`],
] as const) {
  const label = labelOf(server, tool);
  console.log(`  ${label}${/^[\w-]{1,64}$/.test(label) ? '' : ' (a model refuses this)'}`);
}
