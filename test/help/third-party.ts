// Real servers from npm, at a pinned version, installed into .cache/ when they are not there.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { installed } from './installed.ts';

const VERSION = '2026.8.31';
const names = ['everything', 'filesystem', 'memory', 'sequential-thinking'].map(
  (name) => `@modelcontextprotocol/server-${name}`,
);
const modules = join(installed(...names.map((name) => `${name}@${VERSION}`)), 'node_modules');

/** How to start one: the program behind the package's `bin`, as npx would find it. */
export function server(name: string, ...args: string[]): { command: string; args: string[] } {
  const home = join(modules, '@modelcontextprotocol', `server-${name}`);
  const { bin } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'));
  const file = typeof bin === 'string' ? bin : Object.values<string>(bin)[0]!;
  return { command: process.execPath, args: [join(home, file), ...args] };
}
