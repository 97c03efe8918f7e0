// Judges exercise 4: does every request get its id, its place on the wire, and its own answer?

import { randomBytes, randomInt } from 'node:crypto';
import type { Judge } from '../book.ts';

const word = () => `w${randomBytes(4).toString('hex')}`; // nothing here is known before
/** Long enough for every promise that waits only for others: turns of our own loop, not milliseconds. */
const settle = async () => {
  for (let turn = 0; turn < 50; turn++) await new Promise((done) => setImmediate(done));
};

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpConnection } = await load('mcp.ts');
  /** A connection whose server is here. `answer` gets each message as it is sent, and what to say with. */
  type Say = (message: object) => void;
  type Answer = (message: any, say: Say, connection: any) => unknown;
  const open = async (answer: Answer = () => {}) => {
    const sent: any[] = []; // what the transport was given
    const seen: any[] = []; // what `onWire` was told of our messages
    let events: any;
    const say = (message: object) => events.message({ jsonrpc: '2.0', ...message });
    const transport = {
      start: async (given: any) => void (events = given),
      send: async (message: any, headers: unknown) => {
        sent.push({ message, headers });
        await answer(message, (said) => say({ id: message.id, ...said }), connection);
      },
      close: async () => {},
    };
    const onWire = (direction: 'in' | 'out', message: any, serverName: string) => {
      see(direction, message, serverName);
      if (direction === 'out') seen.push(message);
    };
    const options = { transports: { here: () => transport }, onWire, onWarning: () => {} };
    const connection = new McpConnection('demo', { type: 'here' }, options);
    await connection.connect();
    /** Asks, and notes what becomes of it. */
    const ask = (method: string, params?: object, more?: object) => {
      const outcome: { now: string; error?: any; value?: any } = { now: 'it waits' };
      const settled = (now: string, more: object) => void Object.assign(outcome, { now, ...more });
      const promise = Promise.resolve().then(() => connection.request(method, params, more));
      promise.then(
        (value) => settled(`it resolved with ${JSON.stringify(value)}`, { value }),
        (error) => settled(`it rejected: ${error}`, { error }),
      );
      return outcome;
    };
    return { connection, sent, seen, say, ask };
  };

  // ── Rule 1: the message ──
  const first = await open();
  const [method, params] = [word(), { [word()]: randomInt(1e6) }];
  const one = first.ask(method, params);
  await settle();
  const counts = () => `${first.sent.length} sent, ${first.seen.length} seen by onWire`;
  await expect(
    'a request goes through `this.send`, once, where it can be watched',
    '1 sent, 1 seen by onWire, and it waits',
    `${counts()}, and ${one.now}`,
    /^1 sent, 1 seen/,
  );
  // (Of rule 2, because a call that waits for others would fail the rest of these.)
  const slow = await open((message) => message.id === 1 && new Promise(() => {}));
  const [slowest] = Array.from({ length: 4 }, () => slow.ask(word()));
  await settle();
  await expect(
    'calls do not wait for each other',
    '4 messages of 4 calls: the first is not answered, and not even taken by a slow server',
    `${slow.sent.length} messages of 4 calls`,
    /^4 /,
  );

  const inOrder = (message: any) => {
    const { jsonrpc, id, method, params, ...more } = JSON.parse(JSON.stringify(message));
    return { jsonrpc, id: typeof id, method, params, ...more };
  };
  const wanted = { jsonrpc: '2.0', id: 'number', method, params };
  await expect(
    'a message has jsonrpc, an id that is a number, method and params',
    JSON.stringify({ ...wanted, id: 1 }),
    first.sent[0].message,
    (came) => JSON.stringify(inOrder(came)) === JSON.stringify(wanted),
  );
  await expect(
    'the parameters of the caller stay as they are',
    'one key, as before',
    Object.keys(params),
    (came) => came.length === 1,
  );
  const headers = { [`x-${word()}`]: word() };
  first.ask(word(), {}, { headers });
  first.ask(word());
  await settle();
  await expect(
    'the headers of a call go along with it, beside the message',
    `this.send(message, ${JSON.stringify(headers)})`,
    first.sent[1]?.headers ?? 'no headers',
    (came) => JSON.stringify(came) === JSON.stringify(headers),
  );
  await expect(
    'the requests of a connection are numbered from 1',
    'the ids 1, 2 and 3, as numbers, one after the other',
    first.sent.map(({ message }) => message.id),
    (came) => JSON.stringify(came) === '[1,2,3]',
  );
  const other = await open();
  other.ask(word());
  await settle();
  await expect(
    'each connection counts for itself',
    'the id 1, on another connection',
    other.sent.map(({ message }) => message.id),
    (came) => JSON.stringify(came) === '[1]',
  );

  // ── Rule 2: the waiter ──
  const waiters: string[] = [];
  const early = await open((message, _say, { pending }) => {
    const waiter = pending.get(message.id);
    const isWhole = typeof waiter?.resolve === 'function' && typeof waiter.reject === 'function';
    const knows = waiter?.call?.method === message.method ? 'its call' : 'another call, or none';
    waiters.push(waiter ? `${isWhole ? 'a waiter' : 'something'} with ${knows}` : 'no waiter');
  });
  for (let n = 0; n < 3; n++) early.ask(word());
  await settle();
  await expect(
    'who waits is in `pending`, under its id, before anything is sent',
    'at each of three messages: a waiter with its call',
    waiters,
    (came) => `${came}` === Array(3).fill('a waiter with its call').join(),
  );
  const quick = await open((_, say) => say({ result: { quick: true } }));
  const answered = quick.ask('quick');
  await settle();
  await expect(
    'an answer that comes while we send finds its waiter',
    'it resolved with {"quick":true}',
    answered.now,
    /^it resolved with \{"quick":true\}$/,
  );

  const many = await open();
  const calls = Array.from({ length: 6 }, (_, n) => many.ask(`call ${n + 1}`));
  await settle();
  await expect(
    'a call waits for its answer, not only until it is sent',
    'six calls that wait',
    calls.map(({ now }) => now),
    (came) => came.every((now: string) => now === 'it waits'),
  );
  const order = [1, 2, 3, 4, 5, 6].sort(() => randomInt(3) - 1);
  const [refused] = order;
  for (const id of order) {
    if (id === refused) many.say({ id, error: { code: -32000 - id, message: 'no', data: word() } });
    else many.say({ id, result: { for: id } });
  }
  await settle();
  const isItsOwn = ({ value, error }: (typeof calls)[0], n: number) =>
    n + 1 === refused ? error?.code === -32001 - n : value?.for === n + 1;
  await expect(
    'each answer settles its own call, in whatever order they come',
    `the answers in the order ${order}: each resolves its own call, and ${refused} is refused`,
    calls.map(({ now }) => now),
    () => calls.every(isItsOwn),
  );
  await expect(
    'a refusal names the server and the method',
    `MCP server "demo" refused call ${refused}: …`,
    calls[refused! - 1]!.error?.message,
    (came) => `${came}`.startsWith(`MCP server "demo" refused call ${refused}: no`),
  );
  slow.say({ id: 1, result: { at: 'last' } });
  await settle();
  await expect(
    'an answer settles its call, though sending has not come to an end',
    'it resolved with {"at":"last"}',
    slowest!.now,
    /^it resolved with \{"at":"last"\}$/,
  );
  const failing = await open();
  const [gone, stays] = [failing.ask('gone'), failing.ask('stays')];
  await settle();
  const why = new Error(word());
  failing.connection.fail(1, why);
  await settle();
  await expect(
    'a call whose waiter is taken out by `fail` fails, and no other does',
    `it rejected: ${why}; it waits`,
    `${gone.now}; ${stays.now}`,
    (came) => came === `it rejected: ${why}; it waits` && gone.error === why,
  );

  // ── Rule 3: what cannot be sent ──
  const torn = new Error(`the pipe is torn at ${word()}`);
  const broken = await open((message) => {
    if (message.method === 'bad') throw torn;
  });
  const good = broken.ask('good');
  await settle();
  const failed = async () => {
    await settle(); // what is thrown now is thrown under this heading
    const bad = broken.ask('bad');
    await settle();
    const { now, error } = bad;
    return error && error !== torn ? `it rejected with another error: ${error}` : now;
  };
  await expect(
    'if sending fails, the call fails with that error, at once',
    `it rejected: ${torn}`,
    failed(),
    (came) => came === `it rejected: ${torn}`,
  );
  await expect(
    'a call that failed leaves no waiter behind',
    'in `pending` no id 2',
    [...broken.connection.pending.keys()],
    (came) => !came.includes(2),
  );
  const more = broken.ask('good');
  await settle();
  await expect(
    'an id is never used again',
    'the ids 1, 2 and 3',
    broken.sent.map(({ message }) => message.id),
    (came) => `${came}` === '1,2,3',
  );
  broken.say({ id: 1, result: { for: 1 } });
  broken.say({ id: 3, result: { for: 3 } });
  await settle();
  await expect(
    'a call that fails disturbs no other',
    'the calls 1 and 3 get their answers',
    `${good.now}; ${more.now}`,
    (came) => came === 'it resolved with {"for":1}; it resolved with {"for":3}',
  );
  let tear!: (why: Error) => void;
  const full = await open(() => new Promise((_, reject) => (tear = reject)));
  const failedLate = async () => {
    const late = full.ask(word());
    await settle();
    tear(torn);
    await settle();
    return late.now;
  };
  await expect(
    'it may also fail later, when the pipe was full',
    `it rejected: ${torn}`,
    failedLate(),
    (came) => came === `it rejected: ${torn}`,
  );
  const unopened = new McpConnection('demo', { type: 'here' }, { onWire: see });
  await expect(
    'before connect() a request fails, and does not wait',
    'a McpError of kind "closed": is not connected',
    unopened.request('ping').then(
      (value: unknown) => ({ resolved: value }),
      (error: Error) => error,
    ),
    (came) => came?.kind === 'closed',
  );

  // ── And with real servers ──
  const start = async (...args: string[]) => {
    const connection = new McpConnection('demo', { command: 'node', args }, { onWire: see });
    await connection.connect();
    return connection;
  };
  const calculator = await start('fixtures/server.mjs');
  const [a, b] = [randomInt(1000), randomInt(1000)];
  await expect(
    'a real server adds two numbers',
    `the result { content: [ { type: "text", text: "${a + b}" } ] }`,
    calculator.request('tools/call', { name: 'add', arguments: { a, b } }),
    (came) => came?.content?.[0]?.text === `${a + b}`,
  );
  const backwards = await start('fixtures/habits.mjs', 'backwards', '2');
  const echo = async (who: string) =>
    (await backwards.request('tools/call', { name: 'echo', arguments: { who } })).content[0].text;
  await expect(
    'answers that come backwards find their callers',
    'Ada gets {"who":"Ada"}, and Bob {"who":"Bob"}',
    Promise.all([echo('Ada'), echo('Bob')]),
    (came) => came?.[0] === '{"who":"Ada"}' && came[1] === '{"who":"Bob"}',
  );
};
