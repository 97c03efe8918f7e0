// told.ts: a warning about a file comes once for each version of the file. One that comes at every
// start is not read any more, and then the next one is not read, either.

import { readFileSync, statSync } from 'node:fs';
import { hasTexts, PrivateFile } from './private-file.ts';
import { sha256 } from './digest.ts';

type ToldFiles = { version: 1; files: { file: string; hash: string }[] };

const EMPTY: ToldFiles = { version: 1, files: [] };
const MAX_FILES = 200;
const MAX_BYTES = 16 * 2 ** 20; // as for every file of settings
const LOCK_MS = 60; // another program is no reason to wait: at worst it is told twice

/** Collects what there is to say about a file, and says it if it was not said of this version. */
export class WarnOnce {
  private store: PrivateFile<ToldFiles>;
  private file: string;
  private texts: string[] = [];

  constructor(home: string, file: string) {
    const isSound = ({ files }: { files?: unknown }) =>
      Array.isArray(files) && files.every((row) => hasTexts(row, 'file', 'hash'));
    this.store = new PrivateFile(home, 'told.json', EMPTY, isSound);
    this.file = file;
  }

  add = (text: string): void => void this.texts.push(text);

  tell(warn: (text: string) => void): void {
    if (this.texts.length === 0) return;
    try {
      const { file } = this;
      const hash = sha256([versionOf(file), ...this.texts].join('\0'));
      const isMeant = (row: ToldFiles['files'][number]) => row.file === file && row.hash === hash;
      if (this.store.read().files.some(isMeant)) return;
      this.store.change((told) => {
        const others = told.files.filter((row) => row.file !== file);
        told.files = [...others, { file, hash }].slice(-MAX_FILES);
      }, LOCK_MS);
    } catch {} // what cannot be remembered is said again
    for (const text of this.texts) warn(text);
  }
}

/** Its text. A project may have put a FIFO there, or a link to /dev/zero: to read that never ends. */
function versionOf(file: string): string {
  const stat = statSync(file);
  const isUsual = stat.isFile() && stat.size <= MAX_BYTES;
  return isUsual ? readFileSync(file, 'utf8') : `${stat.ino} ${stat.size} ${stat.mtimeMs}`;
}
