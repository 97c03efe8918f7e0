// last-words.ts: why a server did not start, or what it said before it died.

import { existsSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { isWindows } from '../01-a-pipe/environment.ts';

const LAST_LINES = 5;
const MAX_LINE_SHOWN = 1000; // characters

/** Too many files or processes are open, ours or others'. It may work a moment later. */
export function isShortage(code = ''): boolean {
  return ['EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM'].includes(code);
}

/** What Node says of a program that cannot be started, in words that help. */
export function whyNoStart(error: NodeJS.ErrnoException, program: string, cwd = ''): string {
  const { code = '', message } = error;
  const isPath = program !== basename(program);
  const isThere = isPath && existsSync(resolve(cwd, program));
  if (cwd && !existsSync(cwd)) return `its "cwd" ${cwd} does not exist`;
  if (isShortage(code)) return `this machine is short of files, processes or memory (${code})`;
  if (code === 'EACCES') return 'the file is not executable, or we may not run it';
  if (code === 'ENOENT' && isThere) {
    return 'the interpreter that its first line names is missing';
  }
  // On Windows npx and its like are .cmd scripts, and only cmd can start those.
  if (isWindows && (code === 'ENOENT' || code === 'EINVAL')) {
    return 'command not found; for npx write "command": "cmd", "args": ["/c", "npx", …]';
  }
  if (code === 'ENOENT' && /^[^\s/\\]+\s/.test(program)) {
    return 'command not found; "command" is the program alone, the words behind it are "args"';
  }
  return code === 'ENOENT' ? 'command not found; is it on the PATH?' : message;
}

/** The end of what it wrote to stderr, and the line that says most. */
export function lastWordsIn(stderr: string, env: NodeJS.ProcessEnv): string {
  const written = stderr.trimEnd().split('\n');
  const lines = written.filter((line) => !NOISE.test(line));
  const last = lines.slice(-LAST_LINES);
  const cause = likelyCause(lines);
  if (cause && !last.includes(cause)) last.unshift(cause, '…');
  if (last.length === 0) return '';
  const short = last.map((line) => line.slice(0, MAX_LINE_SHOWN));
  return ` Its last words:\n  ${short.join('\n  ')}${hints(stderr, env)}`;
}

/** Blank lines, the frames of a stack, and Node's own last line push the reason out of sight. */
const NOISE = /^\s*$|^\s+at |^Node\.js v\d/;
const NAMES_ERROR = /^\W*(\w+ )?\w*(error|exception|fatal|panic)\b/i;
const SOUNDS_BAD = /\b(missing|required|invalid|denied|cannot|unable|no such|not (found|set))\b/i;

/** The line to read first. A server may explain itself and then print a page of usage. */
function likelyCause(lines: string[]): string | undefined {
  const named = lines.findLast((line) => NAMES_ERROR.test(line));
  return named ?? lines.findLast((line) => SOUNDS_BAD.test(line));
}

/** All it lacks may be a variable that we have but did not pass on. */
function hints(stderr: string, env: NodeJS.ProcessEnv): string {
  const mentioned = new Set(stderr.split(/\W+/));
  const withheld = Object.keys(process.env).filter((name) => {
    return mentioned.has(name) && !Object.hasOwn(env, name);
  });
  const hint = (name: string) =>
    `\n  (${name} was not passed on. To do so: "env": {"${name}": "\${${name}}"})`;
  return withheld.map(hint).join('');
}
