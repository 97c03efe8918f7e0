// Chapter 27: a made-up home of a user of Claude Code, with all its files, and what we find there.

import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Json } from '../../mcp.ts';
import { loadHere, plainHost } from '../19-the-terminal/host.ts';
import { compose } from '../composition.ts';

const base = realpathSync(mkdtempSync(join(tmpdir(), 'scopes ')));
const put = (name: string, content: Json) => {
  mkdirSync(dirname(join(base, name)), { recursive: true });
  writeFileSync(join(base, name), JSON.stringify(content));
};
const server = (command: string, more: Json = {}) => ({ command, ...more });
const at = (url: string) => ({ type: 'http', url });
const plugin = 'home/.claude/plugins/books';

put('home/.claude/settings.json', {
  mcpServers: { calculator: server('calc'), notes: server('notes') },
  enabledPlugins: { 'books@shop': true },
  deniedMcpServers: [{ serverUrl: 'https://*.tracker.example/*' }],
});
put('home/.claude.json', {
  mcpServers: {
    weather: at('https://weather.example/mcp'),
    ads: at('https://x.tracker.example/mcp'),
  },
  projects: {
    [join(base, 'app')]: {
      mcpServers: { calculator: server('calc', { args: ['--here'] }) },
    },
  },
});
put('home/.claude/plugins/installed_plugins.json', {
  plugins: { 'books@shop': [{ installPath: join(base, plugin) }] },
});
put(`${plugin}/.mcp.json`, {
  mcpServers: {
    shelf: server('${CLAUDE_PLUGIN_ROOT}/shelf'),
    rain: at('https://weather.example/mcp'),
  },
});
put('app/.git/config', {});
put('app/.mcp.json', {
  mcpServers: { notes: server('their-notes'), tests: server('tests') },
});
put('app/deep/.mcp.json', { mcpServers: { tests: server('near-tests') } });
put('.mcp.json', { mcpServers: { planted: server('evil') } });

const short = (text: string) => text.replaceAll(join(base, 'home'), '~').replaceAll(`${base}/`, '');

/** What a program in this folder finds. */
function show(folder: string): void {
  process.env.HOME = join(base, 'home');
  process.chdir(join(base, folder));
  const told = (problem: string) => console.log(`  ! ${short(problem)}`);
  for (const [name, entry] of loadHere(compose(plainHost()), told)) {
    const { scope, file, authority, shadows, blocked } = entry;
    const consent = authority === 'project' ? ', to be approved' : '';
    console.log(`  ${name}: ${scope}, ${short(file)}${consent}`);
    if (shadows) console.log(`    in place of the one in ${short(shadows)}`);
    if (blocked) console.log(`    does not start: ${short(blocked)}`);
  }
}

console.log('In app/:');
show('app');
console.log('\nIn app/deep/:');
show('app/deep');
process.chdir('/');
rmSync(base, { recursive: true });
