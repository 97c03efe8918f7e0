// Chapter 33: servers in real workers, which are threads here: the fixtures as they are, in both
// eras; what they log, how they end, and what they may not do. In a browser:
// test/real/playground.test.ts.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { inBothEras } from '../chapters/22-no-handshake/era.ts';
import { listResources } from '../chapters/24-more-than-tools/offers.ts';
import { serverScript } from '../chapters/33-a-page/worker-process.ts';
import { workerTransport } from '../chapters/33-a-page/worker-transport.ts';
import { Connection, type Json } from '../mcp.ts';
import { cleanUp, later, rejection, root } from './help/basics.ts';

afterEach(cleanUp);

const helper = '../chapters/33-a-page/more/thread.mjs'; // there are no types of it
const { startThread } = await import(helper);
const fixture = (name: string) => readFileSync(join(root, 'fixtures', name), 'utf8');

function connectionTo(source: string, args: string[] = [], options: Json = {}) {
  const worker = workerTransport(() => startThread(serverScript(source, args)));
  const connection = new Connection(
    'worker',
    { type: 'worker' },
    { transports: { worker }, ...options },
  );
  later(() => connection.close());
  return connection;
}

async function opened(...given: Parameters<typeof connectionTo>) {
  const connection = connectionTo(...given);
  await connection.connect();
  return { connection, server: await connection.initialize() };
}

test('the calculator as it is: list, call, a result that says it failed', async () => {
  const { connection, server } = await opened(fixture('server.mjs'));
  assert.equal(server.protocolVersion, '2025-11-25');
  assert.ok((await connection.listTools()).some(({ name }) => name === 'add'));
  assert.equal((await connection.callTool('add', { a: 2, b: 40 })).text, '42');
  assert.equal((await connection.callTool('add', { a: 'two', b: 40 })).isError, true);
});

test('a list in pages, by an argument of the server', async () => {
  const { connection } = await opened(fixture('server.mjs'), ['--page', '1']);
  assert.ok((await connection.listTools()).length > 1);
});

test('a library without a handshake', async () => {
  const extensions = inBothEras();
  const { connection, server } = await opened(fixture('library.mjs'), ['modern'], { extensions });
  assert.equal(server.protocolVersion, '2026-07-28');
  assert.ok((await listResources(connection)).length > 5);
});

const GREETING = `const result = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'x' } };
process.stdin.on('data', (text) => {
  const { id, method } = JSON.parse(text);
  const answer = (result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n');
  if (method === 'initialize') answer(result);
  if (method === 'tools/call') call(answer);
});\n`;

test('what is written to stderr, and by console.error, is told beside the wire', async () => {
  const said: string[] = [];
  const onStderr = (text: string) => said.push(text);
  const source = `${GREETING} process.stderr.write('a line\\n'); console.error('two', 'words');`;
  await opened(source, [], { onStderr });
  assert.equal(said.join(''), 'a line\ntwo words\n');
});

test('an answer and an exit in one breath: the answer comes, then the end', async () => {
  const source = `${GREETING} const call = (answer) => { answer({ content: [] }); process.exit(3); };`;
  const { connection } = await opened(source);
  assert.deepEqual((await connection.callTool('leave', {})).content, []);
  const error = await rejection(connection.callTool('leave', {}));
  assert.match(error.message, /\(in a worker\) ended with code 3/);
});

test('a mistake in a call, a rejection, and a script that cannot be read: told once, with the reason', async () => {
  const mistakes = {
    'const call = () => nowhere();': /broke down: nowhere is not defined/,
    'const call = () => Promise.reject(new Error("odd"));': /odd/,
  };
  for (const [source, reason] of Object.entries(mistakes)) {
    const { connection } = await opened(GREETING + source);
    assert.match((await rejection(connection.callTool('x', {}))).message, reason);
    assert.match((await rejection(connection.callTool('x', {}))).message, reason);
  }
  const unreadable = connectionTo('this is no program');
  await unreadable.connect();
  assert.match((await rejection(unreadable.initialize())).message, /broke down: Unexpected/);
});

test('an endless loop is given up, and ended', async () => {
  const options = { callTimeoutMs: 200 };
  const { connection } = await opened(`${GREETING} const call = () => { for (;;); };`, [], options);
  assert.match((await rejection(connection.callTool('x', {}))).message, /did not answer/);
  await connection.close(); // or this test would never end
});

test('a line that is too long ends it, whether it has come to its end or not', async () => {
  for (const end of ['', '\\n']) {
    const source = `${GREETING} const call = () => process.stdout.write('x'.repeat(3000) + '${end}');`;
    const { connection } = await opened(source, [], { maxLineBytes: 2000 });
    const error = await rejection(connection.callTool('x', {}));
    assert.match(error.message, /sent a line of more than 2000 bytes/);
  }
});

test('a message cut anywhere is whole, also within a character', async () => {
  const source = `${GREETING} const call = () => {
    const text = JSON.stringify({ jsonrpc: '2.0', id: 2, result: { content: [{ type: 'text', text: '€𝄞' }] } });
    for (const piece of [...(text + '\\n')].flatMap((char) => char.split(''))) process.stdout.write(piece);
  };`;
  const { connection } = await opened(source);
  assert.equal((await connection.callTool('x', {})).text, '€𝄞');
});
