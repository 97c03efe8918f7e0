// Judges exercise 11: does every server get its chance to leave, and is it gone in the end?

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Judge } from '../book.ts';

const textIn = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8') : '');
const pidsIn = (file: string) => (textIn(file).match(/\d+/g) ?? []).map(Number);
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));
const signalled = (pid: number, signal: NodeJS.Signals | 0) => {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  } // there is no such process
};
const isRunning = (pid: number) =>
  signalled(pid, 0) && !/^State:\s+Z/m.test(textIn(`/proc/${pid}/status`)); // Z: dead

/** Servers of a few lines. Each writes into the file that is its argument, and none lives longer than half a minute. */
const note = `const note = (text) => require('fs').appendFileSync(process.argv[1], text); setTimeout(process.exit, 30_000);`;
const SCRIPTS = {
  listens: `${note} process.stdin.on('data', note).on('end', process.exit); note('ready ')`,
  leavesLate: `${note} process.stdin.resume().on('end', () => { require('fs').closeSync(1); setTimeout(() => { note('left'); process.exit(); }, 500); }); note('ready ')`,
  saves: `${note} process.on('SIGTERM', () => setTimeout(() => { note('saved'); process.exit(); }, 400)); note('ready ')`,
  // Starts one that is out of our reach, has no mark and a group of its own, and holds the pipe.
  daemon: `${note} process.stdin.resume().on('end', process.exit);
    const far = require('child_process').spawn(process.execPath, ['-e', 'setTimeout(() => {}, 20_000)'], { detached: true, env: {}, stdio: ['ignore', 'inherit', 'ignore'] });
    note('ready ' + far.pid)`,
};

export const judge: Judge = async ({ load, expect }) => {
  const { McpConnection, living } = await load('mcp.ts');
  const folder = mkdtempSync(join(tmpdir(), 'goodbye-'));
  const file = (name: string) => join(folder, name);
  const started: number[] = []; // each the first of a group
  process.on('exit', () => {
    // also when a solution leaves somebody behind
    for (const pid of started) signalled(-pid, 'SIGKILL');
    for (const pid of pidsIn(file('daemon'))) signalled(pid, 'SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });
  const connect = async (name: string, command: string, args: string[]) => {
    const connection = new McpConnection(name, { command, args }, { onWarning: () => {} });
    const connected = connection.connect();
    const child: any = [...living].at(-1);
    started.push(child.pid);
    await connected;
    return { connection, child };
  };
  const script = (name: string, code: string) =>
    connect(name, process.execPath, ['-e', code, file(name)]);
  const isWindows = process.platform === 'win32';
  const behindShell = [
    '-c',
    '"$0" -e "$1" "$2"; exit',
    process.execPath,
    SCRIPTS.saves,
    file('shell'),
  ];
  const [polite, late, saves, shell, daemon, dead, stubborn] = await Promise.all([
    script('polite', SCRIPTS.listens),
    script('late', SCRIPTS.leavesLate),
    script('saves', SCRIPTS.saves),
    isWindows ? script('shell', SCRIPTS.saves) : connect('shell', 'sh', behindShell),
    script('daemon', SCRIPTS.daemon),
    script('dead', `${note} note('ready ')`),
    connect('stubborn', process.execPath, ['fixtures/habits.mjs', 'stubborn', file('stubborn')]),
  ]);
  const names = ['polite', 'late', 'saves', 'shell', 'daemon', 'dead', 'stubborn'];
  while (names.some((name) => textIn(file(name)) === '')) await pause(20);
  const died = new Promise((done) => dead.child.once('close', done));
  dead.child.kill('SIGKILL');
  await died;

  const close = async ({ connection }: typeof polite, result: () => unknown = () => 'closed') => {
    try {
      await connection.close();
    } catch (error: any) {
      if (error?.code !== 'ESRCH') throw error;
      throw new Error(
        'a signal was sent to a process that is gone (kill ESRCH); signalGroup takes care of that',
      );
    }
    return result();
  };
  const wrote = (name: string) => () => textIn(file(name)).replace(/^ready \d*/, '') || 'nothing';
  /** On a busy machine a process may need a second to exit, so one that seems slow is tried again, alone. */
  const closePolite = async (one: typeof polite, triesLeft = 2): Promise<string> => {
    const startedAt = Date.now();
    void one.connection.notify('notifications/last-words').catch(() => {});
    await close(one);
    const took = Date.now() - startedAt;
    if (took < 1000 || triesLeft === 0)
      return `it is ${isRunning(one.child.pid) ? 'still running' : 'gone'}, ${took} ms later`;
    rmSync(file('polite'));
    const another = await script('polite', SCRIPTS.listens);
    while (textIn(file('polite')) === '') await pause(20);
    return closePolite(another, triesLeft - 1);
  };
  const results = {
    polite: closePolite(polite),
    late: close(late, wrote('late')),
    saves: close(saves, wrote('saves')),
    shell: close(shell, wrote('shell')),
    stubborn: close(stubborn, async () => {
      await pause(200); // a killed process needs a moment
      return `${pidsIn(file('stubborn')).filter(isRunning).length} of 2 are still running`;
    }),
    daemon: close(daemon, () => (living.has(daemon.child) ? 'the pipes are still ours' : 'let go')),
  };
  for (const promise of Object.values(results)) promise.catch(() => {}); // each is looked at in its turn

  const quick = await Promise.race([
    results.polite.catch((error) => error),
    pause(9000).then(() => 'nothing, in nine seconds'),
  ]);
  await expect(
    'close() waits until the server is gone, and no longer',
    'a server that leaves at the end of its stdin is gone, well within a second',
    quick,
    /^it is gone, \d{1,3} ms/,
  );
  await expect(
    'what was sent just before the goodbye arrives',
    '→ notifications/last-words, before the end of stdin',
    results.polite.then(wrote('polite')),
    /last-words/,
  );
  await expect(
    'a polite server may finish in peace, and close() waits for it',
    'the server wrote "left", half a second after its stdin ended; no signal came before',
    results.late,
    /^left$/,
  );
  await expect(
    'one that ignores the end of stdin is asked by SIGTERM, and has time to save',
    'the server wrote "saved", 0.4 s after SIGTERM, and close() waited for it',
    results.saves,
    /^saved$/,
  );
  await expect(
    'also behind a shell: the signal is for the group, and the exit of the shell is not the end',
    'the server wrote "saved", 0.4 s after SIGTERM had ended the shell',
    results.shell,
    /^saved$/,
  );
  await expect(
    'one that ignores SIGTERM is ended by SIGKILL, and so is its child',
    '0 of 2 are still running',
    results.stubborn,
    /^0 of 2/,
  );
  await expect(
    'whoever else holds the pipes, we let go of them',
    'after the last step, though a daemon that we cannot end still holds stdout',
    results.daemon,
    /^let go/,
  );
  const again = Promise.all([close(dead), close(polite)]);
  await expect(
    'to close one that is gone does nothing',
    'close() resolves for a server that has exited, and for one that was closed before',
    again,
    (came) => `${came}` === 'closed,closed',
  );
  for (const [what, command] of [
    ['could not be found', 'no-such-command'],
    ['no system would take', 'no\0name'],
  ] as const) {
    const connection = new McpConnection('never', { command }, { onWarning: () => {} });
    await connection.connect().catch(() => {});
    await expect(
      `to close one whose command ${what} does nothing`,
      'close() resolves',
      close({ connection, child: undefined }),
      (came) => came === 'closed',
    );
  }
};
