// Chapter 28: more tools than a request should hold. What is shown, what is found, and what each
// wire gets to see of it.

import { afterEach, test } from 'node:test';
import assert from 'node:assert/strict';
import { Agent, Scripted, type AgentEvent, type AgentOptions, type Model } from '../agent.ts';
import { resourceRows } from '../chapters/24-more-than-tools/rows.ts';
import { ToolShelf, type ShelfLimits } from '../chapters/28-a-thousand-tools/tool-shelf.ts';
import { Anthropic } from '../chapters/18-minds/anthropic.ts';
import { OpenAi } from '../chapters/18-minds/openai.ts';
import { McpManager, onNode, problemWithConfig, type Json } from '../mcp.ts';
import { cleanUp, folder as newFolder } from './help/basics.ts';
import { call, say, startModelServer, type Script } from './help/model-server.ts';

afterEach(cleanUp);

const fixture = '../fixtures/catalogue.mjs';
const { services, madeUp } = await import(fixture);

type Given = Partial<AgentOptions> & { entries?: Record<string, Json>; limits?: ShelfLimits };

async function start(model: Model, { entries, limits, ...options }: Given = {}) {
  const mcp = new McpManager({ load: () => services(entries), transports: madeUp });
  const shelf = new ToolShelf(limits);
  const events: AgentEvent[] = [];
  const agent = new Agent({
    model,
    mcp,
    shelf: shelf.arrange,
    tools: [shelf.findTools],
    gate: async () => ({ allowed: true }),
    emit: (event) => void events.push(event),
    resultsFolder: newFolder(),
    ...options,
  });
  return { agent, mcp, events };
}

const use = (name: string, args: Json = {}) => ({ calls: [{ name, args }] });
const toolsIn = ({ requests }: Scripted) =>
  requests.map(({ tools }) => tools.map(({ name }) => name.replace('mcp__', '')));
const outcomes = (events: AgentEvent[]) =>
  events.flatMap((event) => (event.type === 'tool_end' ? event.outcome : []));

test('how the servers stand is asked once for each answer of the model', async () => {
  const model = new Scripted([
    'Ready.',
    use('find_tools', { query: 'delete an event from the diary' }),
    use('read_resource', { server: 'diary', uri: 'diary://today' }),
    'Done.',
  ]);
  const shelf = new ToolShelf();
  const rows = resourceRows({ manager: () => mcp, resultsFolder: newFolder() });
  const tools = [shelf.findTools, ...rows];
  const { agent, mcp } = await start(model, { shelf: shelf.arrange, tools });
  await agent.chat('Start the servers.');
  let asked = 0;
  const status = mcp.status.bind(mcp);
  mcp.status = () => {
    asked++;
    return status();
  };
  await agent.chat('Go.');
  assert.equal(asked, 3);
});

test('too many tools: the request holds one that finds them, and what it found stays, in order', async () => {
  const model = new Scripted([
    use('find_tools', { query: 'delete an event from the diary', limit: 2 }),
    use('find_tools', { query: 'create an issue in the tracker', limit: 1 }),
    use('mcp__tracker__create_issue', { title: 'It is broken' }),
    'Done.',
    'Again.',
  ]);
  const { agent, events } = await start(model);
  await agent.chat('Go.');
  await agent.chat('And now?');
  const [first, second, third, fourth, fifth] = toolsIn(model);
  assert.deepEqual(first, ['find_tools']);
  assert.equal(second![1], 'diary__delete_event');
  assert.equal(second!.length, 3);
  assert.deepEqual(third, [...second!, 'tracker__create_issue'], 'later ones come last');
  assert.deepEqual(fourth, third);
  assert.deepEqual(fifth, third, 'they stay for the conversation');
  assert.deepEqual(outcomes(events), ['worked', 'worked', 'worked']);
  assert.ok(!events.some(({ type }) => type === 'note'), 'to find a tool is no news');
  const { system } = model.requests[0]!;
  assert.match(system, /- "diary": 20 tools\n> Your calendar\./);
  assert.equal(model.requests[4]!.system, system, 'and the beginning stays the same');
});

test('few tools are all shown, and nothing is said of a shelf', async () => {
  const model = new Scripted(['Done.']);
  const limits = { count: 1000, share: 1 };
  const { agent } = await start(model, { limits, contextWindow: 1_000_000 });
  await agent.chat('Go.');
  assert.equal(model.requests[0]!.tools.length, 400);
  assert.ok(!toolsIn(model)[0]!.includes('find_tools'));
  assert.doesNotMatch(model.requests[0]!.system, /find_tools/);
});

test('too much is a number of tools, a share of the context, or what the wire takes', async () => {
  const shown = async (given: Given, maxTools?: number) => {
    const model = Object.assign(new Scripted(['Done.']), { maxTools });
    const { agent } = await start(model, given);
    await agent.chat('Go.');
    return model.requests[0]!.tools.length;
  };
  const wide = { contextWindow: 1e9 };
  assert.equal(await shown({ ...wide, limits: { count: 400 } }), 400);
  assert.equal(await shown({ ...wide, limits: { count: 399 } }), 1);
  assert.equal(await shown({ contextWindow: 300_000, limits: { count: 400 } }), 1);
  assert.equal(await shown({ contextWindow: 600_000, limits: { count: 400 } }), 400);
  assert.equal(await shown({ ...wide, limits: { count: 400 } }, 128), 1);
});

test('the largest servers are deferred first, and those of one size together', () => {
  const row = (server: string, size: number) => {
    const definition = {
      name: `${server}-${size}`,
      description: 'x'.repeat(size),
      inputSchema: {},
    };
    return { definition, origin: { server, tool: { name: 'x' } } };
  };
  const sizes: [string, number][] = [
    ['small', 10],
    ['large', 9000],
    ['middle', 900],
    ['small', 20],
    ['twin', 9100],
  ];
  const table = new Map(sizes.map((each) => [`${each}`, row(...each)]));
  const deferred = (share: number) => {
    const offer = { table, turns: [], servers: [], model: { name: 'x' }, window: 10_000 };
    return [...(new ToolShelf({ share }).arrange(offer as any).deferred ?? [])];
  };
  assert.deepEqual([deferred(1), deferred(0.2)], [[], ['large', 'twin']]);
  assert.deepEqual(deferred(0.01), ['large', 'middle', 'twin']);
});

test('an entry may say that its tools are always shown, or never at once', async () => {
  const model = new Scripted(['Done.', 'Done.']);
  const entries = { weather: { alwaysLoad: true }, diary: { deferred: true } };
  const { agent } = await start(model, { entries });
  await agent.chat('Go.');
  assert.equal(toolsIn(model)[0]!.length, 21);
  assert.ok(toolsIn(model)[0]!.includes('weather__get_forecast'));
  const few = await start(model, { entries, limits: { count: 1000 }, contextWindow: 1e9 });
  await few.agent.chat('Go.');
  assert.equal(toolsIn(model)[1]!.length, 381, 'all but those of the one that asks for it');
  assert.match(model.requests[1]!.system, /"diary"/);
  assert.doesNotMatch(model.requests[1]!.system, /- "drive"/);
  const problem = (more: Json) => problemWithConfig({ command: 'x', ...more }, onNode({})) ?? '';
  assert.match(problem({ alwaysLoad: 'yes' }), /alwaysLoad/);
  assert.match(problem({ alwaysLoad: true, deferred: true }), /both/);
  assert.equal(problem({ deferred: false, alwaysLoad: true }), '');
});

test('a call to a tool that is not loaded loads it, and says how to call it', async () => {
  const model = new Scripted([
    use('mcp__diary__create_event', { name: 'wrong' }),
    use('mcp__diary__create_event', { title: 'Lunch' }),
    'Done.',
  ]);
  const { agent, events } = await start(model);
  await agent.chat('Go.');
  assert.deepEqual(outcomes(events), ['unreadable', 'worked']);
  const [, results] = agent.turns.filter(({ role }) => role !== 'user');
  assert.match(JSON.stringify(results), /was not loaded.*title/);
  assert.deepEqual(toolsIn(model)[1], ['find_tools', 'diary__create_event']);
});

test('names are loaded as they are; other words are answered with what there is', async () => {
  const model = new Scripted([
    use('find_tools', { names: ['mcp__ads__list_keyword', 'mcp__no__such'] }),
    use('find_tools', { query: 'xylophone' }),
    use('find_tools', { query: 3, limit: 'many', names: 'x' }),
    'Done.',
  ]);
  const { agent, events } = await start(model);
  await agent.chat('Go.');
  assert.deepEqual(toolsIn(model)[1], ['find_tools', 'ads__list_keyword']);
  assert.deepEqual(outcomes(events), ['worked', 'failed', 'unreadable']);
  const told = events.flatMap((event) => (event.type === 'tool_end' ? event.text : []));
  assert.match(told[1]!, /No tool fits.*"tracker"/);
});

test('a conversation that is resumed has its tools again; a new one does not', async () => {
  const model = new Scripted([
    use('find_tools', { query: 'delete an event from the diary', limit: 2 }),
    'Done.',
    'Again.',
    'New.',
  ]);
  const { agent } = await start(model);
  await agent.chat('Go.');
  const kept = JSON.parse(JSON.stringify(agent.turns)); // as a file has it
  const resumed = await start(model, { turns: kept });
  await resumed.agent.chat('Go on.');
  assert.deepEqual(toolsIn(model)[2], toolsIn(model)[1]);
  resumed.agent.startOver();
  await resumed.agent.chat('New.');
  assert.deepEqual(toolsIn(model)[3], ['find_tools']);
});

test('never more than the wire takes: the latest found stay', async () => {
  const names = ['list', 'get', 'create', 'update', 'delete'].flatMap((verb) =>
    ['event', 'calendar', 'invitation', 'reminder'].map((noun) => `mcp__diary__${verb}_${noun}`),
  );
  const model = Object.assign(
    new Scripted([
      use('find_tools', { names: names.slice(0, 10) }),
      use('find_tools', { names: names.slice(10) }),
      'Done.',
    ]),
    { maxTools: 16 },
  );
  const { agent } = await start(model);
  await agent.chat('Go.');
  const last = toolsIn(model)[2]!;
  assert.equal(last.length, 16);
  assert.equal(last.at(-1), names.at(-1)!.replace('mcp__', ''));
});

test('an agent finds its own tools, also if another with fewer was at the shelf since', async () => {
  const names = ['mcp__diary__delete_event'];
  let visit = async () => {};
  const model = new Scripted([
    async () => (await visit(), use('find_tools', { names })),
    'Nothing to do.',
    'Done.',
  ]);
  const { agent } = await start(model);
  const fewer = agent.fork({ switchedOff: () => [{ server: 'diary', tool: 'delete_event' }] });
  visit = async () => void (await fewer.chat('Go.'));
  await agent.chat('Go.');
  assert.deepEqual(toolsIn(model).at(-1), ['find_tools', 'diary__delete_event']);
});

test('a wire has no room for every wish: the last of those that are always shown must be found', async () => {
  const always = Object.fromEntries(
    [...services().keys()].map((name) => [name, { alwaysLoad: true }]),
  );
  const names = ['mcp__studio__create_picture'];
  const model = Object.assign(new Scripted([use('find_tools', { names }), 'Done.']), {
    maxTools: 128,
  });
  const { agent } = await start(model, { entries: always, contextWindow: 1e9 });
  await agent.chat('Go.');
  const [first, second] = toolsIn(model);
  assert.deepEqual(
    [first!.length, second!.length, second!.at(-1)],
    [101, 102, 'studio__create_picture'],
  );
  assert.match(model.requests[0]!.system, /- "studio": 20 tools/);
  const fitting = Object.assign(new Scripted(['Done.']), { maxTools: 401 });
  const { agent: other } = await start(fitting, { entries: always, contextWindow: 1e9 });
  await other.chat('Go.');
  assert.equal(toolsIn(fitting)[0]!.length, 400, 'what fits is shown, to the last place');
});

// ─── On the wires ──────────────────────────────────────────────────────────────────────────────

const found = 'mcp__diary__delete_event';
const searching: Script = [
  call('find_tools', { query: 'delete an event from the diary', limit: 2 }),
  call(found, { id: '7' }),
  say('Done.'),
];
const wait = async () => {};

test('Anthropic: definitions come in at the end', async () => {
  const server = await startModelServer(searching);
  const options = { model: 'claude-sonnet-5', key: 'k', baseUrl: server.url, wait };
  const { agent } = await start(new Anthropic(options));
  await agent.chat('Go.');
  assert.deepEqual(server.problems, []);
  const [, second] = server.requests;
  assert.equal(second!.body.tools[1].name, found);
  assert.match(JSON.stringify(second!.body.messages), /call them now/);
});

test('OpenAI: found tools are functions of the next request, and never more than 128', async () => {
  const server = await startModelServer([...searching, say('x')]);
  const model = new OpenAi({ model: 'gpt-5', baseUrl: `${server.url}/v1`, wait });
  const { agent } = await start(model, { limits: { count: 1000 }, contextWindow: 1e9 });
  await agent.chat('Go.');
  const all = await start(model, { shelf: undefined, tools: [] }); // a program without a shelf
  await all.agent.chat('Go.');
  assert.deepEqual(server.problems, []);
  const counts = server.requests.map(({ body }) => body.tools.length);
  assert.deepEqual(counts, [1, 3, 3, 128]);
  assert.equal(server.requests[1]!.body.tools[1].function.name, found);
  const [before, after] = server.requests.slice(1).map(({ body }) => body);
  const opening = (list: unknown[]) => JSON.stringify(list).slice(0, -1);
  assert.equal(JSON.stringify(after.tools), JSON.stringify(before.tools), 'byte for byte');
  assert.ok(opening(before.tools).startsWith(opening(server.requests[0]!.body.tools)));
  assert.ok(
    opening(after.messages).startsWith(opening(before.messages)),
    'what was sent stays as it was',
  );
});
