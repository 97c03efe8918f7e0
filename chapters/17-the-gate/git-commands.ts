// git-commands.ts: what git would run besides. The folder may name programs for git, another
// repository has hooks of its own, and the line itself may set up either.

import {
  gitPrograms,
  gitRemotes,
  isRepository,
  secretsNear,
  type Manner,
} from '../16-hands/git-settings.ts';
import { isHarmless } from './free-commands.ts';
import { gitMannerOf, meaningsOf, type GitManner } from './known-programs.ts';
import { unwrapped, type SimpleCommand, type Word } from './shell-syntax.ts';

export const namesGit = (word?: Word) => /^(.*\/)?git(\.exe)?$/i.test(word?.text ?? '');
const isGit = (part: SimpleCommand) => namesGit(unwrapped(part.words)[0]);

/** Where the subcommand is: behind git's own options. Nothing if one of those leads to another
 *  folder. */
export function subcommandAt([, ...words]: Word[]): number | undefined {
  let at = 0;
  while (['--no-pager', '-P', '-c'].includes(words[at]?.text ?? ''))
    at += words[at]!.text === '-c' ? 2 : 1;
  return words[at]?.text.startsWith('-') ? undefined : at + 1;
}

/** What git would run for these parts that the folder has named, and that we cannot prevent. */
export function folderPrograms(line: SimpleCommand[], cwd: string): string[] {
  const ours = line.filter(isGit).map(({ words }) => unwrapped(words));
  if (ours.length === 0) return [];
  const places = ours.map(subcommandAt);
  // In another folder there may be other settings.
  if (!line.every(isHarmless) || places.includes(undefined))
    return ['the settings of the folder that the line goes to'];
  const commands = ours.map((words, n) => words.slice(places[n]!));
  const manners = commands.map(([name]) => gitMannerOf(name?.text ?? '') ?? 'others');
  const found = [...gitPrograms(cwd, mannerOf(manners, commands)), ...strangers(commands, cwd)];
  // What one of them sets up, the next one would run, and we look at the folder before both.
  const isSettled = ours.length === 1 || !manners.includes('others');
  if (!isSettled) found.push('what the line itself sets up');
  const isSaid = (name: string) => commands.some(([said]) => said?.text === name);
  if (isSaid('add') || isSaid('stash')) found.push(...secretsNear(cwd));
  if (isSaid('diff') && !isRepository(cwd)) found.push('a comparison outside of any repository');
  return found;
}

function mannerOf(manners: GitManner[], commands: Word[][]): Manner {
  if (manners.every((manner) => manner === 'looks')) return 'looks';
  const isForced = commands.some((words) => words.some(({ text }) => /^(-\w*f|--f)/.test(text)));
  const isModest = manners.every((manner) => manner === 'looks' || manner === 'adds');
  return isModest && !isForced ? 'adds' : 'moves'; // add -f takes in what is ignored
}

/** An address of the network: https:, ssh: or host:path. Not a folder, whose hooks would run here,
 *  and not helper::address, which is the name of a program. */
const OF_NETWORK = /^(https|ssh):\/\/\w|^(\w[\w.+-]*@)?\w[\w.-]+:(?![:\\]|\/\/)/i;

/** Does the line talk to a repository that is no remote of ours in the network? git itself is asked
 *  where they lead; all of them, where the line does not say which. */
function strangers(commands: Word[][], cwd: string) {
  const isTalking = ([name]: Word[]) => /^(push|fetch|pull|ls-remote)$/.test(name?.text ?? '');
  const talking = commands.filter(isTalking);
  if (talking.length === 0) return [];
  const { addresses, defaults } = gitRemotes(cwd);
  const isSafe = (name: string) => addresses.get(name)?.every((each) => OF_NETWORK.test(each));
  const isKnown = ([name, ...words]: Word[]) => {
    const meanings = meaningsOf(`git ${name!.text}`, words, words.length) ?? [];
    const said = meanings.filter(({ kind }) => kind === 'remote').map(({ word }) => word.text);
    return (said.length > 0 ? said : defaults).every(isSafe);
  };
  const strange = talking.filter((words) => !isKnown(words));
  const isPushing = strange.some(([name]) => name!.text === 'push');
  if (isPushing) return ['the hooks of the repository that it pushes to'];
  return strange.length > 0 ? ['what answers at a remote that is not in the network'] : [];
}
