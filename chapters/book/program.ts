// program.ts: the program as it is at a step: all lines that belong to it and to those before it, and the lines that are
// there only until a later one. Nothing is stored, it is cut on demand.

import { existsSync, lstatSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { filesIn, isFile, linesOf, put, read, usage } from './files.ts';
import {
  NOT_PROGRAM,
  isPart,
  isSimpleVersion,
  isSpine,
  nameOf,
  owners,
  quotationsOf,
  stepBefore,
  spineOf,
  type Book,
  type Chapter,
  type Quotation,
  type Step,
} from './pages.ts';
import {
  declaredIn,
  folded,
  headIn,
  pathTo,
  targetOf,
  tiesIn,
  withNames,
  wordsIn,
  type Declared,
  type Tie,
} from './plumbing.ts';

/** A line of a file at some step. `at` is its place in the final file, or -1; `since` and `until` are steps. A `tie` is a
 *  whole statement, which may have several lines. */
export type Line = { text: string; at: number; since: Step; until: Step; tie?: Tie };

const found = new WeakMap<Book, Map<string, unknown>>();

/** What is asked for hundreds of times is worked out once. */
export function remembered<T>(book: Book, what: string, find: () => T): T {
  const known = found.get(book) ?? new Map<string, unknown>();
  found.set(book, known);
  if (!known.has(what)) known.set(what, find());
  return known.get(what) as T;
}

/** All lines that a file has at any step. */
export function linesOfAllSteps(book: Book, file: string): Line[] {
  return remembered(book, `lines ${file}`, () => readLines(book, file));
}

function readLines(book: Book, file: string): Line[] {
  const owned = owners(book, file);
  const standIns = quotationsOf(book, file).filter(({ until }) => until !== undefined);
  const source = linesOf(read(book.root, file));
  const ties = tiesIn(source);
  return source.flatMap((text, at) => {
    const tie = ties.find(({ start, end }) => at >= start && at <= end);
    if (tie && at > tie.start) return [];
    const line: Line = { text: tie?.text ?? text, at, since: owned[at]!, until: Infinity, tie };
    const here = standIns.filter(({ runs }) => runs[0]!.at === at && runs[1]!.at !== -1);
    const others = here.flatMap(({ body, step, until }) =>
      body
        .slice(1, -1)
        .map((inside): Line => ({ text: inside, at: -1, since: step, until: until! })),
    );
    return [line, ...others];
  });
}

export const isThere = ({ since, until }: Line, step: Step) =>
  since > 0 && since <= step && step < until;

export function cut(book: Book, file: string, step: Step): string {
  const tied = tiedBy(linesAt(book, file, step), (tie) => tieAt(book, file, step, tie));
  return asText(withImports(book, file, step, tied).map(({ text }) => text));
}

/** What was between two blank lines may be gone. */
export const asText = (lines: string[]) =>
  `${lines
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()}\n`;

/** The lines of a file at a step, each statement that ties it to others as it is in the end. */
function linesAt(book: Book, file: string, step: Step): Line[] {
  return remembered(book, `lines ${step} ${file}`, () =>
    linesOfAllSteps(book, file).filter((line) => isThere(line, step)),
  );
}

// ─── What ties the files of one program together ───

/** For whoever solves an exercise, who may need other names than we did: all that a part has so far. */
export function linesForLearner(book: Book, file: string, step: Step): Line[] {
  const tied = tiedBy(linesAt(book, file, step), (tie) => {
    const target = targetOf(file, tie.path);
    const isOfPart = tie.verb === 'import' && isPart(target);
    if (!isOfPart) return tieAt(book, file, step, tie);
    return importOf(file, target, declaredAt(book, target, step));
  });
  return withImports(book, file, step, tied);
}

/** Each statement as `write` has it, or not at all. */
function tiedBy(lines: Line[], write: (tie: Tie) => string | undefined): Line[] {
  return lines.flatMap((line) => {
    const text = line.tie ? write(line.tie) : line.text;
    return text === undefined ? [] : [{ ...line, text }];
  });
}

/** A statement as it is at a step; undefined if nothing of it is left. A word that is used may also be the name of a
 *  field, so the other file must have it by then. */
function tieAt(book: Book, file: string, step: Step, tie: Tie): string | undefined {
  const target = targetOf(file, tie.path);
  const isOurs = tie.path.startsWith('.');
  if (isOurs && !isInProgram(book, target, step)) return undefined;
  if (!tie.names) return tie.text;
  const used = usedAt(book, file, step);
  const given = givenBy(book, target, step);
  const isGiven = (name: string) => given?.has(name) ?? true;
  const isUsed = (name: string) => tie.verb === 'export' || used.has(name);
  const names = tie.names.filter(({ name, local }) => isGiven(name) && isUsed(local));
  return withNames(tie, names);
}

/** What a file gives to others; undefined if it gives all that it has in the end. */
function givenBy(book: Book, file: string, step: Step): Set<string> | undefined {
  if (isSpine(file)) return exportsAt(book, file, step);
  const simple = simpleVersion(book, file, step);
  const own = simple && declaredIn(simple.body).filter(({ isExported }) => isExported);
  return own && new Set(own.map(({ name }) => name));
}

function usedAt(book: Book, file: string, step: Step): Set<string> {
  return remembered(book, `words ${step} ${file}`, () => {
    const lines = linesAt(book, file, step).filter(({ tie }) => !tie);
    return wordsIn(lines.map(({ text }) => text));
  });
}

/** Adds what lines that others replace later need of the parts: in the end their file need not import it any more. */
function withImports(book: Book, file: string, step: Step, lines: Line[]): Line[] {
  const standIns = lines.filter(({ until }) => until !== Infinity);
  const used = wordsIn(standIns.map(({ text }) => text));
  const texts = lines.map(({ text }) => text);
  const own = declaredIn(texts).map(({ name }) => name);
  const tied = lines.filter(({ tie }) => tie).map(({ text }) => text);
  const known = new Set([...own, ...wordsIn(tied)]);
  const parts = spineOf(book).filter((part) => isPart(part) && part !== file);
  const added = parts.flatMap((part): Line[] => {
    const all = used.size > 0 ? declaredAt(book, part, step) : [];
    const missing = all.filter(({ name }) => used.has(name) && !known.has(name));
    const text = importOf(file, part, missing);
    return text === undefined ? [] : [{ text, at: -1, since: step, until: Infinity }];
  });
  const head = headIn(texts);
  return [...lines.slice(0, head), ...added, ...lines.slice(head)];
}

function importOf(file: string, target: string, declared: Declared[]): string | undefined {
  const given = declared.filter(({ isExported }) => isExported);
  if (given.length === 0) return undefined;
  const names = given.map(({ name, isType }) => (isType ? `type ${name}` : name));
  return folded('import ', names, pathTo(file, target));
}

function declaredAt(book: Book, file: string, step: Step): Declared[] {
  return declaredIn(linesAt(book, file, step).map(({ text }) => text));
}

/** The names that a file of the spine gives to others in the program of a step. */
function exportsAt(book: Book, file: string, step: Step): Set<string> {
  return remembered(book, `exports ${step} ${file}`, () => {
    const source = linesAt(book, file, step).flatMap(({ text }) => linesOf(text));
    const own = declaredIn(source).filter(({ isExported }) => isExported);
    const gifts = tiesIn(source).filter(({ verb }) => verb === 'export');
    const passedOn = gifts.flatMap(({ path, names }) => {
      const target = targetOf(file, path);
      if (!isInProgram(book, target, step)) return [];
      return names?.map(({ local }) => local) ?? [...exportsAt(book, target, step)]; // only parts give all
    });
    return new Set([...own.map(({ name }) => name), ...passedOn]);
  });
}

function isInProgram(book: Book, file: string, step: Step): boolean {
  if (isSpine(file)) return isFile(book.root, file) && linesAt(book, file, step).length > 0;
  const chapter = book.chapters.find(({ folder }) => file.startsWith(`${folder}/`));
  if (!chapter) return isFile(book.root, file);
  const key = `modules ${step} ${chapter.n}`;
  return remembered(book, key, () => modulesOf(book, chapter, step)).includes(file);
}

const MUSEUM = 32;

/** The files of the program as of a step: what belongs to it and to those before it, and the servers to talk to.
 *  `instead` holds files that take the place of the program's, or come along with it. */
export function filesOfProgram(
  book: Book,
  step: Step,
  instead: Record<string, string> = {},
): Map<string, string> {
  const ours = remembered(book, `program ${step}`, () => ownFilesOf(book, step));
  return new Map([...ours, ...Object.entries(instead)]);
}

function ownFilesOf(book: Book, step: Step): Map<string, string> {
  const files = new Map([['package.json', '{ "type": "module", "private": true }\n']]);
  for (const file of spineOf(book)) {
    const text = cut(book, file, step);
    if (text.trim()) files.set(file, text);
  }
  const modules = book.chapters.flatMap((chapter) => modulesOf(book, chapter, step));
  const servers = filesIn(join(book.root, 'fixtures'), book.root).filter(
    // The museum is about other programs, and comes with its chapter; but habits.mjs shares a file of it.
    (name) =>
      (step >= MUSEUM ? /\.mjs$/ : /^fixtures\/([^/]+|museum\/exhibits\/odd)\.mjs$/).test(name),
  );
  const pages = book.chapters
    .filter(({ n }) => n <= step)
    .flatMap((chapter) => pagesOf(book, chapter));
  for (const name of [...servers, ...pages]) files.set(name, read(book.root, name));
  for (const name of modules) files.set(name, moduleAt(book, name, step));
  return files;
}

export function writeProgram(
  book: Book,
  step: Step,
  folder: string,
  instead?: Record<string, string>,
): void {
  writeFiles(folder, filesOfProgram(book, step, instead));
}

/** Afterwards the folder holds these files, and no others. */
export function writeFiles(folder: string, files: Map<string, string>): void {
  refuseLinks(folder);
  for (const name of filesIn(folder))
    if (!files.has(name)) rmSync(join(folder, name), { force: true });
  for (const [name, text] of files) put(join(folder, name), text);
}

/** What is behind a link, such as a node_modules that somebody has linked, is not ours to write or to clear away. */
function refuseLinks(folder: string): void {
  const isLink = (path: string) => lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink();
  const names = existsSync(folder) ? (readdirSync(folder, { recursive: true }) as string[]) : [];
  const link = [folder, ...names.map((name) => join(folder, name))].find(isLink);
  if (link) throw new Error(`${link} is a link, and no program is written there; move it away`);
}

/** Whole files, which come with their chapter; at a stop inside its page only those that were quoted by then, and what
 *  these import from its folder. */
export function modulesOf(book: Book, { folder, n, stops }: Chapter, step: Step): string[] {
  if (step < (stops[0] ?? n)) return [];
  const modules = filesOf(book, folder).filter(
    (name) => /\.(ts|mjs)$/.test(name) && !NOT_PROGRAM.test(name) && !isPart(name),
  );
  if (step >= n) return modules;
  const isQuoted = (name: string) => quotationsOf(book, name).some((each) => each.step <= step);
  const needed = new Set(modules.filter(isQuoted));
  for (const name of needed) // it grows while it is read
    for (const { path } of tiesIn(linesOf(moduleAt(book, name, step)))) {
      const target = targetOf(name, path);
      if (modules.includes(target)) needed.add(target);
    }
  return modules.filter((name) => needed.has(name));
}

/** The page's simple version of a module, if that is its text at this step. */
function simpleVersion(book: Book, file: string, step: Step): Quotation | undefined {
  const versions = quotationsOf(book, file).filter(isSimpleVersion);
  return versions.findLast((each) => each.step <= step && step < each.until!);
}

/** A module's text: the simple version that its page has for a while, or the file. */
function moduleAt(book: Book, file: string, step: Step): string {
  const simple = simpleVersion(book, file, step);
  return simple ? asText(simple.body) : read(book.root, file);
}

/** What a program shows in a browser. */
function pagesOf(book: Book, { folder }: Chapter): string[] {
  return filesOf(book, folder).filter((name) => name.endsWith('.html'));
}

const filesOf = (book: Book, folder: string) =>
  book.files.filter((file) => file.startsWith(`${folder}/`));

export const cached = (book: Book, name: string) => join(book.root, '.cache', 'book', name);
export const workFolder = (book: Book) => process.env.WORK ?? join(book.root, 'work');
/** The demo of a chapter is no part of the program, but goes along with it. A stop has its own. */
export function demoOf({ folder, n }: Chapter, step: Step = n): string {
  return step === n ? `${folder}/demo.ts` : `${folder}/demo-${nameOf(step).split('.')[1]}.ts`;
}

export const withDemo = (book: Book, chapter: Chapter, step?: Step) => {
  const file = demoOf(chapter, step);
  return { [file]: read(book.root, file) };
};

/** The program of a step cannot be cut out of files that are no longer what its pages say of them. */
export function refuseIfChanged(book: Book, step: Step): void {
  const quotations = book.chapters
    .flatMap((chapter) => chapter.quotations)
    .filter((each) => each.step <= step);
  const lost = quotations.find(
    ({ file, runs }) => isSpine(file) && runs.some(({ at }) => at === -1),
  );
  if (!lost) return;
  const advice = `Exercises are edited in work/, not there. To get it back: git checkout ${lost.file}`;
  throw usage(
    `${lost.file} is not the program of the book any more (npm run book check says where). ${advice}`,
  );
}

/** What a step adds to the files that all chapters share and takes from them, with two lines around it. A whole chapter is
 *  compared with the chapter before, a stop inside a page with the step before. */
export function diff(book: Book, step: Step): string[] {
  const chapters = book.chapters.map(({ n }) => n);
  const isWhole = chapters.includes(step);
  const before = isWhole ? (chapters[chapters.indexOf(step) - 1] ?? 0) : stepBefore(book, step);
  return spineOf(book).flatMap((file) => {
    const all = linesOfAllSteps(book, file).filter(
      (line) => !line.tie && (isThere(line, step) || isThere(line, before)),
    );
    const sign = (line: Line) => {
      if (!isThere(line, step)) return '-';
      return isThere(line, before) ? ' ' : '+';
    };
    const near = all.filter((_, k) =>
      all.slice(Math.max(0, k - 2), k + 3).some((line) => sign(line) !== ' '),
    );
    const count = near.filter((line) => sign(line) === '+').length;
    const gone = near.filter((line) => sign(line) === '-').length;
    if (count + gone === 0) return [];
    const shown = near.map((line) => `${sign(line)} ${line.text}`.trimEnd());
    return [`── ${file}: ${count} lines${gone > 0 ? `, in the place of ${gone}` : ''}`, ...shown];
  });
}
