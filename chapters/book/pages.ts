// pages.ts: what the pages hold. A fence that begins with ```ts mcp.ts is a verbatim quotation of that file; a line `// …`
// stands for what is left out. A line belongs to the first chapter that quotes it, and a blank line goes with the line
// below it.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isFile, linesOf, read } from './files.ts';

export const COMPOSITION = 'chapters/composition.ts'; // the one file that imports every chapter
export const SPINE = ['mcp.ts', 'agent.ts', COMPOSITION]; // the files of which every line must be quoted
export const ELLIPSIS = /^\s*\/\/ …$/;
export const NOT_PROGRAM = /(^|\/)(demo|exercise|naive)\.m?[tj]s$/; // these show and judge the program, they are no part of it
export const root = fileURLToPath(new URL('../..', import.meta.url));

export type Book = { root: string; chapters: Chapter[] };
export type Chapter = { n: number; title: string; folder: string; page: string; fences: Fence[]; quotations: Quotation[] };
/** ```LANGUAGE WORDS, then the body. `line` is where the body begins, counted from 1. */
export type Fence = { line: number; language: string; words: string[]; body: string[] };
export type Quotation = Fence & { file: string; source: string[]; runs: Run[] };
/** Lines of a quotation without a gap. `at` is where they stand in the file, counted from 0; -1 if nowhere. */
export type Run = { line: number; lines: string[]; at: number };

/** A small book, in a test, need not have all of them. */
export const spineOf = (book: Book) => SPINE.filter((file) => isFile(book.root, file));

export function readBook(at = root): Book {
  const slugs = readdirSync(join(at, 'chapters')).filter((name) => /^\d\d-/.test(name)).sort();
  const chapters = slugs.filter((slug) => isFile(at, 'chapters', slug, 'README.md')).map((slug): Chapter => {
    const folder = `chapters/${slug}`;
    const page = `${folder}/README.md`;
    const text = read(at, page);
    const title = /^# (?:\d+\. )?(.*)$/m.exec(text)?.[1] ?? slug;
    const fences = fencesIn(text);
    const quotations = fences.flatMap((fence) => asQuotation(at, folder, fence) ?? []);
    return { n: Number(slug.slice(0, 2)), title, folder, page, fences, quotations };
  });
  return { root: at, chapters };
}

export function fencesIn(text: string): Fence[] {
  const fences: Fence[] = [];
  let open: Fence | undefined;
  for (const [n, line] of linesOf(text).entries()) {
    const [, language = '', words = ''] = /^```(\w*) ?(.*)$/.exec(line) ?? [];
    if (open && line === '```') open = void fences.push(open);
    else if (open) open.body.push(line);
    else if (line.startsWith('```')) open = { line: n + 2, language, words: words.split(' '), body: [] };
  }
  return fences;
}

/** A fence whose second word is a file (of the chapter's folder, or from the top) is a quotation of it. */
export function asQuotation(at: string, folder: string, fence: Fence): Quotation | undefined {
  const name = fence.words[0]!;
  if (!/\.(ts|mjs)$/.test(name)) return undefined;
  const file = isFile(at, folder, name) ? `${folder}/${name}` : name;
  const source = isFile(at, file) ? linesOf(read(at, file)) : [];
  const runs: Run[] = [];
  for (const [n, text] of fence.body.entries()) {
    if (ELLIPSIS.test(text)) continue;
    if (n === 0 || ELLIPSIS.test(fence.body[n - 1]!)) runs.push({ line: fence.line + n, lines: [], at: -1 });
    runs.at(-1)!.lines.push(text);
  }
  let from = 0;
  for (const run of runs) {
    // The first place below the run before it where all its lines stand.
    run.at = source.findIndex((_, n) => n >= from && run.lines.every((text, k) => source[n + k] === text));
    if (run.at !== -1) from = run.at + run.lines.length;
  }
  return { ...fence, file, source, runs };
}

/** For every line of a file the chapter that quotes it first; 0 where none does. */
export function owners(book: Book, file: string): number[] {
  const source = linesOf(read(book.root, file));
  const owned = source.map(() => 0);
  for (const { n, quotations } of book.chapters)
    for (const { at, lines } of quotations.filter((each) => each.file === file).flatMap(({ runs }) => runs))
      for (let k = at; at !== -1 && k < at + lines.length; k++) owned[k] ||= source[k] === '' ? 0 : n;
  for (let k = source.length - 2; k >= 0; k--) if (source[k] === '') owned[k] = owned[k + 1]!;
  return owned;
}
