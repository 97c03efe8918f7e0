// schema-diff.ts: is a schema narrower than another, or wider? It answers for what schemas of tools
// are made of; of what it does not know it says that it changed, and counts that as both.

import { asList, asObject, isObject, show, type Json } from '../../../mcp.ts';

const MAX_DEPTH = 12; // a schema may refer to itself

type How = {
  isReversed?: boolean; // the narrower one is the older
  isOutput?: boolean; // a field that is gone is missed; one that is new is not
};

/** Where `after` allows less than `before`, one line for each place. */
export const narrowed = (before: Json, after: Json, how: How = {}) => lessIn(before, after, how);

/** Where it allows more. */
export const widened = (before: Json, after: Json, how: How = {}) =>
  lessIn(after, before, { ...how, isReversed: true });

/** Keywords that bound something, and whether a larger number allows less. */
const BOUNDS: Record<string, boolean> = {
  minimum: true,
  exclusiveMinimum: true,
  minLength: true,
  minItems: true,
  minProperties: true,
  maximum: false,
  exclusiveMaximum: false,
  maxLength: false,
  maxItems: false,
  maxProperties: false,
};
/** Looked at here, or words for people. */
const KNOWN = new Set([
  ...['type', 'enum', 'const', 'properties', 'required', 'additionalProperties', 'items'],
  ...['title', 'description', 'default', 'examples', '$schema', '$id', '$comment', '$defs'],
  ...['definitions', 'format', 'deprecated', 'readOnly', 'writeOnly'],
  ...Object.keys(BOUNDS),
]);

/** What `wide` allows and `narrow` does not. */
function lessIn(wide: Json, narrow: Json, how: How, at = '', depth = 0): string[] {
  if (depth > MAX_DEPTH) return [];
  const { isReversed = false, isOutput = false } = how;
  const here = at === '' ? '' : `${at}: `;
  const was = isReversed ? 'is now' : 'was';
  const without = isReversed ? 'also' : 'no longer';
  return [...types(), ...values(), ...bounds(), ...fields(), ...items(), ...unknown()];

  function types() {
    const [before, after] = [typesOf(wide), typesOf(narrow)];
    const isNumber = after.includes('number');
    const known = before.map((type) => (isNumber && type === 'integer' ? 'number' : type));
    return less(known, after, 'anything');
  }

  function values() {
    return less(valuesOf(wide), valuesOf(narrow), 'any value');
  }

  /** Of two lists of what is allowed; an empty one allows anything. */
  function less(before: string[], after: string[], anything: string) {
    if (after.length === 0) return [];
    if (before.length === 0) return [`${here}only ${after.join(' or ')}, ${was} ${anything}`];
    const lost = before.filter((each) => !after.includes(each));
    return lost.length > 0 ? [`${here}${without} ${lost.join(' or ')}`] : [];
  }

  function bounds() {
    return Object.entries(BOUNDS).flatMap(([key, isLargerLess]) => {
      const [before, after] = [wide[key], narrow[key]];
      if (typeof after !== 'number' || after === before) return [];
      const isLess = typeof before !== 'number' || (isLargerLess ? after > before : after < before);
      return isLess ? [`${here}${key} ${after}, ${was} ${show(before ?? 'none')}`] : [];
    });
  }

  function fields(): string[] {
    const [before, after] = [asObject(wide.properties), asObject(narrow.properties)];
    const needed = new Set(asList(wide.required).map(show));
    const newlyNeeded = asList(narrow.required)
      .map(show)
      .filter((key) => !needed.has(key));
    const isClosed = narrow.additionalProperties === false;
    const wasClosed = wide.additionalProperties === false;
    const only = (one: Json, other: Json) =>
      Object.keys(one).filter((key) => !Object.hasOwn(other, key));
    const below = Object.keys(before).filter((key) => Object.hasOwn(after, key));
    const needs = isReversed ? 'is no longer required' : 'is required';
    // What a schema no longer names is refused if it is closed, and ignored if it is not.
    const unnamed = isOutput ? only(after, before) : only(before, after);
    const state = isReversed === isOutput ? 'gone' : 'new';
    return [
      ...newlyNeeded.map((key) => `${here}${key} ${needs}`),
      ...unnamed.map((key) => `${here}${key} is ${state}`),
      ...(isClosed && !wasClosed ? [`${here}no other fields`] : []),
      ...below.flatMap((key) =>
        lessIn(asObject(before[key]), asObject(after[key]), how, join(at, key), depth + 1),
      ),
    ];
  }

  function items(): string[] {
    if (!isObject(wide.items) || !isObject(narrow.items)) return [];
    return lessIn(wide.items, narrow.items, how, `${at}[]`, depth + 1);
  }

  function unknown() {
    const keys = [...new Set([...Object.keys(wide), ...Object.keys(narrow)])];
    const odd = keys.filter((key) => !KNOWN.has(key) && !key.startsWith('x-'));
    const changed = odd.filter((key) => JSON.stringify(wide[key]) !== JSON.stringify(narrow[key]));
    return changed.map((key) => `${here}${key} has changed`);
  }
}

const join = (at: string, key: string) => (at === '' ? key : `${at}.${key}`);

const typesOf = ({ type }: Json) => [type].flat().filter((each) => typeof each === 'string');

function valuesOf(schema: Json): string[] {
  const values = Object.hasOwn(schema, 'const') ? [schema.const] : asList(schema.enum);
  return values.map(show);
}
