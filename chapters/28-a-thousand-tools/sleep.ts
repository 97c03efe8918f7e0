// sleep.ts: a server that is not needed does not run, and the next call starts it. It may sleep from
// the beginning, because its tools are known from last time, or when it was idle for a while.

import { TRUE_OR_FALSE, MILLISECONDS, positive, reads, type Extension } from '../../mcp.ts';

const OPENING = /^(initialize|server\/discover|subscriptions\/listen)$/; // part of waking up

type SleepOptions = {
  isNeeded?: (server: string) => boolean; // although it is not called
};

/** The outermost: for the layers inside of it the server is awake. */
export function sleepUntilNeeded({ isNeeded = () => false }: SleepOptions = {}): Extension {
  const words = { lazy: TRUE_OR_FALSE, sleepAfterMs: MILLISECONDS };
  return reads(words, function sleepUntilNeeded(connection) {
    const idleMs = positive(connection.config.sleepAfterMs);
    let waking: Promise<void> | undefined; // one for all that call meanwhile
    let calls = 0; // under way
    let timer: NodeJS.Timeout | undefined;

    const wake = async () => {
      try {
        await connection.reopen();
        await connection.initialize();
        for (const what of ['tools', 'prompts', 'resources'] as const) connection.changed(what);
      } catch (error) {
        connection.giveUp(error as Error); // or each call would start it again
        throw error;
      } finally {
        waking = undefined;
      }
    };
    const sleepLater = () => {
      const sleep = () => (isNeeded(connection.serverName) ? sleepLater() : connection.sleep());
      timer = setTimeout(sleep, idleMs).unref();
    };
    const over = () => {
      calls--;
      if (calls === 0 && !connection.ended) sleepLater();
    };
    return {
      layer: (call, next) => {
        const { method } = call;
        if (OPENING.test(method)) return next(call);
        // To look at its tools is no reason: the manager does that by itself.
        if (connection.isAsleep && method !== 'tools/list') waking ??= wake();
        const answer = waking ? waking.then(() => next(call)) : next(call);
        if (!idleMs) return answer;
        clearTimeout(timer);
        calls++;
        answer.then(over, over);
        return answer;
      },
      closed: () => clearTimeout(timer),
    };
  });
}
