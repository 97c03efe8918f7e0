// Chapter 25: a server in our own process.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { calculator } from '../chapters/25-other-pipes/calculator.ts';
import {
  builtIn,
  inProcess,
  linkedPair,
  withBuiltIns,
} from '../chapters/25-other-pipes/in-process.ts';
import { inBothEras } from '../chapters/22-no-handshake/era.ts';
import { loadEntries, REVISIONS, toolLabel, type Transport } from '../mcp.ts';
import { cleanUp, connect, goodServer, open, pause, rejection, until } from './help/basics.ts';
import { manage, prepare } from './help/manager.ts';
import { listen, note } from './help/transport-events.ts';

afterEach(cleanUp);

test('pair: what one end sends, the other receives: in a microtask, in order, and as a copy', async () => {
  const [ours, theirs] = linkedPair();
  const [heard, said] = [await listen(theirs), await listen(ours)];
  const first = note('a', { list: [1], nothing: undefined });
  const sent = [ours.send(first), ours.send(note('b')), theirs.send(note('c'))];
  (first.params!.list as number[]).push(2); // too late
  assert.deepEqual([heard, said], [[], []], 'nothing arrives within send()');
  await Promise.resolve();
  assert.deepEqual(heard, [
    { jsonrpc: '2.0', method: 'a', params: { list: [1] } },
    { jsonrpc: '2.0', method: 'b' },
  ]);
  assert.deepEqual(said, [{ jsonrpc: '2.0', method: 'c' }]);
  assert.deepEqual(await Promise.all(sent), [undefined, undefined, undefined]);
});

test('pair: what comes before anybody listens is kept; who has not started cannot send', async () => {
  const [ours, theirs] = linkedPair();
  assert.match((await rejection(ours.send(note('x')))).message, /call start\(\) first/);
  await listen(ours);
  for (const name of ['a', 'b', 'c']) await ours.send(note(name));
  const heard = await listen(theirs);
  await until(() => heard.length === 3);
  await ours.send(note('d'));
  assert.deepEqual(
    heard.map(({ method }) => method),
    ['a', 'b', 'c', 'd'],
  );
});

test('pair: to close one end is to close both; each is told once, after what was said before', async () => {
  const [ours, theirs] = linkedPair('MCP server "demo"');
  const [said, heard] = [await listen(ours), await listen(theirs)];
  void ours.send(note('last words'));
  void theirs.send(note('theirs'));
  const closing = ours.close();
  const late = await Promise.all([
    rejection(ours.send(note('late'))),
    rejection(theirs.send(note('late'))),
  ]);
  await Promise.all([closing, ours.close(), theirs.close()]);
  await pause(1);
  for (const [told, method] of [
    [said, 'theirs'],
    [heard, 'last words'],
  ] as const) {
    assert.equal(told.length, 2);
    assert.equal(told[0].method, method);
    assert.deepEqual([told[1].kind, told[1].message], ['closed', 'MCP server "demo" was closed']);
  }
  assert.deepEqual(late, [said[1], heard[1]]);
  assert.equal(await rejection(ours.send(note('later'))), said[1]);
});

test('pair: when close() has resolved both ends know; an end that starts later is refused', async () => {
  const [ours, theirs] = linkedPair();
  const said = await listen(ours);
  await theirs.close();
  assert.equal(said.length, 1);
  assert.equal(await rejection(listen(theirs)).then(({ kind }) => kind), 'closed');
});

test('pair: a receiver that closes in the middle of its messages gets those that were on their way, then the end', async () => {
  const [ours, theirs] = linkedPair();
  const told: unknown[] = [];
  await theirs.start({
    message: () => (told.push('message'), void theirs.close()),
    closed: () => told.push('closed'),
  });
  await listen(ours);
  await Promise.all([ours.send(note('a')), ours.send(note('b'))]);
  await pause(1);
  assert.deepEqual(told, ['message', 'message', 'closed']);
  await assert.rejects(ours.send(note('c')));
});

test('pair: a receiver that throws loses its pipe, and does not take the program along', async () => {
  const crash = (transport: Transport) =>
    void transport.start({
      message: () => {
        throw new Error('out of fuel');
      },
      closed() {},
    });
  const { connection } = await connect({ type: 'toy' }, { transports: { toy: builtIn(crash) } });
  const why = await rejection(connection.request('ping'));
  assert.match(
    why.message,
    /^MCP server "demo" \(built in\) was closed after a mistake of this program: out of fuel$/,
  );
});

test('built in: a server that cannot start fails connect', async () => {
  const toy = builtIn(() => {
    throw new Error('no fuel');
  });
  const why = await rejection(connect({ type: 'toy' }, { transports: { toy } }));
  assert.match(why.message, /MCP server "demo" could not be started: no fuel/);
});

const transports = { 'in-process': inProcess({ calculator }) };
const calculatorConfig = { type: 'in-process', name: 'calculator' };

test('calculator: the same tools and answers as the server that is a process', async () => {
  const program = await open({ command: process.execPath, args: [goodServer] });
  const ours = await open(calculatorConfig, { transports });
  const tell = async ({ connection }: typeof ours) => {
    const calls = [
      ['add', { a: 2, b: 40 }],
      ['add', { a: '2', b: 1 }],
      ['greet', { name: 'Ada' }],
      ['greet', {}],
    ] as const;
    const results = [];
    for (const [name, args] of calls) results.push(await connection.callTool(name, args));
    const refusals = [
      await rejection(connection.callTool('sing')),
      await rejection(connection.request('resources/list')),
    ];
    const refused = refusals.map(({ code, message }) => [code, message]);
    return [
      connection.server,
      await connection.listTools(),
      await connection.request('ping'),
      results,
      refused,
    ];
  };
  assert.deepEqual(await tell(ours), await tell(program));
  assert.deepEqual(ours.warnings, []);
});

test('calculator: it speaks every revision with a handshake, and the one without', async () => {
  for (const protocolVersion of [...REVISIONS, '1999-01-01']) {
    const { connection } = await connect(calculatorConfig, { transports });
    const answer = await connection.request('initialize', { protocolVersion });
    assert.equal(
      answer.protocolVersion,
      REVISIONS.includes(protocolVersion) ? protocolVersion : REVISIONS[0],
    );
  }
  const { connection, wire, warnings } = await open(calculatorConfig, {
    transports,
    extensions: inBothEras(),
  });
  assert.deepEqual(
    [connection.server!.protocolVersion, connection.server!.serverInfo!.name],
    ['2026-07-28', 'calculator-and-greeter'],
  );
  assert.deepEqual(
    (await connection.listTools()).map(({ name }) => name),
    ['add', 'greet'],
  );
  assert.equal((await connection.callTool('add', { a: 2, b: 40 })).text, '42');
  assert.ok(
    wire.every(
      ([direction, { result }]) =>
        direction === 'out' || result.resultType === 'complete' || result.protocolVersion,
    ),
  ); // or it answers `initialize`
  assert.deepEqual(warnings, []);
  const _meta = { 'io.modelcontextprotocol/protocolVersion': '2099-01-01' };
  const plain = await connect(calculatorConfig, { transports });
  const { code, data } = await rejection(plain.connection.request('tools/list', { _meta }));
  assert.deepEqual([code, data], [-32022, { supported: ['2026-07-28'], requested: '2099-01-01' }]);
});

test('built in: no such server is an error that names those there are', async () => {
  for (const name of ['abacus', '__proto__', undefined]) {
    const why = await rejection(connect({ type: 'in-process', name }, { transports }));
    assert.deepEqual(
      [why.kind, why.message],
      ['config', `MCP server "demo": no built-in server is called "${name}"; there is calculator`],
    );
  }
});

test('built in: a manager connects them without a file, beside the configured ones', async () => {
  const { home, cwd } = prepare({});
  const load = withBuiltIns({ calculator }, (report) => loadEntries(home, cwd, report));
  const { manager, state } = await manage({}, undefined, { transports, load });
  assert.deepEqual(
    [state('calculator').state, state('calculator').file, state('calculator').tools],
    ['connected', 'built in', 2],
  );
  assert.equal((await manager.callTool('mcp__calculator__add', { a: 2, b: 40 })).text, '42');
  await manager.reconnect('calculator');
  assert.equal(
    (await manager.callTool('mcp__calculator__greet', { name: 'Ada' })).text,
    'Hello, Ada!',
  );
});

test('built in: their names are reserved, and whoever takes one is told in which file', async () => {
  const other = { command: process.execPath, args: [goodServer] };
  for (const isProject of [false, true]) {
    const mine = { calculator: { command: 'evil' }, other };
    const files = isProject ? prepare({}, mine) : prepare(mine);
    const load = withBuiltIns({ calculator }, (report) =>
      loadEntries(files.home, files.cwd, report),
    );
    const { manager, state } = await manage({}, undefined, {
      transports,
      load,
      approve: () => true,
    });
    assert.equal(manager.warnings.length, 1);
    assert.match(
      manager.warnings[0]!,
      /^MCP server "calculator" in .*(settings|\.mcp)\.json is ignored: a built-in server has that name; rename it$/,
    );
    assert.ok(manager.warnings[0]!.includes(isProject ? files.cwd : files.home));
    assert.deepEqual(
      [state('calculator').file, state('calculator').state, state('other').state],
      ['built in', 'connected', 'connected'],
    );
  }
});

test('built in: nor can a configured server take the labels of one', async () => {
  const name = 'the calculator';
  const [, rival] = /^mcp__(.*)__x$/.exec(toolLabel(name, 'x'))!;
  const { home, cwd } = prepare({ [rival!]: { command: process.execPath, args: [goodServer] } });
  const load = withBuiltIns({ [name]: calculator }, (report) => loadEntries(home, cwd, report));
  const { state } = await manage({}, undefined, {
    transports: { 'in-process': inProcess({ [name]: calculator }) },
    load,
  });
  assert.deepEqual([state(name).state, state(rival!).state], ['connected', 'failed']);
  assert.match(
    state(rival!).reason!,
    /its tools would have the same names as those of "the calculator"/,
  );
});
