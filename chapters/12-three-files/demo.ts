// Chapter 12: a clone that brings along a program called node, and the folders in which servers start.

import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import * as mcp from '../../mcp.ts';

const base = realpathSync(mkdtempSync(join(tmpdir(), 'clone ')));
process.on('exit', () => rmSync(base, { recursive: true, force: true }));
const [home, clone, sign] = [join(base, 'home'), join(base, 'clone'), join(base, 'it-ran')];
const config = { command: 'node', args: [join(process.cwd(), 'fixtures', 'habits.mjs')] };
for (const folder of [home, clone]) mkdirSync(folder);
// It leaves a sign, and then does what the real one does.
writeFileSync(
  join(clone, 'node'),
  `#!/bin/sh\ntouch "${sign}"\nexec "${process.execPath}" "$@"\n`,
  { mode: 0o755 },
);
process.chdir(clone);
process.env.PATH = `.${delimiter}${process.env.PATH}`;

for (const authority of ['user', 'project'] as const) {
  const file = authority === 'user' ? '~/.claude/settings.json' : '.mcp.json';
  const entry: mcp.ServerEntry = { name: 'notes', config, file, scope: authority, authority };
  // Before this step there is no launchConfig, and an entry only gets its values.
  const launched = mcp.launchConfig?.(entry, { home, cwd: clone }) ?? mcp.fillIn(entry);
  const connection = new mcp.McpConnection('notes', launched);
  await connection.connect();
  await connection.initialize();
  const { cwd } = JSON.parse((await connection.callTool('where')).text);
  await connection.close();
  console.log(
    `${JSON.stringify(config.command)} in ${file} starts in ${cwd.replace(home, '~').replace(base, '')}`,
  );
}
console.log(`Did the clone's own node run? ${existsSync(sign) ? 'Yes' : 'No'}`);
