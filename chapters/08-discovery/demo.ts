// Chapter 8: the calculator hands out its tools page by page, and three other servers have odd lists.

import { McpConnection } from '../../mcp.ts';

let isShown = false;
const onWire = (direction: string, message: unknown) => isShown && console.log(direction === 'out' ? '→' : '←', JSON.stringify(message));
const onWarning = (warning: string) => console.log(`  warning: ${warning}`);
const start = async (name: string, ...args: string[]) => {
  const connection = new McpConnection(name, { command: 'node', args }, { onWire, onWarning });
  isShown = false; // the handshake was chapter 7
  await connection.connect();
  await connection.initialize();
  isShown = true;
  return connection;
};
const tell = (tools: { name: string }[]) => console.log(`  tools: ${tools.map(({ name }) => name).join(', ')}`);

console.log('One question, and its answer taken for the whole list:');
const calculator = await start('calculator', 'fixtures/server.mjs', '--page', '1');
tell((await calculator.request('tools/list')).tools as { name: string }[]);

console.log('\nThe whole list:');
tell(await calculator.listTools());

console.log('\nA server whose cursor is the empty string:');
const empty = await start('empty', 'fixtures/habits.mjs', 'empty-cursor');
tell(await empty.listTools());

console.log('\nA server with three odd tools and two good ones:');
const tools = '[null,{"name":7},{"name":"add"},{"name":"add","description":"another"},{"name":"greet","description":"Greets."}]';
const odd = await start('odd', 'fixtures/habits.mjs', 'tools', tools);
tell(await odd.listTools());

console.log('\nA server that sends us in a circle:');
const circle = await start('circle', 'fixtures/habits.mjs', 'repeats-its-cursor');
await circle.listTools().catch((error) => console.log(`  ${error.message}`));
