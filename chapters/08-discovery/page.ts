// page.ts: one page of a list, in what is left of the time for all of them.

import { type Json, now } from '../01-a-pipe/messages.ts';
import { McpError } from '../03-three-shapes/errors.ts';
import type { Connection } from '../../mcp.ts';

export const MAX_PAGES = 1000;
export const MAX_LIST = 2 ** 26; // characters of all its pages together

export async function onePage(
  connection: Connection,
  method: string,
  params: Json | undefined,
  deadline: number,
  pages: number,
): Promise<Json> {
  const { handshakeTimeoutMs } = connection.options;
  try {
    // On the first page the limit itself, so that a time-out names it and not what is left of it.
    const timeoutMs = pages === 0 ? handshakeTimeoutMs : deadline - now();
    return await connection.request(method, params, { timeoutMs });
  } catch (error) {
    const isTimeout = error instanceof McpError && error.kind === 'timeout';
    if (!isTimeout || pages === 0) throw error;
    const slow = `did not answer all of ${method} within ${handshakeTimeoutMs / 1000} s`;
    throw connection.error('timeout', `${slow}: ${pages} pages came`);
  }
}
