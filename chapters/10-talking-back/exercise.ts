// Judges exercise 10: does every request of a server get exactly one answer, or none if the server has cancelled it?

import type { Judge } from '../book.ts';

export const judge: Judge = async ({ load, see, expect }) => {
  /** A handler that goes on until it is told to stop; then it returns, or throws. */
  const stoppable =
    (method: string) =>
    (_: unknown, { signal }: { signal: AbortSignal }) =>
      new Promise((done, fail) => {
        const stop = () => {
          stopped.push(method);
          if (method === 'stop/politely') done({});
          else fail(new Error('stopped'));
        };
        signal.addEventListener('abort', stop);
      });
  const { McpConnection, RpcError } = await load('mcp.ts');
  const warnings: string[] = [];
  const stopped: unknown[] = [];
  let counted = 0;
  const handlers = {
    'roots/list': async ({ of }: { of: string }) => ({ roots: [{ uri: `file:///home/${of}` }] }),
    'who/am-i': (_: unknown, { id }: { id: unknown }) => ({ id }),
    'say/nothing': () => undefined,
    'count/me': () => void counted++,
    'refuse/me': () => Promise.reject(new RpcError(-1, 'The user said no.', { by: 'Ada' })),
    'too/big': () => ({ n: 2n ** 64n }), // JSON has no such numbers
    'break/me': () => {
      throw new Error('my mistake');
    },
    'take/long': () => new Promise(() => {}),
    'notifications/message': () => 'to a notification this is no answer',
    ...Object.fromEntries(
      ['stop/politely', 'stop/angrily'].map((method) => [method, stoppable(method)]),
    ),
  };
  const onWarning = (warning: string) => void warnings.push(warning);
  const start = async (...habit: string[]) => {
    const config = { command: 'node', args: ['fixtures/habits.mjs', ...habit] };
    const connection = new McpConnection('curious', config, {
      onWire: see,
      onWarning,
      extensions: [() => ({ handlers })],
      handshakeTimeoutMs: 2000,
    });
    await connection.connect();
    await connection.initialize();
    return connection;
  };
  const early = start('asks-first');
  await expect(
    'ping is answered, also with id 0 and before the handshake',
    'three pongs, → {"jsonrpc":"2.0","id":0,"result":{}} and so on, and then the handshake',
    early,
    (came) => came instanceof McpConnection,
  );

  const curious = await start();
  const ask = async (method: string, params = {}) =>
    JSON.parse((await curious.callTool('ask', { id: method, method, params })).text);
  await expect(
    'a request without a handler is refused',
    '→ "error":{"code":-32601,"message":"Method not found: sampling/createMessage"}',
    ask('sampling/createMessage'),
    (came) =>
      came?.error?.code === -32601 &&
      /sampling/.test(came.error.message) &&
      came.result === undefined,
  );
  await expect(
    'what a handler returns is the result',
    '→ "result":{"roots":[{"uri":"file:///home/ada"}]}',
    ask('roots/list', { of: 'ada' }),
    (came) => came?.result?.roots?.[0]?.uri === 'file:///home/ada',
  );
  await expect(
    'a handler knows the id of the request',
    '→ "result":{"id":"who/am-i"}',
    ask('who/am-i'),
    (came) => came?.result?.id === 'who/am-i',
  );
  await expect(
    'a handler that returns nothing has answered, too',
    '→ "result":{}, because an answer needs a result',
    ask('say/nothing'),
    (came) => came?.result && Object.keys(came.result).length === 0,
  );
  await expect(
    'a RpcError that a handler throws is the refusal',
    '→ "error":{"code":-1,"message":"The user said no.","data":{"by":"Ada"}}',
    ask('refuse/me'),
    ({ error } = {} as any) =>
      error?.code === -1 && error.message === 'The user said no.' && error.data?.by === 'Ada',
  );
  await expect(
    'any other error of a handler is an internal one',
    '→ "error":{"code":-32603,"message":"my mistake"}',
    ask('break/me'),
    ({ error } = {} as any) => error?.code === -32603 && error.message === 'my mistake',
  );
  await expect(
    'a result that cannot be sent is refused',
    '→ "error":{"code":-32603, …: JSON has no BigInt',
    ask('too/big'),
    ({ error } = {} as any) => error?.code === -32603,
  );
  void ask('take/long').catch(() => {}); // nobody ever answers this one
  await expect(
    'a slow handler keeps nobody waiting',
    '→ the answer to the ping, at once',
    ask('ping'),
    (came) => came?.result !== undefined,
  );

  const tell = (method: string, params: object) => curious.callTool('tell', { method, params });
  const answered = async () => {
    const received = JSON.parse((await curious.callTool('log')).text) as {
      id?: unknown;
      method?: string;
    }[];
    return received.filter(({ method }) => method === undefined).map(({ id }) => id);
  };
  const cancel = async () => {
    for (const method of ['stop/politely', 'stop/angrily']) {
      void ask(method).catch(() => {}); // the server gets no answer, and so do we
      await tell('notifications/cancelled', { requestId: method });
    }
    return stopped;
  };
  await expect(
    'when the server cancels its request, the handler is told',
    'the signals of stop/politely and stop/angrily abort',
    cancel(),
    (came) => came.length === 2,
  );
  const asked = [
    'sampling/createMessage',
    'roots/list',
    'who/am-i',
    'say/nothing',
    'refuse/me',
    'break/me',
    'too/big',
    'ping',
  ];
  const count = () => tell('notifications/message', {}).then(answered);
  await expect(
    'each request has had one answer; those that were cancelled, and notifications, have none',
    `answers to ${asked.join(', ')}, and no others`,
    count(),
    (came) => `${came}` === `${asked}`,
  );

  // A server that does not read: what is sent to it leaves only when `read` is called.
  const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));
  const open = async (send: () => Promise<void>) => {
    let events: any;
    const sent: any[] = [];
    const pipe = {
      start: async (its: unknown) => void (events = its),
      send: (message: any) => (sent.push(message), send()),
      close: async () => {},
    };
    const options = {
      transports: { pipe: () => pipe },
      onWarning,
      extensions: [() => ({ handlers })],
    };
    const connection = new McpConnection('deaf', { type: 'pipe' }, options);
    await connection.connect();
    return { sent, say: (message: object) => events.message({ jsonrpc: '2.0', ...message }) };
  };
  let read = () => {};
  const reading = new Promise<void>((done) => (read = done));
  const deaf = await open(() => reading);
  const flood = async () => {
    for (let n = 0; n < 5000; n++) {
      deaf.say({ id: n, method: n % 2 === 0 ? 'ping' : 'no/such' });
      if (n % 100 === 0) await new Promise((done) => setImmediate(done)); // so that answers can be sent meanwhile
    }
    for (let n = 0; n < 10; n++) deaf.say({ id: `more ${n}`, method: 'count/me' });
    await pause(50);
    return `${deaf.sent.length} answers wait, of 5010 requests; ${warnings.length} warnings`;
  };
  await expect(
    'what waits for a server that does not read is bounded',
    'at most 1000 answers (MAX_UNANSWERED) wait, and 1 warning',
    flood(),
    () => deaf.sent.length > 0 && deaf.sent.length <= 1000 && warnings.length === 1,
  );
  await expect(
    'and it is not bounded too early',
    '1000 answers wait',
    `${deaf.sent.length} answers`,
    () => deaf.sent.length >= 1000,
  );
  await expect(
    'a request that is dropped does not reach its handler',
    'no call of the handler',
    `${counted} calls`,
    () => counted === 0,
  );
  const calm = async () => {
    read();
    await pause(50);
    deaf.sent.length = 0;
    deaf.say({ id: 'calm', method: 'ping' });
    await pause(50);
    return `${deaf.sent.length} answers`;
  };
  await expect(
    'when it has read them, it is answered again',
    '1 answer, to the ping',
    calm(),
    () => deaf.sent.length === 1,
  );

  /** Whatever became of 1500 requests: is the next one answered? */
  const afterMany = async (send: () => Promise<void>, method: string, isCancelled = false) => {
    const { sent, say } = await open(send);
    for (let n = 0; n < 1500; n++) {
      say({ id: n, method });
      if (isCancelled) say({ method: 'notifications/cancelled', params: { requestId: n } });
      if (n % 100 === 99) await pause(1);
    }
    say({ id: 'last', method: 'ping' });
    await pause(50);
    return sent.some(({ id }) => id === 'last')
      ? 'answered'
      : 'not answered: this.served is full of what is over';
  };
  const unheard: unknown[] = []; // rejections without a catch
  process.on('unhandledRejection', (why) => unheard.push(why));
  const well = async () => {};
  const gone = () => Promise.reject(new Error('write EPIPE'));
  await expect(
    '1500 refusals later a ping is answered',
    '→ the answer',
    afterMany(well, 'no/such'),
    /^answered/,
  );
  await expect(
    '1500 cancelled requests later a ping is answered',
    '→ the answer',
    afterMany(well, 'stop/politely', true),
    /^answered/,
  );
  await expect(
    '1500 answers that could not be sent later, it is tried again',
    '→ the answer',
    afterMany(gone, 'ping'),
    /^answered/,
  );
  await expect(
    'a server that is gone does not end the program',
    'no rejection without a catch',
    unheard,
    (came) => came.length === 0,
  );
};
