// png.ts: a picture made smaller by hand. Screenshots are PNG, Node has zlib, and what is left is
// arithmetic: https://www.w3.org/TR/png-3/. Every number in the file is a stranger's.

import { deflateSync, inflateSync } from 'node:zlib';
import { crc32 } from '../../27-scopes/zip.ts';

const SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');
const MAX_UNPACKED = 2 ** 27; // bytes: a few kilobytes can unpack to gigabytes
const MAX_SIDE = 2 ** 16;
const MAX_PIXELS = 2 ** 26; // two screens of 8K: with one bit each, they are a few bytes in a file
const MAX_TRIES = 4;
const CHANNELS: Record<number, number> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 }; // by colour type

/** Of the header, if there is one: all other numbers depend on it. */
type PngHeader = {
  width: number;
  height: number;
  depth: number; // bits of one sample
  colour: number; // 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGB and alpha
};

export function pngSize(png: Buffer): { width: number; height: number } | undefined {
  const hasHeader = png.length >= 33 && png.subarray(0, 8).equals(SIGNATURE);
  if (!hasHeader || png.toString('latin1', 12, 16) !== 'IHDR') return undefined;
  return { width: png.readUInt32BE(16), height: png.readUInt32BE(20) };
}

/** Small enough for both bounds, in pixels and in characters of base64. */
export function smallerPng(base64: string, most: { side: number; base64: number }) {
  const png = Buffer.from(base64, 'base64');
  const size = pngSize(png);
  if (!size) return undefined;
  const bySide = Math.ceil(Math.max(size.width, size.height) / most.side);
  const byLength = Math.ceil(Math.sqrt(base64.length / most.base64));
  const first = Math.max(2, bySide, byLength);
  for (let factor = first; factor < first + MAX_TRIES; factor++) {
    const small = shrinkPng(png, factor);
    const data = small.toString('base64');
    if (data.length <= most.base64) return { data, ...pngSize(small)! };
  }
  return undefined;
}

/** The same picture with one pixel in the place of `factor` × `factor`. Throws if it is broken, or
 *  of a kind that takes more than a page of code (interlaced). */
export function shrinkPng(png: Buffer, factor: number): Buffer {
  const { header, data, palette, alphas } = chunksOf(png);
  const rows = unpack(header, data);
  const pixel = pixelReader(header, palette, alphas);
  const width = Math.ceil(header.width / factor);
  const height = Math.ceil(header.height / factor);
  const pixels = Buffer.alloc(width * height * 4);
  for (let y = 0; y < height; y++) {
    const band = rows.slice(y * factor, (y + 1) * factor);
    averageInto(pixels.subarray(y * width * 4), band, { width, factor, full: header.width }, pixel);
  }
  return pack(width, height, pixels);
}

// ─── Reading ───────────────────────────────────────────────────────────────────────────────────

/** A length, four letters, the data, and a checksum: one after the other. */
function chunksOf(png: Buffer) {
  const size = pngSize(png);
  if (!size) throw new Error('it is not a PNG');
  const header = { ...size, depth: png[24]!, colour: png[25]! };
  mustBeKnown(header, png[28]!);
  const data: Buffer[] = [];
  let palette: Buffer = Buffer.alloc(0);
  let alphas: Buffer = Buffer.alloc(0);
  for (let at = 33; at + 12 <= png.length; ) {
    const length = png.readUInt32BE(at);
    const name = png.toString('latin1', at + 4, at + 8);
    const body = png.subarray(at + 8, at + 8 + length);
    if (name === 'IDAT') data.push(body);
    if (name === 'PLTE') palette = body;
    if (name === 'tRNS') alphas = body;
    if (name === 'IEND') break;
    at += 12 + length;
  }
  return { header, data: Buffer.concat(data), palette, alphas };
}

function mustBeKnown({ width, height, depth, colour }: PngHeader, interlacing: number): void {
  if (width * height > MAX_PIXELS) throw new Error('it has too many pixels');
  const isSize = width > 0 && height > 0 && Math.max(width, height) <= MAX_SIDE;
  const isDepth = colour === 0 || colour === 3 ? [1, 2, 4, 8, 16] : [8, 16];
  const isKnown = isSize && colour in CHANNELS && isDepth.includes(depth);
  if (!isKnown || interlacing !== 0) throw new Error('it is a PNG of a kind we do not read');
}

/** Each row begins with the number of its filter: what its bytes are the difference to. */
function unpack(header: PngHeader, data: Buffer): Buffer[] {
  const { width, height, depth, colour } = header;
  const bits = CHANNELS[colour]! * depth;
  const length = Math.ceil((width * bits) / 8);
  const unpacked = (length + 1) * height;
  if (unpacked > MAX_UNPACKED) throw new Error('it is too large to be unpacked');
  const bytes = inflateSync(data, { maxOutputLength: unpacked });
  if (bytes.length < unpacked) throw new Error('it ends too early');
  const step = Math.max(1, bits / 8); // how far to the left the same channel is
  const rows: Buffer[] = [];
  let above: Buffer = Buffer.alloc(length);
  for (let y = 0; y < height; y++) {
    const at = y * (length + 1);
    const row = bytes.subarray(at + 1, at + 1 + length);
    unfilter(row, above, bytes[at]!, step);
    rows.push(row);
    above = row;
  }
  return rows;
}

/** In place. */
function unfilter(row: Buffer, above: Buffer, filter: number, step: number): void {
  for (let n = 0; n < row.length; n++) {
    const left = n < step ? 0 : row[n - step]!;
    const up = above[n]!;
    const corner = n < step ? 0 : above[n - step]!;
    row[n] = row[n]! + predicted(filter, left, up, corner);
  }
}

function predicted(filter: number, left: number, up: number, corner: number): number {
  if (filter === 0) return 0;
  if (filter === 1) return left;
  if (filter === 2) return up;
  if (filter === 3) return (left + up) >> 1;
  if (filter !== 4) throw new Error(`it has a filter ${filter}`);
  const toLeft = Math.abs(up - corner); // Paeth: the neighbour nearest to left + up - corner
  const toUp = Math.abs(left - corner);
  const toCorner = Math.abs(left + up - 2 * corner);
  if (toLeft <= toUp && toLeft <= toCorner) return left;
  return toUp <= toCorner ? up : corner;
}

/** Writes the red, green, blue and alpha of one pixel into `into`. */
type Pixel = (row: Buffer, x: number, into: Uint8Array) => void;

function pixelReader({ depth, colour }: PngHeader, palette: Buffer, alphas: Buffer): Pixel {
  const channels = CHANNELS[colour]!;
  const size = depth / 8;
  const sample = (row: Buffer, n: number) => (depth < 8 ? bitsAt(row, n, depth) : row[n * size]!);
  const scale = depth < 8 ? 255 / (2 ** depth - 1) : 1;
  if (colour === 3)
    return (row, x, into) => {
      const n = sample(row, x);
      for (let k = 0; k < 3; k++) into[k] = palette[n * 3 + k] ?? 0;
      into[3] = alphas[n] ?? 255;
    };
  const hasAlpha = colour >= 4;
  const colours = channels - (hasAlpha ? 1 : 0);
  return (row, x, into) => {
    const first = x * channels;
    for (let k = 0; k < 3; k++) into[k] = sample(row, first + (colours === 1 ? 0 : k)) * scale;
    into[3] = hasAlpha ? sample(row, first + colours) : 255;
  };
}

function bitsAt(row: Buffer, n: number, depth: number): number {
  const bit = n * depth;
  return (row[bit >> 3]! >> (8 - depth - (bit & 7))) & (2 ** depth - 1);
}

// ─── Making it smaller ─────────────────────────────────────────────────────────────────────────

type Scale = { width: number; factor: number; full: number };

/** One row of the small picture: each pixel is the mean of a square of the large one. */
function averageInto(target: Buffer, band: Buffer[], scale: Scale, pixel: Pixel): void {
  const { width, factor, full } = scale;
  const one = new Uint8Array(4);
  for (let x = 0; x < width; x++) {
    const sum = [0, 0, 0, 0];
    const end = Math.min((x + 1) * factor, full);
    for (const row of band)
      for (let at = x * factor; at < end; at++) {
        pixel(row, at, one);
        for (let k = 0; k < 4; k++) sum[k]! += one[k]!;
      }
    const count = band.length * (end - x * factor);
    for (let k = 0; k < 4; k++) target[x * 4 + k] = Math.round(sum[k]! / count);
  }
}

// ─── Writing ───────────────────────────────────────────────────────────────────────────────────

/** RGBA, 8 bits each; every row as the difference to the one above it, which compresses well. */
function pack(width: number, height: number, pixels: Buffer): Buffer {
  const length = width * 4;
  const rows = Buffer.alloc((length + 1) * height);
  for (let y = 0; y < height; y++) {
    const at = y * (length + 1);
    rows[at] = 2;
    for (let n = 0; n < length; n++) {
      const up = y === 0 ? 0 : pixels[(y - 1) * length + n]!;
      rows[at + 1 + n] = pixels[y * length + n]! - up;
    }
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 6, 0, 0, 0], 8);
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(rows)),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function chunk(name: string, data: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const named = Buffer.concat([Buffer.from(name, 'latin1'), data]);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, sum]);
}
