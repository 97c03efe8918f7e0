// search_code beside ripgrep: `npm run bench search`. Both look at the same trees on the same core, in turn.
//
//   from disk   a tree that was never looked at: every file is listed and read
//   again       the same tree, unchanged: only times are looked at, the texts are in memory
//   rg          `rg -j1`, a whole process, as nobody can keep one running

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { Roots } from '../../chapters/16-hands/paths.ts';
import { findPlain, type PlainQuery } from '../../chapters/29-a-server/plain-search.ts';
import { CodeTree } from '../../chapters/29-a-server/tree.ts';
import { installed } from '../help/installed.ts';

const GOALS = { disk: 2.5, again: 1 };
const PER_ROUND = 4;
const MANY = 100_000;
const QUERIES: [what: string, flags: string[], query: PlainQuery][] = [
  ['a text', ['-F', 'createHash'], { query: 'createHash', max_results: MANY }],
  [
    'a pattern',
    ['-e', '\\bclass \\w+Error\\b'],
    { query: '\\bclass \\w+Error\\b', regex: true, max_results: MANY },
  ],
];

const median = (times: number[]) => times.sort((one, two) => one - two)[times.length >> 1]!;

async function time(work: () => unknown): Promise<number> {
  const since = performance.now();
  await work();
  return performance.now() - since;
}

/** Returns how many goals were missed. */
export async function benchSearch(rounds: number): Promise<number> {
  const program = spawnSync('rg', ['--version'], { encoding: 'utf8' });
  if (program.status !== 0) {
    console.log(
      '\nsearch: there is no ripgrep to compare with (Debian: apt install ripgrep), so nothing was measured.',
    );
    return 0;
  }
  const version = program.stdout.split('\n')[0]!.split(' ')[1];
  console.log(
    `\n| search_code | files | from disk | again | rg -j1 ${version} | from disk / rg | again / rg |\n| --- | --- | --- | --- | --- | --- | --- |`,
  );
  let missed = 0;
  for (const name of ['eslint@9.39.5', 'webpack@5.112.2'])
    for (const [what, flags, query] of QUERIES)
      missed += await compare(
        join(installed(name), 'node_modules', name.split('@')[0]!),
        what,
        flags,
        query,
        rounds,
      );
  return missed;
}

async function compare(
  folder: string,
  what: string,
  flags: string[],
  query: PlainQuery,
  rounds: number,
): Promise<number> {
  const { signal } = new AbortController();
  const times = { disk: [] as number[], again: [] as number[], rg: [] as number[] };
  let files = 0;
  for (let n = -1; n < rounds * PER_ROUND; n++) {
    const tree = new CodeTree({ roots: new Roots(folder) });
    const disk = await time(() => findPlain(tree, query, signal));
    const again = await time(() => findPlain(tree, query, signal));
    const rg = await time(() =>
      spawnSync('rg', ['-j1', '-n', '--no-ignore-parent', ...flags, folder]),
    );
    const { matches } = await findPlain(tree, query, signal);
    files = tree.files.size;
    if (n === -1) mustAgree(folder, flags, matches.length);
    if (n === -1) continue; // the first round compiles
    times.disk.push(disk);
    times.again.push(again);
    times.rg.push(rg);
  }
  const [disk, again, rg] = [median(times.disk), median(times.again), median(times.rg)];
  const cell = (ratio: number, goal: number) =>
    `${ratio <= goal ? '✓' : '✗'} ${ratio.toPrecision(3)} ≤ ${goal}`;
  const ms = (value: number) => `${value.toPrecision(3)} ms`;
  const name = folder.split('/').at(-1);
  console.log(
    `| ${what}, ${name} | ${files} | ${ms(disk)} | ${ms(again)} | ${ms(rg)} | ${cell(disk / rg, GOALS.disk)} | ${cell(again / rg, GOALS.again)} |`,
  );
  return Number(disk / rg > GOALS.disk) + Number(again / rg > GOALS.again);
}

/** Else one of the two would be quick because it looks at less. */
function mustAgree(folder: string, flags: string[], ours: number): void {
  const found = spawnSync('rg', ['-j1', '-n', '--no-ignore-parent', '--hidden', ...flags, folder], {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  });
  const theirs = found.stdout.split('\n').length - 1;
  if (theirs !== ours) throw new Error(`rg finds ${theirs} lines and we find ${ours}`);
}
