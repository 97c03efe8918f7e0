// Runs the tests under Node's own runner: `here` with the Node of this machine, otherwise with the versions named, which
// the npm registry has as packages. Those run TypeScript themselves, so tsx takes no part there but for the little
// programs in test/programs/. Of other versions we ask the tests of the chapters, which touch all that Node can change.
// The tests of the book are left out: what they run starts a Node of its own.

import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { installed, root } from './on-demand.ts';

const leftOut = ['book.test.ts'];
const isTest = (name: string) => name.endsWith('.test.ts') && !leftOut.includes(name);
const names = readdirSync(join(root, 'test')).filter(isTest);
const ofChapters = names.filter((name) => /^\d\d-/.test(name));
const options = ['--test', '--test-concurrency=6', '--test-reporter=tap'];
const platform = process.platform === 'win32' ? 'win' : process.platform;
for (const version of process.argv.slice(2)) {
  const isHere = version === 'here';
  const name = `node-${platform}-${process.arch}`;
  const program = () => join(installed(`${name}@${version}`), 'node_modules', name, 'bin', platform === 'win' ? 'node.exe' : 'node');
  const [node, loader] = isHere ? [process.execPath, ['--import', 'tsx']] : [program(), []];
  console.log(`\nNode ${isHere ? process.versions.node : version}`);
  const files = (isHere ? names : ofChapters).map((file) => join('test', file));
  const { status } = spawnSync(node, [...loader, ...options, ...files], { cwd: root, stdio: 'inherit' });
  if (status !== 0) process.exit(1);
}
