// exercises.ts: exercises as pages of the site: the program of the chapter, and its unchanged judge, in
// workers. Which ones run there was found by running them, with all wrong solutions (npm run wrong).

import { buildSync, transformSync } from 'esbuild';
import { join, posix } from 'node:path';
import { installed } from '../../../test/help/installed.ts';
import { exercisesOf, withHole, withInside, type Exercise } from '../exercise.ts';
import { linesOf, read } from '../files.ts';
import { root, type Book } from '../pages.ts';
import { filesOfProgram } from '../program.ts';
import { wholeFunction } from '../workshop.ts';

/** The others ask for what a page has not: process groups, signals and held pipes (1, 5, 11), a file
 *  system with links and working folders (12, 14, 16, 17), sockets (18, 20, 21, 25, 29), a terminal (19). */
export const IN_PAGE = [
  ...['2', '3', '4', '6', '7', '8', '9', '10', '13', '15'],
  ...['22', '23', '24', '26', '27', '28', '28.2', '29.2', '30', '33'],
];

/** What a page knows of its exercise. */
export type PageExercise = {
  name: string;
  file: string; // where the learner's lines are
  before: string; // of it, down to the first line of the quotation
  after: string; // from its last line on
  start: string; // what is handed out between them
  ours: string;
  judge: string;
  modules: Record<string, string>; // all else that is loaded, each as the body of a function
};

const POLYFILLS = ['buffer@6.0.3', 'events@3.3.0', 'path-browserify@1.0.1'];
const SUCRASE = 'sucrase@3.35.1';

/** By name: a page and its data for each exercise, and the script that they share. */
export async function exerciseFiles(book: Book): Promise<Map<string, string>> {
  const files = new Map([['exercise.js', sharedScript()]]);
  for (const exercise of exercisesInPage(book)) {
    const name = `exercise-${exercise.name}`;
    files.set(`${name}.html`, pageOf(book, exercise));
    files.set(`${name}.js`, `var EXERCISE = ${JSON.stringify(dataOf(book, exercise))};\n`);
  }
  return files;
}

export const exercisesInPage = (book: Book): Exercise[] =>
  book.chapters
    .flatMap((chapter) => exercisesOf(book, chapter))
    .filter(({ name }) => IN_PAGE.includes(name));

function pageOf(book: Book, { name, title, chapter, quotation: { file } }: Exercise): string {
  const words: Record<string, string> = {
    NAME: name,
    TITLE: title,
    FILE: file,
    CHAPTER: `${chapter.n}. ${chapter.title}`,
    PAGE: `${posix.basename(chapter.folder)}.html`,
  };
  const page = read(book.root, 'chapters/book/site/exercise.html');
  return page.replace(/\{(\w+)\}/g, (whole, word) => escaped(words[word]) ?? whole);
}

const escaped = (text?: string) =>
  text?.replace(/[&<>"]/g, (each) => `&#${each.charCodeAt(0)};`).replace(/`([^`]*)`/g, '$1');

// ─── Scripts ────────────────────────────────────────────────────────────────────────────────────

function sharedScript(): string {
  const packages = join(installed(SUCRASE, ...POLYFILLS), 'node_modules');
  const runtime = bundled(packages, 'runtime.ts', 'runtime');
  const page = bundled(packages, 'exercise-page.ts', 'exercise', {
    RUNTIME: JSON.stringify(runtime),
  });
  return `${page}exercise.begin();\n`;
}

function bundled(packages: string, file: string, globalName: string, define = {}): string {
  const { outputFiles } = buildSync({
    entryPoints: [join(root, 'chapters/book/dom', file)],
    bundle: true,
    write: false,
    format: 'iife',
    globalName,
    platform: 'browser',
    target: 'es2022',
    minifyWhitespace: true,
    nodePaths: [packages],
    alias: {
      'node:buffer': join(packages, 'buffer'),
      'node:events': join(packages, 'events'),
      'node:path': 'path-browserify',
    },
    define,
    logLevel: 'warning',
  });
  return outputFiles[0]!.text;
}

// ─── The program ────────────────────────────────────────────────────────────────────────────────

const MARK = '\0';

function dataOf(book: Book, exercise: Exercise): PageExercise {
  const { name, chapter, quotation } = exercise;
  const insideOf = (text: string) => text.slice(before.length + 1, -after.length - 1);
  const [before = '', after = ''] = withInside(book, exercise, [MARK]).split(`\n${MARK}\n`);
  const judge = `${chapter.folder}/${exercise.judge}`;
  const holed = withHole(book, exercise);
  const instead = { [quotation.file]: holed, [judge]: read(book.root, judge) };
  const modules = modulesFrom(filesOfProgram(book, chapter.n, instead), judge, quotation.file);
  delete modules[quotation.file]; // the page has the learner's
  const solved = filesOfProgram(book, chapter.n).get(quotation.file)!;
  const ours = wholeFunction(linesOf(solved), exercise).slice(1, -1).join('\n');
  return {
    name,
    file: quotation.file,
    before,
    after,
    start: insideOf(holed),
    ours,
    judge,
    modules,
  };
}

/** The judge, what it loads or starts, and what these import. */
function modulesFrom(
  files: Map<string, string>,
  judge: string,
  own: string,
): Record<string, string> {
  const modules: Record<string, string> = {};
  const take = (name: string) => {
    const source = files.get(name);
    if (source === undefined || name in modules) return;
    const code = asFunctionBody(name, source);
    modules[name] = code;
    for (const [, path] of code.matchAll(/require\("(\.[^"]+)"\)/g))
      take(posix.join(posix.dirname(name), path!));
  };
  take(judge);
  // A learner's file may use all that it imports, also what the hole does not.
  for (const [, path] of files.get(own)!.matchAll(/ from '(\.[^']+)'/g))
    take(posix.join(posix.dirname(own), path!));
  const named = /'([\w/-]+\.(?:ts|mjs))'/g;
  for (const [, name] of files.get(judge)!.matchAll(named)) take(name!);
  return modules;
}

function asFunctionBody(name: string, source: string): string {
  const { code } = transformSync(source, {
    loader: name.endsWith('.ts') ? 'ts' : 'js',
    sourcefile: name,
    format: 'cjs',
    target: 'es2022',
    minifyWhitespace: true,
    define: { 'import.meta.url': '__url' },
  });
  return code.replace(/^#!.*/, ''); // which may only be at the top of a file
}
