// What the key Tab can finish: commands of the program, their words, and files behind an @.

import { opendirSync, type Dirent } from 'node:fs';
import { join } from 'node:path';
import type { Command } from '../host.ts';
import type { Program } from '../program.ts';

const MAX_LOOKED_AT = 5000; // names in a folder
const MAX_FOUND = 200;

/** The words that fit what is between `start` and the cursor. `isOpen`: also a whole one goes on. */
export type Completion = { start: number; words: string[]; isOpen?: boolean };
/** Servers take a while. */
export type Completing = Completion | Promise<Completion>;

export function completeLine(before: string, program: Program): Completing {
  const mention = /(?:^|[\s(])@(?:"([^"\n]*)|([^\s"]*))$/.exec(before);
  if (mention) return completeMention(before, mention[1] ?? mention[2] ?? '', program);
  if (/^\s*\/\S*$/.test(before)) return completeCommand(before, program);
  if (/^\s*\/[\w-]+\s/.test(before)) return completeWord(before, program);
  return { start: before.length, words: [] };
}

function completeCommand(before: string, program: Program) {
  const names = [...Object.keys(program.composition.commands), 'exit'];
  const found = (all: string[]) =>
    fitting(before, before.trimStart(), all.map((name) => `/${name}`).sort());
  const more = moreCommands(program);
  return more ? more.then((others) => found([...names, ...Object.keys(others)])) : found(names);
}

/** Those of the moment, all together. */
function moreCommands(program: Program) {
  const { moreCommands: rows = [] } = program.composition;
  const some = rows.flatMap((find) => find(program) ?? []);
  if (some.length === 0) return undefined;
  return Promise.all(some).then((all) => Object.assign({}, ...all.reverse()));
}

/** One of the program's, or one of the moment. */
export function commandNamed(
  name: string,
  program: Program,
): Command | undefined | Promise<Command | undefined> {
  const { commands } = program.composition;
  if (Object.hasOwn(commands, name)) return commands[name];
  return oneOfMore(name, program);
}

/** In order: for a file nobody waits until servers have answered. */
async function oneOfMore(name: string, program: Program) {
  for (const find of program.composition.moreCommands ?? []) {
    const more = (await find(program)) ?? {};
    if (Object.hasOwn(more, name)) return more[name];
  }
  return undefined;
}

function completeWord(before: string, program: Program) {
  const [name = '', ...words] = before.trimStart().slice(1).split(/\s+/);
  const found = (all: string[]) => fitting(before, words.at(-1) ?? '', all);
  const wordsFor = (command?: Command) => command?.complete?.(words, program) ?? [];
  const command = commandNamed(name, program);
  if (command instanceof Promise) return command.then(wordsFor).then(found);
  const known = wordsFor(command);
  return known instanceof Promise ? known.then(found) : found(known);
}

/** Files come first; what else has such a name is looked for where it may be. */
function completeMention(before: string, typed: string, program: Program) {
  const files = completeFile(before, typed, program);
  const { mentions = [] } = program.composition;
  const asked = mentions.flatMap((each) => each.complete(typed, program) ?? []);
  if (asked.length === 0) return files;
  return Promise.all(asked).then((found) => {
    const others = found.flatMap(({ words }) => words.map((word) => `@${quotedIfNeeded(word)}`));
    const words = [...files.words, ...others].slice(0, MAX_FOUND);
    return { start: files.start, words, isOpen: found.some(({ isOpen }) => isOpen) };
  });
}

function fitting(before: string, word: string, candidates: string[]) {
  const words = candidates.filter((each) => each.startsWith(word));
  return { start: before.length - word.length, words: words.slice(0, MAX_FOUND) };
}

/** Of one folder. What a search would not show, and what may be secret, is not offered. It can
 *  still be typed. */
function completeFile(before: string, path: string, program: Program) {
  const slash = path.lastIndexOf('/') + 1;
  const folder = path.slice(0, slash);
  const start = before.lastIndexOf('@');
  const found = namesIn(folder, path.slice(slash), program);
  const words = found.map((name) => `@${quotedIfNeeded(folder + name)}`);
  return { start, words: words.sort().slice(0, MAX_FOUND) };
}

function namesIn(folder: string, beginning: string, program: Program) {
  const { roots, gate } = program;
  const isOffered = (path: string) => {
    const { real, inside, secret } = roots.locate(path);
    return inside && !secret && !gate.isHidden(real);
  };
  try {
    const { real } = roots.locate(folder || '.');
    if (!isOffered(real)) return [];
    const entries = entriesOf(real).filter(({ name }) => isTyped(name, beginning));
    const offered = entries.slice(0, MAX_FOUND).filter(({ name }) => isOffered(join(real, name)));
    return offered.map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name));
  } catch {
    return []; // there is no such folder, or it cannot be read
  }
}

function isTyped(name: string, beginning: string) {
  const isHidden = name.startsWith('.') && !beginning.startsWith('.');
  const isOdd = /[\x00-\x1f\x7f-\x9f"]/.test(name); // it cannot be typed, either
  return name.startsWith(beginning) && !isHidden && !isOdd;
}

function entriesOf(folder: string) {
  const found: Dirent[] = [];
  const entries = opendirSync(folder);
  try {
    for (let entry = entries.readSync(); entry; entry = entries.readSync())
      if (found.push(entry) >= MAX_LOOKED_AT) break;
  } finally {
    entries.closeSync();
  }
  return found;
}

/** The closing quote comes with the name of a file: behind a folder the path goes on. */
function quotedIfNeeded(path: string) {
  if (!/[\s()]/.test(path)) return path;
  return path.endsWith('/') ? `"${path}` : `"${path}"`;
}

/** What all of them begin with. */
export function commonStart(words: string[]): string {
  let start = words[0] ?? '';
  for (const word of words) while (!word.startsWith(start)) start = start.slice(0, -1);
  return start;
}
