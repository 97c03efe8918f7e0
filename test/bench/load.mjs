// Calls over HTTP as fast as a server answers: `node load.mjs URL ERA CALLS`. Raw sockets, so that the server is measured,
// and not a client. It prints one line of JSON: calls per second.

import { connect } from 'node:net';

const [address, era, count] = process.argv.slice(2);
const { hostname, port, pathname } = new URL(address);
const IN_FLIGHT = 16;
const META = 'io.modelcontextprotocol/';
const version = era === 'stateless' ? '2026-07-28' : '2025-11-25';

function http(message, headers = {}) {
  const body = JSON.stringify({ jsonrpc: '2.0', ...message });
  const all = {
    host: `${hostname}:${port}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': version,
    'content-length': Buffer.byteLength(body),
    ...headers,
  };
  const lines = Object.entries(all)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('');
  return `POST ${pathname} HTTP/1.1\r\n${lines}\r\n${body}`;
}

/** A connection that is kept. One request at a time; resolves with the whole response as text. A body of JSON ends with a
 *  brace, one in chunks with an empty chunk, and one of nothing with its head: to look further would measure this program. */
function open() {
  const socket = connect(Number(port), hostname).setNoDelay();
  let text = '';
  let done;
  const isWhole = () =>
    text.endsWith('}') ||
    text.endsWith('\r\n0\r\n\r\n') ||
    (text.startsWith('HTTP/1.1 202') && text.endsWith('\r\n\r\n'));
  socket.setEncoding('latin1').on('data', (chunk) => {
    text += chunk;
    if (!isWhole()) return;
    const whole = text;
    text = '';
    done(whole);
  });
  return {
    ask: (request) => new Promise((resolve) => ((done = resolve), socket.write(request))),
    end: () => socket.destroy(),
  };
}

const sockets = Array.from({ length: IN_FLIGHT }, open);
const params = { name: 'add', arguments: { a: 2, b: 40 } };
let headers = { 'mcp-method': 'tools/call', 'mcp-name': 'add' };
if (era === 'stateless')
  params._meta = { [`${META}protocolVersion`]: version, [`${META}clientCapabilities`]: {} };
else {
  const hello = {
    protocolVersion: version,
    capabilities: {},
    clientInfo: { name: 'load', version: '1' },
  };
  const answer = await sockets[0].ask(http({ id: 0, method: 'initialize', params: hello }));
  headers = { 'mcp-session-id': /mcp-session-id: (\S+)/i.exec(answer)[1] };
  await sockets[0].ask(http({ method: 'notifications/initialized' }, headers));
}

// All ids have six digits, so that only they differ from one request to the next.
let id = 100_000;
const [before, after] = http({ id, method: 'tools/call', params }, headers).split(`"id":${id}`);
async function run(calls) {
  const last = id + calls;
  await Promise.all(
    sockets.map(async ({ ask }) => {
      while (id < last) {
        const answer = await ask(`${before}"id":${id++}${after}`);
        if (!answer.includes('"42"')) throw new Error(answer);
      }
    }),
  );
}

await run(Number(count) / 4); // until it is warm
const startedAt = performance.now();
await run(Number(count));
const perSecond = (1000 * Number(count)) / (performance.now() - startedAt);
for (const { end } of sockets) end();
console.log(JSON.stringify({ perSecond }));
