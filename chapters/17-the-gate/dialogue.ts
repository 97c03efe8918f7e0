// A question put to a person line by line: a page to look at, a line that comes back.

import type { Choice, ChoiceQuestion, Chosen, Person, Question } from './person.ts';
import { quoted } from './safe-text.ts';

/** "[y]es, this entry": its key is in brackets, and the whole word is an answer, too. */
export function choice(label: string, isNo = false): Choice {
  const [, before = '', key = '', behind = ''] = /^(\w*)\[(\w)\](\w*)/.exec(label) ?? [];
  return { key, word: before + key + behind, label, isNo };
}

export const YES = choice('[y]es');
export const NO = choice('[n]o', true);
export const NOT_NOW: Choice = { ...NO, label: '[n]ot now' };
export const NEVER = choice('ne[v]er', true);

/** Does a person say yes? An empty line is a no, unless the question says otherwise. */
export async function agrees(
  person: Person,
  question: Omit<ChoiceQuestion, 'choices'>,
): Promise<boolean> {
  const answer = await person.choose({ ifEmpty: 'n', ...question, choices: [YES, NO] });
  return answer?.key === 'y';
}

/** Which of a few, by its number. */
export async function oneOfFew<T>(
  person: Person,
  title: string,
  few: T[],
  inWords: (one: T) => string,
): Promise<T | undefined> {
  const rows = few.slice(0, 9).map((one, n) => `  ${n + 1}: ${inWords(one)}`);
  const choices = rows.map((_, n) => choice(`[${n + 1}]`));
  const answer = await person.choose({ lines: [title, ...rows], prompt: 'Which?', choices });
  return few[Number(answer?.key) - 1];
}

/** The lines to show, and what stands where the answer is typed. */
export type DialoguePage = {
  lines: string[];
  prompt: string;
  isSecret?: boolean;
  isBrief?: boolean; // what is typed is to be seen until it is entered, and not any more
  complete?: (typed: string) => Promise<string[]>; // for Tab: whole answers that fit
  onlyIfSeen?: string[]; // these answers count only if all of the lines were in sight
};
/** Shows a page and reads a line. `undefined`: there is no answer, nor will there be another. */
export type Read = (page: DialoguePage) => Promise<string | undefined>;

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
    const keys = orList(choices.map(({ key }) => key));
    const again = `Please answer ${keys}${comment ? `, ${comment}` : ''}.`;
    lines = [...headed(question), again]; // without them a yes would be one to what is out of sight
  }
}

/** Answers that agree to something and take no more than a key or two. */
function hasty({ choices, ifEmpty }: ChoiceQuestion) {
  const keys = choices.filter(({ isNo }) => !isNo).map(({ key }) => key);
  return ifEmpty !== undefined && keys.includes(ifEmpty) ? [...keys, ''] : keys;
}

function keyFor(typed: string, choices: Choice[]) {
  const lower = typed.toLowerCase();
  return choices.find(({ key, word }) => lower === key || lower === word)?.key;
}

/** "a, b or c" */
export function orList(words: string[]): string {
  const before = words.slice(0, -1).join(', ');
  return [before, ...words.slice(-1)].filter(Boolean).join(' or ');
}
