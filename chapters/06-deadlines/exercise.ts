// Judges exercise 6: does giving up reach the caller and the server, and nobody else?

import type { Judge } from '../book.ts';

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpConnection } = await load('mcp.ts');
  const start = async (...habit: string[]) => {
    const wire: { direction: string; message: any }[] = [];
    const onWire = (direction: string, message: any) => (wire.push({ direction, message }), see(direction, message));
    const connection = new McpConnection('demo', { command: 'node', args: ['fixtures/habits.mjs', ...habit] }, { onWire });
    await connection.connect();
    const cancelled = async () => {
      await new Promise((done) => setTimeout(done, 50)); // it need not be told in the same moment
      return wire.filter(({ message }) => message?.method === 'notifications/cancelled').map(({ message }) => message.params?.requestId);
    };
    return { connection, wire, cancelled };
  };
  const isOnly = (...ids: number[]) => (came: unknown) => JSON.stringify(came) === JSON.stringify(ids);
  const add = { name: 'add', arguments: { a: 2, b: 40 } };

  const mute = await start('mute');
  const call = mute.connection.request('tools/call', add, { timeoutMs: 200 });
  await expect('a call without an answer ends by its limit', 'a McpError of kind "timeout"', call, (came) => came?.kind === 'timeout');
  await expect('the server is told, once', '→ notifications/cancelled with "requestId": 1, as a notification', mute.cancelled(), isOnly(1));
  await expect('and not asked', 'no "id" in the notification', mute.wire.at(-1)?.message, (came) => !('id' in came));
  const hello = mute.connection.request('initialize', {}, { timeoutMs: 200 });
  await expect('the handshake ends by its limit', 'a McpError of kind "timeout"', hello, (came) => came?.kind === 'timeout');
  await expect('but initialize is not cancelled', 'no notifications/cancelled for request 2', mute.cancelled(), isOnly(1));

  const slow = await start();
  const { connection } = slow;
  await connection.request('ping');
  const sleep = (ms: number, options: object) => connection.request('tools/call', { name: 'sleep', arguments: { ms } }, options);
  const late = sleep(500, { timeoutMs: 200 });
  await expect('a slow call ends by its limit', 'a McpError of kind "timeout"', late, (came) => came?.kind === 'timeout');
  await sleep(700, { timeoutMs: 10_000 });
  const answers = slow.wire.filter(({ direction, message }) => direction === 'in' && message?.id === 2).length;
  await expect('its late answer comes', '← an answer with id 2, after the cancellation', answers, (came) => came === 1);
  await expect('and is no mistake of the server', 'no warning', [...connection.warnings.values()], isOnly());

  const controller = new AbortController();
  const given = sleep(100_000, { signal: controller.signal });
  controller.abort();
  await expect('a signal ends a call, too', 'a McpError of kind "aborted"', given, (came) => came?.kind === 'aborted');
  await expect('and the server is told', '→ notifications/cancelled for 2 and for 4', slow.cancelled(), isOnly(2, 4));
};
