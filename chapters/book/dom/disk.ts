// disk.ts: files in memory: those of the program, and what it writes. As much of node:fs as programs
// need that come here: no links, no rights, no watching.

import { Buffer } from 'node:buffer';
import { relative, resolve } from 'node:path';

export const NODE = '/usr/bin/node';
export const HOME = '/home/you';

export class Disk {
  private files = new Map<string, string>([[NODE, '']]);
  private copies = new Map<string, string>(); // from where
  private folders = new Set(['/', '/tmp', '/usr', '/usr/bin', '/home', HOME]);
  private where: () => string;

  constructor(names: string[], where: () => string) {
    this.where = where;
    this.folders.add(where());
    for (const name of names) this.files.set(this.path(name), '');
  }

  path(name: unknown): string {
    return resolve(this.where(), String(name).replace(/^file:\/\//, ''));
  }

  /** Of what a file is a copy, by its path from the top. */
  originOf(name: string): string | undefined {
    const from = this.copies.get(this.path(name));
    return from && relative(this.where(), from);
  }

  isFolder(name: unknown): boolean {
    const at = this.path(name);
    return this.folders.has(at) || [...this.files.keys()].some((file) => file.startsWith(`${at}/`));
  }

  /** What `import … from 'node:fs'` gives. */
  module() {
    const stat = (name: unknown, { throwIfNoEntry = true } = {}) => {
      const isFile = this.files.has(this.path(name));
      if (isFile || this.isFolder(name)) return this.statOf(name, isFile);
      if (throwIfNoEntry) throw missing(name);
      return undefined;
    };
    const sync = {
      existsSync: (name: unknown) => stat(name, { throwIfNoEntry: false }) !== undefined,
      statSync: stat,
      lstatSync: stat,
      accessSync: (name: unknown) => void stat(name),
      realpathSync: (name: unknown) => {
        stat(name);
        return this.path(name);
      },
      readlinkSync: (name: unknown) => {
        stat(name);
        throw Object.assign(new Error(`EINVAL: not a link, '${name}'`), { code: 'EINVAL' });
      },
      readFileSync: (name: unknown, how?: string | { encoding?: string }) => {
        const text = this.files.get(this.path(name));
        if (text === undefined) throw missing(name);
        const encoding = typeof how === 'string' ? how : how?.encoding;
        return encoding ? text : Buffer.from(text);
      },
      writeFileSync: (name: unknown, text: unknown) =>
        void this.files.set(this.path(name), `${text}`),
      appendFileSync: (name: unknown, text: unknown) => {
        const before = this.files.get(this.path(name)) ?? '';
        this.files.set(this.path(name), `${before}${text}`);
      },
      cpSync: (from: unknown, to: unknown, options?: { filter?: (path: string) => boolean }) =>
        this.copy(this.path(from), this.path(to), options?.filter),
      mkdirSync: (name: unknown) => void this.folders.add(this.path(name)),
      mkdtempSync: (start: string) => {
        const name = `${start}${crypto.randomUUID().slice(0, 6)}`;
        this.folders.add(this.path(name));
        return name;
      },
      rmSync: (name: unknown) => this.remove(this.path(name)),
      readdirSync: (name: unknown) => this.namesIn(name),
    };
    const calls: Record<string, (...given: any[]) => unknown> = sync;
    const later = Object.entries(calls).map(([name, call]) => [
      name.replace(/Sync$/, ''),
      async (...given: unknown[]) => call(...given),
    ]);
    const constants = { F_OK: 0, X_OK: 1, W_OK: 2, R_OK: 4 };
    return { ...sync, constants, promises: Object.fromEntries(later) };
  }

  private statOf(name: unknown, isFile: boolean) {
    return {
      isFile: () => isFile,
      isDirectory: () => !isFile,
      isSymbolicLink: () => false,
      size: this.files.get(this.path(name))?.length ?? 0,
      mode: 0o755,
      uid: 1000,
    };
  }

  private copy(from: string, to: string, isWanted: (path: string) => boolean = () => true): void {
    for (const [file, text] of [...this.files]) {
      if ((file !== from && !file.startsWith(`${from}/`)) || !isWanted(file)) continue;
      const target = to + file.slice(from.length);
      this.files.set(target, text);
      this.copies.set(target, file);
    }
  }

  private remove(at: string): void {
    for (const each of [...this.files.keys(), ...this.folders])
      if (each === at || each.startsWith(`${at}/`)) {
        this.files.delete(each);
        this.folders.delete(each);
      }
  }

  private namesIn(name: unknown): string[] {
    if (!this.isFolder(name)) throw missing(name);
    const start = `${this.path(name)}/`;
    const below = [...this.files.keys(), ...this.folders].filter((each) => each.startsWith(start));
    return [...new Set(below.map((each) => each.slice(start.length).split('/')[0]!))];
  }
}

const missing = (name: unknown) =>
  Object.assign(new Error(`ENOENT: no such file or directory, '${name}'`), {
    code: 'ENOENT',
    path: `${name}`,
  });
