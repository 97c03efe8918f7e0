// undo.ts: what edits have replaced. It is kept until another answer makes some, and taken back only
// as a whole, and only if every file is still as it was left.

import type { Plan } from './file-tools.ts';
import { openFile, removeProjectFile, replaceProjectFile, type Location } from './paths.ts';

const MAX_KEPT = 50_000_000; // characters of all files together

/** `text` is what was there before the first edit; nothing, if there was no file. */
type Replaced = { location: Location; text?: string; mode?: number; left: string; isLost: boolean };

/** What became of a file; `null`, where there was none, or is none. */
export type FileListener = (path: string, before: string | null, after: string | null) => void;

export class Edits {
  readonly listeners = new Set<FileListener>();
  private files = new Map<string, Replaced>(); // of one answer, by where they are
  private kept = 0;
  private isOver = false; // that answer; the next edit is of another one

  /** Another prompt was given. */
  nextAnswer(): void {
    this.isOver = true;
  }

  /** A file has become what was planned. */
  add(location: Location, { before, text, content }: Plan): void {
    if (this.isOver) this.forget();
    const known = this.files.get(location.real);
    if (!known) this.kept += text?.length ?? 0;
    const isLost = this.kept > MAX_KEPT || (before !== undefined && text === undefined);
    const mode = before && before.mode & 0o777;
    const first = known ?? { location, text: isLost ? undefined : text, mode, isLost };
    this.files.set(location.real, { ...first, left: content });
    const isKnown = before === undefined || text !== undefined;
    if (isKnown) this.tell(location.real, text ?? null, content);
  }

  private tell(...change: Parameters<FileListener>) {
    for (const listener of this.listeners) listener(...change);
  }

  /** Says what became of each file. Throws before it touches any. */
  async takeBack(): Promise<string[]> {
    const files = [...this.files.values()];
    if (files.length === 0) throw new Error('no file was changed that could be changed back');
    for (const file of files) await mustBeAsLeft(file);
    this.forget();
    const done: string[] = [];
    for (const { location, text, mode, left } of files) {
      if (text === undefined) await removeProjectFile(location);
      else await replaceProjectFile(location, text, mode);
      this.tell(location.real, left, text ?? null);
      done.push(`${location.shown} ${text === undefined ? 'is gone' : 'is as it was'}`);
    }
    return done;
  }

  private forget() {
    this.files.clear();
    this.kept = 0;
    this.isOver = false;
  }
}

async function mustBeAsLeft({ location, left, isLost }: Replaced) {
  const nothing = 'so nothing was taken back';
  if (isLost) throw new Error(`what was in ${location.shown} before was not kept, ${nothing}`);
  const file = await openFile(location).catch(() => undefined);
  const content = await file?.readFile();
  await file?.close();
  if (!content?.equals(Buffer.from(left)))
    throw new Error(`${location.shown} is not as the answer left it, ${nothing}`);
}
