// plain-search.ts: where is this text, or this pattern? On the texts of a CodeTree, line by line.
//
// By a regular expression, in a thread as in chapter 16: nothing else can end one that takes too long.
// The thread sees the same memory, so no text is copied to it.

import { textOf } from '../../mcp.ts';
import { aside, TooSlow, type AsideOptions } from '../16-hands/aside.ts';
import { findPaths } from '../16-hands/more/matching.ts';
import type { linesInTexts } from './code/find-lines.ts';
import type { CodeTree, SourceFile } from './tree.ts';

const MAX_PATTERN = 10_000;

/** Numbers count from 1. */
type Match = { file_path: string; line_number: number; column: number; line: string };
export type PlainQuery = {
  query: string;
  regex?: boolean;
  ignore_case?: boolean;
  glob?: string;
  max_results: number;
};

/** Brings the tree up to date first. */
export async function findPlain(
  tree: CodeTree,
  query: PlainQuery,
  signal: AbortSignal,
  timeoutMs = 10_000,
) {
  if (query.query === '') throw new Error('query is empty; give a text to look for');
  if (query.query.length > MAX_PATTERN)
    throw new Error(`query has more than ${MAX_PATTERN} characters; shorten it`);
  const pattern = compile(query); // throws before anything is read
  await tree.refresh(signal);
  const options = { timeoutMs, signal };
  const explained = (error: unknown) => {
    throw error instanceof TooSlow ? new Error(tooSlow(timeoutMs)) : error;
  };
  const files = await filesFor(tree.list(), query.glob, options).catch(explained);
  const most = query.max_results + 1; // one more shows that there are more
  const texts = files.map(({ bytes }) => bytes);
  const job = { ...options, module: '29-a-server/code/find-lines', name: 'linesInTexts' };
  const { source, flags } = pattern;
  const literals = flags === '' ? literalsIn(source) : [];
  const searching = aside<typeof linesInTexts>(job, texts, { source, flags, literals, most });
  const hits = await searching.catch(explained);
  const matches = hits.slice(0, query.max_results).map(({ text, ...match }): Match => {
    return { file_path: files[text]!.path, ...match };
  });
  return { matches, isCut: hits.length > query.max_results };
}

async function filesFor(all: SourceFile[], glob: string | undefined, options: AsideOptions) {
  if (glob === undefined) return all;
  const pattern = glob.includes('/') ? glob : `**/${glob}`; // *.ts means in all folders
  const paths = all.map(({ path }) => path);
  const fitting = new Set(await findPaths(options, pattern, paths));
  return all.filter(({ path }) => fitting.has(path));
}

function tooSlow(timeoutMs: number) {
  return (
    `the search was stopped after ${timeoutMs / 1000} s: use a simpler pattern ((a+)+ and its ` +
    'like can take years), a glob for fewer files, or leave out regex'
  );
}

function compile({ query, regex, ignore_case }: PlainQuery) {
  const source = regex ? query : query.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
  try {
    return new RegExp(source, ignore_case ? 'i' : '');
  } catch (error) {
    throw new Error(
      `${textOf(error)}. Correct the pattern, or leave out regex to look for this text.`,
    );
  }
}

/** Texts that are in every line which a pattern matches: a file without them need not be decoded.
 *  Only of patterns that are plain enough to be sure. */
export function literalsIn(source: string): string[] {
  if (/\\[xucpPk\d]|[^\x20-\x7e]/.test(source)) return [];
  // What is between [ and ] is one part. A backslash there can be read in one way only: with two,
  // this expression, which is no client's, would take years itself.
  const each = /\\[^]|\[(?:\\[^]|[^\]\\])*(?:\]|\\?$)|[*+?]\??|\{[^}]{0,20}\}|[^]/g;
  const parts: string[] = source.match(each) ?? [];
  if (parts.some((part) => part === '|' || part === '(')) return [];
  const runs: string[] = [''];
  for (const part of parts)
    if (/^[\w /"'`=:;,<>!@#%&~-]$/.test(part)) runs.push(runs.pop() + part);
    else if (/^\\[.()[\]{}$^*+?|\\/]$/.test(part)) runs.push(runs.pop() + part.slice(1));
    // What is before it may be missing.
    else if (/^[*?{]/.test(part)) runs.push(runs.pop()!.slice(0, -1), '');
    else runs.push('');

  return runs.filter((run) => run.length > 2);
}
