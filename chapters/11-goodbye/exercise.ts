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
  listens: `${note} process.on('SIGTERM', () => {}); process.stdin.on('data', note).on('end', () => { note('its stdin has ended'); process.exit(); }); note('ready ')`,
  leavesLate: `${note} process.stdin.resume().on('end', () => { require('fs').closeSync(1); setTimeout(() => { note('left'); process.exit(); }, 500); }); note('ready ')`,
  saves: `${note} process.on('SIGTERM', () => setTimeout(() => { note('saved'); process.exit(); }, 400)); note('ready ')`,
  // Reads nothing for a while, then all, and notes how much it was. It has until SIGKILL for that.
  reads: `${note} process.on('SIGTERM', () => {}); let count = 0; note('ready ');
    setTimeout(() => process.stdin.on('data', (bytes) => { for (const byte of bytes) if (byte === 10) count++; }).on('end', () => { note('read ' + count + ' lines'); process.exit(); }), 200)`,
  // Notes when its stdin ends, and when SIGTERM comes. Its child is as stubborn, and holds the pipes.
  stubborn: `${note} const time = (what) => note(what + Date.now() + ' ');
    process.stdin.resume().on('end', () => time('end ')); process.on('SIGTERM', () => time('term '));
    const code = "process.on('SIGTERM', () => {}); require('fs').appendFileSync(process.argv[1], 'ready '); setTimeout(() => {}, 20000)";
    require('child_process').spawn(process.execPath, ['-e', code, process.argv[1]], { stdio: 'inherit' })`,
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
  type Ladder = { term: number; kill: number; signal: string };
  /** How long the steps took. One that seems slow is tried again, alone. */
  const climb = async (triesLeft = 2): Promise<Ladder> => {
    rmSync(file('ladder'), { force: true });
    const one = await script('ladder', SCRIPTS.stubborn);
    while (!textIn(file('ladder')).includes('ready')) await pause(20);
    const startedAt = Date.now();
    await close(one);
    const goneAt = Date.now();
    const termAt = Number(/term (\d+)/.exec(textIn(file('ladder')))?.[1] ?? NaN);
    const ladder = {
      term: termAt - startedAt,
      kill: goneAt - termAt,
      signal: `${one.child.signalCode}`,
    };
    const isSlow = !isStep(ladder.term) || !isStep(ladder.kill) || ladder.signal !== 'SIGKILL';
    return isSlow && triesLeft > 0 ? climb(triesLeft - 1) : ladder;
  };
  const isStep = (ms: number) => ms > 900 && ms < 1800;
  const filled = await script('reads', SCRIPTS.reads);
  while (textIn(file('reads')) === '') await pause(5);
  const LINES = 60;
  for (let n = 0; n < LINES; n++)
    filled.connection
      .notify('notifications/much', { n, text: 'x'.repeat(100_000) })
      .catch(() => {});
  const results = {
    reads: close(filled, wrote('reads')),
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
    'stdin is ended, so that a server can leave by itself',
    'the server wrote "its stdin has ended"',
    quick instanceof Error ? quick : textIn(file('polite')),
    /its stdin has ended$/,
  );
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
    'all that waits is written, even if the pipe is full',
    `${LINES} lines of 100 kB, to a server that begins to read 0.2 s later`,
    results.reads,
    (came) => came === `read ${LINES} lines`,
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
  const ladder = await Promise.race([climb(), pause(20_000).then(() => undefined)]);
  const ms = (time?: number) => (Number.isFinite(time) ? `${time} ms` : 'it did not come');
  await expect(
    'SIGTERM comes a second after the end of stdin',
    'about 1000 ms (GOODBYE_STEP_MS)',
    ms(ladder?.term),
    () => isStep(ladder?.term ?? NaN),
  );
  await expect(
    'SIGKILL comes a second after SIGTERM, and ends the whole group at once',
    'close() resolves about 1000 ms after SIGTERM, though a child of the server held the pipes',
    ms(ladder?.kill),
    () => isStep(ladder?.kill ?? NaN),
  );
  await expect(
    'close() waits until what was killed is gone',
    'the process was ended by SIGKILL when close() resolved',
    `ended by ${ladder?.signal}`,
    /SIGKILL$/,
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
