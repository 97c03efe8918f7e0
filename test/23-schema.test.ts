// Does a value fit a JSON Schema? A table of our own, and where they are at hand the official cases.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { problemsWith } from '../chapters/23-the-server-asks/schema.ts';
import { root } from './help/basics.ts';

const DRAFT_7 = 'http://json-schema.org/draft-07/schema#';
const AB = {
  properties: { a: { type: 'string' }, b: { type: 'integer' } },
  required: ['a'],
  additionalProperties: false,
};

/** A schema, a value, and the first problem: none where it fits. */
const CASES: [schema: unknown, value: unknown, problem?: string][] = [
  [true, 1],
  [{}, 1],
  [false, 1, ' is not allowed here'],
  [{ type: 'integer' }, 1.0],
  [{ type: 'integer' }, 1.5, ' should be an integer'],
  [{ type: ['string', 'null'] }, null],
  [{ type: 'number' }, '3', ' should be a number'],
  [{ enum: ['graz', 'linz'] }, 'gras', ' should be one of ["graz","linz"]; did you mean "graz"?'],
  [{ const: { a: 1, b: 2 } }, { b: 2, a: 1 }],
  [{ minLength: 2 }, '👩'.repeat(1), ' should have at least 2 characters, and has 1'],
  [{ multipleOf: 0.0001 }, 0.0075],
  [{ multipleOf: 2 }, 3, ' should be a multiple of 2'],
  [AB, { a: 'x' }],
  [AB, {}, 'a is missing'],
  [AB, { a: 1 }, 'a should be a string'],
  [AB, { a: 'x', bb: 1 }, 'bb is not allowed here; did you mean "b"?'],
  [{ required: ['a'] }, 3], // a keyword about objects says nothing of a number
  [{ required: ['toString'] }, {}, 'toString is missing'],
  [{ items: { type: 'integer' } }, [1, 'x'], '[1] should be an integer'],
  [{ prefixItems: [{ type: 'string' }], items: false }, ['x', 1], '[1] is not allowed here'],
  [
    { $schema: DRAFT_7, items: [{ type: 'string' }], additionalItems: false },
    ['x', 1],
    '[1] is not allowed here',
  ],
  [
    { uniqueItems: true },
    [
      { a: 1, b: 2 },
      { b: 2, a: 1 },
    ],
    ' should not have the same item twice',
  ],
  [{ $ref: '#/$defs/n', $defs: { n: { type: 'number' } } }, 'x', ' should be a number'],
  [{ $ref: 'https://elsewhere.example/x' }, 'x'], // never fetched, so not judged
  [{ $ref: '#' }, 1], // nor is what never ends
  [
    { anyOf: [{ type: 'string' }, { type: 'null' }] },
    1,
    ' fits none of 2 schemas (the nearest:  should be a string)',
  ],
  [{ oneOf: [{ type: 'number' }, { minimum: 0 }] }, 3, ' fits 2 schemas, and should fit one'],
  [
    { if: { properties: { a: { const: 1 } } }, then: { required: ['b'] } },
    { a: 1 },
    'b is missing',
  ],
  [
    { allOf: [{ properties: { a: true } }], unevaluatedProperties: false },
    { a: 1, b: 2 },
    'b is not allowed here',
  ],
  [{ pattern: '^(a+)+$' }, `${'a'.repeat(40)}b`], // it would take years, so it is not judged
  [{ pattern: '(' }, 'x'],
  [{ pattern: '^\\p{Letter}+$' }, 'é'],
];

test('a value fits a schema, or the first problem says where and what', () => {
  for (const [schema, value, problem = ''] of CASES) {
    const [first] = problemsWith(schema, value);
    assert.equal(
      first ? `${first.path} ${first.message}` : '',
      problem,
      JSON.stringify([schema, value]),
    );
  }
});

// They belong to JSON Schema, and not to this repository: ../shared/data has them where we work on it.
const official = join(root, '..', 'shared', 'data', 'json-schema-cases.json');
const skip = existsSync(official) ? false : `there is no ${official}`;

test('the official cases without remote references: all of both drafts', { skip }, () => {
  const { cases } = JSON.parse(readFileSync(official, 'utf8'));
  const isWrong = ({ schema, data, valid }: any) =>
    (problemsWith(schema, data).length === 0) !== valid;
  assert.deepEqual(
    cases.filter(isWrong).map((each: any) => `${each.draft} ${each.group}: ${each.case}`),
    [],
  );
  assert.equal(cases.length, 2019);
});
