// mirrored-headers.ts: since 2026-07-28 headers repeat what a body says, so that a gateway can
// route without reading bodies.

import { asObject, excerpt, isObject, isStateless, ownValue, RpcError, textOf } from '../../mcp.ts';
import type { Call, Extension, Json, McpConnection, Message, Next } from '../../mcp.ts';
import type { HeaderFields } from './reply.ts';

export const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';
export const HEADER_MISMATCH = -32020;
export const MISSING_CAPABILITY = -32021;
export const UNSUPPORTED_VERSION = -32022;
/** Only servers of the stateless era know these. */
export const LATER_ERRORS: unknown[] = [HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION];

/** What of a message goes into headers. Nothing, in a message of the handshake era. */
export function standardHeaders({ method, params = {} }: Message): HeaderFields {
  const version = asObject(params._meta)[VERSION_KEY];
  if (typeof version !== 'string' || method === undefined) return {};
  const headers: HeaderFields = { 'mcp-protocol-version': version, 'mcp-method': method };
  const name = nameIn(method, params);
  if (typeof name === 'string') headers['mcp-name'] = encode(name);
  return headers;
}

function nameIn(method: string, params: Json) {
  if (method === 'tools/call' || method === 'prompts/get') return params.name;
  if (method.startsWith('tasks/')) return params.taskId; // of the Tasks extension, chapter 24
  return method === 'resources/read' ? params.uri : undefined;
}

const PRINTABLE = /^([\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?)?$/; // no space at either end
const LOOKS_ENCODED = /^=\?base64\?.*\?=$/i;

/** Only printable ASCII fits a header as it is, and not if it looks encoded already. */
export function encode(value: string | number | boolean): string {
  const text = `${value}`;
  if (PRINTABLE.test(text) && !LOOKS_ENCODED.test(text)) return text;
  return `=?base64?${btoa(byteString(text))}?=`;
}

/** Each byte of its UTF-8 as a character. */
export function byteString(text: string): string {
  const bytes = new TextEncoder().encode(text);
  return Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');
}

// ─── Arguments that a tool wants in headers: "x-mcp-header": "Branch" is Mcp-Param-Branch ────────

type Mirror = { path: string[]; header: string };
const MAX_KNOWN = 10_000;
const MAX_TOLD = 50;
const MAX_MIRRORS = 100; // headers that one tool may want
const NOT_A_SCHEMA = ['default', 'const', 'enum', 'examples'];

/** Which arguments of a tool go into headers. Throws if its schema asks for something impossible. */
export function mirrorsOf(inputSchema: unknown): Mirror[] {
  const mirrors: Mirror[] = [];
  collectMirrors(inputSchema, [], true, mirrors);
  if (mirrors.length > MAX_MIRRORS) throw new Error(`it wants more than ${MAX_MIRRORS} headers`);
  const names = new Set<string>();
  for (const { header } of mirrors) {
    const name = header.toLowerCase();
    if (names.has(name)) throw new Error(`two of its arguments want the header ${name}`);
    names.add(name);
  }
  return mirrors;
}

/** Only through `properties` is it clear which argument is meant: then it is reachable. */
function collectMirrors(schema: unknown, path: string[], isReachable: boolean, found: Mirror[]) {
  if (Array.isArray(schema)) {
    for (const each of schema) collectMirrors(each, path, false, found);
    return;
  }
  if (!isObject(schema)) return;
  if (Object.hasOwn(schema, 'x-mcp-header'))
    found.push({ path, header: checkedName(schema, path, isReachable) });

  for (const [key, value] of Object.entries(schema))
    if (key === 'properties' && isObject(value))
      for (const [name, each] of Object.entries(value))
        collectMirrors(each, [...path, name], isReachable, found);
    else if (!NOT_A_SCHEMA.includes(key)) collectMirrors(value, path, false, found);
}

function checkedName(schema: Json, path: string[], isReachable: boolean) {
  const { 'x-mcp-header': name, type } = schema;
  const where = path.join('.') || 'its schema';
  if (typeof name !== 'string' || !/^[!#$%&'*+.^_`|~\w-]+$/.test(name))
    throw new Error(`${where} wants the header ${excerpt(name)}, which is not a name`);

  if (!isReachable || path.length === 0)
    throw new Error(`${where} wants a header, but is not a plain argument`);

  if (!['string', 'integer', 'boolean'].includes(type as string))
    throw new Error(`${where} wants a header, but is of type ${excerpt(type)}`);

  return name;
}

export const partNamed = (outer: unknown, key: string) => ownValue(asObject(outer), key);

export function mirroredHeaders(mirrors: Mirror[], args: unknown): HeaderFields {
  const headers: HeaderFields = {};
  for (const { path, header } of mirrors) {
    const value = path.reduce<unknown>(partNamed, args);
    if (['string', 'number', 'boolean'].includes(typeof value))
      headers[`mcp-param-${header.toLowerCase()}`] = encode(value as string);
  }
  return headers;
}

/** Looks at every list of tools, leaves out those with a bad annotation, and adds headers to calls. */
export const mirrorArguments: Extension = (connection) => {
  const known = new Map<unknown, Mirror[]>(); // by the name of the tool
  return {
    layer: (call, next) => {
      // Headers need a request of their own, and only the stateless era has these.
      if (!connection.hasStreamPerRequest || !isStateless(connection.server)) return next(call);
      if (call.method === 'tools/list') return listed(call, next, known, connection);
      if (call.method === 'tools/call') return called(call, next, known, connection);
      return next(call);
    },
  };
};
type MirrorsByTool = Map<unknown, Mirror[]>;

/** Most tools want no header, and a server may list other tools every time. */
function keep(known: MirrorsByTool, name: unknown, mirrors: Mirror[]) {
  known.delete(name); // so that it becomes the newest
  if (mirrors.length > 0) known.set(name, mirrors);
  const [oldest] = known.keys();
  if (known.size > MAX_KNOWN) known.delete(oldest);
}

async function called(call: Call, next: Next, known: MirrorsByTool, connection: McpConnection) {
  const withHeaders = () => {
    const mirrors = known.get(call.params?.name) ?? [];
    const mirrored = mirroredHeaders(mirrors, call.params?.arguments);
    const headers = { ...call.options.headers, ...mirrored };
    return next({ ...call, options: { ...call.options, headers } });
  };
  try {
    return await withHeaders();
  } catch (error) {
    // The server sees other headers than its tool wants. The tool may have changed: look once more.
    if (!(error instanceof RpcError) || error.code !== HEADER_MISMATCH) throw error;
    connection.changed('tools'); // so that a cache forgets the list it has
    await connection.listTools();
    return withHeaders();
  }
}

async function listed(call: Call, next: Next, known: MirrorsByTool, connection: McpConnection) {
  const result = await next(call);
  if (!Array.isArray(result.tools)) return result;
  const leftOut: string[] = [];
  const tools = result.tools.filter((tool) => {
    const { name, inputSchema } = asObject(tool);
    try {
      keep(known, name, mirrorsOf(inputSchema));
      return true;
    } catch (error) {
      leftOut.push(`${excerpt(name)}: ${textOf(error)}`);
      return false;
    }
  });
  if (leftOut.length > 0) {
    const some = leftOut.slice(0, MAX_TOLD).join('; ');
    const more = leftOut.length > MAX_TOLD ? ` and ${leftOut.length - MAX_TOLD} more` : '';
    connection.warn('headers', `has tools that we leave out for their headers: ${some}${more}`);
  }
  return { ...result, tools };
}
