// contents.ts: the table of contents. By hand there is one cell of each row, the idea; titles, exercises, minutes and
// shares come from the pages, and so do the sums and the routes below the table.

import { writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { exercisesOf } from './exercise.ts';
import { isFile, linesOf, read } from './files.ts';
import { doingOf, firstPages, secondPages, sizeOf } from './limits.ts';
import type { Book, Chapter } from './pages.ts';
import { sharesOf } from './shares.ts';

const CONTENTS = 'chapters/README.md';
const HEAD = '| chapter | the one idea | exercise | idea | what makes it hold | quoted |';
const BLOCK = /(<!-- minutes: .*? -->\n)([^]*?)(\n<!-- end of minutes -->)/;

const PART_FOUR = [20, 21, 22, 23, 24, 25, 26, 27, 28];
const upTo = (last: number) => Array.from({ length: last + 1 }, (_, n) => n);
/** `oneOf`: whichever the reader likes. */
const ROUTES: { time: string; route: string; chapters: number[]; oneOf?: number[] }[] = [
  { time: 'ninety minutes', route: '0, 2, 4, 9, 15', chapters: [0, 2, 4, 9, 15] },
  { time: 'half a day', route: '0 to 9, 13, 15', chapters: [...upTo(9), 13, 15] },
  {
    time: 'a full day',
    route: '0 to 19, and one chapter of Part IV',
    chapters: upTo(19),
    oneOf: PART_FOUR,
  },
];

const sum = (numbers: number[]) => numbers.reduce((total, each) => total + each, 0);
const minutesOf = (book: Book, pages: string[]) =>
  sum(pages.map((page) => sizeOf(book, page).minutes));
const doingIn = (book: Book, pages: string[]) => sum(pages.map((page) => doingOf(book, page)));

/** The heading of a page, without its number or the name of the chapter that it continues. */
function titleOf(book: Book, page: string): string {
  const title = /^# (?:\d+\. )?(.*)$/m.exec(read(book.root, page))?.[1] ?? basename(page);
  return title.replace(/^.*, continued: /, '');
}

const linkTo = (book: Book, { folder }: Chapter, page: string) =>
  `[${titleOf(book, page)}](${basename(folder)}/${basename(page)})`;

const plus = (reading: number, doing: number) =>
  doing === 0 ? `${reading}` : `${reading} + ${doing}`;

/** A row of the table, with the idea as somebody wrote it. */
function rowOf(book: Book, chapter: Chapter, idea: string, share: string): string {
  const { n, title, folder } = chapter;
  const first = firstPages(chapter);
  const more = first.slice(1).map((page) => linkTo(book, chapter, page));
  const second = secondPages(chapter).map((page) => {
    const minutes = plus(minutesOf(book, [page]), doingOf(book, page));
    return `${linkTo(book, chapter, page)} ${minutes}`;
  });
  const cells = [
    [`[${n}. ${title}](${basename(folder)}/README.md)`, ...more].join(', '),
    idea,
    exercisesOf(book, chapter)
      .map((exercise) => exercise.title)
      .join('; '),
    plus(minutesOf(book, first), doingIn(book, first)),
    second.join(', '),
    share,
  ];
  return `| ${cells.join(' | ')} |`.replaceAll(/\|  (?=\|)/g, '| ');
}

const inHours = (minutes: number) => `${(minutes / 60).toFixed(1)} hours`;

/** What is below the table: the sums, and the routes. */
function sumsOf(book: Book): string {
  const first = book.chapters.flatMap(firstPages);
  const second = book.chapters.flatMap(secondPages);
  const doing = doingIn(book, [...first, ...second]);
  const rows = ROUTES.map(({ time, route, chapters, oneOf = [] }) => {
    const pagesOf = (numbers: number[]) =>
      book.chapters.filter(({ n }) => numbers.includes(n)).flatMap(firstPages);
    const choices = oneOf.length === 0 ? [[]] : oneOf.map((n) => [n]);
    const span = (count: (pages: string[]) => number) => {
      const totals = choices.map((choice) => count(pagesOf([...chapters, ...choice])));
      const [least, most] = [Math.min(...totals), Math.max(...totals)];
      return least === most ? `${least}` : `${least} to ${most}`;
    };
    const reading = span((pages) => minutesOf(book, pages));
    return `| ${time} | ${route} | ${reading} | ${span((pages) => doingIn(book, pages))} |`;
  });
  return [
    `The first pages are read in ${inHours(minutesOf(book, first))}, the second pages in ${inHours(
      minutesOf(book, second),
    )}, and the exercises`,
    `take about ${inHours(doing)}.`,
    '',
    '| a workshop of | route, first pages only | minutes of reading | of doing |',
    '|---|---|---|---|',
    ...rows,
  ].join('\n');
}

/** The contents as they should be, and what is missing that only a person can write. */
function wanted(book: Book): { text: string; missing: string[] } {
  const lines = linesOf(read(book.root, CONTENTS));
  const shares = new Map(sharesOf(book).map(({ chapter: { n }, all }) => [n, all]));
  const missing: string[] = [];
  for (const chapter of book.chapters) {
    const link = `](${basename(chapter.folder)}/README.md)`;
    const at = lines.findIndex((line) => line.startsWith('| [') && line.includes(link));
    const idea = lines[at]?.split('|')[2]?.trim();
    if (idea) lines[at] = rowOf(book, chapter, idea, shares.get(chapter.n) ?? '');
    else missing.push(`no row has ${chapter.n}. ${chapter.title} and its one idea`);
  }
  if (!lines.includes(HEAD)) missing.push(`the table should begin with: ${HEAD}`);
  const text = lines.join('\n');
  if (!BLOCK.test(text)) missing.push('there is no place for the minutes: <!-- minutes: … -->');
  const sums = sumsOf(book);
  return { text: text.replace(BLOCK, (_, begin, _old, end) => `${begin}${sums}${end}`), missing };
}

export function problemsOfContents(book: Book): string[] {
  if (!isFile(book.root, CONTENTS)) return [];
  const { text, missing } = wanted(book);
  const now = linesOf(read(book.root, CONTENTS));
  const then = linesOf(text);
  const odd = then.findIndex((line, n) => line !== now[n]);
  return [
    ...missing.map((what) => `${CONTENTS}:1: ${what}`),
    ...(odd === -1
      ? []
      : [`${CONTENTS}:${odd + 1}: here should be: ${then[odd]} (npm run book fix)`]),
  ];
}

export function fixContents(book: Book): void {
  if (!isFile(book.root, CONTENTS)) return;
  const { text } = wanted(book);
  if (text !== read(book.root, CONTENTS)) writeFileSync(join(book.root, CONTENTS), text);
}
