// Chapter 2: a message is what stands before a line feed, in however many pieces it comes.

import { StdioTransport, type Json } from '../../mcp.ts';

/** Starts a server, asks it something, shows what comes, and gives up when pieces came but no more of them. */
async function ask(
  args: string[],
  name: string,
  given: Json,
  show: (message: unknown) => void,
): Promise<any> {
  const server = new StdioTransport('demo', { command: 'node', args }, 2 ** 26);
  let done!: (answer?: unknown) => void;
  const answer = new Promise((resolve) => (done = resolve));
  let silence: NodeJS.Timeout | undefined;
  const message = (came: any) => {
    show(came);
    clearTimeout(silence);
    if (came?.id === 1) done(came);
    else silence = setTimeout(done, 700);
  };
  await server.start({ message, closed: () => {} });
  await server.send({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name, arguments: given },
  });
  return answer;
}
const print = (message: unknown) =>
  console.log('←', JSON.stringify(message).replaceAll('\u2028', '\\u2028'));

console.log('The calculator, whose answer is one small piece:');
await ask(['fixtures/server.mjs'], 'add', { a: 2, b: 40 }, print);

console.log('\nAn answer with a U+2028 in it:');
await ask(
  ['fixtures/habits.mjs'],
  'result',
  { result: { content: [{ type: 'text', text: 'one\u2028two' }] } },
  print,
);

console.log('\nAn answer in two pieces, cut inside the ü:');
await ask(['fixtures/habits.mjs', 'halves'], 'echo', { city: 'Zürich' }, print);

console.log('\nAn answer of a million bytes:');
const answer = await ask(['fixtures/habits.mjs'], 'big', { bytes: 1_000_000 }, () => {});
console.log(
  answer
    ? `  came whole, with ${answer.result.content[0].text.length} characters of text`
    : '  none came, only pieces',
);
