// lexicon.ts: text as a search sees it. Identifiers are taken apart and kept whole as well, endings
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

  /** Each two neighbours as one word: "digital ocean". */
  joined(text: string): string[] {
    const words = wordsIn(text.toLowerCase());
    return words.slice(1).map((second, n) => stemOf(words[n] + second));
  }

  private read(word: string) {
    return this.known.get(word) ?? this.learn(word);
  }

  private learn(word: string) {
    const parts = partsOf(word);
    const telling = parts.filter((part) => !STOP_WORDS.has(part));
    const learned = { stems: parts.map(stemOf), terms: telling.map(stemOf) };
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

function pairsOf(run: string) {
  if (!isUnspaced(run)) return partsOf(run);
  const characters = [...run];
  if (characters.length === 1) return characters;
  return characters.slice(1).map((second, n) => characters[n]! + second);
}

/** What no rule finds. */
const IRREGULAR = new Map(
  (
    'wrote:write written:write sent:send made:make built:build found:find ran:run said:say ' +
    'bought:buy paid:pay lost:lose kept:keep shown:show drawn:draw drew:draw chosen:choose ' +
    'chose:choose hidden:hide broken:break broke:break taken:take took:take given:give gave:give ' +
    'saw:see seen:see held:hold spent:spend told:tell people:person children:child ' +
    'indices:index vertices:vertex analyses:analysis criteria:criterion media:medium'
  )
    .split(' ')
    .map((pair) => pair.split(':') as [string, string]),
);

/** Light, and wrong for many words: what counts is that both sides get the same one. */
export function stemOf(word: string): string {
  if (word.length < 4 || !/^[a-z]+$/.test(word)) return word;
  return rootOf(inAmerican(IRREGULAR.get(word) ?? singular(word)));
}

function singular(word: string) {
  if (/.{2}ies$/.test(word)) return `${word.slice(0, -3)}y`;
  if (/(ss|x|ch|sh)es$/.test(word)) return word.slice(0, -2);
  return /[^sui]s$/.test(word) ? word.slice(0, -1) : word;
}

/** "colour" and "summarise" as "color" and "summarize". */
function inAmerican(word: string) {
  const withZ = word.replace(/(.{3}i|y)s(e|ed|ing|ation)$/, '$1z$2');
  return withZ.replace(/(.{3})our$/, '$1or');
}

function rootOf(word: string) {
  const verb = word.replace(/(.{3}t)ion$/, '$1').replace(/(.{6})ment$/, '$1');
  const before = verb.replace(/(ing|ed)$/, '');
  const isEnding = before !== verb && before.length > 2 && /[aeiouy]/.test(before);
  if (!isEnding) return withoutE(verb);
  if (/^[^aeiou][a-z]?[aeiou][^aeiouwxy]$/.test(before)) return `${before}e`; // moving: move
  return withoutE(before.length > 3 ? before.replace(/([bdgkmnprt])\1$/, '$1') : before);
}

/** "creat", because of "creating"; but a "plane" is not a "plan". */
function withoutE(word: string) {
  if (word.length < 5 || /^..[aeiou].e$/.test(word)) return word;
  return word.replace(/e$/, '');
}
