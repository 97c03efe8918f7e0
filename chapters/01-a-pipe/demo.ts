// Chapter 1: a server is a child process. We write lines to its stdin, and it writes lines to its stdout.

import { StdioTransport, type Json, type Message } from '../../mcp.ts';

/** Starts a server, writes one message to it, and waits for the first that comes back. */
async function ask(config: Json, question: Message, show = console.log): Promise<any> {
  const server = new StdioTransport('demo', config, 2 ** 26); // the number is a limit, which chapter 5 puts to use
  let hear!: (message: unknown) => void;
  const heard = new Promise((done) => (hear = done));
  await server.start({ message: hear, closed: () => {} });
  show('→', JSON.stringify(question));
  await server.send(question);
  show('←', JSON.stringify(await heard));
  return heard;
}
const call = (name: string, args: Json): Message => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name, arguments: args },
});

console.log('One line to the calculator, one line back:');
await ask({ command: 'node', args: ['fixtures/server.mjs'] }, call('add', { a: 2, b: 40 }));

console.log('\nWhat a server sees of our environment:');
process.env.ANTHROPIC_API_KEY = 'a secret';
const config = { command: 'node', args: ['fixtures/habits.mjs'], env: { COLOUR: 'blue' } };
const { result } = await ask(config, call('where', {}), () => {});
const { env } = JSON.parse(result.content[0].text);
for (const name of ['PATH', 'COLOUR', 'ANTHROPIC_API_KEY'])
  console.log(`  ${name}: ${name in env ? 'yes' : 'no'}`);
