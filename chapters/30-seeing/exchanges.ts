// exchanges.ts: a recording, tied together. Each request of the client gets its answer, and what
// the server sent because of it.

import { asObject, isObject, ownValue, type Json } from '../../mcp.ts';
import { canonicalJson } from '../17-the-gate/digest.ts';
import { SUBSCRIPTION_KEY } from '../22-no-handshake/listen-for-changes.ts';
import {
  idKey,
  isResponse,
  isNotification,
  isRequest,
  tokenOf,
  type Sighting,
} from './more/read-trace.ts';

/** A request of the client, and all that came of it. */
export type RecordedExchange = {
  request: Sighting;
  answer?: Sighting; // none: it was cancelled, or the recording ends before
  during: Cue[]; // what the server sent before the answer
  after: Cue[]; // and after it, before the client said something else
};
/** Something the server sent; for a request of its own, with what the client answered. */
export type Cue = { sent: Sighting; reply?: Sighting };

/** The exchanges with one server. What it sends before the first request belongs to the prelude. */
export class Tied {
  readonly prelude: Cue[] = [];
  readonly exchanges: RecordedExchange[] = [];
  private open = new Map<string, RecordedExchange>(); // by the id of the request
  private asked = new Map<string, Cue>(); // requests of the server, by id

  constructor(messages: Sighting[]) {
    for (const message of messages)
      if (message.dir === 'out') this.fromClient(message);
      else this.fromServer(message);
  }

  private fromClient(message: Sighting) {
    const { msg } = message;
    const id = idKey(msg.id);
    if (isResponse(msg)) {
      const cue = this.asked.get(id);
      if (cue) cue.reply = message;
      this.asked.delete(id);
    }
    if (!isRequest(msg)) return;
    const exchange: RecordedExchange = { request: message, during: [], after: [] };
    this.exchanges.push(exchange);
    this.open.set(id, exchange);
  }

  private fromServer(message: Sighting) {
    const { msg } = message;
    const id = idKey(msg.id);
    if (isResponse(msg)) {
      const exchange = this.open.get(id);
      if (exchange) exchange.answer = message;
      this.open.delete(id);
      return;
    }
    const cue: Cue = { sent: message };
    if (isRequest(msg)) this.asked.set(id, cue);
    this.placeFor(msg).push(cue);
  }

  /** Progress says whose it is, and so does the beginning of a subscription. Anything else came
   *  because of the latest request that still waits, or on the server's own account after it. */
  private placeFor(msg: Json): Cue[] {
    const waiting = [...this.open.values()];
    const owner = waiting.find(({ request }) => isOwner(request.msg, msg));
    const latest = waiting.findLast(({ request }) => !isStream(request.msg));
    const last = this.exchanges.at(-1);
    const exchange = owner ?? latest;
    if (exchange) return exchange.during;
    return last?.after ?? this.prelude;
  }
}

function isOwner(request: Json, msg: Json) {
  if (!isNotification(msg)) return false;
  const params = asObject(msg.params);
  if (msg.method === 'notifications/subscriptions/acknowledged')
    return subscriptionIn(params) === request.id;
  const { progressToken } = params;
  return progressToken !== undefined && progressToken === tokenOf(request.params);
}

export const subscriptionIn = (params: unknown) =>
  asObject(asObject(params)._meta)[SUBSCRIPTION_KEY];

/** It waits as long as the connection lives, so nothing comes "because of it". */
export const isStream = ({ method }: Json) => method === 'subscriptions/listen';

// ─── Which requests are the same ────────────────────────────────────────────────────────────────

/** Two requests are the same if method and parameters are; `_meta` differs from run to run. */
export function requestKey(request: Json): string {
  const known = keys.get(request);
  if (known !== undefined) return known;
  const key = canonicalJson([request.method, comparableParams(request.params)]);
  keys.set(request, key);
  return key;
}

const keys = new WeakMap<Json, string>(); // each request is compared with every recorded one

/** What counts of some parameters. An empty object says as much as none: "arguments": {}. */
export function comparableParams(params: unknown): Json {
  const { _meta, ...rest } = asObject(params);
  const isEmpty = (value: unknown) => isObject(value) && Object.keys(value).length === 0;
  return Object.fromEntries(Object.entries(rest).filter(([, value]) => !isEmpty(value)));
}

// What was secret is three asterisks in the recording, and matches anything.
export const MASKED = /\*\*\*/;

type Difference = { path: string; recorded: unknown; given: unknown };

/** The places where two values differ, the first one first. */
export function differences(recorded: unknown, given: unknown, path = ''): Difference[] {
  if (typeof recorded === 'string' && MASKED.test(recorded)) return [];
  if (Array.isArray(recorded) && Array.isArray(given)) {
    const length = Math.max(recorded.length, given.length);
    const indexes = Array.from({ length }, (_, i) => i);
    return indexes.flatMap((i) => differences(recorded[i], given[i], `${path}[${i}]`));
  }
  if (isObject(recorded) && isObject(given)) {
    const keys = [...new Set([...Object.keys(recorded), ...Object.keys(given)])];
    const below = (key: string) => (path === '' ? key : `${path}.${key}`);
    return keys.flatMap((key) =>
      differences(ownValue(recorded, key), ownValue(given, key), below(key)),
    );
  }
  return Object.is(recorded, given) ? [] : [{ path, recorded, given }];
}
