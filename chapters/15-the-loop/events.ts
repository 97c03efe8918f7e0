// events.ts: what a chat tells while it goes on, and how it ends.

import type { Json } from '../../mcp.ts';
import type { SeenRequest } from '../18-minds/seen.ts';
import type { Change, WholeText } from './row.ts';
import type { StopReason, Usage } from './said.ts';

export type AgentEvent =
  | { type: 'prompt'; text: string }
  | ModelQuery
  | { type: 'answer'; id: number; text: string; calls: Json[]; stop: StopReason; usage?: Usage }
  | { type: 'text'; text: string } // a piece of the answer
  | { type: 'note'; text: string } // for the user
  | { type: 'tool_start'; id: string; name: string; args?: Json }
  | { type: 'tool_progress'; id: string; progress: Json }
  | ToolEnd
  | { type: 'agent'; id: string; name: string; event: AgentEvent } // of a sub-agent, by its call
  | { type: 'question'; server: string; message: string; action: string } // and how it was answered
  | { type: 'usage'; usage: Usage }
  | { type: 'error'; kind: string; message: string }
  | { type: 'done'; ending: Ending; text: string; turns: number };

/** The model is queried. `seen` tells what it gets to see, as long as nothing has changed. */
export type ModelQuery = {
  type: 'query';
  id: number;
  model: string;
  turns: number;
  tools: number;
  purpose?: string; // if it is not for the next answer of a conversation
  seen: () => SeenRequest;
};
export type ToolEnd = {
  type: 'tool_end';
  id: string;
  name: string;
  outcome: Outcome;
  ms: number;
  text: string;
  whole?: WholeText;
  change?: Change;
  isAsked?: boolean; // the user has just seen the arguments, and the change, in a question
};

/** How a call ended. */
export type Outcome = 'worked' | 'failed' | 'denied' | 'aborted' | 'unknown' | 'unreadable';

/** How a chat ended. */
export type Ending = 'done' | 'length' | 'refusal' | 'aborted' | 'time' | 'turns' | 'error';
export type ChatEnd = {
  ending: Ending;
  text: string; // of the last answer
};
