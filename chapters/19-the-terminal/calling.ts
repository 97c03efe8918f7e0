// One call of a tool from words on the command line, for `call` and for `probe --call`.

import {
  asList,
  asObject,
  isObject,
  McpError,
  ownValue,
  parseMessage,
  RpcError,
  type Json,
  type Tool,
} from '../../mcp.ts';
import { nearestHint, nearest } from '../16-hands/nearest.ts';
import { EXIT, EXIT_FOR, usage } from './exit.ts';

// ─── The tool ─────────────────────────────────────────────────────────────────────────────────

export function findTool(name: string, tools: Tool[], server: string): Tool {
  const found = tools.find((tool) => tool.name === name);
  if (found) return found;
  const names = tools.map((tool) => tool.name);
  const close = nearest(name, names).join(' or ');
  const few = names.length > 0 && names.length <= 20 ? `; it has ${names.join(', ')}` : '';
  const hint = close ? `; did you mean ${close}?` : few;
  throw usage(`${server} has no tool ${name}${hint}`);
}

// ─── Its arguments ────────────────────────────────────────────────────────────────────────────

/** `key=value` by the tool's schema, and objects of JSON as they are. What the schema requires must
 *  be there: the server would say so too, but each in its own words. */
export function callArguments(words: string[], { name, inputSchema }: Tool): Json {
  const args: Json = Object.fromEntries(words.flatMap((word) => entriesIn(word, inputSchema)));
  const { required } = inputSchema;
  const wanted = asList(required).filter((key) => typeof key === 'string');
  const missing = wanted.filter((key) => !Object.hasOwn(args, key));
  if (missing.length > 0) throw usage(`${name} needs ${missing.map(asPair).join(' ')}`);
  refuseUnknown(Object.keys(args), name, inputSchema);
  return args;

  function asPair(key: string): string {
    const types = typesIn(propertyOf(key, inputSchema), inputSchema);
    return `${key}=${types.join('|') || '…'}`;
  }
}

function entriesIn(word: string, schema: Json): [string, unknown][] {
  if (word.startsWith('{')) {
    const parsed = parseMessage(word);
    if (!isObject(parsed)) throw usage(`this is not a JSON object: ${word}`);
    return Object.entries(parsed);
  }
  const at = word.indexOf('=');
  if (at < 1) throw usage(`what is ${word}? Arguments are key=value, or a JSON object`);
  const key = word.slice(0, at);
  const types = typesIn(propertyOf(key, schema), schema);
  return [[key, valueOf(word.slice(at + 1), types)]];
}

/** Text where text is allowed, else JSON if it is JSON. Where both text and lists or objects are, a
 *  list or an object is meant by what looks like one. */
function valueOf(text: string, types: string[]): unknown {
  const parsed = parseMessage(text);
  const isList = Array.isArray(parsed) && types.includes('array');
  const isRecord = isObject(parsed) && types.includes('object');
  const isText = types.includes('string') && !isList && !isRecord;
  return isText ? text : parsed;
}

function propertyOf(key: string, { properties }: Json): unknown {
  return ownValue(asObject(properties), key);
}

const MAX_DEPTH = 5; // a schema may refer to itself

/** The types that a schema allows, as far as it says so. */
function typesIn(schema: unknown, root: Json, depth = 0): string[] {
  if (!isObject(schema) || depth > MAX_DEPTH) return [];
  const { type, enum: values, anyOf, oneOf, $ref } = schema;
  const inner = [anyOf, oneOf].flat().flatMap((each) => typesIn(each, root, depth + 1));
  const target = typeof $ref === 'string' ? definition($ref, root) : undefined;
  const own = [type].flat().filter((each) => typeof each === 'string');
  const ofValues = own.length === 0 ? [values ?? []].flat().map((value) => typeof value) : [];
  return [...new Set([...own, ...ofValues, ...inner, ...typesIn(target, root, depth + 1)])];
}

/** "#/$defs/Unit" */
function definition(ref: string, root: Json): unknown {
  const [start, ...keys] = ref.split('/');
  if (start !== '#') return undefined;
  let found: unknown = root;
  for (const key of keys) found = ownValue(asObject(found), key);
  return found;
}

function refuseUnknown(keys: string[], tool: string, schema: Json): void {
  const { properties, additionalProperties } = schema;
  if (additionalProperties !== false || !isObject(properties)) return;
  const unknown = keys.find((key) => !Object.hasOwn(properties, key));
  if (unknown === undefined) return;
  const known = Object.keys(properties);
  const hint = nearestHint(unknown, known, `it takes ${known.join(', ') || 'none'}`);
  throw usage(`${tool} takes no argument ${unknown}; ${hint}`);
}

// ─── What went wrong ──────────────────────────────────────────────────────────────────────────

export function errorKind(error: unknown): string {
  if (error instanceof McpError) return error.kind;
  return error instanceof RpcError ? 'refused' : 'unexpected';
}

export const exitCodeFor = (kind: string) => EXIT_FOR[kind] ?? EXIT.failed;
