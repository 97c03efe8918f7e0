// Chapter 8: the calculator hands out its tools page by page, and three other servers have odd lists.

import { McpConnection } from '../../mcp.ts';

const onWire = (direction: string, message: unknown) =>
  console.log(direction === 'out' ? '→' : '←', JSON.stringify(message));
const onWarning = (warning: string) => console.log(`  warning: ${warning}`);
const list = async (name: string, ...args: string[]) => {
  const connection = new McpConnection(name, { command: 'node', args }, { onWarning });
  await connection.connect();
  await connection.initialize();
  connection.options.onWire = onWire; // from here on: the handshake was chapter 7
  const tools = await connection.listTools();
  console.log(`  tools: ${tools.map((tool) => tool.name).join(', ')}`);
};

console.log('The calculator, one tool on a page:');
await list('calculator', 'fixtures/server.mjs', '--page', '1');

console.log('\nA server whose cursor is the empty string:');
await list('empty', 'fixtures/habits.mjs', 'empty-cursor');

console.log('\nA server that sends us in a circle:');
await list('circle', 'fixtures/habits.mjs', 'repeats-its-cursor').catch((error) =>
  console.log(`  ${error.message}`),
);

console.log('\nA server with three odd tools and two good ones:');
const tools =
  '[null,{"name":7},{"name":"add"},{"name":"add","description":"another"},{"name":"greet","description":"Greets."}]';
await list('odd', 'fixtures/habits.mjs', 'tools', tools);
