// Tasks in a store that two servers share, here within one process. With a real database, a real kill -9 and nginx:
// test/real/lasting-tasks.test.ts.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { MemoryTasks, type TaskRecord } from '../chapters/29-a-server/task-store.ts';
import { McpServer } from '../chapters/29-a-server/server.ts';
import type { ServerTool } from '../chapters/29-a-server/protocol/server-rows.ts';
import type { Json } from '../mcp.ts';
import { cleanUp, later } from './help/basics.ts';

afterEach(cleanUp);

const META = 'io.modelcontextprotocol/';

/** What is told to be an orphan can be claimed once. */
class SharedTasks extends MemoryTasks {
  orphans: string[] = [];

  override async claim(): Promise<any> {
    const taskId = this.orphans.pop();
    return taskId && this.get(taskId);
  }
}

const never = new Promise<string>(() => {});

function worker(tasks: SharedTasks, work: () => Promise<string>, annotations: Json): McpServer {
  const tool: ServerTool = {
    name: 'work',
    description: '',
    inputSchema: { type: 'object' },
    annotations,
    run: (_, call) => call.inBackground(work),
  };
  const server = new McpServer({ name: 's', version: '1', tools: [tool], tasks });
  later(() => server.end());
  return server;
}

function request(server: McpServer, method: string, params: Json): Promise<any> {
  const _meta = {
    [`${META}protocolVersion`]: '2026-07-28',
    [`${META}clientCapabilities`]: { extensions: { [`${META}tasks`]: {} } },
  };
  const exchange = { id: 1, signal: new AbortController().signal, tell: () => {} };
  const message = { jsonrpc: '2.0' as const, id: 1, method, params: { ...params, _meta } };
  return server.answer(message, exchange);
}

async function ended(server: McpServer, taskId: string): Promise<any> {
  for (;;) {
    const task = await request(server, 'tasks/get', { taskId });
    if (task.status !== 'working') return task;
    await new Promise(setImmediate);
  }
}

async function orphaned(annotations: Json) {
  const tasks = new SharedTasks();
  const first = worker(tasks, () => never, annotations);
  const second = worker(tasks, async () => 'by the second', annotations);
  const { taskId } = await request(first, 'tools/call', { name: 'work', arguments: {} });
  assert.equal((await request(second, 'tasks/get', { taskId })).status, 'working');
  first.end();
  tasks.orphans.push(taskId);
  return ended(second, taskId);
}

test('a task whose process is gone is done again if its tool says that this does no harm, else it has failed', async () => {
  const again = await orphaned({ idempotentHint: true });
  assert.deepEqual([again.status, again.result.content[0].text], ['completed', 'by the second']);
  assert.equal((await orphaned({ readOnlyHint: true })).status, 'completed');
  for (const annotations of [{}, { idempotentHint: 'yes' }, { destructiveHint: false }]) {
    const failed = await orphaned(annotations);
    assert.deepEqual(
      [failed.status, failed.error.message],
      ['failed', 'The process that worked on this task has ended'],
    );
  }
});

test('a server that ends leaves its tasks as they are; a store that is away is told, not thrown', async () => {
  const tasks = new SharedTasks();
  const first = worker(tasks, () => never, {});
  const { taskId } = await request(first, 'tools/call', { name: 'work', arguments: {} });
  first.end();
  await new Promise(setImmediate);
  assert.equal((await tasks.get(taskId))?.status, 'working');

  const told: string[] = [];
  class Away extends MemoryTasks {
    override async update(): Promise<void> {
      throw new Error('no database');
    }
  }
  const tool: ServerTool = {
    name: 'work',
    description: '',
    inputSchema: { type: 'object' },
    run: (_, call) => call.inBackground(async () => 'done'),
  };
  const onError = (what: string, error: unknown) => void told.push(`${what}: ${error}`);
  const second = new McpServer({
    name: 's',
    version: '1',
    tools: [tool],
    tasks: new Away(),
    onError,
  });
  later(() => second.end());
  await request(second, 'tools/call', { name: 'work', arguments: {} });
  while (told.length === 0) await new Promise(setImmediate);
  assert.deepEqual(told, ['tasks: Error: no database']);
});

test('J3 a task that is over keeps nothing of what a client has sent, which may be megabytes', async () => {
  const tasks = new SharedTasks();
  const server = worker(tasks, async () => 'done', {});
  const text = 'x'.repeat(1_000_000);
  const { taskId } = await request(server, 'tools/call', { name: 'work', arguments: { text } });
  assert.equal((await ended(server, taskId)).status, 'completed');
  assert.ok(JSON.stringify(await tasks.get(taskId)).length < 10_000);
  const slow = worker(tasks, () => never, {});
  const more = await request(slow, 'tools/call', { name: 'work', arguments: { text } });
  await request(slow, 'tasks/cancel', { taskId: more.taskId });
  assert.ok(JSON.stringify(await tasks.get(more.taskId)).length < 10_000);
});

test('the first end counts: nothing changes a task that is over', async () => {
  const tasks = new MemoryTasks();
  const seen: string[] = [];
  const time = new Date().toISOString();
  const task: TaskRecord = {
    taskId: 'a',
    status: 'working',
    createdAt: time,
    lastUpdatedAt: time,
    request: {},
    capabilities: {},
    questions: {},
    answers: {},
    outcome: {},
  };
  await tasks.put(task, (id) => seen.push(id));
  await tasks.cancel('a');
  await tasks.update('a', () => ({ status: 'completed' }));
  await tasks.update('made-up', () => assert.fail());
  assert.deepEqual([(await tasks.get('a'))?.status, seen], ['cancelled', ['a']]);
});
