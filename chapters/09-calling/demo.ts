// Chapter 9: the call that adds 2 and 40, what is lost when only text counts, and three kinds of failure.

import { McpConnection } from '../../mcp.ts';

let isShown = false; // the handshake was chapter 7
const onWire = (direction: string, message: unknown) => isShown && console.log(direction === 'out' ? '→' : '←', JSON.stringify(message));
const calculator = new McpConnection('calculator', { command: 'node', args: ['fixtures/server.mjs'] }, { onWire });
const odd = new McpConnection('odd', { command: 'node', args: ['fixtures/habits.mjs'] }, { onWire });
for (const connection of [calculator, odd]) {
  await connection.connect();
  await connection.initialize();
}
isShown = true;
const answering = (result: object) => ({ result }); // the tool `result` answers with exactly this
const picture = answering({ content: [{ type: 'image', data: 'iVBORw0KGgoA', mimeType: 'image/png' }] });

console.log('By hand, and only the text counts:');
const onlyText = async (connection: McpConnection, name: string, args: object) => {
  const { content } = await connection.request('tools/call', { name, arguments: args });
  console.log(`  the model reads: "${(content as { text?: string }[]).map(({ text }) => text).join('\n')}"`);
};
await onlyText(calculator, 'add', { a: 'two', b: 40 });
await onlyText(odd, 'result', picture);

console.log('\nThe call, and what it gives:');
console.log(' ', JSON.stringify(await calculator.callTool('add', { a: 2, b: 40 })));

console.log('\nA picture, and a result that is data:');
console.log(' ', (await odd.callTool('result', picture)).text);
console.log(' ', (await odd.callTool('result', answering({ structuredContent: { sum: 42 } }))).text);

console.log('\nThe tool fails, the call does not:');
console.log(' ', JSON.stringify(await calculator.callTool('add', { a: 'two', b: 40 })));

console.log('\nThe server refuses the call:');
const tell = (error: Error) => console.log(`  ${error.constructor.name}: ${error.message}`);
await calculator.callTool('subtract', { a: 44, b: 2 }).catch(tell);

console.log('\nNo answer comes:');
await odd.callTool('sleep', { ms: 60_000 }, { timeoutMs: 300 }).catch(tell);
