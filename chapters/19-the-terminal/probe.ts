// `probe`: does this server work? Handshake, lists, one call if wanted; the exit code tells which of
// them failed.

import {
  asList,
  asObject,
  isObject,
  type McpConnection,
  now,
  RpcError,
  show,
  textOf,
  type Json,
  type Tool,
  type ToolResult,
} from '../../mcp.ts';
import { Masker } from '../17-the-gate/safe-text.ts';
import { callArguments, exitCodeFor, findTool, errorKind } from './calling.ts';
import { EXIT, Stop, usage } from './exit.ts';
import type { LoadRows, PrepareArguments } from './host.ts';
import { FLAG, TEXT_FLAG } from './command-line/parse.ts';
import { readReach, talkTo, wayTo } from './command-line/one-server.ts';
import { cutToWidth, type Screen } from './screen.ts';
import { how, nameAndVersion } from './status.ts';

type ProbeReport = {
  server: string;
  ok: boolean;
  protocolVersion?: string;
  because?: string;
  serverInfo?: Json;
  capabilities?: Json;
  startMs?: number;
  tools?: Tool[];
  resources?: Json[];
  resourceTemplates?: Json[];
  prompts?: Json[];
  result?: ToolResult;
  warnings: string[];
  error?: { kind: string; message: string };
};

const FLAGS = { call: TEXT_FLAG, 'no-check': FLAG } as const;
const FORMS = 'probe SERVER, probe URL, or probe -- COMMAND ARGS';

export async function probe(args: string[], screen: Screen, rows: LoadRows): Promise<number> {
  const { reach, values } = readReach(args, FLAGS);
  const { server = '', words, isJson } = reach;
  const isArgument = (word: string) => /^[^=]+=|^\{/.test(word);
  const extra = words.find((word) => values.call === undefined || !isArgument(word));
  if (extra !== undefined) throw usage(`what is ${extra}? Write: ${FORMS}`);
  if (server === '') throw usage(`which server? Write: ${FORMS}`);
  const composition = await rows();
  const way = await wayTo(reach, screen, composition, { isExamined: true });
  const masker = new Masker();
  masker.learnEntry(way.config, reach.typed ? 'user' : 'project');
  const report: ProbeReport = { server, ok: true, warnings: [] };
  const prepare = values.noCheck ? undefined : composition.prepareArguments;
  const code = await talkTo(reach, way, screen, (connection, { signal }) =>
    examine(connection, report, { tool: values.call, words, prepare, signal }),
  );
  if (isJson) screen.printJson(masker.json(report));
  else for (const line of lines(report)) screen.print(masker.text(line));
  return code;
}

type TriedCall = {
  tool?: string;
  words: string[];
  prepare?: PrepareArguments;
  signal?: AbortSignal;
};

async function examine(
  connection: McpConnection,
  report: ProbeReport,
  { tool, words, prepare, signal }: TriedCall,
) {
  try {
    const startedAt = now();
    await connection.connect();
    Object.assign(report, await connection.initialize());
    report.tools = await connection.listTools();
    report.startMs = Math.round(now() - startedAt);
    await listTheRest(connection, report);
    if (tool === undefined) return EXIT.done;
    const found = findTool(tool, report.tools, report.server);
    const args = await callArguments({ words }, found, prepare);
    report.result = await connection.callTool(tool, args, { signal });
    report.ok = !report.result.isError;
    return report.ok ? EXIT.done : EXIT.failed;
  } catch (error) {
    if (error instanceof Stop || signal?.aborted) throw error;
    const kind = errorKind(error);
    Object.assign(report, { ok: false, error: { kind, message: textOf(error) } });
    return exitCodeFor(kind);
  } finally {
    report.warnings = [...connection.warnings.values()];
  }
}

const OTHERS = [
  ['resources', 'resources/list', 'resources'],
  ['resources', 'resources/templates/list', 'resourceTemplates'],
  ['prompts', 'prompts/list', 'prompts'],
] as const;

/** Servers announce lists and do not have them: that is a warning, and the tools work. */
async function listTheRest(connection: McpConnection, report: ProbeReport) {
  for (const [offer, method, list] of OTHERS) {
    if (!report.capabilities?.[offer]) continue;
    try {
      report[list] = await listIfThere(connection, method, list);
    } catch (error) {
      connection.warn(list, `did not list its ${list}: ${textOf(error)}`);
    }
  }
}

/** A list that is announced and not there is an empty one. */
export async function listIfThere(
  connection: McpConnection,
  method: string,
  list: string,
): Promise<Json[]> {
  try {
    return (await connection.listAll(method, list)).filter(isObject);
  } catch (error) {
    if (error instanceof RpcError && error.code === -32601) return [];
    throw error;
  }
}

// ─── For people ─────────────────────────────────────────────────────────────────────────────────

function lines(report: ProbeReport) {
  const { ok, error, protocolVersion, serverInfo, capabilities, startMs, warnings } = report;
  const { server, tools, resources, resourceTemplates, prompts, result } = report;
  const facts = [
    `${ok ? '✓' : '✗'} ${server}`,
    protocolVersion && `protocol ${protocolVersion}`,
    serverInfo && nameAndVersion(serverInfo),
    startMs !== undefined && `${startMs} ms`,
  ];
  return [
    facts.filter(Boolean).join(' · '),
    ...how(report).map((line) => `  ${line}`),
    ...(capabilities ? [`  can: ${Object.keys(capabilities).join(', ') || 'nothing'}`] : []),
    ...block(
      `tools (${tools?.length})`,
      tools?.map((tool) => signature(tool)),
    ),
    ...block(`resources (${resources?.length})`, resources?.map(address)),
    ...block(`resource templates (${resourceTemplates?.length})`, resourceTemplates?.map(address)),
    ...block(`prompts (${prompts?.length})`, prompts?.map(promptLine)),
    ...block(`the call ${result?.isError ? 'failed' : 'worked'}:`, result?.text.split('\n')),
    ...warnings.map((warning) => `  ! ${warning}`),
    ...(error ? [`  ${error.kind}: ${error.message}`] : []),
  ];
}

function block(title: string, rows?: string[]) {
  return rows ? [`  ${title}`, ...rows.map((row) => `    ${row}`)] : [];
}

function address({ uri, uriTemplate, name, title }: Json) {
  return cutToWidth(`${show(uri ?? uriTemplate)}  ${show(title ?? name ?? '')}`, 200);
}

/** As a function, like a tool. */
function promptLine({ name, description, arguments: list }: Json) {
  const args = asList(list).filter(isObject);
  const parts = args.map((each) => `${show(each.name)}${each.required === true ? '' : '?'}`);
  const [words = ''] = show(description ?? '').split('\n');
  return cutToWidth(`${show(name)}(${parts.join(', ')})${words && `  ${words}`}`, 300);
}

/** A tool as TypeScript would write it, `add(a: number, b?: "x" | "y")`, and what it says of itself. */
function signature({ name, description, inputSchema }: Tool) {
  const { required } = inputSchema;
  const isNeeded = (key: string) => Array.isArray(required) && required.includes(key);
  const fields = Object.entries(asObject(inputSchema.properties));
  const parts = fields.map(
    ([key, schema]) => `${key}${isNeeded(key) ? '' : '?'}: ${typeName(schema)}`,
  );
  const [words = ''] = (description ?? '').split('\n'); // some servers write null
  return cutToWidth(`${name}(${parts.join(', ')})${words && `  ${words}`}`, 1000);
}

function typeName(schema: unknown, depth = 0): string {
  if (!isObject(schema) || depth > 5) return 'unknown';
  const { type, items, properties, anyOf, oneOf } = schema;
  const inner = (value: unknown) => typeName(value, depth + 1);
  const union = Array.isArray(anyOf) ? anyOf : oneOf;
  if (Object.hasOwn(schema, 'const')) return JSON.stringify(schema.const);
  if (Array.isArray(schema.enum))
    return schema.enum.map((value) => JSON.stringify(value)).join(' | ');
  if (Array.isArray(union)) return union.map(inner).join(' | ');
  if (Array.isArray(type)) return type.join(' | ');
  if (type === 'array') return `${inner(items)}[]`;
  if (type === 'integer') return 'number';
  if (type === 'object' && isObject(properties))
    return `{ ${Object.entries(properties)
      .map(([key, value]) => `${key}: ${inner(value)}`)
      .join('; ')} }`;
  return typeof type === 'string' ? type : 'unknown';
}
