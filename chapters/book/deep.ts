// deep.ts: the slow judge. Each chapter's tests, and each exercise, red and green as they should be.

import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { exercisesOf, notSolved, writeExercise, type Exercise } from './exercise.ts';
import { filesIn, pad, read, sideBySide } from './files.ts';
import { judged } from './judge.ts';
import type { Book, Chapter } from './pages.ts';
import { cached, writeProgram } from './program.ts';
import { solvedSo, wrongSolutions } from './wrong.ts';

export type Trial = { name: string; wanted: string; came: () => Promise<string> };

const SOME = 10; // wrong solutions of each exercise, when all chapters are judged

/** Each chapter's tests: red on the program of the step before, green on its own. Each exercise: red because it is not
 *  solved yet as it is handed out, green with the real code, on its own program and on the last; and each wrong solution
 *  red, with the words that name the mistake. For one chapter that is all of them, for the whole book the first ten of each,
 *  so that it ends within minutes. */
export async function deep(book: Book, only = ''): Promise<string[]> {
  // Node would read these certificates at each start, which takes longer than the rest of its start.
  delete process.env.NODE_EXTRA_CA_CERTS;
  const problems: string[] = [];
  const most = only ? Infinity : SOME;
  const chapters = book.chapters.filter(({ n }) => !only || n === Number(only));
  // The longest first, so that nobody waits for one alone: the tests of the last chapters take a minute and more.
  const tests = chapters.toReversed().flatMap((chapter) => trialsOfTests(book, chapter));
  const trials = [...tests, ...chapters.flatMap((chapter) => trialsOfExercises(book, chapter, most))];
  const odd: Trial[] = [];
  const judgedOnce = async ({ name, wanted, came }: Trial) => {
    const startedAt = Date.now();
    const found = await came();
    const seconds = ((Date.now() - startedAt) / 1000).toFixed(1);
    console.log(`${found === wanted ? '✓' : '✗'} ${name} is ${found} (${seconds} s)`);
    return found;
  };
  await sideBySide(trials, async (trial) => {
    if ((await judgedOnce(trial)) !== trial.wanted) odd.push(trial);
  });
  // A busy machine may be too slow for a judge: so what differs is run once more, alone.
  for (const trial of odd) {
    const found = await judgedOnce(trial);
    if (found !== trial.wanted) problems.push(`${trial.name} should be ${trial.wanted}, and is ${found}`);
  }
  console.log(`${trials.length - problems.length} passed, ${problems.length} failed`);
  if (!only) console.log(`(of each exercise the first ${SOME} wrong solutions; npm run book deep 4 tries all of chapter 4)`);
  return problems;
}

export function trialsOfTests(book: Book, { n }: Chapter): Trial[] {
  const files = filesIn(join(book.root, 'test'), book.root).filter((name) => !/^test\/(bench|real)\//.test(name));
  const own = files.filter((name) => name.startsWith(`test/${pad(n)}-`));
  const helpers = files.filter((name) => !name.endsWith('.test.ts'));
  if (own.length === 0) return [{ name: `chapter ${n}`, wanted: 'tested', came: async () => 'without tests' }];
  return [n, book.chapters[book.chapters.findIndex((chapter) => chapter.n === n) - 1]?.n ?? 0].flatMap((on) => {
    const folder = cached(book, `tests-${pad(n)}-on-${pad(on)}`);
    writeProgram(book, on, folder, Object.fromEntries([...helpers, ...own].map((name) => [name, read(book.root, name)])));
    const wanted = on === n ? 'green' : 'red';
    const trial = (file: string) => async () => ((await testsPass(folder, file, wanted === 'green')) ? 'green' : 'red');
    return own.map((file) => ({ name: `${file} on chapter ${on}`, wanted, came: trial(file) }));
  });
}

export function trialsOfExercises(book: Book, chapter: Chapter, most = Infinity): Trial[] {
  return exercisesOf(book, chapter).flatMap((exercise) => trialsOf(book, exercise, most));
}

function trialsOf(book: Book, exercise: Exercise, most: number): Trial[] {
  const { name: n, chapter } = exercise;
  const verdictOn = async (name: string, write: (folder: string) => void) => {
    const folder = cached(book, name);
    write(folder);
    return judged(book, exercise, folder);
  };
  const colour = async (verdict: ReturnType<typeof judged>) => ((await verdict).isGreen ? 'green' : 'red');
  const handedOut = async () => {
    const { isGreen, output } = await verdictOn(`exercise-${n}`, (folder) => writeExercise(book, exercise, folder));
    if (isGreen) return 'green';
    return output.includes(notSolved(n)) ? 'not solved' : `red for another reason: ${firstFault(output)}`;
  };
  const onItsOwn = () => verdictOn(`solved-${n}`, (folder) => writeProgram(book, chapter.n, folder));
  const wrong = wrongSolutions(book, exercise).slice(0, most).map((solution, k): Trial => ({
    name: `exercise ${n}, wrong (${solution.mistake}),`,
    wanted: `red: ${solution.words.join(' or ')}`,
    came: async () => {
      const write = (folder: string) => writeExercise(book, exercise, folder, solvedSo(book, exercise, solution));
      const { isGreen, output } = await verdictOn(`wrong-${n}-${k}`, write);
      if (isGreen) return 'green';
      if (/✗ Node can load/.test(output)) return `not loaded: ${firstFault(output)}`;
      const isNamed = solution.words.some((words) => output.includes(words));
      return `red: ${isNamed ? solution.words.join(' or ') : firstFault(output)}`;
    },
  }));
  return [
    { name: `exercise ${n}, as handed out,`, wanted: 'not solved', came: handedOut },
    { name: `exercise ${n}, solved, on its own program,`, wanted: 'green', came: () => colour(onItsOwn()) },
    { name: `exercise ${n}, solved, on the last program,`, wanted: 'green', came: () => colour(judged(book, exercise, book.root)) },
    ...wrong,
  ];
}

const firstFault = (output: string) => output.slice(output.indexOf('✗')).split('\n').slice(0, 3).join(' ').slice(0, 300);

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
