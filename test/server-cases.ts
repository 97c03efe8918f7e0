// What a server must do, as cases over raw HTTP and raw lines: nothing here is our client. test/29-server.test.ts runs
// them on the server of chapter 29; `npm run mutants` runs them on the same server with one bug in it, again and again.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import type { Json, Message } from '../mcp.ts';
import { RpcError } from '../mcp.ts';
import { linkedPair } from '../chapters/25-other-pipes/in-process.ts';
import type * as http from '../chapters/29-a-server/http.ts';
import type * as offers from '../chapters/29-a-server/offers.ts';
import type * as pipe from '../chapters/29-a-server/pipe.ts';
import type * as seal from '../chapters/29-a-server/seal.ts';
import type * as server from '../chapters/29-a-server/server.ts';
import { until } from './helpers.ts';

/** The server under test: the modules of chapter 29. */
export type Subject = typeof http & typeof pipe & typeof seal & typeof server;
export type Case = (subject: Subject, later: (clean: () => unknown) => void) => Promise<void>;

const META = 'io.modelcontextprotocol/';
const LATEST = '2025-11-25';
const SINCE = '2026-07-28';
const string = { type: 'string' };

// ─── A server with something of everything ────────────────────────────────────────────────────────────────────

type Fixture = { server: server.McpServer; log: string[]; release: () => void; aborted: () => number };

function fixture({ McpServer }: Subject, options: Partial<server.ServerOptions> = {}): Fixture {
  const log: string[] = [];
  let release = () => {};
  let aborted = 0;
  const held = (signal: AbortSignal) => new Promise<void>((done, fail) => {
    release = done;
    signal.addEventListener('abort', () => (aborted++, fail(signal.reason)), { once: true });
  });
  const tool = (name: string, run: offers.ServerTool['run'], inputSchema?: Json): offers.ServerTool =>
    ({ name, description: name, inputSchema, run });
  const form = { type: 'object', properties: { allow: { type: 'boolean', default: false } }, required: ['allow'] };
  const tools = [
    tool('echo', (args) => JSON.stringify(args)),
    tool('add', ({ a, b }) => `${Number(a) + Number(b)}`,
      { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } }, required: ['a', 'b'] }),
    tool('region', ({ region }) => `${region}`, {
      type: 'object',
      properties: { region: { ...string, 'x-mcp-header': 'Region' }, count: { type: 'integer', 'x-mcp-header': 'Count' } },
    }),
    tool('boom', () => { throw new Error('it broke'); }),
    tool('refuse', () => { throw new RpcError(-32602, 'not these', { why: 1 }); }),
    tool('hold', async (_, { signal, progress: __ }) => { await held(signal); return 'released'; }),
    tool('talk', async (_, c) => {
      c.progress(1, 3, 'begun');
      c.progress(1, 3, 'again'); // does not go forward
      c.progress(2);
      for (const level of ['debug', 'info', 'error']) c.log(level, `a ${level}`);
      await held(c.signal);
      return 'talked';
    }),
    tool('hang-up', async (_, c) => { c.hangUp(); await held(c.signal); return 'later'; }),
    tool('name', async (_, c) => `Hello, ${JSON.stringify((await c.ask({ name: { method: 'elicitation/create', params: { message: 'Name?', requestedSchema: { type: 'object', properties: { name: string } } } } })).name)}`),
    tool('permit', async ({ what }, c) => {
      log.push(`permit ${what}`);
      const { action, content } = await c.elicit(`Do ${what}?`, form, { isPermission: true });
      return action === 'accept' && (content as Json).allow === true ? `done ${what}` : 'no';
    }),
    tool('twice', async (_, c) => {
      const one = await c.ask({ one: { method: 'elicitation/create', params: { message: '1', requestedSchema: form } } });
      const two = await c.ask({ two: { method: 'elicitation/create', params: { message: '2', requestedSchema: form } } });
      return JSON.stringify([one.one, two.two]);
    }),
    tool('elicit-twice', async (_, c) => {
      const one = await c.elicit('One?', form);
      const two = await c.elicit('Two?', form);
      return JSON.stringify([one.action, two.action]);
    }),
    tool('permit-then-name', async (_, c) => {
      const { action } = await c.elicit('Do it?', form, { isPermission: true });
      const { name } = await c.ask({ name: { method: 'elicitation/create', params: { message: 'Name?', requestedSchema: form } } });
      return `${action} ${name!.action}`;
    }),
    tool('moving', async (_, c) => {
      const { action } = await c.elicit(`The ${log.push('moving')}th time?`, form, { isPermission: true });
      return action as string;
    }),
    tool('moves-later', async (_, c) => {
      const isLater = log.push('moves') > 2;
      const { action } = await c.elicit(isLater ? 'Delete all?' : 'Delete one?', form, { isPermission: true });
      await c.ask({ name: { method: 'elicitation/create', params: { message: 'Name?', requestedSchema: form } } });
      return action as string;
    }),
    tool('say', (_, c) => (c.log('error', 'said'), 'said')),
    tool('afterwards', (_, c) => {
      setImmediate(() => (c.progress(1), c.log('error', 'late'), c.hangUp(), log.push('afterwards')));
      return 'over';
    }),
    tool('need', (_, c) => (c.need({ sampling: {} }), 'it can')),
    tool('structured', () => ({ structuredContent: { sum: 42 } })),
    tool('slow', (_, c) => c.inBackground(async (later) => { await held(later.signal); return 'slowly'; })),
  ];
  const made = new McpServer({
    name: 'fixture', version: '1.0.0', instructions: 'Be kind.', tools, tasks: true,
    resources: [
      { uri: 'test://text', name: 'text', mimeType: 'text/plain', read: () => 'words' },
      { uri: 'test://broken', name: 'broken', read: () => { throw new Error('at /home/secret/file.ts:1'); } },
    ],
    templates: [{
      uriTemplate: 'test://item/{id}/{+path}', name: 'item', read: ({ id, path }) => (id === 'none' ? undefined : `${id}:${path}`),
      complete: { id: (value) => Array.from({ length: 150 }, (_, n) => `${value}${n}`) },
    }],
    prompts: [{ name: 'hello', description: 'Hello', arguments: [{ name: 'who', required: true, complete: (value) => [`${value}!`] }], get: ({ who }) => `Hello, ${who}` }],
    onError: (what, error) => log.push(`${what}: ${error}`),
    ...options,
  });
  return { server: made, log, release: () => release(), aborted: () => aborted };
}

// ─── Raw HTTP ─────────────────────────────────────────────────────────────────────────────────────────────────

type Answer = { status: number; headers: IncomingHttpHeaders; text: string; body: any };
type Given = { method?: string; path?: string; headers?: Record<string, string | undefined>; body?: unknown };

const PLAIN = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

function begin(port: number, { method = 'POST', path = '/mcp', headers = {}, body }: Given): Promise<IncomingMessage> {
  const all = { host: `127.0.0.1:${port}`, ...PLAIN, ...headers };
  const kept = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as Record<string, string>;
  return new Promise((done, fail) => {
    const request = httpRequest({ host: '127.0.0.1', port, method, path, headers: kept, agent: false }, done);
    request.on('error', fail);
    request.end(body === undefined || typeof body === 'string' || Buffer.isBuffer(body) ? (body as string) : JSON.stringify(body));
  });
}

async function send(port: number, given: Given): Promise<Answer> {
  const response = await begin(port, given);
  let text = '';
  response.setEncoding('utf8').on('data', (chunk) => (text += chunk));
  await new Promise((done) => response.on('close', done));
  const isJson = /json/.test(response.headers['content-type'] ?? '');
  return { status: response.statusCode!, headers: response.headers, text, body: isJson ? JSON.parse(text) : eventsIn(text).at(-1)?.data };
}

type Event = { id?: string; retry?: string; data?: any };
function eventsIn(text: string): Event[] {
  return text.split('\n\n').filter((block) => block && !block.startsWith(':')).map((block) => {
    const field = (name: string) => new RegExp(`^${name}: ?(.*)$`, 'm').exec(block)?.[1];
    const data = field('data');
    return { id: field('id'), retry: field('retry'), ...(data && { data: JSON.parse(data) }) };
  });
}

/** A stream that stays open. */
async function stream(port: number, given: Given) {
  const response = await begin(port, given);
  const seen = { text: '', isOver: false };
  response.setEncoding('utf8').on('data', (chunk) => (seen.text += chunk));
  response.on('error', () => {});
  response.on('close', () => (seen.isOver = true));
  const events = () => eventsIn(seen.text);
  const said = (what: (message: any) => unknown) => events().map(({ data }) => data).find((data) => data && what(data));
  return { response, seen, events, said, status: response.statusCode, headers: response.headers, leave: () => response.destroy() };
}

let lastId = 0;
const request = (method: string, params?: Json, id: number | string = ++lastId) => ({ jsonrpc: '2.0', id, method, ...(params && { params }) });
const toolCall = (name: string, args: Json = {}, more: Json = {}) => request('tools/call', { name, arguments: args, ...more });
const hello = (protocolVersion = LATEST, capabilities: Json = {}) =>
  request('initialize', { protocolVersion, capabilities, clientInfo: { name: 'raw', version: '1' } });

/** A session of the handshake era. */
async function openSession(port: number, version = LATEST, capabilities: Json = {}) {
  const { status, headers, body } = await send(port, { body: hello(version, capabilities) });
  assert.equal(status, 200);
  const id = headers['mcp-session-id'] as string;
  assert.match(id ?? '', /^[\x21-\x7e]+$/, 'a session id is given');
  const own = { 'mcp-session-id': id, 'mcp-protocol-version': version };
  return { id, body, headers: own, send: (message: unknown, more = {}) => send(port, { body: message, headers: { ...own, ...more } }) };
}

type LaterOptions = { capabilities?: Json; meta?: Json; headers?: Record<string, string | undefined> };
/** A request of the stateless era, with the headers that belong to it. */
function laterRequest(method: string, params: Json = {}, { capabilities = {}, meta = {}, headers = {} }: LaterOptions = {}): Given {
  const _meta = { [`${META}protocolVersion`]: SINCE, [`${META}clientCapabilities`]: capabilities, ...meta };
  const name = params.name ?? params.uri ?? params.taskId;
  const mirrors = { 'mcp-protocol-version': SINCE, 'mcp-method': method, ...(name !== undefined && { 'mcp-name': `${name}` }) };
  return { body: request(method, { ...params, _meta }), headers: { ...mirrors, ...headers } };
}
const laterCall = (name: string, args: Json = {}, options: LaterOptions = {}, more: Json = {}) =>
  laterRequest('tools/call', { name, arguments: args, ...more }, options);
const asks = { capabilities: { elicitation: {} } };
const textOf = (answer: Answer) => answer.body.result.content[0].text;

async function listening(subject: Subject, later: (clean: () => unknown) => void, options: http.HttpOptions = {}, more: Partial<server.ServerOptions> = {}) {
  const fixed = fixture(subject, more);
  const served = await subject.serveHttp(fixed.server, { graceMs: 100, ...options });
  later(() => served.close());
  return { ...fixed, served, port: served.port };
}

// ─── Raw lines ────────────────────────────────────────────────────────────────────────────────────────────────

async function piped(subject: Subject, later: (clean: () => unknown) => void, options: Partial<server.ServerOptions> = {}) {
  const fixed = fixture(subject, options);
  const [ours, theirs] = linkedPair();
  const heard: any[] = [];
  await ours.start({ message: (message) => heard.push(message), closed: () => {} });
  subject.overPipe(fixed.server)(theirs);
  later(() => ours.close());
  const say = (message: unknown) => ours.send(message as Message);
  const ask = async (message: { id: number | string }) => {
    await say(message);
    await until(() => heard.some(({ id, method }) => id === message.id && !method));
    return heard.find(({ id, method }) => id === message.id && !method);
  };
  return { ...fixed, heard, say, ask, ours };
}

const meta = () => ({ _meta: { [`${META}protocolVersion`]: SINCE, [`${META}clientCapabilities`]: {} } });

// ─── The cases ────────────────────────────────────────────────────────────────────────────────────────────────

export const cases: Record<string, Case> = {
  async 'a foreign Host, a foreign Origin, and null are refused; each alone is enough'(subject, later) {
    const { port } = await listening(subject, later);
    const status = async (headers: Json) => (await send(port, { method: 'GET', path: '/health', headers: headers as any })).status;
    assert.equal(await status({}), 200);
    assert.equal(await status({ origin: 'http://localhost:5173' }), 200);
    assert.equal(await status({ host: 'evil.example.com' }), 403);
    assert.equal(await status({ origin: 'https://evil.example.com' }), 403);
    assert.equal(await status({ origin: 'null' }), 403);
    assert.equal(await status({ host: 'evil.example.com', origin: 'http://evil.example.com' }), 403);
    assert.equal((await send(port, { body: hello(), headers: { origin: 'https://evil.example.com' } })).status, 403);
  },

  async 'Host and Origin are names with a port, and nothing else; and Host is there once'(subject, later) {
    const { port } = await listening(subject, later);
    const status = async (headers: Json) => (await send(port, { method: 'GET', path: '/health', headers: headers as any })).status;
    for (const host of ['evil@127.0.0.1', '127.0.0.1/evil', '127.0.0.1#evil', 'localhost?evil', 'local\thost', 'localhost.', 'localhost\\evil'])
      assert.equal(await status({ host }), 403, host);
    for (const origin of ['http://evil@localhost', 'http://localhost/evil', 'http://localhost#evil', 'HTTP://evil.example', 'http://localhost, https://evil.example'])
      assert.equal(await status({ origin }), 403, origin);
    const twice = connect(port, '127.0.0.1', () => twice.write('GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n'));
    const [answer] = await once(twice, 'data');
    twice.destroy();
    assert.match(`${answer}`, /^HTTP\/1.1 400 /);
  },

  async 'paths, methods, types: 404, 405, 415, 406'(subject, later) {
    const { port } = await listening(subject, later);
    const post = async (headers: Record<string, string | undefined>) => (await send(port, { body: hello(), headers })).status;
    assert.equal((await send(port, { path: '/elsewhere', body: hello() })).status, 404);
    assert.equal((await send(port, { path: '/?a=1', body: hello() })).status, 200);
    for (const method of ['PUT', 'OPTIONS', 'PATCH']) {
      const { status, headers } = await send(port, { method });
      assert.deepEqual([status, headers.allow, headers['access-control-allow-origin']], [405, 'POST, GET, DELETE', undefined]);
    }
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx', undefined])
      assert.equal(await post({ 'content-type': type }), 415, type);
    assert.equal(await post({ 'content-type': 'Application/JSON; charset=utf-8' }), 200);
    assert.equal(await post({ 'content-encoding': 'gzip' }), 415);
    for (const accept of ['application/json', 'text/event-stream', 'text/html', 'application/json, text/event-stream;q=0']) assert.equal(await post({ accept }), 406, accept);
    for (const accept of ['*/*', undefined, 'text/*;q=0.5, application/json', 'application/json,text/event-stream'])
      assert.equal(await post({ accept }), 200, accept);
    for (const method of ['GET', 'DELETE']) assert.deepEqual((await send(port, { method })).headers.allow, 'POST');
  },

  async 'a body is bounded while it is read, whatever its Content-Length says'(subject, later) {
    const { port } = await listening(subject, later, { maxBodyBytes: 10_000 });
    const big = JSON.stringify(hello('x'.repeat(20_000)));
    const { status, headers } = await send(port, { body: big });
    assert.deepEqual([status, headers.connection], [413, 'close']);
    const chunked = await send(port, { body: big, headers: { 'transfer-encoding': 'chunked' } });
    assert.equal(chunked.status, 413);
    assert.equal((await send(port, { body: hello() })).status, 200);
  },

  async 'what is not a message is refused with -32700 or -32600 and the id null, as far as there is none'(subject, later) {
    const { port } = await listening(subject, later);
    const { headers } = await openSession(port);
    const refused = async (body: unknown) => {
      const { status, body: { id, error } } = await send(port, { body: body as string, headers });
      return [status, id, error.code];
    };
    assert.deepEqual(await refused('{"jsonrpc":'), [400, null, -32700]);
    assert.deepEqual(await refused('"text"'), [400, null, -32600]);
    assert.deepEqual(await refused('null'), [400, null, -32600]);
    assert.deepEqual(await refused('['.repeat(100_000)), [400, null, -32600]);
    assert.deepEqual(await refused({ jsonrpc: '1.0', id: 1, method: 'ping' }), [400, 1, -32600]);
    assert.deepEqual(await refused({ jsonrpc: '2.0', id: null, method: 'ping' }), [400, null, -32600]);
    assert.deepEqual(await refused({ jsonrpc: '2.0', id: 1.5, method: 'ping' }), [400, null, -32600]);
    assert.deepEqual(await refused({ jsonrpc: '2.0', id: 1, method: 'ping', params: [] }), [400, 1, -32600]);
    assert.deepEqual(await refused({ jsonrpc: '2.0', id: 1 }), [400, 1, -32600]);
    assert.deepEqual(await refused({ jsonrpc: '2.0', method: 7 }), [400, null, -32600]);
  },

  async 'a batch belongs to 2025-03-26 alone'(subject, later) {
    const { port } = await listening(subject, later);
    const batch = [request('ping', undefined, 'a'), { jsonrpc: '2.0', method: 'notifications/x' }, toolCall('echo')];
    for (const version of [LATEST, '2025-06-18', '2024-11-05']) {
      const { status, body } = await (await openSession(port, version)).send(batch);
      assert.deepEqual([status, body.error.code], [400, -32600], version);
    }
    const { status, body } = await (await openSession(port, '2025-03-26')).send(batch);
    assert.equal(status, 200);
    assert.deepEqual(body.map(({ id }: Json) => id).length, 2);
    assert.deepEqual(body[0], { jsonrpc: '2.0', id: 'a', result: {} });
    assert.equal((await send(port, { body: [hello()] })).status, 400);
  },

  async 'a batch is not empty, not endless, and all of it is looked at before any of it is done'(subject, later) {
    const { port, aborted } = await listening(subject, later);
    const session = await openSession(port, '2025-03-26');
    for (const batch of [[], Array.from({ length: 101 }, () => request('ping')), [request('ping'), 7]]) {
      const { status, body } = await session.send(batch);
      assert.deepEqual([status, body.error.code], [400, -32600]);
    }
    const talk = await stream(port, { body: toolCall('talk', {}, { _meta: { progressToken: 1 } }), headers: session.headers });
    const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: lastId } };
    assert.equal((await session.send([cancelled, { jsonrpc: '2.0' }])).status, 400);
    assert.equal(aborted(), 0);
    await session.send([cancelled]);
    await until(() => aborted() === 1 && talk.seen.isOver);
    const { body } = await session.send([request('ping', undefined, 5), request('ping', undefined, 5), request('ping', undefined, 6)]);
    assert.deepEqual(body.map(({ id, error }: Json) => [id, (error as Json)?.code]), [[5, undefined], [5, -32600], [6, undefined]]);
    assert.equal((await session.send([request('ping')], { 'mcp-protocol-version': '2026-07-28' })).status, 400);
  },

  async 'the handshake: the client\'s revision if we know it, else our newest; what it says of itself'(subject, later) {
    const { port } = await listening(subject, later);
    for (const version of [LATEST, '2025-06-18', '2025-03-26', '2024-11-05'])
      assert.equal((await openSession(port, version)).body.result.protocolVersion, version);
    for (const odd of ['2026-07-28', '1999-01-01']) {
      const { body } = await send(port, { body: hello(odd) });
      assert.equal(body.result.protocolVersion, LATEST, odd);
      assert.deepEqual(body.result.serverInfo, { name: 'fixture', version: '1.0.0' });
      assert.equal(body.result.instructions, 'Be kind.');
      assert.deepEqual(Object.keys(body.result.capabilities).sort(), ['completions', 'extensions', 'logging', 'prompts', 'resources', 'tools']);
    }
    const without = await send(port, { body: request('initialize', {}) });
    assert.deepEqual([without.body.error.code, without.headers['mcp-session-id']], [-32602, undefined]);
  },

  async 'sessions: none is 400, unknown is 404, a second initialize is refused, DELETE ends one'(subject, later) {
    const { port, served } = await listening(subject, later);
    const without = await send(port, { body: toolCall('echo') });
    assert.equal(without.status, 400);
    assert.equal((await send(port, { body: request('ping') })).status, 400);
    const unknown = await send(port, { body: toolCall('echo'), headers: { 'mcp-session-id': 'made-up' } });
    assert.equal(unknown.status, 404);
    const session = await openSession(port);
    assert.equal(textOf(await session.send(toolCall('echo', { a: 1 }))), '{"a":1}');
    const again = await session.send(hello());
    assert.deepEqual([again.status, again.body.error.code, again.body.error.message], [400, -32600, 'Already initialized']);
    assert.equal((await session.send({ jsonrpc: '2.0', method: 'notifications/initialized' })).status, 202);
    assert.equal((await session.send({ jsonrpc: '2.0', id: 'nothing', result: {} })).status, 202);
    assert.equal((await send(port, { method: 'DELETE', headers: session.headers })).status, 204);
    assert.equal((await session.send(toolCall('echo'))).status, 404);
    assert.equal((await send(port, { method: 'GET', headers: session.headers })).status, 404);
    assert.equal(served.sessions, 0);
  },

  async 'GET and DELETE of a revision that has no sessions are refused; and DELETE ends the streams'(subject, later) {
    const { port } = await listening(subject, later);
    const session = await openSession(port);
    for (const method of ['GET', 'DELETE']) {
      for (const version of ['nonsense', SINCE])
        assert.equal((await send(port, { method, headers: { ...session.headers, 'mcp-protocol-version': version } })).status, 400, version);
    }
    const listen = await stream(port, { method: 'GET', headers: session.headers });
    await send(port, { method: 'DELETE', headers: session.headers });
    await until(() => listen.seen.isOver);
  },

  async 'one session cannot cancel the calls of another, nor answer its questions'(subject, later) {
    const { port, release, aborted } = await listening(subject, later);
    const [one, two] = [await openSession(port, LATEST, { elicitation: {} }), await openSession(port)];
    const body = toolCall('hold');
    const held = one.send(body);
    const permit = await stream(port, { body: toolCall('permit', { what: 'it' }), headers: one.headers });
    await until(() => permit.said(({ method }) => method === 'elicitation/create'));
    const { id } = permit.said(({ method }) => method === 'elicitation/create');
    const yes = { jsonrpc: '2.0', id, result: { action: 'accept', content: { allow: true } } };
    await two.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: body.id } });
    await two.send(yes);
    await two.send(request('ping'));
    assert.deepEqual([aborted(), permit.said(({ result }) => result)], [0, undefined]);
    release();
    assert.equal(textOf(await held), 'released');
    await one.send(yes);
    await until(() => permit.said(({ result }) => result));
  },

  async 'a session that works, or is listened to, is not the one that goes'(subject, later) {
    const { port, release, served } = await listening(subject, later, { maxSessions: 3 });
    const [busy, listener, idle] = [await openSession(port), await openSession(port), await openSession(port)];
    const held = stream(port, { body: toolCall('talk', {}, { _meta: { progressToken: 1 } }), headers: busy.headers });
    await until(async () => (await held).said(({ params }) => params?.progress === 2));
    const listen = await stream(port, { method: 'GET', headers: listener.headers });
    await idle.send(request('ping'));
    await openSession(port);
    assert.deepEqual([served.sessions, (await idle.send(request('ping'))).status], [3, 404]);
    release();
    await until(async () => (await held).said(({ result }) => result));
    listen.leave();
  },

  async 'what a stream remembers is bounded, and so are the streams that are kept'(subject, later) {
    const { port, server } = await listening(subject, later);
    const session = await openSession(port);
    const listen = await stream(port, { method: 'GET', headers: session.headers });
    await session.send(request('resources/subscribe', { uri: 'test://text' }));
    listen.leave();
    for (let n = 0; n < 1100; n++) server.updated('test://text');
    const again = await stream(port, { method: 'GET', headers: { ...session.headers, 'last-event-id': 's1/0' } });
    await until(() => again.events().some(({ id }) => id === 's1/1100'));
    assert.equal(again.events().length, 1000);
    for (let n = 0; n < 55; n++) await session.send(toolCall('say'));
    const status = async (id: string) => (await send(port, { method: 'GET', headers: { ...session.headers, 'last-event-id': id } })).status;
    assert.deepEqual([await status('s2/0'), await status('s56/0')], [400, 200]);
    again.leave();
  },

  async 'a stream that is resumed is the one that was named, and not another of the session'(subject, later) {
    const { port } = await listening(subject, later);
    const session = await openSession(port);
    const [one, two] = [toolCall('say'), toolCall('say')];
    for (const body of [one, two]) await session.send(body);
    const resumed = async (id: string) => (await send(port, { method: 'GET', headers: { ...session.headers, 'last-event-id': id } })).body.id;
    assert.deepEqual([await resumed('s2/1'), await resumed('s1/1')], [two.id, one.id]);
  },

  async 'what a handler says after its result reaches nobody'(subject, later) {
    const { ask, heard, log } = await piped(subject, later);
    await ask(hello());
    await ask(toolCall('afterwards', {}, { _meta: { progressToken: 1 } }));
    await until(() => log.includes('afterwards'));
    await ask(request('ping'));
    assert.ok(heard.every(({ method }) => method === undefined));
    const { port, log: said } = await listening(subject, later);
    const session = await openSession(port);
    await session.send(toolCall('afterwards', {}, { _meta: { progressToken: 1 } }));
    await until(() => said.includes('afterwards'));
    assert.equal((await send(port, { method: 'GET', headers: { ...session.headers, 'last-event-id': 's1/0' } })).status, 400, 'no stream was begun');
  },

  async 'sessions are bounded, the longest idle goes; and the idle are forgotten'(subject, later) {
    const { port, served } = await listening(subject, later, { maxSessions: 2 });
    const [one, two] = [await openSession(port), await openSession(port)];
    await one.send(request('ping'));
    const three = await openSession(port);
    assert.equal(served.sessions, 2);
    assert.equal((await two.send(request('ping'))).status, 404);
    for (const each of [one, three]) assert.equal((await each.send(request('ping'))).status, 200);
    const brief = await listening(subject, later, { idleMs: 30 });
    const listener = await openSession(brief.port);
    const listen = await stream(brief.port, { method: 'GET', headers: listener.headers });
    await openSession(brief.port);
    await until(() => brief.served.sessions === 1);
    assert.equal((await listener.send(request('ping'))).status, 200, 'one that listens is not idle');
    listen.leave();
    await until(() => brief.served.sessions === 0);
  },

  async 'the six codes: unknown methods and tools, wrong parameters, a failure of ours without its words'(subject, later) {
    const { port, log } = await listening(subject, later);
    const session = await openSession(port);
    const error = async (message: Message | object) => (await session.send(message)).body.error;
    assert.equal((await error(request('shelf/burn'))).code, -32601);
    assert.equal((await error(toolCall('unknown'))).code, -32602);
    assert.equal((await error(request('tools/call', { arguments: {} }))).code, -32602);
    assert.equal((await error(request('tools/call', { name: 'echo', arguments: [] }))).code, -32602);
    assert.deepEqual(await error(toolCall('refuse')), { code: -32602, message: 'not these', data: { why: 1 } });
    assert.deepEqual(await error(request('resources/read', { uri: 'test://nothing' })),
      { code: -32002, message: 'Resource not found: test://nothing', data: { uri: 'test://nothing' } });
    const broken = await error(request('resources/read', { uri: 'test://broken' }));
    assert.equal(broken.code, -32603);
    assert.doesNotMatch(JSON.stringify(broken), /secret|\.ts|at /);
    assert.ok(log.some((line) => line.includes('secret')), 'the log has it');
    const failed = await session.send(toolCall('boom'));
    assert.deepEqual(failed.body.result, { content: [{ type: 'text', text: 'it broke' }], isError: true });
    assert.equal(failed.status, 200);
    const misfit = await session.send(toolCall('add', { a: 1 }));
    assert.equal(misfit.body.result.isError, true);
    assert.match(textOf(misfit), /^b: /);
    assert.equal(textOf(await session.send(toolCall('add', { a: 2, b: 40 }))), '42');
  },

  async 'results: structured content is also text; ids may be 0 and texts; arguments may be left out'(subject, later) {
    const { port } = await listening(subject, later);
    const session = await openSession(port);
    const { body } = await session.send(request('tools/call', { name: 'structured' }, 0));
    assert.deepEqual(body, { jsonrpc: '2.0', id: 0, result: { content: [{ type: 'text', text: '{"sum":42}' }], structuredContent: { sum: 42 } } });
    assert.equal((await session.send(request('ping', undefined, ''))).body.id, '');
  },

  async 'lists come in pages whose cursors are ours alone'(subject, later) {
    const { port, server } = await listening(subject, later, {}, { pageSize: 5 });
    const session = await openSession(port);
    const names: string[] = [];
    let cursor: unknown;
    do {
      const { body } = await session.send(request('tools/list', cursor === undefined ? {} : { cursor } as Json));
      assert.ok(body.result.tools.length <= 5);
      names.push(...body.result.tools.map((tool: Json) => tool.name));
      cursor = body.result.nextCursor;
    } while (cursor !== undefined);
    assert.deepEqual(names, [...server.tools.keys()]);
    for (const odd of ['', 'xyz', 'YXQgNQ==', 7]) assert.equal((await session.send(request('tools/list', { cursor: odd }))).body.error.code, -32602);
  },

  async 'resources, templates, prompts and completion'(subject, later) {
    const { port } = await listening(subject, later);
    const session = await openSession(port);
    const result = async (method: string, params: Json = {}) => (await session.send(request(method, params))).body.result;
    assert.deepEqual(await result('resources/read', { uri: 'test://text' }), { contents: [{ uri: 'test://text', mimeType: 'text/plain', text: 'words' }] });
    assert.equal((await result('resources/read', { uri: 'test://item/a%20b/c/d' })).contents[0].text, 'a b:c/d');
    assert.equal((await session.send(request('resources/read', { uri: 'test://item/none/c' }))).body.error.code, -32002);
    assert.equal((await session.send(request('resources/read', { uri: 'test://item/%zz/c' }))).body.error.code, -32002);
    assert.equal((await result('resources/templates/list')).resourceTemplates[0].uriTemplate, 'test://item/{id}/{+path}');
    assert.deepEqual((await result('prompts/list')).prompts, [{ name: 'hello', description: 'Hello', arguments: [{ name: 'who', required: true }] }]);
    assert.equal((await result('prompts/get', { name: 'hello', arguments: { who: 'Ada' } })).messages[0].content.text, 'Hello, Ada');
    assert.equal((await session.send(request('prompts/get', { name: 'hello' }))).body.error.code, -32602);
    const complete = (ref: Json, name: string, value: string) => result('completion/complete', { ref, argument: { name, value } });
    assert.deepEqual((await complete({ type: 'ref/prompt', name: 'hello' }, 'who', 'A')).completion.values, ['A!']);
    const many = (await complete({ type: 'ref/resource', uri: 'test://item/{id}/{+path}' }, 'id', 'x')).completion;
    assert.deepEqual([many.values.length, many.total, many.hasMore], [100, 150, true]);
    for (const name of ['constructor', '__proto__', 'toString'])
      assert.deepEqual((await complete({ type: 'ref/resource', uri: 'test://item/{id}/{+path}' }, name, 'x')).completion.values, []);
    assert.equal((await session.send(request('completion/complete', { ref: { type: 'ref/prompt', name: 'none' }, argument: { name: 'a', value: '' } }))).body.error.code, -32602);
  },

  async 'a stream: its head, the priming event, progress that goes forward, logs at their level, then the result'(subject, later) {
    const { port, release } = await listening(subject, later);
    for (const [version, isPrimed] of [[LATEST, true], ['2025-06-18', false]] as const) {
      const session = await openSession(port, version);
      await session.send(request('logging/setLevel', { level: 'error' }));
      const talk = await stream(port, { body: toolCall('talk', {}, { _meta: { progressToken: 'p' } }), headers: session.headers });
      assert.deepEqual([talk.status, talk.headers['content-type'], talk.headers['x-accel-buffering'], talk.headers['cache-control']],
        [200, 'text/event-stream', 'no', 'no-cache, no-transform']);
      await until(() => talk.said(({ method }) => method === 'notifications/message'));
      release();
      await until(() => talk.seen.isOver);
      const [first] = talk.events();
      assert.equal(first!.data === undefined && /\/0$/.test(first!.id ?? '') && first!.retry === '1000', isPrimed, version);
      const said = talk.events().map(({ data }) => data).filter((data) => data);
      assert.deepEqual(said.map(({ method, params }) => method && (params.progress ?? params.data)), [1, 2, 'a error', undefined]);
      assert.deepEqual(said[0].params, { progressToken: 'p', progress: 1, total: 3, message: 'begun' });
      assert.equal(said.at(-1).result.content[0].text, 'talked');
      const ids = talk.events().map(({ id }) => id);
      assert.equal(new Set(ids).size, ids.length);
    }
    const session = await openSession(port);
    assert.equal((await session.send(request('logging/setLevel', { level: 'loud' }))).body.error.code, -32602);
  },

  async 'a lost connection is no cancellation: Last-Event-ID brings the rest, and nothing of another stream'(subject, later) {
    const { port, release, aborted } = await listening(subject, later);
    const session = await openSession(port);
    const body = toolCall('talk', {}, { _meta: { progressToken: 1 } });
    const one = await stream(port, { body, headers: session.headers });
    await until(() => one.said(({ params }) => params?.progress === 2));
    const first = one.events().find(({ data }) => data?.params?.progress === 1)!.id!;
    one.leave();
    const two = await stream(port, { method: 'GET', headers: { ...session.headers, 'last-event-id': first } });
    await until(() => two.said(({ params }) => params?.progress === 2));
    assert.equal(aborted(), 0);
    release();
    await until(() => two.said(({ result }) => result));
    assert.equal(two.said(({ result }) => result).id, body.id);
    assert.ok(!two.said(({ params }) => params?.progress === 1), 'what it has heard is not said again');
    // The stream is over, and is kept for a while.
    const three = await send(port, { method: 'GET', headers: { ...session.headers, 'last-event-id': first } });
    assert.equal(three.body.result.content[0].text, 'talked');
    const stranger = await openSession(port);
    assert.equal((await send(port, { method: 'GET', headers: { ...stranger.headers, 'last-event-id': first } })).status, 400);
    assert.equal((await send(port, { method: 'GET', headers: { ...session.headers, 'last-event-id': 'x' } })).status, 400);
  },

  async 'a handler may hang up, and the client comes back for the result'(subject, later) {
    const { port, release } = await listening(subject, later);
    const session = await openSession(port);
    const { body: nothing, text } = await session.send(toolCall('hang-up'));
    assert.equal(nothing, undefined);
    const [{ id, retry }] = eventsIn(text) as [Event];
    assert.equal(retry, '1000');
    const rest = await stream(port, { method: 'GET', headers: { ...session.headers, 'last-event-id': id! } });
    release();
    await until(() => rest.said(({ result }) => result?.content[0].text === 'later'));
  },

  async 'notifications/cancelled stops the work, and ends the exchange without an answer'(subject, later) {
    const { port, aborted } = await listening(subject, later);
    const session = await openSession(port);
    const body = toolCall('hold');
    const held = session.send(body);
    const cancel = () => session.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: body.id } });
    while (aborted() === 0) assert.equal((await cancel()).status, 202); // until the call has arrived
    const { status, text } = await held;
    assert.deepEqual([status, text], [202, '']);
    assert.equal((await session.send(request('ping'))).status, 200);
  },

  async 'without a handshake a closed connection stops the work'(subject, later) {
    const { port, aborted } = await listening(subject, later);
    const talk = await stream(port, laterCall('talk', {}, { meta: { progressToken: 1 } }));
    await until(() => talk.said(({ params }) => params?.progress === 2));
    talk.leave();
    await until(() => aborted() === 1);
  },

  async 'the listening stream: one for each session, for what belongs to no request'(subject, later) {
    const { port, server } = await listening(subject, later);
    const session = await openSession(port);
    const listen = await stream(port, { method: 'GET', headers: session.headers });
    assert.equal(listen.status, 200);
    assert.equal((await send(port, { method: 'GET', headers: session.headers })).status, 409);
    assert.equal((await send(port, { method: 'GET', headers: { ...session.headers, accept: 'application/json' } })).status, 406);
    assert.deepEqual((await session.send(request('resources/subscribe', { uri: 'test://text' }))).body.result, {});
    server.updated('test://other');
    server.updated('test://text');
    server.changed('tools');
    await until(() => listen.said(({ method }) => method === 'notifications/tools/list_changed'));
    assert.deepEqual(listen.said(({ method }) => method === 'notifications/resources/updated')?.params, { uri: 'test://text' });
    await session.send(request('resources/unsubscribe', { uri: 'test://text' }));
    server.updated('test://text');
    server.changed('prompts');
    await until(() => listen.said(({ method }) => method === 'notifications/prompts/list_changed'));
    assert.equal(listen.events().filter(({ data }) => data?.method === 'notifications/resources/updated').length, 1);
    listen.leave();
  },

  async 'streams are kept alive by comments'(subject, later) {
    const { port } = await listening(subject, later, { keepAliveMs: 20 });
    const session = await openSession(port);
    const listen = await stream(port, { method: 'GET', headers: session.headers });
    await until(() => /^:$/m.test(listen.seen.text));
    listen.leave();
  },

  async 'with a handshake a question is a request on the call\'s stream, and its answer a POST'(subject, later) {
    const { port } = await listening(subject, later);
    const session = await openSession(port, LATEST, { elicitation: {} });
    const permit = await stream(port, { body: toolCall('permit', { what: 'it' }), headers: session.headers });
    await until(() => permit.said(({ method }) => method === 'elicitation/create'));
    const { id, params } = permit.said(({ method }) => method === 'elicitation/create');
    assert.equal(params.message, 'Do it?');
    const { status, text } = await session.send({ jsonrpc: '2.0', id, result: { action: 'accept', content: { allow: true } } });
    assert.deepEqual([status, text], [202, '']);
    await until(() => permit.said(({ result }) => result));
    assert.equal(permit.said(({ result }) => result).result.content[0].text, 'done it');
    const refused = await stream(port, { body: toolCall('name'), headers: session.headers });
    await until(() => refused.said(({ method }) => method));
    await session.send({ jsonrpc: '2.0', id: refused.said(({ method }) => method).id, error: { code: -1, message: 'no' } });
    await until(() => refused.said(({ result }) => result));
    assert.equal(refused.said(({ result }) => result).result.isError, true);
    const mute = await openSession(port);
    assert.match(textOf(await mute.send(toolCall('permit', { what: 'it' }))), /capability elicitation is needed/);
  },

  async 'the stateless era: discover, results with their type, name and age, no session'(subject, later) {
    const { port } = await listening(subject, later);
    const discover = await send(port, laterRequest('server/discover'));
    const { result } = discover.body;
    assert.deepEqual(result.supportedVersions, [SINCE]);
    assert.deepEqual([result.resultType, result.ttlMs, result.cacheScope, result.instructions], ['complete', 0, 'private', 'Be kind.']);
    assert.deepEqual(result._meta[`${META}serverInfo`], { name: 'fixture', version: '1.0.0' });
    assert.equal(discover.headers['mcp-session-id'], undefined);
    const echo = await send(port, laterCall('echo', { a: 1 }, { headers: { 'mcp-session-id': 'stray', 'last-event-id': 's1/1' } }));
    assert.deepEqual([echo.status, echo.body.result.resultType, echo.body.result.ttlMs, textOf(echo)], [200, 'complete', undefined, '{"a":1}']);
    assert.ok(echo.body.result._meta[`${META}serverInfo`]);
    const handshake = (await (await openSession(port)).send(request('tools/list'))).body.result;
    assert.deepEqual(Object.keys(handshake), ['tools'], 'nothing of this in the handshake era');
    for (const [method, params] of [['tools/list', {}], ['resources/read', { uri: 'test://text' }]] as const)
      assert.equal((await send(port, laterRequest(method, params))).body.result.cacheScope, 'private');
  },

  async 'the stateless era: refusals, in their order, and with their status'(subject, later) {
    const { port } = await listening(subject, later);
    const refusal = async (given: Given) => {
      const { status, body } = await send(port, given);
      return [status, body.error?.code];
    };
    const bare = (params?: Json) => ({ body: request('tools/list', params), headers: { 'mcp-protocol-version': SINCE, 'mcp-method': 'tools/list' } });
    assert.deepEqual(await refusal(bare()), [400, -32602]);
    assert.deepEqual(await refusal(bare({ _meta: { [`${META}clientCapabilities`]: {} } })), [400, -32602]);
    assert.deepEqual(await refusal(bare({ _meta: { [`${META}protocolVersion`]: SINCE } })), [400, -32602]);
    const odd = laterRequest('tools/list', {}, { meta: { [`${META}protocolVersion`]: 'v999' }, headers: { 'mcp-protocol-version': 'v999' } });
    const { status, body } = await send(port, odd);
    assert.deepEqual([status, body.error.code, body.error.data], [400, -32022, { supported: [SINCE], requested: 'v999' }]);
    assert.equal(body.id, (odd.body as Message).id);
    for (const method of ['initialize', 'ping', 'logging/setLevel', 'resources/subscribe', 'unknown/method', 'tasks/list', 'tasks/result'])
      assert.deepEqual(await refusal(laterRequest(method)), [404, -32601], method);
    assert.deepEqual(await refusal(laterCall('unknown')), [200, -32602]);
    const missing = await send(port, laterRequest('resources/read', { uri: 'test://nothing' }));
    assert.deepEqual([missing.status, missing.body.error.code, missing.body.error.data], [200, -32602, { uri: 'test://nothing' }]);
    const need = await send(port, laterCall('need'));
    assert.deepEqual([need.status, need.body.error.code, need.body.error.data], [400, -32021, { requiredCapabilities: { sampling: {} } }]);
    assert.equal(textOf(await send(port, laterCall('need', {}, { capabilities: { sampling: {} } }))), 'it can');
    assert.deepEqual(await refusal({ body: { jsonrpc: '2.0', id: 1, result: {} }, headers: { 'mcp-protocol-version': SINCE } }), [400, -32600]);
    const notice = await send(port, { body: { jsonrpc: '2.0', method: 'notifications/x' }, headers: { 'mcp-protocol-version': SINCE } });
    assert.equal(notice.status, 202);
  },

  async 'headers say what the body says: revision, method, name, arguments; base64 strictly'(subject, later) {
    const { port } = await listening(subject, later);
    const status = async (headers: Record<string, string | undefined>, name = 'region', args: Json = {}) => {
      const { status, body } = await send(port, laterCall(name, args, { headers }));
      return body.error ? [status, body.error.code] : status;
    };
    const mismatch = [400, -32020];
    assert.equal(await status({}), 200);
    assert.deepEqual(await status({ 'mcp-protocol-version': undefined }), mismatch);
    assert.deepEqual(await status({ 'mcp-protocol-version': LATEST }), mismatch);
    assert.deepEqual(await status({ 'mcp-method': undefined }), mismatch);
    assert.deepEqual(await status({ 'mcp-method': 'Tools/Call' }), mismatch);
    assert.deepEqual(await status({ 'mcp-name': undefined }), mismatch);
    assert.deepEqual(await status({ 'mcp-name': 'echo' }), mismatch);
    assert.equal(await status({ 'mcp-name': `=?base64?${Buffer.from('region').toString('base64')}?=` }), 200);
    const param = (value?: string) => ({ 'mcp-param-region': value });
    assert.equal(await status(param('eu'), 'region', { region: 'eu' }), 200);
    assert.deepEqual(await status(param('us'), 'region', { region: 'eu' }), mismatch);
    assert.deepEqual(await status(param(), 'region', { region: 'eu' }), mismatch);
    assert.deepEqual(await status(param('eu')), mismatch, 'a header without an argument');
    const base64 = Buffer.from('Zürich').toString('base64');
    assert.equal(await status(param(`=?base64?${base64}?=`), 'region', { region: 'Zürich' }), 200);
    assert.deepEqual(await status(param(`=?base64?${base64.replace(/=+$/, '')}*?=`), 'region', { region: 'Zürich' }), mismatch);
    assert.deepEqual(await status(param('=?base64?ZXU?='), 'region', { region: 'eu' }), mismatch, 'without its padding');
    assert.equal(await status(param('=?base64?ZXU='), 'region', { region: '=?base64?ZXU=' }), 200, 'half of it means itself');
    assert.equal(await status({ 'mcp-param-count': '042' }, 'region', { count: 42 }), 200, 'compared as numbers');
    assert.deepEqual(await status({ 'mcp-param-count': '43' }, 'region', { count: 42 }), mismatch);
    assert.deepEqual(await status({ 'mcp-param-count': '' }, 'region', { count: 0 }), mismatch, 'nothing is not 0');
    assert.deepEqual(await status({ 'mcp-param-count': '42' }, 'region', {}), mismatch, 'a header for what is not there');
    assert.equal((await send(port, laterRequest('resources/read', { uri: 'test://text' }, { headers: { 'mcp-name': 'test://other' } }))).status, 400);
  },

  async 'without a handshake logs are heard only by those who named a level'(subject, later) {
    const { port, release } = await listening(subject, later);
    for (const [level, heard] of [[undefined, []], ['info', ['a info', 'a error']]] as const) {
      const talk = await stream(port, laterCall('talk', {}, { meta: { progressToken: 1, ...(level && { [`${META}logLevel`]: level }) } }));
      await until(() => talk.said(({ params }) => params?.progress === 2));
      release();
      await until(() => talk.seen.isOver);
      const logs = talk.events().filter(({ data }) => data?.method === 'notifications/message').map(({ data }) => data.params.data);
      assert.deepEqual(logs, heard);
      assert.ok(talk.events().every(({ id }) => id === undefined), 'no ids: nothing can be resumed');
    }
  },

  async 'without a handshake a question ends the call; with its answer it comes again'(subject, later) {
    const { port } = await listening(subject, later);
    const ask = (more: Json = {}) => send(port, laterCall('name', {}, asks, more));
    const { body: { result } } = await ask();
    assert.equal(result.resultType, 'input_required');
    assert.equal(result.inputRequests.name.method, 'elicitation/create');
    assert.equal(result.ttlMs, undefined);
    const answer = { action: 'accept', content: { name: 'Ada' } };
    const done = await ask({ inputResponses: { name: answer, other: {} }, requestState: result.requestState });
    assert.equal(textOf(done), `Hello, ${JSON.stringify(answer)}`);
    assert.equal(textOf(await ask({ inputResponses: { name: answer } })), `Hello, ${JSON.stringify(answer)}`, 'a state is not demanded');
    for (const odd of [{ name: 7 }, { name: null }, { other: answer }, { name: {} }, null, 'name'])
      assert.equal((await ask({ inputResponses: odd as Json })).body.result.resultType, 'input_required', JSON.stringify(odd));
    const cannot = await send(port, laterCall('name'));
    assert.deepEqual([cannot.status, cannot.body.error.code], [400, -32021]);
  },

  async 'two questions are two rounds: the answers of the first are in the state'(subject, later) {
    const { port } = await listening(subject, later);
    const yes = { action: 'accept', content: { allow: true } };
    const no = { action: 'decline' };
    const one = (await send(port, laterCall('twice', {}, asks))).body.result;
    const two = (await send(port, laterCall('twice', {}, asks, { inputResponses: { one: yes }, requestState: one.requestState }))).body.result;
    assert.deepEqual([Object.keys(two.inputRequests), two.requestState !== one.requestState], [['two'], true]);
    const three = await send(port, laterCall('twice', {}, asks, { inputResponses: { two: no }, requestState: two.requestState }));
    assert.equal(textOf(three), JSON.stringify([yes, no]));
  },

  async 'a state that is not ours, of another request, or changed is refused'(subject, later) {
    const { port } = await listening(subject, later);
    const permit = (args: Json, more: Json = {}) => send(port, laterCall('permit', args, asks, more));
    const { requestState } = (await permit({ what: 'this' })).body.result;
    const yes = { answer: { action: 'accept', content: { allow: true } } };
    const refused = async (args: Json, state: unknown) => (await permit(args, { inputResponses: yes, requestState: state })).body.error?.code;
    assert.equal(await refused({ what: 'that' }, requestState), -32602, 'another request');
    for (const odd of [`${requestState}-TAMPERED`, `${requestState}=`, `x${requestState}`, requestState.slice(0, -1), '', '.', 7, {}])
      assert.equal(await refused({ what: 'this' }, odd), -32602, JSON.stringify(odd));
    const [text, mac] = requestState.split('.');
    const inside = JSON.parse(`${Buffer.from(text, 'base64url')}`);
    const longer = Buffer.from(JSON.stringify({ ...inside, until: 1e15 })).toString('base64url');
    assert.equal(await refused({ what: 'this' }, `${longer}.${mac}`), -32602);
    const other = await listening(subject, later);
    assert.equal((await send(other.port, laterCall('permit', { what: 'this' }, asks, { inputResponses: yes, requestState }))).body.error.code, -32602, 'another key');
    assert.equal(textOf(await permit({ what: 'this' }, { inputResponses: yes, requestState })), 'done this');
  },

  async 'a permission counts only with the state of the very question'(subject, later) {
    const { port, log } = await listening(subject, later);
    const permit = (args: Json, more: Json = {}) => send(port, laterCall('permit', args, asks, more));
    const yes = { answer: { action: 'accept', content: { allow: true } } };
    const forged = await permit({ what: 'this' }, { inputResponses: yes });
    assert.equal(forged.body.result.resultType, 'input_required');
    for (const answer of [{ action: 'accept', content: { allow: false } }, { action: 'accept', content: {} }, { action: 'decline', content: { allow: true } }]) {
      const { requestState } = (await permit({ what: 'this' })).body.result;
      assert.equal(textOf(await permit({ what: 'this' }, { inputResponses: { answer }, requestState })), 'no');
    }
    assert.ok(log.length >= 4);
  },

  async 'a permission counts once: sent again, or twice at the same time, it is asked for again'(subject, later) {
    const { port } = await listening(subject, later);
    const permit = (more: Json = {}) => send(port, laterCall('permit', { what: 'this' }, asks, more));
    const inputResponses = { answer: { action: 'accept', content: { allow: true } } };
    const { requestState } = (await permit()).body.result;
    const both = await Promise.all([1, 2].map(() => permit({ inputResponses, requestState })));
    assert.deepEqual(both.map(({ body }) => body.result.resultType).sort(), ['complete', 'input_required']);
    const third = (await permit({ inputResponses, requestState })).body.result;
    assert.deepEqual([third.resultType, third.requestState === requestState], ['input_required', false]);
    assert.equal(textOf(await permit({ inputResponses, requestState: third.requestState })), 'done this');
  },

  async 'processes that share a key take each other\'s states; each counts a yes once'(subject, later) {
    const sealingKey = Buffer.alloc(32, 7);
    const [one, two] = [await listening(subject, later, {}, { sealingKey }), await listening(subject, later, {}, { sealingKey })];
    const permit = async ({ port }: { port: number }, more: Json = {}) => (await send(port, laterCall('permit', { what: 'it' }, asks, more))).body.result;
    const { requestState } = await permit(one);
    const yes = { inputResponses: { answer: { action: 'accept', content: { allow: true } } }, requestState };
    const came: string[] = [];
    for (const process of [two, two, one, one]) came.push((await permit(process, yes)).resultType);
    assert.deepEqual(came, ['complete', 'input_required', 'complete', 'input_required']);
  },

  async 'a permission of an earlier round counts once, too'(subject, later) {
    const { port } = await listening(subject, later);
    const ask = async (more: Json = {}) => (await send(port, laterCall('permit-then-name', {}, asks, more))).body.result;
    const accept = { action: 'accept', content: { allow: true } };
    const one = await ask();
    const two = await ask({ inputResponses: { answer: accept }, requestState: one.requestState });
    assert.deepEqual(Object.keys(two.inputRequests), ['name']);
    const more = { inputResponses: { name: accept }, requestState: two.requestState };
    assert.equal((await ask(more)).content[0].text, 'accept accept');
    assert.deepEqual(Object.keys((await ask(more)).inputRequests), ['answer']);
  },

  async 'a permission whose words have changed is asked for again, also one of an earlier round'(subject, later) {
    const { port } = await listening(subject, later);
    const ask = async (name: string, more: Json = {}) => (await send(port, laterCall(name, {}, asks, more))).body.result;
    const accept = { action: 'accept', content: { allow: true } };
    const first = await ask('moving');
    const moved = await ask('moving', { inputResponses: { answer: accept }, requestState: first.requestState });
    assert.equal(moved.resultType, 'input_required');
    const fresh = await listening(subject, later);
    const on = async (more: Json = {}) => (await send(fresh.port, laterCall('moves-later', {}, asks, more))).body.result;
    const one = await on();
    const two = await on({ inputResponses: { answer: accept }, requestState: one.requestState });
    assert.deepEqual(Object.keys(two.inputRequests), ['name']);
    const three = await on({ inputResponses: { name: accept }, requestState: two.requestState });
    assert.equal(three.inputRequests?.answer.params.message, 'Delete all?');
  },

  async 'two questions of one handler are two, though both are called "answer"'(subject, later) {
    const { port } = await listening(subject, later);
    const ask = async (more: Json = {}) => (await send(port, laterCall('elicit-twice', {}, asks, more))).body.result;
    const one = await ask();
    const two = await ask({ inputResponses: { answer: { action: 'accept' } }, requestState: one.requestState });
    assert.equal(two.inputRequests?.answer.params.message, 'Two?');
    const three = await ask({ inputResponses: { answer: { action: 'decline' } }, requestState: two.requestState });
    assert.equal(three.content[0].text, '["accept","decline"]');
  },

  async 'what was used is remembered until it has expired, and not without a limit'({ Seal }) {
    let time = 0;
    const seal = new Seal(Buffer.alloc(32, 1), () => time);
    assert.deepEqual([seal.isFirstUse('a'), seal.isFirstUse('a')], [true, false]);
    for (let n = 1; n < 10_000; n++) assert.ok(seal.isFirstUse(`${n}`));
    assert.equal(seal.isFirstUse('one more'), false, 'no room: it does not count');
    time = 11 * 60_000;
    assert.equal(seal.isFirstUse('one more'), true);
  },

  async 'a state expires'({ Seal }) {
    let time = 0;
    const seal = new Seal(Buffer.alloc(32, 1), () => time);
    const of = { method: 'tools/call', params: { name: 'x', arguments: {} } };
    const state = seal.close({ answers: {}, asked: {} }, of);
    time = 5 * 60_000;
    assert.deepEqual({ ...seal.open(state, of), nonce: '' }, { answers: {}, asked: {}, nonce: '' });
    time = 24 * 3600_000;
    assert.throws(() => seal.open(state, of), /expired/);
  },

  async 'subscriptions: acknowledged first, only what was wanted, each notice with its id; ended by a result'(subject, later) {
    const { port, server, served } = await listening(subject, later);
    const listen = (notifications: Json) => {
      const given = laterRequest('subscriptions/listen', { notifications });
      return stream(port, given).then((opened) => ({ ...opened, id: (given.body as Message).id }));
    };
    const tools = await listen({ toolsListChanged: true, resourceSubscriptions: ['test://text'], unknown: true });
    const prompts = await listen({ promptsListChanged: true });
    await until(() => tools.events().length > 0 && prompts.events().length > 0);
    const own = { [`${META}subscriptionId`]: tools.id };
    assert.deepEqual(tools.events()[0]!.data, {
      jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged',
      params: { notifications: { toolsListChanged: true, resourceSubscriptions: ['test://text'] }, _meta: own },
    });
    server.changed('tools');
    server.changed('resources');
    server.updated('test://text');
    server.updated('test://other');
    server.changed('prompts');
    await until(() => prompts.events().length > 1 && tools.events().length > 2);
    assert.deepEqual(prompts.events().map(({ data }) => data.method), ['notifications/subscriptions/acknowledged', 'notifications/prompts/list_changed']);
    assert.deepEqual(tools.events().slice(1).map(({ data }) => [data.method, data.params]), [
      ['notifications/tools/list_changed', { _meta: own }], ['notifications/resources/updated', { uri: 'test://text', _meta: own }],
    ]);
    prompts.leave();
    await until(() => server.listeners === 1);
    await served.close();
    await until(() => tools.seen.isOver);
    assert.deepEqual([tools.events().at(-1)!.data.id, tools.events().at(-1)!.data.result.resultType], [tools.id, 'complete']);
  },

  async 'tasks: the work goes on, and the client looks'(subject, later) {
    const { port, release, aborted } = await listening(subject, later);
    const knows = { capabilities: { extensions: { [`${META}tasks`]: {} } } };
    const begun = (await send(port, laterCall('slow', {}, knows))).body.result;
    assert.deepEqual([begun.resultType, begun.status], ['task', 'working']);
    const on = (method: string, taskId = begun.taskId) => send(port, laterRequest(method, { taskId }, knows));
    assert.equal((await on('tasks/get')).body.result.status, 'working');
    release();
    let got = (await on('tasks/get')).body.result;
    while (got.status === 'working') got = (await on('tasks/get')).body.result;
    assert.deepEqual([got.status, got.result.content[0].text, got.resultType], ['completed', 'slowly', 'complete']);
    assert.equal((await on('tasks/get', 'made-up')).body.error.code, -32602);
    assert.equal((await send(port, laterRequest('tasks/get', { taskId: begun.taskId }))).body.error.code, -32021);
    const second = (await send(port, laterCall('slow', {}, knows))).body.result;
    assert.equal((await on('tasks/cancel', second.taskId)).body.result.resultType, 'complete');
    assert.equal((await on('tasks/get', second.taskId)).body.result.status, 'cancelled');
    assert.equal(aborted(), 1);
  },

  async 'a token: without it 401, except for /health; and none may listen to the world without one'(subject, later) {
    const { port } = await listening(subject, later, { token: 'sesame' });
    const status = async (authorization?: string) => (await send(port, { body: hello(), headers: { authorization } })).status;
    assert.deepEqual([await status(), await status('Bearer open'), await status('Basic sesame'), await status('Bearer sesame')], [401, 401, 401, 200]);
    assert.deepEqual([await status('Bearer sesam'), await status('Bearer sesames'), await status('Bearer '), await status('bearer sesame')], [401, 401, 401, 200]);
    assert.match((await send(port, { body: hello() })).headers['www-authenticate'] ?? '', /^Bearer/);
    assert.equal((await send(port, { method: 'GET', path: '/health' })).status, 200);
    for (const host of ['0.0.0.0', '::', '192.168.1.2', 'shelf.example'])
      assert.throws(() => new subject.HttpServer(fixture(subject).server, { host }), /a token is needed/);
    const known = await listening(subject, later, { hostnames: ['Shelf.Example'] });
    assert.equal((await send(known.port, { body: hello(), headers: { host: 'shelf.example:443', origin: 'https://shelf.example' } })).status, 200);
  },

  async 'requests at the same time are bounded; the others are told to come back'(subject, later) {
    const { port, release, aborted } = await listening(subject, later, { maxRunning: 2 });
    const session = await openSession(port);
    const held = [session.send(toolCall('hold', {}, {})), session.send(toolCall('hold'))];
    let busy = await session.send(request('ping'));
    while (busy.status === 200) busy = await session.send(request('ping'));
    assert.deepEqual([busy.status, busy.headers['retry-after']], [503, '1']);
    await send(port, { method: 'DELETE', headers: session.headers });
    await Promise.all(held);
    assert.equal(aborted(), 2);
    release();
  },

  async 'close() lets what runs come to an end, and takes nothing new'(subject, later) {
    const { port, release, served } = await listening(subject, later, { graceMs: 20_000 });
    const session = await openSession(port);
    const talk = await stream(port, { body: toolCall('talk', {}, { _meta: { progressToken: 1 } }), headers: session.headers });
    await until(() => talk.said(({ params }) => params?.progress === 2));
    const closed = served.close();
    await assert.rejects(send(port, { method: 'GET', path: '/health' }));
    release();
    await until(() => talk.said(({ result }) => result?.content[0].text === 'talked'));
    await closed;
  },

  async 'a pipe: work before initialize is refused, a second initialize too; ping is always answered'(subject, later) {
    const { ask } = await piped(subject, later);
    assert.deepEqual((await ask(request('ping', undefined, 0))).result, {});
    const early = (await ask(toolCall('echo'))).error;
    assert.deepEqual([early.code, /^Not initialized/.test(early.message)], [-32600, true]);
    assert.equal((await ask(hello())).result.protocolVersion, LATEST);
    assert.deepEqual((await ask(hello())).error, { code: -32600, message: 'Already initialized' });
    assert.equal((await ask(toolCall('echo'))).result.content[0].text, '{}');
  },

  async 'a pipe: both eras at once, as our client opens'(subject, later) {
    const { ask } = await piped(subject, later);
    assert.deepEqual((await ask(request('server/discover', meta()))).result.supportedVersions, [SINCE]);
    assert.equal((await ask(request('initialize', { protocolVersion: LATEST, ...meta() }))).error.code, -32601);
    assert.equal((await ask(toolCall('echo', {}, meta()))).result.resultType, 'complete');
    assert.equal((await ask(hello())).result.protocolVersion, LATEST);
    assert.equal((await ask(toolCall('echo'))).result.resultType, undefined);
  },

  async 'a pipe: what is not JSON or not a message gets an answer with the id null'(subject, later) {
    const { say, heard, ask } = await piped(subject, later);
    await say('not json');
    await say([]);
    await say({ jsonrpc: '2.0', id: null, method: 'ping' });
    await say([request('ping')]);
    await ask(request('ping', undefined, 'last'));
    assert.deepEqual(heard.slice(0, 4).map(({ id, error }) => [id, error?.code]), [[null, -32700], [null, -32600], [null, -32600], [null, -32600]]);
  },

  async 'a pipe: calls run side by side, and a cancelled one gets no answer'(subject, later) {
    const { ask, say, heard, aborted } = await piped(subject, later);
    await ask(hello());
    const held = toolCall('hold');
    await say(held);
    assert.equal((await ask(toolCall('echo'))).result.content[0].text, '{}');
    const again = await ask({ ...toolCall('echo'), id: held.id });
    assert.equal(again.error.code, -32600, 'its id is in use');
    await say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: held.id } });
    await until(() => aborted() === 1);
    await ask(request('ping'));
    assert.equal(heard.filter(({ id, result }) => id === held.id && result).length, 0);
  },

  async 'a pipe: requests, watched resources and subscriptions are bounded'(subject, later) {
    const { ask, say, heard, server } = await piped(subject, later);
    await ask(hello());
    for (let n = 0; n < 1000; n++) await say(request('resources/subscribe', { uri: `test://${n}` }));
    assert.equal((await ask(request('resources/subscribe', { uri: 'test://more' }))).error.code, -32603);
    const listen = () => request('subscriptions/listen', { notifications: { toolsListChanged: true }, ...meta() });
    for (let n = 0; n < 1000; n++) await say(listen());
    await until(() => server.listeners === 1000);
    assert.equal((await ask(request('ping'))).error.code, -32603, 'too many at once');
    const [ours, theirs] = linkedPair();
    const second: any[] = [];
    await ours.start({ message: (message) => second.push(message), closed: () => {} });
    subject.overPipe(server)(theirs);
    for (let n = 0; n < 25; n++) await ours.send(listen() as Message);
    await until(() => second.some(({ error }) => error?.code === -32603));
    assert.equal(server.listeners, 1024);
    await ours.close();
    assert.ok(heard.length > 2000);
  },

  async 'a pipe: subscriptions share it, by their ids; and what runs stops when the client leaves'(subject, later) {
    const { ask, say, heard, server, ours, aborted } = await piped(subject, later);
    await ask(hello());
    const listen = request('subscriptions/listen', { notifications: { toolsListChanged: true }, ...meta() });
    await say(listen);
    await until(() => heard.some(({ method }) => method === 'notifications/subscriptions/acknowledged'));
    server.changed('tools');
    await until(() => heard.some(({ params }) => params?._meta?.[`${META}subscriptionId`] === listen.id));
    await say(toolCall('hold'));
    await ask(request('ping'));
    await ours.close();
    await until(() => aborted() === 1 && server.listeners === 0 && server.sessions.size === 0);
  },
};
