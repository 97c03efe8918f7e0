// unless-aborted.ts: to stop waiting for a promise, without leaving a listener behind.

/** Settles as `work` does, unless `signal` aborts first: then it rejects with its reason. */
export function unlessAborted<T>(work: Promise<T>, signal?: AbortSignal): Promise<T> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    const forget = () => signal.removeEventListener('abort', stop);
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    // Also after a stop: a rejection that is not handled would end the whole program.
    work.then(resolve, reject).finally(forget);
  });
}
