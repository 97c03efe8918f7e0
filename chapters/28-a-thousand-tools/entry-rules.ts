// entry-rules.ts: what the entry of one server says about its tools and resources.
//
//   "tools": { "allow": ["get_*"], "deny": ["delete_repository"] },
//   "resources": { "allow": ["file:///docs/*"] },
//   "readPermission": "allow", "writePermission": "ask"
//
// All of it can only make the gate stricter. An allow list does not allow: it makes a question of
// everything that is not on it, whatever rules, modes and earlier answers say.

import { asObject, isObject, reads } from '../../mcp.ts';
import type { Call, Extension, Json, McpConnection, Next, EntryWord, Words } from '../../mcp.ts';
import { agrees } from '../17-the-gate/dialogue.ts';
import type { Opinion } from '../17-the-gate/gate.ts';
import type { Person } from '../17-the-gate/person.ts';
import { matchesText } from '../17-the-gate/rules.ts';
import { quoted } from '../17-the-gate/safe-text.ts';
import { noteTools } from '../24-more-than-tools/tasks.ts';
import { saysItReads } from './order.ts';
import { listsOf, OTHERS_WORDS } from './others-words.ts';

const PERMISSIONS = ['allow', 'ask', 'deny'];
const KINDS = { readPermission: 'read', writePermission: 'change something' };
const MAX_PATTERNS = 10_000;
const PERMISSION: EntryWord = {
  form: `one of ${PERMISSIONS.join(', ')}`,
  fits: (value) => PERMISSIONS.includes(value as string),
};
const RULES: Words = {
  tools: {
    form: 'like { "allow": ["get_*"], "deny": ["delete"] }',
    fits: (tools) => isLists(toolsIn({ tools }), ['allow', 'deny']),
  },
  resources: {
    form: 'like { "allow": ["file:///docs/*"] }',
    fits: (resources) => isLists(resources, ['allow']),
  },
  readPermission: PERMISSION,
  writePermission: PERMISSION,
};

// ─── Tools ─────────────────────────────────────────────────────────────────────────────────────

/** For the gate: what speaks against a tool. */
export function entryOpinion(tool: Json, config: Json): Opinion | undefined {
  const name = String(tool.name);
  const { allow, deny }: Json = toolsIn(config);
  if (isNamed(name, deny)) return { effect: 'deny', why: denied(name) };
  const list = othersListAgainst(name, config);
  if (list)
    return { effect: 'deny', why: `${quoted(name)} is not for us, by "${list}" of its entry` };
  const key = saysItReads(tool) ? 'readPermission' : 'writePermission';
  const { [key]: permission } = config;
  const why = `"${key}" of its entry is for tools that ${KINDS[key]}, by their own word`;
  if (permission === 'deny') return { effect: 'deny', why };
  if (permission === 'ask') return { effect: 'ask', why };
  const { default_tools_approval_mode: mode } = config;
  if (mode === 'prompt' || (mode === 'writes' && key === 'writePermission'))
    return { effect: 'ask', why: '"default_tools_approval_mode" of its entry wants a question' };
  if (allow === undefined || isNamed(name, allow, 'exactly')) return undefined;
  return { effect: 'ask', why: `${quoted(name)} is not on the allow list of its server's entry` };
}

const denied = (name: string) => `${quoted(name)} is on the deny list of its server's entry`;

/** The list, in another program's words, by which a tool is not there at all. */
function othersListAgainst(name: string, config: Json) {
  const { onlyTools, noTools } = listsOf(config);
  const isLeftOut = (list: string) => !isNamed(name, config[list], 'exactly');
  return noTools.find((list) => isNamed(name, config[list])) ?? onlyTools.find(isLeftOut);
}

/** A list alone, as other programs write it, is an allow list. */
const toolsIn = ({ tools = {} }: Json) => (Array.isArray(tools) ? { allow: tools } : tools) as Json;

/** To forbid, capitals make no difference. */
function isNamed(name: string, patterns: unknown, how?: 'exactly') {
  if (!Array.isArray(patterns)) return false;
  const same = (text: unknown) => (how ? String(text) : String(text).toLowerCase());
  const bare = (pattern: unknown) => same(pattern).replace(/^mcp__.*?__/i, ''); // a label is a name, too
  // To forbid, wherever its server's name may end.
  const isLabel = (text: string) =>
    !how && text.startsWith('mcp__') && text.endsWith(`__${same(name)}`);
  return patterns.some((each) => matchesText(bare(each), same(name)) || isLabel(same(each)));
}

// ─── In the connection ─────────────────────────────────────────────────────────────────────────

/** Refuses what the entry denies, whoever calls, and asks before a resource is read that is not on
 *  its list. An entry that cannot be understood does not start: it may forbid something. */
export function entryRules({ person }: { person: Person }): Extension {
  const words = { ...RULES, ...OTHERS_WORDS };
  return reads(words, function entryRules(connection) {
    const isSilent = Object.keys(words).every((word) => connection.config[word] === undefined);
    if (isSilent) return {}; // as most entries are: their calls take no detour
    const desk = new EntryGuard(connection, person);
    const noted = (result: Json) => noteTools(result, desk.reading, saysItReads);
    return {
      layer: (call, next) => {
        if (call.method === 'tools/call') return desk.call(call, next);
        if (call.method === 'tools/list') return next(call).then(noted);
        if (call.method === 'resources/read') return desk.read(call, next);
        return next(call);
      },
    };
  });
}

class EntryGuard {
  private connection: McpConnection;
  private person: Person;
  readonly reading = new Set<unknown>(); // tools that say that they do only this
  private resources: unknown[]; // lists, each of which must have it
  private agreed = new Set<string>(); // to read, in the life of this connection

  constructor(connection: McpConnection, person: Person) {
    this.connection = connection;
    this.person = person;
    const { config } = connection;
    const others = listsOf(config).onlyResources.map((word) => config[word]);
    this.resources = [asObject(config.resources).allow ?? ['*'], ...others];
  }

  /** Not every call comes by way of the gate. A tool that was not listed may do anything. */
  call(call: Call, next: Next) {
    const name = String(call.params?.name);
    const annotations = { readOnlyHint: this.reading.has(name) };
    const opinion = entryOpinion({ name, annotations }, this.connection.config);
    if (opinion?.effect !== 'deny') return next(call);
    throw this.connection.error('config', `was not asked: ${opinion.why}`);
  }

  read(call: Call, next: Next) {
    const uri = String(call.params?.uri);
    const isListed = this.resources.every((list) => isNamed(uri, list, 'exactly'));
    const isFree = isListed || this.agreed.has(uri);
    return isFree ? next(call) : this.readIfAgreed(uri, call, next);
  }

  private async readIfAgreed(uri: string, call: Call, next: Next) {
    const { serverName } = this.connection;
    const what = `${quoted(uri)} is not on the list of resources in its entry`;
    const { signal } = call.options;
    const isAgreed = await agrees(this.person, {
      lines: [`A resource of the MCP server ${quoted(serverName)} would be read. ${what}.`],
      prompt: 'Read it?',
      signal,
    });
    if (!isAgreed) {
      const why = this.person.isThere ? 'the user said no' : 'there is nobody to ask';
      throw this.connection.error('config', `was not asked: ${what}, and ${why}`);
    }
    this.agreed.add(uri);
    return next(call);
  }
}

/** A misspelt "denny" must not be a door left open. */
function isLists(value: unknown, keys: string[]) {
  if (!isObject(value)) return false;
  return Object.entries(value).every(([key, list]) => {
    const isList = Array.isArray(list) && list.length <= MAX_PATTERNS;
    return keys.includes(key) && isList && list.every((each) => typeof each === 'string');
  });
}
