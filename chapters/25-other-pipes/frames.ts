// frames.ts: the frames of a WebSocket (RFC 6455), as functions over bytes. A message is one frame
// or several. Control frames (ping, pong, close) may come between them, and are always whole.

import { randomBytes } from 'node:crypto';
import { joinSmall } from '../../mcp.ts';

// Opcodes: what a frame is.
const CONTINUATION = 0;
export const TEXT = 1;
const BINARY = 2;
export const CLOSE = 8; // the first that is a control frame
export const PING = 9;
export const PONG = 10;

// Close codes: why a connection ends.
export const NORMAL = 1000;
const PROTOCOL_ERROR = 1002;
const NOT_TEXT = 1003;
const BAD_UTF8 = 1007;
export const TOO_BIG = 1009;
const NO_CODE = 1005; // there was none; it is never sent
const NEVER_SENT = [1004, NO_CODE, 1006];

// Bits of the first byte, and of the second.
const FIN = 0x80; // the last frame of its message
const RESERVED = 0x70;
const OPCODE = 0x0f;
const MASK = 0x80;

const LENGTH_IN_2_BYTES = 126; // instead of the length itself, which follows
const LENGTH_IN_8_BYTES = 127;
const MAX_CONTROL_BYTES = 125;

/** What the other side did wrong, and the code that tells it so. */
export class Violation extends Error {
  code: number;
  constructor(code: number, what: string) {
    super(what);
    this.code = code;
  }
}

// ─── Writing ────────────────────────────────────────────────────────────────────────────────────

/** A frame as a client must send it: masked with a key that cannot be foreseen. Else a proxy that
 *  does not know WebSockets might take our words for HTTP, and whatever they say could fill its
 *  cache. */
export function encodeFrame(opcode: number, payload: Buffer, key = randomBytes(4)): Buffer {
  const header = encodeHeader(opcode, payload.length);
  const start = header.length + key.length;
  const frame = Buffer.allocUnsafe(start + payload.length);
  header.copy(frame);
  key.copy(frame, header.length);
  for (let i = 0; i < payload.length; i++) frame[start + i] = payload[i]! ^ key[i % 4]!;

  return frame;
}

/** A short length is in the second byte; a longer one follows it. */
function encodeHeader(opcode: number, length: number): Buffer {
  const first = FIN | opcode;
  if (length < LENGTH_IN_2_BYTES) return Buffer.from([first, MASK | length]);
  if (length < 2 ** 16) {
    const header = Buffer.from([first, MASK | LENGTH_IN_2_BYTES, 0, 0]);
    header.writeUInt16BE(length, 2);
    return header;
  }
  const header = Buffer.from([first, MASK | LENGTH_IN_8_BYTES, 0, 0, 0, 0, 0, 0, 0, 0]);
  header.writeBigUInt64BE(BigInt(length), 2);
  return header;
}

export function encodeClose(code: number): Buffer {
  return encodeFrame(CLOSE, Buffer.from([code >> 8, code & 0xff]));
}

// ─── Reading ────────────────────────────────────────────────────────────────────────────────────

/** The code of a close frame, and its reason. */
export function readClose(payload: Buffer): { code: number; reason: string } {
  if (payload.length === 0) return { code: NO_CODE, reason: '' };
  const code = payload.length === 1 ? 0 : payload.readUInt16BE();
  if (!mayBeSent(code))
    throw new Violation(PROTOCOL_ERROR, `closed with the code ${code}, which means nothing`);

  return { code, reason: decodeText(payload.subarray(2)) };
}

function mayBeSent(code: number) {
  const isDefined = code >= 1000 && code <= 1014 && !NEVER_SENT.includes(code);
  const isPrivate = code >= 3000 && code < 5000; // of libraries and applications
  return isDefined || isPrivate;
}

export function decodeText(payload: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(payload);
  } catch {
    throw new Violation(BAD_UTF8, 'sent text that is not UTF-8');
  }
}

/** `size` is that of the header, `length` that of the payload behind it. */
type FrameHeader = { isLast: boolean; opcode: number; size: number; length: number };

/** The beginning of a frame that a server sent; nothing if it is not all there. */
function decodeHeader(bytes: Buffer): FrameHeader | undefined {
  if (bytes.length < 2) return undefined;
  const first = bytes[0]!;
  const second = bytes[1]!;
  const problem = problemWith(first, second);
  if (problem) throw new Violation(PROTOCOL_ERROR, problem);
  const isLast = (first & FIN) !== 0;
  const opcode = first & OPCODE;
  if (second < LENGTH_IN_2_BYTES) return { isLast, opcode, size: 2, length: second };
  const size = second === LENGTH_IN_2_BYTES ? 4 : 10;
  if (bytes.length < size) return undefined;
  const length = size === 4 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
  return { isLast, opcode, size, length };
}

/** The rules that two bytes can break. */
function problemWith(first: number, second: number) {
  const opcode = first & OPCODE;
  const isControl = opcode >= CLOSE;
  if (first & RESERVED) return 'used an extension that we have not agreed on (reserved bits)';
  const isUnknown = opcode > PONG || (opcode > BINARY && opcode < CLOSE);
  if (isUnknown) return `sent a frame of kind ${opcode}, which does not exist`;
  if (second & MASK) return 'sent a masked frame, as only clients do';
  if (isControl && !(first & FIN)) return 'sent a control frame in pieces';
  if (isControl && second > MAX_CONTROL_BYTES)
    return `sent a control frame of more than ${MAX_CONTROL_BYTES} bytes`;

  return undefined;
}

const lengthOf = (pieces: Uint8Array[]) => pieces.reduce((sum, { length }) => sum + length, 0);

/** A whole message, whose opcode is TEXT, or a control frame. */
type WholeMessage = { opcode: number; payload: Buffer };

/** Makes messages out of bytes. */
export class MessageReader {
  private maxBytes: number;
  private unread: Uint8Array[] = [];
  private needed = 2; // bytes, before there is something to read
  private message?: Uint8Array[]; // whose last frame has not come yet

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }

  *read(chunk: Buffer): Generator<WholeMessage, void> {
    this.unread.push(chunk);
    joinSmall(this.unread);
    if (lengthOf(this.unread) < this.needed) return;
    let bytes = Buffer.concat(this.unread);
    for (;;) {
      const header = this.header(bytes);
      this.needed = header ? header.size + header.length : bytes.length + 1;
      if (!header || bytes.length < this.needed) break;
      const { isLast, opcode, size } = header;
      const payload = bytes.subarray(size, this.needed);
      bytes = bytes.subarray(this.needed);
      const whole = opcode >= CLOSE ? payload : this.collect(payload, isLast);
      if (whole) yield { opcode: opcode >= CLOSE ? opcode : TEXT, payload: whole };
    }
    this.unread = [Buffer.from(bytes)]; // a copy: do not keep what was large once
  }

  /** Judges a frame by its header: what is too big is refused before it is there. */
  private header(bytes: Buffer): FrameHeader | undefined {
    const header = decodeHeader(bytes);
    if (!header || header.opcode >= CLOSE) return header;
    if (header.opcode === BINARY)
      throw new Violation(NOT_TEXT, 'sent a binary message, but MCP is text');

    const isContinued = header.opcode === CONTINUATION;
    if (isContinued && !this.message)
      throw new Violation(PROTOCOL_ERROR, 'continued a message that it had not begun');

    if (!isContinued && this.message)
      throw new Violation(PROTOCOL_ERROR, 'began a message within another');

    const collected = lengthOf(this.message ?? []);
    if (collected + header.length > this.maxBytes)
      throw new Violation(TOO_BIG, `sent a message of more than ${this.maxBytes} bytes`);

    return header;
  }

  /** The message, if this is its last piece. */
  private collect(piece: Buffer, isLast: boolean): Buffer | undefined {
    if (isLast && !this.message) return piece; // most messages are one frame
    this.message ??= [];
    this.message.push(piece);
    joinSmall(this.message);
    if (!isLast) return undefined;
    const whole = Buffer.concat(this.message);
    this.message = undefined;
    return whole;
  }
}
