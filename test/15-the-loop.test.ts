// Chapter 15: the loop. Whatever happens, every call gets exactly one result, in its order, and the chat can go on.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { Agent, ModelError, repair, Scripted, type Model, type ModelEvent, type Tool, type Turn } from '../agent.ts';
import type { Json } from '../mcp.ts';
import { calls, prepareAgent } from './agents.ts';
import { allGone, cleanUp, folder, goodServer, habit, isRunning, later, pidsIn, run, until } from './helpers.ts';

afterEach(cleanUp);

const good = { command: process.execPath, args: [goodServer] };
const yes = async () => ({ allowed: true as const });

/** A row of the table that does what the test wants. */
function row(name: string, run: Tool['run'], more: Partial<Tool> = {}): Tool {
  return { definition: { name, description: '', inputSchema: { type: 'object' } }, readOnly: false, run, ...more };
}
const saying = (text: string) => async () => ({ blocks: [{ type: 'text' as const, text }], isError: false });
const nothing = () => new Promise<never>(() => {});

/** After each answer with calls comes one turn with a result for each, in the order of the calls. */
function assertPaired(turns: Turn[]): void {
  for (const [n, turn] of turns.entries()) {
    if (turn.role === 'tools') assert.equal(turns[n - 1]?.role, 'assistant');
    if (turn.role !== 'assistant' || turn.calls.length === 0) continue;
    const next = turns[n + 1];
    assert.ok(next?.role === 'tools', 'results follow');
    assert.deepEqual(next.results.map(({ id, name }) => [id, name]), turn.calls.map(({ id, name }) => [id, name]));
    assert.ok(next.results.every(({ blocks }) => blocks.length > 0), 'no result is empty');
  }
}

// ─── Tools until text ───

test('an answer without calls ends the chat: text in pieces, and then once more as a whole', async () => {
  const { agent, events, of, recorded } = prepareAgent({ script: ['A long answer, in several pieces.'] });
  assert.deepEqual(await agent.chat('hello'), { ending: 'done', text: 'A long answer, in several pieces.' });
  assert.equal(of('text').map(({ text }) => text).join(''), 'A long answer, in several pieces.');
  assert.ok(of('text').length > 1);
  assert.deepEqual(events.at(-1), { type: 'done', ending: 'done', text: 'A long answer, in several pieces.', turns: 1 });
  assert.deepEqual(agent.turns, [
    { role: 'user', text: 'hello' },
    { role: 'assistant', text: 'A long answer, in several pieces.', calls: [] },
  ]);
  assert.deepEqual(recorded, agent.turns);
});

test('calls are run and their results go back to the model, until it answers with text alone', async () => {
  const { agent, model, of, recorded } = prepareAgent({
    files: { 'a.txt': 'alpha\n', 'b.txt': 'beta\n' },
    script: [{ text: 'Looking.', calls: [{ name: 'read', args: { path: 'a.txt' } }] }, ...calls(['read', { path: 'b.txt' }])],
  });
  assert.deepEqual(await agent.chat('read both'), { ending: 'done', text: 'done' });
  assert.deepEqual(model.requests.map(({ turns }) => turns.length), [1, 3, 5]);
  const seen = model.requests[2]!.turns.flatMap((turn) => (turn.role === 'tools' ? turn.results.map(({ blocks }) => blocks) : []));
  assert.deepEqual(seen, [[{ type: 'text', text: 'alpha' }], [{ type: 'text', text: 'beta' }]]);
  assert.deepEqual(of('tool_start').map(({ name, args }) => [name, args]), [['read', { path: 'a.txt' }], ['read', { path: 'b.txt' }]]);
  assert.deepEqual(of('tool_end').map(({ outcome, text }) => [outcome, text]), [['worked', 'alpha'], ['worked', 'beta']]);
  assert.deepEqual(recorded, agent.turns);
  assertPaired(agent.turns);
});

test('the model gets the rows of the table, and a short system prompt with the folder at its end', async () => {
  const { agent, model, cwd } = prepareAgent({ script: ['hi'], servers: { good } });
  await agent.chat('hello');
  const { system, tools } = model.requests[0]!;
  assert.deepEqual(tools.map(({ name }) => name), ['read', 'write', 'edit', 'grep', 'glob', 'bash', 'mcp__good__add', 'mcp__good__greet']);
  assert.ok(tools.every(({ inputSchema, description }) => inputSchema.type === 'object' && description !== ''));
  assert.ok(system.length < 1500, `${system.length}`);
  assert.match(system.split('\n').at(-1)!, new RegExp(`^The folder is ${cwd}\\. Today is`));
});

test('usage is told and added up', async () => {
  const usage = { input: 10, output: 2, cached: 4 };
  const { agent, of } = prepareAgent({ script: [{ text: 'a', usage }, { text: 'b', usage }] });
  await agent.chat('1');
  await agent.chat('2');
  assert.deepEqual(agent.usage, { input: 20, output: 4, cached: 8 });
  assert.equal(of('usage').length, 2);
});

// ─── Exactly one result per call ───

test('worked, failed, thrown, denied, unknown, unreadable: each gets one result, in order, and the turn goes on', async () => {
  const all = [
    ['fine', {}], ['tells', {}], ['throws', {}], ['throws-text', {}], ['secret', {}], ['fnie', {}], ['empty', {}],
  ].map(([name, args], n) => ({ id: `id${n}`, name: name as string, args: args as Json }));
  const unreadable = { id: 'id7', name: 'fine', unreadable: 'Unexpected end of JSON input' };
  const model: Model = {
    name: 'by hand',
    async *ask({ turns }): AsyncGenerator<ModelEvent> {
      const isFirst = turns.length === 1;
      yield { type: 'end', turn: { role: 'assistant', text: isFirst ? '' : 'done', calls: isFirst ? [...all, unreadable] : [] }, stop: 'tools' };
    },
  };
  const { agent, results, outcomes, of } = prepareAgent({
    model,
    gate: async ({ definition: { name } }) => (name === 'secret' ? { allowed: false, reason: 'Not this one.' } : { allowed: true }),
    tools: [
      row('fine', saying('fine'), { definition: { name: 'fine', description: '', inputSchema: { type: 'object', required: ['x'] } } }),
      row('tells', async () => ({ blocks: [{ type: 'text', text: 'it broke' }], isError: true })),
      row('throws', () => Promise.reject(new Error('a bug'))),
      row('throws-text', () => { throw 'just words'; }),
      row('secret', saying('never seen')),
      row('empty', async () => ({ blocks: [], isError: false })),
    ],
  });
  assert.deepEqual(await agent.chat('go'), { ending: 'done', text: 'done' });
  assert.deepEqual(outcomes(), ['worked', 'failed', 'failed', 'failed', 'denied', 'unknown', 'worked', 'unreadable']);
  assert.deepEqual(results().map(({ id, isError }) => [id, isError]), [
    ['id0', false], ['id1', true], ['id2', true], ['id3', true], ['id4', true], ['id5', true], ['id6', false], ['id7', true],
  ]);
  assert.deepEqual(results().slice(0, 5).map(({ text }) => text), ['fine', 'it broke', 'a bug', 'just words', 'Not this one.']);
  assert.match(results()[5]!.text, /no tool called "fnie"\. Did you mean fine\?/);
  assert.equal(results()[7]!.text, 'Unexpected end of JSON input\nThey must fit {"type":"object","required":["x"]}');
  assert.deepEqual(of('tool_start').map(({ id }) => id), of('tool_end').map(({ id }) => id));
  assertPaired(agent.turns);
});

test('a tool named like something every object has is unknown, not a crash', async () => {
  const names = ['__proto__', 'constructor', 'toString', ''];
  const { agent, outcomes } = prepareAgent({ script: calls(...names.map((name): [string, Json] => [name, {}])) });
  assert.equal((await agent.chat('go')).ending, 'done');
  assert.deepEqual(outcomes(), names.map(() => 'unknown'));
});

test('without a gate only what reads is allowed', async () => {
  const { agent, outcomes, file } = prepareAgent({
    gate: 'none', files: { 'a.txt': 'a' }, script: calls(['read', { path: 'a.txt' }], ['write', { path: 'b.txt', content: 'b' }]),
  });
  await agent.chat('go');
  assert.deepEqual(outcomes(), ['worked', 'denied']);
  assert.equal(file('b.txt'), undefined);
});

test('an answer that was cut off by its length runs none of its calls', async () => {
  const { agent, outcomes, file, results } = prepareAgent({
    mode: 'yolo',
    script: [{ calls: [{ name: 'write', args: { path: 'a', content: 'half' } }, { name: 'read', args: { path: 'a' } }], stop: 'length' }, 'shorter'],
  });
  assert.equal((await agent.chat('go')).ending, 'done');
  assert.deepEqual(outcomes(), ['unreadable', 'unreadable']);
  assert.match(results()[0]!.text, /cut off/);
  assert.equal(file('a'), undefined);
});

test('a text that was cut off ends the chat as such, and so does a refusal', async () => {
  const { agent, of } = prepareAgent({ script: [{ text: 'and then', stop: 'length' }, { text: 'No.', stop: 'refusal' }, { text: 'x', stop: 'strange' }] });
  assert.deepEqual(await agent.chat('1'), { ending: 'length', text: 'and then' });
  assert.deepEqual(await agent.chat('2'), { ending: 'refusal', text: 'No.' });
  assert.deepEqual(await agent.chat('3'), { ending: 'done', text: 'x' });
  assert.deepEqual(of('done').map(({ ending }) => ending), ['length', 'refusal', 'done']);
});

test('two calls with one id get two results', async () => {
  const { agent, results } = prepareAgent({
    files: { a: '1', b: '2' },
    script: [{ calls: [{ id: 'same', name: 'read', args: { path: 'a' } }, { id: 'same', name: 'read', args: { path: 'b' } }] }, 'done'],
  });
  await agent.chat('go');
  assert.deepEqual(results().map(({ id, text }) => [id, text]), [['same', '1'], ['same', '2']]);
  assertPaired(agent.turns);
});

test('numbers and truths that come as text are read where the schema leaves no doubt', async () => {
  const seen: unknown[] = [];
  const properties = { n: { type: 'integer' }, x: { type: 'number' }, b: { type: 'boolean' }, s: { type: 'string' }, u: {}, z: null };
  const odd = row('odd', async (args) => (seen.push(args), { blocks: [], isError: false }), {
    definition: { name: 'odd', description: '', inputSchema: { type: 'object', properties } },
  });
  const args = JSON.parse('{"n":"3","x":"-1.5","b":"true","s":"4","u":"5","z":"6","extra":"7","n2":"","__proto__":{"polluted":true}}');
  const { agent } = prepareAgent({ tools: [odd], gate: yes, script: calls(['odd', args], ['odd', { n: '3 apples', x: '1e3', b: 'yes' }]) });
  await agent.chat('go');
  assert.deepEqual(JSON.stringify(seen[0]), '{"n":3,"x":-1.5,"b":true,"s":"4","u":"5","z":"6","extra":"7","n2":"","__proto__":{"polluted":true}}');
  assert.deepEqual(seen[1], { n: '3 apples', x: '1e3', b: 'yes' });
  assert.equal((seen[0] as any).polluted, undefined);
  assert.equal(({} as any).polluted, undefined);
});

test('over the wire too: "2" reaches a server as 2', async () => {
  const { agent, results } = prepareAgent({ gate: yes, servers: { good }, script: calls(['mcp__good__add', { a: '2', b: '40' }]) });
  await agent.chat('add');
  assert.deepEqual(results().map(({ text, isError }) => [text, isError]), [['42', false]]);
});

// ─── Side by side ───

test('calls run side by side if all of them only read', async () => {
  const waiting: (() => void)[] = [];
  const meet = row('meet', () => new Promise((done) => {
    waiting.push(() => done({ blocks: [], isError: false }));
    if (waiting.length === 2) waiting.reverse().forEach((go) => go()); // the second ends first
  }), { readOnly: true });
  const { agent, results } = prepareAgent({
    tools: [meet], gate: yes, script: [{ calls: [{ id: '1', name: 'meet', args: {} }, { id: '2', name: 'meet', args: {} }] }, 'done'],
  });
  await agent.chat('go'); // one after the other, the first would wait for ever
  assert.deepEqual(results().map(({ id }) => id), ['1', '2']);
});

test('one that may write, or one that is unknown, and they run one after the other', async () => {
  const command = 'echo begin >> log; sleep 0.2; echo end >> log';
  const { agent, file } = prepareAgent({ mode: 'yolo', files: { a: '' }, script: calls(['bash', { command }], ['bash', { command }], ['read', { path: 'log' }]) });
  await agent.chat('go');
  assert.equal(file('log'), 'begin\nend\nbegin\nend\n');
  const order: string[] = [];
  const slow = row('slow', async () => {
    order.push('begin');
    await new Promise((done) => setTimeout(done, 50));
    order.push('end');
    return { blocks: [], isError: false };
  }, { readOnly: true });
  const mixed = prepareAgent({ tools: [slow], gate: yes, script: calls(['slow', {}], ['nobody', {}], ['slow', {}]) });
  await mixed.agent.chat('go');
  assert.deepEqual(order, ['begin', 'end', 'begin', 'end']);
});

test('calls of servers never run side by side, whatever the server says of them', async () => {
  const tools = [{ name: 'sleep', description: 'x', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } }];
  const wire: string[] = [];
  const { agent, outcomes } = prepareAgent({
    gate: yes, servers: { s: habit('tools', JSON.stringify(tools)) }, script: calls(['mcp__s__sleep', { ms: 100 }], ['mcp__s__sleep', { ms: 1 }]),
    manager: { onWire: (direction, message: any) => (message.method ?? message.result?.content) && wire.push(`${direction} ${message.method ?? 'result'}`) },
  });
  await agent.chat('go');
  assert.deepEqual(outcomes(), ['worked', 'worked']);
  assert.deepEqual(wire.slice(-4), ['out tools/call', 'in result', 'out tools/call', 'in result']);
});

// ─── Limits ───

test('the turn limit ends a model that never stops, after its last results', async () => {
  const endless = Array.from({ length: 10 }, () => ({ calls: [{ name: 'glob', args: { pattern: '*' } }] }));
  const { agent, events } = prepareAgent({ maxTurns: 3, script: endless });
  assert.equal((await agent.chat('go')).ending, 'turns');
  assert.deepEqual(events.at(-1), { type: 'done', ending: 'turns', text: '', turns: 3 });
  assert.equal(agent.turns.length, 7);
  assertPaired(agent.turns);
});

test('the time limit ends a model that says nothing more, and a tool that does not end', async () => {
  const alive = setInterval(() => {}, 1000); // as a terminal or a socket would: the limit alone keeps no program running
  later(() => clearInterval(alive));
  const silent = prepareAgent({ maxMs: 300, script: [({ signal }) => new Promise((_, no) => signal.addEventListener('abort', () => no(signal.reason)))] });
  assert.equal((await silent.agent.chat('go')).ending, 'time');
  const busy = prepareAgent({ maxMs: 500, mode: 'yolo', script: calls(['bash', { command: 'sleep 600' }]) });
  assert.equal((await busy.agent.chat('go')).ending, 'time');
  assert.deepEqual(busy.outcomes(), ['aborted']);
  assertPaired(busy.agent.turns);
});

test('C17: of 500 calls in one answer 50 run, and all get a result', async () => {
  let ran = 0;
  const count = (readOnly: boolean) => row('count', async () => (ran++, { blocks: [], isError: false }), { readOnly });
  for (const readOnly of [true, false]) {
    ran = 0;
    const many = Array.from({ length: 500 }, (): [string, Json] => ['count', {}]);
    const { agent, results, outcomes } = prepareAgent({ tools: [count(readOnly)], gate: yes, script: calls(...many) });
    assert.equal((await agent.chat('go')).ending, 'done');
    assert.equal(ran, 50);
    assert.equal(results().length, 500);
    assert.equal(outcomes().filter((outcome) => outcome === 'failed').length, 450);
    assert.match(results()[50]!.text, /more than 50 calls/);
    assertPaired(agent.turns);
  }
});

test('a model that pauses is asked again, but not for ever', async () => {
  const paused = { text: 'wait', stop: 'pause' };
  const twice = prepareAgent({ script: [paused, paused, 'now'] });
  assert.deepEqual(await twice.agent.chat('go'), { ending: 'done', text: 'now' });
  const forever = prepareAgent({ script: Array.from({ length: 50 }, () => paused) });
  assert.equal((await forever.agent.chat('go')).ending, 'done');
  assert.equal(forever.model.requests.length, 6);
});

test('a conversation that is too long loses its old results, once, and is sent again, once', async () => {
  const big = 'x'.repeat(5000);
  const script = [...calls(['read', { path: 'a' }]), ...calls(['read', { path: 'b' }])];
  const { agent, model, of } = prepareAgent({ files: { a: big, b: big, c: big }, script: [...script, { stop: 'too-long' }, 'it fits'] });
  await agent.chat('1');
  await agent.chat('2');
  assert.deepEqual(await agent.chat('3'), { ending: 'done', text: 'it fits' });
  const shown = model.requests.at(-1)!.turns.flatMap((turn) => (turn.role === 'tools' ? turn.results.flatMap(({ blocks }) => blocks) : []));
  assert.match((shown[0] as any).text, /removed to save room/);
  assert.equal((shown[1] as any).text, big, 'the last results stay');
  assert.match(of('note')[0]!.text, /1 old results removed/);
  assertPaired(agent.turns);
});

test('a conversation that is still too long is an error that says what to do', async () => {
  const script = [...calls(['read', { path: 'a' }]), ...calls(['read', { path: 'a' }]), { stop: 'too-long' }, { stop: 'too-long' }, 'fine'];
  const { agent, model, of } = prepareAgent({ files: { a: 'x'.repeat(5000) }, script });
  for (const prompt of ['1', '2']) await agent.chat(prompt);
  assert.equal((await agent.chat('3')).ending, 'error');
  assert.equal(model.requests.length, 6);
  assert.deepEqual(of('error').map(({ kind }) => kind), ['too-long']);
  assert.match(of('error')[0]!.message, /\/clear/);
  assert.equal((await agent.chat('4')).ending, 'done');
  const nothingToForget = prepareAgent({ script: [() => { throw new ModelError('too-long', 'prompt is too long'); }] });
  assert.equal((await nothingToForget.agent.chat('1')).ending, 'error');
  assert.equal(nothingToForget.model.requests.length, 1);
});

test('a result that is too big goes to a file of ours, which the model can read', async () => {
  const { agent, results, resultsFolder } = prepareAgent({
    gate: yes, servers: { s: habit() },
    script: [
      { calls: [{ name: 'mcp__s__big', args: { bytes: 300_000 } }] },
      ({ turns }) => {
        const text = JSON.stringify(turns.at(-1));
        return { calls: [{ name: 'grep', args: { pattern: '^x', path: /the whole is in ([^,]*),/.exec(text)![1]! } }] };
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

// ─── Stop ───

test('an abort stops the stream of the model, and what it said stays', async () => {
  const abort = new AbortController();
  const { agent, events, of } = prepareAgent({
    model: new Scripted(['A very long answer that nobody wants to hear to its end, for it never ends.', 'next'], { delayMs: 20 }),
    emit: (event) => {
      events.push(event);
      if (of('text').length === 2) abort.abort();
    },
  });
  assert.equal((await agent.chat('go', abort.signal)).ending, 'aborted');
  assert.deepEqual(agent.turns.at(-1), { role: 'assistant', text: 'A very long answer that nobody wants to ', calls: [] });
  assert.deepEqual(await agent.chat('again'), { ending: 'done', text: 'next' });
});

test('an abort before a call: it is not run, and has a result that says so', async () => {
  const abort = new AbortController();
  const { agent, outcomes, file, results } = prepareAgent({
    mode: 'yolo',
    tools: [row('stop', async () => (abort.abort(), { blocks: [], isError: false })), row('after', async () => { throw new Error('it ran'); })],
    script: [...calls(['stop', {}], ['after', {}]), 'next'],
  });
  assert.equal((await agent.chat('go', abort.signal)).ending, 'aborted');
  assert.deepEqual(outcomes(), ['aborted', 'aborted']);
  assert.match(results()[1]!.text, /Stopped/);
  assert.equal(file('a'), undefined);
  assertPaired(agent.turns);
  assert.equal((await agent.chat('again')).ending, 'done');
});

test('an abort before the chat starts nothing', async () => {
  const marker = join(folder(), 'marker');
  const { agent, model, mcp } = prepareAgent({ servers: { s: habit('canary', marker) }, script: ['hi'] });
  assert.equal((await agent.chat('go', AbortSignal.abort())).ending, 'aborted');
  assert.deepEqual(mcp.status(), []);
  assert.equal(model.requests.length, 0);
  assert.ok(!existsSync(marker));
  assert.equal((await agent.chat('go')).ending, 'done');
  assert.ok(existsSync(marker));
});

test('an abort ends a running command with all its children', async () => {
  const pids = join(folder(), 'pids');
  const abort = new AbortController();
  const { agent, outcomes } = prepareAgent({
    mode: 'yolo', script: calls(['bash', { command: `sleep 600 & echo $! >> '${pids}'; echo $$ >> '${pids}'; wait` }]),
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
  const { agent, mcp, outcomes } = prepareAgent({
    gate: yes, servers: { s: habit() }, script: calls(['mcp__s__sleep', { ms: 600_000 }]),
    manager: { onWire: (_, message: any) => message.method === 'tools/call' && message.params.name === 'sleep' && setTimeout(() => abort.abort(), 50) },
  });
  assert.equal((await agent.chat('go', abort.signal)).ending, 'aborted');
  assert.deepEqual(outcomes(), ['aborted']);
  const log = JSON.parse((await mcp.callTool('mcp__s__log')).text) as any[];
  const { id } = log.find(({ method, params }) => method === 'tools/call' && params.name === 'sleep');
  assert.deepEqual(log.find(({ method }) => method === 'notifications/cancelled')?.params.requestId, id);
  assertPaired(agent.turns);
});

test('an abort is heard while a person is asked, also if the question stays open', async () => {
  const abort = new AbortController();
  const { agent, outcomes, file } = prepareAgent({
    answers: [() => (setTimeout(() => abort.abort(), 10), nothing())], script: calls(['write', { path: 'a', content: 'x' }]),
  });
  assert.equal((await agent.chat('go', abort.signal)).ending, 'aborted');
  assert.deepEqual(outcomes(), ['aborted']);
  assert.equal(file('a'), undefined);
});

test('an abort is heard while servers start', async () => {
  const abort = new AbortController();
  const { agent } = prepareAgent({ servers: { s: habit('mute') }, script: ['never'] });
  setTimeout(() => abort.abort(), 100);
  assert.equal((await agent.chat('go', abort.signal)).ending, 'aborted');
});

// ─── Servers ───

test('servers start with the first chat, and once, though two chats begin at the same time', async () => {
  const marker = join(folder(), 'marker');
  const { agent } = prepareAgent({ servers: { s: habit('canary', marker) }, script: ['a', 'b', 'c'] });
  assert.ok(!existsSync(marker));
  await Promise.all([agent.chat('1'), agent.chat('2')]);
  await agent.chat('3');
  assert.equal(readFileSync(marker, 'utf8'), 'started\n');
});

test('a server that fails is a note, and the chat goes on with the others', async () => {
  const { agent, of, results } = prepareAgent({
    gate: yes, servers: { bad: habit('dies-at-once', 'hat'), good }, script: [...calls(['mcp__good__greet', { name: 'Ada' }]), 'hi'],
  });
  assert.equal((await agent.chat('greet')).ending, 'done');
  assert.equal((await agent.chat('again')).ending, 'done');
  assert.equal(of('note').length, 1, 'said once');
  assert.match(of('note')[0]!.text, /MCP server "bad" .*cannot find my hat/s);
  assert.equal(results()[0]!.text, 'Hello, Ada!');
});

test('a configuration that cannot be loaded at all is a note', async () => {
  const load = () => { throw new Error('no such disk'); };
  const { agent, of } = prepareAgent({ manager: { load }, script: ['hi'] });
  assert.equal((await agent.chat('go')).ending, 'done');
  assert.deepEqual(of('note').map(({ text }) => text), ['MCP: no such disk']);
});

test('a server that dies in a call: the call has failed, with the reason, and the chat goes on', async () => {
  const { agent, results, outcomes } = prepareAgent({
    gate: yes, servers: { s: habit() }, script: calls(['mcp__s__exit', { code: 7 }], ['mcp__s__echo', {}]),
  });
  assert.equal((await agent.chat('go')).ending, 'done');
  assert.deepEqual(outcomes(), ['failed', 'failed']);
  assert.match(results()[0]!.text, /I was told to leave/);
});

test('a tool that says it failed has failed; an error of the protocol too', async () => {
  const { agent, results } = prepareAgent({
    gate: yes, servers: { s: habit(), good }, script: calls(['mcp__good__add', { a: 'x', b: 1 }], ['mcp__s__result', { result: 'no object' }]),
  });
  await agent.chat('go');
  assert.deepEqual(results().map(({ isError }) => isError), [true, true]);
  assert.equal(results()[0]!.text, 'a and b must be numbers');
});

test('the table follows tools/list_changed: the next request to the model has the new tool', async () => {
  const { agent, model, mcp } = prepareAgent({
    gate: yes, servers: { s: habit('grows-a-tool') },
    script: [{ calls: [{ name: 'mcp__s__grow', args: {} }] }, async () => {
      await until(() => mcp.isMcpTool('mcp__s__new'));
      return { calls: [{ name: 'bash', args: { command: 'true' } }] };
    }, ...calls(['mcp__s__new', {}])],
  });
  await agent.chat('grow');
  const names = model.requests.map(({ tools }) => tools.some(({ name }) => name === 'mcp__s__new'));
  assert.deepEqual([names[0], names[2]], [false, true]);
  const last = agent.turns.findLast((turn) => turn.role === 'tools')!;
  assert.deepEqual(last.results[0]!.blocks, [{ type: 'text', text: 'I am new' }]);
});

test('what a server says of itself is in the system prompt, under its name, and bounded', async () => {
  const { agent, model } = prepareAgent({ servers: { s: habit(), long: habit('instructs-at-length', '100000') }, script: ['hi'] });
  await agent.chat('go');
  const { system } = model.requests[0]!;
  assert.match(system, /The MCP server s says of itself:\nBe careful\./);
  assert.match(system, /x{2048}… \[97952 characters more\]/);
  assert.ok(system.length < 4500);
});

test('progress of a server becomes events of its call', async () => {
  const { agent, of } = prepareAgent({ gate: yes, servers: { s: habit() }, script: calls(['mcp__s__work', { everyMs: 5, times: 3 }]) });
  await agent.chat('work');
  const [{ id } = { id: '' }] = of('tool_start');
  assert.deepEqual(of('tool_progress').map((event) => [event.id, event.progress.progress, event.progress.total]), [[id, 1, 3], [id, 2, 3], [id, 3, 3]]);
});

test('a tool that the user has switched off is not in the table', async () => {
  const { agent, model, trust, outcomes } = prepareAgent({ servers: { good }, script: calls(['mcp__good__add', { a: 1, b: 2 }]) });
  trust.setDisabled(true, 'good', 'add');
  await agent.chat('go');
  assert.deepEqual(model.requests[0]!.tools.map(({ name }) => name).filter((name) => name.startsWith('mcp')), ['mcp__good__greet']);
  assert.deepEqual(outcomes(), ['unknown']);
});

// ─── Trouble ───

test('an error of the model is an event, and the next chat works', async () => {
  const { agent, of } = prepareAgent({ script: [() => { throw new ModelError('config', 'the key is wrong'); }, 'better'] });
  assert.deepEqual(await agent.chat('1'), { ending: 'error', text: '' });
  assert.deepEqual(of('error').map(({ kind, message }) => [kind, message]), [['config', 'the key is wrong']]);
  assert.deepEqual(await agent.chat('2'), { ending: 'done', text: 'better' });
});

test('a model that stops without an end is an error, and what it said stays', async () => {
  const model: Model = { name: 'broken', async *ask() { yield { type: 'text', text: 'I was about to' }; } };
  const { agent, of } = prepareAgent({ model });
  assert.equal((await agent.chat('1')).ending, 'error');
  assert.match(of('error')[0]!.message, /broken stopped without an end/);
  assert.deepEqual(agent.turns.at(-1), { role: 'assistant', text: 'I was about to', calls: [] });
});

test('a transcript that cannot be written is a note, once, and the chat goes on', async () => {
  const { agent, of, model } = prepareAgent({
    files: { a: 'x' }, script: [...calls(['read', { path: 'a' }]).slice(0, 1), 'later', 'still here'],
    record: (turn) => { if (turn.role === 'assistant') throw new Error('the disk is full'); },
  });
  assert.deepEqual(await agent.chat('1'), { ending: 'done', text: 'later' });
  assert.deepEqual(await agent.chat('2'), { ending: 'done', text: 'still here' });
  assert.deepEqual(of('note').map(({ text }) => text), ['from here on, this conversation is not kept: the disk is full']);
  assertPaired(model.requests[1]!.turns);
});

test('the text of a chat is that of its last answer, as far as it came', async () => {
  const lookThenFail: Model = {
    name: 'broken',
    async *ask({ turns }) {
      if (turns.length > 2) throw new Error('no more');
      const calls = [{ id: '1', name: 'read', args: { path: 'a' } }];
      yield { type: 'end', turn: { role: 'assistant', text: 'Let me look.', calls }, stop: 'tools' };
    },
  };
  const { agent } = prepareAgent({ model: lookThenFail, files: { a: 'x' } });
  assert.deepEqual(await agent.chat('go'), { ending: 'error', text: '' });
  const half: Model = { name: 'half', async *ask() { yield { type: 'text', text: 'One half' }; throw new Error('gone'); } };
  assert.deepEqual(await prepareAgent({ model: half }).agent.chat('go'), { ending: 'error', text: 'One half' });
});

test('the errors of tools keep to the budget of results, too', async () => {
  const long = 'E'.repeat(300_000);
  const { agent, results } = prepareAgent({
    gate: async () => ({ allowed: true }),
    tools: [{ definition: { name: 'fails', description: '', inputSchema: {} }, readOnly: true, run: async () => { throw new Error(long); } }],
    script: calls(['fails', {}], [`unknown${long}`, {}]),
  });
  await agent.chat('go');
  for (const { text, isError } of results()) assert.deepEqual([isError, text.length < 10_000], [true, true]);
});

test('a listener that throws stops nothing', async () => {
  const { agent, results } = prepareAgent({ files: { a: 'x' }, script: calls(['read', { path: 'a' }]), emit: () => { throw new Error('a bug of the listener'); } });
  assert.deepEqual(await agent.chat('go'), { ending: 'done', text: 'done' });
  assert.equal(results()[0]!.text, 'x');
});

test('nothing is printed, whatever happens, not even a warning of Node', async () => {
  const { code, output } = await run('quiet-agent.ts').ended;
  assert.deepEqual([output, code], ['', 0]);
});

test('a conversation that was cut off is repaired: each call has one result, each result its call', async () => {
  const call = (id: string) => ({ id, name: 'read', args: {} });
  const result = (id: string) => ({ id, name: 'read', blocks: [{ type: 'text' as const, text: id }], isError: false });
  const turns: Turn[] = [
    { role: 'tools', results: [result('orphan')] },
    { role: 'user', text: 'hi' },
    { role: 'assistant', text: '', calls: [call('1'), call('2')] },
    { role: 'tools', results: [result('1')] },
    { role: 'assistant', text: '', calls: [call('3')] },
    { role: 'user', text: 'still there?' },
    { role: 'assistant', text: '', calls: [call('4')] },
    { role: 'tools', results: [result('4')] },
    { role: 'assistant', text: '', calls: [call('5'), call('5')] },
    { role: 'assistant', text: '', calls: [call('6')] },
    { role: 'tools', results: [result('of another call')] },
  ];
  const repaired = repair(turns);
  assertPaired(repaired);
  assert.deepEqual(repaired.map(({ role }) => role), [
    'user', 'assistant', 'tools', 'assistant', 'tools', 'user', 'assistant', 'tools', 'assistant', 'tools', 'assistant', 'tools',
  ]);
  const blocks = repaired.flatMap((turn) => (turn.role === 'tools' ? turn.results.map((each) => [each.id, (each.blocks[0] as any).text]) : []));
  const lost = 'Not known: the program ended before the result was there.';
  assert.deepEqual(blocks, [['1', '1'], ['2', lost], ['3', lost], ['4', '4'], ['5', lost], ['5', lost], ['6', lost]]);
  assert.deepEqual(repair(repaired), repaired);
  const sound: Turn[] = repaired.slice(0, 3);
  assert.deepEqual(repair(sound), sound);
  const { agent, model } = prepareAgent({ turns, script: ['yes'] });
  await agent.chat('go on');
  assertPaired(model.requests[0]!.turns);
});

test('an agent needs nothing but a model', async () => {
  const agent = new Agent({ model: new Scripted(['hi']), resultsFolder: folder() });
  assert.deepEqual(await agent.chat('hello'), { ending: 'done', text: 'hi' });
});

test('images of a tool reach the model as images', async () => {
  const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  const { agent, cwd } = prepareAgent({ script: calls(['read', { path: 'a.png' }]) });
  writeFileSync(join(cwd, 'a.png'), Buffer.from(png, 'base64'));
  await agent.chat('look');
  const turn = agent.turns.findLast((each) => each.role === 'tools')!;
  assert.deepEqual(turn.results[0]!.blocks, [{ type: 'image', mimeType: 'image/png', data: png }]);
});
