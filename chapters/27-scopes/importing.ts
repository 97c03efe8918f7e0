// importing.ts: servers that another program has. Its file is read and never changed, and what is
// taken over is converted first. Another program is a row of the table.

import { join } from 'node:path';
import { asObject, isObject, readJsonFile, textOf, type Json } from '../../mcp.ts';
import type { AskFor } from './packages/registry.ts';

export type Where = {
  home: string;
  cwd: string;
  platform: NodeJS.Platform;
  appData: string;
};
/** Where a program keeps its servers, and how an entry of its becomes one of ours. */
export type Importer = {
  files: (where: Where) => string[];
  servers: (root: Json) => Json;
  convert?: (config: Json, where: Where, root: Json, ask: AskFor) => Promise<Json>;
};
export type ImportableServer = { name: string; config: Json; file: string; root: Json };

/** The folder where a system keeps the files of programs. */
function ofPrograms({ home, platform, appData }: Where): string {
  if (platform === 'darwin') return join(home, 'Library', 'Application Support');
  return platform === 'win32' ? appData : join(home, '.config');
}

export const importers: Record<string, Importer> = {
  'claude-desktop': {
    files: (where) => [join(ofPrograms(where), 'Claude', 'claude_desktop_config.json')],
    servers: (root) => asObject(root.mcpServers),
  },
  vscode: {
    files: (where) => {
      const user = join(ofPrograms(where), 'Code', 'User');
      return [
        join(user, 'mcp.json'),
        join(user, 'settings.json'),
        join(where.cwd, '.vscode', 'mcp.json'),
      ];
    },
    servers: (root) => asObject(root.servers ?? asObject(root.mcp).servers),
    convert: fromCode,
  },
};

export function offeredBy(
  importer: Importer,
  where: Where,
): { offered: ImportableServer[]; problems: string[] } {
  const problems: string[] = [];
  const offered = importer.files(where).flatMap((file) => {
    try {
      const root = readJsonFile(file) ?? {};
      const found = Object.entries(importer.servers(root)).filter(([, config]) => isObject(config));
      return found.map(([name, config]) => ({ name, config: config as Json, file, root }));
    } catch (error) {
      problems.push(`${file} is ignored: ${textOf(error)}`);
      return [];
    }
  });
  return { offered, problems };
}

/** A name that `mcp add` takes. */
export const fitServerName = (name: string) =>
  name
    .trim()
    .slice(0, 1000)
    .replace(/[^\w-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+|-+$/g, '')
    .slice(0, 64);

// ─── VS Code ───────────────────────────────────────────────────────────────────────────────────

/** Its variables: ${env:X}, ${workspaceFolder}, ${userHome}, and ${input:X}, which it asks for. */
async function fromCode(config: Json, where: Where, root: Json, ask: AskFor): Promise<Json> {
  const { envFile, dev, gallery, version, ...rest } = config;
  if (envFile !== undefined)
    throw new Error(
      'it reads variables from a file ("envFile"), which we do not; write them into its "env"',
    );
  const inputs = [root.inputs ?? asObject(root.mcp).inputs ?? []].flat().filter(isObject);
  const wanted = [...JSON.stringify(rest).matchAll(/\$\{input:([^}"\\]{1,200})\}/g)].map(
    ([, id]) => id!,
  );
  const values = new Map<string, string>();
  for (const id of new Set(wanted)) {
    const {
      description = '',
      password,
      default: usual,
      options,
    } = inputs.find((each) => each.id === id) ?? {};
    const value = await ask({
      name: id,
      description: `${description}`,
      isSecret: password === true,
      isRequired: true,
      choices: Array.isArray(options)
        ? options.map((each) => `${isObject(each) ? each.value : each}`)
        : [],
      ...(typeof usual === 'string' && { usual }),
    });
    if (value === undefined) throw new Error(`it needs a value for "${id}"`);
    values.set(id, value);
  }
  const convert = (_: string, value: unknown) =>
    typeof value === 'string' ? converted(value, where, values) : value;
  return JSON.parse(JSON.stringify(rest), convert) as Json;
}

function converted(text: string, { home }: Where, inputs: Map<string, string>): string {
  return text
    .replace(/\$\{env:(\w+)\}/g, '${$1}')
    .replace(/\$\{workspaceFolder(?::[^{}]*)?\}/g, '${CLAUDE_PROJECT_DIR}')
    .replace(/\$\{userHome\}/g, () => home)
    .replace(/\$\{input:([^{}]+)\}/g, (_, id: string) => inputs.get(id) ?? '');
}
