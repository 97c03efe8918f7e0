// registry.ts: a `server.json`, as the registry of MCP servers has it, made into an entry. It says
// how a package is started or where a server is, and which values it wants from the user.

import { asList, asObject, isObject, ownValue, show, type Json } from '../../../mcp.ts';
import { quoted } from '../../17-the-gate/safe-text.ts';

/** What has to be asked for. */
export type RegistryInput = {
  name: string;
  description: string;
  isSecret: boolean;
  isRequired: boolean;
  choices: string[];
  usual?: string;
};
/** Undefined: the user gives no value. */
export type AskFor = (wanted: RegistryInput) => Promise<string | undefined>;
/** One way to have the server. */
type PackageChoice = { label: string; make: (ask: AskFor) => Promise<Json> };

const MAX_ITEMS = 50; // arguments, variables, ways: of each
const MAX_TEXT = 2000;

/** A short name for it: the last part of "io.github.ada/shelf". */
export const shortServerName = ({ name }: Json) =>
  show(name ?? '')
    .split('/')
    .at(-1)!
    .replace(/[^\w-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 64);

export function waysIn(root: Json): PackageChoice[] {
  const server = isObject(root.server) ? root.server : root; // as the registry's own address answers
  const packages = items(server.packages).map((each): PackageChoice => {
    const { identifier, version, registryType: type = '?' } = each;
    return {
      label: `${show(type)} ${quoted(`${identifier}`)} ${quoted(`${version ?? 'newest'}`)}`,
      make: (ask) => fromPackage(each, ask),
    };
  });
  const remotes = items(server.remotes).map(
    (each): PackageChoice => ({
      label: `at ${quoted(show(each.url ?? ''))}`,
      make: (ask) => fromRemote(each, ask),
    }),
  );
  return [...remotes, ...packages];
}

const items = (list: unknown): Json[] =>
  asList(list).filter(isObject).slice(0, MAX_ITEMS).map(inCamelCase);

/** Until 2025 these files had registry_type, and now they have registryType. */
function inCamelCase(object: Json): Json {
  const camel = (name: string) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
  return Object.fromEntries(Object.entries(object).map(([name, each]) => [camel(name), each]));
}

// ─── A package ─────────────────────────────────────────────────────────────────────────────────

type Launch = (identifier: string, version: string, env: string[]) => string[];

/** Nothing here downloads anything: the command does, when the server starts. */
const LAUNCHERS: Record<string, Launch> = {
  npm: (id, version) => ['npx', '-y', version ? `${id}@${version}` : id],
  pypi: (id, version) => ['uvx', version ? `${id}==${version}` : id],
  nuget: (id, version) => ['dnx', version ? `${id}@${version}` : id, '--yes'],
  oci: (id, version, env) => {
    const passed = env.flatMap((name) => ['-e', name]);
    const isTagged = /[:@]/.test(id.slice(id.lastIndexOf('/') + 1));
    const image = isTagged || !version ? id : `${id}:${version}`;
    return [...'docker run -i --rm'.split(' '), ...passed, image];
  },
};

async function fromPackage(given: Json, ask: AskFor): Promise<Json> {
  const { registryType = '', identifier, version = '' } = given;
  const type = show(registryType);
  const launcher = ownValue(LAUNCHERS, type);
  if (!launcher) throw new Error(`a package of type ${quoted(type)} cannot be started from here`);
  const isSound = (text: unknown) =>
    typeof text === 'string' && /^[\w@./:+-]*$/.test(text) && !text.startsWith('-');
  if (!isSound(identifier) || identifier === '' || !isSound(version))
    throw new Error('its package has no sound name and version');
  const env = await valuesOf(given.environmentVariables, ask);
  const [command, ...words] = launcher(`${identifier}`, `${version}`, Object.keys(env));
  const before = await argumentsOf(given.runtimeArguments, ask);
  const after = await argumentsOf(given.packageArguments, ask);
  const isNew = before.filter((word) => !words.includes(word)); // "-y" is there already
  const args = [...isNew, ...words, ...after];
  return { command, args, ...(Object.keys(env).length > 0 && { env }) };
}

async function argumentsOf(list: unknown, ask: AskFor) {
  const words: string[] = [];
  for (const each of items(list)) {
    const { type, name, valueHint, isRequired } = each;
    const isNamed = type === 'named';
    const saysValue = [each.value, each.default, valueHint].some((said) => said !== undefined);
    const isFlag = isNamed && !saysValue && isRequired !== true;
    const value = isFlag ? '' : await valueOf(each, show(valueHint ?? name ?? 'an argument'), ask);
    if (value === undefined) continue;
    if (isNamed) words.push(text(name));
    if (!isFlag) words.push(value);
  }
  return words;
}

// ─── An address ────────────────────────────────────────────────────────────────────────────────

async function fromRemote(given: Json, ask: AskFor): Promise<Json> {
  const type = given.type === 'sse' ? 'sse' : 'http';
  const url = await filled(text(given.url), asObject(given.variables), ask);
  const headers = await valuesOf(given.headers, ask);
  return { type, url, ...(Object.keys(headers).length > 0 && { headers }) };
}

// ─── Values ────────────────────────────────────────────────────────────────────────────────────

async function valuesOf(list: unknown, ask: AskFor): Promise<Record<string, string>> {
  const found: [string, string][] = [];
  for (const each of items(list)) {
    const name = text(each.name);
    const value = await valueOf(each, name, ask);
    if (value !== undefined) found.push([name, value]);
  }
  return Object.fromEntries(found);
}

/** What is written is taken, with its {variables}; what is not written is asked for. */
async function valueOf(given: Json, name: string, ask: AskFor) {
  if (typeof given.value === 'string')
    return filled(text(given.value), asObject(given.variables), ask);
  return ask(wantedIn(given, name));
}

async function filled(template: string, variables: Json, ask: AskFor) {
  let whole = '';
  let at = 0;
  for (const { 0: mark, 1: name = '', index } of template.matchAll(/\{(\w+)\}/g)) {
    const known = Object.hasOwn(variables, name) && template[index - 1] !== '$';
    const value = known
      ? await ask({ ...wantedIn(inCamelCase(asObject(variables[name])), name), isRequired: true })
      : mark;
    if (value === undefined) throw new Error(`it needs a value for ${quoted(name)}`);
    whole += template.slice(at, index) + value;
    at = index + mark.length;
  }
  return whole + template.slice(at);
}

function wantedIn(given: Json, name: string): RegistryInput {
  const { description = '', choices, isSecret, isRequired, default: usual = given.value } = given;
  return {
    name,
    description: show(description).slice(0, MAX_TEXT),
    isSecret: isSecret === true,
    isRequired: isRequired === true,
    choices: asList(choices).map(show).slice(0, MAX_ITEMS),
    ...(typeof usual === 'string' && { usual }),
  };
}

function text(value: unknown) {
  if (typeof value === 'string' && value.length <= MAX_TEXT && !value.includes('\0')) return value;
  throw new Error('one of its texts is missing, or too long');
}
