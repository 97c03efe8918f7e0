// homes.ts: what is book, and what is the rest of the product. From chapter 16 on, a module that a page quotes lies in
// its chapter's folder. One that no page quotes lies one level down, in a folder that says what it is.
//
//   npm run book homes           which files are in the wrong place?
//   npm run book homes move      moves them, and mends every path that leads there or starts there

import { existsSync, mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, posix } from 'node:path';
import { filesIn, isFile, read } from './files.ts';
import { quotationsOf, type Book, type Chapter } from './pages.ts';
import { modulesOf } from './program.ts';

const FIRST = 16; // before it every line of a module is quoted
const MAX_FILES = 39; // of code in one folder, so that a reader can take it in

export type Move = { from: string; to: string };

/** The modules that are not where they belong. A folder with a better name than more/ is for people to choose. */
export function wrongHomes(book: Book): Move[] {
  const chapters = book.chapters.filter(({ n }) => n >= FIRST);
  return chapters.flatMap((chapter) =>
    modulesOf(book, chapter, chapter.n).flatMap((from) => {
      const isDeeper = dirname(from) !== chapter.folder;
      const isQuoted = quotationsOf(book, from).length > 0;
      if (isDeeper === !isQuoted) return [];
      const to = posix.join(chapter.folder, isQuoted ? '' : 'more', basename(from));
      return [{ from, to }];
    }),
  );
}

export function problemsOfHomes(book: Book): string[] {
  const wrong = wrongHomes(book).map(({ from, to }) => {
    const why = dirname(to).endsWith('/more') ? 'no page quotes it' : 'a page quotes it';
    return `${from}:1: ${why}, so it belongs elsewhere, such as ${to} (npm run book homes move)`;
  });
  return [...wrong, ...book.chapters.flatMap((chapter) => fullFolders(book, chapter))];
}

function fullFolders(book: Book, { folder, page }: Chapter): string[] {
  const count = filesIn(join(book.root, folder), book.root).filter(
    (file) => dirname(file) === folder && !file.endsWith('.md'), // many short pages are a good thing
  ).length;
  if (count <= MAX_FILES) return [];
  return [`${page}:1: ${folder} has ${count} files of code, more than ${MAX_FILES}`];
}

/** Moves files. Then every path in a text of the repository leads to the same file as before. */
export function moveFiles({ root }: Book, moves: Move[]): void {
  const places = new Map(moves.map(({ from, to }) => [from, to]));
  const origins = new Map(moves.map(({ from, to }) => [to, from]));
  for (const { from, to } of moves) {
    if (existsSync(join(root, to))) throw new Error(`${to} is there already`);
    mkdirSync(join(root, dirname(to)), { recursive: true });
    renameSync(join(root, from), join(root, to));
  }
  for (const file of textsOf(root)) {
    const before = read(root, file);
    const after = withNewPaths(before, origins.get(file) ?? file, file, (path) => {
      const place = places.get(path) ?? path;
      return existsSync(join(root, place)) ? place : undefined;
    });
    if (after !== before) writeFileSync(join(root, file), after);
  }
}

function textsOf(root: string): string[] {
  const top = readdirSync(root).filter((name) => isFile(root, name));
  const folders = ['chapters', 'test', 'fixtures', '.github'];
  const deeper = folders.flatMap((name) => filesIn(join(root, name), root));
  return [...top, ...deeper].filter((name) => /\.(ts|mjs|md|jsonc?|html)$/.test(name));
}

// An import, a URL or a link; the file that a fence quotes.
const RELATIVE = /(?<=['"(])[\w.][\w./-]*\.(?:ts|mjs|html)(?=['")])|(?<=^```ts )\S+/gm;
const FROM_TOP = /(?<![\w./-])chapters\/\d\d-[\w-]+\/[\w./-]+\.(?:ts|mjs)\b/g;

/** A text that was in the file `before`, and is in the file `now`. */
function withNewPaths(
  text: string,
  before: string,
  now: string,
  placeOf: (path: string) => string | undefined,
): string {
  const fromTop = text.replace(FROM_TOP, (path) => placeOf(path) ?? path);
  return fromTop.replace(RELATIVE, (path) => {
    const target = posix.join(dirname(before), path);
    const place = placeOf(target);
    if (!place || (place === target && before === now)) return path;
    const mended = posix.relative(dirname(now), place);
    return path.startsWith('.') && !mended.startsWith('.') ? `./${mended}` : mended;
  });
}
