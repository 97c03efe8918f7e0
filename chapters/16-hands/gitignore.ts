// gitignore.ts: what a project has said it does not want to see, by the rules of git, without git.
//
// Not read: the list of what git tracks (a file that git tracks although a pattern names it is left
// out here), and the user's global file of patterns. Upper and lower case are different.

import { constants } from 'node:fs';
import { lstat, open } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { slashed } from './more/glob.ts';

const NAME = '.gitignore';
const MAX_BYTES = 256 * 1024; // of one file of patterns
const MAX_RULES = 5000; // that count at one place
const MAX_PATTERN = 1000;
const MAX_STEPS = 300_000; // for one path: patterns can be made to take long
const SLASH = 47;
const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;

/** git compares bytes, and so do we: one character for each. */
const bytesOf = (text: string) => Buffer.from(text).toString('latin1');

type IgnoreRule = {
  isNegated: boolean; // "!": what an earlier rule has left out comes back
  isForFolders: boolean;
  isForNames: boolean; // without a "/" in it, in whatever folder
  test: Matcher;
};
type Matcher = (text: string, steps: Steps) => boolean;
type Steps = { left: number };

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

  private add(folder: string, text: string): void {
    const above = this.levels.get(folder);
    let room = MAX_RULES;
    for (let level = above; level; level = level.above) room -= level.rules.length;
    const rules = rulesIn(text).slice(0, Math.max(0, room));
    const prefix = bytesOf(slashed(folder.endsWith(sep) ? folder : folder + sep));
    this.levels.set(folder, { prefix, rules, above });
  }

  /** Is it left out? Its folder has been entered, and is not left out. */
  leavesOut(path: string, isFolder: boolean): boolean {
    if (this.isOff) return false;
    const steps = { left: MAX_STEPS };
    const whole = bytesOf(slashed(path));
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
async function dataBehind(mark: string): Promise<string> {
  const [, where = ''] = /^gitdir: (.*)/.exec((await textIn(mark)) ?? '') ?? [];
  const data = resolve(dirname(mark), where.trim());
  const common = await textIn(join(data, 'commondir'));
  return common ? resolve(data, common.trim()) : data;
}

/** A project can put anything in the place of such a file: a link, a FIFO that never ends, a gigabyte. */
async function textIn(path: string): Promise<string | undefined> {
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
  const test = matcherOf(bytesOf(pattern.replace(/^\//, '')), isForNames);
  return test && { isNegated, isForFolders, isForNames, test };
}

/** Blanks at the end do not count, except one behind a backslash. */
function withoutEndBlanks(line: string): string {
  const [kept = ''] = /^(?:\\[^]|[^\\ ]| +(?=[^ ]))*\\?/.exec(line) ?? [];
  return kept;
}

// ─── Matching ─────────────────────────────────────────────────────────────────────────────────

/** One character; or any run: of a name (`*`), of a path (`**`), of whole folders (`**` and a slash). */
type PatternToken = ((code: number) => boolean) | 'star' | 'all' | 'folders' | 'in folders';

/** Nothing, if the pattern can never fit. */
function matcherOf(pattern: string, isForNames: boolean): Matcher | undefined {
  const start = /^[^*?[\\]*/.exec(pattern)![0]; // up to the first character with a meaning
  if (start === pattern) return (text) => text === pattern;
  const [, ending] = /^\*([^*?[\\]+)$/.exec(pattern) ?? [];
  if (ending && isForNames) return (text) => text.endsWith(ending); // most patterns are like *.log
  const tokens = tokensOf(pattern.slice(start.length), isForNames);
  return (
    tokens && ((text, steps) => text.startsWith(start) && fits(tokens, text, start.length, steps))
  );
}

function tokensOf(pattern: string, isForNames: boolean): PatternToken[] | undefined {
  const tokens: PatternToken[] = [];
  for (let at = 0; at < pattern.length; ) {
    const rest = pattern.slice(at);
    const [stars = ''] = /^\*+/.exec(rest) ?? [];
    if (stars !== '') {
      const isFree = stars.length > 1 && !isForNames && (at === 0 || pattern[at - 1] === '/');
      const next = rest.slice(stars.length);
      at += stars.length;
      if (isFree && next.startsWith('/')) {
        tokens.push('folders', 'in folders');
        at++;
      } else {
        tokens.push(isFree && /^(\\\/|$)/.test(next) ? 'all' : 'star');
      }
    } else if (rest.startsWith('[')) {
      const found = classIn(rest);
      if (!found) return undefined;
      tokens.push(found.test);
      at += found.length;
    } else if (rest === '\\') {
      return undefined;
    } else {
      const isEscaped = rest.startsWith('\\');
      const wanted = rest.charCodeAt(isEscaped ? 1 : 0);
      const isAny = rest.startsWith('?');
      tokens.push(isAny ? (code) => code !== SLASH : (code) => code === wanted);
      at += isEscaped ? 2 : 1;
    }
  }
  return tokens;
}

/** All places of the pattern at which we may be, character by character: no way is tried twice, so
 *  the time is the product of the two lengths at worst. */
function fits(tokens: PatternToken[], text: string, from: number, steps: Steps): boolean {
  let places = new Set<number>();
  reach(tokens, 0, places);
  for (let at = from; at < text.length && places.size > 0; at++) {
    const code = text.charCodeAt(at);
    const next = new Set<number>();
    steps.left -= places.size;
    if (steps.left < 0) return false; // what takes that long is not left out
    for (const place of places) {
      const token = tokens[place];
      if (typeof token === 'function' && token(code)) reach(tokens, place + 1, next);
      if (token === 'star' && code !== SLASH) reach(tokens, place, next);
      if (token === 'all') reach(tokens, place, next);
      if (token === 'in folders') next.add(place);
      if (token === 'in folders' && code === SLASH) reach(tokens, place + 1, next);
    }
    places = next;
  }
  return places.has(tokens.length);
}

/** A run may be empty, so who comes to one is behind it, too. */
function reach(tokens: PatternToken[], place: number, places: Set<number>): void {
  for (let at = place; !places.has(at); at++) {
    places.add(at);
    if (tokens[at] === 'folders') {
      places.add(at + 1);
      at++;
    } else if (tokens[at] !== 'star' && tokens[at] !== 'all') return;
  }
}

const CLASSES: Record<string, RegExp> = {
  alnum: /[A-Za-z0-9]/,
  alpha: /[A-Za-z]/,
  blank: /[ \t]/,
  cntrl: /[\0-\x1f\x7f]/,
  digit: /[0-9]/,
  graph: /[!-~]/,
  lower: /[a-z]/,
  print: /[ -~]/,
  punct: /[!-/:-@[-`{-~]/,
  space: /[ \t\n\v\f\r]/,
  upper: /[A-Z]/,
  xdigit: /[A-Fa-f0-9]/,
};

/** [abc], [a-z], [!a], [[:alpha:]]. Nothing, if it has no end or an unknown word in it. */
function classIn(text: string): { test: (code: number) => boolean; length: number } | undefined {
  const isNegated = /^\[[!^]/.test(text);
  const members = new Set<number>();
  let previous = 0; // what a "-" would begin with
  let at = isNegated ? 2 : 1;
  do {
    const word = /^\[:([^\]]*):\]/.exec(text.slice(at));
    const range = previous && /^-(\\[^]|[^\]\\])/.exec(text.slice(at));
    const one = /^(?:\\[^]|[^\\])/.exec(text.slice(at));
    if (range) {
      for (let code = previous; code <= range[1]!.charCodeAt(range[1]!.length - 1); code++)
        members.add(code);
      previous = 0;
      at += range[0].length;
    } else if (word) {
      const known = Object.hasOwn(CLASSES, word[1]!) ? CLASSES[word[1]!] : undefined;
      if (!known) return undefined;
      for (let code = 0; code < 256; code++)
        if (known.test(String.fromCharCode(code))) members.add(code);
      previous = 0;
      at += word[0].length;
    } else if (one) {
      previous = one[0].charCodeAt(one[0].length - 1);
      members.add(previous);
      at += one[0].length;
    } else {
      return undefined;
    }
  } while (text[at] !== ']');
  return { test: (code) => code !== SLASH && members.has(code) !== isNegated, length: at + 1 };
}
