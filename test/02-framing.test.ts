// Chapter 2: bytes are not messages; only LF ends one.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { cleanUp, connect, habit, rejection, run } from './helpers.ts';

afterEach(cleanUp);

const call = (name: string, args = {}) => ['tools/call', { name, arguments: args }] as const;
const textOf = (result: any): string => result.content[0].text;
const story = 'Zoë 🦊 ate 3 € of 日本 noodles\u2028and then\u2029slept';

test('B2: every byte may come alone, in the middle of a character too', async () => {
  const { connection } = await connect(habit('drip'));
  assert.deepEqual(JSON.parse(textOf(await connection.request(...call('echo', { story })))), { story });
});

test('fault 9: U+2028 and U+2029 are characters, not the end of a line', async () => {
  const { connection } = await connect(habit());
  const result = await connection.request(...call('result', { result: { content: [{ type: 'text', text: story }] } }));
  assert.equal(textOf(result), story);
});

test('B2: CRLF ends a line as well', async () => {
  const { connection } = await connect(habit('crlf'));
  assert.deepEqual(JSON.parse(textOf(await connection.request(...call('echo', { story })))), { story });
});

test('B2: banners, blank lines, JSON that is no message, a byte order mark: reported once, and the call works', async () => {
  const { connection, warnings, wire } = await connect(habit('chatty'));
  assert.equal(textOf(await connection.request(...call('echo', { a: 1 }))), '{"a":1}');
  assert.equal(warnings.length, 1);
  assert.match(warnings[0]!, /"demo" writes other things than messages to stdout: "Welcome to Chatty 2.0!"/);
  // The message behind the byte order mark was read; the line that is JSON but not JSON-RPC was not answered.
  assert.ok(wire.some(([, message]) => message.method === 'notifications/hello'));
  assert.deepEqual(wire.filter(([direction]) => direction === 'out').length, 1);
});

test('ten thousand noisy lines are one warning', async () => {
  const { connection, warnings } = await connect(habit('endless-noise'));
  assert.equal(textOf(await connection.request(...call('echo'))), 'done');
  assert.equal(warnings.length, 1);
});

test('B9: whatever an argument holds, it is one line on the wire', async () => {
  const { connection } = await connect(habit());
  const forged = '\n{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{"name":"exit","arguments":{"code":1}}}\n';
  await connection.request(...call('echo', { forged, story, '\r\n': '\u2028' }));
  const received = JSON.parse(textOf(await connection.request(...call('log'))));
  assert.equal(received.length, 2);
  assert.deepEqual(received[0].params.arguments, { forged, story, '\r\n': '\u2028' });
});

test('U+2028 leaves us escaped, because readline in Node 24 would split there', async () => {
  const { connection } = await connect({
    command: process.execPath, // tells the length of each raw line as it came
    args: ['-e', `process.stdin.on('data', (bytes) => {
      const answer = { jsonrpc: '2.0', id: 1, result: { hasRaw: bytes.includes(Buffer.from('\u2028')) || bytes.includes(Buffer.from('\u2029')) } };
      console.log(JSON.stringify(answer));
    })`],
  });
  assert.deepEqual(await connection.request(...call('echo', { story })), { hasRaw: false });
});

test('a message of 20 MB arrives whole', async () => {
  const { connection } = await connect(habit());
  const result = await connection.request(...call('big', { bytes: 20_000_000 }));
  assert.equal(textOf(result), 'x'.repeat(20_000_000));
});

test('fault 9, B1: a line without end is refused, and the memory it took is bounded', async () => {
  const { ended } = run('endless-line.ts');
  const { code, output } = await ended;
  assert.equal(code, 0, output);
  const { error, grownMiB } = JSON.parse(output);
  assert.match(error, /limit: MCP server "demo" \(.*\) sent a line of more than 10485760 bytes/);
  assert.ok(grownMiB < 64, `it grew by ${grownMiB} MiB`);
});

test('a line as long as the limit passes, a longer one does not', async () => {
  const { connection } = await connect(habit(), { maxLineBytes: 300_000 });
  assert.equal(textOf(await connection.request(...call('big', { bytes: 200_000 }))).length, 200_000);
  assert.equal((await rejection(connection.request(...call('big', { bytes: 600_000 })))).kind, 'limit');
  const strict = await connect(habit(), { maxLineBytes: 1000 });
  assert.equal((await rejection(strict.connection.request(...call('big', { bytes: 2000 })))).kind, 'limit');
});

test('B5: a message nested 100,000 levels deep is refused; brackets inside strings do not count', async () => {
  const { connection } = await connect(habit());
  const brackets = '[{\\"'.repeat(10_000);
  assert.deepEqual(JSON.parse(textOf(await connection.request(...call('echo', { brackets })))), { brackets });
  const fine = await connection.request(...call('deep', { levels: 400 }));
  assert.ok(Array.isArray(fine.content));
  const error = await rejection(connection.request(...call('deep', { levels: 100_000 })));
  assert.match(`${error.kind}: ${error.message}`, /limit: .*more than 500 levels/);
});

test('B5: 64 MiB of opening brackets are refused before they are parsed', async () => {
  const { connection } = await connect({
    command: process.execPath,
    args: ['-e', `process.stdin.once('data', () => { process.stdout.write('['.repeat(60 * 2 ** 20)); process.stdout.write('\\n') })`],
  });
  const error = await rejection(connection.request(...call('echo')));
  assert.match(`${error.kind}: ${error.message}`, /limit: .*more than 500 levels/);
});

test('a line of coloured noise with a thousand open brackets is noise, not too deep', async () => {
  const { connection, warnings } = await connect(habit());
  const spinner = '\u001b[2K\u001b[1G\u001b[36m|\u001b[0m'.repeat(300);
  const lines = [spinner, '{"jsonrpc":"2.0","id":$ID,"result":{"ok":true}}'];
  assert.deepEqual(await connection.request(...call('raw', { lines })), { ok: true });
  assert.match(warnings.join(), /other things than messages/);
});
