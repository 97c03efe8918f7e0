// connect.ts: the whole client in one line, for a program of your own: every transport, both eras,
// retries, the logins that are kept here. It has the rows of our program; in the place of the person
// at the terminal are the functions that you give.

import { basename } from 'node:path';
import { McpConnection, McpError, textOf } from '../mcp.ts';
import type { CallOptions, ConnectionOptions, Extension, Json } from '../mcp.ts';
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
export type {
  CallOptions,
  ConnectionOptions,
  ErrorKind,
  Json,
  Tool,
  ToolResult,
} from '../mcp.ts';
export type { Elicitation, ElicitResult };

export type ConnectOptions = ConnectionOptions & {
  name?: string; // what errors and warnings call the server
  /** A server asks the user something. Without this it hears that there is no one to ask. */
  onElicit?: (asked: Elicitation, signal: AbortSignal) => Promise<ElicitResult> | ElicitResult;
  /** A server wants a model to answer. Gets and returns what the specification says. */
  onSampling?: (request: Json, signal: AbortSignal) => Promise<Json> | Json;
  /** The folders that a server is told when it asks for them. Without this it cannot ask. */
  roots?: string[];
  /** Of every call of a tool that has no `onProgress` of its own. */
  onProgress?: (progress: Json) => void;
};

/** An address, the name of an entry in your configuration, or an entry as such a file has it. */
export async function connect(
  target: string | Json,
  options: ConnectOptions = {},
): Promise<ConnectedServer> {
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
  listResources(): Promise<offers.Resource[]> {
    return offers.listResources(this);
  }

  listResourceTemplates(): Promise<offers.ResourceTemplate[]> {
    return offers.listResourceTemplates(this);
  }

  readResource(uri: string, options?: CallOptions): Promise<offers.ResourceContents[]> {
    return offers.readResource(this, uri, options);
  }

  /** Its changes come as `notifications/resources/updated`, to the handlers of an extension. */
  subscribe(uri: string): Promise<void> {
    return offers.subscribe(this, uri);
  }

  unsubscribe(uri: string): Promise<void> {
    return offers.unsubscribe(this, uri);
  }

  listPrompts(): Promise<offers.Prompt[]> {
    return offers.listPrompts(this);
  }

  getPrompt(name: string, args?: Record<string, string>): Promise<offers.PromptMessage[]> {
    return offers.getPrompt(this, name, args);
  }

  completeArgument(
    of: offers.Reference,
    argument: { name: string; value: string },
  ): Promise<string[]> {
    return offers.completeArgument(this, of, argument);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

// ─── Which server ───────────────────────────────────────────────────────────────────────────────

async function configOf(target: string | Json, rows: Composition, warn: (text: string) => void) {
  if (typeof target !== 'string') return target;
  if (target.includes('://')) return { url: target };
  try {
    return (await approved(target, { warn }, rows, nobody)).config;
  } catch (error) {
    throw new McpError('config', textOf(error));
  }
}

function nameOf(target: string | Json): string {
  if (typeof target === 'string' && !target.includes('://')) return target;
  const { url, command } = typeof target === 'string' ? { url: target } : target;
  if (typeof command === 'string') return basename(command);
  return URL.canParse(`${url}`) ? new URL(`${url}`).host : 'server'; // the rest may hold a key
}

// ─── What it may ask ────────────────────────────────────────────────────────────────────────────

/** Without a person and a model the program's own rows offer none of this. Names of their own: two
 *  extensions of one name are an error. */
function answering({ onElicit, onSampling, onProgress, onWarning }: ConnectOptions): Extension[] {
  return [
    ...(onProgress ? [progress(onProgress)] : []),
    ...(onElicit ? [eliciting(onElicit, onWarning)] : []),
    ...(onSampling ? [sampling(onSampling)] : []),
  ];
}

/** The answer is checked by the form before it is sent. After a visit to an address, the function
 *  returns when the user is back. */
function eliciting(
  onElicit: NonNullable<ConnectOptions['onElicit']>,
  warn: ConnectOptions['onWarning'],
): Extension {
  const person = { ...nobody, isThere: true, choose: async () => ({ key: 'd' }) };
  const before = async (asked: Elicitation, signal: AbortSignal) => onElicit(asked, signal);
  const row = elicitation({ person, problemsFound, warn, hooks: { before } });
  return function onElicit(connection) {
    return row(connection);
  };
}

function sampling(sample: NonNullable<ConnectOptions['onSampling']>): Extension {
  return function onSampling(connection) {
    const answer = async (request: Json, signal: AbortSignal) => sample(request, signal);
    return {
      capabilities: { sampling: {} },
      handlers: {
        'sampling/createMessage': (params, { signal }) =>
          whileAsking(connection, params, answer(params, signal)),
      },
    };
  };
}

function progress(onProgress: (progress: Json) => void): Extension {
  return function defaultProgress() {
    return {
      layer: (call, next) => {
        if (call.method !== 'tools/call') return next(call);
        return next({ ...call, options: { onProgress, ...call.options } });
      },
    };
  };
}
