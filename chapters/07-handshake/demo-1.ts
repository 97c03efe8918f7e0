// Chapter 7.1: the handshake, and then the call that adds 2 and 40.

import { McpConnection } from '../../mcp.ts';

const onWire = (direction: string, message: unknown) =>
  console.log(direction === 'out' ? '→' : '←', JSON.stringify(message));
const calculator = new McpConnection(
  'calculator',
  { command: 'node', args: ['fixtures/server.mjs'] },
  { onWire },
);
await calculator.connect();
const server = await calculator.initialize();
console.log(
  `  ${server.serverInfo?.name} speaks ${server.protocolVersion} and has: ${Object.keys(server.capabilities ?? {})}`,
);
await calculator.request('tools/call', { name: 'add', arguments: { a: 2, b: 40 } });
