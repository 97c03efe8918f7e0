// unix-socket.ts: a server that is running already and listens at a path: one message per line, both
// ways, as on stdio.

import { connect, type Socket } from 'node:net';
import {
  escapeSeparators,
  isLonger,
  LineBuffer,
  McpError,
  notReading,
  passOn,
  MAX_LINE_BYTES,
  MAX_UNSENT,
  type ErrorKind,
  type Json,
  type Message,
  type Transport,
  type TransportEvents,
} from '../../mcp.ts';

const GOODBYE_MS = 1000;

export class UnixSocketTransport implements Transport {
  private who: string;
  private path: string;
  private maxLineBytes: number;
  private events!: TransportEvents;
  private socket?: Socket;
  private lines = new LineBuffer();
  private isClosing = false;
  private ended?: McpError;

  constructor(serverName: string, { path }: Json, maxLineBytes: number) {
    const name = `MCP server "${serverName}"`;
    if (typeof path !== 'string' || path === '' || path.includes('\0'))
      throw new McpError('config', `${name}: "path" is missing or is not a string`);

    this.path = path;
    this.who = `${name} (${path})`;
    this.maxLineBytes = Math.min(maxLineBytes, MAX_LINE_BYTES);
  }

  start(events: TransportEvents): Promise<void> {
    this.events = events;
    return new Promise((resolve, reject) => {
      const socket = connect({ path: this.path });
      this.socket = socket;
      let problem = '';
      // Without a listener the event would end our whole program.
      socket.on('error', (error) => (problem = `: ${error.message}`));
      socket.on('close', () => {
        reject(this.error('unreachable', `cannot be reached${problem}; is it running?`));
      });
      socket.on('connect', () => {
        resolve(); // from now on the rejection above has no effect
        socket.on('data', (chunk) => this.read(chunk));
        for (const sign of ['end', 'close'])
          socket.on(sign, () => this.end('closed', `broke off${problem}`));
      });
    });
  }

  /** As in chapter 2: a line is decoded when all its bytes are there. */
  private read(chunk: Buffer): void {
    const whole = this.lines.takeWhole(chunk);
    for (const line of whole.toString().split('\n')) {
      if (this.ended) return;
      if (isLonger(line, this.maxLineBytes)) return this.endTooLong();
      passOn(line, this.who, this.events);
    }
    if (this.lines.unreadBytes > this.maxLineBytes) this.endTooLong();
  }

  send(message: Message): Promise<void> {
    return new Promise((resolve, reject) => {
      const { socket } = this;
      const gone = () => reject(this.ended ?? this.error('closed', 'is not connected'));
      if (!socket || this.isClosing) return gone();
      if (socket.writableLength > MAX_UNSENT) return reject(notReading(this.who));
      const line = `${escapeSeparators(JSON.stringify(message))}\n`;
      socket.write(line, (error) => {
        // A write that was cut off is reported as done.
        if (!error && !socket.destroyed) return resolve();
        this.end('closed', 'broke off in the middle of a message');
        gone();
      });
    });
  }

  /** End of input, as on stdio. But the server is not ours: only the connection ends. */
  async close(): Promise<void> {
    this.isClosing = true;
    const { socket } = this;
    if (!socket || socket.closed) return;
    setTimeout(() => socket.destroy(), GOODBYE_MS).unref();
    await new Promise((done) => socket.once('close', done).end());
  }

  private end(kind: ErrorKind, how: string) {
    if (this.ended) return; // report the end once
    this.ended = this.error(kind, this.isClosing ? 'was closed by us' : how);
    this.lines.clear();
    this.socket!.destroy();
    this.events.closed(this.ended);
  }

  private endTooLong(): void {
    this.end('limit', `sent a line of more than ${this.maxLineBytes} bytes`);
  }

  private error(kind: ErrorKind, what: string) {
    return new McpError(kind, `${this.who} ${what}`);
  }
}
