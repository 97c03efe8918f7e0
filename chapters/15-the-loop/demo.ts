// Chapter 15: one prompt from its beginning to its end, and then what goes wrong in the second week.

import { Agent, Scripted } from '../../agent.ts';
import type { AgentEvent, ModelRequest, Tool, Turn } from '../../agent.ts';

const add: Tool = {
  definition: { name: 'add', description: '', inputSchema: { type: 'object' } },
  readOnly: false,
  run: async ({ a, b }: any) => ({ blocks: [{ type: 'text', text: `${a + b}` }], isError: false }),
};
const options = {
  tools: [add],
  gate: async () => ({ allowed: true as const }),
  resultsFolder: 'results',
  cwd: '/work',
};
const call = {
  calls: [{ name: 'add', args: { a: 2, b: 40 } }],
  usage: { input: 90, output: 12, cached: 0 },
};
const withoutMs = (key: string, value: unknown) => (key === 'ms' ? undefined : value);

console.log('One prompt, and what happens:');
const emit = (event: AgentEvent) => console.log(JSON.stringify(event, withoutMs));
const model = new Scripted([{ text: 'I add them.', ...call }, 'It is 42.']);
const agent = new Agent({ ...options, model, emit });
await agent.chat('How much is 2 and 40?');
console.log('\nThe conversation, as the model would get it the next time:');
for (const turn of agent.turns) console.log(JSON.stringify(turn));
const told = model.requests[0]!.system?.split('\n');
console.log(`And before it: ${told ? `${told[0]} … ${told.at(-1)!.split('.')[0]}.` : 'nothing'}`);

const show = ({ type, ...rest }: any) => {
  if (type === 'note' || type === 'error') console.log(`  ${type}: ${rest.text ?? rest.message}`);
  if (type === 'done') console.log(`  ended: ${rest.ending}`);
};
const result = (id: string, text: string) => ({
  id,
  name: 'add',
  blocks: [{ type: 'text' as const, text }],
  isError: false,
});
const answered = (id: string, text: string): Turn[] => [
  { role: 'assistant', text: '', calls: [{ id, name: 'add', args: {} }] },
  { role: 'tools', results: [result(id, text)] },
];
/** A service that takes no conversation with an open call, and none of more than 2,000 characters. */
const strict = ({ turns }: ModelRequest) => {
  const open =
    turns.findLast((turn) => turn.role === 'assistant')?.calls.length &&
    turns.at(-2)?.role !== 'tools';
  if (open) throw new Error('400: a call has no result');
  const isTooLong = JSON.stringify(turns).length > 2000;
  if (isTooLong) throw Object.assign(new Error('413: too long'), { kind: 'too-long' });
  return 'Hello.';
};
console.log('\nA conversation that kill -9 cut off:');
const cut: Turn[] = [{ role: 'user', text: 'add' }, answered('c1', '42')[0]!];
await resume(cut);
console.log('A conversation that no longer fits:');
await resume([
  { role: 'user', text: 'add' },
  ...answered('c1', 'x'.repeat(3000)),
  ...answered('c2', '42'),
  { role: 'assistant', text: 'So.', calls: [] },
]);
console.log('An answer with 5,000 calls:');
const calls = Array.from({ length: 5000 }, () => call.calls[0]!);
const lost = new Agent({ ...options, model: new Scripted([{ calls }, 'Hello.']), emit: show });
await lost.chat('go');
console.log(
  `  the next request would have ${JSON.stringify(lost.turns).length > 1000 ? 'more than 500,000' : 'a few'} characters more`,
);
console.log('A disk that is full:');
const record = () => {
  throw new Error('ENOSPC: no space left on device');
};
await new Agent({ ...options, model: new Scripted(['Hello.']), emit: show, record }).chat('go');

async function resume(turns: Turn[]): Promise<void> {
  const again = new Agent({ ...options, model: new Scripted([strict, strict]), emit: show, turns });
  if (again.turns.length === 0) again.turns.push(...turns); // before there was an option for it
  await again.chat('hello?');
}
