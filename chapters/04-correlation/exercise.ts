// Judges exercise 4: does every request get its id, its place on the wire, and its own answer?

import type { Judge } from '../book.ts';

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpConnection } = await load('mcp.ts');
  const start = async (...args: string[]) => {
    const connection = new McpConnection('demo', { command: 'node', args }, { onWire: see });
    await connection.connect();
    return connection;
  };
  /** A connection whose server is here. `answer` gets each message as it is sent, and what to say with. */
  type Say = (message: object) => void;
  const open = async (answer: (message: any, say: Say) => void | Promise<void> = () => {}) => {
    const sent: any[] = [];
    const seen: any[] = []; // what `onWire` was told of our messages
    let events: any;
    const transport = {
      start: async (given: any) => void (events = given),
      send: async (message: any, headers: unknown) => {
        sent.push({ message, headers });
        await answer(message, (said) =>
          events.message({ jsonrpc: '2.0', id: message.id, ...said }),
        );
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
    return { connection, sent, seen };
  };
  const settled = (promise: Promise<unknown>) => promise.catch((error: Error) => error);
  const rejection = (promise: Promise<unknown>) =>
    promise.then(
      (value) => ({ resolved: value }),
      (error: Error) => error,
    );

  const calculator = await start('fixtures/server.mjs');
  const call = (name: string, args: object) =>
    calculator.request('tools/call', { name, arguments: args });
  const sum = async () => call('add', { a: 2, b: 40 }); // async, because what is not solved throws
  await expect(
    'a result resolves the promise',
    'the result: { content: [ { type: "text", text: "42" } ] }',
    sum(),
    (came) => came?.content?.[0]?.text === '42',
  );
  const refusal = rejection(call('subtract', {}));
  await expect(
    'an error rejects it',
    'an RpcError with the code -32602, which names the server and tools/call',
    refusal,
    (came) => came?.code === -32602 && /"demo".*tools\/call.*Unknown tool/.test(came.message),
  );

  const quick = await open((_, say) => say({ result: { quick: true } }));
  await expect(
    'an answer that comes while we send finds its waiter',
    'the result { quick: true }',
    quick.connection.request('quick'),
    (came) => came?.quick === true,
  );

  const three = await open((_, say) => say({ result: {} }));
  const asked = async () => {
    for (const method of ['one', 'two', 'three'])
      await three.connection.request(method, { method });
    return `${three.sent.length} messages for 3 requests`;
  };
  await expect('one request is one message', '3 messages for 3 requests', asked(), /^3 /);
  await expect(
    'a request goes through `this.send`, where it can be watched',
    'the option `onWire` is told of one, two and three, each once',
    three.seen.map(({ method }) => method),
    (came) => `${came}` === 'one,two,three',
  );
  await expect(
    'the requests of a connection are numbered from 1',
    'the ids 1, 2 and 3, as numbers, one after the other',
    three.sent.map(({ message }) => message.id),
    (came) => JSON.stringify(came) === '[1,2,3]',
  );
  await expect(
    'a request has jsonrpc, id, method and params',
    '{ jsonrpc: "2.0", id: 2, method: "two", params: { method: "two" } }',
    three.sent[1]?.message,
    (came) =>
      JSON.stringify([came?.jsonrpc, came?.id, came?.method, came?.params]) ===
      '["2.0",2,"two",{"method":"two"}]',
  );
  const headers = { 'x-colour': 'blue' };
  await three.connection.request('four', {}, { headers });
  await expect(
    'the headers of a call go along with it',
    'the headers { "x-colour": "blue" }, beside the message',
    three.sent.at(-1).headers ?? 'no headers',
    (came) => came?.['x-colour'] === 'blue',
  );
  const other = await open((_, say) => say({ result: {} }));
  await other.connection.request('one');
  await expect(
    'each connection counts for itself',
    'the id 1, on another connection',
    `the id ${other.sent[0].message.id}`,
    /^the id 1$/,
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

  const mute = await open();
  let early = 'it still waits';
  settled(mute.connection.request('mute')).then(
    (value) => (early = `it settled with ${JSON.stringify(value)}`),
  );
  await new Promise((done) => setTimeout(done, 50));
  await expect(
    'a call waits for its answer, not only until it is sent',
    'it still waits',
    early,
    /^it still waits$/,
  );
  await expect(
    'who waits is in `pending`, under its id',
    'one waiter, under the id 1',
    [...mute.connection.pending.keys()],
    (came) => came.length === 1 && came[0] === 1,
  );
  const { call: noted } = mute.connection.pending.get(1) ?? {};
  await expect(
    'a waiter keeps its call',
    'a call with the method "mute"',
    noted ?? 'no call',
    (came) => came?.method === 'mute',
  );

  const torn = await open((message) => {
    if (message.method === 'bad') throw new Error('the pipe is torn');
  });
  const waiting = settled(torn.connection.request('good')).then(
    (value) => (early = `it settled with ${value}`),
  );
  void waiting;
  early = 'it still waits';
  const later = new Promise((done) => setTimeout(done, 100, 'nothing, in a tenth of a second'));
  const bad = Promise.race([rejection(torn.connection.request('bad')), later]);
  await expect(
    'if sending fails, the call fails with that error, at once',
    'Error: the pipe is torn',
    bad,
    (came) => came?.message === 'the pipe is torn',
  );
  await expect(
    'only the call that failed leaves the map',
    'in `pending` the id 1 of the other call, and not the id 2 of the one that failed',
    [...torn.connection.pending.keys()],
    (came) => came.length === 1 && came[0] === 1,
  );
  await expect('and disturbs no other call', 'the other one still waits', early, /still waits/);
  void settled(torn.connection.request('good'));
  await new Promise((done) => setTimeout(done, 20));
  await expect(
    'an id is never used again',
    'the ids 1, 2 and 3',
    torn.sent.map(({ message }) => message.id),
    (came) => `${came}` === '1,2,3',
  );
  const unopened = new McpConnection('demo', { type: 'here' }, { onWire: see });
  await expect(
    'before connect() a request fails, and does not wait',
    'a McpError of kind "closed": is not connected',
    rejection(unopened.request('ping')),
    (came) => came?.kind === 'closed',
  );

  const given = { name: 'echo', arguments: { who: 'Ada' } };
  await settled(quick.connection.request('tools/call', given));
  await expect(
    'the parameters of the caller stay as they are',
    '{ name: "echo", arguments: { who: "Ada" } }',
    given,
    (came) => JSON.stringify(came) === '{"name":"echo","arguments":{"who":"Ada"}}',
  );
};
