// git-settings.ts: what a folder makes git run. `git status` looks harmless. But a folder that came as an archive brings
// its .git/config along, and that may name a program to ask about changed files (core.fsmonitor), one to show
// differences (diff.external), filters, hooks, signing programs. Some of it can be overridden, and the rest told.

import { spawnSync } from 'node:child_process';
import {
  accessSync,
  constants,
  existsSync,
  readdirSync,
  readFileSync,
  realpathSync,
  type Dirent,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { findCommand, safeEnv, withSafePath } from '../../mcp.ts';
import { reasonFor } from './delicate.ts';
import { isUnder } from './paths.ts';

const TIMEOUT_MS = 3000; // the configuration may include a FIFO
const MAX_OUTPUT = 64 * 2 ** 20;
const MAX_FOLDERS = 20_000;
const MAX_REMOTES = 20;

/** What any clone has, and what runs nothing; or what we override below. Whatever else the folder sets may run a program. */
const HARMLESS = new RegExp(
  `^(${[
    'core\\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|fsmonitor)',
    'core\\.(autocrlf|eol|safecrlf|untrackedcache|quotepath|longpaths|hidedotfiles|abbrev)',
    'diff\\.external',
    'remote\\..*\\.(url|pushurl|fetch|tagopt|prune|gh-resolved)',
    'branch\\..*\\.(remote|merge|rebase|pushremote|description|vscode-merge-base|gh-merge-base)',
    'user\\.(name|email)',
    '(color|advice)\\..*',
    'init\\.defaultbranch|pull\\.(rebase|ff)|push\\.(default|autosetupremote|followtags)|fetch\\.prune|rerere\\.enabled',
    'extensions\\.(objectformat|refstorage)|lfs\\.repositoryformatversion|index\\.(version|threads)',
  ].join('|')})$`,
  's',
);

/** In place of a program of the folder: what git would show by itself. An empty value would be an error. */
const PLAIN_DIFF =
  'f() { printf "diff --git a/%s b/%s\\n" "$1" "$1"; diff -u --label "a/$1" --label "b/$1" -- "$2" "$5"; true; }; f';

/** For the environment of a command that may start git: it goes through no program that the folder names for looking at
 *  files, and leaves the index alone where it only looks, which would call a hook. */
export function gitEnv(command: string, cwd: string): Record<string, string> {
  const unquoted = command.replace(/["'\\\n]/g, ''); // g"i"t is git
  if (!/\bgit\b/i.test(unquoted)) return {};
  const settings: [key: string, value: string][] = [['core.fsmonitor', 'false']];
  if (keysOf(cwd).includes('diff.external')) settings.push(['diff.external', PLAIN_DIFF]);
  if (hooksIn(gitFolders(cwd)).some(isIndexHook)) settings.push(['diff.autoRefreshIndex', 'false']);
  const numbered = settings.flatMap(([key, value], n) => [
    [`GIT_CONFIG_KEY_${n}`, key],
    [`GIT_CONFIG_VALUE_${n}`, value],
  ]);
  return {
    ...Object.fromEntries(numbered),
    GIT_CONFIG_COUNT: `${settings.length}`,
    GIT_OPTIONAL_LOCKS: '0',
  };
}

/** What git is told to do with the folder: nothing, take in what is there, or bring something else. */
export type Manner = 'looks' | 'adds' | 'moves';

/** What git may run in this folder all the same, in words. Hooks only if it does more than look. */
export function gitPrograms(cwd: string, manner: Manner): string[] {
  const keys = keysOf(cwd).filter((key) => !HARMLESS.test(key));
  const found = keys.map((key) => `the setting ${key}`);
  const folders = gitFolders(cwd);
  if (manner !== 'looks') found.push(...hooksIn(folders).map((hook) => `the hook ${hook}`));
  if (manner !== 'looks' && isUnderWay(cwd)) found.push('what is left of a rebase or its like');
  if (hasLinks(folders)) found.push('a link inside of its .git');
  if (leadsElsewhere(cwd, folders)) found.push('a repository elsewhere, to which its .git leads');
  if (mayEnterRepositories(cwd, manner)) found.push('the settings of a repository inside it');
  return [...new Set(found)];
}

/** Does git look into a repository inside this one? It does if the index has it; `add` puts one into the index that is
 *  not ignored, and another branch any. In all of the tree, because `git status` looks at all of it from any folder. If
 *  git cannot tell, it may. */
function mayEnterRepositories(cwd: string, manner: Manner) {
  const top = run(cwd, 'rev-parse', '--show-toplevel')?.replace(/\n$/, '');
  if (top === undefined) return run(cwd, 'rev-parse', '--is-inside-work-tree') === 'true\n';
  const files = run(cwd, 'ls-files', '--stage', '-z', '--', ':/');
  if (files === undefined || /(^|\0)160000 /.test(files)) return true;
  if (manner === 'looks') return false;
  if (manner === 'moves') return holdsRepository(top);
  const others = run(cwd, 'ls-files', '--others', '--exclude-standard', '-z', '--', ':/');
  return others === undefined || others.includes('/\0'); // a repository is listed as a folder
}

export const isRepository = (cwd: string) => run(cwd, 'rev-parse', '--git-dir') !== undefined;

/** What `git add .` would take in, and `git diff --cached` show. */
export function secretsNear(cwd: string): string[] {
  const others = run(cwd, 'ls-files', '--others', '--exclude-standard', '-z', '--', ':/') ?? '';
  const secrets = others.split('\0').filter((file) => reasonFor('secret', join(cwd, file)));
  return secrets.map((file) => `the file ${file}, which may hold secrets`);
}

/** Is there a .git below this folder? */
function holdsRepository(top: string) {
  return someFolder([top], '.git', (entries, folder) =>
    entries.some(({ name }) => folder !== top && /^\.git$/i.test(name)),
  );
}

/** In this one, or below. Of a very large tree we do not see the end, and say yes. */
function someFolder(
  folders: string[],
  leftOut: string,
  isMeant: (entries: Dirent[], folder: string) => boolean,
) {
  for (const folder of folders) {
    const entries = entriesOf(folder);
    if (folders.length > MAX_FOLDERS || isMeant(entries, folder)) return true;
    const inner = entries.filter((entry) => entry.isDirectory() && entry.name !== leftOut);
    folders.push(...inner.map(({ name }) => join(folder, name)));
  }
  return false;
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return []; // git cannot read it either
  }
}

/** The names of its remotes with all the addresses of each, and those that git may choose by itself. */
export function gitRemotes(cwd: string): { addresses: Map<string, string[]>; defaults: string[] } {
  const all = linesOf(run(cwd, 'remote'));
  const names = all.slice(0, MAX_REMOTES);
  const addressesOf = (name: string) =>
    ['--all', '--push'].flatMap((how) =>
      linesOf(run(cwd, 'remote', 'get-url', how, '--all', '--', name) ?? '?'),
    );
  const chosen = run(cwd, 'config', '--get-regexp', '-z', '^branch\\..*\\.(remote|pushremote)$');
  const values = (chosen ?? '').split('\0').map((entry) => entry.slice(entry.indexOf('\n') + 1));
  const defaults = ['origin', ...all, ...values.filter((value) => !['', '.'].includes(value))];
  return { addresses: new Map(names.map((name) => [name, addressesOf(name)])), defaults };
}

const linesOf = (text = '') => text.split('\n').filter((line) => line !== '');

/** `git diff` writes the index, whatever GIT_OPTIONAL_LOCKS says, where a file has only a new date. */
const isIndexHook = (hook: string) => /^post-index-change/i.test(hook);

/** The names of the settings that the folder itself makes, also by including other files. */
function keysOf(cwd: string) {
  const listed = run(cwd, 'config', '--list', '--show-scope', '--name-only', '-z');
  if (listed === undefined) return ['that cannot be read'];
  const words = listed.split('\0');
  return words.filter((_, n) => n % 2 === 1 && ['local', 'worktree'].includes(words[n - 1]!));
}

/** Where git itself looks for them. A folder elsewhere is by core.hooksPath: yours, or a setting above. But a relative
 *  one means a folder of every project. */
function hooksIn([folder, , ...own]: string[]) {
  if (folder === undefined) return []; // not a repository
  if (!own.some((part) => isUnder(part, folder))) return [];
  try {
    return readdirSync(folder).filter(
      (name) => !name.endsWith('.sample') && canBeStarted(join(folder, name)),
    );
  } catch {
    return []; // there is no such folder
  }
}

/** Of its hooks, of the repository, of what its worktrees share, and the top of the files, if there are any. */
function gitFolders(cwd: string) {
  const asked = ['--git-path', 'hooks', '--git-dir', '--git-common-dir'];
  const found =
    run(cwd, 'rev-parse', ...asked, '--show-toplevel') ?? run(cwd, 'rev-parse', ...asked);
  return linesOf(found).map((path) => resolve(cwd, path));
}

/** A .git that is a link or a file, or has a "commondir", may lead to any repository of yours. What `git worktree add`
 *  has made is known there. */
function leadsElsewhere(cwd: string, [, dir, common, top = cwd]: string[]) {
  if (dir === undefined || common === undefined) return false; // not a repository
  if ([dir, common].every((path) => isUnder(top, realpathSync(path)))) return false;
  const isTree = dirname(dirname(dir)) === common && existsSync(join(dir, 'gitdir'));
  return !isTree || readFileSync(join(dir, 'gitdir'), 'utf8') !== `${join(top, '.git')}\n`;
}

/** What a rebase, a bisection or a list of picks would do next is in files, and a folder that came as an archive may
 *  bring them along: `git rebase --continue` runs their `exec` lines. */
function isUnderWay(cwd: string) {
  const signs = ['rebase-merge', 'rebase-apply', 'sequencer', 'BISECT_LOG'];
  const paths = run(cwd, 'rev-parse', ...signs.flatMap((sign) => ['--git-path', sign]));
  return linesOf(paths).some((path) => existsSync(resolve(cwd, path)));
}

/** git writes your message to .git/COMMIT_EDITMSG, and shows what is in .git/rebase-merge/head-name: if that is a link,
 *  it is any file of yours. git itself makes none. */
function hasLinks([, ...folders]: string[]) {
  return someFolder(folders.slice(0, 2), 'objects', (entries) =>
    entries.some((each) => each.isSymbolicLink()),
  );
}

export function canBeStarted(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** What git prints; nothing if it fails. */
function run(cwd: string, ...args: string[]) {
  const env = withSafePath({ ...safeEnv(), CLAUDE_PROJECT_DIR: cwd });
  const options = {
    cwd,
    env,
    timeout: TIMEOUT_MS,
    maxBuffer: MAX_OUTPUT,
    encoding: 'utf8',
    windowsHide: true,
  } as const;
  const { status, stdout } = spawnSync(
    findCommand('git', env),
    ['-c', 'core.fsmonitor=false', ...args],
    options,
  );
  return status === 0 ? stdout : undefined;
}
