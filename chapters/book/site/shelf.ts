// shelf.ts: what the site shows, and under which names: the pages of the book and those that they
// lead to; sources that a page links; pictures. All lie in one folder, so that every link among
// them is a name.

import { existsSync, readdirSync } from 'node:fs';
import { join, posix } from 'node:path';
import { isFile } from '../files.ts';
import type { Book } from '../pages.ts';

/** A page of the repository, and what it is called on the site. `text`: what it says in another
 *  language. */
export type SitePage = { page: string; name: string; language: string; text?: string };
/** A page in another language, made by weaving. */
export type Woven = { of: string; language: string; text: string };

export const ENGLISH = 'en';
/** Pages beside the chapters. */
const OTHERS = [
  'README.md',
  'INSTRUCTOR.md',
  'PRODUCTION.md',
  'TROUBLESHOOTING.md',
  'REFERENCE.md',
  'BENCHMARK.md',
].map((name) => `chapters/${name}`);

export class Shelf {
  readonly pages = new Map<string, SitePage>(); // in English
  readonly translations: SitePage[];
  readonly sources = new Map<string, string>(); // file → name
  readonly pictures = new Map<string, string>();
  private book: Book;

  constructor(book: Book, woven: Woven[] = []) {
    this.book = book;
    this.translations = woven.map(({ of, language, text }) => {
      const name = `${language.split('-')[0]}-${nameOfPage(of)}`;
      return { page: of, name, language, text };
    });
    const others = OTHERS.filter((page) => isFile(book.root, page));
    for (const page of [...others, ...book.chapters.flatMap(({ pages }) => pages)]) this.add(page);
  }

  private add(page: string): SitePage {
    const found = { page, name: nameOfPage(page), language: ENGLISH };
    this.pages.set(page, found);
    return found;
  }

  /** Where a link of a page leads, and whether that is there. */
  follow(from: SitePage, href: string): string | undefined {
    if (/^(https?:|mailto:)/.test(href)) return href;
    const [path = '', hash] = href.split('#');
    const end = hash === undefined ? '' : `#${hash}`;
    if (path === '') return end;
    const file = posix.normalize(posix.join(posix.dirname(from.page), decodeURI(path)));
    const name = this.nameOf(file.replace(/\/$/, ''), from.language);
    return name && name + end;
  }

  private nameOf(file: string, language: string): string | undefined {
    const page = this.translated(file, language) ?? this.pages.get(file);
    if (page) return page.name;
    if (!existsSync(join(this.book.root, file))) return undefined;
    if (!isFile(this.book.root, file)) {
      const readme = posix.join(file, 'README.md');
      if (isFile(this.book.root, readme)) return this.nameOf(readme, language);
      return this.keep(this.sources, file); // a folder: the names in it
    }
    if (/\.md$/.test(file)) return this.add(file).name;
    return this.keep(/\.(svg|png)$/.test(file) ? this.pictures : this.sources, file);
  }

  /** A page of the same language, if there is one. */
  private translated(file: string, language: string): SitePage | undefined {
    return this.translations.find((each) => each.page === file && each.language === language);
  }

  private keep(kind: Map<string, string>, file: string): string {
    const ending = kind === this.pictures ? '' : '.html';
    const name = `file-${file.replace(/^\.+/, '').replaceAll('/', '-')}${ending}`;
    kind.set(file, name);
    return name;
  }

  /** The same page in other languages. */
  others({ page, language }: SitePage): SitePage[] {
    const all = [this.pages.get(page)!, ...this.translations.filter((each) => each.page === page)];
    return all.filter((each) => each.language !== language);
  }

  filesIn(folder: string): string[] {
    return readdirSync(join(this.book.root, folder)).sort();
  }
}

/** `chapters/02-framing/README.md` → `02-framing.html` */
export function nameOfPage(page: string): string {
  if (page === 'chapters/README.md') return 'index.html';
  if (page === 'README.md') return 'project.html';
  const path = page
    .replace(/^(chapters\/|\.github\/)/, '')
    .replace(/\/README\.md$/, '')
    .replace(/\.md$/, '');
  return `${path.replaceAll('/', '-').toLowerCase()}.html`;
}
