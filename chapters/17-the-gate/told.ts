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

/** Says these texts about a file, unless they were said of this version. */
export function warnOnce(
  { home, file }: { home: string; file: string },
  texts: string[],
  warn: (text: string) => void,
): void {
  if (texts.length === 0) return;
  try {
    const store = new PrivateFile(home, 'told.json', EMPTY, isSound);
    const hash = sha256([versionOf(file), ...texts].join('\0'));
    const isMeant = (row: ToldFiles['files'][number]) => row.file === file && row.hash === hash;
    if (store.read().files.some(isMeant)) return;
    store.change((told) => {
      const others = told.files.filter((row) => row.file !== file);
      told.files = [...others, { file, hash }].slice(-MAX_FILES);
    }, LOCK_MS);
  } catch {} // what cannot be remembered is said again
  for (const text of texts) warn(text);
}

const isSound = ({ files }: { files?: unknown }) =>
  Array.isArray(files) && files.every((row) => hasTexts(row, 'file', 'hash'));

/** Its text. A project may have put a FIFO there, or a link to /dev/zero: to read that never ends. */
function versionOf(file: string) {
  const stat = statSync(file);
  const isUsual = stat.isFile() && stat.size <= MAX_BYTES;
  return isUsual ? readFileSync(file, 'utf8') : `${stat.ino} ${stat.size} ${stat.mtimeMs}`;
}
