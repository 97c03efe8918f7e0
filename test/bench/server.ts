// How many calls a second does a server answer over HTTP? Ours, and those of both SDKs, each alone on a core, with the same
// sixteen connections from the other one (load.mjs). Answers are JSON, which is the quickest that each can do.

import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { installed, root } from '../on-demand.ts';

const CALLS = { ours: 20_000, sdk: 3000 };
const GOAL = 3;
export const compiled = join(root, '.cache', 'bench', 'server');

/** tsx would be measured, too. */
export function compileServer(): void {
  const flags = '--ignoreConfig --target es2022 --lib es2023 --module nodenext --types node --skipLibCheck '
    + '--rewriteRelativeImportExtensions --rootDir . --outDir';
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  execFileSync(process.execPath, [tsc, 'chapters/29-a-server/http.ts', ...flags.split(' '), compiled], { cwd: root, stdio: 'inherit' });
}

const cores = availableParallelism();
const canPin = cores > 1 && spawnSync('taskset', ['-c', '0', 'true']).status === 0; // Linux
const onCore = (core: number, command: string[]) => (canPin ? ['taskset', '-c', `${core}`, ...command] : command);

/** A server that prints its address. It leaves when its stdin ends. */
export async function startServer(args: string[], core = 0): Promise<{ child: ChildProcess; url: string }> {
  const [command = '', ...rest] = onCore(core, [process.execPath, ...args]);
  const child = spawn(command, rest, { stdio: ['pipe', 'pipe', 'ignore'] }); // an SDK warns there
  const url = await new Promise<string>((done) => child.stdout!.setEncoding('utf8').once('data', (text) => done(text.trim())));
  return { child, url };
}

async function callsPerSecond(args: string[], era: string, calls: number): Promise<number> {
  const { child, url } = await startServer(args);
  const [command = '', ...rest] = onCore(1, [process.execPath, join(root, 'test', 'bench', 'load.mjs'), url, era, `${calls}`]);
  try {
    return JSON.parse(`${execFileSync(command, rest)}`).perSecond;
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
    ['handshake', [ours, [peer('sdk-v1.mjs'), v1, '--sessions', '--json'], [peer('sdk-v2.mjs'), v2, '--sessions', '--json']]],
    ['stateless', [ours, undefined, [peer('sdk-v2.mjs'), v2, '--modern', '--json']]],
  ];
  let missed = 0;
  console.log('\n| HTTP: calls a server answers, 16 in flight | ours | SDK v1 | SDK v2 | ours / v1 | ours / v2 |');
  console.log('| --- | --- | --- | --- | --- | --- |');
  for (const [era, servers] of table) {
    const samples = servers.map((): number[] => []);
    for (let round = 0; round < rounds; round++)
      for (const [n, args] of servers.entries())
        if (args) samples[n]!.push(await callsPerSecond(args, era, n === 0 ? CALLS.ours : CALLS.sdk));
    const [own = NaN, ...theirs] = samples.map((all) => (all.length > 0 ? median(all) : NaN));
    const ratios = theirs.map((each) => {
      if (Number.isNaN(each)) return '–';
      const isMet = own / each >= GOAL;
      if (!isMet) missed++;
      return `${isMet ? '✓' : '✗'} ${(own / each).toPrecision(3)} ≥ ${GOAL}`;
    });
    const cells = [own, ...theirs].map((each) => (Number.isNaN(each) ? '–' : `${whole(each)} /s`));
    console.log(`| ${[`${era} era`, ...cells, ...ratios].join(' | ')} |`);
  }
  return missed;
}
