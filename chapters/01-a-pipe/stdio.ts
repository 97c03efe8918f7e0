// stdio.ts: the transport to a server that is our child process.

import { type ChildProcessWithoutNullStreams as Child, spawn } from 'node:child_process';
import { once } from 'node:events';
import { NETWORK_ENV, isWindows, ourEnv, safeEnv } from './environment.ts';
import { type Json, type Message, passOn } from './messages.ts';
import type { StdioConfig, Transport, TransportEvents } from './transport.ts';
import { Batch, LineBuffer, WRITE_SIZE, escapeSeparators } from '../02-framing/lines.ts';
import { type ErrorKind, McpError } from '../03-three-shapes/errors.ts';
import { MAX_LINE_BYTES, MAX_UNSENT, isLonger, notReading } from '../05-death/bounds.ts';
import { closesWithin, leaveNoOrphan, living, signalGroup } from '../05-death/children.ts';
import { isShortage, lastWordsIn, whyNoStart } from '../05-death/last-words.ts';
import { MARK, marks, newMark } from '../11-goodbye/strays.ts';
import { findCommand, withSafePath } from '../12-three-files/command.ts';

const STDERR_TAIL = 16_384; // characters

const LAST_ANSWERS_MS = 250;

const GOODBYE_STEP_MS = 1000;

/** A server that is our child process: one message per line on its stdin and its stdout. stderr is
 *  not the wire. */
export class StdioTransport implements Transport {
  private who: string;
  private config: StdioConfig;
  private maxLineBytes: number;
  private child!: Child;
  private events!: TransportEvents;
  private lines = new LineBuffer();
  private outbox: Batch[] = [];
  private unsent = 0; // characters in the outbox, and in the writes that are under way
  private stderrTail = '';
  private closing?: Promise<void>;
  private mark = newMark();
  private env?: NodeJS.ProcessEnv;

  constructor(serverName: string, config: Json, maxLineBytes: number) {
    this.config = config as StdioConfig;
    this.who = `MCP server "${serverName}" (${this.config.command})`;
    this.maxLineBytes = Math.min(maxLineBytes, MAX_LINE_BYTES);
  }

  async start(events: TransportEvents): Promise<void> {
    this.events = events;
    const { args = [], cwd } = this.config;
    // Never through a shell: a configuration is data, not a script.
    const child = spawn(this.program(), args, {
      cwd,
      env: this.childEnv(),
      stdio: 'pipe',
      windowsHide: true,
      // A process group of its own lets us end the server together with everything it starts.
      detached: !isWindows,
    });
    this.child = child;
    marks.set(child, this.mark);
    leaveNoOrphan(child);
    child.on('error', (error: NodeJS.ErrnoException) => {
      const kind = isShortage(error.code) ? 'unreachable' : 'start';
      const why = whyNoStart(error, this.program(), this.config.cwd);
      this.end(kind, `could not be started: ${why}`);
    });
    await once(child, 'spawn'); // rejects on 'error'; the pipes may not exist before 'spawn'
    child.stdout.on('data', (chunk: Buffer) => this.read(chunk));
    // A pipe that is not read fills up, and the server blocks in the middle of a log line.
    child.stderr.on('data', (chunk: Buffer) => {
      this.stderrTail = (this.stderrTail + chunk).slice(-STDERR_TAIL);
    });
    child.stderr.on('data', (chunk: Buffer) => this.events.stderr?.(`${chunk}`));
    child.stdin.on('drain', () => this.write());
    child.stdin.on('close', () => this.write()); // what it loses is not waited for
    this.watchForEnd(child);
  }

  private watchForEnd(child: Child): void {
    const end = () => {
      if (!this.closing) this.end();
    };
    // The last answers may still be in the pipes, so wait a moment for them. No longer: a
    // grandchild can hold the pipes open, and a server can live on without stdout.
    const endSoon = () => {
      setTimeout(() => setImmediate(end), LAST_ANSWERS_MS).unref(); // once what has come is read
    };
    // Writing to a dead server raises EPIPE here. Without a listener it would end our program.
    for (const stream of [child.stdin, child.stdout, child.stderr]) {
      stream.on('error', endSoon);
    }
    child.stdout.on('end', endSoon);
    child.on('exit', endSoon);
    child.on('close', () => this.end());
  }

  send(message: Message): Promise<void> {
    if (this.unsent > MAX_UNSENT) return Promise.reject(notReading(this.who));
    // JSON escapes the line feeds inside strings, so this one ends the message.
    const line = JSON.stringify(message) + '\n';
    this.unsent += line.length;
    let batch = this.outbox.at(-1);
    if (!batch) process.nextTick(() => this.write());
    if (!batch || batch.text.length >= WRITE_SIZE) {
      batch = new Batch();
      this.outbox.push(batch);
    }
    batch.text += line;
    return batch.handedOver;
  }

  /** As long as the pipe has room. If it is full, `drain` tells when to go on. */
  private write(): void {
    while (this.outbox.length > 0 && !this.child.stdin.writableNeedDrain) this.writeBatch();
  }

  private writeBatch(): void {
    const { text, done } = this.outbox.shift()!;
    this.child.stdin.write(escapeSeparators(text), () => {
      this.unsent -= text.length;
      done();
    });
  }

  private read(chunk: Buffer): void {
    chunk = this.lines.takeWhole(chunk);
    for (const line of chunk.toString().split('\n')) {
      if (isLonger(line, this.maxLineBytes)) return this.endTooLong();
      passOn(line, this.who, this.events);
    }
    if (this.lines.unreadBytes > this.maxLineBytes) this.endTooLong();
  }

  close(): Promise<void> {
    this.closing ??= this.sayGoodbye();
    return this.closing;
  }

  /** End of input, then SIGTERM, then SIGKILL to the whole group. Most exit on the first step. */
  private async sayGoodbye(): Promise<void> {
    if (!this.child?.pid || !living.has(this.child)) return; // it never ran, or is gone
    while (this.outbox.length > 0) this.writeBatch();
    this.child.stdin.end();
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      if (await closesWithin(GOODBYE_STEP_MS, this.child)) break;
      signalGroup(this.child, signal);
    }
    await closesWithin(GOODBYE_STEP_MS, this.child);
    this.end();
  }

  private end(kind: ErrorKind = 'closed', how?: string): void {
    if (!living.delete(this.child)) return; // report the end once
    signalGroup(this.child, 'SIGKILL'); // anything it started and left behind
    const { stdin, stdout, stderr } = this.child;
    for (const stream of [stdin, stdout, stderr]) {
      stream?.destroy();
    }
    if (this.child.pid) this.child.unref(); // Deno throws for one that never ran
    this.read(Buffer.from('\n')); // some leave it out behind their last message
    this.lines.clear();
    const words = `${this.who} ${how ?? this.howItEnded()}`;
    this.events.closed(new McpError(kind, words));
  }

  private endTooLong(): void {
    this.lines.clear(); // the end reads what is left, and this is too much
    this.end('limit', `sent a line of more than ${this.maxLineBytes} bytes`);
  }

  private howItEnded(): string {
    const { exitCode, signalCode } = this.child;
    let how = `exited with code ${exitCode}`;
    if (exitCode === null) how = 'closed its pipes but did not exit';
    if (signalCode) how = `was ended by ${signalCode}`;
    return `${how}.${this.lastWords()}`;
  }

  lastWords(): string {
    return lastWordsIn(this.stderrTail, this.childEnv());
  }

  private childEnv(): NodeJS.ProcessEnv {
    const env = { ...ourEnv(NETWORK_ENV), ...safeEnv(), ...this.config.env };
    this.env ??= withSafePath({ ...env, [MARK]: this.mark });
    return this.env;
  }

  private program(): string {
    return findCommand(this.config.command, this.childEnv());
  }
}
