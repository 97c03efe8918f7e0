// Chapter 11: end stdin, SIGTERM, SIGKILL, the whole group, no orphans.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import {
  allGone,
  cleanUp,
  connect,
  folder,
  habit,
  isRunning,
  later,
  notIn,
  open,
  pidOf,
  pidsIn,
  plugged,
  rejection,
  run,
  until,
} from './help/basics.ts';
import { McpConnection } from './help/subject.ts';

afterEach(cleanUp);

// A long limit everywhere: whatever ends these calls, it is not a time-out.
const patient = { handshakeTimeoutMs: 1e8, callTimeoutMs: 1e8 };

test('a polite server leaves when its stdin ends, and close() waits for that', async () => {
  const file = join(folder(), 'left');
  const { connection } = await open(habit('leaves-late', file)); // closes its stdout, then takes its time
  const pid = await pidOf(connection);
  await connection.close();
  assert.ok(!isRunning(pid));
  assert.equal(readFileSync(file, 'utf8'), 'left');
});

test('one that ignores the end of its stdin is asked by SIGTERM and may still save its work', async () => {
  const file = join(folder(), 'saved');
  const { connection } = await open(habit('ends-on-sigterm', file));
  const pid = await pidOf(connection);
  await connection.close();
  assert.ok(!isRunning(pid));
  assert.equal(readFileSync(file, 'utf8'), 'saved');
});

test('fault 14, B11: one that ignores that too is ended, and so is the child it started', async () => {
  const file = join(folder(), 'pids');
  const { connection } = await open(habit('stubborn', file));
  await until(() => pidsIn(file).length === 2);
  await connection.close();
  await allGone(file);
});

test('what was sent just before the goodbye arrives', async () => {
  const file = join(folder(), 'heard');
  const server = `process.stdin.on('data', (text) => require('fs').appendFileSync(process.argv[1], text))`;
  const { connection } = await open(
    { command: process.execPath, args: ['-e', server, file] },
    plugged({ handshake: async () => ({ protocolVersion: 'none' }) }),
  );
  void connection.notify('notifications/last-words');
  await connection.close();
  assert.equal(
    readFileSync(file, 'utf8'),
    '{"jsonrpc":"2.0","method":"notifications/last-words"}\n',
  );
});

test('also if it is more than the pipe and a write can hold, and the server reads slowly', async () => {
  const file = join(folder(), 'heard');
  const server = `
    const { appendFileSync } = require('fs');
    process.stdin.on('data', (text) => {
      appendFileSync(process.argv[1], text);
      process.stdin.pause();
      setImmediate(() => process.stdin.resume());
    })`;
  const { connection } = await open(
    { command: process.execPath, args: ['-e', server, file] },
    plugged({ handshake: async () => ({ protocolVersion: 'none' }) }),
  );
  const filler = 'x'.repeat(300_000);
  const told = Array.from({ length: 10 }, (_, n) => connection.notify('much', { n, filler }));
  await connection.close();
  await Promise.allSettled(told);
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  const numbers = lines.map((line) => JSON.parse(line).params.n);
  assert.deepEqual(numbers, Array.from(told.keys()));
});

test('fault 15: closing twice, closing before connecting, calling before and after: each has a clear answer', async () => {
  const { connection } = await open(habit());
  await Promise.all([connection.close(), connection.close()]);
  await connection.close();
  assert.match((await rejection(connection.callTool('echo'))).message, /"demo" was closed by us/);
  assert.match((await rejection(connection.listTools())).message, /was closed by us/);
  assert.match((await rejection(connection.notify('x'))).message, /was closed by us/);

  const unused = new McpConnection('unused', habit());
  assert.match(
    (await rejection(unused.request('ping'))).message,
    /"unused" is not connected; call connect\(\) first/,
  );
  await unused.close();
  assert.match((await rejection(unused.connect())).message, /was closed by us/);
});

test('fault 14: a call that is pending when we close fails at once, it does not hang', async () => {
  const { connection } = await open(habit('stubborn'), { callTimeoutMs: 1e8 });
  const call = rejection(connection.callTool('sleep', { ms: 1e8 }));
  const closed = connection.close();
  let isClosed = false;
  void closed.then(() => (isClosed = true));
  assert.match((await call).message, /was closed by us/);
  assert.equal(isClosed, false, 'the caller does not wait for the goodbye');
  await closed;
});

test('closing while the handshake is under way ends it', async () => {
  const { connection } = await connect(habit('mute'), { handshakeTimeoutMs: 1e8 });
  const handshake = rejection(connection.initialize());
  await connection.close();
  assert.match((await handshake).message, /was closed by us/);
});

test('the end is told once, however often we close afterwards', async () => {
  const ends: string[] = [];
  const { connection } = await open(
    habit(),
    plugged({ closed: (why) => void ends.push(why.message) }, patient),
  );
  await rejection(connection.callTool('exit', { code: 1 }));
  await connection.close();
  await connection.close();
  assert.equal(ends.length, 1);
  assert.match(ends[0]!, /exited with code 1/);
});

test('B10: the refused server is gone, though it ignores the end of its stdin', async () => {
  const file = join(folder(), 'pid');
  const server = `
    require('fs').writeFileSync(process.argv[1], String(process.pid));
    setInterval(() => {}, 1e9);
    process.stdin.once('data', () => console.log('{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"1999-01-01"}}'));`;
  const { connection } = await connect({ command: process.execPath, args: ['-e', server, file] });
  await rejection(connection.initialize());
  await allGone(file);
});

const deaf = notIn('bun', 'does not tell that the other end of a pipe was closed');

test(
  'a server that closes its stdin can never hear us: calls fail, and it is ended',
  deaf,
  async () => {
    const { connection } = await open(habit('closes-stdin'), patient);
    const pid = await pidOf(connection);
    assert.equal((await connection.callTool('echo')).text, 'deaf now');
    const sending = setInterval(() => connection.notify('notifications/hello').catch(() => {}), 10); // finds out by EPIPE
    later(() => clearInterval(sending));
    assert.match(
      (await rejection(connection.callTool('log'))).message,
      /closed its pipes but did not exit/,
    );
    await until(() => !isRunning(pid));
  },
);

test('a grandchild that holds the pipes open does not hide the death, and dies too', async () => {
  const file = join(folder(), 'pids');
  const { connection } = await open(habit('leaves-a-child', file), patient);
  assert.match((await rejection(connection.callTool('echo'))).message, /exited with code 5/);
  await allGone(file);
});

const noExit = notIn('deno', 'does not emit `exit` after an error that was not caught');

for (const ending of ['normal-exit', 'exception', 'rejection', 'while-connecting'])
  test(`fault 24: no orphan after ${ending}`, /exc|rej/.test(ending) ? noExit : {}, async () => {
    const file = join(folder(), 'pids');
    const { code, output } = await run('with-server.ts', [ending, file]).ended;
    assert.equal(code === 0, ending === 'normal-exit' || ending === 'while-connecting', output);
    assert.equal(pidsIn(file).length, 2, output);
    await allGone(file);
  });

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const)
  test(`fault 24: no orphan after ${signal}, which still ends the program as it should`, async () => {
    const file = join(folder(), 'pids');
    const { child, seen, ended } = run('with-server.ts', ['wait', file]);
    await until(() => seen.output.includes('ready'));
    child.kill(signal);
    assert.equal((await ended).signal, signal);
    await allGone(file);
  });

test('a program with its own plan for SIGINT keeps it, and its servers', async () => {
  const file = join(folder(), 'pids');
  const { child, seen, ended } = run('with-server.ts', ['own-plan', file]);
  await until(() => seen.output.includes('ready'));
  process.kill(child.pid!, 'SIGINT'); // Deno's `child.kill` counts once
  await until(() => seen.output.includes('going on'));
  assert.ok(pidsIn(file).every(isRunning));
  process.kill(child.pid!, 'SIGTERM');
  assert.equal((await ended).signal, 'SIGTERM');
  await allGone(file);
});

const notFirst = notIn('deno', 'puts the listener of a signal behind those that are there');

test(
  'a plan that was made with `once`, before us, is carried out to its end',
  notFirst,
  async () => {
    const file = join(folder(), 'pids');
    const { child, seen, ended } = run('with-server.ts', ['own-plan-once', file]);
    await until(() => seen.output.includes('ready'));
    child.kill('SIGINT');
    const { code, output } = await ended;
    assert.equal(code, 7, output);
    assert.match(output, /saved/);
    await allGone(file);
  },
);

test(
  'beside a library that acts only when it is alone, SIGINT still ends the program, and its server sees its stdin end',
  notFirst,
  async () => {
    const file = join(folder(), 'left');
    const { child, seen, ended } = run('with-server.ts', ['beside-a-library', file]);
    await until(() => seen.output.includes('ready'));
    child.kill('SIGINT');
    assert.equal((await ended).signal, 'SIGINT');
    await until(() => existsSync(file));
  },
);

test('after SIGKILL of us a server sees its stdin end', async () => {
  const file = join(folder(), 'left');
  const { child, seen, ended } = run('with-server.ts', ['polite', file]);
  await until(() => seen.output.includes('ready'));
  child.kill('SIGKILL');
  assert.equal((await ended).signal, 'SIGKILL');
  await until(() => existsSync(file) && readFileSync(file, 'utf8') === 'left');
});
