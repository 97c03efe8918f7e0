// Chapter 26.1: a server that dies, and what becomes of the next call; then of a hundred, and of a server that cannot live.
// Without this chapter there is no extension to add.

import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { living, McpConnection, textOf } from '../../mcp.ts';
import type { Json } from '../../mcp.ts';

const folder = mkdtempSync(join(tmpdir(), 'alive-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

const isThere = existsSync(new URL('alive.ts', import.meta.url));
const extensions = isThere ? [(await import('./alive.ts')).stayAlive()] : [];
let isShown = true;
let starts = 0;

function onWire(direction: string, message: unknown): void {
  if ((message as Json).method === 'initialize') starts++;
  if (isShown) console.log(direction === 'out' ? '→' : '←', JSON.stringify(message));
}

async function open(...args: string[]): Promise<McpConnection> {
  const connection = new McpConnection(
    'calculator',
    { command: 'node', args },
    { extensions, onWire },
  );
  await connection.connect();
  await connection.initialize();
  return connection;
}

async function kill(connection: McpConnection): Promise<void> {
  for (const child of living) child.kill('SIGKILL');
  while (!connection.ended) await wait(10);
  starts = 0;
}

const add = (connection: McpConnection) =>
  connection.callTool('add', { a: 2, b: 40 }).then(({ text }) => text, textOf);

console.log('A call, a death, and the next call:');
isShown = false;
const calculator = await open('fixtures/server.mjs');
await add(calculator);
await kill(calculator);
isShown = true;
console.log(`  = ${await add(calculator)}`);

isShown = false;
await kill(calculator);
const calls = Array.from({ length: 100 }, () => add(calculator));
const sums = (await Promise.all(calls)).filter((text) => text === '42');
console.log(`\n100 calls meet it dead. Handshakes: ${starts}, answers: ${sums.length}`);
await calculator.close();

const doomed = await open(
  'fixtures/habits.mjs',
  'next-life',
  `${join(folder, 'note')}:dies-at-once`,
);
await kill(doomed);
for (let n = 0; n < 10; n++) await add(doomed);
console.log(`\nA server that cannot live any more is called ten times. Starts: ${starts}`);
await doomed.close();
