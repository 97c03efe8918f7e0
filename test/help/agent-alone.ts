// The loop alone: an agent with a scripted model, tools that do what the test wants, and a record of what happens.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import {
  Agent,
  Scripted,
  type AgentEvent,
  type AgentOptions,
  type Tool,
  type Turn,
} from '../../agent.ts';
import type { ScriptLine } from '../../chapters/15-the-loop/scripted.ts';
import type { Json } from '../../mcp.ts';
import { folder } from './basics.ts';

/** A row of the table that does what the test wants. */
export function row(name: string, run: Tool['run'], more: Partial<Tool> = {}): Tool {
  return {
    definition: { name, description: '', inputSchema: { type: 'object' } },
    readOnly: false,
    run,
    ...more,
  };
}
export const saying = (text: string) => async () => ({
  blocks: [{ type: 'text' as const, text }],
  isError: false,
});

/** Two tools, for texts on a shelf: the loop does not care what a tool does. */
export function shelf(texts: Record<string, string> = {}): Tool[] {
  const read: Tool['run'] = ({ path }) => saying(texts[path as string]!)();
  const write: Tool['run'] = ({ path, content }) =>
    saying((texts[path as string] = content as string))();
  const touches: Tool['touches'] = ({ path }) => ({ kind: 'read', path: `${path}` });
  return [row('read', read, { readOnly: true, touches }), row('write', write)];
}

/** A gate that stands open. */
export const yes = async () => ({ allowed: true as const });

/** A model's answer with these calls, and the answer that ends the chat. */
export const calls = (...each: [name: string, args: Json][]): ScriptLine[] => [
  { calls: each.map(([name, args]) => ({ name, args })) },
  'done',
];

/** Without more, it has no tools, and no gate. */
export function prepareLoop({
  script = [],
  ...options
}: Partial<AgentOptions> & { script?: ScriptLine[] } = {}) {
  const events: AgentEvent[] = [];
  const recorded: Turn[] = [];
  const model = new Scripted(script);
  const agent = new Agent({
    model,
    resultsFolder: join(folder(), 'results'),
    emit: (event) => events.push(event),
    record: (turn) => recorded.push(structuredClone(turn)),
    ...options,
  });
  const of = <T extends AgentEvent['type']>(type: T) =>
    events.filter((event) => event.type === type) as Extract<AgentEvent, { type: T }>[];
  /** In the order of the calls, whichever ended first. */
  const outcomes = () => {
    const ids = agent.turns.flatMap((turn) =>
      turn.role === 'assistant' ? turn.calls.map(({ id }) => id) : [],
    );
    return of('tool_end')
      .sort((a, b) => ids.indexOf(a.id) - ids.indexOf(b.id))
      .map(({ outcome }) => outcome);
  };
  /** The results of the last answer with calls, as the model got them. */
  const results = () => {
    const turn = agent.turns.findLast((each) => each.role === 'tools');
    return (turn?.results ?? []).map(({ id, name, blocks, isError }) => ({
      id,
      name,
      isError,
      text: blocks
        .map((block) => (block.type === 'text' ? block.text : `[${block.mimeType}]`))
        .join('\n'),
    }));
  };
  return {
    agent,
    model,
    events,
    of,
    outcomes,
    results,
    recorded,
    resultsFolder: agent.options.resultsFolder,
  };
}

/** After each answer with calls comes one turn with a result for each, in the order of the calls. */
export function assertPaired(turns: Turn[]): void {
  for (const [n, turn] of turns.entries()) {
    if (turn.role === 'tools') assert.equal(turns[n - 1]?.role, 'assistant');
    if (turn.role !== 'assistant' || turn.calls.length === 0) continue;
    const next = turns[n + 1];
    assert.ok(next?.role === 'tools', 'results follow');
    assert.deepEqual(
      next.results.map(({ id, name }) => [id, name]),
      turn.calls.map(({ id, name }) => [id, name]),
    );
    assert.ok(
      next.results.every(({ blocks }) => blocks.length > 0),
      'no result is empty',
    );
  }
}
