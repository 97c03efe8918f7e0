// Chapter 3: a server that says all kinds of things, and what we say to it.

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
const config = { command: 'node', args: ['fixtures/habits.mjs', 'chatty'] };
// McpConnection brings the pipe by itself; this demo also runs on the program before, which has none.
const stdio: mcp.TransportFactory = (...given) => new mcp.StdioTransport(...given);
const chatty = new mcp.Connection('chatty', config, { transports: { stdio }, onWire, onWarning });
await chatty.connect();
await until(8);
await pause(50); // for the last one's warning, if there were any
console.log(`  ${chatty.warnings.size} warning: ${[...chatty.warnings.keys()].join(', ')}`);

console.log("\nWhat we say to it, without an id, so it needn't answer:");
await chatty.notify('notifications/initialized');
