// code.ts: the code server as a program.
//
//   npx tsx chapters/29-a-server/code/code.ts [folder]                  on stdio
//   npx tsx chapters/29-a-server/code/code.ts [folder] --http 3000      at http://127.0.0.1:3000/mcp
//
// Over HTTP a token is needed: other users of this machine can connect, too.

import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { Roots } from '../../16-hands/paths.ts';
import { codeServer } from './code-server.ts';
import { Embeddings } from '../embeddings.ts';
import { serveHttp } from '../serve-http.ts';
import { serveStdio } from '../pipe.ts';
import { secretsFrom } from '../secrets.ts';

// Started as a program, and not imported by a test.
if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) await serveCode();

async function serveCode() {
  const { values, positionals } = parseArgs({
    options: { http: { type: 'string' }, 'secret-file': { type: 'string' } },
    allowPositionals: true,
  });
  const roots = new Roots(resolve(positionals[0] ?? '.'));
  const { server } = codeServer({
    roots,
    embeddings: Embeddings.from(process.env), // the user's: contents of files go to that address
    server: { onError: (what, error) => console.error(what, error) },
  });
  if (values.http === undefined) {
    await serveStdio(server);
    process.exit();
  }
  const { token } = secretsFrom({ file: values['secret-file'] });
  const http = await serveHttp(server, { port: Number(values.http), token });
  console.error(`code listens at ${http.url}, for ${roots.cwd}`);
  console.error(`clients must send: Authorization: Bearer ${token}`);
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void http.close().then(() => process.exit()));
}
