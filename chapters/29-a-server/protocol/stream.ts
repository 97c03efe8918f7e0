// stream.ts: server-sent events, from the side that sends them. A stream can outlive its
// connection: it remembers what it has said, and a client that comes back hears what it has missed.

import type { ServerResponse } from 'node:http';
import type { Message } from '../../../mcp.ts';

const MAX_EVENTS = 1000; // that a stream remembers
const MAX_REMEMBERED = 4 * 2 ** 20; // characters
const MAX_STREAM_UNSENT = 4 * 2 ** 20; // bytes that wait for a client that does not read
const RETRY_MS = 1000; // after this time a client should come back
const HEAD = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no', // nginx would collect the events otherwise
};

type StreamEvent = { number: number; text: string };

export class Stream {
  readonly name: string;
  private remembers: boolean;
  private isPrimed: boolean;
  private events: StreamEvent[] = [];
  private length = 0; // of all remembered events
  private lastNumber = 0;
  private response?: ServerResponse;
  endedAt?: number; // nothing more will be said

  /** Without memory there are no event ids. A client up to 2025-06-18 cannot read the empty event
   *  that primes it. */
  constructor(name: string, { remembers = false, isPrimed = false } = {}) {
    this.name = name;
    this.remembers = remembers;
    this.isPrimed = isPrimed;
  }

  get isConnected(): boolean {
    return this.response !== undefined;
  }

  /** Goes on over this response, after the event with this number. */
  connect(response: ServerResponse, headers: Record<string, string> = {}, after?: number): void {
    this.response?.end(); // a client that comes back has given up the old one
    this.response = response;
    response.on('close', () => {
      if (this.response === response) this.response = undefined;
    });
    response.writeHead(200, { ...HEAD, ...headers });
    response.flushHeaders();
    const isNew = after === undefined;
    if (isNew && this.isPrimed) this.write(`id: ${this.name}/0\nretry: ${RETRY_MS}\ndata:\n\n`);
    if (!isNew) this.replay(after);
    if (this.endedAt !== undefined) this.hangUp();
  }

  private replay(after: number) {
    for (const { number, text } of this.events) if (number > after) this.write(text);
  }

  send(message: Message): void {
    const number = ++this.lastNumber;
    const id = this.remembers ? `id: ${this.name}/${number}\n` : '';
    const text = `${id}event: message\ndata: ${JSON.stringify(message)}\n\n`;
    if (this.remembers) this.remember({ number, text });
    this.write(text);
  }

  private remember(event: StreamEvent) {
    this.events.push(event);
    this.length += event.text.length;
    // The last one is never forgotten: it may be the result.
    while (this.events.length > 1 && this.isTooLong())
      this.length -= this.events.shift()!.text.length;
  }

  private isTooLong() {
    return this.events.length > MAX_EVENTS || this.length > MAX_REMEMBERED;
  }

  private write(text: string) {
    const { response } = this;
    if (!response || response.destroyed) return;
    // It may come back, and hear what it has missed.
    if (response.writableLength > MAX_STREAM_UNSENT) response.destroy();
    else response.write(text);
  }

  /** A comment, so that no proxy on the way thinks that the connection is dead. */
  keepAlive(): void {
    this.write(':\n\n');
  }

  /** Ends the connection, and not the stream. */
  hangUp(): void {
    this.response?.end();
    this.response = undefined;
  }

  end(): void {
    this.endedAt ??= performance.now();
    this.hangUp();
  }
}

/** "s3/12" is the event 12 of the stream s3. */
export function eventId(text: string): { name: string; number: number } | undefined {
  const [, name, number] = /^(\w{1,20})\/(\d{1,9})$/.exec(text) ?? [];
  return name === undefined ? undefined : { name, number: Number(number) };
}
