// Chapter 5: nobody may wait for the dead.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { promisify } from 'node:util';
import { allGone, cleanUp, connect, folder, habit, isRunning, later, open, pidOf, rejection, root, until } from './helpers.ts';
import { McpConnection, McpError } from './subject.ts';

afterEach(cleanUp);

// A long limit everywhere: whatever ends these calls, it is not a time-out.
const patient = { handshakeTimeoutMs: 1e8, callTimeoutMs: 1e8 };

test('fault 1: a command that is not there fails at once and is named', async () => {
  const connection = new McpConnection('demo', { command: 'no-such-command-here' }, patient);
  const error = await rejection(connection.connect());
  assert.ok(error instanceof McpError);
  assert.equal(error.kind, 'start');
  assert.match(error.message, /"demo" \(no-such-command-here\) could not be started: command not found/);
  assert.equal(await rejection(connection.initialize()), await rejection(connection.request('ping')), 'later calls learn the same');
  await connection.close();
});

test('fault 2: a server that exits at once never takes us with it, thirty times', async () => {
  const errors = await Promise.all(
    Array.from({ length: 30 }, async () => {
      const { connection } = await connect({ command: process.execPath, args: ['-e', ''] }, patient);
      const calls = Array.from({ length: 20 }, () => rejection(connection.request('ping')));
      return (await Promise.all(calls))[0];
    }),
  );
  assert.ok(errors.every((error) => error.kind === 'closed' && /exited with code 0/.test(error.message)), `${errors[0]}`);
});

test('writing to a server that has died under us is an error of that call, no crash', async () => {
  const { connection } = await open(habit(), patient);
  const pid = await pidOf(connection);
  process.kill(pid, 'SIGKILL');
  const errors = await Promise.all(Array.from({ length: 100 }, () => rejection(connection.request('ping'))));
  assert.ok(errors.every((error) => error.message.includes('was ended by SIGKILL')), `${errors[0]}`);
});

test('death in a call: everyone who waits learns the exit code and the last words', async () => {
  const { connection } = await open(habit(), patient);
  const waiting = [connection.callTool('sleep', { ms: 1e8 }), connection.callTool('sleep', { ms: 1e8 }), connection.callTool('exit', { code: 7 })];
  for (const error of await Promise.all(waiting.map(rejection))) {
    assert.equal(error.kind, 'closed');
    assert.match(error.message, /MCP server "demo" \(.*\) exited with code 7\. Its last words:\n {2}I was told to leave\./);
  }
  assert.match((await rejection(connection.callTool('echo'))).message, /exited with code 7/, 'and so does who comes later');
});

test('the answers that a server gave before it died still count', async () => {
  const { connection } = await connect({
    command: process.execPath,
    args: ['-e', `process.stdin.once('data', () => process.stdout.write('{"jsonrpc":"2.0","id":1,"result":{"n":1}}\\n', () => process.exit(1)))`],
  });
  assert.deepEqual(await connection.request('ping'), { n: 1 });
});

test('a server that writes its usage to stdout and leaves is a failure, though its code is 0', async () => {
  const { connection, warnings } = await connect(habit('usage-on-stdout'), patient);
  assert.match((await rejection(connection.initialize())).message, /exited with code 0/);
  assert.match(warnings.join(), /Usage: habits/);
});

test('death right after the handshake', async () => {
  const { connection } = await connect(habit('dies-after-handshake'), patient);
  const error = await rejection(connection.initialize().then(() => connection.listTools()));
  assert.match(error.message, /exited with code 4/);
});

test('fault 4: a server that closes its stdout can never answer: its calls fail, and it is ended', async () => {
  const { connection } = await open(habit('closes-stdout'), patient);
  const pid = await pidOf(connection);
  assert.match((await rejection(connection.callTool('echo'))).message, /closed its pipes but did not exit/);
  await until(() => !isRunning(pid));
});

test('a server that closes its stdin can never hear us: calls fail, and it is ended', async () => {
  const { connection } = await open(habit('closes-stdin'), patient);
  const pid = await pidOf(connection);
  assert.equal((await connection.callTool('echo')).text, 'deaf now');
  const sending = setInterval(() => connection.notify('notifications/hello').catch(() => {}), 10); // finds out by EPIPE
  later(() => clearInterval(sending));
  assert.match((await rejection(connection.callTool('log'))).message, /closed its pipes but did not exit/);
  await until(() => !isRunning(pid));
});

test('a grandchild that holds the pipes open does not hide the death, and dies too', async () => {
  const file = join(folder(), 'pids');
  const { connection } = await open(habit('leaves-a-child', file), patient);
  assert.match((await rejection(connection.callTool('echo'))).message, /exited with code 5/);
  await allGone(file);
});

test('B12: a flood on stderr blocks nobody; only its last lines are kept', async () => {
  const { connection } = await open(habit('floods-stderr', '64'), patient);
  const error = await rejection(connection.callTool('exit', { code: 1 }));
  assert.match(error.message, /last line of the flood\n {2}I was told to leave\.$/);
  assert.ok(error.message.length < 8192);
});

test('a dying server that asks for a variable we hold back gets us to say so, by name only', async () => {
  process.env.SHELF_TOKEN = 'a-secret-value';
  later(() => delete process.env.SHELF_TOKEN);
  const { connection } = await connect(habit('dies-at-once', 'SHELF_TOKEN'), patient);
  const { message } = await rejection(connection.initialize());
  assert.match(message, /SHELF_TOKEN was not passed on\. To do so: "env": \{"SHELF_TOKEN": "\$\{SHELF_TOKEN\}"\}/);
  assert.ok(!message.includes('a-secret-value'));
});

test('the end is told once', async () => {
  const ends: string[] = [];
  const { connection } = await open(habit(), { ...patient, onClosed: (why) => ends.push(why.message) });
  await rejection(connection.callTool('exit', { code: 1 }));
  await connection.close();
  await connection.close();
  assert.equal(ends.length, 1);
  assert.match(ends[0]!, /exited with code 1/);
});

test('what spawn refuses by throwing is named too', async () => {
  const file = join(folder(), 'file');
  writeFileSync(file, '');
  for (const config of [{ ...habit(), cwd: file }, { command: process.execPath, args: ['x'.repeat(3_000_000)] }]) {
    const error = await rejection(connect(config));
    assert.ok(error instanceof McpError && error.kind === 'start', `${error}`);
    assert.match(error.message, /MCP server "demo".*could not be started/);
  }
});

test('without free file descriptors a server cannot start, and that is all', { skip: process.platform === 'win32' }, async () => {
  const program = join(root, 'test', 'programs', 'many-servers.ts');
  const script = 'ulimit -n 60; exec "$0" --import tsx "$1"';
  const { stdout } = await promisify(execFile)('sh', ['-c', script, process.execPath, program], { cwd: root });
  const { connected, failed } = JSON.parse(stdout);
  assert.equal(connected + failed.length, 30);
  assert.ok(connected > 0 && failed.length > 0, stdout);
  assert.match(failed[0], /^start: MCP server "s\d+" \(.*\) could not be started: spawn .* EMFILE/);
});

test('a stack does not hide why a server died, nor which variable it missed', async () => {
  process.env.SHELF_SECRET = 'x';
  later(() => delete process.env.SHELF_SECRET);
  const server = "throw new Error('no key: set SHELF_SECRET')";
  const { connection } = await connect({ command: process.execPath, args: ['-e', server] });
  const { message } = await rejection(connection.initialize());
  assert.match(message, /exited with code 1\. Its last words:\n[^]*Error: no key: set SHELF_SECRET/);
  assert.match(message, /SHELF_SECRET was not passed on/);
  assert.doesNotMatch(message, /\n\s+at |Node\.js v/);
});
