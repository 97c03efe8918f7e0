// rehearsal.ts: a model for a machine without a key. It matches words with tools, and understands nothing.
//
//   prompt ──→ tokens ──→ parts (then, and) ──→ nearest tools ──→ a form for each, filled ──→ calls, or a question
//
// It is honest in two ways: it says what it is, and it never makes up a value. What stands in a call was typed by the
// user or is a default of the tool's schema. It keeps no state: the conversation tells which step comes next.

import type { Model, ModelEvent, ModelRequest, Result, ToolCall, ToolDefinition, Turn } from '../../agent.ts';
import { asObject, isObject, type Json } from '../../mcp.ts';

export const REHEARSAL_BANNER =
  'rehearsal: a built-in stand-in that matches words and does not understand. ' +
  'Set ANTHROPIC_API_KEY or OPENAI_API_KEY for a real model.';

const [MAX_LINES, MAX_CHARS] = [40, 4000]; // of a result that is quoted
const [MAX_WORDS, MAX_FIELDS, MAX_TOKENS, MAX_CUTS] = [300, 100, 2000, 8]; // there may be more: it is not read

const set = (words: string) => new Set(words.split(' '));
const STOP = set('a an the of for me my please to into in on at with from by is are was be it its this that what ' +
  'which who how can could would will you your i we do does and then or some any using use');
const CHAT = set('hello hi hey thank ok okay yes no help sorry bye');
const NOISE = set('file files folder named called matching containing about content contents text'); // before a value
const BEFORE_PATH = set('in to into from at under inside');
const PATHS = set('path file filename dir directory folder source destination src dest uri url cwd');
// People's words for the words of tools: the only knowledge here that does not come from the tools themselves.
const SAME = new Map(Object.entries({
  show: 'read', open: 'read', view: 'read', cat: 'read', print: 'read', create: 'write', save: 'write', replace: 'edit',
  change: 'edit', list: 'glob', find: 'glob', search: 'grep', look: 'grep', run: 'bash', execute: 'bash', plus: 'add',
  say: 'echo', rename: 'move', remove: 'delete', environment: 'env',
}));

export class Rehearsal implements Model {
  readonly name = 'rehearsal';

  async *query({ turns, tools, signal }: ModelRequest): AsyncGenerator<ModelEvent> {
    const { text, calls } = respond(turns, tools);
    for (const piece of text.match(/\S+\s*|\s+/g) ?? []) {
      signal.throwIfAborted();
      yield { type: 'text', text: piece };
    }
    signal.throwIfAborted();
    yield { type: 'end', turn: { role: 'assistant', text, calls }, stop: calls.length > 0 ? 'tools' : 'done' };
  }
}

// ─── What comes next ──────────────────────────────────────────────────────────────────────────────────────────

function respond(turns: Turn[], tools: ToolDefinition[]): { text: string; calls: ToolCall[] } {
  const last = turns.findLastIndex(({ role }) => role === 'user');
  const done = turns.slice(last + 1).flatMap((turn) => (turn.role === 'tools' ? [turn.results] : []));
  const vocabulary = learn(tools);
  const { steps, nearest } = understand(promptsOf(turns, last), vocabulary);
  const step = steps[done.length];
  const failed = done.flat().some(({ isError }) => isError);
  if (done.length > 0 && (failed || !step)) {
    const stopped = failed && step ? [`I stopped there. Steps not begun: ${steps.length - done.length}.`] : [];
    return { text: [...done.flat().map(quote), ...stopped].join('\n\n'), calls: [] };
  }
  if (!step) return { text: nearest.length > 0 ? question(nearest) : introduction(vocabulary.tools), calls: [] };
  const before = turns.reduce((count, turn) => count + (turn.role === 'assistant' ? turn.calls.length : 0), 0);
  const calls = step.map(({ tool, args }, n) => ({ id: `call_${before + n + 1}`, name: tool.name, args }));
  const unused = step.flatMap((form) => form.unused);
  return { text: unused.length > 0 ? `I did not use: ${unused.join(' ')}` : '', calls };
}

/** The last prompt, alone and behind the one that it may complete: "add", (with which values?), "a=2 b=40". */
function promptsOf(turns: Turn[], last: number): string[] {
  const [before, answer, prompt] = [turns[last - 2], turns[last - 1], turns[last]];
  if (prompt?.role !== 'user' || words(prompt.text).every((word) => STOP.has(word) || CHAT.has(word))) return [];
  const isAnswer = before?.role === 'user' && answer?.role === 'assistant' && answer.calls.length === 0;
  return isAnswer ? [prompt.text, `${before.text} ${prompt.text}`] : [prompt.text];
}

type Plan = { steps: Filled[][]; nearest: Filled[] };

function understand(prompts: string[], vocabulary: Vocabulary): Plan {
  const plans = prompts.map((prompt): Plan => {
    const tokens = lex(prompt);
    const best = (part: Token[]) => read(part, prompt, vocabulary).best;
    const steps = split(tokens, 'then', (part) => split(part, 'and', best));
    return { steps: steps ?? [], nearest: read(tokens, prompt, vocabulary).nearest };
  });
  const isReady = ({ steps }: Plan) => steps.length > 0;
  return plans.find(isReady) ?? plans.find(({ nearest }) => nearest.length > 0) ?? { steps: [], nearest: [] };
}

/** Cuts at "then" or "and" only where both sides can be read alone. From the left, a part grows until it can be read:
 *  "add 2" cannot, "add 2 and 40" can. What cannot be read at the end belongs to the part before it. */
function split<T>(tokens: Token[], at: string, read: (part: Token[]) => T | undefined): T[] | undefined {
  const parts: { tokens: Token[]; meaning: T }[] = [];
  let [open, cuts]: [Token[], number] = [[], 0];
  const close = () => {
    const meaning = read(open);
    if (meaning === undefined) return;
    parts.push({ tokens: open, meaning });
    open = [];
  };
  for (const token of tokens) {
    if (token.kind === 'word' && token.text.toLowerCase() === at && cuts++ < MAX_CUTS) close();
    open.push(token);
  }
  close();
  const last = parts.at(-1);
  if (last && open.length > 0) last.meaning = read([...last.tokens, ...open]) ?? last.meaning;
  return last && parts.map(({ meaning }) => meaning);
}

// ─── What it says ─────────────────────────────────────────────────────────────────────────────────────────────

function quote({ name, blocks, isError }: Result): string {
  const text = blocks.map((block) => (block.type === 'text' ? block.text : `[image: ${block.mimeType}]`)).join('\n');
  const shown = text.slice(0, MAX_CHARS).split('\n').slice(0, MAX_LINES).join('\n');
  const cut = shown.length < text.length ? `\n(cut: these are ${shown.length} of ${text.length} characters)` : '';
  if (!isError) return `${name} answered:\n${shown || '(nothing)'}${cut}`;
  const isRefusal = /^(Not allowed|The user said no|Only reading is allowed)/.test(text); // as the gate says it
  return `${isRefusal ? 'Not allowed' : 'The tool failed'}: ${name}: ${shown.replace(/^Not allowed: /, '')}${cut}`;
}

const usage = ({ tool, missing }: Filled) => `- ${[tool.name, ...missing.map((key) => `${key}=…`)].join(' ')}`;

function question(nearest: Filled[]): string {
  return `Which tool, and with which values? The nearest, with what they miss:\n${nearest.map(usage).join('\n')}\n` +
    'I fill in only what you type: key=value, "quoted text", or a JSON object.';
}

function introduction(tools: Known[]): string {
  const examples = tools.slice(0, 8).map((known) => usage(fill(known, [], '')));
  const how = examples.length > 0 ? 'I call a tool when you use its words. Some of my tools:' : 'I have no tools.';
  return [REHEARSAL_BANNER, how, ...examples].join('\n');
}

// ─── Words ────────────────────────────────────────────────────────────────────────────────────────────────────

type Token = { kind: 'word' | 'quoted' | 'json'; text: string; raw: string; start: number; after: string };

const isNumber = ({ kind, text }: Token) => kind === 'word' && /\d/.test(text) && Number.isFinite(Number(text));
const isStop = ({ text }: Token) => STOP.has(text.toLowerCase());
const isNoise = ({ text }: Token) => NOISE.has(text.toLowerCase());
const isWild = ({ kind, text }: Token) => kind === 'word' && text.includes('*');
const PATH = /[/\\]|^[.~]|\.\w{1,8}$/;
const isPath = (token: Token) => token.kind === 'word' && !isNumber(token) && !isWild(token) && PATH.test(token.text);

/** "getFileInfo", "list_files", "Adds numbers" → get file info, list file, add number. */
function words(text: string): string[] {
  const spaced = text.slice(0, MAX_WORDS).replaceAll(/([a-z\d])([A-Z])/g, '$1 $2').toLowerCase();
  const split = spaced.split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  return split.map((word) => word.replace(/ies$/, 'y').replace(/(ch|sh|ss|x)es$|([^su])s$/, '$1$2'));
}

// A quotation ends at the next mark, and what can match, can in one way only: no prompt takes the square of its length.
const TOKEN = /"([^"]*)"|`([^`]*)`|“([^“”]*)”|(?<!\w)'([^']*)'(?!\w)|[\w-]+=|[^\s"`“]+/g;

function lex(prompt: string): Token[] {
  const tokens: Token[] = [];
  const scan = new RegExp(TOKEN);
  const [open, close] = [prompt.indexOf('{'), prompt.lastIndexOf('}') + 1]; // one JSON object for a prompt
  let after = '';
  let match = scan.exec(prompt);
  for (; match && tokens.length < MAX_TOKENS; match = scan.exec(prompt)) {
    const start = match.index;
    const [raw, ...quotes] = match;
    const quoted = quotes.find((quote) => quote !== undefined);
    const json = start === open && isObject(parse(prompt.slice(open, close))) ? prompt.slice(open, close) : undefined;
    const word = raw.replace(/[.,;:!?)]{1,3}$/, '') || raw; // {1,3}: a + takes the square of the length of "......x"
    const kind = json ? 'json' : quoted === undefined ? 'word' : 'quoted';
    const token: Token = { kind, text: json ?? quoted ?? word, raw: json ?? raw, start, after };
    if (json) scan.lastIndex = close;
    tokens.push(token);
    if (token.text !== 'the') after = token.text.toLowerCase();
  }
  const rest = prompt.slice(match?.index ?? prompt.length); // not read, but no command or text is to lose its end
  if (rest) tokens.push({ kind: 'word', text: rest, raw: rest, start: prompt.length - rest.length, after });
  return tokens;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// ─── Which tool ───────────────────────────────────────────────────────────────────────────────────────────────

/** An argument. Of an array (`many`), `type` is the type of its items. */
type Field = { key: string; type: string; many: boolean; required: boolean; words: string[]; schema: Json };
type Known = { tool: ToolDefinition; short: string; name: Set<string>; other: Set<string>; fields: Field[] };
type Vocabulary = { tools: Known[]; weight: (word: string) => number };

/** A word weighs the more, the fewer tools have it (its inverse document frequency). */
function learn(definitions: ToolDefinition[]): Vocabulary {
  const tools = definitions.map(know);
  const counts = new Map<string, number>();
  for (const { name, other } of tools)
    for (const word of new Set([...name, ...other])) counts.set(word, (counts.get(word) ?? 0) + 1);
  return { tools, weight: (word) => Math.log(1 + tools.length / (counts.get(word) ?? 1)) };
}

function know(tool: ToolDefinition): Known {
  const short = tool.name.replace(/^mcp__.+?__/, ''); // a guess, good enough to match words: no call is routed by it
  const [sentence = ''] = tool.description.split(/[.!?]\s|\n/, 1);
  const { properties, required } = asObject(tool.inputSchema);
  const schemas = new Map(Object.entries(asObject(properties)));
  const needed = new Set([required].flat().filter((key) => typeof key === 'string'));
  const keys = new Set([...[...schemas.keys()].filter((key) => needed.has(key)), ...needed, ...schemas.keys()]);
  const fields = [...keys].slice(0, MAX_FIELDS).map((key) => fieldOf(key, asObject(schemas.get(key)), needed.has(key)));
  const other = new Set([...words(tool.name), ...words(sentence), ...fields.flatMap((field) => field.words)]);
  return { tool, short, name: new Set(words(short)), other, fields };
}

function fieldOf(key: string, own: Json, required: boolean): Field {
  const typeOf = ({ type, enum: choices }: Json): string => {
    const isType = (each: unknown): each is string => typeof each === 'string' && each !== 'null';
    return Array.isArray(choices) ? 'choice' : ([type].flat().find(isType) ?? 'any');
  };
  const choice = [own.anyOf, own.oneOf].flat().find((each) => isObject(each) && each.type !== 'null');
  const schema = { ...asObject(choice), ...own };
  const many = typeOf(schema) === 'array';
  const type = typeOf(many ? asObject(schema.items) : schema);
  return { key, type, many, required, words: words(key), schema };
}

/** The three nearest tools of those that may be meant, and the first of them that needs nothing more. */
function read(part: Token[], prompt: string, { tools, weight }: Vocabulary): { best?: Filled; nearest: Filled[] } {
  const plain = part.filter((token) => token.kind === 'word' && !isStop(token));
  const certain = certainly(plain, part, prompt, tools);
  const said = new Set(plain.filter((token) => !isPath(token) && !isNumber(token)).flatMap(({ text }) => words(text)));
  const meant = new Set([...said].map((word) => SAME.get(word) ?? word));
  const nearest = (certain.length > 0 ? certain : tools)
    .map((known) => ({ known, ...score(known, said, meant, weight) }))
    .filter(({ isNamed }) => isNamed || certain.length > 0)
    .sort((a, b) => b.sum - a.sum)
    .slice(0, 3)
    .map(({ known }) => fill(known, part, prompt));
  return { best: nearest.find(({ missing }) => missing.length === 0), nearest };
}

/** A name with a _ or - in it can only be meant as a name; "read" can be just a word. And what follows "run" is a
 *  command: the words in it mean no tool. */
function certainly(plain: Token[], part: Token[], prompt: string, tools: Known[]): Known[] {
  const typed = new Set(plain.map(({ text }) => text).filter((text) => /[_\W]/.test(text)));
  const named = tools.filter(({ tool, short }) => typed.has(tool.name) || typed.has(short));
  const [verb] = plain;
  if (named.length > 0 || !verb) return named;
  const runners = tools.filter((known) => known.fields.some(isCommand) && isVerb(verb, known));
  return runners.filter((known) => fill(known, part, prompt).missing.length === 0);
}

/** Words of the name count three times, or against the tool where they were not said. Some 40 % of it must be. */
function score({ name, other }: Known, said: Set<string>, meant: Set<string>, weight: Vocabulary['weight']) {
  let [sum, heard, unheard] = [0, 0, 0];
  for (const word of name) {
    const factor = said.has(word) ? 3 : meant.has(word) ? 1.5 : -0.5;
    sum += factor * weight(word);
    if (factor > 0) heard += weight(word);
    else unheard += weight(word);
  }
  for (const word of other) if (said.has(word) && !name.has(word)) sum += weight(word);
  return { sum, isNamed: heard > 0.4 * (heard + unheard) };
}

// ─── With which arguments ─────────────────────────────────────────────────────────────────────────────────────

/** The arguments for one tool, as far as one part of a prompt gives them. */
type Filled = { tool: ToolDefinition; args: Json; missing: string[]; unused: string[] };
/** The same on the way. `free` are the tokens not used yet. `args` is a Map, as an argument may be called __proto__. */
type Form = { known: Known; tokens: Token[]; prompt: string; free: Set<Token>; args: Map<string, unknown> };

const isText = ({ type }: Field) => type === 'string' || type === 'any';
const isCommand = (field: Field) => isText(field) && field.words.includes('command');
const isNumeric = ({ type }: Field) => type === 'number' || type === 'integer';
const isPathField = (field: Field) => isText(field) && field.words.some((word) => PATHS.has(word));

/** "in src", "to notes", in "my notes.txt" */
const isPlace = (token: Token) => BEFORE_PATH.has(token.after) &&
  (token.kind === 'word' ? !isNumber(token) && !isStop(token) : PATH.test(token.text));

/** Which fields take which tokens. What looks special goes first. */
const RULES: [field: (field: Field) => boolean, token: (token: Token) => boolean][] = [
  [(field) => isText(field) && field.words.includes('glob'), (token) => isWild(token) && /^\*|\/\*/.test(token.text)],
  [(field) => isText(field) && field.words.includes('pattern'), isWild],
  [(field) => isPathField(field) && field.required, isPath],
  [isPathField, isPlace],
  [(field) => isNumeric(field) && field.required, isNumber],
  [isText, ({ kind }) => kind !== 'word'],
];

function fill(known: Known, tokens: Token[], prompt: string): Filled {
  const free = new Set(tokens.filter((token) => !isVerb(token, known)));
  const form: Form = { known, tokens, prompt, free, args: new Map() };
  takeJson(form);
  takeNamed(form);
  takeChoices(form);
  takeCommand(form);
  for (const [fits, matches] of RULES) take(form, empty(form).filter(fits), matches);
  takePlainWords(form);
  take(form, empty(form).filter(isPathField), isPath);
  const numbers = empty(form).filter(isNumeric);
  if (numbers.length === 1) take(form, numbers, isNumber); // of several, nobody knows which is meant
  for (const { key, schema, required } of empty(form))
    if (required && schema.default !== undefined) form.args.set(key, schema.default);
  const missing = empty(form).filter(({ required }) => required).map(({ key }) => key);
  const unused = [...free].filter((token) => !isStop(token) && !isLead(token, known));
  return { tool: known.tool, args: Object.fromEntries(form.args), missing, unused: unused.map(({ raw }) => raw) };
}

const empty = ({ known, args }: Form) => known.fields.filter(({ key }) => !args.has(key));

function put({ args, free }: Form, { key }: Field, value: unknown, used: Token[]): void {
  if (value === undefined || used.length === 0) return;
  args.set(key, value);
  for (const token of used) free.delete(token);
}

function take(form: Form, fields: Field[], matches: (token: Token) => boolean): void {
  for (const field of fields) {
    const found = [...form.free].filter((token) => matches(token) && valueFor(field, token.text) !== undefined);
    const values = found.map(({ text }) => valueFor(field, text));
    if (!field.many) put(form, field, values[0], found.slice(0, 1));
    else if (field.required) put(form, field, values, found);
  }
}

/** A JSON object wins over everything else, if it has an argument of this tool. Otherwise it is a text like others. */
function takeJson({ known, tokens, free, args }: Form): void {
  const json = tokens.find(({ kind }) => kind === 'json');
  const entries = Object.entries(asObject(parse(json?.text ?? '')));
  if (!json || !entries.some(([name]) => known.fields.some(({ key }) => key === name))) return;
  for (const [key, value] of entries) args.set(key, value);
  free.delete(json);
}

/** key=value, key: value, key "value", key 5 */
function takeNamed(form: Form): void {
  const fields = new Map(empty(form).map((field) => [field.key.toLowerCase(), field]));
  for (const [n, token] of form.tokens.entries()) {
    const name = form.tokens[n - 1];
    const field = name?.kind === 'word' && fields.get(name.text.replace(/=$/, '').toLowerCase());
    if (!field || form.args.has(field.key)) continue;
    if (!/[=:]$/.test(name.raw) && token.kind !== 'quoted' && !isNumber(token)) continue;
    const values = (field.many ? token.text.split(',') : [token.text]).map((text) => valueFor(field, text));
    if (!values.includes(undefined)) put(form, field, field.many ? values : values[0], [name, token]);
  }
}

/** A word that the schema offers; the name of a boolean for true, with a "no" before it for false. */
function takeChoices(form: Form): void {
  const said = ` ${form.tokens.map(({ kind, text }) => (kind === 'word' ? text.toLowerCase() : '"')).join(' ')} `;
  for (const field of empty(form).filter(({ type, many }) => !many && (type === 'choice' || type === 'boolean'))) {
    const name = field.words.join(' ');
    const choices = [field.schema.enum ?? name].flat().slice(0, MAX_FIELDS);
    const choice = choices.find((each) => typeof each === 'string' && said.includes(` ${each.toLowerCase()} `));
    const isNo = ['no', 'not', 'without'].some((no) => said.includes(` ${no} ${name} `));
    const spent = new Set(`${choice}`.toLowerCase().split(' '));
    const used = [...form.free].filter(({ text }) => spent.has(text.toLowerCase()));
    if (choice) put(form, field, field.type === 'choice' ? choice : !isNo, used);
  }
}

/** "run `npm test`", or "run npm test" to the end of the part. But "run the tests" is no command, nor "npm run x". */
function takeCommand(form: Form): void {
  const field = empty(form).find(isCommand);
  const verb = form.tokens.findIndex((token) => !isStop(token));
  const rest = form.tokens.slice(verb + 1);
  const [next, last] = [rest[0], rest.at(-1)];
  if (!field || !next || !last || !isVerb(form.tokens[verb]!, form.known)) return;
  const first = rest.find((token) => !isStop(token) && !isLead(token, form.known)) ?? next;
  const isQuoted = first.raw.startsWith('`') || (first.kind === 'quoted' && first === last);
  if (isQuoted) put(form, field, first.text, [first]);
  else if (!isStop(next)) put(form, field, form.prompt.slice(next.start, last.start + last.raw.length), rest);
}

/** Plain words, for the one text that is still required: "greet Ada", "open nodes Ada and Grace". */
function takePlainWords(form: Form): void {
  const [field, another] = empty(form).filter((each) => each.required && isText(each) && !isCommand(each));
  const run = plainWords(form);
  const [first, last] = [run[0], run.at(-1)];
  if (!field || another || !first || !last) return;
  const text = form.prompt.slice(first.start, last.start + last.text.length);
  const isOdd = isPathField(field) && /[\s*]/.test(text); // for a path
  if (field.many) put(form, field, run.filter((token) => token.text !== 'and').map((token) => token.text), run);
  else if (!isOdd) put(form, field, text, run);
}

/** The first words that nothing has used, without those that lead to them and those that follow them. */
function plainWords({ known, tokens, free }: Form): Token[] {
  const isFree = (token?: Token) => token?.kind === 'word' && free.has(token);
  const leads = (token: Token, n: number) => isLead(token, known) && isFree(tokens[n + 1]);
  const start = tokens.findIndex((token, n) => isFree(token) && !isStop(token) && !isNoise(token) && !leads(token, n));
  const end = tokens.findIndex((token, n) => n > start && !isFree(token));
  const run = start < 0 ? [] : tokens.slice(start, end < 0 ? undefined : end);
  return run.slice(0, run.findLastIndex((token) => !isStop(token)) + 1);
}

/** A word that speaks about the tool. */
function isLead(token: Token, { other }: Known): boolean {
  const isSaid = () => words(token.text).some((word) => other.has(word) || SAME.has(word));
  return token.kind === 'word' && (isNoise(token) || isSaid());
}

/** A word of the tool's name, or the name itself, is no value. */
function isVerb({ kind, text }: Token, { tool, short, name }: Known): boolean {
  const said = words(text);
  const isOwn = said.length > 0 && said.every((word) => name.has(word) || name.has(SAME.get(word) ?? ''));
  return kind === 'word' && (text === short || text === tool.name || isOwn);
}

/** A text as the type that a field takes, or undefined. */
function valueFor({ type }: Field, text: string): unknown {
  if (type === 'string' || type === 'choice') return text;
  const value = parse(text);
  if (type === 'any') return value ?? text;
  if (type === 'integer') return Number.isInteger(value) ? value : undefined;
  return typeof value === type ? value : undefined;
}
