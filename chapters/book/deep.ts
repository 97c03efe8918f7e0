// deep.ts: the slow judge. Each chapter's tests, and each exercise, red and green as they should be.

import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { exerciseOf, writeExercise } from './exercise.ts';
import { filesIn, pad, read, sideBySide } from './files.ts';
import { judged } from './judge.ts';
import type { Book, Chapter } from './pages.ts';
import { cached, writeProgram } from './program.ts';

export type Trial = { name: string; wantsGreen: boolean; isGreen: () => Promise<boolean> };

/** Each chapter's tests: red on the program of the chapter before, green on its own. Each exercise: red as it is
 *  handed out, green on the real program. */
export async function deep(book: Book, only = ''): Promise<string[]> {
  const problems: string[] = [];
  const chapters = book.chapters.filter(({ n }) => !only || n === Number(only));
  const trials = chapters.flatMap((chapter) => [...trialsOfTests(book, chapter), ...trialsOfExercise(book, chapter)]);
  await sideBySide(trials, async ({ name, wantsGreen, isGreen }) => {
    const colour = (await isGreen()) ? 'green' : 'red';
    const isRight = (colour === 'green') === wantsGreen;
    console.log(`${isRight ? '✓' : '✗'} ${name} is ${colour}`);
    if (!isRight) problems.push(`${name} should not be ${colour}`);
  });
  console.log(`${trials.length - problems.length} passed, ${problems.length} failed`);
  return problems;
}

export function trialsOfTests(book: Book, { n }: Chapter): Trial[] {
  const files = filesIn(join(book.root, 'test'), book.root).filter((name) => !/^test\/(bench|real)\//.test(name));
  const own = files.filter((name) => name.startsWith(`test/${pad(n)}-`));
  const helpers = files.filter((name) => !name.endsWith('.test.ts'));
  if (own.length === 0) return [{ name: `chapter ${n}, which has no tests,`, wantsGreen: true, isGreen: async () => false }];
  return [n, n - 1].flatMap((on) => {
    const folder = cached(book, `tests-${pad(n)}-on-${pad(on)}`);
    writeProgram(book, on, folder, Object.fromEntries([...helpers, ...own].map((name) => [name, read(book.root, name)])));
    const wantsGreen = on === n;
    const trial = (file: string) => () => testsPass(folder, file, wantsGreen);
    return own.map((file) => ({ name: `${file} on chapter ${on}`, wantsGreen, isGreen: trial(file) }));
  });
}

export function trialsOfExercise(book: Book, chapter: Chapter): Trial[] {
  const exercise = exerciseOf(book, chapter);
  if (!exercise) return []; // `check` names it
  const folder = cached(book, `exercise-${pad(chapter.n)}`);
  writeExercise(book, exercise, folder);
  const isGreen = (at: string) => async () => (await judged(book, exercise, at)).isGreen;
  return [
    { name: `exercise ${chapter.n}, as handed out,`, wantsGreen: false, isGreen: isGreen(folder) },
    { name: `exercise ${chapter.n}, solved,`, wantsGreen: true, isGreen: isGreen(book.root) },
  ];
}

/** Runs a test file. No test at all is not green. To be red, the first failure is enough. */
export function testsPass(folder: string, file: string, wantsGreen: boolean): Promise<boolean> {
  const limit = `--test-timeout=${wantsGreen ? 180_000 : 8000}`; // it only ends a hang
  const args = ['--import', 'tsx', '--test', '--test-reporter=tap', '--test-force-exit', limit, file];
  const child = spawn(process.execPath, args, { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'] });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
    if (!wantsGreen && /^\s*not ok /m.test(output)) child.kill();
  });
  return new Promise((done) =>
    child.on('close', (code) => {
      const isGreen = code === 0 && /^# pass [1-9]/m.test(output);
      const failures = output.split('\n').filter((line) => /^\s*not ok|^\s+error:/.test(line));
      if (wantsGreen && !isGreen) console.log(failures.join('\n'));
      done(isGreen);
    }),
  );
}
