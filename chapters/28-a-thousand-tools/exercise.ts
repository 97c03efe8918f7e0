// Judges exercise 28: is the right part of the table shown, and in the right order? The table, the
// turns and the model are made up; nothing is started.

import type { Model, Tool, Turn } from '../../agent.ts';
import type { Judge } from '../book.ts';

type Case = {
  what: string;
  wanted: string;
  servers: Record<string, { tools: number; load?: 'always' | 'deferred' }>;
  turns?: Turn[];
  maxTools?: number;
  isRight: (seen: Seen) => boolean;
};
/** What came out: the names that are shown, of which servers the words speak, and what is found if
 *  the model looks for big_1. */
type Seen = { shown: string; deferred: string; words: string; found: string };

const row = (name: string, server?: string): Tool => ({
  definition: { name, description: `The tool ${name}.`, inputSchema: { type: 'object' } },
  readOnly: false,
  ...(server ? { origin: { server, tool: { name } } } : {}),
  run: async () => ({ blocks: [], isError: false }),
});
const called = (name: string): Turn => {
  return { role: 'assistant', text: '', calls: [{ id: name, name, args: {} }] };
};
const found = (...loads: string[]): Turn => {
  const result = { id: 'find', name: 'find_tools', blocks: [], isError: false, loads };
  return { role: 'tools', results: [result] };
};
const BIG = { big: { tools: 50 } };

const cases: Case[] = [
  {
    what: 'few tools are all shown, and the tool that finds others is not',
    wanted: 'read, small_0, small_1',
    servers: { small: { tools: 2 } },
    isRight: ({ shown, words }) => shown === 'read, small_0, small_1' && words === '',
  },
  {
    what: 'of many, only our own are shown',
    wanted: 'read, find_tools',
    servers: BIG,
    isRight: ({ shown }) => shown === 'read, find_tools',
  },
  {
    what: 'the agent learns which servers are deferred, and has words for the prompt',
    wanted: 'deferred: big; words that name it',
    servers: BIG,
    isRight: ({ deferred, words }) => deferred === 'big' && words.includes('"big"'),
  },
  {
    what: 'what was found comes behind our own, in the order of discovery',
    wanted: 'read, find_tools, big_7, big_3',
    servers: BIG,
    turns: [found('big_7'), found('big_3')],
    isRight: ({ shown }) => shown === 'read, find_tools, big_7, big_3',
  },
  {
    what: 'what is found again stays where it was',
    wanted: 'read, find_tools, big_7, big_3',
    servers: BIG,
    turns: [found('big_7', 'big_3'), found('big_3', 'big_7')],
    isRight: ({ shown }) => shown === 'read, find_tools, big_7, big_3',
  },
  {
    what: 'what was called counts as found',
    wanted: 'read, find_tools, big_9',
    servers: BIG,
    turns: [called('big_9')],
    isRight: ({ shown }) => shown === 'read, find_tools, big_9',
  },
  {
    what: 'what is no longer there is not shown, whatever the turns say',
    wanted: 'read, find_tools, big_1',
    servers: BIG,
    turns: [found('gone_1', 'big_1')],
    isRight: ({ shown }) => shown === 'read, find_tools, big_1',
  },
  {
    what: 'a server that is always shown comes before what was found',
    wanted: 'read, find_tools, near_0, big_2',
    servers: { ...BIG, near: { tools: 1, load: 'always' } },
    turns: [found('big_2')],
    isRight: ({ shown, deferred }) =>
      shown === 'read, find_tools, near_0, big_2' && deferred === 'big',
  },
  {
    what: 'and its tools are not shown twice',
    wanted: 'read, find_tools, near_0',
    servers: { ...BIG, near: { tools: 1, load: 'always' } },
    turns: [called('near_0'), called('read')],
    isRight: ({ shown }) => shown === 'read, find_tools, near_0',
  },
  {
    what: 'among few, one that asks to be deferred is',
    wanted: 'read, find_tools, small_0',
    servers: { small: { tools: 1 }, far: { tools: 1, load: 'deferred' } },
    isRight: ({ shown, deferred }) => shown === 'read, find_tools, small_0' && deferred === 'far',
  },
  {
    what: 'never more than the wire takes: the latest found stay, in their order',
    wanted: 'read, find_tools, big_2, big_3',
    servers: BIG,
    turns: [found('big_1', 'big_2', 'big_3')],
    maxTools: 4,
    isRight: ({ shown }) => shown === 'read, find_tools, big_2, big_3',
  },
  {
    what: 'even if our own leave no room',
    wanted: 'read, find_tools',
    servers: BIG,
    turns: [found('big_1', 'big_2', 'big_3')],
    maxTools: 2,
    isRight: ({ shown }) => shown === 'read, find_tools',
  },
  {
    what: 'find_tools searches the table of this offer',
    wanted: 'big_1',
    servers: BIG,
    isRight: ({ found }) => found === 'big_1',
  },
];

export const judge: Judge = async ({ load, expect }) => {
  const { ToolShelf, FIND } = await load('chapters/28-a-thousand-tools/tool-shelf.ts');
  for (const { what, wanted, servers, turns = [], maxTools, isRight } of cases) {
    const rows = [row('read'), row(FIND)];
    for (const [server, { tools }] of Object.entries(servers)) {
      for (let n = 0; n < tools; n++) rows.push(row(`${server}_${n}`, server));
    }
    const table = new Map(rows.map((each) => [each.definition.name, each]));
    const model: Partial<Model> = { name: 'made up', maxTools };
    const states = Object.entries(servers).map(([name, { load: wish }]) => {
      return { name, state: 'connected', load: wish };
    });
    const shelf = new ToolShelf();
    const attempt = async (): Promise<Seen> => {
      const out = shelf.arrange({ table, turns, model, servers: states });
      const shown = out.rows.map((each: Tool | undefined) => each?.definition.name ?? '(nothing)');
      const deferred = [...(out.deferred ?? [])].join(', ');
      const find = out.rows.find((each: Tool | undefined) => each?.definition.name === FIND);
      const answer = await find?.run({ names: ['big_1'] }, {});
      const found = (answer?.loads ?? []).join(', ');
      return { shown: shown.join(', '), deferred, words: out.words ?? '', found };
    };
    await expect(what, wanted, attempt(), isRight);
  }
};
