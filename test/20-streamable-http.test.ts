// Chapter 20: Streamable HTTP against servers that do it in every way, and in every wrong way.

import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { afterEach, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { encode, mirrorArguments, mirroredHeaders, mirrorsOf, VERSION_KEY } from '../chapters/20-streamable-http/headers.ts';
import { checked, HttpTransport, httpTransports } from '../chapters/20-streamable-http/http.ts';
import { readChunks } from '../chapters/20-streamable-http/request.ts';
import { McpConnection } from '../mcp.ts';
import { call, cleanUp, later, pause, plugged, rejection, run, until } from './helpers.ts';
import {
  answer, bare, calculator, event, json, LATER, nobody, openLater, openTo, peer, serve, stream, text, transportTo, whole,
  type Asked,
} from './http-peers.ts';

afterEach(cleanUp);

const ask = (id: string | number, method: string, params = {}) => ({ jsonrpc: '2.0', id, method, params });
const note = (method: string, params = {}) => ({ jsonrpc: '2.0', method, params });
const said = ({ body }: Asked, words = 'said') => answer(body, text(words));

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
  const { url, log } = await peer({ GET: (_, response) => void stream(response) }, { session: 's' });
  const headers = { 'X-Team': 'blue', AUTHORIZATION: 'Bearer t', Accept: 'text/plain', 'content-TYPE': 'text/plain' };
  const { connection } = await openTo(url, {}, { headers });
  await connection.request('ping');
  await connection.close();
  assert.deepEqual(log.map(({ verb }) => verb).sort(), ['DELETE', 'GET', 'POST', 'POST', 'POST']);
  for (const { verb, headers, path } of log) {
    assert.deepEqual([headers['x-team'], headers.authorization, path], ['blue', 'Bearer t', '/mcp'], verb);
    if (verb === 'POST') assert.equal(headers['content-type'], 'application/json');
    if (verb === 'POST') assert.equal(headers.accept, 'application/json, text/event-stream');
    if (verb === 'GET') assert.equal(headers.accept, 'text/event-stream');
  }
});

test('the header with the revision comes after the handshake, names the negotiated one, and did not exist before 2025-06-18', async () => {
  for (const [version, expected] of [['2025-11-25', '2025-11-25'], ['2025-06-18', '2025-06-18'], ['2025-03-26', undefined]]) {
    const { url, asked, log } = await peer({}, { version: version!, session: 's' });
    const { connection } = await openTo(url);
    await connection.request('ping');
    await connection.close();
    assert.equal(asked('initialize')[0]!.headers['mcp-protocol-version'], undefined);
    for (const { verb, headers, body } of log.slice(1)) assert.equal(headers['mcp-protocol-version'], expected, `${verb} ${body?.method}`);
  }
});

test('a request waits until the server has taken the last word of the handshake, and we listen', async () => {
  const order: string[] = [];
  const { url } = await peer({
    GET: async (_, response) => (await pause(100), order.push('GET'), response.writeHead(405).end()),
    'notifications/initialized': async (_, response) => (await pause(100), order.push('initialized'), response.writeHead(202).end()),
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
      whole(response, event(note('notifications/progress', { progressToken, progress: 1 })), event(ask(1, 'ping')),
        event(ask('q', 'roots/list')), event(said(given)), event(note('notifications/message', { data: 'after it' })));
    },
  });
  const told: unknown[] = [];
  const { connection, warnings } = await openTo(url, plugged({ handlers: { 'notifications/message': ({ data }) => void told.push(data) } }));
  const progress: unknown[] = [];
  assert.equal(await call(connection, 'x', {}, { onProgress: (each) => progress.push(each.progress) }), 'said');
  await until(() => told.length === 1);
  assert.deepEqual([progress, told], [[1], ['after it']]);
  // Our answers are POSTs of their own. The id of their ping is one of ours, and that does not matter.
  const answers = () => asked('POST').map(({ body }) => body).filter(({ method }) => method === undefined);
  await until(() => answers().length === 2);
  const byId = new Map(answers().map((each) => [each.id, each]));
  assert.deepEqual(byId.get(1), { jsonrpc: '2.0', id: 1, result: {} });
  assert.equal(byId.get('q').error.code, -32601);
  assert.deepEqual(warnings, []);
});

test('what comes on the stream to listen on is heard and answered, also before the first call', async () => {
  const { url, asked } = await peer({
    GET: (_, response) => void stream(response, event(ask('q', 'elicitation/create', { message: 'Sure?' })), event(note('notifications/tools/list_changed'))),
  }, { session: 's-1' });
  const changes: unknown[] = [];
  await openTo(url, plugged({
    capabilities: { elicitation: {} },
    handlers: { 'elicitation/create': () => ({ action: 'accept' }), 'notifications/tools/list_changed': () => void changes.push(1) },
  }));
  await until(() => asked('POST').some(({ body }) => body.id === 'q') && changes.length === 1);
  const { body, headers } = asked('POST').find(({ body }) => body.id === 'q')!;
  assert.deepEqual([body.result, headers['mcp-session-id']], [{ action: 'accept' }, 's-1']);
});

test('before 2026 an answer may come on the stream to listen on, and its own stream is then not waited for', async () => {
  let listening: Asked | undefined;
  const { url, asked } = await peer({
    GET: (given, response) => void ((listening = given), stream(response)),
    'tools/call': (given, response) => void (stream(response), listening!.response.write(event(said(given, 'from elsewhere')))),
    'tools/list': (given, response) => void (response.writeHead(202).end(), listening!.response.write(event(answer(given.body, { tools: [] })))),
  });
  const { connection } = await openTo(url);
  assert.equal(await call(connection, 'x'), 'from elsewhere');
  assert.deepEqual(await connection.listTools(), []); // 202: it will come, but not here
  await until(() => asked('tools/call')[0]!.isOver); // we have hung up
});

test('whatever a server says to a notification, and to our answers, is fine: 202, 204, 200, a body, even a stream', async () => {
  const ways = [[202, ''], [204, ''], [200, ''], [200, 'accepted'], [200, '{}']] as const;
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
  const { url } = await peer({ 'notifications/initialized': (_, response) => void stream(response, ': hello\n\n') });
  const { connection } = await openTo(url);
  assert.equal(await call(connection, 'x'), '{}');
});

test('a notification that is refused is an error for whoever sent it', async () => {
  const { url } = await peer({ 'notifications/x': (_, response) => response.writeHead(404).end() }, { session: 's' });
  const { connection } = await openTo(url);
  assert.equal((await rejection(connection.notify('notifications/x'))).kind, 'expired');
  await connection.notify('notifications/y');
});

test('a server without a stream to listen on may say so in any way', async () => {
  await Promise.all([200, 204, 400, 401, 404, 405, 500].map(async (status) => {
    const { url, asked } = await peer({ GET: (_, response) => void response.writeHead(status, { 'content-type': 'text/html' }).end('no') });
    const { connection, warnings } = await openTo(url);
    await connection.request('ping');
    await pause(1500); // in which it might be asked again
    assert.equal(asked('GET').length, 1, `${status}: asked once`);
    assert.deepEqual(warnings, []);
  }));
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
  await openTo(url, plugged({ handlers: { 'notifications/message': ({ data }) => void told.push(data) } }));
  await until(() => told.length === 2);
  assert.deepEqual(asked('GET').map(({ headers }) => headers['last-event-id']), [undefined, 'e-1']);
});

test('a batch is taken from the one revision that has batches, in a body and in an event', async () => {
  const batch = (given: Asked) => [note('notifications/message', { data: 1 }), said(given, 'in a batch')];
  for (const way of ['body', 'event']) {
    const { url } = await peer({
      'tools/call': (given, response) => (way === 'body' ? json(response, batch(given)) : whole(response, event(batch(given)))),
    }, { version: '2025-03-26' });
    const told: unknown[] = [];
    const { connection } = await openTo(url, plugged({ handlers: { 'notifications/message': ({ data }) => void told.push(data) } }));
    assert.equal(await call(connection, 'x'), 'in a batch');
    assert.deepEqual(told, [1]);
  }
});

test('an error without an id is the answer to the request it came back on, whatever its status', async () => {
  for (const status of [200, 400, 404, 500])
    for (const id of [null, undefined, 'server-error']) {
      const { url } = await peer({ 'tools/call': (_, response) => json(response, { jsonrpc: '2.0', id, error: { code: -32602, message: 'no such tool' } }, status) });
      const { connection } = await openTo(url);
      const error = await rejection(connection.callTool('x'));
      assert.deepEqual([error.code, error.constructor.name], [-32602, 'RpcError'], `${status} ${id}`);
    }
});

test('a body that holds no answer to its request fails the call at once, not by its limit', async () => {
  for (const [body, said] of [[{ jsonrpc: '2.0', id: 99, result: {} }, /"id":99/], [{ hello: 1 }, /hello/], [[], /\[\]/], [7, /7/]] as const) {
    const { url } = await peer({ 'tools/call': (_, response) => json(response, body) });
    const { connection } = await openTo(url, { callTimeoutMs: 1e8 });
    const error = await rejection(connection.callTool('x'));
    assert.equal(error.kind, 'protocol');
    assert.match(error.message, said);
  }
});

test('a refusal of our answer is nobody\'s answer: not that of our call with the same number', async () => {
  let finish = () => {};
  const { url, asked } = await peer({
    'tools/call': (given, response) => {
      stream(response, event(ask(given.body.id, 'ping')));
      finish = () => response.end(event(said(given)));
    },
    answer: (_, response) => json(response, { jsonrpc: '2.0', id: null, error: { code: -32000, message: 'who are you?' } }, 400),
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
    [['initialize', undefined], ['notifications/initialized', 'secret-1'], ['GET', 'secret-1'], ['ping', 'secret-1'], ['DELETE', 'secret-1']],
  );
});

test('without a session there is nothing to give back; a server may refuse it, be silent, or be gone', async () => {
  const { url, asked } = await peer();
  await (await openTo(url)).connection.close();
  assert.equal(asked('DELETE').length, 0);
  for (const way of [405, 404, 500, 'silence', 'reset', 'upgrade'] as const) {
    const { url, asked } = await peer({
      DELETE: (_, response) => {
        if (typeof way === 'number') response.writeHead(way).end('no');
        if (way === 'reset') response.socket!.resetAndDestroy();
        if (way === 'upgrade') response.socket!.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n');
      },
    }, { session: 's' });
    const { connection } = await openTo(url);
    const closing = [connection.close(), connection.close()];
    await Promise.all(closing); // else the runner ends this test
    assert.equal(asked('DELETE').length, 1, `${way}`);
    await until(() => asked('DELETE')[0]!.isOver, `the end after ${way}`);
  }
});

test('whoever closes a second time waits for the goodbye, too', async () => {
  let isGone = false;
  const { url } = await peer({ DELETE: async (_, response) => (await pause(100), (isGone = true), response.writeHead(200).end()) }, { session: 's' });
  const { connection } = await openTo(url);
  void connection.close();
  await connection.close();
  assert.ok(isGone);
});

test('an expired session is an error of its own kind, in all calls that were under way, and does not tell the id', async () => {
  const refusals = [[404, 'Not Found'], [404, '{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}'], [400, 'No valid session ID']];
  for (const [status, words] of refusals as [number, string][]) {
    let session = 'secret-one';
    const held: Asked[] = [];
    const { url, asked } = await peer({
      initialize: async ({ body }, response) => {
        held[0]?.response.writeHead(status).end(words); // an answer to what was asked in the old session
        if (held[0]) await pause(50);
        json(response, answer(body, { protocolVersion: '2025-11-25' }), 200, { 'mcp-session-id': session });
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
    const named = asked('initialize').flatMap(({ headers }) => [headers['mcp-session-id'], headers['mcp-protocol-version']]);
    assert.deepEqual(named, [undefined, undefined, undefined, undefined]);
    assert.equal(await call(connection, 'now'), 'in session');
  }
});

test('where there is no session, 404 and 400 are plain refusals', async () => {
  const { url } = await peer({ 'tools/call': ({ body }, response) => void response.writeHead(body.params.arguments.status).end('no session here') });
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
    initialize: ({ body }, response) => json(response, answer(body, { protocolVersion: '2025-11-25' }), 200, { 'mcp-session-id': `s${++times}` }),
    GET: (_, response) => void stream(response, 'retry: 10\n\n'),
  });
  const { connection } = await openTo(url);
  await connection.request('ping');
  await connection.initialize();
  await connection.request('ping');
  await until(() => asked('GET')[0]!.isOver);
  await pause(300); // in which the old one might come back
  assert.deepEqual(asked('GET').map(({ headers, isOver }) => [headers['mcp-session-id'], isOver]), [['s1', true], ['s2', false]]);
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
    if (request.includes('initialize"')) socket.write(Buffer.from(`HTTP/1.1 200 OK\r\n${head}content-length: ${body.length}\r\n\r\n${body}`, 'latin1'));
    else socket.end('HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n');
  });
  const { connection } = await openTo(latin.url);
  await connection.close();
});

// ─── Resumption ───────────────────────────────────────────────────────────────────────────────────────────────

/** A server whose stream for a call ends early. `parts[0]` is what the POST brings, the others what each GET brings. */
function broken(parts: ((given: Asked) => string)[], options?: Parameters<typeof peer>[1]) {
  let called: Asked;
  let gets = 0;
  return peer({
    'tools/call': (given, response) => whole(response, parts[0]!((called = given))),
    GET: ({ headers }, response) => {
      if (headers['last-event-id'] === undefined) return response.writeHead(405).end();
      return whole(response, parts[++gets]?.(called) ?? '');
    },
  }, options);
}
const resumed = ({ asked }: { asked: (what: string) => Asked[] }) =>
  asked('GET').map(({ headers }) => headers['last-event-id']).filter((id) => id !== undefined);

test('trap 8: a stream that ends before the answer is taken up by GET, from its last event, in the same session', async () => {
  const server = await broken([() => event('', { id: 'e-1', retry: 10 }), (given) => event(said(given, 'at last'), { id: 'e-2' })], { session: 's' });
  const { connection } = await openTo(server.url);
  assert.equal(await call(connection, 'x'), 'at last');
  assert.deepEqual(resumed(server), ['e-1']);
  const { headers } = server.asked('GET').at(-1)!;
  assert.deepEqual([headers['mcp-session-id'], headers['mcp-protocol-version'], headers.accept], ['s', '2025-11-25', 'text/event-stream']);
  assert.equal(server.asked('tools/call').length, 1);
});

test('a stream may be taken up many times, if there is news each time, and notices in it are heard', async () => {
  const news = (n: number) => event(note('notifications/message', { data: n }), { id: `é-${n}`, ...(n === 0 && { retry: 1 }) });
  const server = await broken([...Array.from({ length: 9 }, (_, n) => () => news(n)), (given) => event(said(given))]);
  const told: unknown[] = [];
  const { connection } = await openTo(server.url, plugged({ handlers: { 'notifications/message': ({ data }) => void told.push(data) } }));
  assert.equal(await call(connection, 'x'), 'said');
  assert.deepEqual(told, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  const utf8 = resumed(server).map((id) => Buffer.from(`${id}`, 'latin1').toString());
  assert.deepEqual(utf8, ['é-0', 'é-1', 'é-2', 'é-3', 'é-4', 'é-5', 'é-6', 'é-7', 'é-8']);
});

test('without an id, or with one that was taken back, there is nothing to go on from: the call is lost at once', async () => {
  for (const parts of ['', ': hello\n\n', 'retry: 10\n\n', event(note('notifications/message')), 'id: 5\ndata: \n\nid\ndata: \n\n']) {
    const server = await broken([() => parts]);
    const { connection } = await openTo(server.url);
    const error = await rejection(connection.callTool('x'));
    assert.equal(error.kind, 'lost', parts);
    assert.match(error.message, /closed the stream before it answered/);
    assert.equal(server.asked('GET').length, 1, 'the one to listen on');
  }
});

test('a server that brings nothing new is asked a few times and no more', async () => {
  for (const again of ['', event('', { id: 'e-1' }), ': still here\n\n']) {
    const server = await broken([() => event('', { id: 'e-1', retry: 1 }), ...Array.from({ length: 50 }, () => () => again)]);
    const { connection } = await openTo(server.url, { callTimeoutMs: 1e8 });
    assert.equal((await rejection(connection.callTool('x'))).kind, 'lost');
    const times = resumed(server).length;
    assert.ok(times >= 3 && times <= 10, `${times} times`);
  }
});

test('a GET that is refused, with a body that does not end, is not left open', async () => {
  let isLeft = true;
  const server = await peer({
    'tools/call': (_, response) => whole(response, event('', { id: 'e-1', retry: 1 })),
    GET: ({ headers }, response) => {
      if (headers['last-event-id'] === undefined) return response.writeHead(405).end();
      response.on('close', () => (isLeft = false));
      return response.writeHead(404).write('and then ');
    },
  });
  const { connection } = await openTo(server.url);
  assert.equal((await rejection(connection.callTool('x'))).kind, 'lost');
  await until(() => !isLeft, 'the end of the refusal');
});

test('a call that was received and cannot be resumed is lost, never "unreachable": that would mean it can be repeated', async () => {
  for (const way of ['gone', 'refused', 'expired'] as const) {
    let isDown = false;
    const server = await peer({
      'tools/call': (_, response) => {
        whole(response, event('', { id: 'e-1', retry: 200 }));
        isDown = true;
        if (way === 'gone') setTimeout(() => void server.stop(), 50);
      },
      GET: (_, response) => void response.writeHead(!isDown ? 405 : way === 'expired' ? 404 : 503).end(),
    }, { session: 's' });
    const { connection } = await openTo(server.url, { callTimeoutMs: 1e8 });
    const error = await rejection(connection.callTool('x'));
    assert.equal(error.kind, way === 'gone' ? 'closed' : 'lost', `${way}: ${error.message}`);
  }
});

test('a call that is under way when the server is given up may have been received', async () => {
  const server = await peer({ 'tools/call': () => {} });
  const { connection } = await openTo(server.url);
  const working = rejection(connection.callTool('x'));
  await until(() => server.asked('tools/call').length === 1);
  server.hide();
  await pause(100);
  for (let n = 0; n < 3; n++) assert.equal((await rejection(connection.request('ping'))).kind, 'unreachable');
  assert.equal((await working).kind, 'closed');
});

test('a server that is back in time is asked again', async () => {
  let called: Asked;
  const first = await peer({
    'tools/call': (given, response) => {
      called = given;
      whole(response, event('', { id: 'e-1', retry: 300 }));
      setTimeout(() => void first.stop(), 50);
    },
  });
  const { connection } = await openTo(first.url);
  const called1 = call(connection, 'x');
  await until(() => called !== undefined);
  await pause(500); // one attempt has failed by then
  const second = await peer({ GET: (_, response) => whole(response, event(said(called, 'after a restart'))) }, { port: first.port });
  assert.equal(await called1, 'after a restart');
  assert.deepEqual(resumed(second), ['e-1']);
});

test('a stream that is cut off in the middle of an event is taken up before that event', async () => {
  let called: Asked;
  const server = await peer({
    'tools/call': (given, response) => {
      called = given;
      stream(response, event('', { id: 'e-1', retry: 1 }), 'id: e-2\ndata: {"jsonrpc"');
      setTimeout(() => response.socket!.resetAndDestroy(), 50);
    },
    GET: ({ headers }, response) => (headers['last-event-id'] ? whole(response, event(said(called, 'whole'))) : response.writeHead(405).end()),
  });
  const { connection } = await openTo(server.url);
  assert.equal(await call(connection, 'x'), 'whole');
  assert.deepEqual(resumed(server), ['e-1'], 'e-2 did not come to its end, and must come again');
});

test('since 2026 nothing is resumed: what broke off is lost, and no GET is sent', async () => {
  const server = await broken([() => event('', { id: 'e-1', retry: 1 })]);
  const { connection } = await openLater(server.url);
  assert.equal((await rejection(connection.callTool('x'))).kind, 'lost');
  await pause(200);
  assert.equal(server.asked('GET').length, 0);
});

// ─── Cancellation ─────────────────────────────────────────────────────────────────────────────────────────────

test('up to 2025 a call that is given up is cancelled by a notice; its late answer is ignored', async () => {
  const { url, asked } = await peer({
    GET: (_, response) => void stream(response),
    'tools/call': (_, response) => void stream(response, ': working\n\n'),
    'notifications/cancelled': ({ body }, response) => {
      asked('GET')[0]!.response.write(event(answer({ id: body.params.requestId }, text('late'))) + event(ask('q', 'ping')));
      response.writeHead(202).end();
    },
  });
  const { connection, warnings } = await openTo(url);
  assert.equal((await rejection(connection.callTool('x', {}, { timeoutMs: 100 }))).kind, 'timeout');
  await until(() => asked('POST').some(({ body }) => body.id === 'q'));
  assert.deepEqual(asked('notifications/cancelled')[0]!.body.params, { requestId: asked('tools/call')[0]!.body.id, reason: 'timeout' });
  assert.ok(asked('tools/call')[0]!.isOver);
  assert.deepEqual(warnings, []);
});

test('since 2026 closing the stream is the cancellation, and nothing is posted', async () => {
  for (const way of ['before headers', 'in the stream']) {
    const { url, asked, log } = await peer({ 'tools/call': (_, response) => void (way === 'in the stream' && stream(response, ': working\n\n')) });
    const { connection } = await openLater(url);
    const controller = new AbortController();
    const called = rejection(connection.callTool('x', {}, { signal: controller.signal }));
    await until(() => asked('tools/call').length === 1);
    controller.abort();
    assert.equal((await called).kind, 'aborted');
    await until(() => asked('tools/call')[0]!.isOver);
    await connection.request('tools/list'); // later than the notice would be
    assert.deepEqual(log.map(({ body }) => body.method), ['tools/call', 'tools/list'], way);
  }
});

test('a call that is given up while it waits for the end of the handshake is never sent', async () => {
  const { url, asked } = await peer({ 'notifications/initialized': async (_, response) => (await pause(300), response.writeHead(202).end()) });
  const { connection } = await openTo(url);
  assert.equal((await rejection(connection.callTool('x', {}, { timeoutMs: 50 }))).kind, 'timeout');
  await connection.request('ping');
  assert.equal(asked('tools/call').length, 0);
});

test('a call is cancelled while it waits to be resumed', async () => {
  const server = await broken([() => event('', { id: 'e-1', retry: 1e10 })]); // longer than a timer can be
  const { connection } = await openTo(server.url);
  assert.equal((await rejection(connection.callTool('x', {}, { timeoutMs: 1500 }))).kind, 'timeout');
  await until(() => server.asked('notifications/cancelled').length === 1);
  assert.deepEqual(resumed(server), []);
});

// ─── Events by the standard ───────────────────────────────────────────────────────────────────────────────────

test('events: every end of line, cut anywhere, with comments, several lines of data and fields that nobody knows', async () => {
  for (const end of ['\n', '\r\n', '\r']) {
    const lines = (given: Asked) => [
      '\ufeff: a comment', 'event: ping', 'data: not for us {', '', 'retry: soon', 'unknown: field', 'event: message',
      ...JSON.stringify(said(given, 'Grüße 🌍 �'), null, 1).split('\n').map((line) => `data:${line}`), '', ':', '',
    ];
    for (const size of [1, 7, 1e6]) {
      const { url } = await peer({
        'tools/call': async (given, response) => {
          const bytes = Buffer.from(lines(given).join(end) + end);
          response.socket!.setNoDelay(true);
          stream(response);
          for (let at = 0; at < bytes.length; at += size) {
            response.write(bytes.subarray(at, at + size));
            if (size < 1e6) await new Promise(setImmediate);
          }
          response.end();
        },
      });
      const { connection, warnings } = await openTo(url);
      assert.equal(await call(connection, 'x'), 'Grüße 🌍 �', JSON.stringify([end, size]));
      assert.deepEqual(warnings, []);
    }
  }
});

test('half an event at the end of a stream is none', async () => {
  const { url } = await peer({ 'tools/call': (given, response) => whole(response, `data: ${JSON.stringify(said(given))}\n`) });
  const { connection } = await openTo(url);
  assert.equal((await rejection(connection.callTool('x'))).kind, 'lost');
});

test('an event that is not JSON fails its call, and no other', async () => {
  const { url } = await peer({ 'tools/call': ({ body }, response) => (body.params.name === 'bad' ? void stream(response, event('{"jsonrpc"')) : text('good')) });
  const { connection } = await openTo(url);
  const error = await rejection(connection.callTool('bad'));
  assert.equal(error.kind, 'protocol');
  assert.match(error.message, /not JSON/);
  assert.equal(await call(connection, 'x'), 'good');
});

// ─── Faults ───────────────────────────────────────────────────────────────────────────────────────────────────

test('nobody there: the error names the server and its address, but neither path nor query', async () => {
  const url = await nobody();
  const error = await rejection(openTo(`${url}?key=secret`));
  assert.equal(error.kind, 'unreachable');
  assert.match(error.message, new RegExp(`"demo" \\(${new URL(url).origin}\\).*ECONNREFUSED`));
  assert.doesNotMatch(error.message, /secret/);
  const unknown = await rejection(openTo('http://nowhere.invalid/mcp'));
  assert.deepEqual([unknown.kind, /nowhere\.invalid/.test(unknown.message)], ['unreachable', true]);
});

test('a connection that is cut before the headers, or in the middle of the body, is lost', async () => {
  const ways: Record<string, (given: Asked) => unknown> = {
    'before the headers': ({ response }) => response.socket!.resetAndDestroy(),
    'by a plain end': ({ response }) => response.socket!.end(),
    'by an upgrade': ({ response }) => response.socket!.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
    'with nonsense': ({ response }) => response.socket!.write('SSH-2.0-OpenSSH_9.6\r\n'),
    'in a body': ({ response }) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1000 }).write('{"jsonrpc"');
      setTimeout(() => response.socket!.resetAndDestroy(), 50);
    },
    'in a packed body': ({ response }) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).write(gzipSync('{}').subarray(0, 12));
      setTimeout(() => response.socket!.resetAndDestroy(), 50);
    },
    'in a stream': ({ response }) => {
      stream(response, ': hello\n\n');
      setTimeout(() => response.socket!.resetAndDestroy(), 50);
    },
    'where it is badly packed': ({ response }) => void response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end('{}{}{}{}{}'),
  };
  for (const [way, cut] of Object.entries(ways)) {
    const { url } = await peer({ 'tools/call': (given) => void cut(given) });
    const { connection } = await openTo(url, { callTimeoutMs: 1e8 });
    const error = await rejection(connection.callTool('x'));
    assert.equal(error.kind, 'lost', `${way}: ${error.message}`);
    assert.doesNotMatch(error.message, /cannot be reached/, 'it was');
    await connection.request('ping');
  }
});

test('silence ends by the limit of the call, before the headers and in the stream; close() frees what hangs', async () => {
  const { url, asked } = await peer({
    'tools/call': ({ body }, response) => void (body.params.name === 'stream' && stream(response, ': hello\n\n')),
  });
  const { connection } = await openTo(url);
  for (const name of ['silence', 'stream']) assert.equal((await rejection(connection.callTool(name, {}, { timeoutMs: 100 }))).kind, 'timeout');
  const hanging = ['silence', 'stream'].map((name) => rejection(connection.callTool(name)));
  await until(() => asked('tools/call').length === 4);
  await connection.close();
  assert.deepEqual((await Promise.all(hanging)).map(({ kind }) => kind), ['closed', 'closed']);
  await until(() => asked('tools/call').every(({ isOver }) => isOver));
});

test('a status that refuses: its kind tells whether the call can be repeated, and its words why', async () => {
  const page = '<!doctype html><html><head><title>\n 502 \x1b[2JBad   Gateway </title></head><body><h1>x</h1></body></html>';
  const cases: [number, string, Record<string, string>, string, RegExp][] = [
    [500, 'out of order', {}, 'lost', /tools\/call with HTTP 500: "out of order"/],
    [502, page, { 'content-type': 'text/html' }, 'lost', /HTTP 502: "502 \\u001b\[2JBad Gateway"/],
    [503, '<p>We are <b>down</b></p>', { 'retry-after': 'Fri, 01 Jan 2027 00:00:00 GMT' }, 'unreachable', /"We are down".*Fri, 01 Jan 2027/],
    [429, '', { 'retry-after': '7' }, 'unreachable', /HTTP 429: "no explanation".*7 s/],
    [418, `${'long '.repeat(100_000)}`, {}, 'protocol', /HTTP 418: "long long/],
    [401, '', { 'www-authenticate': 'Bearer scope="a"' }, 'auth', /login \(HTTP 401\)/],
    [403, '<title>Not for you</title>', {}, 'auth', /refuses us \(HTTP 403\): "Not for you"/],
  ];
  for (const [status, words, headers, kind, message] of cases) {
    const { url } = await peer({ 'tools/call': (_, response) => void response.writeHead(status, headers).end(words) });
    const { connection } = await openTo(`${url}?key=hidden`);
    const error = await rejection(connection.callTool('x'));
    assert.equal(error.kind, kind, `${status}`);
    assert.match(error.message, message);
    assert.ok(error.message.length < 500);
    assert.doesNotMatch(error.message, /[\x00-\x1f]|hidden/);
    if (status === 401) assert.deepEqual([error.status, error.challenge], [401, 'Bearer scope="a"']);
    await connection.request('ping');
  }
});

test('of a refusal that is cut off, or packed, its words are told all the same', async () => {
  const { url } = await peer({
    'tools/call': ({ body }, response) => {
      if (body.params.name === 'packed') return void response.writeHead(500, { 'content-encoding': 'gzip' }).end(gzipSync('out of order'));
      response.writeHead(500, { 'content-length': 1000 }).write('out of');
      return void setTimeout(() => response.socket!.resetAndDestroy(), 50);
    },
  });
  const { connection } = await openTo(url);
  assert.match((await rejection(connection.callTool('cut'))).message, /HTTP 500: "out of"/);
  assert.match((await rejection(connection.callTool('packed'))).message, /HTTP 500: "out of order"/);
});

test('an answer of the wrong type, or none, or one that is not JSON, is an error that says so', async () => {
  const cases: [number, string | undefined, string, RegExp][] = [
    [200, 'text/html', '<p>Welcome</p>', /answered tools\/call with text\/html instead of JSON/],
    [200, undefined, '', /answered tools\/call with nothing/],
    [204, undefined, '', /answered tools\/call with nothing.*204/],
    [303, 'text/plain', 'over there', /303/],
    [200, 'application/json', '{"jsonrpc": oops', /not JSON: "\{\\"jsonrpc\\": oops"/],
    [200, 'application/json', '', /not JSON/],
  ];
  for (const [status, type, body, message] of cases) {
    const { url } = await peer({ 'tools/call': (_, response) => void response.writeHead(status, type ? { 'content-type': type } : {}).end(body) });
    const { connection } = await openTo(url, { callTimeoutMs: 1e8 });
    const error = await rejection(connection.callTool('x'));
    assert.equal(error.kind, 'protocol');
    assert.match(error.message, message);
  }
  const { url } = await peer({ 'tools/call': (_, response) => void response.writeHead(202).end() });
  const { connection } = await openLater(url, { callTimeoutMs: 1e8 });
  assert.equal((await rejection(connection.callTool('x'))).kind, 'protocol', 'since 2026 there is no other way for it to come');
});

test('a body with a byte order mark, spaces around it and a type in capitals is read', async () => {
  const { url } = await peer({
    'tools/call': (given, response) => void response.writeHead(200, { 'content-type': 'Application/JSON; charset=utf-8' }).end(`\ufeff\n ${JSON.stringify(said(given))} \n`),
  });
  const { connection } = await openTo(url);
  assert.equal(await call(connection, 'x'), 'said');
});

test('packed answers are unpacked, though we did not ask for them: bodies and streams', async () => {
  const { url, asked } = await peer({
    'tools/call': (given, response) => {
      const isStream = given.body.params.name === 'stream';
      const body = isStream ? event(said(given, 'packed')) : JSON.stringify(said(given, 'packed'));
      const type = isStream ? 'text/event-stream' : 'application/json';
      response.writeHead(200, { 'content-type': type, 'content-encoding': 'gzip' }).end(gzipSync(body));
    },
  });
  const { connection } = await openTo(url);
  for (const name of ['body', 'stream']) assert.equal(await call(connection, name), 'packed');
  assert.equal(asked('tools/call')[0]!.headers['accept-encoding'], 'identity');
});

test('G14: a bomb, an endless body, an endless event, and one that is endless only in small lines, end at the limit', async () => {
  const { ended } = run('http-bombs.ts');
  const { code, output } = await ended;
  assert.equal(code, 0, output);
  for (const [name, { kind, grewBy, isFree }] of Object.entries<any>(JSON.parse(output))) {
    assert.equal(kind, name === 'error page' ? 'lost' : 'limit', name);
    assert.ok(grewBy < 150, `${name}: ${grewBy} MB more`); // they would be 400 MB and more
    assert.ok(isFree, `${name}: its connection is left`);
  }
});

test('B5: a message that is nested too deeply is not even parsed', async () => {
  for (const way of ['json', 'spaces', 'stream', 'error']) {
    const levels = way === 'error' ? 10_000 : 100_000;
    const deep = `${'['.repeat(levels)}${']'.repeat(levels)}`;
    const { url } = await peer({
      'tools/call': ({ body }, response) => {
        const words = `{"jsonrpc":"2.0","id":${body.id},"${way === 'error' ? 'error' : 'result'}":{"code":1,"x":${deep}}}`;
        if (way === 'stream') return whole(response, `data:  ${words}\n\n`);
        return void response.writeHead(way === 'error' ? 500 : 200, { 'content-type': 'application/json' }).end(way === 'spaces' ? `\n ${words}` : words);
      },
    });
    const { connection } = await openTo(url);
    assert.equal((await rejection(connection.callTool('x'))).kind, way === 'error' ? 'lost' : 'limit', way);
    await connection.request('ping');
  }
});

test('reading a body comes to an end, whatever becomes of it', async () => {
  const parts = () => Readable.from(['a', 'b', 'c'].map((part) => Buffer.from(part)), { objectMode: false });
  const read = async (body: Readable, onChunk = (_: string) => {}) => {
    const seen: string[] = [];
    const chunks = readChunks(body, (chunk) => (seen.push(`${chunk}`), onChunk(`${chunk}`)));
    const end = await chunks.then(() => 'whole', (error) => error.message);
    return `${end}: ${seen.join('')}`;
  };
  assert.equal(await read(parts()), 'whole: abc');
  const twice = parts();
  await read(twice);
  assert.equal(await read(twice), 'the body was cut off: ', 'there is nothing left');
  assert.equal(await read(parts().destroy()), 'the body was cut off: ');
  const cut = parts();
  assert.match(await read(cut, () => void cut.destroy()), /^the body was cut off: a/);
  const broken = parts();
  assert.match(await read(broken, () => void broken.destroy(new Error('reset'))), /^reset: a/);
  const refused = new Readable({ read() {} });
  for (const part of 'abc') refused.push(part); // there at once, so they come one directly after the other
  assert.equal(await read(refused, () => { throw new Error('too much'); }), 'too much: a');
  assert.ok(refused.destroyed);
});

test('a redirect within the server is followed, with method, body and headers', async () => {
  for (const status of [301, 302, 307, 308]) {
    const { url, asked } = await peer({
      'tools/call': (given, response) => (given.path === '/mcp' ? response.writeHead(status, { location: '/v2/mcp?x=1' }).end() : text('followed')),
    }, { session: 's' });
    const { connection } = await openTo(url, {}, { headers: { 'x-team': 'blue' } });
    assert.equal(await call(connection, 'x'), 'followed', `${status}`);
    const [, second] = asked('tools/call');
    assert.deepEqual([second!.path, second!.verb, second!.headers['x-team'], second!.headers['mcp-session-id']], ['/v2/mcp?x=1', 'POST', 'blue', 's']);
  }
});

test('G11, G4: a redirect to another server is refused, and that one receives nothing at all', async () => {
  const other = await peer();
  for (const location of [other.url, other.url.replace('127.0.0.1', 'localhost'), `//127.0.0.1:${other.port}/x`, 'https://127.0.0.1/', 'file:///etc/passwd', 'http://[']) {
    for (const status of [301, 302, 303, 307, 308]) {
      const { url } = await peer({ 'tools/call': (_, response) => response.writeHead(status, { location }).end() }, { session: 's' });
      const { connection } = await openTo(url, {}, { headers: { authorization: 'Bearer secret' } });
      const error = await rejection(connection.callTool('x'));
      assert.equal(error.kind, 'protocol');
      assert.match(error.message, /sends us on to/);
      await connection.close();
    }
  }
  assert.deepEqual(other.log, []);
});

test('G20: 303 is followed within the server, by a GET without the message, and its answer counts', async () => {
  const { url, asked, log } = await peer({
    'tools/call': ({ path }, response) => response.writeHead(303, { location: '/done?x=1' }).end(),
    GET: ({ path }, response) => {
      if (!path.startsWith('/done')) return response.writeHead(405).end();
      const { id } = asked('tools/call')[0]!.body;
      return json(response, answer({ id }, { content: [{ type: 'text', text: 'seen' }] }));
    },
  }, { session: 's' });
  const { connection } = await openTo(url, {}, { headers: { 'x-team': 'blue' } });
  assert.equal(await call(connection, 'x', { secret: 'said-once' }), 'seen');
  const got = log.find(({ path }) => path.startsWith('/done'))!;
  assert.deepEqual([got.verb, got.headers['x-team'], got.headers['content-type']], ['GET', 'blue', undefined]);
  assert.ok(!JSON.stringify([got.body ?? null, got.headers]).includes('said-once'));
});

test('G20: 300, 304, 305 and their like are no answer and no way, whatever their body or Location', async () => {
  const other = await peer();
  for (const status of [300, 304, 305, 306, 399])
    for (const location of [undefined, '/elsewhere', other.url]) {
      const { url, log } = await peer({
        'tools/call': ({ body }, response) => {
          const headers = { 'content-type': 'application/json', ...(location && { location }) };
          const result = { content: [{ type: 'text', text: 'taken' }] };
          return response.writeHead(status, headers).end(JSON.stringify(answer(body, result)));
        },
      });
      const { connection } = await openTo(url);
      const error = await rejection(connection.callTool('x'));
      assert.deepEqual([error.kind, error.message.includes(`HTTP ${status}`)], ['protocol', true], error.message);
      assert.ok(log.every(({ path }) => path === '/mcp'));
      await connection.close();
    }
  assert.deepEqual(other.log, []);
});

test('a redirect that never ends is given up', async () => {
  const { url, asked } = await peer({ 'tools/call': ({ path }, response) => response.writeHead(307, { location: `${path}x` }).end() });
  const { connection } = await openTo(url);
  assert.match((await rejection(connection.callTool('x'))).message, /on and on/);
  assert.ok(asked('tools/call').length < 20);
});

test('a server that was restarted between two calls is simply asked again', async () => {
  const first = await peer();
  const { connection } = await openTo(first.url);
  assert.equal(await call(connection, 'x', { n: 1 }), '{"n":1}');
  await first.stop();
  await pause(100);
  await peer({}, { port: first.port });
  assert.equal(await call(connection, 'x', { n: 2 }), '{"n":2}');
});

test('three failures to reach it, one after the other, end the connection, and that is told once', async () => {
  const server = await peer();
  const ended: Error[] = [];
  const { connection } = await openTo(server.url, plugged({ closed: (why) => (ended.push(why), void connection.close()) }));
  await server.stop();
  const kinds = [];
  for (let n = 0; n < 4; n++) kinds.push((await rejection(connection.request('ping'))).kind);
  assert.deepEqual(kinds, ['unreachable', 'unreachable', 'unreachable', 'closed']);
  assert.equal(ended.length, 1);
  assert.match(ended[0]!.message, /ECONNREFUSED/);

  const url = await nobody();
  const { transport, ends, call } = await transportTo(url);
  await Promise.all(Array.from({ length: 10 }, (_, n) => rejection(call(n))));
  await transport.close();
  await transport.close();
  assert.equal(ends.length, 1);
});

test('a failure that is followed by an answer counts for nothing', async () => {
  const first = await peer();
  const ended: Error[] = [];
  const { connection } = await openTo(first.url, plugged({ closed: (why) => void ended.push(why) }));
  await first.stop();
  for (let round = 0; round < 3; round++) {
    for (let n = 0; n < 2; n++) await rejection(connection.request('ping'));
    const next = await peer({}, { port: first.port });
    await connection.request('ping');
    await next.stop();
  }
  assert.deepEqual(ended, []);
});

test('closed is told once, and no message after it, also if it is closed from within', async () => {
  const { url } = await peer({ 'tools/call': (given, response) => void stream(response, event(said(given)), event(note('a')), event(note('b'))) });
  const { transport, messages, ends, call } = await transportTo(url);
  const closing = until(() => messages.length > 0).then(() => transport.close());
  await call(1).catch(() => {});
  await closing;
  const count = messages.length;
  await pause(50);
  assert.deepEqual([messages.length, ends.length], [count, 1]);

  const other = await peer({ 'tools/call': (given, response) => whole(response, event(said(given)) + event(note('a'))) });
  const within = new HttpTransport('demo', { url: other.url }, 2 ** 20);
  const told: string[] = [];
  await within.start({ message: () => (told.push('message'), within.close()), closed: () => told.push('closed') });
  await within.send({ jsonrpc: '2.0', id: 1, method: 'tools/call' }).catch(() => {});
  assert.deepEqual(told, ['message', 'closed']);
});

// ─── Much of it ───────────────────────────────────────────────────────────────────────────────────────────────

function warningsOfNode(): string[] {
  const told: string[] = [];
  const hear = (warning: Error) => told.push(warning.message);
  process.on('warning', hear);
  later(() => process.off('warning', hear));
  return told;
}

test('a hundred calls side by side, and a hundred one after the other, each with its own answer', async () => {
  const told = warningsOfNode();
  const { url } = await peer({
    'tools/call': async (given, response) => {
      const { n } = given.body.params.arguments;
      await pause((n * 7) % 50);
      return n % 2 ? whole(response, event(said(given, `${n}`))) : text(`${n}`);
    },
  });
  const { connection, warnings } = await openTo(url);
  const numbers = Array.from({ length: 100 }, (_, n) => n);
  assert.deepEqual(await Promise.all(numbers.map((n) => call(connection, 'x', { n }))), numbers.map(String));
  for (const n of numbers) assert.equal(await call(connection, 'x', { n: n * 50 }), `${n * 50}`);
  await pause(20);
  assert.deepEqual([warnings, told], [[], []]);
});

test('bodies of 1 MB and 20 MB, in both directions, as JSON and as a stream', async () => {
  const { url } = await peer({
    'tools/call': (given, response) => {
      const { size, of } = given.body.params.arguments;
      const message = said(given, `${of.length} ${'é'.repeat(size / 2)}`);
      return given.body.params.name === 'stream' ? whole(response, event(message)) : json(response, message);
    },
  });
  const { connection } = await openTo(url);
  for (const size of [1e6, 2e7])
    for (const name of ['json', 'stream']) {
      const words = await call(connection, name, { size, of: 'x'.repeat(size) });
      assert.ok(words === `${size} ${'é'.repeat(size / 2)}`, `${name} ${size}`);
    }
});

test('after close() nothing keeps a program alive, whatever the server leaves open', async () => {
  const { url } = await peer({
    GET: (_, response) => void stream(response),
    'tools/call': ({ body }, response) => void (body.params.name === 'stream' && stream(response, event('', { id: 'e-1', retry: 1e9 }))),
    'tools/list': (given, response) => void stream(response, event(answer(given.body, { tools: [] }))),
    DELETE: () => {},
  }, { session: 's' });
  const { code, output } = await run('quiet-http.ts', [url]).ended;
  assert.equal(code, 0, output);
  assert.ok(JSON.parse(output).atExit < 60_000, 'else it waited for something');
});

// ─── Configuration ────────────────────────────────────────────────────────────────────────────────────────────

test('an address or headers that cannot be right are refused, and the error names the server but no value', () => {
  const bad: [object, RegExp][] = [
    [{}, /"url"/], [{ url: 5 }, /"url"/], [{ url: 'mcp.example' }, /"url"/], [{ url: '/mcp' }, /"url"/], [{ url: 'ftp://h/' }, /"url"/],
    [{ url: 'file:///etc/passwd' }, /"url"/], [{ url: 'javascript:alert(1)' }, /"url"/], [{ url: 'https://u:hidden@h/' }, /password/],
    [{ url: 'https://u@h/' }, /password/],
  ];
  for (const headers of [[], 'hidden', null, { a: 5 }, { a: null }, { a: ['hidden'] }, { a: 'hidden\r\nx: y' }, { a: 'hidden\n' }, { 'a b': 'x' }, { 'a\r\nb': 'x' }, { '': 'x' }, { a: 'hidden \u{1f30d}' }, { a: 'x\0' }])
    bad.push([{ url: 'https://h/', headers }, /"headers"/]);
  for (const [config, message] of bad)
    assert.throws(() => checked('demo', { ...config }), (error: any) => {
      assert.equal(error.kind, 'config', JSON.stringify(config));
      assert.match(error.message, /MCP server "demo"/);
      assert.match(error.message, message);
      assert.doesNotMatch(error.message, /hidden/);
      return true;
    }, JSON.stringify(config));
});

test('G10: a secret goes over http:// to this machine only', () => {
  const headers = { Authorization: 'Bearer hidden' };
  for (const url of ['http://mcp.example/', 'http://127.0.0.1.example/', 'http://localhost.example/', 'http://10.0.0.1/', 'http://0.0.0.0/', 'http://[::2]/', 'http://127.example.com/'])
    assert.throws(() => checked('demo', { url, headers }), (error: any) => error.kind === 'config' && /https/.test(error.message) && !/hidden/.test(error.message), url);
  for (const url of ['https://mcp.example/', 'http://localhost:1/', 'http://127.0.0.1/', 'http://127.1/', 'http://[::1]:8080/', 'http://LOCALHOST/'])
    assert.deepEqual(checked('demo', { url, headers }).headers, { authorization: 'Bearer hidden' }, url);
  checked('demo', { url: 'http://mcp.example/', headers: { 'x-team': 'blue' } });
});

test('G19: whatever its name says is a secret goes over http:// to this machine only, also in an address', () => {
  const names = [
    'X-Api-Key', 'x-auth', 'Cookie', 'X-Access-Token', 'Private-Token', 'X-Secret', 'X-Password',
    'Proxy-Authorization', 'apikey', 'X-Amz-Security-Token', 'X-Session', 'X-Signature', 'Credentials',
  ];
  const inHeaders = names.map((name) => ({ url: 'http://h.example/', headers: { [name]: 'hidden' } }));
  const inShape = ['Bearer hidden-and-long', 'sk-hidden-0123456789abcdef'].map((value) =>
    ({ url: 'http://h.example/', headers: { 'x-team': value } }));
  const inAddress = ['?token=hidden', '?a=1&api_key=hidden', '?x-amz-signature=hidden', '?sig=hidden',
    '/sk-hidden-0123456789abcdef/mcp', '?a=Bearer%20hidden-and-long', '?a=ghp_hidden0123456789abcdef'];
  const all = [...inHeaders, ...inShape, ...inAddress.map((rest) => ({ url: `http://h.example/mcp${rest}` }))];
  for (const config of all) {
    const refused = (error: any) => error.kind === 'config' && /http:\/\/.*https:\/\//s.test(error.message)
      && !/hidden/.test(error.message);
    assert.throws(() => checked('demo', config), refused, JSON.stringify(config));
    const { url, headers } = { headers: {}, ...config };
    for (const safe of [url.replace('http:', 'https:'), url.replace('h.example', '127.0.0.1')])
      assert.equal(checked('demo', { url: safe, headers }).url.href, safe);
  }
  for (const rest of ['mcp', 'mcp?team=blue', 'monkey/tokens']) checked('demo', { url: `http://h.example/${rest}` });
});

test('G21: other words for a secret, and other ways to write it into an address', () => {
  const far = 'http://h.example/mcp';
  const names = ['X-Pwd', 'X-Pass', 'X-Passphrase', 'passcode', 'X-Bearer', 'X-PAT'];
  const values = ['Basic aGlkZGVuOnZhbHVl', 'Token hidden-and-long', 'ApiKey hidden-and-long'];
  const addresses = ['?pwd=hidden', '?pass=hidden', ';jsessionid=hidden', '?a=1;token=hidden',
    '/%73k-hidden-0123456789abcdef', ';a=1;%74oken=hidden/mcp'];
  const all = [
    ...names.map((name) => ({ url: far, headers: { [name]: 'hidden' } })),
    ...values.map((value) => ({ url: far, headers: { 'x-team': value } })),
    ...addresses.map((rest) => ({ url: far + rest })),
  ];
  for (const config of all) {
    const refused = (error: any) => error.kind === 'config' && /use https/.test(error.message);
    assert.throws(() => checked('demo', config), refused, JSON.stringify(config));
  }
  const plain = ['', '/tokens/mcp', ';v=1', '?compass=north', '?bypass=1', '/100%', '?path=a&spat=1'];
  for (const rest of plain) checked('demo', { url: far + rest, headers: { 'x-team': 'Basic' } });
});

// ─── Headers of the later era ─────────────────────────────────────────────────────────────────────────────────

test('since 2026 headers repeat the revision, the method and the name; there is no session, GET or DELETE', async () => {
  const { url, log } = await serve(({ body }, response) => json(response, answer(body, {}), 200, { 'mcp-session-id': 'ignored' }));
  const { connection } = await openLater(url);
  await connection.request('tools/list');
  await connection.request('tools/call', { name: 'add' });
  await connection.request('prompts/get', { name: 'Übung' });
  await connection.request('resources/read', { uri: 'file:///a b', name: 'no' });
  await connection.close();
  const seen = log.map(({ verb, headers: h }) => [verb, h['mcp-protocol-version'], h['mcp-method'], h['mcp-name'], h['mcp-session-id']]);
  assert.deepEqual(seen, [
    ['POST', LATER, 'tools/list', undefined, undefined],
    ['POST', LATER, 'tools/call', 'add', undefined],
    ['POST', LATER, 'prompts/get', '=?base64?w5xidW5n?=', undefined],
    ['POST', LATER, 'resources/read', 'file:///a b', undefined],
  ]);
  assert.ok(log.every(({ body }) => body.params._meta[VERSION_KEY] === LATER));
});

test('trap 16, G13: values that do not fit a header are encoded, and only those', async () => {
  const plain = ['', 'a', 'a b', '~!', '=?base64?', 'a=?base64?x?=', '42', 'true', '=?utf-8?x?='];
  for (const value of plain) assert.equal(encode(value), value);
  const odd = ['ü', ' a', 'a ', ' ', '\ta', 'a\tb', 'a\nb', 'a\r\nx: y', '\0', '\x7f', '🌍', '=?base64?eA==?=', '=?base64??=', '=?BASE64?eA==?='];
  for (const value of odd) {
    assert.match(encode(value), /^=\?base64\?[A-Za-z0-9+/]+=*\?=$/, JSON.stringify(value));
    assert.equal(Buffer.from(encode(value).slice(9, -2), 'base64').toString(), value);
  }
  assert.deepEqual([encode(0), encode(-5), encode(true), encode(false)], ['0', '-5', 'true', 'false']);
  const { url, log } = await serve(({ body }, response) => json(response, answer(body, {})));
  const { connection } = await openLater(url);
  for (const name of [...plain, ...odd]) await connection.request('tools/call', { name });
  assert.deepEqual(log.map(({ headers }) => headers['mcp-name']), [...plain, ...odd].map(encode));
  assert.ok(log.every(({ headers }) => headers.x === undefined));
});

const schema = (properties: object) => ({ type: 'object', properties });
const wants = (header: unknown, type: unknown = 'string') => ({ type, 'x-mcp-header': header });

test('arguments that a tool wants to see in headers are mirrored, also those inside of others', () => {
  const mirrors = mirrorsOf(schema({
    branch: wants('Branch'), days: wants('Days', 'integer'), now: wants('Now', 'boolean'), plain: { type: 'string' },
    who: schema({ card: schema({ kind: wants('Card-Kind') }), 'x-mcp-header': { type: 'string' } }), properties: wants('P'), default: wants('D'),
  }));
  const mirrored = (args: unknown) => mirroredHeaders(mirrors, args);
  assert.deepEqual(mirrored({ branch: 'Zürich', days: 14, now: false, plain: 'x', who: { card: { kind: ' a' } }, properties: 'p', default: 'd' }), {
    'mcp-param-branch': '=?base64?WsO8cmljaA==?=', 'mcp-param-days': '14', 'mcp-param-now': 'false', 'mcp-param-card-kind': '=?base64?IGE=?=',
    'mcp-param-p': 'p', 'mcp-param-d': 'd',
  });
  assert.deepEqual(mirrored({ branch: '', days: 0 }), { 'mcp-param-branch': '', 'mcp-param-days': '0' });
  for (const args of [undefined, null, 'x', [], {}, { branch: null, days: undefined, who: null }, { who: { card: 'x' } }, { branch: {}, days: [1] }])
    assert.deepEqual(mirrored(args), {}, JSON.stringify(args));
  assert.deepEqual(mirroredHeaders(mirrorsOf(schema({ constructor: wants('C'), toString: wants('T') })), {}), {}, 'not what objects inherit');
  assert.deepEqual(mirrorsOf({ ...schema({ a: { type: 'string', default: { 'x-mcp-header': 'x' }, enum: [{ 'x-mcp-header': '' }] } }) }), [], 'data is no schema');
  for (const odd of [undefined, null, 5, [], true, { properties: [] }]) assert.deepEqual(mirrorsOf(odd), []);
});

const badSchemas: Record<string, object> = {
  'an empty name': schema({ a: wants('') }),
  'a space': schema({ a: wants('a b') }),
  'a colon': schema({ a: wants('a:b') }),
  'a line feed': schema({ a: wants('a\r\nx: y') }),
  'beyond ASCII': schema({ a: wants('Zürich') }),
  'no string': schema({ a: wants(5) }),
  'null': schema({ a: wants(null) }),
  'a number': schema({ a: wants('A', 'number') }),
  'an object': schema({ a: wants('A', 'object') }),
  'an array': schema({ a: wants('A', 'array') }),
  'no type': schema({ a: { 'x-mcp-header': 'A' } }),
  'many types': schema({ a: wants('A', ['string', 'null']) }),
  'the same twice': schema({ a: wants('Same'), b: schema({ c: wants('sAME') }) }),
  'at a root that is a string': wants('A'),
  'at the root': { ...schema({}), 'x-mcp-header': 'A' },
  'in items': schema({ a: { type: 'array', items: wants('A') } }),
  'in items of properties': schema({ a: { type: 'array', items: schema({ b: wants('A') }) } }),
  'in anyOf': schema({ a: { anyOf: [wants('A')] } }),
  'in oneOf at the root': { type: 'object', oneOf: [schema({ a: wants('A') })] },
  'in $defs': { ...schema({ a: { $ref: '#/$defs/a' } }), $defs: { a: wants('A') } },
  'in additionalProperties': { ...schema({}), additionalProperties: wants('A') },
  'in if and then': { ...schema({}), if: schema({}), then: schema({ a: wants('A') }) },
};

test('trap 15: a tool with a bad annotation is left out with a warning that names it, and the others stay', async () => {
  for (const [what, inputSchema] of Object.entries(badSchemas)) assert.throws(() => mirrorsOf(inputSchema), Error, what);
  const good = { name: 'good', inputSchema: schema({ a: wants('A') }) };
  const bad = Object.entries(badSchemas).map(([what, inputSchema]) => ({ name: `bad: ${what}`, inputSchema }));
  const { url, asked } = await serve(({ body }, response) =>
    json(response, answer(body, body.method === 'tools/list' ? { tools: [...bad, good, { name: 'plain' }] } : text('ok'))));
  const { connection, warnings } = await openLater(url, { extensions: [mirrorArguments] });
  assert.deepEqual((await connection.listTools()).map(({ name }) => name), ['good', 'plain']);
  for (const { name } of bad) assert.ok(warnings.some((warning) => warning.includes(`"${name}"`)), name);
  await connection.callTool('good', { a: 'x' });
  await connection.callTool('plain', { a: 'x' });
  assert.deepEqual(asked('tools/call').map(({ headers }) => headers['mcp-param-a']), ['x', undefined]);
});

test('nothing is mirrored, and no tool left out, in the earlier era', async () => {
  const tools = [{ name: 'bad', inputSchema: schema({ a: wants('') }) }, { name: 'good', inputSchema: schema({ a: wants('A') }) }];
  const { url, asked } = await peer({ 'tools/list': () => ({ tools }) });
  const { connection, warnings } = await openTo(url, { extensions: [mirrorArguments] });
  assert.equal((await connection.listTools()).length, 2);
  await connection.callTool('good', { a: 'x' });
  assert.ok(!Object.keys(asked('tools/call')[0]!.headers).some((name) => name.startsWith('mcp-param') || name === 'mcp-method'));
  assert.deepEqual(warnings, []);
});

test('a mismatch of headers makes us look at the tools again, and call once more, and not a third time', async () => {
  let header = 'Old';
  const { url, asked, log } = await serve(({ body, headers }, response) => {
    if (body.method === 'tools/list') return json(response, answer(body, { tools: [{ name: 'x', inputSchema: schema({ a: wants(header) }) }] }));
    if (headers['mcp-param-new'] === 'v') return json(response, answer(body, text('matched')));
    const code = body.params.arguments.a === 'other' ? -32602 : -32020;
    return json(response, { jsonrpc: '2.0', id: body.id, error: { code, message: 'no' } }, 400);
  });
  const changes: unknown[] = [];
  const { connection } = await openLater(url, plugged({ changed: () => void changes.push(1) }, { extensions: [mirrorArguments] }));
  await connection.listTools();
  header = 'New';
  assert.equal(await call(connection, 'x', { a: 'v' }), 'matched');
  assert.deepEqual(log.map(({ body }) => body.method), ['tools/list', 'tools/call', 'tools/list', 'tools/call']);
  assert.deepEqual(changes, [1], 'whoever keeps the list must know');
  header = 'Other';
  assert.equal((await rejection(connection.callTool('x', { a: 'w' }))).code, -32020);
  assert.equal(asked('tools/call').length, 4);
  assert.equal((await rejection(connection.callTool('x', { a: 'other' }))).code, -32602);
  assert.equal(asked('tools/call').length, 5, 'another refusal is no reason to call again');
});

// ─── HTTP+SSE, as it was in 2024 ──────────────────────────────────────────────────────────────────────────────

/** A server of 2024: `endpoint` is what it names as the address for messages. */
function old(endpoint: (url: string) => string, { refusal = 405, ways = {} as Record<string, (given: Asked, say: (message: unknown) => void) => unknown> } = {}) {
  let listening: Asked;
  const say = (message: unknown) => void listening.response.write(event(message, { event: 'message' }));
  const all: typeof ways = {
    initialize: ({ body }) => say(answer(body, { protocolVersion: '2024-11-05', capabilities: { tools: {} } })),
    'tools/call': (given) => say(said(given, 'from 2024')),
    ...ways,
  };
  return serve((given, response) => {
    if (given.verb === 'GET') return void stream((listening = given).response, event(endpoint(`http://${given.headers.host}`), { event: 'endpoint' }));
    if (!given.path.startsWith('/messages')) return void response.writeHead(refusal).end('Cannot POST');
    const result = all[given.body.method ?? 'answer']?.(given, say);
    if (!response.headersSent && result !== 'silence') response.writeHead(202).end('Accepted');
    return undefined;
  });
}

test('the calculator of 2024 is found and answers, asks and tells', async () => {
  const { url } = await calculator('sse');
  const changes: unknown[] = [];
  const { connection, warnings } = await openTo(url, plugged({
    capabilities: { elicitation: {} },
    handlers: { 'elicitation/create': () => ({ action: 'decline' }), 'notifications/tools/list_changed': () => void changes.push(1) },
  }));
  assert.equal(await call(connection, 'add', { a: 2, b: 40 }), '42');
  assert.equal(await call(connection, 'confirm'), '{"action":"decline"}');
  await call(connection, 'grow');
  await until(() => changes.length === 1);
  await connection.close();
  assert.deepEqual(warnings, []);
});

test('whoever refuses initialize with 400, 404 or 405 is asked for a stream; the address in it may be relative or whole', async () => {
  const addresses = [() => '/messages?s=1', () => 'messages?s=1', (url: string) => `${url}/messages?s=1`];
  for (const [n, refusal] of [400, 404, 405].entries()) {
    const { url, log } = await old(addresses[n]!, { refusal });
    const { connection, warnings } = await openTo(url, {}, { headers: { authorization: 'Bearer t' } });
    assert.equal(connection.server!.protocolVersion, '2024-11-05');
    assert.equal(await call(connection, 'x'), 'from 2024');
    assert.deepEqual(log.slice(0, 3).map(({ verb, path }) => `${verb} ${path}`), ['POST /mcp', 'GET /mcp', 'POST /messages?s=1']);
    for (const { verb, headers } of log) {
      assert.deepEqual([headers.authorization, headers['mcp-protocol-version'], headers['mcp-session-id']], ['Bearer t', undefined, undefined], verb);
      if (verb === 'POST') assert.equal(headers['content-type'], 'application/json');
    }
    await connection.close();
    assert.ok(log.find(({ verb }) => verb === 'GET')!.isOver || (await until(() => log.every(({ isOver }) => isOver)), true));
    assert.deepEqual(warnings, []);
  }
});

test('an address at another server is refused, and that one receives nothing', async () => {
  const other = await peer();
  for (const address of [other.url, `//127.0.0.1:${other.port}/`, `http://localhost:${other.port}/`, 'http://[', 'javascript:1', 'file:///x']) {
    const { url, asked } = await old(() => address);
    const error = await rejection(openTo(url, {}, { headers: { authorization: 'Bearer secret' } }));
    assert.match(error.message, /HTTP 405/);
    await until(() => asked('GET')[0]!.isOver);
  }
  assert.deepEqual(other.log, []);
});

test('whoever is no server of 2024 either is reported by what it said to initialize', async () => {
  const refuse = (_: Asked, response: any) => json(response, { jsonrpc: '2.0', id: null, error: { code: -32000, message: 'bad host' } }, 400);
  const gets: Record<string, (given: Asked, response: any) => unknown> = {
    'no GET': (_, response) => response.writeHead(405).end(),
    'no stream': (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>Hello</p>'),
    'a stream that ends': (_, response) => whole(response, ': hello\n\n'),
    'a stream of other things': (_, response) => void stream(response, event(note('notifications/message'))),
    'an empty stream': (_, response) => void stream(response),
    'no headers': () => {},
  };
  await Promise.all(Object.entries(gets).map(async ([what, GET]) => {
    const { url, asked } = await peer({ initialize: refuse, GET });
    const error = await rejection(openTo(url));
    assert.match(error.message, /bad host/, what);
    await until(() => asked('GET').every(({ isOver }) => isOver), `the end of ${what}`);
  }));
});

test('a refusal that only the later era knows is no reason to look for a server of 2024', async () => {
  for (const code of [-32020, -32021, -32022]) {
    const { url, asked } = await peer({ initialize: ({ body }, response) => json(response, { jsonrpc: '2.0', id: body.id, error: { code, message: 'no' } }, 400) });
    assert.equal((await rejection(openTo(url))).code, code);
    assert.equal(asked('GET').length, 0);
  }
});

test('2024: the end of the stream is the end of the connection, told once; a message that cannot be posted fails alone', async () => {
  const { url, asked } = await old(() => '/messages', {
    ways: { ping: ({ response }) => response.writeHead(500).end('<title>broken</title>'), 'tools/list': () => 'silence' },
  });
  const ended: Error[] = [];
  const { connection } = await openTo(url, plugged({ closed: (why) => void ended.push(why) }));
  const error = await rejection(connection.request('ping'));
  assert.deepEqual([error.kind, /HTTP 500: "broken"/.test(error.message)], ['lost', true], error.message);
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
  const sse = (url: string, options = {}) => openTo(url, { transports: httpTransports, ...options }, { type: 'sse', headers: { 'X-Team': 'blue' } });
  const { url, log } = await old(() => '/messages');
  const { connection } = await sse(url);
  assert.equal(await call(connection, 'x'), 'from 2024');
  await connection.close();
  assert.deepEqual([log[0]!.verb, log.every(({ headers }) => headers['x-team'] === 'blue')], ['GET', true]);
  await until(() => log[0]!.isOver);

  const other = await peer();
  const cases: [string, RegExp, (given: Asked, response: any) => unknown][] = [
    ['protocol', /somebody else/, (_, response) => void stream(response, event(other.url, { event: 'endpoint' }))],
    ['start', /no stream of events \(HTTP 404\)/, (_, response) => response.writeHead(404).end()],
    ['auth', /wants a login \(HTTP 401\)/, (_, response) => response.writeHead(401).end()],
    ['auth', /refuses us \(HTTP 403\): "no entry"/, (_, response) => response.writeHead(403).end('no entry')],
    ['start', /before it named an address/, (_, response) => whole(response, ': hello\n\n')],
    ['start', /named no address within 5 s/, (_, response) => void stream(response, ': hello\n\n')],
    ['start', /named no address within 5 s/, () => {}],
  ];
  await Promise.all(cases.map(async ([kind, message, GET]) => {
    const { url, asked } = await peer({ GET });
    const error = await rejection(sse(url));
    assert.equal(error.kind, kind, error.message);
    assert.match(error.message, message);
    await until(() => asked('GET')[0]!.isOver, 'the end of its stream');
  }));
  assert.equal((await rejection(sse(await nobody()))).kind, 'unreachable');
  assert.deepEqual(other.log, []);
  for (const type of ['http', 'streamable-http']) assert.equal(await call((await openTo(other.url, { transports: httpTransports }, { type })).connection, 'x'), '{}');
});

test('2024: too much on the stream ends it, and noise does not', async () => {
  const { url, asked } = await old(() => '/messages');
  const ended: any[] = [];
  const { connection, wire } = await openTo(url, plugged({ closed: (why) => void ended.push(why) }, { maxLineBytes: 2 ** 20 }));
  asked('GET')[0]!.response.write(event('noise') + event(ask('q', 'ping'), { event: 'other' }));
  assert.equal(await call(connection, 'x'), 'from 2024');
  assert.ok(!wire.some(([, message]) => message.id === 'q'), 'an event of another name is not for us');
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
    if (transport.hasStreamPerRequest) await transport.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
    await until(() => asked('GET').length === 1);
    await until(() => messages.length === 1);
    asked('GET')[0]!.response.write(event(` ${'['.repeat(100_000)}`) + event('noise') + event(note('notifications/message')));
    await until(() => messages.length === 3);
    assert.deepEqual(messages.slice(1), ['noise', note('notifications/message')], way);
    assert.deepEqual(drops.map(({ kind }) => kind), ['limit'], way);
    assert.match(drops[0].message, /^MCP server "demo" .* sent a message with more than 500 levels, which is dropped$/);
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
