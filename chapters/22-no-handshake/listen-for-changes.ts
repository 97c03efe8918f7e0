// listen-for-changes.ts: since 2026-07-28 a server tells of changes only to a client that
// subscribes.

import {
  asObject,
  isStateless,
  now,
  RpcError,
  type Extension,
  type Json,
  type McpConnection,
  type Offer,
  type ServerDescription,
} from '../../mcp.ts';
import type { EraOptions } from './era.ts';
import { doze, type Pause } from '../20-streamable-http/pause.ts';

const MIN_PAUSE_MS = 1000; // between two subscriptions
const MAX_PAUSE_MS = 60_000;
export const SUBSCRIPTION_KEY = 'io.modelcontextprotocol/subscriptionId';
/** What a client says to hear of changes. */
export const WATCHED: Record<Offer, string> = {
  tools: 'toolsListChanged',
  prompts: 'promptsListChanged',
  resources: 'resourcesListChanged',
};
const OFFERS = Object.keys(WATCHED) as Offer[];

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
  private watched: Offer[] = [];
  private wanted: Json = {};
  private isDeaf = false; // a subscription has ended, and the next one has not begun
  private id: unknown; // of the subscription
  private end = new AbortController();

  constructor(connection: McpConnection, pause: Pause = doze) {
    this.connection = connection;
    this.pause = pause;
  }

  /** One subscription for all changes that the server can tell of. */
  begin(server: ServerDescription): void {
    const { capabilities = {} } = server;
    const canTell = (what: Offer) => asObject(capabilities[what]).listChanged === true;
    this.watched = OFFERS.filter(canTell);
    this.wanted = Object.fromEntries(this.watched.map((what) => [WATCHED[what], true]));
    this.isDeaf = false;
    if (!isStateless(server) || this.watched.length === 0) return;
    setTimeout(() => void this.listen(server)); // what the caller requests first goes first
  }

  /** When a subscription ends, opens another after a pause, which grows unless the last one held. */
  private async listen(server: ServerDescription): Promise<void> {
    const { connection } = this;
    let pauseMs = MIN_PAUSE_MS;
    while (connection.server === server && !connection.ended) {
      const startedAt = now();
      const refusal = await this.subscribe();
      if (refusal)
        return connection.warn('listen', `does not let us listen for changes: ${refusal.message}`);

      if (now() - startedAt > MAX_PAUSE_MS) pauseMs = MIN_PAUSE_MS;
      if (connection.ended) return;
      this.isDeaf = true;
      this.tellGap();
      await this.pause(pauseMs);
      pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS);
    }
  }

  /** What changes while nobody listens is told to nobody: for all we know, all of it has. */
  private tellGap(): void {
    for (const what of this.watched) this.connection.changed(what);
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
    const promised = asObject(notifications);
    if ('resourceSubscriptions' in promised) return; // another's: chapter 24 watches resources
    this.id = asObject(_meta)[SUBSCRIPTION_KEY];
    if (this.isDeaf) this.tellGap();
    this.isDeaf = false;
    const missing = Object.keys(this.wanted).filter((name) => promised[name] !== true);
    if (missing.length === 0) return;
    this.connection.warn('listen', `will not tell us of ${missing.join(', ')}`);
  }

  /** It ends a subscription by its result, by the end of the stream, or by cancelling it. */
  cancelled(requestId: unknown): void {
    if (this.id !== undefined && this.id === requestId) this.end.abort();
  }
}
