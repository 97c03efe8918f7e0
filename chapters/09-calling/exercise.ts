// Judges exercise 9: does a caller get everything that the tool gave, and tell a failed tool from a failed call?

import type { Judge } from '../book.ts';

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpConnection } = await load('mcp.ts');
  const calls: any[] = []; // the parameters of every tools/call
  const onWire = (direction: string, message: any) => {
    see(direction, message);
    if (message.method === 'tools/call') calls.push(message.params);
  };
  const start = async (...args: string[]) => {
    const connection = new McpConnection('demo', { command: 'node', args }, { onWire });
    await connection.connect();
    await connection.initialize();
    return connection;
  };
  const calculator = await start('fixtures/server.mjs');
  const habits = await start('fixtures/habits.mjs');
  const answered = (result: object) => habits.callTool('result', { result });
  const image = { type: 'image', data: 'AAAA', mimeType: 'image/png' };

  await expect('a call gives its text', '{ text: "42", isError: false, … }', calculator.callTool('add', { a: 2, b: 40 }), (came) => came?.text === '42' && came.isError === false);
  await expect('the name and the arguments went out', '{ name: "add", arguments: { a: 2, b: 40 } } as the params of tools/call', calls.at(-1), (came) => JSON.stringify(came) === '{"name":"add","arguments":{"a":2,"b":40}}');
  await expect('a call without arguments sends an empty object', 'arguments: {}', habits.callTool('echo').then(() => calls.at(-1)), (came) => JSON.stringify(came?.arguments) === '{}');
  await expect('the blocks are kept as they came', 'content: [ { type: "text", text: "42" } ]', calculator.callTool('add', { a: 2, b: 40 }), (came) => JSON.stringify(came?.content) === '[{"type":"text","text":"42"}]');
  await expect('no data, no structuredContent', 'a result that has no key structuredContent', calculator.callTool('add', { a: 2, b: 40 }), (came) => 'text' in came && !('structuredContent' in came));
  await expect('an image is named in the text, and kept in the content', 'text "[image: image/png, 3 bytes]", and the image block in content', answered({ content: [image] }), (came) =>
    came?.text === '[image: image/png, 3 bytes]' && came.content?.[0]?.data === 'AAAA');

  await expect('a tool that failed is a result', 'no exception, but { text: "a and b must be numbers", isError: true, … }', calculator.callTool('add', { a: 'two' }), (came) => came?.isError === true && came.text === 'a and b must be numbers' && !(came instanceof Error));
  await expect('isError: "true" means the same', 'isError: true', answered({ content: [], isError: 'true' }), (came) => came?.isError === true);
  await expect('isError: "false" and the like do not', 'isError: false', answered({ content: [], isError: 'false' }), (came) => came?.isError === false);
  await expect('a call that the server refuses is an exception', 'a RpcError with the code -32602', calculator.callTool('subtract', {}), (came) => came instanceof Error && (came as any).code === -32602);
  await expect('a call may have its own limit', 'a McpError of kind "timeout" after 300 ms', habits.callTool('sleep', { ms: 60_000 }, { timeoutMs: 300 }), (came) => came?.kind === 'timeout');

  await expect('data without blocks becomes the text', 'text: \'{"sum":42}\', and structuredContent: { sum: 42 }', answered({ structuredContent: { sum: 42 } }), (came) => came?.text === '{"sum":42}' && came.structuredContent?.sum === 42 && came.content?.length === 0);
  await expect('data beside blocks is kept, and not said twice', 'text: "42", and structuredContent: { sum: 42 }', answered({ content: [{ type: 'text', text: '42' }], structuredContent: { sum: 42 } }), (came) => came?.text === '42' && came.structuredContent?.sum === 42);
  await expect('data may be null', 'structuredContent: null', answered({ content: [], structuredContent: null }), (came) => came?.structuredContent === null);
  await expect('the old name of data is toolResult', 'structuredContent: { sum: 42 }', answered({ toolResult: { sum: 42 } }), (came) => came?.structuredContent?.sum === 42 && came.text === '{"sum":42}');
  await expect('a result with nothing in it is empty', '{ text: "", content: [], isError: false }', answered({}), (came) => came?.text === '' && came.content?.length === 0 && came.isError === false);
  await expect('content that is no list is an error of this call', 'a McpError of kind "protocol"', answered({ content: 'done' }), (came) => came?.kind === 'protocol');
};
