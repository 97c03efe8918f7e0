// lasting-server.ts: a server whose tasks survive its process (postgres-tasks.ts). Two of these
// behind one address share a secret and a database.
//
//   npm install pg
//   DATABASE_URL=… npx tsx test/programs/lasting-server.ts 3001 secret-file

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Json } from '../../mcp.ts';
import type { ServerCall } from '../../chapters/29-a-server/server-call.ts';
import { McpServer } from '../../chapters/29-a-server/server.ts';
import { secretsFrom } from '../../chapters/29-a-server/secrets.ts';
import { serveHttp } from '../../chapters/29-a-server/serve-http.ts';
import { PostgresTasks } from './postgres-tasks.ts';

const [port, file] = process.argv.slice(2);
const { Pool } = createRequire(join(process.cwd(), 'package.json'))('pg');
const log = (...words: unknown[]) => console.error(...words);

/** Without its lock it would work on what others have taken over. */
function end(why: unknown): void {
  log('the database is gone:', why);
  process.exit(1);
}

const work = (name: string, annotations: Json) => ({
  name,
  description: 'Takes its time, or asks for a word first.',
  inputSchema: { type: 'object', properties: { ms: { type: 'integer', minimum: 0 } } },
  annotations,
  run: ({ ms }: { ms?: number }, call: ServerCall) =>
    call.inBackground(async (task) => {
      const word = { type: 'object', properties: { word: { type: 'string' } } };
      const answer = ms === undefined ? await task.elicit('Which word?', word) : {};
      await pause(ms, undefined, { signal: task.signal });
      return JSON.stringify({ by: process.pid, ...answer });
    }),
});

const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: 8 }).on('error', end);
const { sealingKey, token } = secretsFrom({ file });
const server = new McpServer({
  name: 'lasting',
  version: '1.0.0',
  tools: [work('repeatable', { idempotentHint: true }), work('once', {})],
  tasks: await new PostgresTasks(pool).open(end),
  sealingKey,
  onError: log,
});
const { url } = await serveHttp(server, { port: Number(port), token });
log(`${process.pid} listens at ${url}, with the token ${token}`);
