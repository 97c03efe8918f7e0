// site.ts: what a browser can show of this book, as one folder that opens without a server.
//
//   npm run site            writes dist-site/
//   npm run site serve      and serves it to this machine, for pages that talk to servers on it

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { resolve } from 'node:path';
import { put } from './files.ts';
import { root } from './pages.ts';
import { playgroundFiles } from './playground.ts';

const FOLDER = 'dist-site';
const PORT = 8033;
const TYPES: Record<string, string> = { '.html': 'text/html', '.js': 'text/javascript' };

type Files = Map<string, string>;

/** All pages by their names, with links among them that need no server. */
export async function siteFiles(): Promise<Files> {
  const files: Files = new Map([...(await playgroundFiles())]);
  return files.set('index.html', index());
}

const index = () => `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>mcp-by-hand</title>
<h1>mcp-by-hand</h1>
<p><a href="playground.html">Talk to a server</a>: a client in a page, with servers that run in it.</p>
</html>
`;

/** To this machine alone, and nothing but these files. */
export async function serveSite(files: Files, port = 0): Promise<{ server: Server; url: string }> {
  const server = createServer(({ url = '/', method }, response) => {
    const name = url === '/' ? 'index.html' : url.split(/[?#]/)[0]!.slice(1);
    const text = method === 'GET' ? files.get(name) : undefined;
    const type = `${TYPES[extname(name)] ?? 'text/plain'}; charset=utf-8`;
    const headers = { 'content-type': type, 'x-content-type-options': 'nosniff' };
    response.writeHead(text === undefined ? 404 : 200, headers).end(text ?? 'not here\n');
  });
  await new Promise<void>((done, fail) => {
    server.once('error', fail).listen(port, '127.0.0.1', done);
  });
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` };
}

async function main(command = ''): Promise<void> {
  const files = await siteFiles();
  for (const [name, text] of files) put(join(root, FOLDER, name), text);
  console.log(`${files.size} files in ${FOLDER}/: open ${join(FOLDER, 'index.html')}`);
  if (command !== 'serve') return;
  const { url } = await serveSite(files, PORT);
  console.log(`They are also at ${url} until Ctrl-C. A server of ours lets them in with`);
  console.log(`  npm start -- serve --http --allow-origin ${url.slice(0, -1)}`);
}

if (resolve(process.argv[1] ?? '') === fileURLToPath(import.meta.url)) await main(process.argv[2]);
