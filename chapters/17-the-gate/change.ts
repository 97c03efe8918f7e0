// change.ts: a change to a file in lines for a person. What is in a file is foreign text: each line
// of it is behind a gutter of ours, and only rows with that gutter are ever coloured.

import type { Change } from '../../agent.ts';
import { line, quoted } from './safe-text.ts';

const BYTE_ORDER_MARK = '\ufeff';

/** What a row of the screen is, by its gutter: "  +│ text", or "  +┆ text" where a line goes on. */
export type RowKind = 'added' | 'removed' | 'near' | 'place';
const GUTTER = /^  (?:([+\- ])[│┆] |(@@ ))/;
const KINDS: Record<string, RowKind> = { '+': 'added', '-': 'removed', ' ': 'near' };

export function rowKind(row: string): RowKind | undefined {
  const [, sign, place] = GUTTER.exec(row) ?? [];
  if (place !== undefined) return 'place';
  return sign === undefined ? undefined : KINDS[sign];
}

/** The diff, and below it the file once more: of a long one the beginning may be out of sight. */
export function changeLines(change: Change, path: string): string[] {
  const rows = change.diff === '' ? [] : change.diff.split('\n');
  return [...spelled(withoutLineEnds(rows)), `  ${summaryOf(change, rows, path)}`];
}

function summaryOf({ notes }: Change, rows: string[], path: string) {
  const count = (sign: string) => rows.filter((row) => row.startsWith(sign)).length;
  const added = count('+');
  const removed = count('-');
  const facts = [...notes];
  if (added > 0) facts.push(`${lines(added)} added`);
  if (removed > 0) facts.push(`${lines(removed)} removed`);
  if (rows.length === 0) facts.push(notes.length > 0 ? 'nothing in it' : 'nothing changes');
  if (areCrlf(rows)) facts.push('line ends CRLF');
  return `${quoted(path)}: ${facts.join(', ')}`;
}

const lines = (count: number) => `${count} ${count === 1 ? 'line' : 'lines'}`;

const isText = (row: string) => /^[-+ ]/.test(row);

/** A line end that changes must be seen. If all that is shown ends in CRLF, none does. */
function areCrlf(rows: string[]) {
  const ended = rows.filter((row, n) => isText(row) && !rows[n + 1]?.startsWith('\\'));
  return ended.length > 0 && ended.every((row) => row.endsWith('\r'));
}

function withoutLineEnds(rows: string[]) {
  const plain = areCrlf(rows) ? rows.map((row) => row.replace(/\r$/, '')) : rows;
  // A byte order mark that stays is not shown either, as `read` does not show it.
  const isMarked = (row: string) => isText(row) && row.startsWith(BYTE_ORDER_MARK, 1);
  const signs = plain
    .filter(isMarked)
    .map((row) => row[0])
    .join('');
  if (signs !== ' ' && signs !== '-+') return plain;
  return plain.map((row) => (isMarked(row) ? row[0] + row.slice(2) : row));
}

function spelled(rows: string[]) {
  const alike = twinsIn(rows);
  return rows.map((row) => {
    if (!isText(row)) return `  ${row}`; // "@@ -1 +1 @@" and "\ No newline" are our own words
    const sign = row[0]!;
    const text = sign === ' ' ? row.slice(1) : withBlanks(row.slice(1), alike.has(squeezed(row)));
    return `  ${sign}│ ${line(text)}`;
  });
}

const squeezed = (row: string) => row.slice(1).replace(/\s+/g, '');

/** The lines that are removed and added, and differ in nothing but blanks. */
function twinsIn(rows: string[]) {
  const signed = (sign: string) => rows.filter((row) => row.startsWith(sign)).map(squeezed);
  const added = new Set(signed('+'));
  return new Set(signed('-').filter((row) => added.has(row)));
}

/** Blanks at an end are spelled, because no screen shows them. Where only blanks differ, all tabs are, too. */
function withBlanks(text: string, isTwin: boolean) {
  let end = text.endsWith('\r') ? text.length - 1 : text.length;
  const rest = text.slice(end);
  while (text[end - 1] === ' ' || text[end - 1] === '\t') end--; // not by a pattern: those go back and forth
  const blanks = text.slice(end, text.length - rest.length);
  const start = text.slice(0, end);
  return (isTwin ? start.replaceAll('\t', spell) : start) + spell(blanks) + rest;
}

const spell = (blanks: string) => blanks.replaceAll(' ', '\\x20').replaceAll('\t', '\\t');
