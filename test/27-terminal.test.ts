// Chapter 27 in the program itself: /ide, --ide, files that change during a chat, a scope of one's own.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { loadHere, plainHost, type Sources } from '../chapters/19-the-terminal/host.ts';
import { Scopes } from '../chapters/27-scopes/scopes.ts';
import { compose } from '../chapters/composition.ts';
import { cleanUp, later } from './helpers.ts';
import { place, run, Terminal, type Place } from './terminal.ts';

afterEach(cleanUp);

/** An editor: a WebSocket server that wants its token, and a lock file. */
async function editor(where: Place): Promise<{ refused: number; port: number }> {
  const seen = { refused: 0, port: 0 };
  const server = createServer();
  const sockets: Socket[] = [];
  server.on('upgrade', (request, socket: Socket) => {
    sockets.push(socket);
    if (request.headers['x-claude-code-ide-authorization'] !== 'ide-secret-4711') {
      seen.refused++;
      return void socket.end('HTTP/1.1 401 Unauthorized\r\n\r\n');
    }
    const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: mcp\r\n\r\n`);
    let rest = Buffer.alloc(0);
    socket.on('error', () => {}).on('data', (chunk) => {
      rest = Buffer.concat([rest, chunk]);
      while (rest.length >= 2) {
        const short = rest[1]! & 0x7f;
        const at = short === 126 ? 4 : 2;
        const length = short === 126 ? rest.readUInt16BE(2) : short;
        if (rest.length < at + 4 + length) return;
        const mask = rest.subarray(at, at + 4);
        const text = Buffer.from(rest.subarray(at + 4, at + 4 + length).map((byte, n) => byte ^ mask[n % 4]!)).toString();
        const isText = rest[0] === 0x81;
        rest = rest.subarray(at + 4 + length);
        if (!isText) return void socket.end();
        const { id, method } = JSON.parse(text);
        if (id === undefined) continue;
        const results: Record<string, object> = {
          initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} } },
          'tools/list': { tools: [{ name: 'openFile', inputSchema: { type: 'object' } }] },
        };
        const result = results[method];
        const answer = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error: { code: -32601, message: 'What?' } }) }));
        socket.write(Buffer.concat([Buffer.from(answer.length < 126 ? [0x81, answer.length] : [0x81, 126, answer.length >> 8, answer.length & 255]), answer]));
      }
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  later(() => (sockets.forEach((socket) => socket.destroy()), server.close()));
  seen.port = (server.address() as { port: number }).port;
  mkdirSync(join(where.home, '.claude', 'ide'), { recursive: true });
  const lock = { pid: process.pid, workspaceFolders: [realpathSync(where.cwd)], ideName: 'Code\u001b[2J', transport: 'ws', authToken: 'ide-secret-4711' };
  writeFileSync(join(where.home, '.claude', 'ide', `${seen.port}.lock`), JSON.stringify(lock), { mode: 0o600 });
  return seen;
}

test('--ide connects to the editor that has this folder open, and its token is shown nowhere', async () => {
  const where = place();
  await editor(where);
  const { out, err, code } = await run(where, ['--ide'], { input: '/mcp\n/tools\n' });
  assert.equal(code, 0, err);
  assert.match(out, /^ide: connected · .*1 tool/m);
  assert.match(out, /mcp__ide__openFile/);
  assert.doesNotMatch(out + err, /ide-secret/);
  const none = await run(place(), ['--ide'], { input: '/mcp\n' });
  assert.match(none.out + none.err, /--ide: no editor has this folder open/);
});

test('in a chat: /ide connects and lets go; a change of the files is told, and /mcp reload acts on it', async () => {
  const where = place();
  const terminal = new Terminal(where);
  await terminal.ready();
  terminal.enter('/ide');
  await terminal.see(/no editor with our kind of extension has this\s+folder open/);
  await editor(where);
  terminal.enter('/ide');
  await terminal.see(/connected to "Code\\x1b\[2J"/);
  terminal.enter('/ide off');
  await terminal.see(/no editor any more/);
  writeFileSync(join(where.cwd, '.mcp.json'), JSON.stringify({ mcpServers: { fresh: { command: 'no-such-thing', disabled: true } } }));
  await terminal.see(/the configuration has changed: new: "fresh"/);
  terminal.enter('/mcp reload');
  await terminal.see(/started: fresh/);
  await terminal.see(/fresh: disabled/);
});

test('a scope of one\'s own: a program adds a place by a row of its composition', async () => {
  const own = new Scopes({ more: () => [{ scope: 'team', file: 'our wiki', authority: 'project', servers: [['wiki', { url: 'https://wiki.example/mcp' }]] }] });
  const composition = { ...compose(plainHost()), sources: own satisfies Sources };
  const { scope, file, authority } = loadHere(composition, () => {}).get('wiki')!;
  assert.deepEqual([scope, file, authority], ['team', 'our wiki', 'project']);
});
