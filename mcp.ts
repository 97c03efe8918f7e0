// mcp.ts: a Model Context Protocol client by hand. It imports Node's own modules and nothing else.
//
//   agent ── McpManager ──┬── McpConnection ── Transport ── server
//                         └── McpConnection ── Transport ── server
//
// A Transport knows bytes, a McpConnection knows ids, the McpManager knows names.
// Read it from top to bottom: messages, the pipe, one connection, configuration, names, many connections.

import { spawn, spawnSync, type ChildProcess, type ChildProcessWithoutNullStreams as Child } from 'node:child_process';
import { once, setMaxListeners } from 'node:events';
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

// ─── Messages ─────────────────────────────────────────────────────────────────────────────────────────────────

export type Json = { [key: string]: unknown };
export type Id = number | string;
/** A request has `method` and `id`, a notification only `method`, an answer `id` and either `result` or `error`. */
export type Message = { jsonrpc: '2.0'; id?: Id; method?: string; params?: Json; result?: unknown; error?: Json };

export const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
export const asObject = (value: unknown): Json => (isObject(value) ? value : {});
export const now = () => process.uptime() * 1000; // unlike Date.now() it never jumps
export const textOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

export type ErrorKind =
  | 'config' | 'start' | 'closed' | 'timeout' | 'aborted' | 'protocol' | 'limit' | 'unknown-tool'
  | 'unreachable' | 'lost' | 'expired' | 'auth';

/** Something failed on our side of the wire. `kind` is for programs, the message is for people. */
export class McpError extends Error {
  kind: ErrorKind;
  constructor(kind: ErrorKind, message: string) { super(message); this.kind = kind; }
}

/** The other side refused. A class of its own, so that no time-out of ours can look like a server's answer. */
export class RpcError extends Error {
  code: number;
  data: unknown;
  constructor(code: number, message: string, data?: unknown) { super(message); this.code = code; this.data = data; }
}

// ─── The pipe (seam 1: transports) ────────────────────────────────────────────────────────────────────────────

/** Moves whole messages and does not know what they mean. */
export interface Transport {
  start(events: TransportEvents): Promise<void>; // resolves when messages can be sent, rejects if that will never be
  // Resolves when it has left us: to await it is to respect a slow reader. Rejects if it, or its answer, is lost.
  // `headers` are for transports that have some.
  send(message: Message, headers?: Record<string, string>): Promise<void>;
  close(): Promise<void>; // says goodbye and resolves when nothing is left behind; may be called twice
  lastWords?(): string; // what may explain a silence, such as the last lines of stderr
}
export type TransportFactory = (serverName: string, config: Json, maxMessageBytes: number) => Transport;
export interface TransportEvents {
  message(message: unknown): void;
  closed(why: Error): void; // comes once, and no message after it
}

const LF = 0x0a;
const MAX_DEPTH = 500;
const WRITE_SIZE = 2 ** 20;
const GOODBYE_STEP_MS = 1000;
// A child gets these of our variables (and a server those that its `env` names), never a key that lies around.
const SAFE_ENV = process.platform === 'win32'
  ? /^((LOCAL)?APPDATA|COMSPEC|HOME(DRIVE|PATH)|PATH(EXT)?|PROCESSOR_\w+|PROGRAM\w+|SYSTEM(DRIVE|ROOT)|TE?MP|USER\w+)$/i
  : /^(HOME|LOGNAME|PATH|SHELL|TERM|USER|LANG|LC_\w+|TMPDIR|TZ)$/;

export type StdioConfig = { command: string; args?: string[]; env?: Record<string, string>; cwd?: string };

/** A server that is our child process: one message per line on its stdin and its stdout. stderr is not the wire. */
export class StdioTransport implements Transport {
  private who: string;
  private config: StdioConfig;
  private maxLineBytes: number;
  private child!: Child;
  private events!: TransportEvents;
  private unread: Buffer[] = []; // the beginning of a line whose end has not come yet
  private unreadBytes = 0;
  private outbox: string[] = []; // lines that wait for the next write
  private nextWrite?: Promise<void>;
  private lastWrite?: Promise<void>;
  private stderrTail = '';
  private closing?: Promise<void>;

  constructor(serverName: string, config: Json, maxLineBytes: number) {
    const problem = problemWithConfig(config);
    if (problem) throw new McpError('config', `MCP server "${serverName}": ${problem}`);
    this.config = config as StdioConfig;
    this.who = `MCP server "${serverName}" (${this.config.command})`;
    this.maxLineBytes = Math.min(maxLineBytes, 2 ** 28); // a string cannot hold much more
  }

  async start(events: TransportEvents): Promise<void> {
    this.events = events;
    // Never through a shell: what a configuration says is data, not a script. `detached` gives the server a
    // process group of its own, so that we can end it together with everything it starts.
    const { command, args = [], cwd } = this.config;
    const detached = process.platform !== 'win32';
    const child = spawn(command, args, { cwd, env: this.childEnv(), stdio: 'pipe', detached, windowsHide: true });
    this.child = child;
    leaveNoOrphan(child);
    child.on('error', (error) => this.end('start', `could not be started: ${this.whyNoStart(error)}`));
    await once(child, 'spawn'); // rejects as well; before it there may be no pipes
    child.stdout.on('data', (chunk: Buffer) => this.read(chunk));
    // A pipe that nobody reads fills up, and the server then blocks in the middle of a log line.
    child.stderr.on('data', (chunk: Buffer) => (this.stderrTail = (this.stderrTail + chunk).slice(-4096)));
    // Writing to a server that is gone raises EPIPE here. Unheard, that event would end our whole program.
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on('error', () => this.endSoon());
    child.stdout.on('end', () => this.endSoon());
    child.on('exit', () => this.endSoon());
    child.on('close', () => this.end());
  }

  send(message: Message): Promise<void> {
    this.outbox.push(JSON.stringify(message) + '\n'); // the only line feed: JSON escapes those inside strings
    if (!this.nextWrite) this.lastWrite = this.nextWrite = this.writeAfter(this.lastWrite);
    return this.nextWrite;
  }

  /** One write at a time, and one for all that was sent in a turn of the event loop or while the last was under way. */
  private async writeAfter(lastWrite?: Promise<void>): Promise<void> {
    await lastWrite;
    await new Promise<void>((done) => process.nextTick(done));
    this.nextWrite = undefined;
    const lines = this.outbox.splice(0); // what comes from now on is the next write's
    while (lines.length > 0) await new Promise((done) => this.child.stdin.write(takeText(lines), done));
  }

  private read(chunk: Buffer): void {
    chunk = this.takeWholeLines(chunk);
    for (const line of chunk.toString().split('\n')) this.readLine(line.trim()); // without CR or byte order mark
    if (this.unreadBytes > this.maxLineBytes) this.endTooLong();
  }

  /** Only LF ends a message, and what comes after the last one is kept until its own LF has come. No other character
   *  of UTF-8 contains that byte, so whole lines can be decoded at once. */
  private takeWholeLines(chunk: Buffer): Buffer {
    const end = chunk.lastIndexOf(LF) + 1;
    const rest = chunk.subarray(end);
    let whole = chunk.subarray(0, end);
    if (end > 0 && this.unread.length > 0) whole = Buffer.concat([...this.unread.splice(0), whole]);
    if (end > 0) this.unreadBytes = 0;
    if (rest.length > 0) this.unread.push(rest);
    if (this.unread.length > 4096) this.unread = [Buffer.concat(this.unread)]; // drips: their wrapping weighs more
    this.unreadBytes += rest.length;
    return whole;
  }

  private readLine(line: string): void {
    if (line === '') return;
    if (line.length > this.maxLineBytes) return this.endTooLong();
    if (isTooDeep(line)) return this.end('limit', `sent a message with more than ${MAX_DEPTH} levels`);
    let message: unknown = line; // what is not JSON goes on as text; the connection knows it for noise
    try {
      message = JSON.parse(line);
    } catch {}
    this.events.message(message);
  }

  close(): Promise<void> { return (this.closing ??= this.sayGoodbye()); }

  /** End of input, then SIGTERM, then SIGKILL to the whole group. Most servers leave at the first word. */
  private async sayGoodbye(): Promise<void> {
    if (!this.child?.pid || !living.has(this.child)) return; // it never ran, or is gone
    this.child.stdin.end(takeText(this.outbox));
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      if (await leavesWithin(GOODBYE_STEP_MS, this.child)) break;
      signalGroup(this.child, signal);
    }
    await leavesWithin(GOODBYE_STEP_MS, this.child);
    this.end();
  }

  /** One sign of the end. The rest of what was said may still be in the pipes: wait for it a moment, but no
   *  longer, because a grandchild can hold the pipes open for ever, and a server can live on without stdout. */
  private endSoon(): void {
    const end = () => {
      if (!this.closing) this.end();
    };
    setTimeout(() => setImmediate(end), 250).unref(); // after what has come meanwhile was read
  }

  private end(kind: ErrorKind = 'closed', how?: string): void {
    if (!living.delete(this.child)) return; // the end is told once
    signalGroup(this.child, 'SIGKILL'); // whatever it started and left behind
    for (const stream of [this.child.stdin, this.child.stdout, this.child.stderr]) stream?.destroy();
    this.child.unref();
    this.unread = [];
    this.events.closed(new McpError(kind, `${this.who} ${how ?? this.howItEnded()}`));
  }

  private endTooLong(): void {
    this.end('limit', `sent a line of more than ${this.maxLineBytes} bytes`);
  }

  private howItEnded(): string {
    const { exitCode, signalCode } = this.child;
    const exited = exitCode === null ? 'closed its pipes but did not exit' : `exited with code ${exitCode}`;
    return `${signalCode ? `was ended by ${signalCode}` : exited}.${this.lastWords()}`;
  }

  private whyNoStart({ code = '', message }: NodeJS.ErrnoException): string {
    const { command, cwd } = this.config;
    if (cwd && !existsSync(cwd)) return `its "cwd" ${cwd} does not exist`;
    if (code === 'EACCES') return 'the file is not executable, or not open to us';
    if (code === 'ENOENT' && existsSync(command)) return 'the interpreter that its first line names is missing';
    // npx and its like are .cmd scripts on Windows, and only cmd can start those.
    const isWindows = process.platform === 'win32';
    const hint = isWindows ? 'for npx write "command": "cmd", "args": ["/c", "npx", …]' : 'is it on the PATH?';
    return code === 'ENOENT' || (code === 'EINVAL' && isWindows) ? `command not found; ${hint}` : message;
  }

  lastWords(): string {
    // The frames of a stack, and Node's own last line, push the reason out of sight.
    const isNoise = (line: string) => /^\s*$|^\s+at |^Node\.js v\d/.test(line);
    const words = this.stderrTail.trimEnd().split('\n').filter((line) => !isNoise(line)).slice(-5).join('\n  ');
    if (words === '') return '';
    const [env, mentioned] = [this.childEnv(), new Set(this.stderrTail.split(/\W+/))];
    const withheld = Object.keys(process.env).filter((name) => mentioned.has(name) && !Object.hasOwn(env, name));
    const hints = withheld.map((name) => `\n  (${name} was not passed on. To do so: "env": {"${name}": "\${${name}}"})`);
    return ` Its last words:\n  ${words}${hints.join('')}`;
  }

  private childEnv(): NodeJS.ProcessEnv { return { ...safeEnv(), ...this.config.env }; }
}

export function safeEnv(): NodeJS.ProcessEnv {
  // A value that begins with () is a shell function: the way in of an old attack.
  const safe = Object.entries(process.env).filter(([name, value]) => SAFE_ENV.test(name) && !value?.startsWith('()'));
  return Object.fromEntries(safe);
}

function takeText(lines: string[]): string {
  let [count, size] = [0, 0]; // at least one line, but not more than a string can hold
  while (count < lines.length && size < WRITE_SIZE) size += lines[count++]!.length;
  // Legal in JSON, but the line readers of some servers (readline in Node 24) break lines at these two.
  return lines.splice(0, count).join('').replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029');
}

/** JSON.parse needs ten seconds and gigabytes for a line of 64 million brackets, so count before parsing. */
export function isTooDeep(json: string): boolean {
  if (json.length < MAX_DEPTH || !/^\s*[[{]/.test(json)) return false; // a colourful line of noise has brackets too
  for (let i = 0, depth = 0; i < json.length; i++) {
    const char = json[i];
    if (char === '"') i = endOfString(json, i);
    else if ((char === '[' || char === '{') && ++depth > MAX_DEPTH) return true;
    else if (char === ']' || char === '}') depth--;
  }
  return false;
}

/** Brackets in strings do not count, so jump to the next quote that has an even number of backslashes before it. */
function endOfString(json: string, start: number): number {
  for (let end = json.indexOf('"', start + 1); end !== -1; end = json.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (json[end - 1 - backslashes] === '\\') backslashes++;
    if (backslashes % 2 === 0) return end;
  }
  return json.length;
}

/** Not when it exits: it may be a shell, and the server its child. When the last one has let go of the pipes. */
function leavesWithin(ms: number, child: Child): Promise<boolean> {
  if (!living.has(child)) return Promise.resolve(true);
  return new Promise((done) => {
    const timer = setTimeout(() => done(false), ms);
    child.once('close', () => (clearTimeout(timer), done(true)));
  });
}

/** Signals a child and everything it started. Tells whether there was anybody. */
export function signalGroup(child: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): boolean {
  try {
    if (process.platform !== 'win32') return process.kill(-child.pid!, signal);
    if (child.exitCode === null) spawnSync('taskkill', ['/pid', `${child.pid}`, '/t', '/f']);
  } catch {} // nobody is left in the group
  return false;
}

export const living = new Set<ChildProcess>(); // whoever sees a child end takes it out
const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;

/** However our program ends, its children end too. (After SIGKILL servers only see their stdin end.) */
export function leaveNoOrphan(child: ChildProcess): void {
  living.add(child);
  if (process.listeners('exit').includes(endAllNow)) return;
  process.on('exit', endAllNow);
  for (const signal of ENDING_SIGNALS) process.prependListener(signal, endAllAndDie);
}

function endAllNow(): void {
  for (const child of living) signalGroup(child, 'SIGTERM');
  if (living.size > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100); // exit handlers cannot await
  for (const child of living) signalGroup(child, 'SIGKILL');
}

function endAllAndDie(signal: NodeJS.Signals): void {
  process.off(signal, endAllAndDie);
  // Others may have a plan for this signal: it is theirs. We step aside, for some act only when they are alone,
  // and come back for the next signal. If their plan is to exit, endAllNow is called then.
  // (By name, so that another copy of this module does not count as other.)
  const others = process.listeners(signal).filter((listener) => listener.name !== endAllAndDie.name);
  if (others.length > 0) return process.nextTick(() => process.prependListener(signal, endAllAndDie));
  endAllNow();
  process.kill(process.pid, signal); // again, and now it does what it would have done without us
}

// ─── One server (seam 2: layers; seam 3: handlers) ────────────────────────────────────────────────────────────

/** `onProgress` asks the server for progress; each sign of it starts the wait anew. */
export type CallOptions = {
  timeoutMs?: number;
  signal?: AbortSignal;
  onProgress?: (progress: Json) => void;
  headers?: Record<string, string>;
};
export type Call = { method: string; params?: Json; options: CallOptions };
export type Next = (call: Call) => Promise<Json>;
/** Goes around everything we ask. It may change the call, repeat it, or answer it itself. */
export type Layer = (call: Call, next: Next, connection: McpConnection) => Promise<Json>;
/** Takes what the server asks or tells us. What it returns for a request is the answer. */
export type Handler = (params: Json, connection: McpConnection) => unknown;

export interface ConnectionOptions {
  handshakeTimeoutMs?: number; // for the handshake, and again for the list of tools
  callTimeoutMs?: number; // for a call without a sign of progress
  maxCallMs?: number; // for a call that makes progress
  maxLineBytes?: number;
  transports?: Record<string, TransportFactory>; // by the `type` of the configuration
  layers?: Layer[]; // the first is the outermost
  handlers?: Record<string, Handler>; // by method
  handshake?: (connection: McpConnection) => Promise<ServerDescription>;
  capabilities?: Json; // what we do for servers: each needs its handler
  onWire?: (direction: 'out' | 'in', message: unknown, serverName: string) => void;
  onWarning?: (warning: string) => void;
  onClosed?: (why: Error) => void;
}
/** What a server says of itself in the handshake. Without `capabilities` it has not said what it can do.
 *  `because` tells how we know which revision it speaks. */
export type ServerDescription = {
  protocolVersion: string;
  capabilities?: Json;
  serverInfo?: Json;
  instructions?: string;
  because?: string;
};
export type Tool = Json & { name: string; description?: string; inputSchema: Json };
export type ToolResult = { text: string; content: unknown[]; isError: boolean; structuredContent?: unknown };

type Waiter = {
  call: Call;
  resolve: (result: Json) => void;
  reject: (why: Error) => void;
  startedAt: number;
  endsAt: number;
  onAbort?: () => void;
};

export const REVISIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];
export const VERSION = '0.1.0';
export const CLIENT_INFO = { name: 'mcp-by-hand', version: VERSION };
const MAX_REFUSAL = 10_000; // characters of a server's error that are passed on
const MAX_PAGES = 1000;
const MAX_UNANSWERED = 1000;
const MAX_TIMER_MS = 2 ** 31 - 1; // a longer setTimeout fires at once

export class McpConnection {
  readonly serverName: string;
  readonly config: Json;
  readonly options;
  readonly warnings = new Map<string, string>(); // by kind: each kind is said once
  server?: ServerDescription;
  private transport?: Transport;
  private connecting?: Promise<void>;
  ended?: Error; // why nothing can be asked any more
  isClosed = false; // by us, and not by chance
  private nextId = 1;
  private pending = new Map<unknown, Waiter>();
  private cancelled = new Set<unknown>();
  private alarm?: NodeJS.Timeout;
  private alarmAt = Infinity;
  private unanswered = 0; // requests from the server whose answers have not left yet
  private handlers: Map<string, Handler>;
  private ask: Next;

  constructor(serverName: string, config: Json, options: ConnectionOptions = {}) {
    this.serverName = serverName;
    this.config = config;
    const fromEnv = (name: string) => (Number(process.env[name]) > 0 ? Number(process.env[name]) : undefined);
    this.options = {
      ...options,
      maxLineBytes: options.maxLineBytes ?? 64 * 2 ** 20,
      handshakeTimeoutMs: options.handshakeTimeoutMs ?? fromEnv('MCP_TIMEOUT') ?? 15_000,
      callTimeoutMs: options.callTimeoutMs ?? fromEnv('MCP_TOOL_TIMEOUT') ?? 60_000,
      maxCallMs: options.maxCallMs ?? 600_000,
    };
    const ours = { ping: () => ({}), 'notifications/progress': (params: Json) => this.hearProgress(params) };
    this.handlers = new Map<string, Handler>(Object.entries({ ...ours, ...options.handlers }));
    const inner: Next = (call) => this.exchange(call);
    this.ask = (options.layers ?? []).reduceRight<Next>((next, layer) => async (call) => layer(call, next, this), inner);
  }

  /** Starts the transport, once, however often it is called. */
  async connect(): Promise<void> {
    if (this.ended) throw this.ended;
    await (this.connecting ??= this.open());
  }

  /** After its end, or instead of it, a connection can begin anew: a new transport, and a handshake to come. */
  async reopen(): Promise<void> {
    const old = this.transport;
    this.transport = undefined; // what it still says is of no interest
    this.failPending(this.error('closed', 'was started anew'));
    await old?.close();
    if (this.isClosed) throw this.error('closed', 'was closed by us'); // meanwhile, or before: that is for good
    this.server = this.ended = undefined;
    await (this.connecting = this.open());
  }

  private async open(): Promise<void> {
    const { maxLineBytes, transports } = this.options;
    const stdio: TransportFactory = (...given) => new StdioTransport(...given);
    const known = new Map(Object.entries({ stdio, ...transports }));
    try {
      const problem = problemWithType(this.config, transports);
      if (problem) throw this.error('config', problem);
      const transport = known.get(`${this.config.type ?? 'stdio'}`)!(this.serverName, this.config, maxLineBytes);
      this.transport = transport;
      await transport.start({
        message: (message) => this.transport === transport && this.receive(message),
        closed: (why) => this.transport === transport && this.failAll(why),
      });
    } catch (error) {
      this.failAll(error instanceof McpError ? error : this.error('start', `could not be started: ${textOf(error)}`));
      throw this.ended; // the transport's own account, if it gave one, is better than the error
    }
  }

  async close(): Promise<void> {
    this.isClosed = true;
    try {
      this.failAll(this.error('closed', 'was closed by us'));
    } finally {
      await this.transport?.close(); // also when an observer throws
    }
  }

  /** Sends a request and waits for its answer. The promise settles once, whatever the server does. */
  request(method: string, params?: Json, options: CallOptions = {}): Promise<Json> {
    return this.ask({ method, params, options });
  }

  notify(method: string, params?: Json): Promise<void> { return this.send({ jsonrpc: '2.0', method, params }); }

  private async send(message: Message, headers?: Record<string, string>): Promise<void> {
    if (this.ended) throw this.ended;
    if (!this.transport) throw this.error('closed', 'is not connected; call connect() first');
    this.options.onWire?.('out', message, this.serverName);
    await this.transport.send(message, headers);
  }

  private exchange(call: Call): Promise<Json> {
    return new Promise((resolve, reject) => {
      const { timeoutMs = this.options.callTimeoutMs, signal } = call.options;
      if (signal?.aborted) return reject(this.error('aborted', `was not asked: ${call.method} was cancelled before`));
      const id = this.nextId++;
      const startedAt = now();
      const waiter: Waiter = {
        call,
        resolve,
        reject,
        startedAt,
        endsAt: startedAt + timeoutMs,
      };
      if (signal) {
        setMaxListeners(0, signal); // one signal may end any number of calls
        waiter.onAbort = () => this.cancel(id, this.error('aborted', `was told to stop: ${call.method} was cancelled`));
        signal.addEventListener('abort', waiter.onAbort);
      }
      this.pending.set(id, waiter);
      this.setAlarm(waiter.endsAt);
      let { params } = call;
      const { headers, onProgress } = call.options;
      if (onProgress) params = { ...params, _meta: { ...(params?._meta as Json), progressToken: id } };
      this.send({ jsonrpc: '2.0', id, method: call.method, params }, headers).catch((error) => this.fail(id, error));
    });
  }

  /** The only way out of `pending`. Whoever takes a waiter settles it, so nothing settles twice. */
  private take(id: unknown): Waiter | undefined {
    const waiter = this.pending.get(id);
    this.pending.delete(id);
    if (this.pending.size === 0) this.stopAlarm();
    if (waiter?.onAbort) waiter.call.options.signal?.removeEventListener('abort', waiter.onAbort);
    return waiter;
  }

  private fail(id: unknown, why: Error): void { this.take(id)?.reject(why); }

  /** Nobody may wait for the dead: every call that waits learns why, and so does every later one. */
  private failAll(why: Error): void {
    if (this.ended) return;
    this.ended = why;
    this.failPending(why);
    this.options.onClosed?.(why);
  }

  private failPending(why: Error): void {
    for (const id of this.pending.keys()) this.fail(id, why);
  }

  /** One timer for all calls: it rings for the one that ends first, and is then set for the next. */
  private setAlarm(endsAt: number): void {
    if (this.alarmAt <= endsAt) return;
    this.stopAlarm();
    this.alarmAt = endsAt;
    this.alarm = setTimeout(() => this.ring(), Math.min(endsAt - now(), MAX_TIMER_MS));
  }

  private stopAlarm(): void {
    clearTimeout(this.alarm);
    this.alarmAt = Infinity;
  }

  private ring(): void {
    this.alarmAt = Infinity;
    for (const [id, { call, startedAt, endsAt }] of this.pending) {
      if (endsAt > now()) this.setAlarm(endsAt);
      else {
        const waited = `${((now() - startedAt) / 1000).toFixed(1)} s`;
        const hint = call.method === 'initialize' ? ' If it needs longer to start, set MCP_TIMEOUT (in ms).' : '';
        const words = hint + (this.transport?.lastWords?.() ?? '');
        this.cancel(id as number, this.error('timeout', `did not answer ${call.method} within ${waited}.${words}`));
      }
    }
  }

  /** We stop waiting, and say so: the server may then stop working. Only what opens a talk must not be cancelled. */
  private cancel(id: number, why: McpError): void {
    const isOpening = /^(initialize|server\/discover)$/.test(this.pending.get(id)?.call.method ?? '');
    this.fail(id, why);
    this.cancelled.add(id); // its answer may be on its way, and is no mistake of the server
    if (this.cancelled.size > MAX_UNANSWERED) this.cancelled.delete(this.cancelled.values().next().value!);
    if (!isOpening) this.notify('notifications/cancelled', { requestId: id, reason: why.kind }).catch(() => {});
  }

  private hearProgress(params: Json): unknown {
    const waiter = this.pending.get(params.progressToken);
    if (!waiter?.call.options.onProgress) return undefined;
    const { timeoutMs = this.options.callTimeoutMs, onProgress } = waiter.call.options;
    // Later than before, so the alarm can stay: it will ring too early, and set itself anew.
    waiter.endsAt = Math.min(now() + timeoutMs, waiter.startedAt + Math.max(timeoutMs, this.options.maxCallMs));
    return onProgress(params); // to `serve`, which reports it if it fails
  }

  // What comes in is checked here, at the door: an odd shape is an error for one call, never a crash.

  private receive(message: unknown): void {
    if (this.ended) return;
    this.options.onWire?.('in', message, this.serverName);
    // One revision has batches, and until the handshake is done it may be that one.
    const mayBatch = !this.server || this.server.protocolVersion === '2025-03-26';
    if (mayBatch && Array.isArray(message)) return message.forEach((each) => this.receiveOne(each));
    this.receiveOne(message);
  }

  private receiveOne(message: unknown): void {
    const { jsonrpc, id, method, params } = asObject(message);
    // `method` tells a request from an answer. The id does not: servers count from 1 too.
    if (jsonrpc === '2.0' && typeof method === 'string') return void this.serve(method, asObject(params), id as Id);
    if (method === undefined && this.pending.has(id)) return this.settle(this.take(id)!, message as Json);
    if (method === undefined && this.cancelled.delete(id)) return;
    if (jsonrpc === '2.0') this.warn('stray', `sent an answer that nobody waits for: ${excerpt(message)}`);
    else this.warn('noise', `sends other things than messages: ${excerpt(message)}`);
  }

  private settle({ call, resolve, reject }: Waiter, { jsonrpc, result = null, error = null }: Json): void {
    const odd = (what: string) => reject(this.error('protocol', `answered ${call.method} with ${what}`));
    if (jsonrpc !== '2.0') return odd('something that is not JSON-RPC 2.0');
    if (result === null && error === null) return odd('neither result nor error');
    if (result !== null && error !== null) return odd('a result and an error');
    if (isObject(result)) return resolve(result);
    if (error === null) return odd(`a result that is no object: ${excerpt(result)}`);
    const { code, message, data } = asObject(error);
    const number = typeof code === 'number' ? code : -32603;
    const words = typeof message === 'string' ? message.slice(0, MAX_REFUSAL) : excerpt(error);
    reject(new RpcError(number, `MCP server "${this.serverName}" refused ${call.method}: ${words} (${number})`, data));
  }

  /** What our handler for this method says. */
  async handle(method: string, params: Json): Promise<unknown> {
    const handler = this.handlers.get(method);
    if (!handler) throw new RpcError(-32601, `Method not found: ${method}`);
    return (await handler(params, this)) ?? {};
  }

  /** Calls the handler. A request (it has an id) gets exactly one answer; to a notification there is none. */
  private async serve(method: string, params: Json, id: Id | null = null): Promise<void> {
    const handler = this.handlers.get(method);
    const isRequest = id !== null;
    // Since 2026 servers ask inside their results, and must not send requests; we must not answer any.
    const mayAsk = !this.server || REVISIONS.includes(this.server.protocolVersion);
    if (isRequest && !mayAsk) return this.warn('asks', `sent a request, which its revision does not allow: ${method}`);
    const isFlood = isRequest && this.unanswered >= MAX_UNANSWERED;
    if (isFlood) return this.warn('flood', 'asks faster than it reads our answers');
    if (isRequest) this.unanswered++;
    try {
      const result = isRequest || handler ? await this.handle(method, params) : {};
      if (isRequest) await this.send({ jsonrpc: '2.0', id, result });
    } catch (error) {
      const { code, data } = error instanceof RpcError ? error : { code: -32603, data: undefined };
      const refusal = { code, message: textOf(error), data };
      if (isRequest) await this.send({ jsonrpc: '2.0', id, error: refusal }).catch(() => {}); // it may be gone
      else this.warn(method, `sent ${method}, and our handler failed: ${textOf(error)}`);
    }
    if (isRequest) this.unanswered--;
  }

  async initialize(): Promise<ServerDescription> {
    try {
      return (this.server = await (this.options.handshake ?? shakeHands)(this));
    } catch (error) {
      this.failAll(error as Error); // without a handshake there is nothing to talk about
      void this.transport?.close();
      throw error;
    }
  }

  async listTools(): Promise<Tool[]> {
    if (this.server?.capabilities && !this.server.capabilities.tools) return []; // it said it has none: do not ask
    const deadline = now() + this.options.handshakeTimeoutMs;
    const tools = new Map<unknown, Tool>();
    const cursors = new Set<unknown>();
    const leftOut: string[] = [];
    let params: Json | undefined;
    while (cursors.size < MAX_PAGES) {
      const page = await this.request('tools/list', params, { timeoutMs: deadline - now() }).catch((error) => {
        const isCutShort = error instanceof McpError && error.kind === 'timeout' && cursors.size > 0;
        throw isCutShort ? this.error('timeout', `was too slow with its list of tools: ${cursors.size} pages came`) : error;
      });
      if (!Array.isArray(page.tools)) throw this.error('protocol', `answered tools/list with ${excerpt(page)}`);
      for (const tool of page.tools) {
        const problem = tools.has(tool?.name) ? 'its name is taken' : problemWithTool(tool);
        if (problem) leftOut.push(`${excerpt(tool)}: ${problem}`);
        else tools.set(tool.name, tool.inputSchema ? tool : { ...tool, inputSchema: { type: 'object' } });
      }
      const { nextCursor = null } = page; // an empty string is a cursor like any other
      if (nextCursor === null) {
        if (leftOut.length > 0) this.warn('tools', `has tools that we leave out: ${leftOut.slice(0, 20).join('; ')}`);
        return [...tools.values()];
      }
      if (cursors.has(nextCursor)) throw this.error('protocol', `repeats the cursor ${excerpt(nextCursor)}`);
      cursors.add(nextCursor);
      params = { cursor: nextCursor };
    }
    throw this.error('limit', `has more than ${MAX_PAGES} pages of tools`);
  }

  async callTool(name: string, args: Json = {}, options?: CallOptions): Promise<ToolResult> {
    const result = await this.request('tools/call', { name, arguments: args }, options);
    const { toolResult, isError } = result; // toolResult: so answered the servers of 2024
    const { structuredContent = toolResult } = result;
    const content = result.content ?? [];
    if (!Array.isArray(content)) throw this.error('protocol', `answered tools/call with content ${excerpt(content)}`);
    const text = content.length > 0 ? blocksToText(content) : JSON.stringify(structuredContent) ?? '';
    // A tool that failed has still answered, and the model must read why: a result, not an exception.
    const failed = isError === true || isError === 'true';
    return { text, content, isError: failed, ...(structuredContent !== undefined && { structuredContent }) };
  }

  error(kind: ErrorKind, what: string): McpError {
    return new McpError(kind, `MCP server "${this.serverName}" ${what}`);
  }

  warn(kind: string, what: string): void {
    if (this.warnings.has(kind)) return;
    this.warnings.set(kind, `MCP server "${this.serverName}" ${what}`);
    this.options.onWarning?.(this.warnings.get(kind)!);
  }
}

/** How revisions up to 2025-11-25 begin. A later one replaces this by the option `handshake`. */
export async function shakeHands(connection: McpConnection, timeoutMs?: number): Promise<ServerDescription> {
  const { capabilities: ours = {}, handshakeTimeoutMs } = connection.options;
  const hello = { protocolVersion: REVISIONS[0], capabilities: ours, clientInfo: CLIENT_INFO };
  const answer = await connection.request('initialize', hello, { timeoutMs: timeoutMs ?? handshakeTimeoutMs });
  const { protocolVersion: theirs, capabilities, serverInfo, instructions } = answer;
  if (typeof theirs !== 'string' || !REVISIONS.includes(theirs))
    throw connection.error('protocol', `speaks revision ${excerpt(theirs)}, and we speak ${REVISIONS.join(', ')}`);
  connection.notify('notifications/initialized').catch(() => {}); // not awaited: it may never read on
  return {
    protocolVersion: theirs,
    ...(isObject(capabilities) && { capabilities }),
    ...(isObject(serverInfo) && { serverInfo }),
    ...(typeof instructions === 'string' && { instructions }),
  };
}

function isPrintable(name: string, maxLength: number): boolean {
  return name !== '' && name.length <= maxLength && !/[\x00-\x1f\x7f-\x9f]/.test(name);
}

function problemWithTool(tool: unknown): string | undefined {
  if (!isObject(tool)) return 'it is not an object';
  const { name, description, inputSchema } = tool;
  if (typeof name !== 'string' || !isPrintable(name, 256)) return 'its name is not 1 to 256 printable characters';
  if (typeof (description ?? '') !== 'string') return 'its description is not text';
  return isObject(inputSchema ?? {}) ? undefined : 'its inputSchema is not an object';
}

/** A foreign value that should be text. Not `${value}`: it may be an object whose toString is no function. */
export const show = (value: unknown) => (typeof value === 'string' ? value : excerpt(value));
const bytes = (base64: unknown) => `${Buffer.byteLength(show(base64 ?? ''), 'base64')} bytes`;

/** What a tool's blocks say in words: text as it is, everything else by name and size. */
export function blocksToText(content: unknown[]): string {
  const texts = content.map((block) => {
    const { type, text, data, mimeType, name, uri, resource } = asObject(block);
    const inner = asObject(resource);
    if (type === 'text' && typeof text === 'string') return text;
    if (type === 'image' || type === 'audio') return `[${type}: ${show(mimeType)}, ${bytes(data)}]`;
    if (type === 'resource_link') return `[link: ${show(name)} ${show(uri)}]`;
    if (type === 'resource' && typeof inner.text === 'string') return inner.text;
    if (type === 'resource') return `[resource: ${show(inner.uri)}, ${show(inner.mimeType)}, ${bytes(inner.blob)}]`;
    return `[a block that we cannot read: ${excerpt(block)}]`;
  });
  return texts.join('\n');
}

export function excerpt(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  // Through a buffer, because a slice would keep the whole text in memory.
  return text.length > 200 ? `${Buffer.from(text.slice(0, 200))}…` : text;
}

// ─── Configuration ────────────────────────────────────────────────────────────────────────────────────────────

/** A server as a file describes it, every ${VAR} still in place. `shadows` is the file whose entry it replaces. */
export type ServerEntry = { name: string; config: Json; file: string; scope: 'user' | 'project'; shadows?: string };

const MAX_CONFIG_BYTES = 2 ** 20;
const MODEL_KEYS = ['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN', 'OPENAI_API_KEY'];

/** Reads three files; of two entries with one name the later wins. A broken file is reported, the others count. */
export function loadEntries(home: string, cwd: string, report: (problem: string) => void): Map<string, ServerEntry> {
  const entries = new Map<string, ServerEntry>();
  const read = (scope: ServerEntry['scope'], file: string, mayBeFlat = false) => {
    try {
      for (const [name, config] of Object.entries(readServers(file, mayBeFlat)))
        entries.set(name, { name, config: config as Json, file, scope, shadows: entries.get(name)?.file });
    } catch (error) {
      report(`${file} is ignored: ${textOf(error)}`);
    }
  };
  if (isAbsolute(home)) read('user', join(home, '.claude', 'settings.json')); // else it might be the project's
  const isHome = existsSync(home) && existsSync(cwd) && realpathSync(home) === realpathSync(cwd);
  if (!isHome) read('project', join(cwd, '.claude', 'settings.json'));
  read('project', join(cwd, '.mcp.json'), true);
  return entries;
}

/** In a settings file only `mcpServers` counts, for it holds much else; .mcp.json may also be the bare mapping. */
function readServers(file: string, mayBeFlat: boolean): Json {
  const root = readJsonFile(file) ?? {};
  const flat = () => Object.fromEntries(Object.entries(root).filter(([, value]) => isObject(value)));
  const servers = Object.hasOwn(root, 'mcpServers') ? root.mcpServers : mayBeFlat ? flat() : {};
  if (!isObject(servers)) throw new Error('its "mcpServers" is not an object');
  return servers;
}

/** The object in a file that a person wrote; nothing if there is no such file. */
export function readJsonFile(file: string): Json | undefined {
  const stat = statIfThere(file);
  if (!stat) return undefined;
  if (!stat.isFile()) throw new Error('it is not a file'); // a FIFO would keep us waiting, /dev/zero has no end
  if (stat.size === 0) throw new Error('it is empty'); // so say the files of /proc, and some of them never end
  if (stat.size > MAX_CONFIG_BYTES) throw new Error(`it has more than ${MAX_CONFIG_BYTES} bytes`);
  const text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file)); // drops a byte order mark
  // People comment such files. Strings are matched too, and put back, so that "http://…" stays whole. What is not
  // closed matches to the end: else the search would begin again at each of its characters.
  const parts = /"(?:\\.|[^"\\])*(?:"|\\?$)|\/\/.*|\/\*[^]*?(?:\*\/|$)/g;
  const json = text.replace(parts, (found) => (found[0] === '"' ? found : '')).trim();
  if (isTooDeep(json)) throw new Error(`it has more than ${MAX_DEPTH} levels`);
  const root: unknown = JSON.parse(json);
  if (!isObject(root)) throw new Error('it holds no JSON object');
  return root;
}

function statIfThere(file: string) {
  try {
    return statSync(file, { throwIfNoEntry: false });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOTDIR') throw error; // that means it is not there, too
    return undefined;
  }
}

export function problemWithConfig(config: unknown): string | undefined {
  if (!isObject(config)) return 'its entry is not an object';
  const { type = 'stdio', url, command, args = [], env = {}, cwd = '' } = config;
  const isText = (value: unknown) => typeof value === 'string' && !value.includes('\0');
  if (type !== 'stdio') return typeof type === 'string' ? undefined : '"type" is not a string';
  if (url && !command) return 'it has a "url" but no "type", such as "type": "http"';
  if (!isText(command) || command === '') return '"command" is missing or is not a string';
  if (!Array.isArray(args) || !args.every(isText)) return '"args" is not a list of strings';
  if (!isObject(env) || !Object.entries(env).flat().every(isText)) return '"env" is not a mapping of strings';
  return isText(cwd) ? undefined : '"cwd" is not a string';
}

function problemWithType({ type = 'stdio' }: Json, transports: ConnectionOptions['transports'] = {}): string | undefined {
  const known = ['stdio', ...Object.keys(transports)];
  return known.includes(`${type}`) ? undefined : `is of type "${type}", but we have transports only for ${known}`;
}

function configError({ name, file }: ServerEntry, problem: string): McpError {
  return new McpError('config', `MCP server ${excerpt(name)} in ${file}: ${problem}`);
}

/** The configuration with a value for every ${VAR} and ${VAR:-default}. A project's file cannot read a model's key. */
export function fillIn(entry: ServerEntry, env = process.env): Json {
  const fill = (text: string) =>
    text.replace(/\$\{(\w+)(?::-([^}]*))?\}/g, (_, name: string, fallback?: string) => {
      const isForbidden = entry.scope === 'project' && MODEL_KEYS.includes(name.toUpperCase());
      const mayRead = Object.hasOwn(env, name) && !isForbidden;
      const why = isForbidden ? 'is the key of a model, which a project cannot read' : 'is not set';
      if (!mayRead && fallback === undefined) throw configError(entry, `\${${name}} ${why}`);
      return (mayRead && env[name]) || (fallback ?? '');
    });
  // Through JSON and back: the reviver meets every string of the entry, however deep.
  return JSON.parse(JSON.stringify(entry.config), (_, value) => (typeof value === 'string' ? fill(value) : value));
}

// ─── Names ────────────────────────────────────────────────────────────────────────────────────────────────────

/** The name under which a model sees a tool: 64 of A–Z a–z 0–9 _ - at most. A label: nothing is read out of it.
 *  The server's part has no "__" inside and no "_" at its end, so a + b__c and a__b + c differ. Where a hash happens
 *  to meet a name, the manager leaves out the second. */
export function toolLabel(serverName: string, toolName: string): string {
  const prefix = serverPrefix(serverName);
  return prefix + fit(toolName, /^[A-Za-z0-9_-]+$/, 64 - prefix.length);
}

function serverPrefix(serverName: string): string {
  return `mcp__${fit(serverName, /^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$/, 30)}__`;
}

function fit(name: string, allowed: RegExp, length: number): string {
  if (allowed.test(name) && name.length <= length) return name;
  let hash = 2166136261; // FNV-1a: keeps x.y and x_y apart
  for (const char of name) hash = Math.imul(hash ^ char.codePointAt(0)!, 16777619) >>> 0;
  const suffix = `-${hash.toString(36)}`;
  return name.replace(/[^A-Za-z0-9-]+/g, '_').slice(0, length - suffix.length) + suffix;
}

// ─── Many servers ─────────────────────────────────────────────────────────────────────────────────────────────

export type Approval = boolean | 'disabled';
export interface ManagerOptions extends ConnectionOptions {
  approve?: (entry: ServerEntry) => Approval | Promise<Approval>; // may it start? By default the user's own may
  load?: (report: (problem: string) => void) => Map<string, ServerEntry>; // instead of the three files
  onState?: (name: string, state: ServerState, reason?: string) => void;
  concurrency?: number; // how many servers start side by side
  home?: string;
  cwd?: string;
}

/** `pending`: nobody has approved it. `needs-auth`: it wants a login. */
export type ServerState = 'connecting' | 'connected' | 'pending' | 'disabled' | 'needs-auth' | 'failed' | 'closed';
type Server = {
  entry: ServerEntry;
  state: ServerState;
  reason?: string;
  startMs?: number;
  connection?: McpConnection;
  tools: Tool[];
  listing?: Promise<void>;
  refresh?: NodeJS.Timeout;
};
export type ServerStatus = ReturnType<McpManager['status']>[number];

const REFRESH_DELAY_MS = 100;

export class McpManager {
  readonly options: ManagerOptions;
  readonly warnings: string[] = []; // about the files; what concerns a server is in its status
  private servers = new Map<string, Server>();
  private table = new Map<string, { server: Server; tool: Tool }>();
  private loading?: Promise<void>;

  constructor(options: ManagerOptions = {}) { this.options = options; }

  /** Connects to all configured servers, once, however often and from wherever it is called. */
  loadAndConnect(): Promise<void> { return (this.loading ??= this.connectAll()); }

  private async connectAll(): Promise<void> {
    const { home = homedir(), cwd = process.cwd(), concurrency = 32 } = this.options;
    this.warnings.length = 0;
    const { load = (report) => loadEntries(home, cwd, report) } = this.options;
    const entries = load((problem) => {
      this.warnings.push(problem);
      this.options.onWarning?.(problem);
    });
    this.servers = new Map([...entries].map(([name, entry]) => [name, { entry, state: 'connecting', tools: [] }]));
    const queue = this.servers.values(); // one queue, and several workers who empty it
    const work = async () => {
      for (const server of queue) await this.connectOne(server);
    };
    await Promise.all(Array.from({ length: Math.max(1, Math.min(concurrency, entries.size)) || 1 }, work));
  }

  private async connectOne(server: Server): Promise<void> {
    const { entry } = server;
    const { approve = (asked) => asked.scope === 'user', handlers = {} } = this.options;
    try {
      if (server.state === 'closed') return; // disconnectAll came while it was in the queue
      const { name, config } = entry;
      const { transports } = this.options;
      const problem = this.problemWithName(name) ?? problemWithConfig(config) ?? problemWithType(config, transports);
      if (problem) throw configError(entry, problem);
      const approval = await approve(structuredClone(entry)); // a copy: what was shown is what starts
      if (approval === 'disabled') return this.set(server, 'disabled');
      const question = `${entry.file} asks to start it, and nobody has approved that`;
      if (approval !== true) return this.set(server, 'pending', question);
      if (server.state !== 'connecting') return; // or while somebody was asked
      const startedAt = now();
      const changed = 'notifications/tools/list_changed';
      const connection = new McpConnection(entry.name, fillIn(entry), {
        ...this.options,
        handlers: { ...handlers, [changed]: (...told) => (this.refreshSoon(server), handlers[changed]?.(...told)) },
        onClosed: (why) => (this.fail(server, why), this.options.onClosed?.(why)),
      });
      server.connection = connection;
      await connection.connect();
      await connection.initialize();
      const first = this.list(server);
      server.listing = first.catch(() => {});
      await first;
      server.startMs = Math.round(now() - startedAt);
      if (server.state === 'connecting') this.set(server, 'connected'); // else it died with its last word
    } catch (error) {
      void server.connection?.close();
      this.fail(server, error);
    }
  }

  private fail(server: Server, why: unknown): void {
    const isLogin = why instanceof McpError && why.kind === 'auth';
    this.set(server, isLogin ? 'needs-auth' : 'failed', textOf(why));
  }

  private set(server: Server, state: ServerState, reason?: string): void {
    if (server.state === 'closed' || (server.state === state && server.reason === reason)) return;
    Object.assign(server, { state, reason });
    this.options.onState?.(server.entry.name, state, reason);
  }

  /** Starts a server once more, whatever became of it. */
  async reconnect(name: string): Promise<void> { await this.connectOne(await this.replace(name, 'connecting')); }

  async disable(name: string): Promise<void> { await this.replace(name, 'disabled'); }

  private async replace(name: string, state: ServerState): Promise<Server> {
    const old = this.servers.get(name);
    if (!old) throw new McpError('config', `no MCP server is called ${excerpt(name)}`);
    const server: Server = { entry: old.entry, state, tools: [] };
    old.state = 'closed'; // whatever is still under way with it is of no interest now
    this.servers.set(name, server);
    this.options.onState?.(name, state);
    this.index();
    await old.connection?.close();
    return server;
  }

  /** A name must not be a path, nor lead to the labels of a server that was named before. */
  private problemWithName(name: string): string | undefined {
    if (!isPrintable(name, 128) || /[/\\]/.test(name)) return 'this is not fit for a name';
    const first = [...this.servers.keys()].find((other) => serverPrefix(other) === serverPrefix(name));
    return first === name ? undefined : `its tools would be called like those of ${excerpt(first)}`;
  }

  private async list(server: Server): Promise<void> {
    server.tools = await server.connection!.listTools();
    this.index();
    const wasLost = server.state === 'failed' || server.state === 'needs-auth';
    if (wasLost && !server.connection!.ended) this.set(server, 'connected'); // it was started again
  }

  /** Servers may announce many changes at once, or one in answer to every look. So look a little later, and only
   *  when the look before is over: a list that comes late must not replace a newer one. */
  private refreshSoon(server: Server): void {
    const { connection } = server;
    if (!connection?.server) return; // before the handshake nothing may be asked
    server.refresh ??= setTimeout(async () => {
      await server.listing;
      server.refresh = undefined; // what is announced from now on needs another look
      server.listing = this.list(server).catch((error) => connection.warn('refresh', textOf(error)));
    }, REFRESH_DELAY_MS).unref();
  }

  /** Rebuilds the table in the order of the files, whoever was the first to connect. A server that died keeps its
   *  rows: a call to one tells why it died. */
  private index(): void {
    this.table = new Map();
    for (const server of this.servers.values())
      for (const tool of server.tools) {
        const label = toolLabel(server.entry.name, tool.name);
        if (!this.table.has(label)) this.table.set(label, { server, tool });
        else server.connection!.warn('label', `has a tool that we leave out: another is called ${label}`);
      }
  }

  getToolDefinitions() {
    return [...this.table].map(([name, { server, tool }]) => ({
      name,
      description: tool.description ?? '',
      inputSchema: tool.inputSchema,
      server: server.entry.name,
      tool,
    }));
  }

  isMcpTool(name: string): boolean { return this.table.has(name); }

  async callTool(prefixedName: string, args?: Json, options?: CallOptions): Promise<ToolResult> {
    const row = this.table.get(prefixedName);
    if (!row) throw new McpError('unknown-tool', `no MCP server has a tool called ${excerpt(prefixedName)}`);
    const calling = row.server.connection!.callTool(row.tool.name, args, options);
    calling.then(() => this.noteLogin(row.server), (why) => this.noteLogin(row.server, why));
    return calling;
  }

  /** A login can end at any time, and begin again: what a call meets is the state. */
  private noteLogin(server: Server, why?: unknown): void {
    const { kind, status } = why instanceof McpError ? (why as McpError & { status?: number }) : {};
    if (kind === 'auth' && status !== 403) this.fail(server, why); // 403: it knows us, and only this call is too much
    else if (why === undefined && server.state === 'needs-auth') this.set(server, 'connected');
  }

  status() {
    return [...this.servers.values()].map(({ entry, state, reason, startMs, tools, connection }) => {
      const { config, ...origin } = entry;
      const warnings = [...(connection?.warnings.values() ?? [])];
      return { ...connection?.server, ...origin, state, reason, startMs, tools: tools.length, warnings };
    });
  }

  /** Closes everything side by side, also what is still starting. Afterwards loadAndConnect begins anew. */
  async disconnectAll(): Promise<void> {
    this.loading = undefined;
    this.table = new Map();
    const servers = [...this.servers.values()];
    for (const server of servers) Object.assign(server, { state: 'closed', reason: undefined });
    await Promise.all(servers.map((server) => server.connection?.close()));
  }
}
