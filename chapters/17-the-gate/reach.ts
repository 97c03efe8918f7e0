// reach.ts: how far a rule of some words reaches. What it spells is meant; of the rest, only what
// is known to be harmless.

import { findCommand } from '../../mcp.ts';
import { SHELL_BUILTINS } from './free-commands.ts';
import { namesGit, subcommandAt } from './git-commands.ts';
import { isKnownProgram, isAsItsKind, isModest, meaningsOf, type Place } from './known-programs.ts';
import { unwrapped, type SimpleCommand, type Word } from './shell-syntax.ts';

/** Their whole purpose is to run another command, so `env:*` would allow all commands. */
export const COMMAND_LAUNCHERS = new Set(
  `bash builtin command coproc csh dash doas env eval exec fish flock ionice ksh nice nohup parallel
    setsid sh stdbuf su sudo time timeout tmux trap watch xargs zsh . source busybox`.split(/\s+/),
);
/** Of these, the ones that hand on their words as they are. xargs adds what it reads. */
const HANDING_ON = new Set('sudo doas nice ionice stdbuf setsid'.split(' '));

const nameOf = (word?: Word) => word?.text.replace(/^.*\//, '') ?? '';
const isOperand = (word: string) => !/^(-|\d|\w+=)/.test(word);

const isProgram = (word: string) =>
  isOperand(word) && (/[./]/.test(word) || isKnownProgram(word) || findCommand(word) !== word);

/** Does a rule of these words leave the command open? `env`, `sudo -u me` and `bash -c` do. */
export function isLauncher([first = '', ...rest]: string[]): boolean {
  return COMMAND_LAUNCHERS.has(first.replace(/^.+\//, '')) && !rest.some(isProgram);
}

/** Does a rule of these words spell no more than the name of a program that has no row? */
export function isVague(words: string[]): boolean {
  const plain = words.map((text) => ({ text, isPlain: true }));
  const program = programIn(plain, plain.length);
  if (!program || isKnownProgram(program.name) || program.name === 'git ') return false;
  return !words.slice(program.at + 1).some(isOperand);
}

/** The words that a rule for commands like this one would spell: the program, and what it is to do. */
export function wordsLike(part: SimpleCommand): string[] {
  const words = unwrapped(part.words);
  const name = nameOf(words[0]);
  if (COMMAND_LAUNCHERS.has(name)) return [];
  const texts = words.map(({ text, isPlain }) => (isPlain && SIMPLE.test(text) ? text : ''));
  const operand = texts.findIndex((text, n) => n > 0 && isOperand(text));
  const isRunner = RUNNERS.has(texts[operand] ?? ''); // `npm run` says as little as `npm`
  const end = isKnownProgram(name) ? 1 : operand + (isRunner ? 2 : 1);
  const count = namesGit(words[0]) ? 2 : end;
  const spelled = texts.slice(0, count);
  return spelled.length < count || spelled.includes('') ? [] : spelled;
}

const SIMPLE = /^[\w@%+=,./-][\w@%+=:,./-]{0,60}$/;
const RUNNERS = new Set(['run', 'run-script', 'exec', 'x', 'dlx', 'compose', 'tool']);

/** What a rule of these words leaves open. */
export function reachInWords(words: string[]): string {
  const name = nameOf({ text: words[0] ?? '', isPlain: true });
  const isKnown = isKnownProgram(name) || isKnownProgram(words.slice(0, 2).join(' '));
  return isKnown
    ? 'options behind it that are known to be harmless, and files that may be read'
    : 'anything behind it: other files, addresses, options';
}

/** Does a rule that spells so many words of a command mean the rest of it, too? */
export function reaches(part: SimpleCommand, spelled: number, place: Place): boolean {
  const words = unwrapped(part.words);
  const program = programIn(words, spelled);
  if (!program) return false;
  const { name, at } = program;
  const behind = words.slice(at + 1);
  const count = Math.max(spelled - at - 1, 0);
  if (isKnownProgram(name))
    return meaningsOf(name, behind, count)?.every((each) => isAsItsKind(each, place)) ?? false;
  if (at >= spelled) return false; // a subcommand of git that is not an everyday one
  if (behind.slice(0, count).some(({ text }) => isOperand(text))) return true;
  // What comes in may be commands, for a shell that it starts.
  const isAlone = !part.isFed && !SHELL_BUILTINS.has(name);
  return isAlone && behind.slice(count).every((word) => isModest(word, place));
}

/** Which program a rule is about, and where its name ends: `git log`, or find in `sudo find`. */
function programIn(words: Word[], spelled: number) {
  const isLaunched = COMMAND_LAUNCHERS.has(nameOf(words[0]));
  const isKnown = (word: Word) => isKnownProgram(nameOf(word)) || namesGit(word);
  const found = isLaunched ? words.slice(0, spelled).findIndex(isKnown) : 0;
  const at = Math.max(found, 0);
  const isHandedOn = at === 0 || (HANDING_ON.has(nameOf(words[0])) && !namesGit(words[at]));
  if (!isHandedOn) return undefined;
  if (!namesGit(words[at])) return { name: nameOf(words[at]), at };
  const sub = subcommandAt(words);
  if (sub === undefined || sub > spelled) return undefined; // git -c core.pager=… log
  return { name: `git ${words[sub]?.text ?? ''}`, at: sub };
}
