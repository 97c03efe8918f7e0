// mcp.ts: a Model Context Protocol client by hand. It imports Node's own modules and nothing else.
//
//   agent ── McpManager ──┬── McpConnection ── Transport ── server
//                         └── McpConnection ── Transport ── server
//
// A Transport knows bytes, a McpConnection knows ids, the McpManager knows names.
// Two seams take everything else: transports (below a connection) and extensions (around it).
// Read it from top to bottom: messages, the pipe, one server, configuration, names, many servers.

import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess, ChildProcessWithoutNullStreams as Child } from 'node:child_process';
import { once, setMaxListeners } from 'node:events';
import {
  accessSync, constants, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, realpathSync,
  renameSync, statSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { basename, delimiter, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { isDeepStrictEqual } from 'node:util';

// ─── Messages ───────────────────────────────────────────────────────────────────────────────────

export type Json = { [key: string]: unknown };
export type Id = number | string;
/** A request has `method` and `id`, a notification only `method`; an answer has `id` and either
 *  `result` or `error`. */
export type Message = {
  jsonrpc: '2.0';
  id?: Id;
  method?: string;
  params?: Json;
  result?: unknown;
  error?: Json;
};

export const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
export const asObject = (value: unknown): Json => (isObject(value) ? value : {});
/** Milliseconds on a clock that never jumps, unlike Date.now(). */
export const now = () => performance.now();
/** What an error says. Anything can be thrown, even a string. */
export const textOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

export type ErrorKind =
  | 'config' // the entry cannot be used as it is
  | 'start' // it could not be started
  | 'closed' // it ended, or we closed it
  | 'timeout'
  | 'aborted' // by the caller
  | 'protocol' // it does not keep to the specification
  | 'limit' // it sent too much
  | 'unknown-tool'
  | 'unreachable' // the request did not arrive
  | 'lost' // the request may have arrived; its answer did not
  | 'expired' // the session is over
  | 'auth'; // it wants a login, or forbids this call

/** Something failed on our side of the wire. `kind` is for programs, the message is for people. */
export class McpError extends Error {
  override name = 'McpError';
  kind: ErrorKind;
  status?: number; // of HTTP, where there was one
  constructor(kind: ErrorKind, message: string, status?: number) {
    super(message);
    this.kind = kind;
    this.status = status;
  }
}

/** The server refused. A class of its own: a time-out of ours must not look like an answer. */
export class RpcError extends Error {
  override name = 'RpcError';
  code: number;
  data: unknown;
  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

// ─── The pipe (seam 1: transports) ──────────────────────────────────────────────────────────────

/** Moves whole messages and does not know what they mean. */
export interface Transport {
  /** Resolves when messages can be sent; rejects if that can never happen. */
  start(events: TransportEvents): Promise<void>;
  /** Resolves once the message is handed over, so that awaiting it respects a slow reader. Rejects
   *  if it is lost, unless `closed` reports it. `headers` are for transports that have some. */
  send(message: Message, headers?: Record<string, string>): Promise<void>;
  /** Says goodbye; resolves when no process or socket is left. May be called twice. */
  close(): Promise<void>;
  /** What may explain a silence, such as the last lines of stderr. */
  lastWords?(): string;
  /** Each request has a stream, and headers, of its own; else all share one stream. */
  readonly hasStreamPerRequest?: boolean;
}
export interface TransportEvents {
  message(message: unknown): void;
  /** Something came that is not passed on; the connection lives. `id`: what it answered. */
  dropped?(why: Error, id?: Id): void;
  stderr?(text: string): void; // a server on this machine wrote it beside the wire
  closed(why: Error): void; // once, and always as the last event
}
/** Only checks the configuration: `mcp add` makes a transport just to check an entry. */
export type TransportFactory = (
  serverName: string,
  config: Json,
  maxMessageBytes: number,
) => Transport;

const LF = 0x0a;
const MAX_DEPTH = 500;
const MAX_VALUES = 1_000_000; // each may cost JSON.parse 200 bytes and some microseconds
export const MAX_LINE_BYTES = 2 ** 28; // a string cannot hold much more
const WRITE_SIZE = 2 ** 20; // characters
export const MAX_UNSENT = 2 ** 26; // characters that wait for a server that does not read
const STDERR_TAIL = 16_384; // characters
const LAST_LINES = 5;
const LAST_ANSWERS_MS = 250;
const MAX_LINE_SHOWN = 1000; // characters
const GOODBYE_STEP_MS = 1000;
const isWindows = process.platform === 'win32';

// A child gets these of our variables. A server also gets those that its `env` names, but never a
// key that just happens to be set.
const SAFE_ENV = /^(HOME|LOGNAME|PATH|SHELL|TERM|USER|LANG|LC_\w+|TMPDIR|TZ)$/;
const SAFE_ENV_OF_WINDOWS = new RegExp(
  '^((LOCAL)?APPDATA|COMSPEC|HOME(DRIVE|PATH)|PATH(EXT)?|PROCESSOR_\\w+|PROGRAM\\w+' +
    '|SYSTEM(DRIVE|ROOT)|TE?MP|USER\\w+)$',
  'i',
);
// A server also gets these, to reach the network from behind a company's proxy.
const NETWORK_ENV = /^((HTTPS?|ALL|NO)_PROXY|NODE_EXTRA_CA_CERTS|SSL_CERT_(FILE|DIR))$/i;

export type StdioConfig = {
  command: string;
  args?: string[];
  env?: Record<string, string>;
  cwd?: string;
};

/** A server that is our child process: one message per line on its stdin and its stdout. stderr is
 *  not the wire. */
export class StdioTransport implements Transport {
  private who: string;
  private config: StdioConfig;
  private maxLineBytes: number;
  private child!: Child;
  private events!: TransportEvents;
  private lines = new LineBuffer();
  private outbox: string[] = []; // lines for the next write
  private unsent = 0; // characters in the outbox, and in the write that is under way
  private nextWrite?: Promise<void>;
  private lastWrite?: Promise<void>;
  private stderrTail = '';
  private closing?: Promise<void>;
  private mark = newMark();
  private env?: NodeJS.ProcessEnv;

  constructor(serverName: string, config: Json, maxLineBytes: number) {
    const problem = problemWithConfig(config);
    if (problem) throw new McpError('config', `MCP server "${serverName}": ${problem}`);
    this.config = config as StdioConfig;
    this.who = `MCP server "${serverName}" (${this.config.command})`;
    this.maxLineBytes = Math.min(maxLineBytes, MAX_LINE_BYTES);
  }

  async start(events: TransportEvents): Promise<void> {
    this.events = events;
    const { args = [], cwd } = this.config;
    // Never through a shell: a configuration is data, not a script.
    const child = spawn(this.program(), args, {
      cwd,
      env: this.childEnv(),
      stdio: 'pipe',
      windowsHide: true,
      // A process group of its own lets us end the server together with everything it starts.
      detached: !isWindows,
    });
    this.child = child;
    marks.set(child, this.mark);
    leaveNoOrphan(child);
    child.on('error', (error: NodeJS.ErrnoException) => {
      const kind = isShortage(error.code) ? 'unreachable' : 'start';
      this.end(kind, `could not be started: ${this.whyNoStart(error)}`);
    });
    await once(child, 'spawn'); // rejects on 'error'; the pipes may not exist before 'spawn'
    child.stdout.on('data', (chunk: Buffer) => this.read(chunk));
    // A pipe that is not read fills up, and the server blocks in the middle of a log line.
    child.stderr.on('data', (chunk: Buffer) => {
      this.stderrTail = (this.stderrTail + chunk).slice(-STDERR_TAIL);
      this.events.stderr?.(`${chunk}`);
    });
    this.watchForEnd(child);
  }

  private watchForEnd(child: Child): void {
    const end = () => {
      if (!this.closing) this.end();
    };
    // The last answers may still be in the pipes, so wait a moment for them. No longer: a
    // grandchild can hold the pipes open, and a server can live on without stdout.
    const endSoon = () => {
      setTimeout(() => setImmediate(end), LAST_ANSWERS_MS).unref(); // once what has come is read
    };
    // Writing to a dead server raises EPIPE here. Without a listener it would end our program.
    for (const stream of [child.stdin, child.stdout, child.stderr]) {
      stream.on('error', endSoon);
    }
    child.stdout.on('end', endSoon);
    child.on('exit', endSoon);
    child.on('close', () => this.end());
  }

  send(message: Message): Promise<void> {
    if (this.unsent > MAX_UNSENT) return Promise.reject(notReading(this.who));
    // JSON escapes the line feeds inside strings, so this one ends the message.
    const line = JSON.stringify(message) + '\n';
    this.outbox.push(line);
    this.unsent += line.length;
    if (!this.nextWrite) {
      this.nextWrite = this.writeAfter(this.lastWrite);
      this.lastWrite = this.nextWrite;
    }
    return this.nextWrite;
  }

  /** One write at a time. It takes all that was sent in one turn of the event loop, or while the
   *  write before it was under way. */
  private async writeAfter(lastWrite?: Promise<void>): Promise<void> {
    await lastWrite;
    await new Promise<void>((done) => process.nextTick(done));
    this.nextWrite = undefined;
    const lines = this.outbox.splice(0);
    while (lines.length > 0) {
      const text = takeText(lines);
      const line = escapeSeparators(text);
      await new Promise((done) => this.child.stdin.write(line, done));
      this.unsent -= text.length;
    }
  }

  private read(chunk: Buffer): void {
    chunk = this.lines.takeWhole(chunk);
    for (const line of chunk.toString().split('\n')) {
      if (isLonger(line, this.maxLineBytes)) return this.endTooLong();
      passOn(line, this.who, this.events);
    }
    if (this.lines.unreadBytes > this.maxLineBytes) this.endTooLong();
  }

  close(): Promise<void> {
    this.closing ??= this.sayGoodbye();
    return this.closing;
  }

  /** End of input, then SIGTERM, then SIGKILL to the whole group. Most exit on the first step. */
  private async sayGoodbye(): Promise<void> {
    if (!this.child?.pid || !living.has(this.child)) return; // it never ran, or is gone
    const unsent = takeText(this.outbox);
    this.child.stdin.end(escapeSeparators(unsent));
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      if (await closesWithin(GOODBYE_STEP_MS, this.child)) break;
      signalGroup(this.child, signal);
    }
    await closesWithin(GOODBYE_STEP_MS, this.child);
    this.end();
  }

  private end(kind: ErrorKind = 'closed', how?: string): void {
    if (!living.delete(this.child)) return; // report the end once
    signalGroup(this.child, 'SIGKILL'); // anything it started and left behind
    const { stdin, stdout, stderr } = this.child;
    for (const stream of [stdin, stdout, stderr]) {
      stream?.destroy();
    }
    this.child.unref();
    this.lines.clear();
    const words = `${this.who} ${how ?? this.howItEnded()}`;
    this.events.closed(new McpError(kind, words));
  }

  private endTooLong(): void {
    this.end('limit', `sent a line of more than ${this.maxLineBytes} bytes`);
  }

  private howItEnded(): string {
    const { exitCode, signalCode } = this.child;
    let how = `exited with code ${exitCode}`;
    if (exitCode === null) how = 'closed its pipes but did not exit';
    if (signalCode) how = `was ended by ${signalCode}`;
    return `${how}.${this.lastWords()}`;
  }

  private whyNoStart({ code = '', message }: NodeJS.ErrnoException): string {
    const { cwd = '' } = this.config;
    const file = this.program();
    const isPath = file !== basename(file);
    const isThere = isPath && existsSync(resolve(cwd, file));
    if (cwd && !existsSync(cwd)) return `its "cwd" ${cwd} does not exist`;
    if (isShortage(code)) return `this machine is short of files, processes or memory (${code})`;
    if (code === 'EACCES') return 'the file is not executable, or we may not run it';
    if (code === 'ENOENT' && isThere) {
      return 'the interpreter that its first line names is missing';
    }
    // On Windows npx and its like are .cmd scripts, and only cmd can start those.
    if (isWindows && (code === 'ENOENT' || code === 'EINVAL')) {
      return 'command not found; for npx write "command": "cmd", "args": ["/c", "npx", …]';
    }
    return code === 'ENOENT' ? 'command not found; is it on the PATH?' : message;
  }

  lastWords(): string {
    const written = this.stderrTail.trimEnd().split('\n');
    const lines = written.filter((line) => !NOISE.test(line));
    const last = lines.slice(-LAST_LINES);
    const cause = likelyCause(lines);
    if (cause && !last.includes(cause)) last.unshift(cause, '…');
    if (last.length === 0) return '';
    const short = last.map((line) => line.slice(0, MAX_LINE_SHOWN));
    return ` Its last words:\n  ${short.join('\n  ')}${this.hints()}`;
  }

  /** All it lacks may be a variable that we have but did not pass on. */
  private hints(): string {
    const env = this.childEnv();
    const mentioned = new Set(this.stderrTail.split(/\W+/));
    const withheld = Object.keys(process.env).filter((name) => {
      return mentioned.has(name) && !Object.hasOwn(env, name);
    });
    const hint = (name: string) =>
      `\n  (${name} was not passed on. To do so: "env": {"${name}": "\${${name}}"})`;
    return withheld.map(hint).join('');
  }

  private childEnv(): NodeJS.ProcessEnv {
    const env = { ...ourEnv(NETWORK_ENV), ...safeEnv(), ...this.config.env };
    this.env ??= withSafePath({ ...env, [MARK]: this.mark });
    return this.env;
  }

  private program(): string {
    return findCommand(this.config.command, this.childEnv());
  }
}

/** Too many files or processes are open, ours or others'. It may work a moment later. */
export function isShortage(code = ''): boolean {
  return ['EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM'].includes(code);
}

/** What any child process of ours may see. */
export function safeEnv(): NodeJS.ProcessEnv {
  return ourEnv(isWindows ? SAFE_ENV_OF_WINDOWS : SAFE_ENV);
}

function ourEnv(names: RegExp): NodeJS.ProcessEnv {
  const found = Object.entries(process.env).filter(([name, value]) => {
    // A value that begins with () is a shell function, which old versions of bash would run.
    return names.test(name) && !value?.startsWith('()');
  });
  return Object.fromEntries(found);
}

/** The same without the parts of the PATH in which a project could put a `node` of its own: those
 *  that lead into its folder, and the relative and empty ones, which mean the current folder. */
export function withSafePath(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { CLAUDE_PROJECT_DIR: project = process.cwd() } = env;
  const folders = foldersOf(project);
  const isSafe = (part: string) => isAbsolute(part) && !isWithinOne(folders, part);
  const parts = pathOf(env).filter(isSafe);
  // An empty PATH would mean the current folder, too.
  const path = parts.join(delimiter) || DEFAULT_PATH;
  const safe = { ...env, [pathName(env)]: path };
  return isWindows ? { ...safe, [NOT_FROM_HERE]: '1' } : safe;
}

const DEFAULT_PATH = isWindows ? 'C:\\Windows\\System32' : '/usr/bin:/bin';
const NOT_FROM_HERE = 'NoDefaultCurrentDirectoryInExePath'; // cmd.exe looks there first without it

/** Windows writes "Path", and of two spellings the first in the alphabet counts. */
function pathName(env: NodeJS.ProcessEnv): string {
  if (!isWindows) return 'PATH';
  const names = Object.keys(env).sort();
  return names.find((name) => name.toUpperCase() === 'PATH') ?? 'PATH';
}

const pathOf = (env: NodeJS.ProcessEnv) => (env[pathName(env)] ?? '').split(delimiter);

/** The file that a command means, on the PATH of `env`. We look for it ourselves, because Windows
 *  starts in the current folder. If there is no such file, `spawn` will not find it either. */
export function findCommand(command: string, env = withSafePath(safeEnv())): string {
  const isPath = command.includes('/') || (isWindows && command.includes('\\'));
  if (isPath) return command;
  const endings = isWindows ? ['', '.com', '.exe'] : [''];
  const names = endings.map((ending) => command + ending);
  const files = pathOf(env).flatMap((folder) => names.map((name) => join(folder, name)));
  const missing = isWindows ? files[0]! : command;
  return files.find(isProgram) ?? missing;
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** Does it lead into the project, or elsewhere into its repository? */
function isOfProject(path: string, project: string): boolean {
  return isWithinOne(foldersOf(project), path);
}

/** A folder that holds the home folder is the user's own, whatever else it is. */
function foldersOf(project: string): string[] {
  const folders = [project, ...repositoriesAround(project)];
  return folders.filter((each) => !isWithin(each, homedir()));
}

const isWithinOne = (folders: string[], path: string) =>
  folders.some((each) => isWithin(each, path));

/** Its own, and the one that it is a submodule of. */
function repositoriesAround(folder: string): string[] {
  const parent = dirname(folder);
  const above = parent === folder ? [] : repositoriesAround(parent);
  return existsSync(join(folder, '.git')) ? [folder, ...above] : above;
}

function isWithin(folder: string, path: string): boolean {
  const inner = relative(realPath(folder), realPath(path));
  const isOutside = inner === '..' || inner.startsWith(`..${sep}`);
  return !isOutside && !isAbsolute(inner);
}

/** Where a path leads through all links, also if its end does not exist. */
function realPath(path: string): string {
  const whole = resolve(path);
  const parent = dirname(whole);
  try {
    return realpathSync.native(whole);
  } catch {
    if (parent === whole) return whole;
    return join(realPath(parent), basename(whole));
  }
}

/** Takes lines for one write: at least one, and more until the write is big enough. */
function takeText(lines: string[]): string {
  let count = 0;
  let size = 0;
  while (count < lines.length && size < WRITE_SIZE) {
    size += lines[count]!.length;
    count++;
  }
  return lines.splice(0, count).join('');
}

/** The connection stays open: the server may start to read again. */
export function notReading(who: string): McpError {
  const what = `does not read what we send: more than ${MAX_UNSENT} characters wait for it`;
  return new McpError('unreachable', `${who} ${what}`);
}

/** U+2028 and U+2029 are legal in JSON, but some line readers (readline in Node 24) split there. */
export function escapeSeparators(text: string): string {
  return text.replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029');
}

/** One UTF-16 unit of a string takes one to three bytes in UTF-8. */
export function isLonger(text: string, maxBytes: number): boolean {
  return text.length * 3 > maxBytes && Buffer.byteLength(text) > maxBytes;
}

/** Passes on the message in one text, for every transport that receives text. */
export function passOn(text: string, who: string, events: TransportEvents): void {
  const trimmed = text.trim(); // no CR, no byte order mark
  if (trimmed === '') return;
  const tooMuch = tooMuchIn(trimmed);
  if (tooMuch) {
    const what = `sent a message with ${tooMuch}, which is dropped`;
    const why = new McpError('limit', `${who} ${what}`);
    return events.dropped?.(why, idOfAnswer(trimmed));
  }
  events.message(parseMessage(trimmed));
}

const VERSION_MEMBER = '(?:"jsonrpc"\\s*:\\s*"2\\.0"\\s*,\\s*)?';
const ID_MEMBER = '"id"\\s*:\\s*(\\d{1,15})';
const START_OF_ANSWER = new RegExp(
  `^\\{\\s*${VERSION_MEMBER}(?:${ID_MEMBER}\\s*,\\s*)?${VERSION_MEMBER}"(?:result|error)"`,
);
const END_OF_ANSWER = new RegExp(`${ID_MEMBER}\\s*\\}$`);

/** The call that it answers, judging by its beginning and its end: the rest is not parsed. */
function idOfAnswer(json: string): Id | undefined {
  const start = START_OF_ANSWER.exec(json.slice(0, 200));
  if (!start) return undefined;
  const end = END_OF_ANSWER.exec(json.slice(-200));
  const id = start[1] ?? end?.[1];
  return id === undefined ? undefined : Number(id);
}

/** JSON, or the text itself, which the connection reports as noise. */
export function parseMessage(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Keeps the beginning of a line until its end has come. Only LF ends a line, and in UTF-8 no other
 *  character contains that byte, so whole lines can be decoded at once. */
export class LineBuffer {
  private unread: Buffer[] = [];
  unreadBytes = 0;

  /** The whole lines in all that has come so far. */
  takeWhole(chunk: Buffer): Buffer {
    const end = chunk.lastIndexOf(LF) + 1;
    const rest = chunk.subarray(end);
    if (end === 0) {
      this.keep(rest);
      return rest.subarray(rest.length); // empty
    }
    this.unread.push(chunk.subarray(0, end));
    const [first] = this.unread;
    const whole = this.unread.length === 1 ? first! : Buffer.concat(this.unread);
    this.clear();
    this.keep(rest);
    return whole;
  }

  private keep(rest: Buffer): void {
    if (rest.length === 0) return;
    this.unread.push(rest);
    this.unreadBytes += rest.length;
    joinSmall(this.unread);
  }

  clear(): void {
    this.unread = [];
    this.unreadBytes = 0;
  }
}

const SMALL_PIECE = 2 ** 16; // bytes

/** Joins the last pieces of a list while they are small: what arrives byte by byte would take
 *  four hundred times its size in memory. A long one is never joined with a short one, so that no
 *  byte is copied often. */
export function joinSmall(pieces: Uint8Array[]): void {
  while (pieces.length > 1) {
    const [before, last] = pieces.slice(-2) as [Uint8Array, Uint8Array];
    if (before.length > last.length || last.length >= SMALL_PIECE) return;
    const joined = Buffer.concat([before, last]);
    pieces.splice(-2, 2, joined);
  }
}

/** JSON.parse needs ten seconds and gigabytes for 64 million brackets, deep or side by side, so
 *  count them first. A comma or an opening bracket comes before every value but one. */
export function tooMuchIn(json: string): string | undefined {
  if (json.length < MAX_DEPTH) return undefined;
  if (!/^\s*[[{]/.test(json)) return undefined; // a coloured line of noise has brackets too
  let depth = 0;
  let values = 0;
  for (let i = 0; i < json.length; i++) {
    const char = json[i];
    if (char === '"') i = endOfString(json, i);
    if (char === '[' || char === '{') depth++;
    if (char === ']' || char === '}') depth--;
    if (char === ',' || char === '[' || char === '{') values++;
    if (depth > MAX_DEPTH) return `more than ${MAX_DEPTH} levels`;
    if (values > MAX_VALUES) return `more than ${MAX_VALUES} values`;
  }
  return undefined;
}

/** Brackets in strings do not count. A string ends at a quote with an even number of backslashes
 *  before it. */
function endOfString(json: string, start: number): number {
  let end = json.indexOf('"', start + 1);
  while (end !== -1) {
    let backslashes = 0;
    while (json[end - 1 - backslashes] === '\\') backslashes++;
    if (backslashes % 2 === 0) return end;
    end = json.indexOf('"', end + 1);
  }
  return json.length;
}

/** Blank lines, the frames of a stack, and Node's own last line push the reason out of sight. */
const NOISE = /^\s*$|^\s+at |^Node\.js v\d/;
const NAMES_ERROR = /^\W*(\w+ )?\w*(error|exception|fatal|panic)\b/i;
const SOUNDS_BAD = /\b(missing|required|invalid|denied|cannot|unable|no such|not (found|set))\b/i;

/** The line to read first. A server may explain itself and then print a page of usage. */
function likelyCause(lines: string[]): string | undefined {
  const named = lines.findLast((line) => NAMES_ERROR.test(line));
  return named ?? lines.findLast((line) => SOUNDS_BAD.test(line));
}

/** Are its pipes closed in time? An exit is not enough: it may be a shell, and the server its
 *  child. */
function closesWithin(ms: number, child: Child): Promise<boolean> {
  if (!living.has(child)) return Promise.resolve(true);
  return new Promise((done) => {
    const timer = setTimeout(() => done(false), ms);
    child.once('close', () => {
      clearTimeout(timer);
      done(true);
    });
  });
}

/** Signals a child and everything it started. False if there was nothing left to signal. */
export function signalGroup(child: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): boolean {
  if (isWindows) {
    if (child.exitCode === null) {
      spawnSync(findCommand('taskkill'), ['/pid', `${child.pid}`, '/t', '/f']);
    }
    return false;
  }
  const group = -child.pid!; // a negative number means the group
  const targets = [group, ...straysOf(child)];
  const reached = targets.filter((pid) => isSignalled(pid, signal));
  return reached.length > 0;
}

function isSignalled(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false; // there is no such process, or its group is empty
  }
}

/** Marks a child's environment, which everything it starts inherits. On Linux that shows us what
 *  has left its group, as daemons do. */
export const MARK = 'MCP_BY_HAND_CHILD';
export const marks = new WeakMap<ChildProcess, string>();
/** It is not a secret, so it can do without node:crypto, which would cost each start 5 ms. */
export const newMark = () => `${process.pid}-${performance.timeOrigin}-${Math.random()}`;
const CENSUS_MS = 50;
const YOUNG_MS = 5000;
let census = {
  takenAt: -CENSUS_MS,
  byMark: new Map<string, number[]>(),
};

function straysOf(child: ChildProcess): number[] {
  const mark = marks.get(child);
  if (process.platform !== 'linux' || mark === undefined) return [];
  // One for all children that end together.
  if (now() - census.takenAt >= CENSUS_MS) {
    census = { takenAt: now(), byMark: takeCensus() };
  }
  const marked = census.byMark.get(mark) ?? [];
  return marked.filter((pid) => groupOf(pid) !== child.pid);
}

/** All processes that have a mark, by that mark. */
function takeCensus(): Map<string, number[]> {
  const byMark = new Map<string, number[]>();
  const before = lastPidBeforeOurs();
  const names = readIfThere('/proc', (path) => readdirSync(path)) ?? [];
  for (const pid of names.map(Number)) {
    if (!(pid > before)) continue; // or it is not a number
    const mark = markOf(pid);
    if (mark === undefined) continue;
    const others = byMark.get(mark) ?? [];
    byMark.set(mark, [...others, pid]);
  }
  return byMark;
}

function markOf(pid: number): string | undefined {
  const environment = readIfThere(`/proc/${pid}/environ`, readBytes) ?? '';
  const variables = environment.split('\0');
  const found = variables.find((each) => each.startsWith(`${MARK}=`));
  return found?.slice(MARK.length + 1);
}

/** Pids are handed out in order. So in our first seconds everything we started has a higher one
 *  than we have, unless the numbers have wrapped around; later they may have. */
function lastPidBeforeOurs(): number {
  const load = readIfThere('/proc/loadavg', readBytes) ?? '';
  const newest = Number(load.split(' ')[4]);
  const isInTurn = newest > process.pid && now() < YOUNG_MS;
  return isInTurn ? process.pid : 0;
}

function groupOf(pid: number): number {
  const stat = readIfThere(`/proc/${pid}/stat`, readBytes) ?? '';
  const afterName = stat.slice(stat.lastIndexOf(')') + 2); // the name may hold anything
  return Number(afterName.split(' ')[2]);
}

const readBytes = (path: string) => readFileSync(path, 'latin1');

/** A process may be gone by now, or we may not read it. */
function readIfThere<T>(path: string, read: (path: string) => T): T | undefined {
  try {
    return read(path);
  } catch {
    return undefined;
  }
}

export const living = new Set<ChildProcess>(); // until their end was seen
const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;

/** However our program ends, its children end too. (After SIGKILL servers only see the end of their
 *  stdin.) */
export function leaveNoOrphan(child: ChildProcess): void {
  living.add(child);
  if (process.listeners('exit').includes(endAllNow)) return;
  process.on('exit', endAllNow);
  for (const signal of ENDING_SIGNALS) process.prependListener(signal, endAllAndDie);
}

function endAllNow(): void {
  if (living.size === 0) return;
  for (const child of living) signalGroup(child, 'SIGTERM');
  // An exit handler cannot await.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
  for (const child of living) signalGroup(child, 'SIGKILL');
}

function endAllAndDie(signal: NodeJS.Signals): void {
  process.off(signal, endAllAndDie);
  // Other listeners may have a plan for this signal. Some act only when they are alone, so step
  // aside and come back for the next signal. If their plan is to exit, endAllNow runs then.
  // (Compared by name, so that another copy of this module does not count as other.)
  const isOther = (listener: Function) => listener.name !== endAllAndDie.name;
  if (process.listeners(signal).some(isOther)) {
    process.nextTick(() => process.prependListener(signal, endAllAndDie));
    return;
  }
  endAllNow();
  process.kill(process.pid, signal); // again, and now it does what it would without us
}

// ─── One server (seam 2: extensions) ────────────────────────────────────────────────────────────

export type CallOptions = {
  timeoutMs?: number; // how long to wait for the answer, or for a sign of progress
  signal?: AbortSignal; // cancels the call
  onProgress?: (progress: Json) => void; // asks the server to report its progress
  headers?: Record<string, string>; // for transports that have some
  tool?: Tool; // as the caller saw it: the manager does not call it if it has changed
  caller?: string; // who wants it, for the questions of a server: "Sub-agent 2 (…)"
};
export type Call = {
  method: string;
  params?: Json;
  options: CallOptions;
};
export type Next = (call: Call) => Promise<Json>;
/** Goes around everything we request: it may change the call, repeat it, or answer it itself. If
 *  there is nothing to do, a plain `return next(call)`, without `async`, makes it free. */
export type Layer = (call: Call, next: Next) => Promise<Json>;

/** What comes with a request or a notification of the server. */
export type Incoming = {
  id?: Id; // of a request
  signal: AbortSignal; // aborts when the server cancels its request, or the connection ends
  call?: Call; // the call of ours that it belongs to, if that is known
};
/** Takes what the server requests or notifies. What it returns is the answer to a request; what it
 *  throws is the refusal (a RpcError keeps its code). */
export type Handler = (params: Json, incoming: Incoming) => unknown;
/** What a server offers, and may change while it runs. */
export type Offer = 'tools' | 'prompts' | 'resources';

/** What is added to a connection. It is called once for each, in the constructor, so it may
 *  remember things. Meanwhile it may read `config` and `options`, and must not request anything.
 *  The function's name is the extension's name in errors; two of one name are an error. */
export type Extension = (connection: McpConnection) => Parts;
export type Parts = {
  /** The first extension in the list is the outermost. */
  layer?: Layer;
  /** A request has one handler; a notification (`notifications/…`) any number. */
  handlers?: Record<string, Handler>;
  /** Merged, object by object, into what we declare to the server. */
  capabilities?: Json;
  /** At most one extension has it. */
  handshake?: () => Promise<ServerDescription>;
  /** After each handshake. A second may come without `closed` in between: a new session. */
  opened?: (server: ServerDescription) => void | Promise<void>;
  /** What the server offers has changed, or may have. */
  changed?: (what: Offer) => void | Promise<void>;
  /** No request can be sent any more. Does not pair with `opened`: it may come without one, and
   *  again with another reason. */
  closed?: (why: Error) => void | Promise<void>;
};

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
}

/** What a server says of itself in the handshake. Without `capabilities` it has not said what it
 *  can do. `because` tells how we know which revision it speaks. */
export type ServerDescription = {
  protocolVersion: string;
  capabilities?: Json;
  serverInfo?: Json;
  instructions?: string;
  because?: string;
};
export type Tool = Json & {
  name: string;
  description?: string;
  inputSchema: Json;
};
export type ToolResult = {
  text: string;
  content: unknown[];
  isError: boolean;
  structuredContent?: unknown;
};

export type Resource = Json & { uri: string };
export type ResourceTemplate = Json & { uriTemplate: string };
export type Prompt = Json & { name: string };
/** It has a `text`, or a `blob` in base64. */
export type ResourceContents = Json;
export type PromptMessage = {
  role: 'user' | 'assistant';
  content: unknown[];
};
export type Reference =
  | { type: 'ref/prompt'; name: string }
  | { type: 'ref/resource'; uri: string };

/** A call whose answer has not come yet. */
type Waiter = {
  call: Call;
  resolve: (result: Json) => void;
  reject: (why: Error) => void;
  startedAt: number;
  endsAt: number;
  onAbort?: () => void;
};
type Owned = { owner: string; handler: Handler };

/** The revisions that begin with a handshake. */
export const REVISIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];
/** Which era is it? Later revisions have no handshake, and every request is complete in itself. */
export const isStateless = (server?: ServerDescription) =>
  server !== undefined && !REVISIONS.includes(server.protocolVersion);
export const VERSION = '0.1.0';
export const CLIENT_INFO = { name: 'mcp-by-hand', version: VERSION };
const MAX_REFUSAL = 10_000; // characters of a server's error that are passed on
const MAX_PAGES = 1000;
const MAX_LIST = 2 ** 26; // characters of all its pages together
const MAX_TOLD = 20; // tools that are left out
const MAX_CANCELLED = 1000;
const MAX_UNANSWERED = 1000;
const MAX_TIMER_MS = 2 ** 31 - 1; // a longer setTimeout fires at once

export class McpConnection {
  readonly serverName: string;
  readonly config: Json;
  readonly options;
  readonly warnings = new Map<string, string>(); // by kind: each kind is reported once
  private extensions = new Map<string, Parts>(); // by name, the outermost first
  private transport?: Transport;
  private connecting?: Promise<void>;
  private reopening?: Promise<void>;
  /** Only this class changes it; others read the getters below. */
  private life: {
    ended?: Error; // why no request can be sent now
    server?: ServerDescription;
    final?: Error; // why no request can ever be sent again
  } = {};
  private nextId = 1;
  private pending = new Map<unknown, Waiter>();
  private alarm?: NodeJS.Timeout;
  private alarmAt = Infinity;
  private outermost: Next; // the way through all layers
  private cancelled = new Set<unknown>(); // their answers may still come
  private declared: Json = {};
  private requestHandlers = new Map<string, Owned>();
  private listeners = new Map<string, Owned[]>();
  private served = new Set<{ id: Id; controller: AbortController }>(); // not answered yet
  private ending = new AbortController(); // of the present transport
  private holds = new Set<Promise<unknown>>(); // what a person thinks about
  private heldSince = 0;
  private strays = 0;

  constructor(serverName: string, config: Json, options: ConnectionOptions = {}) {
    this.serverName = serverName;
    this.config = config;
    const ownLimit = positive(config.timeout); // this server's own limit beats the general one
    this.options = {
      ...options,
      onWarning: options.onWarning ?? warnOnStderr,
      maxLineBytes: options.maxLineBytes ?? 64 * 2 ** 20,
      handshakeTimeoutMs: options.handshakeTimeoutMs ?? fromEnv('MCP_TIMEOUT') ?? 15_000,
      callTimeoutMs: ownLimit ?? options.callTimeoutMs ?? fromEnv('MCP_TOOL_TIMEOUT') ?? 60_000,
      maxCallMs: options.maxCallMs ?? 600_000,
    };
    this.plugIn('mcp.ts', this.ownParts());
    const { extensions = [] } = options;
    for (const [n, extension] of extensions.entries()) {
      const name = extension.name || `extension ${n + 1}`;
      this.plugIn(name, extension(this));
    }
    this.outermost = this.throughLayers();
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
    return this.declared;
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
    return this.strays;
  }

  /** Ended by close() or giveUp(), and cannot be reopened. */
  get isClosed(): boolean {
    return this.life.final !== undefined;
  }

  // ── Extensions ──

  /** Adds what an extension brings. What there can be only one of is refused the second time. */
  private plugIn(name: string, parts: Parts): void {
    if (this.extensions.has(name)) throw this.error('config', `has two extensions "${name}"`);
    for (const [first, { handshake }] of this.extensions) {
      if (handshake && parts.handshake) throw this.twice('a handshake', first, name);
    }
    this.declared = merged(this.declared, parts.capabilities ?? {});
    const handlers = Object.entries(parts.handlers ?? {});
    for (const [method, handler] of handlers) {
      this.addHandler(method, { owner: name, handler });
    }
    this.extensions.set(name, parts);
  }

  private addHandler(method: string, added: Owned): void {
    if (method.startsWith('notifications/')) {
      const others = this.listeners.get(method) ?? [];
      this.listeners.set(method, [...others, added]);
      return;
    }
    const first = this.requestHandlers.get(method);
    if (first) throw this.twice(`a handler for ${method}`, first.owner, added.owner);
    this.requestHandlers.set(method, added);
  }

  private twice(what: string, first: string, second: string): McpError {
    return this.error('config', `has ${what} twice: by "${first}" and by "${second}"`);
  }

  /** Layers are wrapped from the inside out. What one throws becomes a rejection. */
  private throughLayers(): Next {
    let next: Next = (call) => this.exchange(call);
    const inwards = [...this.extensions.values()];
    for (const { layer } of inwards.reverse()) {
      if (layer) next = wrapped(layer, next);
    }
    return next;
  }

  /** Tells all extensions what happened. */
  private tellAll(what: string, tell: (parts: Parts) => unknown): void {
    for (const [name, parts] of this.extensions) {
      this.guard(name, what, () => tell(parts));
    }
  }

  /** Runs a part of an extension. If it fails, that is reported, and goes no further. */
  private guard(name: string, what: string, run: () => unknown): void {
    const failed = (error: unknown) => {
      const where = `MCP server "${this.serverName}": the extension "${name}" failed`;
      this.report(`${name} ${what}`, `${where} at ${what}: ${textOf(error)}`);
    };
    // The function given to a Promise runs at once, and what it throws becomes a rejection.
    new Promise((done) => done(run())).catch(failed);
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
    this.tellAll('changed', (parts) => parts.changed?.(what));
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
      setMaxListeners(0, this.ending.signal); // any number of handlers may be at work
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
    const { maxLineBytes, transports } = this.options;
    const problem = problemWithType(this.config, transports);
    if (problem) throw new McpError('config', `MCP server "${this.serverName}": ${problem}`);
    const stdio: TransportFactory = (...given) => new StdioTransport(...given);
    const known = new Map(Object.entries({ stdio, ...transports }));
    const make = known.get(transportType(this.config))!;
    return make(this.serverName, this.config, maxLineBytes);
  }

  /** Shakes hands: by an extension's handshake if there is one, else as revisions up to 2025 do. */
  async initialize(): Promise<ServerDescription> {
    try {
      this.life.server = undefined; // until this handshake is done
      const all = [...this.extensions.values()];
      const parts = all.find(({ handshake }) => handshake);
      const server = await (parts?.handshake?.() ?? shakeHands(this));
      if (this.ended) throw this.ended; // closed by us meanwhile
      this.life.server = server;
      this.tellAll('opened', ({ opened }) => opened?.(server));
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

  /** No call may wait for a dead server: those that wait fail, and so does every later one. */
  private failAll(why: Error): void {
    if (this.ended) return;
    this.life.ended = why;
    this.failPending(why);
    this.stopHandlers();
    this.tellAll('closed', ({ closed }) => closed?.(why));
  }

  private failPending(why: Error): void {
    for (const id of this.pending.keys()) {
      this.fail(id, why);
    }
  }

  // ── What we request ──

  /** Sends a request and waits for its answer. The promise settles once, whatever happens. */
  request(method: string, params?: Json, options: CallOptions = {}): Promise<Json> {
    return this.outermost({ method, params, options });
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
      const waiter: Waiter = {
        call,
        resolve,
        reject,
        startedAt: now(),
        endsAt: Infinity,
      };
      // A Map in steady use moves from table to table, and V8 keeps the old ones for long, with all
      // that was in them. A new Map leaves them behind.
      if (id % 256 === 0) this.pending = new Map(this.pending);
      this.pending.set(id, waiter);
      this.setEnd(waiter, waiter.startedAt);
      this.listenForAbort(id, waiter);
      const { method, params } = call;
      const { headers } = call.options;
      const message: Message = { jsonrpc: '2.0', id, method, params };
      if (call.options.onProgress) message.params = withProgressToken(params, id);
      const sent = this.send(message, headers);
      sent.catch((error) => this.fail(id, error));
    });
  }

  /** The only way out of `pending`. The caller settles what it took, so no call settles twice. */
  private take(id: unknown): Waiter | undefined {
    const waiter = this.pending.get(id);
    this.pending.delete(id);
    if (this.pending.size === 0) this.stopAlarm();
    if (waiter?.onAbort) {
      waiter.call.options.signal?.removeEventListener('abort', waiter.onAbort);
    }
    return waiter;
  }

  private fail(id: unknown, why: Error): void {
    this.take(id)?.reject(why);
  }

  /** Sets the end of a call that begins, or moves it after a sign of progress. */
  private setEnd(waiter: Waiter, from: number): void {
    const { timeoutMs = this.options.callTimeoutMs } = waiter.call.options;
    let endsAt = from + timeoutMs;
    const most = Math.max(timeoutMs, this.options.maxCallMs);
    endsAt = Math.min(endsAt, waiter.startedAt + most); // even progress cannot extend it further
    if (this.holds.size > 0) endsAt = Infinity; // it is set when a person has answered
    waiter.endsAt = endsAt;
    this.setAlarm(endsAt);
  }

  /** One for all calls, at the earliest end. A timer for each costs a sixth of the whole call. */
  private setAlarm(at: number): void {
    if (at >= this.alarmAt) return;
    this.stopAlarm();
    this.alarmAt = at;
    const ms = Math.min(at - now(), MAX_TIMER_MS);
    this.alarm = setTimeout(() => this.ring(), ms);
  }

  private stopAlarm(): void {
    clearTimeout(this.alarm);
    this.alarmAt = Infinity;
  }

  /** Some of those that wait may have more time by now, or be answered. */
  private ring(): void {
    this.alarmAt = Infinity;
    for (const [id, waiter] of this.pending) {
      if (waiter.endsAt <= now()) this.timeOut(id as number, waiter);
      else this.setAlarm(waiter.endsAt);
    }
  }

  private timeOut(id: number, { call, startedAt }: Waiter): void {
    const { timeoutMs = this.options.callTimeoutMs } = call.options;
    let limit = timeoutMs;
    const most = Math.max(timeoutMs, this.options.maxCallMs);
    if (now() - startedAt >= most) limit = most;
    const slow = `did not answer ${call.method} within ${limit / 1000} s.`;
    const isOpening = call.method === 'initialize';
    const hint = isOpening ? ' If it needs longer to start, set MCP_TIMEOUT (in ms).' : '';
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
    setMaxListeners(0, options.signal); // one signal may end any number of calls
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
    const waiter = this.pending.get(params.progressToken);
    const { onProgress } = waiter?.call.options ?? {};
    if (!waiter || !onProgress) return undefined;
    this.setEnd(waiter, now());
    return onProgress(params);
  }

  /** For a handler that asks a person, who may think for minutes: until `work` is done no call runs
   *  out of time, and afterwards each has its whole limit again. */
  async hold<T>(work: Promise<T>): Promise<T> {
    if (this.holds.size === 0) this.heldSince = now();
    this.holds.add(work);
    for (const waiter of this.pending.values()) {
      waiter.endsAt = Infinity;
    }
    try {
      return await work;
    } finally {
      this.holds.delete(work);
      if (this.holds.size === 0) this.release();
    }
  }

  private release(): void {
    for (const waiter of this.pending.values()) {
      const since = Math.max(this.heldSince, waiter.startedAt);
      waiter.startedAt += now() - since;
      this.setEnd(waiter, now());
    }
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
      if (id === null) this.hear(method, asObject(params));
      else void this.serve(id as Id, method, asObject(params));
      return;
    }
    if (method === undefined && this.pending.has(id)) {
      return this.settle(this.take(id)!, message as Json);
    }
    if (method === undefined && this.cancelled.delete(id)) return;
    if (jsonrpc !== '2.0') {
      return this.warn('noise', `sends something other than messages: ${excerpt(message)}`);
    }
    this.strays++;
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
    const words = isText ? message.slice(0, MAX_REFUSAL) : excerpt(error);
    const who = `MCP server "${this.serverName}"`;
    return new RpcError(number, `${who} refused ${method}: ${words} (${number})`, data);
  }

  /** A notification goes to every extension that listens for it. */
  private hear(method: string, params: Json): void {
    const { signal } = this;
    const listeners = this.listeners.get(method) ?? [];
    for (const { owner, handler } of listeners) {
      this.guard(owner, method, () => handler(params, { signal }));
    }
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
    const owned = this.requestHandlers.get(method);
    if (!owned) throw new RpcError(-32601, `Method not found: ${method}`);
    return (await owned.handler(params, incoming)) ?? {};
  }

  handles(method: string): boolean {
    return this.requestHandlers.has(method);
  }

  /** Our calls whose answers have not come yet. */
  get running(): Call[] {
    const waiters = [...this.pending.values()];
    return waiters.map(({ call }) => call);
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
    this.holds.clear();
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
      const page = await this.onePage(method, params, deadline, cursors.size);
      const part = page[key];
      if (!Array.isArray(part)) {
        throw this.error('protocol', `answered ${method} with ${excerpt(page)}`);
      }
      for (const item of part) found.push(item);
      const { nextCursor = null } = page; // an empty string is a cursor like any other
      if (nextCursor === null) return found;
      size += JSON.stringify(page).length; // many pages, each as long as a line may be
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

  private async onePage(
    method: string,
    params: Json | undefined,
    deadline: number,
    pages: number,
  ): Promise<Json> {
    try {
      // On the first page the limit itself, so that a time-out names it and not what is left of it.
      const timeoutMs = pages === 0 ? this.options.handshakeTimeoutMs : deadline - now();
      return await this.request(method, params, { timeoutMs });
    } catch (error) {
      const isTimeout = error instanceof McpError && error.kind === 'timeout';
      if (!isTimeout || pages === 0) throw error;
      const limit = `${this.options.handshakeTimeoutMs / 1000} s`;
      const slow = `did not answer all of ${method} within ${limit}`;
      throw this.error('timeout', `${slow}: ${pages} pages came`);
    }
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

  // ── More than tools ──

  listResources(): Promise<Resource[]> {
    return this.listOf<Resource>('resources/list', 'resources', 'uri');
  }

  listResourceTemplates(): Promise<ResourceTemplate[]> {
    return this.listOf('resources/templates/list', 'resourceTemplates', 'uriTemplate');
  }

  listPrompts(): Promise<Prompt[]> {
    return this.listOf<Prompt>('prompts/list', 'prompts', 'name');
  }

  /** What can be used of a list: objects with a text under `key`, each once. Servers announce lists
   *  and then do not know the request for them; that is an empty list. */
  private async listOf<T extends Json>(
    method: string,
    list: string,
    key: string,
  ): Promise<T[]> {
    const [offer = ''] = method.split('/');
    const offers = this.server?.capabilities;
    if (offers && !offers[offer]) return [];
    const all = await this.listAll(method, list).catch(noneIfUnknown);
    const byKey = new Map<string, T>();
    for (const row of all.filter(isObject)) {
      const name = row[key];
      const isUsable = typeof name === 'string' && name !== '';
      if (isUsable) byKey.set(name, row as T);
    }
    return [...byKey.values()];
  }

  /** Mostly one, but a folder may have many. */
  async readResource(uri: string, options?: CallOptions): Promise<ResourceContents[]> {
    const { contents } = await this.request('resources/read', { uri }, options);
    if (Array.isArray(contents)) return contents.filter(isObject);
    throw this.error('protocol', `answered resources/read with contents ${excerpt(contents)}`);
  }

  /** `notifications/resources/updated` tells of a change, and not what has changed. */
  async subscribe(uri: string, options?: CallOptions): Promise<void> {
    await this.request('resources/subscribe', { uri }, options);
  }

  async unsubscribe(uri: string, options?: CallOptions): Promise<void> {
    await this.request('resources/unsubscribe', { uri }, options);
  }

  /** Only when the user wants it: some servers act on this request. */
  async getPrompt(
    name: string,
    args: Record<string, string> = {},
    options?: CallOptions,
  ): Promise<PromptMessage[]> {
    const params = { name, arguments: args };
    const { messages } = await this.request('prompts/get', params, options);
    if (!Array.isArray(messages)) {
      throw this.error('protocol', `answered prompts/get with messages ${excerpt(messages)}`);
    }
    const said = messages.filter(isObject);
    return said.map(({ role, content = [] }) => ({
      role: role === 'assistant' ? role : 'user',
      content: [content].flat(),
    }));
  }

  /** Completions for the value of an argument; `others` are the arguments that are known. */
  async complete(
    ref: Reference,
    argument: { name: string; value: string },
    others: Record<string, string> = {},
    options?: CallOptions,
  ): Promise<string[]> {
    const params: Json = { ref, argument };
    if (Object.keys(others).length > 0) params.context = { arguments: others };
    const { completion } = await this.request('completion/complete', params, options);
    const { values } = asObject(completion);
    if (!Array.isArray(values)) return [];
    return values.filter((value) => typeof value === 'string');
  }

  async setLogLevel(level: string, options?: CallOptions): Promise<void> {
    await this.request('logging/setLevel', { level }, options);
  }

  // ── Errors and warnings ──

  error(kind: ErrorKind, what: string): McpError {
    return new McpError(kind, `MCP server "${this.serverName}" ${what}`);
  }

  warn(kind: string, what: string): void {
    this.report(kind, `MCP server "${this.serverName}" ${what}`);
  }

  private report(kind: string, warning: string): void {
    if (this.warnings.has(kind)) return;
    this.warnings.set(kind, warning);
    this.options.onWarning(warning);
  }
}

/** Not `async`: one more promise per layer would be most of its cost. */
function wrapped(layer: Layer, next: Next): Next {
  return (call) => {
    try {
      return layer(call, next);
    } catch (error) {
      return Promise.reject(error);
    }
  };
}

/** How revisions up to 2025-11-25 begin. An extension with a `handshake` replaces it. */
export async function shakeHands(
  connection: McpConnection,
  options: CallOptions = {},
): Promise<ServerDescription> {
  const hello = {
    protocolVersion: REVISIONS[0],
    capabilities: connection.capabilities,
    clientInfo: CLIENT_INFO,
  };
  const timeoutMs = connection.options.handshakeTimeoutMs;
  const answer = await connection.request('initialize', hello, { timeoutMs, ...options });
  const { protocolVersion: theirs } = answer;
  if (typeof theirs !== 'string' || !REVISIONS.includes(theirs)) {
    const both = `speaks revision ${excerpt(theirs)}, and we speak ${REVISIONS.join(', ')}`;
    throw connection.error('protocol', both);
  }
  const told = connection.notify('notifications/initialized');
  told.catch(() => {}); // not awaited: the server may never read it
  return { protocolVersion: theirs, ...selfDescription(answer) };
}

/** What a server says of itself, as far as it has the right shape. */
export function selfDescription({ capabilities, serverInfo, instructions }: Json) {
  return {
    ...(isObject(capabilities) && { capabilities }),
    ...(isObject(serverInfo) && { serverInfo }),
    ...(typeof instructions === 'string' && { instructions }),
  };
}

/** Both, object by object. Where they differ otherwise, the second counts. */
function merged(one: Json, two: Json): Json {
  const both: Json = { ...one };
  for (const [key, value] of Object.entries(two)) {
    const before = both[key];
    const areObjects = isObject(before) && isObject(value);
    both[key] = areObjects ? merged(before, value) : value;
  }
  return both;
}

const fromEnv = (name: string) => positive(Number(process.env[name]));
const positive = (value: unknown) =>
  typeof value === 'number' && value > 0 ? value : undefined;

/** The default for warnings. A server may have chosen the words, so no control character reaches
 *  the terminal. */
function warnOnStderr(warning: string): void {
  process.stderr.write(`${warning.replace(/[^\P{C}\n]/gu, '\ufffd')}\n`);
}

function withProgressToken(params: Json | undefined, progressToken: Id): Json {
  const meta = { ...asObject(params?._meta), progressToken };
  return { ...params, _meta: meta };
}

function oddityOf({ jsonrpc, result = null, error = null }: Json): string | undefined {
  if (jsonrpc !== '2.0') return 'something that is not JSON-RPC 2.0';
  if (result === null && error === null) return 'neither result nor error';
  if (result !== null && error !== null) return 'a result and an error';
  if (error !== null || isObject(result)) return undefined;
  return `a result that is not an object: ${excerpt(result)}`;
}

/** For a list that a server announced, and whose method it does not know. */
function noneIfUnknown(error: unknown): unknown[] {
  if (error instanceof RpcError && error.code === -32601) return [];
  throw error;
}

function asRefusal(error: unknown): Json {
  if (error instanceof RpcError) {
    const { code, message, data } = error;
    return { code, message, data };
  }
  return { code: -32603, message: textOf(error) };
}

function isPrintable(name: string, maxLength: number): boolean {
  const hasControl = /[\x00-\x1f\x7f-\x9f]/.test(name);
  return name !== '' && name.length <= maxLength && !hasControl;
}

function problemWithTool(tool: unknown): string | undefined {
  if (!isObject(tool)) return 'it is not an object';
  const { name, description, inputSchema } = tool;
  if (typeof name !== 'string' || !isPrintable(name, 256)) {
    return 'its name is not 1 to 256 printable characters';
  }
  if (typeof (description ?? '') !== 'string') return 'its description is not text';
  return isObject(inputSchema ?? {}) ? undefined : 'its inputSchema is not an object';
}

function withSchema(tool: Tool): Tool {
  if (tool.inputSchema) return tool;
  return { ...tool, inputSchema: { type: 'object' } };
}

/** With another description it is another tool. The order of its keys does not matter. */
function isSameTool(one: Tool, two: Tool): boolean {
  return areEqualIn(['name', 'description', 'inputSchema', 'annotations'], one, two);
}

function areEqualIn<T>(keys: (keyof T)[], one: T, two: T): boolean {
  return keys.every((key) => isDeepStrictEqual(one[key], two[key]));
}

/** A foreign value that should be text. Not `${value}`: its toString may not be a function. */
export const show = (value: unknown) => (typeof value === 'string' ? value : excerpt(value));
const bytes = (base64: unknown) => `${Buffer.byteLength(show(base64 ?? ''), 'base64')} bytes`;

/** A tool's blocks as text: text as it is, everything else by name and size. */
export function blocksToText(content: unknown[]): string {
  return content.map(blockToText).join('\n');
}

function blockToText(block: unknown): string {
  const { type, text, data, mimeType, name, uri, resource } = asObject(block);
  if (type === 'text' && typeof text === 'string') return text;
  if (type === 'image' || type === 'audio') return `[${type}: ${show(mimeType)}, ${bytes(data)}]`;
  if (type === 'resource_link') return `[link: ${show(name)} ${show(uri)}]`;
  if (type === 'resource') return resourceToText(asObject(resource));
  return `[a block that we cannot read: ${excerpt(block)}]`;
}

function resourceToText({ text, uri, mimeType, blob }: Json): string {
  if (typeof text === 'string') return text;
  return `[resource: ${show(uri)}, ${show(mimeType)}, ${bytes(blob)}]`;
}

/** A value for an error message: its JSON, cut short. */
export function excerpt(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  // Through a buffer, because a slice would keep the whole text in memory.
  return text.length > 200 ? `${Buffer.from(text.slice(0, 200))}…` : text;
}

// ─── Configuration ──────────────────────────────────────────────────────────────────────────────

/** A server as a file describes it, every ${VAR} still in place. */
export type ServerEntry = {
  name: string;
  config: Json;
  file: string;
  scope: string; // where it comes from: 'user', 'project', …
  authority: 'user' | 'project'; // a project's entry needs the user's approval
  shadows?: string; // the file whose entry of this name it replaces
  blocked?: string; // why it is listed and does not start
};

const MAX_CONFIG_BYTES = 16 * 2 ** 20;

/** Reads three files; if two entries have the same name, the later wins. A broken file is reported
 *  and skipped. */
export function loadEntries(
  home: string,
  cwd: string,
  report: (problem: string) => void,
): Map<string, ServerEntry> {
  const entries = new Map<string, ServerEntry>();
  const add = (file: string, authority: ServerEntry['authority'], mayBeFlat = false) => {
    try {
      const servers = serversIn(readJsonFile(file) ?? {}, mayBeFlat);
      for (const [name, config] of Object.entries(servers)) {
        const shadows = entries.get(name)?.file;
        const origin = { file, scope: authority, authority, shadows };
        entries.set(name, { name, config: config as Json, ...origin });
      }
    } catch (error) {
      report(`${file} is ignored: ${textOf(error)}`);
    }
  };
  // A relative home might be the project's.
  if (isAbsolute(home)) add(join(home, '.claude', 'settings.json'), 'user');
  if (!isSameFolder(home, cwd)) add(join(cwd, '.claude', 'settings.json'), 'project');
  add(join(cwd, '.mcp.json'), 'project', true);
  return entries;
}

function isSameFolder(one: string, two: string): boolean {
  if (!existsSync(one) || !existsSync(two)) return false;
  return realpathSync(one) === realpathSync(two);
}

/** The mapping of names to servers inside a file's content. A settings file holds much else, so
 *  only its `mcpServers` counts; .mcp.json may also be the bare mapping, or VS Code's `servers`. */
export function serversIn(root: Json, mayBeFlat: boolean): Json {
  if (Object.hasOwn(root, 'mcpServers')) {
    if (isObject(root.mcpServers)) return root.mcpServers;
    throw new Error('its "mcpServers" is not an object');
  }
  if (!mayBeFlat) return {};
  const { servers } = root;
  if (Array.isArray(servers)) throw new Error('its "servers" is not an object');
  if (isObject(servers) && !looksLikeServer(servers)) return servers;
  const all = Object.entries(root);
  const named = all.filter(([, value]) => isObject(value));
  return Object.fromEntries(named);
}

const looksLikeServer = ({ command, url, type }: Json) =>
  [command, url, type].some((value) => typeof value === 'string');

/** The object in a file that a person wrote; undefined if there is no such file. */
export function readJsonFile(file: string): Json | undefined {
  const stat = statIfThere(file);
  if (!stat) return undefined;
  // A FIFO would keep us waiting, and /dev/zero has no end.
  if (!stat.isFile()) throw new Error('it is not a file');
  // The files of /proc say so too, and some of them never end.
  if (stat.size === 0) throw new Error('it is empty');
  if (stat.size > MAX_CONFIG_BYTES) throw new Error(`it has more than ${MAX_CONFIG_BYTES} bytes`);
  const decoder = new TextDecoder('utf-8', { fatal: true }); // drops a byte order mark
  const text = decoder.decode(readFileSync(file));
  const json = withoutComments(text).trim();
  const tooMuch = tooMuchIn(json);
  if (tooMuch) throw new Error(`it has ${tooMuch}`);
  const root: unknown = JSON.parse(json);
  if (!isObject(root)) throw new Error('it is not a JSON object');
  return root;
}

/** People comment such files. Strings are matched too, and put back, so that "http://…" stays
 *  whole. What is not closed matches to the end: else the search would start again at each
 *  character. */
function withoutComments(text: string): string {
  const parts = /"(?:\\.|[^"\\])*(?:"|\\?$)|\/\/.*|\/\*[^]*?(?:\*\/|$)/g;
  return text.replace(parts, (found) => (found[0] === '"' ? found : ''));
}

function statIfThere(file: string) {
  try {
    return statSync(file, { throwIfNoEntry: false });
  } catch (error) {
    // ENOTDIR also means that it is not there.
    if ((error as NodeJS.ErrnoException).code !== 'ENOTDIR') throw error;
    return undefined;
  }
}

/** Which transport an entry wants. Without a `type`, an address means HTTP or a WebSocket. */
export function transportType({ type, url, command }: Json): string {
  if (type !== undefined) return `${type}`;
  if (typeof url !== 'string' || command !== undefined) return 'stdio';
  return /^wss?:/i.test(url) ? 'ws' : 'http';
}

export function problemWithConfig(config: unknown): string | undefined {
  if (!isObject(config)) return 'its entry is not an object';
  const { type = '', timeout = 1 } = config;
  if (typeof type !== 'string') return '"type" is not a string';
  if (!positive(timeout)) return '"timeout" is not a number of milliseconds above 0';
  const { lazy = true, sleepAfterMs = 1 } = config;
  if (typeof lazy !== 'boolean') return '"lazy" is not true or false';
  if (!positive(sleepAfterMs)) return '"sleepAfterMs" is not a number of milliseconds above 0';
  if (loadWish(config) === null) {
    return '"alwaysLoad" or "deferred" is not true or false, or both are';
  }
  if (transportType(config) !== 'stdio') return undefined; // its transport checks the rest
  const { command, args = [], env = {}, cwd = '' } = config;
  const isText = (value: unknown) => typeof value === 'string' && !value.includes('\0');
  if (!isText(command) || command === '') return '"command" is missing or is not a string';
  if (!Array.isArray(args) || !args.every(isText)) return '"args" is not a list of strings';
  const isMapping = isObject(env) && Object.entries(env).flat().every(isText);
  if (!isMapping) return '"env" is not a mapping of strings';
  return isText(cwd) ? undefined : '"cwd" is not a string';
}

function loading(config: Json): { load?: 'always' | 'deferred' } {
  const load = loadWish(config);
  return load ? { load } : {};
}

/** Whether a model should see its tools at once, or only when it looks for them. */
function loadWish({ alwaysLoad = false, deferred = false }: Json) {
  if (typeof alwaysLoad !== 'boolean' || typeof deferred !== 'boolean') return null;
  if (alwaysLoad && deferred) return null;
  if (alwaysLoad) return 'always';
  return deferred ? 'deferred' : undefined;
}

function problemWithType(
  config: Json,
  transports: ConnectionOptions['transports'] = {},
): string | undefined {
  const type = transportType(config);
  const known = ['stdio', ...Object.keys(transports)];
  if (known.includes(type)) return undefined;
  return `its type is ${excerpt(type)}, but we have transports only for ${known.join(', ')}`;
}

function configError({ name, file }: ServerEntry, problem: string): McpError {
  return new McpError('config', `MCP server ${excerpt(name)} in ${file}: ${problem}`);
}

/** The configuration with a value for every ${VAR} and ${VAR:-default}. A project's file cannot
 *  read the variables in `hidden`, such as the key of a model. */
export function fillIn(entry: ServerEntry, env = process.env, hidden: string[] = []): Json {
  const used: string[] = []; // the variables whose values were taken
  const valueOf = (_: string, name: string, fallback?: string) => {
    const upper = name.toUpperCase();
    const isKey = hidden.some((key) => key.toUpperCase() === upper);
    const isHidden = isKey && entry.authority === 'project';
    const isSet = Object.hasOwn(env, name) && !isHidden;
    if (isSet && env[name]) {
      used.push(name);
      return env[name];
    }
    if (fallback !== undefined) return fallback;
    if (isSet) return '';
    const why = isHidden ? 'is the key of a model, which a project cannot read' : 'is not set';
    throw configError(entry, `\${${name}} ${why}`);
  };
  const variable = /\$\{(\w+)(?::-([^}]*))?\}/g;
  const fill = (text: string) => text.replace(variable, valueOf);
  // Through JSON and back: the reviver meets every string of the entry, however deep.
  const config: Json = JSON.parse(JSON.stringify(entry.config), (_, value) =>
    typeof value === 'string' ? fill(value) : value,
  );
  if (!isExposed(asObject(config).url)) return config;
  const { url, headers = {} } = entry.config;
  const sent = JSON.stringify([headers, behindHost(show(url))]);
  used.length = 0;
  fill(sent);
  if (used.length === 0) return config;
  const { host } = new URL(show(config.url));
  const why = `would go to ${host} in clear text, readable on the way`;
  throw configError(entry, `\${${used[0]}} ${why}; use https:// or wss://`);
}

/** Can what is sent to this address be read on the way? */
export function isExposed(address: unknown): boolean {
  const text = address instanceof URL ? address.href : show(address);
  if (!URL.canParse(text)) return false;
  const url = new URL(text);
  const isClear = url.protocol === 'http:' || url.protocol === 'ws:';
  return isClear && !isLoopback(url);
}

export const isLoopback = ({ hostname }: URL) =>
  /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);

/** A variable that contains the host is an address; what comes after it may be a secret. (To a
 *  browser, and to us, a backslash is a slash.) */
const behindHost = (url: string) => url.replace(/^[^/\\?#]*([/\\]{2}[^/\\?#]*)?/, '');

// ── Where it starts ──

export type LaunchOptions = { home?: string; cwd?: string; hidden?: string[] };

/** What a server is started with: its entry with values for the variables, the project's path, and
 *  a folder. A project's server starts in the project. There `npx` and `python -m` run what a clone
 *  brings along, so the user's own servers start in an empty folder. */
export function launchConfig(entry: ServerEntry, options: LaunchOptions = {}): Json {
  const { home = homedir(), cwd: project = process.cwd(), hidden } = options;
  const config = fillIn(entry, withProject(project), hidden);
  if (transportType(config) !== 'stdio') return config;
  const isNowhere = entry.authority === 'user' && !config.cwd;
  const cwd = isNowhere ? emptyFolder(entry, home) : resolve(project, `${config.cwd ?? ''}`);
  const env = { ...asObject(config.env), CLAUDE_PROJECT_DIR: project };
  return { ...config, cwd, env };
}

const withProject = (project: string) => ({ ...process.env, CLAUDE_PROJECT_DIR: project });

/** A project's entry, and one of the user's own that follows the project: with a relative "cwd", or
 *  a variable such as ${PWD}, it may run what a clone brings along. */
export function needsApproval(entry: ServerEntry, project = process.cwd()): boolean {
  if (entry.authority !== 'user') return true;
  if (transportType(entry.config) !== 'stdio') return false;
  const env: NodeJS.ProcessEnv = withProject(project);
  const names = JSON.stringify(entry.config).matchAll(/\$\{(\w+)/g);
  const values = [...names].flatMap(([, name = '']) => env[name] || []);
  const paths = values.flatMap(pathsIn);
  if (paths.some((path) => isOfProject(path, project))) return true;
  const folder = folderOf(entry, env);
  return folder !== '' && !isAbsolute(folder);
}

/** The whole paths in a value: it may be one, or a list of them, or flags such as --require=/x.
 *  Relative ones do not count: the server starts in an empty folder. */
function pathsIn(value: string): string[] {
  const breaks = [...value.matchAll(/[\s=,;:]/g)];
  const starts = [0, ...breaks.map(({ index }) => index + 1)];
  // To the end of the list, or of the value: a path may hold blanks.
  const rests = starts.map((at) => value.slice(at).split(delimiter, 1)[0]!);
  return rests.filter((rest) => isAbsolute(rest));
}

/** Its "cwd" filled in. An entry that cannot be filled in does not start. */
function folderOf(entry: ServerEntry, env: NodeJS.ProcessEnv): string {
  try {
    return `${fillIn(entry, env).cwd ?? ''}`;
  } catch {
    return '';
  }
}

function emptyFolder(entry: ServerEntry, home: string): string {
  const own = entry.name.replace(/[^\w-]/g, '_').slice(0, 64);
  const folder = join(home, '.mcp-by-hand', 'empty', own);
  try {
    if (!isAbsolute(home)) throw new Error('the home folder is not an absolute path');
    makeOurs(dirname(dirname(folder)));
    makeOurs(dirname(folder));
    makeOurs(folder);
    // Moved, not deleted: it may be the notes of a server.
    if (readdirSync(folder).length > 0) renameSync(folder, `${folder}-${Date.now()}`);
    makeOurs(folder);
    return folder;
  } catch (error) {
    const why = `it should start in ${folder}, an empty folder, but ${textOf(error)}`;
    throw configError(entry, `${why}. Fix that, or give it a "cwd" of its own`);
  }
}

/** Makes a folder that only we can write to. Refuses one that others may have put there. */
function makeOurs(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const stat = lstatSync(folder);
  if (!stat.isDirectory()) throw new Error(`${folder} is a link`);
  if (isWindows) return; // which has no uids and modes
  const isOurs = stat.uid === process.getuid!() && (stat.mode & 0o022) === 0;
  if (!isOurs) throw new Error(`others may write to ${folder}`);
}

/** A warning for words that only make sense in the project's folder, where the server does not
 *  start. */
export function lostWords(entry: ServerEntry, project = process.cwd()): string | undefined {
  const { cwd, command, args = [] } = entry.config as StdioConfig;
  if (entry.authority !== 'user' || cwd) return;
  if (transportType(entry.config) !== 'stdio') return;
  const isLost = (word: string) => {
    const path = word.replace(/^-[^=]*=/, ''); // --root=.
    const isRelative = path !== '' && !isAbsolute(path);
    const isThere = isRelative && existsSync(join(project, path));
    return isThere || /^\.\.?([/\\]|$)/.test(path);
  };
  const isPath = /[/\\]/.test(command); // else it is looked for on the PATH
  const all = isPath ? [command, ...args] : args;
  const lost = all.filter(isLost);
  if (lost.length === 0) return;
  const words = lost.map(excerpt).join(', ');
  const help = 'Write absolute paths; or set "cwd": ".", and you are asked once in each project';
  return `is your own, and starts in an empty folder, where ${words} cannot be found. ${help}`;
}

// ─── Names ──────────────────────────────────────────────────────────────────────────────────────

/** The name under which a model sees a tool: at most 64 of A–Z a–z 0–9 _ -. It is a label,
 *  and never parsed. The server's part has no "__" inside and no "_" at its end, so a + b__c and
 *  a__b + c differ. */
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
  for (const char of name) {
    hash = Math.imul(hash ^ char.codePointAt(0)!, 16777619) >>> 0;
  }
  const suffix = `-${hash.toString(36)}`;
  const readable = name.replace(/[^A-Za-z0-9-]+/g, '_');
  return readable.slice(0, length - suffix.length) + suffix;
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

/** What servers offered last time. It is a cache: neither function throws. */
export interface KnownServers {
  find(entry: ServerEntry): KnownServer | undefined;
  keep(entry: ServerEntry, known: KnownServer): void;
}
export type KnownServer = {
  server: ServerDescription;
  tools: Tool[];
  lists?: Record<string, unknown[]>; // prompts and resources, as far as they were listed
};

/** `pending`: not approved yet. `needs-auth`: it wants a login. `asleep`: it starts when needed. */
export type ServerState =
  | 'connecting'
  | 'connected'
  | 'asleep'
  | 'pending'
  | 'disabled'
  | 'needs-auth'
  | 'failed'
  | 'closed';
type Standing = { state: ServerState; reason?: string };
type Server = {
  entry: ServerEntry;
  decided?: Standing; // what holds whatever the connection does, or before there is one
  connection?: McpConnection;
  wantsLogin?: McpError; // what its last call was answered with
  startMs?: number; // until its tools were listed
  tools: Map<string, Tool>; // by label
  listing?: Promise<void>;
  isStale?: boolean; // it may have other tools than those above
  refreshTimer?: NodeJS.Timeout;
  lookMs?: number; // how long the last look at its tools took
  told?: Standing; // what `onState` heard last
  asleep?: KnownServer; // it is not running, because it is not needed yet
  waking?: Promise<void>;
  lists?: KnownServer['lists'];
  resting?: Promise<void>; // the process that was put to sleep is about to end
  idleTimer?: NodeJS.Timeout;
  isWanted?: boolean; // it starts even if its tools are known
};
export type ServerStatus = ReturnType<McpManager['status']>[number];
export type ToolDefinition = {
  name: string; // the label
  description: string;
  inputSchema: Json;
  server: string;
  tool: Tool; // as the server describes it
};

/** What a server has, and which server. */
export type Of<T> = T & { server: string };
type Lister<T> = (connection: McpConnection) => Promise<T[]>;

const REFRESH_DELAY_MS = 100;
const MAX_REFRESH_DELAY_MS = 5000;

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
    this.options = { ...options, onWarning: options.onWarning ?? warnOnStderr };
  }

  /** Connects to all configured servers, once, however often and from wherever it is called. */
  loadAndConnect(): Promise<void> {
    const ready = this.loading ? undefined : this.options.prepare?.();
    if (ready) this.loading = ready.then(() => this.connectAll());
    this.loading ??= this.connectAll();
    return this.loading;
  }

  /** When the last server was allowed to start. Time spent asking the user does not count. */
  get startingSince(): number {
    return this.questions > 0 ? now() : this.lastStart;
  }

  private async connectAll(): Promise<void> {
    const { concurrency = 32 } = this.options;
    const entries = this.readConfiguration();
    this.servers = new Map();
    this.prefixes = new Map();
    for (const [name, entry] of entries) {
      const prefix = serverPrefix(name);
      if (!this.prefixes.has(prefix)) this.prefixes.set(prefix, name);
      this.servers.set(name, { entry, tools: new Map() });
    }
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
    if (entry.blocked) {
      this.decide(server, 'disabled', entry.blocked);
      return false;
    }
    const problem = this.problemWith(entry);
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

  private problemWith({ name, config }: ServerEntry): string | undefined {
    if (!isPrintable(name, 128) || /[/\\]/.test(name)) return 'a server cannot have this name';
    const first = this.prefixes.get(serverPrefix(name));
    if (first !== name) return `its tools would have the same names as those of ${excerpt(first)}`;
    return problemWithConfig(config) ?? problemWithType(config, this.options.transports);
  }

  private async start(server: Server): Promise<void> {
    const { entry } = server;
    const { extensions = [], cwd } = this.options;
    if (server.decided) return; // closed a moment ago
    if (this.mayRest(server)) return;
    const startedAt = now();
    const config = launchConfig(entry, this.options);
    const connection = new McpConnection(entry.name, config, {
      ...this.options,
      extensions: [...extensions, this.watch(server)],
    });
    server.connection = connection;
    const lost = lostWords(entry, cwd);
    if (lost) connection.warn('folder', lost);
    await connection.connect();
    await connection.initialize();
    await this.list(server);
    server.startMs = Math.round(now() - startedAt);
  }

  // ── Asleep ──

  /** Its tools are known from last time, so it need not start before it is called. */
  private mayRest(server: Server): boolean {
    const { known } = this.options;
    const isLazy = !server.isWanted && server.entry.config.lazy !== false;
    const found = isLazy ? known?.find(server.entry) : undefined;
    if (!found) return false;
    this.setTools(server, found.tools);
    this.rest(server, found);
    return true;
  }

  private rest(server: Server, known: KnownServer): void {
    server.asleep = known;
    this.decide(server, 'asleep');
  }

  /** Starts a server that is asleep. All that call it meanwhile wait for the same start. */
  private async rouse(server: Server): Promise<McpConnection> {
    if (server.asleep && server.decided?.state === 'asleep') {
      server.asleep = undefined;
      server.decided = undefined;
      server.isWanted = true;
      server.waking = this.wake(server);
    }
    await server.waking;
    if (server.connection) return server.connection;
    const { state, reason = state } = this.stateOf(server);
    throw new McpError('closed', `MCP server "${server.entry.name}" is not running: ${reason}`);
  }

  private async wake(server: Server): Promise<void> {
    try {
      await server.resting;
      await this.connectOne(server);
    } finally {
      server.waking = undefined;
    }
  }

  /** What is listed now is what is known the next time. */
  private keepKnown(server: Server, lists = server.lists): void {
    const description = server.connection?.server;
    server.lists = lists;
    if (!description) return;
    const tools = [...server.tools.values()];
    const known = { server: description, tools, lists };
    this.options.known?.keep(server.entry, known);
  }

  /** If its entry says so, a server that was idle for a while ends, and the next call starts it
   *  again. Not by default: a browser or a database would lose what it has open. */
  private restAfter(server: Server, answer: Promise<Json>): void {
    const ms = positive(server.entry.config.sleepAfterMs);
    if (!ms) return;
    const wait = () => {
      clearTimeout(server.idleTimer);
      const timer = setTimeout(() => this.fallAsleep(server), ms);
      server.idleTimer = timer.unref();
    };
    answer.then(wait, wait);
  }

  private fallAsleep(server: Server): void {
    const { connection, lists } = server;
    if (!connection?.server || server.decided) return;
    const isWork = ({ method }: Call) => method !== 'subscriptions/listen';
    if (connection.running.some(isWork)) return; // the timer is set again when it is done
    const tools = [...server.tools.values()];
    this.rest(server, { server: connection.server, tools, lists });
    server.connection = undefined;
    server.startMs = undefined;
    server.resting = connection.close().catch(() => {}); // it ends one way or the other
    this.tellState(server);
  }

  /** The manager is itself the last extension of each of its connections: so it hears of everything
   *  that changes a server's state. */
  private watch(server: Server): Extension {
    const mcpManager: Extension = () => ({
      layer: (call, next) => this.callAgreed(server, call, next),
      opened: () => this.greeted(server),
      changed: (what) => this.lookAgain(server, what),
      closed: () => this.tellState(server),
    });
    return mcpManager;
  }

  /** After a handshake it may be another server than before. */
  private greeted(server: Server): void {
    server.isStale = true;
    this.tellState(server);
  }

  private callAgreed(server: Server, call: Call, next: Next): Promise<Json> {
    const { tool } = call.options;
    let answer: Promise<Json>;
    if (tool) answer = this.compare(server, tool).then(() => next(call));
    else answer = next(call);
    answer = this.noteLogin(server, answer);
    this.restAfter(server, answer);
    return answer;
  }

  /** Here, behind all layers, so that it is done again for a call that is sent again. */
  private async compare(server: Server, wanted: Tool): Promise<void> {
    const connection = server.connection!;
    await server.listing;
    const failed = (error: unknown) => {
      const kind = connection.ended ? 'unreachable' : 'unknown-tool'; // the call was not sent
      const what = 'did not list its tools, so this call was not sent';
      throw connection.error(kind, `${what}: ${textOf(error)}`);
    };
    if (server.isStale) await this.list(server).catch(failed);
    const label = toolLabel(server.entry.name, wanted.name);
    const found = server.tools.get(label);
    if (found && isSameTool(found, wanted)) return;
    const why = found ? 'it has changed' : 'it is gone';
    const what = `no longer has the tool ${excerpt(wanted.name)} that was agreed to: ${why}`;
    throw connection.error('unknown-tool', `${what}. Nothing was called.`);
  }

  /** A login can expire and be renewed at any time, so the answer to each call tells the state. */
  private async noteLogin(server: Server, answer: Promise<Json>): Promise<Json> {
    try {
      const result = await answer;
      server.wantsLogin = undefined;
      this.tellState(server);
      return result;
    } catch (error) {
      // 403: it knows us, but forbids this call.
      const isAuth = error instanceof McpError && error.kind === 'auth';
      if (isAuth && error.status !== 403) server.wantsLogin = error;
      if (error instanceof RpcError) server.wantsLogin = undefined; // a refusal is an answer
      this.tellState(server);
      throw error;
    }
  }

  /** Worked out from the connection, never kept in step with it. */
  private stateOf({ decided, connection, startMs, wantsLogin }: Server): Standing {
    if (decided) return decided;
    const isStarting = startMs === undefined && !connection?.isClosed;
    if (!connection || isStarting) return { state: 'connecting' };
    const why = connection.ended ?? wantsLogin;
    const isLogin = why instanceof McpError && why.kind === 'auth';
    const failed = isLogin ? 'needs-auth' : 'failed';
    if (why) return { state: failed, reason: why.message };
    return { state: connection.server ? 'connected' : 'connecting' };
  }

  private decide(server: Server, state: ServerState, reason?: string): void {
    if (isForgotten(server)) return;
    server.decided = { state, reason };
  }

  private tellState(server: Server): void {
    const { onState } = this.options;
    const { told, entry } = server;
    const { state, reason } = this.stateOf(server);
    if (state === 'closed' || state === 'connecting') return;
    if (told?.state === state && told.reason === reason) return;
    server.told = { state, reason };
    this.safely(() => onState?.(entry.name, state, reason));
  }

  /** Starts a server again, whatever happened to it. */
  async reconnect(name: string): Promise<void> {
    const server = await this.replace(name);
    server.isWanted = true;
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
    const server: Server = { entry: old.entry, tools: new Map() };
    this.servers.set(name, server);
    this.forget(old);
    await old.connection?.close();
    return server;
  }

  /** Reads the configuration again. What is connected and unchanged goes on as it is; the rest
   *  ends, and what is new, has changed or had failed starts. Returns which started and ended. */
  async reload(): Promise<{ started: string[]; ended: string[] }> {
    await this.loading;
    await this.options.prepare?.();
    const before = [...this.servers.values()];
    const entries = [...this.readConfiguration().values()];
    const after = entries.map((entry) => this.keptOrNew(entry));
    this.servers = new Map();
    this.prefixes = new Map();
    for (const server of after) {
      const { name } = server.entry;
      const prefix = serverPrefix(name);
      if (!this.prefixes.has(prefix)) this.prefixes.set(prefix, name);
      this.servers.set(name, server);
    }
    const ended = before.filter((server) => !after.includes(server));
    const started = after.filter((server) => !before.includes(server));
    for (const server of ended) this.forget(server);
    await closeAll(ended);
    const starting = started.map((server) => this.connectOne(server));
    this.loading = Promise.all(starting).then(() => {});
    await this.loading;
    const names = (servers: Server[]) => servers.map(({ entry }) => entry.name);
    return { started: names(started), ended: names(ended) };
  }

  private keptOrNew(entry: ServerEntry): Server {
    const old = this.servers.get(entry.name);
    const isSame = old && isAlike(old.entry, entry);
    const isKept = isSame && isOnOffer(this.stateOf(old));
    if (!isKept) return { entry, tools: new Map() };
    old.entry = entry;
    return old;
  }

  /** Takes a server out of the table. Ignore anything that is still under way with it. */
  private forget(server: Server): void {
    clearTimeout(server.refreshTimer);
    clearTimeout(server.idleTimer);
    this.setTools(server, []);
    this.decide(server, 'closed');
  }

  /** One list after the other: a late one must not replace a newer one. */
  private async list(server: Server): Promise<void> {
    await server.listing;
    const listing = this.listNow(server);
    server.listing = listing.catch(() => {}); // the failure itself is thrown below
    await listing;
  }

  private async listNow(server: Server): Promise<void> {
    server.isStale = false; // what is announced from now on needs another look
    const startedAt = now();
    try {
      const tools = await server.connection!.listTools();
      if (isForgotten(server)) return;
      this.setTools(server, tools);
      this.keepKnown(server);
    } catch (error) {
      server.isStale = true;
      throw error;
    } finally {
      server.lookMs = now() - startedAt;
    }
  }

  private lookAgain(server: Server, what: Offer): void {
    if (what !== 'tools') return this.tellChanged(server, what);
    server.isStale = true;
    this.refreshSoon(server);
  }

  /** Servers may announce many changes at once, or one in answer to every look. So look a little
   *  later, and only when the look before is over. If that took long, later still: else a long list
   *  that keeps changing would take all our time. */
  private refreshSoon(server: Server): void {
    if (!server.connection?.server) return; // no requests before the handshake
    if (server.refreshTimer) return;
    const { lookMs = 0 } = server;
    const longMs = Math.min(4 * lookMs, MAX_REFRESH_DELAY_MS);
    const delayMs = Math.max(REFRESH_DELAY_MS, longMs);
    const timer = setTimeout(() => void this.refresh(server), delayMs);
    server.refreshTimer = timer.unref();
  }

  private async refresh(server: Server): Promise<void> {
    await server.listing;
    server.refreshTimer = undefined;
    if (server.decided) return; // closed meanwhile
    const failed = (error: unknown) => {
      server.connection!.warn('refresh', `did not list its tools again: ${textOf(error)}`);
    };
    if (server.isStale) await this.list(server).catch(failed); // else a call has looked already
    this.tellChanged(server, 'tools');
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

  /** Replaces the rows of one server. Its labels begin with a prefix that no other server has, so
   *  only two tools of its own can clash. A server that died keeps its rows: a call says why. */
  private setTools(server: Server, tools: Tool[]): void {
    this.definitions = undefined;
    for (const label of server.tools.keys()) {
      this.table.delete(label);
    }
    server.tools = new Map();
    for (const tool of tools) {
      const label = toolLabel(server.entry.name, tool.name);
      if (server.tools.has(label)) {
        const what = `has a tool that we leave out: another is called ${label}`;
        server.connection?.warn('label', what);
        continue;
      }
      server.tools.set(label, tool);
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
    if (server.asleep || server.waking) {
      options = { tool, ...options }; // what comes back may have changed
      await this.rouse(server);
    }
    return server.connection!.callTool(tool.name, args, options);
  }

  listResources(only?: string): Promise<Of<Resource>[]> {
    return this.gather('resources', (connection) => connection.listResources(), only);
  }

  listResourceTemplates(only?: string): Promise<Of<ResourceTemplate>[]> {
    return this.gather('templates', (connection) => connection.listResourceTemplates(), only);
  }

  listPrompts(only?: string): Promise<Of<Prompt>[]> {
    return this.gather('prompts', (connection) => connection.listPrompts(), only);
  }

  /** Of all servers that are connected, side by side. One that fails is left out, with a warning,
   *  unless it is the only one that is wanted. */
  private async gather<T>(
    what: string,
    list: Lister<T>,
    only?: string,
  ): Promise<Of<T>[]> {
    const isMeant = ({ name, state }: ServerStatus) =>
      only === undefined ? isOnOffer({ state }) : name === only;
    const meant = this.status().filter(isMeant);
    if (only !== undefined && meant.length === 0) await this.of(only); // throws
    const lists = meant.map(async ({ name: server }) => {
      const rows = await this.rowsOf(server, what, list, only);
      return rows.map((row): Of<T> => ({ ...row, server }));
    });
    return (await Promise.all(lists)).flat();
  }

  private async rowsOf<T>(
    server: string,
    what: string,
    list: Lister<T>,
    only?: string,
  ): Promise<T[]> {
    const asleep = this.servers.get(server)!.asleep;
    if (asleep && only === undefined) {
      const rows = asleep.lists?.[what] ?? [];
      return rows as T[];
    }
    const connection = await this.of(server);
    const rows = await list(connection).catch((error) => {
      if (only !== undefined) throw error;
      connection.warn(what, `did not list its ${what}: ${textOf(error)}`);
      return [];
    });
    this.keepList(server, what, rows);
    return rows;
  }

  async readResource(server: string, uri: string, options?: CallOptions) {
    return (await this.of(server)).readResource(uri, options);
  }

  async subscribe(server: string, uri: string, options?: CallOptions) {
    return (await this.of(server)).subscribe(uri, options);
  }

  async unsubscribe(server: string, uri: string, options?: CallOptions) {
    return (await this.of(server)).unsubscribe(uri, options);
  }

  async getPrompt(
    server: string,
    name: string,
    args?: Record<string, string>,
    options?: CallOptions,
  ) {
    return (await this.of(server)).getPrompt(name, args, options);
  }

  async complete(server: string, ...given: Parameters<McpConnection['complete']>) {
    return (await this.of(server)).complete(...given);
  }

  async setLogLevel(server: string, level: string, options?: CallOptions) {
    return (await this.of(server)).setLogLevel(level, options);
  }

  /** Its connection, after a start if it is asleep. */
  async of(server: string): Promise<McpConnection> {
    const found = this.servers.get(server);
    if (found?.asleep || found?.waking) return this.rouse(found);
    const connection = found?.connection;
    if (connection) return connection;
    throw new McpError('config', `no MCP server ${excerpt(server)} is running`);
  }

  private keepList(name: string, what: string, rows: unknown[]): void {
    const server = this.servers.get(name);
    if (!server) return;
    const lists = { ...server.lists, [what]: rows };
    this.keepKnown(server, lists);
  }

  /** For everything that is not a tool: resources, prompts, a request of your own. */
  connection(name: string): McpConnection | undefined {
    return this.servers.get(name)?.connection;
  }

  /** What the files say of a server, whether or not it runs. */
  entry(name: string): ServerEntry | undefined {
    return this.servers.get(name)?.entry;
  }

  status() {
    return [...this.servers.values()].map((server) => {
      const { entry, startMs, tools, connection } = server;
      const { config, ...origin } = entry;
      const { state, reason } = this.stateOf(server);
      return {
        ...server.asleep?.server,
        ...connection?.server,
        ...origin,
        state,
        reason,
        startMs,
        tools: tools.size,
        ...loading(asObject(config)),
        warnings: [...(connection?.warnings.values() ?? [])],
      };
    });
  }

  /** Closes everything side by side, also what is still starting. loadAndConnect can follow. */
  async disconnectAll(): Promise<void> {
    this.loading = undefined;
    const servers = [...this.servers.values()];
    for (const server of servers) this.forget(server);
    await closeAll(servers);
  }
}

async function closeAll(servers: Server[]): Promise<void> {
  const closing = servers.map(({ connection }) => connection?.close());
  await Promise.allSettled(closing);
}

/** Would both start the same thing, on the same authority? */
function isAlike(one: ServerEntry, two: ServerEntry): boolean {
  return areEqualIn(['config', 'authority', 'blocked'], one, two);
}

/** Closed by us: ignore anything that is still under way with it. */
function isForgotten({ decided }: Server): boolean {
  return decided?.state === 'closed';
}

/** Its tools can be called, now or when it has started. */
function isOnOffer({ state }: Standing): boolean {
  return state === 'connected' || state === 'asleep';
}

function definitionsOf({ entry, tools }: Server): ToolDefinition[] {
  return [...tools].map(([name, tool]) => ({
    name,
    description: tool.description ?? '',
    inputSchema: tool.inputSchema,
    server: entry.name,
    tool,
  }));
}
