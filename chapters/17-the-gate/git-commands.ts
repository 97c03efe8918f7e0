// git-commands.ts: how far a rule for git reaches. The folder may name programs for git to run, and
// git's own options may name others.

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { gitPrograms, pushedTo, type Manner } from '../16-hands/git-settings.ts';
import { unwrapped, type Part, type Word } from './command-line.ts';
import { isHarmless } from './free-commands.ts';
import { LAUNCHERS } from './strong-words.ts';

/** These look and change nothing, so no hook of the folder runs. Not among them: `describe --dirty`
 *  writes the index. */
const LOOKING = new Set(
  ('status diff log show blame grep ls-files ls-tree rev-parse rev-list shortlog cat-file ' +
    'show-ref name-rev merge-base').split(' '),
);

/** These take in what is in the folder, or talk of it, and set up nothing that would run later. */
const ADDING = new Set('add commit rm tag branch fetch push'.split(' '));

/** So do these, but another branch brings other files. */
const MOVING = new Set(
  'restore reset checkout switch merge rebase cherry-pick revert stash pull'.split(' '),
);

/** With these, `git:*` is complete. git has two hundred commands, and many start what they are told
 *  to (bisect run, remote-ext, merge-index) or set it up for later (config, checkout-index): a rule
 *  must spell those. */
const COVERED = new Set([
  ...LOOKING, ...ADDING, ...MOVING,
  ...'describe reflog for-each-ref remote ls-remote mv clean version'.split(' '),
]);

/** Options that write a file, start a program or read files outside. git takes any beginning of
 *  them: --out, --upl. */
const STRONG = [
  '--output', '--ext-diff', '--no-index', '--open-files-in-pager', '--upload-pack',
  '--receive-pack', '--exec', '--extcmd', '--config', '--template', '--contents',
  '--ignore-revs-file', '--pathspec-from-file', '--submodule', '--recurse-submodules',
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
const namesGit = (word?: Word) => /^(.*\/)?git(\.exe)?$/i.test(word?.text ?? '');
const isGit = (part: Part) => namesGit(commandOf(part)[0]);
/** `xargs git diff`: what else it is given cannot be seen here. */
const isLaunchingGit = ([first, ...rest]: Word[]) =>
  LAUNCHERS.has(first?.text ?? '') && rest.some(namesGit);

/** Does a rule of words reach this part, if it is one of git? Not to options before the subcommand,
 *  -c core.pager=…, unless it spells them, and not to those that start programs. */
export function reachesGit(part: Part, spelled: number): boolean {
  if (!isGit(part)) return !isLaunchingGit(commandOf(part));
  const [, ...rest] = commandOf(part);
  const command = subcommand(part);
  if (!command) return false;
  const before = rest.findIndex(({ text }) => text === command); // options, --no-pager
  if (spelled <= before || (spelled === before + 1 && !COVERED.has(command))) return false;
  const unspelled = rest.slice(spelled - 1);
  if (unspelled.some(({ text }) => isStrong(text, command))) return false;
  // A glob may find a file that is called --output=x.
  if (optionsIn(unspelled).some(({ isPlain }) => !isPlain)) return false;
  return !OPENING.has(command) || !rest.some(({ text }) => leadsOut(text));
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

/** `git diff /dev/null /etc/passwd` compares any two files, `git commit -F` takes one for its text,
 *  and `git fetch` a repository. */
const OPENING = new Set(['diff', 'commit', 'tag', 'merge', 'fetch', 'pull']);
const leadsOut = (text: string) =>
  /^(-\w|--[\w-]+=)?([\\/]|[a-z]:[\\/])|(^|[\\/=])\.\.([\\/]|$)/i.test(text);

/** What git would run for these parts that the folder has named, and that we cannot prevent. */
export function folderPrograms(line: Part[], cwd: string): string[] {
  const ours = line.filter(isGit);
  if (ours.length === 0) return [];
  const commands = ours.map(subcommand);
  // In another folder there may be other settings.
  if (!line.every(isHarmless) || commands.includes(undefined))
    return ['the settings of the folder that the line goes to'];
  const areAll = (...sets: Set<string>[]) =>
    commands.every((command) => sets.some((set) => set.has(command!)));
  const found = [...gitPrograms(cwd, mannerOf(ours, areAll)), ...receivers(ours, cwd)];
  // What one of them sets up, the next one would run, and we look at the folder before both.
  const isSettled = ours.length === 1 || areAll(LOOKING, ADDING, MOVING);
  if (!isSettled) found.push('what the line itself sets up');
  return found;
}

function mannerOf(ours: Part[], areAll: (...sets: Set<string>[]) => boolean): Manner {
  if (areAll(LOOKING)) return 'looks';
  const isForced = ours.some(({ words }) => words.some(({ text }) => /^(-\w*f|--f)/.test(text)));
  return areAll(LOOKING, ADDING) && !isForced ? 'adds' : 'moves'; // add -f takes in what is ignored
}

/** The word behind git's own options; nothing if one of those leads to another folder. */
function subcommand(part: Part): string | undefined {
  const [, ...words] = commandOf(part).map(({ text }) => text);
  while (['--no-pager', '-P', '-c'].includes(words[0]!)) words.splice(0, words[0] === '-c' ? 2 : 1);
  return words[0]?.startsWith('-') ? undefined : (words[0] ?? '');
}

/** A push to a folder runs the hooks that are in there. Those of "." are ours, and looked at above.
 *  Another command of the line may have named the folder: `git fetch --set-upstream ./x && git push`. */
function receivers(ours: Part[], cwd: string): string[] {
  if (!ours.some((part) => subcommand(part) === 'push')) return [];
  const words = ours.flatMap((part) => commandOf(part).slice(1).map(({ text }) => text));
  const isRepository = (path: string) =>
    ['HEAD', '.git'].some((name) => existsSync(resolve(cwd, path, name)));
  const isFolder = (place: string) => /^file:/i.test(place) || isRepository(place);
  const places = [...words.map((text) => text.replace(/^--?\w+=/, '')), ...pushedTo(cwd)];
  const isMeant = places.some((place) => !['', '.'].includes(place) && isFolder(place));
  return isMeant ? ['the hooks of the repository that it pushes to'] : [];
}
