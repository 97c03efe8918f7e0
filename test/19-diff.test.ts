// diff.ts, and how a change is spelled for a person.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changeOf, firstLines } from '../chapters/16-hands/diff.ts';
import { changeLines, rowKind } from '../chapters/17-the-gate/change.ts';
import { fold } from '../chapters/19-the-terminal/fold.ts';
import { assertClean } from './help/agent-with-gate.ts';

/** What `patch` does with a diff, without its guesses: every line must be where the hunk says. */
function applied(before: string, diff: string): string {
  const old = before.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  const fresh: string[] = [];
  const rows = diff === '' ? [] : diff.split('\n');
  let at = 0;
  for (const [n, row] of rows.entries()) {
    if (row.startsWith('\\')) continue;
    const hunk = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@$/.exec(row);
    if (hunk) {
      const start = hunk[2] === '0' ? Number(hunk[1]) : Number(hunk[1]) - 1;
      while (at < start) fresh.push(old[at++]!);
      const next = rows.findIndex((each, m) => m > n && each.startsWith('@@'));
      const body = rows.slice(n + 1, next === -1 ? rows.length : next);
      const count = (signs: string) => body.filter((each) => signs.includes(each[0]!)).length;
      assert.deepEqual(
        [count(' -'), count(' +')],
        [Number(hunk[2] ?? 1), Number(hunk[4] ?? 1)],
        row,
      );
      continue;
    }
    const line = row.slice(1) + (rows[n + 1]?.startsWith('\\') ? '' : '\n');
    if (row[0] !== '+') assert.equal(old[at++], line);
    if (row[0] !== '-') fresh.push(line);
  }
  return [...fresh, ...old.slice(at)].join('');
}

test('a diff of one change has three lines around it, as diff -u writes it', () => {
  const before = 'a\nb\nc\nd\ne\nf\ng\nh\n';
  const { diff, notes } = changeOf(before, before.replace('e', 'E\nE2'));
  assert.equal(diff, '@@ -2,7 +2,8 @@\n b\n c\n d\n-e\n+E\n+E2\n f\n g\n h');
  assert.deepEqual(notes, []);
  const far = Array.from({ length: 30 }, (_, n) => `${n}\n`).join('');
  const two = changeOf(far, far.replace('\n5\n', '\nfive\n').replace('\n25\n', '\n')).diff;
  assert.deepEqual(two.match(/^@@.*/gm), ['@@ -3,7 +3,7 @@', '@@ -23,7 +23,6 @@']);
});

test('a new file is all added, an empty one all removed; equal texts have no diff; a last line may lack its end', () => {
  assert.equal(changeOf(undefined, 'a\nb\n').diff, '@@ -0,0 +1,2 @@\n+a\n+b');
  assert.equal(changeOf('a\n', '').diff, '@@ -1 +0,0 @@\n-a');
  assert.deepEqual([changeOf('', '').diff, changeOf('a\r\nb', 'a\r\nb').diff], ['', '']);
  const end = '\\ No newline at end of file';
  assert.equal(changeOf('a\nb', 'a\nb\n').diff, `@@ -1,2 +1,2 @@\n a\n-b\n${end}\n+b`);
  assert.equal(changeOf('x\na', 'y\na').diff, `@@ -1,2 +1,2 @@\n-x\n+y\n a\n${end}`);
});

test('to apply a diff gives the new text, whatever the two are', () => {
  let seed = 7;
  const random = (below: number) => (seed = (seed * 48271) % 2147483647) % below;
  const pieces = [
    'a\n',
    'b\n',
    'c\n',
    '\n',
    'd',
    ' x\n',
    'e\r\n',
    '+\n',
    '-\n',
    '@@ -1 +1 @@\n',
    '\\ no\n',
    '\ufeff',
  ];
  const text = (length: number) =>
    Array.from({ length }, () => pieces[random(pieces.length)]).join('');
  for (let n = 0; n < 3000; n++) {
    const before = text(random(25));
    const changed = before
      .split('\n')
      .map((line) => (random(5) === 0 ? text(2) : line))
      .join('\n');
    const after = random(3) === 0 ? text(random(25)) : changed;
    const { diff } = changeOf(before, after);
    assert.equal(applied(before, diff), after, JSON.stringify([before, after, diff]));
    assert.equal(diff === '', before === after);
  }
});

test('it is the shortest one: a line that moves down is one added and one removed', () => {
  const lines = Array.from({ length: 200 }, (_, n) => `line ${n}\n`);
  const moved = [...lines.slice(1), lines[0]!].join('');
  assert.equal(changeOf(lines.join(''), moved).diff.match(/^[+-]/gm)!.length, 2);
});

test('J20: texts that a model made to keep us busy: a plain answer that says so, and still a true one', () => {
  const many = (count: number, line: (n: number) => string) =>
    Array.from({ length: count }, (_, n) => line(n)).join('\n');
  const hostile: [string, string][] = [
    [many(200_000, (n) => `a${n}`), many(200_000, (n) => `b${n}`)], // nothing in common
    [many(300_000, (n) => `${n % 2}`), many(300_000, (n) => `${n % 3}`)], // nearly everything
    ['x'.repeat(5_000_000), 'y'.repeat(5_000_000)],
    ['\n'.repeat(1_000_000), `${'\n'.repeat(500_000)}x${'\n'.repeat(500_000)}`],
  ];
  const notes = hostile.map(([before, after]) => {
    const change = changeOf(before, after);
    const rows = change.diff.split('\n');
    const side = (sign: string) => rows.filter((row) => row[0] === sign).length;
    assert.ok(side('+') > 0 && side('-') >= 0);
    return change.notes;
  });
  const said = ['the two differ too much to be compared line by line'];
  assert.deepEqual(notes, [said, said, [], []]);
});

// ─── For a person ───

test('F20: every line of a file is behind our gutter: none of it can pass for a word of ours', () => {
  const after =
    'Allow it? yes\n  "x": 1 line added\n  @@ -1 +1 @@\n\x1b[2Kgone\n\u202eabc\n  ! that is really\nfoo\rbar\n';
  const lines = changeLines(changeOf('Please answer y\n', after), 'a\nb');
  assertClean(lines);
  const inside = lines.slice(1, -1);
  assert.ok(
    inside.every((line) => /^  [-+]│ /.test(line)),
    lines.join('\n'),
  );
  assert.deepEqual(lines.at(-1), '  "a\\nb": 7 lines added, 1 line removed');
  assert.deepEqual(lines.map(rowKind), ['place', 'removed', ...Array(7).fill('added'), undefined]);
});

test('what changes is seen: blanks at an end, tabs for blanks, line ends, a byte order mark; what stays is not', () => {
  const shown = (before: string | undefined, after: string) =>
    changeLines(changeOf(before, after), 'f').slice(1, -1);
  assert.deepEqual(shown('a\n', 'a  \t\n'), ['  -│ a', '  +│ a\\x20\\x20\\t']);
  assert.deepEqual(shown('\ta\n', '        a\n'), ['  -│ \\ta', '  +│         a']);
  assert.deepEqual(shown('\ta\n', '\tb\n'), ['  -│ \ta', '  +│ \tb']);
  assert.deepEqual(shown('a\nb\n', 'a\r\nb\n'), ['  -│ a', '  +│ a\\x0d', '   │ b']);
  assert.deepEqual(shown('a\r\nb\r\n', 'x\r\nb\r\n'), ['  -│ a', '  +│ x', '   │ b']);
  assert.match(changeLines(changeOf('a\r\n', 'x\r\n'), 'f').at(-1)!, /line ends CRLF$/);
  assert.deepEqual(shown('\ufeffa\n', '\ufeffb\n'), ['  -│ a', '  +│ b']);
  assert.deepEqual(shown('a\n', '\ufeffa\n'), ['  -│ a', '  +│ \\u{feff}a']);
  assert.deepEqual(changeLines(changeOf('a\n', 'a\n'), 'f'), ['  "f": nothing changes']);
  assert.deepEqual(changeLines({ diff: '', notes: ['a new file'] }, 'f'), [
    '  "f": a new file, nothing in it',
  ]);
});

test('a long diff in a small window: what is around the changes goes first, the path stays', () => {
  const before = Array.from({ length: 60 }, (_, n) => `line ${n}\n`).join('');
  const after = before
    .replace('line 10', 'ten')
    .replace('line 30', 'thirty')
    .replace('line 50', 'fifty');
  const lines = [
    'The model wants to call edit:',
    '  path: "f"',
    ...changeLines(changeOf(before, after), 'f'),
  ];
  const folded = fold(lines, { columns: 60, rows: 14 });
  assert.deepEqual(folded.slice(2), [
    '  @@ -8,7 +8,7 @@',
    '  -│ line 10',
    '  +│ ten',
    '  @@ -28,7 +28,7 @@',
    '  -│ line 30',
    '  +│ thirty',
    '  @@ -48,7 +48,7 @@',
    '  -│ line 50',
    '  +│ fifty',
    '⋮ 18 lines around the changes',
    '  "f": 3 lines added, 3 lines removed',
  ]);
  const tiny = fold(lines, { columns: 60, rows: 7 });
  assert.deepEqual([tiny.length, tiny[0], tiny.at(-1)], [7, lines[0], lines.at(-1)]);
  assert.ok(tiny.some((row) => /^⋮ \d+ rows$/.test(row)));
  const narrow = fold(changeLines(changeOf('', `${'x'.repeat(50)}\n`), 'f'), {
    columns: 30,
    rows: 9,
  });
  assert.deepEqual(
    narrow.slice(1, 3).map(rowKind),
    ['added', 'added'],
    'a line that goes on keeps its gutter',
  );
});

test('for a model a long diff ends early, and says so', () => {
  assert.equal(firstLines('a\nb\nc', 2, 100), 'a\nb\n… and 1 more');
  assert.equal(firstLines('a\nb\nc', 9, 4), 'a\nb\n… and 1 more');
  assert.equal(firstLines('a\nb', 2, 100), 'a\nb');
});
