// Chapter 29, second page: node --import tsx chapters/29-a-server/demo-1.ts
//
// Four clients call the same three tools of `serve`; only their persons differ.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { McpConnection, type Extension, type Json } from '../../mcp.ts';
import { Roots } from '../16-hands/paths.ts';
import { builtIn } from '../25-other-pipes/in-process.ts';
import { overPipe } from './pipe.ts';
import { Served, TrustWithoutGrants } from './serve.ts';

const place = mkdtempSync(join(tmpdir(), 'serve-'));
process.on('exit', () => rmSync(place, { recursive: true, force: true }));
const [home, cwd] = [join(place, 'home'), join(place, 'project')];
mkdirSync(join(home, '.ssh'), { recursive: true });
mkdirSync(cwd);
writeFileSync(join(home, '.ssh', 'id_rsa'), 'PRIVATE KEY');
writeFileSync(join(cwd, 'note.txt'), 'Hello.\n');

const trust = new TrustWithoutGrants({ home, cwd });
const resultsFolder = join(place, 'results');
const { server } = new Served({ roots: new Roots(cwd), trust, resultsFolder, answerMs: 200 });

type Answer = () => Json | Promise<Json>;
const CLIENTS: Record<string, Answer | undefined> = {
  'a person who agrees': () => ({ action: 'accept', content: { allow: true } }),
  'a client that fills in the defaults': () => ({ action: 'accept', content: { allow: false } }),
  'a client that never answers': () => new Promise(() => {}),
  'a client that cannot ask': undefined,
};
const CALLS: [string, Json][] = [
  ['read', { path: 'note.txt' }],
  ['bash', { command: 'touch made' }],
  ['write', { path: join(home, 'stolen.txt'), content: 'x' }],
];

const shown = (text: string) => text.replaceAll(place, '').replaceAll('\n', ' ').trim();

for (const [name, answer] of Object.entries(CLIENTS)) {
  console.log(`\n${name}:`);
  const asking: Extension = () => ({
    capabilities: { elicitation: {} },
    handlers: {
      'elicitation/create': ({ message }) => {
        console.log(`  ? ${shown(`${message}`)}`);
        return answer!();
      },
    },
  });
  const connection = new McpConnection(
    'served',
    { type: 'in-process' },
    {
      transports: { 'in-process': builtIn(overPipe(server)) },
      extensions: answer ? [asking] : [],
    },
  );
  await connection.connect();
  await connection.initialize();
  for (const [tool, args] of CALLS) {
    const { text } = await connection.callTool(tool, args);
    console.log(`  ${tool}: ${shown(text)}`);
  }
  await connection.close();
}
process.exit();
