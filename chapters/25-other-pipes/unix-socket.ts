// unix-socket.ts: a server that is running already and listens at a path: one message per line, both ways, as on stdio.

import { connect, type Socket } from 'node:net';
import { isTooDeep, McpError, type ErrorKind, type Json, type Message } from '../../mcp.ts';
import type { Transport, TransportEvents } from '../../mcp.ts';

const GOODBYE_MS = 1000;

export class UnixSocketTransport implements Transport {
  private who: string;
  private path: string;
  private maxLineBytes: number;
  private events!: TransportEvents;
  private socket?: Socket;
  private unread: Buffer[] = []; // the beginning of a line whose end has not come yet
  private unreadBytes = 0;
  private isClosing = false;
  private ended?: McpError;

  constructor(serverName: string, { path }: Json, maxLineBytes: number) {
    this.path = typeof path === 'string' && !path.includes('\0') ? path : '';
    this.who = `MCP server "${serverName}" (${this.path})`;
    if (!this.path) throw new McpError('config', `MCP server "${serverName}": "path" is missing or is not a string`);
    this.maxLineBytes = Math.min(maxLineBytes, 2 ** 28); // a string cannot hold much more
  }

  start(events: TransportEvents): Promise<void> {
    this.events = events;
    return new Promise((resolve, reject) => {
      const socket = connect({ path: this.path });
      this.socket = socket;
      let problem = '';
      socket.on('error', (error) => (problem = `: ${error.message}`)); // unheard, it would end our whole program
      socket.on('close', () => reject(this.error('unreachable', `cannot be reached${problem}; is it running?`)));
      socket.on('connect', () => {
        resolve(); // from now on the rejection above has no effect
        socket.on('data', (chunk) => this.read(chunk));
        for (const sign of ['end', 'close']) socket.on(sign, () => this.end('closed', `broke off${problem}`));
      });
    });
  }

  /** As in chapter 2: only LF ends a message, and a line is decoded when all its bytes are there. */
  private read(chunk: Buffer): void {
    for (let end = chunk.indexOf('\n'); end !== -1 && !this.ended; end = chunk.indexOf('\n')) {
      this.readLine(Buffer.concat([...this.unread, chunk.subarray(0, end)]));
      [this.unread, this.unreadBytes] = [[], 0];
      chunk = chunk.subarray(end + 1);
    }
    this.unread.push(chunk);
    if (this.unread.length > 4096) this.unread = [Buffer.concat(this.unread)]; // drips: their wrapping weighs more
    this.unreadBytes += chunk.length;
    if (this.unreadBytes > this.maxLineBytes) this.endTooLong();
  }

  private readLine(bytes: Buffer): void {
    const line = bytes.toString().trim();
    if (line === '') return;
    if (bytes.length > this.maxLineBytes) return this.endTooLong();
    if (isTooDeep(line)) return this.end('limit', 'sent a message that is nested too deeply');
    let message: unknown = line; // what is not JSON goes on as text; the connection knows it for noise
    try {
      message = JSON.parse(line);
    } catch {}
    this.events.message(message);
  }

  send(message: Message): Promise<void> {
    return new Promise((resolve, reject) => {
      const { socket } = this;
      const gone = () => reject(this.ended ?? this.error('closed', 'is not connected'));
      if (!socket || this.isClosing) return gone();
      // Legal in JSON, but the line readers of some servers break lines at these two.
      const line = JSON.stringify(message).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029');
      socket.write(`${line}\n`, (error) => {
        if (!error && !socket.destroyed) return resolve(); // a write that was cut off is reported as done
        this.end('closed', 'broke off in the middle of a message');
        gone();
      });
    });
  }

  /** End of input, as on stdio. But the server is not ours: it may live on, and only the connection is over. */
  async close(): Promise<void> {
    this.isClosing = true;
    const { socket } = this;
    if (!socket || socket.closed) return;
    setTimeout(() => socket.destroy(), GOODBYE_MS).unref();
    await new Promise((done) => socket.once('close', done).end());
  }

  private end(kind: ErrorKind, how: string): void {
    if (this.ended) return; // the end is told once
    this.ended = this.error(kind, this.isClosing ? 'was closed by us' : how);
    this.unread = [];
    this.socket!.destroy();
    this.events.closed(this.ended);
  }

  private endTooLong(): void { this.end('limit', `sent a line of more than ${this.maxLineBytes} bytes`); }

  private error(kind: ErrorKind, what: string): McpError { return new McpError(kind, `${this.who} ${what}`); }
}
