// rehearsal.ts: a model for a machine without a key. It matches words, and understands nothing.
//
//   prompt ──→ steps, cut at "then" ──→ a tool, by its words ──→ values, in order ──→ a call
//
// It says what it is, and it never makes up a value: what a call holds was typed by the user. It
// keeps no state: the number of results since the last prompt tells which step comes next.

import type { Model, ModelEvent, ModelRequest, Result, ToolDefinition, Turn } from '../../agent.ts';
import { asObject, isObject, parseMessage, type Json } from '../../mcp.ts';
import { SUMMARISE, SUMMARY_MARK, textOfBlocks } from './compact.ts';
import { asksForTools, meantBy } from './phrases.ts';

export const REHEARSAL_BANNER =
  'rehearsal: a built-in stand-in that matches words and does not understand. ' +
  'Set ANTHROPIC_API_KEY or OPENAI_API_KEY for a real model.';
const SUM = 'what is 2 plus 40?';
/** Each works as it is typed, if there is a tool for it. */
export const EXAMPLES = [
  'what is here?',
  'create a file hello.txt that says hello world',
  'what tools do you have?',
  SUM,
];
export const TRY = 'Try, as typed:';
const TALK = 'So I cannot chat, explain or write code. I call the tool that your words name.';
const MORE =
  '/help has the commands of this chat; the README of mcp-by-hand tells more, and ' +
  'https://modelcontextprotocol.io what MCP is.';
const MINE = 'My tools; mcp__SERVER__TOOL is one of an MCP server, the others are built in:';
const WHICH = 'Which tool, and with which values? The nearest, with what they miss:';
const HOW = 'I fill in only what you type: a word, "some words", key=value, or a JSON object.';
const GREETING = /^(hi|hello|hey)$/i;
const MAX_STEPS = 20;
const MAX_NAMING = 50; // tokens of a step that may name its tool
const MAX_SHOWN = 8; // tools in one answer, optional arguments of a tool
const MAX_LISTED = 50; // tools, where they are asked for
const MAX_SENTENCE = 120; // characters
const MAX_ODD = 3; // words without a place: more are a sentence

export class Rehearsal implements Model {
  readonly name = 'rehearsal';

  async *query({ system, turns, tools, signal }: ModelRequest): AsyncGenerator<ModelEvent> {
    signal.throwIfAborted();
    const isSummary = system.startsWith(SUMMARISE);
    const { text, call }: RehearsedAnswer = isSummary ? summary(turns) : respond(turns, tools);
    if (text) yield { type: 'text', text };
    const calls = call ? [{ id: `call_${turns.length}`, ...call }] : [];
    const stop = call ? 'tools' : 'done';
    yield { type: 'end', turn: { role: 'assistant', text, calls }, stop };
  }
}

// ─── What comes next ──────────────────────────────────────────────────────────────────────────

type RehearsedAnswer = {
  text: string;
  call?: { name: string; args: Json };
};

function respond(turns: Turn[], tools: ToolDefinition[]): RehearsedAnswer {
  const last = turns.findLastIndex(({ role }) => role === 'user');
  const since = turns.slice(last + 1);
  const results = since.flatMap((turn) => (turn.role === 'tools' ? turn.results : []));
  const prompt = turns[last];
  const typed = prompt?.role === 'user' ? prompt.text : '';
  if (asksForTools(typed)) return { text: listed(tools) };
  const meant = meantBy(typed);
  const steps = meant === undefined ? stepsAt(last, turns, tools) : lex(meant);
  const answers = steps.map((step) => answer(step, tools));
  const unclear = answers.find(({ call }) => !call);
  if (unclear) return unclear; // nothing begins before every step is clear
  const hasFailed = results.some(({ isError }) => isError);
  const next = answers[results.length];
  if (next && !hasFailed) return meant ? { ...next, text: `I take that for: ${meant}` } : next;
  return { text: results.map(quote).join('\n\n') };
}

/** All that it can do is to quote the prompts. */
function summary([first]: Turn[]): RehearsedAnswer {
  const transcript = first?.role === 'user' ? first.text : '';
  const prompts = transcript.match(/^User: .*/gm) ?? [];
  const lines = prompts.map((line) => line.replace(/^User: /, '- '));
  return { text: ['(rehearsal cannot summarise: these were the prompts)', ...lines].join('\n') };
}

/** A prompt that names no tool may answer our question about the prompt before it. */
function stepsAt(last: number, turns: Turn[], tools: ToolDefinition[]) {
  const prompts = turns.map((turn) => (turn.role === 'user' ? turn.text : ''));
  const prompt = prompts[last] ?? '';
  const before = prompts[last - 2] ?? ''; // empty if that led to a call
  const steps = lex(prompt);
  const isSummary = before.startsWith(SUMMARY_MARK); // what it quotes was answered long ago
  const isNamed = steps.some((step) => match(step, tools).nearest.length > 0);
  return isNamed || isSummary ? steps : lex(`${before} ${prompt}`);
}

function answer(step: PromptWord[], tools: ToolDefinition[]): RehearsedAnswer {
  const { nearest, isClear, values } = match(step, tools);
  const forms = nearest.slice(0, MAX_SHOWN).map((tool) => fill(tool, values));
  const [best] = forms;
  if (isClear && best?.fits) return best;
  if (!best || best.odd > MAX_ODD) return { text: talk(step, tools) };
  const usages = forms.map(({ usage }) => usage);
  return { text: [WHICH, ...usages, HOW].join('\n') };
}

/** What it is, and which examples work with these tools. */
function talk([first]: PromptWord[], tools: ToolDefinition[]) {
  const works = (example: string) => {
    const [step = []] = lex(meantBy(example) ?? example);
    return asksForTools(example) || match(step, tools).isClear;
  };
  const lines = EXAMPLES.filter(works).map((example) => `- ${example}`);
  if (!works(SUM)) lines.push('- after a start with --demo, which brings a server: 2 plus 40');
  const greeting = GREETING.test(first?.word ?? '') ? ['Hello!'] : [];
  return [...greeting, REHEARSAL_BANNER, TALK, TRY, ...lines, MORE].join('\n');
}

function listed(tools: ToolDefinition[]) {
  const rows = tools.slice(0, MAX_LISTED).map(({ name, description }) => {
    const [sentence = ''] = description.replace(/^> /gm, '').split(/(?<=\.)\s/, 1);
    return `- \`${name}\`: ${sentence.slice(0, MAX_SENTENCE)}`;
  });
  const more = tools.length - rows.length;
  return [MINE, ...rows, ...(more > 0 ? [`and ${more} more`] : [])].join('\n');
}

function quote({ name, blocks, isError }: Result) {
  const verb = isError ? 'failed' : 'answered';
  const text = textOfBlocks(blocks);
  return `${name} ${verb}${text === 'exit code 0' ? ' nothing' : ''}:\n${text}`;
}

// ─── Words ────────────────────────────────────────────────────────────────────────────────────

type PromptWord = {
  raw: string; // as it was typed, with the words before it and the space behind it
  key: string; // of key=value
  value: unknown;
  word: string; // that may name a tool; empty where it can only be a value
};

// Words before a value, key=, then a quotation, JSON to the end of the prompt, or a word. A mark
// that nothing closes is searched for once: no prompt takes the square of its length.
const BEFORE = '(?:(?:a|an|the|file|of|for|to|in|into|from|with|by|about|and|please)\\s+)*';
const VALUE = '(?:([\\w-]+)=)?(?:(["\'`])([^]*?)\\2[.,;:!?]?|(\\{[^]*|\\S+))\\s*';
const TOKEN = new RegExp(BEFORE + VALUE, 'gi');
const PUNCTUATION = /(?<=[\p{L}\d])[.,;:!?]$/u;
const PATH = /^(?!.*\*).*([/\\]|\.[a-z]\w*$)/i; // and no pattern like *.ts
// Not a word, for which JSON.parse would throw; nor a number so long that it would lose digits.
const JSON_START = /^(-?\d{1,15}(?!\d)|[[{]|true$|false$)/;

/** The tokens of each step. */
function lex(prompt: string) {
  const steps: PromptWord[][] = [[]];
  for (const [raw, key = '', , quoted, typed = ''] of prompt.matchAll(TOKEN)) {
    const plain = key ? typed : typed.replace(PUNCTUATION, '');
    const value = quoted ?? (JSON_START.test(plain) ? parseMessage(plain) : plain); // what is quoted is a text, even "42"
    const word = key || isObject(value) ? '' : plain;
    if (word === 'then' && steps.length < MAX_STEPS) steps.push([]);
    else steps.at(-1)?.push({ raw, key, value, word });
  }
  return steps;
}

/** "getFileInfo" → get fil info, "Lists files" → list fil: endings do not count. */
function wordsOf(text: string) {
  const spaced = text.replaceAll(/([a-z\d])([A-Z])/g, '$1 $2').toLowerCase();
  const found = spaced.match(/[a-z\d]+/g) ?? [];
  return found.map((word) => word.replace(/(ies|es|e|s|y)$/, ''));
}

// ─── Which tool ───────────────────────────────────────────────────────────────────────────────

/** The words of a tool's name, and the verb of its description: "bash: Runs a command". */
function namesOf({ name, description }: ToolDefinition) {
  const [verb = ''] = description.slice(0, 50).replace(/^> /, '').split(' ', 1);
  return new Set(wordsOf(`${name} ${verb}`));
}

/** Each word that names tools leaves those that have it. Of these, a short name is nearest. */
function match(step: PromptWord[], tools: ToolDefinition[]) {
  const all = tools.map((tool) => ({ tool, names: namesOf(tool) }));
  let near = all;
  let end = 0;
  for (const { word } of step.slice(0, MAX_NAMING)) {
    const said = wordsOf(word);
    const left = near.filter(({ names }) => said.every((each) => names.has(each)));
    const isNaming = said.length > 0 && said.join() !== 'mcp'; // all of them have that word
    if (isNaming && left.length > 0) near = left;
    else if (near !== all) break;
    end += 1;
  }
  if (near === all) return { nearest: [], values: [] };
  near.sort((a, b) => a.names.size - b.names.size);
  const [best, rival] = near;
  return {
    nearest: near.map(({ tool }) => tool),
    isClear: best?.names.size !== rival?.names.size,
    values: step.slice(end),
  };
}

// ─── With which arguments ─────────────────────────────────────────────────────────────────────

/** A key says where its value goes. Other values go to what is required, in order. */
function fill({ name, inputSchema }: ToolDefinition, typed: PromptWord[]) {
  const { properties, required } = asObject(inputSchema);
  const needed = [required].flat().filter((key) => typeof key === 'string');
  const tokens = needed[0] === 'command' ? asCommand(typed) : typed;
  const args = new Map(tokens.flatMap(namedIn)); // not an object: a key may be __proto__
  const open = needed.filter((key) => !args.has(key));
  const values = tokens.filter(({ key, value }) => !key && !isObject(value));
  if (open[0] === 'path') values.sort((a, b) => rank(a) - rank(b));
  for (const [n, key] of open.entries()) {
    const token = values[n];
    if (token) args.set(key, token.value);
  }
  const missing = open.slice(values.length);
  const extra = values.slice(open.length); // has no place; words behind a quotation are only talk
  const before = tokens[tokens.indexOf(extra[0]!) - 1];
  const isTalk = before?.word === '' && extra.every(({ word }) => word);
  const other = Object.keys(asObject(properties)).filter((key) => !needed.includes(key));
  const usage = [
    `- ${name}`,
    ...missing.map((key) => `${key}=…`),
    ...extra.slice(0, 3).map(({ value }) => `(what is ${value}?)`),
    ...other.slice(0, MAX_SHOWN).map((key) => `[${key}=…]`),
  ];
  return {
    text: isTalk ? `I did not use: ${extra.map(({ value }) => value).join(' ')}` : '',
    call: { name, args: Object.fromEntries(args) },
    odd: isTalk ? 0 : extra.length,
    fits: missing.length === 0 && (extra.length === 0 || isTalk),
    usage: usage.join(' '),
  };
}

function namedIn({ key, value }: PromptWord): [string, unknown][] {
  if (key) return [[key, value]];
  return Object.entries(asObject(value)); // of a JSON object
}

/** Without quotation marks, a command is all that was typed. */
function asCommand(tokens: PromptWord[]) {
  if (!tokens[0]?.word) return tokens;
  const raw = tokens.map((token) => token.raw).join('');
  return [{ raw, key: 'command', value: raw.trim(), word: '' }];
}

/** Paths come first: "write hello to notes.txt" is path=notes.txt content=hello. */
const rank = ({ word }: PromptWord) => (PATH.test(word) ? 0 : 1);
