// fix.ts: puts the source's new words into quotations that no longer match.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { linesOf, read } from './files.ts';
import type { Book, Chapter, Run } from './pages.ts';

/** Puts the source's new words into quotations that no longer match. Returns what it could not find. */
export function fix(book: Book): string[] {
  const lost: string[] = [];
  for (const { page, quotations } of book.chapters.flatMap(byPage)) {
    const text = linesOf(read(book.root, page));
    const edits: (Run & { found: string[] })[] = [];
    for (const { file, source, runs, until } of quotations)
      for (const [k, run] of runs.entries()) {
        if (run.at !== -1) continue;
        if (until !== undefined) {
          lost.push(
            `${page}:${run.line}: this line must be in ${file} too, to say where the others go: ${run.lines[0]!.trim()}`,
          );
          continue;
        }
        const before = runs.slice(0, k).findLast(({ at }) => at !== -1);
        const after = runs.slice(k + 1).find(({ at }) => at !== -1);
        const found = mostAlike(
          run.lines,
          source.slice(before ? before.at + before.lines.length : 0, after?.at),
        );
        if (found) edits.push({ ...run, found });
        else
          lost.push(`${page}:${run.line}: could not be found in ${file}: ${run.lines[0]!.trim()}`);
      }
    for (const { line, lines, found } of edits.reverse())
      text.splice(line - 1, lines.length, ...found);
    if (edits.length > 0) writeFileSync(join(book.root, page), text.join('\n'));
  }
  return lost;
}

function byPage({ pages, quotations }: Chapter) {
  return pages.map((page) => ({
    page,
    quotations: quotations.filter((each) => each.page === page),
  }));
}

/** The stretch of the source that has the most lines of the quotation in their order, at least half of them. If the
 *  quotation's first or last lines are not among these, they have changed, and what stands in their place is taken. */
export function mostAlike(quoted: string[], source: string[]): string[] | undefined {
  let best = { start: 0, end: 0, hits: 0 };
  for (const [start, line] of source.entries()) {
    if (line === '' || !quoted.includes(line)) continue;
    const stretch = { start, end: start, hits: 0 };
    let from = 0;
    for (let n = start; n < Math.min(source.length, start + quoted.length * 2 + 5); n++) {
      const at = quoted.indexOf(source[n]!, from);
      if (at === -1 || source[n] === '') continue;
      from = at + 1;
      Object.assign(stretch, { end: n, hits: stretch.hits + 1 });
    }
    if (stretch.hits > best.hits) best = stretch;
  }
  if (best.hits * 2 < quoted.filter((line) => line !== '').length) return undefined;
  const head = quoted.indexOf(source[best.start]!);
  const tail = quoted.length - 1 - quoted.lastIndexOf(source[best.end]!);
  return source.slice(Math.max(0, best.start - head), best.end + 1 + tail);
}
