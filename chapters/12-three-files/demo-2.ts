// Chapter 12.2: files as people write them, with a comment, with a byte order mark, and of the wrong shape.

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

const notes = '"notes": { "command": "notes", "args": ["http://localhost"] }';
write('home/.claude/settings.json', `{ "mcpServers": { ${notes} } } // my own`);
const calculator = '"calculator": { "command": "node" }';
write('project/.claude/settings.json', `\uFEFF{ "mcpServers": { ${calculator} } }`);
write('project/.mcp.json', '[{ "command": "node" }]');

const report = (problem: string) => {
  const [what, why = ''] = short(problem).split(/:(.*)/s);
  // What Node says of bad JSON differs from version to version.
  console.log(/JSON at|is not valid JSON/.test(why) ? what : what + ':' + why);
};
const entries = mcp.loadEntries(join(base, 'home'), join(base, 'project'), report);
for (const { name, config, file, scope } of entries.values()) {
  console.log(`${name}: ${JSON.stringify(config)}, from ${short(file)} (${scope})`);
}
