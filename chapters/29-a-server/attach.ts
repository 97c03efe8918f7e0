// attach.ts: the way to a server that `up` keeps running. To a connection it is a transport like any
// other: a socket in the place of a process and its pipes.

import { rmSync } from 'node:fs';
import { homedir } from 'node:os';
import {
  asObject,
  Connection,
  isObject,
  isWindows,
  McpError,
  show,
  textOf,
  VERSION,
  type Json,
  type Message,
  type Transport,
  type TransportEvents,
  type TransportFactory,
} from '../../mcp.ts';
import { canonicalJson, sha256 } from '../17-the-gate/digest.ts';
import { PrivateFile } from '../17-the-gate/private-file.ts';
import { UnixSocketTransport } from '../25-other-pipes/unix-socket.ts';

/** The last word on a connection: the server has ended, and why. */
export const ENDED = 'notifications/up/ended';

/** What a client must know. The file is for the user alone, and so is the folder of the socket. */
export type UpFile = {
  version: number;
  folder: string; // whose servers they are
  token: string;
  socket: string;
  variables: string[]; // that the entries of the servers mention
};

const isSound = ({ variables }: Json) => Array.isArray(variables);

export function upFileOf(folder: string): PrivateFile<UpFile> {
  const name = `up-${encodeURIComponent(folder).slice(-200)}.json`;
  const empty = { version: 1, folder: '', token: '', socket: '', variables: [] };
  return new PrivateFile<UpFile>(homedir(), name, empty, isSound);
}

export function upIn(folder: string): UpFile | undefined {
  try {
    const found = upFileOf(folder).read();
    return found.folder === folder ? found : undefined; // another may have the same name
  } catch {
    return undefined;
  }
}

/** Of the configuration with which a server starts. Each one is told for which project, which makes it
 *  no other server. */
export function launchPrint({ env, ...config }: Json): string {
  const { CLAUDE_PROJECT_DIR: _, ...variables } = asObject(env);
  return sha256(canonicalJson({ ...config, variables }));
}

/** The transport of chapter 25, after a hello. */
export class UpTransport implements Transport {
  private socket!: Transport;
  private events?: TransportEvents;
  private ended?: Error;

  /** Shows the token, and says which server is meant. Rejects if that is refused. */
  async hello({ socket, token }: UpFile, wanted: Json = {}): Promise<Json> {
    const params = { ...wanted, token, version: VERSION };
    this.socket = new UnixSocketTransport(`${wanted.server}`, { path: socket }, Infinity);
    return new Promise((resolve, reject) => {
      const hear = (message: unknown) => {
        const { method, params: told, result, error } = asObject(message);
        if (method === ENDED) this.ended = new McpError('closed', show(asObject(told).message));
        else if (this.events) this.events.message(message);
        else if (isObject(result)) resolve(result);
        else reject(new Error(show(asObject(error).message)));
      };
      const started = this.socket.start({
        message: hear,
        dropped: (...what) => this.events?.dropped?.(...what),
        closed: (why) => {
          this.ended ??= why;
          reject(why);
          this.events?.closed(this.ended);
        },
      });
      const hello: Message = { jsonrpc: '2.0', id: 0, method: 'up/hello', params };
      started.then(() => this.socket.send(hello)).catch(reject);
    });
  }

  async start(events: TransportEvents): Promise<void> {
    if (this.ended) throw this.ended;
    this.events = events;
  }

  send(message: Message): Promise<void> {
    return this.socket.send(message);
  }

  close(): Promise<void> {
    return this.socket.close();
  }
}

/** A connection to the program itself, to ask how it is, or to end it. */
export async function deskOf(file: UpFile): Promise<Connection> {
  const transport = new UpTransport();
  await transport.hello(file);
  const desk = new Connection('up', { type: 'up' }, { transports: { up: () => transport } });
  await desk.connect();
  return desk;
}

/** Does it answer? */
export async function isUp(file: UpFile): Promise<boolean> {
  const transport = new UpTransport();
  const isThere = await transport.hello(file).then(
    () => true,
    () => false,
  );
  await transport.close();
  return isThere;
}

// ─── For every command ─────────────────────────────────────────────────────────────────────────

type Transports = Record<string, TransportFactory>;
type Warn = (text: string) => void;

/** The same transports, but a server that is up as exactly this entry is not started again. */
export function throughUp(transports: Transports, warn: Warn): Transports {
  const through = (make: TransportFactory): TransportFactory => {
    const factory: TransportFactory = (server, config, most) => {
      const wanted = { server, print: launchPrint(config) };
      return eitherWay(wanted, make(server, config, most), warn);
    };
    return Object.assign(factory, { words: make.words });
  };
  const rows = Object.entries(transports).map(([type, make]) => [type, through(make)]);
  return Object.fromEntries(rows);
}

/** By the program that is up in this folder, or in the home folder, or by none. */
function eitherWay(wanted: Json, direct: Transport, warn: Warn): Transport {
  let chosen = direct;
  const choose = async (file: UpFile) => {
    const transport = new UpTransport();
    try {
      const { config } = await transport.hello(file, wanted);
      if (config) chosen = transport;
      else await transport.close();
    } catch (error) {
      const isGone = error instanceof McpError && error.kind === 'unreachable';
      if (isGone) forget(file);
      const why = isGone ? 'what was up is gone' : textOf(error);
      // In the home folder there may be another one of the same name.
      if (file.folder === process.cwd()) warn(`${wanted.server} is connected directly: ${why}`);
      await transport.close();
    }
  };
  return {
    start: async (events) => {
      const files = [process.cwd(), homedir()].flatMap((folder) => upIn(folder) ?? []);
      for (const file of files) if (chosen === direct) await choose(file);
      return chosen.start(events);
    },
    send: (...given) => chosen.send(...given),
    close: () => chosen.close(),
    lastWords: () => chosen.lastWords?.() ?? '',
    get hasStreamPerRequest() {
      return chosen.hasStreamPerRequest;
    },
  };
}

/** Of a program that has ended, unless another has taken its place. */
export function forget({ folder, token, socket }: Pick<UpFile, 'folder' | 'token' | 'socket'>) {
  if (upIn(folder)?.token === token) rmSync(upFileOf(folder).file, { force: true });
  if (!isWindows) rmSync(socket, { force: true });
}

/** Of a variable: the value itself may be secret, and who listens may be another by now. */
export function variablePrint(variable: string, token: string): string {
  return sha256(JSON.stringify([token, variable, process.env[variable]]));
}

/** For one call by a script: the program that is up reads the configuration, which we then need not
 *  load. Nothing if it is to be connected, or complained about, in the usual way. */
export async function attachEarly(server: string) {
  const file = upIn(process.cwd());
  if (!file) return undefined;
  const env = Object.fromEntries(
    file.variables.map((name) => [name, variablePrint(name, file.token)]),
  );
  const transport = new UpTransport();
  const { config } = await transport.hello(file, { server, env }).catch((): Json => ({}));
  if (isObject(config)) return { transport, config };
  await transport.close();
  return undefined;
}
