// Chapter 27.1: a made-up home and a project, and what we find when we start in a folder below it.

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
const server = (command: string) => ({ mcpServers: { [command]: { command } } });

put('home/.claude/settings.json', server('calculator'));
put('home/.claude.json', server('weather'));
put('shared/app/.git/config', {});
put('shared/app/.mcp.json', server('tests'));
put('shared/app/src/main.ts', {});
put('shared/.mcp.json', server('planted'));

process.env.HOME = join(base, 'home');
process.chdir(join(base, 'shared/app/src'));
const short = (text: string) => text.replaceAll(join(base, 'home'), '~').replaceAll(`${base}/`, '');
const told = (problem: string) => console.log(`  ! ${short(problem)}`);
console.log('In shared/app/src/:');
for (const [name, { scope, file, authority }] of loadHere(compose(plainHost()), told)) {
  const consent = authority === 'project' ? ', to be approved' : '';
  console.log(`  ${name}: ${scope}, ${short(file)}${consent}`);
}
process.chdir('/');
rmSync(base, { recursive: true });
