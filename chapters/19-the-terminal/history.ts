// The prompts of earlier runs, for the key Up: one JSON line each, so that a prompt of ten lines is
// one entry. Each program only appends, so two at once lose nothing.

import { lstatSync, mkdirSync, readFileSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { asObject, parseMessage } from '../../mcp.ts';
import { takeLock } from '../17-the-gate/lock.ts';
import type { Masker } from '../17-the-gate/safe-text.ts';
import type { Trust } from '../17-the-gate/trust.ts';
import { appendPrivately } from './session-file.ts';

const MAX_BYTES = 500_000; // of a file; then it becomes the old one
const MAX_ENTRY = 20_000; // characters
const MAX_PAST = 1000; // entries of this folder

export class History {
  private file: string; // empty if there is no home to keep it in
  private old: string;
  private project: string;
  private masker: Masker;

  constructor({ folder, project }: Trust, masker: Masker) {
    this.file = folder && join(folder, 'history.jsonl');
    this.old = folder && join(folder, 'history.old.jsonl');
    this.project = project;
    this.masker = masker;
  }

  /** What was typed in this folder, the newest last. */
  read(): string[] {
    const lines = [this.old, this.file].flatMap(linesOf);
    return lines.flatMap((line) => this.entry(line)).slice(-MAX_PAST);
  }

  private entry(line: string) {
    const { folder, text } = asObject(parseMessage(line)); // one that was never finished has neither
    return folder === this.project && typeof text === 'string' ? [text] : [];
  }

  /** Throws with the reason if it cannot be kept. */
  add(text: string): void {
    if (this.file === '' || text.length > MAX_ENTRY) return;
    mkdirSync(dirname(this.file), { recursive: true, mode: 0o700 });
    this.turnOver();
    const entry = this.masker.json({ folder: this.project, text }, true);
    appendPrivately(this.file, `\n${entry}`); // a line that was never finished ends here
  }

  /** Under a lock: of two programs that do it at once, the second would put the new file in place
   *  of the old one, and all would be gone. Who appends meanwhile, appends to one of the two. */
  private turnOver() {
    if (sizeOf(this.file) <= MAX_BYTES) return;
    const lock = takeLock(`${this.file}.lock`);
    if (!lock) return; // another program is about to
    try {
      if (sizeOf(this.file) > MAX_BYTES) renameSync(this.file, this.old);
    } finally {
      lock.release();
    }
  }
}

const sizeOf = (file: string) => lstatSync(file, { throwIfNoEntry: false })?.size ?? 0;

function linesOf(file: string) {
  try {
    const stat = lstatSync(file);
    const isOurs = stat.isFile() && stat.size < 4 * MAX_BYTES;
    return isOurs ? readFileSync(file, 'utf8').split('\n') : [];
  } catch {
    return []; // there is none
  }
}
