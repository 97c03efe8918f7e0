// One call of a tool from words on the command line, for `call` and for `probe --call`.

import { readFileSync } from 'node:fs';
import {
  asList,
  asObject,
  excerpt,
  isObject,
  McpError,
  ownValue,
  parseMessage,
  RpcError,
  textOf,
  type Json,
  type Tool,
} from '../../mcp.ts';
import { nearestHint, nearest } from '../16-hands/nearest.ts';
import { EXIT, EXIT_FOR, usage } from './exit.ts';
import type { PrepareArguments } from './host.ts';

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

/** `key=value` by the tool's schema, and objects of JSON as they are. What does not fit is told
 *  before anything is sent: the server would say so, too, but each in its own words. */
export async function callArguments(
  { words, json }: { words: string[]; json?: string },
  { name, inputSchema }: Tool,
  prepare?: PrepareArguments,
): Promise<Json> {
  const given = [...(json === undefined ? [] : [asJson(textFor(json))]), ...words];
  const args = joined(given, inputSchema);
  if (!prepare) return args;
  refuseUnknown(Object.keys(args), name, inputSchema);
  const { required } = inputSchema;
  const wanted = asList(required).filter((key) => typeof key === 'string');
  const missing = wanted.filter((key) => !Object.hasOwn(args, key));
  if (missing.length > 0) throw usage(`${name} needs ${missing.map(asPair).join(' ')}`);
  if (fitsPlainly(args, inputSchema)) return args;
  const prepared = await prepare(args, inputSchema, new AbortController().signal);
  if (prepared.refusal) throw usage(`${prepared.refusal}\n(--no-check sends it as it is)`);
  return prepared.args;

  function asPair(key: string) {
    const types = typesIn(propertyOf(key, inputSchema), inputSchema);
    return `${key}=${types.join('|') || '…'}`;
  }
}

/** Most schemas say no more than the type of each field: then nothing has to be loaded to judge. */
function fitsPlainly(args: Json, schema: Json) {
  const isPlain = Object.keys(schema).every((key) => PLAIN_KEYS.has(key));
  const hasType = (key: string, value: unknown) => {
    const field = asObject(propertyOf(key, schema));
    const isBare = Object.keys(field).every((word) =>
      /^(type|title|description|default)$/.test(word),
    );
    return isBare && field.type === typeof value;
  };
  return isPlain && Object.entries(args).every(([key, value]) => hasType(key, value));
}
const PLAIN_KEYS = new Set(['type', 'properties', 'required', 'additionalProperties', '$schema']);

function asJson(text: string) {
  if (isObject(parseMessage(text))) return text;
  throw usage(`--args is a JSON object, @FILE or -; this is not a JSON object: ${excerpt(text)}`);
}

/** @FILE, - or @- for stdin; @@ is one @. */
function textFor(word: string) {
  if (word.startsWith('@@')) return word.slice(1);
  const file = word === '-' ? '-' : /^@(.+)$/s.exec(word)?.[1];
  if (file === undefined) return word;
  try {
    return readFileSync(file === '-' ? 0 : file, 'utf8');
  } catch (error) {
    throw usage(`${word} cannot be read: ${textOf(error)}`);
  }
}

/** A key that comes twice is a list, and so is one that must be. */
function joined(words: string[], schema: Json) {
  const args: Json = {};
  const lists = new Map<string, unknown[]>();
  for (const word of words) {
    const pair = word.startsWith('{') ? undefined : pairIn(word, schema);
    if (!pair) Object.assign(args, objectIn(word));
    else lists.set(pair.key, [...(lists.get(pair.key) ?? []), pair.value]);
  }
  for (const [key, values] of lists) {
    const types = typesIn(propertyOf(key, schema), schema);
    const isListOnly = types.includes('array') && !types.includes('string');
    const isOne = values.length === 1 && (!isListOnly || Array.isArray(values[0]));
    args[key] = isOne ? values[0] : values.flat();
  }
  return args;
}

function objectIn(word: string) {
  const parsed = parseMessage(word);
  if (!isObject(parsed)) throw usage(`this is not a JSON object: ${word}`);
  return parsed;
}

function pairIn(word: string, schema: Json): { key: string; value: unknown } {
  const at = word.indexOf('=');
  if (at < 1) throw usage(`what is ${word}? Arguments are key=value, or a JSON object`);
  const key = word.slice(0, at);
  const types = typesIn(propertyOf(key, schema), schema);
  const written = word.slice(at + 1);
  const text = written.startsWith('@') ? textFor(written) : written;
  return { key, value: valueOf(text, types) };
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

function propertyOf(key: string, { properties }: Json) {
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
function definition(ref: string, root: Json) {
  const [start, ...keys] = ref.split('/');
  if (start !== '#') return undefined;
  let found: unknown = root;
  for (const key of keys) found = ownValue(asObject(found), key);
  return found;
}

const OTHER_NAMES = ['patternProperties', '$ref', 'allOf', 'anyOf', 'oneOf', 'if']; // are in these

/** Most schemas do not say that they are closed, and mean it. */
function refuseUnknown(keys: string[], tool: string, schema: Json) {
  const { properties, additionalProperties = false } = schema;
  if (additionalProperties !== false || !isObject(properties)) return;
  if (OTHER_NAMES.some((word) => Object.hasOwn(schema, word))) return;
  const unknown = keys.find((key) => !Object.hasOwn(properties, key));
  if (unknown === undefined) return;
  const known = Object.keys(properties);
  const hint = nearestHint(unknown, known, `it takes ${known.join(', ') || 'none'}`);
  throw usage(`${tool} takes no argument ${unknown}; ${hint} (--no-check sends it as it is)`);
}

// ─── What went wrong ──────────────────────────────────────────────────────────────────────────

export function errorKind(error: unknown): string {
  if (error instanceof McpError) return error.kind;
  return error instanceof RpcError ? 'refused' : 'unexpected';
}

export const exitCodeFor = (kind: string) => EXIT_FOR[kind] ?? EXIT.failed;
