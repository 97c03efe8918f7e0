// Chapter 15, third stop: however a chat ends, it says so, and the next prompt works.

import { setTimeout as wait } from 'node:timers/promises';
import { Agent } from '../../agent.ts';
import type { AgentEvent, Tool } from '../../agent.ts';

const say = (text: string) => ({ blocks: [{ type: 'text' as const, text }], isError: false });
const row = (name: string, run: Tool['run']): Tool => ({
  definition: { name, description: '', inputSchema: { type: 'object' } },
  readOnly: false,
  run,
});
let ctrlC = new AbortController();
const tools = [
  row('add', async ({ a, b }: any) => say(`${a + b}`)),
  row('sleep', async (_, { signal }) => {
    setTimeout(() => ctrlC.abort(), 100);
    await wait(60_000, undefined, { signal });
    return say('awake');
  }),
];
const add = (id: string) => ({ id, name: 'add', args: { a: 2, b: 40 } });
const sleep = { id: 'c6', name: 'sleep', args: {} };
const tell = (event: AgentEvent) => {
  if (event.type === 'done' || event.type === 'error') console.log(`  ${JSON.stringify(event)}`);
  if (event.type === 'tool_end')
    console.log(`  ${event.id} ${event.name}, ${event.outcome}: ${event.text}`);
};
const chat = async (what: string, calls: object[], more: object = {}) => {
  console.log(what);
  ctrlC = new AbortController();
  let answers = 0;
  const query = async function* (): AsyncGenerator<any> {
    answers++;
    if (answers > 8 || calls.length === 0) throw new Error('the service is out of order');
    yield { type: 'end', turn: { role: 'assistant', text: '', calls }, stop: 'done' }; // not the word counts
  };
  const model = { name: 'demo', query };
  const agent = new Agent({
    model,
    tools,
    gate: async () => ({ allowed: true }),
    emit: tell,
    ...more,
  } as any);
  const end = await agent.chat('Go.', ctrlC.signal).catch((error) => `an exception: ${error}`);
  console.log(`  returned: ${typeof end === 'string' ? end : JSON.stringify(end)}`);
};
await chat('Ctrl-C in the midst of three calls:', [add('c5'), sleep, add('c7')]);
await chat('A model without an end, and a limit of three answers:', [add('c1')], { maxTurns: 3 });
await chat('A model that fails:', []);
