// Chapter 22: a server asks inside its results.

import assert from 'node:assert/strict';
import { afterEach } from 'node:test';
import type { Json } from '../mcp.ts';
import { cleanUp, rejection } from './help/basics.ts';
import {
  legacy,
  modern,
  notePauses,
  onBoth,
  pauses,
  replacePause,
  seen,
  sent,
  user,
} from './help/both-eras.ts';
import type { Act, Script } from './help/scripted-peer.ts';

afterEach(cleanUp);

/** Asks until `rounds` are over, with the given state, and then answers with what it was sent the last time. */
const asks: Act = (params, { seen }) => {
  const {
    rounds = 1,
    state,
    questions = { q: { method: 'elicitation/create', params: { message: 'A?' } } },
  } = params.arguments;
  const isSame = (each: any) =>
    JSON.stringify(each.params?.arguments) === JSON.stringify(params.arguments);
  const round = seen.filter(isSame).length;
  if (round > rounds) return { result: { resultType: 'complete', given: params } };
  const requestState = state === 'round' ? `${round}` : state;
  return {
    result: { resultType: 'input_required', inputRequests: questions ?? undefined, requestState },
  };
};
const asking: Script = {
  ...modern,
  'tools/call': asks,
  'prompts/get': asks,
  'resources/read': asks,
};

onBoth(
  'tools/call, prompts/get and resources/read are sent again with the answers, under a new id',
  async (_, open) => {
    const asked: Json[] = [];
    const opened = await open(
      asking,
      user((params) => (asked.push(params), { action: 'accept', content: { n: asked.length } })),
    );
    const questions = {
      a: { method: 'elicitation/create', params: { message: 'A?' } },
      b: { method: 'elicitation/create', params: { message: 'B?' } },
    };
    for (const method of ['tools/call', 'prompts/get', 'resources/read']) {
      asked.length = 0;
      const params = { name: 'x', uri: 'x:', arguments: { questions, method, state: 's1.9f2c' } };
      const { given } = (await opened.connection.request(method, params)) as { given: any };
      assert.deepEqual(asked, [{ message: 'A?' }, { message: 'B?' }]);
      const { _meta, ...rest } = given;
      assert.deepEqual(Object.keys(_meta).length, 3);
      const inputResponses = {
        a: { action: 'accept', content: { n: 1 } },
        b: { action: 'accept', content: { n: 2 } },
      };
      assert.deepEqual(rest, { ...params, inputResponses, requestState: 's1.9f2c' });
      const [first, second] = await seen(opened, method);
      assert.notEqual(first.id, second.id);
      assert.deepEqual(
        Object.keys(first.params).filter((key) => /^(input|requestS)/.test(key)),
        [],
      );
    }
  },
);

onBoth(
  'trap 14: the state goes back exactly as it came, and not at all if there was none',
  async (_, open) => {
    const { connection } = await open(asking, user());
    const states = [
      '{"b":1,  "a":1.0}',
      '"quoted"',
      '',
      ' ',
      '0',
      'null',
      'a\u2028b\u2029c',
      '\u0000\ud83d\ude00é\\n\n',
      '__proto__',
      'x'.repeat(100_000),
    ];
    for (const state of states) {
      const { given } = (await connection.request('tools/call', {
        name: 'x',
        arguments: { state },
      })) as { given: Json };
      assert.ok(Object.hasOwn(given, 'requestState'));
      assert.equal(given.requestState, state);
    }
    const { given } = (await connection.request('tools/call', { name: 'x', arguments: {} })) as {
      given: Json;
    };
    assert.ok(!Object.hasOwn(given, 'requestState') && Object.hasOwn(given, 'inputResponses'));
  },
);

onBoth(
  'several rounds: each answers only what the last one asked, with the last state',
  async (_, open) => {
    let n = 0;
    const opened = await open(
      asking,
      user(() => ({ action: 'accept', content: { n: ++n } })),
    );
    await opened.connection.request('tools/call', {
      name: 'x',
      arguments: { rounds: 3, state: 'round' },
    });
    const calls = await seen(opened, 'tools/call');
    const added = calls.map(({ params }) => [
      params.requestState,
      params.inputResponses?.q.content.n,
    ]);
    assert.deepEqual(added, [
      [undefined, undefined],
      ['1', 1],
      ['2', 2],
      ['3', 3],
    ]);
    assert.equal(new Set(calls.map(({ id }) => id)).size, 4);
  },
);

onBoth('a state that the next round does not repeat is forgotten', async (_, open) => {
  const opened = await open(
    {
      ...modern,
      'tools/call': (_, { seen }) =>
        [
          {
            result: {
              resultType: 'input_required',
              requestState: 'old',
              inputRequests: { a: { method: 'elicitation/create' } },
            },
          },
          {
            result: {
              resultType: 'input_required',
              inputRequests: { b: { method: 'elicitation/create' } },
            },
          },
          { result: { resultType: 'complete' } },
        ][seen.filter(({ method }) => method === 'tools/call').length - 1],
    },
    user(),
  );
  await opened.connection.request('tools/call', { name: 'x' });
  const last = (await seen(opened, 'tools/call')).at(-1);
  assert.equal('requestState' in last.params, false);
  assert.deepEqual(Object.keys(last.params.inputResponses), ['b']);
});

onBoth(
  'what we were given stays as it was, and a call at the same time sees nothing of it',
  async (_, open) => {
    const freeze = (value: any): any =>
      typeof value === 'object'
        ? Object.freeze(Object.values(value).forEach(freeze) ?? value)
        : value;
    const options = user(async () => {
      await opened.connection.request('tools/call', { name: 'other', arguments: { rounds: 0 } });
      return { action: 'accept' };
    });
    const opened = await open(asking, options);
    const params = freeze({ name: 'x', arguments: { state: 's' }, _meta: { traceparent: '00' } });
    await Promise.all(
      [1, 2].map((n) =>
        opened.connection.request('tools/call', {
          ...params,
          arguments: { ...params.arguments, n },
        }),
      ),
    );
    const others = (await seen(opened, 'tools/call')).filter(
      (message) => message.params.name === 'other',
    );
    assert.equal(others.length, 2);
    for (const { params } of others)
      assert.deepEqual(Object.keys(params), ['name', 'arguments', '_meta']);
  },
);

onBoth(
  'a server that asks for nothing but patience gets it: a pause, then the same again',
  async (_, open) => {
    const opened = await open(asking);
    const noted = notePauses();
    for (const questions of [null, {}]) {
      const { given } = (await opened.connection.request('tools/call', {
        name: 'x',
        arguments: { rounds: 3, state: 'round', questions },
      })) as { given: Json };
      assert.equal(given.requestState, '3');
      assert.equal('inputResponses' in given, false);
    }
    assert.deepEqual(noted, [200, 400, 800, 200, 400, 800]);
  },
);

onBoth('whoever cancels during that pause need not wait, and is told so', async (_, open) => {
  const opened = await open(asking);
  const controller = new AbortController();
  const { retry } = pauses;
  replacePause('retry', (_, signal) => (controller.abort(), retry(1e8, signal)));
  const args = { name: 'x', arguments: { questions: null } };
  const error = await rejection(
    opened.connection.request('tools/call', args, { signal: controller.signal }),
  );
  assert.equal(error.kind, 'aborted');
  assert.equal((await seen(opened, 'tools/call')).length, 1);
});

onBoth('ten rounds, and no more', async (_, open) => {
  const opened = await open(asking, user());
  await opened.connection.request('tools/call', { name: 'x', arguments: { rounds: 10 } });
  assert.equal((await seen(opened, 'tools/call')).length, 11);
  const error = await rejection(
    opened.connection.request('tools/call', { name: 'x', arguments: { rounds: 11 } }),
  );
  assert.equal(error.kind, 'limit');
  assert.equal((await seen(opened, 'tools/call')).length, 22);
});

onBoth(
  'what we have not offered is not done, whatever handlers there are; nothing is sent again',
  async (_, open) => {
    const told: string[] = [];
    const note = (name: string) => () => void told.push(name);
    const opened = await open(asking, {
      parts: {
        capabilities: { elicitation: {}, roots: {} },
        handlers: {
          'sampling/createMessage': note('sampling'),
          'notifications/tools/list_changed': note('changed'),
        },
      },
    });
    const known = [
      'sampling/createMessage',
      'roots/list',
      'elicitation/create',
      'ping',
      'notifications/tools/list_changed',
    ];
    const methods = [...known, 'toString', '__proto__', '', 7, null, { toString: 1 }];
    for (const [n, method] of methods.entries()) {
      const error = await rejection(
        opened.connection.request('tools/call', {
          name: 'x',
          arguments: { questions: { q: { method } } },
        }),
      );
      assert.equal(error.kind, 'protocol', `${JSON.stringify(method)}: ${error}`);
      assert.match(error.message, /which we have not offered/);
      assert.equal((await seen(opened, 'tools/call')).length, n + 1);
    }
    assert.equal(
      (
        await rejection(
          opened.connection.request('tools/call', {
            name: 'x',
            arguments: { questions: { q: 7 } },
          }),
        )
      ).kind,
      'protocol',
    );
    assert.deepEqual(told, []);
  },
);

onBoth(
  'to decline is an answer like any other; every key gets its own, whatever it is called',
  async (_, open) => {
    const opened = await open(
      {
        ...modern,
        'tools/call': (params) => {
          const inputRequests = JSON.parse(
            '{"__proto__":{"method":"elicitation/create"},"":{"method":"elicitation/create"}}',
          );
          if (!params.inputResponses)
            return { result: { resultType: 'input_required', inputRequests } };
          return { result: { text: JSON.stringify(params.inputResponses) } };
        },
      },
      user(() => ({ action: 'decline' })),
    );
    const { text } = await opened.connection.request('tools/call', { name: 'x' });
    assert.equal(text, '{"__proto__":{"action":"decline"},"":{"action":"decline"}}');
  },
);

onBoth(
  'a handler that fails ends the call with its own error, and nothing is sent again',
  async (_, open) => {
    const opened = await open(
      asking,
      user(() => Promise.reject(new Error('the user has left'))),
    );
    const error = await rejection(
      opened.connection.request('tools/call', { name: 'x', arguments: {} }),
    );
    assert.equal(error.message, 'the user has left');
    assert.equal((await seen(opened, 'tools/call')).length, 1);
  },
);

onBoth(
  'the same handler serves the earlier era, where a question is a request',
  async (_, open) => {
    const { connection } = await open(
      {
        ...legacy,
        'tools/call': (_, peer, memory) => (
          (memory.call = peer),
          peer.send({ id: 1, method: 'elicitation/create', params: { message: 'A?' } })
        ),
        '(answer)': ({ id, result }, _, memory) =>
          memory.call.reply({ result: { given: { id, ...result } } }),
      },
      user(({ message }) => ({ action: 'accept', content: { message } })),
    );
    const { given } = await connection.request('tools/call', { name: 'x' });
    assert.deepEqual(given, { id: 1, action: 'accept', content: { message: 'A?' } });
  },
);

onBoth(
  'B6: in the later era a request from the server is dropped: one warning, no answer',
  async (_, open) => {
    const opened = await open(
      {
        ...modern,
        'tools/call': (_, peer) => {
          for (const method of ['elicitation/create', 'ping', 'roots/list', 'unknown'])
            peer.send({ id: method, method, params: {} });
          return { result: { content: [] } };
        },
      },
      user(() => assert.fail('it was called')),
    );
    await opened.connection.callTool('x');
    assert.deepEqual(opened.warnings, [
      'MCP server "demo" sent a request, which its revision does not allow: "elicitation/create"',
    ]);
    await seen(opened);
    assert.deepEqual(
      (await seen(opened)).filter(({ method }) => method === undefined),
      [],
    );
    assert.equal(sent(opened).includes('(answer)'), false);
  },
);
