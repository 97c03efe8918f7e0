// What the user has agreed to: which servers a project may start, which calls need no question any
// more, and what is switched off. Kept in the user's home, where no project can write, and bound to
// content, never to a name alone.

import { existsSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import {
  isObject,
  isSwitchedOff,
  needsApproval,
  transportType,
  textOf,
  type Approval,
  type Json,
  type ServerEntry,
} from '../../mcp.ts';
import { withoutKeys } from './addresses.ts';
import { cautions } from './cautions.ts';
import { canonicalJson, sha256 } from './digest.ts';
import { choice, NEVER, NOT_NOW } from './dialogue.ts';
import { nobody, type Person } from './person.ts';
import { hasTexts, PrivateFile } from './private-file.ts';
import { changes, named, quoted, spelledOut, withTexts } from './safe-text.ts';

/** A tool as it described itself when it was allowed: by a hash, and in words. */
type AllowedDefinition = { tool: string; definition: string; shown: string };
/** All tools of a server as they are now: by a hash, and in words. */
export type WholeList = { definition: string; shown: string };
/** A call that is allowed for good. A tool by its definition, and by its server's fingerprint; a
 *  whole server by the definitions of all its tools. */
export type Grant =
  | ({ kind: 'mcp'; server: string; fingerprint: string; whole?: WholeList } & AllowedDefinition)
  | ({ kind: 'server'; server: string; fingerprint: string } & WholeList)
  | ({ kind: 'tool' } & AllowedDefinition)
  | { kind: 'shell'; command: string }
  | { kind: 'write'; path: string };

type Approved = {
  project: string;
  name: string;
  fingerprint: string;
  verdict: TrustDecision;
  config: Json;
};
type Disabled = { project: string; server: string; tool?: string };
/** Notes of a project for the model, as they were shown. */
type Noted = { project: string; file: string; hash: string; text: string; verdict: TrustDecision };
type TrustDecision = 'allow' | 'never';
/** A rule that was made in a chat: of rules.ts, as it was written. */
export type KeptRule = { effect: 'allow' | 'ask' | 'deny'; text: string };
type TrustFile = {
  version: 1;
  servers: Approved[];
  grants: ({ project: string } & Grant)[];
  disabled: Disabled[];
  notes?: Noted[]; // files of older programs have none
  rules?: ({ project: string } & KeptRule)[];
};

type TrustEdit = (store: TrustFile) => void;

type TrustIndex = { store: TrustFile; servers: Map<string, Approved>; disabled: Set<string> };

const EMPTY: TrustFile = { version: 1, servers: [], grants: [], disabled: [] };

const MAX_WARNINGS = 5; // of one kind
const MAX_TOLD_LINES = 40; // of an entry that waits for approval
const MAX_TOLD_LINE = 500;
const EVERYWHERE = '*'; // in the place of a folder: no path is called so
const OF_NO_FOLDER = ['plugin', 'connector']; // scopes whose servers are the same in every folder

/** How to start us, for a user who copies a hint: from a clone there is no command of our name, and
 *  in a program that uses the library npx has to find it. */
const [, START = ''] = process.argv;
const BY_NPM = /^(start|ask|probe|npx)$/.test(process.env.npm_lifecycle_event ?? '');
export const IS_SOURCE = START.endsWith('agent.ts');
const IS_COMMAND = IS_SOURCE || /(mcp-by-hand|start\.cjs|agent\.\w+)$/.test(START);
const BY_NPX = IS_SOURCE ? 'npx tsx agent.ts' : 'npx mcp-by-hand';
export const PROGRAM = IS_COMMAND && !BY_NPM ? 'mcp-by-hand' : BY_NPX;

const AGAIN = `and then decide again, as with: ${PROGRAM} trust allow NAME`;

/** Of an entry as its file has it: a secret behind ${VAR} is no part of it, and may change. */
export function fingerprint({ config }: Pick<ServerEntry, 'config'>): string {
  const { disabled, enabled, ...rest } = config;
  return sha256(canonicalJson(rest));
}

const ANSWERS = [choice('[y]es, this exact entry'), NOT_NOW, NEVER];

export type TrustOptions = {
  home?: string;
  cwd?: string;
  warn?: (text: string) => void;
  person?: Person;
  allowServers?: string[]; // "name=sha256:…", for this run
  unkept?: (why: string) => void; // a decision could not be written down; without it, a warning
};

export class Trust {
  readonly folder: string;
  readonly project: string;
  /** The servers that came up in this run, as they were shown. */
  readonly seen = new Map<string, { authority: ServerEntry['authority']; fingerprint: string }>();
  private store: PrivateFile<TrustFile>;
  private warn: (text: string) => void;
  private person: Person;
  private allowed: Set<string>;
  private unwritten: TrustEdit[] = []; // what could not be written down counts for this run
  private index?: TrustIndex;
  private hasWarned = false;
  isUnreadable = false; // the file is there, and may have a rule that forbids
  private unapproved = 0;
  private unkept: (why: string) => void;

  constructor(options: TrustOptions = {}) {
    const { home = homedir(), cwd = process.cwd(), allowServers = [] } = options;
    const { warn = () => {}, person = nobody } = options;
    this.store = new PrivateFile(home, 'trust.json', EMPTY, isSound);
    this.folder = this.store.folder;
    this.project = realpathSync(cwd);
    this.warn = warn;
    this.person = person;
    this.allowed = new Set(allowServers);
    const forThisRun = 'not written down, so it counts for this run only';
    this.unkept = options.unkept ?? ((why) => warn(`${forThisRun}: ${why}, ${AGAIN}`));
  }

  // ── Servers ──

  /** For the manager's option `approve`. */
  async approve(entry: ServerEntry): Promise<Approval> {
    const { name, authority } = entry;
    const print = fingerprint(entry);
    this.seen.set(name, { authority, fingerprint: print });
    if (isSwitchedOff(entry.config) || this.isDisabled(name)) return 'disabled';
    if (!needsApproval(entry, this.project) || this.allowed.has(`${name}=${print}`)) return true;
    const known = this.here().servers.get(name);
    if (known?.fingerprint === print) return known.verdict === 'allow' || 'disabled';
    if (!this.person.isThere) {
      this.warnOf(entry, known !== undefined);
      return false;
    }
    const lines = [headline(entry), ...this.describe(entry)];
    const question = { lines, prompt: 'Start it?', choices: ANSWERS, ifEmpty: 'n' };
    const answer = await this.person.choose(question);
    if (answer?.key === 'y') return this.decide(entry, 'allow');
    return answer?.key === 'v' ? this.decide(entry, 'never') : false;
  }

  /** With everything that a person needs to judge it elsewhere. */
  private warnOf(entry: ServerEntry, isKnown: boolean) {
    const { name, file } = entry;
    this.unapproved++;
    const others = `More servers are not started for that reason; ${PROGRAM} mcp list shows them.`;
    if (this.unapproved === MAX_WARNINGS + 1) this.warn(others);
    if (this.unapproved > MAX_WARNINGS) return;
    const who = `MCP server ${quoted(name)} of ${quoted(file)}`;
    const why = `you have not approved it${isKnown ? ' as it is now' : ''}`;
    const how = howToApprove(name, `; for this run: --allow-server ${name}=${fingerprint(entry)}`);
    const lines = [`${who} is not started: ${why}.`, ...beginningOf(this.describe(entry)), how];
    this.warn(lines.join('\n'));
  }

  /** An entry in full: what it starts, what to look at twice, what has changed. */
  describe(entry: ServerEntry): string[] {
    const { name, config, authority, shadows } = entry;
    const known = this.here().servers.get(name);
    const isChanged = known !== undefined && known.fingerprint !== fingerprint(entry);
    const before = isChanged ? changesIn(known.config, config) : [];
    const isFollower = authority === 'user' && needsApproval(entry, this.project);
    const place = 'It takes the place of your own server of that name';
    const follows = 'It is your own, and follows the project: it may run what is';
    return [
      ...(isFollower ? [`${follows} in ${quoted(this.project)}.`] : []),
      ...(shadows ? [`${place}, in ${quoted(shadows)}.`] : []),
      ...launchLines(config),
      ...cautions(config).map((caution) => `  ! ${caution}`),
      ...(isChanged ? ['It has changed since you last decided on it:'] : []),
      ...before.map((line) => `  ${line}`),
      `  fingerprint: ${fingerprint(entry)}`,
    ];
  }

  allow(entry: ServerEntry): void {
    this.decide(entry, 'allow');
  }

  private decide(entry: ServerEntry, verdict: TrustDecision): Approval {
    const { name, config, scope } = entry;
    const project = OF_NO_FOLDER.includes(scope) ? EVERYWHERE : this.project;
    const print = fingerprint(entry);
    this.change((store) => {
      const isOther = (each: Approved) => each.project !== project || each.name !== name;
      store.servers = store.servers.filter(isOther);
      store.servers.push({ project, name, fingerprint: print, verdict, config });
    });
    return verdict === 'allow' || 'disabled';
  }

  // ── Notes ──

  /** What was decided last about a file of this project with notes for the model. */
  noteOf(file: string): Noted | undefined {
    return this.list().notes.findLast((each) => each.file === file);
  }

  decideNote(
    { file, hash, text }: Omit<Noted, 'project' | 'verdict'>,
    verdict: TrustDecision,
  ): void {
    const { project } = this;
    const row: Noted = { project, file, hash, text, verdict };
    const isOther = (each: Noted) => each.project !== project || each.file !== file;
    this.change((store) => {
      store.notes = [...(store.notes ?? []).filter(isOther), row];
    });
  }

  // ── Calls ──

  isGranted(wanted: Grant): boolean {
    return this.list().grants.some((grant) => isSame(grant, wanted));
  }

  /** What a tool said of itself when it was allowed, if it says something else now. */
  drift(wanted: Grant): string | undefined {
    const same = this.list().grants.filter((grant) => isSameGrantedTool(grant, wanted));
    const isUnchanged = same.some((grant) => isSame(grant, wanted));
    const last = same.at(-1);
    return last && 'shown' in last && !isUnchanged ? last.shown : undefined;
  }

  /** What all tools of its server said when that was allowed, if they say something else now. */
  driftOfServer(wanted: Grant): string | undefined {
    if (wanted.kind !== 'mcp' || this.isGranted(wanted)) return undefined;
    const isMeant = (grant: Grant) => grant.kind === 'server' && isSameServer(grant, wanted);
    const last = this.list().grants.filter(isMeant).at(-1);
    return last && 'shown' in last ? last.shown : undefined;
  }

  grant(given: Grant): void {
    const { whole, ...grant } = { whole: undefined, ...given }; // the rest of its server is not meant
    this.change((store) => {
      const { project } = this;
      const isOther = (each: TrustFile['grants'][number]) =>
        each.project !== project || !isSameGrantedTool(each, grant);
      store.grants = store.grants.filter(isOther);
      store.grants.push({ project, ...grant });
    });
  }

  // ── Rules ──

  keepRule({ effect, text }: KeptRule): void {
    const row = { project: this.project, effect, text };
    this.change((store) => {
      const isOther = (each: KeptRule) => each.effect !== effect || each.text !== text;
      store.rules = [...(store.rules ?? []).filter(isOther), row];
    });
  }

  // ── Switched off ──

  isDisabled(server: string, tool?: string): boolean {
    return this.here().disabled.has(JSON.stringify([server, tool]));
  }

  setDisabled(isDisabled: boolean, server: string, tool?: string): void {
    const { project } = this;
    const isOther = (each: Disabled) =>
      each.project !== project || each.server !== server || each.tool !== tool;
    const isRefused = (each: Approved) =>
      [project, EVERYWHERE].includes(each.project) &&
      each.name === server &&
      each.verdict === 'never';
    const row: Disabled = { project, server, ...(tool !== undefined && { tool }) };
    this.change((store) => {
      store.disabled = [...store.disabled.filter(isOther), ...(isDisabled ? [row] : [])];
      // What was refused for good is asked about again.
      if (!isDisabled) store.servers = store.servers.filter((each) => !isRefused(each));
    });
  }

  /** What the file says of this project, by name. Made once for each state of the file: a project
   *  may have thousands of servers, and each is looked up. */
  private here() {
    const store = this.read();
    if (this.index?.store === store) return this.index;
    const { servers, disabled } = this.list();
    this.index = {
      store,
      servers: new Map(servers.map((each) => [each.name, each])),
      disabled: new Set(disabled.map(({ server, tool }) => JSON.stringify([server, tool]))),
    };
    return this.index;
  }

  // ── All of it ──

  /** What was agreed to in this project. */
  list(store = this.read()): Required<Omit<TrustFile, 'version'>> {
    const { servers, grants, disabled, notes = [], rules = [] } = store;
    const here = <T extends { project: string }>(rows: T[]) =>
      rows.filter(({ project }) => project === this.project);
    const everywhere = servers.filter(({ project }) => project === EVERYWHERE);
    return {
      servers: [...everywhere, ...here(servers)],
      grants: here(grants),
      disabled: here(disabled),
      notes: here(notes),
      rules: here(rules),
    };
  }

  /** The same without what could not be written down. */
  listWritten() {
    return this.list(this.stored());
  }

  /** Takes back what was decided on a server, on one of its tools (server/tool), on a tool of the
   *  program, on a command, on a file or on notes, and a rule; without a name everything in this
   *  project. Tells how many decisions that were. */
  revoke(what?: string): number {
    const size = () => Object.values(this.list()).flat().length;
    const before = size();
    const keep = (project: string, ...names: string[]) =>
      project !== this.project || (what !== undefined && !names.includes(what));
    this.change((store) => {
      const ofHere = (project: string) => (project === EVERYWHERE ? this.project : project);
      store.servers = store.servers.filter(({ project, name }) => keep(ofHere(project), name));
      store.grants = store.grants.filter((each) => keep(each.project, ...namesOf(each)));
      store.disabled = store.disabled.filter(({ project, server, tool }) =>
        keep(project, server, `${server}/${tool}`),
      );
      store.notes = store.notes?.filter(({ project, file }) => keep(project, file));
      store.rules = store.rules?.filter(({ project, text }) => keep(project, text));
    });
    return before - size();
  }

  /** Takes back what is bound to these entries of a name. Another entry of that name remains. */
  revokeEntries(name: string, fingerprints: string[]): void {
    const isMeant = (project: string, server: string, print: string) =>
      project === this.project && server === name && fingerprints.includes(print);
    if (fingerprints.length === 0) return;
    this.change((store) => {
      store.servers = store.servers.filter(
        (each) => !isMeant(each.project, each.name, each.fingerprint),
      );
      store.grants = store.grants.filter(
        (each) => !('server' in each && isMeant(each.project, each.server, each.fingerprint)),
      );
    });
  }

  // ── The file ──

  /** With what could not be written down. */
  private read(): TrustFile {
    const store = this.stored();
    if (this.unwritten.length === 0) return store;
    const all = structuredClone(store);
    for (const edit of this.unwritten) edit(all);
    return all;
  }

  /** What cannot be read grants nothing. */
  private stored(): TrustFile {
    try {
      return this.store.read();
    } catch (error) {
      const why = textOf(error);
      if (!this.hasWarned)
        this.warn(`${this.store.file} is not used, so nothing is approved: ${why}, ${AGAIN}`);
      this.hasWarned = true;
      this.isUnreadable = existsSync(this.store.file);
      return structuredClone(EMPTY);
    }
  }

  private change(edit: TrustEdit) {
    const hasFailed = this.unwritten.length > 0; // what comes later counts on top of that
    try {
      this.store.change(edit);
      if (hasFailed) this.unwritten.push(edit);
    } catch (error) {
      this.unwritten.push(edit);
      const why = textOf(error);
      const { file } = this.store;
      this.unkept(why.includes(file) ? why : `${file}: ${why}`);
    }
  }
}

// ─── Grants ────────────────────────────────────────────────────────────────────────────────────

/** The same tool, whatever it says of itself. */
function isSameGrantedTool(a: Grant, b: Grant) {
  if (a.kind === 'tool' && b.kind === 'tool') return a.tool === b.tool;
  if (a.kind === 'server' && b.kind === 'server') return isSameServer(a, b);
  if (a.kind !== 'mcp' || b.kind !== 'mcp') return false;
  return isSameServer(a, b) && a.tool === b.tool;
}

type OfServer = { server: string; fingerprint: string };
const isSameServer = (a: OfServer, b: OfServer) =>
  a.server === b.server && a.fingerprint === b.fingerprint;

function isSame(a: Grant, b: Grant) {
  if (a.kind === 'server' && b.kind === 'mcp')
    return isSameServer(a, b) && a.definition === b.whole?.definition;
  if (a.kind === 'shell' && b.kind === 'shell') return a.command === b.command;
  if (a.kind === 'write' && b.kind === 'write') return a.path === b.path;
  const isUnchanged = 'definition' in a && 'definition' in b && a.definition === b.definition;
  return isUnchanged && isSameGrantedTool(a, b);
}

/** By which names it can be revoked. */
function namesOf(grant: Grant) {
  if (grant.kind === 'mcp') return [grant.server, `${grant.server}/${grant.tool}`];
  if (grant.kind === 'server') return [grant.server];
  if (grant.kind === 'tool') return [grant.tool];
  return [grant.kind === 'shell' ? grant.command : grant.path];
}

const TEXTS_OF = {
  mcp: ['server', 'fingerprint', 'tool', 'definition', 'shown'],
  server: ['server', 'fingerprint', 'definition', 'shown'],
  tool: ['tool', 'definition', 'shown'],
  shell: ['command'],
  write: ['path'],
};

function isSound(value: Json) {
  const isList = (rows: unknown, ...names: string[]) =>
    Array.isArray(rows) && rows.every((row) => hasTexts(row, ...names));
  return (
    isList(value.servers, 'project', 'name', 'fingerprint', 'verdict') &&
    (value.servers as Json[]).every(({ config }) => isObject(config)) &&
    isList(value.grants, 'project', 'kind') &&
    (value.grants as Grant[]).every((grant) => hasTexts(grant, ...(TEXTS_OF[grant.kind] ?? []))) &&
    isList(value.disabled, 'project', 'server') &&
    isList(value.notes ?? [], 'project', 'file', 'hash', 'text', 'verdict') &&
    isList(value.rules ?? [], 'project', 'effect', 'text')
  );
}

// ─── The question about a server ───────────────────────────────────────────────────────────────

/** The user may copy this into a shell, and a project chose the name. */
export function howToApprove(name: string, more = ''): string {
  if (!/^\w[\w-]*$/.test(name)) return 'To be asked about it, start mcp-by-hand in a terminal.';
  return `To approve it: ${PROGRAM} trust allow ${name}${more}`;
}

function headline({ name, file, scope, config }: ServerEntry) {
  const isRemote = transportType(config) !== 'stdio';
  const wish = isRemote
    ? `wants to connect to the MCP server ${quoted(name)}. ` +
      'It sees what you ask it, and its answers reach the model.'
    : `wants to start the MCP server ${quoted(name)}. It runs as you, and can do what you can do.`;
  return `${quoted(file)} (${scope} scope) ${wish}`;
}

/** A project can write megabytes, and this goes into a log. A question shows everything. */
function beginningOf(lines: string[]) {
  const first = lines.slice(0, MAX_TOLD_LINES).map(withoutEnd);
  const length = lines.join('\n').length;
  if (length === first.join('\n').length) return lines;
  return [...first, `  … (${length} characters; ${PROGRAM} mcp get shows them)`, lines.at(-1)!];
}

const withoutEnd = (line: string) =>
  line.length > MAX_TOLD_LINE ? `${line.slice(0, MAX_TOLD_LINE)}…` : line;

const pretty = (config: Json) => canonicalJson(config, 2);

/** If nothing but a key in an address is another, both lines look the same. */
function changesIn(before: Json, after: Json) {
  const lines = changes(pretty(before), pretty(after)).map(withoutKeys);
  const of = (sign: string) =>
    lines.filter((each) => each.startsWith(sign)).map((each) => each.slice(1));
  const isMasked = of('-').join('\n') === of('+').join('\n');
  return isMasked ? [...lines, '(what differs is masked)'] : lines;
}

/** The command and each argument on a line of its own: nothing can hide at the end of a long
 *  line. */
export function launchLines({ command, args, ...others }: Json): string[] {
  const rest = withTexts(withoutSecrets(others), withoutKeys) as Json;
  const first = command === undefined ? [] : [`  command: ${quoted(withoutKeys(inFull(command)))}`];
  const list = [args ?? []]
    .flat()
    .map((arg, n) => `  argument ${n + 1}: ${quoted(withoutKeys(inFull(arg)))}`);
  const nested = Object.entries(rest).flatMap(([key, value]) => {
    if (!isObject(value)) return spelledOut({ [key]: value });
    return [`  ${named(key)}:`, ...spelledOut(value, '    ')];
  });
  return [...first, ...list, ...nested];
}

/** Other programs have more than texts here, and none of it may hide behind [object Object]. */
const inFull = (value: unknown) => (typeof value === 'string' ? value : `${JSON.stringify(value)}`);

/** What is secret of a login says nothing of what an entry starts, and may be read over a shoulder
 *  or in a log. */
function withoutSecrets({ oauth, ...rest }: Json): Json {
  if (oauth === undefined) return rest;
  const isSecret = /secret|privateKey$|assertion|token$/i;
  const shown = JSON.stringify(oauth, (key, value) =>
    typeof value === 'string' && isSecret.test(key) ? '***' : value,
  );
  return { ...rest, oauth: JSON.parse(shown) };
}
