// base64url.ts: the package that is our Buffer in a page has no base64url.

import { Buffer } from 'node:buffer';

const SPELLED: Record<string, string> = { '+': '-', '/': '_', '=': '' };

export function teachBase64url(): void {
  const { from } = Buffer as any;
  const { toString } = Buffer.prototype;
  Object.assign(Buffer, {
    from: (value: unknown, how: unknown, ...more: unknown[]) =>
      from(value, how === 'base64url' ? 'base64' : how, ...more), // it reads both spellings
  });
  Buffer.prototype.toString = function (this: Buffer, how?: BufferEncoding, ...more: number[]) {
    if (how !== 'base64url') return toString.call(this, how, ...more);
    return toString.call(this, 'base64').replace(/[+/=]/g, (each: string) => SPELLED[each]!);
  };
}
