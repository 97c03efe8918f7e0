// How soon Ctrl-C is heard while strangers make our work long: `npm run bench signals`. The longest
// of twenty waits, each case in a process of its own, in which a thread must start first.

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { programArgs } from '../help/compiled.ts';
import { root } from '../help/installed.ts';

const GOAL_MS = 100;

/** Prints a table of its own. Returns how many goals were missed. */
export function benchSignals(): number {
  const args = programArgs(join(root, 'test', 'programs', 'standstill.ts'));
  const run = (...more: string[]) =>
    JSON.parse(execFileSync(process.execPath, [...args, ...more], { cwd: root, encoding: 'utf8' }));
  let missed = 0;
  console.log(`\nSIGINT is heard within, at most (goal: ${GOAL_MS} ms)`);
  for (const name of run()) {
    const { ms } = run(name);
    const isMet = ms < GOAL_MS;
    if (!isMet) missed++;
    console.log(`  ${isMet ? '✓' : '✗'} ${String(ms).padStart(4)} ms  ${name}`);
  }
  return missed;
}
