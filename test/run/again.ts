// Runs once more, one at a time, the files that failed in the last `npm test`. A machine can be too
// busy for a real process; a fault of ours fails again.

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../help/installed.ts';

type Report = { testResults: { name: string; status: string }[] };

const report: Report = JSON.parse(readFileSync(join(root, '.cache', 'tests.json'), 'utf8'));
const failed = report.testResults
  .filter(({ status }) => status === 'failed')
  .map(({ name }) => name);
if (failed.length === 0) throw new Error('no file failed: what went wrong was not a test');
console.log(`once more, one at a time:\n${failed.join('\n')}`);
const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
const args = [vitest, 'run', '--maxWorkers=1', ...failed];
process.exit(spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' }).status ?? 1);
