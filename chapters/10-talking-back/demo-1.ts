// Chapter 10.1: a curious server asks, and tells.

import { McpConnection, type Json } from '../../mcp.ts';

const onWire = (direction: string, message: unknown) =>
  console.log(direction === 'out' ? '→' : '←', JSON.stringify(message));
const home = () => ({
  capabilities: { roots: {} },
  handlers: {
    'roots/list': () => ({ roots: [{ uri: 'file:///home/ada/calculator' }] }),
    'notifications/message': ({ data }: Json) => console.log(`  told: ${data}`),
  },
});
const config = { command: 'node', args: ['fixtures/habits.mjs'] };
const curious = new McpConnection('curious', config, { extensions: [home], callTimeoutMs: 500 });
await curious.connect();
await curious.initialize();
curious.options.onWire = onWire; // from here on: the handshake was chapter 7
const call = (name: string, args: Json) =>
  curious.callTool(name, args).catch((error) => console.log(`  ${error.message}`));

console.log('A server asks before it answers. Its id is the id of our own call:');
await call('ask', { id: 2, method: 'ping' });
console.log(
  '\nIt asks for something that we have a handler for, and for something that we have not:',
);
await call('ask', { id: 'q1', method: 'roots/list' });
await call('ask', { id: 'q2', method: 'sampling/createMessage' });
console.log('\nIt tells us something. Nothing goes back:');
await call('tell', {
  method: 'notifications/message',
  params: { level: 'info', data: 'tea is ready' },
});
