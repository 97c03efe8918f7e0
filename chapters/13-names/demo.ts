// Chapter 13: the calculator's tools get labels, a table knows the way back; then names that are not so well behaved.

import * as mcp from '../../mcp.ts';

const onWire = (direction: string, message: unknown) => console.log(direction === 'out' ? '→' : '←', JSON.stringify(message));
const open = async (name: string, options: mcp.ConnectionOptions) => {
  const connection = new mcp.McpConnection(name, { command: 'node', args: ['fixtures/server.mjs'] }, options);
  await connection.connect();
  await connection.initialize();
  return connection;
};

const table = new Map<string, { server: mcp.McpConnection; tool: string }>();
const enter = async (server: mcp.McpConnection) => {
  for (const { name } of await server.listTools()) table.set(mcp.toolLabel(server.serverName, name), { server, tool: name });
};
const call = (label: string, args: mcp.Json) => {
  const { server, tool } = table.get(label)!;
  return server.callTool(tool, args);
};

console.log('The calculator:');
await enter(await open('calculator', { onWire }));
console.log('\nA model knows these names:', [...table.keys()].join(', '));
console.log('It calls mcp__calculator__add, and the table knows the way:');
console.log('  answer:', (await call('mcp__calculator__add', { a: 2, b: 40 })).text);

console.log('\nThe same program under the name my__srv:');
await enter(await open('my__srv', {}));
const label = mcp.toolLabel('my__srv', 'add');
console.log(`  ${label}:`, (await call(label, { a: 2, b: 40 })).text);

console.log('\nNames that are odd, or too long, or would meet:');
const pairs: [string, string][] = [['a', 'b__c'], ['a__b', 'c'], ['files', 'x_y'], ['files', 'x.y'], ['my server', 'größe'], ['files', `${'very_'.repeat(20)}long`]];
for (const [server, tool] of pairs) console.log(`  ${mcp.toolLabel(server, tool)}`);
