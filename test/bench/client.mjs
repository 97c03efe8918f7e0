// One measured client in a process of its own. It prints one line of JSON.
//   node client.mjs '{ "kind": "ours", "modules": ["file:///…"], "task": "calls", "size": 16, … }'
// It is JavaScript, because a process that also compiles TypeScript would measure the compiler.

import { spawn } from 'node:child_process';
import http from 'node:http';

const order = JSON.parse(process.argv[2]);
const server = { command: process.execPath, args: order.server };

// ─── Four clients with one face ───────────────────────────────────────────────────────────────────────────────
// `call` returns what the client itself returns: a wrapper with a promise of its own would cost all the same.

const clients = {
  ours,
  then: ours, // of an earlier commit
  v1: sdk,
  v2: sdk,
  limit: order.url ? limitHttp : limit,
};

async function ours([{ McpConnection }, http, era]) {
  const remote = { type: 'http', url: order.url };
  const options = order.url && { transports: http.httpTransports, extensions: era.inBothEras() };
  const connection = new McpConnection('heavy', order.url ? remote : server, options);
  await connection.connect();
  await connection.initialize();
  return {
    call: (name, args) => connection.callTool(name, args),
    textOf: (result) => result.text,
    list: () => connection.listTools(),
    close: () => connection.close(),
  };
}

async function sdk([{ Client }, { StdioClientTransport, StreamableHTTPClientTransport }]) {
  const client = new Client({ name: 'bench', version: '1.0.0' });
  // Without maxBufferSize they give up on a line of more than 10 MB.
  const transport = order.url
    ? new StreamableHTTPClientTransport(new URL(order.url))
    : new StdioClientTransport({ ...server, maxBufferSize: 2 ** 28 });
  await client.connect(transport);
  return {
    call: (name, args) => client.callTool({ name, arguments: args }),
    textOf: (result) => result.content[0].text,
    async list() {
      const all = [];
      let cursor;
      do {
        const { tools, nextCursor } = await client.listTools(
          cursor === undefined ? undefined : { cursor },
        );
        all.push(...tools);
        cursor = nextCursor;
      } while (cursor !== undefined);
      return all;
    },
    close: () => client.close(),
  };
}

/** What no client can beat: lines through a pipe, JSON.parse and JSON.stringify, a promise per call. It checks
 *  nothing, has no time-outs and trusts the server in everything. */
async function limit() {
  const child = spawn(server.command, server.args, {
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: order.task === 'pipe', // as ours is; see BENCHMARK.md
  });
  const waiting = new Map();
  let lastId = 0;
  let out = '';
  let unread = [];

  child.stdout.on('data', (chunk) => {
    const end = chunk.lastIndexOf(10);
    if (end === -1) return void unread.push(chunk);
    let text;
    if (unread.length === 0) text = chunk.utf8Slice(0, end + 1);
    else text = Buffer.concat([...unread, chunk.subarray(0, end + 1)]).utf8Slice();
    unread = end + 1 < chunk.length ? [chunk.subarray(end + 1)] : [];
    for (let from = 0, to; (to = text.indexOf('\n', from)) !== -1; from = to + 1) {
      const { id, result } = JSON.parse(text.slice(from, to));
      const resolve = waiting.get(id);
      waiting.delete(id);
      resolve(result);
    }
  });

  function flush() {
    child.stdin.write(out);
    out = '';
  }
  function send(message) {
    if (out === '') process.nextTick(flush); // one write for all that is sent in one turn
    out += JSON.stringify(message) + '\n';
  }
  const request = (method, params) =>
    new Promise((resolve) => {
      const id = ++lastId;
      waiting.set(id, resolve);
      send({ jsonrpc: '2.0', id, method, params });
    });

  const clientInfo = { name: 'bench', version: '1.0.0' };
  await request('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
  send({ jsonrpc: '2.0', method: 'notifications/initialized' });
  return {
    call: (name, args) => request('tools/call', { name, arguments: args }),
    textOf: (result) => result.content[0].text,
    async list() {
      const all = [];
      let page = {};
      do {
        page = await request('tools/list', { cursor: page.nextCursor });
        all.push(...page.tools);
      } while (page.nextCursor !== undefined);
      return all;
    },
    close: () => new Promise((done) => child.on('exit', done).stdin.end()),
  };
}

/** The same over HTTP: one POST for each call, the answer out of the one event of its stream. */
async function limitHttp() {
  const agent = new http.Agent({ keepAlive: true });
  const headers = {
    accept: 'application/json, text/event-stream',
    'content-type': 'application/json',
  };
  let lastId = 0;
  const request = (method, params, id = ++lastId) =>
    new Promise((done, failed) => {
      const asked = http.request(order.url, { method: 'POST', agent, headers }, (response) => {
        if (response.headers['mcp-session-id'])
          headers['mcp-session-id'] = response.headers['mcp-session-id'];
        let text = '';
        response.setEncoding('utf8').on('data', (chunk) => (text += chunk));
        response.on('end', () =>
          done(text && JSON.parse(text.slice(text.indexOf('data: ') + 6)).result),
        );
      });
      asked.on('error', failed);
      asked.end(JSON.stringify({ jsonrpc: '2.0', id: id ?? undefined, method, params }));
    });
  const clientInfo = { name: 'bench', version: '1.0.0' };
  await request('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
  await request('notifications/initialized', {}, null);
  return {
    call: (name, args) => request('tools/call', { name, arguments: args }),
    textOf: (result) => result.content[0].text,
    list: async () => (await request('tools/list', {})).tools,
    close: async () => agent.destroy(),
  };
}

// ─── Tasks ────────────────────────────────────────────────────────────────────────────────────────────────────

const modules = await Promise.all(order.modules.map((url) => import(url)));
const open = () => clients[order.kind](modules);
const cpuMs = () => (process.cpuUsage().user + process.cpuUsage().system) / 1000;
const CALLS = 100_000;
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

function check(client, result, text) {
  if (client.textOf(result) !== text) throw new Error(`${order.kind}: a wrong answer`);
}

async function callFor(client, ms) {
  const endsAt = performance.now() + ms;
  let calls = 0;
  const work = async () => {
    while (performance.now() < endsAt) {
      const a = calls++;
      check(client, await client.call('add', { a, b: 1 }), `${a + 1}`);
    }
  };
  await Promise.all(Array.from({ length: order.size }, work));
  return calls;
}

const tasks = {
  /** As many calls as possible, `size` in flight. */
  async calls() {
    const client = await open();
    await client.list();
    await callFor(client, 400); // until the code is hot
    const [start, cpu] = [performance.now(), cpuMs()];
    const calls = await callFor(client, 500);
    const perSecond = (calls / (performance.now() - start)) * 1000;
    return { close: client.close, perSecond, cpu: (cpuMs() - cpu) / calls };
  },

  /** So many calls, however long they take: beside other work a time is over before the code is hot. */
  async pipe() {
    const client = await open();
    await client.list();
    const make = async (calls) => {
      let made = 0;
      const work = async () => {
        while (made < calls) {
          const a = made++;
          check(client, await client.call('add', { a, b: 1 }), `${a + 1}`);
        }
      };
      await Promise.all(Array.from({ length: order.size }, work));
    };
    await make(30_000);
    const [start, cpu] = [performance.now(), cpuMs()];
    await make(CALLS);
    const perSecond = (CALLS / (performance.now() - start)) * 1000;
    return { close: client.close, perSecond, cpu: (cpuMs() - cpu) / CALLS };
  },

  /** One call after the other. */
  async latency() {
    const client = await open();
    const times = [];
    for (let i = 0; i < 15_000; i++) {
      const start = performance.now();
      check(client, await client.call('add', { a: i, b: 1 }), `${i + 1}`);
      times.push(performance.now() - start);
    }
    const hot = times.slice(5000).sort((a, b) => a - b);
    return { close: client.close, p50: hot[hot.length * 0.5], p99: hot[hot.length * 0.99] };
  },

  /** All that a short program does. Its wall time is measured from outside. */
  async cold() {
    const client = await open();
    await client.list();
    check(client, await client.call('add', { a: 2, b: 40 }), '42');
    await client.close();
    return { cpu: cpuMs() };
  },

  /** One text of `size` MB. The server has built it before the clock starts. */
  async text() {
    const client = await open();
    await client.call('text', { megabytes: order.size, prepare: true });
    const start = performance.now();
    const result = await client.call('text', { megabytes: order.size });
    const ms = performance.now() - start;
    if (client.textOf(result).length !== order.size * 1e6)
      throw new Error(`${order.kind}: a wrong answer`);
    return { close: client.close, ms };
  },

  /** The first look at `size` tools. */
  async tools() {
    const client = await open();
    const [start, cpu] = [performance.now(), cpuMs()];
    const tools = await client.list();
    if (tools.length !== order.size) throw new Error(`${order.kind}: ${tools.length} tools`);
    return { close: client.close, ms: performance.now() - start, cpu: cpuMs() - cpu };
  },

  /** `size` servers that are slow to answer: by the manager, or all at once by hand. */
  async manager() {
    const start = performance.now();
    if (order.kind !== 'ours') {
      const all = await Promise.all(
        Array.from({ length: order.size }, async () => {
          const client = await open();
          await client.list();
          return client;
        }),
      );
      const ms = performance.now() - start;
      return { close: () => Promise.all(all.map((client) => client.close())), ms };
    }
    const manager = new modules[0].McpManager({ home: order.home, cwd: order.home });
    await manager.loadAndConnect();
    const ms = performance.now() - start;
    const connected = manager.status().filter(({ state }) => state === 'connected').length;
    if (connected !== order.size) throw new Error(`only ${connected} servers are connected`);
    return { close: () => manager.disconnectAll(), ms };
  },

  /** What `size` idle connections keep in memory. Needs --expose-gc. */
  async memory() {
    const all = await Promise.all(Array.from({ length: order.size }, open));
    for (const client of all) {
      await client.list();
      check(client, await client.call('add', { a: 2, b: 40 }), '42');
    }
    for (let i = 0; i < 3; i++) {
      await sleep(100);
      globalThis.gc();
    }
    return {
      close: () => Promise.all(all.map((client) => client.close())),
      rss: process.memoryUsage.rss() / 1e6,
    };
  },
};

const { close, ...measured } = await tasks[order.task]();
await close?.();
console.log(JSON.stringify(measured));
