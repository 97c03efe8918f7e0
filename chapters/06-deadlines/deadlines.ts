// deadlines.ts: when calls run out of time. One alarm for all of them, at the earliest end.

import { now } from '../01-a-pipe/messages.ts';
import type { Call } from '../04-correlation/extension.ts';
import type { Connection } from '../../mcp.ts';

const MAX_TIMER_MS = 2 ** 31 - 1; // a longer setTimeout fires at once

type Timed = { call: Call; startedAt: number; endsAt: number };

export class Deadlines {
  private limits: Connection['options'];
  private calls: () => Map<unknown, Timed>; // that wait for their answers
  private onTimeout: (id: number, limitMs: number) => void;
  private alarm?: ReturnType<typeof setTimeout>;
  private alarmAt = Infinity;
  private holds = new Set<Promise<unknown>>(); // what a person thinks about
  private heldSince = 0;

  constructor(
    limits: Connection['options'],
    calls: Deadlines['calls'],
    onTimeout: Deadlines['onTimeout'],
  ) {
    this.limits = limits;
    this.calls = calls;
    this.onTimeout = onTimeout;
  }

  /** Sets the end of a call that begins, or moves it after a sign of progress. */
  set(timed: Timed, from: number): void {
    const { timeoutMs = this.limits.callTimeoutMs } = timed.call.options;
    let endsAt = from + timeoutMs;
    const most = Math.max(timeoutMs, this.limits.maxCallMs);
    endsAt = Math.min(endsAt, timed.startedAt + most); // even progress cannot extend it further
    if (this.holds.size > 0) endsAt = Infinity; // it is set when a person has answered
    timed.endsAt = endsAt;
    this.setAlarm(endsAt);
  }

  /** A timer for each call would cost a sixth of the whole call. */
  private setAlarm(at: number): void {
    this.alarm?.ref?.();
    if (at >= this.alarmAt) return;
    clearTimeout(this.alarm);
    this.alarmAt = at;
    const ms = Math.min(at - now(), MAX_TIMER_MS);
    this.alarm = setTimeout(() => this.ring(), ms);
  }

  /** No call waits. The alarm stays for those to come, but must not keep the program alive. */
  rest(): void {
    this.alarm?.unref?.();
  }

  /** Some of those that wait may have more time by now, or be answered. */
  private ring(): void {
    this.alarmAt = Infinity;
    for (const [id, timed] of this.calls()) {
      if (timed.endsAt <= now()) this.onTimeout(id as number, this.limitOf(timed));
      else this.setAlarm(timed.endsAt);
    }
  }

  /** The limit that a call has reached. */
  private limitOf({ call, startedAt }: Timed): number {
    const { timeoutMs = this.limits.callTimeoutMs } = call.options;
    const most = Math.max(timeoutMs, this.limits.maxCallMs);
    if (now() - startedAt >= most) return most;
    return timeoutMs;
  }

  /** Until `work` is done no call runs out of time; afterwards each has its whole limit again. */
  async hold<T>(work: Promise<T>): Promise<T> {
    if (this.holds.size === 0) this.heldSince = now();
    this.holds.add(work);
    for (const timed of this.calls().values()) {
      timed.endsAt = Infinity;
    }
    try {
      return await work;
    } finally {
      this.holds.delete(work);
      if (this.holds.size === 0) this.release();
    }
  }

  private release(): void {
    for (const timed of this.calls().values()) {
      const since = Math.max(this.heldSince, timed.startedAt);
      timed.startedAt += now() - since;
      this.set(timed, now());
    }
  }

  stop(): void {
    clearTimeout(this.alarm);
    this.alarmAt = Infinity;
    this.holds.clear();
  }
}
