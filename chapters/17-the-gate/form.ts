// A form, asked for field by field. Its description is a flat JSON Schema: an object whose values
// are texts, numbers, yes or no, or one of a list. That is all that `elicitation/create` allows.

import { isObject, type Json } from '../../mcp.ts';
import { headed, pick, type Read } from './dialogue.ts';
import type { Filled, FormQuestion } from './person.ts';
import { quoted, spelledOut } from './safe-text.ts';

const MAX_FIELDS = 50;
const MAX_OPTIONS = 100;
const MAX_SHOWN = 500; // of a title or a description, in characters
const MAX_ANSWER = 10_000;
const MAX_TRIES = 10; // of one field, before the form is given up

type Option = { value: unknown; text: string; title: string }; // `text` is the value, as typed
export type Field = {
  name: string;
  title: string; // quoted, as are the next two
  description?: string;
  options: Option[];
  isNumbered: boolean; // an option may be chosen by its number
  isNeeded: boolean;
  kind: string; // which of the readers below understands the answer
  schema: Json;
  fallback?: unknown; // what an empty line means
};

const short = (text: string) =>
  quoted(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text);

// ─── The conversation ──────────────────────────────────────────────────────────────────────────

const [YES, NO, CHANGE] = [
  { key: 'y', word: 'yes', label: '[y]es' },
  { key: 'n', word: 'no', label: '[n]o', isNo: true },
  { key: 'c', word: 'change', label: '[c]hange it' },
] as const;

/** Shows the fields, asks for each, shows the answers. The user may decline before and after. */
export async function fillInForm(read: Read, question: FormQuestion): Promise<Filled> {
  const fields = fieldsOrNone(question.schema);
  if (!fields) return { action: 'cancel' };
  if (fields.length > 0) {
    const lines = [...question.lines, ...fields.flatMap(overview)];
    const start = { ...question, lines, prompt: 'Fill it in?', choices: [YES, NO] };
    const answer = await pick(read, start);
    if (answer?.key !== 'y') return { action: answer ? 'decline' : 'cancel' };
  }
  for (;;) {
    const content = await fillInFields(read, fields);
    if (!content) return { action: 'cancel' };
    const last = { lines: preview(question, content), prompt: 'Send it?' };
    const choices = fields.length > 0 ? [YES, NO, CHANGE] : [YES, NO];
    const answer = await pick(read, { ...last, choices });
    if (answer?.key === 'y') return { action: 'accept', content };
    if (answer?.key !== 'c') return { action: answer ? 'decline' : 'cancel' };
    for (const field of fields) field.fallback = content[field.name] ?? field.fallback;
  }
}

function fieldsOrNone(schema: Json): Field[] | undefined {
  try {
    return fieldsOf(schema);
  } catch {
    return undefined; // the handler has called fieldsOf itself, and told the server what is wrong
  }
}

function preview(question: FormQuestion, content: Json): string[] {
  const answers = spelledOut(content);
  if (Object.keys(content).length > 0) return ['These are your answers:', ...answers];
  return [...headed(question), '  (there is nothing to fill in)'];
}

async function fillInFields(read: Read, fields: Field[]): Promise<Json | undefined> {
  const answers: [string, unknown][] = [];
  for (const field of fields) {
    const answer = await fillInField(read, field);
    if (!answer) return undefined;
    if (answer.value !== undefined) answers.push([field.name, answer.value]);
  }
  return Object.fromEntries(answers);
}

/** Nothing if there is no answer; a `value` of undefined if the field is left out. */
async function fillInField(read: Read, field: Field): Promise<{ value: unknown } | undefined> {
  let lines = optionLines(field);
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const typed = (await read({ lines, prompt: promptFor(field) }))?.trim();
    if (typed === undefined) return undefined;
    const reading = typed === '' ? readEmpty(field) : readAnswer(typed, field);
    if ('value' in reading) return reading;
    lines = [`That is not it: ${reading.problem}.`];
  }
  return undefined;
}

function promptFor(field: Field): string {
  const { title, fallback, isNeeded } = field;
  const about = `${title} (${wordsFor(field)})`;
  if (fallback !== undefined) return `${about}, empty for ${short(String(fallback))}`;
  return isNeeded ? about : `${about}, empty to leave it out`;
}

function overview(field: Field): string[] {
  const { title, description, isNeeded } = field;
  const first = `  ${title}: ${wordsFor(field)}${isNeeded ? '' : ', may be left out'}`;
  return description === undefined ? [first] : [first, `    ${description}`];
}

function optionLines({ options, isNumbered }: Field): string[] {
  return options.map(({ text, title }, n) => {
    const name = title === text ? short(text) : `${short(title)}, which is ${short(text)}`;
    return isNumbered ? `  ${n + 1} = ${name}` : `  ${name}`;
  });
}

// ─── The fields ────────────────────────────────────────────────────────────────────────────────

/** The fields in the order of the schema. Throws if one cannot be asked for in this way. */
export function fieldsOf(schema: Json): Field[] {
  const properties = isObject(schema.properties) ? schema.properties : {};
  const required = Array.isArray(schema.required) ? schema.required : [];
  const names = Object.keys(properties);
  const missing = required.find((name) => !names.includes(name));
  if (missing !== undefined)
    throw new Error(`the form requires ${quoted(String(missing))}, which is not among its fields`);
  if (names.length > MAX_FIELDS) throw new Error(`the form has more than ${MAX_FIELDS} fields`);
  return names.map((name) => fieldOf(name, properties[name], required.includes(name)));
}

function fieldOf(name: string, schema: unknown, isNeeded: boolean): Field {
  if (!isObject(schema)) throw new Error(`the form's field ${quoted(name)} is not described`);
  const { title, description } = schema;
  const options = optionsOf(schema);
  const kind = options.length > 0 ? 'option' : String(schema.type);
  if (!Object.hasOwn(READERS, kind) || options.length > MAX_OPTIONS)
    throw new Error(`the form's field ${quoted(name)} is of a kind that cannot be asked for`);
  const field: Field = {
    name,
    title: short(typeof title === 'string' && title !== '' ? title : name),
    options,
    isNumbered: !options.some((option) => isDigits(option.text) || isDigits(option.title)),
    isNeeded,
    kind,
    schema,
  };
  if (typeof description === 'string') field.description = short(description);
  const given = schema.default === undefined ? undefined : readAnswer(`${schema.default}`, field);
  const isSound = given && 'value' in given && given.value === schema.default;
  if (isSound) field.fallback = schema.default;
  return field;
}

const isDigits = (text: string) => /^\d+$/.test(text.trim());

/** `enum`, with names beside it in some servers, or `oneOf` with a title for each value. */
function optionsOf(schema: Json): Option[] {
  const { enum: values, enumNames, oneOf } = schema;
  const names = Array.isArray(enumNames) ? enumNames : [];
  if (Array.isArray(values)) return values.map((value, n) => optionOf(value, names[n]));
  if (!Array.isArray(oneOf)) return [];
  const rows = oneOf.filter(isObject).filter((row) => Object.hasOwn(row, 'const'));
  return rows.map((row) => optionOf(row.const, row.title));
}

function optionOf(value: unknown, title: unknown): Option {
  const text = String(value);
  return { value, text, title: typeof title === 'string' ? title : text };
}

// ─── The answers ───────────────────────────────────────────────────────────────────────────────

type Reading = { value: unknown } | { problem: string };

const READERS: Record<string, (typed: string, field: Field) => Reading> = {
  string: readText,
  number: readNumber,
  integer: readNumber,
  boolean: readYesOrNo,
  option: readOption,
};

function readEmpty({ fallback, isNeeded }: Field): Reading {
  if (fallback !== undefined) return { value: fallback };
  return isNeeded ? { problem: 'an answer is needed' } : { value: undefined };
}

/** What was typed, as the value that the schema wants. */
export function readAnswer(typed: string, field: Field): Reading {
  if (typed.length > MAX_ANSWER) return { problem: `it is longer than ${MAX_ANSWER} characters` };
  return READERS[field.kind]!(typed, field);
}

type Format = { words: string; isRight: (text: string) => boolean };

const FORMATS: Record<string, Format> = {
  email: {
    words: 'an e-mail address',
    isRight: (text) => /^[^\s@]+@[^\s@]+$/.test(text),
  },
  uri: {
    words: 'an address with its scheme, such as https://example.com',
    isRight: (text) => URL.canParse(text),
  },
  date: {
    words: 'a date such as 2026-07-28',
    isRight: isDate,
  },
  'date-time': {
    words: 'a date and time such as 2026-07-28T14:30:00Z',
    isRight: (text) => {
      const [date = '', time = ''] = text.split(/t/i);
      const hasZone = /^\d\d:\d\d:\d\d(\.\d+)?(z|[+-]\d\d:\d\d)$/i.test(time);
      return isDate(date) && hasZone && !Number.isNaN(Date.parse(text));
    },
  },
};

/** JavaScript takes February 30 for March 2. */
function isDate(text: string): boolean {
  const at = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) : NaN;
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(text);
}

const formatOf = ({ format }: Json): Format | undefined =>
  typeof format === 'string' && Object.hasOwn(FORMATS, format) ? FORMATS[format] : undefined;

function readText(typed: string, { schema }: Field): Reading {
  const format = formatOf(schema);
  const range = new Range(schema.minLength, schema.maxLength);
  if (!range.has([...typed].length)) return { problem: `it must have ${range} characters` };
  if (format && !format.isRight(typed)) return { problem: `it must be ${format.words}` };
  return { value: typed };
}

function readNumber(typed: string, { kind, schema }: Field): Reading {
  const value = /^[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d+)?$/i.test(typed) ? Number(typed) : NaN;
  const range = new Range(schema.minimum, schema.maximum);
  if (!Number.isFinite(value)) return { problem: 'it must be a number' };
  if (kind === 'integer' && !Number.isSafeInteger(value))
    return { problem: 'it must be a whole number' };
  return range.has(value) ? { value } : { problem: `it must be ${range}` };
}

function readYesOrNo(typed: string): Reading {
  if (/^(y|yes|true)$/i.test(typed)) return { value: true };
  if (/^(n|no|false)$/i.test(typed)) return { value: false };
  return { problem: 'it must be yes or no' };
}

function readOption(typed: string, { options, isNumbered }: Field): Reading {
  const exact = options.find(({ text }) => text === typed);
  const byTitle = options.filter(({ title }) => title.toLowerCase() === typed.toLowerCase());
  const byNumber = isNumbered && isDigits(typed) ? options[Number(typed) - 1] : undefined;
  const found = exact ?? byNumber ?? (byTitle.length === 1 ? byTitle[0] : undefined);
  return found ? { value: found.value } : { problem: 'it must be one of those above' };
}

function wordsFor(field: Field): string {
  const { kind, schema, options, isNumbered } = field;
  if (kind === 'option') return isNumbered ? `1 to ${options.length}` : `one of ${options.length}`;
  if (kind === 'boolean') return 'yes or no';
  if (kind === 'string') {
    const length = new Range(schema.minLength, schema.maxLength);
    const words = formatOf(schema)?.words ?? 'text';
    return length.isOpen ? words : `${words}, ${length} characters`;
  }
  const size = new Range(schema.minimum, schema.maximum);
  const words = kind === 'integer' ? 'a whole number' : 'a number';
  return size.isOpen ? words : `${words}, ${size}`;
}

/** Bounds that a server gave, or left out. */
class Range {
  private min: number;
  private max: number;

  constructor(min: unknown, max: unknown) {
    this.min = typeof min === 'number' ? min : -Infinity;
    this.max = typeof max === 'number' ? max : Infinity;
  }

  get isOpen(): boolean { return this.min === -Infinity && this.max === Infinity; }

  has(value: number): boolean { return value >= this.min && value <= this.max; }

  toString(): string {
    if (this.max === Infinity) return `at least ${this.min}`;
    return this.min === -Infinity ? `at most ${this.max}` : `${this.min} to ${this.max}`;
  }
}
