// bounds.ts: how much a server may send, and we to it.

import type { Id } from '../01-a-pipe/messages.ts';
import { McpError } from '../03-three-shapes/errors.ts';

const MAX_DEPTH = 500;
const MAX_VALUES = 1_000_000; // each may cost JSON.parse 200 bytes and some microseconds
export const MAX_LINE_BYTES = 2 ** 28; // a string cannot hold much more

export const MAX_UNSENT = 2 ** 26; // characters that wait for a server that does not read

/** The connection stays open: the server may start to read again. */
export function notReading(who: string): McpError {
  const what = `does not read what we send: more than ${MAX_UNSENT} characters wait for it`;
  return new McpError('unreachable', `${who} ${what}`);
}

/** One UTF-16 unit of a string takes one to three bytes in UTF-8. */
export function isLonger(text: string, maxBytes: number): boolean {
  return text.length * 3 > maxBytes && new TextEncoder().encode(text).length > maxBytes;
}

const VERSION_MEMBER = '(?:"jsonrpc"\\s*:\\s*"2\\.0"\\s*,\\s*)?';
const ID_MEMBER = '"id"\\s*:\\s*(\\d{1,15})';
const START_OF_ANSWER = new RegExp(
  `^\\{\\s*${VERSION_MEMBER}(?:${ID_MEMBER}\\s*,\\s*)?${VERSION_MEMBER}"(?:result|error)"`,
);
const END_OF_ANSWER = new RegExp(`${ID_MEMBER}\\s*\\}$`);

/** The call that it answers, judging by its beginning and its end: the rest is not parsed. */
export function idOfAnswer(json: string): Id | undefined {
  const start = START_OF_ANSWER.exec(json.slice(0, 200));
  if (!start) return undefined;
  const end = END_OF_ANSWER.exec(json.slice(-200));
  const id = start[1] ?? end?.[1];
  return id === undefined ? undefined : Number(id);
}

/** It cannot hold too many values, so parsing does no harm; and then its depth is seen sooner. */
export const isShort = (json: string) => json.length <= MAX_VALUES;

export function tooDeepFor(value: unknown): string | undefined {
  return isDeeper(value, MAX_DEPTH) ? `more than ${MAX_DEPTH} levels` : undefined;
}

export function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  for (const each of Object.values(value)) {
    if (isDeeper(each, levels - 1)) return true;
  }
  return false;
}

/** JSON.parse needs ten seconds and gigabytes for 64 million brackets, deep or side by side, so
 *  count them first. A comma or an opening bracket comes before every value but one. */
export function tooMuchIn(json: string): string | undefined {
  if (json.length < MAX_DEPTH) return undefined;
  if (!/^\s*[[{]/.test(json)) return undefined; // a coloured line of noise has brackets too
  let depth = 0;
  let values = 0;
  for (let i = 0; i < json.length; i++) {
    const char = json[i];
    if (char === '"') i = endOfString(json, i);
    if (char === '[' || char === '{') depth++;
    if (char === ']' || char === '}') depth--;
    if (char === ',' || char === '[' || char === '{') values++;
    if (depth > MAX_DEPTH) return `more than ${MAX_DEPTH} levels`;
    if (values > MAX_VALUES) return `more than ${MAX_VALUES} values`;
  }
  return undefined;
}

/** Brackets in strings do not count. A string ends at a quote with an even number of backslashes
 *  before it. */
function endOfString(json: string, start: number): number {
  let end = json.indexOf('"', start + 1);
  while (end !== -1) {
    let backslashes = 0;
    while (json[end - 1 - backslashes] === '\\') backslashes++;
    if (backslashes % 2 === 0) return end;
    end = json.indexOf('"', end + 1);
  }
  return json.length;
}

const SMALL_PIECE = 2 ** 16; // bytes

/** Joins the last pieces of a list while they are small: what arrives byte by byte would take
 *  four hundred times its size in memory. A long one is never joined with a short one, so that no
 *  byte is copied often. */
export function joinSmall(pieces: Uint8Array[]): void {
  while (pieces.length > 1) {
    const [before, last] = pieces.slice(-2) as [Uint8Array, Uint8Array];
    if (before.length > last.length || last.length >= SMALL_PIECE) return;
    pieces.splice(-2, 2, joinBytes([before, last]));
  }
}

export function joinBytes(pieces: Uint8Array[]): Uint8Array {
  const size = pieces.reduce((sum, { length }) => sum + length, 0);
  const joined = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    joined.set(piece, at);
    at += piece.length;
  }
  return joined;
}
