// Chapter 26: servers that die, and what becomes of the next call. Without this chapter there is no layer to add.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Agent, Scripted, type AgentEvent } from '../../agent.ts';
import { plainHost } from '../19-the-terminal/host.ts';
import { compose } from '../composition.ts';
import { living, McpConnection, McpManager, textOf, type Json, type ServerEntry } from '../../mcp.ts';

const folder = mkdtempSync(join(tmpdir(), 'alive-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
const show = (text: string) => console.log(text.replaceAll(folder, '~').replace(/:\d+\)/, ')').replaceAll('\n', '\n    '));
const begin = (title: string) => console.log(`\n${title}`);
const isThere = existsSync(new URL('alive.ts', import.meta.url)); // not before this chapter
const pause = async (ms: number) => show(`  (here it would wait for ${Math.round(ms)} ms)`);
const extensions = isThere ? [(await import('./alive.ts')).stayAlive({ pause })] : [];

const { transports } = compose(plainHost());
let isShown = true;
let handshakes = 0;
const onWire = (direction: string, message: unknown) => {
  if (isShown) console.log(direction === 'out' ? '→' : '←', JSON.stringify(message));
  if ((message as Json).method === 'initialize') handshakes++;
};
const open = async (config: Json) => {
  const connection = new McpConnection('calculator', config, { extensions, onWire, transports });
  await connection.connect();
  await connection.initialize();
  return connection;
};
const add = async (connection: McpConnection) => show(`  = ${await connection.callTool('add', { a: 2, b: 40 }).then(({ text }) => text, textOf)}`);
const kill = async (isNoticed: () => unknown) => {
  for (const child of living) child.kill('SIGKILL');
  while (!isNoticed()) await wait(10);
};

show('A call, a death, and the next call:');
const calculator = await open({ command: 'node', args: ['fixtures/server.mjs'] });
await add(calculator);
await kill(() => calculator.ended);
show('  (somebody has killed the server)');
await add(calculator);

isShown = false;
await kill(() => calculator.ended);
handshakes = 0;
const sums = await Promise.allSettled(Array.from({ length: 100 }, () => calculator.callTool('add', { a: 2, b: 40 })));
const good = sums.filter(({ status }) => status === 'fulfilled').length;
begin(`It is killed once more, and then called 100 times at once. Handshakes: ${handshakes}, answers: ${good}`);
await calculator.close();

begin('A server that forgets our session:');
const remote = spawn('node', ['fixtures/remote.mjs', 'http', '--era', 'legacy', '--sessions', '--notes', join(folder, 'notes')], { stdio: ['pipe', 'pipe', 'inherit'] });
const forgetful = await open({ type: 'http', url: `${await once(remote.stdout, 'data')}`.trim() });
await forgetful.callTool('forget');
isShown = true;
await add(forgetful);

const manage = async (nextLife: string) => {
  const config = { command: 'node', args: ['fixtures/habits.mjs', 'next-life', `${join(folder, nextLife)}:${nextLife}`] };
  const entry: ServerEntry = { name: 'habits', config, file: 'demo.ts', scope: 'user', authority: 'user' };
  const onState = (_: string, state: string, reason = '') => show(`  [${state}] ${reason.replace(/^.*?"habits"( \(node\))? /, '').split(/[:.]/)[0]}`.trimEnd());
  const manager = new McpManager({ load: () => new Map([['habits', entry]]), extensions, onState });
  await manager.loadAndConnect();
  return manager;
};
const chat = async (mcp: McpManager, ...calls: [name: string, args: Json][]) => {
  const model = new Scripted([...calls.map(([name, args]) => ({ calls: [{ name: `mcp__habits__${name}`, args }] })), 'Done.']);
  const emit = (event: AgentEvent) => {
    if (event.type === 'tool_end') show(`  ${event.name} ${event.outcome}: ${event.text}`);
    if (event.type === 'note') show(`  note: ${event.text}`);
  };
  await new Agent({ model, mcp, gate: async () => ({ allowed: true }), resultsFolder: folder, emit }).chat('Go.');
  await mcp.disconnectAll();
};

begin('A server that dies in a call, and has one more tool in its next life:');
await chat(await manage('grows-a-tool'), ['exit', { code: 7 }], ['echo', { a: 2, b: 40 }], ['sleep', { ms: 500 }]);

begin('A server that dies whenever it is started again:');
const looping = await manage('dies-at-once');
await kill(() => looping.status()[0]!.state === 'failed');
await chat(looping, ['echo', {}], ['echo', {}]);
