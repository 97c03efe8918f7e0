// Chapter 20: Streamable HTTP against servers that do it in every way: what goes out, what comes
// back, sessions.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { call, cleanUp, pause, plugged, rejection, until } from './help/basics.ts';
import {
  answer,
  ask,
  bare,
  calculator,
  event,
  json,
  note,
  openTo,
  peer,
  said,
  stream,
  text,
  whole,
  type Asked,
} from './help/http-servers.ts';

afterEach(cleanUp);

// ─── What goes out ────────────────────────────────────────────────────────────────────────────────────────────

test('the calculator answers over HTTP: as JSON and as a stream, with a session and without', async () => {
  for (const flags of [[], ['--json'], ['--sessions'], ['--sessions', '--json']]) {
    const { url, end } = await calculator('http', '--era', 'legacy', ...flags);
    const { connection, warnings } = await openTo(url);
    assert.equal((await connection.listTools()).length, 7, `${flags}`);
    assert.equal(await call(connection, 'add', { a: 2, b: 40 }), '42', `${flags}`);
    await connection.close();
    assert.deepEqual(warnings, []);
    await end();
  }
});

test('every message is one POST that takes both kinds of answer; the headers of the configuration go along, whatever their case', async () => {
  const { url, log } = await peer(
    { GET: (_, response) => void stream(response) },
    { session: 's' },
  );
  const headers = {
    'X-Team': 'blue',
    AUTHORIZATION: 'Bearer t',
    Accept: 'text/plain',
    'content-TYPE': 'text/plain',
  };
  const { connection } = await openTo(url, {}, { headers });
  await connection.request('ping');
  await connection.close();
  assert.deepEqual(log.map(({ verb }) => verb).sort(), ['DELETE', 'GET', 'POST', 'POST', 'POST']);
  for (const { verb, headers, path } of log) {
    assert.deepEqual(
      [headers['x-team'], headers.authorization, path],
      ['blue', 'Bearer t', '/mcp'],
      verb,
    );
    if (verb === 'POST') assert.equal(headers['content-type'], 'application/json');
    if (verb === 'POST') assert.equal(headers.accept, 'application/json, text/event-stream');
    if (verb === 'GET') assert.equal(headers.accept, 'text/event-stream');
  }
});

test('the header with the revision comes after the handshake, names the negotiated one, and did not exist before 2025-06-18', async () => {
  for (const [version, expected] of [
    ['2025-11-25', '2025-11-25'],
    ['2025-06-18', '2025-06-18'],
    ['2025-03-26', undefined],
  ]) {
    const { url, asked, log } = await peer({}, { version: version!, session: 's' });
    const { connection } = await openTo(url);
    await connection.request('ping');
    await connection.close();
    assert.equal(asked('initialize')[0]!.headers['mcp-protocol-version'], undefined);
    for (const { verb, headers, body } of log.slice(1))
      assert.equal(headers['mcp-protocol-version'], expected, `${verb} ${body?.method}`);
  }
});

test('a request waits until the server has taken the last word of the handshake, and we listen', async () => {
  const order: string[] = [];
  const { url } = await peer({
    GET: async (_, response) => (
      await pause(100), order.push('GET'), response.writeHead(405).end()
    ),
    'notifications/initialized': async (_, response) => (
      await pause(100), order.push('initialized'), response.writeHead(202).end()
    ),
    ping: () => (order.push('ping'), {}),
  });
  const { connection } = await openTo(url);
  await connection.request('ping');
  assert.deepEqual(order, ['initialized', 'GET', 'ping']);
});

test('a server that never answers the last word of the handshake, nor a GET, still gets our requests', async () => {
  const { url, asked } = await peer({ GET: () => {} });
  const { connection } = await openTo(url);
  await connection.request('ping'); // the GET has no headers yet
  assert.equal(asked('GET').length, 1);
  const silent = await peer({ 'notifications/initialized': () => {} });
  const { connection: other } = await openTo(silent.url);
  await other.request('ping');
});

// ─── What comes back ──────────────────────────────────────────────────────────────────────────────────────────

test('an answer may stand among other events of its stream: notices, questions, answers to others', async () => {
  const { url, asked } = await peer({
    'tools/call': (given, response) => {
      const { progressToken } = given.body.params._meta;
      whole(
        response,
        event(note('notifications/progress', { progressToken, progress: 1 })),
        event(ask(1, 'ping')),
        event(ask('q', 'roots/list')),
        event(said(given)),
        event(note('notifications/message', { data: 'after it' })),
      );
    },
  });
  const told: unknown[] = [];
  const { connection, warnings } = await openTo(
    url,
    plugged({ handlers: { 'notifications/message': ({ data }) => void told.push(data) } }),
  );
  const progress: unknown[] = [];
  assert.equal(
    await call(connection, 'x', {}, { onProgress: (each) => progress.push(each.progress) }),
    'said',
  );
  await until(() => told.length === 1);
  assert.deepEqual([progress, told], [[1], ['after it']]);
  // Our answers are POSTs of their own. The id of their ping is one of ours, and that does not matter.
  const answers = () =>
    asked('POST')
      .map(({ body }) => body)
      .filter(({ method }) => method === undefined);
  await until(() => answers().length === 2);
  const byId = new Map(answers().map((each) => [each.id, each]));
  assert.deepEqual(byId.get(1), { jsonrpc: '2.0', id: 1, result: {} });
  assert.equal(byId.get('q').error.code, -32601);
  assert.deepEqual(warnings, []);
});

test('what comes on the stream to listen on is heard and answered, also before the first call', async () => {
  const { url, asked } = await peer(
    {
      GET: (_, response) =>
        void stream(
          response,
          event(ask('q', 'elicitation/create', { message: 'Sure?' })),
          event(note('notifications/tools/list_changed')),
        ),
    },
    { session: 's-1' },
  );
  const changes: unknown[] = [];
  await openTo(
    url,
    plugged({
      capabilities: { elicitation: {} },
      handlers: {
        'elicitation/create': () => ({ action: 'accept' }),
        'notifications/tools/list_changed': () => void changes.push(1),
      },
    }),
  );
  await until(() => asked('POST').some(({ body }) => body.id === 'q') && changes.length === 1);
  const { body, headers } = asked('POST').find(({ body }) => body.id === 'q')!;
  assert.deepEqual([body.result, headers['mcp-session-id']], [{ action: 'accept' }, 's-1']);
});

test('before 2026 an answer may come on the stream to listen on, and its own stream is then not waited for', async () => {
  let listening: Asked | undefined;
  const { url, asked } = await peer({
    GET: (given, response) => void ((listening = given), stream(response)),
    'tools/call': (given, response) =>
      void (stream(response), listening!.response.write(event(said(given, 'from elsewhere')))),
    'tools/list': (given, response) =>
      void (response.writeHead(202).end(),
      listening!.response.write(event(answer(given.body, { tools: [] })))),
  });
  const { connection } = await openTo(url);
  assert.equal(await call(connection, 'x'), 'from elsewhere');
  assert.deepEqual(await connection.listTools(), []); // 202: it will come, but not here
  await until(() => asked('tools/call')[0]!.isOver); // we have hung up
});

test('whatever a server says to a notification, and to our answers, is fine: 202, 204, 200, a body, even a stream', async () => {
  const ways = [
    [202, ''],
    [204, ''],
    [200, ''],
    [200, 'accepted'],
    [200, '{}'],
  ] as const;
  for (const [status, words] of ways) {
    const { url, asked } = await peer({
      'notifications/initialized': (_, response) => void response.writeHead(status).end(words),
      GET: (_, response) => void stream(response, event(ask(7, 'ping'))),
      answer: (_, response) => void response.writeHead(status).end(words),
    });
    const { connection, warnings } = await openTo(url);
    await connection.notify('notifications/roots/list_changed');
    await until(() => asked('POST').some(({ body }) => body.id === 7));
    assert.equal(await call(connection, 'x'), '{}');
    assert.deepEqual(warnings, []);
  }
  const { url } = await peer({
    'notifications/initialized': (_, response) => void stream(response, ': hello\n\n'),
  });
  const { connection } = await openTo(url);
  assert.equal(await call(connection, 'x'), '{}');
});

test('a notification that is refused is an error for whoever sent it', async () => {
  const { url } = await peer(
    { 'notifications/x': (_, response) => response.writeHead(404).end() },
    { session: 's' },
  );
  const { connection } = await openTo(url);
  assert.equal((await rejection(connection.notify('notifications/x'))).kind, 'expired');
  await connection.notify('notifications/y');
});

test('a server without a stream to listen on may say so in any way', async () => {
  await Promise.all(
    [200, 204, 400, 401, 404, 405, 500].map(async (status) => {
      const { url, asked } = await peer({
        GET: (_, response) =>
          void response.writeHead(status, { 'content-type': 'text/html' }).end('no'),
      });
      const { connection, warnings } = await openTo(url);
      await connection.request('ping');
      await pause(1500); // in which it might be asked again
      assert.equal(asked('GET').length, 1, `${status}: asked once`);
      assert.deepEqual(warnings, []);
    }),
  );
});

test('a stream to listen on that ends is opened again, from the last event on', async () => {
  let times = 0;
  const { url, asked } = await peer({
    GET: (_, response) => {
      const first = event(note('notifications/message', { data: 1 }), { id: 'e-1', retry: 10 });
      const second = event(note('notifications/message', { data: 2 }), { id: 'e-2' });
      times++ === 0 ? whole(response, first) : stream(response, second);
    },
  });
  const told: unknown[] = [];
  await openTo(
    url,
    plugged({ handlers: { 'notifications/message': ({ data }) => void told.push(data) } }),
  );
  await until(() => told.length === 2);
  assert.deepEqual(
    asked('GET').map(({ headers }) => headers['last-event-id']),
    [undefined, 'e-1'],
  );
});

test('a batch is taken from the one revision that has batches, in a body and in an event', async () => {
  const batch = (given: Asked) => [
    note('notifications/message', { data: 1 }),
    said(given, 'in a batch'),
  ];
  for (const way of ['body', 'event']) {
    const { url } = await peer(
      {
        'tools/call': (given, response) =>
          way === 'body' ? json(response, batch(given)) : whole(response, event(batch(given))),
      },
      { version: '2025-03-26' },
    );
    const told: unknown[] = [];
    const { connection } = await openTo(
      url,
      plugged({ handlers: { 'notifications/message': ({ data }) => void told.push(data) } }),
    );
    assert.equal(await call(connection, 'x'), 'in a batch');
    assert.deepEqual(told, [1]);
  }
});

test('an error without an id is the answer to the request it came back on, whatever its status', async () => {
  for (const status of [200, 400, 404, 500])
    for (const id of [null, undefined, 'server-error']) {
      const { url } = await peer({
        'tools/call': (_, response) =>
          json(
            response,
            { jsonrpc: '2.0', id, error: { code: -32602, message: 'no such tool' } },
            status,
          ),
      });
      const { connection } = await openTo(url);
      const error = await rejection(connection.callTool('x'));
      assert.deepEqual(
        [error.code, error.constructor.name],
        [-32602, 'RpcError'],
        `${status} ${id}`,
      );
    }
});

test('B3: our id as a string is an answer, in a body and in a stream, and keeps the session', async () => {
  const strung = ({ body }: Asked, result: object) => ({
    jsonrpc: '2.0',
    id: `${body.id}`,
    result,
  });
  const opened = { protocolVersion: '2025-11-25', capabilities: { tools: {} } };
  const { url, asked } = await peer({
    initialize: (given, response) =>
      json(response, strung(given, opened), 200, { 'mcp-session-id': 'secret-1' }),
    'tools/call': (given, response) => whole(response, event(strung(given, text('said')))),
  });
  const { connection, warnings } = await openTo(url);
  assert.equal(await call(connection, 'x'), 'said');
  assert.equal(asked('tools/call')[0]!.headers['mcp-session-id'], 'secret-1');
  assert.match(warnings.join(), /answers to id 1 with the string "1"$/);
});

test('a body that holds no answer to its request fails the call at once, not by its limit', async () => {
  for (const [body, said] of [
    [{ jsonrpc: '2.0', id: 99, result: {} }, /"id":99/],
    [{ hello: 1 }, /hello/],
    [[], /\[\]/],
    [7, /7/],
  ] as const) {
    const { url } = await peer({ 'tools/call': (_, response) => json(response, body) });
    const { connection } = await openTo(url, { callTimeoutMs: 1e8 });
    const error = await rejection(connection.callTool('x'));
    assert.equal(error.kind, 'protocol');
    assert.match(error.message, said);
  }
});

test("a refusal of our answer is nobody's answer: not that of our call with the same number", async () => {
  let finish = () => {};
  const { url, asked } = await peer({
    'tools/call': (given, response) => {
      stream(response, event(ask(given.body.id, 'ping')));
      finish = () => response.end(event(said(given)));
    },
    answer: (_, response) =>
      json(
        response,
        { jsonrpc: '2.0', id: null, error: { code: -32000, message: 'who are you?' } },
        400,
      ),
  });
  const { connection } = await openTo(url);
  const called = call(connection, 'x');
  await until(() => asked('POST').some(({ body, isOver }) => body.method === undefined && isOver));
  await connection.request('ping'); // so that the refusal has been read
  finish();
  assert.equal(await called, 'said');
});

// ─── Sessions ─────────────────────────────────────────────────────────────────────────────────────────────────

test('a session id is repeated on everything that follows, and given back in the end', async () => {
  const { url, log } = await peer({}, { session: 'secret-1' });
  const { connection } = await openTo(url);
  await connection.request('ping');
  await connection.close();
  assert.deepEqual(
    log.map(({ verb, body, headers }) => [body?.method ?? verb, headers['mcp-session-id']]),
    [
      ['initialize', undefined],
      ['notifications/initialized', 'secret-1'],
      ['GET', 'secret-1'],
      ['ping', 'secret-1'],
      ['DELETE', 'secret-1'],
    ],
  );
});

test('without a session there is nothing to give back; a server may refuse it, be silent, or be gone', async () => {
  const { url, asked } = await peer();
  await (await openTo(url)).connection.close();
  assert.equal(asked('DELETE').length, 0);
  for (const way of [405, 404, 500, 'silence', 'reset', 'upgrade'] as const) {
    const { url, asked } = await peer(
      {
        DELETE: (_, response) => {
          if (typeof way === 'number') response.writeHead(way).end('no');
          if (way === 'reset') response.socket!.resetAndDestroy();
          if (way === 'upgrade')
            response.socket!.write(
              'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
            );
        },
      },
      { session: 's' },
    );
    const { connection } = await openTo(url);
    const closing = [connection.close(), connection.close()];
    await Promise.all(closing); // else the runner ends this test
    assert.equal(asked('DELETE').length, 1, `${way}`);
    await until(() => asked('DELETE')[0]!.isOver, `the end after ${way}`);
  }
});

test('whoever closes a second time waits for the goodbye, too', async () => {
  let isGone = false;
  const { url } = await peer(
    {
      DELETE: async (_, response) => (
        await pause(100), (isGone = true), response.writeHead(200).end()
      ),
    },
    { session: 's' },
  );
  const { connection } = await openTo(url);
  void connection.close();
  await connection.close();
  assert.ok(isGone);
});

test('an expired session is an error of its own kind, in all calls that were under way, and does not tell the id', async () => {
  const refusals = [
    [404, 'Not Found'],
    [404, '{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}'],
    [400, 'No valid session ID'],
  ];
  for (const [status, words] of refusals as [number, string][]) {
    let session = 'secret-one';
    const held: Asked[] = [];
    const { url, asked } = await peer({
      initialize: async ({ body }, response) => {
        held[0]?.response.writeHead(status).end(words); // an answer to what was asked in the old session
        if (held[0]) await pause(50);
        json(response, answer(body, { protocolVersion: '2025-11-25' }), 200, {
          'mcp-session-id': session,
        });
      },
      'tools/call': (given, response) => {
        if (given.headers['mcp-session-id'] === session) return text('in session');
        if (given.body.params.name === 'later') return void held.push(given);
        return response.writeHead(status).end(words);
      },
    });
    const { connection } = await openTo(url);
    session = 'secret-two';
    const later = rejection(connection.callTool('later'));
    const error = await rejection(connection.callTool('now'));
    assert.equal(error.kind, 'expired', words);
    assert.doesNotMatch(error.message, /secret/);
    await until(() => held.length === 1);
    await connection.initialize(); // a new session, in which the old id is not named
    assert.equal((await later).kind, 'expired');
    const named = asked('initialize').flatMap(({ headers }) => [
      headers['mcp-session-id'],
      headers['mcp-protocol-version'],
    ]);
    assert.deepEqual(named, [undefined, undefined, undefined, undefined]);
    assert.equal(await call(connection, 'now'), 'in session');
  }
});

test('where there is no session, 404 and 400 are plain refusals', async () => {
  const { url } = await peer({
    'tools/call': ({ body }, response) =>
      void response.writeHead(body.params.arguments.status).end('no session here'),
  });
  const { connection } = await openTo(url);
  for (const status of [404, 400]) {
    const error = await rejection(connection.callTool('x', { status }));
    assert.equal(error.kind, 'protocol');
    assert.match(error.message, new RegExp(`HTTP ${status}: "no session here"`));
  }
});

test('a new handshake leaves the old stream to listen on and opens one of its own', async () => {
  let times = 0;
  const { url, asked } = await peer({
    initialize: ({ body }, response) =>
      json(response, answer(body, { protocolVersion: '2025-11-25' }), 200, {
        'mcp-session-id': `s${++times}`,
      }),
    GET: (_, response) => void stream(response, 'retry: 10\n\n'),
  });
  const { connection } = await openTo(url);
  await connection.request('ping');
  await connection.initialize();
  await connection.request('ping');
  await until(() => asked('GET')[0]!.isOver);
  await pause(300); // in which the old one might come back
  assert.deepEqual(
    asked('GET').map(({ headers, isOver }) => [headers['mcp-session-id'], isOver]),
    [
      ['s1', true],
      ['s2', false],
    ],
  );
});

test('a session id and a revision that would break out of their headers break nothing', async () => {
  const { url, asked } = await peer({}, { version: '2025-11-25\r\nx-evil: 1', session: 's' });
  const error = await rejection(openTo(url));
  assert.equal(error.kind, 'protocol');
  await pause(100);
  assert.ok(asked('DELETE').every(({ headers }) => headers['x-evil'] === undefined));
  const latin = await bare((socket, request) => {
    const body = JSON.stringify(answer({ id: 1 }, { protocolVersion: '2025-11-25' }));
    const head = 'content-type: application/json\r\nmcp-session-id: caf\xe9\x85\r\n';
    if (request.includes('initialize"'))
      socket.write(
        Buffer.from(
          `HTTP/1.1 200 OK\r\n${head}content-length: ${body.length}\r\n\r\n${body}`,
          'latin1',
        ),
      );
    else socket.end('HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n');
  });
  const { connection } = await openTo(latin.url);
  await connection.close();
});
