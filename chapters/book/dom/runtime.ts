// runtime.ts: what every worker begins with. It makes this worker a process, and then loads one module:
// an exercise's judge, or the program that a child process is to run.

import { Buffer } from 'node:buffer';
import { join, dirname } from 'node:path';
import { benchIn, freezeWhatJudges } from '../bench.ts';
import type { Judge } from '../exercise.ts';
import { teachBase64url } from './base64url.ts';
import { builtInModules } from './built-in.ts';
import { Children } from './children.ts';
import { Disk } from './disk.ts';
import { inspect } from './inspect.ts';
import { countListeners } from './listeners.ts';
import { hearInput, LEFT, makeProcess, watchErrors, type PageProcess } from './process.ts';
import type { ModuleFunction, Parts, Task } from './script.ts';
import { installTimers, later } from './timers.ts';

type Load = (name: string) => unknown;

export function begin(task: Task, functions: Record<string, ModuleFunction>): void {
  let parts: Parts | undefined;
  const { cwd, env, pid } = task.world;
  const disk = new Disk(Object.keys(functions), () => cwd);
  const children = new Children(() => parts!, disk, env, pid);
  const process = makeProcess(task, children.kill);
  const functionFor = (name: string) => functions[name] ?? functions[disk.originOf(name) ?? ''];
  const load: Load = loaderOf(functionFor, () => builtIn);
  const builtIn = builtInModules(disk, children, load);
  installTimers();
  countListeners();
  teachBase64url();
  Object.assign(globalThis, { Buffer, global: globalThis, process });
  installConsole(process);
  watchErrors(process);
  addEventListener('message', ({ data }) => {
    if (!data.parts) return hearInput(process, data);
    parts = data.parts;
    if (task.role === 'judge') void judge(task.file, load, process, data.word);
    else load(task.file);
  });
}

/** As `judge` of judge.ts does: the word is one that the solution cannot know. */
async function judge(file: string, load: Load, process: PageProcess, word: string): Promise<void> {
  const { exit, stdout } = process;
  const { write } = stdout; // as it is before the solution is loaded
  const print = (text: string) => void write(`${text}\n`);
  countSeconds();
  freezeWhatJudges();
  const { bench, fail } = benchIn({
    load: async (name) => load(name) as any,
    print,
    inspect,
    leave: () => exit(1),
  });
  process.on('uncaughtException', fail);
  try {
    const { judge } = load(file) as { judge: Judge };
    await judge(bench);
    print(word);
    exit(0);
  } catch (error) {
    if (error !== LEFT) fail(error);
  }
}

/** A program may print, too. */
function installConsole({ stdout, stderr }: PageProcess): void {
  const writer =
    ({ write }: typeof stdout) =>
    (...words: unknown[]) =>
      void write(`${words.map(shown).join(' ')}\n`);
  Object.assign(console, { log: writer(stdout), info: writer(stdout) });
  Object.assign(console, { error: writer(stderr), warn: writer(stderr) });
}
const shown = (value: unknown) => (typeof value === 'string' ? value : inspect(value));

/** In a loop without an end this worker has no time for anything else, and the page hears no second. */
function countSeconds(): void {
  postMessage({ second: true });
  later(countSeconds, 1000);
}

function loaderOf(
  functionFor: (name: string) => ModuleFunction | undefined,
  builtIn: () => Record<string, unknown>,
) {
  const loaded = new Map<string, { exports: unknown }>();
  const load: Load = (name) => {
    const known = loaded.get(name);
    if (known) return known.exports;
    const run = functionFor(name);
    if (!run) throw new Error(`Cannot find module '${name}'`);
    const module = { exports: {} };
    loaded.set(name, module);
    run(requireFrom(dirname(name)), module, module.exports, `file:///work/${name}`);
    return module.exports;
  };
  const requireFrom = (folder: string) => (name: string) => {
    if (name.startsWith('.')) return load(join(folder, name));
    const found = builtIn()[name.replace(/^node:/, '')];
    if (!found) throw new Error(`a page has no module '${name}'`);
    return found;
  };
  return load;
}
