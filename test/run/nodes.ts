// Runs tests under Node's own runner, each file in a process of its own: `here` with the Node of this machine, `real`
// those of test/real/, otherwise with the versions named, which the npm registry has as packages. Those run TypeScript
// themselves, so tsx takes no part there. Of other versions we ask the tests of the chapters, which touch all that Node
// can change: of the newest with long-term support all of them, of the others those of connections, servers and
// transports. Here we ask these, too, and those that belong to no chapter: so every file is run by this runner once, and
// what Node 20 says of the other chapters is known from `npm test`.
// The tests of the book are left out: what they run starts a Node of its own.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { installed, root } from '../help/installed.ts';

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
const platform = process.platform === 'win32' ? 'win' : process.platform;
for (const version of process.argv.slice(2)) {
  const isReal = version === 'real'; // those of test/real/, with the Node of this machine
  const isHere = version === 'here' || isReal;
  const name = `node-${platform}-${process.arch}`;
  const program = () =>
    join(
      installed(`${name}@${version}`),
      'node_modules',
      name,
      'bin',
      platform === 'win' ? 'node.exe' : 'node',
    );
  const [node, loader] = isHere ? [process.execPath, ['--import', 'tsx']] : [program(), []];
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

/** The tests that failed, each with the lines that say where it is. */
function failures(report: string): string {
  return readFileSync(report, 'utf8')
    .split(/^(?=(?:not )?ok )/m)
    .filter((each) => each.startsWith('not ok'))
    .join('');
}
