// git-commands.ts: how far a rule for git reaches. The folder may name programs for git to run, and
// git's own options may name others.

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { gitPrograms, pushedTo } from '../16-hands/git-settings.ts';
import { unwrapped, type Part, type Word } from './command-line.ts';
import { isHarmless } from './free-commands.ts';

/** These look and change nothing, so no hook of the folder runs. Not among them: `describe --dirty`
 *  writes the index. */
const LOOKING = new Set(
  ('status diff log show blame grep ls-files ls-tree rev-parse rev-list shortlog cat-file ' +
    'show-ref name-rev merge-base').split(' '),
);

/** These run what their arguments name, or make git run it from now on. A rule must spell them. */
const STRONG_COMMANDS = new Set(
  ('config submodule bisect filter-branch for-each-repo difftool mergetool send-email ' +
    'instaweb daemon').split(' '),
);

/** Options that write a file, start a program or read files outside. git takes any beginning of
 *  them: --out, --upl. */
const STRONG = [
  '--output', '--ext-diff', '--no-index', '--open-files-in-pager', '--upload-pack',
  '--receive-pack', '--exec', '--extcmd', '--config', '--template', '--contents',
  '--ignore-revs-file', '--pathspec-from-file',
];

/** The same in one letter, which may be behind others: -nO./x. */
const STRONG_LETTERS: Record<string, RegExp | undefined> = {
  grep: /^-\w*O/,
  rebase: /^-\w*x/,
  difftool: /^-\w*x/,
  clone: /^-\w*[uc]/,
  blame: /^-\w*S/,
};

const commandOf = (part: Part) => unwrapped(part.words);
const isGit = (part: Part) => /^(.*\/)?git(\.exe)?$/i.test(commandOf(part)[0]?.text ?? '');

/** Does a rule of words reach this part, if it is one of git? Not to options before the subcommand,
 *  -c core.pager=…, unless it spells them, and not to those that start programs. */
export function reachesGit(part: Part, spelled: number): boolean {
  if (!isGit(part)) return true;
  const [, ...rest] = commandOf(part);
  const [command = ''] = rest.map(({ text }) => text);
  if (spelled === 1 && (command.startsWith('-') || STRONG_COMMANDS.has(command))) return false;
  const unspelled = rest.slice(spelled - 1);
  if (unspelled.some(({ text }) => isStrong(text, command))) return false;
  // A glob may find a file that is called --output=x.
  if (optionsIn(unspelled).some(({ isPlain }) => !isPlain)) return false;
  return command !== 'diff' || !rest.some(({ text }) => leadsOut(text));
}

function isStrong(text: string, command: string): boolean {
  const [name = ''] = text.split('=');
  const letters = Object.hasOwn(STRONG_LETTERS, command) ? STRONG_LETTERS[command] : undefined;
  return letters?.test(text) || (name.length > 2 && STRONG.some((each) => each.startsWith(name)));
}

/** Up to `--`, unless that may be the value of an option: `git grep -e -- …`. */
function optionsIn(words: Word[]): Word[] {
  const end = words.findIndex(({ text, isPlain }) => isPlain && text === '--');
  const isValue = end > 0 && words[end - 1]!.text.startsWith('-');
  return end === -1 || isValue ? words : words.slice(0, end);
}

/** `git diff /dev/null /etc/passwd` compares any two files, as with --no-index. */
const leadsOut = (text: string) => /^([\\/]|[a-z]:)|(^|[\\/])\.\.([\\/]|$)/i.test(text);

/** What git would run for these parts that the folder has named, and that we cannot prevent. */
export function folderPrograms(line: Part[], cwd: string): string[] {
  const ours = line.filter(isGit);
  if (ours.length === 0) return [];
  // In another folder there may be other settings.
  if (!line.every(isHarmless)) return ['the settings of the folder that the line goes to'];
  const onlyLooks = ours.every((part) => LOOKING.has(commandOf(part)[1]?.text ?? ''));
  return [...gitPrograms(cwd, onlyLooks), ...ours.flatMap((part) => receivers(part, cwd))];
}

/** A push to a folder runs the hooks that are in there. Those of "." are ours, and looked at above. */
function receivers(part: Part, cwd: string): string[] {
  const [, command, ...rest] = commandOf(part).map(({ text }) => text);
  if (command !== 'push') return [];
  const isRepository = (path: string) =>
    ['HEAD', '.git'].some((name) => existsSync(resolve(cwd, path, name)));
  const isFolder = (place: string) => /^file:/i.test(place) || isRepository(place);
  const places = [...rest.map((text) => text.replace(/^--?\w+=/, '')), ...pushedTo(cwd)];
  const isMeant = places.some((place) => !['', '.'].includes(place) && isFolder(place));
  return isMeant ? ['the hooks of the repository that it pushes to'] : [];
}
