// Connects, calls and closes with long limits, and tells which resources are left and how long it lived.

import { McpConnection } from '../subject.ts';
import { habit } from '../helpers.ts';

const connection = new McpConnection('demo', habit(), { handshakeTimeoutMs: 120_000, callTimeoutMs: 120_000 });
await connection.connect();
await connection.initialize();
await connection.listTools();
await connection.callTool('echo', { hello: 'there' }, { signal: new AbortController().signal, onProgress: () => {} });
await connection.callTool('exit', { code: 0 }).catch(() => {});
await connection.close();
const atEnd = process.getActiveResourcesInfo();
process.on('exit', () => console.log(JSON.stringify({ atEnd, atExit: process.uptime() * 1000 })));
