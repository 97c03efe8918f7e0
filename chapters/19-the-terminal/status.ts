// The state of each server in lines for a person: what it is, where it comes from, what went wrong.

import {
  isOnOffer,
  REVISIONS,
  show,
  type Json,
  type McpManager,
  type ServerState,
  type ServerStatus,
} from '../../mcp.ts';
import { Masker, quoted } from '../17-the-gate/safe-text.ts';
import { PROGRAM } from '../17-the-gate/trust.ts';
import { tokensOf } from '../18-minds/seen.ts';
import type { Composition } from './host.ts';
import { cutToWidth, type ScreenLine, type Style } from './screen.ts';

type StatusOptions = {
  masker?: Masker;
  rows?: Pick<Composition, 'logins' | 'notes' | 'attempts'>; // what they know of a server is said, too
  most?: number; // servers that are shown
  only?: string; // show this one
};

const COLOURS: Record<ServerState, Style> = {
  connected: 'green',
  asleep: 'green',
  failed: 'red',
  connecting: 'yellow',
  pending: 'yellow',
  'needs-auth': 'yellow',
  disabled: 'dim',
  closed: 'dim',
};

/** The state of each server, with the reason and its last words if it failed. */
export function statusLines(manager: McpManager, options: StatusOptions = {}): ScreenLine[] {
  const { masker = new Masker(), rows = {}, most = Infinity, only } = options;
  const all = manager.status().filter(({ name }) => only === undefined || name === only);
  const costs = costsOf(manager);
  const lines = all.slice(0, most).flatMap((status) => {
    const { name } = status;
    const known = [rows.logins?.where(name), rows.notes?.(name), rows.attempts?.(name)];
    const notes = known.flatMap((each) => each ?? []);
    return statusOf({ ...status, tokens: costs.get(name) }, masker, notes);
  });
  if (only !== undefined) return lines;
  if (all.length > most) lines.push(`and ${all.length - most} more: ${PROGRAM} mcp list`);
  for (const warning of manager.warnings) lines.push(`! ${masker.text(warning)}`);
  const none = `no MCP servers are configured; add one: ${PROGRAM} mcp add NAME -- COMMAND ARGS`;
  return lines.length > 0 ? lines : [none];
}

/** What the tools of each server take of a model's context if all of them are shown, about. */
export function costsOf(manager: McpManager): Map<string, number> {
  const costs = new Map<string, number>();
  for (const { server, name, description, inputSchema } of manager.getToolDefinitions()) {
    const cost = tokensOf({ name, description, inputSchema });
    costs.set(server, (costs.get(server) ?? 0) + cost);
  }
  return costs;
}

type Priced = ServerStatus & { tokens?: number };

function statusOf(status: Priced, masker: Masker, notes: string[]) {
  const { name, state, scope, file, shadows, reason, warnings } = status;
  const facts = factsOf(status).map((fact) => ` · ${masker.text(fact)}`);
  const more = [`${scope}, ${from(file, shadows)}`, ...how(status), ...notes];
  if (reason !== undefined) more.push(masker.heard(reason));
  more.push(...warnings);
  const again = `/mcp reconnect ${shownName(name)}, in a chat`;
  if (state === 'asleep')
    more.push('it starts when it is called; its tools are those of last time');
  if (state === 'pending') more.push(`to be asked about it: ${again}`);
  if (state === 'failed') more.push(`to try again: ${again}`);
  if (state === 'needs-auth')
    more.push('if you have a key for it: put it into the "headers" of its entry');
  // All lines of a text are indented, so that none looks like the first line of a server.
  const indented = more.map((text) => `  ${masker.text(text).replaceAll('\n', '\n  ')}`);
  return [stateLine(shownName(name), state, facts.join('')), ...indented];
}

function stateLine(name: string, state: ServerState, facts = '') {
  return [{ text: `${name}: ` }, { text: state, style: COLOURS[state] }, { text: facts }];
}

/** The states in a row each, for a look while they change. */
export function stateRows(manager: McpManager, columns: number, only?: string): ScreenLine[] {
  const all = manager.status().filter(({ name }) => only === undefined || name === only);
  return all.map(({ name, state }) =>
    stateLine(`  ${cutToWidth(shownName(name), columns - state.length - 4)}`, state),
  );
}

function factsOf(status: Priced) {
  const { protocolVersion, tools, tokens, startMs, serverInfo } = status;
  const facts: string[] = [];
  if (protocolVersion) facts.push(`protocol ${protocolVersion}`);
  const isThere = isOnOffer(status);
  if (isThere) facts.push(`${tools} ${tools === 1 ? 'tool' : 'tools'}`);
  if (isThere && tokens) facts.push(`about ${tokens.toLocaleString('en')} tokens`);
  if (startMs !== undefined) facts.push(`started in ${startMs} ms`);
  if (serverInfo) facts.push(nameAndVersion(serverInfo));
  return facts;
}

type OpenedWith = { protocolVersion?: string; because?: string };

/** Whether it began with a handshake, and how we know that it had to. */
export function how({ protocolVersion, because }: OpenedWith): string[] {
  if (protocolVersion === undefined || because === undefined) return [];
  return [`${REVISIONS.includes(protocolVersion) ? 'with' : 'without'} a handshake: ${because}`];
}

export function nameAndVersion({ name, version }: Json): string {
  return cutToWidth([name, version].map((part) => show(part ?? '')).join(' '), 80);
}

export const shownName = (name: string) => (/^[\w.-]+$/.test(name) ? name : quoted(name));

export const from = (file: string, shadows?: string) =>
  `from ${file}${shadows ? `, in place of the one in ${shadows}` : ''}`;
