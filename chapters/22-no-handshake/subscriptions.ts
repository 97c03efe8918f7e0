// subscriptions.ts: since 2026-07-28 a server tells of changes only to a client that subscribes.

import { asObject, isStateless, now, RpcError } from '../../mcp.ts';
import type { Extension, Json, McpConnection, ServerDescription } from '../../mcp.ts';
import type { EraOptions } from './era.ts';
import { doze, type Pause } from './pause.ts';

const MIN_PAUSE_MS = 1000; // between two subscriptions
const MAX_PAUSE_MS = 60_000;
const SUBSCRIPTION_KEY = 'io.modelcontextprotocol/subscriptionId';
const WATCHED = {
  tools: 'toolsListChanged',
  prompts: 'promptsListChanged',
  resources: 'resourcesListChanged',
};

export function listenForChanges({ pause }: EraOptions = {}): Extension {
  return function listenForChanges(connection) {
    const listener = new Listener(connection, pause);
    return {
      opened: (server) => listener.begin(server),
      handlers: {
        'notifications/subscriptions/acknowledged': (params) => listener.acknowledged(params),
        'notifications/cancelled': ({ requestId }) => listener.cancelled(requestId),
      },
    };
  };
}

class Listener {
  private connection: McpConnection;
  private pause: Pause;
  private wanted: Json = {};
  private id: unknown; // of the subscription
  private end = new AbortController();

  constructor(connection: McpConnection, pause: Pause = doze) {
    this.connection = connection;
    this.pause = pause;
  }

  /** One subscription for all changes that the server can tell of. */
  begin(server: ServerDescription): void {
    const { capabilities = {} } = server;
    const canTell = ([kind]: [string, string]) => asObject(capabilities[kind]).listChanged === true;
    const watched = Object.entries(WATCHED).filter(canTell);
    this.wanted = Object.fromEntries(watched.map(([, name]) => [name, true]));
    if (!isStateless(server) || watched.length === 0) return;
    setImmediate(() => void this.listen(server)); // what the caller requests first goes first
  }

  /** When a subscription ends, opens another after a pause, which grows unless the last one held. */
  private async listen(server: ServerDescription): Promise<void> {
    const { connection } = this;
    let pauseMs = MIN_PAUSE_MS;
    while (connection.server === server && !connection.ended) {
      const startedAt = now();
      const refusal = await this.subscribe();
      if (refusal) {
        return connection.warn('listen', `does not let us listen for changes: ${refusal.message}`);
      }
      if (now() - startedAt > MAX_PAUSE_MS) pauseMs = MIN_PAUSE_MS;
      if (!connection.ended) await this.pause(pauseMs);
      pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS);
    }
  }

  /** Resolves when the subscription is over. */
  private async subscribe(): Promise<RpcError | undefined> {
    this.end = new AbortController();
    this.id = undefined;
    const options = { timeoutMs: Infinity, signal: this.end.signal };
    const params = { notifications: this.wanted };
    try {
      await this.connection.request('subscriptions/listen', params, options);
    } catch (error) {
      if (error instanceof RpcError) return error;
    }
    return undefined;
  }

  /** The server says which of the changes it will tell. */
  acknowledged({ notifications, _meta }: Json): void {
    this.id = asObject(_meta)[SUBSCRIPTION_KEY];
    const promised = asObject(notifications);
    const missing = Object.keys(this.wanted).filter((name) => promised[name] !== true);
    if (missing.length === 0) return;
    this.connection.warn('listen', `will not tell us of ${missing.join(', ')}`);
  }

  /** It ends a subscription by its result, by the end of the stream, or by cancelling it. */
  cancelled(requestId: unknown): void {
    if (this.id !== undefined && this.id === requestId) this.end.abort();
  }
}
