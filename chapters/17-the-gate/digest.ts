// One text for one content, and a short name for a text.

import { createHash } from 'node:crypto';
import { isObject } from '../../mcp.ts';

/** The same text for the same content, whatever the order of its keys. */
export function canonicalJson(value: unknown, space?: number): string {
  const byKey = ([a]: [string, unknown], [b]: [string, unknown]) => (a < b ? -1 : 1);
  const sorted = (_: string, inner: unknown) =>
    isObject(inner) ? Object.fromEntries(Object.entries(inner).sort(byKey)) : inner;
  return JSON.stringify(value, sorted, space);
}

export function sha256(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}
