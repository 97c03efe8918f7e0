#!/usr/bin/env node
// agent.ts: a coding agent by hand. One loop, one table of tools, one gate.
//
//   prompt ──→ model ──→ calls ──→ gate ──→ tools ──→ results ──┐
//                ↑                                              │
//                └──────────────────────────────────────────────┘  until it answers without a call
//
// The loop prints nothing. It emits events, and a listener (a terminal, a file) shows them.
// A call passes the gate and is cut to size in tool-call.ts; here is only the order.

import { setMaxListeners } from 'node:events';
import { existsSync, realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { AgentEvent, ChatEnd, Ending } from './chapters/15-the-loop/events.ts';
import { systemPrompt } from './chapters/15-the-loop/prompt.ts';
import { Room } from './chapters/15-the-loop/room.ts';
import type { GateKeeper, Shelf, SwitchedOff, Tool } from './chapters/15-the-loop/row.ts';
import {
  repair,
  type AnswerEnd,
  type Model,
  type ModelRequest,
  type StopReason,
  type ToolCall,
  type Turn,
  type Usage,
} from './chapters/15-the-loop/said.ts';
import { OneCall } from './chapters/15-the-loop/tool-call.ts';
import { ToolTable } from './chapters/15-the-loop/tool-table.ts';
import { unlessAborted } from './chapters/15-the-loop/unless-aborted.ts';
import { roomFor } from './chapters/16-hands/results.ts';
import { StartUp } from './chapters/16-hands/start-up.ts';
import { compactTurns, type Compacted } from './chapters/18-minds/compact.ts';
import { NO_SERVER, toldModel, toldQuery, type AboutRequest } from './chapters/18-minds/seen.ts';
import { fitTurn } from './chapters/28-a-thousand-tools/results/budget.ts';
import { inLanes } from './chapters/28-a-thousand-tools/order.ts';
import { asObject, copyOf, textOf, type McpManager } from './mcp.ts';

export * from './chapters/15-the-loop/events.ts';
export * from './chapters/15-the-loop/row.ts';
export * from './chapters/15-the-loop/said.ts';
export { Scripted } from './chapters/15-the-loop/scripted.ts';
export { hands } from './chapters/16-hands/tools.ts';
export { Roots } from './chapters/16-hands/paths.ts';
export { Gate } from './chapters/17-the-gate/gate.ts';
export { Trust } from './chapters/17-the-gate/trust.ts';
export { chooseModel, ModelError } from './chapters/18-minds/models.ts';

const MAX_PAUSES = 5;
const MAX_SAID = 2_000_000; // characters of one answer
const MAX_KEPT = 100_000; // characters of an answer that failed: more would not fit a later request
const MAX_CALLS = 1000; // of one answer: more is an error; above `maxCalls` they are refused
const NEARLY_FULL = 0.8; // of the model's context: the answer needs room, too

const CUT_OFF = 'Not run: your answer was cut off. Be brief.';
const TOO_LONG = 'the conversation is too long for the model; start a new one with /clear';

export interface AgentOptions {
  model: Model;
  tools?: Tool[];
  gate?: GateKeeper; // without one, only reading is allowed
  mcp?: McpManager;
  switchedOff?: () => SwitchedOff[]; // called once for each answer of the model
  shelf?: Shelf; // for more tools than a request should hold
  resultsFolder: string; // for results that are too big for the model
  cwd?: string;
  notes?: () => string; // of the project, which the user has approved; part of every request
  prepare?: (signal: AbortSignal) => Promise<void>; // before each prompt, when the servers are up
  turns?: Turn[]; // a conversation to continue
  emit?: (event: AgentEvent) => void;
  record?: (turn: Turn) => void; // called for each turn as it happens
  recordCompacted?: (turns: Turn[]) => void; // from now on, these are the conversation
  contextWindow?: number; // tokens, if the model's own number is wrong or missing
  maxTurns?: number; // answers of the model to one prompt
  maxCalls?: number; // calls in one answer
  maxMs?: number; // for one prompt, including the time in which a person is asked
  caller?: string; // how questions call this agent, if it is a sub-agent
  graceMs?: number; // how long an answer waits for servers to start; by default for all
}

export class Agent {
  model: Model;
  turns: Turn[] = [];
  readonly options: AgentOptions;
  private said = ''; // the text of the answer that is being given, or was last
  readonly tools: ToolTable;
  readonly usage: Usage = { input: 0, output: 0, cached: 0 };
  context = 0; // tokens of the conversation, by the last answer; 0 if that is not known
  startUp = new StartUp(this);
  private room = new Room(this);
  private isRecording = true;
  request?: ModelRequest; // the last one
  before?: ModelRequest; // and the one before it
  counted?: Usage; // by the model, of that one

  constructor(options: AgentOptions) {
    this.options = options;
    this.model = options.model;
    this.tools = new ToolTable(this);
    if (options.turns) this.turns = repair(options.turns);
  }

  /** The tools that the model is shown, by name. */
  get table(): Map<string, Tool> {
    return this.tools.shown;
  }

  /** Queries the model and runs its calls, until it answers without a call. One prompt at a time;
   *  it may be several turns. Never throws: how it ended is in what it returns. */
  async chat(prompt: string | Turn[], stopped?: AbortSignal): Promise<ChatEnd> {
    const { maxTurns = 50, maxMs = 30 * 60_000 } = this.options;
    const time = AbortSignal.timeout(maxMs);
    const signal = stopped ? AbortSignal.any([stopped, time]) : time;
    let ending: Ending | undefined;
    let answers = 0;
    let pauses = 0;
    try {
      await this.begin(prompt, signal);
      while (!ending && answers < maxTurns) {
        answers++;
        const { turn, stop } = await this.query(signal);
        if (turn.calls.length > 0) await this.runCalls(turn.calls, stop, signal);
        else if (stop === 'pause' && pauses < MAX_PAUSES) pauses++;
        else ending = endingAfter(stop);
      }
      ending ??= 'turns';
    } catch (error) {
      ending = this.endingAfterError(error, signal, time);
    }
    const text = this.said;
    this.emit({ type: 'done', ending, text, turns: answers });
    return { ending, text };
  }

  private async begin(prompt: string | Turn[], signal: AbortSignal): Promise<void> {
    setMaxListeners(0, signal); // any number of calls may run side by side
    this.said = '';
    signal.throwIfAborted();
    this.turns = repair(this.turns); // the last chat may have failed in the midst of its calls
    await unlessAborted(this.startUp.wait(signal), signal);
    await this.options.prepare?.(signal);
    const words: Turn[] = typeof prompt === 'string' ? [{ role: 'user', text: prompt }] : prompt;
    for (const turn of words) this.push(turn);
    const texts = words.map((turn) => ('text' in turn ? turn.text : ''));
    this.emit({ type: 'prompt', text: texts.join('\n\n') });
  }

  private endingAfterError(error: unknown, signal: AbortSignal, time: AbortSignal): Ending {
    if (time.aborted) return 'time';
    if (signal.aborted) return 'aborted';
    const kind = kindOf(error) ?? 'unexpected';
    this.emit({ type: 'error', kind, message: textOf(error) });
    return 'error';
  }

  // ── One answer of the model ──

  /** What it says before it fails or is stopped stays in the conversation: the user has seen it. */
  private async query(signal: AbortSignal): Promise<AnswerEnd> {
    if (this.share >= NEARLY_FULL) await this.room.summarise(signal);
    this.tools.refresh();
    this.tools.arrange();
    this.tools.noticeChanges();
    this.said = '';
    try {
      const answer = await this.listen(signal);
      this.keep(answer);
      return answer;
    } catch (error) {
      const isTooLong = kindOf(error) === 'too-long' && !this.said;
      // The second time there is nothing left to forget, so this ends.
      if (isTooLong && this.room.forgetOldResults()) return this.query(signal);
      if (isTooLong && (await this.room.summarise(signal))) return this.query(signal);
      const isRefused = !this.said && (await this.tools.findRefused(this.request, error));
      if (isRefused) return this.query(signal);
      const text = copyOf(this.said.slice(0, MAX_KEPT));
      if (text) this.push({ role: 'assistant', text, calls: [] });
      throw error;
    }
  }

  /** Emits the pieces as they come. */
  private async listen(signal: AbortSignal): Promise<AnswerEnd> {
    const { model } = this;
    const request = this.nextRequest(signal);
    this.before = this.request;
    this.request = request;
    for await (const event of toldQuery(model, request, (told) => this.emit(told))) {
      if (event.type === 'end') return event;
      if (event.type === 'text') this.said += event.text;
      if (this.said.length > MAX_SAID) throw outOfBounds(`of more than ${MAX_SAID} characters`);
      this.emit(event);
    }
    throw new Error(`the model ${model.name} stopped without an end`);
  }

  /** All that the model gets to see, by the tools as they are arranged. */
  nextRequest(signal: AbortSignal = new AbortController().signal): ModelRequest {
    const turns = [...this.turns];
    const rows = [...this.tools.shown.values()];
    const tools = rows.map(({ definition }) => definition);
    const sections = systemPrompt(this);
    const owners = rows.map(({ origin }) => origin?.server ?? NO_SERVER);
    const about: AboutRequest = { sections, owners };
    about.shelved = this.tools.shelved;
    return {
      system: sections.map(({ text }) => text).join('\n\n'),
      turns,
      tools,
      signal,
      about,
    };
  }

  private keep({ turn, stop, explanation, usage }: AnswerEnd): void {
    const { length } = turn.calls;
    if (length > MAX_CALLS) throw outOfBounds(`with ${length} calls`);
    this.said = turn.text;
    this.counted = usage;
    if (usage) {
      this.count(usage);
      this.context = usage.input + usage.output;
    }
    if (stop === 'too-long') throw errorOfKind('too-long', TOO_LONG);
    if (this.share < NEARLY_FULL) this.room.mayCompact = true;
    if (explanation) this.note(explanation);
    const isEmpty = !turn.text && turn.calls.length === 0 && !turn.native;
    if (!isEmpty) this.push(turn); // some services refuse a conversation with an empty turn
  }

  private count(usage: Usage): void {
    this.usage.input += usage.input;
    this.usage.output += usage.output;
    this.usage.cached += usage.cached;
    this.emit({ type: 'usage', usage });
  }

  /** Tokens that fit into the model's context, if that is known. */
  get window(): number | undefined {
    return this.options.contextWindow ?? this.model.contextWindow;
  }

  /** How full the context is, from 0 to 1; 0 if that is not known. */
  get share(): number {
    return this.window ? this.context / this.window : 0;
  }

  /** Puts a summary in the place of all turns but the last. Throws if the model gives none, or if
   *  it is stopped: then the conversation is as it was. */
  async compact(
    words = '',
    signal: AbortSignal = new AbortController().signal,
  ): Promise<Compacted> {
    const note = (text: string) => this.note(text);
    const options = { words, window: this.window, signal, note };
    const turns = repair(this.turns);
    const model = toldModel(this.model, (told) => this.emit(told), 'a summary');
    const compacted = await compactTurns(model, turns, options);
    this.turns = compacted.turns;
    this.context = 0;
    for (const usage of compacted.usage) this.count(usage);
    this.tryToRecord(() => this.options.recordCompacted?.(compacted.turns));
    return compacted;
  }

  // ── Every call gets exactly one result, in the order of the calls ──

  private async runCalls(calls: ToolCall[], stop: StopReason, signal: AbortSignal): Promise<void> {
    const { maxCalls = 50 } = this.options;
    const tooMany = `Not run: more than ${maxCalls} calls in one answer.`;
    const all = calls.map((call) => new OneCall(this, call));
    const run = async (call: OneCall, n: number) => {
      // The last call may be half of what was meant, and the others may depend on it.
      if (stop === 'length') return call.refuse('unreadable', CUT_OFF);
      if (n >= maxCalls) return call.refuse('failed', tooMany);
      return call.run(signal);
    };
    // Two writes to one place are a race, so a call waits for those before it in its lane.
    const results = await inLanes(all, ({ lane }) => lane, run);
    const rooms = all.map(({ tool }) => roomFor(tool));
    fitTurn(results, this.options.resultsFolder, Math.max(...rooms));
    this.push({ role: 'tools', results });
    signal.throwIfAborted(); // not before: no call may be left without its result
  }

  // ── The conversation ──

  /** Starts the servers, once, however often it is called. Never rejects: what fails is a note. */
  connect(): Promise<void> {
    return this.startUp.connect();
  }

  /** Another agent like this one, with a conversation of its own. It makes no connections:
   *  both wait for what is still starting, and failures were reported already. */
  fork(changes: Partial<AgentOptions>): Agent {
    const { model, options } = this;
    const apart = { turns: [], record: undefined, recordCompacted: undefined };
    const child = new Agent({ ...options, model, ...apart, ...changes });
    child.startUp = this.startUp;
    return child;
  }

  /** Begins another conversation, a new one or these turns, independent of the old one. */
  startOver(turns: Turn[] = []): void {
    this.turns = repair(turns);
    this.isRecording = true;
    this.context = 0;
    this.room.mayCompact = true;
    this.tools.startOver();
  }

  private push(turn: Turn): void {
    this.turns.push(turn);
    this.tryToRecord(() => this.options.record?.(turn));
  }

  private tryToRecord(record: () => void): void {
    try {
      if (this.isRecording) record();
    } catch (error) {
      this.isRecording = false; // a full disk must not end the conversation
      this.note(`from here on, this conversation is not kept: ${textOf(error)}`);
    }
  }

  note(text: string): void {
    this.emit({ type: 'note', text });
  }

  emit(event: AgentEvent): void {
    try {
      this.options.emit?.(event);
    } catch {} // a listener that fails must not leave a call without its result
  }
}

function endingAfter(stop: StopReason): Ending {
  if (stop === 'length') return 'length';
  if (stop === 'refusal') return 'refusal';
  return 'done';
}

/** Errors of models and servers have a kind. */
function kindOf(error: unknown): string | undefined {
  const { kind } = asObject(error);
  return typeof kind === 'string' ? kind : undefined;
}

function errorOfKind(kind: string, message: string): Error {
  return Object.assign(new Error(message), { kind });
}

function outOfBounds(how: string): Error {
  return errorOfKind('protocol', `the model gave an answer ${how}, which is not kept`);
}

// Started as a program, and not imported by one. `import()` is not awaited: the terminal imports
// this file, and each would wait for the other.
const program = process.argv[1];
if (program && existsSync(program)) {
  const isThisFile = realpathSync(program) === fileURLToPath(import.meta.url);
  const args = process.argv.slice(2);
  if (isThisFile) void startProgram(args);
}

async function startProgram(args: string[]): Promise<void> {
  const { main } = await import('./chapters/19-the-terminal/main.ts');
  const loadComposition = async () => {
    const { compose } = await import('./chapters/composition.ts');
    return compose;
  };
  await main(args, loadComposition);
}
