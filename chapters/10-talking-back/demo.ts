// Chapter 10: the call that adds 2 and 40 asks for progress, and a curious server asks and tells.

import { McpConnection, type CallOptions, type ConnectionOptions, type Json } from '../../mcp.ts';

const onWire = (direction: string, message: unknown) => console.log(direction === 'out' ? '→' : '←', JSON.stringify(message));
const onWarning = (warning: string) => console.log(`  warning: ${warning}`);
const onProgress = ({ progress, total }: Json) => console.log(`  progress: ${progress} of ${total}`);
const open = async (name: string, args: string[], options: ConnectionOptions = {}) => {
  const connection = new McpConnection(name, { command: 'node', args }, { onWarning, ...options });
  await connection.connect();
  await connection.initialize();
  connection.options.onWire = onWire; // from here on: the handshake was chapter 7's
  return connection;
};

console.log('The call says where progress should go; the calculator is done too soon to have any:');
const calculator = await open('calculator', ['fixtures/server.mjs']);
await calculator.callTool('add', { a: 2, b: 40 }, { onProgress });

const curious = await open('curious', ['fixtures/habits.mjs'], {
  extensions: [
    () => ({
      capabilities: { roots: {} },
      handlers: {
        'roots/list': () => ({ roots: [{ uri: 'file:///home/ada/calculator' }] }),
        'notifications/message': ({ data }) => console.log(`  told: ${data}`),
      },
    }),
  ],
});
const call = async (name: string, args: Json, options: CallOptions = { timeoutMs: 500 }) =>
  curious.callTool(name, args, options).catch((error) => console.log(`  ${error.message}`));

console.log('\nA server asks before it answers. Its id is the id of our own call:');
await call('ask', { id: 2, method: 'ping' });
console.log('\nIt asks for something that we have a handler for, and for something that we have not:');
await call('ask', { id: 'q1', method: 'roots/list' });
await call('ask', { id: 'q2', method: 'sampling/createMessage' });
console.log('\nIt tells us something. Nothing goes back:');
await call('tell', { method: 'notifications/message', params: { level: 'info', data: 'tea is ready' } });
console.log('\nA call that needs 1.2 s, with a limit of one second, and a sign of life every 400 ms:');
await call('work', { everyMs: 400, times: 3 }, { timeoutMs: 1000, onProgress });
