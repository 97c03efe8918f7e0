// `mcp add`, `mcp add-json` and `mcp remove`.

import {
  asObject,
  fillIn,
  isObject,
  lostWords,
  onNode,
  problemWithConfig,
  transportType,
  textOf,
  type Json,
} from '../../../mcp.ts';
import { keysIn } from '../../17-the-gate/addresses.ts';
import { isWrittenSecret, printable, quoted } from '../../17-the-gate/safe-text.ts';
import { fingerprint, PROGRAM, type Trust } from '../../17-the-gate/trust.ts';
import { edit, serversAt, usualPlaces } from '../config-files.ts';
import { both } from '../entries.ts';
import { EXIT, refused, usage } from '../exit.ts';
import type { Composition, ConfigPlace, ServerLogins } from '../host.ts';
import { logOutOf } from './login-command.ts';
import { isUrl, pairs, schemeHint } from './parse.ts';
import type { Screen } from '../screen.ts';

// ─── From words to an entry ───────────────────────────────────────────────────────────────────

type AddFlags = {
  env: string[];
  header: string[];
  transport?: string;
  clientId?: string;
  callbackPort?: string;
};

/** The words behind `mcp add NAME`: an address, or a command and its arguments. */
export function configFrom(words: string[], flags: AddFlags): Json {
  const { transport } = flags;
  const isRemote = transport !== undefined && transport !== 'stdio';
  if (!isRemote && !isUrl(words[0])) return commandConfig(words, flags);
  return { ...remoteConfig(words, flags), ...oauthConfig(flags) };
}

function commandConfig([command, ...args]: string[], { env }: AddFlags): Json {
  if (!command) throw usage('what shall it start? Write: mcp add NAME -- COMMAND ARGS');
  const hint = schemeHint(command);
  if (hint) throw usage(`${command} is no command; ${hint}`);
  const config: Json = { command };
  if (args.length > 0) config.args = args;
  if (env.length > 0) config.env = pairs(env.map(asVariable), '=', '--env is NAME or NAME=VALUE');
  return config;
}

/** A name alone is kept as a variable, not with the value that it has now. */
const asVariable = (text: string) => (text.includes('=') ? text : `${text}=\${${text}}`);

function remoteConfig([url = '', ...rest]: string[], flags: AddFlags): Json {
  const { transport: type = transportType({ url }), header } = flags;
  if (url === '' || rest.length > 0)
    throw usage(`what is its address? Write: mcp add --transport ${type} NAME URL`);
  const config: Json = { type, url };
  if (header.length > 0) config.headers = pairs(header, ':', '--header is "Name: value"');
  return config;
}

/** For authorization servers that know us already, by an id and a port that they were told. */
function oauthConfig({ clientId, callbackPort: port }: AddFlags): Json {
  const oauth = { ...(clientId && { clientId }), ...(port && { callbackPort: Number(port) }) };
  return Object.keys(oauth).length > 0 ? { oauth } : {};
}

export function jsonConfig(text: string): Json {
  try {
    const config: unknown = JSON.parse(text);
    if (isObject(config)) return config;
  } catch {}
  const example = `'{"command":"node","args":["server.js"]}'`;
  throw usage(`"mcp add-json" needs a JSON object such as ${example}`);
}

// ─── Into a file, and out of it ───────────────────────────────────────────────────────────────

export type CommandContext = { screen: Screen; trust: Trust; composition: Composition };

const placesFor = ({ sources }: Composition) => sources?.places() ?? usualPlaces();

/** Of the places of a scope, the one where a new server goes. */
export function placeForScope(composition: Composition, scope = 'project'): ConfigPlace {
  const places = placesFor(composition);
  const place = places.findLast((each) => each.scope === scope);
  if (place) return place;
  const scopes = [...new Set(places.map((each) => each.scope))].join(', ');
  throw usage(`--scope is one of ${scopes}; not ${scope}`);
}

export function add(desk: CommandContext, name: string, config: Json, scope?: string): number {
  const { screen, trust, composition } = desk;
  const { sources } = composition;
  if (!/^[A-Za-z0-9][\w-]{0,63}$/.test(name)) {
    const form = 'a letter or digit, then letters, digits, - and _, up to 64';
    throw usage(`a name is ${form}; not ${quoted(name)}`);
  }
  checkConfig(name, config, composition);
  const refusal = sources?.refusal?.(name, config);
  if (refusal) throw refused(`${name} cannot be added: ${refusal}`);
  const place = placeForScope(composition, scope);
  const { file, authority } = place;
  const taken = (where: string) => {
    const first = `${PROGRAM} mcp remove -s ${place.scope} ${name}`;
    return refused(`${where} has a server ${name} already; first: ${first}`);
  };
  const isTwin = (each: PlaceOf) => each.scope === place.scope && each.file !== file;
  const twin = placesOf(name, desk).find(isTwin);
  if (twin) throw taken(twin.file);
  edit(place, (servers) => {
    if (Object.hasOwn(servers, name)) throw taken(file);
    servers[name] = config;
  });
  const entry = { name, config, file, scope: place.scope, authority };
  const isProject = authority === 'project';
  try {
    trust.setDisabled(false, name);
    if (isProject) trust.allow(entry); // who typed this knows what it starts
  } catch (error) {
    throw refused(`${name} is in ${file} now, but ${textOf(error)}`);
  }
  screen.print(`added ${name} to ${file}${isProject ? ', and approved it here' : ''}`);
  if (isProject) warnOfSecrets(screen, name, config, file);
  const lost = lostWords(entry);
  if (lost) screen.warn(`${name} ${lost}`);
  const builtIn = composition.demo?.(() => new Map())(() => {});
  if (builtIn?.has(name)) screen.warn(`with --demo, the built-in server ${name} takes its place`);
  return EXIT.done;
}

/** The project's file is for everybody who has the project, and is soon in its history. */
function warnOfSecrets(screen: Screen, name: string, config: Json, file: string): void {
  const fields = Object.entries({ ...asObject(config.env), ...asObject(config.headers) });
  const values = [
    ...fields.map(([key, value]) => ({ key, value: `${value}`, where: key })),
    ...valuesIn([config.args ?? []].flat().map(String)),
  ];
  const written = values.filter(({ key, value }) => isWrittenSecret(key, value));
  const secrets = written.map(({ where }) => where);
  secrets.push(...fields.filter(([, value]) => hasKey(`${value}`)).map(([key]) => key));
  const addresses = [config.url, config.args].flat().filter((each) => typeof each === 'string');
  if (addresses.some(hasKey)) secrets.push('the address');
  if (secrets.length === 0) return;
  const variable = `\${${name.replaceAll('-', '_').toUpperCase()}_TOKEN}`;
  const list = [...new Set(secrets)].map((each) => printable(each)).join(', ');
  screen.warn(
    `${file} is for everybody who has the project, and it holds what looks like a secret now: ${list}. ` +
      `Better: write a variable of your environment in its place, such as '${variable}', ` +
      `or add the server with -s user. First: ${PROGRAM} mcp remove -s project ${name}`,
  );
}

/** Is there an address with a key in it? A name before the @ is none, nor is a variable. */
function hasKey(text: string): boolean {
  const written = keysIn(text).map((key) => key.replace(/\$\{[^{}]{0,200}\}/g, ''));
  return written.some((key) => key.slice(key.indexOf(':') + 1) !== '');
}

/** --token VALUE and --token=VALUE. */
function valuesIn(args: string[]): { key: string; value: string; where: string }[] {
  return args.map((arg, n) => {
    const [, flag, given] = /^--?([\w-]{1,100})=(.*)$/s.exec(arg) ?? [];
    const [, before] = /^--?([\w-]{1,100})$/.exec(args[n - 1] ?? '') ?? [];
    const value = given ?? arg;
    const isValue = value.length >= 8 && !value.startsWith('-') && !value.includes('/');
    return { key: isValue ? (flag ?? before ?? '') : '', value, where: 'an argument' };
  });
}

function checkConfig(name: string, config: Json, composition: Composition): void {
  const problem = problemWithConfig(config, onNode(composition));
  if (problem) throw usage(problem);
  const type = transportType(config);
  if (type === 'stdio') return;
  try {
    // A transport looks at its configuration when it is made, and does nothing else then.
    const entry = { name, config, file: '', scope: 'user', authority: 'user' } as const;
    composition.transports[type]!(name, fillIn(entry, withAll(config)), 1);
  } catch (error) {
    throw usage(textOf(error));
  }
}

/** A variable need not be set when a server is added, only when it starts. */
function withAll(config: Json): NodeJS.ProcessEnv {
  const names = [...JSON.stringify(config).matchAll(/\$\{(\w+)/g)].map(([, name]) => name!);
  return { ...Object.fromEntries(names.map((name) => [name, 'x'])), ...process.env };
}

/** From the files, and with it what was agreed to for it, and its logins. Those of another server of
 *  that name, which remains, are not touched. */
export async function remove(
  desk: CommandContext,
  logins: ServerLogins | undefined,
  name: string,
  scope?: string,
): Promise<void> {
  const all = placesOf(name, desk);
  const places = all.filter((place) => place.scope === (scope ?? place.scope));
  takeOut(desk, name, places, all.length > places.length);
  const isLeft = (has: (place: PlaceOf) => boolean) =>
    all.some((place) => !places.includes(place) && has(place));
  const { trust } = desk;
  if (!isLeft(() => true)) {
    await both(
      () => trust.revoke(name),
      () => logOutOf(name, logins),
    );
    return;
  }
  const isLeftAs = (of: (place: PlaceOf) => unknown, what: unknown) =>
    isLeft((place) => of(place) === what);
  const prints = places.map(fingerprint).filter((print) => !isLeftAs(fingerprint, print));
  const urls = places.map(addressOf).filter((url) => url && !isLeftAs(addressOf, url));
  const logOutOfAll = () => Promise.all(urls.map((url) => logOutOf(name, logins, url)));
  await both(() => trust.revokeEntries(name, prints), logOutOfAll);
}

type PlaceOf = ConfigPlace & { config: Json };

/** Where there is a server of that name. */
function placesOf(name: string, { screen, composition }: CommandContext): PlaceOf[] {
  const warn = (text: string) => screen.warn(text);
  return placesFor(composition).flatMap((place) => {
    const servers = serversAt(place, warn);
    return Object.hasOwn(servers, name) ? [{ ...place, config: asObject(servers[name]) }] : [];
  });
}

/** As a login has it. */
function addressOf(place: PlaceOf): string | undefined {
  try {
    return new URL(`${fillIn({ name: '', ...place }).url}`).href;
  } catch {
    return undefined; // it has none, or one that we cannot know now
  }
}

function takeOut(
  { screen }: CommandContext,
  name: string,
  places: PlaceOf[],
  isElsewhere: boolean,
): void {
  if (places.length === 0) {
    const where = isElsewhere ? ' there; "mcp get" shows where it is' : '';
    throw refused(`no file has a server ${quoted(name)}${where}`);
  }
  const commands = places.map((place) => `${PROGRAM} mcp remove -s ${place.scope} ${name}`);
  const different = [...new Set(commands)];
  if (different.length > 1)
    throw usage(`${name} stands in several files. Write one of:\n  ${different.join('\n  ')}`);
  for (const place of places) {
    edit(place, (servers) => delete servers[name]);
    screen.print(`removed ${name} from ${place.file}`);
  }
}
