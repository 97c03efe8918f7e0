// An answer in Markdown, as it comes, for a terminal: words wrapped, marks shown as what they mean.
// What is held back is the last word, a sign that may begin a mark until we know, and the first
// signs of a line. Code and tables go out as they are.

import { literalAt, markAt, SIGN, type MarkedText, type Mark } from './inline.ts';
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

/** The opening of a code block, with the rest of its line. */
function fenceIn(line: string): string {
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
  private paint?: MarkdownOptions['paint'];
  private paints = new Map<string, Paint>(); // one for each mixture of formats
  private state: 'start' | 'text' | 'raw' = 'start'; // of the line
  private pending = ''; // what came of the line, and is not decided upon
  private before = ''; // the last character of its text
  private formats: MarkdownStyle[] = []; // of the whole line: a heading is bold
  private fence = ''; // that code is in
  private isList = false; // what is indented belongs to an item
  private isCodeNext = true; // behind an empty line, what is indented is code

  constructor({ columns, paint }: MarkdownOptions) {
    this.rows = new WordWrap(columns);
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
    const out = this.finish();
    this.rows.restart();
    this.state = 'start';
    return out;
  }

  private goOn(text: string): string {
    this.pending += text;
    return this.work(false);
  }

  private endLine(): string {
    const isEmpty = this.state === 'start' && this.pending.trim() === '';
    const out = this.finish() + this.rows.endLine();
    this.state = 'start';
    if (isEmpty) this.isCodeNext = true;
    return out;
  }

  private finish(): string {
    return this.work(true) + this.rows.flush();
  }

  private work(isWhole: boolean): string {
    const start = this.state === 'start' ? this.begin(isWhole) : '';
    const text = this.pending;
    if (this.state === 'start' || text === '') return start;
    this.pending = '';
    if (this.state === 'raw') return start + text;
    if (!this.paint) return start + this.rows.add(text);
    return start + this.inline(text, this.formats, isWhole);
  }

  // ── The beginning of a line: what kind is it? ──

  private begin(isWhole: boolean): string {
    const line = this.pending.slice(0, MAX_START);
    const isKnown = isWhole || line.length === MAX_START;
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

  private goOnWithCode(line: string, isWhole: boolean): string {
    const [, fence = ''] = (isWhole && CLOSING.exec(line)) || [];
    if (fence.startsWith(this.fence)) {
      this.fence = '';
      this.isCodeNext = false;
      return this.fenceLine();
    }
    this.state = 'raw';
    return '';
  }

  private fenceLine(): string {
    const line = this.pending;
    this.pending = '';
    this.state = 'raw';
    return this.painted(['dim'])(line);
  }

  private beginLine(line: string, isWhole: boolean): string {
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
  private startRow(quote: string, lead: string, heading: string, item: string): string {
    const bars = this.paint ? quote.replace(/> ?/g, '│ ') : quote;
    const marker = this.paint ? item.replace(/^[-+*]/, '•') : item;
    const start = bars + blanks(lead) + heading + marker;
    const indent = bars + blanks(lead + heading + marker);
    return this.rows.begin(start, indent, this.painted(quote === '' ? [] : ['dim']));
  }

  // ── What is marked inside of a line ──

  /** What cannot be decided yet stays pending. */
  private inline(text: string, formats: MarkdownStyle[], isWhole: boolean): string {
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

  private marked({ mark, text, address }: MarkedText, formats: MarkdownStyle[]): string {
    const all = [...new Set([...formats, ...FORMATS[mark]])];
    if (mark === 'code') return this.write(text, all);
    this.before = '';
    const words = this.inline(text, all, true);
    if (address === undefined) return words;
    return text === address ? words : words + this.write(` (${address})`, formats);
  }

  private write(text: string, formats: MarkdownStyle[]): string {
    if (text === '') return '';
    this.before = /[^]$/u.exec(text)![0];
    return this.rows.add(text, this.painted(formats));
  }

  private painted(formats: MarkdownStyle[]): Paint {
    const key = formats.join();
    const known = this.paints.get(key);
    if (known) return known;
    const paint = (text: string) =>
      formats.reduce((painted, format) => this.paint?.(format, painted) ?? painted, text);
    this.paints.set(key, paint);
    return paint;
  }
}
