// folders.ts: which folders belong to a project.

import { existsSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';

/** Does it lead into the project, or elsewhere into its repository? */
export function isOfProject(path: string, project: string): boolean {
  return isWithinOne(foldersOf(project), path);
}

/** A folder that holds the home folder is the user's own, whatever else it is. */
export function foldersOf(project: string): string[] {
  const folders = [project, ...repositoriesAround(project)];
  return folders.filter((each) => !isWithin(each, homedir()));
}

export const isWithinOne = (folders: string[], path: string) =>
  folders.some((each) => isWithin(each, path));

/** Its own, and the one that it is a submodule of. */
function repositoriesAround(folder: string): string[] {
  const parent = dirname(folder);
  const above = parent === folder ? [] : repositoriesAround(parent);
  return existsSync(join(folder, '.git')) ? [folder, ...above] : above;
}

function isWithin(folder: string, path: string): boolean {
  const inner = relative(realPath(folder), realPath(path));
  const isOutside = inner === '..' || inner.startsWith(`..${sep}`);
  return !isOutside && !isAbsolute(inner);
}

/** Where a path leads through all links, also if its end does not exist. */
function realPath(path: string): string {
  const whole = resolve(path);
  const parent = dirname(whole);
  try {
    return realpathSync.native(whole);
  } catch {
    if (parent === whole) return whole;
    return join(realPath(parent), basename(whole));
  }
}
