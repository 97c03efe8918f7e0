// bookshelf.ts: a server to look at: a shelf with three books. It has two tools, a resource, a
// template and a prompt; one of the tools asks a person first.
//
//   npx tsx chapters/29-a-server/bookshelf.ts                  on stdio
//   npx tsx chapters/29-a-server/bookshelf.ts --http 3000      at http://127.0.0.1:3000/mcp

import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { asObject } from '../../mcp.ts';
import type { ServerCall } from './server-call.ts';
import { serveHttp } from './serve-http.ts';
import type {
  ServerPrompt,
  ServerResource,
  ServerTemplate,
  ServerTool,
} from './protocol/server-rows.ts';
import { searchLines } from '../16-hands/more/matching.ts';
import { serveStdio } from './pipe.ts';
import { secretsFrom } from './secrets.ts';
import { McpServer, type ServerOptions } from './server.ts';

type Book = { title: string; text: string; lentTo?: string };

const STRING = { type: 'string' };

export function shelf(options: Partial<ServerOptions> = {}): McpServer {
  const books = new Map<string, Book>([
    ['emma', { title: 'Emma', text: 'handsome, clever, and rich' }],
    ['moby', { title: 'Moby-Dick', text: 'Call me Ishmael.' }],
    ['alice', { title: 'Alice in Wonderland', text: `${'a'.repeat(40)}! said the Queen` }],
  ]);
  const server: McpServer = new McpServer({
    name: 'shelf',
    version: '1.0.0',
    tools: [find(books), lend(books, () => server.updated('shelf://index'))],
    resources: [index(books)],
    templates: [book(books)],
    prompts: [recommend(books)],
    ...options,
  });
  return server;
}

const find = (books: Map<string, Book>): ServerTool => ({
  name: 'find',
  description: 'Finds books whose text matches a regular expression.',
  inputSchema: { type: 'object', properties: { pattern: STRING }, required: ['pattern'] },
  annotations: { readOnlyHint: true, openWorldHint: false },
  run: async ({ pattern }, { signal }) => {
    const all = [...books.values()];
    const texts = all.map(({ text }) => text);
    const found = await searchLines({ timeoutMs: 1000, signal }, `${pattern}`, 'iu', texts);
    const titles = found.map((n) => all[n]!.title);
    return titles.join('\n') || 'no book matches';
  },
});

const YES_OR_NO = {
  type: 'object',
  properties: { allow: { type: 'boolean', title: 'Lend it', default: false } },
  required: ['allow'],
};

/** Only an accepted form with a yes in it is a yes. */
async function isAllowed(call: ServerCall, question: string) {
  const answer = await call.elicit(question, YES_OR_NO, { isPermission: true });
  return answer.action === 'accept' && asObject(answer.content).allow === true;
}

const lend = (books: Map<string, Book>, changed: () => void): ServerTool => ({
  name: 'lend',
  description: 'Lends a book to somebody. The owner is asked first.',
  inputSchema: {
    type: 'object',
    properties: { id: { enum: [...books.keys()] }, to: { ...STRING, minLength: 1 } },
    required: ['id', 'to'],
  },
  run: async ({ id, to }, call) => {
    const book = books.get(`${id}`)!;
    if (book.lentTo) throw new Error(`${book.title} is lent to ${book.lentTo}`);
    if (!(await isAllowed(call, `Lend ${book.title} to ${to}?`))) return 'The owner said no.';
    book.lentTo = `${to}`; // below the question: above it, it would happen twice
    changed();
    return `${book.title} is lent to ${to}.`;
  },
});

const index = (books: Map<string, Book>): ServerResource => ({
  uri: 'shelf://index',
  name: 'The books on the shelf',
  mimeType: 'application/json',
  read: () => {
    const rows = [...books].map(([id, { title, lentTo }]) => ({ id, title, lentTo }));
    return JSON.stringify(rows);
  },
});

const book = (books: Map<string, Book>): ServerTemplate => ({
  uriTemplate: 'shelf://book/{id}',
  name: 'The text of a book',
  mimeType: 'text/plain',
  read: ({ id }) => books.get(id!)?.text,
  complete: { id: (value) => [...books.keys()].filter((id) => id.startsWith(value)) },
});

const recommend = (books: Map<string, Book>): ServerPrompt => ({
  name: 'recommend',
  description: 'Asks for a book for a mood.',
  arguments: [{ name: 'mood', required: true }],
  get: ({ mood }) => {
    const titles = [...books.values()].map(({ title }) => title).join(', ');
    return `Which of these is right for someone who is ${mood}? ${titles}`;
  },
});

// ─── As a program ──────────────────────────────────────────────────────────────────────────────

async function serveShelf() {
  const { values } = parseArgs({
    options: {
      http: { type: 'string' }, // the port
      host: { type: 'string' },
      hostname: { type: 'string', multiple: true },
      'secret-file': { type: 'string' },
    },
  });
  const { sealingKey, token } = secretsFrom({ file: values['secret-file'] });
  const server = shelf({ sealingKey, onError: (what, error) => console.error(what, error) });
  if (values.http === undefined) {
    await serveStdio(server);
    process.exit();
  }
  const { host, hostname: hostnames } = values;
  const isShared = host !== undefined || values['secret-file'] !== undefined;
  const card = { name: 'com.example/shelf', description: 'A shelf with three books' };
  const options = { port: Number(values.http), host, hostnames, card, ...(isShared && { token }) };
  const http = await serveHttp(server, options);
  console.error(`shelf listens at ${http.url}${isShared ? `, with the token ${token}` : ''}`);
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void http.close().then(() => process.exit()));
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) await serveShelf();
