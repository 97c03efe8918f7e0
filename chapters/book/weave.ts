// weave.ts: the book in another language, woven. A translation holds words only, each below the English
// paragraph that it says; code, consoles and captions are the English page's, and so cannot drift.
//
//   <!-- en 435fd4cf: Such a client works for months, because small answers come in one piece. -->
//   这样的客户端能用上好几个月，因为小的回答都是一次到齐。
//
// The number is a hash of the paragraph without its line ends and figures. Where the English has changed,
// it is shown in English, with a mark; figures follow by themselves, for many of them are generated.
//
//   npm run book weave              how much is said, and what has become stale
//   npm run book weave todo         writes what is missing into the files, to be said there
//   npm run book weave publish      fails when less is said than may be published

import { createHash } from 'node:crypto';
import { join, posix } from 'node:path';
import { filesIn, isFile, linesOf, put, read } from './files.ts';
import type { Book } from './pages.ts';

/** Where the words are, by language. */
const LANGUAGES: Record<string, string> = { 'zh-CN': 'chapters/book/zh' };
const ENOUGH = 0.95; // of the words, before it is published
const NOTE = 'note.md'; // two lines for the head of a page: always, and when # paragraphs are stale

export type WovenPage = {
  of: string; // the English page, in whose place it is
  language: string;
  text: string;
  words: number; // of the English page, and how many of them are said
  said: number;
  stale: string[]; // paragraphs that are not said, or not any more
};

/** All pages that have a translation. */
export function wovenPages(book: Book): WovenPage[] {
  return translationsOf(book).map(({ of, language, file, note }) => {
    const pieces = piecesOf(read(book.root, of));
    const translation = readTranslation(read(book.root, file));
    const english = pieces.filter(isSaid);
    const stale = english.filter(({ en }) => wordsFor(en, translation) === undefined);
    const count = (some: Unit[]) => some.reduce((sum, { en }) => sum + en.split(/\s+/).length, 0);
    const words = count(english);
    return {
      of,
      language,
      text: withNote(woven(pieces, translation), note, stale.length),
      words,
      said: words - count(stale),
      stale: stale.map(({ en }) => flat(en)),
    };
  });
}

type Translation = { of: string; language: string; file: string; note: string };

function translationsOf(book: Book): Translation[] {
  const pages = ['chapters/README.md', ...book.chapters.flatMap(({ pages }) => pages)];
  return Object.entries(LANGUAGES).flatMap(([language, folder]) =>
    pages
      .map((of) => ({ of, language, file: `${folder}/${nameIn(of)}`, folder }))
      .filter(({ file }) => isFile(book.root, file))
      .map((each) => ({ ...each, note: read(book.root, folder, NOTE) })),
  );
}

/** chapters/02-framing/README.md: 02-framing.md; and of its page 2-more.md: 02-framing-2-more.md. */
const nameIn = (page: string) =>
  page === 'chapters/README.md'
    ? 'contents.md'
    : posix
        .relative('chapters', page)
        .replace(/\/README\.md$/, '.md')
        .replace('/', '-');

function withNote(text: string, note: string, stale: number): string {
  const [always = '', ifStale = ''] = linesOf(note).filter(Boolean);
  const more = stale > 0 ? ` ${ifStale.replace('#', `${stale}`)}` : '';
  return text.replace(/^# .*\n/m, (title) => `${title}\n> ${always}${more}\n`);
}

// ─── Pieces of a page ───────────────────────────────────────────────────────────────────────────

type Unit = { before: string; en: string; after: string };
type Piece = { text: string } | Unit;
const isSaid = (piece: Piece): piece is Unit => 'en' in piece;

const CAPTION = /^\*(?:`[\w./-]+`|\[`[\w./-]+`\]\([^)]+\)).*\*$/;
const STAYS = /^(?:\|[-| ]+\||<\/?details>|<!-- .* -->)$/;
const isWords = (text: string) => /[A-Za-z]{2}/.test(text.replace(/`[^`]*`|\]\([^)]*\)/g, ''));

/** What stays, and what is to be said: headings, paragraphs, items, cells, summaries, labels. */
export function piecesOf(page: string): Piece[] {
  const pieces: Piece[] = [];
  let open: Unit | undefined; // a paragraph goes on with the next line
  let fence = '';
  const stay = (text: string) => {
    open = undefined;
    pieces.push({ text });
  };
  const say = (before: string, en: string, after = '\n') => {
    if (!isWords(en)) return stay(before + en + after);
    open = { before, en, after };
    pieces.push(open);
  };
  for (const line of page.replace(/\n$/, '').split('\n')) {
    if (fence) {
      const [, before = '', label = ''] = (fence === 'mermaid' && labelIn(line)) || [];
      if (label) say(before, label);
      else stay(`${line}\n`);
      if (/^\s*```$/.test(line)) fence = '';
      continue;
    }
    const [, language] = /^\s*```+ ?(\w*)/.exec(line) ?? [];
    if (language !== undefined) {
      fence = language || 'plain';
      stay(`${line}\n`);
      continue;
    }
    if (line.trim() === '' || CAPTION.test(line) || STAYS.test(line)) {
      stay(`${line}\n`);
      continue;
    }
    const [, head, summary, item] =
      /^(#+ )|^(<details><summary>)|^(\s*(?:[-*>]|\d+\.) )/.exec(line) ?? [];
    if (line.startsWith('|')) {
      stay('|');
      for (const cell of line.slice(1, -1).split(/(?<!\\)\|/))
        say(cell.trim() && ' ', cell.trim(), ' |');
      stay('\n');
    } else if (head) {
      say(head, line.slice(head.length));
      open = undefined;
    } else if (summary) {
      say(summary, line.slice(summary.length).replace('</summary>', ''), '</summary>\n');
      open = undefined;
    } else if (item === '> ' && open?.before === item) open.en += `\n${line.slice(item.length)}`;
    else if (item) say(item, line.slice(item.length));
    else if (open) open.en += `\n${line.trim()}`;
    else say('', line);
  }
  return pieces.map((piece) => (isSaid(piece) ? withoutComment(piece) : piece));
}

/** A remark for the machinery, behind a paragraph, stays where it is. */
function withoutComment({ before, en, after }: Unit): Unit {
  const at = en.endsWith('-->') ? en.lastIndexOf(' <!-- ') : en.length;
  return { before, en: en.slice(0, at), after: en.slice(at) + after };
}

/** Of a diagram the labels are words. */
const labelIn = (line: string) =>
  /^(\s*(?:\w+\s*-+[->x)]*\s*\w+|Note [^:]+)\s*:\s*)(.*)$/.exec(line) ??
  /^(\s*participant \w+ as )(.*)$/.exec(line);

// ─── Weaving ────────────────────────────────────────────────────────────────────────────────────

const FIGURE = /\d+(?:[.,]\d+)*/g;
export const flat = (text: string) => text.replace(/\s+/g, ' ').trim();
export const keyOf = (text: string) =>
  createHash('sha256').update(flat(text).replace(FIGURE, '#')).digest('hex').slice(0, 8);

type Said = { en: string; words: string };

/** By key: what is said, and the English that it was said of. */
export function readTranslation(text: string): Map<string, Said> {
  const said = new Map<string, Said>();
  for (const part of text.split(/^<!-- en /m).slice(1)) {
    const [, key = '', en = '', words = ''] =
      /^([0-9a-f]{8}): ([^]*?) -->\n?([^]*)$/.exec(part) ?? [];
    said.set(key, { en: en.trim(), words: words.trim() });
  }
  return said;
}

const woven = (pieces: Piece[], translation: Map<string, Said>) =>
  pieces
    .map((piece) => {
      if (!isSaid(piece)) return piece.text;
      const words = wordsFor(piece.en, translation) ?? marked(piece.en);
      return piece.before + words + piece.after;
    })
    .join('');

const marked = (en: string) => `<span lang="en" class="stale">${en}</span>`;

/** With the figures of today; undefined if it is not said, or if nobody can tell which figure is which. */
function wordsFor(en: string, translation: Map<string, Said>): string | undefined {
  const said = translation.get(keyOf(en));
  if (!said?.words) return undefined;
  const now = figuresIn(en);
  const changed = new Map<string, string>();
  for (const [at, then] of figuresIn(said.en).entries()) {
    if ((changed.get(then) ?? now[at]) !== now[at]) return undefined;
    changed.set(then, now[at]!);
  }
  return said.words.replace(FIGURE, (figure) => changed.get(figure) ?? figure);
}

const figuresIn = (text: string) => text.match(FIGURE) ?? [];

// ─── Is it true? ────────────────────────────────────────────────────────────────────────────────

type Term = { en: string; words: string[]; never?: string[] };

/** What of the words cannot be right, whatever they mean. */
export function problemsOfWeaving(book: Book): string[] {
  return translationsOf(book).flatMap(({ file }) => {
    const glossary = JSON.parse(read(book.root, posix.dirname(file), 'glossary.json')) as Term[];
    const translation = readTranslation(read(book.root, file));
    return [...translation.values()].flatMap(({ en, words }) =>
      words
        ? problemsOf(en, words, glossary).map((what) => `${file}: "${start(en)}": ${what}`)
        : [],
    );
  });
}

const start = (text: string) => `${flat(text).slice(0, 50)}…`;
const CODE = /(?<!`)(`+)(?!`)[^]*?(?<!`)\1(?!`)/g;
const codesIn = (text: string) => (text.match(CODE) ?? []).map(flat).sort();
const linksIn = (text: string) => (text.match(/\]\([^)]+\)/g) ?? []).sort();
const plain = (text: string) => text.replace(CODE, '').replace(/\]\([^)]*\)/g, '');
const numbersIn = (text: string) =>
  figuresIn(plain(text))
    .map((n) => n.replaceAll(',', ''))
    .sort();

function problemsOf(en: string, words: string, glossary: Term[]): string[] {
  const problems: string[] = [];
  for (const [name, of] of Object.entries({ code: codesIn, links: linksIn, numbers: numbersIn }))
    if (of(en).join() !== of(words).join())
      problems.push(`${name}: ${of(words).join(' ') || 'none'}, not ${of(en).join(' ') || 'none'}`);
  if (showsStars(words)) problems.push('emphasis would show its stars: put the mark outside');
  for (const { en: term, words: its, never = [] } of glossary) {
    const isMeant = new RegExp(`(?<![\\w/-])(?:${term})(?![\\w/-])`, 'i').test(plain(en));
    if (isMeant && !its.some((each) => words.includes(each)))
      problems.push(`"${term}" is ${its.join(' or ')}`);
    for (const bad of never.filter((each) => words.includes(each)))
      problems.push(`it says ${bad}; "${term}" is ${its[0]}`);
  }
  return problems;
}

/** CommonMark begins and ends emphasis at stars beside a letter. Beside a mark it does so only if there is a space
 *  or another mark on their other side, and in Chinese there seldom is. */
function showsStars(words: string): boolean {
  const text = ` ${words.replace(CODE, (code) => code.replaceAll('*', 'x'))} `;
  const isMark = (letter: string) => /[\p{P}\p{S}]/u.test(letter);
  return [...text.matchAll(/\*+/g)].some(({ index, 0: stars }, n) => {
    const sides = [text[index - 1]!, text[index + stars.length]!];
    const [outside, inside] = (n % 2 === 0 ? sides : sides.reverse()) as [string, string];
    return inside === ' ' || (isMark(inside) && outside !== ' ' && !isMark(outside));
  });
}

// ─── npm run book weave ─────────────────────────────────────────────────────────────────────────

const percent = (said: number, words: number) => `${Math.floor((100 * said) / words)} %`;

/** How much of it is said, by language. */
export function tellWeaving(book: Book): string[] {
  const all = wovenPages(book);
  const languages = [...new Set(all.map(({ language }) => language))];
  return languages.map((language) => {
    const pages = all.filter((page) => page.language === language);
    const { words, said } = sumOf(pages);
    const stale = pages.flatMap((page) => page.stale).length;
    const rest = stale > 0 ? `; ${stale} paragraphs are in English (npm run book weave)` : '';
    return `${language}: ${percent(said, words)} of ${pages.length} pages are said${rest}`;
  });
}

const sumOf = (pages: WovenPage[]) => ({
  words: pages.reduce((sum, { words }) => sum + words, 0),
  said: pages.reduce((sum, { said }) => sum + said, 0),
});

/** What is odd, or too little to be published. */
export function weave(book: Book, verb = ''): string[] {
  if (verb === 'todo') writeTodo(book);
  const pages = wovenPages(book);
  for (const { of, language, words, said, stale } of pages) {
    console.log(`${language} ${percent(said, words).padStart(5)}  ${of}`);
    for (const each of stale) console.log(`              not said: ${start(each)}`);
  }
  const problems = [...problemsOfWeaving(book)];
  const { words, said } = sumOf(pages);
  if (verb === 'publish' && said < ENOUGH * words)
    problems.push(
      `${percent(said, words)} is said, less than ${ENOUGH * 100} %: not to be published`,
    );
  return problems;
}

/** Each file in the order of its page, with an empty place for what is missing. What is no longer on the page
 *  comes last, for its words may be of use. */
function writeTodo(book: Book): void {
  for (const { of, file } of translationsOf(book)) {
    const translation = readTranslation(read(book.root, file));
    const entries = new Map<string, Said>();
    for (const { en } of piecesOf(read(book.root, of)).filter(isSaid)) {
      const key = keyOf(en);
      entries.set(key, translation.get(key) ?? { en, words: '' });
      translation.delete(key);
    }
    for (const [key, each] of translation) if (each.words) entries.set(key, each);
    const texts = [...entries].map(
      ([key, { en, words }]) => `<!-- en ${key}: ${en} -->\n${words}\n`,
    );
    put(join(book.root, file), texts.join('\n'));
  }
}

/** The files of a language, for a test that each belongs to a page. */
export const filesOfWeaving = (book: Book) =>
  Object.values(LANGUAGES).flatMap((folder) => filesIn(join(book.root, folder), book.root));
