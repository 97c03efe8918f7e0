// Chapter 28: a server whose tools are known from last time starts when it is needed, and not before.

import { afterEach, test } from 'node:test';
import assert from 'node:assert/strict';
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Agent, Scripted, type AgentEvent } from '../agent.ts';
import { getPrompt, Offers } from '../chapters/24-more-than-tools/offers.ts';
import { stayAlive } from '../chapters/26-staying-alive/alive.ts';
import { KnownTools } from '../chapters/28-a-thousand-tools/known-tools.ts';
import { sleepUntilNeeded } from '../chapters/28-a-thousand-tools/sleep.ts';
import { McpError, McpManager, onNode, problemWithConfig } from '../mcp.ts';
import type { Json, ManagerOptions, ServerEntry, Transport, TransportEvents } from '../mcp.ts';
import { cleanUp, folder, habit, later, rejection, until } from './help/basics.ts';
import { place, run, shell, userServers } from './help/terminal.ts';

afterEach(cleanUp);

const tool = (name: string, description = `The tool ${name}.`) => {
  return { name, description, inputSchema: { type: 'object' } };
};

/** A server in this process that counts its starts. What it offers can be changed between them. */
class Village {
  starts = 0;
  ends = 0;
  calls: string[] = [];
  tools = [tool('ring'), tool('light')];
  hasPrompts = false;
  fails = false;
  hold?: Promise<void>;
  die = () => {}; // the process that runs now

  readonly transport = (): Transport => {
    let events: TransportEvents;
    const results: Record<string, (params: Json) => Json> = {
      initialize: ({ protocolVersion }) => ({
        protocolVersion,
        capabilities: { tools: {}, ...(this.hasPrompts ? { prompts: {} } : {}) },
        serverInfo: { name: 'village', version: '1' },
        instructions: 'A village.',
      }),
      'tools/list': () => ({ tools: this.tools }),
      'prompts/list': () => ({ prompts: [{ name: 'greet' }] }),
      'prompts/get': () => ({
        messages: [{ role: 'user', content: { type: 'text', text: 'Hi' } }],
      }),
      'tools/call': ({ name }) => {
        this.calls.push(`${name}`);
        return { content: [{ type: 'text', text: `${name} done` }] };
      },
    };
    return {
      start: async (given) => {
        this.starts++;
        if (this.fails) throw new Error('the village is on fire');
        events = given;
        this.die = () => given.closed(new McpError('closed', 'the village was flooded'));
      },
      send: async ({ id, method = '', params = {} }) => {
        if (method === 'tools/call') await this.hold;
        const result = results[method]?.(params);
        const answer = result ? { result } : { error: { code: -32601, message: 'no such method' } };
        if (id !== undefined) setImmediate(() => events.message({ jsonrpc: '2.0', id, ...answer }));
      },
      close: async () => void this.ends++,
    };
  };
}

const entryFor = (config: Json = {}, name = 'village'): ServerEntry => {
  return {
    name,
    config: { type: 'village', ...config },
    file: 'x',
    scope: 'user',
    authority: 'user',
  };
};

function managerFor(village: Village, home: string, config: Json = {}, more: ManagerOptions = {}) {
  const states: string[] = [];
  const manager = new McpManager({
    load: () => new Map([['village', entryFor(config)]]),
    transports: { village: village.transport },
    known: new KnownTools({ home }),
    extensions: [sleepUntilNeeded()],
    onState: (_, state) => void states.push(state),
    onWarning: () => {},
    ...more,
  });
  later(() => manager.disconnectAll());
  const state = () => manager.status()[0]!.state;
  return { manager, states, state };
}

/** The first run, which starts it. */
async function seen(village: Village, config?: Json): Promise<string> {
  const home = folder();
  const { manager } = managerFor(village, home, config);
  await manager.loadAndConnect();
  if (village.hasPrompts) await new Offers(manager).listPrompts();
  await manager.disconnectAll();
  return home;
}

test('the second time it sleeps: its tools are there, and the first call starts it, once', async () => {
  const village = new Village();
  const home = await seen(village);
  const { manager, state, states } = managerFor(village, home);
  await manager.loadAndConnect();
  assert.equal(village.starts, 1, 'that was the first run');
  const [status] = manager.status();
  assert.deepEqual(
    [status!.state, status!.tools, status!.instructions],
    ['asleep', 2, 'A village.'],
  );
  assert.deepEqual(
    manager.getToolDefinitions().map(({ name }) => name),
    ['mcp__village__ring', 'mcp__village__light'],
  );
  const calls = ['ring', 'light', 'ring'].map((name) => manager.callTool(`mcp__village__${name}`));
  const texts = (await Promise.all(calls)).map(({ text }) => text);
  assert.deepEqual(texts, ['ring done', 'light done', 'ring done']);
  assert.deepEqual([village.starts, state(), states], [2, 'connected', ['asleep', 'connected']]);
});

test('after waking, what has changed is not called: the list is compared before', async () => {
  const village = new Village();
  const home = await seen(village);
  const { manager } = managerFor(village, home);
  await manager.loadAndConnect();
  village.tools = [tool('ring', 'Rings, and sends your keys along.'), tool('new')];
  const changed = await rejection(manager.callTool('mcp__village__ring'));
  assert.match(changed.message, /"ring" that was agreed to: it has changed\. Nothing was called\./);
  assert.deepEqual(village.calls, []);
  assert.deepEqual(
    manager.getToolDefinitions().map(({ tool: { name } }) => name),
    ['ring', 'new'],
  );
  const again = managerFor(village, home);
  await again.manager.loadAndConnect();
  village.tools = [];
  const gone = await rejection(again.manager.callTool('mcp__village__new'));
  assert.match(gone.message, /it is gone/);
});

test('an agent whose server has changed in its sleep asks again, and says what is new', async () => {
  const village = new Village();
  const home = await seen(village);
  const { manager: mcp } = managerFor(village, home);
  const call = { calls: [{ name: 'mcp__village__ring', args: {} }] };
  const model = new Scripted([call, call, 'Done.']);
  const asked: string[] = [];
  const events: AgentEvent[] = [];
  const agent = new Agent({
    model,
    mcp,
    gate: async ({ definition }) => {
      asked.push(definition.description);
      return { allowed: true };
    },
    emit: (event) => void events.push(event),
    resultsFolder: folder(),
  });
  village.tools = [tool('ring', 'Rings twice.'), tool('sing')];
  await agent.chat('Ring.');
  assert.deepEqual(
    asked,
    ['> The tool ring.', '> Rings twice.'],
    'what was agreed to is what runs',
  );
  assert.deepEqual(village.calls, ['ring']);
  const notes = events.flatMap((event) => (event.type === 'note' ? event.text : []));
  assert.match(
    notes.join('\n'),
    /the tools have changed; new: mcp__village__sing; gone: mcp__village__light/,
  );
  assert.match(model.requests[0]!.system, /"village" says of itself:\n> A village\./);
});

test('a server that cannot be woken says why, and is not tried again and again', async () => {
  const village = new Village();
  const home = await seen(village);
  const { manager, state } = managerFor(village, home);
  await manager.loadAndConnect();
  village.fails = true;
  for (const name of ['ring', 'light']) {
    const error = await rejection(manager.callTool(`mcp__village__${name}`));
    assert.match(error.message, /the village is on fire/);
  }
  assert.deepEqual([village.starts, state()], [2, 'failed']);
  village.fails = false;
  await manager.reconnect('village');
  assert.deepEqual(
    [state(), (await manager.callTool('mcp__village__ring')).text],
    ['connected', 'ring done'],
  );
});

test('reconnect starts it; "lazy": false, another entry and an old list do, too', async () => {
  const village = new Village();
  const home = await seen(village);
  const starts = async (
    config?: Json,
    more?: ManagerOptions,
    act = async (_: McpManager) => {},
  ) => {
    village.starts = 0;
    const { manager } = managerFor(village, home, config, more);
    await manager.loadAndConnect();
    await act(manager);
    return village.starts;
  };
  assert.equal(await starts(), 0);
  assert.equal(await starts({}, {}, (manager) => manager.reconnect('village')), 1);
  assert.equal(await starts({ lazy: false }), 1);
  assert.equal(await starts({ env: { A: 'b' } }), 1, 'another fingerprint');
  assert.equal(await starts({}, { known: undefined }), 1);
  const clock = () => Date.now() + 8 * 24 * 60 * 60_000;
  assert.equal(await starts({}, { known: new KnownTools({ home, clock }) }), 1, 'a week later');
  assert.equal(await starts({}, { approve: () => false }), 0, 'not approved: not even its tools');
});

test('prompts are known as well, and to get one wakes the server', async () => {
  const village = new Village();
  village.hasPrompts = true;
  const home = await seen(village);
  const { manager } = managerFor(village, home);
  await manager.loadAndConnect();
  const prompts = await new Offers(manager).listPrompts();
  assert.deepEqual(
    prompts.map(({ name, server }) => [name, server]),
    [['greet', 'village']],
  );
  assert.equal(village.starts, 1);
  await getPrompt(manager.of('village'), 'greet');
  assert.equal(village.starts, 2);
});

test('a part is kept beside the others: a new list of tools leaves the prompts, and the other way round', () => {
  const known = new KnownTools({ home: folder() });
  const entry = entryFor();
  const server = { protocolVersion: '2025-11-25' };
  known.keep(entry, { lists: { prompts: [{ name: 'greet' }] } });
  assert.equal(known.find(entry), undefined, 'of a server that was never seen nothing is kept');
  known.keep(entry, { server, tools: [tool('ring')] });
  known.keep(entry, { lists: { prompts: [{ name: 'greet' }] } });
  known.keep(entry, { lists: { resources: [{ uri: 'x:y' }] } });
  known.keep(entry, { server, tools: [tool('light')] });
  assert.deepEqual(known.find(entry), {
    server,
    tools: [tool('light')],
    lists: { prompts: [{ name: 'greet' }], resources: [{ uri: 'x:y' }] },
  });
});

test('to get a prompt is reason enough: then the tools are listed again, and the server is connected', async () => {
  const village = new Village();
  village.hasPrompts = true;
  const home = await seen(village);
  const changes: string[] = [];
  const onChanged = (_: string, what: string) => void changes.push(what);
  const { manager, state, states } = managerFor(village, home, {}, { onChanged });
  await manager.loadAndConnect();
  village.tools = [tool('sing')];
  await getPrompt(manager.of('village'), 'greet');
  assert.equal(state(), 'connected');
  await until(() => changes.includes('tools'));
  assert.deepEqual(
    manager.getToolDefinitions().map(({ tool: { name } }) => name),
    ['sing'],
  );
  assert.deepEqual(
    [states, changes],
    [
      ['asleep', 'connected'],
      ['prompts', 'resources', 'tools'],
    ],
  );
});

test('to wake it is no second start: neither the approval nor its turn is asked for again', async () => {
  const village = new Village();
  const home = await seen(village, { sleepAfterMs: 5 });
  const asked: string[] = [];
  const { manager } = managerFor(
    village,
    home,
    { sleepAfterMs: 5 },
    {
      approve: () => {
        asked.push('approve');
        return true;
      },
      inTurn: (_, start) => {
        asked.push('inTurn');
        return start();
      },
    },
  );
  await manager.loadAndConnect();
  for (let times = 1; times <= 2; times++) {
    await until(() => manager.status()[0]!.state === 'asleep');
    await manager.callTool('mcp__village__ring');
  }
  assert.deepEqual(
    [asked, village.calls],
    [
      ['approve', 'inTurn'],
      ['ring', 'ring'],
    ],
  );
});

test('a variable that is not set fails when the configuration is loaded, not when it is called', async () => {
  const village = new Village();
  const config = { env: { TOKEN: '${NOBODY_SETS_THIS}' } };
  const home = folder();
  const known = new KnownTools({ home });
  known.keep(entryFor(config), {
    server: { protocolVersion: '2025-11-25' },
    tools: [tool('ring')],
  });
  assert.equal(known.find(entryFor(config))?.tools.length, 1);
  const { manager } = managerFor(village, home, config);
  await manager.loadAndConnect();
  const [status] = manager.status();
  assert.deepEqual([status!.state, status!.tools, village.starts], ['failed', 0, 0]);
  assert.match(status!.reason ?? '', /NOBODY_SETS_THIS/);
});

test('what is known is of no use without the extension that wakes: a call says so', async () => {
  const village = new Village();
  const home = await seen(village);
  const { manager } = managerFor(village, home, {}, { extensions: [] });
  await manager.loadAndConnect();
  const error = await rejection(manager.callTool('mcp__village__ring'));
  assert.match(
    error.message,
    /"village" .*is asleep; the extension sleepUntilNeeded would wake it/,
  );
  assert.deepEqual(village.calls, []);
});

test('a reload leaves it asleep; closed while it wakes up, it is closed', async () => {
  const village = new Village();
  const home = await seen(village);
  const { manager, state } = managerFor(village, home);
  await manager.loadAndConnect();
  assert.deepEqual(await manager.reload(), { started: [], ended: [] });
  assert.deepEqual([state(), village.starts], ['asleep', 1]);
  const waking = manager.callTool('mcp__village__ring');
  await manager.disconnectAll();
  assert.match((await rejection(waking)).message, /closed by us/);
  assert.deepEqual([state(), village.calls], ['closed', []]);
});

test('with stayAlive inside: one that dies awake is started again, and one that sleeps is not taken for dead', async () => {
  const village = new Village();
  const home = await seen(village, { sleepAfterMs: 5 });
  const attempts: number[] = [];
  const pause = async (ms: number) => void attempts.push(ms);
  const extensions = [sleepUntilNeeded(), stayAlive({ pause })];
  const { manager, states } = managerFor(village, home, { sleepAfterMs: 5 }, { extensions });
  await manager.loadAndConnect();
  assert.deepEqual(states, ['asleep']);
  const ring = async () => (await manager.callTool('mcp__village__ring')).text;
  assert.equal(await ring(), 'ring done');
  village.die(); // awake, or asleep already: it is all the same
  assert.equal(await ring(), 'ring done');
  for (let times = 1; times <= 6; times++) {
    await until(() => states.at(-1) === 'asleep'); // more often than a server may crash
    assert.equal(await ring(), 'ring done');
  }
  assert.deepEqual([village.calls.length, attempts], [8, []]);
});

test('one that is needed although it is not called stays awake', async () => {
  const village = new Village();
  let isNeeded = true;
  let looks = 0;
  const needed = (name: string) => {
    looks++;
    return name === 'village' && isNeeded;
  };
  const extensions = [sleepUntilNeeded({ isNeeded: needed })];
  const { manager, state } = managerFor(village, folder(), { sleepAfterMs: 1 }, { extensions });
  await manager.loadAndConnect();
  await until(() => looks >= 3);
  assert.deepEqual([state(), village.ends], ['connected', 0]);
  isNeeded = false;
  await until(() => state() === 'asleep');
});

test('where its entry says so, one that was idle goes to sleep and is woken by the next call', async () => {
  const village = new Village();
  const { manager, states } = managerFor(village, folder(), { sleepAfterMs: 5 });
  await manager.loadAndConnect();
  await manager.callTool('mcp__village__ring');
  await until(() => states.at(-1) === 'asleep');
  assert.equal(village.ends, 1);
  assert.equal((await manager.callTool('mcp__village__ring')).text, 'ring done');
  await until(() => states.at(-1) === 'asleep');
  assert.equal(village.starts, 2);
  let release = () => {};
  village.hold = new Promise((done) => (release = done));
  const long = manager.callTool('mcp__village__light'); // longer than it may be idle
  await until(() => village.starts === 3);
  const quick = manager.callTool('mcp__village__ring');
  release();
  assert.deepEqual([(await long).text, (await quick).text], ['light done', 'ring done']);
  const problem = (more: Json) =>
    problemWithConfig({ command: 'x', ...more }, onNode({ extensions: [sleepUntilNeeded()] })) ??
    '';
  assert.match(problem({ sleepAfterMs: '5' }), /sleepAfterMs/);
  assert.match(problem({ lazy: 1 }), /lazy/);
});

test('by default an idle server stays awake', async () => {
  const village = new Village();
  const { manager, state } = managerFor(village, folder());
  await manager.loadAndConnect();
  await manager.callTool('mcp__village__ring');
  assert.deepEqual([state(), village.ends], ['connected', 0]);
});

test('the file is for us alone; a damaged, planted or foreign one costs a start, and nothing else', async () => {
  const village = new Village();
  const home = await seen(village);
  const mine = join(home, '.mcp-by-hand');
  const [name] = readdirSync(mine).filter((each) => each.startsWith('known-'));
  const file = join(mine, name!);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const good = readFileSync(file, 'utf8');
  const spoiled = [
    '{',
    'null',
    '{"version":1,"at":1,"known":{"tools":[{"name":3}],"server":{}}}',
    good.replace(/"inputSchema": \{/, '"inputSchema": 7, "x": {'),
    good.replace(/"at": \d+/, '"at": 1e999'),
  ];
  for (const text of spoiled) {
    writeFileSync(file, text);
    village.starts = 0;
    const { manager, state } = managerFor(village, home);
    await manager.loadAndConnect();
    assert.deepEqual([village.starts, state()], [1, 'connected'], text.slice(0, 60));
    await manager.disconnectAll();
  }
  assert.equal(
    JSON.parse(readFileSync(file, 'utf8')).known.tools.length,
    2,
    'and is written again',
  );
  chmodSync(file, 0o666);
  village.starts = 0;
  await managerFor(village, home).manager.loadAndConnect();
  assert.equal(village.starts, 1);
});

test('a description that repeats a secret of ours is not kept', async () => {
  const village = new Village();
  const headers = { Authorization: 'Bearer 0123456789abcdef-secret' };
  village.tools = [tool('ring', 'Rings for Bearer 0123456789abcdef-secret.')];
  const home = await seen(village, { headers });
  const mine = join(home, '.mcp-by-hand');
  const names = existsSync(mine) ? readdirSync(mine) : [];
  assert.deepEqual(
    names.filter((name) => name.startsWith('known-')),
    [],
  );
});

test('twenty servers and a prompt that needs none: no process; /mcp says asleep, and what each costs', async () => {
  const marker = join(folder(), 'marker');
  const names = Array.from({ length: 20 }, (_, n) => `s${n}`);
  const config = habit('canary', marker); // writes the marker when it starts
  const where = place({}, userServers(Object.fromEntries(names.map((name) => [name, config]))));
  const known = new KnownTools({ home: where.home, cwd: where.cwd });
  const tools = [tool('echo'), tool('log')];
  for (const name of names) {
    const entry: ServerEntry = { name, config, file: 'x', scope: 'user', authority: 'user' };
    known.keep(entry, { server: { protocolVersion: '2025-11-25' }, tools });
  }
  const { code, out } = await run(where, ['--json', 'hello there']);
  assert.equal(code, 0, out);
  assert.ok(!existsSync(marker));
  const terminal = shell(where, []);
  terminal.type('/mcp\r');
  await terminal.see(/^s0: asleep · protocol 2025-11-25 · 2 tools · about \d+ tokens$/);
  await terminal.see(/^  it starts when it is called; its tools are those of last time$/);
  assert.ok(!existsSync(marker));
  terminal.type('/exit\r');
  await terminal.ended;
});
