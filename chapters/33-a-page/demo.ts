// Chapter 33: the call that adds 2 and 40, with a server in a worker, in both eras; and workers
// that break down, or never come to an end.

import { existsSync, readFileSync } from 'node:fs';
import { McpConnection, textOf, type Json, type TransportFactory } from '../../mcp.ts';
import { inBothEras } from '../22-no-handshake/era.ts';
import { listResources } from '../24-more-than-tools/offers.ts';

/** The files of this chapter; undefined on the program of the step before. */
async function loadWorker(): Promise<TransportFactory | undefined> {
  if (!existsSync(new URL('worker-transport.ts', import.meta.url))) return undefined;
  const { workerTransport } = await import('./worker-transport.ts');
  const { serverScript } = await import('./worker-process.ts');
  const thread = './more/thread.mjs'; // there are no types of it
  const { startThread } = await import(thread);
  return workerTransport(({ file, script, args }) => {
    const source = script ?? readFileSync(`fixtures/${file}`, 'utf8');
    return startThread(serverScript(`${source}`, args as string[]));
  });
}

const worker = await loadWorker();

type Act = (connection: McpConnection) => Promise<unknown>;
const add: Act = (connection) => connection.callTool('add', { a: 2, b: 40 });

async function talk(name: string, config: Json, act = add): Promise<void> {
  const connection = new McpConnection(
    name,
    { type: 'worker', ...config },
    {
      transports: worker ? { worker } : {},
      extensions: config.args ? inBothEras() : [],
      callTimeoutMs: 300,
      onWire: (direction, message) => {
        if ((message as Json).id !== 2) return; // the first one opens the conversation
        console.log(direction === 'out' ? '→' : '←', JSON.stringify(message).slice(0, 100));
      },
    },
  );
  try {
    await connection.connect();
    const { protocolVersion } = await connection.initialize();
    console.log(`  it speaks ${protocolVersion}`);
    await act(connection);
  } catch (error) {
    console.log(`  ${textOf(error)}`);
  }
  await connection.close();
}

console.log('The calculator, in a worker:');
await talk('calculator', { file: 'server.mjs' });

console.log('\nA library without a handshake, in another:');
await talk('library', { file: 'library.mjs', args: ['modern'] }, listResources);

console.log('\nA server with a mistake in its first line:');
await talk('broken', { script: 'nowhere();' });

console.log('\nA server that never comes to an end:');
const loop = `process.stdin.on('data', (line) => {
  const { id, method } = JSON.parse(line);
  if (method === 'tools/call') for (;;);
  const result = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'loop' } };
  if (id) process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n');
});`;
await talk('endless', { script: loop });
console.log('  and our program comes to its own.');
