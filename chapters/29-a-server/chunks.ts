// chunks.ts: cuts a file into pieces that a model can take, without a parser. Every line is in
// exactly one of them, and a function that fits stays whole.

import { extname } from 'node:path';
import { BLANK, CLOSER, COMMENT, lineFactsOf, INSIDE, type LineFacts } from './code/line-facts.ts';
import { definedIn, namesDefined } from './code/symbols.ts';

const MAX_SIZE = 1500; // characters that are not blank: an embedding model takes 512 tokens
const MIN_SIZE = 200;
const MAX_LEVELS = 100; // deeper is data, not code

/** Lines count from 1, and both ends belong to it. */
export type Chunk = {
  start_line: number;
  end_line: number;
  symbol: string; // what it defines: Shelf.add
  text: string;
};

/** The same, for an index: where it is, and the names in it. */
type ChunkPiece = {
  from: number; // counted from 0
  to: number; // behind the last
  size: number;
  holders: string[]; // what it is inside of: a class, a function
  names: string[]; // what it defines
};

export function codeChunks(path: string, text: string): Chunk[] {
  const { lines, pieces } = cutCode(path, text);
  return pieces.map((piece) => ({
    start_line: piece.from + 1,
    end_line: piece.to,
    symbol: symbolOf(piece),
    text: lines.slice(piece.from, piece.to).join('\n'),
  }));
}

export function symbolOf({ holders, names }: ChunkPiece): string {
  const own = names.filter((name) => !holders.includes(name));
  return [...holders, ...own.slice(0, 1)].join('.');
}

export function cutCode(path: string, text: string, min = MIN_SIZE) {
  const facts = lineFactsOf(text, extname(path).slice(1).toLowerCase());
  const pieces = new Cutter(facts, min).all();
  for (const piece of pieces) piece.names = namesDefined(facts, piece.from, piece.to);
  return { lines: facts.lines, pieces };
}

/** A run of lines that begins at a boundary. */
type Unit = { from: number; to: number; size: number; isComment: boolean };

/** Lines to cut, and what they are inside of. */
type LineRange = { from: number; to: number; kept: number; level: number; holders: string[] };

class Cutter {
  private facts: LineFacts;
  private min: number;

  constructor(facts: LineFacts, min: number) {
    this.facts = facts;
    this.min = min;
  }

  all(): ChunkPiece[] {
    const { length } = this.facts.lines;
    return length === 0 ? [] : this.range({ from: 0, to: length, kept: 0, level: 0, holders: [] });
  }

  /** The pieces of some lines. The first `kept` of them begin nothing: they are the head of what
   *  is cut here, which stays with its first part. */
  private range({ from, to, kept, level, holders }: LineRange): ChunkPiece[] {
    if (level > MAX_LEVELS) return this.byLines(from, to, holders);
    const units = this.withComments(this.unitsOf(from, to, kept));
    if (units.length === 1 && kept > 0) return this.byLines(from, to, holders);
    const pieces = units.flatMap((unit) => this.piecesOf(unit, level, holders));
    return this.joined(pieces);
  }

  private piecesOf({ from, to, size }: Unit, level: number, holders: string[]): ChunkPiece[] {
    if (size <= MAX_SIZE || to - from === 1) return [{ from, to, size, holders, names: [] }];
    const head = this.headOf(from, to);
    const name = definedIn(this.facts.lines[head - 1]!);
    const within = name ? [...holders, name] : holders;
    return this.range({ from, to, kept: head - from, level: level + 1, holders: within });
  }

  /** Behind the first line that is not a comment. */
  private headOf(from: number, to: number) {
    let at = from;
    while (at < to - 1 && this.facts.kind[at]! & (COMMENT | INSIDE | BLANK)) at++;
    return at + 1;
  }

  /** Units begin at the least indentation that there is. */
  private unitsOf(from: number, to: number, kept: number) {
    const { depth, kind } = this.facts;
    const first = from + kept;
    let least = Infinity;
    for (let n = first; n < to; n++)
      if (!(kind[n]! & (BLANK | INSIDE | CLOSER))) least = Math.min(least, depth[n]!);

    const units: Unit[] = [];
    let start = from;
    for (let n = Math.max(first, from + 1); n < to; n++) {
      const begins = depth[n]! <= least && !(kind[n]! & (BLANK | INSIDE | CLOSER));
      if (!begins) continue;
      units.push(this.unit(start, n));
      start = n;
    }
    units.push(this.unit(start, to));
    return units;
  }

  private unit(from: number, to: number): Unit {
    const isComment = (this.facts.kind[from]! & COMMENT) !== 0;
    return { from, to, size: this.sizeOf(from, to), isComment };
  }

  private sizeOf(from: number, to: number) {
    let size = 0;
    for (let n = from; n < to; n++) size += this.facts.size[n]!;
    return size;
  }

  /** A comment stays with what is below it if both fit, and no blank line is between them. */
  private withComments(units: Unit[]): Unit[] {
    const found: Unit[] = [];
    for (const unit of units) {
      const above = found.at(-1);
      const isNear = above?.isComment && !(this.facts.kind[unit.from - 1]! & BLANK);
      if (!isNear || above.size + unit.size > MAX_SIZE) found.push(unit);
      else {
        found.pop();
        found.push({ ...unit, from: above.from, size: above.size + unit.size });
      }
    }
    return found;
  }

  /** What is too small goes to the next one. Not "until it is full": then one more line at the top
   *  of a file would move every boundary below it. */
  private joined(pieces: ChunkPiece[]) {
    const found: ChunkPiece[] = [];
    for (const piece of pieces) {
      const before = found.at(-1);
      const isOpen = before !== undefined && !this.isEnough(before.size, piece);
      if (isOpen && before.size + piece.size <= MAX_SIZE) found.push(join(found.pop()!, piece));
      else found.push(piece);
    }
    const last = found.at(-1)!;
    const before = found.at(-2);
    if (before && last.size < this.min && before.size + last.size <= MAX_SIZE)
      found.splice(-2, 2, join(before, last));

    return found;
  }

  /** Is there enough to begin a new piece with this one? Of a table, where every line is tiny, only
   *  some lines may begin one, chosen by what is in them: wherever the table has grown, the same
   *  ones are chosen. */
  private isEnough(size: number, { from, size: next }: ChunkPiece) {
    if (size < this.min) return false;
    return next >= this.min / 4 || size >= this.min * 3 || isChosen(this.facts.lines[from]!);
  }

  /** No boundary is in sight: a table, a long string. */
  private byLines(from: number, to: number, holders: string[]) {
    const found: ChunkPiece[] = [];
    for (let n = from; n < to; n++) {
      const size = this.facts.size[n]!;
      const before = found.at(-1);
      const isFull = before && before.size >= MAX_SIZE / 3 && isChosen(this.facts.lines[n]!);
      if (before && !isFull && before.size + size <= MAX_SIZE) {
        before.size += size;
        before.to = n + 1;
      } else found.push({ from: n, to: n + 1, size, holders, names: [] });
    }
    return found;
  }
}

/** One line of four, always the same ones, and whether it ends with CRLF or not. */
function isChosen(line: string) {
  const length = Math.min(line.endsWith('\r') ? line.length - 1 : line.length, 200);
  let hash = 0;
  for (let i = 0; i < length; i++) hash = Math.imul(hash ^ line.charCodeAt(i), 0x01000193);
  return ((hash ^ (hash >>> 15)) & 3) === 0;
}

/** Where it is, is said by the larger one: the other may be an import, or the end of a file. */
function join(one: ChunkPiece, two: ChunkPiece): ChunkPiece {
  const { holders } = one.size > two.size ? one : two;
  return { ...one, to: two.to, size: one.size + two.size, holders };
}
