// find-lines.ts: the lines of many texts that match a pattern, as work for a thread. The texts are
// in memory that both threads see.

import { isAscii } from 'node:buffer';

export type SlabSearch = {
  shared: ArrayBufferLike[];
  places: Int32Array; // of each file: the slab, where in it, how many bytes
  source: string;
  flags: string;
  literals: string[]; // what every line that matches has in it
  isPlain: boolean; // it matches bytes as it matches text
  most: number;
};

/** Of each hit four numbers: the file, where its line begins, the column, the line. `text`, with
 *  "m", finds a line sooner than a look at each would: a match in a line is one in the text. Where
 *  the pattern looks around itself it need not be, and then each line is looked at. */
export function linesInSlabs(search: SlabSearch): Int32Array {
  const { shared, places, source, flags, literals, isPlain, most } = search;
  const slabs = shared.map((one) => Buffer.from(one));
  const wanted = literals.map((one) => Buffer.from(one));
  const line = new RegExp(source, flags);
  const text = /\(\?[=!<]/.test(source) ? /^/gm : new RegExp(source, `${flags}gm`);
  const hits: number[] = [];
  for (let n = 0; n < places.length && hits.length < 4 * most; n += 3) {
    const offset = places[n + 1]!;
    const bytes = slabs[places[n]!]!.subarray(offset, offset + places[n + 2]!);
    if (!wanted.every((one) => bytes.includes(one))) continue;
    findInFile(bytes, isPlain || isAscii(bytes), n / 3, text, line, hits, 4 * most);
  }
  return Int32Array.from(hits);
}

function findInFile(
  bytes: Buffer,
  isPlain: boolean,
  file: number,
  text: RegExp,
  line: RegExp,
  hits: number[],
  full: number,
): void {
  const all = isPlain ? bytes.toString('latin1') : bytes.toString();
  let number = 1;
  let counted = 0;
  text.lastIndex = 0;
  for (let hit = text.exec(all); hit && hits.length < full; hit = text.exec(all)) {
    const start = hit.index === 0 ? 0 : all.lastIndexOf('\n', hit.index - 1) + 1;
    if (start === all.length && start > 0) return; // behind the last line
    const next = all.indexOf('\n', hit.index);
    const end = next === -1 ? all.length : next;
    const last = all[end - 1] === '\r' ? end - 1 : end;
    const within = line.exec(
      isPlain ? bytes.toString('utf8', start, last) : all.slice(start, last),
    );
    for (;;) {
      const at = all.indexOf('\n', counted);
      if (at === -1 || at >= start) break;
      counted = at + 1;
      number++;
    }
    const offset = isPlain ? start : Buffer.byteLength(all.slice(0, start));
    if (within) hits.push(file, offset, within.index + 1, number);
    if (next === -1) return;
    text.lastIndex = end + 1;
  }
}
