// program.ts: the program as it is at the end of a chapter: all lines that belong to it and to those before it. Nothing is
// stored, it is cut on demand.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { filesIn, linesOf, put, read, usage } from './files.ts';
import { NOT_PROGRAM, owners, SPINE, spineOf, type Book, type Chapter } from './pages.ts';

export function cut(book: Book, file: string, n: number): string {
  const owned = owners(book, file);
  const lines = read(book.root, file).split('\n').filter((_, k) => owned[k]! > 0 && owned[k]! <= n);
  return lines.join('\n') + '\n';
}

/** Writes the program as of chapter n into a folder: what belongs to chapters 1 to n, and the servers to talk to.
 *  `instead` holds files that take the place of the program's, or come along with it. */
export function writeProgram(book: Book, n: number, folder: string, instead: Record<string, string> = {}): void {
  const files = new Map([['package.json', '{ "type": "module", "private": true }\n']]);
  for (const file of spineOf(book)) {
    const text = cut(book, file, n);
    if (text.trim()) files.set(file, text);
  }
  const folders = book.chapters.filter((chapter) => chapter.n <= n).map((chapter) => chapter.folder);
  for (const name of [...folders, 'fixtures'].flatMap((part) => filesIn(join(book.root, part), book.root)))
    if (/\.(ts|mjs)$/.test(name) && !NOT_PROGRAM.test(name)) files.set(name, read(book.root, name));
  for (const [name, text] of Object.entries(instead)) files.set(name, text);
  for (const name of filesIn(folder)) if (!files.has(name)) rmSync(join(folder, name), { force: true });
  for (const [name, text] of files) put(join(folder, name), text);
}

export const cached = (book: Book, name: string) => join(book.root, '.cache', 'book', name);
export const workFolder = (book: Book) => process.env.WORK ?? join(book.root, 'work');
/** The demo of a chapter is no part of the program, but goes along with it. */
export const withDemo = (book: Book, { folder }: Chapter) => ({ [`${folder}/demo.ts`]: read(book.root, folder, 'demo.ts') });

/** The program of a chapter cannot be cut out of files that are no longer what its pages say of them. */
export function refuseIfChanged(book: Book, n: number): void {
  const quotations = book.chapters.filter((chapter) => chapter.n <= n).flatMap((chapter) => chapter.quotations);
  const lost = quotations.find(({ file, runs }) => SPINE.includes(file) && runs.some(({ at }) => at === -1));
  if (!lost) return;
  const advice = `Exercises are edited in work/, not there. To get it back: git checkout ${lost.file}`;
  throw usage(`${lost.file} is not the program of the book any more (npm run book check says where). ${advice}`);
}

/** What chapter n adds to the files that all chapters share, with two lines around it. */
export function diff(book: Book, n: number): string[] {
  return spineOf(book).flatMap((file) => {
    const owned = owners(book, file);
    const lines = linesOf(read(book.root, file)).map((text, k) => ({ text, owner: owned[k]! }));
    const there = lines.filter(({ owner }) => owner > 0 && owner <= n);
    const near = there.filter((_, k) => there.slice(Math.max(0, k - 2), k + 3).some(({ owner }) => owner === n));
    const count = near.filter(({ owner }) => owner === n).length;
    if (count === 0) return [];
    const shown = near.map(({ text, owner }) => `${owner === n ? '+' : ' '} ${text}`.trimEnd());
    return [`── ${file}: ${count} lines`, ...shown];
  });
}
