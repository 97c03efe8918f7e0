// One call of a tool in a fresh process, as a script makes it: ours as its package has it, the floor (floor.mjs), and
// mcporter. Each starts the same server, fixtures/server.mjs, in turn, on the Node of this machine and on Node 24.

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { installed, root } from '../help/installed.ts';

const WORDS = ['add', 'a=2', 'b=40'];
const GOALS: Record<string, number> = { 20: 1.2, 24: 1.5 }; // ours / floor; an old Node starts slowly by itself
const UP_GOAL = 1.25; // a call through `up` / our own --version
const PER_ROUND = 3;
const server = join(root, 'fixtures', 'server.mjs');
const place = join(root, '.cache', 'bench', 'call');

/** `npm run package`, unpacked: no file of the repository takes part. */
export function unpacked(): string {
  rmSync(place, { recursive: true, force: true });
  mkdirSync(join(place, 'home'), { recursive: true });
  const out = execFileSync(
    'npm',
    ['run', '--silent', 'package', '--', '--json', '--pack-destination', place],
    {
      cwd: root,
      stdio: ['ignore', 'pipe', 'ignore'],
    },
  );
  const [{ filename }] = JSON.parse(`${out}`.slice(`${out}`.indexOf('['))); // the build may talk before it
  execFileSync('tar', ['-xzf', filename], { cwd: place });
  return join(place, 'package', 'dist', 'chapters', 'start.cjs');
}

function nodes(): string[] {
  const name = `node-${process.platform}-${process.arch}`;
  const other = installed(`${name}@24.21.0`);
  return [process.execPath, join(other, 'node_modules', name, 'bin', 'node')];
}

function start(node: string, args: string[]) {
  const { PATH } = process.env;
  const env = { PATH, HOME: join(place, 'home') };
  return spawnSync(node, args, { encoding: 'utf8', cwd: place, env });
}

function time(node: string, args: string[], answer = /^42$/): number {
  const startedAt = performance.now();
  const { stdout, stderr } = start(node, args);
  const ms = performance.now() - startedAt;
  if (!answer.test(stdout.trim())) throw new Error(`${args.join(' ')}: ${stdout}${stderr}`);
  return ms;
}

const median = (times: number[]) => times.toSorted((a, b) => a - b)[times.length >> 1]!;

/** Prints a table of its own. Tells how many goals were missed. */
export function benchCall(rounds: number): number {
  const mcporter = (version: string) =>
    join(installed(`mcporter@${version}`), 'node_modules', 'mcporter', 'dist', 'cli.js');
  const [ours, newer, older] = [unpacked(), mcporter('0.12.3'), mcporter('0.9.0')];
  let missed = 0;
  console.log(
    '\n| one call in a new process | ours | floor | mcporter 0.12 | mcporter 0.9 | ours / floor | ours / 0.12 | ours / 0.9 |',
  );
  console.log('| --- | --- | --- | --- | --- | --- | --- | --- |');
  for (const node of nodes()) {
    const version = `${execFileSync(node, ['--version'])}`.trim();
    const clients = [
      [ours, 'call', ...WORDS, '--', node, server],
      [join(root, 'test', 'bench', 'floor.mjs'), node, server],
      [newer, 'call', '--stdio', `${node} ${server}`, ...WORDS],
      [older, 'call', '--stdio', `${node} ${server}`, ...WORDS],
    ];
    const times = clients.map((): number[] => []);
    // What comes after a big one has its caches to fill again, and its leftovers beside it. So they go there and back.
    const order = clients.map((_, i) => i);
    for (let n = 0; n < rounds * PER_ROUND; n++) {
      for (const i of order) times[i]!.push(time(node, clients[i]!));
      order.reverse();
    }
    const medians = times.map(median);
    const [own, ...theirs] = medians as [number, ...number[]];
    const ratios = theirs.map((each) => (own / each).toPrecision(3));
    const goal = GOALS[/^v(\d+)/.exec(version)![1]!] ?? 1.5;
    const isMet = own / theirs[0]! <= goal;
    if (!isMet) missed++;
    ratios[0] = `${isMet ? '✓' : '✗'} ${ratios[0]} ≤ ${goal}`;
    console.log(
      `| ${[`Node ${version.slice(1)}`, ...medians.map((ms) => `${Math.round(ms)} ms`), ...ratios].join(' | ')} |`,
    );
  }
  return missed + benchUp(rounds, ours, newer);
}

/** The same call to a server that lives already: ours through `up`, mcporter's through its daemon. */
function benchUp(rounds: number, ours: string, mcporter: string): number {
  const node = process.execPath;
  const entry = { command: node, args: [server] };
  const write = (folder: string, file: string, mcpServers: object) => {
    mkdirSync(join(place, folder), { recursive: true });
    writeFileSync(join(place, folder, file), JSON.stringify({ mcpServers }));
  };
  write(join('home', '.claude'), 'settings.json', { calc: entry });
  write('config', 'mcporter.json', { calc: { ...entry, lifecycle: 'keep-alive' } });
  start(node, [ours, 'up', 'calc']);
  start(node, [mcporter, 'daemon', 'start']);
  const clients: [string[], RegExp?][] = [
    [[ours, 'call', 'calc', ...WORDS]],
    [[ours, '--version'], /^[\d.]+$/],
    [[mcporter, 'call', 'calc.add', ...WORDS.slice(1)]],
  ];
  try {
    for (const [args, answer] of clients) time(node, args, answer); // daemons start servers late
    const times = clients.map((): number[] => []);
    for (let n = 0; n < rounds * PER_ROUND; n++)
      for (const [i, [args, answer]] of clients.entries()) times[i]!.push(time(node, args, answer));
    const [own, version, theirs] = times.map(median) as [number, number, number];
    const isMet = own / version <= UP_GOAL;
    console.log(
      '\n| one call to a server that lives | ours, `up` | our --version | mcporter, its daemon | ours / --version | ours / mcporter |',
    );
    console.log('| --- | --- | --- | --- | --- | --- |');
    const ratio = `${isMet ? '✓' : '✗'} ${(own / version).toPrecision(3)} ≤ ${UP_GOAL}`;
    const all = [own, version, theirs].map((ms) => `${Math.round(ms)} ms`);
    console.log(`| | ${[...all, ratio, (own / theirs).toPrecision(3)].join(' | ')} |`);
    return isMet ? 0 : 1;
  } finally {
    start(node, [ours, 'down']);
    start(node, [mcporter, 'daemon', 'stop']);
  }
}
