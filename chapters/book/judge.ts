// judge.ts: what the judge of an exercise says of the program in a folder. It runs the bench in Node.

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { text } from 'node:stream/consumers';
import { inspect } from 'node:util';
import { Worker } from 'node:worker_threads';
import { endGroup, nodeInOwnGroup } from './own-group.ts';
import {
  benchIn,
  endedBy,
  ENDLESS,
  freezeWhatJudges,
  LEFT_EARLY,
  LIMIT_MS,
  LOOP_S,
  TOO_LATE,
} from './bench.ts';
import type { Exercise, Judge } from './exercise.ts';
import type { Book } from './pages.ts'; // types only: hundreds of solutions are judged, each by this file alone

/** Runs a judge, which is an exercise.ts, in this process, on the program in this folder. If that was compiled, then into
 *  `modules`. Whoever reads the verdict from outside gives a word that the solution cannot know, and that is printed when
 *  all is well: else a solution could print the last line itself, and leave. */
export async function judge(
  file: string,
  folder: string,
  modules?: string,
  word = ALL_WELL,
): Promise<void> {
  const print = console.log.bind(console); // as it is before the solution is loaded
  freezeWhatJudges();
  for (const way of ['exit', 'reallyExit'])
    Object.defineProperty(process, way, { writable: false, configurable: false });
  const load = (name: string) => {
    const isCompiled = modules !== undefined && name.endsWith('.ts');
    const path = isCompiled ? join(modules, name.replace(/\.ts$/, '.js')) : join(folder, name);
    return import(pathToFileURL(path).href);
  };
  const { bench, fail } = benchIn({ load, print, inspect, leave: () => process.exit(1) });
  process.on('uncaughtException', fail);
  process.chdir(folder);
  watchForLoops();
  const module = await import(pathToFileURL(file).href);
  await (module.judge as Judge)(bench).catch(fail);
  print(word);
  process.exit(0);
}
const ALL_WELL = '(that was all)';

/** In a loop without an end this thread has no time for anything else. So it counts the seconds, and another looks whether
 *  it still does. (A program with a hole may also leave Node with nothing to do, and that is no success: so it counts on.) */
function watchForLoops(): void {
  const seconds = new Int32Array(new SharedArrayBuffer(4));
  setInterval(() => Atomics.add(seconds, 0, 1), 1000);
  const look = `
    const { workerData: { seconds, ENDLESS, LOOP_S } } = require('node:worker_threads');
    let before = 0;
    let still = 0;
    setInterval(() => {
      still = seconds[0] === before ? still + 1 : 0;
      before = seconds[0];
      if (still < LOOP_S) return;
      require('node:fs').writeSync(1, ENDLESS);
      process.kill(process.pid, 'SIGKILL');
    }, 1000);`;
  new Worker(look, { eval: true, workerData: { seconds, ENDLESS, LOOP_S } }).unref();
}

export const judgeOf = (book: Book, { chapter, judge: file }: Exercise) =>
  join(book.root, chapter.folder, file);

export type Verdict = { isGreen: boolean; output: string };

/** The verdict on the program in a folder, by a judge in a process of its own. */
export function judged(book: Book, exercise: Exercise, folder: string): Promise<Verdict> {
  return verdict(book, [
    '--import',
    'tsx',
    fileURLToPath(import.meta.url),
    judgeOf(book, exercise),
    folder,
  ]);
}

export async function verdict(book: Book, args: string[]): Promise<Verdict> {
  const word = randomUUID();
  const child = nodeInOwnGroup(args, { cwd: book.root, stdio: 'pipe' });
  child.stdin!.on('error', () => {}).end(word);
  let isLate = false;
  const late = () => {
    isLate = true;
    endGroup(child);
  };
  const timer = setTimeout(late, LIMIT_MS);
  const closed = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  const [stdout, stderr, [code, signal]] = await Promise.all([
    text(child.stdout!),
    text(child.stderr!),
    closed,
  ]);
  clearTimeout(timer);
  const isGreen = code === 0 && stdout.endsWith(`${word}\n`);
  if (isGreen) return { isGreen, output: stdout.slice(0, -word.length - 1) };
  if (isLate) return { isGreen, output: stdout + stderr + TOO_LATE };
  if (code === 0) return { isGreen, output: stdout + LEFT_EARLY };
  const ended = signal && !stdout.includes(ENDLESS) ? endedBy(signal) : '';
  return { isGreen, output: stdout + stderr + ended };
}

const [, started = '', file = '', folder = '', modules] = process.argv;
if (resolve(started) === fileURLToPath(import.meta.url))
  await judge(file, resolve(folder), modules, readFileSync(0, 'utf8'));
