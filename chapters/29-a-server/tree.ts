// tree.ts: the texts of a folder, in memory. The first look reads every file; each later one only
// looks at times, and reads what has changed.
//
// Chapter 16 judges each path and holds its folder for each file it opens: right for one file, and
// far too slow for three thousand. Here a folder is judged and held once, for all the files in it.

import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  realpathSync,
  type Dirent,
  type Stats,
} from 'node:fs';
import { join } from 'node:path';
import { setImmediate as breathe } from 'node:timers/promises';
import { reasonFor, reasonForLinks } from '../16-hands/delicate.ts';
import { GitIgnore } from '../16-hands/gitignore.ts';
import { SKIPPED_FOLDERS, slashed } from '../16-hands/more/glob.ts';
import type { Roots } from '../16-hands/paths.ts';

const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0, O_DIRECTORY = 0 } = constants;
const CAN_HOLD = existsSync('/proc/self/fd');
const MAX_FILE = 10 * 2 ** 20;
const MAX_TEXT = 512 * 2 ** 20;
const MAX_ENTRIES = 200_000;
const TURN_MS = 8; // then timers and other calls get their turn
const YOUNG_MS = 2000; // a file this young can change again without another time

export type SourceFile = {
  path: string; // as shown: relative to the folder, with "/"
  real: string;
  bytes: Buffer; // in memory that a thread can share
  version: number; // another one after each change
  stamp: Stamp;
};
type Stamp = { mtimeMs: number; ctimeMs: number; size: number; seenAt: number };
/** Why a file is not among the texts. */
type Reason = 'binary' | 'hidden' | 'tooLarge' | 'tooMany';

type TreeOptions = {
  roots: Roots;
  isHidden?: (real: string) => boolean;
  maxText?: number; // bytes of all files together
  onChange?: () => void; // files have come, gone or changed
};

export class CodeTree {
  readonly files = new Map<string, SourceFile>(); // by real path
  reads = 0; // of files, so far
  notes: string[] = []; // what was left out at the last look
  private options: TreeOptions;
  private others = new Map<string, { stamp: Stamp; why: Reason }>(); // that are not text, say
  private bytes = 0;
  private changes = 0;
  private looking?: Promise<void>;

  constructor(options: TreeOptions) {
    this.options = options;
  }

  /** Brings the texts up to date. Several callers share one look. */
  async refresh(signal?: AbortSignal): Promise<void> {
    this.looking ??= this.look().finally(() => {
      this.looking = undefined;
    });
    await this.looking;
    signal?.throwIfAborted();
  }

  /** Files in the order of their paths. */
  list(): SourceFile[] {
    const all = [...this.files.values()];
    return all.sort((one, two) => (one.path < two.path ? -1 : 1));
  }

  private async look() {
    const before = this.changes;
    const look = new FolderScan();
    for (const root of this.options.roots.folders) await this.walk(root, look);
    for (const [real, file] of this.files) if (!look.files.has(real)) this.drop(file);
    for (const real of this.others.keys()) if (!look.files.has(real)) this.others.delete(real);
    this.notes = look.notes();
    if (this.changes !== before && before > 0) this.options.onChange?.();
  }

  private async walk(root: string, look: FolderScan) {
    const ignore = await GitIgnore.from(root, this.options.roots.topOf(root));
    const waiting = [root];
    for (let real = waiting.pop(); real !== undefined; real = waiting.pop()) {
      if (look.folders.has(real) || look.isFull) continue;
      look.folders.add(real);
      let held: HeldFolder | undefined;
      try {
        held = holdFolder(real);
        const found = readdirSync(held.at('.'), { withFileTypes: true });
        await ignore.enter(
          real,
          found.some(({ name }) => name === '.gitignore'),
        );
        const folders: string[] = [];
        for (const entry of found.sort((one, two) => (one.name < two.name ? -1 : 1))) {
          if (!this.isWanted(join(real, entry.name), entry, ignore, look)) continue;
          if (entry.isDirectory()) folders.push(join(real, entry.name));
          else this.update(join(real, entry.name), entry.name, held, look);
          if (look.isLong) await look.turn();
        }
        waiting.push(...folders.reverse());
      } catch {
        // It is gone, not open to us, or a link is there now.
      } finally {
        held?.close();
      }
    }
  }

  private isWanted(path: string, entry: Dirent, ignore: GitIgnore, look: FolderScan) {
    const isFolder = entry.isDirectory();
    if (++look.entries > MAX_ENTRIES) look.isFull = true;
    if (!isFolder && !entry.isFile()) return false; // a link leads elsewhere, a FIFO never ends
    if (isFolder && SKIPPED_FOLDERS.includes(entry.name)) return false;
    if (ignore.leavesOut(path, isFolder)) return false;
    const isSecret = () => reasonFor('secret', isFolder ? join(path, 'x') : path) !== undefined;
    const mayHide = !this.files.has(path) && isSecret(); // what is known was judged before
    const isHidden = mayHide || (!isFolder && this.options.isHidden?.(path));
    if (isHidden) look.skip('hidden');
    return !isHidden;
  }

  private update(real: string, name: string, held: HeldFolder, look: FolderScan) {
    const known = this.files.get(real);
    const before = known ?? this.others.get(real);
    const stats = before && lstatSync(real, { throwIfNoEntry: false });
    if (before && stats?.isFile() && isSettled(before.stamp, stampOf(stats))) {
      look.files.add(real);
      if ('why' in before) look.skip(before.why);
      return;
    }
    let fd: number | undefined;
    try {
      fd = openSync(held.at(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
      const opened = fstatSync(fd);
      if (!opened.isFile()) return;
      look.files.add(real);
      this.take(real, fd, opened, known, look);
    } catch {
      return; // not open to us, or gone by now
    } finally {
      if (fd !== undefined) closeSync(fd);
    }
  }

  private take(
    real: string,
    fd: number,
    stats: Stats,
    known: SourceFile | undefined,
    look: FolderScan,
  ) {
    const stamp = stampOf(stats);
    const why = this.reasonAgainst(real, stats);
    const bytes = why ? undefined : this.read(fd, stats.size);
    if (!bytes || bytes.includes(0)) {
      if (known) this.drop(known);
      this.others.set(real, { stamp, why: why ?? 'binary' });
      look.skip(why ?? 'binary');
    } else if (known?.bytes.equals(bytes))
      known.stamp = stamp; // only touched
    else this.keep(real, bytes, stamp, known);
  }

  private reasonAgainst(real: string, { nlink, size }: Stats): Reason | undefined {
    if (reasonForLinks(real, nlink)) return 'hidden';
    if (size > MAX_FILE) return 'tooLarge';
    return this.bytes + size > (this.options.maxText ?? MAX_TEXT) ? 'tooMany' : undefined;
  }

  private read(fd: number, size: number): Buffer {
    this.reads++;
    const bytes = Buffer.from(new SharedArrayBuffer(size));
    let length = 0;
    while (length < size) {
      const read = readSync(fd, bytes, length, size - length, null);
      if (read === 0) break; // it has become shorter
      length += read;
    }
    return bytes.subarray(0, length);
  }

  private keep(real: string, bytes: Buffer, stamp: Stamp, known?: SourceFile) {
    if (known) this.drop(known);
    this.others.delete(real);
    const path = slashed(this.options.roots.show(real));
    const version = ++this.changes;
    this.files.set(real, { path, real, bytes, version, stamp });
    this.bytes += bytes.length;
  }

  private drop({ real, bytes }: SourceFile) {
    this.files.delete(real);
    this.changes++;
    this.bytes -= bytes.length;
  }
}

/** What one look has come across. */
class FolderScan {
  files = new Set<string>();
  folders = new Set<string>();
  entries = 0;
  isFull = false;
  private skipped = { binary: 0, hidden: 0, tooLarge: 0, tooMany: 0 };
  private since = performance.now();

  skip(why: Reason) {
    this.skipped[why]++;
  }

  get isLong(): boolean {
    return performance.now() - this.since > TURN_MS;
  }

  async turn() {
    await breathe();
    this.since = performance.now();
  }

  notes() {
    const { hidden, tooLarge, tooMany } = this.skipped;
    const notes = [
      hidden > 0 && `${hidden} files that may hold secrets were left out`,
      tooLarge > 0 && `${tooLarge} files over ${MAX_FILE} bytes were left out`,
      tooMany > 0 && `${tooMany} files were left out: the folder has too much text`,
      this.isFull && `only the first ${MAX_ENTRIES} files and folders were looked at`,
    ];
    return notes.filter((note) => note !== false);
  }
}

// ─── Holding a folder ─────────────────────────────────────────────────────────────────────────

/** An open folder that is where we think it is. From now on no link can be put in its place. Elsewhere
 *  than on Linux we can only look before. */
function holdFolder(real: string) {
  const fd = CAN_HOLD ? openSync(real, O_RDONLY | O_DIRECTORY | O_NOFOLLOW) : undefined;
  const close = () => {
    if (fd !== undefined) closeSync(fd);
  };
  const handle = CAN_HOLD ? `/proc/self/fd/${fd}` : real;
  if ((CAN_HOLD ? readlinkSync(handle) : realpathSync.native(real)) !== real) {
    close();
    throw new Error(`${real} is not what it was`);
  }
  return { at: (name: string) => `${handle}/${name}`, close };
}

type HeldFolder = ReturnType<typeof holdFolder>;

function stampOf({ mtimeMs, ctimeMs, size }: Stats): Stamp {
  return { mtimeMs, ctimeMs, size, seenAt: Date.now() };
}

/** The same times and size, and the time was not a moment ago when we last looked: a second change
 *  within the tick of the clock would have the same time. A program can set the time of a file back
 *  (mtime), but not that of this change (ctime). */
function isSettled(known: Stamp, now: Stamp): boolean {
  const isSameTime = known.mtimeMs === now.mtimeMs && known.ctimeMs === now.ctimeMs;
  const isOld = known.seenAt - known.mtimeMs > YOUNG_MS;
  return isSameTime && known.size === now.size && isOld;
}
