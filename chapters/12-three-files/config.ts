// config.ts: three files, and the servers in them.

import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { type Json, excerpt, isObject, textOf } from '../01-a-pipe/messages.ts';
import { tooMuchIn } from '../05-death/bounds.ts';

/** A server as a file describes it, every ${VAR} still in place. */
export type ServerEntry = {
  name: string;
  config: Json;
  file: string;
  scope: string; // where it comes from: 'user', 'project', …
  authority: 'user' | 'project'; // a project's entry needs the user's approval
  shadows?: string; // the file whose entry of this name it replaces
  blocked?: string; // why it is listed and does not start
};

const MAX_CONFIG_BYTES = 16 * 2 ** 20;

/** Reads three files; if two entries have the same name, the later wins. A broken file is reported
 *  and skipped. */
export function loadEntries(
  home: string,
  cwd: string,
  report: (problem: string) => void,
): Map<string, ServerEntry> {
  const entries = new Map<string, ServerEntry>();
  const add = (file: string, authority: ServerEntry['authority'], mayBeFlat = false) => {
    try {
      const servers = serversIn(readJsonFile(file) ?? {}, mayBeFlat);
      for (const [name, config] of Object.entries(servers)) {
        const shadows = entries.get(name)?.file;
        const origin = { file, scope: authority, authority, shadows };
        entries.set(name, { name, config: config as Json, ...origin });
      }
    } catch (error) {
      report(`${file} is ignored: ${textOf(error)}`);
    }
  };
  // A relative home might be the project's.
  if (isAbsolute(home)) add(join(home, '.claude', 'settings.json'), 'user');
  if (!isSameFolder(home, cwd)) add(join(cwd, '.claude', 'settings.json'), 'project');
  add(join(cwd, '.mcp.json'), 'project', true);
  return entries;
}

export function isSameFolder(one: string, two: string): boolean {
  if (!existsSync(one) || !existsSync(two)) return false;
  return realpathSync(one) === realpathSync(two);
}

/** The mapping of names to servers inside a file's content. A settings file holds much else, so
 *  only its `mcpServers` counts; .mcp.json may also be the bare mapping, or VS Code's `servers`. */
export function serversIn(root: Json, mayBeFlat: boolean): Json {
  if (Object.hasOwn(root, 'mcpServers')) {
    if (isObject(root.mcpServers)) return root.mcpServers;
    throw new Error('its "mcpServers" is not an object');
  }
  const odd = Object.keys(root).find((key) => /^mcp[_-]?servers$/i.test(key));
  if (odd) throw new Error(`its ${excerpt(odd)} must be "mcpServers"`);
  if (!mayBeFlat) return {};
  const { servers } = root;
  if (Array.isArray(servers)) throw new Error('its "servers" is not an object');
  if (isObject(servers) && !looksLikeServer(servers)) return servers;
  const all = Object.entries(root);
  const named = all.filter(([, value]) => isObject(value));
  return Object.fromEntries(named);
}

const looksLikeServer = ({ command, url, type }: Json) =>
  [command, url, type].some((value) => typeof value === 'string');

/** The object in a file that a person wrote; undefined if there is no such file. */
export function readJsonFile(file: string): Json | undefined {
  const stat = statIfThere(file);
  if (!stat) return undefined;
  // A FIFO would keep us waiting, and /dev/zero has no end.
  if (!stat.isFile()) throw new Error('it is not a file');
  // The files of /proc say so too, and some of them never end.
  if (stat.size === 0) throw new Error('it is empty');
  if (stat.size > MAX_CONFIG_BYTES) throw new Error(`it has more than ${MAX_CONFIG_BYTES} bytes`);
  const decoder = new TextDecoder('utf-8', { fatal: true }); // drops a byte order mark
  const text = decoder.decode(readFileSync(file));
  const json = withoutComments(text).trimEnd();
  const tooMuch = tooMuchIn(json);
  if (tooMuch) throw new Error(`it has ${tooMuch}`);
  const root = parseAsWritten(json);
  if (!isObject(root)) throw new Error('it is not a JSON object');
  return root;
}

/** People comment such files. Strings are matched too, and put back, so that "http://…" stays
 *  whole. What is not closed matches to the end: else the search would start again at each
 *  character. */
export function withoutComments(text: string): string {
  const parts = /"(?:\\[^]|[^"\\])*(?:"|\\?$)|\/\/.*|\/\*[^]*?(?:\*\/|$)/g;
  const lines = (comment: string) => comment.replace(/[^\n]/g, ''); // lines keep their numbers
  return text.replace(parts, (found) => (found[0] === '"' ? found : lines(found)));
}

/** An editor counts lines and columns. Node counts characters, and not for each kind of mistake. */
function parseAsWritten(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    const [why, at] = textOf(error).split(/ in JSON at position |, (?=")|, (?=\.\.\.)/);
    const place = parseInt(at ?? '', 10);
    const lines = json.slice(0, Number.isNaN(place) ? mistakeIn(json) : place).split('\n');
    throw new Error(`line ${lines.length}, column ${lines.at(-1)!.length + 1}: ${why}`);
  }
}

/** Of a text that is cut off before its mistake, Node says only that it is too short. */
function mistakeIn(json: string): number {
  let good = 0;
  let bad = json.length;
  while (bad - good > 1) {
    const middle = (good + bad) >> 1;
    if (isUnexpected(json.slice(0, middle))) bad = middle;
    else good = middle;
  }
  return good;
}

function isUnexpected(json: string): boolean {
  try {
    JSON.parse(json);
    return false;
  } catch (error) {
    return textOf(error).startsWith('Unexpected token');
  }
}

function statIfThere(file: string) {
  try {
    return statSync(file, { throwIfNoEntry: false });
  } catch (error) {
    // ENOTDIR also means that it is not there.
    if ((error as NodeJS.ErrnoException).code !== 'ENOTDIR') throw error;
    return undefined;
  }
}
