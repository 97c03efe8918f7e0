// Chapter 28: a structured result that is not as its tool says is a warning, and still a result.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { checkOutput } from '../chapters/28-a-thousand-tools/results/output.ts';
import type { Json } from '../mcp.ts';
import { heldServer } from './help/held-server.ts';
import { cleanUp, open, until } from './help/basics.ts';

afterEach(cleanUp);

const outputSchema = { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] };

test('a mismatch is told once for each tool, and the result stays as it is', async () => {
  const server = heldServer([
    { name: 'add', outputSchema },
    { name: 'other', outputSchema },
    'free',
  ]);
  const { connection, warnings } = await open(
    { type: 'held' },
    { transports: { held: server.factory }, extensions: [checkOutput] },
  );
  await connection.listTools();
  const call = async (name: string, more: Json) => {
    const calling = connection.callTool(name);
    await until(() => server.open().length === 1);
    server.open()[0]!.answer('text', more);
    return calling;
  };
  await call('add', { structuredContent: { sum: 1 } });
  await call('add', { isError: true });
  await call('free', { structuredContent: 7 });
  assert.deepEqual(warnings, []);
  assert.deepEqual((await call('add', { structuredContent: { sum: '1' } })).structuredContent, {
    sum: '1',
  });
  await call('add', { structuredContent: {} });
  await call('other', {});
  assert.deepEqual(warnings, [
    'MCP server "demo" has a tool "add" whose structured result is not as it says: sum should be a number',
    'MCP server "demo" has a tool "other" whose structured result is not as it says: there is none',
  ]);
});
