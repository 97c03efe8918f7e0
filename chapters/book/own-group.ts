// own-group.ts: what is judged runs in a process group of its own. A program under judgement may signal "its group"
// (`process.kill(0)` does, by mistake or not), and then it must not end the judge, npm and the learner's shell.

import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';

const hasGroups = process.platform !== 'win32';
const living = new Set<ChildProcess>();

/** Node with these arguments. */
export function nodeInOwnGroup(args: string[], options: SpawnOptions): ChildProcess {
  if (living.size === 0) watchOurEnd();
  const child = spawn(process.execPath, args, { ...options, detached: hasGroups });
  living.add(child);
  child.once('exit', () => {
    endGroup(child); // what it has left behind
    living.delete(child);
  });
  return child;
}

export function endGroup({ pid }: ChildProcess): void {
  if (!pid) return;
  try {
    process.kill(hasGroups ? -pid : pid, 'SIGKILL');
  } catch {} // all have left
}

const endAll = () => living.forEach(endGroup);
let isWatched = false;

/** Ctrl-C reaches our group only, and not those of our children. */
function watchOurEnd(): void {
  if (isWatched) return;
  isWatched = true;
  process.on('exit', endAll);
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      endAll();
      process.kill(process.pid, signal); // as if there were no listener
    });
}
