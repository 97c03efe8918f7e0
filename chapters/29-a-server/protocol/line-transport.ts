// line-transport.ts: two streams as a transport, one message per line: our own stdin and stdout, or both
// directions of a socket.

import type { Readable, Writable } from 'node:stream';
import {
  escapeSeparators,
  isLonger,
  LineBuffer,
  MAX_UNSENT,
  McpError,
  notReading,
  passOn,
  type Message,
  type Transport,
  type TransportEvents,
} from '../../../mcp.ts';

const MAX_REQUEST_BYTES = 64 * 2 ** 20;

export class LineTransport implements Transport {
  private input: Readable;
  private output: Writable;
  private events!: TransportEvents;
  private lines = new LineBuffer();
  private isOver = false;

  constructor(input: Readable, output: Writable) {
    this.input = input;
    this.output = output;
  }

  async start(events: TransportEvents): Promise<void> {
    this.events = events;
    this.input.on('data', (chunk: Buffer) => this.read(chunk));
    for (const sign of ['end', 'close', 'error']) this.input.on(sign, () => this.end('has left'));
    this.output.on('error', () => this.end('no longer reads')); // EPIPE
  }

  private read(chunk: Buffer): void {
    const whole = this.lines.takeWhole(chunk);
    for (const line of whole.toString().split('\n')) {
      if (this.isOver) return;
      if (isLonger(line, MAX_REQUEST_BYTES)) return this.end('sent a line that is too long');
      passOn(line, 'The client', this.events);
    }
    if (this.lines.unreadBytes > MAX_REQUEST_BYTES) this.end('sent a line that is too long');
  }

  async send(message: Message): Promise<void> {
    if (this.isOver) throw new McpError('closed', 'The client has left');
    if (this.output.writableLength > MAX_UNSENT) {
      this.end('does not read');
      throw notReading('The client');
    }
    this.output.write(`${escapeSeparators(JSON.stringify(message))}\n`);
  }

  /** What was sent still arrives. Our own stdout stays open: others may write to it. */
  async close(): Promise<void> {
    this.end('was closed by us');
    if (this.output !== process.stdout) this.output.end();
  }

  private end(how: string): void {
    if (this.isOver) return;
    this.isOver = true;
    this.lines.clear();
    this.events.closed(new McpError('closed', `The client ${how}`));
  }
}
