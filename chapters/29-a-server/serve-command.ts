// serve-command.ts: `mcp-by-hand serve`, on stdio or over HTTP.

import { randomUUID } from 'node:crypto';
import { rmSync, statSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join, parse as parsePath, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { textOf } from '../../mcp.ts';
import { Roots } from '../16-hands/paths.ts';
import type { Mode } from '../17-the-gate/modes.ts';
import { readDefaultMode } from '../17-the-gate/rules.ts';
import { apiKeyVariables } from '../18-minds/models.ts';
import { EXIT, refused, usage } from '../19-the-terminal/exit.ts';
import type { LoadRows } from '../19-the-terminal/host.ts';
import type { Run } from '../19-the-terminal/own-verbs.ts';
import { GATE_FLAGS, modeOf } from '../19-the-terminal/command-line/options.ts';
import {
  FLAG,
  numberFlag,
  parseFlags,
  TEXT_FLAG,
  TEXTS_FLAG,
} from '../19-the-terminal/command-line/parse.ts';
import { gateRules } from '../19-the-terminal/program.ts';
import type { Screen } from '../19-the-terminal/screen.ts';
import { refuseKeys, shellEnvIn } from '../19-the-terminal/shell-env.ts';
import { doorFor, isLoopbackBind } from './guard.ts';
import { serveHttp } from './serve-http.ts';
import { SERVES_MARK, PassedOn } from './passed-on.ts';
import { serveStdio } from './pipe.ts';
import { secretsFrom, type Secrets } from './secrets.ts';
import { skillsOf } from './server-skills.ts';
import { Served, SERVED, TrustWithoutGrants, type ServedOptions } from './serve.ts';
import type { McpServer } from './server.ts';

const FLAGS = {
  http: TEXT_FLAG, // the port
  host: TEXT_FLAG,
  hostname: TEXTS_FLAG,
  'allow-origin': TEXTS_FLAG,
  'secret-file': TEXT_FLAG,
  tools: TEXT_FLAG,
  skills: TEXT_FLAG, // a folder
  ...GATE_FLAGS,
  'answer-within': TEXT_FLAG,
  servers: FLAG,
} as const;

const GRACE_MS = 5000;
/** Behind the token it says no more than this: no address, and no folder. */
const CARD = { name: 'localhost/mcp-by-hand', description: 'Files and commands of one folder' };

/** What was typed, checked before anything begins. */
type ServeWords = ReturnType<typeof readServe>;

export const serve: Run = async (args, screen, rows) => {
  const wanted = readServe(args);
  process.chdir(wanted.place); // rules and servers are those of the folder
  const options = await optionsFor(wanted, screen, rows);
  process.once('exit', () => rmSync(options.resultsFolder, { recursive: true, force: true }));
  const { server } = new Served(options);
  const manager = options.passedOn?.manager;
  // Many clients list tools once. Servers that are slower than this join later, with a notice.
  const grace = wait(GRACE_MS, undefined, { ref: false });
  await Promise.race([manager?.loadAndConnect(), grace]);
  try {
    if (wanted.port !== undefined) return await overHttp(server, wanted, screen);
    screen.isInteractive = false; // stdin is the wire, and no keyboard
    screen.say(`mcp-by-hand serves ${wanted.place} on stdio, in the mode ${wanted.mode}`, 'dim');
    await serveStdio(server);
    return EXIT.done;
  } finally {
    await manager?.disconnectAll();
  }
};

async function optionsFor(
  wanted: ServeWords,
  screen: Screen,
  rows: LoadRows,
): Promise<ServedOptions> {
  const { mode, tools, answerMs, sealingKey, addDir, env } = wanted;
  const warn = (text: string) => screen.warn(text);
  const resultsFolder = join(tmpdir(), `mcp-by-hand-${randomUUID()}`);
  const roots = new Roots(process.cwd(), addDir, [resultsFolder]);
  const shellEnv = shellEnvIn(env);
  const composition = await rows();
  refuseKeys(shellEnv, apiKeyVariables(composition.models));
  const trust = new TrustWithoutGrants({ warn });
  const kept = trust.list().rules.filter(({ effect }) => effect !== 'allow');
  const rules = gateRules(wanted, { tools: composition.tools, warn }, kept);
  const onError = (what: string, error: unknown) => warn(`${what}: ${textOf(error)}`);
  const skills = wanted.skills === undefined ? {} : skillsOf(wanted.skills, warn);
  const server = { sealingKey, onError, ...skills };
  const needs = { composition, trust, resultsFolder, warn };
  const passedOn = wanted.isPassing ? new PassedOn(needs) : undefined;
  return { roots, resultsFolder, shellEnv, trust, mode, rules, tools, answerMs, passedOn, server };
}

// ─── The command line ──────────────────────────────────────────────────────────────────────────

export function readServe(args: string[]) {
  const {
    values,
    positionals: [folder, ...more],
  } = parseFlags(args, FLAGS);
  if (more.length > 0) throw usage('serve is: serve [FOLDER] [--http PORT] …, with one folder');
  const { http, host, hostname, allowOrigin, secretFile, answerWithin } = values;
  const { addDir, allow, deny, env, skills, servers } = values;
  if (skills !== undefined && servers) throw usage('--skills and --servers do not go together');
  const isPort = (port: number) => Number.isInteger(port) && port < 2 ** 16;
  const isPatience = (seconds: number) => seconds > 0 && seconds <= 3600;
  const form = 'a number of seconds, up to 3600';
  return {
    place: placeFrom(folder),
    port: numberFlag('--http', http, 'a port, such as 3000', isPort), // else on stdio
    host,
    hostnames: hostname,
    origins: originsIn(allowOrigin),
    ...secretsFor(host, secretFile),
    mode: modeIn(values.mode),
    tools: namesIn(values.tools),
    answerMs: 1000 * (numberFlag('--answer-within', answerWithin, form, isPatience) ?? 300),
    isPassing: passingIn(servers),
    skills: skills && existing(skills),
    allow,
    deny,
    addDir: addDir.map(existing),
    env,
  };
}

/** Desktop programs start their servers anywhere: in /, say. There "inside the folder" would mean
 *  everything. */
function placeFrom(folder?: string): string {
  const place = existing(folder ?? '.');
  const isWide = place === parsePath(place).root || place === homedir();
  if (!isWide || folder !== undefined) return place;
  throw refused(`${place} is no project: say which folder to serve, as in: serve ~/my-project`);
}

function existing(folder: string): string {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return resolve(folder);
  throw refused(`there is no folder ${folder}`);
}

/** A defaultMode that loosens was chosen for chats at your own terminal; one that tightens counts. */
function modeIn(word?: string): Mode {
  if (word === undefined) return readDefaultMode(homedir()) === 'read-only' ? 'read-only' : 'ask';
  return modeOf(word);
}

function namesIn(list?: string): string[] | undefined {
  const names = list?.split(',').map((name) => name.trim());
  const odd = names?.find((name) => !SERVED.includes(name));
  if (odd !== undefined) throw usage(`--tools is made of ${SERVED.join(', ')}; there is no ${odd}`);
  return names;
}

function passingIn(isWanted: boolean): boolean {
  if (!isWanted || process.env[SERVES_MARK] === undefined) return isWanted;
  throw refused(
    'serve --servers is among the servers that serve --servers has started: without end',
  );
}

function originsIn(origins: string[]): string[] {
  try {
    return [...doorFor('localhost', { origins }).origins];
  } catch (error) {
    throw usage(`--allow-origin: ${textOf(error)}`);
  }
}

function secretsFor(host = '127.0.0.1', file?: string): Secrets {
  if (!isLoopbackBind(host) && file === undefined) {
    const how = 'add --secret-file FILE, one that only you can read (openssl rand -hex 32)';
    throw refused(`beyond this machine the token must come from a secret of yours: ${how}`);
  }
  try {
    return secretsFrom({ file });
  } catch (error) {
    throw refused(textOf(error));
  }
}

// ─── Over HTTP ─────────────────────────────────────────────────────────────────────────────────

async function overHttp(server: McpServer, wanted: ServeWords, screen: Screen) {
  const { port, host, hostnames, origins, token, place } = wanted;
  const options = { port, host, hostnames, origins, token, card: CARD };
  const http = await serveHttp(server, options).catch((error) => {
    throw refused(`cannot listen at port ${port}: ${textOf(error)}`, 'unreachable');
  });
  screen.say(`mcp-by-hand serves ${place} at ${http.url} until Ctrl-C`);
  screen.say(`clients must send: Authorization: Bearer ${token}`);
  await new Promise<void>((done) => {
    screen.onInterrupt = done;
  });
  await http.close();
  return EXIT.done;
}
