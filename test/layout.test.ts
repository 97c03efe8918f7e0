// The promises about the repository itself.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { root } from './helpers.ts';

const read = (...path: string[]) => readFileSync(join(root, ...path), 'utf8');
const manifest = JSON.parse(read('package.json'));

test('there is no runtime dependency, and the development ones are seven', () => {
  // esbuild comes with tsx anyway; here it packs the program into fewer files, which start sooner.
  const toolchain = ['@types/node', 'esbuild', 'tsx', 'typescript', 'vitest'];
  // A pty and a screen. With them `npm ci` brings all that `npm test` needs: no tmux, no compiler.
  const terminal = ['@lydell/node-pty', '@xterm/headless'];
  assert.equal(manifest.dependencies, undefined);
  assert.deepEqual(Object.keys(manifest.devDependencies).sort(), [...toolchain, ...terminal].sort());
});

test('the lock file has the pty for Linux, macOS and Windows: npm ci works on each', () => {
  const { packages } = JSON.parse(read('package-lock.json'));
  for (const os of ['linux', 'darwin', 'win32'])
    for (const cpu of ['x64', 'arm64']) {
      const locked = packages[`node_modules/@lydell/node-pty-${os}-${cpu}`];
      assert.deepEqual([locked?.optional, locked?.os, locked?.cpu], [true, [os], [cpu]]);
    }
});

test('nothing else stands at the top', () => {
  const allowed = [
    'LICENSE', 'README.md', 'agent.ts', 'chapters', 'dist', 'fixtures', 'mcp.ts', 'node_modules', 'package-lock.json', 'package.json',
    'test', 'tsconfig.json', 'vitest.config.ts', 'work',
  ];
  const extra = readdirSync(root).filter((name) => !name.startsWith('.') && !allowed.includes(name));
  assert.deepEqual(extra, []);
});

test('the parts of the agent take only types from agent.ts, so that it can load them; the terminal, loaded last, takes all', () => {
  for (const file of readdirSync(join(root, 'chapters'), { recursive: true }) as string[]) {
    if (!/^1[5678]-.*\.ts$/.test(file) || /(demo|demo-\d+|exercise)\.ts$/.test(file)) continue;
    assert.doesNotMatch(read('chapters', file), /^import (?!type ).*'\.\.\/\.\.\/agent\.ts'/m, file);
  }
});

test('every command that the README shows exists, and CI runs the ones it promises', () => {
  const pages = ['README.md', 'chapters/REFERENCE.md', 'chapters/BENCHMARK.md', '.github/SECURITY.md'];
  const text = pages.map((page) => read(page)).join('\n');
  const shown = [...text.matchAll(/npm (?:run )?([a-z][\w:-]*)/g)].map(([, name]) => name!);
  const known = [...Object.keys(manifest.scripts), 'ci', 'install', 'test', 'start', 'pack'];
  assert.deepEqual(shown.filter((name) => !known.includes(name)), []);
  for (const command of ['npm ci', 'npm run check', 'npm test', 'npm run test:node', 'npm run test:nodes', 'npm run test:real', 'npm run tour', 'npm start', 'npm run book deep', 'npm run conformance'])
    assert.match(read('.ci', 'run'), new RegExp(`^step ${command}( --.*| \\|\\| step .*)?$`, 'm'), command);
});

test('a visitor can read the README in two minutes: it has at most 130 lines, and names the pages that go on', () => {
  assert.ok(read('README.md').trimEnd().split('\n').length <= 130);
  for (const page of ['chapters/README.md', 'chapters/REFERENCE.md', 'chapters/BENCHMARK.md', '.github/SECURITY.md'])
    assert.ok(read('README.md').includes(`(${page}`), page);
});

test('the README tells how long mcp.ts and agent.ts are', () => {
  for (const file of ['mcp.ts', 'agent.ts']) {
    const lines = read(file).trimEnd().split('\n').length;
    const told = new RegExp(`${file}`.replace('.', '\\.') + '`? has (\\d+) lines').exec(read('README.md'))?.[1];
    assert.equal(Number(told), lines, file);
  }
});

test('page 15 tells how long our system prompt is', () => {
  const [, system = ''] = /^const SYSTEM = `([^`]*)`;/m.exec(read('agent.ts')) ?? [];
  assert.ok(read('chapters/15-the-loop/README.md').includes(`has ${system.length} characters`), `${system.length}`);
});

test('what the README names as worth reading is in the program', () => {
  const rows = read('README.md').split('| to find out | read |')[1]!.split('\n\n')[0]!.split('\n').slice(2);
  const program = ['mcp.ts', 'agent.ts', 'chapters/17-the-gate/gate.ts'].map((file) => read(file)).join('\n');
  const names = rows.flatMap((row) => [...row.matchAll(/`(\w+)`/g)].map(([, name]) => name!));
  assert.ok(names.length > 15);
  assert.deepEqual(names.filter((name) => !new RegExp(`(class |function |^  (private |async )*)${name}\\b`, 'm').test(program)), []);
});

test('the contents of the book tell how long it takes: the sum of its chapters, which say the same themselves', () => {
  const contents = read('chapters/README.md');
  const rows = [...contents.matchAll(/\]\((\S+\/README\.md)\).*\| (\d+) \+ (\d+) \|/g)];
  for (const [, page, reading, doing] of rows)
    assert.match(read('chapters', page!).replaceAll('\n', ' '), new RegExp(`Reading ${reading} minutes, doing ${doing}\\.`), page);
  const hours = (column: number) => (rows.reduce((sum, row) => sum + Number(row[column]), 0) / 60).toFixed(1);
  assert.ok(contents.includes(`about ${hours(2)} hours of\nreading and ${hours(3)} of doing`), `${hours(2)} and ${hours(3)}`);
});

test('the version stands in one place, and package.json agrees', async () => {
  assert.equal((await import('../mcp.ts')).VERSION, manifest.version);
});

test('every program in the README and in the reference runs, and prints what its comments say', async () => {
  const pages = read('README.md') + read('chapters', 'REFERENCE.md');
  const programs = [...pages.matchAll(/^```ts\n([^]*?)^```$/gm)].map(([, text]) => text!);
  assert.equal(programs.length, 8);
  mkdirSync(join(root, '.cache', 'readme'), { recursive: true });
  for (const [n, text] of programs.entries()) {
    const file = join(root, '.cache', 'readme', `${n}.ts`);
    writeFileSync(file, text.replace(/from '\.\//g, "from '../../"));
    const env = { ...process.env, HOME: dirname(file), USERPROFILE: dirname(file) }; // not the servers of whoever runs this
    const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', file], { cwd: root, env });
    for (const [, said] of text.matchAll(/console\.log.* \/\/ (.*)$/gm)) assert.ok(stdout.includes(said!), stdout);
  }
});

test('every promise of SECURITY.md names tests, and they are there', () => {
  const rows = read('.github', 'SECURITY.md').split('\n').filter((line) => /^\| (?!promise)[A-Z"]/.test(line));
  assert.ok(rows.length > 5);
  for (const row of rows) {
    const named = [...row.matchAll(/((?:[A-J]\d+ )+)\(\[[^\]]+\]\(([^)]+)\)\)/g)];
    assert.ok(named.length > 0, row);
    for (const [, ids, file] of named)
      for (const id of ids!.trim().split(' ')) assert.match(read('.github', file!), new RegExp(`^test\\(.*\\b${id}\\b`, 'm'), `${id} in ${file}`);
  }
});

test('npm run judge judges a server by raw lines: ours keeps all promises', { timeout: 120_000 }, async () => {
  const args = ['--import', 'tsx', join(root, 'chapters', 'judge.ts'), '--json', 'server', 'node', 'fixtures/server.mjs'];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root });
  assert.equal(JSON.parse(stdout).summary, 'This server keeps 13 of 13 promises.');
});
