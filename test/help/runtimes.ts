// Other versions of Node, Bun and Deno, each as npm has it: `22.23.3`, `bun@1.4.4`, `deno@2.9.6`.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { installed, root } from './installed.ts';

const { platform, arch } = process;
const isWindows = platform === 'win32';
const exe = isWindows ? '.exe' : '';
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** Those of `npm run test:nodes`, which is the one place that names them. */
export const runtimes: string[] = scripts['test:nodes'].split(' ').slice(2);

/** Which package has it, and where in there the program is. */
const PACKAGES: Record<string, () => [name: string, program: string]> = {
  node: () => [`node-${isWindows ? 'win' : platform}-${arch}`, `bin/node${exe}`],
  bun: () => {
    const system = isWindows ? 'windows' : platform;
    return [`@oven/bun-${system}-${arch === 'arm64' ? 'aarch64' : arch}`, `bin/bun${exe}`];
  },
  deno: () => {
    const library = platform === 'linux' ? '-glibc' : '';
    return [`@deno/${platform}-${arch}${library}`, `deno${exe}`];
  },
};

export function runtime(wanted: string): { name: string; program: string } {
  const [version = '', name = 'node'] = wanted.split('@').reverse();
  const [from, program] = PACKAGES[name]!();
  return { name, program: join(installed(`${from}@${version}`), 'node_modules', from, program) };
}

/** How it runs a file, as a user would say it; Deno asks before it reads, writes or starts anything. */
export const toRun = (name: string) => (name === 'deno' ? ['run', '-A', '--no-check'] : []);
