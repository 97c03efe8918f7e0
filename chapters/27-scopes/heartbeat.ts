// heartbeat.ts: a connection that was silent for long is asked whether it lives. A socket may be dead
// for hours without either side hearing of it: a laptop slept, a router forgot.

import { isStateless, McpError, now, reads, transportType } from '../../mcp.ts';
import type { Extension, McpConnection, EntryWord } from '../../mcp.ts';

const USUAL_MS = 5 * 60_000;
const MIN_MS = 1000;
const MAX_MS = 2 ** 31 - 1; // a longer timer fires at once
const ANSWER_MS = 15_000;
const HELD_OPEN = ['ws', 'sse', 'ws-ide', 'sse-ide']; // one connection for all: it can die unnoticed

/** Calls back later; returns what takes that back. For tests to put their own in its place. */
export type Later = (ms: number, work: () => void) => () => void;

const byTimer: Later = (ms, work) => {
  const timer = setTimeout(work, ms).unref();
  return () => clearTimeout(timer);
};

/** An entry may say otherwise: "heartbeat": 30000, in milliseconds, or 0 for none. */
export function heartbeat({ later = byTimer }: { later?: Later } = {}): Extension {
  return reads({ heartbeat: HEARTBEAT }, function heartbeat(connection) {
    const everyMs = intervalOf(connection);
    if (everyMs === 0) return {};
    const heart = new Heart(connection, everyMs, later);
    return {
      layer: (call, next) => next(call).finally(() => heart.heard()),
      opened: () => heart.begin(),
      closed: () => heart.end(),
    };
  });
}

function intervalOf({ config }: McpConnection): number {
  const usual = HELD_OPEN.includes(transportType(config)) ? USUAL_MS : 0;
  return Number(config.heartbeat ?? usual);
}

const HEARTBEAT: EntryWord = {
  form: `a number of milliseconds, at least ${MIN_MS}, or 0`,
  fits: (given) => given === 0 || (typeof given === 'number' && given >= MIN_MS && given <= MAX_MS),
};

class Heart {
  private connection: McpConnection;
  private everyMs: number;
  private later: Later;
  private lastHeard = now();
  private cancel = () => {};

  constructor(connection: McpConnection, everyMs: number, later: Later) {
    this.connection = connection;
    this.everyMs = everyMs;
    this.later = later;
  }

  begin(): void {
    this.end();
    this.heard();
    if (!isStateless(this.connection.server)) this.wait(this.everyMs); // there is no ping any more
  }

  end(): void {
    this.cancel();
  }

  heard(): void {
    this.lastHeard = now();
  }

  private wait(ms: number): void {
    this.cancel = this.later(ms, () => void this.look());
  }

  private async look(): Promise<void> {
    const silentMs = now() - this.lastHeard;
    const isBusy = this.connection.running.length > 0; // then its own limit counts
    if (silentMs < this.everyMs && !isBusy) return this.wait(this.everyMs - silentMs);
    if (!isBusy) await this.beat();
    if (!this.connection.ended) this.wait(this.everyMs);
  }

  /** Whoever answers, and be it with a no, is alive. */
  private async beat(): Promise<void> {
    const { connection } = this;
    try {
      await connection.request('ping', {}, { timeoutMs: ANSWER_MS });
    } catch (error) {
      const isMute = error instanceof McpError && error.kind === 'timeout';
      if (isMute && !connection.isClosed) await this.openAgain().catch(() => {}); // the next call says why
    }
  }

  private async openAgain(): Promise<void> {
    this.connection.warn(
      'heartbeat',
      `did not answer a ping within ${ANSWER_MS / 1000} s; it is connected again`,
    );
    await this.connection.reopen();
    await this.connection.initialize();
  }
}
