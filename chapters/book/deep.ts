// deep.ts: the slow judge. Each chapter's tests, and each exercise, red and green as they should be.

import { buildSync } from 'esbuild';
import { execFile, spawn } from 'node:child_process';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { isFault, type Judged } from '../judge/run.ts';
import { exercisesOf, hasProject, notSolved, writeExercise, type Exercise } from './exercise.ts';
import { filesIn, linesOf, pad, put, read, sideBySide } from './files.ts';
import { judged, judgeOf, verdict, type Verdict } from './judge.ts';
import type { Book, Chapter } from './pages.ts';
import { cached, writeProgram } from './program.ts';
import { missingOf, rightSolutions, solvedSo, wrongSolutions } from './wrong.ts';

export type Trial = { name: string; wanted: string; came: (how?: How) => Promise<string> };
type How = 'compiled' | 'as typed'; // a judge and its program

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
  const chapters = book.chapters.filter(({ n }) => (only ? n === Number(only) : n > 0));
  // The longest first, so that nobody waits for one alone: the tests of the last chapters take a minute and more.
  const tests = chapters.toReversed().flatMap((chapter) => trialsOfTests(book, chapter));
  const trials = [
    ...tests,
    ...chapters.flatMap((chapter) => trialsOfExercises(book, chapter, most)),
  ];
  if (only) for (const chapter of chapters) tellMissing(book, chapter);
  if (!only || only === '0') trials.push(...trialsOfWhole(book));
  const odd: Trial[] = [];
  const judgedOnce = async ({ name, wanted, came }: Trial, how: How) => {
    const startedAt = Date.now();
    const found = await came(how);
    const seconds = ((Date.now() - startedAt) / 1000).toFixed(1);
    console.log(`${found === wanted ? '✓' : '✗'} ${name} is ${found} (${seconds} s)`);
    return found;
  };
  await sideBySide(trials, async (trial) => {
    if ((await judgedOnce(trial, 'compiled')) !== trial.wanted) odd.push(trial);
  });
  // A busy machine may be too slow for a judge, and some judges start or load a source: so what differs is run once more,
  // alone and as a learner runs it.
  for (const trial of odd) {
    const found = await judgedOnce(trial, 'as typed');
    if (found !== trial.wanted)
      problems.push(`${trial.name} should be ${trial.wanted}, and is ${found}`);
  }
  console.log(`${trials.length - problems.length} passed, ${problems.length} failed`);
  if (!only)
    console.log(
      `(of each exercise the first ${SOME} wrong solutions; npm run book deep 4 tries all of chapter 4)`,
    );
  return problems;
}

/** What is missing of the exercises that are not done yet; of the others it would be a problem of their pages. */
function tellMissing(book: Book, chapter: Chapter): void {
  for (const exercise of exercisesOf(book, chapter))
    for (const what of missingOf(book, exercise))
      console.log(`· exercise ${exercise.name}, not yet: ${what}`);
}

export function trialsOfTests(book: Book, chapter: Chapter): Trial[] {
  const { n } = chapter;
  if (hasProject(book, chapter)) return [];
  const files = filesIn(join(book.root, 'test'), book.root).filter(
    (name) => !/^test\/(bench|real)\//.test(name),
  );
  const own = files.filter((name) => name.startsWith(`test/${pad(n)}-`));
  const helpers = files.filter((name) => !name.endsWith('.test.ts'));
  if (own.length === 0)
    return [{ name: `chapter ${n}`, wanted: 'tested', came: async () => 'without tests' }];
  return [
    n,
    book.chapters[book.chapters.findIndex((chapter) => chapter.n === n) - 1]?.n ?? 0,
  ].flatMap((on) => {
    const folder = cached(book, `tests-${pad(n)}-on-${pad(on)}`);
    writeProgram(
      book,
      on,
      folder,
      Object.fromEntries([...helpers, ...own].map((name) => [name, read(book.root, name)])),
    );
    const wanted = on === n ? 'green' : 'red';
    const trial = (file: string) => async () =>
      (await testsPass(folder, file, wanted === 'green')) ? 'green' : 'red';
    return own.map((file) => ({ name: `${file} on chapter ${on}`, wanted, came: trial(file) }));
  });
}

/** The table on the page of chapter 0 is what the judge says of its client. */
function trialsOfWhole(book: Book): Trial[] {
  const whole = book.chapters.find(({ n }) => n === 0);
  if (!whole) return [];
  const rows = linesOf(read(book.root, whole.page)).filter((line) => /^\| \[\d/.test(line));
  const came = async () => {
    const args = ['--import', 'tsx', 'chapters/judge.ts', '--json', whole.folder];
    const run = promisify(execFile)(process.execPath, args, { cwd: book.root });
    const { stdout } = await run.catch((error) => error as { stdout: string });
    const { chapters } = JSON.parse(stdout) as { chapters: Judged[] };
    const judged = chapters.filter(({ state }) => state !== 'absent').map(inOneRow);
    const isRow = (row: string, n: number) => row.startsWith(judged[n] ?? '\0');
    const odd = rows.find((row, n) => !isRow(row, n)) ?? judged[rows.length];
    return odd === undefined ? 'as on its page' : `another: ${odd}`;
  };
  return [{ name: "the judge's table of chapter 0", wanted: 'as on its page', came }];

  function inOneRow({ n, verdicts }: Judged): string {
    const { title, folder } = book.chapters.find((chapter) => chapter.n === n)!;
    const kept = verdicts.filter(({ state }) => state === 'kept').length;
    const { fault } = verdicts.find(isFault)!;
    const link = `[${n}. ${title}](../${basename(folder)}/README.md)`;
    return `| ${link} | ${kept} of ${verdicts.length} | ${fault} |`;
  }
}

export function trialsOfExercises(book: Book, chapter: Chapter, most = Infinity): Trial[] {
  return exercisesOf(book, chapter).flatMap((exercise) => trialsOf(book, exercise, most));
}

function trialsOf(book: Book, exercise: Exercise, most: number): Trial[] {
  const { name: n, chapter } = exercise;
  const verdictBy = (how: How | undefined, name: string, folder: string) => {
    if (how !== 'compiled') return judged(book, exercise, folder);
    return judgedCompiled(book, exercise, folder, cached(book, `compiled-${name}`));
  };
  const verdictOn = async (how: How | undefined, name: string, write: (folder: string) => void) => {
    const folder = cached(book, name);
    write(folder);
    return verdictBy(how, name, folder);
  };
  const colour = async (verdict: ReturnType<typeof judged>) =>
    (await verdict).isGreen ? 'green' : 'red';
  const handedOut = async (how?: How) => {
    const { isGreen, output } = await verdictOn(how, `exercise-${n}`, (folder) =>
      writeExercise(book, exercise, folder),
    );
    if (isGreen) return 'green';
    return output.includes(notSolved(n))
      ? 'not solved'
      : `red for another reason: ${firstFault(output)}`;
  };
  const onItsOwn = (how?: How) =>
    verdictOn(how, `solved-${n}`, (folder) => writeProgram(book, chapter.n, folder));
  const right = rightSolutions(book, exercise).map(
    (solution, k): Trial => ({
      name: `exercise ${n}, right (${solution.mistake}),`,
      wanted: 'green',
      came: async (how) => {
        const write = (folder: string) =>
          writeExercise(book, exercise, folder, solvedSo(book, exercise, solution));
        const { isGreen, output } = await verdictOn(how, `right-${n}-${k}`, write);
        return isGreen ? 'green' : `red: ${firstFault(output)}`;
      },
    }),
  );
  const wrong = wrongSolutions(book, exercise)
    .slice(0, most)
    .map(
      (solution, k): Trial => ({
        name: `exercise ${n}, wrong (${solution.mistake}),`,
        wanted: `red: ${solution.words.join(' or ')}`,
        came: async (how) => {
          const write = (folder: string) =>
            writeExercise(book, exercise, folder, solvedSo(book, exercise, solution));
          const { isGreen, output } = await verdictOn(how, `wrong-${n}-${k}`, write);
          if (isGreen) return 'green';
          if (/✗ Node can load/.test(output)) return `not loaded: ${firstFault(output)}`;
          const isNamed = solution.words.some((words) => output.includes(words));
          return `red: ${isNamed ? solution.words.join(' or ') : firstFault(output)}`;
        },
      }),
    );
  return [
    { name: `exercise ${n}, as handed out,`, wanted: 'not solved', came: handedOut },
    {
      name: `exercise ${n}, solved, on its own program,`,
      wanted: 'green',
      came: (how) => colour(onItsOwn(how)),
    },
    {
      name: `exercise ${n}, solved, on the last program,`,
      wanted: 'green',
      came: (how) => colour(verdictBy(how, `last-${n}`, book.root)),
    },
    ...right,
    ...wrong,
  ];
}

/** The verdict with the judge, and the modules that it loads, compiled into a folder: without tsx it takes a third of the time. */
function judgedCompiled(
  book: Book,
  exercise: Exercise,
  folder: string,
  target: string,
): Promise<Verdict> {
  const file = judgeOf(book, exercise);
  const loaded = [...read(file).matchAll(/\bload\('([^']+)\.ts'\)/g)].map(([, name]) => [
    name!,
    join(folder, `${name}.ts`),
  ]);
  const ours = { judge: join(book.root, 'chapters', 'book', 'judge.ts'), exercise: file };
  try {
    buildSync({
      entryPoints: { ...ours, ...Object.fromEntries(loaded) },
      outdir: target,
      bundle: true,
      splitting: true,
      format: 'esm',
      platform: 'node',
      target: 'node20',
      keepNames: true,
      packages: 'external',
      logLevel: 'silent',
    });
  } catch {
    return judged(book, exercise, folder); // Node and tsx say what is wrong
  }
  put(join(target, 'package.json'), '{ "type": "module" }');
  return verdict(book, [join(target, 'judge.js'), join(target, 'exercise.js'), folder, target]);
}

const firstFault = (output: string) =>
  output.slice(output.indexOf('✗')).split('\n').slice(0, 3).join(' ').slice(0, 300);

/** Runs a test file. No test at all is not green. To be red, the first failure is enough. */
export function testsPass(folder: string, file: string, wantsGreen: boolean): Promise<boolean> {
  const limit = `--test-timeout=${wantsGreen ? 180_000 : 8000}`; // it only ends a hang
  const args = [
    '--import',
    'tsx',
    '--test',
    '--test-reporter=tap',
    '--test-force-exit',
    limit,
    file,
  ];
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
