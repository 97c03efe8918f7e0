// context-cli.ts: `resources`, `prompts`, `read` and `prompt`, for scripts and for a quick look.

import { McpManager, type Json, type McpConnection } from '../../../mcp.ts';
import { nearestHint } from '../../16-hands/nearest.ts';
import { Trust } from '../../17-the-gate/trust.ts';
import { EXIT, Stop, usage } from '../../19-the-terminal/exit.ts';
import { forTalks, loadHere, type LoadRows } from '../../19-the-terminal/host.ts';
import type { Run } from '../../19-the-terminal/own-verbs.ts';
import { pairs } from '../../19-the-terminal/command-line/parse.ts';
import { PersonAtTerminal } from '../../19-the-terminal/person-at-terminal.ts';
import {
  readReach,
  talkAfterHandshake,
  wayTo,
  type Reach,
  type Talk,
} from '../../19-the-terminal/command-line/one-server.ts';
import type { Screen } from '../../19-the-terminal/screen.ts';
import { formOf } from '../prompt-arguments.ts';
import { addressLine } from '../context.ts';
import {
  getPrompt,
  listPrompts,
  listResources,
  listResourceTemplates,
  Offers,
  readResource,
  type ResourceContents,
} from '../offers.ts';
import { declaredBy } from '../prompts.ts';

/** The three forms of `call`; without a server, all of them. */
const wantedBy = (args: string[]): Reach => readReach(args, {}).reach;

// ─── One server ────────────────────────────────────────────────────────────────────────────────

async function onServer(wanted: Reach, screen: Screen, rows: LoadRows, talk: Talk) {
  const way = await wayTo(wanted, screen, await rows());
  return talkAfterHandshake(wanted, way, screen, talk);
}

export const readVerb: Run = async (args, screen, rows) => {
  const wanted = wantedBy(args);
  const [uri, more] = wanted.words;
  const form = 'write read SERVER ADDRESS, read URL ADDRESS, or read ADDRESS -- COMMAND ARGS';
  if (uri === undefined) throw usage(form);
  if (more !== undefined) throw usage(`what is ${more}? ${form}`);
  return onServer(wanted, screen, rows, async (connection, options) => {
    const contents = await readResource(connection, uri, options);
    if (contents.length === 0) throw new Stop(EXIT.failed, `there is nothing at ${uri}`, 'empty');
    if (wanted.isJson) screen.printJson(JSON.stringify({ contents }));
    else for (const each of contents) printContents(each, screen);
    return EXIT.done;
  });
};

/** Bytes go to a file or a program, never to a terminal. */
function printContents({ text, blob, uri, mimeType }: ResourceContents, screen: Screen) {
  if (typeof text === 'string') return screen.print(text.replace(/\r?\n$/, ''));
  const bytes = Buffer.from(String(blob ?? ''), 'base64');
  if (!process.stdout.isTTY) return void process.stdout.write(bytes);
  screen.print(`${uri}: ${mimeType ?? 'no type'}, ${bytes.length} bytes; to keep it, add > FILE`);
}

export const promptVerb: Run = async (args, screen, rows) => {
  const wanted = wantedBy(args);
  const [name, ...words] = wanted.words;
  const form = 'write prompt SERVER NAME key=value …, or prompt NAME key=value … -- COMMAND ARGS';
  if (name === undefined) throw usage(form);
  const given = pairs(words, '=', 'an argument is key=value');
  return onServer(wanted, screen, rows, async (connection, options) => {
    const prompts = await listPrompts(connection);
    const found = prompts.find((each) => each.name === name);
    const names = prompts.map((each) => each.name);
    const few = `it has ${names.slice(0, 20).join(', ') || 'none'}`;
    if (!found) throw usage(`there is no prompt ${name}; ${nearestHint(name, names, few)}`);
    const declared = declaredBy(found);
    const odd = Object.keys(given).find((key) => !declared.some((each) => each.name === key));
    const missing = declared.find((each) => each.isRequired && !Object.hasOwn(given, each.name));
    if (odd !== undefined || missing) throw usage(`${name}: ${formOf(declared)}`);
    const messages = await getPrompt(connection, name, given, options);
    if (wanted.isJson) screen.printJson(JSON.stringify({ messages }));
    else for (const { role, content } of messages) screen.print(`${role}: ${textIn(content)}`);
    return EXIT.done;
  });
};

function textIn(content: unknown[]) {
  const said = (block: unknown) => {
    const { text } = (block ?? {}) as Json;
    return typeof text === 'string' ? text : JSON.stringify(block);
  };
  return content.map(said).join('\n');
}

// ─── One server, or all ────────────────────────────────────────────────────────────────────────

/** By the key under which each is shown. */
type Listers = Record<string, (connection: McpConnection) => Promise<Json[]>>;

async function list(args: string[], screen: Screen, rows: LoadRows, listers: Listers) {
  const wanted = wantedBy(args);
  const [odd] = wanted.words;
  if (odd !== undefined) throw usage(`what is ${odd}? One server, or all of them`);
  const show = async (listed: (what: string) => Promise<Json[]>) => {
    const names = Object.keys(listers);
    const lists = await Promise.all(names.map(listed));
    const byName = Object.fromEntries(names.map((name, n) => [name, lists[n]]));
    if (wanted.isJson) screen.printJson(JSON.stringify(byName));
    else for (const row of lists.flat()) screen.print(lineOf(row));
    return EXIT.done;
  };
  if (wanted.server !== undefined)
    return onServer(wanted, screen, rows, (connection) =>
      show((what) => listers[what]!(connection)),
    );
  const composition = await rows();
  const person = new PersonAtTerminal(screen);
  const { allowServers } = wanted;
  const trust = new Trust({ warn: (text) => screen.warn(text), person, allowServers });
  const manager = new McpManager({
    ...forTalks(composition, (text) => screen.warn(text)),
    approve: (entry) => trust.approve(entry),
    load: (report) => loadHere(composition, report),
    prepare: () => composition.sources?.prepare?.(),
    onWarning: (warning) => screen.warn(warning),
  });
  try {
    await manager.loadAndConnect();
    for (const { state, reason } of manager.status())
      if (state === 'failed' && reason) screen.warn(reason);
    const offers = new Offers(manager);
    return await show((what) => offers.gather(what, listers[what]!));
  } finally {
    await manager.disconnectAll();
  }
}

function lineOf(row: Json) {
  const address = String(row.uri ?? row.uriTemplate ?? row.name);
  const isPrompt = row.uri === undefined && row.uriTemplate === undefined;
  const words = isPrompt ? ` (${formOf(declaredBy(row))})` : '';
  const whose = typeof row.server === 'string' ? `${row.server} ` : '';
  return whose + addressLine(address, isPrompt ? { ...row, name: '' } : row) + words;
}

export const resourcesVerb: Run = async (args, screen, rows) =>
  list(args, screen, rows, {
    resources: listResources,
    resourceTemplates: listResourceTemplates,
  });

export const promptsVerb: Run = async (args, screen, rows) =>
  list(args, screen, rows, { prompts: listPrompts });
