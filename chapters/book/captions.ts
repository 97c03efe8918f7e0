// captions.ts: the line above a block of code that says where it goes: in which file, in which function, whether it takes
// the place of other lines, and until when it is there. GitHub does not show the words behind ```ts.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { linesOf, read } from './files.ts';
import { pathTo } from './plumbing.ts';
import { isPart, isSimpleVersion, nameOf, quotationsOf } from './pages.ts';
import type { Book, Chapter, Quotation } from './pages.ts';

const CAPTION = /^\*(`[\w./-]+`|\[`[\w./-]+`\]).*\*$/;
const MAX_PLACES = 3;

const NAMES = [
  /^\s*(?:export )?(?:abstract )?class (\w+)/,
  /^\s*(?:export )?(?:async )?function\*? (\w+)/,
  /^\s*(?:export )?(?:interface|type|const|let) (\w+)/,
  /^\s*(?:(?:private|protected|static|async|get|set) )*(?!if\b|for\b|while\b|switch\b|catch\b|return\b)(\w+)(?:<[^>]*>)?\(/,
];

const nameIn = (line: string) =>
  NAMES.map((pattern) => pattern.exec(line)?.[1]).find((name) => name !== undefined);
const indentOf = (line: string) => line.length - line.trimStart().length;

/** What is around a line, from the outside in, such as `StdioTransport.start`. Walking up by indentation is enough. */
export function placeOf(source: string[], at: number): string {
  const names: string[] = [];
  let indent = indentOf(source[at] ?? '');
  for (let k = at - 1; k >= 0 && indent > 0; k--) {
    const line = source[k]!;
    const isComment = /^\s*(\*|\/[/*])/.test(line);
    if (line === '' || isComment || indentOf(line) >= indent) continue;
    const isEndOfHead = /^\s*[)\]}]/.test(line); // its name is further up, at the same indentation
    indent = indentOf(line) + (isEndOfHead ? 1 : 0);
    const name = isEndOfHead ? undefined : nameIn(line);
    if (name) names.unshift(name);
  }
  return names.join('.');
}

export function captionOf(book: Book, chapter: Chapter, quotation: Quotation): string {
  const { source, runs, until } = quotation;
  const starts = (until === undefined ? runs : runs.slice(0, 1)).filter(({ at }) => at !== -1);
  const all = [...new Set(starts.map(({ at }) => placeOf(source, at)))].filter(Boolean);
  // What is inside of something that is quoted as well needs no second name.
  const places = all.filter((place) => !all.some((outer) => place.startsWith(`${outer}.`)));
  const shown = places.slice(0, MAX_PLACES).map((place) => `\`${place}\``);
  if (places.length > MAX_PLACES) shown.push('others');
  const parts = [fileIn(chapter, quotation)];
  if (isSimpleVersion(quotation)) parts.push('the whole file');
  if (shown.length > 0) parts.push(`in ${listed(shown)}`);
  const replaced = linesReplaced(book, quotation);
  if (replaced > 0) parts.push(`replaces ${replaced} ${replaced === 1 ? 'line' : 'lines'}`);
  const end = until === chapter.n ? 'the end of this chapter' : `chapter ${nameOf(until ?? 0)}`;
  if (until !== undefined) parts.push(`until ${end}`);
  return `*${parts.join(', ')}*`;
}

/** A part in another chapter's folder is a link, for a reader who has only the page. */
function fileIn({ folder }: Chapter, { file, words }: Quotation): string {
  const name = words[0]!;
  if (!isPart(file) || file.startsWith(folder))
    return `\`${file.startsWith(folder) ? name : file}\``;
  return `[\`${name}\`](${pathTo(`${folder}/README.md`, file)})`;
}

const listed = (words: string[]) => words.join(', ').replace(/, ([^,]*)$/, ' and $1');

/** Of the lines that end with this step, those in whose place this quotation is the first to put others. */
function linesReplaced(book: Book, quotation: Quotation): number {
  const { file, step, runs, page, line } = quotation;
  const all = quotationsOf(book, file);
  const before = all.slice(
    0,
    all.findIndex((other) => other.page === page && other.line === line),
  );
  const ended = all.filter(({ until }) => until === step);
  const isOver = (standIn: Quotation, given: Quotation['runs']) => {
    if (isSimpleVersion(standIn)) return true;
    const [first, last] = standIn.runs.map(({ at }) => at) as [number, number];
    return given.some(({ at, lines }) => at < last && at + lines.length > first + 1);
  };
  const here = ended.filter((standIn) => {
    const others = before.filter((other) => other.step === step && other.until === undefined);
    return isOver(standIn, runs) && !others.some((other) => isOver(standIn, other.runs));
  });
  const count = (each: Quotation) => each.body.length - (isSimpleVersion(each) ? 0 : 2);
  return here.reduce((sum, each) => sum + count(each), 0);
}

/** Every quotation with what should be above it, and the number of the line where that should be, counted from 0. */
function wanted(book: Book, chapter: Chapter, page: string) {
  return chapter.quotations
    .filter((quotation) => quotation.page === page)
    .map((quotation) => ({
      at: quotation.line - 3, // the body begins below the fence
      caption: captionOf(book, chapter, quotation),
    }));
}

export function problemsOfCaptions(book: Book): string[] {
  return allPages(book).flatMap(({ chapter, page }) => {
    const lines = linesOf(read(book.root, page));
    const odd = wanted(book, chapter, page).filter(({ at, caption }) => lines[at] !== caption);
    return odd.map(
      ({ at, caption }) => `${page}:${at + 1}: above this block should be: ${caption}`,
    );
  });
}

export function fixCaptions(book: Book): void {
  for (const { chapter, page } of allPages(book)) {
    const lines = linesOf(read(book.root, page));
    const before = lines.join('\n');
    for (const { at, caption } of wanted(book, chapter, page).toReversed()) {
      const isThere = CAPTION.test(lines[at] ?? '');
      lines.splice(isThere ? at : at + 1, isThere ? 1 : 0, caption);
    }
    if (lines.join('\n') !== before) writeFileSync(join(book.root, page), lines.join('\n'));
  }
}

const allPages = (book: Book) =>
  book.chapters.flatMap((chapter) => chapter.pages.map((page) => ({ chapter, page })));
