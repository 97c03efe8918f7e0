// children.ts: `spawn` in a worker: a child process is a worker of this one. Only Node can be started,
// and a signal ends a child at once, whatever it listens for.

import { Buffer } from 'node:buffer';
import { EventEmitter } from 'node:events';
import { basename, relative } from 'node:path';
import type { Disk } from './disk.ts';
import { EVALUATED, startWorker, type Parts } from './script.ts';
import { later } from './timers.ts';

const PIPE = 65_536; // a pipe hands out no more at once

export type SpawnOptions = { cwd?: string; env?: Record<string, string> };

/** stdout or stderr of a child, at our end. */
class Readable extends EventEmitter {
  destroyed = false;
  readableEnded = false;
  private decoder?: TextDecoder;

  give(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length && !this.destroyed; at += PIPE) {
      const piece = bytes.subarray(at, at + PIPE);
      this.emit('data', this.decoder?.decode(piece, { stream: true }) ?? Buffer.from(piece));
    }
  }

  end(): void {
    this.readableEnded = true;
    this.emit('end');
    this.emit('close');
  }

  setEncoding(): this {
    this.decoder = new TextDecoder();
    return this;
  }

  destroy(): this {
    this.destroyed = true;
    return this;
  }

  resume = () => this;
  pause = () => this;
  ref = () => this;
  unref = () => this;
}

/** stdin of a child, at our end. */
class Writable extends EventEmitter {
  writable = true;
  destroyed = false;
  readonly writableLength = 0;
  readonly writableNeedDrain = false;
  private post: (data: { in: string } | { end: true }) => boolean;

  constructor(post: Writable['post']) {
    super();
    this.post = post;
  }

  write(data: unknown, ...rest: unknown[]): boolean {
    const done = rest.find((each) => typeof each === 'function') as (error?: Error) => void;
    const isTaken = this.post({ in: String(data) });
    const error = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' });
    later(() => done?.(isTaken ? undefined : error), 0);
    return true;
  }

  end(data?: unknown): this {
    if (data) this.write(data);
    return this.destroy();
  }

  destroy(): this {
    if (this.writable) this.post({ end: true });
    this.writable = false;
    this.destroyed = true;
    return this;
  }

  cork(): void {}
  uncork(): void {}
  unref(): void {}
}

export class Children {
  private running = new Map<number, Child>();
  private parts: () => Parts;
  private disk: Disk;
  private env: Record<string, string>;
  private lastPid: number;

  constructor(parts: () => Parts, disk: Disk, env: Record<string, string>, pid: number) {
    this.parts = parts;
    this.disk = disk;
    this.env = env;
    this.lastPid = pid * 100;
  }

  spawn = (command: string, args: string[] = [], options: SpawnOptions = {}): Child => {
    const cwd = this.disk.path(options.cwd ?? '.');
    const isThere = basename(command) === 'node' && this.disk.isFolder(cwd);
    const child = new Child(command, args);
    if (!isThere) {
      queueMicrotask(() => child.emit('error', noSuch(command)));
      return child;
    }
    child.pid = ++this.lastPid;
    this.running.set(child.pid, child);
    child.once('exit', () => this.running.delete(child.pid!));
    queueMicrotask(() => this.start(child, args, cwd, options.env ?? this.env));
    return child;
  };

  private start(child: Child, args: string[], cwd: string, env: Record<string, string>): void {
    const isText = args[0] === '-e';
    const file = isText ? EVALUATED : relative(this.disk.path('.'), this.disk.path(args[0]));
    const { runtime, modules } = this.parts();
    const parts = { runtime, modules: isText ? { ...modules, [file]: args[1]! } : modules };
    const world = { pid: child.pid!, cwd, env };
    const task = { role: 'child' as const, file, args: args.slice(isText ? 2 : 1), world };
    child.run(startWorker(parts, task));
    child.emit('spawn');
  }

  /** Of a process, or of a group: here these are the same. */
  kill = (pid: number, signal?: string | number): boolean => {
    const child = this.running.get(Math.abs(pid));
    if (!child) throw Object.assign(new Error('kill ESRCH'), { code: 'ESRCH' });
    return child.kill(signal);
  };
}

class Child extends EventEmitter {
  pid?: number;
  exitCode: number | null = null;
  signalCode: string | null = null;
  killed = false;
  readonly stdin = new Writable((data) => this.post(data));
  readonly stdout = new Readable();
  readonly stderr = new Readable();
  readonly stdio = [this.stdin, this.stdout, this.stderr];
  readonly spawnfile: string;
  readonly spawnargs: string[];
  private worker?: Worker;
  private backlog: object[] = [];
  private isEnded = false;

  constructor(command: string, args: string[]) {
    super();
    this.spawnfile = command;
    this.spawnargs = [command, ...args];
  }

  ref(): void {}
  unref(): void {}

  private post(data: object): boolean {
    if (this.isEnded) return false;
    if (this.worker) this.worker.postMessage(data);
    else this.backlog.push(data);
    return true;
  }

  run(worker: Worker): void {
    this.worker = worker;
    worker.onmessage = ({ data: { out, err, exit } }) => {
      if (this.isEnded) return;
      if (out) this.stdout.give(out);
      if (err) this.stderr.give(err);
      if (exit !== undefined) this.end(Number(exit), null);
    };
    worker.onerror = (event) => {
      event.preventDefault(); // its script could not be read
      this.stderr.give(Buffer.from(`${event.message}\n`));
      this.end(1, null);
    };
    for (const data of this.backlog.splice(0)) worker.postMessage(data);
  }

  kill(signal: string | number = 'SIGTERM'): boolean {
    if (this.isEnded) return false;
    if (signal === 0) return true; // only a question
    this.killed = true;
    this.end(null, String(signal));
    return true;
  }

  private end(code: number | null, signal: string | null): void {
    if (this.isEnded) return;
    this.isEnded = true;
    this.worker?.terminate();
    this.exitCode = code;
    this.signalCode = signal;
    later(() => {
      this.emit('exit', code, signal);
      this.stdout.end();
      this.stderr.end();
      later(() => this.emit('close', code, signal), 0);
    }, 0);
  }
}

const noSuch = (command: string) =>
  Object.assign(new Error(`spawn ${command} ENOENT`), {
    code: 'ENOENT',
    syscall: `spawn ${command}`,
    path: command,
  });
