// The command `mcp`: which servers there are, where they come from, and whether they work.

import { isObject, McpManager, needsApproval, type Json } from '../../mcp.ts';
import { nearest } from '../16-hands/nearest.ts';
import { Masker } from '../17-the-gate/safe-text.ts';
import { fingerprint, launchLines, type Trust } from '../17-the-gate/trust.ts';
import { findEntry, keeping } from './entries.ts';
import { forConnections, type Composition } from './host.ts';
import { logOut, loginCommand, logoutCommand } from './login-command.ts';
import { add, configFrom, jsonConfig, remove } from './mcp-add.ts';
import { EXIT, parse, usage } from './options.ts';
import type { Screen } from './screen.ts';
import { from, shown, statusLines } from './status.ts';

const FLAGS = {
  json: { type: 'boolean' },
  scope: { type: 'string', short: 's' },
  env: { type: 'string', short: 'e', multiple: true },
  transport: { type: 'string', short: 't' },
  header: { type: 'string', short: 'H', multiple: true },
  'client-id': { type: 'string' },
  'callback-port': { type: 'string' },
  'no-color': { type: 'boolean' },
} as const;

const ACTIONS = [
  'list', 'get', 'add', 'add-json', 'remove', 'enable', 'disable', 'login', 'logout',
];

export async function mcpCommand(
  args: string[],
  screen: Screen,
  composition: Composition,
): Promise<number> {
  const { transports, logins } = composition;
  const { values, positionals } = parse(args, FLAGS);
  const [action = 'list', name, ...more] = positionals;
  const scope = (['user', 'project'] as const).find((each) => each === values.scope);
  if (values.scope !== undefined && !scope)
    throw usage(`--scope is user or project, not ${values.scope}`);
  const desk = { screen, trust: keeping(screen) };
  const isJson = values.json ?? false;
  if (!ACTIONS.includes(action))
    throw usage(`there is no "mcp ${action}"; write mcp ${oneOf(action, ACTIONS)}`);
  if (action === 'list') return list(desk, composition, isJson);
  if (!name) throw usage(`"mcp ${action}" needs the name of a server`);
  if (action === 'get') return get(desk, name, isJson);
  if (action === 'add') return add(desk, transports, name, configFrom(more, values), scope);
  if (action === 'add-json') return add(desk, transports, name, jsonConfig(more.join(' ')), scope);
  if (action === 'login') return loginCommand(name, screen, composition);
  if (action === 'logout') return logoutCommand(name, screen, logins);
  if (action !== 'remove') return enable(desk, name, action === 'enable');
  remove(desk, name, scope);
  try {
    desk.trust.revoke(name);
  } finally {
    await logOut(name, logins); // also if the other store is damaged
  }
  return EXIT.done;
}

/** The word that was meant, or all there are. */
export const oneOf = (word: string, known: string[]) =>
  nearest(word, known, 1)[0] ?? known.join(' | ');

type Desk = { screen: Screen; trust: Trust };

async function list(
  { screen, trust }: Desk,
  composition: Composition,
  isJson: boolean,
): Promise<number> {
  const manager = new McpManager({
    ...forConnections(composition),
    approve: (entry) => trust.approve(entry),
    onWarning: () => {}, // they are shown with the servers
  });
  const masker = new Masker();
  const whereLoggedIn = (server: string) => composition.logins?.where(server);
  try {
    await manager.loadAndConnect();
    if (isJson) {
      for (const warning of manager.warnings) screen.warn(warning);
      screen.printJson(masker.json(manager.status()));
    } else {
      for (const line of statusLines(manager, { masker, whereLoggedIn })) screen.print(line);
    }
  } finally {
    await manager.disconnectAll();
  }
  return EXIT.done;
}

/** An entry without the values of its variables and headers: they are often secrets. */
function get({ screen, trust }: Desk, name: string, isJson: boolean): number {
  const entry = findEntry(name, screen);
  const { scope, file, shadows } = entry;
  const print = fingerprint(entry);
  const isThis = (each: { name: string; fingerprint: string }) =>
    each.name === name && each.fingerprint === print;
  const known = trust.list().servers.find(isThis);
  const approved = !needsApproval(entry) || known?.verdict === 'allow';
  const disabled = trust.isDisabled(name) || entry.config.disabled === true;
  const config = withoutValues(entry.config);
  if (isJson) {
    const about = { name, scope, file, shadows, approved, disabled, fingerprint: print, config };
    screen.printJson(JSON.stringify(about));
    return EXIT.done;
  }
  const state = approved ? 'approved' : 'not approved: it does not start';
  screen.print(`${shown(name)} (${scope}, ${from(file, shadows)})`);
  for (const line of launchLines(config)) screen.print(line);
  screen.print(`  ${state}${disabled ? ', disabled' : ''}`);
  screen.print(`  fingerprint: ${print}`);
  return EXIT.done;
}

function withoutValues(config: Json): Json {
  const hide = (key: string, value: unknown) => {
    if (key === 'assertion') return '***';
    if (!['env', 'headers'].includes(key) || !isObject(value)) return value;
    return Object.fromEntries(Object.keys(value).map((name) => [name, '***']));
  };
  return JSON.parse(new Masker().json(config), hide) as Json;
}

function enable({ screen, trust }: Desk, what: string, isEnabled: boolean): number {
  const [server = '', tool] = what.split('/');
  findEntry(server, screen);
  trust.setDisabled(!isEnabled, server, tool);
  screen.print(`${what} is ${isEnabled ? 'enabled' : 'disabled'} in this folder`);
  return EXIT.done;
}
