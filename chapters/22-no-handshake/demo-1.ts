// Chapter 22.1: the simplest client for both eras: ask, and shake hands if the server doesn't know the question.

import { McpConnection } from '../../mcp.ts';
import { inBothEras } from './era.ts';

/** "…" takes the place of what introduces a request. */
const brief = (key: string, value: unknown) => (key === '_meta' ? '…' : value);

for (const era of ['modern', 'legacy']) {
  console.log(era === 'modern' ? 'A server without a handshake:' : '\nA server that wants one:');
  const config = { command: 'node', args: ['fixtures/remote.mjs', 'stdio', '--era', era] };
  const connection = new McpConnection('calculator', config, {
    extensions: inBothEras(),
    onWire: (direction, message) =>
      console.log(direction === 'out' ? '→' : '←', JSON.stringify(message, brief)),
  });
  await connection.connect();
  await connection.initialize();
  const { text } = await connection.callTool('add', { a: 2, b: 40 });
  console.log('  =', text);
  await connection.close();
}
