// Conversations that are written down as traces, and played back.

import { join } from 'node:path';
import { inBothEras } from '../../chapters/22-no-handshake/era.ts';
import { McpConnection, type Extension, type Json } from '../../mcp.ts';
import { later, root } from './basics.ts';

export const asker = (...args: string[]) => ({
  command: process.execPath,
  args: [join(root, 'fixtures', 'asker.mjs'), ...args],
});
export const lines = (...records: unknown[]) =>
  records.map((each) => `${JSON.stringify(each)}\n`).join('');
export const out = (msg: Json, at = 0, server = 's') => ({
  at,
  dir: 'out',
  server,
  msg: { jsonrpc: '2.0', ...msg },
});
export const back = (msg: Json, at = 0, server = 's') => ({
  at,
  dir: 'in',
  server,
  msg: { jsonrpc: '2.0', ...msg },
});

export let changes = 0; // that servers told of

/** Answers every question of a server in the same way. */
const accepting: Extension = () => ({
  capabilities: { elicitation: { form: {} }, roots: {} },
  changed: () => void changes++,
  handlers: {
    'elicitation/create': () => ({ action: 'accept', content: { city: 'Graz' } }),
    'roots/list': () => ({ roots: [{ uri: 'file:///tmp', name: 'tmp' }] }),
  },
});

/** Runs a conversation and writes it down as a trace. */
export async function recorded(
  config: Json,
  talk: (connection: McpConnection) => Promise<unknown>,
  more: Json = {},
) {
  const records: unknown[] = [{ trace: 1 }];
  let at = 0;
  const connection = new McpConnection('s', config, {
    onWire: (dir, msg) => records.push({ at: at++, dir, server: 's', msg }),
    onWarning: () => {},
    extensions: [accepting, ...inBothEras()],
    ...more,
  });
  later(() => connection.close());
  await connection.connect();
  await connection.initialize();
  const result = await talk(connection);
  await connection.close();
  return { text: lines(...records), result };
}

export const askCity = (connection: McpConnection) =>
  connection.callTool('ask', {
    method: 'elicitation/create',
    params: {
      message: 'Where?',
      requestedSchema: { type: 'object', properties: { city: { type: 'string' } } },
    },
  });

export const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};
