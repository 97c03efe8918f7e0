// A file that says whose turn it is. A program can be killed at any moment, and then its file stays:
// so it names its maker exactly enough to tell whether that one is alive.

import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  linkSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';

const QUIET_MS = 1000;
const BEAT_MS = 300;
const MOST_MS = 5000;
const PAUSE_MS = 20;
const MAX_BYTES = 4096;
const CLOCK_SLACK_MS = 3000;
const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants; // the last two: not on Windows

/** Who made a lock. A number alone is no name: in a container we are number 1 again and again. */
type Maker = { pid: number; start: string; place: string };
/** What is in a lock's file, as far as it can be read. `id` is this one file, and no other. */
type FoundLock = { maker?: Maker; id: string; madeAt: number };

export class Lock {
  private file: string;
  private id: string;
  private beat?: NodeJS.Timeout;

  constructor(file: string, id: string) {
    this.file = file;
    this.id = id;
  }

  /** Not if we were taken for dead, because we slept too long where others cannot see us. */
  isOurs(): boolean {
    return find(this.file)?.id === this.id;
  }

  /** For a long turn: programs that cannot see us, in another container, see that we are there. */
  keepFresh(): void {
    const touch = () => {
      const now = new Date();
      try {
        if (this.isOurs()) utimesSync(this.file, now, now);
      } catch {} // it is gone, or the disk is
    };
    this.beat = setInterval(touch, BEAT_MS).unref();
  }

  release(): void {
    clearInterval(this.beat);
    if (this.isOurs()) rmSync(this.file, { force: true });
  }
}

/** Waits, and throws if it is still somebody else's turn after that. */
export function waitForLock(file: string, mostMs = MOST_MS): Lock {
  const startedAt = performance.now();
  for (;;) {
    const lock = takeLock(file);
    if (lock) return lock;
    if (performance.now() - startedAt > mostMs) throw inTheWay(file);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
  }
}

/** It is held by a program that runs, or that was stopped in the middle. */
export function inTheWay(file: string): Error {
  const pid = find(file)?.maker?.pid;
  const holder = pid ? ` (of the process ${pid})` : '';
  return new Error(`${file}${holder} is in the way; if that is no mcp-by-hand, delete it`);
}

/** Tries once. Gives back nothing if it is somebody else's turn. */
export function takeLock(file: string): Lock | undefined {
  const id = randomBytes(6).toString('hex');
  const draft = `${file}.${id}.new`;
  try {
    writeFileSync(draft, JSON.stringify({ id, ...ourselves() }), { mode: 0o600, flag: 'wx' });
    const now = lstatSync(draft).mtimeMs; // by the clock of the disk, which may be another machine's
    if (!appear(draft, file, id) && !(clearAway(file, now) && appear(draft, file, id)))
      return undefined;
    sweep(file, now);
    return new Lock(file, id);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Complete, or not at all. A file that is made and then written is empty for a moment, and stays so
 *  if that was its maker's last. */
function appear(draft: string, file: string, id: string) {
  try {
    linkSync(draft, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
  }
  try {
    writeFileSync(file, readFileSync(draft), { mode: 0o600, flag: 'wx' }); // a disk without links
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  return find(file)?.id === id;
}

/** Takes away a lock whose maker is gone. Two programs may find it at once. The slower one would
 *  delete the lock that the faster one has made since: so that turn, too, is only one program's. */
function clearAway(file: string, now: number) {
  const left = find(file);
  if (!left) return true;
  if (!isLeft(left, now)) return false;
  const turn = takeLock(`${file}.${left.id}.left`);
  if (!turn) return false;
  try {
    if (find(file)?.id === left.id) rmSync(file, { force: true });
    return true;
  } finally {
    turn.release();
  }
}

/** What those left who died while they took or cleared away this lock. */
function sweep(file: string, now: number) {
  const start = `${basename(file)}.`;
  for (const name of readdirSync(dirname(file)).filter((each) => each.startsWith(start))) {
    const path = join(dirname(file), name);
    const isOne = /^([0-9a-f]{12}\.(new|left)\.?)+$/.test(name.slice(start.length));
    const found = isOne ? find(path) : undefined;
    if (found && isLeft(found, now)) rmSync(path, { force: true });
  }
}

/** A project can put anything in a lock's place: a link, a FIFO that never ends, a gigabyte. */
function find(file: string): FoundLock | undefined {
  const stat = lstatSync(file, { throwIfNoEntry: false });
  if (!stat) return undefined;
  if (!stat.isFile()) throw new Error(`${file} is in the way, and is no file; delete it`);
  let fd: number | undefined;
  try {
    fd = openSync(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    const { ino, mtimeMs } = fstatSync(fd);
    const bytes = Buffer.alloc(MAX_BYTES);
    const text = bytes.toString('utf8', 0, readSync(fd, bytes));
    return { ...read(text, `${ino.toString(16)}`), madeAt: mtimeMs };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined; // by now
    throw error;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

function read(text: string, otherwise: string): { maker?: Maker; id: string } {
  const odd = { id: otherwise.padStart(12, '0').slice(-12) };
  try {
    const { id, pid, start, place } = JSON.parse(text) as Record<string, unknown>;
    const isSound = typeof id === 'string' && /^[0-9a-f]{12}$/.test(id) && Number(pid) > 0;
    return isSound
      ? { id, maker: { pid: Number(pid), start: `${start}`, place: `${place}` } }
      : odd;
  } catch {
    return odd;
  }
}

/** Is its maker gone? Of one in another container we cannot know, nor of one that has not said who
 *  it is: they count until their lock is a second old. Clocks are set back, too. */
function isLeft({ maker, madeAt }: FoundLock, now: number) {
  if (maker?.place === ourselves().place) return !isAlive(maker);
  return Math.abs(now - madeAt) > QUIET_MS;
}

// ─── Processes ────────────────────────────────────────────────────────────────────────────────

const startedAt = Math.round(Date.now() - process.uptime() * 1000);

function ourselves(): Maker {
  const { pid } = process;
  return { pid, start: statOf(pid)?.start ?? `${startedAt}`, place: place() };
}

/** Where process numbers mean the same as here: this start of this machine, and this container. */
function place() {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${boot} ${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    return hostname(); // not Linux
  }
}

/** Another process may have its number by now, so look when that began. */
function isAlive({ pid, start }: Maker) {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false;
  } // there is one, be it another user's
  if (process.platform === 'win32') return true; // there is no quick way to learn more
  const stat = statOf(pid) ?? statByPs(pid);
  if (!stat) return true;
  if (/^[ZX]/.test(stat.state)) return false; // dead, but its parent has not noticed yet
  return Math.abs(Number(stat.start) - Number(start)) <= stat.slack;
}

type Stat = { state: string; start: string; slack: number };

/** On Linux, with the start in hundredths of a second since the machine's. */
function statOf(pid: number): Stat | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const afterName = stat.slice(stat.lastIndexOf(')') + 2); // the name may hold anything
    const fields = afterName.split(' ');
    return { state: fields[0]!, start: fields[19]!, slack: 0 };
  } catch {
    return undefined;
  }
}

/** On macOS. It takes some milliseconds, and is needed only where a lock is in the way. */
export function statByPs(pid: number): Stat | undefined {
  const env = { ...process.env, LC_ALL: 'C' };
  const columns = ['-o', 'state=', '-o', 'lstart='];
  const { stdout } = spawnSync('ps', [...columns, '-p', `${pid}`], { encoding: 'utf8', env });
  const [state, ...time] = (stdout ?? '').trim().split(/ +/);
  if (!state || time.length === 0) return undefined;
  return { state, start: `${Date.parse(time.join(' '))}`, slack: CLOCK_SLACK_MS };
}
