// Chapter 15: one prompt through the loop, and then an answer whose calls end in every way that a call can end.

import { setTimeout as wait } from 'node:timers/promises';
import { Agent, Scripted, type AgentEvent, type GateKeeper, type Model, type Tool } from '../../agent.ts';

const say = (text: string) => ({ blocks: [{ type: 'text' as const, text }], isError: false });
const row = (name: string, run: Tool['run']): Tool => {
  const properties = { a: { type: 'number' }, b: { type: 'number' } };
  return { definition: { name, description: '', inputSchema: { type: 'object', properties } }, readOnly: false, run };
};
const stop = new AbortController(); // stands for Ctrl-C
const tools = [
  row('add', async ({ a, b }: any) => say(`${a + b}`)),
  row('divide', async ({ b }) => { throw new Error(`cannot divide by ${b}`); }),
  row('erase', async () => say('Everything is gone.')),
  row('sleep', async (_, { signal }) => (setTimeout(() => stop.abort(), 100), await wait(60_000, undefined, { signal }), say('awake'))),
];
const gate: GateKeeper = async ({ definition }) =>
  definition.name === 'erase' ? { allowed: false, reason: 'The user said no.' } : { allowed: true };

console.log('One prompt, and what happens:');
const model = new Scripted([{ text: 'I add them.', calls: [{ name: 'add', args: { a: 2, b: 40 } }] }, 'It is 42.']);
const show = (event: AgentEvent) => console.log(JSON.stringify(event, (key, value) => (key === 'ms' ? undefined : value)));
const agent = new Agent({ model, tools, gate, resultsFolder: 'results', emit: show });
await agent.chat('How much is 2 and 40?');
console.log('\nThe conversation, as the model would get it the next time:');
for (const turn of agent.turns) console.log(JSON.stringify(turn));

console.log('\nAn answer with seven calls:');
const asked = [
  { name: 'add', args: { a: '2', b: '40' } }, { name: 'subtract', args: {} }, { name: 'add', unreadable: 'The arguments are no JSON: {"a":2,"b"' },
  { name: 'erase', args: {} }, { name: 'divide', args: { a: 1, b: 0 } }, { name: 'sleep', args: {} }, { name: 'add', args: { a: 1, b: 1 } },
];
const hasty: Model = { name: 'hasty', async *ask() { // a model is whatever can do this
  const calls = asked.map((call, n) => ({ id: `c${n + 1}`, ...call }));
  yield { type: 'end', turn: { role: 'assistant', text: '', calls }, stop: 'tools' };
} };
const tell = (event: AgentEvent) => event.type === 'tool_end' && console.log(`${event.id} ${event.name}, ${event.outcome}: ${event.text.split('\n')[0]}`);
const second = new Agent({ model: hasty, tools, gate, resultsFolder: 'results', emit: tell });
const { ending } = await second.chat('Do all of it.', stop.signal);
const [, , last] = second.turns;
console.log(`ended: ${ending}; results: ${last?.role === 'tools' && last.results.map(({ id }) => id).join(' ')}`);
