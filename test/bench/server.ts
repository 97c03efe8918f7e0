// How many calls a second does a server answer over HTTP? Ours, and those of both SDKs, each alone on a core, with the same
// sixteen connections from the other one (load.mjs). Answers are JSON, which is the quickest that each can do.

import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { installed, root } from '../help/installed.ts';

const CALLS = { ours: 10_000, sdk: 3000 };
const PER_ROUND = 2; // short runs in turn, so that a noisy minute hits all alike
const GOAL = 3;
export const compiled = join(root, '.cache', 'bench', 'server');

/** tsx would be measured, too. */
export function compileServer(): void {
  const flags =
    '--ignoreConfig --target es2022 --lib es2023 --module nodenext --types node --skipLibCheck ' +
    '--rewriteRelativeImportExtensions --rootDir . --outDir';
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  execFileSync(
    process.execPath,
    [tsc, 'chapters/29-a-server/serve-http.ts', ...flags.split(' '), compiled],
    { cwd: root, stdio: 'inherit' },
  );
}

const cores = availableParallelism();
const canPin = cores > 1 && spawnSync('taskset', ['-c', '0', 'true']).status === 0; // Linux
export const onCore = (core: number, command: string[]) =>
  canPin ? ['taskset', '-c', `${core}`, ...command] : command;

/** A server that prints its address. It leaves when its stdin ends. */
export async function startServer(
  args: string[],
  core = 0,
): Promise<{ child: ChildProcess; url: string }> {
  const [command = '', ...rest] = onCore(core, [process.execPath, ...args]);
  const child = spawn(command, rest, { stdio: ['pipe', 'pipe', 'ignore'] }); // an SDK warns there
  const url = await new Promise<string>((done) =>
    child.stdout!.setEncoding('utf8').once('data', (text) => done(text.trim())),
  );
  return { child, url };
}

/** The processor's time that a process has used, in µs. Linux only; a tick is a hundredth of a second. */
function cpuOf(pid = 0): number {
  const file = `/proc/${pid}/stat`;
  if (!existsSync(file)) return NaN;
  const [user, system] = readFileSync(file, 'utf8')
    .split(') ')[1]!
    .split(' ')
    .slice(11, 13)
    .map(Number);
  return 10_000 * (user! + system!);
}

type Sample = { perSecond: number; cpu: number };

async function measure(args: string[], era: string, calls: number): Promise<Sample> {
  const { child, url } = await startServer(args);
  const [command = '', ...rest] = onCore(1, [
    process.execPath,
    join(root, 'test', 'bench', 'load.mjs'),
    url,
    era,
    `${calls}`,
  ]);
  try {
    const before = cpuOf(child.pid);
    const { perSecond } = JSON.parse(`${execFileSync(command, rest)}`);
    const warmUp = 1.25; // of the calls
    return { perSecond, cpu: (cpuOf(child.pid) - before) / (calls * warmUp) };
  } finally {
    child.stdin!.end();
  }
}

const median = (all: number[]) => all.toSorted((a, b) => a - b)[all.length >> 1]!;
const whole = (value: number) => Math.round(value).toLocaleString('en');

/** Prints a table of its own. Tells how many goals were missed. */
export async function benchServer(rounds: number): Promise<number> {
  compileServer();
  const peer = (name: string) => join(root, 'test', 'real', 'peers', name);
  const v1 = installed('@modelcontextprotocol/sdk@1.32.2');
  const v2 = installed('@modelcontextprotocol/server@2.4.0', '@modelcontextprotocol/node@2.1.2');
  const ours = [join(root, 'test', 'bench', 'our-server.mjs'), compiled];
  const table: [era: string, servers: (string[] | undefined)[]][] = [
    [
      'handshake',
      [
        ours,
        [peer('sdk-v1.mjs'), v1, '--sessions', '--json'],
        [peer('sdk-v2.mjs'), v2, '--sessions', '--json'],
      ],
    ],
    ['stateless', [ours, undefined, [peer('sdk-v2.mjs'), v2, '--modern', '--json']]],
  ];
  let missed = 0;
  console.log(
    '\n| HTTP: calls a server answers, 16 in flight | ours | SDK v1 | SDK v2 | ours / v1 | ours / v2 |',
  );
  console.log('| --- | --- | --- | --- | --- | --- |');
  for (const [era, servers] of table) {
    const samples = servers.map((): Sample[] => []);
    for (let round = 0; round < PER_ROUND * rounds; round++)
      for (const [n, args] of servers.entries())
        if (args) samples[n]!.push(await measure(args, era, n === 0 ? CALLS.ours : CALLS.sdk));
    missed += printRow(
      `${era} era`,
      samples.map((all) => all.map(({ perSecond }) => perSecond)),
      '/s',
      (ratio) => ratio >= GOAL,
      `≥ ${GOAL}`,
    );
    missed += printRow(
      '– CPU per call',
      samples.map((all) => all.map(({ cpu }) => cpu)),
      'µs',
      (ratio) => ratio <= 1 / GOAL,
      `≤ ${(1 / GOAL).toFixed(2)}`,
    );
  }
  return missed;
}

/** The medians, and what ours is of theirs. Tells how many goals were missed. */
function printRow(
  what: string,
  samples: number[][],
  unit: string,
  isMet: (ratio: number) => boolean,
  goal: string,
): number {
  const [own = NaN, ...theirs] = samples.map((all) => (all.length > 0 ? median(all) : NaN));
  let missed = 0;
  const ratios = theirs.map((each) => {
    const ratio = own / each;
    if (Number.isNaN(ratio)) return '–';
    if (!isMet(ratio)) missed++;
    return `${isMet(ratio) ? '✓' : '✗'} ${ratio.toPrecision(3)} ${goal}`;
  });
  const cells = [own, ...theirs].map((each) =>
    Number.isNaN(each) ? '–' : `${whole(each)} ${unit}`,
  );
  console.log(`| ${[what, ...cells, ...ratios].join(' | ')} |`);
  return missed;
}
