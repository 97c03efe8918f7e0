// program.ts: the program as it is at a step: all lines that belong to it and to those before it, and the lines that are
// there only until a later one. Nothing is stored, it is cut on demand.

import { existsSync, lstatSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { filesIn, linesOf, put, read, usage } from './files.ts';
import {
  NOT_PROGRAM, nameOf, owners, quotationsOf, stepBefore, SPINE, spineOf, type Book, type Chapter, type Step,
} from './pages.ts';

/** A line of a file at some step. `at` is its place in the final file, or -1; `since` and `until` are steps. */
export type Line = { text: string; at: number; since: Step; until: Step };

const lines = new WeakMap<Book, Map<string, Line[]>>(); // they are asked for hundreds of times

/** All lines that a file has at any step. */
export function linesOfAllSteps(book: Book, file: string): Line[] {
  const known = lines.get(book) ?? new Map<string, Line[]>();
  lines.set(book, known);
  if (!known.has(file)) known.set(file, readLines(book, file));
  return known.get(file)!;
}

function readLines(book: Book, file: string): Line[] {
  const owned = owners(book, file);
  const standIns = quotationsOf(book, file).filter(({ until }) => until !== undefined);
  return linesOf(read(book.root, file)).flatMap((text, at) => {
    const line: Line = { text, at, since: owned[at]!, until: Infinity };
    const here = standIns.filter(({ runs }) => runs[0]!.at === at && runs[1]!.at !== -1);
    const others = here.flatMap(({ body, step, until }) =>
      body.slice(1, -1).map((inside): Line => ({ text: inside, at: -1, since: step, until: until! })));
    return [line, ...others];
  });
}

export const isThere = ({ since, until }: Line, step: Step) => since > 0 && since <= step && step < until;

export function cut(book: Book, file: string, step: Step): string {
  const lines = linesOfAllSteps(book, file).filter((line) => isThere(line, step));
  return lines.map(({ text }) => text).join('\n') + '\n';
}

/** The files of the program as of a step: what belongs to it and to those before it, and the servers to talk to.
 *  `instead` holds files that take the place of the program's, or come along with it. */
export function filesOfProgram(book: Book, step: Step, instead: Record<string, string> = {}): Map<string, string> {
  const files = new Map([['package.json', '{ "type": "module", "private": true }\n']]);
  for (const file of spineOf(book)) {
    const text = cut(book, file, step);
    if (text.trim()) files.set(file, text);
  }
  const modules = book.chapters.flatMap((chapter) => modulesOf(book, chapter, step));
  const servers = filesIn(join(book.root, 'fixtures'), book.root).filter((name) => name.endsWith('.mjs'));
  const pages = book.chapters.filter(({ n }) => n <= step).flatMap((chapter) => pagesOf(book, chapter));
  for (const name of [...modules, ...servers, ...pages]) files.set(name, read(book.root, name));
  for (const [name, text] of Object.entries(instead)) files.set(name, text);
  return files;
}

export function writeProgram(book: Book, step: Step, folder: string, instead?: Record<string, string>): void {
  writeFiles(folder, filesOfProgram(book, step, instead));
}

/** Afterwards the folder holds these files, and no others. */
export function writeFiles(folder: string, files: Map<string, string>): void {
  refuseLinks(folder);
  for (const name of filesIn(folder)) if (!files.has(name)) rmSync(join(folder, name), { force: true });
  for (const [name, text] of files) put(join(folder, name), text);
}

/** What is behind a link, such as a node_modules that somebody has linked, is not ours to write or to clear away. */
function refuseLinks(folder: string): void {
  const isLink = (path: string) => lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink();
  const names = existsSync(folder) ? (readdirSync(folder, { recursive: true }) as string[]) : [];
  const link = [folder, ...names.map((name) => join(folder, name))].find(isLink);
  if (link) throw new Error(`${link} is a link, and no program is written there; move it away`);
}

/** Whole files, which come with their chapter; at a stop inside its page only those that were quoted by then. */
export function modulesOf(book: Book, { folder, n, stops }: Chapter, step: Step): string[] {
  if (step < (stops[0] ?? n)) return [];
  const files = filesIn(join(book.root, folder), book.root);
  const modules = files.filter((name) => /\.(ts|mjs)$/.test(name) && !NOT_PROGRAM.test(name));
  if (step >= n) return modules;
  return modules.filter((name) => quotationsOf(book, name).some((quotation) => quotation.step <= step));
}

/** What a program shows in a browser. */
function pagesOf(book: Book, { folder }: Chapter): string[] {
  return filesIn(join(book.root, folder), book.root).filter((name) => name.endsWith('.html'));
}

export const cached = (book: Book, name: string) => join(book.root, '.cache', 'book', name);
export const workFolder = (book: Book) => process.env.WORK ?? join(book.root, 'work');
/** The demo of a chapter is no part of the program, but goes along with it. A stop has its own. */
export function demoOf({ folder, n }: Chapter, step: Step = n): string {
  return step === n ? `${folder}/demo.ts` : `${folder}/demo-${nameOf(step).split('.')[1]}.ts`;
}

export const withDemo = (book: Book, chapter: Chapter, step?: Step) => {
  const file = demoOf(chapter, step);
  return { [file]: read(book.root, file) };
};

/** The program of a step cannot be cut out of files that are no longer what its pages say of them. */
export function refuseIfChanged(book: Book, step: Step): void {
  const quotations = book.chapters.flatMap((chapter) => chapter.quotations).filter((each) => each.step <= step);
  const lost = quotations.find(({ file, runs }) => SPINE.includes(file) && runs.some(({ at }) => at === -1));
  if (!lost) return;
  const advice = `Exercises are edited in work/, not there. To get it back: git checkout ${lost.file}`;
  throw usage(`${lost.file} is not the program of the book any more (npm run book check says where). ${advice}`);
}

/** What a step adds to the files that all chapters share and takes from them, with two lines around it. A whole chapter is
 *  compared with the chapter before, a stop inside a page with the step before. */
export function diff(book: Book, step: Step): string[] {
  const chapters = book.chapters.map(({ n }) => n);
  const isWhole = chapters.includes(step);
  const before = isWhole ? (chapters[chapters.indexOf(step) - 1] ?? 0) : stepBefore(book, step);
  return spineOf(book).flatMap((file) => {
    const all = linesOfAllSteps(book, file).filter((line) => isThere(line, step) || isThere(line, before));
    const sign = (line: Line) => {
      if (!isThere(line, step)) return '-';
      return isThere(line, before) ? ' ' : '+';
    };
    const near = all.filter((_, k) => all.slice(Math.max(0, k - 2), k + 3).some((line) => sign(line) !== ' '));
    const count = near.filter((line) => sign(line) === '+').length;
    const gone = near.filter((line) => sign(line) === '-').length;
    if (count + gone === 0) return [];
    const shown = near.map((line) => `${sign(line)} ${line.text}`.trimEnd());
    return [`── ${file}: ${count} lines${gone > 0 ? `, in the place of ${gone}` : ''}`, ...shown];
  });
}
