// What a web page could load names nothing of Node's: one connection, HTTP, both eras; questions of
// servers, forms, schemas, and what else a server offers.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runInNewContext } from 'node:vm';
import { bundleForWeb } from '../chapters/book/web.ts';
import { ENTRY as PAGE, playgroundFiles } from '../chapters/book/playground.ts';
import type { Reply } from '../chapters/18-minds/body.ts';
import type { httpTransportsBy } from '../chapters/20-streamable-http/streamable.ts';
import type { inBothEras } from '../chapters/22-no-handshake/era.ts';
import { serveHttp } from '../chapters/29-a-server/serve-http.ts';
import { McpServer } from '../chapters/29-a-server/server.ts';
import type { Connection, Json } from '../mcp.ts';
import { bareCode } from './measure/tokens.ts';

const ENTRY = `
  export { Connection } from './mcp.ts';
  export { httpTransportsBy } from './chapters/20-streamable-http/streamable.ts';
  export { inBothEras } from './chapters/22-no-handshake/era.ts';
`;

/** The modules of Node that it imports, and what only Node has, outside of strings and comments. */
function ofNode(text: string): string[] {
  const modules = [...text.matchAll(/["'](node:[\w/]+)["']/g)].map(([, name]) => name!);
  const names = bareCode(text).match(/\b(process|Buffer|setImmediate|require|__dirname)\b/g) ?? [];
  return [...new Set([...modules, ...names])];
}

const REST = `
  export { elicitation } from './chapters/23-the-server-asks/elicitation.ts';
  export { problemsBy } from './chapters/23-the-server-asks/keywords.ts';
  export { Offers } from './chapters/24-more-than-tools/offers.ts';
`;

test('nor do elicitation, its forms, schemas, resources, prompts and completion', async () => {
  assert.deepEqual(ofNode(await bundleForWeb(REST)), []);
});

test('a connection over HTTP in both eras needs nothing of Node', async () => {
  const text = await bundleForWeb(ENTRY);
  assert.deepEqual(ofNode(text), []);
  const { length } = await bundleForWeb(ENTRY, { minify: true });
  assert.ok(length < 60_000, `${length} bytes`);
});

test('nor does the page of chapter 33, which has at most 110 KB with its servers', async () => {
  assert.deepEqual(ofNode(await bundleForWeb(PAGE)), []);
  const page = (await playgroundFiles()).get('playground.html')!;
  assert.ok(page.length <= 110_000, `${page.length} bytes`);
});

/** All that the program gets. A web page has more. */
const WORLD = {
  AbortController,
  AbortSignal,
  TextDecoder,
  TextEncoder,
  URL,
  URLSearchParams,
  btoa,
  clearTimeout,
  performance,
  setTimeout,
};

/** As a web page would make a request. */
async function fetchInPage(_: string, url: URL, options: RequestInit): Promise<Reply> {
  const { status, statusText, headers, body } = await fetch(url, options);
  const chunks = body ?? new ReadableStream({ start: (controller) => controller.close() });
  const reader = chunks.getReader();
  const leave = () => void reader.cancel().catch(() => {}); // it may have been aborted
  return {
    status,
    statusText,
    headers: Object.fromEntries(headers),
    body: {
      async *[Symbol.asyncIterator]() {
        for (let next = await reader.read(); !next.done; next = await reader.read())
          yield next.value;
      },
      destroy: leave,
      resume: leave,
    },
  };
}

for (const era of ['with a handshake', 'without one'] as const)
  test(`it runs where there is no Node: ${era}`, async () => {
    const add = {
      name: 'add',
      description: 'adds',
      inputSchema: { type: 'object' },
      run: ({ a, b }: Json) => `${Number(a) + Number(b)} ☃`,
    };
    const server = new McpServer({ name: 'adder', version: '1', tools: [add] });
    const http = await serveHttp(server);
    try {
      const code = await bundleForWeb(ENTRY, { format: 'iife', globalName: 'program' });
      const { program } = runInNewContext(`${code}; ({ program })`, { ...WORLD }) as {
        program: {
          Connection: typeof Connection;
          httpTransportsBy: typeof httpTransportsBy;
          inBothEras: typeof inBothEras;
        };
      };
      const transports = program.httpTransportsBy(() => fetchInPage);
      const extensions = era === 'without one' ? program.inBothEras() : [];
      const config = { url: http.url, headers: {} };
      const connection = new program.Connection('adder', config, { transports, extensions });
      await connection.connect();
      const { protocolVersion } = await connection.initialize();
      assert.equal(protocolVersion, era === 'without one' ? '2026-07-28' : '2025-11-25');
      assert.equal((await connection.listTools()).length, 1);
      assert.equal((await connection.callTool('add', { a: 2, b: 40 })).text, '42 ☃');
      await connection.close();
    } finally {
      await http.close();
    }
  });

test('what needs Node is found: modules, process, Buffer', async () => {
  const text = await bundleForWeb(`
    export { McpConnection } from './mcp.ts';
    export { httpTransports } from './chapters/20-streamable-http/http.ts';
  `);
  const found = ofNode(text);
  for (const name of ['node:child_process', 'node:http', 'process', 'Buffer'])
    assert.ok(found.includes(name), name);
});
