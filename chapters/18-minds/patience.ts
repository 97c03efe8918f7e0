// patience.ts: when to query a model again after it has failed, and when to give up.

const FIRST_MS = 500;
const LONGEST_MS = 30_000;
const BUSY_MS = 120_000; // all pauses together, for a model that is busy
const OTHER_RETRIES = 2; // after anything else that may pass
const POLITE_RETRIES = 2; // come as early as the server likes

/** Too many want the model at this moment. It has understood us, and will have time again. */
export const isBusy = (status?: number) => [429, 503, 529].includes(status ?? 0);

/** What is known of a failure. `waitMs`: the server said when to come back. */
type Failure = { retry: boolean; status?: number | undefined; waitMs?: number | undefined };

/** The patience of one query: it knows what was tried before. */
export class Patience {
  pausedMs = 0;
  retries = 0;
  private others = 0; // failures of a model that was not busy

  /** How long to wait before the next try; nothing if there is none. */
  pauseAfter({ retry, status, waitMs }: Failure): number | undefined {
    const left = Math.max(0, BUSY_MS - this.pausedMs);
    const isOver = isBusy(status) ? left === 0 : this.others++ >= OTHER_RETRIES;
    if (!retry || isOver) return undefined;
    const growing = Math.min(FIRST_MS * 2 ** this.retries, LONGEST_MS);
    const scattered = growing * (1 - Math.random() / 4); // else all clients return at once
    let ms = Math.min(scattered, left);
    // A server that says "at once" again and again would have us query it without a pause.
    const isPolite = this.retries < POLITE_RETRIES;
    if (waitMs !== undefined && (isPolite || waitMs > ms)) ms = waitMs;
    this.retries++;
    this.pausedMs += ms;
    return ms;
  }
}
