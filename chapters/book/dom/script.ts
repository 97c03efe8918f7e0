// script.ts: the whole text of a worker: Node as far as we have it, and the modules of a program as
// functions. So nothing is evaluated at run time, and a page needs no 'unsafe-eval'.
//
// A worker makes workers, too: its child processes. It is given the parts as texts and not as an
// address, because in a page that was opened as a file no worker may read the page's addresses.

/** Every module by its path from the top of the program, as the body of a CommonJS function. */
export type Modules = Record<string, string>;
export type Parts = { runtime: string; modules: Modules };

/** What a worker is to do: judge with this module, or run this one, as `node FILE ARGS` does. */
export type Task = { role: 'judge' | 'child'; file: string; args: string[]; world: ProcessWorld };
export type ProcessWorld = { pid: number; cwd: string; env: Record<string, string> };
/** What `node -e` is given has no file. */
export const EVALUATED = '[eval]';

export type ModuleFunction = (
  require: (name: string) => unknown,
  module: { exports: unknown },
  exports: unknown,
  url: string,
) => void;

export function scriptOf({ runtime, modules }: Parts, task: Task): string {
  const functions = Object.entries(modules).map(
    ([name, body]) =>
      `${JSON.stringify(name)}: function (require, module, exports, __url) {${body}\n}`,
  );
  return `${runtime}\nruntime.begin(${JSON.stringify(task)}, {\n${functions.join(',\n')}\n});\n`;
}

/** A classic worker: a page that was opened as a file may not start a module. */
export function startWorker(parts: Parts, task: Task, word?: string): Worker {
  const blob = new Blob([scriptOf(parts, task)], { type: 'text/javascript' });
  const address = URL.createObjectURL(blob);
  const worker = new Worker(address);
  URL.revokeObjectURL(address); // it is being fetched already
  worker.postMessage({ parts, word });
  return worker;
}
