// Chapter 6.1: a call that gets no answer, one whose answer comes too late, and one that its caller gives up.

import { McpConnection } from '../../mcp.ts';

const onWire = (direction: string, message: unknown) =>
  console.log(direction === 'out' ? '→' : '←', JSON.stringify(message));
const onWarning = (warning: string) => console.log(`  warning: ${warning}`);
const start = async (name: string, ...args: string[]) => {
  const connection = new McpConnection(name, { command: 'node', args }, { onWire, onWarning });
  await connection.connect();
  return connection;
};
const add = { name: 'add', arguments: { a: 2, b: 40 } };
const sleep = (ms: number) => ({ name: 'sleep', arguments: { ms } });
const tell = (error: Error) => console.log(`  ${error.message}`);

console.log('An answer in time, and no timer that stays behind:');
const calculator = await start('calculator', 'fixtures/server.mjs');
await calculator.request('tools/call', add, { timeoutMs: 60_000 });
console.log(
  '  timers:',
  process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length,
);

console.log(
  '\nA server that hears and says nothing. The handshake has a limit too, but is not cancelled:',
);
const mute = await start('mute', 'fixtures/habits.mjs', 'mute');
await mute.request('tools/call', add, { timeoutMs: 300 }).catch(tell);
await mute.request('initialize', {}, { timeoutMs: 300 }).catch(tell);

console.log('\nAn answer that comes when no call waits any more:');
const slow = await start('slow', 'fixtures/habits.mjs');
await slow.request('ping');
await slow.request('tools/call', sleep(600), { timeoutMs: 300 }).catch(tell);
await slow.request('tools/call', sleep(600));

console.log('\nA caller who gives up:');
const controller = new AbortController();
const call = slow.request('tools/call', sleep(100_000), { signal: controller.signal }).catch(tell);
controller.abort();
await call;
