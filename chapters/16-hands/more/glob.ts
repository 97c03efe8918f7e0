// glob.ts: which files a pattern means, and a walk over all there are.
// (Node has fs.glob only since 22, and path.matchesGlob prints a warning.)

import type { Dirent } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { setImmediate as breathe } from 'node:timers/promises';
import type { GitIgnore } from '../gitignore.ts';

const MAX_ALTERNATIVES = 1000;
const MAX_PATTERN = 1000;
const MAX_EXPANDED = 100_000; // characters of all alternatives together
const BREATH = 16; // entries of a folder between two looks at what else is to do

type GlobPart =
  | { star: true }
  | { star: false; matches: (char: string) => boolean; isDot: boolean };

/**
 * A test for paths with "/" between their names, relative to the folder that the pattern is for.
 *
 *   *        any characters of one name     **       any number of folders; at the end, all that is in them
 *   ?        one character                  {a,b}    a or b
 *   [a-c]    one of these, [!a-c] none      \*       the character * itself
 *
 * As in a shell, a name that begins with a dot needs a dot in the pattern: *.yml does not match .travis.yml. But **
 * goes through such folders too, since .github/workflows is something that people look for. With `hidden` a dot is a
 * character like any other.
 */
export function globMatcher(pattern: string, hidden = false): (path: string) => boolean {
  const tests = alternativesOf(pattern).map((one) =>
    pathMatcher(one.replace(/^(\.\/)+/, ''), hidden),
  );
  return (path) => tests.some((test) => test(path));
}

/** How many comparisons are still worth their time. */
type Steps = { left: number };

/** Without braces. After so many steps it does not fit. */
export function pathMatcher(pattern: string, hidden = true) {
  const folders = pattern.split('/').map(parseName);
  return (path: string, steps: Steps = { left: Infinity }): boolean => {
    const one = (parts: GlobPart[] | '**', name: string) =>
      parts !== '**' && nameFits(parts, name, hidden, steps);
    return fits(folders, path.split('/'), (parts) => parts === '**', one, steps);
  };
}

/** How much there is to compare with each character of a path. */
export function globSize(pattern: string): number {
  return alternativesOf(pattern).join('').length;
}

function alternativesOf(pattern: string) {
  if (pattern.length > MAX_PATTERN)
    throw new Error(`the pattern has more than ${MAX_PATTERN} characters`);
  const expanded = expandBraces(pattern);
  if (expanded.join('').length > MAX_EXPANDED)
    throw new Error('the braces of the pattern stand for too much; use fewer');
  return expanded;
}

/** A path of this system as patterns are written: with "/". */
export function slashed(path: string): string {
  return path.split(sep).join('/');
}

/** Does a list fit a pattern in which a star stands for any run of items? A regular expression with ten stars can
 *  take for ever. Here only the last star ever gives way, for what an earlier one could try, the last can too. */
function fits<P, T>(
  pattern: P[],
  items: T[],
  isStar: (part: P) => boolean,
  one: (part: P, item: T) => boolean,
  steps: Steps,
) {
  let [p, i, afterStar, retry] = [0, 0, -1, 0];
  while (i < items.length) {
    if (--steps.left < 0) return false;
    if (p < pattern.length && isStar(pattern[p]!)) [afterStar, retry] = [++p, i];
    else if (p < pattern.length && one(pattern[p]!, items[i]!)) [p, i] = [p + 1, i + 1];
    else if (afterStar >= 0)
      [p, i] = [afterStar, ++retry]; // the star takes one item more
    else return false;
  }
  return pattern.slice(p).every(isStar);
}

function nameFits(parts: GlobPart[], name: string, hidden: boolean, steps: Steps) {
  const [first] = parts;
  if (name.startsWith('.') && !hidden && !(first && !first.star && first.isDot)) return false;
  return fits(
    parts,
    [...name],
    (part) => part.star,
    (part, char) => !part.star && part.matches(char),
    steps,
  );
}

function parseName(name: string): GlobPart[] | '**' {
  if (name === '**') return '**';
  // An escaped character, a class, or any other character. A "[" that is never closed is a plain one.
  const closed = name.lastIndexOf(']') + 1;
  const parts = [
    ...(name.slice(0, closed).match(/\\[^]|\[[!^]?\]?[^\]]*\]|[^]/gu) ?? []),
    ...(name.slice(closed).match(/\\[^]|[^]/gu) ?? []),
  ];
  return parts.map((part): GlobPart => {
    if (part === '*') return { star: true };
    if (part === '?') return { star: false, matches: () => true, isDot: false };
    if (part.length > 2 && part.startsWith('['))
      return { star: false, matches: parseClass(part), isDot: false };
    const wanted = part.length > 1 && part.startsWith('\\') ? part.slice(1) : part;
    return { star: false, matches: (char) => char === wanted, isDot: wanted === '.' };
  });
}

/** [abc], [a-z], [!a]: compared by hand, because a class of a regular expression has rules of its own. */
function parseClass(text: string): (char: string) => boolean {
  const isNegated = /^\[[!^]/.test(text);
  const members = [...text.slice(isNegated ? 2 : 1, -1)];
  const ranges: [from: string, to: string][] = [];
  for (let i = 0; i < members.length; i++) {
    const isRange = members[i + 1] === '-' && i + 2 < members.length;
    ranges.push([members[i]!, isRange ? members[(i += 2)]! : members[i]!]);
  }
  return (char) => ranges.some(([from, to]) => from <= char && char <= to) !== isNegated;
}

/** a{b,c}d → abd, acd. The innermost pair goes first, so pairs may stand in pairs. */
function expandBraces(pattern: string) {
  const finished: string[] = [];
  const unfinished = [pattern];
  while (unfinished.length > 0) {
    const whole = unfinished.pop()!;
    const pair = firstPair(whole);
    if (!pair) finished.push(whole);
    else {
      const [open, close] = pair;
      const options = whole.slice(open + 1, close).split(',');
      for (const option of options.reverse())
        unfinished.push(whole.slice(0, open) + option + whole.slice(close + 1));
    }
    if (finished.length + unfinished.length > MAX_ALTERNATIVES)
      throw new Error(
        `the braces of the pattern stand for more than ${MAX_ALTERNATIVES} patterns; use fewer`,
      );
  }
  return finished;
}

/** Where the first pair with a comma, and no braces in it, begins and ends. Read by hand: for each
 *  brace that nothing closes, a regular expression would look at all the rest. */
function firstPair(text: string): [open: number, close: number] | undefined {
  let open = -1;
  let hasComma = false;
  let isEscaped = false;
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (char === '}' && open !== -1 && hasComma) return [open, at];
    if (char === '}' || char === '{') {
      open = char === '{' && !isEscaped ? at : -1;
      hasComma = false;
    }
    if (char === ',') hasComma = true;
    isEscaped = char === '\\' && !isEscaped;
  }
  return undefined;
}

// ─── The walk ─────────────────────────────────────────────────────────────────────────────────────────────────

export const SKIPPED_FOLDERS = ['.git', 'node_modules'];

/** `ignore` leaves out what a project's .gitignore names, and `onIgnored` hears of it. */
type WalkOptions = {
  signal?: AbortSignal;
  maxEntries?: number;
  onCut?: () => void;
  ignore?: GitIgnore;
  onIgnored?: (path: string, isFolder: boolean) => void;
};

/** The files below a folder, by name. It follows no link, so it neither leaves the folder nor runs in a circle: a
 *  link is named like a file. What cannot be read is left out. After `maxEntries` it ends, and
 *  calls `onCut`.
 *
 *  An `await` of something that is there already lets no timer and no key press through, and a
 *  folder can have a hundred thousand files: so it takes a breath now and then. */
export async function* walkFiles(root: string, options: WalkOptions = {}): AsyncGenerator<string> {
  const { signal, maxEntries = 200_000, onCut, ignore, onIgnored } = options;
  const folders = [root];
  let entries = 0;
  while (folders.length > 0) {
    const folder = folders.pop()!;
    const subfolders: string[] = [];
    const found = await entriesOf(folder);
    await ignore?.enter(
      folder,
      found.some(({ name }) => name === '.gitignore'),
    );
    for (const entry of found) {
      if (++entries % BREATH === 0) await breathe();
      signal?.throwIfAborted();
      if (entries > maxEntries) return onCut?.();
      const path = join(folder, entry.name);
      const isFolder = entry.isDirectory();
      if (isFolder && SKIPPED_FOLDERS.includes(entry.name)) continue;
      if (ignore?.leavesOut(path, isFolder)) onIgnored?.(path, isFolder);
      else if (isFolder) subfolders.push(path);
      else if (entry.isFile() || entry.isSymbolicLink()) yield path;
    }
    folders.push(...subfolders.reverse());
  }
}

async function entriesOf(folder: string): Promise<Dirent[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
}
