// What stays below everything that is written: the spinner, and the line that is being typed. It is
// taken away before something is written, and drawn again behind that.

import { stripVTControlCharacters } from 'node:util';
import { printable } from '../17-the-gate/safe-text.ts';
import type { ScreenSize } from './fold.ts';
import { columnsOf, type Paint } from './wrap.ts';

const ERASE_BELOW = '\x1b[0J';
const TAB = '    ';

/** `above` are rows of their own, such as the spinner. The typed text is behind the prompt. */
export type FootContent = { above: string[]; line?: Typed; paint?: Paint }; // of the prompt
export type Typed = { prompt: string; text: string; cursor: number };
type ScreenPosition = { row: number; column: number };
/** What is before and behind the cursor, as plain text; the column of the unfinished line above; and
 *  whether a line feed follows, because the last row is full. */
type Drawn = { before: string; behind: string; column: number; isBroken: boolean };

const up = (rows: number) => (rows > 0 ? `\x1b[${rows}A` : '');
const toColumn = (column: number) => `\x1b[${column + 1}G`;

/** Where the cursor is after this text, if it was in this column before. A terminal begins the next
 *  row only when the next character comes: until then the column is as big as the window. */
export function placeAfter(text: string, columns: number, column = 0): ScreenPosition {
  const place = { row: 0, column };
  const nextRow = () => {
    place.row++;
    place.column = 0;
  };
  for (const char of text) {
    const width = char === '\n' ? 0 : columnsOf(char);
    if (char === '\n' || place.column + width > columns) nextRow();
    place.column += width;
  }
  return place;
}

/** A text as it is shown: control characters cannot be in it, and a tab has a width. */
const shown = (text: string) => printable(text).replaceAll('\t', TAB);

/** Where rows end so that no word is broken: before these indexes of the text. A blank that does not
 *  fit becomes the end of its row. A word that is longer than a row is left to the terminal. */
function rowEnds(text: string, columns: number) {
  const ends: number[] = [];
  let column = 0;
  let index = 0;
  for (const [word] of text.matchAll(/\n|\S+|[^\S\n]/g)) {
    const width = word === '\n' ? 0 : columnsOf(word);
    const fits = column + width <= columns;
    const isBlank = word.trim() === '' && word !== '\n';
    if (word === '\n') column = 0;
    else if (fits) column += width;
    else if (isBlank || width <= columns) {
      ends.push(index);
      column = isBlank ? 0 : width;
    } else column = placeAfter(word, columns, column).column;
    index += word.length;
  }
  return ends;
}

/** The same with these ends in it, and the cursor at the same character. */
export function flow({ prompt, text, cursor }: Typed, columns: number): Typed {
  const before = shown(text.slice(0, cursor));
  const whole = prompt + before + shown(text.slice(cursor));
  let flowed = '';
  let from = 0;
  let at = prompt.length + before.length;
  let head = prompt.length;
  for (const end of rowEnds(whole, columns)) {
    const isSwallowed = /\s/.test(whole[end]!);
    flowed += `${whole.slice(from, end)}\n`;
    from = isSwallowed ? end + 1 : end;
    if (isSwallowed) continue;
    if (end <= prompt.length + before.length) at++;
    if (end < prompt.length) head++;
  }
  flowed += whole.slice(from);
  return { prompt: flowed.slice(0, head), text: flowed.slice(head), cursor: at - head };
}

/** The rows around the cursor, if there are more than fit. */
export function inSight({ prompt, text, cursor }: Typed, { columns, rows }: ScreenSize): Typed {
  const starts = [0]; // of the rows, in the text
  let { column } = placeAfter(prompt, columns);
  let index = 0;
  for (const char of text) {
    const place = placeAfter(char, columns, column);
    column = place.column;
    if (place.row > 0) starts.push(char === '\n' ? index + 1 : index);
    index += char.length;
  }
  if (starts.length <= rows) return { prompt, text, cursor };
  const at = starts.findLastIndex((start) => start <= cursor);
  const room = Math.max(1, rows - 2); // beside the two marks
  const first = Math.max(0, Math.min(at - Math.floor(room / 2), starts.length - room));
  const end = starts[first + room] ?? text.length;
  const above = first > 0 ? `⋮ ${first} rows above\n` : prompt;
  const below = starts.length - first - room;
  const piece = text.slice(starts[first], end).replace(/\n$/, '');
  const mark = below > 0 ? `\n⋮ ${below} rows below` : '';
  return { prompt: above, text: piece + mark, cursor: cursor - starts[first]! };
}

export class Foot {
  private size: () => ScreenSize;
  private isDumb = process.env.TERM === 'dumb'; // it cannot move its cursor
  private drawn?: Drawn;
  private echoed = ''; // on a terminal that is dumb

  constructor(size: () => ScreenSize) {
    this.size = size;
  }

  /** Below a line of so many columns that is not finished, or instead of what is there. */
  draw({ above, line, paint = (text) => text }: FootContent, column = 0): void {
    if (this.isDumb) return this.echo(line);
    const { columns, rows } = this.size();
    if (above.length === 0 && !line) return this.erase();
    const room = Math.max(1, rows - above.length - 1);
    const typed = line && inSight(flow(line, columns), { columns, rows: room });
    const { prompt = '', text = '', cursor = 0 } = typed ?? {};
    const head = above.join('\n') + (above.length > 0 && typed ? '\n' : '');
    const before = head + paint(prompt) + text.slice(0, cursor);
    const behind = text.slice(cursor);
    const plain = stripVTControlCharacters(before);
    const more = behind === '' ? this.more(plain) : undefined;
    if (more === '') return;
    const whole = () => this.erasure() + (column > 0 ? '\n' : '') + before + behind;
    const codes = more ?? whole();
    const isBroken = typed !== undefined && placeAfter(plain + behind, columns).column === columns;
    this.drawn = { before: plain, behind, column, isBroken };
    process.stderr.write(codes + (isBroken ? '\n' : '') + (typed ? this.backToCursor() : ''));
  }

  /** The window has another size: the terminal may have broken its rows elsewhere. */
  drawAgain(content: FootContent, column = 0): void {
    this.erase();
    this.draw(content, column);
  }

  /** Erases these rows above it, too. Terminals break rows again that have become too long. */
  eraseBelow(above: string): void {
    this.erase();
    if (this.isDumb) return;
    const { row } = placeAfter(`${stripVTControlCharacters(above)}\n`, this.size().columns);
    process.stderr.write(`\r${up(row)}${ERASE_BELOW}`);
  }

  /** What is new at its end, if all else is as it was: most keys add a letter there. */
  private more(text: string) {
    if (this.drawn?.behind !== '') return undefined;
    const { before } = this.drawn;
    return text.startsWith(before) ? text.slice(before.length) : undefined;
  }

  /** From the end of what is drawn. */
  private backToCursor() {
    const { before, behind, isBroken } = this.drawn!;
    const end = placeAfter(before + behind, this.size().columns);
    const last = end.row + (isBroken ? 1 : 0);
    const cursor = this.cursor();
    return up(last - cursor.row) + toColumn(cursor.column);
  }

  /** Behind a row that is full it is at the start of the next one. */
  private cursor() {
    const { before, behind, isBroken } = this.drawn!;
    const { columns } = this.size();
    const place = placeAfter(before, columns);
    const isNext = behind === '' ? isBroken : place.column === columns;
    return isNext ? { row: place.row + 1, column: 0 } : place;
  }

  /** Back to where it began, with nothing below. The window may have another size by now. */
  private erasure() {
    if (!this.drawn) return '';
    const { column } = this.drawn;
    const { row } = this.cursor();
    this.drawn = undefined;
    const erased = (row > 0 ? `\r${up(row)}` : toColumn(0)) + ERASE_BELOW;
    const isBelow = column > 0 && column < this.size().columns;
    return isBelow ? erased + up(1) + toColumn(column) : erased;
  }

  erase(): void {
    const codes = this.erasure();
    if (codes !== '') process.stderr.write(codes);
    if (this.echoed !== '') process.stderr.write('\n');
    this.echoed = '';
  }

  /** A line stays where it was being typed, in its final words. */
  end(prompt: string, words: string, paint: Paint): void {
    const typed = { prompt, text: words, cursor: words.length };
    if (this.isDumb) {
      this.echo(typed);
      return this.erase();
    }
    const line = flow(typed, this.size().columns);
    const more = this.more(line.prompt + line.text);
    if (more === undefined) this.erase();
    process.stderr.write(`${more ?? paint(line.prompt) + line.text}\n`);
    this.forget();
  }

  /** Stays as it is, and the cursor goes below. */
  leave(): void {
    if (this.drawn) {
      const { before, behind } = this.drawn;
      const end = placeAfter(before + behind, this.size().columns);
      process.stderr.write('\n'.repeat(Math.max(0, end.row - this.cursor().row) + 1));
    }
    this.forget();
  }

  /** It is not there any more: the screen was cleared. */
  forget(): void {
    this.drawn = undefined;
    this.echoed = '';
  }

  /** Only what is new of it. */
  private echo(line?: Typed) {
    if (!line) return;
    const text = line.prompt + shown(line.text);
    const isMore = text.startsWith(this.echoed);
    process.stderr.write(isMore ? text.slice(this.echoed.length) : `\n${text}`);
    this.echoed = text;
  }
}
