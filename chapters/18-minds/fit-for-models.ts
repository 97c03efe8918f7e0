// fit-for-models.ts: what both wires demand of names, ids, schemas and arguments. One misfit, and
// every request that has it in its history is refused.

import type { Block, Result, ToolCall, ToolDefinition, Turn } from '../../agent.ts';
import { isObject, tooMuchIn, textOf, type Json } from '../../mcp.ts';

const MAX_ARGUMENTS = 2_000_000; // characters: they go back with every later request

/** A model may invent a tool. That its name is sent back must not be what ends the conversation. */
export function fitToolName(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 64) || 'unnamed';
}

/** An id for every call, and the same for its result. Some servers begin at call_0 with each answer, or give none at
 *  all. The same turns always get the same ids, so that what a server has cached remains valid. */
export function fitIds(turns: Turn[], maxLength: number): Map<ToolCall | Result, string> {
  const ids = new Map<ToolCall | Result, string>();
  const used = new Set<string>();
  let calls: ToolCall[] = [];
  for (const turn of turns) {
    if (turn.role === 'assistant') {
      calls = [...turn.calls]; // of which the agent keeps a thousand at most
      for (const call of calls) {
        const wanted = call.id.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, maxLength - 6) || 'call';
        let id = wanted;
        for (let n = 2; used.has(id); n++) id = `${wanted}_${n}`;
        used.add(id);
        ids.set(call, id);
      }
    }
    if (turn.role !== 'tools') continue;
    for (const result of turn.results) {
      const index = calls.findIndex(({ id }) => id === result.id);
      const [call] = index === -1 ? [] : calls.splice(index, 1); // taken out: two calls may share an id
      ids.set(result, (call && ids.get(call)) ?? result.id);
    }
  }
  return ids;
}

/** Both APIs insist on an object at the root, and refuse all tools if one of them has a choice there. A choice moves
 *  into the description: the model still reads it, and the tool's server checks the arguments anyway. */
export function fitTool({ name, description, inputSchema }: ToolDefinition): ToolDefinition {
  const choices: Json = {};
  const rest: Json = {};
  for (const [key, value] of Object.entries(inputSchema))
    (['oneOf', 'anyOf', 'allOf', 'enum', 'not'].includes(key) ? choices : rest)[key] = value;
  const more =
    Object.keys(choices).length > 0
      ? `\n\nThe arguments must also fit ${JSON.stringify(choices)}`
      : '';
  return {
    name,
    description: description + more,
    inputSchema: { properties: {}, ...rest, type: 'object' },
  };
}

/** The arguments of a call. None at all means {}, but not if the answer was cut off: then they were still to come. */
export function readArguments(
  text: string,
  isCutOff: boolean,
): Pick<ToolCall, 'args' | 'unreadable'> {
  if (text.trim() === '')
    return isCutOff ? { unreadable: 'the answer was cut off before the arguments' } : { args: {} };
  const quoted = text.length > 500 ? `${text.slice(0, 500)}…` : text;
  if (text.length > MAX_ARGUMENTS)
    return { unreadable: `more than ${MAX_ARGUMENTS} characters: ${quoted}` };
  const tooMuch = tooMuchIn(text); // what is nested deeper than that cannot be written again
  if (tooMuch) return { unreadable: `${tooMuch}, in: ${quoted}` };
  try {
    const args = JSON.parse(text);
    if (isObject(args)) return { args };
    return { unreadable: `not a JSON object: ${quoted}` };
  } catch (error) {
    return { unreadable: `${textOf(error)}, in: ${quoted}` };
  }
}

/** What a tool has said, without the empty texts that APIs refuse. */
export function fitBlocks(blocks: Block[]): Block[] {
  const full = blocks.filter((block) => block.type !== 'text' || block.text.trim() !== '');
  return full.length > 0 ? full : [{ type: 'text', text: '(no output)' }];
}

/** How many tokens, by the word of a server. They are added up: one text, or 1e999, and the sum of
 *  the whole session would be nonsense. */
export function tokenCount(value: unknown): number {
  return Number.isSafeInteger(value) && Number(value) > 0 ? Number(value) : 0;
}
