// What the user has agreed to: which servers a project may start, which calls need no question any more, and what
// is switched off. Kept in the user's home, where no project can write, and bound to content, never to a name alone.

import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { isObject, type Approval, type Json, type ServerEntry } from '../../mcp.ts';
import { hasTexts, PrivateFile } from './private-file.ts';
import { changes, quoted, spelledOut } from './safe-text.ts';

/** Puts a question to a person and gives back what they typed. Nothing: they left, or stopped. */
export type Asker = (lines: string[], choices: string, signal?: AbortSignal) => Promise<string | undefined>;

/** A call that is allowed for good. An MCP tool by its server's fingerprint and its own definition. */
export type Grant =
  | { kind: 'mcp'; server: string; fingerprint: string; tool: string; definition: string; shown: string }
  | { kind: 'shell'; command: string }
  | { kind: 'write'; path: string };
type McpGrant = Extract<Grant, { kind: 'mcp' }>;
type Approved = { project: string; name: string; fingerprint: string; verdict: 'allow' | 'never'; config: Json };
type Store = {
  version: 1;
  servers: Approved[];
  grants: ({ project: string } & Grant)[];
  disabled: { project: string; server: string; tool?: string }[];
};

const EMPTY: Store = { version: 1, servers: [], grants: [], disabled: [] };

/** How to start us, for somebody who copies a hint: from a clone there is no command of our name. */
export const PROGRAM = process.env.npm_lifecycle_event === 'start' ? 'npm start --' : 'mcp-by-hand';

/** The same text for the same content, whatever the order of its keys. */
export function canonical(value: unknown, space?: number): string {
  const sorted = (_: string, inner: unknown) =>
    isObject(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner;
  return JSON.stringify(value, sorted, space);
}

export const sha256 = (text: string) => `sha256:${createHash('sha256').update(text).digest('hex')}`;

/** Of an entry as it stands in its file: a secret behind ${VAR} is no part of it, and may change. */
export function fingerprint({ config }: Pick<ServerEntry, 'config'>): string {
  const { disabled, ...rest } = config;
  return sha256(canonical(rest));
}

export type TrustOptions = {
  home?: string;
  cwd?: string;
  warn?: (text: string) => void;
  ask?: Asker;
  allowServers?: string[]; // "name=sha256:…", for this run
};

export class Trust {
  readonly folder: string;
  readonly project: string;
  ask?: Asker; // absent where nobody can be asked
  /** The servers that came up in this run, as they were shown. */
  readonly seen = new Map<string, { scope: ServerEntry['scope']; fingerprint: string }>();
  private store: PrivateFile<Store>;
  private warn: (text: string) => void;
  private allowed: Set<string>;
  private session: Grant[] = []; // what could not be written down counts for this run
  private warned = false;

  constructor({ home = homedir(), cwd = process.cwd(), warn = () => {}, ask, allowServers = [] }: TrustOptions = {}) {
    this.store = new PrivateFile(home, 'trust.json', EMPTY, isSound);
    this.folder = this.store.folder;
    this.project = realpathSync(cwd);
    this.warn = warn;
    this.ask = ask;
    this.allowed = new Set(allowServers);
  }

  // ── Servers ──

  /** For the manager's option `approve`. */
  async approve(entry: ServerEntry): Promise<Approval> {
    const { name, scope } = entry;
    const print = fingerprint(entry);
    this.seen.set(name, { scope, fingerprint: print });
    if (entry.config.disabled === true || this.isDisabled(name)) return 'disabled';
    if (scope === 'user' || this.allowed.has(`${name}=${print}`)) return true;
    const known = this.list().servers.find((each) => each.name === name);
    if (known?.fingerprint === print) return known.verdict === 'allow' || 'disabled';
    if (!this.ask) {
      // Somebody may copy this into a shell, and a project chose the name.
      const how = /^\w[\w-]*$/.test(name)
        ? `To approve it: ${PROGRAM} trust allow ${name}; for this run: --allow-server ${name}=${print}`
        : 'To be asked about it, start mcp-by-hand in a terminal.';
      const why = `you have not approved it${known ? ' as it is now' : ''}`;
      this.warn(`MCP server ${quoted(name)} of ${quoted(entry.file)} is not started: ${why}. ${how}`);
      return false;
    }
    const choices = 'Start it? [y]es, this exact entry / [n]ot now / ne[v]er';
    for (let lines = describe(entry, known); ; lines = ['Please answer y, n or v.']) {
      const answer = (await this.ask(lines, choices))?.trim() ?? '';
      if (/^(no?)?$/i.test(answer)) return false;
      if (/^y(es)?$/i.test(answer)) return this.decide(entry, 'allow');
      if (/^(v|never)$/i.test(answer)) return this.decide(entry, 'never');
    }
  }

  allow(entry: ServerEntry): void { this.decide(entry, 'allow'); }

  private decide(entry: ServerEntry, verdict: Approved['verdict']): Approval {
    const { name, config } = entry;
    const isKept = this.change((store) => {
      store.servers = store.servers.filter((each) => each.project !== this.project || each.name !== name);
      store.servers.push({ project: this.project, name, fingerprint: fingerprint(entry), verdict, config });
    });
    if (verdict === 'allow' && !isKept) this.allowed.add(`${name}=${fingerprint(entry)}`);
    return verdict === 'allow' || 'disabled';
  }

  // ── Calls ──

  isGranted(wanted: Grant): boolean {
    const isSame = (grant: Grant) => {
      if (wanted.kind === 'shell') return grant.kind === 'shell' && grant.command === wanted.command;
      if (wanted.kind === 'write') return grant.kind === 'write' && grant.path === wanted.path;
      return isSameTool(grant, wanted) && (grant as McpGrant).definition === wanted.definition;
    };
    return this.grants().some(isSame);
  }

  /** What a tool said of itself when it was allowed, if it says something else now. */
  drift(wanted: Grant): string | undefined {
    const same = this.grants().filter((grant) => isSameTool(grant, wanted)) as McpGrant[];
    const isUnchanged = wanted.kind === 'mcp' && same.some(({ definition }) => definition === wanted.definition);
    return isUnchanged ? undefined : same.at(-1)?.shown;
  }

  grant(grant: Grant): void {
    const isKept = this.change((store) => {
      store.grants = store.grants.filter((each) => each.project !== this.project || !isSameTool(each, grant));
      store.grants.push({ project: this.project, ...grant });
    });
    if (!isKept) this.session.push(grant);
  }

  private grants(): Grant[] { return [...this.list().grants, ...this.session]; }

  // ── Switched off ──

  isDisabled(server: string, tool?: string): boolean {
    return this.list().disabled.some((each) => each.server === server && each.tool === tool);
  }

  setDisabled(isDisabled: boolean, server: string, tool?: string): void {
    this.change((store) => {
      const isMeant = (each: Store['disabled'][number]) =>
        each.project === this.project && each.server === server && each.tool === tool;
      store.disabled = store.disabled.filter((each) => !isMeant(each));
      if (isDisabled) store.disabled.push({ project: this.project, server, ...(tool !== undefined && { tool }) });
      const isRefused = ({ project, name, verdict }: Approved) =>
        project === this.project && name === server && verdict === 'never';
      if (!isDisabled) store.servers = store.servers.filter((each) => !isRefused(each)); // it is asked about anew
    });
  }

  // ── All of it ──

  /** What was agreed to in this project. */
  list(): Omit<Store, 'version'> {
    const { servers, grants, disabled } = this.read();
    const here = <T extends { project: string }>(rows: T[]) => rows.filter(({ project }) => project === this.project);
    return { servers: here(servers), grants: here(grants), disabled: here(disabled) };
  }

  /** Takes back what was decided on a server, on one of its tools (server/tool), on a command or on a file; without
   *  a name everything in this project. Tells how many decisions that were. */
  revoke(what?: string): number {
    let count = 0;
    const keep = (project: string, ...names: string[]) => {
      const isMeant = project === this.project && (what === undefined || names.includes(what));
      if (isMeant) count++;
      return !isMeant;
    };
    const namesOf = (grant: Grant) => {
      if (grant.kind === 'mcp') return [grant.server, `${grant.server}/${grant.tool}`];
      return [grant.kind === 'shell' ? grant.command : grant.path];
    };
    this.change((store) => {
      store.servers = store.servers.filter(({ project, name }) => keep(project, name));
      store.grants = store.grants.filter((each) => keep(each.project, ...namesOf(each)));
      store.disabled = store.disabled.filter(({ project, server, tool }) => keep(project, server, `${server}/${tool}`));
    });
    return count;
  }

  // ── The file ──

  /** What cannot be read grants nothing. */
  private read(): Store {
    try {
      return this.store.read();
    } catch (error) {
      const why = (error as Error).message;
      if (!this.warned) this.warn(`${this.store.file} is not used, so nothing is approved: ${why}`);
      this.warned = true;
      return structuredClone(EMPTY);
    }
  }

  /** Tells whether it was written down. */
  private change(edit: (store: Store) => void): boolean {
    try {
      this.store.change(edit);
      return true;
    } catch (error) {
      this.warn(`not written down, so it counts for this run only: ${(error as Error).message} (${this.store.file})`);
      return false;
    }
  }
}

const isSameTool = (a: Grant, b: Grant) =>
  a.kind === 'mcp' && b.kind === 'mcp' && a.server === b.server && a.fingerprint === b.fingerprint && a.tool === b.tool;

const TEXTS_OF = { mcp: ['server', 'fingerprint', 'tool', 'definition', 'shown'], shell: ['command'], write: ['path'] };

function isSound(value: Json): boolean {
  const isList = (rows: unknown, ...names: string[]) =>
    Array.isArray(rows) && rows.every((row) => hasTexts(row, ...names));
  return (
    isList(value.servers, 'project', 'name', 'fingerprint', 'verdict') &&
    (value.servers as Json[]).every(({ config }) => isObject(config)) &&
    isList(value.grants, 'project', 'kind') &&
    (value.grants as Grant[]).every((grant) => hasTexts(grant, ...(TEXTS_OF[grant.kind] ?? []))) &&
    isList(value.disabled, 'project', 'server')
  );
}

// ─── The question about a server ──────────────────────────────────────────────────────────────────────────────

const LOADER =
  /^(PATH|NODE_(OPTIONS|PATH)|(LD|DYLD)_\w+|(BASH_)?ENV|PYTHON(PATH|STARTUP|HOME)|(RUBY|PERL5)(OPT|LIB)|JAVA_TOOL_OPTIONS)$/i;
const LAUNCHER = /^(npx|bunx|uvx|pnpx)(\.cmd)?$/;
const SHELL = /^(ba|z|da|fi|k)?sh$|^(cmd|powershell|pwsh)(\.exe)?$/;

function describe(entry: ServerEntry, known?: Approved): string[] {
  const { name, file, config, shadows } = entry;
  const differing = known ? changes(pretty(known.config), pretty(config)) : [];
  const isRemote = (config.type ?? 'stdio') !== 'stdio';
  const wish = isRemote
    ? `wants to connect to the MCP server ${quoted(name)}. It sees what you ask it, and its answers reach the model.`
    : `wants to start the MCP server ${quoted(name)}. It runs as you, and can do what you can do.`;
  return [
    `${quoted(file)} ${wish}`,
    ...(shadows ? [`It takes the place of your own server of that name, in ${quoted(shadows)}.`] : []),
    ...launchLines(config),
    ...cautions(config).map((caution) => `  ! ${caution}`),
    ...(known ? ['It has changed since you last decided on it:'] : []),
    ...differing.map((line) => `  ${line}`),
    `  fingerprint: ${fingerprint(entry)}`,
  ];
}

const pretty = (config: Json) => canonical(config, 2);

/** The command and each argument on a line of its own: nothing can hide at the end of a long line. */
export function launchLines(config: Json): string[] {
  const { command, args, ...rest } = config;
  const list = [args ?? []].flat().map((arg, n) => `  argument ${n + 1}: ${quoted(String(arg))}`);
  const nested = Object.entries(rest).flatMap(([key, value]) =>
    isObject(value) ? [`  ${key}:`, ...spelledOut(value, '    ')] : spelledOut({ [key]: value }),
  );
  return [...(command === undefined ? [] : [`  command: ${quoted(String(command))}`]), ...list, ...nested];
}

function cautions(config: Json): string[] {
  const { command = '', args, env } = config;
  const words = [command, ...(Array.isArray(args) ? args : [])].map(String);
  const programs = words.map((word) => word.split(/[/\\]/).at(-1)!.toLowerCase()); // `env sh -c …` starts a shell too
  const read = new Set([...JSON.stringify(config).matchAll(/\$\{(\w+)/g)].map(([, name]) => name!));
  const loaders = Object.keys(isObject(env) ? env : {}).filter((key) => LOADER.test(key));
  const hasVersion = words.slice(1).some((word) => /.[@=]=?v?\d/.test(word));
  const isUnpinned = LAUNCHER.test(programs[0]!) && !hasVersion;
  const { assertionFile, privateKeyFile, issuer = 'whoever it names' } = isObject(config.oauth) ? config.oauth : {};
  return [
    ...(assertionFile ? [`it sends what is in ${quoted(`${assertionFile}`)} to ${quoted(`${issuer}`)}`] : []),
    ...(privateKeyFile ? [`it signs with the key in ${quoted(`${privateKeyFile}`)} for ${quoted(`${issuer}`)}`] : []),
    ...(read.size > 0 ? [`it reads your variables ${[...read].join(', ')}`] : []),
    ...(loaders.length > 0 ? [`it sets ${loaders.map(quoted).join(', ')}, which decides what code is loaded`] : []),
    ...(programs.includes('sudo') ? ['it asks for the rights of another user (sudo)'] : []),
    ...(programs.some((word) => SHELL.test(word)) ? ['it starts a shell: what that runs is in the arguments'] : []),
    ...(isUnpinned ? ['no version is named: what runs is whatever is published under that name'] : []),
  ];
}
