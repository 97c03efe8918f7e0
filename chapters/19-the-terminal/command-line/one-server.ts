// one-server.ts: one table for every command that talks to one server: how the server is named, what can
// be said about the way to it, and how the talk begins and ends.

import { McpConnection, textOf, transportType } from '../../../mcp.ts';
import type { CallOptions, ConnectionOptions, Json, KnownServer } from '../../../mcp.ts';
import { Masker } from '../../17-the-gate/safe-text.ts';
import { errorKind, exitCodeFor } from '../calling.ts';
import {
  atDashes,
  FLAG,
  isUrl,
  numberFlag,
  pairs,
  parseFlags,
  TEXT_FLAG,
  TEXTS_FLAG,
  variables,
  type Flags,
} from './parse.ts';
import { EXIT, Stop, usage } from '../exit.ts';
import type { Composition } from '../host.ts';
import type { PlainScreen } from '../more/plain-screen.ts';
import type { Screen } from '../screen.ts';

const REACH_FLAGS = {
  header: { ...TEXTS_FLAG, short: 'H' },
  env: { ...TEXTS_FLAG, short: 'e' },
  cwd: TEXT_FLAG,
  era: TEXT_FLAG,
  timeout: TEXT_FLAG,
  trace: TEXT_FLAG,
  wire: FLAG,
  json: FLAG,
  'mcp-config': TEXTS_FLAG,
  'allow-server': TEXTS_FLAG,
  'no-color': FLAG,
} as const;

/** What help says of them, once for all commands. */
export const REACH_HELP = `
  SERVER is a name of your configuration, a URL, or, behind all other words, -- COMMAND ARGS
  -e, --env NAME[=VALUE]      the server gets this variable; without =, with the value it has here
      --cwd FOLDER            where a command starts
  -H, --header "Name: value"  for an address
      --era handshake|stateless   open the connection in this way, whatever the server prefers
      --timeout SECONDS       for each answer
      --mcp-config FILE|JSON  more servers to name
      --trace FILE, --wire    write, or show, every message
      --json                  the answer as JSON`;

const ERAS = ['handshake', 'stateless'];

/** Which server, and by which way. */
export type Reach = {
  server?: string; // its name, its address, or its command
  typed?: Json; // its configuration, unless `server` is a name in the files
  added: Json; // to a configuration from the files
  words: string[]; // what else was said
  isJson: boolean;
  isWire: boolean;
  timeoutMs?: number;
  trace?: string;
  mcpConfig: string[];
  allowServers: string[];
};

type ReachValues = ReturnType<typeof parseFlags<typeof REACH_FLAGS>>['values'];

/** The three forms: SERVER WORDS, URL WORDS, and WORDS -- COMMAND ARGS. */
export function readReach<T extends Flags>(args: string[], more: T) {
  const { before, command } = atDashes(args);
  const { values, positionals } = parseFlags(before, { ...more, ...REACH_FLAGS });
  if (before.length < args.length && command.length === 0)
    throw usage('there is no command after --');
  const given = values as unknown as ReachValues;
  const isGood = (seconds: number) => seconds > 0;
  const seconds = numberFlag('--timeout', given.timeout, 'a number of seconds', isGood);
  const reach: Reach = {
    ...serverNamed(positionals, command, addedBy(given)),
    isJson: given.json,
    isWire: given.wire,
    timeoutMs: seconds && seconds * 1000,
    trace: given.trace,
    mcpConfig: given.mcpConfig,
    allowServers: given.allowServer,
  };
  return { reach, values: values as unknown as ReturnType<typeof parseFlags<T>>['values'] };
}

type AddedFlags = { header: string[]; env: string[]; cwd?: string; era?: string };

function addedBy({ header, env, cwd, era }: AddedFlags): Json {
  if (era !== undefined && !ERAS.includes(era)) throw usage(`--era is ${ERAS.join(' or ')}`);
  return {
    ...(header.length > 0 && { headers: pairs(header, ':', '--header is "Name: value"') }),
    ...(env.length > 0 && { env: variables(env) }),
    ...(cwd !== undefined && { cwd }),
    ...(era !== undefined && { era }),
  };
}

export function serverNamed(positionals: string[], [command, ...args]: string[], added: Json) {
  if (command !== undefined) {
    const typed = withAdded({ command, args }, added);
    return { server: command, typed, added, words: positionals };
  }
  const isServer = (word: string) => isUrl(word) || !/^\{|=/.test(word); // and no argument
  const server = positionals.find(isServer);
  const words = positionals.filter((_, n) => n !== positionals.indexOf(server!));
  if (!isUrl(server)) return { server, added, words };
  const typed = withAdded({ type: transportType({ url: server }), url: server! }, added);
  return { server, typed, added, words };
}

/** A configuration with what was typed. A header for a command would be lost, and so would a
 *  variable for an address. */
function withAdded(config: Json, { headers, env, ...rest }: Json): Json {
  const isCommand = config.command !== undefined;
  if (headers && isCommand) throw usage('--header is for an address; this server is a command');
  const lost = env ? '--env' : '--cwd';
  if ((env || rest.cwd) && !isCommand)
    throw usage(`${lost} is for a command; this server is an address`);
  return {
    ...config,
    ...rest,
    ...(env !== undefined && { env: { ...(config.env as Json), ...(env as Json) } }),
    ...(headers !== undefined && {
      headers: { ...(config.headers as Json), ...(headers as Json) },
    }),
  };
}

// ─── The way ────────────────────────────────────────────────────────────────────────────────────

/** How a connection to it is made. */
export type Way = {
  config: Json;
  options: ConnectionOptions;
  keep?: (known: KnownServer) => void; // what it offers, for the Tab of a shell
};

/** With all rows of the program. A server may live already, unless it is to be examined. */
export async function wayTo(
  reach: Reach,
  screen: Screen,
  composition: Composition,
  { isExamined = false } = {},
): Promise<Way> {
  const { server = '', typed, added, allowServers, mcpConfig } = reach;
  const { approved } = await import('../entries.ts');
  const { PersonAtTerminal } = await import('../person-at-terminal.ts');
  const { forConnections, forTalks, givenServers } = await import('../host.ts');
  const dynamic = mcpConfig.flatMap((given) => Object.entries(givenServers(given)));
  const wanted = { dynamic: dynamic as [string, Json][] };
  const person = new PersonAtTerminal(screen);
  const fromFiles = () => approved(server, screen, composition, person, { allowServers, wanted });
  const found = typed ? undefined : await fromFiles();
  const config = typed ?? withAdded(found!.config, added);
  const { logins } = composition;
  if (logins) logins.believesVerdicts = false; // ask, whatever it said a moment ago
  if (isExamined || typed) return { config, options: forConnections(composition) };
  const isAsItIs = Object.keys(added).length === 0 && screen.isInteractive;
  const keep = (known: KnownServer) => isAsItIs && composition.known?.keep(found!.entry, known);
  return { config, options: forTalks(composition, (text) => screen.warn(text)), keep };
}

// ─── The talk ───────────────────────────────────────────────────────────────────────────────────

export type Talk = (connection: McpConnection, options: CallOptions) => Promise<number>;

/** Connects, lets `talk` do its work, says goodbye, and tells what went wrong. */
export async function talkTo(
  reach: Reach,
  way: Way,
  screen: PlainScreen,
  talk: Talk,
): Promise<number> {
  const masker = new Masker();
  masker.learnEntry(way.config, reach.typed ? 'user' : 'project');
  const { connection, trace } = await connectionFor(reach, way, screen, masker);
  const signal = interruptible(connection, screen);
  try {
    const code = await talk(connection, { signal });
    return code === EXIT.done && trace?.isLost ? EXIT.refused : code; // it was to be kept
  } catch (error) {
    if (signal.aborted) return EXIT.interrupted;
    if (error instanceof Stop) throw error;
    for (const warning of connection.warnings.values()) screen.warn(masker.text(warning));
    const kind = errorKind(error);
    throw new Stop(exitCodeFor(kind), masker.text(textOf(error)), kind);
  } finally {
    screen.stopSpinning();
    await connection.close();
  }
}

/** The same, after the handshake. */
export const talkAfterHandshake = (
  reach: Reach,
  way: Way,
  screen: PlainScreen,
  talk: Talk,
): Promise<number> =>
  talkTo(reach, way, screen, async (connection, options) => {
    await connection.connect();
    await connection.initialize();
    return talk(connection, options);
  });

async function connectionFor(
  { server = '', timeoutMs: limit, trace: file, isWire }: Reach,
  { config, options }: Way,
  screen: PlainScreen,
  masker: Masker,
) {
  const { Trace } = file === undefined ? {} : await import('../more/trace-file.ts');
  const trace = Trace && new Trace(screen, masker, file);
  const limits = limit === undefined ? {} : { handshakeTimeoutMs: limit, callTimeoutMs: limit };
  const connection = new McpConnection(server, config, {
    ...options,
    ...limits,
    onWire: (direction, message) => {
      trace?.wire(direction, message, server);
      if (isWire) screen.say(`${direction === 'out' ? '→' : '←'} ${masker.json(message)}`);
    },
    onStderr: (stderr) => trace?.write({ server, stderr }),
    onWarning: (text) => trace?.write({ type: 'warning', text }),
  });
  return { connection, trace };
}

/** The first Ctrl-C cancels the call on the wire; the second leaves at once. */
function interruptible(connection: McpConnection, screen: PlainScreen): AbortSignal {
  const abort = new AbortController();
  screen.onInterrupt = () => {
    if (abort.signal.aborted) process.exit(EXIT.interrupted);
    abort.abort();
    void connection.close(); // it may still be starting
  };
  return abort.signal;
}
