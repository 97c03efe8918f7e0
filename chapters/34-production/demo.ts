// Chapter 34: a server that crashes once, and two clients of this book: the spine, and the whole.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { McpConnection, textOf, type ConnectionOptions } from '../../mcp.ts';
import { plainHost } from '../19-the-terminal/host.ts';
import { compose } from '../composition.ts';

const folder = mkdtempSync(join(tmpdir(), 'crash '));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

const program = resolve('fixtures/crashes-once.mjs');
const server = (name: string) => ({
  command: process.execPath,
  args: [program, join(folder, name)], // each client meets it as new
});

/** Two calls, one after the other. The first meets the crash. */
async function tell(who: string, client: McpConnection): Promise<void> {
  console.log(`\n${who}`);
  for (const when of ['first', 'again']) {
    const words = await client
      .callTool('lookup', { word: 'pipe' })
      .then(({ text }) => text, textOf);
    const lines = words.replaceAll(process.execPath, 'node').replaceAll('\n', '\n    ');
    console.log(`  ${when}: ${lines}`);
  }
  await client.close();
}

async function open(name: string, options?: ConnectionOptions): Promise<McpConnection> {
  const connection = new McpConnection('words', server(name), options);
  await connection.connect();
  await connection.initialize();
  return connection;
}

await tell('mcp.ts alone:', await open('spine'));
const { transports, extensions } = compose(plainHost());
const all = { transports, extensions, onWarning: () => {} };
await tell('with the rows of the composition:', await open('whole', all));
