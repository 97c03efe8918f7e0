// Connects, calls and closes with long limits, and tells which timers there are between two calls, in a call
// and at the end, and how long it lived.
// (What the program of an early chapter does not have yet is left out.)

import { McpConnection } from '../help/subject.ts';
import { call, habit } from '../help/basics.ts';

const connection = new McpConnection('demo', habit(), {
  handshakeTimeoutMs: 120_000,
  callTimeoutMs: 120_000,
});
await connection.connect();
await connection.initialize?.();
await connection.listTools?.();
await call(
  connection,
  'echo',
  { hello: 'there' },
  { signal: new AbortController().signal, onProgress: () => {} },
);
const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
const between = timers();
const waiting = call(connection, 'sleep', { ms: 1e8 }).catch(() => {});
const during = timers();
await call(connection, 'exit', { code: 0 }).catch(() => {});
await waiting;
await connection.close?.();
const after = timers();
process.on('exit', () =>
  console.log(JSON.stringify({ between, during, after, livedMs: process.uptime() * 1000 })),
);
