// Chapter 9: what a caller gets of a failed addition, a picture and data, and the two ways in which a call fails.

import { McpConnection, type CallOptions, type Json } from '../../mcp.ts';

const onWire = (direction: string, message: unknown) =>
  console.log(direction === 'out' ? '→' : '←', JSON.stringify(message));
const start = async (name: string, file: string) => {
  const connection = new McpConnection(name, { command: 'node', args: [file] });
  await connection.connect();
  await connection.initialize();
  connection.options.onWire = onWire; // from here on: the handshake was chapter 7
  return connection;
};
const calculator = await start('calculator', 'fixtures/server.mjs');
const odd = await start('odd', 'fixtures/habits.mjs'); // its tool `result` answers with exactly what it is given
const call = async (connection: McpConnection, tool: string, args: Json, options?: CallOptions) => {
  const done = connection.callTool(tool, args, options);
  await done.then(
    ({ content, ...rest }) => console.log(' ', JSON.stringify(rest)),
    (error) => console.log(`  ${error.constructor.name}: ${error.message}`),
  );
};

console.log('The tool fails, the call does not:');
await call(calculator, 'add', { a: 'two', b: 40 });

console.log('\nA picture, and a result that is data:');
await call(odd, 'result', {
  result: { content: [{ type: 'image', data: 'iVBORw0KGgoA', mimeType: 'image/png' }] },
});
await call(odd, 'result', { result: { structuredContent: { sum: 42 } } });

console.log('\nThe server refuses the call:');
await call(calculator, 'subtract', { a: 44, b: 2 });

console.log('\nNo answer comes:');
await call(odd, 'sleep', { ms: 60_000 }, { timeoutMs: 300 });
