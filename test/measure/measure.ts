// npm run measure: how big the program is, and how far a reader has to follow it.
//
//   npm run measure                  all of it, and what of it misses its goal
//   npm run measure weight walk      some of it: weight, shapes, walk, modules, pages
//   npm run measure walk names       and the functions by name
//   npm run measure strict           exit code 1 if a goal is missed
//   npm run measure write            the figures into the README
//
// What a call costs in time is measured by `npm run bench`.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { wordsOf } from '../help/words.ts';
import { pageSizes, wordsAllowed } from '../../chapters/book/limits.ts';
import { readBook } from '../../chapters/book/pages.ts';
import { basenamesTwice, cyclesIn, exportedTwice } from './modules.ts';
import { writeFigures } from './readme.ts';
import { classesIn, functionsIn, type Shape, typesIn } from './shapes.ts';
import { beside, chapterFolders, parts, program, root, spine, tests, top } from './sources.ts';
import { weigh, weighAll, type Weight } from './tokens.ts';

type Cell = string | number;
type Goal = { what: string; now: number; goal: number; good?: number }; // at most that

const goals: Goal[] = [];
const aim = (what: string, now: number, goal: number, good?: number) =>
  goals.push({ what, now, goal, good });
const shown = (value: Cell) =>
  typeof value === 'number' ? value.toLocaleString('en', { maximumFractionDigits: 1 }) : value;

/** Numbers to the right, words to the left. */
function print(title: string, head: string[], rows: Cell[][]): void {
  console.log(`\n${title}`);
  const texts = [head, ...rows.map((row) => row.map(shown))];
  const widths = head.map((_, n) => Math.max(...texts.map((row) => row[n]?.length ?? 0)));
  const isNumber = head.map((_, n) => rows.some((row) => typeof row[n] === 'number'));
  const aligned = (cell: string, n: number) =>
    isNumber[n] ? cell.padStart(widths[n]!) : cell.padEnd(widths[n]!);
  for (const row of texts) console.log(`  ${row.map(aligned).join('  ')}`.trimEnd());
}

function tellWeight(): void {
  const row = (name: string, { lines, code, tokens, wide }: Weight): Cell[] => {
    return [name, lines, code, tokens, code === 0 ? 0 : tokens / code, wide];
  };
  const isOf = (pattern: RegExp) => program.filter(({ file }) => pattern.test(file));
  const head = ['', 'lines', 'of code', 'tokens', 'per line', 'over 100 columns'];
  print('Weight', head, [
    ...top.map((source) => row(source.file, weigh(source))),
    row('– together', weighAll(top)),
    ...parts.map((source) => row(source.file.replace('chapters/', '  '), weigh(source))),
    row(`– the ${parts.length} parts together`, weighAll(parts)),
    row('the spine: all these', weighAll(spine)),
    row('chapters 16 and later', weighAll(isOf(/^chapters\/(1[6-9]|[2-9]\d)-/))),
    row('the program', weighAll(program)),
    row('the book: machinery, demos, judges', weighAll(beside)),
    row('tests', weighAll(tests)),
  ]);
  for (const source of top) {
    const goal = source.file === 'mcp.ts' ? 1100 : 450;
    aim(`lines of ${source.file}`, weigh(source).lines, goal);
  }
  aim('tokens of mcp.ts and agent.ts', weighAll(top).tokens, 12_000);
  aim('tokens of the program', weighAll(program).tokens, 339_600, 310_000);
  aim('lines over 100 columns in the spine', weighAll(spine).wide, 0);
  const longTests = tests.filter((source) => weigh(source).lines > 1000);
  const long = longTests.map((source): Cell[] => [source.file, weigh(source).lines]);
  if (long.length > 0) print('Test files over 1,000 lines', ['', 'lines'], long);
  aim('test files over 1,000 lines', longTests.length, 0);
}

function tellShapes(): void {
  const largest = (shapes: Shape[]) => shapes.sort((a, b) => b.size - a.size).slice(0, 10);
  const rows = (shapes: Shape[]) =>
    shapes.map(({ name, file, line, size }) => [name, size, `${file}:${line}`]);
  const functions = largest(spine.flatMap(functionsIn));
  const classes = largest(spine.flatMap(classesIn));
  const types = largest(spine.flatMap(typesIn));
  print('The longest functions of the spine', ['', 'lines', ''], rows(functions));
  print('Its classes with the most fields', ['', 'fields', ''], rows(classes));
  print('Its types with the most fields', ['', 'fields', ''], rows(types));
  aim('lines of a function of the spine', functions[0]!.size, 40);
  aim('fields of a class of the spine', classes[0]!.size, 15);
  const record = recordOfServer();
  if (record) aim(`fields of ${record.name}, the manager's record`, record.size, 8);
}

/** What McpManager keeps for each server, however that is called. */
function recordOfServer(): Shape | undefined {
  const { text } = program.find(({ file }) => file === 'mcp.ts')!;
  const [, name] = /class McpManager [^]*?servers = new Map<string, (\w+)>/.exec(text) ?? [];
  return [...spine.flatMap(typesIn), ...spine.flatMap(classesIn)].find(
    (each) => each.name === name,
  );
}

async function tellWalks(withNames: boolean): Promise<void> {
  const { walkAll } = await import('./walk.ts');
  const walks = await walkAll();
  const count = (functions: Map<string, string[]>) => [...functions.values()].flat().length;
  const rows = walks.map(({ what, functions }) => [what, functions.size, count(functions)]);
  print('What passes how much of the program', ['', 'files', 'named functions'], rows);
  for (const { what, functions } of withNames ? walks : []) {
    console.log(`\n${what}`);
    for (const [file, names] of functions) console.log(`  ${file}: ${names.join(' ')}`);
  }
  const goal = (what: string, most: number, good: number) => {
    const { functions } = walks.find((walk) => walk.what.startsWith(what))!;
    aim(`named functions that ${what} passes`, count(functions), most, good);
  };
  goal('one manager.callTool', 57, 52);
  goal('one prompt', 158, 140);
}

function tellModules(): void {
  const cycles = cyclesIn(program);
  const files = chapterFolders.map((name): [string, number] => {
    const entries = readdirSync(join(root, 'chapters', name), { withFileTypes: true });
    return [name, entries.filter((entry) => entry.isFile()).length];
  });
  const most = files.sort(([, a], [, b]) => b - a).slice(0, 5);
  const basenames = basenamesTwice(program);
  const names = exportedTwice(program);
  const homes = ([name, files]: [string, string[]]) => `${name} ×${files.length}`;
  print(
    'Import cycles by value',
    ['', ''],
    cycles.map((cycle) => [cycle.join(' ↔ '), '']),
  );
  print('Files in a chapter’s folder, the most', ['', 'files'], most);
  print(
    'Names more than once',
    ['', '', ''],
    [
      ['files', basenames.length, basenames.slice(0, 10).map(homes).join(', ')],
      ['exports', names.length, names.slice(0, 10).map(homes).join(', ')],
    ],
  );
  aim('import cycles by value', cycles.length, 0);
  aim('files in a chapter’s folder', most[0]![1], 39);
}

function tellPages(): void {
  const sizes = pageSizes(readBook());
  const sum = (key: 'words' | 'lines' | 'blocks' | 'gaps') =>
    sizes.reduce((total, size) => total + size[key], 0);
  print(
    'Pages',
    ['', 'words', 'at most', 'lines of code', 'blocks', 'gaps'],
    [
      ...sizes.map((size) => [
        size.page.replace(/^chapters\/|\/README\.md$/g, ''),
        size.words,
        wordsAllowed(size),
        size.lines,
        size.blocks,
        size.gaps,
      ]),
      ['all', sum('words'), '', sum('lines'), sum('blocks'), sum('gaps')],
    ],
  );
  aim(
    'pages with more words than they may have',
    sizes.filter((size) => size.words > wordsAllowed(size)).length,
    0,
  );
}

const options = {
  names: { type: 'boolean', default: false },
  strict: { type: 'boolean', default: false },
  write: { type: 'boolean', default: false },
} as const;
const args = wordsOf(options);
const { values, positionals } = parseArgs({ args, allowPositionals: true, options });
const sections: Record<string, () => void | Promise<void>> = {
  weight: tellWeight,
  shapes: tellShapes,
  walk: () => tellWalks(values.names),
  modules: tellModules,
  pages: tellPages,
};
if (values.write) {
  writeFigures();
  process.exit();
}
const unknown = positionals.filter((name) => !sections[name]);
if (unknown.length > 0) {
  console.error(
    `There is no ${unknown.join(', ')}; there are ${Object.keys(sections).join(', ')}.`,
  );
  process.exit(2);
}
for (const [name, tell] of Object.entries(sections))
  if (positionals.length === 0 || positionals.includes(name)) await tell();

const isMissed = ({ now, goal }: Goal) => now > goal;
const rows = goals.map((each): Cell[] => {
  const { what, now, goal, good = '' } = each;
  return [what, now, goal, good, isMissed(each) ? 'missed' : 'kept'];
});
print('Goals', ['', 'now', 'at most', 'good', ''], rows);
console.log('\nWhat a call costs in time: npm run bench');
process.exit(values.strict && goals.some(isMissed) ? 1 : 0);
