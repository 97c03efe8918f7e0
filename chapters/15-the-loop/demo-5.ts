// Chapter 15, fifth stop: what happens is told, and what may not happen is not done.

import { setTimeout as wait } from 'node:timers/promises';
import { Agent } from '../../agent.ts';

const say = (text: string) => ({ blocks: [{ type: 'text', text }], isError: false });
const row = (name: string, readOnly: boolean, run: (...given: any[]) => Promise<object>): any => {
  const properties = { a: { type: 'number' }, b: { type: 'number' } };
  const inputSchema = { type: 'object', properties };
  return { definition: { name, description: '', inputSchema }, readOnly, run };
};
const tools = [
  row('add', false, async ({ a, b }) => say(`${a + b}`)),
  row('erase', false, async () => say('Everything is gone.')),
  row('slow', true, async (_, { onProgress }) => {
    await wait(100);
    onProgress?.({ progress: 1, total: 2 });
    await wait(100);
    return say('at last');
  }),
  row('quick', true, async () => say('at once')),
];
const gate: any = async ({ definition }: any) =>
  definition.name === 'erase' ? { allowed: false, reason: 'The user said no.' } : { allowed: true };
const withoutMs = (key: string, value: unknown) => (key === 'ms' ? undefined : value);
const emit = (event: object) => console.log(JSON.stringify(event, withoutMs));
const run = async (...calls: object[]) => {
  const query = async function* ({ turns }: any): AsyncGenerator<any> {
    const isFirst = turns.length === 1;
    const text = isFirst ? 'I try.' : 'Done.';
    yield { type: 'text', text };
    yield {
      type: 'end',
      turn: { role: 'assistant', text, calls: isFirst ? calls : [] },
      stop: 'done',
    };
  };
  const agent = new Agent({
    model: { name: 'demo', query },
    tools,
    gate,
    emit,
    resultsFolder: 'results',
  });
  await agent.chat('Go.');
  const results = agent.turns.flatMap((turn) => (turn.role === 'tools' ? turn.results : []));
  console.log(
    `the model reads: ${results.map(({ id, blocks: [block] }: any) => `${id} ${block.text}`).join('; ')}`,
  );
};
console.log('One that may write, and so they come one after the other:');
await run(
  { id: 'c1', name: 'add', args: { a: '2', b: '40' } },
  { id: 'c2', name: 'erase', args: {} },
);
console.log('\nBoth only read, and run side by side:');
await run({ id: 'c1', name: 'slow', args: {} }, { id: 'c2', name: 'quick', args: {} });
