// strong-words.ts: words by which a command does more than it is known for. `find` looks, and with
// -exec it runs anything: a rule find:* was not written for that.

import { unwrapped, type Part, type Word } from './command-line.ts';

/** Their whole purpose is to run another command, so `env:*` would allow all commands. */
export const LAUNCHERS = new Set(
  (`bash builtin command coproc csh dash doas env eval exec fish flock ionice ksh nice nohup parallel
    setsid sh stdbuf su sudo time timeout tmux trap watch xargs zsh . source busybox`).split(/\s+/),
);

/** Does a rule of these words leave the command open? `env`, `timeout 60` and `bash -c` do. */
export function isLauncher([first = '', ...rest]: string[]): boolean {
  const isCommand = (word: string) => !/^(-|\d|\w+=)/.test(word);
  return LAUNCHERS.has(first.replace(/^.+\//, '')) && !rest.some(isCommand);
}

/** Options that run a program, write a file or delete one. */
const STRONG: Record<string, RegExp> = {
  find: /^-(exec|execdir|ok|okdir|delete|fprint0?|fprintf|fls)$/,
  fd: /^(-\w*[xX]|--ex)/,
  rg: /^--(pre|hostname-bin)(=|$)/,
  sort: /^(-[^-]*o|--(o|comp))/,
  sed: /^(-[^-]*[if]|--(i|f[^o]))/,
};

/** One sed script that prints, deletes or replaces: `w` and `e` write files and run commands, and
 *  can be at many places of a longer one. */
const PLACE = String.raw`(\d+|\$|/[^/\\\n]*/)`;
const PIECE = String.raw`(\\.|(?!\k<cut>)[^\\\n])*`;
const REPLACING = String.raw`s(?<cut>[/|#,])${PIECE}\k<cut>${PIECE}\k<cut>[gpI\d]*`;
const PLAIN_SED = new RegExp(`^(${PLACE}(,${PLACE})?)?([pdq=]|${REPLACING})$`);

const nameOf = (word?: Word) => word?.text.replace(/^.*\//, '') ?? '';
const isKnown = (word: Word) => Object.hasOwn(STRONG, nameOf(word));

/** Does a rule that spells so many words of a command mean the rest of it, too? */
export function reachesAll(part: Part, spelled: number): boolean {
  const words = unwrapped(part.words);
  const at = LAUNCHERS.has(nameOf(words[0])) ? words.findIndex(isKnown) : 0; // sudo find
  const name = nameOf(words[at]);
  if (at === -1 || !isKnown(words[at]!)) return true;
  const unspelled = words.slice(Math.max(spelled, at + 1));
  // A variable or a glob may be such a word.
  if (unspelled.some(({ text, isPlain }) => STRONG[name]!.test(text) || !isPlain)) return false;
  return name !== 'sed' || scriptsOf(unspelled.map(({ text }) => text)).every(isPlainSed);
}

const isPlainSed = (script: string) => PLAIN_SED.test(script);

/** Behind each -e, or else the first word that is not an option. */
function scriptsOf(words: string[]): string[] {
  const named = words.filter((_, n) => /^(-[nErsuz]*e|--expression)$/.test(words[n - 1] ?? ''));
  const attached = words.filter((word) => /^(-[nErsuz]*e.|--e.*=)/.test(word));
  if (named.length + attached.length > 0) return [...named, ...attached];
  return words.filter((word) => !word.startsWith('-')).slice(0, 1);
}
