// A server built with version 2 of the official SDK, which speaks both eras: `node sdk-v2.mjs FOLDER [FLAG …]`, where
// FOLDER holds its node_modules. Over HTTP it prints its address. It leaves when its stdin ends.
//   --stdio         over stdio instead of HTTP
//   --modern        without a handshake only
//   --legacy        with a handshake only
//   --sessions      with sessions for those who shake hands
//   --json, --sse   how it answers

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [folder, ...flags] = process.argv.slice(2);
const has = (name) => flags.includes(`--${name}`);
const require = createRequire(join(folder, 'package.json'));
const {
  createMcpHandler,
  fromJsonSchema,
  inputRequired,
  isLegacyRequest,
  McpServer,
} = require('@modelcontextprotocol/server');
const { serveStdio } = require('@modelcontextprotocol/server/stdio');
const {
  NodeStreamableHTTPServerTransport,
  toNodeHandler,
  toWebRequest,
} = require('@modelcontextprotocol/node');

const text = (value) => ({ content: [{ type: 'text', text: String(value) }] });
const numbers = (...names) =>
  fromJsonSchema({
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name, { type: 'number' }])),
    required: names,
  });
const nothing = fromJsonSchema({ type: 'object' });
const question = {
  message: 'Shall I?',
  requestedSchema: { type: 'object', properties: { ok: { type: 'boolean' } } },
};
let isGrown = false;
let notify; // over HTTP each request has a server of its own, so none of them can tell the others
const addNew = (server) =>
  server.registerTool('new', { inputSchema: nothing }, async () => text('I am new'));

function build({ era }) {
  const server = new McpServer(
    { name: 'peer-v2', version: '1.0.0' },
    { capabilities: { tools: { listChanged: true } }, instructions: 'Built with v2.' },
  );
  server.registerTool('add', { inputSchema: numbers('a', 'b') }, async ({ a, b }) => text(a + b));
  server.registerTool('fail', { inputSchema: nothing }, async () => {
    throw new Error('no luck');
  });
  server.registerTool('work', { inputSchema: numbers('times') }, async ({ times }, { mcpReq }) => {
    for (let progress = 1; progress <= times; progress++)
      await mcpReq.notify({
        method: 'notifications/progress',
        params: { progressToken: mcpReq._meta.progressToken, progress, total: times },
      });
    return text('worked');
  });
  server.registerTool('confirm', { inputSchema: nothing }, async (_, { mcpReq }) => {
    if (era === 'legacy') return text(JSON.stringify(await mcpReq.elicitInput(question)));
    const answer = mcpReq.inputResponses?.answer;
    return answer
      ? text(JSON.stringify(answer))
      : inputRequired({
          inputRequests: { answer: inputRequired.elicit(question) },
          requestState: '{"n": 1}',
        });
  });
  server.registerTool('grow', { inputSchema: nothing }, async () => {
    isGrown = true;
    if (notify) notify.toolsChanged();
    if (!notify || era === 'legacy') addNew(server);
    return text('grown');
  });
  if (isGrown) addNew(server);
  return server;
}

const sessions = new Map();
async function withHandshake(request, response, body) {
  const id = request.headers['mcp-session-id'];
  if (id && !sessions.has(id)) return response.writeHead(404).end();
  const fresh = () =>
    new NodeStreamableHTTPServerTransport({
      enableJsonResponse: has('json'),
      sessionIdGenerator: has('sessions') ? () => randomUUID() : undefined,
      onsessioninitialized: (given) => sessions.set(given, transport),
      onsessionclosed: (given) => sessions.delete(given),
    });
  const transport = sessions.get(id) ?? fresh();
  if (!sessions.has(id)) await build({ era: 'legacy' }).connect(transport);
  return transport.handleRequest(request, response, body);
}

function overHttp() {
  const responseMode = has('json') ? 'json' : has('sse') ? 'sse' : 'auto';
  const handler = createMcpHandler(build, {
    legacy: has('modern') || has('sessions') ? 'reject' : 'stateless',
    responseMode,
  });
  notify = handler.notify;
  const both = toNodeHandler(handler);
  const http = createServer(async (request, response) => {
    if (request.url === '/sessions') return response.end(`${sessions.size}`);
    if (has('legacy')) return withHandshake(request, response);
    if (!has('sessions')) return both(request, response);
    const chunks = await request.toArray();
    const body = chunks.length > 0 ? JSON.parse(Buffer.concat(chunks)) : undefined;
    const isLegacy = await isLegacyRequest(await toWebRequest(request, body), body);
    return isLegacy ? withHandshake(request, response, body) : both(request, response, body);
  });
  http.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));
  process.stdin.resume().on('end', () => process.exit());
}

if (has('stdio')) serveStdio(build, { legacy: has('modern') ? 'reject' : 'serve' });
else overHttp();
