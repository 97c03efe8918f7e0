// exercise.ts: what is handed out: the program of a chapter with a hole in it.

import { join, relative } from 'node:path';
import { isFile, pad, read } from './files.ts';
import { SPINE, type Book, type Chapter, type Quotation } from './pages.ts';
import { isThere, linesOfAllSteps, withDemo, workFolder, writeProgram, type Line } from './program.ts';

/** The real file with one quotation taken out. `folder` is where a learner works on it. */
export type Exercise = { chapter: Chapter; title: string; quotation: Quotation; hints: string[]; folder: string };
/** What a judge has at hand: the learner's program, a record of the wire, and a way to say what was expected. */
export type Bench = {
  load: (file: string) => Promise<any>; // a module of the program under test, such as 'mcp.ts'
  see: (direction: string, message: unknown, serverName?: string) => void; // fits `onWire`
  expect: (what: string, wanted: string, came: unknown, isRight: RegExp | ((came: any) => boolean)) => Promise<void>;
};
export type Judge = (bench: Bench) => Promise<void>;

export function exerciseOf(book: Book, chapter: Chapter): Exercise | undefined {
  const quotation = chapter.quotations.find(({ words }) => words.includes('exercise'));
  if (!quotation) return undefined;
  const text = read(book.root, quotation.page);
  const title = /^## Exercise: (.*)$/m.exec(text)?.[1] ?? chapter.title;
  const hints = [...text.matchAll(/<summary>Hint \d<\/summary>\n([^]*?)<\/details>/g)].map(([, hint]) => hint!.trim());
  return { chapter, title, quotation, hints, folder: join(workFolder(book), pad(chapter.n)) };
}

/** The file with a hole: of the flagged quotation only the first and the last line are left. */
export function withHole(book: Book, exercise: Exercise): string {
  const { chapter: { n }, quotation: { runs, source }, title } = exercise;
  const indent = /^\s*/.exec(source[runs[0]!.at]!)![0] + '  ';
  return withInside(book, exercise, [`${indent}// Exercise ${n}: ${title}`, `${indent}throw new Error('${notSolved(n)}');`]);
}

export const notSolved = (n: number) => `exercise ${n} is not solved yet`;

/** The file with something else between the first and the last line of the flagged quotation. */
export function withInside(book: Book, { chapter: { n }, quotation }: Exercise, inside: string[]): string {
  const { file, runs, source } = quotation;
  const first = runs[0]!.at;
  const last = runs.at(-1)!.at + runs.at(-1)!.lines.length - 1;
  const whole = source.map((text, at): Line => ({ text, at, since: n, until: Infinity }));
  const all = SPINE.includes(file) ? linesOfAllSteps(book, file) : whole;
  const lines = all.filter((line) => isThere(line, n)).flatMap(({ text, at }) => {
    if (at > first && at < last) return [];
    return at === first ? [text, ...inside] : [text];
  });
  return lines.join('\n').trimEnd() + '\n';
}

/** The settings of the program, but what a chapter brings may be used by a later one, and a hole uses nothing. */
export function typesFor(book: Book, include = ['**/*.ts']): object {
  const settings = isFile(book.root, 'tsconfig.json') ? JSON.parse(read(book.root, 'tsconfig.json')) : {};
  const typeRoots = [join(book.root, 'node_modules', '@types')];
  const compilerOptions = { ...settings.compilerOptions, noUnusedLocals: false, noUnusedParameters: false, typeRoots };
  const exclude = ['**/demo*.ts']; // they run on several steps, and some of what they name comes later
  return { compilerOptions, include, exclude };
}

/** Writes the program of the chapter, with the exercise as it is handed out, or with what somebody wrote. */
export function writeExercise(
  book: Book,
  exercise: Exercise,
  folder = exercise.folder,
  solution = withHole(book, exercise),
): void {
  const { chapter, quotation } = exercise;
  const again = (script: string) => `npm --prefix ${JSON.stringify(relative(folder, book.root))} run ${script} --`;
  const scripts = { workshop: again('workshop'), chapter: again('chapter') }; // for whoever works in that folder
  writeProgram(book, chapter.n, folder, {
    ...withDemo(book, chapter),
    'package.json': JSON.stringify({ type: 'module', private: true, scripts }),
    'tsconfig.json': JSON.stringify(typesFor(book), null, 2) + '\n', // so that an editor shows no false red
    [quotation.file]: solution,
  });
}
