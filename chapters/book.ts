// book.ts: the machinery of the book. The pages quote the program, and the quotations say whose a line is.
//
//   npm run book check | fix | deep      is the book true? repair its quotations; run every chapter's tests
//   npm run chapter 5 [-- --before | --diff | --code]      the program as it is at the end of a chapter
//   npm run workshop [start | check | hint | reset | watch | compare  N]
//
// A fence that begins with ```ts mcp.ts is a verbatim quotation of that file; a line `// …` stands for what is left
// out. A line belongs to the first chapter that quotes it, and a blank line goes with the line below it. So the
// program of chapter 5 is: all lines that belong to chapters 1 to 5. Nothing is stored, it is cut on demand.

import { execFile, spawn } from 'node:child_process';
import {
  appendFileSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync,
  watch, writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, delimiter, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { inspect, promisify, stripVTControlCharacters } from 'node:util';

const COMPOSITION = 'chapters/composition.ts'; // the one file that imports every chapter
const SPINE = ['mcp.ts', 'agent.ts', COMPOSITION]; // the files of which every line must be quoted
const ELLIPSIS = /^\s*\/\/ …$/;
const NOT_PROGRAM = /(^|\/)(demo|exercise|naive)\.m?[tj]s$/; // these show and judge the program, they are no part of it
const root = fileURLToPath(new URL('..', import.meta.url));

// ─── Reading the pages ────────────────────────────────────────────────────────────────────────────────────────

export type Book = { root: string; chapters: Chapter[] };
export type Chapter = { n: number; title: string; folder: string; page: string; fences: Fence[]; quotations: Quotation[] };
/** ```LANGUAGE WORDS, then the body. `line` is where the body begins, counted from 1. */
export type Fence = { line: number; language: string; words: string[]; body: string[] };
export type Quotation = Fence & { file: string; source: string[]; runs: Run[] };
/** Lines of a quotation without a gap. `at` is where they stand in the file, counted from 0; -1 if nowhere. */
export type Run = { line: number; lines: string[]; at: number };

const pad = (n: number) => `${n}`.padStart(2, '0');
const read = (...path: string[]) => readFileSync(join(...path), 'utf8');
const linesOf = (text: string) => text.split('\n').map((line) => line.trimEnd());
const isFile = (...path: string[]) => statSync(join(...path), { throwIfNoEntry: false })?.isFile() ?? false;

/** All files below a folder, as paths from `from`. */
function filesIn(folder: string, from = folder): string[] {
  const names = existsSync(folder) ? (readdirSync(folder, { recursive: true }) as string[]) : [];
  const files = names.filter((name) => isFile(folder, name)).map((name) => join(folder, name));
  return files.map((file) => relative(from, file).replaceAll('\\', '/'));
}

/** A small book, in a test, need not have all of them. */
const spineOf = (book: Book) => SPINE.filter((file) => isFile(book.root, file));

export function readBook(at = root): Book {
  const slugs = readdirSync(join(at, 'chapters')).filter((name) => /^\d\d-/.test(name)).sort();
  const chapters = slugs.filter((slug) => isFile(at, 'chapters', slug, 'README.md')).map((slug): Chapter => {
    const folder = `chapters/${slug}`;
    const page = `${folder}/README.md`;
    const text = read(at, page);
    const title = /^# (?:\d+\. )?(.*)$/m.exec(text)?.[1] ?? slug;
    const fences = fencesIn(text);
    const quotations = fences.flatMap((fence) => asQuotation(at, folder, fence) ?? []);
    return { n: Number(slug.slice(0, 2)), title, folder, page, fences, quotations };
  });
  return { root: at, chapters };
}

function fencesIn(text: string): Fence[] {
  const fences: Fence[] = [];
  let open: Fence | undefined;
  for (const [n, line] of linesOf(text).entries()) {
    const [, language = '', words = ''] = /^```(\w*) ?(.*)$/.exec(line) ?? [];
    if (open && line === '```') open = void fences.push(open);
    else if (open) open.body.push(line);
    else if (line.startsWith('```')) open = { line: n + 2, language, words: words.split(' '), body: [] };
  }
  return fences;
}

/** A fence whose second word is a file (of the chapter's folder, or from the top) is a quotation of it. */
function asQuotation(at: string, folder: string, fence: Fence): Quotation | undefined {
  const name = fence.words[0]!;
  if (!/\.(ts|mjs)$/.test(name)) return undefined;
  const file = isFile(at, folder, name) ? `${folder}/${name}` : name;
  const source = isFile(at, file) ? linesOf(read(at, file)) : [];
  const runs: Run[] = [];
  for (const [n, text] of fence.body.entries()) {
    if (ELLIPSIS.test(text)) continue;
    if (n === 0 || ELLIPSIS.test(fence.body[n - 1]!)) runs.push({ line: fence.line + n, lines: [], at: -1 });
    runs.at(-1)!.lines.push(text);
  }
  let from = 0;
  for (const run of runs) {
    // The first place below the run before it where all its lines stand.
    run.at = source.findIndex((_, n) => n >= from && run.lines.every((text, k) => source[n + k] === text));
    if (run.at !== -1) from = run.at + run.lines.length;
  }
  return { ...fence, file, source, runs };
}

/** For every line of a file the chapter that quotes it first; 0 where none does. */
export function owners(book: Book, file: string): number[] {
  const source = linesOf(read(book.root, file));
  const owned = source.map(() => 0);
  for (const { n, quotations } of book.chapters)
    for (const { at, lines } of quotations.filter((each) => each.file === file).flatMap(({ runs }) => runs))
      for (let k = at; at !== -1 && k < at + lines.length; k++) owned[k] ||= source[k] === '' ? 0 : n;
  for (let k = source.length - 2; k >= 0; k--) if (source[k] === '') owned[k] = owned[k + 1]!;
  return owned;
}

export function cut(book: Book, file: string, n: number): string {
  const owned = owners(book, file);
  const lines = read(book.root, file).split('\n').filter((_, k) => owned[k]! > 0 && owned[k]! <= n);
  return lines.join('\n') + '\n';
}

// ─── The program of a chapter ─────────────────────────────────────────────────────────────────────────────────

/** Writes the program as of chapter n into a folder: what belongs to chapters 1 to n, and the servers to talk to.
 *  `instead` holds files that take the place of the program's, or come along with it. */
export function writeProgram(book: Book, n: number, folder: string, instead: Record<string, string> = {}): void {
  const files = new Map([['package.json', '{ "type": "module", "private": true }\n']]);
  for (const file of spineOf(book)) {
    const text = cut(book, file, n);
    if (text.trim()) files.set(file, text);
  }
  const folders = book.chapters.filter((chapter) => chapter.n <= n).map((chapter) => chapter.folder);
  for (const name of [...folders, 'fixtures'].flatMap((part) => filesIn(join(book.root, part), book.root)))
    if (/\.(ts|mjs)$/.test(name) && !NOT_PROGRAM.test(name)) files.set(name, read(book.root, name));
  for (const [name, text] of Object.entries(instead)) files.set(name, text);
  refuseLinks(folder);
  for (const name of filesIn(folder)) if (!files.has(name)) rmSync(join(folder, name), { force: true });
  for (const [name, text] of files) put(join(folder, name), text);
}

/** What is behind a link, such as a node_modules that somebody has linked, is not ours to write or to clear away. */
function refuseLinks(folder: string): void {
  const isLink = (path: string) => lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink();
  const names = existsSync(folder) ? (readdirSync(folder, { recursive: true }) as string[]) : [];
  const link = [folder, ...names.map((name) => join(folder, name))].find(isLink);
  if (link) throw new Error(`${link} is a link, and no program is written there; move it away`);
}

function put(file: string, text: string): void {
  if (isFile(file) && read(file) === text) return; // others may be reading it
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

const cached = (book: Book, name: string) => join(book.root, '.cache', 'book', name);
const workFolder = (book: Book) => process.env.WORK ?? join(book.root, 'work');
/** The demo of a chapter is no part of the program, but goes along with it. */
const withDemo = (book: Book, { folder }: Chapter) => ({ [`${folder}/demo.ts`]: read(book.root, folder, 'demo.ts') });

async function chapterCommand(book: Book, which: string, given = ''): Promise<void> {
  // Without the lone -- before it, npm keeps a flag for itself.
  const kept = ['diff', 'code'].find((name) => process.env[`npm_config_${name}`]);
  const flag = given.replace(/^(?=[a-z])/, '--') || (kept ? `--${kept}` : '');
  const chapter = book.chapters.find(({ n }) => n === Number(which));
  if (!chapter) {
    for (const { n, title } of book.chapters) console.log(`${pad(n)}  ${title}`);
    if (which) throw usage(`there is no chapter ${which}`);
    return console.log('\nnpm run chapter 1 runs a chapter; add -- --before, -- --diff or -- --code');
  }
  const { n, title } = chapter;
  refuseIfChanged(book, n);
  if (flag === '--diff') return console.log(diff(book, n).join('\n'));
  if (flag === '--code') {
    const folder = join(workFolder(book), `program-${pad(n)}`);
    writeProgram(book, n, folder, withDemo(book, chapter));
    return console.log(`The program as of chapter ${n} is in ${relative(process.cwd(), folder)}.`);
  }
  if (flag !== '' && flag !== '--before') throw usage(`there is no ${flag}; there are --before, --diff and --code`);
  const on = flag === '--before' ? n - 1 : n;
  if (on === 0) return console.log('Before chapter 1 there is no program.');
  console.log(`# ${title}, on the program as of chapter ${on}\n`);
  await runDemo(book, chapter, on);
}

/** The program of a chapter cannot be cut out of files that are no longer what its pages say of them. */
function refuseIfChanged(book: Book, n: number): void {
  const quotations = book.chapters.filter((chapter) => chapter.n <= n).flatMap((chapter) => chapter.quotations);
  const lost = quotations.find(({ file, runs }) => SPINE.includes(file) && runs.some(({ at }) => at === -1));
  if (!lost) return;
  const advice = `Exercises are edited in work/, not there. To get it back: git checkout ${lost.file}`;
  throw usage(`${lost.file} is not the program of the book any more (npm run book check says where). ${advice}`);
}

/** What chapter n adds to the files that all chapters share, with two lines around it. */
export function diff(book: Book, n: number): string[] {
  return spineOf(book).flatMap((file) => {
    const owned = owners(book, file);
    const lines = linesOf(read(book.root, file)).map((text, k) => ({ text, owner: owned[k]! }));
    const there = lines.filter(({ owner }) => owner > 0 && owner <= n);
    const near = there.filter((_, k) => there.slice(Math.max(0, k - 2), k + 3).some(({ owner }) => owner === n));
    const count = near.filter(({ owner }) => owner === n).length;
    if (count === 0) return [];
    const shown = near.map(({ text, owner }) => `${owner === n ? '+' : ' '} ${text}`.trimEnd());
    return [`── ${file}: ${count} lines`, ...shown];
  });
}

/** Runs a demo in this process, on the program as of chapter n. That may wait for ever where something is still
 *  missing: we do not. */
async function runDemo(book: Book, chapter: Chapter, n: number): Promise<void> {
  const folder = cached(book, `demo-${pad(chapter.n)}-on-${pad(n)}`);
  writeProgram(book, n, folder, withDemo(book, chapter));
  process.chdir(folder);
  let isOver = false;
  const end = (what: string, error: unknown) => {
    const missing = /'([^']+)' imported from/.exec(`${error}`)?.[1]; // in words that are the same in every Node
    const text = missing === undefined ? `${error}` : `there is no ${missing}`;
    const words = text.replaceAll(pathToFileURL(folder).href, '.').replaceAll(folder, '.');
    if (!isOver) console.log(`${what} ${words}`);
    isOver = true;
    process.exit(1);
  };
  process.on('uncaughtException', (error) => end('The whole program ended:', error));
  process.on('exit', () => {
    if (isOver) return;
    console.log('The program ended, but not its demo: what it waits for can no longer come.');
    process.exitCode = 1;
  });
  setTimeout(() => end('Stopped after five seconds:', 'it still waits.'), 5000).unref();
  await import(pathToFileURL(join(folder, chapter.folder, 'demo.ts')).href).catch((error) => end('The demo failed:', error));
  isOver = true;
  process.exit(0); // the programs of the first chapters cannot say goodbye; their servers see the end of stdin
}

// ─── Exercises ────────────────────────────────────────────────────────────────────────────────────────────────

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
  const text = read(book.root, chapter.page);
  const title = /^## Exercise: (.*)$/m.exec(text)?.[1] ?? chapter.title;
  const hints = [...text.matchAll(/<summary>Hint \d<\/summary>\n([^]*?)<\/details>/g)].map(([, hint]) => hint!.trim());
  return { chapter, title, quotation, hints, folder: join(workFolder(book), pad(chapter.n)) };
}

/** The file with a hole: of the flagged quotation only the first and the last line are left. */
export function withHole(book: Book, { chapter: { n }, quotation, title }: Exercise): string {
  const { file, runs, source } = quotation;
  const [first, last] = [runs[0]!.at, runs.at(-1)!.at + runs.at(-1)!.lines.length - 1];
  const indent = /^\s*/.exec(source[first]!)![0] + '  ';
  const hole = [`${indent}// Exercise ${n}: ${title}`, `${indent}throw new Error('exercise ${n} is not solved yet');`];
  const owned = SPINE.includes(file) ? owners(book, file) : source.map(() => n);
  const lines = source.flatMap((line, k) => {
    if (k > first && k < last) return k === first + 1 ? hole : [];
    return owned[k]! > 0 && owned[k]! <= n ? [line] : [];
  });
  return lines.join('\n').trimEnd() + '\n';
}

function writeExercise(book: Book, exercise: Exercise, folder = exercise.folder): void {
  const { chapter, quotation } = exercise;
  const again = (script: string) => `npm --prefix ${JSON.stringify(relative(folder, book.root))} run ${script} --`;
  const scripts = { workshop: again('workshop'), chapter: again('chapter') }; // for whoever works in that folder
  writeProgram(book, chapter.n, folder, {
    ...withDemo(book, chapter),
    'package.json': JSON.stringify({ type: 'module', private: true, scripts }),
    [quotation.file]: withHole(book, exercise),
  });
}

/** Runs a judge in this process, on the program in this folder. */
async function judge(book: Book, chapter: Chapter, folder: string): Promise<void> {
  const wire: { direction: string; text: string; serverName?: string }[] = [];
  let hope = { what: 'Node can load the program', wanted: 'no error' };
  const fail = (came: unknown) => {
    const text = cutShort(show(came)).replaceAll('\n', '\n            ');
    console.log(`✗ ${hope.what}\n  expected: ${hope.wanted}\n  came:     ${text}`);
    const names = new Set(wire.map(({ serverName }) => serverName)); // one alone needs no name
    const lines = wire.slice(-12).map(({ direction, text, serverName }) =>
      [direction === 'out' ? '→' : '←', names.size > 1 && serverName, text].filter(Boolean).join(' '));
    const isWire = wire.some(({ text }) => text.includes('"jsonrpc"'));
    if (wire.length > 0) console.log(`  ${isWire ? 'on the wire' : 'what happened'}:\n    ${lines.join('\n    ')}`);
    process.exit(1);
  };
  process.on('uncaughtException', fail);
  process.chdir(folder);
  setInterval(() => {}, 1000); // a program with a hole may leave Node with nothing to do, and that is no success
  const bench: Bench = {
    load: (file) => import(pathToFileURL(join(folder, file)).href),
    see: (direction, message, serverName) => {
      wire.push({ direction, text: cutShort(JSON.stringify(message) ?? show(message)), serverName });
    },
    expect: async (what, wanted, promise, isRight) => {
      hope = { what, wanted };
      const late = new Promise((done) => setTimeout(done, 3000, 'nothing, in three seconds').unref());
      const came = await Promise.race([promise, late]).catch((error) => error);
      if (isRight instanceof RegExp ? !isRight.test(show(came)) : !isRight(came)) fail(came);
      wire.length = 0; // the next check begins with a clean page
      console.log(`✓ ${what}`);
    },
  };
  const module = await import(pathToFileURL(join(book.root, chapter.folder, 'exercise.ts')).href);
  await (module.judge as Judge)(bench).catch(fail);
  console.log(ALL_WELL);
  process.exit(0);
}
const ALL_WELL = '(that was all)'; // else the program has left before the judge was done, and a code of 0 says nothing

const cutShort = (text: string) => (text.length > 400 ? `${text.slice(0, 400)}…` : text);
const show = (value: unknown) =>
  typeof value === 'string' || value instanceof Error ? `${value}` : inspect(value, { depth: 6, breakLength: 100 });

/** The verdict on the program in a folder, by a judge in a process of its own. */
function judged(book: Book, { chapter }: Exercise, folder: string): Promise<{ isGreen: boolean; output: string }> {
  const args = ['--import', 'tsx', join(book.root, 'chapters', 'book.ts'), 'judge', `${chapter.n}`, folder];
  const run = promisify(execFile)(process.execPath, args, { cwd: book.root, timeout: 40_000, killSignal: 'SIGKILL' });
  const odd = (what: string) => `✗ it comes to an end\n  expected: a verdict\n  came:     ${what}\n`;
  return run.then(
    ({ stdout }) => {
      const isGreen = stdout.includes(ALL_WELL);
      return { isGreen, output: isGreen ? stdout.replace(`${ALL_WELL}\n`, '') : stdout + odd('the program left before it was judged') };
    },
    ({ stdout, stderr, killed }) => {
      const endless = killed ? odd('none in 40 s; is there a loop without an end, and without an await in it?') : '';
      return { isGreen: false, output: stdout + stderr + endless };
    },
  );
}

const VERBS = ['list', 'start', 'check', 'hint', 'reset', 'watch', 'compare'];

async function workshop(book: Book, verb = 'list', which = ''): Promise<void> {
  if (!VERBS.includes(verb)) throw usage(`there is no "workshop ${verb}"; there are ${VERBS.slice(1).join(', ')}`);
  const exercises = book.chapters.flatMap((chapter) => exerciseOf(book, chapter) ?? []);
  if (verb === 'list') return listExercises(book, exercises);
  const exercise = exercises.find(({ chapter }) => chapter.n === Number(which));
  if (!exercise) throw usage(`which exercise? There are ${exercises.map(({ chapter }) => chapter.n).join(', ')}`);
  if (verb === 'start' || verb === 'reset') refuseIfChanged(book, exercise.chapter.n);
  const isBegun = isFile(yours(exercise));
  if (verb === 'start' && isBegun) console.log('You have begun; to begin anew, write reset for start.');
  if (verb === 'start') return start(book, exercise);
  if (!isBegun) throw usage(`you have not begun exercise ${which}; do so with: npm run workshop start ${which}`);
  if (verb === 'reset') return reset(book, exercise);
  if (verb === 'check') process.exitCode = (await tellVerdict(book, exercise)) ? 0 : 1;
  else if (verb === 'hint') giveHint(exercise);
  else if (verb === 'compare') await compare(book, exercise);
  else await watchFile(book, exercise);
}

const yours = ({ folder, quotation }: Exercise) => join(folder, quotation.file);
const shownFile = (exercise: Exercise) => relative(process.cwd(), yours(exercise));
/** The first line of what is to be written. */
const shownPlace = (exercise: Exercise) => {
  const line = linesOf(read(yours(exercise))).indexOf(exercise.quotation.runs[0]!.lines[0]!) + 2;
  return `${shownFile(exercise)}${line > 1 ? `:${line}` : ''}`;
};

/** What is solved is found out by running it. */
async function listExercises(book: Book, exercises: Exercise[]): Promise<void> {
  const verdicts = new Map<Exercise, boolean>();
  await sideBySide(exercises.filter((exercise) => isFile(yours(exercise))), async (exercise) => {
    verdicts.set(exercise, (await judged(book, exercise, exercise.folder)).isGreen);
  });
  for (const exercise of exercises) {
    const verdict = verdicts.get(exercise);
    const state = verdict === undefined ? '' : verdict ? '✓ solved' : '… not yet';
    console.log(`${state.padEnd(10)} ${pad(exercise.chapter.n)}  ${exercise.title}`);
  }
  const next = exercises.find((exercise) => !verdicts.get(exercise));
  if (!next) return console.log('\nAll solved.');
  const { n, page } = next.chapter;
  console.log(`\nNext: read ${page}, then npm run workshop ${verdicts.has(next) ? 'check' : 'start'} ${n}`);
}

function start(book: Book, exercise: Exercise): void {
  const { chapter: { n, page }, title } = exercise;
  if (!isFile(yours(exercise))) writeExercise(book, exercise);
  console.log(`Exercise ${n}: ${title}`);
  console.log(`  read    ${page}\n  edit    ${shownPlace(exercise)}`);
  console.log(`  check   npm run workshop check ${n}\n  stuck?  npm run workshop hint ${n}`);
}

function reset(book: Book, exercise: Exercise): void {
  let copies = 1;
  while (existsSync(`${exercise.folder}.old-${copies}`)) copies++;
  renameSync(exercise.folder, `${exercise.folder}.old-${copies}`);
  console.log(`Your old copy is now ${relative(process.cwd(), `${exercise.folder}.old-${copies}`)}.`);
  start(book, exercise);
}

async function tellVerdict(book: Book, exercise: Exercise): Promise<boolean> {
  const { chapter: { n }, folder } = exercise;
  const { isGreen, output } = await judged(book, exercise, folder);
  console.log(output.trimEnd());
  if (isGreen) console.log(`Solved. Yours beside ours: npm run workshop compare ${n}`);
  else console.log(`  look at:  ${shownPlace(exercise)}\n  stuck?    npm run workshop hint ${n}`);
  return isGreen;
}

function giveHint({ folder, hints, chapter }: Exercise): void {
  const file = join(folder, '.hints'); // one mark for each hint that was given
  appendFileSync(file, 'x');
  const given = hints.slice(0, read(file).length);
  for (const [n, hint] of given.entries()) console.log(`Hint ${n + 1} of ${hints.length}\n${hint}\n`);
  if (given.length === hints.length) console.log(`That was the last one. The page explains the solution: ${chapter.page}`);
}

async function compare(book: Book, exercise: Exercise): Promise<void> {
  const { chapter, folder, quotation: { file } } = exercise;
  if (!(await judged(book, exercise, folder)).isGreen) throw usage('compare shows our solution; first let yours pass');
  const mine = wholeFunction(linesOf(read(yours(exercise))), exercise);
  const ours = wholeFunction(linesOf(SPINE.includes(file) ? cut(book, file, chapter.n) : read(book.root, file)), exercise);
  const width = Math.max(7, ...mine.map((line) => line.length)) + 2;
  if (width + Math.max(...ours.map((line) => line.length)) > (process.stdout.columns ?? 0))
    return console.log(['── yours', ...mine, '── ours', ...ours].join('\n'));
  const rows = Array.from({ length: Math.max(mine.length, ours.length) }, (_, k) => [mine[k] ?? '', ours[k] ?? '']);
  for (const [left, right] of [['── yours', '── ours'], ...rows]) console.log(`${left!.padEnd(width)}│ ${right}`);
}

/** From the first line of the exercise's quotation to its last; all of it, if these are not there any more. */
function wholeFunction(lines: string[], { quotation: { runs } }: Exercise): string[] {
  const first = lines.indexOf(runs[0]!.lines[0]!);
  const last = lines.indexOf(runs.at(-1)!.lines.at(-1)!, first + 1);
  return first === -1 || last === -1 ? lines : lines.slice(first, last + 1);
}

async function watchFile(book: Book, exercise: Exercise): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  watch(dirname(yours(exercise)), (_, name) => {
    if (name !== basename(yours(exercise))) return;
    clearTimeout(timer); // editors write a file several times
    timer = setTimeout(() => void tellVerdict(book, exercise), 100);
  });
  console.log(`Watching ${shownFile(exercise)}; Ctrl-C ends.`);
  await tellVerdict(book, exercise);
}

// ─── Is the book true? ────────────────────────────────────────────────────────────────────────────────────────

/** All problems of the book, each as "file:line: what". With a number, of its consoles only those of one chapter. */
export async function check(book: Book, only = ''): Promise<string[]> {
  const problems = problemsOnPages(book);
  if (problems.length > 0) return problems; // nothing can be cut from quotations that do not match
  const chapters = book.chapters.filter(({ n }) => !only || n === Number(only));
  return [...(await problemsOfTypes(book)), ...(await problemsOfConsoles({ ...book, chapters }))];
}

/** What is wrong with the pages, as far as nothing has to be run to know it. */
export function problemsOnPages(book: Book): string[] {
  const problems = problemsOfQuotations(book);
  for (const chapter of book.chapters) {
    const { page, folder } = chapter;
    const hints = exerciseOf(book, chapter)?.hints.length;
    if (hints === undefined) problems.push(`${page}:1: no quotation is marked as the exercise`);
    else if (hints !== 3) problems.push(`${page}:1: the exercise has ${hints} hints, not three`);
    const missing = ['demo.ts', 'exercise.ts'].filter((name) => !isFile(book.root, folder, name));
    for (const name of missing) problems.push(`${page}:1: ${name} is missing`);
  }
  return [...problems, ...missingInContents(book), ...deadLinks(book), ...forwardImports(book), ...unknownMessages(book)];
}

/** The contents name every chapter with its title, its exercise and its minutes, as its page has them. */
function missingInContents(book: Book): string[] {
  const contents = 'chapters/README.md';
  if (!isFile(book.root, contents)) return [];
  const rows = linesOf(read(book.root, contents)).filter((line) => line.startsWith('| ['));
  return book.chapters.flatMap((chapter) => {
    const { n, title, folder, page } = chapter;
    const [, reading, doing] = /Reading\s+(\d+)\s+minutes,\s+doing\s+(\d+)/.exec(read(book.root, page)) ?? [];
    const facts = [`[${n}. ${title}](${basename(folder)}/README.md)`, exerciseOf(book, chapter)?.title ?? '', `${reading} + ${doing}`];
    const isThere = rows.some((row) => facts.every((fact) => row.includes(fact)));
    return isThere ? [] : [`${contents}:1: no row has all of this: ${facts.join(' | ')}`];
  });
}

/** Quotations that do not match, and lines that nobody quotes. */
function problemsOfQuotations(book: Book): string[] {
  const problems: string[] = [];
  for (const { page, quotations } of book.chapters)
    for (const { line, file, source, runs } of quotations) {
      if (source.length === 0) problems.push(`${page}:${line}: there is no file ${file} to quote`);
      for (const run of runs.filter(({ at }) => at === -1 && source.length > 0)) {
        const words = run.lines[0]!.trim();
        problems.push(`${page}:${run.line}: this is not in ${file}, below what is quoted before it: ${words}`);
      }
    }
  for (const file of spineOf(book)) {
    const source = linesOf(read(book.root, file));
    for (const [n, owner] of owners(book, file).entries())
      if (owner === 0 && source[n] !== '') problems.push(`${file}:${n + 1}: no chapter quotes this line`);
  }
  return problems;
}

function deadLinks(book: Book): string[] {
  const pages = ['README.md', ...filesIn(join(book.root, 'chapters'), book.root).filter((name) => name.endsWith('.md'))];
  const isDead = (page: string, link: string) => {
    const [path = '', section] = link.split('#');
    const file = path ? join(book.root, dirname(page), decodeURI(path)) : join(book.root, page);
    if (!existsSync(file)) return true;
    return section !== undefined && !linesOf(read(file)).some((text) => /^#+ /.test(text) && anchor(text) === section);
  };
  const isInFence = (text: string, n: number) => fencesIn(text).some(({ line, body }) => n + 1 >= line && n < line + body.length);
  return pages.flatMap((page) => linesOf(read(book.root, page)).flatMap((text, n, all) => {
    if (text.includes('](') && isInFence(all.join('\n'), n)) return []; // code is no link
    const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link!);
    const dead = links.filter((link) => !/^https?:/.test(link) && isDead(page, link));
    return dead.map((link) => `${page}:${n + 1}: this link leads nowhere: ${link}`);
  }));
}

/** What GitHub makes of a heading. */
function anchor(heading: string): string {
  return heading.replace(/^#+ /, '').toLowerCase().replace(/[^\p{L}\p{N}\p{Pc} -]/gu, '').replaceAll(' ', '-');
}

/** mcp.ts imports node: only, the fixtures also each other; a chapter mcp.ts, earlier chapters, and (from 15 on) agent.ts, which
 *  is chapter 15 and gives later ones its types. Only the composition and own.ts import all chapters; no module of a chapter
 *  imports the composition, so that another may take its place. */
function forwardImports(book: Book): string[] {
  const folders = ['chapters', 'fixtures'].flatMap((part) => filesIn(join(book.root, part), book.root));
  return ['mcp.ts', ...folders].filter((file) => /\.(ts|mjs)$/.test(file)).flatMap((file) => {
    const isEarlier = (name: string) => {
      if (name.startsWith('node:')) return true;
      if (!file.startsWith('chapters/')) return file.startsWith('fixtures/') && name.startsWith('./');
      const target = relative(book.root, resolve(book.root, dirname(file), name)).replaceAll('\\', '/');
      if (file === COMPOSITION || file === 'chapters/own.ts') return true;
      if (target === COMPOSITION) return NOT_PROGRAM.test(file);
      if (target === 'agent.ts') return dirname(file) >= 'chapters/15';
      return target === 'mcp.ts' || (target.startsWith('chapters/') && dirname(target) <= dirname(file));
    };
    const found = read(book.root, file).matchAll(/^(?:import|export|\}).* from '([^']+)';$|\bimport\('([^']+)'\)/gm);
    const late = [...found].map(([, name, lazy]) => name ?? lazy!).filter((name) => !isEarlier(name));
    return late.map((name) => `${file}:1: imports ${name}, which comes later`);
  });
}

/** Every heading of TROUBLESHOOTING.md is a message of the program; `…` stands for what differs. */
function unknownMessages(book: Book): string[] {
  const page = 'chapters/TROUBLESHOOTING.md';
  if (!isFile(book.root, page)) return [];
  const files = [...spineOf(book), ...filesIn(join(book.root, 'chapters'), book.root).filter((name) => name.endsWith('.ts'))];
  const source = files.map((file) => read(book.root, file)).join('\n');
  return linesOf(read(book.root, page)).flatMap((line, n) => {
    const message = /^#+ `(.*)`$/.exec(line)?.[1] ?? '';
    const unknown = message.split('…').map((part) => part.trim()).filter((part) => !source.includes(part));
    return unknown.map((part) => `${page}:${n + 1}: no message of the program says: ${part}`);
  });
}

/** Every chapter's program must pass the type-checker. */
export async function problemsOfTypes(book: Book): Promise<string[]> {
  const folder = cached(book, 'types');
  for (const { n } of book.chapters) writeProgram(book, n, join(folder, pad(n)));
  const { compilerOptions } = JSON.parse(read(book.root, 'tsconfig.json'));
  compilerOptions.noUnusedLocals = false; // what a chapter brings may be used by a later one
  put(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*/*.ts', '*/chapters/**/*.ts'] }));
  const tsc = join(book.root, 'node_modules', 'typescript', 'bin', 'tsc');
  const run = promisify(execFile)(process.execPath, [tsc, '-p', folder, '--pretty', 'false'], { cwd: folder });
  const complaints = await run.then(() => '', ({ stdout }) => `${stdout}`);
  return linesOf(complaints).filter(Boolean).map((line) => `the program of chapter ${line}`);
}

/** What a console block shows must be what a fresh run prints. A busy machine may be too slow for a demo, which is
 *  stopped after five seconds: so what differs is run once more, alone. */
export async function problemsOfConsoles(book: Book): Promise<string[]> {
  const fences = book.chapters.flatMap(({ page, fences: all }) => all.map((fence) => ({ page, ...fence })));
  const odd: typeof fences = [];
  await sideBySide(fences.filter(({ language }) => language === 'console'), async (block) => {
    if ((await problemsOfConsole(book, block)).length > 0) odd.push(block);
  });
  const problems: string[] = [];
  for (const block of odd) problems.push(...(await problemsOfConsole(book, block)));
  return problems;
}

async function problemsOfConsole(book: Book, { page, line, body }: Fence & { page: string }): Promise<string[]> {
  const problems: string[] = [];
  const home = mkdtempSync(join(tmpdir(), 'book '));
  for (const [n, text] of body.entries()) {
    if (!text.startsWith('$ ')) continue;
    const end = body.findIndex((other, k) => k > n && other.startsWith('$ '));
    const printed = await runShown(book, text.slice(2), home);
    const odd = firstDifference(body.slice(n + 1, end === -1 ? undefined : end), printed);
    if (odd === undefined) continue;
    const what = `a fresh run of "${text.slice(2)}" prints something else:\n${printed.join('\n')}`;
    problems.push(`${page}:${line + n + 1 + odd}: ${what}`);
  }
  rmSync(home, { recursive: true, force: true });
  return problems;
}

/** Runs a command as the reader would type it, but without npm's own lines, and in a home of its own. */
async function runShown(book: Book, command: string, home: string): Promise<string[]> {
  const { scripts } = JSON.parse(isFile(book.root, 'package.json') ? read(book.root, 'package.json') : '{}');
  const script = (_: string, name = 'start') => `${scripts[name]}`.replace(/^tsx /, 'node --import tsx ');
  const direct = command.replace(/^npm (?:run (\w+)|start)/, script).replace(' -- ', ' '); // npm takes that one away
  const path = `${dirname(process.execPath)}${delimiter}${process.env.PATH}`;
  const env = { PATH: path, HOME: home, USERPROFILE: home, WORK: join(home, 'work'), NO_COLOR: '1' };
  const run = promisify(execFile)('sh', ['-c', `{ ${direct}\n} 2>&1`], { cwd: book.root, env, timeout: 60_000 });
  const output = await run.then(({ stdout }) => stdout, ({ stdout }) => `${stdout}`);
  return linesOf(stripVTControlCharacters(output).replaceAll(book.root, '').replaceAll(home, '~').trimEnd());
}

/** The first line that differs. `…` alone on a line stands for any number of lines; times may differ. */
export function firstDifference(shown: string[], printed: string[]): number | undefined {
  const even = (text = '') => text.replace(/\b\d+(\.\d+)? (ms|s)\b/g, 'N $2');
  let at = 0;
  for (const [n, text] of shown.entries()) {
    const next = shown[n + 1];
    if (text !== '…') {
      if (at === printed.length || even(text) !== even(printed[at++])) return n;
    } else if (next === undefined) return undefined;
    else while (at < printed.length && even(printed[at]) !== even(next)) at++;
  }
  return at < printed.length ? shown.length : undefined;
}

async function sideBySide<T>(items: T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const queue = items.values(); // one queue, and six workers who empty it
  const empty = async () => {
    for (const item of queue) await work(item);
  };
  await Promise.all(Array.from({ length: 6 }, empty));
}

/** Puts the source's new words into quotations that no longer match. Returns what it could not find. */
export function fix(book: Book): string[] {
  const lost: string[] = [];
  for (const { page, quotations } of book.chapters) {
    const text = linesOf(read(book.root, page));
    const edits: (Run & { found: string[] })[] = [];
    for (const { file, source, runs } of quotations)
      for (const [k, run] of runs.entries()) {
        if (run.at !== -1) continue;
        const before = runs.slice(0, k).findLast(({ at }) => at !== -1);
        const after = runs.slice(k + 1).find(({ at }) => at !== -1);
        const found = mostAlike(run.lines, source.slice(before ? before.at + before.lines.length : 0, after?.at));
        if (found) edits.push({ ...run, found });
        else lost.push(`${page}:${run.line}: could not be found in ${file}: ${run.lines[0]!.trim()}`);
      }
    for (const { line, lines, found } of edits.reverse()) text.splice(line - 1, lines.length, ...found);
    if (edits.length > 0) writeFileSync(join(book.root, page), text.join('\n'));
  }
  return lost;
}

/** The stretch of the source that has the most lines of the quotation in their order, at least half of them. If the
 *  quotation's first or last lines are not among these, they have changed, and what stands in their place is taken. */
function mostAlike(quoted: string[], source: string[]): string[] | undefined {
  let best = { start: 0, end: 0, hits: 0 };
  for (const [start, line] of source.entries()) {
    if (line === '' || !quoted.includes(line)) continue;
    const stretch = { start, end: start, hits: 0 };
    let from = 0;
    for (let n = start; n < Math.min(source.length, start + quoted.length * 2 + 5); n++) {
      const at = quoted.indexOf(source[n]!, from);
      if (at === -1 || source[n] === '') continue;
      from = at + 1;
      Object.assign(stretch, { end: n, hits: stretch.hits + 1 });
    }
    if (stretch.hits > best.hits) best = stretch;
  }
  if (best.hits * 2 < quoted.filter((line) => line !== '').length) return undefined;
  const head = quoted.indexOf(source[best.start]!);
  const tail = quoted.length - 1 - quoted.lastIndexOf(source[best.end]!);
  return source.slice(Math.max(0, best.start - head), best.end + 1 + tail);
}

// ─── The slow judge ───────────────────────────────────────────────────────────────────────────────────────────

type Trial = { name: string; wantsGreen: boolean; isGreen: () => Promise<boolean> };

/** Each chapter's tests: red on the program of the chapter before, green on its own. Each exercise: red as it is
 *  handed out, green on the real program. */
async function deep(book: Book, only = ''): Promise<string[]> {
  const problems: string[] = [];
  const chapters = book.chapters.filter(({ n }) => !only || n === Number(only));
  const trials = chapters.flatMap((chapter) => [...trialsOfTests(book, chapter), ...trialsOfExercise(book, chapter)]);
  const odd: Trial[] = [];
  const isAsWanted = async ({ name, wantsGreen, isGreen }: Trial) => {
    const colour = (await isGreen()) ? 'green' : 'red';
    const isRight = (colour === 'green') === wantsGreen;
    console.log(`${isRight ? '✓' : '✗'} ${name} is ${colour}`);
    return isRight;
  };
  await sideBySide(trials, async (trial) => {
    if (!(await isAsWanted(trial))) odd.push(trial);
  });
  // A busy machine may be too slow for a judge: so what differs is run once more, alone.
  for (const trial of odd)
    if (!(await isAsWanted(trial))) problems.push(`${trial.name} should be ${trial.wantsGreen ? 'green' : 'red'}`);
  console.log(`${trials.length - problems.length} passed, ${problems.length} failed`);
  return problems;
}

function trialsOfTests(book: Book, { n }: Chapter): Trial[] {
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

function trialsOfExercise(book: Book, chapter: Chapter): Trial[] {
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
function testsPass(folder: string, file: string, wantsGreen: boolean): Promise<boolean> {
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

// ─── The commands ─────────────────────────────────────────────────────────────────────────────────────────────

const usage = (what: string) => Object.assign(new Error(what), { isUsage: true });

async function main([command = '', ...args]: string[]): Promise<void> {
  const book = readBook();
  const tell = (problems: string[], good: string) => {
    for (const problem of problems) console.error(problem);
    if (problems.length === 0) console.log(good);
    else process.exitCode = 1;
  };
  if (command === 'check') tell(await check(book, args[0]), 'The book is true.');
  else if (command === 'fix') tell(fix(book), 'Every quotation matches.');
  else if (command === 'deep') tell(await deep(book, args[0]), 'Every chapter adds what it says.');
  else if (command === 'chapter') await chapterCommand(book, args[0] ?? '', args[1]);
  else if (command === 'workshop') await workshop(book, ...args);
  else if (command === 'judge') await judge(book, book.chapters.find(({ n }) => n === Number(args[0]))!, args[1]!);
  else throw usage('npm run book check | fix | deep; npm run chapter; npm run workshop');
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url))
  main(process.argv.slice(2)).catch((error) => {
    console.error(error.isUsage ? error.message : error);
    process.exit(error.isUsage ? 2 : 1);
  });
