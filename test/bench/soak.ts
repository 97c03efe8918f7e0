// npm run soak: does the server of chapter 29 keep what it should forget? A hundred thousand calls, a thousand sessions that
// are dropped without a goodbye, a thousand streams that are left in the middle; the heap must be flat.
//   npm run soak calls 20000 sessions 200 streams 200     a shorter one

import assert from 'node:assert/strict';
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from '../help/installed.ts';
import { wordsOf } from '../help/words.ts';
import { compiled, compileServer, startServer } from './server.ts';

const options = {
  calls: { type: 'string', default: '100000' },
  sessions: { type: 'string', default: '1000' },
  streams: { type: 'string', default: '1000' },
} as const;
const { values } = parseArgs({ args: wordsOf(options), options });
const ROUNDS = 10;
const MAX_GROWTH = 1.1; // of the heap, from the second round to the last
const MAX_SESSIONS = 50; // reached in the first round: from then on each new one takes the place of the longest idle
const META = 'io.modelcontextprotocol/';
const SINCE = '2026-07-28';

compileServer();
const { child, url } = await startServer(
  ['--expose-gc', join(root, 'test', 'bench', 'our-server.mjs'), compiled, `${MAX_SESSIONS}`],
  0,
);
const agent = new Agent({ keepAlive: true, maxSockets: 16 });

type Headers = Record<string, string>;
function post(
  message: object,
  headers: Headers = {},
  ownAgent: Agent | false = agent,
): Promise<IncomingMessage> {
  const all = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    ...headers,
  };
  return new Promise((done, fail) => {
    const request = httpRequest(url, { method: 'POST', headers: all, agent: ownAgent }, done);
    request.on('error', fail);
    request.end(JSON.stringify({ jsonrpc: '2.0', ...message }));
  });
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of response) text += chunk;
  return text;
}

async function openSession(): Promise<Headers> {
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'soak', version: '1' },
  };
  const response = await post({ id: 0, method: 'initialize', params });
  await textOf(response);
  return {
    'mcp-session-id': `${response.headers['mcp-session-id']}`,
    'mcp-protocol-version': '2025-11-25',
  };
}

const add = { name: 'add', arguments: { a: 2, b: 40 } };
const introduction = { [`${META}protocolVersion`]: SINCE, [`${META}clientCapabilities`]: {} };
const laterHeaders = (name: string) => ({
  'mcp-protocol-version': SINCE,
  'mcp-method': 'tools/call',
  'mcp-name': name,
});

/** Half of them with a handshake, half without. */
async function calls(count: number): Promise<void> {
  const session = await openSession();
  let left = count;
  const worker = async () => {
    while (left > 0) {
      const id = left--;
      const isLater = id % 2 === 0;
      const params = isLater ? { ...add, _meta: introduction } : add;
      const response = await post(
        { id, method: 'tools/call', params },
        isLater ? laterHeaders('add') : session,
      );
      assert.match(await textOf(response), /"42"/);
    }
  };
  await Promise.all(Array.from({ length: 16 }, worker));
}

/** Clients that say hello, listen, and are never heard of again. */
async function dropSessions(count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    const headers = { ...(await openSession()), accept: 'text/event-stream' };
    await new Promise<void>((done, fail) => {
      const request = httpRequest(
        url,
        { headers, agent: false },
        (response) => (response.destroy(), done()),
      );
      request.on('error', fail);
      request.end();
    });
  }
}

/** Streams that are left when they have begun, by turns in each era. */
async function abandonStreams(count: number): Promise<void> {
  const session = await openSession();
  for (let n = 0; n < count; n++) {
    const isLater = n % 2 === 0;
    const _meta = { progressToken: n, ...(isLater && introduction) };
    const params = { name: 'talk', arguments: {}, _meta };
    const response = await post(
      { id: n, method: 'tools/call', params },
      isLater ? laterHeaders('talk') : session,
      false,
    );
    response.on('error', () => {});
    await new Promise((done) => response.once('data', done));
    response.destroy();
    // With a handshake the call would go on: a lost connection is no cancellation.
    if (!isLater)
      await textOf(
        await post({ method: 'notifications/cancelled', params: { requestId: n } }, session),
      );
  }
}

type Memory = { rss: number; heapUsed: number; sessions: number; listeners: number };
function memory(): Promise<Memory> {
  child.stdin!.write('\n');
  return new Promise((done) => child.stdout!.once('data', (text) => done(JSON.parse(`${text}`))));
}

const parts = Object.fromEntries(
  Object.entries(values).map(([name, count]) => [name, Math.ceil(Number(count) / ROUNDS)]),
);
const megabytes = (bytes: number) => `${(bytes / 2 ** 20).toFixed(1)} MB`;
const seen: Memory[] = [];
const startedAt = performance.now();
for (let round = 1; round <= ROUNDS; round++) {
  await calls(parts.calls!);
  await dropSessions(parts.sessions!);
  await abandonStreams(parts.streams!);
  const now = await memory();
  seen.push(now);
  console.log(
    `round ${round}: heap ${megabytes(now.heapUsed)}, resident ${megabytes(now.rss)}, ${now.sessions} sessions are remembered`,
  );
}
child.stdin!.end();

const [, second] = seen; // the first one fills what may be filled
const last = seen.at(-1)!;
const seconds = Math.round((performance.now() - startedAt) / 1000);
console.log(
  `${values.calls} calls, ${values.sessions} dropped sessions, ${values.streams} abandoned streams in ${seconds} s: ` +
    `the heap went from ${megabytes(second!.heapUsed)} to ${megabytes(last.heapUsed)}.`,
);
assert.ok(last.heapUsed <= MAX_GROWTH * second!.heapUsed, 'the heap has grown');
assert.equal(last.listeners, 0);
assert.ok(last.sessions <= MAX_SESSIONS);
process.exit();
