// Judges exercise 5: does everyone learn of every death, in time, and not before the last words are read?

import { execFileSync } from 'node:child_process';
import type { Judge } from '../book.ts';

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpConnection } = await load('mcp.ts');
  const start = async (...args: string[]) => begin({ command: 'node', args });
  const begin = async (config: object) => {
    const ends: Error[] = [];
    const noteEnd = () => ({ closed: (why: Error) => void ends.push(why) });
    const connection = new McpConnection('demo', config, { onWire: see, onWarning: () => {}, extensions: [noteEnd] });
    await connection.connect();
    const { transport } = connection;
    const ask = (name: string, args: object = {}) => outcome(connection.request('tools/call', { name, arguments: args }));
    return { connection, ends, ask, transport, child: transport.child };
  };
  const habits = 'fixtures/habits.mjs';
  const isDeath = (words: RegExp) => (came: any) => came?.kind === 'closed' && words.test(came.message);

  const doomed = await start(habits);
  await expect('a server that lives is left alone', 'its answer, half a second after its start', pause(500).then(() => doomed.ask('echo')), (came) => came?.content !== undefined);
  const waiting = [doomed.ask('sleep', { ms: 100_000 }), doomed.ask('sleep', { ms: 100_000 }), doomed.ask('exit', { code: 7 })];
  const reason = 'a McpError of kind "closed" that says: exited with code 7. Its last words: I was told to leave.';
  const isExit = isDeath(/exited with code 7[^]*told to leave/);
  await expect('the first of three who wait learns of the death', reason, waiting[0], isExit);
  await expect('so do the others', `three times ${reason}`, Promise.all(waiting), (came) => came?.length === 3 && came.every(isExit));
  await expect('who asks later is refused', `${reason}, at once`, doomed.ask('echo'), isExit);
  await pause(300); // a second report would come now
  await expect('the end is told once', 'one call of `closed`', `${doomed.ends.length} call(s) of closed`, /^1 /);

  const deaf = await start(habits, 'closes-stdout');
  const pipes = 'a McpError of kind "closed" that says: closed its pipes but did not exit';
  const isDeaf = isDeath(/closed its pipes but did not exit/);
  await expect('a server that closes its stdout and lives on is dead to us', pipes, deaf.ask('echo'), isDeaf);
  // A server that reads, and never answers.
  const mute = hasShell() ? { command: 'sh', args: ['-c', 'cat > /dev/null'] } : { command: 'node', args: [habits, 'mute'] };
  for (const name of ['stdin', 'stdout', 'stderr'] as const) {
    const broken = await begin(mute);
    const call = broken.ask('echo');
    await pause(20);
    broken.child[name].destroy(new Error(`${name} is broken`));
    await expect(`an error of ${name} is a sign of the end, and does not end our program`, 'a McpError of kind "closed"', call, isDeath(/./));
  }

  if (hasShell()) await judgeWithShell();

  const leaving = await begin(mute);
  leaving.transport.closing = new Promise(() => {}); // as if we had said goodbye ourselves
  leaving.child.stdout.destroy(new Error('stdout is broken'));
  await pause(500);
  await expect('when we say goodbye ourselves, a first sign does not end it', 'no call of `closed` yet, half a second after stdout broke', `${leaving.ends.length} call(s) of closed`, /^0 /);
  leaving.child.stdin.end();
  const told = async () => {
    for (let turn = 0; turn < 100 && leaving.ends.length === 0; turn++) await pause(20);
    return `${leaving.ends.length} call(s) of closed`;
  };
  await expect('`close` ends it at once, also then', 'one call of `closed`, when the server has left', told(), /^1 /);

  /** A shell is quick enough for these. It reads our question, exits, and leaves a process behind that has its pipes. */
  async function judgeWithShell(): Promise<void> {
    const leaves = (work: string) => begin({ command: 'sh', args: ['-c', `read line; (${work}) & exit 0`] });
    const answer = `echo '{"jsonrpc":"2.0","id":1,"result":{"last":"answer"}}'`;
    const exited = 'a McpError of kind "closed" that says: exited with code 0';
    const orphan = await leaves('sleep 5');
    const call = orphan.ask('echo');
    const before = refdTimers(); // later chapters have one for the call itself
    const afterExit = new Promise<number>((done) => orphan.child.on('exit', () => setImmediate(() => done(refdTimers()))));
    await expect('the timer does not keep our program alive', 'no timer more than before', afterExit.then((after) => `${after - before} timer(s) more`), /^0 /);
    await expect('a process that the server left behind keeps the pipes, and nobody waits for it', exited, call, isDeath(/exited with code 0/));

    const late = await leaves(`sleep 0.1; ${answer}; sleep 5`);
    const lateCall = late.ask('echo');
    late.child.on('exit', () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000));
    const what = 'the result { last: "answer" }: it comes a tenth of a second after the exit, while we have something else to do for a second';
    await expect('an answer that is on its way when the server exits is read before the end', what, lateCall, (came) => came?.last === 'answer');
  }
};

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));
const outcome = (promise: Promise<unknown>) => promise.catch((error: Error) => error);
/** Timers that keep a program alive. */
const refdTimers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

function hasShell(): boolean {
  try {
    execFileSync('sh', ['-c', 'true']);
    return process.platform !== 'win32';
  } catch {
    return false;
  }
}
