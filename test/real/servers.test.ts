// Real third-party servers from npm, at pinned versions: connect, list, call, close.
// `npm run test:real` installs them into .cache/ when they are not there; that needs the registry, once.

import assert from 'node:assert/strict';
import { readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import type { ServerStatus } from '../../mcp.ts';
import { cleanUp, folder, isRunning, open } from '../help/basics.ts';
import { manage } from '../help/manager.ts';
import { server } from '../help/third-party.ts';

afterEach(cleanUp);

/** Its process is gone when close() returns. */
async function closes(connection: Awaited<ReturnType<typeof open>>['connection']): Promise<void> {
  const { pid } = (connection as any).transport.child;
  assert.ok(isRunning(pid));
  await connection.close();
  assert.ok(!isRunning(pid));
}

test('server-everything: tools of every kind, progress, all block types', async () => {
  const { connection, wire, warnings } = await open(server('everything'));
  const tools = await connection.listTools();
  assert.ok(tools.length >= 8, `${tools.map(({ name }) => name)}`);
  assert.equal(
    (await connection.callTool('echo', { message: 'grüße \u2028 🦊' })).text,
    'Echo: grüße \u2028 🦊',
  );
  assert.match((await connection.callTool('get-sum', { a: 2, b: 40 })).text, /42/);
  const image = await connection.callTool('get-tiny-image', {});
  assert.match(image.text, /\[image: image\/png, \d+ bytes\]/);
  const seen: unknown[] = [];
  const call = { duration: 1, steps: 4 };
  await connection.callTool('trigger-long-running-operation', call, {
    onProgress: ({ progress }) => seen.push(progress),
  });
  assert.deepEqual(seen, [1, 2, 3, 4]);
  const weather = await connection.callTool('get-structured-content', { location: 'Chicago' });
  assert.equal(typeof (weather.structuredContent as any).temperature, 'number');
  assert.ok(
    (await connection.callTool('echo', {})).isError,
    "bad arguments are the tool's failure",
  );
  assert.deepEqual(warnings, []);
  assert.ok(wire.length > 10);
  await closes(connection);
});

test('server-filesystem: writes and reads in its folder, and refuses to leave it', async () => {
  const root = realpathSync(folder());
  const { connection } = await open(server('filesystem', root));
  assert.ok((await connection.listTools()).some(({ name }) => name === 'write_file'));
  await connection.callTool('write_file', { path: join(root, 'a.txt'), content: 'hello\n' });
  assert.equal(readFileSync(join(root, 'a.txt'), 'utf8'), 'hello\n');
  writeFileSync(join(root, 'b.txt'), 'from outside');
  assert.equal(
    (await connection.callTool('read_text_file', { path: join(root, 'b.txt') })).text,
    'from outside',
  );
  assert.equal(
    (await connection.callTool('read_text_file', { path: '/etc/passwd' })).isError,
    true,
  );
  await closes(connection);
});

test('server-memory: keeps what it is told, in the file that its environment names', async () => {
  const file = join(folder(), 'memory.jsonl');
  const { connection } = await open({ ...server('memory'), env: { MEMORY_FILE_PATH: file } });
  const entities = [{ name: 'Ada', entityType: 'person', observations: ['writes programs'] }];
  await connection.callTool('create_entities', { entities });
  const graph = await connection.callTool('read_graph');
  assert.match(graph.text, /writes programs/);
  assert.match(readFileSync(file, 'utf8'), /Ada/);
  await closes(connection);
});

test('server-sequential-thinking: a call with many arguments', async () => {
  const { connection } = await open(server('sequential-thinking'));
  const [tool] = await connection.listTools();
  const thought = {
    thought: 'First.',
    nextThoughtNeeded: true,
    thoughtNumber: 1,
    totalThoughts: 2,
  };
  assert.match((await connection.callTool(tool!.name, thought)).text, /"thoughtNumber": 1/);
  await closes(connection);
});

test('all four side by side through the manager', async () => {
  const servers = {
    everything: server('everything'),
    files: server('filesystem', folder()),
    memory: { ...server('memory'), env: { MEMORY_FILE_PATH: join(folder(), 'memory.jsonl') } },
    thinking: server('sequential-thinking'),
  };
  const { manager } = await manage(servers);
  const states = manager
    .status()
    .map(({ name, state, reason }: ServerStatus) => [name, state, reason]);
  assert.deepEqual(
    states,
    Object.keys(servers).map((name) => [name, 'connected', undefined]),
  );
  assert.match((await manager.callTool('mcp__everything__get-sum', { a: 1, b: 2 })).text, /3/);
  assert.equal(
    new Set(manager.getToolDefinitions().map(({ name }) => name)).size,
    manager.getToolDefinitions().length,
  );
  await manager.disconnectAll();
});
