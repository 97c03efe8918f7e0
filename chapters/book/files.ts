// files.ts: reading and writing, a few at a time.

import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

export const pad = (n: number) => `${n}`.padStart(2, '0');
/** A text with line feeds, also where git, or an editor on Windows, has written CR LF. */
export const read = (...path: string[]) =>
  readFileSync(join(...path), 'utf8').replaceAll('\r\n', '\n');
export const linesOf = (text: string) => text.split('\n').map((line) => line.trimEnd());
export const isFile = (...path: string[]) =>
  statSync(join(...path), { throwIfNoEntry: false })?.isFile() ?? false;

/** All files below a folder, as paths from `from`. */
export function filesIn(folder: string, from = folder): string[] {
  const names = existsSync(folder) ? (readdirSync(folder, { recursive: true }) as string[]) : [];
  const files = names.filter((name) => isFile(folder, name)).map((name) => join(folder, name));
  return files.map((file) => relative(from, file).replaceAll('\\', '/'));
}

export function put(file: string, text: string): void {
  if (isFile(file) && read(file) === text) return; // others may be reading it
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

export async function sideBySide<T>(
  items: T[],
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  const queue = items.values(); // one queue, and six workers who empty it
  const empty = async () => {
    for (const item of queue) await work(item);
  };
  await Promise.all(Array.from({ length: 6 }, empty));
}

/** `before` for `--before`: PowerShell's npm swallows the lone `--` that a flag would need before it, so
 *  all our commands take plain words. */
export function withDashes(args: string[], flags: string[]): string[] {
  return args.filter((arg) => arg !== '--').map((arg) => (flags.includes(arg) ? `--${arg}` : arg));
}

export const usage = (what: string) => Object.assign(new Error(what), { isUsage: true });
