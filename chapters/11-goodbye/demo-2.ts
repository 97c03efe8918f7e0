// Chapter 11.2: a server starts a daemon, which leaves the group. Who is still running afterwards?

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { McpConnection } from '../../mcp.ts';

const folder = mkdtempSync(join(tmpdir(), 'goodbye-'));
const file = join(folder, 'pids');
const textIn = (path: string) => (existsSync(path) ? readFileSync(path, 'utf8') : '');
const pids = () => (textIn(file).match(/\d+/g) ?? []).map(Number);
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));
const signalled = (pid: number, signal: NodeJS.Signals | 0) => {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
};
const isRunning = (pid: number) =>
  signalled(pid, 0) && !/^State:\s+Z/m.test(textIn(`/proc/${pid}/status`)); // Z: dead
process.on('exit', () => {
  for (const pid of pids()) signalled(pid, 'SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

// `detached` gives the daemon a group of its own. Should nobody end it, it leaves after ten seconds.
const daemon = `require('child_process').spawn('node', ['-e', 'setTimeout(() => {}, 10_000)'], { detached: true, stdio: 'ignore' })`;
const server = `require('fs').writeFileSync(process.argv[1], process.pid + ' ' + ${daemon}.pid); process.stdin.resume().on('end', process.exit)`;
const connection = new McpConnection('daemon', { command: 'node', args: ['-e', server, file] });
await connection.connect();
while (pids().length < 2) await pause(20);
await connection.close();
await pause(200);
const [first, second] = pids().map((pid) => (isRunning(pid) ? 'is still running' : 'is gone'));
console.log(`We have said goodbye. The server ${first}. The daemon that it started ${second}.`);
