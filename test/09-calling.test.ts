// Chapter 9: `tools/call`, content blocks; `isError` is not an error.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { cleanUp, goodServer, habit, open, rejection } from './help/basics.ts';
import { RpcError, blocksToText } from './help/subject.ts';

afterEach(cleanUp);

test('a call goes out with its name and arguments, and its text comes back', async () => {
  const { connection, wire } = await open({ command: process.execPath, args: [goodServer] });
  const result = await connection.callTool('add', { a: 2, b: 40 });
  assert.deepEqual(result, { text: '42', content: [{ type: 'text', text: '42' }], isError: false });
  assert.deepEqual(wire.at(-2)![1].params, { name: 'add', arguments: { a: 2, b: 40 } });
  assert.equal((await connection.callTool('greet', { name: 'Ada' })).text, 'Hello, Ada!');
});

test('fault 12: a tool that failed is a result with isError, and says why', async () => {
  const { connection } = await open({ command: process.execPath, args: [goodServer] });
  const result = await connection.callTool('add', { a: 2 });
  assert.deepEqual([result.isError, result.text], [true, 'a and b must be numbers']);
});

test('a tool that does not exist is an RpcError', async () => {
  const { connection } = await open({ command: process.execPath, args: [goodServer] });
  const error = await rejection(connection.callTool('subtract'));
  assert.ok(error instanceof RpcError);
  assert.deepEqual(
    [error.code, error.message],
    [-32602, 'MCP server "demo" refused tools/call: Unknown tool: subtract (-32602)'],
  );
});

test('fault 13: no block vanishes', async () => {
  const content = [
    { type: 'text', text: 'first' },
    { type: 'image', data: 'AAAA', mimeType: 'image/png' },
    { type: 'audio', data: 'AAAAAAAA', mimeType: 'audio/wav' },
    { type: 'resource_link', uri: 'file:///a.txt', name: 'a.txt' },
    {
      type: 'resource',
      resource: { uri: 'file:///b.txt', mimeType: 'text/plain', text: 'inside b' },
    },
    {
      type: 'resource',
      resource: { uri: 'file:///c.bin', mimeType: 'application/octet-stream', blob: 'AAAA' },
    },
    { type: 'hologram', beams: 3 },
  ];
  const { connection } = await open(habit());
  const result = await connection.callTool('result', { result: { content } });
  assert.deepEqual(result.content, content);
  assert.equal(
    result.text,
    [
      'first',
      '[image: image/png, 3 bytes]',
      '[audio: audio/wav, 6 bytes]',
      '[link: a.txt file:///a.txt]',
      'inside b',
      '[resource: file:///c.bin, application/octet-stream, 3 bytes]',
      '[a block that we cannot read: {"type":"hologram","beams":3}]',
    ].join('\n'),
  );
});

test('fault 13: structured content is kept, also when it is null, and is the text when there is no other', async () => {
  const { connection } = await open(habit());
  const call = (result: unknown) => connection.callTool('result', { result });
  const both = await call({
    content: [{ type: 'text', text: 'sunny' }],
    structuredContent: { sky: 'blue' },
  });
  assert.deepEqual([both.text, both.structuredContent], ['sunny', { sky: 'blue' }]);
  assert.equal((await call({ structuredContent: { sky: 'blue' } })).text, '{"sky":"blue"}');
  assert.ok('structuredContent' in (await call({ content: [], structuredContent: null })));
  assert.ok(!('structuredContent' in (await call({ content: [] }))));
  assert.equal((await call({})).text, '');
  assert.equal((await call({ content: null, structuredContent: [1] })).text, '[1]');
});

test('odd blocks are placeholders, and content that is no list is an error for the call', async () => {
  for (const block of [
    null,
    7,
    'text',
    [],
    {},
    { type: 'text' },
    { type: 'text', text: 7 },
    { type: 'resource' },
    { type: 'image' },
    { type: 'image', mimeType: { toString: 1 } },
  ])
    assert.match(blocksToText([block]), /^\[.*\]$/, JSON.stringify(block));
  const { connection } = await open(habit());
  for (const content of ['text', { type: 'text' }, 7])
    assert.equal(
      (await rejection(connection.callTool('result', { result: { content } }))).kind,
      'protocol',
    );
  assert.equal(
    (await connection.callTool('result', { result: { content: [], isError: 'yes' } })).isError,
    false,
  );
});

test('what the servers of 2024 answered, and a failure that is said in words, are understood', async () => {
  const { connection } = await open(habit());
  const old = await connection.callTool('result', { result: { toolResult: 'forty-two' } });
  assert.deepEqual([old.text, old.isError], ['"forty-two"', false]);
  const failed = await connection.callTool('result', {
    result: { content: [{ type: 'text', text: 'no' }], isError: 'true' },
  });
  assert.equal(failed.isError, true);
});
