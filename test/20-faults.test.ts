// Chapter 20: Streamable HTTP against servers that do it in every wrong way, and much of it at
// once.

import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { afterEach, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { httpTransports } from '../chapters/20-streamable-http/http.ts';
import { readChunks } from '../chapters/20-streamable-http/reply.ts';
import { call, cleanUp, later, pause, plugged, rejection, run, until } from './help/basics.ts';
import {
  answer,
  bare,
  event,
  json,
  nobody,
  note,
  openLater,
  openTo,
  peer,
  said,
  stream,
  text,
  transportTo,
  whole,
  type Asked,
} from './help/http-servers.ts';

afterEach(cleanUp);

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
    'by an upgrade': ({ response }) =>
      response.socket!.write(
        'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
      ),
    'with nonsense': ({ response }) => response.socket!.write('SSH-2.0-OpenSSH_9.6\r\n'),
    'in a body': ({ response }) => {
      response
        .writeHead(200, { 'content-type': 'application/json', 'content-length': 1000 })
        .write('{"jsonrpc"');
      setTimeout(() => response.socket!.resetAndDestroy(), 50);
    },
    'in a packed body': ({ response }) => {
      response
        .writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
        .write(gzipSync('{}').subarray(0, 12));
      setTimeout(() => response.socket!.resetAndDestroy(), 50);
    },
    'in a stream': ({ response }) => {
      stream(response, ': hello\n\n');
      setTimeout(() => response.socket!.resetAndDestroy(), 50);
    },
    'where it is badly packed': ({ response }) =>
      void response
        .writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
        .end('{}{}{}{}{}'),
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

test('a connection that was kept open and turns out to be closed: what is safe is sent again, a call is not', async () => {
  const used = new WeakSet<object>();
  const received: string[] = [];
  const { url } = await bare((socket, request) => {
    if (used.has(socket)) return void socket.resetAndDestroy();
    used.add(socket);
    const body = JSON.parse(request.split('\r\n\r\n')[1]!);
    received.push(body.method);
    const reply = JSON.stringify(answer(body, text(body.method)));
    const head = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ';
    socket.write(`${head}${reply.length}\r\n\r\n${reply}`);
  });
  const { connection } = await openLater(url);
  await connection.connect();
  await connection.request('ping');
  assert.equal((await rejection(connection.callTool('x'))).kind, 'lost');
  for (let n = 0; n < 3; n++) await connection.callTool('x'); // each on a connection of its own
  assert.deepEqual(received, ['ping', ...Array(3).fill('tools/call')]);
});

test('who was seen to close a connection without a word gets a new one for each request', async () => {
  const { url, asked } = await peer({
    ping: ({ body }, response) => {
      const { socket } = response;
      response.on('finish', () => socket!.end());
      json(response, answer(body, {}));
    },
  });
  const { connection } = await openTo(url);
  await connection.request('ping');
  await pause(100); // it is seen
  for (let n = 0; n < 3; n++) {
    await connection.request('ping');
    await connection.callTool('x'); // at once: the end of the last connection has not come yet
  }
  assert.equal(asked('tools/call').length, 3);
});

test('silence ends by the limit of the call, before the headers and in the stream; close() frees what hangs', async () => {
  const { url, asked } = await peer({
    'tools/call': ({ body }, response) =>
      void (body.params.name === 'stream' && stream(response, ': hello\n\n')),
  });
  const { connection } = await openTo(url);
  for (const name of ['silence', 'stream'])
    assert.equal(
      (await rejection(connection.callTool(name, {}, { timeoutMs: 100 }))).kind,
      'timeout',
    );
  const hanging = ['silence', 'stream'].map((name) => rejection(connection.callTool(name)));
  await until(() => asked('tools/call').length === 4);
  await connection.close();
  assert.deepEqual(
    (await Promise.all(hanging)).map(({ kind }) => kind),
    ['closed', 'closed'],
  );
  await until(() => asked('tools/call').every(({ isOver }) => isOver));
});

test('a status that refuses: its kind tells whether the call can be repeated, and its words why', async () => {
  const page =
    '<!doctype html><html><head><title>\n 502 \x1b[2JBad   Gateway </title></head><body><h1>x</h1></body></html>';
  const cases: [number, string, Record<string, string>, string, RegExp][] = [
    [500, 'out of order', {}, 'lost', /tools\/call with HTTP 500: "out of order"/],
    [502, page, { 'content-type': 'text/html' }, 'lost', /HTTP 502: "502 \\u001b\[2JBad Gateway"/],
    [
      503,
      '<p>We are <b>down</b></p>',
      { 'retry-after': 'Fri, 01 Jan 2027 00:00:00 GMT' },
      'unreachable',
      /"We are down".*Fri, 01 Jan 2027/,
    ],
    [429, '', { 'retry-after': '7' }, 'unreachable', /HTTP 429: "no explanation".*7 s/],
    [418, `${'long '.repeat(100_000)}`, {}, 'protocol', /HTTP 418: "long long/],
    [401, '', { 'www-authenticate': 'Bearer scope="a"' }, 'auth', /login \(HTTP 401\)/],
    [403, '<title>Not for you</title>', {}, 'auth', /refuses us \(HTTP 403\): "Not for you"/],
  ];
  for (const [status, words, headers, kind, message] of cases) {
    const { url } = await peer({
      'tools/call': (_, response) => void response.writeHead(status, headers).end(words),
    });
    const { connection } = await openTo(`${url}?key=hidden`);
    const error = await rejection(connection.callTool('x'));
    assert.equal(error.kind, kind, `${status}`);
    assert.match(error.message, message);
    assert.ok(error.message.length < 500);
    assert.doesNotMatch(error.message, /[\x00-\x1f]|hidden/);
    if (status === 401)
      assert.deepEqual([error.status, error.challenge], [401, 'Bearer scope="a"']);
    await connection.request('ping');
  }
});

test('of a refusal that is cut off, or packed, its words are told all the same', async () => {
  const { url } = await peer({
    'tools/call': ({ body }, response) => {
      if (body.params.name === 'packed')
        return void response
          .writeHead(500, { 'content-encoding': 'gzip' })
          .end(gzipSync('out of order'));
      response.writeHead(500, { 'content-length': 1000 }).write('out of');
      return void setTimeout(() => response.socket!.resetAndDestroy(), 50);
    },
  });
  const { connection } = await openTo(url);
  assert.match((await rejection(connection.callTool('cut'))).message, /HTTP 500: "out of"/);
  assert.match(
    (await rejection(connection.callTool('packed'))).message,
    /HTTP 500: "out of order"/,
  );
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
    const { url } = await peer({
      'tools/call': (_, response) =>
        void response.writeHead(status, type ? { 'content-type': type } : {}).end(body),
    });
    const { connection } = await openTo(url, { callTimeoutMs: 1e8 });
    const error = await rejection(connection.callTool('x'));
    assert.equal(error.kind, 'protocol');
    assert.match(error.message, message);
  }
  for (const type of ['application/vnd.mcp+json', 'text/plain; charset=utf-8', undefined]) {
    const { url } = await peer({
      'tools/call': (given, response) =>
        void response
          .writeHead(200, type ? { 'content-type': type } : {})
          .end(JSON.stringify(said(given))),
    });
    const { connection } = await openTo(url);
    assert.equal(await call(connection, 'x'), 'said', 'JSON under another name');
  }
  // Batches went with 2025-06-18: the answer in one is none, and the call does not wait for another.
  for (const send of [
    ({ body, response }: Asked) => json(response, [answer(body, { content: [] })]),
    ({ body, response }: Asked) =>
      whole(response, `data: ${JSON.stringify([answer(body, { content: [] })])}\n\n`),
  ]) {
    const batching = await peer({ 'tools/call': (given) => void send(given) });
    const { connection: elder } = await openTo(batching.url, { callTimeoutMs: 1e8 });
    const error = await rejection(elder.callTool('x'));
    assert.match(error.message, /something else: \[|closed the stream before it answered/);
  }
  const { url } = await peer({ 'tools/call': (_, response) => void response.writeHead(202).end() });
  const { connection } = await openLater(url, { callTimeoutMs: 1e8 });
  assert.equal(
    (await rejection(connection.callTool('x'))).kind,
    'protocol',
    'since 2026 there is no other way for it to come',
  );
});

test('a body with a byte order mark, spaces around it and a type in capitals is read', async () => {
  const { url } = await peer({
    'tools/call': (given, response) =>
      void response
        .writeHead(200, { 'content-type': 'Application/JSON; charset=utf-8' })
        .end(`\ufeff\n ${JSON.stringify(said(given))} \n`),
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
      response
        .writeHead(200, { 'content-type': type, 'content-encoding': 'gzip' })
        .end(gzipSync(body));
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
        return void response
          .writeHead(way === 'error' ? 500 : 200, { 'content-type': 'application/json' })
          .end(way === 'spaces' ? `\n ${words}` : words);
      },
    });
    const { connection } = await openTo(url);
    assert.equal(
      (await rejection(connection.callTool('x'))).kind,
      way === 'error' ? 'lost' : 'limit',
      way,
    );
    await connection.request('ping');
  }
});

test('reading a body comes to an end, whatever becomes of it', async () => {
  const parts = () =>
    Readable.from(
      ['a', 'b', 'c'].map((part) => Buffer.from(part)),
      { objectMode: false },
    );
  const read = async (body: Readable, onChunk = (_: string) => {}) => {
    const seen: string[] = [];
    const chunks = readChunks(body, (chunk) => (seen.push(`${chunk}`), onChunk(`${chunk}`)));
    const end = await chunks.then(
      () => 'whole',
      (error) => error.message,
    );
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
  assert.equal(
    await read(refused, () => {
      throw new Error('too much');
    }),
    'too much: a',
  );
  assert.ok(refused.destroyed);
});

test('a redirect within the server is followed, with method, body and headers', async () => {
  for (const status of [301, 302, 307, 308]) {
    const { url, asked } = await peer(
      {
        'tools/call': (given, response) =>
          given.path === '/mcp'
            ? response.writeHead(status, { location: '/v2/mcp?x=1' }).end()
            : text('followed'),
      },
      { session: 's' },
    );
    const { connection } = await openTo(url, {}, { headers: { 'x-team': 'blue' } });
    assert.equal(await call(connection, 'x'), 'followed', `${status}`);
    const [, second] = asked('tools/call');
    assert.deepEqual(
      [second!.path, second!.verb, second!.headers['x-team'], second!.headers['mcp-session-id']],
      ['/v2/mcp?x=1', 'POST', 'blue', 's'],
    );
  }
});

test('G11, G4: a redirect to another server is refused, and that one receives nothing at all', async () => {
  const other = await peer();
  for (const location of [
    other.url,
    other.url.replace('127.0.0.1', 'localhost'),
    `//127.0.0.1:${other.port}/x`,
    'https://127.0.0.1/',
    'file:///etc/passwd',
    'http://[',
  ]) {
    for (const status of [301, 302, 303, 307, 308]) {
      const { url } = await peer(
        { 'tools/call': (_, response) => response.writeHead(status, { location }).end() },
        { session: 's' },
      );
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
  const { url, asked, log } = await peer(
    {
      'tools/call': (_, response) => response.writeHead(303, { location: '/done?x=1' }).end(),
      GET: ({ path }, response) => {
        if (!path.startsWith('/done')) return response.writeHead(405).end();
        const { id } = asked('tools/call')[0]!.body;
        return json(response, answer({ id }, { content: [{ type: 'text', text: 'seen' }] }));
      },
    },
    { session: 's' },
  );
  const { connection } = await openTo(url, {}, { headers: { 'x-team': 'blue' } });
  assert.equal(await call(connection, 'x', { secret: 'said-once' }), 'seen');
  const got = log.find(({ path }) => path.startsWith('/done'))!;
  assert.deepEqual(
    [got.verb, got.headers['x-team'], got.headers['content-type']],
    ['GET', 'blue', undefined],
  );
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
      assert.deepEqual(
        [error.kind, error.message.includes(`HTTP ${status}`)],
        ['protocol', true],
        error.message,
      );
      assert.ok(log.every(({ path }) => path === '/mcp'));
      await connection.close();
    }
  assert.deepEqual(other.log, []);
});

test('a redirect that never ends is given up', async () => {
  const { url, asked } = await peer({
    'tools/call': ({ path }, response) => response.writeHead(307, { location: `${path}x` }).end(),
  });
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
  const server = await peer({}, { keepsConnections: false });
  const ended: Error[] = [];
  const { connection } = await openTo(
    server.url,
    plugged({ closed: (why) => (ended.push(why), void connection.close()) }),
  );
  await until(() => server.asked('GET')[0]?.isOver); // a late one would be the first failure
  await server.stop();
  const kinds = [];
  for (let n = 0; n < 3; n++) kinds.push((await rejection(connection.request('ping'))).kind);
  await until(() => ended.length > 0); // the third one fails first, with its own error
  kinds.push((await rejection(connection.request('ping'))).kind);
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
  const first = await peer({}, { keepsConnections: false });
  const ended: Error[] = [];
  const { connection } = await openTo(
    first.url,
    plugged({ closed: (why) => void ended.push(why) }),
  );
  await until(() => first.asked('GET')[0]?.isOver);
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
  const { url } = await peer({
    'tools/call': (given, response) =>
      void stream(response, event(said(given)), event(note('a')), event(note('b'))),
  });
  const { transport, messages, ends, call } = await transportTo(url);
  const closing = until(() => messages.length > 0).then(() => transport.close());
  await call(1).catch(() => {});
  await closing;
  const count = messages.length;
  await pause(50);
  assert.deepEqual([messages.length, ends.length], [count, 1]);

  const other = await peer({
    'tools/call': (given, response) => whole(response, event(said(given)) + event(note('a'))),
  });
  const within = httpTransports.http('demo', { url: other.url }, 2 ** 20);
  const told: string[] = [];
  await within.start({
    message: () => (told.push('message'), within.close()),
    closed: () => told.push('closed'),
  });
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
  assert.deepEqual(
    await Promise.all(numbers.map((n) => call(connection, 'x', { n }))),
    numbers.map(String),
  );
  for (const n of numbers) assert.equal(await call(connection, 'x', { n: n * 50 }), `${n * 50}`);
  await pause(20);
  assert.deepEqual([warnings, told], [[], []]);
});

test('bodies of 1 MB and 20 MB, in both directions, as JSON and as a stream', async () => {
  const { url } = await peer({
    'tools/call': (given, response) => {
      const { size, of } = given.body.params.arguments;
      const message = said(given, `${of.length} ${'é'.repeat(size / 2)}`);
      return given.body.params.name === 'stream'
        ? whole(response, event(message))
        : json(response, message);
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
  const { url } = await peer(
    {
      GET: (_, response) => void stream(response),
      'tools/call': ({ body }, response) =>
        void (
          body.params.name === 'stream' && stream(response, event('', { id: 'e-1', retry: 1e9 }))
        ),
      'tools/list': (given, response) =>
        void stream(response, event(answer(given.body, { tools: [] }))),
      DELETE: () => {},
    },
    { session: 's' },
  );
  const { code, output } = await run('quiet-http.ts', [url]).ended;
  assert.equal(code, 0, output);
  assert.ok(JSON.parse(output).atExit < 60_000, 'else it waited for something');
});
