// A command line taken apart: by hand, and against the shells that run it. What our reader is sure of must be what bash
// and dash do. FUZZ=20000 npx vitest run test/17-command-line.test.ts tries more lines.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { takeApart, unwrapped, type SimpleCommand } from '../chapters/17-the-gate/shell-syntax.ts';
import { cleanUp, folder } from './help/basics.ts';

afterEach(cleanUp);

const shown = ({ words, assigns, redirections }: SimpleCommand) =>
  (assigns ? 'X= ' : '') +
  words.map(({ text, isPlain }) => (isPlain ? text : `<${text}>`)).join('|') +
  redirections.map(({ kind, file }) => ` ${kind}:${file.text}`).join('');
const read = (line: string) => takeApart(line)?.map(shown);

test('what is certain is taken apart, wherever a command is', () => {
  const cases: [string, string[]][] = [
    ['npm test', ['npm|test']],
    ['  npm\ttest  ', ['npm|test']],
    ['a; b && c || d | e & f\ng', ['a', 'b', 'c', 'd', 'e', 'f', 'g']],
    ['a |& b', ['a', 'b']],
    ['a \\\n  b', ['a|b']],
    ['a && \\\n\\\n b', ['a', 'b']],
    ['a # b; c\nd', ['a', 'd']],
    ['a#b', ['a#b']],
    [`'a b' "c'd" e\\ f "g\\"h\\x"`, ['a b|c\'d|e f|g"h\\x']],
    ['""', ['']],
    ['(a; b) >/dev/null; { c; }', ['a', 'b', '', 'c', '']],
    ['! a', ['a']],
    ['a $(b "$(c)") `d`', ['c', 'b|<>', 'd', 'a|<>|<>']],
    ['a "x $(b) `c`"', ['b', 'c', 'a|<x  >']],
    ['a <(b) >(c)', ['b', 'c', 'a|<>|<>']],
    ['a 2>&1 >/dev/null 2>&- </dev/null', ['a']],
    ['a > f >>g >|h <i <>j &>l', ['a write:f write:g write:h read:i write:j write:l']],
    ['>f', [' write:f']],
    ['A=1 B=2 a', ['X= a']],
    ['A=1', ['X= ']],
    ['a A=1', ['a|A=1']],
    ['a $b ${c} * ? [x] {d,e} ~ x=~ $1 "$@"', ['a|<>|<>|<*>|<?>|<[x]>|<{d,e}>|<~>|<x=~>|<>|<>']],
    ['a $ "b$"', ['a|$|b$']],
    ['a \'*\' \\* "~"', ['a|*|*|~']],
    ['"a\\\nb"', ['ab']],
    ['a $', ['a|$']],
    ['a HEAD~1 b:~ c~', ['a|HEAD~1|<b:~>|c~']],
    ['cat <<E; a\nrm x\nE\nb', ['cat', 'a', 'b']],
    ['cat <<\'E\' <<-"F"\n$(rm x)\nE\n\t`rm`\n\tF\nb', ['cat', 'b']],
    ['a <<< "b $(c)"', ['c', 'a']],
    ['time a b', ['time|a|b']],
    ['a }; b ]', ['a|}', 'b|]']],
    ['a !b', ['a|!b']],
    ['', []],
    ['# only words', []],
    ['cat größe.txt', ['cat|größe.txt']],
  ];
  for (const [line, expected] of cases) assert.deepEqual(read(line), expected, line);
});

test('what is not certain is not taken apart at all', () => {
  const lines = [
    "a '",
    'a "',
    'a `b',
    'a $(b',
    'a \\',
    '(a',
    '{ a;',
    'a)',
    '}',
    'a;;b',
    ';a',
    'a && ',
    '| a',
    'a | ! b',
    '&& a',
    'a & & b',
    'if a; then b; fi',
    'for x in a; do b; done',
    'while a; do b; done',
    'case x in a) b;; esac',
    'select x in a; do b; done',
    'f() { a; }',
    'f () ( a )',
    'function f { a; }',
    'coproc a',
    '[[ a ]]',
    '((a))',
    '$((1))',
    'a $((1))',
    'a $[1]',
    'a ${b:-$(c)}',
    'a ${!b}',
    "a $'b'",
    'a $"b"',
    'a@(b)',
    'a=(b)',
    'a[0]=b',
    'a[$(b)]=c',
    'time A=1 b',
    'time { a; }',
    'time ! a',
    'a 12>b',
    'a {b}>c',
    'a &>b c',
    'a <&b',
    'a >&b',
    'a x<(b)',
    'a\rb',
    'a\0b',
    'a\u00a0b',
    'a\u2028b',
    'a\u2003b',
    'a\u3000b',
    '(a) b',
    '{ a; } b',
    'a\vb',
    'a\fb',
    'a\u200bb',
    'a\u001bb',
    'a à',
    'a é\\;',
    'a é`b`',
    'a é|b',
    'l\\\ns',
    'A\\\nB=1 c',
    "(\\\n(a 'b[$(c)]'))",
    "a $(\\\n(b 'c'))",
    '"$(\\\n(a))"',
    'a;\\\nb',
    'a <\\\n(b)',
    'cat <<E',
    'cat <<E\nx',
    'cat <<E\n$(a)\nE',
    'cat <<E\n`a`\nE',
    'cat <<\\E\nE',
    'a $(cat <<E\nE\n)',
    'a <<E $(\nb)\nE',
    'a $(cat <<E)\nb\nE',
    'a <<E $(\nE\nb\n)\nE',
    '()',
    'a $()',
    'a $(b # )\n)',
    'a # \\\nb',
    'a `b \\`c\\``',
    'a `b \\$c`',
    'a "`b "c"`"',
    '('.repeat(100) + 'a' + ')'.repeat(100),
    `a ${'$('.repeat(30)}b${')'.repeat(30)}`,
    'a'.repeat(40_000),
  ];
  for (const line of lines) assert.equal(read(line), undefined, JSON.stringify(line));
});

test('what starts another command and changes nothing about it is looked through', () => {
  const inner = (line: string) =>
    unwrapped(takeApart(line)![0]!.words)
      .map(({ text }) => text)
      .join(' ');
  for (const line of ['timeout 30 a b', 'timeout 1.5m nice -n 5 a b', 'nice a b', 'nohup time a b'])
    assert.equal(inner(line), 'a b', line);
  for (const line of [
    'timeout -s KILL 3 a',
    'timeout $x a',
    'nice -20 a',
    'nohup -x a',
    'timeout 3',
    'env a',
    'xargs a',
    'sudo a',
    'timeout 3 $x',
    '$x a',
  ])
    assert.equal(
      inner(line),
      takeApart(line)![0]!
        .words.map(({ text }) => text)
        .join(' '),
      line,
    );
});

// ─── Against real shells ───

/** Always the same numbers for the same seed. */
function dice(seed: number) {
  return (below: number) => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

const PIECES = [
  'a',
  'b',
  'c',
  'd',
  'a',
  'b',
  'a b',
  'x',
  '-n',
  '1',
  '2',
  '=',
  'A=1',
  'A=1 ',
  '\\',
  '\\\n',
  "'",
  "'",
  '"',
  '"',
  "'x y'",
  '"x y"',
  '$',
  '$x',
  '${x}',
  '$(',
  ')',
  '(',
  '`',
  '`',
  ' ',
  ' ',
  ' ',
  ' ',
  '\t',
  '\n',
  '\n',
  ';',
  '; ',
  ' && ',
  ' || ',
  ' | ',
  ' & ',
  '|&',
  '&',
  '#',
  ' # ',
  '!',
  '! ',
  '{ ',
  '; }',
  '}',
  '{x,y}',
  '*',
  '~',
  '[',
  ']',
  '%',
  '>',
  '>>',
  ' > f',
  ' >f ',
  '2>&1',
  '>&',
  '&>',
  ' &>f',
  '<',
  '< ',
  '<(',
  '>(',
  '<<E\n',
  "<<'E'\n",
  '<<-E\n',
  '\nE\n',
  '\n\tE\n',
  'E',
  '<<<',
  '1>',
  '12>',
  '/dev/null',
  ' >/dev/null ',
  'time ',
  'if ',
  'then ',
  'fi',
  'for ',
  'do ',
  'done',
  'case ',
  'esac',
  'function ',
  'a()',
  '[[ ',
  ' ]]',
  '((',
  '))',
  "$'x'",
  '$"x"',
  '$((',
  '\\n',
  '\\"',
  "\\'",
  '\\$',
  '\\`',
  'é',
  '\r',
  'a $(b)',
  'a `b`',
  'a "$(b c)"',
  '(a; b)',
  '{ a; b; }',
  '"a"',
  "'a'",
  'a\\ b',
];

/** Each line is run by the shell in a process of its own; what was called, and which files were made. */
function runAll(shell: string, lines: string[]): { log: string; made: string[] }[] {
  const place = folder();
  mkdirSync(join(place, 'in'));
  lines.forEach((line, n) => writeFileSync(join(place, `${n}.line`), `${line}.`));
  const names = ['a', 'b', 'c', 'd', 'x', 'f', 'E', 'time'].filter(
    (name) => name !== 'time' || shell.endsWith('dash'),
  );
  const note = (name: string) => `${name}() { printf '%s\\0' ${name} "$@" "$END" >> "$LOG"; }`;
  const timed = `time() { [ "$1" = -p ] && shift; [ $# -gt 0 ] && "$@"; }`;
  const script = `
    ${names
      .filter((name) => name !== 'time')
      .map(note)
      .join('\n')}
    ${shell.endsWith('dash') ? timed : `command_not_found_handle() { printf '%s\\0' "$@" "$END" >> "$LOG"; }`}
    PATH=/nonexistent; HOME=/nonexistent; n=0; cd in
    while [ $n -lt ${lines.length} ]; do
      LOG=../$n.log; : > $LOG
      line=; while IFS= read -r l || [ -n "$l" ]; do line="$line$l
"; done < ../$n.line
      line=\${line%?}; line=\${line%.}
      ( eval "$line"
wait ) </dev/null >/dev/null 2>&1
      wait
      for made in * .[!.]*; do if [ -e "$made" ]; then printf '%s\\0' "$made" >> ../$n.made; fi; done
      if [ -e ../$n.made ]; then cd ..; /bin/rm -rf in; /bin/mkdir in; cd in; fi
      n=$((n+1))
    done`;
  spawnSync(shell, ['-c', script], {
    cwd: place,
    timeout: 300_000,
    env: { PATH: '/usr/bin:/bin', LC_ALL: 'C.UTF-8', END: '\u0001' },
  });
  const textOf = (name: string) =>
    existsSync(join(place, name)) ? readFileSync(join(place, name), 'utf8') : '';
  return lines.map((_, n) => ({
    log: textOf(`${n}.log`),
    made: textOf(`${n}.made`).split('\0').slice(0, -1),
  }));
}

/** Could this part have been called with these words? */
function isCall({ words }: SimpleCommand, argv: string[]): boolean {
  if (words[0]?.text === 'time' && isCall({ words: words.slice(1) } as SimpleCommand, argv))
    return true; // a keyword
  const unsure = words.findIndex(({ isPlain }) => !isPlain);
  const sure = unsure === -1 ? words : words.slice(0, unsure);
  const fits = sure.every(({ text }, n) => text === argv[n]);
  return words.length > 0 && fits && (unsure !== -1 || argv.length === words.length);
}

test('bash and dash run no command but those that were found, with those words', () => {
  const count = Number(process.env.FUZZ ?? 250);
  const roll = dice(Number(process.env.SEED ?? 17));
  const lines = [
    'a (b)',
    'a "b c" $(d)',
    'a &>/dev/null',
    'a >f; b <f',
    'a <<E; b\nc\nE\nd',
  ].filter((line) => takeApart(line));
  while (lines.length < count) {
    const length = 1 + roll(9);
    const line = Array.from({ length }, () => PIECES[roll(PIECES.length)]).join('');
    const parts = takeApart(line);
    if (parts && parts.length > 0 && !lines.includes(line)) lines.push(line);
  }
  const shells = ['/bin/bash', '/bin/dash', '/usr/bin/dash'].filter((shell) => existsSync(shell));
  for (const shell of shells.slice(0, 2)) {
    const runs = runAll(shell, lines);
    let calls = 0;
    for (const [n, line] of lines.entries()) {
      const parts = takeApart(line)!;
      const { log, made } = runs[n]!;
      const written = parts.flatMap(({ redirections }) =>
        redirections.filter(({ kind }) => kind === 'write').map(({ file }) => file),
      );
      for (const name of made)
        assert.ok(
          written.some(({ text, isPlain }) => !isPlain || text === name),
          `${shell} ${JSON.stringify(line)} made ${JSON.stringify(name)}`,
        );
      for (const call of log.split('\u0001\0').filter(Boolean)) {
        const argv = call.split('\0').slice(0, -1);
        calls++;
        assert.ok(
          parts.some((part) => isCall(part, argv)),
          `${shell} ${JSON.stringify(line)} called ${JSON.stringify(argv)}, and we saw ${parts.map(shown)}`,
        );
      }
    }
    assert.ok(calls > count / 4, `${calls} calls of ${count} lines`);
  }
});
