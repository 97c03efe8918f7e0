// extension.ts: seam 2: what is added to a connection.

import type { Id, Json } from '../01-a-pipe/messages.ts';
import type { ServerDescription } from '../07-handshake/handshake.ts';
import type { Tool } from '../08-discovery/tool.ts';
import type { Words } from '../12-three-files/entry.ts';
import type { Connection } from '../../mcp.ts';

export type CallOptions = {
  timeoutMs?: number; // how long to wait for the answer, or for a sign of progress
  signal?: AbortSignal; // cancels the call
  onProgress?: (progress: Json) => void; // asks the server to report its progress
  headers?: Record<string, string>; // for transports that have some
  tool?: Tool; // as the caller saw it: the manager does not call it if it has changed
  caller?: string; // who wants it, for the questions of a server: "Sub-agent 2 (…)"
  isFromApp?: boolean; // an app of this server wants it: chapter 31
};
export type Call = {
  method: string;
  params?: Json;
  options: CallOptions;
};
export type Next = (call: Call) => Promise<Json>;
/** Goes around everything we request: it may change the call, repeat it, or answer it itself. If
 *  there is nothing to do, a plain `return next(call)`, without `async`, makes it free. */
export type Layer = (call: Call, next: Next) => Promise<Json>;

/** What comes with a request or a notification of the server. */
export type Incoming = {
  id?: Id; // of a request
  signal: AbortSignal; // aborts when the server cancels its request, or the connection ends
  call?: Call; // the call of ours that it belongs to, if that is known
};
/** Takes what the server requests or notifies. What it returns is the answer to a request; what it
 *  throws is the refusal (a RpcError keeps its code). */
export type Handler = (params: Json, incoming: Incoming) => unknown;
/** What a server offers, and may change while it runs. */
export type Offer = 'tools' | 'prompts' | 'resources';

/** What is added to a connection. It is called once for each, in the constructor, so it may
 *  remember things. Meanwhile it may read `config` and `options`, and must not request anything.
 *  The function's name is the extension's name in errors; two of one name are an error. */
export type Extension = {
  (connection: Connection): Parts;
  words?: Words; // of an entry, that it reads
};
export type Parts = {
  /** The first extension in the list is the outermost. */
  layer?: Layer;
  /** A request has one handler; a notification (`notifications/…`) any number. */
  handlers?: Record<string, Handler>;
  /** Merged, object by object, into what we declare to the server. */
  capabilities?: Json;
  /** At most one extension has it. */
  handshake?: () => Promise<ServerDescription>;
  /** After each handshake. A second may come without `closed` in between: a new session. */
  opened?: (server: ServerDescription) => void | Promise<void>;
  /** What the server offers has changed, or may have. */
  changed?: (what: Offer) => void | Promise<void>;
  /** No request can be sent any more. Does not pair with `opened`: it may come without one, and
   *  again with another reason. */
  closed?: (why: Error) => void | Promise<void>;
};
