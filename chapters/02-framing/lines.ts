// lines.ts: bytes into lines, and lines into one write.

import { joinSmall } from '../05-death/bounds.ts';

const LF = 0x0a;

/** Keeps the beginning of a line until its end has come. Only LF ends a line, and in UTF-8 no other
 *  character contains that byte, so whole lines can be decoded at once. */
export class LineBuffer {
  private unread: Buffer[] = [];
  unreadBytes = 0;

  /** The whole lines in all that has come so far. */
  takeWhole(chunk: Buffer): Buffer {
    const end = chunk.lastIndexOf(LF) + 1;
    const rest = chunk.subarray(end);
    if (end === 0) {
      this.keep(rest);
      return rest.subarray(rest.length); // empty
    }
    this.unread.push(chunk.subarray(0, end));
    const [first] = this.unread;
    const whole = this.unread.length === 1 ? first! : Buffer.concat(this.unread);
    this.clear();
    this.keep(rest);
    return whole;
  }

  private keep(rest: Buffer): void {
    if (rest.length === 0) return;
    this.unread.push(rest);
    this.unreadBytes += rest.length;
    joinSmall(this.unread);
  }

  clear(): void {
    this.unread = [];
    this.unreadBytes = 0;
  }
}

export const WRITE_SIZE = 2 ** 20; // characters

/** Lines that leave with one write, and the promise that all their senders hold. */
export class Batch {
  text = '';
  done!: () => void;
  handedOver = new Promise<void>((done) => {
    this.done = done;
  });
}

/** U+2028 and U+2029 are legal in JSON, but some line readers (readline in Node 24) split there. */
export function escapeSeparators(text: string): string {
  return text.replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029');
}
