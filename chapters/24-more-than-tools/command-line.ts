// command-line.ts: `resources`, `prompts`, `read` and `prompt`, for scripts and for a quick look.

import { McpConnection, McpManager, textOf } from '../../mcp.ts';
import type { CallOptions, Json, ResourceContents } from '../../mcp.ts';
import { nearest } from '../16-hands/nearest.ts';
import { Masker } from '../17-the-gate/safe-text.ts';
import { Trust } from '../17-the-gate/trust.ts';
import {
  atDashes, serverIn, SERVER_FLAGS, type WantedServer,
} from '../19-the-terminal/call-words.ts';
import { exitCodeFor, kindOf } from '../19-the-terminal/calling.ts';
import { approved } from '../19-the-terminal/entries.ts';
import { EXIT, Stop, usage } from '../19-the-terminal/exit.ts';
import { forConnections, loadHere, type Composition } from '../19-the-terminal/host.ts';
import type { Run } from '../19-the-terminal/main.ts';
import { pairs, parse } from '../19-the-terminal/parse.ts';
import { PersonAtTerminal } from '../19-the-terminal/person-at-terminal.ts';
import type { Screen } from '../19-the-terminal/screen.ts';
import { formOf } from './arguments.ts';
import { lineFor } from './context.ts';
import { declaredBy } from './prompts.ts';

/** Without a `server`, all of them. */
type Wanted = WantedServer & {
  isJson: boolean;
  allowServers?: string[];
};

/** The three forms of `call`. */
function wantedBy(args: string[]): Wanted {
  const { before, command } = atDashes(args);
  const { values, positionals } = parse(before, SERVER_FLAGS);
  const isJson = values.json ?? false;
  const allowServers = values['allow-server'];
  return { ...serverIn(positionals, command, values), isJson, allowServers };
}

// ─── One server ────────────────────────────────────────────────────────────────────────────────

type Work = (connection: McpConnection, options: CallOptions) => Promise<number>;

async function withServer(
  wanted: Wanted, screen: Screen, composition: Composition, work: Work,
): Promise<number> {
  const { server = '', typed, timeoutMs, allowServers } = wanted;
  const config = typed ?? (await approved(server, screen, composition, allowServers));
  const limits = timeoutMs && { handshakeTimeoutMs: timeoutMs, callTimeoutMs: timeoutMs };
  const masker = new Masker();
  masker.learnEntry(config, typed ? 'user' : 'project');
  const connection = new McpConnection(server, config, {
    ...forConnections(composition),
    ...limits,
    onWarning: () => {},
  });
  const stop = new AbortController();
  screen.onInterrupt = () => {
    if (stop.signal.aborted) process.exit(EXIT.interrupted);
    stop.abort();
    void connection.close(); // it may still be starting
  };
  try {
    await connection.connect();
    await connection.initialize();
    return await work(connection, { signal: stop.signal });
  } catch (error) {
    if (stop.signal.aborted) return EXIT.interrupted;
    if (error instanceof Stop) throw error;
    const kind = kindOf(error);
    throw new Stop(exitCodeFor(kind), masker.text(textOf(error)), kind);
  } finally {
    await connection.close();
  }
}

export const read: Run = async (args, screen, rows) => {
  const wanted = wantedBy(args);
  const [uri, more] = wanted.words;
  const form = 'write read SERVER ADDRESS, read URL ADDRESS, or read ADDRESS -- COMMAND ARGS';
  if (uri === undefined) throw usage(form);
  if (more !== undefined) throw usage(`what is ${more}? ${form}`);
  return withServer(wanted, screen, await rows(), async (connection, options) => {
    const contents = await connection.readResource(uri, options);
    if (contents.length === 0) throw new Stop(EXIT.failed, `there is nothing at ${uri}`, 'empty');
    if (wanted.isJson) screen.printJson(JSON.stringify({ contents }));
    else for (const each of contents) printContents(each, screen);
    return EXIT.done;
  });
};

/** Bytes go to a file or a program, never to a terminal. */
function printContents({ text, blob, uri, mimeType }: ResourceContents, screen: Screen): void {
  if (typeof text === 'string') return screen.print(text.replace(/\r?\n$/, ''));
  const bytes = Buffer.from(String(blob ?? ''), 'base64');
  if (!process.stdout.isTTY) return void process.stdout.write(bytes);
  screen.print(`${uri}: ${mimeType ?? 'no type'}, ${bytes.length} bytes; to keep it, add > FILE`);
}

export const prompt: Run = async (args, screen, rows) => {
  const wanted = wantedBy(args);
  const [name, ...words] = wanted.words;
  const form = 'write prompt SERVER NAME key=value …, or prompt NAME key=value … -- COMMAND ARGS';
  if (name === undefined) throw usage(form);
  const given = pairs(words, '=', 'an argument is key=value');
  return withServer(wanted, screen, await rows(), async (connection, options) => {
    const prompts = await connection.listPrompts();
    const found = prompts.find((each) => each.name === name);
    const names = prompts.map((each) => each.name);
    if (!found) throw usage(`there is no prompt ${name}; ${hint(name, names)}`);
    const declared = declaredBy(found);
    const odd = Object.keys(given).find((key) => !declared.some((each) => each.name === key));
    const missing = declared.find((each) => each.isRequired && !Object.hasOwn(given, each.name));
    if (odd !== undefined || missing) throw usage(`${name}: ${formOf(declared)}`);
    const messages = await connection.getPrompt(name, given, options);
    if (wanted.isJson) screen.printJson(JSON.stringify({ messages }));
    else for (const { role, content } of messages) screen.print(`${role}: ${textIn(content)}`);
    return EXIT.done;
  });
};

function textIn(content: unknown[]): string {
  const said = (block: unknown) => {
    const { text } = (block ?? {}) as Json;
    return typeof text === 'string' ? text : JSON.stringify(block);
  };
  return content.map(said).join('\n');
}

function hint(word: string, known: string[]): string {
  const [close] = nearest(word, known, 1);
  if (close !== undefined) return `did you mean ${close}?`;
  return known.length === 0 ? 'it has none' : `it has ${known.slice(0, 20).join(', ')}`;
}

// ─── One server, or all ────────────────────────────────────────────────────────────────────────

type Lists = Record<string, Json[]>; // by their kind
type Lister = Pick<McpConnection, 'listResources' | 'listResourceTemplates' | 'listPrompts'>;

async function list(
  args: string[], screen: Screen, composition: Composition, lists: (of: Lister) => Promise<Lists>,
): Promise<number> {
  const wanted = wantedBy(args);
  const [odd] = wanted.words;
  if (odd !== undefined) throw usage(`what is ${odd}? One server, or all of them`);
  const show = (found: Lists) => {
    if (wanted.isJson) return screen.printJson(JSON.stringify(found));
    for (const row of Object.values(found).flat()) screen.print(lineOf(row));
  };
  if (wanted.server !== undefined)
    return withServer(wanted, screen, composition, async (connection) => {
      show(await lists(connection));
      return EXIT.done;
    });
  const person = new PersonAtTerminal(screen);
  const { allowServers } = wanted;
  const trust = new Trust({ warn: (text) => screen.warn(text), person, allowServers });
  const manager = new McpManager({
    ...forConnections(composition),
    approve: (entry) => trust.approve(entry),
    load: (report) => loadHere(composition, report),
    prepare: () => composition.sources?.prepare?.(),
    onWarning: (warning) => screen.warn(warning),
  });
  try {
    await manager.loadAndConnect();
    for (const { state, reason } of manager.status())
      if (state === 'failed' && reason) screen.warn(reason);
    show(await lists(manager));
    return EXIT.done;
  } finally {
    await manager.disconnectAll();
  }
}

function lineOf(row: Json): string {
  const address = String(row.uri ?? row.uriTemplate ?? row.name);
  const isPrompt = row.uri === undefined && row.uriTemplate === undefined;
  const words = isPrompt ? ` (${formOf(declaredBy(row))})` : '';
  const whose = typeof row.server === 'string' ? `${row.server} ` : '';
  return whose + lineFor(address, isPrompt ? { ...row, name: '' } : row) + words;
}

export const resources: Run = async (args, screen, rows) =>
  list(args, screen, await rows(), async (from) => {
    const [found, resourceTemplates] =
      await Promise.all([from.listResources(), from.listResourceTemplates()]);
    return { resources: found, resourceTemplates };
  });

export const prompts: Run = async (args, screen, rows) =>
  list(args, screen, await rows(), async (from) => ({ prompts: await from.listPrompts() }));
