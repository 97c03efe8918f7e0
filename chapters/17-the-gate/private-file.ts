// A file for the user alone: others cannot read it, and what they may have planted in its place is not used.

import {
  chmodSync, lstatSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync,
} from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { isObject, type Json } from '../../mcp.ts';
import { inertJson } from './safe-text.ts';

const LOCK_TRIES = 150;
const LOCK_WAIT_MS = 20;
const MAX_TURN_MS = 60_000;
const NO_HOME = 'the home folder is not an absolute path; set HOME';
const MOVE_IT = 'move it away';
const HALF_MADE_MS = 1000;
const CLOCK_SLACK_MS = 2000;

/** Is it an object in which these are texts? */
export const hasTexts = (row: unknown, ...names: string[]): row is Json =>
  isObject(row) && names.every((name) => typeof row[name] === 'string');

/** What was to be written could not be read again. The file is as it was before. */
export class NotWritten extends Error {}

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

  /** Throws with the reason, and what to do about it, if the file cannot be used. To look at only: the next reader may
   *  get the same object. */
  read(): T {
    if (this.folder === '') throw new Error(NO_HOME);
    let version = '';
    for (const path of [this.folder, this.file]) {
      const stat = lstatSync(path, { throwIfNoEntry: false });
      if (!stat) return structuredClone(this.empty);
      const isFolder = path === this.folder;
      version = `${stat.ino} ${stat.mtimeMs} ${stat.size}`;
      const isOdd = isFolder ? !stat.isDirectory() : !stat.isFile(); // planted, maybe
      if (isOdd) throw new Error(`${path} is a link, or no ${isFolder ? 'folder' : 'file'}; ${MOVE_IT}`);
      if (process.getuid && stat.uid !== process.getuid())
        throw new Error(`${path} belongs to somebody else; ${MOVE_IT}`);
      if (process.platform === 'win32') continue; // modes mean nothing there
      if (stat.mode & 0o022) throw new Error(`others may write to ${path}; look at it, then chmod go-w`);
      if (stat.mode & 0o077) chmodSync(path, isFolder ? 0o700 : 0o600);
    }
    if (this.last?.version === version) return this.last.content;
    const content = this.checked(parsed(readFileSync(this.file, 'utf8')));
    this.last = { version, content };
    return content;
  }

  private checked(value: unknown): T {
    if (!isObject(value)) throw damaged('it holds no JSON object');
    const { version } = this.empty;
    if (value.version !== version)
      throw damaged(`its version is ${JSON.stringify(value.version)}, and this program knows ${version}`);
    if (!this.isSound(value)) throw damaged('its content has another shape than this program writes');
    return value as unknown as T;
  }

  /** Reads, changes and writes under a lock, so that two programs at once lose nothing. Throws with the reason if
   *  that fails; a damaged file is left as it is, and none is damaged by us. */
  change(edit: (content: T) => void, lockTries = LOCK_TRIES): void {
    if (this.folder === '') throw new Error(NO_HOME);
    const unlock = this.lock(lockTries);
    try {
      const content = structuredClone(this.read());
      edit(content);
      replaceFile(this.file, this.readable(content), 0o600);
    } finally {
      unlock();
    }
  }

  private lock(tries: number): () => void {
    try {
      mkdirSync(this.folder, { recursive: true, mode: 0o700 });
      return lock(`${this.file}.lock`, tries);
    } catch (error) {
      throw cannotWrite(this.folder, error);
    }
  }

  /** JSON turns Infinity into null, and leaves out what is undefined. So the reader looks at the
   *  text first: one that it refuses would take along everything else in the file. */
  private readable(content: T): string {
    const json = inertJson(JSON.stringify(content, null, 2));
    try {
      this.checked(JSON.parse(json));
      return json;
    } catch {
      throw new NotWritten('what was to be kept could not be read again, so it was not written; correct it');
    }
  }
}

/** At once: never half a file. Throws with the reason, and then nothing has changed. */
export function replaceFile(file: string, text: string, mode: number): void {
  const fresh = `${file}.${process.pid}`;
  try {
    rmSync(fresh, { force: true }); // of a program that died: in a container they all have the same pid
    writeFileSync(fresh, text, { mode, flag: 'wx' });
    renameSync(fresh, file);
  } catch (error) {
    rmSync(fresh, { force: true }); // half of it, on a full disk
    throw cannotWrite(file, error);
  }
}

/** The system's own errors, such as EROFS, say what is the matter, but not what that means. */
function cannotWrite(path: string, error: unknown): Error {
  const { code, message } = error as NodeJS.ErrnoException;
  return code ? new Error(`${path} could not be written (${message}); make that possible`) : (error as Error);
}

const damaged = (why: string) => new Error(`${why}; restore it, or ${MOVE_IT}`);

/** JSON.parse quotes what it stumbles over, and that may be a secret. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw damaged('it is not JSON');
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
