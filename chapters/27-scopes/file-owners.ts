// file-owners.ts: a file of the configuration, and whether it is whose it seems to be. Each is read
// once, however many scopes look into it.

import { lstatSync, realpathSync, statSync, type Stats } from 'node:fs';
import { dirname, relative, sep } from 'node:path';
import { readJsonFile, textOf, type Json } from '../../mcp.ts';

const IS_WINDOWS = process.platform === 'win32'; // owners and modes mean nothing there
const ROOT = 0;

type FileContent = { root?: Json; problem?: string };

export class Files {
  /** The files that were looked for, in order, each with what is wrong with it. */
  readonly seen = new Map<string, FileContent>();

  read(file: string): FileContent {
    const known = this.seen.get(file);
    if (known) return known;
    const content = contentOf(file);
    this.seen.set(file, content);
    return content;
  }

  /** One that must not be used, whatever it says. */
  refuse(file: string, problem: string): void {
    this.seen.set(file, { problem });
  }
}

function contentOf(file: string): FileContent {
  try {
    const root = readJsonFile(file);
    return root ? { root } : {};
  } catch (error) {
    return { problem: textOf(error) };
  }
}

/** Whose files we believe: our own, and those of the system. */
export type Owners = readonly number[];

export const believedOwners = (): Owners => [process.getuid?.() ?? ROOT, ROOT];

const isMine = ({ uid }: Stats, owners: Owners) => IS_WINDOWS || owners.includes(uid);

/** In /tmp, which has the sticky bit, all may write, and none may replace what is another's. */
const isOpen = ({ mode }: Stats) => (mode & 0o002) !== 0 && (mode & 0o1000) === 0;

/** Nothing for what is not there, and for what lies below a file: no path leads to it. */
function lookAt(file: string, look: typeof statSync | typeof lstatSync) {
  try {
    return look(file, { throwIfNoEntry: false });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return undefined;
    throw error;
  }
}

/** Why a file in the user's home may hold the words of others. People link their settings to a
 *  folder that they share among machines, so a link counts for what it leads to. */
export function doubtAbout(file: string, owners: Owners): string | undefined {
  if (IS_WINDOWS || !lookAt(file, statSync)) return undefined;
  const real = realpathSync(file);
  const [stat, folder] = [statSync(real), statSync(dirname(real))];
  if (!isMine(stat, owners)) return 'it belongs to another user';
  if ((stat.mode & 0o002) !== 0) return 'every user of this machine may write to it';
  if (isOpen(folder)) return 'every user of this machine may replace it';
  return undefined;
}

/** Why a file of the administrator's is not one. */
export function doubtAboutManaged(file: string, owner: number): string | undefined {
  const stat = lookAt(file, lstatSync);
  if (!stat) return undefined;
  if (!stat.isFile()) return 'it is not a file';
  if (IS_WINDOWS) return undefined;
  if (stat.uid !== owner)
    return owner === ROOT ? 'it does not belong to root' : 'it has another owner';
  return (stat.mode & 0o022) === 0 ? undefined : 'others than its owner may write to it';
}

/** Does it lead out of this folder? A clone may bring a link to any file of yours. */
export function leadsOutOf(file: string, folder: string): boolean {
  if (!lookAt(file, lstatSync)) return false;
  try {
    const way = relative(realpathSync(folder), realpathSync(file));
    return way === '..' || way.startsWith(`..${sep}`);
  } catch {
    return true; // it leads nowhere, or in a circle
  }
}

/** From the folder of the repository down to this one; only this one if it is in no repository. What
 *  lies above was put there by others. */
export function foldersFrom(cwd: string, owners: Owners): string[] {
  const folders: string[] = [];
  for (let folder = cwd; ; folder = dirname(folder)) {
    folders.unshift(folder);
    const git = lstatSync(`${folder}${sep}.git`, { throwIfNoEntry: false });
    if (git) return isMine(git, owners) ? folders : [cwd];
    if (dirname(folder) === folder) return [cwd];
  }
}
