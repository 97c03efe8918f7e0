// Chapter 25: the call that adds 2 and 40, in this process, over a WebSocket and over a Unix socket.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { plainHost } from '../19-the-terminal/host.ts';
import { compose } from '../composition.ts';
import { McpConnection, McpManager, textOf, type Json, type ServerEntry } from '../../mcp.ts';

const isThere = existsSync(new URL('in-process.ts', import.meta.url)); // not before this chapter
const pipes = isThere && { ...(await import('./in-process.ts')), ...(await import('./calculator.ts')), ...(await import('./frames.ts')), ...(await import('./unix-socket.ts')) };
const { transports } = compose(plainHost());
if (pipes) transports['in-process'] = pipes.inProcess({ calculator: pipes.calculator });
if (pipes) transports.unix = (...given) => new pipes.UnixSocketTransport(...given);

/** The handshake, which has the id 1, and then the call. */
async function add(config: Json): Promise<void> {
  const onWire = (direction: string, message: unknown) => (message as Json).id === 2 && console.log(direction === 'out' ? '→' : '←', JSON.stringify(message));
  const connection = new McpConnection('calculator', config, { transports, onWire });
  await connection.connect().then(() => connection.initialize()).then(() => connection.callTool('add', { a: 2, b: 40 })).catch((error) => console.log(`  ${textOf(error)}`));
  await connection.close();
}

console.log('In this process:');
await add({ type: 'in-process', name: 'calculator' });

console.log('\nOver a WebSocket:');
const remote = spawn('node', ['fixtures/remote.mjs', 'ws'], { stdio: ['pipe', 'pipe', 'inherit'] }); // prints its address
await add({ type: 'ws', url: `${await once(remote.stdout, 'data')}`.trim() });

console.log('\nOver a Unix socket:');
const path = join(mkdtempSync(join(tmpdir(), 'pipes-')), 'calculator.sock');
const server = createServer((socket) => {
  const { stdin, stdout } = spawn('node', ['fixtures/server.mjs'], { stdio: ['pipe', 'pipe', 'ignore'] });
  stdout.pipe(socket).pipe(stdin); // its lines are those of stdio
});
await once(server.listen(path), 'listening');
await add({ type: 'unix', path });
rmSync(dirname(path), { recursive: true });

if (pipes) {
  console.log('\nA project names a server like one that is built in:');
  const entry: ServerEntry = { name: 'calculator', config: { command: 'node', args: ['evil.mjs'] }, file: '.mcp.json', scope: 'project', authority: 'project' };
  const load = pipes.withBuiltIns({ calculator: pipes.calculator }, () => new Map([['calculator', entry]]));
  const manager = new McpManager({ load, transports, onWarning: (warning) => console.log(`  ${warning}`) });
  await manager.loadAndConnect();
  for (const { name, file, state } of manager.status()) console.log(`  ${name} (${file}): ${state}`);
  await manager.disconnectAll();

  console.log('\nThe message {"id":1} as a frame of a client, twice:');
  for (const key of [[1, 2, 3, 4], [9, 9, 9, 9]]) {
    const frame = pipes.encodeFrame(pipes.TEXT, Buffer.from('{"id":1}'), Buffer.from(key));
    console.log(`  ${[...frame].map((byte) => byte.toString(16).padStart(2, '0')).join(' ')}`);
  }
}
