// judge.ts: what the judge of an exercise says of the program in a folder.

import { execFile } from 'node:child_process';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { inspect, promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import type { Bench, Exercise, Judge } from './exercise.ts';
import type { Book } from './pages.ts'; // types only: hundreds of solutions are judged, each by this file alone

/** Runs a judge, which is an exercise.ts, in this process, on the program in this folder. If that was compiled, then into
 *  `modules`. */
export async function judge(file: string, folder: string, modules?: string): Promise<void> {
  const wire: { direction: string; text: string; serverName?: string }[] = [];
  let hope = { what: 'Node can load the program', wanted: 'no error' };
  const fail = (came: unknown) => {
    const text = cutShort(show(came)).replaceAll('\n', '\n            ');
    console.log(`✗ ${hope.what}\n  expected: ${hope.wanted}\n  came:     ${text}`);
    const names = new Set(wire.map(({ serverName }) => serverName)); // one alone needs no name
    const lines = wire
      .slice(-12)
      .map(({ direction, text, serverName }) =>
        [direction === 'out' ? '→' : '←', names.size > 1 && serverName, text]
          .filter(Boolean)
          .join(' '),
      );
    const isWire = wire.some(({ text }) => text.includes('"jsonrpc"'));
    if (wire.length > 0)
      console.log(`  ${isWire ? 'on the wire' : 'what happened'}:\n    ${lines.join('\n    ')}`);
    process.exit(1);
  };
  process.on('uncaughtException', fail);
  process.chdir(folder);
  watchForLoops();
  const bench: Bench = {
    load: (file) => {
      const path = modules ? join(modules, file.replace(/\.ts$/, '.js')) : join(folder, file);
      return import(pathToFileURL(path).href);
    },
    see: (direction, message, serverName) => {
      wire.push({
        direction,
        text: cutShort(JSON.stringify(message) ?? show(message)),
        serverName,
      });
    },
    expect: async (what, wanted, promise, isRight) => {
      hope = { what, wanted };
      const late = new Promise((done) =>
        setTimeout(done, 3000, 'nothing, in three seconds').unref(),
      );
      const came = await Promise.race([promise, late]).catch((error) => error);
      if (isRight instanceof RegExp ? !isRight.test(show(came)) : !isRight(came)) fail(came);
      wire.length = 0; // the next check begins with a clean page
      console.log(`✓ ${what}`);
    },
  };
  const module = await import(pathToFileURL(file).href);
  await (module.judge as Judge)(bench).catch(fail);
  console.log(ALL_WELL);
  process.exit(0);
}
export const ALL_WELL = '(that was all)'; // else the program has left before the judge was done, and a code of 0 says nothing

export const cutShort = (text: string) => (text.length > 400 ? `${text.slice(0, 400)}…` : text);
export const show = (value: unknown) =>
  typeof value === 'string' || value instanceof Error
    ? `${value}`
    : inspect(value, { depth: 6, breakLength: 100 });

const LIMIT_MS = 60_000; // a busy machine may need its time
const LOOP_S = 10; // so long nothing else has run
const odd = (what: string) => `✗ it comes to an end\n  expected: a verdict\n  came:     ${what}\n`;
const ENDLESS = odd(
  `none; for ${LOOP_S} s nothing else has run: is there a loop without an end, or without an await in it, ` +
    'or one that begins again for each item, so that its work grows with the square of the list?',
);

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

export function verdict(book: Book, args: string[]): Promise<Verdict> {
  const run = promisify(execFile)(process.execPath, args, {
    cwd: book.root,
    timeout: LIMIT_MS,
    killSignal: 'SIGKILL',
  });
  return run.then(
    ({ stdout }) => {
      const isGreen = stdout.includes(ALL_WELL);
      return {
        isGreen,
        output: isGreen
          ? stdout.replace(`${ALL_WELL}\n`, '')
          : stdout + odd('the program left before it was judged'),
      };
    },
    ({ stdout, stderr, killed }) => {
      const endless = killed ? odd(`none in ${LIMIT_MS / 1000} s`) : '';
      return { isGreen: false, output: stdout + stderr + endless };
    },
  );
}

const [, started = '', file = '', folder = '', modules] = process.argv;
if (resolve(started) === fileURLToPath(import.meta.url))
  await judge(file, resolve(folder), modules);
