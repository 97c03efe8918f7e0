// server-rows.ts: what a server offers, as rows: tools, resources, templates of resources, prompts.
// A handler is a function, and is written once for both eras and for every transport.

import { asObject, isObject, ownValue, RpcError, type Json } from '../../../mcp.ts';
import type { ServerCall } from '../server-call.ts';

/** What a tool returns: text, or a result with blocks. `structuredContent` alone will do: its JSON
 *  is then the text, too, for clients that only read text. */
type ToolAnswer = string | Json;

/** What `run` throws becomes a result with isError, for the model to read. A RpcError stays an
 *  error of the protocol, for the program. */
export type ServerTool = {
  name: string; // 1 to 128 of A-Z a-z 0-9 _ . -
  title?: string;
  description: string;
  inputSchema?: Json; // arguments that do not fit it never reach `run`
  outputSchema?: Json;
  annotations?: Json;
  _meta?: Json; // for hosts, such as the app that shows its results
  isOffered?: (call: ServerCall) => boolean; // if not, this client has no such tool
  run: (args: Json, call: ServerCall) => ToolAnswer | Promise<ToolAnswer>;
};

/** What reading returns: text, bytes, or the contents as the specification has them. */
export type ResourceAnswer = string | Uint8Array | Json[];

export type ServerResource = {
  uri: string;
  name: string;
  title?: string;
  description?: string;
  mimeType?: string;
  read: (call: ServerCall) => ResourceAnswer | Promise<ResourceAnswer>;
};

type Completer = (value: string, others: Json, call: ServerCall) => string[] | Promise<string[]>;

/** Many resources in one row: {id} is a part without a slash, {+path} may have some. */
export type ServerTemplate = {
  uriTemplate: string;
  name: string;
  title?: string;
  description?: string;
  mimeType?: string;
  read: (
    values: Record<string, string>,
    call: ServerCall,
  ) => ResourceAnswer | undefined | Promise<ResourceAnswer | undefined>; // undefined: not found
  list?: (call: ServerCall) => Json[] | Promise<Json[]>; // those that resources/list names
  complete?: Record<string, Completer>; // by the name of the value
};

type PromptArgument = {
  name: string;
  description?: string;
  required?: boolean;
  complete?: Completer;
};

/** Text is one message of the user. */
type PromptAnswer = string | Json[];

export type ServerPrompt = {
  name: string;
  title?: string;
  description: string;
  arguments?: PromptArgument[];
  get: (args: Record<string, string>, call: ServerCall) => PromptAnswer | Promise<PromptAnswer>;
};

// ─── From what a handler returns to what goes on the wire ──────────────────────────────────────

export const textBlock = (text: string): Json => ({ type: 'text', text });
/** What went wrong, for the model. */
export const failed = (text: string): Json => ({ content: [textBlock(text)], isError: true });

export function toolResult(answer: ToolAnswer): Json {
  if (typeof answer === 'string') return { content: [textBlock(answer)] };
  const { content, structuredContent } = answer;
  if (content !== undefined || structuredContent === undefined) return { content: [], ...answer };
  return { content: [textBlock(JSON.stringify(structuredContent))], ...answer };
}

export function contentsOf(answer: ResourceAnswer, uri: string, mimeType?: string): Json[] {
  if (Array.isArray(answer)) return answer;
  const about = { uri, ...(mimeType !== undefined && { mimeType }) };
  if (typeof answer === 'string') return [{ ...about, text: answer }];
  return [{ ...about, blob: Buffer.from(answer).toString('base64') }];
}

export function promptMessages(answer: PromptAnswer): Json[] {
  if (typeof answer !== 'string') return answer;
  return [{ role: 'user', content: textBlock(answer) }];
}

/** What a list tells of a row: everything but its functions. */
export function described(row: object): Json {
  const shown = Object.entries(row).filter(
    ([, value]) => value !== undefined && typeof value !== 'function',
  );
  return Object.fromEntries(shown);
}

export function describedPrompt({ arguments: args = [], ...prompt }: ServerPrompt): Json {
  return { ...described(prompt), arguments: args.map(described) };
}

export function describedTemplate({ complete: _, ...template }: ServerTemplate): Json {
  return described(template);
}

export function describedTool(tool: ServerTool): Json {
  return { ...described(tool), inputSchema: tool.inputSchema ?? { type: 'object' } };
}

/** The arguments of a prompt are texts. */
export function promptArguments(prompt: ServerPrompt, given: unknown): Record<string, string> {
  const args = asObject(given);
  for (const { name, required } of prompt.arguments ?? []) {
    const value = ownValue(args, name);
    if (value === undefined && !required) continue;
    if (typeof value !== 'string') {
      const problem = value === undefined ? 'is missing' : 'is not a string';
      throw new RpcError(-32602, `${prompt.name}: the argument ${name} ${problem}`);
    }
  }
  return args as Record<string, string>;
}

// ─── Pages ─────────────────────────────────────────────────────────────────────────────────────

/** A part of a list. The cursor says where it goes on; clients do not look into it. */
export function pageOf<Row>(key: string, all: Row[], { cursor }: Json, size = 1000) {
  const start = cursor === undefined ? 0 : positionIn(cursor);
  const end = start + size;
  const more = end < all.length && { nextCursor: cursorAt(end) };
  return { [key]: all.slice(start, end), ...more };
}

const cursorAt = (position: number) => Buffer.from(`at ${position}`).toString('base64url');

function positionIn(cursor: unknown) {
  const [, digits] = /^at (\d{1,9})$/.exec(`${Buffer.from(`${cursor}`, 'base64url')}`) ?? [];
  const position = Number(digits);
  if (typeof cursor !== 'string' || cursor !== cursorAt(position))
    throw new RpcError(-32602, 'Unknown cursor');

  return position;
}

// ─── Templates ─────────────────────────────────────────────────────────────────────────────────

const MAX_URI = 10_000;

/** The values in a URI, by their names; nothing if it does not match. */
export function matchTemplate(template: string, uri: string): Record<string, string> | undefined {
  if (uri.length > MAX_URI) return undefined;
  const names: string[] = [];
  const source = template.split(/(\{[^{}]*\})/).map((part) => {
    if (!part.startsWith('{')) return part.replace(/[.*+?^$()|[\]\\{}]/g, '\\$&');
    const isPath = part.startsWith('{+');
    names.push(part.slice(isPath ? 2 : 1, -1));
    return isPath ? '(.+)' : '([^/]+)';
  });
  const found = new RegExp(`^${source.join('')}$`, 's').exec(uri);
  if (!found) return undefined;
  try {
    return Object.fromEntries(names.map((name, n) => [name, decodeURIComponent(found[n + 1]!)]));
  } catch {
    return undefined; // a % that is not one
  }
}

/** How many of the values of a completion there are, and the first hundred. */
export function completion(values: string[]): Json {
  const most = 100;
  const shown = values.slice(0, most);
  return { values: shown, total: values.length, hasMore: values.length > most };
}

const isText = (value: unknown): value is string => typeof value === 'string';

/** A part of the parameters that must be a string. */
export function stringParam(params: Json, key: string): string {
  const value = params[key];
  if (!isText(value)) throw new RpcError(-32602, `${key} is missing or is not a string`);
  return value;
}

/** `arguments` may be left out, but may not be anything else than an object. */
export function argumentsIn(params: Json): Json {
  const { arguments: args = {} } = params;
  if (!isObject(args)) throw new RpcError(-32602, 'arguments is not an object');
  return args;
}
