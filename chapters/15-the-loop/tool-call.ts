// tool-call.ts: one call of a tool, from the model's words to its result: found, read, allowed,
// run, and made to fit. However it ends, it has exactly one result.

import type { Agent } from '../../agent.ts';
import { asObject, blocksToText, now, textOf, type Json } from '../../mcp.ts';
import { nearest } from '../16-hands/nearest.ts';
import { fitResult, fromMcp, roomFor } from '../16-hands/results.ts';
import { cleanBlocks } from '../17-the-gate/safe-text.ts';
import { preparedArguments } from '../28-a-thousand-tools/tool-arguments.ts';
import { fitPictures } from '../28-a-thousand-tools/results/images.ts';
import { laneOf, type Lane } from '../28-a-thousand-tools/order.ts';
import type { Outcome } from './events.ts';
import { onlyReading, type Tool, type ToolContext, type ToolOutput } from './row.ts';
import { asBlocks, type Result, type ToolCall } from './said.ts';
import { unlessAborted } from './unless-aborted.ts';

const STOPPED = 'Stopped by the user, or out of time, before it was done.';
const NOT_LOADED = 'Not run yet: this tool was not loaded. It is now: call it again.';

/** What became of it, before it is made to fit. */
type Tried = Omit<ToolOutput, 'isError'> & { outcome: Outcome; isAsked?: boolean };

export class OneCall {
  readonly tool?: Tool; // if the model was shown one of that name
  private agent: Agent;
  private call: ToolCall;
  private shelved?: Tool; // it is there, and the model has not found it yet
  private startedAt?: number;
  private isForeign = false; // what comes of it is a server's

  constructor(agent: Agent, call: ToolCall) {
    this.agent = agent;
    this.call = call;
    this.tool = agent.tools.shown.get(call.name);
    this.shelved = agent.tools.shelved.get(call.name);
  }

  /** Each server has a line of its own, and so have the tools of ours that only read. The others
   *  run alone. */
  get lane(): Lane | undefined {
    const { tool } = this;
    if (tool?.readOnly) return { line: 'reading', isShared: true };
    if (!tool?.origin) return undefined;
    const { server, tool: described } = tool.origin;
    const entry = this.agent.options.mcp?.entry(server);
    return laneOf(`mcp ${server}`, described, entry?.config);
  }

  async run(signal: AbortSignal): Promise<Result> {
    const { call, tool } = this;
    if (this.shelved) return this.loadFirst(this.shelved);
    if (!tool) return this.refuse('unknown', this.noSuchTool());
    const { inputSchema } = tool.definition;
    if (!call.args) {
      const why = `${call.unreadable}\nThey must fit ${JSON.stringify(inputSchema)}`;
      return this.refuse('unreadable', why);
    }
    // As the server has it: the model's copy is cut and cleaned, and other values would fit it.
    const schema = asObject(tool.origin?.tool.inputSchema ?? inputSchema);
    const { args, refusal, note } = await preparedArguments(call.args, schema, signal);
    if (refusal) return this.refuse('unreadable', refusal);
    if (note) this.agent.emit({ type: 'note', text: `${call.name}: ${note}` });
    if (signal.aborted) return this.refuse('aborted', STOPPED); // without a question
    return this.finish(await this.tryTool(tool, args, signal));
  }

  /** It is not run. Emits a start as well, so that a listener never sees half a call. */
  refuse(outcome: Outcome, why: string): Result {
    const { id, name, args } = this.call;
    this.agent.emit({ type: 'tool_start', id, name, args });
    return this.finish({ outcome, blocks: asBlocks(why) });
  }

  private noSuchTool(): string {
    const { name } = this.call;
    const words = `There is no tool called ${JSON.stringify(name)}.`;
    const close = nearest(name, this.agent.tools.shown.keys());
    if (close.length > 0) return `${words} Did you mean ${close.join(' or ')}?`;
    return words;
  }

  /** The model wrote it without the definition, which comes with the next request. */
  private loadFirst({ definition }: Tool): Result {
    const schema = JSON.stringify(definition.inputSchema);
    const how = `Its arguments must fit ${schema}\n${definition.description}`;
    const result = this.refuse('unreadable', `${NOT_LOADED} ${how}`);
    return { ...result, loads: [definition.name] };
  }

  /** Passes the gate, then runs the tool. Never throws: what goes wrong is a result. */
  private async tryTool(tool: Tool, args: Json, signal: AbortSignal): Promise<Tried> {
    const { agent } = this;
    const { id, name } = this.call;
    agent.emit({ type: 'tool_start', id, name, args });
    const { gate = onlyReading } = agent.options;
    const context: ToolContext = {
      signal,
      onProgress: (progress) => agent.emit({ type: 'tool_progress', id, progress }),
      agent,
      caller: agent.options.caller,
      emit: (who, event) => agent.emit({ type: 'agent', id, name: who, event }),
    };
    try {
      tool = tool.forCall?.(args) ?? tool;
      this.isForeign = tool.origin !== undefined;
      const verdict = await unlessAborted(gate(tool, args, signal), signal);
      if (!verdict.allowed) {
        const { outcome = 'denied', reason } = verdict;
        return { outcome, blocks: asBlocks(reason) };
      }
      context.isUnasked = verdict.isUnasked;
      this.startedAt = now(); // not before: a person's time to answer is not the tool's
      const { isError, ...output } = await tool.run(args, context);
      fitPictures(output);
      const told = isError ? 'failed' : 'worked';
      return { ...output, isAsked: verdict.isAsked, outcome: signal.aborted ? 'aborted' : told };
    } catch (error) {
      if (signal.aborted) return { outcome: 'aborted', blocks: asBlocks(STOPPED) };
      return { outcome: 'failed', blocks: asBlocks(textOf(error)) };
    }
  }

  /** What the model gets to see of it. Here it is cut, and once more where all results of one
   *  answer are too much together. */
  private finish(tried: Tried): Result {
    const { id, name } = this.call;
    const { outcome } = tried;
    const isError = outcome !== 'worked';
    let { blocks } = tried;
    const { answer } = tried;
    const { resultsFolder } = this.agent.options;
    if (answer) blocks = fromMcp(answer, resultsFolder).blocks;
    const fitted = fitResult({ blocks, isError }, resultsFolder, name, roomFor(this.tool));
    blocks = fitted.blocks;
    tried.whole ??= fitted.whole;
    const ms = this.startedAt === undefined ? 0 : Math.round(now() - this.startedAt);
    const text = blocksToText(blocks);
    const { change, isAsked, whole } = tried;
    this.agent.emit({ type: 'tool_end', id, name, outcome, ms, text, whole, change, isAsked });
    blocks = cleanBlocks(blocks, this.isForeign); // for the model; a screen has its own way
    const result: Result = { id, name, blocks, isError };
    if (fitted.cut) result.cut = fitted.cut;
    if (isError && outcome !== 'failed') result.outcome = outcome;
    const { loads = [] } = tried;
    const found = loads.filter((each) => this.agent.tools.shelved.has(each));
    if (found.length > 0) result.loads = found;
    return result;
  }
}
