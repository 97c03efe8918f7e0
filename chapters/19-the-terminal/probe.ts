// `probe`: does this server work? Handshake, lists, one call if wanted; the exit code tells which
// of them failed.

import { extras } from '../../agent.ts';
import {
  isObject, McpConnection, McpError, RpcError, show, type Json, type Tool, type ToolResult,
} from '../../mcp.ts';
import { nearest } from '../16-hands/nearest.ts';
import { Masker } from '../17-the-gate/safe-text.ts';
import { approved } from './entries.ts';
import { isAddress, typeFor } from './mcp-add.ts';
import { EXIT, EXIT_FOR, parse, Stop, usage } from './options.ts';
import { cut, type Screen } from './screen.ts';
import { how, nameAndVersion } from './status.ts';

type Report = {
  server: string;
  ok: boolean;
  protocolVersion?: string;
  because?: string;
  serverInfo?: Json;
  capabilities?: Json;
  startMs?: number;
  tools?: Tool[];
  resources?: Json[];
  prompts?: Json[];
  result?: ToolResult;
  warnings: string[];
  error?: { kind: string; message: string };
};

const FLAGS = {
  json: { type: 'boolean' },
  call: { type: 'string' },
  wire: { type: 'boolean' },
  'allow-server': { type: 'string', multiple: true },
  'no-color': { type: 'boolean' },
} as const;

export async function probe(args: string[], screen: Screen): Promise<number> {
  const at = args.includes('--') ? args.indexOf('--') : args.length;
  const command = args.slice(at + 1);
  const { values, positionals } = parse(args.slice(0, at), FLAGS);
  const isPair = (word: string) => values.call !== undefined && word.includes('=');
  const [name, ...extra] = positionals.filter((word) => !isPair(word));
  if (extra.length > 0)
    throw usage(`what is ${extra[0]}? Write: probe NAME, probe URL, or probe -- COMMAND ARGS`);
  const server = name ?? command[0];
  if (!server) throw usage('which server? Write: probe NAME, or probe -- COMMAND ARGS');
  const config = typed(server, command) ?? (await approved(server, screen, values['allow-server']));
  const masker = new Masker();
  for (const secrets of [config.env, config.headers]) if (isObject(secrets)) masker.learn(secrets);
  const onWire = (direction: 'out' | 'in', message: unknown) =>
    screen.wire(direction, masker.json(message));
  const options = { ...extras, ...(values.wire && { onWire }) };
  if (extras.logins) extras.logins.believesVerdicts = false; // it may have changed its mind
  const connection = new McpConnection(server, config, options);
  const report: Report = { server, ok: true, warnings: [] };
  const code = await examine(connection, report, values.call, positionals.filter(isPair));
  report.warnings = [...connection.warnings.values()];
  if (values.json) screen.printJson(masker.json(report));
  else for (const line of lines(report)) screen.print(masker.text(line));
  return code;
}

/** A command or an address on the command line: the user has approved it by typing it. */
function typed(server: string, [command, ...args]: string[]): Json | undefined {
  if (command) return { command, args };
  return isAddress(server) ? { type: typeFor(server), url: server } : undefined;
}

async function examine(
  connection: McpConnection, report: Report, tool: string | undefined, pairs: string[],
): Promise<number> {
  try {
    const startedAt = performance.now();
    await connection.connect();
    Object.assign(report, await connection.initialize());
    report.tools = await connection.listTools();
    report.startMs = Math.round(performance.now() - startedAt);
    for (const what of ['resources', 'prompts'] as const)
      if (report.capabilities?.[what]) report[what] = await all(connection, what);
    if (tool === undefined) return EXIT.done;
    report.result = await connection.callTool(tool, argumentsFrom(pairs, find(tool, report)));
    report.ok = !report.result.isError;
    return report.ok ? EXIT.done : EXIT.failed;
  } catch (error) {
    if (error instanceof Stop) throw error;
    const kind = kindOf(error);
    Object.assign(report, { ok: false, error: { kind, message: (error as Error).message } });
    return EXIT_FOR[kind] ?? EXIT.failed;
  } finally {
    await connection.close();
  }
}

function kindOf(error: unknown): string {
  if (error instanceof McpError) return error.kind;
  return error instanceof RpcError ? 'refused' : 'unexpected';
}

function find(name: string, { server, tools = [] }: Report): Tool {
  const found = tools.find((tool) => tool.name === name);
  if (found) return found;
  const [close] = nearest(name, tools.map((tool) => tool.name), 1);
  const hint = close === undefined ? '' : `; did you mean ${close}?`;
  throw usage(`${server} has no tool ${name}${hint}`);
}

/** The pages of a list other than that of the tools. */
async function all(connection: McpConnection, what: 'resources' | 'prompts'): Promise<Json[]> {
  const found: Json[] = [];
  const seen = new Set<unknown>();
  const options = { timeoutMs: connection.options.handshakeTimeoutMs };
  let cursor: unknown;
  while (found.length < 10_000 && seen.size < 1000) {
    const params = cursor === undefined ? {} : { cursor };
    const page = await connection.request(`${what}/list`, params, options);
    if (Array.isArray(page[what])) found.push(...page[what].filter(isObject));
    cursor = page.nextCursor ?? undefined;
    if (cursor === undefined || seen.has(cursor)) break;
    seen.add(cursor);
  }
  return found;
}

/** `key=value` by the tool's schema: a number where it wants a number, JSON where it wants a list
 *  or an object. */
function argumentsFrom(pairs: string[], { inputSchema }: Tool): Json {
  const properties = isObject(inputSchema.properties) ? inputSchema.properties : {};
  const valueOf = (key: string, text: string) => {
    const schema = Object.hasOwn(properties, key) ? properties[key] : undefined;
    const types = isObject(schema) ? [schema.type].flat() : [];
    return types.includes('string') ? text : jsonOr(text);
  };
  const entries = pairs.map((pair) => {
    const at = pair.indexOf('=');
    const key = pair.slice(0, at);
    return [key, valueOf(key, pair.slice(at + 1))];
  });
  return Object.fromEntries(entries);
}

function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

// ─── For people ────────────────────────────────────────────────────────────────────────────────

function lines(report: Report): string[] {
  const { capabilities, tools, resources, prompts, result, warnings, error } = report;
  const names = (rows?: Json[]) => rows?.map((row) => cut(show(row.name ?? row.uri), 200));
  const can = capabilities && Object.keys(capabilities).join(', ');
  return [
    firstLine(report),
    ...how(report).map((line) => `  ${line}`),
    ...(can === undefined ? [] : [`  can: ${can || 'nothing'}`]),
    ...block(`tools (${tools?.length})`, tools?.map((tool) => signature(tool))),
    ...block(`resources (${resources?.length})`, names(resources)),
    ...block(`prompts (${prompts?.length})`, names(prompts)),
    ...block(`the call ${result?.isError ? 'failed' : 'worked'}:`, result?.text.split('\n')),
    ...warnings.map((warning) => `  ! ${warning}`),
    ...(error ? [`  ${error.kind}: ${error.message}`] : []),
  ];
}

function firstLine({ ok, server, protocolVersion, serverInfo, startMs }: Report): string {
  const facts = [`${ok ? '✓' : '✗'} ${server}`];
  if (protocolVersion) facts.push(`protocol ${protocolVersion}`);
  if (serverInfo) facts.push(nameAndVersion(serverInfo));
  if (startMs !== undefined) facts.push(`${startMs} ms`);
  return facts.join(' · ');
}

function block(title: string, rows?: string[]): string[] {
  return rows ? [`  ${title}`, ...rows.map((row) => `    ${row}`)] : [];
}

/** A tool as TypeScript would write it, `add(a: number, b?: "x" | "y")`, and its own words. */
function signature({ name, description, inputSchema }: Tool): string {
  const { required, properties } = inputSchema;
  const isNeeded = (key: string) => Array.isArray(required) && required.includes(key);
  const fields = Object.entries(isObject(properties) ? properties : {});
  const parts = fields.map(([key, schema]) => {
    const mark = isNeeded(key) ? '' : '?';
    return `${key}${mark}: ${typeName(schema)}`;
  });
  const [words = ''] = (description ?? '').split('\n'); // some servers write null
  return cut(`${name}(${parts.join(', ')})${words && `  ${words}`}`, 1000);
}

function typeName(schema: unknown, depth = 0): string {
  if (!isObject(schema) || depth > 5) return 'unknown';
  const { type, items, properties, anyOf, oneOf } = schema;
  const inner = (value: unknown) => typeName(value, depth + 1);
  const literal = (value: unknown) => JSON.stringify(value);
  const union = Array.isArray(anyOf) ? anyOf : oneOf;
  if (Object.hasOwn(schema, 'const')) return literal(schema.const);
  if (Array.isArray(schema.enum)) return schema.enum.map(literal).join(' | ');
  if (Array.isArray(union)) return union.map(inner).join(' | ');
  if (Array.isArray(type)) return type.join(' | ');
  if (type === 'array') return `${inner(items)}[]`;
  if (type === 'integer') return 'number';
  if (type === 'object' && isObject(properties)) {
    const fields = Object.entries(properties).map(([key, value]) => `${key}: ${inner(value)}`);
    return `{ ${fields.join('; ')} }`;
  }
  return typeof type === 'string' ? type : 'unknown';
}
