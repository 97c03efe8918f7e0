// server.ts: `mcp-by-hand/server`, what a program needs to be one, as the package exports it.

export { serveStdio } from '../29-a-server/pipe.ts';
export { secretsFrom } from '../29-a-server/secrets.ts';
export { serveHttp, type HttpOptions } from '../29-a-server/serve-http.ts';
export { McpServer, type ServerOptions } from '../29-a-server/server.ts';
