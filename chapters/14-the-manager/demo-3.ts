// Chapter 14.3: a project that brings a server along, and one of the user's own that counts on the project's folder.

import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as mcp from '../../mcp.ts';

const base = realpathSync(mkdtempSync(join(tmpdir(), 'manager ')));
process.on('exit', () => rmSync(base, { recursive: true, force: true }));
const [home, cwd, sign] = [join(base, 'home'), join(base, 'project'), join(base, 'it-ran')];
for (const folder of [join(home, '.claude'), cwd]) mkdirSync(folder, { recursive: true });
const notes = { command: 'node', args: ['./notes.mjs'] };
const stranger = {
  command: 'node',
  args: [join(process.cwd(), 'fixtures', 'habits.mjs'), 'canary', sign],
};
writeFileSync(join(home, '.claude', 'settings.json'), JSON.stringify({ mcpServers: { notes } }));
writeFileSync(join(cwd, '.mcp.json'), JSON.stringify({ stranger }));

const short = (text = '') => text.replaceAll(home, '~').replaceAll(join(cwd, '/'), '');
/** Of a reason the first line, and of the last words the one that matters. */
const brief = (text = '') =>
  short(text)
    .split('\n')
    .filter((line, n) => n === 0 || /Cannot find/.test(line))
    .join('\n');
const onWarning = (text: string) => console.log(short(text));
const run = async (options: mcp.ManagerOptions) => {
  const manager = new mcp.McpManager({ home, cwd, onWarning, ...options });
  await manager.loadAndConnect();
  for (const { name, state, reason } of manager.status())
    console.log(`  ${name}: ${state}${reason ? `. ${brief(reason)}` : ''}`);
  console.log(`  Did the stranger run? ${existsSync(sign) ? 'Yes' : 'No'}`);
  await manager.disconnectAll();
};

console.log('Started in a clone:');
await run({});
console.log('\nAnd when somebody says yes to the stranger:');
await run({ approve: ({ name }) => name === 'stranger' });
