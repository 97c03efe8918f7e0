// An answer in Markdown, as it comes, for a terminal: words wrapped, marks shown as what they mean.
// What is held back is the last word, a sign that may begin a mark until we know, and the first
// signs of a line; and a table, until its last row is there. Code goes out as it is, between two rules.

import { drawnTable, isTableRow, measured } from './more/table.ts';
import { columnsOf, WordWrap, type Paint } from './wrap.ts';

export type MarkdownStyle = 'bold' | 'italic' | 'cyan' | 'dim';
type MarkdownOptions = {
  columns: () => number;
  paint?: (format: MarkdownStyle, text: string) => string; // without it all signs stay as they are
};

const FORMATS: Record<Mark, MarkdownStyle[]> = {
  code: ['cyan'],
  italic: ['italic'],
  bold: ['bold'],
  both: ['bold', 'italic'],
  link: [],
};

// ─── The first signs of a line ─────────────────────────────────────────────────────────────────

const MAX_START = 200; // characters; a line that begins with more signs is a line of text
const NO_SIGN = /[^\s>#+*_=`~\d.)|-]/;
const NO_FENCE = /[^\s>`~]/;
const FENCE = /^[\s>]*(?:(?:[-+*]|\d{1,9}[.)])[ \t]+)?(`{3,}|~{3,})/;
const CLOSING = /^[\s>]*(`{3,}|~{3,})\s*$/;
const QUOTE = /^ {0,3}>[\s>]*/;
const HEADING = /^#{1,6}[ \t]+/;
const ITEM = /^(?:[-+*]|\d{1,9}[.)])[ \t]+/;
const RULE = /^[-*_=\s]*$/;
const CODE_INDENT = 4;
const MAX_TABLE = 20_000; // characters; more is written as it came
const RULE_COLUMNS = 40;

/** The opening of a code block, with the rest of its line. */
function fenceIn(line: string) {
  const found = FENCE.exec(line);
  if (!found) return '';
  const [start, fence = ''] = found;
  const isInline = fence.startsWith('`') && line.slice(start.length).includes('`');
  return isInline ? '' : fence;
}

const blanks = (text: string) => ' '.repeat(columnsOf(text.replaceAll('\t', '    ')));

// ─── The renderer ──────────────────────────────────────────────────────────────────────────────

export class Markdown {
  private rows: WordWrap;
  private columns: () => number;
  private paint?: MarkdownOptions['paint'];
  private paints = new Map<string, Paint>(); // one for each mixture of formats
  private state: 'start' | 'text' | 'raw' | 'table' = 'start'; // of the line
  private pending = ''; // what came of the line, and is not decided upon
  private before = ''; // the last character of its text
  private formats: MarkdownStyle[] = []; // of the whole line: a heading is bold
  private fence = ''; // that code is in
  private isList = false; // what is indented belongs to an item
  private isCodeNext = true; // behind an empty line, what is indented is code
  private table: string[] = []; // its rows so far

  constructor({ columns, paint }: MarkdownOptions) {
    this.rows = new WordWrap(columns);
    this.columns = columns;
    this.paint = paint;
  }

  /** A piece of the answer. Gives back what can be written already: the same, all in all, wherever
   *  the pieces are cut. */
  take(piece: string): string {
    const [first = '', ...others] = piece.split('\n');
    let out = this.goOn(first);
    for (const line of others) out += this.endLine() + this.goOn(line);
    return out;
  }

  /** What was held, because something else is to be written. */
  rest(): string {
    const out = this.finish() + this.endTable();
    this.rows.restart();
    this.state = 'start';
    return out;
  }

  private goOn(text: string) {
    this.pending += text;
    return this.work(false);
  }

  private endLine() {
    const isEmpty = this.state === 'start' && this.pending.trim() === '';
    const out = this.finish() + (this.state === 'table' ? '' : this.rows.endLine());
    this.state = 'start';
    if (isEmpty) this.isCodeNext = true;
    return out;
  }

  private finish() {
    return this.work(true) + this.rows.flush();
  }

  private work(isWhole: boolean) {
    const start = this.state === 'start' ? this.begin(isWhole) : '';
    const text = this.pending;
    if (this.state === 'table') return start + this.tableRow(isWhole);
    if (this.state === 'start' || text === '') return start;
    this.pending = '';
    if (this.state === 'raw') return start + text;
    if (!this.paint) return start + this.rows.add(text);
    return start + this.inline(text, this.formats, isWhole);
  }

  // ── Tables ──

  private tableRow(isWhole: boolean) {
    if (!isWhole) return '';
    this.table.push(this.pending);
    this.pending = '';
    return this.table.join('').length > MAX_TABLE ? this.endTable() : '';
  }

  private endTable() {
    const rows = this.table.splice(0);
    const { paint = (_: MarkdownStyle, text: string) => text } = this;
    const laid = (text: string, most: number, isHead: boolean, by: typeof paint) => {
      const within = new Markdown({ columns: () => most + 1, paint: by });
      within.state = 'text';
      within.formats = isHead ? ['bold'] : [];
      return within.take(text) + within.rest();
    };
    const drawn = drawnTable(rows, {
      columns: this.columns() - 1,
      dim: (text) => paint('dim', text),
      cell: (text, most, isHead = false) => {
        const plain = laid(text, most, isHead, (_, words) => words);
        return measured(laid(text, most, isHead, paint), plain);
      },
    });
    return (drawn ?? rows).map((row) => `${row}\n`).join('');
  }

  // ── The beginning of a line: what kind is it? ──

  private begin(isWhole: boolean) {
    const line = this.pending.slice(0, MAX_START);
    const isKnown = isWhole || line.length === MAX_START;
    const isOfTable = this.paint && this.fence === '' && isTableRow(line);
    if (isOfTable) this.state = 'table';
    if (isOfTable) return '';
    // What begins with blanks may be one, too.
    const ended = this.table.length > 0 && (isKnown || line.trim() !== '') ? this.endTable() : '';
    return ended + this.beginOther(line, isKnown, isWhole);
  }

  private beginOther(line: string, isKnown: boolean, isWhole: boolean) {
    if (this.fence !== '') {
      if (!isKnown && !NO_FENCE.test(line)) return '';
      return this.goOnWithCode(line, isWhole);
    }
    const mayBeFence = FENCE.test(line);
    const isDecided = isKnown || (!mayBeFence && NO_SIGN.test(line));
    if (!isDecided) return '';
    const fence = isWhole && mayBeFence ? fenceIn(this.pending) : '';
    if (fence === '') return this.beginLine(line, isWhole);
    this.fence = fence;
    return this.fenceLine();
  }

  private goOnWithCode(line: string, isWhole: boolean) {
    const [, fence = ''] = (isWhole && CLOSING.exec(line)) || [];
    if (fence.startsWith(this.fence)) {
      this.fence = '';
      this.isCodeNext = false;
      return this.fenceLine();
    }
    this.state = 'raw';
    return '';
  }

  /** A rule, with the language of what follows. */
  private fenceLine() {
    const line = this.pending;
    this.pending = '';
    this.state = 'raw';
    if (!this.paint) return line;
    const language = this.fence === '' ? '' : line.replace(/^[\s>*+-]*[`~]+/, '').trim();
    const title = language === '' ? '' : `─ ${language} `;
    const room = Math.min(RULE_COLUMNS, this.columns() - 1) - columnsOf(title);
    return this.paint('dim', title + '─'.repeat(Math.max(2, room)));
  }

  private beginLine(line: string, isWhole: boolean) {
    const quote = QUOTE.exec(line)?.[0] ?? '';
    const [, lead = '', rest = ''] = /^([ \t]*)([^]*)$/.exec(line.slice(quote.length))!;
    const isCode =
      quote === '' && !this.isList && this.isCodeNext && blanks(lead).length >= CODE_INDENT;
    const isRule = isWhole && RULE.test(rest);
    this.state = isCode || isRule || rest.startsWith('|') ? 'raw' : 'text';
    if (this.state === 'raw') return '';
    this.isCodeNext = false;
    const heading = HEADING.exec(rest)?.[0] ?? '';
    const item = ITEM.exec(rest)?.[0] ?? '';
    this.isList = item !== '' || (this.isList && lead !== '');
    this.formats = heading === '' ? [] : ['bold'];
    this.before = '';
    this.pending = this.pending.slice(quote.length + lead.length + heading.length + item.length);
    return this.startRow(quote, lead, this.paint ? '' : heading, item);
  }

  /** What stands before the words, and in the rows that they overflow into. */
  private startRow(quote: string, lead: string, heading: string, item: string) {
    const bars = this.paint ? quote.replace(/> ?/g, '│ ') : quote;
    const marker = this.paint ? item.replace(/^[-+*]/, '•') : item;
    const start = bars + blanks(lead) + heading + marker;
    const indent = bars + blanks(lead + heading + marker);
    return this.rows.begin(start, indent, this.painted(quote === '' ? [] : ['dim']));
  }

  // ── What is marked inside of a line ──

  /** What cannot be decided yet stays pending. */
  private inline(text: string, formats: MarkdownStyle[], isWhole: boolean) {
    let out = '';
    while (text !== '') {
      const sign = text.search(SIGN);
      const words = sign === -1 ? text : text.slice(0, sign);
      out += this.write(words, formats);
      text = text.slice(words.length);
      if (text === '') break;
      const found = markAt({ text, before: this.before, isWhole });
      const literal = found === undefined ? literalAt(text, isWhole) : '';
      if (found === 'wait' || literal === 'wait') {
        this.pending = text;
        break;
      }
      const length = found?.length ?? literal.length;
      out += found ? this.marked(found, formats) : this.write(literal, formats);
      this.before = text[length - 1]!;
      text = text.slice(length);
    }
    return out;
  }

  private marked({ mark, text, address }: MarkedText, formats: MarkdownStyle[]) {
    const all = [...new Set([...formats, ...FORMATS[mark]])];
    if (mark === 'code') return this.write(text, all);
    this.before = '';
    const words = this.inline(text, all, true);
    if (address === undefined) return words;
    return text === address ? words : words + this.write(` (${address})`, formats);
  }

  private write(text: string, formats: MarkdownStyle[]) {
    if (text === '') return '';
    this.before = /[^]$/u.exec(text)![0];
    return this.rows.add(text, this.painted(formats));
  }

  private painted(formats: MarkdownStyle[]) {
    const key = formats.join();
    const known = this.paints.get(key);
    if (known) return known;
    const paint = (text: string) =>
      formats.reduce((painted, format) => this.paint?.(format, painted) ?? painted, text);
    this.paints.set(key, paint);
    return paint;
  }
}

// ─── Inside of a line ────────────────────────────────────────────────────────────────────────────

// `code`, *emphasis*, **bold**, [a link](address). In doubt a character is a character: a star may
// be a glob, a product or a pointer, an underscore part of a name.

type Mark = 'code' | 'italic' | 'bold' | 'both' | 'link';
/** A marked text of so many characters. `'wait'`: it may become one, with what is still to come. */
type MarkedText = { length: number; mark: Mark; text: string; address?: string };
type InlineMatch = MarkedText | 'wait' | undefined;
/** What is known: the text from a sign on, what is before it, and whether the line ends with it. */
type InlineContext = { text: string; before: string; isWhole: boolean };

/** No mark is longer, its signs included: what might be one is held back until we know. */
const MAX_MARKED = 400;
const SIGN = /[`*_[\\]/;

function markAt(place: InlineContext): InlineMatch {
  const text = place.text.slice(0, MAX_MARKED);
  const isWhole = place.isWhole || text.length === MAX_MARKED;
  const within = { ...place, text, isWhole };
  const found = lookFor(within);
  return found === 'wait' && isWhole ? undefined : found;
}

function lookFor(place: InlineContext): InlineMatch {
  const [sign] = place.text;
  if (sign === '`') return codeAt(place.text, place.isWhole);
  if (sign === '*' || sign === '_') return emphasisAt(place);
  if (sign === '[') return linkAt(place);
  return undefined;
}

/** Signs that have no meaning of their own are taken together: `***`, or a backslash and a star. */
function literalAt(text: string, isWhole: boolean): string | 'wait' {
  const sign = text[0]!;
  if (sign === '\\') {
    if (text.length === 1) return isWhole ? text : 'wait';
    return /[!-/:-@[-`{-~]/.test(text[1]!) ? text.slice(0, 2) : sign;
  }
  if (sign !== '`' && sign !== '*' && sign !== '_') return sign;
  const length = runAt(text, 0);
  return length === text.length && length < MAX_MARKED && !isWhole ? 'wait' : text.slice(0, length);
}

/** How many of the same sign follow each other. */
function runAt(text: string, at: number) {
  let end = at + 1;
  while (text[end] === text[at]) end++;
  return end - at;
}

// ─── `code` ────────────────────────────────────────────────────────────────────────────────────

function codeAt(text: string, isWhole: boolean): InlineMatch {
  const run = runAt(text, 0);
  const end = endOfCode(text, 0, isWhole);
  if (typeof end !== 'number') return end;
  const inside = text.slice(run, end - run);
  const isPadded = inside.startsWith(' ') && inside.endsWith(' ') && inside.trim() !== '';
  return { length: end, mark: 'code', text: isPadded ? inside.slice(1, -1) : inside };
}

/** Where the code that begins here ends: behind as many backticks as before it. */
function endOfCode(text: string, at: number, isWhole: boolean): number | 'wait' | undefined {
  const run = runAt(text, at);
  for (let next = text.indexOf('`', at + run); next !== -1; ) {
    const length = runAt(text, next);
    const isAtEnd = next + length === text.length && !isWhole; // there may be more
    if (isAtEnd) return 'wait';
    if (length === run) return next + length;
    next = text.indexOf('`', next + length);
  }
  return isWhole ? undefined : 'wait';
}

// ─── *emphasis* and **bold** ───────────────────────────────────────────────────────────────────

const MARKS: Record<number, Mark> = { 1: 'italic', 2: 'bold', 3: 'both' };
const UNSPACED =
  '\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Hangul}\\p{Script=Thai}';
const MAY_PRECEDE = new RegExp(
  `^$|[\\s([{<"'“‘«„‹—–:,;…|${UNSPACED}]$|[^\\0-\\x7f\\p{L}\\p{N}]$`,
  'u',
);
const MAY_FOLLOW = new RegExp(
  `^$|^[\\s)\\]}>"'”’»‹›,.;:!?…—–|${UNSPACED}-]|^[^\\0-\\x7f\\p{L}\\p{N}]`,
  'u',
);
const MAY_OPEN: Record<number, RegExp> = {
  1: /^[\p{L}\p{N}"'“‘«([`$]|^[^\0-\x7f]/u,
  2: /^[^\s*_/]/u,
  3: /^[^\s*_/]/u,
};
const MAY_CLOSE = /[^\s([{/]$/u;

function emphasisAt({ text, before, isWhole }: InlineContext): InlineMatch {
  const run = runAt(text, 0);
  if (run === text.length && !isWhole) return 'wait';
  const opens = MAY_PRECEDE.test(before) && MAY_OPEN[run]?.test(text.slice(run, run + 2));
  if (!opens) return undefined;
  for (let at = run; at < text.length; ) {
    const sign = text[at]!;
    if (sign === '\\') at += 2;
    else if (sign === '`') {
      const end = endOfCode(text, at, isWhole);
      if (end === 'wait') return 'wait';
      at = end ?? at + runAt(text, at);
    } else if (sign === text[0]) {
      const length = runAt(text, at);
      const end = at + length;
      if (end === text.length && !isWhole) return 'wait';
      if (length === run && closes(text, at, end)) {
        const inside = text.slice(run, at);
        return isName(inside, text[0]!, run)
          ? undefined
          : { length: end, mark: MARKS[run]!, text: inside };
      }
      at = end;
    } else at++;
  }
  return isWhole ? undefined : 'wait';
}

const closes = (text: string, at: number, end: number) =>
  MAY_CLOSE.test(text.slice(0, at)) && MAY_FOLLOW.test(text.slice(end, end + 2));

/** __init__ and _some_name_ are names. */
const isName = (inside: string, sign: string, run: number) =>
  sign === '_' && /^\w*$/.test(inside) && (run > 1 || inside.includes('_'));

// ─── [a link](address) ─────────────────────────────────────────────────────────────────────────

function linkAt({ text, before, isWhole }: InlineContext): InlineMatch {
  if (/[\p{L}\p{N}_\])]$/u.test(before)) return undefined; // list[0](x)
  const end = text.indexOf(']');
  const label = text.slice(1, end === -1 ? text.length : end);
  if (label.includes('[') || end === 1) return undefined;
  if (end === -1 || end + 1 === text.length) return isWhole ? undefined : 'wait';
  if (text[end + 1] !== '(') return undefined;
  const length = endOfAddress(text, end + 2);
  if (length === undefined) return isWhole ? undefined : 'wait';
  const address = text.slice(end + 2, length - 1);
  const isAddress = text[length - 1] === ')' && /[./#:]/.test(address);
  return isAddress ? { length, mark: 'link', text: label, address } : undefined;
}

/** Behind the parenthesis that closes it, or at a blank. There may be other ones in an address. */
function endOfAddress(text: string, start: number) {
  let depth = 1;
  for (let at = start; at < text.length; at++) {
    if (text[at] === '(') depth++;
    if (text[at] === ')') depth--;
    if (depth === 0 || text[at] === ' ') return at + 1;
  }
  return undefined;
}
