// The promises about the repository itself.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { cleanUp, folder, root } from './help/basics.ts';
import { figures, figuresTold } from './measure/readme.ts';
import { cyclesIn } from './measure/modules.ts';
import { program, spine } from './measure/sources.ts';

const read = (...path: string[]) => readFileSync(join(root, ...path), 'utf8');
afterEach(cleanUp);
const manifest = JSON.parse(read('package.json'));

test('there is no runtime dependency, and the development ones are eight', () => {
  // esbuild comes with tsx anyway; here it packs the program into fewer files, which start sooner.
  const toolchain = ['@biomejs/biome', '@types/node', 'esbuild', 'tsx', 'typescript', 'vitest'];
  // A pty and a screen. With them `npm ci` brings all that `npm test` needs: no tmux, no compiler.
  const terminal = ['@lydell/node-pty', '@xterm/headless'];
  assert.equal(manifest.dependencies, undefined);
  assert.deepEqual(
    Object.keys(manifest.devDependencies).sort(),
    [...toolchain, ...terminal].sort(),
  );
});

test('the lock file has the pty and Biome for Linux, macOS and Windows: npm ci works on each', () => {
  const { packages } = JSON.parse(read('package-lock.json'));
  for (const os of ['linux', 'darwin', 'win32'])
    for (const cpu of ['x64', 'arm64'])
      for (const name of ['@lydell/node-pty', '@biomejs/cli']) {
        const locked = packages[`node_modules/${name}-${os}-${cpu}`];
        assert.deepEqual([locked?.optional, locked?.os, locked?.cpu], [true, [os], [cpu]], name);
      }
});

test('nothing else stands at the top', () => {
  const allowed = [
    'LICENSE',
    'README.md',
    'agent.ts',
    'biome.jsonc',
    'chapters',
    'dist',
    'dist-site',
    'fixtures',
    'mcp.ts',
    'node_modules',
    'package-lock.json',
    'package.json',
    'test',
    'tsconfig.json',
    'vitest.config.ts',
    'work',
  ];
  const extra = readdirSync(root).filter(
    (name) => !name.startsWith('.') && !allowed.includes(name),
  );
  assert.deepEqual(extra, []);
});

test('the parts of the agent take only types from agent.ts, so that it can load them; the terminal, loaded last, takes all', () => {
  for (const file of readdirSync(join(root, 'chapters'), { recursive: true }) as string[]) {
    if (!/^1[5678]-.*\.ts$/.test(file) || /(demo|demo-\d+|exercise)\.ts$/.test(file)) continue;
    assert.doesNotMatch(read('chapters', file), /^import (?!type ).*'(\.\.\/)+agent\.ts'/m, file);
  }
});

test('no two modules need each other to load', () => {
  assert.deepEqual(cyclesIn(program), []);
});

test('test/ holds tests: helpers lie in help/, programs that tests start in programs/, commands where a script finds them', () => {
  const names = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => /\.m?[jt]s$/.test(name));
  const scripts = [...Object.values(manifest.scripts), read('.ci', 'run')].join('\n');
  const isInPlace = (name: string) =>
    name.endsWith('.test.ts') ||
    /^(help|programs|real\/peers)\//.test(name) ||
    scripts.includes(`test/${name.split('/')[0]}/`); // a command, with its parts
  assert.deepEqual(
    names.filter((name) => !isInPlace(name)),
    [],
  );
  const isIdle = (name: string) => name.startsWith('run/') && !scripts.includes(`test/${name}`);
  assert.deepEqual(names.filter(isIdle), [], 'run/ is for what a script runs by itself');
  const linesOf = (name: string) => read('test', name).trimEnd().split('\n').length;
  assert.deepEqual(
    names.filter((name) => linesOf(name) > 1000),
    [],
    'a file above 1,000 lines has more than one subject',
  );
});

test('every command that the README shows exists, and CI runs the ones it promises', () => {
  const pages = [
    'README.md',
    'chapters/REFERENCE.md',
    'chapters/BENCHMARK.md',
    '.github/SECURITY.md',
  ];
  const text = pages.map((page) => read(page)).join('\n');
  const shown = [...text.matchAll(/npm (?:run )?([a-z](?:[\w:-]*\w)?)/g)].map(([, name]) => name!);
  const known = [...Object.keys(manifest.scripts), 'ci', 'install', 'test', 'start', 'pack'];
  assert.deepEqual(
    shown.filter((name) => !known.includes(name)),
    [],
  );
  for (const command of [
    'npm ci',
    'npm run check',
    'npm test',
    'npm run test:node',
    'npm run test:nodes',
    'npm run test:real',
    'npm run tour',
    'npm start',
    'npm run book deep',
    'npm run conformance',
  ])
    assert.match(
      read('.ci', 'run'),
      new RegExp(`^step ${command}( --.*| \\|\\| step .*)?$`, 'm'),
      command,
    );
});

test('a visitor can read the README in two minutes: it has at most 130 lines, and names the pages that go on', () => {
  assert.ok(read('README.md').trimEnd().split('\n').length <= 130);
  for (const page of [
    'chapters/README.md',
    'chapters/REFERENCE.md',
    'chapters/BENCHMARK.md',
    '.github/SECURITY.md',
  ])
    assert.ok(read('README.md').includes(`(${page}`), page);
});

test('the figures of the README are those of `npm run measure`', () => {
  const numbers = (text: string) => [...text.matchAll(/\d[\d,]*/g)].map(([n]) => n);
  const words = (text: string) => text.replace(/\d[\d,]*/g, 'N');
  const [told, now] = [figuresTold(), figures()];
  const hint = 'npm run measure write mends it';
  assert.equal(words(told), words(now), hint);
  // The lines of mcp.ts and agent.ts to the letter. The rest is so large that nobody counts it.
  const lines = (text: string) => numbers(/^\| lines .*$/m.exec(text)![0]).slice(0, 2);
  assert.deepEqual(lines(told), lines(now), hint);
  const value = (n: string) => Number(n.replaceAll(',', ''));
  for (const [k, n] of numbers(now).entries()) {
    const isClose = Math.abs(value(numbers(told)[k]!) - value(n)) <= value(n) / 100;
    assert.ok(isClose, `${numbers(told)[k]} is not ${n}: ${hint}`);
  }
});

test('the README has no other figures of the program, which would go stale', () => {
  const prose = read('README.md').replace(
    /<!-- figures[^]*?end of figures -->|^```[^]*?^```$/gm,
    '',
  );
  const counts =
    /\b[\d,]+ (lines|tokens|tests|files|tools|chapters|scenarios|functions|exercises)\b/;
  assert.doesNotMatch(prose, counts);
});

test('page 15 tells how long our system prompt is', () => {
  const prompt = read('chapters/15-the-loop/prompt.ts');
  const [, system = ''] = /^const SYSTEM = `([^`]*)`;/m.exec(prompt) ?? [];
  const page = read('chapters/15-the-loop/3-the-second-week.md');
  assert.ok(page.includes(`has ${system.length} characters`), `${system.length}`);
});

test('what the README names as worth reading is in the program', () => {
  const rows = read('README.md')
    .split('| to find out | read |')[1]!
    .split('\n\n')[0]!
    .split('\n')
    .slice(2);
  const gate = read('chapters/17-the-gate/gate.ts');
  const program = [...spine.map(({ text }) => text), gate].join('\n');
  const names = rows.flatMap((row) => [...row.matchAll(/`(\w+)`/g)].map(([, name]) => name!));
  assert.ok(names.length > 15);
  assert.deepEqual(
    names.filter(
      (name) =>
        !new RegExp(`(class |function |^  (private |async )*)${name}\\b`, 'm').test(program),
    ),
    [],
  );
});

test('what the reference says is in a file is declared there', () => {
  const table = read('chapters/REFERENCE.md').split('| to add | look at |')[1]!.split('\n\n')[0]!;
  const told = [...table.matchAll(/(?:interface|types?) ([^|;]*?) in \[`[^`]+`\]\(([^)]+)\)/g)];
  assert.ok(told.length >= 6);
  for (const [, names, file] of told)
    for (const [, name] of names!.matchAll(/`(\w+)`/g))
      assert.match(read('chapters', file!), new RegExp(`^export (type|interface) ${name}\\b`, 'm'));
});

test('the version stands in one place, and package.json agrees', async () => {
  assert.equal((await import('../mcp.ts')).VERSION, manifest.version);
});

/** The programs that the pages show. The reference's last one ends its process. */
const examples = () => {
  const pages =
    read('README.md') + read('chapters', 'package', 'README.md') + read('chapters', 'REFERENCE.md');
  return [...pages.matchAll(/^```[tj]s\n([^]*?)^```$/gm)].map(([, text]) => text!);
};
/** What the package's README starts by npx, in a test without a network. */
const EVERYTHING = `command: 'npx', args: ['-y', '@modelcontextprotocol/server-everything']`;
const standIn = JSON.stringify(join(root, 'test', 'programs', 'everything.mjs'));

/** The source of a module of the package. */
const source = (name: string) => {
  const file: string = manifest.exports[name.replace('mcp-by-hand', '.')].default;
  return pathToFileURL(join(root, file.replace('./dist/', '').replace(/js$/, 'ts'))).href;
};

test('every name that the package exports has a sentence in the reference, and an example', async () => {
  const [, table = ''] = read('chapters', 'REFERENCE.md').split('| name | what it is |');
  const rows = table.split('\n\n')[0]!;
  // In the import, and below.
  const isUsed = (name: string) => (text: string) =>
    text.split(new RegExp(`\\b${name}\\b`)).length > 2;
  const modules = Object.keys(manifest.exports);
  assert.equal(modules.length, 5);
  for (const name of modules)
    for (const each of Object.keys(await import(source(name)))) {
      assert.match(rows, new RegExp(`^\\|[^|]*\`${each}\\b`, 'm'), `${name}: ${each}`);
      assert.ok(examples().some(isUsed(each)), `no example has ${each}`);
    }
});

test('every program in the READMEs and in the reference runs, and prints what its comments say', async () => {
  const programs = examples();
  assert.equal(programs.length, 12);
  // The package's modules, from their sources. test/real/package.test.ts has them as installed.
  const place = folder();
  const files = programs.map((text, n) => {
    const file = join(place, `${n}.mts`);
    writeFileSync(
      file,
      text
        .replace(/'(mcp-by-hand[\w/]*)'/g, (_, name) => `'${source(name)}'`)
        .replace(EVERYTHING, `command: process.execPath, args: [${standIn}]`),
    );
    return pathToFileURL(file).href;
  });
  // One process for all: most of the time is the program's start.
  const all = `for (const file of ${JSON.stringify(files)}) {
    await import(file);
    console.log('— end —');
  }`;
  const env = { ...process.env, HOME: place, USERPROFILE: place }; // not the servers of whoever runs this
  const flags = ['--import', 'tsx', '--input-type=module', '-e', all];
  const { stdout } = await promisify(execFile)(process.execPath, flags, { cwd: root, env });
  const printed = stdout.split('— end —');
  for (const [n, text] of programs.entries())
    for (const [, said] of text.matchAll(/console\.log.* \/\/ (.*)$/gm))
      assert.ok(printed[n]!.includes(said!), printed[n]);
});

test('what a runtime cannot do is in the table of the reference, by the words of the test', () => {
  const [, table = ''] = read('chapters', 'REFERENCE.md').split('## Bun and Deno');
  const tests = readdirSync(join(root, 'test')).filter((name) => name.endsWith('.test.ts'));
  const left = tests.flatMap((name) => [
    ...read('test', name).matchAll(/\bnotIn\(\s*'(\w+)',\s*'([^']+)'/g),
  ]);
  assert.ok(left.length > 2);
  for (const [, name, why] of left)
    assert.ok(table.toLowerCase().includes(`| ${name} | ${why!.toLowerCase()} |`), why);
});

test('every promise of SECURITY.md names tests, and they are there', () => {
  const rows = read('.github', 'SECURITY.md')
    .split('\n')
    .filter((line) => /^\| (?!promise)[A-Z"]/.test(line));
  assert.ok(rows.length > 5);
  for (const row of rows) {
    const named = [...row.matchAll(/((?:[A-K]\d+ )+)\(\[[^\]]+\]\(([^)]+)\)\)/g)];
    assert.ok(named.length > 0, row);
    for (const [, ids, file] of named)
      for (const id of ids!.trim().split(' '))
        assert.match(
          read('.github', file!),
          new RegExp(`^test\\(\\s*.*\\b${id}\\b`, 'm'),
          `${id} in ${file}`,
        );
  }
});

test('npm run judge judges a server by raw lines: ours keeps all promises', {
  timeout: 120_000,
}, async () => {
  const args = [
    '--import',
    'tsx',
    join(root, 'chapters', 'judge.ts'),
    '--json',
    'server',
    'node',
    'fixtures/server.mjs',
  ];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root });
  assert.equal(JSON.parse(stdout).summary, '13 of 13 kept.');
});

test('npm ci runs no program of a package', () => {
  assert.match(read('.npmrc'), /^ignore-scripts=true$/m);
});
