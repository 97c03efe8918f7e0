// Judges exercise 5: does everyone learn of every death, in time, and not before the last words are read?

import { execFileSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Judge } from '../book.ts';

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpConnection } = await load('mcp.ts');
  const start = async (...args: string[]) => begin({ command: 'node', args });
  const begin = async (config: object) => {
    const ends: Error[] = [];
    const noteEnd = () => ({ closed: (why: Error) => void ends.push(why) });
    const connection = new McpConnection('demo', config, {
      onWire: see,
      onWarning: () => {},
      extensions: [noteEnd],
    });
    await connection.connect();
    const { transport } = connection;
    const ask = (name: string, args: object = {}) =>
      outcome(connection.request('tools/call', { name, arguments: args }));
    return { connection, ends, ask, transport, child: transport.child };
  };
  const habits = 'fixtures/habits.mjs';
  const isDeath = (words: RegExp) => (came: any) =>
    came?.kind === 'closed' && words.test(came.message);

  const doomed = await start(habits);
  await expect(
    'a server that lives is left alone',
    'its answer, half a second after its start',
    pause(500).then(() => doomed.ask('echo')),
    (came) => came?.content !== undefined,
  );
  const code = 2 + randomInt(98);
  const waiting = [
    doomed.ask('sleep', { ms: 100_000 }),
    doomed.ask('sleep', { ms: 100_000 }),
    doomed.ask('exit', { code }),
  ];
  const reason = `a McpError of kind "closed" that says: exited with code ${code}. Its last words: I was told to leave.`;
  const isExit = isDeath(new RegExp(`exited with code ${code}\\b[^]*told to leave`));
  await expect('the first of three who wait learns of the death', reason, waiting[0], isExit);
  await expect(
    'so do the others',
    `three times ${reason}`,
    Promise.all(waiting),
    (came) => came?.length === 3 && came.every(isExit),
  );
  await expect('who asks later is refused', `${reason}, at once`, doomed.ask('echo'), isExit);
  await pause(300); // a second report would come now
  await expect(
    'the end is told once',
    'one call of `closed`',
    `${doomed.ends.length} call(s) of closed`,
    /^1 /,
  );

  const deaf = await start(habits, 'closes-stdout');
  const pipes = 'a McpError of kind "closed" that says: closed its pipes but did not exit';
  const isDeaf = isDeath(/closed its pipes but did not exit/);
  await expect(
    'a server that closes its stdout and lives on is dead to us',
    pipes,
    deaf.ask('echo'),
    isDeaf,
  );
  // A server that reads, and never answers. The signs of its end are made up: it lives, so no other comes to help.
  const mute = hasShell()
    ? { command: 'sh', args: ['-c', 'cat > /dev/null'] }
    : { command: 'node', args: [habits, 'mute'] };
  type Sign = { name: string; give: (child: any) => void };
  const signs: Sign[] = [
    ...['stdin', 'stdout', 'stderr'].map((name) => ({
      name: `an error of ${name}`,
      give: (child: any) => child[name].emit('error', new Error(`${name} is broken`)),
    })),
    { name: 'the end of stdout', give: (child) => child.stdout.emit('end') },
    {
      name: 'an exit',
      give: (child) => Object.assign(child, { exitCode: 0 }).emit('exit', 0, null),
    },
    {
      name: 'an exit by a signal',
      give: (child) =>
        Object.assign(child, { signalCode: 'SIGKILL' }).emit('exit', null, 'SIGKILL'),
    },
  ];
  /** A call waits, and the sign is given. How often was the end told at each of these moments? The timers are set in the
   *  order in which they ring, so a machine that is slow changes nothing. */
  const probe = async (give: (child: any) => void, meanwhile?: (server: any) => void) => {
    const server = await begin(mute);
    const call = server.ask('echo');
    const count = () => server.ends.length;
    const soon = pause(200).then(count);
    if (meanwhile) void pause(150).then(() => meanwhile(server));
    const timers = refdTimers();
    give(server.child);
    const moreTimers = refdTimers() - timers;
    await nextTurn();
    const late = pause(350).then(nextTurn).then(nextTurn).then(nextTurn).then(count);
    return { ...server, call, moreTimers, soon: await soon, late: await late };
  };
  const probes = signs.map(({ give }) => probe(give).catch((error: Error) => error));
  for (const [at, { name }] of signs.entries()) {
    const call = probes[at]!.then((came) => (came instanceof Error ? came : came.call));
    await expect(
      `${name} is a sign of the end, and does not end our program`,
      'a McpError of kind "closed"',
      call,
      isDeath(/./),
    );
  }
  const odd = async (what: 'soon' | 'late' | 'moreTimers', wanted: number, unit: string) => {
    const all = (await Promise.all(probes)) as Awaited<ReturnType<typeof probe>>[];
    const words = signs.map(({ name }, at) => `after ${name} ${all[at]![what]} ${unit}`);
    return words.filter((_, at) => all[at]![what] !== wanted).join(', ') || 'all is well';
  };
  await expect(
    'at each of these there is a wait for the last answers',
    'no call of `closed` yet, a fifth of a second later',
    odd('soon', 0, 'call(s) of closed'),
    /^all is well$/,
  );
  await expect(
    'the wait is not too long',
    'one call of `closed`, 350 ms later',
    odd('late', 1, 'call(s) of closed'),
    /^all is well$/,
  );
  await expect(
    'the timer does not keep our program alive',
    'no timer more than before',
    odd('moreTimers', 0, 'timer(s) more'),
    /^all is well$/,
  );
  const [stdin, , , end, exit] = signs as [Sign, Sign, Sign, Sign, Sign];
  const pairs = [end, exit, stdin].flatMap((one) =>
    [end, exit, stdin].filter((two) => two !== one).map((two) => [one, two] as const),
  );
  const twice = pairs.map(([one, two]) => probe(one.give, ({ child }) => two.give(child)));
  for (const [at, [one, two]] of pairs.entries())
    await expect(
      'a second sign does not begin the wait again',
      `one call of \`closed\`, 350 ms after ${one.name}, though ${two.name} came in between`,
      twice[at]!.then(({ late }) => `${late} call(s) of closed`),
      /^1 /,
    );
  const closed = await begin(mute);
  const atClose = async () => {
    exit.give(closed.child);
    closed.child.emit('close', 0, null);
    await pause(20);
    return `${closed.ends.length} call(s) of closed`;
  };
  await expect('`close` ends it at once', 'one call of `closed`, without a wait', atClose(), /^1 /);

  if (hasShell()) await judgeWithShell();

  const leaving = await begin(mute);
  leaving.transport.closing = new Promise(() => {}); // as if we had said goodbye ourselves
  leaving.child.stdout.destroy(new Error('stdout is broken'));
  await pause(500);
  await expect(
    'when we say goodbye ourselves, a first sign does not end it',
    'no call of `closed` yet, half a second after stdout broke',
    `${leaving.ends.length} call(s) of closed`,
    /^0 /,
  );
  const goodbye = probe(exit.give, ({ transport }) => (transport.closing = new Promise(() => {})));
  await expect(
    'nor does it when we say goodbye during the wait',
    'no call of `closed`: the exit came before the goodbye, the end of the wait after it',
    goodbye.then(({ late }) => `${late} call(s) of closed`),
    /^0 /,
  );
  leaving.child.stdin.end();
  const told = async () => {
    for (let turn = 0; turn < 100 && leaving.ends.length === 0; turn++) await pause(20);
    return `${leaving.ends.length} call(s) of closed`;
  };
  await expect(
    '`close` ends it also when we said goodbye',
    'one call of `closed`, when the server has left',
    told(),
    /^1 /,
  );

  /** A shell is quick enough for these. It reads our question, exits, and leaves a process behind that has its pipes. */
  async function judgeWithShell(): Promise<void> {
    const leaves = (work: string) =>
      begin({ command: 'sh', args: ['-c', `read line; (${work}) & exit 0`] });
    const answer = `echo '{"jsonrpc":"2.0","id":1,"result":{"last":"answer"}}'`;
    const exited = 'a McpError of kind "closed" that says: exited with code 0';
    const orphan = await leaves('sleep 5');
    const call = orphan.ask('echo');
    await expect(
      'a process that the server left behind keeps the pipes, and nobody waits for it',
      exited,
      call,
      isDeath(/exited with code 0/),
    );

    const folder = mkdtempSync(join(tmpdir(), 'exercise-'));
    const said = join(folder, 'said');
    const late = await leaves(`sleep 0.1; ${answer}; : > '${said}'; sleep 5`);
    const lateCall = late.ask('echo');
    late.child.on('exit', () => setImmediate(() => blockUntil(said)));
    const what =
      'the result { last: "answer" }: it comes a tenth of a second after the exit, while we have something else to do for longer than the wait';
    await expect(
      'an answer that is on its way when the server exits is read before the end',
      what,
      lateCall,
      (came) => came?.last === 'answer',
    );
    rmSync(folder, { recursive: true });

    const quiet = await begin({
      command: 'sh',
      args: ['-c', `exec 2>&-; read line; ${answer}; exec cat > /dev/null`],
    });
    const asked = async () => {
      if (!quiet.child.stderr.closed) await once(quiet.child.stderr, 'close');
      await pause(500);
      return quiet.ask('echo');
    };
    await expect(
      'a server that closes its stderr alone is not dead',
      'its answer, half a second later: { last: "answer" }',
      asked(),
      (came) => came?.last === 'answer',
    );

    const deafNow = await begin({
      command: 'sh',
      args: ['-c', 'exec 0<&-; echo deaf >&2; exec sleep 6'],
    });
    const written = async () => {
      for (let turn = 0; turn < 100 && deafNow.transport.stderrTail === ''; turn++) await pause(20);
      return deafNow.ask('echo');
    };
    await expect(
      'a server that closes its stdin and lives on is dead to us',
      pipes,
      written(),
      isDeaf,
    );
  }
};

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));
const nextTurn = () => new Promise((done) => setImmediate(done));
const outcome = (promise: Promise<unknown>) => promise.catch((error: Error) => error);
/** Timers that keep a program alive. */
const refdTimers = () =>
  process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

/** Nothing else runs here meanwhile: until the file is there, and for longer than the wait for the last answers. */
function blockUntil(file: string): void {
  const clock = new Int32Array(new SharedArrayBuffer(4));
  for (let times = 0; times < 10 || (times < 120 && !existsSync(file)); times++)
    Atomics.wait(clock, 0, 0, 50);
}

function hasShell(): boolean {
  try {
    execFileSync('sh', ['-c', 'true']);
    return process.platform !== 'win32';
  } catch {
    return false;
  }
}
