// tool-list.ts: when to ask a server for its tools again.

import { now } from '../01-a-pipe/messages.ts';

const LOOK_DELAY_MS = 100;
const MAX_LOOK_DELAY_MS = 5000;

/** When to ask a server for its tools again. */
export class ToolList {
  private list: () => Promise<void>;
  private changes = 1; // that may have happened; the first is that there is a server
  private listed = 0; // how many of them the last list has seen
  private looking?: Promise<void>;
  private lookMs = 0; // how long the last look took
  private timer?: NodeJS.Timeout;

  constructor(list: () => Promise<void>) {
    this.list = list;
  }

  /** The server may have other tools than those that were listed. */
  get isStale(): boolean {
    return this.listed < this.changes;
  }

  get hasListed(): boolean {
    return this.listed > 0;
  }

  changed(): void {
    this.changes++;
  }

  /** One after the other: a late list must not replace a newer one. */
  async look(): Promise<void> {
    while (this.looking) await this.looking;
    const look = this.lookNow();
    const over = () => {
      this.looking = undefined;
    };
    this.looking = look.then(over, over); // the failure itself is thrown below
    await look;
  }

  private async lookNow(): Promise<void> {
    const { changes } = this; // what is announced from now on needs another look
    const startedAt = now();
    try {
      await this.list();
      this.listed = changes;
    } finally {
      this.lookMs = now() - startedAt;
    }
  }

  /** Looks only if it has to. */
  async refresh(): Promise<void> {
    while (this.looking) await this.looking;
    if (this.isStale) await this.look();
  }

  /** Servers may announce many changes at once, or one in answer to every look. So look a little
   *  later, and only when the look before is over. If that took long, later still: else a long list
   *  that keeps changing would take all our time. */
  lookSoon(then: (error?: unknown) => void): void {
    if (this.timer) return;
    const longMs = Math.min(4 * this.lookMs, MAX_LOOK_DELAY_MS);
    const delayMs = Math.max(LOOK_DELAY_MS, longMs);
    const look = async () => {
      await this.looking;
      this.timer = undefined;
      await this.refresh(); // a call may have looked already
    };
    const timer = setTimeout(() => void look().then(() => then(), then), delayMs);
    this.timer = timer.unref();
  }

  stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }
}
