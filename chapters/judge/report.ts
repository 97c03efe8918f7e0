// report.ts: verdicts in words: one line per chapter, one per broken promise, and a last one.

import type { Verdict } from './child.ts';
import { isBroken, isFault, type Judged } from './run.ts';

const WIDTH = 80;
const INDENT = 20; // behind the mark, the number and the title

const isColoured = () => Boolean(process.stdout.isTTY) && !process.env.NO_COLOR;
const paint = (code: number, text: string) => (isColoured() ? `\x1b[${code}m${text}\x1b[0m` : text);
const GREEN = 32;
const RED = 31;

/** The lines of one chapter. With `isLong` each promise has one, kept or not. */
export function linesOf(judged: Judged, isLong = false): string[] {
  const { n, title, state, verdicts } = judged;
  const number = n > 0 ? `${n}`.padStart(2) : '  ';
  const head = `${number} ${title}`.padEnd(INDENT - 2);
  const isWhole = state === 'holds';
  const mark = isWhole ? paint(GREEN, '✓') : paint(RED, '✗');
  const kept = verdicts.filter((verdict) => verdict.state === 'kept');
  const faults = verdicts.filter((verdict) => verdict.state === 'broken').map(faultOf);
  const texts = [`${kept.length} of ${verdicts.length}`, ...faults, ...notTried(verdicts)];
  if (judged.absent > 0) texts.push(`${judged.absent} not there yet: ${needsOf(judged)}`);
  if (isLong) texts.push(...kept.map(({ promise }) => `kept: ${promise}`));
  const lines = texts.flatMap((text) => wrapped(text, WIDTH - INDENT));
  return lines.map((line, at) => (at === 0 ? `${mark} ${head}` : ' '.repeat(INDENT)) + line);
}

/** Chapters that are not there yet are no faults: one line for all of them. */
export function absentLines(judged: Judged[]): string[] {
  const absent = judged.filter(({ state }) => state === 'absent');
  const [first] = absent;
  if (!first) return [];
  const head = `· ${ranges(absent.map(({ n }) => n))}`.padEnd(INDENT);
  return [`${head}not there yet: ${first.n} ${needsOf(first)}`];
}

/** "✗ a ping is not answered (expected an answer {}, came nothing)" */
function faultOf({ kind, fault, expected, came, exhibits }: Verdict): string {
  const both = expected === undefined ? `came: ${came}` : `expected ${expected}, came ${came}`;
  const mark = kind === 'courtesy' ? '· courtesy:' : paint(RED, '✗');
  const where = exhibits.length > 0 ? `; museum: ${exhibits.join(', ')}` : '';
  return `${mark} ${fault} (${both})${where}`;
}

function notTried(verdicts: Verdict[]): string[] {
  const reasons = verdicts.flatMap(({ state, why }) => (state === 'not tried' ? [why!] : []));
  return [...new Set(reasons)].map((why) => {
    const count = reasons.filter((each) => each === why).length;
    return `${count} not tried: ${why}`;
  });
}

const needsOf = ({ missing: [first = ''] }: Judged) =>
  `needs ${first.replace(/\w+\.\w+|^\w+$/g, '$&()')}`;

function wrapped(text: string, width = WIDTH): string[] {
  const lines = [''];
  const pieces = new RegExp(`.{1,${width - 2}}`, 'gu'); // of a word that is longer than a line
  for (const word of text.split(' ').flatMap((long) => long.match(pieces) ?? [])) {
    const last = lines.at(-1)!;
    const isLong = last !== '' && last.length + 1 + word.length > width;
    if (isLong) lines.push(`  ${word}`);
    else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`;
  }
  return lines;
}

/** "51 of 73 kept; next: 10, a ping is not answered." */
export function summaryOf(judged: Judged[]): string {
  const verdicts = judged.flatMap((chapter) => chapter.verdicts);
  const kept = verdicts.filter(({ state }) => state === 'kept').length;
  const next = nextOf(judged);
  return `${kept} of ${verdicts.length} kept${next ? `; next: ${next}` : ''}.`;
}

/** What to do next: the first fault, then what would only be courteous, then what is missing. */
function nextOf(judged: Judged[]): string | undefined {
  const numbered = (n: number, what: string) => (n > 0 ? `${n}, ${what}` : what);
  for (const isMeant of [isFault, isBroken]) {
    const chapter = judged.find(({ verdicts }) => verdicts.some(isMeant));
    if (chapter) return numbered(chapter.n, faultIn(chapter.verdicts.find(isMeant)!));
  }
  const lacking = judged.find(({ absent }) => absent > 0);
  return lacking && `${lacking.n} ${needsOf(lacking)}`;
}

const faultIn = ({ fault, promise, why }: Verdict) => fault ?? `${promise}: not tried, ${why}`;

/** [1, 2, 3, 5] is "1 to 3 and 5". */
function ranges(numbers: number[]): string {
  const runs: number[][] = [];
  for (const n of numbers) {
    const last = runs.at(-1);
    if (last && last.at(-1) === n - 1) last.push(n);
    else runs.push([n]);
  }
  const texts = runs.flatMap((run) => {
    return run.length > 2 ? [`${run[0]} to ${run.at(-1)}`] : run.map(String);
  });
  if (texts.length < 2) return texts.join();
  return `${texts.slice(0, -1).join(', ')} and ${texts.at(-1)}`;
}
