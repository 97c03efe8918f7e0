// However the program ends, nothing that it started lives on. The servers here ignore the end of their input and
// SIGTERM, and have a child that does so too; after kill -9 a server that behaves well has to see for itself.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { allGone, cleanUp, folder, habit, isRunning, later, pidsIn, until } from './help/basics.ts';
import { call, say, startModelServer } from './help/model-server.ts';
import {
  KEYS,
  place,
  readLines,
  run,
  start,
  Terminal,
  userServers,
  type Place,
} from './help/terminal.ts';

afterEach(cleanUp);

/** A model that calls a tool which takes for ever. */
async function sleeper(): Promise<{ args: string[]; env: NodeJS.ProcessEnv }> {
  const { url } = await startModelServer([call('mcp__s__sleep', { ms: 1e8 }), say('over')]);
  return {
    args: ['--allow', 'mcp__s__sleep'],
    env: { ANTHROPIC_API_KEY: 'a-key', ANTHROPIC_BASE_URL: url },
  };
}
// A bug of ours, on demand.
const BUG = `--import data:text/javascript,process.on('SIGUSR2',()=>{throw(new(Error)('a\\u001b[2J_bug'))})`;

/** A file for pids. If the test fails, they are ended here. */
function pidFile(): string {
  const file = join(folder(), 'pids');
  later(() =>
    pidsIn(file)
      .filter(isRunning)
      .forEach((pid) => process.kill(pid, 'SIGKILL')),
  );
  return file;
}

function stubborn(more = {}): { where: Place; pids: string } {
  const pids = pidFile();
  return { where: place({}, userServers({ s: habit('stubborn', pids), ...more })), pids };
}

test('SIGTERM, SIGHUP, SIGQUIT, SIGINT twice, an exception: in the middle of a call', async () => {
  const ways: [NodeJS.Signals[], number][] = [
    [['SIGTERM'], 143],
    [['SIGHUP'], 129],
    [['SIGQUIT'], 131],
    [['SIGINT', 'SIGINT'], 130],
    [['SIGUSR2'], 1],
  ];
  await Promise.all(
    ways.map(async ([signals, expected]) => {
      const { where, pids } = stubborn();
      const { args, env } = await sleeper();
      const options = { input: null, env: { ...env, NODE_OPTIONS: BUG } };
      const { child, seen, ended } = start(where, ['--trace', 'trace', ...args], options);
      child.stdin.write('go\n');
      await until(() =>
        readLines(join(where.cwd, 'trace')).some(({ msg }) => msg?.method === 'tools/call'),
      );
      await until(() => pidsIn(pids).length === 2);
      for (const signal of signals) {
        child.kill(signal);
        if (signal === 'SIGINT') await until(() => seen.err.includes('stopped')); // two at once would be one
      }
      const { code, err } = await ended;
      assert.equal(code, expected, `${signals}: ${err}`);
      if (expected === 1) assert.match(err, /Error: a\\x1b\[2J_bug\n    at /);
      await allGone(pids);
    }),
  );
});

test('the end of -p, an end while servers are still connecting, mcp list, probe', async () => {
  const [once, connecting, listing, probing] = [
    stubborn(),
    stubborn({ mute: habit('mute') }),
    stubborn(),
    stubborn(),
  ];
  const answered = run(once.where, ['-p', 'hello']);
  const listed = run(listing.where, ['mcp', 'list']);
  const probed = run(probing.where, ['probe', 's']);
  const { child, ended } = start(connecting.where, ['-p', 'hello']);
  await until(() => pidsIn(connecting.pids).length === 2);
  child.kill('SIGTERM');
  assert.equal((await ended).code, 143);
  assert.deepEqual(
    (await Promise.all([answered, listed, probed])).map(({ code }) => code),
    [0, 0, 0],
  );
  for (const { pids } of [once, connecting, listing, probing])
    if (pidsIn(pids).length > 0) await allGone(pids);
});

test('Ctrl-C twice at a terminal; and a terminal that is closed', async () => {
  const [quits, closed] = [stubborn(), stubborn()];
  const open = async ({ where }: { where: Place }) => {
    const { args, env } = await sleeper();
    const terminal = new Terminal(where, ['sleep now', ...args], env);
    await terminal.see(/^. mcp__s__sleep/);
    return terminal;
  };
  const [first, second] = await Promise.all([open(quits), open(closed)]);
  await until(() => [quits, closed].every(({ pids }) => pidsIn(pids).length === 2));
  first!.press(KEYS.ctrlC);
  await first!.ready();
  first!.press(KEYS.ctrlC, KEYS.ctrlC);
  assert.equal(await first!.ended(), 130);
  second!.close();
  for (const { pids } of [quits, closed]) await allGone(pids);
});

test('kill -9: a server that behaves well, and a command with a child that does not', async () => {
  const [server, command] = [pidFile(), pidFile()];
  const where = place({}, userServers({ s: habit('notes-its-pid', server) }));
  const script = `trap "" HUP TERM; echo $$ >> '${command}'; sleep 1000 & echo $! >> '${command}'; wait`;
  const prompt = `bash ${JSON.stringify({ command: script })}`;
  const { child, ended } = start(where, ['-p', '--allow', `bash(${script})`, prompt]);
  await until(() => pidsIn(server).length === 1 && pidsIn(command).length === 2);
  child.kill('SIGKILL');
  await ended;
  await allGone(server);
  await allGone(command);
});
