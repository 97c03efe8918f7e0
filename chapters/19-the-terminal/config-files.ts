// The files that servers are configured in. People write them by hand, so what we do not change
// stays as it is.

import { existsSync, lstatSync, readFileSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import {
  asObject,
  isObject,
  ownValue,
  readJsonFile,
  serversIn,
  textOf,
  type Json,
} from '../../mcp.ts';
import { refuseLinks } from '../16-hands/results.ts';
import type { Lock } from '../17-the-gate/lock.ts';
import { lockFor, replacePrivateFile } from '../17-the-gate/private-file.ts';
import { quoted } from '../17-the-gate/safe-text.ts';
import { refused, Stop } from './exit.ts';
import type { ConfigPlace } from './host.ts';

/** Where there may be servers that commands can change, if no chapter knows more. Of one scope, the
 *  last is where a new server goes. */
export function usualPlaces(): ConfigPlace[] {
  const settings = (folder: string) => join(folder, '.claude', 'settings.json');
  const at = (file: string, whose: ConfigPlace['authority']): ConfigPlace => ({
    file,
    scope: whose,
    authority: whose,
    keys: ['mcpServers'],
  });
  const here = process.cwd();
  return [
    at(settings(homedir()), 'user'),
    at(settings(here), 'project'),
    at(join(here, '.mcp.json'), 'project'),
  ];
}

/** The servers in a place. A file that cannot be read has none, and is warned of. */
export function serversAt({ file, keys }: ConfigPlace, warn: (text: string) => void): Json {
  try {
    const above = keys.slice(0, -1).reduce(insideOf, readJsonFile(file) ?? {});
    return serversIn(above, mayBeFlat(file));
  } catch (error) {
    warn(`${file} cannot be read: ${textOf(error)}`);
    return {};
  }
}

const insideOf = (object: Json, key: string) => asObject(ownValue(object, key));

/** .mcp.json may also be the bare mapping of names to servers, or VS Code's "servers". */
const mayBeFlat = (file: string) => file.endsWith('.mcp.json');

/** The object in a file's content that new servers go into. */
function editable({ file, keys }: ConfigPlace, root: Json) {
  const isBare = mayBeFlat(file) && !Object.hasOwn(root, 'mcpServers');
  if (isBare && Object.values(root).some(isObject)) {
    const found = serversIn(root, true);
    return found === root.servers ? found : root;
  }
  return keys.reduce((object: unknown, key) => {
    if (!isObject(object)) return undefined;
    if (!Object.hasOwn(object, key)) object[key] = {};
    return object[key];
  }, root);
}

/** Changes the servers in a file and leaves the rest of it as it is. Two programs at once take turns,
 *  and each reads what the other has written. */
export function edit(place: ConfigPlace, change: (servers: Json) => void): void {
  const { file } = place;
  const isUsers = place.authority === 'user';
  try {
    // A project's link may lead to a file of yours, whose content would be copied into the project.
    if (!isUsers) refuseLinks(file);
    // People link their own settings to a folder that they share.
    const target = isUsers && existsSync(file) ? realpathSync(file) : file;
    const lock = lockFor(target);
    try {
      editUnder(lock, { ...place, file: target }, change);
    } finally {
      lock.release();
    }
  } catch (error) {
    if (error instanceof Stop) throw error;
    throw refused(`nothing was changed: ${textOf(error)}`);
  }
}

function editUnder(lock: Lock, place: ConfigPlace, change: (servers: Json) => void) {
  const { file, keys } = place;
  const stat = lstatSync(file, { throwIfNoEntry: false }); // also of a link that leads nowhere
  const before = stat && readFileSync(file, 'utf8');
  const root = before === undefined ? {} : parseStrictly(file, before);
  const servers = editable(place, root);
  if (!isObject(servers))
    throw refused(`${file}: its "${keys.at(-1)}" is not an object; correct that first`);
  change(servers);
  const after = `${JSON.stringify(root, finiteIn(file), 2)}\n`;
  // Claude Code and editors know nothing of our lock.
  const isChanged = stat && readFileSync(file, 'utf8') !== before;
  if (isChanged) return editUnder(lock, place, change);
  const usual = place.authority === 'user' ? 0o600 : 0o644;
  replacePrivateFile(file, after, stat ? stat.mode & 0o777 : usual, lock);
}

/** 1e999 is JSON, but Infinity to us, and would be written as null. */
const finiteIn = (file: string) => (key: string, value: unknown) => {
  if (typeof value !== 'number' || Number.isFinite(value)) return value;
  throw refused(`${file}: ${quoted(key)} is a number that is too large; correct that first`);
};

/** Comments are read elsewhere, but not here: JSON.stringify would lose them. */
function parseStrictly(file: string, text: string) {
  try {
    const root: unknown = JSON.parse(text.replace(/^\ufeff/, ''));
    if (isObject(root)) return root;
  } catch {}
  const why = 'has comments or is no JSON object: to keep what is there, edit it by hand';
  throw refused(`${file} ${why}`);
}
