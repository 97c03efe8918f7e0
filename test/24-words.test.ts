// Chapter 24, the small parts: addresses with holes, half an address, words behind the name of a prompt.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  argumentsFrom,
  formOf,
  shellWords,
  type Declared,
} from '../chapters/24-more-than-tools/prompt-arguments.ts';
import { expand, placeIn, variablesOf } from '../chapters/24-more-than-tools/template.ts';

// The examples of RFC 6570, levels 1 to 3, and what real servers have.
const VALUES = {
  var: 'value',
  hello: 'Hello World!',
  path: '/foo/bar',
  x: '1024',
  y: '768',
  empty: '',
  half: '50%',
  keys: 'ä',
};
const EXPANSIONS: [template: string, wanted: string][] = [
  ['{var}', 'value'],
  ['{hello}', 'Hello%20World%21'],
  ['{half}', '50%25'],
  ['O{empty}X', 'OX'],
  ['O{undef}X', 'OX'],
  ['{x,y}', '1024,768'],
  ['{x,hello,y}', '1024,Hello%20World%21,768'],
  ['?{x,empty}', '?1024,'],
  ['?{x,undef}', '?1024'],
  ['{+var}', 'value'],
  ['{+hello}', 'Hello%20World!'],
  ['{+half}', '50%25'],
  ['{+path}/here', '/foo/bar/here'],
  ['here?ref={+path}', 'here?ref=/foo/bar'],
  ['{+x,hello,y}', '1024,Hello%20World!,768'],
  ['{#var}', '#value'],
  ['{#x,hello,y}', '#1024,Hello%20World!,768'],
  ['{#path,x}/here', '#/foo/bar,1024/here'],
  ['X{.var}', 'X.value'],
  ['X{.x,y}', 'X.1024.768'],
  ['{/var}', '/value'],
  ['{/var,x}/here', '/value/1024/here'],
  ['{;x,y}', ';x=1024;y=768'],
  ['{;x,y,empty}', ';x=1024;y=768;empty'],
  ['{?x,y}', '?x=1024&y=768'],
  ['{?x,y,empty}', '?x=1024&y=768&empty='],
  ['?fixed=yes{&x}', '?fixed=yes&x=1024'],
  ['{&x,y,empty}', '&x=1024&y=768&empty='],
  ['{?undef}', ''],
  ['shop://{var}/{keys}', 'shop://value/%C3%A4'],
  ['no holes', 'no holes'],
  ['{var*}', 'value'],
  ['{}', '{}'],
];

test('holes are filled as RFC 6570 says', () => {
  for (const [template, wanted] of EXPANSIONS)
    assert.equal(expand(template, VALUES), wanted, template);
  assert.deepEqual(variablesOf('a://{x}{?y,z}/{x}'), ['x', 'y', 'z']);
  assert.equal(expand('{x}', { x: '\ud800' }), '%EF%BF%BD'); // half a character does not throw
  assert.equal(expand('{+x}', { x: 'a%20b%zz' }), 'a%20b%25zz'); // what is encoded stays so
});

test('half an address: in which hole is the cursor, and what is known already', () => {
  const two = 'shop://{dept}/{item}';
  const place = (
    name: string,
    value: string,
    others: object,
    before: string,
    after: string,
    isLast: boolean,
  ) => ({ name, value, others, before, after, isLast });
  assert.deepEqual(placeIn(two, 'shop://li'), place('dept', 'li', {}, 'shop://', '/', false));
  assert.deepEqual(placeIn(two, 'shop://'), place('dept', '', {}, 'shop://', '/', false));
  assert.deepEqual(
    placeIn(two, 'shop://light/la'),
    place('item', 'la', { dept: 'light' }, 'shop://light/', '', true),
  );
  assert.deepEqual(
    placeIn(two, 'shop://{dept}/{item}'),
    place('dept', '', {}, 'shop://', '/', false),
  );
  assert.deepEqual(
    placeIn(two, 'shop://a%20b/%'),
    place('item', '%', { dept: 'a b' }, 'shop://a%20b/', '', true),
  );
  assert.deepEqual(
    placeIn('a://x{?words}', 'a://x?words=l'),
    place('words', 'l', {}, 'a://x?words=', '', true),
  );
  assert.equal(placeIn(two, 'shop:'), undefined); // the template itself is offered
  assert.equal(placeIn(two, 'other://x'), undefined);
  assert.equal(placeIn('a://{x,y}', 'a://1'), undefined);
  assert.equal(placeIn('no://holes', 'no://holes'), undefined);
});

test('words as a shell has them, and what nothing closes is a letter', () => {
  const cases: [text: string, words: string[]][] = [
    ['a b', ['a', 'b']],
    ['  a\t b\n', ['a', 'b']],
    ['"a b" c', ['a b', 'c']],
    ["'a b'", ['a b']],
    ['a\\ b', ['a b']],
    ['x="a b"', ['x=a b']],
    ['"a \\" b"', ['a " b']],
    ["'a \\'", ['a \\']],
    ['""', ['']],
    ["it's", ["it's"]],
    ['"a b', ['"a', 'b']],
    ['a\\', ['a\\']],
    ['', []],
    ['ä "ö ü"', ['ä', 'ö ü']],
    ['a"b c"d', ['ab cd']],
  ];
  for (const [text, words] of cases) assert.deepEqual(shellWords(text), words, text);
  const long = `${'"'.repeat(2000)}${'\\'.repeat(2000)}`;
  assert.ok(shellWords(long.repeat(20)).length > 0); // and in no square of its length
});

test('arguments: named, in order, and the rest for the last that must be given', () => {
  const declared: Declared[] = [
    { name: 'thing', description: '', isRequired: true },
    { name: 'style', description: '', isRequired: false },
  ];
  assert.deepEqual(argumentsFrom('how does gravity work', declared).args, {
    thing: 'how does gravity work',
  });
  assert.deepEqual(argumentsFrom('gravity "two words"', declared).args, {
    thing: 'gravity',
    style: 'two words',
  });
  assert.deepEqual(
    argumentsFrom('style=x', declared).missing.map(({ name }) => name),
    ['thing'],
  );
  const odd = [{ name: '__proto__', description: '', isRequired: true }];
  const { args } = argumentsFrom('x', odd);
  assert.deepEqual(Object.entries(args), [['__proto__', 'x']]);
  assert.throws(() => argumentsFrom('x', []), /what is x\? it takes no arguments/);
  assert.equal(formOf(declared), 'it takes thing=…, and if you like style=…');
});
