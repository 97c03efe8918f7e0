// Chapter 22: the call that adds 2 and 40, by the same lines to servers of both eras. Then the
// servers ask back.

import { spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { existsSync } from 'node:fs';
import { McpConnection, textOf, type Extension, type Json } from '../../mcp.ts';
import { plainHost } from '../19-the-terminal/host.ts';
import { compose } from '../composition.ts';
import { inBothEras } from './era.ts';

const listens = existsSync(new URL('listen-for-changes.ts', import.meta.url)); // not at 22.1
const { transports } = compose(plainHost());
const opened: McpConnection[] = [];

let isBrief = false; // then "…" takes the place of what introduces a request
function shorten(key: string, value: any): unknown {
  if (isBrief && key === '_meta' && 'io.modelcontextprotocol/protocolVersion' in value) return '…';
  return key === 'tools' && Array.isArray(value) ? `(${value.length} tools)` : value;
}

const user: Extension = () => ({
  capabilities: { elicitation: {} },
  handlers: {
    'elicitation/create': ({ message }) => {
      console.log(`  the user is asked: ${message}`);
      return { action: 'accept', content: { ok: true } };
    },
  },
});

async function open(config: Json): Promise<McpConnection | undefined> {
  const heard = new EventEmitter();
  const onWire = (direction: string, message: any) => {
    console.log(direction === 'out' ? '→' : '←', JSON.stringify(message, shorten));
    heard.emit(message.method ?? 'answer');
  };
  const options = { transports, extensions: [...inBothEras(), user], onWire };
  const connection = new McpConnection('calculator', config, options);
  opened.push(connection);
  try {
    await connection.connect();
    const { protocolVersion, because } = await connection.initialize();
    console.log(`  it speaks ${protocolVersion}${because ? `: ${because}` : ''}`);
    if (listens && protocolVersion > '2026')
      await once(heard, 'notifications/subscriptions/acknowledged');
    const { text } = await connection.callTool('add', { a: 2, b: 40 });
    console.log('  =', text);
    return connection;
  } catch (error) {
    console.log(`  ${textOf(error)}`);
    return undefined;
  }
}

function onPipe(era: string): Json {
  return { command: 'node', args: ['fixtures/remote.mjs', 'stdio', '--era', era] };
}
const remote = spawn('node', ['fixtures/remote.mjs', 'http'], {
  stdio: ['pipe', 'pipe', 'inherit'],
});
const address = once(remote.stdout, 'data'); // it prints it

console.log('A server without a handshake:');
const stateless = await open(onPipe('modern'));
isBrief = true;
console.log('\nA server that wants one:');
const handshaking = await open(onPipe('legacy'));

console.log('\nA tool that asks the user, in the handshake era:');
await handshaking?.callTool('confirm');
console.log('\nThe same tool in the stateless era:');
await stateless?.callTool('confirm');

console.log('\nThe list of tools, twice; a change; and once more:');
await stateless?.listTools();
await stateless?.listTools();
await stateless?.callTool('grow');
await stateless?.listTools();

console.log('\nA server that dies of the probe:');
const dies = `process.stdin.prependListener('data', (text) => {
  if (/discover/.test(text)) process.exit(3);
})`;
await open({ command: 'node', args: ['--import', './fixtures/server.mjs', '-e', dies] });

console.log('\nOver HTTP, and it speaks both:');
await open({ type: 'http', url: `${await address}`.trim() });

await Promise.all(opened.map((connection) => connection.close()));
remote.stdin.end();
