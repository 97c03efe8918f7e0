// built-in.ts: the modules of Node that programs here import, as far as they use them. What is not here
// says so when it is called, and not before: most programs import more than an exercise runs.

import { Buffer } from 'node:buffer';
import { EventEmitter, once } from 'node:events';
import * as path from 'node:path';
import type { Children } from './children.ts';
import { HOME, type Disk } from './disk.ts';
import { getEventListeners } from './listeners.ts';
import { createHash, createHmac, timingSafeEqual } from './sha256.ts';
import { inspect } from './inspect.ts';
import { wait } from './timers.ts';

type BuiltIn = Record<string, unknown>;
const hashes = { createHash, createHmac, timingSafeEqual };

export function builtInModules(
  disk: Disk,
  children: Children,
  load: (name: string) => unknown,
): Record<string, BuiltIn> {
  const { promises, ...fs } = disk.module();
  const own: Record<string, BuiltIn> = {
    buffer: { Buffer },
    child_process: { spawn: children.spawn, spawnSync: () => ({ status: 1, stdout: '' }) },
    crypto: { ...hashes, randomBytes, randomInt, randomUUID: () => crypto.randomUUID() },
    events: { EventEmitter, once, getEventListeners, setMaxListeners: () => {} },
    fs: { ...fs, promises },
    'fs/promises': promises,
    module: { syncBuiltinESMExports: () => {} }, // there is one object for all who import it
    os: { homedir: () => HOME, tmpdir: () => '/tmp', hostname: () => 'page', EOL: '\n' },
    path: { ...path, posix: path },
    'timers/promises': { setTimeout: wait, setImmediate: (value: unknown) => wait(0, value) },
    url: { fileURLToPath: (url: string | URL) => decodeURIComponent(new URL(url).pathname), URL },
    util: { inspect, isDeepStrictEqual, promisify },
    vm: { createContext: (context: object) => context, Script },
  };
  own.worker_threads = { Worker: asideIn((file) => load(path.relative(disk.path('.'), file))) };
  own.path!.default = path;
  own.events!.default = EventEmitter;
  const names = new Set([...Object.keys(own), 'console', 'net', 'http', 'https']);
  return Object.fromEntries([...names].map((name) => [name, withAbsent(name, own[name] ?? {})]));
}

/** A module whose other names are there, and throw when they are used. */
function withAbsent(module: string, own: BuiltIn): BuiltIn {
  const isAbsent = (name: string | symbol) =>
    typeof name === 'string' && !(name in own) && name !== '__esModule' && name !== 'default';
  return new Proxy(own, {
    get: (_, name) => (isAbsent(name) ? absent(`${module}.${String(name)}`) : own[name as string]),
  });
}

const absent = (name: string) => (): never => {
  throw new Error(`a page has no ${name}`);
};

const MOST_AT_ONCE = 65_536; // more is refused by a browser

function randomBytes(count: number): Buffer {
  const bytes = Buffer.alloc(count);
  for (let at = 0; at < count; at += MOST_AT_ONCE)
    crypto.getRandomValues(bytes.subarray(at, at + MOST_AT_ONCE));
  return bytes;
}

function randomInt(low: number, high?: number): number {
  if (high === undefined) return randomInt(0, low);
  return low + Math.floor(Math.random() * (high - low));
}

/** For what JSON can say. */
function isDeepStrictEqual(one: any, two: any): boolean {
  if (Object.is(one, two)) return true;
  if (typeof one !== 'object' || typeof two !== 'object' || !one || !two) return false;
  const names = Object.keys(one);
  return (
    Array.isArray(one) === Array.isArray(two) &&
    names.length === Object.keys(two).length &&
    names.every((name) => Object.hasOwn(two, name) && isDeepStrictEqual(one[name], two[name]))
  );
}

type Callback = (error: unknown, value: unknown) => void;
const promisify =
  (call: (...given: unknown[]) => void) =>
  (...given: unknown[]) =>
    new Promise((done, fail) => {
      const settle: Callback = (error, value) => (error ? fail(error) : done(value));
      call(...given, settle);
    });

/** The one script of schema.ts; without its limit, for a worker that hangs is ended from outside. */
class Script {
  constructor(text: string) {
    if (text !== 'expression.test(text)') throw new Error(`a page cannot run ${text}`);
  }

  runInContext({ expression, text }: { expression: RegExp; text: string }): boolean {
    return expression.test(text);
  }
}

/** The one thread of programs here, that of aside.ts, which does what it is told in this one: a worker
 *  that hangs is ended from outside. */
function asideIn(load: (file: string) => unknown) {
  return class extends EventEmitter {
    ref(): void {}
    unref(): void {}
    terminate(): void {}

    async postMessage({ file, name, given }: { file: string; name: string; given: unknown[] }) {
      await wait(0);
      const calls = load(file) as Record<string, (...given: unknown[]) => unknown>;
      this.emit('message', { hasBegun: true });
      try {
        this.emit('message', { result: await calls[name]!(...given) });
      } catch (error) {
        this.emit('message', { problem: (error as Error).message });
      }
    }
  };
}
