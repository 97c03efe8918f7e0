// pause.ts: waiting, as a parameter, so that a test need not wait; and two signals for one wait.

/** Resolves after so many milliseconds, or when the signal aborts. */
export type Pause = (ms: number, signal?: AbortSignal) => Promise<void>;

export const sleep: Pause = (ms, signal) => wait(ms, true, signal);

/** The same, but the program may end meanwhile. */
export const doze: Pause = (ms, signal) => wait(ms, false, signal);

function wait(ms: number, isAwaited: boolean, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    if (!isAwaited) timer.unref?.(); // a web page has no such thing, and does not end
    signal?.addEventListener('abort', done);
  });
}

/** Work with a signal that aborts with either of two. Not AbortSignal.any: on a signal that lives
 *  long it keeps every signal made from it. */
export async function withEither<T>(
  signals: (AbortSignal | undefined)[],
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const abort = () => controller.abort();
  for (const signal of signals) signal?.addEventListener('abort', abort);
  if (signals.some((signal) => signal?.aborted)) abort();
  try {
    return await work(controller.signal);
  } finally {
    for (const signal of signals) signal?.removeEventListener('abort', abort);
  }
}
