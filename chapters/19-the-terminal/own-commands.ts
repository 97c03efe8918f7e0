// own-commands.ts: /NAME from a file NAME.md. It is a prompt, and whoever wrote it is not at the
// keyboard: a project's is approved by its content, like its notes, and nothing in it runs.

import { readdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Turn } from '../../agent.ts';
import { isSameFolder } from '../../mcp.ts';
import { boundedNote, noteAt } from '../17-the-gate/notes.ts';
import type { Command, MoreCommands } from './host.ts';
import type { Program } from './program.ts';

const FOLDER = '.claude/commands';
const FILE = /^([\w-]{1,64})\.md$/;
const MAX_FILES = 200;
const MAX_TOLD = 10; // things that are not obeyed

/** Where a project's is, for `trust allow`. */
export const isCommandFile = (file: string) =>
  file.startsWith(`${FOLDER}/`) && FILE.test(file.slice(FOLDER.length + 1));

/** Yours count, where a project has the same name. */
export const ownCommands: MoreCommands = (program) => {
  const { cwd } = program.roots;
  const home = homedir();
  const mine = namesIn(join(home, FOLDER)).map((name) => {
    const read = async () => boundedNote(readFileSync(join(home, FOLDER, `${name}.md`), 'utf8'));
    return [name, commandOf(`~/${FOLDER}/${name}.md`, read)] as const;
  });
  const theirs = isSameFolder(home, cwd) ? [] : namesIn(join(cwd, FOLDER));
  const shared = theirs.map((name) => {
    const file = `${FOLDER}/${name}.md`;
    return [name, commandOf(file, (signal) => approvedText(file, program, signal))] as const;
  });
  const all = [...shared, ...mine];
  return all.length === 0 ? undefined : Promise.resolve(Object.fromEntries(all));
};

function namesIn(folder: string) {
  try {
    const names = readdirSync(folder).flatMap((name) => FILE.exec(name)?.[1] ?? []);
    return names.slice(0, MAX_FILES);
  } catch {
    return []; // there is no such folder
  }
}

async function approvedText(file: string, program: Program, signal: AbortSignal) {
  const { roots, notes, screen } = program;
  const note = await noteAt(file, roots, (text) => screen.warn(text));
  const words = {
    what: 'is a prompt of this project, which the model follows.',
    prompt: 'May it be used?',
  };
  return note && (await notes.isApproved(note, words, signal)) ? note.text : undefined;
}

function commandOf(file: string, read: (signal: AbortSignal) => Promise<string | undefined>) {
  const run: Command['run'] = async (_, { screen }, signal, rest) => {
    const text = await read(signal);
    if (text === undefined) return screen.say(`${file} was not sent`, 'dim');
    const { prompt, ignored } = promptFrom(text, rest);
    if (ignored.length > 0) screen.say(`  not obeyed: ${ignored.join(', ')}`, 'yellow');
    screen.say(`  sent: ${file}, ${prompt.length} characters`, 'dim');
    const turns: Turn[] = [{ role: 'user', text: prompt }];
    return turns;
  };
  return { help: '', run };
}

const HEAD = /^---\n([^]*?)\n---(?:\n|$)/;
const ARGUMENT = /\$(ARGUMENTS|[1-9])(?!\w)/g;
const TO_BE_RUN = /!`[^`\n]*`|(?<=^|\s)@[^\s]+/g;

/** What is filled in is not looked through again. */
export function promptFrom(text: string, rest: string): { prompt: string; ignored: string[] } {
  const head = HEAD.exec(text)?.[1]?.split('\n') ?? [];
  const body = text.replace(HEAD, '').trim();
  const words = (rest.match(/"[^"]*"|\S+/g) ?? []).map((word) => word.replace(/^"(.*)"$/, '$1'));
  const filled = body.replace(ARGUMENT, (_, which: string) =>
    which === 'ARGUMENTS' ? rest : (words[Number(which) - 1] ?? ''),
  );
  const isUsed = filled !== body || rest === '';
  const prompt = isUsed ? filled : `${body}\n\n${rest}`;
  const wishes = head.filter((line) => !/^(description|argument-hint):|^\s*$/.test(line));
  const ignored = [...wishes, ...(prompt.match(TO_BE_RUN) ?? [])];
  const more = ignored.length - MAX_TOLD;
  return {
    prompt,
    ignored: [...ignored.slice(0, MAX_TOLD), ...(more > 0 ? [`${more} more`] : [])],
  };
}
