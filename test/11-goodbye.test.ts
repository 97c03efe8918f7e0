// Chapter 11: end stdin, SIGTERM, SIGKILL, the whole group, no orphans.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { allGone, cleanUp, folder, habit, isRunning, open, pidOf, pidsIn, run, until } from './helpers.ts';

afterEach(cleanUp);

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
  const { connection } = await open({ command: process.execPath, args: ['-e', server, file] }, { handshake: async () => ({ protocolVersion: 'none' }) });
  void connection.notify('notifications/last-words');
  await connection.close();
  assert.equal(readFileSync(file, 'utf8'), '{"jsonrpc":"2.0","method":"notifications/last-words"}\n');
});

for (const ending of ['normal-exit', 'exception', 'rejection', 'while-connecting'])
  test(`fault 24: no orphan after ${ending}`, async () => {
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
  child.kill('SIGINT');
  await until(() => seen.output.includes('going on'));
  assert.ok(pidsIn(file).every(isRunning));
  child.kill('SIGTERM');
  assert.equal((await ended).signal, 'SIGTERM');
  await allGone(file);
});

test('a plan that was made with `once`, before us, is carried out to its end', async () => {
  const file = join(folder(), 'pids');
  const { child, seen, ended } = run('with-server.ts', ['own-plan-once', file]);
  await until(() => seen.output.includes('ready'));
  child.kill('SIGINT');
  const { code, output } = await ended;
  assert.equal(code, 7, output);
  assert.match(output, /saved/);
  await allGone(file);
});

test('beside a library that acts only when it is alone, SIGINT still ends the program, and its server sees its stdin end', async () => {
  const file = join(folder(), 'left');
  const { child, seen, ended } = run('with-server.ts', ['beside-a-library', file]);
  await until(() => seen.output.includes('ready'));
  child.kill('SIGINT');
  assert.equal((await ended).signal, 'SIGINT');
  await until(() => existsSync(file));
});

test('after SIGKILL of us a server sees its stdin end', async () => {
  const file = join(folder(), 'left');
  const { child, seen, ended } = run('with-server.ts', ['polite', file]);
  await until(() => seen.output.includes('ready'));
  child.kill('SIGKILL');
  assert.equal((await ended).signal, 'SIGKILL');
  await until(() => existsSync(file) && readFileSync(file, 'utf8') === 'left');
});
