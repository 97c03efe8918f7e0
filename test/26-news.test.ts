// Chapter 26, in the agent: tools that come and go in mid-conversation are told to the model and to the user.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { cleanUp, folder, habit, until } from './helpers.ts';
import { yes } from './loop.ts';
import { prepareTable } from './table.ts';
import { place, run, userServers } from './terminal.ts';

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
  const told = model.requests.map(({ system }) => /The tools have changed.*/.exec(system)?.[0] ?? '');
  assert.deepEqual(told.slice(0, 2), ['', '']); // nothing has changed yet when these were asked
  assert.match(told[2]!, /new: mcp__s__new\.$/);
  assert.match(told[3]!, /gone: .*mcp__s__grow.*mcp__s__new/);
  const notes = events.filter((event) => event.type === 'note').map(({ text }) => text);
  assert.ok(notes.includes('the tools have changed; new: mcp__s__new'), `${notes}`);
});

test('the trace tells how each server was opened, and of every change of its state', async () => {
  const where = place({}, userServers({ good: habit(), dead: habit('dies-at-once') }));
  const trace = join(folder(), 'trace.jsonl');
  await run(where, ['-p', 'hello', '--trace', trace]);
  const records = readFileSync(trace, 'utf8').trim().split('\n').map((line) => JSON.parse(line)).filter(({ type }) => type === 'server');
  const good = records.find(({ server, state }) => server === 'good' && state === 'connected');
  assert.deepEqual([good.protocolVersion, good.because], ['2025-11-25', 'it does not know server/discover']);
  assert.match(records.findLast(({ server }) => server === 'dead').reason, /exited with code 3/);
});
