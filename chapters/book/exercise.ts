// exercise.ts: what is handed out: the program of a chapter with a hole in it.

import { basename, join, relative } from 'node:path';
import { isFile, read } from './files.ts';
import { isSpine, type Book, type Chapter, type Quotation } from './pages.ts';
import {
  asText,
  linesForLearner,
  withDemo,
  workFolder,
  writeProgram,
  type Line,
} from './program.ts';

/** The real file with one quotation taken out. `folder` is where a learner works on it. */
export type Exercise = {
  name: string; // 29; that of a chapter's page 2-serve.md is 29.2
  chapter: Chapter;
  title: string;
  quotation: Quotation;
  hints: string[];
  folder: string;
  judge: string; // exercise.ts, exercise-2.ts: in the chapter's folder
  wrong: string; // wrong.md, wrong-2.md
  right: string; // right.md, right-2.md
};
/** What a judge has at hand: the learner's program, a record of the wire, and a way to say what was expected. */
export type Bench = {
  load: (file: string) => Promise<any>; // a module of the program under test, such as 'mcp.ts'
  see: (direction: string, message: unknown, serverName?: string) => void; // fits `onWire`
  expect: (
    what: string,
    wanted: string,
    came: unknown,
    isRight: RegExp | ((came: any) => boolean),
  ) => Promise<void>;
};
export type Judge = (bench: Bench) => Promise<void>;

/** The last chapter has a project in the place of an exercise, and no code of its own to test. */
export const hasProject = (book: Book, { page }: Chapter): boolean =>
  read(book.root, page).includes('\n## The final project\n');

/** Each page of a chapter may have one. */
export function exercisesOf(book: Book, chapter: Chapter): Exercise[] {
  const marked = chapter.quotations.filter(({ words }) => words.includes('exercise'));
  return marked.map((quotation) => {
    const text = read(book.root, quotation.page);
    const title = /^## Exercise: (.*)$/m.exec(text)?.[1] ?? chapter.title;
    const hints = [...text.matchAll(/<summary>Hint \d<\/summary>\n([^]*?)<\/details>/g)].map(
      ([, hint]) => hint!.trim(),
    );
    const page = /^[2-9](?=-)/.exec(basename(quotation.page))?.[0]; // of README.md and 1-….md: none
    const name = page ? `${chapter.n}.${page}` : `${chapter.n}`;
    const folder = join(workFolder(book), name.padStart(page ? 4 : 2, '0'));
    const ending = page ? `-${page}` : '';
    return {
      name,
      chapter,
      title,
      quotation,
      hints,
      folder,
      judge: `exercise${ending}.ts`,
      wrong: `wrong${ending}.md`,
      right: `right${ending}.md`,
    };
  });
}

/** That of its first page. */
export const exerciseOf = (book: Book, chapter: Chapter): Exercise | undefined =>
  exercisesOf(book, chapter).find(({ name }) => name === `${chapter.n}`);

/** The file with a hole: of the flagged quotation only the first and the last line are left. */
export function withHole(book: Book, exercise: Exercise): string {
  const {
    name,
    quotation: { runs, source },
    title,
  } = exercise;
  const indent = /^\s*/.exec(source[runs[0]!.at]!)![0] + '  ';
  return withInside(book, exercise, [
    `${indent}// Exercise ${name}: ${title}`,
    `${indent}throw new Error('${notSolved(name)}');`,
  ]);
}

export const notSolved = (name: string) => `exercise ${name} is not solved yet`;

/** The file with something else between the first and the last line of the flagged quotation. */
export function withInside(
  book: Book,
  { chapter: { n }, quotation }: Exercise,
  inside: string[],
): string {
  const { file, runs, source } = quotation;
  const first = runs[0]!.at;
  const last = runs.at(-1)!.at + runs.at(-1)!.lines.length - 1;
  const whole = source.map((text, at): Line => ({ text, at, since: n, until: Infinity }));
  const all = isSpine(file) ? linesForLearner(book, file, n) : whole;
  const lines = all.flatMap(({ text, at }) => {
    if (at > first && at < last) return [];
    return at === first ? [text, ...inside] : [text];
  });
  return asText(lines);
}

/** The settings of the program, but what a chapter brings may be used by a later one, and a hole uses nothing. */
export function typesFor(book: Book, include = ['**/*.ts']): object {
  const settings = isFile(book.root, 'tsconfig.json')
    ? JSON.parse(read(book.root, 'tsconfig.json'))
    : {};
  const typeRoots = [join(book.root, 'node_modules', '@types')];
  const compilerOptions = {
    ...settings.compilerOptions,
    noUnusedLocals: false,
    noUnusedParameters: false,
    typeRoots,
  };
  // Demos run on several steps, and some of what they name comes later. A page has other types.
  const exclude = ['**/demo*.ts', '**/dom/*.ts'];
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
  const again = (script: string) =>
    `npm --prefix ${JSON.stringify(relative(folder, book.root))} run ${script} --`;
  const scripts = { workshop: again('workshop'), chapter: again('chapter') }; // for whoever works in that folder
  writeProgram(book, chapter.n, folder, {
    ...withDemo(book, chapter),
    'package.json': JSON.stringify({ type: 'module', private: true, scripts }),
    'tsconfig.json': JSON.stringify(typesFor(book), null, 2) + '\n', // so that an editor shows no false red
    [quotation.file]: solution,
  });
}
