// Chapter 30 as processes of its own: `record`, `replay` and `trace`, through the program.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { httpTransports } from '../chapters/20-streamable-http/http.ts';
import { readTrace } from '../chapters/30-seeing/more/read-trace.ts';
import { McpConnection, type Json } from '../mcp.ts';
import { cleanUp, goodServer, later, rejection, until } from './help/basics.ts';
import { opener } from './help/hostile-login.ts';
import { peer } from './help/http-servers.ts';
import { command, jsonLines, place, run, start, Terminal, userServers } from './help/terminal.ts';

afterEach(cleanUp);

/** A client of the program, which is a server when it records or replays. */
async function talkTo(args: string[], cwd: string) {
  const [node, ...before] = command;
  const connection = new McpConnection(
    's',
    { command: node, args: [...before, ...args], cwd },
    { onWarning: () => {} },
  );
  later(() => connection.close());
  await connection.connect();
  await connection.initialize();
  const add = async (a: number, b: number) => (await connection.callTool('add', { a, b })).text;
  return { connection, add };
}

/** What a recording of two sums looks like, made by the program itself. */
async function recorded() {
  const where = place();
  const file = join(where.cwd, 'sums.jsonl');
  const { connection, add } = await talkTo(
    ['record', file, '--', process.execPath, goodServer],
    where.cwd,
  );
  await connection.listTools();
  assert.deepEqual([await add(2, 40), await add(1, 1)], ['42', '2']);
  await connection.close();
  await until(() => readFileSync(file, 'utf8').includes('"ended"'), 'the end of the recording');
  return { where, file };
}

test('trace check tells twenty findings one by one, and counts the others by their rule', async () => {
  const answer = (id: number) => ({
    dir: 'in',
    server: 's',
    msg: { jsonrpc: '2.0', id, result: {} },
  });
  const lines = Array.from({ length: 30 }, (_, n) => JSON.stringify(answer(n + 1)));
  const where = place({ 'odd.jsonl': lines.join('\n') });
  const judged = await run(where, ['trace', 'check', 'odd.jsonl']);
  const rows = judged.out.trim().split('\n');
  assert.equal(rows.length, 21, judged.out);
  assert.match(rows.at(-1)!, /^and 10 more of \[.*\], in lines 21, 22, 23, 24, 25, …$/);
  const all = await run(where, ['trace', 'check', 'odd.jsonl', '--json']);
  assert.equal(all.out.trim().split('\n').length, 30);
});

test('record, replay, replay --live, trace check: as processes, with their exit codes', async () => {
  const { where, file } = await recorded();
  const { header, messages, problems } = readTrace(readFileSync(file, 'utf8'));
  assert.deepEqual([header.version, problems, messages[0]!.server], [1, [], 'server']);
  const checked = await run(where, ['trace', 'check', file]);
  assert.deepEqual([checked.code, checked.out], [0, ''], checked.out + checked.err);

  // The same program as a server: in another order, and under a client that leaves politely.
  const again = await talkTo(['replay', file], where.cwd);
  assert.deepEqual([await again.add(1, 1), await again.add(2, 40)], ['2', '42']);
  const miss = await rejection(again.connection.callTool('add', { a: 2, b: 41 }));
  assert.match(miss.message, /the nearest, in line \d+, differs: arguments\.b is 41, recorded: 40/);
  await again.connection.close();

  // Misses are passed on to a real server, and are in the file the next time.
  const live = await talkTo(
    ['replay', file, '--live', '--', process.execPath, goodServer],
    where.cwd,
  );
  assert.deepEqual([await live.add(2, 40), await live.add(20, 22)], ['42', '42']);
  await live.connection.close();
  await until(() => /live-\d+-1","result/.test(readFileSync(file, 'utf8')), 'the miss in the file');
  const whole = await talkTo(['replay', file, 'server', '--speed', '1000'], where.cwd);
  assert.equal(await whole.add(20, 22), '42');
});

const HELLO = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'c', version: '1' },
  },
};
const say = (...messages: Json[]) =>
  messages.map((message) => `${JSON.stringify(message)}\n`).join('');
const sum = (id: number, b: number) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name: 'add', arguments: { a: 2, b } },
});

test('exit codes: 0 when all was in the recording, 1 after a miss or a finding, 2 for what cannot be done', async () => {
  const { where, file } = await recorded();
  const hello = await run(where, ['replay', file], { input: say(HELLO, sum(2, 40)) });
  assert.equal(hello.code, 0, hello.err);
  assert.equal(jsonLines(hello.out).find(({ id }) => id === 2).result.content[0].text, '42');
  const missed = await run(where, ['replay', file], { input: say(HELLO, sum(2, 41)) });
  assert.deepEqual(
    [missed.code, /^replay: the recording has no such tools\/call/m.test(missed.err)],
    [1, true],
    missed.err,
  );

  const bad = join(where.cwd, 'bad.jsonl');
  const twice = readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .filter((line) => line.includes('"result"'))
    .at(-1)!;
  writeFileSync(bad, `${readFileSync(file, 'utf8')}${twice}\n`);
  const judged = await run(where, ['trace', 'check', bad, '--json']);
  assert.deepEqual(
    [judged.code, jsonLines(judged.out).map(({ rule }) => rule)],
    [1, ['answer']],
    judged.err,
  );

  const table: string[][] = [
    ['replay'],
    ['replay', 'none.jsonl'],
    ['replay', file, '--live'],
    ['replay', file, '--speed', 'fast'],
    ['record'],
    ['record', 'x.jsonl'],
    ['trace', 'check'],
    ['trace', 'check', goodServer],
    ['trace', 'draw', file],
  ];
  for (const args of table) {
    const { code, err, out } = await run(where, args);
    assert.deepEqual([code, out], [2, ''], `${args}: ${err}`);
    assert.notEqual(err.trim(), '', `${args} says why`);
  }
});

test('record passes on the exit code of the server, and a signal that it gets', async () => {
  const where = place();
  const file = join(where.cwd, 't.jsonl');
  const ended = await run(where, ['record', file, '--', process.execPath, '-e', 'process.exit(7)']);
  assert.equal(ended.code, 7);
  const script =
    'process.on("SIGTERM", () => process.exit(9)); console.log("ready"); setInterval(() => {}, 1000)';
  const [node, ...before] = command;
  const child = spawn(node, [...before, 'record', file, '--', process.execPath, '-e', script], {
    cwd: where.cwd,
    env: { ...process.env, HOME: where.home },
  });
  later(() => child.kill('SIGKILL'));
  let out = '';
  child.stdout.on('data', (chunk) => {
    out += chunk;
  });
  const code = new Promise((done) => child.on('close', done));
  await until(() => out.includes('ready'));
  child.kill('SIGTERM');
  assert.equal(await code, 9, 'the server decided how to end');
});

test('replay --http: a client over HTTP gets the recorded answers; Ctrl-C ends it', async () => {
  const { where, file } = await recorded();
  const replay = start(where, ['replay', file, '--http']);
  await until(() => /http:\S+/.test(replay.seen.out + replay.seen.err), 'its address');
  const [url] = /http:\S+/.exec(replay.seen.out + replay.seen.err)!;
  const connection = new McpConnection(
    's',
    { type: 'http', url },
    { onWarning: () => {}, transports: httpTransports },
  );
  later(() => connection.close());
  await connection.connect();
  await connection.initialize();
  assert.equal((await connection.callTool('add', { a: 2, b: 40 })).text, '42');
  await connection.close();
  replay.child.kill('SIGINT');
  assert.equal((await replay.ended).code, 0);
});

test('record URL: call goes through, the file is played again; Ctrl-C ends it', async () => {
  const library = await peer({ 'tools/list': () => ({ tools: [{ name: 'x', inputSchema: {} }] }) });
  const where = place();
  const file = join(where.cwd, 'web.jsonl');
  const record = start(where, ['record', file, library.url]);
  await until(() => /http:\S+ until/.test(record.seen.err), 'its address');
  const [, local = ''] = /(http:\S+) until/.exec(record.seen.err)!;
  const call = (url: string) => run(where, ['call', url, 'x', '{"a":1}', '--no-check']);
  assert.equal((await call(local)).out, '{"a":1}\n');
  record.child.kill('SIGINT');
  assert.equal((await record.ended).code, 0);
  const replay = start(where, ['replay', file, '--http']);
  await until(() => /http:\S+/.test(replay.seen.err), 'its address');
  assert.equal((await call(/http:\S+/.exec(replay.seen.err)![0])).out, '{"a":1}\n');
  replay.child.kill('SIGINT');
  assert.equal((await replay.ended).code, 0);
  for (const words of [
    ['record', 'x', 'y'],
    ['record', local, '--', 'node'],
    ['record', file],
  ])
    assert.equal((await run(where, words)).code, 2, `${words}`);
  assert.equal((await run(where, ['record', file, 'ws://127.0.0.1/'])).code, 3);
});

test('G40: the token of the page is in no argument of what opens it', async () => {
  if (process.platform !== 'linux') return; // only there is `xdg-open` ours
  const where = place({});
  const { env, opened } = opener();
  const terminal = new Terminal(where, ['--page', '--no-color'], { ...env, HOME: where.home });
  await until(() => opened().length > 0, 'the browser');
  const [{ url, mode, command }] = opened() as [ReturnType<typeof opened>[number]];
  const [, token = ''] = /^http:\/\/127\.0\.0\.1:\d+\/(\w{32})\/#\w{32}$/.exec(url)!;
  assert.deepEqual([(await fetch(url)).status, mode], [200, 0o600]);
  assert.ok(!command.includes(token) && !command.includes('http'), command);
  await terminal.ready();
  terminal.enter('/exit');
  assert.equal(await terminal.ended(), 0);
  assert.deepEqual(readdirSync(join(where.home, '.mcp-by-hand', 'open')), []);
});

test('/page: opened in the midst of a chat it has the states of the servers, then every message; it ends with the program', async () => {
  const where = place(
    {},
    userServers({ calculator: { command: process.execPath, args: [goodServer] } }),
  );
  const chat = start(where, ['--allow', 'mcp__calculator__*'], { input: null });
  chat.child.stdin.write('hello\n/page\n');
  await until(() => /http:\S+/.test(chat.seen.out), 'its address');
  const [url = ''] = /http:\S+/.exec(chat.seen.out)!;
  const response = await fetch(`${url}events`);
  let told = '';
  const reading = (async () => {
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) told += chunk;
  })().catch(() => {}); // the end of the program
  await until(
    () => /"server":"calculator","state":"connected","transport":"stdio"/.test(told),
    'the state',
  );
  chat.child.stdin.write('add 2 and 40\n');
  await until(() => /"msg":\{[^\n]*"42"/.test(told), 'the answer on the page');
  assert.match(
    told,
    /"type":"prompt","text":"add 2 and 40"[^]*"type":"tool_start"[^]*"method":"tools\/call"/,
  );
  chat.child.stdin.end();
  assert.equal((await chat.ended).code, 0);
  await reading;
  await rejection(fetch(url)); // nothing listens there any more
});
