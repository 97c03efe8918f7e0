// Chapter 15: one prompt through the loop, and then an answer whose calls end in every way that a
// call can end.

import { setTimeout as wait } from 'node:timers/promises';
import { Agent, Scripted } from '../../agent.ts';
import type { AgentEvent, GateKeeper, Model, Tool } from '../../agent.ts';

const say = (text: string) => ({ blocks: [{ type: 'text' as const, text }], isError: false });
const row = (name: string, run: Tool['run']): Tool => {
  const properties = { a: { type: 'number' }, b: { type: 'number' } };
  const inputSchema = { type: 'object', properties };
  return { definition: { name, description: '', inputSchema }, readOnly: false, run };
};
const ctrlC = new AbortController();
const tools = [
  row('add', async ({ a, b }: any) => say(`${a + b}`)),
  row('divide', async ({ b }) => { throw new Error(`cannot divide by ${b}`); }),
  row('erase', async () => say('Everything is gone.')),
  row('sleep', async (_, { signal }) => {
    setTimeout(() => ctrlC.abort(), 100);
    await wait(60_000, undefined, { signal });
    return say('awake');
  }),
];
const gate: GateKeeper = async ({ definition }) => {
  if (definition.name === 'erase') return { allowed: false, reason: 'The user said no.' };
  return { allowed: true };
};

console.log('One prompt, and what happens:');
const withoutMs = (key: string, value: unknown) => (key === 'ms' ? undefined : value);
const agent = new Agent({
  model: new Scripted([
    { text: 'I add them.', calls: [{ name: 'add', args: { a: 2, b: 40 } }] },
    'It is 42.',
  ]),
  tools,
  gate,
  resultsFolder: 'results',
  emit: (event) => console.log(JSON.stringify(event, withoutMs)),
});
await agent.chat('How much is 2 and 40?');
console.log('\nThe conversation, as the model would get it the next time:');
for (const turn of agent.turns) console.log(JSON.stringify(turn));

console.log('\nAn answer with seven calls:');
const calls = [
  { id: 'c1', name: 'add', args: { a: '2', b: '40' } },
  { id: 'c2', name: 'subtract', args: {} },
  { id: 'c3', name: 'add', unreadable: 'The arguments are not JSON: {"a":2,"b"' },
  { id: 'c4', name: 'erase', args: {} },
  { id: 'c5', name: 'divide', args: { a: 1, b: 0 } },
  { id: 'c6', name: 'sleep', args: {} },
  { id: 'c7', name: 'add', args: { a: 1, b: 1 } },
];
const hasty: Model = {
  name: 'hasty',
  async *query() { // whatever has a name and can do this is a model
    yield { type: 'end', turn: { role: 'assistant', text: '', calls }, stop: 'tools' };
  },
};
const tell = (event: AgentEvent) => {
  if (event.type !== 'tool_end') return;
  const { id, name, outcome, text } = event;
  console.log(`${id} ${name}, ${outcome}: ${text.split('\n')[0]}`);
};
const second = new Agent({ model: hasty, tools, gate, resultsFolder: 'results', emit: tell });
const { ending } = await second.chat('Do all of it.', ctrlC.signal);
const last = second.turns.at(-1);
const ids = last?.role === 'tools' ? last.results.map(({ id }) => id) : [];
console.log(`ended: ${ending}; results: ${ids.join(' ')}`);
