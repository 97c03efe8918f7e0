// shell.ts: what is around every page of the site: the chapters, a field to search in, and what is
// on the page.

import { linesOf, read } from '../files.ts';
import type { Book, Chapter } from '../pages.ts';
import { escapeHtml } from './ink.ts';
import type { Heading } from './render.ts';
import type { Shelf, SitePage } from './shelf.ts';

export type Sheet = {
  title: string;
  language: string;
  body: string;
  headings?: Heading[];
  page?: SitePage;
};

/** A page opened as a file has no origin, and `file:` is what allows its own folder. */
const POLICY = [
  "default-src 'none'",
  "style-src 'self' file:",
  "script-src 'self' file:",
  "img-src 'self' file:",
  "frame-src 'self' file:",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');

const AS_SLIDES = '<li class="as-slides" hidden><a href="#slides">This page as slides</a></li>\n';
const LANGUAGES: Record<string, string> = { en: 'English', 'zh-CN': '中文' };

export class Shell {
  private book: Book;
  private shelf: Shelf;
  private parts: Map<number, string>;

  constructor(book: Book, shelf: Shelf) {
    this.book = book;
    this.shelf = shelf;
    this.parts = partsIn(read(book.root, 'chapters/README.md'));
  }

  around({ title, language, body, headings = [], page }: Sheet): string {
    const contents = contentsOf(headings);
    const others = page ? this.switches(page) : '';
    return `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="referrer" content="no-referrer">
<title>${escapeHtml(title)}</title>
<link rel="stylesheet" href="book.css">
<script src="book.js" defer></script>
</head>
<body>
<a class="skip" href="#main">Skip to the text</a>
${this.menu(page)}
<main id="main">
${others}${body.replace('</h1>', () => `</h1>\n${contents}`)}</main>
</body>
</html>
`;
  }

  private menu(page?: SitePage): string {
    const rows = this.book.chapters.flatMap((chapter) => [
      ...this.partBefore(chapter),
      this.entry(chapter, page),
    ]);
    return `<nav aria-label="Chapters">
<a class="home" href="index.html">mcp-by-hand</a>
<div class="search" hidden>
<label for="search">Search</label><input type="search" id="search" autocomplete="off">
</div>
<ol id="found" aria-label="Found" hidden></ol>
<details class="menu" open><summary>Chapters</summary>
<ol>
${rows.join('\n')}
</ol>
<ul>
${page ? AS_SLIDES : ''}<li><a href="playground.html">Talk to a server</a></li>
<li><a href="growth.html">How the program grows</a></li>
<li><a href="project.html">The project</a></li>
</ul>
</details>
</nav>`;
  }

  private partBefore({ n }: Chapter): string[] {
    const part = this.parts.get(n);
    return part === undefined ? [] : [`<li class="part">${escapeHtml(part)}</li>`];
  }

  /** Of the chapter that is open, all pages. */
  private entry({ n, title, pages }: Chapter, here?: SitePage): string {
    const isOpen = here !== undefined && pages.includes(here.page);
    const links = (isOpen ? pages : pages.slice(0, 1)).map((page, at) => {
      const { name } = this.shelf.pages.get(page)!;
      const text = at === 0 ? `${n}. ${title}` : secondTitle(read(this.book.root, page));
      const current = here?.page === page ? ' aria-current="page"' : '';
      return `<a href="${name}"${current}>${escapeHtml(text)}</a>`;
    });
    return `<li${isOpen ? ' class="open"' : ''}>${links.join('\n')}</li>`;
  }

  private switches(page: SitePage): string {
    const links = this.shelf.others(page).map(({ name, language }) => {
      const text = LANGUAGES[language] ?? language;
      return `<a href="${name}" hreflang="${language}" lang="${language}">${text}</a>`;
    });
    return links.length > 0 ? `<p class="languages">${links.join(' ')}</p>\n` : '';
  }
}

const secondTitle = (text: string) =>
  (/^# (?:\d+\. )?(.*)$/m.exec(text)?.[1] ?? '').replace(/^.*, continued: /, '');

/** Before which chapter a part begins: in the table of contents it is the row above. */
function partsIn(contents: string): Map<number, string> {
  const parts = new Map<number, string>();
  let open: string | undefined;
  for (const line of linesOf(contents)) {
    const [, part] = /^\| \*\*(Part .*)\*\* \|/.exec(line) ?? [];
    if (part) open = part;
    const [, n] = /^\| \[(\d+)\. /.exec(line) ?? [];
    if (n === undefined || open === undefined) continue;
    parts.set(Number(n), open);
    open = undefined;
  }
  return parts;
}

const ENOUGH = 4; // headings: fewer are seen anyway

function contentsOf(headings: Heading[]): string {
  const rows = headings.filter(({ level }) => level === 2);
  if (rows.length < ENOUGH) return '';
  const items = rows.map(({ id, text }) => `<li><a href="#${id}">${escapeHtml(text)}</a></li>`);
  return `<details class="contents"><summary>On this page</summary>
<ul>
${items.join('\n')}
</ul>
</details>
`;
}
