// server.ts: a Model Context Protocol server for both eras, without a transport.
//
//   a pipe (pipe.ts) ──────┐
//                          ├── McpServer ── handlers, each with its ServerCall (server-call.ts)
//   HTTP (serve-http.ts) ──┘
//
// A transport gives it one request at a time (`answer`), and tells it which clients it remembers
// (`join`, `leave`). It answers with a result, or throws the refusal.

import {
  asObject,
  excerpt,
  isObject,
  ownValue,
  REVISIONS,
  RpcError,
  textOf,
  type Json,
  type Message,
  type Offer,
} from '../../mcp.ts';
import {
  mirrorsOf,
  UNSUPPORTED_VERSION,
  VERSION_KEY,
} from '../20-streamable-http/mirrored-headers.ts';
import { CAPABILITIES_KEY, SERVER_INFO_KEY, STATELESS } from '../22-no-handshake/era.ts';
import { problemsFound } from '../23-the-server-asks/schema.ts';
import { LEVEL_KEY } from '../24-more-than-tools/subscribe.ts';
import { TASKS } from '../24-more-than-tools/tasks.ts';
import { InputRequired, levelIn, ServerCall, type Exchange } from './server-call.ts';
import {
  argumentsIn,
  completion,
  contentsOf,
  describedPrompt,
  describedTemplate,
  describedTool,
  described,
  failed,
  matchTemplate,
  pageOf,
  promptMessages,
  promptArguments,
  stringParam,
  toolResult,
  type ResourceAnswer,
  type ServerPrompt,
  type ServerResource,
  type ServerTemplate,
  type ServerTool,
} from './protocol/server-rows.ts';
import { Seal } from './request-state.ts';
import type { ClientSession } from './protocol/client-session.ts';
import { resultResponse, errorResponse } from './protocol/message-shapes.ts';
import { Subscriptions } from './protocol/subscriptions.ts';
import { Tasks } from './protocol/server-tasks.ts';
import type { TaskStore } from './task-store.ts';

export type ServerOptions = {
  name: string;
  version: string;
  title?: string;
  instructions?: string; // for the model
  tools?: ServerTool[];
  resources?: ServerResource[];
  templates?: ServerTemplate[];
  prompts?: ServerPrompt[];
  tasks?: boolean | TaskStore; // offers the extension: handlers can go on in the background
  extensions?: Json; // others that it declares, with what each says of itself
  sealingKey?: Uint8Array; // processes that share it can answer each other's questions
  pageSize?: number; // of lists
  ttlMs?: number; // how long a client may keep a list
  methods?: Record<string, Method>; // of both eras, in the place of ours
  watched?: (uri: string) => void; // a client wants to hear of changes
  onError?: (what: string, error: unknown) => void; // what a client is not told
};

const NOT_FOUND = -32002; // of the handshake era
const TOOL_NAME = /^[\w.-]{1,128}$/;
const CACHED = [
  'server/discover',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'resources/directory/read',
  'skills/list',
  'skills/get',
];

/** How a request's own stream is used; and its era, where the transport knows it. */
type ReplyPath = { send: (message: Message) => void; hangUp?: () => void; later?: boolean };
export type Method = (params: Json, call: ServerCall) => Json | Promise<Json>;

/** A request of the stateless era that does not introduce itself. Over HTTP its status is 400. */
export class Unintroduced extends RpcError {
  constructor(what: string) {
    super(-32602, `_meta must have ${what}`);
  }
}

/** The later era says so in every request. */
export function isLater({ params }: Message): boolean {
  return asObject(asObject(params)._meta)[VERSION_KEY] !== undefined;
}

export class McpServer {
  readonly tools: Map<string, ServerTool>; // whoever changes one of these calls `changed`
  readonly resources: Map<string, ServerResource>;
  readonly templates: Map<string, ServerTemplate>;
  readonly prompts: Map<string, ServerPrompt>;
  readonly options: ServerOptions;
  readonly sessions = new Set<ClientSession>();
  private seal: Seal;
  private tasks: Tasks;
  private subscriptions = new Subscriptions();
  private ofHandshake: Map<string, Method>;
  private ofStateless: Map<string, Method>;

  constructor(options: ServerOptions) {
    this.options = options;
    this.tools = byKey(options.tools, 'name');
    this.resources = byKey(options.resources, 'uri');
    this.templates = byKey(options.templates, 'uriTemplate');
    this.prompts = byKey(options.prompts, 'name');
    this.seal = new Seal(options.sealingKey);
    const { tasks, onError } = options;
    const store = typeof tasks === 'object' ? tasks : undefined;
    const beginAgain = (call: ServerCall) => this.beginAgain(call);
    this.tasks = new Tasks({ seal: this.seal }, { store, onError, beginAgain });
    for (const tool of this.tools.values()) {
      if (!TOOL_NAME.test(tool.name)) throw new Error(`${excerpt(tool.name)} cannot name a tool`);
      mirrorsOf(tool.inputSchema); // throws if its annotations are impossible
    }
    this.ofHandshake = new Map(Object.entries(this.methodsOfHandshake()));
    this.ofStateless = new Map(Object.entries(this.methodsOfStateless()));
  }

  // ─── For transports ──────────────────────────────────────────────────────────────────────────

  /** The result of a request. Throws a RpcError: the refusal, fit for the wire. */
  async answer(request: Message, exchange: Exchange, later = isLater(request)): Promise<Json> {
    try {
      if (later) return await this.answerStateless(request, exchange);
      return await this.answerInSession(request, exchange);
    } catch (error) {
      if (error instanceof RpcError) throw error;
      if (!exchange.signal.aborted) this.options.onError?.(`${request.method}`, error);
      // What went wrong inside is ours to know: it may name files, or hold a stack.
      throw new RpcError(-32603, `Internal error in ${request.method}`);
    }
  }

  /** A request of a session, up to the message that goes back; nothing after a cancellation. */
  async respond(
    request: Message,
    session: ClientSession,
    way: ReplyPath,
  ): Promise<Message | undefined> {
    const { send, hangUp, later } = way;
    const id = request.id!;
    const { signal } = session.begin(id);
    const exchange: Exchange = {
      id,
      signal,
      session,
      tell: (method, params) => send({ jsonrpc: '2.0', method, params }),
      request: (method, params, until) => session.request(send, method, params, until),
      hangUp,
    };
    try {
      const result = await this.answer(request, exchange, later);
      return signal.aborted ? undefined : resultResponse(id, result);
    } catch (error) {
      return signal.aborted ? undefined : errorResponse(id, error);
    } finally {
      session.done(id);
    }
  }

  /** Notifications get no answer, whatever they say. */
  hear({ method, params }: Message, session: ClientSession): void {
    if (method === 'notifications/cancelled') session.cancel(asObject(params).requestId);
  }

  join(session: ClientSession): void {
    this.sessions.add(session);
  }

  leave(session: ClientSession): void {
    this.sessions.delete(session);
    session.end();
  }

  /** Answers all that still listen. Transports close after it. */
  end(): void {
    this.subscriptions.end();
    this.tasks.end();
  }

  get listeners(): number {
    return this.subscriptions.size;
  }

  // ─── For handlers ────────────────────────────────────────────────────────────────────────────

  /** Tells all clients that want to know: there are other tools, prompts or resources now. */
  changed(what: Offer): void {
    for (const session of this.sessions)
      if (session.isOpen) session.tell(`notifications/${what}/list_changed`);

    this.subscriptions.changed(what);
  }

  /** Tells those that watch it: this resource has another content now. */
  updated(uri: string): void {
    for (const session of this.sessions)
      if (session.watched.has(uri)) session.tell('notifications/resources/updated', { uri });

    this.subscriptions.updated(uri);
  }

  // ─── The handshake era: new → initialize → ready ─────────────────────────────────────────────

  private async answerInSession(request: Message, exchange: Exchange): Promise<Json> {
    const { method = '' } = request;
    const params = asObject(request.params);
    const { session } = exchange;
    if (method === 'ping') return {};
    if (!session) throw new RpcError(-32600, 'Not initialized');
    if (method === 'initialize') return this.initialize(params, session);
    if (!session.isOpen) throw new RpcError(-32600, 'Not initialized: send initialize first');
    const run = this.ofHandshake.get(method);
    if (!run) throw new RpcError(-32601, `Method not found: ${method.slice(0, 100)}`);
    const call = new ServerCall(request, exchange, { seal: this.seal });
    return this.carryOut(run, params, call);
  }

  private initialize(params: Json, session: ClientSession): Json {
    if (session.isOpen) throw new RpcError(-32600, 'Already initialized');
    const { protocolVersion: theirs, capabilities, clientInfo } = params;
    if (typeof theirs !== 'string') throw new RpcError(-32602, 'protocolVersion is missing');
    session.isOpen = true;
    session.version = REVISIONS.find((ours) => ours === theirs) ?? REVISIONS[0]!;
    session.capabilities = asObject(capabilities);
    session.clientInfo = asObject(clientInfo);
    const { instructions } = this.options;
    return {
      protocolVersion: session.version,
      capabilities: this.capabilities(),
      serverInfo: this.serverInfo(),
      ...(instructions && { instructions }),
    };
  }

  private methodsOfHandshake(): Record<string, Method> {
    const hasResources = this.offers().includes('resources');
    return {
      ...this.methodsOfBothEras(),
      'logging/setLevel': ({ level }, { session }) => {
        session!.logLevel = levelIn(level);
        return {};
      },
      ...(hasResources && {
        'resources/subscribe': (params, { session }) => {
          session!.watch(stringParam(params, 'uri'));
          this.options.watched?.(`${params.uri}`);
          return {};
        },
        'resources/unsubscribe': (params, { session }) => {
          session!.watched.delete(stringParam(params, 'uri'));
          return {};
        },
      }),
    };
  }

  // ─── The stateless era: every request introduces itself ──────────────────────────────────────

  private async answerStateless(request: Message, exchange: Exchange): Promise<Json> {
    const { method = '' } = request;
    const params = asObject(request.params);
    const capabilities = this.introduction(params);
    const run = this.ofStateless.get(method);
    if (!run) throw new RpcError(-32601, `Method not found: ${method.slice(0, 100)}`);
    const offersTasks = Boolean(this.options.tasks);
    const office = { seal: this.seal, tasks: this.tasks, offersTasks };
    const call = new ServerCall(request, exchange, office, capabilities);
    const result = await this.carryOut(run, params, call);
    const isKept = CACHED.includes(method) && result.resultType === undefined;
    return {
      resultType: 'complete',
      ...(isKept && { ttlMs: this.options.ttlMs ?? 0, cacheScope: 'private' }),
      ...result,
      _meta: { [SERVER_INFO_KEY]: this.serverInfo(), ...asObject(result._meta) },
    };
  }

  /** What the client can do. Throws if it speaks another revision, or does not say. */
  private introduction({ _meta }: Json) {
    const meta = asObject(_meta);
    const { [VERSION_KEY]: version, [CAPABILITIES_KEY]: capabilities } = meta;
    if (typeof version !== 'string') throw new Unintroduced(VERSION_KEY);
    if (!STATELESS.includes(version)) {
      const both = { supported: STATELESS, requested: version };
      throw new RpcError(UNSUPPORTED_VERSION, 'Unsupported protocol version', both);
    }
    if (!isObject(capabilities)) throw new Unintroduced(CAPABILITIES_KEY);
    if (meta[LEVEL_KEY] !== undefined) levelIn(meta[LEVEL_KEY]);
    return capabilities;
  }

  private async carryOut(run: Method, params: Json, call: ServerCall) {
    try {
      return await run(params, call);
    } catch (error) {
      if (error instanceof InputRequired) return error.result;
      throw error;
    } finally {
      call.end();
    }
  }

  private methodsOfStateless(): Record<string, Method> {
    return {
      ...this.methodsOfBothEras(),
      'server/discover': () => {
        const { instructions } = this.options;
        const capabilities = this.capabilities();
        const optional = instructions && { instructions };
        return { supportedVersions: STATELESS, capabilities, ...optional };
      },
      'subscriptions/listen': (params, call) =>
        this.subscriptions.listen(params, call, this.offers(), this.options.watched),
      ...(this.options.tasks && this.tasks.methods),
    };
  }

  // ─── What it offers ──────────────────────────────────────────────────────────────────────────

  private offers(): Offer[] {
    const { tools, prompts, resources, templates } = this.options;
    return [
      ...(tools ? ['tools' as const] : []),
      ...(prompts ? ['prompts' as const] : []),
      ...(resources || templates ? ['resources' as const] : []),
    ];
  }

  private capabilities(): Json {
    const offers = this.offers();
    const listChanged = true;
    const { tasks, extensions } = this.options;
    return {
      ...(offers.includes('tools') && { tools: { listChanged } }),
      ...(offers.includes('prompts') && { prompts: { listChanged } }),
      ...(offers.includes('resources') && { resources: { listChanged, subscribe: true } }),
      ...(this.completes() && { completions: {} }),
      logging: {},
      ...((tasks || extensions) && {
        extensions: { ...extensions, ...(tasks && { [TASKS]: {} }) },
      }),
    };
  }

  private completes() {
    return this.options.prompts !== undefined || this.options.templates !== undefined;
  }

  private serverInfo(): Json {
    const { name, version, title } = this.options;
    return { name, version, ...(title && { title }) };
  }

  /** What is not offered is not known either. */
  private methodsOfBothEras(): Record<string, Method> {
    const offers = this.offers();
    return {
      ...(offers.includes('tools') && {
        'tools/list': (params, call) => {
          const offered = [...this.tools.values()].filter((tool) => isOffered(tool, call));
          return this.page('tools', offered.map(describedTool), params);
        },
        'tools/call': (params, call) => this.callTool(params, call),
      }),
      ...(offers.includes('resources') && {
        'resources/list': (params, call) => this.listResources(params, call),
        'resources/templates/list': (params) => {
          const all = [...this.templates.values()].map(describedTemplate);
          return this.page('resourceTemplates', all, params);
        },
        'resources/read': (params, call) => this.read(params, call),
      }),
      ...(offers.includes('prompts') && {
        'prompts/list': (params) =>
          this.page('prompts', [...this.prompts.values()].map(describedPrompt), params),
        'prompts/get': (params, call) => this.getPrompt(params, call),
      }),
      ...(this.completes() && {
        'completion/complete': (params, call) => this.complete(params, call),
      }),
      ...this.options.methods,
    };
  }

  // ─── Tools ───────────────────────────────────────────────────────────────────────────────────

  private async callTool(params: Json, call: ServerCall) {
    const name = stringParam(params, 'name');
    const args = argumentsIn(params);
    const known = this.tools.get(name);
    const tool = known && isOffered(known, call) ? known : undefined;
    if (!tool) throw new RpcError(-32602, `Unknown tool: ${name.slice(0, 128)}`);
    call.earlierRounds(); // refuses a state that is not ours, also for a tool that asks nothing
    try {
      const { inputSchema: schema } = tool;
      const [problem] = schema ? await problemsFound(schema, args, call.signal) : [];
      // For the model: it wrote the arguments, and can write better ones.
      if (problem) return failed(`${problem.path || 'the arguments'}: ${problem.message}`);
      return toolResult(await tool.run(args, call));
    } catch (error) {
      const isOurs = error instanceof RpcError || error instanceof InputRequired;
      if (isOurs || call.signal.aborted) throw error;
      return failed(textOf(error));
    }
  }

  /** Work runs a second time only if its author says that this does no harm. */
  private async beginAgain(call: ServerCall): Promise<string | Json> {
    const { params } = call.request;
    const tool = this.tools.get(stringParam(params, 'name'));
    const { readOnlyHint, idempotentHint } = tool?.annotations ?? {};
    if (!tool || (readOnlyHint !== true && idempotentHint !== true))
      throw new RpcError(-32603, 'The process that worked on this task has ended');

    return tool.run(argumentsIn(params), call);
  }

  // ─── Resources ───────────────────────────────────────────────────────────────────────────────

  private async listResources(params: Json, call: ServerCall) {
    const all = [...this.resources.values()].map(described);
    for (const { list } of this.templates.values()) all.push(...((await list?.(call)) ?? []));
    return this.page('resources', all, params);
  }

  private async read(params: Json, call: ServerCall): Promise<Json> {
    const uri = stringParam(params, 'uri');
    call.earlierRounds();
    const resource = this.resources.get(uri);
    const answer = resource ? await resource.read(call) : undefined;
    if (answer !== undefined) return { contents: contentsOf(answer, uri, resource!.mimeType) };
    for (const template of this.templates.values()) {
      const values = matchTemplate(template.uriTemplate, uri);
      const found: ResourceAnswer | undefined = values && (await template.read(values, call));
      if (found !== undefined) return { contents: contentsOf(found, uri, template.mimeType) };
    }
    const code = call.isStateless ? -32602 : NOT_FOUND;
    throw new RpcError(code, `Resource not found: ${uri.slice(0, 200)}`, { uri });
  }

  // ─── Prompts and completion ──────────────────────────────────────────────────────────────────

  private async getPrompt(params: Json, call: ServerCall): Promise<Json> {
    const name = stringParam(params, 'name');
    const prompt = this.prompts.get(name);
    if (!prompt) throw new RpcError(-32602, `Unknown prompt: ${name.slice(0, 128)}`);
    call.earlierRounds();
    const args = promptArguments(prompt, argumentsIn(params));
    const messages = promptMessages(await prompt.get(args, call));
    return { description: prompt.description, messages };
  }

  private async complete(params: Json, call: ServerCall): Promise<Json> {
    const ref = asObject(params.ref);
    const { name, value } = asObject(params.argument);
    if (typeof name !== 'string' || typeof value !== 'string')
      throw new RpcError(-32602, 'argument must have a name and a value');

    const others = asObject(asObject(params.context).arguments);
    const completer = this.completerFor(ref, name);
    return { completion: completion((await completer?.(value, others, call)) ?? []) };
  }

  private completerFor({ type, name, uri }: Json, argument: string) {
    const prompt = type === 'ref/prompt' ? this.prompts.get(`${name}`) : undefined;
    const template = type === 'ref/resource' ? this.templates.get(`${uri}`) : undefined;
    if (!prompt && !template)
      throw new RpcError(-32602, `Unknown reference: ${excerpt(name ?? uri)}`);

    if (prompt) return prompt.arguments?.find((each) => each.name === argument)?.complete;
    const { complete = {} } = template!;
    return ownValue(complete, argument);
  }

  // ─── Pages ───────────────────────────────────────────────────────────────────────────────────

  page(key: string, all: Json[], params: Json): Json {
    return pageOf(key, all, params, this.options.pageSize);
  }
}

const isOffered = (tool: ServerTool, call: ServerCall) => tool.isOffered?.(call) ?? true;

function byKey<Key extends string, Row extends Record<Key, string>>(rows: Row[] = [], key: Key) {
  const map = new Map<string, Row>();
  for (const row of rows) {
    if (map.has(row[key])) throw new Error(`there are two of ${row[key]}`);
    map.set(row[key], row);
  }
  return map;
}
