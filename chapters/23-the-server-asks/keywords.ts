// keywords.ts: does a value fit a JSON Schema? By hand, for the two drafts that servers write, 2020-12
// and draft-07. Nothing is ever fetched, and nothing here is Node's: how long a check may take, and
// how a pattern is tried, is for the caller to say (schema.ts, and a web page's own).

import { asList, asObject, copyOf, isObject, type Json } from '../../mcp.ts';
import { nearest } from '../16-hands/nearest.ts';
import { canonicalJson } from '../17-the-gate/digest.ts';
import { percentDecoded } from '../18-minds/proxy.ts';

/** `path` is where in the value, as in items[0].name; empty for the whole of it. */
export type SchemaProblem = { path: string; message: string };
/** All that is wrong with a value: empty if it fits. Throws where that takes too long. */
export type FindProblems = (
  schema: unknown,
  value: unknown,
  signal?: AbortSignal,
) => Promise<SchemaProblem[]>;
/** A schema comes from a server, so it may be endless or evil. */
export type CheckGuards = {
  mustBeInTime: () => void; // throws when it is not
  matches: (pattern: string, text: string) => boolean | undefined; // undefined: that cannot be said
};

const MAX_DEPTH = 500; // of schemas in schemas: a $ref may lead back to itself
const MAX_PROBLEMS = 100;
const MAX_NEAR = 500; // values among which the nearest is looked for
const MAX_SHOWN = 80; // characters of what a schema expects

/** Empty also for a schema that is too deep to judge. Formats such as "email" are not judged: in both
 *  drafts they are notes. `root`: the whole of which the schema is a part, for the references in it. */
export function problemsBy(
  guards: CheckGuards,
  schema: unknown,
  value: unknown,
  root = schema,
): SchemaProblem[] {
  try {
    const { problems } = new Checker(root, guards).check(schema, { value, path: '' });
    return problems.slice(0, MAX_PROBLEMS);
  } catch (error) {
    if (error instanceof RangeError) return []; // deeper than the stack
    throw error;
  }
}

// ─── What a check is made of ───────────────────────────────────────────────────────────────────

/** A value, and where in the whole it is. */
type InstanceLocation = { value: unknown; path: string };

/** One schema against one value. `names` and `indexes`: the parts of the value that some keyword has
 *  judged. The two keywords that begin with "unevaluated" judge all others. */
class SchemaCheck {
  readonly problems: SchemaProblem[] = [];
  readonly names = new Set<string>();
  readonly indexes = new Set<number>();
  readonly schema: Json;
  readonly place: InstanceLocation;
  readonly check: (schema: unknown, place: InstanceLocation) => SchemaCheck; // one level deeper
  readonly matches: CheckGuards['matches'];

  constructor(schema: Json, place: InstanceLocation, { check, guards }: Checker) {
    this.schema = schema;
    this.place = place;
    this.check = check;
    this.matches = guards.matches;
  }

  report = (message: string, path = this.place.path): void => {
    this.problems.push({ path, message });
  };

  fits = (schema: unknown, place: InstanceLocation): boolean =>
    this.check(schema, place).problems.length === 0;

  /** The problems of another one, as far as they will be told. */
  takeOver = ({ problems }: SchemaCheck): void => {
    const room = Math.max(0, MAX_PROBLEMS - this.problems.length);
    this.problems.push(...problems.slice(0, room));
  };

  /** What another one has judged is judged here, too. */
  adopt = ({ names, indexes }: SchemaCheck): void => {
    for (const name of names) this.names.add(name);
    for (const index of indexes) this.indexes.add(index);
  };
}

/** Looks at its own part of a schema. It reports what is wrong, and marks what it has judged. */
type Keyword = (wanted: any, task: SchemaCheck) => void;

class Checker {
  readonly guards: CheckGuards;
  private root: unknown;
  private isDraft7: boolean;
  private table: [string, Keyword][];
  private depth = 0;

  constructor(root: unknown, guards: CheckGuards) {
    this.root = root;
    this.guards = guards;
    const { $schema } = asObject(root);
    this.isDraft7 = typeof $schema === 'string' && /draft-0[4-7]/.test($schema);
    const more = this.isDraft7 ? DRAFT_7 : DRAFT_2020;
    this.table = Object.entries({ $ref: this.follow, ...KEYWORDS, ...more });
  }

  check = (schema: unknown, place: InstanceLocation): SchemaCheck => {
    const task = new SchemaCheck(asObject(schema), place, this);
    if (schema === false) task.report('is not allowed here');
    if (!isObject(schema)) return task; // true allows everything, and so does what is no schema
    if (++this.depth > MAX_DEPTH) throw new RangeError('too deep');
    for (const [name, keyword] of this.keywordsOf(schema)) {
      this.guards.mustBeInTime();
      keyword(schema[name], task);
    }
    this.depth--;
    return task;
  };

  /** In the order of the table: what judges the rest comes last. In draft-07 a $ref is alone. */
  private keywordsOf(schema: Json) {
    const present = this.table.filter(([name]) => Object.hasOwn(schema, name));
    const isAlone = this.isDraft7 && Object.hasOwn(schema, '$ref');
    return isAlone ? present.filter(([name]) => name === '$ref') : present;
  }

  /** What is elsewhere, on a network, is not judged. */
  private follow: Keyword = (reference, task) => {
    if (typeof reference === 'string') also(findIn(this.root, reference), task);
  };
}

/** `#/$defs/name` is a path through the schema, `#name` the place that calls itself so. */
export function findIn(root: unknown, reference: string): unknown {
  if (!reference.startsWith('#')) return undefined;
  const target = percentDecoded(reference.slice(1));
  if (target !== '' && !target.startsWith('/')) return withAnchor(root, target);
  let at = root;
  for (const step of target.split('/').slice(1)) {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~');
    const isThere = typeof at === 'object' && at !== null && Object.hasOwn(at, name);
    if (!isThere) return undefined;
    at = (at as Json)[name];
  }
  return at;
}

function withAnchor(root: unknown, name: string): unknown {
  const waiting = [root];
  while (waiting.length > 0) {
    const schema = waiting.pop();
    if (isObject(schema) && schema.$anchor === name) return schema;
    if (typeof schema !== 'object' || schema === null) continue;
    for (const part of Object.values(schema)) waiting.push(part);
  }
  return undefined;
}

// ─── Any value ─────────────────────────────────────────────────────────────────────────────────

const IS_TYPE: Record<string, (value: unknown) => boolean> = {
  null: (value) => value === null,
  boolean: (value) => typeof value === 'boolean',
  string: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number',
  integer: (value) => Number.isInteger(value), // 1.0 is one
  array: Array.isArray,
  object: isObject,
};

/** Two values are the same whatever the order of their names. */
const isSame = (a: unknown, b: unknown) => canonicalJson(a) === canonicalJson(b);
const indexes = new WeakMap<unknown[], Set<string>>(); // of the values of an enum

function isAmong(values: unknown[], value: unknown) {
  const index = indexes.get(values) ?? new Set(values.map((each) => canonicalJson(each)));
  indexes.set(values, index);
  return index.has(canonicalJson(value));
}

const type: Keyword = (wanted, { place, report }) => {
  const isType = (name: unknown) => typeof name === 'string' && Object.hasOwn(IS_TYPE, name);
  const types = listOf(wanted).filter(isType) as string[];
  const isOne = types.some((name) => IS_TYPE[name]!(place.value));
  if (types.length > 0 && !isOne) report(`should be ${types.map(withArticle).join(' or ')}`);
};

const enumeration: Keyword = (wanted, { place, report }) => {
  const values = listOf(wanted);
  if (isAmong(values, place.value)) return;
  const texts = values.slice(0, MAX_NEAR).filter((each) => typeof each === 'string');
  const hint = typeof place.value === 'string' ? hintAt(place.value, texts) : '';
  report(`should be one of ${shown(values)}${hint}`);
};

const constant: Keyword = (wanted, { place, report }) => {
  if (!isSame(wanted, place.value)) report(`should be ${shown(wanted)}`);
};

// ─── Numbers and texts ─────────────────────────────────────────────────────────────────────────

/** A keyword that speaks of numbers only, and whose own value must be one. */
function ofNumber(isGood: (value: number, bound: number) => boolean, words: string): Keyword {
  return (bound, { place: { value }, report }) => {
    if (typeof value !== 'number' || typeof bound !== 'number') return;
    if (!isGood(value, bound)) report(`should be ${words} ${bound}`);
  };
}

/** In floating point 0.0075 / 0.0001 is not quite 75. */
function isMultiple(value: number, of: number) {
  const times = value / of;
  const miss = Math.abs(times - Math.round(times));
  return miss <= Math.abs(times) * Number.EPSILON;
}

/** A keyword that counts: characters, items or names. What it does not count, it does not judge. */
function ofCount(
  count: (value: unknown) => number | undefined,
  isGood: (count: number, bound: number) => boolean,
  words: (bound: number) => string,
): Keyword {
  return (bound, { place: { value }, report }) => {
    const counted = count(value);
    if (counted === undefined || typeof bound !== 'number') return;
    if (!isGood(counted, bound)) report(`should have ${words(bound)}, and has ${counted}`);
  };
}

const isAtLeast = (count: number, bound: number) => count >= bound;
const isAtMost = (count: number, bound: number) => count <= bound;
/** Of a text by code points: an emoji is one character, and in JavaScript two. */
const characters = (value: unknown) => (typeof value === 'string' ? [...value].length : undefined);
const itemsIn = (value: unknown) => (Array.isArray(value) ? value.length : undefined);
const namesIn = (value: unknown) => (isObject(value) ? Object.keys(value).length : undefined);

const pattern: Keyword = (wanted, { place: { value }, report, matches }) => {
  if (typeof value !== 'string' || typeof wanted !== 'string') return;
  if (matches(wanted, value) === false) report(`should match ${shown(wanted)}`);
};

// ─── Lists ─────────────────────────────────────────────────────────────────────────────────────

const itemsOf = ({ value }: InstanceLocation) => asList(value);

/** One item, by one schema. */
function checkItem(n: number, schema: unknown, task: SchemaCheck) {
  const place = { value: itemsOf(task.place)[n], path: `${task.place.path}[${n}]` };
  task.takeOver(task.check(schema, place));
  task.indexes.add(n);
}

/** Every item from `first` on, by one schema. */
function checkItems(schema: unknown, first: number, task: SchemaCheck) {
  for (let n = first; n < itemsOf(task.place).length; n++) checkItem(n, schema, task);
}

/** The first item by the first schema, the second by the second … */
const prefixItems: Keyword = (schemas, task) => {
  const { length } = itemsOf(task.place);
  for (const [n, schema] of listOf(schemas).slice(0, length).entries()) checkItem(n, schema, task);
};

const items: Keyword = (schema, task) => {
  checkItems(schema, listOf(task.schema.prefixItems ?? []).length, task);
};

/** Draft-07 has one word for both. */
const items7: Keyword = (wanted, task) => {
  if (Array.isArray(wanted)) prefixItems(wanted, task);
  else checkItems(wanted, 0, task);
};

const additionalItems: Keyword = (schema, task) => {
  const { items: first } = task.schema;
  if (Array.isArray(first)) checkItems(schema, first.length, task);
};

const contains: Keyword = (schema, task) => {
  const { value, path } = task.place;
  if (!Array.isArray(value)) return;
  const { minContains = 1, maxContains = Infinity } = task.schema as Record<string, number>;
  const isFit = (item: unknown, n: number) =>
    task.fits(schema, { value: item, path: `${path}[${n}]` });
  const found = value.flatMap((item, n) => (isFit(item, n) ? [n] : []));
  for (const n of found) task.indexes.add(n);
  if (found.length < minContains) task.report(`should have ${minContains} or more items of a kind`);
  if (found.length > maxContains) task.report(`should have at most ${maxContains} items of a kind`);
};

const contains7: Keyword = (schema, task) => {
  const { minContains, maxContains, ...rest } = task.schema;
  contains(schema, { ...task, schema: rest });
};

const uniqueItems: Keyword = (wanted, { place: { value }, report }) => {
  if (wanted !== true || !Array.isArray(value)) return;
  const different = new Set(value.map((item) => canonicalJson(item)));
  if (different.size < value.length) report('should not have the same item twice');
};

// ─── Objects ───────────────────────────────────────────────────────────────────────────────────

const inside = (path: string, name: string) => {
  const isWord = /^[A-Za-z_]\w*$/.test(name);
  if (!isWord) return `${path}[${JSON.stringify(name)}]`;
  return path === '' ? name : `${path}.${name}`;
};

/** One property, by one schema. */
function checkName(name: string, schema: unknown, task: SchemaCheck) {
  const { value, path } = task.place;
  const place = { value: (value as Json)[name], path: inside(path, name) };
  task.takeOver(task.check(schema, place));
  task.names.add(name);
}

const namesOf = ({ value }: InstanceLocation) => (isObject(value) ? Object.keys(value) : []);
const hasName = ({ value }: InstanceLocation, name: string) =>
  isObject(value) && Object.hasOwn(value, name);
const schemasOf = (wanted: unknown) => (isObject(wanted) ? Object.entries(wanted) : []);

const required: Keyword = (wanted, { place, report }) => {
  const { value, path } = place;
  if (!isObject(value)) return;
  for (const name of listOf(wanted))
    if (typeof name === 'string' && !Object.hasOwn(value, name))
      report('is missing', inside(path, name));
};

const properties: Keyword = (wanted, task) => {
  for (const [name, schema] of schemasOf(wanted))
    if (hasName(task.place, name)) checkName(name, schema, task);
};

const patternProperties: Keyword = (wanted, task) => {
  for (const [source, schema] of schemasOf(wanted))
    for (const name of namesOf(task.place))
      if (task.matches(source, name)) checkName(name, schema, task);
};

/** Names that neither `properties` nor `patternProperties` beside it speak of. */
const additionalProperties: Keyword = (wanted, task) => {
  const named = asObject(task.schema.properties);
  const patterns = asObject(task.schema.patternProperties);
  const isNamed = (name: string) => Object.hasOwn(named, name);
  const isMatched = (name: string) =>
    Object.keys(patterns).some((source) => task.matches(source, name));
  const others = namesOf(task.place).filter((name) => !isNamed(name) && !isMatched(name));
  const known = Object.keys(named);
  for (const name of others) judgeOther(name, wanted, known, task);
};

/** A name that is not allowed may be a slip. */
function judgeOther(name: string, wanted: unknown, known: string[], task: SchemaCheck) {
  if (wanted !== false) return checkName(name, wanted, task);
  const hint = task.problems.length < MAX_PROBLEMS ? hintAt(name, known) : '';
  task.report(`is not allowed here${hint}`, inside(task.place.path, name));
}

const propertyNames: Keyword = (schema, task) => {
  for (const name of namesOf(task.place))
    task.takeOver(task.check(schema, { value: name, path: inside(task.place.path, name) }));
};

/** With this name, also those. */
const dependentRequired: Keyword = (wanted, task) => {
  for (const [name, others] of schemasOf(wanted))
    if (hasName(task.place, name)) required(others, task);
};

/** With this name, the whole value also fits that schema. */
const dependentSchemas: Keyword = (wanted, task) => {
  for (const [name, schema] of schemasOf(wanted)) if (hasName(task.place, name)) also(schema, task);
};

/** Draft-07 has one word for both. */
const dependencies: Keyword = (wanted, task) => {
  for (const [name, needs] of schemasOf(wanted)) {
    const keyword = Array.isArray(needs) ? dependentRequired : dependentSchemas;
    keyword({ [name]: needs }, task);
  }
};

// ─── Schemas of schemas ────────────────────────────────────────────────────────────────────────

/** The same value fits another schema, too. */
function also(schema: unknown, task: SchemaCheck) {
  const outcome = task.check(schema, task.place);
  task.takeOver(outcome);
  task.adopt(outcome);
}

const allOf: Keyword = (schemas, task) => {
  for (const schema of listOf(schemas)) also(schema, task);
};

/** How many of several schemas it fits. None is a problem. */
function anyOf(schemas: unknown, task: SchemaCheck) {
  const outcomes = listOf(schemas).map((schema) => task.check(schema, task.place));
  const good = outcomes.filter(({ problems }) => problems.length === 0);
  for (const outcome of good) task.adopt(outcome);
  if (good.length === 0) task.report(`fits none of ${outcomes.length} schemas${closest(outcomes)}`);
  return good.length;
}

const oneOf: Keyword = (schemas, task) => {
  const count = anyOf(schemas, task);
  if (count > 1) task.report(`fits ${count} schemas, and should fit one`);
};

/** Of several alternatives, the one that was nearly met says most. */
function closest(outcomes: SchemaCheck[]) {
  const ordered = [...outcomes].sort((a, b) => a.problems.length - b.problems.length);
  const [first] = ordered[0]?.problems ?? [];
  return first ? ` (the nearest: ${first.path} ${first.message})` : '';
}

const not: Keyword = (schema, { place, fits, report }) => {
  if (fits(schema, place)) report('should not be like this');
};

/** What is judged under `if` counts only where it fits. */
const conditional: Keyword = (condition, task) => {
  const outcome = task.check(condition, task.place);
  const isMet = outcome.problems.length === 0;
  if (isMet) task.adopt(outcome);
  also(isMet ? task.schema.then : task.schema.else, task);
};

const unevaluatedItems: Keyword = (schema, task) => {
  for (const n of itemsOf(task.place).keys()) if (!task.indexes.has(n)) checkItem(n, schema, task);
};

const unevaluatedProperties: Keyword = (schema, task) => {
  const known = [...task.names];
  for (const name of namesOf(task.place))
    if (!task.names.has(name)) judgeOther(name, schema, known, task);
  for (const name of namesOf(task.place)) task.names.add(name);
};

// ─── The tables ────────────────────────────────────────────────────────────────────────────────

/** What both drafts have. Other words are notes for people, or nothing we know. */
const KEYWORDS: Record<string, Keyword> = {
  type,
  enum: enumeration,
  const: constant,
  minimum: ofNumber((value, bound) => value >= bound, 'at least'),
  maximum: ofNumber((value, bound) => value <= bound, 'at most'),
  exclusiveMinimum: ofNumber((value, bound) => value > bound, 'more than'),
  exclusiveMaximum: ofNumber((value, bound) => value < bound, 'less than'),
  multipleOf: ofNumber(isMultiple, 'a multiple of'),
  minLength: ofCount(characters, isAtLeast, (bound) => `at least ${bound} characters`),
  maxLength: ofCount(characters, isAtMost, (bound) => `at most ${bound} characters`),
  pattern,
  minItems: ofCount(itemsIn, isAtLeast, (bound) => `at least ${bound} items`),
  maxItems: ofCount(itemsIn, isAtMost, (bound) => `at most ${bound} items`),
  uniqueItems,
  minProperties: ofCount(namesIn, isAtLeast, (bound) => `at least ${bound} names`),
  maxProperties: ofCount(namesIn, isAtMost, (bound) => `at most ${bound} names`),
  required,
  properties,
  patternProperties,
  additionalProperties,
  propertyNames,
  allOf,
  anyOf,
  oneOf,
  not,
  if: conditional,
};

const DRAFT_7: Record<string, Keyword> = {
  items: items7,
  additionalItems,
  contains: contains7,
  dependencies,
};

/** Servers that mean draft-07 rarely say so. Where its words mean nothing else today, they count. */
const DRAFT_2020: Record<string, Keyword> = {
  prefixItems,
  items,
  contains,
  dependentRequired,
  dependentSchemas,
  unevaluatedItems, // last: they judge what is left
  unevaluatedProperties,
};

// ─── Small parts ───────────────────────────────────────────────────────────────────────────────

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [value]);

function hintAt(text: string, known: string[]) {
  const [close] = nearest(text, known.slice(0, MAX_NEAR), 1);
  return close === undefined ? '' : `; did you mean ${JSON.stringify(close)}?`;
}

function withArticle(name: unknown) {
  if (name === 'null') return 'null';
  return /^[aeiou]/.test(`${name}`) ? `an ${name}` : `a ${name}`;
}

function shown(value: unknown) {
  const few = Array.isArray(value) ? value.slice(0, MAX_SHOWN) : value; // each has a character
  const text = JSON.stringify(few) ?? 'nothing';
  return text.length > MAX_SHOWN ? `${copyOf(text.slice(0, MAX_SHOWN))}…` : text;
}
