// Runs tests under Node's own runner, each file in a process of its own: `here` with the Node of this machine, `real`
// those of test/real/, otherwise with the versions named, which the npm registry has as packages. Those run TypeScript
// themselves, so tsx takes no part there. Of other versions we ask the tests of the chapters, which touch all that Node
// can change: of the newest with long-term support all of them, of the others those of connections, servers and
// transports. Here we ask these, too, and those that belong to no chapter: so every file is run by this runner once, and
// what Node 20 says of the other chapters is known from `npm test`. Bun and Deno run the tests of the connection, the
// manager, the agent and HTTP by the runners that they have; servers stay on Node (servers-on-node.ts).
// The tests of the book are left out: what they run starts a Node of its own.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { root } from '../help/installed.ts';
import { runtime } from '../help/runtimes.ts';

const leftOut = ['book.test.ts', 'workshop.test.ts'];
const isTest = (name: string) => name.endsWith('.test.ts') && !leftOut.includes(name);
const names = readdirSync(join(root, 'test')).filter(isTest);
const ofChapters = names.filter((name) => /^\d\d-/.test(name));
const ofConnections = names.filter((name) => /^(0\d|1[0-5]|20|22|25|26)-/.test(name));
const real = readdirSync(join(root, 'test', 'real'))
  .filter(isTest)
  .map((name) => join('real', name));
const ofNoChapter = names.filter((name) => !ofChapters.includes(name));
const WHOLE = /^24\./;
const options = ['--test', '--test-reporter=tap'];
const { NODE_EXTRA_CA_CERTS, ...withoutCertificates } = process.env; // as in vitest.config.ts
const elsewhere = names
  .filter((name) => /^(0\d|1[0-5]|connect|20-streamable|22-no)/.test(name))
  .map((file) => join('test', file));
for (const version of process.argv.slice(2)) {
  const isReal = version === 'real'; // those of test/real/, with the Node of this machine
  const isHere = version === 'here' || isReal;
  const other = isHere ? undefined : runtime(version);
  if (other && other.name !== 'node') {
    console.log(`\n${version}`);
    const failed = elsewhere.filter((file) => !runsIn(other, file));
    if (failed.some((file) => !runsIn(other, file))) process.exit(1); // once more, as below
    continue;
  }
  const [node, loader] = isHere ? [process.execPath, ['--import', 'tsx']] : [other!.program, []];
  console.log(`\nNode ${isHere ? process.versions.node : version}`);
  const others = WHOLE.test(version) ? ofChapters : ofConnections;
  const here = isReal ? real : [...ofConnections, ...ofNoChapter];
  const files = (isHere ? here : others).map((file) => join('test', file));
  const run = (flags: string[], these: string[]) => {
    const args = [...loader, ...options, ...flags, ...these];
    const env = isReal ? process.env : withoutCertificates;
    return spawnSync(node, args, { cwd: root, stdio: 'inherit', env }).status === 0;
  };
  const report = join(mkdtempSync(join(tmpdir(), 'nodes-')), 'report.tap');
  const alsoTo = [
    '--test-reporter-destination=stdout',
    '--test-reporter=tap',
    `--test-reporter-destination=${report}`,
  ];
  const sideBySide = isReal ? 2 : 6; // real servers are large
  if (run([...alsoTo, `--test-concurrency=${sideBySide}`], files)) continue;
  // A machine can be too busy for a real process: files that failed are run once more, one at a time.
  // A test may have been made by a helper: then it may be any file that imports it.
  const places = [...failures(report).matchAll(/location: '.*?([\w.-]+\.ts):\d/g)].map(
    ([, name]) => name!,
  );
  const failed = files.filter((file) => {
    const text = readFileSync(join(root, file), 'utf8');
    return places.some((name) => name === basename(file) || text.includes(`/help/${name}'`));
  });
  console.log(`\n# once more, one at a time: ${failed.join(' ')}`);
  if (failed.length === 0 || !run(['--test-concurrency=1'], failed)) process.exit(1);
}

/** One file in Bun or Deno; its report only if a test failed. */
function runsIn({ name, program }: { name: string; program: string }, file: string): boolean {
  const preload = ['--preload', './test/help/servers-on-node.ts'];
  const flags = { bun: ['--timeout', '60000'], deno: ['-A', '--no-check'] }[name]!;
  const args = ['test', ...preload, ...flags, `./${file}`];
  const env = { ...withoutCertificates, RUNTIME: program, SERVERS_ON: process.execPath };
  const { status, stdout, stderr } = spawnSync(program, args, {
    cwd: root,
    env: { ...env, NO_COLOR: '1' },
    encoding: 'utf8',
    timeout: 300_000, // Deno has no limit of its own
  });
  console.log(`${status === 0 ? 'ok' : 'not ok'} ${file}`);
  if (status !== 0) console.log(stdout, stderr);
  return status === 0;
}

/** The tests that failed, each with the lines that say where it is. */
function failures(report: string): string {
  return readFileSync(report, 'utf8')
    .split(/^(?=(?:not )?ok )/m)
    .filter((each) => each.startsWith('not ok'))
    .join('');
}
