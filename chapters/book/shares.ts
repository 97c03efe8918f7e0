// shares.ts: how much of its own files a chapter's page quotes. mcp.ts, agent.ts and the composition are quoted to the last
// line; of the files in a chapter's folder a page quotes what matters, and the contents say how much that is.

import { basename } from 'node:path';
import { linesOf, read } from './files.ts';
import type { Book, Chapter } from './pages.ts';
import { modulesOf } from './program.ts';

type Share = { quoted: number; lines: number };

const percent = ({ quoted, lines }: Share) => `${Math.round((100 * quoted) / lines)} %`;

/** Of the lines of a module that are not blank, those that the chapter's own page quotes. */
function shareOf(book: Book, { quotations }: Chapter, file: string): Share {
  const source = linesOf(read(book.root, file));
  const runs = quotations.filter((each) => each.file === file).flatMap((each) => each.runs);
  const isQuoted = (n: number) =>
    runs.some(({ at, lines }) => at !== -1 && n >= at && n < at + lines.length);
  const written = source.flatMap((text, n) => (text === '' ? [] : [n]));
  return { quoted: written.filter(isQuoted).length, lines: written.length };
}

/** For each chapter that has files of its own: the share of all of them, and of each. */
export function sharesOf(book: Book) {
  return book.chapters.flatMap((chapter) => {
    const modules = modulesOf(book, chapter, chapter.n);
    if (modules.length === 0) return [];
    const each = modules.map((file) => ({ name: basename(file), ...shareOf(book, chapter, file) }));
    const sum = (key: keyof Share) => each.reduce((total, share) => total + share[key], 0);
    return [{ chapter, each, all: percent({ quoted: sum('quoted'), lines: sum('lines') }) }];
  });
}

/** One line per chapter. */
export function tellShares(book: Book): string[] {
  return sharesOf(book).map(({ chapter: { n, title }, all, each }) => {
    const parts = each.map((share) => `${share.name} ${percent(share)}`);
    return `${n}. ${title} quotes ${all} of its files: ${parts.join(', ')}`;
  });
}
