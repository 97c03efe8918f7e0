// Chapter 28: what the results of one answer may take together, and pictures that are too large.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { afterEach, test } from 'node:test';
import type { Result } from '../agent.ts';
import { fitTurn } from '../chapters/28-a-thousand-tools/results/budget.ts';
import { fitPictures } from '../chapters/28-a-thousand-tools/results/images.ts';
import type { Json } from '../mcp.ts';
import { calls, prepareAgent } from './help/agent-with-gate.ts';
import { heldServer } from './help/held-server.ts';
import { cleanUp, folder, until } from './help/basics.ts';
import { row, saying, yes } from './help/agent-alone.ts';

afterEach(cleanUp);

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
      ['image', 'image'],
      ['image', 'image', 'text'],
    ],
  );
  const dropped = results[1]!.blocks[2];
  assert.match(
    dropped?.type === 'text' ? dropped.text : '',
    /^\[too many images; left out: .* bytes\] saved in .*result-\d+-image\.\w+$/,
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

/** Only its beginning, which says how large it is. */
function wide(width: number, height: number): Buffer {
  const header = Buffer.alloc(64);
  header.write('\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'latin1');
  header.writeUInt32BE(width, 16);
  header.writeUInt32BE(height, 20);
  return header;
}
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

const seen = (blocks: any[]) => {
  const output = { blocks, isError: false };
  fitPictures(output);
  return output.blocks;
};

test('pictures that fit, and what only looks like one, stay as they are', () => {
  const fine = [
    image(wide(8000, 20)),
    image(jpeg(8000, 8000), 'image/jpeg'),
    { type: 'text', text: 'x' },
    { type: 'image', data: 7 },
    'odd',
    null,
  ];
  assert.deepEqual(seen(fine), fine);
});

test('one that is too large goes to a file, or is told of', async () => {
  const large = [
    image(jpeg(9000, 20), 'image/jpeg'),
    image(gif(20, 9001), 'image/gif'),
    image(wide(9000, 20)),
    image(webp('VP8X', 24, [0x27, 0x23, 0, 1, 0, 0]), 'image/webp'),
    image(webp('VP8 ', 26, [0x28, 0x23, 2, 0]), 'image/webp'),
    image(webp('VP8L', 21, [0x27, 0xe3, 0, 0]), 'image/webp'),
  ];
  const told = seen(large).map((block) => block.text);
  const heavy = Buffer.concat([jpeg(20, 20), Buffer.alloc(4 * 2 ** 20)]);
  assert.deepEqual(seen([image(heavy, 'image/jpeg')]), [
    { type: 'text', text: `[an image of ${heavy.length} bytes, too large for a model to see]` },
  ]);
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
