// vocabulary.ts: the words that a name is made of. `getHTTPResponse` answers to "the response of an
// HTTP request" once it is three words, and "closes" finds `closing` once both are `clos`.

import { stemOf } from '../28-a-thousand-tools/lexicon.ts';

const MAX_WORD = 40; // longer runs of letters are data, not words
const MAX_KNOWN = 200_000; // names that are remembered

/** What is a name in most languages. Letters of other scripts count, too. */
const NAME = /[\p{L}\p{N}_$]+/gu;
const ASCII_NAME = /[A-Za-z0-9_$]+/g;
const NOT_ASCII = /[^\x00-\x7f]/;

/** camelCase, PascalCase, snake_case, HTTPServer, utf8: at each change of kind a word begins. */
const PART = /\p{Lu}+(?!\p{Ll})|\p{Lu}?[\p{Ll}\p{Lo}\p{Lm}\p{M}]+|\p{N}+/gu;

function namesIn(text: string): string[] {
  return text.match(NOT_ASCII.test(text) ? NAME : ASCII_NAME) ?? [];
}

/** The words of a name, stemmed. One letter alone says nothing. */
function wordsOfName(name: string) {
  if (name.length > MAX_WORD * 4) return [];
  const parts = name.match(PART) ?? [];
  return parts
    .map((part) => stemOf(part.toLowerCase().slice(0, MAX_WORD)))
    .filter((word) => word.length > 1);
}

export function codeWords(text: string): string[] {
  return namesIn(text).flatMap(wordsOfName);
}

/** Splitting and stemming each name once makes the index several times faster: code repeats its
 *  names. */
export class Vocabulary {
  readonly numbers = new Map<string, number>(); // by word
  private known = new Map<string, number[]>(); // the words of a name, by the name
  readonly words: string[] = [];

  /** The numbers of the words in a text, with repetitions. */
  numbersIn(text: string): number[] {
    const found: number[] = [];
    for (const name of namesIn(text)) for (const number of this.ofName(name)) found.push(number);

    return found;
  }

  private ofName(name: string) {
    const known = this.known.get(name);
    if (known) return known;
    const numbers = wordsOfName(name).map((word) => this.add(word));
    if (this.known.size < MAX_KNOWN) this.known.set(name, numbers);
    return numbers;
  }

  private add(word: string) {
    const known = this.numbers.get(word);
    if (known !== undefined) return known;
    // A piece of a text keeps the whole text in memory. A copy does not.
    const copy = Buffer.from(word).toString();
    this.numbers.set(copy, this.words.length);
    return this.words.push(copy) - 1;
  }

  /** The names are only there to be quick. What is remembered of them is as large as the index. */
  forgetNames(): void {
    this.known.clear();
  }
}
