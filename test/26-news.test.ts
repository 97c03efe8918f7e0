// Chapter 26, in the agent: tools that come and go in mid-conversation are told to the model and to the user.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { cleanUp, folder, habit, until } from './help/basics.ts';
import { yes } from './help/agent-alone.ts';
import { say, startModelServer } from './help/model-server.ts';
import { prepareTable } from './help/agent-with-tools.ts';
import { place, run, Terminal, userServers } from './help/terminal.ts';

afterEach(cleanUp);

test('the model is told of a new tool, and of one that is gone, with the next request; the user by a note', async () => {
  const { agent, model, mcp, events } = prepareTable({
    gate: yes,
    servers: { s: habit('grows-a-tool') },
    script: [
      { calls: [{ name: 'mcp__s__grow', args: {} }] },
      async () => {
        await until(() => mcp.isMcpTool('mcp__s__new'));
        return { calls: [{ name: 'mcp__s__echo', args: {} }] };
      },
      async () => {
        await mcp.disable('s');
        return { calls: [{ name: 'glob', args: { pattern: '*' } }] };
      },
      'Done.',
    ],
  });
  await agent.chat('grow');
  const told = model.requests.map(
    ({ system }) => /The tools have changed.*/.exec(system)?.[0] ?? '',
  );
  assert.deepEqual(told.slice(0, 2), ['', '']); // nothing has changed yet when these were asked
  assert.match(told[2]!, /new: mcp__s__new\.$/);
  assert.match(told[3]!, /new: mcp__s__new, then gone: .*mcp__s__grow.*mcp__s__new/); // all of it
  const notes = events.filter((event) => event.type === 'note').map(({ text }) => text);
  assert.ok(notes.includes('the tools have changed; new: mcp__s__new'), `${notes}`);
});

test('a new conversation begins without the news of the old one', async () => {
  const { agent, model, mcp, of } = prepareTable({
    servers: { s: habit('grows-a-tool') },
    script: ['1', '2', '3', '4'],
  });
  await agent.chat('one');
  await mcp.callTool('mcp__s__grow');
  await until(() => mcp.isMcpTool('mcp__s__new'));
  await agent.chat('two');
  agent.startOver();
  await agent.chat('three');
  agent.startOver();
  await mcp.disable('s'); // it has changed, but not in the course of a conversation
  await agent.chat('four');
  const told = model.requests.map(({ system }) => system.includes('The tools have changed'));
  assert.deepEqual(told, [false, true, false, false]);
  assert.equal(of('note').length, 1);
});

test('/clear begins such a conversation', async () => {
  const model = await startModelServer([say('one'), say('two'), say('three')]);
  const env = { ANTHROPIC_API_KEY: 'a-key-for-tests', ANTHROPIC_BASE_URL: model.url };
  const terminal = new Terminal(place({}, userServers({ s: habit() })), [], env);
  await terminal.ready();
  terminal.enter('1');
  await terminal.see(/^one$/);
  await terminal.ready();
  terminal.enter('/mcp disable s');
  await terminal.see(/^s: disabled$/);
  terminal.enter('2');
  await terminal.see(/^two$/);
  await terminal.ready();
  terminal.enter('/clear');
  await terminal.see('a new conversation');
  terminal.enter('3');
  await terminal.see(/^three$/);
  const told = model.requests.map(({ body }) =>
    JSON.stringify(body.system).includes('The tools have changed'),
  );
  assert.deepEqual([told, model.requests[2]!.body.messages.length], [[false, true, false], 1]);
  assert.deepEqual(model.problems, []);
});

test('the trace tells how each server was opened, and of every change of its state', async () => {
  const where = place({}, userServers({ good: habit(), dead: habit('dies-at-once') }));
  const trace = join(folder(), 'trace.jsonl');
  await run(where, ['-p', 'hello', '--trace', trace]);
  const records = readFileSync(trace, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
    .filter(({ type }) => type === 'server');
  const good = records.find(({ server, state }) => server === 'good' && state === 'connected');
  assert.deepEqual(
    [good.protocolVersion, good.because],
    ['2025-11-25', 'it does not know server/discover'],
  );
  assert.match(records.findLast(({ server }) => server === 'dead').reason, /exited with code 3/);
});
