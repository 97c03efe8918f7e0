// connectors.ts: servers from a list that has to be fetched. The user's settings name a command or an
// address that yields it; the administrator's file may name an address, too.

import {
  asObject,
  isExposed,
  isObject,
  McpError,
  serversIn,
  textOf,
  transportType,
  type Json,
} from '../../mcp.ts';
import { readWholeBody, timeoutSignal } from '../20-streamable-http/reply.ts';
import { fetchHttp } from '../20-streamable-http/request.ts';
import { COMMAND_MS, isLine, outputOf, parsedQuietly } from './helper.ts';
import type { ConfigSource } from './scopes.ts';

const MAX_BYTES = 2 ** 20;
const MAX_SERVERS = 500;

export type Fetched = { sources: ConfigSource[]; problems: string[] };

/** `settings` are the user's: a project names no connectors. */
export function isConfigured(settings: Json, managed: Json): boolean {
  return settings.mcpConnectors !== undefined || managed.serversUrl !== undefined;
}

export async function fetchLists(
  settings: Json,
  managed: Json,
  managedFile: string,
): Promise<Fetched> {
  const fetched: Fetched = { sources: [], problems: [] };
  const take = async (what: string, get: () => Promise<ConfigSource>) => {
    try {
      fetched.sources.push(await get());
    } catch (error) {
      fetched.problems.push(`${what}: ${textOf(error)}`);
    }
  };
  const { command, url } = asObject(settings.mcpConnectors);
  const connectors = async (): Promise<ConfigSource> => {
    if (command !== undefined && !isLine(command))
      throw new Error('its "command" is not a command');
    const text = isLine(command) ? await outputOf(command) : await textAt(url);
    const servers = remoteIn(parsedQuietly(text));
    const file = isLine(command) ? 'the command in "mcpConnectors"' : `${new URL(`${url}`).origin}`;
    return { scope: 'connector', file, authority: 'project', servers };
  };
  const remote = async (): Promise<ConfigSource> => {
    const servers = mappingOf(parsedQuietly(await textAt(managed.serversUrl)));
    return {
      scope: 'managed',
      file: `${managedFile} (by its "serversUrl")`,
      authority: 'user',
      servers,
    };
  };
  const work: Promise<void>[] = [];
  if (settings.mcpConnectors !== undefined)
    work.push(take('the connectors of your settings are not used', connectors));
  if (managed.serversUrl !== undefined)
    work.push(take(`"serversUrl" in ${managedFile} is not used`, remote));
  await Promise.all(work);
  return fetched;
}

async function textAt(address: unknown) {
  if (typeof address !== 'string' || !/^https?:/.test(address) || !URL.canParse(address))
    throw new Error('it names neither a command nor an address');
  if (isExposed(address))
    throw new Error('its address is http://, where others can change the list; use https://');
  const url = new URL(address);
  const signal = timeoutSignal(COMMAND_MS);
  try {
    const reply = await fetchHttp(url.origin, url, {
      method: 'GET',
      headers: { accept: 'application/json' },
      signal,
    });
    if (reply.status !== 200) {
      reply.body.destroy();
      throw new Error(`${url.origin} answered HTTP ${reply.status}`);
    }
    return await readWholeBody(url.origin, reply.body, MAX_BYTES);
  } catch (error) {
    if (signal.aborted)
      throw new McpError('timeout', `${url.origin} took longer than ${COMMAND_MS / 1000} s`);
    throw error;
  }
}

/** A mapping, or a list of {"name": …, "url": …}. */
function mappingOf(root: unknown): [string, Json][] {
  const list = Array.isArray(root) ? root : asObject(root).servers;
  if (Array.isArray(list))
    return list
      .filter(isObject)
      .slice(0, MAX_SERVERS)
      .map(({ name, ...config }) => [`${name}`, config]);
  if (!isObject(root)) throw new Error('it holds no servers');
  return (Object.entries(serversIn(root, true)) as [string, Json][]).slice(0, MAX_SERVERS);
}

/** What a list from elsewhere may bring are addresses, never commands. */
function remoteIn(root: unknown): [string, Json][] {
  const isRemote = ([, config]: [string, Json]) =>
    isObject(config) &&
    transportType(config) !== 'stdio' &&
    config.command === undefined &&
    config.headersHelper === undefined;
  const found = mappingOf(root);
  const odd = found.filter((each) => !isRemote(each)).map(([name]) => JSON.stringify(name));
  if (odd.length > 0)
    throw new Error(
      `a connector is an address, and ${odd.slice(0, 5).join(', ')} would run a command here`,
    );
  return found;
}
