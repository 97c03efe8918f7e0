// Chapter 3: a server that says all kinds of things.

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

console.log('A server that writes all kinds of things to its stdout:');
const chatty = new mcp.McpConnection(
  'chatty',
  { command: 'node', args: ['fixtures/habits.mjs', 'chatty'] },
  { onWire, onWarning },
);
await chatty.connect();
await until(8);
await pause(50); // for the last one's warning, if there were any
console.log(`  ${chatty.warnings.size} warning: ${[...chatty.warnings.keys()].join(', ')}`);
