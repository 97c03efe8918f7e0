// words.ts: text as a search sees it. Identifiers are taken apart and kept whole as well, endings
// are cut off, and languages without blanks become pairs of characters.

/** Words that nearly every need has, and that tell no two tools apart. */
const STOP_WORDS = new Set(
  (
    'a an the of to in on at by for from with without and or not is are was were be been am do ' +
    'does did done have has had having i me my we us our you your it its this that these those ' +
    'there their they them he she his her what which who whom whose where when why how all any ' +
    'some each every everyone everybody can could should would will shall may might must if then ' +
    'than so as about into onto over under out up down off again more most much many very just ' +
    'only also one s t please want need let like here now use using used new'
  ).split(' '),
);

// Kana, Han and Hangul: no blanks between words.
const UNSPACED = '\\u3040-\\u30ff\\u3400-\\u9fff\\uac00-\\ud7af';
const RUNS = new RegExp(`[${UNSPACED}]+|[^${UNSPACED}]+`, 'gu');
const isUnspaced = (text: string) => new RegExp(`[${UNSPACED}]`, 'u').test(text);

/** Makes terms of text, and remembers each word that it has met: most come again and again. */
export class Lexicon {
  private known = new Map<string, { stems: string[]; terms: string[] }>();

  /** What is searched for: every word by its stem, without stop words. */
  terms(text: string): string[] {
    const found: string[] = [];
    for (const word of wordsIn(text)) found.push(...this.read(word).terms);
    return found;
  }

  /** The stems of all words, in their order. */
  stems(text: string): string[] {
    return wordsIn(text).flatMap((word) => this.read(word).stems);
  }

  private read(word: string) {
    return this.known.get(word) ?? this.learn(word);
  }

  private learn(word: string) {
    const parts = partsOf(word);
    const telling = parts.filter((part) => !STOP_WORDS.has(part));
    const learned = { stems: parts.map(stem), terms: telling.map(stem) };
    this.known.set(word, learned);
    return learned;
  }
}

function wordsIn(text: string): string[] {
  return text.normalize('NFKC').match(/[\p{L}\p{N}]+/gu) ?? [];
}

/** HubSpot is "hub", "spot" and "hubspot": a user may write it either way. */
function partsOf(word: string): string[] {
  if (isUnspaced(word)) return (word.match(RUNS) ?? []).flatMap(pairsOf);
  const plain = word.normalize('NFD').replace(/\p{M}/gu, ''); // café
  const parts = plain.match(/\p{Lu}+(?!\p{Ll})|\p{Lu}?\p{Ll}+|\p{N}+|\p{L}+/gu) ?? [plain];
  const small = parts.map((part) => part.toLowerCase());
  if (parts.length === 2 || parts.length === 3) small.push(plain.toLowerCase());
  return small;
}

function pairsOf(run: string): string[] {
  if (!isUnspaced(run)) return partsOf(run);
  const characters = [...run];
  if (characters.length === 1) return characters;
  return characters.slice(1).map((second, n) => characters[n]! + second);
}

/** Light, and wrong for many words: what counts is that both sides get the same one. */
export function stem(word: string): string {
  if (word.length < 4 || !/^[a-z]+$/.test(word)) return word;
  let root = word;
  if (/.{2}ies$/.test(root)) root = `${root.slice(0, -3)}y`;
  else if (/(ss|x|ch|sh)es$/.test(root)) root = root.slice(0, -2);
  else if (/[^sui]s$/.test(root)) root = root.slice(0, -1);
  const before = root.replace(/(ing|ed)$/, '');
  const isVerb = before !== root && before.length > 2 && /[aeiouy]/.test(before);
  if (isVerb) root = before.replace(/([bdgkmnprt])\1$/, '$1');
  return root.length > 4 ? root.replace(/e$/, '') : root;
}
