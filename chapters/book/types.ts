// types.ts: what the type-checker says of every step's program and of every exercise.

import { execFile } from 'node:child_process';
import { join, posix } from 'node:path';
import { promisify } from 'node:util';
import { exercisesOf, typesFor, withHole } from './exercise.ts';
import { linesOf } from './files.ts';
import { nameOf, type Book } from './pages.ts';
import { cached, filesOfProgram, writeFiles } from './program.ts';

type Files = Map<string, string>; // name → text

/** Every step's program must pass the type-checker, and so must every exercise as it is handed out: a hole that is not
 *  the inside of one function would be a syntax error. */
export async function problemsOfTypes(book: Book): Promise<string[]> {
  const folder = cached(book, 'types');
  const files = withoutRepetitions(programsOf(book));
  files.set('package.json', '{ "type": "module" }\n');
  files.set('tsconfig.json', JSON.stringify(typesFor(book)));
  writeFiles(folder, files);
  const tsc = join(book.root, 'node_modules', 'typescript', 'bin', 'tsc');
  // Several checkers at once would each look at what all files import: two thirds of the work are left.
  const flags = ['-p', folder, '--pretty', 'false', '--singleThreaded'];
  const run = promisify(execFile)(process.execPath, [tsc, ...flags], { cwd: folder });
  const complaints = await run.then(
    () => '',
    ({ stdout }) => `${stdout}`,
  );
  return linesOf(complaints)
    .filter(Boolean)
    .map((line) => `the program of chapter ${line}`);
}

function programsOf(book: Book): Map<string, Files> {
  const programs = new Map<string, Files>();
  for (const step of book.steps)
    programs.set(nameOf(step).padStart(2, '0'), filesOfProgram(book, step));
  for (const exercise of book.chapters.flatMap((chapter) => exercisesOf(book, chapter))) {
    const { name, chapter, quotation } = exercise;
    const holed = { [quotation.file]: withHole(book, exercise) };
    programs.set(`exercise ${name}`, filesOfProgram(book, chapter.n, holed));
  }
  return programs;
}

const IMPORTS = /(?<=\bfrom )'(\.[^']+\.ts)'/g;
const LAZY_IMPORTS = /(?<=\bimport\()'(\.[^']+\.ts)'(?=\))/g; // a file that imports this one gets no types from there

/** A program is mostly that of the step before it, and what the type-checker says of a file depends on its text and on
 *  the texts of all that it imports, directly or not. Where these have been seen together, the file is left out, and
 *  the files that import it get it from the first program that has it. A third of the text remains. */
function withoutRepetitions(programs: Map<string, Files>): Files {
  const kept: Files = new Map();
  const known = new Set<string>(); // a file and all that it imports
  const places = new Map<string, string>(); // a file and all that gives it types → where it is
  const versionOf = counter();

  for (const [program, all] of programs) {
    const files = new Map([...all].filter(([name]) => name.endsWith('.ts')));
    const targets = (name: string, pattern: RegExp) =>
      pathsIn(files.get(name)!, pattern)
        .map((path) => targetOf(name, path))
        .filter((target) => files.has(target));
    const versions = new Map(
      [...files].map(([name, text]) => [name, `${name} ${versionOf(text)}`]),
    );
    const imports = new Map([...files.keys()].map((name) => [name, targets(name, IMPORTS)]));
    const reachedFrom = (names: string[]) => {
      const reached = new Set(names);
      for (const each of reached) // it grows while it is read
        for (const target of imports.get(each)!) reached.add(target);
      return reached;
    };
    const keyOf = (name: string, more: string[] = []) => {
      const reached = [...reachedFrom([name, ...more])].sort();
      return [name, ...reached.map((each) => versions.get(each))].join();
    };
    // What imports it back would know another class of the same name, if it were there once more.
    const isInCycle = (name: string) => reachedFrom(imports.get(name)!).has(name);
    const keys = new Map([...files.keys()].map((name) => [name, keyOf(name)]));
    for (const [name, key] of keys) if (!places.has(key)) places.set(key, `${program}/${name}`);
    for (const [name, text] of files) {
      const key = keyOf(name, isInCycle(name) ? [] : targets(name, LAZY_IMPORTS));
      if (known.has(key)) continue;
      known.add(key);
      const moved = (written: string, path: string) => {
        const place = places.get(keys.get(targetOf(name, path)) ?? '');
        return place ? `'${pathBetween(`${program}/${name}`, place)}'` : written; // what is missing, stays so
      };
      kept.set(`${program}/${name}`, text.replace(IMPORTS, moved).replace(LAZY_IMPORTS, moved));
    }
  }
  return kept;
}

/** Gives each text a number. */
function counter(): (text: string) => number {
  const numbers = new Map<string, number>();
  return (text) => {
    if (!numbers.has(text)) numbers.set(text, numbers.size);
    return numbers.get(text)!;
  };
}

const pathsIn = (text: string, pattern: RegExp) =>
  [...text.matchAll(pattern)].map(([, path]) => path!);
const targetOf = (name: string, path: string) => posix.join(posix.dirname(name), path);

function pathBetween(from: string, to: string): string {
  const path = posix.relative(posix.dirname(from), to);
  return path.startsWith('.') ? path : `./${path}`;
}
