// gitignore.ts: what a project has said it does not want to see, by the rules of git, without git.
//
// Not read: the list of what git tracks (a file that git tracks although a pattern names it is left
// out here), and the user's global file of patterns. Upper and lower case are different. A "?" is a
// character here, and for git a byte.

import { constants } from 'node:fs';
import { lstat, open } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { pathMatcher, slashed } from './more/glob.ts';

const NAME = '.gitignore';
const MAX_BYTES = 256 * 1024; // of one file of patterns
const MAX_RULES = 5000; // that count at one place
const MAX_PATTERN = 1000;
const MAX_STEPS = 300_000; // for one path: patterns can be made to take long
const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;

type IgnoreRule = {
  isNegated: boolean; // "!": what an earlier rule has left out comes back
  isForFolders: boolean;
  isForNames: boolean; // without a "/" in it, in whatever folder
  test: Matcher;
};
type Matcher = ReturnType<typeof pathMatcher>;

/** The rules of one folder, and those of the folders above it, which count less. */
type Level = { prefix: string; rules: IgnoreRule[]; above?: Level };

// ─── The folders of a walk ────────────────────────────────────────────────────────────────────

/** For a walk from `root` on. The rules begin where the repository does, or at `top` if there is none. */
export class GitIgnore {
  private levels = new Map<string, Level | undefined>(); // by folder
  private isOff = false;

  static async from(root: string, top = root): Promise<GitIgnore> {
    const ignore = new GitIgnore();
    const repository = await repositoryAbove(root);
    const first = repository?.folder ?? top;
    const excluded = repository && (await textIn(join(repository.data, 'info', 'exclude')));
    if (excluded) ignore.add(first, excluded);
    const way = relative(first, root)
      .split(sep)
      .filter((name) => name !== '');
    let folder = first;
    await ignore.enter(folder);
    for (const name of way) {
      const next = join(folder, name);
      if (ignore.leavesOut(next, true)) ignore.isOff = true; // who names such a folder wants to see it
      await ignore.enter(next);
      folder = next;
    }
    return ignore;
  }

  /** Reads the rules of a folder. The one above it has been entered before. */
  async enter(folder: string, hasRules = true): Promise<void> {
    if (this.isOff) return;
    if (!this.levels.has(folder)) this.levels.set(folder, this.levels.get(dirname(folder)));
    const text = hasRules ? await textIn(join(folder, NAME)) : undefined;
    if (text) this.add(folder, text);
  }

  private add(folder: string, text: string) {
    const above = this.levels.get(folder);
    let room = MAX_RULES;
    for (let level = above; level; level = level.above) room -= level.rules.length;
    const rules = rulesIn(text).slice(0, Math.max(0, room));
    const prefix = slashed(folder.endsWith(sep) ? folder : folder + sep);
    this.levels.set(folder, { prefix, rules, above });
  }

  /** Is it left out? Its folder has been entered, and is not left out. */
  leavesOut(path: string, isFolder: boolean): boolean {
    if (this.isOff) return false;
    const steps = { left: MAX_STEPS };
    const whole = slashed(path);
    const name = whole.slice(whole.lastIndexOf('/') + 1);
    for (let level = this.levels.get(dirname(path)); level; level = level.above) {
      const below = whole.slice(level.prefix.length);
      const rule = level.rules.findLast(
        (each) =>
          (isFolder || !each.isForFolders) && each.test(each.isForNames ? name : below, steps),
      );
      if (rule) return !rule.isNegated; // the last one that fits, of the nearest folder that has one
    }
    return false;
  }
}

/** `data` is the folder that git calls .git, which may be elsewhere. */
async function repositoryAbove(
  start: string,
): Promise<{ folder: string; data: string } | undefined> {
  for (let folder = start; ; folder = dirname(folder)) {
    const mark = join(folder, '.git');
    const stats = await lstat(mark).catch(() => undefined);
    if (stats?.isDirectory()) return { folder, data: mark };
    if (stats?.isFile()) return { folder, data: await dataBehind(mark) };
    if (dirname(folder) === folder) return undefined;
  }
}

/** In a worktree and in a submodule, .git is a file that says where the folder is. */
async function dataBehind(mark: string) {
  const [, where = ''] = /^gitdir: (.*)/.exec((await textIn(mark)) ?? '') ?? [];
  const data = resolve(dirname(mark), where.trim());
  const common = await textIn(join(data, 'commondir'));
  return common ? resolve(data, common.trim()) : data;
}

/** A project can put anything in the place of such a file: a link, a FIFO that never ends, a gigabyte. */
async function textIn(path: string) {
  const stats = await lstat(path).catch(() => undefined);
  if (!stats?.isFile() || stats.size > MAX_BYTES) return undefined;
  const file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch(() => undefined);
  try {
    return (await file?.stat())?.isFile() ? await file?.readFile('utf8') : undefined;
  } catch {
    return undefined;
  } finally {
    await file?.close();
  }
}

// ─── From a line to a rule ────────────────────────────────────────────────────────────────────

function rulesIn(text: string): IgnoreRule[] {
  const lines = text
    .replace(/^\ufeff/, '')
    .split('\n')
    .map((line) => line.replace(/\r$/, ''));
  return lines.flatMap((line) => ruleOf(line) ?? []);
}

function ruleOf(line: string): IgnoreRule | undefined {
  if (line.startsWith('#') || line.length > MAX_PATTERN) return undefined;
  const trimmed = withoutEndBlanks(line);
  const isNegated = trimmed.startsWith('!');
  const positive = isNegated ? trimmed.slice(1) : trimmed;
  const isForFolders = positive.endsWith('/');
  const pattern = isForFolders ? positive.slice(0, -1) : positive;
  if (pattern === '') return undefined;
  const isForNames = !pattern.includes('/');
  const test = matcherOf(pattern.replace(/^\//, ''), isForNames);
  return test && { isNegated, isForFolders, isForNames, test };
}

/** Blanks at the end do not count, except one behind a backslash. */
function withoutEndBlanks(line: string) {
  const [kept = ''] = /^(?:\\[^]|[^\\ ]| +(?=[^ ]))*\\?/.exec(line) ?? [];
  return kept;
}

/** By the patterns of glob.ts. Nothing, if it has what those do not know: [[:alpha:]], brackets and
 *  backslashes together. */
function matcherOf(pattern: string, isForNames: boolean): Matcher | undefined {
  if (!/[*?[\\]/.test(pattern)) return (text) => text === pattern;
  const [, ending] = /^\*([^*?[\\]+)$/.exec(pattern) ?? [];
  if (ending && isForNames) return (text) => text.endsWith(ending); // most patterns are like *.log
  const isOpen = pattern.lastIndexOf('[') > pattern.lastIndexOf(']');
  const isOdd = pattern.includes('[') && /\[:|\\/.test(pattern);
  if (isOpen || isOdd || /\\(\/|$)/.test(pattern)) return undefined;
  return pathMatcher(pattern.replace(/\*{3,}/g, '**').replace(/\/\*\*$/, '/**/*')); // all, but not itself
}
