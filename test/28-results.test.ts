// Chapter 28: what the results of one answer may take together, and pictures that are too large.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { afterEach, test } from 'node:test';
import * as zlib from 'node:zlib';
import type { Result } from '../agent.ts';
import { fitTurn } from '../chapters/28-a-thousand-tools/results/budget.ts';
import { withSavable, withSeeable } from '../chapters/28-a-thousand-tools/results/images.ts';
import { pngSize, shrinkPng } from '../chapters/28-a-thousand-tools/results/png.ts';
import type { Json } from '../mcp.ts';
import { calls, prepareAgent } from './help/agent-with-gate.ts';
import { heldServer } from './help/held-server.ts';
import { cleanUp, folder, until } from './help/basics.ts';
import { row, saying, yes } from './help/agent-alone.ts';

afterEach(cleanUp);

const { deflateSync, inflateSync } = zlib;
const nodeCrc32 = (zlib as { crc32?: (data: Buffer) => number }).crc32; // since Node 20.15

const result = (name: string, text: string): Result => ({
  id: name,
  name,
  blocks: [{ type: 'text', text }],
  isError: false,
});
const lengths = (results: Result[]) =>
  results.map(({ blocks }) =>
    blocks.reduce((sum, block) => sum + (block.type === 'text' ? block.text.length : 0), 0),
  );

// ─── The budget of one answer ─────────────────────────────────────────────────────────────────────────────────

test('the results of one answer share 200,000 characters: the largest is cut first, and saved', () => {
  const results = [
    result('a', 'a'.repeat(90_000)),
    result('b', 'b'.repeat(95_000)),
    result('c', 'c'.repeat(80_000)),
    result('d', 'd'),
  ];
  fitTurn(results, folder(), 100_000);
  const [a, b, c, d] = lengths(results);
  assert.deepEqual([a, c, d], [90_000, 80_000, 1]);
  assert.ok(b! < 4500);
  const [, path = ''] = /the whole is in (.*?), which/.exec(JSON.stringify(results[1]))!;
  assert.equal(readFileSync(path, 'utf8'), 'b'.repeat(95_000));
});

test('many middling results are cut until all fit; what fits is left alone', () => {
  const many = Array.from({ length: 50 }, (_, n) => result(`t${n}`, 'x'.repeat(8000 + n)));
  fitTurn(many, folder(), 100_000);
  const all = lengths(many);
  assert.ok(all.reduce((sum, length) => sum + length) <= 200_000);
  assert.ok(all[0]! === 8000 && all[49]! < 4500, 'the largest went first');
  const few = [result('a', 'x'.repeat(100_000)), result('b', 'x'.repeat(100_000))];
  fitTurn(few, folder(), 100_000);
  assert.deepEqual(lengths(few), [100_000, 100_000]);
});

test('pictures of one answer together have a limit, too', () => {
  const image = (size: number) => ({
    type: 'image' as const,
    mimeType: 'image/png',
    data: 'A'.repeat(size),
  });
  const results: Result[] = [
    { ...result('a', 'x'), blocks: [image(4e6), image(5e6)] },
    { ...result('b', 'x'), blocks: [image(4e6), image(4.5e6), image(4.4e6)] },
  ];
  fitTurn(results, folder(), 100_000);
  assert.deepEqual(
    results.map(({ blocks }) => blocks.map(({ type }) => type)),
    [
      ['image', 'text'],
      ['image', 'image', 'image'],
    ],
  );
});

test('a tool may ask for more room, up to 500,000 characters; the answer of an agent keeps to all of it', async () => {
  const wanting = (chars: unknown) => ({
    name: `want${chars}`,
    _meta: { 'anthropic/maxResultSizeChars': chars },
  });
  const server = heldServer([wanting(300_000), wanting(9_000_000), wanting(10), 'plain']);
  const script = calls(
    ...['want300000', 'want9000000', 'want10', 'plain'].map(
      (name) => [`mcp__s__${name}`, {}] as [string, Json],
    ),
  );
  const { agent } = prepareAgent({
    script,
    servers: { s: { type: 'held' } },
    manager: { transports: { held: server.factory } },
    gate: yes,
  });
  const chatting = agent.chat('go');
  for (const size of [250_000, 600_000, 90_000, 110_000]) {
    await until(() => server.open().length === 1);
    server.open()[0]!.answer('x'.repeat(size));
  }
  await chatting;
  const turn = agent.turns.find((each) => each.role === 'tools')!;
  const all = lengths((turn as { results: Result[] }).results);
  assert.deepEqual(
    [all[0], all[2]],
    [250_000, 90_000],
    'its own limit, and the one of the answer, are what the tools were promised',
  );
  assert.ok(
    all[1]! < 4500 && all[3]! < 4500,
    'more than 500,000, and more than 100,000 without a wish',
  );
});

test('fifty results of an answer with fifty calls fit together', async () => {
  const big = row('big', saying('y'.repeat(60_000)), { readOnly: true });
  const script = calls(...Array.from({ length: 50 }, () => ['big', {}] as [string, Json]));
  const { agent, results } = prepareAgent({ script, tools: [big], gate: yes });
  await agent.chat('go');
  assert.equal(results().length, 50);
  assert.ok(results().reduce((sum, { text }) => sum + text.length, 0) <= 200_000 + 50 * 100);
});

// ─── Pictures ─────────────────────────────────────────────────────────────────────────────────────────────────

const SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');

function chunk(name: string, data: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const sum = Buffer.alloc(4); // readers of our own do not look at it
  return Buffer.concat([length, Buffer.from(name, 'latin1'), data, sum]);
}

type Kind = {
  width: number;
  height: number;
  depth?: number;
  colour?: number;
  interlaced?: number;
  extra?: Buffer[];
};

/** A PNG of rows that are as the format wants them, each behind the number of its filter. */
function png(
  { width, height, depth = 8, colour = 6, interlaced = 0, extra = [] }: Kind,
  rows: Buffer,
): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([depth, colour, 0, 0, interlaced], 8);
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', header),
    ...extra,
    chunk('IDAT', deflateSync(rows)),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

/** The pixels of what we write: RGBA, each row as the difference to the one above. */
function pixelsOf(file: Buffer): number[][] {
  const { width, height } = pngSize(file)!;
  const length = file.readUInt32BE(33);
  const rows = inflateSync(file.subarray(41, 41 + length));
  let above = Array<number>(width * 4).fill(0);
  const pixels: number[][] = [];
  for (let y = 0; y < height; y++) {
    const at = y * (width * 4 + 1);
    assert.equal(rows[at], 2);
    above = above.map((up, n) => (rows[at + 1 + n]! + up) & 255);
    for (let x = 0; x < width; x++) pixels.push(above.slice(x * 4, x * 4 + 4));
  }
  return pixels;
}

test('png: every colour type and depth that is not interlaced', () => {
  const palette = [
    chunk('PLTE', Buffer.from([9, 8, 7, 10, 20, 30])),
    chunk('tRNS', Buffer.from([255, 100])),
  ];
  const cases: [Kind, number[], number[]][] = [
    [{ width: 1, height: 1, colour: 6 }, [0, 1, 2, 3, 4], [1, 2, 3, 4]],
    [{ width: 1, height: 1, colour: 2 }, [0, 1, 2, 3], [1, 2, 3, 255]],
    [{ width: 1, height: 1, colour: 4 }, [0, 7, 9], [7, 7, 7, 9]],
    [{ width: 1, height: 1, colour: 0 }, [0, 7], [7, 7, 7, 255]],
    [{ width: 1, height: 1, colour: 0, depth: 1 }, [0, 0x80], [255, 255, 255, 255]],
    [{ width: 1, height: 1, colour: 0, depth: 4 }, [0, 0x10], [17, 17, 17, 255]],
    [{ width: 1, height: 1, colour: 3, depth: 2, extra: palette }, [0, 0x40], [10, 20, 30, 100]],
    [{ width: 1, height: 1, colour: 3, extra: palette }, [0, 0], [9, 8, 7, 255]],
    [{ width: 1, height: 1, colour: 2, depth: 16 }, [0, 1, 99, 2, 99, 3, 99], [1, 2, 3, 255]],
  ];
  for (const [kind, rows, pixel] of cases)
    assert.deepEqual(
      pixelsOf(shrinkPng(png(kind, Buffer.from(rows)), 1)),
      [pixel],
      JSON.stringify(kind),
    );
});

test('png: all five filters', () => {
  const rows = [
    [0, 10, 20, 30], // as it is
    [1, 1, 1, 1], // the difference to the left: 1 2 3
    [2, 1, 1, 1], // to above: 2 3 4
    [3, 1, 1, 1], // to the mean of both, cut: 2 3 4
    [4, 1, 1, 1], // to the nearest of three
  ];
  const grey = pixelsOf(
    shrinkPng(png({ width: 3, height: 5, colour: 0 }, Buffer.from(rows.flat())), 1),
  ).map(([value]) => value);
  assert.deepEqual(grey, [10, 20, 30, 1, 2, 3, 2, 3, 4, 2, 3, 4, 3, 4, 5]);
});

test('png: one pixel is the mean of a square, also at the edge; what we write has right checksums', () => {
  const rows = Buffer.from([0, 0, 4, 100, 0, 8, 12, 200, 0, 40, 60, 50]);
  const small = shrinkPng(png({ width: 3, height: 3, colour: 0 }, rows), 2);
  assert.deepEqual(
    [pngSize(small), pixelsOf(small).map(([value]) => value)],
    [{ width: 2, height: 2 }, [6, 150, 50, 50]],
  );
  for (let at = 8; at < small.length; ) {
    const length = small.readUInt32BE(at);
    const body = small.subarray(at + 4, at + 8 + length);
    if (nodeCrc32)
      assert.equal(
        small.readUInt32BE(at + 8 + length),
        nodeCrc32(body),
        body.toString('latin1', 0, 4),
      );
    at += 12 + length;
  }
});

test('png: what is broken, rare or a bomb is refused, soon', () => {
  const good = png({ width: 2, height: 1, colour: 0 }, Buffer.from([0, 1, 2]));
  const huge = Buffer.from(good);
  huge.writeUInt32BE(60_000, 16);
  huge.writeUInt32BE(60_000, 20);
  const bomb = png({ width: 2, height: 1, colour: 0 }, Buffer.alloc(2 ** 24));
  const wrong: [string, Buffer][] = [
    ['empty', Buffer.alloc(0)],
    ['no PNG', Buffer.alloc(100)],
    ['cut', good.subarray(0, 45)],
    ['huge', huge],
    ['interlaced', png({ width: 1, height: 1, interlaced: 1 }, Buffer.from([0, 1, 2, 3, 4]))],
    ['no such filter', png({ width: 1, height: 1, colour: 0 }, Buffer.from([9, 1]))],
    ['no such colour', png({ width: 1, height: 1, colour: 5 }, Buffer.from([0, 1]))],
    ['too short', png({ width: 9, height: 9, colour: 0 }, Buffer.from([0, 1]))],
    ['more than it says', bomb],
  ];
  for (const [what, file] of wrong) assert.throws(() => shrinkPng(file, 2), Error, what);
  assert.doesNotThrow(() => shrinkPng(good, 2));
});

const wide = (width: number, height: number) =>
  png({ width, height, colour: 0, depth: 1 }, Buffer.alloc((Math.ceil(width / 8) + 1) * height));
const image = (data: Buffer, mimeType = 'image/png') => ({
  type: 'image',
  mimeType,
  data: data.toString('base64'),
});

/** Only the beginning of one, which says how large it is. */
function jpeg(width: number, height: number): Buffer {
  const frame = Buffer.from([
    0xff,
    0xc0,
    0,
    17,
    8,
    height >> 8,
    height & 255,
    width >> 8,
    width & 255,
    3,
  ]);
  return Buffer.concat([
    Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 4, 0, 0]),
    frame,
    Buffer.alloc(60),
  ]);
}
function webp(kind: string, at: number, bytes: number[]): Buffer {
  const file = Buffer.alloc(64);
  file.write('RIFF', 0, 'latin1');
  file.write('WEBP', 8, 'latin1');
  file.write(kind, 12, 'latin1');
  file.set(bytes, at);
  return file;
}
const gif = (width: number, height: number) =>
  Buffer.concat([
    Buffer.from('GIF89a', 'latin1'),
    Buffer.from([width & 255, width >> 8, height & 255, height >> 8]),
    Buffer.alloc(60),
  ]);

test('a PNG that is too wide becomes smaller, and the model is told both sizes', async () => {
  const [small, words] = (await withSavable([image(wide(9000, 20))])) as any[];
  assert.deepEqual(
    [small.type, pngSize(Buffer.from(small.data, 'base64'))],
    ['image', { width: 4500, height: 10 }],
  );
  assert.equal(
    words.text,
    '[the image above has 9000 × 20 pixels, and is shown to you in 4500 × 10]',
  );
  const fine = [
    image(wide(8000, 20)),
    image(jpeg(8000, 8000), 'image/jpeg'),
    { type: 'text', text: 'x' },
    { type: 'image', data: 7 },
    'odd',
    null,
  ];
  assert.deepEqual(await withSavable(fine), fine);
});

test('one of too many bytes becomes smaller as often as it takes', async () => {
  const noise = Buffer.alloc((1500 * 4 + 1) * 1000);
  for (let n = 0; n < noise.length; n++)
    noise[n] = n % (1500 * 4 + 1) === 0 ? 0 : (n * 2654435761) >>> (n % 24);
  const large = image(png({ width: 1500, height: 1000 }, noise));
  assert.ok(large.data.length > 5 * 2 ** 20, `${large.data.length}`);
  const [small] = (await withSavable([large])) as any[];
  assert.ok(small.data.length <= 5 * 2 ** 20);
  assert.deepEqual(pngSize(Buffer.from(small.data, 'base64')), { width: 750, height: 500 });
});

test('others, and a PNG that cannot be read, go to a file or are told of', async () => {
  const broken = wide(9000, 20).subarray(0, 60);
  const large = [
    image(jpeg(9000, 20), 'image/jpeg'),
    image(gif(20, 9001), 'image/gif'),
    image(broken),
    image(webp('VP8X', 24, [0x27, 0x23, 0, 1, 0, 0]), 'image/webp'),
    image(webp('VP8 ', 26, [0x28, 0x23, 2, 0]), 'image/webp'),
    image(webp('VP8L', 21, [0x27, 0xe3, 0, 0]), 'image/webp'),
  ];
  const told = (await withSeeable(large as any)).map((block: any) => block.text);
  assert.equal(told[0], '[an image of 9000 × 20 pixels, too large for a model to see]');
  assert.deepEqual(
    told.map((text) => /of (\d+) ×/.exec(text)?.[1]),
    ['9000', '20', '9000', '9000', '9000', '9000'],
    JSON.stringify(told),
  );
  const server = heldServer(['shot']);
  const { agent, results } = prepareAgent({
    script: calls(['mcp__s__shot', {}]),
    servers: { s: { type: 'held' } },
    manager: { transports: { held: server.factory } },
    gate: yes,
  });
  const chatting = agent.chat('go');
  await until(() => server.open().length === 1);
  server.open()[0]!.answer('', { content: [large[0]] });
  await chatting;
  const [, words, path = ''] =
    /^\[resource: (.*?), image\/jpeg, \d+ bytes\] saved in (.*\.jpg)$/.exec(results()[0]!.text)!;
  assert.equal(words, 'an image of 9000 × 20 pixels, too large for a model to see');
  assert.ok(existsSync(path));
});
