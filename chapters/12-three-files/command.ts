// command.ts: which file a command means, on a PATH that no project can change.

import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import { isWindows, safeEnv } from '../01-a-pipe/environment.ts';
import { foldersOf, isWithinOne } from './folders.ts';

/** The same without the parts of the PATH in which a project could put a `node` of its own: those
 *  that lead into its folder, and the relative and empty ones, which mean the current folder. */
export function withSafePath(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { CLAUDE_PROJECT_DIR: project = process.cwd() } = env;
  const folders = foldersOf(project);
  const isSafe = (part: string) => isAbsolute(part) && !isWithinOne(folders, part);
  const parts = pathOf(env).filter(isSafe);
  // An empty PATH would mean the current folder, too.
  const path = parts.join(delimiter) || DEFAULT_PATH;
  const safe = { ...env, [pathName(env)]: path };
  return isWindows ? { ...safe, [NOT_FROM_HERE]: '1' } : safe;
}

const DEFAULT_PATH = isWindows ? 'C:\\Windows\\System32' : '/usr/bin:/bin';
const NOT_FROM_HERE = 'NoDefaultCurrentDirectoryInExePath'; // cmd.exe looks there first without it

/** Windows writes "Path", and of two spellings the first in the alphabet counts. */
function pathName(env: NodeJS.ProcessEnv): string {
  if (!isWindows) return 'PATH';
  const names = Object.keys(env).sort();
  return names.find((name) => name.toUpperCase() === 'PATH') ?? 'PATH';
}

const pathOf = (env: NodeJS.ProcessEnv) => (env[pathName(env)] ?? '').split(delimiter);

/** The file that a command means, on the PATH of `env`. We look for it ourselves, because Windows
 *  starts in the current folder. If there is no such file, `spawn` will not find it either. */
export function findCommand(command: string, env = withSafePath(safeEnv())): string {
  const isPath = command.includes('/') || (isWindows && command.includes('\\'));
  if (isPath) return command;
  const endings = isWindows ? ['', '.com', '.exe'] : [''];
  const names = endings.map((ending) => command + ending);
  const files = pathOf(env).flatMap((folder) => names.map((name) => join(folder, name)));
  const missing = isWindows ? files[0]! : command;
  return files.find(isProgram) ?? missing;
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
