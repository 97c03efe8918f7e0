// Judges exercise 6: does giving up reach the caller and the server, and does nothing stay behind?

import { randomBytes, randomInt } from 'node:crypto';
import { getEventListeners } from 'node:events';
import type { Judge } from '../book.ts';

/** Long enough for every promise that waits only for others: turns of our own loop, not milliseconds. */
const settle = async () => {
  for (let turn = 0; turn < 50; turn++) await new Promise((done) => setImmediate(done));
};
const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
const isOnly =
  (...ids: number[]) =>
  (came: unknown) =>
    JSON.stringify(came) === JSON.stringify(ids);
const hasKind = (kind: string) => (came: any) => came?.kind === kind;

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpConnection } = await load('mcp.ts');
  const unheard: unknown[] = []; // rejections without a catch
  process.on('unhandledRejection', (why) => unheard.push(why));

  /** A server without a process: what it gets is in `sent`, and `say` is what it says. */
  const open = async (send: (message: any) => Promise<void> = async () => {}, onWire = see) => {
    const sent: any[] = [];
    let say: (message: object) => void = () => {};
    const pipe = {
      start: async (events: { message: typeof say }) =>
        void (say = (message) => events.message({ jsonrpc: '2.0', ...message })),
      send: (message: any) => (sent.push(message), send(message)),
      close: async () => {},
    };
    const options = { transports: { pipe: () => pipe }, onWire, onWarning: () => {} };
    const connection = new McpConnection('demo', { type: 'pipe' }, options);
    await connection.connect();
    const told = async () => {
      await settle(); // it need not be told in the same moment
      return sent
        .filter(({ method }) => method === 'notifications/cancelled')
        .map(({ params }) => params?.requestId);
    };
    const strays = () => [...connection.warnings.values()];
    return { connection, sent, told, strays, say: (message: object) => say(message) };
  };

  // The first, while no timer of another connection can be about to end.
  const before = timers();
  const { connection, ...stopped } = await open();
  const controller = new AbortController();
  const { signal } = controller;
  const given = connection.request('tools/call', { name: 'sleep' }, { signal, timeoutMs: 100_000 });
  controller.abort();
  await expect('a signal ends a call', 'a McpError of kind "aborted"', given, hasKind('aborted'));
  await expect(
    'and the server is told of that',
    '→ notifications/cancelled for 1',
    stopped.told(),
    isOnly(1),
  );
  await expect(
    'and it is a notification',
    'no "id" in it',
    stopped.sent.at(-1),
    (came) => !('id' in came),
  );
  await expect(
    'no timer stays behind',
    '0 timers more than before the call',
    settle().then(() => `${Math.max(0, timers() - before)} timers more`),
    /^0/,
  );
  const other = new AbortController().signal;
  await connection.request('ping', undefined, { signal: other, timeoutMs: 100 }).catch(() => {});
  const left = getEventListeners(other, 'abort').length;
  await expect(
    'no listener stays on the signal',
    '0 listeners after a time-out',
    `${left} listeners`,
    /^0/,
  );
  const exact = async () => {
    const asked = await open();
    let came: unknown = 'it still waits';
    asked.connection.request('tools/call', {}).catch((error: Error) => (came = error));
    await settle();
    asked.connection.cancel(1, why);
    await settle();
    return came === why ? 'the error that was given' : came;
  };
  const why = Object.assign(new Error(randomBytes(4).toString('hex')), { kind: 'aborted' });
  await expect(
    'the caller gets `why` itself, at once',
    'the error that was given',
    exact(),
    /^the error that was given$/,
  );

  const mute = await open();
  const call = mute.connection.request('tools/call', { name: 'add' }, { timeoutMs: 100 });
  await expect(
    'a call without an answer ends by its limit',
    'a McpError of kind "timeout"',
    call,
    hasKind('timeout'),
  );
  await expect(
    'the server is told, once',
    '→ notifications/cancelled with "requestId": 1',
    mute.told(),
    isOnly(1),
  );
  for (const [n, method] of ['initialize', 'server/discover'].entries()) {
    const hello = mute.connection.request(method, {}, { timeoutMs: 100 });
    await expect(
      `${method} ends by its limit, too`,
      'a McpError of kind "timeout"',
      hello,
      hasKind('timeout'),
    );
    await expect(
      `but ${method} is not cancelled`,
      `no notifications/cancelled for request ${n + 2}`,
      mute.told(),
      isOnly(1),
    );
  }
  const alike = await open();
  const methods = [
    'init',
    'initialize/again',
    'Initialize',
    'server/discovery',
    'server/list',
    're/initialize',
    'ping',
    'tools/list',
    randomBytes(4).toString('hex'),
  ];
  const asked = methods.map((method) =>
    alike.connection.request(method, {}, { timeoutMs: 100 }).catch(() => {}),
  );
  await expect(
    'these two are the only exceptions',
    `notifications/cancelled for each of ${methods.join(', ')}: 1 to ${methods.length}`,
    Promise.all(asked).then(alike.told),
    isOnly(...methods.map((_, n) => n + 1)),
  );
  const hearLate = async () => {
    mute.say({ id: 1, error: { code: -32000, message: 'too late' } });
    for (const id of [2, 3]) mute.say({ id, result: {} });
    return mute.strays();
  };
  await expect(
    'a late answer is no mistake of the server',
    'no warning when 1, 2 (initialize) and 3 are answered late',
    hearLate(),
    isOnly(),
  );

  // One that never reads: what we send does not leave us.
  const deaf = await open(() => new Promise(() => {}));
  const unread = deaf.connection.request('tools/call', {}, { timeoutMs: 100 });
  await expect(
    'the caller does not wait for the server to be told',
    'a McpError of kind "timeout", though the notification never leaves',
    unread,
    hasKind('timeout'),
  );
  deaf.say({ id: 1, result: {} });
  await expect(
    'a late answer is not reported, also before the server could be told',
    'no warning, though the notification is still on its way',
    deaf.strays(),
    isOnly(),
  );
  // One that answers in the moment in which it is told.
  const hasty: Awaited<ReturnType<typeof open>> = await open(async ({ method, params }) => {
    if (method === 'notifications/cancelled') hasty.say({ id: params.requestId, result: {} });
  });
  await hasty.connection.request('tools/call', {}, { timeoutMs: 100 }).catch(() => {});
  await expect(
    'nor in the moment in which it is told',
    'no warning: the id is in the set before the notification is sent',
    settle().then(hasty.strays),
    isOnly(),
  );

  // One that has gone: what we send from the second message on is refused.
  let count = 0;
  const gone = await open(async () => {
    if (++count > 1) throw new Error('write EPIPE');
  });
  const orphan = gone.connection.request('tools/call', {}, { timeoutMs: 100 });
  await expect(
    'the caller is told, though the server cannot be',
    'a McpError of kind "timeout"',
    orphan,
    hasKind('timeout'),
  );
  await expect(
    'a notification that cannot be sent troubles no one',
    'no rejection without a catch: it would end the program',
    settle().then(() => unheard),
    (came) => came.length === 0,
  );

  // Many calls that are never answered.
  const many = 1200 + randomInt(500);
  const busy = await open(undefined, () => {});
  const all = new AbortController();
  const calls = Array.from({ length: many }, () =>
    busy.connection.request('ping', undefined, { signal: all.signal }).catch(() => {}),
  );
  all.abort();
  await Promise.all(calls);
  const reportedOf = (id: number) => {
    busy.say({ id, result: {} });
    return busy.strays();
  };
  await expect(
    'of many cancelled calls the last is remembered',
    `no warning for a late answer to ${many}, the last of ${many}`,
    reportedOf(many),
    isOnly(),
  );
  for (const id of [many - 1, many - 2 - randomInt(900), many - 999])
    await expect(
      'and so are the others of the last 1000 (MAX_CANCELLED)',
      `no warning for a late answer to ${id}`,
      reportedOf(id),
      isOnly(),
    );
  await expect(
    'but the set holds no more than those 1000',
    `a warning for an answer to ${many - 1000}: the oldest are forgotten`,
    reportedOf(many - 1000),
    (came) => came.length === 1,
  );
};
