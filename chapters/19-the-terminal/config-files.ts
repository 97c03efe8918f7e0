// The files that servers are configured in. People write them by hand, so what we do not change
// stays as it is.

import {
  existsSync, lstatSync, mkdirSync, readFileSync, realpathSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { isObject, readJsonFile, serversIn as mappingIn, type Json } from '../../mcp.ts';
import { refuseLinks } from '../16-hands/results.ts';
import { replaceFile } from '../17-the-gate/private-file.ts';
import { quoted } from '../17-the-gate/safe-text.ts';
import { refused, Stop } from './options.ts';

/** Those that `mcp add` can write to. */
export type Scope = 'user' | 'project';

/** Where a new server goes. */
export function fileOf(scope: Scope): string {
  if (scope === 'user') return join(homedir(), '.claude', 'settings.json');
  return join(process.cwd(), '.mcp.json');
}

/** Where there may be servers. */
export function filesOf(scope: Scope): string[] {
  if (scope === 'user') return [fileOf('user')];
  return [join(process.cwd(), '.claude', 'settings.json'), fileOf('project')];
}

/** The servers in a file. One that cannot be read has none, and is warned of. */
export function serversIn(file: string, warn: (text: string) => void): Json {
  try {
    return mappingIn(readJsonFile(file) ?? {}, mayBeFlat(file));
  } catch (error) {
    warn(`${file} cannot be read: ${(error as Error).message}`);
    return {};
  }
}

/** .mcp.json may also be the bare mapping of names to servers, or VS Code's "servers". */
const mayBeFlat = (file: string) => file.endsWith('.mcp.json');

/** The object in a file's content that new servers go into. */
function editable(file: string, root: Json): unknown {
  const isBare = mayBeFlat(file) && !Object.hasOwn(root, 'mcpServers');
  if (isBare && Object.values(root).some(isObject)) {
    const found = mappingIn(root, true);
    return found === root.servers ? found : root;
  }
  root.mcpServers ??= {};
  return root.mcpServers;
}

/** Changes the servers in a file and leaves the rest of it as it is. */
export function edit(file: string, change: (servers: Json) => void): void {
  const finite = (key: string, value: unknown) => {
    if (typeof value !== 'number' || Number.isFinite(value)) return value;
    throw refused(`${file}: ${quoted(key)} is a number that is too large; correct that first`);
  };
  try {
    // A project's link may lead to a file of yours, whose content would be copied into the project.
    if (file !== fileOf('user')) refuseLinks(file);
    const root = isThere(file) ? readStrictly(file) : {};
    const servers = editable(file, root);
    if (!isObject(servers))
      throw refused(`${file}: its "mcpServers" is not an object; correct that first`);
    change(servers);
    // 1e999 is JSON, but Infinity to us, and would be written as null.
    replace(file, `${JSON.stringify(root, finite, 2)}\n`);
  } catch (error) {
    if (error instanceof Stop) throw error;
    throw refused(`nothing was changed: ${(error as Error).message}`);
  }
}

/** Also if it is a link that leads nowhere. */
const isThere = (file: string) => lstatSync(file, { throwIfNoEntry: false }) !== undefined;

function replace(file: string, text: string): void {
  const isUsers = file === fileOf('user');
  const old = lstatSync(file, { throwIfNoEntry: false });
  const usual = isUsers ? 0o600 : 0o644;
  const mode = old?.isFile() ? old.mode & 0o777 : usual;
  // People link their own settings to a folder that they share.
  const target = isUsers && existsSync(file) ? realpathSync(file) : file;
  mkdirSync(dirname(file), { recursive: true });
  replaceFile(target, text, mode);
}

/** Comments are read elsewhere, but not here: JSON.stringify would lose them. */
function readStrictly(file: string): Json {
  try {
    const root: unknown = JSON.parse(readFileSync(file, 'utf8').replace(/^\ufeff/, ''));
    if (isObject(root)) return root;
  } catch {}
  const why = 'has comments or is no JSON object: to keep what is there, edit it by hand';
  throw refused(`${file} ${why}`);
}
