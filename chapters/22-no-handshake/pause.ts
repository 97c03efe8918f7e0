// pause.ts: waiting, as a parameter, so that a test need not wait.

import { setTimeout as wait } from 'node:timers/promises';

/** Resolves after so many milliseconds, or when the signal aborts. */
export type Pause = (ms: number, signal?: AbortSignal) => Promise<void>;

export const sleep: Pause = (ms, signal) => wait(ms, undefined, { signal }).catch(() => {});

/** The same, but the program may end meanwhile. */
export const doze: Pause = (ms, signal) =>
  wait(ms, undefined, { signal, ref: false }).catch(() => {});
