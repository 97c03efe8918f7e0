// client-session.ts: what a server remembers of one client between two requests: on a pipe always,
// over HTTP only in the handshake era.

import {
  asObject,
  excerpt,
  isObject,
  RpcError,
  type Id,
  type Json,
  type Message,
} from '../../../mcp.ts';
import { unlessAborted } from '../../15-the-loop/unless-aborted.ts';

const MAX_WATCHED = 1000; // resources that one client may watch
const MAX_QUESTIONS = 100; // of ours that wait for one client

type AwaitedAnswer = { resolve: (result: Json) => void; reject: (why: Error) => void };

export class ClientSession {
  isOpen = false; // the handshake is done
  version?: string; // that both speak
  capabilities: Json = {}; // of the client
  clientInfo: Json = {};
  logLevel = 'info';
  readonly watched = new Set<string>(); // resources whose changes it wants to hear of
  readonly memory = new Map<unknown, unknown>(); // for handlers, by keys of their own
  /** A message that belongs to no request. */
  readonly send: (message: Message) => void;
  private running = new Map<Id, AbortController>();
  private questions = new Map<Id, AwaitedAnswer>();
  private lastQuestion = 0;

  constructor(send: (message: Message) => void) {
    this.send = send;
  }

  /** The number of requests it waits for. */
  get busy(): number {
    return this.running.size;
  }

  /** One revision has batches. */
  get mayBatch(): boolean {
    return this.version === '2025-03-26';
  }

  tell(method: string, params?: Json): void {
    this.send({ jsonrpc: '2.0', method, ...(params && { params }) });
  }

  // ─── Its requests, while they run ────────────────────────────────────────────────────────────

  /** A controller that aborts when the client cancels the request, or leaves. */
  begin(id: Id): AbortController {
    if (this.running.has(id)) throw new RpcError(-32600, `The id ${excerpt(id)} is in use`);
    const control = new AbortController();
    this.running.set(id, control);
    return control;
  }

  done(id: Id): void {
    this.running.delete(id);
  }

  cancel(id: unknown): void {
    this.running.get(id as Id)?.abort(new Error('cancelled by the client'));
  }

  // ─── Our questions to it ─────────────────────────────────────────────────────────────────────

  /** `send` puts the question where its answer is waited for: on the stream of a call. */
  async request(
    send: (message: Message) => void,
    method: string,
    params: Json,
    signal?: AbortSignal,
  ): Promise<Json> {
    signal?.throwIfAborted();
    if (this.questions.size >= MAX_QUESTIONS) throw new Error('too many open questions');
    const id = `q${++this.lastQuestion}`;
    const answer = new Promise<Json>((resolve, reject) => {
      this.questions.set(id, { resolve, reject });
    });
    send({ jsonrpc: '2.0', id, method, params });
    try {
      return await unlessAborted(answer, signal);
    } catch (error) {
      const cancelled = { requestId: id, reason: 'no longer needed' };
      if (this.questions.delete(id))
        send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: cancelled });
      throw error;
    }
  }

  /** An answer to one of our questions. One that nothing waits for is ignored. */
  answered({ id, result, error }: Json): void {
    const waiter = this.questions.get(id as Id);
    this.questions.delete(id as Id);
    if (!waiter) return;
    if (isObject(result)) return waiter.resolve(result);
    const { message } = asObject(error);
    waiter.reject(new Error(`the client did not answer: ${excerpt(message ?? result)}`));
  }

  // ─── What it watches ─────────────────────────────────────────────────────────────────────────

  watch(uri: string): void {
    if (this.watched.size >= MAX_WATCHED)
      throw new RpcError(-32603, `No more than ${MAX_WATCHED} resources can be watched`);

    this.watched.add(uri);
  }

  /** The client is gone: stop all its work. */
  end(): void {
    const gone = new Error('the client is gone');
    for (const control of this.running.values()) control.abort(gone);
    for (const { reject } of [...this.questions.values()]) reject(gone);
    this.running.clear();
    this.questions.clear();
    this.watched.clear();
  }
}
