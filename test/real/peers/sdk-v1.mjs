// A server built with version 1 of the official SDK: `node sdk-v1.mjs FOLDER [--sessions] [--json]`, where FOLDER holds
// its node_modules. It prints its address, and leaves when its stdin ends.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [folder, ...flags] = process.argv.slice(2);
const require = createRequire(join(folder, 'package.json'));
const { McpServer } = require('@modelcontextprotocol/sdk/server/mcp.js');
const {
  StreamableHTTPServerTransport,
} = require('@modelcontextprotocol/sdk/server/streamableHttp.js');
const { z } = require('zod');

const text = (value) => ({ content: [{ type: 'text', text: String(value) }] });

function build() {
  const server = new McpServer(
    { name: 'peer-v1', version: '1.0.0' },
    { instructions: 'Built with v1.' },
  );
  server.registerTool('add', { inputSchema: { a: z.number(), b: z.number() } }, async ({ a, b }) =>
    text(a + b),
  );
  server.registerTool('fail', {}, async () => {
    throw new Error('no luck');
  });
  server.registerTool(
    'work',
    { inputSchema: { times: z.number() } },
    async ({ times }, { _meta, sendNotification }) => {
      for (let progress = 1; progress <= times; progress++)
        await sendNotification({
          method: 'notifications/progress',
          params: { progressToken: _meta.progressToken, progress, total: times },
        });
      return text('worked');
    },
  );
  const requestedSchema = { type: 'object', properties: { ok: { type: 'boolean' } } };
  server.registerTool('confirm', {}, async () =>
    text(JSON.stringify(await server.server.elicitInput({ message: 'Shall I?', requestedSchema }))),
  );
  server.registerTool(
    'grow',
    {},
    async () => (server.registerTool('new', {}, async () => text('I am new')), text('grown')),
  );
  return server;
}

const sessions = new Map();
async function transportFor(request) {
  const known = sessions.get(request.headers['mcp-session-id']);
  if (known) return known;
  const transport = new StreamableHTTPServerTransport({
    enableJsonResponse: flags.includes('--json'),
    sessionIdGenerator: flags.includes('--sessions') ? () => randomUUID() : undefined,
    onsessioninitialized: (id) => sessions.set(id, transport),
    onsessionclosed: (id) => sessions.delete(id),
  });
  await build().connect(transport);
  return transport;
}

const http = createServer(async (request, response) => {
  if (request.url === '/sessions') return response.end(`${sessions.size}`); // for the test: who has not said goodbye
  if (!flags.includes('--sessions') && request.method !== 'POST')
    return response.writeHead(405).end();
  if (request.headers['mcp-session-id'] && !sessions.has(request.headers['mcp-session-id']))
    return response.writeHead(404).end();
  await (await transportFor(request)).handleRequest(request, response);
});
http.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));
process.stdin.resume().on('end', () => process.exit());
