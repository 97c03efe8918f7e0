// An entry of the configuration by its name, and a tool of it, for the commands about one server.

import {
  launchConfig,
  lostWords,
  onNode,
  problemWithConfig,
  textOf,
  McpConnection,
  type Json,
  type ServerEntry,
} from '../../mcp.ts';
import { nearestHint } from '../16-hands/nearest.ts';
import type { Person } from '../17-the-gate/person.ts';
import { quoted } from '../17-the-gate/safe-text.ts';
import { howToApprove, PROGRAM, Trust } from '../17-the-gate/trust.ts';
import { programHint, schemeHint } from './command-line/parse.ts';
import { forConnections, loadHere, type Composition, type WantedServers } from './host.ts';
import { refused } from './exit.ts';
import type { Screen } from './screen.ts';

/** For a command whose work is to keep something: if that fails, so does the command. */
export function keeping(screen: Screen): Trust {
  const unkept = (why: string) => {
    throw refused(`this was not written down: ${why}, and then give the command again`);
  };
  return new Trust({ warn: (text) => screen.warn(text), unkept });
}

/** Does both, also if the first fails, and then says what has failed. */
export async function both<A, B>(first: () => A, second: () => Promise<B>): Promise<[A, B]> {
  const ended = await Promise.allSettled([(async () => first())(), second()]);
  const [one, two] = ended;
  if (one.status === 'fulfilled' && two.status === 'fulfilled') return [one.value, two.value];
  const why = (each: PromiseSettledResult<unknown>) =>
    each.status === 'rejected' ? [each.reason as Error] : [];
  const failures = ended.flatMap(why);
  if (failures.length === 1) throw failures[0];
  throw refused(failures.map(({ message }) => message).join('\n'));
}

type Warned = Pick<Screen, 'warn'>;

/** The entry of that name, if it is one that could start. */
export async function findEntry(
  name: string,
  screen: Warned,
  composition: Composition,
  wanted: WantedServers = {},
): Promise<ServerEntry> {
  await composition.sources?.prepare?.();
  const entries = loadHere(composition, (problem) => screen.warn(problem), wanted);
  const entry = entries.get(name);
  const otherwise =
    schemeHint(name) ?? programHint(name) ?? `${PROGRAM} mcp list shows those there are`;
  const hint = nearestHint(name, entries.keys(), otherwise, quoted);
  if (!entry) throw refused(`no MCP server is called ${quoted(name)}; ${hint}`);
  const problem = problemWithConfig(entry.config, onNode(composition));
  if (problem)
    throw refused(`the MCP server ${quoted(name)} in ${entry.file} cannot start: ${problem}`);
  return entry;
}

/** A server that may start, and its configuration with all variables filled in. */
export async function approved(
  name: string,
  screen: Warned,
  composition: Composition,
  person: Person,
  { allowServers, wanted }: { allowServers?: string[]; wanted?: WantedServers } = {},
): Promise<{ entry: ServerEntry; config: Json }> {
  const entry = await findEntry(name, screen, composition, wanted);
  if (entry.blocked) throw refused(`${name} does not start: ${entry.blocked}`);
  const warn = (text: string) => screen.warn(text);
  const trust = new Trust({ warn, person, allowServers });
  const approval = await trust.approve(entry);
  if (approval === 'disabled')
    throw refused(`${name} is disabled; to change that: ${PROGRAM} mcp enable ${name}`);
  const how = person.isThere ? '' : `. ${howToApprove(name)}`; // else the person has just said no
  if (!approval) throw refused(`${name} is not approved${how}`, 'untrusted');
  const lost = lostWords(entry);
  if (lost) warn(`MCP server ${quoted(name)} ${lost}`);
  try {
    const { hidden } = forConnections(composition);
    return { entry, config: launchConfig(entry, { hidden }) };
  } catch (error) {
    throw refused(textOf(error));
  }
}

// ─── One tool of a server ────────────────────────────────────────────────────────────────────────

// As people name it: SERVER/TOOL. A misspelt one must not be "disabled".

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
