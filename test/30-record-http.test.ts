// Chapter 30: a recorder between a client and a server at an address. Servers are those of chapter 29, and peers that do
// what a test tells them.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { httpTransports } from '../chapters/20-streamable-http/http.ts';
import { inBothEras } from '../chapters/22-no-handshake/era.ts';
import { shelf } from '../chapters/29-a-server/bookshelf.ts';
import { serveHttp } from '../chapters/29-a-server/serve-http.ts';
import { checkTrace } from '../chapters/30-seeing/check.ts';
import { HttpRecorder } from '../chapters/30-seeing/record-http.ts';
import { Keeper } from '../chapters/30-seeing/more/keep.ts';
import { readTrace } from '../chapters/30-seeing/more/read-trace.ts';
import { Replay } from '../chapters/30-seeing/replay.ts';
import { ReplayServer } from '../chapters/30-seeing/replay-wires.ts';
import type { Extension, Json } from '../mcp.ts';
import { cleanUp, folder, later, open, rejection, until, type Opened } from './help/basics.ts';
import { peer, serve, text } from './help/http-servers.ts';

afterEach(cleanUp);

const agreeable: Extension = () => ({
  capabilities: { elicitation: {} },
  handlers: { 'elicitation/create': () => ({ action: 'accept', content: { allow: true } }) },
});

/** A recorder in front of an address, and what it has written. */
async function recorder(url: string) {
  const file = join(folder(), 'trace.jsonl');
  const keeper = new Keeper(file, (why) => assert.fail(why));
  const recording = new HttpRecorder({
    url: new URL(url),
    server: 's',
    write: (line, size) => keeper.write(line, size),
    learn: (words) => keeper.learn(words),
  });
  const local = await recording.listen();
  later(() => {
    recording.close();
    keeper.flush();
  });
  const read = () => {
    keeper.flush();
    return readFileSync(file, 'utf8');
  };
  return { local, read };
}

type Era = 'handshake' | 'stateless';
async function client(url: string, era: Era, headers: Json = {}) {
  const extensions = [agreeable, ...(era === 'stateless' ? inBothEras() : [])];
  const options = { transports: httpTransports, extensions };
  return open({ type: 'http', url, headers }, options);
}

/** What the server of books is asked, and what it says by itself. */
async function talk({ connection, wire }: Opened) {
  const heard = (method: string) => wire.some(([, message]) => message.method === method);
  if (connection.server!.protocolVersion === '2026-07-28')
    await until(() => heard('notifications/subscriptions/acknowledged'));
  return [
    (await connection.callTool('find', { pattern: '^call' })).text,
    (await connection.callTool('lend', { id: 'moby', to: 'Ada' })).text,
    JSON.stringify(await connection.request('resources/read', { uri: 'shelf://index' })),
  ];
}

for (const era of ['handshake', 'stateless'] as const)
  test(`${era}: a conversation with a question goes through unchanged, breaks no rule, and can be replayed`, async () => {
    const http = await serveHttp(shelf(), { graceMs: 100 });
    later(() => http.close());
    const { local, read } = await recorder(http.url);
    const opened = await client(local, era);
    const said = await talk(opened);
    assert.deepEqual(said.slice(0, 2), ['Moby-Dick', 'Moby-Dick is lent to Ada.']);
    await opened.connection.close();
    const written = read();
    const seen = readTrace(written).messages.map(({ dir, msg }) => [dir, msg]);
    // Streams of their own may overtake each other; but nothing is missing, and nothing is new.
    const sorted = (all: unknown[]) => all.map((each) => JSON.stringify(each)).sort();
    const told = opened.wire.filter(([, { method }]) => method !== 'notifications/cancelled');
    assert.deepEqual(sorted(seen), sorted(told));
    assert.deepEqual(
      checkTrace(readTrace(written)).filter(({ level }) => level === 'error'),
      [],
    );

    const misses: string[] = [];
    const options = { onMiss: (miss: string) => void misses.push(miss) };
    const played = new ReplayServer(() => new Replay(readTrace(written), 's', options), 's');
    const replayed = await serveHttp(played, { graceMs: 100 });
    later(() => replayed.close());
    const again = await client(replayed.url, era);
    assert.deepEqual([await talk(again), misses], [said, []]);
  });

test('sessions: two at a time are two servers, one after the other is the same; the stream between is recorded, too', async () => {
  const server = shelf();
  const http = await serveHttp(server, { graceMs: 100 });
  later(() => http.close());
  const { local, read } = await recorder(http.url);
  const [one, two] = [await client(local, 'handshake'), await client(local, 'handshake')];
  await Promise.all([one, two].map(({ connection }) => connection.listTools()));
  const hears = ({ wire }: Opened) =>
    until(() => wire.some(([, { method }]) => method === 'notifications/tools/list_changed'));
  server.changed('tools');
  await Promise.all([hears(one), hears(two)]);
  await one.connection.close();
  const three = await client(local, 'handshake');
  await three.connection.listTools();
  const recording = readTrace(read());
  const openings = recording.messages.filter(({ msg }) => msg.method === 'initialize');
  assert.deepEqual(
    openings.map((each) => each.server),
    ['s', 's-2', 's'],
  );
  const notices = recording.messages.filter(({ msg }) => /list_changed/.test(`${msg.method}`));
  assert.deepEqual(notices.map((each) => each.server).sort(), ['s', 's-2']);
  assert.deepEqual(
    checkTrace(recording).filter(({ level }) => level === 'error'),
    [],
  );
});

test('I6 what a client shows to be let in is in no trace, also where the server quotes it', async () => {
  const words = ['zebra crossing at noon', 'a quiet green door'];
  const headers = { Authorization: `Bearer ${words[0]}`, 'X-Api-Key': words[1]! };
  const quoting = await peer({
    'tools/call': (asked) =>
      text(`you are ${asked.headers.authorization!.slice(7)}, ${asked.headers['x-api-key']}`),
  });
  const { local, read } = await recorder(quoting.url);
  const { connection } = await client(local, 'handshake', headers);
  assert.equal((await connection.callTool('who')).text, `you are ${words.join(', ')}`);
  assert.match(read(), /you are /);
  for (const each of words) assert.ok(!read().includes(each), each);
});

function raw(url: string, headers: Record<string, string> = {}, path?: string) {
  const { port, pathname } = new URL(url);
  return new Promise<{ status: number; headers: Json; body: string }>((done, fail) => {
    const options = { port, path: path ?? pathname, host: '127.0.0.1', method: 'POST', headers };
    const request = httpRequest(options, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (chunk) => (body += chunk));
      const { statusCode: status = 0 } = response;
      response.on('error', fail); // it was cut off
      response.on('end', () => done({ status, headers: response.headers as Json, body }));
    });
    request.on('error', fail);
    request.end('{"jsonrpc":"2.0","id":1,"method":"ping"}');
  });
}

test('G30: no page elsewhere gets through, and no path leads to another server', async () => {
  const other = await peer();
  const server = await peer();
  const { local } = await recorder(server.url);
  assert.equal((await raw(local, { host: 'evil.example' })).status, 403);
  assert.equal((await raw(local, { origin: 'https://evil.example' })).status, 403);
  for (const path of [`//127.0.0.1:${other.port}/mcp`, `http://127.0.0.1:${other.port}/mcp`])
    assert.equal((await raw(local, {}, path)).status, 404, path);
  assert.deepEqual([server.log.length, other.log.length], [0, 0]);
  assert.equal((await raw(local)).status, 200);
});

test('what is packed, moved, broken off or down: the client learns what it would have learned', async () => {
  const big = JSON.stringify({ jsonrpc: '2.0', id: 1, result: { text: 'ü'.repeat(500_000) } });
  const server = await serve(({ path }, response) => {
    if (path === '/moved') return void response.writeHead(308, { location: server.url }).end();
    if (path === '/cut') return void response.writeHead(200).write('{', () => response.destroy());
    if (path === '/html') return void response.writeHead(401).end('<h1>no</h1>');
    const packed = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
    response.writeHead(200, packed).end(gzipSync(big));
  });
  const { local, read } = await recorder(server.url);
  assert.equal((await raw(local)).body, big);
  const moved = await raw(local, {}, '/moved');
  assert.deepEqual([moved.status, moved.headers.location], [308, local]);
  assert.equal((await raw(local, {}, '/html')).status, 401);
  assert.match(read(), /"noise":"<h1>no/);
  await rejection(raw(local, {}, '/cut'));
  await server.stop();
  const down = await raw(local);
  assert.deepEqual([down.status, /ECONNREFUSED/.test(down.body)], [502, true]);
});

test('a client that gives up a call of the later era gives it up at the server', async () => {
  let isOver = false;
  const server = await serve((_, response) => {
    response.on('close', () => (isOver = true));
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': wait\n\n');
  });
  const { local } = await recorder(server.url);
  const control = new AbortController();
  const left = fetch(local, { method: 'POST', body: '{}', signal: control.signal });
  await left;
  control.abort();
  await until(() => isOver);
});
