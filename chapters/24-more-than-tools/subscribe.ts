// subscribe.ts: `resources/subscribe` and `logging/setLevel` are gone since 2026-07-28. Callers need
// not know: there a subscription is a request that stays open, and a level goes along with each call.

import {
  asObject,
  isStateless,
  now,
  RpcError,
  type Call,
  type Extension,
  type Json,
  type McpConnection,
  type Next,
} from '../../mcp.ts';
import { SUBSCRIPTION_KEY } from '../22-no-handshake/listen-for-changes.ts';
import { doze, withEither, type Pause } from '../20-streamable-http/pause.ts';

const MIN_PAUSE_MS = 1000; // between two subscriptions to the same resource
const MAX_PAUSE_MS = 60_000;
const MAX_WATCHED = 100; // each is an open request
const MAX_TIMER_MS = 2 ** 31 - 1;
export const LEVEL_KEY = 'io.modelcontextprotocol/logLevel';

export function subscribeInBothEras({ pause = doze }: { pause?: Pause } = {}): Extension {
  return function subscribeInBothEras(connection) {
    const stateless = new Stateless(connection, pause);
    return {
      layer: (call, next) =>
        isStateless(connection.server) ? stateless.request(call, next) : next(call),
      handlers: {
        'notifications/subscriptions/acknowledged': (params) => stateless.acknowledged(params),
        'notifications/cancelled': ({ requestId }) => stateless.cancelled(requestId),
      },
      opened: () => stateless.forget(), // a new session knows nothing of them, in either era
    };
  };
}

/** Answers the requests of the handshake era where the server does not know them any more. */
class Stateless {
  private connection: McpConnection;
  private pause: Pause;
  private open = new Map<string, Subscription>(); // by the address of the resource
  private level: unknown;

  constructor(connection: McpConnection, pause: Pause) {
    this.connection = connection;
    this.pause = pause;
  }

  request(call: Call, next: Next): Promise<Json> {
    const { method, params = {} } = call;
    if (method === 'resources/subscribe') return this.subscribe(String(params.uri), call);
    if (method === 'resources/unsubscribe') return this.unsubscribe(String(params.uri));
    if (method === 'logging/setLevel') return this.setLevel(params.level);
    return next(this.level === undefined ? call : this.withLevel(call));
  }

  private async setLevel(level: unknown): Promise<Json> {
    this.level = level;
    return {};
  }

  private withLevel(call: Call): Call {
    const _meta = { [LEVEL_KEY]: this.level, ...asObject(call.params?._meta) };
    return { ...call, params: { ...call.params, _meta } };
  }

  private async subscribe(uri: string, call: Call): Promise<Json> {
    if (this.open.has(uri)) return {};
    if (this.open.size >= MAX_WATCHED)
      throw this.connection.error('limit', `is watched at ${MAX_WATCHED} resources already`);
    const subscription = new Subscription(this.connection, uri, this.pause);
    this.open.set(uri, subscription);
    try {
      await subscription.begin(call);
      return {};
    } catch (error) {
      subscription.end();
      this.open.delete(uri);
      throw error;
    }
  }

  private async unsubscribe(uri: string): Promise<Json> {
    this.open.get(uri)?.end();
    this.open.delete(uri);
    return {};
  }

  acknowledged(params: Json) {
    for (const each of this.open.values()) each.acknowledged(params);
  }

  cancelled(requestId: unknown): void {
    for (const each of this.open.values()) each.cancelled(requestId);
  }

  forget() {
    for (const each of this.open.values()) each.end();
    this.open.clear();
  }
}

/** One resource that is watched. The request stays open; the server says that it listens by a
 *  notification, and the end of the request is the end of the subscription. */
class Subscription {
  private connection: McpConnection;
  private uri: string;
  private pause: Pause;
  private whole = new AbortController(); // ends the subscription
  private current = new AbortController(); // ends the request that is open now
  private id: unknown; // of that request, as the server names it
  private heard = () => {};

  constructor(connection: McpConnection, uri: string, pause: Pause) {
    this.connection = connection;
    this.uri = uri;
    this.pause = pause;
  }

  /** Resolves when the server has said that it will tell. Rejects if it refuses, or does not say so
   *  in time. */
  begin({ options }: Call) {
    const { timeoutMs = this.connection.options.callTimeoutMs } = options;
    const limit = AbortSignal.timeout(Math.min(timeoutMs, MAX_TIMER_MS));
    const isHeard = new Promise<void>((resolve) => (this.heard = resolve));
    const silent = `did not say that it will tell of changes of ${this.uri}`;
    return withEither([limit, options.signal], (signal) => {
      const late = new Promise<void>((_, reject) => {
        const fail = () => reject(this.connection.error('timeout', silent));
        signal.addEventListener('abort', fail);
      });
      const over = this.listen().then(() => {
        throw this.connection.error('closed', silent);
      });
      return Promise.race([isHeard, over, late]);
    });
  }

  /** Opens the request again whenever the server ends it, after a pause that grows. A refusal is one
   *  for good. */
  private async listen(): Promise<void> {
    const { signal } = this.whole;
    let pauseMs = MIN_PAUSE_MS;
    while (!signal.aborted && !this.connection.ended) {
      const startedAt = now();
      await this.once();
      if (now() - startedAt > MAX_PAUSE_MS) pauseMs = MIN_PAUSE_MS;
      if (!signal.aborted) await this.pause(pauseMs, signal);
      pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS);
    }
  }

  private async once(): Promise<void> {
    this.current = new AbortController();
    const options = { timeoutMs: Infinity, signal: this.current.signal };
    const params = { notifications: { resourceSubscriptions: [this.uri] } };
    try {
      await this.connection.request('subscriptions/listen', params, options);
    } catch (error) {
      if (error instanceof RpcError) throw error;
    }
  }

  acknowledged({ notifications, _meta }: Json): void {
    const { resourceSubscriptions: told } = asObject(notifications);
    if (!Array.isArray(told) || !told.includes(this.uri)) return;
    this.id = asObject(_meta)[SUBSCRIPTION_KEY];
    this.heard();
  }

  cancelled(requestId: unknown): void {
    if (this.id !== undefined && this.id === requestId) this.current.abort();
  }

  end() {
    this.whole.abort();
    this.current.abort();
  }
}
