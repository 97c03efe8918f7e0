// What is marked inside of a line of Markdown: `code`, *emphasis*, **bold**, [a link](address).
// In doubt a character is a character: a star may be a glob, a product or a pointer, an underscore
// part of a name.

export type Mark = 'code' | 'italic' | 'bold' | 'both' | 'link';
/** A marked text of so many characters. `'wait'`: it may become one, with what is still to come. */
export type MarkedText = { length: number; mark: Mark; text: string; address?: string };
type InlineMatch = MarkedText | 'wait' | undefined;
/** What is known: the text from a sign on, what is before it, and whether the line ends with it. */
type InlineContext = { text: string; before: string; isWhole: boolean };

/** No mark is longer, its signs included: what might be one is held back until we know. */
const MAX_MARKED = 400;
export const SIGN = /[`*_[\\]/;

export function markAt(place: InlineContext): InlineMatch {
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
export function literalAt(text: string, isWhole: boolean): string | 'wait' {
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
function runAt(text: string, at: number): number {
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
function endOfAddress(text: string, start: number): number | undefined {
  let depth = 1;
  for (let at = start; at < text.length; at++) {
    if (text[at] === '(') depth++;
    if (text[at] === ')') depth--;
    if (depth === 0 || text[at] === ' ') return at + 1;
  }
  return undefined;
}
