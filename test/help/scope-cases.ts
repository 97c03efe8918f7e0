// The table of scopes, its first half: places, their order, parents, projects, odd files, names.

import { chmodSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Json } from '../../mcp.ts';
import {
  connectors,
  git,
  here,
  link,
  LOCAL,
  MANAGED,
  ofPlugin,
  on,
  open,
  plugged,
  POLICY,
  servers,
  SETTINGS,
  SHARED,
  STATE,
  USER,
  web,
  x,
  type Case,
} from './scope-files.ts';

export const SCOPE_CASES: Case[] = [
  // ── one place each ──
  { row: 'nothing is configured', files: {}, is: {} },
  {
    row: 'user: ~/.claude/settings.json',
    files: { [USER]: servers({ a: x() }) },
    is: { a: `user ${USER}` },
  },
  {
    row: 'user: ~/.claude.json',
    files: { [STATE]: servers({ a: x() }) },
    is: { a: `user ${STATE}` },
  },
  {
    row: "local: projects in ~/.claude.json, the user's word",
    files: { [STATE]: here({ a: x() }) },
    is: { a: `local ${STATE}` },
  },
  {
    row: "local: .claude/settings.local.json, the project's word",
    files: { [LOCAL]: servers({ a: x() }) },
    is: { a: `?local ${LOCAL}` },
  },
  {
    row: 'project: .mcp.json',
    files: { [SHARED]: servers({ a: x() }) },
    is: { a: `?project ${SHARED}` },
  },
  {
    row: 'project: .claude/settings.json',
    files: { [SETTINGS]: servers({ a: x() }) },
    is: { a: `?project ${SETTINGS}` },
  },
  {
    row: 'dynamic: --mcp-config',
    files: {},
    dynamic: { a: x() },
    is: { a: 'dynamic --mcp-config' },
  },
  {
    row: 'managed: its file',
    files: { [MANAGED]: servers({ a: x() }) },
    is: { a: `managed ${MANAGED}` },
  },
  {
    row: 'plugin: .mcp.json in its folder',
    files: { ...plugged('p'), [USER]: on('p'), [ofPlugin('p')]: servers({ a: x() }) },
    is: { 'plugin:p:a': `?plugin ${ofPlugin('p')}` },
  },
  {
    row: 'plugin: mcpServers in plugin.json',
    files: {
      ...plugged('p'),
      [USER]: on('p'),
      [ofPlugin('p', '.claude-plugin/plugin.json')]: { name: 'p', ...servers({ a: x() }) },
    },
    is: { 'plugin:p:a': `?plugin ${ofPlugin('p', '.claude-plugin/plugin.json')}` },
  },
  {
    row: 'connectors: what was fetched',
    files: {},
    options: connectors({ a: web('https://a.example/mcp') }),
    is: { a: '?connector a command' },
  },
  {
    row: 'built-in: a name that is taken',
    files: { [USER]: servers({ ide: x() }) },
    options: { reserved: ['ide'] },
    is: { ide: `user ${USER} ✗ a built-in server is called ide` },
    told: /"ide" in .*settings\.json is not started/,
  },
  { row: 'flat .mcp.json', files: { [SHARED]: { a: x() } }, is: { a: `?project ${SHARED}` } },
  {
    row: 'a settings file has other things than servers',
    files: { [USER]: { statusLine: x() } },
    is: {},
  },

  // ── order: of two, the later counts whole ──
  {
    row: 'project over user',
    files: { [USER]: servers({ a: x('u') }), [SHARED]: servers({ a: x('p') }) },
    is: { a: `?project ${SHARED} > ${USER}` },
  },
  {
    row: 'local over project',
    files: { [SHARED]: servers({ a: x('p') }), [STATE]: here({ a: x('l') }) },
    is: { a: `local ${STATE} > ${SHARED}` },
  },
  {
    row: 'local over user, in one file',
    files: {
      [STATE]: (base: string) => ({ ...servers({ a: x('u') }), ...here({ a: x('l') })(base) }),
    },
    is: { a: `local ${STATE} > ${STATE}` },
  },
  {
    row: "the user's local word over the project's",
    files: { [LOCAL]: servers({ a: x('p') }), [STATE]: here({ a: x('l') }) },
    is: { a: `local ${STATE} > ${LOCAL}` },
  },
  {
    row: 'settings.local.json over .mcp.json',
    files: { [SHARED]: servers({ a: x('p') }), [LOCAL]: servers({ a: x('l') }) },
    is: { a: `?local ${LOCAL} > ${SHARED}` },
  },
  {
    row: '.mcp.json over .claude/settings.json',
    files: { [SETTINGS]: servers({ a: x('s') }), [SHARED]: servers({ a: x('m') }) },
    is: { a: `?project ${SHARED} > ${SETTINGS}` },
  },
  {
    row: '~/.claude.json over ~/.claude/settings.json',
    files: { [USER]: servers({ a: x('s') }), [STATE]: servers({ a: x('j') }) },
    is: { a: `user ${STATE} > ${USER}` },
  },
  {
    row: 'dynamic over local',
    files: { [STATE]: here({ a: x('l') }) },
    dynamic: { a: x('d') },
    is: { a: `dynamic --mcp-config > ${STATE}` },
  },
  {
    row: 'dynamic over all',
    files: {
      [USER]: servers({ a: x() }),
      [SHARED]: servers({ a: x() }),
      [LOCAL]: servers({ a: x() }),
    },
    dynamic: { a: x('d') },
    is: { a: `dynamic --mcp-config > ${LOCAL}` },
  },
  {
    row: 'strict: only dynamic',
    files: { [USER]: servers({ a: x() }), [SHARED]: servers({ b: x() }) },
    dynamic: { c: x() },
    isStrict: true,
    is: { c: 'dynamic --mcp-config' },
  },
  {
    row: 'managed alone: the others are listed, and why',
    files: {
      [MANAGED]: servers({ a: x() }),
      [USER]: servers({ b: x() }),
      [SHARED]: servers({ c: x() }),
    },
    is: {
      a: `managed ${MANAGED}`,
      b: `user ${USER} ✗ only the servers in`,
      c: `?project ${SHARED} ✗ only the servers in`,
    },
  },
  {
    row: "managed over a user's server of that name",
    files: { [MANAGED]: servers({ a: x('m') }), [USER]: servers({ a: x('u') }) },
    is: { a: `managed ${MANAGED} > ${USER}` },
  },
  {
    row: 'managed and empty: nothing runs',
    files: { [MANAGED]: servers({}), [USER]: servers({ b: x() }) },
    is: { b: `user ${USER} ✗ only the servers in` },
  },
  {
    row: 'managed refuses dynamic',
    files: { [MANAGED]: servers({ a: x() }) },
    dynamic: { d: x() },
    is: { a: `managed ${MANAGED}`, d: 'dynamic --mcp-config ✗ only the servers in' },
  },
  {
    row: 'managed refuses a strict dynamic',
    files: { [MANAGED]: servers({ a: x() }) },
    dynamic: { d: x() },
    isStrict: true,
    is: { a: `managed ${MANAGED}`, d: 'dynamic --mcp-config ✗ only the servers in' },
  },
  {
    row: 'managed refuses plugins',
    files: {
      [MANAGED]: servers({}),
      ...plugged('p'),
      [USER]: on('p'),
      [ofPlugin('p')]: servers({ a: x() }),
    },
    is: { 'plugin:p:a': `?plugin ${ofPlugin('p')} ✗ only the servers in` },
  },
  {
    row: 'managed refuses connectors',
    files: { [MANAGED]: servers({}) },
    options: connectors({ a: web('https://a.example/mcp') }),
    is: { a: '?connector a command ✗ only the servers in' },
  },
  {
    row: "nothing is merged: the loser's fields are gone",
    files: {
      [USER]: servers({ a: x('u', { env: { SECRET: '1' } }) }),
      [SHARED]: servers({ a: x('p') }),
    },
    is: { a: `?project ${SHARED} > ${USER} = {"command":"p"}` },
  },

  // ── parents ──
  {
    row: "a parent's .mcp.json, inside the repository",
    files: { ...git, [SHARED]: servers({ a: x() }) },
    cwd: 'app/deep/er',
    is: { a: `?project ${SHARED}` },
  },
  {
    row: 'the nearest parent wins',
    files: {
      ...git,
      [SHARED]: servers({ a: x('far') }),
      'app/deep/.mcp.json': servers({ a: x('near') }),
    },
    cwd: 'app/deep/er',
    is: { a: `?project app/deep/.mcp.json > ${SHARED}` },
  },
  {
    row: 'above the repository nothing is read',
    files: { ...git, '.mcp.json': servers({ evil: x() }), [SHARED]: servers({ a: x() }) },
    cwd: 'app/deep',
    is: { a: `?project ${SHARED}` },
  },
  {
    row: 'outside of a repository no parent is read',
    files: { [SHARED]: servers({ a: x() }) },
    cwd: 'app/deep',
    is: {},
  },
  {
    row: 'a worktree has a file .git',
    files: { 'app/.git': 'gitdir: ../other/.git/worktrees/app', [SHARED]: servers({ a: x() }) },
    cwd: 'app/deep',
    is: { a: `?project ${SHARED}` },
  },
  {
    row: 'a repository that belongs to another user has no parents for us',
    files: { ...git, [SHARED]: servers({ a: x() }) },
    cwd: 'app/deep',
    options: { owners: [4711] },
    is: {},
  },
  {
    row: 'only .mcp.json is read in parents',
    files: { ...git, [SETTINGS]: servers({ a: x() }), [LOCAL]: servers({ b: x() }) },
    cwd: 'app/deep',
    is: {},
  },
  {
    row: 'local entries of the repository count in its folders',
    files: { ...git, [STATE]: here({ a: x() }) },
    cwd: 'app/deep',
    is: { a: `local ${STATE}` },
  },
  {
    row: 'local entries of the folder itself come first',
    files: {
      ...git,
      [STATE]: (base: string) => ({
        projects: {
          [join(base, 'app')]: servers({ a: x() }),
          [join(base, 'app/deep')]: servers({ b: x() }),
        },
      }),
    },
    cwd: 'app/deep',
    is: { b: `local ${STATE}` },
  },

  // ── projects, by path ──
  {
    row: "another folder's entries are not ours",
    files: { [STATE]: here({ a: x() }, {}, 'other') },
    is: {},
  },
  {
    row: 'a folder whose name begins like ours is another',
    files: { [STATE]: here({ a: x() }, {}, 'app-evil') },
    is: {},
  },
  {
    row: 'a link to the folder means the folder',
    files: { 'app/readme': 'x', alias: link('app'), [STATE]: here({ a: x() }) },
    cwd: 'alias',
    is: { a: `local ${STATE}` },
  },
  {
    row: 'projects that are no object',
    files: { [STATE]: { projects: ['app'], ...servers({ u: x() }) } },
    is: { u: `user ${STATE}` },
  },
  {
    row: 'a folder called __proto__',
    files: { [STATE]: '{"projects":{"__proto__":{"mcpServers":{"a":{"command":"x"}}}}}' },
    is: {},
  },

  // ── odd files ──
  {
    row: 'a broken project file is named, the others count',
    files: { [USER]: servers({ a: x() }), [SHARED]: '{"mcpServers":' },
    is: { a: `user ${USER}` },
    told: /app\/\.mcp\.json is ignored/,
  },
  {
    row: 'a broken ~/.claude.json costs its own entries',
    files: { [USER]: servers({ a: x() }), [STATE]: '{' },
    is: { a: `user ${USER}` },
    told: /\.claude\.json is ignored/,
  },
  {
    row: 'broken settings of the user may have forbidden something',
    files: { [USER]: '{"deniedMcpServers": [', [SHARED]: servers({ a: x() }) },
    is: { a: `?project ${SHARED} ✗ blocked by policy: .* cannot be used` },
    told: /settings\.json is ignored/,
  },
  {
    row: 'broken settings of the project forbid nothing',
    files: { [SETTINGS]: '{', [USER]: servers({ a: x() }) },
    is: { a: `user ${USER}` },
    told: /settings\.json is ignored/,
  },
  {
    row: 'a broken managed file: nothing runs',
    files: { [MANAGED]: '{', [USER]: servers({ a: x() }) },
    is: { a: `user ${USER} ✗ only the servers in` },
    told: /so no MCP server starts/,
  },
  {
    row: 'a managed file whose servers are no object: nothing runs',
    files: { [MANAGED]: { mcpServers: [] }, [USER]: servers({ a: x() }) },
    is: { a: `user ${USER} ✗ only the servers in` },
    told: /"mcpServers" is not an object/,
  },
  {
    row: 'a managed file that others may write to: nothing runs',
    files: { [MANAGED]: open(servers({ a: x() })), [USER]: servers({ b: x() }) },
    is: { b: `user ${USER} ✗ only the servers in` },
    told: /others than its owner may write/,
  },
  {
    row: 'a managed file that is a link: nothing runs',
    files: {
      'else.json': servers({ a: x() }),
      [MANAGED]: link('else.json'),
      [USER]: servers({ b: x() }),
    },
    is: { b: `user ${USER} ✗ only the servers in` },
    told: /it is not a file/,
  },
  {
    row: 'a managed file of another owner: nothing runs',
    files: { [MANAGED]: servers({ a: x() }) },
    options: { managed: { folder: 'etc', owner: 4711 } },
    is: {},
    told: /it has another owner/,
  },
  {
    row: 'broken managed settings: nothing runs',
    files: { [POLICY]: '{', [USER]: servers({ a: x() }) },
    is: { a: `user ${USER} ✗ blocked by policy: .*managed-settings` },
  },
  {
    row: 'a file that is a folder',
    files: { 'app/.mcp.json/x': 'x', [USER]: servers({ a: x() }) },
    is: { a: `user ${USER}` },
    told: /it is not a file/,
  },
  {
    row: 'a link to a device',
    files: { 'app/x': '', [SHARED]: link('/dev/zero') },
    is: {},
    told: /leads out of the project/,
  },
  {
    row: "a link to a file of the user's",
    files: { 'home/mine.json': servers({ a: x() }), 'app/x': '', [SHARED]: link('home/mine.json') },
    is: {},
    told: /leads out of the project/,
  },
  {
    row: 'a link that stays in the project',
    files: { 'app/conf/mcp.json': servers({ a: x() }), [SHARED]: link('app/conf/mcp.json') },
    is: { a: `?project ${SHARED}` },
  },
  {
    row: 'a link that leads nowhere',
    files: { 'app/x': '', [SHARED]: link('nowhere') },
    is: {},
    told: /leads out of the project/,
  },
  {
    row: 'the user may link their settings elsewhere',
    files: { 'dotfiles/s.json': servers({ a: x() }), [USER]: link('dotfiles/s.json') },
    is: { a: `user ${USER}` },
  },
  {
    row: "settings that all may write to are not the user's word",
    files: { [USER]: open(servers({ a: x() })) },
    is: { a: `?user ${USER}` },
    told: /need your approval: every user of this machine may write/,
  },
  {
    row: 'a link to a file that all may write to',
    files: { 'dotfiles/s.json': open(servers({ a: x() })), [USER]: link('dotfiles/s.json') },
    is: { a: `?user ${USER}` },
    told: /need your approval/,
  },
  {
    row: '~/.claude.json that all may write to: local entries, too',
    files: { [STATE]: (base: string, path: string) => open(here({ a: x() })(base))(base, path) },
    is: { a: `?local ${STATE}` },
  },
  {
    row: 'a folder that all may write to',
    files: {
      [USER]: (_: string, path: string) => {
        writeFileSync(path, JSON.stringify(servers({ a: x() })));
        chmodSync(dirname(path), 0o777);
      },
    },
    is: { a: `?user ${USER}` },
    told: /may replace it/,
  },
  {
    row: 'settings of another user are not ours',
    files: { [USER]: servers({ a: x() }) },
    options: { owners: [4711] },
    is: { a: `?user ${USER}` },
    told: /belongs to another user/,
  },
  {
    row: 'comments and a byte order mark',
    files: { [STATE]: '\ufeff{ /* mine */ "mcpServers": { "a": { "command": "x" } } }' },
    is: { a: `user ${STATE}` },
  },
  { row: 'an empty file', files: { [SHARED]: '' }, is: {}, told: /it is empty/ },
  {
    row: "a home that is no whole path is the project's",
    files: { 'app/.claude.json': servers({ evil: x() }) },
    options: { home: '' },
    is: {},
  },
  {
    row: 'home and project are one folder',
    files: { 'app/.claude/settings.json': servers({ a: x() }) },
    options: { home: 'app' },
    is: { a: `user ${SETTINGS}` },
  },

  // ── names ──
  {
    row: 'duplicate names in one file: the last, as JSON has it',
    files: { [SHARED]: '{"mcpServers":{"a":{"command":"one"},"a":{"command":"two"}}}' },
    is: { a: `?project ${SHARED} = {"command":"two"}` },
  },
  {
    row: 'a server called __proto__',
    files: { [SHARED]: '{"mcpServers":{"__proto__":{"command":"x"}}}' },
    is: { ['__proto__']: `?project ${SHARED}` },
  },
  {
    row: 'a variable in a name means nothing',
    files: { [SHARED]: servers({ '${USER}': x() }) },
    env: { USER: 'ada' },
    is: { '${USER}': `?project ${SHARED}` },
  },
  {
    row: 'white space is reported, and not trimmed',
    files: { [USER]: servers({ a: x(' x ') }) },
    is: { a: `user ${USER} = {"command":" x "}` },
    told: /white space around command/,
  },
  {
    row: 'an entry that is no object stays, for the manager to name',
    files: { [SHARED]: servers({ a: 'x' as unknown as Json }) },
    is: { a: `?project ${SHARED}` },
  },
  {
    row: 'a reserved name in a project',
    files: { [SHARED]: servers({ ide: x() }) },
    options: { reserved: ['ide'] },
    is: { ide: `?project ${SHARED} ✗ a built-in server` },
    told: /rename it/,
  },
  {
    row: 'an IDE type in a file',
    files: {
      [USER]: servers({
        a: { type: 'ws-ide', url: 'ws://127.0.0.1:1' },
        b: { type: 'sse-ide', url: 'http://127.0.0.1:1' },
      }),
    },
    is: {
      a: `user ${USER} ✗ "type": "ws-ide" is for programs`,
      b: `user ${USER} ✗ "type": "sse-ide" is for programs`,
    },
  },
  {
    row: 'an sdk server in a file',
    files: { [SHARED]: servers({ a: { type: 'sdk', name: 'a' } }) },
    is: { a: `?project ${SHARED} ✗ "type": "sdk" is for programs` },
  },
  {
    row: "switched off in Claude Code's menu",
    files: { [STATE]: here({ a: x() }, { disabledMcpServers: ['a'] }) },
    is: { a: `local ${STATE} ✗ "disabledMcpServers" in` },
  },
  {
    row: 'rejected in Claude Code',
    files: { [SHARED]: servers({ a: x() }), [STATE]: here({}, { disabledMcpjsonServers: ['a'] }) },
    is: { a: `?project ${SHARED} ✗ "disabledMcpjsonServers" in` },
  },
  {
    row: 'enabled in Claude Code is no approval here',
    files: {
      [SHARED]: servers({ a: x() }),
      [STATE]: here({}, { enabledMcpjsonServers: ['a'] }),
      [USER]: { enableAllProjectMcpServers: true },
    },
    is: { a: `?project ${SHARED}` },
  },
];
