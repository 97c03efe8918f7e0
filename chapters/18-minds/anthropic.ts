// anthropic.ts: the Messages API, by node:http. One POST, and the answer comes back as a stream of blocks.
// Many local servers speak it too.

import type {
  AssistantTurn,
  Block,
  Model,
  ModelEvent,
  ModelRequest,
  Result,
  StopReason,
  ToolCall,
  Turn,
} from '../../agent.ts';
import { asList, asObject, isObject, type Json } from '../../mcp.ts';
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

// The newer 2026-10-21 refuses temperature and its kin. We send none of them, so that one body fits both; compatible
// servers know the older one.
const API_VERSION = '2023-06-01';
const MAX_TOKENS = 16_384;

type AnthropicOptions = {
  model: string;
  key: string;
  bearer?: boolean; // the key is a token: it goes into another header
  baseUrl?: string; // without /v1
  maxTokens?: number;
  silenceMs?: number; // between two bytes of an answer
  wait?: Wait; // before the next try, so that a test need not
};

export class Anthropic implements Model {
  readonly name: string;
  private readonly options: AnthropicOptions;
  private readonly address: Address;

  constructor(options: AnthropicOptions) {
    const { model, key, bearer = false, baseUrl = 'https://api.anthropic.com' } = options;
    this.name = `anthropic/${model}`;
    this.options = options;
    const secret: Record<string, string> = bearer
      ? { authorization: `Bearer ${key}` }
      : { 'x-api-key': key };
    const base = baseUrl.replace(/\/v1\/*$/, ''); // people copy it from an OpenAI setting
    this.address = modelAddress(
      this.name,
      base,
      '/v1/messages',
      { 'anthropic-version': API_VERSION, ...secret },
      key,
    );
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

  // Everything that stays the same comes first, in the same bytes: a cache holds beginnings.
  bodyFor({ system, turns, tools, maxTokens }: ModelRequest): Json {
    const offer = tools.map(fitTool).map(({ inputSchema, ...rest }): Json => {
      return { ...rest, input_schema: inputSchema };
    });
    const instructions = textBlocks(system);
    const messages = messagesFrom(turns);
    // One mark where tools and instructions end, one where the conversation does. A mark covers all that is before it.
    mark(instructions.at(-1) ?? offer.at(-1));
    if (messages.at(-1)?.role === 'user') mark(messages.at(-1)?.content.at(-1)); // thoughts must not be marked
    return {
      model: this.options.model,
      max_tokens: maxTokens ?? this.options.maxTokens ?? MAX_TOKENS,
      stream: true,
      ...(offer.length > 0 && { tools: offer }),
      ...(instructions.length > 0 && { system: instructions }),
      messages,
    };
  }
}

function mark(block: Json | undefined) {
  if (block) block.cache_control = { type: 'ephemeral' };
}

// ─── Our turns, as messages ───────────────────────────────────────────────────────────────────────────────────

type AnthropicMessage = { role: 'user' | 'assistant'; content: Json[] };

/** Roles alternate. What the user says after tools have run stands behind their results, in the same message. */
function messagesFrom(turns: Turn[]): AnthropicMessage[] {
  const ids = fitIds(turns, 64);
  const messages: AnthropicMessage[] = [];
  for (const turn of turns) {
    const role = turn.role === 'assistant' ? 'assistant' : 'user';
    const content = contentOf(turn, ids);
    const last = messages.at(-1);
    if (last?.role === role) last.content.push(...content);
    else if (content.length > 0) messages.push({ role, content }); // an empty message would be refused
  }
  return messages;
}

function contentOf(turn: Turn, ids: Map<ToolCall | Result, string>): Json[] {
  if (turn.role === 'assistant') return assistantContent(turn, ids);
  if (turn.role === 'user') return [...(turn.images ?? []).map(blockFor), ...textBlocks(turn.text)];
  return turn.results.map((result) => resultBlock(result, ids.get(result)));
}

/** With `is_error` the API takes texts only. An error with an image says so in words. */
function resultBlock({ blocks, isError }: Result, id: string | undefined): Json {
  const content = fitBlocks(blocks).map(blockFor);
  const hasImage = content.some(({ type }) => type === 'image');
  if (isError && hasImage) content.unshift({ type: 'text', text: 'Error:' });
  return {
    type: 'tool_result',
    tool_use_id: id,
    content,
    ...(isError && !hasImage && { is_error: true }),
  };
}

/** What this wire has said goes back as it was: thoughts are signed, other blocks may matter to those who sent them. */
function assistantContent(
  { native, calls, text }: AssistantTurn,
  ids: Map<ToolCall | Result, string>,
): Json[] {
  const uses = calls.map((call) => ({
    id: ids.get(call),
    name: fitToolName(call.name),
    input: call.args ?? {},
  }));
  const own: unknown[] =
    native?.wire === 'anthropic' && Array.isArray(native.content) ? native.content : [];
  const withIds = (block: Json) =>
    block.type === 'tool_use' ? { ...block, ...uses.shift() } : block;
  const said = own.length > 0 ? own.filter(isObject).map(withIds) : textBlocks(text);
  return [...said, ...uses.map((use) => ({ type: 'tool_use', ...use }))]; // those that are not in there yet
}

function textBlocks(text: string): Json[] {
  return text.trim() === '' ? [] : [{ type: 'text', text }];
}

function blockFor(block: Block): Json {
  if (block.type === 'text') return { type: 'text', text: block.text };
  return {
    type: 'image',
    source: { type: 'base64', media_type: block.mimeType, data: block.data },
  };
}

// ─── The stream, as a turn ────────────────────────────────────────────────────────────────────────────────────

/** An answer in the making. Arguments come as pieces of JSON, which are kept apart until they are whole. */
type AnthropicDraft = {
  blocks: Map<number, Json>;
  pieces: Map<Json, string>;
  usage: Json;
  stop?: string;
  explanation?: string;
};

async function* read(to: Address, reply: NodeReply): AsyncGenerator<ModelEvent> {
  const draft: AnthropicDraft = { blocks: new Map(), pieces: new Map(), usage: {} };
  for await (const data of streamedMessages(to, reply)) {
    const message = parseModelJson(to, data);
    const isError = message.type === 'error' || message.error; // the latter from servers that do not stream
    if (isError) throw modelFailure(to, problemIn(data), STATUS[message.error?.type] ?? 400);
    if (message.type === 'message') {
      // a server that does not stream: all at once
      takeWhole(draft, message);
      for (const { text } of draft.blocks.values())
        if (typeof text === 'string') yield { type: 'text', text };
      yield endOf(draft);
      return;
    }
    if (message.type === 'message_stop') {
      reply.isOver = true;
      yield endOf(draft);
      return;
    }
    const text = take(draft, message);
    if (text) yield { type: 'text', text };
  }
  throw cutOff(to, 'no message_stop');
}

function takeWhole(draft: AnthropicDraft, message: any) {
  const blocks: unknown[] = asList(message.content);
  draft.blocks = new Map(blocks.filter(isObject).map((block, index) => [index, block]));
  keep(draft.usage, message.usage);
  draft.stop = message.stop_reason ?? 'end_turn';
  draft.explanation = message.stop_details?.explanation;
}

/** After HTTP 200 an error can only come as an event. It means what this status would have meant. */
const STATUS: { [type: string]: number } = {
  rate_limit_error: 429,
  overloaded_error: 529,
  api_error: 500,
};

/** Takes in one message of the stream; kinds that we do not know are skipped. Returns new text. */
function take(draft: AnthropicDraft, message: any) {
  const block = draft.blocks.get(message.index);
  if (message.type === 'message_start') keep(draft.usage, message.message?.usage);
  if (message.type === 'content_block_start' && isObject(message.content_block)) {
    draft.blocks.set(message.index, { ...message.content_block });
    if (message.content_block.type === 'text') return message.content_block.text;
  }
  if (message.type === 'content_block_delta' && block) return grow(draft, block, message.delta);
  if (message.type === 'message_delta') {
    keep(draft.usage, message.usage); // running totals; what is missing has not changed
    draft.stop = message.delta?.stop_reason ?? draft.stop;
    draft.explanation = message.delta?.stop_details?.explanation ?? draft.explanation;
  }
  return undefined;
}

function keep(usage: Json, news: unknown) {
  for (const [key, value] of Object.entries(asObject(news))) if (value !== null) usage[key] = value;
}

function grow(draft: AnthropicDraft, block: Json, delta: any) {
  if (delta.type === 'text_delta') block.text = `${block.text ?? ''}${delta.text}`;
  if (delta.type === 'thinking_delta') block.thinking = `${block.thinking ?? ''}${delta.thinking}`;
  if (delta.type === 'signature_delta') block.signature = delta.signature;
  if (delta.type === 'input_json_delta')
    draft.pieces.set(block, (draft.pieces.get(block) ?? '') + delta.partial_json);
  return delta.type === 'text_delta' ? delta.text : undefined;
}

const STOPS: { [reason: string]: StopReason } = {
  end_turn: 'done',
  stop_sequence: 'done',
  tool_use: 'tools',
  max_tokens: 'length',
  pause_turn: 'pause',
  refusal: 'refusal',
  model_context_window_exceeded: 'too-long',
};

function endOf(draft: AnthropicDraft): ModelEvent {
  const stop = STOPS[draft.stop ?? ''] ?? draft.stop ?? 'done';
  const isCutOff = stop === 'length' || stop === 'too-long';
  const calls: ToolCall[] = [];
  for (const block of draft.blocks.values()) {
    if (!('input' in block) && block.type !== 'tool_use') continue;
    const whole =
      isObject(block.input) && Object.keys(block.input).length > 0
        ? JSON.stringify(block.input)
        : '';
    const read = readArguments(draft.pieces.get(block) ?? whole, isCutOff);
    block.input = read.args ?? {}; // sent back, it must be an object
    if (block.type === 'tool_use')
      calls.push({ id: String(block.id), name: String(block.name), ...read });
  }
  const content = [...draft.blocks.values()].filter(canGoBack);
  const text = content.map((block) => (block.type === 'text' ? block.text : '')).join('');
  const turn: AssistantTurn = {
    role: 'assistant',
    text,
    calls,
    native: { wire: 'anthropic', content },
  };
  const explanation = draft.explanation === undefined ? {} : { explanation: draft.explanation };
  return { type: 'end', turn, stop, ...explanation, usage: usageOf(draft.usage) };
}

/** The API refuses empty texts, and thoughts that were cut off before their signature. */
function canGoBack(block: Json) {
  if (block.type === 'text') return String(block.text).trim() !== '';
  return block.type !== 'thinking' || Boolean(block.signature);
}

/** `input_tokens` leaves out what was read from the cache or written to it. */
function usageOf(usage: Json) {
  const count = (key: string) => tokenCount(usage[key]);
  const cached = count('cache_read_input_tokens');
  const input = count('input_tokens') + count('cache_creation_input_tokens') + cached;
  return { input, output: count('output_tokens'), cached };
}
