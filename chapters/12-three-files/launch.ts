// launch.ts: in which folder, and with what, a server starts.

import { existsSync, lstatSync, mkdirSync, readdirSync, renameSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path';
import { isWindows } from '../01-a-pipe/environment.ts';
import { type Json, asObject, excerpt, textOf } from '../01-a-pipe/messages.ts';
import { type StdioConfig, transportType } from '../01-a-pipe/transport.ts';
import type { ServerEntry } from './config.ts';
import { configError } from './entry.ts';
import { isOfProject } from './folders.ts';
import { fillIn } from './variables.ts';

export type LaunchOptions = { home?: string; cwd?: string; hidden?: string[] };

/** What a server is started with: its entry with values for the variables, the project's path, and
 *  a folder. A project's server starts in the project. There `npx` and `python -m` run what a clone
 *  brings along, so the user's own servers start in an empty folder. */
export function launchConfig(entry: ServerEntry, options: LaunchOptions = {}): Json {
  const { home = homedir(), cwd: project = process.cwd(), hidden } = options;
  const config = fillIn(entry, withProject(project), hidden);
  if (transportType(config) !== 'stdio') return config;
  const isNowhere = entry.authority === 'user' && !config.cwd;
  const cwd = isNowhere ? emptyFolder(entry, home) : resolve(project, `${config.cwd ?? ''}`);
  const env = { ...asObject(config.env), CLAUDE_PROJECT_DIR: project };
  return { ...config, cwd, env };
}

const withProject = (project: string) => ({ ...process.env, CLAUDE_PROJECT_DIR: project });

function emptyFolder(entry: ServerEntry, home: string): string {
  const own = entry.name.replace(/[^\w-]/g, '_').slice(0, 64);
  const folder = join(home, '.mcp-by-hand', 'empty', own);
  try {
    if (!isAbsolute(home)) throw new Error('the home folder is not an absolute path');
    makeOurs(dirname(dirname(folder)));
    makeOurs(dirname(folder));
    makeOurs(folder);
    // Moved, not deleted: it may be the notes of a server.
    if (readdirSync(folder).length > 0) renameSync(folder, `${folder}-${Date.now()}`);
    makeOurs(folder);
    return folder;
  } catch (error) {
    const why = `it should start in ${folder}, an empty folder, but ${textOf(error)}`;
    throw configError(entry, `${why}. Fix that, or give it a "cwd" of its own`);
  }
}

/** Makes a folder that only we can write to. Refuses one that others may have put there. */
function makeOurs(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const stat = lstatSync(folder);
  if (!stat.isDirectory()) throw new Error(`${folder} is a link`);
  if (isWindows) return; // which has no uids and modes
  const isOurs = stat.uid === process.getuid!() && (stat.mode & 0o022) === 0;
  if (!isOurs) throw new Error(`others may write to ${folder}`);
}

/** A project's entry, and one of the user's own that follows the project: with a relative "cwd", or
 *  a variable such as ${PWD}, it may run what a clone brings along. */
export function needsApproval(entry: ServerEntry, project = process.cwd()): boolean {
  if (entry.authority !== 'user') return true;
  if (transportType(entry.config) !== 'stdio') return false;
  const env: NodeJS.ProcessEnv = withProject(project);
  const names = JSON.stringify(entry.config).matchAll(/\$\{(\w+)/g);
  const different = new Set([...names].map(([, name = '']) => name));
  const values = [...different].flatMap((name) => env[name] || []);
  const paths = values.flatMap(pathsIn);
  if (paths.some((path) => isOfProject(path, project))) return true;
  const folder = folderOf(entry, env);
  return folder !== '' && !isAbsolute(folder);
}

/** The whole paths in a value: it may be one, or a list of them, or flags such as --require=/x.
 *  Relative ones do not count: the server starts in an empty folder. */
function pathsIn(value: string): string[] {
  const breaks = [...value.matchAll(/[\s=,;:]/g)];
  const starts = [0, ...breaks.map(({ index }) => index + 1)];
  // To the end of the list, or of the value: a path may hold blanks.
  const rests = starts.map((at) => value.slice(at).split(delimiter, 1)[0]!);
  return rests.filter((rest) => isAbsolute(rest));
}

/** Its "cwd" filled in. An entry that cannot be filled in does not start. */
function folderOf(entry: ServerEntry, env: NodeJS.ProcessEnv): string {
  try {
    return `${fillIn(entry, env).cwd ?? ''}`;
  } catch {
    return '';
  }
}

/** A warning for words that only make sense in the project's folder, where the server does not
 *  start. */
export function lostWords(entry: ServerEntry, project = process.cwd()): string | undefined {
  const { cwd, command, args = [] } = entry.config as StdioConfig;
  if (entry.authority !== 'user' || cwd) return;
  if (transportType(entry.config) !== 'stdio') return;
  const isLost = (word: string) => {
    const path = word.replace(/^-[^=]*=/, ''); // --root=.
    const isRelative = path !== '' && !isAbsolute(path);
    const isThere = isRelative && existsSync(join(project, path));
    return isThere || /^\.\.?([/\\]|$)/.test(path);
  };
  const isPath = /[/\\]/.test(command); // else it is looked for on the PATH
  const all = isPath ? [command, ...args] : args;
  const lost = all.filter(isLost);
  if (lost.length === 0) return;
  const words = lost.map(excerpt).join(', ');
  const help = 'Write absolute paths; or set "cwd": ".", and you are asked once in each project';
  return `is your own, and starts in an empty folder, where ${words} cannot be found. ${help}`;
}
