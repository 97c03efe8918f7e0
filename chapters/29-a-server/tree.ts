// tree.ts: the texts of a folder, in memory. The first look reads every file; each later one only
// looks at times, and reads what has changed.
//
// Chapter 16 judges each path and holds its folder for each file it opens: right for one file, and
// far too slow for three thousand. Here a folder is judged and held once, for all the files in it.

import { closeSync, constants, existsSync, fstatSync, lstatSync, openSync } from 'node:fs';
import { readdirSync, readlinkSync, readSync, realpathSync } from 'node:fs';
import type { Dirent, Stats } from 'node:fs';
import { basename, dirname, join, sep } from 'node:path';
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
const RULES = '.gitignore';
const FIRST_SLAB = 2 ** 17;
const SLAB = 2 ** 22; // texts lie side by side in pieces of memory that a thread can share
const TURN_MS = 8; // then timers and other calls get their turn
const YOUNG_MS = 2000; // a file this young can change again without another time

export type SourceFile = {
  path: string; // as shown: relative to the folder, with "/"
  real: string;
  bytes: Buffer;
  slab: number; // where they are, for the searcher's thread
  offset: number;
  version: number; // another one after each change
  stamp: Stamp;
};
type Stamp = { mtimeMs: number; ctimeMs: number; size: number; seenAt: number };
/** What is in a folder, and how many files there may hold secrets. */
type Folder = { stamp: Stamp; files: string[]; folders: string[]; hidden: number; rules?: Stamp };
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
  readonly slabs: Buffer[] = [];
  readonly counts = { looks: 0, reads: 0, listings: 0 };
  notes: string[] = []; // what was left out at the last look
  private options: TreeOptions;
  private others = new Map<string, { stamp: Stamp; why: Reason }>(); // that are not text, say
  private folders = new Map<string, Folder>();
  private used = 0; // of the last slab
  private waste = 0;
  private bytes = 0;
  private changes = 0;
  private lastShown = { folder: '', words: '' };
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

  private async look(): Promise<void> {
    this.counts.looks++;
    const before = this.changes;
    if (this.waste > SLAB && this.waste > this.bytes / 2) this.forget();
    const look = new FolderScan();
    for (const root of this.options.roots.folders) {
      const ignore = new Ignored(root, this.options.roots.topOf(root));
      await this.walk(root, ignore, look);
    }
    for (const [real, file] of this.files) if (!look.files.has(real)) this.drop(file);
    for (const real of this.others.keys()) if (!look.files.has(real)) this.others.delete(real);
    for (const real of this.folders.keys()) if (!look.folders.has(real)) this.folders.delete(real);
    this.notes = look.notes();
    if (this.changes !== before && before > 0) this.options.onChange?.();
  }

  /** Removed and changed files leave holes. Now and then it is cheaper to read everything again. */
  private forget(): void {
    this.files.clear();
    this.slabs.length = 0;
    this.used = 0;
    this.others.clear();
    this.waste = 0;
    this.bytes = 0;
  }

  private async walk(root: string, ignore: Ignored, look: FolderScan): Promise<void> {
    const waiting = [root];
    for (let real = waiting.pop(); real !== undefined; real = waiting.pop()) {
      const stats = lstatSync(real, { throwIfNoEntry: false });
      if (look.folders.has(real) || look.isFull || !stats?.isDirectory()) continue;
      look.folders.add(real);
      const held = holdFolder(real);
      try {
        const folder = await this.entries(real, stampOf(stats), held, ignore, look);
        waiting.push(...folder.folders.toReversed());
        for (const name of folder.files) {
          this.update(join(real, name), name, held, look);
          if (look.isLong) await look.turn();
        }
      } catch {
        // It is gone, not open to us, or a link is there now.
      } finally {
        held.close();
      }
    }
  }

  /** What is in a folder. Its time says whether that can have changed. */
  private async entries(
    real: string,
    stamp: Stamp,
    held: HeldFolder,
    ignore: Ignored,
    look: FolderScan,
  ): Promise<Folder> {
    const known = this.folders.get(real);
    const rules = known?.rules && rulesIn(real);
    if (
      known &&
      !ignore.hasChanged &&
      isSettled(known.stamp, stamp) &&
      sameRules(known.rules, rules)
    ) {
      look.entries += known.files.length + known.folders.length;
      look.hidden += known.hidden;
      return known;
    }
    this.counts.listings++;
    const found = readdirSync(held.at('.'), { withFileTypes: true });
    const hasRules = found.some(({ name }) => name === RULES);
    const folder: Folder = { stamp, files: [], folders: [], hidden: 0 };
    if (hasRules) folder.rules = rulesIn(real);
    if (known && !sameRules(known.rules, folder.rules)) ignore.hasChanged = true; // for all below
    await ignore.enter(real);
    for (const entry of found.sort((one, two) => (one.name < two.name ? -1 : 1))) {
      this.sort(real, entry, ignore, folder, look);
    }
    look.hidden += folder.hidden;
    this.folders.set(real, folder);
    return folder;
  }

  private sort(
    real: string,
    entry: Dirent,
    ignore: Ignored,
    folder: Folder,
    look: FolderScan,
  ): void {
    const path = join(real, entry.name);
    const isFolder = entry.isDirectory();
    if (++look.entries > MAX_ENTRIES) look.isFull = true;
    if (!isFolder && !entry.isFile()) return; // a link leads elsewhere, a FIFO never ends
    if (isFolder && SKIPPED_FOLDERS.includes(entry.name)) return;
    if (ignore.leavesOut(path, isFolder)) return;
    if (isFolder && reasonFor('secret', join(path, 'x')))
      folder.hidden++; // all that is in it
    else if (isFolder) folder.folders.push(path);
    else if (reasonFor('secret', ending(path)) ?? this.options.isHidden?.(path)) folder.hidden++;
    else folder.files.push(entry.name);
  }

  private update(real: string, name: string, held: HeldFolder, look: FolderScan): void {
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
  ): void {
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

  /** The bytes of a file, in a place that the next one gets too unless they are kept. */
  private read(fd: number, size: number): Buffer {
    this.counts.reads++;
    const room = this.room(size);
    return room.subarray(0, fill(fd, room, size));
  }

  /** Where the next text goes. */
  private room(size: number): Buffer {
    if (this.used + size > (this.slabs.at(-1)?.length ?? 0)) {
      const large = Math.min(SLAB, Math.max(FIRST_SLAB, this.bytes / 8));
      this.slabs.push(Buffer.from(new SharedArrayBuffer(Math.max(large, size))));
      this.used = 0;
    }
    return this.slabs.at(-1)!.subarray(this.used, this.used + size);
  }

  private keep(real: string, bytes: Buffer, stamp: Stamp, known?: SourceFile): void {
    if (known) this.drop(known);
    this.others.delete(real);
    const path = this.shown(real);
    const slab = this.slabs.length - 1;
    const version = ++this.changes;
    this.files.set(real, { path, real, bytes, slab, offset: this.used, version, stamp });
    this.used += bytes.length;
    this.bytes += bytes.length;
  }

  private shown(real: string): string {
    const folder = dirname(real);
    if (this.lastShown.folder !== folder) {
      const words = slashed(this.options.roots.show(folder));
      this.lastShown = { folder, words: words === '.' ? '' : `${words}/` };
    }
    return this.lastShown.words + basename(real);
  }

  private drop({ real, bytes }: SourceFile): void {
    this.files.delete(real);
    this.changes++;
    this.bytes -= bytes.length;
    this.waste += bytes.length;
  }
}

/** What one look has come across. */
class FolderScan {
  files = new Set<string>();
  folders = new Set<string>();
  entries = 0;
  hidden = 0;
  isFull = false;
  private skipped = { binary: 0, hidden: 0, tooLarge: 0, tooMany: 0 };
  private since = performance.now();

  skip(why: Reason): void {
    this.skipped[why]++;
  }

  get isLong(): boolean {
    return performance.now() - this.since > TURN_MS;
  }

  async turn(): Promise<void> {
    await breathe();
    this.since = performance.now();
  }

  notes(): string[] {
    const { tooLarge, tooMany } = this.skipped;
    const hidden = this.hidden + this.skipped.hidden;
    const notes = [
      hidden > 0 && `${hidden} files that may hold secrets were left out`,
      tooLarge > 0 && `${tooLarge} files over ${MAX_FILE} bytes were left out`,
      tooMany > 0 && `${tooMany} files were left out: the folder has too much text`,
      this.isFull && `only the first ${MAX_ENTRIES} files and folders were looked at`,
    ];
    return notes.filter((note) => note !== false);
  }
}

/** The rules of .gitignore, read only when a folder has to be listed. */
class Ignored {
  hasChanged = false;
  private root: string;
  private top: string;
  private rules?: GitIgnore;
  private entered = new Set<string>();

  constructor(root: string, top: string) {
    this.root = root;
    this.top = top;
  }

  /** With the folders above it: they may be the same as before, and so not have been listed. */
  async enter(folder: string): Promise<void> {
    this.rules ??= await GitIgnore.from(this.root, this.top);
    if (folder === this.root || this.entered.has(folder)) return;
    await this.enter(dirname(folder));
    this.entered.add(folder);
    await this.rules.enter(folder);
  }

  leavesOut(path: string, isFolder: boolean): boolean {
    return this.rules!.leavesOut(path, isFolder);
  }
}

// ─── Holding a folder ─────────────────────────────────────────────────────────────────────────

/** A folder that is opened when it is first needed, and is where we think it is. From then on no
 *  link can be put in its place. Elsewhere than on Linux we can only look before. */
function holdFolder(real: string) {
  let fd: number | undefined;
  let handle = '';
  const open = () => {
    if (CAN_HOLD) fd = openSync(real, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    const held = CAN_HOLD ? `/proc/self/fd/${fd}` : real;
    const found = CAN_HOLD ? readlinkSync(held) : realpathSync.native(real);
    if (found !== real) throw new Error(`${real} is not what it was`);
    return held;
  };
  return {
    at: (name: string) => {
      handle ||= open();
      return `${handle}/${name}`;
    },
    close: () => {
      if (fd !== undefined) closeSync(fd);
    },
  };
}

type HeldFolder = ReturnType<typeof holdFolder>;

function fill(fd: number, room: Buffer, size: number): number {
  let length = 0;
  while (length < size) {
    const read = readSync(fd, room, length, size - length, null);
    if (read === 0) break; // it has become shorter
    length += read;
  }
  return length;
}

function stampOf({ mtimeMs, ctimeMs, size }: Stats): Stamp {
  return { mtimeMs, ctimeMs, size, seenAt: Date.now() };
}

/** Its last names: a folder that is secret has been left out, and no rule speaks of more. */
function ending(path: string): string {
  let at = path.length;
  for (let names = 0; names < 3 && at > 0; names++) at = path.lastIndexOf(sep, at - 1);
  return path.slice(Math.max(0, at));
}

function rulesIn(folder: string): Stamp | undefined {
  const stats = lstatSync(join(folder, RULES), { throwIfNoEntry: false });
  return stats && stampOf(stats);
}

/** The same times and size, and the time was not a moment ago when we last looked: a second change
 *  within the tick of the clock would have the same time. A program can set the time of a file back
 *  (mtime), but not that of this change (ctime). */
function isSettled(known: Stamp, now: Stamp): boolean {
  const isSameTime = known.mtimeMs === now.mtimeMs && known.ctimeMs === now.ctimeMs;
  const isOld = known.seenAt - known.mtimeMs > YOUNG_MS;
  return isSameTime && known.size === now.size && isOld;
}

function sameRules(known?: Stamp, now?: Stamp): boolean {
  if (!known || !now) return known === now;
  return isSettled(known, now);
}
