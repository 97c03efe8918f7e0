// Where servers come from, for the tests of chapter 27: files in a made-up home, a made-up project and a made-up /etc.

import { chmodSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Scopes, type ScopesOptions } from '../../chapters/27-scopes/scopes.ts';
import type { Json } from '../../mcp.ts';
import { folder } from './basics.ts';

type Files = Record<string, unknown>; // what is not text is written as JSON; a function prepares the path itself
export type Case = {
  row: string;
  files: Files;
  cwd?: string; // below the temporary folder; `app` if not given
  dynamic?: Json;
  isStrict?: boolean;
  options?: ScopesOptions;
  env?: NodeJS.ProcessEnv;
  is: Record<string, string>; // by name: "scope file", "?" before it if it needs approval, " ✗ why" behind it if it is blocked
  told?: RegExp; // what is reported
};

export const x = (command = 'x', more: Json = {}) => ({ command, ...more });
export const web = (url: string, more: Json = {}) => ({ type: 'http', url, ...more });
export const servers = (mcpServers: Json, more: Json = {}) => ({ mcpServers, ...more });
export const USER = 'home/.claude/settings.json';
export const STATE = 'home/.claude.json';
export const SHARED = 'app/.mcp.json';
export const SETTINGS = 'app/.claude/settings.json';
export const LOCAL = 'app/.claude/settings.local.json';
export const MANAGED = 'etc/managed-mcp.json';
export const POLICY = 'etc/managed-settings.json';
export const git = { 'app/.git/HEAD': 'ref: refs/heads/main' };
export const PLUGINS = 'home/.claude/plugins/installed_plugins.json';
export const plugged = (...names: string[]) => ({
  [PLUGINS]: (base: string) => ({
    version: 2,
    plugins: Object.fromEntries(
      names.map((name) => [
        `${name}@shop`,
        [{ scope: 'user', installPath: join(base, 'home/.claude/plugins', name) }],
      ]),
    ),
  }),
});
export const on = (...names: string[]) => ({
  enabledPlugins: Object.fromEntries(names.map((name) => [`${name}@shop`, true])),
});
export const ofPlugin = (name: string, file = '.mcp.json') =>
  `home/.claude/plugins/${name}/${file}`;
/** The folder of the project as the file of Claude Code names it. */
export const here =
  (mcpServers: Json, more: Json = {}, path = 'app') =>
  (base: string) => ({ projects: { [join(base, path)]: { mcpServers, ...more } } });
export const connectors = (found: Json): ScopesOptions => ({
  more: () => [
    {
      scope: 'connector',
      file: 'a command',
      authority: 'project',
      servers: Object.entries(found) as [string, Json][],
    },
  ],
});
export const link = (target: string) => (base: string, path: string) =>
  symlinkSync(target.startsWith('/') ? target : join(base, target), path);
export const open = (content: unknown) => (_: string, path: string) => {
  writeFileSync(path, JSON.stringify(content));
  chmodSync(path, 0o666);
};

export function write(base: string, files: Files): void {
  // Links last: what they lead to must be there.
  for (const [name, content] of Object.entries(files)) {
    const path = join(base, name);
    mkdirSync(dirname(path), { recursive: true });
    const made = typeof content === 'function' ? content(base, path) : content;
    if (made !== undefined)
      writeFileSync(path, typeof made === 'string' ? made : JSON.stringify(made));
  }
}

const uid = process.getuid?.() ?? 0;

export function read({ files, cwd = 'app', dynamic = {}, isStrict, options = {}, env = {} }: Case) {
  const base = realpathSync(folder());
  mkdirSync(join(base, 'home'), { recursive: true });
  write(base, files);
  mkdirSync(join(base, cwd), { recursive: true });
  const inside = (path: string) => (path === '' ? '' : join(base, path));
  const { managed = { folder: 'etc', owner: uid }, home = 'home' } = options;
  const scopes = new Scopes({
    env,
    ...options,
    home: inside(home),
    cwd: join(base, cwd),
    managed: { ...managed, folder: inside(managed.folder) },
  });
  const told: string[] = [];
  const reading = scopes.read(
    { dynamic: Object.entries(dynamic) as [string, Json][], isStrict },
    (problem) => told.push(problem),
  );
  return { base, scopes, told, ...reading };
}

export const plain = (base: string, text: string) =>
  text.replaceAll(`${base}/`, '').replaceAll(base, '');
