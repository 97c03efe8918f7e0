// Chapter 26: servers that die, and what becomes of the next call. Without this chapter there is no
// extension to add.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Agent, Scripted, type AgentEvent } from '../../agent.ts';
import { living, McpConnection, McpManager, textOf } from '../../mcp.ts';
import type { Extension, Json, ServerEntry } from '../../mcp.ts';
import { plainHost } from '../19-the-terminal/host.ts';
import { compose } from '../composition.ts';

const folder = mkdtempSync(join(tmpdir(), 'alive-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

function show(text: string): void {
  const lasting = text.replaceAll(folder, '~').replace(/:\d+\)/, ')'); // the same in every run
  console.log(lasting.replaceAll('\n', '\n    '));
}
const begin = (title: string) => console.log(`\n${title}`);

/** What this chapter adds. In its pauses it does not wait, but says for how long it would. */
async function loadExtensions(): Promise<Extension[]> {
  if (!existsSync(new URL('alive.ts', import.meta.url))) return []; // the chapter before
  const { stayAlive } = await import('./alive.ts');
  const pause = async (ms: number) => show(`  (here it would wait for ${Math.round(ms)} ms)`);
  return [stayAlive({ pause })];
}

const extensions = await loadExtensions();
const { transports } = compose(plainHost());
let isShown = true;
let handshakes = 0;

function onWire(direction: string, message: unknown): void {
  if (isShown) console.log(direction === 'out' ? '→' : '←', JSON.stringify(message));
  if ((message as Json).method === 'initialize') handshakes++;
}

async function open(config: Json): Promise<McpConnection> {
  const connection = new McpConnection('calculator', config, { extensions, onWire, transports });
  await connection.connect();
  await connection.initialize();
  return connection;
}

async function add(connection: McpConnection): Promise<void> {
  const call = connection.callTool('add', { a: 2, b: 40 });
  const answer = await call.then(({ text }) => text, textOf);
  show(`  = ${answer}`);
}

async function kill(isNoticed: () => unknown): Promise<void> {
  for (const child of living) child.kill('SIGKILL');
  while (!isNoticed()) await wait(10);
}

show('A call, a death, and the next call:');
const calculator = await open({ command: 'node', args: ['fixtures/server.mjs'] });
await add(calculator);
await kill(() => calculator.ended);
show('  (the server was killed)');
await add(calculator);

isShown = false;
await kill(() => calculator.ended);
handshakes = 0;
const calls = Array.from({ length: 100 }, () => calculator.callTool('add', { a: 2, b: 40 }));
const sums = await Promise.allSettled(calls);
const good = sums.filter(({ status }) => status === 'fulfilled').length;
const counts = `Handshakes: ${handshakes}, answers: ${good}`;
begin(`It is killed once more, and then called 100 times at once. ${counts}`);
await calculator.close();

begin('A server that forgets our session:');
const flags = ['--era', 'legacy', '--sessions', '--notes', join(folder, 'notes')];
const remote = spawn('node', ['fixtures/remote.mjs', 'http', ...flags], {
  stdio: ['pipe', 'pipe', 'inherit'],
});
const [address] = await once(remote.stdout, 'data'); // it prints where it listens
const forgetful = await open({ type: 'http', url: `${address}`.trim() });
await forgetful.callTool('forget');
isShown = true;
await add(forgetful);
isShown = false;
await forgetful.close();
remote.kill();

/** A server that has another habit from its second start on. */
async function manage(nextLife: string): Promise<McpManager> {
  const file = join(folder, nextLife); // where it notes that it has been started
  const entry: ServerEntry = {
    name: 'habits',
    config: {
      command: 'node',
      args: ['fixtures/habits.mjs', 'next-life', `${file}:${nextLife}`],
      cwd: process.cwd(),
    },
    file: 'demo.ts',
    scope: 'user',
    authority: 'user',
  };
  const onState = (_: string, state: string, reason = '') => {
    const what = reason.replace(/^.*?"habits"( \(node\))? /, '').split(/[:.]/)[0];
    show(`  [${state}] ${what}`.trimEnd());
  };
  const load = () => new Map([['habits', entry]]);
  const manager = new McpManager({ load, extensions, onState });
  await manager.loadAndConnect();
  return manager;
}

/** A conversation in which the model calls these tools, one after the other. */
async function chat(mcp: McpManager, ...calls: [name: string, args: Json][]): Promise<void> {
  const turns = calls.map(([name, args]) => ({ calls: [{ name: `mcp__habits__${name}`, args }] }));
  const model = new Scripted([...turns, 'Done.']);
  const gate = async () => ({ allowed: true }) as const;
  const emit = (event: AgentEvent) => {
    if (event.type === 'tool_end') show(`  ${event.name} ${event.outcome}: ${event.text}`);
    if (event.type === 'note') show(`  note: ${event.text}`);
  };
  const agent = new Agent({ model, mcp, gate, resultsFolder: folder, emit });
  await agent.chat('Go.');
  await mcp.disconnectAll();
}

begin('A server that dies in a call, and has one more tool in its next life:');
const growing = await manage('grows-a-tool');
await chat(growing, ['exit', { code: 7 }], ['echo', { a: 2, b: 40 }], ['sleep', { ms: 500 }]);

begin('A server that dies whenever it is started again:');
const looping = await manage('dies-at-once');
await kill(() => looping.status()[0]!.state === 'failed');
await chat(looping, ['echo', {}], ['echo', {}]);
