// zip.ts: a ZIP archive, read by hand and within bounds. An archive says of itself how many files it
// has, how big they are and what they are called, and may lie about each.

import { inflateRawSync } from 'node:zlib';

type Bounds = { maxFiles: number; maxBytes: number };
export type Packed = { name: string; size: number; isExecutable: boolean; content: () => Buffer };

const END = 0x06054b50;
const DIRECTORY = 0x02014b50;
const LOCAL = 0x04034b50;
const END_BYTES = 22;
const MAX_COMMENT = 2 ** 16;
const STORED = 0;
const DEFLATED = 8;
const UNIX = 3; // the system whose modes are in the attributes
const KIND = 0o170000;
const LINK = 0o120000;

/** Its files, in order. Nothing is unpacked before `content` is called. */
export function filesInZip(zip: Buffer, { maxFiles, maxBytes }: Bounds): Packed[] {
  const end = findEnd(zip);
  const count = zip.readUInt16LE(end + 10);
  if (count > maxFiles) throw new Error(`it has ${count} files, more than ${maxFiles}`);
  let at = zip.readUInt32LE(end + 16);
  let total = 0;
  const names = new Set<string>();
  const files: Packed[] = [];
  for (let n = 0; n < count; n++) {
    const row = rowAt(zip, at);
    at = row.next;
    const isFolder = row.name.endsWith('/');
    total += row.size;
    if (total > maxBytes) throw new Error(`it unpacks to more than ${maxBytes} bytes`);
    checkName(row.name, names);
    if (row.isLink) throw new Error(`it holds a link: ${JSON.stringify(row.name)}`);
    if (!isFolder)
      files.push({
        name: row.name,
        size: row.size,
        isExecutable: row.isExecutable,
        content: () => contentOf(zip, row),
      });
  }
  return files;
}

type ZipEntry = ReturnType<typeof rowAt>;

/** The directory's end is at the end, before a comment of any content. */
function findEnd(zip: Buffer) {
  const first = Math.max(0, zip.length - END_BYTES - MAX_COMMENT);
  for (let at = zip.length - END_BYTES; at >= first; at--)
    if (zip.readUInt32LE(at) === END && at + END_BYTES + zip.readUInt16LE(at + 20) === zip.length)
      return at;
  throw new Error('it is not a ZIP archive');
}

function rowAt(zip: Buffer, at: number) {
  if (at + 46 > zip.length || zip.readUInt32LE(at) !== DIRECTORY)
    throw new Error('its directory is broken');
  const flags = zip.readUInt16LE(at + 8);
  const nameLength = zip.readUInt16LE(at + 28);
  const rest = zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32);
  const attributes = zip.readUInt32LE(at + 38);
  const mode = zip[at + 5] === UNIX ? attributes >>> 16 : 0;
  if ((flags & 1) !== 0) throw new Error('it is encrypted');
  const name = new TextDecoder('utf-8', { fatal: true }).decode(
    zip.subarray(at + 46, at + 46 + nameLength),
  );
  return {
    name,
    method: zip.readUInt16LE(at + 10),
    crc: zip.readUInt32LE(at + 16),
    packed: zip.readUInt32LE(at + 20),
    size: zip.readUInt32LE(at + 24),
    offset: zip.readUInt32LE(at + 42),
    isLink: (mode & KIND) === LINK,
    isExecutable: (mode & 0o111) !== 0,
    next: at + 46 + nameLength + rest,
  };
}

/** A name must stay below the folder that it is unpacked into, on every system. */
function checkName(name: string, known: Set<string>): void {
  const parts = name.replace(/\/$/, '').split('/');
  const isOdd = (part: string) =>
    part === '' || part === '.' || part === '..' || /[\\:\0-\x1f]/.test(part) || /[. ]$/.test(part);
  if (name.length > 1000 || parts.some(isOdd))
    throw new Error(`it holds a file with the name ${JSON.stringify(name.slice(0, 200))}`);
  const folded = name.toLowerCase(); // some systems do not tell a and A apart
  if (known.has(folded)) throw new Error(`it holds ${JSON.stringify(name.slice(0, 200))} twice`);
  known.add(folded);
}

/** The sizes of the directory count; what a local header says is not looked at. */
function contentOf(zip: Buffer, { name, method, crc, packed, size, offset }: ZipEntry): Buffer {
  const broken = () => new Error(`${JSON.stringify(name)} in it is broken`);
  if (offset + 30 > zip.length || zip.readUInt32LE(offset) !== LOCAL) throw broken();
  const start = offset + 30 + zip.readUInt16LE(offset + 26) + zip.readUInt16LE(offset + 28);
  const bytes = zip.subarray(start, start + packed);
  if (bytes.length !== packed) throw broken();
  if (method !== STORED && method !== DEFLATED)
    throw new Error(`${JSON.stringify(name)} in it is packed in another way than we know`);
  let content: Buffer;
  try {
    // A bomb is stopped at the size that it admitted, and those were counted.
    content =
      method === STORED ? bytes : inflateRawSync(bytes, { maxOutputLength: Math.max(size, 1) });
  } catch {
    throw broken();
  }
  if (content.length !== size || crc32(content) !== crc) throw broken();
  return content;
}

/** Node has one since 20.15; older ones do not. */
export function crc32(bytes: Buffer): number {
  const table = Uint32Array.from({ length: 256 }, (_, n) => {
    for (let bit = 0; bit < 8; bit++) n = n & 1 ? (n >>> 1) ^ 0xedb88320 : n >>> 1;
    return n;
  });
  let crc = ~0;
  for (const byte of bytes) crc = (crc >>> 8) ^ table[(crc ^ byte) & 255]!;
  return ~crc >>> 0;
}
