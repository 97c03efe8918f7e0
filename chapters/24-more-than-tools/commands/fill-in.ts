// fill-in.ts: asks the person for what is missing, one after the other. Tab asks the server.

import { setTimeout as wait } from 'node:timers/promises';
import type { McpManager } from '../../../mcp.ts';
import type { Person } from '../../17-the-gate/person.ts';
import { line, quoted } from '../../17-the-gate/safe-text.ts';
import type { Declared } from '../prompt-arguments.ts';
import { completeArgument, type Reference } from '../offers.ts';

const PATIENCE_MS = 2000;
const MAX_WORDS = 300; // characters of a description

type FillInContext = {
  server: string;
  ref: Reference;
  what: string; // that is to be filled in
  person: Person;
  manager: McpManager;
  signal: AbortSignal;
};

/** All of them, or nothing if the user leaves: by Ctrl-C, or by an empty line where one is needed. */
export async function askForMissing(
  missing: Declared[],
  known: Record<string, string>,
  asked: FillInContext,
): Promise<Record<string, string> | undefined> {
  const values = { ...known };
  const { person, server, what, signal } = asked;
  for (const { name, description, isRequired } of missing) {
    const complete = (value: string) => candidates(asked, { name, value }, values);
    const words = description === '' ? [] : [`  ${line(description.slice(0, MAX_WORDS))}`];
    const needs = `${quoted(what)} of the MCP server ${quoted(server)} needs ${quoted(name)}.`;
    const lines = [needs, ...words];
    const prompt = `${line(name.slice(0, 40))} (Tab shows what the server knows)`;
    const answer = await person.ask({ lines, prompt, complete, signal });
    if (answer === undefined || (isRequired && answer.trim() === '')) return undefined;
    values[name] = answer;
  }
  return values;
}

/** Errors are silent: a server that cannot complete has nothing to add. */
export async function candidates(
  { manager, server, ref }: Pick<FillInContext, 'manager' | 'server' | 'ref'>,
  argument: { name: string; value: string },
  known: Record<string, string>,
): Promise<string[]> {
  const patience = wait(PATIENCE_MS, [], { ref: false });
  const ask = async () => completeArgument(manager.of(server), ref, argument, known);
  const found = ask().catch((): string[] => []);
  const words = await Promise.race([found, patience]);
  return words.filter((word) => /^[^\p{C}\p{Zl}\p{Zp}]+$/u.test(word));
}
