// Chapter 1: a server is a child process; stdin and stdout are the wire, stderr is not.

import assert from 'node:assert/strict';
import { chmodSync, existsSync, realpathSync, writeFileSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import type { Json, Message } from '../mcp.ts';
import { cleanUp, folder, goodServer, habit, later, pause, rejection, until } from './helpers.ts';
import { McpError, StdioTransport } from './subject.ts';

afterEach(cleanUp);

const MiB = 2 ** 20;

async function start(config: Json) {
  const transport = new StdioTransport('demo', config, 64 * MiB);
  const messages: any[] = [];
  const ends: Error[] = [];
  later(() => transport.close());
  const started = transport.start({ message: (message) => messages.push(message), closed: (why) => ends.push(why) });
  await started.catch((error) => Promise.reject(ends[0] ?? error)); // the event tells more than the rejection
  return { transport, messages, ends };
}
const call = (id: number, name: string, args: Json = {}): Message => ({
  jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args },
});

test('what we send reaches its stdin, what it writes to stdout reaches us', async () => {
  const { transport, messages } = await start({ command: process.execPath, args: [goodServer] });
  await transport.send({ jsonrpc: '2.0', id: 1, method: 'ping' });
  await until(() => messages.length > 0);
  assert.deepEqual(messages, [{ jsonrpc: '2.0', id: 1, result: {} }]);
});

test('fault 17: stderr is no message; its last lines explain the end', async () => {
  const { messages, ends } = await start(habit('dies-at-once'));
  await until(() => ends.length > 0);
  assert.deepEqual(messages, []);
  assert.match(ends[0]!.message, /"demo".*exited with code 3.*\n {2}cannot find my configuration/);
});

test('fault 16: args, cwd and env arrive', async () => {
  const cwd = realpathSync(folder());
  const { command, args } = habit('good', 'two words; $HOME "quoted"');
  const { transport, messages } = await start({ command, args, cwd, env: { COLOUR: 'blue' } });
  await transport.send(call(1, 'where'));
  await until(() => messages.length > 0);
  const seen = JSON.parse(messages[0].result.content[0].text);
  assert.deepEqual(seen.argv, ['good', 'two words; $HOME "quoted"']);
  assert.equal(seen.cwd, cwd);
  assert.equal(seen.env.COLOUR, 'blue');
});

test('fault 16, A18: of our environment the server gets a safe list, and no key', async () => {
  Object.assign(process.env, { ANTHROPIC_API_KEY: 'k1', AWS_SECRET: 'k2', DATABASE_URL: 'k3', HARMLESS: 'h', LC_TEST: '() { :; }' });
  later(() => ['ANTHROPIC_API_KEY', 'AWS_SECRET', 'DATABASE_URL', 'HARMLESS', 'LC_TEST'].forEach((name) => delete process.env[name]));
  const { transport, messages } = await start({ ...habit(), env: { GIVEN: 'yes' } });
  await transport.send(call(1, 'where'));
  await until(() => messages.length > 0);
  const names = Object.keys(JSON.parse(messages[0].result.content[0].text).env);
  const safe = ['HOME', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'USER', 'LANG', 'TMPDIR', 'TZ', 'GIVEN'];
  assert.deepEqual(names.filter((name) => !safe.includes(name) && !/^LC_/.test(name)), []);
  assert.ok(names.includes('PATH') && names.includes('GIVEN'));
  assert.ok(!names.includes('LC_TEST'), 'a shell function in a value is not passed on');
});

test('A8: no shell reads the configuration', async () => {
  const marker = join(folder(), 'marker');
  const error = await rejection(start({ command: `echo hi; touch "${marker}"` }));
  assert.equal(error.kind, 'start');
  const { command, args } = habit('good', `$(touch "${marker}")`);
  const { transport, messages } = await start({ command, args });
  await transport.send(call(1, 'where'));
  await until(() => messages.length > 0);
  assert.equal(JSON.parse(messages[0].result.content[0].text).argv[1], `$(touch "${marker}")`);
  assert.ok(!existsSync(marker));
});

test('fault 22, A13: wrong types in a configuration are named, and nothing starts', () => {
  const wrong: [Json, RegExp][] = [
    [{}, /"command"/],
    [{ command: '' }, /"command"/],
    [{ command: ['node', 'x'] }, /"command"/],
    [{ command: 'no\0de' }, /"command"/],
    [{ command: 'node', args: {} }, /"args"/],
    [{ command: 'node', args: '--version' }, /"args"/],
    [{ command: 'node', args: [1] }, /"args"/],
    [{ command: 'node', args: ['a\0b'] }, /"args"/],
    [{ command: 'node', env: { PORT: 8080 } }, /"env"/],
    [{ command: 'node', env: null }, /"env"/],
    [{ command: 'node', env: ['A=1'] }, /"env"/],
    [{ command: 'node', env: { 'A\0B': '1' } }, /"env"/],
    [{ command: 'node', cwd: 7 }, /"cwd"/],
    [{ url: 'https://example.org' }, /"type"/],
  ];
  for (const [config, named] of wrong) {
    assert.throws(
      () => new StdioTransport('demo', config, MiB),
      (error: any) => error instanceof McpError && error.kind === 'config' && named.test(error.message),
      `${JSON.stringify(config)} should be refused by naming ${named}`,
    );
  }
});

test('a file that is not executable, and a folder that is not there, are named', async () => {
  const file = join(folder(), 'not-executable');
  writeFileSync(file, 'echo');
  chmodSync(file, 0o644);
  assert.match((await rejection(start({ command: file }))).message, /not-executable.*is not executable, or not open to us/);
  assert.match((await rejection(start({ ...habit(), cwd: '/no/such/folder' }))).message, /"cwd" \/no\/such\/folder/);
  const script = join(folder(), 'script');
  writeFileSync(script, '#!/no/such/interpreter\n', { mode: 0o755 });
  assert.match((await rejection(start({ command: script }))).message, /the interpreter that its first line names is missing/);
});

/** Counts the writes of messages to pipes while `work` runs. */
async function countWrites(work: () => Promise<void>): Promise<number> {
  const { write } = Socket.prototype;
  let writes = 0;
  Socket.prototype.write = function (this: Socket, ...args: any[]) {
    if (String(args[0]).includes('jsonrpc')) writes++;
    return (write as any).apply(this, args);
  } as typeof write;
  await work().finally(() => (Socket.prototype.write = write));
  return writes;
}

test('messages of one tick become one write', async () => {
  const { transport, messages } = await start(habit());
  const writes = await countWrites(async () => {
    await Promise.all(Array.from({ length: 100 }, (_, id) => transport.send({ jsonrpc: '2.0', id, method: 'ping' })));
  });
  await until(() => messages.length === 100);
  assert.equal(writes, 1);
});

test('a server that does not read is not written to: one write waits, the rest stays with us', async () => {
  const { transport } = await start(habit('deaf'));
  await transport.send({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
  await pause(300); // until it has stopped reading
  let left = 0;
  const writes = await countWrites(async () => {
    for (let id = 0; id < 50; id++) {
      void transport.send(call(id, 'echo', { filler: 'x'.repeat(MiB) })).then(() => left++);
      await pause(1);
    }
  });
  assert.ok(writes <= 2, `one write should wait for the reader, but there were ${writes}`);
  assert.equal(left, 0, 'no send may resolve before its bytes have left');
});

test('much at once goes out in pieces that a string can hold', async () => {
  const { transport, messages } = await start(habit());
  const writes = await countWrites(async () => {
    const filler = 'x'.repeat(100_000);
    await Promise.all(Array.from({ length: 100 }, (_, id) => transport.send(call(id, 'echo', { filler }))));
  });
  assert.ok(writes >= 9 && writes <= 11, `${writes} writes for 10 MB`);
  await until(() => messages.length === 100);
});

test('a send resolves when its own bytes have left, though others keep the pipe busy', async () => {
  // Reads 64 KB every few milliseconds: the pipe is always full.
  const server = `process.stdin.on('data', () => { process.stdin.pause(); setTimeout(() => process.stdin.resume(), 2); })`;
  const { transport } = await start({ command: process.execPath, args: ['-e', server] });
  const filler = 'x'.repeat(100_000);
  let id = 0;
  const busy = setInterval(() => void transport.send(call(id++, 'echo', { filler })), 1); // faster than it reads
  later(() => clearInterval(busy));
  await pause(200);
  await transport.send({ jsonrpc: '2.0', method: 'notifications/hello' });
});
