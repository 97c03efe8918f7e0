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
import { Tied } from '../exchanges.ts';
import { readTrace, serversOf } from '../more/read-trace.ts';
import { OFFERED_LISTS, type Offered } from './offers-diff.ts';

/** A file: one object with lists, as `probe --json` prints it and `tools/list` answers, or a trace. */
export function offeredIn(text: string, file: string): Offered {
  const whole = parseMessage(text);
  const isList = isObject(whole) && OFFERED_LISTS.some(([list]) => list in whole);
  return isList ? fromLists(whole) : fromTrace(text, file);
}

function fromLists(whole: Json): Offered {
  const lists = OFFERED_LISTS.map(([list]) => [list, asList(whole[list]).filter(isObject)]);
  return { capabilities: asObject(whole.capabilities), ...Object.fromEntries(lists) };
}

/** The pages of a list belong together; a list that begins anew takes the place of the one before. */
function fromTrace(text: string, file: string) {
  const recording = readTrace(text);
  const servers = serversOf(recording);
  if (servers.length !== 1)
    throw usage(`${file} has ${servers.length} servers; record one of them alone`);
  const offered = fromLists({});
  for (const { request, answer } of new Tied(recording.messages).exchanges) {
    const { method, params } = request.msg;
    const result = asObject(answer?.msg.result);
    if (isObject(result.capabilities)) offered.capabilities = result.capabilities;
    const [list] = OFFERED_LISTS.find((row) => row[3] === method) ?? [];
    if (!list) continue;
    const before = asObject(params).cursor === undefined ? [] : offered[list];
    offered[list] = [...before, ...fromLists(result)[list]];
  }
  return offered;
}

/** What the server itself says now. */
export async function offeredNow(connection: McpConnection): Promise<Offered> {
  const { capabilities = {} } = connection.server ?? {};
  const offered = fromLists({ capabilities });
  for (const [list, , , method] of OFFERED_LISTS) {
    const [capability = ''] = method.split('/');
    if (Object.hasOwn(capabilities, capability))
      offered[list] = await listIfThere(connection, method, list);
  }
  return offered;
}
