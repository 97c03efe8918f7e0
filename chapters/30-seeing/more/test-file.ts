// test-file.ts: a call that was made, as a test that makes it again. It needs Node and this package.

import { asList, asObject, show, type Json } from '../../../mcp.ts';
import { TurnedAway } from '../door.ts';

const MAX_EXPECTED = 20_000; // characters: of more only the kinds of the blocks are compared

/** Its secrets are *** already, as in every trace; a test with one has to be completed. */
export function testFile({ server, name, args, result }: Json, config: Json): string {
  const { command, args: words, env, cwd } = config;
  if (typeof command !== 'string')
    throw new TurnedAway(400, 'only a server that is started by a command can be in a test file');
  const entry = { command, args: asList(words), env, cwd }; // JSON leaves out what is not there
  const { content, isError = false } = asObject(result);
  const isLong = JSON.stringify(content ?? []).length > MAX_EXPECTED;
  const kinds = asList(content).map((block) => asObject(block).type);
  const compared = isLong
    ? `content.map(({ type }) => type), ${json(kinds)}`
    : `content, ${json(content)}`;
  return `import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { McpConnection } from 'mcp-by-hand';

const server = new McpConnection(${json(show(server))}, ${json(entry)});
await server.connect();
await server.initialize();
after(() => server.close());

test(${json(show(name))}, async () => {
  const { content, isError } = await server.callTool(${json(show(name))}, ${json(args)});
  assert.deepEqual(${compared});
  assert.equal(isError, ${isError === true});
});
`;
}

/** JSON is JavaScript, indented. */
const json = (value: unknown) => JSON.stringify(value ?? [], null, 2);
