// A form, asked for field by field. Its description is a flat JSON Schema: an object whose values
// are texts, numbers, yes or no, one of a list or some of it. That is all that `elicitation/create`
// allows.

import { asList, asObject, isObject, ownValue, show, type Json } from '../../mcp.ts';
import { choice, NO, YES, headed, pick, type Read } from './dialogue.ts';
import type { Choice, ChoiceQuestion, Chosen, Filled, FormQuestion } from './person.ts';
import { keepFromTraces, keepTyped, quoted, spelledOut } from './safe-text.ts';

const MAX_FIELDS = 50;
const MAX_OPTIONS = 100;
const MAX_LISTED = 6; // options that are shown before the form is begun
const MAX_SHOWN = 500; // of a title or a description, in characters
const MAX_ANSWER = 10_000;
const MAX_TRIES = 10; // of one field, before the form is given up

export type Option = { value: unknown; text: string; title: string }; // `text` is the value, as typed
export type FormField = {
  name: string;
  title: string; // quoted, as are the next two
  description?: string;
  options: Option[];
  isNumbered: boolean; // an option may be chosen by its number
  isNeeded: boolean;
  isSecret: boolean; // its name or title asks for something that no form should
  kind: string; // which of the readers below understands the answer
  schema: Json;
  fallback?: unknown; // what an empty line means
};

const short = (text: string) =>
  quoted(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text);

// ─── The conversation ──────────────────────────────────────────────────────────────────────────

const CHANGE = choice('[c]hange it');
const CANCEL: Choice = { key: 'x', word: 'cancel', label: 'cancel (x)', isNo: true };
const DECLINE = choice('[d]ecline', true);
const SEND = choice('[s]end it as an answer');

/** Shows the fields, asks for each, shows the answers. The user may decline before and after. */
export async function fillInForm(read: Read, question: FormQuestion): Promise<Filled> {
  const fields = fieldsOrNone(question.schema);
  if (!fields) return { action: 'cancel' };
  if (fields.length > 0) {
    const lines = [...question.lines, ...fields.flatMap(overview)];
    const start = { ...question, lines, prompt: 'Fill it in?', choices: [YES, NO, CANCEL] };
    const answer = await pick(read, start);
    if (answer?.key !== 'y') return refusalBy(answer);
  }
  for (;;) {
    const content = await fillInFields(read, fields, question);
    if (!content) return { action: 'cancel' };
    const answer = await pick(read, review(question, fields, content));
    if (answer?.key === 'y' || answer?.key === 's') return { action: 'accept', content };
    if (answer?.key !== 'c') return refusalBy(answer);
    // Not content[…] alone: a field that was left out may be called "constructor".
    for (const field of fields)
      if (Object.hasOwn(content, field.name)) field.fallback = content[field.name];
  }
}

/** A no is the user's; to leave, or to be gone, is nobody's decision. */
function refusalBy(answer?: Chosen): Filled {
  const isLeft = answer === undefined || answer.key === CANCEL.key;
  return { action: isLeft ? 'cancel' : 'decline' };
}

/** The last look. An answer that reads like a no is better sent as one: there are servers that go
 *  ahead with whatever was accepted, also with "reject". */
function review(question: FormQuestion, fields: FormField[], content: Json): ChoiceQuestion {
  const lines = preview(question, fields, content);
  const refusal = refusalIn(fields, content);
  if (refusal !== undefined) {
    lines.push(`You answered ${refusal}. A server may take any answer for your consent.`);
    const others = [DECLINE, SEND, CHANGE, CANCEL];
    return { lines, prompt: 'Decline instead?', choices: others, ifEmpty: 'd' };
  }
  const choices = fields.length > 0 ? [YES, NO, CHANGE, CANCEL] : [YES, NO, CANCEL];
  return { lines, prompt: 'Send it?', choices };
}

const LIKE_NO =
  /^(no|nope|never|not|n|reject|deny|decline|refuse|cancel|abort|stop|disallow|disagree|don'?t)\b/i;

/** The answer, if it is one of a list that reads like a no, or the only one and "no". */
export function refusalIn(fields: FormField[], content: Json): string | undefined {
  for (const { name, options, kind } of fields) {
    const chosen = kind === 'option' && options.find(({ value }) => value === content[name]);
    if (chosen && [chosen.title, chosen.text].some((text) => LIKE_NO.test(text.trim())))
      return short(chosen.title);
  }
  const [only, ...others] = fields;
  const isNo = only?.kind === 'boolean' && content[only.name] === false;
  return isNo && others.length === 0 ? '"no"' : undefined;
}

function fieldsOrNone(schema: Json): FormField[] | undefined {
  try {
    return formFields(schema);
  } catch {
    return undefined; // the handler has called fieldsOf itself, and told the server what is wrong
  }
}

function preview(question: FormQuestion, fields: FormField[], content: Json) {
  const answered = fields.filter(({ name }) => Object.hasOwn(content, name));
  const rows = answered.map((field) => [field.name, shownAgain(field, content[field.name])]);
  if (rows.length > 0)
    return ['These are your answers:', ...spelledOut(Object.fromEntries(rows) as Json)];
  return [...headed(question), '  (there is nothing to fill in)'];
}

/** What was chosen or counted. Not what was typed: it may be a secret, whatever the field is called. */
function shownAgain({ kind, schema }: FormField, value: unknown): unknown {
  const isTyped = kind === 'string' && value !== schema.default;
  return isTyped ? `*** (${[...String(value)].length} characters)` : value;
}

async function fillInFields(
  read: Read,
  fields: FormField[],
  question: FormQuestion,
): Promise<Json | undefined> {
  const answers: [string, unknown][] = [];
  for (const field of fields) {
    const answer = await fillInField(read, field, question);
    if (!answer) return undefined;
    if (answer.value !== undefined) answers.push([field.name, answer.value]);
  }
  return Object.fromEntries(answers);
}

/** Nothing if there is no answer; a `value` of undefined if the field is left out. */
async function fillInField(
  read: Read,
  field: FormField,
  { check = async () => [] }: FormQuestion,
): Promise<{ value: unknown } | undefined> {
  const { isSecret, schema } = field;
  const isBrief = field.kind === 'string';
  let lines = optionLines(field);
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const typed = (await read({ lines, prompt: promptFor(field), isSecret, isBrief }))?.trim();
    if (typed === undefined) return undefined;
    if (isBrief) keepFromTraces(typed);
    const reading = readTyped(typed, field);
    const isRead = 'value' in reading;
    if (isRead && reading.value === undefined) return reading; // left out, as it may be
    const problems = isRead ? await check(schema, reading.value) : [reading.problem];
    if (isRead && problems.length === 0) return reading;
    lines = [`That is not it: ${problems.join(', ')}.`];
  }
  return undefined;
}

/** The answers all at once, as a page has them: as the schema wants them, with the same judge. The
 *  problems, if they are no answer yet. */
export async function judgeFilled(
  { schema, check = async () => [] }: FormQuestion,
  given: Json,
): Promise<{ content: Json; fields: FormField[]; problems: string[] }> {
  const fields = formFields(schema);
  const answers: [string, unknown][] = [];
  const problems: string[] = [];
  for (const { name, title, isNeeded, isSecret, kind, schema } of fields) {
    const value = ownValue(given, name);
    if (value === undefined && isNeeded) problems.push(`${title}: an answer is needed`);
    if (value === undefined) continue;
    if (kind === 'string') keepFromTraces(String(value));
    if (isSecret) keepTyped(String(value));
    const wrong = await check(schema, value);
    problems.push(...wrong.map((why) => `${title}: ${why}`));
    answers.push([name, value]);
  }
  return { content: Object.fromEntries(answers), fields, problems };
}

/** What a person sees of a form before it is begun. */
export function overviewOf(schema: Json): string[] {
  return formFields(schema).flatMap(overview);
}

function promptFor(field: FormField) {
  const about = `${field.title} (${wordsFor(field)})`;
  if (field.fallback !== undefined) return `${about}, empty for ${fallbackOf(field)}`;
  return field.isNeeded ? about : `${about}, empty to leave it out`;
}

function overview(field: FormField) {
  const { title, description, options, isSecret } = field;
  const words = options.length > 0 ? listed(field) : wordsFor(field);
  const lines = [`  ${title}: ${words}${ifEmpty(field)}`];
  if (description !== undefined && description !== title) lines.push(`    ${description}`);
  if (isSecret) lines.push('    ! this looks like a secret: no server should want one in a form');
  return lines;
}

function ifEmpty(field: FormField) {
  if (field.fallback !== undefined) return `, by default ${fallbackOf(field)}`;
  return field.isNeeded ? '' : ', may be left out';
}

/** Who is asked to begin wants to know what there is to choose from. */
function listed({ kind, options, schema }: FormField) {
  const titles = options.slice(0, MAX_LISTED).map(({ title }) => short(title));
  if (options.length > MAX_LISTED) titles.push(`${options.length - MAX_LISTED} more`);
  return `${kind === 'option' ? 'one' : countOf(schema)} of ${titles.join(', ')}`;
}

/** A default by its title, if it is one of a list: that is what the user sees. */
function fallbackOf(field: FormField) {
  const { options } = field;
  const fallback = shownAgain(field, field.fallback);
  const titleOf = (value: unknown) =>
    options.find((option) => option.value === value)?.title ?? String(value);
  return short(Array.isArray(fallback) ? fallback.map(titleOf).join(', ') : titleOf(fallback));
}

function optionLines({ options, isNumbered }: FormField) {
  return options.map(({ text, title }, n) => {
    const name = title === text ? short(text) : `${short(title)}, which is ${short(text)}`;
    return isNumbered ? `  ${n + 1} = ${name}` : `  ${name}`;
  });
}

// ─── The fields ────────────────────────────────────────────────────────────────────────────────

/** The fields in the order of the schema. Throws if one cannot be asked for in this way. */
export function formFields(schema: Json): FormField[] {
  const properties = asObject(schema.properties);
  const required = asList(schema.required);
  const names = Object.keys(properties);
  if (names.length > MAX_FIELDS) throw new Error(`the form has more than ${MAX_FIELDS} fields`);
  const missing = required.find((name) => !names.includes(name));
  if (missing !== undefined)
    throw new Error(`the form requires ${quoted(String(missing))}, which is not among its fields`);
  return names.map((name) => fieldOf(name, properties[name], required.includes(name)));
}

function fieldOf(name: string, schema: unknown, isNeeded: boolean): FormField {
  if (!isObject(schema)) throw new Error(`the form's field ${quoted(name)} is not described`);
  const { title, description } = schema;
  const isSome = schema.type === 'array'; // of the options that its items have
  const options = optionsOf(isSome ? asObject(schema.items) : schema);
  const kind = kindOf(schema, options);
  if (!Object.hasOwn(READERS, kind) || options.length > MAX_OPTIONS)
    throw new Error(`the form's field ${quoted(name)} is of a kind that cannot be asked for`);
  const field: FormField = {
    name,
    title: short(typeof title === 'string' && title !== '' ? title : name),
    options,
    isNumbered: !options.some((option) => isDigits(option.text) || isDigits(option.title)),
    isNeeded,
    isSecret: [name, title, schema.format].some((words) => isSecretName(`${words}`)),
    kind,
    schema,
  };
  if (typeof description === 'string') field.description = short(description);
  if (isDefault(field)) field.fallback = schema.default;
  return field;
}

const SECRETS = [
  /\b(pass(word|phrase|code|wd)?|credentials?)\b/,
  /\b(api|access|private|secret) ?key$/,
  /\b(token|secret|pin|cvv|cvc|otp|ssn)$/, // not "token count", nor "pin to top"
  /\b(card|account) (number|no)$/,
];

/** "apiKey", "api-key" and "API key" are the same words. */
function isSecretName(name: string) {
  const words = name
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .replace(/[^A-Za-z]+/g, ' ')
    .toLowerCase();
  return SECRETS.some((secret) => secret.test(words.trim()));
}

function kindOf({ type }: Json, options: Option[]) {
  if (options.length === 0) return String(type);
  return type === 'array' ? 'options' : 'option';
}

/** Would the default be an answer? If not, it is none. */
function isDefault(field: FormField) {
  const { default: value } = field.schema;
  if (value === undefined) return false;
  if (field.kind !== 'options') return isReadAs(String(value), value, field);
  const isKnown = (each: unknown) => field.options.some((option) => option.value === each);
  return Array.isArray(value) && value.every(isKnown);
}

function isReadAs(typed: string, value: unknown, field: FormField) {
  const reading = readFieldAnswer(typed, field);
  return 'value' in reading && reading.value === value;
}

const isDigits = (text: string) => /^\d+$/.test(text.trim());

/** `enum`, with names beside it in some servers, or `oneOf` with a title for each value. Where some
 *  may be chosen, that list is called `anyOf`. */
export function optionsOf(schema: Json): Option[] {
  const { enum: values, enumNames, oneOf, anyOf } = schema;
  const names = asList(enumNames);
  if (Array.isArray(values)) return values.map((value, n) => optionOf(value, names[n]));
  const list = oneOf ?? anyOf;
  if (!Array.isArray(list)) return [];
  const rows = list.filter(isObject).filter((row) => Object.hasOwn(row, 'const'));
  return rows.map((row) => optionOf(row.const, row.title));
}

function optionOf(value: unknown, title: unknown): Option {
  const text = String(value);
  return { value, text, title: typeof title === 'string' ? title : text };
}

// ─── The answers ───────────────────────────────────────────────────────────────────────────────

export type FieldReading = { value: unknown } | { problem: string };

const READERS: Record<string, (typed: string, field: FormField) => FieldReading> = {
  string: readText,
  number: readNumber,
  integer: readNumber,
  boolean: readYesOrNo,
  option: readOption,
  options: readOptions,
};

/** What was typed; an empty line is the default, or leaves the field out. */
export function readTyped(typed: string, field: FormField): FieldReading {
  if (typed !== '') return readFieldAnswer(typed, field);
  const { fallback, isNeeded } = field;
  if (fallback !== undefined) return { value: fallback };
  return isNeeded ? { problem: 'an answer is needed' } : { value: undefined };
}

/** What was typed, as the value that the schema wants. */
export function readFieldAnswer(typed: string, field: FormField): FieldReading {
  if (typed.length > MAX_ANSWER) return { problem: `it is longer than ${MAX_ANSWER} characters` };
  return READERS[field.kind]!(typed, field);
}

type TextFormat = { words: string; isRight: (text: string) => boolean };

const FORMATS: Record<string, TextFormat> = {
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
function isDate(text: string) {
  const at = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) : NaN;
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(text);
}

const formatOf = ({ format }: Json): TextFormat | undefined => ownValue(FORMATS, show(format));

function readText(typed: string, { schema }: FormField): FieldReading {
  const format = formatOf(schema);
  const range = boundsIn(schema.minLength, schema.maxLength);
  if (!range.has([...typed].length)) return { problem: `it must have ${range.words} characters` };
  if (format && !format.isRight(typed)) return { problem: `it must be ${format.words}` };
  return { value: typed };
}

function readNumber(typed: string, { kind, schema }: FormField): FieldReading {
  const value = /^[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d+)?$/i.test(typed) ? Number(typed) : NaN;
  const range = boundsIn(schema.minimum, schema.maximum);
  if (!Number.isFinite(value)) return { problem: 'it must be a number' };
  if (kind === 'integer' && !Number.isSafeInteger(value))
    return { problem: 'it must be a whole number' };
  return range.has(value) ? { value } : { problem: `it must be ${range.words}` };
}

function readYesOrNo(typed: string): FieldReading {
  if (/^(y|yes|true)$/i.test(typed)) return { value: true };
  if (/^(n|no|false)$/i.test(typed)) return { value: false };
  return { problem: 'it must be yes or no' };
}

function readOption(typed: string, { options, isNumbered }: FormField): FieldReading {
  const exact = options.find(({ text }) => text === typed);
  const byTitle = options.filter(({ title }) => title.toLowerCase() === typed.toLowerCase());
  const byNumber = isNumbered && isDigits(typed) ? options[Number(typed) - 1] : undefined;
  const found = exact ?? byNumber ?? (byTitle.length === 1 ? byTitle[0] : undefined);
  return found ? { value: found.value } : { problem: 'it must be one of those above' };
}

/** Several, with commas or blanks between them, or all, or none. */
function readOptions(typed: string, field: FormField): FieldReading {
  const { options, schema } = field;
  const found = chosenIn(typed, field);
  const odd = found.find((each) => 'problem' in each);
  if (odd) return odd;
  const values = found.map((each) => ('value' in each ? each.value : undefined));
  const value = options.map((option) => option.value).filter((each) => values.includes(each));
  const range = boundsIn(schema.minItems, schema.maxItems);
  return range.has(value.length) ? { value } : { problem: `it must be ${range.words} of them` };
}

function chosenIn(typed: string, field: FormField): FieldReading[] {
  const { options } = field;
  const isName = (word: string) => options.some(({ text, title }) => [text, title].includes(word));
  if (/^none$/i.test(typed) && !isName(typed)) return [];
  if (/^all$/i.test(typed) && !isName(typed)) return options.map(({ value }) => ({ value }));
  const byComma = typed
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean);
  const parts = byComma.length === 1 && !isName(typed) ? typed.split(/\s+/) : byComma;
  return parts.map((part) => readOption(part, field));
}

function wordsFor(field: FormField) {
  const { kind, schema, options, isNumbered } = field;
  if (kind === 'options') {
    const how = isNumbered
      ? `such as 1,${Math.min(2, options.length)}`
      : 'with commas between them';
    return `${countOf(schema)} of ${options.length}, ${how}, all or none`;
  }
  if (kind === 'option') return isNumbered ? `1 to ${options.length}` : `one of ${options.length}`;
  if (kind === 'boolean') return 'yes or no';
  if (kind === 'string') {
    const length = boundsIn(schema.minLength, schema.maxLength);
    const words = formatOf(schema)?.words ?? 'text';
    return length.words === '' ? words : `${words}, ${length.words} characters`;
  }
  const size = boundsIn(schema.minimum, schema.maximum);
  const words = kind === 'integer' ? 'a whole number' : 'a number';
  return size.words === '' ? words : `${words}, ${size.words}`;
}

function countOf({ minItems, maxItems }: Json) {
  return boundsIn(minItems, maxItems).words || 'any';
}

/** Bounds that a server gave, or left out: then there are no words for them. */
function boundsIn(min: unknown, max: unknown) {
  const least = typeof min === 'number' ? min : -Infinity;
  const most = typeof max === 'number' ? max : Infinity;
  const has = (value: number) => value >= least && value <= most;
  if (most < Infinity)
    return { has, words: least > -Infinity ? `${least} to ${most}` : `at most ${most}` };
  return { has, words: least > -Infinity ? `at least ${least}` : '' };
}
