// search.ts: grep and glob, without a shell and without a program that might not be installed.

import { lstat } from 'node:fs/promises';
import { relative } from 'node:path';
import type { ToolOutput } from '../../agent.ts';
import { textOf } from '../../mcp.ts';
import { TooSlow } from './aside.ts';
import { reasonFor, reasonForLinks } from './delicate.ts';
import { GitIgnore } from './gitignore.ts';
import { globMatcher, globSize, SKIPPED_FOLDERS, slashed, walkFiles } from './more/glob.ts';
import { searchLines, findPaths } from './more/matching.ts';
import { openFile, type Location, type Roots } from './paths.ts';

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1000;
const MAX_CONTEXT = 10;
const MAX_LINE = 500;
const BATCH = 100; // files whose names are matched together
const MAX_COUNTED = 200; // characters of a pattern that files of .gitignore are counted by
const MAX_NAMED = 3; // folders that .gitignore leaves out
const MAX_PATTERN = 10_000;
const MAX_SEARCHED_BYTES = 10 * 2 ** 20;
const NOT_WALKED = `(not searched: ${SKIPPED_FOLDERS.join(', ')} and links; to search one, give it as path)`;

function say(lines: string[], isError = false): ToolOutput {
  return { blocks: [{ type: 'text', text: lines.join('\n') }], isError };
}

/** `isHidden` names files that a search through a folder must not show. */
type SearchOptions = { roots: Roots; isHidden: (real: string) => boolean; timeoutMs: number };

// ─── glob ─────────────────────────────────────────────────────────────────────────────────────────────────────

type GlobArguments = { pattern: string; limit?: number; ignored?: boolean };

export async function glob(
  location: Location,
  args: GlobArguments,
  { roots, timeoutMs }: SearchOptions,
  signal: AbortSignal,
): Promise<ToolOutput> {
  const { pattern, limit = DEFAULT_LIMIT } = args;
  if (/^([\\/]|[A-Za-z]:|~)|(^|\/)\.\.(\/|$)/.test(pattern))
    throw new Error(
      `the pattern ${pattern} leaves the folder; give the folder as path and a pattern relative to it`,
    );
  const stats = await lstat(location.real).catch(() => undefined);
  if (!stats?.isDirectory())
    throw new Error(`${location.shown} is ${stats ? 'not a folder; use read' : 'missing'}`);
  const found: { path: string; changedAt: number }[] = [];
  const notes: string[] = [];
  const onCut = () =>
    void notes.push('[there are too many files to look at all; give a smaller folder as path]');
  const leftOut = new LeftOut(location.real, pattern);
  const time = AbortSignal.timeout(timeoutMs);
  const either = AbortSignal.any([signal, time]);
  const isOver = () => time.aborted && !signal.aborted;
  try {
    const ignore = args.ignored
      ? undefined
      : await GitIgnore.from(location.real, roots.topOf(location.real));
    const { onIgnored } = leftOut;
    const walking = { signal: either, onCut, ignore, onIgnored };
    for await (const path of namedFiles(location.real, pattern, timeoutMs, walking)) {
      const changedAt = (await lstat(path).catch(() => undefined))?.mtimeMs;
      if (changedAt !== undefined) found.push({ path, changedAt }); // else it is gone by now
    }
  } catch (error) {
    if (!isOver() && !(error instanceof TooSlow)) throw error;
    const advice = 'there may be more. Give a smaller folder as path.';
    notes.push(`glob was stopped after ${timeoutMs / 1000} s: ${advice}`);
  }
  found.sort((a, b) => b.changedAt - a.changedAt);
  const shown = found.slice(0, Math.min(limit, MAX_LIMIT)).map(({ path }) => roots.show(path));
  const left = found.length - shown.length;
  if (left > 0) notes.push(`[${left} older files are left out; narrow the pattern]`);
  const hint = pattern.includes('/') ? '' : `; **/${pattern} looks in all folders`;
  const none = [`no file matches ${pattern}${hint} ${NOT_WALKED}`];
  return say([...(shown.length > 0 ? shown : none), ...notes, ...leftOut.note()], isOver());
}

/** The files below a folder that a pattern names. */
async function* namedFiles(
  root: string,
  pattern: string,
  timeoutMs: number,
  walking: Parameters<typeof walkFiles>[1] & { signal: AbortSignal },
): AsyncGenerator<string> {
  const { signal } = walking;
  const named = async (paths: string[]) => {
    const names = paths.map((path) => slashed(relative(root, path)));
    const fitting = new Set(await findPaths({ timeoutMs, signal }, pattern, names));
    return paths.filter((_, n) => fitting.has(names[n]!));
  };
  let batch: string[] = [];
  for await (const path of walkFiles(root, walking)) {
    if (batch.push(path) < BATCH) continue;
    yield* await named(batch);
    batch = [];
  }
  yield* await named(batch);
}

/** What .gitignore names. Of a folder nobody knows what is in it; a file counts if it was looked for. */
class LeftOut {
  private folders: string[] = [];
  private files = 0;
  private root: string;
  private matches: (path: string) => boolean;

  /** A pattern that is much work is not worth it for a count. */
  constructor(root: string, pattern: string) {
    this.root = root;
    this.matches = globSize(pattern) > MAX_COUNTED ? () => false : globMatcher(pattern);
  }

  onIgnored = (path: string, isFolder: boolean): void => {
    const name = slashed(relative(this.root, path));
    if (isFolder) this.folders.push(name);
    else if (this.matches(name)) this.files++;
  };

  note() {
    const { files, folders } = this;
    const named =
      folders.slice(0, MAX_NAMED).join(', ') + (folders.length > MAX_NAMED ? ', …' : '');
    const parts = [
      ...(folders.length > 0 ? [`${counted(folders.length, 'folder')} (${named})`] : []),
      ...(files > 0 ? [counted(files, 'file')] : []),
    ];
    if (parts.length === 0) return [];
    return [
      `[left out, as .gitignore says: ${parts.join(' and ')}; set ignored to search those, too]`,
    ];
  }
}

const counted = (count: number, what: string) => `${count} ${what}${count === 1 ? '' : 's'}`;

// ─── grep ─────────────────────────────────────────────────────────────────────────────────────────────────────

type GrepArguments = {
  pattern: string;
  glob?: string;
  ignoreCase?: boolean;
  literal?: boolean;
  context?: number;
  limit?: number;
  ignored?: boolean;
};

export async function grep(
  location: Location,
  args: GrepArguments,
  options: SearchOptions,
  signal: AbortSignal,
): Promise<ToolOutput> {
  const { roots, isHidden, timeoutMs } = options;
  const search = new Search(args);
  const { source, flags } = compile(args);
  const skips = (path: string) => reasonFor('secret', path) !== undefined || isHidden(path);
  const time = AbortSignal.timeout(timeoutMs);
  const both = { signal: AbortSignal.any([signal, time]), timeoutMs };
  try {
    const ignore = args.ignored
      ? undefined
      : await GitIgnore.from(location.real, roots.topOf(location.real));
    for await (const path of filesIn(location, args, search, skips, { ...both, ignore })) {
      search.current = roots.show(path);
      const lines = await search.open(
        { ...location, shown: search.current, real: path },
        path === location.real,
      );
      if (lines) search.add(lines, await searchLines(both, source, flags, lines));
    }
  } catch (error) {
    const isOver = time.aborted || error instanceof TooSlow;
    if (signal.aborted || !isOver) throw error;
    search.isOver = true;
  }
  return say(search.report(timeoutMs), search.isOver);
}

function compile({ pattern, literal, ignoreCase }: GrepArguments): {
  source: string;
  flags: string;
} {
  if (pattern.length > MAX_PATTERN)
    throw new Error(`the pattern has more than ${MAX_PATTERN} characters; shorten it`);
  const source = literal ? pattern.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&') : pattern;
  try {
    return new RegExp(source, ignoreCase ? 'i' : '');
  } catch (error) {
    throw new Error(
      `${textOf(error)}. Correct the pattern, or set literal to search for exactly this text.`,
    );
  }
}

/** The file that was named, whatever it is; or those of a folder, without the ones that nobody has named on purpose. */
async function* filesIn(
  { real, shown }: Location,
  { glob: filter = '**' }: GrepArguments,
  search: Search,
  skips: (path: string) => boolean,
  walking: { signal: AbortSignal; timeoutMs: number; ignore?: GitIgnore },
): AsyncGenerator<string> {
  const stats = await lstat(real).catch(() => undefined);
  if (!stats) throw new Error(`there is no file or folder ${shown}; use glob to see what there is`);
  if (!stats.isDirectory()) return void (yield real);
  const pattern = filter.includes('/') ? filter : `**/${filter}`; // *.ts means in all folders
  search.leftOut = new LeftOut(real, pattern);
  const { onIgnored } = search.leftOut;
  const onCut = () => void (search.isCut = true);
  const all = { ...walking, onCut, onIgnored };
  for await (const path of namedFiles(real, pattern, walking.timeoutMs, all))
    if (skips(path)) search.hidden++;
    else yield path;
}

class Search {
  current = ''; // the file that is being searched
  isOver = false; // the time was
  isCut = false; // there were too many files
  hidden = 0;
  leftOut?: LeftOut;
  private args: GrepArguments;
  private limit: number;
  private files = 0;
  private tooLarge = 0;
  private hits = 0;
  private found: string[] = [];

  constructor(args: GrepArguments) {
    this.args = args;
    this.limit = Math.min(args.limit ?? DEFAULT_LIMIT, MAX_LIMIT);
  }

  /** The lines of a text file. What is binary, too large, a link or not open to us is passed over, unless named. */
  async open(location: Location, isNamed: boolean) {
    const file = await openFile(location).catch((error) => {
      if (isNamed) throw error;
    });
    if (!file) return undefined;
    try {
      const { size, nlink } = await file.stat();
      if (!isNamed && reasonForLinks(location.real, nlink)) return void this.hidden++;
      if (size > MAX_SEARCHED_BYTES) return void this.tooLarge++;
      const content = await file.readFile().catch((error) => {
        if (isNamed) throw error;
      });
      if (!content) return undefined;
      const isBinary = content.includes(0);
      if (isBinary && isNamed)
        throw new Error(`${location.shown} is not text (it has NUL bytes); use bash`);
      if (isBinary) return undefined;
      this.files++;
      return content.toString().split(/\r?\n/);
    } finally {
      await file.close();
    }
  }

  add(lines: string[], hits: number[]) {
    const shown = hits.slice(0, Math.max(0, this.limit - this.hits));
    this.hits += hits.length;
    const context = Math.min(this.args.context ?? 0, MAX_CONTEXT);
    let last = -2; // that was shown of this file
    const around = Array.from({ length: 2 * context + 1 }, (_, i) => i - context);
    const wanted = new Set(shown.flatMap((hit) => around.map((distance) => hit + distance)));
    for (const number of wanted) {
      const line = lines[number];
      if (line === undefined) continue; // before the first or behind the last
      if (context > 0 && number !== last + 1 && this.found.length > 0) this.found.push('--');
      const mark = shown.includes(number) ? ':' : '-';
      this.found.push(`${this.current}${mark}${number + 1}${mark}${cut(line)}`);
      last = number;
    }
  }

  report(timeoutMs: number) {
    const left = this.hits - Math.min(this.hits, this.limit);
    const notes = [
      this.hits === 0 && `no match for ${this.args.pattern} in ${this.files} files ${NOT_WALKED}`,
      left > 0 &&
        `[${left} more matches are left out; narrow the pattern, or raise limit (up to ${MAX_LIMIT})]`,
      this.hidden > 0 &&
        `[${this.hidden} files that may hold secrets were skipped; name one as path to search it]`,
      this.tooLarge > 0 &&
        `[${this.tooLarge} files over ${MAX_SEARCHED_BYTES} bytes were skipped; use bash for those]`,
      this.isCut && '[there are too many files to search all; give a smaller folder as path]',
      this.isOver &&
        `grep was stopped after ${timeoutMs / 1000} s, in ${this.current}: there may be more. Use a ` +
          'simpler pattern ((a+)+ and its like can take for ever), set literal, or give a smaller folder as path.',
    ];
    const leftOut = this.leftOut?.note() ?? [];
    return [...this.found, ...notes.filter((note) => note !== false), ...leftOut];
  }
}

function cut(line: string) {
  return line.length > MAX_LINE ? `${line.slice(0, MAX_LINE)}… (${line.length} characters)` : line;
}
