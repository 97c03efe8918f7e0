// Leaves calls, streams and timers open on a server that hangs, closes, and tells how long it lived.

import { httpTransports } from '../../chapters/20-streamable-http/http.ts';
import { McpConnection } from '../../mcp.ts';

const limits = { handshakeTimeoutMs: 120_000, callTimeoutMs: 120_000 };
const transports = {
  http: httpTransports.http,
};
const connection = new McpConnection(
  'demo',
  { type: 'http', url: process.argv[2] },
  { ...limits, transports },
);
await connection.connect();
await connection.initialize();
await connection.listTools(); // its stream stays open
const calls = ['silence', 'stream'].map((name) => connection.callTool(name).catch(() => {}));
await new Promise((done) => setTimeout(done, 300));
await connection.close();
await Promise.all(calls);
process.on('exit', () => console.log(JSON.stringify({ atExit: process.uptime() * 1000 })));
