// Chapter 10: a server tells of its progress, another of its tools, and a third asks a person who thinks.

import { McpConnection, type CallOptions, type Json } from '../../mcp.ts';

const onWire = (direction: string, message: unknown) =>
  console.log(direction === 'out' ? '→' : '←', JSON.stringify(message));
const onProgress = ({ progress, total }: Json) =>
  console.log(`  progress: ${progress} of ${total}`);
const person = (connection: McpConnection) => ({
  changed: (what: string) => console.log(`  changed: ${what}`),
  handlers: {
    'elicitation/create': () => {
      const thinks = new Promise((done) =>
        setTimeout(done, 1000, { action: 'accept', content: { name: 'Ada' } }),
      );
      return 'hold' in connection ? connection.hold(thinks) : thinks;
    },
  },
});
const open = async (server: string) => {
  const config = { command: 'node', args: ['fixtures/habits.mjs'] };
  const connection = new McpConnection(server, config, { extensions: [person] });
  await connection.connect();
  await connection.initialize();
  return connection;
};
const call = async (connection: McpConnection, tool: string, args: Json, options?: CallOptions) => {
  connection.options.onWire = onWire; // the handshake was chapter 7
  await connection
    .callTool(tool, args, options)
    .catch((error) => console.log(`  ${error.message}`));
  connection.options.onWire = () => {}; // what comes too late was chapter 6
};
const [busy, fickle, polite] = (await Promise.all(['busy', 'fickle', 'polite'].map(open))) as [
  McpConnection,
  McpConnection,
  McpConnection,
];

console.log(
  'A call that needs 1.2 s, with a limit of one second, and a sign of life every 400 ms:',
);
await call(busy, 'work', { everyMs: 400, times: 3 }, { timeoutMs: 1000, onProgress });
console.log('\nA server has other tools now:');
await call(fickle, 'tell', { method: 'notifications/tools/list_changed' });
console.log('\nA call with a limit of half a second, and a person who thinks for a whole one:');
await call(
  polite,
  'ask',
  { id: 'q1', method: 'elicitation/create', params: { message: 'Your name?' } },
  { timeoutMs: 500 },
);
