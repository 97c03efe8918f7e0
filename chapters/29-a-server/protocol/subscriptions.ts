// subscriptions.ts: without a handshake a client hears of changes only while a request of its own,
// subscriptions/listen, is open. What changes in between is told to nobody.

import { EventEmitter, once } from 'node:events';
import { asObject, RpcError, type Json, type Offer } from '../../../mcp.ts';
import { SUBSCRIPTION_KEY, WATCHED } from '../../22-no-handshake/listen-for-changes.ts';
import type { ServerCall } from '../server-call.ts';

const MAX_OPEN = 1024;
const MAX_URIS = 1000;

type OpenSubscription = {
  wanted: Json;
  uris: Set<string>;
  tell: (method: string, params: Json) => void;
};

export class Subscriptions {
  private open = new Set<OpenSubscription>();
  private news = new EventEmitter().setMaxListeners(0);

  /** Resolves when the server ends; rejects when the client does. */
  async listen(
    params: Json,
    call: ServerCall,
    offered: Offer[],
    watched: (uri: string) => void = () => {},
  ): Promise<Json> {
    if (this.open.size >= MAX_OPEN) throw new RpcError(-32603, 'Too many subscriptions');
    const _meta = { [SUBSCRIPTION_KEY]: call.id };
    const { wanted, uris } = accepted(asObject(params.notifications), offered);
    const tell = (method: string, more: Json) => call.tell(method, { ...more, _meta });
    const subscription: OpenSubscription = { wanted, uris, tell };
    this.open.add(subscription);
    uris.forEach(watched);
    try {
      // First of all, so that the client knows from when on it hears everything.
      tell('notifications/subscriptions/acknowledged', { notifications: wanted });
      await once(this.news, 'end', { signal: call.signal });
      return { _meta };
    } finally {
      this.open.delete(subscription);
    }
  }

  changed(what: Offer): void {
    for (const { wanted, tell } of this.open)
      if (wanted[WATCHED[what]] === true) tell(`notifications/${what}/list_changed`, {});
  }

  updated(uri: string): void {
    for (const { uris, tell } of this.open)
      if (uris.has(uri)) tell('notifications/resources/updated', { uri });
  }

  end(): void {
    this.news.emit('end');
  }

  get size(): number {
    return this.open.size;
  }
}

/** Of what the client wants, what this server can tell. */
function accepted(notifications: Json, offered: Offer[]): { wanted: Json; uris: Set<string> } {
  const kinds = offered.filter((what) => notifications[WATCHED[what]] === true);
  const wanted: Json = Object.fromEntries(kinds.map((what) => [WATCHED[what], true]));
  const { resourceSubscriptions: given } = notifications;
  const isList = Array.isArray(given) && offered.includes('resources');
  const texts = isList ? given.filter((uri) => typeof uri === 'string') : [];
  const uris = new Set<string>(texts.slice(0, MAX_URIS));
  if (isList) wanted.resourceSubscriptions = [...uris];
  return { wanted, uris };
}
