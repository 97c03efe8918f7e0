// A question in a window of so many rows. What does not fit is folded, and the fold says how much it
// hides: an asker can choose the text, such as forty empty lines, but not what is in sight.

import type { DialoguePage } from '../17-the-gate/dialogue.ts';
import { rowKind } from '../17-the-gate/change.ts';
import { visible } from '../17-the-gate/safe-text.ts';
import { graphemes, widthOf } from './wrap.ts';

export type ScreenSize = { columns: number; rows: number };
/** A row to show, and how many of the whole text it stands for. */
type FoldedRow = { row: string; count: number };

const MIN_COLUMNS = 20;
const MAX_INDENT = 8;
const CONTINUED = '┆ ';
const END_OF_PROMPT = ': ';
const ANSWER = END_OF_PROMPT.padEnd(10); // the room that an answer takes, behind the prompt
const TAB_COLUMNS = 8;

// ─── Rows ──────────────────────────────────────────────────────────────────────────────────────

/** The rows of a line. We break it before the terminal does: a row that the terminal begins could
 *  begin with anything, such as a question that looks like ours. Behind a blank, unless the word
 *  behind it is longer than a row. */
export function rowsOf(line: string, columns: number): string[] {
  const start = startOfNext(line);
  const chars = charsOf(visible(line), columns);
  const rows: string[] = [];
  let row = '';
  let used = 0;
  let blank = 0; // where the row may end: behind its last blank
  for (const [n, char] of chars.entries()) {
    const text = char === '\t' ? ' '.repeat(TAB_COLUMNS - (used % TAB_COLUMNS)) : char;
    const width = roomOf(text);
    if (char === '\n' || used + width > columns) {
      const rest = isBlank(char) ? width : restOfWord(chars, n, columns);
      const fits = roomOf(start + row.slice(blank)) + rest <= columns;
      const isWhole = char !== '\n' && blank > 0 && fits;
      const end = isWhole ? blank : row.length; // the word goes along
      rows.push(row.slice(0, end));
      row = start + row.slice(end);
      used = roomOf(row);
      blank = 0;
    }
    if (char === '\n') continue;
    row += text;
    used += width;
    if (isBlank(char)) blank = row.length;
  }
  return [...rows, row];
}

const isBlank = (char: string) => /^\s/.test(char);

/** Its columns from here on; a blank counts, so that none begins a row. No more than it takes. */
function restOfWord(chars: string[], from: number, columns: number) {
  let sum = 0;
  for (let n = from; n < chars.length && sum <= columns; n++) {
    if (isBlank(chars[n]!)) return sum + 1;
    sum += roomOf(chars[n]!);
  }
  return sum;
}

/** Where a line goes on: behind the same indent, or the same gutter of a diff. */
function startOfNext(line: string) {
  const indent = /^ */.exec(line)![0].slice(0, MAX_INDENT);
  const isOfDiff = rowKind(line) !== undefined && !line.startsWith('  @@');
  return (isOfDiff ? line.slice(0, 3) : indent) + CONTINUED;
}

/** A letter with its marks stays together, unless somebody has put too many on it. */
function charsOf(text: string, columns: number) {
  return text
    .split(/(\n)/)
    .flatMap(graphemes)
    .flatMap((char) => (char.length > columns / 4 ? [...char] : [char]));
}

/** Every mark counts: a terminal that does not know it draws it beside its letter. */
function roomOf(text: string) {
  let sum = 0;
  for (const char of text) sum += widthOf(char);
  return sum;
}

// ─── Folding ───────────────────────────────────────────────────────────────────────────────────

/** At most so many rows: the beginning and the end of everything, and what is between in figures.
 *  Of a diff, what only surrounds the changes goes first. */
export function fold(lines: string[], { columns, rows }: ScreenSize): string[] {
  const all = piecesOf(lines, columns);
  const pieces = all.length > rows ? withoutNear(lines, columns) : all;
  if (pieces.length <= rows) return pieces.map(({ row }) => row);
  const head = Math.ceil((rows - 1) / 2);
  const tail = rows - 1 - head;
  const hidden = pieces.slice(head, pieces.length - tail);
  const count = hidden.reduce((sum, piece) => sum + piece.count, 0);
  const shown = [...pieces.slice(0, head), mark(count, 'rows'), ...pieces.slice(-tail)];
  return shown.map(({ row }) => row);
}

function piecesOf(lines: string[], columns: number) {
  return runsOf(lines).flatMap((run) => foldRun(run, columns));
}

function withoutNear(lines: string[], columns: number) {
  const last = lines.findLastIndex((line) => rowKind(line) !== undefined) + 1;
  const near = lines.filter((line) => rowKind(line) === 'near');
  const far = (some: string[]) =>
    piecesOf(
      some.filter((line) => rowKind(line) !== 'near'),
      columns,
    );
  if (near.length === 0) return piecesOf(lines, columns);
  const around = mark(near.length, 'lines around the changes', 0);
  return [...far(lines.slice(0, last)), around, ...far(lines.slice(last))];
}

// Foreign text is quoted, or stands behind an indent: it cannot begin a row as this does.
function mark(count: number, what: string, rows = count): FoldedRow {
  return { row: `⋮ ${count.toLocaleString('en')} ${what}`, count: rows };
}

const isEmpty = (line: string) => ['', '│', '+', '-', '+│', '-│'].includes(line.trim());

/** Empty lines that follow each other are one run; every other line is one of its own. */
function runsOf(lines: string[]) {
  const runs: string[][] = [];
  for (const line of lines) {
    const last = runs.at(-1);
    if (last && isEmpty(line) && line.trim() === last[0]!.trim()) last.push(line);
    else runs.push([line]);
  }
  return runs;
}

function emptyLines(line: string) {
  const kind = rowKind(`${line} `);
  return kind === 'added' || kind === 'removed' ? `empty lines ${kind}` : 'empty lines';
}

function foldRun(run: string[], columns: number): FoldedRow[] {
  const rows = run.flatMap((line) => rowsOf(line, columns));
  const isRun = run.length > 1;
  if (isRun) return [mark(run.length, emptyLines(run[0]!), rows.length)];
  if (rows.length <= 4) return rows.map((row) => ({ row, count: 1 }));
  const hidden = rows.slice(1, -2);
  const start = hidden[0]!.indexOf(CONTINUED) + CONTINUED.length;
  const count = hidden.reduce((sum, row) => sum + [...row].length - start, 0);
  const folded = mark(count, 'characters', hidden.length);
  const ends = rows.slice(-2).map((row) => ({ row, count: 1 }));
  return [{ row: rows[0]!, count: 1 }, folded, ...ends];
}

// ─── A page of a dialogue, on sheets as big as the window ──────────────────────────────────────

const MORE = 'Not all of it is in sight: m shows the rest.';
const NEXT = 'm shows the next page.';
const NOT_SEEN =
  'One letter counts only when you have seen all of it: m shows the rest. ' +
  'To answer without, type the whole word.';
const RESIZED = 'The window has another size now, so please look again.';

// Of a page to open in a browser. It is not broken, so that it can be copied; and having no blanks,
// it cannot look like a sentence of ours.
const isAddress = (line: string) => /^ *https?:\/\/[!-~]+$/.test(line);

export class Sheets {
  private page: DialoguePage;
  private size: ScreenSize;
  private rows: string[]; // all of them
  private next = 0; // the first row that is not leafed through yet
  isSeen: boolean;

  constructor(page: DialoguePage, { columns, rows }: ScreenSize) {
    this.page = page;
    const width = Math.max(columns - 1, MIN_COLUMNS);
    const each = Math.ceil(width / columns); // a narrower window breaks our rows once more
    this.size = { columns: width, rows: Math.floor(rows / each) };
    this.rows = page.lines.flatMap((line) => this.broken(line));
    this.isSeen = this.rows.length <= this.room();
  }

  private broken(text: string) {
    return rowsOf(text, this.size.columns);
  }

  private get promptRows() {
    return rowsOf(this.page.prompt, this.size.columns - END_OF_PROMPT.length);
  }

  /** The rows that are left beside an empty one, the prompt with an answer, and a note. */
  private room(note?: string) {
    const rows = this.promptRows;
    const prompt = rows.length - 1 + this.broken(rows.at(-1)! + ANSWER).length;
    const noted = note === undefined ? 0 : this.broken(note).length;
    return this.size.rows - 1 - prompt - noted;
  }

  private sheet(rows: string[], note?: string): DialoguePage {
    const noted = note === undefined ? [] : this.broken(note);
    return { ...this.page, lines: [...rows, ...noted], prompt: this.promptRows.join('\n') };
  }

  whole(note?: string): DialoguePage {
    const { lines } = this.page;
    const rows = lines.flatMap((line) => (isAddress(line) ? [line] : this.broken(line)));
    return this.sheet(rows, note);
  }

  /** All of it, or what fits of it. */
  first(note?: 'not seen' | 'resized'): DialoguePage {
    const said = note === 'resized' ? [RESIZED] : [];
    if (this.isSeen) return this.whole(said[0]);
    said.push(note === 'not seen' ? NOT_SEEN : MORE);
    const text = said.join(' ');
    const rows = Math.max(3, this.room(text));
    return this.sheet(fold(this.page.lines, { columns: this.size.columns, rows }), text);
  }

  /** The next of the sheets that hold all of it, one after the other. */
  turn(): DialoguePage {
    const from = this.next;
    const to = from + Math.max(1, this.room(NEXT) - 1);
    this.next = to;
    this.isSeen = to >= this.rows.length;
    const last = Math.min(to, this.rows.length);
    const title = `── ${from + 1} to ${last} of ${this.rows.length} rows ──`;
    return this.sheet([title, ...this.rows.slice(from, to)], this.isSeen ? undefined : NEXT);
  }
}
