// Words in rows. Everything that is wrapped, is wrapped here: answers as they come, our own lines,
// and questions. A terminal breaks a row wherever it is full, in the middle of a word.

// ─── How much room a text takes ────────────────────────────────────────────────────────────────

// Rather too many than too few: a row that is too short does no harm.
const WIDE = new RegExp(
  '[\\u1100-\\u115f\\u2329\\u232a\\u2e80-\\ua4cf\\ua960-\\ua97f\\uac00-\\ud7a3\\uf900-\\ufaff' +
    '\\ufe10-\\ufe19\\ufe30-\\ufe6f\\uff00-\\uff60\\uffe0-\\uffe6\\u2630-\\u2637\\u268a-\\u268f' +
    '\\u{16fe0}-\\u{18fff}\\u{1aff0}-\\u{1b2ff}\\u{1d300}-\\u{1d376}' +
    '\\u{1f000}-\\u{3ffff}]|\\p{Emoji_Presentation}',
  'u',
);
const NO_ROOM = /[\p{Mn}\p{Me}\u200b-\u200f\u061c\ufe00-\ufe0e\u180b-\u180f\u{e0000}-\u{e0fff}]/u;
const AS_PICTURE = '\ufe0f';

/** Wide characters, such as Chinese ones and most emoji, take two columns. */
export function widthOf(char: string): number {
  return char >= '\u1100' && WIDE.test(char) ? 2 : 1;
}

/** The columns of what flows. Marks on a letter take none; one that a heart becomes a picture by
 *  adds one; each member of a family counts, because half of all terminals draw them side by side. */
export function columnsOf(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length;
  let sum = 0;
  for (const char of text)
    if (char === AS_PICTURE) sum += 1;
    else if (!NO_ROOM.test(char)) sum += widthOf(char);

  return sum;
}

let segmenter: Intl.Segmenter | undefined;
const MOST_MARKS = 30; // in one character: a million on one letter would have to be held

/** What a reader takes for one character: a letter with its marks, a family, a flag. */
export function graphemes(text: string): string[] {
  const found: string[] = [];
  for (const [, plain = '', other = ''] of text.matchAll(PLAIN_OR_OTHER)) {
    found.push(...plain);
    if (other !== '') found.push(...segmentsOf(other));
  }
  return found;
}

// Most text is plain, and the segmenter is slow. What is not plain may belong to the one before it.
const PLAIN_OR_OTHER = /([\t -~](?![^\t -~]))|([^][^\t -~]*)/gu;

const WINDOW = 256; // the time that a segmenter takes is the square of its text

function segmentsOf(text: string) {
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' });
  const found: string[] = [];
  for (let at = 0; at < text.length; ) {
    const part = text.slice(at, at + WINDOW);
    const segments = Array.from(segmenter.segment(part), ({ segment }) => segment);
    const isLastPart = at + WINDOW >= text.length;
    if (!isLastPart && segments.length > 1) segments.pop(); // it may go on
    for (const segment of segments) {
      const isSimple = segment.length <= MOST_MARKS && !isBlank(segment[0]!);
      found.push(...(isSimple ? [segment] : inPieces(segment)));
      at += segment.length;
    }
  }
  return found;
}

const isBlank = (char: string) => char === ' ' || char === '\t';

/** A blank is one, whatever is put on it. */
function inPieces(segment: string) {
  const chars = [...segment];
  const pieces = isBlank(chars[0]!) ? [chars.shift()!] : [];
  for (let at = 0; at < chars.length; at += MOST_MARKS)
    pieces.push(chars.slice(at, at + MOST_MARKS).join(''));
  return pieces;
}

// ─── Where a row may end ───────────────────────────────────────────────────────────────────────

const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\u3000-\u303f\uff00-\uff60]/u;
const NOT_FIRST =
  /^[\u3001\u3002\u300d\u300f\u3011\u3015\u3009\u300b\u30fb\u30fc\uff01\uff09\uff0c\uff0e\uff1a\uff1b\uff1f\uff3d\uff5d!),.:;?\]}’”…%]/u;
const NOT_LAST = /[\u300c\u300e\u3010\u3014\u3008\u300a\uff08\uff3b\uff5b([{‘“]$/u;

/** Chinese and Japanese have no blanks: a row may end behind a character, but for some signs. */
function mayEndBetween(before: string, after: string) {
  const isUnspaced = UNSPACED.test(before) || UNSPACED.test(after);
  return (isUnspaced && !NOT_FIRST.test(after) && !NOT_LAST.test(before)) || before === '\u200b';
}

export type Paint = (text: string) => string;
const asItIs: Paint = (text) => text;

const MIN_COLUMNS = 20;
const MAX_WORD = 1000;
const MAX_BLANK = 1000;
const TAB_COLUMNS = 8;
const tabAt = (column: number) => TAB_COLUMNS - (column % TAB_COLUMNS);

const isAddress = (word: string) => /^[("'<[]?https?:\/\/[!-~]*$/.test(word);

/** Lays words into rows, as they come. Only the last word is held: it may go on. A word that is
 *  longer than a row is left to the terminal, whose rows can be copied as one. Or it is cut, but for
 *  an address: then no row begins with anything but our indent. */
export class WordWrap {
  private columns: () => number;
  private isCut: boolean;
  private indent = ''; // of the rows that we begin
  private room = 0; // that it takes
  private column = 0;
  private isEmpty = true; // nothing but an indent is in this row
  private blank = ''; // before the word
  private word: { text: string; paint: Paint }[] = [];
  private wordColumns = 0;
  private wordLength = 0; // in code units: not every character takes a column
  private last = ''; // character of the word
  private isLong = false; // a word that is longer than a row is going on
  private tail = ''; // may be half of a character
  private tailPaint = asItIs;

  constructor(columns: () => number, { isCut = false } = {}) {
    this.columns = columns;
    this.isCut = isCut;
  }

  private get most() {
    return Math.max(MIN_COLUMNS, this.columns() - 1);
  }

  /** The line begins with this. The rows that its words overflow into begin with `indent`. */
  begin(start: string, indent: string, paint = asItIs): string {
    const room = columnsOf(indent);
    const fits = room <= this.most / 2;
    this.indent = fits ? paint(indent) : '';
    this.room = fits ? room : 0;
    this.column += columnsOf(start);
    return paint(start);
  }

  /** Text without line breaks. Gives back what can be written now. */
  add(text: string, paint = asItIs): string {
    const isSame = paint === this.tailPaint;
    let out = isSame ? '' : this.settle();
    const chars = graphemes(this.tail + text);
    this.tail = chars.pop() ?? '';
    this.tailPaint = paint;
    for (const char of chars) out += this.put(char, paint);
    return isBlank(this.tail) ? out + this.settle() : out;
  }

  /** What was held. */
  settle(): string {
    const char = this.tail;
    this.tail = '';
    return char === '' ? '' : this.put(char, this.tailPaint);
  }

  /** The end of the line, or of a part of it. */
  flush(): string {
    return this.settle() + this.place();
  }

  endLine(): string {
    const rest = this.flush();
    this.restart();
    return `${rest}\n`;
  }

  restart(): void {
    this.indent = '';
    this.room = 0;
    this.column = 0;
    this.isEmpty = true;
    this.blank = '';
    this.last = '';
    this.isLong = false;
  }

  private put(char: string, paint: Paint) {
    if (isBlank(char)) {
      const out = this.place();
      this.isLong = false;
      this.last = '';
      if (this.blank.length < MAX_BLANK) this.blank += char;
      return out;
    }
    const isBreak = this.last !== '' && mayEndBetween(this.last, char);
    const out = isBreak ? this.place() : '';
    if (this.isLong && !isBreak) return out + this.goOn(char, paint);
    this.isLong = false;
    const isWide = this.wordColumns + columnsOf(char) > this.most - this.room;
    const isTooLong = isWide || this.wordLength > MAX_WORD;
    if (!isTooLong) {
      this.append(char, paint);
      return out;
    }
    this.isLong = !this.isCut || isAddress(this.word[0]?.text ?? '');
    const full = this.isLong ? '' : this.place(); // and the rest begins a row
    this.append(char, paint);
    return out + full + (this.isLong ? this.place() : '');
  }

  private append(char: string, paint: Paint) {
    const part = this.word.at(-1);
    if (part?.paint === paint) part.text += char;
    else this.word.push({ text: char, paint });
    this.wordColumns += columnsOf(char);
    this.wordLength += char.length;
    this.last = char;
  }

  private goOn(char: string, paint: Paint) {
    this.last = char;
    this.column = (this.column + columnsOf(char)) % (this.most + 1);
    return paint(char);
  }

  /** Writes the word, in this row or in the next. */
  private place() {
    if (this.word.length === 0) return '';
    const gap = this.gap();
    const fits = this.column + gap.length + this.wordColumns <= this.most;
    const isHere = fits || this.isEmpty || this.isLong;
    const before = isHere ? gap : `\n${this.indent}`;
    const column = (isHere ? this.column + gap.length : this.room) + this.wordColumns;
    const text = this.word.map((part) => part.paint(part.text)).join('');
    this.column = column > this.most ? column % (this.most + 1) : column;
    this.isEmpty = false;
    this.blank = '';
    this.word = [];
    this.wordColumns = 0;
    this.wordLength = 0;
    return before + text;
  }

  private gap() {
    let gap = '';
    for (const char of this.blank)
      gap += char === '\t' ? ' '.repeat(tabAt(this.column + gap.length)) : char;
    return gap;
  }
}

const LIST_MARK = /^ *[!✓✗⊘■?•·│-] /u;
const TWO_COLUMNS = /^ *\S(?:.{0,40}?\S)? {2,}(?=\S)/;
const UNDER = '    '; // where the second column does not fit beside the first

/** The same lines, broken between words. The rows that we begin are indented: none of them can pass
 *  for a line of its own, whoever chose the words. */
export function wrap(text: string, columns: number): string {
  return text
    .split('\n')
    .map((line) => wrapLine(line, columns))
    .join('\n');
}

function wrapLine(line: string, columns: number) {
  if (columnsOf(line) < columns) return line;
  const lead = /^ */.exec(line)![0];
  const first = TWO_COLUMNS.exec(line)?.[0] ?? '';
  if (columnsOf(first) > columns / 2) {
    const under = lead + UNDER;
    const [above, below] = [first.trim(), line.slice(first.length)];
    return `${lay(lead, under, above, columns)}\n${lay(under, under, below, columns)}`;
  }
  const start = first || (LIST_MARK.exec(line)?.[0] ?? lead);
  const indent = start === lead ? `${lead}  ` : ' '.repeat(columnsOf(start));
  return lay(start, indent, line.slice(start.length), columns);
}

function lay(start: string, indent: string, text: string, columns: number) {
  const rows = new WordWrap(() => columns, { isCut: true });
  return rows.begin(start, indent) + rows.add(text) + rows.flush();
}
