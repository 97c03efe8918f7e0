// Chapter 4.1: the call that adds 2 and 40, and then two calls whose answers come in the wrong order.

import { McpConnection, type Json } from '../../mcp.ts';

const onWire = (direction: string, message: unknown) =>
  console.log(direction === 'out' ? '→' : '←', JSON.stringify(message));
const onWarning = (warning: string) => console.log(`  ${warning}`);
const start = async (name: string, ...args: string[]) => {
  const connection = new McpConnection(name, { command: 'node', args }, { onWire, onWarning });
  await connection.connect();
  return connection;
};

/** The program of chapter 3 cannot ask. There the line is written by hand, to see what becomes of its answer. */
let id = 1;
async function call(connection: any, name: string, args: Json): Promise<Json> {
  const params = { name, arguments: args };
  if (connection.request) return connection.request('tools/call', params);
  const question = { jsonrpc: '2.0', id: id++, method: 'tools/call', params };
  onWire('out', question);
  await connection.transport.send(question);
  await new Promise((done) => setTimeout(done, 500));
  throw new Error('nobody was told');
}
const print = (error: Error) => console.log(`  ${error.message}`);

console.log('One request, and its answer under the same id:');
const calculator = await start('calculator', 'fixtures/server.mjs');
await call(calculator, 'add', { a: 2, b: 40 }).then(
  (sum) => console.log('  result:', JSON.stringify(sum)),
  print,
);

console.log('\nA refusal comes under the id, too:');
await call(calculator, 'subtract', { a: 44, b: 2 }).catch(print);

console.log('\nTwo requests at once, to a server that answers the last one first:');
const backwards = await start('backwards', 'fixtures/habits.mjs', 'backwards', '2');
const ask = async (who: string) => {
  const { content } = (await call(backwards, 'echo', { who })) as { content: { text: string }[] };
  return `  asked for ${who}: ${content[0]!.text}`;
};
await Promise.all([ask('Ada'), ask('Bob')]).then((lines) => console.log(lines.join('\n')), print);
