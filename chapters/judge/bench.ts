// bench.ts: what the judge's promises are made of, and what they have at hand: a way to say what
// was expected and what came, waits that end, and folders that are swept afterwards.

import { isDeepStrictEqual } from 'node:util';
import { mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Protocol: what the specification says, and what others who share the wire or the files count on.
 *  Safety: nothing hangs, crashes, leaks or reaches the wrong caller, whatever the other side does.
 *  Courtesy: what makes it pleasant. A client without it is still right. */
export type PromiseKind = 'protocol' | 'safety' | 'courtesy';

/** One thing that a program does for its users. `fault` is the sentence for when it does not. */
export type Promised = {
  id: string; // stable: other lists name it
  kind?: PromiseKind; // protocol, unless it says otherwise
  promise: string;
  fault: string;
  needs?: string[]; // in place of its chapter's
  limitMs?: number; // for one that needs longer than most
  play: (bench: Bench) => Promise<unknown>; // throws, best a Mismatch, if the promise is broken
};
// The museum judges the same from outside: its exhibits name our promises, ours name its exhibits.
const museum = new URL('../../fixtures/museum/exhibits/all.mjs', import.meta.url);
const { exhibits } = await import(museum.href);
const exhibitsOf = (id: string): string[] =>
  Object.keys(exhibits).filter((exhibit) => exhibits[exhibit].promise === id);

/** What a verdict says of the promise itself. */
export const named = ({ id, kind = 'protocol', promise }: Omit<Promised, 'play'>) => ({
  id,
  kind,
  promise,
  exhibits: exhibitsOf(id),
});

export type Chapter = {
  n: number;
  title: string;
  /** What must be there before a promise makes sense, such as `McpConnection.close`. */
  needs: string[];
  promises: Promised[];
};
export type Bench = {
  subject: any; // what the module under judgement exports
  file: string; // that module
  config: any; // of a transport
  scratch: string; // a folder for all promises of a chapter
  later: (clean: () => unknown) => void;
};

/** Two short texts for a person. */
export class Mismatch extends Error {
  expected: string;
  came: string;
  constructor(expected: string, came: unknown) {
    super(`expected ${expected}, came ${show(came)}`);
    this.expected = expected;
    this.came = show(came);
  }
}
/** This cannot be judged here, which is not the fault of the program. */
export class NotTried extends Error {}

export function show(value: unknown): string {
  const text = value instanceof Error ? value.message : (JSON.stringify(value) ?? 'nothing');
  const flat = text
    .replace(/\s+/g, ' ')
    .replace(/[^\P{C}]/gu, '\ufffd')
    .trim();
  return flat.length > 120 ? `${flat.slice(0, 119)}…` : flat;
}

export function same(came: unknown, wanted: unknown, expected = show(wanted)): void {
  if (!isDeepStrictEqual(came, wanted)) throw new Mismatch(expected, came);
}

export function holds(isRight: unknown, expected: string, came: unknown): void {
  if (!isRight) throw new Mismatch(expected, came);
}

const SOON_MS = 5000; // generous: the machine may be busy, and only a broken promise waits so long

/** What comes, or a Mismatch when nothing does. */
export async function soon<T>(work: Promise<T>, expected: string, ms = SOON_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(nothingCame(expected)), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

function nothingCame(expected: string): Mismatch {
  return Object.assign(new Mismatch(expected, undefined), { hung: true });
}

/** The error of a call that must fail. A function that throws at once fails as well. */
export async function failure(work: () => unknown, expected = 'an error'): Promise<any> {
  let fulfilled: { with: unknown };
  try {
    fulfilled = { with: await soon(Promise.resolve(work()), expected) };
  } catch (error) {
    if (error instanceof Mismatch && 'hung' in error) throw nothingCame(expected);
    if (error instanceof Mismatch) throw error;
    holds(error instanceof Error, expected, error);
    return error;
  }
  throw new Mismatch(expected, fulfilled.with);
}

export async function until(isSo: () => unknown, expected: string, came?: () => unknown) {
  for (const start = Date.now(); !isSo(); await pause(10)) {
    if (Date.now() - start > SOON_MS) throw new Mismatch(expected, came ? came() : isSo());
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}

export function folder({ scratch }: Bench): string {
  return mkdtempSync(join(scratch, 'f ')); // with a space, as on many people's machines
}

/** A file whose lines are pids: whatever becomes of the program, the judge ends those processes. */
export const pidFile = (bench: Bench) => join(folder(bench), 'some.pids');

export function linesIn(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\n').filter(Boolean);
  } catch {
    return [];
  }
}

/** One that has died, but that nobody has waited for (a zombie), is not running. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    if (process.platform !== 'linux') return true;
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

// ─── Servers to play against ────────────────────────────────────────────────────────────────────

const fixtures = fileURLToPath(new URL('../../fixtures', import.meta.url));
export type Command = { command: string; args: string[] };

export const calculator = (...args: string[]): Command => ({
  command: process.execPath,
  args: [join(fixtures, 'server.mjs'), ...args],
});

/** A server with one bad habit; `good` is the one without. */
export const habit = (name = 'good', argument = ''): Command => ({
  command: process.execPath,
  args: [join(fixtures, 'habits.mjs'), name, argument],
});

/** A server in a few words of JavaScript. It knows `say`, `hear`, and what is `given` to it. */
export function script(text: string, ...args: string[]): Command {
  const tools = `
    const fs = require('node:fs');
    const given = process.argv.slice(1);
    const say = (message) => process.stdout.write(JSON.stringify(message) + '\\n');
    const hear = (listener) => {
      let rest = '';
      process.stdin.setEncoding('utf8').on('data', (text) => {
        const lines = (rest + text).split('\\n');
        rest = lines.pop();
        for (const line of lines) listener(JSON.parse(line), line);
      });
    };`;
  return { command: process.execPath, args: ['-e', `${tools}\n${text}`, ...args] };
}
