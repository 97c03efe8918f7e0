// asking.ts: what all questions of servers have in common, whatever they are about.

import {
  asObject,
  isStateless,
  now,
  type Call,
  type Incoming,
  type Json,
  type McpConnection,
} from '../../mcp.ts';
import { quoted } from '../17-the-gate/safe-text.ts';

const PROGRESS_MS = 20_000;

/** A person is slow, and requests are not. Until the work is done none of our calls runs out of
 *  time; and a server that gave a token hears now and then that someone is there, because many give
 *  up after a minute of silence. */
export async function whileAsking<T>(
  connection: McpConnection,
  { _meta }: Json,
  work: Promise<T>,
  progressMs = PROGRESS_MS,
  message = 'the user is reading',
): Promise<T> {
  const { progressToken } = isStateless(connection.server) ? {} : asObject(_meta);
  let progress = 0;
  const report = () => {
    const params = { progressToken, progress: ++progress, message };
    connection.notify('notifications/progress', params).catch(() => {}); // it may be gone
  };
  const timer = progressToken === undefined ? undefined : setInterval(report, progressMs);
  timer?.unref?.(); // a web page has no such thing
  try {
    return await connection.hold(work);
  } finally {
    clearInterval(timer);
  }
}

/** Which of our calls a question belongs to. Since 2026-07-28 that is known; before, it is if there
 *  is only one. */
export function callOf({ running }: McpConnection, { call }: Incoming): Call | undefined {
  const calls = running.filter(({ method }) => method === 'tools/call');
  return call ?? (calls.length === 1 ? calls[0] : undefined);
}

export function during(connection: McpConnection, incoming: Incoming): string[] {
  const { params, options } = callOf(connection, incoming) ?? {};
  const { name } = asObject(params);
  const whom = options?.caller ? ` for: ${options.caller}` : '';
  return typeof name === 'string' ? [`while it runs ${quoted(name)}${whom}:`] : [];
}

/** How often each server has asked: a person who is asked too often says yes to anything. */
export class Counts {
  private asked = new Map<string, number[]>();
  private most: number;
  private mostAMinute: number;

  /** Of one server: in all, as long as the program runs, and in any minute. */
  constructor(most = 20, mostAMinute = 5) {
    this.most = most;
    this.mostAMinute = mostAMinute;
  }

  mayAsk(server: string): boolean {
    const times = this.asked.get(server) ?? [];
    const lately = times.filter((time) => time > now() - 60_000);
    if (times.length >= this.most || lately.length >= this.mostAMinute) return false;
    this.asked.set(server, [...times, now()]);
    return true;
  }
}
