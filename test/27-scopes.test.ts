// Chapter 27: where servers come from. One table of cases: files in a made-up home, a made-up project and a made-up
// /etc, and what comes of them. Each case is a row; all of them are read in this process, and nothing is started.

import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, test } from 'node:test';
import { managedFolder, Scopes, type ScopesOptions } from '../chapters/27-scopes/scopes.ts';
import { goodbyeIn, inTurn, limitsIn } from '../chapters/27-scopes/turns.ts';
import { McpManager, type Json, type ServerEntry } from '../mcp.ts';
import { cleanUp, folder, habit, isRunning, later, pidOf, until } from './helpers.ts';

afterEach(cleanUp);

type Files = Record<string, unknown>; // what is not text is written as JSON; a function prepares the path itself
type Case = {
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

const x = (command = 'x', more: Json = {}) => ({ command, ...more });
const web = (url: string, more: Json = {}) => ({ type: 'http', url, ...more });
const servers = (mcpServers: Json, more: Json = {}) => ({ mcpServers, ...more });
const USER = 'home/.claude/settings.json';
const STATE = 'home/.claude.json';
const SHARED = 'app/.mcp.json';
const SETTINGS = 'app/.claude/settings.json';
const LOCAL = 'app/.claude/settings.local.json';
const MANAGED = 'etc/managed-mcp.json';
const POLICY = 'etc/managed-settings.json';
const git = { 'app/.git/HEAD': 'ref: refs/heads/main' };
const PLUGINS = 'home/.claude/plugins/installed_plugins.json';
const plugged = (...names: string[]) => ({
  [PLUGINS]: (base: string) => ({
    version: 2,
    plugins: Object.fromEntries(names.map((name) => [`${name}@shop`, [{ scope: 'user', installPath: join(base, 'home/.claude/plugins', name) }]])),
  }),
});
const on = (...names: string[]) => ({ enabledPlugins: Object.fromEntries(names.map((name) => [`${name}@shop`, true])) });
const ofPlugin = (name: string, file = '.mcp.json') => `home/.claude/plugins/${name}/${file}`;
/** The folder of the project as the file of Claude Code names it. */
const here = (mcpServers: Json, more: Json = {}, path = 'app') => (base: string) => ({ projects: { [join(base, path)]: { mcpServers, ...more } } });
const connectors = (found: Json): ScopesOptions => ({
  more: () => [{ scope: 'connector', file: 'a command', authority: 'project', servers: Object.entries(found) as [string, Json][] }],
});
const link = (target: string) => (base: string, path: string) => symlinkSync(target.startsWith('/') ? target : join(base, target), path);
const open = (content: unknown) => (_: string, path: string) => {
  writeFileSync(path, JSON.stringify(content));
  chmodSync(path, 0o666);
};

const CASES: Case[] = [
  // ── one place each ──
  { row: 'nothing is configured', files: {}, is: {} },
  { row: 'user: ~/.claude/settings.json', files: { [USER]: servers({ a: x() }) }, is: { a: `user ${USER}` } },
  { row: 'user: ~/.claude.json', files: { [STATE]: servers({ a: x() }) }, is: { a: `user ${STATE}` } },
  { row: 'local: projects in ~/.claude.json, the user\'s word', files: { [STATE]: here({ a: x() }) }, is: { a: `local ${STATE}` } },
  { row: 'local: .claude/settings.local.json, the project\'s word', files: { [LOCAL]: servers({ a: x() }) }, is: { a: `?local ${LOCAL}` } },
  { row: 'project: .mcp.json', files: { [SHARED]: servers({ a: x() }) }, is: { a: `?project ${SHARED}` } },
  { row: 'project: .claude/settings.json', files: { [SETTINGS]: servers({ a: x() }) }, is: { a: `?project ${SETTINGS}` } },
  { row: 'dynamic: --mcp-config', files: {}, dynamic: { a: x() }, is: { a: 'dynamic --mcp-config' } },
  { row: 'managed: its file', files: { [MANAGED]: servers({ a: x() }) }, is: { a: `managed ${MANAGED}` } },
  { row: 'plugin: .mcp.json in its folder', files: { ...plugged('p'), [USER]: on('p'), [ofPlugin('p')]: servers({ a: x() }) }, is: { 'plugin:p:a': `?plugin ${ofPlugin('p')}` } },
  { row: 'plugin: mcpServers in plugin.json', files: { ...plugged('p'), [USER]: on('p'), [ofPlugin('p', '.claude-plugin/plugin.json')]: { name: 'p', ...servers({ a: x() }) } }, is: { 'plugin:p:a': `?plugin ${ofPlugin('p', '.claude-plugin/plugin.json')}` } },
  { row: 'connectors: what was fetched', files: {}, options: connectors({ a: web('https://a.example/mcp') }), is: { a: '?connector a command' } },
  { row: 'built-in: a name that is taken', files: { [USER]: servers({ ide: x() }) }, options: { reserved: ['ide'] }, is: { ide: `user ${USER} ✗ a built-in server is called ide` }, told: /"ide" in .*settings\.json is not started/ },
  { row: 'flat .mcp.json', files: { [SHARED]: { a: x() } }, is: { a: `?project ${SHARED}` } },
  { row: 'a settings file has other things than servers', files: { [USER]: { statusLine: x() } }, is: {} },

  // ── order: of two, the later counts whole ──
  { row: 'project over user', files: { [USER]: servers({ a: x('u') }), [SHARED]: servers({ a: x('p') }) }, is: { a: `?project ${SHARED} > ${USER}` } },
  { row: 'local over project', files: { [SHARED]: servers({ a: x('p') }), [STATE]: here({ a: x('l') }) }, is: { a: `local ${STATE} > ${SHARED}` } },
  { row: 'local over user, in one file', files: { [STATE]: (base: string) => ({ ...servers({ a: x('u') }), ...here({ a: x('l') })(base) }) }, is: { a: `local ${STATE} > ${STATE}` } },
  { row: 'the user\'s local word over the project\'s', files: { [LOCAL]: servers({ a: x('p') }), [STATE]: here({ a: x('l') }) }, is: { a: `local ${STATE} > ${LOCAL}` } },
  { row: 'settings.local.json over .mcp.json', files: { [SHARED]: servers({ a: x('p') }), [LOCAL]: servers({ a: x('l') }) }, is: { a: `?local ${LOCAL} > ${SHARED}` } },
  { row: '.mcp.json over .claude/settings.json', files: { [SETTINGS]: servers({ a: x('s') }), [SHARED]: servers({ a: x('m') }) }, is: { a: `?project ${SHARED} > ${SETTINGS}` } },
  { row: '~/.claude.json over ~/.claude/settings.json', files: { [USER]: servers({ a: x('s') }), [STATE]: servers({ a: x('j') }) }, is: { a: `user ${STATE} > ${USER}` } },
  { row: 'dynamic over local', files: { [STATE]: here({ a: x('l') }) }, dynamic: { a: x('d') }, is: { a: `dynamic --mcp-config > ${STATE}` } },
  { row: 'dynamic over all', files: { [USER]: servers({ a: x() }), [SHARED]: servers({ a: x() }), [LOCAL]: servers({ a: x() }) }, dynamic: { a: x('d') }, is: { a: `dynamic --mcp-config > ${LOCAL}` } },
  { row: 'strict: only dynamic', files: { [USER]: servers({ a: x() }), [SHARED]: servers({ b: x() }) }, dynamic: { c: x() }, isStrict: true, is: { c: 'dynamic --mcp-config' } },
  { row: 'managed alone: the others are listed, and why', files: { [MANAGED]: servers({ a: x() }), [USER]: servers({ b: x() }), [SHARED]: servers({ c: x() }) }, is: { a: `managed ${MANAGED}`, b: `user ${USER} ✗ only the servers in`, c: `?project ${SHARED} ✗ only the servers in` } },
  { row: 'managed over a user\'s server of that name', files: { [MANAGED]: servers({ a: x('m') }), [USER]: servers({ a: x('u') }) }, is: { a: `managed ${MANAGED} > ${USER}` } },
  { row: 'managed and empty: nothing runs', files: { [MANAGED]: servers({}), [USER]: servers({ b: x() }) }, is: { b: `user ${USER} ✗ only the servers in` } },
  { row: 'managed refuses dynamic', files: { [MANAGED]: servers({ a: x() }) }, dynamic: { d: x() }, is: { a: `managed ${MANAGED}`, d: 'dynamic --mcp-config ✗ only the servers in' } },
  { row: 'managed refuses a strict dynamic', files: { [MANAGED]: servers({ a: x() }) }, dynamic: { d: x() }, isStrict: true, is: { a: `managed ${MANAGED}`, d: 'dynamic --mcp-config ✗ only the servers in' } },
  { row: 'managed refuses plugins', files: { [MANAGED]: servers({}), ...plugged('p'), [USER]: on('p'), [ofPlugin('p')]: servers({ a: x() }) }, is: { 'plugin:p:a': `?plugin ${ofPlugin('p')} ✗ only the servers in` } },
  { row: 'managed refuses connectors', files: { [MANAGED]: servers({}) }, options: connectors({ a: web('https://a.example/mcp') }), is: { a: '?connector a command ✗ only the servers in' } },
  { row: 'nothing is merged: the loser\'s fields are gone', files: { [USER]: servers({ a: x('u', { env: { SECRET: '1' } }) }), [SHARED]: servers({ a: x('p') }) }, is: { a: `?project ${SHARED} > ${USER} = {"command":"p"}` } },

  // ── parents ──
  { row: 'a parent\'s .mcp.json, inside the repository', files: { ...git, [SHARED]: servers({ a: x() }) }, cwd: 'app/deep/er', is: { a: `?project ${SHARED}` } },
  { row: 'the nearest parent wins', files: { ...git, [SHARED]: servers({ a: x('far') }), 'app/deep/.mcp.json': servers({ a: x('near') }) }, cwd: 'app/deep/er', is: { a: `?project app/deep/.mcp.json > ${SHARED}` } },
  { row: 'above the repository nothing is read', files: { ...git, '.mcp.json': servers({ evil: x() }), [SHARED]: servers({ a: x() }) }, cwd: 'app/deep', is: { a: `?project ${SHARED}` } },
  { row: 'outside of a repository no parent is read', files: { [SHARED]: servers({ a: x() }) }, cwd: 'app/deep', is: {} },
  { row: 'a worktree has a file .git', files: { 'app/.git': 'gitdir: ../other/.git/worktrees/app', [SHARED]: servers({ a: x() }) }, cwd: 'app/deep', is: { a: `?project ${SHARED}` } },
  { row: 'a repository that belongs to another user has no parents for us', files: { ...git, [SHARED]: servers({ a: x() }) }, cwd: 'app/deep', options: { owners: [4711] }, is: {} },
  { row: 'only .mcp.json is read in parents', files: { ...git, [SETTINGS]: servers({ a: x() }), [LOCAL]: servers({ b: x() }) }, cwd: 'app/deep', is: {} },
  { row: 'local entries of the repository count in its folders', files: { ...git, [STATE]: here({ a: x() }) }, cwd: 'app/deep', is: { a: `local ${STATE}` } },
  { row: 'local entries of the folder itself come first', files: { ...git, [STATE]: (base: string) => ({ projects: { [join(base, 'app')]: servers({ a: x() }), [join(base, 'app/deep')]: servers({ b: x() }) } }) }, cwd: 'app/deep', is: { b: `local ${STATE}` } },

  // ── projects, by path ──
  { row: 'another folder\'s entries are not ours', files: { [STATE]: here({ a: x() }, {}, 'other') }, is: {} },
  { row: 'a folder whose name begins like ours is another', files: { [STATE]: here({ a: x() }, {}, 'app-evil') }, is: {} },
  { row: 'a link to the folder means the folder', files: { 'app/readme': 'x', alias: link('app'), [STATE]: here({ a: x() }) }, cwd: 'alias', is: { a: `local ${STATE}` } },
  { row: 'projects that are no object', files: { [STATE]: { projects: ['app'], ...servers({ u: x() }) } }, is: { u: `user ${STATE}` } },
  { row: 'a folder called __proto__', files: { [STATE]: '{"projects":{"__proto__":{"mcpServers":{"a":{"command":"x"}}}}}' }, is: {} },

  // ── odd files ──
  { row: 'a broken project file is named, the others count', files: { [USER]: servers({ a: x() }), [SHARED]: '{"mcpServers":' }, is: { a: `user ${USER}` }, told: /app\/\.mcp\.json is ignored/ },
  { row: 'a broken ~/.claude.json costs its own entries', files: { [USER]: servers({ a: x() }), [STATE]: '{' }, is: { a: `user ${USER}` }, told: /\.claude\.json is ignored/ },
  { row: 'broken settings of the user may have forbidden something', files: { [USER]: '{"deniedMcpServers": [', [SHARED]: servers({ a: x() }) }, is: { a: `?project ${SHARED} ✗ blocked by policy: .* cannot be used` }, told: /settings\.json is ignored/ },
  { row: 'broken settings of the project forbid nothing', files: { [SETTINGS]: '{', [USER]: servers({ a: x() }) }, is: { a: `user ${USER}` }, told: /settings\.json is ignored/ },
  { row: 'a broken managed file: nothing runs', files: { [MANAGED]: '{', [USER]: servers({ a: x() }) }, is: { a: `user ${USER} ✗ only the servers in` }, told: /so no MCP server starts/ },
  { row: 'a managed file whose servers are no object: nothing runs', files: { [MANAGED]: { mcpServers: [] }, [USER]: servers({ a: x() }) }, is: { a: `user ${USER} ✗ only the servers in` }, told: /"mcpServers" is not an object/ },
  { row: 'a managed file that others may write to: nothing runs', files: { [MANAGED]: open(servers({ a: x() })), [USER]: servers({ b: x() }) }, is: { b: `user ${USER} ✗ only the servers in` }, told: /others than its owner may write/ },
  { row: 'a managed file that is a link: nothing runs', files: { 'else.json': servers({ a: x() }), [MANAGED]: link('else.json'), [USER]: servers({ b: x() }) }, is: { b: `user ${USER} ✗ only the servers in` }, told: /it is not a file/ },
  { row: 'a managed file of another owner: nothing runs', files: { [MANAGED]: servers({ a: x() }) }, options: { managed: { folder: 'etc', owner: 4711 } }, is: {}, told: /it has another owner/ },
  { row: 'broken managed settings: nothing runs', files: { [POLICY]: '{', [USER]: servers({ a: x() }) }, is: { a: `user ${USER} ✗ blocked by policy: .*managed-settings` } },
  { row: 'a file that is a folder', files: { 'app/.mcp.json/x': 'x', [USER]: servers({ a: x() }) }, is: { a: `user ${USER}` }, told: /it is not a file/ },
  { row: 'a link to a device', files: { 'app/x': '', [SHARED]: link('/dev/zero') }, is: {}, told: /leads out of the project/ },
  { row: 'a link to a file of the user\'s', files: { 'home/mine.json': servers({ a: x() }), 'app/x': '', [SHARED]: link('home/mine.json') }, is: {}, told: /leads out of the project/ },
  { row: 'a link that stays in the project', files: { 'app/conf/mcp.json': servers({ a: x() }), [SHARED]: link('app/conf/mcp.json') }, is: { a: `?project ${SHARED}` } },
  { row: 'a link that leads nowhere', files: { 'app/x': '', [SHARED]: link('nowhere') }, is: {}, told: /leads out of the project/ },
  { row: 'the user may link their settings elsewhere', files: { 'dotfiles/s.json': servers({ a: x() }), [USER]: link('dotfiles/s.json') }, is: { a: `user ${USER}` } },
  { row: 'settings that all may write to are not the user\'s word', files: { [USER]: open(servers({ a: x() })) }, is: { a: `?user ${USER}` }, told: /need your approval: every user of this machine may write/ },
  { row: 'a link to a file that all may write to', files: { 'dotfiles/s.json': open(servers({ a: x() })), [USER]: link('dotfiles/s.json') }, is: { a: `?user ${USER}` }, told: /need your approval/ },
  { row: '~/.claude.json that all may write to: local entries, too', files: { [STATE]: (base: string, path: string) => open(here({ a: x() })(base))(base, path) }, is: { a: `?local ${STATE}` } },
  { row: 'a folder that all may write to', files: { [USER]: (_: string, path: string) => { writeFileSync(path, JSON.stringify(servers({ a: x() }))); chmodSync(dirname(path), 0o777); } }, is: { a: `?user ${USER}` }, told: /may replace it/ },
  { row: 'settings of another user are not ours', files: { [USER]: servers({ a: x() }) }, options: { owners: [4711] }, is: { a: `?user ${USER}` }, told: /belongs to another user/ },
  { row: 'comments and a byte order mark', files: { [STATE]: '\ufeff{ /* mine */ "mcpServers": { "a": { "command": "x" } } }' }, is: { a: `user ${STATE}` } },
  { row: 'an empty file', files: { [SHARED]: '' }, is: {}, told: /it is empty/ },
  { row: 'a home that is no whole path is the project\'s', files: { 'app/.claude.json': servers({ evil: x() }) }, options: { home: '' }, is: {} },
  { row: 'home and project are one folder', files: { 'app/.claude/settings.json': servers({ a: x() }) }, options: { home: 'app' }, is: { a: `user ${SETTINGS}` } },

  // ── names ──
  { row: 'duplicate names in one file: the last, as JSON has it', files: { [SHARED]: '{"mcpServers":{"a":{"command":"one"},"a":{"command":"two"}}}' }, is: { a: `?project ${SHARED} = {"command":"two"}` } },
  { row: 'a server called __proto__', files: { [SHARED]: '{"mcpServers":{"__proto__":{"command":"x"}}}' }, is: { ['__proto__']: `?project ${SHARED}` } },
  { row: 'a variable in a name means nothing', files: { [SHARED]: servers({ '${USER}': x() }) }, env: { USER: 'ada' }, is: { '${USER}': `?project ${SHARED}` } },
  { row: 'white space is reported, and not trimmed', files: { [USER]: servers({ a: x(' x ') }) }, is: { a: `user ${USER} = {"command":" x "}` }, told: /white space around command/ },
  { row: 'an entry that is no object stays, for the manager to name', files: { [SHARED]: servers({ a: 'x' as unknown as Json }) }, is: { a: `?project ${SHARED}` } },
  { row: 'a reserved name in a project', files: { [SHARED]: servers({ ide: x() }) }, options: { reserved: ['ide'] }, is: { ide: `?project ${SHARED} ✗ a built-in server` }, told: /rename it/ },
  { row: 'an IDE type in a file', files: { [USER]: servers({ a: { type: 'ws-ide', url: 'ws://127.0.0.1:1' }, b: { type: 'sse-ide', url: 'http://127.0.0.1:1' } }) }, is: { a: `user ${USER} ✗ "type": "ws-ide" is for programs`, b: `user ${USER} ✗ "type": "sse-ide" is for programs` } },
  { row: 'an sdk server in a file', files: { [SHARED]: servers({ a: { type: 'sdk', name: 'a' } }) }, is: { a: `?project ${SHARED} ✗ "type": "sdk" is for programs` } },
  { row: 'switched off in Claude Code\'s menu', files: { [STATE]: here({ a: x() }, { disabledMcpServers: ['a'] }) }, is: { a: `local ${STATE} ✗ "disabledMcpServers" in` } },
  { row: 'rejected in Claude Code', files: { [SHARED]: servers({ a: x() }), [STATE]: here({}, { disabledMcpjsonServers: ['a'] }) }, is: { a: `?project ${SHARED} ✗ "disabledMcpjsonServers" in` } },
  { row: 'enabled in Claude Code is no approval here', files: { [SHARED]: servers({ a: x() }), [STATE]: here({}, { enabledMcpjsonServers: ['a'] }), [USER]: { enableAllProjectMcpServers: true } }, is: { a: `?project ${SHARED}` } },

  // ── plugins ──
  { row: 'a plugin that is not switched on', files: { ...plugged('p'), [ofPlugin('p')]: servers({ a: x() }) }, is: {} },
  { row: 'a project cannot switch a plugin on', files: { ...plugged('p'), [SETTINGS]: on('p'), [ofPlugin('p')]: servers({ a: x() }) }, is: {} },
  { row: 'a project may switch a plugin off', files: { ...plugged('p'), [USER]: on('p'), [SETTINGS]: { enabledPlugins: { 'p@shop': false } }, [ofPlugin('p')]: servers({ a: x() }) }, is: {} },
  { row: 'the first version of the list', files: { [PLUGINS]: (base: string) => ({ version: 1, plugins: { 'p@shop': { installPath: join(base, 'home/.claude/plugins/p') } } }), [USER]: on('p'), [ofPlugin('p')]: servers({ a: x() }) }, is: { 'plugin:p:a': `?plugin ${ofPlugin('p')}` } },
  { row: 'a plugin\'s folder in the place of its variable, and it starts there', files: { ...plugged('p'), [USER]: on('p'), [ofPlugin('p')]: servers({ a: x('${CLAUDE_PLUGIN_ROOT}/run') }) }, is: { 'plugin:p:a': `?plugin ${ofPlugin('p')} = {"command":"BASE/home/.claude/plugins/p/run","cwd":"BASE/home/.claude/plugins/p","env":{"CLAUDE_PLUGIN_ROOT":"BASE/home/.claude/plugins/p"}}` } },
  { row: 'a plugin root with ..', files: { [PLUGINS]: (base: string) => ({ plugins: { 'p@shop': { installPath: `${base}/home/.claude/plugins/../../../evil` } } }), [USER]: on('p'), 'evil/.mcp.json': servers({ a: x() }) }, is: {}, told: /"installPath" leads somewhere else/ },
  { row: 'a plugin root that is relative', files: { [PLUGINS]: { plugins: { 'p@shop': { installPath: '.' } } }, [USER]: on('p'), [SHARED]: servers({ a: x() }) }, is: { a: `?project ${SHARED}` }, told: /is not a whole path/ },
  { row: 'a manifest that names a file outside of the plugin', files: { ...plugged('p'), [USER]: on('p'), 'home/evil.json': servers({ a: x() }), [ofPlugin('p', 'plugin.json')]: { mcpServers: '../../../evil.json' } }, is: {}, told: /leads out of the plugin/ },
  { row: 'a manifest that names several', files: { ...plugged('p'), [USER]: on('p'), [ofPlugin('p', 'more.json')]: servers({ b: x('b') }), [ofPlugin('p', 'plugin.json')]: { mcpServers: ['./more.json', { c: x('c') }] } }, is: { 'plugin:p:b': `?plugin ${ofPlugin('p', 'more.json')}`, 'plugin:p:c': `?plugin ${ofPlugin('p', 'plugin.json')}` } },
  { row: 'a broken manifest', files: { ...plugged('p', 'q'), [USER]: on('p', 'q'), [ofPlugin('p')]: '{', [ofPlugin('q')]: servers({ a: x() }) }, is: { 'plugin:q:a': `?plugin ${ofPlugin('q')}` }, told: /plugins\/p\/\.mcp\.json is ignored/ },
  { row: 'a plugin with a name that is none', files: { [PLUGINS]: { plugins: { '../x@shop': { installPath: '/x' } } }, [USER]: { enabledPlugins: { '../x@shop': true } } }, is: {}, told: /not fit for a name/ },
  { row: 'a plugin and the user call a server alike: these are two', files: { ...plugged('p'), [USER]: { ...on('p'), ...servers({ a: x('mine') }) }, [ofPlugin('p')]: servers({ a: x('theirs') }) }, is: { 'plugin:p:a': `?plugin ${ofPlugin('p')}`, a: `user ${USER}` } },

  { row: 'a project cannot take the name of a plugin\'s server', files: { ...plugged('p'), [USER]: on('p'), [ofPlugin('p')]: servers({ a: x() }), [SHARED]: servers({ 'plugin:p:a': x('evil') }) }, is: { 'plugin:p:a': `?plugin ${ofPlugin('p')}` }, told: /such a name is for plugins/ },

  // ── dedup by signature ──
  { row: 'manual beats plugin, by the command', files: { ...plugged('p'), [USER]: { ...on('p'), ...servers({ mine: x('npx', { args: ['srv'], cwd: '/' }) }) }, [ofPlugin('p')]: servers({ a: x('npx', { args: ['srv'] }) }) }, is: { 'plugin:p:a': `?plugin ${ofPlugin('p')} ✗ it is the same as "mine" in`, mine: `user ${USER}` } },
  { row: 'other arguments are another server', files: { ...plugged('p'), [USER]: { ...on('p'), ...servers({ mine: x('npx', { args: ['srv', '2'] }) }) }, [ofPlugin('p')]: servers({ a: x('npx', { args: ['srv'] }) }) }, is: { 'plugin:p:a': `?plugin ${ofPlugin('p')}`, mine: `user ${USER}` } },
  { row: 'manual beats plugin, by the address', files: { ...plugged('p'), [USER]: { ...on('p'), ...servers({ mine: web('https://A.example:443/mcp#x') }) }, [ofPlugin('p')]: servers({ a: web('https://a.example/mcp') }) }, is: { 'plugin:p:a': `?plugin ${ofPlugin('p')} ✗ it is the same as "mine"`, mine: `user ${USER}` } },
  { row: 'a slash at the end is another address', files: { ...plugged('p'), [USER]: { ...on('p'), ...servers({ mine: web('https://a.example/mcp/') }) }, [ofPlugin('p')]: servers({ a: web('https://a.example/mcp') }) }, is: { 'plugin:p:a': `?plugin ${ofPlugin('p')}`, mine: `user ${USER}` } },
  { row: 'two accounts at one service are two', files: { ...plugged('p'), [USER]: { ...on('p'), ...servers({ mine: web('https://a.example/', { headers: { key: '1' } }) }) }, [ofPlugin('p')]: servers({ a: web('https://a.example/', { headers: { key: '2' } }) }) }, is: { 'plugin:p:a': `?plugin ${ofPlugin('p')}`, mine: `user ${USER}` } },
  { row: 'after variables are filled in', files: { ...plugged('p'), [USER]: { ...on('p'), ...servers({ mine: web('https://${HOST}/mcp') }) }, [ofPlugin('p')]: servers({ a: web('https://a.example/mcp') }) }, env: { HOST: 'a.example' }, is: { 'plugin:p:a': `?plugin ${ofPlugin('p')} ✗ it is the same as "mine"`, mine: `user ${USER}` } },
  { row: 'the earlier plugin beats the later', files: { ...plugged('p', 'q'), [USER]: on('p', 'q'), [ofPlugin('p')]: servers({ a: web('https://a.example/') }), [ofPlugin('q')]: servers({ b: web('https://a.example/') }) }, is: { 'plugin:p:a': `?plugin ${ofPlugin('p')}`, 'plugin:q:b': `?plugin ${ofPlugin('q')} ✗ it is the same as "plugin:p:a"` } },
  { row: 'plugins beat connectors', files: { ...plugged('p'), [USER]: on('p'), [ofPlugin('p')]: servers({ a: web('https://a.example/') }) }, options: connectors({ c: web('https://a.example/') }), is: { c: '?connector a command ✗ it is the same as "plugin:p:a"', 'plugin:p:a': `?plugin ${ofPlugin('p')}` } },
  { row: 'what is switched off hides no connector', files: { [USER]: servers({ mine: web('https://a.example/', { disabled: true }) }) }, options: connectors({ c: web('https://a.example/') }), is: { c: '?connector a command', mine: `user ${USER}` } },
  { row: 'two servers of the user that start the same are the user\'s business', files: { [USER]: servers({ a: x(), b: x() }) }, is: { a: `user ${USER}`, b: `user ${USER}` } },

  // ── policy ──
  { row: 'denied by name', files: { [POLICY]: { deniedMcpServers: [{ serverName: 'a' }] }, [USER]: servers({ a: x(), b: x() }) }, is: { a: `user ${USER} ✗ blocked by policy: "deniedMcpServers" in .*managed-settings.json`, b: `user ${USER}` } },
  { row: 'denied by command, exactly', files: { [USER]: { ...servers({ a: x('npx', { args: ['-y', 's'] }), b: x('npx', { args: ['s'] }) }), deniedMcpServers: [{ serverCommand: ['npx', '-y', 's'] }] } }, is: { a: `user ${USER} ✗ blocked by policy`, b: `user ${USER}` } },
  { row: 'denied by address, with *', files: { [USER]: { ...servers({ a: web('https://x.evil.example/mcp'), b: web('https://evil.example/mcp') }), deniedMcpServers: [{ serverUrl: 'https://*.evil.example/*' }] } }, is: { a: `user ${USER} ✗ blocked by policy`, b: `user ${USER}` } },
  { row: 'a pattern without a path means every path', files: { [USER]: { ...servers({ a: web('https://e.example/any?q') }), deniedMcpServers: [{ serverUrl: 'https://E.example.' }] } }, is: { a: `user ${USER} ✗ blocked by policy` } },
  { row: 'a * for the host does not reach into the path', files: { [POLICY]: { allowedMcpServers: [{ serverUrl: 'https://*.good.example/*' }] }, [USER]: servers({ a: web('https://evil.org/.good.example/x'), b: web('https://api.good.example/x') }) }, is: { a: `user ${USER} ✗ blocked by policy: "allowedMcpServers"`, b: `user ${USER}` } },
  { row: 'a user name before the host is not the host', files: { [POLICY]: { allowedMcpServers: [{ serverUrl: 'https://good.example/*' }] }, [USER]: servers({ a: web('https://good.example@evil.org/') }) }, is: { a: `user ${USER} ✗ blocked by policy` } },
  { row: 'a project may deny', files: { [SETTINGS]: { deniedMcpServers: [{ serverName: 'a' }] }, [USER]: servers({ a: x() }) }, is: { a: `user ${USER} ✗ blocked by policy: "deniedMcpServers" in .*app` } },
  { row: 'a project\'s allow list does not widen the user\'s', files: { [SETTINGS]: { allowedMcpServers: [{ serverName: 'evil' }] }, [USER]: { allowedMcpServers: [{ serverName: 'a' }] }, [SHARED]: servers({ evil: x() }) }, is: { evil: `?project ${SHARED} ✗ blocked by policy: "allowedMcpServers" in .*home` } },
  { row: 'a project\'s allow list narrows', files: { [SETTINGS]: { allowedMcpServers: [{ serverName: 'a' }] }, [USER]: servers({ a: x(), b: x() }) }, is: { a: `user ${USER}`, b: `user ${USER} ✗ blocked by policy: "allowedMcpServers" in .*app` } },
  { row: 'no allow list: all; an empty one: none', files: { [POLICY]: { allowedMcpServers: [] }, [USER]: servers({ a: x() }) }, is: { a: `user ${USER} ✗ blocked by policy` } },
  { row: 'deny beats allow', files: { [POLICY]: { allowedMcpServers: [{ serverName: 'a' }], deniedMcpServers: [{ serverName: 'a' }] }, [USER]: servers({ a: x() }) }, is: { a: `user ${USER} ✗ blocked by policy: "deniedMcpServers"` } },
  { row: 'as soon as there is a command, a name is not enough', files: { [POLICY]: { allowedMcpServers: [{ serverName: 'a' }, { serverCommand: ['good'] }] }, [USER]: servers({ a: x('evil'), b: x('good'), c: web('https://c.example/') }) }, is: { a: `user ${USER} ✗ blocked by policy`, b: `user ${USER}`, c: `user ${USER} ✗ blocked by policy` } },
  { row: 'likewise an address', files: { [POLICY]: { allowedMcpServers: [{ serverName: 'a' }, { serverUrl: 'https://good.example' }] }, [USER]: servers({ a: web('https://evil.example/'), b: x('b') }) }, is: { a: `user ${USER} ✗ blocked by policy`, b: `user ${USER} ✗ blocked by policy` } },
  { row: 'a user widens a soft list', files: { [POLICY]: { allowedMcpServers: [{ serverName: 'a' }] }, [USER]: { ...servers({ b: x() }), allowedMcpServers: [{ serverName: 'b' }] } }, is: { b: `user ${USER}` } },
  { row: 'but not one that is managed only', files: { [POLICY]: { allowedMcpServers: [{ serverName: 'a' }], allowManagedMcpServersOnly: true }, [USER]: { ...servers({ b: x() }), allowedMcpServers: [{ serverName: 'b' }] } }, is: { b: `user ${USER} ✗ blocked by policy` } },
  { row: 'a user cannot make lists managed only', files: { [USER]: { ...servers({ b: x() }), allowManagedMcpServersOnly: true, allowedMcpServers: [{ serverName: 'b' }] } }, is: { b: `user ${USER}` } },
  { row: 'policy holds for managed servers, too', files: { [MANAGED]: servers({ a: x() }), [USER]: { deniedMcpServers: [{ serverName: 'a' }] } }, is: { a: `managed ${MANAGED} ✗ blocked by policy` } },
  { row: 'policy holds for plugins and connectors', files: { [USER]: { ...on('p'), deniedMcpServers: [{ serverUrl: '*://*.example/*' }] }, ...plugged('p'), [ofPlugin('p')]: servers({ a: web('https://a.example/') }) }, options: connectors({ c: web('https://c.example/') }), is: { c: '?connector a command ✗ blocked by policy', 'plugin:p:a': `?plugin ${ofPlugin('p')} ✗ blocked by policy` } },
  { row: 'variables of the start count in a policy', files: { [POLICY]: { allowedMcpServers: [{ serverCommand: ['${HOME}/bin/s'] }] }, [USER]: servers({ a: x('/h/bin/s'), b: x('${HOME}/bin/s') }) }, env: { HOME: '/h' }, is: { a: `user ${USER}`, b: `user ${USER}` } },
  { row: 'a variable cannot move an allowed address', files: { [USER]: { ...servers({ a: web('https://evil.org/x') }), allowedMcpServers: [{ serverUrl: 'https://${HOST}.good.example/*' }] } }, env: { HOST: 'evil.org/x?' }, is: { a: `user ${USER} ✗ blocked by policy` }, told: /is not like/ },
  { row: 'a list that is none, managed: nothing runs', files: { [POLICY]: { deniedMcpServers: 'a' }, [USER]: servers({ b: x() }) }, is: { b: `user ${USER} ✗ blocked by policy` }, told: /is not like/ },
  { row: 'an odd entry in a project\'s list is named', files: { [SETTINGS]: { deniedMcpServers: [{ serverNme: 'a' }] }, [USER]: servers({ a: x() }) }, is: { a: `user ${USER}` }, told: /entry 1 in "deniedMcpServers"/ },
  { row: 'a pattern of many stars costs nothing', files: { [SETTINGS]: { deniedMcpServers: [{ serverUrl: `https://a.example/${'*a'.repeat(40)}*b` }] }, [USER]: servers({ a: web(`https://a.example/${'a'.repeat(5000)}`) }) }, is: { a: `user ${USER}` } },
];

function write(base: string, files: Files): void {
  // Links last: what they lead to must be there.
  for (const [name, content] of Object.entries(files)) {
    const path = join(base, name);
    mkdirSync(dirname(path), { recursive: true });
    const made = typeof content === 'function' ? content(base, path) : content;
    if (made !== undefined) writeFileSync(path, typeof made === 'string' ? made : JSON.stringify(made));
  }
}

const uid = process.getuid?.() ?? 0;

function read({ files, cwd = 'app', dynamic = {}, isStrict, options = {}, env = {} }: Case) {
  const base = realpathSync(folder());
  mkdirSync(join(base, 'home'), { recursive: true });
  write(base, files);
  mkdirSync(join(base, cwd), { recursive: true });
  const inside = (path: string) => (path === '' ? '' : join(base, path));
  const { managed = { folder: 'etc', owner: uid }, home = 'home' } = options;
  const scopes = new Scopes({
    env, ...options, home: inside(home), cwd: join(base, cwd), managed: { ...managed, folder: inside(managed.folder) },
  });
  const told: string[] = [];
  const reading = scopes.read({ dynamic: Object.entries(dynamic) as [string, Json][], isStrict }, (problem) => told.push(problem));
  return { base, scopes, told, ...reading };
}

const plain = (base: string, text: string) => text.replaceAll(`${base}/`, '').replaceAll(base, '');

test(`A30 A31: scopes, a table of ${CASES.length} cases`, () => {
  assert.ok(CASES.length >= 80);
  const wrong: string[] = [];
  for (const row of CASES) {
    const { base, entries, told } = read(row);
    const names = [...entries.keys()].sort();
    if (JSON.stringify(names) !== JSON.stringify(Object.keys(row.is).sort())) wrong.push(`${row.row}: there is ${names}`);
    for (const [name, is] of Object.entries(row.is)) {
      const { scope, file, authority, shadows, blocked, config } = entries.get(name) ?? ({} as any);
      const [, mark, place, over, content, why] = /^(\??)(.*?)(?: > (.*?))?(?: = (.*?))?(?: ✗ (.*))?$/.exec(is)!;
      const origin = `${scope} ${plain(base, `${file}`)}`;
      if (origin !== place) wrong.push(`${row.row}: ${name} is ${origin}`);
      if ((authority === 'project') !== (mark === '?')) wrong.push(`${row.row}: ${name} is the word of the ${authority}`);
      if (shadows ? plain(base, shadows) !== (over ?? plain(base, shadows)) : over) wrong.push(`${row.row}: ${name} is instead of ${shadows}`);
      const shown = JSON.stringify(config)?.replaceAll(base, 'BASE');
      if (content && shown !== content) wrong.push(`${row.row}: ${name} has ${shown}`);
      const isRight = why ? new RegExp(why).test(plain(base, `${blocked}`)) : blocked === undefined;
      if (!isRight) wrong.push(`${row.row}: ${name} is blocked: ${blocked}`);
    }
    const all = told.join('\n');
    if (row.told ? !row.told.test(all) : all !== '') wrong.push(`${row.row}: told ${JSON.stringify(told)}`);
  }
  assert.deepEqual(wrong, []);
});

test('every row of the table of scopes is a case: managed, dynamic, local, project, user, plugin, connectors, built-in', () => {
  for (const scope of ['managed', 'dynamic', 'local', 'project', 'user', 'plugin', 'connectors', 'built-in'])
    assert.ok(CASES.some(({ row }) => row.startsWith(`${scope}: `)), scope);
});

test('the administrator\'s folder, by the system', () => {
  const folders = (['linux', 'darwin', 'win32'] as const).map((each) => managedFolder(each));
  assert.deepEqual(folders, ['/etc/claude-code', '/Library/Application Support/ClaudeCode', 'C:\\Program Files\\ClaudeCode']);
});

test('a home of Claude Code with all its files is found whole, each server where it is expected', () => {
  const { base, entries, told } = read({
    row: 'all',
    files: {
      ...git,
      ...plugged('p'),
      [USER]: { ...servers({ settings: x('1') }), ...on('p'), permissions: { allow: [] } },
      [STATE]: (there: string) => ({ numStartups: 7, ...servers({ state: x('2') }), ...here({ private: web('https://l.example/') })(there) }),
      [SETTINGS]: servers({ shared: x('3') }),
      [SHARED]: servers({ team: x('4') }),
      [LOCAL]: servers({ loc: x('5') }),
      [ofPlugin('p')]: servers({ db: x('6') }),
    },
    options: connectors({ mail: web('https://m.example/') }),
    dynamic: { typed: x('7') },
    is: {},
  });
  const found = Object.fromEntries([...entries.values()].map(({ name, scope, file }) => [name, `${scope} ${plain(base, file)}`]));
  assert.deepEqual(found, {
    mail: 'connector a command', 'plugin:p:db': `plugin ${ofPlugin('p')}`, settings: `user ${USER}`, state: `user ${STATE}`,
    shared: `project ${SETTINGS}`, team: `project ${SHARED}`, loc: `local ${LOCAL}`, private: `local ${STATE}`, typed: 'dynamic --mcp-config',
  });
  assert.deepEqual(told, []);
});

test('explain: which files were looked for, which entry counts, and which it hides', () => {
  const { base, scopes } = read({
    row: 'explain',
    files: { [USER]: servers({ a: x('u') }), [SHARED]: servers({ a: x('p') }), [STATE]: here({ a: x('l') }), [LOCAL]: '{' },
    is: {},
  });
  const lines = scopes.explain('a').map((line) => plain(base, line).trim());
  assert.ok(lines.some((line) => line.startsWith(`${LOCAL}: not used: `)));
  for (const line of [`${USER}: read`, `${SETTINGS}: not there`, `${MANAGED}: not there`, `counts: the one of local scope in ${STATE}`,
    `hidden: the one of user scope in ${USER}, by project scope, ${SHARED}`, `hidden: the one of project scope in ${SHARED}, by local scope, ${STATE}`])
    assert.ok(lines.includes(line), `${line}\n${lines.join('\n')}`);
});

test('places: where mcp add writes, for every scope that can be written to; and what it refuses', () => {
  const { base, scopes } = read({ row: 'places', files: { [USER]: { deniedMcpServers: [{ serverName: 'bad' }] } }, options: { reserved: ['ide'] }, is: {} });
  const last = (scope: string) => scopes.places().findLast((place) => place.scope === scope)!;
  const shown = ['user', 'project', 'local'].map((scope) => [plain(base, last(scope).file), last(scope).keys.map((key) => plain(base, key)).join(' '), last(scope).authority]);
  assert.deepEqual(shown, [[USER, 'mcpServers', 'user'], [SHARED, 'mcpServers', 'project'], [STATE, 'projects app mcpServers', 'user']]);
  assert.match(`${scopes.refusal('bad', x())}`, /deniedMcpServers/);
  assert.match(`${scopes.refusal('ide', x())}`, /a built-in server is called ide/);
  assert.match(`${scopes.refusal('a', { type: 'sdk' })}`, /for programs/);
  assert.equal(scopes.refusal('a', x()), undefined);
  const managed = read({ row: 'managed', files: { [MANAGED]: servers({}) }, is: {} }).scopes;
  assert.match(`${managed.refusal('a', x())}`, /managed-mcp\.json decides alone/);
});

const entry = (name: string, config: Json): ServerEntry => ({ name, config, file: 'x', scope: 'user', authority: 'user' });

test('what is blocked is listed with its reason, and not started; a reload starts it once it is not blocked any more', async () => {
  const entries = new Map([['a', { ...entry('a', habit()), blocked: 'blocked by policy: x' }], ['b', entry('b', habit())]]);
  const manager = new McpManager({ load: () => entries, onWarning: () => {} });
  later(() => manager.disconnectAll());
  await manager.loadAndConnect();
  const states = () => Object.fromEntries(manager.status().map(({ name, state, reason }) => [name, [state, reason]]));
  assert.deepEqual(states(), { a: ['disabled', 'blocked by policy: x'], b: ['connected', undefined] });
  const before = manager.connection('b');
  entries.set('a', entry('a', habit()));
  assert.deepEqual(await manager.reload(), { started: ['a'], ended: ['a'] });
  assert.deepEqual(states(), { a: ['connected', undefined], b: ['connected', undefined] });
  assert.equal(manager.connection('b'), before); // the same process goes on
});

test('a reload restarts what has changed, tries again what had failed, ends what is gone, and leaves the rest alone', async () => {
  const entries = new Map([
    ['same', entry('same', habit())], ['changed', entry('changed', habit())],
    ['gone', entry('gone', habit())], ['failed', entry('failed', { command: 'no-such-command' })],
  ]);
  const prepared: string[] = [];
  const manager = new McpManager({ load: () => entries, onWarning: () => {}, prepare: async () => void prepared.push('fetched') });
  later(() => manager.disconnectAll());
  await manager.loadAndConnect();
  const [same, changed] = [manager.connection('same'), manager.connection('changed')];
  const pid = await pidOf(manager.connection('gone')!);
  entries.set('changed', entry('changed', habit('good', 'other')));
  entries.set('same', { ...entry('same', habit()), file: 'another file' });
  entries.delete('gone');
  entries.set('fresh', entry('fresh', habit()));
  const { started, ended } = await manager.reload();
  assert.deepEqual([started, ended], [['changed', 'failed', 'fresh'], ['changed', 'gone', 'failed']]);
  assert.equal(manager.connection('same'), same);
  assert.notEqual(manager.connection('changed'), changed);
  assert.equal(manager.status().find(({ name }) => name === 'same')!.file, 'another file');
  assert.ok(!manager.getToolDefinitions().some(({ server }) => server === 'gone'));
  assert.deepEqual(prepared, ['fetched', 'fetched']);
  await until(() => !isRunning(pid));
});

test('turns: so many of each kind at once, and no kind waits for the other; what is part of the program waits for none', async () => {
  const running = { local: 0, remote: 0, here: 0 };
  const most = { local: 0, remote: 0, here: 0 };
  const turn = inTurn({ local: 2, remote: 3 });
  const waiting: (() => void)[] = [];
  const start = (kind: keyof typeof running) => async () => {
    most[kind] = Math.max(most[kind], ++running[kind]);
    await new Promise<void>((done) => waiting.push(done));
    running[kind]--;
  };
  const all = [...Array(7).keys()].flatMap((n) => [
    turn(entry(`l${n}`, { command: 'x' }), start('local')),
    turn(entry(`r${n}`, { type: 'http', url: 'https://x' }), start('remote')),
    turn(entry(`h${n}`, { type: 'in-process' }), start('here')),
  ]);
  let isDone = false;
  void Promise.all(all).then(() => (isDone = true));
  while (!isDone) {
    for (const done of waiting.splice(0)) done();
    await new Promise((done) => setImmediate(done));
  }
  assert.deepEqual(most, { local: 2, remote: 3, here: 7 });
  await assert.rejects(turn(entry('bad', {}), async () => { throw new Error('no'); }), /no/);
  let ran = false;
  await Promise.all([turn(entry('a', {}), async () => {}), turn(entry('b', {}), async () => {}), turn(entry('c', {}), async () => void (ran = true))]);
  assert.ok(ran); // a place that failed was given back
  assert.deepEqual(limitsIn({ MCP_SERVER_CONNECTION_BATCH_SIZE: '5', MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE: '-1' }), { local: 5, remote: 32 });
  assert.deepEqual([goodbyeIn({}), goodbyeIn({ MCP_GOODBYE: '600' }), goodbyeIn({ MCP_GOODBYE: 'x' })], [undefined, 600, undefined]);
});

test('a change of the files is told, once, with the names; nothing is loaded by that; after a reload all is quiet again', async () => {
  const { base, scopes } = read({ row: 'watch', files: { [SHARED]: servers({ a: x(), b: x() }) }, is: {} });
  const before = scopes.load({}, () => {});
  const told: string[] = [];
  const stop = scopes.watch((text) => told.push(text), 20);
  later(stop);
  const put = (content: unknown) => writeFileSync(join(base, SHARED), JSON.stringify(content));
  put(servers({ a: x('other'), 'c\u001b[2J': x() }));
  await until(() => told.length === 1);
  assert.equal(told[0], 'the configuration has changed: new: "c\\x1b[2J"; changed: "a"; gone: "b". /mcp reload reads it again');
  assert.deepEqual([...before.keys()], ['a', 'b']);
  write(base, { [LOCAL]: servers({ d: x() }) }); // a file that was not there
  await until(() => told.length === 2);
  assert.match(told[1]!, /new: .*"d"/);
  scopes.load({}, () => {});
  write(base, { [USER]: { permissions: {} } }); // nothing about servers
  write(base, { [STATE]: servers({ e: x() }) });
  await until(() => told.length === 3);
  assert.equal(told[2], 'the configuration has changed: new: "e". /mcp reload reads it again');
});
