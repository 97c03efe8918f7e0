// A question put to a person line by line: a page to look at, a line that comes back.

import type { Choice, ChoiceQuestion, Chosen, Question } from './person.ts';
import { quoted } from './safe-text.ts';

/** The lines to show, and what stands where the answer is typed. */
export type Page = {
  lines: string[];
  prompt: string;
  isSecret?: boolean;
  complete?: (typed: string) => Promise<string[]>; // for Tab: whole answers that fit
  onlyIfSeen?: string[]; // these answers count only if all of the lines were in sight
};
/** Shows a page and reads a line. `undefined`: there is no answer, nor will there be another. */
export type Read = (page: Page) => Promise<string | undefined>;

// With a comment, any words are an answer. Not these: they may mean a yes, and none was offered.
const MAY_MEAN_YES = /^(ok|okay|sure|yep|yeah|a|always)$/i;
const IS_COMMAND = /^\/[\w-]+(\s|$)/; // meant for the program, which listens when this is answered

/** The lines of a question, below the name of the server that asks. */
export function headed({ from, lines }: Question): string[] {
  return from === undefined ? lines : [`The MCP server ${quoted(from)} asks:`, ...lines];
}

/** Asks until the answer is one of the choices, or a comment where that is allowed. */
export async function pick(read: Read, question: ChoiceQuestion): Promise<Chosen | undefined> {
  const { choices, comment, ifEmpty } = question;
  const labels = choices.map(({ label }) => label);
  const prompt = `${question.prompt} ${[...labels, ...(comment ? [comment] : [])].join(' / ')}`;
  const onlyIfSeen = hasty(question);
  let lines = headed(question);
  for (;;) {
    const typed = (await read({ lines, prompt, onlyIfSeen }))?.trim();
    if (typed === undefined) return undefined;
    const key = typed === '' ? ifEmpty : keyFor(typed, choices);
    if (key !== undefined) return { key };
    const isOther = typed === '' || MAY_MEAN_YES.test(typed) || IS_COMMAND.test(typed);
    if (comment !== undefined && !isOther) return { words: typed };
    const again = `Please answer ${listed(choices)}${comment ? `, ${comment}` : ''}.`;
    lines = [...headed(question), again]; // without them a yes would be one to what is out of sight
  }
}

/** Answers that agree to something and take no more than a key or two. */
function hasty({ choices, ifEmpty }: ChoiceQuestion): string[] {
  const keys = choices.filter(({ isNo }) => !isNo).map(({ key }) => key);
  return ifEmpty !== undefined && keys.includes(ifEmpty) ? [...keys, ''] : keys;
}

function keyFor(typed: string, choices: Choice[]): string | undefined {
  const lower = typed.toLowerCase();
  return choices.find(({ key, word }) => lower === key || lower === word)?.key;
}

/** "y, n or v" */
function listed(choices: Choice[]): string {
  const keys = choices.map(({ key }) => key);
  return [keys.slice(0, -1).join(', '), ...keys.slice(-1)].filter(Boolean).join(' or ');
}
