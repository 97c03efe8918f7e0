// host.ts: what a program is made of, and what its parts may use of it. `composition.ts`, beside the
// chapters, has all rows; nothing of this chapter imports it, so any other may take its place.

import { randomUUID } from 'node:crypto';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AgentEvent, Image, Model, Shelf, Tool, Turn } from '../../agent.ts';
import type {
  Extension,
  Json,
  KnownServers,
  ManagerOptions,
  McpManager,
  ServerEntry,
  TransportFactory,
} from '../../mcp.ts';
import { isObject, loadEntries, readJsonFile, serversIn as mappingIn, textOf } from '../../mcp.ts';
import { refused } from './exit.ts';
import { Roots } from '../16-hands/paths.ts';
import type { Edits } from '../16-hands/undo.ts';
import type { Mode, Opinion } from '../17-the-gate/gate.ts';
import { nobody, type Person } from '../17-the-gate/person.ts';
import { Trust } from '../17-the-gate/trust.ts';
import { apiKeyVariables, type ModelRow } from '../18-minds/models.ts';
import type { Verb } from './own-verbs.ts';
import type { CommandContext } from './command-line/mcp-add.ts';
import type { Program } from './program.ts';

/** What rows may need of the program that they become part of. */
export type Host = {
  person: Person;
  warn: (text: string) => void;
  emit: (event: AgentEvent) => void; // for listeners: the terminal, --json, the trace
  kept?: ConversationStore; // only a chat has a conversation to keep something with
  program?: () => Program; // that they become part of, if it is one that talks
  roots: Roots; // the folders that tools may touch
  model: () => Model | undefined; // the one that answers at this moment
  trust: Trust; // what the user has agreed to
  manager: () => McpManager | undefined; // of the servers, once there is one
  resultsFolder: string; // for results that are too big for the model
  isHidden: (path: string) => boolean; // from a search: rules forbid to read it
  shellEnv: string[]; // names of variables that commands get besides the safe ones
  edits?: Edits; // what changes to files have replaced
  gate?: () => { mode: Mode }; // of a chat
};

/** What rows keep with the conversation, for the next program that goes on with it. */
export interface ConversationStore {
  keep(key: string, value?: Json): void; // without a value, it is kept no longer
  onSwitch(listener: (kept: Map<string, Json>) => void): void; // to another one, which has this
}

/** The rows of a program. Where their order counts, the first is the outermost. */
export type Composition = {
  transports: Record<string, TransportFactory>; // by the `type` of an entry
  extensions: Extension[];
  tools: Tool[]; // rows of the agent's table
  shelf?: Shelf; // for more of them than a request should hold
  known?: KnownServers; // so that they need not start before they are called
  commands: Record<string, Command>; // by the word behind the slash
  moreCommands?: MoreCommands[]; // those of the moment, such as the prompts of servers
  mentions?: Mentions[]; // what an @ may name besides files
  news?: News[]; // what the model hears with the next prompt
  prepare?: (signal: AbortSignal) => Promise<void>; // when the servers are there, before each prompt
  prepareArguments?: PrepareArguments; // of a call, by the schema of its tool
  verbs?: Record<string, Verb>; // by the first word of the command line
  models: Record<string, ModelRow>; // by the word before the slash: anthropic/…
  logins?: ServerLogins;
  notes?: (server: string) => string[]; // more to say of one in /mcp
  attempts?: (server: string) => string[]; // how far we are with one that is away
  opinion?: (tool: Json, entry: Json) => Opinion | undefined; // of a server's tool, by its entry
  demo?: (load: LoadServers) => LoadServers; // adds servers that are part of the program
  sources?: Sources; // where servers come from; without it, from the three files of chapter 12
  mcp?: Record<string, McpAction>; // more that the command `mcp` can do
  inTurn?: ManagerOptions['inTurn']; // who starts beside whom
  through?: ThroughOthers; // the way to servers that live already
  goodbyeMs?: number; // how long all servers together may take to end
};
/** Mends what leaves no doubt, and says what does not fit. */
export type PrepareArguments = (
  given: Json,
  schema: Json,
  signal: AbortSignal,
) => Promise<{ args: Json; refusal?: string; note?: string }>;
export type ThroughOthers = (
  transports: Composition['transports'],
  warn: Host['warn'],
) => Composition['transports'];
export type Compose = (host: Host) => Composition;
/** For a command, which may do without: they are loaded when it wants them. */
export type LoadRows = () => Promise<Composition>;
export type LoadServers = NonNullable<ManagerOptions['load']>;

export type ReportProblem = (problem: string) => void;
export type ServerEntries = Map<string, ServerEntry>; // by name
/** What the command line adds: the servers of --mcp-config, and whether only they count. */
export type WantedServers = {
  dynamic?: [name: string, config: Json][];
  isStrict?: boolean;
  isIde?: boolean; // --ide: the server of the editor, too
};

/** Where servers come from. */
export interface Sources {
  prepare?(): Promise<void> | undefined; // what has to be fetched before it can load
  load(wanted: WantedServers, report: ReportProblem): ServerEntries;
  places(): ConfigPlace[]; // where `mcp add` may write
  explain(name: string): string[]; // which files were read, which entry won, and why
  refusal?(name: string, config: Json): string | undefined; // why `mcp add` must not add it
  watch?(tell: (text: string) => void): () => void; // until the end of the chat: what has changed
}
/** A mapping of servers that can be changed: in a file, at the end of these keys. */
export type ConfigPlace = Pick<ServerEntry, 'scope' | 'file' | 'authority'> & { keys: string[] };

/** Gets the words behind its name, and the scope if one was given. */
export type McpAction = (
  words: string[],
  desk: CommandContext,
  person: Person,
  scope?: string,
) => Promise<number>;

/** What can be said in a chat to the program itself. */
export type Command = {
  help: string; // "/tools    what the model can call": one line for each form
  /** `rest` is the line behind its name, as it was typed. What it returns is said to the model. */
  run: (
    words: string[],
    program: Program,
    signal: AbortSignal,
    rest: string,
  ) => void | Turn[] | Promise<void | Turn[]>;
  /** For the last of the words, by Tab. */
  complete?: (words: string[], program: Program) => string[] | Promise<string[]>;
};
/** Nothing if there is nobody to ask: then no time is lost. */
export type MoreCommands = (program: Program) => Promise<Record<string, Command>> | undefined;

export type Mentions = {
  /** What @ and this word bring along: the word as it was typed, and without the punctuation behind
   *  it. Nothing if it means something else. */
  attach: (words: string[], program: Program, signal: AbortSignal) => Promise<Attached | undefined>;
  /** Words that fit what is typed behind the @. Nothing if there is nobody to ask. */
  complete: (typed: string, program: Program) => Promise<Completed> | undefined;
};
export type Attached = { text: string; images: Image[] };
/** `isOpen`: even if it is the only one, it goes on. */
export type Completed = { words: string[]; isOpen?: boolean };
export type News = (signal: AbortSignal) => Promise<string[]>;

/** Who we are to servers that want to know it. */
export interface ServerLogins {
  isWanted(server: string): boolean; // does it wait for one?
  where(server: string): string | undefined; // "logged in at …"
  logIn(server: string, person: Person, signal: AbortSignal): Promise<void>;
  logOut(server: string, url?: string): Promise<boolean>; // was there one? At that address, or any
  readonly isKept: boolean; // if not, logins and logouts count for this run only
  believesVerdicts: boolean; // may what a server said a moment ago be taken for its answer?
}

/** A host without a terminal: for libraries and tests, and for commands that need no tools. */
export function plainHost(given: Partial<Host> = {}): Host {
  return {
    person: nobody,
    warn: (text) => console.error(text),
    emit: () => {},
    roots: new Roots(process.cwd()),
    model: () => undefined,
    trust: new Trust(),
    manager: () => undefined,
    resultsFolder: join(tmpdir(), `mcp-by-hand-${randomUUID()}`),
    isHidden: () => false,
    shellEnv: [],
    ...given,
  };
}

/** What a connection or a manager takes of a composition. */
export function forConnections({ transports, extensions, models, inTurn }: Composition) {
  const turns = inTurn && { inTurn, concurrency: Infinity }; // then the turns are all that counts
  return { transports, extensions, hidden: apiKeyVariables(models), ...turns };
}

/** The same, for those who do not mind that the server lives already. */
export function forTalks(composition: Composition, warn: Host['warn']) {
  const made = forConnections(composition);
  const { through = (transports) => transports } = composition;
  return { ...made, transports: through(made.transports, warn) };
}

/** Loads what is configured here, once everything for that is known. */
export function loadHere(
  { sources }: Pick<Composition, 'sources'>,
  report: ReportProblem,
  wanted: WantedServers = {},
): ServerEntries {
  if (sources) return sources.load(wanted, report);
  const { dynamic = [], isStrict = false } = wanted;
  const found = isStrict ? new Map() : loadEntries(homedir(), process.cwd(), report);
  for (const [name, config] of dynamic) {
    const entry = { name, config, file: '--mcp-config', shadows: found.get(name)?.file };
    found.set(name, { ...entry, scope: 'dynamic', authority: 'user' });
  }
  return found;
}

/** The servers of --mcp-config. */
export function givenServers(given: string): Json {
  const isJson = given.trimStart().startsWith('{');
  try {
    const root: unknown = isJson ? JSON.parse(given) : readJsonFile(given);
    if (root === undefined) throw new Error('there is no such file');
    if (!isObject(root)) throw new Error('it holds no servers');
    return mappingIn(root, true);
  } catch (error) {
    throw refused(`--mcp-config ${isJson ? 'JSON' : given}: ${textOf(error)}`);
  }
}
