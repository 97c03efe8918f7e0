// Chapter 20.1: the simplest transport over HTTP, and a server that answers every POST with one JSON object.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { McpConnection } from '../../mcp.ts';
import { plainHost } from '../19-the-terminal/host.ts';
import { compose } from '../composition.ts';

const calculator = createServer(async (request, response) => {
  const { id, params } = JSON.parse(await textOf(request));
  const { a, b } = params.arguments;
  const result = { content: [{ type: 'text', text: `${a + b}` }] };
  const json = { 'content-type': 'application/json' };
  response.writeHead(200, json).end(JSON.stringify({ jsonrpc: '2.0', id, result }));
}).listen(0, '127.0.0.1');
await once(calculator, 'listening');
const { port } = calculator.address() as AddressInfo;

const config = { type: 'http', url: `http://127.0.0.1:${port}/mcp` };
const connection = new McpConnection('calculator', config, {
  transports: compose(plainHost()).transports,
  onWire: (direction, message) =>
    console.log(direction === 'out' ? '→ POST' : '← 200 ', JSON.stringify(message)),
});
await connection.connect();
const { text } = await connection.callTool('add', { a: 2, b: 40 });
console.log('  =', text);
await connection.close();
