// row.ts: a row of the table is a tool: what the model is told of it, what it touches, and what it
// does. Every call of it passes the gate.

import type { Agent } from '../../agent.ts';
import type { Json, ServerStatus, ToolResult } from '../../mcp.ts';
import type { Choice } from '../17-the-gate/person.ts';
import type { AgentEvent } from './events.ts';
import type { Block, Model, ToolDefinition, Turn } from './said.ts';

/** A row of the table. Built-in and MCP tools differ only in what is in it. */
export type Tool = {
  definition: ToolDefinition;
  readOnly: boolean; // such calls run side by side; it does not make them allowed
  touches?: (args: Json) => Touch; // without it, no call is allowed unasked
  preview?: (args: Json) => Promise<Change>; // rejects if the call would fail, and says why
  consent?: (args: Json, signal: AbortSignal, caller?: string) => Promise<Verdict>; // asks itself
  origin?: { server: string; tool: Json }; // its MCP server, and how that describes it
  isOffered?: (servers: ServerStatus[]) => boolean; // if not, the model is not told of it
  forCall?: (args: Json) => Tool; // the row that runs: whose it is may depend on them
  caller?: string; // who wants it, in a question, if it is not the model that the user talks to
  meanwhile?: Meanwhile;
  run: (args: Json, context: ToolContext) => Promise<ToolOutput>; // may throw
};

/** In the place of "always", for a caller that comes and goes, such as an app. */
export type Meanwhile = { choice: Choice; isAllowed: () => boolean; allow: () => void };

/** What a call reads, writes or runs, for the gate to judge. */
export type Touch =
  | { kind: 'read' | 'write'; path: string }
  | { kind: 'shell'; command: string }
  | { kind: 'nothing' }; // it only thinks, or delegates to calls that pass the gate themselves

/** Of a file, as `diff -u` writes it: "" if it stays as it is. Notes are for the user. */
export type Change = {
  diff: string;
  notes: string[];
};
export type WholeText = { lines: number; path: string }; // that is too long to show

export type ToolContext = {
  signal: AbortSignal;
  onProgress: (progress: Json) => void;
  agent?: Agent; // the one that calls
  caller?: string; // in words, if it is a sub-agent
  emit?: (name: string, event: AgentEvent) => void; // what a sub-agent does during the call
  isUnasked?: boolean; // nobody looked at the call
};

export type ToolOutput = {
  blocks: Block[];
  isError: boolean;
  answer?: ToolResult; // of a server, as it came: its blocks are made of it
  change?: Change; // what it did to a file, for listeners; the model has it in the blocks
  whole?: WholeText; // the blocks are a part of it
  loads?: string[]; // tools that the model can call from now on
};

/** Chooses what a request shows of the table. The rest can still be found and called. */
export type Shelf = (offer: {
  table: ReadonlyMap<string, Tool>;
  turns: readonly Turn[];
  model: Model;
  window?: number; // tokens of the model's context
  servers: ServerStatus[];
}) => {
  rows: Tool[]; // in this order
  deferred?: Iterable<string>; // servers whose tools are not all among them
  words?: string; // for the prompt: what else there is
};

/** A server's tool that the model should not see. Without `tool` it is a whole server, which the
 *  manager does not start. */
export type SwitchedOff = {
  server: string;
  tool?: string;
};

/** Every call passes it before it runs, wherever its tool comes from. */
export type GateKeeper = (tool: Tool, args: Json, signal: AbortSignal) => Promise<Verdict>;
/** `failed`: the call would fail, so the user is not asked. `isUnasked`: nobody was, for a rule
 *  allows it. `isAsked`: the user was, about this very call. */
export type Verdict =
  | { allowed: true; isUnasked?: boolean; isAsked?: boolean }
  | { allowed: false; reason: string; outcome?: 'denied' | 'failed' };

/** For an agent without a gate. A tool's word that it only reads is not enough: it must also say
 *  what it reads. */
export const onlyReading: GateKeeper = async (tool, args) => {
  const touch = tool.touches?.(args);
  if (tool.readOnly && touch?.kind === 'read') return { allowed: true };
  return { allowed: false, reason: 'Only reading is allowed: this agent has no gate to ask.' };
};
