// The commands `mcp` and `trust`: which servers there are, where they come from, and which may start.

import { existsSync, lstatSync, mkdirSync, readFileSync, realpathSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import {
  fillIn, isObject, loadEntries, McpConnection, McpError, McpManager, problemWithConfig, readJsonFile, REVISIONS, show,
  type Json, type ServerEntry, type ServerStatus,
} from '../../mcp.ts';
import { extras } from '../../agent.ts';
import { nearest } from '../16-hands/nearest.ts';
import { Masker, quoted } from '../17-the-gate/safe-text.ts';
import { fingerprint, launchLines, PROGRAM, Trust } from '../17-the-gate/trust.ts';
import { EXIT, EXIT_FOR, parse, refused, Stop, usage } from './options.ts';
import { cut, type Screen } from './screen.ts';

type Scope = 'user' | 'project';

/** The state of each server, with the reason and its last words if it failed. */
export function statusLines(manager: McpManager, masker = new Masker()): string[] {
  const none = `no MCP servers are configured; add one: ${PROGRAM} mcp add NAME -- COMMAND ARGS`;
  const servers = manager.status().flatMap((status) => statusOf(status, masker));
  const broken = manager.warnings.map((warning) => `! ${masker.text(warning)}`);
  return servers.length + broken.length > 0 ? [...servers, ...broken] : [none];
}

function statusOf(status: ServerStatus, masker: Masker): string[] {
  const { name, state, file, shadows, protocolVersion, serverInfo, tools, startMs, reason, warnings } = status;
  const facts = [
    protocolVersion && `protocol ${protocolVersion}`,
    state === 'connected' && `${tools} ${tools === 1 ? 'tool' : 'tools'}`,
    startMs !== undefined && `started in ${startMs} ms`,
    serverInfo && nameAndVersion(serverInfo),
  ];
  const again = `/mcp reconnect ${shown(name)}, in a chat`;
  const maybe = [extras.logins?.where(name), reason].filter((line) => line !== undefined);
  const more = [from(file, shadows), ...how(status), ...maybe, ...warnings];
  if (state === 'pending') more.push(`to be asked about it: ${again}`);
  if (state === 'failed') more.push(`to try again: ${again}`);
  if (state === 'needs-auth') more.push('if you have a key for it: put it into the "headers" of its entry');
  return [
    `${shown(name)}: ${[state, ...facts.map((fact) => masker.text(fact || ''))].filter(Boolean).join(' · ')}`,
    ...more.map((line) => `  ${masker.text(line).replaceAll('\n', '\n  ')}`), // so that none looks like a server's
  ];
}

/** Whether it began with a handshake, and how we know that it had to. */
export function how({ protocolVersion, because }: { protocolVersion?: string; because?: string }): string[] {
  if (protocolVersion === undefined || because === undefined) return [];
  return [`${REVISIONS.includes(protocolVersion) ? 'with' : 'without'} a handshake: ${because}`];
}

export const nameAndVersion = ({ name, version }: Json) =>
  cut([name, version].map((part) => show(part ?? '')).join(' '), 80);
const shown = (name: string) => (/^[\w.-]+$/.test(name) ? name : quoted(name));
const from = (file: string, shadows?: string) => `from ${file}${shadows ? `, in place of the one in ${shadows}` : ''}`;

// ─── mcp … ────────────────────────────────────────────────────────────────────────────────────────────────────

const ACTIONS = ['list', 'get', 'add', 'add-json', 'remove', 'enable', 'disable', 'login', 'logout'];

export async function mcpCommand(args: string[], screen: Screen): Promise<number> {
  const { values, positionals } = parse(args, {
    json: { type: 'boolean' },
    scope: { type: 'string', short: 's' },
    env: { type: 'string', short: 'e', multiple: true },
    transport: { type: 'string', short: 't' },
    header: { type: 'string', short: 'H', multiple: true },
    'client-id': { type: 'string' },
    'callback-port': { type: 'string' },
    'no-color': { type: 'boolean' },
  });
  const [action = 'list', name, ...more] = positionals;
  const scope = (['user', 'project'] as const).find((each) => each === values.scope);
  if (values.scope !== undefined && !scope) throw usage(`--scope is user or project, not ${values.scope}`);
  const trust = new Trust({ warn: (text) => screen.warn(text) });
  const isJson = values.json ?? false;
  if (extras.logins) extras.logins.onWarning = (text) => screen.warn(text);
  if (!ACTIONS.includes(action)) throw usage(`there is no "mcp ${action}"; write mcp ${oneOf(action, ACTIONS)}`);
  if (action === 'list') return list(screen, trust, isJson);
  if (!name) throw usage(`"mcp ${action}" needs the name of a server`);
  if (action === 'get') return get(screen, trust, name, isJson);
  if (action === 'remove') return remove(screen, trust, name, scope);
  if (action === 'login') return logIn(screen, name);
  if (action === 'logout') return logOut(screen, name);
  const { env = [], header = [], transport } = values;
  const oauth = oauthConfig(values['client-id'], values['callback-port']);
  const isRemote = transport !== undefined && transport !== 'stdio';
  if (action === 'add' && (isRemote || isAddress(more[0])))
    return add(screen, trust, name, { ...remoteConfig(more, header, transport), ...oauth }, scope);
  if (action === 'add') return add(screen, trust, name, commandConfig(more, env), scope);
  if (action === 'add-json') return add(screen, trust, name, jsonConfig(more.join(' ')), scope);
  return enable(screen, trust, name, action === 'enable');
}

const oneOf = (word: string, known: string[]) => nearest(word, known, 1)[0] ?? known.join(' | ');

async function list(screen: Screen, trust: Trust, isJson: boolean): Promise<number> {
  const manager = new McpManager({ ...extras, approve: (entry) => trust.approve(entry), onWarning: () => {} });
  try {
    await manager.loadAndConnect();
    const masker = new Masker();
    if (isJson) for (const warning of manager.warnings) screen.warn(warning);
    if (isJson) screen.printJson(masker.json(manager.status()));
    else for (const line of statusLines(manager, masker)) screen.print(line);
  } finally {
    await manager.disconnectAll();
  }
  return EXIT.done;
}

/** The entry of that name, if it is one that could start. */
export function findEntry(name: string, screen: Screen): ServerEntry {
  const entries = loadEntries(homedir(), process.cwd(), (problem) => screen.warn(problem));
  const entry = entries.get(name);
  const [close] = nearest(name, entries.keys(), 1);
  const hint = close === undefined ? '; "mcp list" shows those there are' : `; did you mean ${quoted(close)}?`;
  if (!entry) throw refused(`no MCP server is called ${quoted(name)}${hint}`);
  const problem = problemWithConfig(entry.config);
  if (problem) throw refused(`the MCP server ${quoted(name)} in ${entry.file} cannot start: ${problem}`);
  return entry;
}

/** The configuration of a server that may start. */
export async function approved(name: string, screen: Screen, allowServers: string[] = []): Promise<Json> {
  const entry = findEntry(name, screen);
  const ask = screen.isInteractive ? screen.ask.bind(screen) : undefined;
  const approval = await new Trust({ warn: (text) => screen.warn(text), ask, allowServers }).approve(entry);
  if (approval === 'disabled') throw refused(`${name} is disabled; to change that: ${PROGRAM} mcp enable ${name}`);
  if (!approval) throw refused(`${name} is not approved`, 'untrusted');
  try {
    return fillIn(entry);
  } catch (error) {
    throw refused((error as Error).message);
  }
}

/** An entry without the values of its variables and headers: they are often secrets. */
function get(screen: Screen, trust: Trust, name: string, isJson: boolean): number {
  const entry = findEntry(name, screen);
  const { scope, file, shadows } = entry;
  const print = fingerprint(entry);
  const known = trust.list().servers.find((each) => each.name === name && each.fingerprint === print);
  const approved = scope === 'user' || known?.verdict === 'allow';
  const disabled = trust.isDisabled(name) || entry.config.disabled === true;
  const config = withoutValues(entry.config);
  if (isJson) {
    screen.printJson(JSON.stringify({ name, scope, file, shadows, approved, disabled, fingerprint: print, config }));
    return EXIT.done;
  }
  screen.print(`${shown(name)} (${scope}, ${from(file, shadows)})`);
  for (const line of launchLines(config)) screen.print(line);
  screen.print(`  ${approved ? 'approved' : 'not approved: it does not start'}${disabled ? ', disabled' : ''}`);
  screen.print(`  fingerprint: ${print}`);
  return EXIT.done;
}

function withoutValues(config: Json): Json {
  const namesOf = (values: Json) => Object.fromEntries(Object.keys(values).map((name) => [name, '***']));
  const hide = (key: string, value: unknown) =>
    ['env', 'headers'].includes(key) && isObject(value) ? namesOf(value) : key === 'assertion' ? '***' : value;
  return JSON.parse(new Masker().json(config), hide) as Json;
}

function enable(screen: Screen, trust: Trust, what: string, isEnabled: boolean): number {
  const [server = '', tool] = what.split('/');
  findEntry(server, screen);
  trust.setDisabled(!isEnabled, server, tool);
  screen.print(`${what} is ${isEnabled ? 'enabled' : 'disabled'} in this folder`);
  return EXIT.done;
}

// ─── mcp login, mcp logout ────────────────────────────────────────────────────────────────────────────────────

/** Only where somebody sits: a login is somebody's agreement, in a browser. */
export const NO_TERMINAL = 'a login needs a terminal: somebody has to agree to it in a browser';

async function logIn(screen: Screen, name: string): Promise<number> {
  if (!screen.isInteractive) throw refused(NO_TERMINAL, 'auth');
  const config = await approved(name, screen);
  const stopping = new AbortController();
  const stopped = new Promise<never>((_, reject) => {
    screen.onInterrupt = () => {
      stopping.abort();
      reject(new McpError('aborted', 'the login was stopped'));
    };
  });
  screen.open(); // from now on Ctrl-C is a key, and no "^C" on the screen
  try {
    screen.print(await Promise.race([logInAt(name, config, screen, stopping.signal), stopped]));
    return EXIT.done;
  } catch (error) {
    const { kind, message } = error as McpError;
    throw new Stop(EXIT_FOR[kind] ?? EXIT.failed, new Masker().text(message), kind);
  }
}

async function logInAt(name: string, config: Json, screen: Screen, signal: AbortSignal): Promise<string> {
  const { logins } = extras;
  if (logins) logins.believesVerdicts = false;
  const open = await countTools(name, config).catch((error) => error as Error);
  const isWanted = logins?.isWanted(name);
  if (open instanceof Error && !isWanted) throw open; // it has other troubles
  if (isWanted) await logins?.logIn(name, screen, signal);
  const count = isWanted ? await countTools(name, config) : open;
  const tools = count === 1 ? '1 tool' : `${count} tools`;
  const other = `you were logged in before (for another account, first: ${PROGRAM} mcp logout ${name})`;
  return `${name}: ${isWanted ? 'you are logged in' : logins?.where(name) ? other : 'it wants no login'}, ${tools}`;
}

/** What the server says to us as we are. */
async function countTools(name: string, config: Json): Promise<number> {
  const connection = new McpConnection(name, config, { ...extras });
  try {
    await connection.connect();
    await connection.initialize();
    return (await connection.listTools()).length;
  } finally {
    await connection.close();
  }
}

async function logOut(screen: Screen, name: string): Promise<number> {
  const isDone = await extras.logins?.logOut(name);
  if (!isDone) throw refused(`you are not logged in at ${quoted(name)}`, 'auth');
  screen.print(`logged out of ${name}`);
  return EXIT.done;
}

// ─── mcp add, mcp remove: files that people wrote, and may have written by hand ───────────────────────────────

const fileOf = (scope: Scope) =>
  scope === 'user' ? join(homedir(), '.claude', 'settings.json') : join(process.cwd(), '.mcp.json');
const filesOf = (scope: Scope) =>
  scope === 'user' ? [fileOf('user')] : [join(process.cwd(), '.claude', 'settings.json'), fileOf('project')];

function commandConfig([command, ...args]: string[], env: string[]): Json {
  if (!command) throw usage('what shall it start? Write: mcp add NAME -- COMMAND ARGS');
  const pairs = env.map((pair) => splitAt(pair, '=', '--env is NAME=VALUE'));
  return { command, ...(args.length > 0 && { args }), ...(pairs.length > 0 && { env: Object.fromEntries(pairs) }) };
}

/** "Name: value" or NAME=VALUE, as two. */
function splitAt(text: string, mark: string, form: string): [string, string] {
  const at = text.indexOf(mark);
  if (at < 1) throw usage(`${form}, not ${text}`);
  return [text.slice(0, at).trim(), text.slice(at + 1).trim()];
}

export const isAddress = (word = '') => /^(https?|wss?):\/\//.test(word);

/** The type of a server that is reached by an address, unless somebody says otherwise. */
export const typeFor = (url: string) => (url.startsWith('ws') ? 'ws' : 'http');

function remoteConfig([url, ...rest]: string[], headers: string[], type = typeFor(url ?? '')): Json {
  if (!url || rest.length > 0) throw usage(`what is its address? Write: mcp add --transport ${type} NAME URL`);
  const pairs = headers.map((pair) => splitAt(pair, ':', '--header is "Name: value"'));
  return { type, url, ...(pairs.length > 0 && { headers: Object.fromEntries(pairs) }) };
}

/** For authorization servers that know us already, under an id and at a port that somebody told them. */
function oauthConfig(clientId?: string, port?: string): Json {
  const oauth = { ...(clientId && { clientId }), ...(port && { callbackPort: Number(port) }) };
  return Object.keys(oauth).length > 0 ? { oauth } : {};
}

function jsonConfig(text: string): Json {
  try {
    const config: unknown = JSON.parse(text);
    if (isObject(config)) return config;
  } catch {}
  throw usage(`"mcp add-json" needs a JSON object such as '{"command":"node","args":["server.js"]}'`);
}

function add(screen: Screen, trust: Trust, name: string, config: Json, scope: Scope = 'project'): number {
  if (!/^[A-Za-z0-9][\w-]{0,63}$/.test(name))
    throw usage(`a name is a letter or digit, then letters, digits, - and _, up to 64; not ${quoted(name)}`);
  const problem = problemWithConfig(config);
  if (problem) throw usage(problem);
  const { type = 'stdio' } = config;
  const known = ['stdio', ...Object.keys(extras.transports)];
  if (!known.includes(`${type}`)) throw usage(`there is no transport "${type}"; there are ${known.join(', ')}`);
  if (type !== 'stdio') tryConfig(name, config);
  const file = fileOf(scope);
  edit(file, (servers) => {
    if (Object.hasOwn(servers, name))
      throw refused(`${file} has a server ${name} already; first: ${PROGRAM} mcp remove -s ${scope} ${name}`);
    servers[name] = config;
  });
  trust.setDisabled(false, name);
  // Whoever typed this has seen what it starts.
  if (scope === 'project') trust.allow({ name, config, file, scope, authority: scope });
  screen.print(`added ${name} to ${file}${scope === 'project' ? ', and approved it here' : ''}`);
  return EXIT.done;
}

/** A transport looks at its configuration when it is made, and does nothing else then. */
function tryConfig(name: string, config: Json): void {
  try {
    extras.transports[`${config.type}`]!(name, fillIn({ name, config, file: '', scope: 'user', authority: 'user' }), 1);
  } catch (error) {
    throw usage((error as Error).message);
  }
}

async function remove(screen: Screen, trust: Trust, name: string, scope?: Scope): Promise<number> {
  const scopes = scope ? [scope] : (['user', 'project'] as const);
  const found = scopes.flatMap((each) => filesOf(each).map((file) => ({ scope: each, file })));
  const places = found.filter(({ file }) => Object.hasOwn(serversIn(file, screen), name));
  if (places.length === 0) throw refused(`no file has a server ${quoted(name)}`);
  const commands = new Set(places.map((place) => `${PROGRAM} mcp remove -s ${place.scope} ${name}`));
  if (commands.size > 1) throw usage(`${name} stands in several files. Write one of:\n  ${[...commands].join('\n  ')}`);
  for (const { file } of places) {
    edit(file, (servers) => delete servers[name]);
    screen.print(`removed ${name} from ${file}`);
  }
  trust.revoke(name);
  await extras.logins?.logOut(name);
  return EXIT.done;
}

function serversIn(file: string, screen: Screen): Json {
  try {
    const root = readJsonFile(file) ?? {};
    return isObject(root.mcpServers) ? root.mcpServers : isFlat(file, root) ? root : {};
  } catch (error) {
    screen.warn(`${file} cannot be read: ${(error as Error).message}`);
    return {};
  }
}

/** .mcp.json may also be the bare mapping of names to servers. */
const isFlat = (file: string, root: Json) =>
  file.endsWith('.mcp.json') && !Object.hasOwn(root, 'mcpServers') && Object.values(root).some(isObject);

/** Changes the servers in a file and leaves the rest of it as it is. */
function edit(file: string, change: (servers: Json) => void): void {
  const old = lstatSync(file, { throwIfNoEntry: false });
  const root = old ? readStrictly(file) : {};
  if (!isFlat(file, root)) root.mcpServers ??= {};
  const servers = isFlat(file, root) ? root : root.mcpServers;
  if (!isObject(servers)) throw refused(`${file}: its "mcpServers" is not an object; correct that first`);
  change(servers);
  mkdirSync(dirname(file), { recursive: true });
  // People link their own settings to a folder that they share; a link in a project may lead anywhere.
  const target = file === fileOf('user') && existsSync(file) ? realpathSync(file) : file;
  const mode = old?.isFile() ? old.mode & 0o777 : file === fileOf('user') ? 0o600 : 0o644;
  writeFileSync(`${target}.${process.pid}`, `${JSON.stringify(root, null, 2)}\n`, { flag: 'wx', mode });
  renameSync(`${target}.${process.pid}`, target); // at once: never half a file
}

/** Comments are read elsewhere, but not here: JSON.stringify would lose them. */
function readStrictly(file: string): Json {
  try {
    const root: unknown = JSON.parse(readFileSync(file, 'utf8').replace(/^\ufeff/, ''));
    if (isObject(root)) return root;
  } catch {}
  throw refused(`${file} has comments or is no JSON object: to keep what is there, edit it by hand`);
}

// ─── trust … ──────────────────────────────────────────────────────────────────────────────────────────────────

export async function trustCommand(args: string[], screen: Screen): Promise<number> {
  const { positionals } = parse(args, { 'no-color': { type: 'boolean' } });
  const [action = 'list', name] = positionals;
  const known = ['list', 'allow', 'revoke', 'reset'];
  if (!known.includes(action)) throw usage(`there is no "trust ${action}"; write trust ${oneOf(action, known)}`);
  const trust = new Trust({ warn: (text) => screen.warn(text) });
  if (action === 'list') return listTrust(screen, trust);
  if (action !== 'reset' && !name) throw usage(`"trust ${action}" needs a name, as "trust list" shows them`);
  if (action !== 'allow') return revoke(screen, trust, action === 'reset' ? undefined : name);
  const entry = findEntry(name!, screen);
  trust.allow(entry);
  for (const line of launchLines(entry.config)) screen.print(line);
  screen.print(`${name} may start in ${trust.project}, as long as it is exactly this: ${fingerprint(entry)}`);
  return EXIT.done;
}

async function revoke(screen: Screen, trust: Trust, name?: string): Promise<number> {
  const servers = name ? [name] : trust.list().servers.map((each) => each.name);
  const count = trust.revoke(name);
  const logOuts = await Promise.all(servers.map((each) => extras.logins?.logOut(each)));
  if (name && count === 0 && !logOuts[0])
    throw refused(`nothing was agreed to for ${quoted(name)} in ${trust.project}`);
  screen.print(`revoked: ${count === 1 ? '1 decision' : `${count} decisions`} about ${name ?? trust.project}`);
  return EXIT.done;
}

function listTrust(screen: Screen, trust: Trust): number {
  const { servers, grants, disabled } = trust.list();
  if (servers.length + grants.length + disabled.length === 0) screen.print(`nothing is agreed to in ${trust.project}`);
  for (const each of servers) screen.print(`server ${shown(each.name)}: ${each.verdict} ${each.fingerprint}`);
  for (const grant of grants) {
    if (grant.kind === 'mcp')
      screen.print(`tool ${shown(grant.tool)} of ${shown(grant.server)}: always (${grant.definition})`);
    if (grant.kind === 'shell') screen.print(`command ${quoted(grant.command)}: always`);
    if (grant.kind === 'write') screen.print(`file ${quoted(grant.path)}: always`);
  }
  for (const { server, tool } of disabled) screen.print(`${tool ? `tool ${tool} of ` : 'server '}${server}: disabled`);
  return EXIT.done;
}
