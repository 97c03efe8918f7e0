// What a server must do over HTTP: the door, messages, sessions, results, streams, and questions with a handshake.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Json, Message } from '../../mcp.ts';
import { until } from './basics.ts';
import {
  eventsIn,
  hello,
  lastId,
  laterCall,
  LATEST,
  listening,
  openSession,
  piped,
  request,
  send,
  SINCE,
  stream,
  textOf,
  toolCall,
  type Case,
  type Event,
} from './server-fixture.ts';

export const HTTP_CASES: Record<string, Case> = {
  async 'a foreign Host, a foreign Origin, and null are refused; each alone is enough'(
    subject,
    later,
  ) {
    const { port } = await listening(subject, later);
    const status = async (headers: Json) =>
      (await send(port, { method: 'GET', path: '/health', headers: headers as any })).status;
    assert.equal(await status({}), 200);
    assert.equal(await status({ origin: 'http://localhost:5173' }), 200);
    assert.equal(await status({ host: 'evil.example.com' }), 403);
    assert.equal(await status({ origin: 'https://evil.example.com' }), 403);
    assert.equal(await status({ origin: 'null' }), 403);
    assert.equal(
      await status({ host: 'evil.example.com', origin: 'http://evil.example.com' }),
      403,
    );
    assert.equal(
      (await send(port, { body: hello(), headers: { origin: 'https://evil.example.com' } })).status,
      403,
    );
  },

  async 'Host and Origin are names with a port, and nothing else; and Host is there once'(
    subject,
    later,
  ) {
    const { port } = await listening(subject, later);
    const status = async (headers: Json) =>
      (await send(port, { method: 'GET', path: '/health', headers: headers as any })).status;
    for (const host of [
      'evil@127.0.0.1',
      '127.0.0.1/evil',
      '127.0.0.1#evil',
      'localhost?evil',
      'local\thost',
      'localhost.',
      'localhost\\evil',
    ])
      assert.equal(await status({ host }), 403, host);
    for (const origin of [
      'http://evil@localhost',
      'http://localhost/evil',
      'http://localhost#evil',
      'HTTP://evil.example',
      'http://localhost, https://evil.example',
    ])
      assert.equal(await status({ origin }), 403, origin);
    const twice = connect(port, '127.0.0.1', () =>
      twice.write('GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n'),
    );
    const [answer] = await once(twice, 'data');
    twice.destroy();
    assert.match(`${answer}`, /^HTTP\/1.1 400 /);
  },

  async 'G43: without a token no page can read us, but one that was named: to the letter, and it need not be of this machine'(
    subject,
    later,
  ) {
    const origins = ['https://someone.example', 'http://localhost:5173'];
    const { port } = await listening(subject, later, { origins });
    for (const [origin, status, isRead] of [
      ['https://someone.example', 200, true],
      ['http://localhost:5173', 200, true],
      ['http://localhost:5174', 200, false], // it may knock; its browser tells it nothing
      ['http://127.0.0.1:5173', 200, false],
      ['http://someone.example', 403, false],
      ['https://someone.example:8443', 403, false],
      ['https://someone.example.evil.example', 403, false],
      ['https://SOMEONE.example', 403, false],
      ['null', 403, false],
      ['*', 403, false],
    ] as const) {
      const { headers, ...answer } = await send(port, { body: hello(), headers: { origin } });
      const allowed = headers['access-control-allow-origin'];
      assert.deepEqual([answer.status, allowed], [status, isRead ? origin : undefined], origin);
      assert.equal(headers.vary, 'Origin', origin);
    }
    const foreign = { host: 'evil.example', origin: origins[0]! };
    const { status, headers } = await send(port, { body: hello(), headers: foreign });
    assert.deepEqual([status, headers['access-control-allow-origin']], [403, undefined]);
  },

  async 'G43: a browser asks first, without the token: of methods and headers it hears those that we know, and nothing is called'(
    subject,
    later,
  ) {
    const { port, served } = await listening(subject, later, { token: 'sesame' });
    const wanted = 'authorization,mcp-param-region, traceparent,x-forwarded-for,cookie,mcp-méthode';
    const preflight = (origin: string, path = '/mcp') =>
      send(port, {
        method: 'OPTIONS',
        path,
        headers: {
          origin,
          'access-control-request-method': 'POST',
          'access-control-request-headers': Buffer.from(wanted).toString('latin1'),
        },
      });
    const { status, headers } = await preflight('http://localhost:5173');
    assert.equal(status, 204);
    assert.equal(headers['access-control-allow-origin'], 'http://localhost:5173');
    assert.equal(headers['access-control-allow-methods'], 'POST, GET, DELETE');
    const names = 'authorization, mcp-param-region, traceparent';
    assert.equal(headers['access-control-allow-headers'], names);
    assert.equal(headers['access-control-allow-credentials'], undefined);
    assert.equal(headers['access-control-allow-private-network'], undefined);
    assert.equal((await preflight('http://localhost:5173', '/elsewhere')).status, 404);
    assert.equal((await preflight('https://evil.example')).status, 403);
    assert.equal((await preflight('null')).status, 403);
    const program = await send(port, { method: 'OPTIONS' });
    assert.equal(program.status, 401, 'what is no page, is not asking for one');
    assert.equal(served.sessions, 0);
  },

  async 'G43: with a token a page of this machine can read all that it needs, refusals too; of /health nothing'(
    subject,
    later,
  ) {
    const { port } = await listening(subject, later, { token: 'sesame' });
    const origin = 'http://localhost:5173';
    const authorization = 'Bearer sesame';
    const allowed = async (given: Json) => {
      const headers = { origin, ...(given.headers as object) };
      const answer = await send(port, { ...given, headers } as any);
      return [answer.status, answer.headers['access-control-allow-origin']];
    };
    assert.deepEqual(await allowed({ body: hello() }), [401, origin]);
    assert.deepEqual(await allowed({ body: hello(), path: '/elsewhere' }), [404, origin]);
    const gone = { authorization, 'mcp-session-id': 'gone' };
    assert.deepEqual(await allowed({ body: request('ping'), headers: gone }), [404, origin]);
    assert.deepEqual(await allowed({ method: 'PUT', headers: { authorization } }), [405, origin]);
    assert.deepEqual(await allowed({ method: 'GET', path: '/health' }), [200, undefined]);
    const { status, headers } = await send(port, {
      body: hello(),
      headers: { origin, authorization },
    });
    assert.equal(status, 200);
    assert.ok(headers['mcp-session-id']);
    const exposed = headers['access-control-expose-headers'];
    assert.equal(exposed, 'Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After');
    const session = { origin, authorization, 'mcp-session-id': `${headers['mcp-session-id']}` };
    const listen = await stream(port, { method: 'GET', headers: session });
    assert.equal(listen.headers['access-control-allow-origin'], origin);
    listen.leave();
  },

  async 'G43: an origin is what browsers send: no star, no null, no path, nothing that looks alike'(
    subject,
    later,
  ) {
    for (const origin of [
      '*',
      'null',
      '',
      'someone.example',
      'https://someone.example/',
      'https://a b',
    ])
      await assert.rejects(
        listening(subject, later, { origins: [origin] }),
        /is not the origin of/,
      );
  },

  async 'paths, methods, types: 404, 405, 415, 406'(subject, later) {
    const { port } = await listening(subject, later);
    const post = async (headers: Record<string, string | undefined>) =>
      (await send(port, { body: hello(), headers })).status;
    assert.equal((await send(port, { path: '/elsewhere', body: hello() })).status, 404);
    assert.equal((await send(port, { path: '/?a=1', body: hello() })).status, 200);
    for (const method of ['PUT', 'OPTIONS', 'PATCH']) {
      const { status, headers } = await send(port, { method });
      assert.deepEqual(
        [status, headers.allow, headers['access-control-allow-origin']],
        [405, 'POST, GET, DELETE', undefined],
      );
    }
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'application/jsonx',
      undefined,
    ])
      assert.equal(await post({ 'content-type': type }), 415, type);
    assert.equal(await post({ 'content-type': 'Application/JSON; charset=utf-8' }), 200);
    assert.equal(await post({ 'content-encoding': 'gzip' }), 415);
    for (const accept of [
      'application/json',
      'text/event-stream',
      'text/html',
      'application/json, text/event-stream;q=0',
    ])
      assert.equal(await post({ accept }), 406, accept);
    for (const accept of [
      '*/*',
      undefined,
      'text/*;q=0.5, application/json',
      'application/json,text/event-stream',
    ])
      assert.equal(await post({ accept }), 200, accept);
    for (const method of ['GET', 'DELETE'])
      assert.deepEqual((await send(port, { method })).headers.allow, 'POST');
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

  async 'what is not a message is refused with -32700 or -32600 and the id null, as far as there is none'(
    subject,
    later,
  ) {
    const { port } = await listening(subject, later);
    const { headers } = await openSession(port);
    const refused = async (body: unknown) => {
      const {
        status,
        body: { id, error },
      } = await send(port, { body: body as string, headers });
      return [status, id, error.code];
    };
    assert.deepEqual(await refused('{"jsonrpc":'), [400, null, -32700]);
    assert.deepEqual(await refused('"text"'), [400, null, -32600]);
    assert.deepEqual(await refused('null'), [400, null, -32600]);
    assert.deepEqual(await refused('['.repeat(100_000)), [400, null, -32600]);
    assert.deepEqual(await refused({ jsonrpc: '1.0', id: 1, method: 'ping' }), [400, 1, -32600]);
    assert.deepEqual(await refused({ jsonrpc: '2.0', id: null, method: 'ping' }), [
      400,
      null,
      -32600,
    ]);
    assert.deepEqual(await refused({ jsonrpc: '2.0', id: 1.5, method: 'ping' }), [
      400,
      null,
      -32600,
    ]);
    assert.deepEqual(
      await refused({ jsonrpc: '2.0', id: 1, method: 'ping', params: [] }),
      [400, 1, -32600],
    );
    assert.deepEqual(await refused({ jsonrpc: '2.0', id: 1 }), [400, 1, -32600]);
    assert.deepEqual(await refused({ jsonrpc: '2.0', method: 7 }), [400, null, -32600]);
  },

  async 'a batch belongs to 2025-03-26 alone'(subject, later) {
    const { port } = await listening(subject, later);
    const batch = [
      request('ping', undefined, 'a'),
      { jsonrpc: '2.0', method: 'notifications/x' },
      toolCall('echo'),
    ];
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

  async 'a batch is not empty, not endless, and all of it is looked at before any of it is done'(
    subject,
    later,
  ) {
    const { port, aborted } = await listening(subject, later);
    const session = await openSession(port, '2025-03-26');
    for (const batch of [
      [],
      Array.from({ length: 101 }, () => request('ping')),
      [request('ping'), 7],
    ]) {
      const { status, body } = await session.send(batch);
      assert.deepEqual([status, body.error.code], [400, -32600]);
    }
    const talk = await stream(port, {
      body: toolCall('talk', {}, { _meta: { progressToken: 1 } }),
      headers: session.headers,
    });
    const cancelled = {
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: lastId },
    };
    assert.equal((await session.send([cancelled, { jsonrpc: '2.0' }])).status, 400);
    assert.equal(aborted(), 0);
    await session.send([cancelled]);
    await until(() => aborted() === 1 && talk.seen.isOver);
    const { body } = await session.send([
      request('ping', undefined, 5),
      request('ping', undefined, 5),
      request('ping', undefined, 6),
    ]);
    assert.deepEqual(
      body.map(({ id, error }: Json) => [id, (error as Json)?.code]),
      [
        [5, undefined],
        [5, -32600],
        [6, undefined],
      ],
    );
    assert.equal(
      (await session.send([request('ping')], { 'mcp-protocol-version': '2026-07-28' })).status,
      400,
    );
  },

  async "the handshake: the client's revision if we know it, else our newest; what it says of itself"(
    subject,
    later,
  ) {
    const { port } = await listening(subject, later);
    for (const version of [LATEST, '2025-06-18', '2025-03-26', '2024-11-05'])
      assert.equal((await openSession(port, version)).body.result.protocolVersion, version);
    for (const odd of ['2026-07-28', '1999-01-01']) {
      const { body } = await send(port, { body: hello(odd) });
      assert.equal(body.result.protocolVersion, LATEST, odd);
      assert.deepEqual(body.result.serverInfo, { name: 'fixture', version: '1.0.0' });
      assert.equal(body.result.instructions, 'Be kind.');
      assert.deepEqual(Object.keys(body.result.capabilities).sort(), [
        'completions',
        'extensions',
        'logging',
        'prompts',
        'resources',
        'tools',
      ]);
    }
    const without = await send(port, { body: request('initialize', {}) });
    assert.deepEqual(
      [without.body.error.code, without.headers['mcp-session-id']],
      [-32602, undefined],
    );
  },

  async 'sessions: none is 400, unknown is 404, a second initialize is refused, DELETE ends one'(
    subject,
    later,
  ) {
    const { port, served } = await listening(subject, later);
    const without = await send(port, { body: toolCall('echo') });
    assert.equal(without.status, 400);
    assert.equal((await send(port, { body: request('ping') })).status, 400);
    const unknown = await send(port, {
      body: toolCall('echo'),
      headers: { 'mcp-session-id': 'made-up' },
    });
    assert.equal(unknown.status, 404);
    const session = await openSession(port);
    assert.equal(textOf(await session.send(toolCall('echo', { a: 1 }))), '{"a":1}');
    const again = await session.send(hello());
    assert.deepEqual(
      [again.status, again.body.error.code, again.body.error.message],
      [400, -32600, 'Already initialized'],
    );
    assert.equal(
      (await session.send({ jsonrpc: '2.0', method: 'notifications/initialized' })).status,
      202,
    );
    assert.equal((await session.send({ jsonrpc: '2.0', id: 'nothing', result: {} })).status, 202);
    assert.equal((await send(port, { method: 'DELETE', headers: session.headers })).status, 204);
    assert.equal((await session.send(toolCall('echo'))).status, 404);
    assert.equal((await send(port, { method: 'GET', headers: session.headers })).status, 404);
    assert.equal(served.sessions, 0);
  },

  async 'GET and DELETE of a revision that has no sessions are refused; and DELETE ends the streams'(
    subject,
    later,
  ) {
    const { port } = await listening(subject, later);
    const session = await openSession(port);
    for (const method of ['GET', 'DELETE']) {
      for (const version of ['nonsense', SINCE])
        assert.equal(
          (
            await send(port, {
              method,
              headers: { ...session.headers, 'mcp-protocol-version': version },
            })
          ).status,
          400,
          version,
        );
    }
    const listen = await stream(port, { method: 'GET', headers: session.headers });
    await send(port, { method: 'DELETE', headers: session.headers });
    await until(() => listen.seen.isOver);
  },

  async 'one session cannot cancel the calls of another, nor answer its questions'(subject, later) {
    const { port, release, aborted } = await listening(subject, later);
    const [one, two] = [
      await openSession(port, LATEST, { elicitation: {} }),
      await openSession(port),
    ];
    const body = toolCall('hold');
    const held = one.send(body);
    const permit = await stream(port, {
      body: toolCall('permit', { what: 'it' }),
      headers: one.headers,
    });
    await until(() => permit.said(({ method }) => method === 'elicitation/create'));
    const { id } = permit.said(({ method }) => method === 'elicitation/create');
    const yes = { jsonrpc: '2.0', id, result: { action: 'accept', content: { allow: true } } };
    await two.send({
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: body.id },
    });
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
    const [busy, listener, idle] = [
      await openSession(port),
      await openSession(port),
      await openSession(port),
    ];
    const held = stream(port, {
      body: toolCall('talk', {}, { _meta: { progressToken: 1 } }),
      headers: busy.headers,
    });
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
    const again = await stream(port, {
      method: 'GET',
      headers: { ...session.headers, 'last-event-id': 's1/0' },
    });
    await until(() => again.events().some(({ id }) => id === 's1/1100'));
    assert.equal(again.events().length, 1000);
    for (let n = 0; n < 55; n++) await session.send(toolCall('say'));
    const status = async (id: string) =>
      (await send(port, { method: 'GET', headers: { ...session.headers, 'last-event-id': id } }))
        .status;
    assert.deepEqual([await status('s2/0'), await status('s56/0')], [400, 200]);
    again.leave();
  },

  async 'a stream that is resumed is the one that was named, and not another of the session'(
    subject,
    later,
  ) {
    const { port } = await listening(subject, later);
    const session = await openSession(port);
    const [one, two] = [toolCall('say'), toolCall('say')];
    for (const body of [one, two]) await session.send(body);
    const resumed = async (id: string) =>
      (await send(port, { method: 'GET', headers: { ...session.headers, 'last-event-id': id } }))
        .body.id;
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
    assert.equal(
      (
        await send(port, {
          method: 'GET',
          headers: { ...session.headers, 'last-event-id': 's1/0' },
        })
      ).status,
      400,
      'no stream was begun',
    );
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
    const begin = async () => {
      const session = await openSession(brief.port);
      const listen = await stream(brief.port, { method: 'GET', headers: session.headers });
      return { ...session, listen };
    };
    let listener = await begin();
    while (listener.listen.status !== 200) listener = await begin(); // a busy machine idles, too
    await openSession(brief.port);
    await until(() => brief.served.sessions === 1);
    assert.equal(
      (await listener.send(request('ping'))).status,
      200,
      'one that listens is not idle',
    );
    listener.listen.leave();
    await until(() => brief.served.sessions === 0);
  },

  async 'the six codes: unknown methods and tools, wrong parameters, a failure of ours without its words'(
    subject,
    later,
  ) {
    const { port, log } = await listening(subject, later);
    const session = await openSession(port);
    const error = async (message: Message | object) => (await session.send(message)).body.error;
    assert.equal((await error(request('shelf/burn'))).code, -32601);
    assert.equal((await error(toolCall('unknown'))).code, -32602);
    assert.equal((await error(request('tools/call', { arguments: {} }))).code, -32602);
    assert.equal(
      (await error(request('tools/call', { name: 'echo', arguments: [] }))).code,
      -32602,
    );
    assert.deepEqual(await error(toolCall('refuse')), {
      code: -32602,
      message: 'not these',
      data: { why: 1 },
    });
    assert.deepEqual(await error(request('resources/read', { uri: 'test://nothing' })), {
      code: -32002,
      message: 'Resource not found: test://nothing',
      data: { uri: 'test://nothing' },
    });
    const broken = await error(request('resources/read', { uri: 'test://broken' }));
    assert.equal(broken.code, -32603);
    assert.doesNotMatch(JSON.stringify(broken), /secret|\.ts|at /);
    assert.ok(
      log.some((line) => line.includes('secret')),
      'the log has it',
    );
    const failed = await session.send(toolCall('boom'));
    assert.deepEqual(failed.body.result, {
      content: [{ type: 'text', text: 'it broke' }],
      isError: true,
    });
    assert.equal(failed.status, 200);
    const misfit = await session.send(toolCall('add', { a: 1 }));
    assert.equal(misfit.body.result.isError, true);
    assert.match(textOf(misfit), /^b: /);
    assert.equal(textOf(await session.send(toolCall('add', { a: 2, b: 40 }))), '42');
  },

  async 'results: structured content is also text; ids may be 0 and texts; arguments may be left out'(
    subject,
    later,
  ) {
    const { port } = await listening(subject, later);
    const session = await openSession(port);
    const { body } = await session.send(request('tools/call', { name: 'structured' }, 0));
    assert.deepEqual(body, {
      jsonrpc: '2.0',
      id: 0,
      result: { content: [{ type: 'text', text: '{"sum":42}' }], structuredContent: { sum: 42 } },
    });
    assert.equal((await session.send(request('ping', undefined, ''))).body.id, '');
  },

  async 'lists come in pages whose cursors are ours alone'(subject, later) {
    const { port, server } = await listening(subject, later, {}, { pageSize: 5 });
    const session = await openSession(port);
    const names: string[] = [];
    let cursor: unknown;
    do {
      const { body } = await session.send(
        request('tools/list', cursor === undefined ? {} : ({ cursor } as Json)),
      );
      assert.ok(body.result.tools.length <= 5);
      names.push(...body.result.tools.map((tool: Json) => tool.name));
      cursor = body.result.nextCursor;
    } while (cursor !== undefined);
    assert.deepEqual(names, [...server.tools.keys()]);
    for (const odd of ['', 'xyz', 'YXQgNQ==', 7])
      assert.equal(
        (await session.send(request('tools/list', { cursor: odd }))).body.error.code,
        -32602,
      );
  },

  async 'resources, templates, prompts and completion'(subject, later) {
    const { port } = await listening(subject, later);
    const session = await openSession(port);
    const result = async (method: string, params: Json = {}) =>
      (await session.send(request(method, params))).body.result;
    assert.deepEqual(await result('resources/read', { uri: 'test://text' }), {
      contents: [{ uri: 'test://text', mimeType: 'text/plain', text: 'words' }],
    });
    assert.equal(
      (await result('resources/read', { uri: 'test://item/a%20b/c/d' })).contents[0].text,
      'a b:c/d',
    );
    assert.equal(
      (await session.send(request('resources/read', { uri: 'test://item/none/c' }))).body.error
        .code,
      -32002,
    );
    assert.equal(
      (await session.send(request('resources/read', { uri: 'test://item/%zz/c' }))).body.error.code,
      -32002,
    );
    assert.equal(
      (await result('resources/templates/list')).resourceTemplates[0].uriTemplate,
      'test://item/{id}/{+path}',
    );
    assert.deepEqual((await result('prompts/list')).prompts, [
      { name: 'hello', description: 'Hello', arguments: [{ name: 'who', required: true }] },
    ]);
    assert.equal(
      (await result('prompts/get', { name: 'hello', arguments: { who: 'Ada' } })).messages[0]
        .content.text,
      'Hello, Ada',
    );
    assert.equal(
      (await session.send(request('prompts/get', { name: 'hello' }))).body.error.code,
      -32602,
    );
    const complete = (ref: Json, name: string, value: string) =>
      result('completion/complete', { ref, argument: { name, value } });
    assert.deepEqual(
      (await complete({ type: 'ref/prompt', name: 'hello' }, 'who', 'A')).completion.values,
      ['A!'],
    );
    const many = (
      await complete({ type: 'ref/resource', uri: 'test://item/{id}/{+path}' }, 'id', 'x')
    ).completion;
    assert.deepEqual([many.values.length, many.total, many.hasMore], [100, 150, true]);
    for (const name of ['constructor', '__proto__', 'toString'])
      assert.deepEqual(
        (await complete({ type: 'ref/resource', uri: 'test://item/{id}/{+path}' }, name, 'x'))
          .completion.values,
        [],
      );
    assert.equal(
      (
        await session.send(
          request('completion/complete', {
            ref: { type: 'ref/prompt', name: 'none' },
            argument: { name: 'a', value: '' },
          }),
        )
      ).body.error.code,
      -32602,
    );
  },

  async 'a stream: its head, the priming event, progress that goes forward, logs at their level, then the result'(
    subject,
    later,
  ) {
    const { port, release } = await listening(subject, later);
    for (const [version, isPrimed] of [
      [LATEST, true],
      ['2025-06-18', false],
    ] as const) {
      const session = await openSession(port, version);
      await session.send(request('logging/setLevel', { level: 'error' }));
      const talk = await stream(port, {
        body: toolCall('talk', {}, { _meta: { progressToken: 'p' } }),
        headers: session.headers,
      });
      assert.deepEqual(
        [
          talk.status,
          talk.headers['content-type'],
          talk.headers['x-accel-buffering'],
          talk.headers['cache-control'],
        ],
        [200, 'text/event-stream', 'no', 'no-cache, no-transform'],
      );
      await until(() => talk.said(({ method }) => method === 'notifications/message'));
      release();
      await until(() => talk.seen.isOver);
      const [first] = talk.events();
      assert.equal(
        first!.data === undefined && /\/0$/.test(first!.id ?? '') && first!.retry === '1000',
        isPrimed,
        version,
      );
      const said = talk
        .events()
        .map(({ data }) => data)
        .filter((data) => data);
      assert.deepEqual(
        said.map(({ method, params }) => method && (params.progress ?? params.data)),
        [1, 2, 'a error', undefined],
      );
      assert.deepEqual(said[0].params, {
        progressToken: 'p',
        progress: 1,
        total: 3,
        message: 'begun',
      });
      assert.equal(said.at(-1).result.content[0].text, 'talked');
      const ids = talk.events().map(({ id }) => id);
      assert.equal(new Set(ids).size, ids.length);
    }
    const session = await openSession(port);
    assert.equal(
      (await session.send(request('logging/setLevel', { level: 'loud' }))).body.error.code,
      -32602,
    );
  },

  async 'a lost connection is no cancellation: Last-Event-ID brings the rest, and nothing of another stream'(
    subject,
    later,
  ) {
    const { port, release, aborted } = await listening(subject, later);
    const session = await openSession(port);
    const body = toolCall('talk', {}, { _meta: { progressToken: 1 } });
    const one = await stream(port, { body, headers: session.headers });
    await until(() => one.said(({ params }) => params?.progress === 2));
    const first = one.events().find(({ data }) => data?.params?.progress === 1)!.id!;
    one.leave();
    const two = await stream(port, {
      method: 'GET',
      headers: { ...session.headers, 'last-event-id': first },
    });
    await until(() => two.said(({ params }) => params?.progress === 2));
    assert.equal(aborted(), 0);
    release();
    await until(() => two.said(({ result }) => result));
    assert.equal(two.said(({ result }) => result).id, body.id);
    assert.ok(
      !two.said(({ params }) => params?.progress === 1),
      'what it has heard is not said again',
    );
    // The stream is over, and is kept for a while.
    const three = await send(port, {
      method: 'GET',
      headers: { ...session.headers, 'last-event-id': first },
    });
    assert.equal(three.body.result.content[0].text, 'talked');
    const stranger = await openSession(port);
    assert.equal(
      (
        await send(port, {
          method: 'GET',
          headers: { ...stranger.headers, 'last-event-id': first },
        })
      ).status,
      400,
    );
    assert.equal(
      (await send(port, { method: 'GET', headers: { ...session.headers, 'last-event-id': 'x' } }))
        .status,
      400,
    );
  },

  async 'a handler may hang up, and the client comes back for the result'(subject, later) {
    const { port, release } = await listening(subject, later);
    const session = await openSession(port);
    const { body: nothing, text } = await session.send(toolCall('hang-up'));
    assert.equal(nothing, undefined);
    const [{ id, retry }] = eventsIn(text) as [Event];
    assert.equal(retry, '1000');
    const rest = await stream(port, {
      method: 'GET',
      headers: { ...session.headers, 'last-event-id': id! },
    });
    release();
    await until(() => rest.said(({ result }) => result?.content[0].text === 'later'));
  },

  async 'notifications/cancelled stops the work, and ends the exchange without an answer'(
    subject,
    later,
  ) {
    const { port, aborted } = await listening(subject, later);
    const session = await openSession(port);
    const body = toolCall('hold');
    const held = session.send(body);
    const cancel = () =>
      session.send({
        jsonrpc: '2.0',
        method: 'notifications/cancelled',
        params: { requestId: body.id },
      });
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

  async 'the listening stream: one for each session, for what belongs to no request'(
    subject,
    later,
  ) {
    const { port, server } = await listening(subject, later);
    const session = await openSession(port);
    const listen = await stream(port, { method: 'GET', headers: session.headers });
    assert.equal(listen.status, 200);
    assert.equal((await send(port, { method: 'GET', headers: session.headers })).status, 409);
    assert.equal(
      (
        await send(port, {
          method: 'GET',
          headers: { ...session.headers, accept: 'application/json' },
        })
      ).status,
      406,
    );
    assert.deepEqual(
      (await session.send(request('resources/subscribe', { uri: 'test://text' }))).body.result,
      {},
    );
    server.updated('test://other');
    server.updated('test://text');
    server.changed('tools');
    await until(() => listen.said(({ method }) => method === 'notifications/tools/list_changed'));
    assert.deepEqual(
      listen.said(({ method }) => method === 'notifications/resources/updated')?.params,
      { uri: 'test://text' },
    );
    await session.send(request('resources/unsubscribe', { uri: 'test://text' }));
    server.updated('test://text');
    server.changed('prompts');
    await until(() => listen.said(({ method }) => method === 'notifications/prompts/list_changed'));
    assert.equal(
      listen.events().filter(({ data }) => data?.method === 'notifications/resources/updated')
        .length,
      1,
    );
    listen.leave();
  },

  async 'streams are kept alive by comments'(subject, later) {
    const { port } = await listening(subject, later, { keepAliveMs: 20 });
    const session = await openSession(port);
    const listen = await stream(port, { method: 'GET', headers: session.headers });
    await until(() => /^:$/m.test(listen.seen.text));
    listen.leave();
  },

  async "with a handshake a question is a request on the call's stream, and its answer a POST"(
    subject,
    later,
  ) {
    const { port } = await listening(subject, later);
    const session = await openSession(port, LATEST, { elicitation: {} });
    const permit = await stream(port, {
      body: toolCall('permit', { what: 'it' }),
      headers: session.headers,
    });
    await until(() => permit.said(({ method }) => method === 'elicitation/create'));
    const { id, params } = permit.said(({ method }) => method === 'elicitation/create');
    assert.equal(params.message, 'Do it?');
    const { status, text } = await session.send({
      jsonrpc: '2.0',
      id,
      result: { action: 'accept', content: { allow: true } },
    });
    assert.deepEqual([status, text], [202, '']);
    await until(() => permit.said(({ result }) => result));
    assert.equal(permit.said(({ result }) => result).result.content[0].text, 'done it');
    const refused = await stream(port, { body: toolCall('name'), headers: session.headers });
    await until(() => refused.said(({ method }) => method));
    await session.send({
      jsonrpc: '2.0',
      id: refused.said(({ method }) => method).id,
      error: { code: -1, message: 'no' },
    });
    await until(() => refused.said(({ result }) => result));
    assert.equal(refused.said(({ result }) => result).result.isError, true);
    const mute = await openSession(port);
    assert.match(
      textOf(await mute.send(toolCall('permit', { what: 'it' }))),
      /capability elicitation is needed/,
    );
  },
};
