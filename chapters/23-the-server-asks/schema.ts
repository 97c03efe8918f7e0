// schema.ts: does a value fit a JSON Schema? By hand, for the two drafts that servers write, 2020-12
// and draft-07. A schema comes from a server, so it may be wrong, endless or evil: what cannot be
// judged within limits is not judged, and nothing is ever fetched. Small work is done at once; all
// else in a thread that has so long (chapter 16).

import { createContext, Script } from 'node:vm';
import { asList, asObject, copyOf, isObject, type Json } from '../../mcp.ts';
import { aside } from '../16-hands/aside.ts';
import { nearest } from '../16-hands/nearest.ts';
import { canonicalJson } from '../17-the-gate/digest.ts';
import { percentDecoded } from '../18-minds/proxy.ts';

/** `path` is where in the value, as in items[0].name; empty for the whole of it. */
export type SchemaProblem = { path: string; message: string };

const MAX_DEPTH = 500; // of schemas in schemas: a $ref may lead back to itself
const MAX_PROBLEMS = 100;
const MAX_NEAR = 500; // values among which the nearest is looked for
const MAX_SHOWN = 80; // characters of what a schema expects
const MAX_SMALL = 10_000; // names, values and characters of a schema, or of what is judged by it
const CHECK_MS = 5000; // in a thread

/** How long a check may take, and one text with one pattern: ^(a+)+$ takes years for some. */
type CheckLimits = { endsAt: number; patternMs: number };
const IN_THREAD: CheckLimits = { endsAt: Infinity, patternMs: 100 };
const atOnceLimits = (): CheckLimits => ({ endsAt: performance.now() + 20, patternMs: 5 });
let limits = IN_THREAD; // of the check at work: nothing here waits, so there is one

class OutOfTime extends Error {}

function mustBeInTime(): void {
  if (performance.now() > limits.endsAt) throw new OutOfTime();
}

/** All that is wrong with a value: empty if it fits. Throws TooSlow. */
export async function problemsFound(
  schema: unknown,
  value: unknown,
  signal?: AbortSignal,
): Promise<SchemaProblem[]> {
  const job = { module: '23-the-server-asks/schema', name: 'problemsWith', timeoutMs: CHECK_MS };
  const found = atOnce(() => problemsWith(schema, value), schema, value);
  return found ?? aside<typeof problemsWith>({ ...job, signal }, schema, value);
}

/** Undefined if it is too much, or takes too long, to be done here. */
export function atOnce<T>(check: () => T, ...given: unknown[]): T | undefined {
  if (!given.every(isSmall)) return undefined;
  limits = atOnceLimits();
  try {
    return check();
  } catch (error) {
    if (error instanceof OutOfTime) return undefined;
    throw error;
  } finally {
    limits = IN_THREAD;
  }
}

const smallOnes = new WeakSet<object>(); // a schema stays, and is used for every call

function isSmall(value: unknown): boolean {
  if (isObject(value) && smallOnes.has(value)) return true;
  const waiting = [value];
  for (let count = 0; waiting.length > 0; count++) {
    const next = waiting.pop();
    if (Array.isArray(next) && next.length > MAX_SMALL) return false; // without a look at each
    const parts = typeof next === 'object' && next !== null ? Object.entries(next) : [];
    count += typeof next === 'string' ? next.length : parts.length;
    if (count > MAX_SMALL) return false;
    for (const [name, part] of parts) waiting.push(part, Array.isArray(next) ? 0 : name);
  }
  if (isObject(value)) smallOnes.add(value);
  return true;
}

/** The same here, however long it takes. Empty also for a schema that is too deep to judge. Formats
 *  such as "email" are not judged: in both drafts they are notes. `root`: the whole of which the
 *  schema is a part, for the references in it. */
export function problemsWith(schema: unknown, value: unknown, root = schema): SchemaProblem[] {
  try {
    const { problems } = new Checker(root).check(schema, { value, path: '' });
    return problems.slice(0, MAX_PROBLEMS);
  } catch (error) {
    if (error instanceof RangeError) return []; // deeper than the stack
    throw error;
  }
}

// ─── What a check is made of ───────────────────────────────────────────────────────────────────

/** A value, and where in the whole it is. */
type InstanceLocation = { value: unknown; path: string };

/** `names` and `indexes`: the parts of the value that some keyword has judged. The two keywords
 *  that begin with "unevaluated" judge all others. */
type Evaluation = { problems: SchemaProblem[]; names: Set<string>; indexes: Set<number> };

/** One schema against one value. */
type SchemaCheck = Evaluation & {
  schema: Json;
  place: InstanceLocation;
  report: (message: string, path?: string) => void;
  /** Another schema, one level deeper. */
  check: (schema: unknown, place: InstanceLocation) => Evaluation;
  fits: (schema: unknown, place: InstanceLocation) => boolean;
  takeOver: (outcome: Evaluation) => void; // its problems, as far as they will be told
  adopt: (outcome: Evaluation) => void; // what it has judged is judged here, too
};

/** Looks at its own part of a schema. It reports what is wrong, and marks what it has judged. */
type Keyword = (wanted: any, task: SchemaCheck) => void;

class Checker {
  private root: unknown;
  private isDraft7: boolean;
  private table: [string, Keyword][];
  private depth = 0;

  constructor(root: unknown) {
    this.root = root;
    const { $schema } = asObject(root);
    this.isDraft7 = typeof $schema === 'string' && /draft-0[4-7]/.test($schema);
    const more = this.isDraft7 ? DRAFT_7 : DRAFT_2020;
    this.table = Object.entries({ $ref: this.follow, ...KEYWORDS, ...more });
  }

  check(schema: unknown, place: InstanceLocation): Evaluation {
    const outcome: Evaluation = { problems: [], names: new Set(), indexes: new Set() };
    if (schema === false) {
      outcome.problems.push({ path: place.path, message: 'is not allowed here' });
    }
    if (!isObject(schema)) return outcome; // true allows everything, and so does what is no schema
    if (++this.depth > MAX_DEPTH) throw new RangeError('too deep');
    const task = this.taskFor(schema, place, outcome);
    for (const [name, keyword] of this.keywordsOf(schema)) {
      mustBeInTime();
      keyword(schema[name], task);
    }
    this.depth--;
    return outcome;
  }

  private taskFor(schema: Json, place: InstanceLocation, outcome: Evaluation): SchemaCheck {
    const check = (inner: unknown, at: InstanceLocation) => this.check(inner, at);
    return {
      ...outcome,
      schema,
      place,
      check,
      report: (message, path = place.path) => void outcome.problems.push({ path, message }),
      takeOver: ({ problems }) => {
        const room = Math.max(0, MAX_PROBLEMS - outcome.problems.length);
        outcome.problems.push(...problems.slice(0, room));
      },
      fits: (inner, at) => check(inner, at).problems.length === 0,
      adopt: ({ names, indexes }) => {
        for (const name of names) outcome.names.add(name);
        for (const index of indexes) outcome.indexes.add(index);
      },
    };
  }

  /** In the order of the table: what judges the rest comes last. In draft-07 a $ref is alone. */
  private keywordsOf(schema: Json): [string, Keyword][] {
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

function isAmong(values: unknown[], value: unknown): boolean {
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
function isMultiple(value: number, of: number): boolean {
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

const pattern: Keyword = (wanted, { place: { value }, report }) => {
  if (typeof value !== 'string' || typeof wanted !== 'string') return;
  if (matches(wanted, value) === false) report(`should match ${shown(wanted)}`);
};

const context = createContext({ expression: /x/, text: '' });
const test = new Script('expression.test(text)');

/** Undefined where that cannot be said: the pattern is wrong, or takes too long. Node cannot stop a
 *  regular expression that has begun, but it can stop a script. */
function matches(source: string, text: string): boolean | undefined {
  mustBeInTime();
  try {
    context.expression = new RegExp(source, 'u');
    context.text = text;
    return test.runInContext(context, { timeout: limits.patternMs }) as boolean;
  } catch (error) {
    const isSlow = asObject(error).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT';
    if (isSlow && limits !== IN_THREAD) throw new OutOfTime();
    return undefined;
  }
}

// ─── Lists ─────────────────────────────────────────────────────────────────────────────────────

const itemsOf = ({ value }: InstanceLocation) => asList(value);

/** One item, by one schema. */
function checkItem(n: number, schema: unknown, task: SchemaCheck): void {
  const place = { value: itemsOf(task.place)[n], path: `${task.place.path}[${n}]` };
  task.takeOver(task.check(schema, place));
  task.indexes.add(n);
}

/** Every item from `first` on, by one schema. */
function checkItems(schema: unknown, first: number, task: SchemaCheck): void {
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
function checkName(name: string, schema: unknown, task: SchemaCheck): void {
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
      if (matches(source, name)) checkName(name, schema, task);
};

/** Names that neither `properties` nor `patternProperties` beside it speak of. */
const additionalProperties: Keyword = (wanted, task) => {
  const named = asObject(task.schema.properties);
  const patterns = asObject(task.schema.patternProperties);
  const isNamed = (name: string) => Object.hasOwn(named, name);
  const isMatched = (name: string) => Object.keys(patterns).some((source) => matches(source, name));
  const others = namesOf(task.place).filter((name) => !isNamed(name) && !isMatched(name));
  const known = Object.keys(named);
  for (const name of others) judgeOther(name, wanted, known, task);
};

/** A name that is not allowed may be a slip. */
function judgeOther(name: string, wanted: unknown, known: string[], task: SchemaCheck): void {
  if (wanted !== false) return checkName(name, wanted, task);
  const hint = task.problems.length < MAX_PROBLEMS ? hintAt(name, known) : '';
  task.report(`is not allowed here${hint}`, inside(task.place.path, name));
}

const propertyNames: Keyword = (schema, task) => {
  for (const name of namesOf(task.place)) {
    task.takeOver(task.check(schema, { value: name, path: inside(task.place.path, name) }));
  }
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
function also(schema: unknown, task: SchemaCheck): void {
  const outcome = task.check(schema, task.place);
  task.takeOver(outcome);
  task.adopt(outcome);
}

const allOf: Keyword = (schemas, task) => {
  for (const schema of listOf(schemas)) also(schema, task);
};

/** How many of several schemas it fits. None is a problem. */
function anyOf(schemas: unknown, task: SchemaCheck): number {
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
function closest(outcomes: Evaluation[]): string {
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

function hintAt(text: string, known: string[]): string {
  const [close] = nearest(text, known.slice(0, MAX_NEAR), 1);
  return close === undefined ? '' : `; did you mean ${JSON.stringify(close)}?`;
}

function withArticle(name: unknown): string {
  if (name === 'null') return 'null';
  return /^[aeiou]/.test(`${name}`) ? `an ${name}` : `a ${name}`;
}

function shown(value: unknown): string {
  const few = Array.isArray(value) ? value.slice(0, MAX_SHOWN) : value; // each has a character
  const text = JSON.stringify(few) ?? 'nothing';
  return text.length > MAX_SHOWN ? `${copyOf(text.slice(0, MAX_SHOWN))}…` : text;
}
