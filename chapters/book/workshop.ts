// workshop.ts: npm run workshop [start | check | hint | reset | watch | compare  N]

import { execFile } from 'node:child_process';
import { appendFileSync, existsSync, renameSync, watch } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { exercisesOf, writeExercise, type Exercise } from './exercise.ts';
import { isFile, linesOf, read, sideBySide, usage } from './files.ts';
import { judged } from './judge.ts';
import { isSpine, type Book } from './pages.ts';
import { cut, refuseIfChanged } from './program.ts';

export const VERBS = ['list', 'start', 'check', 'hint', 'reset', 'watch', 'compare'];

export async function workshop(book: Book, verb = 'list', which = ''): Promise<void> {
  if (!VERBS.includes(verb))
    throw usage(`there is no "workshop ${verb}"; there are ${VERBS.slice(1).join(', ')}`);
  const exercises = allExercises(book);
  if (verb === 'list') return listExercises(book, exercises);
  const exercise = exerciseNamed(book, which);
  if (verb === 'start' || verb === 'reset') refuseIfChanged(book, exercise.chapter.n);
  const isBegun = isFile(yours(exercise));
  if (verb === 'start' && isBegun)
    console.log('You have begun; to begin anew, write reset for start.');
  if (verb === 'start') return start(book, exercise);
  if (!isBegun)
    throw usage(
      `you have not begun exercise ${which}; do so with: npm run workshop start ${which}`,
    );
  if (verb === 'reset') return reset(book, exercise);
  if (verb === 'check') process.exitCode = (await tellVerdict(book, exercise)) ? 0 : 1;
  else if (verb === 'hint') giveHint(exercise);
  else if (verb === 'compare') await compare(book, exercise);
  else await watchFile(book, exercise);
}

const allExercises = (book: Book) => book.chapters.flatMap((chapter) => exercisesOf(book, chapter));

/** By its name: 4, 29.2; and 04, as its folder is called. */
export function exerciseNamed(book: Book, which = ''): Exercise {
  const exercises = allExercises(book);
  const exercise = exercises.find(({ name }) => name === which.replace(/^0+/, ''));
  if (exercise) return exercise;
  throw usage(`which exercise? There are ${exercises.map(({ name }) => name).join(', ')}`);
}

export const yours = ({ folder, quotation }: Exercise) => join(folder, quotation.file);
export const shownFile = (exercise: Exercise) => relative(process.cwd(), yours(exercise));
/** The first line of what is to be written. */
export const shownPlace = (exercise: Exercise) => {
  const line = linesOf(read(yours(exercise))).indexOf(exercise.quotation.runs[0]!.lines[0]!) + 2;
  return `${shownFile(exercise)}${line > 1 ? `:${line}` : ''}`;
};

/** What is solved is found out by running it. */
export async function listExercises(book: Book, exercises: Exercise[]): Promise<void> {
  const verdicts = new Map<Exercise, boolean>();
  await sideBySide(
    exercises.filter((exercise) => isFile(yours(exercise))),
    async (exercise) => {
      verdicts.set(exercise, (await judged(book, exercise, exercise.folder)).isGreen);
    },
  );
  for (const exercise of exercises) {
    const verdict = verdicts.get(exercise);
    const state = verdict === undefined ? '' : verdict ? '✓ solved' : '… not yet';
    console.log(`${state.padEnd(10)} ${basename(exercise.folder).padEnd(4)}  ${exercise.title}`);
  }
  const next = exercises.find((exercise) => !verdicts.get(exercise));
  if (!next) return console.log('\nAll solved.');
  const {
    name,
    quotation: { page },
  } = next;
  console.log(
    `\nNext: read ${page}, then npm run workshop ${verdicts.has(next) ? 'check' : 'start'} ${name}`,
  );
}

export function start(book: Book, exercise: Exercise): void {
  const {
    name: n,
    quotation: { page },
    title,
  } = exercise;
  if (!isFile(yours(exercise))) writeExercise(book, exercise);
  console.log(`Exercise ${n}: ${title}`);
  console.log(`  read    ${page}\n  edit    ${shownPlace(exercise)}`);
  console.log(`  check   npm run workshop check ${n}\n  stuck?  npm run workshop hint ${n}`);
}

export function reset(book: Book, exercise: Exercise): void {
  let copies = 1;
  while (existsSync(`${exercise.folder}.old-${copies}`)) copies++;
  renameSync(exercise.folder, `${exercise.folder}.old-${copies}`);
  console.log(
    `Your old copy is now ${relative(process.cwd(), `${exercise.folder}.old-${copies}`)}.`,
  );
  start(book, exercise);
}

export async function tellVerdict(book: Book, exercise: Exercise): Promise<boolean> {
  const { name: n, folder } = exercise;
  const { isGreen, output } = await judged(book, exercise, folder);
  console.log(output.trimEnd());
  const complaints = await typeErrors(book, folder);
  if (complaints.length > 0)
    console.log(`  the type-checker says:\n    ${complaints.join('\n    ')}`);
  if (isGreen) console.log(`Solved. Yours beside ours: npm run workshop compare ${n}`);
  else console.log(`  look at:  ${shownPlace(exercise)}\n  stuck?    npm run workshop hint ${n}`);
  return isGreen;
}

/** What the type-checker says of a learner's program; a verdict does not depend on it. */
async function typeErrors(book: Book, folder: string): Promise<string[]> {
  const tsc = join(book.root, 'node_modules', 'typescript', 'bin', 'tsc');
  const run = promisify(execFile)(
    process.execPath,
    [tsc, '-p', folder, '--noEmit', '--pretty', 'false'],
    { cwd: folder },
  );
  const said = await run.then(
    () => '',
    ({ stdout }) => `${stdout}`,
  );
  return linesOf(said).filter(Boolean).slice(0, 5);
}

export function giveHint({ folder, hints, quotation }: Exercise): void {
  const file = join(folder, '.hints'); // one mark for each hint that was given
  appendFileSync(file, 'x');
  const given = hints.slice(0, read(file).length);
  for (const [n, hint] of given.entries())
    console.log(`Hint ${n + 1} of ${hints.length}\n${hint}\n`);
  if (given.length === hints.length)
    console.log(`That was the last one. The page explains the solution: ${quotation.page}`);
}

export async function compare(book: Book, exercise: Exercise): Promise<void> {
  const {
    chapter,
    folder,
    quotation: { file },
  } = exercise;
  if (!(await judged(book, exercise, folder)).isGreen)
    throw usage('compare shows our solution; first let yours pass');
  const mine = wholeFunction(linesOf(read(yours(exercise))), exercise);
  const ours = wholeFunction(
    linesOf(isSpine(file) ? cut(book, file, chapter.n) : read(book.root, file)),
    exercise,
  );
  const width = Math.max(7, ...mine.map((line) => line.length)) + 2;
  if (width + Math.max(...ours.map((line) => line.length)) > (process.stdout.columns ?? 0))
    return console.log(['── yours', ...mine, '── ours', ...ours].join('\n'));
  const rows = Array.from({ length: Math.max(mine.length, ours.length) }, (_, k) => [
    mine[k] ?? '',
    ours[k] ?? '',
  ]);
  for (const [left, right] of [['── yours', '── ours'], ...rows])
    console.log(`${left!.padEnd(width)}│ ${right}`);
}

/** From the first line of the exercise's quotation to its last; all of it, if these are not there any more. */
export function wholeFunction(lines: string[], { quotation: { runs } }: Exercise): string[] {
  const first = lines.indexOf(runs[0]!.lines[0]!);
  const last = lines.indexOf(runs.at(-1)!.lines.at(-1)!, first + 1);
  return first === -1 || last === -1 ? lines : lines.slice(first, last + 1);
}

export async function watchFile(book: Book, exercise: Exercise): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  watch(dirname(yours(exercise)), (_, name) => {
    if (name !== basename(yours(exercise))) return;
    clearTimeout(timer); // editors write a file several times
    timer = setTimeout(() => void tellVerdict(book, exercise), 100);
  });
  console.log(`Watching ${shownFile(exercise)}; Ctrl-C ends.`);
  await tellVerdict(book, exercise);
}
