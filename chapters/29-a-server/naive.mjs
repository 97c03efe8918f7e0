// A server as tutorials write it, and three of its holes in use:
// `node chapters/29-a-server/naive.mjs origin`, `handshake` or `pattern`.

import { createServer } from 'node:http';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';

const notes = ['the alarm code is 4711', `${'a'.repeat(40)}!`];

// ─── The server ────────────────────────────────────────────────────────────────────────────────

const tools = {
  read_notes: () => notes.join('\n'),
  search_notes: ({ pattern }) => notes.filter((note) => new RegExp(pattern).test(note)).join('\n'),
};

const methods = {
  initialize: () => ({ protocolVersion: '2024-11-05', capabilities: { tools: {} } }),
  'tools/call': ({ name, arguments: args }) => ({
    content: [{ type: 'text', text: tools[name](args) }],
  }),
  ping: () => ({}),
};

const server = createServer(async (request, response) => {
  let body = '';
  for await (const chunk of request) body += chunk;
  const { id, method, params } = JSON.parse(body);
  response.setHeader('Access-Control-Allow-Origin', '*'); // "else it does not work in the browser"
  response.end(JSON.stringify({ jsonrpc: '2.0', id, result: methods[method](params) }));
});

function listen() {
  const host = '0.0.0.0'; // "so that Docker can reach it"
  return new Promise((done) => server.listen(0, host, () => done(server.address().port)));
}

// ─── Its visitors ──────────────────────────────────────────────────────────────────────────────

function post(port, message, headers = {}, signal = undefined) {
  const url = `http://127.0.0.1:${port}/mcp`;
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, ...message });
  return fetch(url, { method: 'POST', headers, body, signal });
}

const call = (name, args) => ({ method: 'tools/call', params: { name, arguments: args } });

const mistakes = {
  // A page on the web, open in a tab of the same machine.
  async origin() {
    const port = await listen();
    const headers = { 'content-type': 'text/plain', origin: 'https://evil.example' };
    const response = await post(port, call('read_notes'), headers);
    console.log(`a page of https://evil.example gets ${response.status}:`);
    console.log((await response.json()).result.content[0].text.split('\n')[0]);
    server.close();
  },

  // Nobody has said hello, and nobody was asked who they are.
  async handshake() {
    const port = await listen();
    const first = await (await post(port, call('read_notes'))).json();
    console.log(`without initialize: ${first.result.content[0].text.split('\n')[0]}`);
    for (const version of ['2025-11-25', 'the year 3000']) {
      const params = { protocolVersion: version };
      const { result } = await (await post(port, { method: 'initialize', params })).json();
      console.log(`initialize with ${version}: agreed on ${result.protocolVersion}`);
    }
    server.close();
  },

  // In a thread of its own, because it will not come back.
  async pattern() {
    const worker = new Worker(new URL(import.meta.url));
    const port = await new Promise((done) => worker.once('message', done));
    const search = post(port, call('search_notes', { pattern: '^(a+)+$' }));
    search.catch(() => {});
    await new Promise((done) => setTimeout(done, 300));
    const ping = post(port, { method: 'ping' }, {}, AbortSignal.timeout(2000));
    const answer = await ping.then(
      () => 'an answer',
      () => 'nothing, for two seconds',
    );
    console.log(`one client searches for ^(a+)+$. Another sends a ping, and gets ${answer}.`);
    await worker.terminate();
  },
};

if (isMainThread) await mistakes[process.argv[2]]?.();
else parentPort.postMessage(await listen());
