// growth.ts: how the program grows: every line that a file has at any step, with the steps at which
// it is there. What is there at a step is what `cut` gives, to the letter.

import { linesOf } from '../files.ts';
import { nameOf, spineOf, type Book } from '../pages.ts';
import { cut } from '../program.ts';
import { highlight } from './highlight.ts';
import { escapeHtml } from './ink.ts';

/** From one step until before another, by their places in `book.steps`. */
export type GrowingLine = { text: string; since: number; until: number };

export function growthOf(book: Book, file: string): GrowingLine[] {
  let all: GrowingLine[] = [];
  for (const n of book.steps.keys()) {
    const now = cut(book, file, book.steps[n]!).trim();
    all = grown(all, now === '' ? [] : linesOf(now), n);
  }
  return all;
}

/** Those that were there and still are go on; the others end, or begin. */
function grown(all: GrowingLine[], now: string[], step: number): GrowingLine[] {
  const there = all.filter(({ until }) => until === Infinity);
  const kept = common(
    there.map(({ text }) => text),
    now,
  );
  const next: GrowingLine[] = [];
  let at = 0; // in `now`
  let n = 0; // of those that were there
  const addUpTo = (end: number) => {
    for (; at < end; at++) next.push({ text: now[at]!, since: step, until: Infinity });
  };
  for (const line of all) {
    if (line.until !== Infinity) next.push(line);
    else {
      const place = kept.get(n++);
      if (place === undefined) next.push({ ...line, until: step });
      else {
        addUpTo(place);
        next.push(line);
        at = place + 1;
      }
    }
  }
  addUpTo(now.length);
  return next;
}

/** The longest common part of two texts, as places in the one → places in the other. */
function common(a: string[], b: string[]): Map<number, number> {
  const found = new Map<number, number>();
  let first = 0;
  while (first < a.length && first < b.length && a[first] === b[first]) {
    found.set(first, first);
    first++;
  }
  let [endA, endB] = [a.length, b.length];
  while (endA > first && endB > first && a[endA - 1] === b[endB - 1]) found.set(--endA, --endB);
  const [wide, high] = [endB - first + 1, endA - first];
  const lengths = new Uint16Array((high + 1) * wide); // of the rest of both
  for (let i = high - 1; i >= 0; i--)
    for (let k = wide - 2; k >= 0; k--) {
      const isSame = a[first + i] === b[first + k];
      const below = lengths[(i + 1) * wide + k]!;
      const right = lengths[i * wide + k + 1]!;
      lengths[i * wide + k] = isSame
        ? lengths[(i + 1) * wide + k + 1]! + 1
        : Math.max(below, right);
    }
  for (let i = 0, k = 0; i < high && k < wide - 1; ) {
    if (a[first + i] === b[first + k]) found.set(first + i++, first + k++);
    else if (lengths[(i + 1) * wide + k]! >= lengths[i * wide + k + 1]!) i++;
    else k++;
  }
  return found;
}

/** The page with a slider: without a script it is the whole program. */
export function growthPage(book: Book): string {
  const sections = spineOf(book).map((file) => sectionOf(book, file));
  const last = book.steps.length - 1;
  const options = book.steps.map((step) => `<option>${nameOf(step)}</option>`);
  return `<h1>How the program grows</h1>
<div class="slider" hidden>
<label>Chapter <input id="step" type="range" min="0" max="${last}" value="0"></label>
<output id="step-name" for="step"></output>
<label><input id="only-new" type="checkbox" checked> only files that change</label>
</div>
<datalist id="steps">${options.join('')}</datalist>
${sections.join('\n')}
`;
}

function sectionOf(book: Book, file: string): string {
  const lines = growthOf(book, file);
  const colours = highlight(lines.map(({ text }) => text).join('\n'), 'ts').split('\n');
  const rows = lines.map(({ since, until }, n) => {
    const end = until === Infinity ? '' : ` data-until="${until}" hidden`;
    return `<code data-since="${since}"${end}>${colours[n]}\n</code>`;
  });
  const title = `<h2 id="${escapeHtml(file)}">${escapeHtml(file)}</h2>`;
  return `<section class="grows">${title}<pre tabindex="0">${rows.join('')}</pre></section>`;
}
