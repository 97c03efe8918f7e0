// aside.ts: work whose length a stranger decides. A pattern or a schema of a few kilobytes
// can take years, and nothing interrupts JavaScript but the end of its thread. So it gets a thread,
// and so much time; meanwhile we hear Ctrl-C.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { unlessAborted } from '../15-the-loop/unless-aborted.ts';

const MOST_THREADS = 4; // at work: a search of ten seconds stops no other work
const MAX_MEMORY_MB = 1024; // of each; what needs more ends its thread, and not our program

// JavaScript in a string: it starts in the same way from .ts files and from compiled ones.
const THREAD = `
  const { pathToFileURL } = require('node:url');
  const { parentPort, workerData: reader } = require('node:worker_threads');
  if (reader) require(reader);
  parentPort.on('message', async ({ file, name, given }) => {
    try {
      const module = await (reader ? require(file) : import(pathToFileURL(file)));
      parentPort.postMessage({ hasBegun: true });
      parentPort.postMessage({ result: await module[name](...given) });
    } catch (error) {
      parentPort.postMessage({ problem: String(error?.message) });
    }
  });
`;

export type AsideOptions = { timeoutMs: number; signal?: AbortSignal };
type AsideJob = AsideOptions & { module: string; name: string };

export class TooSlow extends Error {}

/** Calls a function of one of our modules ('16-hands/more/matching') in a thread. What it is given
 *  and what it returns is copied. Throws TooSlow if it takes longer than it may. */
export function aside<F extends (...given: never[]) => unknown>(
  job: AsideJob,
  ...given: Parameters<F>
): Promise<Awaited<ReturnType<F>>> {
  const working = whenFree(() => inIdleThread(job, given));
  return unlessAborted(working, job.signal) as Promise<Awaited<ReturnType<F>>>;
}

/** So many at once; the others wait, in the order of their coming. */
export function atMost(count: number) {
  const waiting: (() => void)[] = [];
  let free = count;
  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (free > 0) free--;
    else await new Promise<void>((go) => waiting.push(go));
    try {
      return await work();
    } finally {
      const next = waiting.shift(); // the place goes from hand to hand
      if (next) next();
      else free++;
    }
  };
}

const idle = new Set<Worker>();
const whenFree = atMost(MOST_THREADS);

async function inIdleThread(job: AsideJob, given: unknown[]) {
  job.signal?.throwIfAborted();
  const [worker = newThread()] = idle;
  idle.delete(worker);
  return inThread(worker, job, given);
}

async function inThread(worker: Worker, job: AsideJob, given: unknown[]) {
  const { module, name, timeoutMs, signal } = job;
  const over = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const working = new Promise<{ result?: unknown; problem?: string }>((resolve, reject) => {
    const stop = () => reject(new TooSlow(`it takes longer than ${timeoutMs / 1000} s`));
    worker.on('message', (message) => {
      if (message.hasBegun) timer = setTimeout(stop, timeoutMs);
      else resolve(message);
    });
    worker.on('error', reject);
    signal?.addEventListener('abort', () => reject(signal.reason), { signal: over.signal });
    worker.ref();
    worker.postMessage({ file: fileOfOurs(module), name, given });
  });
  try {
    const { result, problem } = await working;
    rest(worker);
    if (problem !== undefined) throw new Error(problem);
    return result;
  } catch (error) {
    if (!idle.has(worker)) void worker.terminate(); // it may be busy for years
    throw error;
  } finally {
    clearTimeout(timer);
    over.abort();
  }
}

/** It stays for the next job. An idle thread keeps no program alive, and ends none. */
function rest(worker: Worker) {
  worker.removeAllListeners('message').removeAllListeners('error');
  worker.on('error', () => idle.delete(worker));
  worker.unref();
  idle.add(worker);
}

function newThread() {
  const resourceLimits = { maxOldGenerationSizeMb: MAX_MEMORY_MB };
  return new Worker(THREAD, { eval: true, execArgv: [], workerData: reader(), resourceLimits });
}

/** Node reads TypeScript since 22.18. For older ones, whoever runs our sources has tsx. */
function reader() {
  const file = fileOfOurs('16-hands/aside');
  const { typescript } = process.features as { typescript?: unknown };
  if (typescript || !file.endsWith('.ts')) return undefined;
  return createRequire(file).resolve('tsx/cjs');
}

/** A file of a chapter: beside the sources, or in the package that was built of them. */
export function fileOfOurs(name: string): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  for (;;) {
    const path = join(folder, 'chapters', name);
    const found = [path, `${path}.ts`, `${path}.js`].find((each) => existsSync(each));
    if (found) return found;
    const above = dirname(folder);
    if (above === folder) throw new Error(`${name} is missing: install mcp-by-hand once more`);
    folder = above;
  }
}
