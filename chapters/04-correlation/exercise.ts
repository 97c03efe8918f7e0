// Judges exercise 4: does every answer settle its call, in the right way?

import type { Judge } from '../book.ts';

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpConnection } = await load('mcp.ts');
  const start = async (...args: string[]) => {
    const connection = new McpConnection('demo', { command: 'node', args }, { onWire: see });
    await connection.connect();
    return connection;
  };
  const calculator = await start('fixtures/server.mjs');
  const call = (name: string, args: object) => calculator.request('tools/call', { name, arguments: args });
  const sum = call('add', { a: 2, b: 40 });
  await expect('a result resolves the promise', 'the result: { content: [ { type: "text", text: "42" } ] }', sum, (came) => came?.content?.[0]?.text === '42');
  const refusal = call('subtract', {});
  await expect('an error rejects it', 'an RpcError with the code -32602 and the server\'s words', refusal, (came) => came?.code === -32602 && /Unknown tool/.test(came.message));

  const backwards = await start('fixtures/habits.mjs', 'backwards', '2');
  const echo = async (who: string) => (await backwards.request('tools/call', { name: 'echo', arguments: { who } })).content[0].text;
  await expect('answers that come backwards find their callers', 'Ada gets {"who":"Ada"}, and Bob {"who":"Bob"}', Promise.all([echo('Ada'), echo('Bob')]), (came) =>
    came?.[0] === '{"who":"Ada"}' && came[1] === '{"who":"Bob"}');

  const odd = await start('fixtures/habits.mjs');
  const answer = (line: string) => odd.request('tools/call', { name: 'raw', arguments: { lines: [line] } });
  const shapes: [string, string][] = [
    ['an answer with neither result nor error', '{"jsonrpc":"2.0","id":$ID}'],
    ['an answer with both', '{"jsonrpc":"2.0","id":$ID,"result":{},"error":{"code":1,"message":"x"}}'],
    ['an answer that is not JSON-RPC 2.0', '{"id":$ID,"result":{}}'],
    ['a result that is no object', '{"jsonrpc":"2.0","id":$ID,"result":"done"}'],
  ];
  for (const [what, line] of shapes)
    await expect(`${what} is an error of that call`, 'a McpError of kind "protocol"', answer(line), (came) => came?.kind === 'protocol');
  const refused = (error: string) => answer(`{"jsonrpc":"2.0","id":$ID,"error":${error}}`);
  const names = (came: any) => /"demo".*tools\/call/.test(came?.message);
  await expect('a refusal names the server and the method', 'an RpcError with "demo" and tools/call in its words', refused('{"code":7,"message":"no"}'), names);
  await expect('a code that is no number, and words that are no text, are a refusal, too', 'an RpcError whose code is a number', refused('{"code":"x","message":{}}'), (came) => typeof came?.code === 'number' && names(came));
  await expect('an error that is no object is a refusal, too', 'an RpcError whose code is a number', refused('"no"'), (came) => typeof came?.code === 'number' && names(came));
  await expect('of endless words the beginning is enough', 'an RpcError of less than 11,000 characters', refused(`{"code":7,"message":"${'x'.repeat(20_000)}"}`), (came) => came?.code === 7 && came.message.length < 11_000);
};
