// said.ts: what is said in a conversation, and what a model is.

import type { Json } from '../../mcp.ts';
import type { AboutRequest } from '../18-minds/seen.ts';
import type { Outcome } from './events.ts';

/** A conversation is a list of turns. A turn with calls is followed by one with their results. */
export type Turn =
  | { role: 'user'; text: string; images?: Image[] }
  | AssistantTurn
  | { role: 'tools'; results: Result[] }; // one for each call, in the order of the calls

/** `native` is the turn as the model's wire had it, for the same wire to send back unchanged. */
export type AssistantTurn = {
  role: 'assistant';
  text: string;
  calls: ToolCall[];
  native?: { wire: string; content: unknown };
};

/** The model wants a tool. Without `args` they could not be read, and `unreadable` says why. */
export type ToolCall = {
  id: string;
  name: string;
  args?: Json;
  unreadable?: string;
};

/** `id` and `name` are those of the call. */
export type Result = {
  id: string;
  name: string;
  blocks: Block[];
  isError: boolean;
  loads?: string[]; // tools that the model has found by it
  cut?: number; // characters that it does not show
  outcome?: Outcome; // if the call was not even run to its end
};

export type Block = { type: 'text'; text: string } | Image;
/** `data` is base64, `mimeType` one of image/png, image/jpeg, image/gif, image/webp. */
export type Image = {
  type: 'image';
  mimeType: string;
  data: string;
};

export interface Model {
  readonly name: string; // such as "rehearsal" or "anthropic/claude-sonnet-5"
  contextWindow?: number; // tokens that it can read, if that is known
  readonly maxTools?: number; // that its wire takes in one request
  bodyFor?(request: ModelRequest): Json; // what its wire sends
  query(request: ModelRequest): AsyncIterable<ModelEvent>; // throws when there is no answer
}

/** All that a model knows: it remembers nothing from one request to the next. */
export type ModelRequest = {
  system: string;
  turns: Turn[];
  tools: ToolDefinition[];
  signal: AbortSignal;
  maxTokens?: number; // of the answer, where that is to be shorter than usual
  about?: AboutRequest; // for those who look on
};

export type ToolDefinition = {
  name: string;
  description: string;
  inputSchema: Json;
};

export type ModelEvent =
  | { type: 'text'; text: string } // a piece of the answer
  | { type: 'note'; text: string } // not of the answer: "busy, trying again in 2 s"
  | AnswerEnd;

/** Comes once, as the last event. `turn` is the whole answer, `explanation` is for the user. */
export type AnswerEnd = {
  type: 'end';
  turn: AssistantTurn;
  stop: StopReason;
  explanation?: string;
  usage?: Usage;
};

/** `tools`: it has calls. `length`: it was cut off. `pause`: the model wants to go on.
 *  `too-long`: the conversation does not fit. Any other word is a wire's own, and means done. */
export type StopReason =
  | 'done'
  | 'tools'
  | 'length'
  | 'pause'
  | 'refusal'
  | 'too-long'
  | (string & {});

/** Tokens of one answer. `input` is everything that was read, `cached` what a cache had of it. */
export type Usage = {
  input: number;
  output: number;
  cached: number;
};

const LOST = 'Unknown: the program ended before the result came.';

export const asBlocks = (text: string): Block[] => [{ type: 'text', text }];

/** A conversation that was cut off, by a crash or kill -9, may lack results, or the calls that
 *  they belong to. */
export function repair(turns: Turn[]): Turn[] {
  const repaired: Turn[] = [];
  for (const [n, turn] of turns.entries()) {
    if (turn.role === 'tools') continue; // they are pushed along with their calls
    repaired.push(turn);
    if (turn.role === 'user' || turn.calls.length === 0) continue;
    const next = turns[n + 1];
    const found = next?.role === 'tools' ? next.results : [];
    const results = turn.calls.map(({ id, name }, k) => {
      const result = found[k];
      if (result?.id === id) return result; // its own, and not that of another
      return { id, name, blocks: asBlocks(LOST), isError: true };
    });
    repaired.push({ role: 'tools', results });
  }
  return repaired;
}
