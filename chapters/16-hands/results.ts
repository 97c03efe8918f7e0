// results.ts: what a model gets to see of a result. The same limits for built-in tools and for those of MCP servers.
//
// What does not fit is not lost: it goes to a file of ours, and the model is told which. It can read that with `read`.

import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  writeFileSync,
  type Stats,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { Block, Tool, ToolOutput, WholeText } from '../../agent.ts';
import { asObject, blocksToText, show, textOf, type Json, type ToolResult } from '../../mcp.ts';

const MAX_TEXT = 100_000; // characters, about 25,000 tokens
const HEAD = 2048;
const TAIL = 1024;
const MAX_IMAGES = 20;
const MAX_IMAGES_BASE64 = 20 * 2 ** 20; // of one answer; models refuse requests of more than some 30 MB
const MAX_SAVED = 20; // files that one result of a server may leave on the disk
export const MAX_IMAGE_BASE64 = 5 * 2 ** 20; // of one image; models take no larger ones

/** A result that is a text. */
export function inWords(text: string, isError = false): ToolOutput {
  return { blocks: [{ type: 'text', text }], isError };
}

// ─── One budget ───────────────────────────────────────────────────────────────────────────────────────────────

/** Cuts a result to what a model can take. `name`, the tool's, becomes part of the name of the file with the whole. */
export function fitResult(
  output: ToolOutput,
  folder: string,
  name: string,
  most = MAX_TEXT,
): ToolOutput & { cut?: number } {
  const blocks = joinTexts(output.blocks.map(imageLimit(folder)));
  const texts = blocks.flatMap((block) => (block.type === 'text' ? [block.text] : []));
  const length = texts.reduce((sum, text) => sum + text.length, 0);
  const isTooLong = length > most;
  const short = isTooLong ? shorten(texts.join('\n'), folder, name) : undefined;
  const fitting = short ? [short.block, ...blocks.filter(isImage)] : blocks;
  // Models refuse a conversation with an empty result in it, and then every request that follows.
  const isEmpty = fitting.length === 0;
  return {
    blocks: isEmpty ? [{ type: 'text', text: '(no output)' }] : fitting,
    isError: output.isError,
    ...(short && { cut: length - HEAD - TAIL, whole: short.whole }),
  };
}

const MAX_WANTED = 500_000; // characters of one result, if its tool asks for more room than others have

export function roomFor(tool?: Pick<Tool, 'origin'>): number {
  const { 'anthropic/maxResultSizeChars': wanted } = asObject(tool?.origin?.tool._meta);
  return typeof wanted === 'number' && wanted > MAX_TEXT ? Math.min(wanted, MAX_WANTED) : MAX_TEXT;
}

const isImage = (block: Block) => block.type === 'image';

/** Of many images the first ones. Of the others some are saved: a server could send a thousand. */
export function imageLimit(folder: string, most = MAX_IMAGES) {
  let [images, size, saved] = [0, 0, 0];
  return (block: Block): Block => {
    if (block.type === 'text') return block;
    const { mimeType, data } = block;
    const hasRoom = images < most && size + data.length <= MAX_IMAGES_BASE64;
    const words = `[too many images; left out: ${mimeType}, ${sizeOfBase64(data)} bytes]`;
    if (!hasRoom) {
      const isSaved = ++saved <= MAX_SAVED;
      return { type: 'text', text: isSaved ? saveBlob(words, data, block, folder) : words };
    }
    [images, size] = [images + 1, size + data.length];
    return block;
  };
}

/** Neighbouring texts become one: ten thousand small blocks would cost more than what they say. */
function joinTexts(blocks: Block[]) {
  const joined: Block[] = [];
  let texts: string[] = [];
  const flush = () => {
    if (texts.length > 0) joined.push({ type: 'text', text: wellFormed(texts.join('\n')) });
    texts = [];
  };
  for (const block of blocks) {
    if (block.type === 'text') {
      if (block.text !== '') texts.push(block.text);
      continue;
    }
    flush();
    joined.push(block);
  }
  flush();
  return joined;
}

function shorten(text: string, folder: string, name: string): { block: Block; whole?: WholeText } {
  let whole: WholeText | undefined;
  let where: string;
  try {
    const path = save(folder, name, 'txt', inert(text));
    whole = { lines: text.replace(/\n$/, '').split('\n').length, path };
    where = `the whole is in ${path}, which you can read or grep`;
  } catch (error) {
    where = `the rest is lost, because it could not be saved: ${textOf(error)}`;
  }
  const marker = `\n\n[… ${text.length} characters, of which this shows the beginning and the end; ${where} …]\n\n`;
  // Half of a character that takes two units is no text, and some models refuse it.
  const head = text.slice(0, HEAD).replace(/[\ud800-\udbff]$/, '');
  const tail = text.slice(-TAIL).replace(/^[\udc00-\udfff]/, '');
  return { block: { type: 'text', text: wellFormed(head + marker + tail) }, whole };
}

/** Replaces half characters wherever they stand. And since it copies, no slice keeps a text of 50 MB in memory. */
function wellFormed(text: string) {
  return Buffer.from(text).toString();
}

// ─── Results of MCP servers ───────────────────────────────────────────────────────────────────────────────────

/** What a server answered, as blocks that a model can take. Nothing that it links to is fetched. */
export function fromMcp(result: ToolResult, folder: string): ToolOutput {
  let saved = 0;
  const blocks = result.content.map((item): Block => {
    const block = asObject(item);
    const data = block.type === 'resource' ? asObject(block.resource).blob : block.data;
    if (
      !['image', 'audio', 'resource'].includes(show(block.type)) ||
      typeof data !== 'string' ||
      data === ''
    )
      return { type: 'text', text: blocksToText([item]) };
    const mimeType =
      block.type === 'image' && data.length <= MAX_IMAGE_BASE64
        ? imageTypeOfBase64(data)
        : undefined;
    if (mimeType) return { type: 'image', mimeType, data };
    const words = blocksToText([item]);
    return {
      type: 'text',
      text: ++saved > MAX_SAVED ? `${words} (not saved)` : saveBlob(words, data, block, folder),
    };
  });
  const { structuredContent, isError } = result;
  // Servers send it as a copy of the text, so it counts only where there is none.
  if (structuredContent !== undefined && !result.content.some(hasText))
    blocks.push({ type: 'text', text: JSON.stringify(structuredContent) });
  return { blocks, isError };
}

function hasText(item: unknown) {
  const { type, text, resource } = asObject(item);
  const said = type === 'resource' ? asObject(resource).text : type === 'text' && text;
  return typeof said === 'string' && said !== '';
}

export function saveBlob(words: string, data: string, block: Json, folder: string): string {
  try {
    const extension = EXTENSIONS.get(block.mimeType ?? asObject(block.resource).mimeType) ?? 'bin';
    return `${words} saved in ${save(folder, show(block.type), extension, Buffer.from(data, 'base64'))}`;
  } catch (error) {
    return `${words} could not be saved: ${textOf(error)}`;
  }
}

// Nothing that runs when somebody double-clicks it. A Map, because an object has also what nobody put in: constructor.
const EXTENSIONS = new Map<unknown, string>([
  ['image/png', 'png'],
  ['image/jpeg', 'jpg'],
  ['image/gif', 'gif'],
  ['image/webp', 'webp'],
  ['image/bmp', 'bmp'],
  ['audio/wav', 'wav'],
  ['audio/mpeg', 'mp3'],
  ['audio/ogg', 'ogg'],
  ['application/pdf', 'pdf'],
  ['text/plain', 'txt'],
]);

// ─── Images ───────────────────────────────────────────────────────────────────────────────────────────────────

/** The type of an image that models can see, by its first 12 bytes. What a file or a server calls it proves nothing,
 *  and a model refuses the whole conversation if the type is wrong. */
export function imageType(start: Buffer): string | undefined {
  const text = start.toString('latin1');
  if (text.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png';
  if (text.startsWith('\xff\xd8\xff')) return 'image/jpeg';
  if (/^GIF8[79]a/.test(text)) return 'image/gif';
  return /^RIFF[^]{4}WEBP/.test(text) ? 'image/webp' : undefined;
}

function imageTypeOfBase64(data: string) {
  const isBase64 = data.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(data);
  return isBase64 ? imageType(Buffer.from(data.slice(0, 16), 'base64')) : undefined;
}

const sizeOfBase64 = (data: string) => Buffer.byteLength(data, 'base64');

// ─── Files of ours ────────────────────────────────────────────────────────────────────────────────────────────

/** Text for a file that somebody may show on a terminal: what does something there is spelled out. */
export function inert(text: string): string {
  const spell = (char: string) => `\\u{${char.codePointAt(0)!.toString(16)}}`;
  return text.replaceAll('\r\n', '\n').replace(/[^\P{C}\n\t]|[\p{Zl}\p{Zp}]/gu, spell);
}

/** Throws if a link is on the way to a file that we are about to write. A project can bring links along, and what we
 *  write would end up wherever they lead. One in a folder that is closed to us, such as macOS's /tmp, is the system's. */
export function refuseLinks(path: string): void {
  for (let at = resolve(path); at !== dirname(at); at = dirname(at)) {
    const isLink = lstatSync(at, { throwIfNoEntry: false })?.isSymbolicLink();
    if (isLink && isOpenToUs(dirname(at)))
      throw new Error(`${at} is a link, and nothing is written through it; name the place itself`);
  }
}

function isOpenToUs(folder: string) {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

const OUR_NAME = /^result-(\d{4,12})-[A-Za-z0-9_-]{0,64}\.[a-z0-9]{2,4}$/;
const MAX_AGE_MS = 30 * 24 * 3_600_000;
const MAX_FOLDER_BYTES = 2 ** 30;
const MAX_FILES = 1000;
let lastNumber = 0;

/** A file of ours. `label` is what the pattern of its name has in its parentheses. */
export type OwnFile = { path: string; label: string; stat: Stats };

/** Those of a folder, the newest first. What is not surely ours, such as a link, is not among them. */
export function ownFiles(folder: string, pattern: RegExp): OwnFile[] {
  const found: OwnFile[] = [];
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    const label = pattern.exec(name)?.[1];
    const path = join(folder, name);
    const stat = label ? lstatSync(path, { throwIfNoEntry: false }) : undefined;
    if (!label || !stat?.isFile() || stat.nlink > 1) continue;
    const isOurs = process.getuid === undefined || stat.uid === process.getuid();
    if (isOurs) found.push({ path, label, stat });
  }
  return found.sort((a, b) => b.stat.mtimeMs - a.stat.mtimeMs);
}

/** Makes room for one more: a server that sends and sends must not fill the disk. The oldest go first. */
function removeOld(kept: OwnFile[]) {
  let bytes = 0;
  for (const [n, { path, stat }] of kept.entries()) {
    bytes += stat.size;
    const isOld = Date.now() - stat.mtimeMs > MAX_AGE_MS;
    if (isOld || n >= MAX_FILES - 1 || bytes > MAX_FOLDER_BYTES) rmSync(path, { force: true });
  }
}

/** Makes a new file that only we can read, and opens it. The name is ours: one that a server gave could be a path. */
export function newFile(
  folder: string,
  name: string,
  extension: string,
): { path: string; fd: number } {
  refuseLinks(folder);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const kept = ownFiles(folder, OUR_NAME);
  removeOld(kept);
  lastNumber = kept.reduce((most, { label }) => Math.max(most, Number(label)), lastNumber); // none is used twice
  const label = name.replace(/[^A-Za-z0-9_-]+/g, '_').slice(0, 64);
  for (;;) {
    const path = join(
      folder,
      `result-${String(++lastNumber).padStart(4, '0')}-${label}.${extension}`,
    );
    try {
      return { path, fd: openSync(path, 'wx', 0o600) }; // x: neither an old file nor a link that waits there
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}

function save(folder: string, name: string, extension: string, content: string | Buffer) {
  const { path, fd } = newFile(folder, name, extension);
  try {
    writeFileSync(fd, content);
  } finally {
    closeSync(fd);
  }
  return path;
}
