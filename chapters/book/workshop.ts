// workshop.ts: npm run workshop [start | check | hint | reset | watch | compare  N | json | line]

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, renameSync, watch, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { exercisesOf, writeExercise, type Exercise } from './exercise.ts';
import { isFile, linesOf, read, usage } from './files.ts';
import { judged, judgeOf, type Verdict } from './judge.ts';
import { isSpine, type Book } from './pages.ts';
import { cut, refuseIfChanged } from './program.ts';

export const VERBS = [
  'list',
  'start',
  'check',
  'hint',
  'reset',
  'watch',
  'compare',
  'json',
  'line',
];

export async function workshop(book: Book, given = 'list', which = ''): Promise<void> {
  const verb = given.replace(/^--/, '');
  if (!VERBS.includes(verb))
    throw usage(`there is no "workshop ${verb}"; there are ${VERBS.slice(1).join(', ')}`);
  const exercises = allExercises(book);
  if (verb === 'list') return listExercises(book, exercises);
  if (verb === 'json') return console.log(JSON.stringify(progress(book, exercises)));
  if (verb === 'line') return console.log(progressLine(book, exercises));
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

// ─── What is solved ───────────────────────────────────────────────────────────────────────────────

type State = 'not begun' | 'begun' | 'not yet' | 'changed' | 'solved';
const SHOWN = {
  'not begun': '',
  begun: '… begun',
  'not yet': '… not yet',
  changed: '? changed',
  solved: '✓ solved',
};

/** To run all judges again would take half a minute, so each verdict is kept beside the solution,
 *  with what it was given on. */
const kept = ({ folder }: Exercise) => join(folder, '.verdict');

function fingerprintOf(book: Book, exercise: Exercise): string {
  const texts = [read(yours(exercise)), read(judgeOf(book, exercise))];
  return createHash('sha256').update(texts.join('\0')).digest('hex');
}

async function judgedAndKept(book: Book, exercise: Exercise): Promise<Verdict> {
  const on = fingerprintOf(book, exercise); // before: it may be saved again while it is judged
  const verdict = await judged(book, exercise, exercise.folder);
  writeFileSync(kept(exercise), `${verdict.isGreen ? 'solved' : 'not yet'} ${on}`);
  return verdict;
}

function stateOf(book: Book, exercise: Exercise): State {
  if (!isFile(yours(exercise))) return 'not begun';
  if (!isFile(kept(exercise))) return 'begun';
  const told = read(kept(exercise));
  if (!told.endsWith(` ${fingerprintOf(book, exercise)}`)) return 'changed';
  return told.startsWith('solved') ? 'solved' : 'not yet';
}

function progress(book: Book, exercises: Exercise[]) {
  return exercises.map((exercise) => {
    const { name, title } = exercise;
    return { name, title, state: stateOf(book, exercise) };
  });
}

/** For a room: whoever reads it wants to know how far, where and who. */
function progressLine(book: Book, exercises: Exercise[]): string {
  const rows = progress(book, exercises);
  const solved = rows.filter(({ state }) => state === 'solved').length;
  const at = rows.find(({ state }) => state !== 'solved' && state !== 'not begun');
  const next = at ?? rows.find(({ state }) => state !== 'solved');
  const where = next ? `at ${next.name}` : 'done';
  const { USER, USERNAME = 'somebody' } = process.env; // of Unix, of Windows
  return `${solved} of ${rows.length} solved, ${where}, ${USER ?? USERNAME}`;
}

function listExercises(book: Book, exercises: Exercise[]): void {
  const states = exercises.map((exercise) => stateOf(book, exercise));
  for (const [k, { folder, title }] of exercises.entries())
    console.log(`${SHOWN[states[k]!].padEnd(10)} ${basename(folder).padEnd(4)}  ${title}`);
  const changed = exercises.filter((_, k) => states[k] === 'changed').map(({ name }) => name);
  if (changed.length > 0) console.log(`\nNot checked since you changed it: ${changed.join(', ')}`);
  const at = states.findIndex((state) => state !== 'solved');
  const next = exercises[at];
  if (!next) return console.log('\nAll solved.');
  const verb = states[at] === 'not begun' ? 'start' : 'check';
  console.log(`\nNext: read ${next.quotation.page}, then npm run workshop ${verb} ${next.name}`);
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
  const { isGreen, output } = await judgedAndKept(book, exercise);
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
    quotation: { file },
  } = exercise;
  if (!(await judgedAndKept(book, exercise)).isGreen)
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
