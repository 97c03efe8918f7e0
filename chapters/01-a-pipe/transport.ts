// transport.ts: seam 1: what moves messages.

import type { Id, Json, Message } from './messages.ts';
import type { Words } from '../12-three-files/entry.ts';

/** Moves whole messages and does not know what they mean. */
export interface Transport {
  /** Resolves when messages can be sent; rejects if that can never happen. */
  start(events: TransportEvents): Promise<void>;
  /** Resolves once the message is handed over, so that awaiting it respects a slow reader. Rejects
   *  if it is lost, unless `closed` reports it. `headers` are for transports that have some. */
  send(message: Message, headers?: Record<string, string>): Promise<void>;
  /** Says goodbye; resolves when no process or socket is left. May be called twice. */
  close(): Promise<void>;
  /** What may explain a silence, such as the last lines of stderr. */
  lastWords?(): string;
  /** Each request has a stream, and headers, of its own; else all share one stream. */
  readonly hasStreamPerRequest?: boolean;
}
export interface TransportEvents {
  message(message: unknown): void;
  /** Something came that is not passed on; the connection lives. `id`: what it answered. */
  dropped?(why: Error, id?: Id): void;
  stderr?(text: string): void; // a server on this machine wrote it beside the wire
  closed(why: Error): void; // once, and always as the last event
}
/** Only checks the configuration: `mcp add` makes a transport just to check an entry. */
export type TransportFactory = {
  (serverName: string, config: Json, maxMessageBytes: number): Transport;
  words?: Words; // of the configuration, that it reads
};

export type StdioConfig = {
  command: string;
  args?: string[];
  env?: Record<string, string>;
  cwd?: string;
};

/** Which transport an entry wants. Without a `type`, an address means HTTP or a WebSocket. */
export function transportType({ type, url, command }: Json): string {
  if (type !== undefined) return `${type}`;
  if (typeof url !== 'string' || command !== undefined) return 'stdio';
  return /^wss?:/i.test(url) ? 'ws' : 'http';
}
