// The command `mcp`: which servers there are, where they come from, and whether they work.

import {
  isObject,
  isSwitchedOff,
  McpManager,
  needsApproval,
  textOf,
  type Json,
  type KnownServers,
} from '../../../mcp.ts';
import { nearest } from '../../16-hands/nearest.ts';
import { withoutKeys } from '../../17-the-gate/addresses.ts';
import { Masker, quoted } from '../../17-the-gate/safe-text.ts';
import { fingerprint, launchLines } from '../../17-the-gate/trust.ts';
import { findEntry, keeping, askFor, serverAndTool } from '../entries.ts';
import { EXIT, refused, usage } from '../exit.ts';
import { forConnections, loadHere, type Composition, type LoadRows } from '../host.ts';
import { PersonAtTerminal } from '../person-at-terminal.ts';
import type { Screen } from '../screen.ts';
import { costsOf, from, shownName, statusLines } from '../status.ts';
import { loginCommand, logoutCommand } from './login-command.ts';
import {
  add,
  configFrom,
  jsonConfig,
  placeForScope,
  remove,
  type CommandContext,
} from './mcp-add.ts';
import { FLAG, parseFlags, TEXT_FLAG, TEXTS_FLAG } from './parse.ts';

const FLAGS = {
  json: FLAG,
  from: TEXT_FLAG,
  scope: { ...TEXT_FLAG, short: 's' },
  env: { ...TEXTS_FLAG, short: 'e' },
  transport: { ...TEXT_FLAG, short: 't' },
  header: { ...TEXTS_FLAG, short: 'H' },
  'client-id': TEXT_FLAG,
  'callback-port': TEXT_FLAG,
  yes: FLAG,
  'no-color': FLAG,
} as const;

const ACTIONS = [
  'list',
  'get',
  'add',
  'add-json',
  'remove',
  'enable',
  'disable',
  'login',
  'logout',
];

export async function mcpCommand(args: string[], screen: Screen, rows: LoadRows): Promise<number> {
  const composition = await rows();
  const { logins } = composition;
  const { values, positionals } = parseFlags(args, FLAGS);
  const [action = 'list', name, ...more] = positionals;
  const { scope } = values;
  if (scope !== undefined) placeForScope(composition, scope); // it tells of a mistake first
  const desk = { screen, trust: keeping(screen), composition };
  const isJson = values.json;
  const others = composition.mcp ?? {};
  const known = [...ACTIONS, ...Object.keys(others)];
  if (!known.includes(action))
    throw usage(`there is no "mcp ${action}"; write mcp ${nearestOrAll(action, known)}`);
  if (action === 'list') return list(desk, isJson);
  const isFrom = action === 'add' && values.from !== undefined && others['add-from'];
  const words = isFrom ? [values.from!, ...positionals.slice(1)] : positionals.slice(1);
  const other = isFrom || others[action];
  if (values.yes) words.push('--yes');
  if (other) return other(words, desk, new PersonAtTerminal(screen), scope);
  if (!name) throw usage(`"mcp ${action}" needs the name of a server`);
  if (action === 'get') return get(desk, name, isJson);
  if (action === 'add') return add(desk, name, configFrom(more, values), scope);
  if (action === 'add-json') return add(desk, name, jsonConfig(more.join(' ')), scope);
  if (action === 'login') return loginCommand(name, screen, composition);
  if (action === 'logout') return logoutCommand(name, screen, logins);
  if (action === 'enable') return enable(desk, name);
  if (action === 'disable') return disable(desk, name);
  await remove(desk, logins, name, scope);
  return EXIT.done;
}

/** The word that was meant, or all there are. */
export const nearestOrAll = (word: string, known: string[]) =>
  nearest(word, known, 1)[0] ?? known.join(' | ');

async function list(
  { screen, trust, composition }: CommandContext,
  isJson: boolean,
): Promise<number> {
  const masker = new Masker();
  const manager = new McpManager({
    ...forConnections(composition),
    approve: (entry) => {
      masker.learnAddress(entry.config.url, entry.authority);
      return trust.approve(entry);
    },
    onWarning: () => {}, // they are shown with the servers
    load: (report) =>
      loadHere(composition, (problem) => {
        isBroken = true;
        report(problem);
      }),
    prepare: () => composition.sources?.prepare?.(),
    known: onlyKept(composition.known), // for the Tab of a shell
  });
  let isBroken = false; // one of the files
  const { logins } = composition; // what else there is to know comes by and by: /mcp has it
  try {
    await manager.loadAndConnect();
    if (isJson) {
      for (const warning of manager.warnings) screen.warn(warning);
      screen.printJson(masker.json(pricedStatus(manager)));
    } else {
      screen.printLines(statusLines(manager, { masker, rows: { logins } }));
    }
  } finally {
    await manager.disconnectAll();
  }
  return isBroken && manager.status().length === 0 ? EXIT.refused : EXIT.done;
}

/** Each server starts, whatever is known of it. */
const onlyKept = (known?: KnownServers): KnownServers | undefined =>
  known && { find: () => undefined, keep: (...given) => known.keep(...given) };

function pricedStatus(manager: McpManager): Json[] {
  const costs = costsOf(manager);
  return manager.status().map((status) => ({ ...status, tokens: costs.get(status.name) ?? 0 }));
}

/** An entry without the values of its variables and headers: they are often secrets. */
async function get(desk: CommandContext, name: string, isJson: boolean): Promise<number> {
  const { screen, trust, composition } = desk;
  const entry = await findEntry(name, screen, composition);
  const { scope, file, shadows, blocked } = entry;
  const why = composition.sources?.explain(name) ?? [];
  const print = fingerprint(entry);
  const isThis = (each: { name: string; fingerprint: string }) =>
    each.name === name && each.fingerprint === print;
  const known = trust.list().servers.find(isThis);
  const approved = !needsApproval(entry) || known?.verdict === 'allow';
  const disabled = trust.isDisabled(name) || isSwitchedOff(entry.config);
  const config = withoutValues(entry.config);
  if (isJson) {
    const origin = { name, scope, file, shadows, blocked };
    const about = { ...origin, approved, disabled, fingerprint: print, config, why };
    screen.printJson(JSON.stringify(about));
    return EXIT.done;
  }
  const state = approved ? 'approved' : 'not approved: it does not start';
  screen.print(`${shownName(name)} (${scope}, ${from(file, shadows)})`);
  for (const line of launchLines(config)) screen.print(line);
  screen.print(`  ${state}${disabled ? ', disabled' : ''}`);
  if (blocked) screen.print(`  it does not start: ${blocked}`);
  screen.print(`  fingerprint: ${print}`);
  for (const line of why) screen.print(line);
  return EXIT.done;
}

function withoutValues(config: Json): Json {
  const hide = (key: string, value: unknown) => {
    if (key === 'assertion') return '***';
    if (typeof value === 'string') return withoutKeys(value);
    if (!['env', 'headers'].includes(key) || !isObject(value)) return value;
    return Object.fromEntries(Object.keys(value).map((name) => [name, '***']));
  };
  return JSON.parse(new Masker().json(config), hide) as Json;
}

async function enable(
  { screen, trust, composition }: CommandContext,
  what: string,
): Promise<number> {
  const { entry, server, tool } = await findNamed(what, screen, composition);
  if (tool !== undefined && !trust.isDisabled(server, tool)) {
    const off = trust.list().disabled.filter((each) => each.server === server);
    const [close] = nearest(
      tool,
      off.flatMap((each) => each.tool ?? []),
      1,
    );
    const hint = close === undefined ? '' : `; did you mean ${quoted(close)}?`;
    throw refused(`no tool ${quoted(tool)} of ${server} is disabled in this folder${hint}`);
  }
  trust.setDisabled(false, server, tool);
  const isOff = tool === undefined && isSwitchedOff(entry.config);
  const still = `its entry in ${entry.file} keeps it off`;
  screen.print(isOff ? `${what}: ${still}` : `${what} is enabled in this folder`);
  return EXIT.done;
}

/** A misspelt tool would be switched off without being there, and the one that was meant would stay
 *  on. So the server is asked, if it may start: `mcp list` starts it as well. */
async function disable(desk: CommandContext, what: string): Promise<number> {
  const { screen, trust, composition } = desk;
  const { entry, server, tool } = await findNamed(what, screen, composition);
  try {
    const why = tool === undefined ? undefined : await askFor(tool, entry, composition);
    const unknown = `whether ${server} has a tool ${quoted(`${tool}`)} is not known`;
    if (why) screen.warn(new Masker().text(`${unknown}: ${why}`));
  } catch (error) {
    throw refused(textOf(error));
  }
  trust.setDisabled(true, server, tool);
  screen.print(`${what} is disabled in this folder`);
  return EXIT.done;
}

async function findNamed(what: string, screen: Screen, composition: Composition) {
  await composition.sources?.prepare?.();
  const entries = loadHere(composition, () => {}); // findEntry warns
  const { server, tool } = serverAndTool(what, entries.keys());
  return { entry: await findEntry(server, screen, composition), server, tool };
}
