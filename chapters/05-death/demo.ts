// Chapter 5: a server that breaks the wire is dead to us. Another lives on: only its message is dropped.

import { McpConnection } from '../../mcp.ts';

const onWire = (direction: string, message: unknown) =>
  console.log(direction === 'out' ? '→' : '←', JSON.stringify(message).slice(0, 110));
const habits = (...args: string[]) => ({ command: 'node', args: ['fixtures/habits.mjs', ...args] });
const tell = (who: string) => (error: Error) => console.log(`  ${who}: ${error.message}`);

console.log('A server that sends a longer line than we take:');
const greedy = new McpConnection('greedy', habits(), { onWire, maxLineBytes: 4096 });
await greedy.connect();
await greedy
  .request('tools/call', { name: 'big', arguments: { bytes: 5000 } })
  .then(() => console.log('  big: came whole'), tell('big'));

console.log('\nA server that sends a deeper message than we take, and lives:');
const onWarning = (warning: string) => console.log(`  warning: ${warning}`);
const tangled = new McpConnection('tangled', habits(), { onWire, onWarning });
await tangled.connect();
await tangled
  .request('tools/call', { name: 'deep', arguments: { levels: 1000 } })
  .then(() => console.log('  deep: came whole'), tell('deep'));
await tangled.request('tools/call', { name: 'echo', arguments: { who: 'Ada' } });
