// tool-shelf.ts: too many tools for a request stay on a shelf. The prompt names their servers, a
// tool finds what is wanted, and what was found stays in every later request of the conversation.
//
// Nothing is remembered here: the turns tell what was found, and in which order. So a conversation
// that is resumed has its tools again, and one that is summarised has room again.

import type { Shelf, Tool, ToolOutput, Turn } from '../../agent.ts';
import { asList, asObject, type Json, type ServerStatus } from '../../mcp.ts';
import { inWords } from '../16-hands/results.ts';
import { cited, plain, quoted } from '../17-the-gate/safe-text.ts';
import { toolTokens } from '../18-minds/seen.ts';
import { indexTools, sentencesOf, type ToolIndex } from './tool-search.ts';

const FIND = 'find_tools';

export type ShelfLimits = {
  share?: number; // of the model's context, for the definitions of servers' tools
  count?: number; // of servers' tools
};

type ShelfOffer = Parameters<Shelf>[0];
type Searched = Pick<ShelfOffer, 'table' | 'servers'>;
const NOTHING: Searched = { table: new Map(), servers: [] };
const USUAL_WINDOW = 100_000; // tokens, of a model that does not say
const MAX_FOUND = 10;
const MAX_SENTENCE = 160;
const MAX_SERVERS = 200; // in the prompt
const MAX_ARGUMENTS = 20; // of a tool that was found

export class ToolShelf {
  private limits: Required<ShelfLimits>;
  private indexes = new WeakMap<ShelfOffer['table'], ToolIndex>(); // as long as a table is in use

  constructor({ share = 0.1, count = 40 }: ShelfLimits = {}) {
    this.limits = { share, count };
  }

  /** For the agent's option `shelf`. */
  arrange: Shelf = (offer) => {
    const rows = [...offer.table.values()];
    const own = rows.filter(({ origin }) => !origin);
    const deferred = this.deferredServers(offer, own.length);
    if (deferred.size === 0) return { rows: rows.filter((row) => nameOf(row) !== FIND) };
    const isKept = ({ origin }: Tool) => origin && !deferred.has(origin.server);
    const always = [...own, ...rows.filter(isKept)];
    const most = (offer.model.maxTools ?? Infinity) - always.length;
    const found = foundIn(offer.turns).flatMap((name) => offer.table.get(name) ?? []);
    const more = found.filter((row) => !always.includes(row));
    const shown = [...always, ...(most > 0 ? more.slice(-most) : [])];
    return { rows: this.withFind(shown, offer), deferred, words: wordsAbout(deferred, offer) };
  };

  /** Rows for one agent: their `find_tools` looks in the table of that agent. */
  private withFind(rows: Tool[], offer: ShelfOffer): Tool[] {
    const run = async (args: Json) => this.find(args, offer);
    return rows.map((row) => (nameOf(row) === FIND ? { ...row, run } : row));
  }

  /** Until the others are not too much: the largest first, of one size all, and those that an entry
   *  wants to be shown only if the wire has no room for them. */
  private deferredServers({ table, model, window, servers }: ShelfOffer, own: number) {
    const wishes = new Map(servers.map(({ name, load }) => [name, load]));
    const sizes = sizesOf(table);
    const left = new Set(sizes.keys());
    for (const name of sizes.keys()) if (wishes.get(name) === 'deferred') left.delete(name);
    const most = model.maxTools ?? Infinity;
    const sum = (of: keyof ToolsSize, names: string[]) =>
      names.reduce((all, name) => all + sizes.get(name)![of], 0);
    const undecided = () => [...left].filter((name) => wishes.get(name) === undefined);
    const isTooMuch = () =>
      sum('count', undecided()) > this.limits.count ||
      sum('tokens', undecided()) > this.limits.share * (window ?? USUAL_WINDOW);
    const isTooWide = () => {
      const forFound = left.size < sizes.size ? MAX_FOUND : 0;
      return own + sum('count', [...left]) + forFound > most;
    };
    const sizeOf = (name: string) => Math.round(Math.log2(sizes.get(name)!.tokens));
    const bySize = (names: string[]) => names.sort((a, b) => sizeOf(b) - sizeOf(a));
    let size = Infinity;
    for (const name of bySize(undecided())) {
      if (!isTooMuch() && !isTooWide() && sizeOf(name) < size) break;
      size = sizeOf(name);
      left.delete(name);
    }
    for (const name of bySize([...left].reverse())) if (isTooWide()) left.delete(name);
    return new Set([...sizes.keys()].filter((name) => !left.has(name)));
  }

  /** The row of the table that looks on the shelf. */
  readonly findTools: Tool = {
    definition: {
      name: FIND,
      description:
        'Finds tools of MCP servers and loads them, so that you can call them next. ' +
        'Say in English what you need, in words that a description would have, and name the ' +
        'service if you know it: "create an issue in GitLab". If nothing fits, try other words.',
      inputSchema: {
        type: 'object',
        properties: {
          query: { type: 'string', description: 'what the tool should do' },
          limit: { type: 'integer', minimum: 1, maximum: MAX_FOUND, default: 5 },
          names: {
            type: 'array',
            items: { type: 'string' },
            description: 'instead of a query: tools whose names you know',
          },
        },
      },
    },
    readOnly: true,
    touches: () => ({ kind: 'read', path: '.' }), // nothing, in truth, and the gate need not ask
    run: async (args) => this.find(args, NOTHING), // until an agent has it on its shelf
  };

  private find({ query, limit = 5, names }: Json, { table, servers }: Searched): ToolOutput {
    const wanted = asList(names).filter((name) => table.has(`${name}`));
    const most = Math.min(Math.max(1, Math.trunc(Number(limit)) || 5), MAX_FOUND);
    const found = typeof query === 'string' ? this.indexOf(table).search(query, most) : [];
    const labels = [...new Set([...wanted.slice(0, MAX_FOUND).map(String), ...found])];
    if (labels.length === 0) return inWords(nothingFound(servers, table), true);
    const lines = labels.map((label) => lineAbout(table.get(label)!));
    return { ...inWords(`Loaded, call them now:\n${lines.join('\n')}`), loads: labels };
  }

  private indexOf(table: ShelfOffer['table']) {
    const index = this.indexes.get(table) ?? indexTools(searchable(table));
    this.indexes.set(table, index);
    return index;
  }
}

const nameOf = ({ definition }: Tool) => definition.name;

type ToolsSize = { count: number; tokens: number };

/** Of each server's tools. */
function sizesOf(table: ShelfOffer['table']): Map<string, ToolsSize> {
  const sizes = new Map<string, ToolsSize>();
  for (const { origin, definition } of table.values()) {
    if (!origin) continue;
    const { count, tokens } = sizes.get(origin.server) ?? { count: 0, tokens: 0 };
    sizes.set(origin.server, { count: count + 1, tokens: tokens + toolTokens(definition) });
  }
  return sizes;
}

/** What the model has found or called so far, in that order: so that what a provider has cached of
 *  the requests stays valid. */
function foundIn(turns: readonly Turn[]): string[] {
  const names = turns.flatMap((turn) => {
    if (turn.role === 'tools') return turn.results.flatMap(({ loads = [] }) => loads);
    return turn.role === 'assistant' ? turn.calls.map(({ name }) => name) : [];
  });
  return [...new Set(names)];
}

function searchable(table: ShelfOffer['table']) {
  const rows = [...table.values()].filter(({ origin }) => origin);
  return rows.map(({ definition, origin }) => {
    const { name: label, description, inputSchema } = definition;
    const { name, title } = origin!.tool;
    return {
      label,
      server: origin!.server,
      name: `${name}`,
      title: typeof title === 'string' ? title : undefined,
      description: description.replace(/^> /gm, ''), // the mark of foreign text
      inputSchema,
    };
  });
}

// ── In words ──

const WHAT_ELSE = `More tools are there than you see. ${FIND} finds and loads those of`;

/** Servers with the number of their tools and a sentence each: not the tools, which may be
 *  thousands. */
function wordsAbout(deferred: Set<string>, { table, servers }: ShelfOffer) {
  const counts = new Map<string, number>();
  for (const { origin } of table.values()) {
    if (!origin || !deferred.has(origin.server)) continue;
    counts.set(origin.server, (counts.get(origin.server) ?? 0) + 1);
  }
  const about = new Map(servers.map((server) => [server.name, sentenceOf(server)]));
  const lines = [...counts].map(
    ([server, count]) =>
      `- ${quoted(server)}: ${count} ${count === 1 ? 'tool' : 'tools'}${about.get(server)}`,
  );
  const more = lines.length - MAX_SERVERS;
  const rest = more > 0 ? [`- and ${more} more servers`] : [];
  return [`${WHAT_ELSE} these MCP servers:`, ...lines.slice(0, MAX_SERVERS), ...rest].join('\n');
}

/** What the server says of itself, or nothing. */
function sentenceOf({ instructions, serverInfo }: ServerStatus) {
  const { description, title } = asObject(serverInfo);
  const said = [instructions, description, title].find((text) => typeof text === 'string');
  const sentence = sentencesOf(plain(`${said ?? ''}`)).first.slice(0, MAX_SENTENCE);
  return sentence ? `\n${cited(sentence)}` : '';
}

function nothingFound(servers: ServerStatus[], table: ShelfOffer['table']) {
  const names = new Set([...table.values()].flatMap(({ origin }) => origin?.server ?? []));
  const starting = servers.filter(({ state }) => state === 'connecting').map(({ name }) => name);
  const known = `There are tools of ${[...names].map(quoted).join(', ') || 'no server'}.`;
  const later = starting.length > 0 ? ` Still starting: ${starting.map(quoted).join(', ')}.` : '';
  return `No tool fits. Try other words, or name the service. ${known}${later}`;
}

/** Enough to choose by; with the next request the whole definition comes. */
function lineAbout({ definition }: Tool) {
  const { name, description, inputSchema } = definition;
  const { properties, required } = asObject(inputSchema);
  const needed = asList(required);
  const args = Object.keys(asObject(properties)).slice(0, MAX_ARGUMENTS);
  const shown = args.map((arg) => (needed.includes(arg) ? arg : `${arg}?`)).join(', ');
  const sentence = sentencesOf(description.replace(/^> /gm, '')).first.slice(0, 300);
  return `${name}(${shown})\n${cited(sentence)}`;
}
