// process.ts: `process` in a worker. What it writes is posted to the page or worker that started it as
// { out } and { err }, its end as { exit }; it is told { in } and { end }.

import { Buffer } from 'node:buffer';
import { EventEmitter } from 'node:events';
import { NODE } from './disk.ts';
import type { Task } from './script.ts';
import { countedTimers, later } from './timers.ts';

/** What `process.exit` throws, so that nothing behind it runs. */
export const LEFT = new Error('process.exit was called');

const post = postMessage.bind(globalThis) as (data: object) => void;

class Output extends EventEmitter {
  readonly isTTY = false;
  readonly columns = 80;
  readonly writableLength = 0;
  readonly write: (data: string | Uint8Array, ...rest: unknown[]) => boolean;

  constructor(key: 'out' | 'err') {
    super();
    // Not a method: a fixture takes it away, and puts another in its place.
    this.write = (data, ...rest) => {
      post({ [key]: new Uint8Array(Buffer.from(data as string)) });
      (rest.find((each) => typeof each === 'function') as (() => void) | undefined)?.();
      return true;
    };
  }

  end(): void {}
}

class Input extends EventEmitter {
  private isText = false;
  private early: (string | undefined)[] = []; // what came before there was a listener

  constructor() {
    super();
    this.on('newListener', (name) => {
      if (name === 'data') queueMicrotask(() => this.early.splice(0).forEach(this.give));
    });
  }

  /** undefined: there is no more. */
  hear(text?: string): void {
    if (this.listenerCount('data') > 0) this.give(text);
    else this.early.push(text);
  }

  private give = (text?: string): void => {
    if (text === undefined) this.emit('end');
    else this.emit('data', this.isText ? text : Buffer.from(text));
  };

  setEncoding(): this {
    this.isText = true;
    return this;
  }

  resume = () => this;
  pause = () => this;
  unref = () => this;
  destroy = () => this;
}

export function makeProcess(
  { args, file, world: { pid, cwd, env } }: Task,
  kill: (pid: number, signal?: string | number) => boolean,
) {
  const base = Object.assign(new EventEmitter(), { exitCode: undefined as unknown });
  const exit = (code: unknown = base.exitCode ?? 0): never => {
    base.emit('exit', code);
    post({ exit: code });
    throw LEFT;
  };
  const process = Object.assign(base, {
    argv: [NODE, file, ...args],
    execPath: NODE,
    execArgv: [],
    env: { ...env },
    platform: 'linux',
    pid,
    ppid: 1,
    version: 'v20.0.0',
    versions: { node: '20.0.0' },
    features: { typescript: true },
    stdin: new Input(),
    stdout: new Output('out'),
    stderr: new Output('err'),
    cwd: () => cwd,
    exit,
    kill,
    getuid: () => 1000,
    nextTick: (work: (...given: unknown[]) => void, ...given: unknown[]) =>
      queueMicrotask(() => work(...given)),
    emitWarning: () => {},
    getActiveResourcesInfo: () => Array(countedTimers()).fill('Timeout'),
    memoryUsage: Object.assign(() => ({ rss: 0, heapUsed: 0 }), { rss: () => 0 }),
    uptime: () => performance.now() / 1000,
    hrtime: { bigint: () => BigInt(Math.round(performance.now() * 1e6)) },
  });
  return process;
}

export type PageProcess = ReturnType<typeof makeProcess>;

/** An error that is not caught ends a process, unless it listens. */
export function watchErrors(process: PageProcess): void {
  const fail = (error: any) => {
    if (error === LEFT) return;
    try {
      if (process.emit('uncaughtException', error)) return;
      process.stderr.write(`${error?.stack ?? error}\n`);
      process.exit(1);
    } catch {} // it has left
  };
  addEventListener('error', (event) => {
    event.preventDefault();
    fail(event.error ?? event.message);
  });
  addEventListener('unhandledrejection', (event) => {
    event.preventDefault();
    if (event.reason === LEFT) return;
    if (!process.emit('unhandledRejection', event.reason)) fail(event.reason);
  });
}

/** What the other side says; and the end, when there is nothing left to wait for. */
export function hearInput(process: PageProcess, { in: text, end }: { in?: string; end?: true }) {
  if (text !== undefined) process.stdin.hear(text);
  if (!end) return;
  process.stdin.hear();
  const leaveIfIdle = () => {
    if (countedTimers() > 0) later(leaveIfIdle, 50);
    else post({ exit: process.exitCode ?? 0 });
  };
  later(leaveIfIdle, 0);
}
