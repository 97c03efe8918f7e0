// free-commands.ts: the few commands that need no question. Each only shows what `read` and `glob`
// may show anyway, if it is given plain paths inside the folder. The list is short on purpose, and
// /permissions prints it. Whatever it does not know, an option or a form of a path, is asked about.

import { statSync } from 'node:fs';
import { findCommand, safeEnv, withSafePath } from '../../mcp.ts';
import type { Location, Roots } from '../16-hands/paths.ts';
import { unwrapped, type Part, type Word } from './command-line.ts';

/** `options` before the paths; `takes` are those whose next word is a number. */
type Free = { options: RegExp; takes?: RegExp; names?: boolean };

// Not among them: what follows (tail -f), what reads a list (wc --files0-from), and `ls -R`, which
// would walk into folders that a rule hides. `ls -L` would look behind links.
const COUNT = /^[+-]?\d{1,9}$/;
const FREE: Record<string, Free | undefined> = {
  ls: { options: /^-[1aAcCdFghiklmnopqrsStuUx]+$/ },
  cat: { options: /^-[bensATuvtE]+$/ },
  pwd: { options: /^-[LP]$/ },
  wc: { options: /^-[clmwL]+$/ },
  head: { options: /^-(\d{1,9}|[nc]\d{1,9}|[qv])$/, takes: /^-[nc]$/ },
  tail: { options: /^-(\d{1,9}|[nc][+-]?\d{1,9}|[qv])$/, takes: /^-[nc]$/ },
  which: { options: /^-a$/, names: true },
};

export const FREE_COMMANDS = Object.keys(FREE);

/** They leave the shell as it is, so a free command means after them what it means alone. After
 *  `cd` a path is another file, and after `hash -p ./x ls` a name is another program. */
const HARMLESS = new Set(['echo', 'true', 'false', ':', ...FREE_COMMANDS]);
const BUILTINS = new Set(
  (`. : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare
    dirs disown echo enable eval exec exit export false fc fg getopts hash help history jobs kill
    let local logout mapfile popd printf pushd pwd read readarray readonly return set shift shopt
    source suspend test times trap true type typeset ulimit umask unalias unset wait chdir`)
    .split(/\s+/),
);

/** Does this part leave the meaning of the others alone? */
export function isHarmless({ words, assigns }: Part): boolean {
  const [command] = unwrapped(words); // `time cd x` leaves the folder, too
  if (assigns || (command && !command.isPlain)) return false;
  return !command || HARMLESS.has(command.text) || !BUILTINS.has(command.text);
}

/** Are all files the same after this part? If a rule allows another one, it may put a link there. */
export const changesNothing = ({ words }: Part) =>
  words.length === 0 || HARMLESS.has(unwrapped(words)[0]!.text);

/** These take the name of a variable, and `a[$(rm x)]` is one. */
const NAMING = new Set(
  ('[ declare export getopts let local mapfile printf read readarray readonly test typeset unset ' +
    'wait').split(' '),
);

/** Would a builtin of the shell run a command that is in quotes? `printf -v 'a[$(rm x)]' 1` does,
 *  and so does `printf -v $_ 1`, behind a command whose last word was that. */
export function evaluates({ words }: Part): boolean {
  const [command, ...rest] = unwrapped(words);
  const name = command?.text ?? '';
  if (!BUILTINS.has(name)) return false;
  const isFormat = name === 'printf' && rest[0]?.isPlain && !rest[0].text.startsWith('-');
  if (NAMING.has(name) && !isFormat && rest.some(({ isPlain }) => !isPlain)) return true;
  return rest.some(({ text }) => text.includes('[') && /[$`]/.test(text.slice(text.indexOf('['))));
}

/** The files that a free command shows; nothing if it is none. `roots` tells which are readable. */
export function filesOfFree(part: Part, roots: Roots): Location[] | undefined {
  const { words, assigns, redirections } = part;
  const isWriting = redirections.some(({ kind }) => kind === 'write');
  if (assigns || isWriting || words.some(({ isPlain }) => !isPlain)) return undefined;
  const [command = '', ...rest] = words.map(({ text }) => text);
  const free = Object.hasOwn(FREE, command) ? FREE[command]! : undefined;
  const paths = free && pathsBehind(rest, free);
  if (!free || !paths || !isOfSystem(command, roots)) return undefined;
  const isName = (text: string) => /^[\w.+-]+$/.test(text);
  if (free.names) return paths.every(isName) ? filesRead(part, roots) : undefined;
  const files = paths.map((path) => readable({ text: path, isPlain: true }, roots));
  const others = filesRead(part, roots);
  if (!others || !files.every((file) => file !== undefined)) return undefined;
  // Without a path it is about the folder itself, or about its input.
  return [...files, ...others, ...(command === 'ls' && files.length === 0 ? here(roots) : [])];
}

const here = (roots: Roots) => [roots.locate('.')];

/** What is behind the options, if all of those are known. Some systems take no option behind a path. */
function pathsBehind(words: string[], { options, takes }: Free): string[] | undefined {
  let at = 0;
  while (words[at]?.startsWith('-') && words[at] !== '--') {
    const isCounted = takes?.test(words[at]!);
    if (isCounted ? !COUNT.test(words[at + 1] ?? '') : !options.test(words[at]!)) return undefined;
    at += isCounted ? 2 : 1;
  }
  const isEnded = words[at] === '--';
  const paths = words.slice(isEnded ? at + 1 : at);
  return paths.every((path) => isEnded || !/^[-+]/.test(path)) ? paths : undefined;
}

/** What the shell itself opens for a command: `< file`. */
export function filesRead({ redirections }: Part, roots: Roots): Location[] | undefined {
  const files = redirections.map(({ kind, file }) =>
    kind === 'read' ? readable(file, roots) : undefined,
  );
  return files.every((file) => file !== undefined) ? files : undefined;
}

/** Where a path leads, if it may be read without a question. The program opens it by its name, and
 *  not what we have judged: so no "..", which means another folder behind a link. */
function readable({ text, isPlain }: Word, roots: Roots): Location | undefined {
  if (!isPlain || text === '' || /[\\:]|(^|\/)\.\.(\/|$)/.test(text)) return undefined;
  try {
    const location = roots.locate(`./${text}`.replace(/^\.\/(?=\/)/, ''));
    const stats = statSync(location.real, { throwIfNoEntry: false });
    const isUsual = !stats || stats.isFile() || stats.isDirectory(); // a FIFO would never end
    return location.readable && !location.secret && isUsual ? location : undefined;
  } catch {
    return undefined; // it leads nowhere
  }
}

/** Is it the system's own? The PATH may have a folder of the project in it, with an `ls` there. */
function isOfSystem(command: string, roots: Roots): boolean {
  const env = safeEnv();
  const found = findCommand(command, env);
  const safe = findCommand(command, withSafePath({ ...env, CLAUDE_PROJECT_DIR: roots.cwd }));
  return found === safe && !roots.locate(found).inside;
}
