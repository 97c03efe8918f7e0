// Going on with a conversation: by its name or id, or by a list to choose from.

import type { Turn } from '../../../agent.ts';
import { plain, quoted } from '../../17-the-gate/safe-text.ts';
import { matchingConversations, type Conversation } from '../session-file.ts';
import type { Program } from '../program.ts';
import { cutToWidth } from '../screen.ts';
import { Show } from '../show.ts';

const MAX_LISTED = 20;
const MAX_SHOWN = 12; // turns
const MAX_NAME = 60; // characters
const ID_SHOWN = 8;
const PROMPT_SHOWN = 60;
export const NO_CONVERSATION = 'there is no conversation in this folder to go on with';
export const COPY =
  'another mcp-by-hand has that conversation open: this is a copy, and each goes on with its own';

/** The one that is meant. Throws with the list if there is none, or more than one. */
export function findConversation(kept: Conversation[], wanted: string): Conversation {
  const found = matchingConversations(kept, wanted);
  const [first, second] = found;
  if (kept.length === 0) throw new Error(NO_CONVERSATION);
  if (!first) throw new Error(`no conversation is ${quoted(wanted)}; ${conversationList(kept)}`);
  if (second) throw new Error(`more than one may be ${quoted(wanted)}; ${conversationList(found)}`);
  return first;
}

/** For a program that cannot ask. */
export function conversationList(kept: Conversation[]): string {
  if (kept.length === 0) return NO_CONVERSATION;
  const rows = choices(kept).map((each) => `  ${each.id.slice(0, ID_SHOWN)}  ${lineOf(each)}`);
  return ['there are these, by id or name:', ...rows].join('\n');
}

/** What people talked in. Scripts know the ids of theirs, and may have made thousands. */
function choices(kept: Conversation[]) {
  const chats = kept.filter(({ kind }) => kind === 'chat');
  return (chats.length > 0 ? chats : kept).slice(0, MAX_LISTED);
}

function lineOf({ name, usedAt, firstPrompt, count }: Conversation) {
  const time = new Date(usedAt).toLocaleString('sv').slice(0, 16); // 2026-01-31 12:00, as it is here
  const called = name ? [`called ${quoted(name)}`] : [];
  return [time, turnCount(count), ...called, quoted(cutToWidth(firstPrompt, PROMPT_SHOWN))].join(
    ' · ',
  );
}

const turnCount = (count: number) => (count === 1 ? '1 turn' : `${count} turns`);

/** Asks which one. Nothing means: none of them. */
async function choose(kept: Conversation[], { person, session }: Program, signal: AbortSignal) {
  const shown = choices(kept);
  const here = ({ id }: Conversation) => (id === session.id ? ' · this one' : '');
  const rows = shown.map((each, n) => `${String(n + 1).padStart(3)}  ${lineOf(each)}${here(each)}`);
  let lines = ['Conversations in this folder:', ...rows];
  const prompt = 'Which one? A number or a name, or Enter for none';
  for (;;) {
    const typed = (await person.ask({ lines, prompt, signal }))?.trim();
    if (!typed) return undefined;
    const chosen = /^\d{1,2}$/.test(typed) ? shown[Number(typed) - 1] : undefined;
    const found = chosen ? [chosen] : matchingConversations(kept, typed);
    if (found.length === 1) return found[0];
    lines = [`${found.length === 0 ? 'None' : 'More than one'} of them is ${quoted(typed)}.`];
  }
}

/** For `--resume` and `/resume`. Without words the person is asked. Was one chosen? */
export async function resume(
  wanted: string,
  program: Program,
  signal: AbortSignal,
): Promise<boolean> {
  const { session, agent, person } = program;
  const kept = session.list();
  const mayAsk = person.isThere && kept.length > 0;
  if (wanted === '' && !mayAsk) throw new Error(conversationList(kept));
  const chosen = wanted ? findConversation(kept, wanted) : await choose(kept, program, signal);
  if (!chosen || signal.aborted) return false;
  agent.startOver(session.resume(chosen));
  return true;
}

/** How long the conversation is, and its last turns as they were. */
export function tellWhereWeAre(program: Program): void {
  const { agent, session, screen } = program;
  const { turns } = agent;
  if (turns.length === 0) return;
  const name = session.name ? ` with ${quoted(session.name)}` : '';
  screen.say(`going on${name}, ${turnCount(session.count)}`, 'dim');
  const isPrompt = ({ role }: Turn) => role === 'user';
  const last = turns.findLastIndex(isPrompt);
  const before = turns.slice(0, last).findLastIndex(isPrompt);
  const from = last - before > MAX_SHOWN ? last : before; // -1 is none, and then there is but one
  const shown = turns.slice(Math.max(from, 0, turns.length - MAX_SHOWN));
  new Show(program).turns(shown);
}

/** For `/name`. */
export function conversationName(words: string[]): string {
  const name = plain(words.join(' ')).replace(/\s+/g, ' ').trim();
  if (name.length > MAX_NAME) throw new Error(`a name has at most ${MAX_NAME} characters`);
  return name;
}
