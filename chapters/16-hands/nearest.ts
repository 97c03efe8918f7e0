// nearest.ts: "did you mean …?" for files, tools and flags.

const MAX_LENGTH = 64; // the cost grows with the product of the lengths, so only the beginning of a long word counts
const MAX_WORDS = 20_000;

/** The words that a slip of the keyboard could have turned into this one, the likeliest first. */
export function nearest(word: string, words: Iterable<string>, count = 3): string[] {
  const key = (text: string) => text.slice(0, MAX_LENGTH).toLowerCase();
  const wanted = key(word);
  const most = Math.max(Math.min(2, wanted.length - 1), Math.floor(wanted.length / 3)); // further is another word
  const found: { candidate: string; steps: number }[] = [];
  let seen = 0;
  for (const candidate of words) {
    if (++seen > MAX_WORDS) break;
    const steps = distance(wanted, key(candidate), most);
    if (steps <= most) found.push({ candidate, steps });
  }
  found.sort((a, b) => a.steps - b.steps); // keeps the order among equals
  return found.slice(0, count).map(({ candidate }) => candidate);
}

/** How many characters must be added, removed or changed (Levenshtein), or two neighbours swapped. Above
 *  `most` it is Infinity, found sooner. */
export function distance(a: string, b: string, most = Infinity): number {
  if (Math.abs(a.length - b.length) > most) return Infinity;
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, j) => j); // from nothing to each beginning of b
  for (let i = 0; i < a.length; i++) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++) {
      const change = row[j]! + (a[i] === b[j] ? 0 : 1);
      const isSwapped = i > 0 && j > 0 && a[i] === b[j - 1] && a[i - 1] === b[j];
      const swap = isSwapped ? before[j - 1]! + 1 : Infinity;
      next.push(Math.min(change, swap, row[j + 1]! + 1, next[j]! + 1));
    }
    if (Math.min(...next) > most) return Infinity;
    before = row;
    row = next;
  }
  return row[b.length]! <= most ? row[b.length]! : Infinity;
}

/** For what a person typed. `otherwise` is said where no word is near. */
export function nearestHint(
  word: string,
  words: Iterable<string>,
  otherwise: string,
  inWords = (close: string) => close,
): string {
  const [close] = nearest(word, words, 1);
  return close === undefined ? otherwise : `did you mean ${inWords(close)}?`;
}
