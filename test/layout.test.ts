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
    'LICENSE', 'README.md', 'agent.ts', 'chapters', 'fixtures', 'mcp.ts', 'node_modules', 'package-lock.json', 'package.json',
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
  const files = execFileSync('git', ['ls-files', '*.ts', '*.mjs'], { cwd: root, encoding: 'utf8' }).trim().split('\n');
  assert.ok(files.includes('mcp.ts') && files.includes('chapters/tour.ts'), `${files}`);
  for (const file of files) {
    if (!existsSync(join(root, file))) continue; // deleted, not yet committed
    const foreign = imports(file).filter((name) => !name.startsWith('node:'));
    if (file === 'mcp.ts' || file.startsWith('fixtures/')) assert.deepEqual(foreign, [], file);
    if (file.startsWith('chapters/')) {
      const isEarlier = (name: string) => name === 'mcp.ts' || (name.startsWith('chapters/') && dirname(name) <= dirname(file));
      assert.deepEqual(foreign.filter((name) => !isEarlier(name)), [], file);
    }
  }
});

test('every command that the README shows exists, and CI runs the ones it promises', () => {
  const shown = [...read('README.md').matchAll(/npm (?:run )?([a-z][\w:-]*)/g)].map(([, name]) => name!);
  const known = [...Object.keys(manifest.scripts), 'ci', 'test', 'start', 'pack'];
  assert.deepEqual(shown.filter((name) => !known.includes(name)), []);
  for (const command of ['npm ci', 'npm run check', 'npm test', 'npm run test:node', 'npm run test:nodes', 'npm run test:real', 'npm start'])
    assert.ok(read('.ci', 'run').includes(`step ${command}\n`), command);
});

test('the README tells how long mcp.ts is', () => {
  const lines = read('mcp.ts').trimEnd().split('\n').length;
  const told = /mcp\.ts`? has (\d+) lines/.exec(read('README.md'))?.[1];
  assert.equal(Number(told), lines);
});

test('every program in the README runs, and prints what its comments say', async () => {
  const programs = [...read('README.md').matchAll(/^```ts\n([^]*?)^```$/gm)].map(([, text]) => text!);
  assert.equal(programs.length, 3);
  mkdirSync(join(root, '.cache', 'readme'), { recursive: true });
  for (const [n, text] of programs.entries()) {
    const file = join(root, '.cache', 'readme', `${n}.ts`);
    writeFileSync(file, text.replace("'./mcp.ts'", "'../../mcp.ts'"));
    const env = { ...process.env, HOME: dirname(file), USERPROFILE: dirname(file) }; // not the servers of whoever runs this
    const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', file], { cwd: root, env });
    for (const [, said] of text.matchAll(/console\.log.* \/\/ (.*)$/gm)) assert.ok(stdout.includes(said!), stdout);
  }
});
