// requests.ts: the requests to models in a trace, put together again, and judged by what their wires
// demand. What one part must look like is in shapes.json; here is what holds between them.

import { asList, asObject, excerpt, isObject, type Json } from '../../mcp.ts';
import { word, type Recording } from './more/read-trace.ts';
import { misfits, shapeAt } from './more/shapes.ts';

export type RecordedRequest = {
  line: number;
  model: string;
  fields: Json;
  lists: Record<'tools' | 'system' | 'messages', Json[]>;
};

/** One after the other, for each holds its whole conversation. A part whose line is missing is an
 *  empty object. */
export function* requestsIn({ happenings }: Recording): Generator<RecordedRequest> {
  let parts = new Map<unknown, Json>(); // by their numbers
  const listed = (list: unknown): Json[] =>
    asList(list).map((entry) => {
      if (!isObject(entry)) return parts.get(entry) ?? MISSING;
      const { n, json } = entry;
      if (n === 0) parts = new Map(); // who writes has begun again
      const part = asObject(json);
      parts.set(n, part);
      return part;
    });
  for (const { line, record } of happenings) {
    const { type, model, request, marked } = innerEvent(record);
    if (type !== 'query' || !isObject(request)) continue;
    const { tools, system, messages, ...fields } = request;
    const lists = { tools: listed(tools), system: listed(system), messages: listed(messages) };
    yield { line, model: word(model), fields: { ...fields, marked }, lists };
  }
}

const MISSING: Json = {}; // its line was cut off

/** What a sub-agent does is inside. */
const innerEvent = (record: Json): Json =>
  record.type === 'agent' && isObject(record.event) ? innerEvent(record.event) : record;

// ─── What a wire demands ─────────────────────────────────────────────────────────────────────────

type Problem = [rule: string, text: string];

/** What is wrong with the requests of a trace, each thing once: later requests have it, too. */
export function* problemsWithRequests(recording: Recording) {
  const told = new Set<string>();
  const judged = new WeakSet<Json>();
  for (const { line, model, fields, lists } of requestsIn(recording)) {
    if (Object.values(lists).flat().includes(MISSING)) continue; // it cannot be judged
    const [wire = ''] = model.split('/');
    const problems = [...problemsBetween(lists)];
    for (const [rule, parts] of Object.entries({ ...lists, request: [{ ...fields, ...lists }] })) {
      const fresh = parts.filter((part) => !judged.has(part) && judged.add(part));
      const rules = { [rule]: shapeAt(wire, rule) };
      problems.push(...fresh.flatMap((part) => misfits(rules, part)));
    }
    for (const [rule, text] of problems) {
      const isNew = !told.has(model + text);
      told.add(model + text);
      if (isNew) yield { line, server: model, rule, text };
    }
  }
}

/** Every call has its result, once, in order, before anyone speaks again; no name is there twice. */
function* problemsBetween({ tools, messages }: RecordedRequest['lists']): Generator<Problem> {
  yield* twins(
    'tools',
    tools.map((tool) => asObject(tool.function ?? tool).name),
  );
  yield* twins('id', messages.flatMap(callsIn));
  let open: unknown[] = [];
  let before: unknown;
  for (const message of [...messages, { role: 'the end' }]) {
    const { role } = message;
    if (role === before && role !== 'tool') yield ['roles', `${excerpt(role)} speaks twice`];
    before = role;
    for (const id of resultsIn(message)) {
      const at = open.indexOf(id);
      if (at === -1) yield ['result', `no call waits for the result of ${excerpt(id)}`];
      if (at > 0) yield ['result', `the result of ${excerpt(open[0])} should come first`];
      open = open.filter((each) => each !== id);
    }
    if (role === 'tool') continue; // a message for each result
    for (const id of open) yield ['result', `the call ${excerpt(id)} has no result`];
    open = callsIn(message);
  }
}

function twins(rule: string, values: unknown[]): Problem[] {
  const known = new Set<unknown>();
  const again = values.filter((value) => known.has(value) || !known.add(value));
  return again.map((value) => [rule, `${excerpt(value)} is there twice`]);
}

const objectsIn = (list: unknown) => asList(list).map(asObject);

/** Ids, on either wire or in a turn of ours. */
function callsIn({ content, tool_calls, calls }: Json) {
  const uses = objectsIn(content).filter(({ type }) => type === 'tool_use');
  return [...uses, ...objectsIn(tool_calls), ...objectsIn(calls)].map(({ id }) => id);
}

function resultsIn({ role, content, tool_call_id, results }: Json) {
  if (role === 'tool') return [tool_call_id];
  const ids = objectsIn(content).flatMap(({ tool_use_id }) => tool_use_id ?? []);
  return [...ids, ...objectsIn(results).map(({ id }) => id)];
}
