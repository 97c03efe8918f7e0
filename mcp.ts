// mcp.ts: a Model Context Protocol client by hand, without a dependency.
//
//   agent ── McpManager ──┬── McpConnection ── Transport ── server
//                         └── McpConnection ── Transport ── server
//
// A Transport knows bytes, a Connection (on Node: McpConnection) knows ids, the McpManager names.
// Two seams take everything else: transports (below a connection) and extensions (around it).
// Here is the idea: one server, then many. The details (limits, odd cases) are in the folders of
// the chapters that explain them, so the imports below read as the contents of the book.

import { homedir } from 'node:os';
import {
  type Id,
  type Json,
  type Message,
  asObject,
  asRefusal,
  copyOf,
  detailOf,
  excerpt,
  jsonLength,
  meantId,
  now,
  oddityOf,
  positive,
  textOf,
  withProgressToken,
} from './chapters/01-a-pipe/messages.ts';
import {
  type Transport,
  type TransportFactory,
  transportType,
} from './chapters/01-a-pipe/transport.ts';
import { type ErrorKind, McpError, RpcError } from './chapters/03-three-shapes/errors.ts';
import { onNode } from './chapters/03-three-shapes/on-node.ts';
import type {
  Call,
  CallOptions,
  Extension,
  Incoming,
  Next,
  Offer,
  Parts,
} from './chapters/04-correlation/extension.ts';
import { Extensions } from './chapters/04-correlation/extensions.ts';
import { Deadlines } from './chapters/06-deadlines/deadlines.ts';
import {
  type ServerDescription,
  isStateless,
  shakeHands,
} from './chapters/07-handshake/handshake.ts';
import { MAX_LIST, MAX_PAGES, onePage } from './chapters/08-discovery/page.ts';
import {
  type Tool,
  isSameTool,
  problemWithTool,
  withSchema,
} from './chapters/08-discovery/tool.ts';
import { type ToolResult, blocksToText } from './chapters/09-calling/blocks.ts';
import { type ServerEntry, loadEntries } from './chapters/12-three-files/config.ts';
import {
  cautionAbout,
  configError,
  isSwitchedOff,
  problemWithConfig,
} from './chapters/12-three-files/entry.ts';
import { launchConfig, lostWords, needsApproval } from './chapters/12-three-files/launch.ts';
import { serverPrefix, toolLabel } from './chapters/13-names/labels.ts';
import {
  type KnownServers,
  type Server,
  type ServerState,
  type ServerStatus,
  type ToolDefinition,
  byLabel,
  definitionsOf,
  isSameEntry,
  isForgotten,
  isOnOffer,
  noteLogin,
  problemWithEntry,
  standingOf,
  serverStatusOf,
} from './chapters/14-the-manager/server-record.ts';
import { ToolList } from './chapters/14-the-manager/tool-list.ts';

export * from './chapters/01-a-pipe/environment.ts';
export * from './chapters/01-a-pipe/messages.ts';
export * from './chapters/01-a-pipe/stdio.ts';
export * from './chapters/01-a-pipe/transport.ts';
export * from './chapters/02-framing/lines.ts';
export * from './chapters/03-three-shapes/errors.ts';
export * from './chapters/03-three-shapes/on-node.ts';
export * from './chapters/04-correlation/extension.ts';
export * from './chapters/05-death/bounds.ts';
export * from './chapters/05-death/children.ts';
export * from './chapters/05-death/last-words.ts';
export * from './chapters/07-handshake/handshake.ts';
export * from './chapters/08-discovery/page.ts';
export * from './chapters/08-discovery/tool.ts';
export * from './chapters/09-calling/blocks.ts';
export * from './chapters/11-goodbye/strays.ts';
export * from './chapters/12-three-files/command.ts';
export * from './chapters/12-three-files/config.ts';
export * from './chapters/12-three-files/entry.ts';
export * from './chapters/12-three-files/folders.ts';
export * from './chapters/12-three-files/launch.ts';
export * from './chapters/12-three-files/variables.ts';
export * from './chapters/13-names/labels.ts';
export * from './chapters/14-the-manager/server-record.ts';

// ─── One server, and what is added to it ────────────────────────────────────────────────────────

export interface ConnectionOptions {
  handshakeTimeoutMs?: number; // for the handshake, and again for the list of tools
  callTimeoutMs?: number; // for a call without a sign of progress
  maxCallMs?: number; // for a call that makes progress
  maxLineBytes?: number;
  transports?: Record<string, TransportFactory>; // by the `type` of the configuration
  extensions?: Extension[];
  onWire?: (direction: 'out' | 'in', message: unknown, serverName: string) => void;
  onStderr?: (text: string, serverName: string) => void;
  onWarning?: (warning: string) => void; // by default to stderr
  expectListeners?: (signal: AbortSignal) => void; // any number of them: Node warns at the eleventh
}

/** A call whose answer has not come yet. */
class Waiter {
  call: Call;
  resolve: (result: Json) => void;
  reject: (why: Error) => void;
  startedAt = now();
  endsAt = Infinity;
  onAbort?: () => void;

  constructor(call: Call, resolve: Waiter['resolve'], reject: Waiter['reject']) {
    this.call = call;
    this.resolve = resolve;
    this.reject = reject;
  }
}

const MAX_REFUSAL = 10_000; // characters of a server's error that are passed on
const MAX_TOLD = 20; // tools that are left out
const MAX_CANCELLED = 1000;
const MAX_UNANSWERED = 1000;

/** One server, whatever carries its messages. It needs nothing of Node's: see McpConnection. */
export class Connection {
  readonly serverName: string;
  readonly config: Json;
  readonly options;
  readonly warnings = new Map<string, string>(); // by kind: each kind is reported once
  private extensions = new Extensions(this);
  private transport?: Transport;
  private connecting?: Promise<void>;
  private reopening?: Promise<void>;
  /** Only this class changes it; others read the getters below. */
  private life: {
    ended?: Error; // why no request can be sent now
    server?: ServerDescription;
    final?: Error; // why no request can ever be sent again
    strays?: number; // answers that came under an id that no call waits for
    isAsleep?: boolean;
  } = {};
  private nextId = 1;
  private pending = new Map<unknown, Waiter>();
  private deadlines: Deadlines;
  private cancelled = new Set<unknown>(); // their answers may still come
  private served = new Set<{ id: Id; controller: AbortController }>(); // not answered yet
  private ending = new AbortController(); // of the present transport

  constructor(serverName: string, config: Json, options: ConnectionOptions = {}) {
    this.serverName = serverName;
    this.config = config;
    this.options = {
      ...options,
      maxLineBytes: options.maxLineBytes ?? 64 * 2 ** 20,
      handshakeTimeoutMs: options.handshakeTimeoutMs ?? 15_000,
      // This server's own limit beats the general one.
      callTimeoutMs: positive(config.timeout) ?? options.callTimeoutMs ?? 60_000,
      maxCallMs: options.maxCallMs ?? 600_000,
    };
    this.deadlines = new Deadlines(
      this.options,
      () => this.pending,
      (id, limitMs) => this.timeOut(id, limitMs),
    );
    this.extensions.plugIn('mcp.ts', this.ownParts());
    this.extensions.plugInAll(options.extensions);
    this.extensions.wrapAround((call) => this.exchange(call));
  }

  /** Why no request can be sent now. */
  get ended(): Error | undefined {
    return this.life.ended;
  }

  /** What the server said of itself. Undefined before a handshake, and while one is under way. */
  get server(): ServerDescription | undefined {
    return this.life.server;
  }

  /** What we declare: the capabilities of all extensions together. */
  get capabilities(): Json {
    return this.extensions.capabilities;
  }

  /** Known from connect() on. Check this, not the `type` of the configuration. */
  get hasStreamPerRequest(): boolean {
    return this.transport?.hasStreamPerRequest ?? false;
  }

  /** Aborts when the present transport ends. */
  get signal(): AbortSignal {
    return this.ending.signal;
  }

  /** How many answers came under an id that no call waits for. */
  get strayAnswers(): number {
    return this.life.strays ?? 0;
  }

  /** Ended by close() or giveUp(), and cannot be reopened. */
  get isClosed(): boolean {
    return this.life.final !== undefined;
  }

  /** Ended by sleep(): reopen() and a handshake wake it up. */
  get isAsleep(): boolean {
    return this.life.isAsleep === true && !this.isClosed;
  }

  /** What every connection can do by itself. */
  private ownParts(): Parts {
    return {
      handlers: {
        ping: () => ({}),
        'notifications/progress': (params) => this.hearProgress(params),
        'notifications/cancelled': ({ requestId }) => this.stopServing(requestId),
        'notifications/tools/list_changed': () => this.changed('tools'),
        'notifications/prompts/list_changed': () => this.changed('prompts'),
        'notifications/resources/list_changed': () => this.changed('resources'),
      },
    };
  }

  /** For an extension that learns of a change without a notification. */
  changed(what: Offer): void {
    this.extensions.tell('changed', (parts) => parts.changed?.(what));
  }

  // ── Opening and closing ──

  /** Starts the transport, once, however often it is called. */
  async connect(): Promise<void> {
    if (this.ended) throw this.ended;
    this.connecting ??= this.open();
    await this.connecting;
  }

  /** Starts over on a new transport, whether or not the old one has ended. A handshake must
   *  follow. Called again meanwhile, it waits for the same start. */
  reopen(): Promise<void> {
    this.reopening ??= this.startOver().finally(() => {
      this.reopening = undefined;
    });
    return this.reopening;
  }

  private async startOver(): Promise<void> {
    if (this.life.final) throw this.life.final;
    const old = this.transport;
    this.transport = undefined; // ignore anything it still sends
    this.failPending(this.error('closed', 'was started again'));
    this.stopHandlers();
    await old?.close();
    if (this.isClosed) throw this.life.final; // meanwhile
    this.life = {};
    this.connecting = this.open();
    await this.connecting;
  }

  private async open(): Promise<void> {
    let transport: Transport | undefined;
    const isCurrent = () => this.transport === transport;
    try {
      transport = this.makeTransport();
      this.transport = transport;
      this.ending = new AbortController();
      this.options.expectListeners?.(this.ending.signal); // any number of handlers may be at work
      await transport.start({
        message: (message) => {
          if (isCurrent()) this.receive(message);
        },
        dropped: (why, id) => {
          if (isCurrent()) this.drop(why, id);
        },
        stderr: (text) => this.options.onStderr?.(text, this.serverName),
        closed: (why) => {
          if (isCurrent()) this.failAll(why);
        },
      });
    } catch (error) {
      if (!isCurrent()) throw error; // a newer one has taken its place
      const what = `could not be started: ${textOf(error)}`;
      const why = error instanceof McpError ? error : this.error('start', what);
      this.failAll(why);
      throw this.ended; // the transport's own reason, if it gave one, says more than the error
    }
  }

  /** The call whose answer was dropped need not wait for its time limit. */
  private drop(why: Error, id?: Id): void {
    this.report('dropped', why.message);
    this.fail(id, why);
  }

  private makeTransport(): Transport {
    const { maxLineBytes, transports = {} } = this.options;
    const problem = problemWithConfig(this.config, this.options);
    if (problem) throw new McpError('config', `MCP server "${this.serverName}": ${problem}`);
    const caution = cautionAbout(this.config, this.options);
    if (caution) this.warn('entry', caution);
    const make = transports[transportType(this.config)]!;
    return make(this.serverName, this.config, maxLineBytes);
  }

  /** Shakes hands: by an extension's handshake if there is one, else as revisions up to 2025 do. */
  async initialize(): Promise<ServerDescription> {
    try {
      this.life.server = undefined; // until this handshake is done
      const { handshake = () => shakeHands(this) } = this.extensions;
      const server = await handshake();
      if (this.ended) throw this.ended; // closed by us meanwhile
      this.life.server = server;
      this.extensions.tell('opened', ({ opened }) => opened?.(server));
      return server;
    } catch (error) {
      this.failAll(error as Error); // without a handshake no request may be sent
      this.transport?.close().catch(() => {}); // why it failed matters more
      throw error;
    }
  }

  async close(): Promise<void> {
    this.life.final ??= this.error('closed', 'was closed by us');
    this.failAll(this.life.final);
    await this.transport?.close();
    await this.reopening?.catch(() => {}); // it may be closing another
  }

  /** Ends it, even if it has ended already. Every later call fails with this reason. */
  giveUp(why: Error): void {
    if (this.isClosed) return;
    this.life.final = why;
    this.life.ended = undefined;
    this.failAll(why);
    this.transport?.close().catch(() => {}); // why it ended matters more than how
  }

  /** Ends it until it is needed. What the server said of itself stays. */
  sleep(server = this.server): void {
    if (this.ended) return;
    this.life.isAsleep = true;
    this.failAll(this.error('closed', 'is asleep; the extension sleepUntilNeeded would wake it'));
    this.life.server = server;
    this.transport?.close().catch(() => {}); // reopen() waits for its end
  }

  /** No call may wait for a dead server: those that wait fail, and so does every later one. */
  private failAll(why: Error): void {
    if (this.ended) return;
    this.life.ended = why;
    this.failPending(why);
    this.stopHandlers();
    this.extensions.tell('closed', ({ closed }) => closed?.(why));
  }

  private failPending(why: Error): void {
    for (const id of this.pending.keys()) {
      this.fail(id, why);
    }
    this.deadlines.stop();
  }

  // ── What we request ──

  /** Sends a request and waits for its answer. The promise settles once, whatever happens. */
  request(method: string, params?: Json, options: CallOptions = {}): Promise<Json> {
    return this.extensions.outermost({ method, params, options });
  }

  /** Our calls whose answers have not come yet. */
  get running(): Call[] {
    const waiters = [...this.pending.values()];
    return waiters.map(({ call }) => call);
  }

  notify(method: string, params?: Json): Promise<void> {
    return this.send({ jsonrpc: '2.0', method, params });
  }

  private send(message: Message, headers?: Record<string, string>): Promise<void> {
    try {
      if (this.ended) throw this.ended;
      if (!this.transport) throw this.error('closed', 'is not connected; call connect() first');
      this.options.onWire?.('out', message, this.serverName);
      return this.transport.send(message, headers);
    } catch (error) {
      return Promise.reject(error); // an async function would cost a promise more per message
    }
  }

  /** Behind all layers: one request on the wire, and its answer. */
  private exchange(call: Call): Promise<Json> {
    if (call.options.signal?.aborted) {
      const what = `was not sent ${call.method}: it was cancelled first`;
      return Promise.reject(this.error('aborted', what));
    }
    return new Promise((resolve, reject) => {
      const id = this.nextId++;
      const { method, params, options } = call;
      const message: Message = { jsonrpc: '2.0', id, method, params };
      const waiter = new Waiter(call, resolve, reject);
      this.pending.set(id, waiter);
      this.deadlines.set(waiter, waiter.startedAt);
      this.listenForAbort(id, waiter);
      // A Map in steady use moves from table to table, and V8 keeps the old ones for long, with all
      // that was in them. A new Map leaves them behind.
      if (id % 256 === 0) this.pending = new Map(this.pending);
      if (options.onProgress) message.params = withProgressToken(params, id);
      const sent = this.send(message, options.headers);
      sent.catch((error) => this.fail(id, error));
    });
  }

  /** The only way out of `pending`. The caller settles what it took, so no call settles twice. */
  private take(id: unknown): Waiter | undefined {
    const waiter = this.pending.get(id);
    this.pending.delete(id);
    if (this.pending.size === 0) this.deadlines.rest();
    if (waiter?.onAbort) {
      waiter.call.options.signal?.removeEventListener('abort', waiter.onAbort);
    }
    return waiter;
  }

  private fail(id: unknown, why: Error): void {
    this.take(id)?.reject(why);
  }

  private timeOut(id: number, limitMs: number): void {
    const method = this.pending.get(id)?.call.method;
    const slow = `did not answer ${method} within ${limitMs / 1000} s.`;
    const isOpening = method === 'initialize';
    const hint = isOpening ? ' If it is slow, set MCP_TIMEOUT or handshakeTimeoutMs (ms).' : '';
    const words = this.transport?.lastWords?.() ?? '';
    const why = this.error('timeout', slow + hint + words);
    this.cancel(id, why);
  }

  private listenForAbort(id: number, waiter: Waiter): void {
    const { method, options } = waiter.call;
    if (!options.signal) return;
    waiter.onAbort = () => {
      this.cancel(id, this.error('aborted', `was told to stop: ${method} was cancelled`));
    };
    this.options.expectListeners?.(options.signal); // one signal may end any number of calls
    options.signal.addEventListener('abort', waiter.onAbort);
  }

  /** Stops waiting, and says so: the server may then stop working. The opening request must not
   *  be cancelled; but its stream, if it has one of its own, can be closed. */
  private cancel(id: number, why: McpError): void {
    const method = this.pending.get(id)?.call.method ?? '';
    this.fail(id, why);
    this.cancelled.add(id); // its answer may be on the way, which is not the server's mistake
    if (this.cancelled.size > MAX_CANCELLED) {
      const [oldest] = this.cancelled;
      this.cancelled.delete(oldest);
    }
    const isSilent = /^(initialize|server\/discover)$/.test(method);
    if (isSilent && this.hasStreamPerRequest) this.closeStream(id);
    if (isSilent) return;
    const params = { requestId: id, reason: why.kind };
    const told = this.notify('notifications/cancelled', params);
    told.catch(() => {}); // it may be gone
  }

  /** The transport closes the stream and sends no message, so none is shown as sent. */
  private closeStream(requestId: number): void {
    const cancelled: Message = {
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId },
    };
    this.transport?.send(cancelled).catch(() => {}); // it may be gone
  }

  private hearProgress(params: Json): unknown {
    const waiter = this.pending.get(meantId(params.progressToken, this.pending));
    const { onProgress } = waiter?.call.options ?? {};
    if (!waiter || !onProgress) return undefined;
    this.deadlines.set(waiter, now());
    return onProgress(params);
  }

  /** For a handler that asks a person, who may think for minutes: until `work` is done no call runs
   *  out of time, and afterwards each has its whole limit again. */
  hold<T>(work: Promise<T>): Promise<T> {
    return this.deadlines.hold(work);
  }

  // ── What comes in is checked here: an odd shape is an error for one call, never a crash ──

  private receive(message: unknown): void {
    if (this.ended) return;
    this.options.onWire?.('in', message, this.serverName);
    // One revision has batches, and before the handshake is done it may be that one.
    const mayBatch = !this.server || this.server.protocolVersion === '2025-03-26';
    if (mayBatch && Array.isArray(message)) {
      return message.forEach((each) => this.receiveOne(each));
    }
    this.receiveOne(message);
  }

  private receiveOne(message: unknown): void {
    const { jsonrpc, id = null, method, params } = asObject(message);
    // `method` tells a request from an answer. The id does not: servers count from 1 too.
    if (jsonrpc === '2.0' && typeof method === 'string') {
      if (id === null) this.extensions.hear(method, asObject(params), this.signal);
      else void this.serve(id as Id, method, asObject(params));
      return;
    }
    const ours = meantId(id, this.pending);
    if (method === undefined && this.pending.has(ours)) {
      if (ours !== id) this.warn('string id', `answers to id ${ours} with the string "${ours}"`);
      return this.settle(this.take(ours)!, message as Json);
    }
    if (method === undefined && this.cancelled.delete(id)) return;
    if (jsonrpc === '2.0') this.life.strays = this.strayAnswers + 1;
    if (jsonrpc !== '2.0') {
      return this.warn('noise', `sends something other than messages: ${excerpt(message)}`);
    }
    this.warn('stray', `sent an answer that no call is waiting for: ${excerpt(message)}`);
  }

  private settle({ call, resolve, reject }: Waiter, answer: Json): void {
    const { result, error = null } = answer;
    const odd = oddityOf(answer);
    if (odd) reject(this.error('protocol', `answered ${call.method} with ${odd}`));
    else if (error === null) resolve(result as Json);
    else reject(this.refusal(call.method, error));
  }

  private refusal(method: string, error: unknown): RpcError {
    const { code, message, data } = asObject(error);
    const number = typeof code === 'number' ? code : -32603;
    const isText = typeof message === 'string';
    const words = isText ? copyOf(message.slice(0, MAX_REFUSAL)) : excerpt(error);
    const more = isText ? detailOf(data) : '';
    const who = `MCP server "${this.serverName}"`;
    return new RpcError(number, `${who} refused ${method}: ${words} (${number})${more}`, data);
  }

  /** A request gets exactly one answer, unless the server cancels it first. */
  private async serve(id: Id, method: string, params: Json): Promise<void> {
    // Since 2026-07-28 servers ask inside their results, and must not send requests.
    if (isStateless(this.server)) {
      const what = `sent a request, which its revision does not allow: ${excerpt(method)}`;
      return this.warn('asks', what);
    }
    if (this.served.size >= MAX_UNANSWERED) {
      return this.warn('flood', 'sends requests faster than it reads our answers');
    }
    const request = { id, controller: new AbortController() };
    const { signal } = request.controller;
    this.served.add(request);
    try {
      const result = await this.handle(method, params, { id, signal });
      if (!signal.aborted) await this.send({ jsonrpc: '2.0', id, result });
    } catch (error) {
      const refusal: Message = { jsonrpc: '2.0', id, error: asRefusal(error) };
      if (!signal.aborted) await this.send(refusal).catch(() => {}); // it may be gone
    }
    this.served.delete(request);
  }

  /** What our handler answers, whichever way the request came. */
  async handle(method: string, params: Json, incoming: Incoming): Promise<unknown> {
    const handler = this.extensions.handlerOf(method);
    if (!handler) throw new RpcError(-32601, `Method not found: ${method}`);
    return (await handler(params, incoming)) ?? {};
  }

  handles(method: string): boolean {
    return this.extensions.handlerOf(method) !== undefined;
  }

  /** The server has cancelled a request of its own, which then gets no answer. */
  private stopServing(id: unknown): void {
    for (const request of this.served) {
      if (request.id === id) request.controller.abort();
    }
  }

  private stopHandlers(): void {
    this.ending.abort();
    for (const { controller } of this.served) controller.abort();
    this.served.clear();
  }

  // ── Lists and tools ──

  /** All pages of a list. `key` is the member of each page that holds its part. */
  async listAll(method: string, key: string): Promise<unknown[]> {
    const deadline = now() + this.options.handshakeTimeoutMs; // for all pages together
    const found: unknown[] = [];
    let size = 0;
    const cursors = new Set<unknown>();
    let params: Json | undefined;
    while (cursors.size < MAX_PAGES) {
      const page = await onePage(this, method, params, deadline, cursors.size);
      const part = page[key];
      if (!Array.isArray(part)) {
        throw this.error('protocol', `answered ${method} with ${excerpt(page)}`);
      }
      for (const item of part) found.push(item);
      const { nextCursor = null } = page; // an empty string is a cursor like any other
      if (nextCursor === null) return found;
      size += jsonLength(page); // many pages, each as long as a line may be
      if (size > MAX_LIST) {
        throw this.error('limit', `has ${key} of more than ${MAX_LIST} characters`);
      }
      if (cursors.has(nextCursor)) {
        throw this.error('protocol', `repeats the cursor ${excerpt(nextCursor)}`);
      }
      cursors.add(nextCursor);
      params = { cursor: nextCursor };
    }
    throw this.error('limit', `has more than ${MAX_PAGES} pages of ${key}`);
  }

  async listTools(): Promise<Tool[]> {
    const offers = this.server?.capabilities;
    if (offers && !offers.tools) return []; // it said that it has none
    const tools = new Map<unknown, Tool>();
    const leftOut: string[] = [];
    for (const tool of await this.listAll('tools/list', 'tools')) {
      const { name } = asObject(tool);
      const problem = tools.has(name) ? 'its name is taken' : problemWithTool(tool);
      if (problem) leftOut.push(`${excerpt(tool)}: ${problem}`);
      else tools.set(name, withSchema(tool as Tool));
    }
    if (leftOut.length > 0) {
      const some = leftOut.slice(0, MAX_TOLD).join('; ');
      const more = leftOut.length > MAX_TOLD ? ` and ${leftOut.length - MAX_TOLD} more` : '';
      this.warn('tools', `has tools that we leave out: ${some}${more}`);
    }
    return [...tools.values()];
  }

  async callTool(name: string, args: Json = {}, options?: CallOptions): Promise<ToolResult> {
    const params = { name, arguments: args };
    const result = await this.request('tools/call', params, options);
    const { content, isError, toolResult } = result;
    const { structuredContent = toolResult } = result; // servers of 2024 call it toolResult
    const blocks = content ?? [];
    if (!Array.isArray(blocks)) {
      throw this.error('protocol', `answered tools/call with content ${excerpt(content)}`);
    }
    let text = blocksToText(blocks);
    if (blocks.length === 0) text = JSON.stringify(structuredContent) ?? '';
    return {
      text,
      content: blocks,
      // A tool that failed has still answered, and the model must read why: not an exception.
      isError: isError === true || isError === 'true',
      ...(structuredContent !== undefined && { structuredContent }),
    };
  }

  // ── Errors and warnings ──

  error(kind: ErrorKind, what: string): McpError {
    return new McpError(kind, `MCP server "${this.serverName}" ${what}`);
  }

  warn(kind: string, what: string): void {
    this.report(kind, `MCP server "${this.serverName}" ${what}`);
  }

  report(kind: string, warning: string): void {
    if (this.warnings.has(kind)) return;
    this.warnings.set(kind, warning);
    this.options.onWarning?.(warning);
  }
}

/** A connection with what a program on Node brings: a pipe, limits from the environment, stderr. */
export class McpConnection extends Connection {
  constructor(serverName: string, config: Json, options: ConnectionOptions = {}) {
    super(serverName, config, onNode(options));
  }
}

// ─── Many servers ───────────────────────────────────────────────────────────────────────────────

export type Approval = boolean | 'disabled';
export interface ManagerOptions extends ConnectionOptions {
  approve?: (entry: ServerEntry) => Approval | Promise<Approval>; // by default the user's own
  load?: (report: (problem: string) => void) => Map<string, ServerEntry>; // by default three files
  hidden?: string[]; // variables that a project's entry cannot read: the keys of models
  concurrency?: number; // how many servers start side by side
  prepare?: () => Promise<void> | undefined; // what must be known before `load` can be called
  inTurn?: (entry: ServerEntry, start: () => Promise<void>) => Promise<void>; // by default at once
  home?: string;
  cwd?: string;
  onState?: (name: string, state: ServerState, reason?: string) => void;
  onChanged?: (name: string, what: Offer) => void; // after the manager has looked again
  known?: KnownServers; // then a server whose tools are known starts when it is needed
}

export class McpManager {
  readonly options: ManagerOptions;
  readonly warnings: string[] = []; // about the files; a server's own are in its status
  private servers = new Map<string, Server>();
  private prefixes = new Map<string, string>(); // which server's labels begin so
  private table = new Map<string, { server: Server; tool: Tool }>(); // by label
  private definitions?: ToolDefinition[]; // of all tools, until those of a server change
  private loading?: Promise<void>;
  private questions = 0; // that are open: may this server start?
  private lastStart = 0;

  constructor(options: ManagerOptions = {}) {
    this.options = onNode(options);
  }

  /** Connects to all configured servers, once, however often and from wherever it is called. */
  loadAndConnect(): Promise<void> {
    this.loading ??= this.load();
    return this.loading;
  }

  private async load(): Promise<void> {
    const ready = this.options.prepare?.();
    if (ready) await ready; // else the servers are known at once, before anything is awaited
    await this.connectAll();
  }

  /** When the last server was allowed to start. Time spent asking the user does not count. */
  get startingSince(): number {
    return this.questions > 0 ? now() : this.lastStart;
  }

  private async connectAll(): Promise<void> {
    const { concurrency = 32 } = this.options;
    const entries = this.readConfiguration();
    const before = this.servers;
    this.servers = new Map();
    this.prefixes = new Map();
    for (const [name, entry] of entries) {
      const prefix = serverPrefix(name);
      if (!this.prefixes.has(prefix)) this.prefixes.set(prefix, name);
      this.servers.set(name, { entry });
    }
    for (const [name, entry] of entries) this.keepAsItIs(before.get(name), entry);
    const changed = changedIn(before, this.servers);
    if (changed.length > 0) await this.end(changed);
    const queue = this.servers.values(); // one queue, and several workers that empty it
    const work = async () => {
      for (const server of queue) {
        await this.connectOne(server);
      }
    };
    const most = Math.min(concurrency, entries.size);
    const workers = Math.max(1, most) || 1; // also if it is NaN
    await Promise.all(Array.from({ length: workers }, work));
  }

  private readConfiguration(): Map<string, ServerEntry> {
    const { home = homedir(), cwd = process.cwd() } = this.options;
    const { load = (report) => loadEntries(home, cwd, report) } = this.options;
    this.warnings.length = 0;
    this.lastStart = now();
    return load((problem) => {
      this.warnings.push(problem);
      this.options.onWarning!(problem);
    });
  }

  private async connectOne(server: Server): Promise<void> {
    const { inTurn = (_, start) => start() } = this.options;
    try {
      if (await this.mayStart(server)) {
        await inTurn(server.entry, () => this.start(server));
      }
    } catch (error) {
      if (server.connection) server.connection.giveUp(error as Error);
      else this.decide(server, 'failed', textOf(error));
    }
    this.tellState(server);
  }

  private async mayStart(server: Server): Promise<boolean> {
    const { entry } = server;
    if (server.decided) return false; // closed while it was in the queue
    if (server.connection) return false; // it goes on as it is
    if (entry.blocked || isSwitchedOff(entry.config)) {
      this.decide(server, 'disabled', entry.blocked);
      return false;
    }
    const first = this.prefixes.get(serverPrefix(entry.name))!;
    const problem = problemWithEntry(entry, first, this.options);
    if (problem) throw configError(entry, problem);
    const approval = await this.approvalOf(structuredClone(entry)); // what was shown is what starts
    const why = `${entry.file} asks to start it, and that is not approved yet`;
    if (approval === 'disabled') this.decide(server, 'disabled');
    else if (approval !== true) this.decide(server, 'pending', why);
    return !server.decided; // it may also have been closed while a person was asked
  }

  private async approvalOf(entry: ServerEntry): Promise<Approval> {
    const { approve = (each) => !needsApproval(each, this.options.cwd) } = this.options;
    this.questions++;
    try {
      return await approve(entry);
    } finally {
      this.questions--;
      this.lastStart = now();
    }
  }

  private async start(server: Server): Promise<void> {
    const { entry } = server;
    const { extensions = [], cwd } = this.options;
    if (server.decided) return; // closed a moment ago
    const startedAt = now();
    const config = launchConfig(entry, this.options);
    server.list = new ToolList(() => this.listNow(server));
    const connection = new McpConnection(entry.name, config, {
      ...this.options,
      extensions: [...extensions, this.watch(server)],
    });
    server.connection = connection;
    const lost = lostWords(entry, cwd);
    if (lost) connection.warn('folder', lost);
    if (this.maySleep(server)) return;
    await connection.connect();
    await connection.initialize();
    await server.list.look();
    server.startMs = Math.round(now() - startedAt);
  }

  /** Its tools are known from last time, so it need not start before it is called. But not after
   *  `reconnect`, which has set `told`, nor with `"lazy": false`. */
  private maySleep(server: Server): boolean {
    const { entry, connection, told } = server;
    const mustStart = told || entry.config.lazy === false;
    const last = mustStart ? undefined : this.options.known?.find(entry);
    if (!last) return false;
    this.setTools(server, last.tools);
    connection!.sleep(last.server);
    return true;
  }

  /** The manager is itself the last extension of each of its connections: so it hears of everything
   *  that changes a server's state. */
  private watch(server: Server): Extension {
    const mcpManager: Extension = () => ({
      layer: (call, next) => this.callAgreed(server, call, next),
      opened: () => {
        server.list!.changed(); // it may be another server than before
        this.tellState(server);
      },
      changed: (what) => this.lookAgain(server, what),
      closed: () => {
        server.list!.stop();
        this.tellState(server);
      },
    });
    return mcpManager;
  }

  private callAgreed(server: Server, call: Call, next: Next): Promise<Json> {
    const { tool } = call.options;
    const answer = tool ? this.compare(server, tool).then(() => next(call)) : next(call);
    const note = (error?: unknown) => {
      if (noteLogin(server, error)) this.tellState(server);
    };
    answer.then(() => note(), note);
    return answer;
  }

  /** In the innermost layer, so that it is done again for a call that is sent again. */
  private async compare(server: Server, wanted: Tool): Promise<void> {
    const connection = server.connection!;
    const failed = (error: unknown) => {
      const kind = connection.ended ? 'unreachable' : 'unknown-tool'; // the call was not sent
      const what = 'did not list its tools, so this call was not sent';
      throw connection.error(kind, `${what}: ${textOf(error)}`);
    };
    if (server.list!.isStale) await server.list!.refresh().catch(failed);
    const label = toolLabel(server.entry.name, wanted.name);
    const found = server.tools?.get(label);
    if (found && isSameTool(found, wanted)) return;
    const why = found ? 'it has changed' : 'it is gone';
    const what = `no longer has the tool ${excerpt(wanted.name)} that was agreed to: ${why}`;
    throw connection.error('unknown-tool', `${what}. Nothing was called.`);
  }

  private decide(server: Server, state: ServerState, reason?: string): void {
    if (isForgotten(server)) return;
    server.decided = { state, reason };
  }

  private tellState(server: Server): void {
    const { onState } = this.options;
    const { told, entry } = server;
    const { state, reason } = standingOf(server);
    if (state === 'closed' || state === 'connecting') return;
    if (told?.state === state && told.reason === reason) return;
    server.told = { state, reason };
    this.safely(() => onState?.(entry.name, state, reason));
  }

  /** Starts a server again, whatever happened to it. */
  async reconnect(name: string): Promise<void> {
    const server = await this.replace(name);
    server.told = { state: 'connecting' };
    this.safely(() => this.options.onState?.(name, 'connecting'));
    await this.connectOne(server);
  }

  async disable(name: string): Promise<void> {
    const server = await this.replace(name);
    this.decide(server, 'disabled');
    this.tellState(server);
  }

  private async replace(name: string): Promise<Server> {
    const old = this.servers.get(name);
    if (!old) throw new McpError('config', `no MCP server is called ${excerpt(name)}`);
    const server: Server = { entry: old.entry };
    this.servers.set(name, server);
    await this.end([old]);
    return server;
  }

  /** Reads the configuration again. What is connected and unchanged goes on as it is; the rest
   *  ends, and what is new, has changed or had failed starts. Returns which started and ended. */
  async reload(): Promise<{ started: string[]; ended: string[] }> {
    await this.loading;
    const before = this.servers;
    this.loading = this.load();
    await this.loading;
    const names = (servers: Server[]) => servers.map(({ entry }) => entry.name);
    return {
      started: names(changedIn(this.servers, before)),
      ended: names(changedIn(before, this.servers)),
    };
  }

  private keepAsItIs(old: Server | undefined, entry: ServerEntry): void {
    const isSame = old && isSameEntry(old.entry, entry);
    if (!isSame || !isOnOffer(standingOf(old))) return;
    old.entry = entry;
    this.servers.set(entry.name, old);
  }

  /** Takes servers out of the table, and closes them side by side. Ignore anything that is still
   *  under way with them. */
  private async end(servers: Server[]): Promise<void> {
    for (const server of servers) {
      server.list?.stop();
      this.setTools(server, []);
      this.decide(server, 'closed');
    }
    const closing = servers.map(({ connection }) => connection?.close());
    await Promise.allSettled(closing);
  }

  private async listNow(server: Server): Promise<void> {
    const connection = server.connection!;
    const tools = await connection.listTools();
    if (isForgotten(server)) return;
    this.setTools(server, tools);
    this.options.known?.keep(server.entry, { server: connection.server, tools });
  }

  private lookAgain(server: Server, what: Offer): void {
    if (what !== 'tools') return this.tellChanged(server, what);
    const { list, connection } = server;
    list!.changed();
    if (!connection?.server) return; // no requests before the handshake
    list!.lookSoon((error) => {
      if (error) connection.warn('refresh', `did not list its tools again: ${textOf(error)}`);
      this.tellChanged(server, 'tools');
    });
  }

  private tellChanged(server: Server, what: Offer): void {
    if (server.decided) return; // closed meanwhile
    this.safely(() => this.options.onChanged?.(server.entry.name, what));
  }

  /** A listener of the program that fails must not fail a call, or a server. */
  private safely(tell: () => void): void {
    try {
      tell();
    } catch (error) {
      this.options.onWarning!(`a listener of the manager failed: ${textOf(error)}`);
    }
  }

  /** Replaces the rows of one server. One that died keeps its rows: a call says why. */
  private setTools(server: Server, tools: Tool[]): void {
    this.definitions = undefined;
    for (const label of server.tools?.keys() ?? []) {
      this.table.delete(label);
    }
    server.tools = byLabel(server, tools);
    for (const [label, tool] of server.tools) {
      this.table.set(label, { server, tool });
    }
  }

  /** In the order of the files, whichever server connected first. Until something changes it is the
   *  same list, read-only: there may be 100,000 tools, and the agent looks at every turn. */
  getToolDefinitions(): readonly ToolDefinition[] {
    this.definitions ??= [...this.servers.values()].flatMap(definitionsOf);
    return this.definitions;
  }

  isMcpTool(name: string): boolean {
    return this.table.has(name);
  }

  async callTool(label: string, args?: Json, options?: CallOptions): Promise<ToolResult> {
    const row = this.table.get(label);
    if (!row) {
      throw new McpError('unknown-tool', `no MCP server has a tool called ${excerpt(label)}`);
    }
    const { server, tool } = row;
    const connection = server.connection!;
    const isOfLastTime = connection.isAsleep || !server.list!.hasListed;
    if (isOfLastTime) options = { tool, ...options }; // the agent always says which one it saw
    return connection.callTool(tool.name, args, options);
  }

  /** For everything that is not a tool: resources, prompts, a request of your own. */
  connection(name: string): McpConnection | undefined {
    return this.servers.get(name)?.connection;
  }

  /** Like `connection`, but throws if there is none. */
  of(name: string): McpConnection {
    const connection = this.connection(name);
    if (connection) return connection;
    throw new McpError('config', `no MCP server ${excerpt(name)} is running`);
  }

  /** What the files say of a server, whether or not it runs. */
  entry(name: string): ServerEntry | undefined {
    return this.servers.get(name)?.entry;
  }

  status(): ServerStatus[] {
    return [...this.servers.values()].map(serverStatusOf);
  }

  /** Closes everything side by side, also what is still starting. loadAndConnect can follow. */
  async disconnectAll(): Promise<void> {
    this.loading = undefined;
    await this.end([...this.servers.values()]);
  }
}

/** Those of the first that are not in the second, or not as they were. */
function changedIn(one: Map<string, Server>, two: Map<string, Server>): Server[] {
  return [...one.values()].filter((server) => two.get(server.entry.name) !== server);
}
