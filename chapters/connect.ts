// connect.ts: the whole client in one line, for a program of your own: every transport, both eras,
// retries, the logins that are kept here. It has the rows of our program; in the place of the person
// at the terminal are the functions that you give.

import { basename } from 'node:path';
import { asObject, excerpt, isObject, McpConnection, McpError, ownValue, textOf } from '../mcp.ts';
import type { CallOptions, ConnectionOptions, Extension, Json } from '../mcp.ts';
import type { ToolResult as AnyResult } from '../mcp.ts';
import { nearestHint } from './16-hands/nearest.ts';
import { Roots } from './16-hands/paths.ts';
import { nobody } from './17-the-gate/person.ts';
import { approved } from './19-the-terminal/entries.ts';
import { forConnections, plainHost, type Composition } from './19-the-terminal/host.ts';
import { whileAsking } from './23-the-server-asks/asking.ts';
import { elicitation } from './23-the-server-asks/elicitation.ts';
import type { Elicitation, ElicitResult } from './23-the-server-asks/elicitation.ts';
import { problemsFound } from './23-the-server-asks/schema.ts';
import * as offers from './24-more-than-tools/offers.ts';
import { compose } from './composition.ts';

export { McpConnection, McpError, McpManager, RpcError } from '../mcp.ts';
export type { CallOptions, ConnectionOptions, ErrorKind, Json, Tool } from '../mcp.ts';
export type { Elicitation, ElicitResult };

/** What every server's entry may say. */
type AnyTarget = {
  /** Milliseconds for a call; beats the option `callTimeoutMs`. */
  timeout?: number;
  /** How to open the connection. Without it, the server is asked. */
  era?: 'handshake' | 'stateless';
  /** How often a server that dies is started again. Without it: 4 times. */
  reconnect?: { maxAttempts?: number; delayMs?: number };
  /** Milliseconds of silence after which it is pinged; 0 for never. */
  heartbeat?: number;
};

/** A program on this machine, which is started, and talks on stdin and stdout. */
export type StdioTarget = AnyTarget & {
  type?: 'stdio';
  /** The program alone, such as `npx`. No shell reads it. */
  command: string;
  /** The words behind it. */
  args?: string[];
  /** Its variables. It inherits PATH, HOME and a few more, but no key: name what it needs. */
  env?: Record<string, string | undefined>;
  /** The folder where it starts. Without it: that of this process. */
  cwd?: string;
};

/** A server at an address. */
export type UrlTarget = AnyTarget & {
  /** Without it, the address decides between `http` (which finds an `sse` itself) and `ws`. */
  type?: 'http' | 'sse' | 'ws';
  /** Such as `https://example.com/mcp`. */
  url: string;
  /** Sent with every request, such as `{ authorization: 'Bearer …' }`. */
  headers?: Record<string, string | undefined>;
  /** A program that prints such headers as JSON. */
  headersHelper?: string | string[];
  /** For logins, as in a file of the configuration. */
  oauth?: Json;
};

export type ServerTarget = StdioTarget | UrlTarget;

/** What a server puts into a result. A server may send another `type`, which is kept as it came. */
export type ContentBlock = { annotations?: Json; _meta?: Json } & (
  | { type: 'text'; text: string }
  | { type: 'image' | 'audio'; data: string; mimeType: string } // data is base64
  | { type: 'resource'; resource: { uri: string; mimeType?: string; text?: string; blob?: string } }
  | { type: 'resource_link'; uri: string; name: string; mimeType?: string }
);
/** `text` is all its blocks in words. With `isError` the tool has failed, and says why in them. */
export type ToolResult = Omit<AnyResult, 'content'> & { content: ContentBlock[] };

export type ConnectOptions = ConnectionOptions & {
  /** What errors and warnings call the server. Without it: its command, or its host. */
  name?: string;
  /** A server asks the user something: `{ action: 'accept', content }`, or 'decline', or 'cancel'.
   *  Without this it hears that there is no one to ask. */
  onElicit?: (asked: Elicitation, signal: AbortSignal) => Promise<ElicitResult> | ElicitResult;
  /** A server wants a model to answer: `{ role, model, content }`. Without this it cannot ask. */
  onSampling?: (request: Json, signal: AbortSignal) => Promise<Json> | Json;
  /** The folders that a server is told when it asks for them. Without this it cannot ask. */
  roots?: string[];
  /** Of every call of a tool that has no `onProgress` of its own. Without it: not asked for. */
  onProgress?: (progress: Json) => void;
  /** For the handshake, and again for each list. Without it: MCP_TIMEOUT, or 15,000. */
  handshakeTimeoutMs?: number;
  /** For a call; each sign of progress starts it again. Without it: MCP_TOOL_TIMEOUT, or 60,000. */
  callTimeoutMs?: number;
  /** For a call, however much progress it makes. Without it: 600,000. */
  maxCallMs?: number;
  /** Of one message of the server. Without it: 64 MiB. */
  maxLineBytes?: number;
  /** Transports of your own, by the `type` of a target. Without it: stdio, http, sse, ws. */
  transports?: ConnectionOptions['transports'];
  /** What is added around the connection, the first outermost. Without it: nothing of yours. */
  extensions?: Extension[];
  /** Sees every message, in both directions. Without it: they are not shown. */
  onWire?: ConnectionOptions['onWire'];
  /** What a server writes to stderr. Without it: shown only when it dies. */
  onStderr?: ConnectionOptions['onStderr'];
  /** Without it: to stderr. */
  onWarning?: (warning: string) => void;
};

/** Every option, and what it is. */
const OPTIONS: Record<keyof ConnectOptions, string> = {
  name: 'string',
  onElicit: 'function',
  onSampling: 'function',
  roots: 'list',
  onProgress: 'function',
  handshakeTimeoutMs: 'number',
  callTimeoutMs: 'number',
  maxCallMs: 'number',
  maxLineBytes: 'number',
  transports: 'object',
  extensions: 'list',
  onWire: 'function',
  onStderr: 'function',
  onWarning: 'function',
  expectListeners: 'function',
};

/** An address, the name of an entry in your configuration, or an entry as such a file has it. */
export async function connect(
  target: string | ServerTarget,
  options: ConnectOptions = {},
): Promise<ConnectedServer> {
  mustBeOptions(options);
  mustBeTarget(target);
  const { onWarning: warn = console.error, roots, name, ...rest } = options;
  const [folder = process.cwd(), ...more] = roots ?? [];
  const composition = compose(plainHost({ warn, roots: new Roots(folder, more) }));
  const config = await configOf(target, composition, warn);
  const { transports, extensions, ...made } = forConnections(composition);
  const entry = roots ? config : { ...config, roots: false }; // the word that keeps them from a server
  const server = new ConnectedServer(name ?? nameOf(target), entry, {
    ...made,
    ...rest,
    onWarning: warn,
    transports: { ...transports, ...options.transports },
    extensions: [
      ...(options.extensions ?? []),
      ...answering({ ...options, onWarning: warn }),
      ...extensions,
    ],
  });
  try {
    await server.connect();
    await server.initialize();
    return server;
  } catch (error) {
    await server.close();
    throw error;
  }
}

/** A connection with what servers have besides tools. `await using` closes it; where that word is
 *  missing (Node 20 and 22), `try … finally` does. */
export class ConnectedServer extends McpConnection {
  override callTool(name: string, args?: Json, options?: CallOptions): Promise<ToolResult> {
    return super.callTool(name, args, options) as Promise<ToolResult>;
  }

  listResources() {
    return offers.listResources(this);
  }

  listResourceTemplates() {
    return offers.listResourceTemplates(this);
  }

  readResource(uri: string, options?: CallOptions) {
    return offers.readResource(this, uri, options);
  }

  /** Its changes come as `notifications/resources/updated`, to the handlers of an extension. */
  subscribe(uri: string) {
    return offers.subscribe(this, uri);
  }

  unsubscribe(uri: string) {
    return offers.unsubscribe(this, uri);
  }

  listPrompts() {
    return offers.listPrompts(this);
  }

  getPrompt(name: string, args?: Record<string, string>) {
    return offers.getPrompt(this, name, args);
  }

  completeArgument(of: offers.Reference, argument: { name: string; value: string }) {
    return offers.completeArgument(this, of, argument);
  }

  [Symbol.asyncDispose]() {
    return this.close();
  }
}

// ─── Which server ───────────────────────────────────────────────────────────────────────────────

/** A misspelt option would be ignored in silence. */
function mustBeOptions(options: ConnectOptions): void {
  const names = Object.keys(OPTIONS);
  for (const [name, value] of Object.entries(options)) {
    const wanted = ownValue<string>(OPTIONS, name);
    const hint = nearestHint(name, names, `it has ${names.join(', ')}`);
    if (!wanted) throw new McpError('config', `connect has no option ${excerpt(name)}; ${hint}`);
    const kind = Array.isArray(value) ? 'list' : typeof value;
    if (value === undefined || kind === wanted) continue;
    throw new McpError('config', `the option ${name} is a ${wanted}, not a ${kind}`);
  }
}

function mustBeTarget(target: unknown): void {
  const { command, url, type, env, headers } = asObject(target);
  if (typeof target === 'string' ? target === '' : (command ?? url ?? type) === undefined) {
    const wanted = '{ command, args }, { url }, an address, or the name of an entry';
    const given = isObject(target) ? `{ ${Object.keys(target).join(', ')} }` : excerpt(target);
    throw new McpError('config', `connect needs ${wanted}, and got ${given}`);
  }
  for (const [word, value] of Object.entries({ ...asObject(env), ...asObject(headers) }))
    if (value === undefined)
      throw new McpError('config', `${word} has no value; is it set where this program runs?`);
}

async function configOf(target: string | Json, rows: Composition, warn: (text: string) => void) {
  if (typeof target !== 'string') return target;
  if (target.includes('://')) return { url: target };
  try {
    return (await approved(target, { warn }, rows, nobody)).config;
  } catch (error) {
    throw new McpError('config', textOf(error));
  }
}

function nameOf(target: string | ServerTarget): string {
  if (typeof target === 'string' && !target.includes('://')) return target;
  const { url, command }: Json = typeof target === 'string' ? { url: target } : target;
  if (typeof command === 'string') return basename(command);
  return URL.canParse(`${url}`) ? new URL(`${url}`).host : 'server'; // the rest may hold a key
}

// ─── What it may ask ────────────────────────────────────────────────────────────────────────────

/** Without a person and a model the program's own rows offer none of this. Names of their own: two
 *  extensions of one name are an error. */
const answering = (options: ConnectOptions): Extension[] =>
  [progress(options), eliciting(options), sampling(options)].flat();

/** The answer is checked by the form before it is sent. After a visit to an address, the function
 *  returns when the user is back. */
function eliciting({ onElicit, onWarning }: ConnectOptions): Extension[] {
  if (!onElicit) return [];
  const person = { ...nobody, isThere: true, choose: async () => ({ key: 'd' }) };
  const warn = (what: string) => onWarning?.(`onElicit: ${what}`);
  const before = async (asked: Elicitation, signal: AbortSignal): Promise<ElicitResult> => {
    const answer = await onElicit(asked, signal);
    if (/^(accept|decline|cancel)$/.test(`${asObject(answer).action}`)) return answer;
    const wanted = `the action is 'accept', 'decline' or 'cancel'`;
    warn(`it returned ${excerpt(answer)}, so the server hears "cancel"; ${wanted}`);
    return { action: 'cancel' };
  };
  const row = elicitation({ person, problemsFound, warn, hooks: { before } });
  const onElicitation: Extension = (connection) => row(connection);
  return [onElicitation];
}

/** A server that gets something else than such an answer may never answer us. */
function sampling({ onSampling: sample, onWarning: warn }: ConnectOptions): Extension[] {
  if (!sample) return [];
  const answer = async (request: Json, signal: AbortSignal) => {
    const given = await sample(request, signal);
    const missing = ['role', 'model', 'content'].find((word) => !asObject(given)[word]);
    if (missing === undefined) return given;
    const what = `onSampling returned ${excerpt(given)}: ${missing} is missing`;
    warn?.(`${what}; it returns { role: 'assistant', model, content: { type: 'text', text } }`);
    throw new Error(what);
  };
  const onSampling: Extension = (connection) => ({
    capabilities: { sampling: {} },
    handlers: {
      'sampling/createMessage': (params, { signal }) =>
        whileAsking(connection, params, answer(params, signal)),
    },
  });
  return [onSampling];
}

function progress({ onProgress }: ConnectOptions): Extension[] {
  const defaultProgress: Extension = () => ({
    layer: (call, next) => {
      if (call.method !== 'tools/call') return next(call);
      return next({ ...call, options: { onProgress, ...call.options } });
    },
  });
  return onProgress ? [defaultProgress] : [];
}
