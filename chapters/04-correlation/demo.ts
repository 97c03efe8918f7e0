// Chapter 4: an extension that goes around every call.

import { McpConnection, type Call, type Next } from '../../mcp.ts';

function counting(connection: McpConnection) {
  let calls = 0;
  return {
    layer: (call: Call, next: Next) => {
      calls++;
      console.log(`  ${connection.serverName}: call ${calls}, ${call.method}`);
      return next(call);
    },
  };
}

console.log('Two calls, and an extension that counts them:');
const config = { command: 'node', args: ['fixtures/server.mjs'] };
const calculator = new McpConnection('calculator', config, { extensions: [counting] });
await calculator.connect();
for (const b of [40, 41]) {
  const { content } = (await calculator.request('tools/call', {
    name: 'add',
    arguments: { a: 2, b },
  })) as any;
  console.log(`  2 + ${b} = ${content[0].text}`);
}
