// Chapter 11: three servers are told to leave, and a program ends without a word. Who is still running afterwards?

import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { living, McpConnection } from '../../mcp.ts';

const onWire = (direction: string, message: unknown) => console.log(direction === 'out' ? '→' : '←', JSON.stringify(message));
const folder = mkdtempSync(join(tmpdir(), 'goodbye-'));
const [saved, stubbornPids, forgottenPids] = [join(folder, 'saved'), join(folder, 'stubborn'), join(folder, 'forgotten')];
const textIn = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8') : '');
const pidsIn = (file: string) => (textIn(file).match(/\d+/g) ?? []).map(Number);
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));
const isRunning = (pid: number) => {
  try { process.kill(pid, 0); } catch { return false; } // 0 is no signal: it only asks whether there is such a process
  return !/^State:\s+Z/m.test(textIn(`/proc/${pid}/status`)); // Z: it is dead, but nobody has taken note
};
const count = (pids: number[]) => `${pids.filter(isRunning).length} of ${pids.length} still running a moment later`;

const ours: number[] = []; // the servers that this program starts itself
process.on('exit', () => { // whatever the demo has shown, it leaves nothing behind
  for (const pid of new Set([...ours, ...pidsIn(stubbornPids), ...pidsIn(forgottenPids)])) if (isRunning(pid)) process.kill(pid, 'SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});
const start = async (name: string, ...args: string[]) => {
  const connection = new McpConnection(name, { command: 'node', args });
  const connected = connection.connect();
  ours.push([...living].at(-1)!.pid!);
  await connected;
  await connection.initialize();
  return connection;
};
const close = async (connection: McpConnection) => {
  if (!('close' in connection)) return 'there is no close()';
  const startedAt = Date.now();
  await connection.close();
  return `close() took ${Date.now() - startedAt} ms`;
};

// A program of its own, with a stubborn server. It fails when the server is up, and has never said goodbye.
const config = { command: 'node', args: ['fixtures/habits.mjs', 'stubborn', forgottenPids] };
const code = `import { McpConnection } from './mcp.ts'; import { existsSync } from 'node:fs';
  await new McpConnection('stubborn', ${JSON.stringify(config)}).connect();
  while (!existsSync(${JSON.stringify(forgottenPids)})) await new Promise((done) => setTimeout(done, 20));
  throw new Error('a bug');`;
const program = spawn(process.execPath, [...process.execArgv, '--input-type=module', '-e', code], { stdio: 'ignore' });
const programEnded = new Promise((done) => program.on('exit', done));

const habit = (name: string, file: string) => start(name, 'fixtures/habits.mjs', name, file);
const servers = await Promise.all([start('calculator', 'fixtures/server.mjs'), habit('ends-on-sigterm', saved), habit('stubborn', stubbornPids)]);
console.log('A call, and then we are done:');
servers[0].options.onWire = onWire; // from here on: the handshake was chapter 7's
await servers[0].callTool('add', { a: 2, b: 40 });
while (pidsIn(stubbornPids).length < 2) await pause(20);
const took = await Promise.all(servers.map(close));
await programEnded;
await pause(200);
console.log(`\nThe calculator leaves when its stdin ends:\n  ${took[0]}; ${count(ours.slice(0, 1))}`);
console.log(`\nOne that waits for SIGTERM, and then saves its work:\n  ${took[1]}; ${count(ours.slice(1, 2))}; it wrote: ${textIn(saved) || 'nothing'}`);
console.log(`\nA stubborn one, and the child that it started:\n  ${took[2]}; ${count(pidsIn(stubbornPids))}`);
console.log(`\nAnother program fails, with a stubborn server and without a goodbye:\n  ${count(pidsIn(forgottenPids))}`);
