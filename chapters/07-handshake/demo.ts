// Chapter 7: an answer that an old server wraps in brackets, then the handshake, and two servers of other revisions.

import { McpConnection } from '../../mcp.ts';

const onWire = (direction: string, message: unknown) => console.log(direction === 'out' ? '→' : '←', JSON.stringify(message));
const start = async (name: string, ...args: string[]) => {
  const connection = new McpConnection(name, { command: 'node', args }, { onWire });
  await connection.connect();
  return connection;
};
const tell = (error: Error) => console.log(`  ${error.message}`);

console.log('The handshake by hand, and nobody reads what the server says of its revision:');
const elder = await start('elder', 'fixtures/habits.mjs', 'batches', '2025-03-26');
await elder.request('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'by-hand', version: '1' } });
await elder.notify('notifications/initialized');
const echo = elder.request('tools/call', { name: 'echo', arguments: { who: 'Ada' } }, { timeoutMs: 500 });
await echo.then((result) => console.log('  result:', JSON.stringify(result)), tell);

console.log('\nThe handshake, and then the call:');
const calculator = await start('calculator', 'fixtures/server.mjs');
const server = await calculator.initialize();
console.log(`  ${server.serverInfo?.name} speaks ${server.protocolVersion} and has: ${Object.keys(server.capabilities ?? {})}`);
await calculator.request('tools/call', { name: 'add', arguments: { a: 2, b: 40 } });

console.log('\nA server that speaks an older revision:');
const old = await start('old', 'fixtures/habits.mjs', 'version', '{"protocolVersion":"2024-11-05","capabilities":{"tools":{}}}');
console.log(`  agreed on ${(await old.initialize()).protocolVersion}`);

console.log('\nA server that speaks one we do not know:');
const future = await start('future', 'fixtures/habits.mjs', 'version', '{"protocolVersion":"9999-01-01","capabilities":{"tools":{}}}');
await future.initialize().catch(tell);
