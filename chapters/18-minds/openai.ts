// openai.ts: the chat completions API, by node:http. It is the wire that almost every server speaks, and almost each in a
// way of its own: Ollama, llama.cpp, vLLM, LM Studio, OpenRouter …

import type {
  AssistantTurn,
  Image,
  Model,
  ModelEvent,
  ModelRequest,
  Result,
  StopReason,
  ToolCall,
  Turn,
  Usage,
} from '../../agent.ts';
import type { Json } from '../../mcp.ts';
import {
  modelAddress,
  cutOff,
  modelFailure,
  streamedMessages,
  parseModelJson,
  problemIn,
  queryService,
  type Address,
  type Wait,
} from './post.ts';
import type { NodeReply } from './send.ts';
import {
  fitBlocks,
  fitIds,
  fitToolName,
  fitTool,
  readArguments,
  tokenCount,
} from './fit-for-models.ts';

export const OPENAI_URL = 'https://api.openai.com/v1';
const MAX_TOKENS = 16_384;

type OpenAiOptions = {
  model: string;
  key?: string; // most local servers want none
  baseUrl?: string; // with /v1
  maxTokens?: number;
  silenceMs?: number; // between two bytes of an answer
  wait?: Wait; // before the next try, so that a test need not
};

export class OpenAi implements Model {
  readonly name: string;
  readonly maxTools = 128; // the vendor refuses more, and others took that over
  private readonly options: OpenAiOptions;
  private readonly address: Address;

  constructor(options: OpenAiOptions) {
    const { model, key, baseUrl = OPENAI_URL } = options;
    this.name = `openai/${model}`;
    this.options = options;
    const headers = { authorization: `Bearer ${key ?? 'none'}` }; // some local servers want a word, any word
    this.address = modelAddress(this.name, baseUrl, '/chat/completions', headers, key);
    this.address.silenceMs = options.silenceMs;
  }

  query(request: ModelRequest): AsyncIterable<ModelEvent> {
    const readAnswer = (reply: NodeReply) => read(this.address, reply);
    return queryService(
      this.address,
      this.bodyFor(request),
      request.signal,
      readAnswer,
      this.options.wait,
    );
  }

  bodyFor({ system, turns, tools, maxTokens }: ModelRequest): Json {
    const functions = tools
      .slice(0, this.maxTools)
      .map(fitTool)
      .map(({ inputSchema, ...tool }) => ({ ...tool, parameters: inputSchema }));
    return {
      model: this.options.model,
      stream: true,
      stream_options: { include_usage: true },
      ...this.limit(maxTokens),
      ...(functions.length > 0
        ? { tools: functions.map((f) => ({ type: 'function', function: f })) }
        : {}),
      messages: [
        ...(system.trim() === '' ? [] : [{ role: 'system', content: system }]),
        ...messagesFrom(turns),
      ],
    };
  }

  /** The vendor has renamed it, the others know the old name. They get none unless asked for: a limit that does not fit
   *  into a small local model's context is an error there. */
  private limit(most = this.options.maxTokens): Json {
    const isVendor = this.address.url.host === new URL(OPENAI_URL).host;
    if (isVendor) return { max_completion_tokens: most ?? MAX_TOKENS };
    return most === undefined ? {} : { max_tokens: most };
  }
}

// ─── Our turns, as messages ───────────────────────────────────────────────────────────────────────────────────

type ContentPart =
  | { type: 'text'; text: string }
  | { type: 'image_url'; image_url: { url: string } };

function messagesFrom(turns: Turn[]): Json[] {
  const ids = fitIds(turns, 40);
  const messages: Json[] = [];
  for (const turn of turns) {
    if (turn.role === 'user')
      addUser(messages, [{ type: 'text', text: turn.text }, ...(turn.images ?? []).map(picture)]);
    if (turn.role === 'assistant') messages.push(...assistantMessages(turn, ids));
    if (turn.role !== 'tools') continue;
    for (const result of turn.results) messages.push(toolMessage(result, ids));
    addUser(messages, turn.results.flatMap(pictures)); // only now: nothing may stand between the results
  }
  return messages;
}

/** Adds to the user's last words, if nobody has spoken since: some models only know alternating roles. */
function addUser(messages: Json[], news: ContentPart[]) {
  const last = messages.at(-1);
  const before = last?.role === 'user' ? (messages.pop()!.content as string | ContentPart[]) : [];
  const parts = [
    ...(typeof before === 'string' ? [{ type: 'text', text: before } as const] : before),
    ...news,
  ];
  const full = parts.filter((part) => part.type !== 'text' || part.text.trim() !== '');
  if (full.length === 0) return;
  const texts = full.map((part) => (part.type === 'text' ? part.text : undefined));
  messages.push({ role: 'user', content: texts.includes(undefined) ? full : texts.join('\n\n') });
}

/** Without calls there must be a text, with calls there need not be one. With neither there is no message. */
function assistantMessages(
  { text, calls }: AssistantTurn,
  ids: Map<ToolCall | Result, string>,
): Json[] {
  if (calls.length === 0) return text.trim() === '' ? [] : [{ role: 'assistant', content: text }];
  const tool_calls = calls.map((call) => ({
    id: ids.get(call),
    type: 'function',
    function: { name: fitToolName(call.name), arguments: JSON.stringify(call.args ?? {}) },
  }));
  return [{ role: 'assistant', content: text.trim() === '' ? null : text, tool_calls }];
}

/** This wire has no flag for errors and takes no pictures here. */
function toolMessage(result: Result, ids: Map<ToolCall | Result, string>): Json {
  const texts = fitBlocks(result.blocks).map((block) =>
    'text' in block ? block.text : '[the image follows below]',
  );
  return {
    role: 'tool',
    tool_call_id: ids.get(result),
    content: (result.isError ? 'Error: ' : '') + texts.join('\n'),
  };
}

/** A model that cannot see may refuse them: the wire has no way to ask beforehand. */
function pictures({ name, blocks }: Result): ContentPart[] {
  const parts = blocks.flatMap((block) => (block.type === 'image' ? [picture(block)] : []));
  return parts.length === 0
    ? []
    : [{ type: 'text', text: `From the tool ${fitToolName(name)}:` }, ...parts];
}

function picture({ mimeType, data }: Image): ContentPart {
  return { type: 'image_url', image_url: { url: `data:${mimeType};base64,${data}` } };
}

// ─── The stream, as a turn ────────────────────────────────────────────────────────────────────────────────────

type OpenCall = { id: string; name: string; json: string; ending?: string };
type OpenAiDraft = {
  text: string;
  refusal: string;
  calls: CallAssembly;
  finish?: string;
  usage?: Usage;
};

async function* read(to: Address, reply: NodeReply): AsyncGenerator<ModelEvent> {
  const draft: OpenAiDraft = { text: '', refusal: '', calls: new CallAssembly() };
  let isDone = false;
  for await (const data of streamedMessages(to, reply)) {
    isDone = data.trim() === '[DONE]';
    reply.isOver = isDone;
    if (isDone) break;
    const chunk = parseModelJson(to, data);
    if (chunk.error) throw modelFailure(to, problemIn(data), statusOf(chunk.error));
    const text = take(draft, chunk);
    if (text) yield { type: 'text', text };
  }
  // Some servers forget the [DONE]. Without a reason to end either, this was no end.
  if (!isDone && draft.finish === undefined) throw cutOff(to, 'no finish_reason');
  yield endOf(draft);
}

/** After HTTP 200 an error can only come in the stream. Some put the status they would have sent into it. */
function statusOf({ code, type }: { code?: unknown; type?: unknown }) {
  if (Number(code) >= 400 && Number(code) < 600) return Number(code);
  const words = `${code} ${type}`;
  if (words.includes('rate_limit')) return 429;
  if (words.includes('overloaded')) return 503;
  return type === 'server_error' ? 500 : 400;
}

/** Takes in one chunk, or the whole answer of a server that does not stream. Returns new text. */
function take(draft: OpenAiDraft, chunk: any) {
  if (chunk.usage) {
    const { prompt_tokens, completion_tokens, prompt_tokens_details: details } = chunk.usage;
    draft.usage = {
      input: tokenCount(prompt_tokens),
      output: tokenCount(completion_tokens),
      cached: tokenCount(details?.cached_tokens),
    };
  }
  const choice = chunk.choices?.[0];
  const delta = choice?.delta ?? choice?.message ?? {};
  draft.finish = choice?.finish_reason || draft.finish; // some send an empty one with every piece
  for (const piece of delta.tool_calls ?? []) draft.calls.take(piece);
  if (typeof delta.refusal === 'string') draft.refusal += delta.refusal;
  const text = typeof delta.content === 'string' ? delta.content : '';
  draft.text += text;
  return text;
}

/** Puts calls together from pieces. By the book a piece tells by `index` which call it belongs to. But Ollama has sent
 *  none, or 0 for each of several calls, and others send no ids. So a piece opens a new call if it has another id than
 *  the open one, or a name when the open one has a name and its last bracket. */
class CallAssembly {
  readonly all: OpenCall[] = [];
  private readonly byIndex = new Map<number, OpenCall>();

  take(piece: any): void {
    const { id, index, function: called } = piece ?? {};
    const { name, arguments: given } = called ?? {};
    const open = typeof index === 'number' ? this.byIndex.get(index) : this.all.at(-1);
    const isOpen = open && !this.isNew(open, id, name);
    const call = isOpen ? open : { id: '', name: '', json: '' };
    if (call !== open) this.all.push(call);
    if (typeof index === 'number') this.byIndex.set(index, call);
    call.id ||= String(id ?? '');
    call.name ||= String(name ?? '');
    const isWhole = typeof given === 'object' && given !== null;
    const json = isWhole ? JSON.stringify(given) : String(given ?? '');
    call.json += json;
    if (json) call.ending = json.at(-1); // to look at all of it would join the pieces, each time
  }

  private isNew(open: OpenCall, id?: string, name?: string) {
    if (id) return open.id !== '' && open.id !== id; // the same id again is the same call, even if it repeats the name
    return Boolean(name) && open.name !== '' && open.ending === '}';
  }
}

const STOPS: { [reason: string]: StopReason } = {
  stop: 'done',
  tool_calls: 'tools',
  function_call: 'tools',
  length: 'length',
  content_filter: 'refusal',
};

function endOf({ text, refusal, calls: { all }, finish = 'stop', usage }: OpenAiDraft): ModelEvent {
  const calls = all.map(({ id, name, json }, n): ToolCall => {
    return { id: id || `call_${n + 1}`, name, ...readArguments(json, finish === 'length') };
  });
  let stop: StopReason = refusal ? 'refusal' : (STOPS[finish] ?? finish);
  if (stop === 'done' && calls.length > 0) stop = 'tools'; // the calls are there, whatever the word says
  if (stop === 'tools' && calls.length === 0) stop = 'done';
  const turn: AssistantTurn = { role: 'assistant', text, calls };
  return {
    type: 'end',
    turn,
    stop,
    ...(refusal ? { explanation: refusal } : {}),
    ...(usage && { usage }),
  };
}
