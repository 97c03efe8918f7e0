// tool-arguments.ts: do a model's arguments fit the tool? That is found out before the person is
// asked, and before the server is: servers say it each in their own words, and some never say it.
//
// What leaves no doubt is mended: "3" where a number is wanted, JSON text where a list is, null for
// what may be left out. All else goes back to the model, in words that it can act upon.

import { asObject, excerpt, isObject, textOf, type Json } from '../../mcp.ts';
import { aside } from '../16-hands/aside.ts';
import { nearest } from '../16-hands/nearest.ts';
import { canonicalJson } from '../17-the-gate/digest.ts';
import { plain } from '../17-the-gate/safe-text.ts';
import { findIn, type SchemaProblem } from '../23-the-server-asks/keywords.ts';
import { atOnce, problemsWith } from '../23-the-server-asks/schema.ts';

const MEND_MS = 5000; // in a thread
const MAX_LEVELS = 50;
const MAX_REFERENCES = 10; // that lead to another one
const MAX_REFUSAL = 2000; // characters of what the model is told

/** The arguments to call with; or, with a refusal, why there is no call. */
type Prepared = { args: Json; refusal?: string };

/** What the schema is too much for is left to the server to judge, and `note` tells the user. */
export async function preparedArguments(
  given: Json,
  schema: Json,
  signal: AbortSignal,
): Promise<Prepared & { note?: string }> {
  const module = '28-a-thousand-tools/tool-arguments';
  const job = { module, name: 'prepareArguments', timeoutMs: MEND_MS, signal };
  const prepared = atOnce(() => prepareArguments(given, schema), given, schema);
  if (prepared) return prepared;
  return aside<typeof prepareArguments>(job, given, schema).catch((error) => {
    const note = `its arguments were not checked: by the schema of its server ${textOf(error)}`;
    return { args: given, note };
  });
}

/** The same here, however long it takes. */
export function prepareArguments(given: Json, schema: Json): Prepared {
  if (problemsWith(schema, given).length === 0) return { args: given };
  const args = asObject(new Mender(schema).mend(given, schema));
  const left = problemsWith(schema, args);
  const problems = left.filter(({ path }) => !isDoubtful(path, args, schema));
  if (problems.length === 0) return { args };
  return { args, refusal: explain(problems, args, schema) };
}

/** The schema itself may be at fault: with a default that does not fit it, or with a list of values
 *  that is empty. Real servers have both, and take what their schemas refuse. */
function isDoubtful(path: string, args: Json, schema: Json): boolean {
  const steps = stepsOf(path);
  const part = asObject(schemaAt(steps, schema));
  if (Array.isArray(part.enum) && part.enum.length === 0) return true;
  if (!Object.hasOwn(part, 'default')) return false;
  return canonicalJson(part.default) === canonicalJson(valueAt(steps, args));
}

// ─── Mending ───────────────────────────────────────────────────────────────────────────────────

class Mender {
  private root: Json;

  constructor(root: Json) {
    this.root = root;
  }

  /** What was meant, if the schema leaves no doubt about it; else the value as it is. */
  mend(value: unknown, by: unknown, level = 0): unknown {
    const schema = follow(by, this.root);
    const isOver = level > MAX_LEVELS;
    if (isOver || !isObject(schema) || this.fits(value, schema)) return value;
    if (typeof value === 'string') return this.meant(value, schema, level + 1);
    const mended = this.withParts(value, schema, level + 1);
    if (this.fits(mended, schema)) return mended;
    return this.byAlternative(mended, schema, level + 1);
  }

  private fits(value: unknown, schema: unknown) {
    return problemsWith(schema, value, this.root).length === 0;
  }

  /** A text that is no good as a text may be a number, or the JSON of something. */
  private meant(text: string, schema: Json, level: number) {
    const meaning = meaningOf(text);
    if (meaning === undefined) return text;
    const mended = this.mend(meaning, schema, level);
    return this.fits(mended, schema) ? mended : text;
  }

  /** The same list or object, with each part mended by its own schema. */
  private withParts(value: unknown, schema: Json, level: number) {
    if (Array.isArray(value))
      return value.map((item, n) => this.mend(item, partOf(schema, n), level));
    if (!isObject(value)) return value;
    const kept = Object.entries(value).filter(
      ([name, each]) => each !== null || !this.mayBeLeftOut(name, schema),
    );
    return Object.fromEntries(
      kept.map(([name, each]) => [name, this.mend(each, partOf(schema, name), level)]),
    );
  }

  /** Models write null for "not given", also where the schema knows nothing of null. */
  private mayBeLeftOut(name: string, schema: Json) {
    const part = partOf(schema, name);
    const { required } = schema;
    const isRequired = Array.isArray(required) && required.includes(name);
    return part !== undefined && !isRequired && !this.fits(null, part);
  }

  /** Of several schemas, the only one that it can be mended for. */
  private byAlternative(value: unknown, schema: Json, level: number) {
    const alternatives = [schema.anyOf, schema.oneOf].flatMap((each) => each ?? []);
    const mended = alternatives.map((each) => this.mend(value, each, level));
    const good = mended.filter((each) => this.fits(each, schema));
    const different = new Set(good.map((each) => canonicalJson(each)));
    return different.size === 1 ? good[0] : value;
  }
}

/** What else a text may be: the value that it is the JSON of. */
function meaningOf(text: string): unknown {
  const trimmed = text.trim();
  if (!/^([-\d[{]|(true|false|null)$)/.test(trimmed) || losesNumbers(trimmed)) return undefined;
  try {
    return JSON.parse(trimmed);
  } catch {
    return undefined;
  }
}

/** Does it have a number that would come out as another one? 1e999 would even be sent as null. */
function losesNumbers(json: string) {
  const outsideOfTexts = json.replace(/"(?:[^"\\]|\\[^])*(?:"|\\?$)/g, '');
  const numbers = outsideOfTexts.match(/-?\d[\d.eE+-]*/g) ?? [];
  return numbers.some((digits) => {
    const isWhole = /^-?\d+$/.test(digits);
    const number = Number(digits);
    return isWhole ? !Number.isSafeInteger(number) : !Number.isFinite(number);
  });
}

// ─── Parts of a schema, and of a value ─────────────────────────────────────────────────────────

function follow(schema: unknown, root: Json) {
  let at = schema;
  for (let times = 0; times < MAX_REFERENCES; times++) {
    if (!isObject(at) || typeof at.$ref !== 'string') return at;
    at = findIn(root, at.$ref);
  }
  return undefined;
}

/** The schema of an item, or of a property. */
function partOf(schema: Json, step: string | number) {
  if (typeof step === 'number') {
    const { prefixItems, items } = schema;
    const [first = items] = listOf(prefixItems ?? items).slice(step, step + 1);
    return Array.isArray(first) ? undefined : first;
  }
  const properties = asObject(schema.properties);
  if (Object.hasOwn(properties, step)) return properties[step];
  return isObject(schema.additionalProperties) ? schema.additionalProperties : undefined;
}

/** The part of a schema that is about this place. Among alternatives, the first that has it. */
function schemaAt(steps: (string | number)[], root: Json) {
  let at = follow(root, root);
  for (const step of steps) {
    if (!isObject(at)) return undefined;
    const { allOf, anyOf, oneOf } = at;
    const all = [at, ...[allOf, anyOf, oneOf].flatMap(listOf)];
    const parts = all.map((each) => partOf(asObject(follow(each, root)), step));
    at = follow(
      parts.find((part) => part !== undefined),
      root,
    );
  }
  return at;
}

function valueAt(steps: (string | number)[], value: unknown) {
  let at = value;
  for (const step of steps) {
    const isThere = typeof at === 'object' && at !== null && Object.hasOwn(at, step);
    at = isThere ? (at as Json)[step] : undefined;
  }
  return at;
}

/** items[0].name is three steps, and so is items[0]["odd name"]. */
function stepsOf(path: string) {
  const steps = path.matchAll(/\.?([A-Za-z_]\w*)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]/g);
  return [...steps].map(([, word, index, name]) => {
    if (index !== undefined) return Number(index);
    return word ?? (JSON.parse(name!) as string);
  });
}

const listOf = (value: unknown): unknown[] => {
  if (Array.isArray(value)) return value;
  return value === undefined ? [] : [value];
};

// ─── What the model is told ────────────────────────────────────────────────────────────────────

const MISFIT = 'Not called: these arguments do not fit the tool. Correct them and call it again.';

function explain(problems: SchemaProblem[], args: Json, schema: Json) {
  const lines = [MISFIT];
  let length = MISFIT.length;
  for (const [n, problem] of problems.entries()) {
    const line = complaint(problem, args, schema);
    length += line.length + 1;
    const more = `… and ${problems.length - n} more`;
    if (length > MAX_REFUSAL - more.length) return [...lines, more].join('\n');
    lines.push(line);
  }
  return lines.join('\n');
}

function complaint({ path, message }: SchemaProblem, args: Json, schema: Json) {
  const steps = stepsOf(path);
  const where = path === '' ? 'the arguments' : path;
  const given = valueAt(steps, args);
  const part = schemaAt(steps, schema);
  const hint = given === undefined ? misnamed(steps, args, schema) : ` (given: ${shown(given)})`;
  const expected = part === undefined || path === '' ? '' : `\n  expected: ${shown(part)}`;
  return `- ${plain(where)} ${plain(message)}${hint}${expected}`;
}

/** What is missing may be there under another name: filePath for path, file_path for filePath. */
function misnamed(steps: (string | number)[], args: Json, schema: Json) {
  const name = String(steps.at(-1));
  const outer = steps.slice(0, -1);
  const known = asObject(asObject(schemaAt(outer, schema)).properties);
  const given = Object.keys(asObject(valueAt(outer, args)));
  const strange = given.filter((each) => !Object.hasOwn(known, each));
  const wanted = bare(name);
  const isInside = (each: string) => bare(each).includes(wanted) || wanted.includes(bare(each));
  const [close = strange.find(isInside)] = nearest(name, strange, 1);
  return close === undefined ? '' : `; did you mean it by ${shown(close)}?`;
}

const bare = (name: string) => name.toLowerCase().replace(/[^a-z0-9]/g, '');

const shown = (value: unknown) => plain(excerpt(value));
