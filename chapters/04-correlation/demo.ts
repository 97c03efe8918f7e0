// Chapter 4: the call that adds 2 and 40, and then two calls whose answers come in the wrong order.

import { McpConnection } from '../../mcp.ts';

const onWire = (direction: string, message: unknown) => console.log(direction === 'out' ? '→' : '←', JSON.stringify(message));

console.log('One request, and its answer under the same id:');
const calculator = new McpConnection('calculator', { command: 'node', args: ['fixtures/server.mjs'] }, { onWire });
await calculator.connect();
const sum = await calculator.request('tools/call', { name: 'add', arguments: { a: 2, b: 40 } });
console.log('  result:', JSON.stringify(sum));

console.log('\nA refusal comes under the id, too:');
await calculator.request('tools/call', { name: 'subtract', arguments: { a: 44, b: 2 } }).catch((error) => console.log(`  ${error.message}`));

console.log('\nTwo requests at once, to a server that answers the last one first:');
const backwards = new McpConnection('backwards', { command: 'node', args: ['fixtures/habits.mjs', 'backwards', '2'] }, { onWire });
await backwards.connect();
const ask = async (who: string) => {
  const { content } = (await backwards.request('tools/call', { name: 'echo', arguments: { who } })) as { content: { text: string }[] };
  return `  asked for ${who}: ${content[0]!.text}`;
};
console.log((await Promise.all([ask('Ada'), ask('Bob')])).join('\n'));
