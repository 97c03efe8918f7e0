// Chapter 8.1: the calculator lists its tools.

import { McpConnection } from '../../mcp.ts';

const onWire = (direction: string, message: unknown) =>
  console.log(direction === 'out' ? '→' : '←', JSON.stringify(message));
const calculator = new McpConnection('calculator', {
  command: 'node',
  args: ['fixtures/server.mjs'],
});
await calculator.connect();
await calculator.initialize();
calculator.options.onWire = onWire; // from here on: the handshake was chapter 7
const tools = await calculator.listTools();
console.log(`  tools: ${tools.map(({ name }) => name).join(', ')}`);
