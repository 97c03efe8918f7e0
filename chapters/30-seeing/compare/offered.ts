// offered.ts: what a server offers, from a recording, from a list in a file, or from itself.

import {
  asList,
  asObject,
  isObject,
  parseMessage,
  type Json,
  type McpConnection,
} from '../../../mcp.ts';
import { usage } from '../../19-the-terminal/exit.ts';
import { listIfThere } from '../../19-the-terminal/probe.ts';
import { exchangesOf } from '../exchanges.ts';
import { readTrace, serversOf } from '../more/read-trace.ts';
import type { Offered } from './offers-diff.ts';

const LISTS = {
  'tools/list': 'tools',
  'resources/list': 'resources',
  'resources/templates/list': 'resourceTemplates',
  'prompts/list': 'prompts',
} as const;
type ListName = (typeof LISTS)[keyof typeof LISTS];

const nothing = (): Offered => ({
  capabilities: {},
  tools: [],
  resources: [],
  resourceTemplates: [],
  prompts: [],
});

/** A file: one object with lists, as `probe --json` prints it and `tools/list` answers, or a trace. */
export function offeredIn(text: string, file: string): Offered {
  const whole = parseMessage(text);
  const isList = isObject(whole) && Object.values(LISTS).some((name) => name in whole);
  return isList ? fromLists(whole) : fromTrace(text, file);
}

function fromLists(whole: Json): Offered {
  const lists = Object.values(LISTS).map((name) => [name, asList(whole[name]).filter(isObject)]);
  return { ...nothing(), capabilities: asObject(whole.capabilities), ...Object.fromEntries(lists) };
}

/** The pages of a list belong together; a list that begins anew takes the place of the one before. */
function fromTrace(text: string, file: string) {
  const recording = readTrace(text);
  const servers = serversOf(recording);
  if (servers.length !== 1)
    throw usage(`${file} has ${servers.length} servers; record one of them alone`);
  const offered = nothing();
  for (const { request, answer } of exchangesOf(recording.messages).exchanges) {
    const method = String(request.msg.method);
    const result = asObject(answer?.msg.result);
    if (isObject(result.capabilities)) offered.capabilities = result.capabilities;
    if (!Object.hasOwn(LISTS, method)) continue;
    const name: ListName = LISTS[method as keyof typeof LISTS];
    const isNextPage = asObject(request.msg.params).cursor !== undefined;
    const page = asList(result[name]).filter(isObject);
    offered[name] = isNextPage ? [...offered[name], ...page] : page;
  }
  return offered;
}

/** What the server itself says now. */
export async function offeredNow(connection: McpConnection): Promise<Offered> {
  const { capabilities = {} } = connection.server ?? {};
  const offered = { ...nothing(), capabilities };
  for (const [method, list] of Object.entries(LISTS)) {
    if (!Object.hasOwn(capabilities, method.split('/')[0]!)) continue;
    offered[list] = await listIfThere(connection, method, list);
  }
  return offered;
}
