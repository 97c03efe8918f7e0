// Chapter 20: streams that break off and are taken up again, calls that are given up, and events by
// the standard.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { call, cleanUp, pause, plugged, rejection, until } from './help/basics.ts';
import {
  answer,
  ask,
  event,
  note,
  openLater,
  openTo,
  peer,
  said,
  stream,
  text,
  whole,
  type Asked,
} from './help/http-servers.ts';

afterEach(cleanUp);

// ─── Resumption ───────────────────────────────────────────────────────────────────────────────────────────────

/** A server whose stream for a call ends early. `parts[0]` is what the POST brings, the others what each GET brings. */
function broken(parts: ((given: Asked) => string)[], options?: Parameters<typeof peer>[1]) {
  let called: Asked;
  let gets = 0;
  return peer(
    {
      'tools/call': (given, response) => whole(response, parts[0]!((called = given))),
      GET: ({ headers }, response) => {
        if (headers['last-event-id'] === undefined) return response.writeHead(405).end();
        return whole(response, parts[++gets]?.(called) ?? '');
      },
    },
    options,
  );
}
const resumed = ({ asked }: { asked: (what: string) => Asked[] }) =>
  asked('GET')
    .map(({ headers }) => headers['last-event-id'])
    .filter((id) => id !== undefined);

test('trap 8: a stream that ends before the answer is taken up by GET, from its last event, in the same session', async () => {
  const server = await broken(
    [
      () => event('', { id: 'e-1', retry: 10 }),
      (given) => event(said(given, 'at last'), { id: 'e-2' }),
    ],
    { session: 's' },
  );
  const { connection } = await openTo(server.url);
  assert.equal(await call(connection, 'x'), 'at last');
  assert.deepEqual(resumed(server), ['e-1']);
  const { headers } = server.asked('GET').at(-1)!;
  assert.deepEqual(
    [headers['mcp-session-id'], headers['mcp-protocol-version'], headers.accept],
    ['s', '2025-11-25', 'text/event-stream'],
  );
  assert.equal(server.asked('tools/call').length, 1);
});

test('a stream may be taken up many times, if there is news each time, and notices in it are heard', async () => {
  const news = (n: number) =>
    event(note('notifications/message', { data: n }), {
      id: `é-${n}`,
      ...(n === 0 && { retry: 1 }),
    });
  const server = await broken([
    ...Array.from({ length: 9 }, (_, n) => () => news(n)),
    (given) => event(said(given)),
  ]);
  const told: unknown[] = [];
  const { connection } = await openTo(
    server.url,
    plugged({ handlers: { 'notifications/message': ({ data }) => void told.push(data) } }),
  );
  assert.equal(await call(connection, 'x'), 'said');
  assert.deepEqual(told, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  const utf8 = resumed(server).map((id) => Buffer.from(`${id}`, 'latin1').toString());
  assert.deepEqual(utf8, ['é-0', 'é-1', 'é-2', 'é-3', 'é-4', 'é-5', 'é-6', 'é-7', 'é-8']);
});

test('without an id, or with one that was taken back, there is nothing to go on from: the call is lost at once', async () => {
  for (const parts of [
    '',
    ': hello\n\n',
    'retry: 10\n\n',
    event(note('notifications/message')),
    'id: 5\ndata: \n\nid\ndata: \n\n',
  ]) {
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
    const server = await broken([
      () => event('', { id: 'e-1', retry: 1 }),
      ...Array.from({ length: 50 }, () => () => again),
    ]);
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
    const server = await peer(
      {
        'tools/call': (_, response) => {
          whole(response, event('', { id: 'e-1', retry: 200 }));
          isDown = true;
          if (way === 'gone') setTimeout(() => void server.stop(), 50);
        },
        GET: (_, response) =>
          void response.writeHead(!isDown ? 405 : way === 'expired' ? 404 : 503).end(),
      },
      { session: 's' },
    );
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
  for (let n = 0; n < 3; n++)
    assert.equal((await rejection(connection.request('ping'))).kind, 'unreachable');
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
  const second = await peer(
    { GET: (_, response) => whole(response, event(said(called, 'after a restart'))) },
    { port: first.port },
  );
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
    GET: ({ headers }, response) =>
      headers['last-event-id']
        ? whole(response, event(said(called, 'whole')))
        : response.writeHead(405).end(),
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
      asked('GET')[0]!.response.write(
        event(answer({ id: body.params.requestId }, text('late'))) + event(ask('q', 'ping')),
      );
      response.writeHead(202).end();
    },
  });
  const { connection, warnings } = await openTo(url);
  await until(() => asked('GET').length > 0); // on which the late answer comes
  assert.equal((await rejection(connection.callTool('x', {}, { timeoutMs: 100 }))).kind, 'timeout');
  await until(() => asked('POST').some(({ body }) => body.id === 'q'));
  assert.deepEqual(asked('notifications/cancelled')[0]!.body.params, {
    requestId: asked('tools/call')[0]!.body.id,
    reason: 'timeout',
  });
  assert.ok(asked('tools/call')[0]!.isOver);
  assert.deepEqual(warnings, []);
});

test('since 2026 closing the stream is the cancellation, and nothing is posted', async () => {
  for (const way of ['before headers', 'in the stream']) {
    const { url, asked, log } = await peer({
      'tools/call': (_, response) =>
        void (way === 'in the stream' && stream(response, ': working\n\n')),
    });
    const { connection } = await openLater(url);
    const controller = new AbortController();
    const called = rejection(connection.callTool('x', {}, { signal: controller.signal }));
    await until(() => asked('tools/call').length === 1);
    controller.abort();
    assert.equal((await called).kind, 'aborted');
    await until(() => asked('tools/call')[0]!.isOver);
    await connection.request('tools/list'); // later than the notice would be
    assert.deepEqual(
      log.map(({ body }) => body.method),
      ['tools/call', 'tools/list'],
      way,
    );
  }
});

test('a call that is given up while it waits for the end of the handshake is never sent', async () => {
  const { url, asked } = await peer({
    'notifications/initialized': async (_, response) => (
      await pause(300), response.writeHead(202).end()
    ),
  });
  const { connection } = await openTo(url);
  assert.equal((await rejection(connection.callTool('x', {}, { timeoutMs: 50 }))).kind, 'timeout');
  await connection.request('ping');
  assert.equal(asked('tools/call').length, 0);
});

test('a call is cancelled while it waits to be resumed', async () => {
  const server = await broken([() => event('', { id: 'e-1', retry: 1e10 })]); // longer than a timer can be
  const { connection } = await openTo(server.url);
  assert.equal(
    (await rejection(connection.callTool('x', {}, { timeoutMs: 1500 }))).kind,
    'timeout',
  );
  await until(() => server.asked('notifications/cancelled').length === 1);
  assert.deepEqual(resumed(server), []);
});

// ─── Events by the standard ───────────────────────────────────────────────────────────────────────────────────

test('events: every end of line, cut anywhere, with comments, several lines of data and fields that nobody knows', async () => {
  for (const end of ['\n', '\r\n', '\r']) {
    const lines = (given: Asked) => [
      '\ufeff: a comment',
      'event: ping',
      'data: not for us {',
      '',
      'retry: soon',
      'unknown: field',
      'event: message',
      ...JSON.stringify(said(given, 'Grüße 🌍 �'), null, 1)
        .split('\n')
        .map((line) => `data:${line}`),
      '',
      ':',
      '',
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
  const { url } = await peer({
    'tools/call': (given, response) => whole(response, `data: ${JSON.stringify(said(given))}\n`),
  });
  const { connection } = await openTo(url);
  assert.equal((await rejection(connection.callTool('x'))).kind, 'lost');
});

test('an event that is not JSON fails its call, and no other', async () => {
  const { url } = await peer({
    'tools/call': ({ body }, response) =>
      body.params.name === 'bad' ? void stream(response, event('{"jsonrpc"')) : text('good'),
  });
  const { connection } = await openTo(url);
  const error = await rejection(connection.callTool('bad'));
  assert.equal(error.kind, 'protocol');
  assert.match(error.message, /not JSON/);
  assert.equal(await call(connection, 'x'), 'good');
});

test('a word between the messages of a stream is noise, and the answer after it arrives', async () => {
  const words = ['keepalive', '[DONE]', '5', '{"type":"heartbeat"}'].map((each) => event(each));
  const { url } = await peer({
    'tools/call': (given, response) => whole(response, ...words, event(said(given))),
  });
  const { connection, warnings } = await openTo(url);
  assert.equal(await call(connection, 'x'), 'said');
  assert.equal(warnings.length, 1);
  assert.match(warnings[0]!, /something other than messages: "keepalive"/);
});
