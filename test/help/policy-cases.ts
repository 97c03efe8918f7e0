// The table of scopes, its second half: plugins, the same server twice, and what an administrator allows.

import { join } from 'node:path';
import {
  connectors,
  MANAGED,
  ofPlugin,
  on,
  plugged,
  PLUGINS,
  POLICY,
  servers,
  SETTINGS,
  SHARED,
  USER,
  web,
  x,
  type Case,
} from './scope-files.ts';

export const POLICY_CASES: Case[] = [
  // ── plugins ──
  {
    row: 'a plugin that is not switched on',
    files: { ...plugged('p'), [ofPlugin('p')]: servers({ a: x() }) },
    is: {},
  },
  {
    row: 'a project cannot switch a plugin on',
    files: { ...plugged('p'), [SETTINGS]: on('p'), [ofPlugin('p')]: servers({ a: x() }) },
    is: {},
  },
  {
    row: 'a project may switch a plugin off',
    files: {
      ...plugged('p'),
      [USER]: on('p'),
      [SETTINGS]: { enabledPlugins: { 'p@shop': false } },
      [ofPlugin('p')]: servers({ a: x() }),
    },
    is: {},
  },
  {
    row: 'the first version of the list',
    files: {
      [PLUGINS]: (base: string) => ({
        version: 1,
        plugins: { 'p@shop': { installPath: join(base, 'home/.claude/plugins/p') } },
      }),
      [USER]: on('p'),
      [ofPlugin('p')]: servers({ a: x() }),
    },
    is: { 'plugin:p:a': `?plugin ${ofPlugin('p')}` },
  },
  {
    row: "a plugin's folder in the place of its variable, and it starts there",
    files: {
      ...plugged('p'),
      [USER]: on('p'),
      [ofPlugin('p')]: servers({ a: x('${CLAUDE_PLUGIN_ROOT}/run') }),
    },
    is: {
      'plugin:p:a': `?plugin ${ofPlugin('p')} = {"command":"BASE/home/.claude/plugins/p/run","cwd":"BASE/home/.claude/plugins/p","env":{"CLAUDE_PLUGIN_ROOT":"BASE/home/.claude/plugins/p"}}`,
    },
  },
  {
    row: 'a plugin root with ..',
    files: {
      [PLUGINS]: (base: string) => ({
        plugins: { 'p@shop': { installPath: `${base}/home/.claude/plugins/../../../evil` } },
      }),
      [USER]: on('p'),
      'evil/.mcp.json': servers({ a: x() }),
    },
    is: {},
    told: /"installPath" leads somewhere else/,
  },
  {
    row: 'a plugin root that is relative',
    files: {
      [PLUGINS]: { plugins: { 'p@shop': { installPath: '.' } } },
      [USER]: on('p'),
      [SHARED]: servers({ a: x() }),
    },
    is: { a: `?project ${SHARED}` },
    told: /is not a whole path/,
  },
  {
    row: 'a manifest that names a file outside of the plugin',
    files: {
      ...plugged('p'),
      [USER]: on('p'),
      'home/evil.json': servers({ a: x() }),
      [ofPlugin('p', 'plugin.json')]: { mcpServers: '../../../evil.json' },
    },
    is: {},
    told: /leads out of the plugin/,
  },
  {
    row: 'a manifest that names several',
    files: {
      ...plugged('p'),
      [USER]: on('p'),
      [ofPlugin('p', 'more.json')]: servers({ b: x('b') }),
      [ofPlugin('p', 'plugin.json')]: { mcpServers: ['./more.json', { c: x('c') }] },
    },
    is: {
      'plugin:p:b': `?plugin ${ofPlugin('p', 'more.json')}`,
      'plugin:p:c': `?plugin ${ofPlugin('p', 'plugin.json')}`,
    },
  },
  {
    row: 'a broken manifest',
    files: {
      ...plugged('p', 'q'),
      [USER]: on('p', 'q'),
      [ofPlugin('p')]: '{',
      [ofPlugin('q')]: servers({ a: x() }),
    },
    is: { 'plugin:q:a': `?plugin ${ofPlugin('q')}` },
    told: /plugins\/p\/\.mcp\.json is ignored/,
  },
  {
    row: 'a plugin with a name that is none',
    files: {
      [PLUGINS]: { plugins: { '../x@shop': { installPath: '/x' } } },
      [USER]: { enabledPlugins: { '../x@shop': true } },
    },
    is: {},
    told: /not fit for a name/,
  },
  {
    row: 'a plugin and the user call a server alike: these are two',
    files: {
      ...plugged('p'),
      [USER]: { ...on('p'), ...servers({ a: x('mine') }) },
      [ofPlugin('p')]: servers({ a: x('theirs') }),
    },
    is: { 'plugin:p:a': `?plugin ${ofPlugin('p')}`, a: `user ${USER}` },
  },

  {
    row: "a project cannot take the name of a plugin's server",
    files: {
      ...plugged('p'),
      [USER]: on('p'),
      [ofPlugin('p')]: servers({ a: x() }),
      [SHARED]: servers({ 'plugin:p:a': x('evil') }),
    },
    is: { 'plugin:p:a': `?plugin ${ofPlugin('p')}` },
    told: /such a name is for plugins/,
  },

  // ── dedup by signature ──
  {
    row: 'manual beats plugin, by the command',
    files: {
      ...plugged('p'),
      [USER]: { ...on('p'), ...servers({ mine: x('npx', { args: ['srv'], cwd: '/' }) }) },
      [ofPlugin('p')]: servers({ a: x('npx', { args: ['srv'] }) }),
    },
    is: {
      'plugin:p:a': `?plugin ${ofPlugin('p')} ✗ it is the same as "mine" in`,
      mine: `user ${USER}`,
    },
  },
  {
    row: 'other arguments are another server',
    files: {
      ...plugged('p'),
      [USER]: { ...on('p'), ...servers({ mine: x('npx', { args: ['srv', '2'] }) }) },
      [ofPlugin('p')]: servers({ a: x('npx', { args: ['srv'] }) }),
    },
    is: { 'plugin:p:a': `?plugin ${ofPlugin('p')}`, mine: `user ${USER}` },
  },
  {
    row: 'manual beats plugin, by the address',
    files: {
      ...plugged('p'),
      [USER]: { ...on('p'), ...servers({ mine: web('https://A.example:443/mcp#x') }) },
      [ofPlugin('p')]: servers({ a: web('https://a.example/mcp') }),
    },
    is: {
      'plugin:p:a': `?plugin ${ofPlugin('p')} ✗ it is the same as "mine"`,
      mine: `user ${USER}`,
    },
  },
  {
    row: 'a slash at the end is another address',
    files: {
      ...plugged('p'),
      [USER]: { ...on('p'), ...servers({ mine: web('https://a.example/mcp/') }) },
      [ofPlugin('p')]: servers({ a: web('https://a.example/mcp') }),
    },
    is: { 'plugin:p:a': `?plugin ${ofPlugin('p')}`, mine: `user ${USER}` },
  },
  {
    row: 'two accounts at one service are two',
    files: {
      ...plugged('p'),
      [USER]: {
        ...on('p'),
        ...servers({ mine: web('https://a.example/', { headers: { key: '1' } }) }),
      },
      [ofPlugin('p')]: servers({ a: web('https://a.example/', { headers: { key: '2' } }) }),
    },
    is: { 'plugin:p:a': `?plugin ${ofPlugin('p')}`, mine: `user ${USER}` },
  },
  {
    row: 'after variables are filled in',
    files: {
      ...plugged('p'),
      [USER]: { ...on('p'), ...servers({ mine: web('https://${HOST}/mcp') }) },
      [ofPlugin('p')]: servers({ a: web('https://a.example/mcp') }),
    },
    env: { HOST: 'a.example' },
    is: {
      'plugin:p:a': `?plugin ${ofPlugin('p')} ✗ it is the same as "mine"`,
      mine: `user ${USER}`,
    },
  },
  {
    row: 'the earlier plugin beats the later',
    files: {
      ...plugged('p', 'q'),
      [USER]: on('p', 'q'),
      [ofPlugin('p')]: servers({ a: web('https://a.example/') }),
      [ofPlugin('q')]: servers({ b: web('https://a.example/') }),
    },
    is: {
      'plugin:p:a': `?plugin ${ofPlugin('p')}`,
      'plugin:q:b': `?plugin ${ofPlugin('q')} ✗ it is the same as "plugin:p:a"`,
    },
  },
  {
    row: 'plugins beat connectors',
    files: {
      ...plugged('p'),
      [USER]: on('p'),
      [ofPlugin('p')]: servers({ a: web('https://a.example/') }),
    },
    options: connectors({ c: web('https://a.example/') }),
    is: {
      c: '?connector a command ✗ it is the same as "plugin:p:a"',
      'plugin:p:a': `?plugin ${ofPlugin('p')}`,
    },
  },
  {
    row: 'what is switched off hides no connector',
    files: { [USER]: servers({ mine: web('https://a.example/', { disabled: true }) }) },
    options: connectors({ c: web('https://a.example/') }),
    is: { c: '?connector a command', mine: `user ${USER}` },
  },
  {
    row: "two servers of the user that start the same are the user's business",
    files: { [USER]: servers({ a: x(), b: x() }) },
    is: { a: `user ${USER}`, b: `user ${USER}` },
  },

  // ── policy ──
  {
    row: 'denied by name',
    files: {
      [POLICY]: { deniedMcpServers: [{ serverName: 'a' }] },
      [USER]: servers({ a: x(), b: x() }),
    },
    is: {
      a: `user ${USER} ✗ blocked by policy: "deniedMcpServers" in .*managed-settings.json`,
      b: `user ${USER}`,
    },
  },
  {
    row: 'denied by command, exactly',
    files: {
      [USER]: {
        ...servers({ a: x('npx', { args: ['-y', 's'] }), b: x('npx', { args: ['s'] }) }),
        deniedMcpServers: [{ serverCommand: ['npx', '-y', 's'] }],
      },
    },
    is: { a: `user ${USER} ✗ blocked by policy`, b: `user ${USER}` },
  },
  {
    row: 'denied by address, with *',
    files: {
      [USER]: {
        ...servers({ a: web('https://x.evil.example/mcp'), b: web('https://evil.example/mcp') }),
        deniedMcpServers: [{ serverUrl: 'https://*.evil.example/*' }],
      },
    },
    is: { a: `user ${USER} ✗ blocked by policy`, b: `user ${USER}` },
  },
  {
    row: 'a pattern without a path means every path',
    files: {
      [USER]: {
        ...servers({ a: web('https://e.example/any?q') }),
        deniedMcpServers: [{ serverUrl: 'https://E.example.' }],
      },
    },
    is: { a: `user ${USER} ✗ blocked by policy` },
  },
  {
    row: 'a * for the host does not reach into the path',
    files: {
      [POLICY]: { allowedMcpServers: [{ serverUrl: 'https://*.good.example/*' }] },
      [USER]: servers({
        a: web('https://evil.org/.good.example/x'),
        b: web('https://api.good.example/x'),
      }),
    },
    is: { a: `user ${USER} ✗ blocked by policy: "allowedMcpServers"`, b: `user ${USER}` },
  },
  {
    row: 'a user name before the host is not the host',
    files: {
      [POLICY]: { allowedMcpServers: [{ serverUrl: 'https://good.example/*' }] },
      [USER]: servers({ a: web('https://good.example@evil.org/') }),
    },
    is: { a: `user ${USER} ✗ blocked by policy` },
  },
  {
    row: 'a project may deny',
    files: { [SETTINGS]: { deniedMcpServers: [{ serverName: 'a' }] }, [USER]: servers({ a: x() }) },
    is: { a: `user ${USER} ✗ blocked by policy: "deniedMcpServers" in .*app` },
  },
  {
    row: "a project's allow list does not widen the user's",
    files: {
      [SETTINGS]: { allowedMcpServers: [{ serverName: 'evil' }] },
      [USER]: { allowedMcpServers: [{ serverName: 'a' }] },
      [SHARED]: servers({ evil: x() }),
    },
    is: { evil: `?project ${SHARED} ✗ blocked by policy: "allowedMcpServers" in .*home` },
  },
  {
    row: "a project's allow list narrows",
    files: {
      [SETTINGS]: { allowedMcpServers: [{ serverName: 'a' }] },
      [USER]: servers({ a: x(), b: x() }),
    },
    is: { a: `user ${USER}`, b: `user ${USER} ✗ blocked by policy: "allowedMcpServers" in .*app` },
  },
  {
    row: 'no allow list: all; an empty one: none',
    files: { [POLICY]: { allowedMcpServers: [] }, [USER]: servers({ a: x() }) },
    is: { a: `user ${USER} ✗ blocked by policy` },
  },
  {
    row: 'deny beats allow',
    files: {
      [POLICY]: {
        allowedMcpServers: [{ serverName: 'a' }],
        deniedMcpServers: [{ serverName: 'a' }],
      },
      [USER]: servers({ a: x() }),
    },
    is: { a: `user ${USER} ✗ blocked by policy: "deniedMcpServers"` },
  },
  {
    row: 'as soon as there is a command, a name is not enough',
    files: {
      [POLICY]: { allowedMcpServers: [{ serverName: 'a' }, { serverCommand: ['good'] }] },
      [USER]: servers({ a: x('evil'), b: x('good'), c: web('https://c.example/') }),
    },
    is: {
      a: `user ${USER} ✗ blocked by policy`,
      b: `user ${USER}`,
      c: `user ${USER} ✗ blocked by policy`,
    },
  },
  {
    row: 'likewise an address',
    files: {
      [POLICY]: { allowedMcpServers: [{ serverName: 'a' }, { serverUrl: 'https://good.example' }] },
      [USER]: servers({ a: web('https://evil.example/'), b: x('b') }),
    },
    is: { a: `user ${USER} ✗ blocked by policy`, b: `user ${USER} ✗ blocked by policy` },
  },
  {
    row: 'a user widens a soft list',
    files: {
      [POLICY]: { allowedMcpServers: [{ serverName: 'a' }] },
      [USER]: { ...servers({ b: x() }), allowedMcpServers: [{ serverName: 'b' }] },
    },
    is: { b: `user ${USER}` },
  },
  {
    row: 'but not one that is managed only',
    files: {
      [POLICY]: { allowedMcpServers: [{ serverName: 'a' }], allowManagedMcpServersOnly: true },
      [USER]: { ...servers({ b: x() }), allowedMcpServers: [{ serverName: 'b' }] },
    },
    is: { b: `user ${USER} ✗ blocked by policy` },
  },
  {
    row: 'a user cannot make lists managed only',
    files: {
      [USER]: {
        ...servers({ b: x() }),
        allowManagedMcpServersOnly: true,
        allowedMcpServers: [{ serverName: 'b' }],
      },
    },
    is: { b: `user ${USER}` },
  },
  {
    row: 'policy holds for managed servers, too',
    files: { [MANAGED]: servers({ a: x() }), [USER]: { deniedMcpServers: [{ serverName: 'a' }] } },
    is: { a: `managed ${MANAGED} ✗ blocked by policy` },
  },
  {
    row: 'policy holds for plugins and connectors',
    files: {
      [USER]: { ...on('p'), deniedMcpServers: [{ serverUrl: '*://*.example/*' }] },
      ...plugged('p'),
      [ofPlugin('p')]: servers({ a: web('https://a.example/') }),
    },
    options: connectors({ c: web('https://c.example/') }),
    is: {
      c: '?connector a command ✗ blocked by policy',
      'plugin:p:a': `?plugin ${ofPlugin('p')} ✗ blocked by policy`,
    },
  },
  {
    row: 'variables of the start count in a policy',
    files: {
      [POLICY]: { allowedMcpServers: [{ serverCommand: ['${HOME}/bin/s'] }] },
      [USER]: servers({ a: x('/h/bin/s'), b: x('${HOME}/bin/s') }),
    },
    env: { HOME: '/h' },
    is: { a: `user ${USER}`, b: `user ${USER}` },
  },
  {
    row: 'a variable cannot move an allowed address',
    files: {
      [USER]: {
        ...servers({ a: web('https://evil.org/x') }),
        allowedMcpServers: [{ serverUrl: 'https://${HOST}.good.example/*' }],
      },
    },
    env: { HOST: 'evil.org/x?' },
    is: { a: `user ${USER} ✗ blocked by policy` },
    told: /is not like/,
  },
  {
    row: 'a list that is none, managed: nothing runs',
    files: { [POLICY]: { deniedMcpServers: 'a' }, [USER]: servers({ b: x() }) },
    is: { b: `user ${USER} ✗ blocked by policy` },
    told: /is not like/,
  },
  {
    row: "an odd entry in a project's list is named",
    files: { [SETTINGS]: { deniedMcpServers: [{ serverNme: 'a' }] }, [USER]: servers({ a: x() }) },
    is: { a: `user ${USER}` },
    told: /entry 1 in "deniedMcpServers"/,
  },
  {
    row: 'a pattern of many stars costs nothing',
    files: {
      [SETTINGS]: { deniedMcpServers: [{ serverUrl: `https://a.example/${'*a'.repeat(40)}*b` }] },
      [USER]: servers({ a: web(`https://a.example/${'a'.repeat(5000)}`) }),
    },
    is: { a: `user ${USER}` },
  },
];
