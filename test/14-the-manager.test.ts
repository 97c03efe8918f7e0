// Chapter 14: lazy, side by side; one bad server spoils nothing.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import type { Extension, ServerEntry } from '../mcp.ts';
import {
  allGone,
  cleanUp,
  folder,
  goodServer,
  habit,
  isRunning,
  pause,
  pidsIn,
  rejection,
  until,
} from './help/basics.ts';
import { manage, prepare } from './help/manager.ts';
import { toolLabel } from './help/subject.ts';

afterEach(cleanUp);

const good = { command: process.execPath, args: [goodServer] };
const listing = (...names: string[]) =>
  habit('tools', JSON.stringify(names.map((name) => ({ name }))));

test('it connects, lists, routes and says goodbye', async () => {
  const { manager, home } = await manage({ calc: good });
  const [add] = manager.getToolDefinitions();
  assert.deepEqual(
    [add!.name, add!.description, add!.server],
    ['mcp__calc__add', 'Adds two numbers.', 'calc'],
  );
  assert.equal((await manager.callTool('mcp__calc__add', { a: 2, b: 40 })).text, '42');
  const { startMs, ...status } = manager.status()[0]!;
  assert.equal(typeof startMs, 'number');
  assert.deepEqual(status, {
    name: 'calc',
    file: join(home, '.claude', 'settings.json'),
    scope: 'user',
    authority: 'user',
    shadows: undefined,
    state: 'connected',
    reason: undefined,
    tools: 2,
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'calculator-and-greeter', version: '1.0.0' },
    warnings: [],
  });
  await manager.disconnectAll();
  assert.deepEqual([manager.status()[0]!.state, manager.getToolDefinitions()], ['closed', []]);
});

test('nothing starts before loadAndConnect', async () => {
  const file = join(folder(), 'starts');
  const { manager } = prepare({ canary: habit('canary', file) });
  await pause(200);
  assert.deepEqual([manager.status(), pidsIn(file)], [[], []]);
});

test('bad servers of every kind have a state and a reason, and the good one works', async () => {
  const { manager, state } = await manage(
    {
      good,
      missing: { command: 'no-such-command-here' },
      dies: habit('dies-at-once'),
      mute: habit('mute'),
      refuses: habit('refuses-initialize'),
      stranger: habit('version', '{"protocolVersion":"9999-01-01"}'),
      loops: habit('repeats-its-cursor'),
      wrong: { command: 'node', args: 'x' },
      remote: { type: 'http', url: 'http://127.0.0.1:1' },
      unset: { command: 'node', args: ['${NO_SUCH_VARIABLE_HERE}'] },
      nothing: null,
      '../../x': good,
    },
    undefined,
    { handshakeTimeoutMs: 2000 },
  );
  const reasons: Record<string, RegExp> = {
    missing: /"missing" \(no-such-command-here\) could not be started: command not found/,
    dies: /exited with code 3.*\n {2}cannot find my configuration/,
    mute: /did not answer initialize within 2 s/,
    refuses: /Not today/,
    stranger: /9999-01-01.*2025-11-25/,
    loops: /repeats the cursor/,
    wrong: /"wrong" in .*settings\.json: "args" is not a list of strings/,
    remote: /"remote" in .*: its type is "http"/,
    unset: /"unset" in .*settings\.json: \$\{NO_SUCH_VARIABLE_HERE\} is not set/,
    nothing: /"nothing" in .*settings\.json: its entry is not an object/,
    '../../x': /"..\/..\/x" in .*settings\.json: a server cannot have this name/,
  };
  for (const [name, reason] of Object.entries(reasons)) {
    assert.equal(state(name).state, 'failed', name);
    assert.match(state(name).reason!, reason);
  }
  assert.equal(state('good').state, 'connected');
  assert.deepEqual(
    manager.getToolDefinitions().map(({ server }) => server),
    ['good', 'good'],
  );
  assert.equal((await manager.callTool('mcp__good__add', { a: 1, b: 1 })).text, '2');
});

test('a server that fails after its handshake is ended as well', async () => {
  const file = join(folder(), 'pid');
  const { state } = await manage({ loops: habit('repeats-its-cursor', file) });
  assert.equal(state('loops').state, 'failed');
  await allGone(file);
});

test('fault 19: servers start side by side', async () => {
  const meeting = folder(); // each answers only when all ten are there
  const names = Array.from({ length: 10 }, (_, n) => `s${n}`);
  const { manager } = await manage(
    Object.fromEntries(names.map((name) => [name, habit('meets', `${meeting}:10`)])),
  );
  assert.deepEqual(
    manager.status().map(({ state }) => state),
    names.map(() => 'connected'),
  );
});

test('`concurrency` bounds how many start at once, and all get their turn', async () => {
  const meeting = folder();
  const names = ['a', 'b', 'c', 'd'];
  // With two at a time the third would never come to a meeting of three.
  const config = Object.fromEntries(names.map((name) => [name, habit('meets', `${meeting}:3`)]));
  const { manager } = await manage(config, undefined, { concurrency: 2, handshakeTimeoutMs: 2000 });
  assert.deepEqual(
    manager.status().map(({ state }) => state),
    ['failed', 'failed', 'connected', 'connected'],
  );
});

test('`concurrency` may be anything', async () => {
  for (const concurrency of [Infinity, 0, -1, NaN, 1000]) {
    const { state } = await manage({ good }, undefined, { concurrency });
    assert.equal(state('good').state, 'connected', `${concurrency}`);
  }
});

test('one slow server holds nobody up: the others can be used while it starts', async () => {
  const { manager, state } = prepare({ slow: habit('mute'), good }, undefined, {
    handshakeTimeoutMs: 1e8,
  });
  void manager.loadAndConnect();
  await until(() => manager.isMcpTool('mcp__good__add'));
  assert.equal((await manager.callTool('mcp__good__add', { a: 1, b: 2 })).text, '3');
  assert.equal(state('slow').state, 'connecting');
});

test('fault 20: called from two places at once, it connects once, and both find the tools', async () => {
  const file = join(folder(), 'starts');
  const { manager } = prepare({ canary: habit('canary', file) });
  const found = await Promise.all(
    [1, 2, 3].map(() => manager.loadAndConnect().then(() => manager.getToolDefinitions().length)),
  );
  await manager.loadAndConnect();
  assert.ok(
    found.every((count) => count > 0),
    `${found}`,
  );
  assert.equal(readFileSync(file, 'utf8'), 'started\n');
});

test('the order of the tools is that of the files, whoever connects first', async () => {
  const { manager } = await manage({ slow: habit('slow-start', '300'), fast: good });
  const servers = manager.getToolDefinitions().map(({ server }) => server);
  assert.deepEqual([...new Set(servers)], ['slow', 'fast']);
});

test('fault 21: closing during the start leaves nothing running', async () => {
  const file = join(folder(), 'pids');
  const { manager } = prepare(
    { stubborn: habit('stubborn', file), mute: habit('mute') },
    undefined,
    { handshakeTimeoutMs: 1e8 },
  );
  const loading = manager.loadAndConnect();
  await until(() => pidsIn(file).length === 2);
  await manager.disconnectAll();
  await allGone(file);
  await loading;
  assert.deepEqual(
    manager.status().map(({ state }) => state),
    ['closed', 'closed'],
  );
});

test('fault 21: a server whose turn has not come when everything is closed is never started', async () => {
  const file = join(folder(), 'starts');
  const { manager } = prepare({ mute: habit('mute'), next: habit('canary', file) }, undefined, {
    concurrency: 1,
    handshakeTimeoutMs: 1e8,
  });
  const loading = manager.loadAndConnect();
  await pause(200);
  await manager.disconnectAll();
  await loading;
  assert.deepEqual(pidsIn(file), []);
});

test('closing is side by side, and everyone is told before anyone is made to leave', async () => {
  const meeting = folder(); // each leaves only when all three have been told to
  const config = Object.fromEntries(
    ['a', 'b', 'c'].map((name) => [name, habit('leaves-together', `${meeting}:3`)]),
  );
  const { manager } = await manage(config);
  await manager.disconnectAll();
  assert.equal(readdirSync(meeting).filter((name) => name.startsWith('left-')).length, 3);
});

test('after disconnectAll it can begin anew, with what the files say then', async () => {
  const { manager } = await manage({ calc: good });
  await manager.disconnectAll();
  await manager.loadAndConnect();
  assert.equal((await manager.callTool('mcp__calc__add', { a: 3, b: 4 })).text, '7');
  await manager.disconnectAll();
  await manager.disconnectAll();
});

test('a server that dies is reported as such; its tools say why they cannot be called', async () => {
  const { manager, state } = await manage({ frail: habit(), good });
  await rejection(manager.callTool('mcp__frail__exit', { code: 8 }));
  assert.deepEqual([state('frail').state, state('good').state], ['failed', 'connected']);
  assert.match(state('frail').reason!, /exited with code 8/);
  assert.match(
    (await rejection(manager.callTool('mcp__frail__echo'))).message,
    /exited with code 8/,
  );
});

test('fault 25: a changed tool list is read anew, once for many notices', async () => {
  const wire: string[] = [];
  const onWire = (direction: string, message: any) => wire.push(`${direction} ${message.method}`);
  const { manager } = await manage({ plant: habit('grows-a-tool') }, undefined, { onWire });
  assert.ok(!manager.isMcpTool('mcp__plant__new'));
  await manager.callTool('mcp__plant__grow');
  await until(() => manager.isMcpTool('mcp__plant__new'));
  assert.equal((await manager.callTool('mcp__plant__new')).text, 'I am new');
  assert.equal(wire.filter((line) => line === 'out tools/list').length, 2);
});

test('fault 25: a server that announces a change at every look does not keep us busy, and works', async () => {
  const wire: string[] = [];
  const onWire = (direction: string, message: any) => wire.push(`${direction} ${message.method}`);
  const { manager } = await manage({ restless: habit('changes-for-ever') }, undefined, { onWire });
  await until(() => manager.isMcpTool('mcp__restless__look2'));
  await manager.callTool('mcp__restless__echo');
  const looks = () => wire.filter((line) => line === 'out tools/list').length;
  const before = looks();
  await pause(1000);
  assert.ok(looks() - before <= 11, `${looks() - before} looks in a second`);
  assert.deepEqual(manager.warnings, []);
});

test('a handler of our own for list changes is called as well', async () => {
  const seen: string[] = [];
  const noting: Extension = ({ serverName }) => ({
    handlers: { 'notifications/tools/list_changed': () => void seen.push(serverName) },
  });
  const { manager } = await manage({ plant: habit('grows-a-tool') }, undefined, {
    extensions: [noting],
  });
  await manager.callTool('mcp__plant__grow');
  await until(() => manager.isMcpTool('mcp__plant__new'));
  assert.equal(seen[0], 'plant');
});

test('a connection is there by its name, for what is not a tool', async () => {
  const { manager } = await manage({ s: habit() });
  assert.deepEqual(await manager.connection('s')!.request('ping'), {});
  assert.equal(manager.connection('t'), undefined);
});

test('onChanged tells what has changed, after the manager has looked again', async () => {
  const seen: unknown[] = [];
  const { manager } = await manage({ plant: habit('grows-a-tool') }, undefined, {
    onChanged: (name, what) => seen.push([name, what, manager.isMcpTool('mcp__plant__new')]),
  });
  await manager.callTool('mcp__plant__grow');
  await until(() => seen.length > 0);
  assert.deepEqual(seen, [['plant', 'tools', true]]);
  await manager.callTool('mcp__plant__tell', { method: 'notifications/prompts/list_changed' });
  await until(() => seen.length > 1);
  assert.deepEqual(seen[1], ['plant', 'prompts', true]);
});

test('a server that was approved in the moment in which everything is closed does not start', async () => {
  const file = join(folder(), 'starts');
  for (let turns = 0; turns < 6; turns++) {
    const { manager } = prepare({ canary: habit('canary', file) }, undefined, {
      approve: async () => {
        let closing = Promise.resolve();
        for (let n = 0; n < turns; n++) closing = closing.then(() => {});
        void closing.then(() => manager.disconnectAll());
        return true;
      },
    });
    await manager.loadAndConnect();
    assert.equal(manager.status()[0]!.state, 'closed');
    assert.notEqual(
      manager.connection('canary')?.isClosed,
      false,
      `${turns}: it runs, and nothing will end it`,
    );
  }
});

test('listeners that throw harm neither a server nor a call', async () => {
  const warnings: string[] = [];
  const throws = () => {
    throw new Error('my mistake');
  };
  const { manager, state } = await manage({ plant: habit('grows-a-tool') }, undefined, {
    onState: throws,
    onChanged: throws,
    onWarning: (warning) => warnings.push(warning),
  });
  assert.equal(state('plant').state, 'connected');
  await manager.callTool('mcp__plant__grow');
  await until(() => warnings.length === 2);
  assert.deepEqual(warnings, Array(2).fill('a listener of the manager failed: my mistake'));
});

test('a look that was planned is not taken any more when everything is closed', async () => {
  const told: string[] = [];
  const { manager } = await manage({ plant: habit('grows-a-tool') }, undefined, {
    onChanged: (name) => told.push(name),
    onWarning: (warning) => told.push(warning),
  });
  await manager.callTool('mcp__plant__grow');
  await manager.disconnectAll();
  await pause(300);
  assert.deepEqual(told, []);
});

test('a state follows its connection: what ends, reopens or gives up is told, and the same twice is told once', async () => {
  const told: string[] = [];
  const { manager, state } = await manage({ s: habit() }, undefined, {
    onState: (_, now, why = '') => told.push(`${now} ${why}`.trim()),
  });
  const connection = manager.connection('s')!;
  await rejection(manager.callTool('mcp__s__exit', { code: 3 }));
  assert.equal(state('s').state, 'failed');
  await connection.reopen();
  assert.equal(state('s').state, 'connecting');
  await connection.initialize();
  await connection.initialize(); // a new session on the same transport
  assert.equal(state('s').state, 'connected');
  connection.giveUp(new Error('enough'));
  assert.deepEqual([state('s').state, state('s').reason], ['failed', 'enough']);
  assert.deepEqual(
    told.map((each) => each.replace(/ MCP.*/s, '')),
    ['connected', 'failed', 'connected', 'failed enough'],
  );
});

test('a file that cannot be read is a warning, and the other files count', async () => {
  const warned: string[] = [];
  const { manager } = await manage({ good }, 7 as never, {
    onWarning: (warning) => warned.push(warning),
  });
  assert.match(
    manager.warnings.join(),
    /\.mcp\.json is ignored: its "mcpServers" is not an object/,
  );
  assert.deepEqual(warned, manager.warnings);
  assert.ok(manager.isMcpTool('mcp__good__add'));
});

test('a call can be limited, cancelled and followed through the manager too', async () => {
  const { manager } = await manage({ s: habit() });
  const seen: unknown[] = [];
  await manager.callTool(
    'mcp__s__work',
    { everyMs: 1, times: 3 },
    { onProgress: ({ progress }) => seen.push(progress) },
  );
  assert.deepEqual(seen, [1, 2, 3]);
  assert.equal(
    (await rejection(manager.callTool('mcp__s__sleep', { ms: 1e8 }, { timeoutMs: 50 }))).kind,
    'timeout',
  );
  assert.equal(
    (
      await rejection(
        manager.callTool('mcp__s__sleep', { ms: 1e8 }, { signal: AbortSignal.timeout(50) }),
      )
    ).kind,
    'aborted',
  );
});

test('a notice that comes before the handshake is done is not answered with a question', async () => {
  const wire: string[] = [];
  const onWire = (direction: string, message: any) =>
    direction === 'out' && wire.push(message.method);
  await manage({ early: habit('announces-early') }, undefined, { onWire });
  assert.deepEqual(wire.slice(0, 3), ['initialize', 'notifications/initialized', 'tools/list']);
});

test('an old list that comes late does not replace a newer one', async () => {
  const { manager } = await manage({ slow: habit('lists-slowly') }); // the second of three lists takes longest
  await manager.callTool('mcp__slow__echo'); // announces twice, with time between
  await until(() => manager.isMcpTool('mcp__slow__list3'));
  await pause(800);
  assert.ok(manager.isMcpTool('mcp__slow__list3'));
});

test('a server that dies with its last word is not connected', async () => {
  const server = `
    const say = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n');
    process.stdin.setEncoding('utf8').on('data', (text) => {
      for (const { id, method } of text.trim().split('\\n').map((line) => JSON.parse(line))) {
        if (method === 'initialize') say(id, { protocolVersion: '2025-11-25' });
        if (method === 'tools/list') process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result: { tools: [] } }) + '\\n' + 'x'.repeat(99_999));
      }
    });`;
  const { state } = await manage(
    { liar: { command: process.execPath, args: ['-e', server] } },
    undefined,
    { maxLineBytes: 2000 },
  );
  assert.deepEqual(
    [state('liar').state, /a line of more than 2000 bytes/.test(state('liar').reason!)],
    ['failed', true],
  );
});

test('nobody is asked about servers after everything was closed', async () => {
  const asked: string[] = [];
  const { manager } = prepare({ a: good, b: good, c: good }, undefined, {
    concurrency: 1,
    approve: async ({ name }) => {
      asked.push(name);
      await manager.disconnectAll();
      return true;
    },
  });
  await manager.loadAndConnect();
  assert.deepEqual(
    [asked, manager.status().map(({ state }) => state)],
    [['a'], ['closed', 'closed', 'closed']],
  );
});

test('one server can be started again, whatever became of it; the others are not disturbed', async () => {
  const { manager, state } = await manage({ dies: habit(), other: habit() });
  const pid = async (name: string) =>
    JSON.parse((await manager.callTool(`mcp__${name}__where`)).text).pid;
  const [first, other] = [await pid('dies'), await pid('other')];
  await rejection(manager.callTool('mcp__dies__exit', { code: 3 }));
  assert.equal(state('dies').state, 'failed');
  await manager.reconnect('dies');
  assert.equal(state('dies').state, 'connected');
  assert.notEqual(await pid('dies'), first);
  await manager.reconnect('dies'); // also one that is well
  assert.equal(state('dies').state, 'connected');
  assert.equal(await pid('other'), other);
  assert.match(
    (await rejection(manager.reconnect('nobody'))).message,
    /no MCP server is called "nobody"/,
  );
});

test('a server that is disabled ends, has no tools, and stays in the list until it is started again', async () => {
  const { manager, state } = await manage({ s: habit(), t: habit() });
  const { pid } = JSON.parse((await manager.callTool('mcp__s__where')).text);
  await manager.disable('s');
  assert.ok(!isRunning(pid));
  assert.deepEqual(
    [state('s').state, state('s').reason, manager.isMcpTool('mcp__s__echo')],
    ['disabled', undefined, false],
  );
  assert.ok(manager.isMcpTool('mcp__t__echo'));
  await manager.reconnect('s');
  assert.deepEqual([state('s').state, manager.isMcpTool('mcp__s__echo')], ['connected', true]);
});

test('`approve` can say that a server is switched off: it does not start, and that is not a failure', async () => {
  const marker = join(folder(), 'marker');
  const approve = ({ name }: ServerEntry) => (name === 'off' ? ('disabled' as const) : true);
  const { state } = await manage({ off: habit('canary', marker), on: habit() }, undefined, {
    approve,
  });
  assert.deepEqual(
    [state('off').state, state('on').state, existsSync(marker)],
    ['disabled', 'connected', false],
  );
});

test('`load` replaces the three files', async () => {
  const entry = {
    name: 'mine',
    config: habit(),
    file: '--somewhere',
    scope: 'test',
    authority: 'user' as const,
  };
  const load = (report: (problem: string) => void) => (report('odd'), new Map([['mine', entry]]));
  const { manager } = await manage({ fromFile: habit() }, undefined, { load });
  assert.deepEqual(
    manager.status().map(({ name, file, state }) => [name, file, state]),
    [['mine', '--somewhere', 'connected']],
  );
  assert.deepEqual(manager.warnings, ['odd']);
});

test('fault 18: a server called my__srv, one with spaces, tools with dots and unicode: all can be called', async () => {
  const { manager } = await manage({
    my__srv: habit(),
    'the other one': listing('echo.x', 'größe', 'x'.repeat(200)),
  });
  const definitions = manager.getToolDefinitions();
  for (const { name } of definitions) assert.match(name, /^[A-Za-z0-9_-]{1,64}$/);
  const echo = definitions.find(
    ({ server, tool }) => server === 'my__srv' && tool.name === 'echo',
  )!;
  assert.equal((await manager.callTool(echo.name, { a: 1 })).text, '{"a":1}');
  for (const name of ['echo.x', 'größe', 'x'.repeat(200)]) {
    const { name: label } = definitions.find(({ tool }) => tool.name === name)!;
    const error = await manager.callTool(label).catch((reason) => reason);
    assert.ok(
      error.message.includes(`Unknown tool: ${name}`),
      'the server is called by its own name for the tool',
    );
  }
});

test('C3: a + b__c and a__b + c, x.y and x_y are four tools, and each call reaches its own', async () => {
  const where = (cwd: string) => ({ ...habit(), cwd });
  const { manager } = await manage({ 'x.y': where('/tmp'), x_y: where('/') });
  const reached = async (server: string) => {
    const { name } = manager
      .getToolDefinitions()
      .find((each) => each.server === server && each.tool.name === 'where')!;
    return JSON.parse((await manager.callTool(name)).text).cwd;
  };
  assert.deepEqual([await reached('x.y'), await reached('x_y')], ['/tmp', '/']);

  const clash = await manage({ a: listing('b__c'), a__b: listing('c') });
  const definitions = clash.manager.getToolDefinitions();
  assert.deepEqual(
    definitions.map(({ server, tool }) => [server, tool.name]),
    [
      ['a', 'b__c'],
      ['a__b', 'c'],
    ],
  );
  assert.equal(new Set(definitions.map(({ name }) => name)).size, 2);
});

test("C3: a server named so as to take another's labels is refused by name, also while that one is not there", async () => {
  const thief = toolLabel('my srv', 'echo').slice('mcp__'.length, -'__echo'.length); // my_srv-xxxxxx
  for (const owner of [habit(), habit('dies-at-once')]) {
    const { manager, state } = await manage({ 'my srv': owner, [thief]: habit() });
    assert.equal(state(thief).state, 'failed');
    assert.match(state(thief).reason!, /its tools would have the same names as those of "my srv"/);
    assert.ok(manager.getToolDefinitions().every(({ server }) => server === 'my srv'));
  }
});

test('two tools of one server that would share a label: the first has it, the second is named', async () => {
  const taken = toolLabel('s', 'a b').slice('mcp__s__'.length);
  const { manager, state } = await manage({ s: listing('a b', taken) });
  assert.deepEqual(
    manager.getToolDefinitions().map(({ tool }) => tool.name),
    ['a b'],
  );
  assert.match(state('s').warnings.join(), /another is called mcp__s__a_b-/);
});

test('C4: tools called like built-in ones are still prefixed', async () => {
  const { manager } = await manage({ s: listing('Bash', 'read', 'write') });
  assert.deepEqual(
    manager.getToolDefinitions().map(({ name }) => name),
    ['mcp__s__Bash', 'mcp__s__read', 'mcp__s__write'],
  );
  assert.ok(!manager.isMcpTool('read') && manager.isMcpTool('mcp__s__read'));
});

test('a name that is in no table is an error that says so', async () => {
  const { manager } = await manage({ s: habit() });
  for (const name of ['mcp__s__nothing', 'mcp__t__echo', 'echo', '__proto__', 'constructor']) {
    assert.ok(!manager.isMcpTool(name));
    const error = await manager.callTool(name).catch((reason) => reason);
    assert.deepEqual(
      [error.kind, error.message],
      ['unknown-tool', `no MCP server has a tool called "${name}"`],
    );
  }
});

test('"disabled": true and "enabled": false switch a server off; what is neither true nor false is refused', async () => {
  const off = [{ disabled: true }, { enabled: false }, { disabled: true, enabled: true }];
  for (const words of off) {
    const { state } = await manage({ s: { command: 'no-such-command-here', ...words } });
    assert.equal(state('s').state, 'disabled', JSON.stringify(words));
  }
  for (const words of [{ disabled: 'true' }, { enabled: 0 }]) {
    const { state } = await manage({ s: { command: 'no-such-command-here', ...words } });
    assert.match(state('s').reason!, /abled" is not true or false/);
  }
});
