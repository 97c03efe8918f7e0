// Chapter 24: the part of YAML that a SKILL.md may begin with. What is not known is refused, and never guessed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseFrontmatter } from '../chapters/24-more-than-tools/frontmatter.ts';

const read = (yaml: string) => parseFrontmatter(`---\n${yaml}\n---\nbody`).fields;

const known: [yaml: string, fields: unknown][] = [
  ['a: plain words', { a: 'plain words' }],
  ['a: x # a comment\n# another\nb: http://x.y/z#f', { a: 'x', b: 'http://x.y/z#f' }],
  ['a: one\n  two\n\n  three\nb: 1', { a: 'one two\nthree', b: 1 }],
  ['a: "x\\n\\u00e9 \\"q\\" # no comment"', { a: 'x\né "q" # no comment' }],
  ["a: 'it''s: fine'", { a: "it's: fine" }],
  ['a: "one\n  two\n\n  three"', { a: 'one two\nthree' }],
  ['a: |\n  one\n   two\n\n  three\n\nb: x', { a: 'one\n two\n\nthree\n', b: 'x' }],
  ['a: |-\n  one\n', { a: 'one' }],
  ['a: |+\n  one\n\nb: x', { a: 'one\n\n', b: 'x' }],
  ['a: >\n  one\n  two\n\n  three\n    more\n  four', { a: 'one two\nthree\n  more\nfour\n' }],
  ['a: >-\n  one\n  two', { a: 'one two' }],
  ['a:\n  b: 1\n  c:\n    d: x', { a: { b: 1, c: { d: 'x' } } }],
  ['a:\n- x\n- y: 1\n  z: 2\n-\n  - w', { a: ['x', { y: 1, z: 2 }, ['w']] }],
  ['a:\n  - - x\n    - y', { a: [['x', 'y']] }],
  [
    'a: [x, "y, z", Bash(git:*), [1], {b: c}]',
    { a: ['x', 'y, z', 'Bash(git:*)', [1], { b: 'c' }] },
  ],
  ['a: [x,\n  y, # why\n  z]\nb: {}', { a: ['x', 'y', 'z'], b: {} }],
  [
    'a: 1\nb: -2.50\nc: 0x1F\nd: 1e3\ne: 0o17\nf: 012',
    { a: 1, b: -2.5, c: 31, d: 1000, e: 15, f: 12 },
  ],
  ['a: true\nb: FALSE\nc: ~\nd: null\ne:', { a: true, b: false, c: null, d: null, e: null }],
  ['a: yes\nb: 2026-11-17\nc: 1.2.3\nd: "1"', { a: 'yes', b: '2026-11-17', c: '1.2.3', d: '1' }],
  ['"a b": 1\nio.x/y: 2', { 'a b': 1, 'io.x/y': 2 }],
  ['a: x\r\nb: y\r', { a: 'x', b: 'y' }],
];

test('what people write there is read as YAML 1.2 reads it', () => {
  for (const [yaml, fields] of known) assert.deepEqual(read(yaml), fields, yaml);
});

const unknown: [yaml: string, reason: RegExp][] = [
  ['a: &x 1\nb: *x', /begins with &.*line 2/],
  ['b: *x', /begins with \*/],
  ['a: !!str 1', /begins with !/],
  ['<<: x', /does not know: <</],
  ['? a\n: b', /neither a field/],
  ['a: b: c', /in a text without quotes.*line 2/],
  ['a: use it when:', /without quotes/],
  ['a: x\n  b: c', /without quotes/],
  ['a: x\nb:\tc', /a tab.*line 3/],
  ['a: 1\nb: 2\na: 3', /the field a twice.*line 4/],
  ['a:\n    b: 1\n  c: 2', /indented too far|belongs to nothing/],
  ['  a: 1\nb: 2', /belongs to nothing/],
  ['- a', /a list/],
  ['', /is empty/],
  ['# nothing', /is empty/],
  ['words', /neither a field/],
  ['a: .inf', /JSON cannot write/],
  ['a: [.nan]', /does not know/],
  ['a: [1, 2', /bracket that does not end/],
  ['a: [1, 2] 3', /behind a closed bracket/],
  ['a: {b}', /without a colon/],
  ['a: [- b]', /does not know/],
  ['a: "x', /quote that does not end/],
  ['a: "x" y', /behind the quote/],
  ['a: "\\q"', /escape that it does not know/],
  ['a: "x\\\n  y"', /backslash at the end/],
  ['a: |2\n  x', /begins with \|2/],
  ['a: |\n    x\n  y', /not indented alike/],
  ['a: - b', /begins with -/],
  ['a: @b', /begins with @/],
  ['a: `b', /begins with `/],
  ['%YAML 1.1', /neither a field/],
  ['1: x', /does not know: 1/],
  [`a: ${'['.repeat(50)}${']'.repeat(50)}`, /more than 20 levels/],
  [Array.from({ length: 50 }, (_, n) => `${' '.repeat(n)}a:`).join('\n'), /more than 20 levels/],
  [`a: ${'x'.repeat(70_000)}`, /more than 65536 characters/],
];

test('what it does not know it refuses, and says where', () => {
  for (const [yaml, reason] of unknown) assert.throws(() => read(yaml), reason, yaml.slice(0, 100));
});

test('it is between two lines of ---, the first of them the first of all', () => {
  assert.deepEqual(parseFrontmatter('\ufeff---  \r\na: 1\r\n---\r\nbody\r\n---\r\n'), {
    fields: { a: 1 },
    body: 'body\n---\n',
  });
  for (const text of [
    '',
    'a: 1',
    '\n---\na: 1\n---\n',
    '---\na: 1\n',
    '----\na: 1\n---\n',
    '--- a: 1\n---\n',
  ])
    assert.throws(() => parseFrontmatter(text), /---/, text);
});

test('a field called __proto__ is a field', () => {
  const fields = read('__proto__: {polluted: true}\na:\n  __proto__: 1');
  assert.deepEqual(Object.keys(fields), ['__proto__', 'a']);
  assert.equal(({} as any).polluted, undefined);
});

test('the longest and oddest that it takes comes to an end', () => {
  const shapes = [
    'a: "' + "'".repeat(65_000),
    'a: [' + '"x",'.repeat(16_000),
    'a:\n' + '- [\n'.repeat(16_000),
    'a: "x\n' + ' y\n'.repeat(21_000),
    'a: ' + ' '.repeat(65_000) + '#',
    'a: ' + '# '.repeat(32_000),
    'a: |\n' + ' \n'.repeat(32_000),
    "a: '" + "''".repeat(32_000),
    'a: {' + '{'.repeat(65_000),
  ];
  for (const yaml of shapes) {
    try {
      assert.equal(typeof read(yaml), 'object');
    } catch (error) {
      assert.match((error as Error).message, /^its frontmatter has /);
    }
  }
});
