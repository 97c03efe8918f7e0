// order.ts: which calls of tools may be under way at the same time.
//
// Many servers read a file, change it and write it back. Two such calls at once, and one of them is
// lost although both were answered with a success. So the calls to one server wait in line, unless
// its entry says otherwise: "order": "reads-parallel" or "parallel". The line is part of the
// connection. Whoever calls, an agent, its sub-agents or a script, waits in the same one.
//
// So must a handler: one that answers a question of a server by calling a tool of the same server
// waits for the call that the question belongs to, until that one is out of time. None of ours does.

import { setMaxListeners } from 'node:events';
import { asObject, reads } from '../../mcp.ts';
import { unlessAborted } from '../15-the-loop/unless-aborted.ts';
import { noteTools } from '../24-more-than-tools/tasks.ts';
import { isForModels } from './more/apps.ts';
import type { Call, Json, McpConnection, Next, EntryWord } from '../../mcp.ts';

const ORDERS = ['serial', 'reads-parallel', 'parallel'] as const;
type Order = (typeof ORDERS)[number];
const ORDER: EntryWord = {
  form: `one of ${ORDERS.join(', ')}`,
  fits: (value) => ORDERS.some((each) => each === value),
};
const MAX_AT_ONCE = 10; // of one server, whatever its entry says

/** It reads, says the tool itself, and does not say that it destroys as well. An entry with
 *  "reads-parallel" takes the server's word for it. */
export function saysItReads(tool: unknown): boolean {
  const { readOnlyHint, destructiveHint } = asObject(asObject(tool).annotations);
  return readOnlyHint === true && destructiveHint !== true;
}

// ─── In the connection ─────────────────────────────────────────────────────────────────────────

/** Inside `answerWithin`: while a person thinks about a question in a result, the server does not
 *  work, and the line moves on. */
export const inOrder = reads({ order: ORDER }, function inOrder(connection) {
  const { order = 'serial' } = connection.config;
  const line = new CallQueue(connection, order as Order);
  const apart = new Set<unknown>(); // the names of tools for apps alone: they may wait for a click
  const noted = (result: Json) => {
    noteTools(result, apart, (tool) => !isForModels(tool));
    return noteTools(result, line.reading, saysItReads);
  };
  return {
    layer: (call, next) => {
      if (apart.has(call.params?.name)) return next(call);
      if (call.method === 'tools/call') return line.take(call, next);
      if (call.method === 'tools/list') return next(call).then(noted);
      return next(call);
    },
    closed: () => line.closed(),
  };
});

/** A call that waits, or is under way. */
type WaitingCall = {
  isReading: boolean;
  go: () => void; // it is its turn
  refuse: (why: Error) => void;
};

class CallQueue {
  private connection: McpConnection;
  private order: Order;
  readonly reading = new Set<unknown>(); // the names of tools that say so
  private waiting: WaitingCall[] = []; // the first is the next
  private running = new Set<WaitingCall>();

  constructor(connection: McpConnection, order: Order) {
    this.connection = connection;
    this.order = order;
  }

  /** The clock of a call starts when it is sent: to wait here takes nothing of its time. */
  async take(call: Call, next: Next): Promise<Json> {
    const { ended } = this.connection;
    const place = await this.placeFor(call);
    try {
      if (!ended) this.mustLive(); // it has died while this call waited
      return await next(call);
    } finally {
      this.leave(place);
    }
  }

  private async placeFor({ params, options: { signal } }: Call): Promise<WaitingCall> {
    let place!: WaitingCall;
    const turn = new Promise<void>((go, refuse) => {
      place = { isReading: this.reading.has(params?.name), go, refuse };
    });
    this.waiting.push(place);
    this.moveOn();
    if (signal) setMaxListeners(0, signal); // one signal may end any number of calls
    try {
      await unlessAborted(turn, signal);
      return place;
    } catch (error) {
      this.leave(place);
      if (!signal?.aborted) throw error;
      const what = 'was not sent tools/call: it was cancelled while it waited in line';
      throw this.connection.error('aborted', what);
    }
  }

  /** Says of what kind it is: a call that was not sent can be sent again. */
  private mustLive(): void {
    const { ended, isClosed } = this.connection;
    if (!ended || isClosed) return;
    const what = `ended before this call was sent: ${ended.message}`;
    throw this.connection.error('unreachable', what);
  }

  /** After its turn, or before. Those behind it may have waited for this one only. */
  private leave(place: WaitingCall): void {
    this.running.delete(place);
    this.waiting = this.waiting.filter((each) => each !== place);
    this.moveOn();
  }

  /** Nobody overtakes: a call that changes something would else wait behind readers without end. */
  private moveOn(): void {
    for (let [first] = this.waiting; first && this.mayRun(first); [first] = this.waiting) {
      this.waiting.shift();
      this.running.add(first);
      first.go();
    }
  }

  private mayRun({ isReading }: WaitingCall): boolean {
    const { running, order } = this;
    if (running.size === 0) return true;
    if (running.size >= MAX_AT_ONCE || order === 'serial') return false;
    if (order === 'parallel') return true;
    return isReading && [...running].every((other) => other.isReading);
  }

  /** A server that died may be started again, by a call whose turn it is. One that was closed for
   *  good answers nobody. */
  closed(): void {
    if (!this.connection.isClosed) return;
    const all = this.waiting.splice(0);
    for (const place of all) place.refuse(this.connection.ended!);
  }
}

// ─── In one answer of a model ──────────────────────────────────────────────────────────────────

/** Where a call belongs: those in one line that are not shared run one after the other. */
export type Lane = { line: string; isShared: boolean };

export function laneOf(server: string, tool: Json, config: Json = {}): Lane {
  const { order } = config;
  const isShared = order === 'parallel' || (order === 'reads-parallel' && saysItReads(tool));
  return { line: server, isShared };
}

type LaneFor<T> = (item: T) => Lane | undefined;
type ItemWork<T, R> = (item: T, n: number) => Promise<R>;

/** Like Promise.all, but each begins when those have ended that it must not run beside: what comes
 *  before it in its line. Without a lane it runs alone, after all before it, before all behind it. */
export async function inLanes<T, R>(
  items: T[],
  lane: LaneFor<T>,
  work: ItemWork<T, R>,
): Promise<R[]> {
  const started: { its?: Lane; done: Promise<R> }[] = [];
  for (const [n, item] of items.entries()) {
    const its = lane(item);
    const earlier = started.filter((other) => !mayRunBeside(its, other.its));
    const ready = Promise.all(earlier.map(({ done }) => done));
    started.push({ its, done: ready.then(() => work(item, n)) });
  }
  return Promise.all(started.map(({ done }) => done));
}

function mayRunBeside(one?: Lane, other?: Lane): boolean {
  if (!one || !other) return false;
  return one.line !== other.line || (one.isShared && other.isShared);
}
