// folders.ts: which folders belong to a project.

import { existsSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { isWindows } from '../01-a-pipe/environment.ts';

/** Does it lead into the project, or elsewhere into its repository? */
export function isOfProject(path: string, project: string): boolean {
  return isWithinOne(foldersOf(project), path);
}

/** Where they really are. A folder that holds the home folder is the user's own, whatever else it
 *  is. */
export function foldersOf(project: string): string[] {
  const home = realPath(homedir());
  const folders = [project, ...repositoriesAround(project)].map(realPath);
  return folders.filter((each) => !isWithin(each, home));
}

export function isWithinOne(folders: string[], path: string): boolean {
  const real = realPath(path);
  return folders.some((each) => isWithin(each, real));
}

/** Its own, and the one that it is a submodule of. */
function repositoriesAround(folder: string): string[] {
  const parent = dirname(folder);
  const above = parent === folder ? [] : repositoriesAround(parent);
  return existsSync(join(folder, '.git')) ? [folder, ...above] : above;
}

/** Both as realPath gives them. `relative` would take each apart again, which twenty servers that
 *  start at once feel. */
function isWithin(folder: string, path: string): boolean {
  return withEnd(path).startsWith(withEnd(folder));
}

function withEnd(folder: string): string {
  const whole = folder.endsWith(sep) ? folder : folder + sep;
  return isWindows ? whole.toLowerCase() : whole; // there it is the same folder
}

/** Where a path leads through all links, also if its end does not exist. */
function realPath(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    const whole = resolve(path);
    const parent = dirname(whole);
    if (parent === whole) return whole;
    return join(realPath(parent), basename(whole));
  }
}
