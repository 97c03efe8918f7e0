// read-trace.ts: reads what `--trace` and `record` have written. One record per line, as JSON; the
// first says which version of the format it is. What cannot be read is named, and the rest is used.

import { asObject, isObject, parseMessage, type Json } from '../../../mcp.ts';

/** The version that this program writes, and the newest that it can read. */
export const TRACE_VERSION = 1;

/** `lines`: a program that goes on with a trace writes another one. */
type TraceHeader = { version: number; lines: number[] };
export type Direction = 'out' | 'in'; // from the client to the server, and back
/** One message on a wire. */
export type Sighting = { line: number; ms: number; server: string; dir: Direction; msg: Json };
/** Anything else: noise, stderr, the state of a server, what the agent did. */
export type Happening = { line: number; ms: number; server?: string; record: Json };
export type Recording = {
  header: TraceHeader;
  messages: Sighting[];
  happenings: Happening[];
  problems: { line: number; text: string }[];
};

export function readTrace(text: string): Recording {
  const recording: Recording = {
    header: { version: 0, lines: [] },
    messages: [],
    happenings: [],
    problems: [],
  };
  const lines = text.split('\n');
  const msOf = clock();
  for (const [index, written] of lines.entries()) {
    if (written.trim() === '') continue;
    const line = index + 1;
    const record = parseMessage(written);
    const isRecord = isObject(record);
    // A trace that is being written may end in the middle of a line.
    const isLast = index === lines.length - 1;
    if (!isRecord && isLast) continue;
    if (!isRecord) recording.problems.push({ line, text: 'is not a JSON object' });
    else sort(record, line, msOf(record), recording);
  }
  return recording;
}

/** Older files have the time of day in `t`; it can jump, but there is nothing better in them. */
function clock(): (record: Json) => number {
  let begin: number | undefined;
  return (record) => {
    if (typeof record.at === 'number') return record.at;
    const time = Date.parse(word(record.t));
    if (Number.isNaN(time)) return 0;
    begin ??= time;
    return time - begin;
  };
}

function sort(record: Json, line: number, ms: number, recording: Recording) {
  const { dir, server, msg } = record;
  const isHeader = record.trace !== undefined || record.type === 'trace';
  if (isHeader) return takeHeader(record, line, recording);
  const isMessage = (dir === 'out' || dir === 'in') && typeof server === 'string';
  // A revision of 2025 could send several messages as a list.
  const all = Array.isArray(msg) ? msg : [msg];
  if (isMessage && all.every(isObject)) {
    for (const each of all) recording.messages.push({ line, ms, server, dir, msg: each });
    return;
  }
  // Up to version 0 what is not a message was written as one.
  const isNoise = isMessage && msg !== undefined;
  const happened = isNoise ? { server, dir, noise: word(msg) } : record;
  const name = typeof server === 'string' ? server : undefined;
  recording.happenings.push({ line, ms, server: name, record: happened });
}

function takeHeader(record: Json, line: number, recording: Recording) {
  const version = Number(word(record.trace ?? 0));
  const { header } = recording;
  header.version = version;
  header.lines.push(line);
  if (!(version <= TRACE_VERSION)) {
    const text = `is a trace of version ${version}; this program reads up to ${TRACE_VERSION}`;
    recording.problems.push({ line, text });
  }
}

/** The servers that a recording has messages of, in the order of their first one. */
export function serversOf({ messages }: Recording): string[] {
  return [...new Set(messages.map(({ server }) => server))];
}

// ─── Foreign values ─────────────────────────────────────────────────────────────────────────────

/** Any value as text. `String` fails for an object whose key toString is not a function. */
export const word = (value: unknown) =>
  typeof value === 'string' ? value : (JSON.stringify(value) ?? 'undefined');

// ─── Messages, told apart ───────────────────────────────────────────────────────────────────────

export const isRequest = ({ method, id }: Json) => method !== undefined && id !== undefined;
export const isNotification = ({ method, id }: Json) => method !== undefined && id === undefined;
export const isResponse = ({ method, id }: Json) => method === undefined && id !== undefined;

/** 1 and "1" are two ids. */
export const idKey = (id: unknown) => `${typeof id}:${word(id)}`;
export const tokenOf = (params: unknown) => asObject(asObject(params)._meta).progressToken;
