// Chapter 24, Tasks: at a terminal. A call that takes long runs on, the model hears of it later, and a new program takes it up.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { cleanUp, folder, root } from './help/basics.ts';
import { call, say, startModelServer } from './help/model-server.ts';
import { place, run, Terminal, userServers } from './help/terminal.ts';

afterEach(cleanUp);

const tasker = (...args: string[]) => ({
  command: process.execPath,
  args: [join(root, 'fixtures', 'tasker.mjs'), 'stdio', ...args],
});
const begin = (script: object[], pollIntervalMs = 60_000) =>
  call('mcp__shop__run', { script, seed: { pollIntervalMs } });
const done = (text: string) => ({
  status: 'completed',
  result: { content: [{ type: 'text', text }] },
});
const rules = ['--allow', 'mcp__shop__*', '--no-color'];

test('a call runs on as a task, /tasks shows and cancels it, --continue takes it up again and tells the model', async () => {
  const where = place({}, userServers({ shop: tasker(join(folder(), 'tasks.json')) }));
  const ask = {
    method: 'elicitation/create',
    params: { message: 'Shall it go on?', requestedSchema: { type: 'object', properties: {} } },
  };
  const model = await startModelServer([
    begin([{ status: 'working' }]),
    say('one runs'),
    begin([{ status: 'input_required', inputRequests: { key: ask } }, done('two survived')]),
    say('two runs'),
    say('hello again'),
    say('I heard'),
  ]);
  const env = { ANTHROPIC_API_KEY: 'a-key-for-tests', ANTHROPIC_BASE_URL: model.url };
  const last = (n: number) => JSON.stringify(model.requests[n]!.body.messages.at(-1));
  const first = new Terminal(where, rules, env);
  await first.ready();
  first.enter('/tasks');
  await first.see('no call runs in the background');
  await first.ready();
  first.enter('one');
  await first.see('one runs');
  assert.match(last(1), /This call runs on as task 1\. There is no result yet/);
  await first.ready();
  first.enter('two');
  await first.see('two runs');
  await first.ready();
  first.enter('/tasks');
  await first.see(/^1  "run" of "shop", \d+ s ago, working$/);
  await first.see(/^2  "run" of "shop", \d+ s ago, working$/);
  await first.ready();
  first.enter('/tasks cancel 1');
  await first.see('task 1 is cancelled');
  await first.ready();
  first.enter('/exit');
  assert.equal(await first.ended(), 0);

  const second = new Terminal(where, ['--continue', ...rules], env);
  await second.ready();
  second.enter('three');
  await second.see('  │ Shall it go on?');
  await second.see(/^Send it\?.*: *$/);
  second.enter('y');
  await second.see('task 2, "run" of "shop", is done; the model hears of it with your next prompt');
  await second.ready();
  second.enter('four');
  await second.see('I heard');
  assert.match(
    last(5),
    /Task 2, your call of \\"run\\", is done\. Its result, as data:\\n> two survived/,
  );
  await second.ready();
  second.enter('/tasks');
  await second.see('no call runs in the background');
  await second.ready();
  second.enter('/exit');
  assert.equal(await second.ended(), 0);
  assert.deepEqual(model.problems, []);
});

test('a script has no later prompt, so its call waits for the task', async () => {
  const model = await startModelServer([
    begin([{ status: 'working' }, done('at last')], 10),
    say('It said: at last.'),
  ]);
  const env = { ANTHROPIC_API_KEY: 'a-key-for-tests', ANTHROPIC_BASE_URL: model.url };
  const ended = await run(place({}, userServers({ shop: tasker() })), ['-p', 'one', ...rules], {
    env,
  });
  assert.deepEqual([ended.code, ended.out], [0, 'It said: at last.\n']);
  assert.match(JSON.stringify(model.requests[1]!.body.messages.at(-1)), /at last/);
});
