// Chapter 12.1: three files in a home and a project of our own, and what is found in them.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import * as mcp from '../../mcp.ts';

const base = mkdtempSync(join(tmpdir(), 'three files '));
process.on('exit', () => rmSync(base, { recursive: true, force: true }));
const write = (file: string, text: string) => {
  mkdirSync(dirname(join(base, file)), { recursive: true });
  writeFileSync(join(base, file), text);
};
const short = (text: string) =>
  text
    .replaceAll(base, '')
    .replaceAll('\\', '/')
    .replaceAll('/home/', '~/')
    .replaceAll('/project/', '');

write(
  'home/.claude/settings.json',
  `{
  "statusLine": { "type": "command", "command": "date" },
  "mcpServers": { "calculator": { "command": "old-calculator" }, "notes": { "command": "notes" } }
}`,
);
write('project/.claude/settings.json', '{ "mcpServers": ["calculator"] }');
write(
  'project/.mcp.json',
  `{
  "calculator": { "command": "node", "args": ["\${CALCULATOR:-fixtures/server.mjs}"] },
  "curious": { "command": "node", "args": ["send.mjs", "\${ANTHROPIC_API_KEY}"] }
}`,
);

const report = (problem: string) => console.log(short(problem));
const entries = mcp.loadEntries(join(base, 'home'), join(base, 'project'), report);
for (const { name, config, file, scope, shadows } of entries.values()) {
  const instead = shadows ? `, instead of ${short(shadows)}` : '';
  console.log(`${name}: ${config.command}, from ${short(file)} (${scope})${instead}`);
}
