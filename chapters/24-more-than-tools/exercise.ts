// Judges exercise 24: what a person types behind the name of a prompt, and which arguments it means.

import type { Judge } from '../book.ts';

type Row = [
  what: string,
  typed: string,
  declared: string,
  wanted: Record<string, string> | 'an error',
  missing?: string[],
];

// "thing! style" declares two arguments, of which the first is required.
const ROWS: Row[] = [
  [
    'words go to the arguments in their order',
    'gravity Grimm',
    'thing! style',
    { thing: 'gravity', style: 'Grimm' },
  ],
  ['one word goes to the first argument', 'gravity', 'thing! style', { thing: 'gravity' }],
  [
    'what is in quotes is one word',
    '"two words" Grimm',
    'thing! style',
    { thing: 'two words', style: 'Grimm' },
  ],
  ['an argument can be named', 'thing=gravity', 'thing! style', { thing: 'gravity' }],
  [
    'a named one may come first, and is not asked for by the words behind it',
    'style=Grimm gravity',
    'thing! style',
    { style: 'Grimm', thing: 'gravity' },
  ],
  ['a value may hold an equals sign', 'thing=a=b', 'thing!', { thing: 'a=b' }],
  ['a value may be empty', 'style= gravity', 'thing! style', { style: '', thing: 'gravity' }],
  ['a named value may have blanks', 'thing="two words"', 'thing!', { thing: 'two words' }],
  [
    'a word with an equals sign that names no argument is a word',
    'a=b',
    'thing!',
    { thing: 'a=b' },
  ],
  [
    'a name that was given is a word the second time',
    'thing=a thing=b',
    'thing! style',
    { thing: 'a', style: 'thing=b' },
  ],
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
  ['if none is required, the last one has the text', 'a b c d', 'x y', { x: 'a', y: 'b c d' }],
  [
    'optional arguments before a required one have their words, too',
    'a b',
    'x y!',
    { x: 'a', y: 'b' },
  ],
  ['what is required and was not given is missing', '', 'thing! style', {}, ['thing']],
  ['what was named is not missing', 'style=x', 'thing! style', { style: 'x' }, ['thing']],
  ['an empty value was given', 'thing=', 'thing!', { thing: '' }],
  ['a word for a prompt without arguments is an error', 'gravity', '', 'an error'],
  ['a word too many when all are named is an error', 'thing=a b', 'thing!', 'an error'],
];

export const judge: Judge = async ({ load, expect }) => {
  const { argumentsFrom } = await load('chapters/24-more-than-tools/prompt-arguments.ts');
  for (const [what, typed, names, wanted, missing = []] of ROWS) {
    const declared = names
      .split(' ')
      .filter(Boolean)
      .map((name) => ({
        name: name.replace('!', ''),
        description: '',
        isRequired: name.endsWith('!'),
      }));
    const come = () => {
      try {
        const given = argumentsFrom(typed, declared);
        const left = given.missing.map(({ name }: { name: string }) => name);
        return { args: given.args, missing: left };
      } catch (error) {
        return (error as Error).message;
      }
    };
    const came = come();
    const text = (value: unknown) => JSON.stringify(value);
    const sorted = (args: object) => text(Object.entries(args).sort());
    if (wanted === 'an error') {
      await expect(
        `${what}: ${typed}`,
        'an error that names the word',
        text(came),
        () => typeof came === 'string' && came.includes(typed.split(' ').at(-1)!),
      );
      continue;
    }
    await expect(
      `${what}: ${typed || '(nothing)'}`,
      text({ args: wanted, missing }),
      text(came),
      () =>
        typeof came === 'object' &&
        sorted(came.args) === sorted(wanted) &&
        text(came.missing) === text(missing),
    );
  }
};
