// npm run conformance: the official suite judges our client, at both of its sets of requirements and beyond; and then our
// server (server.ts). `npm run conformance client` or `server` is one of the two.
//
// Each set runs twice. As a whole it gives the official result; but that forgives warnings, a client that crashes when
// it is done, and scenarios in which nothing was checked. So then each scenario runs by itself: the suite must be
// content, our client must end with code 0, and at least one check must have passed.

import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../help/installed.ts';
import { judgeServer } from './server.ts';
import { inParallel, runSuite as run, SIDE_BY_SIDE, type Ended } from './suite.ts';

/** How many scenarios there are for clients, and how many checks (at least) are passed in them: so that nothing is
 *  skipped in silence. The last two belong to no set: one is about servers of a revision without one, and the extension
 *  for skills (SEP-2640) has scenarios that no suite but the whole one runs, so each is named. */
type ScenarioSet = {
  name: string;
  revision: string;
  options?: string[];
  named?: string[];
  scenarios: number;
  checks: number;
};
const SKILLS = ['no-prefetch', 'verify-digest', 'verify-size', 'verify-frontmatter'].map(
  (each) => `sep-2640-client-${each}`,
);
const SETS: ScenarioSet[] = [
  {
    name: '2025-11-25',
    revision: '2025-11-25',
    options: ['--requirements', '2025-11-25'],
    scenarios: 25,
    checks: 325,
  },
  {
    name: '2026-07-28',
    revision: '2026-07-28',
    options: ['--requirements', '2026-07-28'],
    scenarios: 39,
    checks: 469,
  },
  {
    name: '2025-03-26',
    revision: '2025-03-26',
    options: ['--suite', 'backcompat'],
    scenarios: 2,
    checks: 21,
  },
  { name: 'skills', revision: '2026-07-28', named: SKILLS, scenarios: 4, checks: 4 },
];
const ALONE = ['sse-retry']; // measures how long we wait

type Run = { scenario: string; revision: string; set: string };
type Outcome = Run & { passed: number; total: number; problem?: string; details?: string };

const judge = join('.cache', 'judge'); // relative: the suite splits commands at spaces, and our folder may contain some
const outcomes: Outcome[] = [];
const [only = 'both'] = process.argv.slice(2);
if (only !== 'server') await judgeClient();
const problems = only === 'client' ? 0 : await judgeServer();
process.exitCode = problems > 0 || outcomes.some(({ problem }) => problem) ? 1 : 0;

async function judgeClient(): Promise<void> {
  compileJudge();
  for (const each of SETS) {
    const { name, revision, scenarios, checks } = each;
    const set = await runSet(each);
    const alone = set.filter(({ scenario }) => ALONE.includes(scenario));
    const strict = [
      ...(await inParallel(
        set.filter((each) => !alone.includes(each)),
        SIDE_BY_SIDE,
        runStrictly,
      )),
      ...(await inParallel(alone, 1, runStrictly)),
    ];
    outcomes.push(...strict);
    const passed = strict.reduce((sum, each) => sum + each.passed, 0);
    const details = `${set.length} scenarios and ${passed} checks passed; there should be ${scenarios} and ${checks}`;
    const isWhole = set.length === scenarios && passed >= checks;
    if (!isWhole)
      outcomes.push({
        scenario: '(all)',
        revision,
        set: name,
        passed,
        total: checks,
        problem: 'incomplete',
        details,
      });
  }
  print();
}

/** tsx would take longer to start than the suite's clocks allow for. */
function compileJudge(): void {
  rmSync(join(root, judge), { recursive: true, force: true });
  const language =
    '--target es2022 --lib es2023 --module nodenext --types node --strict --skipLibCheck';
  const options =
    `--ignoreConfig --rewriteRelativeImportExtensions ${language} --rootDir . --outDir`.split(' ');
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const program = join('test', 'conformance', 'judge.ts');
  execFileSync(process.execPath, [tsc, program, ...options, judge], {
    cwd: root,
    stdio: 'inherit',
  });
}

function runSuite(options: string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  const command = `node ${join(judge, 'test', 'conformance', 'judge.js')}`;
  return run(['client', '--command', command, ...options], env);
}

/** The set as a whole. Not all of it counts for the suite, but all of it does for us. */
async function runSet({ name, revision, options, named = [] }: ScenarioSet): Promise<Outcome[]> {
  if (!options)
    return named.map((scenario) => ({ scenario, revision, set: name, passed: 0, total: 0 }));
  const { stdout } = await runSuite(options);
  const lines = stdout.matchAll(/^(✓|✗) (\S+): (\d+) passed, (\d+) failed/gm);
  return [...lines].map(([line, mark, scenario = '', passed, failed]) => ({
    scenario,
    revision,
    set: name,
    passed: Number(passed),
    total: Number(passed) + Number(failed),
    ...((mark !== '✓' || passed === '0') && { problem: 'fails in the set', details: line }),
  }));
}

async function runStrictly(inSet: Outcome): Promise<Outcome> {
  const { scenario, revision, set } = inSet;
  const report = join(root, judge, `${set}-${scenario.replaceAll('/', '-')}.code`);
  const options = ['--scenario', scenario, '--spec-version', revision, '--force'];
  const { code, stderr } = await runSuite(options, { JUDGE_REPORT: report });
  const [, passed = 0, total = 0] = /^Passed: (\d+)\/(\d+),/m.exec(stderr) ?? [];
  const result = { scenario, revision, set, passed: Number(passed), total: Number(total) };
  if (code !== 0) return { ...result, problem: `exit code ${code}`, details: stderr };
  if (result.passed === 0) return { ...result, problem: 'nothing was checked', details: stderr };
  // The suite lets a client fail after it has refused a skill. Ours goes on, and tells what it made of it.
  const ended = set === 'skills' ? readFileSync(report, 'utf8') : '0';
  if (ended !== '0')
    return { ...result, problem: `our client ended with ${ended}`, details: stderr };
  return { ...inSet, ...result }; // with the set's own problem, if it had one
}

function print(): void {
  for (const { scenario, revision, details } of outcomes.filter(({ problem }) => problem))
    console.log(`── ${scenario} at ${revision}\n${details ?? ''}\n`);
  const names = [...new Set(outcomes.map(({ scenario }) => scenario))];
  const row = (...cells: string[]) =>
    console.log(
      cells
        .map((cell) => cell.padEnd(38))
        .join('')
        .trimEnd(),
    );
  row('scenario', ...SETS.map(({ name }) => name));
  for (const name of names) {
    const at = (set: string) => outcomes.find((each) => each.scenario === name && each.set === set);
    row(name, ...SETS.map((set) => verdict(at(set.name))));
  }
  for (const { name } of SETS) {
    const all = outcomes.filter((each) => each.set === name);
    const passed = all.filter(({ problem }) => !problem);
    const checks = passed.reduce((sum, each) => sum + each.passed, 0);
    console.log(`${name}: ${passed.length} of ${all.length} scenarios, ${checks} checks`);
  }
}

function verdict(outcome?: Outcome): string {
  if (!outcome) return '–';
  const { passed, total, problem } = outcome;
  return `${passed}/${total} ${problem ? `FAILED: ${problem}` : 'passed'}`;
}
