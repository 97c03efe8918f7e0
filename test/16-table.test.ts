// Chapter 16: one table. The tools of servers are rows like the built-in ones: offered, called and stopped the same way.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import type { Turn } from '../agent.ts';
import {
  allGone,
  cleanUp,
  folder,
  goodServer,
  habit,
  isRunning,
  pidsIn,
  run,
  until,
} from './help/basics.ts';
import { assertPaired, calls, prepareLoop, row, saying, yes } from './help/agent-alone.ts';
import { prepare } from './help/manager.ts';
import { prepareTable } from './help/agent-with-tools.ts';

afterEach(cleanUp);

const good = { command: process.execPath, args: [goodServer] };

// ─── Servers ───

test('servers start with the first chat, and once, though two chats begin at the same time', async () => {
  const marker = join(folder(), 'marker');
  const { agent } = prepareLoop({
    mcp: prepare({ s: habit('canary', marker) }).manager,
    script: ['a', 'b', 'c'],
  });
  assert.ok(!existsSync(marker));
  await Promise.all([agent.chat('1'), agent.chat('2')]);
  await agent.chat('3');
  assert.equal(readFileSync(marker, 'utf8'), 'started\n');
});

test('a server that fails is a note, and the chat goes on', async () => {
  const { agent, of } = prepareLoop({
    mcp: prepare({ bad: habit('dies-at-once', 'hat') }).manager,
    script: ['one', 'two'],
  });
  assert.equal((await agent.chat('1')).ending, 'done');
  assert.equal((await agent.chat('2')).ending, 'done');
  assert.equal(of('note').length, 1, 'said once');
  assert.match(of('note')[0]!.text, /MCP server "bad" .*cannot find my hat/s);
});

test('a configuration that cannot be loaded at all is a note', async () => {
  const load = () => {
    throw new Error('no such disk');
  };
  const { agent, of } = prepareLoop({
    mcp: prepare({}, undefined, { load }).manager,
    script: ['hi'],
  });
  assert.equal((await agent.chat('go')).ending, 'done');
  assert.deepEqual(
    of('note').map(({ text }) => text),
    ['MCP: no such disk'],
  );
});

test('an abort before the chat starts nothing', async () => {
  const marker = join(folder(), 'marker');
  const { manager: mcp } = prepare({ s: habit('canary', marker) });
  const { agent, model, events } = prepareLoop({ mcp, script: ['hi'] });
  assert.equal((await agent.chat('go', AbortSignal.abort())).ending, 'aborted');
  assert.deepEqual(mcp.status(), []);
  assert.equal(model.requests.length, 0);
  assert.deepEqual(events.at(-1), { type: 'done', ending: 'aborted', text: '', turns: 0 });
  assert.ok(!existsSync(marker));
  assert.equal((await agent.chat('go')).ending, 'done');
  assert.ok(existsSync(marker));
});

test('an abort is heard while servers start', async () => {
  const abort = new AbortController();
  const { agent } = prepareLoop({ mcp: prepare({ s: habit('mute') }).manager, script: ['never'] });
  setTimeout(() => abort.abort(), 100);
  assert.equal((await agent.chat('go', abort.signal)).ending, 'aborted');
});

// ─── The rows ───

test('the model gets the built-in tools, then those of the servers; the system prompt stays short', async () => {
  const { agent, model, cwd } = prepareTable({ script: ['hi'], servers: { good } });
  await agent.chat('hello');
  const { system, tools } = model.requests[0]!;
  assert.deepEqual(
    tools.map(({ name }) => name),
    ['read', 'write', 'edit', 'grep', 'glob', 'bash', 'mcp__good__add', 'mcp__good__greet'],
  );
  assert.ok(
    tools.every(
      ({ inputSchema, description }) => inputSchema.type === 'object' && description !== '',
    ),
  );
  assert.ok(system.length < 1500, `${system.length}`);
  assert.match(system.split('\n').at(-1)!, new RegExp(`^The folder is "${cwd}"\\. Today is`));
});

test('the table follows tools/list_changed: the next request to the model has the new tool', async () => {
  const { agent, model, mcp } = prepareTable({
    gate: yes,
    servers: { s: habit('grows-a-tool') },
    script: [
      { calls: [{ name: 'mcp__s__grow', args: {} }] },
      async () => {
        await until(() => mcp.isMcpTool('mcp__s__new'));
        return { calls: [{ name: 'bash', args: { command: 'true' } }] };
      },
      ...calls(['mcp__s__new', {}]),
    ],
  });
  await agent.chat('grow');
  const names = model.requests.map(({ tools }) => tools.some(({ name }) => name === 'mcp__s__new'));
  assert.deepEqual([names[0], names[2]], [false, true]);
  const last = agent.turns.findLast((turn) => turn.role === 'tools')!;
  assert.deepEqual(last.results[0]!.blocks, [{ type: 'text', text: 'I am new' }]);
});

test('a tool that is switched off is not in the table', async () => {
  const { agent, model, outcomes } = prepareTable({
    servers: { good },
    switchedOff: () => [{ server: 'good', tool: 'add' }],
    script: calls(['mcp__good__add', { a: 1, b: 2 }]),
  });
  await agent.chat('go');
  assert.deepEqual(
    model.requests[0]!.tools.map(({ name }) => name).filter((name) => name.startsWith('mcp')),
    ['mcp__good__greet'],
  );
  assert.deepEqual(outcomes(), ['unknown']);
});

test('what is switched off is looked up once for an answer, and not for each of 200 tools', async () => {
  const tools = Array.from({ length: 200 }, (_, n) => ({
    name: `t${n}`,
    inputSchema: { type: 'object' },
  }));
  let looks = 0;
  const { agent, model } = prepareTable({
    servers: { s: habit('tools', JSON.stringify(tools)) },
    switchedOff: () => (
      looks++, [{ server: 's', tool: 't7' }, { server: 's' }, { server: 'other', tool: 't8' }]
    ),
    script: ['one', 'two'],
  });
  await agent.chat('1'); // it also connects, and looks then
  looks = 0;
  await agent.chat('2');
  const offered = model.requests[1]!.tools.filter(({ name }) => name.startsWith('mcp__s__t'));
  assert.deepEqual([looks, offered.length], [1, 199]);
});

test('a tool that nobody has: the result names the one that was meant', async () => {
  const { agent, results, outcomes } = prepareTable({
    tools: [row('fine', saying('fine'))],
    script: calls(['fnie', {}]),
  });
  await agent.chat('go');
  assert.deepEqual(outcomes(), ['unknown']);
  assert.match(results()[0]!.text, /no tool called "fnie"\. Did you mean fine\?/);
});

// ─── Calls ───

test('over the wire too: "2" reaches a server as 2', async () => {
  const { agent, results } = prepareTable({
    gate: yes,
    servers: { good },
    script: calls(['mcp__good__add', { a: '2', b: '40' }]),
  });
  await agent.chat('add');
  assert.deepEqual(
    results().map(({ text, isError }) => [text, isError]),
    [['42', false]],
  );
});

test('progress of a server becomes events of its call', async () => {
  const { agent, of } = prepareTable({
    gate: yes,
    servers: { s: habit() },
    script: calls(['mcp__s__work', { everyMs: 5, times: 3 }]),
  });
  await agent.chat('work');
  const [{ id } = { id: '' }] = of('tool_start');
  assert.deepEqual(
    of('tool_progress').map((event) => [event.id, event.progress.progress, event.progress.total]),
    [
      [id, 1, 3],
      [id, 2, 3],
      [id, 3, 3],
    ],
  );
});

test('calls of servers never run side by side, whatever the server says of them', async () => {
  const tools = [
    {
      name: 'sleep',
      description: 'x',
      inputSchema: { type: 'object' },
      annotations: { readOnlyHint: true },
    },
  ];
  const wire: string[] = [];
  const { agent, outcomes } = prepareTable({
    gate: yes,
    servers: { s: habit('tools', JSON.stringify(tools)) },
    script: calls(['mcp__s__sleep', { ms: 100 }], ['mcp__s__sleep', { ms: 1 }]),
    manager: {
      onWire: (direction, message: any) =>
        (message.method ?? message.result?.content) &&
        wire.push(`${direction} ${message.method ?? 'result'}`),
    },
  });
  await agent.chat('go');
  assert.deepEqual(outcomes(), ['worked', 'worked']);
  assert.deepEqual(wire.slice(-4), ['out tools/call', 'in result', 'out tools/call', 'in result']);
});

test('commands run one after the other, also beside a call that only reads', async () => {
  const command = 'echo begin >> log; sleep 0.2; echo end >> log';
  const { agent, file } = prepareTable({
    gate: yes,
    script: calls(['bash', { command }], ['bash', { command }], ['read', { path: 'log' }]),
  });
  await agent.chat('go');
  assert.equal(file('log'), 'begin\nend\nbegin\nend\n');
});

test('a tool that says it failed has failed; an error of the protocol too', async () => {
  const { agent, results } = prepareTable({
    gate: yes,
    servers: { s: habit() },
    script: calls(
      [
        'mcp__s__result',
        { result: { content: [{ type: 'text', text: 'it broke' }], isError: true } },
      ],
      ['mcp__s__result', { result: 'no object' }],
    ),
  });
  await agent.chat('go');
  assert.deepEqual(
    results().map(({ isError }) => isError),
    [true, true],
  );
  assert.equal(results()[0]!.text, 'it broke');
});

test('a server that dies in a call: the call has failed, with the reason, and the chat goes on', async () => {
  const { agent, results, outcomes } = prepareTable({
    gate: yes,
    servers: { s: habit() },
    script: calls(['mcp__s__exit', { code: 7 }], ['mcp__s__echo', {}]),
  });
  assert.equal((await agent.chat('go')).ending, 'done');
  assert.deepEqual(outcomes(), ['failed', 'failed']);
  assert.match(results()[0]!.text, /I was told to leave/);
});

test('a server that fails is a note, and the chat goes on with the others', async () => {
  const { agent, of, results } = prepareTable({
    gate: yes,
    servers: { bad: habit('dies-at-once', 'hat'), good },
    script: [...calls(['mcp__good__greet', { name: 'Ada' }]), 'hi'],
  });
  assert.equal((await agent.chat('greet')).ending, 'done');
  assert.equal((await agent.chat('again')).ending, 'done');
  assert.equal(of('note').length, 1, 'said once');
  assert.match(of('note')[0]!.text, /MCP server "bad" .*cannot find my hat/s);
  assert.equal(results()[0]!.text, 'Hello, Ada!');
});

// ─── Results ───

test('a tool that gives nothing has a result nevertheless', async () => {
  const empty = row('empty', async () => ({ blocks: [], isError: false }));
  const { agent, results, outcomes } = prepareTable({
    tools: [empty],
    gate: yes,
    script: calls(['empty', {}]),
  });
  await agent.chat('go');
  assert.deepEqual([outcomes(), results()[0]!.isError], [['worked'], false]);
  assertPaired(agent.turns);
});

test('a result that is too big goes to a file of ours, which the model can read', async () => {
  const { agent, results, resultsFolder } = prepareTable({
    gate: yes,
    servers: { s: habit() },
    script: [
      { calls: [{ name: 'mcp__s__big', args: { bytes: 300_000 } }] },
      ({ turns }) => {
        const text = JSON.stringify(turns.at(-1));
        return {
          calls: [
            {
              name: 'grep',
              args: { pattern: '^x', path: /the whole is in ([^,]*),/.exec(text)![1]! },
            },
          ],
        };
      },
      'done',
    ],
  });
  await agent.chat('go');
  const first = agent.turns[2] as Extract<Turn, { role: 'tools' }>;
  const { text } = first.results[0]!.blocks[0] as { text: string };
  assert.ok(text.length < 5000);
  const path = /the whole is in ([^,]*),/.exec(text)![1]!;
  assert.ok(path.startsWith(resultsFolder));
  assert.equal(readFileSync(path, 'utf8').length, 300_000);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(statSync(resultsFolder).mode & 0o777, 0o700);
  assert.match(results()[0]!.text, /:1:x/);
});

test('images of a tool reach the model as images', async () => {
  const png =
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  const { agent } = prepareTable({
    files: { 'a.png': Buffer.from(png, 'base64') },
    script: calls(['read', { path: 'a.png' }]),
  });
  await agent.chat('look');
  const turn = agent.turns.findLast((each) => each.role === 'tools')!;
  assert.deepEqual(turn.results[0]!.blocks, [{ type: 'image', mimeType: 'image/png', data: png }]);
});

test('nothing is printed, whatever happens, not even a warning of Node', async () => {
  const { code, output } = await run('quiet-agent.ts').ended;
  assert.deepEqual([output, code], ['', 0]);
});

// ─── Stop ───

test('an abort ends a running command with all its children', async () => {
  const pids = join(folder(), 'pids');
  const abort = new AbortController();
  const { agent, outcomes } = prepareTable({
    gate: yes,
    script: calls([
      'bash',
      { command: `sleep 600 & echo $! >> '${pids}'; echo $$ >> '${pids}'; wait` },
    ]),
  });
  const chat = agent.chat('go', abort.signal);
  await until(() => pidsIn(pids).length === 2);
  assert.ok(pidsIn(pids).every(isRunning));
  abort.abort();
  assert.equal((await chat).ending, 'aborted');
  assert.deepEqual(outcomes(), ['aborted']);
  await allGone(pids);
});

test('an abort cancels a running call on the wire, and the server lives on', async () => {
  const abort = new AbortController();
  const { agent, mcp, outcomes } = prepareTable({
    gate: yes,
    servers: { s: habit() },
    script: calls(['mcp__s__sleep', { ms: 600_000 }]),
    manager: {
      onWire: (_, message: any) =>
        message.method === 'tools/call' &&
        message.params.name === 'sleep' &&
        setTimeout(() => abort.abort(), 50),
    },
  });
  assert.equal((await agent.chat('go', abort.signal)).ending, 'aborted');
  assert.deepEqual(outcomes(), ['aborted']);
  const log = JSON.parse((await mcp.callTool('mcp__s__log')).text) as any[];
  const { id } = log.find(
    ({ method, params }) => method === 'tools/call' && params.name === 'sleep',
  );
  assert.deepEqual(
    log.find(({ method }) => method === 'notifications/cancelled')?.params.requestId,
    id,
  );
  assertPaired(agent.turns);
});

test('the time limit ends a running command', async () => {
  const { agent, outcomes } = prepareTable({
    maxMs: 500,
    gate: yes,
    script: calls(['bash', { command: 'sleep 600' }]),
  });
  assert.equal((await agent.chat('go')).ending, 'time');
  assert.deepEqual(outcomes(), ['aborted']);
  assertPaired(agent.turns);
});
