// Chapter 9.1: the call that adds 2 and 40.

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
const { text } = await calculator.callTool('add', { a: 2, b: 40 });
console.log(`  the model reads: ${text}`);
