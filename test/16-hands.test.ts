// Chapter 16: the six built-in tools, on real files and with real processes.

import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, test } from 'node:test';
import type { Tool } from '../agent.ts';
import { globMatcher, walkFiles } from '../chapters/16-hands/more/glob.ts';
import { distance, nearest } from '../chapters/16-hands/nearest.ts';
import { replaceProjectFile, Roots } from '../chapters/16-hands/paths.ts';
import { hands, type HandsOptions } from '../chapters/16-hands/tools.ts';
import { allGone, cleanUp, folder, later, pidsIn, until } from './help/basics.ts';

afterEach(cleanUp);

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

/** A working folder with these files, and the tools in it. */
function prepare(files: Record<string, string | Buffer> = {}, more: Partial<HandsOptions> = {}) {
  const cwd = folder();
  const put = (name: string, content: string | Buffer) => {
    mkdirSync(dirname(join(cwd, name)), { recursive: true });
    writeFileSync(join(cwd, name), content);
  };
  for (const [name, content] of Object.entries(files)) put(name, content);
  const resultsFolder = join(folder(), 'results');
  const roots = new Roots(cwd, [], [resultsFolder]);
  const tools = hands({ roots, resultsFolder, ...more });
  const tool = (name: string): Tool => tools.find(({ definition }) => definition.name === name)!;
  const call = async (name: string, args: object, signal = new AbortController().signal) => {
    const { blocks, isError } = await tool(name).run({ ...args }, { signal, onProgress() {} });
    return {
      blocks,
      isError,
      text: blocks.map((block) => (block.type === 'text' ? block.text : '')).join('\n'),
    };
  };
  const works = async (name: string, args: object) => {
    const { isError, text } = await call(name, args);
    assert.ok(!isError, text);
    return text;
  };
  const fails = async (name: string, args: object) => {
    const { isError, text } = await call(name, args);
    assert.ok(isError, text);
    return text;
  };
  const file = (name: string) => readFileSync(join(cwd, name), 'utf8');
  return { cwd: roots.cwd, put, tools, tool, call, works, fails, file, resultsFolder };
}

// ─── The table ───

test('there are six rows, and those that read say so', () => {
  const { tools } = prepare();
  assert.deepEqual(
    tools.map(({ definition }) => definition.name),
    ['read', 'write', 'edit', 'grep', 'glob', 'bash'],
  );
  assert.deepEqual(
    tools.filter(({ readOnly }) => readOnly).map(({ definition }) => definition.name),
    ['read', 'grep', 'glob'],
  );
  for (const { definition } of tools) assert.equal(definition.inputSchema.type, 'object');
});

test('every row tells the gate what a call touches, also if its arguments are nonsense', () => {
  const { tool } = prepare();
  const touches = (name: string, args: object) => tool(name).touches!({ ...args });
  assert.deepEqual(touches('read', { path: 'a' }), { kind: 'read', path: 'a' });
  assert.deepEqual(touches('write', { path: 'a' }), { kind: 'write', path: 'a' });
  assert.deepEqual(touches('edit', { path: '../a' }), { kind: 'write', path: '../a' });
  assert.deepEqual(touches('grep', { pattern: 'x' }), { kind: 'read', path: '.' });
  assert.deepEqual(touches('glob', { pattern: '*', path: 'src' }), { kind: 'read', path: 'src' });
  assert.deepEqual(touches('bash', { command: 'ls' }), { kind: 'shell', command: 'ls' });
  assert.deepEqual(touches('read', { path: 'a\0b' }), { kind: 'read', path: 'a\0b' });
  assert.deepEqual(touches('bash', {}), { kind: 'shell', command: '' });
});

test('arguments are checked: the error names the argument and what is expected', async () => {
  const { fails, works } = prepare({ a: 'one\n' });
  assert.match(await fails('read', {}), /"path" is missing.*path, offset\?, limit\?/);
  assert.match(await fails('read', { path: 5 }), /"path" must be a string, not 5/);
  assert.match(
    await fails('read', { path: 'a', offset: 0 }),
    /"offset" must be a whole number, 1 or more, not 0/,
  );
  assert.match(await fails('read', { path: 'a', limit: 1.5 }), /"limit" must be a whole number/);
  assert.match(
    await fails('edit', { path: 'a', old: 'x', new: 'y', all: 'yes' }),
    /"all" must be true or false/,
  );
  assert.match(
    await fails('edit', { path: 'a', old_string: 'x', new: 'y' }),
    /no argument "old_string"; there are: path, old, new, all\?/,
  );
  assert.match(
    await fails('read', JSON.parse('{"__proto__": 1, "path": "a"}')),
    /no argument "__proto__"/,
  );
  assert.equal(await works('read', { path: 'a', offset: null, limit: undefined }), 'one');
});

// ─── read ───

test('read shows a file as it is, without byte order mark and carriage returns', async () => {
  const { works } = prepare({ plain: 'one\n\ntwo\n', odd: '\ufeffone\r\ntwo', empty: '' });
  assert.equal(await works('read', { path: 'plain' }), 'one\n\ntwo');
  assert.equal(await works('read', { path: 'odd' }), 'one\ntwo');
  assert.equal(await works('read', { path: 'empty' }), '(the file is empty)');
});

test('read shows 2,000 lines, says of how many, and where to go on', async () => {
  const lines = Array.from({ length: 4500 }, (_, i) => `line ${i + 1}`);
  const { works, fails } = prepare({ long: lines.join('\n') });
  const first = await works('read', { path: 'long' });
  assert.ok(
    first.startsWith('line 1\n') &&
      first.includes('line 2000\n\n[lines 1 to 2000 of 4500; go on with offset 2001]'),
  );
  assert.ok(!first.includes('line 2001\n'));
  assert.equal(await works('read', { path: 'long', limit: 9999 }), first);
  assert.ok(
    (await works('read', { path: 'long', offset: 4001, limit: 9999 })).endsWith(
      'line 4500\n\n[lines 4001 to 4500 of 4500]',
    ),
  );
  assert.equal(
    await works('read', { path: 'long', offset: 7, limit: 2 }),
    'line 7\nline 8\n\n[lines 7 to 8 of 4500; go on with offset 9]',
  );
  assert.match(await fails('read', { path: 'long', offset: 4501 }), /only 4500 lines/);
});

test('read shows at most 50 KB, in whole lines', async () => {
  const { works } = prepare({ wide: `${'ä'.repeat(500)}\n`.repeat(100) });
  const text = await works('read', { path: 'wide' });
  const [body = '', foot] = text.split('\n\n');
  assert.ok(Buffer.byteLength(body) <= 50 * 1024 && Buffer.byteLength(body) > 49 * 1024);
  assert.ok(body.split('\n').every((line) => line === 'ä'.repeat(500)));
  assert.match(foot!, /lines 1 to 51 of 100; go on with offset 52/);
});

test('read refuses a line that is too long, with a way on', async () => {
  const { works, fails } = prepare({ long: `short\n${'x'.repeat(60_000)}\nlast` });
  assert.match(
    await works('read', { path: 'long' }),
    /^short\n\n\[lines 1 to 1 of 3; go on with offset 2\]$/,
  );
  assert.match(
    await fails('read', { path: 'long', offset: 2 }),
    /line 2 of long is longer than 51200 bytes.*bash.*offset 3/,
  );
  assert.match(await works('read', { path: 'long', offset: 3 }), /^last/);
});

test('read returns images by what they are, not by what they are called', async () => {
  const webp = Buffer.concat([Buffer.from('RIFF\x10\0\0\0WEBPVP8 '), Buffer.alloc(8)]);
  const { call } = prepare({
    'a.txt': png,
    'a.jpg': Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 0]),
    'a.gif': Buffer.from('GIF89a\0'),
    a: webp,
  });
  const types = {
    'a.txt': 'image/png',
    'a.jpg': 'image/jpeg',
    'a.gif': 'image/gif',
    a: 'image/webp',
  };
  for (const [path, type] of Object.entries(types)) {
    const [block] = (await call('read', { path })).blocks;
    assert.equal(block?.type === 'image' && block.mimeType, type);
  }
  assert.deepEqual((await call('read', { path: 'a.txt' })).blocks, [
    { type: 'image', mimeType: 'image/png', data: png.toString('base64') },
  ]);
  const big = prepare({ 'big.png': Buffer.concat([png, Buffer.alloc(4 * 2 ** 20)]) });
  assert.match(
    await big.fails('read', { path: 'big.png' }),
    /image of \d+ bytes, more than a model can take.*smaller/,
  );
});

test('read refuses what is not text, and says what to do instead', async () => {
  const { fails } = prepare({ binary: Buffer.from([65, 0, 66]), 'src/x.ts': '' });
  assert.match(await fails('read', { path: 'binary' }), /not text.*bash/);
  assert.match(await fails('read', { path: 'src' }), /src is a folder\. Use glob/);
});

test('read names files that are like a missing one, wherever they are', async () => {
  const { fails } = prepare({
    'src/utils.ts': '',
    'src/other.ts': '',
    'lib/util.ts': '',
    'README.md': '',
  });
  assert.match(
    await fails('read', { path: 'src/utlis.ts' }),
    /no file src\/utlis\.ts\. Did you mean src.utils\.ts/,
  );
  assert.match(
    await fails('read', { path: 'utils.ts' }),
    /Did you mean src.utils\.ts or lib.util\.ts\?/,
  );
  assert.match(await fails('read', { path: 'docs/readme.md' }), /Did you mean README\.md\?/);
  assert.match(await fails('read', { path: 'quite/different.xyz' }), /Use glob/);
});

// ─── write ───

test('write makes folders, and tells how much it wrote', async () => {
  const { works, file } = prepare();
  assert.equal(
    await works('write', { path: 'a/b/c.txt', content: 'ä\nb\n' }),
    'created a/b/c.txt: 5 bytes, 2 lines',
  );
  assert.equal(file('a/b/c.txt'), 'ä\nb\n');
  assert.match(await works('write', { path: 'empty', content: '' }), /0 bytes, 0 lines/);
  assert.match(await works('write', { path: 'open', content: 'no end' }), /6 bytes, 1 line$/);
});

test('write does not overwrite what was not read, or has changed since', async () => {
  const { works, fails, file, put, cwd } = prepare({ a: 'theirs\n', b: 'b\n' });
  assert.match(
    await fails('write', { path: 'a', content: 'mine' }),
    /not read it in this session; read it first/,
  );
  assert.equal(file('a'), 'theirs\n');
  await works('read', { path: './b/../a' }); // the same file by another name
  put('a', 'theirs, longer\n');
  assert.match(
    await fails('write', { path: 'a', content: 'mine' }),
    /changed since you read it; read it again first/,
  );
  await works('read', { path: 'a' });
  put('a', 'theirs, other.\n'); // of the same size
  utimesSync(join(cwd, 'a'), new Date(), new Date(Date.now() + 5000));
  assert.match(await fails('write', { path: 'a', content: 'mine' }), /changed since/);
  assert.equal(file('a'), 'theirs, other.\n');
  utimesSync(join(cwd, 'a'), 1e9, 1e9);
  await works('read', { path: 'a' });
  put('a', 'theirs, shorter\n');
  utimesSync(join(cwd, 'a'), 1e9, 1e9); // at the same time, as far as one can see
  assert.match(await fails('write', { path: 'a', content: 'mine' }), /changed since/);
  await works('read', { path: 'a' });
  assert.match(await works('write', { path: 'a', content: 'mine' }), /^replaced a: 4 bytes/);
  await works('write', { path: 'a', content: 'mine again' }); // what it wrote it knows
  assert.equal(file('a'), 'mine again');
});

test('write keeps the mode of a file, and leaves nothing else behind', async () => {
  const { works, cwd } = prepare({ 'run.sh': '#!/bin/sh\n', mine: 'x' });
  chmodSync(join(cwd, 'run.sh'), 0o775);
  chmodSync(join(cwd, 'mine'), 0o600);
  for (const path of ['run.sh', 'mine']) {
    await works('read', { path });
    await works('write', { path, content: 'new' });
  }
  assert.deepEqual(
    ['run.sh', 'mine'].map((name) => statSync(join(cwd, name)).mode & 0o777),
    [0o775, 0o600],
  );
  assert.deepEqual(readdirSync(cwd).sort(), ['mine', 'run.sh']);
});

test('write refuses a folder, and a path through a file', async () => {
  const { fails, works, file, cwd } = prepare({ 'src/a': 'x' });
  assert.match(await fails('write', { path: 'src', content: '' }), /src is a folder/);
  await works('read', { path: 'src/a' });
  assert.match(
    await fails('write', { path: 'src/a/b', content: '' }),
    /a part of its path is a file/,
  );
  assert.equal(file('src/a'), 'x');
  await assert.rejects(replaceProjectFile(new Roots(cwd).locate('src'), 'x'), /cannot write src/);
  assert.deepEqual(readdirSync(cwd), ['src']); // no draft is left behind
});

test('a link inside stays a link: what it leads to is written', async () => {
  const { cwd, works, file } = prepare({ 'real.txt': 'old' });
  symlinkSync('real.txt', join(cwd, 'link'));
  await works('read', { path: 'link' });
  await works('write', { path: 'link', content: 'new' });
  assert.equal(file('real.txt'), 'new');
  assert.deepEqual(
    readdirSync(cwd, { withFileTypes: true }).filter((entry) => entry.isSymbolicLink()).length,
    1,
  );
});

// ─── edit ───

/** Edits a file that has been read. */
async function edited(content: string | Buffer, args: object) {
  const { cwd, works, call, file } = prepare({ f: content });
  chmodSync(join(cwd, 'f'), 0o640);
  await works('read', { path: 'f' });
  const { text, isError } = await call('edit', { path: 'f', ...args });
  return { text, isError, file: file('f'), mode: statSync(join(cwd, 'f')).mode & 0o777 };
}

test('edit replaces one text and answers with a small diff', async () => {
  const { text, file, mode } = await edited('1\n2\n3\n4\n5\n6\n7\n', {
    old: '4\n',
    new: 'four\nand a half\n',
  });
  assert.equal(file, '1\n2\n3\nfour\nand a half\n5\n6\n7\n');
  assert.equal(text, 'edited f\n@@ -1,7 +1,8 @@\n 1\n 2\n 3\n-4\n+four\n+and a half\n 5\n 6\n 7');
  assert.equal(mode, 0o640);
});

test('edit takes the new text as it is, dollars and all', async () => {
  const { file } = await edited('price: X;', { old: 'X', new: "$& $1 $$ $` $'" });
  assert.equal(file, "price: $& $1 $$ $` $';");
});

test('edit compares lines whatever their ending, and keeps that of the file, and its byte order mark', async () => {
  const crlf = await edited('\ufeffa\r\nb\r\nc\r\n', { old: 'a\nb', new: 'x\ny\nz' });
  assert.equal(crlf.file, '\ufeffx\r\ny\r\nz\r\nc\r\n');
  const single = await edited('a\r\nb\r\n', { old: 'b', new: 'b1\nb2' });
  assert.equal(single.file, 'a\r\nb1\r\nb2\r\n');
  const lf = await edited('a\nb\n', { old: 'a\r\nb', new: 'x\r\ny' });
  assert.equal(lf.file, 'x\ny\n');
  const noEnding = await edited('a', { old: 'a', new: 'x\ny' });
  assert.equal(noEnding.file, 'x\ny');
  const mixed = await edited('a\nb\nc\r\nd\n', { old: 'b\nc\nd', new: 'x' });
  assert.deepEqual([mixed.isError, mixed.file], [true, 'a\nb\nc\r\nd\n']); // two endings in one text: not ours to guess
  const other = await edited('a\nb\nc\r\nd\n', { old: 'a\nb', new: 'x\ny' });
  assert.equal(other.file, 'x\ny\nc\r\nd\n'); // lines that were not meant keep theirs
});

test('edit shows the nearest line if the text is not there', async () => {
  const { text, isError, file } = await edited('one\n  const total = sum(a, b);\nthree\n', {
    old: 'const totl = sum(a, b);',
    new: 'x',
  });
  assert.ok(isError);
  assert.match(
    text,
    /old was not found in f\..*The nearest is line 2:\n  const total = sum\(a, b\);/,
  );
  assert.equal(file, 'one\n  const total = sum(a, b);\nthree\n');
  assert.match(
    (await edited('one\n', { old: 'something else entirely', new: 'x' })).text,
    /Nothing in it looks like it/,
  );
});

test('edit counts what it finds more than once, and replaces all on demand', async () => {
  const twice = await edited('x x y x', { old: 'x', new: 'z' });
  assert.match(twice.text, /found 3 times in f\. Add lines around it.*all/);
  assert.deepEqual([twice.isError, twice.file], [true, 'x x y x']);
  assert.equal((await edited('x x y x', { old: 'x', new: 'z', all: true })).file, 'z z y z');
});

test('edit refuses to change nothing, an empty text, and bytes that are not UTF-8', async () => {
  assert.match((await edited('same', { old: 'same', new: 'same' })).text, /would leave f as it is/);
  assert.match((await edited('same', { old: '', new: 'x' })).text, /old is empty/);
  assert.match(
    (await edited(Buffer.from('caf\xe9 x', 'latin1'), { old: 'x', new: 'y' })).text,
    /not valid UTF-8/,
  );
});

test('edit needs a file that was read and has not changed', async () => {
  const { fails, works, put, file } = prepare({ f: 'a b\n' });
  assert.match(await fails('edit', { path: 'f', old: 'a', new: 'x' }), /read it first/);
  assert.match(await fails('edit', { path: 'g', old: 'a', new: 'x' }), /there is no file g\./);
  await works('read', { path: 'f' });
  put('f', 'a b c\n');
  assert.match(await fails('edit', { path: 'f', old: 'a', new: 'x' }), /changed since/);
  await works('read', { path: 'f' });
  await works('edit', { path: 'f', old: 'a', new: 'x' });
  await works('edit', { path: 'f', old: 'b', new: 'y' }); // its own change it knows
  assert.equal(file('f'), 'x y c\n');
});

test('a long diff is cut', async () => {
  const lines = Array.from({ length: 300 }, (_, i) => `x${i}\n`).join('');
  const { text } = await edited(lines, { old: 'x', new: 'y', all: true });
  assert.match(text, /… and 501 more$/);
  assert.ok(text.length < 2000);
});

// ─── grep ───

test('grep answers file:line:text, in the folder, in one file, and by a pattern for names', async () => {
  const { works } = prepare({
    'a.ts': 'foo\nbar\nFoo()\r\n',
    'src/b.js': 'foo\n',
    'src/deep/c.ts': 'x foo\n',
  });
  assert.equal(
    await works('grep', { pattern: 'foo' }),
    'a.ts:1:foo\nsrc/b.js:1:foo\nsrc/deep/c.ts:1:x foo',
  );
  assert.equal(
    await works('grep', { pattern: '^foo', ignoreCase: true, path: 'a.ts' }),
    'a.ts:1:foo\na.ts:3:Foo()',
  );
  assert.equal(
    await works('grep', { pattern: 'foo', glob: '*.ts' }),
    'a.ts:1:foo\nsrc/deep/c.ts:1:x foo',
  );
  assert.equal(await works('grep', { pattern: 'foo', glob: 'src/*.{js,ts}' }), 'src/b.js:1:foo');
  assert.equal(
    await works('grep', { pattern: 'foo', path: 'src', glob: 'deep/**' }),
    'src/deep/c.ts:1:x foo',
  );
  assert.equal(await works('grep', { pattern: 'o()', literal: true }), 'a.ts:3:Foo()');
  assert.match(
    await works('grep', { pattern: 'nowhere' }),
    /no match for nowhere in 3 files.*\.git, node_modules/,
  );
});

test('grep shows lines around a match, each once', async () => {
  const { works } = prepare({ f: '1\n2 x\n3\n4 x\n5\n6\n7\n8 x\n9' });
  const expected = [
    'f-1-1',
    'f:2:2 x',
    'f-3-3',
    'f:4:4 x',
    'f-5-5',
    '--',
    'f-7-7',
    'f:8:8 x',
    'f-9-9',
  ];
  assert.deepEqual((await works('grep', { pattern: 'x', context: 1 })).split('\n'), expected);
  const two = prepare({ f: '1\n2\n3 x', g: 'x' });
  assert.equal(await two.works('grep', { pattern: 'x', context: 1 }), 'f-2-2\nf:3:3 x\n--\ng:1:x');
});

test('grep counts what it leaves out, and cuts long lines', async () => {
  const { works } = prepare({ f: 'hit\n'.repeat(250), g: `hit${'x'.repeat(1000)}` });
  const lines = (await works('grep', { pattern: 'hit' })).split('\n');
  assert.equal(lines.length, 101);
  assert.match(lines[100]!, /^\[151 more matches are left out; narrow the pattern/);
  assert.match(await works('grep', { pattern: 'hit', limit: 2 }), /^f:1:hit\nf:2:hit\n\[249 more/);
  const [long] = (await works('grep', { pattern: 'hit', path: 'g' })).split('\n');
  assert.equal(long, `g:1:hit${'x'.repeat(497)}… (1003 characters)`);
});

test('grep skips .git, node_modules, binaries, large files and links', async () => {
  const { works, fails, cwd } = prepare({
    a: 'hit',
    '.git/b': 'hit',
    'node_modules/m/c': 'hit',
    'd.bin': 'hit\0',
    '.github/e': 'hit',
    huge: `hit${' '.repeat(10 * 2 ** 20)}`,
  });
  symlinkSync('a', join(cwd, 'link'));
  symlinkSync('.', join(cwd, 'circle'));
  const text = await works('grep', { pattern: 'hit' });
  assert.equal(
    text,
    'a:1:hit\n.github/e:1:hit\n[1 files over 10485760 bytes were skipped; use bash for those]',
  );
  assert.equal(
    await works('grep', { pattern: 'hit', path: 'node_modules' }),
    'node_modules/m/c:1:hit',
  );
  assert.match(await fails('grep', { pattern: 'hit', path: 'd.bin' }), /d\.bin is not text/);
  assert.match(
    await fails('grep', { pattern: 'hit', path: 'missing' }),
    /no file or folder missing/,
  );
});

test('grep says what is wrong with a pattern', async () => {
  const { fails } = prepare({ f: 'x' });
  assert.match(await fails('grep', { pattern: '(' }), /Invalid regular expression.*literal/);
  assert.match(await fails('grep', { pattern: 'x'.repeat(20_000) }), /more than 10000 characters/);
});

test('grep stops when it is told to', async () => {
  const { call } = prepare({ f: `${'a'.repeat(50)}!` });
  const abort = new AbortController();
  const answer = call('grep', { pattern: '^(a+)+$' }, abort.signal);
  setTimeout(() => abort.abort(), 100);
  const { text, isError } = await answer;
  assert.deepEqual([text, isError], ['stopped', true]);
  for (const name of ['read', 'write', 'grep', 'glob'])
    assert.equal((await call(name, { path: 'f', pattern: 'a' }, abort.signal)).text, 'stopped'); // not even begun
});

// ─── glob ───

test('glob finds the newest first, and says how many it leaves out', async () => {
  const { works, cwd } = prepare({
    'a.ts': '',
    'src/b.ts': '',
    'src/c.tsx': '',
    'd.js': '',
    'node_modules/e.ts': '',
    '.git/f.ts': '',
  });
  for (const [i, name] of ['a.ts', 'src/b.ts', 'src/c.tsx'].entries())
    utimesSync(join(cwd, name), 1e9 + i, 1e9 + i);
  assert.equal(await works('glob', { pattern: '**/*.{ts,tsx}' }), 'src/c.tsx\nsrc/b.ts\na.ts');
  assert.equal(await works('glob', { pattern: '*.ts' }), 'a.ts');
  assert.equal(await works('glob', { pattern: '*', path: 'src' }), 'src/c.tsx\nsrc/b.ts');
  assert.equal(
    await works('glob', { pattern: '**/*.{ts,tsx}', limit: 1 }),
    'src/c.tsx\n[2 older files are left out; narrow the pattern]',
  );
  assert.match(await works('glob', { pattern: '*.py' }), /no file matches \*\.py/);
});

test('glob refuses a pattern that leaves its folder, and a path that is none', async () => {
  const { fails } = prepare({ f: '' });
  for (const pattern of ['/etc/*', '../*', 'a/../../*', '~/*', 'C:/*'])
    assert.match(await fails('glob', { pattern }), /leaves the folder/);
  assert.match(await fails('glob', { pattern: '*', path: 'f' }), /f is not a folder; use read/);
  assert.match(await fails('glob', { pattern: '*', path: 'g' }), /g is missing/);
});

test('patterns mean what people expect', () => {
  const yes = (pattern: string, ...paths: string[]) =>
    paths.forEach((path) => assert.ok(globMatcher(pattern)(path), `${pattern} ${path}`));
  const no = (pattern: string, ...paths: string[]) =>
    paths.forEach((path) => assert.ok(!globMatcher(pattern)(path), `${pattern} ${path}`));
  yes('*.ts', 'a.ts', 'ä.b.ts');
  no('*.ts', 'src/a.ts', 'a.tsx', '.ts', '.a.ts');
  yes('./*.ts', 'a.ts');
  yes('**/*.ts', 'a.ts', 'src/a.ts', 'a/b/c.ts', '.github/a.ts');
  no('**/*.ts', '.a.ts', 'src/.a.ts');
  yes('**/.*', '.env', 'src/.env');
  yes('src/**', 'src/a', 'src/b/c', 'src/.env');
  no('src/**', 'a', 'source/a');
  yes('a/**/b', 'a/b', 'a/x/b', 'a/x/y/b', 'a/b/b');
  no('a/**/b', 'a/b/c', 'b');
  yes('?.ts', 'a.ts', '😀.ts');
  no('?.ts', 'ab.ts', '.ts');
  yes('[a-c]x', 'ax', 'cx');
  no('[a-c]x', 'dx', '-x');
  yes('[!a]x', 'bx');
  no('[!a]x', 'ax');
  yes('[]]x', ']x');
  yes('[a-]x', '-x', 'ax');
  yes('\\[id\\].tsx', '[id].tsx');
  yes('[id].tsx', 'i.tsx');
  no('[id].tsx', '[id].tsx');
  yes('a[b', 'a[b');
  yes('*.{js,ts}', 'a.js', 'a.ts');
  yes('{a,b{c,d}}/*.x', 'a/1.x', 'bc/1.x', 'bd/1.x');
  no('{a,b{c,d}}/*.x', 'b/1.x', 'c/1.x');
  yes('{a}', '{a}');
  yes('a.b+c(d)', 'a.b+c(d)');
  no('a.b', 'axb');
  const all = (pattern: string, path: string) => globMatcher(pattern, true)(path); // dots as well
  assert.ok(all('secrets/*', 'secrets/.env') && all('/x/**', '/x/.ssh/id'));
  assert.ok(!all('secrets/*', 'secrets/a/b'));
});

test('no pattern is slow, and none explodes', () => {
  const name = 'a'.repeat(250);
  assert.ok(!globMatcher(`${'*a'.repeat(100)}b`)(name));
  assert.ok(!globMatcher(`${'**/a/'.repeat(100)}b`)('a/'.repeat(500) + 'c'));
  assert.throws(() => globMatcher('{a,b}'.repeat(30)), /more than 1000 patterns/);
  assert.throws(() => globMatcher('*'.repeat(5000)), /more than 1000 characters/);
  globMatcher('{'.repeat(1000));
});

test('a walk follows no links, is bounded, and stops when told', async () => {
  const { cwd } = prepare({ 'a/1': '', 'a/2': '', b: '', '.git/x': '', 'node_modules/y': '' });
  symlinkSync(cwd, join(cwd, 'a', 'circle'));
  const all = async (options = {}) => {
    const found: string[] = [];
    for await (const path of walkFiles(cwd, options)) found.push(path.slice(cwd.length + 1));
    return found;
  };
  assert.deepEqual(await all(), ['b', 'a/1', 'a/2', 'a/circle']);
  let isCut = false;
  assert.ok((await all({ maxEntries: 3, onCut: () => (isCut = true) })).length < 4 && isCut);
  await assert.rejects(all({ signal: AbortSignal.abort() }));
});

// ─── bash ───

test('bash answers with the output in its order, and the exit code', async () => {
  const { works, call, cwd } = prepare();
  assert.equal(
    await works('bash', { command: 'echo 1; echo 2 >&2; echo 3; echo 4 >&2' }),
    '1\n2\n3\n4\nexit code 0',
  );
  assert.equal(await works('bash', { command: 'pwd' }), `${cwd}\nexit code 0`);
  assert.equal(await works('bash', { command: 'true' }), 'exit code 0');
  assert.equal(await works('bash', { command: 'printf "no end"' }), 'no end\nexit code 0');
  assert.deepEqual(pick(await call('bash', { command: 'echo bad; exit 3' })), [
    'bad\nexit code 3',
    true,
  ]);
  assert.deepEqual(pick(await call('bash', { command: 'kill -9 $$' })), ['ended by SIGKILL', true]);
  assert.match((await call('bash', { command: 'if' })).text, /syntax error[^]*exit code 2$/);
});
const pick = ({ text, isError }: { text: string; isError: boolean }) => [text, isError];

test('bash refuses what no system would take', async () => {
  const { fails } = prepare();
  assert.match(
    await fails('bash', { command: `: ${'x'.repeat(200_000)}` }),
    /more than 30000 characters; write it to a file/,
  );
  assert.match(await fails('bash', { command: 'echo \0' }), /null bytes/i);
});

test('bash gives no input, no pager, no editor, no colours; and to what is not git no settings of git', async () => {
  const { works } = prepare();
  assert.equal(
    await works('bash', {
      command: 'cat; echo "$PAGER $GIT_PAGER $GIT_EDITOR $NO_COLOR $TERM $CI[$GIT_CONFIG_COUNT]"',
    }),
    'cat cat true 1 dumb 1[]\nexit code 0',
  );
});

test('bash shows the end of a long output and keeps the whole in a file of ours', async () => {
  const { works, resultsFolder, call } = prepare();
  const text = await works('bash', { command: 'for i in $(seq 1 20000); do echo "line $i"; done' });
  const [, path = ''] =
    /^\[208894 bytes in 20000 lines, of which this is the end; the whole is in (.*)\]\n/.exec(
      text,
    ) ?? [];
  assert.equal(dirname(path), resultsFolder);
  assert.match(text, /\]\nline \d+\n/);
  assert.ok(text.endsWith('line 19999\nline 20000\nexit code 0'), text.slice(-100));
  assert.ok(text.split('\n').length <= 2002 && text.length < 31_000);
  assert.equal(readFileSync(path, 'utf8').split('\n').length, 20_001);
  assert.deepEqual(
    [statSync(path).mode & 0o777, statSync(resultsFolder).mode & 0o777],
    [0o600, 0o700],
  );
  assert.match((await call('read', { path, limit: 1 })).text, /^line 1\n/);
});

test('bash shows 2,000 lines, and all of them if there are no more', async () => {
  const { works, resultsFolder } = prepare();
  assert.equal((await works('bash', { command: 'seq 1 2000' })).split('\n').length, 2001);
  assert.ok(!existsSync(resultsFolder)); // nothing was left out, nothing saved
  const more = await works('bash', { command: 'seq 1 2500' });
  assert.match(more, /in 2500 lines, of which this is the end; the whole is in .*\]\n501\n502\n/);
});

test('bash ends a command and its children at the timeout', async () => {
  const { call, cwd } = prepare();
  const pids = join(cwd, 'pids');
  const command = `echo begun; sleep 1000 & echo $! >> pids; trap '' TERM; echo $$ >> pids; sleep 1000`;
  const { text, isError } = await call('bash', { command, timeout: 1 });
  assert.deepEqual([text, isError], ['begun\ntimed out after 1 s', true]);
  await allGone(pids);
});

test('bash ends a command and its children when told to stop', async () => {
  const { call, cwd } = prepare();
  const abort = new AbortController();
  const pids = join(cwd, 'pids');
  const answer = call(
    'bash',
    { command: 'sleep 1000 & echo $! >> pids; echo $$ >> pids; wait' },
    abort.signal,
  );
  await until(() => pidsIn(pids).length === 2);
  abort.abort();
  assert.deepEqual(pick(await answer), ['stopped', true]);
  await allGone(pids);
  assert.deepEqual(pick(await call('bash', { command: 'touch never' }, abort.signal)), [
    'stopped',
    true,
  ]);
  assert.ok(!existsSync(join(cwd, 'never')));
});

test('bash is not taken from the working folder, whatever the PATH says', async () => {
  const { works, cwd } = prepare({ bash: '#!/bin/sh\necho planted' });
  chmodSync(join(cwd, 'bash'), 0o755);
  const { PATH } = process.env;
  later(() => (process.env.PATH = PATH));
  process.env.PATH = '.';
  const before = process.cwd();
  later(() => process.chdir(before));
  process.chdir(cwd);
  assert.equal(await works('bash', { command: 'echo hello' }), 'hello\nexit code 0');
});

// ─── nearest ───

test('nearest knows slips of the keyboard, and not more', () => {
  const tools = ['read', 'write', 'edit', 'grep', 'glob', 'bash'];
  assert.deepEqual(nearest('raed', tools), ['read']);
  assert.deepEqual(nearest('Grep', tools)[0], 'grep');
  assert.deepEqual(nearest('wrte', tools)[0], 'write');
  assert.deepEqual(nearest('search_everything', tools), []);
  assert.deepEqual(nearest('abcdef', ['abcdeg', 'abcdxx', 'abcdef1', 'abcdef'], 2), [
    'abcdef',
    'abcdeg',
  ]);
  assert.deepEqual(nearest('', tools), []);
  const long = 'x'.repeat(1e6);
  assert.equal(nearest(long, Array(100).fill(long)).length, 3); // and not in hours
  assert.deepEqual(
    [distance('kitten', 'sitting'), distance('', 'abc'), distance('a', 'abc', 1)],
    [3, 3, Infinity],
  );
});
