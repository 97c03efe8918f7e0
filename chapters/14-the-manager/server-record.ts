// server-record.ts: what the manager knows of one server, and what follows from it.

import { type Json, asObject, excerpt, isPrintable } from '../01-a-pipe/messages.ts';
import { McpError, RpcError } from '../03-three-shapes/errors.ts';
import type { ServerDescription } from '../07-handshake/handshake.ts';
import { type Tool, areEqualIn } from '../08-discovery/tool.ts';
import type { ServerEntry } from '../12-three-files/config.ts';
import { loading, problemWithConfig } from '../12-three-files/entry.ts';
import { toolLabel } from '../13-names/labels.ts';
import type { ToolList } from './tool-list.ts';
import type { ManagerOptions, McpConnection } from '../../mcp.ts';

/** What servers offered last time. It is a cache: neither function throws. */
export interface KnownServers {
  find(entry: ServerEntry): KnownServer | undefined;
  keep(entry: ServerEntry, part: Partial<KnownServer>): void; // the other parts stay
}
export type KnownServer = {
  server: ServerDescription;
  tools: Tool[];
  lists?: Record<string, unknown[]>; // prompts and resources, as far as they were listed
};

/** `pending`: not approved yet. `needs-auth`: it wants a login. `asleep`: it starts when needed. */
export type ServerState =
  | 'connecting'
  | 'connected'
  | 'asleep'
  | 'pending'
  | 'disabled'
  | 'needs-auth'
  | 'failed'
  | 'closed';
type Standing = { state: ServerState; reason?: string };
export type Server = {
  entry: ServerEntry;
  decided?: Standing; // what holds whatever the connection does, or before there is one
  connection?: McpConnection;
  wantsLogin?: McpError; // what its last call was answered with
  startMs?: number; // until its tools were listed
  tools?: Map<string, Tool>; // by label, as soon as they are known
  list?: ToolList; // when to ask for them again
  told?: Standing; // what `onState` heard last
};
export type ServerStatus = ReturnType<typeof serverStatusOf>;
export type ToolDefinition = {
  name: string; // the label
  description: string;
  inputSchema: Json;
  server: string;
  tool: Tool; // as the server describes it
};

/** Would both start the same thing, on the same authority? */
export function isSameEntry(one: ServerEntry, two: ServerEntry): boolean {
  return areEqualIn(['config', 'authority', 'blocked'], one, two);
}

/** Closed by us: ignore anything that is still under way with it. */
export function isForgotten({ decided }: Server): boolean {
  return decided?.state === 'closed';
}

/** All that can be seen without starting it: its name, its shape, its type. `first` is the first
 *  server with its prefix. */
export function problemWithEntry(
  { name, config }: ServerEntry,
  first: string,
  options: ManagerOptions,
): string | undefined {
  if (!isPrintable(name, 128) || /[/\\]/.test(name)) return 'a server cannot have this name';
  if (first !== name) return `its tools would have the same names as those of ${excerpt(first)}`;
  return problemWithConfig(config, options);
}

/** Its labels begin with a prefix that no other server has, so only two tools of its own can
 *  clash. */
export function byLabel({ entry, connection }: Server, tools: Tool[]): Map<string, Tool> {
  const found = new Map<string, Tool>();
  for (const tool of tools) {
    const label = toolLabel(entry.name, tool.name);
    if (!found.has(label)) found.set(label, tool);
    else connection?.warn('label', `has a tool that we leave out: another is called ${label}`);
  }
  return found;
}

/** A login can expire and be renewed at any time, so the answer to each call tells. True if that
 *  is news. */
export function noteLogin(server: Server, error?: unknown): boolean {
  const before = server.wantsLogin;
  // 403: it knows us, but forbids this call.
  const isAuth = error instanceof McpError && error.kind === 'auth' && error.status !== 403;
  if (isAuth) server.wantsLogin = error;
  else if (!error || error instanceof RpcError) server.wantsLogin = undefined; // it answered
  return server.wantsLogin !== before;
}

/** Worked out from the connection, never kept in step with it. */
export function standingOf({ decided, connection, tools, wantsLogin }: Server): Standing {
  if (decided) return decided;
  if (connection?.isAsleep) return { state: 'asleep' };
  const isStarting = !tools && !connection?.isClosed;
  if (!connection || isStarting) return { state: 'connecting' };
  const why = connection.ended ?? wantsLogin;
  const isLogin = why instanceof McpError && why.kind === 'auth';
  const failed = isLogin ? 'needs-auth' : 'failed';
  if (why) return { state: failed, reason: why.message };
  return { state: connection.server ? 'connected' : 'connecting' };
}

/** Its tools can be called, now or when it has started. */
export function isOnOffer({ state }: { state: ServerState }): boolean {
  return state === 'connected' || state === 'asleep';
}

/** Without the configuration: people write secrets into it. */
export function serverStatusOf(server: Server) {
  const { entry, startMs, tools, connection } = server;
  const { config, ...origin } = entry;
  const { state, reason } = standingOf(server);
  return {
    ...connection?.server,
    ...origin,
    state,
    reason,
    startMs,
    tools: tools?.size ?? 0,
    ...loading(asObject(config)),
    warnings: [...(connection?.warnings.values() ?? [])],
  };
}

export function definitionsOf({ entry, tools = new Map() }: Server): ToolDefinition[] {
  return [...tools].map(([name, tool]) => ({
    name,
    description: tool.description ?? '',
    inputSchema: tool.inputSchema,
    server: entry.name,
    tool,
  }));
}
