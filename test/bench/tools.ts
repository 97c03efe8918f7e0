// npm run bench -- tools: how good and how quick is the search among 2,307 real tools, and how big
// is the first request that has them? The corpus is not part of the repository: TOOL_CORPUS names
// it, or it lies beside, in ../shared/data.

import { existsSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, Scripted } from '../../agent.ts';
import { compose } from '../../chapters/composition.ts';
import { plainHost } from '../../chapters/19-the-terminal/host.ts';
import { indexTools, type SearchableTool } from '../../chapters/28-a-thousand-tools/tool-search.ts';
import { McpManager, type Json, type Message, type ServerEntry, type Transport } from '../../mcp.ts';
import type { TransportEvents } from '../../mcp.ts';
import { root } from '../on-demand.ts';
import { judgeNeeds, readNeeds } from './needs.ts';

const GOALS = { index: 500, query: 3, characters: 40_000 };
const NEEDED = { 1: 30, 5: 65, 10: 70 }; // of needs that nothing was adjusted to

/** How many goals are missed. */
export async function benchTools(): Promise<number> {
  const file = process.env.TOOL_CORPUS ?? join(root, '../shared/data/tool-corpus.json');
  if (!existsSync(file)) {
    console.log(`\ntools: there is no ${file}; TOOL_CORPUS may name another`);
    return 0;
  }
  const { tools } = JSON.parse(readFileSync(file, 'utf8')) as { tools: SearchableTool[] };
  const characters = JSON.stringify(tools).length;
  console.log(`\n${tools.length} tools, ${characters} characters of definitions`);
  return benchSearch(tools) + (await benchRequest(tools));
}

let missed = 0;
function tell(what: string, value: number, goal: string, isMet: boolean): void {
  console.log(`${what.padEnd(44)} ${String(value).padStart(8)}   goal ${goal}${isMet ? '' : '  MISSED'}`);
  if (!isMet) missed++;
}

function benchSearch(tools: SearchableTool[]): number {
  missed = 0;
  const startedAt = performance.now();
  const index = indexTools(tools);
  const ms = Math.round(performance.now() - startedAt);
  tell('index, ms', ms, `at most ${GOALS.index}`, ms <= GOALS.index);
  const needs = readNeeds();
  const began = performance.now();
  for (const { words } of needs) index.search(words, 10);
  const each = Number(((performance.now() - began) / needs.length).toFixed(2));
  tell('a query, ms', each, `at most ${GOALS.query}`, each <= GOALS.query);
  for (const set of ['tune', 'test', 'fresh'] as const) {
    const some = needs.filter((need) => need.set === set);
    const { at } = judgeNeeds(index, some);
    for (const [most, least] of Object.entries(NEEDED)) {
      const what = `${some.length} needs (${set}), met within ${most}, %`;
      const met = at[Number(most)]!;
      tell(what, met, `at least ${least}`, met >= least);
    }
  }
  return missed;
}

/** All servers of the corpus, in this process, behind the program as composed. */
async function benchRequest(tools: SearchableTool[]): Promise<number> {
  missed = 0;
  const servers = new Map<string, SearchableTool[]>();
  for (const tool of tools) {
    servers.set(tool.server, [...(servers.get(tool.server) ?? []), tool]);
  }
  const entries = [...servers.keys()].map((name): [string, ServerEntry] => {
    const origin = { file: 'corpus', scope: 'user', authority: 'user' } as const;
    return [name, { name, config: { type: 'corpus' }, ...origin }];
  });
  const transports = { corpus: (name: string) => answering(servers.get(name) ?? []) };
  const mcp = new McpManager({ load: () => new Map(entries), transports });
  const host = plainHost();
  const { shelf, tools: own } = compose(host);
  const model = new Scripted(['Done.']);
  const agent = new Agent({ model, mcp, shelf, tools: own, resultsFolder: tmpdir() });
  await agent.chat('Hello.');
  const [request] = model.requests;
  const size = request!.system.length + JSON.stringify(request!.tools).length;
  const goal = `at most ${GOALS.characters}`;
  tell('first request: tools and system, characters', size, goal, size <= GOALS.characters);
  await mcp.disconnectAll();
  return missed;
}

function answering(tools: SearchableTool[]): Transport {
  let events: TransportEvents;
  const results: Record<string, (params: Json) => Json> = {
    initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} } }),
    'tools/list': () => ({
      tools: tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
    }),
  };
  return {
    start: async (given) => void (events = given),
    send: async ({ id, method = '', params = {} }: Message) => {
      const result = results[method]?.(params) ?? {};
      if (id !== undefined) setImmediate(() => events.message({ jsonrpc: '2.0', id, result }));
    },
    close: async () => {},
  };
}
