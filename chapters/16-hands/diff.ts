// diff.ts: what turns one text into another, line by line, as `diff -u` writes it.
//
// A person judges it before a file is written, so it must be true to the byte: a line end that
// changes is a change, and so is a blank. And a model chooses both texts, so the work is bounded.

import type { Change } from '../../agent.ts';

const CONTEXT = 3; // lines around a change
const MAX_EDITS = 2000; // beyond so many lines that differ, nobody compares them one by one
const MAX_STEPS = 20_000_000; // comparisons, well under a second
const TOO_DIFFERENT = 'the two differ too much to be compared line by line';
const NO_NEWLINE = '\\ No newline at end of file';

/** Lines `from` to `to` (not included) of the old text become those of the new one. */
type Edit = { from: number; to: number; newFrom: number; newTo: number };

/** `before` is undefined if there is no file yet. The diff of two equal texts is empty. */
export function changeOf(before: string | undefined, after: string): Change {
  const old = linesOf(before ?? '');
  const fresh = linesOf(after);
  const edits = editsBetween(old, fresh);
  const notes = edits ? [] : [TOO_DIFFERENT];
  const hunks = grouped(edits ?? [middleOf(old, fresh)]);
  return { diff: hunks.map((hunk) => write(hunk, old, fresh)).join('\n'), notes };
}

/** Each with its line end, because that belongs to it. The last may have none. */
function linesOf(text: string) {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

/** What is between the beginning and the end that both have in common. */
export function middleOf(old: string[], fresh: string[]): Edit {
  const most = Math.min(old.length, fresh.length);
  let start = 0;
  while (start < most && old[start] === fresh[start]) start++;
  let end = 0;
  while (end < most - start && old.at(-1 - end) === fresh.at(-1 - end)) end++;
  return { from: start, to: old.length - end, newFrom: start, newTo: fresh.length - end };
}

// ─── The shortest way from one text to the other (Myers, 1986) ───────────────────────────────────

/** Undefined if it is too long a way. */
function editsBetween(old: string[], fresh: string[]) {
  const middle = middleOf(old, fresh);
  const { from, to, newFrom, newTo } = middle;
  if (from === to && newFrom === newTo) return [];
  if (from === to || newFrom === newTo) return [middle]; // only added, or only removed
  const numbers = new Map<string, number>(); // two lines are the same if their numbers are
  const a = numbered(old.slice(from, to), numbers);
  const b = numbered(fresh.slice(newFrom, newTo), numbers);
  const steps = walk(a, b);
  return steps && joined(steps, from);
}

function numbered(lines: string[], numbers: Map<string, number>) {
  return Int32Array.from(lines, (line) => {
    const number = numbers.get(line) ?? numbers.size;
    numbers.set(line, number);
    return number;
  });
}

/** A line of the old text to remove, or one of the new to add: where, in each of the two. */
type Step = { x: number; y: number; isAdded: boolean };

/** With every round, one more line may differ. Of each diagonal (x - y) we know how far it got. */
function walk(a: Int32Array, b: Int32Array) {
  const most = Math.min(a.length + b.length, MAX_EDITS);
  const furthest = new Int32Array(2 * most + 3); // x, by diagonal
  const middle = most + 1;
  const history: Int32Array[] = []; // what was known before each round, to find the way back
  let steps = 0;
  for (let round = 0; round <= most; round++) {
    history.push(furthest.slice(middle - round - 1, middle + round + 2));
    for (let diagonal = -round; diagonal <= round; diagonal += 2) {
      const at = middle + diagonal;
      const isAdded = comesFromAbove(furthest, at, diagonal, round);
      let x = isAdded ? furthest[at + 1]! : furthest[at - 1]! + 1;
      let y = x - diagonal;
      while (x < a.length && y < b.length && a[x] === b[y]) {
        x++;
        y++;
        steps++;
      }
      furthest[at] = x;
      if (x >= a.length && y >= b.length) return wayBack(history, a.length, b.length);
    }
    steps += round;
    if (steps > MAX_STEPS) return undefined;
  }
  return undefined;
}

/** Is the further way to this diagonal the one by a line of the new text? */
function comesFromAbove(known: Int32Array, at: number, diagonal: number, round: number) {
  if (diagonal === -round) return true;
  if (diagonal === round) return false;
  return known[at - 1]! < known[at + 1]!;
}

function wayBack(history: Int32Array[], toX: number, toY: number) {
  const steps: Step[] = [];
  let x = toX;
  let y = toY;
  for (let round = history.length - 1; round > 0; round--) {
    const known = history[round]!;
    const diagonal = x - y;
    const at = diagonal + round + 1;
    const isAdded = comesFromAbove(known, at, diagonal, round);
    x = isAdded ? known[at + 1]! : known[at - 1]!;
    y = x - (isAdded ? diagonal + 1 : diagonal - 1);
    steps.push({ x, y, isAdded });
  }
  return steps.reverse();
}

/** Steps that follow each other are one edit. */
function joined(steps: Step[], offset: number) {
  const edits: Edit[] = [];
  for (const { x, y, isAdded } of steps) {
    const at = x + offset;
    const newAt = y + offset; // the beginning in common is as long in both
    let last = edits.at(-1);
    if (!last || last.to !== at || last.newTo !== newAt) {
      last = { from: at, to: at, newFrom: newAt, newTo: newAt };
      edits.push(last);
    }
    if (isAdded) last.newTo++;
    else last.to++;
  }
  return edits;
}

// ─── Hunks ───────────────────────────────────────────────────────────────────────────────────────

/** Edits whose surroundings touch are one hunk. */
function grouped(edits: Edit[]) {
  const hunks: Edit[][] = [];
  for (const edit of edits) {
    const last = hunks.at(-1);
    if (last && edit.from - last.at(-1)!.to <= 2 * CONTEXT) last.push(edit);
    else hunks.push([edit]);
  }
  return hunks;
}

function write(edits: Edit[], old: string[], fresh: string[]) {
  const first = edits[0]!;
  const last = edits.at(-1)!;
  const start = Math.max(0, first.from - CONTEXT);
  const end = Math.min(old.length, last.to + CONTEXT);
  const newStart = first.newFrom - (first.from - start);
  const newEnd = last.newTo + (end - last.to);
  const rows = [[`@@ -${range(start, end)} +${range(newStart, newEnd)} @@`]];
  let at = start;
  for (const { from, to, newFrom, newTo } of edits) {
    rows.push(signed(' ', old.slice(at, from)));
    rows.push(signed('-', old.slice(from, to)));
    rows.push(signed('+', fresh.slice(newFrom, newTo)));
    at = to;
  }
  rows.push(signed(' ', old.slice(at, end)));
  return rows.flat().join('\n');
}

/** "12,3": three lines from the twelfth on. Of no lines it is the one before them. */
function range(from: number, to: number) {
  const count = to - from;
  if (count === 1) return `${from + 1}`;
  return count === 0 ? `${from},0` : `${from + 1},${count}`;
}

function signed(sign: string, lines: string[]) {
  return lines.flatMap((line) => {
    const row = sign + line.replace(/\n$/, '');
    return line.endsWith('\n') ? [row] : [row, NO_NEWLINE];
  });
}

// ─── For those who did not ask for all of it ─────────────────────────────────────────────────────

/** The first lines, and how many more there are. */
export function firstLines(diff: string, most: number, maxLength: number): string {
  const lines = diff.split('\n');
  let length = 0;
  const fitting = lines.findIndex((line) => (length += line.length + 1) > maxLength);
  const count = Math.min(most, fitting === -1 ? lines.length : fitting);
  if (count === lines.length) return diff;
  return [...lines.slice(0, count), `… and ${lines.length - count} more`].join('\n');
}
