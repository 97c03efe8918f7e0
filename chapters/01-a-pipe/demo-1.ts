// Chapter 1.1: a server is a child process. We write lines to its stdin, and it writes lines to its stdout.

import { StdioTransport, type Json, type Message } from '../../mcp.ts';

/** Starts a server, writes one message to it, and waits for the first that comes back. */
async function ask(config: Json, question: Message): Promise<void> {
  const server = new StdioTransport('demo', config, 2 ** 26); // the number is a limit, which chapter 5 puts to use
  let hear!: (message: unknown) => void;
  const heard = new Promise((done) => (hear = done));
  await server.start({ message: hear, closed: () => {} });
  console.log('→', JSON.stringify(question));
  await server.send(question);
  console.log('←', JSON.stringify(await heard));
}
const call = (name: string, args: Json): Message => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name, arguments: args },
});

console.log('One line to the calculator, one line back:');
await ask({ command: 'node', args: ['fixtures/server.mjs'] }, call('add', { a: 2, b: 40 }));

console.log('\nA server that first writes a megabyte of log to its stderr:');
await ask(
  { command: 'node', args: ['fixtures/habits.mjs', 'floods-stderr', '1'] },
  call('echo', { text: 'hello' }),
);
