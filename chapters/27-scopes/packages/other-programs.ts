// other-programs.ts: where more programs keep their servers, and how their words differ from ours.
// Each row follows what its maker documents; tests have a sample of each.

import { join } from 'node:path';
import { asList, asObject, isObject, show, type Json } from '../../../mcp.ts';
import type { Importer, Where } from '../importing.ts';
import { editorsJson, fromCode, ofPrograms } from './from-code.ts';
import { parseToml } from './toml.ts';

/** Entries like ours, in other files. */
const likeOurs = (files: Importer['files'], convert: Convert = (config) => config): Importer => ({
  files,
  servers: (root) => asObject(root.mcpServers),
  convert: async (config, where, root, ask) => fromCode(convert(config), where, root, ask),
});
type Convert = (config: Json) => Json;

/** Extensions of VS Code keep their settings in its folder. */
const inCode = (where: Where, extension: string, file: string) =>
  join(ofPrograms(where), 'Code', 'User', 'globalStorage', extension, 'settings', file);

export const others: Record<string, Importer> = {
  cursor: likeOurs(
    ({ home, cwd }) => [join(home, '.cursor', 'mcp.json'), join(cwd, '.cursor', 'mcp.json')],
    withType,
  ),
  codex: {
    files: ({ home, cwd }) => [
      join(home, '.codex', 'config.toml'),
      join(cwd, '.codex', 'config.toml'),
    ],
    read: parseToml,
    servers: (root) => asObject(root.mcp_servers),
    convert: async (config) => fromCodex(config),
  },
  gemini: likeOurs(
    ({ home, cwd }) => [
      join(home, '.gemini', 'settings.json'),
      join(cwd, '.gemini', 'settings.json'),
    ],
    fromGemini,
  ),
  windsurf: likeOurs(
    ({ home }) => [join(home, '.codeium', 'windsurf', 'mcp_config.json')],
    ({ serverUrl, ...rest }) =>
      serverUrl === undefined ? rest : { type: 'http', url: serverUrl, ...rest },
  ),
  zed: {
    files: (where) => [
      join(
        where.platform === 'win32' ? where.appData : join(where.home, '.config'),
        'zed',
        'settings.json',
      ),
      join(where.cwd, '.zed', 'settings.json'),
    ],
    read: editorsJson,
    servers: (root) => asObject(root.context_servers),
    convert: async (config) => fromZed(config),
  },
  cline: likeOurs(
    (where) => [inCode(where, 'saoudrizwan.claude-dev', 'cline_mcp_settings.json')],
    withType,
  ),
  roo: likeOurs(
    (where) => [
      inCode(where, 'rooveterinaryinc.roo-cline', 'mcp_settings.json'),
      join(where.cwd, '.roo', 'mcp.json'),
    ],
    withType,
  ),
  opencode: {
    files: ({ home, cwd }) =>
      [join(home, '.config', 'opencode'), cwd, join(cwd, '.opencode')].flatMap((folder) => [
        join(folder, 'opencode.json'),
        join(folder, 'opencode.jsonc'),
      ]),
    read: editorsJson,
    servers: ({ mcp }) => asObject(asObject(mcp).servers ?? mcp),
    convert: async (config) => fromOpencode(config),
  },
  pi: likeOurs(
    ({ home, cwd }) => [join(home, '.pi', 'agent', 'mcp.json'), join(cwd, '.pi', 'mcp.json')],
    fromPi,
  ),
};

/** They write streamableHttp, or streamable-http, and mean HTTP+SSE where they write neither. */
function withType({ type, ...rest }: Json): Json {
  const isHttp = /^streamable-?http$/i.test(show(type ?? ''));
  if (isHttp) return { type: 'http', ...rest };
  return type === undefined ? rest : { type, ...rest };
}

function fromCodex(config: Json): Json {
  const { bearer_token_env_var: token, http_headers, env_http_headers, env_vars, ...more } = config;
  const { startup_timeout_sec, startup_timeout_ms, tool_timeout_sec, env, url, ...rest } = more;
  const named = Object.entries(asObject(env_http_headers)).map(([key, name]) => [
    key,
    `\${${name}}`,
  ]);
  const passed = asList(env_vars).map((name) => [name, `\${${name}}`]);
  const headers = {
    ...asObject(http_headers),
    ...Object.fromEntries(named),
    ...(token !== undefined && { Authorization: `Bearer \${${token}}` }),
  };
  const variables = { ...asObject(env), ...Object.fromEntries(passed) };
  return {
    ...rest,
    ...(url !== undefined && { type: 'http', url }),
    ...(Object.keys(headers).length > 0 && { headers }),
    ...(Object.keys(variables).length > 0 && { env: variables }),
    ...(typeof tool_timeout_sec === 'number' && { timeout: tool_timeout_sec * 1000 }),
  };
}

/** httpUrl is Streamable HTTP, url the older HTTP+SSE; $NAME is a variable. */
function fromGemini({ httpUrl, url, ...rest }: Json): Json {
  const address = httpUrl ?? url;
  const type = httpUrl === undefined ? 'sse' : 'http';
  const config = { ...rest, ...(address !== undefined && { type, url: address }) };
  const braced = (_: string, value: unknown) =>
    typeof value === 'string' ? value.replace(/\$(\w+)/g, '${$1}') : value;
  return JSON.parse(JSON.stringify(config), braced) as Json;
}

/** An older form has the command as an object with a path. */
function fromZed({ source, settings, command, ...rest }: Json): Json {
  if (!isObject(command)) return { ...(command !== undefined && { command }), ...rest };
  const { path, ...more } = command;
  return { command: path, ...more, ...rest };
}

function fromOpencode({ type, command, environment, ...rest }: Json): Json {
  const variables = (_: string, value: unknown) =>
    typeof value === 'string' ? value.replace(/\{env:(\w+)\}/g, '${$1}') : value;
  const [program, ...args] = asList(command);
  const local = { command: program, args, ...(environment !== undefined && { env: environment }) };
  const config = type === 'remote' ? { type: 'http', ...rest } : { ...local, ...rest };
  return JSON.parse(JSON.stringify(config), variables) as Json;
}

/** How long a server lives is up to us. */
function fromPi({ lifecycle, idleTimeout, directTools, debug, auth, ...more }: Json): Json {
  const { bearerToken, bearerTokenEnv, ...rest } = more;
  const token = bearerToken ?? (bearerTokenEnv === undefined ? undefined : `\${${bearerTokenEnv}}`);
  if (token === undefined) return rest;
  return { ...rest, headers: { Authorization: `Bearer ${token}`, ...asObject(rest.headers) } };
}
