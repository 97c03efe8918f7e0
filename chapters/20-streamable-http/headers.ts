// headers.ts: since 2026-07-28 headers repeat what a body says, so that a gateway can route without reading bodies.

import { asObject, excerpt, isObject, REVISIONS, RpcError } from '../../mcp.ts';
import type { Json, Layer, McpConnection, Message } from '../../mcp.ts';

export const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';
export const [HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION] = [-32020, -32021, -32022] as const;
/** Only servers of the later era know these. */
export const LATER_ERRORS: unknown[] = [HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION];
type Headers = Record<string, string>;

/** What of a message goes into headers. Nothing, in a message of the earlier era. */
export function standardHeaders({ method, params = {} }: Message): Headers {
  const version = asObject(params._meta)[VERSION_KEY];
  if (typeof version !== 'string' || method === undefined) return {};
  const hasName = method === 'tools/call' || method === 'prompts/get';
  const name = method === 'resources/read' ? params.uri : hasName ? params.name : undefined;
  return {
    'mcp-protocol-version': version,
    'mcp-method': method,
    ...(typeof name === 'string' && { 'mcp-name': encode(name) }),
  };
}

/** Only printable ASCII fits a header as it is, without spaces at its ends, and not if it looks encoded already. */
export function encode(value: string | number | boolean): string {
  const text = `${value}`;
  const isPlain = /^([\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?)?$/.test(text) && !/^=\?base64\?.*\?=$/i.test(text);
  return isPlain ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`;
}

// ─── Arguments that a tool wants to see in headers: "x-mcp-header": "Branch" becomes Mcp-Param-Branch ─────────────

type Mirror = { path: string[]; header: string };

/** Which arguments of a tool go into headers. Throws if its schema asks for something that cannot be. */
export function mirrorsOf(inputSchema: unknown): Mirror[] {
  const mirrors: Mirror[] = [];
  const look = (schema: unknown, path: string[], isReachable: boolean): void => {
    if (Array.isArray(schema)) return schema.forEach((each) => look(each, path, false));
    if (!isObject(schema)) return;
    if (Object.hasOwn(schema, 'x-mcp-header')) mirrors.push({ path, header: checkedName(schema, path, isReachable) });
    for (const [key, value] of Object.entries(schema)) {
      // Only through `properties` is it clear which argument is meant.
      if (key === 'properties' && isObject(value))
        for (const [name, each] of Object.entries(value)) look(each, [...path, name], isReachable);
      else if (!['default', 'const', 'enum', 'examples'].includes(key)) look(value, path, false);
    }
  };
  look(inputSchema, [], true);
  const names = mirrors.map(({ header }) => header.toLowerCase());
  const twice = names.find((name, n) => names.indexOf(name) !== n);
  if (twice !== undefined) throw new Error(`two of its arguments want the header ${twice}`);
  return mirrors;
}

function checkedName(schema: Json, path: string[], isReachable: boolean): string {
  const { 'x-mcp-header': name, type } = schema;
  const where = path.join('.') || 'its schema';
  if (typeof name !== 'string' || !/^[!#$%&'*+.^_`|~\w-]+$/.test(name))
    throw new Error(`${where} wants the header ${excerpt(name)}, which is no name`);
  if (!isReachable || path.length === 0) throw new Error(`${where} wants a header, but is no plain argument`);
  if (!['string', 'integer', 'boolean'].includes(type as string))
    throw new Error(`${where} wants a header, but is of type ${excerpt(type)}`);
  return name;
}

const valueOf = (outer: unknown, key: string) =>
  isObject(outer) && Object.hasOwn(outer, key) ? outer[key] : undefined;

export function mirroredHeaders(mirrors: Mirror[], args: unknown): Headers {
  const headers: Headers = {};
  for (const { path, header } of mirrors) {
    const value = path.reduce<unknown>(valueOf, args);
    if (['string', 'number', 'boolean'].includes(typeof value))
      headers[`mcp-param-${header.toLowerCase()}`] = encode(value as string);
  }
  return headers;
}

const known = new WeakMap<McpConnection, Map<unknown, Mirror[]>>(); // by the name of the tool

/** Looks at every list of tools, leaves out those with a bad annotation, and adds the headers to calls. */
export const mirrorArguments: Layer = async (call, next, connection) => {
  const isModern = connection.server && !REVISIONS.includes(connection.server.protocolVersion);
  if (!isModern || !/^https?$|^streamable-http$/.test(`${connection.config.type}`)) return next(call);
  if (call.method === 'tools/list') return withoutBad(await next(call), connection);
  if (call.method !== 'tools/call') return next(call);
  const withHeaders = () => {
    const mirrors = known.get(connection)?.get(call.params?.name) ?? [];
    const headers = { ...call.options.headers, ...mirroredHeaders(mirrors, call.params?.arguments) };
    return next({ ...call, options: { ...call.options, headers } });
  };
  try {
    return await withHeaders();
  } catch (error) {
    // The server sees other headers than its tool wants: perhaps the tool has changed. Look again, once.
    if (!(error instanceof RpcError) || error.code !== HEADER_MISMATCH) throw error;
    // As if it had told us so, for then nobody keeps the list that we have.
    await connection.handle('notifications/tools/list_changed', {}).catch(() => {});
    await connection.listTools();
    return withHeaders();
  }
};

function withoutBad(result: Json, connection: McpConnection): Json {
  if (!Array.isArray(result.tools)) return result;
  const mirrors = known.get(connection) ?? new Map<unknown, Mirror[]>();
  known.set(connection, mirrors);
  const tools = result.tools.filter((tool) => {
    try {
      mirrors.set(tool?.name, mirrorsOf(tool?.inputSchema));
      return true;
    } catch (error) {
      const why = `${excerpt(tool?.name)}: ${(error as Error).message}`;
      connection.warn(`header of ${tool?.name}`, `has a tool that we leave out, ${why}`);
      return false;
    }
  });
  return { ...result, tools };
}
