// frames.ts: the frames of a WebSocket (RFC 6455), as functions over bytes. A message is one frame or several; between
// them may stand control frames (ping, pong, close), which are always whole.

import { randomBytes } from 'node:crypto';

export const [CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG] = [0, 1, 2, 8, 9, 10] as const;
const [LAST, RESERVED, MASKED] = [0x80, 0x70, 0x80];
export const [NORMAL, WRONG, NOT_TEXT, BAD_UTF8, TOO_BIG] = [1000, 1002, 1003, 1007, 1009] as const;
const MAX_CONTROL_BYTES = 125;

/** What the other side did wrong, and the code that tells it so. */
export class Violation extends Error {
  code: number;
  constructor(code: number, what: string) { super(what); this.code = code; }
}

/** A frame as a client must send it: masked with a key that nobody can foresee. Proxies that do not know WebSockets
 *  might else take what we say for HTTP, and somebody who chooses our words could fill their caches. */
export function encodeFrame(opcode: number, payload: Buffer, key = randomBytes(4)): Buffer {
  const { length } = payload;
  const extra = length <= MAX_CONTROL_BYTES ? 0 : length < 2 ** 16 ? 2 : 8; // bytes that the length needs
  const start = 2 + extra + key.length;
  const frame = Buffer.allocUnsafe(start + length);
  frame[0] = LAST | opcode;
  frame[1] = MASKED | (extra === 0 ? length : extra === 2 ? 126 : 127);
  if (extra === 2) frame.writeUInt16BE(length, 2);
  if (extra === 8) frame.writeBigUInt64BE(BigInt(length), 2);
  key.copy(frame, start - key.length);
  for (let i = 0; i < length; i++) frame[start + i] = payload[i]! ^ key[i & 3]!;
  return frame;
}

export const encodeClose = (code: number) => encodeFrame(CLOSE, Buffer.from([code >> 8, code & 0xff]));

/** The code of a close frame, and its reason. Without a payload it is 1005, which nobody may send. */
export function readClose(payload: Buffer): { code: number; reason: string } {
  if (payload.length === 0) return { code: 1005, reason: '' };
  const code = payload.length === 1 ? 0 : payload.readUInt16BE();
  const isKnown = (code >= 1000 && code <= 1014 && ![1004, 1005, 1006].includes(code)) || (code >= 3000 && code < 5000);
  if (!isKnown) throw new Violation(WRONG, `closed with the code ${code}, which means nothing`);
  return { code, reason: readText(payload.subarray(2)) };
}

export function readText(payload: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(payload);
  } catch {
    throw new Violation(BAD_UTF8, 'sent text that is not UTF-8');
  }
}

type Header = { isLast: boolean; opcode: number; size: number; length: number };

/** The beginning of a frame that a server sent; nothing if it is not all there. */
export function decodeHeader(bytes: Buffer): Header | undefined {
  if (bytes.length < 2) return undefined;
  const [first, second] = [bytes[0]!, bytes[1]!];
  const [isLast, opcode] = [first >= LAST, first & 0x0f];
  if (first & RESERVED) throw new Violation(WRONG, 'used an extension that we have not agreed on (reserved bits)');
  const isUnknown = opcode > PONG || (opcode > BINARY && opcode < CLOSE);
  if (isUnknown) throw new Violation(WRONG, `sent a frame of kind ${opcode}, which does not exist`);
  if (second & MASKED) throw new Violation(WRONG, 'sent a masked frame, as only clients do');
  if (opcode >= CLOSE && !isLast) throw new Violation(WRONG, 'sent a control frame in pieces');
  const isTooLong = opcode >= CLOSE && second > MAX_CONTROL_BYTES;
  if (isTooLong) throw new Violation(WRONG, `sent a control frame of more than ${MAX_CONTROL_BYTES} bytes`);
  const size = second < 126 ? 2 : second === 126 ? 4 : 10;
  if (bytes.length < size) return undefined;
  const length = size === 2 ? second : size === 4 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
  return { isLast, opcode, size, length };
}

/** Bytes that come in pieces. Its room doubles when it is full, so each byte is copied twice at most on average, and
 *  a million pieces of one byte weigh no more than one of a million: a list of them would. */
class Bytes {
  private room: Buffer = Buffer.alloc(0);
  private start = 0;
  private end = 0;

  get length(): number { return this.end - this.start; }
  peek(): Buffer { return this.room.subarray(this.start, this.end); }

  append(piece: Buffer): void {
    if (this.length === 0) [this.room, this.start, this.end] = [piece, 0, piece.length]; // most often: nothing to copy
    else {
      if (this.end + piece.length > this.room.length) this.grow(this.length + piece.length);
      this.end += piece.copy(this.room, this.end);
    }
  }

  /** A new room, for what was taken out of the old one may still be in use. */
  private grow(needed: number): void {
    const rest = this.peek();
    this.room = Buffer.allocUnsafe(Math.max(needed, 2 * rest.length));
    [this.start, this.end] = [0, rest.copy(this.room)];
  }

  take(count: number): Buffer {
    this.start += count;
    const taken = this.room.subarray(this.start - count, this.start);
    if (this.length === 0) this.room = Buffer.alloc(0); // do not keep what was large once
    if (this.length === 0) this.start = this.end = 0;
    return taken;
  }
}

/** Makes messages out of bytes. `opcode` is that of a whole message (always TEXT) or of a control frame. */
export class MessageReader {
  private maxBytes: number;
  private unread = new Bytes();
  private message?: Bytes; // whose last frame has not come yet

  constructor(maxBytes: number) { this.maxBytes = maxBytes; }

  *read(chunk: Buffer): Generator<{ opcode: number; payload: Buffer }, void> {
    this.unread.append(chunk);
    for (let header = this.header(); header; header = this.header()) {
      const { isLast, opcode, size, length } = header;
      if (this.unread.length < size + length) return;
      const payload = this.unread.take(size + length).subarray(size);
      if (opcode >= CLOSE) yield { opcode, payload };
      else if (isLast && !this.message) yield { opcode, payload };
      else {
        this.message ??= new Bytes();
        this.message.append(payload);
        const whole = this.message;
        if (isLast) this.message = undefined;
        if (isLast) yield { opcode: TEXT, payload: whole.peek() };
      }
    }
  }

  /** Judges a frame by its header: what is too big is refused before it is there. */
  private header(): Header | undefined {
    const header = decodeHeader(this.unread.peek());
    if (!header || header.opcode >= CLOSE) return header;
    if (header.opcode === BINARY) throw new Violation(NOT_TEXT, 'sent a binary message, but MCP is text');
    const isContinued = header.opcode === CONTINUATION;
    if (isContinued && !this.message) throw new Violation(WRONG, 'continued a message that it had not begun');
    if (!isContinued && this.message) throw new Violation(WRONG, 'began a message within another');
    const isTooBig = (this.message?.length ?? 0) + header.length > this.maxBytes;
    if (isTooBig) throw new Violation(TOO_BIG, `sent a message of more than ${this.maxBytes} bytes`);
    return header;
  }
}
