// npm run bench tools: how good and how quick is the search among 2,307 real tools, and how big
// is the first request that has them? The corpus is not part of the repository: TOOL_CORPUS names
// it, or it lies beside, in ../shared/data. And without it: do two slow servers work side by side?

import { existsSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, Scripted } from '../../agent.ts';
import { compose } from '../../chapters/composition.ts';
import { forConnections, plainHost } from '../../chapters/19-the-terminal/host.ts';
import { indexTools, type SearchableTool } from '../../chapters/28-a-thousand-tools/tool-search.ts';
import {
  McpManager,
  type Json,
  type Message,
  type ServerEntry,
  type Transport,
} from '../../mcp.ts';
import type { TransportEvents } from '../../mcp.ts';
import { root } from '../help/installed.ts';
import { judgeNeeds, plainIndex, readNeeds } from './needs.ts';

const GOALS = { index: 500, query: 3, characters: 40_000, gain: 9, together: 1.3 };
const NEEDED: Record<number, number> = { 1: 38, 5: 68, 10: 74 };
const SLOW = 400; // milliseconds that a slow server takes
const ROUNDS = 5;

/** How many goals are missed. */
export async function benchTools(): Promise<number> {
  return (await benchCorpus()) + (await benchTogether());
}

async function benchCorpus(): Promise<number> {
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
  console.log(
    `${what.padEnd(44)} ${String(value).padStart(8)}   goal ${goal}${isMet ? '' : '  MISSED'}`,
  );
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
  const plain = plainIndex(tools);
  for (const set of ['known', 'untouched'] as const) {
    const some = needs.filter((need) => need.set === set);
    const { at } = judgeNeeds(index, some);
    const { at: without } = judgeNeeds(plain, some);
    for (const most of [1, 5, 10]) {
      const what = `${some.length} needs (${set}), met within ${most}, %`;
      const least = NEEDED[most]!;
      const met = at[most]!;
      tell(what, met, `at least ${least}; plain BM25 ${without[most]}`, met >= least);
    }
    const gain = Number((at[5]! - without[5]!).toFixed(1));
    tell(
      '– more than plain BM25 within 5, points',
      gain,
      `at least ${GOALS.gain}`,
      gain >= GOALS.gain,
    );
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
      tools: tools.map(({ name, description, inputSchema }) => ({
        name,
        description,
        inputSchema,
      })),
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

// ─── Two slow servers ─────────────────────────────────────────────────────────────────────────────

/** One answer of a model with calls to two servers, each a process that takes its time. */
async function benchTogether(): Promise<number> {
  missed = 0;
  const slow = { command: process.execPath, args: [join(root, 'fixtures', 'habits.mjs')] };
  const entries = ['a', 'b'].map((name): [string, ServerEntry] => {
    const origin = { file: 'bench', scope: 'user', authority: 'user' } as const;
    return [name, { name, config: slow, ...origin }];
  });
  const composition = compose(plainHost());
  const mcp = new McpManager({ ...forConnections(composition), load: () => new Map(entries) });
  await mcp.loadAndConnect();
  const one = await chatting(mcp, ['a']);
  const together = (await chatting(mcp, ['a', 'b'])) / one;
  const inLine = (await chatting(mcp, ['a', 'a'])) / one;
  await mcp.disconnectAll();
  console.log(`\none call to a slow server: ${Math.round(one)} ms`);
  const most = `at most ${GOALS.together}`;
  tell('one call to each of two, times that', rounded(together), most, together <= GOALS.together);
  tell('two calls to one of them, times that', rounded(inLine), 'at least 1.8', inLine >= 1.8);
  return missed;
}

const rounded = (value: number) => Number(value.toFixed(2));

/** The median time of a prompt that is answered with these calls. */
async function chatting(mcp: McpManager, servers: string[]): Promise<number> {
  const calls = servers.map((name) => ({ name: `mcp__${name}__sleep`, args: { ms: SLOW } }));
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const model = new Scripted([{ calls }, 'Done.']);
    const gate = async () => ({ allowed: true as const });
    const agent = new Agent({ model, mcp, gate, resultsFolder: tmpdir() });
    const startedAt = performance.now();
    await agent.chat('Sleep.');
    times.push(performance.now() - startedAt);
  }
  return times.sort((one, two) => one - two)[ROUNDS >> 1]!;
}
