// Runs the tests under other versions of Node, which the npm registry has as packages. These two run TypeScript
// themselves, so tsx takes no part here but for the little programs in test/programs/.

import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { installed, root } from './on-demand.ts';

const VERSIONS = ['22.23.3', '24.21.0'];

const tests = readdirSync(join(root, 'test')).filter((name) => name.endsWith('.test.ts')).map((name) => join('test', name));
const platform = process.platform === 'win32' ? 'win' : process.platform;
for (const version of VERSIONS) {
  const name = `node-${platform}-${process.arch}`;
  const node = join(installed(`${name}@${version}`), 'node_modules', name, 'bin', platform === 'win' ? 'node.exe' : 'node');
  console.log(`\nNode ${version}`);
  const { status } = spawnSync(node, ['--test', '--test-concurrency=4', '--test-reporter=tap', ...tests], { cwd: root, stdio: 'inherit' });
  if (status !== 0) process.exit(1);
}
