// A question in a window of so many rows. What does not fit is folded, and the fold says how much it
// hides: an asker can choose the text, such as forty empty lines, but not what is in sight.

import type { Page } from '../17-the-gate/dialogue.ts';
import { printable } from '../17-the-gate/safe-text.ts';

export type Size = { columns: number; rows: number };
/** A row to show, and how many of the whole text it stands for. */
type Piece = { row: string; count: number };

const MIN_COLUMNS = 20;
const MAX_INDENT = 8;
const CONTINUED = '┆ ';
const ANSWER = ': '.padEnd(10); // the room that an answer takes, behind the prompt
const TAB_COLUMNS = 8;

// ─── How much room a text takes ────────────────────────────────────────────────────────────────

// Rather too many than too few: a row that is too short does no harm.
const WIDE = new RegExp(
  '[\\u1100-\\u115f\\u2329\\u232a\\u2e80-\\ua4cf\\ua960-\\ua97f\\uac00-\\ud7a3\\uf900-\\ufaff' +
    '\\ufe10-\\ufe19\\ufe30-\\ufe6f\\uff00-\\uff60\\uffe0-\\uffe6' +
    '\\u{16fe0}-\\u{18fff}\\u{1aff0}-\\u{1b2ff}\\u{1f000}-\\u{3ffff}]|\\p{Emoji_Presentation}',
  'u',
);

/** Wide characters, such as Chinese ones and most emoji, take two columns. */
export function widthOf(char: string): number {
  return char >= '\u1100' && WIDE.test(char) ? 2 : 1;
}

/** The rows of a line. We break it before the terminal does: a row that the terminal begins could
 *  begin with anything, such as a question that looks like ours. */
export function rowsOf(line: string, columns: number): string[] {
  const indent = /^ */.exec(line)![0].slice(0, MAX_INDENT);
  const start = indent + CONTINUED;
  const rows: string[] = [];
  let row = '';
  let used = 0;
  for (const char of printable(line)) {
    const text = char === '\t' ? ' '.repeat(TAB_COLUMNS - (used % TAB_COLUMNS)) : char;
    const width = char === '\t' ? text.length : widthOf(char);
    if (char === '\n' || used + width > columns) {
      rows.push(row);
      row = start;
      used = start.length;
    }
    if (char === '\n') continue;
    row += text;
    used += width;
  }
  return [...rows, row];
}

// ─── Folding ───────────────────────────────────────────────────────────────────────────────────

/** At most so many rows: the beginning and the end of everything, and what is between in figures. */
export function fold(lines: string[], { columns, rows }: Size): string[] {
  const pieces = runsOf(lines).flatMap((run) => foldRun(run, columns));
  if (pieces.length <= rows) return pieces.map(({ row }) => row);
  const head = Math.ceil((rows - 1) / 2);
  const tail = rows - 1 - head;
  const hidden = pieces.slice(head, pieces.length - tail);
  const count = hidden.reduce((sum, piece) => sum + piece.count, 0);
  const shown = [...pieces.slice(0, head), mark(count, 'rows'), ...pieces.slice(-tail)];
  return shown.map(({ row }) => row);
}

// Foreign text is quoted, or stands behind an indent: it cannot begin a row as this does.
function mark(count: number, what: string, rows = count): Piece {
  return { row: `⋮ ${count.toLocaleString('en')} ${what}`, count: rows };
}

const isEmpty = (line: string) => /^\s*([│+-]\s*)?$/.test(line);

/** Empty lines that follow each other are one run; every other line is one of its own. */
function runsOf(lines: string[]): string[][] {
  const runs: string[][] = [];
  for (const line of lines) {
    const last = runs.at(-1);
    if (last && isEmpty(line) && isEmpty(last[0]!)) last.push(line);
    else runs.push([line]);
  }
  return runs;
}

function foldRun(run: string[], columns: number): Piece[] {
  const rows = run.flatMap((line) => rowsOf(line, columns));
  const isRun = run.length > 1;
  if (isRun) return [mark(run.length, 'empty lines', rows.length)];
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
  private page: Page;
  private size: Size;
  private rows: string[]; // all of them
  private next = 0; // the first row that is not leafed through yet
  isSeen: boolean;

  constructor(page: Page, { columns, rows }: Size) {
    this.page = page;
    this.size = { columns: Math.max(columns - 1, MIN_COLUMNS), rows };
    this.rows = page.lines.flatMap((line) => this.broken(line));
    this.isSeen = this.rows.length <= this.room();
  }

  private broken(text: string): string[] { return rowsOf(text, this.size.columns); }

  /** The rows that are left beside an empty one, the prompt, and a note. */
  private room(note?: string): number {
    const prompt = this.broken(this.page.prompt + ANSWER).length;
    const noted = note === undefined ? 0 : this.broken(note).length;
    return this.size.rows - 1 - prompt - noted;
  }

  private sheet(rows: string[], note?: string): Page {
    const noted = note === undefined ? [] : this.broken(note);
    return { ...this.page, lines: [...rows, ...noted] };
  }

  private whole(note?: string): Page {
    const { lines } = this.page;
    const rows = lines.flatMap((line) => (isAddress(line) ? [line] : this.broken(line)));
    return this.sheet(rows, note);
  }

  /** All of it, or what fits of it. */
  first(note?: 'not seen' | 'resized'): Page {
    const said = note === 'resized' ? [RESIZED] : [];
    if (this.isSeen) return this.whole(said[0]);
    said.push(note === 'not seen' ? NOT_SEEN : MORE);
    const text = said.join(' ');
    const rows = Math.max(3, this.room(text));
    return this.sheet(fold(this.page.lines, { columns: this.size.columns, rows }), text);
  }

  /** The next of the sheets that hold all of it, one after the other. */
  turn(): Page {
    const from = this.next;
    const to = from + Math.max(1, this.room(NEXT) - 1);
    this.next = to;
    this.isSeen = to >= this.rows.length;
    const last = Math.min(to, this.rows.length);
    const title = `── ${from + 1} to ${last} of ${this.rows.length} rows ──`;
    return this.sheet([title, ...this.rows.slice(from, to)], this.isSeen ? undefined : NEXT);
  }
}
