// Connects, calls and closes with long limits, and tells which resources are left and how long it lived.
// (What the program of an early chapter does not have yet is left out.)

import { McpConnection } from '../subject.ts';
import { call, habit } from '../helpers.ts';

const connection = new McpConnection('demo', habit(), { handshakeTimeoutMs: 120_000, callTimeoutMs: 120_000 });
await connection.connect();
await connection.initialize?.();
await connection.listTools?.();
await call(connection, 'echo', { hello: 'there' }, { signal: new AbortController().signal, onProgress: () => {} });
await call(connection, 'exit', { code: 0 }).catch(() => {});
await connection.close?.();
const atEnd = process.getActiveResourcesInfo();
process.on('exit', () => console.log(JSON.stringify({ atEnd, atExit: process.uptime() * 1000 })));
