// Chapter 15, second stop: an answer with five calls, of which only the first is as it should be.

import { Agent } from '../../agent.ts';

const say = (text: string) => ({ blocks: [{ type: 'text', text }], isError: false });
const row = (name: string, run: (args: any) => Promise<object>): any => {
  const definition = { name, description: '', inputSchema: { type: 'object', required: ['path'] } };
  return { definition, readOnly: true, touches: () => ({ kind: 'read', path: '.' }), run };
};
const tools = [
  row('add', async ({ a, b }) => say(`${a + b}`)),
  row('erase', async ({ path = 'the whole folder' }) => say(`Erased: ${path}`)),
  row('divide', async ({ b }) => {
    throw new Error(`cannot divide by ${b}`);
  }),
  row('check', async () => ({ ...say('3 of 4 tests pass'), isError: true })),
];
const calls = [
  { id: 'c1', name: 'add', args: { a: 2, b: 40 } },
  { id: 'c2', name: 'subtract', args: {} },
  { id: 'c3', name: 'erase', unreadable: 'not JSON: {"path":"notes.t' },
  { id: 'c4', name: 'divide', args: { a: 1, b: 0 } },
  { id: 'c5', name: 'check', args: {} },
];
const query = async function* ({ turns }: any): AsyncGenerator<any> {
  const isFirst = turns.length === 1;
  const turn = { role: 'assistant', text: isFirst ? '' : 'I see.', calls: isFirst ? calls : [] };
  yield { type: 'end', turn, stop: isFirst ? 'tools' : 'done' };
};
const agent = new Agent({ model: { name: 'demo', query }, tools, resultsFolder: 'results' });
const { text } = await agent.chat('Do all of it.').catch((error: Error) => ({ text: `${error}` }));
const results = agent.turns.flatMap((turn) => (turn.role === 'tools' ? turn.results : []));
for (const { id, name, isError, blocks } of results as any[])
  console.log(`${id} ${name}${isError ? ', error' : ''}: ${blocks[0].text.replace('\n', '\n   ')}`);
console.log(`${calls.length} calls, ${results.length} results; then: ${text}`);
