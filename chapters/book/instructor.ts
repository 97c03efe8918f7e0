// instructor.ts: what INSTRUCTOR.md says of each exercise, as it is now. Its rules and a stretch goal are written by `fix`,
// so that they are those of the page; what people get stuck at is written by hand, and each exercise has rows for it.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { exercisesOf, type Exercise } from './exercise.ts';
import { isFile, read } from './files.ts';
import type { Book } from './pages.ts';
import { rulesOf, wrongSolutions } from './wrong.ts';

const PAGE = 'chapters/INSTRUCTOR.md';
const BLOCK = /(<!-- rules: .*-->\n)([^]*?)(\n<!-- end of rules -->)/;

const allExercises = (book: Book) => book.chapters.flatMap((chapter) => exercisesOf(book, chapter));

/** The first sentence of each rule, and a mistake that only the judge teaches, to be made on purpose. */
function rowOf(book: Book, exercise: Exercise): string {
  const rules = rulesOf(book, exercise).map(([first = ''], n) => `${n + 1}. ${first}`);
  const wrong = wrongSolutions(book, exercise);
  const goal = wrong.findLast(({ rule }) => rule === 'taught') ?? wrong.at(-1);
  const cells = [`${exercise.name} ${exercise.title}`, rules.join(' '), goal?.mistake ?? ''];
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}

function wanted(book: Book): string {
  const rows = allExercises(book).map((exercise) => rowOf(book, exercise));
  const table = [
    '| exercise | its rules, in short | now make it fail with |',
    '|---|---|---|',
    ...rows,
  ];
  return read(book.root, PAGE).replace(
    BLOCK,
    (_, begin, _old, end) => `${begin}${table.join('\n')}${end}`,
  );
}

export function problemsOfInstructor(book: Book): string[] {
  if (!isFile(book.root, PAGE)) return []; // a book of a test
  const text = read(book.root, PAGE);
  const stuck = text.slice(text.indexOf('## Where people get stuck'));
  const unnamed = allExercises(book).filter(({ name, title }) => {
    const isRow = (line: string) => line.startsWith(`| ${name} `) && line.includes(title);
    return !stuck.split('\n').some(isRow);
  });
  return [
    ...(BLOCK.test(text) ? [] : [`${PAGE}:1: there is no place for the rules: <!-- rules: … -->`]),
    ...(wanted(book) === text ? [] : [`${PAGE}:1: rules have changed (npm run book fix)`]),
    ...unnamed.map(({ name, title }) => `${PAGE}:1: nobody gets stuck at ${name} ${title}?`),
  ];
}

export function fixInstructor(book: Book): void {
  if (isFile(book.root, PAGE)) writeFileSync(join(book.root, PAGE), wanted(book));
}
