// known-tools.ts: what each server offered when it was last seen, so that it need not be started
// only to be asked. One file for each entry, named by its fingerprint: an entry that has changed is
// another server. A cache: what cannot be read or written costs a start, and nothing else.

import { readdirSync, rmSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import {
  asObject,
  isObject,
  needsApproval,
  show,
  transportType,
  type Json,
  type KnownServer,
  type KnownServers,
  type ServerEntry,
} from '../../mcp.ts';
import { canonicalJson, sha256 } from '../17-the-gate/digest.ts';
import { PrivateFile } from '../17-the-gate/private-file.ts';
import { Masker } from '../17-the-gate/safe-text.ts';
import { fingerprint } from '../17-the-gate/trust.ts';

const DAY_MS = 24 * 60 * 60_000;
const MAX_AGE_MS = 7 * DAY_MS; // a server that is never called may have grown tools since
const MAX_FILES = 200;
const MAX_LENGTH = 8_000_000; // characters of what one server offers
const LOCK_MS = 60; // to start it costs less than a long wait
const NAME = /^known-[0-9a-f]{32}\.json$/;

type KnownToolsFile = { version: number; at: number; known?: KnownServer };

type KnownToolsOptions = {
  home?: string;
  cwd?: string;
  clock?: () => number;
  isNeeded?: (server: string) => boolean; // now, so it must not sleep
};

export class KnownTools implements KnownServers {
  private home: string;
  private cwd: string;
  private clock: () => number;
  private isNeeded: (server: string) => boolean;

  constructor(options: KnownToolsOptions = {}) {
    this.home = options.home ?? homedir();
    this.cwd = options.cwd ?? process.cwd();
    this.clock = options.clock ?? Date.now;
    this.isNeeded = options.isNeeded ?? (() => false);
  }

  find(entry: ServerEntry): KnownServer | undefined {
    const isCheap = transportType(entry.config) === 'in-process';
    if (isCheap || this.isNeeded(entry.name)) return undefined;
    try {
      const { at, known } = this.fileOf(entry).read();
      const age = this.clock() - at;
      return age >= 0 && age < MAX_AGE_MS ? known : undefined;
    } catch {
      return undefined;
    }
  }

  /** What is given now, and what is kept of the rest. */
  keep(entry: ServerEntry, part: Partial<KnownServer>): void {
    const file = this.fileOf(entry);
    try {
      const { at, known: old } = readOrNothing(file);
      const lists = { ...old?.lists, ...part.lists };
      const plain = JSON.stringify({ ...old, ...part, lists });
      if (plain.length > MAX_LENGTH || repeatsSecret(entry, plain)) return removed(file);
      const known = JSON.parse(plain) as KnownServer; // as it will be read
      const isSame = isDeepStrictEqual(old, known) && this.clock() - at < DAY_MS;
      if (isSame || !known.server) return;
      file.change((store) => Object.assign(store, { at: this.clock(), known }), LOCK_MS);
      this.tidy(file.folder);
    } catch {} // the next start will try again
  }

  /** A server of the project, and one that follows it, may offer something else in another. */
  private fileOf(entry: ServerEntry): PrivateFile<KnownToolsFile> {
    const project = needsApproval(entry, this.cwd) ? this.cwd : '';
    const key = sha256(canonicalJson([entry.name, fingerprint(entry), project]));
    const name = `known-${key.replace(/^sha256:/, '').slice(0, 32)}.json`;
    return new PrivateFile<KnownToolsFile>(this.home, name, { version: 1, at: 0 }, isSound);
  }

  private tidy(folder: string) {
    const names = readdirSync(folder).filter((name) => NAME.test(name));
    if (names.length <= MAX_FILES) return;
    const files = names.map((name) => join(folder, name));
    const byAge = files.map((file) => ({ file, at: statSync(file).mtimeMs }));
    byAge.sort((one, two) => two.at - one.at);
    for (const { file } of byAge.slice(MAX_FILES)) rmSync(file, { force: true });
  }
}

/** A server may put our token into a description. It must not get into a file that way. */
function repeatsSecret({ config, authority }: ServerEntry, text: string) {
  const masker = new Masker();
  masker.learn(asObject(config.env), authority);
  for (const value of Object.values(asObject(config.headers))) {
    masker.learn({ TOKEN: show(value).replace(/^\w+ /, '') }, authority); // Bearer …
  }
  masker.learnAddress(config.url, authority);
  return masker.holds(text);
}

function removed({ file }: PrivateFile<KnownToolsFile>) {
  rmSync(file, { force: true });
}

/** A damaged file is no loss: it is written again. */
function readOrNothing(file: PrivateFile<KnownToolsFile>) {
  try {
    return file.read();
  } catch {
    removed(file);
    return { version: 1, at: 0 };
  }
}

/** As the client checks it when it comes over the wire. */
function isSound({ at, known }: Json) {
  if (known === undefined) return at === 0;
  if (!Number.isFinite(at) || !isObject(known) || !isObject(known.server)) return false;
  const { protocolVersion } = known.server;
  const isTool = (tool: unknown) =>
    isObject(tool) &&
    typeof tool.name === 'string' &&
    typeof (tool.description ?? '') === 'string' &&
    isObject(tool.inputSchema);
  const lists = Object.values(asObject(known.lists));
  const areLists = lists.every((list) => Array.isArray(list) && list.every(isObject));
  const isNamed = typeof protocolVersion === 'string';
  return isNamed && Array.isArray(known.tools) && known.tools.every(isTool) && areLists;
}
