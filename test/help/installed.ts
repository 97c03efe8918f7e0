// What judges us from outside is no dependency of ours. It is installed here, at a pinned version, when a script
// asks for it: into .cache/, which git ignores.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));

/** Installs packages such as "ws@8.18.0" together and returns the folder that holds their node_modules. */
export function installed(...packages: string[]): string {
  const folder = join(root, '.cache', packages.join('+').replaceAll(/[^\w.+-]/g, '_'));
  if (existsSync(folder)) return folder;
  const unfinished = `${folder}.${process.pid}`; // renamed when it is whole, so that half an install is never used
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { recursive: true });
  writeFileSync(join(unfinished, 'package.json'), '{ "private": true }');
  const npm = process.platform === 'win32' ? ['cmd', '/c', 'npm'] : ['npm'];
  const [command = 'npm', ...before] = npm;
  const flags = [
    'install',
    '--no-audit',
    '--no-fund',
    '--ignore-scripts',
    '--loglevel=error',
    '--save-exact',
  ];
  execFileSync(command, [...before, ...flags, ...packages], {
    cwd: unfinished,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  try {
    renameSync(unfinished, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
    rmSync(unfinished, { recursive: true }); // another test file was faster
  }
  return folder;
}
