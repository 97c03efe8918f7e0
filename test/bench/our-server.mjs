// The server of chapter 29, compiled, with one tool: `node our-server.mjs FOLDER [MAX-SESSIONS]`. It prints its address, and leaves
// when its stdin ends. With --expose-gc, a line on stdin makes it print how much memory it uses.

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [folder, maxSessions = 1000] = process.argv.slice(2);
const load = (name) =>
  import(pathToFileURL(join(folder, 'chapters', '29-a-server', `${name}.js`)).href);
const { McpServer } = await load('server');
const { serveHttp } = await load('serve-http');

const number = { type: 'number' };
const server = new McpServer({
  name: 'bench',
  version: '1.0.0',
  tools: [
    {
      name: 'add',
      description: 'Adds two numbers.',
      inputSchema: { type: 'object', properties: { a: number, b: number }, required: ['a', 'b'] },
      run: ({ a, b }) => `${a + b}`,
    },
    {
      name: 'talk',
      description: 'Begins a stream, and does not end it.',
      run: async (_, call) => {
        call.progress(1);
        await new Promise((_, fail) =>
          call.signal.addEventListener('abort', () => fail(call.signal.reason), { once: true }),
        );
        return 'never';
      },
    },
  ],
});
const http = await serveHttp(server, { maxSessions: Number(maxSessions) });
console.log(http.url);
process.stdin.setEncoding('utf8').on('data', () => {
  for (let n = 0; n < 3; n++) globalThis.gc?.();
  const { rss, heapUsed } = process.memoryUsage();
  console.log(
    JSON.stringify({
      rss,
      heapUsed,
      sessions: http.sessions,
      listeners: server.listeners,
      joined: server.sessions.size,
    }),
  );
});
process.stdin.on('end', () => process.exit());
