// The promises about the repository itself.

import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { root } from './helpers.ts';

const read = (...path: string[]) => readFileSync(join(root, ...path), 'utf8');
const manifest = JSON.parse(read('package.json'));

test('there is no runtime dependency, and the development ones are four', () => {
  assert.equal(manifest.dependencies, undefined);
  assert.deepEqual(Object.keys(manifest.devDependencies), ['@types/node', 'tsx', 'typescript', 'vitest']);
});

test('nothing else stands at the top', () => {
  const allowed = [
    'LICENSE', 'README.md', 'agent.ts', 'chapters', 'dist', 'fixtures', 'mcp.ts', 'node_modules', 'package-lock.json', 'package.json',
    'test', 'tsconfig.json', 'vitest.config.ts',
  ];
  const extra = readdirSync(root).filter((name) => !name.startsWith('.') && !allowed.includes(name));
  assert.deepEqual(extra, []);
});

/** The files that a TypeScript or JavaScript file imports, relative to the root; `node:` and packages as they are. */
function imports(file: string): string[] {
  const found = [...read(file).matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map(([, name]) => name!);
  return found.map((name) => (name.startsWith('.') ? relative(root, resolve(root, dirname(file), name)) : name));
}

test('imports point backwards: mcp.ts and the fixtures import node: only, a chapter mcp.ts and earlier chapters', () => {
  // agent.ts is chapter 15. It puts the later chapters together, and they use its types; what runs never goes in a circle.
  const files = execFileSync('git', ['ls-files', '*.ts', '*.mjs'], { cwd: root, encoding: 'utf8' }).trim().split('\n');
  assert.ok(files.includes('mcp.ts') && files.includes('chapters/tour.ts'), `${files}`);
  for (const file of files) {
    if (!existsSync(join(root, file))) continue; // deleted, not yet committed
    const foreign = imports(file).filter((name) => !name.startsWith('node:'));
    if (file === 'mcp.ts' || file.startsWith('fixtures/')) assert.deepEqual(foreign, [], file);
    if (file.startsWith('chapters/')) {
      const isAfterLoop = dirname(file) >= 'chapters/16';
      const isEarlier = (name: string) =>
        name === 'mcp.ts' || (name === 'agent.ts' && isAfterLoop) || (name.startsWith('chapters/') && dirname(name) <= dirname(file));
      assert.deepEqual(foreign.filter((name) => !isEarlier(name)), [], file);
    }
  }
});

test('the parts of the agent take only types from agent.ts, so that it can load them; the terminal, loaded last, takes all', () => {
  for (const file of readdirSync(join(root, 'chapters'), { recursive: true }) as string[]) {
    if (!/^1[678]-.*\.ts$/.test(file)) continue;
    assert.doesNotMatch(read('chapters', file), /^import (?!type ).*'\.\.\/\.\.\/agent\.ts'/m, file);
  }
});

test('every command that the README shows exists, and CI runs the ones it promises', () => {
  const shown = [...read('README.md').matchAll(/npm (?:run )?([a-z][\w:-]*)/g)].map(([, name]) => name!);
  const known = [...Object.keys(manifest.scripts), 'ci', 'install', 'test', 'start', 'pack'];
  assert.deepEqual(shown.filter((name) => !known.includes(name)), []);
  for (const command of ['npm ci', 'npm run check', 'npm test', 'npm run test:node', 'npm run test:nodes', 'npm run test:real', 'npm run tour', 'npm start'])
    assert.match(read('.ci', 'run'), new RegExp(`^step ${command}( --.*)?$`, 'm'), command);
});

test('the README tells how long mcp.ts and agent.ts are', () => {
  for (const file of ['mcp.ts', 'agent.ts']) {
    const lines = read(file).trimEnd().split('\n').length;
    const told = new RegExp(`${file}`.replace('.', '\\.') + '`? has (\\d+) lines').exec(read('README.md'))?.[1];
    assert.equal(Number(told), lines, file);
  }
});

test('the version stands in one place, and package.json agrees', async () => {
  assert.equal((await import('../mcp.ts')).VERSION, manifest.version);
});

test('every program in the README runs, and prints what its comments say', async () => {
  const programs = [...read('README.md').matchAll(/^```ts\n([^]*?)^```$/gm)].map(([, text]) => text!);
  assert.equal(programs.length, 4);
  mkdirSync(join(root, '.cache', 'readme'), { recursive: true });
  for (const [n, text] of programs.entries()) {
    const file = join(root, '.cache', 'readme', `${n}.ts`);
    writeFileSync(file, text.replace(/'\.\/(mcp|agent)\.ts'/g, "'../../$1.ts'"));
    const env = { ...process.env, HOME: dirname(file), USERPROFILE: dirname(file) }; // not the servers of whoever runs this
    const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', file], { cwd: root, env });
    for (const [, said] of text.matchAll(/console\.log.* \/\/ (.*)$/gm)) assert.ok(stdout.includes(said!), stdout);
  }
});

test('every promise of the security section names tests, and they are there', () => {
  const section = /^## Security$([^]*?)^## /m.exec(read('README.md'))![1]!;
  const rows = section.split('\n').filter((line) => /^\| (?!promise)[A-Z"]/.test(line));
  assert.ok(rows.length > 5);
  for (const row of rows) {
    const named = [...row.matchAll(/((?:[A-I]\d+ )+)\(\[[^\]]+\]\(([^)]+)\)\)/g)];
    assert.ok(named.length > 0, row);
    for (const [, ids, file] of named)
      for (const id of ids!.trim().split(' ')) assert.match(read(file!), new RegExp(`^test\\(.*\\b${id}\\b`, 'm'), `${id} in ${file}`);
  }
});
