// Chapter 15, first stop: a conversation with the small agent. The model and its service are stand-ins. Like the real
// ones, the service takes no conversation with an unanswered call.

import { Agent } from '../../agent.ts';

const say = (text: string) => ({ blocks: [{ type: 'text', text }], isError: false });
const row = (name: string, run: (args: any) => Promise<object>): any => {
  const definition = { name, description: '', inputSchema: { type: 'object' } };
  return { definition, readOnly: true, touches: () => ({ kind: 'read', path: '.' }), run };
};
const tools = [
  row('add', async ({ a, b }) => say(`${a + b}`)),
  row('erase', async ({ path = 'the whole folder' }) => say(`Erased: ${path}`)),
];
const wishes: Record<string, object> = {
  'add 2 and 40': { name: 'add', args: { a: 2, b: 40 } },
  'erase notes.txt': { name: 'erase', unreadable: 'not JSON: {"path":"notes.t' },
  'subtract 2 from 44': { name: 'subtract', args: { a: 2, b: 44 } }, // not offered: models do that
};
const service = async function* ({ turns }: any): AsyncGenerator<any> {
  const results = turns.flatMap((turn: any) => turn.results ?? []);
  const calls = turns.flatMap((turn: any) => turn.calls ?? []);
  const open = calls.find(({ id }: any) => !results.some((result: any) => result.id === id));
  if (open) throw new Error(`400: the call ${open.id} has no result`);
  const { role, text } = turns.at(-1);
  const answer = role === 'tools' ? results.at(-1).blocks[0].text : 'Hello.';
  const call = wishes[text] && { id: `call_${calls.length + 1}`, ...wishes[text] };
  const turn = { role: 'assistant', text: call ? '' : answer, calls: call ? [call] : [] };
  yield { type: 'end', turn, stop: call ? 'tools' : 'done' };
};
const agent = new Agent({
  model: { name: 'demo', query: service },
  tools,
  resultsFolder: 'results',
});
for (const prompt of [...Object.keys(wishes), 'add 2 and 40', 'hello?']) {
  const { text } = await agent.chat(prompt).catch((error: Error) => ({ text: `  ${error}` }));
  console.log(`> ${prompt}\n${text}`);
}

let requests = 0;
const endless = async function* (): AsyncGenerator<any> {
  if (++requests > 1000) throw new Error('402: after 1000 requests your credit is spent');
  const call = { id: `call_${requests}`, name: 'add', args: { a: requests, b: 1 } };
  yield { type: 'end', turn: { role: 'assistant', text: '', calls: [call] }, stop: 'tools' };
};
console.log('> count, until I say stop');
const busy = new Agent({
  model: { name: 'demo', query: endless },
  tools,
  resultsFolder: 'results',
});
await busy.chat('count').catch((error: Error) => console.log(`  ${error}`));
