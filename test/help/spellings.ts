// Command lines made of what real programs say of their options, for the reader of rules: whatever it
// lets through is really run, in a folder full of traps.

import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { folder } from './basics.ts';
import { judges } from './gate.ts';

type Dice = { below: (n: number) => number; pick: <T>(list: readonly T[]) => T };

export const SPELLED_PROGRAMS = (
  'sed sort awk uniq cut tr grep find diff cmp comm tac rev nl stat file du realpath md5sum xxd od ' +
  'tar unzip jq ls cat wc head tail basename'
).split(' ');
export const SPELLED_GIT = (
  'status diff log show shortlog blame grep ls-files ls-tree rev-parse cat-file show-ref add commit ' +
  'rm tag branch push fetch restore reset checkout switch merge rebase stash describe remote mv clean'
).split(' ');

const SECRET = 'the-secret-of-another-folder';
/** What a value could be that writes, starts or reads something. */
const VALUES = [
  ...[
    './run',
    'run',
    'M',
    './M',
    'link',
    '.env',
    'f',
    'g',
    'script',
    '.',
    'sub',
    '1',
    '2',
    '-',
    '--',
  ],
  ...['1p', 'p', 'w M', '1w M', 'e ./run', 'exec=./run', 's/a/b/w M', 's/a/b/e', '1!e ./run', 'a'],
  ...['{print > "M"}', 'BEGIN{system("./run")}', '{print}', '/a/{print | "./run"}', '.a', 'x.tar'],
  ...['import "x" as $d; .', './x.git', 'x.git', 'folder', 'origin', 'HEAD', 'main', 'HEAD:refs/z'],
  ...[
    '-exec',
    '-delete',
    '-fprint',
    '-ok',
    '+',
    ';',
    'ext::./run',
    '../outside',
    '/etc/passwd',
    'xf',
  ],
];

/** A folder with traps: a program that leaves a mark, links that lead out, scripts that write. */
export function trapFolder() {
  const [home, cwd, outside] = [folder(), folder(), folder()];
  const put = (path: string, text: string, mode = 0o644) => {
    mkdirSync(join(cwd, path, '..'), { recursive: true });
    writeFileSync(join(cwd, path), text, { mode });
  };
  const mark = `#!/bin/sh\ntouch '${cwd}/M'\n`;
  const env = { PATH: process.env.PATH, HOME: home, GIT_CONFIG_NOSYSTEM: '1' };
  const git = (...args: string[]) => spawnSync('git', args, { cwd, env, encoding: 'utf8' }).stdout;
  put('f', 'a\nb\nc\n');
  put('g', 'd\na\n');
  put('sub/h', 'a\n');
  put('run', mark, 0o755);
  put('script', 'w M\n');
  put('a.json', '{"a":1}');
  writeFileSync(join(outside, 'secret'), SECRET);
  spawnSync('tar', ['cf', 'x.tar', 'f'], { cwd });
  git('init', '-q', '-b', 'main');
  git('config', 'user.name', 'a');
  git('config', 'user.email', 'a@b');
  put('.gitignore', 'x.git\nout\n');
  git('add', '.');
  git('commit', '-qm', 'one');
  git('init', '-q', '--bare', 'x.git');
  put('x.git/hooks/pre-receive', mark, 0o755);
  git('remote', 'add', 'origin', 'https://127.0.0.1:1/x.git');
  git('remote', 'add', 'folder', './x.git');
  symlinkSync(join(outside, 'secret'), join(cwd, 'link'));
  put('.env', `S=${SECRET}\n`);
  return { home, cwd, git };
}

/** The options in what a program says of itself, and all letters besides. */
function optionsOf(program: string): { long: string[]; letters: string[] } {
  const [name = '', ...sub] = program.split(' ');
  const said = ['--help', '-h'].map((how) => {
    const { stdout, stderr } = spawnSync(name, [...sub, how], {
      encoding: 'utf8',
      input: '',
      timeout: 5000,
      env: { PATH: process.env.PATH, GIT_PAGER: 'cat', MANPAGER: 'cat' },
    });
    return `${stdout}${stderr}`;
  });
  const text = said.join('\n').replaceAll('[no-]', '').slice(0, 50_000);
  const long = [...text.matchAll(/--[a-z][\w-]+/g)].map(([word]) => word);
  const single = [...text.matchAll(/(?<=\s)-[a-z]{2,}\b/g)].map(([word]) => word); // of find
  const letters = [...'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'];
  return { long: [...new Set([...long, ...single])], letters };
}

/** Lines in all spellings: in full, cut short, put together, with a value behind, attached, or behind "=". */
export function spelledLines(program: string, count: number, dice: Dice): string[] {
  const { long, letters } = optionsOf(program);
  const { below, pick } = dice;
  const quote = (word: string) => `'${word.replaceAll("'", `'\\''`)}'`;
  const cut = (word: string) => (below(3) === 0 ? word.slice(0, 3 + below(word.length)) : word);
  const cluster = () => Array.from({ length: 1 + below(3) }, () => pick(letters)).join('');
  const option = (): string[] => {
    const word = long.length > 0 && below(2) === 0 ? cut(pick(long)) : `-${cluster()}`;
    const isLong = word.startsWith('--');
    const how = below(3);
    if (how === 0) return [word];
    return how === 1 ? [word, pick(VALUES)] : [`${word}${isLong ? '=' : ''}${pick(VALUES)}`];
  };
  return Array.from({ length: count }, () => {
    const words = Array.from({ length: 1 + below(4) }, () =>
      below(3) === 0 ? [pick(VALUES)] : option(),
    ).flat();
    const ended = below(8) === 0 ? ['--'] : []; // not every program ends its options there
    const last = below(2) === 0 ? ['f'] : [];
    return [program, ...ended, ...words.map(quote), ...last].join(' ');
  });
}

/** Runs what a rule for the program lets through, and tells which line has done something. */
export function harmDone(
  programs: string[],
  count: number,
  dice: Dice,
): { allowed: number; harm: string[] } {
  const place = trapFolder();
  const { cwd, home } = place;
  const names = [...new Set(programs.map((program) => program.split(' ')[0]!))];
  const before = process.env.HOME;
  process.env.HOME = home; // git reads it, too
  try {
    const { effect } = judges({
      cwd,
      home,
      rules: { allow: names.map((name) => `bash(${name}:*)`) },
    });
    const lines = programs.flatMap((program) => spelledLines(program, count, dice));
    const allowed = lines.filter((line) => effect(line) === 'allow');
    const isGit = names.includes('git');
    const stateOf = () =>
      isGit
        ? `${readdirSync(cwd).includes('M')}`
        : JSON.stringify(
            readdirSync(cwd).map((name) => {
              const { size, mtimeMs } = statSync(join(cwd, name));
              return [name, size, mtimeMs];
            }),
          );
    const runAll = (some: string[]): boolean => {
      const state = stateOf();
      const script = some.map((line) => `( timeout 5 ${line} ) </dev/null`).join('\n');
      const env = {
        PATH: process.env.PATH,
        HOME: home,
        GIT_EDITOR: 'true',
        GIT_TERMINAL_PROMPT: '0',
      };
      const { stdout, stderr } = spawnSync('bash', ['-c', script], {
        cwd,
        env,
        encoding: 'utf8',
        maxBuffer: 2 ** 28,
      });
      const kept = isGit ? place.git('log', '--all', '-p') : '';
      return stateOf() !== state || `${stdout}${stderr}${kept}`.includes(SECRET);
    };
    const chunks = Array.from({ length: Math.ceil(allowed.length / 50) }, (_, n) =>
      allowed.slice(n * 50, n * 50 + 50),
    );
    const harm: string[] = [];
    for (const chunk of chunks) {
      if (!runAll(chunk)) continue;
      harm.push(chunk.find((line) => runAll([line])) ?? chunk.join('\n'));
      break; // the folder is no longer what it was
    }
    return { allowed: allowed.length, harm };
  } finally {
    process.env.HOME = before;
  }
}
