// strays.ts: what a child started and left behind, found by a mark in its environment.

import type { ChildProcess } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { now } from '../01-a-pipe/messages.ts';

/** Marks a child's environment, which everything it starts inherits. On Linux that shows us what
 *  has left its group, as daemons do. */
export const MARK = 'MCP_BY_HAND_CHILD';
export const marks = new WeakMap<ChildProcess, string>();
/** It is not a secret, so it can do without node:crypto, which would cost each start 5 ms. */
export const newMark = () => `${process.pid}-${performance.timeOrigin}-${Math.random()}`;
const CENSUS_MS = 50;
const YOUNG_MS = 5000;
let census = {
  takenAt: -CENSUS_MS,
  byMark: new Map<string, number[]>(),
};

export function straysOf(child: ChildProcess): number[] {
  const mark = marks.get(child);
  if (process.platform !== 'linux' || mark === undefined) return [];
  // One for all children that end together.
  if (now() - census.takenAt >= CENSUS_MS) {
    census = { takenAt: now(), byMark: takeCensus() };
  }
  const marked = census.byMark.get(mark) ?? [];
  return marked.filter((pid) => groupOf(pid) !== child.pid);
}

/** All processes that have a mark, by that mark. */
function takeCensus(): Map<string, number[]> {
  const byMark = new Map<string, number[]>();
  const before = lastPidBeforeOurs();
  const names = readIfThere('/proc', (path) => readdirSync(path)) ?? [];
  for (const pid of names.map(Number)) {
    if (!(pid > before)) continue; // or it is not a number
    const mark = markOf(pid);
    if (mark === undefined) continue;
    const others = byMark.get(mark) ?? [];
    byMark.set(mark, [...others, pid]);
  }
  return byMark;
}

function markOf(pid: number): string | undefined {
  const environment = readIfThere(`/proc/${pid}/environ`, readBytes) ?? '';
  const variables = environment.split('\0');
  const found = variables.find((each) => each.startsWith(`${MARK}=`));
  return found?.slice(MARK.length + 1);
}

/** Pids are handed out in order. So in our first seconds everything we started has a higher one
 *  than we have, unless the numbers have wrapped around; later they may have. */
function lastPidBeforeOurs(): number {
  const load = readIfThere('/proc/loadavg', readBytes) ?? '';
  const newest = Number(load.split(' ')[4]);
  const isInTurn = newest > process.pid && now() < YOUNG_MS;
  return isInTurn ? process.pid : 0;
}

function groupOf(pid: number): number {
  const stat = readIfThere(`/proc/${pid}/stat`, readBytes) ?? '';
  const afterName = stat.slice(stat.lastIndexOf(')') + 2); // the name may hold anything
  return Number(afterName.split(' ')[2]);
}

const readBytes = (path: string) => readFileSync(path, 'latin1');

/** A process may be gone by now, or we may not read it. */
function readIfThere<T>(path: string, read: (path: string) => T): T | undefined {
  try {
    return read(path);
  } catch {
    return undefined;
  }
}
