// Chapter 11: a program fails, and has never said goodbye. Is its server still running afterwards?

import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folder = mkdtempSync(join(tmpdir(), 'goodbye-'));
const textIn = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8') : '');
const pidsIn = (file: string) => (textIn(file).match(/\d+/g) ?? []).map(Number);
const signalled = (pid: number, signal: NodeJS.Signals | 0) => {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  } // 0 is no signal: it only asks whether there is such a process
};
const isRunning = (pid: number) =>
  signalled(pid, 0) && !/^State:\s+Z/m.test(textIn(`/proc/${pid}/status`)); // Z: dead

const [pids, group] = [join(folder, 'pids'), join(folder, 'group')];
let program: ChildProcess | undefined;
process.on('exit', () => {
  // whatever the demo has shown, and wherever it is cut off, it leaves nothing behind
  program?.kill('SIGKILL');
  for (const pid of pidsIn(group)) signalled(-pid, 'SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => process.exit(1));

// A program of its own, with a stubborn server. It fails when the server is up, and notes whom it has started before that.
const config = { command: 'node', args: ['fixtures/habits.mjs', 'stubborn', pids] };
const code = `import { living, McpConnection } from './mcp.ts'; import { existsSync, writeFileSync } from 'node:fs';
  const connected = new McpConnection('stubborn', ${JSON.stringify(config)}).connect();
  writeFileSync(${JSON.stringify(group)}, String([...living][0].pid));
  await connected;
  while (!existsSync(${JSON.stringify(pids)})) await new Promise((done) => setTimeout(done, 20));
  throw new Error('a bug');`;
program = spawn(process.execPath, [...process.execArgv, '--input-type=module', '-e', code], {
  stdio: 'ignore',
});
await new Promise((done) => program!.on('exit', done));
await new Promise((done) => setTimeout(done, 200));
const running = pidsIn(pids).filter(isRunning).length;
console.log(
  'A program fails, with a stubborn server and without a goodbye. The server, and the child that it started:',
);
console.log(`  ${running} of ${pidsIn(pids).length} still running a moment later`);
