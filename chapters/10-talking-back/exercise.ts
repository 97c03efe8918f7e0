// Judges exercise 10: does every request of a server get exactly one answer, or none if the server has cancelled it?

import { isDeepStrictEqual } from 'node:util';
import type { Judge } from '../book.ts';

type Answer = { jsonrpc?: string; id?: unknown; method?: string; result?: any; error?: any };
type Incoming = { id: unknown; signal: AbortSignal };

const turn = () => new Promise((done) => setImmediate(done));
/** Waits two seconds at most. */
const until = async (condition: () => boolean) => {
  const end = performance.now() + 2000;
  while (!condition() && performance.now() < end) await turn();
};
const lot = () => Math.floor(Math.random() * 1e9);

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpConnection, RpcError } = await load('mcp.ts');

  const started: string[] = []; // which handlers that wait have begun
  const stopped: string[] = []; // and which were told to stop
  const waiting: (() => void)[] = []; // lets those go on that do not listen
  let counted = 0;
  let cancelAtOnce = (_id: unknown) => {};
  /** Waits until it is told to stop. Then it returns, or throws, or does not listen and goes on waiting. */
  const waits =
    (how: 'politely' | 'angrily' | 'deaf') =>
    ({ name = how }: { name?: string }, { signal }: Incoming) =>
      new Promise((done, fail) => {
        started.push(name);
        const stop = () => {
          stopped.push(name);
          if (how === 'politely') done({});
          if (how === 'angrily') fail(new Error('stopped'));
        };
        signal.addEventListener('abort', stop);
        waiting.push(() => done({ name }));
      });
  const circle: { again?: object } = {};
  circle.again = circle;
  const handlers: Record<string, (params: any, incoming: Incoming) => unknown> = {
    'say/back': async ({ value }) => value,
    'who/am-i': (_, { id }) => ({ id }),
    'say/nothing': () => undefined,
    'count/me': () => void counted++,
    'refuse/me': ({ code, data }) =>
      Promise.reject(new RpcError(code, 'The user said no.', { data })),
    'break/now': () => {
      throw new Error('my mistake');
    },
    'break/later': () => Promise.reject(new Error('my mistake')),
    'throw/text': () => Promise.reject('no error, only words'),
    'throw/nothing': () => Promise.reject(undefined),
    'too/big': () => ({ n: 2n ** 64n }), // JSON has no such numbers
    'too/round': () => circle,
    'stop/politely': waits('politely'),
    'stop/angrily': waits('angrily'),
    'stop/deaf': waits('deaf'),
    'stop/at-once': (_, { id }) => cancelAtOnce(id),
    'think/long': () => new Promise((done) => setTimeout(done, 1500, 'a long thought')),
  };

  /** A server without a process: what it gets is in `sent`, and `say` is what it says. */
  const open = async (leaves: () => Promise<void> = async () => {}, onWire = see) => {
    let events: any;
    const sent: Answer[] = [];
    const pipe = {
      start: async (its: unknown) => void (events = its),
      send: async (message: object) => {
        sent.push(JSON.parse(JSON.stringify(message)));
        await leaves();
      },
      close: async () => {},
    };
    const connection = new McpConnection(
      'curious',
      { type: 'pipe' },
      {
        transports: { pipe: () => pipe },
        onWire,
        onWarning() {},
        extensions: [() => ({ handlers })],
      },
    );
    await connection.connect();
    const say = (message: object) => events.message({ jsonrpc: '2.0', ...message });
    const cancel = (requestId: unknown) =>
      say({ method: 'notifications/cancelled', params: { requestId } });
    const to = (id: unknown) => sent.filter((answer) => answer.id === id);
    /** All that is under way has had its time. */
    const isQuiet = async () => {
      const id = `quiet ${lot()}`;
      say({ id, method: 'ping' });
      await until(() => to(id).length > 0);
      for (let turns = 0; turns < 20; turns++) await turn();
    };
    /** Everything that a request was answered with. */
    const ask = async (method: string, params: object = {}, id: unknown = lot()) => {
      say({ id, method, params });
      await until(() => to(id).length > 0);
      for (let turns = 0; turns < 20; turns++) await turn(); // a second answer would be one too many
      return to(id);
    };
    const end = () => events.closed(new Error('it is gone'));
    const warned = () => [...connection.warnings.keys()].join(', ') || 'no warning';
    const inSet = () => `${connection.served.size} in this.served`;
    return { sent, say, cancel, to, isQuiet, ask, end, warned, inSet };
  };
  /** One answer, and just this one. */
  const isOnly =
    (answer: object) =>
    (came: Answer[]): boolean =>
      came.length === 1 && isDeepStrictEqual(came[0], { jsonrpc: '2.0', ...answer });
  const isRefusal =
    (code: number, words: RegExp) =>
    (came: Answer[]): boolean =>
      came.length === 1 &&
      came[0]!.error?.code === code &&
      words.test(came[0]!.error.message) &&
      !('result' in came[0]!);

  const person = await open(undefined, () => {});
  person.say({ id: 'person', method: 'think/long' });
  const curious = await open();
  for (const id of [0, -1, 1.5, '', '0', 'null', lot(), `${lot()}`])
    await expect(
      `a request is answered under its id, also if that is ${JSON.stringify(id)}`,
      `→ {"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{}}, once`,
      curious.ask('ping', {}, id),
      isOnly({ id, result: {} }),
    );
  const config = { command: 'node', args: ['fixtures/habits.mjs', 'asks-first'] };
  const early = new McpConnection('early', config, { onWire: see });
  await expect(
    'ping is answered before the handshake, too',
    'three pongs, → {"jsonrpc":"2.0","id":0,"result":{}} and so on, and then the handshake',
    early.connect().then(() => early.initialize()),
    (came) => typeof came?.protocolVersion === 'string',
  );
  await expect(
    'a request without a handler is refused',
    '→ "error":{"code":-32601,"message":"Method not found: sampling/createMessage"}, once',
    curious.ask('sampling/createMessage'),
    isRefusal(-32601, /sampling/),
  );
  const values = [{ roots: [{ uri: `file:///${lot()}` }] }, `${lot()}`, [lot()], 0, false, ''];
  for (const value of values)
    await expect(
      'what a handler returns is the result',
      `→ "result":${JSON.stringify(value)}, once`,
      curious.ask('say/back', { value }, 'back'),
      (came) => {
        const isRight = isOnly({ id: 'back', result: value })(came);
        curious.sent.length = 0;
        return isRight;
      },
    );
  const [name, code, data] = [`r${lot()}`, -lot(), lot()];
  await expect(
    'a handler knows the id of the request',
    `→ "result":{"id":"${name}"}`,
    curious.ask('who/am-i', {}, name),
    isOnly({ id: name, result: { id: name } }),
  );
  await expect(
    'a handler that returns nothing has answered, too',
    '→ "result":{}, because an answer needs a result',
    curious.ask('say/nothing', {}, 'n'),
    isOnly({ id: 'n', result: {} }),
  );
  await expect(
    'a RpcError that a handler throws is the refusal',
    `→ "error":{"code":${code},"message":"The user said no.","data":{"data":${data}}}, once`,
    curious.ask('refuse/me', { code, data }, 'no'),
    isOnly({ id: 'no', error: { code, message: 'The user said no.', data: { data } } }),
  );
  for (const method of ['break/now', 'break/later'])
    await expect(
      'any other error of a handler is an internal one',
      '→ "error":{"code":-32603,"message":"my mistake"}, once',
      curious.ask(method),
      isRefusal(-32603, /^my mistake$/),
    );
  for (const method of ['throw/text', 'throw/nothing'])
    await expect(
      'what a handler throws need not be an Error',
      '→ "error":{"code":-32603, …}, once',
      curious.ask(method),
      isRefusal(-32603, /./),
    );
  for (const method of ['too/big', 'too/round'])
    await expect(
      'a result that cannot be sent is refused',
      '→ "error":{"code":-32603, …}, once: JSON has no BigInt, and no circle',
      curious.ask(method),
      isRefusal(-32603, /./),
    );
  await expect(
    'a request that has its answer has left this.served',
    '0 in this.served',
    curious.inSet(),
    /^0 /,
  );
  curious.say({ id: 'slow', method: 'stop/politely' });
  await expect(
    'a request whose handler is at work is in this.served',
    '1 in this.served',
    turn().then(curious.inSet),
    /^1 /,
  );
  await expect(
    'a slow handler keeps no other request waiting',
    '→ the answer to the ping, at once',
    curious.ask('ping', {}, 'quick'),
    isOnly({ id: 'quick', result: {} }),
  );
  const twice = async () => {
    waiting.length = 0;
    for (const name of ['one', 'two'])
      curious.say({ id: 7, method: 'stop/deaf', params: { name } });
    await until(() => waiting.length === 2);
    for (const go of waiting) go();
    await curious.isQuiet();
    return curious
      .to(7)
      .map(({ result }) => result?.name)
      .join(', ');
  };
  await expect(
    'two requests under one id are two requests',
    'two answers: one, two',
    twice(),
    (came) => came === 'one, two',
  );

  for (const how of ['politely', 'angrily']) {
    const id = `${how} ${lot()}`;
    const told = async () => {
      curious.say({ id, method: `stop/${how}`, params: { name: id } });
      await until(() => started.includes(id));
      curious.cancel(id);
      await curious.isQuiet();
      return stopped.includes(id) ? 'it is told' : 'it is not told';
    };
    await expect(
      'when the server cancels its request, the handler is told',
      `the signal of stop/${how} aborts`,
      told(),
      /^it is told/,
    );
    await expect(
      `and there is no answer, though the handler ${how === 'politely' ? 'returned' : 'threw'}`,
      'no answer to what was cancelled',
      curious.to(id),
      (came) => came.length === 0,
    );
  }
  const late = async () => {
    waiting.length = 0;
    for (const id of ['given up', 'goes on'])
      curious.say({ id, method: 'stop/deaf', params: { name: id } });
    await until(() => waiting.length === 2);
    curious.cancel('given up');
    for (const go of waiting) go();
    await curious.isQuiet();
    return ['given up', 'goes on'].filter((id) => curious.to(id).length > 0).join(', ');
  };
  await expect(
    'nor if the handler goes on; and one that was not cancelled is answered',
    'of "given up" and "goes on" an answer to: goes on',
    late(),
    (came) => came === 'goes on',
  );
  await expect(
    'each request has a signal of its own',
    'only that of "given up" has aborted',
    stopped.includes('goes on') ? 'that of "goes on", too' : 'only that one',
    /^only/,
  );
  const hasty = await open();
  cancelAtOnce = hasty.cancel;
  const cancelled = async () => {
    hasty.say({ id: 'hasty', method: 'stop/at-once' });
    await hasty.isQuiet();
    return hasty.to('hasty');
  };
  await expect(
    'a request can be cancelled from its first moment on',
    'no answer: it was cancelled when its handler had just begun',
    cancelled(),
    (came) => came.length === 0,
  );
  const ending = await open();
  const over = async () => {
    ending.say({ id: 'e', method: 'stop/angrily', params: { name: 'at the end' } });
    await until(() => started.includes('at the end'));
    ending.end();
    await until(() => stopped.includes('at the end'));
    return stopped.includes('at the end') ? 'it is told' : 'it is not told';
  };
  await expect(
    'when the connection ends, the handlers are told',
    'the signal of a handler that is at work aborts',
    over(),
    /^it is told/,
  );

  // A server that does not read: what is sent to it leaves only when `read` is called.
  let read = () => {};
  const reading = new Promise<void>((done) => (read = done));
  const deaf = await open(
    () => reading,
    () => {},
  );
  const pour = async (count: number, method: (n: number) => string, to = deaf) => {
    const mark = lot();
    for (let n = 0; n < count; n++) {
      to.say({ id: `${mark} ${n}`, method: method(n) });
      if (n % 100 === 99) await turn(); // so that answers can be sent meanwhile
    }
    for (let turns = 0; turns < 20; turns++) await turn();
  };
  const mixed = (n: number) => ['ping', 'no/such', 'say/nothing'][n % 3]!;
  await expect(
    'a request whose answer has not left us is still in this.served',
    '3 in this.served',
    pour(3, mixed).then(deaf.inSet),
    /^3 /,
  );
  await pour(996, mixed);
  await expect(
    '999 answers wait for a server that does not read, and one more may',
    '1000 answers (MAX_UNANSWERED), no warning',
    pour(1, mixed).then(() => `${deaf.sent.length} answers, ${deaf.warned()}`),
    /^1000 answers, no warning$/,
  );
  await expect(
    'what waits for a server that does not read is bounded',
    'of 3000 more requests still 1000 answers',
    pour(3000, mixed).then(() => `${deaf.sent.length} answers`),
    /^1000 answers$/,
  );
  await expect(
    'that a request is dropped is told',
    'a warning of the kind "flood", and no other',
    deaf.warned(),
    /^flood$/,
  );
  await expect(
    'a request that is dropped does not reach its handler',
    'no call of the handler',
    pour(10, () => 'count/me').then(() => `${counted} calls`),
    /^0 calls$/,
  );
  const calm = async () => {
    read();
    for (let turns = 0; turns < 20; turns++) await turn();
    deaf.sent.length = 0;
    return deaf.ask('ping', {}, 'calm');
  };
  await expect(
    'when it has read them, it is answered again',
    '1 answer, to the ping',
    calm(),
    isOnly({ id: 'calm', result: {} }),
  );
  const slow = await open(undefined, () => {});
  const atWork = async () => {
    counted = 0;
    await pour(1000, () => 'stop/deaf', slow);
    await pour(1, () => 'count/me', slow);
    return `${counted} calls, ${slow.warned()}`;
  };
  await expect(
    'requests whose handlers are at work count, too',
    'while 1000 handlers are at work: no further call, and the warning "flood"',
    atWork(),
    /^0 calls, flood$/,
  );

  /** Whatever became of 1500 requests: is the next one answered? */
  const afterMany = async (method: string, isCancelled = false, leaves?: () => Promise<void>) => {
    const { sent, say, cancel, to } = await open(leaves, () => {});
    for (let n = 0; n < 1500; n++) {
      say({ id: n, method });
      if (isCancelled) cancel(n);
      if (n % 100 === 99) for (let turns = 0; turns < 10; turns++) await turn();
    }
    sent.length = 0;
    say({ id: 'last', method: 'ping' });
    await until(() => to('last').length > 0);
    return to('last').length > 0 ? 'answered' : 'not answered: this.served is full of what is over';
  };
  for (const [what, method] of [
    ['answers', 'ping'],
    ['refusals', 'no/such'],
    ['results that could not be sent', 'too/big'],
  ])
    await expect(
      `1500 ${what} later a ping is answered`,
      '→ the answer',
      afterMany(method!),
      /^answered/,
    );
  for (const how of ['politely', 'angrily'])
    await expect(
      '1500 cancelled requests later a ping is answered',
      '→ the answer',
      afterMany(`stop/${how}`, true),
      /^answered/,
    );
  await expect(
    'a handler may take its time: a person may have to answer',
    '→ "result":"a long thought", 1.5 s after the request',
    until(() => person.to('person').length > 0).then(() => person.to('person')),
    isOnly({ id: 'person', result: 'a long thought' }),
  );
  const gone = () => Promise.reject(new Error('write EPIPE'));
  const unheard: unknown[] = []; // rejections without a catch
  process.on('unhandledRejection', (why) => unheard.push(why));
  await expect(
    '1500 answers that did not arrive later, it is tried again',
    '→ the answer',
    afterMany('ping', false, gone),
    /^answered/,
  );
  await expect(
    'a server that is gone does not end the program',
    'no rejection without a catch',
    turn().then(() => unheard),
    (came) => came.length === 0,
  );
};
