// Work that strangers have made long: `standstill.ts NAME`. Sends SIGINT to itself, twenty times if
// the work lasts, and prints as JSON how often it was heard before the work had ended; `ms` is the
// longest wait. One case for each process: so each of them has a thread to start. Without a name it
// prints the names.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { Roots } from '../../agent.ts';
import { glob, grep } from '../../chapters/16-hands/search.ts';
import { problemsFound } from '../../chapters/23-the-server-asks/schema.ts';
import { preparedArguments } from '../../chapters/28-a-thousand-tools/tool-arguments.ts';
import { findPlain, type PlainQuery } from '../../chapters/29-a-server/plain-search.ts';
import { CodeTree } from '../../chapters/29-a-server/tree.ts';

const folder = mkdtempSync(join(tmpdir(), 'standstill-'));
writeFileSync(join(folder, 'a.txt'), `${'a'.repeat(60)}!\n`);
for (let n = 0; n < 300; n++) writeFileSync(join(folder, `${n}${'ab'.repeat(110)}`), '');
const roots = new Roots(folder);
const here = roots.locate(folder);
const searching = { roots, isHidden: () => false, timeoutMs: 60_000 };
const tree = new CodeTree({ roots });
const plain = (query: PlainQuery, until: AbortSignal) => findPlain(tree, query, until, 60_000);

/** Each level has the one below it twice. */
const levels = Array.from({ length: 60 }, (_, n) => {
  const below = { $ref: `#/$defs/${n + 1}` };
  return [n, { allOf: [below, below] }];
});
const fanOut = { $ref: '#/$defs/0', $defs: Object.fromEntries(levels) };
const evil = Array.from({ length: 2000 }, (_, n) => [`^(a+)+b{${n}}$`, {}]);
const braces = `{${Array.from({ length: 70 }, (_, n) => `${'*a*b'.repeat(2)}${n}`).join()}}`;

const [, , name = ''] = process.argv;

const numbers = Array.from({ length: 2000 }, (_, n) => n);
const names = Array.from({ length: 10_000 }, (_, n) => `name${n}`);
const each = <T>(value: T) => Object.fromEntries(names.map((name) => [name, value]));

const cases: Record<string, (signal: AbortSignal) => unknown> = {
  'a schema that fans out': (signal) => problemsFound(fanOut, {}, signal),
  'patterns of a schema': (signal) =>
    problemsFound({ patternProperties: Object.fromEntries(evil) }, { ['a'.repeat(40)]: 1 }, signal),
  'the schema of arguments': (signal) => preparedArguments({ a: 'x' }, fanOut, signal),
  search_code: (signal) =>
    plain({ query: `^${'(a+)+'.repeat(4)}$`, regex: true, max_results: 9 }, signal),
  'search_code, .*? forty times': (signal) =>
    plain({ query: `${'.*?'.repeat(40)}x`, regex: true, max_results: 9 }, signal),
  grep: (signal) => grep(here, { pattern: '^(a+)+$' }, searching, signal),
  glob: (signal) => glob(here, { pattern: `${'*a*b'.repeat(30)}${braces}` }, searching, signal),
  'a glob with two stars': (signal) =>
    glob(here, { pattern: '*a*b**a*b*'.repeat(12) }, searching, signal),
  'an enum of 2,000 and 200 kB': (signal) =>
    problemsFound({ enum: numbers }, ['x'.repeat(200_000)], signal),
  '10,000 properties': (signal) => problemsFound({ properties: each({}) }, each(1), signal),
  '10,000 dependentRequired': (signal) =>
    problemsFound({ dependentRequired: each(['name0']) }, each(1), signal),
  '10,000 unevaluatedProperties': (signal) =>
    problemsFound({ properties: each({}), unevaluatedProperties: false }, each(1), signal),
};

if (name === '') {
  console.log(JSON.stringify(Object.keys(cases)));
  rmSync(folder, { recursive: true });
  process.exit();
}

const TIMES = 20;
const control = new AbortController();
let slowest = 0;
let heard = 0;
let isOver = false;
const end = () => {
  isOver = true;
};
let sentAt = performance.now();
const working = Promise.resolve(cases[name]!(control.signal)).then(end, end);
do {
  const hearing = once(process, 'SIGINT');
  process.kill(process.pid, 'SIGINT');
  await hearing;
  if (!isOver) heard++;
  slowest = Math.max(slowest, performance.now() - sentAt);
  await wait(10);
  sentAt = performance.now();
} while (!isOver && heard < TIMES);
control.abort();
await working;
console.log(JSON.stringify({ heard, ms: Math.round(slowest) }));
rmSync(folder, { recursive: true });
