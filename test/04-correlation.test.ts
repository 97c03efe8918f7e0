// Chapter 4: the pending map. Answers come in any order, and each finds its caller.

import assert from 'node:assert/strict';
import { Socket } from 'node:net';
import { afterEach, test } from 'node:test';
import {
  call,
  cleanUp,
  connect,
  habit,
  later,
  pause,
  rejection,
  start,
  toolCall,
  until,
} from './help/basics.ts';
import { McpError, RpcError } from './help/subject.ts';

afterEach(cleanUp);

const MiB = 2 ** 20;
const story = 'Zoë 🦊 ate 3 € of 日本 noodles\u2028and then\u2029slept';

const raw = (...lines: string[]) => ['tools/call', { name: 'raw', arguments: { lines } }] as const;

test('every message says jsonrpc 2.0, and a request has its own id', async () => {
  const { connection, wire } = await connect(habit());
  await Promise.all([
    connection.request('ping'),
    connection.request('ping'),
    connection.request('ping'),
  ]);
  const sent = wire.filter(([direction]) => direction === 'out').map(([, message]) => message);
  assert.ok(sent.every((message) => message.jsonrpc === '2.0'));
  assert.deepEqual(
    sent.map((message) => message.id),
    [1, 2, 3],
  );
});

test('a notification has no id, and nobody answers it', async () => {
  const { connection, wire } = await connect(habit());
  await connection.notify('notifications/hello', { to: 'you' });
  await connection.request('ping');
  assert.deepEqual(
    wire.map(([direction, message]) => [direction, message.id, message.method]),
    [
      ['out', undefined, 'notifications/hello'],
      ['out', 1, 'ping'],
      ['in', 1, undefined],
    ],
  );
});

test('answers that come backwards find their callers', async () => {
  const { connection } = await connect(habit('backwards', '100'));
  const numbers = Array.from({ length: 100 }, (_, n) => n);
  const results: any[] = await Promise.all(
    numbers.map((n) => connection.request('tools/call', { name: 'echo', arguments: { n } })),
  );
  assert.deepEqual(
    results.map((result) => JSON.parse(result.content[0].text).n),
    numbers,
  );
});

test('two hundred requests of 100 KB at once', async () => {
  const { connection } = await connect(habit());
  const filler = 'ü'.repeat(50_000);
  const results: any[] = await Promise.all(
    Array.from({ length: 200 }, (_, n) =>
      connection.request('tools/call', { name: 'echo', arguments: { n, filler } }),
    ),
  );
  assert.ok(results.every((result, n) => result.content[0].text === JSON.stringify({ n, filler })));
});

test('B3: answers under ids that nobody asked with are dropped and reported; the right one counts, once', async () => {
  const { connection, warnings } = await connect(habit());
  const wrong = [
    '"0$ID"',
    '" $ID"',
    '"$ID.0"',
    '"$IDe0"',
    '["$ID"]',
    '"99"',
    'null',
    '99',
    '-1',
    '1.5',
    '"__proto__"',
    '"constructor"',
    '{"a":1}',
    '[1]',
    'true',
  ];
  const lines = wrong.map((id) => `{"jsonrpc":"2.0","id":${id},"result":{"forged":true}}`);
  const right = '{"jsonrpc":"2.0","id":$ID,"result":{"real":1}}';
  const second = '{"jsonrpc":"2.0","id":$ID,"result":{"real":2}}';
  const noId = '{"jsonrpc":"2.0","result":{}}';
  assert.deepEqual(await connection.request(...raw(...lines, noId, right, second)), { real: 1 });
  assert.deepEqual(await connection.request('ping'), {}, 'and the connection goes on');
  assert.equal(warnings.length, 1);
  assert.match(warnings[0]!, /an answer that no call is waiting for: \{"jsonrpc":"2.0","id":"0\d/);
});

// Safe, because our ids are numbers: the string can mean one call at most, of the very server that sent it,
// and that server could have sent the number. Refused, it costs the user a call that times out.
test('B3: our id as a string is taken if it has exactly the digits of a call that waits, and told once', async () => {
  const { connection, warnings } = await connect(habit());
  const answer = (n: number) => `{"jsonrpc":"2.0","id":"$ID","result":{"real":${n}}}`;
  assert.deepEqual(await connection.request(...raw(answer(1), answer(2))), { real: 1 });
  assert.deepEqual(await connection.request(...raw(answer(3))), { real: 3 });
  assert.deepEqual(await connection.request('ping'), {}, 'and the connection goes on');
  assert.equal(warnings.length, 2, `${warnings}`);
  assert.match(warnings[0]!, /^MCP server "\w+" answers to id (\d+) with the string "\1"$/);
  assert.match(warnings[1]!, /no call is waiting for: .*"real":2/, 'a second one settles nothing');
});

test('B3: an answer settles no call on another server', async () => {
  const [one, two] = [await connect(habit('mute')), await connect(habit())];
  const waiting = one.connection.request('tools/call', { name: 'echo' });
  let settled = false;
  waiting.catch(() => {}).finally(() => (settled = true));
  await two.connection.request('ping'); // has the same id
  assert.equal(settled, false);
});

test('fault 6: a request of the server is no answer of ours, though it has the same id', async () => {
  const { connection } = await connect(habit());
  const [question, answer] = [
    '{"jsonrpc":"2.0","id":$ID,"method":"roots/list"}',
    '{"jsonrpc":"2.0","id":$ID,"result":{"real":true}}',
  ];
  assert.deepEqual(await connection.request(...raw(question, answer)), { real: true });
});

test('fault 7, B4: an answer of an odd shape is an error for its call, at once, and for no other', async () => {
  const { connection } = await connect(habit());
  const odd: [string, RegExp][] = [
    ['{"jsonrpc":"2.0","id":$ID}', /neither result nor error/],
    ['{"jsonrpc":"2.0","id":$ID,"result":null}', /neither result nor error/],
    [
      '{"jsonrpc":"2.0","id":$ID,"result":{},"error":{"code":1,"message":"x"}}',
      /a result and an error/,
    ],
    [
      '{"jsonrpc":"2.0","id":$ID,"result":"","error":{"code":1,"message":"x"}}',
      /a result and an error/,
    ],
    ['{"jsonrpc":"2.0","id":$ID,"result":"done"}', /a result that is not an object: "done"/],
    ['{"jsonrpc":"2.0","id":$ID,"result":[1]}', /a result that is not an object/],
    ['{"jsonrpc":"1.0","id":$ID,"result":{}}', /not JSON-RPC 2.0/],
    ['{"id":$ID,"result":{}}', /not JSON-RPC 2.0/],
  ];
  for (const [line, why] of odd) {
    const error = await rejection(connection.request(...raw(line)));
    assert.ok(error instanceof McpError && error.kind === 'protocol', `${line} gave ${error}`);
    assert.match(error.message, why);
  }
  assert.deepEqual(
    await connection.request(...raw('{"jsonrpc":"2.0","id":$ID,"result":{},"error":null}')),
    {},
  );
});

test('fault 7: what a server refuses keeps its code, its words and its data', async () => {
  const { connection } = await connect(habit());
  const error = await rejection(
    connection.request(
      ...raw(
        '{"jsonrpc":"2.0","id":$ID,"error":{"code":-32002,"message":"no such thing","data":{"uri":"x"}}}',
      ),
    ),
  );
  assert.ok(error instanceof RpcError && !(error instanceof McpError));
  assert.deepEqual([error.code, error.data], [-32002, { uri: 'x' }]);
  const words = 'MCP server "demo" refused tools/call: no such thing (-32002)';
  assert.equal(error.message, `${words}: {"uri":"x"}`);
  for (const [data, told] of [
    ['"the disk is full"', ': the disk is full'],
    ['null', ''],
    ['""', ''],
    [`"${'x'.repeat(5000)}"`, `: ${'x'.repeat(1000)}`],
  ]) {
    const refused = `{"code":-32002,"message":"no such thing","data":${data}}`;
    const answer = raw(`{"jsonrpc":"2.0","id":$ID,"error":${refused}}`);
    const { message } = await rejection(connection.request(...answer));
    assert.equal(message, `${words}${told}`);
  }
});

test('fault 7: a malformed error is still an error, and says what came', async () => {
  const { connection } = await connect(habit());
  for (const [body, shown] of [
    ['"oops"', /"oops"/],
    ['{"msg":"hm"}', /\{"msg":"hm"\}/],
    ['{"code":"E7","message":["a"]}', /"E7"/],
    ['0', /: 0/],
  ] as const) {
    const error = await rejection(
      connection.request(...raw(`{"jsonrpc":"2.0","id":$ID,"error":${body}}`)),
    );
    assert.ok(error instanceof RpcError);
    assert.equal(typeof error.code, 'number');
    assert.match(error.message, shown);
  }
});

test('a refusal of any length is passed on in part', async () => {
  const { connection } = await connect(habit());
  const refusal = `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"${'E'.repeat(100_000)}"}}`;
  const { message } = await rejection(connection.request(...raw(refusal)));
  assert.ok(message.length > 9_000 && message.length < 11_000, `${message.length}`);
});

test('what cannot be written as JSON fails its own call only', async () => {
  const { connection } = await connect(habit());
  const circle: Record<string, unknown> = {};
  circle.self = circle;
  for (const args of [circle, { big: 10n }]) {
    const error = await rejection(
      connection.request('tools/call', { name: 'echo', arguments: args }),
    );
    assert.ok(error instanceof TypeError, `${error}`);
  }
  assert.deepEqual(await connection.request('ping'), {});
});

test('B2: banners, blank lines, JSON that is no message, a byte order mark: reported once, and the call works', async () => {
  const { connection, warnings, wire } = await connect(habit('chatty'));
  assert.equal(await call(connection, 'echo', { a: 1 }), '{"a":1}');
  assert.equal(warnings.length, 1);
  assert.match(
    warnings[0]!,
    /"demo" sends something other than messages: "Welcome to Chatty 2.0!"/,
  );
  // The message behind the byte order mark was read; the line that is JSON but not JSON-RPC was not answered.
  assert.ok(wire.some(([, message]) => message.method === 'notifications/hello'));
  assert.deepEqual(wire.filter(([direction]) => direction === 'out').length, 1);
});

test('ten thousand noisy lines are one warning', async () => {
  const { connection, warnings } = await connect(habit('endless-noise'));
  assert.equal(await call(connection, 'echo'), 'done');
  assert.equal(warnings.length, 1);
});

test('U+2028 leaves us escaped, because readline in Node 24 would split there', async () => {
  const { call: callTool } = await start({
    command: process.execPath, // tells the length of each raw line as it came
    args: [
      '-e',
      `process.stdin.on('data', (bytes) => {
      const answer = { jsonrpc: '2.0', id: 1, result: { hasRaw: bytes.includes(Buffer.from('\u2028')) || bytes.includes(Buffer.from('\u2029')) } };
      console.log(JSON.stringify(answer));
    })`,
    ],
  });
  assert.deepEqual(await callTool('echo', { story }), { hasRaw: false });
});

/** Counts the writes of messages to pipes while `work` runs. */
async function countWrites(transport: any, work: () => Promise<void>): Promise<number> {
  const pipes = 'bun' in process.versions ? transport.child.stdin : Socket.prototype;
  const { write } = pipes;
  let writes = 0;
  pipes.write = function (this: Socket, ...args: any[]) {
    if (String(args[0]).includes('jsonrpc')) writes++;
    return (write as any).apply(this, args);
  } as typeof write;
  await work().finally(() => (pipes.write = write));
  return writes;
}

test('messages of one tick become one write', async () => {
  const { transport, messages } = await start(habit());
  const writes = await countWrites(transport, async () => {
    await Promise.all(
      Array.from({ length: 100 }, (_, id) =>
        transport.send({ jsonrpc: '2.0', id, method: 'ping' }),
      ),
    );
  });
  await until(() => messages.length === 100);
  assert.equal(writes, 1);
});

test('a server that does not read is not written to: one write waits, the rest stays with us', async () => {
  const server = `process.stdin.once('data', () => process.stdin.pause()); setTimeout(() => {}, 20_000);`;
  const { transport } = await start({ command: process.execPath, args: ['-e', server] });
  await transport.send({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
  await pause(300); // until it has stopped reading
  let left = 0;
  const writes = await countWrites(transport, async () => {
    for (let id = 0; id < 50; id++) {
      void transport.send(toolCall(id, 'echo', { filler: 'x'.repeat(MiB) })).then(() => left++);
      await pause(1);
    }
  });
  // Bun takes all and keeps it, and `MAX_UNSENT` bounds that as well.
  const most = 'bun' in process.versions ? 50 : 2;
  assert.ok(writes <= most, `one write should wait for the reader, but there were ${writes}`);
  assert.equal(left, 0, 'no send may resolve before its bytes have left');
});

test('much at once goes out in pieces that a string can hold', async () => {
  const { transport, messages } = await start(habit());
  const writes = await countWrites(transport, async () => {
    const args = { filler: 'x'.repeat(100_000), result: {} };
    await Promise.all(
      Array.from({ length: 100 }, (_, id) => transport.send(toolCall(id, 'result', args))),
    );
  });
  assert.ok(writes >= 9 && writes <= 11, `${writes} writes for 10 MB`);
  await until(() => messages.length === 100);
});

test('a send resolves when its own bytes have left, though others keep the pipe busy', async () => {
  // Reads 64 KB every few milliseconds: the pipe is always full.
  const server = `process.stdin.on('data', () => { process.stdin.pause(); setTimeout(() => process.stdin.resume(), 2); })`;
  const { transport } = await start({ command: process.execPath, args: ['-e', server] });
  const filler = 'x'.repeat(100_000);
  let id = 0;
  const send = () => transport.send(toolCall(id++, 'echo', { filler })).catch(() => {}); // too much may wait by then
  const busy = setInterval(send, 1); // faster than it reads
  later(() => clearInterval(busy));
  await pause(200);
  await transport.send({ jsonrpc: '2.0', method: 'notifications/hello' });
});

test('through a pipe that is mostly full everything arrives once, whole and in order', async () => {
  // Reads 64 KB at a time, with a break after each, and tells which ids it has read.
  const server = `
    let rest = '';
    process.stdin.setEncoding('utf8').on('data', (text) => {
      const lines = (rest + text).split('\\n');
      rest = lines.pop();
      const seen = lines.map((line) => JSON.parse(line).id);
      if (seen.length) console.log(JSON.stringify({ jsonrpc: '2.0', method: 'seen', params: { seen } }));
      process.stdin.pause();
      setImmediate(() => process.stdin.resume());
    })`;
  const { transport, messages } = await start({ command: process.execPath, args: ['-e', server] });
  const sizes = [10, 200_000, 1_200_000, 20_000, 300]; // less and more than a write, and than the pipe
  const sent: Promise<void>[] = [];
  const order: number[] = [];
  for (let id = 0; id < 30; id++) {
    const filler = 'é'.repeat(sizes[id % sizes.length]!);
    const left = transport.send(toolCall(id, 'echo', { filler })).then(() => void order.push(id));
    sent.push(left);
    if (id % 4 === 3) await pause(1); // several in one turn of the event loop, and several turns
  }
  await Promise.all(sent);
  const ids = Array.from(sent.keys());
  assert.deepEqual(order, ids);
  const seen = () => messages.flatMap(({ params }: any) => params.seen);
  await until(() => seen().length >= ids.length);
  assert.deepEqual(seen(), ids);
});
