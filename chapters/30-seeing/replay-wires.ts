// replay-wires.ts: the ways in which a recording can be a server: over any transport that is a pipe,
// inside this process for tests, and over HTTP by the server of chapter 29.

import { once } from 'node:events';
import {
  asObject,
  RpcError,
  type Id,
  type Json,
  type Message,
  type Transport,
  type TransportEvents,
} from '../../mcp.ts';
import { linkedPair } from '../25-other-pipes/in-process.ts';
import type { Exchange } from '../29-a-server/server-call.ts';
import { McpServer } from '../29-a-server/server.ts';
import { Replay, type ClientChannel, type ReplayOptions } from './replay.ts';
import { idKey, isResponse, isRequest, word, type Recording } from './more/read-trace.ts';

/** Plays over a pipe. The ids of the server's own requests are those of the recording. */
export class PipeReplay {
  readonly replay: Replay;
  private transport: Transport;
  private replies = new Map<string, (reply: Json) => void>(); // awaited, by the id of our request
  private cancelled = new Set<string>(); // ids of requests

  constructor(replay: Replay, transport: Transport) {
    this.replay = replay;
    this.transport = transport;
  }

  start(closed: () => void = () => {}): Promise<void> {
    // One revision has batches: several messages in a list.
    const message = (given: unknown) => {
      for (const each of [given].flat()) void this.hear(asObject(each));
    };
    return this.transport.start({ message, closed });
  }

  private async hear(message: Json) {
    const id = idKey(message.id);
    if (isResponse(message)) {
      this.replies.get(id)?.(message);
      this.replies.delete(id);
    }
    if (message.method === 'notifications/cancelled')
      this.cancelled.add(idKey(asObject(message.params).requestId));
    if (!isRequest(message)) return;
    const line = this.lineFor(id);
    const { said, afterwards } = await this.replay.answer(message as Message, line);
    if (said) this.send({ id: message.id as Id, ...(said as Json) });
    await afterwards?.(line);
  }

  private lineFor(id: string): ClientChannel {
    return {
      tell: (notification) => this.send(notification),
      ask: (request) => {
        this.send(request);
        return new Promise((done) => this.replies.set(idKey(request.id), done));
      },
      isGone: () => this.cancelled.has(id),
    };
  }

  private send(message: Json) {
    this.transport.send({ ...message, jsonrpc: '2.0' }).catch(() => {}); // the client has left
  }
}

/** For tests, in the place of any other transport. */
export function replayTransport(
  recording: Recording,
  server: string,
  options: ReplayOptions = {},
): Transport & { readonly misses: number } {
  const [ours, theirs] = linkedPair(`the recording of "${server}"`);
  const replay = new Replay(recording, server, options);
  const start = async (events: TransportEvents) => {
    await ours.start(events);
    await new PipeReplay(replay, theirs).start();
  };
  return {
    start,
    send: (message) => ours.send(message),
    close: () => ours.close(),
    get misses() {
      return replay.misses;
    },
  };
}

/** One client over HTTP: a session, or all that have none. */
type ReplayClient = { replay: Replay; owed: ((line: ClientChannel) => Promise<unknown>)[] };

/** For HTTP: the server of chapter 29 with all its checks, and with recorded answers. A stream ends
 *  with its answer, so what the server sent after that is owed, and comes with the next request. */
export class ReplayServer extends McpServer {
  private newReplay: () => Replay;
  private clients = new WeakMap<object, ReplayClient>();
  private ending = new AbortController();

  constructor(newReplay: () => Replay, name: string) {
    super({ name: `replay of ${name}`, version: '1' });
    this.newReplay = newReplay;
  }

  override async answer(request: Message, visit: Exchange): Promise<Json> {
    const { session } = visit;
    const isOpening = request.method === 'initialize';
    const { replay, owed } = this.clientOf(session ?? this);
    const line = isOpening ? laterLine(owed) : lineOf(visit);
    if (!isOpening) for (const pay of owed.splice(0)) await pay(line);
    const { said, afterwards } = await replay.answer(request, line);
    if (!said) return this.silence(visit.signal);
    if (afterwards) owed.push(afterwards);
    if ('error' in said) {
      const { code, message, data } = said.error;
      throw new RpcError(Number(word(code)), word(message), data);
    }
    const result = asObject(said.result);
    if (session && isOpening) {
      session.isOpen = true;
      session.version = word(result.protocolVersion);
    }
    return result;
  }

  override end(): void {
    super.end();
    this.ending.abort();
  }

  private clientOf(key: object) {
    const client = this.clients.get(key) ?? { replay: this.newReplay(), owed: [] };
    this.clients.set(key, client);
    return client;
  }

  /** As silent as the server was then, until either side leaves. */
  private async silence(signal: AbortSignal): Promise<never> {
    const over = AbortSignal.any([signal, this.ending.signal]);
    if (!over.aborted) await once(over, 'abort');
    throw new RpcError(-32000, 'the recording has no answer');
  }
}

/** The answer to `initialize` names the session in its head, so nothing may come before it. */
function laterLine(owed: ReplayClient['owed']): ClientChannel {
  return {
    tell: (notification) => void owed.push(async (line) => line.tell(notification)),
    ask: async (request) => {
      owed.push((line) => line.ask(request));
      return { result: {} };
    },
    isGone: () => false,
  };
}

function lineOf(visit: Exchange): ClientChannel {
  const part = ({ method, params }: Json) => [word(method), asObject(params)] as const;
  return {
    tell: (notification) => visit.tell(...part(notification)),
    ask: async (request) => {
      if (!visit.request) return { error: { code: -32000, message: 'there is no way to ask' } };
      return visit.request(...part(request)).then(
        (result) => ({ result }),
        ({ code, message }) => ({ error: { code, message } }),
      );
    },
    isGone: () => visit.signal.aborted,
  };
}
