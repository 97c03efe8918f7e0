// Chapter 20: the sum as a POST. A small proxy stands before the calculator and shows what passes, with the headers
// that matter here. Then servers that break off, are too slow, send us away, and forget us.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  createServer,
  request,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { plainHost } from '../19-the-terminal/host.ts';
import { compose } from '../composition.ts';
import { McpConnection } from '../../mcp.ts';

function show(arrow: string, head: string, headers: IncomingHttpHeaders, body = ''): void {
  const names = Object.keys(headers)
    .filter((name) => /^(accept|content-type|location|last-event-id|mcp-.*)$/.test(name))
    .sort();
  const lines = [
    head,
    ...names.map((name) => `${name}: ${headers[name]}`),
    ...body.trimEnd().split('\n'),
  ].filter(Boolean);
  console.log(
    lines
      .map((line, n) => `${n === 0 ? arrow : ' '} ${line}`)
      .join('\n')
      .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '<session>'),
  );
}
function reply(
  response: ServerResponse,
  status: number,
  headers: IncomingHttpHeaders,
  body = '',
): void {
  show('←', `${status}`, headers, body);
  response.writeHead(status, headers).end(body);
}
async function serve(
  handle: (asked: IncomingMessage, response: ServerResponse, body: string) => void,
): Promise<string> {
  const server = createServer(async (asked, response) => {
    const body = await textOf(asked);
    show('→', `${asked.method} ${asked.url}`, asked.headers, body);
    handle(asked, response, body);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}
async function start(...flags: string[]): Promise<string> {
  const child = spawn('node', ['fixtures/remote.mjs', 'http', ...flags], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const [address] = await once(child.stdout.setEncoding('utf8'), 'data');
  return address.trim();
}
const proxy = (url: string) =>
  serve(({ method, headers }, response, body) => {
    const asked = request(url, { method, headers }, async (answer) => {
      if (method !== 'GET')
        return reply(response, answer.statusCode!, answer.headers, await textOf(answer));
      show('←', `${answer.statusCode} (and stays open)`, answer.headers);
      response.writeHead(200, answer.headers).flushHeaders();
    });
    response.on('close', () => asked.destroy());
    asked.on('error', () => {}).end(body);
  });
const open = async (url: string) => {
  const connection = new McpConnection(
    'calculator',
    { type: 'http', url },
    { transports: compose(plainHost()).transports },
  );
  await connection.connect();
  return connection;
};
const add = async (connection: McpConnection) => {
  const sum = connection.callTool('add', { a: 2, b: 40 });
  console.log(
    '  =',
    await sum.then(
      ({ text }) => text,
      ({ kind, message }) => `${kind}: ${message.replace(/:\d+\)/, ')')}`,
    ),
  );
};

const [remembers, forgets] = [
  start('--era', 'legacy', '--sessions'),
  start('--era', 'legacy', '--sessions', '--forgets'),
];

console.log('The same messages, each in a POST of its own:');
const calculator = await open(await proxy(await remembers));
await calculator.initialize();
await add(calculator);
await calculator.close();

console.log('\nThe stream ends before the answer. Its first event had an id:');
const events = { 'content-type': 'text/event-stream' };
await add(
  await open(
    await serve(({ method }, response) => {
      if (method === 'POST') reply(response, 200, events, 'id: e-1\nretry: 100\ndata:\n\n');
      else
        reply(
          response,
          200,
          events,
          'id: e-2\ndata: {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"42"}]}}\n\n',
        );
    }),
  ),
);

let hungUp = 0;
const slow = await open(
  await serve((_, response, body) => {
    if (body.includes('cancelled')) reply(response, 202, {});
    else response.on('close', () => hungUp++);
  }),
);
for (const version of [undefined, '2026-07-28']) {
  console.log(`\nA call that takes too long, ${version ? 'since 2026' : 'up to 2025'}:`);
  hungUp = 0;
  const _meta = version && { 'io.modelcontextprotocol/protocolVersion': version };
  await slow
    .request('tools/call', { name: 'add', arguments: { a: 2, b: 40 }, _meta }, { timeoutMs: 200 })
    .catch(({ kind }) => console.log(`  = ${kind}`));
  await pause(200);
  console.log(`  streams that we closed: ${hungUp}`);
}

console.log('\nA server that sends us to another:');
await add(
  await open(
    await serve((_, response) =>
      reply(response, 307, { location: 'https://elsewhere.example/mcp' }),
    ),
  ),
);

console.log('\nA server that forgets our session:');
const forgetful = await open(await forgets);
await forgetful.initialize();
await add(forgetful);
