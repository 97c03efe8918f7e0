// Logs in where an authorization server sends without end, and tells for each document and way how that ended, how much
// memory it took, and whether the connection was closed. The server is a process of its own, so that its memory does
// not count.

import { spawn } from 'node:child_process';
import { Logins } from '../../chapters/21-authorization/login.ts';
import { TokenStore } from '../../chapters/21-authorization/tokens.ts';
import { McpConnection, type McpError } from '../../mcp.ts';

const server = `
  const { createServer } = require('node:http');
  const { gzipSync, brotliCompressSync, deflateSync } = require('node:zlib');
  const blank = Buffer.alloc(200 * 2 ** 20, ' ');
  const fast = { params: { 1: 4 } };
  const bombs = { gzip: gzipSync(blank), br: brotliCompressSync(blank, fast), deflate: deflateSync(blank) };
  const deep = '{"x":' + '['.repeat(200_000) + ']'.repeat(200_000) + '}';
  const mega = Buffer.alloc(2 ** 20, ' ');
  const open = new Set();
  createServer(async (request, response) => {
    for await (const chunk of request);
    const json = (value, status = 200, headers = {}) => response.writeHead(status, headers).end(JSON.stringify(value));
    if (request.url === '/open') return json([...open]);
    // /WHERE/WAY/DOCUMENT: the document that is called like WHERE is the one that is wrong.
    const address = /^\\/(?:\\.well-known\\/oauth-authorization-server\\/)?(\\w+)\\/(\\w+)\\/(\\w+)$/;
    const [, where, way, document] = address.exec(request.url) ?? [];
    const base = 'http://127.0.0.1:' + request.socket.localPort + '/' + where + '/' + way;
    const right = {
      mcp: () => json({}, 401, { 'www-authenticate': 'Bearer resource_metadata="' + base + '/resource"' }),
      resource: () => json({ resource: base + '/mcp', authorization_servers: [base + '/issuer'] }),
      issuer: () => json({
        issuer: base + '/issuer', authorization_endpoint: base + '/authorize', token_endpoint: base + '/token',
        registration_endpoint: base + '/register', code_challenge_methods_supported: ['S256'],
      }),
      register: () => json({ client_id: 'x' }, 201),
      token: () => json({ access_token: 'x'.repeat(20), token_type: 'Bearer' }),
    };
    if (!document || document !== where) return right[document] ? right[document]() : json({}, 404);
    open.add(request.url);
    response.on('close', () => open.delete(request.url)).on('error', () => {});
    if (bombs[way]) return response.writeHead(200, { 'content-encoding': way }).end(bombs[way]);
    if (way === 'deep') return response.end(deep);
    let left = 400;
    const more = () => { while (left-- > 0) if (!response.write(mega)) return response.once('drain', more); };
    more();
  }).listen(0, '127.0.0.1', function () { console.log('http://127.0.0.1:' + this.address().port); });
  process.stdin.resume().on('end', () => process.exit());`;

const [home = ''] = process.argv.slice(2);
const child = spawn(process.execPath, ['-e', server], { stdio: ['pipe', 'pipe', 'inherit'] });
const origin = await new Promise<string>((done) =>
  child.stdout.setEncoding('utf8').once('data', (line: string) => done(line.trim())),
);
const visit = (url: URL, state: string) =>
  new URL(`${url.searchParams.get('redirect_uri')}?code=c&state=${state}`);
const openUserAgent = async () => ({
  redirectUri: 'http://127.0.0.1:1/callback',
  go: async (url: URL, state: string) => visit(url, state),
  close: () => {},
});

for (const where of ['resource', 'issuer', 'register', 'token'])
  for (const way of ['endless', 'gzip', 'br', 'deflate', 'deep']) {
    const { transports } = new Logins({ store: new TokenStore({ home }), openUserAgent });
    const connection = new McpConnection(
      `${where}-${way}`,
      { type: 'http', url: `${origin}/${where}/${way}/mcp` },
      { transports },
    );
    const before = process.memoryUsage.rss();
    let most = before;
    const watch = setInterval(() => (most = Math.max(most, process.memoryUsage.rss())), 5);
    await connection.connect();
    const { kind, message } = await connection.initialize().then(
      () => ({ kind: 'done', message: '' }),
      (error) => error as McpError,
    );
    clearInterval(watch);
    let isFree = false;
    for (let n = 0; n < 200 && !isFree; n++) {
      isFree = ((await (await fetch(`${origin}/open`)).json()) as string[]).length === 0;
      if (!isFree) await new Promise((done) => setTimeout(done, 20));
    }
    await connection.close();
    console.log(
      JSON.stringify({
        name: `${where} ${way}`,
        kind,
        message,
        grewBy: Math.round((most - before) / 2 ** 20),
        isFree,
      }),
    );
  }
child.stdin.end();
