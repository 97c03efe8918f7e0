// An MCP server that is its own authorization server, by the plugin `mcp` of better-auth: `node better-auth.mjs FOLDER
// SDK`, the folders that hold their node_modules. It prints its address, and leaves when its stdin ends. For tests:
// GET /test/log tells what its token endpoint was asked, POST /test/expire ends all access tokens.

import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [folder, sdk] = process.argv
  .slice(2)
  .map((each) => createRequire(join(each, 'package.json')));
const load = (name) => import(pathToFileURL(folder.resolve(name)));
const { betterAuth } = await load('better-auth');
const { memoryAdapter } = await load('better-auth/adapters/memory');
const { toNodeHandler } = await load('better-auth/node');
const { mcp, oAuthDiscoveryMetadata, withMcpAuth } = await load('better-auth/plugins');
const { McpServer } = sdk('@modelcontextprotocol/sdk/server/mcp.js');
const web = sdk('@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js');
const { z } = sdk('zod');

const TABLES = [
  'user',
  'session',
  'account',
  'verification',
  'oauthApplication',
  'oauthAccessToken',
  'oauthConsent',
];
const db = Object.fromEntries(TABLES.map((name) => [name, []]));
const PAGE = `<form action="/api/auth/sign-in/email" method="post">
  <input name="email" value="anna@example.com"> <input type="password" name="password"> <button>Sign in</button>
</form>`;
const text = (value) => ({ content: [{ type: 'text', text: String(value) }] });
const log = [];

const http = createServer().listen(0, '127.0.0.1', begin);

async function begin() {
  const baseURL = `http://127.0.0.1:${http.address().port}`;
  const auth = betterAuth({
    baseURL,
    secret: randomBytes(32).toString('hex'),
    database: memoryAdapter(db),
    emailAndPassword: { enabled: true },
    telemetry: { enabled: false },
    logger: { level: 'error' },
    plugins: [mcp({ loginPage: '/sign-in' })],
  });
  await auth.api.signUpEmail({
    body: { name: 'Anna', email: 'anna@example.com', password: 'anna-anna' },
  });

  const answer = async (request, { scopes }) => {
    const server = new McpServer({ name: 'better', version: '1.0.0' });
    server.registerTool('add', { inputSchema: { a: z.number(), b: z.number() } }, ({ a, b }) =>
      text(a + b),
    );
    server.registerTool('scopes', {}, () => text(scopes));
    const transport = new web.WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: undefined,
    });
    await server.connect(transport);
    return transport.handleRequest(request);
  };
  const ways = {
    '/mcp': withMcpAuth(auth, answer),
    '/.well-known/oauth-authorization-server': oAuthDiscoveryMetadata(auth),
    '/sign-in': () => new Response(PAGE, { headers: { 'content-type': 'text/html' } }),
    '/test/log': () => Response.json(log),
    '/test/expire': () =>
      Response.json(db.oauthAccessToken.map((row) => (row.accessTokenExpiresAt = new Date(0)))),
  };
  const handle = async (request) => {
    const { pathname } = new URL(request.url);
    if (pathname.endsWith('/token')) log.push(Object.fromEntries(await request.clone().formData()));
    const way = ways[pathname] ?? (pathname.startsWith('/api/auth/') ? auth.handler : undefined);
    return way ? way(request) : new Response('not found', { status: 404 });
  };
  http.on('request', toNodeHandler(handle));
  console.log(`${baseURL}/mcp`);
}

process.stdin.resume().on('end', () => process.exit());
