// plugins.ts: servers that come with the user's plugins. A plugin is a folder that somebody else
// wrote and the user has installed; so its servers start only when they are approved, and never as
// the project's.

import { isAbsolute, join, normalize } from 'node:path';
import { asObject, isObject, serversIn, transportType, type Json } from '../../mcp.ts';
import { withTexts } from '../17-the-gate/safe-text.ts';
import type { ReportProblem } from '../19-the-terminal/host.ts';
import { leadsOutOf, type Files } from './file-owners.ts';
import type { ConfigSource } from './scopes.ts';

export type Plugin = { id: string; name: string; root: string };
/** Makes entries of a bundle of a plugin, such as `server.mcpb`. */
export type Unpack = (bundle: string, plugin: Plugin) => Json;

type PluginOptions = {
  home: string;
  files: Files;
  settings: Json[];
  report: ReportProblem;
  unpack?: Unpack;
};

/** What is installed and switched on, in the order in which it was installed. */
export function pluginSources(options: PluginOptions): ConfigSource[] {
  const { home, files, report } = options;
  const list = join(home, '.claude', 'plugins', 'installed_plugins.json');
  const { root = {}, problem } = files.read(list);
  if (problem) report(`${list} is ignored: ${problem}`);
  return Object.entries(asObject(root.plugins)).flatMap(([id, installed]) => {
    if (!isOn(id, options.settings)) return [];
    const plugin = pluginAt(id, installed);
    if (typeof plugin === 'string') {
      report(`the plugin ${JSON.stringify(id)} in ${list} is ignored: ${plugin}`);
      return [];
    }
    return sourceOf(plugin, options);
  });
}

/** The user's settings switch it on; those of a project may only switch it off. */
function isOn(id: string, [mine = {}, ...others]: Json[]) {
  const inFile = (root: Json) => asObject(root.enabledPlugins)[id];
  return inFile(mine) === true && others.every((root) => inFile(root) !== false);
}

function pluginAt(id: string, installed: unknown): Plugin | string {
  const [first] = [installed].flat(); // a list since its second version
  const { installPath } = asObject(first);
  const [name = ''] = id.split('@');
  if (!/^[\w.-]{1,64}$/.test(name)) return 'that is not fit for a name';
  if (typeof installPath !== 'string' || !isAbsolute(installPath))
    return 'its "installPath" is not a whole path';
  if (installPath.split(/[\\/]/).includes('..') || installPath.includes('${'))
    return 'its "installPath" leads somewhere else';
  return { id, name, root: normalize(installPath) };
}

const MANIFESTS = [join('.claude-plugin', 'plugin.json'), 'plugin.json'];

function sourceOf(plugin: Plugin, options: PluginOptions): ConfigSource[] {
  const { files, report } = options;
  const manifest = MANIFESTS.map((name) => join(plugin.root, name)).find(
    (file) => files.read(file).root,
  );
  const named = manifest === undefined ? undefined : asObject(files.read(manifest).root).mcpServers;
  const usual = join(plugin.root, '.mcp.json');
  const listed = [named ?? []].flat();
  const all: [file: string, given: unknown][] = [
    [usual, usual],
    ...listed.map((given): [string, unknown] => [manifest!, given]),
  ];
  return all.flatMap(([file, given]) => {
    try {
      const mapping = mappingFrom(given, plugin, options);
      if (!mapping) return [];
      const where = typeof given === 'string' ? join(plugin.root, relativeTo(plugin, given)) : file;
      const servers = Object.entries(mapping).map(([name, config]): [string, Json] => [
        `plugin:${plugin.name}:${name}`,
        settled(config, plugin),
      ]);
      return [{ scope: 'plugin', file: where, authority: 'project' as const, servers }];
    } catch (error) {
      report(`${file} is ignored: ${(error as Error).message}`);
      return [];
    }
  });
}

const relativeTo = ({ root }: Plugin, path: string) =>
  path.startsWith(root) ? path.slice(root.length) : path;

/** A mapping, or the name of a file in the plugin: with a mapping, or a bundle. */
function mappingFrom(given: unknown, plugin: Plugin, { files, unpack }: PluginOptions) {
  if (isObject(given)) return given;
  if (typeof given !== 'string') throw new Error('its "mcpServers" is not an object');
  const file = join(plugin.root, relativeTo(plugin, given));
  if (leadsOutOf(file, plugin.root))
    throw new Error(`${JSON.stringify(given)} leads out of the plugin`);
  if (/\.(mcpb|dxt)$/.test(file)) {
    if (!unpack)
      throw new Error(`${JSON.stringify(given)} is a bundle, and this program unpacks none`);
    return unpack(file, plugin);
  }
  const { root, problem } = files.read(file);
  if (problem) throw new Error(problem);
  return root && serversIn(root, true);
}

/** With the plugin's own folder in the place of its variable, and there it starts: in the project,
 *  `npx` would run what a clone has brought along. */
function settled(given: unknown, { root }: Plugin) {
  if (!isObject(given)) return given as Json; // the manager says what is wrong with it
  const here = (text: string) => text.replaceAll('${CLAUDE_PLUGIN_ROOT}', root);
  const config = withTexts(given, here) as Json;
  if (transportType(config) !== 'stdio') return config;
  const env = { CLAUDE_PLUGIN_ROOT: root, ...asObject(config.env) };
  return { ...config, cwd: config.cwd ?? root, env };
}
