// Chapter 22: the call that adds 2 and 40, by the same lines to servers of both eras. Then the servers ask back.

import { spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { existsSync } from 'node:fs';
import { plainHost } from '../19-the-terminal/host.ts';
import { compose } from '../composition.ts';
import { McpConnection, textOf, type Json } from '../../mcp.ts';

const isThere = existsSync(new URL('era.ts', import.meta.url)); // not before this chapter
const eras = isThere ? (await import('./era.ts')).inBothEras() : [];
const { transports } = compose(plainHost());

let isBrief = false; // then "…" stands for what introduces a request
const shorten = (key: string, value: any) => {
  if (isBrief && key === '_meta' && 'io.modelcontextprotocol/protocolVersion' in value) return '…';
  return key === 'tools' && Array.isArray(value) ? `(${value.length} tools)` : value;
};
async function open(config: Json): Promise<McpConnection | undefined> {
  const heard = new EventEmitter();
  const onWire = (direction: string, message: any) => {
    console.log(direction === 'out' ? '→' : '←', JSON.stringify(message, shorten));
    heard.emit(message.method ?? 'answer');
  };
  const answer = ({ message }: Json) => (console.log(`  the user is asked: ${message}`), { action: 'accept', content: { ok: true } });
  const elicitation = () => ({ capabilities: { elicitation: {} }, handlers: { 'elicitation/create': answer } });
  const connection = new McpConnection('calculator', config, { transports, extensions: [...eras, elicitation], onWire });
  try {
    await connection.connect();
    const { protocolVersion, because } = await connection.initialize();
    console.log(`  it speaks ${protocolVersion}${because ? `: ${because}` : ''}`);
    if (protocolVersion > '2026') await once(heard, 'notifications/subscriptions/acknowledged');
    console.log('  =', (await connection.callTool('add', { a: 2, b: 40 })).text);
    return connection;
  } catch (error) {
    return void console.log(`  ${textOf(error)}`);
  }
}
const remote = spawn('node', ['fixtures/remote.mjs', 'http'], { stdio: ['pipe', 'pipe', 'inherit'] });
const address = once(remote.stdout, 'data'); // it prints it
const stdio = (era: string) => ({ command: 'node', args: ['fixtures/remote.mjs', 'stdio', '--era', era] });

console.log('A server without a handshake:');
const later = await open(stdio('modern'));
isBrief = true;
console.log('\nA server that wants one:');
const earlier = await open(stdio('legacy'));

console.log('\nA tool that asks the user, in the earlier era:');
await earlier?.callTool('confirm');
console.log('\nThe same tool in the later era:');
await later?.callTool('confirm');

console.log('\nThe list of tools, twice; a change; and once more:');
for (const step of ['list', 'list', 'grow', 'list']) step === 'grow' ? await later?.callTool('grow') : await later?.listTools();

console.log('\nA server that dies of the question:');
const dies = "process.stdin.prependListener('data', (line) => /discover/.test(line) && process.exit(3))";
await open({ command: 'node', args: ['--import', './fixtures/server.mjs', '-e', dies] });

console.log('\nOver HTTP, and it speaks both:');
await open({ type: 'http', url: `${await address}`.trim() });
