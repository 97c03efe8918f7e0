// free-commands.ts: the few commands that need no question. Each only shows what `read` and `glob`
// may show anyway, if it is given plain paths inside the folder. The list (in known-programs.ts) is
// short on purpose, and /permissions prints it.

import { findCommand, safeEnv, withSafePath } from '../../mcp.ts';
import type { Location, Roots } from '../16-hands/paths.ts';
import {
  FREE_COMMANDS,
  isAsItsKind,
  meaningsOf,
  readable,
  type Meaning,
} from './known-programs.ts';
import { unwrapped, type SimpleCommand } from './shell-syntax.ts';

/** They leave the shell as it is, so a free command means after them what it means alone. After
 *  `cd` a path is another file, and after `hash -p ./x ls` a name is another program. */
const HARMLESS = new Set(['echo', 'true', 'false', ':', ...FREE_COMMANDS]);
export const SHELL_BUILTINS = new Set(
  `. : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare
    dirs disown echo enable eval exec exit export false fc fg getopts hash help history jobs kill
    let local logout mapfile popd printf pushd pwd read readarray readonly return set shift shopt
    source suspend test times trap true type typeset ulimit umask unalias unset wait chdir`.split(
    /\s+/,
  ),
);

/** Does this part leave the meaning of the others alone? */
export function isHarmless({ words, assigns }: SimpleCommand): boolean {
  const [command] = unwrapped(words); // `time cd x` leaves the folder, too
  if (assigns || (command && !command.isPlain)) return false;
  return !command || HARMLESS.has(command.text) || !SHELL_BUILTINS.has(command.text);
}

/** Are all files the same after this part? If a rule allows another one, it may put a link there. */
export const changesNothing = ({ words }: SimpleCommand) =>
  words.length === 0 || HARMLESS.has(unwrapped(words)[0]!.text);

/** These take the name of a variable, and `a[$(rm x)]` is one. */
const NAMING = new Set(
  (
    '[ declare export getopts let local mapfile printf read readarray readonly test typeset unset ' +
    'wait'
  ).split(' '),
);

/** No %n, which would put a number into a variable: into PATH, for example. */
const PLAIN_FORMAT = /^(?!-)([^%]|%[-\d. ]*[%bcdfiqsx])*$/;

/** Would a builtin of the shell run a command that is in quotes? `printf -v 'a[$(rm x)]' 1` does,
 *  and so does `printf -v $_ 1`, behind a command whose last word was that. */
export function evaluates({ words }: SimpleCommand): boolean {
  const [command, ...rest] = unwrapped(words);
  const name = command?.text ?? '';
  if (!SHELL_BUILTINS.has(name)) return false;
  const isFormat = name === 'printf' && rest[0]?.isPlain && PLAIN_FORMAT.test(rest[0].text);
  if (name === 'printf' && !isFormat) return true; // printf -v PATH ./bin
  if (NAMING.has(name) && !isFormat && rest.some(({ isPlain }) => !isPlain)) return true;
  return rest.some(({ text }) => text.includes('[') && /[$`]/.test(text.slice(text.indexOf('['))));
}

/** The files that a free command shows; nothing if it is none. `roots` tells which are readable. */
export function filesOfFree(part: SimpleCommand, roots: Roots): Location[] | undefined {
  const { words, assigns, redirections } = part;
  const isWriting = redirections.some(({ kind }) => kind === 'write');
  if (assigns || isWriting || words.some(({ isPlain }) => !isPlain)) return undefined;
  const [command, ...rest] = words;
  const name = command?.text ?? '';
  if (!FREE_COMMANDS.includes(name) || programsOfProject([name], roots).length > 0)
    return undefined;
  const meanings = meaningsOf(name, rest);
  // Some systems take no option behind a path, and "-" would be what comes in.
  const isOdd = ({ kind, word }: Meaning) => kind === 'late' || word.text === '-';
  if (!meanings || meanings.some(isOdd)) return undefined;
  const others = filesRead(part, roots);
  const paths = meanings.filter(({ kind }) => kind === 'file');
  const files = paths.map(({ word }) => readable(word, roots));
  const place = { roots, isHidden: () => false, isSettled: true };
  const isSure = meanings.every((each) => isAsItsKind(each, place));
  if (!others || !isSure || !files.every((file) => file !== undefined)) return undefined;
  // Without a path it is about the folder itself, or about its input.
  return [...files, ...others, ...(name === 'ls' && files.length === 0 ? here(roots) : [])];
}

const here = (roots: Roots) => [roots.locate('.')];

/** What the shell itself opens for a command: `< file`. */
export function filesRead({ redirections }: SimpleCommand, roots: Roots): Location[] | undefined {
  const files = redirections.map(({ kind, file }) =>
    kind === 'read' ? readable(file, roots) : undefined,
  );
  return files.every((file) => file !== undefined) ? files : undefined;
}

/** The files that these commands mean on your PATH, if the project has put them there. */
export function programsOfProject(commands: string[], roots: Roots): string[] {
  const env = safeEnv();
  const safe = withSafePath({ ...env, CLAUDE_PROJECT_DIR: roots.cwd });
  const names = new Set(commands.filter((name) => /^\w[\w.+-]*$/.test(name)));
  const files = [...names].slice(0, MAX_LOOKED_UP).map((name) => {
    const found = findCommand(name, env);
    const isInside = found !== name && roots.locate(found).inside;
    return found !== findCommand(name, safe) || isInside ? [found] : [];
  });
  return files.flat();
}

const MAX_LOOKED_UP = 50;
