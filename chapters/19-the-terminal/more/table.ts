// table.ts: a table of Markdown in columns. Where they do not fit side by side, each row becomes a
// few lines: "name: value".

import { columnsOf } from '../wrap.ts';

const LEAST = 20; // columns that a cell is not made narrower than
const SEPARATOR = /^ *\|(?: *:?-+:? *\|)+ *$/;
const GAP = ' │ ';

/** The rows of a cell, broken between words; `widths` are those of the rows. */
type Cell = { rows: string[]; widths: number[] };
type TableOptions = {
  columns: number;
  cell: (text: string, most: number, isHead?: boolean) => Cell;
  dim: (text: string) => string;
};

export const isTableRow = (line: string) => /^ {0,3}\|/.test(line);

/** Nothing if it is no table. */
export function drawnTable(lines: string[], options: TableOptions): string[] | undefined {
  const [head = '', separator = '', ...body] = lines;
  if (!SEPARATOR.test(separator)) return undefined;
  const names = cellsOf(head);
  const rows = body.map((line) => names.map((_, n) => cellsOf(line)[n] ?? ''));
  return inColumns([names, ...rows], cellsOf(separator), options) ?? inLines(names, rows, options);
}

function cellsOf(line: string) {
  const inside = line.trim().replace(/^\||(?<!\\)\|$/g, '');
  return inside.split(/(?<!\\)\|/).map((text) => text.replaceAll('\\|', '|').trim());
}

const widest = ({ widths }: Cell) => Math.max(...widths);
const sum = (numbers: number[]) => numbers.reduce((all, each) => all + each, 0);

/** Nothing if they do not fit. */
function inColumns(rows: string[][], aligned: string[], { columns, cell, dim }: TableOptions) {
  const laid = (widths: number[]) =>
    rows.map((row, at) => row.map((text, n) => cell(text, widths[n]!, at === 0)));
  const whole = laid(rows[0]!.map(() => Infinity));
  const widths = rows[0]!.map((_, n) => Math.max(...whole.map((row) => widest(row[n]!))));
  const room = columns - GAP.length * (widths.length - 1);
  while (sum(widths) > room) {
    const most = Math.max(...widths);
    if (most <= LEAST) return undefined;
    widths[widths.indexOf(most)] = Math.max(LEAST, most - Math.max(1, sum(widths) - room));
  }
  const fitting = laid(widths);
  const isTooWide = (each: Cell, n: number) => widest(each) > widths[n]!; // a word that is not broken
  if (fitting.some((row) => row.some(isTooWide))) return undefined;
  const [head = [], ...body] = fitting.map((row) => drawnRow(row, widths, aligned, dim));
  const rule = dim(widths.map((width) => '─'.repeat(width)).join('─┼─'));
  return [...head, rule, ...body.flat()];
}

function drawnRow(row: Cell[], widths: number[], aligned: string[], dim: TableOptions['dim']) {
  const height = Math.max(...row.map(({ rows }) => rows.length));
  return Array.from({ length: height }, (_, at) => {
    const parts = row.map(({ rows, widths: used }, n) => {
      const blanks = ' '.repeat(widths[n]! - (used[at] ?? 0));
      const text = rows[at] ?? '';
      if (/^-+:$/.test(aligned[n] ?? '')) return blanks + text;
      return n < row.length - 1 ? text + blanks : text;
    });
    return parts.join(dim(GAP));
  });
}

function inLines(names: string[], rows: string[][], { columns, cell, dim }: TableOptions) {
  const rule = dim('─'.repeat(Math.min(LEAST, columns)));
  const drawn = rows.map((row) =>
    row.flatMap((text, n) => (text === '' ? [] : cell(`${names[n]}: ${text}`, columns).rows)),
  );
  return drawn.flatMap((lines, n) => (n === 0 ? lines : [rule, ...lines]));
}

/** What is drawn, and how wide it is without its colours. */
export function measured(painted: string, plain: string): Cell {
  return { rows: painted.split('\n'), widths: plain.split('\n').map(columnsOf) };
}
