// paths.ts: where a path really leads, and how to open exactly that.
//
// The model names a path, somebody judges it, and later a tool opens it. Each step is a chance to be fooled: by "..",
// by a link, by a folder that begins like ours, by a link that was put in place after the judgement.

import { randomUUID } from 'node:crypto';
import { constants, existsSync, readlinkSync, realpathSync, statSync, type Stats } from 'node:fs';
import {
  lstat,
  mkdir,
  open,
  readlink,
  realpath,
  rename,
  rm,
  stat,
  type FileHandle,
} from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, delimiter, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { reasonFor, reasonForLinks, type Delicacy } from './delicate.ts';

// ─── Judging ──────────────────────────────────────────────────────────────────────────────────────────────────

const MAX_PATH = 4096;

export type Location = {
  shown: string; // the path as the model gave it
  named: string; // the same, absolute
  real: string; // where it leads: absolute, every link followed, also if nothing is there yet
  inside: boolean; // under the working folder or one that the user added: only there tools may write
  readable: boolean; // inside, or in a folder of our own that anybody may read
  secret?: string; // why it may hold secrets: nobody should read or write it unasked
  fence?: string; // why a change may start programs or free the agent: nobody should write it unasked
  build?: string; // why a change may run with the next build: to be asked once, at least
};

export class Roots {
  readonly cwd: string;
  private roots: string[];
  private readOnlyRoots: string[];
  private programFolders: string[]; // those of your PATH

  /** `more` are folders to work in besides `cwd`. `readOnlyRoots` may be read freely and never written. */
  constructor(cwd: string, more: string[] = [], readOnlyRoots: string[] = []) {
    this.roots = [cwd, ...more].map((folder) => realpathSync.native(resolve(cwd, folder)));
    this.cwd = this.roots[0]!;
    this.readOnlyRoots = readOnlyRoots.map((folder) => follow(resolve(cwd, folder))); // may not be there yet
    const parts = (process.env.PATH ?? '').split(delimiter).filter((part) => part !== '');
    this.programFolders = parts.map((part) => resolve(this.cwd, part));
  }

  /** The folders to work in. */
  get folders(): readonly string[] {
    return this.roots;
  }

  /** One more folder to work in, from now on. Throws if there is none of that name. */
  add(folder: string): string {
    const real = realpathSync.native(resolve(this.cwd, folder));
    if (!statSync(real).isDirectory()) throw new Error(`${folder} is not a folder`);
    if (!this.roots.includes(real)) this.roots.push(real);
    return real;
  }

  /** Judges a path as a model gave it. Throws if it cannot be one, or if its links lead nowhere. */
  locate(path: string): Location {
    if (path.includes('\0'))
      throw new Error('a path cannot contain a NUL character; give another path');
    if (path.length > MAX_PATH)
      throw new Error(`a path cannot have more than ${MAX_PATH} characters; give another path`);
    const expanded = /^~(?=$|[\\/])/.test(path) ? homedir() + path.slice(1) : path;
    const named = resolve(this.cwd, expanded);
    const real = follow(named);
    const isReadOnly = this.readOnlyRoots.some((root) => isUnder(root, real));
    const inside = !isReadOnly && this.roots.some((root) => isUnder(root, real));
    // A harmless name can lead to a secret, and a secret's name to a harmless place: both count.
    const reason = (kind: Delicacy) => reasonFor(kind, real) ?? reasonFor(kind, named);
    const linked = reasonForLinks(real, linksOf(real));
    const isCommand = [named, real].some((path) => this.programFolders.includes(dirname(path)));
    return {
      shown: path,
      named,
      real,
      inside,
      readable: inside || isReadOnly,
      secret: isReadOnly ? undefined : (reason('secret') ?? linked), // what is there, we have put there
      fence: reason('fence') ?? (isCommand ? 'it would be a command on your PATH' : undefined),
      build: reason('build'),
    };
  }

  /** The folder that was given to us, and in which a real path is; the path itself, if it is in none. */
  topOf(real: string): string {
    return this.roots.find((root) => isUnder(root, real)) ?? real;
  }

  /** A real path in the words that the model uses: relative to the working folder, if it is in there. */
  show(real: string): string {
    return isUnder(this.cwd, real) ? relative(this.cwd, real) || '.' : real;
  }
}

/** Not startsWith: /work/app-evil begins with /work/app, but is not in it. */
export function isUnder(root: string, path: string): boolean {
  const way = relative(root, path);
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** realpath for files that do not exist yet. A link that leads nowhere counts as well: to write "through" it creates
 *  the file at its other end, so that end is what must be judged. */
function follow(path: string, hops = 0): string {
  if (hops > 40) throw new Error(`${path} is a link that leads back to itself; remove the link`);
  try {
    return realpathSync.native(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ELOOP') return follow(path, Infinity);
    if (code !== 'ENOENT' && code !== 'ENOTDIR')
      throw new Error(`cannot tell where ${path} leads: ${code}`);
  }
  const parent = follow(dirname(path), hops);
  const target = linkTarget(path);
  return target === undefined
    ? join(parent, basename(path))
    : follow(resolve(parent, target), hops + 1);
}

/** How many names a file has. */
function linksOf(path: string) {
  try {
    const stats = statSync(path);
    return stats.isFile() ? stats.nlink : 1;
  } catch {
    return 1; // there is none
  }
}

function linkTarget(path: string) {
  try {
    return readlinkSync(path);
  } catch {
    return undefined; // nothing is there, or no link
  }
}

// ─── Opening what was judged ──────────────────────────────────────────────────────────────────────────────────

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL } = constants;
const { O_NOFOLLOW = 0, O_NONBLOCK = 0, O_DIRECTORY = 0 } = constants; // Windows has none of these
const CAN_HOLD = existsSync('/proc/self/fd');

function swapped(path: string) {
  return new Error(
    `${path} is no longer what was judged: a folder or a link on the way has changed; try again`,
  );
}

/**
 * Works in a folder that was judged, although its path may lead elsewhere by now. On Linux we hold the folder open,
 * look where it is, and go on from that handle, which no swap can change. Elsewhere we can only look before, and after
 * opening a file once more: a moment remains in which a new file can end up on the wrong side.
 */
async function within<T>(folder: string, act: (path: string) => Promise<T>): Promise<T> {
  if (!CAN_HOLD) {
    if ((await realpath(folder)) !== folder) throw swapped(folder);
    return act(folder);
  }
  const held = await open(folder, O_RDONLY | O_DIRECTORY);
  try {
    const handle = `/proc/self/fd/${held.fd}`;
    if ((await readlink(handle)) !== folder) throw swapped(folder);
    return await act(handle);
  } finally {
    await held.close();
  }
}

/** Opens an existing regular file. An error has a `code` if the system gave it, such as ENOENT. */
export async function openFile(location: Location, flags = O_RDONLY): Promise<FileHandle> {
  const { shown, real } = location;
  return explained(shown, 'open', () =>
    within(dirname(real), async (folder) => {
      const path = join(folder, basename(real));
      mustBeFile(shown, await lstat(path)); // before opening: that alone rewinds a tape, and waits at a FIFO
      const file = await open(path, flags | O_NOFOLLOW | O_NONBLOCK);
      try {
        const opened = await file.stat();
        mustBeFile(shown, opened);
        if (!CAN_HOLD && ((await realpath(real)) !== real || (await stat(real)).ino !== opened.ino))
          throw swapped(real);
        return file;
      } catch (error) {
        await file.close();
        throw error;
      }
    }),
  );
}

/** Puts a whole file in place, with its parents if need be: never half of it, and never through a link. */
export async function replaceProjectFile(
  location: Location,
  content: string,
  mode?: number,
): Promise<Stats> {
  const { shown, real } = location;
  return explained(shown, 'write', async () => {
    await makeFolder(dirname(real));
    return within(dirname(real), async (folder) => {
      const draft = join(folder, `.${randomUUID()}.tmp`);
      try {
        const written = await writeDraft(draft, content, mode);
        await rename(draft, join(folder, basename(real)));
        return written;
      } catch (error) {
        await rm(draft, { force: true });
        throw error;
      }
    });
  });
}

/** Removes one that was judged: never what a link leads to. */
export function removeProjectFile({ shown, real }: Location): Promise<void> {
  return explained(shown, 'remove', () =>
    within(dirname(real), (folder) => rm(join(folder, basename(real)))),
  );
}

async function writeDraft(draft: string, content: string, mode?: number) {
  const file = await open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode ?? 0o666); // no wider, not even briefly
  try {
    await file.writeFile(content);
    if (mode !== undefined) await file.chmod(mode); // the umask may have taken something away
    return await file.stat();
  } finally {
    await file.close();
  }
}

async function makeFolder(folder: string) {
  if (await lstat(folder).catch(() => undefined)) return;
  await makeFolder(dirname(folder)); // one by one: `recursive` would follow a link that appears on the way
  await within(dirname(folder), (parent) => mkdir(join(parent, basename(folder))));
}

function mustBeFile(shown: string, stats: Stats) {
  if (stats.isDirectory()) throw new Error(`${shown} is a folder. Use glob to see what is in it.`);
  if (stats.isSymbolicLink()) throw swapped(shown); // where a link leads was judged, so here stood none
  if (!stats.isFile())
    throw new Error(`${shown} is a FIFO, a socket or a device, not a regular file; use bash`);
}

/** The system's own message would name a handle in /proc, which says nothing to anybody. */
async function explained<T>(shown: string, what: string, act: () => Promise<T>) {
  try {
    return await act();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (!code) throw error;
    const reasons: Record<string, string> = {
      ENOENT: 'there is no such file',
      EACCES: 'permission denied',
      EROFS: 'the disk is read-only',
      ENOSPC: 'the disk is full',
      ENOTDIR: 'a part of its path is a file',
      ELOOP: 'a link was put there just now',
    };
    throw Object.assign(new Error(`cannot ${what} ${shown}: ${reasons[code] ?? code}`), { code });
  }
}
