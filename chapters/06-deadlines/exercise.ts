// Judges exercise 6: does giving up reach the caller and the server, and does nothing stay behind?

import { getEventListeners } from 'node:events';
import type { Judge } from '../book.ts';

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));
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
      await pause(30); // it need not be told in the same moment
      return sent
        .filter(({ method }) => method === 'notifications/cancelled')
        .map(({ params }) => params?.requestId);
    };
    const strays = () => [...connection.warnings.values()];
    return { connection, sent, told, strays, say: (message: object) => say(message) };
  };

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
  await expect(
    'and it is a notification',
    'no "id" in it',
    mute.sent.at(-1),
    (came) => !('id' in came),
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
    for (const id of [1, 2, 3]) mute.say({ id, result: {} });
    return mute.strays();
  };
  await expect(
    'a late answer is no mistake of the server',
    'no warning when 1, 2 (initialize) and 3 are answered late',
    hearLate(),
    isOnly(),
  );

  const { connection, ...stopped } = await open();
  const before = timers();
  const controller = new AbortController();
  const { signal } = controller;
  const given = connection.request('tools/call', { name: 'sleep' }, { signal, timeoutMs: 100_000 });
  controller.abort();
  await expect(
    'a signal ends a call, too',
    'a McpError of kind "aborted"',
    given,
    hasKind('aborted'),
  );
  await expect(
    'and the server is told of that',
    '→ notifications/cancelled for 1',
    stopped.told(),
    isOnly(1),
  );
  await expect(
    'no timer stays behind',
    '0 timers more than before the call',
    `${timers() - before} timers more`,
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
    pause(30).then(hasty.strays),
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
    pause(30).then(() => unheard),
    (came) => came.length === 0,
  );

  // 1500 calls that are never answered.
  const busy = await open(undefined, () => {});
  const all = new AbortController();
  const calls = Array.from({ length: 1500 }, () =>
    busy.connection.request('ping', undefined, { signal: all.signal }).catch(() => {}),
  );
  all.abort();
  await Promise.all(calls);
  const reportedOf = (id: number) => {
    busy.say({ id, result: {} });
    return busy.strays();
  };
  await expect(
    'of 1500 cancelled calls the last is remembered',
    'no warning for a late answer to 1500',
    reportedOf(1500),
    isOnly(),
  );
  await expect(
    'and so are the others of the last 1000 (MAX_CANCELLED)',
    'no warning for a late answer to 501',
    reportedOf(501),
    isOnly(),
  );
  await expect(
    'but the set holds no more than those 1000',
    'a warning for an answer to 500: the oldest are forgotten',
    reportedOf(500),
    (came) => came.length === 1,
  );
};
