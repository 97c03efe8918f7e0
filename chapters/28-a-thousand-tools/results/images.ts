// images.ts: a model's wire refuses a picture that is too large, and with it the whole
// conversation, from then on. So none is sent: it goes to a file, and the model is told.

import type { Block, ToolOutput } from '../../../agent.ts';
import { asObject, type Json } from '../../../mcp.ts';
import { imageType, MAX_IMAGE_BASE64 } from '../../16-hands/results.ts';

const MAX_SIDE = 8000; // pixels; a known service takes no more
const HEAD = 2 ** 18; // bytes in which a JPEG should tell its size

/** Of a server's result, what cannot be shown becomes a block that is saved in a file. What a tool of
 *  our own shows is in a file already. */
export function fitPictures(output: Pick<ToolOutput, 'answer' | 'blocks'>): void {
  const { answer, blocks } = output;
  if (answer) answer.content = answer.content.map((item) => fitting(item, savable));
  else output.blocks = blocks.map((block) => fitting(block, seeable));
}

const savable = (words: string, { data, mimeType }: Json): unknown => {
  return { type: 'resource', resource: { uri: words, mimeType, blob: data } };
};
const seeable = (words: string): Block => ({ type: 'text', text: `[${words}]` });

/** `instead` makes a block of words about a picture that is too large. */
function fitting<T>(item: T, instead: (words: string, block: Json) => T) {
  const block = asObject(item);
  if (block.type !== 'image' || typeof block.data !== 'string') return item;
  const { width = 0, height = 0 } = sizeOf(block.data) ?? {};
  const isHeavy = block.data.length > MAX_IMAGE_BASE64;
  if (Math.max(width, height) <= MAX_SIDE && !isHeavy) return item;
  const size = isHeavy
    ? `${Buffer.byteLength(block.data, 'base64')} bytes`
    : `${width} × ${height} pixels`;
  return instead(`an image of ${size}, too large for a model to see`, block);
}

// ─── How large is it? ──────────────────────────────────────────────────────────────────────────

type ImageSize = { width: number; height: number };

function sizeOf(base64: string): ImageSize | undefined {
  const head = Buffer.from(base64.slice(0, HEAD), 'base64');
  const type = imageType(head.subarray(0, 12));
  if (type === undefined || head.length < 33) return undefined;
  if (type === 'image/png') return { width: head.readUInt32BE(16), height: head.readUInt32BE(20) };
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
