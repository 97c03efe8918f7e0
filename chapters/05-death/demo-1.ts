// Chapter 5.1: three ways to die. Every call that waits is told at once.

import { McpConnection } from '../../mcp.ts';

const onWire = (direction: string, message: unknown) =>
  console.log(direction === 'out' ? '→' : '←', JSON.stringify(message));
const habits = (...args: string[]) => ({ command: 'node', args: ['fixtures/habits.mjs', ...args] });
const add = { name: 'add', arguments: { a: 2, b: 40 } };
const tell = (who: string) => (error: Error) => console.log(`  ${who}: ${error.message}`);

console.log('A command that is not there:');
const missing = new McpConnection('missing', { command: 'no-such-command' }, { onWire });
await missing.connect().catch(tell('connect'));

console.log('\nA server that dies at its start, because it is not given a variable that we have:');
process.env.SHELF_TOKEN = 'a secret';
const poor = new McpConnection('poor', habits('dies-at-once', 'SHELF_TOKEN'), { onWire });
await poor.connect();
await poor.request('tools/call', add).catch(tell('add'));

console.log('\nTwo calls wait, and the server leaves in the middle of the second:');
const doomed = new McpConnection('doomed', habits(), { onWire });
await doomed.connect();
const sleep = doomed
  .request('tools/call', { name: 'sleep', arguments: { ms: 100_000 } })
  .catch(tell('sleep'));
const exit = doomed
  .request('tools/call', { name: 'exit', arguments: { code: 7 } })
  .catch(tell('exit'));
await Promise.all([sleep, exit]);
await doomed.request('tools/call', add).catch(tell('add, afterwards'));
