// Chapter 3.1: a request, its answer and a notification.

import * as mcp from '../../mcp.ts';

let came = 0;
const onWire = (direction: string, message: unknown) => {
  console.log(direction === 'out' ? '→' : '←', JSON.stringify(message));
  if (direction === 'in') came++;
};
const onWarning = (warning: string) => console.log(`  ${warning}`);
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));
const until = async (count: number) => {
  while (came < count) await pause(10);
};
const config = { command: 'node', args: ['fixtures/server.mjs'] };
const add = { name: 'add', arguments: { a: 2, b: 40 } };

console.log(
  'A request has an id, and its answer has the same (by hand, on the pipe of chapter 2):',
);
const pipe = new mcp.StdioTransport('calculator', config, 2 ** 26);
await pipe.start({ message: (message) => onWire('in', message), closed: () => {} });
const request: mcp.Message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: add };
onWire('out', request);
await pipe.send(request);
await until(1);

console.log('\nThe same without an id is a notification, and nothing comes back:');
if (!mcp.McpConnection)
  console.log(
    '  there is no word for that yet: a pipe moves messages, and knows nothing about them',
  );
else await notify();

async function notify(): Promise<void> {
  const calculator = new mcp.McpConnection('calculator', config, { onWire, onWarning });
  await calculator.connect();
  await calculator.notify('tools/call', add);
  await pause(500);
}
