// pages.ts: what the pages hold. A fence that begins with ```ts mcp.ts is a verbatim quotation of that file; a line `// …`
// stands for what is left out. A line belongs to the first step that quotes it, and a blank line goes with the line
// below it. A fence that begins with ```ts mcp.ts until 6 holds lines that are in the program only from its step until
// another: its first and last lines are in the file, and say in which place the others are until then. A module of chapter
// 16 or later is not cut by line: there, ```ts gate.ts until 17 holds the whole file as it is until then, simple enough to
// be read at one go.

import { readdirSync } from 'node:fs';
import { basename, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { filesIn, isFile, linesOf, read } from './files.ts';
import { headIn, tiesIn } from './plumbing.ts';

export const COMPOSITION = 'chapters/composition.ts'; // the one file that imports every chapter
export const ELLIPSIS = /^\s*\/\/ …$/;
export const NOT_PROGRAM = /(^|\/)((demo|exercise)(-\d)?|naive|whole)\.m?[tj]s$/; // these show and judge the program, they are no part of it
export const root = fileURLToPath(new URL('../..', import.meta.url));

/** A step of the book is a number, so that steps can be compared: 15 is the program at the end of chapter 15. A page may
 *  stop on the way there, with a console block `$ npm run chapter 15.1`: that is 14.01. */
export type Step = number;

/** `files` are those in the chapters' folders, as they were when the book was read. */
export type Book = { root: string; chapters: Chapter[]; steps: Step[]; files: string[] };
export type Chapter = {
  n: Step;
  title: string;
  folder: string;
  page: string; // the first, or only one
  pages: string[]; // README.md, then 1-….md if there are two first ones, then 2-….md, 3-….md
  stops: Step[]; // inside its pages, in order
  fences: Fence[];
  quotations: Quotation[];
};
/** ```LANGUAGE WORDS, then the body. `line` is where on its page the body begins, counted from 1. */
export type Fence = {
  page: string;
  line: number;
  language: string;
  words: string[];
  body: string[];
  step: Step;
};
export type Quotation = Fence & { file: string; source: string[]; runs: Run[]; until?: Step };
/** Lines of a quotation without a gap. `at` is where they are in the file, counted from 0; -1 if nowhere. */
export type Run = { line: number; lines: string[]; at: number };

export function stepOf(name: string): Step {
  const [n, stop] = name.split('.').map(Number);
  return stop === undefined ? n! : n! - 1 + stop / 100;
}

export function nameOf(step: Step): string {
  const stop = Math.round((step % 1) * 100);
  return stop === 0 ? `${step}` : `${Math.floor(step) + 1}.${stop}`;
}

/** Of two steps that are neighbours: a chapter without stops is one step. */
export const stepBefore = (book: Book, step: Step): Step =>
  book.steps[book.steps.indexOf(step) - 1] ?? 0;

export const chapterOf = (book: Book, step: Step): Chapter | undefined =>
  book.chapters.find(({ n, stops }) => n === step || stops.includes(step));

const TOP = ['mcp.ts', 'agent.ts', COMPOSITION];
const PART = /^chapters\/(0[1-9]|1[0-5])-[^/]+\/[\w-]+\.ts$/;

/** The files that are cut by line, and of which every line must be quoted: mcp.ts, agent.ts, the composition, and their
 *  parts, which are all modules in the folders of chapters 1 to 15. */
export const isSpine = (file: string) => TOP.includes(file) || isPart(file);
export const isPart = (file: string) => PART.test(file) && !NOT_PROGRAM.test(file);

/** In the order of the chapters. A small book, in a test, need not have all of them. */
export function spineOf(book: Book): string[] {
  const there = TOP.filter((file) => isFile(book.root, file));
  return [...there, ...book.files.filter(isPart)];
}

export function readBook(at = root): Book {
  const sources = new Map<string, string[]>(); // each is quoted hundreds of times, and read once
  const sourceOf = (file: string) => {
    if (!sources.has(file)) sources.set(file, isFile(at, file) ? linesOf(read(at, file)) : []);
    return sources.get(file)!;
  };
  const slugs = readdirSync(join(at, 'chapters'))
    .filter((name) => /^\d\d-/.test(name) && isFile(at, 'chapters', name, 'README.md'))
    .sort();
  const files = slugs.flatMap((slug) => filesIn(join(at, 'chapters', slug), at).sort());
  // A page may call a part by its last name alone, wherever it is.
  const parts = new Map(files.filter(isPart).map((file) => [basename(file), file]));
  const chapters = slugs.map((slug): Chapter => {
    const folder = `chapters/${slug}`;
    const page = `${folder}/README.md`;
    const more = readdirSync(join(at, folder))
      .filter((name) => /^[1-9]-[\w-]+\.md$/.test(name))
      .sort();
    const pages = [page, ...more.map((name) => `${folder}/${name}`)];
    const text = read(at, page);
    const title = /^# (?:\d+\. )?(.*)$/m.exec(text)?.[1] ?? slug;
    const n = Number(slug.slice(0, 2));
    const fences = withSteps(
      pages.flatMap((each) => fencesIn(read(at, each), each)),
      n,
    );
    const stops = [...new Set(fences.map(({ step }) => step))].filter((step) => step !== n);
    const quotations = fences.flatMap((fence) => asQuotation(folder, fence, sourceOf, parts) ?? []);
    return { n, title, folder, page, pages, stops, fences, quotations };
  });
  return {
    root: at,
    chapters,
    files,
    steps: chapters.flatMap(({ stops, n }) => (n === 0 ? [] : [...stops, n])),
  };
}

/** A fence belongs to the next stop of its chapter, and after the last one to the end of the chapter. */
function withSteps(fences: Fence[], n: Step): Fence[] {
  const stopAt = ({ language, body }: Fence) => {
    const command =
      language === 'console' && body.find((line) => /^\$ npm run chapter \d+\.\d+$/.test(line));
    return command ? stepOf(command.split(' ').at(-1)!) : undefined;
  };
  return fences.map((fence, k) => {
    const stop = fences
      .slice(k)
      .map(stopAt)
      .find((step) => step !== undefined);
    return { ...fence, step: stop ?? n };
  });
}

export function fencesIn(text: string, page = ''): Fence[] {
  const fences: Fence[] = [];
  let open: Fence | undefined;
  for (const [n, line] of linesOf(text).entries()) {
    const [, language = '', words = ''] = /^```(\w*) ?(.*)$/.exec(line) ?? [];
    if (open && line === '```') open = void fences.push(open);
    else if (open) open.body.push(line);
    else if (line.startsWith('```'))
      open = { page, line: n + 2, language, words: words.split(' '), body: [], step: 0 };
  }
  return fences;
}

/** A fence whose second word is a file is a quotation of it: of the chapter's folder, from the top, or a part. */
function asQuotation(
  folder: string,
  fence: Fence,
  sourceOf: (file: string) => string[],
  parts: Map<string, string>,
): Quotation | undefined {
  const name = fence.words[0]!;
  if (!/\.(ts|mjs)$/.test(name)) return undefined;
  const ofChapter = posix.join(folder, name); // `../16-hands/glob.ts` is a file of another chapter
  const file = sourceOf(ofChapter).length > 0 ? ofChapter : (parts.get(name) ?? name);
  const source = sourceOf(file);
  const until = fence.words[1] === 'until' ? stepOf(fence.words[2] ?? '') : undefined;
  if (until !== undefined && !isSpine(file)) return { ...fence, file, source, runs: [], until };
  if (until !== undefined) return { ...asStandIn(fence, file, source), until };
  const runs: Run[] = [];
  for (const [n, text] of fence.body.entries()) {
    if (ELLIPSIS.test(text)) continue;
    if (n === 0 || ELLIPSIS.test(fence.body[n - 1]!))
      runs.push({ line: fence.line + n, lines: [], at: -1 });
    runs.at(-1)!.lines.push(text);
  }
  let from = 0;
  for (const run of runs) {
    // The first place below the run before it where all its lines stand.
    run.at = source.indexOf(run.lines[0]!, from);
    while (run.at !== -1 && !run.lines.every((text, k) => source[run.at + k] === text))
      run.at = source.indexOf(run.lines[0]!, run.at + 1);
    if (run.at !== -1) from = run.at + run.lines.length;
  }
  return { ...fence, file, source, runs };
}

/** Lines that others replace later. Of those in the file they quote two: one that is there once, and the next one that is
 *  like their last. */
function asStandIn(fence: Fence, file: string, source: string[]): Quotation {
  const [first = '', last = ''] = [fence.body[0], fence.body.at(-1)];
  const isThereOnce = source.filter((line) => line === first).length === 1;
  const start = isThereOnce ? source.indexOf(first) : -1;
  const end = start === -1 ? -1 : source.indexOf(last, start + 1);
  const runs = [
    { line: fence.line, lines: [first], at: start },
    { line: fence.line + fence.body.length - 1, lines: [last], at: end },
  ];
  return { ...fence, file, source, runs };
}

/** A simple version of a whole module, which the real one replaces later. */
export const isSimpleVersion = ({ file, until }: Quotation) =>
  until !== undefined && !isSpine(file);

export const quotationsOf = (book: Book, file: string): Quotation[] =>
  book.chapters.flatMap(({ quotations }) => quotations.filter((each) => each.file === file));

/** For every line of a file the step that quotes it first; 0 where none does. Its head, and what ties it to other files,
 *  need no quotation: they come with its first line. */
export function owners(book: Book, file: string): Step[] {
  const source = linesOf(read(book.root, file));
  const owned = source.map(() => 0);
  for (const { step, runs } of quotationsOf(book, file))
    for (const { at, lines } of runs)
      for (let k = at; at !== -1 && k < at + lines.length; k++)
        owned[k] ||= source[k] === '' ? 0 : step;
  const begins = Math.min(...owned.filter((step) => step > 0));
  const first = Number.isFinite(begins) ? begins : 0;
  for (let k = 0; k < headIn(source); k++) owned[k] ||= first;
  for (const { start, end } of tiesIn(source)) owned.fill(first, start, end + 1);
  for (let k = source.length - 2; k >= 0; k--) if (source[k] === '') owned[k] = owned[k + 1]!;
  return owned;
}
