// alive.ts: a server that died is started again when it is needed next, and one that is away is
// tried again.
//
// What was under way when it went is another matter. It may have been carried out, so it is repeated
// only where twice does no more harm than once. Its layer is the outermost: it sees what the caller
// requested.

import { setMaxListeners } from 'node:events';
import { asList, asObject, isObject, isStateless, McpError, reads, RpcError } from '../../mcp.ts';
import type {
  Call,
  ErrorKind,
  Extension,
  Json,
  McpConnection,
  Next,
  ServerDescription,
  EntryWord,
} from '../../mcp.ts';
import { unlessAborted } from '../15-the-loop/unless-aborted.ts';
import { sleep, withEither, type Pause } from '../20-streamable-http/pause.ts';

const OPENING = /^(initialize|server\/discover|subscriptions\/listen)$/;
const LOOKING = /\/list$/;
const READING = [
  'ping',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'prompts/get',
  'resources/read',
  'completion/complete',
  'tasks/get',
];
const MAX_RESTARTS = 4; // in a row, without a single answer in between
const MAX_TRIES = 5; // of one call, or to reach a server that is away
const FIRST_DELAY_MS = 500;
const MIN_DELAY_MS = 100;
const MAX_DELAY_MS = 30_000;
const MAX_ATTEMPTS = 100;
const MAX_REPEATABLE = 10_000; // names: a server may list others every time
const MAX_LOST = 3; // calls in a row, over a connection that says it is alive
const LOSSES = ['start', 'closed', 'lost', 'unreachable', 'expired'];

/** An entry may say otherwise: "reconnect": { "maxAttempts": 10, "delayMs": 2000 }. */
export function stayAlive({ pause = sleep, attempts }: AliveOptions = {}): Extension {
  return reads({ reconnect: RECONNECT }, function stayAlive(connection) {
    const life = new Life(connection, pause, attempts);
    return {
      layer: (call, next) => {
        if (OPENING.test(call.method)) return next(call); // a life begins with these
        return life.request(call, next);
      },
      opened: () => life.opened(),
      closed: () => life.closed(),
    };
  });
}

type AliveOptions = { pause?: Pause; attempts?: Attempts };

/** How far we are with servers that are away, for people who look. The program holds one. */
export class Attempts extends Map<McpConnection, string> {
  of(server: string): string[] {
    const meant = [...this].filter(([{ serverName }]) => serverName === server);
    return meant.map(([, attempt]) => `it is being started again: ${attempt}`);
  }
}

/** What we know of a server beyond the end of its process or session. */
class Life {
  private connection: McpConnection;
  private pause: Pause;
  private limits: { restarts: number; tries: number; delayMs: number };
  private hasBegun = false; // there was a handshake
  private over = new AbortController(); // aborts when the connection is closed for good
  private wasAway = false; // the server that answers next may be another than before
  private restarts = 0;
  private reviving?: Promise<void>; // one for all calls that meet a dead server
  private repeatable = new Set<unknown>(); // tools of which twice does no harm, say they themselves
  private lost = 0; // calls in a row
  private attempts?: Attempts;

  constructor(connection: McpConnection, pause: Pause, attempts?: Attempts) {
    this.connection = connection;
    this.pause = pause;
    this.attempts = attempts;
    this.limits = limitsIn(connection);
    setMaxListeners(0, this.over.signal); // any number of calls may wait for the same server
  }

  opened() {
    this.hasBegun = true;
  }

  closed() {
    if (this.connection.isClosed) this.over.abort(); // no pause is worth waiting for any more
  }

  async request(call: Call, next: Next): Promise<Json> {
    let hasExpired = false;
    for (let tries = 1; ; tries++) {
      await this.beAlive(call);
      this.lookAgain(); // before the call, not after: what was agreed to may be gone
      const { server } = this.connection;
      try {
        const result = await next(call);
        this.answered(call, result);
        return result;
      } catch (error) {
        if (error instanceof RpcError) this.answered(call); // a refusal is an answer, too
        if (!isLoss(error) || this.connection.isClosed) throw error;
        this.wasAway = true;
        if (error.kind === 'lost') this.lost++;
        const isExpired = error.kind === 'expired';
        const isSpent = tries >= this.limits.tries || (isExpired && hasExpired);
        const isOver = isSpent || !this.canWait(call, error);
        if (isOver || !this.mayRepeat(call, error.kind, server)) throw accountOf(call, error);
        hasExpired ||= isExpired;
        if (isExpired) await this.renewSession(call, server);
        else await this.waitAfter(tries, call.options.signal, error.waitMs);
      }
    }
  }

  /** Starts the server again if it has ended. */
  private async beAlive(call: Call): Promise<void> {
    const { ended } = this.connection;
    const isDoubtful = !ended && this.lost >= MAX_LOST && this.mayRevive(call);
    if (isDoubtful && !this.reviving) return this.revive(call, () => this.openAgain());
    if (!ended && !this.reviving) return;
    if (ended && !this.reviving && !this.mayRevive(call)) throw ended;
    await this.revive(call, () => this.restart());
  }

  /** Of several calls whose session is gone the first one shakes hands, for all of them. */
  private async renewSession(call: Call, server?: ServerDescription): Promise<void> {
    if (this.connection.server === server) await this.revive(call, () => this.greet());
  }

  /** Not what we closed or gave up, nor what never was there. And a look at the tools starts nothing:
   *  the manager looks after every start, so a server that dies at once would start without end. */
  private mayRevive({ method }: Call): boolean {
    return this.hasBegun && !this.connection.isClosed && method !== 'tools/list';
  }

  /** All wait for the same attempt, but each leaves when its own call is cancelled. */
  private async revive({ options: { signal } }: Call, how: () => Promise<void>): Promise<void> {
    if (signal?.aborted) return;
    if (signal) setMaxListeners(0, signal); // one signal may end any number of calls
    this.reviving ??= how().finally(() => {
      this.reviving = undefined;
      this.attempts?.delete(this.connection);
    });
    try {
      await unlessAborted(this.reviving, signal);
    } catch (error) {
      if (!signal?.aborted) throw error; // if it was cancelled, `next` says so
    }
  }

  /** A new process, or a new connection, until there is one that lives. */
  private async restart(): Promise<void> {
    const { connection } = this;
    this.wasAway = true;
    for (let tries = 1; ; tries++) {
      // A server that is away or wants a login may return; one that keeps crashing will not.
      const isAway = ['unreachable', 'auth'].includes((connection.ended as McpError).kind);
      if (!isAway && this.restarts >= this.limits.restarts) throw this.giveUp(connection.ended!);
      const { restarts, tries: most } = this.limits;
      const which = isAway ? `${tries} of ${most}` : `${this.restarts + 1} of ${restarts}`;
      this.attempts?.set(connection, `attempt ${which}`);
      await this.waitAfter(isAway ? tries - 1 : this.restarts++);
      try {
        await connection.reopen();
        return await this.greet();
      } catch (error) {
        if (!isLoss(error) || connection.isClosed) throw error;
        if (error.kind === 'unreachable' && tries >= this.limits.tries) throw error;
      }
    }
  }

  /** Over HTTP every call has a connection of its own. After several that broke, another session may
   *  help, and another address behind the same name. */
  private async openAgain() {
    this.lost = 0;
    this.wasAway = true;
    await this.connection.reopen();
    await this.greet();
  }

  private async greet(): Promise<void> {
    await this.connection.initialize();
    this.lookAgain();
  }

  /** After a gap the server may offer something else: for all we know, it does. */
  private lookAgain(): void {
    if (!this.wasAway) return;
    this.wasAway = false;
    for (const what of ['tools', 'prompts', 'resources'] as const) this.connection.changed(what);
  }

  /** A server may name the time of the next try. Who waits less is refused again; who waits longer
   *  than for an answer had better know why. */
  private canWait({ options }: Call, { waitMs = 0 }: McpError): boolean {
    const { timeoutMs = this.connection.options.callTimeoutMs } = options;
    return waitMs <= Math.min(timeoutMs, MAX_DELAY_MS);
  }

  /** Grows, and is never quite the same: the clients of one server should not return all at once. */
  private async waitAfter(failures: number, signal?: AbortSignal, leastMs = 0): Promise<void> {
    if (failures === 0) return;
    const ms = this.limits.delayMs * 2 ** (failures - 1) * (0.75 + Math.random() / 2);
    const bounded = Math.min(Math.max(ms, leastMs, MIN_DELAY_MS), MAX_DELAY_MS);
    await withEither([signal, this.over.signal], (either) => this.pause(bounded, either));
  }

  private giveUp(why: Error): Error {
    const times = `started again ${this.restarts} times, it never came to answer a call`;
    const what = this.restarts > 0 ? `is in a crash loop: ${times}` : 'has ended';
    const last = `It is not started again. The last time: ${why.message}`;
    const error = this.connection.error('closed', `${what}. ${last}`);
    this.connection.giveUp(error);
    return error;
  }

  private answered({ method }: Call, result: Json = {}): void {
    this.lookAgain();
    // A list proves nothing: after each start, and each loss, it is we who request it.
    if (!LOOKING.test(method)) {
      this.lost = 0;
      this.restarts = 0;
    }
    if (method !== 'tools/list') return;
    const tools = asList(result.tools).filter(isObject);
    for (const { name, annotations } of tools) this.noteHints(name, asObject(annotations));
  }

  private noteHints(name: unknown, { readOnlyHint, idempotentHint }: Json): void {
    this.repeatable.delete(name);
    if (readOnlyHint === true || idempotentHint === true) this.repeatable.add(name);
    const [oldest] = this.repeatable;
    if (this.repeatable.size > MAX_REPEATABLE) this.repeatable.delete(oldest);
  }

  /** What did not arrive can be sent again. What may have arrived, only if twice does no harm. */
  private mayRepeat(call: Call, kind: ErrorKind, server?: ServerDescription): boolean {
    const { method, params } = call;
    if (kind === 'unreachable' || kind === 'expired' || READING.includes(method)) return true;
    // Up to 2025-11-25 the state of the session is lost with it: the same call is not the same.
    if (method !== 'tools/call' || !isStateless(server)) return false;
    return this.repeatable.has(params?.name);
  }
}

/** One setting for two limits: starts in a row, and tries of one call. */
function limitsIn(connection: McpConnection) {
  const { maxAttempts, delayMs = FIRST_DELAY_MS } = asObject(connection.config.reconnect);
  return {
    restarts: Number(maxAttempts ?? MAX_RESTARTS),
    tries: Number(maxAttempts ?? MAX_TRIES),
    delayMs: Number(delayMs),
  };
}

const RECONNECT: EntryWord = {
  form: `like { "maxAttempts": 5, "delayMs": 500 }, with at most ${MAX_ATTEMPTS} attempts`,
  fits: (value) => {
    const { maxAttempts = 0, delayMs = 0 } = asObject(value);
    const isCount = Number.isInteger(maxAttempts) && isBetween(maxAttempts, 0, MAX_ATTEMPTS);
    return isObject(value) && isCount && isBetween(delayMs, 0, Infinity);
  },
};

const isBetween = (value: unknown, least: number, most: number) =>
  typeof value === 'number' && value >= least && value <= most;

const isLoss = (error: unknown): error is McpError =>
  error instanceof McpError && LOSSES.includes(error.kind);

function accountOf({ method }: Call, error: McpError): McpError {
  if (READING.includes(method) || !['closed', 'lost'].includes(error.kind)) return error;
  const advice = `Whether ${method} was carried out is not known: look before you repeat it.`;
  return new McpError(error.kind, `${error.message}\n${advice}`);
}
