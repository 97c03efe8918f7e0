// limits.ts: how long a page may be, and how long it takes to read. A chapter's first page is the idea, its second pages
// are what makes it hold, and a reader may skip all of those. Minutes are computed here, and written by `fix`.

import { writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { isFile, read } from './files.ts';
import { ELLIPSIS, fencesIn, root, type Book, type Chapter } from './pages.ts';

type Limit = 'words' | 'lines' | 'gaps' | 'exercise' | 'questions';
type NotYet = Record<string, Limit[]>;

/** Pages that do not hold yet, with the limits that they break. This list may only shrink: a page that holds must not be
 *  on it, and `npm run book fix` takes it off. One line each. */
export const NOT_YET: NotYet = {};

const FIRST_PAGE = { words: 2000, lines: 150, gaps: 2, exercise: 50, questions: 2 };
const SECOND_PAGE = { words: 2500 };
const MAY_HAVE_TWO = [14, 15]; // first pages
const WORDS_PER_MINUTE = 200;
const SECONDS_PER_LINE = 4; // of code

const CONTENTS = 'chapters/README.md';
const READING = /\bReading(\s+)\d+(\s+)minutes(?:,(\s+)doing(\s+)(\d+))?\./;
const EXERCISE = /^## Exercise: /m;
// Folded away is the answer; hints and solutions are folded, too, and are no questions.
const QUESTION = /^<details><summary>(?:Answer.*|.*\?)<\/summary>/gm;

export type PageSize = {
  page: string;
  isFirst: boolean;
  words: number; // of the prose, without tables and fences
  lines: number; // of code, quoted or not, without blank ones and gaps
  blocks: number; // of code
  gaps: number; // lines `// …`
  mostGaps: number; // in one block
  exercise?: number; // percent of the words that are above its heading
  questions: number;
  questionsAbove: number; // the exercise
  minutes: number;
};

export const isFirstPage = (page: string) => /^(README|1-.*)\.md$/.test(basename(page));

export const firstPages = ({ pages }: Chapter) => pages.filter(isFirstPage);
export const secondPages = ({ pages }: Chapter) => pages.filter((page) => !isFirstPage(page));

const wordsIn = (text: string) => (proseOf(text).match(/[A-Za-z0-9'’-]+/g) ?? []).length;
const questionsIn = (text: string) => (text.match(QUESTION) ?? []).length;

function proseOf(text: string): string {
  const withoutFences = text.replace(/^(`{3,4})[^]*?^\1$/gm, '');
  return withoutFences.replace(/^\|.*$/gm, '');
}

export function sizeOf(book: Book, page: string): PageSize {
  const text = read(book.root, page);
  const blocks = fencesIn(text).filter(({ language }) => language === 'ts');
  const gapsIn = (body: string[]) => body.filter((line) => ELLIPSIS.test(line)).length;
  const written = blocks.flatMap(({ body }) => body).filter((line) => line.trim());
  const gaps = gapsIn(written);
  const lines = written.length - gaps;
  const words = wordsIn(text);
  const heading = EXERCISE.exec(text)?.index;
  const above = text.slice(0, heading);
  return {
    page,
    isFirst: isFirstPage(page),
    words,
    lines,
    blocks: blocks.length,
    gaps,
    mostGaps: Math.max(0, ...blocks.map(({ body }) => gapsIn(body))),
    exercise: heading === undefined ? undefined : Math.round((100 * wordsIn(above)) / words),
    questions: questionsIn(text),
    questionsAbove: questionsIn(above),
    minutes: Math.round(words / WORDS_PER_MINUTE + (lines * SECONDS_PER_LINE) / 60),
  };
}

export const pageSizes = (book: Book): PageSize[] =>
  book.chapters.flatMap(({ pages }) => pages.map((page) => sizeOf(book, page)));

export const wordsAllowed = ({ isFirst }: PageSize) => (isFirst ? FIRST_PAGE : SECOND_PAGE).words;

/** The limits that a page breaks, each with a sentence. */
function broken(size: PageSize): [Limit, string][] {
  const { words, lines, mostGaps, exercise, questions, questionsAbove } = size;
  const found: [Limit, string][] = [];
  const most = (limit: Limit, now: number, allowed: number, what: string) => {
    if (now > allowed) found.push([limit, `${now} ${what}, and at most ${allowed} are allowed`]);
  };
  most('words', words, wordsAllowed(size), 'words');
  if (!size.isFirst) return found;
  most('lines', lines, FIRST_PAGE.lines, 'lines of code');
  most('gaps', mostGaps, FIRST_PAGE.gaps, 'gaps in one block');
  if ((exercise ?? 0) > FIRST_PAGE.exercise)
    found.push(['exercise', `the exercise begins after ${exercise} % of the words, not in half`]);
  if (questions < FIRST_PAGE.questions)
    found.push([
      'questions',
      `${questions} questions with a folded answer, and at least ${FIRST_PAGE.questions} are needed`,
    ]);
  else if (exercise !== undefined && (questionsAbove === 0 || questionsAbove === questions))
    found.push(['questions', 'one question belongs above the exercise, and one below']);
  return found;
}

/** What is wrong with the sizes of the pages, and with what they say of their minutes. */
export function problemsOfLimits(book: Book, notYet = listOf(book)): string[] {
  if (!isFile(book.root, CONTENTS)) return []; // not yet a book
  const problems = book.chapters.flatMap((chapter) => {
    const tooMany = firstPages(chapter).length > 1 && !MAY_HAVE_TWO.includes(chapter.n);
    const page = firstPages(chapter).at(-1)!;
    const two = `${page}:1: only chapters ${MAY_HAVE_TWO.join(' and ')} have two first pages`;
    return [
      ...(tooMany ? [two] : []),
      ...chapter.pages.flatMap((each) => problemsOfPage(book, each, notYet[each] ?? [])),
    ];
  });
  const all = book.chapters.flatMap(({ pages }) => pages);
  const gone = Object.keys(notYet).filter((page) => !all.includes(page));
  return [
    ...problems,
    ...gone.map((page) => `${page}:1: there is no such page: take it off the list in limits.ts`),
  ];
}

function problemsOfPage(book: Book, page: string, excused: Limit[]): string[] {
  const size = sizeOf(book, page);
  const found = broken(size);
  const names = found.map(([limit]) => limit);
  const over = found.filter(([limit]) => !excused.includes(limit)).map(([, what]) => what);
  const stale = excused
    .filter((limit) => !names.includes(limit))
    .map((limit) => `its ${limit} hold: take it off the list in limits.ts (npm run book fix)`);
  const wanted = withMinutes(read(book.root, page), size.minutes);
  const minutes = `it should say "Reading ${size.minutes} minutes" (npm run book fix)`;
  const isTold = wanted === read(book.root, page);
  return [...over, ...stale, ...(isTold ? [] : [minutes])].map((what) => `${page}:1: ${what}`);
}

/** A small book, in a test, has no list. */
const listOf = (book: Book) => (book.root === root ? NOT_YET : {});

/** The page with its minutes of reading: in its first paragraphs, or below its title if they are not there yet. */
function withMinutes(text: string, minutes: number): string {
  const end = /^## /m.exec(text)?.index ?? text.length;
  const [head, rest] = [text.slice(0, end), text.slice(end)];
  if (READING.test(head)) {
    const told = head.replace(READING, (_all, a, b, c, d, doing) => {
      return `Reading${a}${minutes}${b}minutes${doing ? `,${c}doing${d}${doing}` : ''}.`;
    });
    return told + rest;
  }
  return text.replace(/^# .*$/m, (title) => `${title}\n\nReading ${minutes} minutes.`);
}

/** How long the exercise of a page takes, as it is written there. */
export function doingOf(book: Book, page: string): number {
  return Number(READING.exec(read(book.root, page))?.[5] ?? 0);
}

/** Writes the minutes, and takes off the list what holds. */
export function fixLimits(book: Book): void {
  for (const page of book.chapters.flatMap(({ pages }) => pages)) {
    const write = () => {
      const text = read(book.root, page);
      const wanted = withMinutes(text, sizeOf(book, page).minutes);
      if (wanted !== text) writeFileSync(join(book.root, page), wanted);
    };
    write();
    write(); // a line that was not there yet has words of its own
  }
  if (book.root === root) writeList(book);
}

function writeList(book: Book): void {
  const here = 'chapters/book/limits.ts';
  const left = book.chapters.flatMap((chapter) =>
    chapter.pages.flatMap((page) => {
      const names = broken(sizeOf(book, page)).map(([limit]) => limit);
      const limits = (NOT_YET[page] ?? []).filter((limit) => names.includes(limit));
      return limits.length === 0
        ? []
        : [`  ${inQuotes(page)}: [${limits.map(inQuotes).join(', ')}],\n`];
    }),
  );
  const list = left.length === 0 ? '' : `\n${left.join('')}`;
  const text = read(root, here);
  const wanted = text.replace(/(?<=const NOT_YET: NotYet = \{)[^}]*(?=\};)/, () => list);
  if (wanted !== text) writeFileSync(join(root, here), wanted);
}

const inQuotes = (word: string) => `'${word}'`;

/** The table of `npm run book limits`. With a number, of one chapter only. */
export function tellLimits(book: Book, only = '', notYet = listOf(book)): string[] {
  const head = ['page', 'words', 'lines', 'blocks', 'gaps', 'exercise', 'questions', 'minutes', ''];
  const chapters = book.chapters.filter(({ n }) => !only || n === Number(only));
  const rows = chapters.flatMap((chapter) =>
    chapter.pages.map((page) => {
      const size = sizeOf(book, page);
      const names = broken(size).map(([limit]) => limit);
      const isNew = names.some((limit) => !(notYet[page] ?? []).includes(limit));
      const verdict =
        names.length === 0 ? 'holds' : `${isNew ? 'breaks' : 'not yet'}: ${names.join(', ')}`;
      const { words, lines, blocks, mostGaps, exercise, questions, minutes } = size;
      const place = exercise === undefined ? '–' : `${exercise} %`;
      const counts = [words, lines, blocks, mostGaps, place, questions, minutes];
      return [page.replace('chapters/', ''), ...counts.map(String), verdict];
    }),
  );
  const widths = head.map((_, k) => Math.max(...[head, ...rows].map((row) => row[k]!.length)));
  const isLeft = (k: number) => k === 0 || k === head.length - 1;
  const table = [head, ...rows].map((row) =>
    row
      .map((cell, k) => (isLeft(k) ? cell.padEnd(widths[k]!) : cell.padStart(widths[k]!)))
      .join('  ')
      .trimEnd(),
  );
  const waiting = chapters.flatMap(({ pages }) => pages).filter((page) => notYet[page]);
  const { words, lines, gaps, exercise, questions } = FIRST_PAGE;
  return [
    ...table,
    '',
    `A first page: at most ${words} words, ${lines} lines of code, ${gaps} gaps in a block, its exercise in the`,
    `first ${exercise} %, at least ${questions} questions (<details><summary>Answer</summary>), one above the exercise`,
    `and one below. A second page: at most ${SECOND_PAGE.words} words. Not yet: ${waiting.length} pages.`,
  ];
}
