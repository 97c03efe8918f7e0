// Chapter 1: a server is a child process; stdin and stdout are the wire, stderr is not.

import assert from 'node:assert/strict';
import { existsSync, realpathSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { cleanUp, folder, goodServer, habit, later, pause, rejection, start, toolCall, until } from './helpers.ts';
import { safeEnv } from './subject.ts';

afterEach(cleanUp);

const MiB = 2 ** 20;

test('what we send reaches its stdin, what it writes to stdout reaches us', async () => {
  const { transport, messages } = await start({ command: process.execPath, args: [goodServer] });
  await transport.send({ jsonrpc: '2.0', id: 1, method: 'ping' });
  await until(() => messages.length > 0);
  assert.deepEqual(messages, [{ jsonrpc: '2.0', id: 1, result: {} }]);
});

test('what it writes to stderr is no message, and is read, so that it never blocks', async () => {
  const { transport, messages } = await start(habit('floods-stderr', '4'));
  await transport.send({ jsonrpc: '2.0', id: 1, method: 'ping' });
  await until(() => messages.length > 0);
  assert.deepEqual(messages, [{ jsonrpc: '2.0', id: 1, result: {} }]);
});

test('fault 16: args, cwd and env arrive', async () => {
  const cwd = realpathSync(folder());
  const { command, args } = habit('good', 'two words; $HOME "quoted"');
  const { call } = await start({ command, args, cwd, env: { COLOUR: 'blue' } });
  const seen = JSON.parse((await call('where')).content[0].text);
  assert.deepEqual(seen.argv, ['good', 'two words; $HOME "quoted"']);
  assert.equal(seen.cwd, cwd);
  assert.equal(seen.env.COLOUR, 'blue');
});

test('fault 16, A18: of our environment the server gets a safe list, and no key', async () => {
  Object.assign(process.env, { ANTHROPIC_API_KEY: 'k1', AWS_SECRET: 'k2', DATABASE_URL: 'k3', HARMLESS: 'h', LC_TEST: '() { :; }' });
  later(() => ['ANTHROPIC_API_KEY', 'AWS_SECRET', 'DATABASE_URL', 'HARMLESS', 'LC_TEST'].forEach((name) => delete process.env[name]));
  const { call } = await start({ ...habit(), env: { GIVEN: 'yes' } });
  const names = Object.keys(JSON.parse((await call('where')).content[0].text).env);
  const safe = ['HOME', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'USER', 'LANG', 'TMPDIR', 'TZ', 'GIVEN', 'MCP_BY_HAND_CHILD', ...NETWORK];
  assert.deepEqual(names.filter((name) => !safe.includes(name.toUpperCase()) && !/^LC_/.test(name)), []);
  assert.ok(names.includes('PATH') && names.includes('GIVEN'));
  assert.ok(!names.includes('LC_TEST'), 'a shell function in a value is not passed on');
});

const NETWORK = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY', 'NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR'];

test('a server gets what it needs to reach the network from inside a company, in either case of the proxies', async () => {
  const names = [...NETWORK, 'http_proxy', 'https_proxy', 'all_proxy', 'no_proxy'];
  const before = Object.fromEntries(names.map((name) => [name, process.env[name]]));
  later(() => names.forEach((name) => (before[name] === undefined ? delete process.env[name] : (process.env[name] = before[name]))));
  for (const name of names) process.env[name] = name.startsWith('NODE') || name.startsWith('SSL') ? '/dev/null' : `for ${name}`;
  const { call } = await start(habit());
  const { env } = JSON.parse((await call('where')).content[0].text);
  assert.deepEqual(names.filter((name) => env[name] === undefined), []);
  assert.ok(!Object.keys(safeEnv()).some((name) => names.includes(name)), 'and no other child does');
});

test('A8: no shell reads the configuration', async () => {
  const marker = join(folder(), 'marker');
  await rejection(start({ command: `echo hi; touch "${marker}"` }));
  const { command, args } = habit('good', `$(touch "${marker}")`);
  const { call } = await start({ command, args });
  assert.equal(JSON.parse((await call('where')).content[0].text).argv[1], `$(touch "${marker}")`);
  assert.ok(!existsSync(marker));
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
  const server = `process.stdin.once('data', () => process.stdin.pause()); setTimeout(() => {}, 20_000);`;
  const { transport } = await start({ command: process.execPath, args: ['-e', server] });
  await transport.send({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
  await pause(300); // until it has stopped reading
  let left = 0;
  const writes = await countWrites(async () => {
    for (let id = 0; id < 50; id++) {
      void transport.send(toolCall(id, 'echo', { filler: 'x'.repeat(MiB) })).then(() => left++);
      await pause(1);
    }
  });
  assert.ok(writes <= 2, `one write should wait for the reader, but there were ${writes}`);
  assert.equal(left, 0, 'no send may resolve before its bytes have left');
});

test('much at once goes out in pieces that a string can hold', async () => {
  const { transport, messages } = await start(habit());
  const writes = await countWrites(async () => {
    const args = { filler: 'x'.repeat(100_000), result: {} };
    await Promise.all(Array.from({ length: 100 }, (_, id) => transport.send(toolCall(id, 'result', args))));
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
  const send = () => transport.send(toolCall(id++, 'echo', { filler })).catch(() => {}); // too much may wait by then
  const busy = setInterval(send, 1); // faster than it reads
  later(() => clearInterval(busy));
  await pause(200);
  await transport.send({ jsonrpc: '2.0', method: 'notifications/hello' });
});
