// Numbers that others choose: how many servers, tools, values, calls, bytes that wait, files that
// are left, seconds until a server is there. J2 grows, J3 is wide, J4 never ends, J6 drips, J7 comes in
// tiny pieces, J8 is left behind, J9 is called for again and again.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import {
  mkdirSync,
  readdirSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import v8 from 'node:v8';
import vm from 'node:vm';
import { afterEach, test } from 'node:test';
import { Roots, Trust } from '../agent.ts';
import { fitResult } from '../chapters/16-hands/results.ts';
import { bash } from '../chapters/16-hands/shell.ts';
import { takeLock } from '../chapters/17-the-gate/lock.ts';
import { keepSecrets, Masker } from '../chapters/17-the-gate/safe-text.ts';
import { fingerprint } from '../chapters/17-the-gate/trust.ts';
import { OpenAi } from '../chapters/18-minds/openai.ts';
import { EventParser } from '../chapters/18-minds/sse.ts';
import { httpTransports } from '../chapters/20-streamable-http/http.ts';
import { keepAnswers } from '../chapters/22-no-handshake/cache.ts';
import { KeptVerdicts } from '../chapters/22-no-handshake/verdicts.ts';
import { UnixSocketTransport } from '../chapters/25-other-pipes/unix-socket.ts';
import { LineBuffer, McpConnection, McpManager, StdioTransport } from '../mcp.ts';
import type { Extension, Json, Message, Transport, TransportEvents } from '../mcp.ts';
import { prepareAgent } from './help/agent-with-gate.ts';
import {
  allGone,
  cleanUp,
  connect,
  folder,
  habit,
  isRunning,
  later,
  onLoopback,
  open,
  pause,
  pidOf,
  pidsIn,
  rejection,
  until,
} from './help/basics.ts';
import { prepareLoop } from './help/agent-alone.ts';
import { KEYS, place, programFolder, run, start, Terminal, userServers } from './help/terminal.ts';

afterEach(cleanUp);

/** A server in this process that answers each method with what is in the table. */
function answering(results: Record<string, unknown>) {
  return (): Transport => {
    let events: TransportEvents;
    const answer = ({ id, method }: Message) => {
      const result = results[method!] ?? {};
      events.message({ jsonrpc: '2.0', id, result });
    };
    return {
      start: async (given) => void (events = given),
      send: async (message) => {
        if (message.id !== undefined) queueMicrotask(() => answer(message));
      },
      close: async () => {},
    };
  };
}
const HELLO = { protocolVersion: '2025-11-25', capabilities: { tools: {} } };
const entry = (name: string, config: Json) => ({
  name,
  config,
  file: 'a file',
  scope: 'user',
  authority: 'user' as const,
});

/** A program of a few lines as a server: what it gets is in `message`, `say` sends. */
const script = (code: string) => ({
  command: process.execPath,
  args: [
    '-e',
    `
    const say = (message) =>
      process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
    require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const message = JSON.parse(line);
      ${code}
    });`,
  ],
});

// ─── J2: what grows, grows in line ───────────────────────────────────────────────────────────────

test('J2: schemas are looked at when tools change, and not at every turn', async () => {
  let looks = 0;
  const inputSchema = { type: 'object', toJSON: () => ({ type: 'object', n: ++looks }) };
  const tools = Array.from({ length: 5000 }, (_, n) => ({ name: `tool${n}`, inputSchema }));
  const transports = { many: answering({ initialize: HELLO, 'tools/list': { tools } }) };
  const load = () => new Map([['s', entry('s', { type: 'many' })]]);
  const mcp = new McpManager({ transports, load });
  later(() => mcp.disconnectAll());
  const { agent } = prepareLoop({ script: ['one', 'two', 'three'], mcp });
  await agent.chat('go');
  assert.ok(looks <= 5000, `${looks} schemas were read for a table of 5000`);
  const before = looks;
  const { table } = agent;
  await agent.chat('go on');
  assert.deepEqual([looks, agent.table === table], [before, true]);
  assert.equal(mcp.getToolDefinitions(), mcp.getToolDefinitions());
  await mcp.disable('s');
  await agent.chat('and now');
  assert.equal(agent.table.size, 0);
});

test('J2: to look up a server in the trust store costs the same, however many it holds', async () => {
  const cost = async (rows: number) => {
    const home = folder();
    const cwd = folder();
    const { project } = new Trust({ home, cwd });
    const servers = Array.from({ length: rows }, (_, n) => {
      const config = { command: 'node', args: [`${n}`] };
      const print = fingerprint({ config });
      return { project, name: `s${n}`, fingerprint: print, verdict: 'allow', config };
    });
    mkdirSync(join(home, '.mcp-by-hand'), { mode: 0o700 });
    const store = JSON.stringify({ version: 1, servers, grants: [], disabled: [] });
    writeFileSync(join(home, '.mcp-by-hand', 'trust.json'), store, { mode: 0o600 });
    const trust = new Trust({ home, cwd });
    const ask = ({ name, config }: Json) =>
      trust.approve({ ...entry(`${name}`, config as Json), authority: 'project' });
    assert.equal(await ask(servers[0]!), true); // reads the file
    const startedAt = performance.now();
    for (const server of servers.slice(0, 200)) await ask(server);
    return performance.now() - startedAt;
  };
  const few = Math.min(await cost(200), await cost(200));
  const many = Math.min(await cost(20_000), await cost(20_000));
  assert.ok(many < few * 5, `${many} ms against ${few} ms`);
});

test('J2: of many that fail or are not approved a few are told, and how many more', async () => {
  const many = (count: number, config: (n: number) => Json) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`s${n}`, config(n)]));
  const mcpServers = many(300, (n) => ({ command: `c${n}` }));
  const unapproved = place({ '.mcp.json': { mcpServers } });
  const failing = place({}, userServers(many(300, () => ({ type: 'odd' }))));
  const [asked, failed] = await Promise.all([
    run(unapproved, [], { input: '/mcp\n' }),
    run(failing, ['-p', 'hello']),
  ]);
  assert.equal(asked.err.match(/is not started: you have not approved it/g)?.length, 5, asked.err);
  assert.match(asked.err, /More servers are not started for that reason/);
  assert.match(asked.out, /^s99: pending[^]*^and 200 more: .*mcp list$/m);
  assert.doesNotMatch(asked.out, /s100/);
  assert.ok(failed.err.split('\n').length < 10, failed.err);
  assert.match(failed.err, /295 more MCP servers failed/);
});

// ─── J3: width ───────────────────────────────────────────────────────────────────────────────────

const WIDE = `'{"jsonrpc":"2.0","id":1,"result":{"a":[' + '{},'.repeat(600_000) + '1]}}'`;

test('J3: a message of more than a million values is dropped before it is parsed', async () => {
  const code = `if (message.method === 'wide') process.stdout.write(${WIDE} + '\\n');
    else say({ id: message.id, result: {} });`;
  const { connection, warnings } = await connect(script(code));
  const wide = rejection(connection.request('wide', {}, { timeoutMs: 30_000 }));
  await until(() => warnings.length > 0);
  assert.match(warnings[0]!, /sent a message with more than 1000000 values, which is dropped/);
  assert.deepEqual(await connection.request('ping'), {});
  assert.equal((await wide).kind, 'limit');
});

/** A server that answers each request by a function. */
const serve = (answer: http.RequestListener) => onLoopback(http.createServer(answer));

test('J3: the same over HTTP fails the call', async () => {
  const url = await serve((_, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(new Function(`return ${WIDE}`)());
  });
  const { connection } = await connect({ type: 'http', url }, { transports: httpTransports });
  const error = await rejection(connection.request('tools/list'));
  assert.equal(error.kind, 'limit');
  assert.match(error.message, /more than 1000000 values/);
});

test('J3: pages that are each within bounds are bounded together', async () => {
  let pages = 0;
  const d = 'x'.repeat(2 ** 23);
  const page = () => ({ tools: [{ name: `t${++pages}`, d }], nextCursor: `${pages}` });
  const results = {
    initialize: HELLO,
    get 'tools/list'() {
      return page();
    },
  };
  const transports = { endless: answering(results) };
  const connection = new McpConnection('s', { type: 'endless' }, { transports });
  await connection.connect();
  await connection.initialize();
  const error = await rejection(connection.listTools());
  assert.equal(error.kind, 'limit', error.message);
  assert.ok(pages < 20, `${pages} pages of 8 MB`);
});

// ─── J3: the model's wire ────────────────────────────────────────────────────────────────────────

const deep = (levels: number) => '{"a":'.repeat(levels) + '1' + '}'.repeat(levels);
const called = (id: string, name: string, args: string) => ({
  id,
  type: 'function',
  function: { name, arguments: args },
});

/** A model that says these things, one after the other. Each is the message of a choice, or writes
 *  the response itself. */
async function modelThatSays(...answers: (Json | http.RequestListener)[]) {
  const bodies: string[] = [];
  const baseUrl = await serve(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    bodies.push(body);
    const answer = answers.shift() ?? { content: 'fine' };
    if (typeof answer === 'function') return answer(request, response);
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ choices: [{ message: answer, finish_reason: 'stop' }] }));
  });
  return { model: new OpenAi({ model: 'm', baseUrl }), bodies };
}

test('J3: arguments of a model that are nested too deeply are a result that says so', async () => {
  const { model, bodies } = await modelThatSays({ tool_calls: [called('1', 'x', deep(3000))] });
  const { agent, outcomes, of } = prepareLoop({ model, tools: [] });
  assert.deepEqual(await agent.chat('go'), { ending: 'done', text: 'fine' });
  assert.deepEqual([outcomes(), of('note')], [['unknown'], []]);
  assert.ok(bodies[1]!.length < 10_000);
  assert.equal((await agent.chat('and now')).ending, 'done');
});

test('J3: 150,000 calls in one answer are an error, and the conversation goes on', async () => {
  const calls = Array.from({ length: 150_000 }, (_, n) => called(`c${n}`, 'x', '{}'));
  const { model, bodies } = await modelThatSays({ tool_calls: calls });
  const { agent, of } = prepareLoop({ model });
  assert.equal((await agent.chat('go')).ending, 'error');
  assert.match(of('error')[0]!.message, /150000 calls/);
  assert.deepEqual(await agent.chat('and now'), { ending: 'done', text: 'fine' });
  assert.ok(bodies[1]!.length < 10_000);
});

test('J3: a text without an end is an error, and what is kept of it fits a request', async () => {
  const { model, bodies } = await modelThatSays((_, response) => {
    response.setHeader('content-type', 'text/event-stream');
    const piece = { choices: [{ delta: { content: 'blah '.repeat(20_000) } }] };
    const write = () => {
      while (!response.destroyed && response.write(`data: ${JSON.stringify(piece)}\n\n`));
    };
    response.on('drain', write);
    write();
  });
  const { agent, of } = prepareLoop({ model });
  assert.equal((await agent.chat('go')).ending, 'error');
  assert.match(of('error')[0]!.message, /more than 2000000 characters/);
  assert.deepEqual(await agent.chat('and now'), { ending: 'done', text: 'fine' });
  assert.ok(bodies[1]!.length < 150_000);
});

test('J3: a name on each of many pieces of a call is not a look at all of them', async () => {
  const { model } = await modelThatSays((_, response) => {
    response.setHeader('content-type', 'text/event-stream');
    const piece = (args: string) => {
      const delta = { tool_calls: [{ function: { name: 'x', arguments: args } }] };
      return `data: ${JSON.stringify({ choices: [{ delta }] })}\n\n`;
    };
    response.write(piece(`{"a":"${'x'.repeat(8_000_000)}`));
    response.end(piece('x').repeat(20_000) + 'data: [DONE]\n\n');
  });
  const { agent, outcomes } = prepareLoop({ model, tools: [] });
  assert.equal((await agent.chat('go')).ending, 'done');
  assert.deepEqual(outcomes(), ['unknown'], 'they are pieces of one call');
});

test('J3: and each piece of a call is read once, however many there are', async () => {
  let read = 0;
  const { parse } = JSON;
  JSON.parse = (text, ...rest) => {
    read += text.length;
    return parse(text, ...rest);
  };
  later(() => (JSON.parse = parse));
  const half = 'x'.repeat(100_000);
  const { model } = await modelThatSays((_, response) => {
    response.setHeader('content-type', 'text/event-stream');
    const piece = (args: string) => {
      const delta = { tool_calls: [{ function: { name: 'x', arguments: args } }] };
      return `data: ${JSON.stringify({ choices: [{ delta }] })}\n\n`;
    };
    const pieces = [`{"a":"}${half}`, ...Array(100).fill('x'), '"}', '{"b":', '[]}'];
    response.end(pieces.map(piece).join('') + 'data: [DONE]\n\n');
  });
  const { agent, of } = prepareLoop({ model, tools: [] });
  assert.equal((await agent.chat('go')).ending, 'done');
  const args = of('tool_start').map((event) => event.args);
  assert.deepEqual(args, [{ a: `}${half}${'x'.repeat(100)}` }, { b: [] }]);
  assert.ok(read < 5 * half.length, `${read} characters were parsed for ${half.length}`);
});

test('B16: an answer that is dropped fails its call at once, at whichever end its id is', async () => {
  const wide = `'[' + '{},'.repeat(600_000) + '1]'`;
  const code = `const wide = ${wide};
    const { id, method } = message;
    const answers = {
      first: '{"jsonrpc":"2.0","id":' + id + ',"result":' + wide + '}',
      last: '{"result":{"id":2,"a":' + wide + '},"jsonrpc":"2.0","id":' + id + '}',
      error: '{"id": ' + id + ', "jsonrpc": "2.0", "error": ' + wide + ' }',
      // Not an answer, though it has the id of one that is awaited:
      asks: '{"jsonrpc":"2.0","id":' + id + ',"method":"x","params":' + wide + '}',
      tells: '{"jsonrpc":"2.0","method":"x","params":' + wide + ',"id":' + id + '}',
    };
    process.stdout.write((answers[method] ?? '') + '\\n');
    if (method === 'asks' || method === 'tells') say({ id, result: { method } });`;
  const { connection } = await connect(script(code));
  for (const method of ['first', 'last', 'error']) {
    const { kind, message } = await rejection(connection.request(method));
    assert.equal(kind, 'limit', method);
    assert.match(message, /more than 1000000 values, which is dropped/);
  }
  for (const method of ['asks', 'tells'])
    assert.deepEqual(await connection.request(method), { method });
});

// ─── J4: what never ends ─────────────────────────────────────────────────────────────────────────

/** Sends until it is refused. */
async function fill(transport: Pick<Transport, 'send'>): Promise<any> {
  const params = { text: 'x'.repeat(2 ** 24) };
  for (let n = 0; n < 10; n++) {
    const sent = transport.send({ jsonrpc: '2.0', method: 'much', params });
    const refused = await Promise.race([
      sent.then(
        () => undefined,
        (error) => error,
      ),
      pause(20),
    ]);
    if (refused) return refused;
  }
  return undefined;
}

test('J4: what waits for a server that does not read is bounded; the connection lives', async () => {
  const deaf = { command: process.execPath, args: ['-e', 'setInterval(() => {}, 1000)'] };
  const ends: Error[] = [];
  const events = { message() {}, closed: (why: Error) => ends.push(why) };
  const stdio = new StdioTransport('deaf', deaf, 2 ** 20);
  later(() => stdio.close());
  const path = join(folder(), 's');
  const server = net.createServer((socket) => later(() => socket.destroy()) ?? socket.pause());
  await new Promise<void>((done) => server.listen(path, done));
  later(() => server.close());
  const socket = new UnixSocketTransport('deaf', { path }, 2 ** 20);
  later(() => socket.close());
  for (const transport of [stdio, socket]) {
    await transport.start(events);
    const error = await fill(transport);
    assert.equal(error?.kind, 'unreachable');
    assert.match(error.message, /"deaf".* does not read what we send: more than 67108864 char/);
  }
  assert.deepEqual(ends, []);
});

test('J4: answers that may be kept are kept up to a size, all together', async () => {
  let reads = 0;
  const contents = [{ uri: 'a:b', text: 'x'.repeat(2 ** 20) }];
  const results = {
    get 'resources/read'() {
      reads++;
      return { contents, ttlMs: 1e9 };
    },
  };
  const handshake = async () => ({ protocolVersion: '2026-07-28' });
  const stateless: Extension = () => ({ handshake });
  const options = { transports: { big: answering(results) }, extensions: [keepAnswers, stateless] };
  const connection = new McpConnection('s', { type: 'big' }, options);
  await connection.connect();
  await connection.initialize();
  const read = (n: number) => connection.request('resources/read', { uri: `a:${n}` });
  for (let n = 0; n < 20; n++) await read(n);
  await read(19);
  assert.equal(reads, 20); // kept
  await read(0);
  assert.equal(reads, 21); // not kept any more
});

test('J4: old results are removed from the disk, and nothing that is not surely ours', () => {
  const results = join(folder(), 'results');
  mkdirSync(join(results, 'result-0009-folder.txt'), { recursive: true });
  const put = (name: string, days: number) => {
    const time = Date.now() / 1000 - days * 24 * 3600;
    writeFileSync(join(results, name), 'old');
    utimesSync(join(results, name), time, time);
  };
  put('result-0001-old.txt', 40);
  put('result-0002-new.txt', 1);
  put('result-0003-huge.txt', 20);
  put('result-0004-after.txt', 10);
  truncateSync(join(results, 'result-0003-huge.txt'), 2 ** 30); // a hole: it takes no room
  const time = Date.now() / 1000 - 20 * 24 * 3600;
  utimesSync(join(results, 'result-0003-huge.txt'), time, time);
  put('notes.txt', 400);
  put('result-0005-mine.txt.bak', 400);
  symlinkSync(join(results, 'notes.txt'), join(results, 'result-0006-link.txt'));
  const blocks = [{ type: 'text' as const, text: 'x'.repeat(200_000) }];
  fitResult({ blocks, isError: false }, results, 'tool');
  const names = readdirSync(results).map((name) => name.replace(/\d+-tool/, 'N-tool'));
  assert.deepEqual(names.sort(), [
    'notes.txt',
    'result-0002-new.txt',
    'result-0004-after.txt',
    'result-0005-mine.txt.bak',
    'result-0006-link.txt',
    'result-0009-folder.txt',
    'result-N-tool.txt',
  ]);
});

// ─── J6: what drips ──────────────────────────────────────────────────────────────────────────────

/** A server that says one byte now and then, and never a message. Its pid is in the file. */
const dripping = (pids: string) => ({
  command: process.execPath,
  args: [
    '-e',
    `
    require('fs').appendFileSync(${JSON.stringify(pids)}, process.pid + '\\n');
    process.stdin.resume();
    setInterval(() => process.stdout.write('{'), 500);`,
  ],
});

test('J6: an answer does not wait for a server that drips', { timeout: 14_000 }, async () => {
  const where = place({}, userServers({ slow: dripping(join(folder(), 'pids')), good: habit() }));
  const { code, err, out } = await run(where, ['-p', 'hello'], { env: { MCP_GRACE: '1500' } });
  assert.equal(code, 0, err);
  assert.match(err, /^! still starting: slow; the answer does not wait for it/m);
  assert.notEqual(out.trim(), '');
});

test('J6: nor do /tools and /mcp', { timeout: 14_000 }, async () => {
  const where = place({}, userServers({ slow: dripping(join(folder(), 'pids')), good: habit() }));
  const options = { input: '/tools\n/mcp\n', env: { MCP_GRACE: '1500' } };
  const { out, err } = await run(where, [], options);
  assert.match(out, /^mcp__good__\w+: [^]*^slow: connecting$[^]*^good: connected/m, err);
});

test('J6: a late server joins when it is ready, and user and model are told', async () => {
  let go: () => void = () => {};
  const gate = new Promise<void>((done) => (go = done));
  const make = answering({ initialize: HELLO, 'tools/list': { tools: [{ name: 'echo' }] } });
  const slow = (): Transport => {
    const transport = make();
    return { ...transport, start: (events) => gate.then(() => transport.start(events)) };
  };
  const load = () => new Map(['slow', 'good'].map((type) => [type, entry(type, { type })]));
  const mcp = new McpManager({ transports: { slow, good: make }, load });
  later(() => mcp.disconnectAll());
  const { agent, model, of } = prepareLoop({ script: ['one', 'two'], mcp, graceMs: 50 });
  const requests: { system: string; tools: { name: string }[] }[] = [];
  const query = model.query.bind(model);
  agent.model = { name: 'm', query: (request) => (requests.push(request), query(request)) };
  await agent.chat('go');
  assert.match(requests[0]!.system, /Still starting, their tools come later: MCP servers "slow"\./);
  assert.deepEqual(
    requests[0]!.tools.map(({ name }) => name),
    ['mcp__good__echo'],
  );
  go();
  await until(() => mcp.isMcpTool('mcp__slow__echo'));
  await agent.chat('go on');
  assert.deepEqual(requests[1]!.tools.length, 2);
  const notes = of('note').map(({ text }) => text);
  assert.match(notes.join('\n'), /^still starting: slow;.*\n.*changed; new: mcp__slow__echo$/);
});

test('J6: while a person thinks about a server, no grace runs out', async () => {
  const transports = {
    quick: answering({ initialize: HELLO, 'tools/list': { tools: [{ name: 'echo' }] } }),
  };
  const think = async () => (await pause(400), 'y');
  const project = { s: { type: 'quick' } };
  const { agent, of } = prepareAgent({
    script: ['one'],
    project,
    answers: [think],
    graceMs: 100,
    manager: { transports },
    tools: [],
  });
  await agent.chat('go');
  assert.ok(agent.table.has('mcp__s__echo'));
  assert.deepEqual(of('note'), []);
});

test('J6: signals are heard at every moment of the start', { timeout: 30_000 }, async () => {
  const http = await serve(() => {}); // takes a request, and never answers
  const moments: { args: string[]; input?: null }[] = [
    { args: ['-p', 'hello'] }, // while servers start
    { args: ['mcp', 'list'] },
    { args: ['probe', 'slow'] },
    { args: [], input: null }, // a chat through a pipe
  ];
  const codes = { SIGINT: 130, SIGTERM: 143 } as const;
  const ways = moments.flatMap((moment) =>
    (['SIGINT', 'SIGTERM'] as const).map((signal) => ({ ...moment, signal })),
  );
  await Promise.all(
    ways.map(async ({ args, input, signal }) => {
      const pids = join(folder(), 'pids');
      const servers = { slow: dripping(pids), away: { type: 'http', url: http } };
      const { child, ended } = start(place({}, userServers(servers)), args, { input });
      if (input === null) child.stdin.write('hello\n');
      await until(() => pidsIn(pids).length > 0);
      child.kill(signal);
      if (input === null && signal === 'SIGINT') {
        await pause(200); // the first stops the turn
        child.kill(signal);
      }
      const { code, err } = await ended;
      assert.equal(code, codes[signal], `${args} ${signal}: ${err}`);
      await allGone(pids);
    }),
  );
});

// ─── J7: what comes in tiny pieces ───────────────────────────────────────────────────────────────

/** What is joined while `work` is done: how many pieces at most, and how many bytes in all. */
async function joins(work: () => unknown) {
  const { concat } = Buffer;
  const seen = { pieces: 0, bytes: 0 };
  Buffer.concat = (list, ...rest) => {
    const whole = concat(list, ...rest);
    seen.pieces = Math.max(seen.pieces, list.length);
    seen.bytes += whole.length;
    return whole;
  };
  try {
    await work();
  } finally {
    Buffer.concat = concat;
  }
  return seen;
}

/** Bytes on the heap that are in use. */
function heap(): number {
  v8.setFlagsFromString('--expose-gc');
  vm.runInNewContext('gc')();
  return process.memoryUsage().heapUsed;
}
const DRIPS = 200_000;
const drip = Buffer.from('x');

test('J7: a line that comes byte by byte is joined in line', async () => {
  const lines = new LineBuffer();
  const { bytes } = await joins(() => {
    for (let n = 0; n < DRIPS; n++) lines.takeWhole(drip);
    assert.equal(lines.takeWhole(Buffer.from('\n')).length, DRIPS + 1);
  });
  assert.ok(bytes < 30 * DRIPS, `${bytes} bytes were copied for a line of ${DRIPS}`);
});

test('J7: an event that comes byte by byte weighs what its bytes weigh', async () => {
  const parser = new EventParser({ maxEventBytes: 2 * DRIPS });
  const read = (bytes: Buffer) => [...parser.parse(bytes)];
  read(Buffer.from('data:'));
  const before = heap();
  let held = 0;
  const { bytes } = await joins(() => {
    for (let n = 0; n < DRIPS; n++) read(drip);
    held = heap() - before;
    assert.equal(read(Buffer.from('\n\n'))[0]?.data.length, DRIPS);
  });
  assert.ok(held < 10 * DRIPS, `${held} bytes are held for an event of ${DRIPS}`);
  assert.ok(bytes < 30 * DRIPS, `${bytes} bytes were copied for an event of ${DRIPS}`);
});

test('J7: so does a body, in chunks of one byte each', async () => {
  const count = 100_000;
  const answer = '{"jsonrpc":"2.0","id":1,"result":{}}';
  const head =
    'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n';
  const body = `${' '.repeat(count)}${answer}`.replace(/[^]/g, '1\r\n$&\r\n');
  const server = net.createServer((socket) => {
    later(() => socket.destroy()); // else Node's own runner waits for it
    socket.on('error', () => {});
    socket.once('data', () => socket.write(`${head}${body}0\r\n\r\n`));
  });
  const url = `${await onLoopback(server)}/`;
  const { connection } = await connect({ type: 'http', url }, { transports: httpTransports });
  const { pieces } = await joins(async () => {
    assert.deepEqual(await connection.request('go'), {});
  });
  assert.ok(pieces < 1000, `${pieces} pieces were kept for ${count} bytes`);
});

// ─── J8: what is left behind; J9: what is called for again and again ─────────────────────────────

test('J8: an answer over HTTP leaves nothing behind at a signal that lives on', async () => {
  const count = 50;
  const { any } = AbortSignal;
  const sources: AbortSignal[] = [];
  AbortSignal.any = (signals) => {
    const list = [...signals];
    sources.push(...list);
    return any.call(AbortSignal, list);
  };
  later(() => (AbortSignal.any = any));
  const answers: unknown[] = [];
  const pings = Array.from(
    { length: count },
    (_, id) => `data: ${JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' })}\n\n`,
  );
  const server = http.createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const { id, method, result } = JSON.parse(text) as Json;
    if (result) answers.push(id);
    if (method !== 'go') return void response.writeHead(202).end();
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(pings.join(''));
    await until(() => answers.length === count);
    response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result: {} })}\n\n`);
  });
  const url = `${await onLoopback(server)}/`;
  const { connection } = await connect({ type: 'http', url }, { transports: httpTransports });
  await connection.request('go');
  assert.equal(new Set(sources).size, sources.length, 'one signal is the source of many');
  assert.ok(sources.length >= count);
});

test('J9: a long list that changes all the time leaves us time for everything else', async () => {
  const work = 100;
  const looks: number[] = [];
  let tell = () => {};
  const list = () => {
    const startedAt = performance.now();
    while (performance.now() - startedAt < work);
    looks.push(performance.now());
    queueMicrotask(tell); // it has changed again
    return { tools: [] };
  };
  const results = {
    initialize: HELLO,
    get 'tools/list'() {
      return list();
    },
  };
  const make = answering(results);
  const busy = (): Transport => {
    const transport = make();
    const changed = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' };
    const start = (events: TransportEvents) => {
      tell = () => events.message(changed);
      return transport.start(events);
    };
    return { ...transport, start };
  };
  const load = () => new Map([['s', entry('s', { type: 'busy' })]]);
  const mcp = new McpManager({ transports: { busy }, load });
  later(() => mcp.disconnectAll());
  await mcp.loadAndConnect();
  await until(() => looks.length >= 4);
  const elapsed = looks[3]! - looks[0]!;
  assert.ok(elapsed > 3 * 3 * work, `three looks of ${work} ms each within ${elapsed} ms`);
});

test('J10: secrets are put in order when there is a new one, and not for each text', () => {
  const { sort } = Array.prototype;
  let sorts = 0;
  Array.prototype.sort = function (...given) {
    sorts++;
    return sort.apply(this, given);
  };
  later(() => (Array.prototype.sort = sort));
  const masker = new Masker({ MY_TOKEN: 'abcdefgh', OTHER_TOKEN: 'abcdefgh-and-more' });
  const texts = Array.from({ length: 100 }, () => 'abcdefgh-and-more, abcdefgh');
  assert.equal(masker.json(texts), JSON.stringify(texts.map(() => '***, ***')));
  assert.ok(sorts <= 1, `${sorts} sorts`);
  masker.learn({ NEW_TOKEN: 'and-more-of-it' });
  keepSecrets('s', 'a-token-of-4711-letters');
  assert.equal(masker.text('and-more-of-it a-token-of-4711-letters'), '*** ***');
});

test('J10: after Ctrl-C, or the end of input, nothing more is asked', async () => {
  const names = Array.from({ length: 60 }, (_, n) => `s${n}`);
  const mcpServers = Object.fromEntries(names.map((name) => [name, { command: name }]));
  const questions = (terminal: Terminal) => terminal.text.split('Start it?').length - 1;
  const open = async () => {
    const terminal = new Terminal(place({ '.mcp.json': { mcpServers } }), ['/mcp']);
    await terminal.see(/^Start it\?.*: *$/);
    return terminal;
  };
  const [stopped, left] = await Promise.all([open(), open()]);
  left.press(KEYS.ctrlD);
  stopped.press(KEYS.ctrlC);
  await stopped.ready();
  assert.equal(await left.ended(), 0);
  assert.deepEqual([questions(stopped), questions(left)], [1, 1]);
  stopped.enter('/mcp reconnect s50'); // what the user asks for now is another matter
  await stopped.see(/^Start it\?.*: *$/, 2);
  assert.match(stopped.text.split('Start it?').at(-2)!, /the MCP server "s50"/);
  stopped.press(KEYS.ctrlD);
  assert.equal(await stopped.ended(), 0);
  assert.equal(questions(stopped), 2);
});

// ─── B13: no room for another file ───────────────────────────────────────────────────────────────

test('B13: where no file can be opened, a server is unreachable, which may pass', async () => {
  const compiled = (...path: string[]) => pathToFileURL(join(programFolder, ...path)).href;
  const mcp = compiled('mcp.js');
  const transports = compiled('chapters', '20-streamable-http', 'http.js');
  const shell = compiled('chapters', '16-hands', 'shell.js');
  const program = `
    import { openSync, closeSync } from 'node:fs';
    import { McpConnection } from ${JSON.stringify(mcp)};
    import { httpTransports } from ${JSON.stringify(transports)};
    import { bash } from ${JSON.stringify(shell)};
    const configs = [{ command: 'cat' }, { type: 'http', url: 'http://127.0.0.1:9/' }];
    const kinds = [];
    const attempt = async (config) => {
      const connection = new McpConnection('s', config, { transports: httpTransports });
      try {
        await connection.connect();
        await connection.initialize();
      } catch (error) { kinds.push(error.kind + ': ' + error.message); }
      await connection.close();
    };
    await attempt(configs[1]); // what is loaded on demand is loaded now
    const held = [];
    try { for (;;) held.push(openSync('/dev/null')); } catch {}
    for (const config of configs) await attempt(config);
    const { signal } = new AbortController();
    const run = bash({ command: 'true' }, { roots: { cwd: '/' }, resultsFolder: '/nowhere' }, { signal, onProgress() {} });
    kinds.push(await run.then(() => 'ran', (error) => error.message));
    closeSync(held.pop());
    for (const fd of held) closeSync(fd);
    console.log(JSON.stringify(kinds));`;
  const limited = 'ulimit -n 60; exec "$0" --input-type=module -e "$1"';
  const args = ['-c', limited, process.execPath, program];
  const child = spawn('sh', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let out = '';
  child.stdout.on('data', (text) => (out += text));
  const code = await new Promise((done) => child.on('close', done));
  assert.equal(code, 0, out);
  const [, stdio, remote, command_] = JSON.parse(out);
  assert.match(stdio, /^unreachable: .*short of files, processes or memory \(EMFILE\)/);
  assert.match(remote, /^unreachable: /);
  assert.match(command_, /could not be started.*EMFILE/);
});

// ─── B14: those that leave the group ─────────────────────────────────────────────────────────────

const onLinux = process.platform === 'linux';

/** A shell command that starts a process in a session of its own, whose parent is gone. */
const daemon = (pids: string) =>
  `setsid sh -c 'echo $$ >> "${pids}"; exec sleep 300' </dev/null >/dev/null 2>&1 &`;

test('B14: what has left the group of a server is ended with it', { skip: !onLinux }, async () => {
  const pids = join(folder(), 'pids');
  later(() =>
    pidsIn(pids)
      .filter(isRunning)
      .forEach((pid) => process.kill(pid, 'SIGKILL')),
  );
  const config = { command: 'sh', args: ['-c', `(${daemon(pids)}) ; exec cat >/dev/null`] };
  const { connection } = await connect(config);
  await until(() => pidsIn(pids).length === 1 && isRunning(pidsIn(pids)[0]!));
  await connection.close();
  await allGone(pids);
});

test('B14: and what has left the group of a command', { skip: !onLinux }, async () => {
  const pids = join(folder(), 'pids');
  later(() =>
    pidsIn(pids)
      .filter(isRunning)
      .forEach((pid) => process.kill(pid, 'SIGKILL')),
  );
  const line = `(${daemon(pids)}); until [ -s "${pids}" ]; do sleep 0.05; done`;
  const options = { roots: new Roots(folder()), resultsFolder: folder() };
  const { blocks } = await bash({ command: line }, options, {
    signal: new AbortController().signal,
    onProgress() {},
  });
  assert.match(JSON.stringify(blocks), /background processes of the command were ended/);
  await allGone(pids);
});

// ─── B15: two at once ────────────────────────────────────────────────────────────────────────────

test('B15: reopen() twice at once is one start, and close() waits for it', async () => {
  const started: number[] = [];
  const closed: number[] = [];
  const transports = {
    counted: (name: string, _: Json, max: number) => {
      const transport = new StdioTransport(name, habit(), max);
      const n = started.push(started.length);
      return {
        start: (events: TransportEvents) => transport.start(events),
        send: (message: Message) => transport.send(message),
        close: async () => {
          await transport.close();
          closed.push(n);
        },
      };
    },
  };
  const { connection } = await open({ type: 'counted' }, { transports });
  const first = await pidOf(connection);
  await Promise.all([connection.reopen(), connection.reopen()]);
  assert.equal(started.length, 2);
  await connection.initialize();
  const second = await pidOf(connection);
  assert.ok(!isRunning(first));
  const reopening = rejection(connection.reopen());
  await connection.close();
  assert.ok(!isRunning(second));
  assert.equal((await reopening).kind, 'closed');
  assert.equal(new Set(closed).size, started.length);
});

test('B15: a start that fails late does not fail the one that took its place', async () => {
  const fails: ((error: Error) => void)[] = [];
  const make = answering({});
  const hanging = (): Transport => ({
    ...make(),
    start: () => new Promise((_, fail) => fails.push(fail)),
  });
  const makers = [hanging, make];
  const transports = { two: () => makers.shift()!() };
  const connection = new McpConnection('s', { type: 'two' }, { transports });
  const first = rejection(connection.connect());
  await connection.reopen();
  fails[0]!(new Error('too late'));
  assert.match((await first).message, /too late/);
  assert.equal(connection.ended, undefined);
  assert.deepEqual(await connection.request('anything'), {});
});

test('B15: a lock that is held costs a verdict, and not the file', () => {
  const home = folder();
  const verdicts = new KeptVerdicts(home);
  verdicts.set('a', 'stateless');
  takeLock(join(home, '.mcp-by-hand', 'eras.json.lock'));
  verdicts.set('b', 'stateless');
  assert.deepEqual([verdicts.get('a'), verdicts.get('b')], ['stateless', undefined]);
});

test('B15: what opens a conversation and is given up leaves no request open', async () => {
  const openRequests = new Set<http.ServerResponse>();
  let asked = 0;
  const url = await serve((_, response) => {
    asked++;
    openRequests.add(response);
    response.on('close', () => openRequests.delete(response));
  });
  const { connection } = await connect({ type: 'http', url }, { transports: httpTransports });
  const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' };
  const openings = { 'server/discover': { _meta: meta }, initialize: {} };
  for (const [method, params] of Object.entries(openings)) {
    const giveUp = new AbortController();
    const call = rejection(connection.request(method, params, { signal: giveUp.signal }));
    await until(() => openRequests.size === 1);
    giveUp.abort();
    assert.equal((await call).kind, 'aborted');
    await until(() => openRequests.size === 0);
  }
  assert.equal(asked, 2); // and nothing was sent about it
});

test('B1: what is too long is put together neither when that is seen nor at the end', async () => {
  const { takeWhole } = LineBuffer.prototype;
  const sizes: number[] = [];
  LineBuffer.prototype.takeWhole = function (chunk) {
    const whole = takeWhole.call(this, chunk);
    sizes.push(whole.length);
    return whole;
  };
  later(() => Object.assign(LineBuffer.prototype, { takeWhole }));
  const code = `process.stdout.write('x'.repeat(400_000));`;
  const { connection } = await connect(script(code), { maxLineBytes: 300_000 });
  assert.equal((await rejection(connection.request('anything'))).kind, 'limit');
  assert.ok(sizes.length > 1 && Math.max(...sizes) <= 1, `${sizes}`); // 1: the end itself
});

test('B15: a limit in bytes counts bytes', async () => {
  const code = `say({ id: message.id, result: { text: '€'.repeat(100_400) } });`;
  const { connection } = await connect(script(code), { maxLineBytes: 300_000 });
  const error = await rejection(connection.request('anything'));
  assert.equal(error.kind, 'limit', error.message);
});
