// A transport alone: what it tells is written down.

import type { Message, Transport } from '../../mcp.ts';

export const note = (method: string, params?: Message['params']): Message => ({
  jsonrpc: '2.0',
  method,
  params,
});

/** Starts a transport, and writes down in one list what it tells. */
export async function listen(transport: Transport, dropped: any[] = []) {
  const told: any[] = [];
  await transport.start({
    message: (message) => told.push(message),
    dropped: (why) => dropped.push(why),
    closed: (why) => told.push(why),
  });
  return told;
}
