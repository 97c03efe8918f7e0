// alive.ts: a server that died is started again when it is needed next, and one that is away is tried again.
//
// What was under way when it went is another matter. Nobody knows whether it was carried out, so it is repeated only
// where twice does no more harm than once. All of it is one layer, the outermost: it sees what the caller asked for.

import { once, setMaxListeners } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { asObject, isObject, McpError, REVISIONS, RpcError } from '../../mcp.ts';
import type { Call, Json, Layer, McpConnection, Next, ServerDescription } from '../../mcp.ts';

const OPENING = /^(initialize|server\/discover|subscriptions\/listen)$/;
const READING =
  /^(ping|(tools|prompts|resources|resources\/templates)\/list|prompts\/get|resources\/read|completion\/complete)$/;
const MAX_RESTARTS = 4; // in a row, without a single answer in between
const MAX_TRIES = 5; // of one call, or to reach a server that is away
const FIRST_DELAY_MS = 500;

export type Pause = (ms: number, signal?: AbortSignal) => Promise<unknown>;
const sleep: Pause = (ms, signal) => wait(ms, undefined, { signal });

/** `pause` is for tests, which have no time. */
export function stayAlive({ pause = sleep } = {}): Layer {
  const lives = new WeakMap<McpConnection, Life>();
  return (call, next, connection) => {
    if (OPENING.test(call.method)) return next(call); // with these a life begins: there is nothing to keep yet
    const life = lives.get(connection) ?? new Life(connection, pause);
    lives.set(connection, life);
    return life.ask(call, next);
  };
}

/** What we know of a server beyond the end of its process or session. */
class Life {
  private connection: McpConnection;
  private pause: Pause;
  private hasBegun = false; // there was a handshake
  private wasAway = false; // who answers next may be another than before
  private restarts = 0;
  private reviving?: Promise<void>; // one for all calls that meet a dead server
  private givenUp?: Error;
  private hints = new Map<unknown, Json>(); // what the tools say of themselves, by name

  constructor(connection: McpConnection, pause: Pause) {
    this.connection = connection;
    this.pause = pause;
  }

  async ask(call: Call, next: Next): Promise<Json> {
    const { connection } = this;
    for (let tries = 1, hasExpired = false; ; tries++) {
      this.hasBegun ||= connection.server !== undefined;
      if (connection.ended && !this.reviving && !this.mayRevive(call)) throw connection.ended;
      if (connection.ended || this.reviving) await this.revive(call, () => this.restart());
      const { server } = connection;
      try {
        return this.answered(call, await next(call));
      } catch (error) {
        if (error instanceof RpcError) this.answered(call); // a refusal is an answer, too
        if (!isLoss(error) || connection.isClosed) throw error;
        this.wasAway = true;
        const { kind } = error;
        const isOver = tries === MAX_TRIES || (kind === 'expired' && hasExpired);
        if (isOver || !this.mayRepeat(call, kind, server)) throw accountOf(call, error);
        if (kind !== 'expired') await this.waitAfter(tries, call.options.signal);
        // Of several calls whose session is gone the first one shakes hands, once and for all of them.
        else if (connection.server === server) await this.revive(call, () => this.greet());
        hasExpired ||= kind === 'expired';
      }
    }
  }

  /** Not what we closed, what never was there, or what we gave up. And nobody is started for a look at its tools: the
   *  manager looks after every start, and would start one that dies at once again and again. */
  private mayRevive({ method }: Call): boolean {
    const { isClosed, ended } = this.connection;
    return this.hasBegun && !isClosed && ended !== this.givenUp && method !== 'tools/list';
  }

  /** All wait for the same attempt, but each leaves when its own call is cancelled; `next` will then say so. */
  private async revive({ options: { signal } }: Call, how: () => Promise<void>): Promise<void> {
    if (signal?.aborted) return;
    this.reviving ??= how().finally(() => (this.reviving = undefined));
    if (!signal) return this.reviving;
    setMaxListeners(0, signal); // one signal may end any number of calls
    const isOver = new AbortController();
    const cancelled = once(signal, 'abort', { signal: isOver.signal });
    await Promise.race([this.reviving, cancelled]).finally(() => isOver.abort());
  }

  /** A new process, or a new connection, until there is one that lives. */
  private async restart(): Promise<void> {
    const { connection } = this;
    this.wasAway = true;
    for (let tries = 1; ; tries++) {
      // Who is away, or wants a login, may be back at any time. Who dies again and again will not get better.
      const isAway = ['unreachable', 'auth'].includes((connection.ended as McpError).kind);
      if (!isAway && this.restarts === MAX_RESTARTS) throw this.giveUp(connection.ended!);
      await this.waitAfter(isAway ? tries - 1 : this.restarts++);
      try {
        await connection.reopen();
        return await this.greet();
      } catch (error) {
        if (!isLoss(error) || connection.isClosed) throw error;
        if (error.kind === 'unreachable' && tries === MAX_TRIES) throw error;
      }
    }
  }

  private async greet(): Promise<void> {
    await this.connection.initialize();
    this.lookAgain();
  }

  /** As if the server had told us that its tools have changed: for all we know, they have. */
  private lookAgain(): void {
    if (this.wasAway) this.connection.handle('notifications/tools/list_changed', {}).catch(() => {});
    this.wasAway = false;
  }

  /** It grows, and is never quite the same: the clients of one server should not all come back at one moment. */
  private async waitAfter(failures: number, signal?: AbortSignal): Promise<void> {
    const ms = FIRST_DELAY_MS * 2 ** (failures - 1) * (0.75 + Math.random() / 2);
    if (failures > 0) await this.pause(ms, signal).catch(() => {}); // cancelled: the next step will say so
  }

  private giveUp(why: Error): Error {
    const { connection } = this;
    const what = `is in a crash loop: started again ${MAX_RESTARTS} times, it never came to answer a call`;
    const error = connection.error('closed', `${what}. It is not started again. The last time: ${why.message}`);
    this.givenUp = connection.ended = error; // every later call hears this, and so does whoever shows the state
    connection.options.onClosed?.(error);
    return error;
  }

  private answered(call: Call, result: Json = {}): Json {
    if (call.method !== 'tools/list') this.restarts = 0; // a list is asked for after each start, and proves nothing
    this.lookAgain();
    const tools = Array.isArray(result.tools) ? result.tools.filter(isObject) : [];
    for (const { name, annotations } of tools) this.hints.set(name, asObject(annotations));
    return result;
  }

  /** What did not arrive can be sent again. Of what may have arrived, only what does no harm when done twice. */
  private mayRepeat({ method, params }: Call, kind: McpError['kind'], server?: ServerDescription): boolean {
    if (kind === 'unreachable' || kind === 'expired' || READING.test(method)) return true;
    // Up to 2025-11-25 the state of the talk is lost with it: the same call would not be the same.
    const isStateless = server !== undefined && !REVISIONS.includes(server.protocolVersion);
    const { readOnlyHint, idempotentHint } = this.hints.get(params?.name) ?? {};
    return method === 'tools/call' && isStateless && (readOnlyHint === true || idempotentHint === true);
  }
}

const LOSSES = ['start', 'closed', 'lost', 'unreachable', 'expired'];
const isLoss = (error: unknown): error is McpError => error instanceof McpError && LOSSES.includes(error.kind);

function accountOf({ method }: Call, error: McpError): McpError {
  if (READING.test(method) || !['closed', 'lost'].includes(error.kind)) return error;
  const advice = `Whether ${method} was carried out is not known: look before you repeat it.`;
  return new McpError(error.kind, `${error.message}\n${advice}`);
}
