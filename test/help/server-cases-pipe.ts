// What a server must do for whoever runs it, and on a pipe: a token, limits, its end, and raw lines.

import assert from 'node:assert/strict';
import type { Message } from '../../mcp.ts';
import { linkedPair } from '../../chapters/25-other-pipes/in-process.ts';
import { until } from './basics.ts';
import {
  fixture,
  hello,
  LATEST,
  listening,
  META,
  meta,
  openSession,
  piped,
  request,
  send,
  SINCE,
  stream,
  toolCall,
  type Case,
} from './server-fixture.ts';

export const PIPE_CASES: Record<string, Case> = {
  async 'a token: without it 401, except for /health; and none may listen to the world without one'(
    subject,
    later,
  ) {
    const { port } = await listening(subject, later, { token: 'sesame' });
    const status = async (authorization?: string) =>
      (await send(port, { body: hello(), headers: { authorization } })).status;
    assert.deepEqual(
      [
        await status(),
        await status('Bearer open'),
        await status('Basic sesame'),
        await status('Bearer sesame'),
      ],
      [401, 401, 401, 200],
    );
    assert.deepEqual(
      [
        await status('Bearer sesam'),
        await status('Bearer sesames'),
        await status('Bearer '),
        await status('bearer sesame'),
      ],
      [401, 401, 401, 200],
    );
    assert.match(
      (await send(port, { body: hello() })).headers['www-authenticate'] ?? '',
      /^Bearer/,
    );
    assert.equal((await send(port, { method: 'GET', path: '/health' })).status, 200);
    for (const host of ['0.0.0.0', '::', '192.168.1.2', 'shelf.example'])
      assert.throws(
        () => new subject.HttpServer(fixture(subject).server, { host }),
        /a token is needed/,
      );
    const known = await listening(subject, later, { hostnames: ['Shelf.Example'] });
    assert.equal(
      (
        await send(known.port, {
          body: hello(),
          headers: { host: 'shelf.example:443', origin: 'https://shelf.example' },
        })
      ).status,
      200,
    );
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
    const talk = await stream(port, {
      body: toolCall('talk', {}, { _meta: { progressToken: 1 } }),
      headers: session.headers,
    });
    await until(() => talk.said(({ params }) => params?.progress === 2));
    const closed = served.close();
    await assert.rejects(send(port, { method: 'GET', path: '/health' }));
    release();
    await until(() => talk.said(({ result }) => result?.content[0].text === 'talked'));
    await closed;
  },

  async 'a pipe: work before initialize is refused, a second initialize too; ping is always answered'(
    subject,
    later,
  ) {
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
    assert.deepEqual((await ask(request('server/discover', meta()))).result.supportedVersions, [
      SINCE,
    ]);
    assert.equal(
      (await ask(request('initialize', { protocolVersion: LATEST, ...meta() }))).error.code,
      -32601,
    );
    assert.equal((await ask(toolCall('echo', {}, meta()))).result.resultType, 'complete');
    assert.equal((await ask(hello())).result.protocolVersion, LATEST);
    assert.equal((await ask(toolCall('echo'))).result.resultType, undefined);
  },

  async 'a pipe: what is not JSON or not a message gets an answer with the id null'(
    subject,
    later,
  ) {
    const { say, heard, ask } = await piped(subject, later);
    await say('not json');
    await say([]);
    await say({ jsonrpc: '2.0', id: null, method: 'ping' });
    await say([request('ping')]);
    await ask(request('ping', undefined, 'last'));
    assert.deepEqual(
      heard.slice(0, 4).map(({ id, error }) => [id, error?.code]),
      [
        [null, -32700],
        [null, -32600],
        [null, -32600],
        [null, -32600],
      ],
    );
  },

  async 'a pipe: calls run side by side, and a cancelled one gets no answer'(subject, later) {
    const { ask, say, heard, aborted } = await piped(subject, later);
    await ask(hello());
    const held = toolCall('hold');
    await say(held);
    assert.equal((await ask(toolCall('echo'))).result.content[0].text, '{}');
    const again = await ask({ ...toolCall('echo'), id: held.id });
    assert.equal(again.error.code, -32600, 'its id is in use');
    await say({
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: held.id },
    });
    await until(() => aborted() === 1);
    await ask(request('ping'));
    assert.equal(heard.filter(({ id, result }) => id === held.id && result).length, 0);
  },

  async 'a pipe: requests, watched resources and subscriptions are bounded'(subject, later) {
    const { ask, say, heard, server } = await piped(subject, later);
    await ask(hello());
    for (let n = 0; n < 1000; n++)
      await say(request('resources/subscribe', { uri: `test://${n}` }));
    assert.equal(
      (await ask(request('resources/subscribe', { uri: 'test://more' }))).error.code,
      -32603,
    );
    const listen = () =>
      request('subscriptions/listen', { notifications: { toolsListChanged: true }, ...meta() });
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

  async 'a pipe: subscriptions share it, by their ids; and what runs stops when the client leaves'(
    subject,
    later,
  ) {
    const { ask, say, heard, server, ours, aborted } = await piped(subject, later);
    await ask(hello());
    const listen = request('subscriptions/listen', {
      notifications: { toolsListChanged: true },
      ...meta(),
    });
    await say(listen);
    await until(() =>
      heard.some(({ method }) => method === 'notifications/subscriptions/acknowledged'),
    );
    server.changed('tools');
    await until(() =>
      heard.some(({ params }) => params?._meta?.[`${META}subscriptionId`] === listen.id),
    );
    await say(toolCall('hold'));
    await ask(request('ping'));
    await ours.close();
    await until(() => aborted() === 1 && server.listeners === 0 && server.sessions.size === 0);
  },
};
