// pages.ts: how long the pages are, and how often their code is interrupted.

import { read } from '../../chapters/book/files.ts';
import { ELLIPSIS, type Book, fencesIn } from '../../chapters/book/pages.ts';

export type PageSize = {
  page: string;
  words: number; // of the prose, without tables and fences
  limit: number;
  code: number; // lines
  blocks: number; // of code
  gaps: number; // lines `// …`
};

const FIRST_PAGE = 2000; // words: the idea, in half an hour
const SECOND_PAGE = 2500;

export function pageSizes(book: Book): PageSize[] {
  return book.chapters.flatMap(({ pages }) => pages.map((page) => sizeOf(book, page)));
}

function sizeOf(book: Book, page: string): PageSize {
  const text = read(book.root, page);
  const blocks = fencesIn(text).filter(({ language }) => language === 'ts');
  const written = blocks.flatMap(({ body }) => body).filter((line) => line.trim());
  const gaps = written.filter((line) => ELLIPSIS.test(line)).length;
  return {
    page: page.replace(/^chapters\//, '').replace(/\/README\.md$/, ''),
    words: (proseOf(text).match(/[A-Za-z0-9'’-]+/g) ?? []).length,
    limit: page.endsWith('/README.md') ? FIRST_PAGE : SECOND_PAGE,
    code: written.length - gaps,
    blocks: blocks.length,
    gaps,
  };
}

function proseOf(text: string): string {
  const withoutFences = text.replace(/^(`{3,4})[^]*?^\1$/gm, '');
  return withoutFences.replace(/^\|.*$/gm, '');
}
