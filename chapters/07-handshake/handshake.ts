// handshake.ts: how revisions up to 2025-11-25 begin.

import { type Json, excerpt, isObject } from '../01-a-pipe/messages.ts';
import type { CallOptions } from '../04-correlation/extension.ts';
import type { Connection } from '../../mcp.ts';

/** What a server says of itself in the handshake. Without `capabilities` it has not said what it
 *  can do. `because` tells how we know which revision it speaks. */
export type ServerDescription = {
  protocolVersion: string;
  capabilities?: Json;
  serverInfo?: Json;
  instructions?: string;
  because?: string;
};

/** The revisions that begin with a handshake. */
export const REVISIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];
/** Which era is it? Later revisions have no handshake, and every request is complete in itself. */
export const isStateless = (server?: ServerDescription) =>
  server !== undefined && !REVISIONS.includes(server.protocolVersion);
export const VERSION = '1.0.0';
export const CLIENT_INFO = { name: 'mcp-by-hand', version: VERSION };

/** How revisions up to 2025-11-25 begin. An extension with a `handshake` replaces it. */
export async function shakeHands(
  connection: Connection,
  options: CallOptions = {},
): Promise<ServerDescription> {
  const hello = {
    protocolVersion: REVISIONS[0],
    capabilities: connection.capabilities,
    clientInfo: CLIENT_INFO,
  };
  const timeoutMs = connection.options.handshakeTimeoutMs;
  const answer = await connection.request('initialize', hello, { timeoutMs, ...options });
  const { protocolVersion: theirs } = answer;
  if (typeof theirs !== 'string' || !REVISIONS.includes(theirs)) {
    const both = `speaks revision ${excerpt(theirs)}, and we speak ${REVISIONS.join(', ')}`;
    throw connection.error('protocol', both);
  }
  const told = connection.notify('notifications/initialized');
  told.catch(() => {}); // not awaited: the server may never read it
  return { protocolVersion: theirs, ...selfDescription(answer) };
}

/** What a server says of itself, as far as it has the right shape. */
export function selfDescription({ capabilities, serverInfo, instructions }: Json) {
  return {
    ...(isObject(capabilities) && { capabilities }),
    ...(isObject(serverInfo) && { serverInfo }),
    ...(typeof instructions === 'string' && { instructions }),
  };
}
