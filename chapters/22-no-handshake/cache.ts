// cache.ts: since 2026-07-28 a result says how long it may be kept. Before, a server could promise to
// tell when a list changes; that is as good.

import { asObject, isStateless, now } from '../../mcp.ts';
import type { Call, Extension, Json, Next, Offer, ServerDescription } from '../../mcp.ts';

const MAX_KEPT = 1000; // answers to one method,
const MAX_SIZE = 2 ** 24; // and characters of them together
const MAX_KEPT_MS = 24 * 3600_000; // also for a server that says 1e999
const UNTIL_TOLD_MS = 300_000; // some promise to tell, and do not
const LISTS: Record<Offer, string[]> = {
  tools: ['tools/list'],
  prompts: ['prompts/list'],
  resources: ['resources/list', 'resources/templates/list', 'resources/read'],
};
const MAY_KEEP = Object.values(LISTS).flat();
type CachedResults = Map<string, { result: Json; endsAt: number; size: number }>; // by parameters

/** Answers from memory what the server has said we may remember. */
export const keepAnswers: Extension = (connection) => {
  const kept = new Map<string, CachedResults>(); // by method
  const forget = (...methods: string[]) => {
    for (const method of methods) kept.delete(method);
  };
  return {
    layer: (call, next) => {
      if (!MAY_KEEP.includes(call.method) || isRepetition(call)) return next(call);
      const { server } = connection;
      if (isStateless(server)) return answer(call, next, kept);
      return willTell(server, call) ? answer(call, next, kept, UNTIL_TOLD_MS) : next(call);
    },
    handlers: { 'notifications/resources/updated': () => forget('resources/read') },
    opened: () => kept.clear(),
    changed: (what) => forget(...LISTS[what]),
  };
};

/** Of the handshake era: it announces every change of this list. That of the tools is the manager's. */
function willTell(server: ServerDescription | undefined, { method }: Call): boolean {
  const [offer = ''] = method.split('/');
  const isList = method.endsWith('/list') && offer !== 'tools';
  return isList && asObject(server?.capabilities?.[offer]).listChanged === true;
}

/** With answers to what the server asked: a request like no other. */
const isRepetition = ({ params = {} }: Call) =>
  'inputResponses' in params || 'requestState' in params;

async function answer(
  call: Call,
  next: Next,
  kept: Map<string, CachedResults>,
  ms?: number,
): Promise<Json> {
  const { _meta, ...params } = call.params ?? {};
  const answers: CachedResults = kept.get(call.method) ?? new Map();
  kept.set(call.method, answers);
  const key = JSON.stringify(params);
  const found = answers.get(key);
  if (found && now() < found.endsAt) return found.result;
  answers.delete(key);
  try {
    const result = await next(call);
    // If the list has changed while we waited, `answers` is a map that is not in use any more.
    keep(answers, key, { ttlMs: ms, ...result });
    return result;
  } catch (error) {
    if ('cursor' in params) kept.delete(call.method); // its page may no longer be true
    throw error;
  }
}

function keep(answers: CachedResults, key: string, result: Json): void {
  const { ttlMs, resultType = 'complete' } = result;
  if (typeof ttlMs !== 'number' || !(ttlMs > 0) || resultType !== 'complete') return;
  const size = key.length + JSON.stringify(result).length;
  if (size > MAX_SIZE) return;
  answers.set(key, { result, endsAt: now() + Math.min(ttlMs, MAX_KEPT_MS), size });
  let all = 0;
  for (const each of answers.values()) all += each.size;
  for (const [oldest, each] of answers) {
    if (answers.size <= MAX_KEPT && all <= MAX_SIZE) return;
    answers.delete(oldest);
    all -= each.size;
  }
}
