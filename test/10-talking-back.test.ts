// Chapter 10: the server asks and tells.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import type { Json } from '../mcp.ts';
import { cleanUp, connect, habit, open, plugged, rejection, until } from './help/basics.ts';
import { RpcError } from './help/subject.ts';

afterEach(cleanUp);

test('fault 5: ping is answered before the handshake, under ids like 0 and like our own', async () => {
  const { connection } = await connect(habit('asks-first'));
  await connection.initialize(); // the server answers only when it has its three pongs
});

test('fault 5: fifteen questions about roots that we never offered: −32601 each, and the list comes', async () => {
  const { connection, wire } = await open(habit('asks-for-roots'));
  assert.ok((await connection.listTools()).length > 0);
  const refusals = wire.filter(
    ([direction, message]) => direction === 'out' && message.error?.code === -32601,
  );
  assert.deepEqual(
    refusals.map(([, message]) => message.id),
    Array.from({ length: 15 }, (_, n) => n + 1),
  );
});

test('fault 6: a request of the server is no answer of ours, though it has the same id, and is refused', async () => {
  const { connection, wire } = await connect(habit());
  const lines = [
    '{"jsonrpc":"2.0","id":$ID,"method":"roots/list"}',
    '{"jsonrpc":"2.0","id":$ID,"result":{"real":true}}',
  ];
  const result = await connection.request('tools/call', { name: 'raw', arguments: { lines } });
  assert.deepEqual(result, { real: true });
  await until(
    () => wire.filter(([direction, message]) => direction === 'out' && message.error).length === 1,
  );
});

test('a notification whose id is null is still a notification', async () => {
  const seen: unknown[] = [];
  const { connection, wire } = await connect(
    habit(),
    plugged({ handlers: { 'notifications/x': (params) => seen.push(params) } }),
  );
  const lines = [
    '{"jsonrpc":"2.0","id":null,"method":"notifications/x","params":{"n":1}}',
    '{"jsonrpc":"2.0","id":$ID,"result":{}}',
  ];
  await connection.request('tools/call', { name: 'raw', arguments: { lines } });
  assert.deepEqual(seen, [{ n: 1 }]);
  assert.equal(wire.filter(([direction]) => direction === 'out').length, 1);
});

test('`cat` as a server: our own messages come back under our own ids, and the handshake fails', async () => {
  const { connection } = await connect(habit('bounces'));
  assert.ok((await rejection(connection.initialize())) instanceof RpcError);
});

test('B4: a batch that comes in one breath with the answer to `initialize` is read', async () => {
  const server = `
    const say = (message) => process.stdout.write(JSON.stringify(message) + '\\n');
    process.stdin.setEncoding('utf8').on('data', (text) => {
      for (const { id, method, result } of text.trim().split('\\n').map((line) => JSON.parse(line))) {
        if (method === 'initialize') process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result: { protocolVersion: '2025-03-26' } })
          + '\\n' + JSON.stringify([{ jsonrpc: '2.0', id: 'p', method: 'ping' }]) + '\\n');
        if (id === 'p') say({ jsonrpc: '2.0', method: 'notifications/ponged' });
      }
    });`;
  let ponged = 0;
  const { connection } = await connect(
    { command: process.execPath, args: ['-e', server] },
    plugged({ handlers: { 'notifications/ponged': () => void ponged++ } }),
  );
  await connection.initialize();
  await until(() => ponged === 1);
});

test('B6: every uninvited request is refused once', async () => {
  const { connection } = await open(habit());
  for (const method of [
    'sampling/createMessage',
    'elicitation/create',
    'roots/list',
    'toString',
    '__proto__',
    '',
  ]) {
    const answer = JSON.parse(
      (await connection.callTool('ask', { id: `q-${method}`, method })).text,
    );
    assert.deepEqual(answer.error, { code: -32601, message: `Method not found: ${method}` });
  }
  const received: Json[] = JSON.parse((await connection.callTool('log')).text);
  const answers = received.filter((message) => String(message.id).startsWith('q-'));
  assert.equal(answers.length, 6);
});

test('B6: of ten thousand requests in one go each is answered, or it is said that some were not', async () => {
  const { connection, warnings } = await open(habit('asks-without-end', '10000'));
  await connection.callTool('echo');
  const countAnswers = async () => {
    const received: Json[] = JSON.parse((await connection.callTool('log')).text);
    return received.filter((message) => String(message.id).startsWith('q')).length;
  };
  const answered = await countAnswers();
  assert.ok(answered > 0 && answered <= 10_000, `${answered}`);
  assert.ok(
    answered === 10_000 ||
      warnings.some((warning) => /sends requests faster than it reads our answers/.test(warning)),
  );
});

test('B6: requests of a server that never reads are dropped past a cap, and our memory stays bounded', async () => {
  const server = `
    process.stdout.write('x\\n');
    process.stdin.once('data', () => {
      process.stdin.pause();
      let n = 0;
      const more = () => {
        while (n < 100000) if (!process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id: 'q' + n++, method: 'y'.repeat(500) }) + '\\n')) return process.stdout.once('drain', more);
        process.stdout.write('{"jsonrpc":"2.0","id":1,"result":{}}\\n');
      };
      more();
      setTimeout(() => {}, 20_000);
    });`;
  const { connection, wire, warnings } = await connect({
    command: process.execPath,
    args: ['-e', server],
  });
  await connection.request('begin');
  assert.ok(
    warnings.some((warning) => /sends requests faster than it reads our answers/.test(warning)),
    `${warnings}`,
  );
  const answers = wire.filter(([direction, message]) => direction === 'out' && message.error);
  assert.ok(answers.length < 10_000, `${answers.length} answers were queued`);
});

test('a handler answers a request; what it throws is the refusal', async () => {
  const { connection } = await open(
    habit(),
    plugged({
      handlers: {
        'roots/list': async (params, { id }) => ({ roots: [], params, id }),
        'refuse/me': () => Promise.reject(new RpcError(-1, 'The user said no.', { by: 'Ada' })),
        'throw/nothing': () => Promise.reject(),
        'throw/text': () => Promise.reject('just text'),
        'answer/badly': () => ({ big: 10n }),
        'break/me': () => (undefined as any).oops,
        'say/nothing': () => undefined,
      },
    }),
  );
  const ask = async (method: string) =>
    JSON.parse((await connection.callTool('ask', { id: method, method, params: { a: 1 } })).text);
  assert.deepEqual((await ask('roots/list')).result, {
    roots: [],
    params: { a: 1 },
    id: 'roots/list',
  });
  assert.deepEqual((await ask('refuse/me')).error, {
    code: -1,
    message: 'The user said no.',
    data: { by: 'Ada' },
  });
  for (const method of ['break/me', 'throw/nothing', 'throw/text', 'answer/badly']) {
    const { error } = await ask(method);
    assert.deepEqual([error.code, typeof error.message], [-32603, 'string'], method);
  }
  assert.deepEqual((await ask('say/nothing')).result, {});
});

test('notifications reach their handler, in order; unknown ones are ignored; a handler that throws is reported', async () => {
  const seen: Json[] = [];
  const { connection, warnings } = await open(
    habit(),
    plugged({
      handlers: {
        'notifications/message': (params) => seen.push(params),
        'notifications/broken': () => Promise.reject(new Error('my mistake')),
      },
    }),
  );
  for (const n of [1, 2, 3])
    await connection.callTool('tell', { method: 'notifications/message', params: { n } });
  await connection.callTool('tell', { method: 'notifications/unheard' });
  await connection.callTool('tell', { method: 'notifications/broken' });
  assert.deepEqual(seen, [{ n: 1 }, { n: 2 }, { n: 3 }]);
  await until(() => warnings.length > 0);
  assert.deepEqual(warnings, [
    'MCP server "demo": the extension "extension 1" failed at notifications/broken: my mistake',
  ]);
});

test('a ping in the middle of a call is answered while the call waits', async () => {
  const { connection, wire } = await open(habit());
  await connection.callTool('ask', { id: 'p', method: 'ping' });
  const order = wire
    .slice(-4)
    .map(([direction, message]) => `${direction} ${message.method ?? message.id}`);
  assert.deepEqual(order, ['out tools/call', 'in ping', 'out p', 'in 2']);
});

test('three thousand notifications in one breath all arrive', async () => {
  let heard = 0;
  const { connection } = await open(
    habit(),
    plugged({ handlers: { 'notifications/x': () => void heard++ } }),
  );
  const lines = [
    Array.from({ length: 3000 }, () => '{"jsonrpc":"2.0","method":"notifications/x"}').join('\n'),
    '{"jsonrpc":"2.0","id":$ID,"result":{}}',
  ];
  await connection.request('tools/call', { name: 'raw', arguments: { lines } });
  assert.equal(heard, 3000);
});

test('a server that asks much and never reads does not keep the handshake waiting', async () => {
  const server = `
    process.stdin.once('data', () => {
      process.stdin.pause();
      const question = JSON.stringify({ jsonrpc: '2.0', id: 'q', method: 'x'.repeat(1000) }) + '\\n';
      for (let i = 0; i < 900; i++) process.stdout.write(question);
      process.stdout.write('{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}\\n');
      setTimeout(() => {}, 20_000);
    });`;
  const { connection } = await connect({ command: process.execPath, args: ['-e', server] });
  assert.equal((await connection.initialize()).protocolVersion, '2025-11-25');
});

test('progress reaches the caller and starts the wait anew', async () => {
  const { connection, wire } = await open(habit());
  const seen: unknown[] = [];
  // Twelve steps of 100 ms are more than the limit of 600 ms, but no silence is.
  const options = { timeoutMs: 600, onProgress: (progress: Json) => seen.push(progress.progress) };
  const result = await connection.callTool('work', { everyMs: 100, times: 12 }, options);
  assert.equal(result.text, 'worked');
  assert.deepEqual(seen, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  const sent = wire.find(
    ([direction, message]) => direction === 'out' && message.method === 'tools/call',
  )![1];
  assert.equal(sent.params._meta.progressToken, sent.id);
});

test('fault 4, B8: progress without end does not keep a call for ever', async () => {
  const { connection } = await open(habit(), { maxCallMs: 700 });
  let steps = 0;
  const options = { timeoutMs: 300, onProgress: () => steps++ };
  const error = await rejection(connection.callTool('work', { everyMs: 20, times: 1e6 }, options));
  assert.equal(error.kind, 'timeout');
  assert.ok(steps > 1, 'there was progress');
});

test('progress that nobody asked for, or for somebody else, does nothing', async () => {
  const { connection } = await open(habit());
  for (const progressToken of [1, 2, '2', null, '__proto__', undefined])
    await connection.callTool('tell', {
      method: 'notifications/progress',
      params: { progressToken, progress: 1 },
    });
  assert.equal((await connection.callTool('echo')).text, '{}');
});

test('a server that sends our token back as a string means the same call, as with ids', async () => {
  const { connection, wire } = await open(habit());
  await connection.callTool('echo');
  const seen: Json[] = [];
  const progressToken = `${wire.filter(([direction]) => direction === 'out').at(-1)![1].id + 1}`;
  await connection.callTool(
    'tell',
    { method: 'notifications/progress', params: { progressToken, progress: 1 } },
    { onProgress: (progress: Json) => seen.push(progress) },
  );
  assert.deepEqual(seen, [{ progressToken, progress: 1 }]);
});

test('an onProgress that throws does not harm the call', async () => {
  const { connection, warnings } = await open(habit());
  const onProgress = () => {
    throw new Error('my mistake');
  };
  assert.equal(
    (await connection.callTool('work', { everyMs: 1, times: 3 }, { onProgress })).text,
    'worked',
  );
  assert.match(warnings.join(), /failed at notifications\/progress: my mistake/);
});

test('an async onProgress that fails does not harm the call either', async () => {
  const { connection, warnings } = await open(habit());
  const onProgress = (() => Promise.reject(new Error('my mistake'))) as () => void;
  assert.equal(
    (await connection.callTool('work', { everyMs: 1, times: 3 }, { onProgress })).text,
    'worked',
  );
  await until(() => /failed at notifications\/progress: my mistake/.test(warnings.join()));
});
