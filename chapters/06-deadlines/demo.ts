// Chapter 6, its end: a hundred calls that wait, and one that may take as long as it likes.

import { McpConnection } from '../../mcp.ts';

process.removeAllListeners('warning'); // Node warns of Infinity, in words of its version

const config = { command: 'node', args: ['fixtures/habits.mjs'] };
const slow = new McpConnection('slow', config);
await slow.connect();
await slow.request('ping');
const sleep = (ms: number) => ({ name: 'sleep', arguments: { ms } });
const countTimers = () =>
  process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

const calls = Array.from({ length: 100 }, () => slow.request('tools/call', sleep(200)));
console.log(`A hundred calls wait. Timers: ${countTimers()}`);
await Promise.all(calls);
console.log(`All are answered. Timers that keep us from our end: ${countTimers()}`);

console.log('\nA call whose limit is Infinity:');
const call = slow.request('tools/call', sleep(200), { timeoutMs: Infinity });
await call.then(
  () => console.log('  answered'),
  (error: Error) => console.log(`  ${error.message}`),
);
