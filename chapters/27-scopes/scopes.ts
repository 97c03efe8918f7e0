// scopes.ts: every place that a server can come from, in order; which of two entries counts, and
// why. Nothing is started here, and nothing is hidden: what does not count is listed with the reason.

import { realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import {
  asObject,
  isObject,
  isSameFolder,
  serversIn,
  textOf,
  transportType,
  type Json,
  type ServerEntry,
} from '../../mcp.ts';
import { printable, quoted } from '../17-the-gate/safe-text.ts';
import type { Serve } from '../25-other-pipes/in-process.ts';
import type {
  ConfigPlace,
  ReportProblem,
  ServerEntries,
  Sources,
  WantedServers,
} from '../19-the-terminal/host.ts';
import {
  believedOwners,
  doubtAbout,
  doubtAboutManaged,
  Files,
  foldersFrom,
  leadsOutOf,
  type Owners,
} from './file-owners.ts';
import { bundles } from './packages/bundle.ts';
import { pluginSources, type Plugin, type Unpack } from './plugins.ts';
import { blockedAll, Policy, type PolicyFile } from './policy.ts';
import { isSameSignature, signatureOf, type Signature } from './signature.ts';
import { fetchLists, isConfigured, type Fetched } from './connectors.ts';
import { watchFiles } from './watched-files.ts';
import { editorsFor, editorEntry, IDE, type RunningEditor } from './ide.ts';

/** What one place says. */
export type ConfigSource = Pick<ServerEntry, 'scope' | 'file' | 'authority'> & {
  servers: [name: string, config: Json][];
};
/** An entry that does not count, because another has its name. */
type Hidden = ServerEntry & { by: string };

export type ScopesOptions = {
  home?: string;
  cwd?: string;
  managed?: { folder: string; owner: number };
  env?: NodeJS.ProcessEnv;
  owners?: Owners; // whose files are the user's
  reserved?: string[]; // names of servers that are part of the program
  unpack?: Unpack;
  sdk?: Record<string, Serve>; // servers that an embedding program hands in
  more?: () => ConfigSource[]; // what was fetched; by default, by `prepare`
};

/** For programs only. In a file they would let a project choose whom we take for an editor. */
const NOT_IN_FILES = ['sdk', 'sse-ide', 'ws-ide'];
const COPIES = ['plugin', 'connector']; // of these, one that starts the same as another is left out

const LOCAL = 'settings.local.json';
const settingsIn = (folder: string, name = 'settings.json') => join(folder, '.claude', name);

export function managedFolder(platform = process.platform): string {
  if (platform === 'darwin') return '/Library/Application Support/ClaudeCode';
  if (platform === 'win32') return 'C:\\Program Files\\ClaudeCode';
  return '/etc/claude-code';
}

export class Scopes implements Sources {
  readonly home: string;
  readonly cwd: string;
  readonly options: ScopesOptions;
  readonly owners: Owners;
  private env: NodeJS.ProcessEnv;
  private managed: { folder: string; owner: number };
  private wanted: WantedServers = {};
  private loaded?: ServerEntries; // what the program goes by
  private fetched: Fetched = { sources: [], problems: [] };
  private taken: string[] = [];
  editor?: RunningEditor; // that we are to connect to

  constructor(options: ScopesOptions = {}) {
    const { home = homedir(), cwd = process.cwd(), owners = believedOwners() } = options;
    this.options = options;
    this.home = home;
    this.cwd = realpathSync(cwd);
    this.owners = owners;
    this.env = { ...(options.env ?? process.env) }; // as it is at the start
    this.managed = options.managed ?? { folder: managedFolder(), owner: 0 };
  }

  /** A part of the program has this name: no entry may. */
  reserve(name: string): void {
    this.taken.push(name);
  }

  /** Fetches the lists that are elsewhere, if there are any. */
  prepare(): Promise<void> | undefined {
    const mine = this.mySettings();
    const isManaged = !doubtAboutManaged(this.managedFile, this.managed.owner);
    const { root: managed = {} } = isManaged ? new Files().read(this.managedFile) : {};
    if (!isConfigured(mine, managed)) return undefined;
    return fetchLists(mine, managed, this.managedFile).then(
      (fetched) => void (this.fetched = fetched),
    );
  }

  load(wanted: WantedServers, report: ReportProblem): ServerEntries {
    this.wanted = wanted;
    for (const problem of this.fetched.problems) report(problem);
    if (wanted.isIde && !this.editor) this.editor = this.editors()[0];
    if (wanted.isIde && !this.editor)
      report('--ide: no editor has this folder open (we looked in ~/.claude/ide)');
    this.loaded = this.read(wanted, report).entries;
    return structuredClone(this.loaded);
  }

  /** Tells when the files say something else than what was loaded. */
  watch(tell: (text: string) => void, intervalMs?: number): () => void {
    const read = () => this.read(this.wanted);
    return watchFiles({
      files: () => [...read().files.seen.keys()],
      read: () => read().entries,
      loaded: () => this.loaded ?? read().entries,
      tell,
      intervalMs,
    });
  }

  /** What the user's own settings say: nobody else may decide whom we tell a secret. */
  userSetting(...keys: string[]): unknown {
    return keys.reduce((value: unknown, key) => asObject(value)[key], this.mySettings());
  }

  private mySettings() {
    const isMine = isAbsolute(this.home) && !doubtAbout(this.settingsFile, this.owners);
    return asObject(isMine && new Files().read(this.settingsFile).root);
  }

  /** The editors that have this folder open. */
  editors(): RunningEditor[] {
    const { home, cwd, owners } = this;
    return isAbsolute(home) ? editorsFor({ home, cwd, owners }) : [];
  }

  /** All that the places say, and what comes of it. */
  read(wanted: WantedServers = {}, report: ReportProblem = () => {}) {
    const files = new Files();
    const managed = this.managedSource(files, report);
    const fetched = this.options.more?.() ?? this.fetched.sources;
    const others = [
      ...fetched.filter(({ scope }) => scope !== 'managed'),
      ...(wanted.isStrict ? [] : this.fileSources(files, report)),
      {
        scope: 'dynamic',
        file: '--mcp-config',
        authority: 'user' as const,
        servers: wanted.dynamic ?? [],
      },
    ];
    const isExclusive = managed !== undefined;
    const own = [managed ?? [], fetched.filter(({ scope }) => scope === 'managed')].flat();
    const all = [...others, ...(isExclusive ? own : [])];
    const { entries, hidden } = merge(all.map((source) => withoutPlugins(source, report)));
    for (const entry of entries.values()) {
      this.remark(entry, report);
      this.settleHelper(entry);
    }
    this.refuseNames(entries, report);
    if (this.editor) entries.set(IDE, editorEntry(this.editor));
    if (isExclusive) this.excludeOthers(entries, own);
    this.leaveOutCopies(entries);
    this.applyPolicy(entries, files, report);
    this.handIn(entries);
    // The sources from the least to the most important; and whether the administrator's alone count.
    return { entries, hidden, files, sources: all, isManaged: isExclusive };
  }

  /** A program that embeds us hands in its own servers. No file can do that, and none can forbid it. */
  private handIn(entries: ServerEntries) {
    for (const name of Object.keys(this.options.sdk ?? {})) {
      const config = { type: 'sdk', name };
      entries.set(name, {
        name,
        config,
        file: 'this program',
        scope: 'sdk',
        authority: 'user',
      });
    }
  }

  /** Names that no file can take. */
  private get reserved(): string[] {
    const { sdk = {}, reserved = [] } = this.options;
    return [IDE, ...Object.keys(sdk), ...reserved, ...this.taken];
  }

  // ── Places ──

  private get settingsFile(): string {
    return settingsIn(this.home);
  }

  private get stateFile(): string {
    return join(this.home, '.claude.json');
  }

  private get managedFile(): string {
    return join(this.managed.folder, 'managed-mcp.json');
  }

  /** The administrator's file. If there is one, it counts alone; if it is broken, nothing counts. */
  private managedSource(files: Files, report: ReportProblem): ConfigSource | undefined {
    const file = this.managedFile;
    const doubt = doubtAboutManaged(file, this.managed.owner);
    if (doubt) files.refuse(file, doubt);
    const { root, problem } = files.read(file);
    if (!root && !problem) return undefined;
    const source: ConfigSource = { scope: 'managed', file, authority: 'user', servers: [] };
    try {
      if (problem) throw new Error(problem);
      return {
        ...source,
        servers: Object.entries(serversIn(root!, false)) as [string, Json][],
      };
    } catch (error) {
      files.refuse(file, textOf(error));
      report(`${file} cannot be used, so no MCP server starts: ${textOf(error)}`);
      return source;
    }
  }

  /** From the least to the most important. */
  private fileSources(files: Files, report: ReportProblem) {
    const { home, cwd } = this;
    const isHome = isAbsolute(home); // else it might be the project's
    const { settingsFile: settings, stateFile: state } = this;
    const isAtHome = isHome && isSameFolder(home, cwd);
    const look = (
      file: string,
      scope: string,
      authority: ConfigPlace['authority'],
      isFlat = false,
    ) => this.sourceIn(files, { file, scope, authority }, isFlat, report);
    const folders = foldersFrom(cwd, this.owners);
    return [
      ...(isHome ? this.plugins(files, report) : []),
      ...(isHome ? [look(settings, 'user', 'user'), look(state, 'user', 'user')] : []),
      ...(isAtHome ? [] : [look(settingsIn(cwd), 'project', 'project')]),
      ...folders.map((folder) => look(join(folder, '.mcp.json'), 'project', 'project', true)),
      look(settingsIn(cwd, LOCAL), 'local', 'project'),
      ...(isHome ? [this.privateSource(files, state, folders[0]!)] : []),
    ];
  }

  private plugins(files: Files, report: ReportProblem) {
    const { home, cwd } = this;
    const { unpack = this.usualUnpack() } = this.options;
    const names = [settingsIn(home), settingsIn(cwd), settingsIn(cwd, LOCAL)];
    const settings = names.map((file) => files.read(file).root ?? {});
    return pluginSources({ home, files, settings, report, unpack });
  }

  /** What a bundle wants to know is in `pluginConfigs` of the user's settings, as in Claude Code. */
  private usualUnpack() {
    const config = ({ id }: Plugin, server: string) => {
      const { pluginConfigs } = asObject(new Files().read(this.settingsFile).root);
      return asObject(asObject(asObject(asObject(pluginConfigs)[id]).mcpServers)[server]);
    };
    return bundles({ home: this.home, config });
  }

  private sourceIn(
    files: Files,
    place: Omit<ConfigSource, 'servers'>,
    mayBeFlat: boolean,
    report: ReportProblem,
  ): ConfigSource {
    const { file, authority } = place;
    if (authority === 'project' && leadsOutOf(file, foldersFrom(this.cwd, this.owners)[0]!))
      files.refuse(file, 'it is a link that leads out of the project');
    const { root = {}, problem } = files.read(file);
    try {
      if (problem) throw new Error(problem);
      const servers = Object.entries(serversIn(root, mayBeFlat)) as [string, Json][];
      return { ...place, authority: this.believed(place, servers.length, report), servers };
    } catch (error) {
      report(`${file} is ignored: ${textOf(error)}`);
      files.refuse(file, textOf(error));
      return { ...place, servers: [] };
    }
  }

  /** What others may have written is not the user's word, wherever it lies. */
  private believed(
    { file, authority }: Omit<ConfigSource, 'servers'>,
    count: number,
    report: ReportProblem,
  ) {
    if (authority !== 'user') return authority;
    const doubt = doubtAbout(file, this.owners);
    if (!doubt) return authority;
    if (count > 0)
      report(`the servers in ${file} need your approval: ${doubt}; chmod go-w would mend that`);
    return 'project';
  }

  /** The user's own, for this folder alone: `projects` in ~/.claude.json, by the folder's path. */
  private privateSource(files: Files, file: string, repository: string): ConfigSource {
    const projects = asObject(files.read(file).root?.projects);
    const key = projectKey(projects, this.cwd) ?? projectKey(projects, repository);
    const { mcpServers } = asObject(key === undefined ? {} : projects[key]);
    const servers = Object.entries(asObject(mcpServers)) as [string, Json][];
    const authority = this.believed({ file, scope: 'local', authority: 'user' }, 0, () => {});
    return { scope: 'local', file, authority, servers };
  }

  // ── What counts ──

  /** Not trimmed: that would start something else than what is written. */
  private remark({ name, file, config }: ServerEntry, report: ReportProblem) {
    const odd = ['command', 'url', 'cwd', 'type'].filter((key) => {
      const value = isObject(config) ? config[key] : undefined;
      return typeof value === 'string' && value.trim() !== value;
    });
    if (odd.length > 0)
      report(
        `MCP server ${quoted(name)} in ${file}: there is white space around ${odd.join(', ')}`,
      );
  }

  /** The user's own helper starts in their home: in a clone, "./headers.sh" would be the clone's. */
  private settleHelper(entry: ServerEntry) {
    const { config, authority } = entry;
    if (!isObject(config) || config.headersHelper === undefined || config.cwd !== undefined) return;
    if (authority === 'user') entry.config = { ...config, cwd: this.home };
  }

  private excludeOthers(entries: ServerEntries, own: ConfigSource[]) {
    const files = own.map(({ file }) => file);
    for (const entry of entries.values())
      if (!files.includes(entry.file))
        entry.blocked = `only the servers in ${this.managedFile} may run on this machine`;
  }

  private refuseNames(entries: ServerEntries, report: ReportProblem) {
    const { reserved } = this;
    for (const entry of entries.values()) {
      const { name, file, config } = entry;
      const type = isObject(config) ? transportType(config) : '';
      const isReserved = reserved.includes(name);
      if (NOT_IN_FILES.includes(type))
        entry.blocked ??= `"type": "${type}" is for programs, and not for files`;
      if (!isReserved) continue;
      entry.blocked ??= `a built-in server is called ${name}; rename it`;
      report(`MCP server ${quoted(name)} in ${file} is not started: ${entry.blocked}`);
    }
  }

  /** Of plugins and connectors, what starts the same as another entry. A server that is switched off
   *  or blocked stands in nobody's way. */
  private leaveOutCopies(entries: ServerEntries) {
    const known: { signature: Signature; entry: ServerEntry }[] = [];
    const isCopy = ({ scope }: ServerEntry) => COPIES.includes(scope);
    const all = [...entries.values()];
    const ordered = [
      ...all.filter((entry) => !isCopy(entry)),
      ...COPIES.flatMap((scope) => all.filter((entry) => entry.scope === scope)),
    ];
    for (const entry of ordered) {
      const signature = entry.blocked ? undefined : signatureOf(entry, this.env);
      if (!signature || asObject(entry.config).disabled === true) continue;
      const first = known.find((each) => isSameSignature(each.signature, signature))?.entry;
      if (!first || !isCopy(entry)) known.push({ signature, entry });
      else entry.blocked = `it is the same as ${quoted(first.name)} in ${first.file}`;
    }
  }

  private applyPolicy(entries: ServerEntries, files: Files, report: ReportProblem) {
    const { lists, broken } = this.policyFiles(files);
    const policy = new Policy(lists, this.env);
    for (const problem of policy.problems) report(problem);
    const off = this.switchedOff(files);
    for (const entry of entries.values()) {
      entry.blocked ??= broken ?? policy.verdict(entry);
      entry.blocked ??= off(entry);
      if (entry.blocked === undefined) delete entry.blocked;
    }
  }

  private policyFiles(files: Files): { lists: PolicyFile[]; broken?: string } {
    const { home, cwd } = this;
    const managed = join(this.managed.folder, 'managed-settings.json');
    const doubt = doubtAboutManaged(managed, this.managed.owner);
    if (doubt) files.refuse(managed, doubt);
    const all: [file: string, whose: PolicyFile['whose']][] = [
      [managed, 'managed'],
      [this.managedFile, 'managed'],
      ...(isAbsolute(home) ? [[this.settingsFile, 'user'] as [string, 'user']] : []),
      [settingsIn(cwd), 'project'],
      [settingsIn(cwd, LOCAL), 'project'],
    ];
    const first = all
      .filter(([, whose]) => whose !== 'project')
      .find(([file]) => files.read(file).problem);
    const broken = first && blockedAll(first[0], files.read(first[0]).problem!);
    const lists = all.map(([file, whose]) => ({
      file,
      whose,
      root: files.read(file).root ?? {},
    }));
    const unique = lists.filter(
      ({ file }, n) => lists.findIndex((each) => each.file === file) === n,
    );
    return { lists: unique, broken };
  }

  /** What Claude Code's menus have switched off for this folder. What they switched on means nothing
   *  here: an approval is bound to what was shown. */
  private switchedOff(files: Files): (entry: ServerEntry) => string | undefined {
    const file = this.stateFile;
    const projects = asObject(isAbsolute(this.home) ? files.read(file).root?.projects : {});
    const key = projectKey(projects, this.cwd);
    const here = asObject(key === undefined ? {} : projects[key]);
    const has = (list: unknown, name: string) => Array.isArray(list) && list.includes(name);
    return ({ name, scope }) => {
      const isOff = has(here.disabledMcpServers, name);
      const isRejected = scope === 'project' && has(here.disabledMcpjsonServers, name);
      if (isOff) return `"disabledMcpServers" in ${file} has it`;
      return isRejected ? `"disabledMcpjsonServers" in ${file} has it` : undefined;
    };
  }

  // ── For commands ──

  places(): ConfigPlace[] {
    const { home, cwd, stateFile: state } = this;
    const projects = asObject(new Files().read(state).root?.projects);
    const key = projectKey(projects, cwd) ?? cwd;
    const at = (
      scope: string,
      authority: ConfigPlace['authority'],
      file: string,
      ...keys: string[]
    ) => ({
      scope,
      authority,
      file,
      keys: [...keys, 'mcpServers'],
    });
    const isHome = isAbsolute(home); // else it might be the project's
    return [
      ...(isHome ? [at('user', 'user', state), at('user', 'user', settingsIn(home))] : []),
      at('project', 'project', settingsIn(cwd)),
      at('project', 'project', join(cwd, '.mcp.json')),
      at('local', 'project', settingsIn(cwd, LOCAL)),
      ...(isHome ? [at('local', 'user', state, 'projects', key)] : []),
    ];
  }

  refusal(name: string, config: Json): string | undefined {
    const { isManaged, files } = this.read();
    if (isManaged) return `${this.managedFile} decides alone which servers there are`;
    if (this.reserved.includes(name))
      return `a built-in server is called ${name}; take another name`;
    const type = transportType(config);
    if (NOT_IN_FILES.includes(type)) return `"type": "${type}" is for programs, and not for files`;
    const { lists, broken } = this.policyFiles(files);
    const entry: ServerEntry = { name, config, file: '', scope: 'user', authority: 'user' };
    return broken ?? new Policy(lists, this.env).verdict(entry);
  }

  /** Which files were read, which entry won, and why. */
  explain(name: string): string[] {
    const { entries, hidden, files, sources } = this.read(this.wanted);
    const entry = entries.get(name);
    const look = (file: string, scope = '') => {
      const { root, problem } = files.seen.get(file) ?? {};
      const state = problem ? `not used: ${problem}` : root ? 'read' : 'not there';
      return `    ${scope}${printable(file)}: ${state}`;
    };
    const asked = sources.filter(({ file }) => files.seen.has(file)).reverse();
    const others = [...files.seen.keys()].filter(
      (file) => !asked.some((each) => each.file === file),
    );
    const losers = hidden
      .filter((each) => each.name === name)
      .map(
        ({ scope, file, by }) =>
          `  hidden: the one of ${scope} scope in ${printable(file)}, by ${by}`,
      );
    const winner = entry && `  counts: the one of ${entry.scope} scope in ${printable(entry.file)}`;
    return [
      '  places, the one that wins first:',
      ...asked.map(({ file, scope }) => look(file, `${scope} scope, `)),
      '  also looked for:',
      ...others.map((file) => look(file)),
      ...(winner ? [winner] : []),
      ...losers,
    ];
  }
}

/** The names of plugins' servers are for plugins: what is allowed to one must not be another's. */
function withoutPlugins(source: ConfigSource, report: ReportProblem) {
  if (source.scope === 'plugin') return source;
  const servers = source.servers.filter(([name]) => {
    const isTaken = name.startsWith('plugin:');
    if (isTaken)
      report(
        `MCP server ${quoted(name)} in ${source.file} is ignored: such a name is for plugins; rename it`,
      );
    return !isTaken;
  });
  return { ...source, servers };
}

/** Of two entries with one name the later counts, whole. */
function merge(sources: ConfigSource[]): { entries: ServerEntries; hidden: Hidden[] } {
  const entries = new Map<string, ServerEntry>();
  const hidden: Hidden[] = [];
  for (const { servers, ...origin } of sources)
    for (const [name, config] of servers) {
      const before = entries.get(name);
      if (before) hidden.push({ ...before, by: `${origin.scope} scope, ${origin.file}` });
      entries.set(name, {
        name,
        config,
        ...origin,
        ...(before && { shadows: before.file }),
      });
    }
  return { entries, hidden };
}

/** The key of `projects` that means this folder. Capitals count where folders are told apart by
 *  them. */
function projectKey(projects: Json, folder: string) {
  const even = (path: string) => {
    const slashes = process.platform === 'win32' ? path.replaceAll('\\', '/') : path;
    return ['win32', 'darwin'].includes(process.platform) ? slashes.toLowerCase() : slashes;
  };
  return Object.keys(projects).find((key) => even(key) === even(folder));
}
