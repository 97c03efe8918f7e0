// seen.ts: what a model gets to see: a request as its wire has it, part by part, and how much of
// the context each part takes.
//
//   system, tools, turns ──→ the wire's body ──→ parts, each with its tokens

import type {
  AgentEvent,
  Model,
  ModelRequest,
  Tool,
  Turn,
  ToolDefinition,
  Usage,
} from '../../agent.ts';
import type { PromptSection } from '../15-the-loop/prompt.ts';
import { asList, asObject, parseMessage, type Json } from '../../mcp.ts';
import { replacedBy } from './compact.ts';

/** `of`: whose tool it is, which section of the prompt, who speaks. `size`: tokens, estimated.
 *  `isMarked`: the service's cache is told to keep all up to here. */
export type RequestPart = { of: string; json: unknown; size: number; isMarked: boolean };

/** Its lists are in the order in which a cache compares requests. `fields`: what else it has. `left`:
 *  what the model does not get. */
export type SeenRequest = {
  tools: RequestPart[];
  system: RequestPart[];
  messages: RequestPart[];
  fields: Json;
  left: ContextRow[];
};

/** What a request does not tell of itself. */
export type AboutRequest = {
  purpose?: string; // if it is not for the next answer of a conversation
  sections?: PromptSection[]; // of the system prompt
  owners?: string[]; // of the tools: their servers
  shelved?: Map<string, Tool>; // tools that are not shown
};

export const partsIn = ({ tools, system, messages }: SeenRequest) => [
  ...tools,
  ...system,
  ...messages,
];

// ─── Tokens ──────────────────────────────────────────────────────────────────────────────────────

// What tokenizers split a text into before they look anything up: a word, a number, signs, blanks.
const PIECES = /[A-Z]?[a-z]{1,8}|[A-Z]{1,3}|\d{1,3}|[!-/:-@[-`{-~]{1,3}|\s{2,}|[^\x00-\x7f]{1,2}/g;
const IMAGE = 1500; // tokens, whatever its bytes are: services make it smaller
const IMAGE_BYTES = /(?<="data":"|"data:image\/)[\w+/=;,-]{1000,}/g;

/** Of a value as JSON, roughly: each service has a tokenizer of its own. BENCHMARK.md tells how rough
 *  it is. */
export function tokensOf(value: unknown): number {
  const text = JSON.stringify(value);
  const images = text.match(IMAGE_BYTES) ?? [];
  const pieces = text.replace(IMAGE_BYTES, '').match(PIECES) ?? [];
  return pieces.length + images.length * IMAGE;
}

const sizes = new WeakMap<ToolDefinition, number>(); // a server may have thousands of tools

export function toolTokens(definition: ToolDefinition): number {
  const size = sizes.get(definition) ?? tokensOf(definition);
  sizes.set(definition, size);
  return size;
}

/** Shares a total in proportion to these sizes, in whole numbers. Their sum is the total. */
export function apportioned(all: number[], total: number): number[] {
  let end = 0;
  const ends = all.map((size) => (end += size));
  const upTo = (size = 0) => Math.round((total * size) / end);
  return ends.map((size, n) => upTo(size) - upTo(ends[n - 1]));
}

// ─── A request, part by part ─────────────────────────────────────────────────────────────────────

export function seenRequest(model: Model, request: ModelRequest): SeenRequest {
  const { sections, owners = [], shelved = new Map() } = request.about ?? {};
  const bare: Json = { tools: request.tools, messages: request.turns }; // of a model without a wire
  const { system, tools, messages, ...fields } = model.bodyFor?.(request) ?? bare;
  const prompt = sections ?? [{ name: 'system', text: request.system }];
  const said = asList(messages).filter(({ role }) => role !== 'system');
  const seen = {
    fields,
    tools: asList(tools).map((tool, n) => partOf(owners[n] ?? NO_SERVER, tool)),
    system: prompt.map(({ name, text }) => partOf(name, { text })),
    messages: said.map((message) => partOf(speakerOf(message), message)),
    left: leftOut(shelved, request.turns),
  };
  const last = seen.system.at(-1);
  if (last) last.isMarked = partOf('', asList(system)).isMarked;
  return seen;
}

export const NO_SERVER = ''; // tools of no server
const CACHE_MARK = ',"cache_control":{"type":"ephemeral"}';

/** Marks wander from request to request, so they are told beside the JSON, and not in it. */
function partOf(of: string, value: unknown) {
  const whole = JSON.stringify(value);
  const unmarked = whole.replaceAll(CACHE_MARK, '');
  const json = JSON.parse(unmarked, withArguments);
  return { of, json, size: tokensOf(JSON.parse(unmarked)), isMarked: unmarked !== whole };
}

/** One wire has JSON in a text there. As an object it can be read, and what is secret in it masked. */
function withArguments(this: Json, key: string, value: unknown) {
  const isCall = key === 'arguments' && 'name' in this && typeof value === 'string';
  return isCall ? parseMessage(value) : value;
}

function speakerOf({ role, content, text = content }: Json) {
  if (role === 'assistant') return 'answers';
  const [first] = asList(content).map(asObject);
  if (role !== 'user' || first?.type === 'tool_result') return 'results';
  return replacedBy(`${first?.text ?? text}`) === undefined ? 'prompts' : 'summary';
}

// ─── Tables ──────────────────────────────────────────────────────────────────────────────────────

/** `list` and `of`: what belongs together. */
export type ContextRow = {
  list: string;
  of: string;
  count: number;
  tokens: number;
  cached: number;
};

class ContextRows {
  private rows = new Map<string, ContextRow>();

  add(list: string, of: string, count: number, tokens = 0, cached = 0) {
    const row = this.rows.get(list + of) ?? { list, of, count: 0, tokens: 0, cached: 0 };
    this.rows.set(list + of, row);
    row.count += count;
    row.tokens += tokens;
    row.cached += cached;
  }

  get all(): ContextRow[] {
    return [...this.rows.values()];
  }
}

/** Nothing is remembered for this: the turns tell it, so it holds after --resume. */
function leftOut(shelved: Map<string, Tool>, turns: Turn[]) {
  const rows = new ContextRows();
  for (const { definition, origin } of shelved.values())
    rows.add('shelf', origin?.server ?? NO_SERVER, 1, toolTokens(definition));
  for (const turn of turns) {
    const turnsBefore = turn.role === 'user' ? replacedBy(turn.text) : undefined;
    if (turnsBefore !== undefined) rows.add('compaction', 'turns', turnsBefore);
    const results = turn.role === 'tools' ? turn.results : [];
    for (const { name, cut } of results) if (cut) rows.add('budget', name, cut);
  }
  return rows.all;
}

/** In the order of the request: what a cache had of it is its beginning. `isCounted`: by the model.
 *  Else it is an estimate. */
export function contextTable(request: SeenRequest, usage?: Usage) {
  const { tools, system, messages, left } = request;
  const estimates = partsIn(request).map(({ size }) => size);
  const { input = 0, cached = 0 } = usage ?? {};
  const tokens = input || estimates.reduce((sum, size) => sum + size, 0);
  const shares = apportioned(estimates, tokens);
  const rows = new ContextRows();
  let inCache = cached;
  for (const [list, parts] of Object.entries({ tools, system, messages }))
    for (const { of } of parts) {
      const share = shares.shift()!;
      rows.add(list, of, 1, share, Math.max(0, Math.min(share, inCache)));
      inCache -= share;
    }
  return { tokens, cached, isCounted: input > 0, rows: rows.all, left };
}

// ─── Asking, and telling of it ───────────────────────────────────────────────────────────────────

type Emit = (event: AgentEvent) => void;
let queries = 0;

/** Queries a model. Listeners hear what it gets to see, and its whole answer or that there is none: of
 *  each request, whatever it is for. */
export async function* toldQuery(model: Model, request: ModelRequest, emit: Emit) {
  const id = ++queries;
  emit({
    type: 'query',
    id,
    model: model.name,
    turns: request.turns.length,
    tools: request.tools.length,
    purpose: request.about?.purpose,
    seen: () => seenRequest(model, request),
  });
  let hasEnded = false;
  try {
    for await (const event of model.query(request)) {
      hasEnded = event.type === 'end';
      if (event.type === 'end') {
        const { turn, stop, usage } = event;
        const calls = turn.calls.map((call) => ({ id: call.id, name: call.name }));
        emit({ type: 'answer', id, text: turn.text, calls, stop, usage });
      }
      yield event;
    }
  } finally {
    if (!hasEnded) emit({ type: 'answer', id, text: '', calls: [], stop: 'none' });
  }
}

/** The same model, for what it is asked besides the next answer: that is told, too. */
export function toldModel(model: Model, emit: Emit, purpose: string): Model {
  const query = (request: ModelRequest) =>
    toldQuery(model, { ...request, about: { purpose } }, emit);
  return Object.assign(Object.create(model), { query });
}
