// Judges exercise 5: does everyone learn of a death, at once, once, and with the right reason?

import type { Judge } from '../book.ts';

export const judge: Judge = async ({ load, see, expect }) => {
  setInterval(() => {}, 1000); // a program in which everybody waits for the dead would end before we can say so
  const { McpConnection } = await load('mcp.ts');
  const start = async (config: object, options = {}) => {
    const ends: Error[] = [];
    const noteEnd = () => ({ closed: (why: Error) => void ends.push(why) });
    const connection = new McpConnection('demo', config, { onWire: see, extensions: [noteEnd], ...options });
    return { connection, ends, connected: connection.connect().then(() => 'connected') as Promise<unknown> };
  };
  const isDeath = (came: any) => came?.kind === 'closed' && /exited with code 7/.test(came.message);
  const reason = 'a McpError of kind "closed" that says: exited with code 7';

  const { connection: doomed, ends, connected } = await start({ command: 'node', args: ['fixtures/habits.mjs'] });
  await connected;
  const call = (name: string, args: object) => doomed.request('tools/call', { name, arguments: args }).catch((error: Error) => error);
  const waiting = [call('sleep', { ms: 100_000 }), call('sleep', { ms: 100_000 }), call('exit', { code: 7 })];
  await expect('the first of three who wait learns of the death', reason, waiting[0], isDeath);
  await expect('so do the others', `three times ${reason}`, Promise.all(waiting), (came) => came?.length === 3 && came.every(isDeath));

  let sent = 0;
  doomed.options.onWire = (direction: string, message: unknown) => (sent++, see(direction, message));
  await expect('who asks later is refused', `${reason}, at once`, call('add', { a: 2, b: 40 }), isDeath);
  await expect('nobody is left among the waiters', 'no entry in `pending`', doomed.pending.size, (came) => came === 0);
  await expect('and nothing is sent to the dead', 'no further message on the wire', sent, (came) => came === 0);
  await expect('extensions hear of it, once', 'one call of `closed`, with the reason', ends, (came) => came.length === 1 && isDeath(came[0]));

  const missing = await start({ command: 'no-such-command' });
  const plain = 'a McpError of kind "start" that says: could not be started: command not found';
  const isPlain = (came: any) => came?.kind === 'start' && /could not be started: command not found/.test(came.message);
  await expect('a missing command is named at once', plain, missing.connected, isPlain);
  await expect('a request to it does not wait either', plain, missing.connection.request('ping'), isPlain);
  await expect('its end, too, is told once, though two report it', 'one call of `closed`', missing.ends.length, (came) => came === 1);

  const greedy = await start({ command: 'node', args: ['fixtures/habits.mjs'] }, { maxLineBytes: 4096 });
  await greedy.connected;
  const big = greedy.connection.request('tools/call', { name: 'big', arguments: { bytes: 5000 } });
  await expect('a server that breaks the wire is dead to us', 'a McpError of kind "limit"', big, (came) => came?.kind === 'limit');
};
