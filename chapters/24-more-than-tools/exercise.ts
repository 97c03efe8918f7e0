// Judges exercise 24: what a person types behind the name of a prompt, and which arguments it means.
// In the end lines and prompts are put together at random.

import { randomInt, randomUUID } from 'node:crypto';
import type { Judge } from '../book.ts';

type Values = Record<string, string>;
type Row = [
  what: string,
  typed: string,
  declared: string,
  wanted: Values | 'an error',
  missing?: string[], // if that is what the row is about
];
type Declared = { name: string; description: string; isRequired: boolean };

// "thing! style" declares two arguments, of which the first is required.
const ROWS: Row[] = [
  // Named words.
  ['an argument can be named', 'thing=gravity', 'thing! style', { thing: 'gravity' }],
  ['so can the second one alone', 'style=Grimm', 'thing style', { style: 'Grimm' }],
  ['a named value may have blanks', 'thing="two words"', 'thing!', { thing: 'two words' }],
  ['a value may hold an equals sign', 'thing=a=b', 'thing!', { thing: 'a=b' }],
  ['also at its end', 'thing=a=', 'thing!', { thing: 'a=' }],
  ['a value may be empty', 'style= thing=x', 'thing! style', { style: '', thing: 'x' }],
  [
    'a plain word goes to one that has no value yet',
    'thing=x gravity',
    'thing! style',
    { thing: 'x', style: 'gravity' },
  ],
  ['a word that names no argument is a plain one', 'a=b', 'thing!', { thing: 'a=b' }],
  ['also if its name only begins like one', 'thin=b', 'thing!', { thing: 'thin=b' }],
  ['also if it is longer', 'things=b', 'thing!', { thing: 'things=b' }],
  ['also if it has a capital', 'Thing=b', 'thing!', { thing: 'Thing=b' }],
  ['also if there is no name before the equals sign', '=b', 'thing!', { thing: '=b' }],
  ['the name of an argument alone is a plain word', 'style', 'thing! style', { thing: 'style' }],
  [
    'a name that has its value is a plain word the second time',
    'thing=a thing=b',
    'thing! style',
    { thing: 'a', style: 'thing=b' },
  ],
  [
    'also if that value is empty',
    'thing= thing=b',
    'thing! style',
    { thing: '', style: 'thing=b' },
  ],
  [
    'a named word counts first, before the plain words behind it',
    'style=Grimm gravity',
    'thing! style',
    { style: 'Grimm', thing: 'gravity' },
  ],
  [
    'a named word counts first, also at the end of the line',
    'gravity thing=lift',
    'thing! style',
    { thing: 'lift', style: 'gravity' },
  ],

  // Plain words.
  [
    'plain words go to the arguments in their order',
    'gravity Grimm',
    'thing! style',
    { thing: 'gravity', style: 'Grimm' },
  ],
  ['one word goes to the first argument', 'gravity', 'thing! style', { thing: 'gravity' }],
  ['one word goes to the first argument, also if it is an optional one', 'a', 'x y!', { x: 'a' }],
  [
    'what is in quotes is one word',
    '"two words" Grimm',
    'thing! style',
    { thing: 'two words', style: 'Grimm' },
  ],
  ['each has one, if there are as many', 'a b c', 'x! y! z', { x: 'a', y: 'b', z: 'c' }],
  ['the one in the middle has its value', 'y=b a c', 'x y! z', { x: 'a', y: 'b', z: 'c' }],

  // A text.
  [
    'too many words are one text, and the last required argument has it',
    'how does gravity work',
    'thing! style',
    { thing: 'how does gravity work' },
  ],
  [
    'before that argument each one has its word',
    'en how does it work',
    'language! thing! style',
    { language: 'en', thing: 'how does it work' },
  ],
  [
    'before that argument each one has its word, also an optional one',
    'en how does it work',
    'language thing! style more',
    { language: 'en', thing: 'how does it work' },
  ],
  [
    'what is required and named takes no text: the last one without a value does',
    'thing=x tell me more',
    'language! thing! style',
    { language: 'tell me more', thing: 'x' },
  ],
  ['the first word too many makes it a text', 'a b c', 'x! y', { x: 'a b c' }],
  ['if all are optional, the last one has the text', 'a b c d', 'x y', { x: 'a', y: 'b c d' }],
  [
    'if all that are left are optional, the last one of them has the text',
    'x=a b c d',
    'x! y z',
    { x: 'a', y: 'b', z: 'c d' },
  ],

  // What is left over, and what is not there.
  ['a word for a prompt without arguments is an error', 'gravity', '', 'an error'],
  ['a word too many when all are named is an error', 'thing=a Grimm', 'thing!', 'an error'],
  ['a second value for the only argument is an error', 'thing=a thing=b', 'thing!', 'an error'],
  ['no word for a prompt without arguments is none', '', '', {}],
  ['what is required and has no value is missing', '', 'thing! style', {}, ['thing']],
  ['all that is missing, in order', 'y=b', 'x! y! z! w', { y: 'b' }, ['x', 'z']],
  ['an empty value is a value', 'thing=', 'thing!', { thing: '' }, []],
  ['an optional one is not missing', 'thing=a', 'thing! style', { thing: 'a' }, []],
  ['if all have a value, none is missing', 'a b c', 'x! y! z', { x: 'a', y: 'b', z: 'c' }, []],

  // Names that every object has.
  ['an argument may be called like a method', 'a', 'constructor! x', { constructor: 'a' }],
  ['and is missing, if it is not given', 'x=a', 'toString! x', { x: 'a' }, ['toString']],
];

const text = (value: unknown) => JSON.stringify(value);
const sorted = (args: object) => text(Object.entries(args).sort());

export const judge: Judge = async ({ load, see, expect }) => {
  const { argumentsFrom } = await load('chapters/24-more-than-tools/prompt-arguments.ts');

  const come = (typed: string, declared: Declared[]) => {
    const form = declared.map(({ name, isRequired }) => (isRequired ? `${name}!` : name));
    see('out', `${typed || '(nothing)'}, for ${form.join(' ') || 'no arguments'}`);
    try {
      const { args, missing } = argumentsFrom(typed, declared);
      return { args, missing: missing.map(({ name }: Declared) => name) as string[] };
    } catch (error) {
      return error instanceof Error ? error : new Error(`thrown was ${text(error)}`);
    }
  };
  const isAsWanted = (came: ReturnType<typeof come>, args: Values, missing?: string[]) =>
    !(came instanceof Error) &&
    sorted(came.args) === sorted(args) &&
    (missing === undefined || text(came.missing) === text(missing));

  for (const [what, typed, form, wanted, missing] of ROWS) {
    const came = come(typed, declaredIn(form));
    const title = `${what}: ${typed || '(nothing)'}`;
    const shown = came instanceof Error ? came : text(came);
    if (wanted === 'an error')
      await expect(title, 'an error that names the word', shown, () => {
        const last = typed.split(' ').at(-1)!;
        return came instanceof Error && came.message.includes(last);
      });
    else
      await expect(title, text({ args: wanted, missing }), shown, () =>
        isAsWanted(came, wanted, missing),
      );
  }
  const proto = come('a', declaredIn('__proto__! x'));
  await expect(
    'an argument may even be called __proto__: a',
    'its value',
    proto instanceof Error ? proto : text(Object.entries(proto.args)),
    (shown) => shown === text([['__proto__', 'a']]),
  );
  const word = randomUUID();
  await expect(
    'the error names the word that was typed',
    `an error with ${word} in it`,
    come(word, []),
    (came) => came instanceof Error && came.message.includes(word),
  );

  const odd: string[] = [];
  for (let n = 0; n < 1000 && odd.length < 3; n++) {
    const declared = someArguments();
    const words = someWords(declared);
    const blanks = () => ' '.repeat(1 + randomInt(2));
    const typed = words.map((each) => blanks() + asTyped(each)).join('') + blanks();
    const wanted = meant(words, declared);
    const came = come(typed, declared);
    const isRight = wanted
      ? isAsWanted(came, wanted.args, wanted.missing)
      : came instanceof Error && words.some((each) => came.message.includes(each));
    if (!isRight) odd.push(`${typed}: ${came instanceof Error ? came.message : text(came)}`);
  }
  await expect('lines and prompts at random', 'what the rules say', odd, () => odd.length === 0);
};

function declaredIn(form: string): Declared[] {
  const names = form.split(' ').filter(Boolean);
  return names.map((name) => ({
    name: name.replace('!', ''),
    description: '',
    isRequired: name.endsWith('!'),
  }));
}

const NAMES = ['thing', 'style', 'city', 'x', 'language', 'a-b', 'c++', 'a.b', 'ü'];
const some = <T>(most: number, make: () => T): T[] =>
  Array.from({ length: randomInt(most + 1) }, make);
const one = <T>(list: T[]): T => list[randomInt(list.length)]!;

function someArguments(): Declared[] {
  const names = [...NAMES].sort(() => randomInt(3) - 1).slice(0, randomInt(5));
  return names.map((name) => ({ name, description: '', isRequired: randomInt(2) === 1 }));
}

function someWords(declared: Declared[]): string[] {
  const names = [...declared.map(({ name }) => name), one(NAMES)];
  const value = () => one(['', 'b', 'two words', 'c=d', '7']);
  return some(6, () => (randomInt(3) === 0 ? `${one(names)}=${value()}` : `w${randomInt(1000)}`));
}

const asTyped = (word: string) => (word.includes(' ') ? `"${word}"` : word);

/** The rules, one after the other; undefined where a word is left. */
function meant(words: string[], declared: Declared[]) {
  const values = new Map<string, string>();
  const plain: string[] = [];
  for (const word of words) {
    const [name = ''] = word.split('=', 1);
    const isOpen = declared.some((each) => each.name === name) && !values.has(name);
    if (word.includes('=') && isOpen) values.set(name, word.slice(name.length + 1));
    else plain.push(word);
  }
  const open = declared.filter(({ name }) => !values.has(name));
  if (plain.length > 0 && open.length === 0) return undefined;
  const required = open.filter(({ isRequired }) => isRequired);
  const taker = plain.length > open.length ? (required.at(-1) ?? open.at(-1)) : undefined;
  for (const argument of open) {
    const taken = plain.splice(0, argument === taker ? plain.length : 1);
    if (taken.length > 0) values.set(argument.name, taken.join(' '));
  }
  const missing = declared.filter(({ name, isRequired }) => isRequired && !values.has(name));
  return { args: Object.fromEntries(values), missing: missing.map(({ name }) => name) };
}
