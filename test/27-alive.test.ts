// Chapter 27: staying alive as users know it: a heartbeat, three connection errors across calls, "attempt 2 of 5".

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { afterEach, test } from 'node:test';
import { statusLines } from '../chapters/19-the-terminal/status.ts';
import { httpTransports } from '../chapters/20-streamable-http/http.ts';
import { Attempts, stayAlive } from '../chapters/26-staying-alive/alive.ts';
import { heartbeat, type Later } from '../chapters/27-scopes/heartbeat.ts';
import {
  McpConnection,
  McpError,
  McpManager,
  type Extension,
  type Json,
  type Transport,
  type TransportEvents,
} from '../mcp.ts';
import { cleanUp, later as afterwards, rejection, until } from './help/basics.ts';
import { manage } from './help/manager.ts';

afterEach(cleanUp);

const REVISION = '2025-11-25';

/** A clock that the test turns. */
function clock() {
  const waiting = new Set<{ ms: number; work: () => void }>();
  const later: Later = (ms, work) => {
    const each = { ms, work };
    waiting.add(each);
    return () => waiting.delete(each);
  };
  const ring = async () => {
    for (const each of [...waiting]) {
      waiting.delete(each);
      each.work();
    }
    for (let n = 0; n < 20; n++) await new Promise((done) => setImmediate(done));
  };
  return { later, ring, waiting };
}

/** A server that follows a script; `answer` may leave a request unanswered. */
function scripted(answer: (method: string) => Json | undefined, heard: string[], type = 'ws') {
  const make = (): Transport => {
    let events: TransportEvents;
    return {
      start: async (given) => void (events = given),
      close: async () => {},
      send: async ({ id, method = '' }) => {
        heard.push(method);
        const result =
          method === 'initialize'
            ? { protocolVersion: REVISION, capabilities: { tools: {} } }
            : answer(method);
        if (id !== undefined && result)
          setImmediate(() => events.message({ jsonrpc: '2.0', id, result }));
      },
    };
  };
  return { [type]: make };
}

async function opened(config: Json, answer: (method: string) => Json | undefined, later: Later) {
  const heard: string[] = [];
  const warnings: string[] = [];
  const connection = new McpConnection(
    'demo',
    { type: 'ws', url: 'ws://x', ...config },
    {
      transports: scripted(answer, heard, `${config.type ?? 'ws'}`),
      extensions: [heartbeat({ later })],
      onWarning: (text) => warnings.push(text),
    },
  );
  afterwards(() => connection.close());
  await connection.connect();
  await connection.initialize();
  return { connection, heard, warnings };
}

const pings = (heard: string[]) => heard.filter((method) => method === 'ping').length;

test('a connection that is held open and silent for five minutes is pinged, again and again, until it ends', async () => {
  const { later, ring, waiting } = clock();
  const { connection, heard } = await opened({}, () => ({}), later);
  assert.deepEqual(
    [...waiting].map(({ ms }) => ms),
    [300_000],
  );
  await ring(); // too early: it was heard a moment ago
  assert.equal(pings(heard), 0);
  const { performance } = globalThis;
  const real = performance.now.bind(performance);
  performance.now = () => real() + 300_000;
  afterwards(() => (performance.now = real));
  await ring();
  assert.equal(pings(heard), 1);
  performance.now = () => real() + 900_000;
  await ring();
  assert.equal(pings(heard), 2);
  await connection.close();
  assert.equal(waiting.size, 0);
});

test('heartbeat: an entry says how often, or never; a pipe and plain HTTP have none unless they say so; a mistake is told', async () => {
  const of = async (config: Json) => {
    const { later, waiting } = clock();
    await opened(config, () => ({}), later);
    return [...waiting].map(({ ms }) => ms);
  };
  assert.deepEqual(await of({ heartbeat: 30_000 }), [30_000]);
  assert.deepEqual(await of({ heartbeat: 0 }), []);
  assert.deepEqual(await of({ type: 'http' }), []);
  assert.deepEqual(await of({ type: 'http', heartbeat: 60_000 }), [60_000]);
  for (const odd of ['30 s', 5, -1, Infinity, null])
    assert.match(
      (await rejection(of({ heartbeat: odd }))).message,
      /"heartbeat" is not a number of milliseconds/,
    );
});

/** A server over HTTP whose tool "break" breaks the connection, and what it has seen. */
async function breaking() {
  const seen: string[] = [];
  const counts = { breaks: 0, sessions: 0, lists: 0 };
  const tools = ['break', 'fine'].map((name) => ({ name, inputSchema: { type: 'object' } }));
  const server = createServer((request, response) => {
    let text = '';
    request
      .on('data', (chunk) => (text += chunk))
      .on('end', (): unknown => {
        if (request.method !== 'POST') return response.writeHead(405).end();
        const { id, method, params } = JSON.parse(text);
        if (id === undefined) return response.writeHead(202).end();
        seen.push(method === 'tools/call' ? params.name : method);
        if (method === 'tools/call' && params.name === 'break')
          return counts.breaks++, request.socket.destroy();
        if (method === 'initialize') response.setHeader('mcp-session-id', `s${++counts.sessions}`);
        if (method === 'tools/list') counts.lists++;
        const capabilities = { tools: {}, prompts: {}, resources: {} };
        const result =
          method === 'initialize'
            ? { protocolVersion: REVISION, capabilities }
            : { content: [], tools, prompts: [], resources: [] };
        response.setHeader('content-type', 'application/json');
        return response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
      });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  afterwards(() => (server.closeAllConnections(), server.close()));
  const url = `http://127.0.0.1:${(server.address() as { port: number }).port}/`;
  const options = {
    transports: httpTransports,
    extensions: [stayAlive({ pause: async () => {} })],
    onWarning: () => {},
  };
  return { config: { type: 'http', url }, options, seen, counts };
}

const kindOf = (call: Promise<unknown>) =>
  call.then(
    () => 'ok',
    (error: McpError) => error.kind,
  );

test('three calls in a row whose connections broke: the fourth opens another session first; one answer in between starts the count again', async () => {
  const { config, options, seen, counts } = await breaking();
  const connection = new McpConnection('demo', config, options);
  afterwards(() => connection.close());
  await connection.connect();
  await connection.initialize();
  const call = (name: string) => kindOf(connection.callTool(name));
  assert.deepEqual(
    [
      await call('break'),
      await call('break'),
      await call('fine'),
      await call('break'),
      await call('break'),
    ],
    ['lost', 'lost', 'ok', 'lost', 'lost'],
  );
  assert.equal(counts.sessions, 1);
  assert.deepEqual([await call('break'), await call('fine')], ['lost', 'ok']);
  assert.equal(counts.sessions, 2);
  assert.deepEqual([counts.breaks, seen.slice(-3)], [5, ['break', 'initialize', 'fine']]);
});

test("a look at what the server offers does not start that count again: not the manager's own, nor one at its prompts", async () => {
  const { config, options, seen, counts } = await breaking();
  // As extensions do that show prompts and resources: they look again when these may have changed.
  const looks = { done: 0 };
  const looking: Extension = (connection) => ({
    changed: async (what) => {
      if (what === 'tools') return;
      await connection.listAll(`${what}/list`, what);
      looks.done++;
    },
  });
  const extensions = [...options.extensions, looking];
  const { manager } = await manage({ demo: config }, undefined, { ...options, extensions });
  const call = (name: string) => kindOf(manager.callTool(`mcp__demo__${name}`, {}));
  for (let n = 0; n < 3; n++) {
    assert.equal(await call('break'), 'lost');
    // Before each call that follows a loss we look: at prompts and resources, and the manager at the tools.
    await until(() => looks.done >= 2 * n);
  }
  await until(() => counts.lists > 1);
  assert.equal(await call('fine'), 'ok');
  const order = seen.filter((what) => ['initialize', 'break', 'fine'].includes(what));
  assert.deepEqual(order, ['initialize', 'break', 'break', 'break', 'initialize', 'fine']);
});

test('/mcp shows how far we are: attempt 2 of 5', async () => {
  const attempts = new Attempts();
  const shown: string[] = [];
  let isAway = false;
  let tell: TransportEvents;
  const ws = (): Transport => ({
    start: async (events) => {
      if (isAway) throw new McpError('unreachable', 'MCP server "demo" cannot be reached');
      tell = events;
    },
    close: async () => {},
    send: async ({ id, method }) => {
      const result =
        method === 'initialize'
          ? { protocolVersion: REVISION, capabilities: { tools: {} } }
          : { tools: [{ name: 'a', inputSchema: { type: 'object' } }] };
      if (id !== undefined) setImmediate(() => tell.message({ jsonrpc: '2.0', id, result }));
    },
  });
  const rows = { attempts: (server: string) => attempts.of(server) };
  const manager: McpManager = new McpManager({
    load: () =>
      new Map([
        [
          'demo',
          {
            name: 'demo',
            config: { type: 'ws', url: 'ws://x' },
            file: 'x',
            scope: 'user',
            authority: 'user',
          },
        ],
      ]),
    transports: { ws },
    extensions: [
      stayAlive({
        attempts,
        pause: async () =>
          void shown.push(
            statusLines(manager, { rows })
              .map((line) => (typeof line === 'string' ? line : ''))
              .join('\n'),
          ),
      }),
    ],
    onWarning: () => {},
  });
  afterwards(() => manager.disconnectAll());
  await manager.loadAndConnect();
  isAway = true;
  tell!.closed(new McpError('unreachable', 'MCP server "demo" went away'));
  await rejection(manager.callTool('mcp__demo__a'));
  assert.deepEqual(
    shown.map((text) => /attempt \d of \d/.exec(text)?.[0]),
    ['attempt 2 of 5', 'attempt 3 of 5', 'attempt 4 of 5', 'attempt 5 of 5'],
  );
  assert.deepEqual(attempts.of('demo'), []);
});
