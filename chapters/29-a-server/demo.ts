// Chapter 29: the shelf, in this process and over HTTP: a call, the three holes that are closed,
// and one question in both eras.

import { existsSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { McpConnection, type Extension, type Json, type Message } from '../../mcp.ts';
import { eitherEra } from '../22-no-handshake/era.ts';
import { answerWithin } from '../22-no-handshake/input-required.ts';
import { inProcess } from '../25-other-pipes/in-process.ts';

const begin = (title: string) => console.log(`\n${title}`);
const cut = (text: string) => text.replace(/("requestState":"\w{12})[^"]*/, '$1…');

/** Shows calls and questions, and not how the two get to know each other. */
function onWire(direction: string, message: unknown): void {
  const { method, params, ...rest } = message as Json;
  const isShown =
    method === undefined || /^(tools\/call|elicitation|notifications\/res)/.test(`${method}`);
  const isOpening =
    rest.error || /"(supportedVersions|protocolVersion)"/.test(JSON.stringify(rest.result) ?? '');
  if (!isShown || isOpening) return;
  const { _meta, ...shown } = (params ?? {}) as Json;
  const { _meta: __, ...result } = (rest.result ?? {}) as Json;
  const told = {
    ...rest,
    method,
    ...(params ? { params: shown } : {}),
    ...(rest.result ? { result } : {}),
  };
  console.log(direction === 'out' ? '→' : '←', cut(JSON.stringify(told)));
}

/** A person who says yes. */
const agreeable: Extension = () => ({
  capabilities: { elicitation: {} },
  handlers: { 'elicitation/create': () => ({ action: 'accept', content: { allow: true } }) },
});

type Knock = { method?: string; body?: object | string; headers?: Record<string, string> };

/** One HTTP request with headers as we like them, which `fetch` would not send. */
function knock(url: string, { method = 'POST', body, headers = {} }: Knock): Promise<string> {
  const plain = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  };
  return new Promise((done) => {
    const request = httpRequest(url, { method, headers: { ...plain, ...headers } }, (response) => {
      let text = '';
      response.on('data', (chunk) => (text += chunk));
      response.on('end', () => done(`${response.statusCode} ${text}`));
    });
    request.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
}

async function load() {
  if (!existsSync(new URL('server.ts', import.meta.url))) return undefined;
  const { shelf } = await import('./bookshelf.ts');
  const { overPipe } = await import('./pipe.ts');
  const { serveHttp } = await import('./serve-http.ts');
  return { shelf, overPipe, serveHttp };
}

const chapter = await load();
if (!chapter) console.log('There is no server here: only a client.');
else await show(chapter);

async function show({ shelf, overPipe, serveHttp }: NonNullable<typeof chapter>): Promise<void> {
  const transports = { 'in-process': inProcess({ shelf: overPipe(shelf()) }) };
  const open = async (extensions: Extension[]) => {
    const config = { type: 'in-process', name: 'shelf' };
    const connection = new McpConnection('shelf', config, { transports, extensions, onWire });
    await connection.connect();
    await connection.initialize();
    return connection;
  };

  begin('A call:');
  const one = await open([]);
  await one.callTool('find', { pattern: 'ishmael' });

  begin('Arguments that do not fit, for the model to read:');
  await one.callTool('find', { patern: 'ishmael' });
  await one.close();

  begin('A question, with a handshake: a request of the server, inside the call.');
  const two = await open([agreeable]);
  await two.callTool('lend', { id: 'emma', to: 'Ada' });
  await two.close();

  begin('The same question without: the call ends, and comes again.');
  const three = await open([agreeable, answerWithin(), eitherEra()]);
  await three.callTool('lend', { id: 'moby', to: 'Ada' });
  await three.close();

  const http = await serveHttp(shelf());
  const call = (name: string, args: Json): Message => ({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name, arguments: args },
  });

  begin('A page of https://evil.example:');
  const headers = { origin: 'https://evil.example' };
  console.log(await knock(http.url, { body: call('find', { pattern: 'e' }), headers }));

  begin('Work without a handshake:');
  console.log(await knock(http.url, { body: call('find', { pattern: 'e' }) }));

  begin('A pattern that never ends, and a look at /health meanwhile:');
  const stateless = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const endless = call('find', { pattern: '^(a+)+$' });
  const mirrors = {
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': 'find',
  };
  const body = { ...endless, params: { ...endless.params, _meta: stateless } };
  const slow = knock(http.url, { body, headers: mirrors });
  console.log(await knock(http.url.replace('/mcp', '/health'), { method: 'GET' }));
  console.log((await slow).replace(/,"_meta".*/, '…'));
  await http.close();
}
