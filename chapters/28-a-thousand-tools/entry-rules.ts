// entry-rules.ts: what the entry of one server says about its tools and resources.
//
//   "tools": { "allow": ["get_*"], "deny": ["delete_repository"] },
//   "resources": { "allow": ["file:///docs/*"] },
//   "readPermission": "allow", "writePermission": "ask"
//
// All of it can only make the gate stricter. An allow list does not allow: it makes a question of
// everything that is not on it, whatever rules, modes and earlier answers say.

import { asObject, isObject } from '../../mcp.ts';
import type { Call, Extension, Json, McpConnection, Next } from '../../mcp.ts';
import type { Opinion } from '../17-the-gate/gate.ts';
import type { Person } from '../17-the-gate/person.ts';
import { quoted } from '../17-the-gate/safe-text.ts';
import { saysItReads } from './order.ts';

const PERMISSIONS = ['allow', 'ask', 'deny'];
const KINDS = { readPermission: 'read', writePermission: 'change something' };
const MAX_PATTERNS = 10_000;
const MAX_KNOWN = 10_000; // tools: a server may list others every time

// ─── Tools ─────────────────────────────────────────────────────────────────────────────────────

/** For the gate: what speaks against a tool. */
export function entryOpinion(tool: Json, config: Json): Opinion | undefined {
  const name = String(tool.name);
  const { allow, deny }: Json = toolsIn(config);
  if (isNamed(name, deny)) return { effect: 'deny', why: denied(name) };
  const key = saysItReads(tool) ? 'readPermission' : 'writePermission';
  const { [key]: permission } = config;
  const why = `"${key}" of its entry is for tools that ${KINDS[key]}, by their own word`;
  if (permission === 'deny') return { effect: 'deny', why };
  if (permission === 'ask') return { effect: 'ask', why };
  if (allow === undefined || isNamed(name, allow, 'exactly')) return undefined;
  return { effect: 'ask', why: `${quoted(name)} is not on the allow list of its server's entry` };
}

const denied = (name: string) => `${quoted(name)} is on the deny list of its server's entry`;

/** A list alone, as other programs write it, is an allow list. */
const toolsIn = ({ tools }: Json) => (Array.isArray(tools) ? { allow: tools } : asObject(tools));

/** To forbid, capitals make no difference. */
function isNamed(name: string, patterns: unknown, how?: 'exactly'): boolean {
  if (!Array.isArray(patterns)) return false;
  const same = (text: unknown) => (how ? String(text) : String(text).toLowerCase());
  return patterns.some((pattern) => matches(same(pattern), same(name)));
}

/** `*` is any text. Not by a regular expression: with many stars that can take minutes. */
function matches(pattern: string, text: string): boolean {
  const [first = '', ...more] = pattern.split('*');
  const last = more.pop();
  if (last === undefined) return text === first;
  if (!text.startsWith(first) || !text.endsWith(last)) return false;
  let at = first.length;
  for (const part of more) {
    const found = text.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return at + last.length <= text.length;
}

// ─── In the connection ─────────────────────────────────────────────────────────────────────────

/** Refuses what the entry denies, whoever calls, and asks before a resource is read that is not on
 *  its list. An entry that cannot be understood does not start: it may forbid something. */
export function entryRules({ person }: { person: Person }): Extension {
  return function entryRules(connection) {
    const problem = problemWithRules(connection.config);
    if (problem) throw connection.error('config', problem);
    const desk = new Desk(connection, person);
    return {
      layer: (call, next) => {
        if (call.method === 'tools/call') return desk.call(call, next);
        if (call.method === 'tools/list') return desk.learn(next(call));
        if (call.method === 'resources/read') return desk.read(call, next);
        return next(call);
      },
    };
  };
}

class Desk {
  private connection: McpConnection;
  private person: Person;
  private reading = new Set<string>(); // the names of the tools that say that they only read
  private resources: Json;
  private agreed = new Set<string>(); // to read, in the life of this connection

  constructor(connection: McpConnection, person: Person) {
    this.connection = connection;
    this.person = person;
    this.resources = asObject(connection.config.resources);
  }

  /** Every list of tools passes here on its way to those who wanted it. */
  async learn(listing: Promise<Json>): Promise<Json> {
    const result = await listing;
    const tools = Array.isArray(result.tools) ? result.tools.filter(isObject) : [];
    for (const tool of tools) {
      this.reading.delete(String(tool.name));
      if (saysItReads(tool) && this.reading.size < MAX_KNOWN) this.reading.add(String(tool.name));
    }
    return result;
  }

  /** Not every call comes by way of the gate. A tool that was not listed may do anything. */
  call(call: Call, next: Next): Promise<Json> {
    const name = String(call.params?.name);
    const annotations = { readOnlyHint: this.reading.has(name) };
    const opinion = entryOpinion({ name, annotations }, this.connection.config);
    if (opinion?.effect !== 'deny') return next(call);
    throw this.connection.error('config', `was not asked: ${opinion.why}`);
  }

  read(call: Call, next: Next): Promise<Json> {
    const { allow } = this.resources;
    const uri = String(call.params?.uri);
    const isFree = allow === undefined || this.agreed.has(uri) || isNamed(uri, allow, 'exactly');
    return isFree ? next(call) : this.readIfAgreed(uri, call, next);
  }

  private async readIfAgreed(uri: string, call: Call, next: Next): Promise<Json> {
    const { serverName } = this.connection;
    const what = `${quoted(uri)} is not on the list of resources in its entry`;
    const { signal } = call.options;
    const answer = await this.person.choose({
      lines: [`A resource of the MCP server ${quoted(serverName)} would be read. ${what}.`],
      prompt: 'Read it?',
      choices: [
        { key: 'y', word: 'yes', label: '[y]es' },
        { key: 'n', word: 'no', label: '[n]o', isNo: true },
      ],
      ifEmpty: 'n',
      signal,
    });
    if (answer?.key !== 'y') {
      const why = this.person.isThere ? 'the user said no' : 'there is nobody to ask';
      throw this.connection.error('config', `was not asked: ${what}, and ${why}`);
    }
    this.agreed.add(uri);
    return next(call);
  }
}

function problemWithRules(config: Json): string | undefined {
  const { resources = {} } = config;
  const { tools = {} } = Array.isArray(config.tools) ? { tools: toolsIn(config) } : config;
  for (const key of Object.keys(KINDS)) {
    const { [key]: value = 'allow' } = config;
    if (!PERMISSIONS.includes(value as string))
      return `has a "${key}" that is not one of ${PERMISSIONS.join(', ')}`;
  }
  if (!isLists(tools, ['allow', 'deny']))
    return 'has "tools" that are not like { "allow": ["get_*"], "deny": ["delete"] }';
  if (!isLists(resources, ['allow']))
    return 'has "resources" that are not like { "allow": ["file:///docs/*"] }';
  return undefined;
}

/** A misspelt "denny" must not be a door left open. */
function isLists(value: unknown, keys: string[]): boolean {
  if (!isObject(value)) return false;
  return Object.entries(value).every(([key, list]) => {
    const isList = Array.isArray(list) && list.length <= MAX_PATTERNS;
    return keys.includes(key) && isList && list.every((each) => typeof each === 'string');
  });
}
