// Chapter 11.1: three servers are told to leave. Who is still running afterwards?

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { living, McpConnection } from '../../mcp.ts';

const folder = mkdtempSync(join(tmpdir(), 'goodbye-'));
const [saved, stubbornPids] = [join(folder, 'saved'), join(folder, 'stubborn')];
const textIn = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8') : '');
const pidsIn = (file: string) => (textIn(file).match(/\d+/g) ?? []).map(Number);
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));
const signalled = (pid: number, signal: NodeJS.Signals | 0) => {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  } // 0 is no signal: it only asks whether there is such a process
};
const isRunning = (pid: number) =>
  signalled(pid, 0) && !/^State:\s+Z/m.test(textIn(`/proc/${pid}/status`)); // Z: dead
const count = (pids: number[]) =>
  `${pids.filter(isRunning).length} of ${pids.length} still running a moment later`;

const ours: number[] = []; // the servers, each the first of a group
process.on('exit', () => {
  // whatever the demo has shown, and wherever it is cut off, it leaves nothing behind
  for (const pid of ours) signalled(-pid, 'SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => process.exit(1));
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
const habit = (name: string, file: string) => start(name, 'fixtures/habits.mjs', name, file);
const servers = await Promise.all([
  start('calculator', 'fixtures/server.mjs'),
  habit('ends-on-sigterm', saved),
  habit('stubborn', stubbornPids),
]);
while (pidsIn(stubbornPids).length < 2) await pause(20);
const took = await Promise.all(servers.map(close));
await pause(200);
console.log(`The calculator leaves when its stdin ends:\n  ${took[0]}; ${count(ours.slice(0, 1))}`);
console.log(
  `\nOne that waits for SIGTERM, and then saves its work:\n  ${took[1]}; ${count(ours.slice(1, 2))}; it wrote: ${textIn(saved) || 'nothing'}`,
);
console.log(
  `\nA stubborn one, and the child that it started:\n  ${took[2]}; ${count(pidsIn(stubbornPids))}`,
);
