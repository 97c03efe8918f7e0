// Judges exercise 11: does every server get its chance to leave, and is it gone in the end?

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Judge } from '../book.ts';

const textIn = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8') : '');
const pidsIn = (file: string) => (textIn(file).match(/\d+/g) ?? []).map(Number);
const wroteTo = (file: string) => textIn(file) || 'nothing was written';
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));
const isRunning = (pid: number) => {
  try { process.kill(pid, 0); } catch { return false; }
  return !/^State:\s+Z/m.test(textIn(`/proc/${pid}/status`)); // Z: it is dead, but nobody has taken note
};

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpConnection, living } = await load('mcp.ts');
  const folder = mkdtempSync(join(tmpdir(), 'goodbye-'));
  const [left, saved, pids, heard] = [join(folder, 'left'), join(folder, 'saved'), join(folder, 'pids'), join(folder, 'heard')];
  process.on('exit', () => { // also when a solution leaves somebody behind
    for (const pid of pidsIn(pids)) if (isRunning(pid)) process.kill(pid, 'SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });
  const connect = async (name: string, ...args: string[]) => {
    const connection = new McpConnection(name, { command: 'node', args }, { onWire: see });
    await connection.connect();
    return connection;
  };
  const start = async (name: string, ...args: string[]) => {
    const connection = await connect(name, ...args);
    await connection.initialize();
    return connection;
  };
  const writesDown = `process.stdin.on('data', (text) => require('fs').appendFileSync(process.argv[1], text))`;
  const [calculator, late, saves, stubborn, listener, dead] = await Promise.all([
    start('calculator', 'fixtures/server.mjs'),
    start('leaves-late', 'fixtures/habits.mjs', 'leaves-late', left),
    start('ends-on-sigterm', 'fixtures/habits.mjs', 'ends-on-sigterm', saved),
    start('stubborn', 'fixtures/habits.mjs', 'stubborn', pids),
    connect('listener', '-e', writesDown, heard),
    start('dead', 'fixtures/habits.mjs'),
  ]);
  while (pidsIn(pids).length < 2) await pause(20);
  await dead.callTool('exit', { code: 0 }).catch(() => {});

  const startedAt = Date.now();
  const close = async (connection: { close(): Promise<void> }, result: () => unknown) => (await connection.close(), result());
  void listener.notify('notifications/last-words').catch(() => {});
  const child = [...living].find(({ spawnargs }) => spawnargs.includes('fixtures/server.mjs'));
  const quick = close(calculator, () => `${isRunning(child.pid) ? 'it is still running' : 'it is gone'}, ${Date.now() - startedAt} ms later`);
  const after = [close(late, () => wroteTo(left)), close(saves, () => wroteTo(saved)), close(listener, () => wroteTo(heard))];
  const ended = close(stubborn, async () => {
    await pause(200); // a killed process needs a moment
    return `${pidsIn(pids).filter(isRunning).length} of 2 are still running`;
  });
  for (const promise of [quick, ...after, ended]) promise.catch(() => {}); // each is looked at in its turn

  await expect('close() waits until the server is gone, and no longer', 'the calculator, whose stdin has ended, is gone, well within a second', quick, (came) => /^it is gone, \d{1,3} ms/.test(came));
  await expect('a polite server may finish in peace, and close() waits for it', 'the server wrote "left", half a second after its stdin ended; no signal came before', after[0], (came) => came === 'left');
  await expect('one that ignores the end of stdin is asked by SIGTERM', 'the server wrote "saved" when SIGTERM came, and close() waited for it', after[1], (came) => came === 'saved');
  await expect('one that ignores SIGTERM is ended by SIGKILL, and so is its child', '0 of 2 are still running', ended, (came) => came === '0 of 2 are still running');
  await expect('what was sent just before the goodbye arrives', '→ notifications/last-words, before the end of stdin', after[2], /last-words/);
  const again = Promise.all([close(dead, () => 'closed'), close(calculator, () => 'closed')]);
  await expect('to close one that is gone does nothing', 'close() resolves for a server that has exited, and for one that was closed before', again, (came) => `${came}` === 'closed,closed');
  for (const [what, command] of [['could not be found', 'no-such-command'], ['no system would take', 'no\0name']]) {
    const never = new McpConnection('never', { command }, { onWire: see });
    await never.connect().catch(() => {});
    await expect(`to close one whose command ${what} does nothing`, 'close() resolves', close(never, () => 'closed'), (came) => came === 'closed');
  }
};
