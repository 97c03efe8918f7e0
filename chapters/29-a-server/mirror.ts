// mirror.ts: since 2026-07-28 headers repeat what a body says, for those who route by headers. If
// the two could differ, a gateway would judge one request and we would run another.

import type { IncomingHttpHeaders } from 'node:http';
import { asObject, excerpt, ownValue, RpcError, type Message } from '../../mcp.ts';
import {
  HEADER_MISMATCH,
  type mirrorsOf,
  partNamed,
  VERSION_KEY,
} from '../20-streamable-http/mirrored-headers.ts';

type Mirrors = ReturnType<typeof mirrorsOf>;

/** Which part of the parameters Mcp-Name repeats. */
const NAMED: Record<string, string> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
};

/** Throws if a header is missing, or says something else than the body. */
export function checkMirrors(
  headers: IncomingHttpHeaders,
  request: Message,
  mirrors: Mirrors,
): void {
  const { method = '', params = {} } = request;
  const version = asObject(params._meta)[VERSION_KEY];
  same('MCP-Protocol-Version', headers['mcp-protocol-version'], version);
  same('Mcp-Method', headers['mcp-method'], method);
  const key = ownValue(NAMED, method);
  if (key) same('Mcp-Name', decoded('Mcp-Name', headers['mcp-name']), params[key]);
  for (const { path, header } of mirrors) {
    const value = path.reduce<unknown>(partNamed, params.arguments);
    const name = `Mcp-Param-${header}`;
    same(name, decoded(name, headers[name.toLowerCase()]), value);
  }
}

/** A header is there exactly if the value is, and means the same. */
function same(name: string, header: string | string[] | undefined, value: unknown) {
  const isAbsent = value === undefined || value === null;
  if (isAbsent && header === undefined) return;
  const isNumber = typeof value === 'number' && `${header}`.trim() !== '';
  const isSame = isNumber ? Number(header) === value : header === `${value}`;
  if (header !== undefined && !isAbsent && isSame) return;
  const words = `${name} is ${excerpt(header)}, the body says ${excerpt(value)}`;
  throw new RpcError(HEADER_MISMATCH, `Header mismatch: ${words}`);
}

/** =?base64?…?= is text that fits no header as it is. What is only half of that means itself. */
function decoded(name: string, header: string | string[] | undefined) {
  if (typeof header !== 'string') return undefined;
  const [, base64] = /^=\?base64\?(.*)\?=$/.exec(header) ?? [];
  if (base64 === undefined) return header;
  const bytes = Buffer.from(base64, 'base64');
  // Node skips what is not base64. There should be one way to write a value.
  if (bytes.toString('base64') === base64) return bytes.toString();
  throw new RpcError(HEADER_MISMATCH, `Header mismatch: ${name} is not base64`);
}
