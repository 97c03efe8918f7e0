// heartbeat.ts: a connection that was silent for long is asked whether it lives. A socket may be dead
// for hours without either side hearing of it: a laptop slept, a router forgot.

import {
  isStateless,
  McpError,
  now,
  reads,
  transportType,
  type Extension,
  type McpConnection,
  type EntryWord,
} from '../../mcp.ts';

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
    const heart = heartOf(connection, everyMs, later);
    return {
      layer: (call, next) => next(call).finally(() => heart.heard()),
      opened: () => heart.begin(),
      closed: () => heart.end(),
    };
  });
}

function intervalOf({ config }: McpConnection) {
  const usual = HELD_OPEN.includes(transportType(config)) ? USUAL_MS : 0;
  return Number(config.heartbeat ?? usual);
}

const HEARTBEAT: EntryWord = {
  form: `a number of milliseconds, at least ${MIN_MS}, or 0`,
  fits: (given) => given === 0 || (typeof given === 'number' && given >= MIN_MS && given <= MAX_MS),
};

function heartOf(connection: McpConnection, everyMs: number, later: Later) {
  let lastHeard = now();
  let cancel = () => {};
  const heard = () => void (lastHeard = now());
  const wait = (ms: number) => void (cancel = later(ms, () => void look()));
  const look = async () => {
    const silentMs = now() - lastHeard;
    const isBusy = connection.running.length > 0; // then its own limit counts
    if (silentMs < everyMs && !isBusy) return wait(everyMs - silentMs);
    if (!isBusy) await beat(connection);
    if (!connection.ended) wait(everyMs);
  };
  const begin = () => {
    cancel();
    heard();
    if (!isStateless(connection.server)) wait(everyMs); // there is no ping any more
  };
  return { begin, heard, end: () => cancel() };
}

/** Whoever answers, and be it with a no, is alive. */
async function beat(connection: McpConnection) {
  try {
    await connection.request('ping', {}, { timeoutMs: ANSWER_MS });
  } catch (error) {
    const isMute = error instanceof McpError && error.kind === 'timeout';
    if (isMute && !connection.isClosed) await openAgain(connection).catch(() => {}); // the next call says why
  }
}

async function openAgain(connection: McpConnection) {
  const silence = `did not answer a ping within ${ANSWER_MS / 1000} s; it is connected again`;
  connection.warn('heartbeat', silence);
  await connection.reopen();
  await connection.initialize();
}
