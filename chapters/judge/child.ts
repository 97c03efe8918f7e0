// child.ts: the process in which a module is judged: it may hang, loop or exit, and only this
// process with it. It plays the promises of one chapter, and tells the judge of each.

import { once } from 'node:events';
import { pathToFileURL } from 'node:url';
import {
  Mismatch,
  named,
  NotTried,
  pause,
  show,
  type Bench,
  type PromiseKind,
  type Promised,
} from './bench.ts';
import { catalogue, type Kind } from './catalogue.ts';

/** `promises` are the ids of those to play; without a chapter it only looks at what is there. */
export type Job = {
  kind: Kind;
  file: string;
  scratch: string;
  config?: unknown;
  chapter?: number;
  promises?: string[];
};
export type Verdict = {
  id: string;
  kind: PromiseKind;
  promise: string;
  exhibits: string[]; // of the museum, that show the same from outside
  state: 'kept' | 'broken' | 'not tried';
  fault?: string;
  expected?: string;
  came?: string;
  why?: string; // it was not tried
  isLost?: boolean; // the promise did not come to an end
};
/** What it tells: what is there, a verdict, or only that it lives. The word is the judge's own. */
export type Told = { word: string; there?: string[]; verdict?: Verdict };

const LIMIT_MS = 12_000;
const CLEANING_MS = 4000;
const ECHO_MS = 20; // an error that comes behind the end of a promise belongs to it
const SIGN_OF_LIFE_MS = 1000;

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

async function judge(promised: Promised, bench: Bench) {
  const { fault, play, limitMs = LIMIT_MS } = promised;
  const about = named(promised);
  const cleaners: (() => unknown)[] = [];
  const later = (clean: () => unknown) => cleaners.push(clean);
  const broken = { ...about, state: 'broken' as const, fault };
  let verdict: Verdict = { ...about, state: 'kept' };
  const late = () => {
    verdict = { ...broken, came: `no end within ${limitMs / 1000} s`, isLost: true };
  };
  try {
    const playing = play({ ...bench, later });
    playing.catch(() => {}); // when it is late
    await within(limitMs, playing, late);
  } catch (error) {
    verdict = { ...broken, ...explained(error) };
    if (error instanceof NotTried) verdict = { ...about, state: 'not tried', why: error.message };
  }
  const clean = async () => {
    for (const each of cleaners.reverse())
      await Promise.resolve()
        .then(each)
        .catch(() => {});
  };
  await within(CLEANING_MS, clean(), () => {});
  await pause(ECHO_MS);
  return verdict;
}

function explained(error: unknown): Partial<Verdict> {
  if (!(error instanceof Mismatch)) return { came: show(error) };
  const { expected, came } = error;
  return { expected, came, ...('hung' in error && { isLost: true }) };
}

async function main(): Promise<void> {
  // The client under judgement shares this process, and could speak to the judge as well. So the
  // judge's word is heard before that module is loaded, and stays in this function.
  const [{ word, job }] = (await once(process, 'message')) as [{ word: string; job: Job }];
  const send = process.send!.bind(process);
  const tell = (told: Omit<Told, 'word'>) => new Promise((done) => send({ ...told, word }, done));
  process.on('disconnect', () => process.exit()); // the judge is gone
  process.on('unhandledRejection', (reason) => {
    if (!(reason instanceof Mismatch)) throw reason; // those are ours: somebody has stopped waiting
  });
  const { kind, file, scratch, config, chapter: n, promises: wanted = [] } = job;
  const subject = await import(pathToFileURL(file).href);
  setInterval(() => void tell({}), SIGN_OF_LIFE_MS).unref();
  if (n === undefined) {
    await tell({ there: whatIsThere(subject) });
    process.exit();
  }
  const chapter = catalogue[kind].find((each) => each.n === n)!;
  const bench = { subject, file, config, scratch, later: () => {} };
  for (const promised of chapter.promises) {
    if (wanted.includes(promised.id)) await tell({ verdict: await judge(promised, bench) });
  }
  process.exit();
}

await main();
