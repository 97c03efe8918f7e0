// images.ts: a model's wire refuses a picture that is too large, and with it the whole
// conversation, from then on. So none is sent: a PNG is made smaller, and of others the model is told.

import type { Block, ToolOutput } from '../../../agent.ts';
import { asObject, type Json } from '../../../mcp.ts';
import { imageType, MAX_IMAGE_BASE64 } from '../../16-hands/results.ts';
import { aside } from '../../16-hands/aside.ts';
import { pngSize, type smallerPng } from './png.ts';

const MAX_SIDE = 8000; // pixels; a known service takes no more
const SHRINK_MS = 5000;
const HEAD = 2 ** 18; // bytes in which a JPEG should tell its size

/** Pictures that a model's wire would refuse are made smaller, here where there is time for it. */
export async function fitPictures(output: Omit<ToolOutput, 'isError'>, signal: AbortSignal) {
  const { answer } = output;
  if (answer) answer.content = await withSavable(answer.content, signal);
  else output.blocks = await withSeeable(output.blocks, signal);
}

/** A server's result: what cannot be shown becomes a block that is saved in a file. */
export function withSavable(content: unknown[], signal?: AbortSignal): Promise<unknown[]> {
  return fitImages(content, signal, ({ data, mimeType }, words) => {
    return { type: 'resource', resource: { uri: words, mimeType, blob: data } };
  });
}

/** A result of our own tools: what cannot be shown is in a file already. */
export function withSeeable(blocks: Block[], signal?: AbortSignal): Promise<Block[]> {
  return fitImages(blocks, signal, (_, words) => ({ type: 'text', text: `[${words}]` }));
}

/** Content in which every picture fits. `instead` makes a block of one that cannot be made to fit,
 *  and of words about it. */
async function fitImages<T>(
  content: T[],
  signal: AbortSignal | undefined,
  instead: (block: Json, words: string) => T,
): Promise<T[]> {
  const fitting = content.map(async (item): Promise<T[]> => {
    const block = asObject(item);
    if (block.type !== 'image' || typeof block.data !== 'string') return [item];
    const size = sizeOf(block.data);
    const isWide = size !== undefined && Math.max(size.width, size.height) > MAX_SIDE;
    const isLong = block.data.length > MAX_IMAGE_BASE64;
    if (!size || (!isWide && !isLong)) return [item];
    const smaller = await shrunk(block.data, signal);
    const was = `${size.width} × ${size.height} pixels`;
    if (!smaller) return [instead(block, `an image of ${was}, too large for a model to see`)];
    const is = `${smaller.width} × ${smaller.height}`;
    const text = `[the image above has ${was}, and is shown to you in ${is}]`; // a model may click
    return [{ ...item, data: smaller.data, mimeType: 'image/png' }, { type: 'text', text } as T];
  });
  return (await Promise.all(fitting)).flat();
}

/** Undefined where that is not possible by hand: it is broken, of a rare kind, or too much. */
async function shrunk(base64: string, signal?: AbortSignal) {
  if (!pngSize(Buffer.from(base64.slice(0, 64), 'base64'))) return undefined;
  const module = '28-a-thousand-tools/results/png';
  const job = { module, name: 'smallerPng', timeoutMs: SHRINK_MS, signal };
  const bounds = { side: MAX_SIDE, base64: MAX_IMAGE_BASE64 };
  return aside<typeof smallerPng>(job, base64, bounds).catch(() => undefined);
}

// ─── How large is it? ──────────────────────────────────────────────────────────────────────────

type ImageSize = { width: number; height: number };

function sizeOf(base64: string): ImageSize | undefined {
  const head = Buffer.from(base64.slice(0, HEAD), 'base64');
  const type = imageType(head.subarray(0, 12));
  if (type === undefined || head.length < 33) return undefined;
  if (type === 'image/png') return pngSize(head);
  if (type === 'image/jpeg') return jpegSize(head);
  if (type === 'image/gif') return { width: head.readUInt16LE(6), height: head.readUInt16LE(8) };
  return webpSize(head);
}

/** Segment after segment, each with its length, up to the one that begins a frame. */
function jpegSize(head: Buffer): ImageSize | undefined {
  for (let at = 2; at + 9 < head.length; ) {
    const marker = head[at + 1]!;
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame) return { width: head.readUInt16BE(at + 7), height: head.readUInt16BE(at + 5) };
    at += 2 + head.readUInt16BE(at + 2);
  }
  return undefined;
}

/** Three kinds of one format, each with a place of its own for it. */
function webpSize(head: Buffer): ImageSize | undefined {
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
