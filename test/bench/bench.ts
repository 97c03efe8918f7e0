// How fast is it? Four clients do the same work with the same server, in turn, each in a fresh process:
//   ours    `mcp-by-hand/mcp`, as the package has it
//   limit   what no client can beat: the bare pipe with JSON.parse and JSON.stringify (see client.mjs)
//   v1, v2  the official SDKs, installed on demand and used as their users would
// Machines differ and are never quiet, so goals are ratios of medians, not milliseconds.
//
//   npm run bench                              all rows, about five minutes
//   npm run bench calls cold rounds 9     these rows, and more rounds
//   npm run bench pipe                      calls through the pipe, ours beside the bare one
//   npm run bench call                      one call in a new process, beside mcporter: see call.ts
//   npm run bench tools                     a search among 2,307 real tools, if they are there: see tools.ts
//   npm run bench server                    calls that our server answers, beside those of both SDKs: see server.ts
//   npm run bench load                      servers under wrk: calls, p50, p99, memory: see load.ts
//   npm run bench search                    search_code beside ripgrep: see search.ts
//   npm run bench record                    what `record` adds to a call: see record.ts
//   npm run bench context                   what we say that parts of a request take, beside real tokenizers: see context.ts
//   npm run bench page                      how soon chapter 30's page shows 20,000 rows: see page.ts
//   npm run bench signals                   how soon Ctrl-C is heard while strangers make our work long: see signals.ts
//   npm run bench calls two-cores         client and server side by side, as a user would run them
//   npm run bench calls since 0866eeb     ours against ours of that commit, which says whether a change cost something

import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { installed, root } from '../help/installed.ts';
import { wordsOf } from '../help/words.ts';
import { benchCall } from './call.ts';
import { benchContext } from './context.ts';
import { benchPage } from './page.ts';
import { benchTools } from './tools.ts';
import { benchLoad } from './load.ts';
import { benchServer } from './server.ts';
import { benchSearch } from './search.ts';
import { benchRecord } from './record.ts';
import { benchSignals } from './signals.ts';

type Kind = 'ours' | 'limit' | 'v1' | 'v2' | 'then';
type Metrics = Record<string, number>;
type Line = {
  what: string;
  metric: string; // of those that the task prints
  unit: string;
  factor?: number; // from the task's unit to this one
  goals: { limit?: number; v1?: number; v2?: number }; // for ours divided by theirs
  atLeast?: boolean; // goals are upper bounds, unless more is better
};
type Row = {
  name: string; // to choose it by
  task: string;
  size?: number;
  server?: string[]; // options of fixtures/heavy.mjs
  kinds?: Kind[];
  http?: boolean; // over Streamable HTTP, with fixtures/remote.mjs as the server
  oneCore?: boolean; // else most of a short call is the time that one core needs to wake another, and pure chance
  perRound?: number; // short tasks are noisy: repeat them
  sdkRounds?: number; // long tasks are not: spare the reader's time
  lines: Line[];
};

const COLUMNS: Kind[] = ['ours', 'limit', 'v1', 'v2'];
const SERVERS = 20;
const work = join(root, '.cache', 'bench');

// ─── Rows ─────────────────────────────────────────────────────────────────────────────────────────────────────

const CALL_GOALS = { limit: 0.7, v1: 2.5, v2: 4.5 };
const calls = (size: number): Row => ({
  name: 'calls',
  task: 'calls',
  size,
  oneCore: true,
  perRound: 2,
  lines: [
    {
      what: `calls, ${size} in flight`,
      metric: 'perSecond',
      unit: '/s',
      atLeast: true,
      goals: CALL_GOALS,
    },
    {
      what: '– CPU per call',
      metric: 'cpu',
      unit: 'µs',
      factor: 1000,
      goals: { limit: 2, v1: 1 / 4, v2: 1 / 6 },
    },
  ],
});
/** Nothing but ours and the bare pipe, one, some and many calls at a time. */
const pipe = (size: number, goal: number): Row => ({
  name: 'pipe',
  task: 'pipe',
  size,
  kinds: ['ours', 'limit'],
  oneCore: true,
  lines: [
    {
      what: `through the pipe, ${size} in flight`,
      metric: 'perSecond',
      unit: '/s',
      atLeast: true,
      goals: { limit: goal },
    },
    { what: '– CPU per call', metric: 'cpu', unit: 'µs', factor: 1000, goals: {} },
  ],
});
const text = (size: number, limit = 1.3, sdk?: number, sdkRounds?: number): Row => ({
  name: 'text',
  task: 'text',
  size,
  perRound: 2,
  sdkRounds,
  lines: [
    {
      what: `a text of ${size} MB`,
      metric: 'ms',
      unit: 'ms',
      goals: { limit, v1: sdk, v2: sdk },
    },
  ],
});
const memory = (size: number, limit: number): Row => ({
  name: 'memory',
  task: 'memory',
  size,
  lines: [
    {
      what: `memory, ${size} idle`,
      metric: 'rss',
      unit: 'MB',
      goals: { limit, v1: 0.65, v2: 0.65 },
    },
  ],
});
const text10 = text(10, 1.15, 1 / 10);
const text50 = text(50, 1.3, 1 / 50, 1); // the SDKs need half a minute for each
const ROWS: Row[] = [
  calls(16),
  calls(256),
  pipe(1, 0.91),
  pipe(16, 0.79),
  pipe(256, 0.98),
  {
    name: 'latency',
    task: 'latency',
    oneCore: true,
    perRound: 2,
    lines: [
      {
        what: 'one call at a time, p50',
        metric: 'p50',
        unit: 'µs',
        factor: 1000,
        goals: { limit: 1.2, v1: 1, v2: 1 },
      },
      {
        what: '– p99',
        metric: 'p99',
        unit: 'µs',
        factor: 1000,
        goals: { limit: 1.2, v1: 1, v2: 1 },
      },
    ],
  },
  {
    name: 'cold',
    task: 'cold',
    perRound: 3,
    lines: [
      {
        what: 'a new process, wall',
        metric: 'wall',
        unit: 'ms',
        goals: { limit: 1.15, v1: 0.4, v2: 0.4 },
      },
      { what: '– CPU', metric: 'cpu', unit: 'ms', goals: { limit: 1.2, v1: 0.4, v2: 0.4 } },
    ],
  },
  text(1),
  text10,
  text50,
  {
    name: 'tools',
    task: 'tools',
    size: 5000,
    server: ['--tools', '5000', '--page', '100'],
    perRound: 2,
    lines: [
      {
        what: '5,000 tools in 50 pages',
        metric: 'ms',
        unit: 'ms',
        goals: { limit: 1.2, v1: 0.5, v2: 0.5 },
      },
      { what: '– CPU', metric: 'cpu', unit: 'ms', goals: { limit: 1.3, v1: 0.5, v2: 0.5 } },
    ],
  },
  {
    name: 'manager',
    task: 'manager',
    size: SERVERS,
    server: ['--delay', '300'],
    kinds: ['ours', 'limit'],
    lines: [{ what: `${SERVERS} slow servers`, metric: 'ms', unit: 'ms', goals: { limit: 1.3 } }],
  },
  memory(1, 1.05),
  memory(20, 1.08),
  {
    name: 'http',
    task: 'calls',
    size: 16,
    http: true,
    oneCore: true,
    perRound: 2,
    lines: [
      {
        what: 'HTTP: calls, 16 in flight',
        metric: 'perSecond',
        unit: '/s',
        atLeast: true,
        goals: { limit: 0.7, v1: 1, v2: 1 },
      },
      { what: '– CPU per call', metric: 'cpu', unit: 'µs', factor: 1000, goals: { v1: 1, v2: 1 } },
    ],
  },
  {
    name: 'http',
    task: 'cold',
    http: true,
    perRound: 3,
    lines: [
      { what: 'HTTP: a new process, wall', metric: 'wall', unit: 'ms', goals: { v1: 1, v2: 1 } },
      { what: '– CPU', metric: 'cpu', unit: 'ms', goals: { v1: 1, v2: 1 } },
    ],
  },
];

// ─── Measuring ────────────────────────────────────────────────────────────────────────────────────────────────

const options = {
  rounds: { type: 'string', default: '5' },
  since: { type: 'string' },
  'two-cores': { type: 'boolean' },
} as const;
const { values, positionals } = parseArgs({
  args: wordsOf(options),
  options,
  allowPositionals: true,
});

const fixture = join(root, 'fixtures', 'heavy.mjs');
const v1 = join(installed('@modelcontextprotocol/sdk@1.32.2'), 'node_modules');
const v2 = join(installed('@modelcontextprotocol/client@2.4.0'), 'node_modules');
const in1 = (file: string) => join(v1, '@modelcontextprotocol/sdk/dist/esm/client', file);
const in2 = (file: string) => join(v2, '@modelcontextprotocol/client/dist', file);
const compiled = (name: string) => join(work, 'chapters', `${name}.js`);
const remote = ['20-streamable-http/http', '22-no-handshake/era'].map(compiled);
const modules: Record<Kind, string[]> = {
  // As the package has it; beside an earlier commit both are compiled in the same way.
  ours: [values.since ? join(work, 'mcp.js') : join(root, 'dist/chapters/package/mcp.js')],
  limit: [],
  v1: ['index.js', 'stdio.js'].map(in1),
  v2: ['index.mjs', 'stdio.mjs'].map(in2),
  then: [join(work, 'then', 'mcp.js')],
};
const httpModules: Record<Kind, string[]> = {
  ours: [join(work, 'mcp.js'), ...remote],
  limit: [],
  v1: ['index.js', 'streamableHttp.js'].map(in1),
  v2: ['index.mjs', 'index.mjs'].map(in2),
  then: [], // its other modules may have other names
};

function prepare(): void {
  const flags =
    '--ignoreConfig --target es2022 --lib es2023 --module nodenext --types node --skipLibCheck ' +
    '--rewriteRelativeImportExtensions --outDir';
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const compile = (files: string[], to: string) =>
    execFileSync(process.execPath, [tsc, ...files, ...flags.split(' '), to], {
      cwd: root,
      stdio: 'inherit',
    });
  compile(['mcp.ts', 'chapters/composition.ts'], work);
  const build = ['--import', 'tsx', join(root, 'chapters', 'build.ts')];
  if (!values.since) execFileSync(process.execPath, build, { cwd: root, stdio: 'inherit' });
  if (values.since) {
    const then = join(work, 'then');
    mkdirSync(then, { recursive: true });
    const files = execFileSync('git', ['archive', values.since, 'mcp.ts', 'chapters'], {
      cwd: root,
      maxBuffer: 2 ** 28,
    });
    execFileSync('tar', ['-x', '-C', then], { input: files });
    compile([join(then, 'mcp.ts')], then);
  }
  // A home whose settings name the slow servers, for the manager.
  const slow = { command: process.execPath, args: [fixture, '--delay', '300'] };
  const mcpServers = Object.fromEntries(
    Array.from({ length: SERVERS }, (_, i) => [`slow-${i}`, slow]),
  );
  mkdirSync(join(work, '.claude'), { recursive: true });
  writeFileSync(join(work, '.claude', 'settings.json'), JSON.stringify({ mcpServers }));
}

const onOneCore = ['taskset', '-c', `${availableParallelism() - 1}`];
const canPin =
  !values['two-cores'] && spawnSync(onOneCore[0]!, [...onOneCore.slice(1), 'true']).status === 0; // Linux

/** A server of the handshake revisions, which all four speak. It leaves when its stdin ends: with this program. */
let address: Promise<string> | undefined;
function remoteAddress(): Promise<string> {
  return (address ??= new Promise((done) => {
    const command = [join(root, 'fixtures', 'remote.mjs'), 'http', '--era', 'legacy', '--sessions'];
    const pinned = canPin
      ? [...onOneCore, process.execPath, ...command]
      : [process.execPath, ...command];
    const child = spawn(pinned[0]!, pinned.slice(1), { stdio: ['pipe', 'pipe', 'inherit'] });
    child.stdout.setEncoding('utf8').once('data', (text: string) => done(text.trim()));
    child.unref();
  }));
}

async function measure(
  { task, size, server = [], http, oneCore }: Row,
  kind: Kind,
): Promise<Metrics> {
  const urls = (http ? httpModules : modules)[kind].map((path) => pathToFileURL(path).href);
  const url = http ? await remoteAddress() : undefined;
  const order = { kind, modules: urls, task, size, server: [fixture, ...server], home: work, url };
  // Only where it is needed: Node starts slower with it, because it cannot use the code that it has compiled before.
  const flags = task === 'memory' ? ['--expose-gc'] : [];
  const node = [
    process.execPath,
    ...flags,
    join(root, 'test', 'bench', 'client.mjs'),
    JSON.stringify(order),
  ];
  const [command = '', ...args] = oneCore && canPin ? [...onOneCore, ...node] : node;
  const startedAt = performance.now();
  const { PATH, HOME } = process.env; // and no more: NODE_EXTRA_CA_CERTS alone makes Node start three times slower
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'], env: { PATH, HOME } });
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (chunk) => (out += chunk));
  let wall = 0;
  child.on('exit', () => (wall = performance.now() - startedAt));
  const code = await new Promise((done) => child.on('close', done));
  if (code !== 0) throw new Error(`${kind} failed at ${task} ${size ?? ''}`);
  return { wall, ...JSON.parse(out) };
}

const samples = new Map<string, number[]>();
const key = (row: Row, kind: Kind, metric: string) =>
  `${row.http} ${row.task} ${row.size} ${kind} ${metric}`;

function median(row: Row, kind: Kind, metric: string): number {
  const sorted = (samples.get(key(row, kind, metric)) ?? []).toSorted((a, b) => a - b);
  return ((sorted[(sorted.length - 1) >> 1] ?? NaN) + (sorted[sorted.length >> 1] ?? NaN)) / 2;
}

const say = (progress: string) =>
  process.stderr.isTTY && process.stderr.write(`\r\x1b[K${progress}`);

/** One round: every row, and in it every client, one after the other, so that a noisy minute hits all alike. */
async function goAround(rows: Row[], round: number): Promise<void> {
  for (const row of rows)
    for (let i = 0; i < (row.perRound ?? 1); i++)
      for (const kind of row.kinds ?? COLUMNS) {
        const isSpared =
          kind.startsWith('v') && round * (row.perRound ?? 1) + i >= (row.sdkRounds ?? Infinity);
        if (isSpared) continue;
        say(`round ${round + 1}: ${row.task} ${row.size ?? ''} ${kind}`);
        for (const [metric, value] of Object.entries(await measure(row, kind)))
          samples.set(key(row, kind, metric), [
            ...(samples.get(key(row, kind, metric)) ?? []),
            value,
          ]);
      }
}

// ─── The table ────────────────────────────────────────────────────────────────────────────────────────────────

let missed = 0;
const number = (value: number) =>
  value >= 100 ? Math.round(value).toLocaleString('en') : value.toPrecision(3);
const print = (...cells: string[]) => console.log(`| ${cells.join(' | ')} |`);

function verdict(isMet: boolean): string {
  if (!isMet) missed++;
  return isMet ? '✓' : '✗';
}

function printLine(
  row: Row,
  { what, metric, unit, factor = 1, goals, atLeast = false }: Line,
): void {
  const medians = COLUMNS.map((kind) => median(row, kind, metric) * factor);
  const [ours = NaN, limit = NaN] = medians;
  const ratios = medians.slice(1).map((theirs, i) => {
    const goal = [goals.limit, goals.v1, goals.v2][i];
    if (Number.isNaN(theirs)) return '–';
    const isMet = (value: number) => (atLeast ? value / theirs >= goal! : value / theirs <= goal!);
    const text = (ours / theirs).toPrecision(3);
    if (goal === undefined) return text;
    // Where even the limit misses a goal, that goal is not a goal for a client.
    const note = isMet(limit) ? '' : ` (the limit: ${(limit / theirs).toPrecision(3)})`;
    return `${verdict(isMet(ours))} ${text} ${atLeast ? '≥' : '≤'} ${+goal.toPrecision(3)}${note}`;
  });
  print(
    what,
    ...medians.map((value) => (Number.isNaN(value) ? '–' : `${number(value)} ${unit}`)),
    ...ratios,
  );
}

/** With --since: nothing but ours, as it is and as it was. */
function printSince(row: Row, { what, metric, unit, factor = 1 }: Line): void {
  const [now = NaN, then = NaN] = ['ours', 'then'].map(
    (kind) => median(row, kind as Kind, metric) * factor,
  );
  print(what, `${number(now)} ${unit}`, `${number(then)} ${unit}`, (now / then).toPrecision(3));
}

/** Five times the text may take five times as long, and not the square of that. */
function printGrowth(ten: Row, fifty: Row): void {
  const growth = COLUMNS.map((kind) => median(fifty, kind, 'ms') / median(ten, kind, 'ms'));
  const goal = `${verdict(growth[0]! <= 5 * 1.3)} ours ≤ ${5 * 1.3}`;
  print('– 50 MB against 10 MB', ...growth.map((times) => `× ${number(times)}`), goal, '', '');
}

function printDisk(): void {
  const list = execFileSync('npm', ['run', '--silent', 'package', '--', '--dry-run', '--json'], {
    cwd: root,
    stdio: 'pipe',
  });
  const [pack] = JSON.parse(list.toString().replace(/^[^[]*/, '')); // the build may talk before it
  const { dependencies = {} } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const goal = `${verdict(pack.size < 200_000 && Object.keys(dependencies).length === 0)} one package, < 200 KB`;
  const sdks = [v1, v2].map(
    (folder) => `${number(bytesIn(folder) / 1e6)} MB in ${packagesIn(folder)} packages`,
  );
  print('on disk', `${number(pack.size / 1e3)} KB packed`, '–', ...sdks, goal, '', '');
}

/** Two of ours side by side in one process: with and without extensions, and many servers against few. */
function printOurs(): void {
  const url = (path: string) => pathToFileURL(path).href;
  const found = {
    mcp: join(work, 'mcp.js'),
    composition: compiled('composition'),
    host: compiled('19-the-terminal/host'),
  };
  const modules = { ...found, inProcess: compiled('25-other-pipes/in-process') };
  const urls = Object.fromEntries(Object.entries(modules).map(([name, path]) => [name, url(path)]));
  const file = join(root, 'test', 'bench', 'ours.mjs');
  const { PATH } = process.env;
  const env = { PATH, HOME: work };
  const out = execFileSync(
    process.execPath,
    [file, JSON.stringify({ modules: urls, server: [fixture] })],
    { env },
  );
  const { withAll, without, few, many } = JSON.parse(`${out}`) as Metrics;
  const row = (what: string, one: number, two: number, goal: number) => {
    const isMet = `${verdict(one! / two! <= goal)} ${(one! / two!).toPrecision(3)} ≤ ${goal}`;
    print(
      what,
      `${number(one!)} µs`,
      '–',
      '–',
      '–',
      `against ${number(two!)} µs: ${isMet}`,
      '',
      '',
    );
  };
  row('a stdio call with all extensions / without any', withAll!, without!, 1.25);
  row('a server of 50 tools among 1,000 / among 100', many!, few!, 1.5);
}

function bytesIn(folder: string): number {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const stats = files.map((file) => lstatSync(join(folder, file)));
  return stats.reduce((sum, stat) => sum + (stat.isFile() ? stat.size : 0), 0);
}

function packagesIn(folder: string): number {
  const { packages } = JSON.parse(readFileSync(join(folder, '.package-lock.json'), 'utf8'));
  return Object.keys(packages).length;
}

// ─── Main ─────────────────────────────────────────────────────────────────────────────────────────────────────

const isWanted = (name: string) => positionals.length === 0 || positionals.includes(name);
const rounds = Number(values.rounds);
const chosen = ROWS.filter((row) => isWanted(row.name));
const stdioRows = chosen.filter(({ http, task }) => !http && task !== 'manager');
const rows = values.since
  ? stdioRows.map((row): Row => ({ ...row, kinds: ['ours', 'then'] }))
  : chosen;
const names = [
  ...new Set(ROWS.map((row) => row.name)),
  'ours',
  'disk',
  'call',
  'tools',
  'server',
  'search',
  'record',
  'signals',
  'context',
  'page',
  'load',
];
const unknown = positionals.find((name) => !names.includes(name));
if (unknown) throw new Error(`no row "${unknown}", only ${names.join(', ')}`);
const beganAt = performance.now();

prepare();
for (let round = 0; round < rounds; round++) await goAround(rows, round);
say('');

const where = canPin ? 'share one core' : 'run where the system puts them';
console.log(
  `Medians of ${values.rounds} rounds, Node ${process.version}. Ratios: ours / theirs, and the goal.`,
);
console.log(`For calls, client and server ${where}.\n`);
if (values.since) {
  print('what', 'now', values.since, 'now / then');
  print('---', '---', '---', '---');
  for (const row of rows) for (const line of row.lines) printSince(row, line);
  if (isWanted('page')) await benchPage(rounds, values.since);
  process.exit();
}
print('what', 'ours', 'limit', 'SDK v1', 'SDK v2', 'ours / limit', 'ours / v1', 'ours / v2');
print(...Array.from({ length: 8 }, () => '---'));
for (const row of rows) {
  for (const line of row.lines) printLine(row, line);
  if (row === text50) printGrowth(text10, text50);
}
if (isWanted('ours')) printOurs();
if (isWanted('disk')) printDisk();
if (isWanted('call')) missed += benchCall(rounds);
if (isWanted('tools')) missed += await benchTools();
if (isWanted('server')) missed += await benchServer(rounds);
if (isWanted('search')) missed += await benchSearch(rounds);
if (isWanted('record')) missed += await benchRecord(rounds);
if (isWanted('signals')) missed += benchSignals();
if (isWanted('context')) missed += benchContext();
if (isWanted('page')) missed += await benchPage(rounds);
if (positionals.includes('load')) missed += await benchLoad(); // only if asked for: it needs wrk
const seconds = Math.round((performance.now() - beganAt) / 1000);
console.log(
  `\n${missed === 0 ? 'All goals are met' : `${missed} goals are missed`} (${seconds} s).`,
);
process.exit(); // the remote server sees its stdin end
