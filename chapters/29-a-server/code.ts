// code.ts: the code server as a program.
//
//   npx tsx chapters/29-a-server/code.ts [folder]                  on stdio
//   npx tsx chapters/29-a-server/code.ts [folder] --http 3000      at http://127.0.0.1:3000/mcp

import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { Roots } from '../16-hands/paths.ts';
import { codeServer } from './code-server.ts';
import { Embeddings } from './embeddings.ts';
import { serveHttp } from './http.ts';
import { serveStdio } from './pipe.ts';

// Started as a program, and not imported by a test.
if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) await main();

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: { http: { type: 'string' } },
    allowPositionals: true,
  });
  const roots = new Roots(positionals[0] ?? process.cwd());
  const { server } = codeServer({
    roots,
    embeddings: Embeddings.from(process.env), // the user's: contents of files go to that address
    server: { onError: (what, error) => console.error(what, error) },
  });
  if (values.http === undefined) {
    await serveStdio(server);
    process.exit();
  }
  const http = await serveHttp(server, { port: Number(values.http) });
  console.error(`code listens at ${http.url}, for ${roots.cwd}`);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void http.close().then(() => process.exit()));
  }
}
