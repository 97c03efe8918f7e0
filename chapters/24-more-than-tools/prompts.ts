// prompts.ts: the prompts of servers as commands: /mcp__server__prompt. A prompt is fetched when its
// command is given, and never before: there are servers that run what they get as an argument.

import type { Turn } from '../../agent.ts';
import { asList, asObject, show, toolLabel, type Json } from '../../mcp.ts';
import { agrees } from '../17-the-gate/dialogue.ts';
import { quoted, told } from '../17-the-gate/safe-text.ts';
import type { Command, MoreCommands } from '../19-the-terminal/host.ts';
import type { Program } from '../19-the-terminal/program.ts';
import { argumentsFrom, formOf, type Declared } from './prompt-arguments.ts';
import { turnsOf } from './context.ts';
import { candidates, askForMissing } from './commands/fill-in.ts';
import { getPrompt, Offers, type Of, type Prompt } from './offers.ts';
import { serversWith } from './rows.ts';

const MAX_ARGUMENTS = 50;

/** By label, so that two servers may have a prompt of one name. */
export const promptCommands: MoreCommands = ({ manager }) => {
  if (serversWith(manager.status(), 'prompts').length === 0) return undefined;
  return new Offers(manager).listPrompts().then((prompts) => {
    const rows = prompts.map((each) => [toolLabel(each.server, each.name), command(each)] as const);
    return Object.fromEntries(rows.reverse()); // of two with one label the first counts
  });
};

/** What a prompt declares. Servers leave things out. */
export function declaredBy({ arguments: list }: Json): Declared[] {
  const all = asList(list).slice(0, MAX_ARGUMENTS).map(asObject);
  const named = all.filter(({ name }) => typeof name === 'string' && name !== '');
  return named.map(({ name, description, required }) => ({
    name: String(name),
    description: show(description ?? ''),
    isRequired: required === true,
  }));
}

function command(prompt: Of<Prompt>): Command {
  const declared = declaredBy(prompt);
  const { server, name } = prompt;
  const ref = { type: 'ref/prompt', name } as const;
  return {
    help: `/${toolLabel(server, name)}  ${formOf(declared)}`,
    run: (_, program, signal, rest) => send(prompt, rest, program, signal),
    complete: async (words, { manager }) => {
      const word = words.at(-1) ?? '';
      const named = declared.find((each) => word.startsWith(`${each.name}=`));
      const argument = named ?? declared[words.length - 1];
      const prefix = named ? `${named.name}=` : '';
      const names = declared.map((each) => `${each.name}=`);
      if (!argument) return names;
      const { args } = argumentsFrom(words.slice(0, -1).join(' '), declared);
      const typed = { name: argument.name, value: word.slice(prefix.length) };
      const found = await candidates({ manager, server, ref }, typed, args);
      const values = found.map((each) => (/[\s"'\\]/.test(each) ? JSON.stringify(each) : each));
      return values.length > 0 ? values.map((each) => prefix + each) : names;
    },
  };
}

/** The prompt's messages, to be said to the model. */
async function send(prompt: Of<Prompt>, rest: string, program: Program, signal: AbortSignal) {
  const { manager, screen, person, session } = program;
  const { server, name } = prompt;
  const declared = declaredBy(prompt);
  if (rest === '?') return void screen.print(formOf(declared));
  const { args, missing } = argumentsFrom(rest, declared);
  const ref = { type: 'ref/prompt', name } as const;
  const needs = missing.map((each) => `${each.name}=…`).join(' ');
  if (needs !== '' && !person.isThere) throw new Error(`${name} needs ${needs}`);
  const asked = { person, manager, server, ref, what: name, signal };
  const whole = await askForMissing(missing, args, asked);
  if (!whole) return void screen.say('nothing was sent', 'dim');
  const messages = await getPrompt(manager.of(server), name, whole, { signal });
  const turns = turnsOf(messages, session.resultsFolder, name);
  if (turns.length === 0) throw new Error(`${server} has no messages in its prompt ${name}`);
  const isToBeSent = await isAgreed(prompt, turns, program, signal);
  screen.say(isToBeSent ? sizeOf(turns) : 'nothing was sent', 'dim');
  return isToBeSent ? turns : undefined;
}

function sizeOf(turns: Turn[]) {
  const size = turns.reduce((sum, turn) => sum + ('text' in turn ? turn.text.length : 0), 0);
  const count = turns.length === 1 ? '1 message' : `${turns.length} messages`;
  return `  sent: ${count}, ${size} characters`;
}

/** The words of your own servers are sent as they are. Those of a project's are shown before. */
async function isAgreed(
  { server, name }: Of<Prompt>,
  turns: Turn[],
  { trust, person }: Program,
  signal: AbortSignal,
) {
  if (trust.seen.get(server)?.authority === 'user') return true;
  const lines = turns.flatMap((turn) =>
    'text' in turn ? [`${turn.role}:`, ...told(turn.text)] : [],
  );
  const whose = `The prompt ${quoted(name)} of the project's MCP server ${quoted(server)} is:`;
  return agrees(person, {
    lines: [whose, ...lines],
    prompt: 'Say this to the model?',
    ifEmpty: undefined, // it has to be answered
    signal,
  });
}
