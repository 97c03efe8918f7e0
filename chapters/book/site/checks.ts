// checks.ts: is the site what the book is? The pages are judged by `book check`; here, what may be
// lost on the way: no link among the files of the site leads nowhere, and every block of a page is
// in its HTML, letter by letter. (A diagram that cannot be drawn throws, and a wire that does not
// belong to its console is named by wires.ts.)

import { read } from '../files.ts';
import { fencesIn, type Book } from '../pages.ts';
import { textIn } from './highlight.ts';
import { nameOfPage } from './shelf.ts';

type SiteFiles = Map<string, string | Buffer>;

export function problemsOfSite(book: Book, files: SiteFiles): string[] {
  const pages = book.chapters.flatMap(({ pages }) => pages);
  return [
    ...deadLinksOf(files),
    ...pages.flatMap((page) => {
      const html = `${files.get(nameOfPage(page)) ?? ''}`;
      return lostBlocks(page, read(book.root, page), html);
    }),
  ];
}

const ANYWHERE = '#slides'; // not a place: the same page, shown by its script

export function deadLinksOf(files: SiteFiles): string[] {
  const anchors = new Map<string, Set<string>>();
  for (const [name, text] of files) {
    if (!name.endsWith('.html')) continue;
    const ids = `${text}`.matchAll(/ id="([^"]*)"/g);
    anchors.set(name, new Set([...ids].map(([, id]) => textIn(id!))));
  }
  return [...files].flatMap(([name, text]) => {
    if (!name.endsWith('.html')) return [];
    const links = [...`${text}`.matchAll(/ (?:href|src)="([^"]*)"/g)].map(([, to]) => textIn(to!));
    const isDead = (link: string) => {
      const [file, id] = link.split('#') as [string, string?];
      const target = file === '' ? name : decodeURI(file);
      if (!files.has(target)) return true;
      return id !== undefined && id !== '' && !anchors.get(target)?.has(decodeURIComponent(id));
    };
    const dead = links.filter(
      (link) => !/^(https?:|mailto:)/.test(link) && link !== ANYWHERE && isDead(link),
    );
    return dead.map((link) => `${name}: this link leads nowhere: ${link}`);
  });
}

export function lostBlocks(page: string, source: string, html: string): string[] {
  const blocks = [...html.matchAll(/<pre[^>]*><code>([^]*?)<\/code><\/pre>/g)];
  const shown = blocks.map(([, inside]) => textIn(inside!));
  const fences = fencesIn(source).filter(({ language }) => language !== 'mermaid');
  const lost = fences.filter(({ body }, n) => shown[n] !== body.join('\n'));
  return lost.map(({ line }) => `${page}:${line}: this block is not on the site to the letter`);
}
