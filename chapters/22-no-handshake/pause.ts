// pause.ts: waiting, as a parameter, so that a test need not wait; and two signals for one wait.

import { setTimeout as wait } from 'node:timers/promises';

/** Resolves after so many milliseconds, or when the signal aborts. */
export type Pause = (ms: number, signal?: AbortSignal) => Promise<void>;

export const sleep: Pause = (ms, signal) => wait(ms, undefined, { signal }).catch(() => {});

/** The same, but the program may end meanwhile. */
export const doze: Pause = (ms, signal) =>
  wait(ms, undefined, { signal, ref: false }).catch(() => {});

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
