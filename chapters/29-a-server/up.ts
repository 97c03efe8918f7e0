// up.ts: servers that live between calls. Each client comes through a socket, and behind it is the one
// connection to the server: two connections, back to back.

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import {
  asList,
  asObject,
  Connection,
  isStateless,
  isWindows,
  McpManager,
  now,
  McpError,
  RpcError,
  textOf,
  VERSION,
  type Extension,
  type Handler,
  type Incoming,
  type Json,
  type McpConnection,
} from '../../mcp.ts';
import { fingerprint, Trust } from '../17-the-gate/trust.ts';
import { forConnections, loadHere, type Composition } from '../19-the-terminal/host.ts';
import { SERVER_INFO_KEY } from '../22-no-handshake/era.ts';
import { SUBSCRIPTION_KEY } from '../22-no-handshake/listen-for-changes.ts';
import { AskedBack, plainNameOf } from './asked-back.ts';
import { variablePrint, ENDED, forget, isUp, launchPrint, upFileOf, upIn } from './attach.ts';
import { LineTransport } from './protocol/line-transport.ts';
import { isSameSecret } from './request-state.ts';

/** What a client may send on to its server. */
const PASSED = [
  ...['tools/list', 'tools/call', 'prompts/list', 'prompts/get', 'completion/complete'],
  ...['resources/list', 'resources/templates/list', 'resources/read', 'resources/subscribe'],
  ...['resources/unsubscribe', 'logging/setLevel'],
  ...['tasks/get', 'tasks/list', 'tasks/result', 'tasks/update', 'tasks/cancel'],
];
const MAY_ASK = /^(tools\/call|prompts\/get|resources\/read|tasks\/result)$/;
const NEWS = /^notifications\/(?!progress|cancelled|subscriptions|up\/)/; // what is of up is ours
/** What is done here, once for all clients. Everything else is theirs. */
const OURS = /^(heartbeat|subscribeInBothEras|inOrder|mirrorArguments|listenForChanges|eitherEra)$/;
/** After these a server has to be started again. */
const LOSSES = ['start', 'closed', 'unreachable', 'expired'];
const PATIENCE_MS = 24 * 3_600_000; // the client has limits of its own, and cancels
const PATIENT = { callTimeoutMs: PATIENCE_MS, maxCallMs: PATIENCE_MS };
const IDLE_MS = 30 * 60_000;
const FIRST_MS = 10_000; // who has started us says at once which servers are wanted
const LOOK_MS = 2000;
const SIGN_OF_LIFE_MS = 1000;
const MAX_PATH = 100; // bytes; Node would cut off the rest, and listen in another folder
const RESTART = 'for a new start: mcp-by-hand down, then up';

export class Up {
  readonly ended: Promise<void>;
  private end!: () => void;
  private composition: Composition;
  private folder = process.cwd();
  private token = randomBytes(32).toString('hex');
  private manager: McpManager;
  private lastStart: Promise<unknown> = Promise.resolve();
  private asked = new AskedBack();
  private names?: Set<string>; // of the servers that are wanted; if empty, all
  private allowed: string[] = [];
  private warnings: string[] = []; // of the start that is under way
  private clients = new Map<Connection, string>(); // each with its server
  private staying = new Set<Connection>(); // those with which we end
  private starting = new Map<string, Promise<void>>();
  private idleMs = IDLE_MS;
  private usedAt = now();

  constructor(composition: Composition) {
    this.composition = composition;
    this.ended = new Promise((done) => (this.end = done));
    const { extensions, ...others } = forConnections(composition);
    const ours = extensions.map((each) =>
      OURS.test(plainNameOf(each)) ? each : this.asked.instead(each),
    );
    this.manager = new McpManager({
      ...others,
      ...PATIENT,
      extensions: [...ours, this.tellEnd()],
      prepare: () => composition.sources?.prepare?.(),
      load: (report) => this.entries(report),
      approve: (entry) => this.trust.approve(entry),
      onWarning: (text) => this.warnings.push(text),
      onWire: (direction, message, name) => direction === 'in' && this.tellAll(name, message),
    });
  }

  private get trust(): Trust {
    const warn = (text: string) => this.warnings.push(text);
    return new Trust({ warn, allowServers: this.allowed });
  }

  private entries(report: (problem: string) => void) {
    const all = [...loadHere(this.composition, report)];
    return new Map(all.filter(([name]) => !this.names?.size || this.names.has(name)));
  }

  // ─── Beginning and end ───────────────────────────────────────────────────────────────────────

  /** False if another program has this place already, or takes it at the same moment. */
  async listen(): Promise<boolean> {
    const { folder, token } = this;
    const own = upFileOf(folder);
    own.read(); // is the folder ours, if it is there?
    mkdirSync(own.folder, { recursive: true, mode: 0o700 });
    const socket = socketIn(own.folder);
    const listener = createServer((wire) => this.meet(wire));
    await once(listener.listen(socket), 'listening');
    process.once('exit', () => forget({ folder, token, socket }));
    for (let isOurs = false; !isOurs; ) {
      const before = own.read();
      if (before.folder === folder && (await isUp(before))) return false;
      own.change((file) => {
        isOurs = file.token === before.token;
        if (isOurs) Object.assign(file, { folder, token, socket });
      });
    }
    setInterval(() => this.look(), LOOK_MS);
    return true;
  }

  /** Else another program has taken our place. */
  private isFound() {
    return upIn(this.folder)?.token === this.token;
  }

  private look() {
    const limit = this.names ? this.idleMs : FIRST_MS;
    const isIdle = this.clients.size === 0 && now() - this.usedAt > limit;
    if (isIdle || !this.isFound()) void this.stop();
  }

  private async stop() {
    await this.manager.disconnectAll();
    this.end();
  }

  /** One start after the other: each answers when its servers are there. */
  private start(wanted: Json): Promise<Json> {
    const started = this.lastStart.then(() => this.startThese(wanted));
    this.lastStart = started.catch(() => {});
    return started;
  }

  /** Starts what is not there yet, has changed, or had failed. Ends if there is nothing to keep. */
  private async startThese({ names, allowServers, idleMs }: Json): Promise<Json> {
    const wanted = asList(names).map(String);
    const isAll = wanted.length === 0 || this.names?.size === 0;
    this.names = new Set(isAll ? [] : [...(this.names ?? []), ...wanted]);
    this.allowed.push(...asList(allowServers).map(String));
    this.idleMs = Number(idleMs ?? this.idleMs);
    this.warnings = [];
    await this.manager.reload();
    const { warnings } = this;
    const all = this.manager.status();
    if (!all.some(({ state }) => state === 'connected')) setImmediate(() => this.stop());
    const configs = all.map(({ name }) => this.manager.entry(name)!.config);
    const mentioned = [...JSON.stringify(configs).matchAll(/\$\{(\w+)/g)];
    const variables = mentioned.map(([, name]) => name!);
    upFileOf(this.folder).change((file) => Object.assign(file, { variables }));
    return { ...this.status(), warnings };
  }

  private status(): Json {
    const all = this.manager.status();
    const servers = all.map(({ name, state, reason }) => ({ name, state, reason }));
    return { pid: process.pid, clients: this.clients.size, servers };
  }

  // ─── A client ────────────────────────────────────────────────────────────────────────────────

  private meet(wire: Socket) {
    const transports = { up: () => new LineTransport(wire, wire) };
    const options = { ...PATIENT, transports, extensions: [this.relay()] };
    void new Connection('client', { type: 'up' }, options).connect();
  }

  private relay(): Extension {
    return (client) => {
      const server = () => this.manager.of(this.clients.get(client)!);
      const pass =
        (method: string) =>
        (params: Json, { signal }: Incoming) =>
          this.pass(client, method, params, signal);
      const known =
        (handler: Handler): Handler =>
        (params, incoming) => {
          if (this.clients.has(client)) return handler(params, incoming);
          throw new RpcError(-32600, 'say hello first');
        };
      const methods: Record<string, Handler> = {
        'up/status': () => this.status(),
        'up/start': (params) => this.start(params),
        'up/stay': () => void this.staying.add(client),
        'up/stop': () => void setImmediate(() => this.stop()),
        initialize: () => greeting(server()),
        'server/discover': () => selfPortrait(server()),
        'subscriptions/listen': (params, incoming) => listenFor(client, server(), params, incoming),
        ...Object.fromEntries(PASSED.map((method) => [method, pass(method)])),
      };
      const guarded = Object.entries(methods).map(([method, each]) => [method, known(each)]);
      return {
        handlers: {
          ...Object.fromEntries(guarded),
          'up/hello': (params) => this.admit(client, params),
        },
        closed: () => this.left(client),
      };
    };
  }

  private async admit(client: Connection, params: Json): Promise<Json> {
    if (!isSameSecret(`${params.token}`, this.token)) {
      setImmediate(() => client.close());
      throw new RpcError(-32600, 'this is not the token');
    }
    const config = await this.configFor(params);
    this.clients.set(client, `${params.server ?? ''}`);
    return { config };
  }

  private left(client: Connection) {
    this.usedAt = now();
    this.clients.delete(client);
    if (this.staying.delete(client) && this.staying.size === 0) void this.stop();
  }

  /** Of the server that is meant, if it is up, and exactly the one that is meant. */
  private async configFor({ server, version, print, env }: Json) {
    const name = `${server}`;
    const stateNow = () => this.manager.status().find((each) => each.name === name)?.state;
    if (stateNow() === 'connecting') await this.manager.loadAndConnect();
    if (stateNow() === 'failed' || this.starting.has(name)) await this.startAgain(name);
    if (stateNow() !== 'connected') return undefined;
    const { config } = this.manager.of(name);
    if (version !== VERSION) throw new RpcError(-32600, `up is version ${VERSION}; ${RESTART}`);
    const isSame = print
      ? print === launchPrint(config)
      : await this.isUnchanged(name, asObject(env));
    if (isSame) return config;
    throw new RpcError(-32600, `up has it with another entry, or other variables; ${RESTART}`);
  }

  /** One that has died, once for all that want it. */
  private startAgain(name: string) {
    const start = () => this.manager.reconnect(name).finally(() => this.starting.delete(name));
    const starting = this.starting.get(name) ?? start();
    this.starting.set(name, starting);
    return starting;
  }

  /** For a client that has not read the files: is it still the entry that may run here? */
  private async isUnchanged(name: string, env: Json) {
    const entry = this.entries(() => {}).get(name);
    const mayRun = entry && !entry.blocked && (await this.trust.approve(entry)) === true;
    const running = this.manager.entry(name)!;
    const isSame = mayRun && fingerprint(entry) === fingerprint(running);
    const { variables } = upIn(this.folder)!;
    const hasSame = variables.every((each) => env[each] === variablePrint(each, this.token));
    return isSame === true && entry.authority === running.authority && hasSame;
  }

  // ─── A request, and what becomes of it ───────────────────────────────────────────────────────

  /** In the later era a question is a result, and so the client's. Before, it comes as a request: to
   *  the client at whose call the server works. */
  private pass(client: Connection, method: string, params: Json, signal: AbortSignal) {
    const name = this.clients.get(client)!;
    const server = this.manager.of(name);
    const request = () =>
      again(server, client, method, params, signal).catch((error) => refuse(server, method, error));
    if (isStateless(server.server) || !MAY_ASK.test(method)) return request();
    const ask = (...question: [string, Json, AbortSignal]) => again(client, server, ...question);
    const waiting = signsOfLife(client, params);
    return this.asked
      .during(name, { client, ask, signal }, () => {
        clearInterval(waiting);
        return request();
      })
      .finally(() => clearInterval(waiting));
  }

  /** What a server says by itself. */
  private tellAll(name: string, message: unknown) {
    const { id, method, params } = asObject(message);
    if (id === undefined && NEWS.test(`${method}`))
      for (const client of this.clientsOf(name)) notify(client, `${method}`, asObject(params));
  }

  private clientsOf(name: string) {
    const all = [...this.clients].filter(([, server]) => server === name);
    return all.map(([client]) => client);
  }

  /** A server that dies takes its clients' connections along. So they do what they do after any end:
   *  start it again, and look at its tools before they call one. */
  private tellEnd(): Extension {
    const tell = (name: string, { message }: Error) => {
      for (const client of this.clientsOf(name)) {
        notify(client, ENDED, { message });
        void client.close();
      }
    };
    return ({ serverName }) => ({ closed: (why) => tell(serverName, why) });
  }
}

/** In a folder that only we can enter. On Windows a pipe has none, and the token is all. */
function socketIn(folder: string) {
  const name = `up-${randomBytes(8).toString('hex')}`;
  if (isWindows) return `\\\\.\\pipe\\mcp-by-hand-${name}`;
  const path = join(folder, name);
  if (Buffer.byteLength(path) <= MAX_PATH) return path;
  throw new McpError('config', `the path of a socket has at most ${MAX_PATH} bytes: ${path}`);
}

function notify(client: Connection, method: string, params: Json) {
  client.notify(method, params).catch(() => {}); // it may be gone
}

/** The same request on the other connection. Its progress comes back under the token that it had. */
function again(
  to: Connection,
  from: Connection,
  method: string,
  params: Json,
  signal: AbortSignal,
) {
  const { progressToken } = asObject(params._meta);
  const tell = (progress: Json) =>
    notify(from, 'notifications/progress', { ...progress, progressToken });
  const onProgress = progressToken === undefined ? undefined : tell;
  return to.request(method, params, { signal, onProgress });
}

/** The client says itself whose refusal it is. After a loss it hears of the loss, and nothing else. */
function refuse(server: McpConnection, method: string, error: unknown): Promise<never> {
  if (error instanceof RpcError) {
    const words = new RegExp(`^MCP server ".*?" refused ${method}: ([^]*) \\(-?\\d+\\)$`);
    throw new RpcError(error.code, error.message.replace(words, '$1'), error.data);
  }
  if (error instanceof McpError && LOSSES.includes(error.kind)) server.giveUp(error);
  if (server.ended) return new Promise(() => {}); // its connection ends
  throw new RpcError(-32603, textOf(error));
}

/** A client that waits for another one's call is not out of time. The numbers have to grow, and stay
 *  below those of the server. */
function signsOfLife(client: Connection, { _meta }: Json) {
  const { progressToken } = asObject(_meta);
  let progress = 0;
  const message = 'another call is under way';
  const tell = () => {
    progress += 1e-6;
    notify(client, 'notifications/progress', { progressToken, progress, message });
  };
  return progressToken === undefined ? undefined : setInterval(tell, SIGN_OF_LIFE_MS);
}

// ─── What it says of itself, in the words of its own era ───────────────────────────────────────

const unknown = (method: string) => new RpcError(-32601, `Method not found: ${method}`);

function greeting({ server }: McpConnection): Json {
  const { protocolVersion, capabilities, serverInfo, instructions } = server!;
  if (isStateless(server)) throw unknown('initialize');
  return { protocolVersion, capabilities, serverInfo, instructions };
}

function selfPortrait({ server }: McpConnection): Json {
  const { protocolVersion, capabilities, serverInfo, instructions } = server!;
  if (!isStateless(server)) throw unknown('server/discover');
  const _meta = { [SERVER_INFO_KEY]: serverInfo };
  return { supportedVersions: [protocolVersion], capabilities, instructions, _meta };
}

/** Our own subscription hears everything, so each client's stays here. */
async function listenFor(
  client: Connection,
  server: McpConnection,
  { notifications }: Json,
  { id, signal }: Incoming,
): Promise<Json> {
  for (const uri of asList(asObject(notifications).resourceSubscriptions))
    await server.request('resources/subscribe', { uri });
  const _meta = { [SUBSCRIPTION_KEY]: id };
  notify(client, 'notifications/subscriptions/acknowledged', { notifications, _meta });
  await once(signal, 'abort');
  return {};
}
