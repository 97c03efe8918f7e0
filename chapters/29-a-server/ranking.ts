// ranking.ts: which of many small documents is a question about? BM25F: a word counts more the
// rarer it is, and more in a name than in a body; the tenth time it is there counts little.

import { Vocabulary, codeWords } from './vocabulary.ts';

/** What a document is made of. */
type DocumentFields = { name: string; holder: string; path: string; body: string };
type Ranked = { document: number; score: number };

type RankedField = { name: keyof DocumentFields; weight: number; shift: number; most: number };
/** In a posting: `shift` is where the count of a field is. More than 3 times in a name, or 63 in a
 *  body, makes no difference. */
const FIELDS: RankedField[] = [
  { name: 'name', weight: 12, shift: 10, most: 3 },
  { name: 'holder', weight: 4, shift: 8, most: 3 },
  { name: 'path', weight: 4, shift: 6, most: 3 },
  { name: 'body', weight: 1, shift: 0, most: 63 },
];
const COUNT = FIELDS.length;
/** A posting is one number: the document in the upper 20 bits, below it the counts of its fields. */
const DOCUMENT_BITS = 12;
const MAX_DOCUMENTS = 2 ** (32 - DOCUMENT_BITS);
const documentIn = (posting: number) => posting >>> DOCUMENT_BITS;
const SATURATION = 4; // k1: how soon one more time counts little
const LENGTH = 0.75; // b: how much a long field is held against it
const BEGINNING = 0.3; // dir finds directory, but counts less
const SHORTEST_BEGINNING = 3;
const COMMON = 0.5; // the weight of a word that says little
const MAX_QUERY_WORDS = 100;
const MAX_LENGTH = 0xffff;

/** English that is in every question, and in names such as isOpen and toString as well. */
const STOP_WORDS = new Set(
  (
    'the a an of to in for is it be by on and or with as that this if are ' +
    'from at not was will can'
  ).split(' '),
);

export class Ranking {
  private vocabulary = new Vocabulary();
  private postings: number[][] = []; // by word: where it is
  private lengths = new Uint16Array(COUNT * 64); // of each field of each document
  private sums: number[] = FIELDS.map(() => 0); // of the lengths of all
  private alive = 0;
  private next = 0;
  private gone = new Set<number>(); // documents whose postings are still there
  private free: number[] = []; // numbers of documents that are gone

  get size(): number {
    return this.alive;
  }

  /** Returns the document's number, which may have been that of one that is gone. */
  add(fields: DocumentFields): number {
    const document = this.free.pop() ?? this.next++;
    if (document >= MAX_DOCUMENTS) throw new Error('there is too much code for one index');
    if ((document + 1) * COUNT > this.lengths.length) this.grow();
    const counts = new Map<number, number>(); // by word
    for (const [n, field] of FIELDS.entries()) this.count(fields[field.name], n, document, counts);
    for (const [word, count] of counts) {
      this.postings[word] ??= [];
      this.postings[word].push(((document << DOCUMENT_BITS) | count) >>> 0);
    }
    this.alive++;
    return document;
  }

  private count(text: string, n: number, document: number, counts: Map<number, number>) {
    const { shift, most } = FIELDS[n]!;
    const words = this.vocabulary.numbersIn(text);
    const length = Math.min(words.length, MAX_LENGTH);
    this.lengths[document * COUNT + n] = length;
    this.sums[n]! += length;
    for (const word of words) {
      const before = counts.get(word) ?? 0;
      const isMost = ((before >>> shift) & most) === most;
      if (!isMost) counts.set(word, before + (1 << shift));
    }
  }

  private grow() {
    const longer = new Uint16Array(this.lengths.length * 2);
    longer.set(this.lengths);
    this.lengths = longer;
  }

  remove(document: number): void {
    this.gone.add(document);
    this.alive--;
    for (let n = 0; n < COUNT; n++) this.sums[n]! -= this.lengths[document * COUNT + n]!;
  }

  /** After documents were added or removed, and before the next search. */
  settle(): void {
    const isThere = (posting: number) => !this.gone.has(documentIn(posting));
    if (this.gone.size > 0) this.postings = this.postings.map((found) => found.filter(isThere));
    this.free.push(...this.gone);
    this.gone.clear();
    this.vocabulary.forgetNames();
  }

  /** The score of each document: 1 would be every word of the question, in every field. */
  scores(query: string): Float64Array {
    const scores = new Float64Array(this.next);
    const norms = this.sums.map((sum) => LENGTH / (sum / this.alive || 1));
    const { terms, unknown } = this.termsOf(query);
    let most = unknown * this.rarity(0);
    for (const [word, weight] of terms) {
      const found = this.postings[word]!;
      const value = weight * this.rarity(found.length);
      if (weight >= COMMON) most += value;
      for (const posting of found) {
        const often = this.frequency(posting, norms);
        scores[documentIn(posting)]! += (value * often) / (often + SATURATION);
      }
    }
    return most > 0 ? scores.map((score) => Math.min(1, score / most)) : scores;
  }

  private rarity(documents: number) {
    return Math.log(1 + (this.alive - documents + 0.5) / (documents + 0.5));
  }

  /** How often a word is there, where that is and how long it is being taken into account. */
  private frequency(posting: number, norms: number[]): number {
    let often = 0;
    for (let n = 0; n < COUNT; n++) {
      const { weight, shift, most } = FIELDS[n]!;
      const times = (posting >>> shift) & most;
      const length = this.lengths[documentIn(posting) * COUNT + n]!;
      if (times > 0) often += (weight * times) / (1 - LENGTH + length * norms[n]!);
    }
    return often;
  }

  /** The words of a question, and words of the code that are like them, with their weights. */
  private termsOf(query: string): { terms: Map<number, number>; unknown: number } {
    const words = codeWords(query).slice(0, MAX_QUERY_WORDS);
    const terms = new Map<number, number>();
    const add = (word: string, weight: number): boolean => {
      const number = this.vocabulary.numbers.get(word);
      if (number === undefined || !this.postings[number]?.length) return false;
      terms.set(number, Math.max(terms.get(number) ?? 0, weight));
      return true;
    };
    const distinct = [...new Set(words)];
    const missing = distinct.filter((word) => !add(word, STOP_WORDS.has(word) ? COMMON : 1));
    const pairs = words.map((word, n) => word + (words[n + 1] ?? ''));
    for (const pair of pairs) add(pair, 1); // "file system" may be filesystem in the code
    for (const word of distinct.filter(({ length }) => length >= SHORTEST_BEGINNING))
      for (const other of this.vocabulary.words) {
        const likeness = likenessOf(word, other);
        if (likeness > 0) add(other, BEGINNING * likeness);
      }

    return { terms, unknown: missing.length };
  }
}

/** One must be the beginning of the other; the nearer their lengths, the more alike. */
function likenessOf(word: string, other: string) {
  if (word.length === other.length || other.length < SHORTEST_BEGINNING) return 0;
  const isShorter = word.length < other.length;
  if (isShorter) return other.startsWith(word) ? word.length / other.length : 0;
  return word.startsWith(other) ? other.length / word.length : 0;
}

/** The highest scores above 0. Of equals, the first document. */
export function best(scores: Float64Array, count: number): Ranked[] {
  const found: Ranked[] = [];
  let least = 0;
  for (let document = 0; document < scores.length; document++) {
    const score = scores[document]!;
    if (score <= least) continue;
    found.push({ document, score });
    if (found.length < count * 2 + 64) continue;
    found.sort(byScore);
    found.length = count;
    least = found.at(-1)!.score;
  }
  return found.sort(byScore).slice(0, count);
}

const byScore = (one: Ranked, two: Ranked) => two.score - one.score || one.document - two.document;
