// A server with something of everything, and how to speak to it by raw HTTP and raw lines: nothing here is our client.

import assert from 'node:assert/strict';
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import type { Json, Message } from '../../mcp.ts';
import { RpcError } from '../../mcp.ts';
import { linkedPair } from '../../chapters/25-other-pipes/in-process.ts';
import type * as http from '../../chapters/29-a-server/serve-http.ts';
import type * as offers from '../../chapters/29-a-server/protocol/server-rows.ts';
import type * as pipe from '../../chapters/29-a-server/pipe.ts';
import type * as seal from '../../chapters/29-a-server/request-state.ts';
import type * as server from '../../chapters/29-a-server/server.ts';
import { until } from './basics.ts';

/** The server under test: the modules of chapter 29. */
export type Subject = typeof http & typeof pipe & typeof seal & typeof server;
export type Case = (subject: Subject, later: (clean: () => unknown) => void) => Promise<void>;

export const META = 'io.modelcontextprotocol/';
export const LATEST = '2025-11-25';
export const SINCE = '2026-07-28';
const string = { type: 'string' };

// ─── A server with something of everything ────────────────────────────────────────────────────────────────────

type Fixture = {
  server: server.McpServer;
  log: string[];
  release: () => void;
  aborted: () => number;
};

export function fixture(
  { McpServer }: Subject,
  options: Partial<server.ServerOptions> = {},
): Fixture {
  const log: string[] = [];
  let release = () => {};
  let aborted = 0;
  const held = (signal: AbortSignal) =>
    new Promise<void>((done, fail) => {
      release = done;
      signal.addEventListener('abort', () => (aborted++, fail(signal.reason)), { once: true });
    });
  const tool = (
    name: string,
    run: offers.ServerTool['run'],
    inputSchema?: Json,
  ): offers.ServerTool => ({ name, description: name, inputSchema, run });
  const form = {
    type: 'object',
    properties: { allow: { type: 'boolean', default: false } },
    required: ['allow'],
  };
  const tools = [
    tool('echo', (args) => JSON.stringify(args)),
    tool('add', ({ a, b }) => `${Number(a) + Number(b)}`, {
      type: 'object',
      properties: { a: { type: 'number' }, b: { type: 'number' } },
      required: ['a', 'b'],
    }),
    tool('region', ({ region }) => `${region}`, {
      type: 'object',
      properties: {
        region: { ...string, 'x-mcp-header': 'Region' },
        count: { type: 'integer', 'x-mcp-header': 'Count' },
      },
    }),
    tool('boom', () => {
      throw new Error('it broke');
    }),
    tool('refuse', () => {
      throw new RpcError(-32602, 'not these', { why: 1 });
    }),
    tool('hold', async (_, { signal, progress: __ }) => {
      await held(signal);
      return 'released';
    }),
    tool('talk', async (_, c) => {
      c.progress(1, 3, 'begun');
      c.progress(1, 3, 'again'); // does not go forward
      c.progress(2);
      for (const level of ['debug', 'info', 'error']) c.log(level, `a ${level}`);
      await held(c.signal);
      return 'talked';
    }),
    tool('hang-up', async (_, c) => {
      c.hangUp();
      await held(c.signal);
      return 'later';
    }),
    tool(
      'name',
      async (_, c) =>
        `Hello, ${JSON.stringify((await c.ask({ name: { method: 'elicitation/create', params: { message: 'Name?', requestedSchema: { type: 'object', properties: { name: string } } } } })).name)}`,
    ),
    tool('permit', async ({ what }, c) => {
      log.push(`permit ${what}`);
      const { action, content } = await c.elicit(`Do ${what}?`, form, { isPermission: true });
      return action === 'accept' && (content as Json).allow === true ? `done ${what}` : 'no';
    }),
    tool('twice', async (_, c) => {
      const one = await c.ask({
        one: { method: 'elicitation/create', params: { message: '1', requestedSchema: form } },
      });
      const two = await c.ask({
        two: { method: 'elicitation/create', params: { message: '2', requestedSchema: form } },
      });
      return JSON.stringify([one.one, two.two]);
    }),
    tool('elicit-twice', async (_, c) => {
      const one = await c.elicit('One?', form);
      const two = await c.elicit('Two?', form);
      return JSON.stringify([one.action, two.action]);
    }),
    tool('permit-then-name', async (_, c) => {
      const { action } = await c.elicit('Do it?', form, { isPermission: true });
      const { name } = await c.ask({
        name: { method: 'elicitation/create', params: { message: 'Name?', requestedSchema: form } },
      });
      return `${action} ${name!.action}`;
    }),
    tool('moving', async (_, c) => {
      const { action } = await c.elicit(`The ${log.push('moving')}th time?`, form, {
        isPermission: true,
      });
      return action as string;
    }),
    tool('moves-later', async (_, c) => {
      const isLater = log.push('moves') > 2;
      const { action } = await c.elicit(isLater ? 'Delete all?' : 'Delete one?', form, {
        isPermission: true,
      });
      await c.ask({
        name: { method: 'elicitation/create', params: { message: 'Name?', requestedSchema: form } },
      });
      return action as string;
    }),
    tool('say', (_, c) => (c.log('error', 'said'), 'said')),
    tool('afterwards', (_, c) => {
      setImmediate(
        () => (c.progress(1), c.log('error', 'late'), c.hangUp(), log.push('afterwards')),
      );
      return 'over';
    }),
    tool('need', (_, c) => (c.need({ sampling: {} }), 'it can')),
    tool('structured', () => ({ structuredContent: { sum: 42 } })),
    tool('slow', (_, c) =>
      c.inBackground(async (later) => {
        await held(later.signal);
        return 'slowly';
      }),
    ),
  ];
  const made = new McpServer({
    name: 'fixture',
    version: '1.0.0',
    instructions: 'Be kind.',
    tools,
    tasks: true,
    resources: [
      { uri: 'test://text', name: 'text', mimeType: 'text/plain', read: () => 'words' },
      {
        uri: 'test://broken',
        name: 'broken',
        read: () => {
          throw new Error('at /home/secret/file.ts:1');
        },
      },
    ],
    templates: [
      {
        uriTemplate: 'test://item/{id}/{+path}',
        name: 'item',
        read: ({ id, path }) => (id === 'none' ? undefined : `${id}:${path}`),
        complete: { id: (value) => Array.from({ length: 150 }, (_, n) => `${value}${n}`) },
      },
    ],
    prompts: [
      {
        name: 'hello',
        description: 'Hello',
        arguments: [{ name: 'who', required: true, complete: (value) => [`${value}!`] }],
        get: ({ who }) => `Hello, ${who}`,
      },
    ],
    onError: (what, error) => log.push(`${what}: ${error}`),
    ...options,
  });
  return { server: made, log, release: () => release(), aborted: () => aborted };
}

// ─── Raw HTTP ─────────────────────────────────────────────────────────────────────────────────────────────────

type Answer = { status: number; headers: IncomingHttpHeaders; text: string; body: any };
export type Given = {
  method?: string;
  path?: string;
  headers?: Record<string, string | undefined>;
  body?: unknown;
};

const PLAIN = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
};

function begin(
  port: number,
  { method = 'POST', path = '/mcp', headers = {}, body }: Given,
): Promise<IncomingMessage> {
  const all = { host: `127.0.0.1:${port}`, ...PLAIN, ...headers };
  const kept = Object.fromEntries(
    Object.entries(all).filter(([, value]) => value !== undefined),
  ) as Record<string, string>;
  return new Promise((done, fail) => {
    const request = httpRequest(
      { host: '127.0.0.1', port, method, path, headers: kept, agent: false },
      done,
    );
    request.on('error', fail);
    request.end(
      body === undefined || typeof body === 'string' || Buffer.isBuffer(body)
        ? (body as string)
        : JSON.stringify(body),
    );
  });
}

export async function send(port: number, given: Given): Promise<Answer> {
  const response = await begin(port, given);
  let text = '';
  response.setEncoding('utf8').on('data', (chunk) => (text += chunk));
  await new Promise((done) => response.on('close', done));
  const isJson = /json/.test(response.headers['content-type'] ?? '');
  return {
    status: response.statusCode!,
    headers: response.headers,
    text,
    body: isJson ? JSON.parse(text) : eventsIn(text).at(-1)?.data,
  };
}

export type Event = { id?: string; retry?: string; data?: any };
export function eventsIn(text: string): Event[] {
  return text
    .split('\n\n')
    .filter((block) => block && !block.startsWith(':'))
    .map((block) => {
      const field = (name: string) => new RegExp(`^${name}: ?(.*)$`, 'm').exec(block)?.[1];
      const data = field('data');
      return { id: field('id'), retry: field('retry'), ...(data && { data: JSON.parse(data) }) };
    });
}

/** A stream that stays open. */
export async function stream(port: number, given: Given) {
  const response = await begin(port, given);
  const seen = { text: '', isOver: false };
  response.setEncoding('utf8').on('data', (chunk) => (seen.text += chunk));
  response.on('error', () => {});
  response.on('close', () => (seen.isOver = true));
  const events = () => eventsIn(seen.text);
  const said = (what: (message: any) => unknown) =>
    events()
      .map(({ data }) => data)
      .find((data) => data && what(data));
  return {
    response,
    seen,
    events,
    said,
    status: response.statusCode,
    headers: response.headers,
    leave: () => response.destroy(),
  };
}

export let lastId = 0; // of what was requested
export const request = (method: string, params?: Json, id: number | string = ++lastId) => ({
  jsonrpc: '2.0',
  id,
  method,
  ...(params && { params }),
});
export const toolCall = (name: string, args: Json = {}, more: Json = {}) =>
  request('tools/call', { name, arguments: args, ...more });
export const hello = (protocolVersion = LATEST, capabilities: Json = {}) =>
  request('initialize', {
    protocolVersion,
    capabilities,
    clientInfo: { name: 'raw', version: '1' },
  });

/** A session of the handshake era. */
export async function openSession(port: number, version = LATEST, capabilities: Json = {}) {
  const { status, headers, body } = await send(port, { body: hello(version, capabilities) });
  assert.equal(status, 200);
  const id = headers['mcp-session-id'] as string;
  assert.match(id ?? '', /^[\x21-\x7e]+$/, 'a session id is given');
  const own = { 'mcp-session-id': id, 'mcp-protocol-version': version };
  return {
    id,
    body,
    headers: own,
    send: (message: unknown, more = {}) =>
      send(port, { body: message, headers: { ...own, ...more } }),
  };
}

type LaterOptions = {
  capabilities?: Json;
  meta?: Json;
  headers?: Record<string, string | undefined>;
};
/** A request of the stateless era, with the headers that belong to it. */
export function laterRequest(
  method: string,
  params: Json = {},
  { capabilities = {}, meta = {}, headers = {} }: LaterOptions = {},
): Given {
  const _meta = {
    [`${META}protocolVersion`]: SINCE,
    [`${META}clientCapabilities`]: capabilities,
    ...meta,
  };
  const name = params.name ?? params.uri ?? params.taskId;
  const mirrors = {
    'mcp-protocol-version': SINCE,
    'mcp-method': method,
    ...(name !== undefined && { 'mcp-name': `${name}` }),
  };
  return { body: request(method, { ...params, _meta }), headers: { ...mirrors, ...headers } };
}
export const laterCall = (
  name: string,
  args: Json = {},
  options: LaterOptions = {},
  more: Json = {},
) => laterRequest('tools/call', { name, arguments: args, ...more }, options);
export const asks = { capabilities: { elicitation: {} } };
export const textOf = (answer: Answer) => answer.body.result.content[0].text;

export async function listening(
  subject: Subject,
  later: (clean: () => unknown) => void,
  options: http.HttpOptions = {},
  more: Partial<server.ServerOptions> = {},
) {
  const fixed = fixture(subject, more);
  const served = await subject.serveHttp(fixed.server, { graceMs: 100, ...options });
  later(() => served.close());
  return { ...fixed, served, port: served.port };
}

// ─── Raw lines ────────────────────────────────────────────────────────────────────────────────────────────────

export async function piped(
  subject: Subject,
  later: (clean: () => unknown) => void,
  options: Partial<server.ServerOptions> = {},
) {
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

export const meta = () => ({
  _meta: { [`${META}protocolVersion`]: SINCE, [`${META}clientCapabilities`]: {} },
});
