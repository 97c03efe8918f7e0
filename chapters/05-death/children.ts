// children.ts: our child processes, and how they end when we do.

import {
  type ChildProcess,
  type ChildProcessWithoutNullStreams as Child,
  spawnSync,
} from 'node:child_process';
import { isWindows } from '../01-a-pipe/environment.ts';
import { straysOf } from '../11-goodbye/strays.ts';
import { findCommand } from '../12-three-files/command.ts';

export const living = new Set<ChildProcess>(); // until their end was seen
const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;

/** However our program ends, its children end too. (After SIGKILL servers only see the end of their
 *  stdin.) */
export function leaveNoOrphan(child: ChildProcess): void {
  living.add(child);
  if (process.listeners('exit').includes(endAllNow)) return;
  process.on('exit', endAllNow);
  for (const signal of ENDING_SIGNALS) process.prependListener(signal, endAllAndDie);
}

function endAllNow(): void {
  if (living.size === 0) return;
  for (const child of living) signalGroup(child, 'SIGTERM');
  // An exit handler cannot await.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
  for (const child of living) signalGroup(child, 'SIGKILL');
}

function endAllAndDie(signal: NodeJS.Signals): void {
  process.off(signal, endAllAndDie);
  // Other listeners may have a plan for this signal. Some act only when they are alone, so step
  // aside and come back for the next signal. If their plan is to exit, endAllNow runs then.
  // (Compared by name, so that another copy of this module does not count as other.)
  const isOther = (listener: { name: string }) => listener.name !== endAllAndDie.name;
  if (process.listeners(signal).some(isOther)) {
    process.nextTick(() => process.prependListener(signal, endAllAndDie));
    return;
  }
  endAllNow();
  process.kill(process.pid, signal); // again, and now it does what it would without us
}

/** Signals a child and everything it started. False if there was nothing left to signal. */
export function signalGroup(child: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): boolean {
  if (isWindows) {
    if (child.exitCode === null) {
      spawnSync(findCommand('taskkill'), ['/pid', `${child.pid}`, '/t', '/f']);
    }
    return false;
  }
  const group = -child.pid!; // a negative number means the group
  const targets = [group, ...straysOf(child)];
  const reached = targets.filter((pid) => isSignalled(pid, signal));
  return reached.length > 0;
}

function isSignalled(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false; // there is no such process, or its group is empty
  }
}

/** Are its pipes closed in time? An exit is not enough: it may be a shell, and the server its
 *  child. */
export function closesWithin(ms: number, child: Child): Promise<boolean> {
  if (!living.has(child)) return Promise.resolve(true);
  return new Promise((done) => {
    const timer = setTimeout(() => done(false), ms);
    child.once('close', () => {
      clearTimeout(timer);
      done(true);
    });
  });
}
