// Chapter 29: our client against our server, and the server as a process. One more test, and not the judge: the judges are
// the raw cases, the official suite and other people's clients.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { plainHost } from '../chapters/19-the-terminal/host.ts';
import { inBothEras } from '../chapters/22-no-handshake/era.ts';
import { inProcess } from '../chapters/25-other-pipes/in-process.ts';
import { stayAlive } from '../chapters/26-staying-alive/alive.ts';
import { serveHttp, type HttpOptions } from '../chapters/29-a-server/serve-http.ts';
import { overPipe } from '../chapters/29-a-server/pipe.ts';
import { McpServer } from '../chapters/29-a-server/server.ts';
import { shelf } from '../chapters/29-a-server/bookshelf.ts';
import { compose } from '../chapters/composition.ts';
import type { ConnectionOptions, Extension, Json } from '../mcp.ts';
import { programArgs } from './help/compiled.ts';
import { cleanUp, later, open, rejection, root, until } from './help/basics.ts';

afterEach(cleanUp);

const agreeable: Extension = () => ({
  capabilities: { elicitation: {} },
  handlers: { 'elicitation/create': () => ({ action: 'accept', content: { allow: true } }) },
});

const { transports } = compose(plainHost());
const composed = (parts: Extension[] = []): ConnectionOptions => ({
  transports,
  extensions: [stayAlive(), agreeable, ...parts, ...inBothEras()],
});

async function overHttp(
  server: McpServer,
  options: HttpOptions = {},
): Promise<{ config: Json; url: string }> {
  const http = await serveHttp(server, { graceMs: 100, ...options });
  later(() => http.close());
  return { config: { type: 'http', url: http.url }, url: http.url };
}

test('our client in the stateless era: tools, resources, a question, and news of other tools', async () => {
  const server = shelf();
  const { config } = await overHttp(server);
  const news: string[] = [];
  const hears: Extension = () => ({ changed: (what) => void news.push(what) });
  const { connection, wire } = await open(config, composed([hears]));
  assert.equal(connection.server?.protocolVersion, '2026-07-28');
  assert.equal((await connection.callTool('find', { pattern: '^call' })).text, 'Moby-Dick');
  assert.equal(
    (await connection.callTool('lend', { id: 'moby', to: 'Ada' })).text,
    'Moby-Dick is lent to Ada.',
  );
  await until(() =>
    wire.some(([, message]) => message.method === 'notifications/subscriptions/acknowledged'),
  );
  server.tools.set('new', { name: 'new', description: 'New.', run: () => 'I am new' });
  server.changed('tools');
  await until(() => news.includes('tools'));
  assert.deepEqual(
    (await connection.listTools()).map(({ name }) => name),
    ['find', 'lend', 'new'],
  );
});

test('with a handshake: a session that the server has forgotten is opened again, and the call repeated', async () => {
  const { config, url } = await overHttp(shelf(), { maxSessions: 1 });
  const { connection, wire } = await open(config, {
    transports,
    extensions: [stayAlive(), agreeable],
  });
  assert.equal(
    (await connection.callTool('lend', { id: 'emma', to: 'Ada' })).text,
    'Emma is lent to Ada.',
  );
  const params = { protocolVersion: '2025-11-25', capabilities: {} };
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
  assert.equal((await fetch(url, { method: 'POST', headers, body })).status, 200); // there is room for one
  assert.equal((await connection.callTool('find', { pattern: 'clever' })).text, 'Emma');
  assert.equal(wire.filter(([, message]) => message.method === 'initialize').length, 2);
});

test('in one process: the same server through a linked pair, in both eras', async () => {
  const transports = { 'in-process': inProcess({ shelf: overPipe(shelf()) }) };
  const config = { type: 'in-process', name: 'shelf' };
  for (const [extensions, version] of [
    [[agreeable], '2025-11-25'],
    [composed().extensions!, '2026-07-28'],
  ] as const) {
    const { connection } = await open(config, { transports, extensions: [...extensions] });
    assert.equal(connection.server?.protocolVersion, version);
    const misfit = await connection.callTool('lend', { id: 'nothing', to: '' });
    assert.equal(misfit.isError, true);
    const unknown = await rejection(connection.request('tools/call', { name: 'unknown' }));
    assert.equal(unknown.code, -32602);
  }
});

test('J3 a foreign page or name, work without a handshake, a made-up permission and an endless pattern get nowhere', async () => {
  const server = shelf();
  const { url } = await overHttp(server);
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': { elicitation: {} },
  };
  const post = async (params: Json, headers: Record<string, string> = {}) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
    const response = await fetch(url, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json', ...headers },
    });
    return { status: response.status, body: (await response.json()) as any };
  };
  const lend = { name: 'lend', arguments: { id: 'emma', to: 'Mallory' } };
  const mirrors = {
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': 'lend',
  };
  assert.equal((await post(lend, { origin: 'https://evil.example' })).status, 403);
  assert.equal((await post(lend)).status, 400);
  const answer = { action: 'accept', content: { allow: true } };
  const forged = await post({ ...lend, inputResponses: { answer }, _meta: meta }, mirrors);
  assert.equal(forged.body.result.resultType, 'input_required');
  const find = { name: 'find', arguments: { pattern: '^(a+)+$' }, _meta: meta };
  const endless = post(find, { ...mirrors, 'mcp-name': 'find' });
  assert.equal((await fetch(url.replace('/mcp', '/health'))).status, 200); // meanwhile
  assert.match((await endless).body.result.content[0].text, /takes longer/);
});

test('two tools of one name, a name that is none, and headers that cannot be are mistakes of the author', () => {
  const tool = { name: 'a', description: 'A.', run: () => '' };
  const bad = { type: 'object', properties: { a: { type: 'number', 'x-mcp-header': 'A' } } };
  assert.throws(() => new McpServer({ name: 's', version: '1', tools: [tool, tool] }), /two of a/);
  assert.throws(
    () => new McpServer({ name: 's', version: '1', tools: [{ ...tool, name: 'a b' }] }),
    /cannot name a tool/,
  );
  assert.throws(
    () => new McpServer({ name: 's', version: '1', tools: [{ ...tool, inputSchema: bad }] }),
    /header/,
  );
});

test('a process on stdio: lines, noise, console.log on stderr, and it leaves when stdin ends', async () => {
  const program = join(root, 'test', 'programs', 'talkative-server.ts');
  const child = spawn(process.execPath, programArgs(program), { cwd: root });
  later(() => child.kill('SIGKILL'));
  const seen = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (text) => (seen.out += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (seen.err += text));
  const answers = () =>
    seen.out
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
  const hello = {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'raw', version: '1' },
  };
  const lines =
    [
      'this is not JSON',
      '',
      `${'['.repeat(1000)}`,
      JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params: hello }),
      JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'echo', arguments: { text: 'a\u2028b €' } },
      }) + '\r',
    ].join('\n') + '\n';
  const bytes = Buffer.from(lines);
  child.stdin.write(bytes.subarray(0, bytes.length - 8)); // cut within a character
  child.stdin.write(bytes.subarray(bytes.length - 8));
  await until(() => answers().length === 4);
  const codes = answers().map(({ id, error }) => [id, error?.code]);
  assert.deepEqual(codes.slice(0, 2).sort(), [
    [null, -32600],
    [null, -32700],
  ]);
  assert.deepEqual(codes.slice(2), [
    [0, undefined],
    [1, undefined],
  ]);
  assert.equal(answers()[3].result.content[0].text, 'a\u2028b €');
  assert.ok(!seen.out.includes('\u2028'), 'a reader that splits there is spared');
  child.stdin.end();
  const [code] = await once(child, 'exit');
  assert.equal(code, 0);
  assert.match(seen.err, /echo was called\n\{ with: /);
});

test('G42: half-open connections of strangers do not lock out a client with a token', async () => {
  const token = 'a-token-for-tests';
  const { config, url } = await overHttp(shelf(), { maxRunning: 10, token });
  const headers = { authorization: `Bearer ${token}` };
  const { connection: early } = await open({ ...config, headers }, composed());
  const { hostname, port } = new URL(url);
  const strangers: Socket[] = [];
  later(() => strangers.forEach((socket) => socket.destroy()));
  for (let n = 0; n < 1200; n++) {
    const socket = connect(Number(port), hostname).on('error', () => {});
    strangers.push(socket);
    if (n % 2) socket.write('POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthoriz'); // and no more
    await once(socket, 'connect');
  }
  await until(() => strangers[0]!.destroyed, 'the oldest makes room'); // and the youngest waits
  const { connection: late } = await open({ ...config, headers }, composed());
  for (const connection of [early, late])
    assert.equal((await connection.callTool('find', { pattern: '^call' })).text, 'Moby-Dick');
});
