// child.ts: the process in which a module is judged: it may hang, loop or exit, and only this
// process with it. It plays the promises of one chapter, and tells the judge of each.

import { pathToFileURL } from 'node:url';
import { Mismatch, NotTried, show, type Bench, type Promised } from './bench.ts';
import { catalogue, type Kind } from './catalogue.ts';

/** `from` is the promise to begin with; without a chapter it only looks at what is there. */
export type Job = {
  kind: Kind;
  file: string;
  scratch: string;
  config?: unknown;
  chapter?: number;
  from?: number;
};
export type Verdict = {
  promise: string;
  state: 'kept' | 'broken' | 'not tried';
  fault?: string;
  expected?: string;
  came?: string;
  why?: string; // it was not tried
  isLost?: boolean; // the promise did not come to an end
};
/** What it tells: what is there, a verdict, or only that it lives. */
export type Told = { there?: string[]; verdict?: Verdict };

const LIMIT_MS = 12_000;
const CLEANING_MS = 4000;
const SIGN_OF_LIFE_MS = 1000;

const tell = (told: Told) => new Promise((done) => process.send!(told, done));
const within = (ms: number, work: Promise<unknown>, late: () => unknown) =>
  Promise.race([work, new Promise((done) => setTimeout(done, ms).unref()).then(late)]);

/** The names of what can be used: functions, and the methods of classes. */
function whatIsThere(subject: Record<string, unknown>): string[] {
  const names: string[] = [];
  for (const [name, value] of Object.entries(subject)) {
    if (typeof value !== 'function') continue;
    names.push(name);
    for (const method of methodsOf(value)) names.push(`${name}.${method}`);
  }
  return names;
}

function methodsOf(thing: any): string[] {
  const found = new Set<string>();
  let object = thing.prototype;
  try {
    // A method may also be a field that holds a function. A constructor may do nothing but check.
    if (/^class\b/.test(`${thing}`)) object = new thing('judge', { command: process.execPath }, {});
  } catch {}
  while (object && object !== Object.prototype) {
    for (const key of Object.getOwnPropertyNames(object)) {
      const { value } = Object.getOwnPropertyDescriptor(object, key)!;
      if (typeof value === 'function' && key !== 'constructor') found.add(key);
    }
    object = Object.getPrototypeOf(object);
  }
  return [...found];
}

async function judge({ promise, fault, play, limitMs = LIMIT_MS }: Promised, bench: Bench) {
  const cleaners: (() => unknown)[] = [];
  const later = (clean: () => unknown) => cleaners.push(clean);
  const broken = { promise, state: 'broken' as const, fault };
  let verdict: Verdict = { promise, state: 'kept' };
  const late = () => {
    verdict = { ...broken, came: `no end within ${limitMs / 1000} s`, isLost: true };
  };
  try {
    const playing = play({ ...bench, later });
    playing.catch(() => {}); // when it is late
    await within(limitMs, playing, late);
  } catch (error) {
    verdict = { ...broken, ...explained(error) };
    if (error instanceof NotTried) verdict = { promise, state: 'not tried', why: error.message };
  }
  const clean = async () => {
    for (const each of cleaners.reverse())
      await Promise.resolve()
        .then(each)
        .catch(() => {});
  };
  await within(CLEANING_MS, clean(), () => {});
  return verdict;
}

function explained(error: unknown): Partial<Verdict> {
  if (!(error instanceof Mismatch)) return { came: show(error) };
  const { expected, came } = error;
  return { expected, came, ...('hung' in error && { isLost: true }) };
}

async function main(): Promise<void> {
  const job: Job = JSON.parse(process.argv[2]!);
  process.on('disconnect', () => process.exit()); // the judge is gone
  process.on('unhandledRejection', (reason) => {
    if (!(reason instanceof Mismatch)) throw reason; // those are ours: somebody has stopped waiting
  });
  const { kind, file, scratch, config, chapter: n, from = 0 } = job;
  const subject = await import(pathToFileURL(file).href);
  setInterval(() => void tell({}), SIGN_OF_LIFE_MS).unref();
  if (n === undefined) {
    await tell({ there: whatIsThere(subject) });
    process.exit();
  }
  const chapter = catalogue[kind].find((each) => each.n === n)!;
  const bench = { subject, file, config, scratch, later: () => {} };
  for (const [index, promised] of chapter.promises.entries()) {
    if (index < from) continue;
    await tell({ verdict: await judge(promised, bench) });
  }
  process.exit();
}

await main();
