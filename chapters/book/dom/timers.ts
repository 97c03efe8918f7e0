// timers.ts: Node's timers are objects, and a process ends when none of them is left that counts.

const { setTimeout: later, setInterval: every, clearTimeout: stop } = globalThis;
export { later };

const living = new Set<Timer>();

class Timer {
  private id: number;
  private isCounted = true;

  constructor(work: () => void, ms: number | undefined, isRepeated: boolean) {
    const once = () => {
      living.delete(this);
      work();
    };
    this.id = (isRepeated ? every(work, ms) : later(once, ms)) as unknown as number;
    living.add(this);
  }

  ref(): this {
    this.isCounted = true;
    return this;
  }

  unref(): this {
    this.isCounted = false;
    return this;
  }

  hasRef(): boolean {
    return this.isCounted;
  }

  clear(): void {
    living.delete(this);
    stop(this.id);
  }

  [Symbol.toPrimitive](): number {
    return this.id;
  }
}

/** Those that would keep a process alive. */
export const countedTimers = () => [...living].filter((timer) => timer.hasRef()).length;

type Work = (...given: unknown[]) => void;
const clear = (timer: unknown) => {
  if (timer instanceof Timer) timer.clear();
};

// A timer of 0 ms is made to wait for 4 ms when it was set by another; a message is not.
const channel = new MessageChannel();
const immediates = new Map<number, () => void>();
let lastImmediate = 0;
channel.port1.onmessage = ({ data }) => {
  const work = immediates.get(data);
  immediates.delete(data);
  work?.();
};

export function installTimers(): void {
  Object.assign(globalThis, {
    setTimeout: (work: Work, ms?: number, ...given: unknown[]) =>
      new Timer(() => work(...given), ms, false),
    setInterval: (work: Work, ms?: number, ...given: unknown[]) =>
      new Timer(() => work(...given), ms, true),
    clearTimeout: clear,
    clearInterval: clear,
    setImmediate: (work: Work, ...given: unknown[]) => {
      immediates.set(++lastImmediate, () => work(...given));
      channel.port2.postMessage(lastImmediate);
      return lastImmediate;
    },
    clearImmediate: (id: number) => void immediates.delete(id),
  });
}

/** setTimeout of node:timers/promises. */
export function wait(
  ms: number,
  value?: unknown,
  { signal }: { signal?: AbortSignal } = {},
): Promise<unknown> {
  return new Promise((done, fail) => {
    const abort = () => {
      stop(timer);
      fail(signal!.reason);
    };
    const timer = later(() => {
      signal?.removeEventListener('abort', abort);
      done(value);
    }, ms);
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
  });
}
