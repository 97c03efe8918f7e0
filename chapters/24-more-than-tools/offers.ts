// offers.ts: what servers have besides tools. Functions for one server, and `Offers` for all of them.

import {
  asObject,
  excerpt,
  isObject,
  isOnOffer,
  RpcError,
  textOf,
  type CallOptions,
  type Json,
  type McpConnection,
  type McpManager,
  type ServerStatus,
} from '../../mcp.ts';

export type Resource = Json & { uri: string };
export type ResourceTemplate = Json & { uriTemplate: string };
export type Prompt = Json & { name: string };
/** It has a `text`, or a `blob` in base64. */
export type ResourceContents = Json;
export type PromptMessage = {
  role: 'user' | 'assistant';
  content: unknown[];
};
export type Reference =
  | { type: 'ref/prompt'; name: string }
  | { type: 'ref/resource'; uri: string };

// ─── One server ────────────────────────────────────────────────────────────────────────────────

export function listResources(connection: McpConnection): Promise<Resource[]> {
  return listOf(connection, 'resources/list', 'resources', 'uri');
}

export function listResourceTemplates(connection: McpConnection): Promise<ResourceTemplate[]> {
  return listOf(connection, 'resources/templates/list', 'resourceTemplates', 'uriTemplate');
}

export function listPrompts(connection: McpConnection): Promise<Prompt[]> {
  return listOf(connection, 'prompts/list', 'prompts', 'name');
}

/** What can be used of a list: objects with a text under `key`, each once. Servers announce lists
 *  and then do not know the request for them; that is an empty list. */
async function listOf<T extends Json>(
  connection: McpConnection,
  method: string,
  list: string,
  key: string,
): Promise<T[]> {
  const [offer = ''] = method.split('/');
  const offers = connection.server?.capabilities;
  if (offers && !offers[offer]) return [];
  const all = await connection.listAll(method, list).catch(noneIfUnknown);
  const byKey = new Map<string, T>();
  for (const row of all.filter(isObject)) {
    const name = row[key];
    const isUsable = typeof name === 'string' && name !== '';
    if (isUsable) byKey.set(name, row as T);
  }
  return [...byKey.values()];
}

/** For a list that a server announced, and whose method it does not know. */
function noneIfUnknown(error: unknown): unknown[] {
  if (error instanceof RpcError && error.code === -32601) return [];
  throw error;
}

/** Mostly one, but a folder may have many. */
export async function readResource(
  connection: McpConnection,
  uri: string,
  options?: CallOptions,
): Promise<ResourceContents[]> {
  const { contents } = await connection.request('resources/read', { uri }, options);
  if (Array.isArray(contents)) return contents.filter(isObject);
  throw connection.error('protocol', `answered resources/read with contents ${excerpt(contents)}`);
}

/** Only when the user wants it: some servers act on this request. */
export async function getPrompt(
  connection: McpConnection,
  name: string,
  args: Record<string, string> = {},
  options?: CallOptions,
): Promise<PromptMessage[]> {
  const params = { name, arguments: args };
  const { messages } = await connection.request('prompts/get', params, options);
  if (!Array.isArray(messages))
    throw connection.error('protocol', `answered prompts/get with messages ${excerpt(messages)}`);

  const said = messages.filter(isObject);
  return said.map(({ role, content = [] }) => ({
    role: role === 'assistant' ? role : 'user',
    content: [content].flat(),
  }));
}

/** Completions for the value of an argument; `others` are the arguments that are known. */
export async function completeArgument(
  connection: McpConnection,
  ref: Reference,
  argument: { name: string; value: string },
  others: Record<string, string> = {},
): Promise<string[]> {
  const params: Json = { ref, argument };
  if (Object.keys(others).length > 0) params.context = { arguments: others };
  const { completion } = await connection.request('completion/complete', params);
  const { values } = asObject(completion);
  if (!Array.isArray(values)) return [];
  return values.filter((value) => typeof value === 'string');
}

/** `notifications/resources/updated` tells of a change, and not what has changed. */
export async function subscribe(connection: McpConnection, uri: string): Promise<void> {
  await connection.request('resources/subscribe', { uri });
}

export async function unsubscribe(connection: McpConnection, uri: string): Promise<void> {
  await connection.request('resources/unsubscribe', { uri });
}

export async function setLogLevel(connection: McpConnection, level: string): Promise<void> {
  await connection.request('logging/setLevel', { level });
}

// ─── All servers ───────────────────────────────────────────────────────────────────────────────

/** What a server has, and which server. */
export type Of<T> = T & { server: string };
type Lister<T> = (connection: McpConnection) => Promise<T[]>;

/** The lists of all servers, or of `only` one. */
export class Offers {
  private manager: McpManager;

  constructor(manager: McpManager) {
    this.manager = manager;
  }

  listResources(only?: string): Promise<Of<Resource>[]> {
    return this.gather('resources', listResources, only);
  }

  listResourceTemplates(only?: string): Promise<Of<ResourceTemplate>[]> {
    return this.gather('resourceTemplates', listResourceTemplates, only);
  }

  listPrompts(only?: string): Promise<Of<Prompt>[]> {
    return this.gather('prompts', listPrompts, only);
  }

  /** Side by side. A server that fails is left out, with a warning, unless it is the only one that
   *  is wanted. */
  async gather<T extends Json>(what: string, list: Lister<T>, only?: string): Promise<Of<T>[]> {
    const listed = async (server: string, rows: Promise<T[]>) =>
      (await rows).map((row): Of<T> => ({ ...row, server }));
    if (only !== undefined) return listed(only, this.listNow(only, what, list));
    const there = this.manager.status().filter(isOnOffer);
    const lists = there.map((each) => listed(each.name, this.rowsOf(each, what, list)));
    return (await Promise.all(lists)).flat();
  }

  private async listNow<T>(server: string, what: string, list: Lister<T>): Promise<T[]> {
    const { options } = this.manager;
    const rows = await list(this.manager.of(server));
    options.known?.keep(this.manager.entry(server)!, { lists: { [what]: rows } });
    return rows;
  }

  /** A server that sleeps need not wake up for this, if it is known what it listed last. */
  private async rowsOf<T>(server: ServerStatus, what: string, list: Lister<T>): Promise<T[]> {
    const { name, state } = server;
    const { known } = this.manager.options;
    const last = state === 'asleep' ? known?.find(this.manager.entry(name)!) : undefined;
    if (last) return (last.lists?.[what] ?? []) as T[];
    try {
      return await this.listNow(name, what, list);
    } catch (error) {
      this.manager.connection(name)?.warn(what, `did not list its ${what}: ${textOf(error)}`);
      return [];
    }
  }
}
