// Chapter 7: the handshake with three servers of other revisions. One of them wraps its answers in brackets.

import { McpConnection } from '../../mcp.ts';

const onWire = (direction: string, message: unknown) =>
  console.log(direction === 'out' ? '→' : '←', JSON.stringify(message));
const onWarning = (warning: string) => console.log(`  warning: ${warning}`);
const start = async (name: string, ...args: string[]) => {
  const connection = new McpConnection(
    name,
    { command: 'node', args: ['fixtures/habits.mjs', ...args] },
    { onWire, onWarning },
  );
  await connection.connect();
  return connection;
};
const tell = (error: Error) => console.log(`  ${error.message}`);
const shake = (connection: McpConnection) =>
  connection
    .initialize()
    .then(({ protocolVersion }) => console.log(`  agreed on ${protocolVersion}`), tell);

console.log('A server of the revision that has batches:');
const elder = await start('elder', 'batches', '2025-03-26');
await shake(elder);
const echo = elder.request(
  'tools/call',
  { name: 'echo', arguments: { who: 'Ada' } },
  { timeoutMs: 500 },
);
await echo.then((result) => console.log('  result:', JSON.stringify(result)), tell);

console.log('\nA server that speaks an older revision:');
await shake(
  await start('old', 'version', '{"protocolVersion":"2024-11-05","capabilities":{"tools":{}}}'),
);

console.log('\nA server that speaks one we do not know:');
await shake(
  await start('future', 'version', '{"protocolVersion":"9999-01-01","capabilities":{"tools":{}}}'),
);
