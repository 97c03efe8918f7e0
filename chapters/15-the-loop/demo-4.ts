// Chapter 15, fourth stop: a model that fails in the middle of a sentence.

import { Agent } from '../../agent.ts';

let queries = 0;
const query = async function* ({ turns }: any): AsyncGenerator<any> {
  queries++;
  console.log(`the model reads: ${turns.map(({ text }: any) => text).join(' | ')}`);
  yield { type: 'text', text: queries === 1 ? 'The answer is' : '42.' };
  if (queries === 1) throw new Error('the line is dead');
  yield { type: 'end', turn: { role: 'assistant', text: '42.', calls: [] }, stop: 'done' };
};
const agent = new Agent({ model: { name: 'demo', query }, resultsFolder: 'results' } as any);
for (const prompt of ['How much is 2 and 40?', 'Go on.']) {
  const { ending } = await agent.chat(prompt);
  console.log(`ended: ${ending}`);
}
