// postings.ts: in which documents is a word? Numbers in one array, word after word, so that a
// million of them take four megabytes.

const LEAST = 2 ** 17; // numbers that may wait to be sorted in
const DOCUMENT_BITS = 12;

/** A posting is one number: the document in the upper 20 bits, below it what the caller wants. */
export const MAX_DOCUMENTS = 2 ** (32 - DOCUMENT_BITS);
export const documentIn = (posting: number) => posting >>> DOCUMENT_BITS;
export const postingFor = (document: number, rest: number) => {
  return ((document << DOCUMENT_BITS) | rest) >>> 0;
};

export class Postings {
  private starts: Uint32Array = new Uint32Array(1); // where those of each word begin
  private sorted: Uint32Array = new Uint32Array(0);
  private fresh: number[] = []; // word, posting, word, posting …
  private gone = new Set<number>(); // documents whose postings are still there

  add(word: number, posting: number): void {
    this.fresh.push(word, posting);
    if (this.fresh.length > Math.max(LEAST, this.sorted.length)) this.settle();
  }

  remove(document: number): void {
    this.gone.add(document);
  }

  of(word: number): Uint32Array {
    return this.sorted.subarray(this.starts[word] ?? 0, this.starts[word + 1] ?? 0);
  }

  /** Sorts what is new in among the rest and leaves out what is gone, in one pass over all: cheaper
   *  than to read a single file again. Returns the documents whose numbers are free now. */
  settle(): number[] {
    if (this.fresh.length === 0 && this.gone.size === 0) return [];
    const starts = this.count();
    const places = starts.slice();
    const sorted = new Uint32Array(starts.at(-1)!);
    this.each((word, posting) => {
      sorted[places[word]!++] = posting;
    });
    this.starts = starts;
    this.sorted = sorted;
    this.fresh = [];
    const free = [...this.gone];
    this.gone.clear();
    return free;
  }

  private count(): Uint32Array {
    let words = this.starts.length - 1;
    for (let at = 0; at < this.fresh.length; at += 2) words = Math.max(words, this.fresh[at]! + 1);
    const ends = new Uint32Array(words + 1);
    this.each((word) => ends[word + 1]!++);
    for (let word = 0; word < words; word++) ends[word + 1]! += ends[word]!;
    return ends;
  }

  private each(visit: (word: number, posting: number) => void): void {
    const isGone = (posting: number) => this.gone.size > 0 && this.gone.has(documentIn(posting));
    for (let word = 0; word + 1 < this.starts.length; word++) {
      for (const posting of this.of(word)) if (!isGone(posting)) visit(word, posting);
    }
    for (let at = 0; at < this.fresh.length; at += 2) {
      if (!isGone(this.fresh[at + 1]!)) visit(this.fresh[at]!, this.fresh[at + 1]!);
    }
  }
}
