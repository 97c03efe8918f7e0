// watched-files.ts: the files of the configuration, watched while a chat runs. A change is told,
// and nothing is done about it: what a project, or a tool in this very chat, writes there starts
// nothing.

import { statSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { firstOf } from '../16-hands/start-up.ts';
import { quoted } from '../17-the-gate/safe-text.ts';
import type { ServerEntries } from '../19-the-terminal/host.ts';

type WatchOptions = {
  files: () => string[];
  read: () => ServerEntries; // what the files say now
  loaded: () => ServerEntries; // what the program goes by
  tell: (text: string) => void;
  intervalMs?: number;
};

const INTERVAL_MS = 2000;
const MAX_NAMES = 10;

/** Looks at the times of the files, now and then: that works on every system, and for files that do
 *  not exist yet. (`fs.watchFile` misses what happens before its own first look.) Returns what ends
 *  it. */
export function watchFiles({
  files,
  read,
  loaded,
  tell,
  intervalMs = INTERVAL_MS,
}: WatchOptions): () => void {
  const all = [...new Set(files())];
  let seen = ''; // so the first look is a comparison: the files may have changed since they were read
  let told = '';
  const look = () => {
    const now = all.map(stateOf).join();
    if (now === seen) return;
    seen = now;
    const news = difference(loaded(), read());
    if (news === told) return; // also if all is as it was
    told = news;
    if (news) tell(`the configuration has changed: ${news}. /mcp reload reads it again`);
  };
  const timer = setInterval(look, intervalMs).unref();
  return () => clearInterval(timer);
}

function stateOf(file: string) {
  try {
    const { mtimeMs, size, ino } = statSync(file);
    return `${mtimeMs} ${size} ${ino}`;
  } catch {
    return ''; // it is not there
  }
}

/** In words; nothing, if the same servers would start. */
function difference(before: ServerEntries, after: ServerEntries) {
  const isSame = (name: string) => {
    const [one, two] = [before.get(name)!, after.get(name)!];
    return isDeepStrictEqual(
      [one.config, one.authority, one.blocked],
      [two.config, two.authority, two.blocked],
    );
  };
  const names = (from: ServerEntries, isMeant: (name: string) => boolean) =>
    [...from.keys()].filter(isMeant);
  const kinds = {
    new: names(after, (name) => !before.has(name)),
    changed: names(after, (name) => before.has(name) && !isSame(name)),
    gone: names(before, (name) => !after.has(name)),
  };
  const words = Object.entries(kinds)
    .filter(([, list]) => list.length > 0)
    .map(([kind, list]) => `${kind}: ${firstOf(list.map(quoted), MAX_NAMES)}`);
  return words.join('; ');
}
