// other-programs.ts: where more programs keep their servers, and how their words differ from ours.
// Each row follows what its maker documents; tests have a sample of each.

import { asList, asObject, isObject, show, type Json } from '../../../mcp.ts';
import { withTexts } from '../../17-the-gate/safe-text.ts';
import type { Importer } from '../importing.ts';
import { at, editorsJson, fromCode } from './from-code.ts';
import { parseToml } from './toml.ts';

/** Entries like ours, in other files. */
const likeOurs = (files: string, convert = (config: Json) => config): Importer => ({
  files: at(files),
  servers: (root) => asObject(root.mcpServers),
  convert: async (config, where, root, ask) => fromCode(convert(config), where, root, ask),
});

/** Extensions of VS Code keep their settings in its folder. */
const EXTENSIONS = 'programs/Code/User/globalStorage';

export const others: Record<string, Importer> = {
  cursor: likeOurs('~/.cursor/mcp.json ./.cursor/mcp.json', withType),
  codex: {
    files: at('~/.codex/config.toml ./.codex/config.toml'),
    read: parseToml,
    servers: (root) => asObject(root.mcp_servers),
    convert: async (config) => fromCodex(config),
  },
  gemini: likeOurs('~/.gemini/settings.json ./.gemini/settings.json', fromGemini),
  windsurf: likeOurs('~/.codeium/windsurf/mcp_config.json', ({ serverUrl: url, ...rest }) =>
    url === undefined ? rest : { type: 'http', url, ...rest },
  ),
  zed: {
    files: at('settings/zed/settings.json ./.zed/settings.json'),
    read: editorsJson,
    servers: (root) => asObject(root.context_servers),
    convert: async (config) => fromZed(config),
  },
  cline: likeOurs(
    `${EXTENSIONS}/saoudrizwan.claude-dev/settings/cline_mcp_settings.json`,
    withType,
  ),
  roo: likeOurs(
    `${EXTENSIONS}/rooveterinaryinc.roo-cline/settings/mcp_settings.json ./.roo/mcp.json`,
    withType,
  ),
  opencode: {
    files: at(
      ['~/.config/opencode', '.', './.opencode']
        .map((folder) => `${folder}/opencode.json ${folder}/opencode.jsonc`)
        .join(' '),
    ),
    read: editorsJson,
    servers: ({ mcp }) => asObject(asObject(mcp).servers ?? mcp),
    convert: async (config) => fromOpencode(config),
  },
  pi: likeOurs('~/.pi/agent/mcp.json ./.pi/mcp.json', fromPi),
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
  const variable = (name: unknown) => `\${${name}}`;
  const passed = asList(env_vars).map((name) => [name, variable(name)]);
  const headers = {
    ...asObject(http_headers),
    ...(withTexts(asObject(env_http_headers), variable) as Json),
    ...(token !== undefined && { Authorization: `Bearer ${variable(token)}` }),
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
function fromGemini({ httpUrl, url, ...rest }: Json) {
  const address = httpUrl ?? url;
  const type = httpUrl === undefined ? 'sse' : 'http';
  const config = { ...rest, ...(address !== undefined && { type, url: address }) };
  return withTexts(config, (text) => text.replace(/\$(\w+)/g, '${$1}')) as Json;
}

/** An older form has the command as an object with a path. */
function fromZed({ source, settings, command, ...rest }: Json): Json {
  if (!isObject(command)) return { ...(command !== undefined && { command }), ...rest };
  const { path, ...more } = command;
  return { command: path, ...more, ...rest };
}

function fromOpencode({ type, command, environment, ...rest }: Json) {
  const [program, ...args] = asList(command);
  const local = { command: program, args, ...(environment !== undefined && { env: environment }) };
  const config = type === 'remote' ? { type: 'http', ...rest } : { ...local, ...rest };
  return withTexts(config, (text) => text.replace(/\{env:(\w+)\}/g, '${$1}')) as Json;
}

/** How long a server lives is up to us. */
function fromPi({ lifecycle, idleTimeout, directTools, debug, auth, ...more }: Json): Json {
  const { bearerToken, bearerTokenEnv, ...rest } = more;
  const token = bearerToken ?? (bearerTokenEnv === undefined ? undefined : `\${${bearerTokenEnv}}`);
  if (token === undefined) return rest;
  return { ...rest, headers: { Authorization: `Bearer ${token}`, ...asObject(rest.headers) } };
}
