// The tour: one server from hello to goodbye, with every message that goes over the wire.

import { fileURLToPath } from 'node:url';
import { McpConnection } from '../mcp.ts';

const server = fileURLToPath(new URL('../fixtures/server.mjs', import.meta.url));
const say = (text: string) => console.log(`\n# ${text}`);

const connection = new McpConnection(
  'demo',
  { command: process.execPath, args: [server] },
  {
    onWire: (direction, message) =>
      console.log(direction === 'out' ? '→' : '←', JSON.stringify(message)),
  },
);

say('A server is a child process. We start it; nothing has been said yet.');
await connection.connect();

say('The handshake: both sides name the revision they speak and what they can do.');
await connection.initialize();

say('What can you do? The answer carries a JSON Schema for each tool.');
const tools = await connection.listTools();

say(`It has ${tools.length} tools: ${tools.map((tool) => tool.name).join(' and ')}. We call one.`);
const sum = await connection.callTool('add', { a: 2, b: 40 });

say(`The tool says ${sum.text}. A tool may also fail; that is an answer too, meant for the model.`);
await connection.callTool('add', { a: 2, b: 'forty' });

say('A request that the server refuses is an error, meant for the program.');
await connection
  .callTool('subtract', { a: 44, b: 2 })
  .catch((error) => console.log(`  ${error.message}`));

say('Goodbye: we end its stdin, and it leaves.');
await connection.close();
