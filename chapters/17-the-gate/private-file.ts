// A file for the user alone: others cannot read it, and what they may have planted in its place is not used.

import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';
import { isObject, type Json } from '../../mcp.ts';
import { waitForLock, type Lock } from './lock.ts';
import { inertJson } from './safe-text.ts';

const NO_HOME = 'the home folder is not an absolute path; set HOME';
const TO_DISK = { flush: true }; // some disks say only then that they are full
const MOVE_IT = 'move it away';

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
      if (isOdd)
        throw new Error(`${path} is a link, or no ${isFolder ? 'folder' : 'file'}; ${MOVE_IT}`);
      if (process.getuid && stat.uid !== process.getuid())
        throw new Error(`${path} belongs to somebody else; ${MOVE_IT}`);
      if (process.platform === 'win32') continue; // modes mean nothing there
      if (stat.mode & 0o022)
        throw new Error(`others may write to ${path}; look at it, then chmod go-w`);
      if (stat.mode & 0o077) chmodSync(path, isFolder ? 0o700 : 0o600);
    }
    if (this.last?.version === version) return this.last.content;
    const content = this.checked(parsed(readFileSync(this.file, 'utf8')));
    this.last = { version, content };
    return content;
  }

  private checked(value: unknown) {
    if (!isObject(value)) throw damaged('it holds no JSON object');
    const { version } = this.empty;
    if (value.version !== version)
      throw damaged(
        `its version is ${JSON.stringify(value.version)}, and this program knows ${version}`,
      );
    if (!this.isSound(value))
      throw damaged('its content has another shape than this program writes');
    return value as unknown as T;
  }

  /** Reads, changes and writes under a lock, so that two programs at once lose nothing. Throws with the reason if
   *  that fails; a damaged file is left as it is, and none is damaged by us. */
  change(edit: (content: T) => void, mostMs?: number): void {
    if (this.folder === '') throw new Error(NO_HOME);
    const lock = lockFor(this.file, mostMs);
    try {
      const content = structuredClone(this.read());
      edit(content);
      replacePrivateFile(this.file, this.readable(content), 0o600, lock);
    } finally {
      lock.release();
    }
  }

  /** JSON turns Infinity into null, and leaves out what is undefined. So the reader looks at the
   *  text first: one that it refuses would take along everything else in the file. */
  private readable(content: T) {
    const json = inertJson(JSON.stringify(content, null, 2));
    try {
      this.checked(JSON.parse(json));
      return json;
    } catch {
      throw new NotWritten(
        'what was to be kept could not be read again, so it was not written; correct it',
      );
    }
  }
}

/** For who wants to change a file, in a folder that need not be there yet. */
export function lockFor(file: string, mostMs?: number): Lock {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    return waitForLock(`${file}.lock`, mostMs);
  } catch (error) {
    throw cannotWrite(file, error);
  }
}

/** At once: never half a file. Throws with the reason, and then nothing has changed. The lock is the
 *  file's: who writes without it would write what another program writes, too. */
export function replacePrivateFile(file: string, text: string, mode: number, lock: Lock): void {
  const fresh = `${file}.mcp-by-hand`;
  try {
    rmSync(fresh, { force: true }); // of a program that died: under the lock it is nobody else's
    writeFileSync(fresh, text, { mode, flag: 'wx', ...TO_DISK });
    if (!lock.isOurs()) throw new Error(`${file} is being changed by another program; try again`);
    renameSync(fresh, file);
  } catch (error) {
    rmSync(fresh, { force: true }); // half of it, on a full disk
    throw cannotWrite(file, error);
  }
}

/** The system's own errors, such as EROFS, say what is the matter, but not what that means. */
function cannotWrite(path: string, error: unknown) {
  const { code, message } = error as NodeJS.ErrnoException;
  return code
    ? new Error(`${path} could not be written (${message}); make that possible`)
    : (error as Error);
}

const damaged = (why: string) => new Error(`${why}; restore it, or ${MOVE_IT}`);

/** JSON.parse quotes what it stumbles over, and that may be a secret. */
function parsed(text: string) {
  try {
    return JSON.parse(text);
  } catch {
    throw damaged('it is not JSON');
  }
}
