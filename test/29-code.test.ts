// Code search below the wire: the tree, plain search, the ranking, the index, the chunks.

import assert from 'node:assert/strict';
import {
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, test } from 'node:test';
import { Roots } from '../chapters/16-hands/paths.ts';
import { codeChunks } from '../chapters/29-a-server/chunks.ts';
import { CodeIndex } from '../chapters/29-a-server/code/code-index.ts';
import { findPlain, literalsIn, type PlainQuery } from '../chapters/29-a-server/plain-search.ts';
import { CodeTree } from '../chapters/29-a-server/tree.ts';
import { stemOf as stem } from '../chapters/28-a-thousand-tools/lexicon.ts';
import { codeWords } from '../chapters/29-a-server/vocabulary.ts';
import { repository } from './help/compiled.ts';
import { cleanUp, folder, root } from './help/basics.ts';
import { changedIn, isCovered } from './retrieval/chunks.ts';

afterEach(cleanUp);
const { signal } = new AbortController();

/** A folder whose files are an hour old, so that their times can be relied on. */
function place(files: Record<string, string | Uint8Array>): string {
  const at = folder();
  for (const [name, content] of Object.entries(files)) put(at, name, content);
  return at;
}

let age = 3600;
function put(at: string, name: string, content: string | Uint8Array): void {
  const path = join(at, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  old(path);
}

/** Each later, as if a clock ran, and all long ago. */
function old(path: string): void {
  const time = Date.now() / 1000 - age--;
  for (const each of [path, dirname(path)]) utimesSync(each, time, time);
}

function open(at: string) {
  const tree = new CodeTree({ roots: new Roots(at) });
  const plain = (query: PlainQuery, until: AbortSignal) => findPlain(tree, query, until, 2000);
  const find = async (query: string, more: Partial<PlainQuery> = {}) => {
    const { matches } = await plain({ query, max_results: 50, ...more }, signal);
    return matches.map(
      ({ file_path, line_number, column }) => `${file_path}:${line_number}:${column}`,
    );
  };
  return { tree, plain, find, index: new CodeIndex(tree) };
}

test('a plain search finds lines with their columns, in text files that may be seen, and nowhere else', async () => {
  const outside = place({ 'far.txt': 'needle' });
  const at = place({
    'a.ts': 'one\n  needle here, needle there\r\nö needle\n',
    'deep/b.txt': 'needle',
    'binary.bin': Buffer.from('needle\0'),
    '.env': 'KEY=needle',
    '.aws/credentials': 'needle',
    'node_modules/x/index.js': 'needle',
    'built/out.js': 'needle',
    'sub/skip.log': 'needle',
    'sub/keep.txt': 'needle',
    '.gitignore': 'built/\n',
    'sub/.gitignore': '*.log\n',
    'twice.txt': 'needle',
  });
  symlinkSync(join(outside, 'far.txt'), join(at, 'link.txt'));
  symlinkSync(outside, join(at, 'linked'));
  linkSync(join(at, 'twice.txt'), join(at, 'twin.txt'));
  const { find, tree } = open(at);
  assert.deepEqual(await find('needle'), [
    'a.ts:2:3',
    'a.ts:3:3',
    'deep/b.txt:1:1',
    'sub/keep.txt:1:1',
  ]);
  assert.match(tree.notes.join(), /files that may hold secrets were left out/);
  assert.deepEqual(await find('needle', { glob: '*.txt' }), ['deep/b.txt:1:1', 'sub/keep.txt:1:1']);
  assert.deepEqual(await find('NEEDLE'), []);
});

test('a pattern means one line, as in grep, whatever way it is looked for', async () => {
  const at = place({
    'a.ts': 'class NotFoundError {}\nclass Fine {}\r\nfoo\nbar\nünïcode Öl\nfoo(?)\n',
    'b.ts': 'foo\n\nbar\n',
  });
  const { find } = open(at);
  const regex = true;
  assert.deepEqual(await find('\\bclass \\w+Error\\b', { regex }), ['a.ts:1:1']);
  assert.deepEqual(await find('Fine \\{\\}$', { regex }), ['a.ts:2:7']);
  assert.deepEqual(await find('foo\\s+bar', { regex }), []);
  assert.deepEqual(await find('foo(?!\\s)', { regex, glob: 'a.ts' }), ['a.ts:3:1', 'a.ts:6:1']);
  assert.deepEqual(await find('^b.r$', { regex }), ['a.ts:4:1', 'b.ts:3:1']);
  assert.deepEqual(await find('n.code', { regex }), ['a.ts:5:2']);
  assert.deepEqual(await find('ÖL', { ignore_case: true }), ['a.ts:5:9']);
  assert.deepEqual(await find('foo(?)', { ignore_case: true }), ['a.ts:6:1']);
  assert.deepEqual(await find('^$', { regex }), ['b.ts:2:1']);
});

test('a pattern that never ends is ended, and the next search works', async () => {
  const { find, plain } = open(place({ 'a.txt': `${'a'.repeat(40)}!\n`, 'b.txt': 'aaa\n' }));
  const bad = { query: '^(a+)+$', regex: true, max_results: 10 };
  await assert.rejects(plain(bad, signal), /was stopped after 2 s: use a simpler pattern/);
  assert.deepEqual(await find('^a+$', { regex: true }), ['b.txt:1:1']);
  await assert.rejects(find('(', { regex: true }), /Unterminated group.*leave out regex/);
  await assert.rejects(find(''), /query is empty/);
});

test('a search that is given up ends, and takes nobody with it', async () => {
  const { plain, find } = open(place({ 'a.txt': `${'a'.repeat(40)}!\n` }));
  const giveUp = new AbortController();
  const search = plain({ query: '^(a+)+$', regex: true, max_results: 10 }, giveUp.signal);
  const other = find('!', { regex: true });
  giveUp.abort();
  await assert.rejects(search, /abort/i);
  assert.deepEqual(await other, ['a.txt:1:41']);
});

test('what a file must contain to match a pattern', () => {
  const table: [string, string[]][] = [
    ['\\bclass \\w+Error\\b', ['class ', 'Error']],
    ['colou?r', ['colo']],
    ['foo\\.bar\\(', ['foo.bar(']],
    [`[${'\\\\'.repeat(300)}]end`, ['end']], // read in two ways it would never end
    ['ab*cde', ['cde']],
    ['one|two', []],
    ['(one)?two', []],
    ['\\x41bc', []],
    ['[abc]def+', ['def']],
    ['fo{2}bar', ['bar']],
  ];
  for (const [source, literals] of table) assert.deepEqual(literalsIn(source), literals, source);
});

test('an unchanged tree is only looked at: nothing is read', async () => {
  const at = place({ 'src/a.ts': 'alpha', 'src/b.ts': 'beta', 'c.bin': Buffer.from([0, 1]) });
  const { tree, find } = open(at);
  assert.deepEqual(await find('beta'), ['src/b.ts:1:1']);
  const before = tree.reads;
  assert.deepEqual(await find('beta'), ['src/b.ts:1:1']);
  assert.equal(tree.reads, before);
});

test('what changes is noticed: contents, new and removed files, rules, a folder that becomes a link', async () => {
  const outside = place({ 'x.ts': 'alpha' });
  const at = place({
    'src/a.ts': 'alpha',
    'src/b.ts': 'beta',
    'lib/x.ts': 'alpha',
    'log/y.ts': 'alpha',
  });
  const { find, tree } = open(at);
  assert.deepEqual(await find('alpha'), ['lib/x.ts:1:1', 'log/y.ts:1:1', 'src/a.ts:1:1']);
  put(at, 'src/a.ts', 'omega');
  put(at, 'src/new/c.ts', 'alpha');
  old(join(at, 'src', 'new'));
  rmSync(join(at, 'src/b.ts'));
  old(join(at, 'src/a.ts'));
  assert.deepEqual(await find('alpha'), ['lib/x.ts:1:1', 'log/y.ts:1:1', 'src/new/c.ts:1:1']);
  assert.deepEqual(await find('beta'), []);
  put(at, '.gitignore', 'log/\n');
  assert.deepEqual(await find('alpha'), ['lib/x.ts:1:1', 'src/new/c.ts:1:1']);
  renameSync(join(at, 'lib'), join(at, 'moved'));
  symlinkSync(outside, join(at, 'lib'));
  assert.deepEqual(await find('alpha'), ['moved/x.ts:1:1', 'src/new/c.ts:1:1']);
  // The same size and the same time: a file that was young when it was read is read again.
  const young = join(at, 'young.ts');
  const time = Math.floor(Date.now() / 1000) + 3600; // ahead of our clock: never old, however slow we are
  writeFileSync(young, 'alpha');
  utimesSync(young, time, time);
  assert.equal((await find('alpha')).length, 3);
  writeFileSync(young, 'omega');
  utimesSync(young, time, time);
  assert.equal((await find('alpha')).length, 2);
  assert.equal(tree.files.size, 5); // and .gitignore
  // And one whose time was set back, as by cp -p: the change has a time of its own.
  const aged = join(at, 'moved/x.ts');
  const { mtime } = statSync(aged);
  writeFileSync(aged, 'omega');
  utimesSync(aged, mtime, mtime);
  assert.deepEqual(await find('alpha'), ['src/new/c.ts:1:1']);
});

test('too much text is left out, and said', async () => {
  const at = place({ 'a.txt': 'x'.repeat(600), 'b.txt': 'x'.repeat(600) });
  const tree = new CodeTree({ roots: new Roots(at), maxText: 1000 });
  await tree.refresh();
  assert.equal(tree.files.size, 1);
  assert.match(tree.notes.join(), /1 files were left out: the folder has too much text/);
});

test('names are split into words, and words cut to their stems', () => {
  assert.deepEqual(codeWords('getHTTPResponse user_ids utf8Decode $x'), [
    'get',
    'http',
    'respons',
    'user',
    'ids',
    'utf',
    'decod',
  ]);
  for (const [one, two] of [
    ['closing', 'closed'],
    ['stops', 'stopped'],
    ['queries', 'query'],
    ['classes', 'class'],
    ['caches', 'caching'],
  ])
    assert.equal(stem(one!), stem(two!), one);
  assert.notEqual(stem('string'), stem('str'));
});

const SOURCES = {
  'src/session.ts': `
export class SessionStore {
  private sessions = new Map<string, Session>();

  /** nothing here says so */
  expireIdleSessions(limitMs: number): void {
    const now = Date.now();
    for (const [id, session] of this.sessions) {
      if (now - session.lastUsed > limitMs) this.sessions.delete(id);
    }
  }

  openSession(user: string): string {
    const id = randomUUID();
    this.sessions.set(id, { user, lastUsed: Date.now() });
    return id;
  }
}
`,
  'src/parser.ts': `
export function parseHeaders(text: string): Map<string, string> {
  const headers = new Map<string, string>();
  for (const line of text.split('\\r\\n')) {
    const colon = line.indexOf(':');
    headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim());
  }
  return headers;
}
`,
};

test('a question in words finds the function, and says where it is', async () => {
  const { index } = open(place(SOURCES));
  await index.update(signal);
  const { results, ranked_by } = await index.search(
    'remove sessions that have been idle for too long',
    3,
    signal,
  );
  const [first] = results;
  assert.equal(ranked_by, 'words');
  assert.match(first!.text, /expireIdleSessions/);
  assert.deepEqual([first!.file_path, first!.symbol], ['src/session.ts', 'SessionStore']);
  assert.ok(first!.score > 0 && first!.score <= 1);
  assert.equal(
    (await index.search('header parsing', 1, signal)).results[0]!.symbol,
    'parseHeaders',
  );
  assert.deepEqual((await index.search('zyzzyva', 5, signal)).results, []);
});

test('an index that followed many changes answers as one that is new', async () => {
  const at = place(SOURCES);
  const { index, tree } = open(at);
  const questions = [
    'open a session',
    'idle sessions',
    'parse header lines',
    'write the report',
    'colon',
  ];
  for (let round = 0; round < 6; round++) {
    put(
      at,
      `src/extra${round % 3}.ts`,
      `export function writeReport${round}(lines: string[]): string {\n  return lines.join('colon ${round}');\n}\n`,
    );
    if (round === 4)
      put(at, 'src/parser.ts', SOURCES['src/parser.ts'].replace('parseHeaders', 'readHeaders'));
    await index.update(signal);
  }
  rmSync(join(at, 'src/extra0.ts'));
  old(join(at, 'src/parser.ts'));
  await index.update(signal);
  const fresh = open(at).index;
  await fresh.update(signal);
  assert.equal(index.ranking.size, fresh.ranking.size);
  for (const question of questions) {
    const [ours, theirs] = [
      await index.search(question, 10, signal),
      await fresh.search(question, 10, signal),
    ];
    const key = ({ file_path, start_line, score }: any) => `${score} ${file_path}:${start_line}`;
    assert.deepEqual(ours.results.map(key).sort(), theirs.results.map(key).sort(), question);
    assert.ok(ours.results.length > 0, question);
  }
  const { reads } = tree;
  await index.update(signal);
  assert.equal(tree.reads, reads);
});

test('chunks: every line exactly once, the same for the same bytes, none too large, whatever the text is', () => {
  const own = ['mcp.ts', 'agent.ts', 'package.json', 'chapters/16-hands/search.ts'].map(
    (name) => [name, readFileSync(join(root, name), 'utf8')] as const,
  );
  let seed = 29;
  const next = (below: number) => (seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0) % below;
  const noise = Array.from({ length: 60 }, (_, n) => {
    const pieces = [
      '{',
      '}',
      '\n',
      '\n  ',
      '\n\t',
      '`',
      '"""',
      '/*',
      '*/',
      '# x',
      'function f() {',
      '\r\n',
      '(',
      'word ',
      '\ufeff',
      '/',
      "'",
    ];
    return [
      `noise${n}.${['ts', 'py', 'md', 'xyz'][n % 4]}`,
      Array.from({ length: 400 }, () => pieces[next(pieces.length)]).join(''),
    ] as const;
  });
  const long = [
    ['long.js', 'x'.repeat(2 ** 20)],
    ['blank.py', '\n'.repeat(10 ** 5)],
    ['', ''],
    ['stairs.py', Array.from({ length: 1500 }, (_, n) => `${' '.repeat(n)}if x:`).join('\n')],
  ] as const;
  for (const [name, text] of [...own, ...noise, ...long]) {
    const chunks = codeChunks(name, text);
    assert.ok(isCovered(text, chunks), name);
    assert.deepEqual(codeChunks(name, text), chunks, name);
    for (const { text: piece, start_line, end_line } of chunks)
      assert.ok(
        piece.replace(/\s/g, '').length <= 1500 || start_line === end_line,
        `${name}:${start_line}`,
      );
  }
});

test('chunks: CRLF and a BOM move no boundary', () => {
  const placesIn = (name: string, text: string) =>
    codeChunks(name, text).map(({ start_line, symbol }) => `${start_line} ${symbol}`);
  for (const name of [
    'chapters/29-a-server/code/symbols.ts',
    'package-lock.json',
    'LICENSE',
    'chapters/29-a-server/2-serve.md',
  ]) {
    const text = readFileSync(join(repository, name), 'utf8');
    const places = placesIn(name, text);
    assert.deepEqual(placesIn(name, text.replaceAll('\n', '\r\n')), places, name);
    assert.deepEqual(placesIn(name, `\ufeff${text}`), places, name);
  }
  assert.deepEqual(
    placesIn('a.md', '\ufeff# One\n\ntext\n\n# Two\n\ntext\n'),
    placesIn('a.md', '# One\n\ntext\n\n# Two\n\ntext\n'),
  );
});

test('chunks: a function stays whole with its comment, a method knows its class, an edit stays local', () => {
  const body = Array.from(
    { length: 12 },
    (_, n) => `    const value${n} = compute(${n}, 'some text that is long enough');`,
  ).join('\n');
  const method = (name: string) =>
    `  /** Says what ${name} does. */\n  ${name}(input) {\n${body}\n  }\n`;
  const text = `import x from 'x';\n\nclass Shelf {\n${['add', 'remove', 'find'].map(method).join('\n')}}\n\nexport default Shelf;\n`;
  const chunks = codeChunks('shelf.js', text);
  const [add, remove, find] = chunks.filter(({ symbol }) => symbol.startsWith('Shelf'));
  assert.deepEqual(
    [add?.symbol, remove?.symbol, find?.symbol],
    ['Shelf.add', 'Shelf.remove', 'Shelf.find'],
  );
  assert.match(remove!.text, /^  \/\*\* Says what remove does[^]*\n  \}\n?$/);
  const lines = text.split('\n');
  for (let at = 0; at < lines.length; at += 3) {
    const edited = lines.toSpliced(at, 0, `${/^\s*/.exec(lines[at]!)![0]}touched();`).join('\n');
    assert.ok(changedIn(chunks, codeChunks('shelf.js', edited)) <= 2, `line ${at + 1}`);
  }
});

test('a file that the index leaves out is named in the notes; one of two megabytes is not left out', async () => {
  const filler = `${'x'.repeat(999)}\n`.repeat(1500); // 1.5 MB
  const at = place({
    'long.js': `${filler}module.exports = function paintFence() {}\n`,
    'data.js': filler.repeat(3),
  });
  const { index } = open(at);
  await index.update(signal);
  const { results, notes } = await index.search('paint the fence', 1, signal);
  assert.deepEqual([results[0]!.file_path, results[0]!.symbol], ['long.js', 'paintFence']);
  assert.deepEqual(notes, ['1 files over 4194304 bytes are only found by search_code']);
});
