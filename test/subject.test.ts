// SUBJECT=one-file.ts npm test: a reader's own client, in a file of its own, under our tests. Ours
// is many files; as one it must be green, and red with a mistake in it.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { afterEach, test } from 'node:test';
import { build } from 'esbuild';
import { cleanUp, folder, root } from './help/basics.ts';
import { program, tests } from './measure/sources.ts';

afterEach(cleanUp);

const OF_OUR_RUNNER = /^VITEST|^NODE_TEST_CONTEXT$/; // a test runs in a test here
const FOR_RPC_CODES = 'what a server refuses keeps';

type Verdict = { passed: number; failed: number };

/** What our tests say about this client. */
function judge(SUBJECT: string, chapters: string[], ...more: string[]): Promise<Verdict> {
  const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
  const files = chapters.map((chapter) => `test/${chapter}.test.ts`);
  // One worker loads it all once. The outer run has others beside it, so nothing takes longer.
  const flags = ['--reporter=tap-flat', '--maxWorkers=1'];
  const args = [vitest, 'run', ...flags, ...files, ...more];
  const ours = Object.entries({ ...process.env, SUBJECT });
  const env = Object.fromEntries(ours.filter(([name]) => !OF_OUR_RUNNER.test(name)));
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, { cwd: root, env }, (_, stdout, stderr) => {
      if (!stdout.includes('TAP version')) reject(new Error(`${stdout}${stderr}`));
      const count = (pattern: RegExp) => stdout.match(pattern)?.length ?? 0;
      resolve({ passed: count(/^ok (?!.* # SKIP)/gm), failed: count(/^not ok /gm) });
    });
  });
}

async function inOneFile(): Promise<string> {
  const outfile = join(folder(), 'one-file.ts');
  const entryPoints = [join(root, 'mcp.ts')];
  await build({ entryPoints, outfile, bundle: true, format: 'esm', platform: 'node' });
  return outfile;
}

test('nobody but mcp.ts imports its parts, so another client can take its place', () => {
  const isPart = (file: string) => /^chapters\/(0[1-9]|1[0-4])-/.test(file);
  const users = [...program, ...tests].filter(({ file }) => file !== 'mcp.ts' && !isPart(file));
  const imports = users.flatMap(({ file, text }) => {
    const paths = [...text.matchAll(/^(?:import|export|\}).* from '(\.[^']+)';$/gm)];
    const found = paths.map(([, path]) => posix.join(posix.dirname(file), path!));
    return found.filter(isPart).map((part) => `${file} imports ${part}`);
  });
  assert.deepEqual(imports, []);
});

test('a client in one file passes our tests', { timeout: 240_000 }, async () => {
  const mine = await inOneFile();
  assert.doesNotMatch(readFileSync(mine, 'utf8'), /^(import|export) .*from "\./m);
  const { passed, failed } = await judge(mine, ['04-correlation', '09-calling', '14-the-manager']);
  assert.equal(failed, 0);
  assert.ok(passed > 50, `${passed}`);
});

test('and with a mistake it does not', { timeout: 240_000 }, async () => {
  const mine = await inOneFile();
  const right = readFileSync(mine, 'utf8');
  const wrong = right.replace('typeof code === "number" ? code', 'code === 7 ? code');
  assert.notEqual(wrong, right);
  writeFileSync(mine, wrong);
  const verdict = await judge(mine, ['04-correlation'], '-t', FOR_RPC_CODES);
  assert.deepEqual(verdict, { passed: 0, failed: 1 });
});
