// Chapter 16: what .gitignore names is left out of a search, by the same rules as git's, and that is said.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { afterEach, test } from 'node:test';
import { hands, Roots } from '../agent.ts';
import { GitIgnore } from '../chapters/16-hands/gitignore.ts';
import { walkFiles } from '../chapters/16-hands/more/glob.ts';
import type { Json } from '../mcp.ts';
import { cleanUp, folder } from './help/basics.ts';

afterEach(cleanUp);

const isWindows = process.platform === 'win32';
const hasGit = spawnSync('git', ['--version']).status === 0;

function write(root: string, files: Record<string, string>): string {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), content);
  }
  return root;
}

function prepare(files: Record<string, string>, cwd = folder(), within = '.') {
  write(cwd, files);
  const roots = new Roots(join(cwd, within));
  const rows = hands({ roots, resultsFolder: join(folder(), 'results') });
  return async (name: string, args: Json) => {
    const row = rows.find(({ definition }) => definition.name === name)!;
    const { blocks } = await row.run(args, {
      signal: new AbortController().signal,
      onProgress() {},
    });
    return blocks.map((block) => (block.type === 'text' ? block.text : '')).join('\n');
  };
}

async function seen(root: string): Promise<string[]> {
  const found: string[] = [];
  const ignore = await GitIgnore.from(root);
  for await (const path of walkFiles(root, { ignore })) found.push(relative(root, path));
  return found.sort();
}

/** The same numbers in every run. */
function dice(seed: number) {
  let state = seed;
  return (sides: number) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * sides);
  };
}

test("the rules are git's: thousands of paths, and patterns of every kind, compared with git itself", {
  skip: isWindows || !hasGit,
}, async () => {
  const root = folder();
  const roll = dice(Number(process.env.SEED ?? 15));
  const some = <T>(list: T[], most: number, least = 1) =>
    Array.from({ length: least + roll(most) }, () => list[roll(list.length)]!);
  const names = [
    'a',
    'b',
    'ab',
    'a.b',
    '.a',
    'a b',
    'foo',
    '[x]',
    'a*',
    'A',
    'b1',
    'a ',
    '-',
    ']',
    '#a',
    '!a',
    'a\\',
  ];
  const pieces = [
    'a',
    'b',
    'foo',
    '*',
    '*',
    '**',
    '**',
    '/',
    '/',
    '/',
    '?',
    '[ab]',
    '[!a]',
    '[^b]',
    '[a-c]',
    '\\*',
    '\\a',
    '!',
    '#',
    ' ',
    '.',
    'é',
    '[',
    '\\',
    '\\ ',
    '[]a]',
    '[!-]',
    '[a-]',
    '[[:nope:]]',
    '***',
    '**/',
    '/**',
    '/**/',
    'A',
    '\t',
    '-',
  ];
  const usual = [
    '*',
    '!a',
    '!*/',
    'a/',
    '/a',
    'a/*',
    '!a/b',
    'foo',
    '*.b',
    '**/b',
    'a/**',
    'a/**/b',
    '/*',
    '!/a',
    '\\!a',
    '\\#a',
    'a\\ ',
    'b  ',
    '*/b',
    'a/b/',
    '',
    '# no',
    'é',
    '**a',
    'a**',
  ];
  // git cuts a plain beginning off, and then takes a** for **; and it has slashes in brackets.
  const isOdd = (line: string) =>
    /[^/]\*\*+(\/|\\)|\[[^\]]*\/|\[.*\\|\\.*\[|\\\/|\\$/.test(line.trimEnd());
  const lines = () => {
    const made = Array.from({ length: 40 }, () => some(pieces, 4).join(''));
    const known = [...usual, ...made].filter((line) => !isOdd(line));
    return some(known, 5).join(roll(9) ? '\n' : '\r\n') + (roll(3) ? '\n' : '');
  };
  const files: Record<string, string> = {};
  for (let n = 0; n < 80; n++) {
    const paths: string[] = [];
    for (let k = 0; k < 25; k++) {
      const path = `case-${n}/${some(names, 3).join('/')}`;
      const isFree = !paths.some(
        (other) => `${path}/`.startsWith(`${other}/`) || other.startsWith(`${path}/`),
      );
      if (isFree) paths.push(path);
    }
    for (const path of paths) files[path] = '';
    files[`case-${n}/.gitignore`] = lines();
    const below = paths.find((path) => path.split('/').length > 2);
    if (below && roll(2)) files[`${dirname(below)}/.gitignore`] = lines();
  }
  write(root, files);
  const git = (...args: string[]) =>
    execFileSync('git', args, {
      cwd: root,
      encoding: 'utf8',
      maxBuffer: 2 ** 26,
      env: { PATH: process.env.PATH, HOME: folder() },
    });
  git('init', '-q');
  const theirs = new Set(
    git('ls-files', '--others', '--exclude-standard', '-z')
      .split('\0')
      .filter((path) => path !== ''),
  );
  const ours = new Set(await seen(root));
  const wrong = Object.keys(files)
    .filter((path) => ours.has(path) !== theirs.has(path))
    .slice(0, 5);
  const told = wrong.map(
    (path) =>
      `${path}: ${theirs.has(path) ? 'git shows it' : 'git does not'}; ${JSON.stringify(files[`${path.split('/')[0]}/.gitignore`])}`,
  );
  assert.deepEqual(told, []);
  const count = Object.keys(files).length;
  assert.ok(
    count > 1000 && ours.size > count / 4 && ours.size < (3 * count) / 4,
    `${ours.size} of ${count}: neither all nor nothing`,
  );
});

test('grep and glob leave out what .gitignore names, say so, and take it in when told', async () => {
  const call = prepare({
    '.gitignore': 'dist/\n*.log\n!keep.log\n',
    'a.ts': 'hit',
    'dist/b.ts': 'hit',
    'sub/dist/c.ts': 'hit',
    'x.log': 'hit',
    'keep.log': 'hit',
    'sub/.gitignore': '/d.ts\n!y.log\n',
    'sub/y.log': 'hit',
    'sub/d.ts': 'hit',
    'sub/deep/d.ts': 'hit',
    'node_modules/m.ts': 'hit',
  });
  assert.equal(
    await call('grep', { pattern: 'hit' }),
    'a.ts:1:hit\nkeep.log:1:hit\nsub/y.log:1:hit\nsub/deep/d.ts:1:hit\n[left out, as .gitignore says: 2 folders (dist, sub/dist) and 2 files; set ignored to search those, too]',
  );
  const globbed = await call('glob', { pattern: '**/*.ts' });
  assert.deepEqual(globbed.split('\n').sort(), [
    '[left out, as .gitignore says: 2 folders (dist, sub/dist) and 1 file; set ignored to search those, too]',
    'a.ts',
    'sub/deep/d.ts',
  ]);
  assert.match(
    await call('glob', { pattern: '*.py' }),
    /^no file matches \*\.py.*\n\[left out, as .gitignore says: 2 folders/,
  );
  const all = await call('grep', { pattern: 'hit', ignored: true });
  assert.deepEqual(
    all.split('\n').map((line) => line.split(':')[0]),
    [
      'a.ts',
      'keep.log',
      'x.log',
      'dist/b.ts',
      'sub/d.ts',
      'sub/y.log',
      'sub/deep/d.ts',
      'sub/dist/c.ts',
    ],
  );
  assert.doesNotMatch(
    await call('glob', { pattern: '**', ignored: true }),
    /left out|node_modules/,
  );
  assert.equal(
    await call('grep', { pattern: 'hit', path: 'dist' }),
    'dist/b.ts:1:hit',
    'who names it wants to see it',
  );
  assert.equal(await call('grep', { pattern: 'hit', path: 'x.log' }), 'x.log:1:hit');
  assert.equal(await call('glob', { pattern: '*.ts', path: 'sub/dist' }), 'sub/dist/c.ts');
});

test("rules come from the root of the repository, its info/exclude, and of a worktree's", async () => {
  const files = {
    '.gitignore': '/app/out\n',
    'app/out/a': 'hit',
    'app/b': 'hit',
    'app/c': 'hit',
    'app/in/d': 'hit',
  };
  const inApp = (more: Record<string, string>, cwd = folder()) =>
    prepare({ ...files, ...more }, cwd, 'app')('grep', { pattern: 'hit' });
  const leftOut = (rest: string) =>
    `[left out, as .gitignore says: ${rest}; set ignored to search those, too]`;
  assert.equal(
    await inApp({ '.git/info/exclude': 'c\n' }),
    `b:1:hit\nin/d:1:hit\n${leftOut('1 folder (out) and 1 file')}`,
  );
  assert.match(
    await inApp({}),
    /^b:1:hit\nc:1:hit\nin\/d:1:hit\nout\/a:1:hit$/,
    'without a repository the working folder is the top',
  );
  const data = write(folder(), { 'info/exclude': 'c\n', 'worktrees/w/commondir': '../..\n' });
  assert.equal(
    await inApp({ '.git': `gitdir: ${data}/worktrees/w\n` }),
    `b:1:hit\nin/d:1:hit\n${leftOut('1 folder (out) and 1 file')}`,
  );
  assert.equal(
    await inApp({ '.git/info/exclude': '', '.gitignore': 'app\n' }),
    'b:1:hit\nc:1:hit\nin/d:1:hit\nout/a:1:hit',
    'the working folder itself is left out: that is no reason to see nothing',
  );
});

test('a .gitignore that is no plain file, or too large, or made to take long, stops no search', {
  skip: isWindows,
}, async () => {
  const hostile: Record<string, (file: string) => void> = {
    FIFO: (file) => void execFileSync('mkfifo', [file]),
    link: (file) => symlinkSync('/dev/zero', file),
    folder: (file) => mkdirSync(file),
    large: (file) => writeFileSync(file, `*\n${'x'.repeat(300_000)}`),
    binary: (file) => writeFileSync(file, Buffer.from([0, 255, 10, 91, 0])),
    slow: (file) => writeFileSync(file, `${'*a'.repeat(250)}b\n`.repeat(400)),
    'slow with folders': (file) => writeFileSync(file, `${'**/*a/'.repeat(150)}b\n`.repeat(250)),
  };
  for (const [name, make] of Object.entries(hostile)) {
    const cwd = folder();
    const long = join(...Array<string>(12).fill('a'.repeat(200)));
    const call = prepare({ '.git/HEAD': '', a: 'hit', [`${long}/z`]: 'hit' }, cwd);
    make(join(cwd, '.gitignore'));
    assert.match(await call('grep', { pattern: 'hit' }), /^a:1:hit\na+[^]*z:1:hit$/, name);
  }
});
