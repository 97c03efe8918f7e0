// importing.ts: servers that another program has. Its file is read and never changed, and what is
// taken over is converted first. Another program is a row of the table.

import { readFileSync, statSync } from 'node:fs';
import { asObject, isObject, readJsonFile, textOf, type Json } from '../../mcp.ts';
import { at, fromCode } from './packages/from-code.ts';
import { others } from './packages/other-programs.ts';
import type { AskFor } from './packages/registry.ts';

const MAX_BYTES = 4 * 2 ** 20;

export type Where = {
  home: string;
  cwd: string;
  platform: NodeJS.Platform;
  appData: string;
};
/** Where a program keeps its servers, and how an entry of its becomes one of ours. */
export type Importer = {
  files: (where: Where) => string[];
  read?: (text: string) => Json; // else it is JSON
  servers: (root: Json) => Json;
  isUsed?: boolean; // here, as it is
  convert?: (config: Json, where: Where, root: Json, ask: AskFor) => Promise<Json>;
};
export type ImportableServer = { name: string; config: Json; file: string; root: Json };

export const importers: Record<string, Importer> = {
  'claude-code': {
    files: at('~/.claude.json'),
    servers: (root) => asObject(root.mcpServers),
    isUsed: true,
  },
  'claude-desktop': {
    files: at('programs/Claude/claude_desktop_config.json'),
    servers: (root) => asObject(root.mcpServers),
  },
  vscode: {
    files: at('programs/Code/User/mcp.json programs/Code/User/settings.json ./.vscode/mcp.json'),
    servers: (root) => asObject(root.servers ?? asObject(root.mcp).servers),
    convert: fromCode,
  },
  ...others,
};

export function offeredBy(
  importer: Importer,
  where: Where,
): { offered: ImportableServer[]; problems: string[] } {
  const problems: string[] = [];
  const offered = importer.files(where).flatMap((file) => {
    try {
      const root = (importer.read ? readText(file, importer.read) : readJsonFile(file)) ?? {};
      const found = Object.entries(importer.servers(root)).filter(([, config]) => isObject(config));
      return found.map(([name, config]) => ({ name, config: config as Json, file, root }));
    } catch (error) {
      problems.push(`${file} is ignored: ${textOf(error)}`);
      return [];
    }
  });
  return { offered, problems };
}

/** As in chapter 12: a project may have put anything in its place. */
function readText(file: string, read: (text: string) => Json) {
  const stat = statSync(file, { throwIfNoEntry: false });
  if (!stat) return undefined;
  if (!stat.isFile()) throw new Error('it is not a file');
  if (stat.size > MAX_BYTES) throw new Error(`it has more than ${MAX_BYTES} bytes`);
  return stat.size === 0 ? undefined : read(readFileSync(file, 'utf8'));
}

/** A name that `mcp add` takes. */
export const fitServerName = (name: string) =>
  name
    .trim()
    .slice(0, 1000)
    .replace(/[^\w-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+|-+$/g, '')
    .slice(0, 64);
