// One tool of a server, as people name it: SERVER/TOOL. A misspelt one must not be "disabled".

import { launchConfig, McpConnection, textOf, type Json, type ServerEntry } from '../../mcp.ts';
import { nearestHint } from '../16-hands/nearest.ts';
import { quoted } from '../17-the-gate/safe-text.ts';
import { Trust } from '../17-the-gate/trust.ts';
import { forConnections, type Composition } from './host.ts';

/** The name before a mark. Names of servers may have such marks themselves, in a file that was
 *  written by hand: the longest that fits. */
export function nameBefore(mark: string, what: string, names: Iterable<string>) {
  const fitting = [...names].filter((name) => `${what}${mark}`.startsWith(`${name}${mark}`));
  return fitting.sort((a, b) => b.length - a.length)[0];
}

/** Names of tools have slashes, too. */
export function serverAndTool(
  what: string,
  servers: Iterable<string>,
): { server: string; tool?: string } {
  const server = nameBefore('/', what, servers) ?? what.split('/')[0]!;
  return { server, ...(what.length > server.length && { tool: what.slice(server.length + 1) }) };
}

export function mustBeOneOf(tools: string[], tool: string, server: string): void {
  if (tools.includes(tool)) return;
  const hint = nearestHint(tool, tools, '/tools in a chat lists them', quoted);
  throw new Error(`${server} has no tool ${quoted(tool)}; ${hint}`);
}

/** Why we cannot know; nothing if the server may start and was asked. Throws if it has no such tool. */
export async function askFor(
  tool: string,
  entry: ServerEntry,
  composition: Composition,
): Promise<string | undefined> {
  const approval = await new Trust().approve(entry); // of nobody: a question is no part of this
  if (approval !== true) return 'it may not start here';
  let tools: string[];
  try {
    const { hidden } = forConnections(composition);
    tools = await toolsOf(entry.name, launchConfig(entry, { hidden }), composition);
  } catch (error) {
    return textOf(error);
  }
  mustBeOneOf(tools, tool, entry.name);
  return undefined;
}

/** What a server offers to us as we are, by their names. */
export async function toolsOf(
  server: string,
  config: Json,
  composition: Composition,
): Promise<string[]> {
  const connection = new McpConnection(server, config, {
    ...forConnections(composition),
    onWarning: () => {}, // they are about other things than we want to know
  });
  try {
    await connection.connect();
    await connection.initialize();
    return (await connection.listTools()).map(({ name }) => name);
  } finally {
    await connection.close();
  }
}
