// worker-transport.ts: a server in a Web Worker, which is a web page's idea of a child process. What
// it writes and what it is told are posted, so the same lines go both ways.

import { asObject, isLonger, McpError, passOn, show } from '../../mcp.ts';
import type { ErrorKind, Json, Message, Transport, TransportEvents } from '../../mcp.ts';
import type { TransportFactory } from '../../mcp.ts';

/** As much of a Worker as we need. A thread of Node's can be dressed as one. */
export type WorkerLike = {
  postMessage(data: unknown): void;
  addEventListener(type: 'message' | 'error', listener: (event: WorkerEvent) => void): void;
  terminate(): unknown;
};
type WorkerEvent = { data?: unknown; message?: string };

/** We post { in }; a server posts { out }, { err } and, as its last word, { exit }. */
export class WorkerTransport implements Transport {
  private who: string;
  private startWorker: () => WorkerLike;
  private maxBytes: number;
  private worker?: WorkerLike;
  private events?: TransportEvents;
  private rest = ''; // a line whose end has not come
  private ended?: McpError;

  constructor(serverName: string, startWorker: () => WorkerLike, maxBytes: number) {
    this.who = `MCP server "${serverName}" (in a worker)`;
    this.startWorker = startWorker;
    this.maxBytes = maxBytes;
  }

  async start(events: TransportEvents): Promise<void> {
    if (this.ended) throw this.ended;
    this.events = events;
    const worker = this.startWorker();
    this.worker = worker;
    worker.addEventListener('message', ({ data }) => {
      if (this.ended) return; // what was posted before we ended it may still come
      const { out, err, exit } = asObject(data);
      if (typeof err === 'string') events.stderr?.(err);
      if (typeof out === 'string') this.read(out);
      if (exit !== undefined) this.end('closed', `ended with code ${show(exit)}`);
    });
    worker.addEventListener('error', ({ message = 'it could not be loaded' }) => {
      this.end('closed', `broke down: ${message}`);
    });
  }

  /** A post is no line: it may hold half of one, or a hundred. */
  private read(text: string): void {
    const lines = (this.rest + text).split('\n');
    this.rest = lines.pop()!;
    for (const line of lines) {
      if (isLonger(line, this.maxBytes)) return this.endTooLong();
      passOn(line, this.who, this.events!);
      if (this.ended) return; // by what it said
    }
    if (isLonger(this.rest, this.maxBytes)) this.endTooLong();
  }

  async send(message: Message): Promise<void> {
    if (this.ended) throw this.ended;
    if (!this.worker) throw this.error('closed', 'is not running; call start() first');
    this.worker.postMessage({ in: `${JSON.stringify(message)}\n` });
  }

  async close(): Promise<void> {
    this.end('closed', 'was closed by us');
  }

  private end(kind: ErrorKind, how: string): void {
    if (this.ended) return; // reported once
    this.ended = this.error(kind, how);
    this.worker?.terminate(); // also out of an endless loop
    this.events?.closed(this.ended);
  }

  private endTooLong(): void {
    this.end('limit', `sent a line of more than ${this.maxBytes} bytes`);
  }

  private error(kind: ErrorKind, what: string): McpError {
    return new McpError(kind, `${this.who} ${what}`);
  }
}

/** The transport for {"type": "worker", …}: what an entry says besides is for who starts it. */
export function workerTransport(startWorker: (config: Json) => WorkerLike): TransportFactory {
  return (serverName, config, maxBytes) =>
    new WorkerTransport(serverName, () => startWorker(config), maxBytes);
}
