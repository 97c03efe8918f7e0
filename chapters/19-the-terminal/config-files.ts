// The files that servers are configured in. People write them by hand, so what we do not change
// stays as it is.

import { existsSync, lstatSync, readFileSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { isObject, readJsonFile, serversIn as mappingIn, type Json } from '../../mcp.ts';
import { refuseLinks } from '../16-hands/results.ts';
import type { Lock } from '../17-the-gate/lock.ts';
import { lockFor, replaceFile } from '../17-the-gate/private-file.ts';
import { quoted } from '../17-the-gate/safe-text.ts';
import { refused, Stop } from './exit.ts';

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

/** Changes the servers in a file and leaves the rest of it as it is. Two programs at once take turns,
 *  and each reads what the other has written. */
export function edit(file: string, change: (servers: Json) => void): void {
  const isUsers = file === fileOf('user');
  try {
    // A project's link may lead to a file of yours, whose content would be copied into the project.
    if (!isUsers) refuseLinks(file);
    // People link their own settings to a folder that they share.
    const target = isUsers && existsSync(file) ? realpathSync(file) : file;
    const lock = lockFor(target);
    try {
      editUnder(lock, target, change);
    } finally {
      lock.release();
    }
  } catch (error) {
    if (error instanceof Stop) throw error;
    throw refused(`nothing was changed: ${(error as Error).message}`);
  }
}

function editUnder(lock: Lock, file: string, change: (servers: Json) => void): void {
  const stat = lstatSync(file, { throwIfNoEntry: false }); // also of a link that leads nowhere
  const before = stat && readFileSync(file, 'utf8');
  const root = before === undefined ? {} : parseStrictly(file, before);
  const servers = editable(file, root);
  if (!isObject(servers))
    throw refused(`${file}: its "mcpServers" is not an object; correct that first`);
  change(servers);
  const after = `${JSON.stringify(root, finiteIn(file), 2)}\n`;
  // Claude Code and editors know nothing of our lock.
  const isChanged = stat && readFileSync(file, 'utf8') !== before;
  if (isChanged) return editUnder(lock, file, change);
  const usual = file === fileOf('user') ? 0o600 : 0o644;
  replaceFile(file, after, stat ? stat.mode & 0o777 : usual, lock);
}

/** 1e999 is JSON, but Infinity to us, and would be written as null. */
const finiteIn = (file: string) => (key: string, value: unknown) => {
  if (typeof value !== 'number' || Number.isFinite(value)) return value;
  throw refused(`${file}: ${quoted(key)} is a number that is too large; correct that first`);
};

/** Comments are read elsewhere, but not here: JSON.stringify would lose them. */
function parseStrictly(file: string, text: string): Json {
  try {
    const root: unknown = JSON.parse(text.replace(/^\ufeff/, ''));
    if (isObject(root)) return root;
  } catch {}
  const why = 'has comments or is no JSON object: to keep what is there, edit it by hand';
  throw refused(`${file} ${why}`);
}
