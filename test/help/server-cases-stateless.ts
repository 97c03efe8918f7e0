// What a server must do without a handshake: refusals, headers, questions in results, permissions, subscriptions, tasks.

import assert from 'node:assert/strict';
import type { Json, Message } from '../../mcp.ts';
import { until } from './basics.ts';
import {
  asks,
  laterCall,
  laterRequest,
  LATEST,
  listening,
  META,
  openSession,
  request,
  send,
  SINCE,
  stream,
  textOf,
  type Case,
  type Given,
} from './server-fixture.ts';

export const STATELESS_CASES: Record<string, Case> = {
  async 'the stateless era: discover, results with their type, name and age, no session'(
    subject,
    later,
  ) {
    const { port } = await listening(subject, later);
    const discover = await send(port, laterRequest('server/discover'));
    const { result } = discover.body;
    assert.deepEqual(result.supportedVersions, [SINCE]);
    assert.deepEqual(
      [result.resultType, result.ttlMs, result.cacheScope, result.instructions],
      ['complete', 0, 'private', 'Be kind.'],
    );
    assert.deepEqual(result._meta[`${META}serverInfo`], { name: 'fixture', version: '1.0.0' });
    assert.equal(discover.headers['mcp-session-id'], undefined);
    const echo = await send(
      port,
      laterCall(
        'echo',
        { a: 1 },
        { headers: { 'mcp-session-id': 'stray', 'last-event-id': 's1/1' } },
      ),
    );
    assert.deepEqual(
      [echo.status, echo.body.result.resultType, echo.body.result.ttlMs, textOf(echo)],
      [200, 'complete', undefined, '{"a":1}'],
    );
    assert.ok(echo.body.result._meta[`${META}serverInfo`]);
    const handshake = (await (await openSession(port)).send(request('tools/list'))).body.result;
    assert.deepEqual(Object.keys(handshake), ['tools'], 'nothing of this in the handshake era');
    for (const [method, params] of [
      ['tools/list', {}],
      ['resources/read', { uri: 'test://text' }],
    ] as const)
      assert.equal(
        (await send(port, laterRequest(method, params))).body.result.cacheScope,
        'private',
      );
  },

  async 'the stateless era: refusals, in their order, and with their status'(subject, later) {
    const { port } = await listening(subject, later);
    const refusal = async (given: Given) => {
      const { status, body } = await send(port, given);
      return [status, body.error?.code];
    };
    const bare = (params?: Json) => ({
      body: request('tools/list', params),
      headers: { 'mcp-protocol-version': SINCE, 'mcp-method': 'tools/list' },
    });
    assert.deepEqual(await refusal(bare()), [400, -32602]);
    assert.deepEqual(
      await refusal(bare({ _meta: { [`${META}clientCapabilities`]: {} } })),
      [400, -32602],
    );
    assert.deepEqual(
      await refusal(bare({ _meta: { [`${META}protocolVersion`]: SINCE } })),
      [400, -32602],
    );
    for (const level of ['banana', 3, null])
      assert.deepEqual(
        await refusal(laterRequest('tools/list', {}, { meta: { [`${META}logLevel`]: level } })),
        [200, -32602],
        `log level ${level}`,
      );
    const odd = laterRequest(
      'tools/list',
      {},
      { meta: { [`${META}protocolVersion`]: 'v999' }, headers: { 'mcp-protocol-version': 'v999' } },
    );
    const { status, body } = await send(port, odd);
    assert.deepEqual(
      [status, body.error.code, body.error.data],
      [400, -32022, { supported: [SINCE], requested: 'v999' }],
    );
    assert.equal(body.id, (odd.body as Message).id);
    for (const method of [
      'initialize',
      'ping',
      'logging/setLevel',
      'resources/subscribe',
      'unknown/method',
      'tasks/list',
      'tasks/result',
    ])
      assert.deepEqual(await refusal(laterRequest(method)), [404, -32601], method);
    assert.deepEqual(await refusal(laterCall('unknown')), [200, -32602]);
    const missing = await send(port, laterRequest('resources/read', { uri: 'test://nothing' }));
    assert.deepEqual(
      [missing.status, missing.body.error.code, missing.body.error.data],
      [200, -32602, { uri: 'test://nothing' }],
    );
    const need = await send(port, laterCall('need'));
    assert.deepEqual(
      [need.status, need.body.error.code, need.body.error.data],
      [400, -32021, { requiredCapabilities: { sampling: {} } }],
    );
    assert.equal(
      textOf(await send(port, laterCall('need', {}, { capabilities: { sampling: {} } }))),
      'it can',
    );
    assert.deepEqual(
      await refusal({
        body: { jsonrpc: '2.0', id: 1, result: {} },
        headers: { 'mcp-protocol-version': SINCE },
      }),
      [400, -32600],
    );
    const notice = await send(port, {
      body: { jsonrpc: '2.0', method: 'notifications/x' },
      headers: { 'mcp-protocol-version': SINCE },
    });
    assert.equal(notice.status, 202);
  },

  async 'headers say what the body says: revision, method, name, arguments; base64 strictly'(
    subject,
    later,
  ) {
    const { port } = await listening(subject, later);
    const status = async (
      headers: Record<string, string | undefined>,
      name = 'region',
      args: Json = {},
    ) => {
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
    assert.equal(
      await status({ 'mcp-name': `=?base64?${Buffer.from('region').toString('base64')}?=` }),
      200,
    );
    const param = (value?: string) => ({ 'mcp-param-region': value });
    assert.equal(await status(param('eu'), 'region', { region: 'eu' }), 200);
    assert.deepEqual(await status(param('us'), 'region', { region: 'eu' }), mismatch);
    assert.deepEqual(await status(param(), 'region', { region: 'eu' }), mismatch);
    assert.deepEqual(await status(param('eu')), mismatch, 'a header without an argument');
    const base64 = Buffer.from('Zürich').toString('base64');
    assert.equal(await status(param(`=?base64?${base64}?=`), 'region', { region: 'Zürich' }), 200);
    assert.deepEqual(
      await status(param(`=?base64?${base64.replace(/=+$/, '')}*?=`), 'region', {
        region: 'Zürich',
      }),
      mismatch,
    );
    assert.deepEqual(
      await status(param('=?base64?ZXU?='), 'region', { region: 'eu' }),
      mismatch,
      'without its padding',
    );
    assert.equal(
      await status(param('=?base64?ZXU='), 'region', { region: '=?base64?ZXU=' }),
      200,
      'half of it means itself',
    );
    assert.equal(
      await status({ 'mcp-param-count': '042' }, 'region', { count: 42 }),
      200,
      'compared as numbers',
    );
    assert.deepEqual(await status({ 'mcp-param-count': '43' }, 'region', { count: 42 }), mismatch);
    assert.deepEqual(
      await status({ 'mcp-param-count': '' }, 'region', { count: 0 }),
      mismatch,
      'nothing is not 0',
    );
    assert.deepEqual(
      await status({ 'mcp-param-count': '42' }, 'region', {}),
      mismatch,
      'a header for what is not there',
    );
    assert.equal(
      (
        await send(
          port,
          laterRequest(
            'resources/read',
            { uri: 'test://text' },
            { headers: { 'mcp-name': 'test://other' } },
          ),
        )
      ).status,
      400,
    );
  },

  async 'without a handshake logs are heard only by those who named a level'(subject, later) {
    const { port, release } = await listening(subject, later);
    for (const [level, heard] of [
      [undefined, []],
      ['info', ['a info', 'a error']],
    ] as const) {
      const talk = await stream(
        port,
        laterCall(
          'talk',
          {},
          { meta: { progressToken: 1, ...(level && { [`${META}logLevel`]: level }) } },
        ),
      );
      await until(() => talk.said(({ params }) => params?.progress === 2));
      release();
      await until(() => talk.seen.isOver);
      const logs = talk
        .events()
        .filter(({ data }) => data?.method === 'notifications/message')
        .map(({ data }) => data.params.data);
      assert.deepEqual(logs, heard);
      assert.ok(
        talk.events().every(({ id }) => id === undefined),
        'no ids: nothing can be resumed',
      );
    }
  },

  async 'without a handshake a question ends the call; with its answer it comes again'(
    subject,
    later,
  ) {
    const { port } = await listening(subject, later);
    const ask = (more: Json = {}) => send(port, laterCall('name', {}, asks, more));
    const {
      body: { result },
    } = await ask();
    assert.equal(result.resultType, 'input_required');
    assert.equal(result.inputRequests.name.method, 'elicitation/create');
    assert.equal(result.ttlMs, undefined);
    const answer = { action: 'accept', content: { name: 'Ada' } };
    const done = await ask({
      inputResponses: { name: answer, other: {} },
      requestState: result.requestState,
    });
    assert.equal(textOf(done), `Hello, ${JSON.stringify(answer)}`);
    assert.equal(
      textOf(await ask({ inputResponses: { name: answer } })),
      `Hello, ${JSON.stringify(answer)}`,
      'a state is not demanded',
    );
    for (const odd of [{ name: 7 }, { name: null }, { other: answer }, { name: {} }, null, 'name'])
      assert.equal(
        (await ask({ inputResponses: odd as Json })).body.result.resultType,
        'input_required',
        JSON.stringify(odd),
      );
    const cannot = await send(port, laterCall('name'));
    assert.deepEqual([cannot.status, cannot.body.error.code], [400, -32021]);
  },

  async 'two questions are two rounds: the answers of the first are in the state'(subject, later) {
    const { port } = await listening(subject, later);
    const yes = { action: 'accept', content: { allow: true } };
    const no = { action: 'decline' };
    const one = (await send(port, laterCall('twice', {}, asks))).body.result;
    const two = (
      await send(
        port,
        laterCall('twice', {}, asks, {
          inputResponses: { one: yes },
          requestState: one.requestState,
        }),
      )
    ).body.result;
    assert.deepEqual(
      [Object.keys(two.inputRequests), two.requestState !== one.requestState],
      [['two'], true],
    );
    const three = await send(
      port,
      laterCall('twice', {}, asks, { inputResponses: { two: no }, requestState: two.requestState }),
    );
    assert.equal(textOf(three), JSON.stringify([yes, no]));
  },

  async 'a state that is not ours, of another request, or changed is refused'(subject, later) {
    const { port } = await listening(subject, later);
    const permit = (args: Json, more: Json = {}) =>
      send(port, laterCall('permit', args, asks, more));
    const { requestState } = (await permit({ what: 'this' })).body.result;
    const yes = { answer: { action: 'accept', content: { allow: true } } };
    const refused = async (args: Json, state: unknown) =>
      (await permit(args, { inputResponses: yes, requestState: state })).body.error?.code;
    assert.equal(await refused({ what: 'that' }, requestState), -32602, 'another request');
    for (const odd of [
      `${requestState}-TAMPERED`,
      `${requestState}=`,
      `x${requestState}`,
      requestState.slice(0, -1),
      '',
      '.',
      7,
      {},
    ])
      assert.equal(await refused({ what: 'this' }, odd), -32602, JSON.stringify(odd));
    const [text, mac] = requestState.split('.');
    const inside = JSON.parse(`${Buffer.from(text, 'base64url')}`);
    const longer = Buffer.from(JSON.stringify({ ...inside, until: 1e15 })).toString('base64url');
    assert.equal(await refused({ what: 'this' }, `${longer}.${mac}`), -32602);
    const other = await listening(subject, later);
    assert.equal(
      (
        await send(
          other.port,
          laterCall('permit', { what: 'this' }, asks, { inputResponses: yes, requestState }),
        )
      ).body.error.code,
      -32602,
      'another key',
    );
    assert.equal(
      textOf(await permit({ what: 'this' }, { inputResponses: yes, requestState })),
      'done this',
    );
  },

  async 'a permission counts only with the state of the very question'(subject, later) {
    const { port, log } = await listening(subject, later);
    const permit = (args: Json, more: Json = {}) =>
      send(port, laterCall('permit', args, asks, more));
    const yes = { answer: { action: 'accept', content: { allow: true } } };
    const forged = await permit({ what: 'this' }, { inputResponses: yes });
    assert.equal(forged.body.result.resultType, 'input_required');
    for (const answer of [
      { action: 'accept', content: { allow: false } },
      { action: 'accept', content: {} },
      { action: 'decline', content: { allow: true } },
    ]) {
      const { requestState } = (await permit({ what: 'this' })).body.result;
      assert.equal(
        textOf(await permit({ what: 'this' }, { inputResponses: { answer }, requestState })),
        'no',
      );
    }
    assert.ok(log.length >= 4);
  },

  async 'a permission counts once: sent again, or twice at the same time, it is asked for again'(
    subject,
    later,
  ) {
    const { port } = await listening(subject, later);
    const permit = (more: Json = {}) =>
      send(port, laterCall('permit', { what: 'this' }, asks, more));
    const inputResponses = { answer: { action: 'accept', content: { allow: true } } };
    const { requestState } = (await permit()).body.result;
    const both = await Promise.all([1, 2].map(() => permit({ inputResponses, requestState })));
    assert.deepEqual(both.map(({ body }) => body.result.resultType).sort(), [
      'complete',
      'input_required',
    ]);
    const third = (await permit({ inputResponses, requestState })).body.result;
    assert.deepEqual(
      [third.resultType, third.requestState === requestState],
      ['input_required', false],
    );
    assert.equal(
      textOf(await permit({ inputResponses, requestState: third.requestState })),
      'done this',
    );
  },

  async "processes that share a key take each other's states; each counts a yes once"(
    subject,
    later,
  ) {
    const sealingKey = Buffer.alloc(32, 7);
    const [one, two] = [
      await listening(subject, later, {}, { sealingKey }),
      await listening(subject, later, {}, { sealingKey }),
    ];
    const permit = async ({ port }: { port: number }, more: Json = {}) =>
      (await send(port, laterCall('permit', { what: 'it' }, asks, more))).body.result;
    const { requestState } = await permit(one);
    const yes = {
      inputResponses: { answer: { action: 'accept', content: { allow: true } } },
      requestState,
    };
    const came: string[] = [];
    for (const process of [two, two, one, one]) came.push((await permit(process, yes)).resultType);
    assert.deepEqual(came, ['complete', 'input_required', 'complete', 'input_required']);
  },

  async 'a permission of an earlier round counts once, too'(subject, later) {
    const { port } = await listening(subject, later);
    const ask = async (more: Json = {}) =>
      (await send(port, laterCall('permit-then-name', {}, asks, more))).body.result;
    const accept = { action: 'accept', content: { allow: true } };
    const one = await ask();
    const two = await ask({ inputResponses: { answer: accept }, requestState: one.requestState });
    assert.deepEqual(Object.keys(two.inputRequests), ['name']);
    const more = { inputResponses: { name: accept }, requestState: two.requestState };
    assert.equal((await ask(more)).content[0].text, 'accept accept');
    assert.deepEqual(Object.keys((await ask(more)).inputRequests), ['answer']);
  },

  async 'a permission whose words have changed is asked for again, also one of an earlier round'(
    subject,
    later,
  ) {
    const { port } = await listening(subject, later);
    const ask = async (name: string, more: Json = {}) =>
      (await send(port, laterCall(name, {}, asks, more))).body.result;
    const accept = { action: 'accept', content: { allow: true } };
    const first = await ask('moving');
    const moved = await ask('moving', {
      inputResponses: { answer: accept },
      requestState: first.requestState,
    });
    assert.equal(moved.resultType, 'input_required');
    const fresh = await listening(subject, later);
    const on = async (more: Json = {}) =>
      (await send(fresh.port, laterCall('moves-later', {}, asks, more))).body.result;
    const one = await on();
    const two = await on({ inputResponses: { answer: accept }, requestState: one.requestState });
    assert.deepEqual(Object.keys(two.inputRequests), ['name']);
    const three = await on({ inputResponses: { name: accept }, requestState: two.requestState });
    assert.equal(three.inputRequests?.answer.params.message, 'Delete all?');
  },

  async 'two questions of one handler are two, though both are called "answer"'(subject, later) {
    const { port } = await listening(subject, later);
    const ask = async (more: Json = {}) =>
      (await send(port, laterCall('elicit-twice', {}, asks, more))).body.result;
    const one = await ask();
    const two = await ask({
      inputResponses: { answer: { action: 'accept' } },
      requestState: one.requestState,
    });
    assert.equal(two.inputRequests?.answer.params.message, 'Two?');
    const three = await ask({
      inputResponses: { answer: { action: 'decline' } },
      requestState: two.requestState,
    });
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

  async 'subscriptions: acknowledged first, only what was wanted, each notice with its id; ended by a result'(
    subject,
    later,
  ) {
    const { port, server, served } = await listening(subject, later);
    const listen = (notifications: Json) => {
      const given = laterRequest('subscriptions/listen', { notifications });
      return stream(port, given).then((opened) => ({ ...opened, id: (given.body as Message).id }));
    };
    const tools = await listen({
      toolsListChanged: true,
      resourceSubscriptions: ['test://text'],
      unknown: true,
    });
    const prompts = await listen({ promptsListChanged: true });
    await until(() => tools.events().length > 0 && prompts.events().length > 0);
    const own = { [`${META}subscriptionId`]: tools.id };
    assert.deepEqual(tools.events()[0]!.data, {
      jsonrpc: '2.0',
      method: 'notifications/subscriptions/acknowledged',
      params: {
        notifications: { toolsListChanged: true, resourceSubscriptions: ['test://text'] },
        _meta: own,
      },
    });
    server.changed('tools');
    server.changed('resources');
    server.updated('test://text');
    server.updated('test://other');
    server.changed('prompts');
    await until(() => prompts.events().length > 1 && tools.events().length > 2);
    assert.deepEqual(
      prompts.events().map(({ data }) => data.method),
      ['notifications/subscriptions/acknowledged', 'notifications/prompts/list_changed'],
    );
    assert.deepEqual(
      tools
        .events()
        .slice(1)
        .map(({ data }) => [data.method, data.params]),
      [
        ['notifications/tools/list_changed', { _meta: own }],
        ['notifications/resources/updated', { uri: 'test://text', _meta: own }],
      ],
    );
    prompts.leave();
    await until(() => server.listeners === 1);
    await served.close();
    await until(() => tools.seen.isOver);
    assert.deepEqual(
      [tools.events().at(-1)!.data.id, tools.events().at(-1)!.data.result.resultType],
      [tools.id, 'complete'],
    );
  },

  async 'tasks: the work goes on, and the client looks'(subject, later) {
    const { port, release, aborted } = await listening(subject, later);
    const knows = { capabilities: { extensions: { [`${META}tasks`]: {} } } };
    const begun = (await send(port, laterCall('slow', {}, knows))).body.result;
    assert.deepEqual([begun.resultType, begun.status], ['task', 'working']);
    const on = (method: string, taskId = begun.taskId) =>
      send(port, laterRequest(method, { taskId }, knows));
    assert.equal((await on('tasks/get')).body.result.status, 'working');
    release();
    let got = (await on('tasks/get')).body.result;
    while (got.status === 'working') got = (await on('tasks/get')).body.result;
    assert.deepEqual(
      [got.status, got.result.content[0].text, got.resultType],
      ['completed', 'slowly', 'complete'],
    );
    assert.equal((await on('tasks/get', 'made-up')).body.error.code, -32602);
    assert.equal(
      (await send(port, laterRequest('tasks/get', { taskId: begun.taskId }))).body.error.code,
      -32021,
    );
    const second = (await send(port, laterCall('slow', {}, knows))).body.result;
    assert.equal((await on('tasks/cancel', second.taskId)).body.result.resultType, 'complete');
    assert.equal((await on('tasks/get', second.taskId)).body.result.status, 'cancelled');
    assert.equal(aborted(), 1);
  },
};
