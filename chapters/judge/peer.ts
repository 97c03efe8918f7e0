// peer.ts: the server at the other end of a transport under judgement. As a program it speaks on
// stdin and stdout; peers.ts puts it behind sockets.

import { fileURLToPath } from 'node:url';
import { asObject, LineBuffer, type Json } from '../../mcp.ts';

export const PEER = 'the judge';
/** A notification that makes it hang up. */
export const HANG_UP = 'notifications/judge/hang-up';

const echo = { name: 'echo', description: 'Says it again.', inputSchema: { type: 'object' } };
const methods = new Map<unknown, (params: Json) => Json>([
  [
    'initialize',
    ({ protocolVersion }) => {
      const serverInfo = { name: PEER, version: '1.0.0' };
      return { protocolVersion, capabilities: { tools: {} }, serverInfo };
    },
  ],
  ['ping', () => ({})],
  ['tools/list', () => ({ tools: [echo] })],
  [
    'tools/call',
    (params) => {
      const text = JSON.stringify(params.arguments ?? {});
      return { content: [{ type: 'text', text }] };
    },
  ],
]);

export function answer(text: string, say: (text: string) => void, hangUp: () => void): void {
  const { id, method, params } = asObject(JSON.parse(text));
  if (method === HANG_UP) return hangUp();
  if (id === undefined) return;
  const run = methods.get(method);
  const refusal = { error: { code: -32601, message: `Method not found: ${method}` } };
  const outcome = run ? { result: run(asObject(params)) } : refusal;
  say(JSON.stringify({ jsonrpc: '2.0', id, ...outcome }));
}

/** Reads lines, and answers in lines. */
export function speakLines(
  input: NodeJS.ReadableStream,
  output: NodeJS.WritableStream,
  hangUp: () => void,
): void {
  const lines = new LineBuffer();
  input.on('data', (chunk: Buffer) => {
    for (const line of lines.takeWhole(chunk).toString().split('\n')) {
      if (line.trim() !== '') answer(line, (text) => output.write(`${text}\n`), hangUp);
    }
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  speakLines(process.stdin, process.stdout, () => process.exit(3));
}
