// images.ts: a model's wire refuses a picture that is too large, and with it the whole
// conversation, from then on. So none is sent: a PNG is made smaller, and of others the model is told.

import type { Block } from '../../agent.ts';
import { asObject, type Json } from '../../mcp.ts';
import { imageType, MAX_IMAGE_BASE64 } from '../16-hands/results.ts';
import { pngSize, shrinkPng } from './png.ts';

const MAX_SIDE = 8000; // pixels; a known service takes no more
const MAX_TRIES = 4;
const HEAD = 2 ** 18; // bytes in which a JPEG should tell its size

/** A server's result: what cannot be shown becomes a block that is saved in a file. */
export function withSavable(content: unknown[]): unknown[] {
  return fitImages(content, ({ data, mimeType }, words) => {
    return { type: 'resource', resource: { uri: words, mimeType, blob: data } };
  });
}

/** A result of our own tools: what cannot be shown is in a file already. */
export function withSeeable(blocks: Block[]): Block[] {
  return fitImages(blocks, (_, words) => ({ type: 'text', text: `[${words}]` }));
}

/** Content in which every picture fits. `instead` makes a block of one that cannot be made to fit,
 *  and of words about it. */
function fitImages<T>(content: T[], instead: (block: Json, words: string) => T): T[] {
  return content.flatMap((item): T[] => {
    const block = asObject(item);
    if (block.type !== 'image' || typeof block.data !== 'string') return [item];
    const size = sizeOf(block.data);
    const isWide = size !== undefined && Math.max(size.width, size.height) > MAX_SIDE;
    const isLong = block.data.length > MAX_IMAGE_BASE64;
    if (!size || (!isWide && !isLong)) return [item];
    const smaller = shrunk(block.data);
    const was = `${size.width} × ${size.height} pixels`;
    if (!smaller) return [instead(block, `an image of ${was}, too large for a model to see`)];
    const is = `${smaller.width} × ${smaller.height}`;
    const text = `[the image above has ${was}, and is shown to you in ${is}]`; // a model may click
    return [{ ...item, data: smaller.data, mimeType: 'image/png' }, { type: 'text', text } as T];
  });
}

/** Undefined where that is not possible by hand. */
function shrunk(base64: string) {
  const png = Buffer.from(base64, 'base64');
  const size = pngSize(png);
  if (!size) return undefined;
  const bySide = Math.ceil(Math.max(size.width, size.height) / MAX_SIDE);
  const byLength = Math.ceil(Math.sqrt(base64.length / MAX_IMAGE_BASE64));
  const first = Math.max(2, bySide, byLength);
  for (let factor = first; factor < first + MAX_TRIES; factor++) {
    const small = tryToShrink(png, factor);
    if (!small) return undefined;
    const data = small.toString('base64');
    if (data.length <= MAX_IMAGE_BASE64) return { data, ...pngSize(small)! };
  }
  return undefined;
}

function tryToShrink(png: Buffer, factor: number): Buffer | undefined {
  try {
    return shrinkPng(png, factor);
  } catch {
    return undefined; // it is broken, or of a rare kind
  }
}

// ─── How large is it? ──────────────────────────────────────────────────────────────────────────

type Size = { width: number; height: number };

function sizeOf(base64: string): Size | undefined {
  const head = Buffer.from(base64.slice(0, HEAD), 'base64');
  const type = imageType(head.subarray(0, 12));
  if (type === undefined || head.length < 33) return undefined;
  if (type === 'image/png') return pngSize(head);
  if (type === 'image/jpeg') return jpegSize(head);
  if (type === 'image/gif') return { width: head.readUInt16LE(6), height: head.readUInt16LE(8) };
  return webpSize(head);
}

/** Segment after segment, each with its length, up to the one that begins a frame. */
function jpegSize(head: Buffer): Size | undefined {
  for (let at = 2; at + 9 < head.length; ) {
    const marker = head[at + 1]!;
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame) return { width: head.readUInt16BE(at + 7), height: head.readUInt16BE(at + 5) };
    at += 2 + head.readUInt16BE(at + 2);
  }
  return undefined;
}

/** Three kinds of one format, each with a place of its own for it. */
function webpSize(head: Buffer): Size | undefined {
  const kind = head.toString('latin1', 12, 16);
  const low14 = (bits: number) => bits & 0x3fff;
  if (kind === 'VP8 ')
    return { width: low14(head.readUInt16LE(26)), height: low14(head.readUInt16LE(28)) };
  if (kind === 'VP8X')
    return { width: head.readUIntLE(24, 3) + 1, height: head.readUIntLE(27, 3) + 1 };
  if (kind !== 'VP8L') return undefined;
  const bits = head.readUInt32LE(21);
  return { width: low14(bits) + 1, height: low14(bits >>> 14) + 1 };
}
