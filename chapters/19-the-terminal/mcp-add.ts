// `mcp add`, `mcp add-json` and `mcp remove`.

import {
  fillIn, isObject, lostWords, problemWithConfig, transportType, type Json, type TransportFactory,
} from '../../mcp.ts';
import { quoted } from '../17-the-gate/safe-text.ts';
import { PROGRAM, type Trust } from '../17-the-gate/trust.ts';
import { edit, fileOf, filesOf, serversIn, type Scope } from './config-files.ts';
import { EXIT, refused, usage } from './options.ts';
import type { Screen } from './screen.ts';

// ─── From words to an entry ───────────────────────────────────────────────────────────────────

export type AddFlags = {
  env?: string[];
  header?: string[];
  transport?: string;
  'client-id'?: string;
  'callback-port'?: string;
};

/** The words behind `mcp add NAME`: an address, or a command and its arguments. */
export function configFrom(words: string[], flags: AddFlags): Json {
  const { transport } = flags;
  const isRemote = transport !== undefined && transport !== 'stdio';
  if (!isRemote && !isAddress(words[0])) return commandConfig(words, flags);
  return { ...remoteConfig(words, flags), ...oauthConfig(flags) };
}

function commandConfig([command, ...args]: string[], { env = [] }: AddFlags): Json {
  if (!command) throw usage('what shall it start? Write: mcp add NAME -- COMMAND ARGS');
  const config: Json = { command };
  if (args.length > 0) config.args = args;
  if (env.length > 0) config.env = pairs(env, '=', '--env is NAME=VALUE');
  return config;
}

function remoteConfig([url = '', ...rest]: string[], flags: AddFlags): Json {
  const { transport: type = transportType({ url }), header = [] } = flags;
  if (url === '' || rest.length > 0)
    throw usage(`what is its address? Write: mcp add --transport ${type} NAME URL`);
  const config: Json = { type, url };
  if (header.length > 0) config.headers = pairs(header, ':', '--header is "Name: value"');
  return config;
}

/** For authorization servers that know us already, by an id and a port that they were told. */
function oauthConfig(flags: AddFlags): Json {
  const clientId = flags['client-id'];
  const port = flags['callback-port'];
  const oauth = { ...(clientId && { clientId }), ...(port && { callbackPort: Number(port) }) };
  return Object.keys(oauth).length > 0 ? { oauth } : {};
}

/** "Name: value" or NAME=VALUE, each as a key and a value. */
function pairs(texts: string[], mark: string, form: string): Json {
  const split = (text: string) => {
    const at = text.indexOf(mark);
    if (at < 1) throw usage(`${form}, not ${text}`);
    return [text.slice(0, at).trim(), text.slice(at + 1).trim()];
  };
  return Object.fromEntries(texts.map(split));
}

export const isAddress = (word = '') => /^(https?|wss?):\/\//.test(word);

export function jsonConfig(text: string): Json {
  try {
    const config: unknown = JSON.parse(text);
    if (isObject(config)) return config;
  } catch {}
  const example = `'{"command":"node","args":["server.js"]}'`;
  throw usage(`"mcp add-json" needs a JSON object such as ${example}`);
}

// ─── Into a file, and out of it ───────────────────────────────────────────────────────────────

type Desk = { screen: Screen; trust: Trust };

export function add(
  { screen, trust }: Desk, transports: Record<string, TransportFactory>, name: string,
  config: Json, scope: Scope = 'project',
): number {
  if (!/^[A-Za-z0-9][\w-]{0,63}$/.test(name)) {
    const form = 'a letter or digit, then letters, digits, - and _, up to 64';
    throw usage(`a name is ${form}; not ${quoted(name)}`);
  }
  checkConfig(name, config, transports);
  const file = fileOf(scope);
  edit(file, (servers) => {
    const first = `${PROGRAM} mcp remove -s ${scope} ${name}`;
    if (Object.hasOwn(servers, name))
      throw refused(`${file} has a server ${name} already; first: ${first}`);
    servers[name] = config;
  });
  const entry = { name, config, file, scope, authority: scope };
  const isProject = scope === 'project';
  try {
    trust.setDisabled(false, name);
    if (isProject) trust.allow(entry); // who typed this knows what it starts
  } catch (error) {
    throw refused(`${name} is in ${file} now, but ${(error as Error).message}`);
  }
  screen.print(`added ${name} to ${file}${isProject ? ', and approved it here' : ''}`);
  const lost = lostWords(entry);
  if (lost) screen.warn(`${name} ${lost}`);
  return EXIT.done;
}

function checkConfig(
  name: string, config: Json, transports: Record<string, TransportFactory>,
): void {
  const problem = problemWithConfig(config);
  if (problem) throw usage(problem);
  const type = transportType(config);
  const known = ['stdio', ...Object.keys(transports)];
  if (!known.includes(type))
    throw usage(`there is no transport "${type}"; there are ${known.join(', ')}`);
  if (type === 'stdio') return;
  try {
    // A transport looks at its configuration when it is made, and does nothing else then.
    transports[type]!(name, fillIn({ name, config, file: '', scope: 'user', authority: 'user' }), 1);
  } catch (error) {
    throw usage((error as Error).message);
  }
}

/** From the files. What was agreed to for it, and its logins, are the caller's. */
export function remove({ screen }: Desk, name: string, scope?: Scope): void {
  const scopes: Scope[] = scope ? [scope] : ['user', 'project'];
  const files = scopes.flatMap((each) => filesOf(each).map((file) => ({ scope: each, file })));
  const warn = (text: string) => screen.warn(text);
  const places = files.filter(({ file }) => Object.hasOwn(serversIn(file, warn), name));
  if (places.length === 0) throw refused(`no file has a server ${quoted(name)}`);
  const commands = places.map((place) => `${PROGRAM} mcp remove -s ${place.scope} ${name}`);
  const different = [...new Set(commands)];
  if (different.length > 1)
    throw usage(`${name} stands in several files. Write one of:\n  ${different.join('\n  ')}`);
  for (const { file } of places) {
    edit(file, (servers) => delete servers[name]);
    screen.print(`removed ${name} from ${file}`);
  }
}
