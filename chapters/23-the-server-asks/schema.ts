// schema.ts: does a value fit a JSON Schema? By hand, for the two drafts that servers write, 2020-12
// and draft-07. A schema comes from a server, so it may be wrong, endless or evil: what cannot be
// judged within limits is not judged, and nothing is ever fetched.

import { createContext, Script } from 'node:vm';
import { asObject, isObject, type Json } from '../../mcp.ts';
import { nearest } from '../16-hands/nearest.ts';
import { canonical } from '../17-the-gate/digest.ts';

/** `path` is where in the value, as in items[0].name; empty for the whole of it. */
export type Problem = { path: string; message: string };

const MAX_STEPS = 200_000; // keywords that are looked at
const MAX_DEPTH = 500; // of schemas in schemas: a $ref may lead back to itself
const MAX_PROBLEMS = 100;
const MAX_MS = 2000; // for all of it: one keyword may hold a list of a million values
const MAX_NEAR = 500; // values among which the nearest is looked for
const PATTERN_MS = 100; // for one text and one pattern: ^(a+)+$ takes years for some
const MAX_SHOWN = 80; // characters of what a schema expects

/** All that is wrong with a value: empty if it fits. Also empty for a schema that is too much to
 *  judge. Formats such as "email" are not judged here: in both drafts they are notes. `root`: the
 *  whole of which the schema is a part, for the references in it. */
export function problemsWith(schema: unknown, value: unknown, root = schema): Problem[] {
  deadline = performance.now() + MAX_MS;
  try {
    const { problems } = new Checker(root).check(schema, { value, path: '' });
    return problems.slice(0, MAX_PROBLEMS);
  } catch (error) {
    // Out of steps or of time, or deeper than the stack.
    if (error instanceof RangeError) return [];
    throw error;
  }
}

let deadline = Infinity; // of the check at work: nothing here waits, so there is one

function mustBeInTime(): void {
  if (performance.now() > deadline) throw new RangeError('too slow');
}

// ─── What a check is made of ───────────────────────────────────────────────────────────────────

/** A value, and where in the whole it is. */
type Place = { value: unknown; path: string };

/** `names` and `indexes`: the parts of the value that some keyword has judged. The two keywords
 *  that begin with "unevaluated" judge all others. */
type Outcome = { problems: Problem[]; names: Set<string>; indexes: Set<number> };

/** One schema against one value. */
type Task = Outcome & {
  schema: Json;
  place: Place;
  report: (message: string, path?: string) => void;
  check: (schema: unknown, place: Place) => Outcome; // another schema, one level deeper
  fits: (schema: unknown, place: Place) => boolean;
  adopt: (outcome: Outcome) => void; // what it has judged is judged here, too
};

/** Looks at its own part of a schema. It reports what is wrong, and marks what it has judged. */
type Keyword = (wanted: any, task: Task) => void;

class Checker {
  private root: unknown;
  private isDraft7: boolean;
  private steps = 0;
  private depth = 0;

  constructor(root: unknown) {
    this.root = root;
    const { $schema } = isObject(root) ? root : {};
    this.isDraft7 = typeof $schema === 'string' && /draft-0[4-7]/.test($schema);
  }

  check(schema: unknown, place: Place): Outcome {
    const outcome: Outcome = { problems: [], names: new Set(), indexes: new Set() };
    if (schema === false) outcome.problems.push(problem(place, 'is not allowed here'));
    if (!isObject(schema)) return outcome; // true allows everything, and so does what is no schema
    if (++this.depth > MAX_DEPTH) throw new RangeError('too deep');
    const task = this.taskFor(schema, place, outcome);
    for (const [name, keyword] of this.keywordsOf(schema)) {
      if (++this.steps > MAX_STEPS) throw new RangeError('too many steps');
      mustBeInTime();
      keyword(schema[name], task);
    }
    this.depth--;
    return outcome;
  }

  private taskFor(schema: Json, place: Place, outcome: Outcome): Task {
    const check = (inner: unknown, at: Place) => this.check(inner, at);
    return {
      ...outcome,
      schema,
      place,
      check,
      report: (message, path) => outcome.problems.push(problem(place, message, path)),
      fits: (inner, at) => check(inner, at).problems.length === 0,
      adopt: ({ names, indexes }) => {
        for (const name of names) outcome.names.add(name);
        for (const index of indexes) outcome.indexes.add(index);
      },
    };
  }

  /** In the order of the table: what judges the rest comes last. In draft-07 a $ref is alone. */
  private keywordsOf(schema: Json): [string, Keyword][] {
    const { isDraft7 } = this;
    const table = { $ref: this.follow, ...KEYWORDS, ...(isDraft7 ? DRAFT_7 : DRAFT_2020) };
    const present = Object.entries(table).filter(([name]) => Object.hasOwn(schema, name));
    const isAlone = isDraft7 && Object.hasOwn(schema, '$ref');
    return isAlone ? present.filter(([name]) => name === '$ref') : present;
  }

  /** What is elsewhere, on a network, is not judged. */
  private follow: Keyword = (reference, { place, problems, adopt }) => {
    const found = typeof reference === 'string' ? findIn(this.root, reference) : undefined;
    const outcome = this.check(found, place);
    problems.push(...outcome.problems);
    adopt(outcome);
  };
}

/** `#/$defs/name` is a path through the schema, `#name` the place that calls itself so. */
export function findIn(root: unknown, reference: string): unknown {
  if (!reference.startsWith('#')) return undefined;
  const target = decoded(reference.slice(1));
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

function problem({ path: here }: Place, message: string, path = here): Problem {
  return { path, message };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a % that is only a %
  }
}

function withAnchor(root: unknown, name: string): unknown {
  const waiting = [root];
  for (let steps = 0; waiting.length > 0 && steps < MAX_STEPS; steps++) {
    const schema = waiting.pop();
    if (isObject(schema) && schema.$anchor === name) return schema;
    if (typeof schema === 'object' && schema !== null) waiting.push(...Object.values(schema));
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
const isSame = (a: unknown, b: unknown) => canonical(a) === canonical(b);

const type: Keyword = (wanted, { place, report }) => {
  const isType = (name: unknown) => typeof name === 'string' && Object.hasOwn(IS_TYPE, name);
  const types = listOf(wanted).filter(isType) as string[];
  const isOne = types.some((name) => IS_TYPE[name]!(place.value));
  if (types.length > 0 && !isOne) report(`should be ${types.map(withArticle).join(' or ')}`);
};

const enumeration: Keyword = (wanted, { place, report }) => {
  const values = listOf(wanted);
  if (values.some((each) => isSame(each, place.value))) return;
  const texts = values.filter((each) => typeof each === 'string').slice(0, MAX_NEAR);
  const [close] = typeof place.value === 'string' ? nearest(place.value, texts, 1) : [];
  const hint = close === undefined ? '' : `; did you mean ${JSON.stringify(close)}?`;
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
    return test.runInContext(context, { timeout: PATTERN_MS }) as boolean;
  } catch {
    return undefined;
  }
}

// ─── Lists ─────────────────────────────────────────────────────────────────────────────────────

/** Every item from `first` on, by one schema. */
function checkItems(schema: unknown, first: number, task: Task): void {
  const { value, path } = task.place;
  if (!Array.isArray(value)) return;
  for (let n = first; n < value.length; n++) {
    const { problems } = task.check(schema, { value: value[n], path: `${path}[${n}]` });
    task.problems.push(...problems);
    task.indexes.add(n);
  }
}

/** The first item by the first schema, the second by the second … */
const prefixItems: Keyword = (schemas, task) => {
  const { value, path } = task.place;
  if (!Array.isArray(value)) return;
  for (const [n, schema] of listOf(schemas).slice(0, value.length).entries()) {
    const { problems } = task.check(schema, { value: value[n], path: `${path}[${n}]` });
    task.problems.push(...problems);
    task.indexes.add(n);
  }
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
  const different = new Set(value.map((item) => canonical(item)));
  if (different.size < value.length) report('should not have the same item twice');
};

// ─── Objects ───────────────────────────────────────────────────────────────────────────────────

const inside = (path: string, name: string) => {
  const isWord = /^[A-Za-z_]\w*$/.test(name);
  if (!isWord) return `${path}[${JSON.stringify(name)}]`;
  return path === '' ? name : `${path}.${name}`;
};

/** One property, by one schema. */
function checkName(name: string, schema: unknown, task: Task): void {
  const { value, path } = task.place;
  const place = { value: (value as Json)[name], path: inside(path, name) };
  task.problems.push(...task.check(schema, place).problems);
  task.names.add(name);
}

const namesOf = ({ value }: Place) => (isObject(value) ? Object.keys(value) : []);
const schemasOf = (wanted: unknown) => (isObject(wanted) ? Object.entries(wanted) : []);

const required: Keyword = (wanted, { place, report }) => {
  const { value, path } = place;
  if (!isObject(value)) return;
  for (const name of listOf(wanted))
    if (typeof name === 'string' && !Object.hasOwn(value, name)) report('is missing', inside(path, name));
};

const properties: Keyword = (wanted, task) => {
  for (const [name, schema] of schemasOf(wanted))
    if (namesOf(task.place).includes(name)) checkName(name, schema, task);
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
  for (const name of others) judgeOther(name, wanted, Object.keys(named), task);
};

/** A name that is not allowed may be a slip. */
function judgeOther(name: string, wanted: unknown, known: string[], task: Task): void {
  if (wanted !== false) return checkName(name, wanted, task);
  const [close] = nearest(name, known.slice(0, MAX_NEAR), 1);
  const hint = close === undefined ? '' : `; did you mean ${JSON.stringify(close)}?`;
  task.report(`is not allowed here${hint}`, inside(task.place.path, name));
}

const propertyNames: Keyword = (schema, task) => {
  for (const name of namesOf(task.place)) {
    const { problems } = task.check(schema, { value: name, path: inside(task.place.path, name) });
    task.problems.push(...problems);
  }
};

/** With this name, also those. */
const dependentRequired: Keyword = (wanted, task) => {
  for (const [name, others] of schemasOf(wanted))
    if (namesOf(task.place).includes(name)) required(others, task);
};

/** With this name, the whole value also fits that schema. */
const dependentSchemas: Keyword = (wanted, task) => {
  for (const [name, schema] of schemasOf(wanted))
    if (namesOf(task.place).includes(name)) also(schema, task);
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
function also(schema: unknown, task: Task): void {
  const outcome = task.check(schema, task.place);
  task.problems.push(...outcome.problems);
  task.adopt(outcome);
}

const allOf: Keyword = (schemas, task) => {
  for (const schema of listOf(schemas)) also(schema, task);
};

const anyOf: Keyword = (schemas, task) => {
  const outcomes = listOf(schemas).map((schema) => task.check(schema, task.place));
  const good = outcomes.filter(({ problems }) => problems.length === 0);
  for (const outcome of good) task.adopt(outcome);
  if (good.length === 0) task.report(`fits none of ${outcomes.length} schemas${closest(outcomes)}`);
};

const oneOf: Keyword = (schemas, task) => {
  const outcomes = listOf(schemas).map((schema) => task.check(schema, task.place));
  const good = outcomes.filter(({ problems }) => problems.length === 0);
  for (const outcome of good) task.adopt(outcome);
  if (good.length === 0) task.report(`fits none of ${outcomes.length} schemas${closest(outcomes)}`);
  if (good.length > 1) task.report(`fits ${good.length} schemas, and should fit one`);
};

/** Of several alternatives, the one that was nearly met says most. */
function closest(outcomes: Outcome[]): string {
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
  const { value, path } = task.place;
  if (!Array.isArray(value)) return;
  for (const [n, item] of value.entries()) {
    if (task.indexes.has(n)) continue;
    task.problems.push(...task.check(schema, { value: item, path: `${path}[${n}]` }).problems);
    task.indexes.add(n);
  }
};

const unevaluatedProperties: Keyword = (schema, task) => {
  for (const name of namesOf(task.place))
    if (!task.names.has(name)) judgeOther(name, schema, [...task.names], task);
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

function withArticle(name: unknown): string {
  if (name === 'null') return 'null';
  return /^[aeiou]/.test(`${name}`) ? `an ${name}` : `a ${name}`;
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}
