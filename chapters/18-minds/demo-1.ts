// Chapter 18, first stop: a model in fifty lines, and a tiny server on this machine that plays its service.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as program from '../../agent.ts';
import type { Json } from '../../mcp.ts';

const answers: Json[][] = [
  [
    { type: 'text', text: 'I add them.' },
    { type: 'tool_use', id: 'toolu_1', name: 'add', input: { a: 2, b: 40 } },
  ],
  [{ type: 'text', text: 'It is 42.' }],
];
const server = createServer(async (request, response) => {
  let body = '';
  for await (const piece of request.setEncoding('utf8')) body += piece;
  const { messages } = JSON.parse(body);
  console.log(`→ POST ${request.url} …"messages":${JSON.stringify(messages)}…`);
  const answer = JSON.stringify({ content: answers.shift() });
  console.log(`← 200 ${answer}`);
  response.writeHead(200, { 'content-type': 'application/json' }).end(answer);
});
await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

const number = { type: 'number' };
const add: program.Tool = {
  definition: {
    name: 'add',
    description: 'Adds two numbers.',
    inputSchema: { type: 'object', properties: { a: number, b: number } },
  },
  readOnly: true,
  run: async ({ a, b }) => ({
    blocks: [{ type: 'text', text: `${Number(a) + Number(b)}` }],
    isError: false,
  }),
};
const { Anthropic } = await import('./anthropic.ts');
const agent = new program.Agent({
  model: new Anthropic({ model: 'demo', key: 'no-real-key', baseUrl }),
  tools: [add],
  gate: async () => ({ allowed: true }),
  resultsFolder: 'results',
});
const { text } = await agent.chat('How much is 2 and 40?');
console.log(`  ${text}`);
