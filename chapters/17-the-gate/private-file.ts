// A file for the user alone: others cannot read it, and what they may have planted in its place is not used.

import {
  chmodSync, lstatSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync,
} from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { isObject, type Json } from '../../mcp.ts';

const LOCK_TRIES = 150;
const LOCK_WAIT_MS = 20;
const MAX_TURN_MS = 60_000;
const HALF_MADE_MS = 1000;
const CLOCK_SLACK_MS = 2000;

/** Is it an object in which these are texts? */
export const hasTexts = (row: unknown, ...names: string[]): row is Json =>
  isObject(row) && names.every((name) => typeof row[name] === 'string');

/** A JSON file in the user's home, where no project can write. `isSound` tells whether the content has the shape that it
 *  should have, and `empty` stands for a file that is not there yet. */
export class PrivateFile<T extends { version: number }> {
  readonly folder: string; // empty if the home folder is not an absolute path
  readonly file: string;
  private empty: T;
  private isSound: (value: Json) => boolean;
  private last?: { version: string; content: T }; // the file as it was read last

  constructor(home: string, name: string, empty: T, isSound: (value: Json) => boolean) {
    this.folder = isAbsolute(home) ? join(home, '.mcp-by-hand') : ''; // a relative home may be in the project
    this.file = join(this.folder, name);
    this.empty = empty;
    this.isSound = isSound;
  }

  /** Throws with the reason if the file cannot be used. To look at only: the next reader may get the same object. */
  read(): T {
    if (this.folder === '') throw new Error('the home folder is not an absolute path');
    let version = '';
    for (const path of [this.folder, this.file]) {
      const stat = lstatSync(path, { throwIfNoEntry: false });
      if (!stat) return structuredClone(this.empty);
      const isFolder = path === this.folder;
      version = `${stat.ino} ${stat.mtimeMs} ${stat.size}`;
      const isOdd = isFolder ? !stat.isDirectory() : !stat.isFile(); // planted, maybe
      if (isOdd) throw new Error(`${path} is a link, or no ${isFolder ? 'folder' : 'file'}`);
      if (process.getuid && stat.uid !== process.getuid()) throw new Error(`${path} belongs to somebody else`);
      if (process.platform === 'win32') continue; // modes mean nothing there
      if (stat.mode & 0o022) throw new Error(`others may write to ${path}`);
      if (stat.mode & 0o077) chmodSync(path, isFolder ? 0o700 : 0o600);
    }
    if (this.last?.version === version) return this.last.content;
    const content = this.checked(JSON.parse(readFileSync(this.file, 'utf8')));
    this.last = { version, content };
    return content;
  }

  private checked(value: unknown): T {
    if (!isObject(value)) throw new Error('it holds no JSON object');
    const { version } = this.empty;
    if (value.version !== version)
      throw new Error(`its version is ${JSON.stringify(value.version)}, and this program knows ${version}`);
    if (!this.isSound(value)) throw new Error('its content has another shape than this program writes');
    return value as unknown as T;
  }

  /** Reads, changes and writes under a lock, so that two programs at once lose nothing. Throws with the reason if
   *  that fails; a damaged file is left as it is. */
  change(edit: (content: T) => void, lockTries = LOCK_TRIES): void {
    if (this.folder === '') throw new Error('the home folder is not an absolute path');
    mkdirSync(this.folder, { recursive: true, mode: 0o700 });
    const unlock = lock(`${this.file}.lock`, lockTries);
    try {
      const content = structuredClone(this.read());
      edit(content);
      const fresh = `${this.file}.${process.pid}`;
      rmSync(fresh, { force: true }); // of a program that died: in a container they all have the same pid
      writeFileSync(fresh, JSON.stringify(content, null, 2), { mode: 0o600, flag: 'wx' });
      renameSync(fresh, this.file); // at once: never half a file
    } finally {
      unlock();
    }
  }
}

function lock(file: string, most: number): () => void {
  for (let tries = 0; tries < most; tries++) {
    const unlock = takeLock(file);
    if (unlock) return unlock;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOCK_WAIT_MS);
  }
  throw new Error(`${file} is in the way; if no other mcp-by-hand is running, delete it`);
}

/** A file that says whose turn it is. Gives back how to end the turn; nothing if it is somebody else's. */
export function takeLock(file: string): (() => void) | undefined {
  try {
    writeFileSync(file, `${process.pid}`, { mode: 0o600, flag: 'wx' });
    return () => rmSync(file, { force: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    if (!isLeft(file)) return undefined;
    rmSync(file, { force: true });
    return takeLock(file);
  }
}

/** Is whoever made it gone? Another process may have its number by now, so look when that began. */
function isLeft(file: string): boolean {
  try {
    const { mtimeMs: madeAt } = statSync(file);
    const age = Math.abs(Date.now() - madeAt); // clocks are set back, too
    const pid = Number(readFileSync(file, 'utf8'));
    if (age > MAX_TURN_MS) return true;
    if (!(pid > 0)) return age > HALF_MADE_MS; // its maker died before it wrote its number
    process.kill(pid, 0); // throws if there is no such process
    return madeAt + CLOCK_SLACK_MS < startOf(pid);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'; // there is no such process
  }
}

/** When a process began, as far as we can tell. In a container we have the number of those before us. */
function startOf(pid: number): number {
  if (pid === process.pid) return performance.timeOrigin;
  if (process.platform !== 'linux') return 0;
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const afterName = stat.slice(stat.lastIndexOf(')') + 2); // the name may hold anything
  const sinceBoot = afterName.split(' ')[19]; // in 1/100 s
  const bootedAt = /^btime (\d+)/m.exec(readFileSync('/proc/stat', 'utf8'))?.[1]; // in seconds
  return Number(bootedAt) * 1000 + Number(sinceBoot) * 10;
}
