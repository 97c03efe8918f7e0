// Chapter 16: what a model gets to see of a result, whoever gave it. Cases C10 and C14 are here.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, test } from 'node:test';
import type { Block } from '../agent.ts';
import { fitResult, fromMcp } from '../chapters/16-hands/results.ts';
import { cleanUp, folder, habit, open } from './help/basics.ts';
import { calls, prepareLoop, row, yes } from './help/agent-alone.ts';

afterEach(cleanUp);

const text = (words: string): Block => ({ type: 'text', text: words });
const said = (blocks: Block[]) =>
  blocks.map((block) => (block.type === 'text' ? block.text : `<${block.mimeType}>`)).join('|');
const ok = (...blocks: Block[]) => ({ blocks, isError: false });
const base64 = (content: string | Buffer) => Buffer.from(content).toString('base64');
const png = base64(Buffer.from('\x89PNG\r\n\x1a\n, and so on', 'latin1'));
const image: Block = { type: 'image', mimeType: 'image/png', data: png };
const mcp = (content: unknown[], more = {}) => ({ text: '', content, isError: false, ...more });
const place = () => join(folder(), 'results');

// ─── fit ───

test('what fits stays as it is, and nothing is saved', () => {
  const results = place();
  assert.deepEqual(
    fitResult(ok(text('a'), image, text('b')), results, 'x'),
    ok(text('a'), image, text('b')),
  );
  assert.deepEqual(fitResult({ blocks: [text('bad')], isError: true }, results, 'x'), {
    blocks: [text('bad')],
    isError: true,
  });
  assert.equal(said(fitResult(ok(text('x'.repeat(100_000))), results, 'x').blocks).length, 100_000);
  assert.ok(!existsSync(results));
});

test('no result is empty, and no text in it, for models refuse that', () => {
  assert.deepEqual(fitResult(ok(), place(), 'x').blocks, [text('(no output)')]);
  assert.deepEqual(fitResult(ok(text(''), text('')), place(), 'x').blocks, [text('(no output)')]);
  assert.deepEqual(fitResult(ok(text(''), image, text('')), place(), 'x').blocks, [image]);
});

test('a long text becomes its beginning, a line that names the file with the whole, and its end', () => {
  const results = place();
  const whole = `BEGIN${'ä'.repeat(100_000)}END`;
  const { blocks, isError } = fitResult(
    { blocks: [text(whole)], isError: true },
    results,
    'mcp__server__tool',
  );
  const [, head = '', size, path = '', tail = ''] =
    /^([^]*)\n\n\[… (\d+) characters, .* the whole is in (.*), which[^]*?…\]\n\n([^]*)$/.exec(
      said(blocks),
    ) ?? [];
  assert.deepEqual([blocks.length, isError, size], [1, true, '100008']);
  assert.deepEqual(
    [head.length, head.slice(0, 6), tail.length, tail.slice(-4)],
    [2048, 'BEGINä', 1024, 'äEND'],
  );
  assert.equal(readFileSync(path, 'utf8'), whole);
  assert.match(path, /results[/\\]result-\d{4}-mcp__server__tool\.txt$/);
  assert.deepEqual(
    [statSync(path).mode & 0o777, statSync(dirname(path)).mode & 0o777],
    [0o600, 0o700],
  );
});

test('the name of a tool is no path', () => {
  const results = place();
  fitResult(ok(text('x'.repeat(200_000))), results, '../../../tmp/evil\0.sh');
  const [name = ''] = readdirSync(results);
  assert.match(name, /^result-\d{4}-_tmp_evil_sh\.txt$/);
});

test('files are never overwritten', () => {
  const results = place();
  mkdirSync(results);
  for (let i = 1; i < 300; i++)
    writeFileSync(join(results, `result-${String(i).padStart(4, '0')}-x.txt`), 'old');
  fitResult(ok(text('x'.repeat(200_000))), results, 'x');
  fitResult(ok(text('x'.repeat(200_000))), results, 'x');
  const contents = readdirSync(results).map((name) => readFileSync(join(results, name), 'utf8'));
  assert.deepEqual(
    [contents.length, contents.filter((content) => content === 'old').length],
    [301, 299],
  );
});

test('no character is cut in two', () => {
  for (const shift of ['', 'x']) {
    const [block] = fitResult(ok(text(shift + '😀'.repeat(60_000) + shift)), place(), 'x').blocks;
    assert.ok(
      block?.type === 'text' &&
        !/\ufffd/.test(block.text) &&
        Buffer.from(block.text).toString() === block.text,
    );
    assert.match(block.text, /^x?😀+\n\n\[…[^]*…\]\n\n😀+x?$/u);
  }
  assert.equal(
    said(fitResult(ok(text('half \ud83d of one')), place(), 'x').blocks),
    'half \ufffd of one',
  ); // came like this
});

test('a result that cannot be saved is cut nevertheless, and says so', () => {
  const file = join(folder(), 'file');
  writeFileSync(file, '');
  const [block] = fitResult(ok(text('x'.repeat(200_000))), join(file, 'results'), 'x').blocks;
  assert.ok(block?.type === 'text' && block.text.length < 5000);
  assert.match(block.text, /could not be saved: .*(ENOTDIR|EEXIST)/);
});

test('C10: ten thousand blocks become one, and the sum of them is what counts', () => {
  assert.deepEqual(fitResult(ok(...Array<Block>(10_000).fill(text('a'))), place(), 'x').blocks, [
    text(Array(10_000).fill('a').join('\n')),
  ]);
  const results = place();
  const many = fitResult(
    ok(...Array<Block>(10_000).fill(text('twenty characters, ok'))),
    results,
    'x',
  );
  assert.ok(many.blocks.length === 1 && said(many.blocks).length < 5000);
  assert.equal(
    readFileSync(join(results, readdirSync(results)[0]!), 'utf8').split('\n').length,
    10_000,
  );
  const mixed = fitResult(
    ok(...Array.from({ length: 10_000 }, (_, i) => (i % 2 ? text('x'.repeat(50)) : image))),
    place(),
    'x',
  );
  assert.equal(mixed.blocks.filter(({ type }) => type === 'image').length, 20);
  assert.ok(mixed.blocks.length <= 21);
});

test('C10: more than twenty images, or too many bytes of them, are left out by name', () => {
  const { blocks } = fitResult(ok(...Array<Block>(22).fill(image)), place(), 'x');
  assert.deepEqual(
    blocks.map(({ type }) => type),
    [...Array(20).fill('image'), 'text'],
  );
  assert.match(
    said(blocks.slice(20)),
    /^(\[too many images; left out: image\/png, 19 bytes\] saved in .*\.png\n?){2}$/,
  );
  const large: Block = { type: 'image', mimeType: 'image/png', data: 'A'.repeat(5 * 2 ** 20) };
  assert.equal(
    fitResult(ok(...Array<Block>(10).fill(large)), place(), 'x').blocks.filter(
      ({ type }) => type === 'image',
    ).length,
    4,
  );
});

test('C10: 50 MB of text do not stay in memory', () => {
  const results = place();
  const { blocks } = fitResult(ok(text('0123456789'.repeat(5_000_000))), results, 'x');
  assert.ok(said(blocks).length < 5000);
  assert.equal(statSync(join(results, readdirSync(results)[0]!)).size, 50_000_000);
});

// ─── fromMcp ───

test('blocks of a server become blocks of ours', () => {
  const content = [
    { type: 'text', text: 'words' },
    { type: 'image', mimeType: 'image/png', data: png },
    { type: 'resource', resource: { uri: 'file:///x', text: 'its text' } },
    { type: 'resource_link', name: 'a link', uri: 'https://example.test/never-fetched' },
    { type: 'hologram', depth: 3 },
    'nonsense',
    null,
    5,
  ];
  const results = place();
  const { blocks, isError } = fromMcp(mcp(content, { isError: true }), results);
  assert.equal(isError, true);
  assert.deepEqual(blocks.slice(0, 4), [
    text('words'),
    image,
    text('its text'),
    text('[link: a link https://example.test/never-fetched]'),
  ]);
  assert.match(
    said(blocks.slice(4)),
    /^\[a block that we cannot read: \{"type":"hologram".*\|.*nonsense.*\|.*\|/,
  );
  assert.ok(!existsSync(results));
});

test('structuredContent counts only where there is no text', () => {
  const structuredContent = { a: 1 };
  const of = (...content: unknown[]) =>
    said(fromMcp(mcp(content, { structuredContent }), place()).blocks);
  assert.equal(of(), '{"a":1}');
  assert.equal(of({ type: 'text', text: 'words' }), 'words');
  assert.equal(of({ type: 'resource', resource: { text: 'words' } }), 'words');
  assert.equal(of({ type: 'image', data: png, mimeType: 'image/png' }), '<image/png>|{"a":1}');
  assert.equal(of({ type: 'text', text: '' }), '|{"a":1}');
  assert.deepEqual(fromMcp(mcp([]), place()).blocks, []);
});

test('C14: what a model cannot see is saved, under a name of ours, in a folder that only we can read', () => {
  const results = place();
  const content = [
    { type: 'audio', mimeType: 'audio/wav', data: base64('sound') },
    {
      type: 'resource',
      resource: { uri: 'file:///../../evil.sh', mimeType: 'application/pdf', blob: base64('blob') },
    },
    { type: 'image', mimeType: '../../evil.sh', data: base64('<svg onload=alert(1)>') },
    { type: 'audio', mimeType: '__proto__', data: base64('odd') },
  ];
  const { blocks } = fromMcp(mcp(content), results);
  const names = readdirSync(results).sort();
  assert.deepEqual(
    names.map((name) => name.replace(/\d{4}/, 'N')),
    ['result-N-audio.wav', 'result-N-resource.pdf', 'result-N-image.bin', 'result-N-audio.bin'],
  );
  assert.deepEqual(
    names.map((name) => readFileSync(join(results, name), 'utf8')),
    ['sound', 'blob', '<svg onload=alert(1)>', 'odd'],
  );
  for (const [n, block] of blocks.entries())
    assert.ok(
      block.type === 'text' && block.text.endsWith(` saved in ${join(results, names[n]!)}`),
      said([block]),
    );
  assert.match(said(blocks), /^\[audio: audio\/wav, 5 bytes\] saved/);
  for (const name of names) assert.equal(statSync(join(results, name)).mode & 0o777, 0o600);
  assert.equal(statSync(results).mode & 0o777, 0o700);
});

test('C14: an image is what its bytes say, for a model refuses a conversation with a false one', () => {
  const of = (block: object) => fromMcp(mcp([{ type: 'image', ...block }]), place()).blocks[0]!;
  assert.deepEqual(of({ mimeType: 'image/jpeg', data: png }), image);
  assert.deepEqual(of({ mimeType: 'application/x-evil', data: png }), image);
  assert.match(
    said([of({ mimeType: 'image/png', data: base64('no image') })]),
    /^\[image: image\/png, 8 bytes\] saved in .*\.png$/,
  );
  assert.match(said([of({ mimeType: 'image/png', data: `${png}\n` })]), /saved/); // not base64 as the wire wants it
  assert.match(said([of({ mimeType: 'image/png', data: 5 })]), /^\[image: image\/png/);
  assert.match(said([of({})]), /^\[image/);
  const large = Buffer.concat([Buffer.from(png, 'base64'), Buffer.alloc(4 * 2 ** 20)]);
  assert.match(said([of({ mimeType: 'image/png', data: base64(large) })]), /saved in .*\.png$/);
});

test('C10: 100 MB of base64 are saved, and at most twenty files come of one result', () => {
  const results = place();
  const huge = 'A'.repeat(100 * 2 ** 20);
  assert.match(
    said(fromMcp(mcp([{ type: 'audio', mimeType: 'audio/mpeg', data: huge }]), results).blocks),
    /saved in .*\.mp3$/,
  );
  assert.equal(statSync(join(results, readdirSync(results)[0]!)).size, 75 * 2 ** 20);
  const many = place();
  const blob = { type: 'audio', mimeType: 'audio/wav', data: base64('x') };
  const { blocks } = fromMcp(mcp(Array(10_000).fill(blob)), many);
  assert.deepEqual([blocks.length, readdirSync(many).length], [10_000, 20]);
  assert.match(said(blocks.slice(-1)), /not saved/);
  assert.ok(said(fitResult({ blocks, isError: false }, many, 'x').blocks).length < 5000);
});

test('C14: what cannot be saved is still named', () => {
  const file = join(folder(), 'file');
  writeFileSync(file, '');
  const { blocks } = fromMcp(
    mcp([{ type: 'audio', mimeType: 'audio/wav', data: base64('x') }]),
    join(file, 'results'),
  );
  assert.match(said(blocks), /^\[audio: audio\/wav, 1 bytes\] could not be saved/);
});

test('a result over the wire goes through both', async () => {
  const { connection } = await open(habit());
  const result = await connection.callTool('where');
  const { blocks, isError } = fitResult(fromMcp(result, place()), place(), 'where');
  assert.deepEqual([blocks, isError], [[text(result.text)], false]);
});

test('the errors of tools keep to the budget of results, too', async () => {
  const long = 'E'.repeat(300_000);
  const { agent, results } = prepareLoop({
    gate: yes,
    tools: [
      row(
        'fails',
        async () => {
          throw new Error(long);
        },
        { readOnly: true },
      ),
    ],
    script: calls(['fails', {}], [`unknown${long}`, {}]),
  });
  await agent.chat('go');
  for (const { text, isError } of results())
    assert.deepEqual([isError, text.length < 10_000], [true, true]);
});
