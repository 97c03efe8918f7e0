// Lets a server send without end, and tells for each way how the call ended and how much memory it took. The server is
// a process of its own, so that its memory does not count.

import { spawn } from 'node:child_process';
import { httpTransports } from '../../chapters/20-streamable-http/http.ts';
import { McpConnection } from '../../mcp.ts';

const server = `
  const { createServer } = require('node:http');
  const { gzipSync, constants } = require('node:zlib');
  const mega = Buffer.alloc(2 ** 20, ' ');
  const bomb = gzipSync(Buffer.alloc(400 * 2 ** 20, ' '));
  const open = new Map();
  createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    if (request.method !== 'POST') return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify([...open.values()]));
    const { id, params, method } = JSON.parse(body);
    const reply = (result) => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }));
    if (id === undefined) return response.writeHead(202).end();
    if (method !== 'tools/call') return reply(method === 'initialize' ? { protocolVersion: '2025-11-25' } : { open: [...open.values()] });
    const { name } = params;
    open.set(name, true);
    response.on('close', () => open.set(name, false)).on('error', () => {});
    const isStream = name.includes('event');
    const type = { 'content-type': isStream ? 'text/event-stream' : 'application/json' };
    if (name.includes('bomb')) return response.writeHead(200, { ...type, 'content-encoding': 'gzip' }).end(bomb);
    response.writeHead(name === 'error page' ? 500 : 200, type);
    const part = name === 'event in lines' ? Buffer.from('data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\\n'.repeat(30_000)) : mega;
    let left = 400;
    const more = () => {
      while (left-- > 0) if (!response.write(part)) return response.once('drain', more);
    };
    more();
  }).listen(0, '127.0.0.1', function () { console.log('http://127.0.0.1:' + this.address().port + '/mcp'); });
  process.stdin.resume().on('end', () => process.exit());`;

const child = spawn(process.execPath, ['-e', server], { stdio: ['pipe', 'pipe', 'inherit'] });
const url = await new Promise<string>((done) =>
  child.stdout.setEncoding('utf8').once('data', (line: string) => done(line.trim())),
);
const transports = {
  http: httpTransports.http,
};
const connection = new McpConnection(
  'demo',
  { type: 'http', url },
  { transports, maxLineBytes: 2 ** 22, callTimeoutMs: 50_000 },
);
await connection.connect();
await connection.initialize();

const results: Record<string, { kind: string; grewBy: number; isFree: boolean }> = {};
for (const name of ['bomb', 'event bomb', 'json', 'event', 'event in lines', 'error page']) {
  const before = process.memoryUsage.rss();
  let most = before;
  const watch = setInterval(() => (most = Math.max(most, process.memoryUsage.rss())), 5);
  const kind = await connection.callTool(name).then(
    () => 'answered',
    (error) => error.kind,
  );
  clearInterval(watch);
  let isFree = false;
  for (let n = 0; n < 200 && !isFree; n++) {
    isFree = ((await connection.request('x')).open as boolean[]).every((each) => !each);
    if (!isFree) await new Promise((done) => setTimeout(done, 20));
  }
  results[name] = { kind, grewBy: Math.round((most - before) / 2 ** 20), isFree };
}
await connection.close();
child.stdin.end();
console.log(JSON.stringify(results));
