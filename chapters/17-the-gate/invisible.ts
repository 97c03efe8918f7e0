// Invisible characters that are part of what is written, and where they are. Persian has a
// non-joiner inside of words, Hindi and Sinhala have joiners, a family of emoji is glued by three.
// In any other place the same characters hide something.

const scripts = (...names: string[]) =>
  names.map((name) => `\\p{Script_Extensions=${name}}`).join('');

/** Beside what cannot be seen itself, nothing is in its place. */
const SHOWN = '(?![\\p{Default_Ignorable_Code_Point}\\u{16fe4}])';

/** Scripts in which a joiner between two letters changes how they look. */
const JOINING = `${SHOWN}[${scripts(
  'Arabic',
  'Syriac',
  'Nko',
  'Mongolian',
  'Phags_Pa',
  'Adlam',
  'Devanagari',
  'Bengali',
  'Gurmukhi',
  'Gujarati',
  'Oriya',
  'Tamil',
  'Telugu',
  'Kannada',
  'Malayalam',
  'Sinhala',
  'Myanmar',
  'Khmer',
  'Tibetan',
  'Balinese',
  'Javanese',
  'Sundanese',
  'Meetei_Mayek',
  'Chakma',
  'Grantha',
)}]`;
/** Scripts without blanks between words: a zero-width space is where a row may end. */
const UNSPACED = `${SHOWN}[${scripts('Thai', 'Lao', 'Khmer', 'Myanmar', 'Tibetan', 'Javanese')}]`;
const RIGHT_TO_LEFT = `${SHOWN}[${scripts('Hebrew', 'Arabic', 'Syriac', 'Thaana', 'Nko')}]`;
const NEUTRAL = '[\\p{P}\\p{S}\\p{N}]{0,3}';
const LETTER = '\\p{L}\\p{M}{0,3}';
const PICTURE = '\\p{Extended_Pictographic}\\ufe0f?\\p{Emoji_Modifier}?';

// The flags of England, Scotland and Wales are a black flag and letters that cannot be seen. Any
// other text could be written with such letters, so these three are all.
const invisibly = (letters: string) =>
  [...letters].map((letter) => `\\u{${(0xe0000 + letter.charCodeAt(0)).toString(16)}}`);
const FLAGS = ['gbeng', 'gbsct', 'gbwls'].map((name) => [...invisibly(name), '\\u{e007f}']);
const inFlag = (tags: string[]) =>
  tags.map((tag, n) => {
    const before = tags.slice(0, n).join('');
    const after = tags.slice(n + 1).join('');
    return `(?<=\\u{1f3f4}${before})${tag}(?=${after})`;
  });

const PLACES = [
  '[\\u0600-\\u0605\\u06dd\\u070f\\u0890\\u0891\\u08e2]', // these can be seen, around numbers
  `(?<=${JOINING})[\\u200c\\u200d]`,
  `(?<=${PICTURE})\\u200d(?=\\p{Extended_Pictographic})`,
  `(?<=(?![\\0-\\x7f])\\p{Emoji})[\\ufe0e\\ufe0f]`, // drawn as text, or as a picture
  `(?<=[\\d#*])\\ufe0f(?=\\u20e3)`, // the key of a telephone
  `(?<=${SHOWN}\\p{Ideographic})[\\ufe00-\\ufe02\\u{e0100}-\\u{e01ef}]`, // of names, above all
  `(?<=[\\p{Sm}\\u3001\\u3002\\uff01\\uff0c\\uff0e\\uff1a\\uff1b\\uff1f${scripts('Myanmar', 'Phags_Pa')}])\\ufe00`,
  `(?<=${SHOWN}${scripts('Mongolian')})[\\u180b-\\u180f]`,
  `(?<=${LETTER}${LETTER})\\xad(?=${LETTER}\\p{L})`, // no syllable at an end is one letter
  `(?<=${UNSPACED})\\u200b(?=${UNSPACED})`,
  `(?<=${SHOWN}\\p{M})\\u034f(?=${SHOWN}\\p{M})`, // keeps marks in order, in Hebrew
  // A mark of direction moves a full stop, beside letters that run right to left. It cannot turn
  // letters round, as an override can: those are never text.
  `(?<=${RIGHT_TO_LEFT}${NEUTRAL})[\\u061c\\u200e\\u200f]`,
  `[\\u061c\\u200e\\u200f](?=${NEUTRAL}${RIGHT_TO_LEFT})`,
  ...FLAGS.flatMap(inFlag),
];
let inPlace: RegExp | undefined; // made when it is needed: that takes milliseconds
const ALWAYS = /[\xad\u180b-\u180d\u180f\u200c\u200d\ufe00-\ufe0f\u{e0100}-\u{e01ef}]/u;

/** How far from a character, at most, the above look for what is around it, in code units. */
export const REACH = 24;

/** Is this invisible character part of what is written around it? */
export function isInPlace(text: string, at: number): boolean {
  inPlace ??= new RegExp(PLACES.join('|'), 'uy');
  inPlace.lastIndex = at;
  return inPlace.test(text);
}

/** Joiners, soft hyphens and variants. They do nothing to a file, wherever in it they are. */
export const isTextInFile = (char: string) => ALWAYS.test(char);
