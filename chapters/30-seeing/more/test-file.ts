// test-file.ts: a call that was made, as a test that makes it again. It needs Node and this package.

import { asList, asObject, show, type Json } from '../../../mcp.ts';

const MAX_EXPECTED = 20_000; // characters: of more only the kinds of the blocks are compared

/** Its secrets are *** already, as in every trace; a test with one has to be completed. */
export function testFile({ server, name, args, result }: Json, entry: Json): string {
  const { content: blocks, isError } = asObject(result);
  const content = asList(blocks);
  const isLong = json(content).length > MAX_EXPECTED;
  const kinds = content.map((block) => asObject(block).type);
  const compared = isLong
    ? `content.map(({ type }) => type), ${json(kinds)}`
    : `content, ${json(content)}`;
  return `import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect } from 'mcp-by-hand';

test(${json(show(name))}, async (context) => {
  const server = await connect(${json(entry)}, { name: ${json(show(server))} });
  context.after(() => server.close());
  const { content, isError } = await server.callTool(${json(show(name))}, ${json(asObject(args))});
  assert.deepEqual(${compared});
  assert.equal(isError, ${isError === true});
});
`;
}

/** JSON is JavaScript, indented. */
const json = (value: unknown) => JSON.stringify(value, null, 2);
