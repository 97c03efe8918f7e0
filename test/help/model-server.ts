// A model's server for tests, on this machine. It speaks both wires and is stricter than the real ones: each request is
// checked before it is answered. What is wrong with one goes back as a 400, and into `problems`.
//
//   const server = await startModelServer([call('mcp__demo__add', { a: 2, b: 40 }), say('It is 42.')]);
//   … ANTHROPIC_BASE_URL=server.url, or OPENAI_BASE_URL=`${server.url}/v1` …
//   assert.deepEqual(server.problems, []);

import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import type {
  Model,
  ModelEvent,
  ModelRequest,
  StopReason,
  ToolDefinition,
  Usage,
} from '../../agent.ts';
import type { Json } from '../../mcp.ts';
import { later } from './basics.ts';

// ─── What to answer ───────────────────────────────────────────────────────────────────────────────────────────

export type WireName = 'anthropic' | 'openai';
/** `abandoned`: the client closed the connection before the answer was complete. */
export type Seen = { wire: WireName; headers: IncomingHttpHeaders; body: any; abandoned: boolean };
export type Call = { name: string; args: Json; id?: string };
/** `cutAfter`: the connection breaks after so many events. `delayMs`: before each event. */
type Manner = {
  stop?: StopReason;
  explanation?: string;
  thinking?: string;
  usage?: Usage;
  delayMs?: number;
  cutAfter?: number;
};
type Answer = Manner & { text: string; calls: Call[] };
type Failure = { status: number; headers: Record<string, string>; body: string };
type Raw = {
  raw: WireName;
  chunks: (string | Uint8Array)[];
  contentType: string;
  then: 'end' | 'cut' | 'hang';
};
export type Step = Answer | Failure | Raw;
export type Script = (Step | ((request: Seen) => Step))[];

/** Says a text and ends its turn. */
export function say(text: string, manner: Manner = {}): Step {
  return { text, calls: [], ...manner };
}

/** Calls tools, side by side; `text` comes before the calls. */
export function calls(
  list: Call[],
  { text = '', ...manner }: Manner & { text?: string } = {},
): Step {
  return { text, calls: list, ...manner };
}

export function call(
  name: string,
  args: Json,
  { id, ...rest }: Manner & { text?: string; id?: string } = {},
): Step {
  return calls([{ name, args, ...(id === undefined ? {} : { id }) }], rest);
}

type Refusal = Partial<Omit<Failure, 'status'>> & {
  type?: string;
  message?: string;
  code?: string;
  details?: Json;
};

/** Answers with a status. A body that is not given is an error in the shape that both wires understand. */
export function fail(status: number, { headers, body, ...more }: Refusal = {}): Step {
  const error = { type: 'api_error', message: `the script says ${status}`, ...more };
  const whole = { type: 'error', error, request_id: 'req_test' };
  return {
    status,
    headers: { 'content-type': 'application/json', ...headers },
    body: body ?? JSON.stringify(whole),
  };
}

/** Sends these very bytes, one chunk after the other, and then ends, cuts the connection or falls silent. */
export function raw(
  wire: WireName,
  chunks: string | (string | Uint8Array)[],
  {
    then = 'end',
    contentType = 'text/event-stream',
  }: { then?: Raw['then']; contentType?: string } = {},
): Step {
  return { raw: wire, chunks: typeof chunks === 'string' ? [chunks] : chunks, contentType, then };
}

// ─── The other side ───────────────────────────────────────────────────────────────────────────────────────────

export const ADD: ToolDefinition = {
  name: 'mcp__demo__add',
  description: 'Adds two numbers.',
  inputSchema: {
    type: 'object',
    properties: { a: { type: 'number' }, b: { type: 'number' } },
    required: ['a', 'b'],
  },
};

export type Heard = { text: string; notes: string[]; end: Extract<ModelEvent, { type: 'end' }> };

/** Queries a model, and gathers what it says. `onEvent` may look on. */
export async function hear(
  model: Model,
  question: string | Partial<ModelRequest>,
  onEvent: (event: ModelEvent) => void = () => {},
): Promise<Heard> {
  const request: ModelRequest = {
    system: 'Be brief.',
    turns: [{ role: 'user', text: typeof question === 'string' ? question : 'Hello' }],
    tools: [ADD],
    signal: new AbortController().signal,
    ...(typeof question === 'string' ? {} : question),
  };
  const events: ModelEvent[] = [];
  for await (const event of model.query(request)) {
    events.push(event);
    onEvent(event);
  }
  const ends = events.filter((event) => event.type === 'end');
  if (ends.length !== 1 || events.at(-1)?.type !== 'end')
    throw new Error(`the end must come once, and last: ${JSON.stringify(events)}`);
  const said = (type: string) =>
    events.flatMap((event) => (event.type === type && 'text' in event ? [event.text] : []));
  return { text: said('text').join(''), notes: said('note'), end: ends[0]! };
}

// ─── The server ───────────────────────────────────────────────────────────────────────────────────────────────

export type ModelServer = {
  url: string;
  requests: Seen[];
  problems: string[];
  close: () => Promise<void>;
};

/** Closed by `cleanUp` too, if the test has it. */
export async function startModelServer(script: Script): Promise<ModelServer> {
  const steps = [...script];
  const requests: Seen[] = [];
  const problems: string[] = [];
  const server = createServer((request, response) => {
    answer(request, response).catch((error) => {
      response.destroy();
      if (request.complete) problems.push(`the test's server failed: ${error.stack}`); // else the client has gone
    });
  });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += chunk;
    const wire = ROUTES[request.url ?? ''];
    if (!wire || request.method !== 'POST') {
      problems.push(`there is no ${request.method} ${request.url}`);
      response.writeHead(404).end(problems.at(-1));
      return;
    }
    const seen: Seen = { wire, headers: request.headers, body: undefined, abandoned: false };
    let isSent = false;
    response.on('close', () => (seen.abandoned = !isSent));
    requests.push(seen);
    const found = problemsIn(seen, text);
    const next = found.length > 0 ? undefined : steps.shift();
    const step = typeof next === 'function' ? next(seen) : next;
    if (found.length === 0 && !step) found.push(`request ${requests.length}: the script is over`);
    if (step && 'raw' in step && step.raw !== wire)
      found.push(`the script's next step is for ${step.raw}, not for ${wire}`);
    problems.push(...found);
    const refused = fail(400, { type: 'invalid_request_error', message: found.join('; ') });
    isSent = await carryOut(found.length > 0 ? refused : step!, seen, response);
  }

  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  server.unref();
  const close = () =>
    new Promise<void>((done) => {
      server.close(() => done());
      server.closeAllConnections();
    });
  later(close);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    problems,
    close,
  };
}

const ROUTES: { [path: string]: WireName } = {
  '/v1/messages': 'anthropic',
  '/v1/chat/completions': 'openai',
};

/** Returns whether everything was sent. */
async function carryOut(
  step: Step,
  { wire, body }: Seen,
  response: ServerResponse,
): Promise<boolean> {
  if ('status' in step)
    return Boolean(response.writeHead(step.status, step.headers).end(step.body));
  if ('raw' in step) return stream(response, step.chunks, step);
  return stream(
    response,
    wire === 'anthropic' ? anthropicFrames(step, body) : openaiFrames(step, body),
    step,
  );
}

type Pace = { delayMs?: number; cutAfter?: number; then?: Raw['then']; contentType?: string };

async function stream(
  response: ServerResponse,
  frames: (string | Uint8Array)[],
  pace: Pace,
): Promise<boolean> {
  const { delayMs = 0, cutAfter = frames.length, contentType = 'text/event-stream' } = pace;
  response.writeHead(200, { 'content-type': contentType });
  for (const frame of frames.slice(0, cutAfter)) {
    await wait(delayMs);
    if (response.destroyed) return false;
    await new Promise((written) => response.write(frame, written));
  }
  if (pace.then === 'hang') return false;
  if (cutAfter < frames.length || pace.then === 'cut') response.destroy();
  else response.end();
  return true;
}

const piecesOf = (text: string, size: number): string[] =>
  text.match(new RegExp(`[^]{1,${size}}`, 'gu')) ?? [];
let count = 0; // ids differ from answer to answer, as they do in life

const ANTHROPIC_STOPS: { [stop: string]: string } = {
  done: 'end_turn',
  tools: 'tool_use',
  length: 'max_tokens',
  pause: 'pause_turn',
  'too-long': 'model_context_window_exceeded',
};

function anthropicFrames(
  { text, calls, thinking, stop, explanation, usage }: Answer,
  { model }: any,
): string[] {
  const frames: string[] = [];
  const emit = (type: string, more: Json = {}) =>
    frames.push(`event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`);
  let index = 0;
  const block = (content_block: Json, deltas: Json[]) => {
    emit('content_block_start', { index, content_block });
    for (const delta of deltas) emit('content_block_delta', { index, delta });
    emit('content_block_stop', { index: index++ });
  };
  const { input, output, cached } = usage ?? { input: 10, output: 5, cached: 0 };
  const counts = {
    input_tokens: input - cached,
    cache_read_input_tokens: cached,
    cache_creation_input_tokens: 0,
    output_tokens: 1,
  };
  const id = `msg_${++count}`;
  emit('message_start', {
    message: {
      id,
      type: 'message',
      role: 'assistant',
      model,
      content: [],
      stop_reason: null,
      usage: counts,
    },
  });
  emit('ping');
  if (thinking) {
    const thoughts: Json[] = piecesOf(thinking, 9).map((thinking) => ({
      type: 'thinking_delta',
      thinking,
    }));
    block({ type: 'thinking', thinking: '', signature: '' }, [
      ...thoughts,
      { type: 'signature_delta', signature: 'signed' },
    ]);
  }
  if (text)
    block(
      { type: 'text', text: '' },
      piecesOf(text, 7).map((text) => ({ type: 'text_delta', text })),
    );
  for (const { id = `toolu_${++count}`, name, args } of calls) {
    const pieces = ['', ...piecesOf(JSON.stringify(args), 5)];
    block(
      { type: 'tool_use', id, name, input: {} },
      pieces.map((partial_json) => ({ type: 'input_json_delta', partial_json })),
    );
  }
  const word = stop ?? (calls.length > 0 ? 'tools' : 'done');
  const stop_details = explanation ? { type: 'refusal', explanation } : null;
  emit('message_delta', {
    delta: { stop_reason: ANTHROPIC_STOPS[word] ?? word, stop_details },
    usage: { output_tokens: output },
  });
  emit('message_stop');
  return frames;
}

const OPENAI_STOPS: { [stop: string]: string } = {
  done: 'stop',
  tools: 'tool_calls',
  refusal: 'content_filter',
};

function openaiFrames(
  { text, calls, stop, usage }: Answer,
  { model, stream_options }: any,
): string[] {
  const id = `chatcmpl-${++count}`;
  const frame = (choices: Json[], more: Json = {}) =>
    `data: ${JSON.stringify({ id, object: 'chat.completion.chunk', created: 1, model, choices, ...more })}\n\n`;
  const delta = (delta: Json, finish_reason: string | null = null) =>
    frame([{ index: 0, delta, finish_reason }]);
  const frames = [
    delta({ role: 'assistant', content: '' }),
    ...piecesOf(text, 7).map((content) => delta({ content })),
  ];
  for (const [index, { id = `call_${++count}`, name, args }] of calls.entries()) {
    frames.push(
      delta({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }),
    );
    for (const piece of piecesOf(JSON.stringify(args), 5))
      frames.push(delta({ tool_calls: [{ index, function: { arguments: piece } }] }));
  }
  const word = stop ?? (calls.length > 0 ? 'tools' : 'done');
  frames.push(delta({}, OPENAI_STOPS[word] ?? word));
  const { input, output, cached } = usage ?? { input: 10, output: 5, cached: 0 };
  const counts = {
    prompt_tokens: input,
    completion_tokens: output,
    prompt_tokens_details: { cached_tokens: cached },
  };
  if (stream_options?.include_usage) frames.push(frame([], { usage: counts }));
  return [...frames, 'data: [DONE]\n\n'];
}

// ─── Is the request right? ────────────────────────────────────────────────────────────────────────────────────

/** What is wrong with a request; puts its body into `seen`. */
export function problemsIn(seen: Pick<Seen, 'wire' | 'headers' | 'body'>, text: string): string[] {
  const problems: string[] = [];
  const check: Check = (condition, problem) => {
    if (!condition) problems.push(problem);
    return Boolean(condition);
  };
  try {
    seen.body = JSON.parse(text);
  } catch {
    return ['the body is not JSON'];
  }
  check(
    seen.headers['content-type'] === 'application/json',
    'the content-type is not application/json',
  );
  check(!/\\ud[89a-f]/i.test(JSON.stringify(seen.body)), 'half a surrogate pair is in the text');
  try {
    if (seen.wire === 'anthropic') checkAnthropic(seen.headers, seen.body, check);
    else checkOpenAi(seen.headers, seen.body, check);
  } catch (error) {
    problems.push(`the request has an impossible shape: ${error}`);
  }
  return problems;
}

type Check = (condition: unknown, problem: string) => boolean;

const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const IMAGE_TYPE = /^image\/(png|jpeg|gif|webp)$/;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
const isFullText = (text: unknown) => typeof text === 'string' && text.trim() !== '';
const isPlainObject = (value: unknown) =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function checkFields(body: any, known: string, check: Check): void {
  for (const field of Object.keys(body))
    check(known.split(' ').includes(field), `the field "${field}" is not allowed`);
  check(isFullText(body.model), 'model is missing');
  check(body.stream === true, 'stream is not true');
  check(Array.isArray(body.messages) && body.messages.length > 0, 'messages are missing');
}

function checkTools(
  tools: { name: string; description: string; schema: any }[] | undefined,
  check: Check,
): void {
  check(tools === undefined || tools.length > 0, 'tools is an empty list');
  check(
    new Set(tools?.map(({ name }) => name)).size === (tools?.length ?? 0),
    'two tools have the same name',
  );
  for (const { name, description, schema } of tools ?? []) {
    check(NAME.test(name), `the tool name "${name}" does not fit`);
    check(typeof description === 'string', `the tool ${name} has no description`);
    check(schema?.type === 'object', `the schema of ${name} is not an object at its root`);
    for (const key of ['oneOf', 'anyOf', 'allOf', 'enum', 'not'])
      check(!(key in (schema ?? {})), `the schema of ${name} has ${key} at its root`);
  }
}

/** Every call gets its result in the next message, in order, and exactly once. */
function checkPairs(asked: string[], answered: string[], where: string, check: Check): void {
  check(
    asked.join() === answered.join(),
    `${where}: the results are for [${answered}], but the calls were [${asked}]`,
  );
}

function checkId(id: unknown, maxLength: number, known: Set<unknown>, check: Check): void {
  check(
    typeof id === 'string' && id.length <= maxLength && /^[A-Za-z0-9_-]+$/.test(id),
    `the id "${id}" does not fit`,
  );
  check(!known.has(id), `the id "${id}" is used twice`);
  known.add(id);
}

function checkAnthropic(headers: IncomingHttpHeaders, body: any, check: Check): void {
  check(
    isFullText(headers['x-api-key']) || /^Bearer \S/.test(headers.authorization ?? ''),
    'the key is missing',
  );
  check(
    /^\d{4}-\d\d-\d\d$/.test(`${headers['anthropic-version']}`),
    'anthropic-version is missing',
  );
  checkFields(body, 'model max_tokens system messages tools tool_choice stream', check);
  check(Number.isInteger(body.max_tokens) && body.max_tokens > 0, 'max_tokens is missing');
  if (Array.isArray(body.system))
    for (const { type, text } of body.system)
      check(type === 'text' && isFullText(text), 'system has an empty block');
  else check(body.system === undefined || isFullText(body.system), 'system is empty');
  checkTools(
    body.tools?.map(({ name, description, input_schema }: any) => ({
      name,
      description,
      schema: input_schema,
    })),
    check,
  );
  checkReferences(body, check);
  const marks = JSON.stringify(body).match(/"cache_control":\{[^}]*\}/g) ?? [];
  check(marks.length <= 4, `cache_control stands at ${marks.length} places, 4 are allowed`);
  for (const mark of marks)
    check(mark === '"cache_control":{"type":"ephemeral"}', `${mark} does not fit`);
  check(body.messages[0].role === 'user', "the first message is not the user's");
  const ids = new Set();
  let asked: string[] = [];
  for (const [n, { role, content }] of body.messages.entries()) {
    const where = `message ${n}`;
    check(role === (n % 2 === 0 ? 'user' : 'assistant'), `${where}: the roles do not alternate`);
    if (
      !check(
        Array.isArray(content) && content.length > 0,
        `${where}: the content is no list of blocks, or empty`,
      )
    )
      continue;
    for (const block of content) checkBlock(block, role, where, check);
    const results = content.filter(({ type }: any) => type === 'tool_result');
    check(
      content.slice(0, results.length).every((block: any) => results.includes(block)),
      `${where}: a result comes after other blocks`,
    );
    checkPairs(
      asked,
      results.map(({ tool_use_id }: any) => tool_use_id),
      where,
      check,
    );
    asked = content.filter(({ type }: any) => type === 'tool_use').map(({ id }: any) => id);
    for (const id of asked) checkId(id, 64, ids, check);
    check(asked.length === 0 || body.tools, `${where}: there are calls, but no tools`);
  }
  checkPairs(asked, [], 'the end', check);
}

/** As the API does it: a reference leads to a tool of this very request, or the request is refused. */
function checkReferences({ tools = [], messages }: any, check: Check): void {
  const deferred = tools.filter((tool: any) => tool.defer_loading);
  check(
    deferred.length < Math.max(1, tools.length),
    'all tools are deferred: at least one must not be',
  );
  for (const { name, cache_control } of deferred)
    check(!cache_control, `the tool ${name} cannot have both defer_loading and cache_control`);
  const names = new Set(tools.map(({ name }: any) => name));
  const blocks = messages.flatMap(({ content }: any) => (Array.isArray(content) ? content : []));
  const named = new Set();
  for (const { type, content, is_error } of blocks) {
    if (type !== 'tool_result' || !Array.isArray(content)) continue;
    const references = content.filter((part: any) => part.type === 'tool_reference');
    if (references.length === 0) continue;
    check(
      references.length === content.length && !is_error,
      'references stand beside other content',
    );
    for (const { tool_name } of references) {
      named.add(tool_name);
      check(names.has(tool_name), `Tool reference '${tool_name}' not found in available tools`);
    }
  }
  for (const { name } of deferred)
    check(named.has(name), `the tool ${name} is deferred, but nothing leads to it`); // stricter: we never mean that
}

function checkBlock(block: any, role: string, where: string, check: Check): void {
  const users = ['text', 'image', 'tool_result'];
  if (role === 'user')
    check(users.includes(block.type), `${where}: a user cannot send ${block.type}`);
  else
    check(
      !['image', 'tool_result', 'document'].includes(block.type),
      `${where}: an assistant cannot send ${block.type}`,
    );
  if (block.type === 'text') check(isFullText(block.text), `${where}: a text is empty`);
  if (block.type === 'thinking')
    check(
      isFullText(block.signature) && !block.cache_control,
      `${where}: a thought is unsigned or marked`,
    );
  if (block.type === 'tool_use')
    check(NAME.test(block.name), `${where}: the name "${block.name}" does not fit`);
  if (block.type === 'tool_use')
    check(isPlainObject(block.input), `${where}: the input of ${block.name} is no object`);
  if (block.type === 'image') {
    const { type, media_type, data } = block.source;
    check(
      type === 'base64' && IMAGE_TYPE.test(media_type) && BASE64.test(data),
      `${where}: an image has the wrong shape`,
    );
  }
  if (block.type !== 'tool_result') return;
  check([undefined, true, false].includes(block.is_error), `${where}: is_error is no boolean`);
  if (typeof block.content === 'string' || block.content === undefined) return;
  check(block.content.length > 0, `${where}: a result is an empty list`);
  const isTextOnly = block.content.every(({ type }: any) => type === 'text');
  check(isTextOnly || !block.is_error, `${where}: with is_error, a result must be text`);
  for (const part of block.content) {
    check(
      ['text', 'image', 'tool_reference'].includes(part.type),
      `${where}: a result cannot hold ${part.type}`,
    );
    if (part.type !== 'tool_reference') checkBlock(part, 'user', where, check);
  }
}

function checkOpenAi(headers: IncomingHttpHeaders, body: any, check: Check): void {
  check(/^Bearer \S/.test(headers.authorization ?? ''), 'the key is missing');
  checkFields(
    body,
    'model messages tools tool_choice stream stream_options max_tokens max_completion_tokens',
    check,
  );
  check(body.stream_options?.include_usage === true, 'stream_options do not ask for the usage');
  check(
    !('max_tokens' in body && 'max_completion_tokens' in body),
    'max_tokens and max_completion_tokens exclude each other',
  );
  check((body.tools?.length ?? 0) <= 128, `there are ${body.tools?.length} tools, 128 are allowed`);
  for (const { type } of body.tools ?? [])
    check(type === 'function', `a tool has the type ${type}`);
  checkTools(
    body.tools?.map(({ function: f }: any) => ({
      name: f.name,
      description: f.description,
      schema: f.parameters,
    })),
    check,
  );
  check(
    body.messages.find(({ role }: any) => role !== 'system')?.role === 'user',
    "the first message is not the user's",
  );
  const ids = new Set();
  let asked: string[] = [];
  for (const [n, message] of body.messages.entries()) {
    const where = `message ${n}`;
    const { role, content, tool_calls, tool_call_id } = message;
    if (role === 'tool') {
      check(
        asked.shift() === tool_call_id,
        `${where}: there is no such call to answer here, or not yet: ${tool_call_id}`,
      );
      check(typeof content === 'string' && content !== '', `${where}: a result must be a text`);
      continue;
    }
    checkPairs(asked, [], where, check);
    check(
      role !== body.messages[n - 1]?.role || role === 'assistant',
      `${where}: the roles do not alternate`,
    );
    check(
      ['system', 'user', 'assistant'].includes(role) && (role !== 'system' || n === 0),
      `${where}: ${role} cannot stand here`,
    );
    if (role !== 'assistant') checkParts(content, role, where, check);
    else
      check(
        isFullText(content) || (content === null && tool_calls),
        `${where}: the assistant says nothing`,
      );
    check(
      tool_calls === undefined || (role === 'assistant' && tool_calls.length > 0),
      `${where}: tool_calls is empty or misplaced`,
    );
    check(tool_calls === undefined || body.tools, `${where}: there are calls, but no tools`);
    asked = (tool_calls ?? []).map(({ id }: any) => id);
    for (const {
      id,
      type,
      function: { name, arguments: json },
    } of tool_calls ?? []) {
      checkId(id, 40, ids, check);
      check(type === 'function' && NAME.test(name), `${where}: the name "${name}" does not fit`);
      check(
        typeof json === 'string' && isPlainObject(JSON.parse(json)),
        `${where}: the arguments of ${name} are no object in a string`,
      );
    }
  }
  checkPairs(asked, [], 'the end', check);
}

function checkParts(content: any, role: string, where: string, check: Check): void {
  if (!Array.isArray(content))
    return void check(isFullText(content), `${where}: the ${role} says nothing`);
  check(content.length > 0, `${where}: the ${role} says nothing`);
  for (const { type, text, image_url } of content) {
    const [, media = '', data = ''] = /^data:([^;]*);base64,(.*)$/.exec(image_url?.url ?? '') ?? [];
    const isImage =
      type === 'image_url' && role === 'user' && IMAGE_TYPE.test(media) && BASE64.test(data);
    check((type === 'text' && isFullText(text)) || isImage, `${where}: a part has the wrong shape`);
  }
}
