// Chapter 20: HTTP+SSE, as it was in 2024, and how such a server is found.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { httpTransports } from '../chapters/20-streamable-http/http.ts';
import { McpConnection } from '../mcp.ts';
import { call, cleanUp, later, plugged, rejection, run, until } from './help/basics.ts';
import {
  answer,
  ask,
  calculator,
  event,
  json,
  nobody,
  note,
  openTo,
  peer,
  said,
  serve,
  stream,
  transportTo,
  whole,
  type Asked,
} from './help/http-servers.ts';

afterEach(cleanUp);

/** A server of 2024: `endpoint` is what it names as the address for messages. */
function old(
  endpoint: (url: string) => string,
  {
    refusal = 405,
    ways = {} as Record<string, (given: Asked, say: (message: unknown) => void) => unknown>,
  } = {},
) {
  let listening: Asked;
  const say = (message: unknown) =>
    void listening.response.write(event(message, { event: 'message' }));
  const all: typeof ways = {
    initialize: ({ body }) =>
      say(answer(body, { protocolVersion: '2024-11-05', capabilities: { tools: {} } })),
    'tools/call': (given) => say(said(given, 'from 2024')),
    ...ways,
  };
  return serve((given, response) => {
    if (given.verb === 'GET')
      return void stream(
        (listening = given).response,
        event(endpoint(`http://${given.headers.host}`), { event: 'endpoint' }),
      );
    if (!given.path.startsWith('/messages'))
      return void response.writeHead(refusal).end('Cannot POST');
    const result = all[given.body.method ?? 'answer']?.(given, say);
    if (!response.headersSent && result !== 'silence') response.writeHead(202).end('Accepted');
    return undefined;
  });
}

test('the calculator of 2024 is found and answers, asks and tells', async () => {
  const { url } = await calculator('sse');
  const changes: unknown[] = [];
  const { connection, warnings } = await openTo(
    url,
    plugged({
      capabilities: { elicitation: {} },
      handlers: {
        'elicitation/create': () => ({ action: 'decline' }),
        'notifications/tools/list_changed': () => void changes.push(1),
      },
    }),
  );
  assert.equal(await call(connection, 'add', { a: 2, b: 40 }), '42');
  assert.equal(await call(connection, 'confirm'), '{"action":"decline"}');
  await call(connection, 'grow');
  await until(() => changes.length === 1);
  await connection.close();
  assert.deepEqual(warnings, []);
});

test('whoever refuses initialize with 400, 404 or 405 is asked for a stream; the address in it may be relative or whole', async () => {
  const addresses = [
    () => '/messages?s=1',
    () => 'messages?s=1',
    (url: string) => `${url}/messages?s=1`,
  ];
  for (const [n, refusal] of [400, 404, 405].entries()) {
    const { url, log } = await old(addresses[n]!, { refusal });
    const { connection, warnings } = await openTo(
      url,
      {},
      { headers: { authorization: 'Bearer t' } },
    );
    assert.equal(connection.server!.protocolVersion, '2024-11-05');
    assert.equal(await call(connection, 'x'), 'from 2024');
    assert.deepEqual(
      log.slice(0, 3).map(({ verb, path }) => `${verb} ${path}`),
      ['POST /mcp', 'GET /mcp', 'POST /messages?s=1'],
    );
    for (const { verb, headers } of log) {
      assert.deepEqual(
        [headers.authorization, headers['mcp-protocol-version'], headers['mcp-session-id']],
        ['Bearer t', undefined, undefined],
        verb,
      );
      if (verb === 'POST') assert.equal(headers['content-type'], 'application/json');
    }
    await connection.close();
    assert.ok(
      log.find(({ verb }) => verb === 'GET')!.isOver ||
        (await until(() => log.every(({ isOver }) => isOver)), true),
    );
    assert.deepEqual(warnings, []);
  }
});

test('an address at another server is refused, and that one receives nothing', async () => {
  const other = await peer();
  for (const address of [
    other.url,
    `//127.0.0.1:${other.port}/`,
    `http://localhost:${other.port}/`,
    'http://[',
    'javascript:1',
    'file:///x',
  ]) {
    const { url, asked } = await old(() => address);
    const error = await rejection(openTo(url, {}, { headers: { authorization: 'Bearer secret' } }));
    assert.match(error.message, /HTTP 405/);
    await until(() => asked('GET')[0]!.isOver);
  }
  assert.deepEqual(other.log, []);
});

test('whoever is no server of 2024 either is reported by what it said to initialize', async () => {
  const refuse = (_: Asked, response: any) =>
    json(response, { jsonrpc: '2.0', id: null, error: { code: -32000, message: 'bad host' } }, 400);
  const gets: Record<string, (given: Asked, response: any) => unknown> = {
    'no GET': (_, response) => response.writeHead(405).end(),
    'no stream': (_, response) =>
      response.writeHead(200, { 'content-type': 'text/html' }).end('<p>Hello</p>'),
    'a stream that ends': (_, response) => whole(response, ': hello\n\n'),
    'a stream of other things': (_, response) =>
      void stream(response, event(note('notifications/message'))),
    'an empty stream': (_, response) => void stream(response),
    'no headers': () => {},
  };
  await Promise.all(
    Object.entries(gets).map(async ([what, GET]) => {
      const { url, asked } = await peer({ initialize: refuse, GET });
      const error = await rejection(openTo(url));
      assert.match(error.message, /bad host/, what);
      await until(() => asked('GET').every(({ isOver }) => isOver), `the end of ${what}`);
    }),
  );
});

test('a refusal that only the later era knows is no reason to look for a server of 2024', async () => {
  for (const code of [-32020, -32021, -32022]) {
    const { url, asked } = await peer({
      initialize: ({ body }, response) =>
        json(response, { jsonrpc: '2.0', id: body.id, error: { code, message: 'no' } }, 400),
    });
    assert.equal((await rejection(openTo(url))).code, code);
    assert.equal(asked('GET').length, 0);
  }
});

test('2024: the end of the stream is the end of the connection, told once; a message that cannot be posted fails alone', async () => {
  const { url, asked } = await old(() => '/messages', {
    ways: {
      ping: ({ response }) => response.writeHead(500).end('<title>broken</title>'),
      'tools/list': () => 'silence',
    },
  });
  const ended: Error[] = [];
  const { connection } = await openTo(url, plugged({ closed: (why) => void ended.push(why) }));
  const error = await rejection(connection.request('ping'));
  assert.deepEqual(
    [error.kind, /HTTP 500: "broken"/.test(error.message)],
    ['lost', true],
    error.message,
  );
  assert.equal(await call(connection, 'x'), 'from 2024');
  const waiting = rejection(connection.listTools());
  await until(() => asked('tools/list').length === 1);
  asked('GET')[0]!.response.end();
  assert.deepEqual([(await waiting).kind, ended.length], ['closed', 1]);
  await connection.close();
  assert.equal(ended.length, 1);

  const second = await old(() => '/messages');
  const { transport, ends, call: send } = await transportTo(second.url);
  await send(1, 'initialize');
  second.asked('GET')[0]!.response.end();
  await until(() => ends.length === 1);
  await transport.close();
  assert.equal(ends.length, 1, 'told once');
});

test('whoever knows that a server is one of 2024 can say so: "type": "sse"', async () => {
  const sse = (url: string, options = {}) =>
    openTo(
      url,
      { transports: httpTransports, ...options },
      { type: 'sse', headers: { 'X-Team': 'blue' } },
    );
  const { url, log } = await old(() => '/messages');
  const { connection } = await sse(url);
  assert.equal(await call(connection, 'x'), 'from 2024');
  await connection.close();
  assert.deepEqual(
    [log[0]!.verb, log.every(({ headers }) => headers['x-team'] === 'blue')],
    ['GET', true],
  );
  await until(() => log[0]!.isOver);

  const other = await peer();
  const cases: [string, RegExp, (given: Asked, response: any) => unknown][] = [
    [
      'protocol',
      /somebody else/,
      (_, response) => void stream(response, event(other.url, { event: 'endpoint' })),
    ],
    ['start', /no stream of events \(HTTP 404\)/, (_, response) => response.writeHead(404).end()],
    ['auth', /wants a login \(HTTP 401\)/, (_, response) => response.writeHead(401).end()],
    [
      'auth',
      /refuses us \(HTTP 403\): "no entry"/,
      (_, response) => response.writeHead(403).end('no entry'),
    ],
    ['start', /before it named an address/, (_, response) => whole(response, ': hello\n\n')],
    ['start', /named no address within 5 s/, (_, response) => void stream(response, ': hello\n\n')],
    ['start', /named no address within 5 s/, () => {}],
  ];
  await Promise.all(
    cases.map(async ([kind, message, GET]) => {
      const { url, asked } = await peer({ GET });
      const error = await rejection(sse(url));
      assert.equal(error.kind, kind, error.message);
      assert.match(error.message, message);
      await until(() => asked('GET')[0]!.isOver, 'the end of its stream');
    }),
  );
  assert.equal((await rejection(sse(await nobody()))).kind, 'unreachable');
  assert.deepEqual(other.log, []);
  for (const type of ['http', 'streamable-http'])
    assert.equal(
      await call(
        (await openTo(other.url, { transports: httpTransports }, { type })).connection,
        'x',
      ),
      '{}',
    );
});

test('2024: too much on the stream ends it, and noise does not', async () => {
  const { url, asked } = await old(() => '/messages');
  const ended: any[] = [];
  const { connection, wire } = await openTo(
    url,
    plugged({ closed: (why) => void ended.push(why) }, { maxLineBytes: 2 ** 20 }),
  );
  asked('GET')[0]!.response.write(event('noise') + event(ask('q', 'ping'), { event: 'other' }));
  assert.equal(await call(connection, 'x'), 'from 2024');
  assert.ok(
    !wire.some(([, message]) => message.id === 'q'),
    'an event of another name is not for us',
  );
  asked('GET')[0]!.response.write(event('x'.repeat(3e6)));
  await until(() => ended.length === 1);
  assert.equal(ended[0].kind, 'limit');
  await until(() => asked('GET')[0]!.isOver);
});

test('an entry with an address and no type is HTTP, with the fallback to the transport of 2024', async () => {
  for (const { url } of [await peer({}), await old(() => '/messages')]) {
    const connection = new McpConnection('demo', { url }, { transports: httpTransports });
    later(() => connection.close());
    await connection.connect();
    assert.equal(typeof (await connection.initialize()).protocolVersion, 'string');
  }
});

test('B5: on a stream for all, a message that is nested too deeply is dropped and reported; what comes after it is heard', async () => {
  const ways = [
    ['2024', await old(() => '/messages')],
    ['the stream to listen on', await peer({ GET: (_, response) => void stream(response) })],
  ] as const;
  for (const [way, { url, asked }] of ways) {
    const { transport, messages, drops, ends, call: send } = await transportTo(url);
    await send(1, 'initialize');
    if (transport.hasStreamPerRequest)
      await transport.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
    await until(() => asked('GET').length === 1);
    await until(() => messages.length === 1);
    asked('GET')[0]!.response.write(
      event(` ${'['.repeat(100_000)}`) + event('noise') + event(note('notifications/message')),
    );
    await until(() => messages.length === 3);
    assert.deepEqual(messages.slice(1), ['noise', note('notifications/message')], way);
    assert.deepEqual(
      drops.map(({ kind }) => kind),
      ['limit'],
      way,
    );
    assert.match(
      drops[0].message,
      /^MCP server "demo" .* sent a message with more than 500 levels, which is dropped$/,
    );
    assert.deepEqual([ends.length, asked('GET').length], [0, 1], way);
  }
});

test('each request has a stream of its own, until a server turns out to be one of 2024', async () => {
  const today = await transportTo((await peer()).url);
  await today.call(1, 'initialize');
  assert.equal(today.transport.hasStreamPerRequest, true);
  const before = await transportTo((await old(() => '/messages')).url);
  assert.equal(before.transport.hasStreamPerRequest, true, 'as far as we know');
  await before.call(1, 'initialize');
  assert.equal(before.transport.hasStreamPerRequest, false);
});

test('a time limit holds although nobody remembers it but the one who waits', async () => {
  assert.equal((await run('limited.ts').ended).code, 0);
});
