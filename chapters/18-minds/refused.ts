// refused.ts: a service refuses the whole request for one tool whose schema it does not like (chapter
// 28). Which one? Most say it, each in its own way. For the others we halve the list.

import type { Model, ModelRequest } from '../../agent.ts';
import { asObject } from '../../mcp.ts';

const ABOUT_TOOLS = /tool|function|schema|parameters|grammar/i;
const FEW = 16; // tokens; some services take no less
// tools.12.custom.input_schema: …, or 'tools[12].function.parameters'
const BY_NUMBER = /\btools(?:\.|\[)(\d{1,5})\b/;

/** The tool because of which a request was refused; nothing if that was not the reason. */
export async function refusedTool(
  model: Model,
  request: ModelRequest,
  error: unknown,
): Promise<string | undefined> {
  const { status, message } = asObject(error);
  const isRefusal = status === 400 || status === 422;
  const words = `${message}`;
  if (!isRefusal || !ABOUT_TOOLS.test(words)) return undefined;
  return namedIn(words, request) ?? (await halving(model, request));
}

function namedIn(words: string, { tools }: ModelRequest) {
  const [, number] = BY_NUMBER.exec(words) ?? [];
  if (number !== undefined && tools[Number(number)]) return tools[Number(number)]!.name;
  const quoted = new Set(words.split(/[^A-Za-z0-9_-]+/));
  const named = tools.filter(({ name }) => name.startsWith('mcp__') && quoted.has(name));
  return named.length === 1 ? named[0]!.name : undefined;
}

/** Each round asks for a few words, with half of what is left. If it is refused without any tool of a
 *  server, too, then it was something else; and so it was if the last one alone is taken: there may
 *  be too many of them. */
async function halving(model: Model, request: ModelRequest) {
  const own = request.tools.filter(({ name }) => !name.startsWith('mcp__'));
  let suspects = request.tools.filter(({ name }) => name.startsWith('mcp__'));
  const isTaken = async (some: ModelRequest['tools']) =>
    isAnswered(model, { ...request, tools: [...own, ...some], maxTokens: FEW });
  if (suspects.length === 0 || !(await isTaken([]))) return undefined;
  while (suspects.length > 1) {
    const half = suspects.slice(0, suspects.length >> 1);
    suspects = (await isTaken(half)) ? suspects.slice(half.length) : half;
  }
  return (await isTaken(suspects)) ? undefined : suspects[0]!.name;
}

async function isAnswered(model: Model, request: ModelRequest) {
  try {
    for await (const event of model.query(request)) if (event.type !== 'note') return true;
    return true;
  } catch (error) {
    request.signal.throwIfAborted();
    const { status } = asObject(error);
    if (typeof status === 'number' && status >= 400) return false;
    throw error; // the line is down, say: that tells nothing about tools
  }
}
