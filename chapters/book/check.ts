// check.ts: is the book true? Here, as far as nothing has to be run to know it.

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { problemsOfCaptions } from './captions.ts';
import { problemsOfConsoles } from './consoles.ts';
import { problemsOfContents } from './contents.ts';
import { exerciseOf, exercisesOf, hasProject, type Exercise } from './exercise.ts';
import { filesIn, isFile, linesOf, read } from './files.ts';
import {
  chapterOf,
  COMPOSITION,
  ELLIPSIS,
  fencesIn,
  isPart,
  isSimpleVersion,
  nameOf,
  NOT_PROGRAM,
  owners,
  spineOf,
  type Book,
  type Quotation,
} from './pages.ts';
import { problemsOfHomes } from './homes.ts';
import { problemsOfInstructor } from './instructor.ts';
import { problemsOfLimits } from './limits.ts';
import { targetOf } from './plumbing.ts';
import { problemsOfPictures } from './pictures.ts';
import { problemsOfWrong } from './wrong.ts';
import { demoOf, linesOfAllSteps } from './program.ts';
import { problemsOfTypes } from './types.ts';
import { problemsOfWeaving } from './weave.ts';

/** All problems of the book, each as "file:line: what". With a number, of its consoles only those of one chapter. */
export async function check(book: Book, only = ''): Promise<string[]> {
  const problems = problemsOnPages(book);
  if (problems.length > 0) return problems; // nothing can be cut from quotations that do not match
  const chapters = book.chapters.filter(({ n }) => !only || n === Number(only));
  const running = [problemsOfTypes(book), problemsOfConsoles(book, chapters)];
  return (await Promise.all(running)).flat();
}

/** What is wrong with the pages, as far as nothing has to be run to know it. */
export function problemsOnPages(book: Book): string[] {
  const problems = [
    ...problemsOfQuotations(book),
    ...problemsOfPictures(book),
    ...problemsOfInstructor(book),
  ];
  for (const chapter of book.chapters) {
    const { page, folder } = chapter;
    const exercises = exercisesOf(book, chapter);
    if (chapter.n === 0 || hasProject(book, chapter)) continue; // all the others are about chapter 0
    if (!exerciseOf(book, chapter))
      problems.push(`${page}:1: no quotation is marked as the exercise`);
    for (const exercise of exercises) {
      const {
        hints: { length },
        quotation,
      } = exercise;
      if (length !== 3)
        problems.push(`${quotation.page}:1: the exercise has ${length} hints, not three`);
      problems.push(...problemsOfPlace(book, exercise), ...problemsOfWrong(book, exercise));
    }
    const judges = exercises.map(({ judge }) => judge);
    const missing = [...new Set(['demo.ts', 'exercise.ts', ...judges])].filter(
      (name) => !isFile(book.root, folder, name),
    );
    for (const name of missing) problems.push(`${page}:1: ${name} is missing`);
  }
  problems.push(...problemsOfStops(book), ...problemsOfStandIns(book), ...bigSteps(book));
  if (problems.length === 0)
    problems.push(
      ...problemsOfCaptions(book),
      ...problemsOfLimits(book),
      ...problemsOfContents(book),
    );
  return [
    ...problems,
    ...deadLinks(book),
    ...forwardImports(book),
    ...problemsOfHomes(book),
    ...strayParts(book),
    ...unknownMessages(book),
    ...problemsOfWeaving(book),
  ];
}

/** An exercise comes before its solution, and that is folded away: who looks for the one must not see the other. */
function problemsOfPlace(book: Book, { quotation }: Exercise): string[] {
  const { page } = quotation;
  const above = linesOf(read(book.root, page)).slice(0, quotation.line - 1);
  const count = (pattern: RegExp) => above.filter((line) => pattern.test(line)).length;
  const problems: string[] = [];
  if (count(/^## Exercise: /) === 0)
    problems.push('the heading "## Exercise: …" should be above the solution');
  if (count(/^<details>/) <= count(/^<\/details>/))
    problems.push('the solution should be folded, in <details>');
  return problems.map((what) => `${page}:${quotation.line}: ${what}`);
}

/** Quotations that do not match, and lines that nobody quotes. */
export function problemsOfQuotations(book: Book): string[] {
  const problems: string[] = [];
  for (const { quotations } of book.chapters)
    for (const { page, line, file, source, runs } of quotations) {
      if (source.length === 0) problems.push(`${page}:${line}: there is no file ${file} to quote`);
      for (const run of runs.filter(({ at }) => at === -1 && source.length > 0)) {
        const words = run.lines[0]!.trim();
        problems.push(
          `${page}:${run.line}: this is not in ${file}, below what is quoted before it: ${words}`,
        );
      }
    }
  for (const file of spineOf(book)) {
    const source = linesOf(read(book.root, file));
    for (const [n, owner] of owners(book, file).entries())
      if (owner === 0 && source[n] !== '')
        problems.push(`${file}:${n + 1}: no chapter quotes this line`);
  }
  return problems;
}

export const MAX_STEP = 165; // lines of the files that all chapters share: more than that nobody takes in at one go
const MAX_STAND_INS = 200; // lines of those files that others replace later, in the whole book
const MAX_SIMPLE = 50; // lines of a module's simple version: a longer one is not simple

/** No step is too big. */
function bigSteps(book: Book): string[] {
  return book.steps.flatMap((step) => {
    const added = spineOf(book).flatMap((file) =>
      linesOfAllSteps(book, file).filter(
        ({ since, text, tie }) => since === step && text !== '' && !tie,
      ),
    );
    if (added.length <= MAX_STEP) return [];
    const { page } = chapterOf(book, step)!;
    return [
      `${page}:1: the step ${nameOf(step)} adds ${added.length} lines, more than ${MAX_STEP}: it needs a stop`,
    ];
  });
}

/** Lines that others replace later: in which place, and by which lines, must be clear. */
function problemsOfStandIns(book: Book): string[] {
  const all = book.chapters.flatMap(({ quotations }) =>
    quotations.filter(({ until }) => until !== undefined),
  );
  const problemsOf = (standIn: Quotation) =>
    isSimpleVersion(standIn)
      ? problemsOfSimpleVersion(book, standIn)
      : problemsOfStandIn(book, standIn);
  const problems = all.flatMap((standIn) =>
    problemsOf(standIn).map((what) => `${standIn.page}:${standIn.line}: ${what}`),
  );
  for (const [k, one] of all.entries()) {
    const isSamePlace = (two: Quotation) =>
      two.file === one.file && two.runs[0]?.at === one.runs[0]?.at;
    const twin = all
      .slice(k + 1)
      .find((two) => isSamePlace(two) && two.step < one.until! && one.step < two.until!);
    if (twin)
      problems.push(
        `${twin.page}:${twin.line}: ${one.page}:${one.line} still stands in for the same lines, until ${nameOf(one.until!)}`,
      );
  }
  const ofSpine = all.filter((each) => !isSimpleVersion(each));
  const count = ofSpine.reduce((sum, { body }) => sum + body.length - 2, 0);
  if (count > MAX_STAND_INS)
    problems.push(
      `chapters/README.md:1: ${count} lines are there only for a while, more than ${MAX_STAND_INS}`,
    );
  return problems;
}

function problemsOfStandIn(
  book: Book,
  { file, source, runs, until = 0, step, words }: Quotation,
): string[] {
  const [first, last] = runs.map(({ at }) => at) as [number, number];
  if (first === -1) return [`its first line must be in ${file} exactly once`];
  if (last === -1) return [`its last line is not in ${file} below the first`];
  if (!book.steps.includes(until) || until <= step) return [`there is no later step ${words[2]}`];
  const owned = owners(book, file).slice(first + 1, last);
  // A blank line goes with the line below it, which may be the last.
  const early = owned.findIndex((owner, k) => owner < until && source[first + 1 + k] !== '');
  if (early !== -1)
    return [`${file}:${first + 2 + early} is quoted before ${words[2]}, and would be there twice`];
  const holes = book.chapters.flatMap((chapter) =>
    exercisesOf(book, chapter).map(({ quotation }) => quotation),
  );
  const isInHole = holes.some((hole) => {
    const end = hole.runs.at(-1);
    return (
      hole.file === file &&
      first >= hole.runs[0]!.at &&
      first < end!.at + end!.lines.length &&
      hole.step < until &&
      step <= Math.ceil(hole.step) // an exercise is the program at the end of its chapter
    );
  });
  return isInHole
    ? ['an exercise is to write these lines, so they cannot be others for a while']
    : [];
}

/** A module's simple version is whole, short, and over at the end of its chapter; until then its file is not quoted. */
function problemsOfSimpleVersion(
  book: Book,
  { file, body, step, until = 0, words }: Quotation,
): string[] {
  const chapter = chapterOf(book, step)!;
  if (!file.startsWith(`${chapter.folder}/`) || NOT_PROGRAM.test(file))
    return [`a simple version is one of a module in the folder ${chapter.folder}`];
  if (!book.steps.includes(until) || until <= step) return [`there is no later step ${words[2]}`];
  if (until > chapter.n) return [`at the end of chapter ${chapter.n} its modules are whole`];
  if (body.length > MAX_SIMPLE)
    return [`${body.length} lines, more than ${MAX_SIMPLE}, are no simple version`];
  const gap = body.findIndex((line) => ELLIPSIS.test(line));
  if (gap !== -1) return ['a simple version is the whole file, without gaps'];
  const early = chapter.quotations.find(
    (each) => each.file === file && each.until === undefined && each.step < until,
  );
  return early ? [`${early.page}:${early.line} quotes ${file} before ${words[2]}`] : [];
}

/** Every stop has its number and its demo. */
function problemsOfStops(book: Book): string[] {
  return book.chapters.flatMap((chapter) =>
    chapter.stops.flatMap((step, k) => {
      const wanted = `${chapter.n}.${k + 1}`;
      if (nameOf(step) !== wanted)
        return [`${chapter.page}:1: the stop ${nameOf(step)} should be ${wanted}`];
      const demo = demoOf(chapter, step);
      return isFile(book.root, demo) ? [] : [`${chapter.page}:1: ${demo} is missing`];
    }),
  );
}

export function deadLinks(book: Book): string[] {
  // The words of a translation have the links of their page, where they will be.
  const inChapters = filesIn(join(book.root, 'chapters'), book.root).filter(
    (name) => name.endsWith('.md') && !name.startsWith('chapters/book/'),
  );
  const pages = ['README.md', '.github/SECURITY.md', ...inChapters].filter((page) =>
    isFile(book.root, page),
  );
  const isDead = (page: string, link: string) => {
    const [path = '', section] = link.split('#');
    const file = path ? join(book.root, dirname(page), decodeURI(path)) : join(book.root, page);
    if (!existsSync(file)) return true;
    const [, at] = /^L(\d+)$/.exec(section ?? '') ?? []; // a line of a source
    if (at) return !linesOf(read(file))[Number(at) - 1];
    return (
      section !== undefined &&
      !linesOf(read(file)).some((text) => /^#+ /.test(text) && anchor(text) === section)
    );
  };
  const isInFence = (text: string, n: number) =>
    fencesIn(text).some(({ line, body }) => n + 1 >= line && n < line + body.length);
  return pages.flatMap((page) =>
    linesOf(read(book.root, page)).flatMap((text, n, all) => {
      if (text.includes('](') && isInFence(all.join('\n'), n)) return []; // code is no link
      const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link!);
      const dead = links.filter((link) => !/^https?:/.test(link) && isDead(page, link));
      return dead.map((link) => `${page}:${n + 1}: this link leads nowhere: ${link}`);
    }),
  );
}

/** What GitHub makes of a heading. */
export function anchor(heading: string): string {
  return heading
    .replace(/^#+ /, '')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{Pc} -]/gu, '')
    .replaceAll(' ', '-');
}

/** mcp.ts and its parts, in chapters 1 to 14, import node: and each other; the fixtures each other. A module of chapter 16
 *  or later imports mcp.ts, agent.ts, and earlier chapters. agent.ts and its parts are cut by line, so there a line may
 *  name a later chapter: what each program has, the type-checker tells. Only the composition, connect.ts, own.ts, start.ts and the package's faces import
 *  all chapters, and this machinery itself; no module imports the composition, so that another may take its place. */
export function forwardImports(book: Book): string[] {
  const folders = ['chapters', 'fixtures'].flatMap((part) =>
    filesIn(join(book.root, part), book.root),
  );
  const files = ['mcp.ts', ...folders].filter((file) => /\.(ts|mjs)$/.test(file));
  return files.flatMap((file) => {
    const found = read(book.root, file).matchAll(
      /^(?:import|export|\}).* from '([^']+)';$|\bimport\('([^']+)'\)/gm,
    );
    const names = [...found].map(([, name, lazy]) => name ?? lazy!);
    const late = names.filter((name) => !mayImport(file, name));
    return late.map((name) => `${file}:1: imports ${name}, which comes later`);
  });
}

const IMPORTS_ALL =
  /^chapters\/(composition|connect|own|start|package\/\w+|(book|judge)(\/[\w-]+)?)\.ts$/;

function mayImport(file: string, name: string): boolean {
  if (name.startsWith('node:')) return true;
  if (file.startsWith('fixtures/')) return name.startsWith('./');
  if (IMPORTS_ALL.test(file)) return true;
  const target = targetOf(file, name);
  const isJudge = NOT_PROGRAM.test(file); // a demo or an exercise
  if (isJudge && /^chapters\/[\w-]+\.ts$/.test(target)) return true;
  if (target === COMPOSITION) return false;
  if (target === 'mcp.ts') return true;
  const isOfClient = (each: string) => isPart(each) && numberOf(each) < 15;
  if (file === 'mcp.ts' || isOfClient(file)) return isOfClient(target);
  if (isPart(file)) return true;
  if (target === 'agent.ts') return numberOf(file) >= 15;
  return numberOf(target) <= numberOf(file);
}

/** The chapter of a file in one of their folders. */
const numberOf = (file: string) => Number(/^chapters\/(\d\d)-/.exec(file)?.[1] ?? Infinity);

/** A part lies in the folder of the chapter that quotes its first line: then a program has no file of a later one. */
function strayParts(book: Book): string[] {
  return spineOf(book)
    .filter(isPart)
    .flatMap((file) => {
      const steps = owners(book, file).filter((step) => step > 0);
      const first = chapterOf(book, Math.min(...steps))?.n;
      if (first === undefined || first === numberOf(file)) return [];
      return [`${file}:1: it should lie in the folder of chapter ${first}, which quotes it first`];
    });
}

/** Every heading of TROUBLESHOOTING.md is a message of the program; `…` stands for what differs. */
export function unknownMessages(book: Book): string[] {
  const page = 'chapters/TROUBLESHOOTING.md';
  if (!isFile(book.root, page)) return [];
  const files = [
    ...spineOf(book),
    ...filesIn(join(book.root, 'chapters'), book.root).filter((name) => name.endsWith('.ts')),
  ];
  const source = files.map((file) => read(book.root, file)).join('\n');
  return linesOf(read(book.root, page)).flatMap((line, n) => {
    const message = /^#+ `(.*)`$/.exec(line)?.[1] ?? '';
    const unknown = message
      .split('…')
      .map((part) => part.trim())
      .filter((part) => !source.includes(part));
    return unknown.map((part) => `${page}:${n + 1}: no message of the program says: ${part}`);
  });
}
