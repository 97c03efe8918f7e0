// Chapter 5: nobody may wait for the dead.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { promisify } from 'node:util';
import {
  call,
  cleanUp,
  connect,
  folder,
  habit,
  isRunning,
  later,
  pause,
  pidOf,
  plugged,
  rejection,
  root,
  run,
  start,
  until,
} from './help/basics.ts';
import { McpConnection, McpError } from './help/subject.ts';

afterEach(cleanUp);

// A long limit everywhere: whatever ends these calls, it is not a time-out.
const patient = { handshakeTimeoutMs: 1e8, callTimeoutMs: 1e8 };

test('fault 1: a command that is not there fails at once and is named', async () => {
  const connection = new McpConnection('demo', { command: 'no-such-command-here' }, patient);
  later(() => connection.close?.());
  const error = await rejection(connection.connect());
  assert.ok(error instanceof McpError);
  assert.equal(error.kind, 'start');
  assert.match(
    error.message,
    /"demo" \(no-such-command-here\) could not be started: command not found/,
  );
  assert.equal(
    await rejection(connection.request('initialize')),
    await rejection(connection.request('ping')),
    'later calls learn the same',
  );
});

test('a file that is not executable, and a folder that is not there, are named; a line for a shell is no command', async () => {
  const file = join(folder(), 'not-executable');
  writeFileSync(file, 'echo');
  chmodSync(file, 0o644);
  assert.match(
    (await rejection(start({ command: file }))).message,
    /not-executable.*is not executable, or we may not run it/,
  );
  assert.match(
    (await rejection(start({ ...habit(), cwd: '/no/such/folder' }))).message,
    /"cwd" \/no\/such\/folder/,
  );
  const script = join(folder(), 'script');
  writeFileSync(script, '#!/no/such/interpreter\n', { mode: 0o755 });
  assert.match(
    (await rejection(start({ command: script }))).message,
    /the interpreter that its first line names is missing/,
  );
  assert.equal((await rejection(start({ command: 'echo hi; touch x' }))).kind, 'start');
});

test('what spawn refuses by throwing is named too', async () => {
  const file = join(folder(), 'file');
  writeFileSync(file, '');
  for (const config of [
    { ...habit(), cwd: file },
    { command: process.execPath, args: ['x'.repeat(3_000_000)] },
  ]) {
    const error = await rejection(connect(config));
    assert.ok(error instanceof McpError && error.kind === 'start', `${error}`);
    assert.match(error.message, /MCP server "demo".*could not be started/);
  }
});

test('without free file descriptors a server cannot start, and that is all', {
  skip: process.platform === 'win32',
}, async () => {
  const program = join(root, 'test', 'programs', 'many-servers.ts');
  // On Node, also where this test runs in Bun or Deno.
  const script = 'ulimit -n 80; exec "$0" --import tsx "$1"';
  const args = ['-c', script, process.execPath, program];
  const { stdout } = await promisify(execFile)('sh', args, { cwd: root });
  const { connected, failed } = JSON.parse(stdout);
  assert.equal(connected + failed.length, 30);
  assert.ok(connected > 0 && failed.length > 0, stdout);
  const why =
    'could not be started: this machine is short of files, processes or memory \\(EMFILE\\)';
  assert.match(failed[0], new RegExp(`^unreachable: MCP server "s\\d+" \\(.*\\) ${why}`));
});

test('fault 2: a server that exits at once never takes us with it, thirty times', async () => {
  const errors = await Promise.all(
    Array.from({ length: 30 }, async () => {
      const { connection } = await connect(
        { command: process.execPath, args: ['-e', ''] },
        patient,
      );
      const calls = Array.from({ length: 20 }, () => rejection(connection.request('ping')));
      return (await Promise.all(calls))[0];
    }),
  );
  assert.ok(
    errors.every((error) => error.kind === 'closed' && /exited with code 0/.test(error.message)),
    `${errors[0]}`,
  );
});

test('fault 17: stderr is no message; its last lines explain the end', async () => {
  const { messages, ends } = await start(habit('dies-at-once'));
  await until(() => ends.length > 0);
  assert.deepEqual(messages, []);
  assert.match(ends[0]!.message, /"demo".*exited with code 3.*\n {2}cannot find my configuration/);
});

test('a stack does not hide why a server died, nor which variable it missed', async () => {
  process.env.SHELF_SECRET = 'x';
  later(() => delete process.env.SHELF_SECRET);
  const server = "throw new Error('no key: set SHELF_SECRET')";
  const { connection } = await connect({ command: process.execPath, args: ['-e', server] });
  const { message } = await rejection(connection.request('initialize'));
  assert.match(
    message,
    /exited with code 1\. Its last words:\n[^]*Error: no key: set SHELF_SECRET/,
  );
  assert.match(message, /SHELF_SECRET was not passed on/);
  assert.doesNotMatch(message, /\n\s+at |Node\.js v/);
});

test('the line that names the cause is shown, also if a page of usage follows it', async () => {
  const usage = Array.from({ length: 40 }, (_, n) => `  --flag-${n}=VALUE  what it means`).join(
    '\\n',
  );
  const server = `console.error('Starting.\\nError: No access token was provided.\\n\\nUsage:\\n${usage}'); process.exit(1)`;
  const { connection } = await connect({ command: process.execPath, args: ['-e', server] });
  const { message } = await rejection(connection.request('initialize'));
  assert.match(
    message,
    /Its last words:\n {2}Error: No access token was provided\.\n {2}…\n {4}--flag-35=/,
  );
  assert.match(message, /--flag-39=VALUE {2}what it means$/);
});

test('a dying server that asks for a variable we hold back gets us to say so, by name only', async () => {
  process.env.SHELF_TOKEN = 'a-secret-value';
  later(() => delete process.env.SHELF_TOKEN);
  const { connection } = await connect(habit('dies-at-once', 'SHELF_TOKEN'), patient);
  const { message } = await rejection(connection.request('initialize'));
  assert.match(
    message,
    /SHELF_TOKEN was not passed on\. To do so: "env": \{"SHELF_TOKEN": "\$\{SHELF_TOKEN\}"\}/,
  );
  assert.ok(!message.includes('a-secret-value'));
});

test('writing to a server that has died under us is an error of that call, no crash', async () => {
  const { connection } = await connect(habit(), patient);
  const pid = await pidOf(connection);
  process.kill(pid, 'SIGKILL');
  const errors = await Promise.all(
    Array.from({ length: 100 }, () => rejection(connection.request('ping'))),
  );
  assert.ok(
    errors.every((error) => error.message.includes('was ended by SIGKILL')),
    `${errors[0]}`,
  );
});

test('whoever waits until a server reads waits no longer when it dies', async () => {
  const server = `
    const params = { pid: process.pid };
    console.log(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/here', params }));
    setInterval(() => {}, 1e8)`;
  const { transport, messages, ends } = await start({
    command: process.execPath,
    args: ['-e', server],
  });
  await until(() => messages.length === 1);
  const params = { filler: 'x'.repeat(2 ** 20) };
  const send = () => transport.send({ jsonrpc: '2.0', method: 'notifications/much', params });
  const sent = [send(), send(), send()]; // one is in the pipe, the others wait for it
  await pause(50);
  process.kill(messages[0].params.pid, 'SIGKILL');
  await Promise.allSettled(sent);
  await until(() => ends.length === 1);
});

test('death in a call: everyone who waits learns the exit code and the last words', async () => {
  const { connection } = await connect(habit(), patient);
  const waiting = [
    call(connection, 'sleep', { ms: 1e8 }),
    call(connection, 'sleep', { ms: 1e8 }),
    call(connection, 'exit', { code: 7 }),
  ];
  for (const error of await Promise.all(waiting.map(rejection))) {
    assert.equal(error.kind, 'closed');
    assert.match(
      error.message,
      /MCP server "demo" \(.*\) exited with code 7\. Its last words:\n {2}I was told to leave\./,
    );
  }
  assert.match(
    (await rejection(call(connection, 'echo'))).message,
    /exited with code 7/,
    'and so does who comes later',
  );
});

test('the answers that a server gave before it died still count', async () => {
  const { connection } = await connect({
    command: process.execPath,
    args: [
      '-e',
      `process.stdin.once('data', () => process.stdout.write('{"jsonrpc":"2.0","id":1,"result":{"n":1}}\\n', () => process.exit(1)))`,
    ],
  });
  assert.deepEqual(await connection.request('ping'), { n: 1 });
});

test('a server that writes its usage to stdout and leaves is a failure, though its code is 0', async () => {
  const { connection, warnings } = await connect(habit('usage-on-stdout'), patient);
  assert.match((await rejection(connection.request('initialize'))).message, /exited with code 0/);
  assert.match(warnings.join(), /Usage: habits/);
});

test('fault 4: a server that closes its stdout can never answer: its calls fail, and it is ended', async () => {
  const { connection } = await connect(habit('closes-stdout'), patient);
  const pid = await pidOf(connection);
  assert.match(
    (await rejection(call(connection, 'echo'))).message,
    /closed its pipes but did not exit/,
  );
  await until(() => !isRunning(pid));
});

test('the last message counts, also if no line feed follows it before the end', async () => {
  const server = `process.stdin.on('data', (line) => {
    const { id } = JSON.parse(line);
    const result = { content: [{ type: 'text', text: 'done' }] };
    process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }), () => process.exit());
  })`;
  const config = { command: process.execPath, args: ['-e', server] };
  const { connection } = await connect(config, patient);
  assert.equal(await call(connection, 'x'), 'done');
});

test('a grandchild that holds the pipes open does not hide the death', async () => {
  const server = `
    require('child_process').spawn(process.execPath, ['-e', 'setTimeout(() => {}, 20_000)'], { stdio: 'inherit' });
    process.stdin.once('data', () => process.exit(5));`;
  const { connection } = await connect(
    { command: process.execPath, args: ['-e', server] },
    patient,
  );
  assert.match((await rejection(connection.request('ping'))).message, /exited with code 5/);
});

test('B12: a flood on stderr blocks nobody; only its last lines are kept', async () => {
  const { connection } = await connect(habit('floods-stderr', '64'), patient);
  const error = await rejection(call(connection, 'exit', { code: 1 }));
  assert.match(error.message, /last line of the flood\n {2}I was told to leave\.$/);
  assert.ok(error.message.length < 8192);
});

test('the end is told once', async () => {
  const ends: string[] = [];
  const { connection } = await connect(
    habit(),
    plugged({ closed: (why) => void ends.push(why.message) }, patient),
  );
  await rejection(call(connection, 'exit', { code: 1 }));
  await pause(500); // exit, the ends of the pipes and close are all signs of it
  assert.equal(ends.length, 1);
  assert.match(ends[0]!, /exited with code 1/);
});

// A server that breaks a limit is as good as dead.

test('fault 9, B1: a line without end is refused, and the memory it took is bounded', async () => {
  const { ended } = run('endless-line.ts');
  const { code, output } = await ended;
  assert.equal(code, 0, output);
  const { error, grownMiB } = JSON.parse(output);
  assert.match(error, /limit: MCP server "demo" \(.*\) sent a line of more than 10485760 bytes/);
  assert.ok(grownMiB < 64, `it grew by ${grownMiB} MiB`);
});

test('a line as long as the limit passes, a longer one does not', async () => {
  const { connection } = await connect(habit(), { maxLineBytes: 300_000 });
  assert.equal((await call(connection, 'big', { bytes: 200_000 })).length, 200_000);
  assert.equal((await rejection(call(connection, 'big', { bytes: 600_000 }))).kind, 'limit');
  const strict = await connect(habit(), { maxLineBytes: 1000 });
  assert.equal((await rejection(call(strict.connection, 'big', { bytes: 2000 }))).kind, 'limit');
});

test('B5: brackets inside strings do not count, and 400 levels are not too many', async () => {
  const { connection } = await connect(habit());
  const brackets = '[{\\"'.repeat(10_000);
  assert.deepEqual(JSON.parse(await call(connection, 'echo', { brackets })), { brackets });
  const fine = await connection.request('tools/call', { name: 'deep', arguments: { levels: 400 } });
  assert.ok(Array.isArray(fine.content));
});

test('B5: what is nested too deeply is reported and dropped, its call fails, and the connection lives', async () => {
  const { connection, warnings } = await connect(habit());
  const waiting = rejection(call(connection, 'deep', { levels: 100_000 }));
  await until(() => warnings.length > 0);
  assert.match(
    warnings.join(),
    /^MCP server "demo" \(.*\) sent a message with more than 500 levels, which is dropped$/,
  );
  assert.equal(await call(connection, 'echo', { a: 1 }), '{"a":1}');
  assert.equal(connection.ended, undefined);
  assert.equal((await waiting).kind, 'limit');
});

test('B5: 64 MiB of opening brackets are dropped before they are parsed', async () => {
  const { connection, warnings } = await connect({
    command: process.execPath,
    args: [
      '-e',
      `process.stdin.once('data', () => { process.stdout.write('['.repeat(60 * 2 ** 20)); process.stdout.write('\\n') })`,
    ],
  });
  void call(connection, 'echo').catch(() => {}); // chapter 6 gives it a limit
  await until(() => warnings.length > 0);
  assert.match(warnings.join(), /more than 500 levels, which is dropped/);
});

test('a line of coloured noise with a thousand open brackets is noise, not too deep', async () => {
  const { connection, warnings } = await connect(habit());
  const spinner = '\u001b[2K\u001b[1G\u001b[36m|\u001b[0m'.repeat(300);
  const lines = [spinner, '{"jsonrpc":"2.0","id":$ID,"result":{"ok":true}}'];
  assert.deepEqual(await connection.request('tools/call', { name: 'raw', arguments: { lines } }), {
    ok: true,
  });
  assert.match(warnings.join(), /something other than messages/);
});
